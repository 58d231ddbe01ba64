//! Solves with twisted boundary conditions, one after the other with different ones on the same configuration, checked by the reference
//! on links with phases.
use super::Case;
use super::wilson_like::{THETA, wilson_like_case, wilson_like_operators};
use crate::formats;
use crate::reference::turned;
use crate::report::{CheckReport, Scope};
use crate::staggered_reference::{Boundary, EtaPhases, ReferenceLinks, StaggeredDirac};
use ferrite::backend::Backend;
use ferrite::domain::Domain;
use ferrite::field::host::{ColourVector, HostColour};
use ferrite::gauge::generate;
use ferrite::lattice::Lattice;
use ferrite::multigrid::MultigridParams;
use ferrite::operators::fat_links::Improvement;
use ferrite::operators::{BoundaryAngles, StaggeredOperator, StaggeredParams, TimeBoundary};
use ferrite::solve::{Configuration, Method, Request, Schwarz, ShiftStrategy, SolveFailure};
use ferrite::{LinkStorage, Precision};

const ZERO: BoundaryAngles = BoundaryAngles([0.0; 4]);

/// Wilson-like operators by every method, in formats that links with phases cannot have: they are stored with all reals.
pub fn wilson_like_angles(backend: &dyn Backend, report: &mut CheckReport) -> Result<(), SolveFailure> {
    use Precision::{Double, Half, Single};
    let case = wilson_like_case();
    let with_phases = Case { gauge: turned(&case.gauge, THETA.0), ..wilson_like_case() };
    let domain = case.domain(backend)?;
    let configuration = Configuration::new(&domain, &case.gauge);
    let sources = &case.sources[..2];
    let (of, temporal) = (LinkStorage::of, LinkStorage::of(12).in_temporal_gauge());
    let plain = wilson_like_operators(&case);
    for (number, (name, operator, reference)) in wilson_like_operators(&with_phases).into_iter().enumerate() {
        for (precision, asked, method) in [
            (Double, of(12), Method::BICGSTAB),
            (Single, of(8), Method::CG),
            (Half, of(12), Method::CGNE),
            (Half, temporal, Method::BICGSTAB),
            (Single, of(12), Method::BLOCK_CG),
            (Single, of(18), Method::GCR_DD),
            (Half, of(12), Method::MULTIGRID),
        ] {
            let schwarz = Schwarz { precision, domain: Some([2, 2, 2, 4]), ..Schwarz::default() };
            let multigrid = MultigridParams { vectors: 8, improvements: 1, ..MultigridParams::default() };
            let request = Request {
                method,
                precision,
                reconstruction: asked,
                schwarz,
                multigrid,
                ..Request::new(operator.clone())
            };
            let scope = case.scope(&formats::name((precision, asked)), &format!("{name} {method:?}"));
            for (theta, reference) in [(ZERO, &plain[number].2), (THETA, &reference)] {
                if theta == ZERO && asked.temporal && !operator.definition().exists(precision, asked) {
                    continue;
                }
                let request = Request { operator: operator.with_theta(theta), ..request.clone() };
                let (solutions, claim) = configuration.solve(sources, None, &request, &mut ())?;
                report.holds(&scope, "twisted boundary: converged", claim.converged);
                if theta == THETA {
                    report.holds(&scope, "twisted boundary: all reals", claim.reconstruction == LinkStorage::FULL);
                }
                for ((eta, psi), claimed) in sources.iter().zip(&solutions).zip(&claim.true_residual) {
                    let residual = reference.residual(eta, psi);
                    report.error(&scope, "twisted boundary: true residual", residual, request.tol);
                    // A difference of numbers of size ‖A ψ‖, several times ‖η‖.
                    report.error(&scope, "twisted boundary: claimed residual", (residual - claimed).abs(), 1e-14);
                }
            }
        }
    }
    Ok(())
}

