//! Command `ferrite verify`, and the flags for reading files.
use super::failure::{ReadBy, describe};
use super::fields::{Content, Inspected, Reading, inspect, require_host_memory, warn_of_open_boundary};
use super::layout::Layout;
use super::text::file_lattice;
use super::{Context, Failure, Outcome};
use clap::Args;
use ferrite::field::host::{ColourVector, Fermion, HostField, Spinor};
use ferrite::files::{
    Arrangement, Checksum, FileError, Printed, Problem, ReadOptions, read_fermion, read_fermions, read_gauge,
};
use ferrite::lattice::Lattice;
use ferrite::observables::quantity::{LINK_TRACE, PLAQUETTE, Quantity};
use ferrite_records::links::{ChecksumRecord, VerifiedFile, VerifiedLinks, VerifiedPlaquette, VerifyRecord};
use ferrite_tasks::observables::plaquettes;
use std::fmt::Write;
use std::path::{Path, PathBuf};

const EXAMPLES: &str = "\
Examples:
  ferrite verify weak.ildg
  ferrite verify solution.lime --json

Exit code 0: all checks passed. 1: a check failed. 2: the file cannot be opened.";

/// Flags for reading files, as typed.
#[derive(Args, Clone)]
pub struct ReadFlags {
    /// Lattice extents, for a file that does not contain them
    #[arg(long, value_name = "X,Y,Z,T", value_parser = file_lattice)]
    lattice: Option<Lattice>,
    /// Number of the field in a LIME file that contains several, from 0 [default: the first, or all fermion fields]
    #[arg(long, value_name = "N")]
    record: Option<usize>,
    /// Accept a file although its checksum, plaquette or link trace is not that of its header, or although bytes follow the data
    #[arg(long)]
    no_verify: bool,
    /// Accept links that are not in SU(3)
    #[arg(long)]
    allow_non_unitary: bool,
    /// Project the links to SU(3) after reading
    #[arg(long)]
    reunitarise: bool,
}

impl ReadFlags {
    /// Returns the options for reading files.
    pub fn reading(&self) -> Reading {
        let options = ReadOptions {
            verify: !self.no_verify,
            allow_non_unitary: self.allow_non_unitary,
            reunitarise: self.reunitarise,
            lattice: self.lattice,
            record: self.record.unwrap_or(0),
        };
        Reading { options, by: ReadBy::Flags }
    }
    /// Returns whether `--record` selects one field of a file with several.
    pub fn one(&self) -> bool {
        self.record.is_some()
    }
}

/// Arguments of `verify`.
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub struct VerifyArguments {
    /// Gauge configuration, spinors, colour vectors or propagators, in any supported format
    file: PathBuf,
    #[command(flatten)]
    read: ReadFlags,
}

/// Reads a file with all checks, and prints the results.
pub fn run(args: VerifyArguments, context: &Context) -> Outcome {
    let (choice, comm) = (context.device_choice()?, &context.comm);
    choice.start_threads(comm)?;
    let reading = args.read.reading();
    let read = match inspect(&args.file, &reading, args.read.one(), comm) {
        Ok(found) => {
            let layout = choice.layout.cut_for_host(comm, found.header.lattice)?;
            let count = match found.header.arrangement {
                Arrangement::Sites if found.block => found.header.fields,
                _ => 1,
            };
            let (bytes, name) = (16 * count * found.header.values_per_site(), args.file.display().to_string());
            require_host_memory(comm, layout.local(), bytes, &name)?;
            read(&args.file, &found, &reading.options, &layout)
        }
        Err(error) => Err(error),
    };
    match read {
        Ok((verified, text)) => {
            // Notes report entries of the header that were ignored.
            let in_order = verified.differs.is_empty() && verified.notes.is_empty();
            let end =
                if in_order { "in order" } else { "accepted, although the header is wrong or does not match the data" };
            let (file, shown) = (args.file.clone(), args.file.display());
            let record = VerifyRecord { file, ok: true, error: None, verified: Some(verified) };
            context.output.record(&record, || format!("{text}{shown}: {end}\n"))
        }
        Err(error) => {
            let message = describe(&error, reading.by);
            if args.file.is_dir() || matches!(&error.problem, Problem::Io { action, .. } if action == "open") {
                return Err(Failure::refused(message).shared());
            }
            if let Problem::Comm(_) = error.problem {
                return Err(Failure::failed(message));
            }
            let failure = Failure::failed(message).shared();
            let (file, error) = (args.file.clone(), Some(failure.record()));
            let record = VerifyRecord { file, ok: false, error, verified: None };
            context.output.record(&record, String::new)?;
            Err(failure)
        }
    }
}

