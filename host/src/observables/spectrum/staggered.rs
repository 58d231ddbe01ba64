//! Local mesons and the local nucleon of staggered quarks: sources and sinks at one site (Golterman 1986).
//!
//! With G₁ and G₂ the propagators from x₀ of quark and antiquark, M's ε-Hermiticity makes all of them sums of
//! e^{−i p (x−x₀)} φ(x − x₀) tr G₁(x) G₂†(x) over space, with |G|² of one mass:
//!
//! | name | φ | spin and taste, and of the state that alternates in time |
//! |---|---|---|
//! | `pion` | 1 | γ_5 ⊗ γ_5, none |
//! | `scalar` | (−1)^{x+y+z} | γ_t γ_5 ⊗ γ_t γ_5 (a pion), 1 ⊗ 1 |
//! | `vector` | (−1)^x + (−1)^y + (−1)^z | γ_i ⊗ γ_i (a ρ), a b_1 |
//! | `pseudovector` | (−1)^{y+z} + (−1)^{z+x} + (−1)^{x+y} | γ_t γ_i ⊗ γ_t γ_i (a ρ), an a_1 |
use super::{by_time, check, phases};
use crate::field::host::{ColourVector, HostColour};
use crate::lattice::Section;
use crate::operators::{StaggeredPhases, TimeBoundary};
use num_complex::Complex64;
use std::array::from_fn;

/// Names of the mesons, in the order of [`local_mesons`].
pub const NAMES: [&str; 4] = ["pion", "scalar", "vector", "pseudovector"];

/// The four correlators of the table for momenta in units of 2π/L, `[meson][momentum][time]`, from the solutions for the three
/// colours of a source at `origin`, of the quark and of the quark whose antiquark is meant. Panics where there are not three
/// fields of each on the local lattice.
pub fn local_mesons(
    section: impl Into<Section>,
    quark: &[HostColour],
    antiquark: &[HostColour],
    origin: [usize; 4],
    momenta: &[[i32; 3]],
) -> [Vec<Vec<Complex64>>; 4] {
    let section = section.into();
    check(&section, quark, 3);
    check(&section, antiquark, 3);
    let zero = vec![Complex64::ZERO; 4 * momenta.len()];
    let sums = by_time(&section, origin[3], &zero, |sums, index, place| {
        let numbers =
            |fields: &'_ [HostColour]| -> [ColourVector; 3] { from_fn(|source| fields[source].sites()[index]) };
        let (left, right) = (numbers(quark), numbers(antiquark));
        let product: Complex64 = left.as_flattened().iter().zip(right.as_flattened()).map(|(a, b)| a * b.conj()).sum();
        let sign = |k: usize| if (place[k] + origin[k]).is_multiple_of(2) { 1.0 } else { -1.0 };
        let [x, y, z] = [sign(0), sign(1), sign(2)];
        let signs = [1.0, x * y * z, x + y + z, y * z + z * x + x * y];
        for (k, phase) in phases(&section, momenta, origin, place).into_iter().enumerate() {
            for (meson, sign) in signs.into_iter().enumerate() {
                sums[4 * k + meson] += sign * phase * product;
            }
        }
    });
    let of = |meson: usize, k: usize| sums.iter().map(|sums| sums[4 * k + meson]).collect();
    from_fn(|meson| (0..momenta.len()).map(|k| of(meson, k)).collect())
}

