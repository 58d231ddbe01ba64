//! Fat and long links of improved staggered fermions, made on the device from thin ones.
//!
//! Links are stored without the phases η_μ and without the sign of the boundary condition, which the operators of
//! [`operators`](crate::operators) add. The coefficients here have the corresponding signs. Links in MILC's files include phases and sign;
//! [`with_phases`] converts between the two forms.
use super::{Smearing, StaggeredLinks, StaggeredPhases, Tadpole, TimeBoundary};
use crate::backend::{DeviceBuffer, view};
use crate::domain::{DeviceError, Domain, Result};
use crate::field::host::{HostGauge, Matrix};
use crate::field::{DeviceGauge, GaugeField, HopPhases};
use crate::gauge::su3::{violation, violation_of_u3};
use crate::lattice::{FixedPointSum, Section};
use gpu_kernels::algebra::complex;
use gpu_kernels::fermion_force::{SMALL_SINGULAR_VALUES, SmallSingularValues};
use gpu_kernels::field::Matrices;
use gpu_kernels::smeared::{
    COMPONENTS_ABOVE, ComponentsAbove, LONG_LINKS, LongLinks, PROJECT_U3, ProjectU3, STAPLE, Staple,
};
use gpu_kernels::storage::padded;
use gpu_kernels::{Format, LinkStorage, Precision};
use num_complex::Complex64;
use serde::Serialize;

/// Coefficients of the paths that make fat and long links. Each coefficient is the factor of a single path. A link has 6 staples of three
/// links, 24 of five links, 48 of seven links, and 6 of Lepage's.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct PathCoefficients {
    /// Coefficient of the link itself.
    pub one_link: f64,
    /// Coefficient of three links in a row, which make the long link.
    pub naik: f64,
    /// Coefficient of staples of three links: ν μ −ν.
    pub three: f64,
    /// Coefficient of staples of five links: ρ ν μ −ν −ρ.
    pub five: f64,
    /// Coefficient of staples of seven links: σ ρ ν μ −ν −ρ −σ.
    pub seven: f64,
    /// Coefficient of Lepage's staples of five links in a plane: ν ν μ −ν −ν.
    pub lepage: f64,
}

impl PathCoefficients {
    /// Returns the coefficients of asqtad (Orginos, Toussaint and Sugar 1999) with the tadpole factor u_0.
    pub fn asqtad(u0: f64) -> Self {
        let u2 = u0 * u0;
        PathCoefficients {
            one_link: 5.0 / 8.0,
            naik: -1.0 / 24.0 / u2,
            three: 1.0 / 16.0 / u2,
            five: 1.0 / 64.0 / (u2 * u2),
            seven: 1.0 / 384.0 / (u2 * u2 * u2),
            lepage: -1.0 / 16.0 / (u2 * u2),
        }
    }
    /// Returns the coefficients of Fat7, the first level of HISQ (Follana et al. 2007).
    pub fn fat7() -> Self {
        PathCoefficients {
            one_link: 1.0 / 8.0,
            naik: 0.0,
            three: 1.0 / 16.0,
            five: 1.0 / 64.0,
            seven: 1.0 / 384.0,
            lepage: 0.0,
        }
    }
    /// Returns the coefficients of the second level of HISQ, with the correction ε of the Naik term for heavy quarks (Follana et al. 2007,
    /// eq. 24).
    pub fn hisq(epsilon: f64) -> Self {
        PathCoefficients {
            one_link: 1.0 + epsilon / 8.0,
            naik: -(1.0 + epsilon) / 24.0,
            three: 1.0 / 16.0,
            five: 1.0 / 64.0,
            seven: 1.0 / 384.0,
            lepage: -1.0 / 8.0,
        }
    }
    /// Returns an upper bound of the components of a fat link made of unitary links.
    fn bound(&self) -> f64 {
        let staples = 6.0 * self.three.abs() + 24.0 * self.five.abs() + 48.0 * self.seven.abs();
        self.one_link.abs() + staples + 6.0 * self.lepage.abs()
    }
}

/// Field with one matrix for each site of a bordered lattice.
pub(crate) struct MatrixField {
    halves: [DeviceBuffer; 2],
    sites: usize,
    site_bytes: usize,
}

