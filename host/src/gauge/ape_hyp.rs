//! APE and HYP smearing of links on a device.
//!
//! **APE** smearing (Albanese et al. 1987) replaces all links at once by
//!
//! U′_μ(x) = P{ (1 − α) U_μ(x) + α/n Σ_{ν≠μ} S_ν },
//! S_ν = U_ν(x) U_μ(x+ν̂) U†_ν(x+μ̂) + U†_ν(x−ν̂) U_μ(x−ν̂) U_ν(x−ν̂+μ̂),
//!
//! where n is the number of staples: 6, or 4 in spatial smearing. Chroma's parameter, the weight of the link if staples have weight 1, is
//! n (1 − α)/α.
//!
//! **HYP** smearing (Hasenfratz and Knechtli 2001) has three levels of such sums. The staples of each level consist of links from the level
//! before, so that only links of the hypercubes next to a link contribute:
//!
//! V̄_{μ;νρ} = P{ (1 − α_3) U_μ + α_3/2 Σ_{±η ≠ ρ,ν,μ} U_η U_μ U†_η },
//! Ṽ_{μ;ν} = P{ (1 − α_2) U_μ + α_2/4 Σ_{±ρ ≠ ν,μ} V̄_{ρ;νμ} V̄_{μ;ρν} V̄†_{ρ;νμ} },
//! U′_μ = P{ (1 − α_1) U_μ + α_1/6 Σ_{±ν ≠ μ} Ṽ_{ν;μ} Ṽ_{μ;ν} Ṽ†_{ν;μ} }.
//!
//! Spatial HYP smearing has two levels. The first has 2 staples in the remaining direction with the weight α_2/2, and the second 4 staples
//! with the weight α_1/4; α_3 is not used.
//!
//! P is a [`Projection`] to SU(3).
use crate::domain::{DeviceError, Result};
use crate::field::GaugeField;
use gpu_kernels::fermion_force::{COMBINE_MATRICES, CombineMatrices};
use gpu_kernels::smeared::{PROJECT_SU3, PROJECT_U3, ProjectSu3, ProjectU3, STAPLE, Staple};
use gpu_kernels::{Format, Precision};
use std::ops::ControlFlow;

/// APE or HYP smearing: links are replaced by projected sums of links and staples.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ProjectedSmearing {
    /// Sums that are projected, with the weights of the staples.
    pub sums: SumsOfStaples,
    /// Number of smearing steps; each replaces all smeared links.
    pub levels: usize,
    /// Whether only spatial links are smeared, by spatial staples. Links in t then remain unchanged.
    pub spatial: bool,
    /// Projection P of the sums.
    pub projection: Projection,
}

/// Projection of a matrix V to SU(3).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Projection {
    /// The SU(3) matrix W with the largest Re tr (W V†), as in Hasenfratz and Knechtli, and in Chroma.
    #[default]
    LargestTrace,
    /// The unitary polar factor W = V (V†V)^(−1/2), divided by the cube root of its determinant, as in QUDA.
    Polar,
}

/// *Collective.* Returns the projections of links, which must be in double precision, to SU(3) by their polar factors.
///
/// # Errors
/// [`DeviceError::SingularSums`] if a link has no projection; failures of the device.
pub fn projected_to_su3(links: &GaugeField) -> Result<GaugeField> {
    links.expect_in(Precision::Double)?;
    let out = links.copied()?;
    project(&out, 0..4, Projection::Polar)?;
    out.fill_border()?;
    expect_unitary(&out)?;
    Ok(out)
}

/// Fails if links are not unitary.
fn expect_unitary(links: &GaugeField) -> Result {
    let violation = links.unitarity_violation()?;
    // The condition states what is allowed, so that NaN is an error as well.
    if violation <= 1e-8 { Ok(()) } else { Err(DeviceError::SingularSums { violation }) }
}

