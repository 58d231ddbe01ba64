//! Measurement of a machine on the processes of this run, and of points to compare with its predictions.
use super::flags::{Asked, ModelFormats};
use super::machine::{machine, point};
use crate::layout::Layout;
use crate::model::{Cluster, Decomposition, IterationCounts, Machine, MeasuredPoint, weak_grid};
use crate::{Context, Failure, Outcome};
use ferrite::backend::Backend;
use ferrite::bench::scaling::{self, ScalingPlan, reference_lattices};
use ferrite::domain::Transport;
use ferrite::lattice::Lattice;
use ferrite::operators::CLOVER;
use ferrite::workload::Options;
use ferrite_cli::bench::memory;
use std::time::Instant;
use tracing::{debug, info, warn};

/// Results of a measurement in addition to the machine.
pub struct MeasuredRun {
    /// Lattices of strong and of weak scaling.
    pub lattices: [Lattice; 2],
    /// Cluster that consists of the single host of these processes.
    pub cluster: Cluster,
    /// Times of the operator on the lattices of strong and of weak scaling.
    pub points: Vec<MeasuredPoint>,
    /// Name of the backend: `cpu` or `cuda`.
    pub backend: &'static str,
    /// Partition of the lattice of strong scaling; that of weak scaling if the former did not fit in memory.
    pub layout: ferrite_records::place::LayoutRecord,
    /// Seconds of the whole measurement.
    pub seconds: f64,
}

/// *Collective.* Measures the machine within one host, and times of the operator on several processes.
pub fn measure(formats: &ModelFormats, asked: &Asked, context: &Context) -> Outcome<(Machine, MeasuredRun)> {
    let (comm, start) = (&context.comm, Instant::now());
    let hosts = comm.hosts()?;
    if let Some(other) = hosts.iter().find(|host| **host != hosts[0]) {
        let why = format!(
            "processes run on the hosts {} and {other}, but the measurement needs a single host: start all processes \
             on one host, and describe the network between hosts with --network-latency-us and --network-gbps",
            hosts[0]
        );
        return Err(Failure::refused(why).shared());
    }
    let choice = context.device_choice()?;
    let device = choice.open(comm)?;
    let lattices = if device.name() == "cpu" {
        asked.lattices_or([[8, 8, 8, 32], [8; 4]])
    } else {
        asked.lattices(formats.name())
    };
    let [lattice, local] = lattices;
    let (definition, reach) = (formats.definition, formats.definition.steps());
    let strong = choice.layout.cut(comm, lattice, reach)?;
    // Without a requested grid, the processes are arranged in a grid that partitions t first.
    let dims = choice.layout.grid().unwrap_or_else(|| weak_grid(comm.size()));
    let whole = Lattice::new(std::array::from_fn(|mu| local.size()[mu] * dims[mu]));
    let whole = whole.map_err(|why| {
        Failure::refused(format!("--local {} for each process: {why}", local.size().map(|n| n.to_string()).join(",")))
            .shared()
    })?;
    let weak = choice.layout.clone().or_grid(dims).cut(comm, whole, reach)?;
    let fits = |lattice: Lattice, flag: &str| {
        let needs = memory(lattice, 1, &[definition]);
        device.require_all(comm, &needs, &format!("the measurement on the local lattice {lattice}, from {flag},"))
    };
    for reference in reference_lattices(local, reach) {
        fits(Lattice::new(reference.local).map_err(|why| Failure::refused(why).shared())?, "--local")?;
    }
    fits(local, "--local")?;
    let (mut layouts, mut largest) = (vec![weak], local);
    match fits(strong.local(), "--lattice") {
        Ok(()) => {
            largest = if strong.local().volume() > local.volume() { strong.local() } else { local };
            layouts.push(strong);
        }
        Err(failure) => warn!("{}; strong scaling is predicted, but not compared with a measurement", failure.message),
    }
    let options = Options {
        lattice: local,
        precisions: formats.precisions.clone(),
        reconstructions: formats.reconstructions.clone(),
        nrhs: 1,
    };
    let plan = ScalingPlan { definition, options, largest, transport: Transport::default() };
    let (machine, points) = {
        let backend = device.backend();
        let plan = ScalingPlan { transport: layouts[0].transport(backend)?, ..plan };
        let iterations = (*definition == CLOVER).then(IterationCounts::counted);
        let machine = machine(&scaling::measure(backend, &comm.network(), &plan)?, iterations);
        let mut points = Vec::new();
        for layout in &layouts {
            points.extend(on_grid(backend, layout, &machine, &plan)?);
        }
        (machine, points)
    };
    let cluster = Cluster { gpus_per_host: comm.size(), ..asked.cluster };
    let layout = layouts[layouts.len() - 1].record();
    let (backend, seconds) = (device.name(), start.elapsed().as_secs_f64());
    info!("measured in {seconds:.1} s");
    Ok((machine, MeasuredRun { lattices, cluster, points, backend, layout, seconds }))
}

/// *Collective.* Measures times of the operator: by the usual transport with and without overlap, and through the host, where the time for
/// messages dominates.
fn on_grid(
    backend: &dyn Backend,
    layout: &Layout,
    machine: &Machine,
    plan: &ScalingPlan,
) -> Outcome<Vec<MeasuredPoint>> {
    let cut = Decomposition { lattice: layout.lattice().size(), grid: *layout.grid() };
    let mut points = Vec::new();
    for (number, exchange) in machine.exchanges.iter().enumerate() {
        let transport = if number == 0 { plan.transport } else { Transport::Host };
        for overlap in if number == 0 { vec![true, false] } else { vec![true] } {
            debug!("{} over {}, transport {}", layout.lattice(), layout.grid(), transport.name());
            let domain = layout.clone().with(transport, overlap).domain(backend)?;
            let times = scaling::times(&domain, plan)?;
            domain.release()?;
            points.extend(times.iter().map(|time| point(time, cut, &exchange.transport, overlap)));
        }
    }
    Ok(points)
}
