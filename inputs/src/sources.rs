//! Texts of input files, and TOML values in texts.
use crate::mistakes::Mistakes;
use crate::text;
use std::cell::Cell;
use std::io::Read as _;
use std::path::Path;
use std::rc::Rc;
use toml::Spanned;
use toml::de::{DeInteger, DeTable, DeValue};

/// Largest size of an input in bytes, which exceeds the needs of any input by far.
const MOST_BYTES: u64 = 16 << 20;

/// Returns the texts and decimal numbers of an array in TOML; `None` for anything else.
pub(crate) fn array(text: &str) -> Option<Vec<String>> {
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

/// Returns the sites of an array of arrays, each joined with commas; `None` for anything else.
pub(crate) fn sites(text: &str) -> Option<Vec<String>> {
    let line = format!("list = {}", text.trim());
    let table = DeTable::parse(&line).ok()?;
    let DeValue::Array(list) = table.get_ref().get("list")?.get_ref() else { return None };
    list.iter().map(|value| whole_numbers(value.get_ref())).collect()
}

/// Returns an array of whole numbers joined with commas.
pub(crate) fn whole_numbers(value: &DeValue) -> Option<String> {
    let DeValue::Array(list) = value else { return None };
    let one = |value: &Spanned<DeValue>| match value.get_ref() {
        DeValue::Integer(i) => Some(decimal(i)),
        _ => None,
    };
    Some(list.iter().map(one).collect::<Option<Vec<String>>>()?.join(","))
}

/// Returns a number as typed; a whole number in decimal digits.
pub(crate) fn number(value: &DeValue) -> Option<String> {
    match value {
        DeValue::Integer(i) => Some(decimal(i)),
        DeValue::Float(f) => Some(f.as_str().into()),
        _ => None,
    }
}

/// Returns a whole number in decimal digits, even if it is typed in hexadecimal, octal or binary form. A number too
/// long for any key stays as it is.
pub(crate) fn decimal(integer: &DeInteger) -> String {
    match (integer.radix(), u128::from_str_radix(integer.as_str(), integer.radix())) {
        (10, _) => integer.as_str().into(),
        (_, Ok(n)) => n.to_string(),
        (_, Err(_)) => integer.to_string(),
    }
}

/// Returns the decimal digits of a whole number with the prefix of another base, such as 0x1f; `None` for any other
/// text.
pub(crate) fn from_other_base(text: &str) -> Option<String> {
    let line = format!("number = {}", text.trim());
    let table = DeTable::parse(&line).ok()?;
    match table.get_ref().get("number")?.get_ref() {
        DeValue::Integer(i) if i.radix() != 10 => Some(decimal(i)),
        _ => None,
    }
}

/// Returns the text of an input file. Fails if the file cannot be an input.
pub(crate) fn text_of(path: &Path) -> Result<String, Mistakes> {
    let refused = |what: String| Mistakes(format!("{}: {what}", path.display()));
    let cannot = |why: std::io::Error| refused(format!("cannot be read: {why}"));
    let mut bytes = Vec::new();
    let file = std::fs::File::open(path).map_err(cannot)?;
    file.take(MOST_BYTES + 1).read_to_end(&mut bytes).map_err(cannot)?;
    if bytes.len() as u64 > MOST_BYTES {
        let most = text::bytes(MOST_BYTES as usize);
        return Err(refused(format!(
            "the file is longer than {most}, the limit for an input; check that it is not a data file"
        )));
    }
    String::from_utf8(bytes).map_err(|e| {
        let byte = e.utf8_error().valid_up_to();
        refused(format!("the file is not text, because byte {byte} is not UTF-8; an input is a text file in TOML"))
    })
}

/// Text of an input file, with the positions of its lines.
pub(crate) struct InputText<'t> {
    text: &'t str,
    pub(crate) name: Rc<str>,
    /// Positions of the first byte of each line.
    lines: Vec<usize>,
    /// Byte of the last lookup, and its column. Values of a list follow each other, perhaps on a long line, so that the next lookup can
    /// start here.
    last: Cell<(usize, usize)>,
}

impl<'t> InputText<'t> {
    pub(crate) fn new(text: &'t str, name: Rc<str>) -> Self {
        let ends = text.bytes().enumerate().filter(|(_, byte)| *byte == b'\n').map(|(at, _)| at + 1);
        InputText { text, name, lines: std::iter::once(0).chain(ends).collect(), last: Cell::new((0, 1)) }
    }
    /// Returns a line by its number, from 1, without its line break.
    pub(crate) fn line(&self, number: usize) -> &'t str {
        let begin = self.lines[number - 1];
        self.text[begin..].lines().next().unwrap_or_default()
    }
    /// Returns line and column of a byte, from 1; columns count characters.
    pub(crate) fn position(&self, byte: usize) -> (usize, usize) {
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
