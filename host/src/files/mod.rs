//! Reading and writing gauge configurations and fermion fields.
//!
//! | format | gauge field | fermion field |
//! |---|---|---|
//! | NERSC archive, two or three rows, 32 or 64 bits, either byte order | read, write | |
//! | ILDG and SciDAC LIME, 32 or 64 bits; SciDAC with a record for each direction | read, write | read, write |
//! | MILC version 5 (and 1), either byte order | read, write (5) | |
//! | openQCD | read, write | |
//! | MILC staggered propagators, either byte order | | read, write |
//! | NumPy `.npy` | read, write | read, write |
//! | HDF5, with the feature `hdf5` | read, write | read, write |
//! | KYU, without a header | read, write | propagators of 12 spinors: read, write |
//!
//! The near-null vectors of a multigrid setup have their own format: [`setup`].
//!
//! The format is recognised from the content of a file, never from its name. Fields that are read are checked against everything that
//! the headers contain: lengths (before memory is allocated), checksum, plaquette and link trace. Numbers must be finite, and links
//! unitary. Functions return a [`FileError`], whose message names the file and the place in it, and advises what to do.
//!
//! Extents may be odd, although devices need even ones: see [`Lattice::of_any_extents`]. Fields with odd extents can be read, checked and
//! written, also by many processes, whose sections may have odd extents too. openQCD's format and multigrid setups need even extents.
//!
//! Sites are in lexicographic order with x fastest. A site has four links (x, y, z, t), each row-major. Spinors are spin-major in the
//! DeGrand–Rossi basis. Files are written completely or not at all.
//!
//! [`read_gauge`] and the other functions take a path if one process reads or writes the whole file. If many processes do so together,
//! all call the function with the same options and with a [`SharedFile`] in place of the path. Each process then reads or writes its own
//! [`Section`](crate::lattice::Section) of the lattice, and needs memory for no more. The sections must make up the lattice; files and
//! messages do not depend on them. The returned field is that of the section, but the header, the checksum, the plaquettes and the worst
//! link belong to the whole field. Either all processes succeed, or all get the same [`FileError`], so that one of them can print it and
//! all can exit. Only a [`Problem::Comm`] may concern a single process. Fields can also be read from memory and written to any writer:
//! see [`ReadFrom`] and [`WriteTo`].
//!
//! ```
//! use ferrite::field::host::HostGauge;
//! use ferrite::files::{NERSC_3X3, ReadOptions, WriteOptions, read_gauge, write_gauge};
//! use ferrite::lattice::Lattice;
//!
//! let path = std::env::temp_dir().join("unit.nersc");
//! let gauge = HostGauge::unit(Lattice::new([4, 4, 4, 8])?);
//! write_gauge(&path, &gauge, &WriteOptions { format: &NERSC_3X3, ..Default::default() })?;
//! let file = read_gauge(&path, &ReadOptions::default())?;
//! assert_eq!(file.gauge, gauge);
//! assert_eq!(file.plaquette.mean, 1.0);
//! # std::fs::remove_file(path)?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
mod arrangement;
mod checks;
mod collective;
mod columns;
mod error;
pub mod formats;
mod frame;
pub mod hdf5;
pub mod ildg;
mod image;
pub mod kyu;
pub mod lime;
mod metadata;
pub mod milc;
pub mod nersc;
pub mod npy;
pub mod openqcd;
mod parts;
pub mod payload;
mod read;
mod runs;
pub mod scidac;
pub mod setup;
mod shared;
mod source;
mod unsupported;
mod write;
mod xml;

pub use arrangement::{Arrangement, ColumnOrder, OwnArrangement};
pub use checks::plaquette_of_part;
pub use error::{FileError, LengthRemedy, Problem};
pub use formats::FileFormat;
pub use hdf5::HDF5;
pub use kyu::KYU;
pub use metadata::MetadataCopy;
pub use milc::{MILC, MILC_PROPAGATOR, MILC_V1};
pub use nersc::{NERSC, NERSC_3X3};
pub use npy::NPY;
pub use openqcd::OPENQCD;
pub use read::{ReadFrom, inspect, inspect_block, read_block, read_fermion, read_fermions, read_field, read_gauge};
pub use scidac::{ILDG, SCIDAC, SCIDAC_DIRECTIONS};
pub use shared::SharedFile;
pub use write::{WriteTo, write_block, write_fermion, write_gauge};

