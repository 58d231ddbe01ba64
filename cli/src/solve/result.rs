//! Output of a solve: text, record and files.
use crate::batch::Batches;
use crate::device::Device;
use crate::failure::ReadBy;
use crate::fields::Source;
use crate::layout::Layout;
use crate::method::SolveScheme;
use crate::plan::{PRECISIONS, STRATEGIES, Systems, name_of};
use crate::profile::Profile;
use crate::{Context, Failure, Outcome, fields, multigrid, plot, text};
use ferrite::field::host::{Fermion, HostField};
use ferrite::operators::{Operator, WilsonLike};
use ferrite::solve::{Report, ShiftStrategy, ShiftsReport};
use ferrite_records::solve::{ShiftSolvers, ShiftsRecord, SolveCircumstances, SolveRecord};
use ferrite_tasks::outcome::{self, SystemKind};
use ferrite_tasks::progress::Watch;
use ferrite_tasks::solve::{Ended, Solve, advice, announce, good_enough, worst};
use solvers::Unsolved;
use std::path::PathBuf;
use tracing::{info, warn};

/// Circumstances of a finished solve: device, operator, batches and times.
pub struct Done<'a> {
    /// Device, and partition of the lattice.
    pub place: (&'a Device, &'a Layout),
    /// Operator on the links that were read.
    pub operator: Operator,
    /// Batches of right-hand sides.
    pub batches: &'a Batches,
    /// Times of the kernels, if a profile was requested.
    pub profile: Profile,
}

impl Done<'_> {
    /// Returns the record of the system, the device and the method.
    fn record(&self, solve: &Solve, output: Option<&PathBuf>) -> SolveCircumstances {
        let (device, layout) = self.place;
        SolveCircumstances {
            system: solve.plan.record(&self.operator),
            correction: solve.scheme.correction().into(),
            batches: self.batches.record(),
            place: device.record(layout),
            kernels: self.profile.record(),
            output: output.cloned(),
        }
    }
}

/// Prints the result of a solve with one operator.
pub fn one<F: Fermion>(context: &Context, solve: &Solve, done: &Done, ended: &Ended<F>, watch: &Watch) -> Outcome {
    let (plan, report, (device, layout)) = (&solve.plan, &ended.report, done.place);
    announce(report);
    let mass = done.operator.mass();
    let kappa = |operator: &WilsonLike| format!(" (kappa = {})", text::rounded(operator.wilson.kappa(), 8));
    let coupling = done.operator.parameters().map_or(String::new(), kappa);
    let written = written(solve, report.converged, |path| {
        let title = format!("solution of the {} equation, m = {mass}{coupling}", plan.definition().title);
        fields::write_fermions(path, &ended.solutions, &title, layout)
    })?;
    let headline = plan.headline(&done.operator);
    if let Some(path) = &solve.plot {
        let picture = plot::Convergence {
            title: format!("{headline}, m = {}", text::rounded(mass, 6)),
            subtitle: solve.scheme.describe(report),
            history: histories(&solve.scheme, report, watch),
            updates: &watch.updates,
            tol: solve.scheme.tol,
        };
        context.comm.once(|| plot::write(path, &picture).map_err(Failure::failed))?;
    }
    let (info, worst) = (&report.info, worst(report));
    let record = SolveRecord {
        outcome: outcome::solve(report, solve.scheme.tol),
        circumstances: done.record(solve, written),
        mass,
        plot: solve.plot.clone(),
    };
    context.output.record(&record, || {
        let mut text = format!(
            "{headline}\nm = {}{coupling}, {}\n{}\n{} after {}, {}\ntrue residual |b - Mx| / |b| = {worst:.3e} \
             (requested: {})\n",
            text::rounded(mass, 6),
            done.batches.describe(),
            solve.scheme.describe(report),
            if report.converged { "converged" } else { "NOT converged" },
            text::count(info.iterations, "iteration"),
            text::count(info.reliable_updates, "reliable update"),
            text::tolerance(solve.scheme.tol)
        );
        text += &lines(&plan.sources, report);
        text += &format!("{:.3} s, {:.1} GFLOP/s on {}\n", report.seconds, report.gflops, device.describe());
        text += &report.multigrid.as_ref().map(multigrid::table).unwrap_or_default();
        text += &done.profile.table(context.comm.size());
        text += &files(written, solve.plot.as_ref());
        text
    })?;
    if report.converged {
        return Ok(());
    }
    let kept =
        kept(solve, written, ["the best iterate, which is not a solution", "the best iterate is", "the best iterate"]);
    let reached =
        format!("|b - Mx| / |b| = {worst:.3e} on all sites, requested {}; {kept}", text::tolerance(solve.scheme.tol));
    match &ended.error {
        Some(error @ Unsolved::Cancelled { .. }) => Err(context.session.stopped(format!("{error}: {reached}"))),
        Some(error) => {
            let advice = advice(report, error);
            Err(Failure::failed(format!("the solve did not converge: {error}{advice}; {reached}")).shared())
        }
        None => Err(Failure::failed(format!("the solve did not converge: {reached}")).shared()),
    }
}

