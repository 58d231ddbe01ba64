//! Settings as typed: flags, `--set KEY=VALUE`, and input files in TOML, all with the same keys. Keys of tables have a dot,
//! `trajectory.length`, and those of arrays of tables the number of the table, from 0: `fermion.0.mass`.
//!
//! Values stay text with their origin until a command asks for them by type. Whatever is wrong is collected, so that
//! all mistakes of an input are listed at once, each with its line and column.
use crate::cli::failure::ReadBy;
use crate::cli::keys::SOLVE;
use crate::cli::{Failure, Outcome};
pub use ferrite::operators::KeyKind as Kind;
use ferrite::operators::{Keys, LARGEST};
use std::cell::Cell;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::{self, Display};
use std::io::Read as _;
use std::ops::RangeInclusive;
use std::path::Path;
use std::rc::Rc;
use toml::Spanned;
use toml::de::{DeInteger, DeTable, DeValue};

/// Keys of an input; `*` stands for the number of a table.
pub type Schema = &'static [(&'static str, Kind)];

/// Keys of global flags, which every input may have.
pub const GLOBAL: Schema = &[
    ("backend", Kind::Word),
    ("device", Kind::Count),
    ("threads", Kind::Count),
    ("tuning", Kind::Word),
    ("grid", Kind::Extents),
    ("transport", Kind::Word),
    ("no-overlap", Kind::Switch),
    ("share-gpus", Kind::Switch),
    ("memory", Kind::Word),
];

/// The texts and decimal numbers of an array in TOML; none of anything else.
fn array(text: &str) -> Option<Vec<String>> {
    if !text.trim_start().starts_with('[') {
        return None;
    }
    let line = format!("list = {text}");
    let table = DeTable::parse(&line).ok()?;
    let DeValue::Array(list) = table.get_ref().get("list")?.get_ref() else { return None };
    let text_of = |value: &Spanned<DeValue>| match value.get_ref() {
        DeValue::String(s) => Some(s.to_string()),
        value => number(value),
    };
    list.iter().map(text_of).collect()
}

/// The sites of an array of arrays, each with commas; none of anything else.
fn sites(text: &str) -> Option<Vec<String>> {
    let line = format!("list = {}", text.trim());
    let table = DeTable::parse(&line).ok()?;
    let DeValue::Array(list) = table.get_ref().get("list")?.get_ref() else { return None };
    list.iter().map(|value| whole_numbers(value.get_ref())).collect()
}

/// An array of whole numbers with commas.
fn whole_numbers(value: &DeValue) -> Option<String> {
    let DeValue::Array(list) = value else { return None };
    let one = |value: &Spanned<DeValue>| match value.get_ref() {
        DeValue::Integer(i) => Some(decimal(i)),
        _ => None,
    };
    Some(list.iter().map(one).collect::<Option<Vec<String>>>()?.join(","))
}

/// A number as typed, a whole one in decimal digits.
fn number(value: &DeValue) -> Option<String> {
    match value {
        DeValue::Integer(i) => Some(decimal(i)),
        DeValue::Float(f) => Some(f.as_str().into()),
        _ => None,
    }
}

/// A whole number in decimal digits, also where it is typed in hexadecimal, octal or binary ones. One that is longer than any key
/// takes stays as it is.
fn decimal(integer: &DeInteger) -> String {
    match (integer.radix(), u128::from_str_radix(integer.as_str(), integer.radix())) {
        (10, _) => integer.as_str().into(),
        (_, Ok(n)) => n.to_string(),
        (_, Err(_)) => integer.to_string(),
    }
}

/// The decimal digits of a whole number with the prefix of another base, such as 0x1f; none of any other text.
fn from_other_base(text: &str) -> Option<String> {
    let line = format!("number = {}", text.trim());
    let table = DeTable::parse(&line).ok()?;
    match table.get_ref().get("number")?.get_ref() {
        DeValue::Integer(i) if i.radix() != 10 => Some(decimal(i)),
        _ => None,
    }
}

