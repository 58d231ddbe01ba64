//! Part of a lattice that one process has, known before anything is allocated.
use crate::lattice::Lattice;
use comms::ProcessGrid;

/// The part of a lattice that one process has, and the grid of processes that have the rest.
#[derive(Clone, Copy, Debug)]
pub struct Part {
    pub(crate) local: Lattice,
    pub(crate) grid: ProcessGrid,
}

impl Part {
    /// Makes the part of `local` extents in a grid of processes.
    pub fn new(local: Lattice, grid: &ProcessGrid) -> Self {
        Part { local, grid: *grid }
    }
    /// Returns the number of sites of one parity.
    pub fn sites(&self) -> usize {
        self.local.half_volume()
    }
    /// Returns the width of the border of [links that are kept once](crate::field::GaugeField) at both ends of each direction that is cut:
    /// 4 sites, for paths that reach three sites far, or 2 where the part has no more.
    pub fn border(&self) -> [u32; 4] {
        let cut = (0..4).filter(|mu| self.grid.is_partitioned(*mu));
        let thinnest = cut.map(|mu| self.local.size()[mu]).min().unwrap_or(4);
        self.width(if thinnest < 4 { 2 } else { 4 })
    }
    /// Returns `width` in the directions that are cut, and 0 in the others.
    pub(crate) fn width(&self, width: u32) -> [u32; 4] {
        std::array::from_fn(|mu| if self.grid.is_partitioned(mu) { width } else { 0 })
    }
    /// Returns the number of sites of one parity with the border of links.
    pub fn bordered_sites(&self) -> usize {
        let border = self.border();
        (0..4).map(|mu| self.local.size()[mu] + 2 * border[mu] as usize).product::<usize>() / 2
    }
}