impl MatrixField {
    /// Allocates a field that is zero, on the sites and in the precision of `links`. An error about too little memory names `what`.
    pub fn like(links: &GaugeField, what: &str) -> Result<Self> {
        let site_bytes = match links.precision() {
            Precision::Double => Matrices::site_bytes::<f64>(),
            Precision::Single => Matrices::site_bytes::<f32>(),
            Precision::Half | Precision::Fp16 => unreachable!("links that are kept once have 64 or 32 bits"),
        };
        let sites = links.bordered_sites() as usize;
        let half = || links.domain().backend().allocate(padded(sites) * site_bytes, what);
        Ok(MatrixField { halves: [half()?, half()?], sites, site_bytes })
    }
    /// Returns the matrices on even and on odd sites. The views must not outlive the field.
    pub fn views(&self) -> [Matrices; 2] {
        self.halves.each_ref().map(|half| view::matrices(half, self.sites, self.site_bytes))
    }
}

/// Returns the bytes of device memory that [`fat_links`] adds to thin and fat links, on a lattice of `sites` sites of each parity.
pub fn workspace_bytes(sites: usize) -> usize {
    2 * 2 * padded(sites) * Matrices::site_bytes::<f64>()
}

/// Computes the fat links F_μ(x), sums of each link and its staples with the coefficients `c`. Thin links must be unitary and in double
/// precision.
pub fn fat_links(thin: &GaugeField, c: &PathCoefficients) -> Result<GaugeField> {
    thin.expect_in(Precision::Double)?;
    let (domain, fat, format) = (thin.domain(), thin.empty_like()?, Format::of(Precision::Double));
    // Staples are computed in the border as well, except on its outermost sites, whose neighbours are not stored.
    let (geometry, sites) = (thin.bordered().geometry, thin.bordered_sites());
    // Lepage's staples are made as staples of staples in one direction. These include paths that go sideways and back before they go along
    // μ, one for each of the 6 directions, so the link itself would count six times too often.
    let factor = c.one_link - 6.0 * c.lepage;
    thin.times_to([complex(factor, 0.0); 4], &fat)?;
    let (first, second) = {
        let field = || MatrixField::like(thin, "a staple of fat links");
        (field()?, field()?)
    };
    // Computes the staple S of the input in direction ν, and F_μ ← F_μ + c S.
    let staple = |mu: u32, nu: u32, input: [Matrices; 2], out: Option<&MatrixField>, coefficient: f64| {
        for parity in 0..2 {
            let kernel = Staple {
                links: thin.both(),
                input,
                // Without `keep` the kernel does not write `out`, so any field will do.
                out: out.unwrap_or(&second).views()[parity],
                sum: fat.links(parity).direction(mu),
                geometry,
                parity: parity as u32,
                mu,
                nu,
                keep: u32::from(out.is_some()),
                coefficient,
            };
            domain.backend().launch(&STAPLE, format, &kernel, sites, 1)?;
        }
        Result::Ok(())
    };
    let others = |taken: &[u32]| (0..4).filter(|nu| !taken.contains(nu)).collect::<Vec<u32>>();
    let longer = c.five != 0.0 || c.seven != 0.0;
    for mu in 0..4 {
        let link = thin.both().map(|links| links.direction(mu));
        for nu in others(&[mu]) {
            let needed = longer || c.lepage != 0.0;
            if needed || c.three != 0.0 {
                staple(mu, nu, link, needed.then_some(&first), c.three)?;
            }
            if c.lepage != 0.0 {
                staple(mu, nu, first.views(), None, c.lepage)?;
            }
            for rho in others(&[mu, nu]).into_iter().filter(|_| longer) {
                staple(mu, rho, first.views(), Some(&second), c.five)?;
                for sigma in others(&[mu, nu, rho]).into_iter().filter(|_| c.seven != 0.0) {
                    staple(mu, sigma, second.views(), None, c.seven)?;
                }
            }
        }
    }
    Ok(fat)
}

/// Computes the long links L_μ(x) = c U_μ(x) U_μ(x+μ̂) U_μ(x+2μ̂) from links in double precision, where c is `coefficient`.
pub fn long_links(thin: &GaugeField, coefficient: f64) -> Result<GaugeField> {
    thin.expect_in(Precision::Double)?;
    let (domain, long) = (thin.domain(), thin.empty_like()?);
    let (geometry, sites) = (thin.bordered().geometry, thin.bordered_sites());
    for parity in 0..2 {
        let kernel = LongLinks {
            links: thin.both(),
            out: long.links(parity),
            geometry,
            parity: parity as u32,
            factor: coefficient,
        };
        domain.backend().launch(&LONG_LINKS, Format::of(Precision::Double), &kernel, sites, 1)?;
    }
    Ok(long)
}

