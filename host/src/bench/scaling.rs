//! Times from which a scaling model is made: kernels alone at several sizes, exchanges alone, sums, and an operator on a few partitioned
//! lattices. The model itself is not part of this library: it is in `examples/studies`, and `docs/scaling-model.md` describes it.
mod reference;

pub use reference::{CutSeconds, ReferenceLattice, ReferenceTimes, reference_lattices};

use crate::backend::Backend;
use crate::bench::time_in;
use crate::domain::Transport;
use crate::domain::{Domain, Result};
use crate::halo::zone_bytes;
use crate::lattice::Lattice;
use crate::network::Network;
use crate::operators::Definition;
use crate::workload::Options;
use crate::workload::{self, Extent, Visit};
use comms::ProcessGrid;
use gpu_kernels::{FermionKind, LinkStorage, Precision};
use reference::Reference;
use std::sync::Arc;
use std::time::Instant;
use tracing::debug;

/// Number of sites of the smallest local lattice: the interior of the smallest parts is not much larger.
const SMALLEST: usize = 4 * 4 * 4 * 8;
/// Linear algebra is measured on every third lattice only, that is, in steps of a factor of eight in volume.
const STRIDE: usize = 3;
/// Number of batches whose median counts, and seconds of a batch. Both are smaller than those of `bench dslash`, because there are hundreds
/// of measurements.
const BATCHES: (usize, f64) = (5, 0.005);
/// Number of sums in a batch, and number of batches.
const SUMS: [usize; 2] = [200, 7];
/// Names of the operations of linear algebra that a solver model needs.
const ALGEBRA: [&str; 6] = ["norm2_kernel", "norm2", "axpy", "axpy_norm2", "cg_update", "bicgstab_step"];

/// Plan of a measurement: operator, formats and lattices.
#[derive(Clone, Debug)]
pub struct ScalingPlan {
    /// Operator to measure.
    pub definition: &'static Definition,
    /// Formats to measure, and the local lattice of weak scaling. Costs of partitioning are measured on lattices of similar size.
    pub options: Options,
    /// Largest local lattice on which kernels are measured alone.
    pub largest: Lattice,
    /// Usual transport of faces between processes of one machine.
    pub transport: Transport,
}

/// Times from which a scaling model is made.
#[derive(Clone, Debug, PartialEq)]
pub struct ScalingTimes {
    /// Description of the device.
    pub device: String,
    /// Number of processes in the measurement.
    pub processes: usize,
    /// Name of the operator.
    pub operator: &'static str,
    /// Times of the operator's kernels without neighbours, for each operation and format.
    pub operations: Vec<OperationSeries>,
    /// Times of linear algebra on fields of the operator's fermion type.
    pub algebra: Vec<AlgebraSeries>,
    /// Times of exchanges without other work; the usual transport is first.
    pub exchanges: Vec<ExchangeSeries>,
    /// Seconds of one of the ⌈log₂ N⌉ steps of a sum over the N processes.
    pub sum_step: f64,
    /// Times of the operator on lattices that are partitioned in one direction.
    pub references: Vec<ReferenceTimes>,
}

/// Times of an operation of the operator in one format, on one process without neighbours.
#[derive(Clone, Debug, PartialEq)]
pub struct OperationSeries {
    /// Name of the operation, such as `clover_dslash` or `clover_matrix`.
    pub name: String,
    /// Precision of the fields.
    pub precision: Precision,
    /// Storage of the links; `None` for an operation without links.
    pub storage: Option<LinkStorage>,
    /// Number of steps of the longest hop.
    pub reach: usize,
    /// Number of hopping terms in a call; each needs an exchange.
    pub hops: usize,
    /// Number of sums over all processes for which a call waits.
    pub sums: usize,
    /// Number of bytes that a message contains for a site.
    pub zone_bytes: usize,
    /// Number of floating-point operations of a call, divided by the number of sites of the lattice. A call processes one half of the
    /// sites.
    pub flops: f64,
    /// Pairs of the number of local sites and the seconds of a call; the largest lattice is first.
    pub points: Vec<(f64, f64)>,
}

