//! What a run is, for the first line after each start.
use super::super::batch::Batches;
use super::super::layout::Layout;
use super::super::stout;
use super::input::{EnsembleInput, QuarkGroup, StartLinks};
use super::wilson::WilsonGroup;
use ferrite::hmc::fermions::{QuarkOperator, QuarkSmearing, ShiftedSolver};
use ferrite::hmc::integrator::{Scheme, Unitarise};
use ferrite::hmc::trajectory::LevelPlan;
use ferrite::operators::{StaggeredPhases, TimeBoundary};
use ferrite_records::ensemble::{
    AnisotropySettings, GaugeSettings, LevelSettings, MeasurementSettings, OneOrSeveral, PathSettings, PhaseSolver,
    PhaseSolvers, QuarkSettings, RationalErrors, RunSettings, StoutSettings,
};
use ferrite_records::read::read;

/// The first links, as an input names them.
pub fn start(input: &EnsembleInput) -> String {
    match &input.start {
        StartLinks::Cold => "cold".into(),
        StartLinks::Hot => "hot".into(),
        StartLinks::File(path) => path.display().to_string(),
    }
}

/// The settings that decide what is sampled, and where it is computed: `device` is backend and device.
pub fn settings(
    input: &EnsembleInput,
    [backend, device]: &[String; 2],
    layout: &Layout,
    batches: &Batches,
) -> RunSettings {
    let plan = &input.plan;
    let wilson = |group: &WilsonGroup| read(&group.settings()).expect("an object of the keys of quarks");
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
        quarks: input.groups.iter().map(quarks).chain(input.wilson.iter().map(wilson)).collect(),
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

/// What settings tell of links that are not smeared.
pub const WITHOUT: &str = "none";

fn quarks(group: &QuarkGroup) -> QuarkSettings {
    let QuarkOperator { params, smearing, theta } = &group.operator;
    let (operator, paths, naik_epsilon) = match smearing {
        QuarkSmearing::Thin | QuarkSmearing::Stout(_) => ("naive", None, None),
        QuarkSmearing::Paths(paths) => ("asqtad", Some(paths), None),
        QuarkSmearing::Hisq { epsilon } => ("hisq", None, Some(*epsilon)),
    };
    let paths = paths.map(|c| PathSettings {
        one_link: c.one_link,
        naik: c.naik,
        three: c.three,
        five: c.five,
        seven: c.seven,
        lepage: c.lepage,
    });
    QuarkSettings {
        name: group.name.clone(),
        operator: operator.into(),
        mass: Some(OneOrSeveral::Several(group.quarks.iter().map(|quarks| quarks.mass).collect())),
        // As text: they are fractions.
        flavours: group.quarks.iter().map(|quarks| quarks.flavours.to_string()).collect(),
        pseudofermions: Some(group.pseudofermions),
        level: Some(group.level),
        paths: Some(paths),
        naik_epsilon,
        errors: Some(RationalErrors { dynamics: group.tolerances.dynamics, action: group.tolerances.action }),
        bc_time: match params.boundary {
            TimeBoundary::Antiperiodic => "antiperiodic".into(),
            TimeBoundary::Periodic => "periodic".into(),
        },
        theta: theta.0.into(),
        phases: Some(match params.phases {
            StaggeredPhases::Milc => "milc".into(),
            StaggeredPhases::Lexicographic => "lexicographic".into(),
        }),
        // Told only where they are given, so that runs of other versions compare.
        stout: group.stout().map(|smearing| StoutSettings::Smeared(stout::record(smearing))),
        dynamics_tol: group.dynamics_tol.clone(),
        ..QuarkSettings::default()
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
