//! Reading and writing gauge configurations and fermion fields.
//!
//! | format | gauge field | fermion field |
//! |---|---|---|
//! | NERSC archive, two or three rows, 32 or 64 bits, either byte order | read, write | |
//! | ILDG and SciDAC LIME, 32 or 64 bits | read, write | read, write |
//! | MILC version 5 (and 1), either byte order | read, write (5) | |
//! | NumPy `.npy` | read, write | read, write |
//!
//! The format is recognised from the first bytes, never from the name. Everything a file says about itself is checked
//! on reading: lengths before memory is allocated, checksum, plaquette, link trace, finite numbers, unitarity. What is
//! wrong comes back as a [`FileError`]: one sentence with the file, the place in it and what to do.
//!
//! Sites are in lexicographic order with x fastest, four links (x, y, z, t) per site, each row-major; spinors are
//! spin-major in the DeGrand–Rossi basis. Files are written whole or not at all.
//!
//! ```
//! use ferrite::field::host::HostGauge;
//! use ferrite::files::{Format, ReadOptions, WriteOptions, read_gauge, write_gauge};
//! use ferrite::lattice::Lattice;
//!
//! let path = std::env::temp_dir().join("unit.nersc");
//! let gauge = HostGauge::unit(Lattice::new([4, 4, 4, 8])?);
//! write_gauge(&path, &gauge, &WriteOptions { format: Format::Nersc3x3, ..Default::default() })?;
//! let file = read_gauge(&path, &ReadOptions::default())?;
//! assert_eq!(file.gauge, gauge);
//! assert_eq!(file.plaquette.mean, 1.0);
//! # std::fs::remove_file(path)?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
pub mod atomic;
mod error;
pub mod ildg;
pub mod lime;
pub mod milc;
pub mod nersc;
pub mod npy;
pub mod payload;
pub mod scidac;
mod xml;

pub use error::{FileError, Problem};

use crate::field::host::{Fermion, HostField, HostGauge, Matrix, Spinor};
use crate::lattice::Lattice;
use crate::measure::{self, Plaquette, Unitarity};
use num_complex::Complex64;
use payload::{ChecksumKind, LINKS, Sum, TWO_ROWS};
use rayon::prelude::*;
use std::fs::File;
use std::io::{Read, Seek, Write};
use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};

/// Bits of a stored real number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Precision {
    /// 32.
    Single,
    /// 64.
    Double,
}

impl Precision {
    /// 4 or 8.
    pub fn bytes(self) -> usize {
        match self {
            Self::Single => 4,
            Self::Double => 8,
        }
    }
}

impl std::fmt::Display for Precision {
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

impl Endian {
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

/// The formats.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Format {
    /// NERSC archive, `4D_SU3_GAUGE`: two rows.
    Nersc,
    /// NERSC archive, `4D_SU3_GAUGE_3x3`: three rows.
    Nersc3x3,
    /// LIME with `ildg-binary-data`.
    Ildg,
    /// LIME with `scidac-binary-data`.
    Scidac,
    /// MILC version 5.
    Milc,
    /// MILC version 1. Read only.
    MilcV1,
    /// NumPy array.
    Npy,
}

impl std::fmt::Display for Format {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Nersc => "NERSC, two rows",
            Self::Nersc3x3 => "NERSC, three rows",
            Self::Ildg => "ILDG",
            Self::Scidac => "SciDAC",
            Self::Milc => "MILC version 5",
            Self::MilcV1 => "MILC version 1",
            Self::Npy => "NumPy",
        })
    }
}

/// A number as a header prints it, with as many digits as the writer gave.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Printed {
    /// The number.
    pub value: f64,
    /// One unit of its last digit.
    pub resolution: f64,
}

impl Printed {
    fn parse(text: &str) -> Option<Self> {
        let value = text.parse().ok()?;
        let (mantissa, exponent) = text.split_once(['e', 'E']).unwrap_or((text, "0"));
        let decimals = mantissa.split_once('.').map_or(0, |(_, decimals)| decimals.len());
        let exponent: f64 = exponent.parse().ok()?;
        Some(Self { value, resolution: 10f64.powf(exponent - decimals as f64) })
    }
}

