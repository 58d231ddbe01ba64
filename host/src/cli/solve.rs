//! `ferrite solve`.
use super::batch::{Batches, RIGHT_HAND_SIDE};
use super::device::{Device, DeviceChoice};
use super::fields::Source;
use super::layout::Layout;
use super::method::{MethodFlags, Scheme};
use super::plan::{self, PRECISIONS, Plan, RECONSTRUCTIONS, name_of};
use super::plot;
use super::profile::{self, Profile};
use super::progress::Watch;
use super::world::World;
use super::{Code, Context, Failure, Outcome, ahead, fields, interrupt, staggered, target, text};
use crate::config::Settings;
use clap::Args;
use ferrite::dirac::TimeBoundary;
use ferrite::field::host::HostSpinor;
use ferrite::files::{GaugeFile, ReadOptions};
use ferrite::solve::{Climb, Configuration, LinkStorage, Precision, Report, Request, SolveFailure, in_batches};
use serde_json::{Value, json};
use solvers::{Info, SolveError, Unsolved};
use std::path::{Path, PathBuf};
use tracing::{debug, info, warn};

const EXAMPLES: &str = "\
Examples:
  ferrite solve --gauge weak.ildg --mass 0.05 --source random:1 -o solution.npy --plot convergence.svg
  ferrite solve --gauge weak.ildg --kappa 0.12 --source point:0,0,0,0,0,0 --source point:0,0,0,0,0,1 \\
      --solver cg --precision half -o solutions.npy
  ferrite solve --gauge weak.ildg --mass 0.05 --source point:0,0,0,0 --sources 12 -o propagator.npy
  ferrite solve --gauge weak.ildg --operator clover --csw 1.2 --mass 0.05 --source random:1 -o solution.npy
  ferrite solve --gauge lat.milc --operator asqtad --u0 plaquette --mass 0.02 --source point:0,0,0,0,0 -o column.npy
  ferrite solve --gauge lat.milc --operator hisq --masses 0.01,0.02,0.05,0.1 --source random:1 --precision half -o all.npy
  ferrite solve --gauge lat.milc --operator hisq --mass 0.005 --source random:1 --sources 16 --solver block-cg -o many.npy
  ferrite solve run.toml --set tol=1e-8

Solves M x = b with M = (4 + m) - D/2 on all sites, kappa = 1 / (2 (4 + m)), gamma matrices in the DeGrand-Rossi basis.
On an anisotropic lattice M = (1 + 3 nu/xi_0 + m) - (nu/xi_0 D_space + D_time)/2.
The clover operator adds i/2 sum_{mu<nu} c sigma F to M, with c = csw / u0^3 in all planes, or with Chroma's
coefficients c = CR/xi_0 in the spatial and c = CT in the temporal planes.
Staggered operators are M = m + D/2, half of MILC's 2m + D. With --shifts s1,s2,... the systems (M^+ M + s) x = b are
solved, with --masses those of M; multi-shift CG solves all together, then each is refined by itself.
Several right-hand sides are solved together, up to 16 if memory allows, else in smaller batches; --batch says how many.
With --solver block-cg a batch shares one Krylov space: fewer iterations where small eigenvalues slow CG down.
Input files are TOML with the names of the flags as keys (output for -o); flags win over --set, and --set over the file.
Paths are relative to the working directory.

The residual printed is |b - M x| / |b|, computed from the solution in double precision. Without convergence the exit
code is 1 and no solution is written, unless --keep-unconverged asks for the best iterate.";

