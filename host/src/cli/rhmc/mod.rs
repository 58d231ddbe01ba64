//! `ferrite rhmc`.
mod folder;
pub(super) mod input;
mod record;
mod replay;
mod resume;
mod settings;

use super::batch::{Batches, Needs};
use super::device::{Device, on_device};
use super::fields::Reading;
use super::layout::{Cut, Layout};
use super::world::World;
use super::{Code, Context, Failure, Outcome, fields, interrupt, progress};
use clap::Args;
use ferrite::backend::Backend;
use ferrite::domain::Domain;
use ferrite::field::ThinGauge;
use ferrite::field::host::HostGauge;
use ferrite::files::{Precision, ReadOptions};
use ferrite::generate;
use ferrite::lattice::Lattice;
use ferrite::memory::{Ensemble, Part};
use ferrite::rhmc::fermions::Pseudofermions;
use ferrite::rhmc::functions::rational_functions;
use ferrite::rhmc::links::MovingLinks;
use ferrite::rhmc::spectrum;
use ferrite::rhmc::trajectory::{Chain, Outcome as Trajectory};
use folder::{Folder, State};
use gpu_kernels::storage::Element;
use input::{Group, Input, Start};
use record::Record;
use replay::Replay;
use serde_json::{Value, json};
use solvers::SolveError;
use std::path::{Path, PathBuf};
use std::time::Instant;
use tracing::{info, warn};

const EXAMPLES: &str = "\
Examples:
  ferrite init rhmc > run.toml
  ferrite rhmc run.toml --out run
  ferrite rhmc run.toml --out run --resume --set trajectories=500
  mpirun -n 4 ferrite rhmc run.toml --out run --max-hours 11.5

Ctrl-C, and the end of --max-hours, end the run after the trajectory at hand; --resume goes on from there, or from the
last trajectory that was finished before the machine went down. The folder has one line of JSON for each trajectory in
trajectories.jsonl (docs/output.md lists its keys) and configurations cfg.NNNNNN.ildg; `ferrite report run` makes a page
of it, at any time.";

/// Arguments of `rhmc`.
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub struct Arguments {
    /// Input file in TOML: `ferrite init rhmc` prints one with comments
    input: PathBuf,
    /// Folder of the run
    #[arg(short, long, value_name = "DIR")]
    out: PathBuf,
    /// Go on with the run in that folder
    #[arg(long)]
    resume: bool,
    /// Another value for a key of the input, such as gauge.beta=5.7 or fermion.0.mass=0.02
    #[arg(long, value_name = "KEY=VALUE")]
    set: Vec<String>,
    /// Take momenta, noise and rational functions from files in this folder instead of making them: momenta.N.npy,
    /// pseudofermions.N.K.npy, and where they are there noise.N.K.npy and functions.json
    #[arg(long, value_name = "DIR")]
    replay: Option<PathBuf>,
    /// End after the trajectory during which so many hours have passed
    #[arg(long, value_name = "H", value_parser = hours)]
    max_hours: Option<f64>,
}

fn hours(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(x) if x > 0.0 && x.is_finite() => Ok(x),
        _ => Err(format!("'{text}' is not a number above 0")),
    }
}

/// A run to make, or to go on with.
pub struct Job<'a> {
    /// What.
    pub input: &'a Input,
    /// Which process has which part.
    pub layout: &'a Layout,
    /// Where it is computed.
    pub device: &'a Device,
    /// The folder.
    pub out: &'a Path,
    /// Whether it goes on.
    pub resume: bool,
    /// The hours after which it ends.
    pub max_hours: Option<f64>,
}

/// A run, as checked.
struct Run<'a> {
    input: &'a Input,
    layout: &'a Layout,
    context: &'a Context,
    /// As the first line of this start tells them.
    settings: Value,
    begin: Instant,
    max_hours: Option<f64>,
    replay: Option<Replay>,
    /// Noise vectors of a condensate.
    batches: Batches,
}

/// How a run ended.
pub struct End {
    first: u32,
    last: u32,
    accepted: u32,
    /// Whether trajectories are missing.
    pub interrupted: bool,
    records: Vec<Record>,
}

