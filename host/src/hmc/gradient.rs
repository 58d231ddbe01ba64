//! Force on thin links from pairs of vectors that hops join, by the chain rule along the paths of fat and long links and through the levels
//! of stout links.
use super::HmcError;
use super::hops::{QuarkOperator, QuarkSmearing};
use super::links::EvolvingLinks;
use super::momenta::MomentumField;
use crate::backend::Backend;
use crate::domain::{DeviceError, Domain, Result};
use crate::field::{DeviceField, FieldShape, GaugeField, HopPhases};
use crate::operators::fat_links::{MatrixField, PathCoefficients};
use gpu_kernels::fermion_force::{
    COMBINE_MATRICES, CombineMatrices, HOP_GRADIENT, HopGradient, HopPairs, LONG_GRADIENT, LONG_HOP_GRADIENT,
    LongGradient, NAIVE_FORCE, NaiveForce, PROJECTION_GRADIENT, ProjectionGradient, STAPLE_GRADIENT, StapleGradient,
};
use gpu_kernels::field::{Field, Matrices};
use gpu_kernels::lattice::{Bordered, Geometry, Region};
use gpu_kernels::momenta::{ADD_FORCE, AddForce};
use gpu_kernels::smeared::{STAPLE, Staple};
use gpu_kernels::transfer::{COPY_REGION, CopySites};
use gpu_kernels::{Format, Instances, Precision};
use std::rc::Rc;

/// Vectors Z_j on all sites from which a force is computed; each is a right-hand side of a field for each parity.
pub(crate) struct HopVectors {
    fields: [DeviceField; 2],
    added: usize,
}

impl HopVectors {
    /// Allocates memory for `count` vectors in `precision`; [`add`](Self::add) appends vectors.
    pub fn new(domain: &Domain, precision: Precision, count: usize) -> Result<Self> {
        let field = || DeviceField::zero(domain, FieldShape::colours(precision, count));
        Ok(HopVectors { fields: [field()?, field()?], added: 0 })
    }
    fn precision(&self) -> Precision {
        self.fields[0].precision()
    }
    /// Appends the vectors of a block: x on the even sites and `factor` times y on the odd sites.
    pub fn add(&mut self, x: &DeviceField, y: &DeviceField, factor: f64) -> Result {
        [x, y].into_iter().try_for_each(|z| z.expect(x.domain(), self.fields[0].shape().with_nrhs(x.nrhs())))?;
        self.append((x.view(), 1.0), (y.view(), factor), x.nrhs())
    }
    /// Appends right-hand side `j` of two blocks: x on the even sites and `factor` times y on the odd sites.
    fn add_one(&mut self, x: &DeviceField, y: &DeviceField, j: usize, factor: f64) -> Result {
        self.append((x.view_from(j), 1.0), (y.view_from(j), factor), 1)
    }
    /// Appends `count` vectors on the even and on the odd sites, times a factor.
    fn append(&mut self, even: (Field, f64), odd: (Field, f64), count: usize) -> Result {
        assert!(self.added + count <= self.fields[0].nrhs(), "there is room");
        let domain = self.fields[0].domain();
        for (parity, (input, factor)) in [even, odd].into_iter().enumerate() {
            let kernel = CopySites {
                input,
                from: Region::WHOLE,
                out: self.fields[parity].view_from(self.added),
                to: Region::WHOLE,
                geometry: domain.geometry(),
                parity: parity as u32,
                factor,
            };
            let format = self.fields[0].format();
            domain.backend().launch(&COPY_REGION, format, &kernel, domain.half_sites(), count as u32)?;
        }
        self.added += count;
        Ok(())
    }
    /// *Collective.* Returns the vectors with those of neighbouring processes, on the bordered lattice of links. `across` is the sign of a
    /// hop across the end of the lattice in t.
    fn with_border(self, lattice: &GaugeField, across: f64) -> Result<Self> {
        let domain = lattice.domain();
        let Some(halo) = domain.halo()? else { return Ok(self) };
        let width = lattice.border_width();
        let wide = domain.with_ghost_zone(width)?;
        let mut bordered = HopVectors::new(&wide, self.precision(), self.fields[0].nrhs())?;
        for (parity, (from, to)) in self.fields.iter().zip(&mut bordered.fields).enumerate() {
            halo.fill_ghost_zone(from, from.nrhs(), to, parity as u32, width, across)?;
        }
        Ok(HopVectors { added: self.added, ..bordered })
    }
    fn pairs(&self, operator: &QuarkOperator) -> HopPairs {
        HopPairs {
            vectors: [self.fields[0].view(), self.fields[1].view()],
            count: self.added as u32,
            phases: operator.params.phases.table(),
            across: operator.params.boundary.sign(),
        }
    }
}

