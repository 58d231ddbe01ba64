//! Command `ferrite-studies model`.
mod flags;
mod machine;
mod measure;

use crate::communicator::RunCommunicator;
use crate::model::predictions::{Comparison, Predictions, compare, worst};
use crate::model::{ExchangeTimes, Machine, MeasuredPoint, pictures, table};
use crate::plot::write_lines;
use crate::records::{BenchModelRecord, ExchangeRecord, NetworkRecord};
use crate::{Context, Failure, Outcome, target};
use clap::Args;
use ferrite::lattice::Lattice;
use flags::{Asked, MachineSource};
use std::fs;
use std::path::PathBuf;
use tracing::warn;

const EXAMPLES: &str = "\
Examples:
  mpirun -n 2 ferrite-studies model --operator clover --save machine.json
  ferrite-studies model --machine machine.json --lattice 32,32,32,256 --plot plots
  ferrite-studies model --machine machine.json --gpus 16,64,256,1024 --network-gbps 22.5 --network-latency-us 5
  ferrite-studies model --machine machine.json --measured points.json

With several processes on one host, measures kernels alone, exchanges alone, and the cost of a partitioned direction. These
measurements form a machine, whose predictions for this number of processes are compared with measured times. With
--machine the machine is read from a file, and no GPU is needed. The predictions are times of the operator and of solvers
on the slowest GPU, for one lattice divided among more and more GPUs (strong scaling, --lattice) and for a part of fixed
size on each GPU (weak scaling, --local). The network between hosts is assumed, not measured. The papers are Babich, Clark
and Joo, arXiv:1011.0024, and Babich et al., arXiv:1109.2935; plots show the numbers in their text.
docs/scaling-model.md has the formulas.";

/// Arguments of `ferrite-studies model`.
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub struct ModelBenchArguments {
    /// Operator: wilson, clover, staggered (naive) or asqtad [default: clover, or that of --machine]
    #[arg(long, value_name = "NAME")]
    operator: Option<String>,
    /// Precisions: all, or some of double, single, half, fp16, separated by commas [default: those of
    /// --machine, otherwise double,single,half]
    #[arg(long, value_name = "NAMES")]
    precision: Option<String>,
    /// Numbers of reals stored for a link: all, or some of those that `ferrite bench dslash --help` lists, separated by commas
    /// [default: those of --machine, otherwise 12, or 8 for asqtad]
    #[arg(long, value_name = "NUMBERS")]
    reconstruct: Option<String>,
    /// Lattice extents for strong scaling [default: 32,32,32,256; 64,64,64,192 for staggered operators; 8,8,8,32 if measured on
    /// a CPU]
    #[arg(long, value_name = "X,Y,Z,T", value_parser = crate::text::lattice)]
    lattice: Option<Lattice>,
    /// Lattice extents on each GPU for weak scaling [default: 32,32,32,32; 8,8,8,8 if measured on a CPU]
    #[arg(long, value_name = "X,Y,Z,T", value_parser = crate::text::lattice)]
    local: Option<Lattice>,
    /// Numbers of GPUs, separated by commas [default: 1,2,4, and so on to 1024]
    #[arg(long, value_name = "NUMBERS", value_delimiter = ',')]
    gpus: Option<Vec<usize>>,
    /// File to which the measurements are written, for --machine
    #[arg(long, value_name = "FILE.json", conflicts_with = "machine")]
    save: Option<PathBuf>,
    /// File of measurements, written with --save, to read instead of measuring
    #[arg(long, value_name = "FILE.json")]
    machine: Option<PathBuf>,
    /// File of measured times to compare with the predictions: ferrite.scaling-points/1 (docs/output.md), or the output of
    /// `ferrite bench dslash --json`
    #[arg(long, value_name = "FILE.json")]
    measured: Option<PathBuf>,
    /// Folder for the plots scaling.svg and solver.svg, and gain.svg if GCR-DD is predicted
    #[arg(long, value_name = "FOLDER")]
    plot: Option<PathBuf>,
    /// Latency of a message between GPUs of two hosts, in microseconds [default: 3, assumed]
    #[arg(long, value_name = "US")]
    network_latency_us: Option<f64>,
    /// Bandwidth of each GPU between hosts, one way, in 10^9 bytes per second [default: 45, assumed: a port of 400 Gb/s]
    #[arg(long, value_name = "GB/s")]
    network_gbps: Option<f64>,
    /// Number of GPUs in a host
    #[arg(long, value_name = "N", default_value_t = 8)]
    gpus_per_host: usize,
}

