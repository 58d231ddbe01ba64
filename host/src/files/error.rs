//! What can be wrong with a file, in sentences.
use super::payload::{LINKS, TWO_ROWS};
use super::{Endian, formats};
use crate::lattice::LatticeError;
use crate::system::atomic::{SystemError, WriteError};
use comms::CommError;
use std::borrow::Cow;
use std::path::{Path, PathBuf};

/// A file that could not be read or written, and why.
#[derive(Debug, thiserror::Error)]
#[error("{}: {problem}", path.display())]
pub struct FileError {
    /// The file; `<memory>` or `<writer>` where there is none.
    pub path: PathBuf,
    /// What is wrong with it.
    #[source]
    pub problem: Problem,
}

impl FileError {
    pub(crate) fn at(path: &Path) -> impl FnOnce(Problem) -> Self {
        move |problem| Self { path: path.to_owned(), problem }
    }
}

/// What is wrong with a file. Offsets are bytes from its start.
#[derive(Debug, thiserror::Error)]
pub enum Problem {
    /// The operating system refused.
    #[error("cannot {action}: {source}")]
    Io {
        /// What was tried.
        action: Cow<'static, str>,
        /// What the system said.
        source: std::io::Error,
    },
    /// The file has no bytes.
    #[error("is empty; copy it again, or have it written again")]
    Empty,
    /// A format that is recognised, but not supported.
    #[error("is {what}; {hint}")]
    OtherFormat {
        /// What the file is.
        what: &'static str,
        /// What to do.
        hint: &'static str,
    },
    /// No known magic number.
    #[error(
        "starts with the bytes {start}, which is none of {}; check that this is the intended file",
        formats::signatures()
    )]
    UnknownFormat {
        /// The first bytes in hexadecimal.
        start: String,
    },
    /// The file is shorter than its headers say.
    #[error(
        "{what} takes {needed} bytes from byte {offset}, but only {available} are there: the file is cut short or its \
         header is wrong; copy it again"
    )]
    Truncated {
        /// Header, record or data.
        what: String,
        /// Where it starts.
        offset: u64,
        /// Its length.
        needed: u64,
        /// Bytes from there to the end of the file.
        available: u64,
    },
    /// The file is longer than its headers say.
    #[error(
        "{extra} bytes follow the last number at byte {offset}{}; read with verification off to ignore them",
        if *another {
            " and start like another file: several files were concatenated, of which only the first can be read"
        } else {
            ": precision, lattice or number of rows in the header are probably wrong"
        }
    )]
    Trailing {
        /// End of the data.
        offset: u64,
        /// Bytes after it.
        extra: u64,
        /// Whether they begin with the magic number of a format.
        another: bool,
    },
    /// A header or record says something that cannot be used.
    #[error("{place}: {field} is {found:?}, expected {expected}")]
    Field {
        /// Header or record, with its offset where there are several.
        place: String,
        /// Key, tag or item.
        field: &'static str,
        /// What is there.
        found: String,
        /// What may be there.
        expected: String,
    },
    /// An optional entry of a header or record cannot be parsed.
    #[error("{place}: {field} is {found:?}, expected {expected}; read with verification off to ignore it")]
    Optional {
        /// Header or record.
        place: String,
        /// Key, tag or item.
        field: &'static str,
        /// What is there.
        found: String,
        /// What may be there.
        expected: String,
    },
    /// Links of another gauge group.
    #[error("{place}: {field} is {found:?}: links in SU({colours}), but Ferrite supports SU(3) only")]
    OtherGroup {
        /// Header or record.
        place: String,
        /// Key or tag.
        field: &'static str,
        /// What is there.
        found: String,
        /// N of SU(N).
        colours: usize,
    },
    /// The data has another length than a header or record implies.
    #[error("{place} has {length} bytes, but {said}; {would}{remedy}")]
    Length {
        /// The record.
        place: String,
        /// Its length.
        length: u64,
        /// What the header or record implies.
        said: String,
        /// What data has this length.
        would: String,
        /// What to do.
        remedy: LengthRemedy,
    },
    /// Links are in SU(3) only in the other byte order.
    #[error(
        "the links of the first site are in SU(3) if they are read as {other}-endian, but {said} specifies {stated}-endian: \
         they were written in the wrong byte order; read with verification off to read them as {other}-endian"
    )]
    ByteOrder {
        /// Header or format.
        said: &'static str,
        /// The specified byte order.
        stated: Endian,
        /// The byte order of the links.
        other: Endian,
    },
    /// A header or record lacks something that cannot be done without.
    #[error("{place}: {field} is missing; {hint}")]
    Missing {
        /// Header or record.
        place: String,
        /// What is missing.
        field: &'static str,
        /// What to do.
        hint: &'static str,
    },
    /// Two sources in the file, or the file and the caller, disagree.
    #[error("{what} is {first} according to {first_place} but {second} according to {second_place}")]
    Disagree {
        /// Lattice or precision.
        what: &'static str,
        /// One value.
        first: String,
        /// Who says so.
        first_place: &'static str,
        /// The other value.
        second: String,
        /// Who says so.
        second_place: &'static str,
    },
    /// Nothing in the file tells the lattice.
    #[error(
        "no record tells the extents of the lattice; give them (the data of {length} bytes would be {single} sites in \
         single or {double} in double precision)"
    )]
    NeedsLattice {
        /// Length of the data record.
        length: u64,
        /// Sites if links are stored in single precision.
        single: u64,
        /// Sites if links are stored in double precision.
        double: u64,
    },
    /// The extents are not usable.
    #[error("{place}: {source}")]
    Lattice {
        /// Where they stand.
        place: &'static str,
        /// Why not.
        source: LatticeError,
    },
    /// The field has another number of components than asked for.
    #[error("holds {found} complex numbers per site where {wanted} has {expected}: {}", sort_of(*found))]
    Components {
        /// In the file.
        found: usize,
        /// Gauge field or spinor field.
        wanted: &'static str,
        /// What it needs.
        expected: usize,
    },
    /// The data is not what was written.
    #[error(
        "{kind} checksum of the data is {computed}, the header says {stored}: the data is corrupt; copy the file again, \
         or read with verification off to accept it as it is"
    )]
    Checksum {
        /// Which sort.
        kind: &'static str,
        /// In the file.
        stored: String,
        /// Of the data.
        computed: String,
    },
    /// The checksum differs, but the plaquette or link trace agrees.
    #[error(
        "{kind} checksum of the data is {computed}, the header says {stored}, but the {agreeing} agrees with the header: the \
         checksum was computed by another rule or not updated, or a few bits are corrupt; compare with the original, or read \
         with verification off to accept the data as it is"
    )]
    ChecksumRule {
        /// Which sort.
        kind: &'static str,
        /// In the file.
        stored: String,
        /// Of the data.
        computed: String,
        /// Plaquette or link trace, whichever the header has.
        agreeing: &'static str,
    },
    /// Plaquette or link trace of the header is not that of the links.
    #[error(
        "{name} of the links is {computed}, the header says {stored} (they may differ by {tolerance:.0e}): the links are \
         corrupt or ordered otherwise; read with verification off to accept them"
    )]
    HeaderValue {
        /// plaquette or link trace.
        name: &'static str,
        /// In the file.
        stored: f64,
        /// Of the links.
        computed: f64,
        /// How far apart they may be.
        tolerance: f64,
    },
    /// A number is NaN or infinite.
    #[error("{what} at site (x, y, z, t) = {site:?} is not finite: the data is corrupt")]
    NotFinite {
        /// Link with its direction, or spinor.
        what: &'static str,
        /// Coordinates.
        site: [usize; 4],
    },
    /// Links are not in SU(3).
    #[error(
        "{what} at site (x, y, z, t) = {site:?} is off SU(3) by {violation:.2e}, the worst of all links (limit \
         {limit:.0e}): the data is corrupt or not a thin-link field; allow non-unitary links to take it as it is"
    )]
    NotUnitary {
        /// Link with its direction.
        what: &'static str,
        /// Coordinates.
        site: [usize; 4],
        /// The larger of ‖U U† − 1‖ and |det U − 1|.
        violation: f64,
        /// What is accepted.
        limit: f64,
    },
    /// Links U_t that are zero at the end of a lattice with open boundary conditions, as openQCD writes them.
    #[error(
        "has open boundary conditions in t: the links U_t at t = T - 1 are zero, but Ferrite's lattices are periodic; allow \
         non-unitary links, and do not put them back into SU(3), to take them as they are"
    )]
    OpenBoundary,
    /// Links that no projection brings to SU(3).
    #[error(
        "{what} at site (x, y, z, t) = {site:?} cannot be put back into SU(3), as it is singular or nearly so: the data is \
         corrupt or not a thin-link field"
    )]
    NotReunitarised {
        /// Link with its direction.
        what: &'static str,
        /// Coordinates.
        site: [usize; 4],
    },
    /// In one of several fields or vectors of a file.
    #[error("field {number}: {problem}")]
    InField {
        /// Which one, from 0.
        number: usize,
        /// What is wrong with it.
        problem: Box<Problem>,
    },
    /// A file that was to hold the test vectors of a multigrid setup holds something else.
    #[error("is no multigrid setup: {found}; check that this is the intended file")]
    NotASetup {
        /// What it holds.
        found: String,
    },
    /// Part of a multigrid setup is not what was written.
    #[error(
        "the checksum of {what} is {computed}, but the file was written with {stored}: the data is corrupt; copy the file \
         again, or have the setup computed again"
    )]
    CorruptSetup {
        /// Which part.
        what: String,
        /// In the file.
        stored: String,
        /// Of the data.
        computed: String,
    },
    /// A multigrid setup was finished before all its vectors were written.
    #[error(
        "cannot be written: {written} of {expected} vectors are there; write all of them before the file is finished"
    )]
    VectorsMissing {
        /// How many were written.
        written: usize,
        /// How many the header promises.
        expected: usize,
    },
    /// The processes do not have one box of the lattice each.
    #[error("the parts of the processes are not right: {why}")]
    Parts {
        /// What does not fit.
        why: String,
    },
    /// The processes lost each other. The only problem that others may not know of: end them, too.
    #[error(transparent)]
    Comm(#[from] CommError),
    /// The format does not hold such fermion fields.
    #[error("cannot be written: {limits}; write {instead}")]
    NotHeld {
        /// Fermion fields that a file of the format holds.
        limits: &'static str,
        /// Formats that hold other fields.
        instead: &'static str,
    },
    /// The format cannot hold what it was asked to.
    #[error("cannot be written: {why}")]
    Unwritable {
        /// Why not, and what else to do.
        why: &'static str,
    },
}

/// What to do about data whose length differs from that of a header or record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LengthRemedy {
    /// Reading without verification, which lets the length decide.
    WithoutVerification,
    /// Giving the extents.
    Extents,
    /// Nothing helps.
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

/// The kind of field that has this many complex numbers per site.
fn sort_of(components: usize) -> String {
    let links = |colours: usize| 4 * colours * colours;
    match components {
        LINKS | TWO_ROWS => "this is a gauge field".into(),
        12 => "this is a spinor field".into(),
        3 => "this is a field of colour vectors".into(),
        144 | 9 => "this is a propagator".into(),
        n if let Some(colours) = (2..9).find(|colours| links(*colours) == n) => {
            format!("links in SU({colours}) have as many, but Ferrite supports SU(3) only")
        }
        _ => "this is another kind of file, or the precision or extents in its header are wrong".into(),
    }
}

// Of the problems that a process can have for itself: all others follow from what every one of them knows.
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
