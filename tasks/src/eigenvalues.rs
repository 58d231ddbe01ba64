//! Smallest and largest eigenvalues of M̂†M̂, where M̂ is the even-odd preconditioned operator on the even sites.
use crate::device::{Device, DeviceChoice};
use crate::host_links::LinksRead;
use crate::keys::SOLVE;
use crate::layout::{Cut, Layout};
use crate::plan::FermionPlan;
use crate::progress::Watch;
use crate::session::Session;
use crate::{Failure, Outcome, named};
use ferrite::field::host::{ColourVector, Spinor};
use ferrite::field::{FieldShape, FullField};
use ferrite::halo::Needs;
use ferrite::operators::{Operator, StaggeredOperator};
use ferrite::solve::{EigenvalueParams, Method, Request, SolveFailure, SpectralBounds};
use ferrite::{FermionKind, LinkStorage, Precision};
use ferrite_inputs::Input;
use ferrite_records::operator::{EigenvaluesLine, EigenvaluesRecord, LargestRecord, SmallestRecord, SpectrumRange};
use ferrite_records::progress::ProgressLine;
use serde::Deserialize;
use solvers::{SmallestEigenvalue, SolveError, SolverParams};
use std::path::{Path, PathBuf};

/// Requested accuracy of eigenvalues, and limits on Lanczos steps and CG iterations.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct EigenvalueSettings {
    /// Requested residual of the Ritz vectors, relative to the eigenvalue.
    pub tol: f64,
    /// Maximum number of Lanczos steps for each of the two eigenvalues.
    pub steps: usize,
    /// Maximum number of CG iterations in a Lanczos step for the smallest eigenvalue.
    pub max_iterations: usize,
    /// Seed of the noise vector from which the Lanczos method starts.
    pub seed: u64,
}

impl Default for EigenvalueSettings {
    fn default() -> Self {
        EigenvalueSettings { tol: 1e-6, steps: 500, max_iterations: 100_000, seed: 1 }
    }
}

impl EigenvalueSettings {
    pub(crate) fn params(&self) -> EigenvalueParams {
        let EigenvalueSettings { tol, steps, max_iterations, .. } = *self;
        // The error of the solutions enters the eigenvalue linearly, but the residual of the Ritz vector enters squared.
        let solver = SolverParams { tol: (1e-3 * tol).max(1e-13), max_iterations, ..Default::default() };
        EigenvalueParams { steps, tol, solver }
    }
}

/// Request for the extreme eigenvalues of an operator on configurations.
pub struct EigenvalueRequest {
    /// File of each configuration, with the operator on its links.
    plans: Vec<(PathBuf, FermionPlan)>,
    device: DeviceChoice,
    settings: EigenvalueSettings,
}

/// Eigenvalues found on one configuration.
pub struct FoundEigenvalues<'a> {
    /// Record of the eigenvalues.
    pub line: &'a EigenvaluesLine,
    /// Bounds on the eigenvalues, from the Lanczos method.
    pub bounds: &'a SpectralBounds,
    /// Text for people that names the operator and the lattice.
    pub headline: String,
}

impl EigenvalueRequest {
    /// *Collective.* Creates the request for the configurations `files`, and reads the header of each. `add` adds the keys of the operator
    /// to the input of a configuration.
    ///
    /// # Errors
    /// All mistakes of the input on the first configuration that has any.
    pub fn read(
        files: &[PathBuf],
        device: DeviceChoice,
        settings: EigenvalueSettings,
        session: &Session,
        add: impl Fn(&mut Input),
    ) -> Outcome<Self> {
        let files = named::all_matches(files, &session.comm)?;
        let plan = |path: PathBuf| {
            let mut input = Input::new(&SOLVE);
            add(&mut input);
            DeviceChoice::of(&mut input);
            input.put("gauge", &[path.display().to_string()], "CONFIGURATION");
            input.put("source", &[format!("random:{}", settings.seed)], "--seed");
            let plan = FermionPlan::for_apply(&mut input);
            input.finish("the command line")?;
            let plan = plan.ok_or_else(|| {
                Failure::refused(
                    "the settings of the operator are incomplete: `ferrite eigenvalues --help` lists the flags",
                )
            })?;
            Ok((path, plan))
        };
        let plans = session.comm.agree(files.into_iter().map(plan).collect::<Outcome<Vec<_>>>())?;
        Ok(EigenvalueRequest { plans, device, settings })
    }
    /// *Collective.* Computes the eigenvalues on each configuration, and calls `each` with them before the next configuration begins.
    ///
    /// # Errors
    /// Too little memory, links that cannot be read, a solver that gives up, a stop, and failures of the device.
    pub fn find(&self, session: &Session, each: impl Fn(&FoundEigenvalues) -> Outcome) -> Outcome<EigenvaluesRecord> {
        let (comm, tol) = (&session.comm, self.settings.tol);
        let device = self.device.open(comm)?;
        session.listen();
        let mut configurations = Vec::new();
        for (path, plan) in &self.plans {
            let layout = plan.cut(&self.device.layout, comm)?;
            device.require_all(comm, &needs(plan, layout.cut()), &format!("the operator on {}", plan.lattice))?;
            let links = LinksRead::of(plan, &layout, comm)?.smeared(plan, &device, &layout, session)?;
            let bounds = self.bounds(path, plan, &links, &layout, &device, session)?;
            let line = line(&bounds, path, plan, &links.operator, &layout);
            let headline = plan.headline(&links.operator);
            each(&FoundEigenvalues { line: &line, bounds: &bounds, headline })?;
            configurations.push(line);
        }
        Ok(EigenvaluesRecord { configurations, tol, backend: device.name().into(), device: device.describe() })
    }
    /// *Collective.* Computes the eigenvalues on links that were read.
    fn bounds(
        &self,
        path: &Path,
        plan: &FermionPlan,
        links: &LinksRead,
        layout: &Layout,
        device: &Device,
        session: &Session,
    ) -> Outcome<SpectralBounds> {
        let params = self.settings.params();
        let mut watch = Watch::new(params.solver.tol, ProgressLine::of("eigenvalues"), session);
        let domain = layout.domain(device.backend())?;
        let configuration = links.links.on(&domain)?;
        let mut start = FullField::zero(&domain, FieldShape::new(plan.operator.kind(), Precision::Double, 1))?;
        match plan.operator.kind() {
            FermionKind::Wilson => start.upload(&plan.fields::<Spinor>(&plan.sources, layout)?)?,
            FermionKind::Staggered => start.upload(&plan.fields::<ColourVector>(&plan.sources, layout)?)?,
        }
        let bounds = configuration.spectral_bounds(&links.operator, &start, &params, &mut watch);
        drop((start, configuration));
        if bounds.is_ok() {
            domain.release()?;
        }
        watch.finish();
        bounds.map_err(|failure| explained(failure, path, plan, session))
    }
}