/// Kind of smearing, with the share of the staples in each sum.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum SumsOfStaples {
    /// APE smearing; the value is the share α of the staples.
    Ape(f64),
    /// HYP smearing; the values are the shares α_1, α_2 and α_3 of the staples in the three levels.
    Hyp([f64; 3]),
}

impl SumsOfStaples {
    /// HYP smearing with the weights that Hasenfratz and Knechtli recommend.
    pub const USUAL_HYP: Self = SumsOfStaples::Hyp([0.75, 0.6, 0.3]);
}

impl ProjectedSmearing {
    /// *Collective.* Returns a smeared copy of links, which must be in double precision.
    ///
    /// # Errors
    /// [`DeviceError::SingularSums`] if a sum has no projection to SU(3). Fails also if the links are in another precision, or if the
    /// device fails.
    pub fn smeared(&self, links: &GaugeField) -> Result<GaugeField> {
        let smeared = self.smeared_while(links, &mut || ControlFlow::Continue(()))?;
        Ok(smeared.expect("nothing ended it"))
    }
    /// *Collective.* Smears links like [`smeared`](Self::smeared), and calls `after` after each step. Returns `None` if `after` returns
    /// `Break`, which it must do either on all processes or on none.
    ///
    /// # Errors
    /// See [`smeared`](Self::smeared).
    pub fn smeared_while(
        &self,
        links: &GaugeField,
        after: &mut dyn FnMut() -> ControlFlow<()>,
    ) -> Result<Option<GaugeField>> {
        links.expect_in(Precision::Double)?;
        let mut smeared = links.copied()?;
        for _ in 0..self.levels {
            smeared = match self.sums {
                SumsOfStaples::Ape(alpha) => self.ape(&smeared, alpha)?,
                SumsOfStaples::Hyp(alpha) => self.hyp(&smeared, alpha)?,
            };
            expect_unitary(&smeared)?;
            if after().is_break() {
                return Ok(None);
            }
        }
        Ok(Some(smeared))
    }
    /// Returns the number of fields of links in double precision that exist at the same time during smearing, including the given and the
    /// smeared links.
    pub fn fields(&self) -> usize {
        match (self.sums, self.spatial) {
            (SumsOfStaples::Ape(_), _) => 3,
            (SumsOfStaples::Hyp(_), true) => 6,
            (SumsOfStaples::Hyp(_), false) => 11,
        }
    }
    /// Returns the number of directions, from x, whose links are smeared and whose staples count.
    fn directions(&self) -> u32 {
        if self.spatial { 3 } else { 4 }
    }
    fn ape(&self, links: &GaugeField, alpha: f64) -> Result<GaugeField> {
        let out = links.copied()?;
        for mu in 0..self.directions() {
            let staples: Vec<_> = self.others(&[mu]).map(|nu| (links, links, nu)).collect();
            sum(links, &out, mu, alpha, &staples)?;
        }
        project(&out, 0..self.directions(), self.projection)?;
        out.fill_border()?;
        Ok(out)
    }
    fn hyp(&self, links: &GaugeField, [first, second, third]: [f64; 3]) -> Result<GaugeField> {
        // Fields are indexed by the direction η of their staples. The links along μ in field η are V̄_{μ;νρ}, where ν and ρ are the other
        // two directions.
        let innermost = if self.spatial { second } else { third };
        let mut inner = Vec::new();
        for eta in 0..self.directions() {
            let decorated = links.empty_like()?;
            for mu in self.others(&[eta]) {
                sum(links, &decorated, mu, innermost, &[(links, links, eta)])?;
            }
            project(&decorated, self.others(&[eta]), self.projection)?;
            // The border may be only two sites wide, but HYP needs links up to three sites away; so the border is filled again.
            decorated.fill_border()?;
            inner.push(decorated);
        }
        let out = links.copied()?;
        if self.spatial {
            // Ṽ_{μ;ν} and Ṽ_{ν;μ} both have staples in the third spatial direction, so they are in the same field of `inner`.
            for mu in 0..3 {
                let staples: Vec<_> =
                    self.others(&[mu]).map(|nu| (nu, &inner[3 - mu as usize - nu as usize])).collect();
                let staples: Vec<_> = staples.into_iter().map(|(nu, decorated)| (decorated, decorated, nu)).collect();
                sum(links, &out, mu, first, &staples)?;
            }
            project(&out, 0..3, self.projection)?;
            out.fill_border()?;
            return Ok(out);
        }
        // Fields are indexed by ν. The links along μ in field ν are Ṽ_{μ;ν}.
        let mut outer = Vec::new();
        for nu in 0..4 {
            let decorated = links.empty_like()?;
            for mu in self.others(&[nu]) {
                let staples: Vec<_> = self
                    .others(&[mu, nu])
                    .map(|rho| {
                        let eta = &inner[6 - mu as usize - nu as usize - rho as usize];
                        (eta, eta, rho)
                    })
                    .collect();
                sum(links, &decorated, mu, second, &staples)?;
            }
            project(&decorated, self.others(&[nu]), self.projection)?;
            outer.push(decorated);
        }
        for mu in 0..4 {
            let staples: Vec<_> = self.others(&[mu]).map(|nu| (&outer[mu as usize], &outer[nu as usize], nu)).collect();
            sum(links, &out, mu, first, &staples)?;
        }
        project(&out, 0..4, self.projection)?;
        out.fill_border()?;
        Ok(out)
    }
    /// Returns the directions whose links are smeared, except those in `taken`.
    fn others<'a>(&self, taken: &'a [u32]) -> impl Iterator<Item = u32> + use<'a> {
        (0..self.directions()).filter(move |nu| !taken.contains(nu))
    }
}