/// Makes the ensemble.
pub fn run(args: &Arguments, context: &Context) -> Outcome {
    let world = &context.world;
    let input = world.agree(Input::read(&args.input, &args.set, |settings| context.add_to(settings)))?;
    let replay = world.agree(args.replay.as_deref().map(Replay::open).transpose())?;
    let layout = input.device.layout.cut(world, input.lattice, input.hops())?;
    let device = input.device.open(world)?;
    let (resume, max_hours) = (args.resume, args.max_hours);
    let job = Job { input: &input, layout: &layout, device: &device, out: &args.out, resume, max_hours };
    let end = make(&job, replay, context)?;
    if end.interrupted {
        let why = format!("ended after trajectory {} of {}; go on with --resume", end.last, input.trajectories);
        return Err(Failure::new(Code::Interrupted, why).shared());
    }
    report(&end, &job, context)
}

/// *Collective.* Makes the trajectories that are missing.
pub fn make(job: &Job, replay: Option<Replay>, context: &Context) -> Outcome<End> {
    let Job { input, layout, device, out, resume, max_hours } = *job;
    let (world, begin) = (&context.world, Instant::now());
    let batches = batches(input, layout, (device, world))?;
    let precision = if input.single_links { Precision::Single } else { Precision::Double };
    let names = [device.name().to_string(), device.describe()];
    let settings = settings::settings(input, &names, layout, &batches);
    let (folder, state, gauge) = if resume {
        let goes_on = |state: &State| resume::goes_on(state, input, out, &settings, world);
        let (folder, state, gauge) = Folder::open(out, precision, layout, world, goes_on)?;
        info!("going on after trajectory {}", state.trajectory);
        let State { trajectory, accepted, .. } = state;
        if trajectory >= input.trajectories {
            return Ok(End { first: trajectory, last: trajectory, accepted, interrupted: false, records: Vec::new() });
        }
        if let Some(replay) = &replay {
            world.agree(replay.has(trajectory + 1, input))?;
        }
        (folder, Some(state), gauge)
    } else {
        if let Some(replay) = &replay {
            world.agree(replay.has(1, input))?;
        }
        let gauge = first_links(input, layout, context)?;
        (Folder::create(out, precision, world)?, None, gauge)
    };
    interrupt::listen();
    let run = Run { input, layout, context, settings, begin, max_hours, replay, batches };
    on_device!(device, backend => if input.single_links {
        run.make::<_, f32>(backend, folder, state, &gauge)
    } else {
        run.make::<_, f64>(backend, folder, state, &gauge)
    })
}

fn first_links(input: &Input, layout: &Layout, context: &Context) -> Outcome<HostGauge> {
    let world = &context.world;
    world.agree(fields::require_host_memory(layout.local(), 3 * 576, "the links"))?;
    Ok(match &input.start {
        Start::Cold => HostGauge::unit(layout.local()),
        Start::Hot => generate::random(layout.section, input.plan.seed),
        Start::File(path) => {
            let options = ReadOptions { reunitarise: true, ..Default::default() };
            let read = Reading { options, ..Default::default() };
            let lattice = fields::lattice_of(path, &read, world)?;
            if lattice != input.lattice {
                let why = format!("{} has links on {lattice}, the input says {}", path.display(), input.lattice);
                return Err(Failure::refused(why).shared());
            }
            fields::read_gauge(path, &read, layout, world)?.gauge
        }
    })
}

/// What condensates are solved for.
const NOISE_VECTOR: &str = "noise vector";

/// Noise vectors for each condensate.
fn noise_vectors(input: &Input) -> usize {
    if input.groups.is_empty() { 0 } else { input.measure.condensate }
}

/// *Collective.* How the noise vectors of a condensate are split, if the run fits at all.
fn batches(input: &Input, layout: &Layout, (device, world): (&Device, &World)) -> Outcome<Batches> {
    let n = noise_vectors(input);
    let needs = |together: usize| memory(input, layout.cut(), together);
    let found = input.measure.batch.on((device, world), n, needs, ("the run", NOISE_VECTOR))?;
    if found.are_several() {
        info!("condensates: {}", found.describe_as(NOISE_VECTOR));
    }
    Ok(found)
}

/// How the noise vectors of a condensate are split where so much memory is free, and what a process with such a part of the
/// lattice then needs of it.
pub fn plan(input: &Input, cut: Cut, free: usize) -> (Batches, Needs) {
    let n = noise_vectors(input);
    let needs = |together: usize| memory(input, cut, together);
    let found = input.measure.batch.within(free, n, needs);
    let needs = needs(found.largest());
    (found, needs)
}

