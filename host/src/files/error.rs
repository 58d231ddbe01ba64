//! Errors of files, as sentences.
use super::Endian;
use crate::lattice::LatticeError;
use crate::system::atomic::{SystemError, WriteError};
use comms::CommError;
use std::borrow::Cow;
use std::path::{Path, PathBuf};

/// A file that could not be read or written, with the reason.
#[derive(Debug, thiserror::Error)]
#[error("{}: {problem}", path.display())]
pub struct FileError {
    /// Name of the file; `<memory>` or `<writer>` if there is none.
    pub path: PathBuf,
    /// Problem with the file.
    #[source]
    pub problem: Problem,
}

impl FileError {
    pub(crate) fn at(path: &Path) -> impl FnOnce(Problem) -> Self {
        move |problem| Self { path: path.to_owned(), problem }
    }
}

/// Problem with a file. Offsets are bytes from the start of the file.
#[derive(Debug, thiserror::Error)]
pub enum Problem {
    /// A failed call of the operating system.
    #[error("cannot {action}: {source}")]
    Io {
        /// Action that failed.
        action: Cow<'static, str>,
        /// Error of the operating system.
        source: std::io::Error,
    },
    /// A file without any bytes.
    #[error("is empty; copy or write it again")]
    Empty,
    /// A format that is recognised, but not supported.
    #[error("is {what}; {hint}")]
    OtherFormat {
        /// Description of the file.
        what: &'static str,
        /// Advice.
        hint: &'static str,
    },
    /// A file without a known magic number.
    #[error("starts with the bytes {start}, which is none of {known}; check that this is the intended file")]
    UnknownFormat {
        /// First bytes in hexadecimal.
        start: String,
        /// Beginnings of files of known formats.
        known: String,
    },
    /// A file that is shorter than its headers imply.
    #[error(
        "{what} needs {needed} bytes from byte {offset}, but only {available} are present: the file is cut short or \
         its header is wrong; copy it again"
    )]
    Truncated {
        /// Name of the header, record or data.
        what: String,
        /// Offset at which it starts.
        offset: u64,
        /// Length in bytes.
        needed: u64,
        /// Bytes from the offset to the end of the file.
        available: u64,
    },
    /// A file that is longer than its headers imply.
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
        /// Bytes after the end of the data.
        extra: u64,
        /// Whether these bytes begin with the magic number of a format.
        another: bool,
    },
    /// An entry of a header or record that cannot be used.
    #[error("{place}: {field} is {found:?}, expected {expected}")]
    Field {
        /// Header or record, with its offset if there are several.
        place: String,
        /// Key, tag or item.
        field: &'static str,
        /// Text of the entry.
        found: String,
        /// Description of valid entries.
        expected: String,
    },
    /// An optional entry of a header or record that cannot be parsed.
    #[error("{place}: {field} is {found:?}, expected {expected}; read with verification off to ignore it")]
    Optional {
        /// Header or record.
        place: String,
        /// Key, tag or item.
        field: &'static str,
        /// Text of the entry.
        found: String,
        /// Description of valid entries.
        expected: String,
    },
    /// Links of another gauge group.
    #[error("{place}: {field} is {found:?}: links in SU({colours}), but Ferrite supports SU(3) only")]
    OtherGroup {
        /// Header or record.
        place: String,
        /// Key or tag.
        field: &'static str,
        /// Text of the entry.
        found: String,
        /// N of SU(N).
        colours: usize,
    },
    /// Data of another length than a header or record implies.
    #[error("{place} has {length} bytes, but {said}; {would}{remedy}")]
    Length {
        /// Name of the record.
        place: String,
        /// Length of the record.
        length: u64,
        /// Clause on the length that the header or record implies.
        said: String,
        /// Clause on fields that have this length.
        would: String,
        /// Advice.
        remedy: LengthRemedy,
    },
    /// Links that are in SU(3) only in the other byte order.
    #[error(
        "the links of the first site are in SU(3) if they are read as {other}-endian, but {said} specifies {stated}-endian: \
         they were written in the wrong byte order; read with verification off to read them as {other}-endian"
    )]
    ByteOrder {
        /// Name of the header or format.
        said: &'static str,
        /// Byte order that it specifies.
        stated: Endian,
        /// Byte order of the links.
        other: Endian,
    },
    /// A header or record without a required entry.
    #[error("{place}: {field} is missing; {hint}")]
    Missing {
        /// Header or record.
        place: String,
        /// Name of the missing entry.
        field: &'static str,
        /// Advice.
        hint: &'static str,
    },
    /// A disagreement between two sources in the file, or between the file and the caller.
    #[error("{what} is {first} according to {first_place} but {second} according to {second_place}")]
    Disagree {
        /// Name of the value: lattice or precision.
        what: &'static str,
        /// First value.
        first: String,
        /// Source of the first value.
        first_place: &'static str,
        /// Second value.
        second: String,
        /// Source of the second value.
        second_place: &'static str,
    },
    /// A file without the extents of the lattice.
    #[error(
        "no record contains the extents of the lattice; give them (the data of {length} bytes would be {single} sites \
         in single or {double} in double precision)"
    )]
    NeedsLattice {
        /// Length of the data record.
        length: u64,
        /// Number of sites if links are stored in single precision.
        single: u64,
        /// Number of sites if links are stored in double precision.
        double: u64,
    },
    /// Extents that cannot be used.
    #[error("{place}: {source}")]
    Lattice {
        /// Place of the extents.
        place: &'static str,
        /// Reason why they cannot be used.
        source: LatticeError,
    },
    /// A field with another number of components than requested.
    #[error("holds {found} complex numbers per site, but {wanted} has {expected}: {}", sort_of(*found))]
    Components {
        /// Number of components in the file.
        found: usize,
        /// Kind of field: gauge field or spinor field.
        wanted: &'static str,
        /// Number of components that this kind of field has.
        expected: usize,
    },
    /// Data that is not what was written.
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
    /// A checksum that differs although the plaquette or link trace agrees.
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
        /// Name of the value that agrees: plaquette or link trace, whichever the header has.
        agreeing: &'static str,
    },
    /// A plaquette or link trace in the header that differs from the value of the links.
    #[error(
        "{name} of the links is {computed}, but the header has {stored} (allowed difference {tolerance:.0e}): the \
         links are corrupt or in another order; read with verification off to accept them"
    )]
    HeaderValue {
        /// Name of the value: plaquette or link trace.
        name: &'static str,
        /// Value in the file.
        stored: f64,
        /// Value of the links.
        computed: f64,
        /// Largest accepted difference.
        tolerance: f64,
    },
    /// A number that is NaN or infinite.
    #[error("{what} at site (x, y, z, t) = {site:?} is not finite: the data is corrupt")]
    NotFinite {
        /// Name of the element: link with its direction, or spinor.
        what: &'static str,
        /// Coordinates of the site.
        site: [usize; 4],
    },
    /// Links are not in SU(3).
    #[error(
        "{what} at site (x, y, z, t) = {site:?} is off SU(3) by {violation:.2e}, the worst of all links (limit \
         {limit:.0e}): the data is corrupt or not a field of SU(3) links; allow non-unitary links to accept it as it is"
    )]
    NotUnitary {
        /// Name of the link with its direction.
        what: &'static str,
        /// Coordinates of the site.
        site: [usize; 4],
        /// The larger of ‖U U† − 1‖ and |det U − 1|.
        violation: f64,
        /// Largest accepted violation.
        limit: f64,
    },
    /// Links U_t that are zero at the end of a lattice with open boundary conditions, as openQCD writes them.
    #[error(
        "has open boundary conditions in t: the links U_t at t = T - 1 are zero, but Ferrite's lattices are periodic; \
         allow non-unitary links, without projection to SU(3), to accept them as they are"
    )]
    OpenBoundary,
    /// Links that cannot be projected to SU(3).
    #[error(
        "{what} at site (x, y, z, t) = {site:?} cannot be projected to SU(3), because it is singular or nearly so: the \
         data is corrupt or not a field of SU(3) links"
    )]
    NotReunitarised {
        /// Name of the link with its direction.
        what: &'static str,
        /// Coordinates of the site.
        site: [usize; 4],
    },
    /// A problem in one of several fields or vectors of a file.
    #[error("field {number}: {problem}")]
    InField {
        /// Number of the field or vector, from 0.
        number: usize,
        /// Problem with this field or vector.
        problem: Box<Problem>,
    },
    /// A file that does not hold the near-null vectors of a multigrid setup, although it should.
    #[error("is not a multigrid setup: {found}; check that this is the intended file")]
    NotASetup {
        /// Description of the content.
        found: String,
    },
    /// A part of a multigrid setup that is not what was written.
    #[error(
        "the checksum of {what} is {computed}, but the file was written with {stored}: the data is corrupt; copy the \
         file again, or delete it to compute the setup again"
    )]
    CorruptSetup {
        /// Name of the part.
        what: String,
        /// Checksum in the file.
        stored: String,
        /// Checksum of the data.
        computed: String,
    },
    /// A multigrid setup that was finished before all its vectors were written.
    #[error(
        "cannot be written: only {written} of {expected} vectors are present; write all of them before the file is \
         finished"
    )]
    VectorsMissing {
        /// Number of vectors written.
        written: usize,
        /// Number of vectors in the header.
        expected: usize,
    },
    /// Processes that do not have one box of the lattice each.
    #[error("the parts of the processes do not form the lattice: {why}")]
    Parts {
        /// Reason why the parts do not fit.
        why: String,
    },
    /// A failure of the communication: the only problem of which other processes may be unaware, so they also have to be ended.
    #[error(transparent)]
    Comm(#[from] CommError),
    /// Fermion fields that the format cannot hold.
    #[error("cannot be written: {limits}; write {instead}")]
    NotHeld {
        /// Fermion fields that a file of the format holds.
        limits: &'static str,
        /// Formats that hold other fields.
        instead: &'static str,
    },
    /// A field or option that the format cannot represent.
    #[error("cannot be written: {why}")]
    Unwritable {
        /// Reason, and an alternative.
        why: &'static str,
    },
}

