//! What to solve and how.
use super::methods::{Counts, Method};
use crate::lattice::Lattice;
use crate::multigrid::MultigridParams;
use crate::operators::Operator;
use comms::ProcessGrid;
use gpu_kernels::{LinkStorage, Precision};

/// The preconditioner of [`Method::GCR_DD`]: steps of minimum residual in domains that know nothing of each other.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Schwarz {
    /// Steps.
    pub steps: usize,
    /// Over-relaxation ω.
    pub omega: f64,
    /// Precision in the domains.
    pub precision: Precision,
    /// Extents of a domain, even ones that divide the part of each process; `None`: that part as a whole.
    pub domain: Option<[usize; 4]>,
    /// Sites of its neighbours that the domain of a process has besides its own part, in the directions that are cut: 0
    /// or 2.
    pub overlap: usize,
    /// Directions after which GCR restarts.
    pub k_max: usize,
}

/// Why a Schwarz preconditioner cannot be made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum SchwarzError {
    /// No steps, or no directions.
    NoSteps,
    /// ω is not between 0 and 2.
    Omega,
    /// The extents of a domain are odd, or do not divide those of a process's part.
    Extents,
    /// An overlap of other than 0 or 2 sites.
    Overlap,
    /// Domains that overlap have extents.
    OverlapWithExtents,
    /// Nothing to overlap with.
    OverlapAlone,
    /// Parts of processes are too short to overlap.
    OverlapTooShort,
}

impl SchwarzError {
    /// As a sentence.
    pub fn message(self) -> &'static str {
        match self {
            Self::NoSteps => "GCR-DD takes at least one step of minimum residual and one direction",
            Self::Omega => "the over-relaxation of minimum residual is above 0 and below 2",
            Self::Extents => {
                "the extents of a domain are even and divide those of the part of the lattice that a process has"
            }
            Self::Overlap => "domains overlap by 0 or 2 sites",
            Self::OverlapWithExtents => "domains that overlap are the parts of the processes: give no extents",
            Self::OverlapAlone => "with one process there is nothing for its domain to overlap with",
            Self::OverlapTooShort => "domains that overlap are at least 4 sites long in directions that are cut",
        }
    }
}

impl std::fmt::Display for SchwarzError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.message())
    }
}
impl std::error::Error for SchwarzError {}

impl Schwarz {
    /// Whether the domains fit the part of each process, when the lattice is cut like this; otherwise why not.
    pub fn check(&self, local: Lattice, grid: &ProcessGrid) -> Result<(), SchwarzError> {
        let Schwarz { steps, omega, domain, overlap, k_max, .. } = *self;
        let extents = domain.unwrap_or(local.size());
        let fits = |(&extent, whole): (&usize, usize)| extent > 0 && extent % 2 == 0 && whole % extent == 0;
        let short = |mu: usize| grid.is_partitioned(mu) && local.size()[mu] < 4;
        let refused = [
            (steps == 0 || k_max == 0, SchwarzError::NoSteps),
            (!(omega > 0.0 && omega < 2.0), SchwarzError::Omega),
            (!extents.iter().zip(local.size()).all(fits), SchwarzError::Extents),
            (overlap != 0 && overlap != 2, SchwarzError::Overlap),
            (overlap > 0 && domain.is_some(), SchwarzError::OverlapWithExtents),
            (overlap > 0 && grid.size() == 1, SchwarzError::OverlapAlone),
            (overlap > 0 && (0..4).any(short), SchwarzError::OverlapTooShort),
        ];
        refused.into_iter().find(|(wrong, _)| *wrong).map_or(Ok(()), |(_, why)| Err(why))
    }
    /// Sites of one parity in the domain of a process that has `local`.
    pub fn domain_sites(&self, local: Lattice, grid: &ProcessGrid) -> usize {
        let margin = |mu: usize| if grid.is_partitioned(mu) { 2 * self.overlap } else { 0 };
        (0..4).map(|mu| local.size()[mu] + margin(mu)).product::<usize>() / 2
    }
}

impl Default for Schwarz {
    fn default() -> Self {
        Schwarz { steps: 10, omega: 1.0, precision: Precision::Half, domain: None, overlap: 0, k_max: 16 }
    }
}

/// How true residuals come into an iteration in lower precision.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Correction {
    /// Reliable updates (Clark et al. 2009, Algorithm 2): the iteration goes on with the true residual whenever its own
    /// has fallen by the factor `delta`; `None`: 0.1, 0.6 for staggered operators in 16 bits, 1e-4 where the iteration
    /// has the precision of the check, or never where it has its links too.
    Reliable {
        /// δ
        delta: Option<f64>,
    },
    /// Defect correction (Algorithm 1): solves for the correction from scratch, again and again.
    Defect {
        /// ε_in, what the inner solver is asked for, relative to the residual it is given.
        inner_tol: f64,
    },
}
impl Correction {
    /// `reliable` or `defect`.
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

/// What to solve and how.
#[derive(Clone, Debug, PartialEq)]
pub struct Request {
    /// The operator.
    pub operator: Operator,
    /// The method.
    pub method: &'static Method,
    /// Precision of the iteration, the sloppy one.
    pub precision: Precision,
    /// Precision of the solution and of the true residuals of the solver, double or single. In single the answer is good
    /// to about 1e-6, and needs half the memory.
    pub outer: Precision,
    /// Storage of the links in the iteration. 12 and 8 real numbers need SU(3) links, 13 and 9 U(3) ones.
    pub reconstruction: LinkStorage,
    /// Asked ‖η − M ψ‖ / ‖η‖ of the full system.
    pub tol: f64,
    /// Most iterations.
    pub max_iterations: usize,
    /// How true residuals come in.
    pub correction: Correction,
    /// Whether a solve that stagnates, breaks down or overflows goes on in the next higher precision.
    pub escalate: bool,
    /// The preconditioner of [`Method::GCR_DD`].
    pub schwarz: Schwarz,
    /// The parameters of [`Method::MULTIGRID`].
    pub multigrid: MultigridParams,
    /// Parameters of methods that are whole numbers, such as s of [`Method::IDR`].
    pub counts: Counts,
    /// Right-hand sides that are solved for with this operator in all, for which [`Method::AUTO`] decides whether a setup pays;
    /// 0: those of the call.
    pub sources: usize,
    /// Iterations without a new smallest residual that count as stagnation; 0 for no such limit. Where
    /// [`escalate`](Self::escalate) allows a higher precision, a method with [`patience`](Method::patience) has less of it below double,
    /// and goes to double at once. BiCGstab has 150 iterations times the square root of the number of sites over 8⁴, at least 150, or half of those that the
    /// smallest residual took.
    pub stagnation_window: usize,
}

impl Request {
    /// Refuses pairs of precisions that no solver takes.
    pub(super) fn check_precisions(&self) -> Result<(), &'static str> {
        use Precision as P;
        match (self.outer, self.precision) {
            (P::Double, _) | (P::Single, P::Single | P::Half | P::Fp16) => Ok(()),
            (P::Single, P::Double) => Err("the outer precision must not be below that of the iteration"),
            (P::Half | P::Fp16, _) => Err("the outer precision is double or single"),
        }
    }
    /// BiCGstab, or CG for staggered operators, in double to 1e-10, with links of 12 real numbers, or of 18 in a build
    /// without these.
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
            tol: 1e-10,
            max_iterations: 10_000,
            correction: Correction::default(),
            escalate: true,
            schwarz: Schwarz::default(),
            multigrid: MultigridParams::default(),
            counts: Counts::default(),
            sources: 0,
            stagnation_window: 2000,
        }
    }
}
