//! Measures on the processes of this run: a machine, and points to hold its predictions against.
use super::super::kernels::memory;
use super::flags::{Asked, Formats};
use crate::cli::layout::Layout;
use crate::cli::{Context, Failure, Outcome};
use ferrite::backend::Backend;
use ferrite::bench::Options;
use ferrite::bench::model::{
    Cluster, Machine, Measured, Plan, Point, measure as measure_machine, reference_lattices, times, weak_grid,
};
use ferrite::halo::Transport;
use ferrite::lattice::Lattice;
use serde_json::Value;
use std::time::Instant;
use tracing::{debug, info, warn};

/// What was found out beside the machine.
pub struct Present {
    /// Of strong and of weak scaling.
    pub lattices: [Lattice; 2],
    /// The host of these processes.
    pub cluster: Cluster,
    /// What the operator takes on them.
    pub points: Vec<Point>,
    /// `cpu` or `cuda`.
    pub backend: &'static str,
    /// How the lattice of strong scaling was cut, or that of weak scaling where it did not fit.
    pub layout: Value,
    /// All of it.
    pub seconds: f64,
}

/// *Collective.*
pub fn measure(formats: &Formats, asked: &Asked, context: &Context) -> Outcome<(Machine, Present)> {
    let (world, start) = (&context.world, Instant::now());
    let hosts = world.hosts()?;
    if let Some(other) = hosts.iter().find(|host| **host != hosts[0]) {
        let why = format!(
            "processes on {} and {other}: a machine is measured within one host; the network between hosts is given with \
             --network-latency-us and --network-gbps",
            hosts[0]
        );
        return Err(Failure::refused(why).shared());
    }
    let choice = context.device_choice()?;
    let device = choice.open(world)?;
    let lattices = if device.name() == "cpu" {
        asked.lattices_or([[8, 8, 8, 32], [8; 4]])
    } else {
        asked.lattices(formats.name())
    };
    let [lattice, local] = lattices;
    let (definition, reach) = (formats.definition, formats.definition.steps());
    let strong = choice.layout.cut(world, lattice, reach)?;
    // The grid asked for, or one that cuts t first.
    let dims = choice.layout.grid().unwrap_or_else(|| weak_grid(world.size()));
    let whole = Lattice::new(std::array::from_fn(|mu| local.size()[mu] * dims[mu]));
    let whole = whole.map_err(|why| Failure::refused(format!("--local {local} for each process: {why}")).shared())?;
    let weak = choice.layout.clone().or_grid(dims).cut(world, whole, reach)?;
    let fits = |lattice: Lattice| {
        let needs = memory(lattice, 1, &[definition]);
        device.require_all(world, &needs, &format!("the model with {lattice} on each GPU"))
    };
    for (_, size) in reference_lattices(local, reach) {
        fits(Lattice::new(size).map_err(|why| Failure::refused(why).shared())?)?;
    }
    fits(local)?;
    let (mut layouts, mut largest) = (vec![weak], local);
    match fits(strong.local()) {
        Ok(()) => {
            largest = if strong.local().volume() > local.volume() { strong.local() } else { local };
            layouts.push(strong);
        }
        Err(failure) => warn!("{}; strong scaling is predicted, but not compared here", failure.message),
    }
    let options = Options {
        lattice: local,
        precisions: formats.precisions.clone(),
        reconstructions: formats.reconstructions.clone(),
        nrhs: 1,
    };
    let plan = Plan { definition, options, largest, transport: Transport::default() };
    let (machine, points) = {
        let backend = device.backend();
        let plan = Plan { transport: layouts[0].transport(backend)?, ..plan };
        let machine = measure_machine(backend, &world.network(), &plan)?;
        let mut points = Vec::new();
        for layout in &layouts {
            points.extend(on_grid(backend, layout, &machine, &plan)?);
        }
        (machine, points)
    };
    let cluster = Cluster { gpus_per_host: world.size(), ..asked.cluster };
    let layout = layouts[layouts.len() - 1].describe();
    let (backend, seconds) = (device.name(), start.elapsed().as_secs_f64());
    info!("measured in {seconds:.1} s");
    Ok((machine, Present { lattices, cluster, points, backend, layout, seconds }))
}

/// *Collective.* What the operator takes: the usual way with and without overlap, and through the host, where messages are
/// what counts.
fn on_grid(backend: &dyn Backend, layout: &Layout, machine: &Machine, plan: &Plan) -> Outcome<Vec<Point>> {
    let mut points = Vec::new();
    for (number, exchange) in machine.exchanges.iter().enumerate() {
        let transport = if number == 0 { plan.transport } else { Transport::Host };
        for overlap in if number == 0 { vec![true, false] } else { vec![true] } {
            debug!("{} over {}, {} way", layout.lattice(), layout.grid(), transport.name());
            let domain = layout.clone().with(transport, overlap).domain(backend)?;
            let times = times(&domain, plan)?;
            domain.let_go()?;
            points.extend(times.into_iter().map(|(operator, format, seconds)| Point {
                operator,
                precision: format.precision,
                reconstruct: format.reconstruct,
                lattice: layout.lattice().size(),
                grid: *layout.grid(),
                transport: Some(exchange.transport.clone()),
                overlap,
                measured: Measured::Seconds(seconds),
            }));
        }
    }
    Ok(points)
}
