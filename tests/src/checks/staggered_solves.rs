//! Staggered solves in every pair of precisions, for one mass, many masses and many shifts, checked by the reference.
use crate::formats;
use crate::reference::combine;
use crate::report::{CheckReport, Scope};
use crate::staggered_reference::{Boundary, EtaPhases, ReferenceLinks, StaggeredDirac};
use ferrite::backend::Backend;
use ferrite::domain::Domain;
use ferrite::field::host::{ColourVector, HostColour, HostGauge};
use ferrite::gauge::generate;
use ferrite::lattice::Lattice;
use ferrite::operators::{StaggeredOperator, StaggeredParams, StaggeredPhases, TimeBoundary};
use ferrite::solve::{Configuration, Correction, Method, Request, ShiftStrategy, SolveFailure};
use ferrite::{LinkStorage, Precision};

type Failure = SolveFailure<ColourVector>;

const MASS: f64 = 0.08;

/// Links, and the operators made of them by the reference.
struct StaggeredCase {
    gauge: HostGauge,
    improved: [ReferenceLinks; 2],
}

impl StaggeredCase {
    fn new() -> Self {
        let lattice = Lattice::new([4, 6, 4, 8]).expect("even extents");
        let gauge = generate::weak_field(lattice, 60, 0.3);
        let improved = [ReferenceLinks::asqtad(&gauge, 0.9), ReferenceLinks::hisq(&gauge, -0.1)];
        StaggeredCase { gauge, improved }
    }
    fn sources(&self, n: u64) -> Vec<HostColour> {
        (0..n).map(|k| generate::random_source(self.gauge.lattice(), 61 + k)).collect()
    }
    fn reference(&self, name: &str, mass: f64, boundary: Boundary) -> StaggeredDirac<'_> {
        match name {
            "naive" => StaggeredDirac::naive(&self.gauge, mass, EtaPhases::Milc, boundary),
            "asqtad" => self.improved[0].operator(mass, EtaPhases::Milc, boundary),
            _ => self.improved[1].operator(mass, EtaPhases::Milc, boundary),
        }
    }

    fn scope(&self, format: &str, detail: &str) -> Scope {
        Scope { format: format.into(), detail: format!("{} {detail}", self.gauge.lattice()) }
    }
}

/// The operator of this name.
fn operator(name: &str, params: StaggeredParams) -> StaggeredOperator {
    match name {
        "naive" => StaggeredOperator::naive(params),
        "asqtad" => StaggeredOperator::asqtad(params, 0.9),
        _ => StaggeredOperator::hisq(params, -0.1),
    }
}

/// Returns the link storage that an operator can have: HISQ's long links are in U(3) and need the phase of their determinant.
fn possible(name: &str, asked: LinkStorage) -> LinkStorage {
    if name == "hisq" { asked.with_phase() } else { asked }
}
const OPERATORS: [&str; 3] = ["naive", "asqtad", "hisq"];

/// Checks all staggered solves.
pub fn staggered_solves(backend: &dyn Backend, report: &mut CheckReport) -> Result<(), Failure> {
    let case = StaggeredCase::new();
    let domain = Domain::single(backend, case.gauge.lattice())?;
    one_mass(&case, &domain, report)?;
    singular_links(backend, report)?;
    spread_boundary(&case, &domain, report)?;
    shifts(&case, &domain, report)
}

/// M ψ = η for every operator × pair of precisions × reconstruction × method × way of correction.
fn one_mass(case: &StaggeredCase, domain: &Domain, report: &mut CheckReport) -> Result<(), Failure> {
    use Precision::{Double, Half, Single};
    let sources = case.sources(2);
    for name in OPERATORS {
        let configuration = Configuration::new(domain, &case.gauge);
        let reference = case.reference(name, MASS, Boundary::Sign(-1.0));
        for (outer, precision, tol) in [
            (Double, Double, 1e-11),
            (Double, Single, 1e-11),
            (Double, Half, 1e-11),
            (Single, Single, 1e-5),
            (Single, Half, 1e-5),
        ] {
            let formats = if name == "naive" { formats::naive() } else { formats::improved() };
            for (_, reconstruction) in formats.into_iter().filter(|format| format.0 == precision) {
                let (reliable, defect) = (Correction::Reliable { delta: None }, Correction::Defect { inner_tol: 0.1 });
                let mut schemes = vec![(Method::CG, reliable), (Method::CG, defect)];
                // One format stands for all of a precision.
                if reconstruction == LinkStorage::FULL {
                    schemes.extend([(Method::BLOCK_CG, reliable), (Method::BLOCK_CG, defect)]);
                }
                for (method, correction) in schemes {
                    let params = StaggeredParams::new(MASS, TimeBoundary::Antiperiodic);
                    let formats =
                        Request { outer, precision, reconstruction, tol, ..Request::new(operator(name, params)) };
                    let request = Request { method, correction, ..formats };
                    let scope = case.scope(
                        &format!("{outer} {precision} {reconstruction}"),
                        &format!("{name} {method:?} {correction:?}"),
                    );
                    let (solutions, claim) = configuration.solve(&sources, None, &request, &mut ())?;
                    report.holds(&scope, "staggered solve: converged", claim.converged);
                    for ((eta, psi), claimed) in sources.iter().zip(&solutions).zip(&claim.true_residual) {
                        let residual = reference.residual(eta, psi);
                        report.error(&scope, "staggered solve: true residual", residual, tol);
                        // Both are in double; the residual is a difference of numbers of size ‖η‖.
                        let off = (residual - claimed).abs();
                        report.error(&scope, "staggered solve: claimed residual", off, 1e-13);
                    }
                    let kept = claim.reconstruction == possible(name, reconstruction);
                    report.holds(
                        &scope,
                        "staggered solve: reconstruction, no escalations",
                        kept && claim.escalations.is_empty(),
                    );
                }
            }
        }
    }
    Ok(())
}