/// *Collective.* Computes P ← P + ε A for the momenta P, where ε is `step` and A is the traceless anti-Hermitian part of U G†. G is the
/// gradient of Σ_j w_j Re Σ_{n even} x_j†(n) (D y_j)(n) with the weights w_j, with x_j on the even and y_j on the odd sites, in double
/// precision.
///
/// # Errors
/// Fails for fields on another lattice than the links or in another format, and on failures of the device. Also fails for long links if a
/// part is shorter than 3 sites in a partitioned direction.
///
/// # Panics
/// Panics unless there is a weight for each right-hand side.
pub fn hop_force(
    operator: &QuarkOperator,
    (x, y): (&DeviceField, &DeviceField),
    weights: &[f64],
    links: &EvolvingLinks,
    step: f64,
    momenta: &mut MomentumField,
) -> std::result::Result<(), HmcError> {
    let domain = links.own().domain();
    let shape = FieldShape::colours(Precision::Double, weights.len());
    assert_eq!(x.nrhs(), weights.len(), "a weight for each right-hand side");
    [x, y].into_iter().try_for_each(|field| field.expect(domain, shape))?;
    let mut hops = HopVectors::new(domain, Precision::Double, weights.len())?;
    for (j, weight) in weights.iter().enumerate() {
        hops.add_one(x, y, j, *weight)?;
    }
    kick(operator, hops, links, step, momenta)?;
    Ok(())
}

/// Bound on the square of a singular value of HISQ's first level: forces of links with a smaller one are guarded, as in MILC (Bazavov et
/// al. 2010, appendix C).
const SMALLEST_SQUARE: f64 = 5e-5;

/// Computes P ← P + ε A for the momenta P, where ε is `step` and A is the traceless anti-Hermitian part of U G†. G is the gradient of Re
/// Σ_j Σ_n Z_j†(n) D Z_j over the even sites n, in the precision of Z. Returns the number of links of HISQ's first level that were guarded.
pub(crate) fn kick(
    operator: &QuarkOperator,
    hops: HopVectors,
    links: &EvolvingLinks,
    step: f64,
    momenta: &mut MomentumField,
) -> std::result::Result<usize, HmcError> {
    let precision = hops.precision();
    let thin = links.thin(precision)?;
    let (domain, sites) = (thin.domain().clone(), thin.domain().half_sites());
    momenta.expect_on(&domain)?;
    if operator.smearing.has_long_links() {
        // Long links span 3 sites, and only adjacent processes exchange borders: a part needs at least 3 sites in each partitioned
        // direction.
        domain.grid().check(domain.global().size(), 3).map_err(DeviceError::from)?;
    }
    let hops = hops.with_border(&thin, operator.params.boundary.sign())?;
    // If t is partitioned, the border of the vectors includes the sign of the boundary condition. Hops do not apply it again, because the
    // geometry of the vectors has no end of the lattice in t. Otherwise hops apply the sign at that end.
    let geometry = hops.fields[0].domain().geometry();
    let lattice = Bordered { geometry, ..thin.bordered() };
    let (pairs, phases) = (hops.pairs(operator), operator.phases(&domain));
    let mut guarded = 0;
    let gradient = match operator.smearing {
        QuarkSmearing::Thin => {
            // Phases do not change the force: for U' = e^{iφ} U with the gradient G', U' G'† equals U G†.
            let thin = thin.with_hop_phases(phases)?;
            let format = Format { to: Some(momenta.precision()), ..hops.fields[0].format() };
            for parity in 0..2 {
                let (links, momenta) = (thin.links(parity), momenta.view(parity));
                let kernel = NaiveForce { pairs, links, momenta, lattice, parity: parity as u32, step };
                domain.backend().launch(&NAIVE_FORCE, format, &kernel, sites, 4)?;
            }
            return Ok(0);
        }
        QuarkSmearing::Stout(smearing) => {
            let gradient = thin.empty_like()?;
            hop_gradient(&HOP_GRADIENT, &pairs, &gradient, geometry)?;
            gradient.multiply(phases.conj())?;
            links.stout(&smearing, precision)?.thin_gradient(gradient)?
        }
        QuarkSmearing::Paths(paths) => ChainRule::new(&thin, paths, lattice)?.gradient(&pairs, phases)?,
        QuarkSmearing::Hisq { epsilon } => {
            let first = links.first_level()?;
            let made = links.made();
            let fat = made.first_fat.get(precision, || first.fat.converted(precision).map(Rc::new))?;
            let unitary = made.first_unitary.get(precision, || first.unitary.converted(precision).map(Rc::new))?;
            guarded = made.first_guarded.get((), || first.count_small(SMALLEST_SQUARE))?;
            let gradient =
                ChainRule::new(&unitary, PathCoefficients::hisq(epsilon), lattice)?.gradient(&pairs, phases)?;
            before_projection(&fat, &unitary, &gradient)?;
            let rule = ChainRule::new(&thin, PathCoefficients::fat7(), lattice)?;
            rule.staples(&gradient)?;
            rule.sum
        }
    };
    let format = Format::between(precision, momenta.precision());
    for parity in 0..2 {
        let kernel = AddForce {
            momenta: momenta.view(parity),
            links: thin.links(parity),
            gradient: gradient.links(parity),
            lattice,
            parity: parity as u32,
            step,
        };
        domain.backend().launch(&ADD_FORCE, format, &kernel, sites, 4)?;
    }
    Ok(guarded)
}

