//! The Wilson-clover operator and anisotropic lattices: kernels against the reference, the clover term against the
//! plaquettes it is made of, symmetries, solves, and propagators that Chroma computed.
use crate::program::{self, list, number, numbers};
use ferrite::backend::Cpu;
use ferrite::domain::Domain;
use ferrite::field::host::{HostGauge, HostSpinor, Matrix, Spinor};
use ferrite::field::{DeviceGauge, FieldShape, FullField, GaugeField};
use ferrite::files::{ReadOptions, read_gauge};
use ferrite::gauge::generate;
use ferrite::operators::Operator;
use ferrite::operators::{
    Anisotropy, BlockOperator, CloverParams, DiagonalForm, EvenOdd, EvenOddWilson, Schur, TimeBoundary, Wilson,
    WilsonLike, WilsonParams,
};
use ferrite::solve::{Method, Request, SolveFailure, solve};
use ferrite::{LinkStorage, Precision};
use ferrite_tests::checks::{self, Case, SCHUR_KINDS};
use ferrite_tests::clover_reference::{CloverDirac, SiteMatrix, column, path, sigma};
use ferrite_tests::refdata;
use ferrite_tests::reference::{WilsonDirac, colour_multiply, field, gamma5, norm2, transform_links};
use ferrite_tests::report::relative_error;
use ferrite_tests::smearing_reference;
use ferrite_tests::testkit::matrix::{adjoint, exponential, from_elements, multiply, scale, trace};
use ferrite_tests::testkit::{lattice, on_cpu, point_sources};
use num_complex::Complex64;
use serde_json::Value;
use std::path::Path;
use std::sync::Arc;

#[test]
fn kernels_agree_with_the_reference_on_small_lattices() {
    on_cpu(|backend, report| {
        checks::clover_cases().iter().try_for_each(|case| checks::clover_kernels(backend, case, report))
    });
}

#[test]
fn kernels_agree_with_the_reference_on_a_larger_lattice() {
    on_cpu(checks::large_clover_kernels);
}

#[test]
fn every_solve_ends_at_its_tolerance() {
    let case = Case::new(generate::weak_field(lattice([4, 4, 2, 6]), 21, 0.2), 300);
    on_cpu(|backend, report| checks::clover_solves(backend, &case, 0.1, report));
}

/// The operator by kernels in double, with all 18 reals.
fn operator(gauge: &HostGauge, params: &CloverParams, nrhs: usize) -> EvenOddWilson {
    let domain = Domain::single(Cpu::new(None), gauge.lattice()).unwrap();
    let links = Arc::new(DeviceGauge::upload(&domain, gauge, Precision::Double, LinkStorage::FULL).unwrap());
    let term = Arc::new(params.term(&GaugeField::upload(&domain, gauge).unwrap()).unwrap());
    EvenOddWilson::with_diagonal(Wilson::new(links, params.wilson), term, Schur::Symmetric, nrhs).unwrap()
}

/// Uploads, computes something for each parity, downloads.
fn parities(
    domain: &Domain,
    input: &[HostSpinor],
    each: impl Fn(usize, &FullField, &mut FullField),
) -> Vec<HostSpinor> {
    let zero = || FullField::zero(domain, FieldShape::spinors(Precision::Double, input.len())).unwrap();
    let (mut psi, mut out) = (zero(), zero());
    psi.upload(input).unwrap();
    for parity in 0..2 {
        each(parity, &psi, &mut out);
    }
    out.download().unwrap()
}

/// M ψ or M† ψ by kernels.
fn apply(gauge: &HostGauge, params: &CloverParams, dagger: bool, psi: &[HostSpinor]) -> Vec<HostSpinor> {
    let operator = operator(gauge, params, psi.len());
    parities(operator.domain(), psi, |parity, psi, out| {
        operator.apply_parity(parity, dagger, psi, out.parity_mut(parity)).unwrap()
    })
}

