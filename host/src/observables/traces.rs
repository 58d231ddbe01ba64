//! Traces tr Γ M⁻¹ from noise, or tr M⁻¹ for staggered operators: noise η with ⟨η_i η_j*⟩ = δ_ij has ⟨η† Γ M⁻¹ η⟩ = tr Γ M⁻¹ (Dong and Liu
//! 1994).
//!
//! A noise vector η can be split into parts η_k with support on different times, spins, colours or parities, each of which is solved for
//! separately. Then Σ_k η_k† Γ M⁻¹ η_k lacks the noise from elements of M⁻¹ between parts (Foley et al. 2005).
use super::spectrum::MomentumSums;
use super::spectrum::gamma::{COUNT, Gamma, name};
use crate::domain::{Domain, Result};
use crate::field::host::{ColourVector, Fermion, Spinor};
use crate::field::{FieldShape, FullField};
use crate::lattice::Lattice;
use gpu_kernels::Precision;
use gpu_kernels::lattice::Divisor;
use gpu_kernels::noise::{NOISE_PARTS, NoiseParts};
use num_complex::Complex64;
use std::ops::Range;

/// Stream of random numbers for noise vectors; [sources](super::spectrum::sources) use another stream.
const STREAM: u32 = 0x5a32_0002;
/// Number of different noise vectors for one seed.
pub const MOST_NOISE: u32 = 1 << 16;

/// Distribution of the numbers in noise vectors.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum NoiseKind {
    /// Real noise ±1.
    Z2,
    /// Complex noise (±1 ± i)/√2.
    #[default]
    Z4,
}

/// Dilution of noise vectors: the parts into which a vector is split.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Dilution {
    /// Distance in time between the time slices of one part; with 0, all times are in one part.
    pub times: usize,
    /// Whether each spin is a separate part; staggered fields have only one spin.
    pub spin: bool,
    /// Whether each colour is a separate part.
    pub colour: bool,
    /// Whether even and odd sites are separate parts.
    pub parity: bool,
}

impl Dilution {
    /// Returns the numbers of parts in time, parity, spin and colour.
    fn counts<T: TraceField>(&self, lattice: Lattice) -> [usize; 4] {
        let extent = lattice.size()[3];
        let or_one = |on: bool, count: usize| if on { count } else { 1 };
        [
            or_one(self.times > 0, self.times.min(extent)),
            or_one(self.parity, 2),
            or_one(self.spin, T::COMPONENTS / ColourVector::COMPONENTS),
            or_one(self.colour, ColourVector::COMPONENTS),
        ]
    }
    /// Returns the number of parts of a noise vector on this lattice.
    pub fn parts<T: TraceField>(&self, lattice: Lattice) -> usize {
        self.counts::<T>(lattice).iter().product()
    }
}

/// Parameters of noise vectors.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NoiseSource {
    /// Distribution of the numbers.
    pub kind: NoiseKind,
    /// Seed of the noise. Noise from one seed is the same on every process grid.
    pub seed: u64,
    /// Dilution of the vectors.
    pub dilution: Dilution,
}

impl NoiseSource {
    /// Returns parts of noise vectors as right-hand sides in double precision. Part k of vector v has the number k + n v, where n is the
    /// number of parts of a vector; `numbers` is a range of these numbers.
    ///
    /// # Errors
    /// Failures of the device.
    ///
    /// # Panics
    /// If a vector has a number of [`MOST_NOISE`] or more, or if a number in `numbers` is 2³¹ or more.
    pub fn fields<T: TraceField>(&self, domain: &Domain, numbers: Range<usize>) -> Result<FullField> {
        let parts = self.dilution.parts::<T>(domain.global());
        let most = (MOST_NOISE as usize * parts).min(1 << 31);
        assert!(numbers.end <= most, "vectors with numbers of their own");
        let field = FullField::zero(domain, FieldShape::new(T::KIND, Precision::Double, numbers.len()))?;
        let [times, parities, spins, colours] = self.dilution.counts::<T>(domain.global()).map(|count| count as u32);
        domain.launch_on_parities(&NOISE_PARTS, field.even.format(), numbers.len(), |parity| NoiseParts {
            field: field.parity(parity).view(),
            geometry: domain.geometry(),
            position: domain.position(),
            parity: parity as u32,
            first: numbers.start as u32,
            parts: Divisor::new(parts as u32),
            counts: [colours, spins, parities, times],
            seed: self.seed,
            substream: STREAM,
            is_real: u32::from(self.kind == NoiseKind::Z2),
        })?;
        Ok(field)
    }
}

