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
    /// All numbers of a site together, one site after the other, lexicographically with x fastest.
    Sites,
    /// All numbers of a site together, as with [`Sites`](Arrangement::Sites), for a propagator, whose numbers on a site are in this order.
    Columns(ColumnOrder),
    /// The links of each direction on their own; holds the offsets of those of x, y, z and t.
    Directions([u64; 4]),
    /// Any other order, in a format without a checksum.
    Own(&'static OwnArrangement),
}

/// The order of a propagator's numbers on a site: its indices, the slowest first. Spins and colours of the sink are s and c, those of the
/// source s′ and c′; colour vectors have one spin.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ColumnOrder {
    /// s s′ c c′: QDP++ and Chroma.
    SpinMatrix,
    /// c s c′ s′: QDP/C's `DiracPropagator`.
    ColourFirst,
    /// s′ c′ s c, one column after the other: QUDA, and MILC's staggered propagators.
    Vectors,
}

impl ColumnOrder {
    /// Returns the index of a component of a column among the numbers of a site; each column has `components` components.
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

/// An order of numbers that only one format has.
pub struct OwnArrangement {
    /// Name of the arrangement.
    pub name: &'static str,
    /// The order in which a propagator's numbers on a site are read.
    pub(crate) columns: ColumnOrder,
    /// Whether the data begin with all numbers of some links, which show the byte order.
    pub(crate) begins_with_links: bool,
    /// Reads a section from the data at an offset.
    pub(crate) read: ReadSection,
    /// Writes a section of a field, or of the columns of a propagator, into the data at an offset.
    pub(crate) write: WriteSection,
    /// Passes the bytes of a whole field, or of a propagator, to the sink in their order.
    pub(crate) encode: EncodeField,
}

type ReadSection = fn(&dyn ReadAt, u64, &StoredForm, &Section, &mut [Complex64]) -> Result<(), SystemError>;
type WriteSection = fn(&File, u64, &StoredForm, &Section, &[&[Complex64]]) -> Result<(), SystemError>;
type EncodeField = fn(Lattice, &StoredForm, &[&[Complex64]], Sink) -> Result<(), Problem>;
/// Function that takes bytes in their order.
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

/// Number of complex numbers of a link.
pub(crate) const LINK: usize = LINKS / 4;

/// Returns the links of one direction.
pub(crate) fn direction(values: &[Complex64], mu: usize) -> Vec<Complex64> {
    values.chunks_exact(LINKS).flat_map(|site| &site[mu * LINK..][..LINK]).copied().collect()
}

/// Reads the part of a field on a section, `header.values_per_site()` numbers for each site, and the checksum of its bytes: that of all
/// records combined, if there are several.
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

/// Reads time slice number `t` of a section, all numbers of each site, and the checksum of its bytes.
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
