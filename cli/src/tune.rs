//! Command `ferrite tune`.
use super::bench::{check_nrhs, lattice_or_default, memory, names, operators};
use super::device::Device;
use super::formats::FormatFlags;
use super::text::{count, lattice};
use super::{Context, Failure, Outcome};
use clap::Args;
use ferrite::backend::tuning::{Mode, Tuned, Tuner};
use ferrite::lattice::Lattice;
use ferrite::operators::Definition;
use ferrite::tune::{Operations, launch_all};
use ferrite::workload::Options;
use ferrite_records::program::{TuneRecord, TunedLaunch};
use std::fmt::Write;
use tracing::info;

const EXAMPLES: &str = "\
Examples:
  ferrite tune --lattice 32,32,32,64
  ferrite tune --operator clover --precision double,single --reconstruct 18,12 --nrhs 1,4
  ferrite tune --retune

Times every kernel of solves with 32 to 512 threads per block and saves the best block sizes in
the file that FERRITE_TUNE_CACHE names, or otherwise in ferrite/tune.json in XDG_CACHE_HOME or ~/.cache,
where other commands read them. Earlier measurements on this kind of GPU, with this driver and
these kernels, are not repeated. A solve also launches kernels in double precision with 18 reals:
include those if you name precisions and reconstructions. Batches shrink when right-hand sides
converge: a batch of 12 shrinks to 8, 6, 4, 3, 2 and 1, which --nrhs can include. Results never
depend on block sizes.";

/// Arguments of `tune`.
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub struct TuneArguments {
    /// Lattice extents of one process; block sizes are used on lattices of about the same volume [default: 32,32,32,32]
    #[arg(long, value_name = "X,Y,Z,T", value_parser = lattice)]
    lattice: Option<Lattice>,
    #[arg(long, value_name = "NAME", default_value = "all", help = format!("Operator: {}, or all", names()))]
    operator: String,
    #[command(flatten)]
    formats: FormatFlags,
    /// Number of right-hand sides in one call; several numbers are separated by commas
    #[arg(long, value_name = "N", value_delimiter = ',', default_value = "1")]
    nrhs: Vec<usize>,
    /// Repeat earlier measurements, and replace a tune cache that is damaged or of another version
    #[arg(long)]
    retune: bool,
}

/// Times the kernels with all block sizes, saves the fastest ones, and prints a table.
pub fn run(args: TuneArguments, context: &Context) -> Outcome {
    context.comm.only_one("ferrite tune")?;
    let (precisions, reconstructions) = (args.formats.precisions()?, args.formats.reconstructions()?);
    let operators = operators(&args.operator)?;
    args.nrhs.iter().try_for_each(|&nrhs| check_nrhs(nrhs))?;
    let mut choice = context.device_choice()?;
    if choice.tuning == Mode::Off {
        return Err(Failure::refused(
            "--tuning off conflicts with `ferrite tune`, which measures block sizes: remove --tuning off",
        ));
    }
    choice.tuning = Mode::Search { retune: args.retune };
    let device = choice.open(&context.comm)?;
    let lattice = lattice_or_default(args.lattice, &device)?;
    let Some(tuner) = device.tuner() else { return nothing(&device, lattice, context) };
    let most = args.nrhs.iter().copied().max().unwrap_or(1);
    device.require(&memory(lattice, most, &operators), &format!("tuning on {lattice}"))?;
    info!("tuning block sizes for the lattice {lattice}; this can take minutes");
    for &nrhs in &args.nrhs {
        for operations in groups(&operators) {
            let options =
                Options { lattice, precisions: precisions.clone(), reconstructions: reconstructions.clone(), nrhs };
            let searched = launch_all(device.backend(), operations, &options);
            // Results are saved even after a failure or Ctrl-C.
            let saved = tuner.save();
            searched?;
            saved.map_err(Failure::failed)?;
        }
    }
    let tuned = tuner.report();
    context.output.record(&record(&device, lattice, Some(tuner), &tuned), || table(&tuned, lattice, &device, tuner))
}

/// Returns the operations whose kernels the solvers of these operators launch.
fn groups(operators: &[&'static Definition]) -> Vec<Operations> {
    let mut groups = Vec::new();
    for definition in operators {
        for group in [Operations::Operator(definition), Operations::LinearAlgebra(definition.kind)] {
            if !groups.contains(&group) {
                groups.push(group);
            }
        }
    }
    groups
}

fn nothing(device: &Device, lattice: Lattice, context: &Context) -> Outcome {
    context.output.record(&record(device, lattice, None, &[]), || {
        format!("{}: nothing to tune; CPU kernels have no block sizes\n", device.describe())
    })
}

fn record(device: &Device, lattice: Lattice, tuner: Option<&Tuner>, tuned: &[Tuned]) -> TuneRecord {
    let one = |Tuned { launch, entry, fresh }: &Tuned| TunedLaunch {
        kernel: launch.kernel.to_string(),
        sites: launch.sites as usize,
        nrhs: launch.nrhs as usize,
        shape: entry.shape.to_string(),
        best_microseconds: entry.best_microseconds(),
        default_shape: entry.default.to_string(),
        default_microseconds: entry.default_microseconds(),
        gain: entry.gain(),
        microseconds: entry.microseconds.iter().map(|(shape, time)| (shape.to_string(), *time)).collect(),
        measured: entry.measured.clone(),
        measured_now: *fresh,
    };
    TuneRecord {
        backend: device.name().into(),
        device: device.describe(),
        lattice: lattice.size(),
        cache: tuner.and_then(Tuner::path).map(Into::into),
        launches: tuned.iter().map(one).collect(),
    }
}

fn table(tuned: &[Tuned], lattice: Lattice, device: &Device, tuner: &Tuner) -> String {
    let fresh = tuned.iter().filter(|t| t.fresh).count();
    let known = match tuned.len() - fresh {
        0 => String::new(),
        n => format!(", {n} measured before (*)"),
    };
    let mut text = format!("{}, {lattice}: {} measured{known}\n", device.describe(), count(fresh, "kernel"));
    let _ = writeln!(
        text,
        "{:<36} {:>9} {:>4} {:>12} {:>10} {:>12} {:>10} {:>7}",
        "kernel", "sites", "nrhs", "default", "us", "block", "us", "gain"
    );
    let time = |time: Option<f64>| time.map_or("-".into(), |t| format!("{t:.2}"));
    for Tuned { launch, entry, fresh } in tuned {
        let _ = writeln!(
            text,
            "{:<36} {:>9} {:>4} {:>12} {:>10} {:>12} {:>10} {:>7}{}",
            launch.kernel,
            launch.sites,
            launch.nrhs,
            entry.default.to_string(),
            time(entry.default_microseconds()),
            entry.shape.to_string(),
            time(entry.best_microseconds()),
            entry.gain().map_or("-".into(), |gain| format!("{:+.1}%", 100.0 * (gain - 1.0))),
            if *fresh { "" } else { " *" }
        );
    }
    if let Some(path) = tuner.path() {
        let _ = writeln!(text, "cache: {}", path.display());
    }
    text
}
