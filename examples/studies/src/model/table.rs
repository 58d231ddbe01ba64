//! Text that `ferrite-studies model` prints.
use super::predictions::{Comparison, PredictedOperation, PredictedSolver, Predictions, Scaling, ScalingCase, worst};
use super::{Bound, Cluster, Machine, MeasuredValue};
use crate::text::count;
use std::fmt::Write;

fn extents(size: [usize; 4]) -> String {
    size.map(|extent| extent.to_string()).join("x")
}

/// Returns text that describes the machine and the values that are assumed.
pub fn head(machine: &Machine, cluster: &Cluster) -> String {
    let processes = count(machine.processes, "process");
    let mut text = format!("{}, measured on {processes}\n", machine.device);
    for exchange in &machine.exchanges {
        let (latency, gbps) = (1e6 * exchange.wire.latency, 1e-9 * exchange.wire.bandwidth);
        let _ = writeln!(
            text,
            "time of an exchange within a host, transport {}: {latency:.1} us + bytes / {gbps:.1} GB/s",
            exchange.transport
        );
    }
    let (latency, gbps) = (1e6 * cluster.network.latency, 1e-9 * cluster.network.bandwidth);
    let gpus = count(cluster.gpus_per_host, "GPU");
    let _ = writeln!(
        text,
        "time of an exchange between hosts with {gpus} each (assumed, not measured): {latency:.1} us + bytes / \
         {gbps:.1} GB/s"
    );
    text
}

/// Returns a text table of measured and predicted values.
pub fn compared(compared: &[Comparison]) -> String {
    let Some(worst) = worst(compared) else { return String::new() };
    let heads =
        ["operator", "precision", "recon", "lattice", "grid", "faces", "overlap", "measured", "predicted", "off"];
    let [a, b, c, d, e, f, g, h, i, j] = heads;
    let line = format!("{a:<18} {b:<9} {c:>5} {d:>14} {e:>9} {f:>7} {g:>7} {h:>10} {i:>10} {j:>8}");
    let mut text = format!("\nmeasured and predicted: us, or efficiency if marked with %\n{line}\n");
    for Comparison { point, predicted, measured, deviation } in compared {
        let number = |x: f64| match point.measured {
            MeasuredValue::Seconds(_) => format!("{:.2}", 1e6 * x),
            _ => format!("{:.1}%", 100.0 * x),
        };
        let _ = writeln!(
            text,
            "{:<18} {:<9} {:>5} {:>14} {:>9} {:>7} {:>7} {:>10} {:>10} {:>7.1}%",
            point.operator,
            point.precision,
            point.reconstruct,
            extents(point.cut.lattice),
            extents(point.cut.grid.dims()),
            point.transport.as_deref().unwrap_or("usual"),
            if point.overlap { "yes" } else { "no" },
            number(*measured),
            number(*predicted),
            100.0 * deviation
        );
    }
    let _ = writeln!(text, "largest deviation of a predicted from a measured time: {:.1}%", 100.0 * worst.deviation);
    text
}

/// Returns text tables of all predictions.
pub fn predictions(predictions: &Predictions<'_>) -> String {
    let mut text = of_operations(predictions) + &of_solvers(predictions);
    if !predictions.left_out.is_empty() {
        let numbers: Vec<_> = predictions.left_out.iter().map(ToString::to_string).collect();
        let _ = writeln!(
            text,
            "\nthe lattice of strong scaling cannot be divided among these numbers of GPUs: {}",
            numbers.join(", ")
        );
    }
    text
}