/// A or A⁻¹ of every site, by kernels.
fn term(gauge: &HostGauge, params: &CloverParams, inverse: bool) -> Vec<SiteMatrix> {
    let operator = operator(gauge, params, 12);
    let columns: Vec<_> = (0..12).map(|j| column(gauge, j)).collect();
    let images = parities(operator.domain(), &columns, |parity, psi, out| {
        operator
            .apply_diagonal(DiagonalForm { parity, inverse, dagger: false }, psi.parity(parity), out.parity_mut(parity))
            .unwrap();
    });
    let element = |x: usize, i: usize, j: usize| images[j].sites()[x][i / 3][i % 3];
    let matrix = |x| from_elements(|i, j| element(x, i, j));
    (0..gauge.lattice().volume()).map(matrix).collect()
}

/// F̂_μν from A: the part along σ_μν, which the others are orthogonal to, without its factor (i/2) c.
fn field_strength(a: &SiteMatrix, mu: usize, nu: usize, c: f64) -> Matrix {
    let sigma = sigma(mu, nu);
    let trace = |row: usize, column: usize| -> Complex64 {
        (0..16).map(|k| sigma[k / 4][k % 4] * a[3 * (k % 4) + row][3 * (k / 4) + column]).sum()
    };
    from_elements(|row, column| trace(row, column) / 4.0 / Complex64::new(0.0, 0.5 * c))
}

/// The eight Hermitian generators of SU(3): Gell-Mann's λ.
fn generators() -> Vec<Matrix> {
    let mut all = Vec::new();
    for (i, j) in [(0, 1), (0, 2), (1, 2)] {
        let (mut a, mut b) = (Matrix::default(), Matrix::default());
        (a[i][j], a[j][i]) = (1.0.into(), 1.0.into());
        (b[i][j], b[j][i]) = (Complex64::new(0.0, -1.0), Complex64::new(0.0, 1.0));
        all.extend([a, b]);
    }
    for diagonal in [[1.0, -1.0, 0.0], [1.0, 1.0, -2.0]] {
        let size = if diagonal[2] == 0.0 { 1.0 } else { 3f64.sqrt() };
        let mut a = Matrix::default();
        (0..3).for_each(|i| a[i][i] = (diagonal[i] / size).into());
        all.push(a);
    }
    all
}

/// Σ Re tr of the four plaquettes that touch x in the plane (μ, ν), each from its lower corner, so that none of the
/// leaves' orientations enters.
fn plaquettes_around(gauge: &HostGauge, x: usize, mu: usize, nu: usize) -> f64 {
    let lattice = gauge.lattice();
    let down = |x, mu| lattice.neighbour(x, mu, false);
    let corners = [x, down(x, mu), down(x, nu), down(down(x, mu), nu)];
    let loops = corners.map(|y| path(gauge, y, &[(mu, true), (nu, true), (mu, false), (nu, false)]));
    loops.iter().map(|p| trace(p).re).sum()
}

/// Σ Re tr of the plaquettes around x in the plane (μ, ν) after the gauge field has grown by δA_ν(x ± μ̂) = ± ε λ on
/// the two ν-links that begin and the two that end there, with λ transported from x to the lower end of each.
fn action(gauge: &HostGauge, x: usize, (mu, nu): (usize, usize), lambda: &Matrix, epsilon: f64) -> f64 {
    let lattice = gauge.lattice();
    let mut grown = gauge.clone();
    for (ahead, sign) in [(true, 1.0), (false, -1.0)] {
        let beside = lattice.neighbour(x, mu, ahead);
        let upper = (beside, vec![(mu, ahead)]);
        let lower = (lattice.neighbour(beside, nu, false), vec![(nu, false), (mu, ahead)]);
        for (start, way) in [upper, lower] {
            let transport = path(gauge, x, &way);
            let there = multiply(&multiply(&adjoint(&transport), lambda), &transport);
            grown.links_mut()[4 * start + nu] =
                multiply(&exponential(&scale(Complex64::new(0.0, sign * epsilon), &there)), gauge.link(start, nu));
        }
    }
    plaquettes_around(&grown, x, mu, nu)
}

