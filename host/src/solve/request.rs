//! Requests: the system to solve and the parameters of the solve.
use super::methods::{Counts, Method};
use super::schwarz::Schwarz;
use crate::multigrid::MultigridParams;
use crate::operators::Operator;
use gpu_kernels::{LinkStorage, Precision};

/// Correction of an iteration in lower precision by true residuals.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Correction {
    /// Reliable updates (Clark et al. 2009, Algorithm 2): the iteration continues with the true residual whenever its own has fallen by the
    /// factor `delta`; `None`: 0.1, 0.6 for staggered operators in 16 bits, 1e-4 where the iteration has the precision of the check, or
    /// never where it has its links too.
    Reliable {
        /// Factor δ.
        delta: Option<f64>,
    },
    /// Defect correction (Algorithm 1): solves for the correction from scratch, repeatedly.
    Defect {
        /// Tolerance ε_in of the inner solver, relative to the residual that it gets.
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

/// Operator to solve for and parameters of the solve.
#[derive(Clone, Debug, PartialEq)]
pub struct Request {
    /// Operator M.
    pub operator: Operator,
    /// Method of the solve.
    pub method: &'static Method,
    /// Precision of the iteration, the sloppy one.
    pub precision: Precision,
    /// Precision of the solution and of the true residuals of the solver, double or single. In single the solution is accurate to about
    /// 1e-6, and needs half the memory.
    pub outer: Precision,
    /// Storage of the links in the iteration. 12 and 8 real numbers need SU(3) links, 13 and 9 U(3) ones.
    pub reconstruction: LinkStorage,
    /// Requested ‖η − M ψ‖ / ‖η‖ of the full system.
    pub tol: f64,
    /// Most iterations.
    pub max_iterations: usize,
    /// Correction of the iteration by true residuals.
    pub correction: Correction,
    /// Whether a solve that stagnates, breaks down or overflows continues in the next higher precision.
    pub escalate: bool,
    /// Parameters of the preconditioner of [`Method::GCR_DD`].
    pub schwarz: Schwarz,
    /// Parameters of [`Method::MULTIGRID`].
    pub multigrid: MultigridParams,
    /// Parameters of methods that are whole numbers, such as s of [`Method::IDR`].
    pub counts: Counts,
    /// Total number of right-hand sides that are solved for with this operator, from which [`Method::AUTO`] decides whether a setup pays;
    /// 0: those of the call.
    pub sources: usize,
    /// Number of iterations without a new smallest residual that counts as stagnation; 0 for no such limit. If [`escalate`](Self::escalate)
    /// allows a higher precision, a method with [`patience`](Method::patience) has a smaller limit below double, and goes to double at
    /// once. BiCGstab has 150 iterations times the square root of the number of sites over 8⁴, at least 150, or half of those that the
    /// smallest residual took.
    pub stagnation_window: usize,
}

impl Request {
    /// Refuses pairs of precisions that no solver supports.
    pub(super) fn check_precisions(&self) -> Result<(), &'static str> {
        use Precision as P;
        match (self.outer, self.precision) {
            (P::Double, _) | (P::Single, P::Single | P::Half | P::Fp16) => Ok(()),
            (P::Single, P::Double) => Err("the outer precision must not be below that of the iteration"),
            (P::Half | P::Fp16, _) => Err("the outer precision must be double or single"),
        }
    }
    /// Makes a request for BiCGstab, or CG for staggered operators, in double to 1e-10, with links of 12 real numbers, or of 18 in a build
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
