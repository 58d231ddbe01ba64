//! Operators, solvers and plans for tests of molecular dynamics and of ensembles.
use ferrite::hmc::action::GaugeAction;
use ferrite::hmc::fermions::{QuarkOperator, QuarkSmearing, ShiftedSolver};
use ferrite::hmc::functions::Quarks;
use ferrite::hmc::integrator::{Scheme, Unitarise};
use ferrite::hmc::trajectory::{LevelPlan, Plan};
use ferrite::operators::{StaggeredParams, TimeBoundary};

pub fn naive() -> QuarkOperator {
    QuarkOperator::new(StaggeredParams::new(0.0, TimeBoundary::Antiperiodic), QuarkSmearing::Thin)
}
pub fn solver(single: bool, tol: f64) -> ShiftedSolver {
    ShiftedSolver { single, tol: vec![tol], together: false, max_iterations: 10_000 }
}
pub fn quarks(mass: f64, flavours: &str) -> Quarks {
    Quarks { mass, flavours: flavours.parse().unwrap() }
}
pub fn level(gauge: bool, groups: usize, scheme: Scheme, steps: usize) -> LevelPlan {
    LevelPlan { gauge, quarks: (0..groups).collect(), scheme, steps }
}
pub fn plan(gauge: GaugeAction, length: f64, levels: Vec<LevelPlan>, single: bool) -> Plan {
    Plan {
        gauge,
        single_gauge_force: single,
        length,
        levels,
        unitarise: Unitarise::Always,
        seed: 31,
        friction: None,
        metropolis_from: 0,
    }
}
