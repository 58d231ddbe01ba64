//! Local lattice of a process in a grid, known before anything is allocated.
use crate::lattice::Lattice;
use comms::ProcessGrid;

/// Local lattice of one process, and the grid that partitions the whole lattice.
#[derive(Clone, Copy, Debug)]
pub struct Part {
    pub(crate) local: Lattice,
    pub(crate) grid: ProcessGrid,
}

impl Part {
    /// Makes the part of a process with the given local lattice and process grid.
    pub fn new(local: Lattice, grid: &ProcessGrid) -> Self {
        Part { local, grid: *grid }
    }
    /// Returns the number of local sites of one parity.
    pub fn sites(&self) -> usize {
        self.local.half_volume()
    }
    /// Returns the width of the border of a [`GaugeField`](crate::field::GaugeField) at both ends of each partitioned direction. It is 4
    /// sites, which suffices for paths of three steps, or 2 sites if a partitioned extent is below 4.
    pub fn border(&self) -> [u32; 4] {
        let cut = (0..4).filter(|mu| self.grid.is_partitioned(*mu));
        let thinnest = cut.map(|mu| self.local.size()[mu]).min().unwrap_or(4);
        self.width(if thinnest < 4 { 2 } else { 4 })
    }
    /// Returns `width` for each partitioned direction, and 0 for the others.
    pub(crate) fn width(&self, width: u32) -> [u32; 4] {
        std::array::from_fn(|mu| if self.grid.is_partitioned(mu) { width } else { 0 })
    }
    /// Returns the number of local sites of one parity, including the border of links.
    pub fn bordered_sites(&self) -> usize {
        let border = self.border();
        (0..4).map(|mu| self.local.size()[mu] + 2 * border[mu] as usize).product::<usize>() / 2
    }
}
