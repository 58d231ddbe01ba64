//! Staggered solves on the CPU: every scheme against the reference, and against what MILC and CL2QCD computed.
use crate::program::{answers, complex};
use ferrite::Precision;
use ferrite::backend::Cpu;
use ferrite::domain::Domain;
use ferrite::field::host::{ColourVector, HostColour, HostGauge};
use ferrite::files::{ReadOptions, read_fermion, read_gauge};
use ferrite::gauge::generate;
use ferrite::gauge::quenched::{Generator, Start};
use ferrite::lattice::Lattice;
use ferrite::operators::{StaggeredOperator, StaggeredParams, StaggeredPhases, TimeBoundary};
use ferrite::solve::{Configuration, Method, Request, ShiftStrategy};
use ferrite_tests::checks;
use ferrite_tests::refdata;
use ferrite_tests::reference::dot;
use ferrite_tests::report::relative_error;
use ferrite_tests::testkit::on_cpu;
use num_complex::Complex64;
use solvers::{Iteration, Observer};
use std::fs;
use std::ops::ControlFlow;

#[test]
fn every_scheme_ends_at_its_tolerance() {
    // The lattice is too small to be shared among threads; tests are.
    on_cpu(checks::staggered_solves);
    on_cpu(checks::staggered_phases);
}

fn cpu(lattice: Lattice) -> Domain {
    Domain::single(Cpu::new(None), lattice).unwrap()
}
fn request(mass: f64, boundary: TimeBoundary, precision: Precision, tol: f64) -> Request {
    Request { precision, tol, ..Request::new(StaggeredParams::new(mass, boundary)) }
}
/// Request for asqtad, antiperiodic in time.
fn asqtad(mass: f64, u0: f64, precision: Precision, tol: f64) -> Request {
    let params = StaggeredParams::new(mass, TimeBoundary::Antiperiodic);
    Request { precision, tol, ..Request::new(StaggeredOperator::asqtad(params, u0)) }
}

const PRECISIONS: [Precision; 3] = [Precision::Double, Precision::Single, Precision::Half];

#[test]
fn milc_solves_alike() {
    let Some(folder) = refdata::folder() else { return };
    let gauge = read_gauge(&folder.join("configs/lat.sample.l8.scidac"), &ReadOptions::default()).unwrap().gauge;
    let read = |name: &str| -> HostColour {
        read_fermion(&folder.join("fields").join(name), &ReadOptions::default()).unwrap().field
    };
    let (source, answer) = (read("ksvector.src.sample.l8"), read("ksvector.ans.MdaggerMinv.sample.l8"));
    let configuration = Configuration::new(&cpu(gauge.lattice()), &gauge);
    for precision in PRECISIONS {
        let request = asqtad(0.1, 0.502, precision, 1e-11);
        let shifts = [0.0, 0.5];
        let (solutions, report) = configuration
            .solve_shifts(std::slice::from_ref(&source), &shifts, ShiftStrategy::MultiShift, &request, &mut ())
            .unwrap();
        assert!(report.converged);
        // MILC's operator is 2 M.
        let mut own = solutions[0].clone();
        own[0].sites_mut().as_flattened_mut().iter_mut().for_each(|z| *z *= 0.25);
        let off = relative_error(&own, std::slice::from_ref(&answer));
        println!("{precision:?}: {off:.1e}, {} iterations", report.shifts[0].iterations);
        assert!(off < 1e-6, "{precision:?}: {off:.1e}");
    }
}