/// Checks storages on unit links, whose first rows are (a, 0, 0): two rows are kept in place of 8 or 9 numbers, and formats with the phase
/// of the determinant are refused for thin links.
fn singular_links(backend: &dyn Backend, report: &mut CheckReport) -> Result<(), Failure> {
    let gauge = HostGauge::unit(Lattice::new([4, 2, 2, 4]).expect("even extents"));
    let case =
        StaggeredCase { improved: [ReferenceLinks::asqtad(&gauge, 0.9), ReferenceLinks::hisq(&gauge, -0.1)], gauge };
    let domain = Domain::single(backend, case.gauge.lattice())?;
    let sources = case.sources(1);
    let params = StaggeredParams::new(MASS, TimeBoundary::Antiperiodic);
    let (of, half) = (LinkStorage::of, |reals| LinkStorage::of(reals).in_half());
    for (name, asked, used) in [
        ("naive", of(8), Some(of(12))),
        ("naive", half(8), Some(half(12))),
        ("naive", of(9), None),
        ("naive", of(13), None),
        ("naive", half(13), None),
        ("asqtad", of(8), Some(of(12))),
        ("asqtad", of(9), Some(of(13))),
        ("asqtad", half(8), Some(half(12))),
        ("hisq", of(8), Some(of(13))),
        ("hisq", of(9), Some(of(13))),
        ("hisq", half(9), Some(half(13))),
        ("hisq", half(8), Some(half(13))),
        ("hisq", of(18), Some(of(18))),
    ] {
        let configuration = Configuration::new(&domain, &case.gauge);
        let precision = Precision::Single;
        let request = Request { precision, reconstruction: asked, tol: 1e-9, ..Request::new(operator(name, params)) };
        let solved = configuration.solve(&sources, None, &request, &mut ());
        let scope = case.scope(asked.name(), name);
        match (solved, used) {
            (Ok((solutions, claim)), Some(used)) => {
                report.holds(&scope, "staggered solve, unit links: reconstruction", claim.reconstruction == used);
                let reference = case.reference(name, MASS, Boundary::Sign(-1.0));
                let residual = reference.residual(&sources[0], &solutions[0]);
                report.error(&scope, "staggered solve, unit links: true residual", residual, request.tol);
            }
            (solved, used) => {
                let both = solved.is_err() && used.is_none();
                report.holds(&scope, "staggered solve, unit links: phases of thin links are refused", both);
            }
        }
    }
    Ok(())
}

/// Checks solves with e^{iπ/T} in all links in t.
fn spread_boundary(case: &StaggeredCase, domain: &Domain, report: &mut CheckReport) -> Result<(), Failure> {
    let sources = case.sources(1);
    for name in OPERATORS {
        let configuration = Configuration::new(domain, &case.gauge);
        let reference = case.reference(name, MASS, Boundary::Spread);
        let params = StaggeredParams::new(MASS, TimeBoundary::Antiperiodic);
        let spread = StaggeredOperator { spread: true, ..operator(name, params) };
        let request = Request::new(spread);
        let (solutions, _) = configuration.solve(&sources, None, &request, &mut ())?;
        let scope = case.scope("double", name);
        let residual = reference.residual(&sources[0], &solutions[0]);
        report.error(&scope, "staggered solve, spread boundary: true residual", residual, request.tol);
        // The solution as an initial guess needs no iteration.
        let (_, again) = configuration.solve(&sources, Some(&solutions), &request, &mut ())?;
        report.holds(&scope, "staggered solve, spread boundary: guess", again.info.iterations == 0);
        let periodic = StaggeredParams { boundary: TimeBoundary::Periodic, ..params };
        let periodic = StaggeredOperator { params: periodic, ..spread };
        let refused = configuration.solve(&sources, None, &Request::new(periodic), &mut ()).is_err();
        report.holds(&scope, "staggered solve, spread boundary: periodic refused", refused);
    }
    Ok(())
}

