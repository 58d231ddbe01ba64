//! Solves in every precision, with every method, checked by the reference operator.
use super::Case;
use crate::reference::{WilsonDirac, combine};
use crate::report::{CheckReport, Tolerance};
use ferrite::backend::Backend;
use ferrite::field::host::HostSpinor;
use ferrite::operators::{TimeBoundary, WilsonParams};
use ferrite::solve::{Configuration, Correction, Method, Request, SolveFailure, solve};
use ferrite::{LinkStorage, Precision};
use num_complex::Complex64;

/// Every precision × reconstruction × method ends at a true residual of 1e-10, and says the truth about it.
pub fn solves(backend: &dyn Backend, case: &Case, mass: f64, report: &mut CheckReport) -> Result<(), SolveFailure> {
    let domain = case.domain(backend)?;
    let sources = case.block(2);
    let boundary = TimeBoundary::Antiperiodic;
    let reference = WilsonDirac::new(&case.gauge, mass, -1.0);
    let mut first = None;
    for precision in [Precision::Double, Precision::Single, Precision::Half, Precision::Fp16] {
        for reconstruction in [
            LinkStorage::FULL,
            LinkStorage::of(12),
            LinkStorage::of(8),
            LinkStorage::of(12).in_temporal_gauge(),
            LinkStorage::of(8).in_temporal_gauge(),
        ] {
            for method in [Method::BICGSTAB, Method::CG] {
                let operator = WilsonParams::from_mass(mass, boundary);
                let request = Request { method, precision, reconstruction, ..Request::new(operator) };
                let scope = case.scope(&format!("{precision} {reconstruction}"), &format!("{method:?} m = {mass}"));
                let (solutions, claim) = solve(&domain, &case.gauge, sources, &request, &mut ())?;
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

/// Every pair of precisions × way of correction × method ends at the residual that was asked for, by the reference, and
/// says the truth about it.
pub fn schemes(backend: &dyn Backend, case: &Case, mass: f64, report: &mut CheckReport) -> Result<(), SolveFailure> {
    use Precision::{Double, Fp16, Half, Single};
    let domain = case.domain(backend)?;
    let configuration = Configuration::new(&domain, &case.gauge);
    let sources = case.block(2);
    let reference = WilsonDirac::new(&case.gauge, mass, -1.0);
    let operator = WilsonParams::from_mass(mass, TimeBoundary::Antiperiodic);
    let pairs = [
        (Double, Double),
        (Double, Single),
        (Double, Half),
        (Double, Fp16),
        (Single, Single),
        (Single, Half),
        (Single, Fp16),
    ];
    for (outer, precision) in pairs {
        // In single a residual is a difference of numbers with errors of 6e-8 each, a hundred times that with the links'.
        let tol = if outer == Double { 1e-10 } else { 1e-5 };
        for correction in [Correction::default(), Correction::Defect { inner_tol: 0.05 }] {
            for method in [Method::BICGSTAB, Method::IDR, Method::CG, Method::CGNE, Method::BLOCK_CG] {
                let request = Request { method, precision, outer, correction, tol, ..Request::new(operator) };
                let scope = case.scope(&format!("{precision:?} in {outer:?}"), &format!("{method:?} {correction:?}"));
                let (solutions, claim) = configuration.solve(sources, None, &request, &mut ())?;
                report.holds(&scope, "scheme: converged", claim.converged);
                report.holds(&scope, "scheme: no escalation", claim.escalations.is_empty());
                for ((eta, psi), claimed) in sources.iter().zip(&solutions).zip(&claim.true_residual) {
                    let residual = reference.residual(eta, psi);
                    report.error(&scope, "scheme: true residual", residual, tol);
                    report.error(&scope, "scheme: claimed residual", (residual - claimed).abs(), 1e-14);
                }
                // From its own answer the solver has nothing to do, from a good guess less.
                let (again, idle) = configuration.solve(sources, Some(&solutions), &request, &mut ())?;
                report.holds(&scope, "scheme: from the solution", idle.converged && idle.info.iterations <= 2);
                // Up to the change of spin basis on the way.
                let tol = Tolerance { relative: 10.0 * tol, worst: 1e3 * tol };
                report.fields(&scope, "scheme: the solution again", again, &solutions, tol);
                let near: Vec<_> = solutions.iter().zip(sources).map(|(psi, eta)| nearby(psi, eta)).collect();
                let (_, shorter) = configuration.solve(sources, Some(&near), &request, &mut ())?;
                // An iteration of IDR(4) has five applications: it may take as many.
                let most = claim.info.iterations - usize::from(method != Method::IDR);
                let fewer = shorter.converged && shorter.info.iterations <= most;
                report.holds(&scope, "scheme: fewer iterations from near", fewer);
            }
        }
    }
    // Single precision cannot reach this; escalation can, and says so. Without escalation it is an error.
    let request = Request { precision: Half, outer: Single, ..Request::new(operator) };
    let scope = case.scope("Half in Single", "1e-10");
    let (solutions, claim) = configuration.solve(sources, None, &request, &mut ())?;
    report.holds(&scope, "escalation: converged", claim.converged && claim.outer == Double);
    report.holds(
        &scope,
        "escalation: steps reported",
        !claim.escalations.is_empty() && claim.escalations[0].iterations > 0,
    );
    for (eta, psi) in sources.iter().zip(&solutions) {
        report.error(&scope, "escalation: true residual", reference.residual(eta, psi), request.tol);
    }
    match configuration.solve(sources, None, &Request { escalate: false, ..request }, &mut ()) {
        Err(SolveFailure::Unfinished { solutions, report: claim, .. }) => {
            let worst =
                sources.iter().zip(&solutions).map(|(eta, psi)| reference.residual(eta, psi)).fold(0.0, f64::max);
            report.holds(&scope, "no escalation: no claim", !claim.converged && worst > request.tol);
            report.error(&scope, "no escalation: the best iterate", worst, 1e-5);
        }
        Err(error) => return Err(error),
        Ok(_) => report.holds(&scope, "no escalation: no claim", false),
    }
    Ok(())
}

/// ψ + η/1000
fn nearby(psi: &HostSpinor, eta: &HostSpinor) -> HostSpinor {
    combine(&[(Complex64::ONE, psi), (1e-3.into(), eta)])
}
