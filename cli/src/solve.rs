//! `ferrite solve`.
mod result;

pub use result::{advice, announce, worst};

use super::batch::{BatchTask, RIGHT_HAND_SIDE};
use super::device::{Device, DeviceChoice};
use super::fields::Stack;
use super::host_links::{HostLinks, LinksRead};
use super::keys::{SOLVE, SolveFlags};
use super::layout::{Cut, Layout};
use super::method::SolveScheme;
use super::named::NamedFiles;
use super::plan::{self, FermionPlan, RECONSTRUCTIONS, Systems, name_of};
use super::progress::Watch;
use super::setup_file::SetupFile;
use super::{Context, Failure, Outcome, ahead, fields, interrupt, profile, target};
use clap::Args;
use ferrite::FermionKind;
use ferrite::LinkStorage;
use ferrite::domain::Domain;
use ferrite::field::host::{ColourVector, Fermion, HostField, Spinor};
use ferrite::halo::Needs;
use ferrite::operators::OPERATORS;
use ferrite::operators::Operator;
use ferrite::solve::{Configuration, Method, Report, Request, SolveFailure, Solved, in_batches, shifts_in_batches};
use ferrite_inputs::values::{Switch, Text};
use ferrite_inputs::{Given, Input};
use serde::Deserialize;
use serde_json::json;
use solvers::{SolveError, Unsolved};
use std::path::{Path, PathBuf};
use tracing::info;

/// What `--help` ends with.
fn examples() -> String {
    let formulas: String = OPERATORS.iter().map(|one| format!("  {}: {}\n", one.name, one.formula)).collect();
    format!("{EXAMPLES}\n{formulas}{NOTES}")
}

const EXAMPLES: &str = "\
Examples:
  ferrite solve weak.ildg --mass 0.05 --source random:1 -o solution.npy --plot convergence.svg
  ferrite solve --gauge weak.ildg --kappa 0.12 --source point:0,0,0,0,0,0 --source point:0,0,0,0,0,1 \\
      --solver cg --precision half -o solutions.npy
  ferrite solve --gauge weak.ildg --mass 0.05 --source point:0,0,0,0 --sources 12 -o propagator.npy
  ferrite solve --gauge weak.ildg --operator clover --csw 1.2 --mass 0.05 --source random:1 -o solution.npy
  ferrite solve --gauge lat.milc --operator asqtad --u0 plaquette --mass 0.02 --source point:0,0,0,0,0 -o column.npy
  ferrite solve --gauge lat.milc --operator hisq --masses 0.01,0.02,0.05,0.1 --source random:1 --precision half -o all.npy
  ferrite solve --gauge lat.milc --operator hisq --mass 0.005 --source random:1 --sources 16 --solver block-cg -o many.npy
  ferrite solve run.toml --set tol=1e-8

Solves M x = b on all sites:";

const NOTES: &str = "\
On an anisotropic lattice 4 + m is 1 + 3 nu/xi_0 + m, and D/2 is (nu/xi_0 D_space + D_time)/2.
With --shifts s1,s2,... the systems (M^+ M + s) x = b of a staggered operator are solved, with --masses those of M;
multi-shift CG solves all together, then each is refined by itself.
Several right-hand sides are solved together, up to 16 if memory allows, else in smaller batches; --batch says how many.
With --solver block-cg a batch shares one Krylov space: fewer iterations where small eigenvalues slow CG down.
Input files are TOML with the names of the flags as keys (output for -o); flags win over --set, and --set over the file.
Paths are relative to the working directory.

The residual printed is |b - M x| / |b|, computed from the solution in double precision. Without convergence the exit
code is 1 and no solution is written, unless --keep-unconverged asks for the best iterate.";

/// Arguments of `solve`.
#[derive(Args)]
#[command(after_help = examples())]
pub struct SolveArguments {
    /// A configuration, instead of --gauge, or an input file in TOML with the flags as keys, or both; `ferrite init solve` prints an
    /// input with comments
    #[arg(value_name = "FILE")]
    files: Vec<PathBuf>,
    #[command(flatten)]
    flags: SolveFlags,
    /// Change a key of the input file; may be repeated
    #[arg(long, value_name = "KEY=VALUE")]
    set: Vec<String>,
}

/// A solve, resolved and checked as far as that is possible without reading the links.
pub struct Solve {
    /// Operator and fields.
    pub plan: FermionPlan,
    /// The device.
    pub device: DeviceChoice,
    /// The solver.
    pub scheme: SolveScheme,
    keep_unconverged: bool,
    profile: bool,
    save_source: Option<PathBuf>,
    plot: Option<PathBuf>,
}

