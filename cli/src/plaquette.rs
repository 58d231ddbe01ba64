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
use ferrite::observables::loops::plaquette_text;
use ferrite::observables::quantity::{LINK_TRACE, UNITARITY_VIOLATION};
use ferrite_records::links::PlaquetteRecord;
use ferrite_tasks::observables::plaquettes;
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
        let place = ("host".into(), None);
        return report(&args, &layout, place, &plaquette, [link_trace, unitarity.violation], context);
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
    let place = (device.name().into(), Some(device.describe()));
    report(&args, &layout, place, &plaquette, [link_trace, file.unitarity.violation], context)
}

/// Prints the plaquettes, and link trace and unitarity violation.
fn report(
    args: &PlaquetteArguments,
    layout: &Layout,
    (backend, device): (String, Option<String>),
    plaquette: &Plaquettes,
    [link_trace, unitarity_violation]: [f64; 2],
    context: &Context,
) -> Outcome {
    let lattice = layout.lattice();
    let record = PlaquetteRecord {
        file: args.file.clone(),
        lattice: lattice.size(),
        plaquette: plaquettes(plaquette),
        link_trace,
        unitarity_violation,
        backend,
        device,
        layout: layout.record(),
    };
    context.output.record(&record, || {
        let numbers = LINK_TRACE.line_of(link_trace) + &UNITARITY_VIOLATION.line_of(unitarity_violation);
        format!("{} on {lattice}\n{}{numbers}", args.file.display(), plaquette_text(plaquette))
    })
}
