//! What to solve and how.
use crate::dirac::{CloverParams, Schur, StaggeredParams, WilsonParams};
use crate::lattice::Lattice;
use comms::ProcessGrid;

/// Which Krylov method.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Method {
    /// BiCGstab on the Schur complement.
    #[default]
    Bicgstab,
    /// CG on the normal equations of the Schur complement, M†M x = M†b (CGNR).
    Cg,
    /// CG for the error, M M† y = b with x = M†y (CGNE).
    Cgne,
    /// Block CG, all right-hand sides of a batch in one Krylov space (Dubrulle 2001, BCGrQ), on the normal equations of
    /// the Schur complement; on M†M itself for staggered operators. With one right-hand side it is [`Method::Cg`].
    BlockCg,
    /// GCR on the Schur complement with an additive Schwarz preconditioner (Babich et al. 2011, Algorithm 1). For Wilson
    /// and clover operators.
    GcrDd,
}

/// The preconditioner of [`Method::GcrDd`]: steps of minimum residual in domains that know nothing of each other.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Schwarz {
    /// Steps.
    pub steps: usize,
    /// Over-relaxation ω.
    pub omega: f64,
    /// Precision in the domains.
    pub precision: IterationPrecision,
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
        Schwarz { steps: 10, omega: 1.0, precision: IterationPrecision::Half, domain: None, overlap: 0, k_max: 16 }
    }
}

/// Precision of the iteration. The final check is always in double.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum IterationPrecision {
    /// 64-bit floating point.
    #[default]
    Double,
    /// 32-bit floating point.
    Single,
    /// 16-bit fixed point with a norm per site.
    Half,
    /// 16-bit floating point without one: faster and less precise. Solvers keep vectors near 1, where it has its digits.
    Fp16,
}

/// How many reals of a link are kept.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[allow(missing_docs)]
pub enum Reconstruction {
    Eighteen,
    #[default]
    Twelve,
    Eight,
    /// 12, in temporal gauge: links in t are 1 and not read, except across the boundary.
    TwelveTemporal,
    /// 8 in temporal gauge, in double and single precision.
    EightTemporal,
    /// 18 in 16-bit fixed point beside fields in single precision, for staggered operators.
    EighteenShort,
    /// 12 in the same way.
    TwelveShort,
    /// 8 in the same way.
    EightShort,
    /// 12 and the phase of the determinant: for long links of improved staggered operators, in U(3) as HISQ's are.
    Thirteen,
    /// 8 and the phase, in the same way.
    Nine,
    /// 13 in 16-bit fixed point beside fields in single precision.
    ThirteenShort,
    /// 9 in the same way.
    NineShort,
}