/// Staggered operators, one mass and several, on a configuration, on fat and long links, and with a boundary that is spread.
pub fn staggered_angles(backend: &dyn Backend, report: &mut CheckReport) -> Result<(), SolveFailure<ColourVector>> {
    use Precision::{Double, Half, Single};
    const MASS: f64 = 0.08;
    let lattice = Lattice::new([4, 6, 4, 8]).expect("even extents");
    let (gauge, domain) = (generate::weak_field(lattice, 60, 0.3), Domain::single(backend, lattice)?);
    let sources: Vec<HostColour> = (0..2).map(|k| generate::random_source(lattice, 61 + k)).collect();
    let with_phases = turned(&gauge, THETA.0);
    let improved =
        [&gauge, &with_phases].map(|gauge| [ReferenceLinks::asqtad(gauge, 0.9), ReferenceLinks::hisq(gauge, -0.1)]);
    let params = StaggeredParams::new(MASS, TimeBoundary::Antiperiodic);
    let (of, half) = (LinkStorage::of, |reals| LinkStorage::of(reals).in_half());
    let thin =
        [(Double, of(18), of(18)), (Single, of(8), of(18)), (Single, half(12), half(18)), (Half, of(12), of(18))];
    let long = [(Double, of(12), of(13)), (Single, of(8), of(9)), (Single, half(12), half(13)), (Half, of(8), of(9))];
    for (name, operator, formats) in [
        ("naive", StaggeredOperator::naive(params), thin),
        ("asqtad", StaggeredOperator::asqtad(params, 0.9), long),
        ("hisq", StaggeredOperator::hisq(params, -0.1), long),
    ] {
        let reference = |theta: BoundaryAngles, mass: f64, boundary: Boundary| {
            let which = usize::from(theta == THETA);
            match name {
                "naive" => StaggeredDirac::naive([&gauge, &with_phases][which], mass, EtaPhases::Milc, boundary),
                "asqtad" => improved[which][0].operator(mass, EtaPhases::Milc, boundary),
                _ => improved[which][1].operator(mass, EtaPhases::Milc, boundary),
            }
        };
        let sign = Boundary::Sign(-1.0);
        let configuration = Configuration::new(&domain, &gauge);
        let made = &improved[0][usize::from(name == "hisq")];
        let ready = match name {
            "naive" => None,
            _ => Some(Configuration::improved(Improvement::from_host(&domain, &made.fat, &made.long)?)),
        };
        for (precision, asked, used) in formats {
            let scope = Scope { format: format!("{precision} {asked}"), detail: format!("{lattice} {name}") };
            for theta in [ZERO, THETA] {
                let operator = StaggeredOperator { theta, ..operator };
                let request = Request { precision, reconstruction: asked, tol: 1e-11, ..Request::new(operator) };
                for configuration in std::iter::once(&configuration).chain(&ready) {
                    let (solutions, claim) = configuration.solve(&sources, None, &request, &mut ())?;
                    if theta == THETA {
                        let kept = claim.reconstruction == used;
                        report.holds(&scope, "staggered, twisted boundary: reconstruction", kept);
                    }
                    for (eta, psi) in sources.iter().zip(&solutions) {
                        let residual = reference(theta, MASS, sign).residual(eta, psi);
                        report.error(&scope, "staggered, twisted boundary: true residual", residual, request.tol);
                    }
                }
                let masses = [0.3, 0.1];
                let strategy = ShiftStrategy::MultiShift;
                let (solutions, _) = configuration.solve_masses(&sources, &masses, strategy, &request, &mut ())?;
                for (mass, solutions) in masses.into_iter().zip(&solutions) {
                    for (eta, psi) in sources.iter().zip(solutions) {
                        let residual = reference(theta, mass, sign).residual(eta, psi);
                        report.error(&scope, "masses, twisted boundary: true residual", residual, request.tol);
                    }
                }
            }
        }
        let scope = Scope { format: "double".into(), detail: format!("{lattice} {name}") };
        let spread = StaggeredOperator { spread: true, theta: THETA, ..operator };
        let request = Request { precision: Double, reconstruction: of(18), ..Request::new(spread) };
        let (solutions, _) = configuration.solve(&sources, None, &request, &mut ())?;
        let residual = reference(THETA, MASS, Boundary::Spread).residual(&sources[0], &solutions[0]);
        report.error(&scope, "spread and twisted boundary: true residual", residual, request.tol);
    }
    Ok(())
}