/// Computes the projection W = V (V†V)^(−1/2) of links V to U(3), in double precision.
///
/// # Errors
/// [`DeviceError::SingularLinks`] if links have no projection.
pub fn project_u3(links: &GaugeField) -> Result<GaugeField> {
    links.expect_in(Precision::Double)?;
    let (domain, out, sites) = (links.domain(), links.empty_like()?, links.bordered_sites());
    for parity in 0..2 {
        let kernel = ProjectU3 { input: links.links(parity), out: out.links(parity) };
        domain.backend().launch(&PROJECT_U3, Format::of(Precision::Double), &kernel, sites, 1)?;
    }
    let violation = out.unitarity_violation()?;
    // The condition states what is allowed, so that NaN is an error as well.
    if violation <= 1e-10 { Ok(out) } else { Err(DeviceError::SingularLinks { violation }) }
}

/// Returns a number that no component of the links exceeds. If the largest component is at least a quarter of `bound`, the number is at
/// most a fifth above it.
fn largest_component(links: &GaugeField, bound: f64) -> Result<f64> {
    let domain = links.domain();
    for parity in 0..2 {
        let (lattice, links) = (links.bordered(), links.links(parity));
        let kernel = ComponentsAbove { links, lattice, parity: parity as u32, bound };
        domain.backend().reduce(&COMPONENTS_ABOVE, Format::NONE, &kernel, (domain.half_sites(), 1), 8 * parity)?;
    }
    let mut counts = [0.0; 16];
    domain.sums(&mut counts)?;
    let clear = (0..8).take_while(|&k| counts[k] + counts[8 + k] == 0.0).count();
    Ok(bound * 0.5f64.powf(clear as f64 / 4.0))
}

/// Smallest group that contains the links after all of them are divided by one number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LinkGroup {
    /// SU(3), as for long links of asqtad: 12 or 8 real numbers determine them.
    Su3,
    /// U(3), as for long links of HISQ: 13 or 9 real numbers determine them.
    U3,
    /// Neither group: the links have 18 real numbers.
    Neither,
}

/// Links between the two levels of HISQ's smearing, in double precision. Quarks with different ε share these links.
pub struct FirstLevel {
    /// Fat links V, made from thin links by the paths of Fat7.
    pub fat: GaugeField,
    /// Links W = V (V†V)^(−1/2), the projection of V to U(3).
    pub unitary: GaugeField,
}

impl FirstLevel {
    /// *Collective.* Computes the first level from thin links in SU(3) and in double precision.
    ///
    /// # Errors
    /// [`DeviceError::SingularLinks`] if links V have no projection; failures of the device.
    pub fn of(thin: &GaugeField) -> Result<Self> {
        let fat = fat_links(thin, &PathCoefficients::fat7())?;
        fat.fill_border()?;
        let unitary = project_u3(&fat)?;
        Ok(FirstLevel { fat, unitary })
    }
    /// *Collective.* Computes fat and long links for quarks with the correction ε of the Naik term, from the links of the first level.
    ///
    /// # Errors
    /// Failures of the device.
    pub fn second(&self, epsilon: f64) -> Result<Improvement> {
        Ok(Improvement::from_paths(&self.unitary, &PathCoefficients::hisq(epsilon))?.in_u3())
    }
    /// *Collective.* Counts the fat links V that have a singular value whose square is below `cutoff`.
    ///
    /// # Errors
    /// Failures of the device.
    pub fn count_small(&self, cutoff: f64) -> Result<usize> {
        let (domain, lattice) = (self.fat.domain(), self.fat.bordered());
        for parity in 0..2 {
            let (links, unitary) = (self.fat.links(parity), self.unitary.links(parity));
            let kernel = SmallSingularValues { links, unitary, lattice, parity: parity as u32, cutoff };
            domain.backend().reduce(&SMALL_SINGULAR_VALUES, Format::NONE, &kernel, (domain.half_sites(), 1), parity)?;
        }
        let mut counts = [0.0; 2];
        domain.sums(&mut counts)?;
        Ok((counts[0] + counts[1]) as usize)
    }
}

