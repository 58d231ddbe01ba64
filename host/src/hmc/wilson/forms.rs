//! The forms Re Σ Y† M̂ X and their gradient.
use super::{TwistedComplement, WilsonQuarks, space};
use crate::domain::{Domain, Result};
use crate::field::{DeviceField, FieldShape, GaugeField, HermitianBlocks};
use crate::hmc::links::EvolvingLinks;
use crate::hmc::momenta::MomentumField;
use crate::operators::{LinkDependence, Schur};
use gpu_kernels::lattice::{Bordered, Region};
use gpu_kernels::momenta::{ADD_FORCE, AddForce};
use gpu_kernels::transfer::{COPY_REGION, CopySites};
use gpu_kernels::wilson_force::{
    BLOCK_INSERTION, BlockInsertion, CLOVER_GRADIENT, CloverGradient, EXPONENTIAL_DERIVATIVE, ExponentialDerivative,
    Insertions, PAIR_BLOCKS, PAIR_INSERTION, PairBlocks, PairInsertion, SPINOR_HOP_GRADIENT, SpinorHopGradient,
};
use gpu_kernels::{Format, Precision};
use num_complex::Complex64;
use solvers::VectorSpace;

/// Vectors X_j and Y_j of the forms Σ_j Re Y_j† M̂ X_j, in the precision of the gradient.
///
/// Let X_o = h A_oo⁻¹ D X_e and Y_o = h A_oo⁻† D† Y_e. The asymmetric complement has Y_e† dM̂ X_e = Y† dM X. For the symmetric complement,
/// A_ee⁻† Y_e replaces Y_e, and (A_ee⁻† Y_e)† dA_ee M̂ X_e is subtracted.
pub(super) struct Forms {
    /// Hops, clover coefficients and links of the operators whose vectors are added.
    quarks: WilsonQuarks,
    domain: Domain,
    precision: Precision,
    x: [DeviceField; 2],
    y: [DeviceField; 2],
    /// X_e − M̂ X_e of the symmetric complement, which multiplies dA_ee.
    beside_term: Option<DeviceField>,
    added: usize,
    /// Values d in A of the operators whose vectors were added, and the number of vectors of each.
    diagonals: Vec<(f64, usize)>,
}

