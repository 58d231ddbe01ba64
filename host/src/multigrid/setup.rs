//! Adaptive setup: near-null vectors from random ones, and the operators that they make.
use super::coarse::CoarseOperator;
use super::cycle::{Coarsening, CycleResult, Finest, with_cycle};
use super::level::Level;
use super::null_space::NullSpace;
use super::params::MultigridParams;
use crate::domain::Result;
use crate::field::{DeviceField, FieldSpace, FullField, GaugeField};
use crate::lattice::Lattice;
use crate::operators::{EvenOdd, EvenOddWilson};
use gpu_kernels::multigrid::{TEST_VECTORS, TestVectors};
use gpu_kernels::{FermionKind, Format, Precision};
use solvers::{
    Converted, Identity, InnerGcr, InnerGcrParams, LevelReport, Preconditioner, SolveError, VectorSpace,
    inverse_iteration, orthonormalise,
};
use std::cell::RefCell;
use std::time::Instant;

/// Numbers of test vectors that are relaxed and improved together, the best first.
const TOGETHER: [usize; 3] = [12, 16, 8];
/// Of the random numbers that test vectors begin with.
const SEED: u64 = 1;

/// Makes an operator in a precision, for blocks of so many right-hand sides.
pub type MakeOperator<'a> = dyn Fn(Precision, usize) -> Result<EvenOddWilson> + 'a;

/// Near-null vectors and coarse operators of all levels, for solves with one operator.
pub struct Multigrid {
    levels: Vec<Coarsening>,
    params: MultigridParams,
    precision: Precision,
    seconds: f64,
    quotients: Vec<f64>,
}

impl Multigrid {
    /// Sets multigrid up for an operator on `links`.
    ///
    /// # Errors
    /// Parameters that do not fit the lattice, as [`SolveError::Invalid`]; failures of the device.
    pub fn new(make: &MakeOperator<'_>, links: &GaugeField, params: &MultigridParams) -> CycleResult<Self> {
        let started = Instant::now();
        let domain = links.domain();
        let finest = Level::finest(domain);
        let blocks = params
            .aggregates_on(domain.local(), domain.grid())
            .map_err(|_| SolveError::Invalid("multigrid does not fit the lattice"))?;
        let (count, width) = (params.vectors, together(params.vectors));
        let precision = params.precision_on(domain.backend());
        let (space, narrow) = (finest.space(width), FieldSpace::new(domain, FermionKind::Wilson, precision, width));
        let (operator, smoother) = (make(Precision::Single, width)?, make(precision, width)?);
        let mut vectors = random_vectors(&finest, count)?;
        // Relaxation
        let steps = InnerGcrParams { steps: params.relaxation_steps.max(1), tol: 1e-3 };
        let relax = Converted::new(&narrow, InnerGcr::new(&narrow, &smoother, Identity, steps)?)?;
        let mut quotients = Vec::new();
        if params.relaxations > 0 {
            quotients = inverse_iteration(&space, &operator, &relax, &mut vectors, params.relaxations)?;
        }
        drop(relax);
        let wide = make(Precision::Single, count)?;
        let mut levels = build(&finest, &blocks, &vectors, &wide, links, params)?;
        // Improvement
        let ends = Finest { operator: &operator, smoother: &smoother, precision };
        for _ in 0..params.improvements {
            orthonormalise(&space, &mut vectors)?;
            with_cycle(ends, &levels, &params.cycle, width, &RefCell::default(), &mut |cycle| {
                quotients = inverse_iteration(&space, &operator, cycle, &mut vectors, 1)?;
                Ok(())
            })?;
            levels.clear();
            levels = build(&finest, &blocks, &vectors, &wide, links, params)?;
        }
        domain.backend().synchronize().map_err(crate::domain::DeviceError::from)?;
        let seconds = started.elapsed().as_secs_f64();
        Ok(Multigrid { levels, params: *params, precision, seconds, quotients })
    }
    /// Seconds of the setup.
    pub fn seconds(&self) -> f64 {
        self.seconds
    }
    /// ‖M̂ v‖/‖v‖ of the test vectors in the end.
    pub fn quotients(&self) -> &[f64] {
        &self.quotients
    }
    /// What was asked for.
    pub fn params(&self) -> &MultigridParams {
        &self.params
    }
    /// Near-null vectors and the operator below, from the finest level down.
    pub fn levels(&self) -> &[Coarsening] {
        &self.levels
    }
    /// Hands the cycle to `then`, for blocks of `nrhs` right-hand sides, and notes in `reports` what each level did, the
    /// finest one first.
    ///
    /// # Errors
    /// Those of `then`; no memory.
    pub fn with_cycle(
        &self,
        operator: &EvenOddWilson,
        smoother: &EvenOddWilson,
        nrhs: usize,
        reports: &RefCell<Vec<LevelReport>>,
        then: &mut dyn FnMut(&dyn Preconditioner<FieldSpace>) -> CycleResult,
    ) -> CycleResult {
        let finest = Finest { operator, smoother, precision: self.precision };
        with_cycle(finest, &self.levels, &self.params.cycle, nrhs, reports, then)
    }
}