/// F̂ is the response of the plaquette action to a field strength: the change of the links above is F_μν = ∂_μ A_ν of
/// direction +λ in each of the four plaquettes around x, and every plaquette has one of the links for itself, so that
/// d/dε Σ Re tr P = Re tr iλ Q = 4 Re tr iλ F̂. The left side is a numerical derivative of plaquettes, which know
/// nothing of leaves; the right side comes out of the kernels' clover term. This fixes sign, orientation and normalisation of
/// the leaves in all planes.
#[test]
fn clover_term_is_the_derivative_of_the_plaquettes() {
    let lattice = lattice([4, 4, 4, 6]);
    let gauge = generate::random(lattice, 8);
    let wilson = WilsonParams::from_mass(0.2, TimeBoundary::Antiperiodic);
    let anisotropic = WilsonParams { anisotropy: Anisotropy { xi: 2.464, nu: 0.95 }, ..wilson };
    for (params, space, time) in [
        (CloverParams::isotropic(wilson, 1.2, 0.9), 1.2 / 0.729, 1.2 / 0.729),
        (CloverParams::anisotropic(anisotropic, 0.91, 1.07), 0.91 / 2.464, 1.07),
    ] {
        let terms = term(&gauge, &params, false);
        for x in [0, 77, lattice.volume() - 1] {
            for plane in [(0, 1), (0, 2), (1, 2), (0, 3), (1, 3), (2, 3), (1, 0), (3, 0), (3, 2), (2, 1)] {
                let c = if plane.0.max(plane.1) == 3 { time } else { space };
                let f = field_strength(&terms[x], plane.0, plane.1, c);
                for (k, lambda) in generators().iter().enumerate() {
                    // Five points: off by h⁴ and by roundings over h.
                    let h = 1e-3;
                    let slope = |h| action(&gauge, x, plane, lambda, h) - action(&gauge, x, plane, lambda, -h);
                    let numerical = (8.0 * slope(h) - slope(2.0 * h)) / (12.0 * h);
                    let analytic = 4.0 * (Complex64::I * trace(&multiply(lambda, &f))).re;
                    assert!(
                        (numerical - analytic).abs() < 1e-9,
                        "plane {plane:?}, site {x}, generator {k}: {numerical} from plaquettes, {analytic} from A"
                    );
                }
            }
        }
    }
}

/// Every plaquette of a constant Abelian field B in one plane is e^{iBq}, so that F̂ = i sin Bq and A = d − ½ c σ_μν sin Bq.
#[test]
fn constant_fields_have_their_term_and_inverse() {
    let lattice = lattice([6, 4, 6, 8]);
    let charges = [1.0, 1.0, -2.0];
    let params = CloverParams { wilson: WilsonParams::from_mass(0.1, Default::default()), space: 0.7, time: 1.3 };
    for mu in 0..4 {
        for nu in (0..4).filter(|nu| *nu != mu) {
            let b = std::f64::consts::TAU / lattice.size()[mu] as f64;
            let mut gauge = HostGauge::unit(lattice);
            for x in 0..lattice.volume() {
                let phase = b * lattice.coordinates(x)[mu] as f64;
                let link = &mut gauge.links_mut()[4 * x + nu];
                (0..3).for_each(|a| link[a][a] = Complex64::cis(charges[a] * phase));
            }
            let c = if mu == 3 || nu == 3 { params.time } else { params.space };
            let (a, inverse) = (term(&gauge, &params, false), term(&gauge, &params, true));
            let sigma = sigma(mu, nu);
            for x in 0..lattice.volume() {
                for i in 0..12 {
                    for j in 0..12 {
                        let delta = |a: usize, b: usize| f64::from(a == b);
                        let sine = if i % 3 == j % 3 { (b * charges[i % 3]).sin() } else { 0.0 };
                        let expected = 4.1 * delta(i, j) - 0.5 * c * sine * sigma[i / 3][j / 3];
                        assert!((a[x][i][j] - expected).norm() < 1e-14, "plane {mu}{nu}, site {x}, {i} {j}");
                        // σ² = 1.
                        let h = 0.5 * c * sine;
                        let h = if i % 3 == j % 3 { h } else { 0.0 };
                        let expected = (4.1 * delta(i, j) + h * sigma[i / 3][j / 3]) / (4.1 * 4.1 - h * h);
                        assert!((inverse[x][i][j] - expected).norm() < 1e-14, "inverse, {mu}{nu}, {x}, {i} {j}");
                    }
                }
            }
        }
    }
}