/// Fat and long links of an operator, in double precision on a device.
pub struct Improvement {
    /// Fat links F.
    pub fat: GaugeField,
    /// Long links L.
    pub long: GaugeField,
    /// Divisor that brings all components of the fat links F between −1 and 1.
    pub fat_scale: f64,
    /// Divisor that makes the long links L unitary. If no divisor does, the divisor that brings all components of L between −1 and 1.
    pub long_scale: f64,
    /// Group that contains the long links L after division by `long_scale`.
    pub long_group: LinkGroup,
}

impl Improvement {
    /// Computes fat and long links as sums of paths over thin links, with the coefficients `c`, such as those of asqtad. The thin links
    /// must be in SU(3) and in double precision.
    pub fn from_paths(thin: &GaugeField, c: &PathCoefficients) -> Result<Self> {
        let (fat, long) = (fat_links(thin, c)?, long_links(thin, c.naik)?);
        let fat_scale = largest_component(&fat, c.bound())?.max(f64::MIN_POSITIVE);
        // Without long links the scale is 1, because links that are zero must not be divided by zero.
        let (long_scale, long_group) = if c.naik != 0.0 { (c.naik, LinkGroup::Su3) } else { (1.0, LinkGroup::Neither) };
        Ok(Improvement { fat, long, fat_scale, long_scale, long_group })
    }
    /// Computes fat and long links with the smearing of an operator, from thin links in SU(3) and in double precision.
    ///
    /// # Errors
    /// The errors of [`hisq`](Self::hisq); [`DeviceError::NoTadpole`] if the tadpole factor must be computed from a plaquette.
    ///
    /// # Panics
    /// If `smearing` makes no fat links.
    pub fn of(thin: &GaugeField, smearing: Smearing) -> Result<Self> {
        match smearing {
            Smearing::None => panic!("the operator has no fat links"),
            Smearing::Asqtad(Tadpole::Given(u0)) => Self::from_paths(thin, &PathCoefficients::asqtad(u0)),
            Smearing::Asqtad(Tadpole::Plaquette) => Err(DeviceError::NoTadpole),
            Smearing::Hisq(epsilon) => Self::hisq(thin, epsilon),
        }
    }
    /// Computes HISQ links from thin links: Fat7, projection to U(3), then the second level.
    ///
    /// # Errors
    /// [`DeviceError::SingularLinks`] if links of the first level have no projection; failures of the device.
    pub fn hisq(thin: &GaugeField, epsilon: f64) -> Result<Self> {
        FirstLevel::of(thin)?.second(epsilon)
    }
    /// Marks the long links as links in U(3) instead of SU(3). This is necessary if the links from which they were made are in U(3),
    /// because products of such links are in U(3).
    #[must_use]
    pub fn in_u3(self) -> Self {
        let long_group = if self.long_group == LinkGroup::Su3 { LinkGroup::U3 } else { self.long_group };
        Improvement { long_group, ..self }
    }
    /// Counts the long links that cannot be stored with 8 or 9 reals. [`GaugeField::singular_links`] does this for thin links.
    pub fn singular_long_links(&self) -> Result<usize> {
        self.long.count_singular(1.0 / self.long_scale, false)
    }
    /// Packs the links for operators on fields in `precision`. Fat links are stored with all reals, and long links in `storage`, which must
    /// be able to represent them.
    pub fn pack(&self, precision: Precision, storage: LinkStorage) -> Result<StaggeredLinks> {
        self.pack_with(HopPhases::NONE, precision, storage)
    }
    /// Packs the links like [`pack`](Self::pack), but multiplies fat links by `phases` and long links by the cubes of `phases`. Long links
    /// with such factors are not in SU(3), so `storage` must keep the phases of their determinants, or all reals.
    pub fn pack_with(&self, phases: HopPhases, precision: Precision, storage: LinkStorage) -> Result<StaggeredLinks> {
        // Components in fixed point must lie between −1 and 1. A phase mixes real and imaginary parts, which can become larger by a factor
        // of √2.
        let fixed_point = precision == Precision::Half || storage.half;
        let turned = |scale: f64| if phases.are_none() { scale } else { scale * std::f64::consts::SQRT_2 };
        let fat_scale = if fixed_point { turned(self.fat_scale) } else { 1.0 };
        let long_scale = match self.long_group {
            LinkGroup::Neither if fixed_point => turned(self.long_scale),
            _ => self.long_scale,
        };
        let fat = DeviceGauge::from_links(&self.fat, precision, storage.with_all_reals(), fat_scale, 1, phases)?;
        let storage = LinkStorage { fine: false, ..storage };
        let long = DeviceGauge::from_links(&self.long, precision, storage, long_scale, 3, phases)?;
        StaggeredLinks::improved(fat, long)
    }
    /// *Collective.* Copies fat and long links from the host to the device. The links on the host must include neither staggered phases nor
    /// the sign of the boundary condition.
    pub fn from_host(domain: &Domain, fat: &HostGauge, long: &HostGauge) -> Result<Self> {
        let largest = domain.largest(largest_on_host(fat))?;
        let (long_scale, long_group) = common_scale(domain, long)?;
        let (fat, long) = (GaugeField::upload(domain, fat)?, GaugeField::upload(domain, long)?);
        Ok(Improvement { fat, long, fat_scale: largest.max(f64::MIN_POSITIVE), long_scale, long_group })
    }
}

