//! Three-point functions of the nucleon by propagators through the sink.
//!
//! χ of [`nucleon`](super::nucleon) is created at x₀ and annihilated at t_s with momentum p; between them a current of one flavour acts,
//! J = q̄ Γ_J q with q = u or d:
//!
//! C(τ, q) = Σ_{x,y} e^{−i p (x−x₀)} e^{−i q (y−x₀)} tr Γ_p ⟨χ(x, t_s) J(y, τ) χ̄(x₀)⟩
//! = Σ_y e^{−i q (y−x₀)} tr [Γ_J S(y) Σ†(y) γ_5],  M Σ = η,  η_ij(x) = δ_{t,t_s} e^{i p (x−x₀)} (γ_5)_ii (L_ij(x))*,
//!
//! without the disconnected part, in which the current's quark annihilates. L_ij is the derivative of tr Γ_p C with respect to the
//! propagators S_ij of the current's flavour, two of u and one of d; each of them in turn becomes Σ_y S(x, y) Γ_J S(y, x₀) (Martinelli and
//! Sachrajda 1989). Since γ_5 γ_5 = 1, C is the correlator of a [meson](super::mesons::Mesons) of S and an antiquark Σ, with Γ_J at the
//! sink and Γ' = γ_5 at the source. The same holds for the [conserved charge](super::sequential::conserved_charge).
//!
//! With (A × B)_cc' = ε_abc ε_a'b'c' A_aa' B_bb' of matrices in colour, Q = G S G̃, and all spins written out,
//!
//! tr Γ_p C = Σ tr_c (S_αα' × Q_αα')ᵀ R + Σ tr_c Q_αα'ᵀ ((S Γ_p)_αγ × S_γα'),  R = tr_s Γ_p S,
//!
//! where two exchanges of colours give the second sum its sign. Derivatives of tr Γ_p C are also sums of such products.
use super::gamma::Gamma;
use super::{check, phases};
use crate::field::host::{HostSpinor, Spinor};
use crate::lattice::Section;
use crate::operators::TimeBoundary;
use num_complex::Complex64;
use rayon::prelude::*;
use std::array::from_fn;

/// A matrix in colour space.
type ColourBlock = [[Complex64; 3]; 3];
/// Colour matrices by spin at the sink and at the source.
type SpinBlocks = [[ColourBlock; 4]; 4];

/// Spin projector Γ_p of a three-point function of the nucleon.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum SpinProjector {
    /// Unpolarised: (1 + γ_t)/2.
    Unpolarised,
    /// Polarised: (1 + γ_t)/2 · i γ_5 γ_k, for k = 0, 1, 2 for x, y, z.
    Polarised(usize),
}

/// Spin projectors with their names in inputs.
pub const PROJECTORS: [(&str, SpinProjector); 4] = [
    ("unpolarised", SpinProjector::Unpolarised),
    ("polarised-x", SpinProjector::Polarised(0)),
    ("polarised-y", SpinProjector::Polarised(1)),
    ("polarised-z", SpinProjector::Polarised(2)),
];

impl SpinProjector {
    /// Returns the projector Γ_p as a matrix in spin space.
    pub fn matrix(self) -> [[Complex64; 4]; 4] {
        let mut right = match self {
            SpinProjector::Unpolarised => Gamma::UNIT,
            SpinProjector::Polarised(k) => Gamma::five() * Gamma::new(1 << k),
        };
        if self != SpinProjector::Unpolarised {
            right.value = right.value.map(|z| Complex64::I * z);
        }
        let other = Gamma::time() * right;
        from_fn(|row| from_fn(|column| 0.5 * (right.at(row, column) + other.at(row, column))))
    }
    /// Returns the name of the projector, such as `unpolarised` or `polarised-x`.
    pub fn name(self) -> &'static str {
        PROJECTORS.iter().find(|(_, projector)| *projector == self).map_or("", |(name, _)| name)
    }
}

/// Flavour of a quark in the nucleon χ; both flavours have the same mass.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Flavour {
    /// Up quarks, of which the nucleon has two.
    Up,
    /// Down quark, of which the nucleon has one.
    Down,
}

/// Flavours with their names in inputs.
pub const FLAVOURS: [(&str, Flavour); 2] = [("u", Flavour::Up), ("d", Flavour::Down)];

impl Flavour {
    /// Returns the name of the flavour, `u` or `d`.
    pub fn name(self) -> &'static str {
        FLAVOURS.iter().find(|(_, flavour)| *flavour == self).map_or("", |(name, _)| name)
    }
}