impl MultigridParams {
    /// Bytes that multigrid takes on a device at the peak of its setup, on a process's part of a lattice: test vectors on even
    /// sites, near-null vectors with a copy, columns of P and their images, scratch of the operator, and coarse operators.
    /// 0 where it does not fit the lattice.
    pub(crate) fn setup_bytes(&self, local: Lattice) -> usize {
        let Ok(blocks) = self.aggregates(local) else { return 0 };
        let precision = self.precision.unwrap_or(Precision::Half);
        let half = |precision, nrhs| DeviceField::bytes_for(FermionKind::Wilson, precision, local.half_volume(), nrhs);
        let vectors = half(Precision::Single, self.vectors);
        let relaxation = (2 * self.relaxation_steps + 4) * half(precision, together(self.vectors));
        let mut sites = local.volume();
        let mut coarse = 0;
        for block in blocks {
            sites /= block.iter().product::<usize>();
            let [kept, peak] = CoarseOperator::bytes_for(sites, self.vectors, precision);
            coarse += if coarse == 0 { peak } else { kept };
        }
        (vectors + relaxation).max(11 * vectors + coarse)
    }
}

/// How many of so many test vectors are worked on together.
fn together(count: usize) -> usize {
    TOGETHER.into_iter().find(|width| count.is_multiple_of(*width)).unwrap_or(count)
}

/// Random vectors on the even sites, in blocks that are worked on together.
fn random_vectors(finest: &Level, count: usize) -> Result<Vec<DeviceField>> {
    let (domain, width) = (finest.domain(), together(count));
    (0..count / width)
        .map(|block| {
            let vectors = DeviceField::zero(domain, FermionKind::Wilson, Precision::Single, width)?;
            let kernel = TestVectors {
                out: vectors.view(),
                geometry: domain.geometry(),
                position: domain.position(),
                parity: 0,
                first: (block * width) as u32,
                seed: SEED,
            };
            let format = Format::of(Precision::Single);
            domain.backend().launch(&TEST_VECTORS, format, &kernel, domain.half_sites(), width as u32)?;
            Ok(vectors)
        })
        .collect()
}

/// All levels from test vectors on the even sites, whose odd half is that of a solution with no source.
fn build(
    finest: &Level,
    blocks: &[[usize; 4]],
    vectors: &[DeviceField],
    operator: &EvenOddWilson,
    links: &GaugeField,
    params: &MultigridParams,
) -> Result<Vec<Coarsening>> {
    let (count, precision) = (params.vectors, params.precision_on(finest.domain().backend()));
    let mut test = finest.zero(count)?;
    let width = together(count);
    let space = finest.space(width);
    for (block, vectors) in vectors.iter().enumerate() {
        space.copy_to_rhs(vectors, &mut test.even, block * width)?;
    }
    let nothing = finest.zero(count)?;
    operator.reconstruct(&nothing, &mut test)?;
    drop(nothing);
    let mut levels: Vec<Coarsening> = Vec::new();
    for (depth, block) in blocks.iter().enumerate() {
        let level = levels.last().map_or(finest, |above| above.operator.level()).clone();
        // What the next level's test vectors are made of is lost when these become orthonormal.
        let copy = if depth + 1 < blocks.len() { Some(copied(&level, &test)?) } else { None };
        let space = NullSpace::new(&level, *block, test)?;
        let coarse = match levels.last() {
            None => CoarseOperator::of_wilson(&space, operator, links, precision)?,
            Some(above) => CoarseOperator::of_coarse(&space, &above.operator, precision)?,
        };
        test = space.coarse().zero(count)?;
        if let Some(copy) = copy {
            for parity in 0..2 {
                space.restrict(parity, copy.parity(parity), &mut test, parity > 0, count)?;
            }
        }
        let space = if precision == Precision::Single { space } else { space.converted(precision)? };
        levels.push(Coarsening { space, operator: coarse });
    }
    Ok(levels)
}

fn copied(level: &Level, field: &FullField) -> Result<FullField> {
    let count = field.even.nrhs();
    let (space, mut copy) = (level.space(count), level.zero(count)?);
    for parity in 0..2 {
        space.copy(field.parity(parity), copy.parity_mut(parity))?;
    }
    Ok(copy)
}