/// Times of an operation of linear algebra.
#[derive(Clone, Debug, PartialEq)]
pub struct AlgebraSeries {
    /// Name of the operation, such as `axpy` or `norm2`.
    pub name: String,
    /// Precision of the fields.
    pub precision: Precision,
    /// Pairs of the number of local sites and the seconds of a call; the largest lattice is first.
    pub points: Vec<(f64, f64)>,
}

/// Times of exchanges by one transport.
#[derive(Clone, Debug, PartialEq)]
pub struct ExchangeSeries {
    /// Transport of the faces.
    pub transport: Transport,
    /// Times for each lattice and precision.
    pub times: Vec<ExchangeTime>,
}

/// Time of an exchange of faces in one direction without other work.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ExchangeTime {
    /// Partitioned direction μ: 0 to 3 for x to t.
    pub direction: usize,
    /// Extents of the whole lattice.
    pub lattice: [usize; 4],
    /// Process grid of the partitioned lattice.
    pub grid: ProcessGrid,
    /// Number of steps of the longest hop, which determines how many layers are exchanged.
    pub reach: usize,
    /// Number of bytes that a message contains for a site.
    pub zone_bytes: usize,
    /// Time of an exchange in seconds, including packing.
    pub seconds: f64,
}

/// Time of an operation of the operator, from [`times`].
#[derive(Clone, Debug, PartialEq)]
pub struct OperationTime {
    /// Name of the operation, such as `clover_dslash` or `clover_matrix`.
    pub name: String,
    /// Precision of the fields.
    pub precision: Precision,
    /// Storage of the links; `None` for an operation without links.
    pub storage: Option<LinkStorage>,
    /// Seconds of a call.
    pub seconds: f64,
}

/// An operation and the seconds of one call.
type TimedOperation = (workload::Operation, f64);

/// *Collective.* Returns the seconds of a call for each operation of the plan's operator on a domain; the slowest process counts.
pub fn times(domain: &Domain, plan: &ScalingPlan) -> Result<Vec<OperationTime>> {
    let named = |(operation, seconds): TimedOperation| {
        let workload::Operation { name, precision, storage, .. } = operation;
        OperationTime { name, precision, storage, seconds }
    };
    Ok(timed(domain, plan)?.into_iter().map(named).collect())
}

fn timed(domain: &Domain, plan: &ScalingPlan) -> Result<Vec<TimedOperation>> {
    let mut all = Vec::new();
    let mut visit = |operation, call: &mut dyn FnMut() -> Result| {
        all.push((operation, time(domain, call)?));
        Ok(())
    };
    visit_operator(domain, plan, &mut visit)?;
    domain.backend().synchronize()?;
    Ok(all)
}

fn visit_operator(domain: &Domain, plan: &ScalingPlan, visit: Visit) -> Result {
    workload::operator(domain, plan.definition, &plan.options, Extent::Modelled, visit)
}

fn algebra(domain: &Domain, plan: &ScalingPlan) -> Result<Vec<TimedOperation>> {
    let mut all = Vec::new();
    let mut visit = |operation: workload::Operation, call: &mut dyn FnMut() -> Result| {
        if ALGEBRA.contains(&operation.name.as_str()) {
            all.push((operation, time(domain, call)?));
        }
        Ok(())
    };
    workload::linear_algebra(domain, plan.definition.kind, &plan.options, Extent::Shown, &mut visit)?;
    Ok(all)
}

/// *Collective.* Returns the seconds of a call of `work`, for the slowest process.
fn time(domain: &Domain, work: impl FnMut() -> Result) -> Result<f64> {
    time_in(domain, BATCHES.0, BATCHES.1, work)
}

/// *Collective.* Returns the times of the slowest process for each operation. All processes must have timed the same operations.
fn slowest(network: &dyn Network, mut times: Vec<TimedOperation>) -> Result<Vec<TimedOperation>> {
    let mine: Vec<u8> = times.iter().flat_map(|(_, seconds)| seconds.to_le_bytes()).collect();
    for theirs in network.all_gather(&mine)? {
        for ((_, seconds), bytes) in times.iter_mut().zip(theirs.as_chunks::<8>().0) {
            *seconds = seconds.max(f64::from_le_bytes(*bytes));
        }
    }
    Ok(times)
}

