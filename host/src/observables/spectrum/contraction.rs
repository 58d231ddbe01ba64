//! Contractions on a device: what propagators make at each site, and its sums over space with momenta.
use crate::domain::{DeviceError, Domain, Result};
use crate::field::{DeviceArray, FullField};
use crate::{FermionKind, Precision};
use gpu_kernels::Format;
use gpu_kernels::contraction::{
    FOURIER_SUM, FourierSum, MESON_SPINS, MesonSpins, NUCLEON_SPINS, NucleonSpins, STAGGERED_HADRONS, StaggeredHadrons,
};
use gpu_kernels::lattice::Divisor;
use num_complex::Complex64;

/// Pairs of spins of a source.
const PAIRS: usize = 16;
/// Numbers of each pair.
const SPINS: usize = 16;
/// Most bytes that pairs take which are computed together, if more than one is.
const MOST_BYTES: usize = 1 << 30;

/// Bytes on the device, of this process's part of a lattice of so many sites, for hadrons of so many propagators that are there: they,
/// one while it is uploaded, products at each site, and sums of these.
pub fn contraction_bytes(kind: FermionKind, sites: usize, propagators: usize) -> usize {
    let (components, products) = match kind {
        FermionKind::Wilson => (12, (PAIRS * SPINS * sites * size_of::<Complex64>()).clamp(0, MOST_BYTES)),
        FermionKind::Staggered => (3, 2 * sites * size_of::<Complex64>()),
    };
    let one = SPINS * sites * size_of::<Complex64>();
    (propagators + 1) * sites * components * components * size_of::<Complex64>() + 2 * products.max(one)
}

/// Sums over space with momenta, on a device.
pub(crate) struct MomentumSums {
    domain: Domain,
    /// For x, y and z: e^{−i p_k (x_k − x₀_k)} for each of its momenta p_k, and how many there are.
    axes: [(DeviceArray, usize); 3],
    /// Which ones of x, y and z each momentum has.
    momenta: Vec<[usize; 3]>,
    origin: [usize; 4],
}

