//! Three-point functions of mesons by propagators through the sink (Martinelli and Sachrajda 1989).
//!
//! A meson O = ψ̄₂ Γ ψ₁ is created at x₀ and annihilated at t_s with momentum p; between them a current of its quark acts, J = ψ̄₁ Γ_J ψ₁:
//!
//! C(τ, q) = Σ_{x,y} e^{−i p (x−x₀)} e^{−i q (y−x₀)} ⟨O(x, t_s) J(y, τ) O†(x₀)⟩
//! = −Σ_y e^{−i q (y−x₀)} tr [Γ_J S₁(y) Γ̄' γ_5 Σ†(y) γ_5],  M₁ Σ = η,  η(x) = δ_{t,t_s} e^{i p (x−x₀)} γ_5 Γ† γ_5 S₂(x),
//!
//! without the disconnected part, in which the current's quark annihilates. By γ_5-hermiticity, γ_5 Σ†(y) γ_5 is Σ_x S₂(x₀, x) Γ e^{−i p
//! (x−x₀)} S₁(x, y). C is therefore the correlator of a meson of S₁ and an antiquark Σ. [`Mesons`](super::mesons::Mesons) computes all Γ_J
//! and momenta q from these propagators, with Γ_J at the sink and Γ' at the source. [`conserved_charge`] is for the conserved charge, whose
//! density joins neighbouring sites.
//!
//! A smeared sink needs the smeared S₂ times Γ, and η smeared once more, because smearing is Hermitian.
use super::contraction::MomentumSums;
use super::gamma::Gamma;
use super::{check, phases};
use crate::domain::{Domain, Result};
use crate::field::host::{HostGauge, HostSpinor};
use crate::field::{DeviceArray, FullField};
use crate::lattice::Section;
use crate::operators::TimeBoundary;
use num_complex::Complex64;
use rayon::prelude::*;
use std::array::from_fn;

/// Computes the sequential source η of a meson for all 12 components. `antiquark` are the solutions for the quark whose antiquark is in the
/// meson, `sink` is Γ at the sink, `momentum` is p in units of 2π/L, and `time` is the time of the sink on the whole lattice. Panics unless
/// there are 12 fields on the local lattice and `time` exists.
pub fn sequential_source(
    section: impl Into<Section>,
    antiquark: &[HostSpinor],
    sink: Gamma,
    momentum: [i32; 3],
    origin: [usize; 4],
    time: usize,
) -> Vec<HostSpinor> {
    let section = section.into();
    check(&section, antiquark, 12);
    assert!(time < section.global.size()[3], "a time that is there");
    let gamma = Gamma::five() * sink.adjoint() * Gamma::five();
    let one = |field: &HostSpinor| {
        let mut out = HostSpinor::zero(section.local);
        for (index, site) in out.sites_mut().iter_mut().enumerate() {
            let place = section.global.coordinates(section.global_index(index));
            if place[3] == time {
                let phase = phases(&section, &[momentum], origin, place)[0].conj();
                let psi = &field.sites()[index];
                *site = from_fn(|s| psi[gamma.column[s]].map(|z| phase * gamma.value[s] * z));
            }
        }
        out
    };
    antiquark.par_iter().map(one).collect()
}

/// Links of an operator on a device, for the conserved charge of the operator.
pub struct ChargeLinks {
    domain: Domain,
    links: DeviceArray,
}

impl ChargeLinks {
    /// Copies to the device the links `gauge` over which the operator hops.
    ///
    /// # Errors
    /// Links on another lattice; failures of the device.
    pub fn new(domain: &Domain, gauge: &HostGauge) -> Result<Self> {
        domain.expect("a gauge field", gauge.lattice())?;
        let numbers: &[Complex64] = bytemuck::cast_slice(gauge.links());
        let mut links = DeviceArray::zero(domain.backend(), numbers.len(), "links of the conserved charge")?;
        links.upload(0, numbers)?;
        Ok(ChargeLinks { domain: domain.clone(), links })
    }
}

