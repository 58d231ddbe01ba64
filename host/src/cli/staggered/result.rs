//! What a staggered solve prints and writes.
use super::plan::{Masses, PHASES, STRATEGIES, StaggeredPlan};
use super::{Kind, LinkFiles, StaggeredSolve, Tadpole};
use crate::cli::batch::Batches;
use crate::cli::device::Device;
use crate::cli::layout::Layout;
use crate::cli::plan::{BOUNDARIES, PRECISIONS, RECONSTRUCTIONS, name_of};
use crate::cli::plot;
use crate::cli::profile::Profile;
use crate::cli::progress::Watch;
use crate::cli::solve::{announce, applications, climbs, end, histories, lines, worst};
use crate::cli::{Code, Context, Failure, Outcome, fields, text};
use ferrite::field::host::HostColour;
use ferrite::solve::{Report, ShiftStrategy, ShiftsReport};
use serde_json::{Value, json};
use solvers::Unsolved;
use std::path::PathBuf;
use tracing::warn;

/// What is said about operator and links.
pub fn describe(plan: &StaggeredPlan, u0: f64) -> Value {
    let (gauge, fat, long) = match &plan.links {
        LinkFiles::Gauge(path) => (Some(path), None, None),
        LinkFiles::Improved(fat, long) => (None, Some(fat), Some(long)),
    };
    let made = gauge.is_some();
    json!({
        "lattice": plan.lattice.size(),
        "operator": plan.kind.name(),
        "gauge": gauge,
        "fat": fat,
        "long": long,
        "u0": matches!(plan.kind, Kind::Asqtad(_)).then_some(u0).filter(|_| made),
        "u0_from_plaquette": plan.kind == Kind::Asqtad(Tadpole::Plaquette),
        "naik_epsilon": match plan.kind { Kind::Hisq(epsilon) if made => Some(epsilon), _ => None },
        "phases": name_of(&PHASES, plan.phases),
        "bc_time": name_of(&BOUNDARIES, plan.boundary),
        "spread_boundary": plan.spread,
        "sources": plan.sources.iter().map(|s| s.to_string()).collect::<Vec<_>>(),
    })
}

/// An object with the keys of all.
pub fn merged<const N: usize>(mut object: Value, more: [Value; N]) -> Value {
    for more in more {
        if let (Value::Object(object), Value::Object(more)) = (&mut object, more) {
            object.extend(more);
        }
    }
    object
}

/// `asqtad operator on 8×8×8×8, u0 = 0.85, antiperiodic`
pub fn headline(plan: &StaggeredPlan, u0: f64) -> String {
    let details = match plan.kind {
        _ if matches!(plan.links, LinkFiles::Improved(..)) => ", links as read".into(),
        Kind::Asqtad(_) => format!(", u0 = {u0:.6}"),
        Kind::Hisq(epsilon) if epsilon != 0.0 => format!(", epsilon = {epsilon}"),
        _ => String::new(),
    };
    let boundary = name_of(&BOUNDARIES, plan.boundary);
    format!("{} operator on {}{details}, {boundary}", plan.kind.title(), plan.lattice)
}

