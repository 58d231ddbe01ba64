//! What a file says of itself beside its field, for a copy of the field in another file.
use super::xml::Elements;
use super::{FileFormat, Header, NO_LFN, WriteOptions, milc, nersc};
use crate::system::utc_now;

/// The record of a LIME file in which copies are noted, a line for each.
const COPIES: &str = "ferrite-copies";
/// The same in a NERSC header.
const COPIED: &str = "COPIED";
/// Records that a writer makes of the field.
const MADE: [&str; 4] = ["scidac-private-file-xml", "scidac-private-record-xml", "ildg-format", "scidac-checksum"];
const RECORD: &str = "scidac-record-xml";
const LFN: &str = "ildg-data-lfn";
const XLF: &str = "xlf-info";
const TITLE: &str = "scidac-file-xml";

/// How a copy is made.
pub struct Copy<'a> {
    /// Of the file that is copied.
    pub header: &'a Header,
    /// Its name, for the note of the copy.
    pub from: &'a str,
    /// Whether the numbers are those of the file: neither projected nor rounded.
    pub same_numbers: bool,
    /// Whether the plaquette that the file states, if any, is that of the copy.
    pub same_plaquette: bool,
}

impl Copy<'_> {
    /// Puts what the file says of itself into the options of the copy, as far as its format has a place, and adds a note of
    /// the copy. Returns what had to be left out, such as `the record xlf-info`.
    pub fn carry(&self, options: &mut WriteOptions) -> Vec<String> {
        let lime = |format| matches!(format, FileFormat::Ildg | FileFormat::Scidac);
        let mut left = self.header.unkept.clone();
        let copy = format!("{} {}, from {}", utc_now(), concat!("ferrite ", env!("CARGO_PKG_VERSION")), self.from);
        let copies = if lime(self.header.format) { self.records(options, &mut left) } else { self.keys(options) };
        let all: Vec<String> = copies.into_iter().chain([copy]).collect();
        match options.format {
            FileFormat::Ildg | FileFormat::Scidac => options.records.push((COPIES.into(), all.join("\n") + "\n")),
            FileFormat::Nersc | FileFormat::Nersc3x3 => options.metadata.push((COPIED.into(), all.join("; "))),
            FileFormat::Milc | FileFormat::MilcV1 | FileFormat::Npy => {
                let stamp = options.format == FileFormat::Milc && milc::stamp_of(&options.metadata).is_some();
                let has_place = |key: &str| stamp && milc::STAMPS.contains(&key);
                left.extend(options.metadata.iter().filter(|(key, _)| !has_place(key)).map(|(key, _)| key.clone()));
            }
        }
        left
    }
    /// From keys of a NERSC header, or the time stamp of a MILC file. Returns earlier copies.
    fn keys(&self, options: &mut WriteOptions) -> Vec<String> {
        let (copies, keys): (Vec<_>, Vec<_>) = self
            .header
            .metadata
            .iter()
            .filter(|(key, _)| !nersc::is_made(key))
            .cloned()
            .partition(|(key, _)| key == COPIED);
        options.metadata.extend(keys);
        copies.into_iter().flat_map(|(_, text)| text.split("; ").map(String::from).collect::<Vec<_>>()).collect()
    }
    /// From records of a LIME file. Returns earlier copies.
    fn records(&self, options: &mut WriteOptions, left: &mut Vec<String>) -> Vec<String> {
        let mut copies = Vec::new();
        for (kind, text) in &self.header.metadata {
            if MADE.contains(&kind.as_str()) || text.trim().is_empty() || (kind == LFN && text == NO_LFN) {
                continue;
            }
            let leave = |left: &mut Vec<String>| left.push(format!("the record {kind}"));
            match (kind.as_str(), options.format) {
                (COPIES, _) => copies = text.lines().map(String::from).collect(),
                (LFN, FileFormat::Ildg) if self.same_numbers => options.lfn = text.clone(),
                (LFN, FileFormat::Ildg) => left.push(format!("the logical file name {text}, of other numbers")),
                (LFN, _) => leave(left),
                (XLF, FileFormat::Ildg | FileFormat::Scidac) if !self.same_plaquette => {
                    left.push(format!("the plaquette of {kind}, of other links"));
                    options.records.push((kind.clone(), text.replacen("plaquette", "plaquette_of_source", 1)));
                }
                (_, FileFormat::Ildg | FileFormat::Scidac) => options.records.push((kind.clone(), text.clone())),
                // Lines that a header of keys and values can have.
                (RECORD, _) => {
                    let xml = Elements::of(text);
                    let lines: Vec<_> = xml.text("info").unwrap_or_default().lines().map(str::trim).collect();
                    let pairs = lines.iter().filter_map(|line| line.split_once(" = "));
                    let pairs: Vec<_> = pairs.filter(|(key, _)| !nersc::is_made(key)).collect();
                    if pairs.len() < lines.len() || (lines.is_empty() && !is_empty(text)) {
                        leave(left);
                    }
                    options.metadata.extend(pairs.into_iter().map(|(key, value)| (key.into(), value.into())));
                }
                (TITLE, FileFormat::Nersc | FileFormat::Nersc3x3) => match title(text) {
                    Some(title) => options.title = title,
                    None => leave(left),
                },
                _ => leave(left),
            }
        }
        copies
    }
}

/// The title of a file, which is an element of XML or all there is.
fn title(record: &str) -> Option<String> {
    let xml = Elements::of(record);
    let text = xml.text("title").or_else(|| Some(record.trim()).filter(|text| !text.contains(['<', '\n'])));
    text.map(String::from)
}

/// Whether a record says nothing but that it is one.
fn is_empty(record: &str) -> bool {
    let behind = record.trim().split_once("?>").map_or(record, |(_, behind)| behind);
    ["", "<info></info>", "<info/>"].contains(&behind.trim())
}
