//! Command `ferrite plaquette`.
use super::verify::ReadFlags;
use super::{Context, Outcome, text};
use clap::Args;
use ferrite::gauge::measure::Plaquettes;
use ferrite::observables::loops::plaquette_text;
use ferrite::observables::quantity::{LINK_TRACE, UNITARITY_VIOLATION};
use ferrite_records::observables::PlaquetteMeans;
use ferrite_tasks::plaquette;
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
    /// Gauge configuration, in any supported format
    file: PathBuf,
    #[command(flatten)]
    read: ReadFlags,
}

/// Measures plaquettes, link trace and unitarity, and prints them.
pub fn run(args: PlaquetteArguments, context: &Context) -> Outcome {
    let device = context.device_choice()?;
    let record = plaquette::measure(&args.file, &args.read.reading(), &device, &context.session)?;
    context.output.record(&record, || {
        let PlaquetteMeans { mean, spatial, temporal } = record.plaquette;
        let plaquettes = plaquette_text(&Plaquettes { mean, spatial, temporal });
        let numbers = LINK_TRACE.line_of(record.link_trace) + &UNITARITY_VIOLATION.line_of(record.unitarity_violation);
        format!("{} on {}\n{plaquettes}{numbers}", record.file.display(), text::by(record.lattice))
    })
}
