//! Adaptive setup of multigrid: near-null vectors from random vectors, and the coarse operators made from them.
use super::check::{LevelCheck, check_levels};
use super::coarse::CoarseOperator;
use super::cycle::{Coarsening, CycleResult, Finest, with_cycle};
use super::level::LevelLattice;
use super::near_null_vectors::{NearNullVectors, together};
use super::null_space::NullSpace;
use super::params::MultigridParams;
use crate::domain::{DeviceError, Result};
use crate::field::{CoarseMatrices, DeviceField, FieldShape, FieldSpace, FullField, GaugeField};
use crate::halo::{Exchanges, HaloField};
use crate::lattice::Lattice;
use crate::operators::{EvenOdd, EvenOddWilson};
use gpu_kernels::Precision;
use gpu_kernels::multigrid::spinors_of;
use solvers::{
    Converted, Identity, InnerGcr, InnerGcrParams, LevelReport, Observer, Preconditioner, SolveError, Step,
    VectorSpace, inverse_iteration_while, orthonormalise,
};
use std::cell::RefCell;
use std::ops::ControlFlow;
use std::time::Instant;

/// Seed of the random vectors from which near-null vectors are made.
const SEED: u64 = 1;

/// Function that makes the operator of the finest level in a given precision, for blocks of a given number of right-hand sides.
pub type MakeOperator<'a> = dyn Fn(Precision, usize) -> Result<EvenOddWilson> + 'a;

/// Time to relax all near-null vectors with the default number of steps, in a common unit for all parts of a setup.
const RELAXATION: f64 = 1.0;
/// Time that a cycle takes to improve all near-null vectors, in the unit of [`RELAXATION`].
const IMPROVEMENT: f64 = 1.1;
/// Time to make the coarse operators of all levels, in the unit of [`RELAXATION`].
const OPERATORS: f64 = 1.3;

/// Progress of a setup. The observer of the setup may end it.
struct Course<'o> {
    observer: &'o mut dyn Observer,
    done: f64,
    whole: f64,
}

impl<'o> Course<'o> {
    /// Starts the progress of a setup that relaxes near-null vectors `relaxations` times and improves them `improvements` times.
    fn new(observer: &'o mut dyn Observer, params: &MultigridParams, relaxations: usize, improvements: usize) -> Self {
        let relaxation = relaxations as f64 * Self::relaxation(params);
        let whole = relaxation + OPERATORS + improvements as f64 * (IMPROVEMENT + OPERATORS);
        Course { observer, done: 0.0, whole }
    }
    /// Returns the time of one relaxation of all near-null vectors.
    fn relaxation(params: &MultigridParams) -> f64 {
        RELAXATION * params.relaxation_steps.max(1) as f64 / MultigridParams::default().relaxation_steps as f64
    }
    /// Informs the observer that the setup begins.
    fn begin(&mut self) -> CycleResult {
        if self.step(0.0).is_break() { Err(ended()) } else { Ok(()) }
    }
    /// Records work that takes `time`, and reports the progress to the observer.
    fn step(&mut self, time: f64) -> ControlFlow<()> {
        self.done += time;
        self.observer.step(&Step { work: "multigrid setup", done: Some((self.done / self.whole).min(1.0)) })
    }
}

/// Returns the error of a setup that its observer ended.
fn ended() -> SolveError<DeviceError> {
    SolveError::Cancelled { iteration: 0, info: Box::default() }
}

/// Multigrid setup for one operator: near-null vectors and coarse operators of all levels.
pub struct Multigrid {
    levels: Vec<Coarsening>,
    params: MultigridParams,
    vectors: NearNullVectors,
    seconds: f64,
    quotients: Vec<f64>,
    checks: Vec<LevelCheck>,
}