/// Flags of the operator and its fields, as typed.
#[derive(Args)]
pub struct OperatorFlags {
    /// The configuration
    #[arg(long, value_name = "FILE")]
    gauge: Option<String>,
    /// The Dirac operator: wilson, clover, staggered (naive), asqtad or hisq [default: wilson]
    #[arg(long, value_name = "NAME")]
    operator: Option<String>,
    /// Bare mass in lattice units
    #[arg(long, value_name = "M", allow_hyphen_values = true)]
    mass: Option<String>,
    /// Hopping parameter, instead of the mass
    #[arg(long, value_name = "K", allow_hyphen_values = true)]
    kappa: Option<String>,
    /// Fermions at the end of the lattice in t: antiperiodic or periodic [default: antiperiodic]
    #[arg(long, value_name = "NAME")]
    bc_time: Option<String>,
    /// Bare anisotropy xi_0, the ratio of the lattice spacings in space and time [default: 1]
    #[arg(long, value_name = "XI", allow_hyphen_values = true)]
    xi: Option<String>,
    /// Bare velocity of light nu: hops in space are multiplied by nu / xi_0 [default: 1]
    #[arg(long, value_name = "NU", allow_hyphen_values = true)]
    nu: Option<String>,
    /// Tadpole factor of clover, whose coefficients are csw / u0^3, and of asqtad, whose paths of n links are divided by
    /// u0^(n-1) and which also takes 'plaquette', the fourth root of the mean plaquette [default: 1]
    #[arg(long, value_name = "U", allow_hyphen_values = true)]
    u0: Option<String>,
    /// Clover coefficient c_sw, the same in all planes
    #[arg(long, value_name = "C", help_heading = "Clover operator", allow_hyphen_values = true)]
    csw: Option<String>,
    /// Chroma's clovCoeffR, instead of csw: the spatial planes have CR / xi_0
    #[arg(long, value_name = "CR", help_heading = "Clover operator", allow_hyphen_values = true)]
    clover_r: Option<String>,
    /// Chroma's clovCoeffT, the coefficient of the temporal planes
    #[arg(long, value_name = "CT", help_heading = "Clover operator", allow_hyphen_values = true)]
    clover_t: Option<String>,
    /// point:x,y,z,t,spin,colour (without spin for staggered operators), random:SEED, random:SEED,NUMBER (another of the
    /// noise vectors of a seed, from 0), or file:PATH; repeat it for several right-hand sides
    #[arg(long, value_name = "SOURCE")]
    source: Vec<String>,
    /// Right-hand sides from one source: with point:x,y,z,t its components, 12 or, of staggered quarks, 3; with random:SEED
    /// so many noise vectors
    #[arg(long, value_name = "N", allow_hyphen_values = true)]
    sources: Option<String>,
    /// double, single, half or fp16 [default: double]
    #[arg(long, value_name = "NAME")]
    precision: Option<String>,
    /// Reals kept of a link: 18, 12 or 8; 12t or 8t in temporal gauge, for Wilson fermions; of long staggered links also
    /// 13 or 9, for HISQ; 18h, 12h, 8h, 13h or 9h in 16 bits beside fields in single precision, for staggered ones
    /// [default: 12 if the links are in SU(3), 13 for HISQ]
    #[arg(long, value_name = "N")]
    reconstruct: Option<String>,
    /// The result: .npy, or .lime for one field
    #[arg(short, long, value_name = "FILE")]
    output: Option<String>,
    /// Extents, for a gauge file that does not tell them
    #[arg(long, value_name = "X,Y,Z,T", help_heading = "Reading the configuration")]
    lattice: Option<String>,
    /// Which field of a LIME file with several, from 0
    #[arg(long, value_name = "N", help_heading = "Reading the configuration")]
    record: Option<String>,
    /// Accept a file whose checksum, plaquette, link trace or length is not as its header says
    #[arg(long, help_heading = "Reading the configuration")]
    no_verify: bool,
    /// Accept links that are not in SU(3)
    #[arg(long, help_heading = "Reading the configuration")]
    allow_non_unitary: bool,
    /// Project the links to SU(3) after reading
    #[arg(long, help_heading = "Reading the configuration")]
    reunitarise: bool,
}

impl OperatorFlags {
    /// Adds the flags to the settings.
    pub fn add_to(&self, settings: &mut Settings) {
        let texts = [
            ("gauge", &self.gauge),
            ("operator", &self.operator),
            ("mass", &self.mass),
            ("kappa", &self.kappa),
            ("bc-time", &self.bc_time),
            ("xi", &self.xi),
            ("nu", &self.nu),
            ("csw", &self.csw),
            ("u0", &self.u0),
            ("clover-r", &self.clover_r),
            ("clover-t", &self.clover_t),
            ("sources", &self.sources),
            ("precision", &self.precision),
            ("reconstruct", &self.reconstruct),
            ("output", &self.output),
            ("lattice", &self.lattice),
            ("record", &self.record),
        ];
        for (key, value) in texts {
            settings.flag(key, value.as_deref());
        }
        settings.flags("source", &self.source);
        settings.switch("no-verify", self.no_verify);
        settings.switch("allow-non-unitary", self.allow_non_unitary);
        settings.switch("reunitarise", self.reunitarise);
    }
}

