//! Requests: the system to solve and the parameters of the solve.
use super::methods::{Counts, Method};
use super::schwarz::Schwarz;
use super::shifts::ShiftStrategy;
use crate::backend::Backend;
use crate::multigrid::MultigridParams;
use crate::operators::Operator;
use gpu_kernels::{LinkStorage, Precision};

/// Correction of an iteration in lower precision by true residuals.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Correction {
    /// Reliable updates (Clark et al. 2009, Algorithm 2): the iteration continues with the true residual whenever its own residual has
    /// fallen by the factor `delta`. With `None`, δ is 0.6 for staggered operators in 16 bits and 0.1 otherwise. If iteration and check
    /// have the same precision, δ is 1e-4, or 0 (no updates) if the iteration also has all reals of the links.
    Reliable {
        /// Factor δ.
        delta: Option<f64>,
    },
    /// Defect correction (Clark et al. 2009, Algorithm 1): repeatedly solves for a correction from scratch.
    Defect {
        /// Tolerance ε_in of the inner solver, relative to the residual for which it solves.
        inner_tol: f64,
    },
}
impl Correction {
    /// Returns the name of the correction: `reliable` or `defect`.
    pub fn name(&self) -> &'static str {
        match self {
            Correction::Reliable { .. } => "reliable",
            Correction::Defect { .. } => "defect",
        }
    }
}
impl Default for Correction {
    fn default() -> Self {
        Correction::Reliable { delta: None }
    }
}

/// Operator for which to solve, and parameters of the solve.
#[derive(Clone, Debug, PartialEq)]
pub struct Request {
    /// Operator M.
    pub operator: Operator,
    /// Method of the solve.
    pub method: &'static Method,
    /// Precision of the iteration, the sloppy precision.
    pub precision: Precision,
    /// Precision of the solution and of the solver's true residuals: double or single. In single precision, the solution needs half the
    /// memory and is accurate to about 1e-6.
    pub outer: Precision,
    /// Storage of the links in the iteration. 12 and 8 real numbers require SU(3) links, 13 and 9 require U(3) links.
    pub reconstruction: LinkStorage,
    /// Formats that are chosen for the device.
    pub open: OpenFormats,
    /// Requested tolerance: the true residual ‖η − M ψ‖ / ‖η‖ of the full system at which the solve ends.
    pub tol: f64,
    /// Maximum number of iterations; `None` for [`iteration_limit`](Self::iteration_limit).
    pub max_iterations: Option<usize>,
    /// Method by which true residuals correct the iteration.
    pub correction: Correction,
    /// Whether a solve that stagnates, breaks down or overflows continues in the next higher precision.
    pub escalate: bool,
    /// Parameters of the preconditioner of [`Method::GCR_DD`].
    pub schwarz: Schwarz,
    /// Parameters of [`Method::MULTIGRID`].
    pub multigrid: MultigridParams,
    /// Whether multi-shift CG iterates all systems until the first one has converged. Otherwise it leaves a system as soon as it has converged.
    pub shifts_together: bool,
    /// Values of parameters of methods that are whole numbers, such as s of [`Method::IDR`].
    pub counts: Counts,
    /// Total number of right-hand sides for this operator, from which [`Method::AUTO`] decides whether a multigrid setup pays; 0 to count
    /// only those of the present call.
    pub sources: usize,
    /// Number of iterations without a new smallest residual that counts as stagnation; 0 for no limit. A method with
    /// [`patience`](Method::patience) has a smaller limit below double precision if [`escalate`](Self::escalate) allows a higher one, and
    /// then continues in double precision. For BiCGstab on V sites the limit is 150 √(V/8⁴), at least 150, and at least half of the
    /// iterations up to the smallest residual.
    pub stagnation_window: usize,
}

