//! Copying of a file's metadata when its field is written to another file.
use super::formats::MetadataPlace;
use super::xml::Elements;
use super::{Header, NO_LFN, WriteOptions, milc, nersc};
use crate::system::utc_now;

/// Type of the LIME record that lists the earlier copies of a field, one on each line.
const COPIES: &str = "ferrite-copies";
/// Key of a NERSC header that lists the earlier copies of a field.
const COPIED: &str = "COPIED";
/// Types of records that writers compute from the field.
const COMPUTED: [&str; 4] = ["scidac-private-file-xml", "scidac-private-record-xml", "ildg-format", "scidac-checksum"];
const RECORD: &str = "scidac-record-xml";
const LFN: &str = "ildg-data-lfn";
const XLF: &str = "xlf-info";
const TITLE: &str = "scidac-file-xml";

/// Copy of the metadata of a file: the original, and how the copied field differs from it.
pub struct MetadataCopy<'a> {
    /// Header of the original file.
    pub header: &'a Header,
    /// Name of the original file, which the copy records.
    pub from: &'a str,
    /// Whether the numbers of the copy are those of the original, without projection or rounding.
    pub same_numbers: bool,
    /// Whether the plaquette of the copy is that in the header of the original; also true if this header contains none.
    pub same_plaquette: bool,
}

impl MetadataCopy<'_> {
    /// Adds the metadata of the original to the options for writing the copy, if the format of the copy has a place for them, and adds a
    /// note on the copy. Returns descriptions of what could not be copied, such as `the record xlf-info`.
    pub fn copy_to(&self, options: &mut WriteOptions) -> Vec<String> {
        let mut left = self.header.omitted.clone();
        let copy = format!("{} {}, from {}", utc_now(), concat!("ferrite ", env!("CARGO_PKG_VERSION")), self.from);
        let copies = match self.header.format.metadata {
            MetadataPlace::Records { .. } => self.records(options, &mut left),
            _ => self.keys(options),
        };
        let all: Vec<String> = copies.into_iter().chain([copy]).collect();
        let stamp = match options.format.metadata {
            MetadataPlace::Records { .. } => {
                options.records.push((COPIES.into(), all.join("\n") + "\n"));
                return left;
            }
            MetadataPlace::Keys { .. } => {
                options.metadata.push((COPIED.into(), all.join("; ")));
                return left;
            }
            MetadataPlace::Stamp(is_there) => is_there(&options.metadata),
            MetadataPlace::None => false,
        };
        let has_place = |key: &str| stamp && milc::STAMPS.contains(&key);
        left.extend(options.metadata.iter().filter(|(key, _)| !has_place(key)).map(|(key, _)| key.clone()));
        left
    }
    /// Copies the keys of a NERSC header, or the time stamp of a MILC file. Returns the list of earlier copies.
    fn keys(&self, options: &mut WriteOptions) -> Vec<String> {
        let (copies, keys): (Vec<_>, Vec<_>) = self
            .header
            .metadata
            .iter()
            .filter(|(key, _)| !nersc::is_computed(key))
            .cloned()
            .partition(|(key, _)| key == COPIED);
        options.metadata.extend(keys);
        copies.into_iter().flat_map(|(_, text)| text.split("; ").map(String::from).collect::<Vec<_>>()).collect()
    }
    /// Copies the records of a LIME file. Returns the list of earlier copies.
    fn records(&self, options: &mut WriteOptions, left: &mut Vec<String>) -> Vec<String> {
        let mut copies = Vec::new();
        for (kind, text) in &self.header.metadata {
            if COMPUTED.contains(&kind.as_str()) || text.trim().is_empty() || (kind == LFN && text == NO_LFN) {
                continue;
            }
            let leave = |left: &mut Vec<String>| left.push(format!("the record {kind}"));
            match (kind.as_str(), options.format.metadata) {
                (COPIES, _) => copies = text.lines().map(String::from).collect(),
                (LFN, MetadataPlace::Records { file_name: true }) if self.same_numbers => options.lfn = text.clone(),
                (LFN, MetadataPlace::Records { file_name: true }) => {
                    left.push(format!("the logical file name {text}, because the copy has other numbers"));
                }
                (LFN, _) => leave(left),
                (XLF, MetadataPlace::Records { .. }) if !self.same_plaquette => {
                    left.push(format!("the plaquette in {kind}, because the plaquette of the copy differs"));
                    options.records.push((kind.clone(), text.replacen("plaquette", "plaquette_of_source", 1)));
                }
                (_, MetadataPlace::Records { .. }) => options.records.push((kind.clone(), text.clone())),
                // The user record consists of lines KEY = VALUE.
                (RECORD, _) => {
                    let xml = Elements::of(text);
                    let lines: Vec<_> = xml.text("info").unwrap_or_default().lines().map(str::trim).collect();
                    let pairs = lines.iter().filter_map(|line| line.split_once(" = "));
                    let pairs: Vec<_> = pairs.filter(|(key, _)| !nersc::is_computed(key)).collect();
                    if pairs.len() < lines.len() || (lines.is_empty() && !is_empty(text)) {
                        leave(left);
                    }
                    options.metadata.extend(pairs.into_iter().map(|(key, value)| (key.into(), value.into())));
                }
                (TITLE, MetadataPlace::Keys { title: true }) => match title(text) {
                    Some(title) => options.title = title,
                    None => leave(left),
                },
                _ => leave(left),
            }
        }
        copies
    }
}

/// Returns the title in a record: the text of the XML element `title`, or the whole text if it is not XML.
fn title(record: &str) -> Option<String> {
    let xml = Elements::of(record);
    let text = xml.text("title").or_else(|| Some(record.trim()).filter(|text| !text.contains(['<', '\n'])));
    text.map(String::from)
}

/// Whether a record of XML has no content.
fn is_empty(record: &str) -> bool {
    let behind = record.trim().split_once("?>").map_or(record, |(_, behind)| behind);
    ["", "<info></info>", "<info/>"].contains(&behind.trim())
}