/// Arguments of `solve`.
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub struct Arguments {
    /// An input file in TOML, with the flags as keys: `ferrite init solve` prints one with comments
    input: Option<PathBuf>,
    #[command(flatten)]
    operator: OperatorFlags,
    /// The even-odd preconditioned clover operator: symmetric or asymmetric [default: symmetric]
    #[arg(long, value_name = "NAME", help_heading = "Clover operator")]
    schur: Option<String>,
    #[command(flatten)]
    staggered: staggered::Flags,
    #[command(flatten)]
    method: MethodFlags,
    /// Write the best iterate even if it has not converged
    #[arg(long)]
    keep_unconverged: bool,
    /// Write the sources, in the same formats as the result
    #[arg(long, value_name = "FILE")]
    save_source: Option<String>,
    /// Draw the residual against the iteration
    #[arg(long, value_name = "FILE.svg")]
    plot: Option<String>,
    /// Say how long each kernel ran; the solve takes a little longer
    #[arg(long)]
    profile: bool,
    /// Change a key of the input file; may be repeated
    #[arg(long, value_name = "KEY=VALUE")]
    set: Vec<String>,
}

/// A solve, resolved and checked as far as that is possible without reading the links.
pub struct Solve {
    /// Operator and fields.
    pub plan: Plan,
    /// The device.
    pub device: DeviceChoice,
    /// The solver.
    pub scheme: Scheme,
    keep_unconverged: bool,
    profile: bool,
    save_source: Option<PathBuf>,
    plot: Option<PathBuf>,
}

impl Solve {
    /// Resolves the settings; lists all mistakes.
    pub fn from_settings(settings: &mut Settings, what: &str) -> Outcome<Self> {
        let device = DeviceChoice::from_settings(settings);
        let plan = Plan::from_settings(settings);
        let fields = plan.as_ref().map_or(1, |plan| plan.sources.len());
        let scheme = Scheme::from_settings(settings, plan.as_ref());
        let keep_unconverged = settings.is_on("keep-unconverged");
        let profile = settings.is_on("profile");
        let save_source = plan::output(settings, "save-source", fields);
        let plot = settings.parsed("plot", |path| {
            let path = PathBuf::from(path);
            target::check_svg(&path).map(|()| path)
        });
        different_files(settings);
        settings.finish(what)?;
        let Some(plan) = plan else { return Err(Failure::refused("the settings are incomplete")) };
        Ok(Solve { plan, device, scheme, keep_unconverged, profile, save_source, plot })
    }
    /// For the library.
    pub fn request(&self, reconstruction: LinkStorage) -> Request {
        self.scheme.request(self.plan.operator, self.plan.precision, reconstruction)
    }
}

/// Notes output files that are the same.
pub fn different_files(settings: &mut Settings) {
    let outputs = ["output", "save-source", "plot"];
    for (i, first) in outputs.iter().enumerate() {
        for second in &outputs[i + 1..] {
            if let (Some(a), Some(b)) = (settings.get(first), settings.get(second))
                && target::place(Path::new(a.text())) == target::place(Path::new(b.text()))
            {
                settings.conflict(second, first, "the two need different files");
            }
        }
    }
}

/// How far off SU(3) links may be before dropping third rows changes the problem more than the precision does.
fn off_su3_limit(precision: Precision) -> f64 {
    match precision {
        Precision::Double => 1e-12,
        Precision::Single => 1e-6,
        Precision::Half => 1e-4,
        Precision::Fp16 => 1e-3,
    }
}

/// Twelve reals if the links allow it; refuses fewer than 18 that were asked for where they do not.
pub fn reconstruction(plan: &Plan, file: &GaugeFile) -> Outcome<LinkStorage> {
    allowed_reconstruction(&plan.gauge, &plan.read.options, plan.precision, plan.reconstruction, file)
}

/// The same for links of any operator.
pub fn allowed_reconstruction(
    path: &Path,
    read: &ReadOptions,
    precision: Precision,
    asked: Option<LinkStorage>,
    file: &GaugeFile,
) -> Outcome<LinkStorage> {
    // Projected links are in SU(3), whatever the file's were.
    let off = if read.reunitarise { 0.0 } else { file.unitarity.violation };
    let short = asked.is_some_and(|storage| storage.half);
    let limit = off_su3_limit(if short { Precision::Half } else { precision });
    let (path, precision) = (path.display(), name_of(&PRECISIONS, precision));
    let far =
        format!("{path}: links are off SU(3) by {off:.1e}, reconstruction in {precision} precision allows {limit:.0e}");
    match asked {
        Some(asked) if asked.reals != 18 && off > limit => {
            Err(Failure::refused(format!("{far}; use --reconstruct 18, or --reunitarise to project them")).shared())
        }
        Some(asked) => Ok(asked),
        None if off > limit => {
            info!("{far}: all 18 reals of a link are kept");
            Ok(LinkStorage::FULL)
        }
        None => Ok(LinkStorage::of(12)),
    }
}

