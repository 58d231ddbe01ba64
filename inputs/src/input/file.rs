//! Reading of input files in TOML.
use super::{Input, Mistakes, Origin, index, pattern};
use crate::advice::{advice, expected};
use crate::files::not_an_input;
use crate::kind::InputKind;
use crate::sources::{InputText, decimal, number, text_of, whole_numbers};
use crate::stored::Stored;
use crate::synonyms::Meant;
use crate::syntax;
use crate::values::{Kind, Raw};
use std::path::Path;
use std::rc::Rc;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

/// Largest number of keys in a table, and of numbers in a list. [`MOST_TEXTS`] is the largest number of texts in a list, which may be
/// files. Both exceed the needs of any input by far, and are small enough that every mistake can be reported at once.
pub(super) const MOST_NUMBERS: usize = 1000;
const MOST_TEXTS: usize = 100_000;

/// Returns whether a value is a table or an array of tables.
fn is_table(value: &DeValue) -> bool {
    let is_one = |value: &DeValue| matches!(value, DeValue::Table(_));
    match value {
        DeValue::Array(list) => !list.is_empty() && list.iter().all(|value| is_one(value.get_ref())),
        one => is_one(one),
    }
}

/// Returns the message on a table in an input that has none.
fn flat(name: &str) -> String {
    format!("the input of `ferrite solve` has no tables: remove the line [{name}], and write its keys without a table")
}

impl Input {
    /// Reads an input file. Mistakes in the file are collected, and [`Input::finish`] reports them.
    ///
    /// # Errors
    /// Returns an error if the file cannot be read, or is the input of another command.
    pub fn file(&mut self, path: &Path) -> Result<(), Mistakes> {
        self.from_file = true;
        let (shown, own) = (path.display(), self.kind());
        match (not_an_input(path), own) {
            (Some(_), _) if path.is_dir() => {
                return Err(Mistakes(format!("{shown} is a folder: name a file in it")));
            }
            (Some(what), Some(own)) => {
                let (usage, example) = (own.usage(), own.example());
                return Err(Mistakes(format!(
                    "{shown} is {what}, not an input of `{usage}`; an input is a text file in TOML, and `{example}` prints one"
                )));
            }
            _ => {}
        }
        let text = text_of(path)?;
        if let (Some(own), Some(other)) = (own, InputKind::of_text(&text))
            && own != other
        {
            let (folder, other, own) = (other.folder(), other.usage(), own.usage());
            return Err(Mistakes(format!(
                "{shown} is an input of `{other}`, not of `{own}`: run `{other} {shown}{folder}`, or name another file"
            )));
        }
        let name: Rc<str> = path.display().to_string().into();
        let source = InputText::new(&text, Rc::clone(&name));
        let (table, errors) = DeTable::parse_recoverable(&text);
        for error in errors {
            let at = source.position(error.span().map_or(0, |span| span.start));
            // Further mistakes on the same line are left out, because they follow from the first one.
            if self.unreadable.insert(at.0) {
                let why = syntax::explained(error.message(), source.line(at.0), at.1);
                self.syntax.push((at, format!("{name}:{}:{}: {why}", at.0, at.1)));
            }
        }
        if let (false, Some(own)) = (self.syntax.is_empty() || path.extension().is_some_and(|end| end == "toml"), own) {
            self.doubt = Some(format!("an input is a text file in TOML; `{}` prints one", own.example()));
        }
        self.table(&source, "", 0, table.get_ref());
        Ok(())
    }

    /// Reads the entries of a table whose keys begin with `prefix`.
    fn table(&mut self, source: &InputText, prefix: &str, at: usize, table: &DeTable) {
        if table.len() > MOST_NUMBERS {
            let what = prefix.strip_suffix('.').unwrap_or("the input");
            return self.too_many(source, what, at, [table.len(), MOST_NUMBERS], "keys");
        }
        for (key, value) in table.iter() {
            self.entry(source, &format!("{prefix}{}", key.get_ref()), key.span().start, value);
        }
    }

    /// Records that a table or list exceeds the largest length.
    fn too_many(&mut self, source: &InputText, key: &str, at: usize, [there, most]: [usize; 2], of: &str) {
        let at = source.position(at);
        let message =
            format!("{}:{}:{}: {key} has {there} {of}, but at most {most} are allowed", source.name, at.0, at.1);
        self.mistake(Some(at), message);
    }