impl Forms {
    /// Allocates `count` pairs of vectors. All operators whose vectors are added must have the hops, the clover coefficients and the links
    /// of `quarks`.
    pub fn new(domain: &Domain, quarks: WilsonQuarks, precision: Precision, count: usize) -> Result<Self> {
        let field = || DeviceField::zero(domain, FieldShape::spinors(precision, count));
        let operator = quarks.operator;
        let depends = operator.dependence() != LinkDependence::None;
        let beside_term = (depends && operator.schur == Schur::Symmetric).then(field).transpose()?;
        let (x, y) = ([field()?, field()?], [field()?, field()?]);
        Ok(Forms { quarks, domain: domain.clone(), precision, x, y, beside_term, added: 0, diagonals: Vec::new() })
    }
    /// Adds the form `factor` Σ_j Re y_j† M̂ x_j to the sum of forms, where M̂ is `operator`. x_j and y_j are the vectors of blocks on the
    /// even sites, and `image` is M̂ x.
    pub fn add(
        &mut self,
        operator: &TwistedComplement,
        x: &DeviceField,
        image: &DeviceField,
        y: &DeviceField,
        factor: f64,
    ) -> Result {
        let space = space(&self.domain, self.precision, x.nrhs());
        let (mut odd, mut divided) = (space.allocate()?, space.allocate()?);
        self.put(&self.x[0], x, 0, 1.0)?;
        operator.inner.extend(false, x, &mut odd)?;
        self.put(&self.x[1], &odd, 1, 1.0)?;
        operator.divided(y, &mut divided)?;
        self.put(&self.y[0], &divided, 0, factor)?;
        operator.inner.extend(true, &divided, &mut odd)?;
        self.put(&self.y[1], &odd, 1, factor)?;
        if let Some(beside_term) = &self.beside_term {
            let minus = vec![Complex64::new(-1.0, 0.0); x.nrhs()];
            space.copy(x, &mut odd)?;
            space.axpby(&minus, image, &vec![Complex64::ONE; x.nrhs()], &mut odd)?;
            self.put(beside_term, &odd, 0, 1.0)?;
        }
        self.added += x.nrhs();
        let diagonal = operator.inner.wilson().params().diagonal();
        match self.diagonals.last_mut() {
            Some((last, count)) if *last == diagonal => *count += x.nrhs(),
            _ => self.diagonals.push((diagonal, x.nrhs())),
        }
        Ok(())
    }
    /// Writes `factor` times the vectors of a block to the next right-hand sides of `to`.
    fn put(&self, to: &DeviceField, from: &DeviceField, parity: u32, factor: f64) -> Result {
        assert!(self.added + from.nrhs() <= to.nrhs(), "there is room");
        let kernel = CopySites {
            input: from.view(),
            from: Region::WHOLE,
            out: to.view_from(self.added),
            to: Region::WHOLE,
            geometry: self.domain.geometry(),
            parity,
            factor,
        };
        let (sites, nrhs) = (self.domain.half_sites(), from.nrhs() as u32);
        Ok(self.domain.backend().launch(&COPY_REGION, to.format(), &kernel, sites, nrhs)?)
    }
    /// *Collective.* Computes P ← P + ε A for the momenta P, where ε is `step` and A is the traceless anti-Hermitian part of U G†. G is the
    /// gradient of the sum B of the forms: dB = Re Σ tr (G† dU).
    pub fn kick(self, links: &EvolvingLinks, step: f64, momenta: &mut MomentumField) -> Result {
        let quarks = self.quarks;
        add_force(&quarks, self.gradient(links)?, links, step, momenta)
    }
    /// *Collective.* Computes the gradient of the forms with respect to the links of the operators, on the local lattice.
    fn gradient(self, links: &EvolvingLinks) -> Result<GaugeField> {
        let gauge = self.quarks.links(links, self.precision)?;
        let gradient = gauge.empty_like()?;
        self.hops(&gradient)?;
        // Hops use e^{iφ} U. If G is the gradient with respect to e^{iφ} U, then e^{−iφ} G is the gradient with respect to U.
        gradient.multiply(self.quarks.operator.theta.of_hops(self.domain.global()).conj())?;
        match self.quarks.operator.dependence() {
            LinkDependence::None => {}
            LinkDependence::Linear(coefficients) => {
                self.pairs(coefficients, &gauge)?.add_gradient(&gauge, &gradient)?
            }
            LinkDependence::Exponential(coefficients) => {
                let exponent = self.quarks.exponent(links, coefficients)?;
                self.blocks(coefficients, &exponent, &gauge)?.add_gradient(&gauge, &gradient)?;
            }
        }
        Ok(gradient)
    }
    /// Returns X on the sites of a parity, in the form that multiplies dA.
    fn beside(&self, parity: usize) -> &DeviceField {
        match (&self.beside_term, parity) {
            (Some(beside_term), 0) => beside_term,
            _ => &self.x[parity],
        }
    }
    /// Computes W for a clover term that is linear in the field strength.
    fn pairs(&self, coefficients: [f64; 2], links: &GaugeField) -> Result<InsertionField> {
        let insertions = InsertionField::new(links)?;
        for parity in 0..2 {
            let kernel = PairInsertion {
                x: self.beside(parity).view(),
                y: self.y[parity].view(),
                count: self.added as u32,
                parity: parity as u32,
                out: insertions.on(parity),
                lattice: links.bordered(),
                coefficients,
            };
            let (backend, sites) = (self.domain.backend(), self.domain.half_sites());
            backend.launch(&PAIR_INSERTION, Format::of(self.precision), &kernel, sites, 3)?;
        }
        Ok(insertions)
    }
    /// Computes W for the term d exp(C/d), where d is different for operators of different masses.
    fn blocks(
        &self,
        coefficients: [f64; 2],
        exponent: &[HermitianBlocks; 2],
        links: &GaugeField,
    ) -> Result<InsertionField> {
        let insertions = InsertionField::new(links)?;
        let room = || HermitianBlocks::empty(&self.domain, self.precision, "blocks of the force of a clover term");
        let (blocks, sum) = (room()?, room()?);
        let (backend, format, sites) = (self.domain.backend(), Format::of(self.precision), self.domain.half_sites());
        for (parity, exponent) in exponent.iter().enumerate() {
            let (x, y, mut first) = (self.beside(parity), &self.y[parity], 0);
            for (diagonal, count) in &self.diagonals {
                let (x, y) = (x.view_from(first), y.view_from(first));
                let kernel = PairBlocks { x, y, count: *count as u32, out: blocks.view() };
                backend.launch(&PAIR_BLOCKS, format, &kernel, sites, 2)?;
                let kernel = ExponentialDerivative {
                    term: exponent.view(),
                    blocks: blocks.view(),
                    out: sum.view(),
                    diagonal: *diagonal,
                    add: u32::from(first > 0),
                };
                backend.launch(&EXPONENTIAL_DERIVATIVE, format, &kernel, sites, 2)?;
                first += count;
            }
            let kernel = BlockInsertion {
                blocks: sum.view(),
                parity: parity as u32,
                out: insertions.on(parity),
                lattice: links.bordered(),
                factor: 1.0,
                coefficients,
            };
            backend.launch(&BLOCK_INSERTION, format, &kernel, sites, 3)?;
        }
        Ok(insertions)
    }
    /// Adds the gradient of the hopping term with respect to links with their phases.
    fn hops(&self, gradient: &GaugeField) -> Result {
        let wilson = self.quarks.operator.wilson;
        let across = wilson.boundary.sign();
        let vectors = self.domain.bordered_by(self.domain.border(GHOST_WIDTH));
        let Forms { domain, precision, x, y, added, .. } = self;
        let bordered;
        let (x, y, vectors) = match domain.halo()? {
            None => (x, y, vectors),
            Some(halo) => {
                let wide = domain.with_ghost_zone(GHOST_WIDTH)?;
                let fill = |fields: &[DeviceField; 2]| -> Result<[DeviceField; 2]> {
                    let field = || DeviceField::zero(&wide, FieldShape::spinors(*precision, fields[0].nrhs()));
                    let mut out = [field()?, field()?];
                    for (parity, (from, to)) in fields.iter().zip(&mut out).enumerate() {
                        halo.fill_ghost_zone(from, from.nrhs(), to, parity as u32, GHOST_WIDTH, across)?;
                    }
                    Ok(out)
                };
                // If t is partitioned, the ghost zones include the sign of the boundary condition. Hops do not apply it again, because the
                // geometry of the vectors has no end of the lattice in t. Otherwise hops apply the sign at that end.
                bordered = [fill(x)?, fill(y)?];
                (&bordered[0], &bordered[1], Bordered { geometry: wide.geometry(), ..vectors })
            }
        };
        for parity in 0..2 {
            let kernel = SpinorHopGradient {
                x: x.each_ref().map(DeviceField::view),
                y: y.each_ref().map(DeviceField::view),
                count: *added as u32,
                vectors,
                gradient: gradient.links(parity),
                lattice: gradient.bordered(),
                parity: parity as u32,
                factor: -wilson.hop(),
                time: 1.0 / wilson.anisotropy.space(),
                across,
            };
            let format = Format::of(*precision);
            domain.backend().launch(&SPINOR_HOP_GRADIENT, format, &kernel, domain.half_sites(), 4)?;
        }
        Ok(())
    }
}

