//! Lines of configurations over which means are taken: checks that they belong together, and their order.
//!
//! Lines may come from several files. They are rejected if they were computed with different inputs, or if a
//! configuration has two lines, which would count it twice. Configurations of several chains, recognised by their names,
//! form streams: bins and autocorrelations do not extend across the end of a stream.
use super::inputs::{Difference, difference};
use crate::text::{count, value_text};
use ferrite_records::configuration::ContentRecord;
use ferrite_records::measure::{ConfigurationLine, LineOrigin};
use serde_json::Value;
use std::cmp::Ordering;
use std::collections::HashMap;
use std::fmt;
use std::path::Path;
use std::sync::Arc;

/// File and number of a line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LinePosition {
    /// File of the line, as the user gave it.
    pub file: Arc<str>,
    /// Number of the line, counted from 1.
    pub line: usize,
}

impl fmt::Display for LinePosition {
    fn fmt(&self, to: &mut fmt::Formatter) -> fmt::Result {
        write!(to, "{}, line {}", self.file, self.line)
    }
}

/// A line of JSON with its position.
#[derive(Clone, Debug, PartialEq)]
pub struct RecordLine {
    /// File and number of the line.
    pub place: LinePosition,
    /// Content of the line.
    pub value: Value,
}

/// Configuration with a result, described by the line of the result.
#[derive(Clone, Debug, PartialEq)]
pub struct Member {
    /// Position of the line of the result.
    pub place: LinePosition,
    /// Path of the configuration's file, absolute if that is known.
    pub name: String,
    /// Length and checksum of the configuration's file, if they are known.
    pub content: Option<ContentRecord>,
    /// Keys of the input on which the result depends, as typed; `null` if the line does not have them.
    pub input: Value,
    /// Keys of the result that are compared in place of `input` if one of two lines has no input.
    pub about: Value,
}

impl Member {
    /// Returns the member that corresponds to a line of `--output`; its configuration is `file`.
    pub(super) fn of_line(place: &LinePosition, line: &impl ConfigurationLine, file: &Path, about: Value) -> Self {
        let LineOrigin { absolute, content, input, .. } = line.origin().clone();
        let name = absolute.unwrap_or_else(|| file.display().to_string());
        Member { place: place.clone(), name, content, input: input.unwrap_or_default(), about }
    }
    fn file(&self) -> &str {
        file_of(&self.name)
    }
}

fn file_of(name: &str) -> &str {
    Path::new(name).file_name().and_then(|file| file.to_str()).unwrap_or(name)
}

/// Configurations over which means are taken, with checks that they belong together.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Ensemble {
    members: Vec<Member>,
    by_name: HashMap<String, usize>,
    by_content: HashMap<(String, u64, String), usize>,
}

/// Stream: the configurations of one Markov chain.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stream {
    /// Files of the chain, with `*` in place of the trajectory number.
    pub name: String,
    /// Number of configurations in the stream.
    pub configurations: usize,
}

impl Ensemble {
    /// Adds a configuration to the ensemble.
    ///
    /// # Errors
    /// A sentence that names both lines, if the input of the line differs from that of the first line, or if an earlier line has the same
    /// configuration.
    pub fn add(&mut self, member: Member) -> Result<(), String> {
        if let Some(first) = self.members.first() {
            let of_inputs = !first.input.is_null() && !member.input.is_null();
            let [before, now] = [first, &member].map(|one| if of_inputs { &one.input } else { &one.about });
            if let Some(found) = difference(before, now) {
                return Err(refused_input(&found, first, &member));
            }
        }
        let key = member
            .content
            .as_ref()
            .map(|content| (member.file().to_string(), content.stamp.bytes, content.crc32.clone()));
        let known = self.by_name.get(&member.name).or_else(|| self.by_content.get(key.as_ref()?));
        if let Some(other) = known.map(|k| &self.members[*k]) {
            return Err(refused_twice(other, &member));
        }
        let number = self.members.len();
        self.by_name.insert(member.name.clone(), number);
        if let Some(key) = key {
            self.by_content.insert(key, number);
        }
        self.members.push(member);
        Ok(())
    }
    /// Returns the position of the first line, or `None` if the ensemble is empty.
    pub fn first(&self) -> Option<&LinePosition> {
        self.members.first().map(|member| &member.place)
    }
    /// Returns the number of configurations in the ensemble.
    pub fn len(&self) -> usize {
        self.members.len()
    }
    /// Returns whether the ensemble has no configurations.
    pub fn is_empty(&self) -> bool {
        self.members.is_empty()
    }
    /// Returns the order of the configurations, and their streams. The order lists the indices at which configurations were added: stream
    /// by stream, and within a stream by trajectory number.
    pub fn streams(&self) -> (Vec<usize>, Vec<Stream>) {
        let names: Vec<&str> = self.members.iter().map(|member| member.name.as_str()).collect();
        streams_of(&names)
    }
}

