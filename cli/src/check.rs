//! Command `ferrite check`.
use super::checked::{Checked, MOST_PROCESSES, any_layout, sum};
use super::forecast::Forecast;
use super::solve::Solve;
use super::text::{bytes, count};
use super::{Context, Failure, Outcome};
use crate::keys::SOLVE;
use clap::Args;
use ferrite_inputs::files::not_an_input;
use ferrite_inputs::{Input, InputKind};
use ferrite_records::place::PlaceRecord;
use ferrite_records::program::{CheckRecord, CheckedTask, MemoryPart, MemoryRecord};
use ferrite_tasks::ensemble::{self, input::EnsembleInput};
use std::fmt::Write;
use std::path::PathBuf;
use tracing::warn;

const EXAMPLES: &str = "\
Examples:
  ferrite check run.toml
  ferrite check run.toml --set precision=half --backend cuda
  ferrite check run.toml --processes 8
  ferrite check run.toml --grid 1,1,2,4
  ferrite check run.toml --time

The keys of an input file are the flags of `ferrite solve`:
  gauge = \"weak.ildg\"
  mass = 0.05
  source = [\"random:1\", \"point:0,0,0,0,0,0\"]
  precision = \"half\"
  output = \"solutions.npy\"
Inputs of `ferrite rhmc` and `ferrite spectrum` are recognised by their tables; `ferrite init` prints an example of
each. For several processes, the memory is that of one process, with the grid that mpirun -n N ferrite ... would choose.";

/// Arguments of `check`.
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub struct CheckArguments {
    /// Input file in TOML
    file: PathBuf,
    /// Number of processes of the run, as in mpirun -n N [default: the number of processes of --grid, or 1]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    processes: Option<u32>,
    /// Also predict the time of solver iterations or of trajectories, from a measurement of a few seconds on this device
    #[arg(long)]
    time: bool,
    /// Override a key of the input file; repeat the flag for several keys
    #[arg(long, value_name = "KEY=VALUE")]
    set: Vec<String>,
}

impl CheckArguments {
    fn processes(&self) -> Option<usize> {
        self.processes.map(|n| n as usize)
    }
}

/// Returns the forecast if it was requested and succeeded; warns with the reason if it failed.
fn predicted(forecast: Option<Outcome<Forecast>>) -> Option<Forecast> {
    forecast?.map_err(|why| warn!("the run time cannot be predicted: {}", why.message)).ok()
}

/// Checks an input file, and prints all its mistakes or the memory that the solve or the run needs.
pub fn run(args: CheckArguments, context: &Context) -> Outcome {
    context.comm.only_one("ferrite check")?;
    if let Some(what) = not_an_input(&args.file).filter(|_| args.file.is_file()) {
        let file = args.file.display();
        let verify =
            if what.contains("field") { format!("`ferrite verify {file}` checks the field; ") } else { String::new() };
        return Err(Failure::refused(format!(
            "check reads inputs of solve, rhmc and spectrum, but {file} is {what}; {verify}`ferrite init solve` prints \
             an input"
        )));
    }
    match InputKind::of(&args.file) {
        Some(InputKind::Spectrum) => return spectrum(&args, context),
        Some(InputKind::Ensemble) => return ensemble(&args, context),
        Some(InputKind::Solve) | None => {}
    }
    let mut input = Input::new(&SOLVE);
    input.file(&args.file)?;
    input.set(&args.set);
    context.add_to(&mut input);
    let what = args.file.display().to_string();
    let solve = Solve::of(&mut input, &what)?;
    let (plan, layout) = (&solve.plan, &solve.device.layout);
    let steps = plan.definition().steps();
    let cut =
        layout.plan(layout.processes(args.processes()), plan.lattice, steps).and_then(|cut| solve.possible(cut))?;
    let device = solve.device.open_silently(&context.comm)?;
    let freely = |processes| any_layout().plan(processes, plan.lattice, steps).and_then(|cut| solve.possible(cut));
    let checked = Checked::new(device, plan.lattice, cut, freely, |cut, free| {
        let needs = |together: usize| solve.memory(cut, together);
        solve.scheme.batch.split_with_needs(free, plan.sources.len(), needs)
    })?;
    let forecast = args.time.then(|| Forecast::of_solve(&solve, &checked));
    let operator = Box::new(plan.record(&plan.operator).operator);
    let task = CheckedTask::Solve { operator, sources: plan.sources.len() };
    let head = format!("{} operator on {}, {}", plan.definition().title, checked.lattice, checked.batches.describe());
    answer(&args, context, &checked, predicted(forecast), task, &head, "the solve")
}

fn spectrum(args: &CheckArguments, context: &Context) -> Outcome {
    let (checked, solve, configurations) =
        ferrite_tasks::spectrum::check(&args.file, &args.set, args.processes(), &context.comm, |input| {
            context.add_to(input);
        })?;
    let forecast = args.time.then(|| Forecast::of_solve(&solve, &checked));
    let task = CheckedTask::Spectrum { configurations };
    let (what, batches) = (count(configurations, "configuration"), checked.batches.describe());
    let head = format!("{what} on {}, {batches}", checked.lattice);
    answer(args, context, &checked, predicted(forecast), task, &head, "the solve")
}

fn ensemble(args: &CheckArguments, context: &Context) -> Outcome {
    let input = EnsembleInput::read(&args.file, &args.set, |settings| context.add_to(settings))?;
    let (lattice, layout) = (input.lattice, &input.device.layout);
    let cut = layout.plan(layout.processes(args.processes()), lattice, input.hops())?;
    ensemble::expect_start(&input, &context.comm)?;
    ensemble::expect_fit(&input, cut)?;
    let device = input.device.open_silently(&context.comm)?;
    let freely = |processes: usize| any_layout().plan(processes, lattice, input.hops());
    let checked = Checked::new(device, lattice, cut, freely, |cut, free| ensemble::plan(&input, cut, free))?;
    let forecast = args.time.then(|| Forecast::of_ensemble(&input, &checked));
    let quarks = input.names();
    let named = quarks.iter().map(ToString::to_string).collect();
    let task = CheckedTask::Rhmc { trajectories: input.trajectories, quarks: named };
    let with = if quarks.is_empty() { "no quarks".into() } else { quarks.join("; ") };
    let head = format!("{} on {lattice}, {with}", count(input.trajectories as usize, "trajectory"));
    answer(args, context, &checked, predicted(forecast), task, &head, "the run")
}

/// Prints the checked input with its memory needs. Fails if the device has less memory.
fn answer(
    args: &CheckArguments,
    context: &Context,
    checked: &Checked,
    forecast: Option<Forecast>,
    task: CheckedTask,
    head: &str,
    what: &str,
) -> Outcome {
    let Checked { device, lattice, cut, batches, needs, memory, enough } = checked;
    let needed = sum(needs);
    let part = |(what, bytes): &(&str, usize)| MemoryPart { what: what.to_string(), bytes: *bytes };
    let record = CheckRecord {
        file: args.file.clone(),
        ok: needed <= memory.free,
        task,
        lattice: lattice.size(),
        place: PlaceRecord { backend: device.name().into(), device: device.describe(), layout: cut.record() },
        memory: MemoryRecord {
            needed_bytes: needed,
            free_bytes: memory.free,
            total_bytes: memory.total,
            parts: needs.iter().map(part).collect(),
        },
        processes_needed: *enough,
        batches: batches.record(),
        time: forecast.as_ref().map(Forecast::record),
    };
    context.output.record(&record, || {
        let mut text = format!("{}: no mistakes; {head}\n", args.file.display());
        let processes = cut.grid.size();
        let of_each = if processes > 1 {
            let _ = writeln!(
                text,
                "{processes} processes in the grid {}, each with a local lattice {}",
                cut.grid, cut.local
            );
            " of each process"
        } else {
            ""
        };
        let _ = writeln!(text, "memory{of_each} on {}:", device.describe());
        for (what, n) in needs {
            let _ = writeln!(text, "  {:>12}  {what}", bytes(*n));
        }
        let _ = writeln!(text, "  {:>12}  in total; {} are free", bytes(needed), bytes(memory.free));
        text += &fits(*enough, processes, device.name() == "cuda");
        text + &forecast.map_or(String::new(), |forecast| forecast.text(checked))
    })?;
    if needed <= memory.free {
        return Ok(());
    }
    let each = if cut.grid.size() > 1 { " for each process" } else { "" };
    let fewer = if what == "the solve" { "fewer right-hand sides, " } else { "" };
    Err(Failure::refused(format!(
        "{what} on {lattice} needs {}{each} on {}, which has {} free; use more processes, a smaller lattice, {fewer}a \
         lower precision, or another device",
        bytes(needed),
        device.describe(),
        bytes(memory.free)
    )))
}

/// Returns a line on the number of processes whose memory suffices.
fn fits(enough: Option<usize>, processes: usize, gpu: bool) -> String {
    let (device, devices) = if gpu { ("GPU", "GPUs") } else { ("machine", "machines") };
    match enough {
        None => format!("the memory of up to {MOST_PROCESSES} such {devices} does not suffice in any process grid\n"),
        Some(1) if processes == 1 => format!("the memory of one such {device} suffices\n"),
        Some(1) => format!("the memory of one such {device} would suffice, with a single process\n"),
        Some(n) => {
            format!("at least {n} such {devices} are needed, with one process each: mpirun -n {n} ferrite ...\n")
        }
    }
}
