//! What a cut costs, from a few lattices that are cut in one direction.
use super::super::{Machine, Part, Polyline};
use super::{Plan, Timed, slowest, time, timed};
use crate::backend::Backend;
use crate::dirac::Definition;
use crate::domain::{Domain, Result};
use crate::field::DeviceField;
use crate::halo::{Beyond, Hop, Network, Transport, hop, zone_bytes};
use crate::lattice::Lattice;
use comms::ProcessGrid;
use gpu_kernels::Precision;
use std::sync::Arc;
use tracing::debug;

/// Local lattices on which costs of a cut are measured, each with the direction that is cut: t on a small one and on one
/// with larger faces than those of `local`, the others on one. Between and beyond them the model has to do by itself.
pub fn reference_lattices(local: Lattice, reach: usize) -> Vec<(usize, [usize; 4])> {
    let local = local.size();
    // Thin lattices have large faces for their volume. Hops that reach far need an interior.
    let along = |mu: usize| if reach == 1 { even(local[mu] / 2) } else { local[mu].max(4) };
    let across = |mu: usize, numerator: usize| {
        move |nu: usize| if nu == mu { along(mu) } else { even(local[nu] * numerator / 2).max(4) }
    };
    let small = std::array::from_fn(|nu| if nu == 3 { local[3].max(4) } else { even(local[nu] / 2) });
    let mut all = vec![(3, small), (3, std::array::from_fn(across(3, 3)))];
    all.extend([2, 1, 0].map(|mu| (mu, std::array::from_fn(across(mu, 2)))));
    all
}

/// The largest even number that is not above n, but 4 at least.
fn even(n: usize) -> usize {
    (n / 2 * 2).max(4)
}

/// A local lattice, cut in one direction over all processes.
pub(super) struct Reference {
    pub mu: usize,
    local: Lattice,
    global: Lattice,
    grid: ProcessGrid,
    backend: Arc<dyn Backend>,
    network: Arc<dyn Network>,
}

impl Reference {
    pub fn new(backend: &dyn Backend, network: &Arc<dyn Network>, (mu, local): (usize, [usize; 4])) -> Result<Self> {
        let mut dims = [1; 4];
        dims[mu] = network.size();
        let (grid, network) = (ProcessGrid::new(dims)?, Arc::clone(network));
        let global = Lattice::new(std::array::from_fn(|nu| local[nu] * dims[nu]))?;
        Ok(Reference { mu, local: Lattice::new(local)?, global, grid, backend: backend.shared(), network })
    }
    fn domain(&self, transport: Transport, overlap: bool) -> Result<Domain> {
        let network = Arc::clone(&self.network);
        Domain::with_transport(self.backend.clone(), self.global, self.grid, network, transport, overlap)
    }
    fn timed(&self, plan: &Plan, overlap: bool) -> Result<Vec<Timed>> {
        let domain = self.domain(plan.transport, overlap)?;
        let times = timed(&domain, plan)?;
        domain.let_go()?;
        Ok(times)
    }
    fn part(&self, reach: usize) -> Part {
        Part::new(self.global.size(), &self.grid, reach)
    }
    /// *Collective.* Adds what this cut costs each operation of the machine.
    pub fn costs(&self, plan: &Plan, machine: &Machine, costs: &mut [Costs]) -> Result {
        debug!("with {} cut {} times, {} each", ["x", "y", "z", "t"][self.mu], self.grid.size(), self.local);
        let part = self.part(plan.definition.steps());
        let alone = slowest(&*self.network, timed(&Domain::single(self.backend.clone(), self.local)?, plan)?)?;
        let [overlapped, in_turn] = [self.timed(plan, true)?, self.timed(plan, false)?];
        let wire = machine.exchanges[0].wire;
        for (k, operation) in machine.operations.iter().enumerate() {
            let hops = operation.hops as f64;
            // Sums are the same in all three but for the other processes' part.
            let sums =
                operation.sums as f64 * machine.sum_step * f64::from(machine.processes.next_power_of_two().ilog2());
            let [alone, overlapped, in_turn] =
                [alone[k].1, overlapped[k].1 - sums, in_turn[k].1 - sums].map(|seconds| seconds / hops);
            let exchange = wire.seconds(2.0 * part.zone[self.mu] * operation.zone_bytes as f64);
            let interior = alone * operation.alone.at(part.interior) / operation.alone.at(part.sites);
            let exterior = (in_turn - exchange - interior).max(0.0);
            costs[k].exterior[self.mu].push((part.exterior[self.mu], exterior));
            // Where the message is late this says nothing of what runs beside the interior.
            if alone >= exchange + exterior {
                costs[k].beside[self.mu].push((part.exterior[self.mu], (overlapped - alone).max(0.0)));
            }
        }
        Ok(())
    }
    /// Bytes that a process sends, and seconds of an exchange with nothing else to do.
    pub fn exchange(&self, definition: &Definition, transport: Transport, precision: Precision) -> Result<(f64, f64)> {
        let domain = self.domain(transport, true)?;
        let field = DeviceField::zero(&domain, definition.kind, precision, 1)?;
        let way =
            Hop { steps: definition.steps() as u32, parity: 0, dagger: false, beyond: Beyond::Neighbours, sides: 1 };
        let seconds = time(&domain, || hop(&field, way, &mut |_, _| Ok(()), &mut |_| Ok(())))?;
        domain.backend().synchronize()?;
        domain.let_go()?;
        let bytes = 2.0 * self.part(definition.steps()).zone[self.mu] * zone_bytes(definition.kind, precision) as f64;
        Ok((bytes, seconds))
    }
}

