//! GCR with an adaptive multigrid cycle as its preconditioner.
use super::super::formats::BlockMultigrid;
use super::super::memory::{NeedsScope, widths};
use super::super::report::{EscalationError, MultigridLevel, MultigridReport};
use super::super::request::Request;
use super::{Limits, Method, OperatorPair, PrecisionLevel, PreparedMethod};
use crate::field::{DeviceField, FieldShape, FieldSpace};
use crate::halo::Needs;
use crate::multigrid::{MultigridBytes, OUTER_DELTA, OUTER_DIRECTIONS};
use crate::operators::{Key, KeyKind};
use gpu_kernels::Precision;
use solvers::inverter::{Inverter, gcr};
use solvers::{Converted, Info, Observer, SolveError};
use std::collections::BTreeSet;

impl Method {
    /// GCR on the Schur complement with an adaptive [multigrid](crate::multigrid) cycle as its preconditioner. If it does not converge,
    /// BiCGstab takes over.
    pub const MULTIGRID: &'static Method = &Method {
        name: "multigrid",
        titles: ["GCR with multigrid"; 2],
        help: "GCR preconditioned by a multigrid cycle, for light quarks",
        keys: KEYS,
        heading: Some("Multigrid"),
        restarts: true,
        successor: Some(Method::BICGSTAB),
        check: |request, local, _| Ok(request.multigrid.aggregates(local).map(|_| ())?),
        vectors: |_| 2 * OUTER_DIRECTIONS + 2,
        needs,
        exchanges: |request, all, local, _, nrhs| request.multigrid.exchanges(all, local, nrhs, widths),
        first_level,
        prepare: |formats, request, storage, observer| {
            let Some(multigrid) = formats.multigrid(&request.multigrid, storage, observer)? else {
                return Err(SolveError::Invalid(
                    "multigrid applies to Wilson-like operators only: choose another method",
                ));
            };
            Ok(Box::new(multigrid))
        },
        ..Method::KRYLOV
    };
}

/// Keys of the multigrid cycle and its setup.
pub(super) const KEYS: &[&Key] =
    &[&VECTORS, &LEVELS, &BLOCK, &SMOOTHING, &RELAXATIONS, &IMPROVEMENTS, &PRECISION, &SETUP, &CHECK_SETUP];

static VECTORS: Key = Key::new(
    "mg-vectors",
    "N",
    KeyKind::Count,
    "Number of near-null vectors on each level except the coarsest, a multiple of 8 [default: 24]",
    "24",
);
static LEVELS: Key = Key::new(
    "mg-levels",
    "N",
    KeyKind::Count,
    "Maximum number of levels, including the lattice itself [default: 3]",
    "3",
);
static BLOCK: Key = Key::new(
    "mg-block",
    "X,Y,Z,T",
    KeyKind::Texts,
    "Extents of an aggregate in sites of its level; repeat the flag for each level except the coarsest, starting with \
     the finest [default: chosen for the lattice]",
    "[\"4,4,4,4\", \"2,2,2,2\"]",
);
static SMOOTHING: Key = Key::new(
    "mg-smoothing",
    "N",
    KeyKind::Count,
    "Number of smoothing steps on the finest level after each coarse-grid correction [default: 6]",
    "6",
);
static RELAXATIONS: Key = Key::new(
    "mg-relaxations",
    "N",
    KeyKind::Count,
    "Number of setup iterations that relax the random start vectors [default: 4]",
    "4",
);
static IMPROVEMENTS: Key = Key::new(
    "mg-improvements",
    "N",
    KeyKind::Count,
    "Number of setup iterations that improve the near-null vectors by the multigrid cycle [default: 4]",
    "4",
);
static PRECISION: Key = Key::new(
    "mg-precision",
    "NAME",
    KeyKind::Word,
    "Precision of near-null vectors, coarse operators and the smoother: half or single [default: half on a GPU, with \
     the smoother in fp16; single on a CPU]",
    "\"half\"",
);
static SETUP: Key = Key::new(
    "setup",
    "FILE",
    KeyKind::Text,
    "File of near-null vectors, which is read if it exists, and written otherwise",
    "\"multigrid.setup\"",
);
static CHECK_SETUP: Key = Key::new(
    "check-setup",
    "",
    KeyKind::Switch,
    "Check near-null vectors, coarse operators and gamma5-Hermiticity on each level after the setup",
    "false",
);