/// Where a value was typed.
#[derive(Clone, Debug)]
enum Origin {
    Flag,
    Set,
    File {
        path: Rc<str>,
        line: usize,
        column: usize,
    },
    /// What the program itself put there, and what users call it.
    Own(&'static str),
}

/// A value as typed.
#[derive(Clone, Debug)]
pub struct Setting {
    key: Rc<str>,
    /// The table that the key is in, where it is not known here.
    table: Option<&'static str>,
    text: String,
    origin: Origin,
}

impl Setting {
    /// Where it was typed, without its name.
    fn place(&self) -> String {
        match &self.origin {
            Origin::Flag => "flag".into(),
            Origin::Set => "--set".into(),
            Origin::File { path, line, column } => format!("{path}:{line}:{column}"),
            Origin::Own(name) => (*name).into(),
        }
    }
    /// The value.
    pub fn text(&self) -> &str {
        &self.text
    }
}

/// The place, as messages start with it: `run.toml:3:8: mass`, `--mass`, `--set mass`.
impl Display for Setting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let table = self.table.map_or(String::new(), |table| format!("{table}."));
        match &self.origin {
            Origin::Flag => write!(f, "--{table}{}", self.key),
            Origin::Set => write!(f, "--set {table}{}", self.key),
            Origin::File { path, line, column } => write!(f, "{path}:{line}:{column}: {table}{}", self.key),
            Origin::Own(name) => write!(f, "{name}"),
        }
    }
}

/// Values by key, and what is wrong with them.
#[derive(Clone, Debug)]
pub struct Settings {
    schema: Schema,
    /// Name of a table that has the keys of solves.
    table: Option<&'static str>,
    /// Name of an array of tables that have keys of solves besides their own.
    array: Option<&'static str>,
    /// Name of the table of an input that these are, where they are not all of it.
    inside: Option<&'static str>,
    /// Whether an input file was read, so that advice is about its keys.
    from_file: bool,
    values: BTreeMap<Rc<str>, Vec<Setting>>,
    /// How many tables arrays of tables have in files.
    lengths: BTreeMap<String, usize>,
    /// Keys whose values are of another type.
    refused: BTreeSet<Rc<str>>,
    mistakes: Vec<((usize, usize), String)>,
}

impl Default for Settings {
    /// Those of solves.
    fn default() -> Self {
        Self::of(&SOLVE)
    }
}

/// Whether an input is that of a spectrum: it has a table for the solve.
pub fn is_of_spectrum(path: &Path) -> bool {
    let Ok(text) = text_of(path) else { return false };
    let (table, _) = DeTable::parse_recoverable(&text);
    table.get_ref().iter().any(|(key, value)| key.get_ref() == "solve" && matches!(value.get_ref(), DeValue::Table(_)))
}

/// Whether an input is that of an ensemble: by its tables, right or wrong.
pub fn is_of_ensemble(path: &Path) -> bool {
    let Ok(text) = text_of(path) else { return false };
    let (table, _) = DeTable::parse_recoverable(&text);
    table.get_ref().iter().any(|(key, value)| {
        let own = matches!(key.get_ref().as_ref(), "trajectories" | "trajectory" | "fermion");
        own || (key.get_ref() == "gauge" && matches!(value.get_ref(), DeValue::Table(_)))
    })
}

/// A key with `*` for the numbers of tables.
fn pattern(key: &str) -> String {
    let part = |part: &str| if index(part).is_some() { "*".to_string() } else { part.to_string() };
    key.split('.').map(part).collect::<Vec<_>>().join(".")
}

/// The number of a table in an array of tables; nobody has a thousand.
fn index(part: &str) -> Option<usize> {
    let written =
        part.len() <= 3 && part.bytes().all(|b| b.is_ascii_digit()) && (part == "0" || !part.starts_with('0'));
    part.parse().ok().filter(|_| written)
}

/// What an input may have at most: bytes, keys of a table or numbers of a list, and texts of a list, which may be files. All
/// are far more than any input needs, and so few that whatever is wrong with them is told at once.
const MOST_BYTES: u64 = 16 << 20;
const MOST_NUMBERS: usize = 1000;
const MOST_TEXTS: usize = 100_000;

