//! QUDA's interface: its headers are those of the tables, and products and solves with Wilson's operator are those of the formula, in every
//! order, precision and normalisation that it offers.
#![allow(unsafe_code)]
#![allow(clippy::undocumented_unsafe_blocks, reason = "every block is a call with memory of the test")]
use ferrite::field::host::{HostField, HostGauge, HostSpinor};
use ferrite::gauge::generate;
use ferrite::lattice::Lattice;
use ferrite::operators::{TimeBoundary, WilsonParams};
use ferrite_quda::enums::*;
use ferrite_quda::functions::*;
use ferrite_quda::structs::{QudaGaugeParam, QudaInvertParam};
use ferrite_tests::wilson_like_reference::WilsonLikeDirac;
use num_complex::{Complex32, Complex64};
use std::ffi::c_void;
use std::fs;
use std::path::Path;

/// The headers in the repository, which applications are compiled against, are what the tables of the crate say.
#[test]
fn headers_are_those_of_the_tables() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../quda/include");
    for (name, made) in ferrite_quda::headers::all() {
        let path = folder.join(name);
        if std::env::var_os("FERRITE_WRITE_HEADER").is_some() {
            fs::write(&path, &made).expect("the header can be written");
        }
        assert!(
            fs::read_to_string(&path).unwrap_or_default() == made,
            "quda/include/{name} differs from the tables; run FERRITE_WRITE_HEADER=1 cargo test -p ferrite-tests --test all header"
        );
    }
}

const SIZE: [usize; 4] = [2, 4, 6, 8];

/// Returns coordinates, and the place of a site where even sites come first.
fn sites() -> impl Iterator<Item = ([usize; 4], usize)> {
    let [nx, ny, nz, nt] = SIZE;
    (0..nx * ny * nz * nt).map(move |n| {
        let x = [n % nx, n / nx % ny, n / (nx * ny) % nz, n / (nx * ny * nz)];
        (x, x.iter().sum::<usize>() % 2 * (nx * ny * nz * nt / 2) + n / 2)
    })
}

/// Returns the numbers of a spinor in the order of applications.
fn even_odd(field: &HostSpinor) -> Vec<Complex64> {
    let mut out = vec![Complex64::ZERO; field.numbers().len()];
    for (n, (_, place)) in sites().enumerate() {
        out[12 * place..12 * place + 12].copy_from_slice(&field.numbers()[12 * n..12 * n + 12]);
    }
    out
}

/// Returns the spinor of numbers in the order of applications.
fn lexicographic(lattice: Lattice, numbers: &[Complex64]) -> HostSpinor {
    let mut field: HostSpinor = HostField::zero(lattice);
    for (n, (_, place)) in sites().enumerate() {
        field.numbers_mut()[12 * n..12 * n + 12].copy_from_slice(&numbers[12 * place..12 * place + 12]);
    }
    field
}

/// Returns links with the factors that an application multiplies into them, in four arrays.
fn arrays(links: &HostGauge, anisotropy: f64) -> [Vec<Complex64>; 4] {
    let mut all: [Vec<Complex64>; 4] = std::array::from_fn(|_| vec![Complex64::ZERO; links.numbers().len() / 4]);
    for (n, (x, place)) in sites().enumerate() {
        for (mu, array) in all.iter_mut().enumerate() {
            let factor = match (mu, x[3] + 1 == SIZE[3]) {
                (3, true) => -1.0,
                (3, false) => 1.0,
                _ => 1.0 / anisotropy,
            };
            for k in 0..9 {
                array[9 * place + k] = factor * links.numbers()[36 * n + 9 * mu + k];
            }
        }
    }
    all
}

fn gauge_param(order: QudaGaugeFieldOrder, precision: QudaPrecision, anisotropy: f64) -> QudaGaugeParam {
    QudaGaugeParam {
        location: QUDA_CPU_FIELD_LOCATION,
        X: SIZE.map(|n| n as i32),
        anisotropy,
        r#type: QUDA_WILSON_LINKS,
        gauge_order: order,
        t_boundary: QUDA_ANTI_PERIODIC_T,
        cpu_prec: precision,
        ..unsafe { newQudaGaugeParam() }
    }
}

fn invert_param(dslash: QudaDslashType, kappa: f64) -> QudaInvertParam {
    QudaInvertParam {
        input_location: QUDA_CPU_FIELD_LOCATION,
        output_location: QUDA_CPU_FIELD_LOCATION,
        dslash_type: dslash,
        kappa,
        tol: 1e-11,
        maxiter: 1000,
        solution_type: QUDA_MAT_SOLUTION,
        dagger: QUDA_DAG_NO,
        mass_normalization: QUDA_MASS_NORMALIZATION,
        cpu_prec: QUDA_DOUBLE_PRECISION,
        dirac_order: QUDA_DIRAC_ORDER,
        gamma_basis: QUDA_DEGRAND_ROSSI_GAMMA_BASIS,
        residual_type: QUDA_L2_RELATIVE_RESIDUAL,
        ..unsafe { newQudaInvertParam() }
    }
}

