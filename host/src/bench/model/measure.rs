//! Measures a [`Machine`] on the processes of this run.
mod reference;

pub use reference::reference_lattices;

use super::{Algebra, Curve, Exchange, Format, Iterations, Machine, Operation, Wire};
use crate::backend::Backend;
use crate::bench::{Options, time_in};
use crate::dirac::{CLOVER, Definition};
use crate::domain::{Domain, Result};
use crate::halo::{Network, Transport, zone_bytes};
use crate::lattice::Lattice;
use crate::workload::{self, Extent, Visit};
use gpu_kernels::{FermionKind, LinkStorage};
use reference::{Costs, Reference};
use std::sync::Arc;
use std::time::Instant;
use tracing::debug;

/// Sites of the smallest local lattice of the curves: what is inside of the smallest parts is not much more.
const SMALLEST: usize = 4 * 4 * 4 * 8;
/// Linear algebra is measured on every third of the curves' lattices: a factor of eight lies between them.
const STRIDE: usize = 3;
/// Batches whose median is taken, and seconds of one: shorter than those of `bench dslash`, for there are hundreds.
const BATCHES: (usize, f64) = (5, 0.005);
/// Sums in a batch, and batches.
const SUMS: [usize; 2] = [200, 7];
/// Linear algebra that a model of a solver needs.
const ALGEBRA: [&str; 6] = ["norm2_kernel", "norm2", "axpy", "axpy_norm2", "cg_update", "bicgstab_step"];

/// What is measured.
#[derive(Clone, Debug)]
pub struct Plan {
    /// The operator.
    pub definition: &'static Definition,
    /// Formats. Its lattice is the local lattice of weak scaling, around which costs of a cut are measured.
    pub options: Options,
    /// The largest local lattice of the curves.
    pub largest: Lattice,
    /// The usual way for faces within a host.
    pub transport: Transport,
}

/// Names an operation, and says what does not depend on where it runs.
type Timed = (workload::Operation, f64);

/// *Collective.* Seconds of a call of each part of the operator on a domain, of the slowest of its processes: name and
/// format, seconds.
pub fn times(domain: &Domain, plan: &Plan) -> Result<Vec<(String, Format, f64)>> {
    let named = |(o, seconds): Timed| (o.name.clone(), format(&o), seconds);
    Ok(timed(domain, plan)?.into_iter().map(named).collect())
}

fn format(operation: &workload::Operation) -> Format {
    let reconstruct = operation.storage.map_or("", LinkStorage::name).into();
    Format { precision: operation.precision.name().into(), reconstruct }
}

fn timed(domain: &Domain, plan: &Plan) -> Result<Vec<Timed>> {
    let mut all = Vec::new();
    let mut visit = |operation, call: &mut dyn FnMut() -> Result| {
        all.push((operation, time(domain, call)?));
        Ok(())
    };
    visit_operator(domain, plan, &mut visit)?;
    domain.backend().synchronize()?;
    Ok(all)
}

fn visit_operator(domain: &Domain, plan: &Plan, visit: Visit) -> Result {
    workload::operator(domain, plan.definition, &plan.options, Extent::Modelled, visit)
}

