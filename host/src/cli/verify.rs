//! `ferrite verify`, and the flags that say how files are read.
use super::failure::{ReadBy, describe};
use super::fields::Reading;
use super::fields::require_host_memory;
use super::layout::Layout;
use super::text::lattice;
use super::{Code, Context, Failure, Outcome};
use clap::Args;
use ferrite::field::host::{ColourVector, Fermion, Spinor};
use ferrite::files::{
    Checksum, FileError, FileFormat, Header, Printed, Problem, ReadOptions, SharedFile, inspect, read_fermion,
    read_gauge,
};
use ferrite::lattice::Lattice;
use ferrite::observables::loops::put_plaquette;
use ferrite::observables::quantity::{LINK_TRACE, PLAQUETTE, Quantity, UNITARITY_VIOLATION};
use serde_json::{Value, json};
use std::fmt::Write;
use std::path::{Path, PathBuf};

const EXAMPLES: &str = "\
Examples:
  ferrite verify weak.ildg
  ferrite verify solution.lime --json

Exit code 0: all checks passed. 1: something was wrong. 2: the file cannot be opened.";

/// Flags that say how files are read.
#[derive(Args, Clone)]
pub struct ReadFlags {
    /// Extents, for a file that does not contain them
    #[arg(long, value_name = "X,Y,Z,T", value_parser = lattice)]
    lattice: Option<Lattice>,
    /// Which field of a LIME file with several, from 0
    #[arg(long, value_name = "N", default_value_t = 0)]
    record: usize,
    /// Accept a file whose checksum, plaquette, link trace or length differs from its header
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
    /// How files are read with them.
    pub fn reading(&self) -> Reading {
        let options = ReadOptions {
            verify: !self.no_verify,
            allow_non_unitary: self.allow_non_unitary,
            reunitarise: self.reunitarise,
            lattice: self.lattice,
            record: self.record,
        };
        Reading { options, by: ReadBy::Flags }
    }
}

/// Arguments of `verify`.
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub struct VerifyArguments {
    /// Links, spinors or colour vectors in any format
    file: PathBuf,
    #[command(flatten)]
    read: ReadFlags,
}

/// Reads with all checks and reports the results.
pub fn run(args: VerifyArguments, context: &Context) -> Outcome {
    let (choice, comm) = (context.device_choice()?, &context.comm);
    choice.start_threads(comm)?;
    let Reading { options, by } = args.read.reading();
    let read = match inspect(SharedFile::new(&args.file, &*comm.network()), &options) {
        Ok(header) => {
            let layout = choice.layout.cut(comm, header.lattice, 1)?;
            let (bytes, name) = (16 * header.values_per_site(), args.file.display().to_string());
            require_host_memory(comm, layout.local(), bytes, &name)?;
            read(&args.file, &header, &options, &layout).map(|(object, text)| (object, text, layout))
        }
        Err(error) => Err(error),
    };
    match read {
        Ok((mut object, text, layout)) => {
            object["layout"] = layout.describe();
            object["file"] = json!(args.file);
            object["ok"] = json!(true);
            // Notes are entries of headers that were ignored.
            let is_empty = |key: &str| object[key].as_array().is_none_or(Vec::is_empty);
            let in_order = is_empty("differs") && is_empty("notes");
            let end = if in_order { "in order" } else { "accepted, although it differs from its header" };
            context.output.result("ferrite.verify/1", object, || format!("{text}{}: {end}\n", args.file.display()))
        }
        Err(error) => {
            let message = describe(&error, by);
            if matches!(&error.problem, Problem::Io { action, .. } if action == "open") {
                return Err(Failure::refused(message).shared());
            }
            if let Problem::Comm(_) = error.problem {
                return Err(Failure::failed(message));
            }
            let object = json!({
                "file": args.file,
                "ok": false,
                "error": { "message": message, "exit_code": Code::Failed.number() },
            });
            context.output.result("ferrite.verify/1", object, String::new)?;
            Err(Failure::failed(message).shared())
        }
    }
}

