//! The C interface: arrays in any order, products and solves against the formula, codes and messages for mistakes, and its header.
#![allow(unsafe_code)]
#![allow(
    clippy::undocumented_unsafe_blocks,
    reason = "every block is a call with live handles, texts and memory of the test"
)]
use cbindgen::{Builder, Config, DocumentationStyle, Language, Style};
use ferrite::field::host::{HostField, HostGauge, HostSpinor};
use ferrite::gauge::generate;
use ferrite::lattice::Lattice;
use ferrite::operators::{TimeBoundary, WilsonParams};
use ferrite_capi::array::*;
use ferrite_capi::call::*;
use ferrite_capi::device::*;
use ferrite_capi::evolution::*;
use ferrite_capi::gauge::*;
use ferrite_capi::operator::*;
use ferrite_capi::propagator::*;
use ferrite_tests::wilson_like_reference::WilsonLikeDirac;
use num_complex::{Complex32, Complex64};
use proptest::prelude::*;
use std::ffi::{CStr, CString, c_void};
use std::fs;
use std::path::Path;
use std::ptr::{null, null_mut};

const SIZE: [i64; 4] = [2, 4, 6, 8];

fn lattice() -> Lattice {
    Lattice::new([2, 4, 6, 8]).unwrap()
}

fn message() -> String {
    // SAFETY: the interface returns a text.
    unsafe { CStr::from_ptr(fe_message()) }.to_str().unwrap().into()
}

fn record() -> serde_json::Value {
    // SAFETY: the interface returns a text.
    serde_json::from_str(unsafe { CStr::from_ptr(fe_record()) }.to_str().unwrap()).unwrap()
}

/// Fails with the message of a call that should have succeeded.
#[track_caller]
fn ok(code: i32) {
    assert_eq!(code, FE_OK, "{}", message());
}

/// Fails unless a call was refused with this code and with these words.
#[track_caller]
fn refused(code: i32, expected: i32, words: &str) {
    assert!(code == expected && message().contains(words), "code {code}: {}", message());
}

fn c(text: &str) -> CString {
    CString::new(text).unwrap()
}