/// Formats of an iteration that a request leaves open. They are then those in which the method is usually fastest on a device, beside
/// solutions and true residuals in double precision (docs/measurements/defaults.md).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct OpenFormats {
    /// Whether [`Request::precision`] is chosen.
    pub precision: bool,
    /// Whether the storage of links is chosen. A GPU stores them in 16 bits, in the form of [`Request::reconstruction`], where that is faster
    /// and the precision is chosen too. A CPU stores links in U(3) with all reals.
    pub storage: bool,
}
impl OpenFormats {
    /// Everything is open.
    pub const ALL: Self = OpenFormats { precision: true, storage: true };
}

/// Mass of an improved staggered quark below which fat links have 21 bits instead of 16. Rounding to 16 bits changes small eigenvalues so much
/// that CG takes more iterations, on small lattices already at larger masses: docs/measurements/staggered.md.
pub(super) const LIGHT: f64 = 0.015;

/// Maximum number of iterations for quarks that are not light.
const USUAL_ITERATIONS: usize = 10_000;
/// Square of a number above the norm of the hopping term of staggered quarks, which is 2 for naive quarks and 2.4 for improved quarks on
/// links that are unit matrices.
const LARGEST_HOP: f64 = 9.0;

/// Returns whether a backend is a GPU.
pub(super) fn is_gpu(backend: Option<&dyn Backend>) -> bool {
    backend.is_some_and(|backend| backend.name() == "cuda")
}

/// Returns a storage for 16-bit links, with fat links of 21 bits for a light quark.
fn short_links(storage: LinkStorage, light: bool) -> LinkStorage {
    if light { storage.in_fine() } else { storage.half(true) }
}

