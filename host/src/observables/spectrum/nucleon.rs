//! Correlators of the nucleon.
//!
//! The nucleon is χ = ε_abc (u_aᵀ C γ_5 d_b) u_c, where u and d have one mass. With G = C γ_5 = γ_x γ_z and G̃ = γ_t G† γ_t its correlator
//! is
//!
//! C_γγ'(t) = Σ_x ε_abc ε_a'b'c' G_αβ G̃_β'α' S_{βb,β'b'} [S_{αa,α'a'} S_{γc,γ'c'} − S_{αa,γ'c'} S_{γc,α'a'}],
//!
//! where tr P_+ C with P_± = (1 ± γ_t)/2 is the nucleon that propagates forwards, and tr P_− C its partner of negative parity (Montvay and
//! Münster 1994).
use super::contraction::MomentumSums;
use super::gamma::Gamma;
use crate::domain::Result;
use crate::field::FullField;
use crate::operators::TimeBoundary;
use num_complex::Complex64;

/// Correlators tr P_+ C and tr P_− C of the nucleon at all times for each momentum.
#[derive(Clone, Debug, PartialEq)]
pub struct Nucleon {
    /// Correlator tr P_+ C, as `[momentum][time]`.
    pub positive: Vec<Vec<Complex64>>,
    /// Correlator tr P_− C, as `[momentum][time]`.
    pub negative: Vec<Vec<Complex64>>,
}

/// Computes the correlators of the nucleon. `propagator` has the solutions for all 12 sources at `origin`, in the order 3 spin + colour, in
/// double precision. Momenta are in units of 2π/L. The sign of the boundary condition in t is removed, as if the source were at t = 0.
///
/// # Errors
/// Fields of another shape or lattice; failures of the device.
pub fn nucleon(
    propagator: &FullField,
    origin: [usize; 4],
    momenta: &[[i32; 3]],
    boundary: TimeBoundary,
) -> Result<Nucleon> {
    let sums = MomentumSums::new(propagator.even.domain(), origin, momenta)?;
    let open = sums.of_nucleon(propagator)?;
    let extent = propagator.even.domain().global().size()[3];
    let (unit, time) = (Gamma::UNIT, Gamma::time());
    let all = |parity: f64| -> Vec<Vec<Complex64>> {
        let at = |k: usize, t: usize| -> Complex64 {
            // Three quarks that have crossed the boundary in t have the sign of the boundary condition. It is removed, as if the source
            // were at t = 0.
            let sign = if origin[3] + t >= extent { boundary.sign() } else { 1.0 };
            let trace = |gamma: Gamma| -> Complex64 {
                (0..4).map(|row| gamma.value[row] * open[row + 4 * gamma.column[row]][k][t]).sum()
            };
            0.5 * sign * (trace(unit) + parity * trace(time))
        };
        (0..momenta.len()).map(|k| (0..extent).map(|t| at(k, t)).collect()).collect()
    };
    Ok(Nucleon { positive: all(1.0), negative: all(-1.0) })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::field::host::HostSpinor;
    use crate::gauge::generate;
    use crate::lattice::Lattice;
    use crate::observables::spectrum::tests::on_cpu;

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
        let on = on_cpu(lattice, &[&s]);
        let found = nucleon(&on[0], [0, 0, 0, 1], &[[0; 3]], TimeBoundary::Antiperiodic).unwrap();
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
