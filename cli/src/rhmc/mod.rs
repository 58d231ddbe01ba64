//! `ferrite rhmc`.
mod course;
mod folder;
pub mod forces;
pub(super) mod input;
mod needs;
mod precision;
mod record;
mod replay;
mod resume;
mod settings;
mod state;
mod table;
mod trial;

pub use folder::Begin;
pub use input::quark_operators;
pub use needs::{expect_fit, plan};
pub use trial::trial;

use super::communicator::RunCommunicator;
use super::device::Device;
use super::fields::Reading;
use super::layout::Layout;
use super::{Context, Failure, Outcome, fields, interrupt, target, text};
use clap::Args;
use course::EnsembleRun;
use ferrite::field::host::HostGauge;
use ferrite::files::{FilePrecision, ReadOptions};
use ferrite::gauge::generate;
use ferrite_records::ensemble::RhmcRecord;
use folder::{ChainFields, FoundRun, RunFolder};
use input::{EnsembleInput, StartLinks};
use record::MeasuredTrajectory;
use replay::Replay;
use std::path::{Path, PathBuf};
use std::time::Instant;
use tracing::info;

const EXAMPLES: &str = "\
Examples:
  ferrite init rhmc > run.toml
  ferrite rhmc run.toml --out run
  ferrite rhmc run.toml --out run --resume --set trajectories=500
  mpirun -n 4 ferrite rhmc run.toml --out run --max-hours 11.5

Ctrl-C, SIGTERM, SIGHUP and the end of --max-hours end the run after the current trajectory, or
at once while multigrid is set up for it; --resume continues from there, or from the last complete
trajectory if the machine went down.
--resume-from 40 continues from configuration 40 instead. The folder has one line of JSON for
each trajectory in trajectories.jsonl (docs/output.md lists its keys) and configurations
cfg.NNNNNN.ildg; `ferrite report run` makes a page from it at any time.";

/// Arguments of `rhmc`.
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub struct RhmcArguments {
    /// Input file in TOML: `ferrite init rhmc` prints one with comments
    input: PathBuf,
    /// Folder of the run
    #[arg(short, long, value_name = "DIR")]
    out: PathBuf,
    /// Resume the run in that folder
    #[arg(long)]
    resume: bool,
    /// Resume after trajectory N instead of the last one, from its saved configuration; later files are moved to a folder
    /// before.K
    #[arg(long, value_name = "N")]
    resume_from: Option<u32>,
    /// Override a key of the input, such as gauge.beta=5.7 or fermion.0.mass=0.02
    #[arg(long, value_name = "KEY=VALUE")]
    set: Vec<String>,
    /// Read momenta, noise and rational functions from files in this folder instead of generating them: momenta.N.npy,
    /// pseudofermions.N.K.npy and, if present, noise.N.K.npy and functions.json
    #[arg(long, value_name = "DIR")]
    replay: Option<PathBuf>,
    /// End after the trajectory during which this many hours have passed
    #[arg(long, value_name = "H", value_parser = hours)]
    max_hours: Option<f64>,
}

fn hours(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(x) if x > 0.0 && x.is_finite() => Ok(x),
        _ => Err(format!("'{text}' is not a number above 0")),
    }
}

/// A run to begin or to continue.
pub struct EnsembleJob<'a> {
    /// What.
    pub input: &'a EnsembleInput,
    /// Which process has which part.
    pub layout: &'a Layout,
    /// Where it is computed.
    pub device: &'a Device,
    /// The folder.
    pub out: &'a Path,
    /// Whether it is a new run or a resumed one, and from which trajectory.
    pub from: Begin,
    /// The hours after which it ends.
    pub max_hours: Option<f64>,
}

/// How a run ended.
pub struct RunEnd {
    first: u32,
    last: u32,
    accepted: u32,
    /// Whether trajectories are missing.
    pub interrupted: bool,
    records: Vec<MeasuredTrajectory>,
}

/// Makes the ensemble.
pub fn run(args: &RhmcArguments, context: &Context) -> Outcome {
    let comm = &context.comm;
    let input = comm.agree(EnsembleInput::read(&args.input, &args.set, |settings| context.add_to(settings)))?;
    let replay = comm.agree(args.replay.as_deref().map(Replay::open).transpose())?;
    let layout = input.device.layout.cut(comm, input.lattice, input.hops())?;
    let device = input.device.open(comm)?;
    let from = match (args.resume_from, args.resume) {
        (Some(trajectory), _) => Begin::From(trajectory),
        (None, true) => Begin::Last,
        (None, false) => Begin::New,
    };
    let max_hours = args.max_hours;
    let job = EnsembleJob { input: &input, layout: &layout, device: &device, out: &args.out, from, max_hours };
    let end = make(&job, replay, context)?;
    if end.interrupted {
        let why = format!("ended after trajectory {} of {}; continue with --resume", end.last, input.trajectories);
        return Err(Failure::new(interrupt::code(), why).shared());
    }
    report(&end, &job, context)
}

