//! Command `ferrite convert`.
use super::fields::{
    Content, Inspected, Reading, Stack, built_in, file_precision, gauge_format, gauge_precision, inspect, note_header,
    read_gauge, require_host_memory, spinor_format, write_gauge,
};
use super::layout::Layout;
use super::verify::ReadFlags;
use super::{Context, Failure, Outcome, target};
use clap::Args;
use clap::builder::{PossibleValue, PossibleValuesParser};
use ferrite::field::host::{ColourVector, Fermion, Spinor};
use ferrite::files::{
    BlockFile, FermionFile, FileFormat, FilePrecision, MetadataCopy, SCIDAC, WriteOptions, formats, read_fermion,
    read_fermions, write_block, write_fermion,
};
use ferrite_records::links::ConvertRecord;
use std::path::PathBuf;

const EXAMPLES: &str = "\
Examples:
  ferrite convert lat.nersc lat.ildg
  ferrite convert lat.ildg lat.cfg --format nersc3x3 --precision single
  ferrite convert lat.ildg lat.openqcd
  ferrite convert solution.lime solution.npy
  ferrite convert staggered.lime staggered.milc

Spinors, colour vectors and propagators (12 spinors or 3 colour vectors) can be written as scidac (.lime) and npy;
propagators of 12 spinors also as kyu, and those of 3 colour vectors also as milc. All fields of a LIME file are
converted, unless --record names one.";

/// Returns the names of the formats that can be written, with their help texts.
fn format_names() -> PossibleValuesParser {
    let mut names: Vec<&FileFormat> = Vec::new();
    for format in formats::formats() {
        if format.flag.is_some() && names.iter().all(|known| known.flag != format.flag) {
            names.push(format);
        }
    }
    let value = |format: &FileFormat| Some(PossibleValue::new(format.flag?).help(format.summary));
    PossibleValuesParser::new(names.into_iter().filter_map(value))
}

/// Arguments of `convert`.
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub struct ConvertArguments {
    /// Gauge configuration, spinors, colour vectors or propagator, in any supported format
    input: PathBuf,
    /// File to write
    output: PathBuf,
    /// Format of the file to write [default: from the file name]
    #[arg(long, value_name = "FORMAT", value_parser = format_names())]
    format: Option<String>,
    /// Precision of the file to write: single or double [default: the precision of the input, or the only one of the format]
    #[arg(long, value_name = "NAME", value_parser = file_precision)]
    precision: Option<FilePrecision>,
    #[command(flatten)]
    read: ReadFlags,
}

impl ConvertArguments {
    /// Returns the format of the file to write. Fails if it cannot hold the fields.
    fn check(&self, found: &Inspected) -> Outcome<&'static FileFormat> {
        let (input, fermion) = (self.input.display(), found.content != Content::Links);
        let components = match found.content {
            Content::Other(n) => {
                let why = format!(
                    "{input}: the file holds {n} complex numbers per site, but convert expects 36 (links), 12 (spinors), \
                     3 (colour vectors), 144 or 9 (propagators): name another file"
                );
                return Err(Failure::refused(why));
            }
            Content::ColourVectors => ColourVector::COMPONENTS,
            Content::Spinors | Content::Links => Spinor::COMPONENTS,
        };
        let stack = Stack::of_sources(if found.block { found.header.fields } else { 1 }, components);
        let holds = |format: &FileFormat| if fermion { stack.is_held_by(format) } else { format.links.is_some() };
        let by_name = || if fermion { spinor_format(&self.output, stack) } else { gauge_format(&self.output) };
        let format = match self.format.as_deref() {
            None => by_name().map_err(|why| Failure::refused(format!("{why}, or choose a format with --format")))?,
            Some(name) => {
                let named = || formats::formats().filter(|format| format.flag == Some(name));
                let Some(format) = named().find(|format| holds(format)).or_else(|| named().next()) else {
                    return Err(Failure::refused(format!(
                        "--format {name}: unknown format; `ferrite convert --help` lists the formats"
                    )));
                };
                built_in(&self.output, format).map_err(Failure::refused)?
            }
        };
        let name = found.content.name();
        let fields = match stack {
            _ if holds(format) => return Ok(format),
            Stack::One => format!("a {name} field"),
            Stack::Propagator(count) | Stack::Several(count) => format!("{count} {name} fields"),
        };
        let choices: Vec<_> = formats::of_any_fermions().filter_map(|format| format.flag).collect();
        let advice = match stack {
            Stack::One | Stack::Propagator(_) => format!("choose --format {}", choices.join(" or --format ")),
            // `--record` selects a field of a LIME file.
            Stack::Several(_) if *found.header.format == SCIDAC => {
                "write all of them with --format npy, or a single field with --format scidac --record N".into()
            }
            Stack::Several(_) => "write all of them with --format npy".to_string(),
        };
        let wanted = self.format.as_deref().unwrap_or(format.name);
        Err(Failure::refused(format!("{input} holds {fields}, which --format {wanted} cannot store: {advice}")))
    }
}

