//! tr Γ M⁻¹ from noise: with ⟨η_i η_j*⟩ = δ_ij, ⟨η† Γ M⁻¹ η⟩ = tr Γ M⁻¹ (Dong and Liu 1994). Of staggered operators tr M⁻¹.
//!
//! A noise vector may be split into parts that live on different times, spins, colours or parities, each of which is solved for by
//! itself: with η = Σ_k η_k, Σ_k η_k† Γ M⁻¹ η_k lacks what noise there is from elements of M⁻¹ between parts (Foley et al. 2005).
use super::spectrum::gamma::{COUNT, Gamma, name};
use crate::field::host::{ColourVector, Fermion, HostField, Spinor};
use crate::lattice::{Lattice, Section};
use gpu_kernels::random::Philox;
use num_complex::Complex64;
use rayon::prelude::*;

/// Stream of this noise, apart from those of [sources](super::spectrum::sources).
const STREAM: u32 = 0x5a32_0002;
/// Sites are numbered below 2⁴⁸, noise vectors below 2¹⁶.
const NUMBER: u32 = 48;
/// Noise vectors with numbers of their own.
pub const MOST_NOISE: u32 = 1 << 16;

/// What the numbers of noise are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum NoiseKind {
    /// ±1
    Z2,
    /// (±1 ± i)/√2
    #[default]
    Z4,
}

/// Into which parts a noise vector is split.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Dilution {
    /// Times whose distance is a multiple of this go together; 0: all times do.
    pub times: usize,
    /// Each spin by itself; there are none of staggered fields.
    pub spin: bool,
    /// Each colour by itself.
    pub colour: bool,
    /// Even and odd sites apart.
    pub parity: bool,
}

impl Dilution {
    /// How many parts there are: of times, parities, spins and colours.
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
    /// How many parts there are.
    pub fn parts<T: TraceField>(&self, lattice: Lattice) -> usize {
        self.counts::<T>(lattice).iter().product()
    }
}

/// Where noise comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NoiseSource {
    /// What the numbers are.
    pub kind: NoiseKind,
    /// The same seed gives the same noise, however the lattice is cut.
    pub seed: u64,
    /// Its parts.
    pub dilution: Dilution,
}

impl NoiseSource {
    /// Part number `part` of noise vector number `number`. Panics where there is no such part, or for numbers of [`MOST_NOISE`] or
    /// more.
    pub fn part<T: TraceField>(&self, section: Section, number: u32, part: usize) -> HostField<T> {
        assert!(number < MOST_NOISE && part < self.dilution.parts::<T>(section.global), "a part that is there");
        let [times, parities, spins, colours] = self.dilution.counts::<T>(section.global);
        let (colour, rest) = (part % colours, part / colours);
        let (spin, rest) = (rest % spins, rest / spins);
        let (parity, time) = (rest % parities, rest / parities);
        let mut field = HostField::<T>::zero(section.local);
        field.numbers_mut().par_chunks_exact_mut(T::COMPONENTS).enumerate().for_each(|(local, site)| {
            let global = section.global_index(local);
            let at = section.global.coordinates(global);
            if at[3] % times != time || at.iter().sum::<usize>() % parities != parity {
                return;
            }
            let stream = u64::from(number) << NUMBER | global as u64;
            let bits = Philox::new(self.seed, stream, STREAM).next_u32();
            for (component, value) in site.iter_mut().enumerate() {
                let (s, c) = (component / ColourVector::COMPONENTS, component % ColourVector::COMPONENTS);
                if s % spins == spin && c % colours == colour {
                    *value = self.kind.value(bits >> (2 * component));
                }
            }
        });
        field
    }
}

impl NoiseKind {
    /// From two bits.
    fn value(self, bits: u32) -> Complex64 {
        let sign = |bit: u32| if bits >> bit & 1 == 0 { 1.0 } else { -1.0 };
        match self {
            NoiseKind::Z2 => Complex64::new(sign(0), 0.0),
            NoiseKind::Z4 => Complex64::new(sign(0), sign(1)) * std::f64::consts::FRAC_1_SQRT_2,
        }
    }
}