/// What a relative residual has to be: double precision cannot reach less.
pub const RESIDUAL: &str = "a number above 0 and below 1, of at least 1e-16";
/// Whether a number is one.
pub fn is_residual(x: f64) -> bool {
    (1e-16..1.0).contains(&x)
}

/// A number as typed, for which `fits` holds.
fn number_of(text: &str, expected: &str, fits: impl FnOnce(f64) -> bool) -> Result<f64, String> {
    let text = text.trim();
    match text.replace('_', "").parse::<f64>() {
        Ok(x) if x.is_finite() && x.abs() > LARGEST => {
            Err(format!("'{text}' is beyond reason: give a number of at most {LARGEST:e} in size"))
        }
        Ok(x) if x.is_finite() && fits(x) => Ok(x),
        _ => Err(format!("'{text}' is not {expected}")),
    }
}

/// So many mistakes are listed.
const MOST_MISTAKES: usize = 50;

/// The text of an input file, or why it cannot be one.
fn text_of(path: &Path) -> Outcome<String> {
    let refused = |what: String| Failure::refused(format!("{}: {what}", path.display()));
    let cannot = |why: std::io::Error| refused(format!("cannot be read: {why}"));
    let mut bytes = Vec::new();
    let file = std::fs::File::open(path).map_err(cannot)?;
    file.take(MOST_BYTES + 1).read_to_end(&mut bytes).map_err(cannot)?;
    if bytes.len() as u64 > MOST_BYTES {
        let most = crate::cli::text::bytes(MOST_BYTES as usize);
        return Err(refused(format!("is longer than {most}, as no input is: is it a file of data?")));
    }
    String::from_utf8(bytes).map_err(|e| {
        let byte = e.utf8_error().valid_up_to();
        refused(format!("is not a text: byte {byte} is not UTF-8; input files are TOML"))
    })
}

/// An input file, and where its lines are.
struct Source<'t> {
    text: &'t str,
    name: Rc<str>,
    /// Where lines begin.
    lines: Vec<usize>,
    /// A byte that was looked up, and its column: values of a list follow each other, perhaps on one long line.
    last: Cell<(usize, usize)>,
}

impl<'t> Source<'t> {
    fn new(text: &'t str, name: Rc<str>) -> Self {
        let ends = text.bytes().enumerate().filter(|(_, byte)| *byte == b'\n').map(|(at, _)| at + 1);
        Source { text, name, lines: std::iter::once(0).chain(ends).collect(), last: Cell::new((0, 1)) }
    }
    /// Line and column of a byte, from 1; columns count characters.
    fn position(&self, byte: usize) -> (usize, usize) {
        let byte = self.text.floor_char_boundary(byte);
        let line = self.lines.partition_point(|begin| *begin <= byte);
        let begin = self.lines[line - 1];
        let (from, column) = match self.last.get() {
            (last, column) if (begin..=byte).contains(&last) => (last, column),
            _ => (begin, 1),
        };
        let column = column + self.text[from..byte].chars().count();
        self.last.set((byte, column));
        (line, column)
    }
}

