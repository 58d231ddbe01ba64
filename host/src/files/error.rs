//! Errors of files, with messages in sentences.
use super::Endian;
use crate::lattice::LatticeError;
use crate::system::atomic::{SystemError, WriteError};
use comms::CommError;
use std::borrow::Cow;
use std::path::{Path, PathBuf};

/// Error for a file that cannot be read or written.
#[derive(Debug, thiserror::Error)]
#[error("{}: {problem}", path.display())]
pub struct FileError {
    /// Path of the file; `<memory>` or `<writer>` if there is no file.
    pub path: PathBuf,
    /// Problem that caused the error.
    #[source]
    pub problem: Problem,
}

impl FileError {
    pub(crate) fn at(path: &Path) -> impl FnOnce(Problem) -> Self {
        move |problem| Self { path: path.to_owned(), problem }
    }
}

/// Problem with a file. All offsets are in bytes from the start of the file.
#[derive(Debug, thiserror::Error)]
pub enum Problem {
    /// A call of the operating system failed.
    #[error("cannot {action}: {source}")]
    Io {
        /// Operation that failed, for the message `cannot …`.
        action: Cow<'static, str>,
        /// Error of the operating system.
        source: std::io::Error,
    },
    /// The file has no bytes.
    #[error("is empty; copy or write it again")]
    Empty,
    /// The file has a format that is recognised, but not supported.
    #[error("is {what}; {hint}")]
    OtherFormat {
        /// Description of the file.
        what: &'static str,
        /// Advice on what to do with the file.
        hint: &'static str,
    },
    /// The format of the file is unknown.
    #[error("starts with the bytes {start}, which is none of {known}; check that this is the intended file")]
    UnknownFormat {
        /// First bytes of the file in hexadecimal.
        start: String,
        /// List of the beginnings of files of known formats.
        known: String,
    },
    /// The file is shorter than its headers imply.
    #[error(
        "{what} needs {needed} bytes from byte {offset}, but only {available} are present: the file is cut short or \
         its header is wrong; copy it again"
    )]
    Truncated {
        /// Name of the header, record or data that is cut short.
        what: String,
        /// Offset at which the header, record or data start.
        offset: u64,
        /// Length in bytes that the headers imply.
        needed: u64,
        /// Number of bytes from the offset to the end of the file.
        available: u64,
    },
    /// The file is longer than its headers imply.
    #[error(
        "{extra} bytes follow the last number at byte {offset}{}; read with verification off to ignore them",
        if *another {
            " and begin like another file: several files were concatenated, of which only the first can be read"
        } else {
            ": precision, lattice or number of rows in the header are probably wrong"
        }
    )]
    Trailing {
        /// Offset of the end of the data.
        offset: u64,
        /// Number of bytes after the end of the data.
        extra: u64,
        /// Whether the additional bytes begin like a file of a known format.
        another: bool,
    },
    /// A required entry of a header or record has an invalid value.
    #[error("{place}: {field} is {found:?}, expected {expected}")]
    Field {
        /// Header or record, with its offset if the file has several.
        place: String,
        /// Key, tag or item.
        field: &'static str,
        /// Value of the entry, as text.
        found: String,
        /// Description of valid values.
        expected: String,
    },
    /// An optional entry of a header or record has an invalid value.
    #[error("{place}: {field} is {found:?}, expected {expected}; read with verification off to ignore it")]
    Optional {
        /// Header or record.
        place: String,
        /// Key, tag or item.
        field: &'static str,
        /// Value of the entry, as text.
        found: String,
        /// Description of valid values.
        expected: String,
    },
    /// The links belong to another gauge group than SU(3).
    #[error("{place}: {field} is {found:?}: links in SU({colours}), but Ferrite supports SU(3) only")]
    OtherGroup {
        /// Header or record.
        place: String,
        /// Key or tag.
        field: &'static str,
        /// Value of the entry, as text.
        found: String,
        /// Number of colours N of SU(N).
        colours: usize,
    },
    /// The data have another length than a header or record implies.
    #[error("{place} has {length} bytes, but {said}; {would}{remedy}")]
    Length {
        /// Name of the record.
        place: String,
        /// Length of the record in bytes.
        length: u64,
        /// Clause on the length that a header or record implies.
        said: String,
        /// Clause on fields that would have this length.
        would: String,
        /// Advice on how to read the data.
        remedy: LengthRemedy,
    },
    /// The links are in SU(3) only if they are read in the other byte order.
    #[error(
        "the links of the first site are in SU(3) if they are read as {other}-endian, but {said} specifies {stated}-endian: \
         they were written in the wrong byte order; read with verification off to read them as {other}-endian"
    )]
    ByteOrder {
        /// Name of the header or format that specifies the byte order.
        said: &'static str,
        /// Byte order that the header or format specifies.
        stated: Endian,
        /// Byte order in which the links are in SU(3).
        other: Endian,
    },
    /// A required entry is missing in a header or record.
    #[error("{place}: {field} is missing; {hint}")]
    Missing {
        /// Header or record.
        place: String,
        /// Name of the missing entry or record.
        field: &'static str,
        /// Advice, or the consequence.
        hint: &'static str,
    },
    /// Two sources give different values: two records of the file, or the file and the caller.
    #[error("{what} is {first} according to the {first_place}, but {second} according to the {second_place}")]
    Disagree {
        /// Name of the value: the lattice or the precision.
        what: &'static str,
        /// First value, as text.
        first: String,
        /// Source of the first value.
        first_place: &'static str,
        /// Second value, as text.
        second: String,
        /// Source of the second value.
        second_place: &'static str,
    },
    /// The file does not contain the extents of the lattice.
    #[error(
        "no record contains the extents of the lattice; give them (the data of {length} bytes would be {single} sites \
         in single or {double} in double precision)"
    )]
    NeedsLattice {
        /// Length of the data record in bytes.
        length: u64,
        /// Number of sites if links are stored in single precision.
        single: u64,
        /// Number of sites if links are stored in double precision.
        double: u64,
    },
    /// The extents are not those of a lattice.
    #[error("{place}: {source}")]
    Lattice {
        /// Source of the extents, such as a header or the caller.
        place: &'static str,
        /// Reason why the extents are invalid.
        source: LatticeError,
    },
    /// The field has another number of components than requested.
    #[error("holds {found} complex numbers per site, but {wanted} has {expected}: {}", sort_of(*found))]
    Components {
        /// Number of complex numbers on a site in the file.
        found: usize,
        /// Requested kind of field, such as a gauge field or a spinor field.
        wanted: &'static str,
        /// Number of complex numbers on a site of the requested kind.
        expected: usize,
    },
    /// The checksum of the data differs from that in the file: the data are corrupt.
    #[error(
        "{kind} checksum of the data is {computed}, but the header has {stored}: the data is corrupt; copy the file \
         again, or read with verification off to accept it as it is"
    )]
    Checksum {
        /// Name of the kind of checksum.
        kind: &'static str,
        /// Checksum in the file.
        stored: String,
        /// Checksum of the data.
        computed: String,
    },
    /// The checksum differs, although the plaquette or link trace agrees.
    #[error(
        "{kind} checksum of the data is {computed}, but the header has {stored}; since the {agreeing} agrees with the \
         header, the checksum was computed by another rule or not updated, or a few bits are corrupt; compare with the \
         original, or read with verification off to accept the data as it is"
    )]
    ChecksumRule {
        /// Name of the kind of checksum.
        kind: &'static str,
        /// Checksum in the file.
        stored: String,
        /// Checksum of the data.
        computed: String,
        /// Name of the value that agrees: plaquette or link trace.
        agreeing: &'static str,
    },
    /// The plaquette or link trace in the header differs from that of the links.
    #[error(
        "{name} of the links is {computed}, but the header has {stored} (allowed difference {tolerance:.0e}): the \
         links are corrupt or in another order; read with verification off to accept them"
    )]
    HeaderValue {
        /// Name of the value: plaquette or link trace.
        name: &'static str,
        /// Value in the header.
        stored: f64,
        /// Value computed from the links.
        computed: f64,
        /// Largest accepted difference.
        tolerance: f64,
    },
    /// A number of the field is NaN or infinite.
    #[error("{what} at site (x, y, z, t) = {site:?} is not finite: the data is corrupt")]
    NotFinite {
        /// Name of the value on the site: a link with its direction, a spinor or a colour vector.
        what: &'static str,
        /// Coordinates of the site.
        site: [usize; 4],
    },
    /// A link is not in SU(3).
    #[error(
        "{what} at site (x, y, z, t) = {site:?} deviates from SU(3) by {violation:.2e}, the largest deviation \
         (limit {limit:.0e}): the data is corrupt or not a field of SU(3) links; allow non-unitary links to accept the \
         data as it is"
    )]
    NotUnitary {
        /// Name of the link, with its direction.
        what: &'static str,
        /// Coordinates of the site.
        site: [usize; 4],
        /// Distance of the link from SU(3): the larger of ‖U U† − 1‖ and |det U − 1|.
        violation: f64,
        /// Largest accepted distance.
        limit: f64,
    },
    /// The links U_t on the last time slice are zero, as openQCD writes them for open boundary conditions.
    #[error(
        "has open boundary conditions in t: the links U_t at t = T - 1 are zero, but Ferrite's lattices are periodic; \
         allow non-unitary links, without projection to SU(3), to accept them as they are"
    )]
    OpenBoundary,
    /// A link cannot be projected to SU(3).
    #[error(
        "{what} at site (x, y, z, t) = {site:?} cannot be projected to SU(3), because it is singular or nearly so: the \
         data is corrupt or not a field of SU(3) links"
    )]
    NotReunitarised {
        /// Name of the link, with its direction.
        what: &'static str,
        /// Coordinates of the site.
        site: [usize; 4],
    },
    /// One of several fields or vectors in a file has a problem.
    #[error("field {number}, counted from 0: {problem}")]
    InField {
        /// Number of the field or vector, from 0.
        number: usize,
        /// Problem with this field or vector.
        problem: Box<Problem>,
    },
    /// The file does not contain the near-null vectors of a multigrid setup.
    #[error("is not a multigrid setup: {found}; check that this is the intended file")]
    NotASetup {
        /// Description of the content of the file.
        found: String,
    },
    /// The checksum of a part of a multigrid setup differs: the part is corrupt.
    #[error(
        "the checksum of {what} is {computed}, but the file was written with {stored}: the data is corrupt; copy the \
         file again, or delete it to compute the setup again"
    )]
    CorruptSetup {
        /// Name of the corrupt part.
        what: String,
        /// Checksum in the file.
        stored: String,
        /// Checksum of the data.
        computed: String,
    },
    /// The file of a multigrid setup was to be finished before all vectors had been written.
    #[error(
        "cannot be written: only {written} of {expected} vectors are present; write all of them before the file is \
         finished"
    )]
    VectorsMissing {
        /// Number of vectors that were written.
        written: usize,
        /// Number of vectors according to the header.
        expected: usize,
    },
    /// The sections of the processes do not make up the lattice.
    #[error("the parts of the processes do not fit together: {why}")]
    Parts {
        /// Reason why the parts do not fit.
        why: String,
    },
    /// The communication failed. Only this problem may be unknown to other processes, which must then be ended from outside.
    #[error(transparent)]
    Comm(#[from] CommError),
    /// The format cannot store these fermion fields.
    #[error("cannot be written: {limits}; write {instead}")]
    NotHeld {
        /// Clause on the fermion fields that the format can store.
        limits: &'static str,
        /// Names of formats that can store the fields.
        instead: &'static str,
    },
    /// The format cannot store a field or an option.
    #[error("cannot be written: {why}")]
    Unwritable {
        /// Reason, with an alternative.
        why: &'static str,
    },
}

