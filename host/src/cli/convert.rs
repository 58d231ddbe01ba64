//! `ferrite convert`.
use super::fields::{file_precision, gauge_format, gauge_precision, read_gauge, spinor_format};
use super::verify::ReadFlags;
use super::{Context, Failure, Outcome, target};
use clap::{Args, ValueEnum};
use ferrite::field::host::{ColourVector, Fermion, Spinor};
use ferrite::files::{Format, Precision, ReadOptions, WriteOptions, inspect, read_fermion, write_fermion, write_gauge};
use serde_json::json;
use std::path::PathBuf;

const EXAMPLES: &str = "\
Examples:
  ferrite convert lat.nersc lat.ildg
  ferrite convert lat.ildg lat.cfg --format nersc3x3 --precision single
  ferrite convert solution.lime solution.npy

Spinors and colour vectors go to scidac (.lime) and npy.";

/// `--format`.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub enum Name {
    /// NERSC archive, two rows of each link
    Nersc,
    /// NERSC archive, three rows
    Nersc3x3,
    /// LIME as the Lattice Data Grid has it
    Ildg,
    /// LIME as the SciDAC library writes it
    Scidac,
    /// MILC version 5
    Milc,
    /// NumPy array
    Npy,
}

/// Arguments of `convert`.
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub struct Arguments {
    /// A gauge field, spinors or colour vectors in any format
    input: PathBuf,
    /// The file to write
    output: PathBuf,
    /// Format of the file to write [default: by its name]
    #[arg(long, value_enum)]
    format: Option<Name>,
    /// Precision of the file to write: single or double [default: that of the input]
    #[arg(long, value_name = "NAME", value_parser = file_precision)]
    precision: Option<Precision>,
    #[command(flatten)]
    read: ReadFlags,
}

/// Reads with all checks and writes.
pub fn run(args: Arguments, context: &Context) -> Outcome {
    context.device_choice()?.start_threads();
    let options = args.read.options();
    let header = inspect(&args.input, &options).map_err(Failure::reading)?;
    let field = match header.values_per_site() {
        36 => "gauge",
        12 => Spinor::NAME,
        3 => ColourVector::NAME,
        n => {
            let input = args.input.display();
            let message = format!("{input}: holds {n} numbers per site; links have 36, spinors 12, colour vectors 3");
            return Err(Failure::refused(message));
        }
    };
    let fermion = field != "gauge";
    let by_name = || if fermion { spinor_format(&args.output, 1) } else { gauge_format(&args.output) };
    let format = match args.format {
        Some(Name::Nersc) => Format::Nersc,
        Some(Name::Nersc3x3) => Format::Nersc3x3,
        Some(Name::Ildg) => Format::Ildg,
        Some(Name::Scidac) => Format::Scidac,
        Some(Name::Milc) => Format::Milc,
        Some(Name::Npy) => Format::Npy,
        None => by_name().map_err(|why| Failure::refused(format!("{why}, or give --format")))?,
    };
    if fermion && !matches!(format, Format::Scidac | Format::Npy) {
        let input = args.input.display();
        let message = format!("{input} holds a {field} field: write it with --format scidac or --format npy");
        return Err(Failure::refused(message));
    }
    target::check(&args.output).map_err(Failure::refused)?;
    let precision = gauge_precision(args.precision, header.precision, format);
    let title = format!("converted from {}", args.input.display());
    let write = WriteOptions { format, precision, title, ..Default::default() };
    match field {
        Spinor::NAME => copy::<Spinor>(&args, &options, &write)?,
        ColourVector::NAME => copy::<ColourVector>(&args, &options, &write)?,
        _ => {
            let file = read_gauge(&args.input, &options)?;
            write_gauge(&args.output, &file.gauge, &write).map_err(Failure::writing)?;
        }
    }
    let object = json!({
        "input": args.input,
        "output": args.output,
        "field": field,
        "format": format!("{format:?}").to_lowercase(),
        "precision": precision.to_string(),
        "lattice": header.lattice.size(),
    });
    context.output.result("ferrite.convert/1", object, || {
        format!("{}: {format:?}, {precision} precision, {}\n", args.output.display(), header.lattice)
    })
}

/// Reads a fermion field and writes it.
fn copy<T: Fermion>(args: &Arguments, options: &ReadOptions, write: &WriteOptions) -> Outcome {
    let file = read_fermion::<T>(&args.input, options).map_err(Failure::reading)?;
    write_fermion(&args.output, &file.field, write).map_err(Failure::writing)
}