impl Reconstruction {
    /// Whether links have to be in temporal gauge.
    pub fn is_temporal(self) -> bool {
        matches!(self, Reconstruction::TwelveTemporal | Reconstruction::EightTemporal)
    }
    /// Whether there are kernels of Wilson fermions for it in a precision.
    pub fn exists_in(self, precision: IterationPrecision) -> bool {
        let floating = matches!(precision, IterationPrecision::Double | IterationPrecision::Single);
        self.is_for_wilson() && (self != Reconstruction::EightTemporal || floating)
    }
    /// Whether operators of Wilson fermions take it, if need be as [`with_two_rows`](Self::with_two_rows).
    pub(super) fn is_for_wilson(self) -> bool {
        !self.is_short() && !self.keeps_phase()
    }
    /// Whether links are kept in 16 bits beside fields in single precision.
    pub fn is_short(self) -> bool {
        use Reconstruction::*;
        matches!(self, EighteenShort | TwelveShort | EightShort | ThirteenShort | NineShort)
    }
    /// Whether the phase of the determinant is kept: for long links in U(3).
    pub fn keeps_phase(self) -> bool {
        use Reconstruction::*;
        matches!(self, Thirteen | Nine | ThirteenShort | NineShort)
    }
    /// As many reals, each as precise as the fields beside it, or in 16 bits.
    pub(super) fn short(self, short: bool) -> Self {
        use Reconstruction::*;
        match (self, short) {
            (Eighteen | EighteenShort, true) => EighteenShort,
            (Eighteen | EighteenShort, false) => Eighteen,
            (Twelve | TwelveShort, true) => TwelveShort,
            (Twelve | TwelveShort, false) => Twelve,
            (Eight | EightShort, true) => EightShort,
            (Eight | EightShort, false) => Eight,
            (Thirteen | ThirteenShort, true) => ThirteenShort,
            (Thirteen | ThirteenShort, false) => Thirteen,
            (Nine | NineShort, true) => NineShort,
            (Nine | NineShort, false) => Nine,
            (TwelveTemporal | EightTemporal, _) => self,
        }
    }
    /// Kept in the same way with all 18 reals.
    pub(super) fn with_all_reals(self) -> Self {
        if self.is_short() { Reconstruction::EighteenShort } else { Reconstruction::Eighteen }
    }
    /// Whether there are links that it cannot keep although they are in the group: those whose first row is (a, 0, 0).
    pub(super) fn has_singular_links(self) -> bool {
        self != self.with_two_rows()
    }
    /// Kept in the same way with 12 or 13 reals, where 8 or 9 do not tell all links.
    pub(super) fn with_two_rows(self) -> Self {
        use Reconstruction::*;
        match self {
            Eight => Twelve,
            EightTemporal => TwelveTemporal,
            EightShort => TwelveShort,
            Nine => Thirteen,
            NineShort => ThirteenShort,
            Eighteen | EighteenShort | Twelve | TwelveTemporal | TwelveShort | Thirteen | ThirteenShort => self,
        }
    }
    /// With the phase of the determinant beside 12 or 8 reals, as links in U(3) need it.
    pub fn with_phase(self) -> Self {
        use Reconstruction::*;
        match self {
            Twelve => Thirteen,
            Eight => Nine,
            TwelveShort => ThirteenShort,
            EightShort => NineShort,
            _ => self,
        }
    }
    /// Whether there are kernels of the naive staggered operator for it in a precision: not for links in temporal gauge,
    /// not for phases, which thin links do not have, and not in 16-bit floating point, which would save no memory where a
    /// norm fills up a 16-byte chunk.
    pub fn exists_for_naive(self, precision: IterationPrecision) -> bool {
        self.exists_for_improved(precision) && !self.keeps_phase()
    }
    /// Whether there are kernels of improved staggered operators with such long links in a precision.
    pub fn exists_for_improved(self, precision: IterationPrecision) -> bool {
        let single = precision == IterationPrecision::Single;
        !self.is_temporal() && precision != IterationPrecision::Fp16 && (single || !self.is_short())
    }
}

/// As `with_formats`, for the naive staggered operator: [`Reconstruction::exists_for_naive`] says for which pairs.
macro_rules! with_naive_formats {
    ($precision:expr, $reconstruction:expr, $then:ident) => {
        with_naive_formats!(@or $precision, $reconstruction, $then,
            (precision, other) => unreachable!("no naive staggered kernels for {other:?} in {precision:?}"))
    };
    (@or $precision:expr, $reconstruction:expr, $then:ident, $($more:tt)*) => {
        with_naive_formats!(@each $precision, $reconstruction, $then, [$($more)*], Double Single Half)
    };
    (@each $precision:expr, $reconstruction:expr, $then:ident, [$($more:tt)*], $($p:ident)*) => {
        match ($precision, $reconstruction) {
            $(
                (IterationPrecision::$p, Reconstruction::Eighteen) => $then!($p, Recon18),
                (IterationPrecision::$p, Reconstruction::Twelve) => $then!($p, Recon12),
                (IterationPrecision::$p, Reconstruction::Eight) => $then!($p, Recon8),
            )*
            (IterationPrecision::Single, Reconstruction::EighteenShort) => $then!(Single, Recon18H),
            (IterationPrecision::Single, Reconstruction::TwelveShort) => $then!(Single, Recon12H),
            (IterationPrecision::Single, Reconstruction::EightShort) => $then!(Single, Recon8H),
            $($more)*
        }
    };
}
pub(crate) use with_naive_formats;

/// As `with_formats`, for improved staggered operators: [`Reconstruction::exists_for_improved`] says for which pairs.
macro_rules! with_improved_formats {
    ($precision:expr, $reconstruction:expr, $then:ident) => {
        with_naive_formats!(@or $precision, $reconstruction, $then,
            (IterationPrecision::Double, Reconstruction::Thirteen) => $then!(Double, Recon13),
            (IterationPrecision::Double, Reconstruction::Nine) => $then!(Double, Recon9),
            (IterationPrecision::Single, Reconstruction::Thirteen) => $then!(Single, Recon13),
            (IterationPrecision::Single, Reconstruction::Nine) => $then!(Single, Recon9),
            (IterationPrecision::Half, Reconstruction::Thirteen) => $then!(Half, Recon13),
            (IterationPrecision::Half, Reconstruction::Nine) => $then!(Half, Recon9),
            (IterationPrecision::Single, Reconstruction::ThirteenShort) => $then!(Single, Recon13H),
            (IterationPrecision::Single, Reconstruction::NineShort) => $then!(Single, Recon9H),
            (precision, other) => unreachable!("no improved staggered kernels for {other:?} in {precision:?}"))
    };
}
pub(crate) use with_improved_formats;

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

