//! Mesons of a quark and an antiquark, of one mass or two, without the part in which they annihilate.
//!
//! With O = ψ̄₂ Γ ψ₁, and S₁ and S₂ the propagators from x₀, γ_5-Hermiticity S₂(x₀, x) = γ_5 S₂†(x, x₀) γ_5 gives
//!
//! C(t, p) = Σ_x e^{−i p (x−x₀)} ⟨O_Γ(x) O†_Γ'(x₀)⟩ = −Σ_x e^{−i p (x−x₀)} tr [Γ S₁(x) Γ̄' γ_5 S₂†(x) γ_5],  Γ̄ = γ_t Γ† γ_t,
//!
//! so that the pion's, Γ = Γ' = γ_5, is Σ |S|² of one mass. The spins are summed at the end, and all Γ cost as much as one.
use super::gamma::Gamma;
use super::{SpatialSum, by_time, check, phases};
use crate::field::host::{HostSpinor, Spinor};
use crate::lattice::Section;
use num_complex::Complex64;
use std::array::from_fn;

/// Σ_cc' S₁_{sc,s'c'} S₂*_{uc,u'c'}, index u' + 4 (u + 4 (s' + 4 s)), for one time and momentum.
#[derive(Clone, Debug, PartialEq)]
struct Pair(Vec<Complex64>);

impl Pair {
    fn zero() -> Self {
        Pair(vec![Complex64::ZERO; 256])
    }
    fn at(&self, [s, s1, u, u1]: [usize; 4]) -> Complex64 {
        self.0[u1 + 4 * (u + 4 * (s1 + 4 * s))]
    }
}

impl SpatialSum for Vec<Pair> {
    fn add(&mut self, other: &Self) {
        for (sum, term) in self.iter_mut().zip(other) {
            for (sum, term) in sum.0.iter_mut().zip(&term.0) {
                *sum += term;
            }
        }
    }
}

/// Mesons at all times, with the spins still open.
#[derive(Clone, Debug)]
pub struct Mesons {
    /// By time and momentum.
    pairs: Vec<Vec<Pair>>,
}