fn algebra(domain: &Domain, plan: &Plan) -> Result<Vec<Timed>> {
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

/// *Collective.* Seconds of a call.
fn time(domain: &Domain, work: impl FnMut() -> Result) -> Result<f64> {
    time_in(domain, BATCHES.0, BATCHES.1, work)
}

/// *Collective.* Of the slowest of all processes, which have all timed the same.
fn slowest(network: &dyn Network, mut times: Vec<Timed>) -> Result<Vec<Timed>> {
    let mine: Vec<u8> = times.iter().flat_map(|(_, seconds)| seconds.to_le_bytes()).collect();
    for theirs in network.all_gather(&mine)? {
        for ((_, seconds), bytes) in times.iter_mut().zip(theirs.as_chunks::<8>().0) {
            *seconds = seconds.max(f64::from_le_bytes(*bytes));
        }
    }
    Ok(times)
}

/// From `largest` down: the last direction that is longest is halved, to extents of four sites or [`SMALLEST`] in all.
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

/// *Collective.* Measures; with at least two processes, all of one host, each of which has a device of its own.
pub fn measure(backend: &dyn Backend, network: &Arc<dyn Network>, plan: &Plan) -> Result<Machine> {
    let definition = plan.definition;
    let mut machine = Machine {
        device: backend.device(),
        processes: network.size(),
        operator: definition.name.into(),
        operations: Vec::new(),
        algebra: Vec::new(),
        exchanges: Vec::new(),
        sum_step: sum_step(&**network)?,
        iterations: (*definition == CLOVER).then(Iterations::counted),
    };
    curves(backend, &**network, plan, &mut machine)?;
    let references = reference_lattices(plan.options.lattice, definition.steps());
    let references = references.into_iter().map(|reference| Reference::new(backend, network, reference));
    let references: Vec<_> = references.collect::<Result<_>>()?;
    let mut transports = vec![plan.transport, Transport::Host];
    transports.dedup();
    for transport in transports {
        let mut points = Vec::new();
        for reference in references.iter().filter(|reference| reference.mu == 3) {
            for precision in &plan.options.precisions {
                points.push(reference.exchange(definition, transport, *precision)?);
            }
        }
        machine.exchanges.push(Exchange { transport: transport.name().into(), wire: wire(&points) });
    }
    let mut costs = vec![Costs::default(); machine.operations.len()];
    for reference in &references {
        reference.costs(plan, &machine, &mut costs)?;
    }
    for (operation, costs) in machine.operations.iter_mut().zip(costs) {
        [operation.beside, operation.exterior] = costs.lines();
    }
    Ok(machine)
}

/// Times of one operation at several sizes, the largest first.
#[derive(Clone)]
struct Series {
    operation: workload::Operation,
    /// (local sites, seconds).
    points: Vec<(f64, f64)>,
}

/// Times alone, at all sizes.
fn curves(backend: &dyn Backend, network: &dyn Network, plan: &Plan, machine: &mut Machine) -> Result {
    let definition = plan.definition;
    let (mut operations, mut algebras): (Vec<Series>, Vec<Series>) = Default::default();
    let lattices = halved(plan.largest)?;
    let last = lattices.len() - 1;
    for (number, lattice) in lattices.into_iter().enumerate() {
        debug!("kernels alone on {lattice}");
        let domain = Domain::single(backend, lattice)?;
        let volume = lattice.volume() as f64;
        let add = |all: &mut Vec<Series>, times: Vec<Timed>| -> Result {
            for (k, (operation, seconds)) in slowest(network, times)?.into_iter().enumerate() {
                if all.len() == k {
                    all.push(Series { operation, points: Vec::new() });
                }
                all[k].points.push((volume, seconds));
            }
            Ok(())
        };
        add(&mut operations, timed(&domain, plan)?)?;
        if number.is_multiple_of(STRIDE) || number == last {
            add(&mut algebras, algebra(&domain, plan)?)?;
        }
    }
    let curve = |points| Curve::new(points).expect("there is a time above 0 for each of several lattices");
    machine.operations.extend(operations.into_iter().map(|Series { operation, points }| {
        let name = operation.name.clone();
        let is_matrix = name.contains("_matrix");
        // M†M comes with the sum that CG waits for.
        let has_sums = name.ends_with("_sums") || is_matrix && definition.kind == FermionKind::Staggered;
        Operation {
            format: format(&operation),
            name,
            reach: definition.steps(),
            hops: if is_matrix { 2 } else { 1 },
            sums: usize::from(has_sums),
            zone_bytes: zone_bytes(definition.kind, operation.precision),
            // Counted on the first lattice.
            flops: operation.flops / points[0].0,
            alone: curve(points),
            beside: Default::default(),
            exterior: Default::default(),
        }
    }));
    machine.algebra.extend(algebras.into_iter().map(|Series { operation, points }| Algebra {
        name: operation.name,
        precision: operation.precision.name().into(),
        alone: curve(points),
    }));
    Ok(())
}

/// Latency and bandwidth of exchanges. Where length does not show, all have the latency of the quickest, and the bandwidth
/// is one that is reached at least.
fn wire(points: &[(f64, f64)]) -> Wire {
    Wire::fit(points).unwrap_or_else(|| {
        let largest = |part: fn(&(f64, f64)) -> f64| points.iter().map(part).fold(0.0, f64::max);
        let latency = points.iter().map(|(_, seconds)| *seconds).fold(f64::INFINITY, f64::min);
        Wire { latency, bandwidth: largest(|(bytes, _)| *bytes) / largest(|(_, seconds)| *seconds) }
    })
}

/// Seconds of a step of a sum over all processes, as a solver makes it: of three numbers.
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
    use gpu_kernels::Precision;

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

    /// Two processes that are threads measure the same machine, which has all that predictions need.
    #[test]
    fn processes_measure_one_machine() {
        let lattice = Lattice::new([4; 4]).unwrap();
        let options = Options {
            lattice,
            precisions: vec![Precision::Single],
            reconstructions: vec![LinkStorage::of(12)],
            nrhs: 1,
        };
        let plan = Plan { definition: &crate::dirac::WILSON, options, largest: lattice, transport: Transport::Host };
        let machines = Threads::run(2, |threads| {
            let network: Arc<dyn Network> = Arc::new(threads);
            measure(&Cpu::new(Some(1)), &network, &plan).map_err(|error: DeviceError| error.to_string())
        });
        let machines = machines.unwrap_or_else(|failure| panic!("{failure}"));
        assert_eq!(machines[0], machines[1]);
        let [dslash, added, matrix, sums] = &machines[0].operations[..] else { panic!("{:?}", machines[0].operations) };
        assert_eq!([dslash.hops, added.hops, matrix.hops, sums.hops], [1, 1, 2, 2]);
        assert_eq!([dslash.sums, matrix.sums, sums.sums], [0, 0, 1]);
        // Half of the sites, 1320 operations each; half a spinor in single precision.
        assert_eq!((dslash.flops, dslash.zone_bytes), (660.0, 48));
        assert!(dslash.exterior.iter().all(|line| line.points().len() >= 2), "{:?}", dslash.exterior);
        assert_eq!((machines[0].exchanges.len(), machines[0].algebra.len()), (1, ALGEBRA.len()));
    }
}