/// Device memory where `together` noise vectors of a condensate are solved at once, with names for what takes it.
fn memory(input: &Input, cut: Cut, together: usize) -> Needs {
    let ensemble = Ensemble {
        single_links: input.single_links,
        pseudofermions: input.groups.iter().map(|group| group.pseudofermions).max().unwrap_or(0),
        improved: input.groups.iter().any(|group| group.operator.paths.is_some()),
        noise: together,
    };
    ensemble.memory(Part::new(cut.local, &cut.grid))
}

impl Run<'_> {
    fn make<B: Backend, T: Element>(
        &self,
        backend: &B,
        mut folder: Folder,
        state: Option<State>,
        gauge: &HostGauge,
    ) -> Outcome<End> {
        let (input, world) = (self.input, &self.context.world);
        let domain = self.layout.domain(backend)?;
        let thin = ThinGauge::upload(&domain, gauge)?;
        let fresh = state.is_none();
        let mut state = match state {
            Some(state) => state,
            None => {
                let bounds = vec![0.0; input.groups.len()];
                State { trajectory: 0, accepted: 0, seed: input.plan.seed, bounds }
            }
        };
        // Before the first trajectory the input may still be another than the one that the state was kept with. Later on
        // these very links were looked at, with the same operators.
        if state.trajectory == 0 {
            let links = MovingLinks::<B, T>::new(&thin)?;
            for (group, bound) in input.groups.iter().zip(&mut state.bounds) {
                let largest = largest(&links, group, input.plan.seed)?;
                if largest > *bound {
                    // An interval has a length, whatever the links are.
                    *bound = MARGIN * largest.max(1.0);
                }
            }
        }
        let quarks = self.quarks(&domain, &state)?;
        let mut chain = Chain::<B, T>::new(input.plan.clone(), &thin, quarks).map_err(failed)?;
        drop(thin);
        if fresh {
            folder.keep(&state, &self.download(&chain)?, self.layout, world)?;
        }
        let first = state.trajectory;
        let bar = progress::bar(u64::from(input.trajectories), self.context.shows_progress());
        let (mut records, mut interrupted) = (Vec::new(), false);
        while state.trajectory < input.trajectories {
            let number = state.trajectory + 1;
            let clock = Instant::now();
            let nth = |every: usize| every > 0 && (number as usize).is_multiple_of(every);
            if nth(input.measure.kernels) {
                backend.start_profile()?;
            }
            let given = self.replay.as_ref().map(|replay| replay.trajectory(number, input, self.layout, world));
            let given = given.transpose()?;
            let noise = given.as_ref().map(replay::Given::noise);
            let outcome = chain.trajectory(number, noise, nth(input.measure.reversibility)).map_err(failed)?;
            let residuals: Vec<f64> = chain.quarks().map(|quarks| quarks.take_residual()).collect();
            let seconds = clock.elapsed().as_secs_f64();
            let kernels = nth(input.measure.kernels).then(|| backend.end_profile()).transpose()?;
            state.trajectory = number;
            state.accepted += u32::from(outcome.accepted);
            let largest = self.look_at_spectrum(&mut chain, &mut state)?;
            let measured = nth(input.measure.every).then(|| self.measure(&chain, number)).transpose()?;
            let whole = clock.elapsed().as_secs_f64();
            let record = Record { outcome, seconds, largest, residuals, measured, kernels, whole };
            self.warn_of(&record);
            let mut line = record.line(input);
            if records.is_empty() {
                // A start may change them, so each one tells them.
                line["run"] = self.settings.clone();
            }
            folder.add(&line, world)?;
            let links = self.download(&chain)?;
            if number.is_multiple_of(input.save_every) {
                folder.save(number, &links, self.layout, world)?;
            }
            folder.keep(&state, &links, self.layout, world)?;
            bar.set_position(u64::from(number));
            bar.set_message(record.message());
            info!("{}", record.message());
            records.push(record);
            if number < input.trajectories && self.is_asked_to_end()? {
                interrupted = true;
                break;
            }
        }
        bar.finish_and_clear();
        Ok(End { first, last: state.trajectory, accepted: state.accepted, interrupted, records })
    }
    fn quarks<B: Backend>(&self, domain: &Domain<B>, state: &State) -> Outcome<Vec<Pseudofermions<B>>> {
        let mut first = 0;
        let mut all = Vec::new();
        let given = self.replay.as_ref().map(|replay| replay.functions(self.input.groups.len())).transpose();
        let mut given = self.context.world.agree(given)?.flatten().unwrap_or_default().into_iter();
        for (group, bound) in self.input.groups.iter().zip(&state.bounds) {
            let functions = given.next().map_or_else(|| functions(group, *bound), Ok)?;
            let (name, solvers) = (group.name.clone(), self.input.solvers.clone());
            let poles = functions.dynamics.poles.len();
            let given = solvers[0].tol.len();
            // Later on, spectra may have asked for other functions than those that the numbers were made for.
            if given != 1 && given != poles && state.trajectory == 0 {
                let why = format!(
                    "precision.dynamics-tol has {given} numbers, and the {name} have {poles} poles: one for each"
                );
                return Err(Failure::refused(why).shared());
            }
            let count = (first, group.pseudofermions);
            all.push(Pseudofermions::new(domain, name, group.operator, functions, solvers, count)?);
            first += group.pseudofermions as u32;
        }
        Ok(all)
    }
    fn measure<B: Backend, T: Element>(&self, chain: &Chain<B, T>, number: u32) -> Outcome<record::Measured> {
        let given = |which: usize| match &self.replay {
            Some(replay) => replay.noise(number, which, self.layout, &self.context.world),
            None => Ok(None),
        };
        record::measure(chain, (self.input, &self.batches.sizes), number, given)
    }
    /// Measures the largest eigenvalues, and makes new rational functions where they have left their interval.
    fn look_at_spectrum<B: Backend, T: Element>(
        &self,
        chain: &mut Chain<B, T>,
        state: &mut State,
    ) -> Outcome<Vec<f64>> {
        let mut found = Vec::new();
        for (number, group) in self.input.groups.iter().enumerate() {
            let largest = largest(chain.links(), group, self.input.plan.seed)?;
            found.push(largest);
            if largest > state.bounds[number] {
                let (old, new) = (state.bounds[number], MARGIN * largest);
                if self.replay.as_ref().is_some_and(Replay::has_functions) {
                    warn!("{}: the spectrum has grown to {largest:.2}; the given functions stay", group.name);
                    continue;
                }
                warn!(
                    "{}: the spectrum has grown to {largest:.2} beyond {old:.2}; rational functions up to {new:.2} from now on",
                    group.name
                );
                state.bounds[number] = new;
                let functions = functions(group, new)?;
                if let Some(quarks) = chain.quarks().nth(number) {
                    quarks.set_functions(functions);
                }
            }
        }
        Ok(found)
    }
    fn warn_of(&self, record: &Record) {
        let Trajectory { number, delta, .. } = record.outcome;
        if !delta.is_finite() {
            warn!("trajectory {number}: ΔH is no number; shorter steps are needed");
        }
        let asked = self.input.solvers[1].tol[0];
        for (group, residual) in self.input.groups.iter().zip(&record.residuals) {
            if residual.is_nan() || *residual > WORSE * asked {
                warn!(
                    "trajectory {number}: the action of the {} has a residual of {residual:.1e} instead of {asked:.1e}; \
                     precision.action = \"double\" or a larger precision.action-tol is honest",
                    group.name
                );
            }
        }
    }
    fn download<B: Backend, T: Element>(&self, chain: &Chain<B, T>) -> Outcome<HostGauge> {
        Ok(chain.links().thin::<f64>()?.download()?)
    }
    /// *Collective.*
    fn is_asked_to_end(&self) -> Outcome<bool> {
        let late = self.max_hours.is_some_and(|hours| self.begin.elapsed().as_secs_f64() > 3600.0 * hours);
        let late = self.context.world.largest(f64::from(u8::from(late)))? > 0.0;
        Ok(late || interrupt::asked_any(&self.context.world, 0))
    }
}

