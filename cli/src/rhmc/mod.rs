//! Command `ferrite rhmc`.
pub mod forces;

use super::{Context, Outcome, text};
use clap::Args;
use ferrite_records::ensemble::RhmcRecord;
use ferrite_tasks::ensemble::input::EnsembleInput;
use ferrite_tasks::ensemble::{Begin, EnsembleJob, Replay, RunEnd, make, summary};
use std::path::PathBuf;

const EXAMPLES: &str = "\
Examples:
  ferrite init rhmc > run.toml
  ferrite rhmc run.toml --out run
  ferrite rhmc run.toml --out run --resume --set trajectories=500
  mpirun -n 4 ferrite rhmc run.toml --out run --max-hours 11.5

Ctrl-C, SIGTERM, SIGHUP and --max-hours end the run after the current trajectory, or at once
during a multigrid setup; --resume continues from there, or from the last complete trajectory if
the machine went down.
--resume-from 40 continues from configuration 40 instead. The folder contains
one line of JSON for each trajectory in trajectories.jsonl (docs/output.md lists its keys), and
configurations cfg.NNNNNN.ildg; `ferrite report run` writes an HTML page about it at any time.";

/// Arguments of `rhmc`.
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub struct RhmcArguments {
    /// Input file in TOML; `ferrite init rhmc` prints an input with comments
    input: PathBuf,
    /// Folder of the run
    #[arg(short, long, value_name = "DIR")]
    out: PathBuf,
    /// Resume the run in the folder of --out
    #[arg(long)]
    resume: bool,
    /// Resume after trajectory N, whose configuration was saved, instead of the last trajectory; later files are moved to a
    /// new folder DIR/before.1, before.2, ...
    #[arg(long, value_name = "N")]
    resume_from: Option<u32>,
    /// Override a key of the input, such as gauge.beta=5.7 or fermion.0.mass=0.02; repeat the flag for several keys
    #[arg(long, value_name = "KEY=VALUE")]
    set: Vec<String>,
    /// Folder of momenta, noise and rational functions to read instead of generating them: momenta.N and pseudofermions.N.K, and
    /// optionally noise.N.K and functions.json; N is the number of the trajectory, and K that of the field, from 0; fields are
    /// .npy, .ildg, .scidac or .lime
    #[arg(long, value_name = "DIR")]
    replay: Option<PathBuf>,
    /// End after the trajectory in which the run time passes this many hours
    #[arg(long, value_name = "H", value_parser = hours)]
    max_hours: Option<f64>,
}

fn hours(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(x) if x > 0.0 && x.is_finite() => Ok(x),
        _ => Err(format!("'{text}' is not a finite number above 0")),
    }
}

/// Generates or resumes an ensemble, and prints a summary.
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
    let end = make(&job, replay, &context.session)?;
    if end.interrupted {
        let all = input.trajectories;
        let why = match end.last {
            0 => format!("the run ended before trajectory 1 of {all}; continue with --resume"),
            last => format!("the run ended after trajectory {last} of {all}; continue with --resume"),
        };
        return Err(context.session.stopped(why));
    }
    report(&end, &job, context)
}

fn report(end: &RunEnd, job: &EnsembleJob, context: &Context) -> Outcome {
    let EnsembleJob { input, layout, device, out, .. } = job;
    let summary = summary(&end.records, input.plan.metropolis_from);
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
            return format!("{folder}: nothing to do; the run already has {there} (accepted: {accepted})\n");
        }
        let (first, last, lattice) = (end.first + 1, end.last, input.lattice);
        let which =
            if first == last { format!("trajectory {last}") } else { format!("trajectories {first} to {last}") };
        let mut text = format!("{folder}: {which} on {lattice}, {accepted} accepted since the start of the run\n");
        text += &summary.text();
        text
    })
}
