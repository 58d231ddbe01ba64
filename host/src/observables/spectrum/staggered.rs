//! Local mesons and the local nucleon of staggered quarks: sources and sinks at one site (Golterman 1986).
//!
//! Let G₁ and G₂ be the propagators from x₀ of quark and antiquark. By the ε-hermiticity of M, all correlators are sums over space of e^{−i
//! p (x−x₀)} φ(x − x₀) tr G₁(x) G₂†(x), where the trace is |G|² for one mass:
//!
//! | name | φ | spin and taste of the meson, and of the state that alternates in time |
//! |---|---|---|
//! | `pion` | 1 | γ_5 ⊗ γ_5, none |
//! | `scalar` | (−1)^{x+y+z} | γ_t γ_5 ⊗ γ_t γ_5 (a pion), 1 ⊗ 1 |
//! | `vector` | (−1)^x + (−1)^y + (−1)^z | γ_i ⊗ γ_i (a ρ), a b_1 |
//! | `pseudovector` | (−1)^{y+z} + (−1)^{z+x} + (−1)^{x+y} | γ_t γ_i ⊗ γ_t γ_i (a ρ), an a_1 |
use super::contraction::MomentumSums;
use crate::domain::{Domain, Result};
use crate::field::FullField;
use crate::operators::{StaggeredPhases, TimeBoundary};
use num_complex::Complex64;
use std::array::from_fn;

/// Names of the local staggered mesons, in the order in which [`local_mesons`] returns their correlators.
pub const NAMES: [&str; 4] = ["pion", "scalar", "vector", "pseudovector"];

/// Returns the momenta p + π n for each of `momenta` and all eight n of zeros and ones, with number x + 2 y + 4 z. The phases e^{−i π n
/// (x−x₀)} are the signs of φ.
pub(super) fn with_corners(domain: &Domain, momenta: &[[i32; 3]]) -> Vec<[i32; 3]> {
    let half = domain.global().size().map(|extent| extent as i32 / 2);
    let corner = |p: &[i32; 3], n: i32| from_fn(|k| p[k] + half[k] * (n >> k & 1));
    momenta.iter().flat_map(|p| (0..8).map(move |n| corner(p, n))).collect()
}

/// Computes the correlators of the four local mesons in the order of [`NAMES`], as `[meson][momentum][time]`. `quark` are the solutions for
/// the three colours of a source at `origin`, in double precision; `antiquark` are the solutions for the quark whose antiquark is in the
/// meson, on the same device. Momenta are in units of 2π/L.
///
/// # Errors
/// Fields of another shape or lattice; failures of the device.
pub fn local_mesons(
    quark: &FullField,
    antiquark: &FullField,
    origin: [usize; 4],
    momenta: &[[i32; 3]],
) -> Result<[Vec<Vec<Complex64>>; 4]> {
    let domain = quark.even.domain();
    let sums = MomentumSums::new(domain, origin, &with_corners(domain, momenta))?;
    let [products, _] = sums.of_staggered(quark, antiquark)?;
    let corners = |all: &[usize]| -> Vec<Vec<Complex64>> {
        let at = |k: usize, t: usize| all.iter().map(|n| products[8 * k + n][t]).sum();
        (0..momenta.len()).map(|k| (0..products[0].len()).map(|t| at(k, t)).collect()).collect()
    };
    Ok([corners(&[0]), corners(&[7]), corners(&[1, 2, 4]), corners(&[6, 5, 3])])
}

/// Computes the correlator of the local nucleon for momenta in units of 2π/L, as `[momentum][time]`:
///
/// C(t, p) = Σ_x e^{−i p (x−x₀)} ε_abc ε_a'b'c' G_aa'(x) G_bb'(x) G_cc'(x) = 6 Σ_x e^{−i p (x−x₀)} det G(x)
///
/// The sum is over the sites an even number of steps from x₀ in x, y and z (Golterman and Smit 1985; Gupta et al. 1991). `propagator` has
/// the solutions for the three colours of a source at `origin`. The partner of negative parity alternates in sign from one time to the
/// next. Two signs are removed from the correlator: that of three quarks that have crossed the boundary, and that by which quarks with
/// another `convention` than MILC's differ between x₀ and x.
///
/// # Errors
/// Fields of another shape or lattice; failures of the device.
pub fn local_nucleon(
    propagator: &FullField,
    origin: [usize; 4],
    momenta: &[[i32; 3]],
    boundary: TimeBoundary,
    convention: StaggeredPhases,
) -> Result<Vec<Vec<Complex64>>> {
    let domain = propagator.even.domain();
    let sums = MomentumSums::new(domain, origin, &with_corners(domain, momenta))?;
    let [_, determinants] = sums.of_staggered(propagator, propagator)?;
    let extent = domain.global().size()[3];
    let at = |k: usize, t: usize| -> Complex64 {
        let around = if origin[3] + t >= extent { boundary.sign() } else { 1.0 };
        // In the lexicographic convention, χ is (−1)^{t (x+y+z)} times the χ of MILC's convention. At all sites of the sum, x+y+z is even
        // if it is even at the origin, and odd otherwise.
        let turns = ((origin[3] + t) % extent + origin[3]) * (origin[0] + origin[1] + origin[2]);
        let turned = convention == StaggeredPhases::Lexicographic && !turns.is_multiple_of(2);
        let sign = if turned { -around } else { around };
        // The mean of e^{−i π n (x−x₀)} over all eight n is 1 at the sites whose distances from x₀ in x, y and z are even, and 0 at all
        // others.
        let sum: Complex64 = (0..8).map(|n| determinants[8 * k + n][t]).sum();
        6.0 / 8.0 * sign * sum
    };
    Ok((0..momenta.len()).map(|k| (0..extent).map(|t| at(k, t)).collect()).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::field::host::HostColour;
    use crate::gauge::generate;
    use crate::lattice::Lattice;
    use crate::observables::spectrum::tests::on_cpu;

    /// Against plain sums, of two masses, with and without momentum.
    #[test]
    fn signs_and_phases_are_counted_from_the_source() {
        let lattice = Lattice::new([2, 4, 6, 4]).unwrap();
        let fields = |first: u64| -> Vec<HostColour> {
            (first..first + 3).map(|seed| generate::random_source(lattice, seed)).collect()
        };
        let (quark, antiquark) = (fields(0), fields(3));
        let momenta = [[0, 0, 0], [0, 1, -2]];
        let on = on_cpu(lattice, &[&quark, &antiquark]);
        let found = local_mesons(&on[0], &on[1], [1, 2, 3, 3], &momenta).unwrap();
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
    /// The pion with its own antiquark is Σ |G|².
    #[test]
    fn one_mass_gives_squares() {
        let lattice = Lattice::new([2, 4, 2, 4]).unwrap();
        let quark: Vec<HostColour> = (0..3).map(|seed| generate::random_source(lattice, seed)).collect();
        let on = &on_cpu(lattice, &[&quark])[0];
        let found = local_mesons(on, on, [1, 2, 0, 3], &[[0; 3]]).unwrap();
        let (whole, sum): (f64, Complex64) = (quark.iter().map(HostColour::norm2).sum(), found[0][0].iter().sum());
        assert!((sum / whole - 1.0).norm() < 1e-13, "{sum} {whole}");
    }
}
