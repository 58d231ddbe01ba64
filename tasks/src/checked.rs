//! Inputs that are checked before a run: device and partition of the lattice, and whether memory suffices.
use crate::Outcome;
use crate::batch::{Batches, Needs};
use crate::device::Device;
use crate::keys::EVERY_INPUT;
use crate::layout::{Cut, LayoutChoice};
use ferrite::backend::Memory;
use ferrite::lattice::Lattice;
use ferrite_inputs::Input;

/// Resources of a run whose input was checked without starting it: device, partition of the lattice, batches and memory.
pub struct Checked {
    /// Device that would compute the run.
    pub device: Device,
    /// The whole lattice.
    pub lattice: Lattice,
    /// Partition of the lattice among processes.
    pub cut: Cut,
    /// Batches of right-hand sides.
    pub batches: Batches,
    /// Memory needs on the device of each process, by name.
    pub needs: Needs,
    /// Free and total memory of the device before the run.
    pub memory: Memory,
    /// Smallest number of processes whose memory suffices if each has a device like `device`; `None` if more than [`MOST_PROCESSES`] are
    /// needed.
    pub enough: Option<usize>,
}

/// Largest number of processes that the search for a sufficient number tries.
pub const MOST_PROCESSES: usize = 1024;

impl Checked {
    /// Determines the memory needs of a run and the smallest sufficient number of processes. `split` takes a partition of the lattice and a
    /// number of free bytes; it returns the batches, and the memory needs of the largest one. `plan` partitions the lattice among a number
    /// of processes and ignores a requested grid.
    pub fn new(
        device: Device,
        lattice: Lattice,
        cut: Cut,
        plan: impl Fn(usize) -> Outcome<Cut>,
        split: impl Fn(Cut, usize) -> (Batches, Needs),
    ) -> Outcome<Self> {
        let memory = device.memory()?;
        let (batches, needs) = split(cut, memory.free);
        let enough = (1..=MOST_PROCESSES)
            .find(|&processes| plan(processes).is_ok_and(|cut| sum(&split(cut, memory.free).1) <= memory.free));
        Ok(Checked { device, lattice, cut, batches, needs, memory, enough })
    }
}

/// Returns a choice of the layout that leaves the process grid, the transport and the overlap to the program.
pub fn any_layout() -> LayoutChoice {
    LayoutChoice::of(&mut Input::new(&EVERY_INPUT))
}

/// Returns the sum of memory needs in bytes.
pub fn sum(needs: &Needs) -> usize {
    needs.iter().map(|(_, bytes)| bytes).sum()
}