/// *Collective.* Makes the trajectories that are missing.
pub fn make(job: &EnsembleJob, replay: Option<Replay>, context: &Context) -> Outcome<RunEnd> {
    let EnsembleJob { input, layout, device, out, from, max_hours } = *job;
    let (comm, begin) = (&context.comm, Instant::now());
    if let (Some(replay), true) = (&replay, input.has_wilson_like()) {
        let why = format!("--replay {}: there is no noise of Wilson-like quarks in files", replay.folder());
        return Err(Failure::refused(why).shared());
    }
    let precision = if input.single_links { FilePrecision::Single } else { FilePrecision::Double };
    let find = |from| RunFolder::find(out, from, precision, layout, comm);
    let found = match from {
        Begin::New => None,
        Begin::Last => Some(find(None)?),
        Begin::From(trajectory) => Some(find(Some(trajectory))?),
    };
    let split_before = found.as_ref().map_or(&[][..], |found| &found.saved.state.batches);
    needs::expect_fit(input, layout.cut())?;
    let batches = needs::batches(input, split_before, layout, device, comm)?;
    let names = [device.name().to_string(), device.describe()];
    let mut settings = settings::settings(input, &names, layout, &batches);
    if let Some(replay) = &replay {
        // Told only where it is used, so that runs of other versions compare.
        settings.replay = Some(replay.folder());
    }
    let (folder, state, fields) = if let Some(FoundRun { mut folder, mut saved, fields, lines }) = found {
        comm.agree(resume::check(&mut saved.state, input, out, &lines, &mut settings, comm))?;
        match from {
            Begin::From(_) => folder.go_back(&saved, &fields, layout, comm)?,
            _ => folder.continue_from(&saved, comm)?,
        }
        let state = saved.state;
        info!("resuming after trajectory {}", state.trajectory);
        let (trajectory, accepted) = (state.trajectory, state.accepted);
        if trajectory >= input.trajectories {
            return Ok(RunEnd {
                first: trajectory,
                last: trajectory,
                accepted,
                interrupted: false,
                records: Vec::new(),
            });
        }
        if let Some(replay) = &replay {
            comm.agree(replay.has(trajectory + 1, input))?;
        }
        (folder, Some(state), fields)
    } else {
        if let Some(replay) = &replay {
            comm.agree(replay.has(1, input))?;
        }
        if let StartLinks::File(start) = &input.start {
            // Links that lie in the folder under a name that the run may come to.
            let name = std::fs::canonicalize(start).ok().and_then(|start| start.file_name().map(|name| out.join(name)));
            let is_folder = out.is_dir() && name.as_ref().is_some_and(|name| RunFolder::is_own(name));
            target::claim(comm, &[start], &target::all(name.iter().filter(|_| is_folder)))?;
        }
        let gauge = first_links(input, layout, context)?;
        (RunFolder::create(out, precision, comm)?, None, ChainFields { gauge, momenta: None })
    };
    interrupt::listen();
    let run = EnsembleRun { input, layout, context, settings, begin, max_hours, replay, batches };
    run.make(device.backend(), folder, state, &fields)
}

fn first_links(input: &EnsembleInput, layout: &Layout, context: &Context) -> Outcome<HostGauge> {
    let comm = &context.comm;
    fields::require_host_memory(comm, layout.local(), 3 * 576, "the links")?;
    Ok(match &input.start {
        StartLinks::Cold => HostGauge::unit(layout.local()),
        StartLinks::Hot => generate::random(layout.section, input.plan.seed),
        StartLinks::File(path) => {
            expect_start(input, comm)?;
            fields::read_gauge(path, &of_start(), layout, comm)?.gauge
        }
    })
}

/// Options for reading a file with links to start from.
fn of_start() -> Reading {
    Reading { options: ReadOptions { reunitarise: true, ..Default::default() }, ..Default::default() }
}

/// *Collective.* Refuses a file with links to start from that cannot be read, or is on another lattice than the input says, by its
/// header.
pub fn expect_start(input: &EnsembleInput, comm: &RunCommunicator) -> Outcome {
    let StartLinks::File(path) = &input.start else { return Ok(()) };
    let refused = |why: String| Err(Failure::refused(format!("{} {why}", path.display())).shared());
    let (lattice, numbers) = fields::shape_of(path, &of_start(), comm)?;
    if numbers != LINKS {
        return refused(format!("holds {numbers} numbers per site, a gauge field has {LINKS}"));
    }
    if lattice != input.lattice {
        return refused(format!("has links on {lattice}, the input says {}", input.lattice));
    }
    Ok(())
}

/// Complex numbers of links per site.
const LINKS: usize = 36;

fn report(end: &RunEnd, job: &EnsembleJob, context: &Context) -> Outcome {
    let EnsembleJob { input, layout, device, out, .. } = job;
    let summary = record::summary(&end.records, input.plan.metropolis_from);
    let record = RhmcRecord {
        output: out.into(),
        lattice: input.lattice.size(),
        first_trajectory: end.first + 1,
        last_trajectory: end.last,
        accepted: end.accepted,
        summary: summary.record(),
        place: device.record(layout),
    };
    context.output.record(&record, || {
        let (folder, accepted) = (out.display(), end.accepted);
        if end.records.is_empty() {
            let there = text::count(end.last as usize, "trajectory");
            return format!("{folder}: nothing to do: the run has {there}, {accepted} of them accepted\n");
        }
        let (first, last, lattice) = (end.first + 1, end.last, input.lattice);
        let which =
            if first == last { format!("trajectory {last}") } else { format!("trajectories {first} to {last}") };
        let mut text = format!("{folder}: {which} on {lattice}, {accepted} accepted since the start of the run\n");
        text += &summary.text();
        text
    })
}