/// Prints the result of a solve for several masses or shifts.
pub fn several<F: Fermion>(
    context: &Context,
    solve: &Solve,
    done: &Done,
    solutions: &[Vec<HostField<F>>],
    report: &ShiftsReport,
) -> Outcome {
    let (plan, (device, layout)) = (&solve.plan, done.place);
    let (what, plural, values, mass) = match &plan.systems {
        Systems::Shifts(shifts) => ("shift", "shifts", shifts.clone(), Some(plan.operator.mass())),
        Systems::Masses(masses) => ("mass", "masses", masses.clone(), None),
        Systems::One => ("mass", "masses", vec![plan.operator.mass()], None),
    };
    for (value, outcome) in values.iter().zip(&report.shifts) {
        for escalation in &outcome.escalations {
            warn!(
                "{what} {value}: {}; the solve continued in {} precision",
                escalation.reason,
                name_of(&PRECISIONS, escalation.precision)
            );
        }
        if let Some(why) = &outcome.gave_up {
            info!("{what} {value}: {}", good_enough(why));
        }
    }
    let written = written(solve, report.converged, |path| {
        let all: Vec<&HostField<F>> = solutions.iter().flatten().collect();
        let noun = if values.len() == 1 { what } else { plural };
        let title = format!("solutions of the {} equation for {} {noun}", plan.definition().title, values.len());
        fields::write_block(path, &all, &plan.block(), &title, layout)
    })?;
    let kind = if matches!(plan.systems, Systems::Shifts(_)) { SystemKind::Shift } else { SystemKind::Mass };
    let request = solve.request(done.operator.clone(), report.reconstruction);
    let request = request.for_systems(plan.strategy, done.place.0.backend());
    let record = ShiftsRecord {
        outcome: outcome::shifts(&request, report, kind, &values),
        circumstances: done.record(solve, written),
        solvers: ShiftSolvers {
            mass,
            solver: solve.scheme.asked().name.into(),
            shift_solver: name_of(&STRATEGIES, plan.strategy).into(),
        },
        output_axes: plan.block(),
    };
    context.output.record(&record, || {
        let mut text = plan.headline(&done.operator) + "\n";
        if plan.sources.len() > 1 {
            text += &format!("{}\n", done.batches.describe());
        }
        if let Some(mass) = mass {
            text += &format!("(M^+ M + s) x = b at m = {}\n", text::rounded(mass, 6));
        }
        let precision = name_of(&PRECISIONS, request.precision);
        text += &match (plan.strategy, report.first_precision) {
            (ShiftStrategy::MultiShift, Some(first)) => {
                format!("multi-shift CG in {}, then CG in {precision} for each system\n", name_of(&PRECISIONS, first))
            }
            _ => format!("{} in {precision} for each system\n", solve.scheme.title(solve.scheme.asked())),
        };
        text += &format!("{what:>14} {:>11} {:>11} {:>14}\n", "multi-shift", "refinement", "true residual");
        for (value, outcome) in values.iter().zip(&report.shifts) {
            text += &format!(
                "{:>14} {:>11} {:>11} {:>14.3e}{}\n",
                text::number(*value),
                outcome.iterations,
                outcome.refinement_iterations,
                solvers::worst_residual(&outcome.true_residual),
                outcome.failure.as_ref().map(|why| format!("  {why}")).unwrap_or_default()
            );
        }
        text += &format!(
            "{} (requested: {})\n",
            if report.converged { "converged" } else { "NOT converged" },
            text::tolerance(solve.scheme.tol)
        );
        let first = match report.first_precision {
            Some(_) => format!(", of which multi-shift CG took {:.3} s", report.first_seconds),
            None => String::new(),
        };
        text += &format!("{:.3} s{first}; {:.1} GFLOP/s on {}\n", report.seconds, report.gflops, device.describe());
        text += &done.profile.table(context.comm.size());
        text += &files(written, None);
        text
    })?;
    if report.converged {
        return Ok(());
    }
    let iterates = ["the best iterates, which are not solutions", "the best iterates are", "the best iterates"];
    let kept = kept(solve, written, iterates);
    if report.cancelled {
        return Err(context.session.stopped(format!("interrupted; {kept}")));
    }
    let solved = report.shifts.iter().filter(|s| s.true_residual.iter().all(|r| *r <= solve.scheme.tol)).count();
    let bad = report.shifts.len() - solved;
    let (all, tol) = (text::count(report.shifts.len(), "system"), text::tolerance(solve.scheme.tol));
    let why = format!("{bad} of {all} did not converge to the tolerance {tol}; {kept}");
    Err(Failure::failed(why).shared())
}