/// Advice on data whose length differs from that of a header or record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LengthRemedy {
    /// Advice to read without verification, so that the length decides.
    WithoutVerification,
    /// Advice to give the extents.
    Extents,
    /// No advice.
    Nothing,
}

impl std::fmt::Display for LengthRemedy {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::WithoutVerification => ": correct the record, or read with verification off to let the length decide",
            Self::Extents => ": correct the record, or give the extents and read with verification off",
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

/// Shortens the text of a corrupt header, which can have megabytes.
fn short(found: String) -> String {
    if found.chars().count() > 60 { found.chars().take(60).collect::<String>() + "…" } else { found }
}

/// Returns the name of the kind of field that has this many complex numbers per site.
fn sort_of(components: usize) -> String {
    let links = |colours: usize| 4 * colours * colours;
    match components {
        36 | 24 => "this is a gauge field".into(),
        12 => "this is a spinor field".into(),
        3 => "this is a field of colour vectors".into(),
        144 | 9 => "this is a propagator".into(),
        n if let Some(colours) = (2..9).find(|colours| links(*colours) == n) => {
            format!("links in SU({colours}) have this number, but Ferrite supports SU(3) only")
        }
        _ => "this is another kind of file, or the precision or extents in its header are wrong".into(),
    }
}

// Problems that a single process can have: all others follow from data that every process has.
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
