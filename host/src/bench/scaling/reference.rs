//! Costs of partitioning a lattice, measured on a few lattices that are partitioned in one direction.
use super::{ExchangeTime, ScalingPlan, TimedOperation, slowest, time, timed};
use crate::backend::Backend;
use crate::domain::Transport;
use crate::domain::{Domain, Result};
use crate::field::{DeviceField, FieldShape};
use crate::halo::{Hop, HopBoundary, hop, zone_bytes};
use crate::lattice::Lattice;
use crate::network::Network;
use crate::operators::Definition;
use comms::ProcessGrid;
use gpu_kernels::Precision;
use std::sync::Arc;
use tracing::debug;

/// Local lattice of a measurement, and the direction that is partitioned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReferenceLattice {
    /// Partitioned direction μ: 0 to 3 for x to t.
    pub direction: usize,
    /// Extents of the part of each process.
    pub local: [usize; 4],
}

/// Time of a call of one operation in seconds, for the slowest process.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct CutSeconds {
    /// Seconds on the local lattice alone, without neighbours.
    pub alone: f64,
    /// Seconds on the partitioned lattice, with the interior computed during the exchange.
    pub overlapped: f64,
    /// Seconds on the partitioned lattice, with the interior computed after the exchange.
    pub in_turn: f64,
}

/// Times of an operator on a lattice that is partitioned in one direction, with the usual transport of faces.
#[derive(Clone, Debug, PartialEq)]
pub struct ReferenceTimes {
    /// Partitioned direction μ: 0 to 3 for x to t.
    pub direction: usize,
    /// Extents of the whole lattice.
    pub lattice: [usize; 4],
    /// Process grid of the partitioned lattice.
    pub grid: ProcessGrid,
    /// Times of each operation, in the order of [`ScalingTimes::operations`](super::ScalingTimes::operations).
    pub operations: Vec<CutSeconds>,
}

/// Returns the local lattices on which costs of partitioning are measured, each with its partitioned direction. There are two lattices for
/// t, a small one and one with larger faces than `local`, and one lattice for each other direction. A scaling model interpolates between
/// the times on these lattices, and extrapolates beyond them.
pub fn reference_lattices(local: Lattice, reach: usize) -> Vec<ReferenceLattice> {
    let local = local.size();
    // A lattice that is thin along μ has large faces for its volume. With hops of several steps, it must be thick enough to have an
    // interior.
    let along = |mu: usize| if reach == 1 { even(local[mu] / 2) } else { local[mu].max(4) };
    let across = |mu: usize, numerator: usize| {
        move |nu: usize| if nu == mu { along(mu) } else { even(local[nu] * numerator / 2).max(4) }
    };
    let small = std::array::from_fn(|nu| if nu == 3 { local[3].max(4) } else { even(local[nu] / 2) });
    let mut all = vec![(3, small), (3, std::array::from_fn(across(3, 3)))];
    all.extend([2, 1, 0].map(|mu| (mu, std::array::from_fn(across(mu, 2)))));
    all.into_iter().map(|(direction, local)| ReferenceLattice { direction, local }).collect()
}

/// Returns the largest even number up to `n`, but at least 4.
fn even(n: usize) -> usize {
    (n / 2 * 2).max(4)
}

/// A lattice that is partitioned among all processes in one direction.
pub(super) struct Reference {
    pub direction: usize,
    local: Lattice,
    global: Lattice,
    grid: ProcessGrid,
    backend: Arc<dyn Backend>,
    network: Arc<dyn Network>,
}

