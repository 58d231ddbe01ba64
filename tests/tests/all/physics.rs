//! Properties that hold whatever the implementation: symmetries of the operator, the free field, and solutions that are solutions by the
//! reference operator.
use ferrite::backend::Cpu;
use ferrite::domain::Domain;
use ferrite::field::host::{HostGauge, HostSpinor};
use ferrite::field::{DeviceGauge, FieldShape, FullField};
use ferrite::files::{ReadOptions, read_gauge};
use ferrite::gauge::generate;
use ferrite::operators::{TimeBoundary, Wilson, WilsonParams};
use ferrite::solve::{Method, Request, solve};
use ferrite::{LinkStorage, Precision};
use ferrite_tests::accuracy::Accuracy;
use ferrite_tests::checks::{self, Case};
use ferrite_tests::formats::{self, LinkFormat};
use ferrite_tests::links::hopping;
use ferrite_tests::refdata;
use ferrite_tests::reference::{
    WilsonDirac, adjoint, colour_multiply, field, free_propagator, gamma5, norm2, transform_links,
};
use ferrite_tests::report::{relative_error, worst_error};
use ferrite_tests::testkit::lattice;
use ferrite_tests::testkit::on_cpu;
use std::sync::Arc;

const BOUNDARIES: [TimeBoundary; 2] = [TimeBoundary::Periodic, TimeBoundary::Antiperiodic];

/// M ψ or M† ψ by kernels.
fn apply(
    (precision, storage): LinkFormat,
    gauge: &HostGauge,
    params: WilsonParams,
    dagger: bool,
    psi: &[HostSpinor],
) -> Vec<HostSpinor> {
    let domain = Domain::single(Cpu::new(None), gauge.lattice()).unwrap();
    let wilson = Wilson::new(Arc::new(DeviceGauge::upload(&domain, gauge, precision, storage).unwrap()), params);
    let zero = || FullField::zero(&domain, FieldShape::spinors(precision, psi.len())).unwrap();
    let (mut input, mut output) = (zero(), zero());
    input.upload(psi).unwrap();
    wilson.full(dagger, &input, &mut output).unwrap();
    output.download().unwrap()
}

/// Every precision × storage, but for links in temporal gauge.
fn every_format() -> impl Iterator<Item = LinkFormat> {
    formats::wilson().into_iter().filter(|(_, storage)| !storage.temporal)
}

#[test]
fn matrix_elements_are_gamma5_hermitian() {
    let lattice = lattice([2, 2, 2, 4]);
    let gauge = generate::random(lattice, 1);
    let n = 12 * lattice.volume();
    let unit = |k: usize| generate::point_source(lattice, lattice.coordinates(k / 12), k / 3 % 4, k % 3).unwrap();
    let columns: Vec<HostSpinor> = (0..n).map(unit).collect();
    let element = |column: &HostSpinor, k: usize| column.sites()[k / 12][k / 3 % 4][k % 3];
    let sign = |k: usize| if k / 3 % 4 < 2 { 1.0 } else { -1.0 };
    let format = (Precision::Double, LinkStorage::FULL);
    for boundary in BOUNDARIES {
        let params = WilsonParams::from_mass(-0.2, boundary);
        let m = apply(format, &gauge, params, false, &columns);
        let dagger = apply(format, &gauge, params, true, &columns);
        for j in 0..n {
            for i in 0..n {
                let (a, b) = (element(&m[j], i), element(&dagger[i], j));
                assert!((a.conj() - b).norm() < 1e-15, "M†_{j}{i} = {b}, M_{i}{j} = {a}");
                let c = sign(i) * sign(j) * element(&m[i], j);
                assert!((b - c).norm() < 1e-15, "M†_{j}{i} = {b}, (γ5 M γ5)_{j}{i} = {c}");
            }
        }
    }
}