fn read(
    path: &Path,
    found: &Inspected,
    options: &ReadOptions,
    layout: &Layout,
) -> Result<(VerifiedFile, String), FileError> {
    let Inspected { header, content, block } = found;
    let mut text = String::new();
    let mut line = |name: &str, value: String| {
        let _ = writeln!(text, "{name:<20} {value}");
    };
    line("field", content.name().into());
    // If the name of the format states that two rows of a link are stored, the number of rows is not repeated.
    let two_rows = header.components == 24 && !header.format.links.is_some_and(|links| links.two_rows);
    let rows = if two_rows { ", two rows" } else { "" };
    line("format", format!("{}{rows}, {} precision, {}-endian", header.format, header.precision, header.endian));
    header.notes.iter().for_each(|note| line("note", note.clone()));
    let extra = header.data_length.saturating_sub((header.lattice.volume() * header.site_bytes()) as u64);
    let length = if extra == 0 {
        "agrees with the length of the data".into()
    } else {
        format!("{}, accepted", super::text::count(extra as usize, "additional byte"))
    };
    line("lattice", format!("{} ({length})", header.lattice));
    if *block {
        let order = if header.columns().is_some() { ", the columns of a propagator" } else { "" };
        line("fields", format!("{}{order}", header.fields));
    } else if header.fields > 1 {
        let (number, last) = (options.record, header.fields - 1);
        let read = format!("field {number} was read, and --record N selects another");
        line("fields", format!("{}, numbered 0 to {last}; {read}", header.fields));
    }
    let mut differs = Vec::new();
    if extra > 0 {
        differs.push("length".to_string());
    }
    let record = |checksum: &Checksum, differs, norm2, links| VerifiedFile {
        field: content.name().into(),
        format: header.format.name.into(),
        lattice: header.lattice.size(),
        precision: header.precision.to_string(),
        fields: header.fields,
        checksum: checksum_record(checksum),
        differs,
        notes: header.notes.clone(),
        norm2,
        links,
        layout: layout.record(),
    };
    let fermion = match content {
        Content::Spinors => Some(fermion::<Spinor>(path, options, *block, layout)?),
        Content::ColourVectors => Some(fermion::<ColourVector>(path, options, *block, layout)?),
        Content::Links | Content::Other(_) => None,
    };
    if let Some((checksum, norm2)) = fermion {
        line("checksum", checksum_text(&checksum));
        line("numbers", "all finite".into());
        line("norm squared", format!("{norm2:.12e}"));
        if matches!(checksum, Checksum::Mismatch { .. }) {
            differs.push("checksum".into());
        }
        return Ok((record(&checksum, differs, Some(norm2), None), text));
    }
    let file = read_gauge(layout.share(path), options)?;
    warn_of_open_boundary(path, &file);
    let agrees = |value, stored: Option<Printed>| stored.map(|stored| stored.agrees(value, header.precision));
    let stored = |value, stored: Option<Printed>| match (stored, agrees(value, stored)) {
        (Some(printed), Some(true)) => format!("agrees with {} in the header", printed.value),
        (Some(printed), _) => format!("differs from {} in the header; accepted", printed.value),
        (None, _) => "not in the header".into(),
    };
    line("checksum", checksum_text(&file.checksum));
    line("numbers", "all finite".into());
    let compared =
        |quantity: &Quantity, value, header| format!("{} ({})", quantity.number(value), stored(value, header));
    line(PLAQUETTE.name, compared(&PLAQUETTE, file.plaquette.mean, header.plaquette));
    line(LINK_TRACE.name, compared(&LINK_TRACE, file.link_trace, header.link_trace));
    let (worst, axis) = (file.unitarity, ["x", "y", "z", "t"][file.unitarity.mu]);
    let site = header.lattice.coordinates(worst.site);
    line("unitarity", format!("largest deviation of a link from SU(3): {:.2e}, U_{axis} at {site:?}", worst.violation));
    if file.open_boundary {
        line("boundary", "open in t: all U_t at t = T - 1 are zero".into());
    }
    if matches!(file.checksum, Checksum::Mismatch { .. }) {
        differs.push("checksum".into());
    }
    let compared = [
        (PLAQUETTE.name, agrees(file.plaquette.mean, header.plaquette)),
        (LINK_TRACE.name, agrees(file.link_trace, header.link_trace)),
    ];
    differs.extend(compared.into_iter().filter(|(_, agrees)| *agrees == Some(false)).map(|(name, _)| name.to_string()));
    let stored = header.plaquette.map(|p| p.value);
    let links = VerifiedLinks {
        plaquette: VerifiedPlaquette { means: plaquettes(&file.plaquette), stored },
        link_trace: file.link_trace,
        unitarity_violation: worst.violation,
        open_boundary: file.open_boundary,
    };
    Ok((record(&file.checksum, differs, None, Some(links)), text))
}

fn checksum_text(checksum: &Checksum) -> String {
    match checksum {
        Checksum::Verified(kind) => format!("{} checksum verified", kind.name()),
        Checksum::Absent => "none in the file: changed bits cannot be detected".into(),
        Checksum::Mismatch { kind, .. } => format!("{} checksum does not match (accepted)", kind.name()),
    }
}

fn checksum_record(checksum: &Checksum) -> ChecksumRecord {
    let (status, kind) = match checksum {
        Checksum::Verified(kind) => ("verified", Some(kind.name())),
        Checksum::Absent => ("absent", None),
        Checksum::Mismatch { kind, .. } => ("mismatch", Some(kind.name())),
    };
    ChecksumRecord { status: status.into(), kind: kind.map(String::from) }
}

/// Reads a fermion field, or all fields of a block. Returns the checksum and the sum of |ψ|² over all of them.
fn fermion<T: Fermion>(
    path: &Path,
    options: &ReadOptions,
    block: bool,
    layout: &Layout,
) -> Result<(Checksum, f64), FileError> {
    let (fields, checksum) = if block {
        let file = read_fermions::<T>(layout.share(path), options)?;
        (file.fields, file.checksum)
    } else {
        let file = read_fermion::<T>(layout.share(path), options)?;
        (vec![file.field], file.checksum)
    };
    let mut norm2 = [fields.iter().map(HostField::norm2).sum()];
    let sum = layout.network().sum(&mut norm2);
    sum.map_err(|why| FileError { path: path.into(), problem: why.into() })?;
    Ok((checksum, norm2[0]))
}