fn refused_input(found: &Difference, first: &Member, second: &Member) -> String {
    let shown = |value: &Value| match value {
        Value::Null => "not given".into(),
        value => value_text(value),
    };
    format!(
        "{}: {} is {}, but {} in {}: means over lines of different inputs have no meaning; analyse them separately",
        second.place,
        found.key,
        shown(&found.second),
        shown(&found.first),
        first.place
    )
}

fn refused_twice(first: &Member, second: &Member) -> String {
    let places = format!("{}: {} occurs twice, first in {}", second.place, second.name, first.place);
    let copy = first.name != second.name;
    let replaced = match (&first.content, &second.content) {
        (Some(a), Some(b)) => !a.is_of_same_bytes(b),
        _ => false,
    };
    match (copy, replaced) {
        (true, _) => format!("{places} as {}, with the same bytes: remove one of the lines", first.name),
        (_, true) => {
            format!("{places}, when the file held other links: remove the line that is not of this ensemble")
        }
        _ => format!("{places}, and would count twice: remove one of the lines"),
    }
}

/// Returns the chain of a configuration, and its number in the chain. The chain is the path with `*` in place of the last number in the
/// file name, ignoring endings such as `.ildg` or `.h5`. If the file name has no number, the last number in its folders is used.
fn numbered(name: &str) -> Option<(String, u128)> {
    let file = file_of(name);
    let begin = name.len() - file.len();
    let mut stem = file;
    while let Some((before, ending)) = stem.rsplit_once('.')
        && ending.starts_with(|c: char| c.is_ascii_alphabetic())
        && ending.chars().all(|c| c.is_ascii_alphanumeric())
    {
        stem = before;
    }
    let of_stem = last_number(stem).or_else(|| last_number(file));
    let [from, to] = of_stem.map(|range| range.map(|at| begin + at)).or_else(|| last_number(&name[..begin]))?;
    let number = name[from..to].parse().ok()?;
    Some((format!("{}*{}", &name[..from], &name[to..]), number))
}

/// Returns the start and the end of the last run of digits in a text.
fn last_number(text: &str) -> Option<[usize; 2]> {
    let end = text.rfind(|c: char| c.is_ascii_digit())? + 1;
    let start = text[..end].rfind(|c: char| !c.is_ascii_digit());
    let start = start.map_or(0, |at| at + text[at..].chars().next().map_or(1, char::len_utf8));
    Some([start, end])
}

/// Returns the longest folder with which all names begin, including its last slash.
fn common_folder<'n>(names: &[&'n str]) -> &'n str {
    let Some(mut common) = names.first().copied() else { return "" };
    for name in names {
        let same = common.bytes().zip(name.bytes()).take_while(|(a, b)| a == b).count();
        // The byte of a slash is never part of a longer UTF-8 character.
        common = &common[..common.as_bytes()[..same].iter().rposition(|byte| *byte == b'/').map_or(0, |at| at + 1)];
    }
    common
}

/// Compares texts so that numbers in them are compared as numbers: `cfg.2` comes before `cfg.10`.
fn natural(a: &str, b: &str) -> Ordering {
    let (mut a, mut b) = (a, b);
    loop {
        let digits = |text: &str| text.len() - text.trim_start_matches(|c: char| c.is_ascii_digit()).len();
        let order = match (digits(a), digits(b)) {
            (0, _) | (_, 0) => match (a.chars().next(), b.chars().next()) {
                (None, None) => return Ordering::Equal,
                (x, y) if x == y => {
                    let length = x.map_or(0, char::len_utf8);
                    (a, b) = (&a[length..], &b[length..]);
                    Ordering::Equal
                }
                (x, y) => x.cmp(&y),
            },
            (m, n) => {
                let [x, y] = [&a[..m], &b[..n]].map(|digits| digits.trim_start_matches('0'));
                (a, b) = (&a[m..], &b[n..]);
                x.len().cmp(&y.len()).then_with(|| x.cmp(y))
            }
        };
        if order != Ordering::Equal {
            return order;
        }
    }
}