/// The result of a solve for one mass.
pub fn one(
    context: &Context,
    solve: &StaggeredSolve,
    (device, layout): (&Device, &Layout),
    u0: f64,
    (solutions, report, error): (&[HostColour], &Report, Option<&Unsolved>),
    (watch, batches, profile): (&Watch, &Batches, &Profile),
) -> Outcome {
    let (plan, info) = (&solve.plan, &report.info);
    announce(report);
    let mass = plan.params().mass;
    let mut written = None;
    if let Some(path) = &plan.output
        && (report.converged || solve.keep_unconverged)
    {
        let title = format!("solution of the {} equation, m = {mass}", plan.kind.title());
        fields::write_fermions(path, solutions, &title, layout)?;
        written = Some(path);
    }
    if let Some(path) = &solve.plot {
        let picture = plot::Convergence {
            title: format!("{}, m = {mass:.6}", headline(plan, u0)),
            subtitle: solve.scheme.describe(report),
            history: histories(&solve.scheme, report, watch),
            updates: &watch.updates,
            tol: solve.scheme.tol,
        };
        context.world.once(|| plot::write(path, &picture).map_err(Failure::failed))?;
    }
    let worst = worst(report);
    let object = json!({
        "converged": report.converged,
        "iterations": info.iterations,
        "iterations_per_source": info.iterations_per_rhs,
        "true_residual": worst,
        "true_residuals": report.true_residual,
        "tol": solve.scheme.tol,
        "seconds": report.seconds,
        "total_seconds": report.total_seconds,
        "gflops": report.gflops,
        "backend": device.name(),
        "device": device.describe(),
        "layout": layout.describe(),
        "mass": mass,
        "solver": solve.scheme.solver(),
        "precision": name_of(&PRECISIONS, report.precision),
        "outer": name_of(&PRECISIONS, report.outer),
        "correction": solve.scheme.correction(),
        "climbs": climbs(&report.climbs),
        "reconstruct": name_of(&RECONSTRUCTIONS, report.reconstruction),
        "reductions": info.reductions,
        "reliable_updates": info.reliable_updates,
        "restarts": info.restarts,
        "applications": applications(info),
        "history": info.history,
        "output": written,
        "plot": solve.plot,
    });
    let object = merged(object, [describe(plan, u0), batches.json(), profile.json()]);
    context.output.result("ferrite.solve/1", object, || {
        let mut text = format!(
            "{}\nm = {mass:.6}, {}\n{}\n{} after {}, {}\ntrue residual |b - Mx| / |b| = {worst:.3e} (asked: {:.0e})\n",
            headline(plan, u0),
            batches.describe(),
            solve.scheme.describe(report),
            if report.converged { "converged" } else { "NOT converged" },
            text::count(info.iterations, "iteration"),
            text::count(info.reliable_updates, "reliable update"),
            solve.scheme.tol
        );
        text += &lines(&plan.sources, report);
        text += &format!("{:.3} s, {:.1} GFLOP/s on {}\n", report.seconds, report.gflops, device.describe());
        text += &profile.table(context);
        files(&mut text, written, solve.plot.as_ref());
        text
    })?;
    end(plan.output.as_ref(), solve.scheme.tol, report, error, written)
}

fn files(text: &mut String, written: Option<&PathBuf>, plot: Option<&PathBuf>) {
    if let Some(path) = written {
        *text += &format!("solution: {}\n", path.display());
    }
    if let Some(path) = plot {
        *text += &format!("plot: {}\n", path.display());
    }
}

