//! File formats as definitions: their recognition, their content, and their readers and writers. Readers and writers, the program and its
//! help, and the Python package take formats from the table [`FILE_FAMILIES`].
use super::checks;
use super::frame::Frame;
use super::image::Image;
use super::parts::FileParts;
use super::{Endian, FILE_FAMILIES, FilePrecision, Header, Problem, ReadOptions, WriteOptions};
use crate::field::host::HostGauge;
use crate::gauge::measure::Plaquettes;
use crate::lattice::Lattice;
use std::path::Path;

/// Formats whose files are recognised and read in the same way.
pub struct FileFamily {
    /// Beginning of files, for the message on a file of an unknown format; empty if this message leaves the family out.
    pub(crate) signature: &'static str,
    pub(crate) recognition: Recognition,
    /// Reads the header of a field.
    pub(crate) header: fn(&mut Image, &ReadOptions) -> Result<Header, Problem>,
    /// Reads the headers of several fermion fields, whose numbers on a site have these axes; `None` if the file is something else.
    pub(crate) block: ReadBlock,
    /// Name of the part of a file that specifies the byte order, in messages.
    pub(crate) byte_order: &'static str,
    /// The formats, in the order of help texts.
    pub formats: &'static [&'static FileFormat],
}

type ReadBlock = fn(&mut Image, &ReadOptions, &[usize]) -> Result<Option<FieldBlock>, Problem>;

/// Recognition of files of a format.
pub(crate) enum Recognition {
    /// Recognises files by their first [`START`] bytes.
    Start(fn(&[u8]) -> bool),
    /// Recognises files by more of their content, if no format was recognised by its first bytes.
    Content(fn(&mut Image, &ReadOptions) -> Result<bool, Problem>),
}

/// Number of bytes by which [`Recognition::Start`] recognises a file.
pub(crate) const START: u64 = 12;

/// Several fermion fields of a file.
pub(crate) struct FieldBlock {
    /// Header of the first field, with the number of all.
    pub first: Header,
    /// Headers of all fields, if each is a record of its own.
    pub records: Vec<Header>,
}

impl FieldBlock {
    /// Makes the block of the columns of a propagator, one for each of the `components` of a field.
    pub fn of_columns(header: Header, components: usize) -> Self {
        Self { first: Header { fields: components, ..header }, records: Vec::new() }
    }
}

/// A file format.
pub struct FileFormat {
    /// Name in JSON.
    pub name: &'static str,
    /// Name in sentences.
    pub title: &'static str,
    /// Name as a value of `--format`; formats that hold different fields may share it. `None` if the format is only read.
    pub flag: Option<&'static str>,
    /// Help text of this value.
    pub summary: &'static str,
    /// Cargo feature that this build needs to read or write the format, if it is missing.
    pub missing_feature: Option<&'static str>,
    /// Precision of the format, if it has only one.
    pub only: Option<OnlyPrecision>,
    /// Writer of links, if the format holds any.
    pub links: Option<LinksFormat>,
    /// Writer of fermion fields, if the format holds any.
    pub fermions: Option<FermionsFormat>,
    pub(crate) metadata: MetadataPlace,
}

/// The only precision of a format.
#[derive(Clone, Copy, Debug)]
pub struct OnlyPrecision {
    /// Precision: single or double.
    pub precision: FilePrecision,
    /// Subject of a sentence on files of the format.
    pub whose: &'static str,
    /// Formats that hold the other precision.
    pub others: &'static str,
}

/// Links in a format.
#[derive(Clone, Copy)]
pub struct LinksFormat {
    /// Endings of file names that select the format, without the point.
    pub endings: &'static [&'static str],
    /// Whether only two rows of each link are stored, so that links have to be in SU(3).
    pub two_rows: bool,
    /// Whether fat and long links are stored in it.
    pub off_su3: bool,
    pub(crate) frame: fn(&LinksToWrite, &WriteOptions) -> Result<Frame, Problem>,
}