/// *Collective.* Replaces the gradient with respect to HISQ's links in U(3) by the gradient with respect to the links before their
/// projection, border included.
fn before_projection(fat: &GaugeField, unitary: &GaugeField, gradient: &GaugeField) -> Result {
    let format = Format::of(gradient.precision());
    for parity in 0..2 {
        let (links, unitary, gradient) = (fat.links(parity), unitary.links(parity), gradient.links(parity));
        let kernel = ProjectionGradient { links, unitary, gradient, cutoff: SMALLEST_SQUARE };
        fat.domain().backend().launch(&PROJECTION_GRADIENT, format, &kernel, fat.bordered_sites(), 4)?;
    }
    gradient.fill_border()
}

/// Writes the gradient of the links over which vectors hop, on all sites of their bordered lattice.
fn hop_gradient(
    hops: &'static Instances<HopGradient>,
    pairs: &HopPairs,
    out: &GaugeField,
    geometry: Geometry,
) -> Result {
    let (backend, format) = (out.domain().backend(), FieldShape::colours(out.precision(), 1).format());
    for parity in 0..2 {
        let links = out.links(parity);
        let kernel = HopGradient { pairs: *pairs, out: links, geometry, parity: parity as u32, factor: 1.0 };
        backend.launch(hops, format, &kernel, out.bordered_sites(), 4)?;
    }
    Ok(())
}

/// Chain rule from fat and long links to thin ones.
///
/// With S_ν the staple in direction ν, F_μ = c_1 U_μ + Σ_ν [c_3 V + c_L S_ν V + Σ_ρ (c_5 W + Σ_σ c_7 S_σ W)], V = S_ν U_μ and
/// W = S_ρ V. Gradients go through the same staples: that of W is c_5 G + c_7 Σ_σ S_σ G, that of V is
/// c_3 G + c_L S_ν G + Σ_ρ S_ρ of the former, and each staple adds to the gradients of the links beside it.
struct ChainRule<'a> {
    thin: &'a GaugeField,
    paths: PathCoefficients,
    lattice: Bordered,
    /// Gradient with respect to thin links.
    sum: GaugeField,
}

