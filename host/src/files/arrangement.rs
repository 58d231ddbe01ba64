//! Arrangement of the numbers of a field in its file.
use super::payload::{self, LINKS, PartialChecksum, StoredForm};
use super::runs::Runs;
use super::source::ReadAt;
use super::{Header, Problem};
use crate::lattice::{Lattice, Section};
use crate::system::atomic::SystemError;
use num_complex::Complex64;
use rayon::prelude::*;
use std::fs::File;

/// Arrangement of the numbers of a field in its file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Arrangement {
    /// Site by site, lexicographically with x fastest; all numbers of a site are together.
    Sites,
    /// Site by site as in [`Sites`](Arrangement::Sites), for a propagator; the value is the order of its numbers on a site.
    Columns(ColumnOrder),
    /// One direction after another: all links in x, then those in y, z and t. The values are the offsets of the four parts in bytes.
    Directions([u64; 4]),
    /// An order that only one format has; such formats have no checksum.
    Own(&'static OwnArrangement),
}

/// Order of a propagator's numbers on a site, given by its indices with the slowest first. s and c are spin and colour of the sink, s′ and
/// c′ those of the source. Colour vectors have one spin.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ColumnOrder {
    /// Order s s′ c c′, as in QDP++ and Chroma.
    SpinMatrix,
    /// Order c s c′ s′, as in QDP/C's `DiracPropagator`.
    ColourFirst,
    /// Order s′ c′ s c, column after column, as in QUDA and in MILC's staggered propagators.
    Vectors,
}

impl ColumnOrder {
    /// Returns the index among the numbers of a site for a component of a column. A column has `components` components.
    pub(super) fn place(self, components: usize, column: usize, component: usize) -> usize {
        let (spins, s, c) = (components / 3, component / 3, component % 3);
        let (source_s, source_c) = (column / 3, column % 3);
        match self {
            Self::SpinMatrix => ((s * spins + source_s) * 3 + c) * 3 + source_c,
            Self::ColourFirst => ((c * spins + s) * 3 + source_c) * spins + source_s,
            Self::Vectors => column * components + component,
        }
    }
}

/// An arrangement of numbers that only one format has, with the functions that read and write it.
pub struct OwnArrangement {
    /// Name of the arrangement.
    pub name: &'static str,
    /// Order in which `read` returns a propagator's numbers on a site.
    pub(crate) columns: ColumnOrder,
    /// Whether the data begin with complete links, from which the byte order can be determined.
    pub(crate) begins_with_links: bool,
    /// Function that reads a section from the data at an offset.
    pub(crate) read: ReadSection,
    /// Function that writes a section of a gauge field, or of the columns of a propagator, into the data at an offset.
    pub(crate) write: WriteSection,
    /// Function that passes the bytes of a whole gauge field, or of a propagator, to the sink in the order of the file.
    pub(crate) encode: EncodeField,
}

type ReadSection = fn(&dyn ReadAt, u64, &StoredForm, &Section, &mut [Complex64]) -> Result<(), SystemError>;
type WriteSection = fn(&File, u64, &StoredForm, &Section, &[&[Complex64]]) -> Result<(), SystemError>;
type EncodeField = fn(Lattice, &StoredForm, &[&[Complex64]], Sink) -> Result<(), Problem>;
/// Function that receives the bytes of a file piece by piece.
pub(crate) type Sink<'a> = &'a mut dyn FnMut(&[u8]) -> Result<(), Problem>;

/// Arrangements are compared by their names.
impl PartialEq for OwnArrangement {
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name
    }
}

impl Eq for OwnArrangement {}

impl std::fmt::Debug for OwnArrangement {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name)
    }
}

/// Number of complex numbers in a link.
pub(crate) const LINK: usize = LINKS / 4;

/// Returns the links in direction `mu` from the links of all directions.
pub(crate) fn direction(values: &[Complex64], mu: usize) -> Vec<Complex64> {
    values.chunks_exact(LINKS).flat_map(|site| &site[mu * LINK..][..LINK]).copied().collect()
}

/// Reads a section of a field, with `header.values_per_site()` numbers for each site. Returns the checksum of its bytes, combined from all
/// records if there are several.
pub(crate) fn read(
    source: &dyn ReadAt,
    header: &Header,
    section: &Section,
    values: &mut [Complex64],
) -> Result<PartialChecksum, SystemError> {
    let form = header.form();
    match header.arrangement {
        Arrangement::Sites | Arrangement::Columns(_) => {
            payload::read(source, header.offset, &form, &section.into(), values)
        }
        Arrangement::Own(own) => {
            (own.read)(source, header.offset, &form, section, values).map(|()| PartialChecksum::default())
        }
        Arrangement::Directions(offsets) => {
            let (form, mut sum) = (StoredForm { components: LINK, ..form }, PartialChecksum::default());
            let mut links = vec![Complex64::ZERO; values.len() / 4];
            for (mu, offset) in offsets.into_iter().enumerate() {
                sum = form.combine(sum, payload::read(source, offset, &form, &section.into(), &mut links)?);
                let sites = values.par_chunks_exact_mut(LINKS).zip(links.par_chunks_exact(LINK));
                sites.for_each(|(site, link)| site[mu * LINK..][..LINK].copy_from_slice(link));
            }
            Ok(sum)
        }
    }
}

/// Reads the time slice with number `t` in a section, with all numbers of each site. Returns the checksum of its bytes.
pub(crate) fn read_slice(
    source: &dyn ReadAt,
    header: &Header,
    section: &Section,
    t: usize,
    values: &mut [Complex64],
) -> Result<PartialChecksum, SystemError> {
    match (header.arrangement, section.at_time(section.origin[3] + t)) {
        (Arrangement::Own(_), Some(slice)) => read(source, header, &slice, values),
        _ => payload::read(source, header.offset, &header.form(), &Runs::of_slice(section, t), values),
    }
}