/// What a file says about the field in it. Made by [`inspect`] or by `parse` of the module of a format; every length
/// in it has been checked against that of the file.
#[derive(Clone, Debug, PartialEq)]
pub struct Header {
    /// Which format.
    pub format: Format,
    /// Extents.
    pub lattice: Lattice,
    /// Of the stored numbers.
    pub precision: Precision,
    /// Of the stored numbers.
    pub endian: Endian,
    /// Complex numbers stored per site: 36 for four links, 24 for two rows of each, 12 for a spinor, 3 for a colour
    /// vector.
    pub components: usize,
    /// First byte of the data.
    pub offset: u64,
    /// Bytes from there to the end of the record or file.
    pub data_length: u64,
    /// Sort and value of the stored checksum.
    pub checksum: Option<(ChecksumKind, Sum)>,
    /// Stored plaquette, Re tr / 3.
    pub plaquette: Option<Printed>,
    /// Stored link trace, Re tr / 3.
    pub link_trace: Option<Printed>,
    /// Keys and values of the header, or types and texts of the LIME records, in the order of the file.
    pub metadata: Vec<(String, String)>,
    /// Number of fields in the file; [`ReadOptions::record`] picks one.
    pub fields: usize,
}

impl Header {
    /// Bytes of one site in the file.
    pub fn site_bytes(&self) -> usize {
        2 * self.components * self.precision.bytes()
    }
    /// Complex numbers of one site once read: `components`, or 36 if only two rows are stored.
    pub fn values_per_site(&self) -> usize {
        if self.components == TWO_ROWS { LINKS } else { self.components }
    }
    /// Length of the data that the lattice and precision imply. At most 2³¹ sites of some hundred bytes: no overflow.
    fn needed(&self) -> u64 {
        self.lattice.volume() as u64 * self.site_bytes() as u64
    }
    fn check_length(&self, file_length: u64) -> Result<(), Problem> {
        let available = file_length.saturating_sub(self.offset);
        if self.needed() > available {
            let what = format!("the data of a {} lattice in {} precision", self.lattice, self.precision);
            return Err(Problem::Truncated { what, offset: self.offset, needed: self.needed(), available });
        }
        Ok(())
    }
}

/// How to read.
#[derive(Clone, Debug, PartialEq)]
pub struct ReadOptions {
    /// Refuse a file whose checksum, plaquette or link trace is not that of its links, or that is longer than its
    /// header says. Default: yes.
    pub verify: bool,
    /// Accept links that are not in SU(3), such as fat links. Default: no.
    pub allow_non_unitary: bool,
    /// Project the links to SU(3) after all checks, as MILC and Chroma do with single-precision files. Default: no,
    /// the numbers are those of the file.
    pub reunitarise: bool,
    /// Extents for a file that does not tell them; must agree with the file if it does.
    pub lattice: Option<Lattice>,
    /// Which field of a LIME file with several, from 0.
    pub record: usize,
}

impl Default for ReadOptions {
    fn default() -> Self {
        Self { verify: true, allow_non_unitary: false, reunitarise: false, lattice: None, record: 0 }
    }
}

/// How to write.
#[derive(Clone, Debug, PartialEq)]
pub struct WriteOptions {
    /// Default: ILDG.
    pub format: Format,
    /// Default: double.
    pub precision: Precision,
    /// Default: big. LIME files are big-endian whatever stands here.
    pub endian: Endian,
    /// A line that describes the file.
    pub title: String,
    /// Header keys (NERSC) or lines of the user record (LIME). NERSC keys such as `ENSEMBLE_ID` replace the defaults.
    pub metadata: Vec<(String, String)>,
    /// Logical file name on the Lattice Data Grid.
    pub lfn: String,
}

impl Default for WriteOptions {
    fn default() -> Self {
        Self {
            format: Format::Ildg,
            precision: Precision::Double,
            endian: Endian::Big,
            title: "written by Ferrite".into(),
            metadata: Vec::new(),
            lfn: "lfn://none".into(),
        }
    }
}

/// Outcome of comparing the checksum.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Checksum {
    /// The data is what was written.
    Verified(ChecksumKind),
    /// The file has none.
    Absent,
    /// The data is corrupt; only seen with [`ReadOptions::verify`] off.
    Mismatch {
        /// Which sort.
        kind: ChecksumKind,
        /// In the file.
        stored: Sum,
        /// Of the data.
        computed: Sum,
    },
}

