//! The memory of a run, and how the noise vectors of a condensate are split by it.
use super::super::Outcome;
use super::super::batch::{Batches, Needs};
use super::super::device::Device;
use super::super::layout::Layout;
use super::super::world::World;
use super::input::Input;
use ferrite::backend::Cpu;
use ferrite::field::{DeviceColour, ThinGauge};
use ferrite::lattice::Lattice;
use ferrite::rhmc::condensate::condensate_bytes;
use ferrite::rhmc::momenta::MomentumField;
use gpu_kernels::storage::Double;
use tracing::info;

/// What condensates are solved for.
const NOISE_VECTOR: &str = "noise vector";

/// Noise vectors for each condensate.
fn noise_vectors(input: &Input) -> usize {
    if input.groups.is_empty() { 0 } else { input.measure.condensate }
}

/// *Collective.* How the noise vectors of a condensate are split, if the run fits at all: as `before`, where that is known,
/// so that a run that goes on rounds as it would have without a break.
pub fn batches(
    input: &Input,
    before: &[usize],
    layout: &Layout,
    (device, world): (&Device, &World),
) -> Outcome<Batches> {
    let n = noise_vectors(input);
    let needs = |together: usize| memory(input, layout.local(), together);
    let found = input.measure.batch.on_as((device, world), (n, before), needs, ("the run", NOISE_VECTOR))?;
    if found.are_several() {
        info!("condensates: {}", found.describe_as(NOISE_VECTOR));
    }
    Ok(found)
}

/// How the noise vectors of a condensate are split where so much memory is free, and what a process with such a part of the
/// lattice then needs of it.
pub fn plan(input: &Input, local: Lattice, free: usize) -> (Batches, Needs) {
    let n = noise_vectors(input);
    let needs = |together: usize| memory(input, local, together);
    let found = input.measure.batch.within(free, n, needs);
    let needs = needs(found.largest());
    (found, needs)
}

/// Device memory where `together` noise vectors of a condensate are solved at once, with names for what takes it.
fn memory(input: &Input, local: Lattice, together: usize) -> Needs {
    let sites = local.half_volume();
    let thin = 2 * ThinGauge::<Cpu>::bytes_for(sites);
    let improved = input.groups.iter().any(|group| group.operator.paths.is_some());
    let momenta = 2 * MomentumField::<Cpu>::bytes_for(sites);
    let vector = DeviceColour::<Cpu, Double>::bytes_for(sites, 1);
    let mut needs = vec![("links and their copies", 6 * thin), ("momenta", 2 * momenta)];
    if !input.groups.is_empty() {
        // Solutions, directions, and pairs of vectors for all poles, of which there are rarely more.
        let poles = 24;
        let most = input.groups.iter().map(|group| group.pseudofermions).max().unwrap_or(1);
        // Condensates are measured when there is no force.
        let vectors = ((4 * poles + 8) * most * vector).max(condensate_bytes(sites, together));
        needs.push(("vectors of solvers, forces and condensates", vectors));
        needs.push(("links of operators", 4 * thin));
    }
    if improved {
        needs.push(("fat and long links, their gradients and paths", 10 * thin));
    }
    needs
}
