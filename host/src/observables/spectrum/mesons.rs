//! Mesons of a quark and an antiquark, of one mass or two, without the disconnected part, in which they annihilate.
//!
//! With O = ψ̄₂ Γ ψ₁, and S₁ and S₂ the propagators from x₀, γ_5-hermiticity S₂(x₀, x) = γ_5 S₂†(x, x₀) γ_5 gives
//!
//! C(t, p) = Σ_x e^{−i p (x−x₀)} ⟨O_Γ(x) O†_Γ'(x₀)⟩ = −Σ_x e^{−i p (x−x₀)} tr [Γ S₁(x) Γ̄' γ_5 S₂†(x) γ_5],  Γ̄ = γ_t Γ† γ_t,
//!
//! The pion of two quarks of one mass, Γ = Γ' = γ_5, therefore has Σ |S|². Spins are summed last, so that all Γ cost as much as one.
use super::contraction::MomentumSums;
use super::gamma::Gamma;
use crate::domain::Result;
use crate::field::FullField;
use num_complex::Complex64;

/// Correlators of all mesons at all times, before the sums over spins.
#[derive(Clone, Debug)]
pub struct Mesons {
    /// Sums Σ_x e^{−i p (x−x₀)} Σ_cc' S₁_{sc,s'c'} S₂*_{uc,u'c'}: `[u' + 4 (u + 4 (s' + 4 s))][momentum][time]`.
    pairs: Vec<Vec<Vec<Complex64>>>,
    /// Number of times of the whole lattice.
    times: usize,
}

impl Mesons {
    /// Computes mesons of a quark and an antiquark. `quark` are the solutions for all 12 sources at `origin`, in the order 3 spin + colour,
    /// in double precision; `antiquark` are the solutions for the quark whose antiquark is in the meson, on the same device. Momenta are in
    /// units of 2π/L.
    ///
    /// # Errors
    /// Fields of another shape or lattice; failures of the device.
    pub fn new(quark: &FullField, antiquark: &FullField, origin: [usize; 4], momenta: &[[i32; 3]]) -> Result<Self> {
        let domain = quark.even.domain();
        let sums = MomentumSums::new(domain, origin, momenta)?;
        Ok(Mesons { pairs: sums.of_pairs(quark, antiquark)?, times: domain.global().size()[3] })
    }
    /// Computes mesons for the single matrix Γ' = `source` at the source, with a quarter of the work of [`new`](Self::new).
    ///
    /// # Errors
    /// The errors of [`new`](Self::new).
    pub fn with_source(
        quark: &FullField,
        antiquark: &FullField,
        origin: [usize; 4],
        momenta: &[[i32; 3]],
        source: Gamma,
    ) -> Result<Self> {
        let (domain, right) = (quark.even.domain(), source.bar() * Gamma::five());
        let sums = MomentumSums::new(domain, origin, momenta)?;
        Ok(Mesons { pairs: sums.of_columns(quark, antiquark, right.column)?, times: domain.global().size()[3] })
    }
    /// Returns C(t) for Γ = `sink` at the sink and Γ' = `source` at the source, for the momentum with the index `momentum`.
    ///
    /// # Panics
    /// If there is no such momentum, or if the mesons were computed for another source.
    pub fn correlator(&self, sink: Gamma, source: Gamma, momentum: usize) -> Vec<Complex64> {
        let (five, right) = (Gamma::five(), source.bar() * Gamma::five());
        let at_time = |time: usize| -> Complex64 {
            let mut sum = Complex64::ZERO;
            for a in 0..4 {
                for s1 in 0..4 {
                    // γ_5 is diagonal, so it adds only a factor to the element of Γ.
                    let (s, u1) = (sink.column[a], right.column[s1]);
                    let pair = &self.pairs[u1 + 4 * (a + 4 * (s1 + 4 * s))];
                    sum += sink.value[a] * right.value[s1] * five.value[a] * pair[momentum][time];
                }
            }
            -sum
        };
        (0..self.times).map(at_time).collect()
    }
    /// Returns C(t) for one Γ at both source and sink, for the momentum with the index `momentum`.
    pub fn of(&self, gamma: Gamma, momentum: usize) -> Vec<Complex64> {
        self.correlator(gamma, gamma, momentum)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::field::host::HostSpinor;
    use crate::gauge::generate;
    use crate::lattice::Lattice;
    use crate::observables::spectrum::gamma::COUNT;
    use crate::observables::spectrum::tests::on_cpu;
    use std::array::from_fn;

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
        let on = on_cpu(lattice, &[&s, &s2]);
        let mesons = Mesons::new(&on[0], &on[1], origin, &momenta).unwrap();
        type Dense = [[Complex64; 12]; 12];
        let product =
            |a: &Dense, b: &Dense| -> Dense { from_fn(|i| from_fn(|j| (0..12).map(|k| a[i][k] * b[k][j]).sum())) };
        let spin = |g: Gamma| -> Dense {
            from_fn(|i| from_fn(|j| if i % 3 == j % 3 { g.at(i / 3, j / 3) } else { Complex64::ZERO }))
        };
        for (sink, source) in (0..COUNT).map(|n| (n, n)).chain([(15, 7), (1, 9)]) {
            let (gamma, other) = (Gamma::new(sink), Gamma::new(source));
            let of_source = Mesons::with_source(&on[0], &on[1], origin, &momenta, other).unwrap();
            for (k, p) in momenta.iter().enumerate() {
                assert_eq!(of_source.correlator(gamma, other, k), mesons.correlator(gamma, other, k));
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
        let on = &on_cpu(lattice, &[&s])[0];
        let pion = Mesons::new(on, on, [0; 4], &[[0; 3]]).unwrap().of(Gamma::five(), 0);
        let whole: f64 = s.iter().map(HostSpinor::norm2).sum();
        let sum: Complex64 = pion.iter().sum();
        assert!((sum.re / whole - 1.0).abs() < 1e-13 && sum.im.abs() < 1e-10 && pion.iter().all(|c| c.re > 0.0));
    }
}