/// Sink of a three-point function of the nucleon.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NucleonSink {
    /// Spin projector Γ_p of a three-point function of the nucleon.
    pub projector: SpinProjector,
    /// Flavour of the quark on which the current acts.
    pub flavour: Flavour,
    /// Momentum p, in units of 2π/L.
    pub momentum: [i32; 3],
    /// Time of the sink on the whole lattice.
    pub time: usize,
}

/// Computes the sequential source η of the nucleon for all 12 components. `propagator` are the solutions for all 12 sources at `origin`,
/// with the boundary condition `boundary` in t. The sign of η is that of the [two-point function](super::nucleon::nucleon), as if the
/// source were at t = 0. Panics unless there are 12 fields on the local lattice and the sink's time exists.
pub fn sequential_nucleon_source(
    section: impl Into<Section>,
    propagator: &[HostSpinor],
    sink: &NucleonSink,
    origin: [usize; 4],
    boundary: TimeBoundary,
) -> Vec<HostSpinor> {
    let section = section.into();
    check(&section, propagator, 12);
    let NucleonSink { projector, flavour, momentum, time } = *sink;
    assert!(time < section.global.size()[3], "a time that is there");
    let (projector, five) = (projector.matrix(), Gamma::five());
    // Three quarks that have crossed the boundary in t have the sign of the boundary condition, as in the two-point function.
    let sign = if time < origin[3] { boundary.sign() } else { 1.0 };
    let place = |index: usize| section.global.coordinates(section.global_index(index));
    let sites: Vec<usize> = (0..section.local.volume()).filter(|index| place(*index)[3] == time).collect();
    let of_site = |index: &usize| -> [Spinor; 12] {
        let s: SpinBlocks =
            from_fn(|i| from_fn(|j| from_fn(|c| from_fn(|c1| propagator[3 * j + c1].sites()[*index][i][c]))));
        let derivative = match flavour {
            Flavour::Up => by_up(&s, &projector),
            Flavour::Down => by_down(&s, &projector),
        };
        let phase = sign * phases(&section, &[momentum], origin, place(*index))[0].conj();
        from_fn(|j| from_fn(|i| from_fn(|c| phase * five.value[i] * derivative[i][j / 3][c][j % 3].conj())))
    };
    let made: Vec<[Spinor; 12]> = sites.par_iter().map(of_site).collect();
    (0..12)
        .into_par_iter()
        .map(|component| {
            let mut out = HostSpinor::zero(section.local);
            for (index, site) in sites.iter().zip(&made) {
                out.sites_mut()[*index] = site[component];
            }
            out
        })
        .collect()
}

/// Computes (A × B)_cc' = Σ ε_abc ε_a'b'c' A_aa' B_bb', which equals B × A.
fn cross(a: &ColourBlock, b: &ColourBlock) -> ColourBlock {
    let others = |c: usize| [(c + 1) % 3, (c + 2) % 3];
    from_fn(|c| {
        let [i, j] = others(c);
        from_fn(|c1| {
            let [i1, j1] = others(c1);
            a[i][i1] * b[j][j1] - a[i][j1] * b[j][i1] - a[j][i1] * b[i][j1] + a[j][j1] * b[i][i1]
        })
    })
}

fn add(to: &mut ColourBlock, factor: Complex64, term: &ColourBlock) {
    for (to, term) in to.as_flattened_mut().iter_mut().zip(term.as_flattened()) {
        *to += factor * term;
    }
}

/// Parts of tr Γ_p C: Q, S Γ_p, Γ_p S and R. As Γ_p (1 + γ_t)/2 = Γ_p = (1 + γ_t)/2 Γ_p, columns 2 and 3 of S Γ_p are its columns 0 and 1,
/// and rows 2 and 3 of Γ_p S are its rows 0 and 1.
struct ContractionParts {
    q: SpinBlocks,
    right: SpinBlocks,
    left: SpinBlocks,
    trace: ColourBlock,
}

/// Returns G and G̃ of [`nucleon`](super::nucleon).
fn diquark() -> [Gamma; 2] {
    let g = Gamma::new(5);
    [g, Gamma::time() * g.adjoint() * Gamma::time()]
}