impl Settings {
    /// With these keys, and those of global flags.
    pub fn of(schema: Schema) -> Self {
        Settings {
            schema,
            table: None,
            array: None,
            inside: None,
            from_file: false,
            values: BTreeMap::new(),
            lengths: BTreeMap::new(),
            refused: BTreeSet::new(),
            mistakes: Vec::new(),
        }
    }
    /// And with a table of this name for the keys of solves, and an array of tables in which they differ.
    pub fn with_solves(schema: Schema, table: &'static str, array: &'static str) -> Self {
        Settings { table: Some(table), array: Some(array), ..Self::of(schema) }
    }
    /// What the table for a solve has, as settings of a solve.
    pub fn solve(&self) -> Self {
        let mut solve = Self { inside: self.table, from_file: self.from_file, ..Self::default() };
        for (key, settings) in &self.values {
            if let Some(own) = self.in_table(key) {
                let own: Rc<str> = own.into();
                let inside = |setting: &Setting| Setting { key: own.clone(), table: self.table, ..setting.clone() };
                let settings = settings.iter().map(inside).collect();
                solve.values.insert(own, settings);
            }
        }
        solve
    }
    /// The same with what a table of the array for solves has in place of it.
    pub fn solve_of(&self, number: usize) -> Self {
        let mut solve = self.solve();
        for (key, settings) in &self.values {
            let own = self.in_array(key).filter(|(of, own)| *of == number && !self.is_own(key) && !own.contains('.'));
            if let Some((_, own)) = own {
                solve.values.insert(own.into(), settings.clone());
            }
        }
        solve
    }
    /// By what users give these keys: flags, keys of an input, or keys of a table of it.
    pub fn given_by(&self) -> ReadBy {
        let of_input = if self.from_file { ReadBy::Keys } else { ReadBy::Flags };
        self.inside.map_or(of_input, ReadBy::Table)
    }
    /// Returns how users give a key a value, for advice: see [`ReadBy::spelled`].
    pub fn spelled(&self, key: &str, value: &str) -> String {
        self.given_by().spelled(key, value)
    }
    /// The key within the table for solves, of one that is in there.
    fn in_table<'k>(&self, key: &'k str) -> Option<&'k str> {
        key.strip_prefix(self.table?)?.strip_prefix('.')
    }
    /// The number of the table and the key within it, of one that is in the array for solves.
    fn in_array<'k>(&self, key: &'k str) -> Option<(usize, &'k str)> {
        let (number, own) = key.strip_prefix(self.array?)?.strip_prefix('.')?.split_once('.')?;
        Some((index(number)?, own))
    }
    /// Whether a key is one of the schema.
    fn is_own(&self, key: &str) -> bool {
        let pattern = pattern(key);
        self.keys().any(|(name, _)| *name == pattern)
    }
    fn keys(&self) -> impl Iterator<Item = &'static (&'static str, Kind)> + use<> {
        self.schema.iter().chain(GLOBAL)
    }
    fn known(&self, key: &str) -> Option<Kind> {
        if let Some(own) = self.in_table(key) {
            return SOLVE.iter().find(|(name, _)| *name == own).map(|(_, kind)| *kind);
        }
        let pattern = pattern(key);
        let own = self.keys().find(|(name, _)| *name == pattern);
        let of_solve = || SOLVE.iter().find(|(name, _)| self.in_array(key).is_some_and(|(_, own)| own == *name));
        own.or_else(of_solve).map(|(_, kind)| *kind)
    }
    /// `; did you mean 'gauge'?`, if a key is close.
    fn suggestion(&self, key: &str) -> String {
        let of_array = || self.in_array(key).map(|(_, own)| own);
        let (own, keys): (&str, Vec<_>) = match self.in_table(key).or_else(of_array) {
            Some(own) => (own, SOLVE.iter().collect()),
            None => (key, self.keys().collect()),
        };
        let key = pattern(own).replace('_', "-");
        let close = |name: &str| strsim::jaro_winkler(&key, name);
        let names = || keys.iter().map(|(name, _)| *name);
        // Of an array of tables, the first table's.
        let first = |name: &str| name.replace('*', "0");
        match names().max_by(|a, b| close(a).total_cmp(&close(b))) {
            Some(name) if close(name) > 0.75 => format!("; did you mean '{}'?", first(name)),
            _ => format!("; the keys are {}", names().map(first).collect::<Vec<_>>().join(", ")),
        }
    }
    /// How many tables an array of tables has.
    pub fn tables(&self, name: &str) -> usize {
        let number = |key: &Rc<str>| index(key.strip_prefix(name)?.strip_prefix('.')?.split('.').next()?);
        let by_keys = self.values.keys().filter_map(number).map(|n| n + 1).max();
        // A table without keys is one, too.
        by_keys.max(self.lengths.get(name).copied()).unwrap_or(0)
    }
    /// Notes a value given as a flag. It replaces what files say.
    pub fn flag(&mut self, key: &'static str, value: Option<&str>) {
        self.flags(key, value.as_slice());
    }
    /// Notes the values of a flag that may be repeated.
    pub fn flags(&mut self, key: &'static str, values: &[impl AsRef<str>]) {
        let setting = |text: &str| Setting { key: key.into(), table: None, text: text.into(), origin: Origin::Flag };
        if !values.is_empty() {
            self.values.insert(key.into(), values.iter().map(|text| setting(text.as_ref())).collect());
        }
    }
    /// Puts values that are not typed as such under a key; mistakes in them are reported under the name that users know.
    pub fn put(&mut self, key: &'static str, values: &[String], name: &'static str) {
        let setting =
            |text: &String| Setting { key: key.into(), table: None, text: text.clone(), origin: Origin::Own(name) };
        self.values.insert(key.into(), values.iter().map(setting).collect());
    }
    /// Notes a flag without a value.
    pub fn switch(&mut self, key: &'static str, given: bool) {
        self.flag(key, given.then_some("true"));
    }

    /// Notes `KEY=VALUE` of `--set`. Values of one key that may have several add up. Lists are typed with commas alone,
    /// or as in a file.
    pub fn set(&mut self, assignments: &[String]) {
        let mut fresh: BTreeMap<Rc<str>, Vec<Setting>> = BTreeMap::new();
        for assignment in assignments {
            let Some((key, value)) = assignment.split_once('=') else {
                self.mistake(None, format!("--set {assignment}: expected KEY=VALUE, for example --set tol=1e-8"));
                continue;
            };
            let key: Rc<str> = key.trim().into();
            let Some(kind) = self.known(&key) else {
                let message = format!("--set {assignment}: unknown key '{key}'{}", self.suggestion(&key));
                self.mistake(None, message);
                continue;
            };
            let list = match kind {
                Kind::Texts | Kind::Extents => array(value),
                Kind::Numbers | Kind::Fractions => {
                    array(value).or_else(|| from_other_base(value).map(|number| vec![number]))
                }
                Kind::Sites => sites(value).or_else(|| {
                    let list = array(value)?;
                    Some(if list.iter().any(|site| site.contains(',')) { list } else { vec![list.join(",")] })
                }),
                Kind::Count | Kind::Number => from_other_base(value).map(|number| vec![number]),
                _ => None,
            };
            let adds_up = matches!(kind, Kind::Texts | Kind::Sites);
            let texts = match list {
                Some(texts) if adds_up => texts,
                Some(texts) => vec![texts.join(",")],
                None => vec![value.trim().trim_matches('"').into()],
            };
            let setting = |text| Setting { key: key.clone(), table: None, text, origin: Origin::Set };
            let list = fresh.entry(key.clone()).or_default();
            if !adds_up {
                list.clear();
            }
            list.extend(texts.into_iter().map(setting));
        }
        self.values.extend(fresh);
    }

    /// Reads an input file. Only a file that cannot be read at all is an error here; mistakes in it are collected.
    pub fn file(&mut self, path: &Path) -> Outcome {
        self.from_file = true;
        let text = text_of(path)?;
        let name: Rc<str> = path.display().to_string().into();
        let source = Source::new(&text, Rc::clone(&name));
        let (table, errors) = DeTable::parse_recoverable(&text);
        for error in errors {
            let at = source.position(error.span().map_or(0, |span| span.start));
            self.mistake(Some(at), format!("{name}:{}:{}: {}", at.0, at.1, error.message()));
        }
        self.table(&source, "", 0, table.get_ref());
        Ok(())
    }

    /// Everything that was typed, with its place: `mass = 0.05 (run.toml:2:8)`.
    pub fn given(&self) -> Vec<String> {
        let line = |(key, settings): (&Rc<str>, &Vec<Setting>)| {
            let texts: Vec<_> = settings.iter().map(|setting| setting.text.as_str()).collect();
            let value = if texts.len() == 1 { texts[0].into() } else { format!("{texts:?}") };
            let table = self.inside.map_or(String::new(), |table| format!("{table}."));
            let place = settings.first().map_or(String::new(), |setting| format!(" ({})", setting.place()));
            format!("{table}{key} = {value}{place}")
        };
        self.values.iter().map(line).collect()
    }

    /// The entries of a table whose keys begin with `prefix`.
    fn table(&mut self, source: &Source, prefix: &str, at: usize, table: &DeTable) {
        if table.len() > MOST_NUMBERS {
            let what = prefix.strip_suffix('.').unwrap_or("the input");
            return self.too_many(source, what, at, [table.len(), MOST_NUMBERS], "keys");
        }
        for (key, value) in table.iter() {
            self.entry(source, &format!("{prefix}{}", key.get_ref()), key.span().start, value);
        }
    }

    /// Notes that a table or list is longer than any.
    fn too_many(&mut self, source: &Source, key: &str, at: usize, [there, most]: [usize; 2], of: &str) {
        let at = source.position(at);
        let message = format!("{}:{}:{}: {key} has {there} {of}, and may have {most}", source.name, at.0, at.1);
        self.mistake(Some(at), message);
    }

    fn entry(&mut self, source: &Source, key: &str, at: usize, value: &Spanned<DeValue>) {
        let (name, key_at) = (&source.name, source.position(at));
        let Some(kind) = self.known(key) else {
            let begins = |start: &str| {
                let table = self.table.is_some_and(|table| start.strip_suffix('.') == Some(table));
                table || self.schema.iter().any(|(known, _)| known.starts_with(start))
            };
            match value.get_ref() {
                // `[fermion]` is a list of one, too.
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
            let message = format!("{name}:{}:{}: unknown key '{key}'{}", key_at.0, key_at.1, self.suggestion(key));
            return self.mistake(Some(key_at), message);
        };
        let key: Rc<str> = key.into();
        if let DeValue::Array(list) = value.get_ref() {
            let (most, of) = if kind == Kind::Texts { (MOST_TEXTS, "texts") } else { (MOST_NUMBERS, "values") };
            if list.len() > most {
                self.refused.insert(key.clone());
                return self.too_many(source, &key, value.span().start, [list.len(), most], of);
            }
        }
        let setting = |value: &Spanned<DeValue>, text_of: String| {
            let (line, column) = source.position(value.span().start);
            let origin = Origin::File { path: name.clone(), line, column };
            Setting { key: key.clone(), table: None, text: text_of, origin }
        };
        let scalar = |value: &Spanned<DeValue>| match (kind, value.get_ref()) {
            (Kind::Text | Kind::Texts | Kind::Word | Kind::Extents | Kind::Sites, DeValue::String(s)) => {
                Some(s.to_string())
            }
            (Kind::Sites, site) => whole_numbers(site),
            (Kind::Numbers | Kind::Fractions, DeValue::String(s)) => Some(s.to_string()),
            (Kind::Word | Kind::Count, DeValue::Integer(i)) => Some(decimal(i)),
            (Kind::Number | Kind::Numbers | Kind::Fractions, value) => number(value),
            (Kind::Word, DeValue::Float(f)) => Some(f.as_str().into()),
            (Kind::Switch, DeValue::Boolean(b)) => Some(b.to_string()),
            _ => None,
        };
        let values = match (kind, value.get_ref()) {
            (Kind::Texts | Kind::Sites, DeValue::Array(list)) => {
                list.iter().map(|v| scalar(v).map(|text| setting(v, text))).collect::<Option<Vec<_>>>()
            }
            (Kind::Extents, numbers @ DeValue::Array(_)) => {
                whole_numbers(numbers).map(|numbers| vec![setting(value, numbers)])
            }
            (Kind::Numbers | Kind::Fractions, DeValue::Array(list)) => {
                let one = |value: &Spanned<DeValue>| match value.get_ref() {
                    DeValue::String(s) if kind == Kind::Fractions => Some(s.to_string()),
                    value => number(value),
                };
                let numbers: Option<Vec<String>> = list.iter().map(one).collect();
                numbers.map(|numbers| vec![setting(value, numbers.join(","))])
            }
            _ => scalar(value).map(|text| vec![setting(value, text)]),
        };
        match values {
            Some(values) => {
                self.values.insert(key, values);
            }
            None => {
                self.refused.insert(key.clone());
                let expected = match kind {
                    Kind::Text | Kind::Word => "a string",
                    Kind::Texts => "a string or an array of strings",
                    Kind::Number => "a number",
                    Kind::Count => "a whole number",
                    Kind::Switch => "true or false",
                    Kind::Extents => "four whole numbers, [X, Y, Z, T]",
                    Kind::Sites => "sites, [[X, Y, Z, T], [X, Y, Z, T]]",
                    Kind::Numbers => "a number or an array of numbers",
                    Kind::Fractions => "a number, a fraction such as \"1/2\", or an array of these",
                };
                let (line, column) = source.position(value.span().start);
                let found = value.get_ref().type_str();
                let message =
                    format!("{name}:{line}:{column}: {key}: expected {expected}, found a value of type {found}");
                self.mistake(Some((line, column)), message);
            }
        }
    }

    /// Values as they were typed, those of a list joined with commas, of the keys for which `which` holds of the key with `*` for
    /// the number of a table.
    pub fn typed(&self, which: impl Fn(&str) -> bool) -> BTreeMap<String, String> {
        let line = |(key, settings): (&Rc<str>, &Vec<Setting>)| {
            let texts: Vec<&str> = settings.iter().map(|setting| setting.text.trim()).collect();
            which(&pattern(key)).then(|| (key.to_string(), texts.join(",")))
        };
        self.values.iter().filter_map(line).collect()
    }

    fn mistake(&mut self, at: Option<(usize, usize)>, message: String) {
        self.mistakes.push((at.unwrap_or_default(), message));
    }
    /// Notes that a value cannot be used.
    pub fn wrong(&mut self, setting: &Setting, why: impl Display) {
        let at = match setting.origin {
            Origin::File { line, column, .. } => Some((line, column)),
            _ => None,
        };
        self.mistake(at, format!("{setting}: {why}"));
    }
    /// Notes that something is missing.
    pub fn missing(&mut self, message: impl Display) {
        self.mistakes.push(((usize::MAX, 0), message.to_string()));
    }
    /// Notes that two keys do not go together.
    pub fn conflict(&mut self, key: &str, with: &str, why: &str) {
        match (self.get(key), self.get(with)) {
            (Some(first), Some(second)) => self.wrong(&first, format!("conflicts with {second}; {why}")),
            (Some(first), None) => self.wrong(&first, why),
            _ => self.missing(why),
        }
    }

    /// The value of a key.
    pub fn get(&self, key: &str) -> Option<Setting> {
        self.values.get(key)?.last().cloned()
    }
    /// Whether a key was given, be its value understood or not.
    pub fn was_given(&self, key: &str) -> bool {
        self.values.contains_key(key) || self.refused.contains(key)
    }
    /// Whether a key was given with a value of another type.
    pub fn was_refused(&self, key: &str) -> bool {
        self.refused.contains(key)
    }
    /// All values of a key.
    pub fn all(&self, key: &str) -> Vec<Setting> {
        self.values.get(key).cloned().unwrap_or_default()
    }
    /// The value of a key through a parser, whose error is noted.
    pub fn parsed<T, E: Display>(&mut self, key: &str, parse: impl FnOnce(&str) -> Result<T, E>) -> Option<T> {
        let setting = self.get(key)?;
        match parse(&setting.text) {
            Ok(value) => Some(value),
            Err(why) => {
                self.wrong(&setting, why);
                None
            }
        }
    }
    /// A number of at most [`LARGEST`] in size for which `fits` holds; `expected` says which do.
    pub fn number(&mut self, key: &str, expected: &str, fits: impl FnOnce(f64) -> bool) -> Option<f64> {
        self.parsed(key, |text| number_of(text, expected, fits))
    }
    /// One or several such numbers, joined with commas.
    pub fn numbers(&mut self, key: &str, expected: &str, fits: impl Fn(f64) -> bool) -> Option<Vec<f64>> {
        self.parsed(key, |text| {
            text.split(',').map(|text| number_of(text, expected, &fits)).collect::<Result<Vec<f64>, _>>()
        })
    }
    /// A whole number in a range.
    pub fn count(&mut self, key: &str, range: RangeInclusive<usize>) -> Option<usize> {
        self.parsed(key, |text| match text.replace('_', "").parse::<usize>() {
            Ok(n) if range.contains(&n) => Ok(n),
            _ => Err(format!("'{text}' is not a whole number from {} to {}", range.start(), range.end())),
        })
    }
    /// One of some words.
    pub fn choice<T: Copy>(&mut self, key: &str, choices: &[(&str, T)]) -> Option<T> {
        self.parsed(key, |text| match choices.iter().find(|(name, _)| *name == text) {
            Some((_, value)) => Ok(*value),
            None => {
                let names: Vec<_> = choices.iter().map(|(name, _)| *name).collect();
                let close = names.iter().find(|name| strsim::jaro_winkler(name, text) > 0.8);
                let hint = close.map(|name| format!("; did you mean '{name}'?")).unwrap_or_default();
                Err(format!("'{text}' is none of {}{hint}", names.join(", ")))
            }
        })
    }
    /// Whether a switch is on.
    pub fn is_on(&mut self, key: &str) -> bool {
        self.choice(key, &[("true", true), ("false", false)]).unwrap_or(false)
    }

    /// Fails with all that is wrong, in the order of the file.
    pub fn finish(&mut self, what: &str) -> Outcome {
        let mut mistakes = std::mem::take(&mut self.mistakes);
        mistakes.sort_by_key(|(at, _)| *at);
        // What was looked at twice is one mistake.
        let mut told = BTreeSet::new();
        let lines = mistakes.into_iter().map(|(_, message)| message);
        let lines: Vec<String> = lines.filter(|message| told.insert(message.clone())).collect();
        match lines.as_slice() {
            [] => Ok(()),
            [one] => Err(Failure::refused(one)),
            many => {
                let mut list = many.iter().take(MOST_MISTAKES).map(|line| format!("\n  {line}")).collect::<String>();
                if many.len() > MOST_MISTAKES {
                    list += &format!("\n  and {} more", many.len() - MOST_MISTAKES);
                }
                Err(Failure::refused(format!("{} in {what}:{list}", crate::cli::count(many.len(), "mistake"))))
            }
        }
    }
}

