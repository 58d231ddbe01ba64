//! `ferrite convert`.
use super::fields::{
    Reading, file_precision, gauge_format, gauge_precision, note_header, read_gauge, spinor_format, write_gauge,
};
use super::layout::Layout;
use super::verify::ReadFlags;
use super::{Context, Failure, Outcome, target};
use clap::{Args, ValueEnum};
use ferrite::field::host::{ColourVector, Fermion, Spinor};
use ferrite::files::{
    FileFormat, FilePrecision, Header, MetadataCopy, SharedFile, WriteOptions, inspect, read_fermion, write_fermion,
};
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
pub enum FormatName {
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
pub struct ConvertArguments {
    /// A gauge field, spinors or colour vectors in any format
    input: PathBuf,
    /// The file to write
    output: PathBuf,
    /// Format of the file to write [default: by its name]
    #[arg(long, value_enum)]
    format: Option<FormatName>,
    /// Precision of the file to write: single or double [default: that of the input]
    #[arg(long, value_name = "NAME", value_parser = file_precision)]
    precision: Option<FilePrecision>,
    #[command(flatten)]
    read: ReadFlags,
}

impl ConvertArguments {
    /// What is in the file, and the format that it gets.
    fn check(&self, header: &Header) -> Outcome<(&'static str, FileFormat)> {
        let field = match header.values_per_site() {
            36 => "gauge",
            12 => Spinor::NAME,
            3 => ColourVector::NAME,
            n => {
                let input = self.input.display();
                let why = format!("{input}: holds {n} numbers per site; links have 36, spinors 12, colour vectors 3");
                return Err(Failure::refused(why));
            }
        };
        let fermion = field != "gauge";
        let by_name = || if fermion { spinor_format(&self.output, 1) } else { gauge_format(&self.output) };
        let format = match self.format {
            Some(FormatName::Nersc) => FileFormat::Nersc,
            Some(FormatName::Nersc3x3) => FileFormat::Nersc3x3,
            Some(FormatName::Ildg) => FileFormat::Ildg,
            Some(FormatName::Scidac) => FileFormat::Scidac,
            Some(FormatName::Milc) => FileFormat::Milc,
            Some(FormatName::Npy) => FileFormat::Npy,
            None => by_name().map_err(|why| Failure::refused(format!("{why}, or give --format")))?,
        };
        if fermion && !matches!(format, FileFormat::Scidac | FileFormat::Npy) {
            let input = self.input.display();
            let why = format!("{input} holds a {field} field: write it with --format scidac or --format npy");
            return Err(Failure::refused(why));
        }
        Ok((field, format))
    }
}

/// Reads with all checks and writes.
pub fn run(args: ConvertArguments, context: &Context) -> Outcome {
    let (choice, comm) = (context.device_choice()?, &context.comm);
    choice.start_threads(comm)?;
    let read = args.read.reading();
    let header = inspect(SharedFile::new(&args.input, &*comm.network()), &read.options);
    let header = header.map_err(|error| Failure::reading(&error, read.by))?;
    let (field, format) = comm.agree(args.check(&header))?;
    target::claim(comm, &[&args.input], &[&args.output])?;
    let layout = choice.layout.cut(comm, header.lattice, 1)?;
    let precision = gauge_precision(args.precision, header.precision, format);
    let precision = comm.agree(precision.map_err(Failure::refused))?;
    let title = format!("converted from {}", args.input.display());
    let mut write = WriteOptions { format, precision, title, ..Default::default() };
    // A plaquette that differs from its header is accepted without verification, but not copied.
    let same_plaquette = |plaquette: f64| {
        !read.options.reunitarise && header.plaquette.is_none_or(|stored| stored.agrees(plaquette, header.precision))
    };
    let carry = |write: &mut WriteOptions, same_plaquette| {
        let same_numbers = precision == header.precision && !read.options.reunitarise;
        let from = args.input.display().to_string();
        MetadataCopy { header: &header, from: &from, same_numbers, same_plaquette }.copy_to(write)
    };
    let left = match field {
        Spinor::NAME => copy::<Spinor>(&args, &read, carry(&mut write, true), &write, &layout)?,
        ColourVector::NAME => copy::<ColourVector>(&args, &read, carry(&mut write, true), &write, &layout)?,
        _ => {
            let file = read_gauge(&args.input, &read, &layout, comm)?;
            let left = carry(&mut write, same_plaquette(file.plaquette.mean));
            write_gauge(&args.output, &file.gauge, &write, &layout)?;
            left
        }
    };
    if !left.is_empty() {
        tracing::info!("{}: metadata not copied to {format}: {}", args.input.display(), left.join(", "));
    }
    let object = json!({
        "input": args.input,
        "output": args.output,
        "field": field,
        "format": format!("{format:?}").to_lowercase(),
        "precision": precision.to_string(),
        "lattice": header.lattice.size(),
        "left_out": left,
        "layout": layout.describe(),
    });
    context.output.result("ferrite.convert/1", object, || {
        format!("{}: {format}, {precision} precision, {}\n", args.output.display(), header.lattice)
    })
}

/// Reads a fermion field and writes it.
fn copy<T: Fermion>(
    args: &ConvertArguments,
    read: &Reading,
    left: Vec<String>,
    write: &WriteOptions,
    layout: &Layout,
) -> Outcome<Vec<String>> {
    let file = read_fermion::<T>(layout.share(&args.input), &read.options);
    let file = file.map_err(|error| Failure::reading(&error, read.by))?;
    note_header(&args.input, &file.header, &file.checksum, &read.options);
    write_fermion(layout.share(&args.output), &file.field, write).map_err(Failure::writing)?;
    Ok(left)
}
