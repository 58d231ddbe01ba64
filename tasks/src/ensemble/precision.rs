//! The table `precision` of an input.
use super::chain::shifted_solver;
use ferrite::hmc::fermions::ShiftedSolver;
use ferrite::hmc::quarks::QuarkGroup;
use ferrite_inputs::values::{Number, Numbers, Residual, Word};
use ferrite_inputs::{Given, Input, vocabularies};
use serde::Deserialize;

/// Presets A to G of `precision.preset`: whether links, the solver of molecular dynamics and the solver of the action are in single
/// precision, and the tolerances of the two solvers. Section 4.4 of the paper of Bonati et al. compares such settings. It does not print
/// tolerances; these are Ferrite's own.
const PRESETS: [(&str, [bool; 3], [f64; 2]); 7] = [
    ("A", [true, false, false], [1e-10, 1e-12]),
    ("B", [true, false, false], [1e-8, 1e-12]),
    ("C", [true, false, false], [1e-6, 1e-12]),
    ("D", [true, false, false], [1e-5, 1e-10]),
    ("E", [true, true, true], [1e-5, 1e-6]),
    ("F", [true, true, false], [1e-6, 1e-12]),
    ("G", [true, true, false], [1e-5, 1e-10]),
];

vocabularies! {
    /// Values of `precision.preset`.
    Presets: usize = PRESETS.iter().enumerate().map(|(place, (name, ..))| (*name, place));
    /// Values of precision keys; `true` stands for single.
    Precisions: bool = [("double", false), ("single", true)];
}

/// Keys of the table `precision`.
#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "kebab-case")]
pub struct PrecisionKeys {
    preset: Given<Word<Presets>>,
    links: Given<Word<Precisions>>,
    gauge_force: Given<Word<Precisions>>,
    dynamics: Given<Word<Precisions>>,
    dynamics_tol: Given<Numbers<Residual>>,
    action: Given<Word<Precisions>>,
    action_tol: Given<Number<Residual>>,
}

/// Smallest tolerance that a multi-shift solver in single precision reaches. Residuals of several shifts cannot be corrected.
const SINGLE: f64 = 5e-8;

/// Reads the keys of the table `precision`. Returns whether the links are in single precision, whether the gauge force is, and the solvers
/// of molecular dynamics and of heat bath and Metropolis step.
pub fn precisions(s: &mut Input, groups: &[QuarkGroup]) -> (bool, bool, [ShiftedSolver; 2]) {
    let keys: PrecisionKeys = s.read("precision");
    let preset = keys.preset.value().map(|chosen| PRESETS[chosen]);
    let ([links, dynamics, action], [dynamics_tol, action_tol]) =
        preset.map_or(([false, true, false], [1e-6, 1e-12]), |(_, single, tol)| (single, tol));
    let (links, dynamics) = (keys.links.or(links), keys.dynamics.or(dynamics));
    // The default depends on the final values of `links` and `dynamics`, not on their defaults.
    let gauge_force = keys.gauge_force.or(links || dynamics);
    let action = keys.action.or(action);
    let (dynamics_tol, action_tol) = (keys.dynamics_tol.or(vec![dynamics_tol]), keys.action_tol.or(action_tol));
    if links && !gauge_force {
        s.conflict(
            "precision.gauge-force",
            "precision.links",
            "links in single precision need precision.gauge-force = \"single\"",
        );
    }
    // Quarks without rational functions are two flavours of Wilson-like quarks. Their solvers correct residuals in double precision.
    let are_rational = groups.iter().any(|group| group.is_rational());
    let exact = groups.iter().find(|group| !group.is_rational());
    if let (false, Some(group)) = (are_rational, exact)
        && keys.action.is_on()
    {
        let why = format!(
            "{}: solvers of two flavours iterate in the precision of precision.dynamics and correct residuals in \
             double: remove precision.action",
            group.name
        );
        s.wrong(&keys.action, why);
    }
    if let (Some(group), [_, _, ..]) = (exact, &dynamics_tol[..]) {
        let why =
            format!("{}: two flavours have one tolerance, because they have no poles: give one number", group.name);
        s.wrong(&keys.dynamics_tol, why);
    }
    let smallest = |list: &[f64]| list.iter().copied().fold(f64::INFINITY, f64::min);
    let rational = groups.iter().enumerate().filter(|(_, group)| group.is_rational());
    let own = rational.filter_map(|(k, group)| Some((k, smallest(group.dynamics_tol()?))));
    let own = own.map(|(k, tol)| (format!("fermion.{k}.dynamics-tol"), "dynamics", dynamics, tol));
    let of_all = [("dynamics", dynamics, smallest(&dynamics_tol)), ("action", action, action_tol)];
    let of_all = of_all.map(|(part, single, tol)| (format!("precision.{part}-tol"), part, single, tol));
    for (key, part, single, tol) in of_all.into_iter().filter(|_| are_rational || groups.is_empty()).chain(own) {
        if single && tol < SINGLE {
            s.missing(format!(
                "{key} is {tol:e}, which a solver in single precision cannot reach: set {SINGLE:e} or more, or \
                 precision.{part} = \"double\""
            ));
        }
    }
    let solvers = [shifted_solver(dynamics, dynamics_tol), shifted_solver(action, vec![action_tol])];
    (links, gauge_force, solvers)
}
