//! Definitions of file formats: how files are recognised, what they contain, and how they are read and written. The program, its help and
//! the Python package take the formats from the table [`FILE_FAMILIES`].
use super::checks;
use super::frame::Frame;
use super::image::Image;
use super::parts::FileParts;
use super::{Endian, FILE_FAMILIES, FilePrecision, Header, Problem, ReadOptions, WriteOptions};
use crate::field::host::HostGauge;
use crate::gauge::measure::Plaquettes;
use crate::lattice::Lattice;
use std::path::Path;

/// Family of formats whose files are recognised and read in the same way.
pub struct FileFamily {
    /// Description of the beginning of files, for the message on files of an unknown format. If it is empty, the message omits the family.
    pub(crate) signature: &'static str,
    pub(crate) recognition: Recognition,
    /// Function that reads the header of a field.
    pub(crate) header: fn(&mut Image, &ReadOptions) -> Result<Header, Problem>,
    /// Function that reads the headers of several fermion fields, where a site has numbers with the given axes. It returns `None` for other
    /// files.
    pub(crate) block: ReadBlock,
    /// Name of the part of a file that specifies the byte order, for messages.
    pub(crate) byte_order: &'static str,
    /// Formats of the family, in the order of help texts.
    pub formats: &'static [&'static FileFormat],
}

type ReadBlock = fn(&mut Image, &ReadOptions, &[usize]) -> Result<Option<FieldBlock>, Problem>;

/// Method by which files of a family are recognised.
pub(crate) enum Recognition {
    /// Recognition by the first [`START`] bytes of a file.
    Start(fn(&[u8]) -> bool),
    /// Recognition by more of the content, if the first bytes are not those of another family.
    Content(fn(&mut Image, &ReadOptions) -> Result<bool, Problem>),
}

/// Number of bytes that [`Recognition::Start`] receives.
pub(crate) const START: u64 = 12;

/// Several fermion fields in one file.
pub(crate) struct FieldBlock {
    /// Header of the first field, in which `fields` is the number of all fields.
    pub first: Header,
    /// Headers of all fields, if each has its own record; otherwise empty.
    pub records: Vec<Header>,
}

impl FieldBlock {
    /// Makes the block of a propagator. Its fields are the columns of the propagator, one for each of the `components` components of a
    /// source.
    pub fn of_columns(header: Header, components: usize) -> Self {
        Self { first: Header { fields: components, ..header }, records: Vec::new() }
    }
}

/// Definition of a file format.
pub struct FileFormat {
    /// Name of the format in JSON.
    pub name: &'static str,
    /// Name of the format in sentences.
    pub title: &'static str,
    /// Value of `--format`; formats for different fields may share it. `None` if the format can only be read.
    pub flag: Option<&'static str>,
    /// Help text for the value of `--format`.
    pub summary: &'static str,
    /// Cargo feature that the format needs and this build lacks; `None` if the format is available.
    pub missing_feature: Option<&'static str>,
    /// The only precision that the format can store; `None` if it can store both.
    pub only: Option<OnlyPrecision>,
    /// Properties and writer of links; `None` if the format does not store links.
    pub links: Option<LinksFormat>,
    /// Properties and writer of fermion fields; `None` if the format does not store fermion fields.
    pub fermions: Option<FermionsFormat>,
    pub(crate) metadata: MetadataPlace,
}

/// The only precision that a format can store.
#[derive(Clone, Copy, Debug)]
pub struct OnlyPrecision {
    /// Precision that the format can store: single or double.
    pub precision: FilePrecision,
    /// Subject of a sentence about files of the format, for messages.
    pub whose: &'static str,
    /// Names of formats that can store the other precision.
    pub others: &'static str,
}

/// Properties of a format that stores links.
#[derive(Clone, Copy)]
pub struct LinksFormat {
    /// Extensions of file names that select the format, without the dot.
    pub endings: &'static [&'static str],
    /// Whether only two rows of each link are stored, which requires links in SU(3).
    pub two_rows: bool,
    /// Whether files of the format may contain fat and long links.
    pub off_su3: bool,
    pub(crate) frame: fn(&LinksToWrite, &WriteOptions) -> Result<Frame, Problem>,
}

/// Properties of a format that stores fermion fields.
#[derive(Clone, Copy)]
pub struct FermionsFormat {
    /// Extensions of file names that select the format, without the dot.
    pub endings: &'static [&'static str],
    /// Function that returns whether a file of the format can store certain fields. Its arguments are the number of components on a site,
    /// and the lengths of the axes before those of the lattice: none for a single field, `[components]` for a propagator.
    pub holds: fn(usize, &[usize]) -> bool,
    /// Clause that states which fermion fields a file of the format can store, for messages.
    pub limits: &'static str,
    /// Names of formats that can store other fermion fields, for messages.
    pub instead: &'static str,
    /// Byte order that other programs expect in files of the format.
    pub endian: Endian,
    pub(crate) frame: fn(&FermionsToWrite, &WriteOptions) -> Result<Frame, Problem>,
}

