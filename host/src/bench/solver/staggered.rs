//! CG on M†M of a staggered operator, for one mass or for many shifts together.
use super::{Cell, Sample, Scheme, Study, StudyFailure, average, gflops_of, not_converged, unsolved};
use crate::dirac::{StaggeredLinks, StaggeredParams, TimeBoundary};
use crate::domain::Result;
use crate::field::host::ColourVector;
use crate::generate;
use crate::solve::{Correction, Method, ShiftStrategy, SolvedShifts, StaggeredConfiguration};
use gpu_kernels::{LinkStorage, Precision};
use solvers::Observer;

/// Several systems (M†M + σ) x = b at each mass, instead of M ψ = η.
#[derive(Clone, Debug, PartialEq)]
pub struct Several {
    /// σ
    pub shifts: Vec<f64>,
    /// How they are solved.
    pub strategy: ShiftStrategy,
}

/// CG with reliable updates in double, in each pair of a precision and a reconstruction for which there are kernels of
/// the naive operator, or of the improved ones.
pub fn staggered_schemes(improved: bool, precisions: &[Precision], reconstructions: &[LinkStorage]) -> Vec<Scheme> {
    let pairs = precisions.iter().flat_map(|&p| reconstructions.iter().map(move |&r| (p, r)));
    let exist = pairs.filter(|&(precision, storage)| StaggeredLinks::exists(improved, precision, storage));
    let correction = Correction::default();
    exist
        .map(|(precision, reconstruction)| Scheme { method: Method::Cg, precision, reconstruction, correction })
        .collect()
}

fn params(mass: f64) -> StaggeredParams {
    StaggeredParams::new(mass, TimeBoundary::Antiperiodic)
}

/// Solves for all sources: M ψ = η on the even sites, or the systems of several shifts on both parities.
///
/// # Errors
/// [`StudyFailure`]; solves that do not converge are in the cell.
pub fn staggered_cell(
    configuration: &StaggeredConfiguration,
    study: &Study,
    several: Option<&Several>,
    mass: f64,
    scheme: Scheme,
    observer: &mut dyn Observer,
) -> std::result::Result<Cell, StudyFailure> {
    let request = study.request(params(mass), scheme);
    average(mass, scheme, study.sources, |seed| {
        let source = [generate::random_source::<ColourVector>(configuration.domain().section(), seed)];
        match several {
            None => Sample::of(configuration.solve(&source, None, &request, observer)),
            Some(Several { shifts, strategy }) => {
                Sample::of_shifts(configuration.solve_shifts(&source, shifts, *strategy, &request, observer))
            }
        }
    })
}

impl Sample {
    /// Of a solve for one source and several shifts, or why some system did not converge.
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
        // The system that took longest was there from the first to the last iteration.
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

/// 10⁹ operations per second of M†M on one parity by itself.
pub fn staggered_matrix_gflops(
    configuration: &StaggeredConfiguration,
    precision: Precision,
    reconstruction: LinkStorage,
) -> Result<f64> {
    let operator = configuration.operator(params(0.1), precision, reconstruction, 1)?;
    gflops_of::<ColourVector>(configuration.domain(), &*operator, precision)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_those_with_kernels() {
        use Precision::{Double, Fp16, Half, Single};
        let [eighteen, eight, nine] = [18, 8, 9].map(LinkStorage::of);
        let all = [eighteen, eight, LinkStorage::of(12).in_temporal_gauge(), eight.in_half(), nine];
        let formats = |improved| {
            let schemes = staggered_schemes(improved, &[Double, Fp16, Single, Half], &all);
            schemes.into_iter().map(|scheme| (scheme.precision, scheme.reconstruction)).collect::<Vec<_>>()
        };
        let naive = [
            (Double, eighteen),
            (Double, eight),
            (Single, eighteen),
            (Single, eight),
            (Single, eight.in_half()),
            (Half, eighteen),
            (Half, eight),
        ];
        assert_eq!(formats(false), naive);
        let mut improved = naive.to_vec();
        for (at, pair) in [(2, (Double, nine)), (6, (Single, nine)), (9, (Half, nine))] {
            improved.insert(at, pair);
        }
        assert_eq!(formats(true), improved);
    }
}
