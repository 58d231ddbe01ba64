//! Command `ferrite-studies accuracy`.
mod curves;

use crate::formats::FormatFlags;
use crate::plan::{PRECISIONS, RECONSTRUCTIONS, name_of};
use crate::plot::write_lines;
use crate::records::{AccuracyRecord, AccuracyRow};
use crate::text::lattice;
use crate::{Context, Failure, Outcome, target};
use clap::Args;
use curves::{Curve, accuracy, tolerances};
use ferrite::Precision;
use ferrite::field::FieldShape;
use ferrite::lattice::Lattice;
use ferrite::workload::Options;
use ferrite_report::plot::{CurveStyle, LinePlot, PlottedCurve};
use std::fmt::Write;
use std::path::PathBuf;

const EXAMPLES: &str = "\
Examples:
  ferrite-studies accuracy --lattice 24,24,24,32 --plot accuracy.svg
  ferrite-studies accuracy --precision single,half --reconstruct 12,8 --json

Applies the even-odd Wilson matrix on random SU(3) links to a vector with components in [0, 1], and compares the
result with that of a CPU in double precision with 18 reals (figure 6 of Clark et al., arXiv:0911.3191). The links
are not in temporal gauge, so --reconstruct accepts 18, 12 and 8 only.";

/// Arguments of `ferrite-studies accuracy`.
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub struct AccuracyArguments {
    /// Lattice extents [default: 24,24,24,32 on a GPU, 8,8,8,16 on a CPU]
    #[arg(long, value_name = "X,Y,Z,T", value_parser = lattice)]
    lattice: Option<Lattice>,
    #[command(flatten)]
    formats: FormatFlags,
    /// Plot the share of components that deviate by epsilon or more, against epsilon
    #[arg(long, value_name = "FILE.svg")]
    plot: Option<PathBuf>,
}

/// Compares each format with double precision, and prints the deviations.
pub fn run(args: AccuracyArguments, context: &Context) -> Outcome {
    context.comm.only_one("ferrite-studies accuracy")?;
    let (precisions, reconstructions) = (args.formats.precisions()?, args.formats.reconstructions_in_any_gauge()?);
    if let Some(path) = &args.plot {
        target::check_svg(path).map_err(Failure::refused)?;
    }
    target::claim(&context.comm, &[], &target::all(&args.plot))?;
    let device = context.device_choice()?.open(&context.comm)?;
    let standard = if device.name() == "cpu" { [8, 8, 8, 16] } else { [24, 24, 24, 32] };
    let lattice = match args.lattice {
        Some(lattice) => lattice,
        None => Lattice::new(standard).map_err(Failure::refused)?,
    };
    let sites = lattice.half_volume();
    let links = 3 * 1152 * sites;
    let fields = 8 * FieldShape::spinors(Precision::Double, 1).bytes(sites);
    device.require(&[("links", links), ("fields", fields)], &format!("the comparison on {lattice}"))?;
    let options = Options { lattice, precisions, reconstructions, nrhs: 1 };
    let curves = accuracy(device.backend(), &options)?;
    if let Some(path) = &args.plot {
        write_lines(path, &picture(&curves, lattice)).map_err(Failure::failed)?;
    }
    let row = |curve: &Curve| AccuracyRow {
        precision: name_of(&PRECISIONS, curve.precision).into(),
        reconstruct: name_of(&RECONSTRUCTIONS, curve.reconstruction).into(),
        share: curve.share.clone(),
        mean: curve.mean,
        largest: curve.largest,
    };
    let record = AccuracyRecord {
        backend: device.name().into(),
        device: device.describe(),
        lattice: lattice.size(),
        tolerances: tolerances(),
        rows: curves.iter().map(row).collect(),
        plot: args.plot.clone(),
    };
    context.output.record(&record, || table(&curves, lattice, &device.describe()))
}

/// Returns a table of the deviations, with one column for every second power of ten of the tolerance.
fn table(curves: &[Curve], lattice: Lattice, device: &str) -> String {
    let tolerances = tolerances();
    let columns: Vec<usize> = (0..tolerances.len()).filter(|k| k % 8 == 4).collect();
    let mut text = format!("{device}, {lattice}\nshare of components that deviate by more than epsilon\n");
    let _ = write!(text, "{:<9} {:>5}", "precision", "recon");
    for &k in &columns {
        let _ = write!(text, " {:>8}", format!("{:e}", tolerances[k]));
    }
    let _ = writeln!(text, " {:>9} {:>9}", "mean", "largest");
    for curve in curves {
        let (precision, recon) =
            (name_of(&PRECISIONS, curve.precision), name_of(&RECONSTRUCTIONS, curve.reconstruction));
        let _ = write!(text, "{precision:<9} {recon:>5}");
        for &k in &columns {
            let _ = write!(text, " {:>8}", short(curve.share[k]));
        }
        let _ = writeln!(text, " {:>9.1e} {:>9.1e}", curve.mean, curve.largest);
    }
    text
}

/// Formats a fraction with at most eight characters.
fn short(share: f64) -> String {
    match share {
        0.0 => "-".into(),
        s if s >= 0.001 => format!("{s:.4}"),
        s => format!("{s:.1e}"),
    }
}

fn picture(curves: &[Curve], lattice: Lattice) -> LinePlot {
    let line = |curve: &Curve| {
        let points = tolerances().into_iter().zip(&curve.share);
        PlottedCurve {
            name: format!(
                "{} {}",
                name_of(&PRECISIONS, curve.precision),
                name_of(&RECONSTRUCTIONS, curve.reconstruction)
            ),
            points: points.filter(|(_, s)| **s > 0.0).map(|(e, s)| (e.log10(), s.log10())).collect(),
            style: CurveStyle::Line,
        }
    };
    LinePlot {
        title: format!("Even-odd Wilson matrix on {lattice}, random links"),
        subtitle: "share of components that deviate by more than epsilon from double precision, 18 reals".into(),
        axes: ["log10 epsilon".into(), "log10 share".into(), String::new()],
        logarithmic: [false; 2],
        curves: curves.iter().map(line).filter(|line| !line.points.is_empty()).collect(),
    }
}
