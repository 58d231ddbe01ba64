//! Command `ferrite links`.
use super::fields::file_precision;
use super::verify::ReadFlags;
use super::{Context, Failure, Outcome};
use clap::{Args, Subcommand};
use ferrite::files::FilePrecision;
use ferrite::files::formats::endings_off_su3;
use ferrite::operators::{BOUNDARIES, Smearing, StaggeredOperator, StaggeredParams, Tadpole, TimeBoundary};
use ferrite_inputs::none_of;
use ferrite_tasks::improved_links::ImprovedLinksRequest;
use std::path::PathBuf;

const EXAMPLES: &str = "\
Examples:
  ferrite links asqtad lat.milc fat.scidac long.scidac --u0 0.8441
  ferrite links hisq lat.milc fat.npy long.npy
  ferrite solve --operator asqtad --fat fat.scidac --long long.scidac --mass 0.02 --source random:1

The files contain MILC's phases and the sign of the boundary condition, like MILC's own fat and long links.";

/// Arguments of `links`.
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub struct LinksArguments {
    #[command(subcommand)]
    action: LinksCommand,
}

#[derive(Subcommand)]
enum LinksCommand {
    /// Asqtad links: one level of smearing, tadpole improved
    Asqtad(Asqtad),
    /// HISQ links: two levels of smearing with a projection to U(3) in between
    Hisq(Hisq),
}

#[derive(Args)]
struct Asqtad {
    #[command(flatten)]
    common: LinksFlags,
    /// Tadpole factor, or 'plaquette' for the fourth root of the mean plaquette
    #[arg(long, value_name = "U", default_value = "1", allow_hyphen_values = true)]
    u0: String,
}

#[derive(Args)]
struct Hisq {
    #[command(flatten)]
    common: LinksFlags,
    /// Correction epsilon of the Naik term, for heavy quarks
    #[arg(long, value_name = "E", default_value_t = 0.0, allow_hyphen_values = true)]
    naik_epsilon: f64,
}

#[derive(Args)]
struct LinksFlags {
    /// Gauge configuration, in any supported format
    input: PathBuf,
    #[arg(help = format!("File for the fat links: {}", endings_off_su3()))]
    fat: PathBuf,
    /// File for the long links
    long: PathBuf,
    /// Boundary condition of fermions in t: antiperiodic or periodic
    #[arg(long, value_name = "NAME", default_value = "antiperiodic")]
    bc_time: String,
    /// Precision of the files: single or double
    #[arg(long, value_name = "NAME", value_parser = file_precision, default_value = "double")]
    precision: FilePrecision,
    #[command(flatten)]
    read: ReadFlags,
}

/// Returns the flags that both subcommands have, the operator, and the boundary condition.
fn checked(args: LinksArguments) -> Outcome<(LinksFlags, StaggeredOperator, TimeBoundary)> {
    let params = StaggeredParams::new(0.0, TimeBoundary::Antiperiodic);
    let (common, operator) = match args.action {
        LinksCommand::Asqtad(args) => {
            let tadpole = Tadpole::parse(&args.u0).map_err(|why| Failure::refused(format!("--u0 {why}")))?;
            let smearing = Smearing::Asqtad(tadpole);
            (args.common, StaggeredOperator { smearing, ..StaggeredOperator::asqtad(params, 1.0) })
        }
        LinksCommand::Hisq(args) if !args.naik_epsilon.is_finite() => {
            return Err(Failure::refused(format!("--naik-epsilon {}: expected a finite number", args.naik_epsilon)));
        }
        LinksCommand::Hisq(args) => (args.common, StaggeredOperator::hisq(params, args.naik_epsilon)),
    };
    let boundary = BOUNDARIES.iter().find(|(name, _)| *name == common.bc_time).map(|(_, boundary)| *boundary);
    let Some(boundary) = boundary else {
        let names = BOUNDARIES.map(|(name, _)| name);
        return Err(Failure::refused(format!("--bc-time {}", none_of("bc-time", &common.bc_time, &names))));
    };
    Ok((common, operator, boundary))
}

/// Reads a configuration, makes its fat and long links, and writes them.
pub fn run(args: LinksArguments, context: &Context) -> Outcome {
    let device = context.device_choice()?;
    let (LinksFlags { input, fat, long, precision, read, .. }, operator, boundary) =
        context.comm.agree(checked(args))?;
    let reading = read.reading();
    let request = ImprovedLinksRequest { input, reading, fat, long, precision, operator, boundary, device };
    let (record, title) = request.make(&context.session)?;
    context.output.record(&record, || {
        format!(
            "{title}\nfat: {}, largest element {:.6}\nlong: {}, largest element {:.6}\n",
            record.fat.display(),
            record.largest_fat,
            record.long.display(),
            record.largest_long
        )
    })
}