fn distance(a: &HostSpinor, b: &HostSpinor) -> f64 {
    let square = |numbers: &mut dyn Iterator<Item = Complex64>| numbers.map(|z| z.norm_sqr()).sum::<f64>();
    let difference = square(&mut a.numbers().iter().zip(b.numbers()).map(|(a, b)| a - b));
    (difference / square(&mut b.numbers().iter().copied())).sqrt()
}

/// Product of an operator with a field.
type Product<'a> = &'a dyn Fn(&HostSpinor) -> HostSpinor;

/// All calls come from one thread, so this is one test.
#[test]
fn products_and_solves_are_those_of_the_formula() {
    let lattice = Lattice::new(SIZE).unwrap();
    let links = generate::random(lattice, 21);
    let (kappa, csw) = (0.11, 1.3);
    unsafe { initQuda(-1) };
    let mut four = arrays(&links, 1.0);
    let mut qdp = four.each_mut().map(|array| array.as_mut_ptr().cast::<c_void>());
    let mut param = gauge_param(QUDA_QDP_GAUGE_ORDER, QUDA_DOUBLE_PRECISION, 1.0);
    unsafe { loadGaugeQuda(qdp.as_mut_ptr().cast(), &mut param) };
    let field: HostSpinor = generate::random_source(lattice, 22);
    let wilson = WilsonParams::from_mass(0.5 / kappa - 4.0, TimeBoundary::Antiperiodic);
    for (dslash, csw) in [(QUDA_WILSON_DSLASH, 0.0), (QUDA_CLOVER_WILSON_DSLASH, csw)] {
        let reference = WilsonLikeDirac::twisted(&links, wilson, [csw; 2], 0.0);
        if csw != 0.0 {
            let mut clover = QudaInvertParam { clover_coeff: kappa * csw, ..invert_param(dslash, kappa) };
            unsafe { loadCloverQuda(std::ptr::null_mut(), std::ptr::null_mut(), &mut clover) };
        }
        let (mut input, mut output) = (even_odd(&field), vec![Complex64::ZERO; field.numbers().len()]);
        let addresses = |input: &mut Vec<Complex64>, output: &mut Vec<Complex64>| -> [*mut c_void; 2] {
            [input.as_mut_ptr().cast(), output.as_mut_ptr().cast()]
        };
        for (normalisation, factor) in [
            (QUDA_MASS_NORMALIZATION, 1.0),
            (QUDA_KAPPA_NORMALIZATION, 2.0 * kappa),
            (QUDA_ASYMMETRIC_MASS_NORMALIZATION, 1.0),
        ] {
            let with = |dagger, solution| QudaInvertParam {
                dagger,
                solution_type: solution,
                mass_normalization: normalisation,
                ..invert_param(dslash, kappa)
            };
            let times = |field: &HostSpinor, factor: f64| {
                let mut out = field.clone();
                out.numbers_mut().iter_mut().for_each(|number| *number *= factor);
                out
            };
            let plain = |field: &HostSpinor| times(&reference.apply(false, field), factor);
            let dagger = |field: &HostSpinor| times(&reference.apply(true, field), factor);
            let [from, to] = addresses(&mut input, &mut output);
            // Sums of some 200 products in double precision.
            let mut one = with(QUDA_DAG_NO, QUDA_MAT_SOLUTION);
            unsafe { MatQuda(to, from, &mut one) };
            assert!(distance(&lexicographic(lattice, &output), &plain(&field)) < 1e-14);
            let mut one = with(QUDA_DAG_YES, QUDA_MAT_SOLUTION);
            let [from, to] = addresses(&mut input, &mut output);
            unsafe { MatQuda(to, from, &mut one) };
            assert!(distance(&lexicographic(lattice, &output), &dagger(&field)) < 1e-14);
            let [from, to] = addresses(&mut input, &mut output);
            let mut one = with(QUDA_DAG_NO, QUDA_MAT_SOLUTION);
            unsafe { MatDagMatQuda(to, from, &mut one) };
            assert!(distance(&lexicographic(lattice, &output), &dagger(&plain(&field))) < 1e-14);
            let systems: [(_, _, Product<'_>); 3] = [
                (QUDA_DAG_NO, QUDA_MAT_SOLUTION, &plain),
                (QUDA_DAG_YES, QUDA_MAT_SOLUTION, &dagger),
                (QUDA_DAG_NO, QUDA_MATDAG_MAT_SOLUTION, &|field| dagger(&plain(field))),
            ];
            for (dagger, solution, product) in systems {
                let mut one = with(dagger, solution);
                let [b, x] = addresses(&mut input, &mut output);
                unsafe { invertQuda(x, b, &mut one) };
                let residual = distance(&product(&lexicographic(lattice, &output)), &field);
                // The tolerance, with sums in another order.
                assert!(residual <= 1.01e-11 && one.iter > 5 && one.true_res[0] <= 1e-11, "{residual} {}", one.iter);
            }
        }
    }
    // Two right-hand sides in single precision, links in MILC's order, and an initial guess.
    let mut milc = vec![Complex32::ZERO; links.numbers().len()];
    for (mu, array) in four.iter().enumerate() {
        for (k, number) in array.iter().enumerate() {
            milc[36 * (k / 9) + 9 * mu + k % 9] = Complex32::new(number.re as f32, number.im as f32);
        }
    }
    let mut param = gauge_param(QUDA_MILC_GAUGE_ORDER, QUDA_SINGLE_PRECISION, 1.0);
    unsafe { loadGaugeQuda(milc.as_mut_ptr().cast(), &mut param) };
    let single = |field: &HostSpinor| -> Vec<Complex32> {
        even_odd(field).iter().map(|z| Complex32::new(z.re as f32, z.im as f32)).collect()
    };
    let fields: [HostSpinor; 2] = [23, 24].map(|seed| generate::random_source(lattice, seed));
    let mut sources = fields.each_ref().map(single);
    let mut solutions = [vec![Complex32::ZERO; sources[0].len()], vec![Complex32::ZERO; sources[0].len()]];
    let mut one = QudaInvertParam {
        num_src: 2,
        cpu_prec: QUDA_SINGLE_PRECISION,
        tol: 1e-9,
        use_init_guess: QUDA_USE_INIT_GUESS_NO,
        ..invert_param(QUDA_WILSON_DSLASH, kappa)
    };
    let mut b = sources.each_mut().map(|array| array.as_mut_ptr().cast::<c_void>());
    let mut x = solutions.each_mut().map(|array| array.as_mut_ptr().cast::<c_void>());
    unsafe { invertMultiSrcQuda(x.as_mut_ptr(), b.as_mut_ptr(), &mut one) };
    let reference = WilsonLikeDirac::twisted(&links, wilson, [0.0; 2], 0.0);
    for (field, solution) in fields.iter().zip(&solutions) {
        let numbers: Vec<Complex64> = solution.iter().map(|z| Complex64::new(z.re.into(), z.im.into())).collect();
        // Links, sources and solutions are rounded to single precision.
        assert!(distance(&reference.apply(false, &lexicographic(lattice, &numbers)), field) < 1e-6);
    }
    let first = one.iter;
    one.use_init_guess = QUDA_USE_INIT_GUESS_YES;
    one.tol = 1e-5;
    unsafe { invertMultiSrcQuda(x.as_mut_ptr(), b.as_mut_ptr(), &mut one) };
    assert_eq!((first > 5, one.iter), (true, 0), "the guess is a solution");
    // Anisotropic hops: links in space are divided by the anisotropy.
    let mut four = arrays(&links, 2.5);
    let mut qdp = four.each_mut().map(|array| array.as_mut_ptr().cast::<c_void>());
    let mut param = gauge_param(QUDA_QDP_GAUGE_ORDER, QUDA_DOUBLE_PRECISION, 2.5);
    unsafe { loadGaugeQuda(qdp.as_mut_ptr().cast(), &mut param) };
    let mut one = invert_param(QUDA_WILSON_DSLASH, kappa);
    let (mut input, mut output) = (even_odd(&field), vec![Complex64::ZERO; field.numbers().len()]);
    unsafe { MatQuda(output.as_mut_ptr().cast(), input.as_mut_ptr().cast(), &mut one) };
    let anisotropy = ferrite::operators::Anisotropy { xi: 2.5, nu: 1.0 };
    let mass = 0.5 / kappa - 1.0 - 3.0 / 2.5;
    let wilson = WilsonParams { mass, boundary: TimeBoundary::Antiperiodic, anisotropy };
    let expected = WilsonLikeDirac::twisted(&links, wilson, [0.0; 2], 0.0).apply(false, &field);
    assert!(distance(&lexicographic(lattice, &output), &expected) < 1e-14);
    unsafe { freeCloverQuda() };
    unsafe { freeGaugeQuda() };
    unsafe { endQuda() };
}