/// A true residual may be so much larger than the one that a solver believes in, before it is spoken of.
const WORSE: f64 = 10.0;

/// How far intervals of rational functions reach beyond the largest eigenvalue.
const MARGIN: f64 = 1.15;

fn largest<B: Backend, T: Element>(links: &MovingLinks<B, T>, group: &Group, seed: u64) -> Outcome<f64> {
    spectrum::largest(links, &group.operator, seed).map_err(failed)
}

fn functions(group: &Group, bound: f64) -> Outcome<ferrite::rhmc::fermions::RationalFunctions> {
    let made =
        rational_functions(&group.quarks, group.pseudofermions, bound, group.tolerances, rational::approximate_to);
    made.map_err(|why| {
        let advice = match why {
            rational::Error::NotStieltjes { .. } | rational::Error::AlreadyRational { .. } => {
                "; more pseudofermions may help"
            }
            _ => "",
        };
        Failure::refused(format!("{}: {why}{advice}", group.name)).shared()
    })
}

/// Seconds of trajectories with so many outermost steps on another lattice, each from random links; nothing of them is kept.
pub fn trial<const N: usize>(input: &Input, device: &Device, on: Lattice, steps: [usize; N]) -> Outcome<[f64; N]> {
    on_device!(device, backend => if input.single_links {
        trial_in::<_, f32, N>(input, &Domain::single(backend.clone(), on)?, steps)
    } else {
        trial_in::<_, f64, N>(input, &Domain::single(backend.clone(), on)?, steps)
    })
}

