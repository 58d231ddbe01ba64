//! Distribution of a lattice over GPUs and hosts: sites near partitioned boundaries, and neighbours on other hosts.
use super::Wire;
use comms::{Direction, ProcessGrid};
use std::collections::BTreeSet;

/// Hosts with GPUs and the network between them. Each GPU has one process. As placed by `mpirun` and `srun`, ranks follow the order of
/// hosts: the first `gpus_per_host` ranks are on the first host.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Cluster {
    /// Number of GPUs on each host.
    pub gpus_per_host: usize,
    /// Latency and bandwidth of the network for each GPU.
    pub network: Wire,
}

impl Cluster {
    /// Default cluster, assumed and not measured: hosts with 8 GPUs, and a 400 Gb/s InfiniBand port for each GPU that accesses its memory
    /// (GPUDirect). 45 GB/s are nine tenths of the port's bandwidth; 3 µs is the latency of a message between GPUs of two hosts through a
    /// switch.
    pub const ASSUMED: Cluster = Cluster { gpus_per_host: 8, network: Wire { latency: 3e-6, bandwidth: 45e9 } };

    /// Whether `gpus` GPUs need more than one host.
    pub fn has_network(&self, gpus: usize) -> bool {
        gpus > self.gpus_per_host
    }
    /// Returns how many of the two neighbours in each direction are on another host. The set has one entry for each distinct combination
    /// among the ranks.
    pub fn far_ends(&self, grid: &ProcessGrid) -> BTreeSet<[usize; 4]> {
        let host = |rank: usize| rank / self.gpus_per_host;
        let far = |rank: usize, mu: usize, way: Direction| host(grid.neighbour(rank, mu, way)) != host(rank);
        let ends = |rank: usize, mu: usize| Direction::BOTH.into_iter().filter(|way| far(rank, mu, *way)).count();
        (0..grid.size()).map(|rank| std::array::from_fn(|mu| ends(rank, mu))).collect()
    }
}

/// A lattice, and the grid of processes that partitions it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Decomposition {
    /// Extents X, Y, Z, T of the whole lattice.
    pub lattice: [usize; 4],
    /// Grid of processes, one for each GPU.
    pub grid: ProcessGrid,
}

impl Decomposition {
    /// Returns the decomposition of a lattice on a single GPU.
    pub fn single(lattice: [usize; 4]) -> Self {
        Decomposition { lattice, grid: ProcessGrid::SINGLE }
    }
    /// Returns the number of GPUs, one for each process.
    pub fn gpus(&self) -> usize {
        self.grid.size()
    }
    /// Returns the extents of the local lattice of each GPU.
    pub fn local(&self) -> [usize; 4] {
        self.grid.local_extents(self.lattice)
    }
    /// Returns the number of sites of the whole lattice.
    pub fn sites(&self) -> f64 {
        self.lattice.iter().product::<usize>() as f64
    }
}

/// Numbers of sites of the local lattice of a process, divided into interior and exterior for hops of `reach` steps (`halo::regions`
/// divides the sites for kernels).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LocalVolume {
    /// Number of all local sites.
    pub sites: f64,
    /// Number of sites whose hops stay in the local lattice.
    pub interior: f64,
    /// Numbers of exterior sites, indexed by μ: their hops leave the local lattice in direction μ and in no direction after μ. A number
    /// is 0 if direction μ is not partitioned.
    pub exterior: [f64; 4],
    /// Numbers of sites of one parity, indexed by μ, in the layers that one neighbour in direction μ needs. A number is 0 if direction μ
    /// is not partitioned.
    pub zone: [f64; 4],
}

/// Fields are padded to a multiple of this number of sites.
const TILE: usize = 32;

impl LocalVolume {
    /// Computes the numbers of sites of a decomposition for hops of `reach` steps.
    pub fn new(cut: &Decomposition, reach: usize) -> Self {
        let local = cut.local();
        let is_cut = |mu: usize| cut.grid.is_partitioned(mu);
        let interior = |mu: usize| if is_cut(mu) { local[mu].saturating_sub(2 * reach) } else { local[mu] };
        let count = |extents: [usize; 4]| extents.iter().product::<usize>() as f64;
        let exterior = |mu: usize| {
            let extent = |nu: usize| match nu.cmp(&mu) {
                std::cmp::Ordering::Less => local[nu],
                std::cmp::Ordering::Equal => local[nu] - interior(nu),
                std::cmp::Ordering::Greater => interior(nu),
            };
            if is_cut(mu) { count(std::array::from_fn(extent)) } else { 0.0 }
        };
        let zone = |mu: usize| {
            let face: usize = (0..4).filter(|nu| *nu != mu).map(|nu| local[nu]).product();
            if is_cut(mu) { ((face / 2 * reach).div_ceil(TILE) * TILE) as f64 } else { 0.0 }
        };
        LocalVolume {
            sites: count(local),
            interior: count(std::array::from_fn(interior)),
            exterior: std::array::from_fn(exterior),
            zone: std::array::from_fn(zone),
        }
    }
}