fn read(path: &Path, header: &Header, options: &ReadOptions, layout: &Layout) -> Result<(Value, String), FileError> {
    let mut text = String::new();
    let mut line = |name: &str, value: String| {
        let _ = writeln!(text, "{name:<20} {value}");
    };
    line("field", field_name(header).into());
    let rows = if header.format != FileFormat::Nersc && header.components == 24 { ", two rows" } else { "" };
    line("format", format!("{}{rows}, {} precision, {}-endian", header.format, header.precision, header.endian));
    header.notes.iter().for_each(|note| line("note", note.clone()));
    let extra = header.data_length.saturating_sub((header.lattice.volume() * header.site_bytes()) as u64);
    let length = if extra == 0 { "length of the data agrees".into() } else { format!("{extra} more bytes, accepted") };
    line("lattice", format!("{} ({length})", header.lattice));
    if header.fields > 1 {
        let (number, last) = (options.record, header.fields - 1);
        line("fields", format!("{}; this is number {number}, counted from 0 to {last} (--record N)", header.fields));
    }
    let mut object = describe_header(header);
    let mut differs = Vec::new();
    if extra > 0 {
        differs.push("length");
    }
    let fermion = match header.values_per_site() {
        12 => Some(fermion::<Spinor>(path, options, layout)?),
        3 => Some(fermion::<ColourVector>(path, options, layout)?),
        _ => None,
    };
    if let Some((checksum, norm2)) = fermion {
        line("checksum", checksum_text(&checksum));
        line("numbers", "all finite".into());
        line("norm squared", format!("{norm2:.12e}"));
        if matches!(checksum, Checksum::Mismatch { .. }) {
            differs.push("checksum");
        }
        object["checksum"] = checksum_object(&checksum);
        object["norm2"] = json!(norm2);
        object["differs"] = json!(differs);
        return Ok((object, text));
    }
    let file = read_gauge(layout.share(path), options)?;
    let agrees = |value, stored: Option<Printed>| stored.map(|stored| stored.agrees(value, header.precision));
    let stored = |value, stored: Option<Printed>| match (stored, agrees(value, stored)) {
        (Some(printed), Some(true)) => format!("agrees with {} in the header", printed.value),
        (Some(printed), _) => format!("differs from {} in the header, accepted", printed.value),
        (None, _) => "the header has none".into(),
    };
    line("checksum", checksum_text(&file.checksum));
    line("numbers", "all finite".into());
    let compared =
        |quantity: &Quantity, value, header| format!("{} ({})", quantity.number(value), stored(value, header));
    line(PLAQUETTE.name, compared(&PLAQUETTE, file.plaquette.mean, header.plaquette));
    line(LINK_TRACE.name, compared(&LINK_TRACE, file.link_trace, header.link_trace));
    let (worst, axis) = (file.unitarity, ["x", "y", "z", "t"][file.unitarity.mu]);
    let site = header.lattice.coordinates(worst.site);
    line("unitarity", format!("worst link off SU(3) by {:.2e}: U_{axis} at {site:?}", worst.violation));
    object["checksum"] = checksum_object(&file.checksum);
    put_plaquette(&mut object, &file.plaquette);
    if matches!(file.checksum, Checksum::Mismatch { .. }) {
        differs.push("checksum");
    }
    let compared = [
        (PLAQUETTE.name, agrees(file.plaquette.mean, header.plaquette)),
        (LINK_TRACE.name, agrees(file.link_trace, header.link_trace)),
    ];
    differs.extend(compared.into_iter().filter(|(_, agrees)| *agrees == Some(false)).map(|(name, _)| name));
    object[PLAQUETTE.object_key()]["stored"] = json!(header.plaquette.map(|p| p.value));
    object["differs"] = json!(differs);
    LINK_TRACE.put(&mut object, file.link_trace);
    UNITARITY_VIOLATION.put(&mut object, worst.violation);
    Ok((object, text))
}

fn describe_header(header: &Header) -> Value {
    json!({
        "field": field_name(header),
        "format": format!("{:?}", header.format).to_lowercase(),
        "lattice": header.lattice.size(),
        "precision": header.precision.to_string(),
        "fields": header.fields,
        "notes": header.notes,
    })
}

fn checksum_text(checksum: &Checksum) -> String {
    match checksum {
        Checksum::Verified(kind) => format!("{} checksum verified", kind.name()),
        Checksum::Absent => "the file has none: changed bits cannot be detected".into(),
        Checksum::Mismatch { kind, .. } => format!("{} checksum does not match (accepted)", kind.name()),
    }
}

fn checksum_object(checksum: &Checksum) -> Value {
    match checksum {
        Checksum::Verified(kind) => json!({ "status": "verified", "kind": kind.name() }),
        Checksum::Absent => json!({ "status": "absent" }),
        Checksum::Mismatch { kind, .. } => json!({ "status": "mismatch", "kind": kind.name() }),
    }
}

/// What a file holds.
fn field_name(header: &Header) -> &'static str {
    match header.values_per_site() {
        12 => Spinor::NAME,
        3 => ColourVector::NAME,
        _ => "gauge",
    }
}

/// Reads a fermion field; its checksum and Σ |ψ|².
fn fermion<T: Fermion>(path: &Path, options: &ReadOptions, layout: &Layout) -> Result<(Checksum, f64), FileError> {
    let file = read_fermion::<T>(layout.share(path), options)?;
    let mut norm2 = [file.field.norm2()];
    let sum = layout.network().sum(&mut norm2);
    sum.map_err(|why| FileError { path: path.into(), problem: why.into() })?;
    Ok((file.checksum, norm2[0]))
}
