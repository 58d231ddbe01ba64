//! Solves for several shifts, either by multi-shift CG or one after another.
use super::{Cell, Sample, SolverScheme, SolverStudy, StudyFailure, average, not_converged, unsolved};
use crate::field::host::ColourVector;
use crate::gauge::generate;
use crate::operators::Operator;
use crate::solve::{Configuration, ShiftStrategy, SolvedShifts};
use solvers::Observer;

/// Systems (M†M + σ) x = b with several shifts σ, which a study solves at each mass instead of M ψ = η.
#[derive(Clone, Debug, PartialEq)]
pub struct Several {
    /// Shifts σ.
    pub shifts: Vec<f64>,
    /// Strategy for solving the systems.
    pub strategy: ShiftStrategy,
}

/// Solves the systems of all shifts on both parities for all sources, and returns averages over the solves that converged.
///
/// # Errors
/// [`StudyFailure`] if the study cannot continue. Solves that do not converge are no error; the cell records them.
pub fn cell_of_several(
    configuration: &Configuration,
    study: &SolverStudy,
    several: &Several,
    operator: Operator,
    scheme: SolverScheme,
    observer: &mut dyn Observer,
) -> std::result::Result<Cell, StudyFailure> {
    let request = study.request(operator.clone(), scheme);
    average(operator.mass(), scheme, study.sources, |seed| {
        let source = [generate::random_source::<ColourVector>(configuration.domain().section(), seed)];
        let Several { shifts, strategy } = several;
        Sample::of_shifts(configuration.solve_shifts(&source, shifts, *strategy, &request, observer))
    })
}

impl Sample {
    /// Makes the sample of a solve for one source and several shifts, or returns the reason why a system did not converge.
    fn of_shifts(solved: SolvedShifts) -> std::result::Result<std::result::Result<Self, String>, StudyFailure> {
        let report = match solved {
            Ok((_, report)) => report,
            Err(failure) => return unsolved(failure).map(Err),
        };
        if report.cancelled {
            return Err(StudyFailure::Interrupted);
        }
        let all: Vec<f64> = report.shifts.iter().map(|outcome| outcome.true_residual[0]).collect();
        let true_residual = solvers::worst_residual(&all);
        if !report.converged {
            let why = report.shifts.iter().find_map(|outcome| {
                let why = outcome.failure.as_ref()?;
                Some(format!("shift {}: {why}", outcome.shift))
            });
            return Ok(Err(why.unwrap_or_else(|| not_converged(true_residual))));
        }
        // The slowest system is active in all iterations of multi-shift CG, so its number of iterations is that of the solve.
        let first = report.shifts.iter().map(|outcome| outcome.iterations).max().unwrap_or(0);
        let then: usize = report.shifts.iter().map(|outcome| outcome.refinement_iterations).sum();
        Ok(Ok(Sample {
            iterations: first + then,
            updates: report.shifts.iter().map(|outcome| outcome.reliable_updates).sum(),
            seconds: report.seconds,
            first: (first, report.first_seconds),
            flops: report.gflops * report.seconds * 1e9,
            true_residual,
        }))
    }
}
