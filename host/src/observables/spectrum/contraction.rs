//! Contractions of propagators on a device: products at each site, and their sums over space with momenta.
use crate::domain::{DeviceError, Domain, Result};
use crate::field::{DeviceArray, FieldShape, FullField};
use crate::{FermionKind, Precision};
use gpu_kernels::contraction::{
    CHARGE_DENSITY, ChargeDensity, FOURIER_SUM, FourierSum, MESON_SPINS, MesonSpins, NUCLEON_SPINS, NucleonSpins,
    STAGGERED_HADRONS, StaggeredHadrons,
};
use gpu_kernels::lattice::Divisor;
use gpu_kernels::noise::{NOISE_SPINS, NoiseSpins};
use gpu_kernels::{Format, Instances};
use num_complex::Complex64;
use std::ops::Range;

/// Number of pairs of spins of a source.
const PAIRS: usize = 16;
/// Number of complex numbers of each pair.
const SPINS: usize = 16;
/// Shape of a propagator of spinors: a right-hand side for each component.
const SPINORS: FieldShape = FieldShape::spinors(Precision::Double, 12);
const COLOURS: FieldShape = FieldShape::colours(Precision::Double, 3);
/// Maximum number of bytes of pairs that are computed together; a single pair may take more.
const MOST_BYTES: usize = 1 << 30;
/// Maximum number of momenta in a direction with which one launch sums.
const MOMENTA_OF_LAUNCH: usize = 16;

/// Returns the bytes of device memory that correlators of hadrons from `propagators` propagators need on a part of the lattice with `sites`
/// sites: the propagators, one propagator that is being reordered, products at each site, and their sums.
pub fn contraction_bytes(kind: FermionKind, sites: usize, propagators: usize) -> usize {
    let components = 3 * kind.spins();
    let products = match kind.spins() {
        1 => 2 * sites * size_of::<Complex64>(),
        _ => (PAIRS * SPINS * sites * size_of::<Complex64>()).min(MOST_BYTES),
    };
    let one = SPINS * sites * size_of::<Complex64>();
    (propagators + 1) * sites * components * components * size_of::<Complex64>() + 2 * products.max(one)
}

/// Sums over space with the phases of momenta, on a device.
pub(crate) struct MomentumSums {
    domain: Domain,
    /// Phases e^{−i p_k (x_k − x₀_k)} in each direction k for the different momenta p_k, and the number of these momenta.
    axes: [(DeviceArray, usize); 3],
    /// Indices into the momenta of x, y and z for each momentum.
    momenta: Vec<[usize; 3]>,
    origin: [usize; 4],
    /// Maximum number of bytes of pairs that are computed together: [`MOST_BYTES`] except in tests.
    most_bytes: usize,
}

