//! What a run is, for the first line after each start.
use super::super::layout::Layout;
use super::input::{Group, Input, Start};
use ferrite::dirac::{StaggeredPhases, TimeBoundary};
use ferrite::rhmc::integrator::Scheme;
use ferrite::rhmc::trajectory::LevelPlan;
use serde_json::{Value, json};

/// The settings that decide what is sampled, and where it is computed: `device` is backend and device.
pub fn settings(input: &Input, [backend, device]: &[String; 2], layout: &Layout) -> Value {
    let plan = &input.plan;
    let start = match &input.start {
        Start::Cold => "cold".into(),
        Start::Hot => "hot".into(),
        Start::File(path) => path.display().to_string(),
    };
    json!({
        "version": env!("CARGO_PKG_VERSION"),
        "lattice": input.lattice.size(),
        "trajectories": input.trajectories,
        "seed": plan.seed,
        "start": start,
        "thermalise": plan.metropolis_from.saturating_sub(1),
        "gauge": {
            "action": input.gauge_action,
            "beta": plan.gauge.beta,
            "plaquette": plan.gauge.plaquette,
            "rectangle": plan.gauge.rectangle,
            "chair": plan.gauge.chair,
        },
        "quarks": input.groups.iter().map(quarks).collect::<Vec<_>>(),
        "length": plan.length,
        "levels": plan.levels.iter().map(level).collect::<Vec<_>>(),
        "links": if input.single_links { "single" } else { "double" },
        "measure": { "every": input.measure.every, "condensate": input.measure.condensate },
        "backend": backend,
        "device": device,
        "layout": layout.describe(),
    })
}

fn quarks(group: &Group) -> Value {
    let params = &group.operator.params;
    json!({
        "name": group.name,
        "operator": if group.operator.paths.is_some() { "asqtad" } else { "naive" },
        "mass": group.quarks.iter().map(|quarks| quarks.mass).collect::<Vec<_>>(),
        // As text: they are fractions.
        "flavours": group.quarks.iter().map(|quarks| quarks.flavours.to_string()).collect::<Vec<_>>(),
        "pseudofermions": group.pseudofermions,
        "bc_time": match params.boundary {
            TimeBoundary::Antiperiodic => "antiperiodic",
            TimeBoundary::Periodic => "periodic",
        },
        "phases": match params.phases {
            StaggeredPhases::Milc => "milc",
            StaggeredPhases::Lexicographic => "standard",
        },
    })
}

fn level(level: &LevelPlan) -> Value {
    let (name, lambda) = match level.scheme {
        Scheme::Leapfrog => ("leapfrog", None),
        Scheme::LeapfrogLinksFirst => ("leapfrog-links-first", None),
        Scheme::Omelyan { lambda } => ("omelyan", Some(lambda)),
        Scheme::OmelyanLinksFirst { lambda } => ("omelyan-links-first", Some(lambda)),
        Scheme::ForceGradient => ("force-gradient", None),
    };
    json!({ "integrator": name, "lambda": lambda, "steps": level.steps, "gauge": level.gauge, "quarks": level.quarks })
}