/// Fermion fields in a format.
#[derive(Clone, Copy)]
pub struct FermionsFormat {
    /// Endings of file names that select the format, without the point.
    pub endings: &'static [&'static str],
    /// Whether a file holds fields with this many components on a site, with these axes before those of the lattice: none for a single
    /// field, `[components]` for a propagator.
    pub holds: fn(usize, &[usize]) -> bool,
    /// Clause on the fields that a file holds.
    pub limits: &'static str,
    /// Formats that hold other fields.
    pub instead: &'static str,
    /// Byte order that other programs expect.
    pub endian: Endian,
    pub(crate) frame: fn(&FermionsToWrite, &WriteOptions) -> Result<Frame, Problem>,
}

/// *Collective.* A gauge field of which each process writes its part.
pub(crate) struct LinksToWrite<'a> {
    pub gauge: &'a HostGauge,
    pub parts: &'a FileParts<'a>,
}

impl LinksToWrite<'_> {
    /// Returns the whole lattice.
    pub fn lattice(&self) -> Lattice {
        self.parts.mine().global
    }
    /// *Collective.* Returns plaquettes and link trace of the whole field.
    pub fn measured(&self) -> Result<(Plaquettes, f64), Problem> {
        checks::measured(self.gauge, self.parts)
    }
}

/// Extents of fermion fields that are written.
pub(crate) struct FermionsToWrite<'a> {
    /// The whole lattice.
    pub lattice: Lattice,
    /// Axes before those of the lattice.
    pub axes: &'a [usize],
    /// Axes of the numbers on a site.
    pub site: &'a [usize],
}

impl FermionsToWrite<'_> {
    /// Returns the number of complex numbers of a field on a site.
    pub fn components(&self) -> usize {
        self.site.iter().product()
    }
}

/// Place in files for metadata copied from the original files of their fields.
#[derive(Clone, Copy)]
pub(crate) enum MetadataPlace {
    /// Records of a LIME file, one of which may hold the logical file name.
    Records { file_name: bool },
    /// Keys of a header, one of which may be a title.
    Keys { title: bool },
    /// A time stamp, if this function finds one among keys.
    Stamp(fn(&[(String, String)]) -> bool),
    /// No place.
    None,
}

impl FileFormat {
    /// Returns the format of a gauge field that is written to a file of this name, by its ending.
    pub fn of_gauge_file(path: &Path) -> Option<&'static Self> {
        by_ending(path, |format| format.links.as_ref().map(|links| links.endings))
    }
    /// Returns the format of fermion fields that are written to a file of this name, by its ending.
    pub fn of_fermion_file(path: &Path) -> Option<&'static Self> {
        by_ending(path, |format| format.fermions.as_ref().map(|fermions| fermions.endings))
    }
    /// Returns the only precision that the format holds, if there is only one.
    pub fn only_precision(&self) -> Option<FilePrecision> {
        self.only.map(|only| only.precision)
    }
    /// Returns whether a file holds fermion fields with this many components on a site, with these axes before those of the lattice.
    pub fn holds_fermions(&self, components: usize, axes: &[usize]) -> bool {
        self.fermions.as_ref().is_some_and(|fermions| (fermions.holds)(components, axes))
    }
}

/// Formats are compared by their names.
impl PartialEq for FileFormat {
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name
    }
}

impl Eq for FileFormat {}

impl std::fmt::Debug for FileFormat {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name)
    }
}

impl std::fmt::Display for FileFormat {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.title)
    }
}

fn by_ending(
    path: &Path,
    endings: impl Fn(&FileFormat) -> Option<&'static [&'static str]>,
) -> Option<&'static FileFormat> {
    let ending = path.extension().unwrap_or_default().to_string_lossy().to_lowercase();
    formats().find(|format| endings(format).is_some_and(|endings| endings.contains(&ending.as_str())))
}

/// Returns all formats, in the order of help texts.
pub fn formats() -> impl Iterator<Item = &'static FileFormat> {
    FILE_FAMILIES.iter().flat_map(|family| family.formats.iter().copied())
}

/// Returns the formats that this build writes.
fn written() -> impl Iterator<Item = &'static FileFormat> {
    formats().filter(|format| format.missing_feature.is_none())
}

/// Returns the endings of names of gauge files, for messages: `.ildg, .lime or .npy`.
pub fn endings_of_gauge_files() -> String {
    let endings = written().filter_map(|format| format.links.as_ref()).flat_map(|links| links.endings);
    alternatives(endings.map(|ending| format!(".{ending}")), "or")
}

