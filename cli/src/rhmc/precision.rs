//! The table `precision` of an input.
use super::input::{QuarkGroup, tolerance};
use super::wilson::WilsonGroup;
use crate::config::{RESIDUAL, Settings, is_residual};
use ferrite::hmc::fermions::ShiftedSolver;

/// Settings of the paper, section 4.4, and those of nobody: whether links, solver of the dynamics and solver of the action
/// are in single precision, and the residuals of the two. Residuals are not printed in the paper's text: these are ours, of
/// its kind.
const PRESETS: [(&str, [bool; 3], [f64; 2]); 7] = [
    ("A", [true, false, false], [1e-10, 1e-12]),
    ("B", [true, false, false], [1e-8, 1e-12]),
    ("C", [true, false, false], [1e-6, 1e-12]),
    ("D", [true, false, false], [1e-5, 1e-10]),
    ("E", [true, true, true], [1e-5, 1e-6]),
    ("F", [true, true, false], [1e-6, 1e-12]),
    ("G", [true, true, false], [1e-5, 1e-10]),
];

const PRECISIONS: [(&str, bool); 2] = [("double", false), ("single", true)];

/// What a solver in single precision cannot do: residuals of systems with several shifts cannot be corrected.
const SINGLE: f64 = 5e-8;

/// Whether links and gauge force are in single precision, and the solvers.
pub fn precisions(s: &mut Settings, groups: &[QuarkGroup], wilson: &[WilsonGroup]) -> (bool, bool, [ShiftedSolver; 2]) {
    let names = PRESETS.map(|(name, ..)| (name, name));
    let preset =
        s.choice("precision.preset", &names).and_then(|chosen| PRESETS.iter().find(|(name, ..)| *name == chosen));
    let ([links, dynamics, action], [dynamics_tol, action_tol]) =
        preset.map_or(([false, true, false], [1e-6, 1e-12]), |(_, single, tol)| (*single, *tol));
    let links = s.choice("precision.links", &PRECISIONS).unwrap_or(links);
    let dynamics = s.choice("precision.dynamics", &PRECISIONS).unwrap_or(dynamics);
    // By what links and dynamics are in the end, not by their defaults.
    let gauge_force = s.choice("precision.gauge-force", &PRECISIONS).unwrap_or(links || dynamics);
    let action = s.choice("precision.action", &PRECISIONS).unwrap_or(action);
    let dynamics_tol = s.numbers("precision.dynamics-tol", RESIDUAL, is_residual).unwrap_or(vec![dynamics_tol]);
    let action_tol = tolerance(s, "precision.action-tol").unwrap_or(action_tol);
    if links && !gauge_force {
        s.conflict(
            "precision.gauge-force",
            "precision.links",
            "links in single precision need forces in single precision",
        );
    }
    // All others are two flavours of Wilson-like quarks, whose solvers correct residuals in double precision.
    let are_rational = !groups.is_empty() || wilson.iter().any(WilsonGroup::is_rational);
    let exact = wilson.iter().find(|group| !group.is_rational());
    if let (false, Some(group)) = (are_rational, exact)
        && let Some(setting) = s.get("precision.action").filter(|setting| setting.text() == "single")
    {
        let why = format!(
            "{}: solvers of two flavours iterate in the precision of precision.dynamics and correct residuals in double: leave it out",
            group.name
        );
        s.wrong(&setting, why);
    }
    if let (Some(group), [_, _, ..]) = (exact, &dynamics_tol[..])
        && let Some(setting) = s.get("precision.dynamics-tol")
    {
        s.wrong(&setting, format!("{}: two flavours have no poles: give one number", group.name));
    }
    let smallest = |list: &[f64]| list.iter().copied().fold(f64::INFINITY, f64::min);
    let own = groups.iter().enumerate().filter_map(|(k, group)| Some((k, smallest(group.dynamics_tol.as_ref()?))));
    // There are tables of one kind alone, so that both count from 0.
    let of_wilson = wilson.iter().enumerate().filter_map(|(k, group)| Some((k, group.rational_tol()?)));
    let own = own.chain(of_wilson);
    let own = own.map(|(k, tol)| (format!("fermion.{k}.dynamics-tol"), "dynamics", dynamics, tol));
    let of_all = [("dynamics", dynamics, smallest(&dynamics_tol)), ("action", action, action_tol)];
    let of_all = of_all.map(|(part, single, tol)| (format!("precision.{part}-tol"), part, single, tol));
    for (key, part, single, tol) in of_all.into_iter().filter(|_| are_rational || wilson.is_empty()).chain(own) {
        if single && tol < SINGLE {
            s.missing(format!(
                "{key} is {tol:e}, which a solver in single precision cannot reach: set {SINGLE:e} or more, or \
                 precision.{part} = \"double\""
            ));
        }
    }
    let solver = |single, tol| ShiftedSolver { single, tol, together: false, max_iterations: 1_000_000 };
    (links, gauge_force, [solver(dynamics, dynamics_tol), solver(action, vec![action_tol])])
}
