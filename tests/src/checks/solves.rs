//! Solves in every precision, with every method, checked by the reference operator.
use super::Case;
use crate::reference::Dirac;
use crate::report::{Report, Tolerance};
use ferrite::backend::Backend;
use ferrite::dirac::{TimeBoundary, WilsonParams};
use ferrite::solve::{IterationPrecision, Method, Reconstruction, Request, SolveFailure, solve_wilson};

/// Every precision × reconstruction × method ends at a true residual of 1e-10, and says the truth about it.
pub fn solves<B: Backend>(backend: &B, case: &Case, mass: f64, report: &mut Report) -> Result<(), SolveFailure> {
    let domain = case.domain(backend)?;
    let sources = case.block(2);
    let boundary = TimeBoundary::Antiperiodic;
    let reference = Dirac::new(&case.gauge, mass, -1.0);
    let mut first = None;
    for precision in [IterationPrecision::Double, IterationPrecision::Single, IterationPrecision::Half] {
        for reconstruction in [Reconstruction::Eighteen, Reconstruction::Twelve, Reconstruction::Eight] {
            for method in [Method::Bicgstab, Method::Cg] {
                let operator = WilsonParams::from_mass(mass, boundary);
                let request = Request { method, precision, reconstruction, ..Request::new(operator) };
                let scope = case.scope(&format!("{precision:?} {reconstruction:?}"), &format!("{method:?} m = {mass}"));
                let (solutions, claim) = solve_wilson(&domain, &case.gauge, sources, &request, &mut ())?;
                report.holds(&scope, "solve: converged", claim.converged);
                for ((eta, psi), claimed) in sources.iter().zip(&solutions).zip(&claim.true_residual) {
                    let residual = reference.residual(eta, psi);
                    report.error(&scope, "solve: true residual", residual, request.tol);
                    // The residual is a difference of numbers of size ‖η‖, each with its rounding errors.
                    report.error(&scope, "solve: claimed residual", (residual - claimed).abs(), 1e-14);
                }
                // M⁻¹ amplifies a residual by at most 1 / (smallest singular value of M), times ‖η‖ / ‖ψ‖ ≤ ‖M‖ and
                // ‖M‖ ≤ 8 + m: a few hundred for these fields.
                let tol = Tolerance { relative: 500.0 * request.tol, worst: 1e5 * request.tol };
                let exact = first.is_none();
                let expected = first.get_or_insert_with(|| solutions.clone());
                // Two formats never make the same bits, unless one of them is not used.
                report.holds(&scope, "solve: the iteration has its own format", exact || *expected != solutions);
                report.fields(&scope, "solve: the same solution", solutions, expected, tol);
            }
        }
    }
    Ok(())
}
