//! Time of an operation on a partitioned lattice.
use super::{Cluster, Decomposition, LocalVolume, Machine, OperationTimes, Polyline, Wire};

/// Way in which faces are exchanged: transport and overlap.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HaloMode<'a> {
    /// Name of the transport within a host, as in [`Machine::exchanges`]; `None` for the usual one.
    pub transport: Option<&'a str>,
    /// Whether the interior is computed while faces travel.
    pub overlap: bool,
}

impl HaloMode<'_> {
    /// Default exchange of the program: the usual transport, with overlap.
    pub const USUAL: HaloMode<'static> = HaloMode { transport: None, overlap: true };
}

/// Limiting part of the time of a hop: computation or communication.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Bound {
    /// Computation on the GPU limits the time.
    Device,
    /// The exchange of faces limits the time, with the exteriors that wait for it.
    Exchange,
}

impl Bound {
    /// Returns the name of the limiting part: `device` or `exchange`.
    pub fn name(self) -> &'static str {
        match self {
            Bound::Device => "device",
            Bound::Exchange => "exchange",
        }
    }
}

/// Predicted time of a call of an operation.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Prediction {
    /// Time of the call, in seconds.
    pub seconds: f64,
    /// Time of the call on the local lattice of one process without neighbours, in seconds.
    pub alone: f64,
    /// Time of one exchange of the call without simultaneous computation, in seconds.
    pub exchange: f64,
    /// Limiting part of the time of a hop in the call.
    pub bound: Bound,
}

/// Returns the time of an exchange without simultaneous computation, in seconds. Between GPUs of a host it is the time of `near`. Between
/// hosts it is the sum of the time of packing (at most that of `near`), the time in which the host detects its end and launches the next
/// step, and the time in the network.
fn exchange(machine: &Machine, near: Wire, cluster: &Cluster, ends: [usize; 4], bytes: [f64; 4]) -> f64 {
    let total = |count: &dyn Fn(usize) -> usize| (0..4).map(|mu| count(mu) as f64 * bytes[mu]).sum::<f64>();
    let (here, there) = (total(&|mu| 2 - ends[mu]), total(&|mu| ends[mu]));
    let near_seconds = if here > 0.0 { near.seconds(here) } else { 0.0 };
    let far_seconds =
        if there > 0.0 { near.seconds(there) + machine.round_trip() + cluster.network.seconds(there) } else { 0.0 };
    near_seconds.max(far_seconds)
}

/// Predicts the time of a call on a partitioned lattice, which is that of the slowest process. Returns `None` if the lattice is
/// partitioned and the machine does not have the transport.
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

/// Returns the time of a call on the local lattice of each process without neighbours, in seconds: the operation of additive Schwarz
/// methods on domains.
pub(super) fn in_domains(operation: &OperationTimes, cut: &Decomposition) -> f64 {
    let part = LocalVolume::new(cut, operation.reach);
    let exteriors: f64 = (0..4).map(|mu| operation.exterior[mu].at(part.exterior[mu])).sum();
    operation.alone.at(part.interior) + operation.hops as f64 * exteriors
}
