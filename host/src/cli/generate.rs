//! `ferrite generate`.
use super::fields::{file_precision, gauge_format, gauge_precision, require_host_memory};
use super::text::lattice;
use super::{Context, Failure, Outcome, quenched, target};
use clap::{Args, ValueEnum};
use ferrite::files::{Precision, WriteOptions, write_gauge};
use ferrite::lattice::Lattice;
use ferrite::{generate, measure};
use serde_json::json;
use std::path::PathBuf;

const EXAMPLES: &str = "\
Examples:
  ferrite generate weak-field --lattice 16,16,16,32 --seed 7 -o weak.ildg
  ferrite generate random --lattice 8,8,8,8 --seed 1 --precision single -o random.nersc
  ferrite generate quenched --lattice 16,16,16,16 --beta 6.0 --sweeps 500 --seed 3 -o q.ildg
  ferrite generate quenched --lattice 16,16,16,16 --beta 6.0 --thermalise 500 --sweeps 1000 --every 100 --seed 3 -o q.ildg
  ferrite generate quenched --lattice 16,16,16,16 --beta 6.0 --start q.ildg --first-sweep 500 --sweeps 100 --seed 3 -o r.ildg

The same seed gives the same links on every machine, whatever the number of threads. A quenched run that goes on from
its last file with --first-sweep makes what it would have made without a break.";

/// Which links.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Kind {
    /// Unit links with some noise, made unitary again
    WeakField,
    /// All links 1
    Unit,
    /// Independent links with the Haar measure
    Random,
    /// SU(3) with the Wilson plaquette action: heat bath and over-relaxation, on the device
    Quenched,
}

/// Arguments of `generate`.
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub struct Arguments {
    /// Which links
    #[arg(value_enum)]
    kind: Kind,
    /// Extents, all even
    #[arg(long, value_name = "X,Y,Z,T", value_parser = lattice)]
    lattice: Lattice,
    /// Seed of the random numbers; needed unless all links are 1
    #[arg(long, value_name = "N", required_if_eq_any = [
        ("kind", "weak-field"), ("kind", "random"), ("kind", "quenched"),
    ])]
    seed: Option<u64>,
    /// Strength of the noise of a weak field [default: 0.1]
    #[arg(long, value_name = "SIGMA", value_parser = noise, allow_hyphen_values = true)]
    noise: Option<f64>,
    /// Precision of the numbers in the file: single or double [default: double; single for .milc]
    #[arg(long, value_name = "NAME", value_parser = file_precision)]
    precision: Option<Precision>,
    /// The file; its name tells the format: .ildg, .lime, .scidac, .nersc, .nersc3x3, .milc or .npy
    #[arg(short, long, value_name = "FILE")]
    output: PathBuf,
    #[command(flatten)]
    quenched: quenched::Flags,
}

fn noise(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(x) if x.is_finite() && (0.0..=1e6).contains(&x) => Ok(x),
        _ => Err(format!("'{text}' is not a number from 0 to 1e6")),
    }
}

/// Makes the links and writes them.
pub fn run(args: Arguments, context: &Context) -> Outcome {
    context.device_choice()?.start_threads();
    if args.noise.is_some() && args.kind != Kind::WeakField {
        return Err(Failure::refused("--noise is for weak-field only: leave it out"));
    }
    let format = gauge_format(&args.output).map_err(Failure::refused)?;
    target::check(&args.output).map_err(Failure::refused)?;
    let (lattice, seed, noise) = (args.lattice, args.seed.unwrap_or(0), args.noise.unwrap_or(0.1));
    if args.kind != Kind::Quenched {
        args.quenched.refuse()?;
    }
    require_host_memory(lattice, 576, &args.output.display().to_string())?;
    let (gauge, title) = match args.kind {
        Kind::Unit => (ferrite::field::host::HostGauge::unit(lattice), "unit links".into()),
        Kind::Random => (generate::random(lattice, seed), format!("random links, seed {seed}")),
        Kind::WeakField => {
            (generate::weak_field(lattice, seed, noise), format!("weak field, seed {seed}, noise {noise}"))
        }
        Kind::Quenched => {
            let precision = gauge_precision(args.precision, Precision::Double, format);
            let target = quenched::Target { path: args.output, format, precision };
            return quenched::run(&args.quenched, lattice, seed, &target, context);
        }
    };
    let precision = gauge_precision(args.precision, Precision::Double, format);
    let options = WriteOptions { format, precision, title, ..Default::default() };
    write_gauge(&args.output, &gauge, &options).map_err(Failure::writing)?;
    let plaquette = measure::plaquette(&gauge).mean;
    let object = json!({
        "output": args.output,
        "lattice": lattice.size(),
        "seed": args.seed,
        "plaquette": { "mean": plaquette },
    });
    context.output.result("ferrite.generate/1", object, || {
        format!("{}: {} on {lattice}, plaquette {plaquette:.10}\n", args.output.display(), options.title)
    })
}