impl ContractionParts {
    fn of(s: &SpinBlocks, projector: &[[Complex64; 4]; 4]) -> Self {
        let [g, tilde] = diquark();
        let [mut q, mut right, mut left] = [SpinBlocks::default(); 3];
        for j in 0..4 {
            for i in 0..4 {
                add(&mut q[i][tilde.column[j]], g.value[i] * tilde.value[j], &s[g.column[i]][j]);
                for k in (0..4).filter(|k| projector[*k][j] != Complex64::ZERO) {
                    add(&mut right[i][j], projector[k][j], &s[i][k]);
                    add(&mut left[k][i], projector[k][j], &s[j][i]);
                }
            }
        }
        let mut trace = ColourBlock::default();
        (0..4).for_each(|i| add(&mut trace, Complex64::ONE, &left[i][i]));
        ContractionParts { q, right, left, trace }
    }
}

/// Computes ∂ tr Γ_p C / ∂S_ij for both u quarks.
fn by_up(s: &SpinBlocks, projector: &[[Complex64; 4]; 4]) -> SpinBlocks {
    let ContractionParts { q, right, left, trace } = ContractionParts::of(s, projector);
    let (mut both, mut out) = (ColourBlock::default(), SpinBlocks::default());
    for i in 0..4 {
        for j in 0..4 {
            add(&mut both, Complex64::ONE, &cross(&s[i][j], &q[i][j]));
            add(&mut out[i][j], Complex64::ONE, &cross(&q[i][j], &trace));
            for k in 0..2 {
                let (row, column) = (cross(&q[i][j], &left[k][j]), cross(&right[i][k], &q[i][j]));
                for k in [k, k + 2] {
                    add(&mut out[i][k], Complex64::ONE, &row);
                    add(&mut out[k][j], Complex64::ONE, &column);
                }
            }
        }
    }
    for (i, row) in out.iter_mut().enumerate() {
        for (j, block) in row.iter_mut().enumerate() {
            add(block, projector[j][i], &both);
        }
    }
    out
}

/// Computes ∂ tr Γ_p C / ∂S_ij for the d quark.
fn by_down(s: &SpinBlocks, projector: &[[Complex64; 4]; 4]) -> SpinBlocks {
    let ([g, tilde], ContractionParts { right, trace, .. }) = (diquark(), ContractionParts::of(s, projector));
    let mut out = SpinBlocks::default();
    for i in 0..4 {
        for j in 0..4 {
            let mut by_q = cross(&s[i][tilde.column[j]], &trace);
            for k in 0..2 {
                let mut both = s[k][tilde.column[j]];
                add(&mut both, Complex64::ONE, &s[k + 2][tilde.column[j]]);
                add(&mut by_q, Complex64::ONE, &cross(&right[i][k], &both));
            }
            add(&mut out[g.column[i]][j], g.value[i] * tilde.value[j], &by_q);
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::gauge::generate;
    use crate::lattice::Lattice;
    use crate::observables::spectrum::nucleon::nucleon;
    use crate::observables::spectrum::tests::on_cpu;

    /// Σ_ij S_ij ∂/∂S_ij counts quarks: tr Γ_p C has two factors of u and one of d.
    #[test]
    fn derivatives_count_quarks() {
        let lattice = Lattice::new([2, 2, 2, 4]).unwrap();
        let s: Vec<HostSpinor> = (0..12).map(|seed| generate::random_source(lattice, seed)).collect();
        let (on, origin, p) = (on_cpu(lattice, &[&s]), [1, 0, 1, 2], [0, 1, 0]);
        for boundary in [TimeBoundary::Antiperiodic, TimeBoundary::Periodic] {
            let two = nucleon(&on[0], origin, &[p], boundary).unwrap().positive.swap_remove(0);
            for (_, flavour) in FLAVOURS {
                for time in 0..4 {
                    let sink = NucleonSink { projector: SpinProjector::Unpolarised, flavour, momentum: p, time };
                    let eta = sequential_nucleon_source(lattice, &s, &sink, origin, boundary);
                    // γ_5 is its own inverse.
                    let five = |spin: usize| if spin < 2 { 1.0 } else { -1.0 };
                    let mut sum = Complex64::ZERO;
                    for (eta, s) in eta.iter().zip(&s) {
                        for (eta, s) in eta.sites().iter().zip(s.sites()) {
                            for spin in 0..4 {
                                for colour in 0..3 {
                                    sum += five(spin) * eta[spin][colour].conj() * s[spin][colour];
                                }
                            }
                        }
                    }
                    let count = if flavour == Flavour::Up { 2.0 } else { 1.0 };
                    let expected = count * two[(time + 4 - origin[3]) % 4];
                    // Some thousand terms, each rounded.
                    assert!((sum - expected).norm() < 1e-12 * expected.norm(), "{flavour:?} {time}: {sum} {expected}");
                }
            }
        }
    }
}