/// Computes the matrices of `out` along μ: (1 − α) U_μ plus α times the mean of the staples. An element of `staples` contains the field of the outer links of a staple, the field of its middle link, and its direction. The border is computed too, except
/// for its outermost sites.
fn sum(
    links: &GaugeField,
    out: &GaugeField,
    mu: u32,
    alpha: f64,
    staples: &[(&GaugeField, &GaugeField, u32)],
) -> Result {
    let (backend, sites, format) = (links.domain().backend(), links.bordered_sites(), Format::of(Precision::Double));
    for parity in 0..2 {
        let (input, out) = (links.links(parity).direction(mu), out.links(parity).direction(mu));
        let kernel = CombineMatrices { out, input, a: 0.0, b: 1.0 - alpha };
        backend.launch(&COMBINE_MATRICES, format, &kernel, sites, 1)?;
        for (sides, middle, nu) in staples {
            let kernel = Staple {
                links: sides.both(),
                input: middle.both().map(|middle| middle.direction(mu)),
                // The value of `out` has no effect, because `keep` is 0.
                out,
                sum: out,
                geometry: links.bordered().geometry,
                parity: parity as u32,
                mu,
                nu: *nu,
                keep: 0,
                coefficient: alpha / (2 * staples.len()) as f64,
            };
            backend.launch(&STAPLE, format, &kernel, sites, 1)?;
        }
    }
    Ok(())
}

/// Projects the matrices of `out` along some directions to SU(3), border included.
fn project(out: &GaugeField, directions: impl Iterator<Item = u32>, projection: Projection) -> Result {
    let (backend, sites) = (out.domain().backend(), out.bordered_sites());
    if projection == Projection::Polar {
        for parity in 0..2 {
            let kernel = ProjectU3 { input: out.links(parity), out: out.links(parity) };
            backend.launch(&PROJECT_U3, Format::of(Precision::Double), &kernel, sites, 1)?;
        }
    }
    for mu in directions {
        for parity in 0..2 {
            // For a unitary matrix, this divides by the cube root of its determinant.
            let matrices = out.links(parity).direction(mu);
            backend.launch(&PROJECT_SU3, Format::NONE, &ProjectSu3 { matrices }, sites, 1)?;
        }
    }
    Ok(())
}