/// The local nucleon for momenta in units of 2π/L, `[momentum][time]`,
///
/// C(t, p) = Σ_x e^{−i p (x−x₀)} ε_abc ε_a'b'c' G_aa'(x) G_bb'(x) G_cc'(x) = 6 Σ_x e^{−i p (x−x₀)} det G(x)
///
/// over the sites an even number of steps from x₀ in x, y and z (Golterman and Smit 1985; Gupta et al. 1991), from the solutions for the three
/// colours of a source at `origin`. From one time to the next its partner of negative parity alternates in sign. The sign of
/// three quarks that have crossed the boundary is taken back, and so is that by which `phases` with other than MILC's
/// make quarks differ between x₀ and x: the correlator does not depend on either. Panics where there are not three fields on
/// the local lattice.
pub fn local_nucleon(
    section: impl Into<Section>,
    propagator: &[HostColour],
    origin: [usize; 4],
    momenta: &[[i32; 3]],
    boundary: TimeBoundary,
    convention: StaggeredPhases,
) -> Vec<Vec<Complex64>> {
    let section = section.into();
    check(&section, propagator, 3);
    let zero = vec![Complex64::ZERO; momenta.len()];
    let sums = by_time(&section, origin[3], &zero, |sums, index, place| {
        if (0..3).any(|k| !(place[k] + origin[k]).is_multiple_of(2)) {
            return;
        }
        let [a, b, c]: [ColourVector; 3] = from_fn(|source| propagator[source].sites()[index]);
        let minor = |j: usize, k: usize| b[j] * c[k] - b[k] * c[j];
        let determinant = a[0] * minor(1, 2) + a[1] * minor(2, 0) + a[2] * minor(0, 1);
        let around = if place[3] < origin[3] { boundary.sign() } else { 1.0 };
        // χ of x first is (−1)^{t (x+y+z)} χ of MILC's, and x+y+z is here even or odd as it is at the origin.
        let turns = (place[3] + origin[3]) * (origin[0] + origin[1] + origin[2]);
        let turned = convention == StaggeredPhases::Lexicographic && !turns.is_multiple_of(2);
        let sign = if turned { -around } else { around };
        for (sum, phase) in sums.iter_mut().zip(phases(&section, momenta, origin, place)) {
            *sum += 6.0 * sign * phase * determinant;
        }
    });
    (0..momenta.len()).map(|k| sums.iter().map(|sums| sums[k]).collect()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::gauge::generate;
    use crate::lattice::Lattice;

    /// Against plain sums, of two masses, with and without momentum.
    #[test]
    fn signs_and_phases_are_counted_from_the_source() {
        let lattice = Lattice::new([2, 4, 6, 4]).unwrap();
        let fields = |first: u64| -> Vec<HostColour> {
            (first..first + 3).map(|seed| generate::random_source(lattice, seed)).collect()
        };
        let (quark, antiquark) = (fields(0), fields(3));
        let momenta = [[0, 0, 0], [0, 1, -2]];
        let found = local_mesons(lattice, &quark, &antiquark, [1, 2, 3, 3], &momenta);
        for (k, p) in momenta.iter().enumerate() {
            let mut expected = [[Complex64::ZERO; 4]; 4];
            for index in 0..lattice.volume() {
                let [x, y, z, t] = lattice.coordinates(index).map(|c| c as i32);
                let (x, y, z) = (x - 1, y - 2, z - 3);
                let turns = f64::from(p[1] * y) / 4.0 + f64::from(p[2] * z) / 6.0;
                let mut value = Complex64::ZERO;
                for source in 0..3 {
                    for c in 0..3 {
                        value += quark[source].sites()[index][c] * antiquark[source].sites()[index][c].conj();
                    }
                }
                value *= Complex64::cis(-std::f64::consts::TAU * turns);
                let s = |steps: i32| if steps.rem_euclid(2) == 0 { 1.0 } else { -1.0 };
                let time = (t - 3).rem_euclid(4) as usize;
                expected[0][time] += value;
                expected[1][time] += s(x + y + z) * value;
                expected[2][time] += (s(x) + s(y) + s(z)) * value;
                expected[3][time] += (s(y + z) + s(z + x) + s(x + y)) * value;
            }
            for (found, expected) in found.iter().zip(expected) {
                // Sums of 48 terms of order 10.
                assert!(found[k].iter().zip(expected).all(|(a, b)| (a - b).norm() < 1e-11), "{found:?} {expected:?}");
            }
        }
    }
    /// With its own antiquark the pion is Σ |G|².
    #[test]
    fn one_mass_gives_squares() {
        let lattice = Lattice::new([2, 4, 2, 4]).unwrap();
        let quark: Vec<HostColour> = (0..3).map(|seed| generate::random_source(lattice, seed)).collect();
        let found = local_mesons(lattice, &quark, &quark, [1, 2, 0, 3], &[[0; 3]]);
        let (whole, sum): (f64, Complex64) = (quark.iter().map(HostColour::norm2).sum(), found[0][0].iter().sum());
        assert!((sum.re / whole - 1.0).abs() < 1e-13 && sum.im == 0.0, "{sum} {whole}");
    }
}
