//! Costs of partitioned directions, from times on a few lattices that are partitioned in one direction.
use super::{Decomposition, LocalVolume, Machine, Polyline};

/// Times of a call of one operation on a lattice with and without partitioned direction, in seconds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct OperationCutTimes {
    /// Time on the local lattice of one process without neighbours, in seconds.
    pub alone: f64,
    /// Time on the partitioned lattice if the interior is computed while faces travel, in seconds.
    pub overlapped: f64,
    /// Time on the partitioned lattice if the interior is computed after faces have travelled, in seconds.
    pub in_turn: f64,
}

/// Times of all operations on a lattice that is partitioned in one direction.
#[derive(Clone, Debug, PartialEq)]
pub struct CutTimes {
    /// Partitioned direction μ.
    pub direction: usize,
    /// The lattice, and the grid of processes that partitions it.
    pub cut: Decomposition,
    /// Times of each operation, in the order of the machine's operations.
    pub operations: Vec<OperationCutTimes>,
}

/// Returns the number of bytes that a process sends to its two neighbours in a partitioned direction, for hops of `reach` steps. Each
/// site of a message has `zone_bytes` bytes.
pub fn exchange_bytes(cut: &Decomposition, direction: usize, reach: usize, zone_bytes: usize) -> f64 {
    2.0 * LocalVolume::new(cut, reach).zone[direction] * zone_bytes as f64
}

impl Machine {
    /// Sets the costs of partitioned directions of each operation from measurements with the usual transport. Before the call, the
    /// machine must have the times of this transport and of the operations without neighbours.
    ///
    /// # Panics
    /// If the machine has no exchange, or if times of an operation are missing.
    pub fn set_costs_of_cuts(&mut self, measured: &[CutTimes]) {
        let mut costs = vec![CutCosts::default(); self.operations.len()];
        for times in measured {
            self.add_costs(times, &mut costs);
        }
        for (operation, costs) in self.operations.iter_mut().zip(costs) {
            [operation.beside, operation.exterior] = costs.lines();
        }
    }
    fn add_costs(&self, times: &CutTimes, costs: &mut [CutCosts]) {
        let (mu, wire) = (times.direction, self.exchanges[0].wire);
        for (k, operation) in self.operations.iter().enumerate() {
            let part = LocalVolume::new(&times.cut, operation.reach);
            let hops = operation.hops as f64;
            // Sums take equal times in all three calls, except for the sum over processes.
            let sums = operation.sums as f64 * self.sum_step * f64::from(self.processes.next_power_of_two().ilog2());
            let OperationCutTimes { alone, overlapped, in_turn } = times.operations[k];
            let [alone, overlapped, in_turn] = [alone, overlapped - sums, in_turn - sums].map(|seconds| seconds / hops);
            let exchange = wire.seconds(exchange_bytes(&times.cut, mu, operation.reach, operation.zone_bytes));
            let interior = alone * operation.alone.at(part.interior) / operation.alone.at(part.sites);
            let exterior = (in_turn - exchange - interior).max(0.0);
            costs[k].exterior[mu].push((part.exterior[mu], exterior));
            // The additional cost of overlap can be measured only if the message arrives in time; otherwise the exchange
            // determines the time.
            if alone >= exchange + exterior {
                costs[k].beside[mu].push((part.exterior[mu], (overlapped - alone).max(0.0)));
            }
        }
    }
}

/// Costs of partitioned directions for one operation, indexed by μ: points of the number of exterior sites and the time in seconds.
#[derive(Clone, Default)]
struct CutCosts {
    beside: [Vec<(f64, f64)>; 4],
    exterior: [Vec<(f64, f64)>; 4],
}

impl CutCosts {
    /// Returns lines for the work beside the interior and for exteriors, both starting at 0 sites. The work beside the interior starts at
    /// 0 seconds. Exteriors start at the time of the smallest exterior measured in any direction: that of a launch that waits for memory.
    fn lines(self) -> [[Polyline; 4]; 2] {
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
    fn costs_begin_with_nothing_and_with_a_launch() {
        let mut costs = CutCosts::default();
        costs.beside[3] = vec![(200.0, 2e-6), (100.0, 1e-6)];
        costs.exterior[3] = vec![(200.0, 6e-6), (100.0, 5e-6)];
        costs.exterior[0] = vec![(200.0, 2e-5)];
        let [beside, exterior] = costs.lines();
        assert_eq!([beside[3].at(50.0), beside[3].at(100.0), beside[0].at(100.0)], [5e-7, 1e-6, 0.0]);
        assert_eq!([exterior[3].at(1.0), exterior[3].at(100.0), exterior[1].at(1000.0)], [5e-6; 3]);
        assert!((exterior[0].at(100.0) - 1.25e-5).abs() < 1e-20);
    }
}