/// What a cut costs one operation, `[μ]`: seconds against sites of the exterior.
#[derive(Clone, Default)]
pub(super) struct Costs {
    beside: [Vec<(f64, f64)>; 4],
    exterior: [Vec<(f64, f64)>; 4],
}

impl Costs {
    /// Lines from 0 sites on: for what runs beside the interior from nothing; for exteriors, each a launch that waits for
    /// memory, from the time of the smallest one that was measured in any direction.
    pub fn lines(self) -> [[Polyline; 4]; 2] {
        let line = |points: Vec<(f64, f64)>| Polyline::new(points).expect("times are not below 0, sizes differ");
        let floor = self.exterior.iter().flatten().min_by(|a, b| a.0.total_cmp(&b.0)).map_or(0.0, |point| point.1);
        let from = |start: f64| {
            move |mut points: Vec<(f64, f64)>| {
                points.push((0.0, start));
                points.sort_by(|a, b| a.0.total_cmp(&b.0));
                points.dedup_by(|a, b| a.0 == b.0);
                line(points)
            }
        };
        [self.beside.map(from(0.0)), self.exterior.map(from(floor))]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn references_can_be_cut() {
        for (local, reach) in [([32; 4], 1), ([32; 4], 3), ([24, 24, 24, 32], 1), ([4, 4, 4, 8], 3), ([10, 6, 4, 4], 1)]
        {
            let all = reference_lattices(Lattice::new(local).unwrap(), reach);
            assert_eq!(all.iter().map(|(mu, _)| *mu).collect::<Vec<_>>(), [3, 3, 2, 1, 0]);
            for (mu, size) in &all {
                for processes in [2, 3, 8] {
                    let mut dims = [1; 4];
                    dims[*mu] = processes;
                    let global: [usize; 4] = std::array::from_fn(|nu| size[nu] * dims[nu]);
                    ProcessGrid::new(dims).unwrap().check(global, reach).unwrap();
                }
            }
            // Those in t have different faces. Where there is room neither is the part that weak scaling looks at.
            let face = |k: usize| all[k].1[..3].iter().product::<usize>();
            assert!(face(0) < face(1), "{all:?}");
            assert!(local == [4, 4, 4, 8] || all[..2].iter().all(|(_, size)| *size != local), "{all:?}");
        }
        let [small, large, _, _, x] = reference_lattices(Lattice::new([32; 4]).unwrap(), 1)[..] else { panic!() };
        assert_eq!([small.1, large.1, x.1], [[16, 16, 16, 32], [48, 48, 48, 16], [16, 32, 32, 32]]);
    }

    #[test]
    fn costs_begin_with_nothing_and_with_a_launch() {
        let mut costs = Costs::default();
        costs.beside[3] = vec![(200.0, 2e-6), (100.0, 1e-6)];
        costs.exterior[3] = vec![(200.0, 6e-6), (100.0, 5e-6)];
        costs.exterior[0] = vec![(200.0, 2e-5)];
        let [beside, exterior] = costs.lines();
        assert_eq!([beside[3].at(50.0), beside[3].at(100.0), beside[0].at(100.0)], [5e-7, 1e-6, 0.0]);
        assert_eq!([exterior[3].at(1.0), exterior[3].at(100.0), exterior[1].at(1000.0)], [5e-6; 3]);
        assert!((exterior[0].at(100.0) - 1.25e-5).abs() < 1e-20);
    }
}