/// Writes the solutions if an output file is given and they are good enough. Returns the path of the file that was written.
fn written(solve: &Solve, converged: bool, write: impl FnOnce(&PathBuf) -> Outcome) -> Outcome<Option<&PathBuf>> {
    let path = solve.plan.output.as_ref().filter(|_| converged || solve.keep_unconverged);
    path.map_or(Ok(()), write).map(|()| path)
}

/// Returns the end of a message on iterates that did not converge: whether they were written, and how to keep them.
fn kept(solve: &Solve, written: Option<&PathBuf>, [what, are, name]: [&str; 3]) -> String {
    match (&solve.plan.output, written) {
        (_, Some(path)) => {
            warn!("{} holds {what}", path.display());
            format!("{are} in {}", path.display())
        }
        (Some(path), None) => {
            let value = if solve.plan.read.by == ReadBy::Keys { "true" } else { "" };
            let keep = solve.plan.read.by.spelled("keep-unconverged", value);
            format!("{} was not written ({keep} writes {name})", path.display())
        }
        (None, None) => "no output file was requested".into(),
    }
}

fn files(written: Option<&PathBuf>, plot: Option<&PathBuf>) -> String {
    let line = |what: &str, path: &PathBuf| format!("{what}: {}\n", path.display());
    let [solution, plot] =
        [("solution", written), ("plot", plot)].map(|(what, path)| path.map(|path| line(what, path)));
    solution.unwrap_or_default() + &plot.unwrap_or_default()
}

/// Returns the residuals of each right-hand side, with the iterations to which they belong.
fn histories(scheme: &SolveScheme, report: &Report, watch: &Watch) -> Vec<Vec<(usize, f64)>> {
    let one = |(j, history): (usize, &Vec<f64>)| scheme.iterations_of(history, &watch.iterations_of_updates(j));
    report.info.history.iter().enumerate().map(one).collect()
}

/// Returns a line with the result for each right-hand side, if there are several.
fn lines(sources: &[Source], report: &Report) -> String {
    if sources.len() < 2 {
        return String::new();
    }
    let each = report.info.iterations_per_rhs.iter().zip(&report.true_residual);
    let line = |(source, (iterations, residual)): (&Source, (&usize, &f64))| {
        format!("  {source}: {}, {residual:.3e}\n", text::count(*iterations, "iteration"))
    };
    sources.iter().zip(each).map(line).collect()
}