/// *Collective.* Reads the links and makes the sources.
pub fn inputs(plan: &Plan, layout: &Layout, world: &World) -> Outcome<(GaugeFile, Vec<HostSpinor>)> {
    let file = fields::read_gauge(&plan.gauge, &plan.read, layout, world)?;
    debug!("{}: plaquette {:.10}, {}", plan.gauge.display(), file.plaquette.mean, plan.lattice());
    let sources: Outcome<Vec<_>> = plan.sources.iter().map(|source| source.field(layout)).collect();
    Ok((file, sources?))
}

/// Collects settings from file, `--set` and flags, in this order.
fn settings(args: &Arguments, context: &Context) -> Outcome<(Settings, String)> {
    let mut settings = Settings::default();
    let mut what = "the command line".to_string();
    if let Some(path) = &args.input {
        settings.file(path)?;
        what = path.display().to_string();
    }
    settings.set(&args.set);
    context.add_to(&mut settings);
    args.operator.add_to(&mut settings);
    args.method.add_to(&mut settings);
    args.staggered.add_to(&mut settings);
    let texts = [("schur", &args.schur), ("save-source", &args.save_source), ("plot", &args.plot)];
    for (key, value) in texts {
        settings.flag(key, value.as_deref());
    }
    settings.switch("keep-unconverged", args.keep_unconverged);
    settings.switch("profile", args.profile);
    Ok((settings, what))
}

/// Solves, writes and reports.
pub fn run(args: Box<Arguments>, context: &Context) -> Outcome {
    let world = &context.world;
    let (mut settings, what) = world.agree(settings(&args, context))?;
    if staggered::is_chosen(&settings) {
        return staggered::solve(&mut settings, &what, context);
    }
    let solve = world.agree(Solve::from_settings(&mut settings, &what))?;
    let plan = &solve.plan;
    let device = solve.device.open(world)?;
    if plan.output.is_none() {
        info!("the solution is not kept: there is no -o FILE");
    }
    let layout = solve.device.layout.cut(world, plan.lattice(), 1)?;
    solve.scheme.check(layout.cut())?;
    // As long as the links have not been seen: that of 18 reals, the most.
    let largest = solve.request(plan.reconstruction.unwrap_or(LinkStorage::FULL));
    let nrhs = plan.sources.len();
    let needs = |together: usize| largest.memory(layout.local(), layout.grid(), together);
    let task = format!("the solve on {}", plan.lattice());
    let batches = solve.scheme.batch.on((&device, world), nrhs, needs, (&task, RIGHT_HAND_SIDE))?;
    if batches.are_several() {
        info!("{}", batches.describe());
    }
    // Sources and solutions, and guesses.
    let fields = if solve.scheme.guess.is_some() { 3 } else { 2 };
    let host = fields * nrhs * 192 + 576;
    fields::require_host_memory(world, layout.local(), host, "sources, solutions and links")?;

    let modules = ahead::for_spinors(plan.operator, (plan.precision, plan.reconstruction), layout.grid().size() > 1);
    let (file, sources) = device.while_loading(&modules, || inputs(plan, &layout, world))?;
    let reconstruction = reconstruction(plan, &file)?;
    let request = solve.request(reconstruction);
    let guess = solve.scheme.guess.as_ref().map(|fields| fields.iter().map(|g| g.field(&layout)).collect());
    let guess: Option<Vec<_>> = guess.transpose()?;
    if let Some(path) = &solve.save_source {
        fields::write_fermions(path, &sources, "source", &layout)?;
    }

    interrupt::listen();
    let mut watch = Watch::new(solve.scheme.tol, context.shows_progress(), world);
    let running = profile::Running::start(solve.profile, &device)?;
    let result = {
        let backend = device.backend();
        let domain = layout.domain(backend)?;
        let configuration = Configuration::new(&domain, &file.gauge);
        in_batches(&batches.sizes, &sources, guess.as_deref(), |sources, guess| {
            watch.next_batch(sources.len());
            configuration.solve(sources, guess, &request, &mut watch)
        })
    };
    watch.finish();
    let (solutions, report, error) = ended(result)?;
    let profile = running.end(&device)?;
    announce(&report);
    if report.climbs.is_empty() && report.reconstruction != reconstruction {
        let (asked, used) =
            (name_of(&RECONSTRUCTIONS, reconstruction), name_of(&RECONSTRUCTIONS, report.reconstruction));
        info!("{asked} reals do not tell some of these links: {used} were kept");
    }
    let mut written = None;
    if let Some(path) = &plan.output
        && (report.converged || solve.keep_unconverged)
    {
        let title =
            format!("solution of the {} equation, kappa = {}", plan.operator.name(), plan.operator.wilson().kappa());
        fields::write_fermions(path, &solutions, &title, &layout)?;
        written = Some(path);
    }
    if let Some(path) = &solve.plot {
        let boundary = match plan.operator.wilson().boundary {
            TimeBoundary::Antiperiodic => "antiperiodic",
            TimeBoundary::Periodic => "periodic",
        };
        let picture = plot::Convergence {
            title: format!(
                "{} operator on {}, m = {:.6}, {boundary}",
                plan.operator.name(),
                plan.lattice(),
                plan.operator.wilson().mass
            ),
            subtitle: solve.scheme.describe(&report),
            history: histories(&solve.scheme, &report, &watch),
            updates: &watch.updates,
            tol: solve.scheme.tol,
        };
        world.once(|| plot::write(path, &picture).map_err(Failure::failed))?;
    }
    print(context, &solve, (&device, &layout), (&report, &batches, &profile), written)?;
    end(plan.output.as_ref(), solve.scheme.tol, &report, error.as_ref(), written)
}