fn device() -> *mut fe_device {
    let mut device = null_mut();
    ok(unsafe { fe_device_new(c(r#"{"device": "cpu", "threads": 2}"#).as_ptr(), null(), &mut device) });
    device
}

/// Describes numbers in C order.
fn dense(numbers: &mut [Complex64], shape: &[usize]) -> fe_array {
    let mut length = [0; FE_AXES];
    shape.iter().zip(&mut length).for_each(|(n, to)| *to = *n as i64);
    fe_array {
        data: numbers.as_mut_ptr().cast(),
        scalar: FE_COMPLEX128,
        place: FE_HOST,
        axes: shape.len() as i32,
        reserved: 0,
        length,
        stride: [0; FE_AXES],
    }
}

fn gauge_of(device: *const fe_device, links: &HostGauge) -> *mut fe_gauge {
    let (mut numbers, mut gauge) = (links.numbers().to_vec(), null_mut());
    ok(unsafe { fe_gauge_new(device, &dense(&mut numbers, &links.shape()), &mut gauge) });
    gauge
}

fn operator(gauge: *const fe_gauge, options: &str) -> *mut fe_operator {
    let mut op = null_mut();
    ok(unsafe { fe_operator_new(gauge, c(options).as_ptr(), &mut op) });
    op
}

/// Links in single precision, direction first and row and column exchanged, as several codes have them.
#[test]
fn links_come_in_any_order() {
    let (device, links) = (device(), generate::random(lattice(), 4));
    let shape = links.shape();
    let volume: usize = shape[..4].iter().product();
    let mut numbers = vec![Complex32::ZERO; volume * 36];
    for (k, number) in links.numbers().iter().enumerate() {
        let (site, mu, row, column) = (k / 36, k / 9 % 4, k / 3 % 3, k % 3);
        numbers[((mu * volume + site) * 3 + column) * 3 + row] = Complex32::new(number.re as f32, number.im as f32);
    }
    let mut array = dense(&mut [], &shape);
    array.data = numbers.as_mut_ptr().cast();
    array.scalar = FE_COMPLEX64;
    let [t, z, y, x] = [shape[0], shape[1], shape[2], shape[3]].map(|n| n as i64);
    let site = 9 * 8;
    let sites = t * z * y * x;
    array.stride = [z * y * x * site, y * x * site, x * site, site, sites * site, 8, 24, 0];
    let (mut gauge, mut back) = (null_mut(), vec![Complex64::ZERO; volume * 36]);
    ok(unsafe { fe_gauge_new(device, &array, &mut gauge) });
    ok(unsafe { fe_gauge_get(gauge, &dense(&mut back, &shape)) });
    let difference = |(a, b): (&Complex64, &Complex64)| (a - b).norm();
    let most = links.numbers().iter().zip(&back).map(difference).fold(0.0, f64::max);
    // Half a unit in the last place of a number up to 1 in single precision, for real and imaginary part.
    assert!(most > 0.0 && most < 1e-7, "{most}");
    // Back into the same order.
    numbers.fill(Complex32::ZERO);
    ok(unsafe { fe_gauge_get(gauge, &array) });
    let (mut again, mut second) = (null_mut(), vec![Complex64::ZERO; volume * 36]);
    ok(unsafe { fe_gauge_new(device, &array, &mut again) });
    ok(unsafe { fe_gauge_get(again, &dense(&mut second, &shape)) });
    assert_eq!(back, second);
    let mut found = [0; 4];
    ok(unsafe { fe_gauge_lattice(gauge, found.as_mut_ptr()) });
    assert_eq!(found, SIZE);
    unsafe { [fe_gauge_free(gauge), fe_gauge_free(again), fe_device_free(device)] }.into_iter().for_each(ok);
}

/// M ψ and M† ψ of two fields, in a strided order, equal the formula: a hop in a wrong direction, with a wrong sign or on a wrong parity
/// would not.
#[test]
fn products_are_those_of_the_formula() {
    let (device, links) = (device(), generate::random(lattice(), 5));
    let wilson = WilsonParams::from_mass(0.1, TimeBoundary::Antiperiodic);
    let gauge = gauge_of(device, &links);
    let op = operator(gauge, r#"{"operator": "twisted-clover", "mass": 0.1, "csw": 1.3, "mu": 0.2}"#);
    let reference = WilsonLikeDirac::twisted(&links, wilson, [1.3; 2], 0.2);
    let fields: Vec<HostSpinor> = [6, 7].map(|seed| generate::random_source(lattice(), seed)).into();
    let numbers: Vec<Complex64> = fields.iter().flat_map(|field| field.numbers().to_vec()).collect();
    let shape = [&[2], &fields[0].shape()[..]].concat();
    // Fields next to each other, innermost.
    let site = numbers.len() / 2;
    let mut input: Vec<Complex64> = (0..2 * site).map(|k| numbers[k % 2 * site + k / 2]).collect();
    let mut output = vec![Complex64::ZERO; numbers.len()];
    let mut array = dense(&mut input, &shape);
    let mut bytes = 32;
    for axis in (1..7).rev() {
        array.stride[axis] = bytes;
        bytes *= array.length[axis];
    }
    array.stride[0] = 16;
    for (form, dagger) in [(FE_PLAIN, false), (FE_DAGGER, true)] {
        ok(unsafe { fe_apply(op, form, &array, &dense(&mut output, &shape)) });
        for (field, image) in fields.iter().zip(output.chunks(site)) {
            let expected = reference.apply(dagger, field);
            let worst = expected.numbers().iter().zip(image).map(|(a, b)| (a - b).norm()).fold(0.0, f64::max);
            // Sums of some 200 products of numbers of order 1 in double precision.
            assert!(worst < 1e-13, "{worst}");
        }
    }
    unsafe { [fe_operator_free(op), fe_gauge_free(gauge), fe_device_free(device)] }.into_iter().for_each(ok);
}

/// Several right-hand sides, a guess, a solver that gives up, and a multigrid setup through a file.
#[test]
fn solves_have_solutions_and_records() {
    let (device, links) = (device(), generate::weak_field(lattice(), 8, 0.3));
    let gauge = gauge_of(device, &links);
    let op = operator(gauge, r#"{"operator": "wilson", "kappa": 0.12}"#);
    let reference = WilsonLikeDirac::twisted(
        &links,
        WilsonParams::from_mass(0.5 / 0.12 - 4.0, TimeBoundary::Antiperiodic),
        [0.0; 2],
        0.0,
    );
    let fields: Vec<HostSpinor> = (0..3).map(|seed| generate::random_source(lattice(), 10 + seed)).collect();
    let mut b: Vec<Complex64> = fields.iter().flat_map(|field| field.numbers().to_vec()).collect();
    let (mut x, shape) = (vec![Complex64::ZERO; b.len()], [&[3], &fields[0].shape()[..]].concat());
    let (source, solution) = (dense(&mut b, &shape), dense(&mut x, &shape));
    let mut found = fe_solution::default();
    let tol = c(r#"{"tol": 1e-11, "solver": "cg", "max-iterations": 200}"#);
    ok(unsafe { fe_solve(op, &source, null(), &solution, tol.as_ptr(), &mut found) });
    assert!(found.converged == 1 && found.true_residual <= 1e-11 && found.iterations > 10, "{found:?}");
    assert_eq!((&record()["solver"], &record()["iterations"]), (&"cg".into(), &found.iterations.into()));
    for (field, numbers) in fields.iter().zip(x.chunks(b.len() / 3)) {
        let solution = HostField::from_numbers(&shape[1..], numbers).unwrap();
        // The tolerance, with sums in another order.
        assert!(reference.residual(field, &solution) <= 1.001e-11);
    }
    ok(unsafe { fe_solve(op, &source, &solution, &solution, tol.as_ptr(), &mut found) });
    assert_eq!((found.converged, found.iterations), (1, 0), "the solution is a guess that needs no iteration");
    let few = c(r#"{"max_iterations": 3}"#);
    let code = unsafe { fe_solve(op, &source, null(), &solution, few.as_ptr(), &mut found) };
    refused(code, FE_SOLVER, "no convergence in 3 iterations");
    assert!(found.converged == 0 && found.true_residual < 1.0 && record()["converged"] == false, "{found:?}");

    let folder = tempfile::tempdir().unwrap();
    let file = c(folder.path().join("setup.bin").to_str().unwrap());
    let mg = c(r#"{"solver": "multigrid", "vectors": 8, "mg-improvements": 1, "blocks": [[1, 2, 3, 3]]}"#);
    let (mut multigrid, mut read) = (null_mut(), null_mut());
    let code = unsafe { fe_multigrid_new(op, mg.as_ptr(), &mut multigrid) };
    refused(code, FE_INPUT, "aggregates of 1×2×3×3");
    assert!(multigrid.is_null());
    let mg = c(r#"{"solver": "multigrid", "vectors": 8, "mg-improvements": 1, "blocks": [[1, 2, 3, 4]]}"#);
    ok(unsafe { fe_multigrid_new(op, mg.as_ptr(), &mut multigrid) });
    assert_eq!(record()["vectors"], 8);
    ok(unsafe { fe_multigrid_write(multigrid, file.as_ptr()) });
    ok(unsafe { fe_multigrid_read(op, file.as_ptr(), mg.as_ptr(), &mut read) });
    // The first handle stands for a setup that is no longer there, and its end leaves the second one.
    refused(unsafe { fe_multigrid_write(multigrid, file.as_ptr()) }, FE_INPUT, "a later setup of the operator");
    ok(unsafe { fe_multigrid_free(multigrid) });
    ok(unsafe { fe_multigrid_write(read, file.as_ptr()) });
    ok(unsafe { fe_solve(op, &source, null(), &solution, mg.as_ptr(), &mut found) });
    assert_eq!((found.converged, &record()["solver"]), (1, &"multigrid".into()));
    // Cleaning up leaves the record.
    ok(unsafe { fe_multigrid_free(null_mut()) });
    assert_eq!(record()["solver"], "multigrid");
    unsafe { [fe_multigrid_free(read)] }.into_iter().for_each(ok);
    unsafe { [fe_operator_free(op), fe_gauge_free(gauge), fe_device_free(device)] }.into_iter().for_each(ok);
}

/// Masses of a staggered operator, system by system.
#[test]
fn several_masses_are_solved_together() {
    let (device, links) = (device(), generate::weak_field(lattice(), 9, 0.3));
    let gauge = gauge_of(device, &links);
    let field: HostField<ferrite::field::host::ColourVector> = generate::random_source(lattice(), 12);
    let (mut b, shape) = (field.numbers().to_vec(), field.shape());
    let masses = [0.3, 0.5];
    let (mut x, all) = (vec![Complex64::ZERO; 2 * b.len()], [&[2], &shape[..]].concat());
    let op = operator(gauge, r#"{"operator": "staggered", "mass": 0.3}"#);
    let options = c(r#"{"masses": [0.3, 0.5], "tol": 1e-10}"#);
    let mut found = fe_solution::default();
    ok(unsafe { fe_solve_systems(op, &dense(&mut b, &shape), &dense(&mut x, &all), options.as_ptr(), &mut found) });
    assert!(found.converged == 1 && record()["systems"].as_array().unwrap().len() == 2);
    for (mass, part) in masses.iter().zip(x.chunks_mut(b.len())) {
        let one = operator(gauge, &format!(r#"{{"operator": "staggered", "mass": {mass}}}"#));
        let mut image = vec![Complex64::ZERO; b.len()];
        ok(unsafe { fe_apply(one, FE_PLAIN, &dense(part, &shape), &dense(&mut image, &shape)) });
        let norm = |difference: &mut dyn Iterator<Item = f64>| difference.sum::<f64>().sqrt();
        let rest = norm(&mut image.iter().zip(&b).map(|(a, b)| (a - b).norm_sqr()));
        assert!(rest <= 1.001e-10 * norm(&mut b.iter().map(|b| b.norm_sqr())), "{mass}: {rest}");
        ok(unsafe { fe_operator_free(one) });
    }
    let code =
        unsafe { fe_solve_systems(op, &dense(&mut b, &shape), &dense(&mut x, &all), c("{}").as_ptr(), &mut found) };
    refused(code, FE_INPUT, "give either masses or shifts");
    unsafe { [fe_operator_free(op), fe_gauge_free(gauge), fe_device_free(device)] }.into_iter().for_each(ok);
}

/// Heat bath, smearing, flow, gauge fixing and files.
#[test]
fn links_are_made_and_changed() {
    let device = device();
    let plaquette = |gauge: *const fe_gauge| {
        let mut found = fe_plaquette::default();
        ok(unsafe { fe_gauge_plaquette(gauge, &mut found) });
        found
    };
    let mut gauge = null_mut();
    let heat_bath = c(r#"{"beta": 6.0, "seed": 3, "sweeps": 5}"#);
    ok(unsafe { fe_gauge_quenched(device, SIZE.as_ptr(), heat_bath.as_ptr(), null(), &mut gauge) });
    let last = record()["plaquettes"][4].as_f64().unwrap();
    let mean = plaquette(gauge).mean;
    assert!(mean > 0.5 && mean < 0.8 && (mean - last).abs() < 1e-14, "{mean} {last}");
    type Change = unsafe extern "C" fn(*const fe_gauge, *const std::ffi::c_char, *mut *mut fe_gauge) -> i32;
    let changes: [(Change, &str, &str); 3] = [
        (fe_gauge_smear, r#"{"kind": "stout", "weights": [0.1], "levels": 2}"#, ""),
        (fe_gauge_flow, r#"{"time": 0.1, "step": 0.05}"#, "points"),
        (fe_gauge_fix, r#"{"gauge": "landau", "tol": 1e-8}"#, "theta"),
    ];
    for (change, options, key) in changes {
        let mut changed = null_mut();
        ok(unsafe { change(gauge, c(options).as_ptr(), &mut changed) });
        if !key.is_empty() {
            assert!(!record()[key].is_null(), "{options}");
        }
        let after = plaquette(changed).mean;
        match key {
            // A gauge transformation changes no plaquette.
            "theta" => assert!((after - mean).abs() < 1e-12),
            _ => assert!(after > mean + 0.05, "{options}: {after}"),
        }
        ok(unsafe { fe_gauge_free(changed) });
    }
    ok(unsafe { fe_gauge_loops(gauge) });
    assert!((record()["plaquette"]["mean"].as_f64().unwrap() - mean).abs() < 1e-14, "{}", record());
    let folder = tempfile::tempdir().unwrap();
    let (file, mut read) = (c(folder.path().join("links.ildg").to_str().unwrap()), null_mut());
    ok(unsafe { fe_gauge_write(gauge, file.as_ptr(), c(r#"{"title": "a test"}"#).as_ptr()) });
    ok(unsafe { fe_gauge_read(device, file.as_ptr(), null(), &mut read) });
    assert_eq!(record()["format"], "ILDG");
    assert_eq!(plaquette(read), plaquette(gauge));
    ok(unsafe { fe_gauge_free(read) });
    let code = unsafe { fe_gauge_read(device, c("no-such-file.ildg").as_ptr(), null(), &mut read) };
    refused(code, FE_FILE, "no-such-file.ildg");
    assert!(read.is_null());
    unsafe { [fe_gauge_free(gauge), fe_device_free(device)] }.into_iter().for_each(ok);
}

/// A pion from a propagator on the device equals the sum over its numbers, and propagators and arrays turn into each other.
#[test]
fn hadrons_are_sums_over_propagators() {
    let (device, links) = (device(), generate::weak_field(lattice(), 15, 0.3));
    let gauge = gauge_of(device, &links);
    let op = operator(gauge, r#"{"operator": "clover", "mass": 0.2, "csw": 1.0}"#);
    let (mut propagator, mut copy, mut smeared) = (null_mut(), null_mut(), null_mut());
    let mut found = fe_solution::default();
    let options = c(r#"{"origin": [1, 2, 3, 4], "tol": 1e-10}"#);
    ok(unsafe { fe_propagator_new(op, null(), null(), options.as_ptr(), &mut propagator, &mut found) });
    assert!(found.converged == 1 && record()["iterations_per_source"].as_array().unwrap().len() == 12);
    let shape = [12, 8, 6, 4, 2, 4, 3];
    let mut numbers = vec![Complex64::ZERO; shape.iter().product()];
    ok(unsafe { fe_propagator_get(propagator, &dense(&mut numbers, &shape)) });
    // Each column solves M S = b for the point with its spin and colour.
    let column = numbers.len() / 12;
    let mut image = vec![Complex64::ZERO; column];
    for (component, solution) in numbers.chunks_mut(column).enumerate() {
        ok(unsafe { fe_apply(op, FE_PLAIN, &dense(solution, &shape[1..]), &dense(&mut image, &shape[1..])) });
        image[(((4 * 6 + 3) * 4 + 2) * 2 + 1) * 12 + component] -= 1.0;
        let rest = image.iter().map(|z| z.norm_sqr()).sum::<f64>().sqrt();
        // The tolerance, with sums in another order.
        assert!(rest <= 1.01e-10, "{component}: {rest}");
    }
    let slice = 6 * 4 * 2 * 12;
    let mut pion = [0.0; 8];
    for (k, number) in numbers.iter().enumerate() {
        pion[(k / slice + 8 - 4) % 8] += number.norm_sqr();
    }
    let mut out = vec![Complex64::ZERO; 8];
    let request = c(r#"{"hadron": "mesons", "pairs": [[15, 15]], "origin": [1, 2, 3, 4], "momenta": [[0, 0, 0]]}"#);
    let contract = |quark: *const fe_propagator, out: &mut [Complex64]| unsafe {
        fe_contract(quark, null(), null(), request.as_ptr(), &dense(out, &[1, 1, 8]))
    };
    ok(contract(propagator, &mut out));
    for (found, expected) in out.iter().zip(pion) {
        // The correlator has a sign convention for Γ̄; sums of 576 · 12 numbers in another order.
        assert!(
            (found.re.abs() - expected).abs() < 1e-12 * expected && found.im.abs() < 1e-12 * expected,
            "{out:?} {pion:?}"
        );
    }
    ok(unsafe { fe_propagator_from(gauge, &dense(&mut numbers, &shape), &mut copy) });
    let mut again = vec![Complex64::ZERO; 8];
    ok(contract(copy, &mut again));
    // Rounding in a change of the spin basis.
    assert!(again.iter().zip(&out).all(|(a, b)| (a - b).norm() < 1e-13 * b.norm()), "{again:?} {out:?}");
    let width = c(r#"{"width": 1.5, "steps": 5}"#);
    ok(unsafe { fe_propagator_smear(propagator, gauge, width.as_ptr(), &mut smeared) });
    ok(contract(smeared, &mut again));
    assert!(again.iter().zip(&out).all(|(smeared, point)| smeared.re.abs() < point.re.abs()), "{again:?}");
    let off = c(r#"{"origin": [2, 0, 0, 0]}"#);
    let code = unsafe { fe_propagator_new(op, null(), null(), off.as_ptr(), &mut copy, &mut found) };
    refused(code, FE_INPUT, "origin = [2, 0, 0, 0] is not on the lattice");
    let code = unsafe { fe_contract(propagator, null(), null(), request.as_ptr(), &dense(&mut out, &[1, 2, 4])) };
    refused(code, FE_INPUT, "[1, 1, 8] is needed");
    let (mut smallest, mut largest) = (0.0, 0.0);
    ok(unsafe { fe_eigenvalues(op, null(), &mut smallest, &mut largest) });
    assert!(0.0 < smallest && smallest < largest && record()["largest"]["high"].as_f64().unwrap() >= largest);
    unsafe { [fe_propagator_free(propagator), fe_propagator_free(smeared)] }.into_iter().for_each(ok);
    unsafe { [fe_operator_free(op), fe_gauge_free(gauge), fe_device_free(device)] }.into_iter().for_each(ok);
}

/// A trajectory that a program composes of momenta, forces and moves conserves the energy as leapfrog does, with an error ∝ ε².
#[test]
fn trajectories_are_composed_of_forces_and_moves() {
    let (device, links) = (device(), generate::weak_field(Lattice::new([2, 2, 2, 4]).unwrap(), 16, 0.3));
    let start = gauge_of(device, &links);
    let (action, quarks) = (
        c(r#"{"action": "iwasaki", "beta": 2.1}"#),
        c(r#"{"kind": "two", "operator": "clover", "mass": 0.3, "csw": 1.2}"#),
    );
    let (mut fermions, mut momenta) = (null_mut(), null_mut());
    ok(unsafe { fe_quarks_new(start, quarks.as_ptr(), &mut fermions) });
    ok(unsafe { fe_momenta_new(device, [2, 2, 2, 4].as_ptr(), &mut momenta) });
    let energy = |gauge: *const fe_gauge| {
        let (mut kinetic, mut of_gauge, mut of_quarks) = (0.0, 0.0, 0.0);
        ok(unsafe { fe_momenta_energy(momenta, &mut kinetic) });
        ok(unsafe { fe_gauge_action(gauge, action.as_ptr(), &mut of_gauge) });
        ok(unsafe { fe_quarks_action(fermions, gauge, &mut of_quarks) });
        kinetic + of_gauge + of_quarks
    };
    let violation = |steps: usize| {
        let mut drawn = 0.0;
        ok(unsafe { fe_momenta_draw(momenta, 5, 1) });
        ok(unsafe { fe_quarks_draw(fermions, start, 5, 1, &mut drawn) });
        let (begin, step) = (energy(start), 0.4 / steps as f64);
        let mut gauge: *mut fe_gauge = null_mut();
        let force = |gauge: *const fe_gauge, step: f64| {
            ok(unsafe { fe_gauge_force(gauge, action.as_ptr(), step, momenta) });
            ok(unsafe { fe_quarks_force(fermions, gauge, step, momenta) });
        };
        force(start, 0.5 * step);
        for number in 0..steps {
            let from = if gauge.is_null() { start } else { gauge };
            let mut moved = null_mut();
            ok(unsafe { fe_gauge_move(from, momenta, step, &mut moved) });
            ok(unsafe { fe_gauge_free(gauge) });
            gauge = moved;
            force(gauge, if number + 1 == steps { 0.5 * step } else { step });
        }
        let violation = energy(gauge) - begin;
        ok(unsafe { fe_gauge_free(gauge) });
        violation
    };
    let [coarse, fine] = [4, 8].map(violation);
    // ε² with corrections of order ε⁴.
    assert!(fine != 0.0 && (coarse / fine - 4.0).abs() < 0.4, "{coarse} {fine}");
    // The same momenta again, through an array.
    let shape = links.shape();
    let mut matrices = vec![Complex64::ZERO; shape.iter().product()];
    let (mut before, mut after) = (0.0, 0.0);
    ok(unsafe { fe_momenta_get(momenta, &dense(&mut matrices, &shape)) });
    ok(unsafe { fe_momenta_energy(momenta, &mut before) });
    ok(unsafe { fe_momenta_draw(momenta, 6, 2) });
    ok(unsafe { fe_momenta_set(momenta, &dense(&mut matrices, &shape)) });
    ok(unsafe { fe_momenta_energy(momenta, &mut after) });
    // Conversion between matrices and momenta rounds.
    assert!((before - after).abs() < 1e-11, "{before} {after}");
    let code = unsafe { fe_gauge_force(start, c(r#"{"action": "wilson"}"#).as_ptr(), 0.1, momenta) };
    refused(code, FE_INPUT, "beta of the gauge action is missing");
    let code = unsafe { fe_gauge_force(start, action.as_ptr(), f64::NAN, momenta) };
    refused(code, FE_INPUT, "step = NaN: expected a finite number");

    let mut chain = null_mut();
    let request = c(r#"{"gauge": {"action": "iwasaki", "beta": 2.1}, "steps": [4], "gauge-steps": 2, "seed": 3,
        "quarks": [{"kind": "two", "operator": "clover", "mass": 0.3, "csw": 1.2}]}"#);
    ok(unsafe { fe_chain_new(start, request.as_ptr(), &mut chain) });
    let (mut made, mut end) = (fe_trajectory::default(), null_mut());
    ok(unsafe { fe_chain_trajectory(chain, 1, 1, &mut made) });
    assert!(
        made.delta_h.abs() < 5.0 && record()["irreversibility"][0].as_f64().unwrap() < 1e-8,
        "{made:?} {}",
        record()
    );
    ok(unsafe { fe_chain_gauge(chain, &mut end) });
    let mut plaquette = fe_plaquette::default();
    ok(unsafe { fe_gauge_plaquette(end, &mut plaquette) });
    assert!((plaquette.mean - made.plaquette).abs() < 1e-14);
    refused(
        unsafe { fe_chain_trajectory(chain, 0, 0, &mut made) },
        FE_INPUT,
        "number: 0: expected a whole number from 1",
    );
    let mut other = null_mut();
    let mut wrong = |options: &str| unsafe { fe_chain_new(start, c(options).as_ptr(), &mut other) };
    refused(wrong(r#"{"gauge": {"beta": 1, "action": "wilson"}, "seed": 1, "steps": [0]}"#), FE_INPUT, "steps = [0]");
    refused(
        wrong(r#"{"gauge": {"beta": 1, "action": "wils"}, "seed": 1, "steps": [1]}"#),
        FE_INPUT,
        "'wils' is not one of",
    );
    refused(wrong(r#"{"gauge": {"beta": 1, "action": "wilson"}, "steps": [1]}"#), FE_INPUT, "missing field `seed`");
    unsafe { [fe_chain_free(chain), fe_gauge_free(end), fe_quarks_free(fermions), fe_momenta_free(momenta)] }
        .into_iter()
        .for_each(ok);
    unsafe { [fe_gauge_free(start), fe_device_free(device)] }.into_iter().for_each(ok);
}

/// Every mistake has a code and a sentence, and nothing is made.
#[test]
fn mistakes_have_codes_and_sentences() {
    let mut made = null_mut();
    let mut new = |options: &str| unsafe { fe_device_new(c(options).as_ptr(), null(), &mut made) };
    refused(new("cpu"), FE_INPUT, "options: not a JSON object");
    refused(new(r#"{"name": "cpu"}"#), FE_INPUT, "options: name is not an option here; the options are device, index");
    refused(new(r#"{"device": "tpu"}"#), FE_INPUT, "'tpu' is not a device");
    refused(new(r#"{"device": "cpu", "threads": 0}"#), FE_INPUT, "threads = 0");
    // Where there is no GPU, the message has no flag of the program.
    if new(r#"{"device": "cuda", "index": 1000}"#) != FE_DEVICE || message().contains("--") {
        panic!("{}", message());
    }
    refused(unsafe { fe_device_new(null(), null(), null_mut()) }, FE_INPUT, "out: the pointer is null");
    let (device, links) = (device(), generate::weak_field(lattice(), 8, 0.3));
    let gauge = gauge_of(device, &links);
    let (mut op, mut other) = (null_mut(), null_mut());
    let mut of = |options: &str| unsafe { fe_operator_new(gauge, c(options).as_ptr(), &mut other) };
    refused(of(r#"{"mass": 0.1}"#), FE_INPUT, "operator is missing");
    let mut wild: *mut fe_operator = std::ptr::dangling_mut();
    refused(unsafe { fe_operator_new(null(), c("{").as_ptr(), &mut wild) }, FE_INPUT, "gauge: the pointer is null");
    assert!(wild.is_null(), "a program may free it");
    refused(of(r#"{"operator": "wilson", "mass": 0.1, "csw": 1}"#), FE_INPUT, "csw: wilson has no such parameter");
    refused(of(r#"{"operator": "wilson", "mass": [[]]}"#), FE_INPUT, "mass");
    ok(unsafe { fe_operator_new(gauge, c(r#"{"operator": "wilson", "mass": 0.1}"#).as_ptr(), &mut op) });
    let field: HostSpinor = generate::random_source(lattice(), 1);
    let (mut b, shape) = (field.numbers().to_vec(), field.shape());
    let good = dense(&mut b, &shape);
    let apply = |array: fe_array| unsafe { fe_apply(op, FE_PLAIN, &array, &good) };
    refused(apply(fe_array { data: null_mut(), ..good }), FE_INPUT, "input: data is a null pointer");
    refused(apply(fe_array { scalar: 7, ..good }), FE_INPUT, "input: scalar = 7");
    refused(apply(fe_array { place: 0, ..good }), FE_INPUT, "the device is a CPU");
    refused(apply(fe_array { axes: 9, ..good }), FE_INPUT, "axes = 9: expected 1 to 8");
    refused(apply(fe_array { axes: 5, ..good }), FE_INPUT, "the last axes have to be [8, 6, 4, 2, 4, 3]");
    refused(apply(fe_array { length: [i64::MAX; 8], ..good }), FE_INPUT, "that fits into memory");
    refused(apply(fe_array { stride: [i64::MAX; 8], ..good }), FE_INPUT, "do not fit into memory");
    refused(unsafe { fe_apply(op, 3, &good, &good) }, FE_INPUT, "3 is not FE_PLAIN");
    refused(unsafe { fe_apply(null(), FE_PLAIN, &good, &good) }, FE_INPUT, "op: the pointer is null");
    let solve = |options: &str| unsafe { fe_solve(op, &good, null(), &good, c(options).as_ptr(), null_mut()) };
    refused(solve(r#"{"solver": "lu"}"#), FE_INPUT, "solver = lu: expected");
    refused(solve(r#"{"tolerance": 1e-8}"#), FE_INPUT, "tolerance is not a setting of a solve");
    b[5] = Complex64::new(f64::NAN, 0.0);
    let code = unsafe { fe_solve(op, &dense(&mut b, &shape), null(), &good, null(), null_mut()) };
    refused(code, FE_INPUT, "every number must be finite");
    // Another thread, and an object on another device.
    let address = gauge.addr();
    let there = std::thread::spawn(move || {
        let code = unsafe { fe_gauge_loops(std::ptr::with_exposed_provenance::<fe_gauge>(address)) };
        (code, message())
    });
    gauge.expose_provenance();
    let (code, why) = there.join().unwrap();
    assert!(code == FE_FAILED && why.contains("opened by another thread"), "{why}");
    let second = self::device();
    let request = c(r#"{"beta": 5.5, "seed": 1, "sweeps": 1}"#);
    let mut out = null_mut();
    let code = unsafe { fe_gauge_quenched(second, SIZE.as_ptr(), request.as_ptr(), gauge, &mut out) };
    refused(code, FE_INPUT, "start: the object is on another device");
    let flow = |options: &str| {
        let mut out = null_mut();
        unsafe { fe_gauge_flow(gauge, c(options).as_ptr(), &mut out) }
    };
    refused(flow(r#"{"time": 1.0, "step": 0}"#), FE_INPUT, "step = 0: expected a number above 0");
    refused(flow(r#"{"time": 1.0}"#), FE_INPUT, "missing field `step`");
    refused(flow(r#"{"time": 1.0, "step": 0.1, "steps": 3}"#), FE_INPUT, "unknown field `steps`");
    unsafe { [fe_operator_free(op), fe_gauge_free(gauge), fe_device_free(second), fe_device_free(device)] }
        .into_iter()
        .for_each(ok);
    ok(unsafe { fe_gauge_free(null_mut()) });
}

/// After a panic within a call, the device refuses further calls, and its objects can be freed.
#[test]
fn a_panic_becomes_a_code() {
    let device = device();
    let code = unsafe { panic_in_a_call(device) };
    refused(code, FE_INTERNAL, "internal error of Ferrite");
    refused(unsafe { fe_device_describe(device) }, FE_FAILED, "an internal error interrupted an earlier call");
    ok(unsafe { fe_device_free(device) });
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]
    /// Any description of an array is taken or refused, without a crash. The memory is large enough for those that are taken.
    #[test]
    fn any_description_of_an_array_is_safe(
        scalar in prop_oneof![Just(FE_COMPLEX64), Just(FE_COMPLEX128), any::<i32>()],
        place in prop_oneof![Just(FE_HOST), any::<i32>()],
        axes in prop_oneof![0..9i32, any::<i32>()],
        length in prop::array::uniform8(prop_oneof![1..4i64, any::<i64>()]),
        stride in prop::array::uniform8(prop_oneof![Just(0i64), i64::MAX - 2..i64::MAX]),
        is_null in any::<bool>(),
    ) {
        thread_local! {
            static DEVICE: *mut fe_device = device();
        }
        let mut memory = vec![Complex64::ZERO; 1 << 16];
        let data: *mut c_void = if is_null { null_mut() } else { memory.as_mut_ptr().cast() };
        // Descriptions of links that would be larger than the memory are not tried.
        let small = length.iter().try_fold(1i64, |all, n| all.checked_mul(*n)).is_some_and(|all| all <= 1 << 16);
        if small || length.iter().any(|n| *n < 1) || is_null {
            let array = fe_array { data, scalar, place, axes, reserved: 0, length, stride };
            let mut gauge = null_mut();
            let code = DEVICE.with(|device| unsafe { fe_gauge_new(*device, &array, &mut gauge) });
            prop_assert!((code == FE_OK) != gauge.is_null() && code != FE_INTERNAL, "{}", message());
            if !gauge.is_null() {
                unsafe { fe_gauge_free(gauge) };
            }
        }
    }
}

const BEGINNING: &str = "\
/* C interface of Ferrite, lattice QCD on GPUs. Generated from the crate capi; do not edit.

   Every function returns a code, FE_OK (0) on success. fe_message() has the reason of a failure, and fe_record() the record of the last
   call as JSON. Calls with a device, and with objects on it, come from the thread that opened the device. Functions marked Collective are
   called by all processes of a device. Options are JSON objects with the keys of input files and of Python. The lattice has the extents
   x, y, z, t; arrays have the axes t, z, y, x. docs/c.md explains the interface with examples. */";

/// Header of the interface, which cbindgen makes of the crate.
#[test]
fn the_header_is_what_the_crate_says() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../capi");
    let config = Config {
        language: Language::C,
        header: Some(BEGINNING.into()),
        include_guard: Some("FERRITE_H".into()),
        cpp_compat: true,
        style: Style::Type,
        documentation_style: DocumentationStyle::C99,
        usize_is_size_t: true,
        line_length: 120,
        ..Config::default()
    };
    let bindings = Builder::new().with_crate(&root).with_config(config).generate().expect("cbindgen reads the crate");
    let mut made = Vec::new();
    bindings.write(&mut made);
    let made = String::from_utf8(made).expect("UTF-8");
    let module = fortran::module(&made);
    for (name, made) in [("ferrite.h", made), ("ferrite.f90", module)] {
        expect_kept(&root.join("include").join(name), &made);
    }
}

/// Fails unless a file has the contents `made`; writes it if the environment says so.
fn expect_kept(path: &Path, made: &str) {
    if std::env::var_os("FERRITE_WRITE_HEADER").is_some() {
        fs::write(path, made).expect("the file can be written");
    }
    let kept = fs::read_to_string(path).unwrap_or_default();
    let first = made.lines().zip(kept.lines()).position(|(made, kept)| made != kept);
    assert!(
        made == kept,
        "{} differs from the crate from line {:?} on; run FERRITE_WRITE_HEADER=1 cargo test -p ferrite-tests --test all \
         header",
        path.display(),
        first.map(|line| line + 1)
    );
}

/// Module for Fortran, made of the header for C.
mod fortran {
    use std::fmt::Write;

    const BEGINNING: &str = "\
! Fortran interface of Ferrite, lattice QCD on GPUs. Generated from ferrite.h, which explains all functions; do not edit.
!
! Handles have the type c_ptr. Texts end with c_null_char; the text of c_null_char alone stands for no options. Arrays are
! described by their address, c_loc(numbers), with the axes in the order of ferrite.h and their strides in bytes. Arguments
! that may be null are optional.
module ferrite
  use, intrinsic :: iso_c_binding
  implicit none
";
    const END: &str = "
contains

  ! Returns the text at the address `text`, such as that of fe_message() or fe_record().
  function fe_text(text) result(copy)
    type(c_ptr), intent(in) :: text
    character(len=:), allocatable :: copy
    character(kind=c_char), pointer :: letters(:)
    integer :: length, k
    call c_f_pointer(text, letters, [huge(0)])
    length = 0
    do while (letters(length + 1) /= c_null_char)
      length = length + 1
    end do
    allocate (character(len=length) :: copy)
    do k = 1, length
      copy(k:k) = letters(k)
    end do
  end function
end module
";
    /// Structures of the header; all other names of its types are handles.
    const STRUCTURES: [&str; 4] = ["fe_array", "fe_plaquette", "fe_solution", "fe_trajectory"];

    /// Returns the Fortran type of a C type that is passed by value, or that a structure has.
    fn scalar(of: &str) -> &'static str {
        match of {
            "int32_t" | "uint32_t" => "integer(c_int32_t)",
            "int64_t" | "uint64_t" => "integer(c_int64_t)",
            "double" => "real(c_double)",
            other => panic!("no type of Fortran for {other}"),
        }
    }

    /// Returns type and attributes of an argument, whose C type has `stars` stars.
    fn argument(of: &str, stars: usize, is_const: bool, name: &str) -> String {
        match (of, stars) {
            ("char", 1) => format!("character(kind=c_char), intent(in) :: {name}(*)"),
            (of, 2) if of.starts_with("fe_") => format!("type(c_ptr), intent(out) :: {name}"),
            (of, 1) if STRUCTURES.contains(&of) => {
                let intent = if is_const { "in" } else { "out" };
                format!("type({of}), intent({intent}), optional :: {name}")
            }
            ("void", 1) => format!("type(c_ptr), value :: {name}"),
            (of, 1) if of.starts_with("fe_") => format!("type(c_ptr), value :: {name}"),
            ("int64_t", 1) if is_const || ["origin", "part", "lattice"].contains(&name) => {
                let intent = if is_const { "in" } else { "out" };
                format!("integer(c_int64_t), intent({intent}) :: {name}(4)")
            }
            (of, 1) => format!("{}, intent(out) :: {name}", scalar(of)),
            (of, _) => format!("{}, value :: {name}", scalar(of)),
        }
    }

    /// Returns the words of a C declaration: the type, its number of stars, whether it is constant, and the name.
    fn parts(declaration: &str) -> (String, usize, bool, String) {
        let stars = declaration.matches('*').count();
        let words: Vec<String> = declaration.replace('*', " ").split_whitespace().map(String::from).collect();
        let is_const = words.iter().any(|word| word == "const");
        let mut rest = words.into_iter().filter(|word| word != "const" && word != "struct");
        let of = rest.next().unwrap_or_default();
        (of, stars, is_const, rest.next().unwrap_or_default())
    }

    /// Makes the module.
    pub fn module(header: &str) -> String {
        let code: String = header
            .lines()
            .filter(|line| !line.trim_start().starts_with("//"))
            .map(|line| format!("{line}\n"))
            .collect();
        let mut text = String::from(BEGINNING);
        for line in code.lines() {
            let mut words = line.strip_prefix("#define FE_").into_iter().flat_map(str::split_whitespace);
            if let (Some(name), Some(value)) = (words.next(), words.next()) {
                // Fortran takes FE_ABI and the function fe_abi for one name.
                let name = if name == "ABI" { "ABI_OF_MODULE" } else { name };
                writeln!(text, "  integer(c_int32_t), parameter :: FE_{name} = {value}").unwrap();
            }
        }
        for structure in code.split("typedef struct {").skip(1) {
            let (fields, rest) = structure.split_once('}').unwrap();
            let name = rest.split(';').next().unwrap().trim();
            writeln!(text, "\n  type, bind(c) :: {name}").unwrap();
            for field in fields.split(';').map(str::trim).filter(|field| !field.is_empty()) {
                let (of, stars, _, name) = parts(field);
                let (of, start) = if stars > 0 { ("type(c_ptr)", "c_null_ptr") } else { (scalar(&of), "0") };
                let name = name.replace("FE_AXES", "8").replace('[', "(").replace(']', ")");
                writeln!(text, "    {of} :: {name} = {start}").unwrap();
            }
            writeln!(text, "  end type").unwrap();
        }
        text.push_str("\n  interface\n");
        for declaration in code.split(';') {
            let Some((head, arguments)) = declaration.split_once('(') else { continue };
            let (of, stars, _, name) = parts(head.rsplit('\n').next().unwrap());
            if !name.starts_with("fe_") {
                continue;
            }
            let arguments: Vec<_> =
                arguments.trim_end_matches(')').split(',').map(parts).filter(|part| !part.3.is_empty()).collect();
            let names: Vec<&str> = arguments.iter().map(|part| part.3.as_str()).collect();
            writeln!(text, "    function {name}({}) bind(c)", names.join(", ")).unwrap();
            writeln!(text, "      import").unwrap();
            for (of, stars, is_const, name) in &arguments {
                writeln!(text, "      {}", argument(of, *stars, *is_const, name)).unwrap();
            }
            let result = if stars > 0 { "type(c_ptr)" } else { scalar(&of) };
            writeln!(text, "      {result} :: {name}\n    end function").unwrap();
        }
        text.push_str("  end interface\n");
        text + END
    }
}
