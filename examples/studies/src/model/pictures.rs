//! Pictures of `ferrite-studies model --plot`, with the values of the papers.
use super::predictions::{Comparison, PredictedSolver, Predictions, Scaling};
use super::{Machine, MeasuredValue};
use ferrite_report::plot::{CurveStyle, LinePlot, PlottedCurve};

/// File names of the pictures of [`all`]: operator, solver, and ratio of the times of BiCGstab and GCR-DD.
pub const PICTURE_NAMES: [&str; 3] = ["scaling.svg", "solver.svg", "gain.svg"];

/// Points of a paper: numbers of GPUs with measured values.
type PaperPoints = &'static [(f64, f64)];

/// Published TFLOP/s of solvers with clover fermions. The papers' figures have further points that are not printed as numbers.
const CLOVER: [(&str, PaperPoints); 4] = [
    // The source is Babich, Clark and Joó 2010, section VII.B and C: single-half BiCGstab on GTX 285, with 32⁴ on each GPU, and with 32³ ×
    // 256 in total ("over 3").
    ("BiCGstab, weak, GTX 285 (2010)", &[(32.0, 4.75)]),
    ("BiCGstab, strong, GTX 285 (2010)", &[(32.0, 3.0)]),
    // The source is Babich et al. 2011, section 9.1, on M2050 with 32³ × 256. The values of GCR-DD are its "effective BiCGstab
    // performance"; those of BiCGstab are the same values divided by the gain in time.
    ("BiCGstab, strong, M2050 (2011)", &[(128.0, 9.95 / 1.63), (256.0, 11.5 / 1.64)]),
    ("GCR-DD, effective, M2050 (2011)", &[(128.0, 9.95), (256.0, 11.5)]),
];
/// Published ratios of the times of BiCGstab and GCR-DD in the measurements of [`CLOVER`].
const GAIN: (&str, PaperPoints) = ("M2050 (2011)", &[(64.0, 1.52), (128.0, 1.63), (256.0, 1.64)]);
/// Published TFLOP/s of multi-shift CG with refinement, double-single, on M2050, 64³ × 192 (section 9.2); the value at 64 GPUs follows
/// from the speed-up of 2.56.
const ASQTAD: (&str, PaperPoints) = ("multi-shift CG, strong, M2050 (2011)", &[(64.0, 5.49 / 2.56), (256.0, 5.49)]);

fn line(name: String, points: Vec<(f64, f64)>) -> PlottedCurve {
    PlottedCurve { name, points, style: CurveStyle::Line }
}
fn marks(name: &str, points: &[(f64, f64)]) -> PlottedCurve {
    PlottedCurve { name: name.into(), points: points.to_vec(), style: CurveStyle::Marks }
}

/// Draws all pictures for which there are values. Returns each with its file name.
pub fn all(machine: &Machine, predictions: &Predictions<'_>, compared: &[Comparison]) -> Vec<(&'static str, LinePlot)> {
    let pictures = [operator(machine, predictions, compared), solver(machine, predictions), gain(machine, predictions)];
    PICTURE_NAMES.into_iter().zip(pictures).filter_map(|(name, plot)| Some((name, plot?))).collect()
}

/// Draws predicted and measured TFLOP/s of the matrix.
fn operator(machine: &Machine, predictions: &Predictions<'_>, compared: &[Comparison]) -> Option<LinePlot> {
    let name = &format!("{}_matrix", machine.operator);
    let mut curves = Vec::new();
    for scaling in [Scaling::Strong, Scaling::Weak] {
        let of_scaling =
            predictions.operations.iter().filter(|row| row.case.scaling == scaling && row.operation.name == *name);
        let of_scaling: Vec<_> = of_scaling.collect();
        for rows in of_scaling.chunk_by(|a, b| a.operation == b.operation) {
            let format = &rows[0].operation.format;
            let title = format!("{} {}, {}", format.precision, format.reconstruct, scaling.name());
            curves.push(line(title, rows.iter().map(|row| (row.case.cut.gpus() as f64, 1e-3 * row.gflops)).collect()));
        }
    }
    if curves.is_empty() {
        return None;
    }
    // Only measurements with the usual transport are drawn; other transports are slower.
    let usual = compared.iter().filter(|c| {
        let first = machine.exchanges.first().map(|exchange| &exchange.transport);
        c.point.operator == *name
            && c.point.overlap
            && (c.point.transport.is_none() || c.point.transport.as_ref() == first)
    });
    let measured = usual.filter_map(|c| {
        let MeasuredValue::Seconds(seconds) = c.point.measured else { return None };
        let operation = machine.operation(&c.point.operator, &c.point.precision, &c.point.reconstruct)?;
        let flops = operation.flops * c.point.cut.sites();
        Some((c.point.cut.gpus() as f64, flops / seconds * 1e-12))
    });
    let measured: Vec<_> = measured.collect();
    if !measured.is_empty() {
        curves.push(marks("measured", &measured));
    }
    Some(LinePlot {
        title: format!("{name} on many GPUs like {}", machine.device),
        subtitle: "lines: predicted from one host; the papers do not give the numbers of figures 5 and 6".into(),
        axes: ["GPUs".into(), "TFLOP/s".into(), String::new()],
        logarithmic: [true, true],
        curves,
    })
}

