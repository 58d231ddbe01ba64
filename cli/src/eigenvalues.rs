//! `ferrite eigenvalues`.
use super::device::DeviceChoice;
use super::host_links::LinksRead;
use super::keys::OperatorFlags;
use super::keys::SOLVE;
use super::layout::{Cut, Layout};
use super::plan::FermionPlan;
use super::{Context, Failure, Outcome, named, text};
use clap::Args;
use ferrite::field::host::{ColourVector, Fermion, Spinor};
use ferrite::field::{FieldShape, FullField};
use ferrite::halo::Needs;
use ferrite::operators::{Operator, StaggeredOperator};
use ferrite::solve::{EigenvalueParams, Method, Request, SolveFailure, SpectrumEnds};
use ferrite::{FermionKind, LinkStorage, Precision};
use ferrite_inputs::Input;
use ferrite_records::operator::{EigenvaluesLine, EigenvaluesRecord, LargestRecord, SmallestRecord, SpectrumRange};
use ferrite_records::progress::ProgressLine;
use ferrite_tasks::progress::Watch;
use ferrite_tasks::session::Session;
use solvers::{LargestEigenvalue, SmallestEigenvalue, SolveError, SolverParams};
use std::path::{Path, PathBuf};

const EXAMPLES: &str = "\
Examples:
  ferrite eigenvalues cfg.000100.ildg --operator clover --csw 1.2 --mass 0.05
  ferrite eigenvalues run/cfg.*.ildg --operator hisq --mass 0.01 --tol 1e-4

Of K = M^+ M of the even-odd preconditioned operator M on the even sites, as solvers and `ferrite rhmc` have it: for Wilson
fermions M = 1 - kappa^2 D_eo D_oe, for clover 1 - A^-1 D_eo A^-1 D_oe / 4, or with --schur asymmetric A - D_eo A^-1 D_oe / 4.
Of staggered operators it is M^+ M = m^2 - D^2/4 itself, and eigenvalues of D^+ D are told, too. The largest one is found by
the method of Lanczos, the smallest one by the same for K^-1, whose applications are solves by CG in double precision.";

/// Arguments of `eigenvalues`.
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub struct EigenvalueArguments {
    /// Gauge fields in any format
    #[arg(required = true, value_name = "CONFIGURATION")]
    files: Vec<PathBuf>,
    #[command(flatten)]
    flags: OperatorFlags,
    /// How far a Ritz vector may be from an eigenvector, over the eigenvalue [default: 1e-6]
    #[arg(long, value_name = "TOL", value_parser = tolerance, allow_hyphen_values = true)]
    tol: Option<f64>,
    /// Most steps of Lanczos for each of the two [default: 500]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=100_000), allow_hyphen_values = true)]
    steps: Option<u32>,
    /// Most iterations of CG in a step for the smallest [default: 100000]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1_000_000_000), allow_hyphen_values = true)]
    max_iterations: Option<u32>,
    /// Seed of the noise that it begins with [default: 1]
    #[arg(long, value_name = "N", allow_hyphen_values = true)]
    seed: Option<u64>,
}

fn tolerance(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(x) if (1e-12..1.0).contains(&x) => Ok(x),
        _ => Err(format!("'{text}' is not a number from 1e-12 up to, but not including, 1")),
    }
}

/// A configuration and the operator on it.
struct Task {
    path: PathBuf,
    plan: FermionPlan,
}

impl Task {
    fn new(args: &EigenvalueArguments, path: &Path, context: &Context) -> Outcome<Self> {
        let mut input = Input::new(&SOLVE);
        context.add_to(&mut input);
        DeviceChoice::of(&mut input);
        args.flags.add_to(&mut input);
        input.put("gauge", &[path.display().to_string()], "CONFIGURATION");
        input.put("source", &[format!("random:{}", args.seed.unwrap_or(1))], "--seed");
        let plan = FermionPlan::for_apply(&mut input);
        input.finish("the command line")?;
        let plan = plan.ok_or_else(|| Failure::refused("the command line is incomplete"))?;
        Ok(Task { path: path.into(), plan })
    }
    /// Device memory, with names for what takes it.
    fn needs(&self, cut: Cut) -> Needs {
        let request = Request {
            method: Method::CG,
            precision: Precision::Double,
            reconstruction: LinkStorage::FULL,
            ..Request::new(&self.plan.operator)
        };
        // Three vectors of Lanczos beside those of CG, whose own are counted for a solve with its check.
        let needs = request.memory(cut.local, &cut.grid, 3, None);
        self.plan.with_smearing(cut, needs)
    }
}