/// Returns lattices from `largest` down to four sites in each direction or [`SMALLEST`] sites. Each has half of the previous one's extent
/// in its longest direction, the last one if several are equally long.
fn halved(largest: Lattice) -> Result<Vec<Lattice>> {
    let mut all = vec![largest];
    let mut size = largest.size();
    loop {
        let can = (0..4).filter(|mu| size[*mu] >= 8 && size[*mu].is_multiple_of(4));
        let Some(mu) = can.max_by_key(|mu| size[*mu]) else { break };
        size[mu] /= 2;
        if size.iter().product::<usize>() < SMALLEST {
            break;
        }
        all.push(Lattice::new(size)?);
    }
    Ok(all)
}

/// *Collective.* Measures all times for a scaling model. Needs at least two processes on one machine, each with its own device.
pub fn measure(backend: &dyn Backend, network: &Arc<dyn Network>, plan: &ScalingPlan) -> Result<ScalingTimes> {
    let definition = plan.definition;
    let sum_step = sum_step(&**network)?;
    let (operations, algebra) = alone(backend, &**network, plan)?;
    let references = reference_lattices(plan.options.lattice, definition.steps());
    let references = references.into_iter().map(|reference| Reference::new(backend, network, reference));
    let references: Vec<_> = references.collect::<Result<_>>()?;
    let mut transports = vec![plan.transport, Transport::Host];
    transports.dedup();
    let mut exchanges = Vec::new();
    for transport in transports {
        let mut times = Vec::new();
        for reference in references.iter().filter(|reference| reference.direction == 3) {
            for precision in &plan.options.precisions {
                times.push(reference.exchange(definition, transport, *precision)?);
            }
        }
        exchanges.push(ExchangeSeries { transport, times });
    }
    let references = references.iter().map(|reference| reference.times(plan)).collect::<Result<_>>()?;
    Ok(ScalingTimes {
        device: backend.device(),
        processes: network.size(),
        operator: definition.name,
        operations,
        algebra,
        exchanges,
        sum_step,
        references,
    })
}

/// Times of one operation at several sizes, the largest first.
struct TimedSeries {
    operation: workload::Operation,
    /// Pairs of local sites and seconds of a call.
    points: Vec<(f64, f64)>,
}

/// Adds the times on a lattice of `sites` sites. The operations and their order must be the same in every call.
fn add_times(all: &mut Vec<TimedSeries>, sites: f64, times: Vec<TimedOperation>) {
    for (k, (operation, seconds)) in times.into_iter().enumerate() {
        if all.len() == k {
            all.push(TimedSeries { operation, points: Vec::new() });
        }
        all[k].points.push((sites, seconds));
    }
}

/// Measures the times of the operator and of linear algebra on one process without neighbours, at all sizes.
fn alone(
    backend: &dyn Backend,
    network: &dyn Network,
    plan: &ScalingPlan,
) -> Result<(Vec<OperationSeries>, Vec<AlgebraSeries>)> {
    let definition = plan.definition;
    let (mut operations, mut algebras) = (Vec::new(), Vec::new());
    let lattices = halved(plan.largest)?;
    let last = lattices.len() - 1;
    for (number, lattice) in lattices.into_iter().enumerate() {
        debug!("timing kernels on {lattice} without exchanges");
        let domain = Domain::single(backend, lattice)?;
        let volume = lattice.volume() as f64;
        add_times(&mut operations, volume, slowest(network, timed(&domain, plan)?)?);
        if number.is_multiple_of(STRIDE) || number == last {
            add_times(&mut algebras, volume, slowest(network, algebra(&domain, plan)?)?);
        }
    }
    let operation = |TimedSeries { operation, points }| {
        let workload::Operation { name, precision, storage, flops, .. } = operation;
        let is_matrix = name.contains("_matrix");
        // For staggered operators, M†M includes the sum for which CG waits.
        let has_sums = name.ends_with("_sums") || is_matrix && definition.kind == FermionKind::Staggered;
        OperationSeries {
            name,
            precision,
            storage,
            reach: definition.steps(),
            hops: if is_matrix { 2 } else { 1 },
            sums: usize::from(has_sums),
            zone_bytes: zone_bytes(definition.kind, precision),
            // The floating-point operations were counted on the first lattice of the series.
            flops: flops / points[0].0,
            points,
        }
    };
    let algebra = |TimedSeries { operation, points }| {
        let workload::Operation { name, precision, .. } = operation;
        AlgebraSeries { name, precision, points }
    };
    Ok((operations.into_iter().map(operation).collect(), algebras.into_iter().map(algebra).collect()))
}