use crate::field::host::{HostField, HostGauge};
use crate::gauge::measure::{Plaquettes, Unitarity};
use crate::lattice::Lattice;
use formats::FileFamily;
use num_complex::Complex64;
use payload::{ChecksumKind, LINKS, PartialChecksum, StoredForm, TWO_ROWS};

/// Families of all file formats, in the order of help texts.
pub static FILE_FAMILIES: [&FileFamily; 7] = [
    &scidac::LIME_FAMILY,
    &nersc::NERSC_FAMILY,
    &milc::MILC_FAMILY,
    &openqcd::OPENQCD_FAMILY,
    &npy::NPY_FAMILY,
    &hdf5::HDF5_FAMILY,
    &kyu::KYU_FAMILY,
];

/// Number of bits of a stored real number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum FilePrecision {
    /// Single precision, 32 bits.
    Single,
    /// Double precision, 64 bits.
    Double,
}

impl FilePrecision {
    /// Returns the number of bytes of a real number: 4 or 8.
    pub fn bytes(self) -> usize {
        match self {
            Self::Single => 4,
            Self::Double => 8,
        }
    }
}

impl std::fmt::Display for FilePrecision {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(if *self == Self::Single { "single" } else { "double" })
    }
}

/// Order of the bytes of a stored number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Endian {
    /// Most significant byte first.
    Big,
    /// Least significant byte first.
    Little,
}

impl std::fmt::Display for Endian {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(if *self == Self::Big { "big" } else { "little" })
    }
}

impl Endian {
    fn other(self) -> Self {
        if self == Self::Big { Self::Little } else { Self::Big }
    }
    fn u32(self, bytes: [u8; 4]) -> u32 {
        match self {
            Self::Big => u32::from_be_bytes(bytes),
            Self::Little => u32::from_le_bytes(bytes),
        }
    }
    fn bytes(self, word: u32) -> [u8; 4] {
        match self {
            Self::Big => word.to_be_bytes(),
            Self::Little => word.to_le_bytes(),
        }
    }
}

/// A number in a header, with the precision to which it was printed.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Printed {
    /// Value of the printed number.
    pub value: f64,
    /// One unit of the last printed digit; 0 if the header stores all bits of the value.
    pub resolution: f64,
}

impl Printed {
    /// Parses a number, which may be in Fortran's notation `1.5D-01`.
    fn parse(text: &str) -> Option<Self> {
        let text = text.replace(['d', 'D'], "e");
        let value = text.parse().ok()?;
        let (mantissa, exponent) = text.split_once(['e', 'E']).unwrap_or((&text, "0"));
        let decimals = mantissa.split_once('.').map_or(0, |(_, decimals)| decimals.len());
        let exponent: f64 = exponent.parse().ok()?;
        Some(Self { value, resolution: 10f64.powf(exponent - decimals as f64) })
    }
    /// Whether the printed number agrees with `computed`, the value for links in `precision`. Differences from rounding in other programs
    /// and in the links are allowed.
    pub fn agrees(&self, computed: f64, precision: FilePrecision) -> bool {
        (self.value - computed).abs() <= checks::tolerance(self, precision)
    }
    /// Whether the number has at least four decimals, and agrees with `computed` up to its last digit or up to rounding in single
    /// precision.
    fn agrees_to_its_digits(&self, computed: f64) -> bool {
        self.resolution < 2e-4 && (self.value - computed).abs() <= (2.0 * self.resolution).max(5e-7)
    }
}

