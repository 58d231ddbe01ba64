//! The nucleon.
//!
//! χ = ε_abc (u_aᵀ C γ_5 d_b) u_c with u and d of one mass; with G = C γ_5 = γ_x γ_z and G̃ = γ_t G† γ_t
//!
//! C_γγ'(t) = Σ_x ε_abc ε_a'b'c' G_αβ G̃_β'α' S_{βb,β'b'} [S_{αa,α'a'} S_{γc,γ'c'} − S_{αa,γ'c'} S_{γc,α'a'}],
//!
//! and tr P_± C with P_± = (1 ± γ_t)/2 are the nucleon, running forwards, and its partner of negative parity (Montvay and
//! Münster 1994).
use super::gamma::Gamma;
use super::{by_time, check, phases};
use crate::field::host::{HostSpinor, Spinor};
use crate::lattice::Section;
use crate::operators::TimeBoundary;
use num_complex::Complex64;
use std::array::from_fn;

/// Even and odd permutations of three colours with their signs.
const EPSILON: [([usize; 3], f64); 6] =
    [([0, 1, 2], 1.0), ([1, 2, 0], 1.0), ([2, 0, 1], 1.0), ([0, 2, 1], -1.0), ([2, 1, 0], -1.0), ([1, 0, 2], -1.0)];

/// tr P_+ C and tr P_− C at all times for each momentum, in units of 2π/L: `[momentum][time]`.
#[derive(Clone, Debug, PartialEq)]
pub struct Nucleon {
    /// With P_+.
    pub positive: Vec<Vec<Complex64>>,
    /// With P_−.
    pub negative: Vec<Vec<Complex64>>,
}

/// From the solutions for all 12 sources at `origin`, `[3 spin + colour]`, with this boundary condition in t, whose sign is
/// taken back: the correlator is that from t = 0. Panics where there are not 12 fields on the local lattice.
pub fn nucleon(
    section: impl Into<Section>,
    propagator: &[HostSpinor],
    origin: [usize; 4],
    momenta: &[[i32; 3]],
    boundary: TimeBoundary,
) -> Nucleon {
    let section = section.into();
    check(&section, propagator, 12);
    let zero = vec![Complex64::ZERO; 2 * momenta.len()];
    let sums = by_time(&section, origin[3], &zero, |sums, index, place| {
        let s: [&Spinor; 12] = from_fn(|source| &propagator[source].sites()[index]);
        let [unit, time] = traces(&s);
        // Three quarks that have crossed the boundary: as if the source were at t = 0.
        let sign = if place[3] < origin[3] { boundary.sign() } else { 1.0 };
        for (k, phase) in phases(&section, momenta, origin, place).into_iter().enumerate() {
            let phase = sign * phase;
            sums[2 * k] += 0.5 * phase * (unit + time);
            sums[2 * k + 1] += 0.5 * phase * (unit - time);
        }
    });
    let of = |which: usize, k: usize| sums.iter().map(|sums| sums[2 * k + which]).collect();
    let all = |which: usize| (0..momenta.len()).map(|k| of(which, k)).collect();
    Nucleon { positive: all(0), negative: all(1) }
}