/// Computes the three-point function C(τ, q) of a meson with the conserved charge density of Wilson-like quarks as the current J:
///
/// V_t(y) = ½ [ψ̄(y+t̂) (1 + γ_t) U_t†(y) ψ(y) − ψ̄(y) (1 − γ_t) U_t(y) ψ(y+t̂)].
///
/// The result is `[momentum][time]`, with the time of y counted from the source time. Without momentum, the charge on each configuration
/// changes only at source and sink, by the two-point function. Between them it is the two-point function plus what goes around the lattice.
/// `quark` and `sequential` are S₁ and Σ in double precision, and `boundary` is the boundary condition of the quarks.
///
/// # Errors
/// Fields of another shape or lattice; failures of the device.
///
/// # Panics
/// If the lattice is partitioned in t, because another process then has the time after the last local one.
pub fn conserved_charge(
    links: &ChargeLinks,
    [quark, sequential]: [&FullField; 2],
    source: Gamma,
    origin: [usize; 4],
    momenta: &[[i32; 3]],
    boundary: TimeBoundary,
) -> Result<Vec<Vec<Complex64>>> {
    let domain = &links.domain;
    assert!(domain.local().size()[3] == domain.global().size()[3], "the lattice is whole in t");
    let sums = MomentumSums::new(domain, origin, momenta)?;
    let right = source.bar() * Gamma::five();
    let found = sums.of_charge(&links.links, [quark, sequential], right.column, boundary.sign())?;
    let at = |momentum: usize, time: usize| -> Complex64 {
        let term: Complex64 = (0..4).map(|spin| right.value[spin] * found[spin][momentum][time]).sum();
        -0.5 * term
    };
    let times = domain.global().size()[3];
    Ok((0..momenta.len()).map(|k| (0..times).map(|time| at(k, time)).collect()).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::field::host::{Matrix, Spinor};
    use crate::gauge::generate;
    use crate::lattice::Lattice;
    use crate::observables::spectrum::tests::on_cpu;

    /// (1 + `sign` γ_t) U ψ, or with U†.
    fn hop(psi: &Spinor, u: &Matrix, dagger: bool, sign: f64) -> Spinor {
        let moved: Spinor = psi.map(|colour| {
            from_fn(|a| (0..3).map(|b| if dagger { u[b][a].conj() } else { u[a][b] } * colour[b]).sum::<Complex64>())
        });
        let time = Gamma::time();
        from_fn(|s| from_fn(|c| moved[s][c] + sign * time.value[s] * moved[time.column[s]][c]))
    }

    /// Against V_t with matrices, site by site, for any fields, all Γ' and both boundary conditions.
    #[test]
    fn charge_is_that_of_the_formula() {
        let (lattice, origin) = (Lattice::new([2, 4, 2, 6]).unwrap(), [1, 2, 0, 4]);
        let fields = |first: u64| -> Vec<HostSpinor> {
            (first..first + 12).map(|seed| generate::random_source(lattice, seed)).collect()
        };
        let (s, sigma, gauge) = (fields(0), fields(12), generate::weak_field(lattice, 5, 0.6));
        let on = on_cpu(lattice, &[&s, &sigma]);
        let links = ChargeLinks::new(on[0].even.domain(), &gauge).unwrap();
        let momenta = [[0, 0, 0], [1, -1, 1]];
        for (number, boundary) in (0..16).flat_map(|n| [(n, TimeBoundary::Periodic), (n, TimeBoundary::Antiperiodic)]) {
            let source = Gamma::new(number);
            let found = conserved_charge(&links, [&on[0], &on[1]], source, origin, &momenta, boundary).unwrap();
            let (five, right) = (Gamma::five(), source.bar() * Gamma::five());
            for (k, p) in momenta.into_iter().enumerate() {
                let mut expected = vec![Complex64::ZERO; 6];
                for index in 0..lattice.volume() {
                    let (x, ahead) = (lattice.coordinates(index), lattice.neighbour(index, 3, true));
                    let across = if x[3] == 5 { boundary.sign() } else { 1.0 };
                    let phase = phases(&lattice.into(), &[p], origin, x)[0];
                    let u = gauge.link(index, 3);
                    for (spin, colour) in (0..12).map(|n| (n / 3, n % 3)) {
                        let (column, other) = (&s[3 * spin + colour], &sigma[3 * right.column[spin] + colour]);
                        let forwards = hop(&column.sites()[index], u, true, 1.0);
                        let backwards = hop(&column.sites()[ahead], u, false, -1.0);
                        for (a, c) in (0..12).map(|n| (n / 3, n % 3)) {
                            let both = other.sites()[ahead][a][c].conj() * forwards[a][c]
                                - other.sites()[index][a][c].conj() * backwards[a][c];
                            expected[(x[3] + 2) % 6] -= 0.5 * across * phase * right.value[spin] * five.value[a] * both;
                        }
                    }
                }
                let largest = expected.iter().map(|z| z.norm()).fold(0.0, f64::max);
                for (found, expected) in found[k].iter().zip(&expected) {
                    assert!((found - expected).norm() < 1e-12 * largest, "{number} {boundary:?} {p:?}");
                }
            }
        }
    }
}
