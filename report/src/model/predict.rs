//! Time of an operation on a partitioned lattice.
use super::{Cluster, Decomposition, LocalVolume, Machine, OperationTimes, Polyline, Wire};

/// Exchange of faces: transport and overlap.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HaloMode<'a> {
    /// Transport within a host, by its name in [`Machine::exchanges`]; `None` for the usual one.
    pub transport: Option<&'a str>,
    /// Whether the interior is computed while faces travel.
    pub overlap: bool,
}

impl HaloMode<'_> {
    /// Default of the program.
    pub const USUAL: HaloMode<'static> = HaloMode { transport: None, overlap: true };
}

/// Limit of the time of a hop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Bound {
    /// Computation on the GPU.
    Device,
    /// Exchange of faces, and the exteriors that wait for them.
    Exchange,
}

impl Bound {
    /// Returns `device` or `exchange`.
    pub fn name(self) -> &'static str {
        match self {
            Bound::Device => "device",
            Bound::Exchange => "exchange",
        }
    }
}

/// Predicted time of a call.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Prediction {
    /// Seconds of the call.
    pub seconds: f64,
    /// Seconds of the call on the local lattice of one process without neighbours.
    pub alone: f64,
    /// Seconds of one exchange of the call without computation beside it.
    pub exchange: f64,
    /// Limit of the time of a hop.
    pub bound: Bound,
}

/// Returns the seconds of an exchange without computation beside it: the time of `near` between GPUs of a host; between hosts the sum of
/// packing (at most the time of `near`), the time until the host has noticed its end and launched the next step, and the network.
fn exchange(machine: &Machine, near: Wire, cluster: &Cluster, ends: [usize; 4], bytes: [f64; 4]) -> f64 {
    let total = |count: &dyn Fn(usize) -> usize| (0..4).map(|mu| count(mu) as f64 * bytes[mu]).sum::<f64>();
    let (here, there) = (total(&|mu| 2 - ends[mu]), total(&|mu| ends[mu]));
    let near_seconds = if here > 0.0 { near.seconds(here) } else { 0.0 };
    let far_seconds =
        if there > 0.0 { near.seconds(there) + machine.round_trip() + cluster.network.seconds(there) } else { 0.0 };
    near_seconds.max(far_seconds)
}

/// Predicts the time of a call on a partitioned lattice, that of the slowest process. `None` if the lattice is partitioned and the machine
/// has no such transport.
pub fn predict(
    machine: &Machine,
    operation: &OperationTimes,
    cut: &Decomposition,
    cluster: &Cluster,
    mode: HaloMode<'_>,
) -> Option<Prediction> {
    let part = LocalVolume::new(cut, operation.reach);
    let grid = &cut.grid;
    let hops = operation.hops as f64;
    let alone = operation.alone.at(part.sites);
    let sums = operation.sums as f64 * machine.sum(grid.size(), cluster);
    if grid.size() == 1 {
        return Some(Prediction { seconds: alone, alone, exchange: 0.0, bound: Bound::Device });
    }
    let near = machine.exchange(mode.transport)?.wire;
    let bytes = part.zone.map(|sites| sites * operation.zone_bytes as f64);
    let slowest = cluster.far_ends(grid).into_iter().map(|ends| exchange(machine, near, cluster, ends, bytes));
    let exchange = slowest.fold(0.0, f64::max);
    let all = |lines: &[Polyline; 4]| (0..4).map(|mu| lines[mu].at(part.exterior[mu])).sum::<f64>();
    let late = exchange + all(&operation.exterior);
    let (hop, bound) = if !mode.overlap {
        (late + operation.alone.at(part.interior) / hops, Bound::Exchange)
    } else {
        let beside = alone / hops + all(&operation.beside);
        if beside >= late { (beside, Bound::Device) } else { (late, Bound::Exchange) }
    };
    Some(Prediction { seconds: hops * hop + sums, alone, exchange, bound })
}

/// Returns the time of a call on the local lattice of each process without neighbours, the operation of additive Schwarz methods in
/// domains.
pub(super) fn in_domains(operation: &OperationTimes, cut: &Decomposition) -> f64 {
    let part = LocalVolume::new(cut, operation.reach);
    let exteriors: f64 = (0..4).map(|mu| operation.exterior[mu].at(part.exterior[mu])).sum();
    operation.alone.at(part.interior) + operation.hops as f64 * exteriors
}