/// The result of a solve for several masses or shifts.
pub fn several(
    context: &Context,
    solve: &StaggeredSolve,
    (device, layout): (&Device, &Layout),
    u0: f64,
    (solutions, report): (&[Vec<HostColour>], &ShiftsReport),
    (batches, profile): (&Batches, &Profile),
) -> Outcome {
    let plan = &solve.plan;
    let (what, plural, values, mass) = match &plan.masses {
        Masses::Shifts(mass, shifts) => ("shift", "shifts", shifts.clone(), Some(*mass)),
        Masses::Several(masses) => ("mass", "masses", masses.clone(), None),
        Masses::One(mass) => ("mass", "masses", vec![*mass], None),
    };
    for (value, outcome) in values.iter().zip(&report.shifts) {
        for climb in &outcome.climbs {
            warn!("{what} {value}: {}; went on in {} precision", climb.reason, name_of(&PRECISIONS, climb.precision));
        }
    }
    let mut written = None;
    if let Some(path) = &plan.output
        && (report.converged || solve.keep_unconverged)
    {
        let all: Vec<&HostColour> = solutions.iter().flatten().collect();
        let title = format!("solutions of the {} equation for {} {plural}", plan.kind.title(), values.len());
        fields::write_block(path, &all, &plan.block(), &title, layout)?;
        written = Some(path);
    }
    let rows: Vec<_> = values
        .iter()
        .zip(&report.shifts)
        .map(|(value, outcome)| {
            json!({
                what: value,
                "iterations": outcome.iterations,
                "refinement_iterations": outcome.refinement_iterations,
                "reliable_updates": outcome.reliable_updates,
                "true_residual": solvers::worst_residual(&outcome.true_residual),
                "true_residuals": outcome.true_residual,
                "climbs": climbs(&outcome.climbs),
                "failure": outcome.failure.as_ref().map(Unsolved::to_string),
            })
        })
        .collect();
    let object = json!({
        "converged": report.converged,
        "mass": mass,
        "systems": rows,
        "solver": solve.scheme.solver(),
        "shift_solver": name_of(&STRATEGIES, plan.strategy),
        "first_precision": report.first_precision.map(|precision| name_of(&PRECISIONS, precision)),
        "precision": name_of(&PRECISIONS, plan.precision),
        "reconstruct": name_of(&RECONSTRUCTIONS, report.reconstruction),
        "outer": solve.scheme.outer(),
        "correction": solve.scheme.correction(),
        "tol": solve.scheme.tol,
        "first_seconds": report.first_seconds,
        "seconds": report.seconds,
        "total_seconds": report.total_seconds,
        "gflops": report.gflops,
        "backend": device.name(),
        "device": device.describe(),
        "layout": layout.describe(),
        "output": written,
        "output_axes": plan.block(),
    });
    let object = merged(object, [describe(plan, u0), batches.json(), profile.json()]);
    context.output.result("ferrite.solve_shifts/1", object, || {
        let mut text = headline(plan, u0) + "\n";
        if plan.sources.len() > 1 {
            text += &format!("{}\n", batches.describe());
        }
        if let Some(mass) = mass {
            text += &format!("(M^+ M + s) x = b at m = {mass:.6}\n");
        }
        let precision = name_of(&PRECISIONS, plan.precision);
        text += &match (plan.strategy, report.first_precision) {
            (ShiftStrategy::MultiShift, Some(first)) => {
                format!("multi-shift CG in {}, then CG in {precision} for each\n", name_of(&PRECISIONS, first))
            }
            _ => format!("{} in {precision} for each\n", solve.scheme.title()),
        };
        text += &format!("{what:>14} {:>11} {:>11} {:>14}\n", "multi-shift", "refinement", "true residual");
        for (value, outcome) in values.iter().zip(&report.shifts) {
            text += &format!(
                "{value:>14} {:>11} {:>11} {:>14.3e}{}\n",
                outcome.iterations,
                outcome.refinement_iterations,
                solvers::worst_residual(&outcome.true_residual),
                outcome.failure.as_ref().map(|why| format!("  {why}")).unwrap_or_default()
            );
        }
        text += &format!(
            "{} (asked: {:.0e})\n",
            if report.converged { "converged" } else { "NOT converged" },
            solve.scheme.tol
        );
        text += &format!(
            "{:.3} s, of which multi-shift CG {:.3} s, {:.1} GFLOP/s on {}\n",
            report.seconds,
            report.first_seconds,
            report.gflops,
            device.describe()
        );
        text += &profile.table(context);
        files(&mut text, written, None);
        text
    })?;
    finish(solve, report, written)
}

/// The exit code and its sentence.
fn finish(solve: &StaggeredSolve, report: &ShiftsReport, written: Option<&PathBuf>) -> Outcome {
    if report.converged {
        return Ok(());
    }
    let kept = match (&solve.plan.output, written) {
        (_, Some(path)) => {
            warn!("{} holds the best iterates, which are no solutions", path.display());
            format!("the best iterates are in {}", path.display())
        }
        (Some(path), None) => {
            format!("{} was not written (--keep-unconverged writes the best iterates)", path.display())
        }
        (None, None) => "nothing was to be written".into(),
    };
    if report.cancelled {
        return Err(Failure::new(Code::Interrupted, format!("interrupted; {kept}")).shared());
    }
    let solved = report.shifts.iter().filter(|s| s.true_residual.iter().all(|r| *r <= solve.scheme.tol)).count();
    let of = report.shifts.len();
    let bad = of - solved;
    let why = format!("{bad} of {of} systems did not converge to {:.0e}; {kept}", solve.scheme.tol);
    Err(Failure::failed(why).shared())
}