/// Keys of a solve's further output.
#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "kebab-case")]
struct OutputKeys {
    keep_unconverged: Given<Switch>,
    profile: Given<Switch>,
    save_source: Given<Text>,
    plot: Given<Text>,
}

impl Solve {
    /// Reads an input; lists all mistakes.
    pub fn of(input: &mut Input, what: &str) -> Outcome<Self> {
        let device = DeviceChoice::of(input);
        let plan = FermionPlan::for_solve(input);
        let kind = plan::definition(input).map_or(FermionKind::Wilson, |definition| definition.kind);
        let scheme = SolveScheme::of(input, kind, plan.as_ref().map(FermionPlan::wanted));
        if let Some(plan) = plan.as_ref().filter(|plan| scheme.is_block() && plan.is_multishift()) {
            let several = if matches!(plan.systems, Systems::Shifts(_)) { "shifts" } else { "masses" };
            let other = input.spelled("shift-solver", "sequential");
            let why = format!(
                "multi-shift CG has a Krylov space for each right-hand side: leave out block-cg, or give {other}"
            );
            input.conflict("solver", several, &why);
        }
        let keys: OutputKeys = input.read("");
        let count = plan.as_ref().map_or(1, |plan| plan.sources.len());
        let components = if kind == FermionKind::Staggered { ColourVector::COMPONENTS } else { Spinor::COMPONENTS };
        let save_source = plan::output(input, &keys.save_source, Stack::of_sources(count, components));
        let plot = keys.plot.get().map(PathBuf::from);
        if let Some(Err(why)) = plot.as_deref().map(target::check_svg) {
            input.wrong(&keys.plot, why);
        }
        different_files(input);
        input.finish(what)?;
        let Some(plan) = plan else { return Err(Failure::refused("the settings are incomplete")) };
        let (keep_unconverged, profile) = (keys.keep_unconverged.is_on(), keys.profile.is_on());
        Ok(Solve { plan, device, scheme, keep_unconverged, profile, save_source, plot })
    }
    /// For the library, with the operator on links that have been read.
    pub fn request(&self, operator: Operator, storage: LinkStorage) -> Request {
        self.scheme.request(operator, self.plan.precision, storage)
    }
    /// How `processes` cut the lattice, if they may cut it so.
    pub fn possible(&self, cut: Cut) -> Outcome<Cut> {
        self.scheme.check(self.plan.operator, cut).map(|()| cut)
    }
    /// Device memory at the peak for `nrhs` right-hand sides together, with names for what takes it, as long as the links
    /// have not been seen.
    pub fn memory(&self, cut: Cut, nrhs: usize) -> Needs {
        self.memory_with(cut, nrhs, false)
    }
    /// The same, with multigrid from the start where a setup of an earlier solve is there.
    pub fn memory_with(&self, cut: Cut, nrhs: usize, has_setup: bool) -> Needs {
        let mut request = self.request(self.plan.operator, self.plan.largest_storage());
        if has_setup {
            request.method = Method::MULTIGRID;
        }
        let needs = request.memory(cut.local, &cut.grid, nrhs, self.plan.systems.count().filter(|count| *count > 1));
        self.plan.with_smearing(cut, needs)
    }
    /// *Collective.* Gets links ready on a device, with the multigrid setup of an earlier run.
    pub fn ready<'l>(&self, domain: &Domain, layout: &Layout, links: &'l LinksRead) -> Outcome<ReadySolve<'l>> {
        let mut request = self.request(links.operator, links.storage);
        let configuration = links.links.on(domain)?;
        let setup = match (&self.scheme.setup, links.operator, &links.links) {
            (Some(path), Operator::WilsonLike(operator), HostLinks::Gauge(file)) => {
                if links.storage.temporal {
                    let by = self.plan.read.by;
                    let [setup, storage] = ["setup", "reconstruct"].map(|key| by.spelled(key, ""));
                    let why = format!("{setup} keeps vectors in the gauge of the links: choose a {storage} without t");
                    return Err(Failure::refused(why).shared());
                }
                Some(SetupFile::new(path, layout, operator, &file.gauge, self.plan.read.by)?)
            }
            _ => None,
        };
        if let Some(setup) = &setup {
            setup.load(&configuration, &mut request, self.scheme.asks_for_vectors)?;
        }
        Ok(ReadySolve { configuration, request, setup })
    }
    /// *Collective.* Solves for these sources in batches.
    pub fn solve<F: Fermion>(
        &self,
        device: &Device,
        layout: &Layout,
        links: &LinksRead,
        batched: &BatchedSources<'_, F>,
        watch: &mut Watch,
    ) -> Outcome<Ended<F>> {
        let BatchedSources { sizes, sources, guess } = *batched;
        let result = {
            let domain = layout.domain(device.backend())?;
            let mut ready = self.ready(&domain, layout, links)?;
            let solved = in_batches(sizes, sources, guess, |sources, guess| {
                watch.next_batch(sources.len());
                ready.configuration.solve(sources, guess, &ready.request, watch)
            });
            ready.save_setup()?;
            drop(ready);
            if solved.is_ok() {
                domain.release()?;
            }
            solved
        };
        watch.finish();
        let ended = Ended::of(result)?;
        note_storage_of(links.storage, &ended.report);
        Ok(ended)
    }
}