/// A gauge field to write; each process has a part of it.
pub(crate) struct LinksToWrite<'a> {
    pub gauge: &'a HostGauge,
    pub parts: &'a FileParts<'a>,
}

impl LinksToWrite<'_> {
    /// Returns the extents of the whole lattice.
    pub fn lattice(&self) -> Lattice {
        self.parts.mine().global
    }
    /// *Collective.* Returns the mean plaquettes and the mean link trace of the whole field.
    pub fn measured(&self) -> Result<(Plaquettes, f64), Problem> {
        checks::measured(self.gauge, self.parts)
    }
}

/// Shape of fermion fields to write.
pub(crate) struct FermionsToWrite<'a> {
    /// Extents of the whole lattice.
    pub lattice: Lattice,
    /// Lengths of the axes before those of the lattice.
    pub axes: &'a [usize],
    /// Lengths of the axes of the numbers on a site.
    pub site: &'a [usize],
}

impl FermionsToWrite<'_> {
    /// Returns the number of complex numbers of a field on one site.
    pub fn components(&self) -> usize {
        self.site.iter().product()
    }
}

/// Place in files of a format for metadata of the original file of a field.
#[derive(Clone, Copy)]
pub(crate) enum MetadataPlace {
    /// Records of a LIME file; `file_name` indicates a record for the logical file name.
    Records { file_name: bool },
    /// Keys of a header; `title` indicates a key for a title.
    Keys { title: bool },
    /// A time stamp only. The function returns whether the given keys contain one.
    Stamp(fn(&[(String, String)]) -> bool),
    /// There is no place for metadata.
    None,
}

impl FileFormat {
    /// Returns the format in which a gauge field is written to a file of this name, according to the extension; `None` if no format has
    /// this extension.
    pub fn of_gauge_file(path: &Path) -> Option<&'static Self> {
        by_ending(path, |format| format.links.as_ref().map(|links| links.endings))
    }
    /// Returns the format in which fermion fields are written to a file of this name, according to the extension; `None` if no format has
    /// this extension.
    pub fn of_fermion_file(path: &Path) -> Option<&'static Self> {
        by_ending(path, |format| format.fermions.as_ref().map(|fermions| fermions.endings))
    }
    /// Returns the only precision that the format can store; `None` if it can store both.
    pub fn only_precision(&self) -> Option<FilePrecision> {
        self.only.map(|only| only.precision)
    }
    /// Whether a file of the format can store fermion fields with `components` components on a site and the axes `axes` before those of the
    /// lattice.
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

/// Returns the formats that this build can write.
fn written() -> impl Iterator<Item = &'static FileFormat> {
    formats().filter(|format| format.missing_feature.is_none())
}

/// Returns the extensions for files of links, for messages: `.ildg, .lime or .npy`.
pub fn endings_of_gauge_files() -> String {
    let endings = written().filter_map(|format| format.links.as_ref()).flat_map(|links| links.endings);
    alternatives(endings.map(|ending| format!(".{ending}")), "or")
}

/// Returns the extensions for files that can store both spinors and colour vectors, for messages: `.npy or .lime`. Formats that can store
/// any number of fields come first.
pub fn endings_of_fermion_files() -> String {
    let mut all: Vec<_> = of_any_fermions().filter_map(|format| format.fermions.as_ref()).collect();
    all.sort_by_key(|fermions| !(fermions.holds)(12, &[2, 12]));
    alternatives(all.iter().filter_map(|fermions| fermions.endings.first()).map(|ending| format!(".{ending}")), "or")
}

/// Returns the extensions for files that can store fat and long links, for messages.
pub fn endings_off_su3() -> String {
    let links = written().filter_map(|format| format.links.as_ref()).filter(|links| links.off_su3);
    alternatives(links.flat_map(|links| links.endings).map(|ending| format!(".{ending}")), "or")
}

/// Returns the formats of this build that can store both spinors and colour vectors.
pub fn of_any_fermions() -> impl Iterator<Item = &'static FileFormat> {
    written().filter(|format| [3, 12].iter().all(|components| format.holds_fermions(*components, &[])))
}

/// Returns descriptions of the beginnings of files of all formats, for messages. Formats that are recognised by their first bytes come
/// first.
pub(crate) fn signatures() -> String {
    let by_start = |family: &&FileFamily| matches!(family.recognition, Recognition::Start(_));
    let (start, content): (Vec<&FileFamily>, Vec<_>) = FILE_FAMILIES.into_iter().partition(by_start);
    let all = start.into_iter().chain(content).map(|family| family.signature).filter(|text| !text.is_empty());
    alternatives(all.map(String::from), "and")
}

/// Joins texts by commas, and the last two by `word`.
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
