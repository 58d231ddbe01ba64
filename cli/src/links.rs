//! `ferrite links`.
use super::failure::ReadBy;
use super::fields::{file_precision, gauge_format, lattice_of, read_gauge, write_gauge};
use super::host_links::with_tadpole;
use super::verify::ReadFlags;
use super::{Context, Failure, Outcome, target};
use clap::{Args, Subcommand};
use ferrite::Precision;
use ferrite::domain::Part;
use ferrite::field::GaugeField;
use ferrite::field::host::HostGauge;
use ferrite::files::formats::endings_off_su3;
use ferrite::files::{FileFormat, FilePrecision, WriteOptions};
use ferrite::halo::Exchanges;
use ferrite::operators::fat_links::{self, Improvement, with_phases};
use ferrite::operators::{
    BOUNDARIES, Smearing, StaggeredOperator, StaggeredParams, StaggeredPhases, Tadpole, TimeBoundary,
};
use ferrite_inputs::none_of;
use ferrite_records::links::LinksRecord;
use std::path::{Path, PathBuf};

const EXAMPLES: &str = "\
Examples:
  ferrite links asqtad lat.milc fat.scidac long.scidac --u0 0.8441
  ferrite links hisq lat.milc fat.npy long.npy
  ferrite solve --operator asqtad --fat fat.scidac --long long.scidac --mass 0.02 --source random:1

Files hold MILC's phases and the sign of the boundary condition, as MILC's own fat and long links do.";

/// Arguments of `links`.
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub struct LinksArguments {
    #[command(subcommand)]
    action: LinksCommand,
}

#[derive(Subcommand)]
enum LinksCommand {
    /// One level of smearing, tadpole improved
    Asqtad(Asqtad),
    /// Two levels with a projection to U(3) in between
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
    /// Correction of the Naik term, for heavy quarks
    #[arg(long, value_name = "E", default_value_t = 0.0, allow_hyphen_values = true)]
    naik_epsilon: f64,
}

#[derive(Args)]
struct LinksFlags {
    /// The configuration
    input: PathBuf,
    #[arg(help = format!("Fat links: {}", endings_off_su3()))]
    fat: PathBuf,
    /// Long links
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

/// The flags, checked.
struct LinksJob {
    common: LinksFlags,
    operator: StaggeredOperator,
    boundary: TimeBoundary,
    /// Of fat and long links.
    formats: [&'static FileFormat; 2],
}

fn checked(args: LinksArguments) -> Outcome<LinksJob> {
    let params = StaggeredParams::new(0.0, TimeBoundary::Antiperiodic);
    let (common, operator) = match args.action {
        LinksCommand::Asqtad(args) => {
            let tadpole = Tadpole::parse(&args.u0).map_err(|why| Failure::refused(format!("--u0 {why}")))?;
            let smearing = Smearing::Asqtad(tadpole);
            (args.common, StaggeredOperator { smearing, ..StaggeredOperator::asqtad(params, 1.0) })
        }
        LinksCommand::Hisq(args) if !args.naik_epsilon.is_finite() => {
            return Err(Failure::refused(format!("--naik-epsilon {} is not a finite number", args.naik_epsilon)));
        }
        LinksCommand::Hisq(args) => (args.common, StaggeredOperator::hisq(params, args.naik_epsilon)),
    };
    let boundary = BOUNDARIES.iter().find(|(name, _)| *name == common.bc_time).map(|(_, boundary)| *boundary);
    let Some(boundary) = boundary else {
        let names = BOUNDARIES.map(|(name, _)| name);
        return Err(Failure::refused(format!("--bc-time {}", none_of("bc-time", &common.bc_time, &names))));
    };
    let (fat, long) = (format_of(&common.fat)?, format_of(&common.long)?);
    Ok(LinksJob { common, operator, boundary, formats: [fat, long] })
}

/// Reads, fattens and writes.
pub fn run(args: LinksArguments, context: &Context) -> Outcome {
    let (choice, comm) = (context.device_choice()?, &context.comm);
    let LinksJob { common, operator, boundary, formats: [fat_format, long_format] } = comm.agree(checked(args))?;
    target::claim(comm, &[&common.input], &[&common.fat, &common.long])?;
    let device = choice.open(comm)?;
    let lattice = lattice_of(&common.input, &common.read.reading(), comm)?;
    let layout = choice.layout.cut(comm, lattice, 3)?;
    let file = read_gauge(&common.input, &common.read.reading(), &layout, comm)?;
    let part = Part::new(layout.local(), layout.grid());
    // Thin, fat and long ones; fat ones of the first level, and these in U(3).
    let fields = if matches!(operator.smearing, Smearing::Hisq(_)) { 5 } else { 3 };
    let mut needs = vec![
        ("links, fat and long links in double", fields * part.links_bytes(Precision::Double)),
        ("staples", fat_links::workspace_bytes(part.bordered_sites())),
    ];
    needs.extend(Exchanges::of(part).border(Precision::Double).needs());
    device.require_all(comm, &needs, &format!("fat links on {lattice}"))?;
    let operator = with_tadpole(&operator.into(), &common.input, file.plaquette.mean, ReadBy::Flags)?;
    let smearing = operator.smearing();
    let (mut fat, mut long) = {
        let backend = device.backend();
        let domain = layout.domain(backend)?;
        let links = Improvement::of(&GaugeField::upload(&domain, &file.gauge)?, smearing)?;
        Ok::<_, Failure>((links.fat.download()?, links.long.download()?))
    }?;
    for (links, steps) in [(&mut fat, 1), (&mut long, 3)] {
        with_phases(links, layout.section, steps, StaggeredPhases::Milc, boundary);
    }
    let title = |what: &str| match smearing {
        Smearing::Asqtad(Tadpole::Given(u0)) => format!("{what} asqtad links, u0 = {u0}"),
        Smearing::Hisq(epsilon) => format!("{what} HISQ links, epsilon = {epsilon}"),
        _ => format!("{what} links"),
    };
    let write = |path: &Path, links: &HostGauge, format, what| {
        let options = WriteOptions { format, precision: common.precision, title: title(what), ..Default::default() };
        write_gauge(path, links, &options, &layout)
    };
    write(&common.fat, &fat, fat_format, "fat")?;
    write(&common.long, &long, long_format, "long")?;
    let largest = |links: &HostGauge| {
        comm.largest(links.links().iter().flatten().flatten().map(|z| z.norm()).fold(0.0, f64::max))
    };
    let (largest_fat, largest_long) = (largest(&fat)?, largest(&long)?);
    let record = LinksRecord {
        input: common.input.clone(),
        fat: common.fat.clone(),
        long: common.long.clone(),
        operator: operator.definition().name.into(),
        smearing: operator.describe_smearing(false),
        bc_time: if boundary == TimeBoundary::Periodic { "periodic" } else { "antiperiodic" }.into(),
        largest_fat,
        largest_long,
        lattice: lattice.size(),
        place: device.record(&layout),
    };
    context.output.record(&record, || {
        format!(
            "{}\nfat: {}, largest element {:.6}\nlong: {}, largest element {:.6}\n",
            title("fat and long"),
            common.fat.display(),
            largest_fat,
            common.long.display(),
            largest_long
        )
    })
}

/// A format that holds links off SU(3).
fn format_of(path: &Path) -> Outcome<&'static FileFormat> {
    let format = gauge_format(path).map_err(Failure::refused)?;
    if format.links.is_some_and(|links| links.off_su3) {
        return Ok(format);
    }
    let why = format!("{}: {format} files are for links in SU(3); end the name in .scidac or .npy", path.display());
    Err(Failure::refused(why))
}
