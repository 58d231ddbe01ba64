//! Measurements of mixed-precision solvers on one configuration for several masses, also of multi-shift CG for staggered fermions.
mod several;

pub use several::{Several, cell_of_several};

use super::time;
use crate::domain::{DeviceError, Result};
use crate::field::host::Fermion;
use crate::field::{FieldShape, FieldSpace, FullField};
use crate::gauge::generate;
use crate::operators::{Definition, Operator};
use crate::solve::{Configuration, Correction, Method, Request, SolveFailure, Solved};
use gpu_kernels::{LinkStorage, Precision};
use solvers::{Observer, SolveError, VectorSpace};

/// Method, formats and correction of a solve: one column of a table.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SolverScheme {
    /// Krylov method.
    pub method: &'static Method,
    /// Precision of the iteration.
    pub precision: Precision,
    /// Number of reals stored per link in the iteration.
    pub reconstruction: LinkStorage,
    /// Correction of the iteration by true residuals, which are computed in double precision.
    pub correction: Correction,
}

/// Systems of a study of solvers, and limits of the solves.
#[derive(Clone, Debug, PartialEq)]
pub struct SolverStudy {
    /// Bare masses. The quarks are antiperiodic in time.
    pub masses: Vec<f64>,
    /// Number of random sources; each is solved separately.
    pub sources: u64,
    /// Requested tolerance ‖b − M x‖ / ‖b‖.
    pub tol: f64,
    /// Maximum number of iterations of a solve.
    pub max_iterations: usize,
}

impl SolverStudy {
    fn request(&self, operator: Operator, scheme: SolverScheme) -> Request {
        let SolverScheme { method, precision, reconstruction, correction } = scheme;
        Request {
            method,
            precision,
            reconstruction,
            correction,
            tol: self.tol,
            max_iterations: Some(self.max_iterations),
            // A column of a table shows one format, so the solve must not change it.
            escalate: false,
            ..Request::new(operator)
        }
    }
}

/// Result of one scheme for one mass, averaged over the solves that converged.
#[derive(Clone, Debug, PartialEq)]
pub struct Cell {
    /// Bare mass.
    pub mass: f64,
    /// Scheme of the solves.
    pub scheme: SolverScheme,
    /// Mean number of iterations of a solve. Reliable updates and corrections count as iterations, as in Clark et al. 2009. With several
    /// shifts, the number includes multi-shift CG and all solves that follow it.
    pub iterations: f64,
    /// Mean number of reliable updates or corrections in a solve.
    pub updates: f64,
    /// Mean time of a solve in seconds, without transfers.
    pub seconds: f64,
    /// Mean number of iterations of multi-shift CG alone; 0 without multi-shift CG.
    pub first_iterations: f64,
    /// Mean time of multi-shift CG alone in seconds; 0 without multi-shift CG.
    pub first_seconds: f64,
    /// Rate during the solves in 10⁹ floating-point operations per second; only operations of the matrix count.
    pub gflops: f64,
    /// Largest true residual ‖b − M x‖ / ‖b‖ of the full system.
    pub true_residual: f64,
    /// Reasons why solves did not converge, one for each failed source.
    pub failures: Vec<String>,
}

impl Cell {
    /// Returns the time of a solve divided by its number of iterations, in seconds. The time includes reliable updates, but they do not
    /// count as iterations here.
    pub fn seconds_per_iteration(&self) -> f64 {
        self.seconds / (self.iterations - self.updates)
    }
    /// Returns the seconds of an iteration of multi-shift CG; NaN without multi-shift CG.
    pub fn seconds_per_first_iteration(&self) -> f64 {
        self.first_seconds / self.first_iterations
    }
}