#[test]
fn milc_propagates_alike() {
    let Some(folder) = refdata::folder() else { return };
    let gauge = read_gauge(&folder.join("configs/lat.sample.l4448.ll"), &ReadOptions::default()).unwrap().gauge;
    let lattice = gauge.lattice();
    // After 36 bytes, single-precision numbers [site][source colour][sink colour].
    let bytes = fs::read(folder.join("fields/ks.sample.l4448_m0.0200_t0_x0_y0_z0")).unwrap();
    let real = |at: &[u8]| f64::from(f32::from_le_bytes(at.try_into().unwrap()));
    let stored: Vec<Complex64> = bytes[36..].chunks(8).map(|c| Complex64::new(real(&c[..4]), real(&c[4..]))).collect();
    let propagator = |colour: usize| {
        // MILC's operator is 2 M.
        let site = |x: usize| -> ColourVector { std::array::from_fn(|c| 2.0 * stored[9 * x + 3 * colour + c]) };
        HostColour::from_sites(lattice, (0..lattice.volume()).map(site).collect())
    };
    let sources: Vec<_> = (0..3).map(|c| generate::point_colour_source(lattice, [0; 4], c).unwrap()).collect();
    let expected: Vec<_> = (0..3).map(propagator).collect();
    let configuration = Configuration::new(&cpu(gauge.lattice()), &gauge);
    for precision in PRECISIONS {
        let request = asqtad(0.02, 1.0, precision, 1e-10);
        let (solutions, _) = configuration.solve(&sources, None, &request, &mut ()).unwrap();
        let off = relative_error(&solutions, &expected);
        println!("{precision:?}: {off:.1e}");
        assert!(off < 1e-4, "{precision:?}: {off:.1e}");
        let strategy = ShiftStrategy::MultiShift;
        let (solutions, _) = configuration.solve_masses(&sources, &[0.1, 0.02], strategy, &request, &mut ()).unwrap();
        let off = relative_error(&solutions[1], &expected);
        assert!(off < 1e-4, "{precision:?}, among several masses: {off:.1e}");
    }
}

#[test]
fn cl2qcd_condenses_alike() {
    let Some(folder) = refdata::folder() else { return };
    let expected = complex(&answers(&folder, "cl2qcd_4444.json")["staggered_condensate"]["periodic"]);
    let gauge = read_gauge(&folder.join("configs/cl2qcd_conf.00200"), &ReadOptions::default()).unwrap().gauge;
    let lattice = gauge.lattice();
    let ones = HostColour::from_sites(lattice, vec![[Complex64::ONE; 3]; lattice.volume()]);
    // (tastes / 4 V) b† M⁻¹ b with two tastes and b = 1 everywhere.
    let condensate = |gauge: &HostGauge, boundary: TimeBoundary, spread: bool| {
        let configuration = Configuration::new(&cpu(lattice), gauge);
        let params = StaggeredParams { phases: StaggeredPhases::Lexicographic, ..StaggeredParams::new(0.1, boundary) };
        let request =
            Request { tol: 1e-14, ..Request::new(StaggeredOperator { spread, ..StaggeredOperator::naive(params) }) };
        let (solutions, _) = configuration.solve(std::slice::from_ref(&ones), None, &request, &mut ()).unwrap();
        dot(&ones, &solutions[0]) * 0.5 / lattice.volume() as f64
    };
    let periodic = condensate(&gauge, TimeBoundary::Periodic, false);
    println!("{periodic}");
    assert!((periodic - expected).norm() < 1e-12, "{periodic}");
    let cold = condensate(&HostGauge::unit(lattice), TimeBoundary::Periodic, false);
    assert!((cold - 15.0).norm() < 1e-11, "{cold}");
    // No stored number has these; the plain reference gives them.
    let spread = condensate(&gauge, TimeBoundary::Antiperiodic, true);
    assert!((spread - Complex64::new(0.25968115501532, -0.02196357651206)).norm() < 1e-12, "{spread}");
    let antiperiodic = condensate(&gauge, TimeBoundary::Antiperiodic, false);
    assert!((antiperiodic - Complex64::new(0.21714644387626, 0.00178545784430)).norm() < 1e-12, "{antiperiodic}");
}

