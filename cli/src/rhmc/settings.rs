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
use serde_json::{Value, json};

/// The first links, as an input names them.
pub fn start(input: &EnsembleInput) -> String {
    match &input.start {
        StartLinks::Cold => "cold".into(),
        StartLinks::Hot => "hot".into(),
        StartLinks::File(path) => path.display().to_string(),
    }
}

/// The settings that decide what is sampled, and where it is computed: `device` is backend and device.
pub fn settings(input: &EnsembleInput, [backend, device]: &[String; 2], layout: &Layout, batches: &Batches) -> Value {
    let plan = &input.plan;
    json!({
        "version": env!("CARGO_PKG_VERSION"),
        "lattice": input.lattice.size(),
        "trajectories": input.trajectories,
        "seed": plan.seed,
        "start": start(input),
        "input": input.keys,
        "thermalise": plan.metropolis_from.saturating_sub(1),
        "gauge": {
            "action": input.gauge_action,
            "beta": plan.gauge.beta,
            "plaquette": plan.gauge.plaquette,
            "rectangle": plan.gauge.rectangle,
            "parallelogram": plan.gauge.parallelogram,
            "anisotropy": {
                "plaquettes": plan.gauge.anisotropy.plaquettes,
                "rectangles": plan.gauge.anisotropy.rectangles,
            },
        },
        "quarks": input.groups.iter().map(quarks).chain(input.wilson.iter().map(WilsonGroup::settings)).collect::<Vec<_>>(),
        "length": plan.length,
        "friction": plan.friction,
        "levels": plan.levels.iter().map(level).collect::<Vec<_>>(),
        "links": precision(input.single_links),
        "gauge_force": precision(input.plan.single_gauge_force),
        "solvers": { "dynamics": solver(&input.solvers[0]), "action": solver(&input.solvers[1]) },
        "unitarise": match plan.unitarise {
            Unitarise::Always => "always",
            Unitarise::Never => "never",
        },
        "measure": { "every": input.measure.every, "condensate": input.measure.condensate, "batches": batches.sizes },
        "backend": backend,
        "device": device,
        "layout": layout.record(),
    })
}

/// What settings tell of links that are not smeared.
pub const WITHOUT: &str = "none";

fn quarks(group: &QuarkGroup) -> Value {
    let QuarkOperator { params, smearing, theta } = &group.operator;
    let (operator, paths) = match smearing {
        QuarkSmearing::Thin | QuarkSmearing::Stout(_) => ("naive", None),
        QuarkSmearing::Paths(paths) => ("asqtad", Some(paths)),
        QuarkSmearing::Hisq { .. } => ("hisq", None),
    };
    let mut all = json!({
        "name": group.name,
        "operator": operator,
        "mass": group.quarks.iter().map(|quarks| quarks.mass).collect::<Vec<_>>(),
        // As text: they are fractions.
        "flavours": group.quarks.iter().map(|quarks| quarks.flavours.to_string()).collect::<Vec<_>>(),
        "pseudofermions": group.pseudofermions,
        "level": group.level,
        "paths": paths.map(|c| json!({
            "one_link": c.one_link, "naik": c.naik, "three": c.three, "five": c.five, "seven": c.seven, "lepage": c.lepage,
        })),
        "errors": { "dynamics": group.tolerances.dynamics, "action": group.tolerances.action },
        "bc_time": match params.boundary {
            TimeBoundary::Antiperiodic => "antiperiodic",
            TimeBoundary::Periodic => "periodic",
        },
        "theta": theta.0,
        "phases": match params.phases {
            StaggeredPhases::Milc => "milc",
            StaggeredPhases::Lexicographic => "lexicographic",
        },
    });
    if let QuarkSmearing::Hisq { epsilon } = smearing {
        all["naik_epsilon"] = json!(epsilon);
    }
    // Told only where they are given, so that runs of other versions compare.
    if let Some(smearing) = group.stout() {
        all["stout"] = json!(stout::record(smearing));
    }
    if let Some(own) = &group.dynamics_tol {
        all["dynamics_tol"] = json!(own);
    }
    all
}

fn precision(single: bool) -> &'static str {
    if single { "single" } else { "double" }
}

fn solver(solver: &ShiftedSolver) -> Value {
    json!({ "precision": precision(solver.single), "tol": solver.tol })
}

fn level(level: &LevelPlan) -> Value {
    let (name, lambda) = match level.scheme {
        Scheme::Leapfrog => ("leapfrog", None),
        Scheme::LeapfrogLinksFirst => ("leapfrog-links-first", None),
        Scheme::Omelyan { lambda } => ("omelyan", Some(lambda)),
        Scheme::OmelyanLinksFirst { lambda } => ("omelyan-links-first", Some(lambda)),
        Scheme::ForceGradient => ("force-gradient", None),
        Scheme::ThreeGaugeOneFermion { lambda } => ("3g1f", Some(lambda)),
    };
    json!({ "integrator": name, "lambda": lambda, "steps": level.steps, "gauge": level.gauge, "quarks": level.quarks })
}