impl Mesons {
    /// From the solutions for all 12 sources at `origin`, `[3 spin + colour]`, of the quark and of the quark whose antiquark is
    /// meant, and momenta in units of 2π/L. Panics where there are not 12 fields of each on the local lattice.
    pub fn new(
        section: impl Into<Section>,
        quark: &[HostSpinor],
        antiquark: &[HostSpinor],
        origin: [usize; 4],
        momenta: &[[i32; 3]],
    ) -> Self {
        let section = section.into();
        check(&section, quark, 12);
        check(&section, antiquark, 12);
        let zero = vec![Pair::zero(); momenta.len()];
        let pairs = by_time(&section, origin[3], &zero, |sums, index, place| {
            let s: [&Spinor; 12] = from_fn(|source| &quark[source].sites()[index]);
            let s2: [&Spinor; 12] = from_fn(|source| &antiquark[source].sites()[index]);
            let phases = phases(&section, momenta, origin, place);
            // In the order of [`Pair`].
            for k in 0..256 {
                let [a, a1, b, b1] = [k / 64, k / 16 % 4, k / 4 % 4, k % 4];
                let mut sum = Complex64::ZERO;
                for c1 in 0..3 {
                    let (left, right) = (&s[3 * a1 + c1][a], &s2[3 * b1 + c1][b]);
                    sum += left[0] * right[0].conj() + left[1] * right[1].conj() + left[2] * right[2].conj();
                }
                for (pair, phase) in sums.iter_mut().zip(&phases) {
                    pair.0[k] += phase * sum;
                }
            }
        });
        Mesons { pairs }
    }
    /// From sums on a device, `[u' + 4 (u + 4 (s' + 4 s))][momentum][time]`.
    pub(crate) fn of_pairs(sums: Vec<Vec<Vec<Complex64>>>) -> Self {
        let (momenta, times) = (sums[0].len(), sums[0].first().map_or(0, Vec::len));
        let pair = |momentum: usize, time: usize| Pair(sums.iter().map(|sums| sums[momentum][time]).collect());
        Mesons { pairs: (0..times).map(|time| (0..momenta).map(|k| pair(k, time)).collect()).collect() }
    }
    /// C(t) for Γ at the sink and Γ' at the source, and one of the momenta.
    pub fn correlator(&self, sink: Gamma, source: Gamma, momentum: usize) -> Vec<Complex64> {
        let (five, right) = (Gamma::five(), source.bar() * Gamma::five());
        let of_time = |pairs: &Vec<Pair>| -> Complex64 {
            let mut sum = Complex64::ZERO;
            for a in 0..4 {
                for s1 in 0..4 {
                    // γ_5 is diagonal.
                    let place = [sink.column[a], s1, a, right.column[s1]];
                    sum += sink.value[a] * right.value[s1] * five.value[a] * pairs[momentum].at(place);
                }
            }
            -sum
        };
        self.pairs.iter().map(of_time).collect()
    }
    /// The same Γ at both ends.
    pub fn of(&self, gamma: Gamma, momentum: usize) -> Vec<Complex64> {
        self.correlator(gamma, gamma, momentum)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::gauge::generate;
    use crate::lattice::Lattice;
    use crate::observables::spectrum::gamma::COUNT;

    /// Any twelve fields are a propagator as far as traces go.
    fn fields(lattice: Lattice, first: u64) -> Vec<HostSpinor> {
        (first..first + 12).map(|seed| generate::random_source(lattice, seed)).collect()
    }

    /// Against the formula with full matrices.
    #[test]
    fn traces_are_those_of_matrices() {
        let lattice = Lattice::new([2, 4, 2, 6]).unwrap();
        let (s, s2, origin) = (fields(lattice, 0), fields(lattice, 12), [1, 2, 0, 4]);
        let momenta = [[0, 0, 0], [1, 0, -1]];
        let mesons = Mesons::new(lattice, &s, &s2, origin, &momenta);
        type Dense = [[Complex64; 12]; 12];
        let product =
            |a: &Dense, b: &Dense| -> Dense { from_fn(|i| from_fn(|j| (0..12).map(|k| a[i][k] * b[k][j]).sum())) };
        let spin = |g: Gamma| -> Dense {
            from_fn(|i| from_fn(|j| if i % 3 == j % 3 { g.at(i / 3, j / 3) } else { Complex64::ZERO }))
        };
        for (sink, source) in (0..COUNT).map(|n| (n, n)).chain([(15, 7), (1, 9)]) {
            let (gamma, other) = (Gamma::new(sink), Gamma::new(source));
            for (k, p) in momenta.iter().enumerate() {
                let mut expected = vec![Complex64::ZERO; 6];
                for index in 0..lattice.volume() {
                    let x = lattice.coordinates(index);
                    let here: Dense = from_fn(|i| from_fn(|j| s[j].sites()[index][i / 3][i % 3]));
                    let dagger: Dense = from_fn(|i| from_fn(|j| s2[i].sites()[index][j / 3][j % 3].conj()));
                    let five = spin(Gamma::five());
                    let right = product(&product(&spin(other.bar()), &five), &product(&dagger, &five));
                    let whole = product(&product(&spin(gamma), &here), &right);
                    let trace: Complex64 = (0..12).map(|i| whole[i][i]).sum();
                    let angle: f64 = (0..3)
                        .map(|k| f64::from(p[k]) * (x[k] as f64 - origin[k] as f64) / lattice.size()[k] as f64)
                        .sum();
                    expected[(x[3] + 6 - 4) % 6] -= Complex64::cis(-std::f64::consts::TAU * angle) * trace;
                }
                let found = mesons.correlator(gamma, other, k);
                for (found, expected) in found.iter().zip(&expected) {
                    assert!((found - expected).norm() < 1e-10, "{sink} {source} {p:?}: {found} {expected}");
                }
            }
        }
    }

    #[test]
    fn the_pion_is_the_square_of_the_propagator() {
        let lattice = Lattice::new([4, 2, 2, 4]).unwrap();
        let s = fields(lattice, 0);
        let pion = Mesons::new(lattice, &s, &s, [0; 4], &[[0; 3]]).of(Gamma::five(), 0);
        let whole: f64 = s.iter().map(HostSpinor::norm2).sum();
        let sum: Complex64 = pion.iter().sum();
        assert!((sum.re / whole - 1.0).abs() < 1e-13 && sum.im.abs() < 1e-10 && pion.iter().all(|c| c.re > 0.0));
    }
}