/// Block CG takes fewer iterations than CG, in one Krylov space for all sources. It refuses multi-shift solves.
#[test]
fn block_cg_takes_fewer_iterations_than_cg() {
    let domain = cpu(Lattice::new([4, 4, 4, 8]).unwrap());
    let mut generator = Generator::new(&domain, Start::Cold, 5.7, 3).unwrap();
    for _ in 0..20 {
        generator.sweep(1, 4).unwrap();
    }
    let gauge = generator.gauge().unwrap();
    let sources: Vec<_> =
        (0..16).map(|number| generate::noise_source::<ColourVector>(gauge.lattice(), 3, number)).collect();
    let configuration = Configuration::new(&domain, &gauge);
    for precision in PRECISIONS {
        let request = |method| Request { method, ..request(0.005, TimeBoundary::Antiperiodic, precision, 1e-10) };
        let iterations = |method| {
            let (_, report) = configuration.solve(&sources, None, &request(method), &mut ()).unwrap();
            assert!(report.converged && report.true_residual.iter().all(|r| *r <= 1e-10));
            assert!(report.escalations.is_empty(), "{method:?} {precision:?}: {:?}", report.escalations);
            report.info.iterations
        };
        let (plain, block) = (iterations(Method::CG), iterations(Method::BLOCK_CG));
        println!("{precision:?}: CG {plain}, block CG {block} iterations");
        assert!(2 * block < plain, "{precision:?}: {plain} {block}");
    }
    let request =
        Request { method: Method::BLOCK_CG, ..request(0.1, TimeBoundary::Antiperiodic, PRECISIONS[0], 1e-10) };
    let masses = |strategy| configuration.solve_masses(&sources[..3], &[0.1, 0.2], strategy, &request, &mut ());
    let refused = masses(ShiftStrategy::MultiShift).unwrap_err();
    assert!(refused.to_string().contains("ShiftStrategy::Sequential"), "{refused}");
    assert!(masses(ShiftStrategy::Sequential).unwrap().1.converged);
    let request = Request { method: Method::BICGSTAB, ..request };
    let refused = configuration.solve(&sources[..1], None, &request, &mut ()).unwrap_err();
    assert!(refused.to_string().contains("block CG"), "{refused}");
}

/// Stops after some iterations.
struct StopAfter(usize);
impl Observer for StopAfter {
    fn iteration(&mut self, event: &Iteration<'_>) -> ControlFlow<()> {
        if event.iteration >= self.0 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    }
}

#[test]
fn a_solve_for_many_shifts_can_be_stopped() {
    let gauge = generate::weak_field(Lattice::new([4, 4, 4, 8]).unwrap(), 1, 0.3);
    let sources = [generate::random_source::<ColourVector>(gauge.lattice(), 2)];
    let request = asqtad(0.01, 1.0, Precision::Half, 1e-10);
    let configuration = Configuration::new(&cpu(gauge.lattice()), &gauge);
    let solve = |stop: usize| {
        let strategy = ShiftStrategy::MultiShift;
        configuration.solve_shifts(&sources, &[0.0, 0.1], strategy, &request, &mut StopAfter(stop)).unwrap().1
    };
    let whole = solve(usize::MAX);
    assert!(whole.converged && !whole.cancelled);
    // In multi-shift CG, and in the solver that goes on from it.
    let first = whole.shifts[0].iterations / 2;
    for stop in [first / 2, first + whole.shifts[0].refinement_iterations / 4] {
        let stopped = solve(stop);
        assert!(stopped.cancelled && !stopped.converged, "{stop}");
        // Something was reached, and what it is worth is said.
        assert!(stopped.shifts.iter().flat_map(|shift| &shift.true_residual).all(|r| r.is_finite() && *r <= 1.0));
    }
}