/// Finds and prints.
pub fn run(args: &EigenvalueArguments, context: &Context) -> Outcome {
    let (comm, choice) = (&context.comm, context.device_choice()?);
    // All headers before the work.
    let files = named::all_matches(&args.files, comm)?;
    let tasks = files.iter().map(|path| Task::new(args, path, context)).collect::<Outcome<Vec<_>>>();
    let tasks = comm.agree(tasks)?;
    let device = choice.open(comm)?;
    context.session.listen();
    let tol = args.tol.unwrap_or(1e-6);
    let solver = SolverParams {
        // What solutions are off by goes into the value as it is, the Ritz vector's residual by its square.
        tol: (1e-3 * tol).max(1e-13),
        max_iterations: args.max_iterations.unwrap_or(100_000) as usize,
        ..Default::default()
    };
    let params = EigenvalueParams { steps: args.steps.unwrap_or(500) as usize, tol, solver };
    let mut lines = Vec::new();
    for task in &tasks {
        let plan = &task.plan;
        let layout = plan.cut(&choice.layout, comm)?;
        device.require_all(comm, &task.needs(layout.cut()), &format!("the operator on {}", plan.lattice))?;
        let links = LinksRead::of(plan, &layout, comm)?.smeared(plan, &device, &layout, &context.session)?;
        let mut watch = Watch::new(params.solver.tol, ProgressLine::of("eigenvalues"), &context.session);
        let ends = {
            let domain = layout.domain(device.backend())?;
            let configuration = links.links.on(&domain)?;
            let mut start = FullField::zero(&domain, FieldShape::new(plan.operator.kind(), Precision::Double, 1))?;
            match plan.operator.kind() {
                FermionKind::Wilson => start.upload(&plan.fields::<Spinor>(&plan.sources, &layout)?)?,
                FermionKind::Staggered => start.upload(&plan.fields::<ColourVector>(&plan.sources, &layout)?)?,
            }
            let ends = configuration.spectrum_ends(&links.operator, &start, &params, &mut watch);
            drop((start, configuration));
            if ends.is_ok() {
                domain.release()?;
            }
            ends
        };
        watch.finish();
        let ends = ends.map_err(|failure| explained(failure, &task.path, &context.session))?;
        lines.push(line(&ends, task, &links.operator, &layout));
        let headline = plan.headline(&links.operator);
        context.output.part(&format!(
            "{}: K of the {headline}, m = {}\n{}",
            task.path.display(),
            text::rounded(links.operator.mass(), 6),
            text_of(&ends, &links.operator, tol)
        ))?;
    }
    let (backend, device) = (device.name().into(), device.describe());
    let record = EigenvaluesRecord { configurations: lines, tol, backend, device };
    context.output.record(&record, String::new)
}

/// What the solver for the smallest eigenvalue did not manage.
fn explained<T: Fermion>(failure: SolveFailure<T>, path: &Path, session: &Session) -> Failure {
    match failure {
        SolveFailure::Solver(SolveError::Cancelled { .. }) => {
            session.stopped(format!("{}: interrupted", path.display()))
        }
        SolveFailure::Solver(SolveError::Backend(error)) => error.into(),
        SolveFailure::Solver(why @ (SolveError::Invalid(_) | SolveError::OutOfRange { .. })) => {
            SolveFailure::<T>::Solver(why).into()
        }
        SolveFailure::Solver(why) => Failure::failed(format!(
            "{}: the smallest eigenvalue: {why}; give --max-iterations more, or a larger --mass",
            path.display()
        ))
        .shared(),
        other => other.into(),
    }
}

/// Of D†D = −D², D without the factor ½ of M = m + ½ D, where M†M has this eigenvalue; none of Wilson-like operators.
fn of_hops(operator: &Operator, eigenvalue: f64) -> Option<f64> {
    operator.parameters::<StaggeredOperator>().map(|staggered| 4.0 * (eigenvalue - staggered.params.mass.powi(2)))
}

/// Returns the record of a configuration.
fn line(ends: &SpectrumEnds, task: &Task, operator: &Operator, layout: &Layout) -> EigenvaluesLine {
    let (SmallestEigenvalue { ritz, bounds: [low, high], steps, iterations }, largest) = (ends.smallest, ends.largest);
    let d_dagger_d = of_hops(operator, ritz).zip(of_hops(operator, largest.ritz));
    EigenvaluesLine {
        file: task.path.clone(),
        system: task.plan.record(operator),
        mass: operator.mass(),
        layout: layout.record(),
        largest: LargestRecord {
            value: largest.ritz,
            low: largest.ritz - largest.residual,
            high: largest.bound(),
            steps: largest.steps,
        },
        smallest: SmallestRecord { value: ritz, low, high, steps, iterations },
        condition: largest.ritz / ritz,
        d_dagger_d: d_dagger_d.map(|(smallest, largest)| SpectrumRange { smallest, largest }),
    }
}

fn text_of(ends: &SpectrumEnds, operator: &Operator, tol: f64) -> String {
    let (SmallestEigenvalue { ritz, bounds, steps, iterations }, largest) = (ends.smallest, ends.largest);
    let LargestEigenvalue { ritz: high, residual, steps: of_largest } = largest;
    let line = |name: &str, text: String| format!("{name:<21}{text}\n");
    let ended = |off: f64, value: f64| if off <= 2.0 * tol * value { "" } else { ", not converged: give more --steps" };
    let mut all = line(
        "largest eigenvalue",
        format!("{high:.9e} ± {residual:.1e}, {}{}", text::count(of_largest, "step"), ended(residual, high)),
    );
    let off = (bounds[1] - ritz).max(ritz - bounds[0]);
    all += &line(
        "smallest eigenvalue",
        format!(
            "{ritz:.9e} ± {off:.1e}, {} with {}{}",
            text::count(steps, "step"),
            text::count(iterations, "iteration"),
            ended(off, ritz)
        ),
    );
    all += &line("condition number", format!("{:.6e}", high / ritz));
    if let Some((low, high)) = of_hops(operator, ritz).zip(of_hops(operator, high)) {
        all += &line("D^+ D", format!("{low:.9e} to {high:.9e}"));
    }
    all
}
