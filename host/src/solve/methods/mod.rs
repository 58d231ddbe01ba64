//! Methods that solve a system: their names, the systems that they suit, their memory, their execution, and the registry of all methods.
//!
//! A request contains its method, and a method reads its request, counts its memory and completes its report. This module therefore needs
//! `request`, `memory`, `choice` and `report`, which in turn need [`Method`].
mod auto;
mod bicgstab;
mod block_cg;
mod cg;
mod cgne;
mod gcr_dd;
mod idr;
mod krylov;
mod multigrid;

use super::formats::Formats;
use super::memory::NeedsScope;
use super::report::{EscalationError, MultigridReport, SolveFailure};
use super::request::{Correction, Request};
use crate::domain::Result;
use crate::field::{DeviceField, FieldSpace};
use crate::halo::{Exchanges, Needs};
use crate::lattice::Lattice;
use crate::operators::Key;
use comms::ProcessGrid;
use gpu_kernels::{FermionKind, LinkStorage, Precision};
use solvers::inverter::TwoSpaces;
use solvers::{Info, LinearOperator, Mixed, Observer, Patience, SolveError, SolverParams};
use std::ops::RangeInclusive;
use std::rc::Rc;
use std::sync::LazyLock;

/// All methods that users can choose, in the order of help texts. The first method for a fermion type is the default of the program.
pub static METHODS: [&Method; 8] = [
    Method::AUTO,
    Method::BICGSTAB,
    Method::IDR,
    Method::CG,
    Method::CGNE,
    Method::BLOCK_CG,
    Method::GCR_DD,
    Method::MULTIGRID,
];

/// Returns the methods that solve for operators of a fermion type, each with its name.
pub fn methods_for(kind: FermionKind) -> Vec<(&'static str, &'static Method)> {
    METHODS.into_iter().filter(|method| method.kinds.contains(&kind)).map(|method| (method.name, method)).collect()
}

/// Returns the reason why a method for general operators does not suit a staggered one.
pub(super) fn not_for_staggered() -> &'static str {
    static WHY: LazyLock<String> = LazyLock::new(|| {
        let titles: Vec<_> = methods_for(FermionKind::Staggered).iter().map(|(_, method)| method.titles[1]).collect();
        format!("staggered operators are solved with {} on M†M: choose one of these methods", titles.join(" or "))
    });
    &WHY
}

/// Parameter of a method that is a whole number within a range.
#[derive(Debug)]
pub struct CountKey {
    /// Key with the name and the description of the parameter.
    pub key: Key,
    /// Range of allowed values.
    pub range: RangeInclusive<usize>,
    /// Default value.
    pub default: usize,
}

/// Values that were given for [`CountKey`]s.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts([Option<(&'static str, usize)>; 4]);

impl Counts {
    /// Sets the value of a parameter.
    ///
    /// # Panics
    /// If there are more values than a method can have parameters.
    pub fn set(&mut self, count: &CountKey, value: usize) {
        let name = count.key.name;
        let place = self.0.iter_mut().find(|place| place.is_none_or(|(known, _)| known == name));
        *place.expect("room for all parameters of a method") = Some((name, value));
    }
    /// Returns the value of a parameter, or its default if no value was given.
    pub fn get(&self, count: &CountKey) -> usize {
        self.0.iter().flatten().find(|(known, _)| *known == count.key.name).map_or(count.default, |(_, value)| *value)
    }
}

