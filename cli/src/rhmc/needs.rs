//! The memory of a run, and how the noise vectors of a condensate are split by it.
use super::super::batch::{BatchTask, Batches, Needs};
use super::super::communicator::RunCommunicator;
use super::super::device::Device;
use super::super::layout::{Cut, Layout};
use super::super::{Failure, Outcome};
use super::input::{EnsembleInput, QuarkGroup};
use super::wilson::WilsonGroup;
use ferrite::domain::Part;
use ferrite::hmc::fermions::QuarkSmearing;
use ferrite::observables::memory::{Ensemble, WilsonVectors};
use tracing::info;

/// What condensates are solved for.
const NOISE_VECTOR: &str = "noise vector";

/// Noise vectors for each condensate.
fn noise_vectors(input: &EnsembleInput) -> usize {
    if input.groups.is_empty() { 0 } else { input.measure.condensate }
}

/// Refuses multigrid that does not go with how the lattice is cut.
pub fn expect_fit(input: &EnsembleInput, cut: Cut) -> Outcome {
    for group in &input.wilson {
        if let Some(params) = group.multigrid() {
            let refused = |why| Failure::refused(format!("{}: {why}", group.name)).shared();
            params.aggregates(cut.local).map_err(refused)?;
        }
    }
    Ok(())
}

/// *Collective.* How the noise vectors of a condensate are split, if the run fits at all: as `before`, where that is known,
/// so that a resumed run rounds as it would have without a break.
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

/// How the noise vectors of a condensate are split where so much memory is free, and what a process with such a part of the
/// lattice then needs of it.
pub fn plan(input: &EnsembleInput, cut: Cut, free: usize) -> (Batches, Needs) {
    let n = noise_vectors(input);
    let needs = |together: usize| memory(input, cut, together);
    let found = input.measure.batch.within(free, n, needs);
    let needs = needs(found.largest());
    (found, needs)
}

/// Device memory where `together` noise vectors of a condensate are solved at once, with names for what takes it.
fn memory(input: &EnsembleInput, cut: Cut, together: usize) -> Needs {
    let mut operators = Vec::new();
    for group in &input.groups {
        if !operators.contains(&group.operator) {
            operators.push(group.operator);
        }
    }
    let mut stout = Vec::new();
    for smearing in input.groups.iter().filter_map(QuarkGroup::stout).chain(input.wilson.iter().filter_map(|w| w.stout))
    {
        if !stout.contains(&smearing) {
            stout.push(smearing);
        }
    }
    let ensemble = Ensemble {
        single_links: input.single_links,
        pseudofermions: input.groups.iter().map(|group| group.pseudofermions).max().unwrap_or(0),
        improved: operators.iter().any(|operator| operator.smearing.is_improved()),
        hisq: operators.iter().any(|operator| matches!(operator.smearing, QuarkSmearing::Hisq { .. })),
        operators: operators.len(),
        noise: together,
        identities: input.measure.identities > 0,
        stout_levels: stout.iter().map(|smearing| smearing.levels).sum(),
        wilson: (!input.wilson.is_empty()).then(|| WilsonVectors {
            pseudofermions: input.wilson.iter().map(WilsonGroup::pseudofermions).sum(),
            rational: input.wilson.iter().map(WilsonGroup::rational).max().unwrap_or(0),
            exact: input.wilson.iter().any(|group| group.rational() == 0),
            single: input.solvers[0].single,
            has_blocks: input.wilson.iter().any(WilsonGroup::has_blocks),
            exponential: input.wilson.iter().any(WilsonGroup::is_exponential),
            guesses: input.wilson.iter().map(WilsonGroup::guesses).sum(),
            multigrid: input.wilson.iter().filter_map(WilsonGroup::multigrid).collect(),
        }),
    };
    ensemble.memory(Part::new(cut.local, &cut.grid))
}