impl<'a> ChainRule<'a> {
    fn new(thin: &'a GaugeField, paths: PathCoefficients, lattice: Bordered) -> Result<Self> {
        Ok(ChainRule { thin, paths, lattice, sum: thin.empty_like()? })
    }
    fn backend(&self) -> &dyn Backend {
        self.thin.domain().backend()
    }
    fn sites(&self) -> u32 {
        self.thin.bordered_sites()
    }
    /// Returns the format of kernels for links and matrices.
    fn format(&self) -> Format {
        Format::of(self.thin.precision())
    }
    /// Computes the gradient with respect to thin links from vectors in their precision. Hops are over fat links with phases, e^{iφ} F: if
    /// G is the gradient with respect to these, the one with respect to F is e^{−iφ} G.
    fn gradient(self, pairs: &HopPairs, phases: HopPhases) -> Result<GaugeField> {
        let without_phases = |gradient: &GaugeField, steps: usize| gradient.multiply(phases.over(steps).conj());
        let (c, geometry) = (self.paths, self.lattice.geometry);
        let fat = self.thin.empty_like()?;
        if c.naik != 0.0 {
            hop_gradient(&LONG_HOP_GRADIENT, pairs, &fat, geometry)?;
            without_phases(&fat, 3)?;
            for parity in 0..2 {
                let kernel = LongGradient {
                    links: self.thin.both(),
                    gradient: fat.both(),
                    sum: self.sum.links(parity),
                    geometry,
                    parity: parity as u32,
                    coefficient: c.naik,
                };
                self.backend().launch(&LONG_GRADIENT, self.format(), &kernel, self.sites(), 4)?;
            }
        }
        hop_gradient(&HOP_GRADIENT, pairs, &fat, geometry)?;
        without_phases(&fat, 1)?;
        self.staples(&fat)?;
        Ok(self.sum)
    }
    /// Adds the gradient of thin links from that of fat ones.
    fn staples(&self, fat: &GaugeField) -> Result {
        let c = self.paths;
        let field = || MatrixField::like(self.thin, "a path of forces");
        let (v, w, of_v, of_w, scratch) = (field()?, field()?, field()?, field()?, field()?);
        let others = |taken: &[u32]| (0..4).filter(|nu| !taken.contains(nu)).collect::<Vec<u32>>();
        let longer = c.five != 0.0 || c.seven != 0.0;
        for mu in 0..4 {
            let (link, g) = (self.thin.both().map(|u| u.direction(mu)), fat.both().map(|g| g.direction(mu)));
            // Lepage's staples are staples of staples in one direction. They contain the link itself once for each of the 6 directions,
            // which is subtracted here.
            let sum = self.sum.both().map(|sum| sum.direction(mu));
            self.combine(sum, g, (1.0, c.one_link - 6.0 * c.lepage))?;
            for nu in others(&[mu]) {
                if !longer && c.lepage == 0.0 && c.three == 0.0 {
                    continue;
                }
                self.combine(of_v.views(), g, (0.0, c.three))?;
                if longer || c.lepage != 0.0 {
                    self.staple((mu, nu), link, Some(v.views()), scratch.views(), 0.0)?;
                }
                if c.lepage != 0.0 {
                    self.beside((mu, nu), v.views(), g, c.lepage)?;
                    self.staple((mu, nu), g, None, of_v.views(), c.lepage)?;
                }
                for rho in others(&[mu, nu]).into_iter().filter(|_| longer) {
                    self.combine(of_w.views(), g, (0.0, c.five))?;
                    if c.seven != 0.0 {
                        self.staple((mu, rho), v.views(), Some(w.views()), scratch.views(), 0.0)?;
                        for sigma in others(&[mu, nu, rho]) {
                            self.beside((mu, sigma), w.views(), g, c.seven)?;
                            self.staple((mu, sigma), g, None, of_w.views(), c.seven)?;
                        }
                    }
                    self.beside((mu, rho), v.views(), of_w.views(), 1.0)?;
                    self.staple((mu, rho), of_w.views(), None, of_v.views(), 1.0)?;
                }
                self.beside((mu, nu), link, of_v.views(), 1.0)?;
                self.staple((mu, nu), of_v.views(), None, sum, 1.0)?;
            }
        }
        Ok(())
    }
    /// Computes X ← a X + b Y.
    fn combine(&self, out: [Matrices; 2], input: [Matrices; 2], (a, b): (f64, f64)) -> Result {
        for (out, input) in out.into_iter().zip(input) {
            let kernel = CombineMatrices { out, input, a, b };
            self.backend().launch(&COMBINE_MATRICES, self.format(), &kernel, self.sites(), 1)?;
        }
        Ok(())
    }
    /// Computes `out` = S_ν V, and `sum` ← `sum` + c S_ν V.
    fn staple(
        &self,
        (mu, nu): (u32, u32),
        input: [Matrices; 2],
        out: Option<[Matrices; 2]>,
        sum: [Matrices; 2],
        coefficient: f64,
    ) -> Result {
        for parity in 0..2 {
            let kernel = Staple {
                links: self.thin.both(),
                input,
                // Without `keep` the kernel does not write `out`, so any field will do.
                out: out.unwrap_or(sum)[parity],
                sum: sum[parity],
                geometry: self.lattice.geometry,
                parity: parity as u32,
                mu,
                nu,
                keep: u32::from(out.is_some()),
                coefficient,
            };
            self.backend().launch(&STAPLE, self.format(), &kernel, self.sites(), 1)?;
        }
        Ok(())
    }
    /// Adds the contribution of the staple S_ν V with the gradient c G to the gradient of U_ν.
    fn beside(&self, (mu, nu): (u32, u32), path: [Matrices; 2], gradient: [Matrices; 2], coefficient: f64) -> Result {
        for parity in 0..2 {
            let kernel = StapleGradient {
                links: self.thin.both(),
                path,
                gradient,
                sum: self.sum.links(parity).direction(nu),
                geometry: self.lattice.geometry,
                parity: parity as u32,
                mu,
                nu,
                coefficient,
            };
            self.backend().launch(&STAPLE_GRADIENT, self.format(), &kernel, self.sites(), 1)?;
        }
        Ok(())
    }
}