/// Reason why a study ended early.
#[derive(Debug, thiserror::Error)]
pub enum StudyFailure {
    /// The observer stopped the study.
    #[error("interrupted")]
    Interrupted,
    /// A solver could not start, for example because a parameter is invalid.
    #[error(transparent)]
    Solver(SolveError<DeviceError>),
    /// The device failed.
    #[error(transparent)]
    Device(#[from] DeviceError),
}

/// Result of the solve for one source.
struct Sample {
    iterations: usize,
    updates: usize,
    seconds: f64,
    first: (usize, f64),
    flops: f64,
    true_residual: f64,
}

impl Sample {
    /// Makes the sample of a solve for one source and one mass, or returns the reason why it did not converge.
    fn of<T: Fermion>(solved: Solved<T>) -> std::result::Result<std::result::Result<Self, String>, StudyFailure> {
        match solved {
            Ok((_, report)) if report.converged => Ok(Ok(Sample {
                iterations: report.info.iterations,
                updates: report.info.reliable_updates,
                seconds: report.seconds,
                first: (0, 0.0),
                flops: report.gflops * report.seconds * 1e9,
                true_residual: report.true_residual[0],
            })),
            Ok((_, report)) => Ok(Err(not_converged(report.true_residual[0]))),
            Err(failure) => unsolved(failure).map(Err),
        }
    }
}

/// Returns the reason why a solve did not converge, or the error that ends the study.
fn unsolved<T: Fermion>(failure: SolveFailure<T>) -> std::result::Result<String, StudyFailure> {
    match failure {
        SolveFailure::Unfinished { error: SolveError::Cancelled { .. }, .. } => Err(StudyFailure::Interrupted),
        SolveFailure::Unfinished { error, .. } => Ok(error.to_string()),
        failure @ SolveFailure::OutOfRange(_) => Ok(failure.to_string()),
        SolveFailure::Solver(error) => Err(StudyFailure::Solver(error)),
        SolveFailure::Schwarz(error) => Err(StudyFailure::Solver(SolveError::Invalid(error.message()))),
        SolveFailure::Multigrid(error) => Ok(error.to_string()),
        SolveFailure::Device(error) => Err(StudyFailure::Device(error)),
    }
}

fn not_converged(true_residual: f64) -> String {
    format!("the true residual {true_residual:.1e} is above the requested tolerance")
}

/// Calls `solve` for the seed of each source, and averages the samples that it returns.
fn average(
    mass: f64,
    scheme: SolverScheme,
    sources: u64,
    mut solve: impl FnMut(u64) -> std::result::Result<std::result::Result<Sample, String>, StudyFailure>,
) -> std::result::Result<Cell, StudyFailure> {
    let mut cell = Cell {
        mass,
        scheme,
        iterations: 0.0,
        updates: 0.0,
        seconds: 0.0,
        first_iterations: 0.0,
        first_seconds: 0.0,
        gflops: 0.0,
        true_residual: 0.0,
        failures: Vec::new(),
    };
    for seed in 1..=sources {
        match solve(seed)? {
            Ok(sample) => {
                cell.iterations += (sample.iterations + sample.updates) as f64;
                cell.updates += sample.updates as f64;
                cell.seconds += sample.seconds;
                cell.first_iterations += sample.first.0 as f64;
                cell.first_seconds += sample.first.1;
                cell.gflops += sample.flops * 1e-9;
                cell.true_residual = cell.true_residual.max(sample.true_residual);
            }
            Err(why) => cell.failures.push(why),
        }
    }
    cell.gflops /= cell.seconds;
    let solved = (sources as usize - cell.failures.len()) as f64;
    let Cell { iterations, updates, seconds, first_iterations, first_seconds, .. } = &mut cell;
    for sum in [iterations, updates, seconds, first_iterations, first_seconds] {
        *sum /= solved;
    }
    Ok(cell)
}

/// Returns the schemes of CG with the default correction, for each combination of a precision and a link storage for which an operator has
/// kernels.
pub fn schemes(
    definition: &Definition,
    precisions: &[Precision],
    reconstructions: &[LinkStorage],
) -> Vec<SolverScheme> {
    let pairs = precisions.iter().flat_map(|&p| reconstructions.iter().map(move |&r| (p, r)));
    let exist = pairs.filter(|&(precision, storage)| definition.exists(precision, storage));
    let correction = Correction::default();
    exist
        .map(|(precision, reconstruction)| SolverScheme { method: Method::CG, precision, reconstruction, correction })
        .collect()
}

/// Solves M ψ = η for all sources with one scheme, and returns averages over the solves that converged.
///
/// # Errors
/// [`StudyFailure`] if the study cannot continue. Solves that do not converge are no error; the cell records them.
pub fn cell<F: Fermion>(
    configuration: &Configuration,
    study: &SolverStudy,
    operator: Operator,
    scheme: SolverScheme,
    observer: &mut dyn Observer,
) -> std::result::Result<Cell, StudyFailure> {
    let request = study.request(operator.clone(), scheme);
    average(operator.mass(), scheme, study.sources, |seed| {
        let source = generate::random_source::<F>(configuration.domain().section(), seed);
        Sample::of(configuration.solve(&[source], None, &request, observer))
    })
}

/// Measures the rate of an operator's even-odd matrix alone in 10⁹ floating-point operations per second, for one right-hand side.
pub fn matrix_gflops<F: Fermion>(
    configuration: &Configuration,
    operator: Operator,
    precision: Precision,
    reconstruction: LinkStorage,
) -> Result<f64> {
    let domain = configuration.domain();
    let operator = configuration.operator(operator, precision, reconstruction, 1)?;
    let space = FieldSpace::new(domain, FieldShape::new(F::KIND, precision, 1));
    let mut full = FullField::zero(domain, FieldShape::new(F::KIND, Precision::Double, 1))?;
    full.upload(&[generate::random_source::<F>(domain.section(), 1)])?;
    let (mut x, mut y) = (space.allocate()?, space.allocate()?);
    space.convert_from(&full.even, &mut x)?;
    // Every call has the same input: if the matrix were applied repeatedly to its own output, the numbers would overflow.
    let seconds = time(domain, || operator.apply(&x, &mut y))?;
    Ok(operator.flops() / seconds * 1e-9)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::operators::{ASQTAD, STAGGERED};

    #[test]
    fn columns_are_those_with_kernels() {
        use Precision::{Double, Fp16, Half, Single};
        let [eighteen, eight, nine] = [18, 8, 9].map(LinkStorage::of);
        let all = [eighteen, eight, LinkStorage::of(12).in_temporal_gauge(), eight.in_half(), nine];
        let formats = |definition| {
            let schemes = schemes(definition, &[Double, Fp16, Single, Half], &all);
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
        assert_eq!(formats(&STAGGERED), naive);
        let mut improved = naive.to_vec();
        for (at, pair) in [(2, (Double, nine)), (6, (Single, nine)), (9, (Half, nine))] {
            improved.insert(at, pair);
        }
        assert_eq!(formats(&ASQTAD), improved);
    }
}
