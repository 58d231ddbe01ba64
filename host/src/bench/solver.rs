//! Mixed-precision solvers on one configuration over a range of masses, as in tables 3 to 5 and figure 7 of Clark et al.
//! 2009.
use super::time;
use crate::backend::Backend;
use crate::dirac::{TimeBoundary, WilsonParams};
use crate::domain::Result;
use crate::field::AnySpace;
use crate::generate;
use crate::solve::{Configuration, Correction, IterationPrecision, Method, Reconstruction, Request, SolveFailure};
use solvers::{LinearOperator, Observer, VectorSpace};

/// One way to solve: a column of a table.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Scheme {
    /// Krylov method.
    pub method: Method,
    /// Precision of the iteration.
    pub precision: IterationPrecision,
    /// Reals kept of a link in the iteration.
    pub reconstruction: Reconstruction,
    /// How true residuals, always in double, come in.
    pub correction: Correction,
}

/// A table of the paper.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Table {
    /// Iterations of CG and BiCGstab in double.
    Three,
    /// Defect correction over inner tolerances.
    Four,
    /// Reliable updates over δ.
    Five,
}

impl Table {
    /// The table's columns, and more formats than the paper had.
    pub fn schemes(self) -> Vec<Scheme> {
        use IterationPrecision::{Double, Fp16, Half, Single};
        use Reconstruction::{Eight, Eighteen, Twelve};
        let scheme = |precision, reconstruction, correction| Scheme {
            method: Method::Bicgstab,
            precision,
            reconstruction,
            correction,
        };
        let reliable = |delta| Correction::Reliable { delta: Some(delta) };
        let over = |precision, reconstruction, correction: &dyn Fn(f64) -> Correction, parameters: &[f64]| {
            parameters.iter().map(|p| scheme(precision, reconstruction, correction(*p))).collect::<Vec<_>>()
        };
        match self {
            Table::Three => {
                let plain = scheme(Double, Eighteen, Correction::default());
                let twelve = scheme(Double, Twelve, Correction::default());
                vec![Scheme { method: Method::Cg, ..twelve }, plain, twelve]
            }
            Table::Four => {
                let defect = |inner_tol| Correction::Defect { inner_tol };
                let mut all = over(Half, Twelve, &defect, &[1e-1, 1e-2]);
                all.extend(over(Fp16, Twelve, &defect, &[1e-1]));
                all.extend(over(Single, Eight, &defect, &[1e-3, 1e-4, 1e-5]));
                all.extend(over(Single, Twelve, &defect, &[1e-5, 1e-6]));
                all
            }
            Table::Five => {
                let mut all = over(Half, Twelve, &reliable, &[1e-1, 1e-2, 1e-3]);
                all.extend(over(Fp16, Twelve, &reliable, &[1e-1, 1e-2]));
                all.extend(over(Single, Eight, &reliable, &[1e-1, 1e-2, 1e-3]));
                all.extend(over(Single, Twelve, &reliable, &[1e-2, 1e-3]));
                all
            }
        }
    }
}

/// What is solved.
#[derive(Clone, Debug, PartialEq)]
pub struct Study {
    /// Bare masses of the Wilson operator, antiperiodic in time.
    pub masses: Vec<f64>,
    /// Number of random sources, each solved by itself.
    pub sources: u64,
    /// Asked ‖b − M x‖ / ‖b‖.
    pub tol: f64,
    /// Most iterations of a solve.
    pub max_iterations: usize,
}

/// One mass in one way, averaged over the sources.
#[derive(Clone, Debug, PartialEq)]
pub struct Cell {
    /// The mass.
    pub mass: f64,
    /// The way.
    pub scheme: Scheme,
    /// Iterations, with reliable updates or corrections counted as the paper does; of the solves that converged.
    pub iterations: f64,
    /// Reliable updates or corrections.
    pub updates: f64,
    /// Seconds of a solve, transfers not included.
    pub seconds: f64,
    /// 10⁹ operations of the matrix per second of the solve.
    pub gflops: f64,
    /// Largest true residual of the full system.
    pub true_residual: f64,
    /// Why solves did not converge.
    pub failures: Vec<String>,
}

/// Solves for all sources.
pub fn cell<B: Backend>(
    configuration: &Configuration<B>,
    study: &Study,
    mass: f64,
    scheme: Scheme,
    observer: &mut impl Observer,
) -> std::result::Result<Cell, SolveFailure> {
    let Scheme { method, precision, reconstruction, correction } = scheme;
    let operator = WilsonParams::from_mass(mass, TimeBoundary::Antiperiodic);
    let request = Request {
        method,
        precision,
        reconstruction,
        correction,
        tol: study.tol,
        max_iterations: study.max_iterations,
        // A column is of one format, to the end.
        ladder: false,
        ..Request::new(operator)
    };
    let mut cell = Cell {
        mass,
        scheme,
        iterations: 0.0,
        updates: 0.0,
        seconds: 0.0,
        gflops: 0.0,
        true_residual: 0.0,
        failures: Vec::new(),
    };
    for seed in 1..=study.sources {
        let source = generate::random_source(configuration.domain().local(), seed);
        let report = match configuration.solve(&[source], None, &request, observer) {
            Ok((_, report)) if report.converged => report,
            Ok((_, report)) => {
                cell.failures.push(format!("the true residual is {:.1e}", report.true_residual[0]));
                continue;
            }
            Err(SolveFailure::Unfinished {
                error: error @ solvers::SolveError::Cancelled { .. },
                solutions,
                report,
            }) => {
                return Err(SolveFailure::Unfinished { error, solutions, report });
            }
            Err(SolveFailure::Unfinished { error, .. }) => {
                cell.failures.push(error.to_string());
                continue;
            }
            Err(error) => return Err(error),
        };
        cell.iterations += (report.info.iterations + report.info.reliable_updates) as f64;
        cell.updates += report.info.reliable_updates as f64;
        cell.seconds += report.seconds;
        cell.gflops += report.info.flops * 1e-9;
        cell.true_residual = cell.true_residual.max(report.true_residual[0]);
    }
    cell.gflops /= cell.seconds;
    let solved = (study.sources as usize - cell.failures.len()) as f64;
    for sum in [&mut cell.iterations, &mut cell.updates, &mut cell.seconds] {
        *sum /= solved;
    }
    Ok(cell)
}

/// 10⁹ operations per second of the even-odd Wilson matrix by itself.
pub fn matrix_gflops<B: Backend>(
    configuration: &Configuration<B>,
    precision: IterationPrecision,
    reconstruction: Reconstruction,
) -> Result<f64> {
    let operator = WilsonParams::from_mass(0.1, TimeBoundary::Antiperiodic);
    let operator = configuration.operator(operator, precision, reconstruction, 1)?;
    let space = AnySpace::new(configuration.domain(), 1, precision);
    let mut full = crate::field::FullSpinor::zero(configuration.domain(), 1)?;
    full.upload(&[generate::random_source(configuration.domain().local(), 1)])?;
    let (mut x, mut y) = (space.allocate()?, space.allocate()?);
    space.read(&full.even, &mut x)?;
    let seconds = time(configuration.domain().backend(), || {
        std::mem::swap(&mut x, &mut y);
        operator.apply(&y, &mut x)
    })?;
    Ok(operator.flops() / seconds * 1e-9)
}