impl Multigrid {
    /// Sets multigrid up for an operator on `links`. The observer receives the [steps](Observer::step) of the setup, and can end it.
    ///
    /// # Errors
    /// [`SolveError::Invalid`] for parameters that do not fit the lattice, [`SolveError::Cancelled`] if the observer ended the setup, and
    /// failures of the device.
    pub fn new(
        make: &MakeOperator<'_>,
        links: &GaugeField,
        params: &MultigridParams,
        observer: &mut dyn Observer,
    ) -> CycleResult<Self> {
        let started = Instant::now();
        let mut course = Course::new(observer, params, params.relaxations, params.improvements);
        course.begin()?;
        let domain = links.domain();
        let finest = LevelLattice::finest(domain);
        let width = together(params.vectors);
        let precision = params.smoother_on(domain.backend());
        let (space, narrow) = (finest.space(width), FieldSpace::new(domain, FieldShape::spinors(precision, width)));
        let mut vectors = NearNullVectors::random(&finest, params.vectors, SEED)?;
        if params.relaxations > 0 {
            let (operator, smoother) = (make(Precision::Single, width)?, make(precision, width)?);
            let steps = InnerGcrParams { steps: params.relaxation_steps.max(1), tol: 1e-3 };
            let relax = Converted::new(&narrow, InnerGcr::new(&narrow, &smoother, Identity, steps)?)?;
            let time = Course::relaxation(params) / vectors.blocks().len() as f64;
            let mut after = || course.step(time);
            inverse_iteration_while(&space, &operator, &relax, vectors.blocks_mut(), params.relaxations, &mut after)?;
        }
        Self::with_vectors(make, links, params, vectors, params.improvements, (started, course))
    }
    /// Sets multigrid up from the near-null vectors of a slightly different operator, for example on links after another step of molecular
    /// dynamics, or with another mass. Improves the vectors `improvements` times; 0 suffices for a larger mass.
    ///
    /// # Errors
    /// The errors of [`new`](Self::new).
    pub fn refreshed(
        &self,
        make: &MakeOperator<'_>,
        links: &GaugeField,
        improvements: usize,
        observer: &mut dyn Observer,
    ) -> CycleResult<Self> {
        Self::from_near_null_vectors(make, links, &self.params, &self.vectors, improvements, observer)
    }
    /// Sets multigrid up for an operator on `links` from stored near-null vectors, which are improved `improvements` times.
    ///
    /// # Errors
    /// The errors of [`new`](Self::new); a number of vectors that differs from that of the parameters.
    pub fn from_near_null_vectors(
        make: &MakeOperator<'_>,
        links: &GaugeField,
        params: &MultigridParams,
        vectors: &NearNullVectors,
        improvements: usize,
        observer: &mut dyn Observer,
    ) -> CycleResult<Self> {
        let started = Instant::now();
        let mut course = Course::new(observer, params, 0, improvements);
        course.begin()?;
        if vectors.count() != params.vectors {
            return Err(SolveError::Invalid("give as many near-null vectors as `vectors` of the multigrid parameters"));
        }
        Self::with_vectors(make, links, params, vectors.converted(Precision::Single)?, improvements, (started, course))
    }
    /// Returns the near-null vectors of the finest level as they were before they were made orthonormal on each aggregate.
    pub fn near_null_vectors(&self) -> &NearNullVectors {
        &self.vectors
    }
    /// Builds the levels from near-null vectors in single precision, and improves the vectors.
    fn with_vectors(
        make: &MakeOperator<'_>,
        links: &GaugeField,
        params: &MultigridParams,
        mut vectors: NearNullVectors,
        improvements: usize,
        (started, mut course): (Instant, Course<'_>),
    ) -> CycleResult<Self> {
        let domain = links.domain();
        let finest = LevelLattice::finest(domain);
        let unfit = "the multigrid parameters do not suit the lattice: MultigridParams::aggregates returns the reason";
        let blocks = params.aggregates(domain.local()).map_err(|_| SolveError::Invalid(unfit))?;
        let (count, width) = (params.vectors, together(params.vectors));
        let (precision, space) = (params.precision_on(domain.backend()), finest.space(width));
        let wide = make(Precision::Single, count)?;
        let mut levels = build(&finest, &blocks, vectors.blocks(), &wide, links, params, &mut course)?;
        let mut quotients = Vec::new();
        if improvements > 0 {
            let smoother = make(params.smoother_on(domain.backend()), width)?;
            let operator = make(Precision::Single, width)?;
            let fine_operators = Finest { operator: &operator, smoother: &smoother };
            let time = IMPROVEMENT / vectors.blocks().len() as f64;
            for _ in 0..improvements {
                orthonormalise(&space, vectors.blocks_mut())?;
                with_cycle(fine_operators, &levels, &params.cycle, width, &RefCell::default(), &mut |cycle| {
                    let mut after = || course.step(time);
                    quotients = inverse_iteration_while(&space, &operator, cycle, vectors.blocks_mut(), 1, &mut after)?;
                    Ok(())
                })?;
                levels.clear();
                levels = build(&finest, &blocks, vectors.blocks(), &wide, links, params, &mut course)?;
            }
        }
        domain.backend().synchronize().map_err(DeviceError::from)?;
        let seconds = started.elapsed().as_secs_f64();
        let checks = match params.check {
            true => check_levels(&levels, &wide, on_all_sites(&finest, vectors.blocks(), &wide)?)?,
            false => Vec::new(),
        };
        let vectors = if precision == Precision::Single { vectors } else { vectors.converted(precision)? };
        // Frees the ghost zones of links, and those of blocks with a right-hand side for each near-null vector. Solves do not need them.
        domain.release()?;
        Ok(Multigrid { levels, params: *params, vectors, seconds, quotients, checks })
    }
    /// Returns the duration of the setup in seconds.
    pub fn seconds(&self) -> f64 {
        self.seconds
    }
    /// Returns ‖M̂ v‖/‖v‖ of the near-null vectors v at their last improvement; empty if they were never improved.
    pub fn quotients(&self) -> &[f64] {
        &self.quotients
    }
    /// Returns the result of the check of each level; empty if no check was requested.
    pub fn checks(&self) -> &[LevelCheck] {
        &self.checks
    }
    /// Returns the parameters of the setup.
    pub fn params(&self) -> &MultigridParams {
        &self.params
    }
    /// Returns the near-null vectors and the coarse operator of each level, from the finest level down.
    pub fn levels(&self) -> &[Coarsening] {
        &self.levels
    }
    /// Makes the multigrid cycle for blocks of `nrhs` right-hand sides, and passes it to `then`. Appends the work of each level to
    /// `reports`, the finest level first.
    ///
    /// # Errors
    /// Errors of `then`; too little memory.
    pub fn with_cycle(
        &self,
        operator: &EvenOddWilson,
        smoother: &EvenOddWilson,
        nrhs: usize,
        reports: &RefCell<Vec<LevelReport>>,
        then: &mut dyn FnMut(&dyn Preconditioner<FieldSpace>) -> CycleResult,
    ) -> CycleResult {
        let finest = Finest { operator, smoother };
        with_cycle(finest, &self.levels, &self.params.cycle, nrhs, reports, then)
    }
}

/// Bytes of device memory that multigrid takes.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct MultigridBytes {
    /// Bytes that multigrid takes at the peak of the setup: while coarse operators are made, or while the cycle improves near-null vectors.
    pub setup: usize,
    /// Bytes that multigrid takes during solves.
    pub solve: usize,
}
impl MultigridBytes {
    /// Returns the larger of the bytes of the setup and of solves.
    pub fn peak(self) -> usize {
        self.setup.max(self.solve)
    }
}