#[test]
fn dagger_kernels_are_gamma5_m_gamma5() {
    let gauge = generate::random(lattice([4, 2, 6, 4]), 2);
    let psi = [generate::random_source(gauge.lattice(), 3)];
    for format in every_format() {
        let tol = hopping(&gauge, format);
        for boundary in BOUNDARIES {
            let params = WilsonParams::from_mass(0.1, boundary);
            let dagger = apply(format, &gauge, params, true, &psi);
            let m = apply(format, &gauge, params, false, &[gamma5(&psi[0])]);
            // Both sides have the error of storing the input too.
            let off = relative_error(&dagger, &[gamma5(&m[0])]);
            let allowed = 2.0 * tol.relative + format.0.sum().relative;
            assert!(off <= allowed, "{}: {off} > {allowed}", formats::name(format));
        }
    }
}

#[test]
fn the_operator_is_gauge_covariant() {
    let gauge = generate::weak_field(lattice([4, 4, 2, 6]), 5, 0.3);
    let lattice = gauge.lattice();
    let g: Vec<_> = generate::random(lattice, 9).links().iter().copied().step_by(4).collect();
    let transform = |psi: &HostSpinor| field(lattice, |x| colour_multiply(&g[x], &psi.sites()[x]));
    let rotated = transform_links(&gauge, &g);
    let psi = generate::random_source(lattice, 4);
    for format in every_format() {
        let tol = hopping(&gauge, format).relative + hopping(&rotated, format).relative;
        for boundary in BOUNDARIES {
            let params = WilsonParams::from_mass(0.1, boundary);
            let here = transform(&apply(format, &gauge, params, false, std::slice::from_ref(&psi))[0]);
            let there = apply(format, &rotated, params, false, &[transform(&psi)]);
            let (off, allowed) = (relative_error(&there, &[here]), tol + 2.0 * format.0.sum().relative);
            assert!(off <= allowed, "{}: {off} > {allowed}", formats::name(format));
        }
    }
}

#[test]
fn the_operator_is_translation_invariant() {
    let lattice = lattice([4, 2, 6, 4]);
    let (gauge, psi) = (generate::random(lattice, 6), generate::random_source(lattice, 7));
    let size = lattice.size();
    // One step exchanges the parities, two do not; 2 in t carries two time slices across the boundary.
    for shift in [[1, 0, 0, 0], [0, 1, 2, 0], [2, 1, 3, 2], [0, 0, 0, 1]] {
        // Where a site comes from, and whether it came across the end in t.
        let origin = |x: usize| {
            let to = lattice.coordinates(x);
            let from: [usize; 4] = std::array::from_fn(|mu| (to[mu] + size[mu] - shift[mu]) % size[mu]);
            (lattice.index(from), to[3] < shift[3])
        };
        let links = (0..4 * lattice.volume()).map(|k| *gauge.link(origin(k / 4).0, k % 4)).collect();
        let moved = HostGauge::from_links(lattice, links);
        for boundary in BOUNDARIES {
            let translate = |psi: &HostSpinor| {
                field(lattice, |x| {
                    let (from, across) = origin(x);
                    let sign = if across && boundary == TimeBoundary::Antiperiodic { -1.0 } else { 1.0 };
                    psi.sites()[from].map(|spin| spin.map(|z| sign * z))
                })
            };
            let params = WilsonParams::from_mass(0.1, boundary);
            let format = (Precision::Double, LinkStorage::of(12));
            let here = translate(&apply(format, &gauge, params, false, std::slice::from_ref(&psi))[0]);
            let there = apply(format, &moved, params, false, &[translate(&psi)]);
            assert!(relative_error(&there, &[here]) < 1e-15, "{shift:?} {boundary:?}");
        }
    }
}