/// Definition of a method that users can choose.
pub struct Method {
    /// Name of the method in flags, input files and JSON.
    pub name: &'static str,
    /// Names of the method in sentences: on a general operator, and on a Hermitian positive operator.
    pub titles: [&'static str; 2],
    /// Description in help texts; empty if the name is enough.
    pub help: &'static str,
    /// Parameters of this method, without those that all methods have.
    pub keys: &'static [&'static Key],
    /// Parameters of this method that are whole numbers; [`Request::counts`] holds their values.
    pub counts: &'static [&'static CountKey],
    /// Heading of the method's keys in help texts, if they have one.
    pub heading: Option<&'static str>,
    /// Fermion types of the operators for which the method solves.
    pub kinds: &'static [FermionKind],
    /// Whether the method uses the normal equations if the operator is not Hermitian and positive.
    pub is_normal: bool,
    /// Whether all right-hand sides of a batch share a Krylov space.
    pub is_block: bool,
    /// Whether the method itself restarts from true residuals, so that defect correction around it is useless.
    pub restarts: bool,
    /// Method that takes over if this one cannot be set up or does not converge.
    pub successor: Option<&'static Method>,
    /// Function that returns the patience of the method on a lattice with a given number of sites: the number of iterations without
    /// progress after which the method gives up. The patience applies below double precision, where a higher precision may help.
    pub patience: Option<fn(usize) -> Patience>,
    /// Function that checks whether the method can work on parts of the lattice with these extents; the error is the reason if it cannot.
    pub check: fn(&Request, Lattice, &ProcessGrid) -> std::result::Result<(), SolveFailure>,
    /// Function that returns the number of vectors of the iteration.
    pub(super) vectors: fn(&Request) -> usize,
    /// Function that returns the device memory of the method in addition to vectors of the solver.
    pub(super) needs: fn(&Request, &NeedsScope<'_>) -> Needs,
    /// Function that adds the exchanges of the method to those of the operator, for batches of a number of right-hand sides.
    pub(super) exchanges: fn(&Request, Exchanges, Lattice, &ProcessGrid, usize) -> Exchanges,
    /// Function that returns the formats with which the method begins if these formats are requested; the flag is set if the method was
    /// chosen automatically.
    pub(super) first_level: fn(PrecisionLevel, bool) -> PrecisionLevel,
    /// *Collective.* Function that chooses the method with which a solve begins; `None` if the method does not choose among others.
    pub(super) choose: Option<Choose>,
    /// *Collective.* Function that prepares the method for an operator with links in this storage. The observer receives the steps of a
    /// setup.
    pub(crate) prepare: Prepare,
}

type Choose = fn(&dyn Formats, &Request) -> Result<&'static Method>;
type Prepare = fn(
    &dyn Formats,
    &Request,
    LinkStorage,
    &mut dyn Observer,
) -> std::result::Result<Box<dyn PreparedMethod>, EscalationError>;

impl Method {
    /// Whether the method has a parameter with this name among its own [`keys`](Self::keys).
    pub fn has_key(&self, name: &str) -> bool {
        self.keys.iter().any(|key| key.name == name)
    }
    /// Whether the method chooses among other methods.
    pub fn is_choice(&self) -> bool {
        self.choose.is_some()
    }
    /// Krylov method on a general operator, without parameters of its own.
    const KRYLOV: Method = Method {
        name: "",
        titles: [""; 2],
        help: "",
        keys: &[],
        counts: &[],
        heading: None,
        kinds: &[FermionKind::Wilson],
        is_normal: false,
        is_block: false,
        restarts: false,
        successor: None,
        patience: None,
        check: |_, _, _| Ok(()),
        vectors: |_| 0,
        needs: |_, _| Vec::new(),
        exchanges: |_, all, _, _, _| all,
        first_level: |level, _| level,
        choose: None,
        prepare: |_, _, _, _| Err(SolveError::Invalid("the method does not exist")),
    };
}

impl std::fmt::Debug for Method {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name)
    }
}
/// Methods are compared by their names.
impl PartialEq for Method {
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name
    }
}
impl Eq for Method {}

/// Method prepared for an operator.
pub(crate) trait PreparedMethod {
    /// Solves from the present solution in `x`, and writes the new solution to `x`.
    fn iterate(
        &self,
        pair: &OperatorPair,
        rhs: &DeviceField,
        x: &mut DeviceField,
        limits: &Limits<'_>,
        observer: &mut dyn Observer,
    ) -> std::result::Result<Info, EscalationError>;
    /// Returns the multigrid report of a solve that took this many iterations and seconds; `None` without multigrid.
    fn multigrid_report(&self, _iterations: usize, _seconds: f64) -> Option<MultigridReport> {
        None
    }
}