impl MultigridParams {
    /// Returns the bytes of device memory that multigrid takes for a process's part of a lattice; 0 if multigrid does not fit the lattice.
    pub(crate) fn bytes(&self, local: Lattice, nrhs: usize) -> MultigridBytes {
        let Ok(blocks) = self.aggregates(local) else { return MultigridBytes::default() };
        let precision = self.precision.unwrap_or(Precision::Half);
        let smoother = self.smoother.unwrap_or(precision);
        let half = |precision, nrhs| FieldShape::spinors(precision, nrhs).bytes(local.half_volume());
        let vectors = half(Precision::Single, self.vectors);
        let width = together(self.vectors);
        // `kept` is the memory of the near-null vectors on all sites, and of their copy on even sites.
        let (mut sites, mut kept, mut made, mut spinors) = (local.volume(), 3 * half(precision, self.vectors), 0, 0);
        for block in blocks {
            sites /= block.iter().product::<usize>();
            let [of_level, peak] = CoarseOperator::bytes_for(sites, self.vectors, precision);
            made = made.max(kept + peak);
            kept += of_level;
            spinors += sites / 2 * spinors_of(self.vectors as u32) as usize;
        }
        // A cycle needs scratch fields of operators, residuals, images and corrections, and on coarse levels also the directions of
        // solvers.
        let cycle = |nrhs| {
            let coarse = FieldShape::spinors(Precision::Single, nrhs).bytes(spinors);
            let directions = self.cycle.inner.steps.max(self.cycle.coarsest.basis);
            // A smoother has a residual, a correction and two scratch vectors. The other vectors belong to the cycle and to its operators.
            let smoothers = 1 + usize::from(self.cycle.pre_smoothing > 0);
            6 * half(Precision::Single, nrhs)
                + (4 * smoothers + 2) * half(smoother, nrhs)
                + (2 * directions + 24) * coarse
        };
        let relaxation = (2 * self.relaxation_steps + 4) * half(smoother, width);
        // The setup needs memory for vectors on even sites, for operators with a right-hand side for each vector, for vectors on all sites
        // and their copy, and for columns of P and their images.
        let operators = 2 * (half(Precision::Single, width) + half(smoother, width));
        let setup = [relaxation, 10 * vectors + made, 2 * vectors + kept + cycle(width)];
        let setup = vectors + operators + setup.into_iter().max().unwrap_or(0);
        MultigridBytes { setup, solve: kept + cycle(nrhs) }
    }
    /// Returns the exchanges with other processes during the setup, and during cycles for blocks of `nrhs` right-hand sides. Blocks of n
    /// right-hand sides shrink to the sizes `widths(n)`.
    pub(crate) fn exchanges(
        &self,
        mut all: Exchanges,
        local: Lattice,
        nrhs: usize,
        widths: impl Fn(usize) -> Vec<usize>,
    ) -> Exchanges {
        let Ok(blocks) = self.aggregates(local) else { return all };
        let widths = [vec![self.vectors], widths(together(self.vectors)), widths(nrhs)].concat();
        // The precision of the smoother is half or fp16 if none is requested.
        let smoother = self.smoother.or(self.precision).map_or(vec![Precision::Half, Precision::Fp16], |one| vec![one]);
        for precision in [vec![Precision::Single], smoother].concat() {
            all = all.hops(HaloField::Spinors, precision, &widths);
        }
        let mut extents = local.size();
        for block in blocks {
            extents = std::array::from_fn(|mu| extents[mu] / block[mu]);
            let matrix = CoarseMatrices::bytes_for(1, self.vectors, 1, Precision::Single);
            all = all.level(extents, spinors_of(self.vectors as u32) as usize, &widths).level_links(extents, matrix);
        }
        all
    }
}