#[test]
fn the_term_is_the_diagonal_on_the_free_field() {
    let lattice = lattice([2, 4, 4, 2]);
    for params in checks::parameters(0.3) {
        for (inverse, expected) in [(false, params.wilson.diagonal()), (true, 1.0 / params.wilson.diagonal())] {
            for a in term(&HostGauge::unit(lattice), &params, inverse) {
                for (k, element) in a.iter().flatten().enumerate() {
                    let expected = if k / 12 == k % 12 { expected } else { 0.0 };
                    assert!((element - expected).norm() < 1e-15);
                }
            }
        }
        // And so the operator is Wilson's.
        let gauge = HostGauge::unit(lattice);
        let psi = generate::random_source(lattice, 1);
        let space = params.wilson.anisotropy.space();
        let wilson = WilsonDirac { space, ..WilsonDirac::new(&gauge, 0.3, params.wilson.boundary.sign()) };
        let off =
            relative_error(&apply(&gauge, &params, false, std::slice::from_ref(&psi)), &[wilson.apply(false, &psi)]);
        assert!(off < 1e-15, "{off:.1e}");
    }
}

#[test]
fn the_operator_is_gamma5_hermitian_and_gauge_covariant() {
    let lattice = lattice([4, 2, 6, 4]);
    let gauge = generate::random(lattice, 2);
    let psi = generate::random_source(lattice, 3);
    let g: Vec<_> = generate::random(lattice, 9).links().iter().copied().step_by(4).collect();
    let transform = |psi: &HostSpinor| field(lattice, |x| colour_multiply(&g[x], &psi.sites()[x]));
    let rotated = transform_links(&gauge, &g);
    for params in checks::parameters(0.1) {
        let m = apply(&gauge, &params, false, &[gamma5(&psi), psi.clone()]);
        let dagger = apply(&gauge, &params, true, std::slice::from_ref(&psi));
        let off = relative_error(&dagger, &[gamma5(&m[0])]);
        assert!(off < 1e-15, "γ5: {off:.1e}");
        let off = relative_error(&apply(&rotated, &params, false, &[transform(&psi)]), &[transform(&m[1])]);
        assert!(off < 2e-15, "gauge: {off:.1e}");
    }
}

/// Solves near and beyond the limit of what can be solved. Each ends with the requested residual, by the reference, or with an error that
/// has a reason and with the true residual of the best iterate. Nothing panics or claims too much.
#[test]
fn ill_conditioned_solves_end_honestly() {
    let lattice = lattice([4, 4, 4, 4]);
    let domain = Domain::single(Cpu::new(None), lattice).unwrap();
    let eta = generate::random_source(lattice, 2);
    let mut ends = [0, 0];
    let mut solve = |gauge: &HostGauge, params: CloverParams, solvable: Option<bool>| {
        let reference = CloverDirac::from_params(gauge, &params);
        for precision in [Precision::Double, Precision::Single, Precision::Half, Precision::Fp16] {
            for (method, schur) in [(Method::BICGSTAB, Schur::Symmetric), (Method::CG, Schur::Asymmetric)] {
                let operator = Operator::from(params.with_schur(schur));
                let request = Request { precision, method, max_iterations: Some(300), ..Request::new(operator) };
                let name = format!("{precision:?} {method:?} {schur:?} m = {}", params.wilson.mass);
                let (psi, report) = match solve(&domain, gauge, std::slice::from_ref(&eta), &request, &mut ()) {
                    Ok((psi, report)) => {
                        assert!(report.converged == (report.true_residual[0] <= request.tol), "{name}");
                        (psi, report)
                    }
                    Err(SolveFailure::Unfinished { error, solutions, report }) => {
                        assert!(!report.converged, "{name}");
                        println!("{name}: {error}");
                        (solutions, *report)
                    }
                    Err(error) => panic!("{name}: {error}"),
                };
                let (residual, claimed) = (reference.residual(&eta, &psi[0]), report.true_residual[0]);
                // A residual is a difference of numbers as large as M ψ.
                let rounding = 1e-14 * (1.0 + 10.0 * (norm2(&psi[0]) / norm2(&eta)).sqrt());
                assert!((residual - claimed).abs() <= rounding, "{name}: {residual:.3e}, claimed {claimed:.3e}");
                assert!(!report.converged || residual <= request.tol + rounding, "{name}: {residual:.3e}");
                if let Some(solvable) = solvable {
                    assert_eq!(report.converged, solvable, "{name}: {residual:.3e}");
                }
                ends[usize::from(report.converged)] += 1;
            }
        }
    };
    let clover = |mass| CloverParams::isotropic(WilsonParams::from_mass(mass, TimeBoundary::Periodic), 1.0, 1.0);
    // Constant spinors are zero modes.
    solve(&HostGauge::unit(lattice), clover(0.0), Some(false));
    let gauge = generate::weak_field(lattice, 4, 0.25);
    for mass in [-0.1, -0.3, -0.45, -0.6, -1.0] {
        solve(&gauge, clover(mass), None);
    }
    solve(&gauge, clover(0.3), Some(true));
    assert!(ends.iter().all(|n| *n > 0), "{ends:?}");
}