/// Operator in the two precisions of a solver.
pub(crate) struct OperatorPair<'a> {
    pub level: PrecisionLevel,
    pub outer_space: FieldSpace,
    pub outer: Rc<dyn LinearOperator<FieldSpace> + 'a>,
    pub sloppy_space: FieldSpace,
    pub sloppy: Rc<dyn LinearOperator<FieldSpace> + 'a>,
    /// Lower bound of the eigenvalues if the operator is Hermitian and positive; `None` for other operators.
    pub positive: Option<f64>,
    /// Whether the operator is the adjoint of the one for which the method was prepared.
    pub adjoint: bool,
}

impl OperatorPair<'_> {
    /// Returns the system in the form that solvers take.
    pub(crate) fn mixed(&self) -> TwoSpaces<'_, FieldSpace, FieldSpace> {
        let [outer, sloppy]: [&dyn LinearOperator<FieldSpace>; 2] = [&*self.outer, &*self.sloppy];
        Mixed::new(&self.outer_space, outer, &self.sloppy_space, sloppy)
    }
}

/// Limits for one run of a method.
pub(crate) struct Limits<'a> {
    /// Requested residual, relative to the right-hand side.
    pub tol: f64,
    /// Maximum number of iterations of this run.
    pub max_iterations: usize,
    /// Iterations without progress after which the method gives up, in addition to [`Request::stagnation_window`].
    pub patience: Option<Patience>,
    /// Request with all other parameters.
    pub request: &'a Request,
}

impl Limits<'_> {
    /// Returns the parameters of a solver with reliable updates.
    fn params(&self, delta: Option<f64>) -> SolverParams {
        let Limits { tol, max_iterations, patience, request } = *self;
        let stagnation_window = Some(request.stagnation_window);
        SolverParams { tol, max_iterations, delta, stagnation_window, patience, ..Default::default() }
    }
    /// Returns the parameters of a solver that itself restarts from true residuals. δ is `default_delta` if the request gives none.
    fn restarting_params(&self, default_delta: Option<f64>) -> std::result::Result<SolverParams, EscalationError> {
        match self.request.correction {
            Correction::Reliable { delta } => Ok(self.params(delta.or(default_delta))),
            Correction::Defect { .. } => Err(SolveError::Invalid(
                "GCR restarts from true residuals and does not support defect correction: choose reliable updates",
            )),
        }
    }
}

/// Formats of one level of precision escalation.
#[derive(Clone, Copy, PartialEq)]
pub(crate) struct PrecisionLevel {
    pub outer: Precision,
    pub precision: Precision,
    pub reconstruction: LinkStorage,
}

impl PrecisionLevel {
    /// Returns the next level of precision escalation; `None` after the last one. The order is: iteration in 16-bit floating point, in
    /// 16-bit fixed point, and in single precision; true residuals in double precision; iteration in double precision; links with all
    /// reals. If `half_links` is set, the operator may have links of 16 bits beside fields in single precision. Single precision then
    /// begins with such links, and continues with fat links of 21 bits.
    pub fn next(self, half_links: bool) -> Option<PrecisionLevel> {
        use Precision as P;
        match self {
            PrecisionLevel { precision: P::Fp16, .. } => Some(PrecisionLevel { precision: P::Half, ..self }),
            // Staggered operators keep 16-bit links at first, because CG in half precision fails due to the rounding of vectors, not of
            // links.
            PrecisionLevel { precision: P::Half, .. } => {
                let reconstruction = self.reconstruction.half(half_links);
                Some(PrecisionLevel { precision: P::Single, reconstruction, ..self })
            }
            PrecisionLevel { precision: P::Single, .. } if self.reconstruction.half => {
                let storage = self.reconstruction;
                let reconstruction = if storage.fine { storage.half(false) } else { storage.in_fine() };
                Some(PrecisionLevel { reconstruction, ..self })
            }
            PrecisionLevel { outer: P::Single, .. } => Some(PrecisionLevel { outer: P::Double, ..self }),
            PrecisionLevel { precision: P::Single, .. } => Some(PrecisionLevel { precision: P::Double, ..self }),
            PrecisionLevel { reconstruction: LinkStorage { reals: 18, .. }, .. } => None,
            _ => Some(PrecisionLevel { reconstruction: LinkStorage::FULL, ..self }),
        }
    }
}