/// (M†M + σ) x = b and M(m) ψ = η for many σ and m, by multi-shift CG with refinement and one by one. Sources on both
/// parities, on one, and zero.
fn shifts(case: &StaggeredCase, domain: &Domain, report: &mut CheckReport) -> Result<(), Failure> {
    use Precision::{Double, Half, Single};
    let lattice = case.gauge.lattice();
    let mut sources = case.sources(1);
    sources.push(generate::point_colour_source(lattice, [1, 2, 3, 5], 1).expect("inside"));
    sources.push(HostColour::zero(lattice));
    let shifts = [0.3, 0.0, 1e-4, 25.0, 1e-4, 0.02];
    let masses = [0.2, 0.05, 0.5, 0.1];
    for name in OPERATORS {
        let configuration = Configuration::new(domain, &case.gauge);
        for (precision, reconstruction, strategy) in [
            (Double, LinkStorage::of(12), ShiftStrategy::MultiShift),
            (Single, LinkStorage::of(8), ShiftStrategy::MultiShift),
            (Single, LinkStorage::of(12).in_half(), ShiftStrategy::MultiShift),
            (Half, LinkStorage::of(12), ShiftStrategy::MultiShift),
            (Single, LinkStorage::of(8).in_half(), ShiftStrategy::Sequential),
        ] {
            let params = StaggeredParams::new(MASS, TimeBoundary::Antiperiodic);
            let request = Request { precision, reconstruction, tol: 1e-11, ..Request::new(operator(name, params)) };
            let scope = case.scope(&format!("{precision} {reconstruction}"), &format!("{name} {strategy:?}"));
            let (solutions, claim) = configuration.solve_shifts(&sources, &shifts, strategy, &request, &mut ())?;
            let reference = case.reference(name, MASS, Boundary::Sign(-1.0));
            report.holds(&scope, "shifts: converged", claim.converged && !claim.cancelled);
            let kept = claim.reconstruction == possible(name, reconstruction);
            report.holds(&scope, "shifts: reconstruction", kept);
            let first = claim.shifts.iter().all(|shift| shift.iterations > 0);
            report.holds(&scope, "shifts: multi-shift CG was used", first == (strategy == ShiftStrategy::MultiShift));
            for ((sigma, x), outcome) in shifts.iter().zip(&solutions).zip(&claim.shifts) {
                report.holds(&scope, "shifts: in their order", outcome.shift == *sigma);
                for ((b, x), claimed) in sources.iter().zip(x).zip(&outcome.true_residual) {
                    let image = combine(&[(1.0.into(), &reference.normal(x)), ((*sigma).into(), x)]);
                    let residual = combine(&[(1.0.into(), b), ((-1.0).into(), &image)]).norm2().sqrt();
                    let relative = if b.norm2() > 0.0 { residual / b.norm2().sqrt() } else { residual };
                    report.error(&scope, "shifts: true residual", relative, request.tol);
                    // ‖(M†M + σ) x‖ may be κ ‖b‖ before it cancels: here 25 at most.
                    report.error(&scope, "shifts: claimed residual", (relative - claimed).abs(), 1e-13);
                }
            }
            let (solutions, claim) = configuration.solve_masses(&sources, &masses, strategy, &request, &mut ())?;
            report.holds(&scope, "masses: converged", claim.converged);
            for (mass, psi) in masses.iter().zip(&solutions) {
                let reference = case.reference(name, *mass, Boundary::Sign(-1.0));
                for (eta, psi) in sources.iter().zip(psi).filter(|(eta, _)| eta.norm2() > 0.0) {
                    report.error(&scope, "masses: true residual", reference.residual(eta, psi), request.tol);
                }
            }
        }
        // A negative shift that the mass makes up for is fine, one that it does not is refused.
        let params = StaggeredParams::new(MASS, TimeBoundary::Antiperiodic);
        let request = Request::new(operator(name, params));
        let solve = |sigma: f64| {
            configuration.solve_shifts(&sources, &[sigma], ShiftStrategy::MultiShift, &request, &mut ()).map(|(_, r)| r)
        };
        let scope = case.scope("double", name);
        report.holds(&scope, "shifts: negative", solve(-0.5 * MASS * MASS)?.converged);
        report.holds(&scope, "shifts: too negative is refused", solve(-1.1 * MASS * MASS).is_err());
    }
    Ok(())
}

/// Checks solves with the other phases: ψ differs by the sign (−1)^(t (x+y+z)).
pub fn staggered_phases(backend: &dyn Backend, report: &mut CheckReport) -> Result<(), Failure> {
    let case = StaggeredCase::new();
    let domain = Domain::single(backend, case.gauge.lattice())?;
    let sources = case.sources(1);
    for name in OPERATORS {
        let params = StaggeredParams {
            phases: StaggeredPhases::Lexicographic,
            ..StaggeredParams::new(MASS, TimeBoundary::Periodic)
        };
        let request = Request::new(operator(name, params));
        let (solutions, _) = Configuration::new(&domain, &case.gauge).solve(&sources, None, &request, &mut ())?;
        let reference =
            StaggeredDirac { phases: EtaPhases::Standard, ..case.reference(name, MASS, Boundary::Sign(1.0)) };
        let residual = reference.residual(&sources[0], &solutions[0]);
        report.error(&case.scope("double", name), "staggered solve, other phases", residual, request.tol);
    }
    Ok(())
}
