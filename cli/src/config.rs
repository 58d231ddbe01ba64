//! Settings as typed: flags, `--set KEY=VALUE`, and input files in TOML, all with the same keys. Keys of tables have a dot,
//! `trajectory.length`, and those of arrays of tables the number of the table, from 0: `fermion.0.mass`.
//!
//! Values stay text with their origin until a command asks for them by type. Whatever is wrong is collected, so that
//! all mistakes of an input are listed at once, each with its line and column.
use crate::failure::ReadBy;
use crate::keys::SOLVE;
use crate::named::not_an_input;
use crate::synonyms::{self, Meant};
use crate::text::{count_hint, number_hint};
use crate::{Failure, Outcome, syntax};
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
    /// Keys whose values are of another type, or that were given under another name.
    refused: BTreeSet<Rc<str>>,
    mistakes: Vec<((usize, usize), String)>,
    /// Numbers of the lines that are not TOML.
    unreadable: BTreeSet<usize>,
    syntax: Vec<((usize, usize), String)>,
    /// Note for a file that may not be the intended one.
    doubt: Option<String>,
}

impl Default for Settings {
    /// Those of solves.
    fn default() -> Self {
        Self::of(&SOLVE)
    }
}

/// A command that reads an input.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InputKind {
    /// `ferrite solve`.
    Solve,
    /// `ferrite spectrum`.
    Spectrum,
    /// `ferrite rhmc`, and `forces`.
    Ensemble,
}

impl InputKind {
    /// Recognises the command that a file is an input of by its tables, right or wrong; `None` if they leave it open.
    pub fn of(path: &Path) -> Option<Self> {
        Self::of_text(&text_of(path).ok()?)
    }
    fn of_text(text: &str) -> Option<Self> {
        let (table, _) = DeTable::parse_recoverable(text);
        let has = |wanted: &dyn Fn(&str, &DeValue) -> bool| {
            table.get_ref().iter().any(|(key, value)| wanted(key.get_ref(), value.get_ref()))
        };
        let is_table = |value: &DeValue| matches!(value, DeValue::Table(_));
        if has(&|key, value| key == "solve" && is_table(value)) {
            return Some(Self::Spectrum);
        }
        if has(&|key, value| {
            matches!(key, "trajectories" | "trajectory" | "fermion") || key == "gauge" && is_table(value)
        }) {
            return Some(Self::Ensemble);
        }
        if has(&|key, _| matches!(key, "configurations" | "quark" | "three-point" | "shell")) {
            return Some(Self::Spectrum);
        }
        has(&|key, value| key == "gauge" && matches!(value, DeValue::String(_))).then_some(Self::Solve)
    }
    /// Returns the arguments that a command needs after the input.
    pub fn folder(self) -> &'static str {
        match self {
            Self::Solve => "",
            Self::Spectrum | Self::Ensemble => " --out DIR",
        }
    }
    /// Returns the command that prints an example.
    fn example(self) -> &'static str {
        match self {
            Self::Solve => "ferrite init solve",
            Self::Spectrum => "ferrite init spectrum",
            Self::Ensemble => "ferrite init rhmc",
        }
    }
    /// Returns the command as typed.
    pub fn usage(self) -> &'static str {
        match self {
            Self::Solve => "ferrite solve",
            Self::Spectrum => "ferrite spectrum",
            Self::Ensemble => "ferrite rhmc",
        }
    }
}

/// A key with `*` for the numbers of tables.
fn pattern(key: &str) -> String {
    let part = |part: &str| if index(part).is_some() { "*".to_string() } else { part.to_string() };
    key.split('.').map(part).collect::<Vec<_>>().join(".")
}

/// Returns the known name with the most similar spelling, if it is similar enough.
fn closest(typed: &str, known: &[&str]) -> Option<Meant> {
    let typed = typed.to_lowercase().replace('_', "-");
    let close = |name: &str| strsim::jaro_winkler(&typed, name);
    let best = known.iter().copied().max_by(|a, b| close(a).total_cmp(&close(b)))?;
    (close(best) > 0.75).then(|| Meant { name: Some(best.into()), note: None, sure: close(best) > 0.9 })
}

