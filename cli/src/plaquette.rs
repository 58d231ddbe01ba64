//! `ferrite plaquette`.
use super::fields::{any_lattice_of, read_gauge};
use super::layout::Layout;
use super::verify::ReadFlags;
use super::{Context, Outcome};
use clap::Args;
use ferrite::Precision;
use ferrite::domain::Part;
use ferrite::field::GaugeField;
use ferrite::files::GaugeFile;
use ferrite::gauge::measure::Plaquettes;
use ferrite::halo::Exchanges;
use ferrite::observables::loops::{plaquette_text, put_plaquette};
use ferrite::observables::quantity::{LINK_TRACE, UNITARITY_VIOLATION};
use serde_json::{Value, json};
use std::path::PathBuf;

const EXAMPLES: &str = "\
Examples:
  ferrite plaquette weak.ildg
  ferrite plaquette --backend cpu --json lat.sample.l4448

Plaquettes are Re tr P / 3 and the link trace is Re tr U / 3, averaged over the lattice: 1 for unit links.";

/// Arguments of `plaquette`.
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub struct PlaquetteArguments {
    /// A gauge field in any format
    file: PathBuf,
    #[command(flatten)]
    read: ReadFlags,
}

/// Measures on the device; on the host if that cannot have the lattice, because an extent is odd.
pub fn run(args: PlaquetteArguments, context: &Context) -> Outcome {
    let (choice, comm) = (context.device_choice()?, &context.comm);
    let lattice = any_lattice_of(&args.file, &args.read.reading(), comm)?;
    if lattice.require_even().is_err() {
        choice.start_threads(comm)?;
        let layout = choice.layout.cut_for_host(comm, lattice)?;
        let GaugeFile { plaquette, link_trace, unitarity, .. } =
            read_gauge(&args.file, &args.read.reading(), &layout, comm)?;
        let object = json!({ "backend": "host", "device": null });
        return report(&args, &layout, object, &plaquette, [link_trace, unitarity.violation], context);
    }
    let device = choice.open(comm)?;
    let layout = choice.layout.cut(comm, lattice, 1)?;
    let file = read_gauge(&args.file, &args.read.reading(), &layout, comm)?;
    let (part, read) = (Part::new(layout.local(), layout.grid()), 576 * layout.local().volume());
    let mut needs =
        vec![("links as read from the host", read), ("links in double", part.links_bytes(Precision::Double))];
    needs.extend(Exchanges::of(part).border(Precision::Double).needs());
    device.require_all(comm, &needs, "the plaquette")?;
    let (plaquette, link_trace) = {
        let backend = device.backend();
        let domain = layout.domain(backend)?;
        GaugeField::upload(&domain, &file.gauge)?.plaquette()?
    };
    let object = json!({ "backend": device.name(), "device": device.describe() });
    report(&args, &layout, object, &plaquette, [link_trace, file.unitarity.violation], context)
}

/// Prints the plaquettes, and link trace and unitarity violation.
fn report(
    args: &PlaquetteArguments,
    layout: &Layout,
    mut object: Value,
    plaquette: &Plaquettes,
    [link_trace, off]: [f64; 2],
    context: &Context,
) -> Outcome {
    let lattice = layout.lattice();
    object["file"] = json!(args.file);
    object["lattice"] = json!(lattice.size());
    object["layout"] = json!(layout.record());
    put_plaquette(&mut object, plaquette);
    LINK_TRACE.put(&mut object, link_trace);
    UNITARITY_VIOLATION.put(&mut object, off);
    context.output.result("ferrite.plaquette/1", object, || {
        let numbers = LINK_TRACE.line_of(link_trace) + &UNITARITY_VIOLATION.line_of(off);
        format!("{} on {lattice}\n{}{numbers}", args.file.display(), plaquette_text(plaquette))
    })
}