/// Returns the formats of GCR around the cycle. Because GCR has little to do, 16 bits are of no use, nor is double precision if the method
/// was chosen automatically.
fn first_level(asked: PrecisionLevel, automatic: bool) -> PrecisionLevel {
    let short = matches!(asked.precision, Precision::Half | Precision::Fp16);
    PrecisionLevel { precision: if short || automatic { Precision::Single } else { asked.precision }, ..asked }
}

/// Returns the memory of the cycle and of its setup. The setup's memory is freed before vectors of the solver are allocated.
fn needs(request: &Request, scope: &NeedsScope<'_>) -> Needs {
    let MultigridBytes { setup, solve } = request.multigrid.bytes(scope.local, scope.nrhs);
    let (operator, sites) = (&request.operator, scope.local.half_volume());
    let crate::multigrid::MultigridParams { smoother, precision, .. } = request.multigrid;
    let smoother = smoother.or(precision).unwrap_or(Precision::Half);
    let formats = BTreeSet::from([Precision::Single, smoother]).into_iter().filter(|p| *p != request.precision);
    let operators = formats
        .map(|p| operator.link_bytes(p, request.reconstruction, sites) + operator.diagonal_bytes(p, sites))
        .sum();
    vec![
        ("multigrid", solve),
        ("additional memory of the multigrid setup", setup.saturating_sub(solve + scope.later)),
        ("operators of multigrid", operators),
    ]
}

impl PreparedMethod for BlockMultigrid {
    fn iterate(
        &self,
        pair: &OperatorPair,
        rhs: &DeviceField,
        x: &mut DeviceField,
        limits: &Limits<'_>,
        observer: &mut dyn Observer,
    ) -> Result<Info, EscalationError> {
        let is_single = pair.level.precision == Precision::Single;
        let params = limits.restarting_params(is_single.then_some(OUTER_DELTA))?;
        let (system, sloppy) = (pair.mixed(), &pair.sloppy_space);
        let single = FieldSpace::new(sloppy.domain(), FieldShape::new(sloppy.kind(), Precision::Single, rhs.nrhs()));
        let mut solved = None;
        self.with_cycle(pair.adjoint, &mut |cycle| {
            let observer = &mut *observer;
            solved = Some(match is_single {
                true => gcr(OUTER_DIRECTIONS, cycle).invert(&system, rhs, x, &params, observer),
                false => {
                    gcr(OUTER_DIRECTIONS, Converted::new(&single, cycle)?).invert(&system, rhs, x, &params, observer)
                }
            });
            Ok(())
        })?;
        solved.expect("the cycle was used")
    }
    fn multigrid_report(&self, iterations: usize, seconds: f64) -> Option<MultigridReport> {
        let (multigrid, done) = (self.multigrid(), self.reports());
        let coarsenings = multigrid.levels();
        let level = |depth: usize| {
            let below = coarsenings.get(depth);
            let lattice = match depth {
                0 => coarsenings[0].space.fine().lattice(),
                _ => coarsenings[depth - 1].operator.level().lattice(),
            };
            // Iterations and seconds on the finest level are those of the solver, whose preconditioner is the cycle.
            let report = done.get(depth).copied().unwrap_or_default();
            MultigridLevel {
                lattice: lattice.size(),
                block: below.map(|below| below.space.block()),
                vectors: below.map(|below| below.space.count()),
                iterations: if depth == 0 { iterations } else { report.iterations },
                seconds: if depth == 0 { seconds } else { report.seconds },
                check: multigrid.checks().get(depth).copied(),
            }
        };
        let levels = (0..=coarsenings.len()).map(level).collect();
        Some(MultigridReport { setup_seconds: multigrid.seconds(), levels })
    }
}
