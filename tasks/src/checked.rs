//! Inputs that are checked before a run: device and partition of the lattice, and whether memory suffices.
use crate::Outcome;
use crate::batch::{Batches, Needs};
use crate::device::Device;
use crate::keys::EVERY_INPUT;
use crate::layout::{Cut, LayoutChoice};
use ferrite::backend::Memory;
use ferrite::lattice::Lattice;
use ferrite_inputs::Input;

/// Resources of an input that was checked before its run: device, partition of the lattice, batches and memory.
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
    /// Smallest number of processes, each with such a device, whose memory suffices; `None` if more than [`MOST_PROCESSES`] are needed.
    pub enough: Option<usize>,
}

/// Largest number of processes that is tried in the search for a sufficient number.
pub const MOST_PROCESSES: usize = 1024;

impl Checked {
    /// Determines the memory needs of a run and the smallest sufficient number of processes. `split` returns batches and memory needs for a
    /// part of the lattice and a number of free bytes; the batches fit if any do. `plan` partitions the lattice among a number of
    /// processes, independently of a requested grid.
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

/// Returns a choice of the layout without a requested grid.
pub fn any_layout() -> LayoutChoice {
    LayoutChoice::of(&mut Input::new(&EVERY_INPUT))
}

/// Returns the sum of memory needs in bytes.
pub fn sum(needs: &Needs) -> usize {
    needs.iter().map(|(_, bytes)| bytes).sum()
}