/// Width, in sites, of the ghost zone of vectors in partitioned directions. One site is needed, but ghost zones have an even width.
const GHOST_WIDTH: u32 = 2;

/// Matrices W of Σ tr (W dQ) for all planes.
struct InsertionField([GaugeField; 2]);

impl InsertionField {
    fn new(links: &GaugeField) -> Result<Self> {
        Ok(InsertionField([links.empty_like()?, links.empty_like()?]))
    }
    fn on(&self, parity: usize) -> Insertions {
        self.0.each_ref().map(|field| field.links(parity))
    }
    /// *Collective.* Adds the gradient of Σ tr (W Q) to `gradient`.
    fn add_gradient(&self, gauge: &GaugeField, gradient: &GaugeField) -> Result {
        self.0.iter().try_for_each(GaugeField::fill_border)?;
        let domain = gauge.domain();
        for parity in 0..2 {
            let kernel = CloverGradient {
                links: gauge.both(),
                insertions: [self.on(0), self.on(1)],
                gradient: gradient.links(parity),
                lattice: gauge.bordered(),
                parity: parity as u32,
            };
            let format = Format::of(gauge.precision());
            domain.backend().launch(&CLOVER_GRADIENT, format, &kernel, domain.half_sites(), 4)?;
        }
        Ok(())
    }
}