/// *Collective.* Measures the seconds of one of the steps of a sum over all processes. The sum is of three numbers, as in a solver.
fn sum_step(network: &dyn Network) -> Result<f64> {
    let [sums, batches] = SUMS;
    let mut times = Vec::with_capacity(batches);
    for _ in 0..batches {
        network.barrier()?;
        let start = Instant::now();
        for _ in 0..sums {
            network.sum(&mut [1.0, 2.0, 3.0])?;
        }
        times.push(start.elapsed().as_secs_f64() / sums as f64);
    }
    times.sort_by(f64::total_cmp);
    let steps = network.size().next_power_of_two().ilog2().max(1);
    let mine = times[batches / 2] / f64::from(steps);
    let all = network.all_gather(&mine.to_le_bytes())?;
    let numbers = all.iter().filter_map(|bytes| bytes.as_slice().try_into().ok().map(f64::from_le_bytes));
    Ok(numbers.fold(mine, f64::max))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::backend::Cpu;
    use crate::domain::DeviceError;
    use comms::Threads;

    #[test]
    fn lattices_are_halved() {
        let sizes = |size: [usize; 4]| -> Vec<[usize; 4]> {
            halved(Lattice::new(size).unwrap()).unwrap().iter().map(Lattice::size).collect()
        };
        let [first, second, third, fourth, .., last] = sizes([32, 32, 32, 128])[..] else { panic!() };
        assert_eq!([first, second, third], [[32, 32, 32, 128], [32, 32, 32, 64], [32; 4]]);
        assert_eq!([fourth, last], [[32, 32, 32, 16], [8, 4, 4, 4]]);
        assert_eq!(sizes([4, 4, 4, 16]), [[4, 4, 4, 16], [4, 4, 4, 8]]);
        // 6 and 10 have no even half.
        assert_eq!(sizes([6, 6, 10, 8]), [[6, 6, 10, 8], [6, 6, 10, 4]]);
        assert_eq!(sizes([4; 4]), [[4; 4]]);
    }

    /// Two processes that are threads measure the same times, which are all that a model needs.
    #[test]
    fn processes_measure_the_same() {
        let lattice = Lattice::new([4; 4]).unwrap();
        let options = Options {
            lattice,
            precisions: vec![Precision::Single],
            reconstructions: vec![LinkStorage::of(12)],
            nrhs: 1,
        };
        let plan = ScalingPlan {
            definition: &crate::operators::WILSON,
            options,
            largest: lattice,
            transport: Transport::Host,
        };
        let times = Threads::run(2, |threads| {
            let network: Arc<dyn Network> = Arc::new(threads);
            measure(&Cpu::new(Some(1)), &network, &plan).map_err(|error: DeviceError| error.to_string())
        });
        let times = times.unwrap_or_else(|failure| panic!("{failure}"));
        assert_eq!(times[0], times[1]);
        let [dslash, added, matrix, sums] = &times[0].operations[..] else { panic!("{:?}", times[0].operations) };
        assert_eq!([dslash.hops, added.hops, matrix.hops, sums.hops], [1, 1, 2, 2]);
        assert_eq!([dslash.sums, matrix.sums, sums.sums], [0, 0, 1]);
        // Half of the sites, 1320 operations each; half a spinor in single precision.
        assert_eq!((dslash.flops, dslash.zone_bytes), (660.0, 48));
        assert_eq!((times[0].exchanges.len(), times[0].algebra.len()), (1, ALGEBRA.len()));
        // Two lattices are cut in t, and exchanges are timed on these.
        assert_eq!(times[0].exchanges[0].times.len(), 2);
        let directions: Vec<usize> = times[0].references.iter().map(|reference| reference.direction).collect();
        assert_eq!(directions, [3, 3, 2, 1, 0]);
        assert!(times[0].references.iter().all(|reference| reference.operations.len() == 4));
    }
}