#[test]
fn free_propagator_is_the_sum_over_momenta() {
    let lattice = lattice([4, 6, 4, 8]);
    let gauge = HostGauge::unit(lattice);
    let domain = Domain::single(Cpu::new(None), lattice).unwrap();
    let mass = 0.2;
    for boundary in BOUNDARIES {
        let params = WilsonParams::from_mass(mass, boundary);
        for (site, spin, colour) in [([0, 0, 0, 0], 0, 0), ([1, 5, 2, 6], 3, 2)] {
            let source = generate::point_source(lattice, site, spin, colour).unwrap();
            let antiperiodic = boundary == TimeBoundary::Antiperiodic;
            let expected = free_propagator(lattice, mass, antiperiodic, site, (spin, colour));
            // The formula is a solution to rounding, the solve to its tolerance times ‖M⁻¹‖ ≤ 1 / m.
            let time_sign = if antiperiodic { -1.0 } else { 1.0 };
            let residual = WilsonDirac::new(&gauge, mass, time_sign).residual(&source, &expected);
            assert!(residual < 1e-14, "the formula: {residual:.1e}");
            for precision in [Precision::Double, Precision::Half] {
                let request = Request { precision, tol: 1e-12, ..Request::new(params) };
                let (psi, _) = solve(&domain, &gauge, std::slice::from_ref(&source), &request, &mut ()).unwrap();
                let off = relative_error(&psi, std::slice::from_ref(&expected));
                assert!(off < 1e-12 / mass / norm2(&expected).sqrt(), "{boundary:?} {site:?}: {off:.1e}");
            }
        }
    }
}

#[test]
fn preconditioned_solves_agree_with_the_reference_solver() {
    let lattice = lattice([4, 2, 4, 6]);
    let gauge = generate::weak_field(lattice, 11, 0.3);
    let domain = Domain::single(Cpu::new(None), lattice).unwrap();
    let eta = generate::random_source(lattice, 12);
    for (boundary, time_sign) in BOUNDARIES.into_iter().zip([1.0, -1.0]) {
        let expected = WilsonDirac::new(&gauge, 0.1, time_sign).solve(&eta, 1e-12);
        let request = Request { tol: 1e-12, ..Request::new(WilsonParams::from_mass(0.1, boundary)) };
        let (psi, _) = solve(&domain, &gauge, std::slice::from_ref(&eta), &request, &mut ()).unwrap();
        let off = worst_error(&psi, &[expected]);
        assert!(off < 1e-9, "{boundary:?}: {off:.1e}");
    }
}

fn every_solve(gauge: HostGauge, mass: f64) {
    on_cpu(|backend, report| checks::solves(backend, &Case::new(gauge, 300), mass, report));
}

#[test]
fn every_solve_on_a_weak_field_ends_at_its_tolerance() {
    every_solve(generate::weak_field(lattice([4, 4, 6, 8]), 21, 0.2), 0.1);
}

#[test]
fn every_solve_on_a_rough_field_ends_at_its_tolerance() {
    every_solve(generate::random(lattice([6, 4, 4, 8]), 22), 0.5);
}

#[test]
fn many_right_hand_sides_are_as_many_single_ones() {
    let lattice = lattice([4, 4, 4, 8]);
    let gauge = generate::weak_field(lattice, 31, 0.2);
    let domain = Domain::single(Cpu::new(None), lattice).unwrap();
    let mut sources: Vec<HostSpinor> = (0..3).map(|k| generate::random_source(lattice, 40 + k)).collect();
    // Of very different sizes, one of them at a point, one zero.
    sources[1].sites_mut().iter_mut().flatten().flatten().for_each(|z| *z *= 1e-6);
    sources.push(generate::point_source(lattice, [1, 2, 3, 4], 2, 1).unwrap());
    sources.push(HostSpinor::zero(lattice));
    let params = WilsonParams::from_mass(0.1, TimeBoundary::Antiperiodic);
    let reference = WilsonDirac::new(&gauge, 0.1, -1.0);
    for precision in [Precision::Double, Precision::Single, Precision::Half, Precision::Fp16] {
        let request = Request { precision, ..Request::new(params) };
        let (together, report) = solve(&domain, &gauge, &sources, &request, &mut ()).unwrap();
        assert!(report.converged);
        for (k, source) in sources.iter().enumerate() {
            let (alone, _) = solve(&domain, &gauge, std::slice::from_ref(source), &request, &mut ()).unwrap();
            if source.norm2() > 0.0 {
                let off = relative_error(&alone, &together[k..k + 1]);
                assert!(off < 1e-8, "{precision:?}, source {k}: {off:.1e}");
                assert!(reference.residual(source, &together[k]) <= 1e-10);
            } else {
                // Zero has no code in half precision: components are half a step of the smallest norm, 1e-35.
                assert!(alone[0].norm2() < 1e-60 && together[k].norm2() < 1e-60);
            }
        }
    }
}