/// Advice for data whose length does not agree with a header or record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LengthRemedy {
    /// Read without verification, so that the length determines the format.
    WithoutVerification,
    /// Give the extents of the lattice.
    Extents,
    /// No advice.
    Nothing,
}

impl std::fmt::Display for LengthRemedy {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::WithoutVerification => {
                ": correct the record that describes the data, or read with verification off to use the length of the \
                 data instead"
            }
            Self::Extents => {
                ": correct the extents in the file, or give the right extents and read with verification off"
            }
            Self::Nothing => "",
        })
    }
}

impl Problem {
    pub(crate) fn io(action: &'static str) -> impl FnOnce(std::io::Error) -> Self {
        move |source| Self::Io { action: action.into(), source }
    }
    pub(crate) fn in_field(number: usize) -> impl FnOnce(Self) -> Self {
        move |problem| match problem {
            Self::Io { .. } | Self::Comm(_) => problem,
            _ => Self::InField { number, problem: Box::new(problem) },
        }
    }
    pub(crate) fn optional(
        place: impl Into<String>,
        field: &'static str,
        found: impl Into<String>,
        expected: impl Into<String>,
    ) -> Self {
        Self::Optional { place: place.into(), field, found: short(found.into()), expected: expected.into() }
    }
    pub(crate) fn other_group(place: &str, field: &'static str, found: &str, colours: usize) -> Self {
        Self::OtherGroup { place: place.into(), field, found: short(found.into()), colours }
    }
    pub(crate) fn field(
        place: impl Into<String>,
        field: &'static str,
        found: impl Into<String>,
        expected: impl Into<String>,
    ) -> Self {
        Self::Field { place: place.into(), field, found: short(found.into()), expected: expected.into() }
    }
}