/// Links of a solve on a device.
pub struct ReadySolve<'l> {
    /// They themselves.
    pub configuration: Configuration<'l>,
    /// What is asked of a solver.
    pub request: Request,
    /// Until it was saved.
    setup: Option<SetupFile>,
}

impl ReadySolve<'_> {
    /// *Collective.* Writes the multigrid setup after the first solve, where that is asked for.
    pub fn save_setup(&mut self) -> Outcome {
        self.setup.take().map_or(Ok(()), |setup| setup.save(&self.configuration))
    }
}

/// Sources with the sizes of the batches in which they are solved.
pub struct BatchedSources<'a, F> {
    /// Right-hand sides of each batch.
    pub sizes: &'a [usize],
    /// All sources.
    pub sources: &'a [HostField<F>],
    /// Where the iterations start; without, from zero.
    pub guess: Option<&'a [HostField<F>]>,
}

/// Solutions, or the best iterates with the reason why there are no better ones.
pub struct Ended<F> {
    /// By right-hand side.
    pub solutions: Vec<HostField<F>>,
    /// What was done.
    pub report: Report,
    /// Why the solver gave up.
    pub error: Option<Unsolved>,
}

impl<F: Fermion> Ended<F> {
    /// Of a solve that began.
    pub fn of(result: Solved<F>) -> Outcome<Self> {
        match result {
            Ok((solutions, report)) => Ok(Ended { solutions, report, error: None }),
            Err(SolveFailure::Unfinished { error, solutions, report }) => {
                Ok(Ended { solutions, report: *report, error: Some(error) })
            }
            Err(failure) => Err(refused(failure)),
        }
    }
}

/// A solve that did not begin.
pub fn refused<F: Fermion>(failure: SolveFailure<F>) -> Failure {
    match failure {
        SolveFailure::Solver(SolveError::Backend(error)) | SolveFailure::Device(error) => error.into(),
        SolveFailure::Solver(error) => Failure::refused(error).shared(),
        SolveFailure::Schwarz(error) => Failure::refused(error).shared(),
        SolveFailure::Multigrid(error) => Failure::refused(error).shared(),
        SolveFailure::Unfinished { error, .. } => Failure::failed(error).shared(),
        failure @ SolveFailure::OutOfRange(_) => Failure::failed(failure).shared(),
    }
}

/// Says so where links are not stored as planned.
fn note_storage(planned: LinkStorage, used: LinkStorage) {
    if planned != used {
        let [planned, used] = [planned, used].map(|format| name_of(&RECONSTRUCTIONS, format));
        info!("some links cannot be reconstructed from {planned} real numbers: {used} are stored");
    }
}

/// The same after a solve, unless an escalation has said so.
pub fn note_storage_of(planned: LinkStorage, report: &Report) {
    if report.escalations.is_empty() {
        note_storage(planned, report.reconstruction);
    }
}

/// Notes output files that are the same.
fn different_files(input: &mut Input) {
    let outputs = ["output", "save-source", "plot", "setup"];
    for (i, first) in outputs.iter().enumerate() {
        for second in &outputs[i + 1..] {
            if let (Some(a), Some(b)) = (input.get(first), input.get(second))
                && target::place(Path::new(a.text())) == target::place(Path::new(b.text()))
            {
                input.conflict(second, first, "the two need different files");
            }
        }
    }
}

/// Collects values from file, `--set` and flags, in this order.
fn input(args: &SolveArguments, files: &NamedFiles, context: &Context) -> Outcome<(Input, String)> {
    let mut input = Input::new(&SOLVE);
    let mut what = "the command line".to_string();
    if let Some(path) = &files.input {
        input.file(path)?;
        what = path.display().to_string();
    }
    input.set(&args.set);
    context.add_to(&mut input);
    args.flags.add_to(&mut input);
    input.configuration(files.configuration.as_deref());
    Ok((input, what))
}

