//! `ferrite smear`.
use super::fields::{gauge_format, gauge_precision, lattice_of, read_gauge, require_host_memory, write_gauge};
use super::verify::ReadFlags;
use super::{Context, Failure, Outcome};
use clap::Args;
use ferrite::Precision;
use ferrite::domain::Part;
use ferrite::field::GaugeField;
use ferrite::files::WriteOptions;
use ferrite::halo::Exchanges;
use ferrite::hmc::momenta::MomentumField;
use ferrite::hmc::stout::StoutSmearing;
use ferrite::observables::loops::{plaquette_text, put_plaquette};
use serde_json::{Value, json};
use std::path::PathBuf;

const EXAMPLES: &str = "\
Examples:
  ferrite smear cfg.000100.ildg -o stout.ildg --rho 0.1 --levels 2
  ferrite smear cfg.000100.ildg -o stout.ildg --rho 0.14 --spatial

Stout links, U' = exp(iQ) U, iQ being rho times the traceless anti-Hermitian part of the sum of staples times U+ (Morningstar and
Peardon 2004). Operators have such links without a file, too: --stout-rho of `ferrite solve`.";

/// Arguments of `smear`.
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub struct SmearArguments {
    /// A gauge field in any format
    input: PathBuf,
    /// The file to write: .ildg, .lime, .scidac, .nersc, .nersc3x3, .milc or .npy
    #[arg(short, long, value_name = "FILE")]
    output: PathBuf,
    /// Weight of a staple
    #[arg(long, value_name = "RHO", value_parser = super::stout::rho, allow_hyphen_values = true)]
    rho: f64,
    /// How many times links are replaced by smeared ones
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..), default_value = "1",
          allow_hyphen_values = true)]
    levels: u16,
    /// Smear links in x, y and z by staples in these directions only
    #[arg(long)]
    spatial: bool,
    #[command(flatten)]
    read: ReadFlags,
}

/// Reads, smears and writes.
pub fn run(args: SmearArguments, context: &Context) -> Outcome {
    let (choice, comm) = (context.device_choice()?, &context.comm);
    let reading = args.read.reading();
    let format = comm.agree(gauge_format(&args.output).map_err(Failure::refused))?;
    super::target::claim(comm, &[&args.input], &[&args.output])?;
    let lattice = lattice_of(&args.input, &reading, comm)?;
    let layout = choice.layout.cut(comm, lattice, 1)?;
    let part = Part::new(layout.local(), layout.grid());
    require_host_memory(comm, layout.local(), 2 * 576, &args.input.display().to_string())?;
    let device = choice.open(comm)?;
    let sites = layout.local().volume();
    let mut needs = vec![
        ("links and smeared links", 2 * part.links_bytes(Precision::Double)),
        ("staples", 2 * MomentumField::bytes_for(Precision::Double, sites / 2)),
        ("their way to the host", 576 * sites),
    ];
    needs.extend(Exchanges::of(part).border(Precision::Double).needs());
    device.require_all(comm, &needs, "smearing")?;
    let file = read_gauge(&args.input, &reading, &layout, comm)?;
    let precision = comm.agree(gauge_precision(None, file.header.precision, format).map_err(Failure::refused))?;
    let smearing = StoutSmearing { rho: args.rho, levels: args.levels.into(), spatial: args.spatial };
    let (links, plaquettes) = {
        let links = GaugeField::upload(&layout.domain(device.backend())?, &file.gauge)?;
        let smeared = smearing.smeared(&links)?;
        (smeared.download()?, [links.plaquette()?.0, smeared.plaquette()?.0])
    };
    let kind = if args.spatial { "stout links in space" } else { "stout links" };
    let title = format!("{kind}, rho = {}, {} levels, from {}", args.rho, args.levels, args.input.display());
    let options = WriteOptions { format, precision, title, ..Default::default() };
    write_gauge(&args.output, &links, &options, &layout)?;
    let [before, after] = plaquettes.map(|plaquette| {
        let mut object = Value::Object(Default::default());
        put_plaquette(&mut object, &plaquette);
        object
    });
    let object = json!({
        "input": args.input,
        "output": args.output,
        "rho": args.rho,
        "levels": args.levels,
        "spatial": args.spatial,
        "lattice": lattice.size(),
        "format": format!("{format:?}").to_lowercase(),
        "precision": precision.to_string(),
        "before": before,
        "after": after,
        "backend": device.name(),
        "device": device.describe(),
        "layout": layout.describe(),
    });
    context.output.result("ferrite.smear/1", object, || {
        let text = plaquette_text(&plaquettes[1]);
        format!("{}: {kind} on {lattice}, rho = {}, levels: {}\n{text}", args.output.display(), args.rho, args.levels)
    })
}
