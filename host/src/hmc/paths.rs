//! Force of arbitrary closed paths of links. The gauge actions of [`action`](super::action) have faster kernels.
use super::momenta::MomentumField;
use crate::domain::Result;
use crate::field::GaugeField;
use crate::gauge::loops::{PathsOfLinks, link_path};
use gpu_kernels::gauge_force::{PATH_FORCE, PathForce};
use gpu_kernels::{Format, Precision};

/// *Collective.* Computes P_μ(x) ← P_μ(x) − ε Σ c A, where A is the traceless anti-Hermitian part of a closed path L from x and ε is
/// `step`. Links and momenta must be in double precision.
///
/// # Errors
/// The errors of [`mean_complex_traces`](crate::gauge::loops::mean_complex_traces); momenta on another lattice or in another precision.
pub fn kick_by_paths(links: &GaugeField, paths: PathsOfLinks<'_>, step: f64, momenta: &mut MomentumField) -> Result {
    let domain = links.domain();
    momenta.expect_like(domain, Precision::Double)?;
    for (mu, paths) in paths.into_iter().enumerate() {
        for (factor, steps) in paths {
            for parity in 0..2 {
                let (path, momenta) = (link_path(links, steps, parity)?, momenta.view(parity));
                let kernel = PathForce { path, momenta, step: step * factor, mu: mu as u32 };
                let format = Format::of(Precision::Double);
                domain.backend().launch(&PATH_FORCE, format, &kernel, domain.half_sites(), 1)?;
            }
        }
    }
    Ok(())
}