/// Type of fields from which traces are computed.
pub trait TraceField: Fermion {
    /// Number of matrices Γ.
    const GAMMAS: usize;
    /// Returns the name of a Γ.
    fn gamma(number: usize) -> String;
    /// Computes Σ η† Γ ψ for all Γ from Σ_c η*_{sc} ψ_{tc} in the order 4 s + t; colour vectors have a single number.
    fn of_spins(sums: &[Complex64]) -> Vec<Complex64>;
    /// Computes Σ_x η†(x) Γ ψ(x) over this process's part of the lattice, for each right-hand side and all Γ. Fields are in double
    /// precision on one device.
    ///
    /// # Errors
    /// Fields of another shape or lattice; failures of the device.
    fn sums(noise: &FullField, solutions: &FullField) -> Result<Vec<Vec<Complex64>>> {
        let sums = MomentumSums::new(noise.even.domain(), [0; 4], &[[0; 3]])?;
        let over_times = |times: &Vec<Vec<Complex64>>| times[0].iter().sum();
        let one = |rhs| {
            let found = sums.of_noise(noise, solutions, rhs)?;
            Ok(Self::of_spins(&found.iter().map(over_times).collect::<Vec<_>>()))
        };
        (0..noise.even.nrhs()).map(one).collect()
    }
}

impl TraceField for Spinor {
    const GAMMAS: usize = COUNT;
    fn gamma(number: usize) -> String {
        name(number)
    }
    fn of_spins(sums: &[Complex64]) -> Vec<Complex64> {
        let one = |number: usize| {
            let gamma = Gamma::new(number);
            (0..4).map(|s| gamma.value[s] * sums[4 * s + gamma.column[s]]).sum()
        };
        (0..COUNT).map(one).collect()
    }
}