/// Description of a field in a file, from [`inspect`] or from the function `parse` of a format's module. All lengths have been checked
/// against the length of the file.
#[derive(Clone, Debug, PartialEq)]
pub struct Header {
    /// Format of the file.
    pub format: &'static FileFormat,
    /// Extents of the lattice.
    pub lattice: Lattice,
    /// Precision of the stored numbers.
    pub precision: FilePrecision,
    /// Byte order of the stored numbers.
    pub endian: Endian,
    /// Number of complex numbers stored on a site: 36 for four links, 24 for two rows of four links, 12 for a spinor, 3 for a colour
    /// vector, 144 or 9 for a propagator of spinors or colour vectors.
    pub components: usize,
    /// Arrangement of the numbers in the file.
    pub arrangement: Arrangement,
    /// Offset of the first byte of the data.
    pub offset: u64,
    /// Number of bytes of the data and of what follows them, up to the end of the record or file.
    pub data_length: u64,
    /// Kind and value of the checksum in the file; `None` if there is none.
    pub checksum: Option<(ChecksumKind, PartialChecksum)>,
    /// Mean plaquette, Re tr P / 3, in the header; `None` if there is none.
    pub plaquette: Option<Printed>,
    /// Mean link trace, Re tr U / 3, in the header; `None` if there is none.
    pub link_trace: Option<Printed>,
    /// Keys and values of the header, or types and texts of LIME records, in the order of the file.
    pub metadata: Vec<(String, String)>,
    /// Number of fields in the file; [`ReadOptions::record`] selects one. For a block it is the number of fields that [`read_block`] can
    /// read.
    pub fields: usize,
    /// Notes on unusual content that was accepted, as sentences.
    pub notes: Vec<String>,
    /// Descriptions of records that are not in `metadata`, because they are longer than 64 KiB or not text.
    pub omitted: Vec<String>,
}

/// Treatment of problems with a header: with [`ReadOptions::verify`] they are errors, otherwise they become notes.
struct Leniency {
    verify: bool,
    notes: Vec<String>,
}

impl Leniency {
    fn new(options: &ReadOptions) -> Self {
        Self { verify: options.verify, notes: Vec::new() }
    }
    /// Returns the value of an optional entry. An entry that cannot be parsed is an error or becomes a note.
    fn optional<T>(&mut self, read: Result<T, Problem>) -> Result<Option<T>, Problem> {
        match read {
            Ok(value) => Ok(Some(value)),
            Err(Problem::Optional { place, field, found, expected }) if !self.verify => {
                self.notes.push(format!("{place}: {field} is {found:?}, expected {expected}; the value is ignored"));
                Ok(None)
            }
            Err(problem) => Err(problem),
        }
    }
    /// Returns the problem as an error, or notes it; `done` describes the consequence.
    fn or_note(&mut self, problem: Problem, done: &str) -> Result<(), Problem> {
        if self.verify {
            return Err(problem);
        }
        self.notes.push(match problem {
            Problem::Length { place, length, said, .. } => format!("{place} has {length} bytes, but {said}; {done}"),
            problem => format!("{problem}; {done}"),
        });
        Ok(())
    }
}

/// Parses the precision, single or double, in the spellings of several programs.
fn precision_from(text: &str) -> Option<FilePrecision> {
    let word: String = text.chars().filter(|c| c.is_ascii_alphanumeric()).collect();
    match word.to_ascii_lowercase().trim_start_matches("ieee") {
        "32" | "f" | "s" | "f32" | "fp32" | "float" | "float32" | "single" | "32bit" | "32bits" | "singleprecision" => {
            Some(FilePrecision::Single)
        }
        "64" | "d" | "f64" | "fp64" | "float64" | "double" | "64bit" | "64bits" | "doubleprecision" => {
            Some(FilePrecision::Double)
        }
        _ => None,
    }
}

/// Returns the number of colours N in a name that contains `SU(N)` or `suN`.
fn colours_in(name: &str) -> Option<usize> {
    let name = name.to_ascii_lowercase();
    let (_, behind) = name.split_once("su")?;
    let digits: String = behind.trim_start_matches(['(', '_', ' ']).chars().take_while(char::is_ascii_digit).collect();
    digits.parse().ok()
}