#[test]
fn free_links_and_gauge_copies_of_them_solve_alike() {
    // A pure gauge: rough to look at, but the free field; its solutions are those of unit links, rotated.
    let lattice = lattice([4, 4, 4, 6]);
    let g: Vec<_> = generate::random(lattice, 50).links().iter().copied().step_by(4).collect();
    let rotated = transform_links(&HostGauge::unit(lattice), &g);
    let domain = Domain::single(Cpu::new(None), lattice).unwrap();
    let params = WilsonParams::from_mass(0.3, TimeBoundary::Antiperiodic);
    let eta = generate::random_source(lattice, 51);
    let rotate = |psi: &HostSpinor| field(lattice, |x| colour_multiply(&g[x], &psi.sites()[x]));
    let back = |psi: &HostSpinor| field(lattice, |x| colour_multiply(&adjoint(&g[x]), &psi.sites()[x]));
    let request = Request { precision: Precision::Single, reconstruction: LinkStorage::of(8), ..Request::new(params) };
    let (free, report) =
        solve(&domain, &HostGauge::unit(lattice), std::slice::from_ref(&eta), &request, &mut ()).unwrap();
    assert_eq!(report.reconstruction, LinkStorage::of(12), "unit links are singular for reconstruct 8");
    let (pure, report) = solve(&domain, &rotated, &[rotate(&eta)], &request, &mut ()).unwrap();
    assert_eq!(report.reconstruction, LinkStorage::of(8));
    assert!(relative_error(&[back(&pure[0])], &free) < 1e-8);
    // In half precision there are no kernels for 8.
    let request = Request { precision: Precision::Half, ..request };
    let (pure, report) = solve(&domain, &rotated, &[rotate(&eta)], &request, &mut ()).unwrap();
    assert_eq!(report.reconstruction, LinkStorage::of(12));
    assert!(relative_error(&[back(&pure[0])], &free) < 1e-8);
}

/// MILC's quenched configuration at β = 6.0, 8⁴: real physics, as rough as fields are in production.
#[test]
fn milc_configuration_at_beta_6_is_solved() {
    let Some(folder) = refdata::folder() else { return };
    let gauge = read_gauge(&folder.join("configs/lat.sample.l8888"), &ReadOptions::default()).unwrap().gauge;
    let lattice = gauge.lattice();
    let domain = Domain::single(Cpu::new(None), lattice).unwrap();
    let source = generate::point_source(lattice, [0, 0, 0, 0], 0, 0).unwrap();
    // κ = 0.15; κ_c is near 0.157 at β = 6.0.
    let params = WilsonParams::from_kappa(0.15, TimeBoundary::Antiperiodic);
    let reference = WilsonDirac::new(&gauge, params.mass, -1.0);
    let mut norms = Vec::new();
    for precision in [Precision::Double, Precision::Single, Precision::Half, Precision::Fp16] {
        for reconstruction in [LinkStorage::FULL, LinkStorage::of(12), LinkStorage::of(8)] {
            // The file is in single precision: its links are unitary to 1e-7 only, so that reconstructed ones are others,
            // even in double. An iteration that takes them for the same stalls.
            for (method, most) in [(Method::BICGSTAB, 90), (Method::CG, 180)] {
                let request = Request { precision, reconstruction, method, ..Request::new(params) };
                let (psi, report) = solve(&domain, &gauge, std::slice::from_ref(&source), &request, &mut ()).unwrap();
                let (residual, iterations) = (reference.residual(&source, &psi[0]), report.info.iterations);
                let name = format!("{precision} {reconstruction} {method:?}: {iterations} iterations, {residual:.1e}");
                println!("{name}");
                assert!(report.converged && residual <= 1e-10 && iterations <= most, "{name}");
                norms.push(norm2(&psi[0]));
            }
        }
    }
    assert!(norms.iter().all(|n| (n / norms[0] - 1.0).abs() < 1e-8), "{norms:?}");
}