/// Residuals by right-hand side, with the iterations that they belong to.
pub fn histories(scheme: &Scheme, report: &Report, watch: &Watch) -> Vec<Vec<(usize, f64)>> {
    let one = |(j, history): (usize, &Vec<f64>)| scheme.iterations_of(history, &watch.iterations_of_updates(j));
    report.info.history.iter().enumerate().map(one).collect()
}

/// A line for each of several right-hand sides.
pub fn lines(sources: &[Source], report: &Report) -> String {
    if sources.len() < 2 {
        return String::new();
    }
    let each = report.info.iterations_per_rhs.iter().zip(&report.true_residual);
    let line = |(source, (iterations, residual)): (&Source, (&usize, &f64))| {
        format!("  {source}: {}, {residual:.3e}\n", text::count(*iterations, "iteration"))
    };
    sources.iter().zip(each).map(line).collect()
}

/// The result, as text or JSON.
fn print(
    context: &Context,
    solve: &Solve,
    (device, layout): (&Device, &Layout),
    (report, batches, profile): (&Report, &Batches, &Profile),
    written: Option<&PathBuf>,
) -> Outcome {
    let (plan, info) = (&solve.plan, &report.info);
    let operator = plan.operator.wilson();
    let worst = worst(report);
    let object = json!({
        "converged": report.converged,
        "iterations": info.iterations,
        "iterations_per_source": info.iterations_per_rhs,
        "true_residual": worst,
        "true_residuals": report.true_residual,
        "tol": solve.scheme.tol,
        "seconds": report.seconds,
        "total_seconds": report.total_seconds,
        "gflops": report.gflops,
        "backend": device.name(),
        "device": device.describe(),
        "lattice": plan.lattice().size(),
        "layout": layout.describe(),
        "operator": plan.operator_name(),
        "mass": operator.mass,
        "kappa": operator.kappa(),
        "xi": operator.anisotropy.xi,
        "nu": operator.anisotropy.nu,
        "clover": plan.clover(),
        "sources": plan.sources.iter().map(|s| s.to_string()).collect::<Vec<_>>(),
        "solver": solve.scheme.solver(),
        "precision": name_of(&PRECISIONS, report.precision),
        "outer": name_of(&PRECISIONS, report.outer),
        "correction": solve.scheme.correction(),
        "climbs": climbs(&report.climbs),
        "reconstruct": name_of(&RECONSTRUCTIONS, report.reconstruction),
        "reductions": info.reductions,
        "reliable_updates": info.reliable_updates,
        "restarts": info.restarts,
        "applications": applications(info),
        "history": info.history,
        "output": written,
        "plot": solve.plot,
    });
    let object = staggered::merged(object, [batches.json(), profile.json()]);
    context.output.result("ferrite.solve/1", object, || {
        let mut text = format!(
            "{} operator on {}, m = {:.6} (kappa = {:.8}), {}\n{}\n{} after {}, {}\n\
             true residual |b - Mx| / |b| = {worst:.3e} (asked: {:.0e})\n",
            plan.operator.name(),
            plan.lattice(),
            operator.mass,
            operator.kappa(),
            batches.describe(),
            solve.scheme.describe(report),
            if report.converged { "converged" } else { "NOT converged" },
            text::count(info.iterations, "iteration"),
            text::count(info.reliable_updates, "reliable update"),
            solve.scheme.tol
        );
        text += &lines(&plan.sources, report);
        text += &format!("{:.3} s, {:.1} GFLOP/s on {}\n", report.seconds, report.gflops, device.describe());
        text += &profile.table(context);
        if let Some(path) = written {
            text += &format!("solution: {}\n", path.display());
        }
        if let Some(path) = &solve.plot {
            text += &format!("plot: {}\n", path.display());
        }
        text
    })
}

