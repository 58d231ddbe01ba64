//! Values of an input by key, with their places and the mistakes found in them.
use crate::given::{Given, PlaceNumber};
use crate::kind::ReadBy;
pub use crate::mistakes::Mistakes;
use crate::numbers;
use crate::raw::joined;
use crate::schema::Schema;
use crate::sources::{array, from_other_base, sites};
use crate::stored::{self, Placed, Stored};
use crate::synonyms::none_of;
use crate::text::count;
use crate::values::{AnyWord, Kind, Raw, Switch, Value, one_of};
use ferrite::operators::Keys;
use serde::de::DeserializeOwned;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::{self, Display};
use std::ops::RangeInclusive;
use std::path::Path;
use std::rc::Rc;

mod file;
mod meant;

/// Place where a value was typed.
#[derive(Clone, Debug)]
enum Origin {
    Flag,
    Set,
    File {
        path: Rc<str>,
        line: usize,
        column: usize,
    },
    /// The program, which sets the value under the name by which users know it.
    Own(&'static str),
}

/// Key and place of a value, with the value as typed.
#[derive(Clone, Debug)]
pub struct ValuePlace {
    key: Rc<str>,
    /// Table that contains the key, unless it is part of the key.
    table: Option<&'static str>,
    text: String,
    origin: Origin,
}

impl ValuePlace {
    /// Returns the place without the key: file, line and column, `flag` or `--set`.
    fn origin(&self) -> String {
        match &self.origin {
            Origin::Flag => "flag".into(),
            Origin::Set => "--set".into(),
            Origin::File { path, line, column } => format!("{path}:{line}:{column}"),
            Origin::Own(name) => (*name).into(),
        }
    }
    /// Returns the value as typed.
    pub fn text(&self) -> &str {
        &self.text
    }
}

/// Formats the place as at the beginning of a message: `run.toml:3:8: mass`, `--mass`, `--set mass`.
impl Display for ValuePlace {
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

/// Object that may have a place in an input.
pub trait Located {
    /// Returns the place of the object; `None` if it has none.
    fn place_in(&self, input: &Input) -> Option<ValuePlace>;
}
impl Located for ValuePlace {
    fn place_in(&self, _: &Input) -> Option<ValuePlace> {
        Some(self.clone())
    }
}
impl<T: Value> Located for Given<T> {
    fn place_in(&self, input: &Input) -> Option<ValuePlace> {
        self.place().map(|number| input.places[number].clone())
    }
}

/// Input of a command: values by key with their places, and the mistakes found so far.
#[derive(Clone, Debug)]
pub struct Input {
    schema: &'static Schema,
    /// Name of the table of an input to which these values belong; `None` if they are the whole input.
    inside: Option<&'static str>,
    /// Whether an input file was read, so that advice is about its keys.
    from_file: bool,
    values: BTreeMap<Rc<str>, Stored>,
    places: Vec<ValuePlace>,
    /// Number of tables in each array of tables in files.
    lengths: BTreeMap<String, usize>,
    /// Keys that were given with a value of another type or under another name.
    refused: BTreeSet<Rc<str>>,
    mistakes: Vec<((usize, usize), String)>,
    /// Numbers of the lines that are not TOML.
    unreadable: BTreeSet<usize>,
    syntax: Vec<((usize, usize), String)>,
    /// Note that the input file may not be the intended one.
    doubt: Option<String>,
}

/// Returns a key with `*` in place of the numbers of tables.
fn pattern(key: &str) -> String {
    let part = |part: &str| if index(part).is_some() { "*".to_string() } else { part.to_string() };
    key.split('.').map(part).collect::<Vec<_>>().join(".")
}

/// Returns whether a key belongs to this table.
fn in_same_table(key: &str, table: &str) -> bool {
    key.rsplit_once('.').is_some_and(|(of, _)| of == table)
}

/// Returns the number of a table in an array of tables, which has at most three digits; `None` for other text.
fn index(part: &str) -> Option<usize> {
    let written =
        part.len() <= 3 && part.bytes().all(|b| b.is_ascii_digit()) && (part == "0" || !part.starts_with('0'));
    part.parse().ok().filter(|_| written)
}

/// Position of messages on missing keys, which puts them after all other messages.
const MISSING: (usize, usize) = (usize::MAX, 0);

/// Returns whether a message on something missing concerns this key. Such a key was given, but with a wrong value or under another name.
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

/// Largest number of mistakes in one message.
const MOST_MISTAKES: usize = 50;

impl Input {
    /// Creates an input with the keys of a schema, without values.
    pub fn new(schema: &'static Schema) -> Self {
        Input {
            schema,
            inside: None,
            from_file: false,
            values: BTreeMap::new(),
            places: Vec::new(),
            lengths: BTreeMap::new(),
            refused: BTreeSet::new(),
            mistakes: Vec::new(),
            unreadable: BTreeSet::new(),
            syntax: Vec::new(),
            doubt: None,
        }
    }
    /// Returns the input of a solve: the keys in the common table for solves, without the name of the table.
    pub fn solve(&self) -> Self {
        let Some(solves) = self.schema.solves else { return self.clone() };
        let mut solve = Self { inside: Some(solves.table), from_file: self.from_file, ..Self::new(solves.schema) };
        solve.places = self.places.clone();
        for (key, value) in &self.values {
            if let Some(own) = self.in_table(key) {
                let own: Rc<str> = own.into();
                for number in value.places().into_iter().chain([value.place()]) {
                    let place = &mut solve.places[number];
                    (place.key, place.table) = (own.clone(), Some(solves.table));
                }
                solve.values.insert(own, value.clone());
            }
        }
        solve
    }
    /// Returns the input of a solve. Values in the table `number` of the array for solves replace those in the common table.
    pub fn solve_of(&self, number: usize) -> Self {
        let mut solve = self.solve();
        for (key, value) in &self.values {
            let own = self.in_array(key).filter(|(of, own)| *of == number && !self.is_own(key) && !own.contains('.'));
            if let Some((_, own)) = own {
                solve.values.insert(own.into(), value.clone());
            }
        }
        solve
    }
    /// Returns the form in which users give the keys of this input: as flags, as keys of an input file, or as keys of one of its tables.
    pub fn given_by(&self) -> ReadBy {
        let of_input = if self.from_file { ReadBy::Keys } else { ReadBy::Flags };
        self.inside.map_or(of_input, ReadBy::Table)
    }
    /// Returns the text by which users set a key to a value, for advice in messages; see [`ReadBy::spelled`].
    pub fn spelled(&self, key: &str, value: &str) -> String {
        self.given_by().spelled(key, value)
    }
    /// Returns the key within the table for solves, if it is in that table.
    fn in_table<'k>(&self, key: &'k str) -> Option<&'k str> {
        key.strip_prefix(self.schema.solves?.table)?.strip_prefix('.')
    }
    /// Returns the number of the table and the key within it, if it is in the array for solves.
    fn in_array<'k>(&self, key: &'k str) -> Option<(usize, &'k str)> {
        let (number, own) = key.strip_prefix(self.schema.solves?.array)?.strip_prefix('.')?.split_once('.')?;
        Some((index(number)?, own))
    }
    /// Returns whether a key belongs to the schema.
    fn is_own(&self, key: &str) -> bool {
        let pattern = pattern(key);
        self.schema.keys().any(|(name, _)| name == pattern)
    }
    fn known(&self, key: &str) -> Option<Kind> {
        let of_solve = |own: &str| self.schema.solves?.schema.kind_of(own);
        if let Some(own) = self.in_table(key) {
            return of_solve(own);
        }
        let own = self.schema.kind_of(&pattern(key));
        own.or_else(|| self.in_array(key).and_then(|(_, own)| of_solve(own)))
    }
    /// Returns the number of tables in an array of tables.
    pub fn tables(&self, name: &str) -> usize {
        let number = |key: &Rc<str>| index(key.strip_prefix(name)?.strip_prefix('.')?.split('.').next()?);
        let by_keys = self.values.keys().filter_map(number).map(|n| n + 1).max();
        // A table without keys counts too.
        by_keys.max(self.lengths.get(name).copied()).unwrap_or(0)
    }
    /// Records a value given as a flag. The value replaces values from files.
    pub fn flag(&mut self, key: &'static str, value: Option<&str>) {
        self.flags(key, value.as_slice());
    }
    /// Records the values of a flag that may be repeated.
    pub fn flags(&mut self, key: &'static str, values: &[impl AsRef<str>]) {
        if !values.is_empty() {
            self.insert(key, values.iter().map(|text| text.as_ref().to_string()).collect(), &Origin::Flag);
        }
    }
    /// Stores values under a key that users do not type in this form. Messages about these values use `name`, which users know.
    pub fn put(&mut self, key: &'static str, values: &[String], name: &'static str) {
        self.insert(key, values.to_vec(), &Origin::Own(name));
    }
    /// Inserts texts as the value of a key.
    fn insert(&mut self, key: &str, texts: Vec<String>, origin: &Origin) {
        let key: Rc<str> = key.into();
        let is_list = matches!(self.known(&key), Some(Kind::Texts | Kind::Sites));
        let placed = |text: String| self.placed(&key, Raw::Text(text.clone()), text, origin.clone());
        let mut all: Vec<Placed> = texts.into_iter().map(placed).collect();
        let value = match (is_list, all.pop()) {
            (false, Some(last)) => Stored::One(last),
            (false, None) => return,
            (true, last) => {
                all.extend(last);
                self.list(&key, all, origin)
            }
        };
        self.values.insert(key, value);
    }
    /// Creates a list with its place.
    fn list(&mut self, key: &Rc<str>, all: Vec<Placed>, origin: &Origin) -> Stored {
        let texts: Vec<&str> = all.iter().map(|one| self.places[one.place].text.as_str()).collect();
        let whole = self.placed(key, Raw::List(Vec::new()), texts.join(","), origin.clone());
        Stored::Several(all, whole.place)
    }
    /// Assigns a place to a value.
    fn placed(&mut self, key: &Rc<str>, raw: Raw, text: String, origin: Origin) -> Placed {
        self.places.push(ValuePlace { key: key.clone(), table: None, text, origin });
        Placed { raw, place: self.places.len() - 1 }
    }
    /// Records a configuration that was named without a flag. It replaces the configuration in an input file. Naming a configuration and
    /// giving `--gauge` as well is a mistake.
    pub fn configuration(&mut self, path: Option<&Path>) {
        let Some(path) = path else { return };
        match self.get("gauge") {
            Some(given) if matches!(given.origin, Origin::Flag) => {
                let why = format!("the configuration {} is also named; name only one configuration", path.display());
                self.wrong(&given, why);
            }
            _ => self.put("gauge", &[path.display().to_string()], "the configuration"),
        }
    }
    /// Records a flag without a value.
    pub fn switch(&mut self, key: &'static str, given: bool) {
        self.flag(key, given.then_some("true"));
    }

    /// Records the assignments `KEY=VALUE` of `--set`. Several assignments to one key add their values if the key takes a list of texts or
    /// sites; otherwise the last assignment counts. A list is typed with commas, or in brackets as in a file.
    pub fn set(&mut self, assignments: &[String]) {
        let mut fresh: BTreeMap<String, Vec<String>> = BTreeMap::new();
        for assignment in assignments {
            let Some((key, value)) = assignment.split_once('=') else {
                self.mistake(None, format!("--set {assignment}: expected KEY=VALUE, for example --set tol=1e-8"));
                continue;
            };
            let key = key.trim();
            let Some(kind) = self.known(key) else {
                let message = format!("--set {assignment}: unknown key '{key}'{}", self.suggestion(key));
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
            let list = fresh.entry(key.to_string()).or_default();
            if !adds_up {
                list.clear();
            }
            list.extend(texts);
        }
        for (key, texts) in fresh {
            self.insert(&key, texts, &Origin::Set);
        }
    }

    /// Fails if an argument of `--set` does not have the form `KEY=VALUE`.
    pub fn only_set(mut self, assignments: &[String]) -> Result<(), Mistakes> {
        let odd = assignments.iter().find(|assignment| !assignment.contains('='));
        self.set(odd.map(std::slice::from_ref).unwrap_or_default());
        self.finish("the command line")
    }

    /// Returns all values as typed, with their places: `mass = 0.05 (run.toml:2:8)`.
    pub fn given(&self) -> Vec<String> {
        let line = |key: &Rc<str>| {
            let all = self.all(key);
            let texts: Vec<_> = all.iter().map(ValuePlace::text).collect();
            let value = if texts.len() == 1 { texts[0].into() } else { format!("{texts:?}") };
            let table = self.inside.map_or(String::new(), |table| format!("{table}."));
            let place = all.first().map_or(String::new(), |place| format!(" ({})", place.origin()));
            format!("{table}{key} = {value}{place}")
        };
        self.values.keys().map(line).collect()
    }
    /// Returns the values, as typed, of the keys for which `which` returns true. Values of a list are joined with commas. `which` receives
    /// the key with `*` in place of the number of a table.
    pub fn typed(&self, which: impl Fn(&str) -> bool) -> BTreeMap<String, String> {
        let line = |key: &Rc<str>| {
            let all = self.all(key);
            let texts: Vec<&str> = all.iter().map(|place| place.text.trim()).collect();
            which(&pattern(key)).then(|| (key.to_string(), texts.join(",")))
        };
        self.values.keys().filter_map(line).collect()
    }

    /// Reads the values of a table into a structure. An empty name of the table means the keys outside tables. Invalid values are recorded
    /// as mistakes and left out of the structure.
    pub fn read<T: DeserializeOwned + Default>(&mut self, table: &str) -> T {
        let prefix = if table.is_empty() { String::new() } else { format!("{table}.") };
        let mut values = Vec::new();
        for (key, value) in self.values.clone() {
            let Some(own) = key.strip_prefix(&prefix).filter(|own| !own.contains('.')) else { continue };
            if !self.is_flag_for_value(&value) {
                values.push((own.to_string(), value));
            }
        }
        // Deserialization ends at the first mistake, so it is repeated without the wrong value.
        loop {
            let why = match stored::read(&values) {
                Ok(read) => return read,
                Err(why) => why,
            };
            let Some(place) = why.place else {
                self.missing(why);
                return T::default();
            };
            self.unfit(place, &why.why);
            values.retain_mut(|(_, value)| match value {
                Stored::One(one) => one.place != place,
                Stored::Several(all, _) => {
                    all.retain(|one| one.place != place);
                    true
                }
            });
        }
    }
    /// Records a mistake if the value of a flag looks like the next flag. Returns whether it does.
    fn is_flag_for_value(&mut self, value: &Stored) -> bool {
        let place = self.places[value.place()].clone();
        let is = matches!(place.origin, Origin::Flag) && place.text.starts_with("--");
        if is {
            self.wrong(&place, format!("the value is missing; the next word is the flag {}", place.text));
        }
        is
    }
    /// Records a mistake of the value at a place. `why` is a message in the form of [`Value::of`].
    fn unfit(&mut self, number: PlaceNumber, why: &str) {
        let place = self.places[number].clone();
        let element = why.strip_prefix('#').and_then(|why| {
            let (k, why) = why.split_once(' ')?;
            Some((place.text.split(',').nth(k.parse().ok()?)?.trim(), why))
        });
        let (text, why) = element.unwrap_or((place.text.as_str(), why));
        let message = match why.strip_prefix("is none of ") {
            Some(words) => none_of(&place.key, text, &words.split(", ").collect::<Vec<_>>()),
            None if why.starts_with("is ") => format!("'{text}' {why}"),
            None => why.into(),
        };
        self.wrong(&place, message);
    }
    /// Converts the value of a key with `of`, for example [`Value::of`]; `None` if the key is absent. If `of` fails, its error is recorded
    /// as a mistake, and the result is `None`.
    pub fn parsed<T>(&mut self, key: &str, of: impl FnOnce(&Raw) -> Result<T, String>) -> Option<T> {
        let value = self.values.get(key)?.clone();
        if self.is_flag_for_value(&value) {
            return None;
        }
        let Stored::One(Placed { raw, place }) = value else { return None };
        of(&raw).map_err(|why| self.unfit(place, &why)).ok()
    }
    /// Returns the number that a key has; `None` if the key is absent. A number that does not satisfy `fits` is recorded as a mistake and
    /// gives `None`. Used for keys that an operator, a method or a monomial defines.
    pub fn number(&mut self, key: &str, expected: &str, fits: impl Fn(f64) -> bool) -> Option<f64> {
        self.parsed(key, |raw| numbers::one(raw, expected, &fits))
    }
    /// Returns one or several numbers that a key has; `None` if the key is absent. A number that does not satisfy `fits` is recorded as a
    /// mistake and gives `None`. Used for keys that an operator, a method or a monomial defines.
    pub fn numbers(&mut self, key: &str, expected: &str, fits: impl Fn(f64) -> bool) -> Option<Vec<f64>> {
        self.parsed(key, |raw| numbers::several(raw, expected, &fits))
    }
    /// Returns the whole number that a key has; `None` if the key is absent. A number outside `range` is recorded as a mistake and gives
    /// `None`. Used for keys that an operator, a method or a monomial defines.
    pub fn count(&mut self, key: &str, range: RangeInclusive<usize>) -> Option<usize> {
        self.parsed(key, |raw| numbers::count(raw, range))
    }
    /// Returns the meaning, in the list `words`, of the word that a key has; `None` if the key is absent. An unknown word is recorded as a
    /// mistake and gives `None`. Used for keys that an operator, a method or a monomial defines.
    pub fn choice<M: Copy>(&mut self, key: &str, words: &[(&'static str, M)]) -> Option<M> {
        self.parsed(key, |raw| one_of(raw, words))
    }
    /// Parses the text that a key has; `None` if the key is absent. If `parse` fails, its error is recorded as a mistake, and the result is
    /// `None`. Used for keys that an operator, a method or a monomial defines.
    pub fn parse<T>(&mut self, key: &str, parse: impl FnOnce(&str) -> Result<T, String>) -> Option<T> {
        self.parsed(key, |raw| parse(&joined(raw)))
    }
    /// Returns the meaning of a word from the list `words`, for a key whose valid words depend on other keys.
    pub fn meaning<M: Copy>(&mut self, word: &Given<AnyWord>, words: &[(&'static str, M)]) -> Option<M> {
        let typed = word.get()?;
        let meaning = one_of(&Raw::Text(typed.clone()), words);
        meaning.map_err(|why| self.unfit(word.place().unwrap_or_default(), &why)).ok()
    }
    /// Records that the key `key` is missing, unless it was given with any value. `example` shows a valid setting.
    pub fn needed(&mut self, key: &str, example: &str) {
        if !self.was_given(key) {
            self.missing(format!("{key} is missing; give it, for example {example}"));
        }
    }

    fn mistake(&mut self, at: Option<(usize, usize)>, message: String) {
        self.mistakes.push((at.unwrap_or_default(), message));
    }
    /// Records the mistake `why` in a value, unless the key of the value is absent.
    pub fn wrong(&mut self, value: &impl Located, why: impl Display) {
        let Some(setting) = value.place_in(self) else { return };
        let at = match setting.origin {
            Origin::File { line, column, .. } => Some((line, column)),
            _ => None,
        };
        let why = why.to_string();
        // A file that was named without a flag is identified by its name, not by a key.
        match setting.origin {
            Origin::Own(_) if why.starts_with(&format!("{}: ", setting.text)) => self.mistake(at, why),
            _ => self.mistake(at, format!("{setting}: {why}")),
        }
    }
    /// Records the mistake that something is missing; `message` names it.
    pub fn missing(&mut self, message: impl Display) {
        self.mistakes.push((MISSING, message.to_string()));
    }
    /// Records that the keys `key` and `with` exclude each other; `why` explains what to do.
    pub fn conflict(&mut self, key: &str, with: &str, why: &str) {
        match (self.get(key), self.get(with)) {
            (Some(first), Some(second)) => self.wrong(&first, format!("conflicts with {second}; {why}")),
            (Some(first), None) => self.wrong(&first, why),
            _ => self.missing(why),
        }
    }

    /// Returns the place of a key's value, or of its last value if there are several; `None` if the key has no value.
    pub fn get(&self, key: &str) -> Option<ValuePlace> {
        self.all(key).pop()
    }
    /// Returns the places of all values of a key.
    pub fn all(&self, key: &str) -> Vec<ValuePlace> {
        let numbers = self.values.get(key).map(Stored::places).unwrap_or_default();
        numbers.into_iter().map(|number| self.places[number].clone()).collect()
    }
    /// Returns whether a key was given, with a valid value or an invalid one.
    pub fn was_given(&self, key: &str) -> bool {
        self.values.contains_key(key) || self.refused.contains(key)
    }
    /// Returns whether a key was given with a value of the wrong type.
    pub fn was_refused(&self, key: &str) -> bool {
        self.refused.contains(key)
    }

    /// Ends the reading of the input. Fails if mistakes were recorded.
    ///
    /// # Errors
    /// Returns all mistakes, in the order of the file; `what` names the input.
    pub fn finish(&mut self, what: &str) -> Result<(), Mistakes> {
        let mut mistakes = std::mem::take(&mut self.mistakes);
        // The content of lines that are not TOML is unknown, so a key that seems to be missing may be there.
        let is_known = |at: &(usize, usize)| !self.unreadable.contains(&at.0) && *at != MISSING;
        mistakes.retain(|(at, _)| self.syntax.is_empty() || is_known(at));
        mistakes.retain(|(at, message)| *at != MISSING || !self.refused.iter().any(|key| is_about(message, key)));
        mistakes.append(&mut self.syntax);
        mistakes.sort_by_key(|(at, _)| *at);
        // A value that was checked twice counts as one mistake.
        let mut seen = BTreeSet::new();
        let lines = mistakes.into_iter().map(|(_, message)| message);
        let lines: Vec<String> = lines.filter(|message| seen.insert(message.clone())).collect();
        match lines.as_slice() {
            [] => Ok(()),
            [one] => Err(Mistakes(self.doubt.as_ref().map_or(one.clone(), |doubt| format!("{one}; {doubt}")))),
            many => {
                let mut list = many.iter().take(MOST_MISTAKES).map(|line| format!("\n  {line}")).collect::<String>();
                if many.len() > MOST_MISTAKES {
                    list += &format!("\n  and {} more", many.len() - MOST_MISTAKES);
                }
                list += &self.doubt.as_ref().map_or(String::new(), |doubt| format!("\n{doubt}"));
                Err(Mistakes(format!("{} in {what}:{list}", count(many.len(), "mistake"))))
            }
        }
    }
}

/// The source of the parameters of operators.
impl Keys for Input {
    fn is_given(&self, key: &str) -> bool {
        self.get(key).is_some()
    }
    fn number(&mut self, key: &'static str, expected: &str, fits: &dyn Fn(f64) -> bool) -> Option<f64> {
        Input::number(self, key, expected, fits)
    }
    fn word(&mut self, key: &'static str, words: &[&'static str]) -> Option<usize> {
        let choices: Vec<_> = words.iter().enumerate().map(|(place, word)| (*word, place)).collect();
        self.choice(key, &choices)
    }
    fn parse(&mut self, key: &'static str, parse: &mut dyn FnMut(&str) -> Result<(), String>) {
        Input::parse(self, key, parse);
    }
    fn is_on(&mut self, key: &'static str) -> bool {
        self.parsed(key, Switch::of) == Some(true)
    }
    fn refuse(&mut self, key: &str, why: &str) {
        if let Some(setting) = self.get(key) {
            self.wrong(&setting, why);
        }
    }
    fn conflict(&mut self, key: &str, other: &str, why: &str) {
        Input::conflict(self, key, other, why);
    }
    fn missing(&mut self, why: &str) {
        Input::missing(self, why);
    }
    fn spelled(&self, key: &str, value: &str) -> String {
        Input::spelled(self, key, value)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::values::{Count, Extents, Fractions, Item, Number, Numbers, Positive, Residual, SiteItem, Text, Word};
    use crate::{Listed, vocabularies};
    use std::sync::LazyLock;

    vocabularies! {
        /// Precisions; `true` for single.
        Precisions: bool = [("double", false), ("single", true)];
    }

    #[derive(Debug, Default, serde::Deserialize)]
    #[serde(default, rename_all = "kebab-case")]
    struct Keys {
        lattice: Given<Extents>,
        mass: Given<Number<Positive>>,
        tols: Given<Numbers<Residual>>,
        max_steps: Given<Count<1, 100>>,
        precision: Given<Word<Precisions>>,
        check: Given<Switch>,
        name: Given<Text>,
        flavours: Given<Fractions>,
        source: Listed<Item>,
        origins: Listed<SiteItem>,
    }
    static SCHEMA: LazyLock<Schema> = LazyLock::new(|| Schema::new(None).with::<Keys>("").with::<Keys>("quark.*"));

    /// Returns an input with the text of a file, whose name in messages is `in.toml`.
    fn with_file(text: &str) -> Input {
        let room = std::env::temp_dir().join(format!("ferrite-input-{}-{:p}", std::process::id(), text));
        std::fs::create_dir_all(&room).unwrap();
        let path = room.join("in.toml");
        std::fs::write(&path, text).unwrap();
        let mut input = Input::new(&SCHEMA);
        input.file(&path).unwrap();
        std::fs::remove_dir_all(room).unwrap();
        input
    }
    /// Returns a line for each mistake of an input, beginning with its place.
    fn mistakes(input: &mut Input) -> Vec<String> {
        let Err(Mistakes(all)) = input.finish("in.toml") else { return Vec::new() };
        all.lines().map(|line| line.split("in.toml:").last().unwrap().to_string()).collect()
    }

    #[test]
    fn values_have_the_types_of_their_fields() {
        let mut input = with_file(
            "lattice = [4, 4, 4, 0x8]\nmass = 1e-2\ntols = [1e-6, 1e-7]\nmax-steps = 1_0\nprecision = 'single'\ncheck = true\n\
             name = 'a'\nflavours = [2, '1/2']\nsource = ['point', 'wall']\norigins = [[0, 0, 0, 0], [1, 2, 3, 4]]\n",
        );
        let keys: Keys = input.read("");
        assert_eq!(keys.lattice.value(), Some([4, 4, 4, 8]));
        assert_eq!((keys.mass.value(), keys.tols.value()), (Some(0.01), Some(vec![1e-6, 1e-7])));
        assert_eq!((keys.max_steps.value(), keys.precision.value()), (Some(10), Some(true)));
        assert!(keys.check.is_on());
        assert_eq!(keys.flavours.value(), Some(vec!["2".into(), "1/2".into()]));
        assert_eq!(keys.source.iter().filter_map(Given::value).collect::<Vec<_>>(), ["point", "wall"]);
        assert_eq!(keys.origins.iter().filter_map(Given::value).collect::<Vec<_>>(), [[0; 4], [1, 2, 3, 4]]);
        assert_eq!(mistakes(&mut input), [""; 0]);
    }

    /// Flags replace assignments, and assignments replace values of files; all are read in the same way.
    #[test]
    fn texts_are_read_as_values_of_files_are() {
        let mut input = with_file("mass = 1\nmax-steps = 2\nsource = 'one'\n[[quark]]\nmass = 3\n");
        input.set(&["max-steps=3", "tols=[1e-3, 1e-4]", "origins=1,2,3,4", "quark.0.mass=0.5"].map(String::from));
        input.flag("mass", Some("0.25"));
        input.flags("source", &["two", "three"]);
        let keys: Keys = input.read("");
        assert_eq!((keys.mass.value(), keys.max_steps.value()), (Some(0.25), Some(3)));
        assert_eq!(keys.tols.value(), Some(vec![1e-3, 1e-4]));
        assert_eq!(keys.source.iter().filter_map(Given::value).collect::<Vec<_>>(), ["two", "three"]);
        assert_eq!(keys.origins.first().and_then(Given::value), Some([1, 2, 3, 4]));
        assert_eq!(input.tables("quark"), 1);
        assert_eq!(input.read::<Keys>("quark.0").mass.value(), Some(0.5));
        assert_eq!(input.get("mass").unwrap().to_string(), "--mass");
        assert_eq!(mistakes(&mut input), [""; 0]);
    }

    /// A single pass lists every mistake with its place, and keeps the valid values.
    #[test]
    fn all_mistakes_are_found_at_once() {
        let mut input = with_file(
            "mass = -1\ntols = [1e-6, 2.0]\nmax-steps = 0\nprecision = 'singel'\ncheck = 1\nname = 'right'\norigins = ['0,0,0,0', '1,2']\n\
             colour = 3\n",
        );
        let keys: Keys = input.read("");
        assert_eq!(keys.name.value().as_deref(), Some("right"));
        assert_eq!((keys.mass.value(), keys.max_steps.value(), keys.precision.value()), (None, None, None));
        assert_eq!(keys.origins.len(), 1);
        let found = mistakes(&mut input);
        let expected = [
            "1:8: mass: '-1' is not a number above 0",
            "2:8: tols: '2.0' is not a number of at least 1e-16 and below 1",
            "3:13: max-steps: '0' is too small: give a whole number from 1 to 100",
            "4:13: precision: 'singel' is none of double, single; did you mean 'single'?",
            "5:9: check: expected true or false, found a value of type integer; write true",
            "7:23: origins: '1,2': expected four whole numbers x,y,z,t, each at least 0",
            "8:1: unknown key 'colour'",
        ];
        assert_eq!(found.len(), 1 + expected.len(), "{found:#?}");
        for (line, expected) in found[1..].iter().zip(expected) {
            assert!(line.starts_with(expected), "{line} is not {expected}");
        }
    }

    #[test]
    fn numbers_that_nothing_holds_are_refused() {
        for typed in ["1e400", "170141183460469231731687303715884105728000", "nan", "-inf"] {
            let mut input = with_file(&format!("mass = {typed}\n"));
            assert!(input.read::<Keys>("").mass.get().is_none());
            assert!(mistakes(&mut input)[0].starts_with("1:8: mass: "), "{typed}");
        }
    }
}
