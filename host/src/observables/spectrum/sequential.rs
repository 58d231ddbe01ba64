//! Three-point functions of mesons by propagators through the sink (Martinelli and Sachrajda 1989).
//!
//! A meson O = ψ̄₂ Γ ψ₁ is made at x₀ and found at t_s with momentum p; between them a current of its quark acts, J = ψ̄₁ Γ_J ψ₁:
//!
//! C(τ, q) = Σ_{x,y} e^{−i p (x−x₀)} e^{−i q (y−x₀)} ⟨O(x, t_s) J(y, τ) O†(x₀)⟩
//! = −Σ_y e^{−i q (y−x₀)} tr [Γ_J S₁(y) Γ̄' γ_5 Σ†(y) γ_5],  M₁ Σ = η,  η(x) = δ_{t,t_s} e^{i p (x−x₀)} γ_5 Γ† γ_5 S₂(x),
//!
//! without the part in which the current's quark annihilates. By γ_5-Hermiticity γ_5 Σ†(y) γ_5 is Σ_x S₂(x₀, x) Γ e^{−i p (x−x₀)} S₁(x, y).
//! So it is the correlator of a meson of S₁ and an antiquark Σ: [`Mesons`](super::mesons::Mesons) makes all Γ_J and momenta q
//! of it, with Γ_J at the sink and Γ' at the source. The conserved charge, which reaches a neighbour, is [`conserved_charge`].
//!
//! Sinks are smeared as sources are: S₂ smeared, times Γ, and η smeared once more, as smearing is Hermitian.
use super::gamma::Gamma;
use super::{by_time, check, phases};
use crate::field::host::{HostGauge, HostSpinor, Matrix, Spinor};
use crate::lattice::Section;
use crate::operators::TimeBoundary;
use num_complex::Complex64;
use std::array::from_fn;

/// η for all 12 components, from those of the quark whose antiquark the meson has, with Γ at the sink, the momentum p in units
/// of 2π/L, and the sink's `time` on the whole lattice. Panics where there are not 12 fields on the local lattice, or no such
/// time.
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
    antiquark.iter().map(one).collect()
}

/// (1 + `sign` γ_t) U ψ, or with U†.
fn hop(psi: &Spinor, u: &Matrix, dagger: bool, sign: f64) -> Spinor {
    let moved: Spinor = psi.map(|colour| {
        from_fn(|a| (0..3).map(|b| if dagger { u[b][a].conj() } else { u[a][b] } * colour[b]).sum::<Complex64>())
    });
    let time = Gamma::time();
    from_fn(|s| from_fn(|c| moved[s][c] + sign * time.value[s] * moved[time.column[s]][c]))
}

/// C(τ, q) with the conserved charge density of Wilson-like quarks in place of J,
///
/// V_t(y) = ½ [ψ̄(y+t̂) (1 + γ_t) U_t†(y) ψ(y) − ψ̄(y) (1 − γ_t) U_t(y) ψ(y+t̂)],
///
/// `[momentum][time]`, by the time of y from the origin. On each configuration its sum over space without momentum changes
/// only at source and sink, by the two-point function: between them it is that plus what goes around the lattice. `gauge` has
/// the links of the operator, `quark` and `sequential` S₁ and Σ, and `boundary` is that of the quarks.
///
/// # Panics
/// Where there are not 12 fields on the local lattice, or the lattice is cut in t: of the time behind the last nothing is
/// known here.
pub fn conserved_charge(
    section: impl Into<Section>,
    gauge: &HostGauge,
    [quark, sequential]: [&[HostSpinor]; 2],
    source: Gamma,
    origin: [usize; 4],
    momenta: &[[i32; 3]],
    boundary: TimeBoundary,
) -> Vec<Vec<Complex64>> {
    let section = section.into();
    check(&section, quark, 12);
    check(&section, sequential, 12);
    let extent = section.global.size()[3];
    assert!(section.local.size()[3] == extent && gauge.lattice() == section.local, "the lattice is whole in t");
    let (five, right) = (Gamma::five(), source.bar() * Gamma::five());
    let zero = vec![Complex64::ZERO; momenta.len()];
    let sums = by_time(&section, origin[3], &zero, |sums, index, place| {
        let (ahead, u) = (section.local.neighbour(index, 3, true), gauge.link(index, 3));
        let across = if place[3] + 1 == extent { boundary.sign() } else { 1.0 };
        let mut term = Complex64::ZERO;
        for spin in 0..4 {
            for colour in 0..3 {
                let (column, other) = (&quark[3 * spin + colour], &sequential[3 * right.column[spin] + colour]);
                let (here, there) = (&column.sites()[index], &column.sites()[ahead]);
                let (forwards, backwards) = (hop(here, u, true, 1.0), hop(there, u, false, -1.0));
                let (at, behind) = (&other.sites()[ahead], &other.sites()[index]);
                for s in 0..4 {
                    for c in 0..3 {
                        let both = at[s][c].conj() * forwards[s][c] - behind[s][c].conj() * backwards[s][c];
                        term += right.value[spin] * five.value[s] * both;
                    }
                }
            }
        }
        for (sum, phase) in sums.iter_mut().zip(phases(&section, momenta, origin, place)) {
            *sum -= 0.5 * across * phase * term;
        }
    });
    (0..momenta.len()).map(|k| sums.iter().map(|sums| sums[k]).collect()).collect()
}
