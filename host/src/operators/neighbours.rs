//! Covariant sums, differences and shifts of fields over neighbouring sites, such as those of Laplace operators.
//!
//! The kernel of naive staggered quarks without its signs computes D ψ = Σ_μ U_μ(x) ψ(x+μ̂) − U_μ†(x−μ̂) ψ(x−μ̂). With the links i U it
//! computes i H ψ, where H has a plus in place of the minus. If the field is multiplied by −i on odd sites, H is D on even sites and −D on
//! odd ones, so that all factors are real.
use super::{Staggered, StaggeredLinks, StaggeredParams, TimeBoundary};
use crate::domain::{Domain, Result};
use crate::field::host::{ColourVector, Fermion, HostColour, HostField};
use crate::field::{FullField, GaugeField, HopPhases};
use gpu_kernels::{LinkStorage, Precision};
use num_complex::Complex64;
use std::sync::Arc;

/// Largest number of colour vectors in a launch.
const TOGETHER: usize = 16;

/// Hops to neighbouring sites over links, which need not be unitary.
pub struct NeighbourHops {
    hops: Staggered,
    /// Whether the two hops of a direction are added.
    adds: bool,
}

impl NeighbourHops {
    /// Makes the sums H ψ = Σ_μ U_μ(x) ψ(x+μ̂) + U_μ†(x−μ̂) ψ(x−μ̂) over some directions.
    ///
    /// # Errors
    /// Failures of the device.
    pub fn sums(links: &GaugeField, directions: [bool; 4]) -> Result<Self> {
        Self::new(links, directions, true)
    }
    /// Makes the differences D ψ = Σ_μ U_μ(x) ψ(x+μ̂) − U_μ†(x−μ̂) ψ(x−μ̂) over some directions.
    ///
    /// # Errors
    /// Failures of the device.
    pub fn differences(links: &GaugeField, directions: [bool; 4]) -> Result<Self> {
        Self::new(links, directions, false)
    }
    fn new(links: &GaugeField, directions: [bool; 4], adds: bool) -> Result<Self> {
        let factor = if adds { Complex64::I } else { Complex64::ONE };
        let phases = HopPhases(directions.map(|hops| if hops { factor } else { Complex64::ZERO }));
        let links = links.pack_with(phases, Precision::Double, LinkStorage::FULL)?;
        let params = StaggeredParams::new(0.0, TimeBoundary::Periodic);
        Ok(NeighbourHops { hops: Staggered::new(Arc::new(StaggeredLinks::bare(links)), params), adds })
    }
    fn domain(&self) -> &Domain {
        self.hops.links().domain()
    }
    /// *Collective.* Returns (a + b H)ⁿ ψ, or (a + b D)ⁿ ψ, for each field ψ. Hops do not act on spin.
    ///
    /// # Errors
    /// Fields on another lattice, and failures of the device.
    pub fn apply<F: Fermion>(
        &self,
        (a, b): (f64, f64),
        steps: usize,
        fields: &[HostField<F>],
    ) -> Result<Vec<HostField<F>>> {
        let mut colours: Vec<HostColour> = fields.iter().flat_map(spins).collect();
        for together in colours.chunks_mut(TOGETHER) {
            self.turn_odd_sites(together, -Complex64::I);
            let mut psi = FullField::of_host(self.domain(), together)?;
            let mut next = FullField::zero(self.domain(), psi.even.shape())?;
            for _ in 0..steps {
                for parity in 0..2 {
                    let b = if self.adds && parity == 1 { -b } else { b };
                    let (x, input) = (psi.parity(parity), psi.parity(1 - parity));
                    self.hops.dslash_add(parity, (a, x), (b, input), next.parity_mut(parity))?;
                }
                std::mem::swap(&mut psi, &mut next);
            }
            together.clone_from_slice(&psi.download::<ColourVector>()?);
            self.turn_odd_sites(together, Complex64::I);
        }
        Ok(colours.chunks(F::COMPONENTS / 3).map(joined).collect())
    }
    /// Multiplies sums' fields by a number on odd sites.
    fn turn_odd_sites(&self, fields: &mut [HostColour], factor: Complex64) {
        if !self.adds {
            return;
        }
        for field in fields {
            let lattice = field.lattice();
            for (site, vector) in field.sites_mut().iter_mut().enumerate() {
                if lattice.parity(lattice.coordinates(site)) == 1 {
                    vector.iter_mut().for_each(|number| *number *= factor);
                }
            }
        }
    }
}

/// *Collective.* Returns U_μ(x) ψ(x+μ̂) for each field ψ, or U_μ†(x−μ̂) ψ(x−μ̂) if `forward` is not set.
///
/// # Errors
/// Fields on another lattice, and failures of the device.
pub fn covariant_shift<F: Fermion>(
    links: &GaugeField,
    (mu, forward): (usize, bool),
    fields: &[HostField<F>],
) -> Result<Vec<HostField<F>>> {
    let directions = std::array::from_fn(|nu| nu == mu);
    let mut shifted = NeighbourHops::sums(links, directions)?.apply((0.0, 0.5), 1, fields)?;
    let half = if forward { 0.5 } else { -0.5 };
    let differences = NeighbourHops::differences(links, directions)?.apply((0.0, half), 1, fields)?;
    for (sum, difference) in shifted.iter_mut().zip(&differences) {
        sum.numbers_mut().iter_mut().zip(difference.numbers()).for_each(|(sum, number)| *sum += number);
    }
    Ok(shifted)
}

/// Returns the colour vectors of each spin of a field.
fn spins<F: Fermion>(field: &HostField<F>) -> Vec<HostColour> {
    let of = |spin: usize| {
        let sites = field.numbers().chunks(F::COMPONENTS).map(|site| std::array::from_fn(|k| site[3 * spin + k]));
        HostColour::from_sites(field.lattice(), sites.collect())
    };
    (0..F::COMPONENTS / 3).map(of).collect()
}

/// Returns the field with these colour vectors of each spin.
fn joined<F: Fermion>(spins: &[HostColour]) -> HostField<F> {
    let mut field = HostField::zero(spins[0].lattice());
    for (site, numbers) in field.numbers_mut().chunks_mut(F::COMPONENTS).enumerate() {
        for (spin, numbers) in spins.iter().zip(numbers.chunks_mut(3)) {
            numbers.copy_from_slice(&spin.sites()[site]);
        }
    }
    field
}
