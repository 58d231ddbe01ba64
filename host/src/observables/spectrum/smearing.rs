//! Covariant Gaussian smearing of quark fields on a device, with momentum (Güsken 1990; Bali et al. 2016).
//!
//! ψ ← (1 + σ Δ)ⁿ ψ with σ = w²/(4 n) and the Laplace operator of three dimensions,
//!
//! (Δ ψ)(x) = Σ_{k=x,y,z} e^{−iκ_k} U_k(x) ψ(x+k̂) + e^{iκ_k} U_k†(x−k̂) ψ(x−k̂) − 2 ψ(x), κ_k = 2π p_k / L_k,
//!
//! which for many steps is exp(w² Δ/4): on unit links it multiplies a plane wave of momentum q by exp(−w² (q − κ)²/4). Without momentum it
//! is Chroma's `GAUGE_INV_GAUSSIAN` with `wvf_param` = w and `wvfIntPar` = n. Staggered quarks take steps of two sites, which stay in one
//! corner of the hypercubes and so keep spin and taste:
//!
//! (Δ₂ χ)(x) = ¼ Σ_k e^{−2iκ_k} W_k(x) χ(x+2k̂) + e^{2iκ_k} W_k†(x−2k̂) χ(x−2k̂) − 2 χ(x), W_k(x) = U_k(x) U_k(x+k̂).
//!
//! **Hops.** Smearing does not act on spin, so a spinor is smeared as four colour vectors. A kernel of naive staggered quarks computes the
//! hops, with its many right-hand sides, its halos and its CPU form. Without the signs η, the kernel has D = Σ_k U_k ψ(x+k̂) − U_k†
//! ψ(x−k̂), but smearing needs H, which is D with a plus. Let ψ = c χ with c(x) = +, +, −, − for x+y+z+t = 0, 1, 2, 3 (mod 4). Between
//! neighbours c changes sign only if the first of them, in the order of the sum, is odd. Therefore H is D on even sites and −D on odd ones.
//! Links that join the ends of the lattice get the sign (−1)^{L/2}, by which c(x + L k̂) differs from c(x).
use crate::domain::{Domain, Result};
use crate::field::host::{Fermion, HostField, HostGauge};
use crate::field::{DeviceField, FieldShape, FieldSpace, FullField, GaugeField, HopPhases};
use crate::lattice::Section;
use crate::operators::{Staggered, StaggeredLinks, StaggeredParams, TimeBoundary};
use gpu_kernels::transfer::{JOIN_SPINS, JoinSpins, SPLIT_SPINS, SplitSpins};
use gpu_kernels::{FermionKind, LinkStorage, Precision};
use num_complex::Complex64;
use rayon::prelude::*;
use std::f64::consts::TAU;
use std::sync::Arc;

/// Gaussian smearing (1 + w² Δ/(4 n))ⁿ.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct GaussianSmearing {
    /// Width w, in units of a.
    pub width: f64,
    /// Number of steps n.
    pub steps: usize,
    /// Momentum p, in units of 2π/L. Quarks of momentum p are smeared as quarks at rest are with p = 0.
    pub momentum: [f64; 3],
}

/// Largest number of smearing steps that users may request.
pub const MOST_SMEARING_STEPS: usize = 10_000;

/// Links on a device for the Gaussian smearing of quarks of one fermion type.
pub struct SmearingLinks {
    section: Section,
    kind: FermionKind,
    precision: Precision,
    /// Hopping terms. Wilson quarks have one, over all directions; staggered quarks have one for each direction, because they hop twice in
    /// it.
    hops: Vec<Staggered>,
}

/// Whether quarks are smeared by hops of two sites in a direction, as staggered quarks are, which have one spin.
fn hops_twice(kind: FermionKind) -> bool {
    kind.spins() == 1
}

/// Converts colour vectors to another precision.
fn in_precision(field: FullField, precision: Precision) -> Result<FullField> {
    if field.even.precision() == precision {
        return Ok(field);
    }
    let (domain, shape) = (field.even.domain(), field.even.shape().with_precision(precision));
    let (mut other, space) = (FullField::zero(domain, shape)?, FieldSpace::new(domain, shape));
    for parity in 0..2 {
        space.convert_from(field.parity(parity), other.parity_mut(parity))?;
    }
    Ok(other)
}