    fn entry(&mut self, source: &InputText, key: &str, at: usize, value: &Spanned<DeValue>) {
        let (name, key_at) = (&source.name, source.position(at));
        let Some(kind) = self.known(key) else {
            let begins = |start: &str| {
                let table = self.schema.solves.is_some_and(|solves| start.strip_suffix('.') == Some(solves.table));
                table || self.schema.keys().any(|(known, _)| known.starts_with(start))
            };
            match value.get_ref() {
                // A table `[fermion]` counts as an array `[[fermion]]` of one table.
                DeValue::Table(table)
                    if begins(&format!("{}.*.", pattern(key)))
                        && !table.iter().any(|(key, _)| index(key.get_ref()).is_some()) =>
                {
                    self.lengths.insert(key.into(), 1);
                    return self.table(source, &format!("{key}.0."), at, table);
                }
                DeValue::Table(table) if begins(&format!("{}.", pattern(key))) => {
                    return self.table(source, &format!("{key}."), at, table);
                }
                DeValue::Array(list)
                    if begins(&format!("{}.*.", pattern(key)))
                        && list.iter().all(|value| matches!(value.get_ref(), DeValue::Table(_))) =>
                {
                    if list.len() > MOST_NUMBERS {
                        self.refused.insert(key.into());
                        return self.too_many(source, key, at, [list.len(), MOST_NUMBERS], "tables");
                    }
                    self.lengths.insert(key.into(), list.len());
                    for (number, value) in list.iter().enumerate() {
                        if let DeValue::Table(table) = value.get_ref() {
                            self.table(source, &format!("{key}.{number}."), value.span().start, table);
                        }
                    }
                    return;
                }
                _ => {}
            }
            return self.unknown(source, key, at, value);
        };
        if is_table(value.get_ref()) {
            let place = format!("{name}:{}:{}", key_at.0, key_at.1);
            let own = key.rsplit('.').next().unwrap_or(key);
            self.refused.insert(key.into());
            let message = if self.kind() == Some(InputKind::Solve) {
                flat(own)
            } else {
                format!("'{own}' is a key, not a table: write {own} = and its value on one line")
            };
            return self.mistake(Some(key_at), format!("{place}: {message}"));
        }
        let key: Rc<str> = key.into();
        if let DeValue::Array(list) = value.get_ref() {
            let (most, of) = if kind == Kind::Texts { (MOST_TEXTS, "texts") } else { (MOST_NUMBERS, "values") };
            if list.len() > most {
                self.refused.insert(key.clone());
                return self.too_many(source, &key, value.span().start, [list.len(), most], of);
            }
        }
        match self.value_of(source, &key, kind, value) {
            Some(value) => {
                self.values.insert(key, value);
            }
            None => {
                self.refused.insert(key.clone());
                let (line, column) = source.position(value.span().start);
                let (found, expected) = (value.get_ref().type_str(), expected(kind));
                let advice = advice(kind, value.get_ref());
                let message = format!(
                    "{name}:{line}:{column}: {key}: expected {expected}, found a value of type {found}{advice}"
                );
                self.mistake(Some((line, column)), message);
            }
        }
    }