/// Returns a grid of processes for weak scaling. Prime factors of `processes`, the largest first, go to t, z, y and x in turn, so that
/// every direction is partitioned once before one is partitioned twice.
pub fn weak_grid(processes: usize) -> [usize; 4] {
    let (mut rest, mut factors) = (processes.max(1), Vec::new());
    let mut factor = 2;
    while rest > 1 {
        // If the factor exceeds the square root of the rest, the rest is prime.
        if factor * factor > rest {
            factor = rest;
        }
        while rest.is_multiple_of(factor) {
            factors.push(factor);
            rest /= factor;
        }
        factor += 1;
    }
    let mut grid = [1; 4];
    for (k, factor) in factors.into_iter().rev().enumerate() {
        grid[3 - k % 4] *= factor;
    }
    grid
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cluster(gpus_per_host: usize) -> Cluster {
        Cluster { gpus_per_host, ..Cluster::ASSUMED }
    }

    /// The same by coordinates: ranks numbered with x fastest, hosts filled in their order.
    fn walked(dims: [usize; 4], gpus_per_host: usize) -> BTreeSet<[usize; 4]> {
        let mut kinds = BTreeSet::new();
        let host = |c: [usize; 4]| (c[0] + dims[0] * (c[1] + dims[1] * (c[2] + dims[2] * c[3]))) / gpus_per_host;
        for t in 0..dims[3] {
            for z in 0..dims[2] {
                for y in 0..dims[1] {
                    for x in 0..dims[0] {
                        let here = [x, y, z, t];
                        let mut kind = [0; 4];
                        for (mu, extent) in dims.into_iter().enumerate() {
                            for step in [1, extent - 1] {
                                let mut there = here;
                                there[mu] = (there[mu] + step) % extent;
                                kind[mu] += usize::from(host(there) != host(here));
                            }
                        }
                        kinds.insert(kind);
                    }
                }
            }
        }
        kinds
    }

    #[test]
    fn ends_that_leave_a_host() {
        for dims in [[1, 1, 1, 2], [1, 1, 2, 8], [2, 2, 2, 2], [1, 2, 4, 8], [4, 4, 4, 16], [3, 1, 5, 2], [1, 6, 1, 4]]
        {
            let grid = ProcessGrid::new(dims).unwrap();
            for per_host in [1, 2, 3, 4, 8, 100] {
                assert_eq!(cluster(per_host).far_ends(&grid), walked(dims, per_host), "{dims:?}, {per_host}");
            }
        }
        // 16 GPUs in t, 8 a host: those at the ends of a host have one neighbour on the other one, the rest none.
        let line = ProcessGrid::new([1, 1, 1, 16]).unwrap();
        assert_eq!(cluster(8).far_ends(&line), BTreeSet::from([[0; 4], [0, 0, 0, 1]]));
        // 2 × 2 × 2 on each host, cut twice in t: both neighbours in t are on the other host.
        let cube = ProcessGrid::new([2, 2, 2, 2]).unwrap();
        assert_eq!(cluster(8).far_ends(&cube), BTreeSet::from([[0, 0, 0, 2]]));
        assert!(cluster(8).has_network(16) && !cluster(8).has_network(8));
    }

    #[test]
    fn every_site_is_in_one_part() {
        for dims in [[1, 1, 1, 1], [1, 1, 1, 2], [2, 1, 2, 2], [2, 2, 2, 2]] {
            let grid = ProcessGrid::new(dims).unwrap();
            for (lattice, reach) in [([16, 16, 16, 16], 1), ([16, 8, 24, 32], 3), ([4, 4, 4, 8], 3), ([8, 8, 8, 8], 3)]
            {
                let part = LocalVolume::new(&Decomposition { lattice, grid }, reach);
                assert_eq!(part.interior + part.exterior.iter().sum::<f64>(), part.sites, "{dims:?} {lattice:?}");
                assert_eq!(part.sites * grid.size() as f64, lattice.iter().product::<usize>() as f64);
                for (mu, parts) in dims.into_iter().enumerate() {
                    assert!(parts > 1 || part.exterior[mu] == 0.0);
                    assert_eq!(part.zone[mu] > 0.0, parts > 1);
                }
            }
        }
        let part = LocalVolume::new(
            &Decomposition { lattice: [32, 32, 32, 64], grid: ProcessGrid::new([1, 1, 1, 2]).unwrap() },
            3,
        );
        let face = 32.0 * 32.0 * 32.0;
        assert_eq!((part.interior, part.exterior[3], part.zone[3]), (26.0 * face, 6.0 * face, 1.5 * face));
    }

    #[test]
    fn weak_scaling_cuts_all_directions_in_turn() {
        let grids: Vec<_> = [1, 2, 4, 8, 16, 32, 1024].into_iter().map(weak_grid).collect();
        let expected = [[1; 4], [1, 1, 1, 2], [1, 1, 2, 2], [1, 2, 2, 2], [2; 4], [2, 2, 2, 4], [4, 4, 8, 8]];
        assert_eq!(grids, expected);
        for n in 1..200 {
            assert_eq!(weak_grid(n).iter().product::<usize>(), n);
        }
        assert_eq!([weak_grid(6), weak_grid(7)], [[1, 1, 2, 3], [1, 1, 1, 7]]);
    }
}