/// tr C and tr γ_t C at a site; the propagator as `[3 spin + colour of the source][spin][colour]`.
///
/// With Q = G S G̃, G and G̃ having one number in each row, the sums over the two quarks of
///
/// Z_{α'γ',ca'} = Σ_{ab b'c'} ε_abc ε_a'b'c' Σ_α Q_{αb,α'b'} S_{αa,γ'c'}
///
/// are in both terms: of the first, where γ' = α' and a' and c' change places, with the other sign.
fn traces(s: &[&Spinor; 12]) -> [Complex64; 2] {
    let g = Gamma::new(5);
    // γ_t is symmetric and has ones only.
    let (tilde, time) = (Gamma::time() * g.adjoint() * Gamma::time(), Gamma::time());
    let at = |a: usize, c: usize, a1: usize, c1: usize| s[3 * a1 + c1][a][c];
    let mut traces = [Complex64::ZERO; 2];
    for beta1 in 0..4 {
        let alpha1 = tilde.column[beta1];
        // Q_{αb,α'b'} for this α'.
        let q: [[[Complex64; 3]; 3]; 4] = from_fn(|alpha| {
            let (beta, factor) = (g.column[alpha], g.value[alpha] * tilde.value[beta1]);
            from_fn(|b| from_fn(|b1| factor * at(beta, b, beta1, b1)))
        });
        for gamma1 in 0..4 {
            let mut z = [[Complex64::ZERO; 3]; 3];
            for ([a, b, c], sign) in EPSILON {
                for ([a1, b1, c1], sign1) in EPSILON {
                    let sum: Complex64 = (0..4).map(|alpha| q[alpha][b][b1] * at(alpha, a, gamma1, c1)).sum();
                    z[c][a1] += sign * sign1 * sum;
                }
            }
            // Of tr C; and of tr γ_t C, whose elements are (γ_t)_γ'γ C_γγ'.
            for (trace, gamma) in traces.iter_mut().zip([gamma1, time.column[gamma1]]) {
                for (c, row) in z.iter().enumerate() {
                    for (a1, z) in row.iter().enumerate() {
                        *trace -= z * at(gamma, c, alpha1, a1);
                    }
                }
            }
            if gamma1 == alpha1 {
                for (c, row) in z.iter().enumerate() {
                    for (c1, z) in row.iter().enumerate() {
                        for gamma in 0..4 {
                            traces[0] -= z * at(gamma, c, gamma, c1);
                            traces[1] -= z * at(gamma, c, time.column[gamma], c1);
                        }
                    }
                }
            }
        }
    }
    traces
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::gauge::generate;
    use crate::lattice::Lattice;

    /// C γ_μ C⁻¹ = −γ_μᵀ for C = γ_y γ_t, and G = C γ_5 up to a sign, which drops out.
    #[test]
    fn charge_conjugation() {
        let c = Gamma::new(2) * Gamma::time();
        for mu in 0..4 {
            let gamma = Gamma::new(1 << mu);
            let turned = c * gamma * c.adjoint();
            for row in 0..4 {
                for column in 0..4 {
                    assert_eq!(turned.at(row, column), -gamma.at(column, row), "{mu}");
                }
            }
        }
        let (g, other) = (Gamma::new(5), c * Gamma::five());
        let sign = other.value[0] / g.value[0];
        assert!(sign.norm() == 1.0 && other.column == g.column);
        assert!((0..4).all(|row| other.value[row] == sign * g.value[row]));
    }

    /// All indices by brute force, for random numbers at the sites of a small lattice.
    #[test]
    fn all_contractions() {
        let lattice = Lattice::new([2, 2, 2, 2]).unwrap();
        let s: Vec<HostSpinor> = (0..12).map(|seed| generate::random_source(lattice, seed)).collect();
        let found = nucleon(lattice, &s, [0, 0, 0, 1], &[[0; 3]], TimeBoundary::Antiperiodic);
        let g = Gamma::new(5);
        let tilde = Gamma::time() * g.adjoint() * Gamma::time();
        let epsilon = |i: usize, j: usize, k: usize| {
            let (i, j, k) = (i as i32, j as i32, k as i32);
            f64::from((i - j) * (j - k) * (k - i)) / 2.0
        };
        let mut expected = [[Complex64::ZERO; 2]; 2];
        for index in 0..lattice.volume() {
            let time = (lattice.coordinates(index)[3] + 1) % 2;
            // Site 0 in t is behind the boundary, seen from the source.
            let around = if lattice.coordinates(index)[3] == 0 { -1.0 } else { 1.0 };
            let at = |a: usize, c: usize, a1: usize, c1: usize| s[3 * a1 + c1].sites()[index][a][c];
            for colours in 0..3usize.pow(6) {
                let digit = |k: u32| colours / 3usize.pow(k) % 3;
                let (a, b, c, a1, b1, c1) = (digit(0), digit(1), digit(2), digit(3), digit(4), digit(5));
                let sign = epsilon(a, b, c) * epsilon(a1, b1, c1);
                if sign == 0.0 {
                    continue;
                }
                for spins in 0..4usize.pow(6) {
                    let digit = |k: u32| spins / 4usize.pow(k) % 4;
                    let (alpha, beta, gamma, alpha1, beta1, gamma1) =
                        (digit(0), digit(1), digit(2), digit(3), digit(4), digit(5));
                    let factor = sign * g.at(alpha, beta) * tilde.at(beta1, alpha1);
                    if factor == Complex64::ZERO {
                        continue;
                    }
                    let direct = at(alpha, a, alpha1, a1) * at(gamma, c, gamma1, c1);
                    let exchange = at(alpha, a, gamma1, c1) * at(gamma, c, alpha1, a1);
                    let term = around * factor * at(beta, b, beta1, b1) * (direct - exchange);
                    let unit = if gamma == gamma1 { Complex64::ONE } else { Complex64::ZERO };
                    let in_time = Gamma::time().at(gamma1, gamma);
                    expected[0][time] += 0.5 * (unit + in_time) * term;
                    expected[1][time] += 0.5 * (unit - in_time) * term;
                }
            }
        }
        for (found, expected) in [(&found.positive, expected[0]), (&found.negative, expected[1])] {
            for (found, expected) in found[0].iter().zip(expected) {
                assert!((found - expected).norm() < 1e-9 * expected.norm(), "{found} {expected}");
            }
        }
    }
}