/// Parses a checksum of 32 bits in hexadecimal. Some programs print 64 bits, of which the lower 32 are the checksum. A text of nine or ten
/// digits without a letter, or with a sign, is a decimal number.
fn checksum_from(text: &str) -> Option<u32> {
    let text = text.trim();
    let hexadecimal = text.strip_prefix("0x").or_else(|| text.strip_prefix("0X"));
    let digits = hexadecimal.unwrap_or(text);
    if !digits.strip_prefix('-').unwrap_or(digits).bytes().all(|b| b.is_ascii_hexdigit()) {
        return None;
    }
    let decimal = || digits.parse().ok().filter(|sum: &i64| *sum >= i64::from(i32::MIN) && *sum <= i64::from(u32::MAX));
    let is_decimal = hexadecimal.is_none() && (digits.starts_with('-') || (9..=10).contains(&digits.len()));
    match decimal().filter(|_| is_decimal) {
        Some(sum) => Some(sum as u32),
        None => u64::from_str_radix(digits, 16).ok().map(|sum| sum as u32),
    }
}

impl Header {
    /// Returns the number of bytes of a site in the file.
    pub fn site_bytes(&self) -> usize {
        2 * self.components * self.precision.bytes()
    }
    /// Returns the number of complex numbers of a site after reading: `components`, or 36 if the file has two rows of each link.
    pub fn values_per_site(&self) -> usize {
        if self.components == TWO_ROWS { LINKS } else { self.components }
    }
    /// Returns the order of a propagator's numbers on a site; `None` if the field is not a propagator.
    pub fn columns(&self) -> Option<ColumnOrder> {
        match self.arrangement {
            Arrangement::Columns(order) => Some(order),
            Arrangement::Own(own) if matches!(self.components, 144 | 9) => Some(own.columns),
            _ => None,
        }
    }
    /// Returns the storage of the numbers in the file.
    fn form(&self) -> StoredForm {
        let Self { components, precision, endian, .. } = *self;
        StoredForm { components, precision, endian, kind: self.checksum.map(|(kind, _)| kind) }
    }
    /// Returns the number of bytes of data that the lattice and the precision imply.
    fn needed(&self) -> u64 {
        (self.lattice.volume() as u64).saturating_mul(self.site_bytes() as u64)
    }
    fn check_length(&self, file_length: u64) -> Result<(), Problem> {
        let available = file_length.saturating_sub(self.offset);
        if self.needed() > available {
            let what = format!("the field on a {} lattice in {} precision", self.lattice, self.precision);
            return Err(Problem::Truncated { what, offset: self.offset, needed: self.needed(), available });
        }
        Ok(())
    }
}

/// Options for reading a field.
#[derive(Clone, Debug, PartialEq)]
pub struct ReadOptions {
    /// Whether to reject a file whose checksum, plaquette or link trace differs from that of its links, or that is longer than its header
    /// implies. Default: yes.
    pub verify: bool,
    /// Whether to accept links that are not in SU(3), such as fat links. Default: no.
    pub allow_non_unitary: bool,
    /// Whether to project the links to SU(3) after all checks, as MILC and Chroma do for files in single precision. Default: no.
    pub reunitarise: bool,
    /// Extents of the lattice, for a file that does not contain them. If the file contains them, they must agree.
    pub lattice: Option<Lattice>,
    /// Number of the field in a LIME file with several fields, from 0.
    pub record: usize,
}

impl Default for ReadOptions {
    fn default() -> Self {
        Self { verify: true, allow_non_unitary: false, reunitarise: false, lattice: None, record: 0 }
    }
}

/// Options for writing a field.
#[derive(Clone, Debug, PartialEq)]
pub struct WriteOptions {
    /// Format of the file. Default: ILDG.
    pub format: &'static FileFormat,
    /// Precision of the stored numbers. Default: double.
    pub precision: FilePrecision,
    /// Byte order of the stored numbers. Default: big-endian. LIME files are always big-endian, and openQCD's files always little-endian.
    pub endian: Endian,
    /// Title of the file, in one line.
    pub title: String,
    /// Keys of a NERSC header, or lines of the user record of a LIME file. NERSC keys such as `ENSEMBLE_ID` replace the defaults. A MILC
    /// configuration contains only the time stamp, from the key `time stamp` or `CREATION_DATE`; a MILC propagator contains it if `time
    /// stamp` is a number of seconds since 1970.
    pub metadata: Vec<(String, String)>,
    /// Types and texts of records for a LIME file. A record `scidac-file-xml` replaces the one that contains the title, and a record
    /// `scidac-record-xml` the one that contains `metadata`. Other records are added after the field.
    pub records: Vec<(String, String)>,
    /// Logical file name on the Lattice Data Grid.
    pub lfn: String,
}

