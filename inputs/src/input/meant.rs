//! Suggestions for unknown keys and tables.
use super::{Input, in_same_table, index, pattern};
use crate::advice::closest;
use crate::kind::InputKind;
use crate::synonyms::{self, Meant};

impl Input {
    /// Returns the command that reads this input; `None` for a file that the program writes for its own use.
    pub(super) fn kind(&self) -> Option<InputKind> {
        self.schema.command
    }
    /// Returns the name that the user probably meant by an unknown key.
    pub(super) fn meant(&self, key: &str) -> Option<Meant> {
        let of_array = || self.in_array(key).map(|(_, own)| own);
        if let Some(own) = self.in_table(key).or_else(of_array) {
            let known: Vec<&str> =
                self.schema.solves.iter().flat_map(|solves| solves.schema.keys()).map(|(name, _)| name).collect();
            let elsewhere = || {
                let others: Vec<&str> = self.schema.keys().map(|(name, _)| name).collect();
                others.contains(&own).then(|| self.elsewhere(key, &others)).flatten()
            };
            return elsewhere().or_else(|| synonyms::of_key(own, &known)).or_else(|| closest(own, &known));
        }
        let (typed, patterns) = (pattern(key).replace('_', "-"), self.schema.all_names());
        let known: Vec<&str> = patterns.iter().map(String::as_str).collect();
        let exact = || self.elsewhere(&typed, &known);
        let close = || match typed.rsplit_once('.') {
            // Only the last part of the key is compared, because all keys of a table begin with the name of the table.
            Some((table, last)) if known.iter().any(|key| in_same_table(key, table)) => {
                let own = known.iter().filter(|key| in_same_table(key, table));
                let names: Vec<&str> = own.filter_map(|key| key.rsplit('.').next()).collect();
                let meant = closest(last, &names)?;
                Some(Meant { name: meant.name.map(|name| format!("{table}.{name}")), ..meant })
            }
            _ => closest(&typed, &known),
        };
        let mut meant = exact().or_else(|| synonyms::of_key(&typed, &known)).or_else(close)?;
        // In an array of tables, the key belongs to the table with the typed number, or else to the first table.
        let number = key.split('.').find(|part| index(part).is_some()).unwrap_or("0");
        meant.name = meant.name.map(|name| name.replace('*', number));
        Some(meant)
    }
    /// Finds an unknown key in another table, or outside tables. In TOML, a key belongs to the table whose header precedes it.
    pub(super) fn elsewhere(&self, typed: &str, known: &[&str]) -> Option<Meant> {
        let last = typed.rsplit('.').next().unwrap_or(typed);
        let same = |key: &&&str| key.rsplit('.').next() == Some(last);
        let found = known.iter().find(|key| **key == last).or_else(|| known.iter().find(same))?;
        let note = match (found.contains('.'), typed.contains('.')) {
            _ if typed == *found => None,
            (false, true) => Some("keys outside tables go above the first line in brackets"),
            (true, _) => Some("keys of a table go below its name in brackets"),
            (false, false) => None,
        };
        Some(Meant { name: Some((*found).into()), note, sure: true })
    }
    /// Returns the end of the message on an unknown key: `; did you mean 'gauge'?`, or a list of keys.
    pub(super) fn suggestion(&self, key: &str) -> String {
        if let Some(meant) = self.meant(key) {
            return meant.sentence();
        }
        let of_solve = self.in_table(key).is_some();
        let table = pattern(key).rsplit_once('.').map(|(table, _)| table.to_string());
        let own = |name: &&str| name.rsplit_once('.').map(|(table, _)| table) == table.as_deref();
        let names: Vec<&str> = self.schema.keys().map(|(name, _)| name).filter(own).collect();
        match self.kind() {
            Some(InputKind::Solve) => return "; `ferrite init solve` prints all keys with comments".into(),
            Some(_) if of_solve => {
                return "; `ferrite init solve` prints the keys of operators and solvers with comments".into();
            }
            Some(kind) if names.is_empty() => {
                return format!("; `{}` prints an input with comments", kind.example());
            }
            _ => {}
        }
        let names: Vec<&str> = names.iter().map(|name| name.rsplit('.').next().unwrap_or(name)).collect();
        match &table {
            Some(table) => {
                let shared = self.schema.solves.filter(|_| self.in_array(key).is_some());
                let shared = shared.map_or(String::new(), |solves| format!(", and those of table {}", solves.table));
                format!("; the keys of table {} are {}{shared}", table.trim_end_matches(".*"), names.join(", "))
            }
            None => format!(
                "; the keys outside tables are {}; the tables are {}",
                names.join(", "),
                self.bracketed().join(", ")
            ),
        }
    }
    /// Returns the names of the tables, and whether the input may have several tables of this name.
    pub(super) fn table_names(&self) -> Vec<(&'static str, bool)> {
        let mut all: Vec<(&str, bool)> = Vec::new();
        let of_keys = self.schema.keys().filter_map(|(name, _)| {
            let (table, rest) = name.split_once('.')?;
            Some((table, rest.starts_with("*.")))
        });
        for one in of_keys.chain(self.schema.solves.map(|solves| (solves.table, false))) {
            if !all.contains(&one) {
                all.push(one);
            }
        }
        all
    }
    /// Returns the headers of the tables as typed: `[gauge]`, `[[fermion]]`.
    pub(super) fn bracketed(&self) -> Vec<String> {
        let one = |(name, several): (&str, bool)| if several { format!("[[{name}]]") } else { format!("[{name}]") };
        self.table_names().into_iter().map(one).collect()
    }
    /// Returns the table that the user probably meant by an unknown name.
    pub(super) fn meant_table(&self, typed: &str) -> Option<(&'static str, bool)> {
        let tables = self.table_names();
        let names: Vec<&str> = tables.iter().map(|(name, _)| *name).collect();
        let meant = synonyms::of_table(typed, &names).map(String::from);
        let meant = meant.or_else(|| closest(&typed.to_lowercase().replace('_', "-"), &names)?.name)?;
        tables.into_iter().find(|(name, _)| *name == meant)
    }
}