/// How often the even-odd operator was applied, for JSON.
pub fn applications(info: &Info) -> Value {
    json!({
        "precise": info.precise_applications,
        "sloppy": info.sloppy_applications,
        "in_domains": info.preconditioner.local_applications,
    })
}

/// Warns of steps up the ladder of precisions.
pub fn announce(report: &Report) {
    for climb in &report.climbs {
        warn!(
            "after {}: {}; went on with {} in {} precision, recon {}",
            text::count(climb.iterations, "iteration"),
            climb.reason,
            name_of(&PRECISIONS, climb.precision),
            name_of(&PRECISIONS, climb.outer),
            name_of(&RECONSTRUCTIONS, climb.reconstruction)
        );
    }
}

/// Solutions, or the best iterates with the reason why there are no better ones.
pub type Ended = (Vec<HostSpinor>, Report, Option<Unsolved>);

/// How a solve ended that began.
pub fn ended(result: Result<(Vec<HostSpinor>, Report), SolveFailure>) -> Outcome<Ended> {
    match result {
        Ok((solutions, report)) => Ok((solutions, report, None)),
        Err(SolveFailure::Unfinished { error, solutions, report }) => Ok((solutions, *report, Some(error))),
        Err(SolveFailure::Solver(SolveError::Backend(error)) | SolveFailure::Device(error)) => Err(error.into()),
        Err(SolveFailure::Solver(error)) => Err(Failure::refused(error).shared()),
        Err(SolveFailure::Schwarz(error)) => Err(Failure::refused(error).shared()),
    }
}

/// The steps up the ladder of precisions for JSON.
pub fn climbs(climbs: &[Climb]) -> Vec<Value> {
    let one = |climb: &Climb| {
        json!({
            "iterations": climb.iterations,
            "reason": climb.reason.to_string(),
            "precision": name_of(&PRECISIONS, climb.precision),
            "outer": name_of(&PRECISIONS, climb.outer),
            "reconstruct": name_of(&RECONSTRUCTIONS, climb.reconstruction),
        })
    };
    climbs.iter().map(one).collect()
}

/// The largest true residual, NaN if there is one.
pub fn worst(report: &Report) -> f64 {
    solvers::worst_residual(&report.true_residual)
}

/// The exit code and its sentence.
pub fn end(
    output: Option<&PathBuf>,
    tol: f64,
    report: &Report,
    error: Option<&Unsolved>,
    written: Option<&PathBuf>,
) -> Outcome {
    if report.converged {
        return Ok(());
    }
    let kept = match (output, written) {
        (_, Some(path)) => {
            warn!("{} holds the best iterate, which is not a solution", path.display());
            format!("the best iterate is in {}", path.display())
        }
        (Some(path), None) => {
            format!("{} was not written (--keep-unconverged writes the best iterate)", path.display())
        }
        (None, None) => "nothing was to be written".into(),
    };
    let reached = format!("|b - Mx| / |b| = {:.3e}, asked was {:.0e}; {kept}", worst(report), tol);
    match error {
        Some(error @ Unsolved::Cancelled { .. }) => {
            Err(Failure::new(Code::Interrupted, format!("{error}: {reached}")).shared())
        }
        Some(error) => Err(Failure::failed(format!("the solve did not converge: {error}; {reached}")).shared()),
        None => Err(Failure::failed(format!("the solve did not converge: {reached}")).shared()),
    }
}
