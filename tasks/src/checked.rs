//! Inputs that are checked before a run: where they would be computed, and whether memory suffices.
use crate::Outcome;
use crate::batch::{Batches, Needs};
use crate::device::Device;
use crate::keys::EVERY_INPUT;
use crate::layout::{Cut, LayoutChoice};
use ferrite::backend::Memory;
use ferrite::lattice::Lattice;
use ferrite_inputs::Input;

/// An input that was checked before its run.
pub struct Checked {
    /// Device on which it is to be computed.
    pub device: Device,
    /// The lattice.
    pub lattice: Lattice,
    /// Cut of the lattice over processes.
    pub cut: Cut,
    /// Batches of right-hand sides.
    pub batches: Batches,
    /// Memory of the device of each process, with names for what takes it.
    pub needs: Needs,
    /// Memory of the device before anything was done with it.
    pub memory: Memory,
    /// The smallest number of processes, each with such a device, that it fits on.
    pub enough: Option<usize>,
}

/// Largest number of processes that is tried.
pub const MOST_PROCESSES: usize = 1024;

impl Checked {
    /// Determines the memory needs of a run and the smallest sufficient number of processes. `split` returns the batches of right-hand
    /// sides, which fit if any do, and the memory needs for a part of the lattice and a number of free bytes. The number of processes
    /// follows from `plan`, which cuts the lattice for a number of processes by itself, whatever grid was requested.
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

/// Returns a layout without a requested grid.
pub fn any_layout() -> LayoutChoice {
    LayoutChoice::of(&mut Input::new(&EVERY_INPUT))
}

/// Returns the sum of these sizes in bytes.
pub fn sum(needs: &Needs) -> usize {
    needs.iter().map(|(_, bytes)| bytes).sum()
}