fn trial_in<B: Backend, T: Element, const N: usize>(
    input: &Input,
    domain: &Domain<B>,
    steps: [usize; N],
) -> Outcome<[f64; N]> {
    let thin = ThinGauge::upload(domain, &generate::random(domain.local(), input.plan.seed))?;
    let links = MovingLinks::<B, T>::new(&thin)?;
    let mut all = Vec::new();
    for group in &input.groups {
        all.push(functions(group, MARGIN * largest(&links, group, input.plan.seed)?.max(1.0))?);
    }
    let mut solvers = input.solvers.clone();
    // There may be more of them than poles of these functions.
    solvers[0].tol.truncate(1);
    let mut seconds = [0.0; N];
    for (seconds, steps) in seconds.iter_mut().zip(steps) {
        let mut plan = input.plan.clone();
        if let Some(outermost) = plan.levels.first_mut() {
            plan.length *= steps as f64 / outermost.steps as f64;
            outermost.steps = steps;
        }
        let mut quarks = Vec::new();
        for (group, functions) in input.groups.iter().zip(&all) {
            let (name, count) = (group.name.clone(), (0, group.pseudofermions));
            quarks.push(Pseudofermions::new(domain, name, group.operator, functions.clone(), solvers.clone(), count)?);
        }
        let mut chain = Chain::<B, T>::new(plan, &thin, quarks).map_err(failed)?;
        let begin = Instant::now();
        chain.trajectory(1, None, false).map_err(failed)?;
        *seconds = begin.elapsed().as_secs_f64();
    }
    Ok(seconds)
}

/// A solver's failure is that of all processes: what it stops for are sums over all of them.
fn failed(error: ferrite::rhmc::Error) -> Failure {
    match &error {
        ferrite::rhmc::Error::Solver { why, .. } => {
            let advice = match **why {
                SolveError::NotANumber { .. } => "; links may have moved too far: take more steps",
                _ => "",
            };
            Failure::failed(format!("{error}{advice}")).shared()
        }
        _ => Failure::failed(error),
    }
}

fn report(end: &End, job: &Job, context: &Context) -> Outcome {
    let Job { input, layout, device, out, .. } = job;
    let summary = record::summary(&end.records, input.plan.metropolis_from);
    let object = json!({
        "output": out,
        "lattice": input.lattice.size(),
        "first_trajectory": end.first + 1,
        "last_trajectory": end.last,
        "accepted": end.accepted,
        "summary": summary.json(),
        "layout": layout.describe(),
        "backend": device.name(),
        "device": device.describe(),
    });
    context.output.result("ferrite.rhmc/1", object, || {
        let (folder, accepted) = (out.display(), end.accepted);
        if end.records.is_empty() {
            return format!("{folder}: all {} trajectories are there, {accepted} accepted in all\n", end.last);
        }
        let (first, last, lattice) = (end.first + 1, end.last, input.lattice);
        let mut text = format!("{folder}: trajectories {first} to {last} on {lattice}, {accepted} accepted in all\n");
        text += &summary.text();
        text
    })
}