/// Solves, writes and reports.
pub fn run(args: Box<SolveArguments>, context: &Context) -> Outcome {
    let comm = &context.comm;
    // Before files: a value that was not joined to its key with = looks like one.
    comm.agree(Input::new(&SOLVE).only_set(&args.set).map_err(Failure::from))?;
    let files = comm.agree(NamedFiles::of(&args.files, "solve"))?;
    let (mut input, what) = comm.agree(input(&args, &files, context))?;
    let solve = comm.agree(Solve::of(&mut input, &what))?;
    match solve.plan.operator.kind() {
        FermionKind::Wilson => run_on::<Spinor>(&solve, files.input.as_deref(), context),
        FermionKind::Staggered => run_on::<ColourVector>(&solve, files.input.as_deref(), context),
    }
}

/// The same with fields of a kind.
fn run_on<F: Fermion>(solve: &Solve, input: Option<&Path>, context: &Context) -> Outcome {
    let (comm, plan) = (&context.comm, &solve.plan);
    let read = plan.inputs(solve.scheme.guess.as_deref().unwrap_or_default());
    let written = [&plan.output, &solve.save_source, &solve.plot, &solve.scheme.setup];
    let written: Vec<&Path> = written.into_iter().flatten().map(PathBuf::as_path).collect();
    target::claim(comm, &[&read[..], input.as_slice()].concat(), &written)?;
    let device = solve.device.open(comm)?;
    if plan.output.is_none() {
        info!("the solution will not be saved: no output file was requested with -o FILE");
    }
    let layout = plan.cut(&solve.device.layout, comm)?;
    solve.possible(layout.cut())?;
    let nrhs = plan.sources.len();
    let needs = |together: usize| solve.memory(layout.cut(), together);
    let name = format!("the solve on {}", plan.lattice);
    let task = BatchTask { device: &device, comm, name: &name, noun: RIGHT_HAND_SIDE };
    let batches = task.split(solve.scheme.batch, nrhs, needs)?;
    if batches.are_several() {
        info!("{}", batches.describe());
    }
    // Sources, solutions of all systems, and guesses.
    let fields = nrhs * (1 + plan.systems.count().unwrap_or(1) + usize::from(solve.scheme.guess.is_some()));
    let links = if plan.definition().is_improved() { 2 } else { 1 };
    let host = fields * size_of::<F>() + links * 576;
    fields::require_host_memory(comm, layout.local(), host, "sources, solutions and links")?;

    let storage = plan.operator.storage(plan.reconstruction.unwrap_or_default());
    let modules = ahead::modules(plan.definition(), plan.precision, Some(storage), layout.grid().size() > 1);
    let links = device.while_loading(&modules, || LinksRead::of(plan, &layout, comm))?;
    let links = links.smeared(plan, &device, &layout, comm)?;
    let sources = plan.fields::<F>(&plan.sources, &layout)?;
    let guess = solve.scheme.guess.as_deref().map(|fields| plan.fields::<F>(fields, &layout)).transpose()?;
    if let Some(path) = &solve.save_source {
        fields::write_fermions(path, &sources, "source", &layout)?;
    }

    interrupt::listen();
    let mut watch = Watch::new(solve.scheme.tol, context.progress(), json!({ "task": "solve" }), comm);
    let running = profile::Running::start(solve.profile, &device)?;
    let place = (&device, &layout);
    if plan.systems == Systems::One {
        let batched = BatchedSources { sizes: &batches.sizes, sources: &sources, guess: guess.as_deref() };
        let ended = solve.solve(&device, &layout, &links, &batched, &mut watch)?;
        let done = result::Done { place, operator: links.operator, batches: &batches, profile: running.end(&device)? };
        return result::one(context, solve, &done, &ended, &watch);
    }
    let request = solve.request(links.operator, links.storage);
    let solved = {
        let domain = layout.domain(device.backend())?;
        let configuration = links.links.on(&domain)?;
        shifts_in_batches(&batches.sizes, &sources, |sources| match &plan.systems {
            Systems::Masses(masses) => configuration.solve_masses(sources, masses, plan.strategy, &request, &mut watch),
            Systems::Shifts(shifts) => configuration.solve_shifts(sources, shifts, plan.strategy, &request, &mut watch),
            Systems::One => unreachable!("handled above"),
        })
    };
    watch.finish();
    let (solutions, report) = solved.map_err(refused)?;
    note_storage(links.storage, report.reconstruction);
    let done = result::Done { place, operator: links.operator, batches: &batches, profile: running.end(&device)? };
    result::several(context, solve, &done, &solutions, &report)
}