impl Default for WriteOptions {
    fn default() -> Self {
        Self {
            format: &ILDG,
            precision: FilePrecision::Double,
            endian: Endian::Big,
            title: "written by Ferrite".into(),
            metadata: Vec::new(),
            records: Vec::new(),
            lfn: NO_LFN.into(),
        }
    }
}

/// Logical file name of a file that is not on the Lattice Data Grid.
const NO_LFN: &str = "lfn://none";

/// Result of comparing the checksum in a file with that of its data.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Checksum {
    /// The checksums agree.
    Verified(ChecksumKind),
    /// The file contains no checksum.
    Absent,
    /// The checksums differ: the data are corrupt. This occurs only if [`ReadOptions::verify`] is off.
    Mismatch {
        /// Kind of checksum.
        kind: ChecksumKind,
        /// Checksum in the file.
        stored: PartialChecksum,
        /// Checksum of the data.
        computed: PartialChecksum,
    },
}

impl Checksum {
    fn compare(stored: Option<(ChecksumKind, PartialChecksum)>, computed: PartialChecksum) -> Self {
        match stored {
            None => Self::Absent,
            Some((kind, stored)) if stored == computed => Self::Verified(kind),
            Some((kind, stored)) => Self::Mismatch { kind, stored, computed },
        }
    }
    fn require(&self, options: &ReadOptions) -> Result<(), Problem> {
        match self {
            Self::Mismatch { kind, stored, computed } if options.verify => Err(Problem::Checksum {
                kind: kind.name(),
                stored: kind.print(*stored),
                computed: kind.print(*computed),
            }),
            _ => Ok(()),
        }
    }
}

/// A gauge field that was read, with the results of all checks.
#[derive(Clone, Debug, PartialEq)]
pub struct GaugeFile {
    /// Links of this process's section, or of the whole lattice.
    pub gauge: HostGauge,
    /// Description of the field in the file.
    pub header: Header,
    /// Result of comparing the checksum in the file with that of the data.
    pub checksum: Checksum,
    /// Mean plaquettes of the links in the file.
    pub plaquette: Plaquettes,
    /// Mean link trace of the links in the file.
    pub link_trace: f64,
    /// Link in the file that is farthest from SU(3).
    pub unitarity: Unitarity,
    /// Whether all U_t on the last time slice are zero, as with open boundary conditions in t.
    pub open_boundary: bool,
}

/// A fermion field that was read, with the results of all checks.
#[derive(Clone, Debug, PartialEq)]
pub struct FermionFile<T> {
    /// Field of this process's section, or of the whole lattice.
    pub field: HostField<T>,
    /// Description of the field in the file.
    pub header: Header,
    /// Result of comparing the checksum in the file with that of the data.
    pub checksum: Checksum,
}

/// All fermion fields of a file, with the results of all checks.
#[derive(Clone, Debug, PartialEq)]
pub struct BlockFile<T> {
    /// Fields of the file. For a propagator, these are its columns, in the order of the index 3 spin + colour of the source.
    pub fields: Vec<HostField<T>>,
    /// Description of the first field.
    pub header: Header,
    /// Result of comparing the checksums in the file with those of the data: the first mismatch, if there is one.
    pub checksum: Checksum,
}

/// A field of any kind as numbers, without an interpretation.
#[derive(Clone, Debug, PartialEq)]
pub struct RawField {
    /// Numbers of the field; each site has `header.values_per_site()` of them.
    pub values: Vec<Complex64>,
    /// Description of the field in the file.
    pub header: Header,
    /// Result of comparing the checksum in the file with that of the data.
    pub checksum: Checksum,
}

fn lattice_from(size: [usize; 4], place: &'static str) -> Result<Lattice, Problem> {
    Lattice::of_any_extents(size).map_err(|source| Problem::Lattice { place, source })
}

/// Makes a lattice of even extents, for formats that distinguish even and odd sites; `place` is the source of the extents.
fn even_lattice_from(size: [usize; 4], place: &'static str) -> Result<Lattice, Problem> {
    Lattice::new(size).map_err(|source| Problem::Lattice { place, source })
}

#[cfg(test)]
mod tests;
