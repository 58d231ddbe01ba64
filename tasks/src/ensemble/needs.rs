//! Memory needs of a run, and the batches of noise vectors that fit in memory.
use super::input::EnsembleInput;
use crate::batch::{BatchTask, Batches, Needs};
use crate::communicator::RunCommunicator;
use crate::device::Device;
use crate::layout::{Cut, Layout};
use crate::{Failure, Outcome};
use ferrite::domain::Part;
use ferrite::observables::memory::EnsembleProperties;
use tracing::info;

/// Noun for the right-hand sides of condensates.
const NOISE_VECTOR: &str = "noise vector";

/// Returns the number of noise vectors for each condensate; 0 without staggered quarks.
fn noise_vectors(input: &EnsembleInput) -> usize {
    if input.staggered().next().is_none() { 0 } else { input.measure.condensate }
}

/// Fails if the aggregates of a multigrid solver do not fit the local lattice.
pub fn expect_fit(input: &EnsembleInput, cut: Cut) -> Outcome {
    for group in &input.groups {
        if let Some(params) = group.needs().multigrid {
            let refused = |why| Failure::refused(format!("{}: {why}", group.name)).shared();
            params.aggregates(cut.local).map_err(refused)?;
        }
    }
    Ok(())
}

/// *Collective.* Splits the noise vectors of a condensate into batches. Fails if the run does not fit in memory. A resumed run uses the
/// batches `before`, so that its results have the same bits as without the interruption.
pub fn batches(
    input: &EnsembleInput,
    before: &[usize],
    layout: &Layout,
    device: &Device,
    comm: &RunCommunicator,
) -> Outcome<Batches> {
    let n = noise_vectors(input);
    let needs = |together: usize| memory(input, layout.cut(), together);
    let task = BatchTask { device, comm, name: "the run", noun: NOISE_VECTOR };
    let found = task.split_as(input.measure.batch, n, before, needs)?;
    if found.are_several() {
        info!("condensates: {}", found.describe_as(NOISE_VECTOR));
    }
    Ok(found)
}

/// Splits the noise vectors of a condensate into batches for `free` bytes of memory. Also returns the memory needs of a process with the
/// local lattice of `cut`.
pub fn plan(input: &EnsembleInput, cut: Cut, free: usize) -> (Batches, Needs) {
    let n = noise_vectors(input);
    let needs = |together: usize| memory(input, cut, together);
    let found = input.measure.batch.within(free, n, needs);
    let needs = needs(found.largest());
    (found, needs)
}

/// Returns the device memory, by name, that a run needs if `together` noise vectors of a condensate are solved at once.
fn memory(input: &EnsembleInput, cut: Cut, together: usize) -> Needs {
    let needs: Vec<_> = input.groups.iter().map(|group| group.needs()).collect();
    let single = [input.single_links, input.solvers[0].single];
    let ensemble = EnsembleProperties::of(&needs, single, together, input.measure.identities > 0);
    ensemble.memory(Part::new(cut.local, &cut.grid))
}
