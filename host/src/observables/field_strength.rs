//! The clover-leaf field strength: energy density and topological charge.
use crate::domain::Result;
use crate::field::GaugeField;
use gpu_kernels::gauge_force::{FIELD_STRENGTH, FieldStrength};
use gpu_kernels::{Format, Precision};

/// Energy densities and topological charge of links, from the clover-leaf field strength F. Energies are means over the lattice; the charge
/// is a sum over it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct FieldStrengths {
    /// Magnetic energy density −Σ_{i<j} tr F_ij².
    pub space: f64,
    /// Electric energy density −Σ_i tr F_it².
    pub time: f64,
    /// Topological charge −(1/32π²) Σ_x ε_μνρσ tr F_μν F_ρσ, with F anti-Hermitian.
    pub charge: f64,
}

impl FieldStrengths {
    /// Returns the energy density, −½ Σ_μν tr F_μν².
    pub fn energy(&self) -> f64 {
        self.space + self.time
    }
}

/// *Collective.* Measures the energy densities and the topological charge from the clover-leaf field strength; `links` must be in double
/// precision.
pub fn field_strengths(links: &GaugeField) -> Result<FieldStrengths> {
    links.expect_in(Precision::Double)?;
    let (domain, lattice) = (links.domain(), links.bordered());
    for parity in 0..2 {
        let kernel = FieldStrength { links: links.both(), lattice, parity: parity as u32 };
        domain.backend().reduce(
            &FIELD_STRENGTH,
            Format::of(Precision::Double),
            &kernel,
            (domain.half_sites(), 1),
            3 * parity,
        )?;
    }
    let mut sums = [0.0; 6];
    domain.sums(&mut sums)?;
    let volume = domain.global().volume() as f64;
    let [space, time, dual] = std::array::from_fn(|k| sums[k] + sums[3 + k]);
    // ε_μνρσ has eight non-zero elements for each of the three pairs of planes.
    let charge = 8.0 * dual / (32.0 * std::f64::consts::PI.powi(2));
    Ok(FieldStrengths { space: space / volume, time: time / volume, charge })
}