/// Measures or reads a machine, predicts times, compares them with measurements, and prints the results.
pub fn run(args: ModelBenchArguments, context: &Context) -> Outcome {
    let comm = &context.comm;
    let asked = comm.agree(Asked::new(&args, comm.size()))?;
    let paths = |all: [&Option<PathBuf>; 2]| all.into_iter().flatten().cloned().collect::<Vec<_>>();
    let read = paths([&args.machine, &args.measured]);
    let plots = args.plot.iter().flat_map(|folder| pictures::PICTURE_NAMES.map(|name| folder.join(name)));
    let written: Vec<_> = args.save.iter().cloned().chain(plots).collect();
    target::claim(comm, &target::all(&read), &target::all(&written))?;
    let (machine, measured) = match asked.source {
        MachineSource::File(ref machine) => (machine.clone(), None),
        MachineSource::Processes(ref formats) => {
            let (machine, measured) = measure::measure(formats, &asked, context)?;
            (machine, Some(measured))
        }
    };
    if let Some(path) = &args.save {
        comm.once(|| target::write_text(path, &machine.to_json()).map_err(Failure::failed))?;
    }
    let [lattice, local] = measured.as_ref().map_or(asked.lattices(&machine.operator), |measured| measured.lattices);
    let predictions = Predictions::new(&machine, &asked.request([lattice, local]));
    let mut compared = Vec::new();
    if let Some(measured) = &measured {
        compared.extend(compare(&machine, &measured.points, &measured.cluster));
    }
    if !asked.points.is_empty() {
        compared.extend(from_file(&machine, &asked, comm)?);
    }
    let plots = match &args.plot {
        None => Vec::new(),
        Some(folder) => {
            let pictures = pictures::all(&machine, &predictions, &compared);
            let names: Vec<_> = pictures.iter().map(|(name, _)| folder.join(name)).collect();
            comm.once(|| {
                let all = names.iter().zip(&pictures);
                all.into_iter().try_for_each(|(path, (_, plot))| write_lines(path, plot).map_err(Failure::failed))
            })?;
            names
        }
    };
    let wire = |latency: f64, bandwidth: f64| (1e6 * latency, 1e-9 * bandwidth);
    let exchange = |exchange: &ExchangeTimes| {
        let (latency_microseconds, gbps) = wire(exchange.wire.latency, exchange.wire.bandwidth);
        ExchangeRecord { transport: exchange.transport.clone(), latency_microseconds, gbps }
    };
    let (latency_microseconds, gbps) = wire(asked.cluster.network.latency, asked.cluster.network.bandwidth);
    let record = BenchModelRecord {
        backend: measured.as_ref().map(|measured| measured.backend.into()),
        device: machine.device.clone(),
        layout: measured.as_ref().map(|measured| measured.layout.clone()),
        operator: machine.operator.clone(),
        lattice: lattice.size(),
        local: local.size(),
        machine: args.machine.clone().or_else(|| args.save.clone()),
        measured_on: machine.processes,
        measuring_seconds: measured.as_ref().map(|measured| measured.seconds),
        exchanges: machine.exchanges.iter().map(exchange).collect(),
        gpus_per_host: asked.cluster.gpus_per_host,
        network: Some(NetworkRecord { latency_microseconds, gbps }),
        iterations: machine.iterations.as_ref().map(|counted| counted.source.clone()),
        rows: predictions.operation_rows(),
        solver_rows: predictions.solver_rows(),
        compared: compared.iter().map(Comparison::row).collect(),
        worst: worst(&compared).map(|worst| worst.deviation),
        plots: plots.clone(),
    };
    context.output.record(&record, || {
        let mut text = table::head(&machine, &asked.cluster);
        text += &table::compared(&compared);
        text += &table::predictions(&predictions);
        for path in &plots {
            text += &format!("plot: {}\n", path.display());
        }
        text
    })
}

/// Compares the points of a file with the predictions. Points of operations that the machine lacks are left out with a warning.
fn from_file(machine: &Machine, asked: &Asked, comm: &RunCommunicator) -> Outcome<Vec<Comparison>> {
    let compared = compare(machine, &asked.points, &asked.cluster);
    let missing = asked.points.len() - compared.len();
    if compared.is_empty() {
        let MeasuredPoint { operator, precision, reconstruct, .. } = &asked.points[0];
        let why = format!(
            "no point in --measured can be predicted, because the measurements of the machine lack their operations, \
             transports or iteration counts; the first point is {operator} in {precision} with reconstruct \
             {reconstruct}: measure the machine with the --operator, --precision and --reconstruct of the points, or \
             remove --measured"
        );
        return comm.agree(Err(Failure::refused(why)));
    }
    if missing > 0 {
        warn!(
            "skipping {missing} of {} points in --measured, because the measurements of the machine lack their \
             operations, transports or iteration counts",
            asked.points.len()
        );
    }
    Ok(compared)
}

/// Returns the text of a file.
fn read(path: &PathBuf) -> Outcome<String> {
    fs::read_to_string(path)
        .map_err(|why| Failure::refused(format!("{} cannot be read as text: {why}", path.display())))
}