impl Reference {
    pub fn new(backend: &dyn Backend, network: &Arc<dyn Network>, reference: ReferenceLattice) -> Result<Self> {
        let ReferenceLattice { direction, local } = reference;
        let mut dims = [1; 4];
        dims[direction] = network.size();
        let (grid, network) = (ProcessGrid::new(dims)?, Arc::clone(network));
        let global = Lattice::new(std::array::from_fn(|nu| local[nu] * dims[nu]))?;
        Ok(Reference { direction, local: Lattice::new(local)?, global, grid, backend: backend.shared(), network })
    }
    fn domain(&self, transport: Transport, overlap: bool) -> Result<Domain> {
        let network = Arc::clone(&self.network);
        Domain::with_transport(self.backend.clone(), self.global, self.grid, network, transport, overlap)
    }
    fn timed(&self, plan: &ScalingPlan, overlap: bool) -> Result<Vec<TimedOperation>> {
        let domain = self.domain(plan.transport, overlap)?;
        let times = timed(&domain, plan)?;
        domain.release()?;
        Ok(times)
    }
    /// *Collective.* Measures the times of the operator on the local lattice alone and on the partitioned lattice.
    pub fn times(&self, plan: &ScalingPlan) -> Result<ReferenceTimes> {
        let direction = self.direction;
        debug!(
            "timing kernels with {} partitioned among {} processes, each with {}",
            ["x", "y", "z", "t"][direction],
            self.grid.size(),
            self.local
        );
        let alone = slowest(&*self.network, timed(&Domain::single(self.backend.clone(), self.local)?, plan)?)?;
        let [overlapped, in_turn] = [self.timed(plan, true)?, self.timed(plan, false)?];
        let of_operation = |((alone, overlapped), in_turn): ((&TimedOperation, &TimedOperation), &TimedOperation)| {
            CutSeconds { alone: alone.1, overlapped: overlapped.1, in_turn: in_turn.1 }
        };
        let operations = alone.iter().zip(&overlapped).zip(&in_turn).map(of_operation).collect();
        Ok(ReferenceTimes { direction, lattice: self.global.size(), grid: self.grid, operations })
    }
    /// *Collective.* Measures the time of an exchange of faces in the partitioned direction, without other work.
    pub fn exchange(
        &self,
        definition: &Definition,
        transport: Transport,
        precision: Precision,
    ) -> Result<ExchangeTime> {
        let domain = self.domain(transport, true)?;
        let field = DeviceField::zero(&domain, FieldShape::new(definition.kind, precision, 1))?;
        let way = Hop {
            steps: definition.steps() as u32,
            parity: 0,
            dagger: false,
            boundary: HopBoundary::Neighbours,
            blocks: 1,
        };
        let seconds = time(&domain, || hop(&field, way, &mut |_, _| Ok(()), &mut |_| Ok(())))?;
        domain.backend().synchronize()?;
        domain.release()?;
        Ok(ExchangeTime {
            direction: self.direction,
            lattice: self.global.size(),
            grid: self.grid,
            reach: definition.steps(),
            zone_bytes: zone_bytes(definition.kind, precision),
            seconds,
        })
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
            assert_eq!(all.iter().map(|reference| reference.direction).collect::<Vec<_>>(), [3, 3, 2, 1, 0]);
            for ReferenceLattice { direction, local } in &all {
                for processes in [2, 3, 8] {
                    let mut dims = [1; 4];
                    dims[*direction] = processes;
                    let global: [usize; 4] = std::array::from_fn(|nu| local[nu] * dims[nu]);
                    ProcessGrid::new(dims).unwrap().check(global, reach).unwrap();
                }
            }
            // Those in t have different faces. If there is room, neither is the part of weak scaling.
            let face = |k: usize| all[k].local[..3].iter().product::<usize>();
            assert!(face(0) < face(1), "{all:?}");
            assert!(local == [4, 4, 4, 8] || all[..2].iter().all(|reference| reference.local != local), "{all:?}");
        }
        let [small, large, _, _, x] = reference_lattices(Lattice::new([32; 4]).unwrap(), 1)[..] else { panic!() };
        assert_eq!([small.local, large.local, x.local], [[16, 16, 16, 32], [48, 48, 48, 16], [16, 32, 32, 32]]);
    }
}