impl TraceField for ColourVector {
    const GAMMAS: usize = 1;
    fn gamma(_: usize) -> String {
        name(0)
    }
    fn of_spins(sums: &[Complex64]) -> Vec<Complex64> {
        sums.to_vec()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::backend::Cpu;
    use crate::field::host::{HostField, HostSpinor};
    use gpu_kernels::random::Philox;

    /// Part number `part` of noise vector number `number`.
    fn made<T: TraceField>(lattice: Lattice, source: NoiseSource, number: usize, part: usize) -> HostField<T> {
        let domain = Domain::single(Cpu::new(None), lattice).unwrap();
        let which = number * source.dilution.parts::<T>(lattice) + part;
        source.fields::<T>(&domain, which..which + 1).unwrap().download().unwrap().swap_remove(0)
    }

    /// Site by site from the numbers of the generator, for each part and both kinds.
    #[test]
    fn numbers_are_those_of_the_site() {
        let (lattice, seed, vector) = (Lattice::new([2, 4, 2, 6]).unwrap(), 5, 3);
        let dilution = Dilution { times: 3, spin: true, colour: true, parity: true };
        for kind in [NoiseKind::Z2, NoiseKind::Z4] {
            let source = NoiseSource { kind, seed, dilution };
            for part in 0..72 {
                let found: HostSpinor = made(lattice, source, vector, part);
                let [colour, spin, parity, time] = [part % 3, part / 3 % 4, part / 12 % 2, part / 24];
                for (index, site) in found.sites().iter().enumerate() {
                    let at = lattice.coordinates(index);
                    let there = at[3] % 3 == time && at.iter().sum::<usize>() % 2 == parity;
                    let bits = Philox::new(seed, (vector as u64) << 48 | index as u64, STREAM).next_u32();
                    for (s, c) in (0..12).map(|n| (n / 3, n % 3)) {
                        let sign = |bit: usize| if bits >> (2 * (3 * s + c) + bit) & 1 == 0 { 1.0 } else { -1.0 };
                        let value = match kind {
                            NoiseKind::Z2 => Complex64::new(sign(0), 0.0),
                            NoiseKind::Z4 => Complex64::new(sign(0), sign(1)) * 0.5f64.sqrt(),
                        };
                        let expected = if there && (s, c) == (spin, colour) { value } else { Complex64::ZERO };
                        assert!((site[s][c] - expected).norm() < 1e-15, "{kind:?} {part} {at:?}");
                    }
                }
            }
        }
    }

    /// Against plain sums over sites with matrices, right-hand side by right-hand side.
    #[test]
    fn sums_are_those_of_the_formula() {
        let lattice = Lattice::new([2, 4, 2, 6]).unwrap();
        let domain = Domain::single(Cpu::new(None), lattice).unwrap();
        let fields = |first: u64| -> Vec<HostSpinor> {
            (first..first + 2).map(|seed| crate::gauge::generate::random_source(lattice, seed)).collect()
        };
        let (eta, psi) = (fields(0), fields(2));
        let on = |fields: &[HostSpinor]| FullField::of_host(&domain, fields).unwrap();
        let found = Spinor::sums(&on(&eta), &on(&psi)).unwrap();
        for (rhs, number) in (0..2).flat_map(|rhs| (0..COUNT).map(move |number| (rhs, number))) {
            let gamma = Gamma::new(number);
            let expected: Complex64 = (eta[rhs].sites().iter().zip(psi[rhs].sites()))
                .map(|(a, b)| {
                    let terms = (0..48).map(|n| (n / 12, n / 3 % 4, n % 3));
                    terms.map(|(s, t, c)| a[s][c].conj() * gamma.at(s, t) * b[t][c]).sum::<Complex64>()
                })
                .sum();
            assert!((found[rhs][number] - expected).norm() < 1e-11, "{rhs} {number}");
        }
    }

    /// Parts add up to the whole, and each number is in one of them.
    #[test]
    fn parts_are_all_of_the_noise() {
        let lattice = Lattice::new([2, 4, 2, 6]).unwrap();
        let source = |dilution| NoiseSource { kind: NoiseKind::Z4, seed: 5, dilution };
        let whole = made::<Spinor>(lattice, source(Dilution::default()), 3, 0);
        assert!((whole.norm2() - 12.0 * 96.0).abs() < 1e-10);
        let all = Dilution { times: 3, spin: true, colour: true, parity: true };
        assert_eq!((all.parts::<Spinor>(lattice), all.parts::<ColourVector>(lattice)), (72, 18));
        let mut sum = HostField::<Spinor>::zero(lattice);
        for part in 0..72 {
            let one = made::<Spinor>(lattice, source(all), 3, part);
            assert!((one.norm2() - 16.0).abs() < 1e-12);
            sum.numbers_mut().iter_mut().zip(one.numbers()).for_each(|(sum, one)| *sum += one);
        }
        assert_eq!(sum, whole);
        // More slices than there are times are as many as there are.
        assert_eq!(Dilution { times: 100, ..Dilution::default() }.parts::<ColourVector>(lattice), 6);
        let other = NoiseSource { seed: 6, ..source(Dilution::default()) };
        assert_ne!(made::<Spinor>(lattice, other, 3, 0), whole);
        assert_ne!(made::<Spinor>(lattice, source(Dilution::default()), 4, 0), whole);
    }

    /// No sign wins, and no two components have the same signs.
    #[test]
    fn noise_has_no_mean_and_no_correlation() {
        let lattice = Lattice::new([4, 4, 4, 8]).unwrap();
        for kind in [NoiseKind::Z2, NoiseKind::Z4] {
            let source = NoiseSource { kind, seed: 1, dilution: Dilution::default() };
            let field = made::<Spinor>(lattice, source, 0, 0);
            let limit = 5.0 * 512f64.sqrt();
            for a in 0..12 {
                for b in 0..12 {
                    let pairs = field.numbers().chunks(12).map(|site| site[a].conj() * site[b]);
                    let sum: Complex64 = pairs.sum();
                    let expected = if a == b { 512.0 } else { 0.0 };
                    let bound = if a == b { 1e-10 } else { limit };
                    assert!((sum - expected).norm() < bound, "{kind:?} {a} {b}: {sum}");
                }
                let mean: Complex64 = field.numbers().chunks(12).map(|site| site[a]).sum();
                assert!(mean.norm() < limit, "{kind:?} {a}: {mean}");
            }
        }
    }
}