/// Shortens a text to 60 characters; texts of corrupt headers can be megabytes long.
fn short(found: String) -> String {
    if found.chars().count() > 60 { found.chars().take(60).collect::<String>() + "…" } else { found }
}

/// Returns a clause on the kind of field that has this number of complex numbers on a site.
fn sort_of(components: usize) -> String {
    let links = |colours: usize| 4 * colours * colours;
    match components {
        36 | 24 => "the file holds a gauge field; name another file".into(),
        12 => "the file holds a spinor field; name another file".into(),
        3 => "the file holds a field of colour vectors; name another file".into(),
        144 => "the file holds a propagator of spinors; name another file".into(),
        9 => "the file holds a propagator of colour vectors, or links of one direction; name another file".into(),
        n if let Some(colours) = (2..9).find(|colours| links(*colours) == n) => {
            format!("links in SU({colours}) have this number of components, but Ferrite supports SU(3) only")
        }
        _ => {
            "the file is of another kind, or the precision or extents in its header are wrong; check that this is the \
              intended file"
                .into()
        }
    }
}

// Only errors of the operating system can occur on a single process. All other problems follow from data that every process has.
impl From<SystemError> for Problem {
    fn from(SystemError { action, source }: SystemError) -> Self {
        Self::Io { action, source }
    }
}

impl From<WriteError> for Problem {
    fn from(error: WriteError) -> Self {
        match error {
            WriteError::System(error) => error.into(),
            WriteError::Unwritable { why } => Self::Unwritable { why },
        }
    }
}