/// Calls a macro with the types of a precision and a reconstruction that are known at run time. 8 reals in temporal gauge
/// become 12 where there are none.
macro_rules! with_formats {
    ($precision:expr, $reconstruction:expr, $then:ident) => {
        with_formats!(@each $precision, $reconstruction, $then,
            Double Recon8T, Single Recon8T, Half Recon12T, Fp16 Recon12T)
    };
    (@each $precision:expr, $reconstruction:expr, $then:ident, $($p:ident $last:ident),*) => {
        match ($precision, $reconstruction) {
            $(
                (IterationPrecision::$p, Reconstruction::Eighteen) => $then!($p, Recon18),
                (IterationPrecision::$p, Reconstruction::Twelve) => $then!($p, Recon12),
                (IterationPrecision::$p, Reconstruction::Eight) => $then!($p, Recon8),
                (IterationPrecision::$p, Reconstruction::TwelveTemporal) => $then!($p, Recon12T),
                (IterationPrecision::$p, Reconstruction::EightTemporal) => $then!($p, $last),
            )*
            other => unreachable!("no Wilson kernels for {other:?}"),
        }
    };
}
pub(crate) use with_formats;

/// Which operator M.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Operator {
    /// Wilson.
    Wilson(WilsonParams),
    /// Wilson-clover, with the Schur complement to solve.
    Clover(CloverParams, Schur),
}
impl From<WilsonParams> for Operator {
    fn from(params: WilsonParams) -> Self {
        Operator::Wilson(params)
    }
}
impl From<CloverParams> for Operator {
    fn from(params: CloverParams) -> Self {
        Operator::Clover(params, Schur::default())
    }
}
impl Operator {
    /// Its name: `Wilson` or `Wilson-clover`.
    pub fn name(&self) -> &'static str {
        match self {
            Operator::Wilson(_) => "Wilson",
            Operator::Clover(..) => "Wilson-clover",
        }
    }
    /// Mass, boundary condition and anisotropy.
    pub fn wilson(&self) -> WilsonParams {
        match self {
            Operator::Wilson(params) => *params,
            Operator::Clover(params, _) => params.wilson,
        }
    }
}

/// What to solve and how.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Request<O = Operator> {
    /// The operator.
    pub operator: O,
    /// The method.
    pub method: Method,
    /// Precision of the iteration, the sloppy one.
    pub precision: IterationPrecision,
    /// Precision of the solution and of the true residuals of the solver, double or single. In single the answer is good
    /// to about 1e-6, and needs half the memory.
    pub outer: IterationPrecision,
    /// Storage of the links in the iteration. `Twelve` and `Eight` need SU(3) links, `Thirteen` and `Nine` U(3) ones.
    pub reconstruction: Reconstruction,
    /// Asked ‖η − M ψ‖ / ‖η‖ of the full system.
    pub tol: f64,
    /// Most iterations.
    pub max_iterations: usize,
    /// How true residuals come in.
    pub correction: Correction,
    /// Whether a solve that stagnates, breaks down or overflows goes on in the next higher precision.
    pub ladder: bool,
    /// Of [`Method::GcrDd`].
    pub schwarz: Schwarz,
    /// Iterations without a new smallest residual that count as stagnation; 0 for no such limit.
    pub stagnation_window: usize,
}

impl<O> Request<O> {
    /// Refuses pairs of precisions that no solver takes.
    pub(super) fn check_precisions(&self) -> Result<(), &'static str> {
        use IterationPrecision as P;
        match (self.outer, self.precision) {
            (P::Double, _) | (P::Single, P::Single | P::Half | P::Fp16) => Ok(()),
            (P::Single, P::Double) => Err("the outer precision must not be below that of the iteration"),
            (P::Half | P::Fp16, _) => Err("the outer precision is double or single"),
        }
    }
    /// BiCGstab in double to 1e-10.
    pub fn new(operator: impl Into<O>) -> Self {
        Request {
            operator: operator.into(),
            method: Method::default(),
            precision: IterationPrecision::default(),
            outer: IterationPrecision::Double,
            reconstruction: Reconstruction::default(),
            tol: 1e-10,
            max_iterations: 10_000,
            correction: Correction::default(),
            ladder: true,
            schwarz: Schwarz::default(),
            stagnation_window: 2000,
        }
    }
}

impl Request<StaggeredParams> {
    /// CG in double to 1e-10.
    pub fn staggered(operator: StaggeredParams) -> Self {
        Request { method: Method::Cg, ..Request::new(operator) }
    }
}
