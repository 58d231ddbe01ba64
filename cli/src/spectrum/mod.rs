//! Command `ferrite spectrum`.
use super::{Context, Outcome};
use clap::Args;
use ferrite_tasks::spectrum::{self, SpectrumInput, SpectrumSource};
use std::path::PathBuf;

const EXAMPLES: &str = "\
Examples:
  ferrite init spectrum > pion.toml
  ferrite spectrum pion.toml cfg.000100.ildg cfg.000200.ildg --out spectrum
  ferrite spectrum pion.toml run/cfg.*.ildg --out spectrum --set solve.mass=0.02

Solves for all 12 components of a source (3 for staggered quarks) on each configuration, together or, if memory does not
suffice, in batches. From the propagators the command computes mesons with all 16 products of gamma matrices, nucleons, and three-point
functions of both; or staggered mesons, local or of any taste. The folder contains one line of JSON for each configuration in
correlators.jsonl, all correlators in .npy, and effective masses with jackknife errors over configurations. Configurations
that have a line are skipped: run the same command again to resume.";

/// Arguments of `spectrum`.
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub struct SpectrumArguments {
    /// Input file in TOML; `ferrite init spectrum` prints an input with comments
    input: PathBuf,
    /// Gauge configurations, in any supported format, instead of those of the input
    #[arg(value_name = "CONFIGURATION")]
    configurations: Vec<String>,
    /// Folder for the results
    #[arg(short, long, value_name = "DIR")]
    out: PathBuf,
    /// Number of source components to solve together, 1 to 64 [default: all of a source, or fewer if memory does not suffice]
    #[arg(long, value_name = "N", allow_hyphen_values = true)]
    batch: Option<String>,
    /// Override a key of the input, such as solve.mass=0.02 or origin=0,0,0,8; repeat the flag for several keys
    #[arg(long, value_name = "KEY=VALUE")]
    set: Vec<String>,
}

/// Computes the correlators on all configurations, and prints their summary.
pub fn run(args: SpectrumArguments, context: &Context) -> Outcome {
    let SpectrumArguments { input, configurations, out, batch, set } = args;
    let source = SpectrumSource { input, configurations, batch, set };
    let input = context.comm.agree(SpectrumInput::read(&source, |input| context.add_to(input)))?;
    let (summary, record) = spectrum::measure(input, &source.input, &out, &context.session)?;
    context.output.record(&record, || summary.text(&out, context.global.verbose > 0))
}
