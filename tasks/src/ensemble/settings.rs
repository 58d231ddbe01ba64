//! Settings of a run, which the first line after each start of the program records.
use super::input::{EnsembleInput, StartLinks};
use crate::batch::Batches;
use crate::layout::Layout;
use ferrite::hmc::fermions::ShiftedSolver;
use ferrite::hmc::integrator::{Scheme, Unitarise};
use ferrite::hmc::quarks::QuarkGroup;
use ferrite::hmc::trajectory::LevelPlan;
use ferrite_records::ensemble::{
    AnisotropySettings, GaugeSettings, LevelSettings, MeasurementSettings, PhaseSolver, PhaseSolvers, RunSettings,
};
use ferrite_records::read::read;

/// Returns the name of the links from which an ensemble starts: `cold`, `hot` or the path of a file.
pub fn start(input: &EnsembleInput) -> String {
    match &input.start {
        StartLinks::Cold => "cold".into(),
        StartLinks::Hot => "hot".into(),
        StartLinks::File(path) => path.display().to_string(),
    }
}

/// Returns the settings of a run for its lines: those that determine the distribution of the links, the backend, the
/// device and the processes.
pub fn settings(
    input: &EnsembleInput,
    [backend, device]: &[String; 2],
    layout: &Layout,
    batches: &Batches,
) -> RunSettings {
    let plan = &input.plan;
    let quarks = |group: &QuarkGroup| read(&group.describe()).expect("an object of the keys of quarks");
    let [dynamics, action] = [&input.solvers[0], &input.solvers[1]].map(solver);
    RunSettings {
        version: env!("CARGO_PKG_VERSION").into(),
        lattice: Some(input.lattice.size()),
        trajectories: Some(input.trajectories.into()),
        seed: Some(plan.seed),
        start: start(input),
        input: input.keys.clone(),
        thermalise: plan.metropolis_from.saturating_sub(1),
        gauge: GaugeSettings {
            action: input.gauge_action.clone(),
            beta: plan.gauge.beta,
            plaquette: Some(plan.gauge.plaquette),
            rectangle: Some(plan.gauge.rectangle),
            parallelogram: Some(plan.gauge.parallelogram),
            anisotropy: Some(AnisotropySettings {
                plaquettes: plan.gauge.anisotropy.plaquettes,
                rectangles: plan.gauge.anisotropy.rectangles,
            }),
        },
        quarks: input.groups.iter().map(quarks).collect(),
        length: Some(plan.length),
        friction: plan.friction,
        levels: plan.levels.iter().map(level).collect(),
        links: precision(input.single_links).into(),
        gauge_force: precision(input.plan.single_gauge_force).into(),
        solvers: PhaseSolvers { dynamics, action },
        unitarise: match plan.unitarise {
            Unitarise::Always => "always".into(),
            Unitarise::Never => "never".into(),
        },
        measure: MeasurementSettings {
            every: input.measure.every,
            condensate: input.measure.condensate,
            batches: batches.sizes.clone(),
        },
        replay: None,
        backend: backend.clone(),
        device: device.clone(),
        layout: layout.record(),
    }
}

fn precision(single: bool) -> &'static str {
    if single { "single" } else { "double" }
}

fn solver(solver: &ShiftedSolver) -> PhaseSolver {
    PhaseSolver { precision: precision(solver.single).into(), tol: solver.tol.clone() }
}

fn level(level: &LevelPlan) -> LevelSettings {
    let (name, lambda) = match level.scheme {
        Scheme::Leapfrog => ("leapfrog", None),
        Scheme::LeapfrogLinksFirst => ("leapfrog-links-first", None),
        Scheme::Omelyan { lambda } => ("omelyan", Some(lambda)),
        Scheme::OmelyanLinksFirst { lambda } => ("omelyan-links-first", Some(lambda)),
        Scheme::ForceGradient => ("force-gradient", None),
        Scheme::ThreeGaugeOneFermion { lambda } => ("3g1f", Some(lambda)),
    };
    LevelSettings {
        integrator: name.into(),
        lambda,
        steps: level.steps,
        gauge: level.gauge,
        quarks: level.quarks.clone(),
    }
}