/// Draws predicted and published TFLOP/s of solvers.
fn solver(machine: &Machine, predictions: &Predictions<'_>) -> Option<LinePlot> {
    let clover = machine.operator == "clover";
    let staggered = machine.operator == "asqtad" || machine.operator == "staggered";
    let name = if staggered { "CG" } else { "BiCGstab" };
    let same = |a: &PredictedSolver, b: &PredictedSolver| a.case.scaling == b.case.scaling && a.format == b.format;
    let mut curves = Vec::new();
    // If solves are predicted, only their formats are drawn, because more curves would crowd the picture.
    let solved: Vec<_> =
        predictions.solvers.iter().filter(|row| row.times.solves.is_some()).map(|row| &row.format).collect();
    for rows in predictions.solvers.chunk_by(same) {
        if !(solved.is_empty() || solved.contains(&&rows[0].format)) {
            continue;
        }
        let format =
            format!("{} {}, {}", rows[0].format.precision, rows[0].format.reconstruct, rows[0].case.scaling.name());
        let points = |rate: &dyn Fn(&PredictedSolver) -> f64| {
            rows.iter().map(|row| (row.case.cut.gpus() as f64, 1e-3 * rate(row))).collect::<Vec<_>>()
        };
        if rows[0].times.solves.is_some() {
            let rate = |k: usize| move |row: &PredictedSolver| row.times.solves.map_or(0.0, |solves| solves.gflops[k]);
            curves.push(line(format!("BiCGstab, {format}"), points(&rate(0))));
            curves.push(line(format!("GCR-DD, effective, {format}"), points(&rate(1))));
        } else {
            curves.push(line(format!("{name}, {format}"), points(&|row| row.times.gflops)));
        }
    }
    if curves.is_empty() {
        return None;
    }
    if clover {
        curves.extend(CLOVER.map(|(name, points)| marks(name, points)));
    } else if machine.operator == "asqtad" {
        curves.push(marks(ASQTAD.0, ASQTAD.1));
    }
    Some(LinePlot {
        title: format!("Solvers of {} systems on many GPUs like {}", machine.operator, machine.device),
        subtitle: "lines: predicted; circles: from the text of the papers, for their GPUs and lattices".into(),
        axes: ["GPUs".into(), "TFLOP/s".into(), String::new()],
        logarithmic: [true, true],
        curves,
    })
}

/// Draws the ratio of the times of BiCGstab and GCR-DD.
fn gain(machine: &Machine, predictions: &Predictions<'_>) -> Option<LinePlot> {
    let gains = predictions.solvers.iter().filter_map(|row| {
        let solves = row.times.solves?;
        Some((row.case.cut.gpus() as f64, solves.bicgstab / solves.gcr_dd))
    });
    let gains: Vec<_> = gains.collect();
    let counted = machine.iterations.as_ref().filter(|_| !gains.is_empty())?;
    Some(LinePlot {
        title: format!("Time of BiCGstab divided by the time of GCR-DD, {} operator", machine.operator),
        subtitle: format!("iterations counted for {}", counted.source),
        axes: ["GPUs".into(), "times faster".into(), String::new()],
        logarithmic: [true, false],
        curves: vec![line("predicted".into(), gains), marks(GAIN.0, GAIN.1)],
    })
}