impl SmearingLinks {
    /// *Collective.* Makes links for the smearing of quarks of a fermion type. Fields are smeared in `precision`, and `momentum` is p in
    /// units of 2π/L. `gauge` has this process's part of the links, which may be smeared links.
    ///
    /// # Errors
    /// Failures of the device.
    ///
    /// # Panics
    /// If links and domain have different extents.
    pub fn new(
        domain: &Domain,
        gauge: &HostGauge,
        kind: FermionKind,
        precision: Precision,
        momentum: [f64; 3],
    ) -> Result<Self> {
        let section = domain.section();
        assert_eq!(gauge.lattice(), section.local, "links are those of the section");
        let extents = section.global.size();
        let angle = |k: usize| Complex64::cis(-TAU * momentum[k] / extents[k] as f64);
        let groups: &[&[usize]] = if hops_twice(kind) { &[&[0], &[1], &[2]] } else { &[&[0, 1, 2]] };
        let turns = |mu: &usize| extents[*mu] % 4 == 2;
        let links = if (0..3).any(|mu| turns(&mu)) {
            let mut links = gauge.clone();
            links.links_mut().par_iter_mut().enumerate().for_each(|(number, link)| {
                let (index, mu) = (number / 4, number % 4);
                let place = || section.global.coordinates(section.global_index(index))[mu];
                if mu < 3 && turns(&mu) && place() + 1 == extents[mu] {
                    link.iter_mut().flatten().for_each(|z| *z = -*z);
                }
            });
            GaugeField::upload(domain, &links)?
        } else {
            GaugeField::upload(domain, gauge)?
        };
        let make = |directions: &&[usize]| {
            let factor = |mu| if directions.contains(&mu) { angle(mu) } else { Complex64::ZERO };
            let links = links.pack_with(HopPhases(std::array::from_fn(factor)), precision, LinkStorage::FULL)?;
            let params = StaggeredParams::new(0.0, TimeBoundary::Periodic);
            Ok(Staggered::new(Arc::new(StaggeredLinks::bare(links)), params))
        };
        let hops = groups.iter().map(make).collect::<Result<_>>()?;
        Ok(SmearingLinks { section, kind, precision, hops })
    }
    /// *Collective.* Makes links for the smearing of sources at a single time. `domain` has two times: its first time gets the links of
    /// `gauge` at `time`, and its second time gets links that are zero.
    ///
    /// # Errors
    /// Failures of the device.
    ///
    /// # Panics
    /// If the domain does not have the spatial extents of `gauge` and two times, or if `gauge` has no such time.
    pub fn of_time(
        domain: &Domain,
        (gauge, time): (&HostGauge, usize),
        kind: FermionKind,
        precision: Precision,
        momentum: [f64; 3],
    ) -> Result<Self> {
        let few = domain.local();
        let plane = 2 * few.volume();
        assert_eq!(few.size()[3], 2, "a domain of two times");
        assert_eq!(few.of_one_time(), gauge.lattice().of_one_time(), "links of as many sites in space");
        let mut links = bytemuck::zeroed_vec(2 * plane);
        let from = &gauge.links()[time * plane..(time + 1) * plane];
        links.par_iter_mut().zip(from).for_each(|(to, from)| *to = *from);
        Self::new(domain, &HostGauge::from_links(few, links), kind, precision, momentum)
    }
    /// Returns the bytes of device memory for the links, and for `together` fields of quarks of a fermion type, with `sites` sites of each
    /// parity.
    pub fn bytes(kind: FermionKind, precision: Precision, sites: usize, together: usize) -> [(&'static str, usize); 2] {
        let groups = if hops_twice(kind) { 3 } else { 1 };
        let links = GaugeField::bytes_for(Precision::Double, 2 * sites)
            + groups * 2 * crate::field::DeviceGauge::bytes_for(precision, LinkStorage::FULL, sites);
        let field = |precision| FieldShape::colours(precision, kind.spins() * together).bytes(sites);
        // Memory is counted in half fields: two fields and two halves for the hops in `precision`, and the smeared field in double
        // precision.
        let fields = 6 * field(precision) + 2 * field(Precision::Double);
        [("links of smearing", links), ("fields that are smeared", fields)]
    }
    /// Returns the bytes of device memory for [shifts](Self::shifted) of `together` fields of staggered quarks in `directions` directions,
    /// in double precision, with `sites` sites of each parity.
    pub fn shift_bytes(sites: usize, together: usize, directions: usize) -> [(&'static str, usize); 2] {
        let [links, _] = Self::bytes(FermionKind::Staggered, Precision::Double, sites, together);
        // `symmetric` calls itself for each direction. In addition to the field and c times the field, each call has a sum and the next
        // field.
        let halves = 2 * (2 + 2 * directions);
        let field = FieldShape::colours(Precision::Double, together).bytes(sites);
        [links, ("fields that are shifted", halves * field)]
    }
    /// *Collective.* Returns smeared copies of fields on the host. All fields are smeared together, on the device of the links.
    ///
    /// # Errors
    /// Failures of the device.
    ///
    /// # Panics
    /// If fields and domain have different extents, or if the links are for another fermion type.
    pub fn smear<F: Fermion>(&self, smearing: &GaussianSmearing, fields: &[HostField<F>]) -> Result<Vec<HostField<F>>> {
        assert!(fields.iter().all(|field| field.lattice() == self.section.local), "fields are those of the section");
        self.smear_on_device(smearing, FullField::of_host(self.domain(), fields)?)?.download()
    }
    /// Returns the domain on which the links are stored.
    pub fn domain(&self) -> &Domain {
        self.hops[0].links().domain()
    }
    /// *Collective.* Smears all right-hand sides of a field in double precision on the device of the links.
    ///
    /// # Errors
    /// Fields of another device or precision; failures of the device.
    ///
    /// # Panics
    /// If the links are for another fermion type.
    pub fn smear_on_device(&self, smearing: &GaussianSmearing, mut field: FullField) -> Result<FullField> {
        assert_eq!(field.even.kind(), self.kind, "links are for another kind of quarks");
        let (domain, nrhs) = (self.domain(), field.even.nrhs());
        let shape = FieldShape::new(self.kind, Precision::Double, nrhs);
        (0..2).try_for_each(|parity| field.parity(parity).expect(domain, shape))?;
        let count = nrhs * self.kind.spins();
        let colours = |precision| FullField::zero(domain, FieldShape::colours(precision, count));
        let (mut psi, mut next) = (self.split(&field)?, colours(self.precision)?);
        let one = || DeviceField::zero(domain, FieldShape::colours(self.precision, count));
        let mut hop = if hops_twice(self.kind) { Some([one()?, one()?]) } else { None };
        for _ in 0..smearing.steps {
            match &mut hop {
                None => self.step(smearing, &psi, &mut next)?,
                Some(hop) => self.double_step(smearing, &psi, hop, &mut next)?,
            }
            std::mem::swap(&mut psi, &mut next);
        }
        drop(next);
        self.join(psi, &mut field)?;
        Ok(field)
    }
    /// *Collective.* Shifts staggered quarks in those of the directions x, y and z that are set in `directions`, in double precision on the
    /// device of the links. The shift is the mean over all orders of the products of D_k χ(x) = ½ [U_k(x) χ(x+k̂) + U_k†(x−k̂) χ(x−k̂)].
    ///
    /// # Errors
    /// Fields of another device or precision; failures of the device.
    ///
    /// # Panics
    /// If the links are not for staggered quarks.
    pub fn shifted(&self, directions: [bool; 3], mut field: FullField) -> Result<FullField> {
        assert!(hops_twice(self.kind), "links are for another kind of quarks");
        let shape = FieldShape::colours(Precision::Double, field.even.nrhs());
        (0..2).try_for_each(|parity| field.parity(parity).expect(self.domain(), shape))?;
        let shifted = self.symmetric(directions, &self.split(&field)?)?;
        self.join(shifted, &mut field)?;
        Ok(field)
    }
    /// Computes [`shifted`](Self::shifted) of c χ. Each direction in turn comes last, after the mean over all orders of the other
    /// directions.
    fn symmetric(&self, directions: [bool; 3], psi: &FullField) -> Result<FullField> {
        let (domain, nrhs) = (self.domain(), psi.even.nrhs());
        let zero = || FullField::zero(domain, FieldShape::colours(self.precision, nrhs));
        let (mut sum, mut next) = (zero()?, zero()?);
        let count = directions.iter().filter(|shifts| **shifts).count();
        for mu in (0..3).filter(|mu| directions[*mu]) {
            let mut others = directions;
            others[mu] = false;
            let before = if count > 1 { Some(self.symmetric(others, psi)?) } else { None };
            let before = before.as_ref().unwrap_or(psi);
            // H, the sum of hops with a plus sign, is D on even sites and −D on odd sites.
            for (parity, sign) in [(0, 0.5), (1, -0.5)] {
                let (sum, input) = (sum.parity(parity), before.parity(1 - parity));
                let share = sign / count as f64;
                self.hops[mu].dslash_add(parity, (1.0, sum), (share, input), next.parity_mut(parity))?;
            }
            std::mem::swap(&mut sum, &mut next);
        }
        Ok(sum)
    }
    /// Returns x+y+z+t (mod 4) of the first site of this process's part.
    fn first(&self) -> u32 {
        (self.section.origin.iter().sum::<usize>() % 4) as u32
    }
    /// Returns c times the colour vectors of each spin.
    fn split(&self, field: &FullField) -> Result<FullField> {
        let count = field.even.nrhs() * self.kind.spins();
        let colours = FullField::zero(self.domain(), FieldShape::colours(Precision::Double, count))?;
        self.split_to(field, &colours)?;
        in_precision(colours, self.precision)
    }
    /// Joins colour vectors times c to `field`, which undoes [`split`](Self::split).
    fn join(&self, colours: FullField, field: &mut FullField) -> Result {
        let colours = in_precision(colours, Precision::Double)?;
        // A field with one spin needs only the factor c, which is its own inverse.
        if self.kind.spins() == 1 {
            return self.split_to(&colours, field);
        }
        self.domain().launch_on_parities(&JOIN_SPINS, field.even.format(), field.even.nrhs(), |parity| JoinSpins {
            colours: colours.parity(parity).view(),
            field: field.parity(parity).view(),
            geometry: self.domain().geometry(),
            parity: parity as u32,
            first: self.first(),
        })
    }
    fn split_to(&self, field: &FullField, colours: &FullField) -> Result {
        self.domain().launch_on_parities(&SPLIT_SPINS, field.even.format(), field.even.nrhs(), |parity| SplitSpins {
            field: field.parity(parity).view(),
            colours: colours.parity(parity).view(),
            geometry: self.domain().geometry(),
            parity: parity as u32,
            first: self.first(),
        })
    }
    /// Computes `next` = (1 + σ Δ) ψ.
    fn step(&self, smearing: &GaussianSmearing, psi: &FullField, next: &mut FullField) -> Result {
        let sigma = smearing.width * smearing.width / (4.0 * smearing.steps as f64);
        for (parity, b) in [(0, sigma), (1, -sigma)] {
            let (x, input) = (psi.parity(parity), psi.parity(1 - parity));
            self.hops[0].dslash_add(parity, (1.0 - 6.0 * sigma, x), (b, input), next.parity_mut(parity))?;
        }
        Ok(())
    }
    /// Computes `next` = (1 + σ Δ₂) ψ, where Δ₂ is the sum of (H² − 4)/4 over the directions, with H² = −D².
    fn double_step(
        &self,
        smearing: &GaussianSmearing,
        psi: &FullField,
        [hop, sum]: &mut [DeviceField; 2],
        next: &mut FullField,
    ) -> Result {
        let sigma = smearing.width * smearing.width / (16.0 * smearing.steps as f64);
        let [x, y, z] = &self.hops[..] else { unreachable!("one for each direction") };
        for parity in 0..2 {
            let (here, out) = (1 - parity, next.parity_mut(parity));
            let psi = psi.parity(parity);
            x.dslash(here, psi, hop)?;
            x.dslash_add(parity, (1.0 - 12.0 * sigma, psi), (-sigma, hop), out)?;
            y.dslash(here, psi, hop)?;
            y.dslash_add(parity, (1.0, out), (-sigma, hop), sum)?;
            z.dslash(here, psi, hop)?;
            z.dslash_add(parity, (1.0, sum), (-sigma, hop), out)?;
        }
        Ok(())
    }
}