/// Returns the device memory that the operator needs, by name.
fn needs(plan: &FermionPlan, cut: Cut) -> Needs {
    let request = Request {
        method: Method::CG,
        precision: Precision::Double,
        reconstruction: LinkStorage::FULL,
        ..Request::new(&plan.operator)
    };
    // The estimate is the memory of a solve for three right-hand sides with its final check. It covers CG for one right-hand side and the
    // three vectors of the Lanczos method.
    let needs = request.memory(cut.local, &cut.grid, 3, None);
    plan.with_smearing(cut, needs)
}

/// Returns the failure of the solver for the smallest eigenvalue, with advice.
fn explained(failure: SolveFailure, path: &Path, plan: &FermionPlan, session: &Session) -> Failure {
    match failure {
        SolveFailure::Solver(SolveError::Cancelled { .. }) => {
            session.stopped(format!("{}: interrupted", path.display()))
        }
        SolveFailure::Solver(SolveError::Backend(error)) => error.into(),
        SolveFailure::Solver(why @ (SolveError::Invalid(_) | SolveError::OutOfRange { .. })) => {
            SolveFailure::<Spinor>::Solver(why).into()
        }
        SolveFailure::Solver(why) => {
            let (path, max_iterations) = (path.display(), plan.read.by.spelled("max-iterations", ""));
            let why = format!(
                "{path}: the smallest eigenvalue was not found: {why}; increase {max_iterations}, or choose a larger \
                 quark mass"
            );
            Failure::failed(why).shared()
        }
        other => other.into(),
    }
}

/// Converts an eigenvalue of M†M to the corresponding one of D†D = −D², for staggered operators M = m + ½ D; `None` for Wilson-like
/// operators.
fn of_hops(operator: &Operator, eigenvalue: f64) -> Option<f64> {
    operator.parameters::<StaggeredOperator>().map(|staggered| 4.0 * (eigenvalue - staggered.params.mass.powi(2)))
}

/// Returns the record of the eigenvalues on a configuration.
fn line(
    bounds: &SpectralBounds,
    path: &Path,
    plan: &FermionPlan,
    operator: &Operator,
    layout: &Layout,
) -> EigenvaluesLine {
    let (smallest, largest) = records(bounds);
    let d_dagger_d = of_hops(operator, smallest.value).zip(of_hops(operator, largest.value));
    EigenvaluesLine {
        file: path.into(),
        system: plan.record(operator),
        mass: operator.mass(),
        layout: layout.record(),
        condition: largest.value / smallest.value,
        largest,
        smallest,
        d_dagger_d: d_dagger_d.map(|(smallest, largest)| SpectrumRange { smallest, largest }),
    }
}

/// Returns the records of the smallest and the largest eigenvalue.
pub(crate) fn records(bounds: &SpectralBounds) -> (SmallestRecord, LargestRecord) {
    let (SmallestEigenvalue { ritz, bounds: [low, high], steps, iterations }, largest) =
        (bounds.smallest, bounds.largest);
    let largest = LargestRecord {
        value: largest.ritz,
        low: largest.ritz - largest.residual,
        high: largest.bound(),
        steps: largest.steps,
    };
    (SmallestRecord { value: ritz, low, high, steps, iterations }, largest)
}
