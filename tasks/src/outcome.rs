//! Conversion of the outcomes of solves to records.
use ferrite::solve::names::{OUTER_PRECISIONS, PRECISIONS, RECONSTRUCTIONS, name_of};
use ferrite::solve::{Escalation, MethodChange, MultigridReport, Report, Request, ShiftsReport};
use ferrite_records::solve as records;
use solvers::{Unsolved, worst_residual};

/// Returns the record of a solve with the requested tolerance `tol`.
pub fn solve(report: &Report, tol: f64) -> records::SolveOutcome {
    let info = &report.info;
    records::SolveOutcome {
        converged: report.converged,
        tol,
        iterations: info.iterations,
        iterations_per_source: info.iterations_per_rhs.clone(),
        true_residual: worst_residual(&report.true_residual),
        true_residuals: report.true_residual.clone(),
        seconds: report.seconds,
        total_seconds: report.total_seconds,
        gflops: report.gflops,
        solver: report.method.name.into(),
        precision: name_of(&PRECISIONS, report.precision).into(),
        outer: name_of(&PRECISIONS, report.outer).into(),
        reconstruct: name_of(&RECONSTRUCTIONS, report.reconstruction).into(),
        escalations: escalations(&report.escalations),
        method_changes: report.method_changes.iter().map(method_change).collect(),
        gave_up: report.gave_up.as_ref().map(Unsolved::to_string),
        reductions: info.reductions,
        reliable_updates: info.reliable_updates,
        restarts: info.restarts,
        applications: records::Applications {
            precise: info.precise_applications,
            sloppy: info.sloppy_applications,
            in_domains: info.preconditioner.local_applications,
        },
        multigrid: report.multigrid.as_ref().map(multigrid),
        history: info.history.clone(),
    }
}

/// Parameter in which the systems of a series differ.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SystemKind {
    /// Mass m in M x = b.
    Mass,
    /// Shift σ in (M†M + σ) x = b.
    Shift,
}

/// Returns the record of solves that differ by the masses or shifts `values`.
pub fn shifts(request: &Request, report: &ShiftsReport, kind: SystemKind, values: &[f64]) -> records::ShiftsOutcome {
    let system = |(value, outcome): (&f64, &ferrite::solve::ShiftOutcome)| records::SystemOutcome {
        mass: (kind == SystemKind::Mass).then_some(*value),
        shift: (kind == SystemKind::Shift).then_some(*value),
        iterations: outcome.iterations,
        refinement_iterations: outcome.refinement_iterations,
        reliable_updates: outcome.reliable_updates,
        true_residual: worst_residual(&outcome.true_residual),
        true_residuals: outcome.true_residual.clone(),
        escalations: escalations(&outcome.escalations),
        failure: outcome.failure.as_ref().map(Unsolved::to_string),
        gave_up: outcome.gave_up.as_ref().map(Unsolved::to_string),
    };
    records::ShiftsOutcome {
        converged: report.converged,
        tol: request.tol,
        systems: values.iter().zip(&report.shifts).map(system).collect(),
        first_precision: report.first_precision.map(|precision| name_of(&PRECISIONS, precision).into()),
        precision: name_of(&PRECISIONS, request.precision).into(),
        reconstruct: name_of(&RECONSTRUCTIONS, report.reconstruction).into(),
        outer: name_of(&OUTER_PRECISIONS, request.outer).into(),
        first_seconds: report.first_seconds,
        seconds: report.seconds,
        total_seconds: report.total_seconds,
        gflops: report.gflops,
    }
}

/// Returns the record of the setup and the levels of multigrid in a solve.
pub fn multigrid(report: &MultigridReport) -> records::MultigridRecord {
    let level = |level: &ferrite::solve::MultigridLevel| records::MultigridLevelRecord {
        lattice: level.lattice,
        block: level.block,
        vectors: level.vectors,
        iterations: level.iterations,
        seconds: level.seconds,
        check: level.check.map(|check| records::LevelCheckRecord {
            near_null: check.near_null,
            galerkin: check.galerkin,
            gamma5: check.gamma5,
        }),
    };
    records::MultigridRecord { setup_seconds: report.setup_seconds, levels: report.levels.iter().map(level).collect() }
}

fn escalations(escalations: &[Escalation]) -> Vec<records::EscalationRecord> {
    let one = |escalation: &Escalation| records::EscalationRecord {
        iterations: escalation.iterations,
        reason: escalation.reason.to_string(),
        precision: name_of(&PRECISIONS, escalation.precision).into(),
        outer: name_of(&PRECISIONS, escalation.outer).into(),
        reconstruct: name_of(&RECONSTRUCTIONS, escalation.reconstruction).into(),
    };
    escalations.iter().map(one).collect()
}

fn method_change(change: &MethodChange) -> records::MethodChangeRecord {
    records::MethodChangeRecord {
        iterations: change.iterations,
        solver: change.method.name.into(),
        reason: change.reason.to_string(),
    }
}
