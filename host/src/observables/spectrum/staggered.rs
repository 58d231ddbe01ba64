//! Local mesons of staggered quarks: sources and sinks at one site (Golterman 1986).
//!
//! With G the propagator from x₀, M's ε-Hermiticity makes all of them sums of φ(x − x₀) Σ |G_cc'(x)|² over space:
//!
//! | name | φ | spin and taste, and of the state that alternates in time |
//! |---|---|---|
//! | `pion` | 1 | γ_5 ⊗ γ_5, none |
//! | `scalar` | (−1)^{x+y+z} | γ_t γ_5 ⊗ γ_t γ_5 (a pion), 1 ⊗ 1 |
//! | `vector` | (−1)^x + (−1)^y + (−1)^z | γ_i ⊗ γ_i (a ρ), a b_1 |
//! | `pseudovector` | (−1)^{y+z} + (−1)^{z+x} + (−1)^{x+y} | γ_t γ_i ⊗ γ_t γ_i (a ρ), an a_1 |
use super::{by_time, check};
use crate::field::host::HostColour;
use crate::lattice::Section;
use num_complex::Complex64;

/// Names of the mesons, in the order of [`local_mesons`].
pub const NAMES: [&str; 4] = ["pion", "scalar", "vector", "pseudovector"];

/// The four correlators of the table, from the solutions for the three colours of a source at `origin`. Panics where there
/// are not three fields on the local lattice.
pub fn local_mesons(section: impl Into<Section>, propagator: &[HostColour], origin: [usize; 4]) -> [Vec<f64>; 4] {
    let section = section.into();
    check(&section, propagator, 3);
    let zero = vec![Complex64::ZERO; 4];
    let sums = by_time(&section, origin[3], &zero, |sums, index, place| {
        let square: f64 = propagator.iter().flat_map(|field| &field.sites()[index]).map(Complex64::norm_sqr).sum();
        let sign = |k: usize| if (place[k] + origin[k]).is_multiple_of(2) { 1.0 } else { -1.0 };
        let [x, y, z] = [sign(0), sign(1), sign(2)];
        for (sum, phase) in sums.iter_mut().zip([1.0, x * y * z, x + y + z, y * z + z * x + x * y]) {
            *sum += phase * square;
        }
    });
    std::array::from_fn(|k| sums.iter().map(|sums| sums[k].re).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::gauge::generate;
    use crate::lattice::Lattice;

    #[test]
    fn signs_are_counted_from_the_source() {
        let lattice = Lattice::new([2, 4, 2, 4]).unwrap();
        let propagator: Vec<HostColour> = (0..3).map(|seed| generate::random_source(lattice, seed)).collect();
        let found = local_mesons(lattice, &propagator, [1, 2, 0, 3]);
        let mut expected = [[0.0; 4]; 4];
        for index in 0..lattice.volume() {
            let [x, y, z, t] = lattice.coordinates(index).map(|c| c as i32);
            let square: f64 =
                propagator.iter().map(|f| f.sites()[index].iter().map(|c| c.norm_sqr()).sum::<f64>()).sum();
            let s = |steps: i32| if steps.rem_euclid(2) == 0 { 1.0 } else { -1.0 };
            let (x, y) = (x - 1, y - 2);
            let time = (t - 3).rem_euclid(4) as usize;
            expected[0][time] += square;
            expected[1][time] += s(x + y + z) * square;
            expected[2][time] += (s(x) + s(y) + s(z)) * square;
            expected[3][time] += (s(y + z) + s(z + x) + s(x + y)) * square;
        }
        for (found, expected) in found.iter().zip(expected) {
            assert!(found.iter().zip(expected).all(|(a, b)| (a - b).abs() < 1e-12 * b.abs().max(1.0)));
        }
    }
}