/// Reads fields with all checks, and writes them in another format.
pub fn run(args: ConvertArguments, context: &Context) -> Outcome {
    let (choice, comm) = (context.device_choice()?, &context.comm);
    choice.start_threads(comm)?;
    let read = args.read.reading();
    let found = inspect(&args.input, &read, args.read.one(), comm);
    let found = found.map_err(|error| Failure::reading(&error, read.by))?;
    let format = comm.agree(args.check(&found))?;
    let Inspected { header, content, block } = found;
    target::claim(comm, &[&args.input], &[&args.output])?;
    let layout = choice.layout.cut_for_host(comm, header.lattice)?;
    let precision = gauge_precision(args.precision, header.precision, format);
    let precision = comm.agree(precision.map_err(Failure::refused))?;
    let title = format!("converted from {}", args.input.display());
    let mut write = WriteOptions { format, precision, title, ..Default::default() };
    // Without verification, a plaquette that differs from the header is accepted, but not copied to the output.
    let same_plaquette = |plaquette: f64| {
        !read.options.reunitarise && header.plaquette.is_none_or(|stored| stored.agrees(plaquette, header.precision))
    };
    let carry = |write: &mut WriteOptions, same_plaquette| {
        let same_numbers = precision == header.precision && !read.options.reunitarise;
        let from = args.input.display().to_string();
        MetadataCopy { header: &header, from: &from, same_numbers, same_plaquette }.copy_to(write)
    };
    let count = if block { header.fields } else { 1 };
    let left = match content {
        Content::Links | Content::Other(_) => {
            let file = read_gauge(&args.input, &read, &layout, comm)?;
            let left = carry(&mut write, same_plaquette(file.plaquette.mean));
            write_gauge(&args.output, &file.gauge, &write, &layout)?;
            left
        }
        Content::Spinors | Content::ColourVectors => {
            let bytes = 16 * count * if content == Content::Spinors { 12 } else { 3 };
            require_host_memory(comm, layout.local(), bytes, &args.input.display().to_string())?;
            let left = carry(&mut write, true);
            match content {
                Content::Spinors => copy::<Spinor>(&args, &read, block, &write, &layout)?,
                _ => copy::<ColourVector>(&args, &read, block, &write, &layout)?,
            }
            left
        }
    };
    if !left.is_empty() {
        let (input, output) = (args.input.display(), args.output.display());
        tracing::info!("{input}: some metadata were not copied to {output} ({format}): {}", left.join(", "));
    }
    let record = ConvertRecord {
        input: args.input.clone(),
        output: args.output.clone(),
        field: content.name().into(),
        fields: count,
        format: format.name.into(),
        precision: precision.to_string(),
        lattice: header.lattice.size(),
        left_out: left.iter().map(ToString::to_string).collect(),
        layout: layout.record(),
    };
    context.output.record(&record, || {
        let fields = if block { format!(", {}", super::text::count(count, "field")) } else { String::new() };
        format!("{}: {format}, {precision} precision, {}{fields}\n", args.output.display(), header.lattice)
    })
}

/// Copies a fermion field, or all fields of a block, to the output file.
fn copy<T: Fermion>(
    args: &ConvertArguments,
    read: &Reading,
    block: bool,
    write: &WriteOptions,
    layout: &Layout,
) -> Outcome {
    let wrong = |error| Failure::reading(&error, read.by);
    let (input, output) = (layout.share(&args.input), layout.share(&args.output));
    let written = if block {
        let BlockFile { fields, header, checksum } = read_fermions::<T>(input, &read.options).map_err(wrong)?;
        note_header(&args.input, &header, &checksum, None);
        let fields: Vec<_> = fields.iter().collect();
        match fields[..] {
            [field] if *write.format == SCIDAC => write_fermion(output, field, write),
            _ => write_block(output, &fields, &[fields.len()], write),
        }
    } else {
        let FermionFile { field, header, checksum } = read_fermion::<T>(input, &read.options).map_err(wrong)?;
        note_header(&args.input, &header, &checksum, Some(read.options.record));
        write_fermion(output, &field, write)
    };
    written.map_err(Failure::writing)
}