/// Returns the order of configurations with the file names `names`, and their streams. The order lists indices of names: stream by stream,
/// and within a stream by trajectory number.
pub fn streams_of(names: &[&str]) -> (Vec<usize>, Vec<Stream>) {
    // The common folder is removed from the names, because numbers in the name of the folder do not distinguish chains.
    let folder = common_folder(names);
    let names: Vec<&str> = names.iter().map(|name| &name[folder.len()..]).collect();
    let mut chains: Vec<(String, Vec<(u128, usize)>)> = Vec::new();
    let mut by_chain: HashMap<String, usize> = HashMap::new();
    for (place, name) in names.iter().enumerate() {
        // Configurations whose names have no number stay in the order of the lines.
        let (chain, number) = numbered(name).unwrap_or_else(|| {
            let own = &name[..name.len() - file_of(name).len()];
            (format!("{own}*"), place as u128)
        });
        let chain = format!("{folder}{chain}");
        let at = *by_chain.entry(chain.clone()).or_insert_with(|| {
            chains.push((chain, Vec::new()));
            chains.len() - 1
        });
        chains[at].1.push((number, place));
    }
    // If chains would have fewer than two configurations on average, the numbers in the names are not trajectory numbers.
    if chains.len() > 1 && 2 * chains.len() > names.len() {
        let mut order: Vec<usize> = (0..names.len()).collect();
        if names.iter().all(|name| numbered(name).is_some()) {
            order.sort_by(|a, b| natural(names[*a], names[*b]));
        }
        return (order, vec![Stream { name: format!("{folder}*"), configurations: names.len() }]);
    }
    for (_, chain) in &mut chains {
        chain.sort_unstable();
    }
    let order = chains.iter().flat_map(|(_, chain)| chain.iter().map(|(_, place)| *place)).collect();
    (order, chains.into_iter().map(|(name, chain)| Stream { name, configurations: chain.len() }).collect())
}

/// Returns the error message for lines without a configuration.
pub(super) fn no_configuration(lines: &[RecordLine]) -> String {
    let file = lines.first().map_or("", |line| &line.place.file);
    format!("{file}: there is no configuration yet; try again after the first one has been measured")
}

/// Returns the elements of `all` in the order of the indices in `order`.
pub fn in_order<T>(all: Vec<T>, order: &[usize]) -> Vec<T> {
    let mut all: Vec<Option<T>> = all.into_iter().map(Some).collect();
    order.iter().filter_map(|place| all[*place].take()).collect()
}