/// Fields that traces are made of.
pub trait TraceField: Fermion {
    /// How many Γ there are.
    const GAMMAS: usize;
    /// What a Γ is called.
    fn gamma(number: usize) -> String;
    /// η†(x) Γ ψ(x) for all Γ at a site.
    fn site(noise: &Self, solution: &Self) -> Vec<Complex64>;
    /// Σ_x η†(x) Γ ψ(x) over this process's part of the lattice, for all Γ.
    fn sums(noise: &HostField<Self>, solution: &HostField<Self>) -> Vec<Complex64> {
        // In a fixed order: by time, and then by site, so that the number of threads does not matter.
        let plane = noise.lattice().volume() / noise.lattice().size()[3];
        let zero = || vec![Complex64::ZERO; Self::GAMMAS];
        let add = |mut sum: Vec<Complex64>, more: Vec<Complex64>| {
            sum.iter_mut().zip(more).for_each(|(sum, more)| *sum += more);
            sum
        };
        let planes: Vec<Vec<Complex64>> = noise
            .sites()
            .par_chunks(plane)
            .zip(solution.sites().par_chunks(plane))
            .map(|(noise, solution)| noise.iter().zip(solution).map(|(a, b)| Self::site(a, b)).fold(zero(), add))
            .collect();
        planes.into_iter().fold(zero(), add)
    }
}

impl TraceField for Spinor {
    const GAMMAS: usize = COUNT;
    fn gamma(number: usize) -> String {
        name(number)
    }
    fn site(noise: &Self, solution: &Self) -> Vec<Complex64> {
        // η*_s ψ_t, summed over colours.
        let pairs: [[Complex64; 4]; 4] = std::array::from_fn(|s| {
            std::array::from_fn(|t| noise[s].iter().zip(&solution[t]).map(|(a, b)| a.conj() * b).sum())
        });
        let one = |number: usize| {
            let gamma = Gamma::new(number);
            (0..4).map(|s| gamma.value[s] * pairs[s][gamma.column[s]]).sum()
        };
        (0..COUNT).map(one).collect()
    }
}

impl TraceField for ColourVector {
    const GAMMAS: usize = 1;
    fn gamma(_: usize) -> String {
        name(0)
    }
    fn site(noise: &Self, solution: &Self) -> Vec<Complex64> {
        vec![noise.iter().zip(solution).map(|(a, b)| a.conj() * b).sum()]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Parts add up to the whole, and each number is in one of them.
    #[test]
    fn parts_are_all_of_the_noise() {
        let lattice = Lattice::new([2, 4, 2, 6]).unwrap();
        let section = Section::from(lattice);
        let source = |dilution| NoiseSource { kind: NoiseKind::Z4, seed: 5, dilution };
        let whole = source(Dilution::default()).part::<Spinor>(section, 3, 0);
        assert!((whole.norm2() - 12.0 * 96.0).abs() < 1e-10);
        let all = Dilution { times: 3, spin: true, colour: true, parity: true };
        assert_eq!((all.parts::<Spinor>(lattice), all.parts::<ColourVector>(lattice)), (72, 18));
        let mut sum = HostField::<Spinor>::zero(lattice);
        for part in 0..72 {
            let one = source(all).part::<Spinor>(section, 3, part);
            assert!((one.norm2() - 16.0).abs() < 1e-12);
            sum.numbers_mut().iter_mut().zip(one.numbers()).for_each(|(sum, one)| *sum += one);
        }
        assert_eq!(sum, whole);
        // More slices than there are times are as many as there are.
        assert_eq!(Dilution { times: 100, ..Dilution::default() }.parts::<ColourVector>(lattice), 6);
        let other = NoiseSource { seed: 6, ..source(Dilution::default()) };
        assert_ne!(other.part::<Spinor>(section, 3, 0), whole);
        assert_ne!(source(Dilution::default()).part::<Spinor>(section, 4, 0), whole);
    }

    /// No sign wins, and no two components have the same signs.
    #[test]
    fn noise_has_no_mean_and_no_correlation() {
        let lattice = Lattice::new([4, 4, 4, 8]).unwrap();
        for kind in [NoiseKind::Z2, NoiseKind::Z4] {
            let source = NoiseSource { kind, seed: 1, dilution: Dilution::default() };
            let field = source.part::<Spinor>(lattice.into(), 0, 0);
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
