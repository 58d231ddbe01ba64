//! `ferrite fix-gauge`.
use super::fields::{gauge_format, gauge_precision, lattice_of, read_gauge, require_host_memory, write_gauge};
use super::verify::ReadFlags;
use super::{Code, Context, Failure, Outcome, interrupt, text};
use clap::{Args, ValueEnum};
use ferrite::files::WriteOptions;
use ferrite::gauge_fixing::relax::{Gauge, Relaxation, functional, omega_for, theta};
use ferrite::measure;
use serde_json::json;
use std::path::PathBuf;
use std::time::Instant;
use tracing::info;

const EXAMPLES: &str = "\
Examples:
  ferrite fix-gauge cfg.000100.ildg -o coulomb.000100.ildg
  ferrite fix-gauge cfg.000100.ildg -o landau.000100.ildg --gauge landau --tol 1e-14

Over-relaxation on the CPU, by one process, until theta = sum tr D D+ / (3 V) of the divergence D is at the tolerance. Wall
sources of `ferrite spectrum` are for links in Coulomb gauge.";

/// Arguments of `fix-gauge`.
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub struct Arguments {
    /// A gauge field in any format
    input: PathBuf,
    /// The file to write: .ildg, .lime, .scidac, .nersc, .nersc3x3, .milc or .npy
    #[arg(short, long, value_name = "FILE")]
    output: PathBuf,
    /// Which gauge
    #[arg(long, value_name = "NAME", value_enum, default_value = "coulomb")]
    gauge: Name,
    /// Theta to reach
    #[arg(long, value_name = "EPS", value_parser = tolerance, default_value = "1e-12", allow_hyphen_values = true)]
    tol: f64,
    /// Over-relaxation, from 1 (none) to below 2 [default: by the lattice's extents]
    #[arg(long, value_name = "W", value_parser = omega, allow_hyphen_values = true)]
    overrelax: Option<f64>,
    /// Give up after so many sweeps over the lattice
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..), default_value = "20000",
          allow_hyphen_values = true)]
    max_sweeps: u32,
    #[command(flatten)]
    read: ReadFlags,
}

/// `--gauge`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Name {
    /// Each time by itself
    Coulomb,
    /// All four directions
    Landau,
}

fn tolerance(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        // Rounding errors of sums over eight links, squared.
        Ok(x) if x.is_finite() && x >= 1e-28 => Ok(x),
        _ => Err(format!("'{text}' is not a number of 1e-28 or more, which double precision can reach")),
    }
}

fn omega(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(x) if (1.0..2.0).contains(&x) => Ok(x),
        _ => Err(format!("'{text}' is not a number from 1 to below 2")),
    }
}

/// Sweeps between two looks at θ, which costs half of one.
const LOOK: usize = 10;

/// Reads, fixes, and writes what converged.
pub fn run(args: Arguments, context: &Context) -> Outcome {
    let (choice, world) = (context.device_choice()?, &context.world);
    world.only_one("fix-gauge")?;
    choice.start_threads(world)?;
    let reading = args.read.reading();
    let format = gauge_format(&args.output).map_err(Failure::refused)?;
    super::target::check(&args.output).map_err(Failure::refused)?;
    let lattice = lattice_of(&args.input, &reading, world)?;
    let layout = choice.layout.cut(world, lattice, 1)?;
    // Links, turns and neighbours of sites.
    require_host_memory(lattice, 576 + 144 + 45, &args.input.display().to_string())?;
    let file = read_gauge(&args.input, &reading, &layout, world)?;
    let precision = gauge_precision(None, file.header.precision, format);
    let (kind, name) = match args.gauge {
        Name::Coulomb => (Gauge::Coulomb, "Coulomb"),
        Name::Landau => (Gauge::Landau, "Landau"),
    };
    let links = file.gauge;
    let before = (functional(&links, kind), theta(&links, kind), measure::plaquette(&links).mean);
    let omega = args.overrelax.unwrap_or_else(|| omega_for(lattice, kind));
    let mut relaxation = Relaxation::new(links, kind, omega);
    let (begin, mut now) = (Instant::now(), before.1);
    interrupt::listen();
    while now > args.tol {
        if relaxation.sweeps() >= args.max_sweeps as usize {
            let why = format!(
                "{}: theta is {now:.3e} after {} sweeps, asked was {:.0e}: give --max-sweeps more, or another --overrelax",
                args.input.display(),
                relaxation.sweeps(),
                args.tol
            );
            return Err(Failure::failed(why));
        }
        if interrupt::asked_any(world, 0) {
            return Err(Failure::new(Code::Interrupted, format!("ended at theta = {now:.3e}; nothing was written")));
        }
        let rest = args.max_sweeps as usize - relaxation.sweeps();
        now = relaxation.relax(LOOK.min(rest), args.tol);
        if relaxation.sweeps().is_multiple_of(100 * LOOK) {
            info!("{} sweeps: theta = {now:.3e}", relaxation.sweeps());
        }
    }
    let sweeps = relaxation.sweeps();
    let links = relaxation.finish();
    let after = (functional(&links, kind), now, measure::plaquette(&links).mean);
    let title = format!("{name} gauge, theta = {now:.3e}, from {}", args.input.display());
    write_gauge(&args.output, &links, &WriteOptions { format, precision, title, ..Default::default() }, &layout)?;
    let seconds = begin.elapsed().as_secs_f64();
    let object = json!({
        "input": args.input,
        "output": args.output,
        "gauge": name.to_lowercase(),
        "lattice": lattice.size(),
        "format": format!("{format:?}").to_lowercase(),
        "precision": precision.to_string(),
        "sweeps": sweeps,
        "overrelax": omega,
        "tol": args.tol,
        "theta": { "before": before.1, "after": after.1 },
        "functional": { "before": before.0, "after": after.0 },
        "plaquette": { "before": before.2, "after": after.2 },
        "seconds": seconds,
    });
    context.output.result("ferrite.fix-gauge/1", object, || {
        format!(
            "{}: {name} gauge on {lattice}, {} sweeps with omega = {omega:.3}, {}\ntheta       {:.3e}, before {:.3e}\n\
             functional  {:.12}, before {:.12}\nplaquette   {:.12}, before {:.12}\n",
            args.output.display(),
            sweeps,
            text::seconds(seconds),
            after.1,
            before.1,
            after.0,
            before.0,
            after.2,
            before.2
        )
    })
}