    /// Records an unknown key or table. If the name that is meant is certain, also reads its contents under that name, so that it is not
    /// reported as missing.
    fn unknown(&mut self, source: &InputText, key: &str, at: usize, value: &Spanned<DeValue>) {
        let is_table = is_table(value.get_ref());
        let (line, column) = source.position(at);
        let place = format!("{}:{line}:{column}", source.name);
        if is_table && !key.contains('.') {
            match self.meant_table(key) {
                // The file has an array of tables where only one table is allowed.
                Some((table, _)) if table == key => {
                    let message =
                        format!("{place}: only one table {key} is allowed: write [{key}] instead of [[{key}]]");
                    self.mistake(Some((line, column)), message);
                    if let DeValue::Array(list) = value.get_ref()
                        && let [only] = list.iter().as_slice()
                    {
                        self.entry(source, key, at, only);
                    }
                    return;
                }
                Some((table, _)) => return self.unknown_table(source, key, at, value, table),
                None => {}
            }
            let tables = self.bracketed();
            // A certain name is that of a key in some table, whose note does not apply to a table.
            let note = self.meant(key).filter(|meant| !meant.sure).and_then(|meant| meant.note);
            let message = match (tables.as_slice(), note) {
                ([], _) if self.kind().is_some() => flat(key),
                ([], _) => format!("unknown table [{key}]"),
                (_, Some(note)) => format!("unknown table [{key}]; {note}"),
                (all, None) => format!("unknown table [{key}]; the tables are {}", all.join(", ")),
            };
            return self.mistake(Some((line, column)), format!("{place}: {message}"));
        }
        self.mistake(Some((line, column)), format!("{place}: unknown key '{key}'{}", self.suggestion(key)));
        // A key whose meaning is certain is not also reported as missing.
        if let Some(Meant { name: Some(meant), sure, .. }) = self.meant(key).filter(|_| !is_table) {
            let meant = match self.in_table(key).or_else(|| self.in_array(key).map(|(_, own)| own)) {
                Some(own) if !self.is_own(&meant) => format!("{}{meant}", key.strip_suffix(own).unwrap_or_default()),
                _ => meant,
            };
            // A key outside its table does not create a missing table of an array.
            let is_there = |table: &str, number: usize| number < self.tables(table);
            let parts: Vec<&str> = meant.split('.').collect();
            if let [table, number, _] = parts[..]
                && !index(number).is_some_and(|number| is_there(table, number))
            {
                return;
            }
            let meant: Rc<str> = meant.into();
            let kind = self.known(&meant).filter(|_| sure);
            match kind.and_then(|kind| self.value_of(source, &meant, kind, value)) {
                _ if self.was_given(&meant) => {}
                Some(value) => drop(self.values.insert(meant, value)),
                None => drop(self.refused.insert(meant)),
            }
        }
    }
    /// Records a table with an unknown name, and reads it as the table that is meant.
    fn unknown_table(&mut self, source: &InputText, key: &str, at: usize, value: &Spanned<DeValue>, table: &str) {
        let (line, column) = source.position(at);
        let several = self.table_names().iter().any(|(name, several)| *name == table && *several);
        let brackets = |name: &str, twice: bool| if twice { format!("[[{name}]]") } else { format!("[{name}]") };
        let typed = brackets(key, matches!(value.get_ref(), DeValue::Array(_)));
        let meant = brackets(table, several);
        let message = format!("{}:{line}:{column}: unknown table {typed}; did you mean {meant}?", source.name);
        self.mistake(Some((line, column)), message);
        self.entry(source, table, at, value);
    }
    /// Returns the value of a key with its place; elements of lists of texts and sites have places of their own. Returns `None` if the
    /// value has another type.
    fn value_of(&mut self, source: &InputText, key: &Rc<str>, kind: Kind, value: &Spanned<DeValue>) -> Option<Stored> {
        let origin = |value: &Spanned<DeValue>| {
            let (line, column) = source.position(value.span().start);
            Origin::File { path: source.name.clone(), line, column }
        };
        if !matches!(kind, Kind::Texts | Kind::Sites) {
            let (raw, text) = typed(kind, value.get_ref())?;
            return Some(Stored::One(self.placed(key, raw, text, origin(value))));
        }
        let all: Vec<&Spanned<DeValue>> = match value.get_ref() {
            DeValue::Array(list) => list.iter().collect(),
            _ => vec![value],
        };
        let typed: Option<Vec<_>> = all.iter().map(|one| Some((*one, typed(kind, one.get_ref())?))).collect();
        let all = typed?.into_iter().map(|(one, (raw, text))| self.placed(key, raw, text, origin(one))).collect();
        Some(self.list(key, all, &origin(value)))
    }
}

/// Returns a value, or an element of a list, as its kind requires, with its text as typed; `None` if it has another type.
fn typed(kind: Kind, value: &DeValue) -> Option<(Raw, String)> {
    let as_text = |text: String| Some((Raw::Text(text.clone()), text));
    match (kind, value) {
        (Kind::Number | Kind::Count | Kind::Switch, DeValue::String(_)) => None,
        (_, DeValue::String(s)) => as_text(s.to_string()),
        (Kind::Word, value) => as_text(number(value)?),
        (Kind::Extents | Kind::Sites, site @ DeValue::Array(_)) => as_text(whole_numbers(site)?),
        (Kind::Numbers | Kind::Fractions, DeValue::Array(list)) => {
            let one = |value: &Spanned<DeValue>| match value.get_ref() {
                DeValue::String(_) if kind == Kind::Numbers => None,
                value => typed(kind, value),
            };
            let (all, texts): (Vec<_>, Vec<_>) = list.iter().map(one).collect::<Option<Vec<_>>>()?.into_iter().unzip();
            Some((Raw::List(all), texts.join(",")))
        }
        (Kind::Count | Kind::Number | Kind::Numbers | Kind::Fractions, DeValue::Integer(i)) => {
            let text = decimal(i);
            // A number that does not fit in an integer stays as typed.
            Some((text.replace('_', "").parse().map_or_else(|_| Raw::Text(text.clone()), Raw::Whole), text))
        }
        (Kind::Number | Kind::Numbers | Kind::Fractions, DeValue::Float(f)) => {
            let text = f.as_str();
            Some((text.replace('_', "").parse().map_or_else(|_| Raw::Text(text.into()), Raw::Real), text.into()))
        }
        (Kind::Switch, DeValue::Boolean(on)) => Some((Raw::Switch(*on), on.to_string())),
        _ => None,
    }
}