/// Describes streams, without the folders that all their names have in common: `2 streams: a.*.ildg (20 configurations), b.*.ildg (10
/// configurations)`. Returns `None` for a single stream.
pub fn streams_sentence(streams: &[Stream]) -> Option<String> {
    if streams.len() < 2 {
        return None;
    }
    let mut common = streams[0].name.as_str();
    for stream in streams {
        while !stream.name.starts_with(common) {
            common = &common[..common.char_indices().next_back().map_or(0, |(at, _)| at)];
        }
    }
    let from = common.rfind('/').map_or(0, |at| at + 1);
    let one = |stream: &Stream| format!("{} ({})", &stream.name[from..], count(stream.configurations, "configuration"));
    let shown: Vec<String> = streams.iter().take(8).map(one).collect();
    let more = if streams.len() > 8 { ", …" } else { "" };
    Some(format!("{}: {}{more}", count(streams.len(), "stream"), shown.join(", ")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use ferrite_records::configuration::Stamp;
    use serde_json::json;

    fn member(line: usize, name: &str, crc32: Option<&str>, input: Value) -> Member {
        let content = crc32.map(|crc32| ContentRecord {
            stamp: Stamp { bytes: 100, modified: line.to_string() },
            crc32: crc32.into(),
        });
        let place = LinePosition { file: "a.jsonl".into(), line };
        Member { place, name: name.into(), content, input, about: json!({ "operator": "wilson" }) }
    }

    #[test]
    fn configurations_count_once() {
        let mut all = Ensemble::default();
        all.add(member(1, "/x/cfg.1", Some("a"), Value::Null)).unwrap();
        all.add(member(2, "/x/cfg.2", Some("b"), Value::Null)).unwrap();
        // A chain that rejects a trajectory writes the same links under another name: both count.
        all.add(member(3, "/x/cfg.3", Some("b"), Value::Null)).unwrap();
        let why = all.add(member(4, "/x/cfg.1", Some("a"), Value::Null)).unwrap_err();
        assert_eq!(
            why,
            "a.jsonl, line 4: /x/cfg.1 occurs twice, first in a.jsonl, line 1, and would count twice: remove one of \
             the lines"
        );
        let why = all.add(member(5, "/y/cfg.2", Some("b"), Value::Null)).unwrap_err();
        assert!(why.contains("first in a.jsonl, line 2 as /x/cfg.2, with the same bytes"), "{why}");
        let why = all.add(member(6, "/x/cfg.2", Some("c"), Value::Null)).unwrap_err();
        assert!(why.contains("when the file held other links"), "{why}");
        // Another stream in another folder.
        all.add(member(7, "/y/cfg.2", Some("d"), Value::Null)).unwrap();
        assert_eq!(all.len(), 4);
    }

    #[test]
    fn lines_of_different_inputs_are_refused() {
        let mut all = Ensemble::default();
        let input = |csw: &str| json!({ "solve": { "operator": "clover", "mass": "0.3", "csw": csw } });
        all.add(member(1, "c1", None, input("1.0"))).unwrap();
        all.add(member(2, "c2", None, input("1"))).unwrap();
        let why = all.add(member(3, "c3", None, input("1.5"))).unwrap_err();
        assert_eq!(
            why,
            "a.jsonl, line 3: solve.csw is 1.5, but 1 in a.jsonl, line 1: means over lines of different inputs have no \
             meaning; analyse them separately"
        );
        // Without inputs their other keys are compared.
        let other = Member { about: json!({ "operator": "clover" }), ..member(4, "c4", None, Value::Null) };
        let why = all.add(other).unwrap_err();
        assert!(why.contains("operator is clover, but wilson in a.jsonl, line 1"), "{why}");
    }

    fn order(names: &[&str]) -> (Vec<usize>, Vec<(String, usize)>) {
        let (order, streams) = streams_of(names);
        (order, streams.into_iter().map(|stream| (stream.name, stream.configurations)).collect())
    }

    #[test]
    fn streams_are_found_by_names_and_ordered_by_numbers() {
        let one = |name: &str, n: usize| (name.to_string(), n);
        // As a shell lists them.
        assert_eq!(order(&["cfg.1", "cfg.10", "cfg.2"]), (vec![0, 2, 1], vec![one("cfg.*", 3)]));
        assert_eq!(order(&["x/c.10.h5", "x/c.9.h5"]), (vec![1, 0], vec![one("x/c.*.h5", 2)]));
        // MILC's streams a and b; openQCD's replica; folders.
        let milc = ["l48f211b600a.10", "l48f211b600b.5", "l48f211b600a.5", "l48f211b600b.10"];
        assert_eq!(order(&milc), (vec![2, 0, 1, 3], vec![one("l48f211b600a.*", 2), one("l48f211b600b.*", 2)]));
        let openqcd = ["A2r000n1", "A2r000n2", "A2r001n1", "A2r001n2"];
        assert_eq!(order(&openqcd).1, [one("A2r000n*", 2), one("A2r001n*", 2)]);
        let folders = ["/a/cfg.000100.ildg", "/b/cfg.000100.ildg", "/b/cfg.000050.ildg", "/a/cfg.000200.ildg"];
        assert_eq!(order(&folders), (vec![0, 3, 2, 1], vec![one("/a/cfg.*.ildg", 2), one("/b/cfg.*.ildg", 2)]));
        // A folder for each configuration.
        assert_eq!(order(&["run/20/lat", "run/3/lat"]), (vec![1, 0], vec![one("run/*/lat", 2)]));
        // Without numbers: as the lines are.
        assert_eq!(order(&["c.ildg", "a.ildg", "b.ildg"]), (vec![0, 1, 2], vec![one("*", 3)]));
        // In a folder whose number says nothing.
        assert_eq!(order(&["/run5/weak", "/run5/other"]), (vec![0, 1], vec![one("/run5/*", 2)]));
        // Numbers that are not those of trajectories.
        assert_eq!(order(&["10/l48.lat", "9/l48.lat"]), (vec![1, 0], vec![one("*", 2)]));
        assert_eq!(order(&["ñ.1é", "ñ.0é"]), (vec![1, 0], vec![one("ñ.*é", 2)]));
    }

    #[test]
    fn streams_are_named() {
        let stream = |name: &str, configurations| Stream { name: name.into(), configurations };
        assert_eq!(streams_sentence(&[stream("/x/c.*", 3)]), None);
        let two = [stream("/x/run/a.*.ildg", 1), stream("/x/run/b.*.ildg", 2)];
        let expected = "2 streams: a.*.ildg (1 configuration), b.*.ildg (2 configurations)";
        assert_eq!(streams_sentence(&two).as_deref(), Some(expected));
    }
}
