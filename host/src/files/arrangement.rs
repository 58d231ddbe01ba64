//! How the numbers of a field lie in its file.
use super::columns::ColumnOrder;
use super::payload::{self, LINKS, PartialChecksum, StoredForm};
use super::source::ReadAt;
use super::{Header, openqcd};
use crate::lattice::Section;
use crate::system::atomic::SystemError;
use num_complex::Complex64;
use rayon::prelude::*;

/// How the numbers of a field lie in its file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Arrangement {
    /// All numbers of a site together, one site after the other, lexicographically with x fastest.
    Sites,
    /// The same for a propagator, whose numbers on a site are in this order.
    Columns(ColumnOrder),
    /// The links of each direction on their own: where those of x, y, z and t begin.
    Directions([u64; 4]),
    /// Eight links for each odd site: [`openqcd`](super::openqcd).
    OpenQcd,
}

/// Complex numbers of a link.
pub(crate) const LINK: usize = LINKS / 4;

/// The links of one direction.
pub(crate) fn direction(values: &[Complex64], mu: usize) -> Vec<Complex64> {
    values.chunks_exact(LINKS).flat_map(|site| &site[mu * LINK..][..LINK]).copied().collect()
}

/// Reads the part of a field on a section, `header.values_per_site()` numbers for each site, and the checksum of its bytes: that
/// of all records, combined, where there are several.
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
        Arrangement::OpenQcd => openqcd::read(source, &form, section, values).map(|()| PartialChecksum::default()),
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