impl MomentumSums {
    /// For momenta in units of 2π/L, and what begins at `origin`.
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
        Ok(MomentumSums { domain: domain.clone(), axes, momenta: indices, origin })
    }
    /// Of `count` numbers at each site, `[number][t][z][y][x]`: `[number][momentum][time]`, for all times of the whole lattice,
    /// counted from the origin; the sums over the local sites.
    pub fn of(&self, numbers: DeviceArray, count: usize) -> Result<Vec<Vec<Vec<Complex64>>>> {
        let [x, y, z, t] = self.domain.local().size();
        let mut sums = numbers;
        // Threads side by side have sites side by side as long as x is there.
        let mut before = count * t;
        for (k, extent, inner) in [(2, z, x * y), (1, y, x), (0, x, 1)] {
            let (factors, waves) = &self.axes[k];
            let made = before * inner;
            let to = DeviceArray::zero(self.domain.backend(), waves * made, "sums with momenta")?;
            let kernel = FourierSum {
                from: sums.view(),
                factors: factors.view(),
                to: to.view(),
                inner: Divisor::new(inner as u32),
                extent: extent as u32,
                numbers: made as u32,
                first: 0,
            };
            for first in (0..*waves).step_by(PAIRS) {
                let some = (waves - first).min(PAIRS) as u32;
                let kernel = FourierSum { first: first as u32, ..kernel };
                self.domain.backend().launch(&FOURIER_SUM, Format::NONE, &kernel, made as u32, some)?;
            }
            (sums, before) = (to, before * waves);
        }
        let mut all = vec![Complex64::ZERO; sums.len()];
        sums.download(0, &mut all)?;
        // x was the last one to be summed over: [x][y][z][number][t]
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
    fn expect(&self, propagator: &FullField, kind: FermionKind, components: usize) -> Result {
        for field in [&propagator.even, &propagator.odd] {
            field.expect(&self.domain, (kind, Precision::Double), components)?;
            if field.nrhs() != components {
                return Err(DeviceError::OtherCount { found: field.nrhs(), expected: components });
            }
        }
        Ok(())
    }
    /// Σ_x e^{−i p (x−x₀)} Σ_cc' S₁_{sc,s'c'} S₂*_{uc,u'c'} of two propagators of 12 components in double precision:
    /// `[u' + 4 (u + 4 (s' + 4 s))][momentum][time]`.
    pub fn of_pairs(&self, quark: &FullField, antiquark: &FullField) -> Result<Vec<Vec<Vec<Complex64>>>> {
        self.expect(quark, FermionKind::Wilson, 12)?;
        self.expect(antiquark, FermionKind::Wilson, 12)?;
        let bytes = SPINS * self.domain.local().volume() * size_of::<Complex64>();
        let together = (MOST_BYTES / bytes).clamp(1, PAIRS);
        let mut all = vec![Vec::new(); PAIRS * SPINS];
        for first in (0..PAIRS).step_by(together) {
            let pairs = (PAIRS - first).min(together);
            let out = self.numbers(pairs * SPINS, "products of propagators")?;
            for parity in 0..2 {
                let kernel = MesonSpins {
                    quark: quark.parity(parity).view(),
                    antiquark: antiquark.parity(parity).view(),
                    out: out.view(),
                    geometry: self.domain.geometry(),
                    parity: parity as u32,
                    first: first as u32,
                };
                let (format, sites) = (quark.parity(parity).format(), self.domain.half_sites());
                self.domain.backend().launch(&MESON_SPINS, format, &kernel, sites, pairs as u32)?;
            }
            for (number, sums) in self.of(out, pairs * SPINS)?.into_iter().enumerate() {
                let ([s1, u1], [s, u]) = ([first + number / SPINS; 2], [number % SPINS; 2]);
                let ([s1, u1], [s, u]) = ([s1 / 4, u1 % 4], [s / 4, u % 4]);
                all[u1 + 4 * (u + 4 * (s1 + 4 * s))] = sums;
            }
        }
        Ok(all)
    }
    /// Σ_x e^{−i p (x−x₀)} C_γγ'(x) of a propagator of 12 components in double precision, C as in [`NucleonSpins`]:
    /// `[γ' + 4 γ][momentum][time]`.
    pub fn of_nucleon(&self, quark: &FullField) -> Result<Vec<Vec<Vec<Complex64>>>> {
        self.expect(quark, FermionKind::Wilson, 12)?;
        let out = self.numbers(16, "correlators of nucleons")?;
        for parity in 0..2 {
            let (quark, geometry) = (quark.parity(parity), self.domain.geometry());
            let kernel = NucleonSpins { quark: quark.view(), out: out.view(), geometry, parity: parity as u32 };
            self.domain.backend().launch(&NUCLEON_SPINS, quark.format(), &kernel, self.domain.half_sites(), 4)?;
        }
        let found = self.of(out, 16)?;
        Ok((0..16).map(|k| found[4 * (k % 4) + k / 4].clone()).collect())
    }
    /// Σ_x e^{−i p (x−x₀)} of tr G₁ G₂† and of det G₁, two propagators of three components in double precision:
    /// `[which][momentum][time]`.
    pub fn of_staggered(&self, quark: &FullField, antiquark: &FullField) -> Result<[Vec<Vec<Complex64>>; 2]> {
        self.expect(quark, FermionKind::Staggered, 3)?;
        self.expect(antiquark, FermionKind::Staggered, 3)?;
        let out = self.numbers(2, "correlators of staggered hadrons")?;
        for parity in 0..2 {
            let kernel = StaggeredHadrons {
                quark: quark.parity(parity).view(),
                antiquark: antiquark.parity(parity).view(),
                out: out.view(),
                geometry: self.domain.geometry(),
                parity: parity as u32,
            };
            let (format, sites) = (quark.parity(parity).format(), self.domain.half_sites());
            self.domain.backend().launch(&STAGGERED_HADRONS, format, &kernel, sites, 1)?;
        }
        let mut found = self.of(out, 2)?.into_iter();
        Ok(std::array::from_fn(|_| found.next().expect("two numbers")))
    }
}