/// Returns whether a key is one of this table.
fn in_same_table(key: &str, table: &str) -> bool {
    key.rsplit_once('.').is_some_and(|(of, _)| of == table)
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

/// Describes the residuals that can be requested: double precision cannot reach less.
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
        _ => Err(format!("'{text}' is not {expected}{}", number_hint(text))),
    }
}

/// Position of messages on missing keys, after all others.
const MISSING: (usize, usize) = (usize::MAX, 0);

/// Returns whether a message on something missing is about this key, which was given with a wrong value or under another name.
fn is_about(missing: &str, key: &str) -> bool {
    let last = key.rsplit('.').next().unwrap_or(key);
    let named = |text: String| {
        missing
            .match_indices(&text)
            .any(|(at, _)| !missing[at + text.len()..].starts_with(|c: char| c.is_alphanumeric() || c == '-'))
    };
    missing.starts_with(&format!("{key} is missing"))
        || named(format!("--{last}"))
        || missing.contains(&format!(" {last} = "))
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
        let most = crate::text::bytes(MOST_BYTES as usize);
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
    /// Returns a line by its number, from 1, without its end.
    fn line(&self, number: usize) -> &'t str {
        let begin = self.lines[number - 1];
        self.text[begin..].lines().next().unwrap_or_default()
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

/// Returns the value of a key as settings; `None` if it is of another type.
fn values_of(source: &Source, key: &Rc<str>, kind: Kind, value: &Spanned<DeValue>) -> Option<Vec<Setting>> {
    let setting = |value: &Spanned<DeValue>, text_of: String| {
        let (line, column) = source.position(value.span().start);
        let origin = Origin::File { path: source.name.clone(), line, column };
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
    match (kind, value.get_ref()) {
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
    }
}

/// Describes the values of a kind.
fn expected(kind: Kind) -> &'static str {
    match kind {
        Kind::Text | Kind::Word => "a string",
        Kind::Texts => "a string or an array of strings",
        Kind::Number => "a number",
        Kind::Count => "a whole number",
        Kind::Switch => "true or false",
        Kind::Extents => "four whole numbers, [X, Y, Z, T]",
        Kind::Sites => "sites, [[X, Y, Z, T], [X, Y, Z, T]]",
        Kind::Numbers => "a number or an array of numbers",
        Kind::Fractions => "a number, a fraction such as \"1/2\", or an array of these",
    }
}

/// Returns advice on a value of another type, if the right one is plain: `; write 0.1, without quotes`.
fn advice(kind: Kind, value: &DeValue) -> String {
    match (kind, value) {
        (Kind::Number | Kind::Count | Kind::Switch, DeValue::String(text)) => {
            let text = text.trim();
            let meant = match (kind, text.to_lowercase().as_str()) {
                (Kind::Switch, "true" | "yes" | "on" | "1") => "true",
                (Kind::Switch, "false" | "no" | "off" | "0") => "false",
                (Kind::Number, _) if text.parse::<f64>().is_ok_and(f64::is_finite) => text,
                (Kind::Count, _) if text.parse::<u64>().is_ok() => text,
                _ => return String::new(),
            };
            format!("; write {meant}, without quotes")
        }
        (Kind::Switch, DeValue::Integer(i)) => match i.as_str() {
            "1" => "; write true".into(),
            "0" => "; write false".into(),
            _ => String::new(),
        },
        (Kind::Text | Kind::Word | Kind::Texts, value) if number(value).is_some() => {
            format!("; write it in quotes: \"{}\"", number(value).unwrap_or_default())
        }
        (Kind::Text | Kind::Word | Kind::Number | Kind::Count | Kind::Switch, DeValue::Array(list))
            if list.len() == 1 =>
        {
            "; write the value without brackets".into()
        }
        (Kind::Text | Kind::Word | Kind::Number | Kind::Count | Kind::Switch, DeValue::Array(_)) => {
            "; this key has one value".into()
        }
        (Kind::Count, DeValue::Float(x)) => match x.as_str().replace('_', "").parse::<f64>() {
            Ok(whole) if whole.fract() == 0.0 && (0.0..1e15).contains(&whole) => format!("; write {whole}"),
            _ => String::new(),
        },
        _ => String::new(),
    }
}

/// Returns whether a value is a table, or several of one name.
fn is_table(value: &DeValue) -> bool {
    let is_one = |value: &DeValue| matches!(value, DeValue::Table(_));
    match value {
        DeValue::Array(list) => !list.is_empty() && list.iter().all(|value| is_one(value.get_ref())),
        one => is_one(one),
    }
}

/// Returns the message on a table in an input that has none.
fn flat(name: &str) -> String {
    format!("the input of `ferrite solve` has no tables: take the line [{name}] out, and write its keys as the others")
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
            unreadable: BTreeSet::new(),
            syntax: Vec::new(),
            doubt: None,
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
    /// Returns how users give these keys: as flags, as keys of an input, or as keys of a table of it.
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
    /// Returns the command whose input this is; `None` for files that the program writes for itself.
    fn kind(&self) -> Option<InputKind> {
        let has = |key: &str| self.schema.iter().any(|(name, _)| *name == key);
        match self.table {
            Some(_) => Some(InputKind::Spectrum),
            None if has("trajectories") => Some(InputKind::Ensemble),
            None => has("max-iterations").then_some(InputKind::Solve),
        }
    }
    /// Returns all keys as patterns, those of the table for a solve with its name.
    fn patterns(&self) -> Vec<String> {
        let of_solve = |table: &str| SOLVE.iter().map(move |(name, _)| format!("{table}.{name}")).collect::<Vec<_>>();
        let own = self.keys().map(|(name, _)| (*name).to_string());
        own.chain(self.table.into_iter().flat_map(of_solve)).collect()
    }
    /// Returns the name that was probably meant by an unknown key.
    fn meant(&self, key: &str) -> Option<Meant> {
        let of_array = || self.in_array(key).map(|(_, own)| own);
        if let Some(own) = self.in_table(key).or_else(of_array) {
            let known: Vec<&str> = SOLVE.iter().map(|(name, _)| *name).collect();
            let elsewhere = || {
                let others: Vec<&str> = self.keys().map(|(name, _)| *name).collect();
                others.contains(&own).then(|| self.elsewhere(key, &others)).flatten()
            };
            return elsewhere().or_else(|| synonyms::of_key(own, &known)).or_else(|| closest(own, &known));
        }
        let (typed, patterns) = (pattern(key).replace('_', "-"), self.patterns());
        let known: Vec<&str> = patterns.iter().map(String::as_str).collect();
        let exact = || self.elsewhere(&typed, &known);
        let close = || match typed.rsplit_once('.') {
            // The table's name says nothing about which of its keys it is.
            Some((table, last)) if known.iter().any(|key| in_same_table(key, table)) => {
                let own = known.iter().filter(|key| in_same_table(key, table));
                let names: Vec<&str> = own.filter_map(|key| key.rsplit('.').next()).collect();
                let meant = closest(last, &names)?;
                Some(Meant { name: meant.name.map(|name| format!("{table}.{name}")), ..meant })
            }
            _ => closest(&typed, &known),
        };
        let mut meant = exact().or_else(|| synonyms::of_key(&typed, &known)).or_else(close)?;
        // Of an array of tables, the first table's, or that with the number that was typed.
        let number = key.split('.').find(|part| index(part).is_some()).unwrap_or("0");
        meant.name = meant.name.map(|name| name.replace('*', number));
        Some(meant)
    }
    /// Finds the key in another table, or in none: in TOML a key belongs to the table whose line stands above it.
    fn elsewhere(&self, typed: &str, known: &[&str]) -> Option<Meant> {
        let last = typed.rsplit('.').next().unwrap_or(typed);
        let same = |key: &&&str| key.rsplit('.').next() == Some(last);
        let found = known.iter().find(|key| **key == last).or_else(|| known.iter().find(same))?;
        let note = match (found.contains('.'), typed.contains('.')) {
            _ if typed == *found => None,
            (false, true) => Some("keys that are in no table stand above the first line with brackets"),
            (true, _) => Some("keys of a table stand below its name in brackets"),
            (false, false) => None,
        };
        Some(Meant { name: Some((*found).into()), note, sure: true })
    }
    /// Returns the end of the message on an unknown key: `; did you mean 'gauge'?`, or a list of keys.
    fn suggestion(&self, key: &str) -> String {
        if let Some(meant) = self.meant(key) {
            return meant.sentence();
        }
        let of_solve = self.in_table(key).is_some() || self.kind() == Some(InputKind::Solve);
        let table = pattern(key).rsplit_once('.').map(|(table, _)| table.to_string());
        let own = |name: &&str| name.rsplit_once('.').map(|(table, _)| table) == table.as_deref();
        let names: Vec<&str> = self.keys().map(|(name, _)| *name).filter(own).collect();
        match self.kind() {
            Some(kind) if of_solve || names.is_empty() => {
                return format!("; `{}` prints all keys with comments", kind.example());
            }
            _ => {}
        }
        let names: Vec<&str> = names.iter().map(|name| name.rsplit('.').next().unwrap_or(name)).collect();
        match &table {
            Some(table) => format!("; keys of the table {} are {}", table.trim_end_matches(".*"), names.join(", ")),
            None => format!(
                "; keys that are in no table are {}; tables are {}",
                names.join(", "),
                self.bracketed().join(", ")
            ),
        }
    }
    /// Returns the names of the tables, and whether there may be several of a name.
    fn table_names(&self) -> Vec<(&'static str, bool)> {
        let mut all: Vec<(&str, bool)> = Vec::new();
        let of_keys = self.schema.iter().filter_map(|(name, _)| {
            let (table, rest) = name.split_once('.')?;
            Some((table, rest.starts_with("*.")))
        });
        for one in of_keys.chain(self.table.map(|table| (table, false))) {
            if !all.contains(&one) {
                all.push(one);
            }
        }
        all
    }
    /// Returns the tables as typed: `[gauge]`, `[[fermion]]`.
    fn bracketed(&self) -> Vec<String> {
        let one = |(name, several): (&str, bool)| if several { format!("[[{name}]]") } else { format!("[{name}]") };
        self.table_names().into_iter().map(one).collect()
    }
    /// Returns the table that was probably meant by an unknown one.
    fn meant_table(&self, typed: &str) -> Option<(&'static str, bool)> {
        let tables = self.table_names();
        let names: Vec<&str> = tables.iter().map(|(name, _)| *name).collect();
        let meant = synonyms::of_table(typed, &names).map(String::from);
        let meant = meant.or_else(|| closest(&typed.to_lowercase().replace('_', "-"), &names)?.name)?;
        tables.into_iter().find(|(name, _)| *name == meant)
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
    /// Notes a configuration that was named without a flag. It replaces that of an input; beside `--gauge` it is a mistake.
    pub fn configuration(&mut self, path: Option<&Path>) {
        let Some(path) = path else { return };
        match self.get("gauge") {
            Some(given) if matches!(given.origin, Origin::Flag) => {
                let why = format!("{} is named, too: name one configuration", path.display());
                self.wrong(&given, why);
            }
            _ => self.put("gauge", &[path.display().to_string()], "the configuration"),
        }
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

    /// Refuses arguments of `--set` that are not of the form `KEY=VALUE`.
    pub fn only_set(mut self, assignments: &[String]) -> Outcome {
        let odd = assignments.iter().find(|assignment| !assignment.contains('='));
        self.set(odd.map(std::slice::from_ref).unwrap_or_default());
        self.finish("the command line")
    }

    /// Reads an input file. Only a file that cannot be read at all is an error here; mistakes in it are collected.
    pub fn file(&mut self, path: &Path) -> Outcome {
        self.from_file = true;
        let (shown, own) = (path.display(), self.kind());
        match (not_an_input(path), own) {
            (Some(_), _) if path.is_dir() => {
                return Err(Failure::refused(format!("{shown} is a folder: name a file in it")));
            }
            (Some(what), Some(own)) => {
                let (usage, example) = (own.usage(), own.example());
                return Err(Failure::refused(format!(
                    "{shown} is {what}, and not an input of `{usage}`, which is a text in TOML: `{example}` prints one"
                )));
            }
            _ => {}
        }
        let text = text_of(path)?;
        if let (Some(own), Some(other)) = (own, InputKind::of_text(&text))
            && own != other
        {
            let (folder, other, own) = (other.folder(), other.usage(), own.usage());
            return Err(Failure::refused(format!(
                "{shown} is an input of `{other}`, not of `{own}`: run `{other} {shown}{folder}`, or name another file"
            )));
        }
        let name: Rc<str> = path.display().to_string().into();
        let source = Source::new(&text, Rc::clone(&name));
        let (table, errors) = DeTable::parse_recoverable(&text);
        for error in errors {
            let at = source.position(error.span().map_or(0, |span| span.start));
            // Others on the same line follow from the first one.
            if self.unreadable.insert(at.0) {
                let why = syntax::explained(error.message(), source.line(at.0), at.1);
                self.syntax.push((at, format!("{name}:{}:{}: {why}", at.0, at.1)));
            }
        }
        if let (false, Some(own)) = (self.syntax.is_empty() || path.extension().is_some_and(|end| end == "toml"), own) {
            self.doubt = Some(format!("an input is a text in TOML, such as `{}` prints", own.example()));
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
            return self.unknown(source, key, at, value);
        };
        if is_table(value.get_ref()) {
            let place = format!("{name}:{}:{}", key_at.0, key_at.1);
            let own = key.rsplit('.').next().unwrap_or(key);
            self.refused.insert(key.into());
            let message = if self.kind() == Some(InputKind::Solve) {
                flat(own)
            } else {
                format!("'{own}' is a key and not a table: write {own} = and its value on one line")
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
        match values_of(source, &key, kind, value) {
            Some(values) => {
                self.values.insert(key, values);
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

    /// Values as they were typed, those of a list joined with commas, of the keys for which `which` holds of the key with `*` for
    /// the number of a table.
    pub fn typed(&self, which: impl Fn(&str) -> bool) -> BTreeMap<String, String> {
        let line = |(key, settings): (&Rc<str>, &Vec<Setting>)| {
            let texts: Vec<&str> = settings.iter().map(|setting| setting.text.trim()).collect();
            which(&pattern(key)).then(|| (key.to_string(), texts.join(",")))
        };
        self.values.iter().filter_map(line).collect()
    }
    /// Notes an unknown key or table, and reads what it has under the name that is certainly meant, so that nothing is
    /// missed twice.
    fn unknown(&mut self, source: &Source, key: &str, at: usize, value: &Spanned<DeValue>) {
        let is_table = is_table(value.get_ref());
        let (line, column) = source.position(at);
        let place = format!("{}:{line}:{column}", source.name);
        if is_table && !key.contains('.') {
            match self.meant_table(key) {
                // Several where there is one.
                Some((table, _)) if table == key => {
                    let message = format!("{place}: there is one table {key}: write [{key}] in place of [[{key}]]");
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
            let message = match (tables.as_slice(), self.meant(key).and_then(|meant| meant.note)) {
                ([], _) if self.kind().is_some() => flat(key),
                ([], _) => format!("unknown table [{key}]"),
                (_, Some(note)) => format!("unknown table [{key}]; {note}"),
                (all, None) => format!("unknown table [{key}]; tables are {}", all.join(", ")),
            };
            return self.mistake(Some((line, column)), format!("{place}: {message}"));
        }
        self.mistake(Some((line, column)), format!("{place}: unknown key '{key}'{}", self.suggestion(key)));
        // What is certain to be meant is not reported as missing, too.
        if let Some(Meant { name: Some(meant), sure, .. }) = self.meant(key).filter(|_| !is_table) {
            let meant = match self.in_table(key).or_else(|| self.in_array(key).map(|(_, own)| own)) {
                Some(own) if !self.is_own(&meant) => format!("{}{meant}", key.strip_suffix(own).unwrap_or_default()),
                _ => meant,
            };
            // A table of an array that is not there does not come to be by a key that is elsewhere.
            let is_there = |table: &str, number: usize| number < self.tables(table);
            let parts: Vec<&str> = meant.split('.').collect();
            if let [table, number, _] = parts[..]
                && !index(number).is_some_and(|number| is_there(table, number))
            {
                return;
            }
            let meant: Rc<str> = meant.into();
            let values = self.known(&meant).filter(|_| sure).and_then(|kind| values_of(source, &meant, kind, value));
            match values {
                _ if self.was_given(&meant) => {}
                Some(values) => drop(self.values.insert(meant, values)),
                None => drop(self.refused.insert(meant)),
            }
        }
    }
    /// Notes a table of an unknown name, and reads it as the one that is meant.
    fn unknown_table(&mut self, source: &Source, key: &str, at: usize, value: &Spanned<DeValue>, table: &str) {
        let (line, column) = source.position(at);
        let several = self.table_names().iter().any(|(name, several)| *name == table && *several);
        let brackets = |name: &str, twice: bool| if twice { format!("[[{name}]]") } else { format!("[{name}]") };
        let typed = brackets(key, matches!(value.get_ref(), DeValue::Array(_)));
        let meant = brackets(table, several);
        let message = format!("{}:{line}:{column}: unknown table {typed}; did you mean {meant}?", source.name);
        self.mistake(Some((line, column)), message);
        self.entry(source, table, at, value);
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
        let why = why.to_string();
        // A file that was named without a flag is known by its name.
        match setting.origin {
            Origin::Own(_) if why.starts_with(&format!("{}: ", setting.text)) => self.mistake(at, why),
            _ => self.mistake(at, format!("{setting}: {why}")),
        }
    }
    /// Notes that something is missing.
    pub fn missing(&mut self, message: impl Display) {
        self.mistakes.push((MISSING, message.to_string()));
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
        if matches!(setting.origin, Origin::Flag) && setting.text.starts_with("--") {
            self.wrong(&setting, format!("its value is missing: {} is the next flag", setting.text));
            return None;
        }
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
            _ => {
                let last = if *range.end() == usize::MAX { "2^64 - 1".into() } else { range.end().to_string() };
                Err(format!("'{text}' is not a whole number from {} to {last}{}", range.start(), count_hint(text)))
            }
        })
    }
    /// One of some words.
    pub fn choice<T: Copy>(&mut self, key: &str, choices: &[(&str, T)]) -> Option<T> {
        self.parsed(key, |text| match choices.iter().find(|(name, _)| *name == text) {
            Some((_, value)) => Ok(*value),
            None => Err(none_of(key, text, &choices.iter().map(|(name, _)| *name).collect::<Vec<_>>())),
        })
    }
    /// Whether a switch is on.
    pub fn is_on(&mut self, key: &str) -> bool {
        self.choice(key, &[("true", true), ("false", false)]).unwrap_or(false)
    }

    /// Fails with all that is wrong, in the order of the file.
    pub fn finish(&mut self, what: &str) -> Outcome {
        let mut mistakes = std::mem::take(&mut self.mistakes);
        // Nobody knows what is on such lines, nor what is missing therefore.
        let is_known = |at: &(usize, usize)| !self.unreadable.contains(&at.0) && *at != MISSING;
        mistakes.retain(|(at, _)| self.syntax.is_empty() || is_known(at));
        mistakes.retain(|(at, message)| *at != MISSING || !self.refused.iter().any(|key| is_about(message, key)));
        mistakes.append(&mut self.syntax);
        mistakes.sort_by_key(|(at, _)| *at);
        // What was looked at twice is one mistake.
        let mut told = BTreeSet::new();
        let lines = mistakes.into_iter().map(|(_, message)| message);
        let lines: Vec<String> = lines.filter(|message| told.insert(message.clone())).collect();
        match lines.as_slice() {
            [] => Ok(()),
            [one] => Err(Failure::refused(self.doubt.as_ref().map_or(one.clone(), |doubt| format!("{one}; {doubt}")))),
            many => {
                let mut list = many.iter().take(MOST_MISTAKES).map(|line| format!("\n  {line}")).collect::<String>();
                if many.len() > MOST_MISTAKES {
                    list += &format!("\n  and {} more", many.len() - MOST_MISTAKES);
                }
                list += &self.doubt.as_ref().map_or(String::new(), |doubt| format!("\n{doubt}"));
                Err(Failure::refused(format!("{} in {what}:{list}", crate::count(many.len(), "mistake"))))
            }
        }
    }
}

/// Returns the message on a value that is none of these words, with the one that was probably meant.
pub fn none_of(key: &str, text: &str, choices: &[&str]) -> String {
    let hint = synonyms::of_value(key, text, choices).map(|meant| meant.sentence()).unwrap_or_default();
    format!("'{text}' is none of {}{hint}", choices.join(", "))
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