impl Checksum {
    fn compare(stored: Option<(ChecksumKind, Sum)>, computed: Sum) -> Self {
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

/// A gauge field that was read, and what is known of it.
#[derive(Clone, Debug, PartialEq)]
pub struct GaugeFile {
    /// The links.
    pub gauge: HostGauge,
    /// What the file says.
    pub header: Header,
    /// Whether the data is what was written.
    pub checksum: Checksum,
    /// Plaquettes of the links as stored.
    pub plaquette: Plaquette,
    /// Link trace of the links as stored.
    pub link_trace: f64,
    /// The worst of the links as stored.
    pub unitarity: Unitarity,
}

/// A fermion field that was read, and what is known of it.
#[derive(Clone, Debug, PartialEq)]
pub struct FermionFile<T> {
    /// The field.
    pub field: HostField<T>,
    /// What the file says.
    pub header: Header,
    /// Whether the data is what was written.
    pub checksum: Checksum,
}

/// Any field: numbers without a meaning, such as colour vectors.
#[derive(Clone, Debug, PartialEq)]
pub struct RawField {
    /// `header.values_per_site()` numbers for each site.
    pub values: Vec<Complex64>,
    /// What the file says.
    pub header: Header,
    /// Whether the data is what was written.
    pub checksum: Checksum,
}

/// Reads the header only.
pub fn inspect(path: &Path, options: &ReadOptions) -> Result<Header, FileError> {
    with_file(path, |file| header_from(file, options))
}

/// Reads and checks a gauge field.
pub fn read_gauge(path: &Path, options: &ReadOptions) -> Result<GaugeFile, FileError> {
    with_file(path, |file| gauge_from(file, options))
}

/// Reads and checks a fermion field: a [`HostSpinor`](crate::field::host::HostSpinor) or a
/// [`HostColour`](crate::field::host::HostColour).
pub fn read_fermion<T: Fermion>(path: &Path, options: &ReadOptions) -> Result<FermionFile<T>, FileError> {
    with_file(path, |file| fermion_from(file, options))
}

/// Reads a field of any sort and checks its checksum.
pub fn read_field(path: &Path, options: &ReadOptions) -> Result<RawField, FileError> {
    with_file(path, |file| field_from(file, options))
}

/// Writes a gauge field. Refuses numbers that are not finite, and to leave out third rows of links off SU(3).
pub fn write_gauge(path: &Path, gauge: &HostGauge, options: &WriteOptions) -> Result<(), FileError> {
    atomic::write(path, |file| gauge_to(file, gauge, options)).map_err(FileError::at(path))
}

/// Writes a fermion field as SciDAC LIME ([`Format::Scidac`]) or [`Format::Npy`].
pub fn write_fermion<T: Fermion>(path: &Path, field: &HostField<T>, options: &WriteOptions) -> Result<(), FileError> {
    atomic::write(path, |file| fermion_to(file, field, options)).map_err(FileError::at(path))
}

fn with_file<T>(path: &Path, read: impl FnOnce(&mut File) -> Result<T, Problem>) -> Result<T, FileError> {
    let file = File::open(path).map_err(Problem::io("open"));
    file.and_then(|mut file| read(&mut file)).map_err(FileError::at(path))
}

/// Recognises the format and reads the header.
pub fn header_from<R: Read + Seek>(reader: &mut R, options: &ReadOptions) -> Result<Header, Problem> {
    let mut start = Vec::new();
    reader.rewind().map_err(Problem::io("seek to the start"))?;
    reader.by_ref().take(12).read_to_end(&mut start).map_err(Problem::io("read"))?;
    let first = start.first_chunk::<4>();
    let header = if start.starts_with(nersc::MAGIC) {
        nersc::header(reader)
    } else if start.starts_with(npy::MAGIC) {
        npy::header(reader)
    } else if first == Some(&lime::MAGIC) {
        scidac::header(reader, options)
    } else if first.is_some_and(|&first| milc::recognise(first).is_some()) {
        milc::header(reader)
    } else {
        let start = start.iter().map(|b| format!("{b:02x}")).collect::<Vec<_>>().join(" ");
        Err(Problem::UnknownFormat { start })
    }?;
    if options.verify && header.data_length > header.needed() {
        let offset = header.offset + header.needed();
        return Err(Problem::Trailing { offset, extra: header.data_length - header.needed() });
    }
    match options.lattice {
        Some(lattice) if lattice != header.lattice => Err(Problem::Disagree {
            what: "the lattice",
            first: lattice.to_string(),
            first_place: "the caller",
            second: header.lattice.to_string(),
            second_place: "the file",
        }),
        _ => Ok(header),
    }
}

/// [`read_gauge`] from anything that can be read and sought.
pub fn gauge_from<R: Read + Seek>(reader: &mut R, options: &ReadOptions) -> Result<GaugeFile, Problem> {
    let header = header_from(reader, options)?;
    require_components(&header, "a gauge field", LINKS)?;
    let volume = header.lattice.volume();
    let mut links = vec![Matrix::default(); 4 * volume];
    let sum = payload::read_into(reader, &header, 0..volume, bytemuck::cast_slice_mut(&mut links))?;
    let checksum = Checksum::compare(header.checksum, sum);
    checksum.require(options)?;
    let mut gauge = HostGauge::from_links(header.lattice, links);
    let unitarity = check_links(&gauge, header.precision, options)?;
    let (plaquette, link_trace) = (measure::plaquette(&gauge), measure::link_trace(&gauge));
    if options.verify {
        let stored = [("plaquette", header.plaquette, plaquette.mean), ("link trace", header.link_trace, link_trace)];
        for (name, stored, computed) in stored {
            check_value(name, stored, computed, header.precision)?;
        }
    }
    if options.reunitarise {
        gauge.reunitarise();
    }
    Ok(GaugeFile { gauge, header, checksum, plaquette, link_trace, unitarity })
}

/// [`read_fermion`] from anything that can be read and sought.
pub fn fermion_from<T: Fermion>(
    reader: &mut (impl Read + Seek),
    options: &ReadOptions,
) -> Result<FermionFile<T>, Problem> {
    let header = header_from(reader, options)?;
    let wanted = if T::COMPONENTS == Spinor::COMPONENTS { "a spinor field" } else { "a field of colour vectors" };
    require_components(&header, wanted, T::COMPONENTS)?;
    let volume = header.lattice.volume();
    let mut sites = vec![T::default(); volume];
    let sum = payload::read_into(reader, &header, 0..volume, bytemuck::cast_slice_mut(&mut sites))?;
    let checksum = Checksum::compare(header.checksum, sum);
    checksum.require(options)?;
    let field = HostField::from_sites(header.lattice, sites);
    check_fermion(&field)?;
    Ok(FermionFile { field, header, checksum })
}

/// [`read_field`] from anything that can be read and sought.
pub fn field_from<R: Read + Seek>(reader: &mut R, options: &ReadOptions) -> Result<RawField, Problem> {
    let header = header_from(reader, options)?;
    let (values, sum) = payload::read_sites(reader, &header, 0..header.lattice.volume())?;
    let checksum = Checksum::compare(header.checksum, sum);
    checksum.require(options)?;
    Ok(RawField { values, header, checksum })
}

/// [`write_gauge`] to anything that can be written.
pub fn gauge_to(writer: &mut impl Write, gauge: &HostGauge, options: &WriteOptions) -> Result<(), Problem> {
    let two_rows = options.format == Format::Nersc;
    let checks = ReadOptions { allow_non_unitary: !two_rows, ..Default::default() };
    check_links(gauge, options.precision, &checks)?;
    let (lattice, values) = (gauge.lattice(), bytemuck::cast_slice(gauge.links()));
    match options.format {
        Format::Nersc | Format::Nersc3x3 => nersc::write(writer, gauge, options),
        Format::Ildg | Format::Scidac => {
            scidac::write(writer, &scidac::Field { lattice, values, components: LINKS }, options)
        }
        Format::Milc => milc::write(writer, gauge, options),
        Format::MilcV1 => Err(Problem::Unwritable { why: "MILC's version 1 has no checksum; use version 5" }),
        Format::Npy => npy::write(writer, lattice, &[4, 3, 3], values, options.precision, options.endian),
    }
}

/// [`write_fermion`] to anything that can be written.
pub fn fermion_to<T: Fermion>(
    writer: &mut impl Write,
    field: &HostField<T>,
    options: &WriteOptions,
) -> Result<(), Problem> {
    check_fermion(field)?;
    let (lattice, values, components) = (field.lattice(), field.numbers(), T::COMPONENTS);
    match options.format {
        Format::Scidac => scidac::write(writer, &scidac::Field { lattice, values, components }, options),
        Format::Npy => npy::write(writer, lattice, T::SHAPE, values, options.precision, options.endian),
        _ => Err(Problem::Unwritable { why: "this format holds links; write fermion fields as SciDAC or npy" }),
    }
}

fn require_components(header: &Header, wanted: &'static str, expected: usize) -> Result<(), Problem> {
    if header.values_per_site() == expected {
        return Ok(());
    }
    Err(Problem::Components { found: header.components, wanted, expected })
}

/// How far from SU(3) links may be. Rounding to single precision moves them by up to 6e-7 in the files of other codes.
/// Double-precision files are often converted from single-precision ones (QDP++'s own example is off by 6e-7), so their
/// limit cannot be at the rounding of doubles. Flipped high bits and links that are not thin are far above either.
fn unitarity_limit(precision: Precision) -> f64 {
    match precision {
        Precision::Single => 1e-4,
        Precision::Double => 1e-5,
    }
}

fn check_links(gauge: &HostGauge, precision: Precision, options: &ReadOptions) -> Result<Unitarity, Problem> {
    const NAMES: [&str; 4] = ["link U_x", "link U_y", "link U_z", "link U_t"];
    let finite = |link: &Matrix| link.iter().flatten().all(|c| c.is_finite());
    if let Some(bad) = gauge.links().par_iter().position_first(|link| !finite(link)) {
        let site = gauge.lattice().coordinates(bad / 4);
        return Err(Problem::NotFinite { what: NAMES[bad % 4], site });
    }
    let worst = measure::unitarity(gauge);
    let limit = unitarity_limit(precision);
    // Finite numbers may overflow in the product; NaN must not pass.
    let within = worst.violation <= limit;
    if options.allow_non_unitary || within {
        return Ok(worst);
    }
    let site = gauge.lattice().coordinates(worst.site);
    Err(Problem::NotUnitary { what: NAMES[worst.mu], site, violation: worst.violation, limit })
}

fn check_fermion<T: Fermion>(field: &HostField<T>) -> Result<(), Problem> {
    match field.numbers().par_iter().position_first(|number| !number.is_finite()) {
        None => Ok(()),
        Some(bad) => {
            let site = field.lattice().coordinates(bad / T::COMPONENTS);
            Err(Problem::NotFinite { what: T::NAME, site })
        }
    }
}

/// Headers are compared loosely: writers sum in the precision of their links. The checksum finds flipped bits; this
/// finds links in another order or normalisation, which move the plaquette by far more.
fn check_value(
    name: &'static str,
    stored: Option<Printed>,
    computed: f64,
    precision: Precision,
) -> Result<(), Problem> {
    let Some(Printed { value: stored, resolution }) = stored else { return Ok(()) };
    let sums = if precision == Precision::Single { 1e-5 } else { 1e-6 };
    let tolerance = sums + resolution.min(1e-2);
    if (stored - computed).abs() <= tolerance {
        return Ok(());
    }
    Err(Problem::HeaderValue { name, stored, computed, tolerance })
}

fn lattice_from(size: [usize; 4], place: &'static str) -> Result<Lattice, Problem> {
    Lattice::new(size).map_err(|source| Problem::Lattice { place, source })
}

/// The date and time now, as headers hold it: `2026-02-03 14:05:06 UTC`.
pub(crate) fn utc_now() -> String {
    let seconds = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |d| d.as_secs());
    utc(seconds)
}

fn utc(seconds: u64) -> String {
    let is_leap = |y: u64| y.is_multiple_of(4) && (!y.is_multiple_of(100) || y.is_multiple_of(400));
    let (mut days, rest) = (seconds / 86400, seconds % 86400);
    let mut year = 1970;
    while days >= 365 + u64::from(is_leap(year)) {
        days -= 365 + u64::from(is_leap(year));
        year += 1;
    }
    let february = 28 + u64::from(is_leap(year));
    let mut month = 1;
    for length in [31, february, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31] {
        if days < length {
            break;
        }
        days -= length;
        month += 1;
    }
    let (hour, minute, second) = (rest / 3600, rest / 60 % 60, rest % 60);
    format!("{year}-{month:02}-{:02} {hour:02}:{minute:02}:{second:02} UTC", days + 1)
}

#[cfg(test)]
mod tests;