/// Powers of two in a source change no bit, also where all shifts are solved together in single precision.
#[test]
fn the_size_of_a_source_does_not_matter() {
    let lattice = Lattice::new([2, 4, 6, 8]).unwrap();
    let (gauge, source) = (generate::weak_field(lattice, 20, 0.2), generate::random_source(lattice, 5));
    let domain = cpu(lattice);
    let configuration = Configuration::new(&domain, &gauge);
    let times = |field: &HostColour, factor: f64| {
        let mut field = field.clone();
        field.sites_mut().as_flattened_mut().iter_mut().for_each(|z| *z *= factor);
        field
    };
    for precision in PRECISIONS {
        let request = request(0.1, TimeBoundary::Antiperiodic, precision, 1e-10);
        let solve = |factor: f64| {
            let sources = [times(&source, factor)];
            let (one, _) = configuration.solve(&sources, None, &request, &mut ()).unwrap();
            let shifts = [0.0, 0.5];
            let solved = configuration.solve_shifts(&sources, &shifts, ShiftStrategy::MultiShift, &request, &mut ());
            let (mut all, report) = solved.unwrap();
            assert!(report.converged, "{precision:?} {factor}");
            all.push(one);
            all
        };
        let usual = solve(1.0);
        for factor in [2f64.powi(-84), 2f64.powi(84)] {
            for (found, expected) in solve(factor).iter().zip(&usual) {
                assert_eq!(times(&found[0], 1.0 / factor), expected[0], "{precision:?} {factor}");
            }
        }
    }
}

/// Sources, or parts of them on one parity, whose squares double precision does not hold.
#[test]
fn shifts_of_sources_of_any_size() {
    let lattice = Lattice::new([2, 4, 4, 4]).unwrap();
    let gauge = generate::weak_field(lattice, 20, 0.2);
    let domain = cpu(lattice);
    let configuration = Configuration::new(&domain, &gauge);
    let source = generate::random_source::<ColourVector>(lattice, 5);
    let times = |field: &HostColour, exponent: i32, parity: Option<usize>| {
        let mut field = field.clone();
        for (index, site) in field.sites_mut().iter_mut().enumerate() {
            let on = parity.is_none_or(|parity| lattice.coordinates(index).iter().sum::<usize>() % 2 == parity);
            site.iter_mut().filter(|_| on).for_each(|z| *z *= 2f64.powi(exponent));
        }
        field
    };
    let shifts = [0.0, 0.3];
    for strategy in [ShiftStrategy::MultiShift, ShiftStrategy::Sequential] {
        for precision in PRECISIONS {
            let request = asqtad(0.2, 0.9, precision, 1e-9);
            let solve = |sources: &[HostColour]| {
                configuration.solve_shifts(sources, &shifts, strategy, &request, &mut ()).unwrap()
            };
            let (usual, expected) = solve(&[source.clone(), source.clone()]);
            for exponent in [-700, 700] {
                let case = format!("{strategy:?} {precision:?} 2^{exponent}");
                let (solutions, report) = solve(&[times(&source, exponent, None), source.clone()]);
                assert!(report.converged, "{case}");
                for i in 0..2 {
                    assert_eq!(report.shifts[i].true_residual, expected.shifts[i].true_residual, "{case}");
                    assert_eq!(times(&solutions[i][0], -exponent, None), usual[i][0], "{case}");
                    assert_eq!(solutions[i][1], usual[i][1], "{case}");
                }
            }
            // M†M does not mix the parities: the other part is solved as it was, and what adds nothing is no obstacle.
            for (exponent, parity) in [(-700, 0), (-700, 1), (-350, 1)] {
                let (solutions, report) = solve(&[times(&source, exponent, Some(parity)), source.clone()]);
                assert!(report.converged, "{strategy:?} {precision:?} {exponent} {parity}: {report:?}");
                let rest = |field: &HostColour| [times(field, -2000, Some(parity))];
                let error = relative_error(&rest(&solutions[1][0]), &rest(&usual[1][0]));
                assert!(error < 1e-8, "{strategy:?} {precision:?}: {error}");
            }
        }
    }
}