/// Returns the largest absolute value of a component.
fn largest_on_host(gauge: &HostGauge) -> f64 {
    bytemuck::cast_slice::<_, f64>(gauge.links()).iter().fold(0.0, |a: f64, b| a.max(b.abs()))
}

/// Returns c such that L = c U to single precision, with U in SU(3), as for asqtad, or in U(3), as for HISQ. If there is none, returns the
/// root mean square of L, or the largest component if that is larger. In U(3) the sign of c is arbitrary.
fn common_scale(domain: &Domain, long: &HostGauge) -> Result<(f64, LinkGroup)> {
    let norm2 = |u: &Matrix| u.iter().flatten().map(|z| z.norm_sqr()).sum::<f64>() / 3.0;
    let mut sums = [FixedPointSum::default(); 2];
    for u in long.links() {
        sums[0].add(norm2(u));
        sums[1].add(determinant(u).re);
    }
    let [squares, determinants] = domain.exact_sums(sums)?;
    let size = (squares / (4 * domain.global().volume()) as f64).sqrt();
    let scale = if determinants < 0.0 { -size } else { size };
    let all = |violation: fn(&Matrix) -> f64| {
        let fits = |u: &&Matrix| violation(&u.map(|row| row.map(|z| z / scale))) < 1e-5;
        let mut others = [long.links().iter().filter(|u| !fits(u)).count() as f64];
        domain.sum(&mut others)?;
        Ok::<_, DeviceError>(size > 0.0 && others[0] == 0.0)
    };
    if all(violation)? {
        return Ok((scale, LinkGroup::Su3));
    }
    if all(violation_of_u3)? {
        return Ok((scale, LinkGroup::U3));
    }
    let fitting = size.max(domain.largest(largest_on_host(long))?);
    Ok((if fitting > 0.0 { fitting } else { 1.0 }, LinkGroup::Neither))
}

fn determinant(u: &Matrix) -> Complex64 {
    let minor = |j: usize, k: usize| u[1][j] * u[2][k] - u[1][k] * u[2][j];
    u[0][0] * minor(1, 2) + u[0][1] * minor(2, 0) + u[0][2] * minor(0, 1)
}

/// Multiplies links that span `steps` sites by η_μ(x) and by the sign of the boundary condition, both of which MILC includes in its links.
/// A second call undoes the first. Panics if links and section have different extents.
pub fn with_phases(
    links: &mut HostGauge,
    section: impl Into<Section>,
    steps: usize,
    phases: StaggeredPhases,
    boundary: TimeBoundary,
) {
    let section = section.into();
    assert_eq!(links.lattice(), section.local, "links are those of the box");
    let extent = section.global.size()[3];
    for (index, link) in links.links_mut().iter_mut().enumerate() {
        let (site, mu) = (section.global.coordinates(section.global_index(index / 4)), index % 4);
        let crossings = if mu == 3 { (site[3] + steps) / extent } else { 0 };
        let sign = phases.sign(site, mu) * boundary.sign().powi(crossings as i32);
        link.iter_mut().flatten().for_each(|z| *z *= sign);
    }
}
