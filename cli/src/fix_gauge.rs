//! Command `ferrite fix-gauge`.
use super::fields::help_of_output;
use super::verify::ReadFlags;
use super::{Context, Outcome, text};
use clap::{Args, ValueEnum};
use ferrite::gauge::fixing::relax::Gauge;
use ferrite_records::links::BeforeAndAfter;
use ferrite_tasks::fix_gauge::{FixGaugeRequest, name};
use ferrite_tasks::link_job::LinkFilesRequest;
use std::path::PathBuf;

const EXAMPLES: &str = "\
Examples:
  ferrite fix-gauge cfg.000100.ildg -o coulomb.000100.ildg
  ferrite fix-gauge cfg.000100.ildg -o landau.000100.ildg --gauge landau --tol 1e-14

Over-relaxation continues until theta = sum tr D D^+ / (3 V) of the divergence D falls to --tol. Wall sources of
`ferrite spectrum` need links in Coulomb gauge.";

/// Arguments of `fix-gauge`.
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub struct FixGaugeArguments {
    /// Gauge configuration, in any supported format
    input: PathBuf,
    #[arg(short, long, value_name = "FILE", help = help_of_output("The file to write"))]
    output: PathBuf,
    /// Gauge condition
    #[arg(long, value_name = "NAME", value_enum, default_value = "coulomb")]
    gauge: GaugeName,
    /// Value of theta = sum tr D D^+ / (3 V) at which sweeps end, where D is the divergence of the links at a site
    #[arg(long, value_name = "EPS", value_parser = tolerance, default_value = "1e-12", allow_hyphen_values = true)]
    tol: f64,
    /// Over-relaxation parameter, at least 1 (none) and below 2 [default: chosen for the gauge and the lattice extents]
    #[arg(long, value_name = "W", value_parser = omega, allow_hyphen_values = true)]
    overrelax: Option<f64>,
    /// Maximum number of sweeps over the lattice
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..), default_value = "20000",
          allow_hyphen_values = true)]
    max_sweeps: u32,
    #[command(flatten)]
    read: ReadFlags,
}

/// `--gauge`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum GaugeName {
    /// Coulomb gauge, each time slice separately
    Coulomb,
    /// Landau gauge, in all four directions
    Landau,
}

fn tolerance(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        // Rounding errors of sums over eight links enter θ squared, so smaller tolerances cannot be reached.
        Ok(x) if x.is_finite() && x >= 1e-28 => Ok(x),
        _ => Err(format!(
            "'{text}' is not a finite number of at least 1e-28, the smallest value that double precision can reach"
        )),
    }
}

fn omega(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(x) if (1.0..2.0).contains(&x) => Ok(x),
        _ => Err(format!("'{text}' is not a number of at least 1 and below 2")),
    }
}

/// Fixes the gauge of a configuration, writes the links if θ has converged, and prints the record.
pub fn run(args: FixGaugeArguments, context: &Context) -> Outcome {
    let FixGaugeArguments { input, output, gauge, tol, overrelax, max_sweeps, read } = args;
    let device = context.device_choice()?;
    let gauge = match gauge {
        GaugeName::Coulomb => Gauge::Coulomb,
        GaugeName::Landau => Gauge::Landau,
    };
    let files = LinkFilesRequest { input, output, reading: read.reading(), device };
    let request = FixGaugeRequest { files, gauge, tol, overrelax, max_sweeps: max_sweeps as usize };
    let record = request.fix(&context.session)?;
    context.output.record(&record, || {
        let both = |name: &str, BeforeAndAfter { before, after }: BeforeAndAfter<f64>| {
            format!("{name:<12}{after:.12}, before {before:.12}\n")
        };
        format!(
            "{}: {} gauge on {}, {} with omega = {:.3}, {} on {}\ntheta       {:.3e}, before {:.3e}\n{}{}",
            record.links.output.display(),
            name(gauge),
            text::by(record.links.lattice),
            text::count(record.sweeps, "sweep"),
            record.overrelax,
            text::seconds(record.seconds),
            record.links.place.device,
            record.theta.after,
            record.theta.before,
            both("functional", record.functional),
            both("plaquette", record.plaquette)
        )
    })
}