/// d = 0 on unit links: A has no inverse.
#[test]
fn a_singular_term_is_an_error() {
    let lattice = lattice([4, 4, 4, 4]);
    let domain = Domain::single(Cpu::new(None), lattice).unwrap();
    let eta = generate::random_source::<Spinor>(lattice, 2);
    let params = CloverParams::isotropic(WilsonParams::from_mass(-4.0, TimeBoundary::Periodic), 1.0, 1.0);
    for precision in [Precision::Double, Precision::Single, Precision::Half, Precision::Fp16] {
        for (method, schur) in [(Method::BICGSTAB, Schur::Symmetric), (Method::CG, Schur::Asymmetric)] {
            let request = Request { precision, method, ..Request::new(Operator::from(params.with_schur(schur))) };
            let result = solve(&domain, &HostGauge::unit(lattice), std::slice::from_ref(&eta), &request, &mut ());
            match result {
                Ok((_, report)) => assert!(!report.converged, "{precision:?} {method:?}"),
                Err(error) => println!("{precision:?} {method:?}: {error}"),
            }
        }
    }
}

/// Chroma's configuration WEAK_FIELD on 4³×8 and one of the JSON files with its answers.
fn chroma(folder: &Path, answers: &str) -> (HostGauge, Value) {
    let gauge = read_gauge(&folder.join("configs/pyquda_weak_field.lime"), &ReadOptions::default()).unwrap().gauge;
    (gauge, program::answers(folder, answers))
}

/// A point at the origin, smeared with w = 2 and n = 5 on the given links, for every spin and colour.
fn shell_sources(links: &HostGauge) -> Vec<HostSpinor> {
    let points = point_sources(links.lattice(), [0; 4]);
    points.iter().map(|point| smearing_reference::gaussian(links, point, 2.0, 5, [0.0; 3])).collect()
}

/// Σ |ψ|² over a time slice and all fields.
fn norms_in_time(fields: &[HostSpinor]) -> Vec<f64> {
    let lattice = fields[0].lattice();
    let mut norms = vec![0.0; lattice.size()[3]];
    for psi in fields {
        for (x, site) in psi.sites().iter().enumerate() {
            norms[lattice.coordinates(x)[3]] += site.iter().flatten().map(|z| z.norm_sqr()).sum::<f64>();
        }
    }
    norms
}

/// The largest |a / b − 1|.
fn deviation(a: &[f64], b: &[f64]) -> f64 {
    assert_eq!(a.len(), b.len());
    a.iter().zip(b).map(|(a, b)| if *b == 0.0 { a.abs() } else { (a / b - 1.0).abs() }).fold(0.0, f64::max)
}