/// *Collective.* Computes the gradient of `weight` Σ ln |det A| over the sites of some parities, in double precision; `None` if it is zero.
pub(super) fn gradient_of_determinant(
    quarks: &WilsonQuarks,
    links: &EvolvingLinks,
    parities: std::ops::Range<usize>,
    weight: f64,
) -> Result<Option<GaugeField>> {
    let (coefficients, exponent) = match quarks.operator.dependence() {
        _ if !quarks.has_determinant() => return Ok(None),
        LinkDependence::None => return Ok(None),
        LinkDependence::Linear(coefficients) => (coefficients, None),
        LinkDependence::Exponential(coefficients) => (coefficients, Some(quarks.exponent(links, coefficients)?)),
    };
    let (term, gauge) = (quarks.term(links)?, quarks.links(links, Precision::Double)?);
    let (gradient, insertions) = (gauge.empty_like()?, InsertionField::new(&gauge)?);
    for parity in parities {
        let form = crate::operators::DiagonalForm { parity, inverse: true, dagger: false };
        // d ln |det (A + iμγ_5)| = tr (E dA) with E = A (A² + μ²)⁻¹, which is A⁻¹ for μ = 0.
        let mut blocks = term.arguments(form).clover;
        let derivative = match &exponent {
            None => None,
            Some(_) => {
                Some(HermitianBlocks::empty(gauge.domain(), Precision::Double, "blocks of the force of a determinant")?)
            }
        };
        if let (Some(exponent), Some(derivative)) = (&exponent, &derivative) {
            let diagonal = quarks.operator.wilson.diagonal();
            let (term, out) = (exponent[parity].view(), derivative.view());
            let kernel = ExponentialDerivative { term, blocks, out, diagonal, add: 0 };
            let (domain, format) = (gauge.domain(), Format::of(Precision::Double));
            domain.backend().launch(&EXPONENTIAL_DERIVATIVE, format, &kernel, domain.half_sites(), 2)?;
            blocks = out;
        }
        let kernel = BlockInsertion {
            blocks,
            parity: parity as u32,
            out: insertions.on(parity),
            lattice: gauge.bordered(),
            factor: weight,
            coefficients,
        };
        let domain = gauge.domain();
        domain.backend().launch(&BLOCK_INSERTION, Format::of(Precision::Double), &kernel, domain.half_sites(), 3)?;
    }
    insertions.add_gradient(&gauge, &gradient)?;
    Ok(Some(gradient))
}

/// *Collective.* Computes P ← P + ε A, where A is the traceless anti-Hermitian part of U G†, from a gradient with respect to the links of
/// an operator.
pub(super) fn add_force(
    quarks: &WilsonQuarks,
    gradient: GaugeField,
    links: &EvolvingLinks,
    step: f64,
    momenta: &mut MomentumField,
) -> Result {
    let thin = links.thin(gradient.precision())?;
    let gradient = match &quarks.stout {
        None => gradient,
        Some(smearing) => links.stout(smearing, gradient.precision())?.thin_gradient(gradient)?,
    };
    let domain = thin.domain();
    momenta.expect_on(domain)?;
    let format = Format::between(thin.precision(), momenta.precision());
    for parity in 0..2 {
        let kernel = AddForce {
            momenta: momenta.view(parity),
            links: thin.links(parity),
            gradient: gradient.links(parity),
            lattice: thin.bordered(),
            parity: parity as u32,
            step,
        };
        domain.backend().launch(&ADD_FORCE, format, &kernel, domain.half_sites(), 4)?;
    }
    Ok(())
}