/// Returns the endings of names of files that hold a fermion field of any kind, for messages: `.npy or .lime`. Formats that hold any
/// number of fields come first.
pub fn endings_of_fermion_files() -> String {
    let mut all: Vec<_> = of_any_fermions().filter_map(|format| format.fermions.as_ref()).collect();
    all.sort_by_key(|fermions| !(fermions.holds)(12, &[2, 12]));
    alternatives(all.iter().filter_map(|fermions| fermions.endings.first()).map(|ending| format!(".{ending}")), "or")
}

/// Returns the endings of names of files for fat and long links, for messages.
pub fn endings_off_su3() -> String {
    let links = written().filter_map(|format| format.links.as_ref()).filter(|links| links.off_su3);
    alternatives(links.flat_map(|links| links.endings).map(|ending| format!(".{ending}")), "or")
}

/// Returns the formats of this build that hold a fermion field of any kind.
pub fn of_any_fermions() -> impl Iterator<Item = &'static FileFormat> {
    written().filter(|format| [3, 12].iter().all(|components| format.holds_fermions(*components, &[])))
}

/// Returns the beginnings of files of all formats, for messages: those that are recognised by their first bytes first.
pub(crate) fn signatures() -> String {
    let by_start = |family: &&FileFamily| matches!(family.recognition, Recognition::Start(_));
    let (start, content): (Vec<&FileFamily>, Vec<_>) = FILE_FAMILIES.into_iter().partition(by_start);
    let all = start.into_iter().chain(content).map(|family| family.signature).filter(|text| !text.is_empty());
    alternatives(all.map(String::from), "and")
}

/// Joins words with commas, and the last two by `word`.
fn alternatives(words: impl Iterator<Item = String>, word: &str) -> String {
    let words: Vec<_> = words.collect();
    match &words[..] {
        [others @ .., last] if !others.is_empty() => format!("{} {word} {last}", others.join(", ")),
        _ => words.concat(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    /// `docs/formats.md` has the table of endings.
    #[test]
    fn all_endings_are_documented() {
        let document = include_str!("../../../docs/formats.md");
        let mut rows: Vec<(&str, [Option<&str>; 2])> = Vec::new();
        for format in formats() {
            let (links, fermions) = (format.links.map(|its| its.endings), format.fermions.map(|its| its.endings));
            for (column, endings) in [links, fermions].into_iter().enumerate() {
                for ending in endings.unwrap_or_default() {
                    let row = rows.iter().position(|(known, _)| known == ending).unwrap_or(rows.len());
                    if row == rows.len() {
                        rows.push((ending, [None; 2]));
                    }
                    assert_eq!(rows[row].1[column].replace(format.title), None, "two formats have the ending {ending}");
                }
            }
        }
        for (ending, formats) in rows {
            let [links, fermions] = formats.map(|format| format.unwrap_or("–"));
            let row = format!("| `.{ending}` | {links} | {fermions} |\n");
            assert!(document.contains(&row), "docs/formats.md has no row {row}");
        }
    }

    #[test]
    fn names_are_unique_and_words_of_the_program_fit_them() {
        let mut names = BTreeSet::new();
        for format in formats() {
            assert!(names.insert(format.name), "{format} has the name of another format");
            assert!(format.links.is_some() || format.fermions.is_some(), "{format} holds nothing");
            // Only what is never written has no word.
            assert_eq!(format.flag.is_none(), *format == crate::files::MILC_V1, "{format}");
            if let Some(flag) = format.flag {
                assert!(format.name.starts_with(&flag.replace('-', "")), "{format}: {flag}");
            }
        }
    }

    #[test]
    fn lists_for_messages() {
        assert!(endings_of_gauge_files().starts_with(".ildg, .lime, .scidac, .nersc, .nersc3x3, .milc, .openqcd"));
        assert!(endings_off_su3().starts_with(".ildg, .lime, .scidac"));
        assert!(endings_of_fermion_files().starts_with(".npy"));
        assert_eq!(alternatives(["a"].map(String::from).into_iter(), "or"), "a");
        assert_eq!(alternatives(["a", "b", "c"].map(String::from).into_iter(), "and"), "a, b and c");
        // Formats that are recognised by more than their first bytes stand last.
        assert!(signatures().contains("npy, openQCD (extents and a plaquette) and KYU (no header"), "{}", signatures());
    }
}