/// Returns text tables of the operations, one for each.
fn of_operations(predictions: &Predictions<'_>) -> String {
    let mut text = String::new();
    let same = |a: &PredictedOperation<'_>, b: &PredictedOperation<'_>| {
        a.case.scaling == b.case.scaling && a.operation == b.operation
    };
    // Operations with sums are part of the solvers, whose tables follow.
    let shown = |rows: &&[PredictedOperation<'_>]| !rows[0].operation.name.ends_with("_sums");
    let of_operation: Vec<&[PredictedOperation<'_>]> = predictions.operations.chunk_by(same).filter(shown).collect();
    for table in operations(&of_operation) {
        let first = &table[0][0];
        let (name, links) = (&first.operation.name, &first.operation.format.reconstruct);
        let _ = writeln!(
            text,
            "\n{name}, reconstruct {links}, {}: us and efficiency; * marks times that exchanges limit",
            what(&first.case)
        );
        let formats = table.iter().map(|rows| format!(" {:>20}", rows[0].operation.format.precision));
        let _ = writeln!(text, "{:>5} {:>12} {:>14}{}", "GPUs", "grid", "on each GPU", formats.collect::<String>());
        for (k, row) in table[0].iter().enumerate() {
            let _ = write!(text, "{}", place(&row.case));
            for row in table.iter().filter_map(|rows| rows.get(k)) {
                let mark = if row.time.bound == Bound::Exchange { '*' } else { ' ' };
                let _ = write!(text, " {:>12.2} {:>5.1}%{mark}", 1e6 * row.time.seconds, 100.0 * row.efficiency);
            }
            text.push('\n');
        }
    }
    text
}

/// Returns text tables of the solvers, one for each format.
fn of_solvers(predictions: &Predictions<'_>) -> String {
    let mut text = String::new();
    let same = |a: &PredictedSolver, b: &PredictedSolver| a.case.scaling == b.case.scaling && a.format == b.format;
    for rows in predictions.solvers.chunk_by(same) {
        let _ = writeln!(
            text,
            "\nsolver, precision {}, reconstruct {}, {}: us and TFLOP/s of an iteration{}",
            rows[0].format.precision,
            rows[0].format.reconstruct,
            what(&rows[0].case),
            if rows[0].times.solves.is_some() {
                "; seconds of a solve by BiCGstab and by GCR-DD; ~ marks extrapolated numbers of iterations"
            } else {
                ""
            }
        );
        let _ = write!(text, "{:>5} {:>12} {:>14} {:>10} {:>9}", "GPUs", "grid", "on each GPU", "us", "TFLOP/s");
        let heads = format!(" {:>9} {:>9} {:>10} {:>5}", "BiCGstab", "GCR-DD", "iterations", "gain");
        let _ = writeln!(text, "{}", if rows[0].times.solves.is_some() { heads.as_str() } else { "" });
        for PredictedSolver { case, times, .. } in rows {
            let _ = write!(text, "{} {:>10.1} {:>9.2}", place(case), 1e6 * times.iteration, 1e-3 * times.gflops);
            if let Some(solves) = times.solves {
                let (one, other) = (solves.bicgstab, solves.gcr_dd);
                let iterations = format!("{}{:.0}", if solves.extrapolated { "~" } else { "" }, solves.iterations);
                let _ = write!(text, " {one:>9.4} {other:>9.4} {iterations:>10} {:>5.2}", one / other);
            }
            text.push('\n');
        }
    }
    text
}

/// Groups operations that differ only in precision; each has its rows.
fn operations<'a, 'b>(all: &'b [&'a [PredictedOperation<'a>]]) -> Vec<Vec<&'b [PredictedOperation<'a>]>> {
    let key = |rows: &[PredictedOperation<'_>]| {
        let PredictedOperation { case, operation, .. } = &rows[0];
        (case.scaling, operation.name.clone(), operation.format.reconstruct.clone())
    };
    let mut tables: Vec<Vec<&[PredictedOperation<'_>]>> = Vec::new();
    for rows in all {
        match tables.iter_mut().find(|table| key(table[0]) == key(rows)) {
            Some(table) => table.push(rows),
            None => tables.push(vec![rows]),
        }
    }
    tables
}

fn what(case: &ScalingCase) -> String {
    match case.scaling {
        Scaling::Strong => format!("strong scaling of {}", extents(case.cut.lattice)),
        Scaling::Weak => format!("weak scaling with {} on each GPU", extents(case.cut.local())),
    }
}

fn place(ScalingCase { cut, .. }: &ScalingCase) -> String {
    format!("{:>5} {:>12} {:>14}", cut.gpus(), extents(cut.grid.dims()), extents(cut.local()))
}