impl Request {
    /// Returns the request with its open formats chosen for a device; `None` for those that need most memory.
    #[must_use]
    pub fn on(&self, backend: Option<&dyn Backend>) -> Self {
        self.with_formats(is_gpu(backend))
    }
    /// Returns the request with its open formats chosen for a GPU or a CPU.
    fn with_formats(&self, is_gpu: bool) -> Self {
        let mut request = Request { open: OpenFormats::default(), ..self.clone() };
        let definition = self.operator.definition();
        let is_in_u3 = definition.is_in_u3() || definition.is_improved() && !self.operator.theta().are_zero();
        if !is_gpu && self.open.storage && is_in_u3 {
            // A CPU hops faster over links with all reals than over links with a phase: docs/measurements/cpu.md.
            request.reconstruction = self.reconstruction.with_all_reals();
        }
        if !self.open.precision || self.outer != Precision::Double {
            return request;
        }
        let exists = |precision, storage| definition.exists(precision, storage);
        let staggered = self.operator.is_positive();
        let storage = match definition.is_improved() {
            true => self.reconstruction.with_row_and_column(),
            false => self.reconstruction,
        };
        let short_links = |light: bool| short_links(storage, light);
        let is_light = self.operator.mass().abs() < LIGHT;
        let candidates = [
            // The iteration around a multigrid cycle takes little of the time, so 16 bits gain nothing.
            (Precision::Half, self.reconstruction, is_gpu && !staggered && self.method != Method::MULTIGRID),
            (Precision::Single, short_links(true), is_gpu && staggered && self.open.storage && is_light),
            (Precision::Single, short_links(false), is_gpu && staggered && self.open.storage),
            (Precision::Single, request.reconstruction, true),
        ];
        for (precision, storage, fits) in candidates {
            if fits && exists(precision, storage) {
                (request.precision, request.reconstruction) = (precision, storage);
                break;
            }
        }
        request
    }
    /// Returns the request with its open formats chosen for solves for several shifts or masses on a device.
    #[must_use]
    pub fn for_systems(&self, strategy: ShiftStrategy, backend: &dyn Backend) -> Self {
        match strategy {
            ShiftStrategy::MultiShift => self.for_multishift(Some(backend)),
            ShiftStrategy::Sequential => self.on(Some(backend)),
        }
    }
    /// Returns the request with its open formats chosen for multi-shift CG on a device; `None` for those that need most memory. After
    /// multi-shift CG in single precision, the solution of each system is refined. On a CPU, without 16-bit links, that takes longer than
    /// the lower precision saves: docs/measurements/defaults.md.
    pub(super) fn for_multishift(&self, backend: Option<&dyn Backend>) -> Self {
        if is_gpu(backend) || !self.open.precision {
            return self.on(backend);
        }
        let open = OpenFormats { precision: false, ..self.open };
        Request { precision: Precision::Double, open, ..self.clone() }.on(backend)
    }
    /// Returns the storage of 16-bit links for M†M + σ with eigenvalues from `smallest` upwards, if the storage of this request is such a
    /// storage and was left open.
    pub(super) fn links_from(&self, smallest: f64) -> LinkStorage {
        let light = smallest < LIGHT * LIGHT;
        if self.reconstruction.half { short_links(self.reconstruction.half(false), light) } else { self.reconstruction }
    }
    /// Returns the maximum number of iterations. If none was requested, it is 10,000, or if that is more, the number in which CG converges at
    /// the latest for M†M + σ of a staggered quark with eigenvalues from `smallest` upwards: ½ √κ ln(2 √κ / tol), where κ is the condition
    /// number (Saad 2003, *Iterative Methods for Sparse Linear Systems*, equation 6.128).
    pub fn iteration_limit(&self, smallest: Option<f64>) -> usize {
        self.max_iterations.unwrap_or_else(|| {
            let slowest = smallest.filter(|smallest| *smallest > 0.0).map_or(0.0, |smallest| {
                let root = (1.0 + LARGEST_HOP / smallest).sqrt();
                0.5 * root * (2.0 * root / self.tol).ln()
            });
            USUAL_ITERATIONS.max(slowest.min(1e9) as usize)
        })
    }
    /// Refuses pairs of precisions that no solver supports.
    pub(super) fn check_precisions(&self) -> Result<(), &'static str> {
        use Precision as P;
        match (self.outer, self.precision) {
            (P::Double, _) | (P::Single, P::Single | P::Half | P::Fp16) => Ok(()),
            (P::Single, P::Double) => Err(
                "the outer precision is single, but the iteration is in double: choose double as the outer precision",
            ),
            (P::Half | P::Fp16, _) => Err("the outer precision must be double or single"),
        }
    }
    /// Makes a request for a solve in double precision to the tolerance 1e-10, by BiCGstab, or by CG for staggered operators. Links have 12
    /// real numbers, or 18 if the build lacks kernels for 12.
    pub fn new(operator: impl Into<Operator>) -> Self {
        let operator = operator.into();
        let usual = LinkStorage::default();
        let has_usual = operator.definition().exists(Precision::default(), usual);
        Request {
            method: if operator.is_positive() { Method::CG } else { Method::BICGSTAB },
            operator,
            precision: Precision::default(),
            outer: Precision::Double,
            reconstruction: if has_usual { usual } else { LinkStorage::FULL },
            open: OpenFormats::default(),
            tol: 1e-10,
            max_iterations: None,
            correction: Correction::default(),
            escalate: true,
            schwarz: Schwarz::default(),
            multigrid: MultigridParams::default(),
            shifts_together: false,
            counts: Counts::default(),
            sources: 0,
            stagnation_window: 2000,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::backend::Cpu;
    use crate::operators::{StaggeredOperator, StaggeredParams, StaggeredPhases, TimeBoundary, WilsonParams};

    #[test]
    fn open_formats_are_chosen_and_given_ones_are_obeyed() {
        let (cpu, given) = (Cpu::new(Some(1)), Request::new(WilsonParams::from_mass(0.1, TimeBoundary::Antiperiodic)));
        let open = Request { open: OpenFormats::ALL, ..given.clone() };
        let chosen = open.on(Some(&cpu));
        assert_eq!((chosen.precision, chosen.open), (Precision::Single, OpenFormats::default()));
        assert_eq!(chosen.reconstruction, given.reconstruction, "a CPU has no use for 16-bit links");
        assert_eq!(given.on(Some(&cpu)), given);
        // With solutions in single precision, the precision of the request stays.
        let single = Request { outer: Precision::Single, precision: Precision::Half, ..open.clone() };
        assert_eq!(single.on(Some(&cpu)).precision, Precision::Half);
        let shifts = |request: &Request, strategy| request.for_systems(strategy, &cpu).precision;
        assert_eq!(shifts(&open, ShiftStrategy::MultiShift), Precision::Double);
        assert_eq!(shifts(&open, ShiftStrategy::Sequential), Precision::Single);
        let half = Request { precision: Precision::Half, ..given };
        assert_eq!(shifts(&half, ShiftStrategy::MultiShift), Precision::Half);
    }

    #[test]
    fn a_cpu_gets_links_in_u3_with_all_reals() {
        let params =
            StaggeredParams { mass: 0.1, boundary: TimeBoundary::Antiperiodic, phases: StaggeredPhases::default() };
        let reals = |operator: StaggeredOperator, open: OpenFormats| {
            let request = Request { reconstruction: LinkStorage::of(13), open, ..Request::new(operator) };
            let chosen = [request.with_formats(false), request.for_multishift(None)];
            chosen.map(|request| request.reconstruction.reals)
        };
        let hisq = StaggeredOperator::hisq(params, 0.0);
        assert_eq!(reals(hisq, OpenFormats::ALL), [18; 2]);
        assert_eq!(reals(hisq, OpenFormats { precision: false, storage: true }), [18; 2]);
        assert_eq!(reals(hisq, OpenFormats { precision: true, storage: false }), [13; 2]);
    }

    #[test]
    fn a_gpu_gets_short_numbers() {
        let open = |operator: Operator| Request { open: OpenFormats::ALL, ..Request::new(operator) };
        let chosen = |request: &Request| {
            let Request { precision, reconstruction, .. } = request.with_formats(true);
            (precision, reconstruction.to_string())
        };
        let wilson = open(WilsonParams::from_mass(0.1, TimeBoundary::Antiperiodic).into());
        assert_eq!(chosen(&wilson), (Precision::Half, "12".into()));
        let multigrid = Request { method: Method::MULTIGRID, ..wilson };
        assert_eq!(chosen(&multigrid), (Precision::Single, "12".into()));
        // Fat links of light quarks have 21 bits.
        let params =
            |mass| StaggeredParams { mass, boundary: TimeBoundary::Antiperiodic, phases: StaggeredPhases::default() };
        let hisq = |mass| open(StaggeredOperator::hisq(params(mass), 0.0).into());
        assert_eq!(chosen(&hisq(0.05)), (Precision::Single, "8h".into()));
        assert_eq!(chosen(&hisq(0.002)), (Precision::Single, "9f".into()));
        let naive = open(StaggeredOperator::naive(params(0.002)).into());
        assert_eq!(chosen(&naive), (Precision::Single, "12h".into()));
        let full = Request { reconstruction: LinkStorage::FULL, ..hisq(0.05) };
        assert_eq!(chosen(&full), (Precision::Single, "18h".into()));
    }

    #[test]
    fn light_quarks_may_take_more_iterations() {
        let request = Request::new(WilsonParams::from_mass(0.1, TimeBoundary::Antiperiodic));
        assert_eq!([None, Some(0.01)].map(|smallest| request.iteration_limit(smallest)), [10_000; 2]);
        // ½ √κ ln(2 √κ / tol) with √κ = 3 / 0.001.
        let limit = request.iteration_limit(Some(1e-6));
        assert!((47_000..48_000).contains(&limit), "{limit}");
        let given = Request { max_iterations: Some(7), ..request };
        assert_eq!(given.iteration_limit(Some(1e-6)), 7);
    }
}
