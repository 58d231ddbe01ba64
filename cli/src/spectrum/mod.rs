//! `ferrite spectrum`.
mod account;
mod correlators;
mod input;
mod kept;
mod quarks;
mod result;
mod spatial;
mod summary;

use super::batch::Needs;
use super::checked::{Checked, any_layout};
use super::configured::Configured;
use super::layout::Cut;
use super::named;
use super::solve::Solve;
use super::{Context, Failure, Outcome, interrupt, target, text};
use clap::Args;
use ferrite::field::host::{ColourVector, Spinor};
use input::SpectrumInput;
pub use input::{SCHEMA, SOURCES};
use kept::KeptPropagator;
use std::path::{Path, PathBuf};
use std::time::Instant;
use summary::Summary;
use tracing::info;

const EXAMPLES: &str = "\
Examples:
  ferrite init spectrum > pion.toml
  ferrite spectrum pion.toml cfg.000100.ildg cfg.000200.ildg --out spectrum
  ferrite spectrum pion.toml run/cfg.*.ildg --out spectrum --set solve.mass=0.02

Solves for all 12 components of a source (3 for staggered quarks) on each configuration, together or, if memory does
not allow that, in batches, and computes from the propagators mesons with all 16
products of gamma matrices, nucleons, and three-point functions of both, or staggered mesons, local or of any taste. The
folder has one line of JSON for each configuration in correlators.jsonl, all correlators in .npy, and effective masses with errors by
the jackknife over configurations. Configurations that have a line already are left out, so that the same command
resumes.";

/// Arguments of `spectrum`.
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub struct SpectrumArguments {
    /// Input file in TOML: `ferrite init spectrum` prints one with comments
    input: PathBuf,
    /// Configurations, instead of those of the input
    #[arg(value_name = "CONFIGURATION")]
    configurations: Vec<String>,
    /// Folder for the results
    #[arg(short, long, value_name = "DIR")]
    out: PathBuf,
    /// Components of a source to solve together, 1 to 64 [default: all that memory allows]
    #[arg(long, value_name = "N", allow_hyphen_values = true)]
    batch: Option<String>,
    /// Another value for a key of the input, such as solve.mass=0.02 or origin=0,0,0,8
    #[arg(long, value_name = "KEY=VALUE")]
    set: Vec<String>,
}

/// Checks an input and the headers of its configurations, for a run of so many processes; what was found, the solve, and
/// how many configurations there are.
pub fn check(
    path: &Path,
    set: &[String],
    processes: Option<usize>,
    context: &Context,
) -> Outcome<(Checked, Solve, usize)> {
    let (input, out) = (path.into(), PathBuf::new());
    let args = SpectrumArguments { input, configurations: Vec::new(), out, batch: None, set: set.to_vec() };
    let (mut input, what) = (SpectrumInput::read(&args, context)?, path.display().to_string());
    let all: Vec<&Path> = input.configurations.iter().map(PathBuf::as_path).collect();
    if all.is_empty() {
        return Err(Failure::refused(format!("{what}: there are no configurations")));
    }
    let mut solves = quarks::check(&input, &all, &what)?;
    // One propagator is solved for at a time: that of the quark which takes most. Those that are there already are not counted.
    let most = |cut: Cut, together: usize, solves: &[Solve]| -> Needs {
        let total = |needs: &Needs| needs.iter().map(|(_, bytes)| bytes).sum::<usize>();
        solves.iter().map(|solve| solve.memory(cut, together)).max_by_key(total).unwrap_or_default()
    };
    let solve = &solves[0];
    let cut = quarks::plan(solve, &input, input.device.layout.processes(processes))?;
    let device = input.device.open_silently(&context.comm)?;
    // From here on as if no grid had been asked for; domains still have their say.
    input.device.layout = any_layout();
    let freely = |processes: usize| quarks::plan(solve, &input, processes);
    let checked = Checked::new(device, solve.plan.lattice, cut, freely, |cut, free| {
        input.batch.split_with_needs(free, solve.plan.sources.len(), |together| most(cut, together, &solves))
    })?;
    Ok((checked, solves.swap_remove(0), input.configurations.len()))
}

/// Solves, contracts and prints.
pub fn run(args: &SpectrumArguments, context: &Context) -> Outcome {
    let (comm, what) = (&context.comm, args.input.display().to_string());
    let mut input = comm.agree(SpectrumInput::read(args, context))?;
    input.configurations = named::of_first(input.configurations, comm)?;
    let mut file = result::File::read(&args.out, &input, comm)?;
    let mut missing: Vec<Configured> = Vec::new();
    for mut configuration in Configured::all(&input.configurations, comm)? {
        if file.has(&mut configuration, comm)? {
            info!("{}: is done", configuration.typed.display());
        } else if !configuration.is_among(missing.iter_mut(), comm)? {
            missing.push(configuration);
        }
    }
    // All headers before the first solve.
    let all: Vec<&Path> = missing.iter().map(|configuration| configuration.typed.as_path()).collect();
    let mut kept = Vec::new();
    if !all.is_empty() {
        let lattice = comm.agree(quarks::check(&input, &all, &what))?[0].plan.lattice;
        file.is_on(lattice)?;
        KeptPropagator::check_all(&input, &mut missing, lattice, comm)?;
        kept = KeptPropagator::to_write(&input, &missing, lattice);
    }
    let device = input.device.open(comm)?;
    file.open(&input, &kept, comm)?;
    let read: Vec<PathBuf> = input.configurations.iter().chain([&args.input]).cloned().collect();
    let written: Vec<PathBuf> = kept.into_iter().chain(result::files(&args.out)).collect();
    target::claim(comm, &target::all(&read), &target::all(&written))?;
    interrupt::listen();
    let count = missing.len();
    for (number, configuration) in missing.iter_mut().enumerate() {
        let begin = Instant::now();
        // Before the links are read for the solve: these are what the result is of.
        configuration.hold(comm)?;
        let found = if input.staggered {
            correlators::measure::<ColourVector>(&input, configuration, &what, &device, context)?
        } else {
            correlators::measure::<Spinor>(&input, configuration, &what, &device, context)?
        };
        file.add(configuration, &found, comm)?;
        let time = text::seconds(begin.elapsed().as_secs_f64());
        info!("{} of {} configurations; this one took {time}", number + 1, count);
        if number + 1 < count && interrupt::asked_any(comm, 0) {
            let why = format!("stopped after {}; the same command resumes", configuration.typed.display());
            return Err(Failure::new(interrupt::code(), why).shared());
        }
    }
    let summary = Summary::of(&file, &input);
    let files = result::write(&args.out, &file, &input, &summary, comm)?;
    let record = summary.record(&args.out, &file, files, &device);
    context.output.record(&record, || summary.text(&args.out, context.global.verbose > 0))
}