impl MomentumSums {
    /// Prepares sums over space with the phases of `momenta`, in units of 2π/L, relative to the source position `origin`.
    pub fn new(domain: &Domain, origin: [usize; 4], momenta: &[[i32; 3]]) -> Result<Self> {
        let section = domain.section();
        let mut indices = vec![[0; 3]; momenta.len()];
        let mut axis = |k: usize| -> Result<(DeviceArray, usize)> {
            let (whole, extent) = (section.global.size()[k] as i64, section.local.size()[k]);
            let mut all: Vec<i32> = Vec::new();
            for (index, momentum) in indices.iter_mut().zip(momenta) {
                let place = all.iter().position(|p| *p == momentum[k]);
                index[k] = place.unwrap_or(all.len());
                if place.is_none() {
                    all.push(momentum[k]);
                }
            }
            let mut factors = Vec::with_capacity(all.len() * extent);
            for p in &all {
                for x in 0..extent {
                    let steps = (section.origin[k] + x) as i64 - origin[k] as i64;
                    let turns = (i64::from(*p) * steps).rem_euclid(whole) as f64 / whole as f64;
                    factors.push(Complex64::cis(-std::f64::consts::TAU * turns));
                }
            }
            let mut array = DeviceArray::zero(domain.backend(), factors.len(), "phases of momenta")?;
            array.upload(0, &factors)?;
            Ok((array, all.len()))
        };
        let axes = [axis(0)?, axis(1)?, axis(2)?];
        Ok(MomentumSums { domain: domain.clone(), axes, momenta: indices, origin, most_bytes: MOST_BYTES })
    }
    /// Sums `count` numbers at each local site, `[number][t][z][y][x]`, over space. Returns `[number][momentum][time]` for all times of the
    /// whole lattice, counted from the source time.
    pub fn of(&self, numbers: DeviceArray, count: usize) -> Result<Vec<Vec<Vec<Complex64>>>> {
        let [x, y, z, t] = self.domain.local().size();
        let mut sums = numbers;
        // The sum over x is the last one, because adjacent threads work on adjacent sites until then.
        let mut before = count * t;
        for (k, extent, inner) in [(2, z, x * y), (1, y, x), (0, x, 1)] {
            let (factors, count) = &self.axes[k];
            let made = before * inner;
            let to = DeviceArray::zero(self.domain.backend(), count * made, "sums with momenta")?;
            let kernel = FourierSum {
                from: sums.view(),
                factors: factors.view(),
                to: to.view(),
                inner: Divisor::new(inner as u32),
                extent: extent as u32,
                numbers: made as u32,
                first: 0,
            };
            for first in (0..*count).step_by(MOMENTA_OF_LAUNCH) {
                let some = (count - first).min(MOMENTA_OF_LAUNCH) as u32;
                let kernel = FourierSum { first: first as u32, ..kernel };
                self.domain.backend().launch(&FOURIER_SUM, Format::NONE, &kernel, made as u32, some)?;
            }
            (sums, before) = (to, before * count);
        }
        let mut all = vec![Complex64::ZERO; sums.len()];
        sums.download(0, &mut all)?;
        // The layout of the sums is [k_x][k_y][k_z][number][t], because the sum over x was the last one.
        let section = self.domain.section();
        let extent = section.global.size()[3];
        let of_momentum = |number: usize, [kx, ky, kz]: [usize; 3]| -> Vec<Complex64> {
            let first = (((kx * self.axes[1].1 + ky) * self.axes[2].1 + kz) * count + number) * t;
            let mut times = vec![Complex64::ZERO; extent];
            for (local, sum) in all[first..first + t].iter().enumerate() {
                times[(section.origin[3] + local + extent - self.origin[3]) % extent] = *sum;
            }
            times
        };
        Ok((0..count).map(|number| self.momenta.iter().map(|k| of_momentum(number, *k)).collect()).collect())
    }
    fn numbers(&self, count: usize, what: &str) -> Result<DeviceArray> {
        DeviceArray::zero(self.domain.backend(), count * self.domain.local().volume(), what)
    }
    fn expect(&self, propagator: &FullField, shape: FieldShape) -> Result {
        for field in [&propagator.even, &propagator.odd] {
            field.expect(&self.domain, shape)?;
            if field.nrhs() != shape.nrhs {
                return Err(DeviceError::OtherCount { found: field.nrhs(), expected: shape.nrhs });
            }
        }
        Ok(())
    }
    /// Launches a contraction at the sites of both parities, in the format of `propagator`.
    fn launch<A: Copy>(
        &self,
        kernel: &Instances<A>,
        propagator: &FullField,
        nrhs: usize,
        arguments: impl Fn(usize) -> A,
    ) -> Result {
        self.domain.launch_on_parities(kernel, propagator.even.format(), nrhs, arguments)
    }
    /// Computes Σ_x e^{−i p (x−x₀)} Σ_cc' S₁_{sc,s'c'} S₂*_{uc,u'c'} for the propagators S₁ = `quark` and S₂ = `antiquark`, with 12
    /// components in double precision. The result is `[u' + 4 (u + 4 (s' + 4 s))][momentum][time]`.
    pub fn of_pairs(&self, quark: &FullField, antiquark: &FullField) -> Result<Vec<Vec<Vec<Complex64>>>> {
        let bytes = SPINS * self.domain.local().volume() * size_of::<Complex64>();
        let together = (self.most_bytes / bytes).clamp(1, PAIRS);
        let mut all = vec![Vec::new(); PAIRS * SPINS];
        for first in (0..PAIRS).step_by(together) {
            self.add_pairs([quark, antiquark], first..PAIRS.min(first + together), &mut all)?;
        }
        Ok(all)
    }
    /// Computes those sums of [`of_pairs`](Self::of_pairs) for which u' = `columns[s']`. The other sums are left empty.
    pub fn of_columns(
        &self,
        quark: &FullField,
        antiquark: &FullField,
        columns: [usize; 4],
    ) -> Result<Vec<Vec<Vec<Complex64>>>> {
        let mut all = vec![Vec::new(); PAIRS * SPINS];
        for (s1, u1) in columns.into_iter().enumerate() {
            self.add_pairs([quark, antiquark], 4 * s1 + u1..4 * s1 + u1 + 1, &mut all)?;
        }
        Ok(all)
    }
    /// Adds the sums of some pairs, numbered `4 s' + u'`.
    fn add_pairs(
        &self,
        [quark, antiquark]: [&FullField; 2],
        pairs: Range<usize>,
        all: &mut [Vec<Vec<Complex64>>],
    ) -> Result {
        self.expect(quark, SPINORS)?;
        self.expect(antiquark, SPINORS)?;
        let out = self.numbers(pairs.len() * SPINS, "products of propagators")?;
        self.launch(&MESON_SPINS, quark, pairs.len(), |parity| MesonSpins {
            quark: quark.parity(parity).view(),
            antiquark: antiquark.parity(parity).view(),
            out: out.view(),
            geometry: self.domain.geometry(),
            parity: parity as u32,
            first: pairs.start as u32,
        })?;
        for (number, sums) in self.of(out, pairs.len() * SPINS)?.into_iter().enumerate() {
            let (pair, spins) = (pairs.start + number / SPINS, number % SPINS);
            let [s1, u1, s, u] = [pair / 4, pair % 4, spins / 4, spins % 4];
            all[u1 + 4 * (u + 4 * (s1 + 4 * s))] = sums;
        }
        Ok(())
    }
    /// Computes Σ_x e^{−i p (x−x₀)} C_γγ'(x) of a propagator with 12 components in double precision, with C as in [`NucleonSpins`]. The
    /// result is `[γ' + 4 γ][momentum][time]`.
    pub fn of_nucleon(&self, quark: &FullField) -> Result<Vec<Vec<Vec<Complex64>>>> {
        self.expect(quark, SPINORS)?;
        let out = self.numbers(16, "correlators of nucleons")?;
        self.launch(&NUCLEON_SPINS, quark, 4, |parity| NucleonSpins {
            quark: quark.parity(parity).view(),
            out: out.view(),
            geometry: self.domain.geometry(),
            parity: parity as u32,
        })?;
        let found = self.of(out, 16)?;
        Ok((0..16).map(|k| found[4 * (k % 4) + k / 4].clone()).collect())
    }
    /// Computes Σ_x e^{−i p (x−x₀)} of the [`ChargeDensity`] of two propagators with 12 components in double precision. The result is
    /// `[spin][momentum][time]`. `links` are `[site][μ][row][column]`. `spins` are the spins of the columns of Σ for each spin of the
    /// source, and `across` is the sign of terms across the end of the lattice in t.
    pub fn of_charge(
        &self,
        links: &DeviceArray,
        [quark, other]: [&FullField; 2],
        spins: [usize; 4],
        across: f64,
    ) -> Result<Vec<Vec<Vec<Complex64>>>> {
        self.expect(quark, SPINORS)?;
        self.expect(other, SPINORS)?;
        let out = self.numbers(4, "densities of the conserved charge")?;
        let spins = spins.iter().rev().fold(0, |bits, spin| bits << 2 | *spin as u32);
        self.launch(&CHARGE_DENSITY, quark, 4, |parity| ChargeDensity {
            quark: quark.parity(parity).view(),
            quark_ahead: quark.parity(1 - parity).view(),
            other: other.parity(parity).view(),
            other_ahead: other.parity(1 - parity).view(),
            links: links.view(),
            out: out.view(),
            geometry: self.domain.geometry(),
            parity: parity as u32,
            spins,
            across,
        })?;
        self.of(out, 4)
    }
    /// Computes Σ_x e^{−i p (x−x₀)} Σ_c η*_{sc} ψ_{tc} for right-hand side `rhs` of noise η and solutions ψ in double precision. The result
    /// is `[4 s + t][momentum][time]`; for colour vectors, it has one number instead of 16.
    pub fn of_noise(&self, noise: &FullField, solution: &FullField, rhs: usize) -> Result<Vec<Vec<Vec<Complex64>>>> {
        let kind = noise.even.kind();
        for part in [&noise.even, &noise.odd, &solution.even, &solution.odd] {
            part.expect(&self.domain, FieldShape::new(kind, Precision::Double, rhs + 1))?;
        }
        let count = kind.spins() * kind.spins();
        let out = self.numbers(count, "products of noise and solutions")?;
        self.launch(&NOISE_SPINS, noise, 1, |parity| NoiseSpins {
            noise: noise.parity(parity).view_from(rhs),
            solution: solution.parity(parity).view_from(rhs),
            out: out.view(),
            geometry: self.domain.geometry(),
            parity: parity as u32,
        })?;
        self.of(out, count)
    }
    /// Computes Σ_x e^{−i p (x−x₀)} of tr G₁ G₂† and of det G₁, for the propagators G₁ = `quark` and G₂ = `antiquark` with three components
    /// in double precision. The result is `[which][momentum][time]`.
    pub fn of_staggered(&self, quark: &FullField, antiquark: &FullField) -> Result<[Vec<Vec<Complex64>>; 2]> {
        self.expect(quark, COLOURS)?;
        self.expect(antiquark, COLOURS)?;
        let out = self.numbers(2, "correlators of staggered hadrons")?;
        self.launch(&STAGGERED_HADRONS, quark, 1, |parity| StaggeredHadrons {
            quark: quark.parity(parity).view(),
            antiquark: antiquark.parity(parity).view(),
            out: out.view(),
            geometry: self.domain.geometry(),
            parity: parity as u32,
        })?;
        let mut found = self.of(out, 2)?.into_iter();
        Ok(std::array::from_fn(|_| found.next().expect("two numbers")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::field::host::HostSpinor;
    use crate::gauge::generate;
    use crate::lattice::Lattice;
    use crate::observables::spectrum::tests::on_cpu;

    /// Pairs in several launches, and more momenta than one launch takes: those that differ by the extent are the same.
    #[test]
    fn parts_are_the_whole() {
        let lattice = Lattice::new([2, 4, 6, 4]).unwrap();
        let fields = |first: u64| -> Vec<HostSpinor> {
            (first..first + 12).map(|seed| generate::random_source(lattice, seed)).collect()
        };
        let on = on_cpu(lattice, &[&fields(0), &fields(12)]);
        let momenta: Vec<[i32; 3]> = (0..20).map(|k| [1, k % 3 - 1, k - 7]).collect();
        let mut sums = MomentumSums::new(on[0].even.domain(), [1, 3, 2, 3], &momenta).unwrap();
        let whole = sums.of_pairs(&on[0], &on[1]).unwrap();
        for pair in &whole {
            assert!(pair[0].iter().all(|z| z.norm() > 1e-3) && pair[0] == pair[6 + 12], "p_z = -7 and 11");
            assert!((1..6).all(|k| pair[k] != pair[0]));
        }
        // One, five and sixteen pairs at a time.
        for together in [0, 5, 100] {
            sums.most_bytes = together * SPINS * lattice.volume() * size_of::<Complex64>();
            assert!(sums.of_pairs(&on[0], &on[1]).unwrap() == whole, "{together}");
        }
    }
}