/// M⁻¹ of the sources, all 12 at once; the residuals are checked by the reference.
fn propagator(
    gauge: &HostGauge,
    operator: Operator,
    (precision, method): (Precision, &'static Method),
    eta: &[HostSpinor],
) -> Vec<HostSpinor> {
    let domain = Domain::single(Cpu::new(None), gauge.lattice()).unwrap();
    // The links of the file are in SU(3) to 1e-7 and not to the last digit: all 18 reals.
    let reconstruction = LinkStorage::FULL;
    let request = Request { tol: 1e-11, precision, method, reconstruction, ..Request::new(&operator) };
    let (psi, report) = solve(&domain, gauge, eta, &request, &mut ()).unwrap();
    assert!(report.converged);
    let Some(&like) = operator.parameters::<WilsonLike>() else { panic!("{operator:?}") };
    // Zeros for Wilson.
    let [space, time, ..] = like.coefficients;
    let params = CloverParams { wilson: like.wilson, space, time };
    let reference = CloverDirac::from_params(gauge, &params);
    for (eta, psi) in eta.iter().zip(&psi) {
        let residual = reference.residual(eta, psi);
        assert!(residual <= request.tol * 1.001, "{residual:.1e}");
    }
    psi
}

/// Chroma's `prec_wilson` and `prec_clover` on an anisotropic lattice, κ meaning m = 1/(2κ) − 4: norms of the
/// propagator per time slice. Chroma ran in single precision. On so weak a field the mass of `prec_wilson`, −0.296, is
/// far below the critical one and the spectrum of M surrounds zero: BiCGstab in half precision gives up there; CG, which Chroma used,
/// does not mind.
#[test]
fn chroma_propagators_on_an_anisotropic_lattice() {
    let Some(folder) = refdata::folder() else { return };
    let (gauge, answers) = chroma(&folder, "chroma_weakfield_4448.json");
    let sources = shell_sources(&gauge);
    let wilson = |kappa: f64| WilsonParams {
        anisotropy: Anisotropy { xi: 2.464, nu: 0.95 },
        ..WilsonParams::from_kappa(kappa, TimeBoundary::Antiperiodic)
    };
    let clover = CloverParams::anisotropic(wilson(0.115), 0.91, 1.07);
    for (name, operators) in [
        ("prec_wilson", vec![Operator::from(wilson(0.135))]),
        ("prec_clover", SCHUR_KINDS.map(|schur| Operator::from(clover.with_schur(schur))).to_vec()),
    ] {
        let expected = &answers["data"][name];
        let off = deviation(&norms_in_time(&sources), &numbers(&expected["source_corr"]));
        println!("{name}: source {off:.1e}");
        assert!(off < 1e-6, "{name}: source {off:.1e}");
        for operator in &operators {
            for how in [(Precision::Double, Method::BICGSTAB), (Precision::Half, Method::CG)] {
                let psi = propagator(&gauge, operator.clone(), how, &sources);
                let off = deviation(&norms_in_time(&psi), &numbers(&expected["prop_corr"]));
                println!("{name} by {how:?}: {off:.1e}");
                assert!(off < 1e-6, "{name} by {how:?}: {off:.1e}");
            }
        }
    }
}

/// Chroma's `hadspec`: the pion on an isotropic lattice, from a shell on APE-smeared links, with a point and with the
/// same shell at the sink: Σ_x tr S S† = Σ |S|².
#[test]
fn chroma_pion_from_a_shell_on_smeared_links() {
    let Some(folder) = refdata::folder() else { return };
    let (gauge, answers) = chroma(&folder, "chroma_hadspec_pion_4448.json");
    let links = smearing_reference::ape(&gauge, 2.5, 1);
    let params = WilsonParams::from_kappa(0.11, TimeBoundary::Antiperiodic);
    let psi = propagator(&gauge, params.into(), (Precision::Single, Method::BICGSTAB), &shell_sources(&links));
    let smeared: Vec<_> = psi.iter().map(|psi| smearing_reference::gaussian(&links, psi, 2.0, 5, [0.0; 3])).collect();
    // Single precision, which agrees with an independent double-precision program to 6.6e-6 (README.md of the data); the five
    // steps of the shell at the sink make rounding errors up to 1.4 times larger each.
    for (name, fields, limit) in
        [("Shell_Point_Wilson_Mesons", &psi, 7e-6), ("Shell_Shell_Wilson_Mesons", &smeared, 2e-5)]
    {
        let expected: Vec<f64> = list(&answers["data"][name]["15"]).iter().map(|z| number(&z[0])).collect();
        let off = deviation(&norms_in_time(fields), &expected);
        println!("{name}: {off:.1e}");
        assert!(off < limit, "{name}: {off:.1e}");
    }
}
