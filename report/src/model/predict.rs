//! The time of an operation on a lattice that is cut.
use super::{Cluster, Decomposition, LocalVolume, Machine, OperationTimes, Polyline, Wire};

/// How faces travel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HaloMode<'a> {
    /// Within a host, one of [`Machine::exchanges`] by name; the usual one without.
    pub transport: Option<&'a str>,
    /// Whether the interior is computed meanwhile.
    pub overlap: bool,
}

impl HaloMode<'_> {
    /// What the program does if nothing else is asked for.
    pub const USUAL: HaloMode<'static> = HaloMode { transport: None, overlap: true };
}

/// What the time of a hop is that of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Bound {
    /// Work on the GPU.
    Device,
    /// Faces, and the exteriors that wait for them.
    Exchange,
}

impl Bound {
    /// `device` or `exchange`.
    pub fn name(self) -> &'static str {
        match self {
            Bound::Device => "device",
            Bound::Exchange => "exchange",
        }
    }
}

/// The time of a call.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Prediction {
    /// Seconds.
    pub seconds: f64,
    /// Seconds of the same on one process's part without neighbours.
    pub alone: f64,
    /// Seconds of one of its exchanges with nothing else to do.
    pub exchange: f64,
    /// What a hop waits for.
    pub bound: Bound,
}

/// Seconds of an exchange with nothing else to do: of `near` between GPUs of a host; between hosts packing (the same way
/// at most), the time until the host has seen its end and launched what follows, and the network.
fn exchange(machine: &Machine, near: Wire, cluster: &Cluster, ends: [usize; 4], bytes: [f64; 4]) -> f64 {
    let total = |count: &dyn Fn(usize) -> usize| (0..4).map(|mu| count(mu) as f64 * bytes[mu]).sum::<f64>();
    let (here, there) = (total(&|mu| 2 - ends[mu]), total(&|mu| ends[mu]));
    let near_seconds = if here > 0.0 { near.seconds(here) } else { 0.0 };
    let far_seconds =
        if there > 0.0 { near.seconds(there) + machine.round_trip() + cluster.network.seconds(there) } else { 0.0 };
    near_seconds.max(far_seconds)
}

/// The time of a call on a lattice that is cut, of the slowest process. `None` where the lattice is cut and the machine
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

/// The time of a call on each process's part, with nothing beyond its ends: what additive Schwarz does in domains.
pub(super) fn in_domains(operation: &OperationTimes, cut: &Decomposition) -> f64 {
    let part = LocalVolume::new(cut, operation.reach);
    let exteriors: f64 = (0..4).map(|mu| operation.exterior[mu].at(part.exterior[mu])).sum();
    operation.alone.at(part.interior) + operation.hops as f64 * exteriors
}