/// How operators find their parameters.
impl Keys for Settings {
    fn is_given(&self, key: &str) -> bool {
        self.get(key).is_some()
    }
    fn number(&mut self, key: &'static str, expected: &str, fits: &dyn Fn(f64) -> bool) -> Option<f64> {
        Settings::number(self, key, expected, fits)
    }
    fn word(&mut self, key: &'static str, words: &[&'static str]) -> Option<usize> {
        let choices: Vec<_> = words.iter().enumerate().map(|(place, word)| (*word, place)).collect();
        self.choice(key, &choices)
    }
    fn parse(&mut self, key: &'static str, parse: &mut dyn FnMut(&str) -> Result<(), String>) {
        self.parsed(key, parse);
    }
    fn is_on(&mut self, key: &'static str) -> bool {
        Settings::is_on(self, key)
    }
    fn refuse(&mut self, key: &str, why: &str) {
        if let Some(setting) = self.get(key) {
            self.wrong(&setting, why);
        }
    }
    fn conflict(&mut self, key: &str, other: &str, why: &str) {
        Settings::conflict(self, key, other, why);
    }
    fn missing(&mut self, why: &str) {
        Settings::missing(self, why);
    }
    fn spelled(&self, key: &str, value: &str) -> String {
        Settings::spelled(self, key, value)
    }
}