/// Builds all levels from near-null vectors on the even sites. Their odd half is that of a solution for a source that is zero.
fn build(
    finest: &LevelLattice,
    blocks: &[[usize; 4]],
    vectors: &[DeviceField],
    operator: &EvenOddWilson,
    links: &GaugeField,
    params: &MultigridParams,
    course: &mut Course<'_>,
) -> CycleResult<Vec<Coarsening>> {
    let (count, precision) = (params.vectors, params.precision_on(finest.domain().backend()));
    let mut near_null = on_all_sites(finest, vectors, operator)?;
    let mut levels: Vec<Coarsening> = Vec::new();
    for (depth, block) in blocks.iter().enumerate() {
        let level = levels.last().map_or(finest, |above| above.operator.level()).clone();
        // `NullSpace::new` overwrites the vectors when it makes them orthonormal, but the next level is made from them.
        let copy = if depth + 1 < blocks.len() { Some(copied(&level, &near_null)?) } else { None };
        let space = NullSpace::new(&level, *block, near_null)?;
        // The coarse operator made from the finest level takes nearly all of the time.
        let time = match levels.len() {
            0 if blocks.len() > 1 => 0.9 * OPERATORS,
            0 => OPERATORS,
            _ => 0.1 * OPERATORS / (blocks.len() - 1) as f64,
        };
        let mut after = |part: f64| course.step(part * time);
        let coarse = match levels.last() {
            None => CoarseOperator::of_wilson_while(&space, operator, links, precision, &mut after)?,
            Some(above) => CoarseOperator::of_coarse_while(&space, &above.operator, precision, &mut after)?,
        };
        let Some(coarse) = coarse else { return Err(ended()) };
        near_null = space.coarse().zero(count)?;
        if let Some(copy) = copy {
            for parity in 0..2 {
                space.restrict(parity, copy.parity(parity), &mut near_null, parity > 0, count)?;
            }
        }
        let space = if precision == Precision::Single { space } else { space.converted(precision)? };
        levels.push(Coarsening { space, operator: coarse });
    }
    Ok(levels)
}

/// Computes near-null vectors on all sites from those on the even sites.
fn on_all_sites(finest: &LevelLattice, vectors: &[DeviceField], operator: &EvenOddWilson) -> Result<FullField> {
    let width = vectors.first().map_or(0, DeviceField::nrhs);
    let count = width * vectors.len();
    let (mut near_null, space) = (finest.zero(count)?, finest.space(width));
    for (block, vectors) in vectors.iter().enumerate() {
        space.copy_to_rhs(vectors, &mut near_null.even, block * width)?;
    }
    let nothing = finest.zero(count)?;
    operator.reconstruct(&nothing, &mut near_null)?;
    Ok(near_null)
}

fn copied(level: &LevelLattice, field: &FullField) -> Result<FullField> {
    let count = field.even.nrhs();
    let (space, mut copy) = (level.space(count), level.zero(count)?);
    for parity in 0..2 {
        space.copy(field.parity(parity), copy.parity_mut(parity))?;
    }
    Ok(copy)
}
