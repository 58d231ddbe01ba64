//! The size of right-hand sides: powers of two change no bit of a solve, and what has no norm in double precision is refused.

use crate::common::{Answer, Broken, Dense, Random, Rounding, Space, c, diagonal, distance, positive, solved};
use crate::methods::SolveMethod::{self, *};
use crate::methods::solve;
use num_complex::Complex64;
use solvers::*;

const N: usize = 24;
const SHIFTS: [f64; 2] = [0.0, 0.5];

/// Fills x from b.
type Solver<'a> = Box<dyn Fn(&Vec<Complex64>, &mut Vec<Complex64>) -> Answer + 'a>;

/// Every solver on one system, by its name.
fn solvers<'a>(space: &'a Space, operator: &'a Dense<'a>) -> Vec<(String, Solver<'a>)> {
    let params = SolverParams { max_iterations: 500, ..Default::default() };
    let of = |method: SolveMethod| -> (String, Solver<'a>) {
        let solver = move |b: &_, x: &mut _| solve(method, &Uniform::new(space, operator), b, x, &params, &mut ());
        (format!("{method:?}"), Box::new(solver))
    };
    let multishift = move |b: &_, x: &mut Vec<Complex64>| {
        let mut all = vec![space.allocate()?, space.allocate()?];
        let mut workspace = MultiShiftWorkspace::new(space, 2)?;
        let info = multishift_cg(space, operator, &SHIFTS, b, &mut all, &params.into(), &mut workspace, &mut ())?;
        x.clone_from(&all[0]);
        Ok(info.whole)
    };
    let multishift: (String, Solver<'a>) = ("multishift".into(), Box::new(multishift));
    let methods = [Cg, Cgnr, Cgne, Bicgstab, BlockCg, BlockCgnr, Gcr(16), Defect];
    methods.map(of).into_iter().chain([multishift]).collect()
}

fn times(x: &[Complex64], exponent: i32) -> Vec<Complex64> {
    let [first, second] = [exponent / 2, exponent - exponent / 2].map(|half| 2f64.powi(half));
    x.iter().map(|x| x * first * second).collect()
}

#[test]
fn powers_of_two_change_no_bit() {
    let space = Space::double(N, 2);
    let operator = Dense::new(&space, &positive(N, 100.0, 3));
    let (b, zero) = (Random(4).vector(2 * N), vec![Complex64::ZERO; 2 * N]);
    for (name, solve) in solvers(&space, &operator) {
        let mut usual = zero.clone();
        let expected = solve(&b, &mut usual).unwrap_or_else(|error| panic!("{name}: {error}"));
        assert!(expected.iterations > 5, "{name}");
        for exponent in [-195, -40, 40, 190] {
            // The second right-hand side stays as it is.
            let scaled = [times(&b[..N], exponent), b[N..].to_vec()].concat();
            let mut x = zero.clone();
            let info = solve(&scaled, &mut x).unwrap_or_else(|error| panic!("{name}, 2^{exponent}: {error}"));
            assert_eq!(info.history, expected.history, "{name}, 2^{exponent}");
            assert_eq!(info.true_residual, expected.true_residual, "{name}, 2^{exponent}");
            let back = [times(&x[..N], -exponent), x[N..].to_vec()].concat();
            assert_eq!(back, usual, "{name}, 2^{exponent}");
        }
    }
}

/// Whatever is not zero must not be taken for it, in any solver, nor for something infinite.
#[test]
fn what_has_no_norm_is_refused() {
    let space = Space::double(N, 3);
    let operator = Dense::new(&space, &positive(N, 100.0, 3));
    let b = Random(5).vector(3 * N);
    let with = |part: Vec<Complex64>| [b[..N].to_vec(), part, b[2 * N..].to_vec()].concat();
    for (name, solve) in solvers(&space, &operator) {
        for exponent in [-1070, -800, -600, -220, 220, 600, 1020] {
            let mut x = vec![Complex64::ZERO; 3 * N];
            let error = solve(&with(times(&b[N..2 * N], exponent)), &mut x).unwrap_err();
            assert_eq!(error, SolveError::OutOfRange { rhs: 1 }, "{name}, 2^{exponent}");
        }
        // One number of the smallest there are is not zero either.
        let mut smallest = vec![Complex64::ZERO; N];
        smallest[7] = c(0.0, f64::from_bits(1));
        let mut x = vec![Complex64::ZERO; 3 * N];
        assert_eq!(solve(&with(smallest), &mut x).unwrap_err(), SolveError::OutOfRange { rhs: 1 }, "{name}");
        // Zero is.
        let mut x = Random(6).vector(3 * N);
        let info = solve(&with(vec![Complex64::ZERO; N]), &mut x).unwrap_or_else(|error| panic!("{name}: {error}"));
        assert!(x[N..2 * N].iter().all(|x| *x == Complex64::ZERO) && info.true_residual[1] == 0.0, "{name}");
        // And what is infinite or no number is called by its name.
        for number in [f64::INFINITY, f64::NAN] {
            let mut bad = b[N..2 * N].to_vec();
            bad[3] = c(number, 0.0);
            let mut x = vec![Complex64::ZERO; 3 * N];
            let error = solve(&with(bad), &mut x).unwrap_err();
            assert!(matches!(error, SolveError::NotANumber { iteration: 0, rhs: 1, .. }), "{name}, {number}: {error}");
        }
    }
}

#[test]
fn an_eigenvalue_does_not_depend_on_the_size_of_the_start() {
    let space = Space::double(N, 1);
    let operator = Dense::new(&space, &positive(N, 100.0, 3));
    let start = Random(7).vector(N);
    let largest =
        |exponent| largest_eigenvalue(&space, &operator, &mut times(&start, exponent), 50, 1e-8, &mut ()).unwrap();
    let usual = largest(0);
    assert!(usual.ritz > 0.0);
    for exponent in [-1000, -600, -300, 300, 600, 1000] {
        assert_eq!(largest(exponent).steps, usual.steps, "2^{exponent}");
        assert!((largest(exponent).ritz / usual.ritz - 1.0).abs() < 1e-12, "2^{exponent}");
    }
    let nothing = largest_eigenvalue(&space, &operator, &mut vec![Complex64::ZERO; N], 50, 1e-8, &mut ()).unwrap();
    assert_eq!((nothing.ritz, nothing.steps), (0.0, 0));
    assert_eq!(distance(&times(&times(&start, -300), 300), &start), 0.0);
}

/// Operator that leaves the range of its format inside, for vectors with a number above `limit`, although its images would not.
struct Limited<'a> {
    inner: Dense<'a>,
    limit: f64,
}
impl LinearOperator<Space> for Limited<'_> {
    fn apply(&self, x: &Vec<Complex64>, out: &mut Vec<Complex64>) -> Result<(), Broken> {
        self.inner.apply(x, out)?;
        for (x, out) in x.chunks(N).zip(out.chunks_mut(N)) {
            if x.iter().any(|x| x.re.abs().max(x.im.abs()) > self.limit) {
                out[3] = c(f64::INFINITY, 0.0);
            }
        }
        Ok(())
    }
    fn apply_dagger(&self, x: &Vec<Complex64>, out: &mut Vec<Complex64>) -> Result<(), Broken> {
        self.inner.apply_dagger(x, out)
    }
    fn flops(&self) -> f64 {
        self.inner.flops()
    }
}

/// Solvers for a positive operator in a narrow format.
const NARROW: [SolveMethod; 5] = [Bicgstab, Cg, Gcr(8), Gcr(1), BlockCg];

/// A solve that overflows a narrow format starts again on a smaller scale. It is given up if that does not help.
#[test]
fn overflow_of_a_narrow_format_is_a_matter_of_scale() {
    let (double, narrow) = (Space::double(N, 2), Space::new(N, 2, Rounding::Narrow));
    let a = positive(N, 10.0, 3);
    let params = SolverParams { tol: 1e-9, max_iterations: 2000, ..Default::default() };
    for (limit, restarts) in [(1e9, Some(false)), (0.2, Some(true)), (1e-9, None)] {
        let (precise, sloppy) = (Dense::new(&double, &a), Limited { inner: Dense::new(&narrow, &a), limit });
        let system = Mixed::new(&double, &precise, &narrow, &sloppy);
        let b = Random(8).vector(2 * N);
        for method in NARROW {
            let mut x = vec![Complex64::ZERO; 2 * N];
            let answer = solve(method, &system, &b, &mut x, &params, &mut ());
            if let Some(restarts) = restarts {
                let info = answer.unwrap_or_else(|error| panic!("{method:?} {limit}: {error}"));
                assert!(solved(&a, &b, &x, 1e-9), "{method:?}");
                // GCR counts all its restarts.
                let counted = info.restarts > 0 || matches!(method, Gcr(_));
                assert_eq!(counted, restarts || matches!(method, Gcr(_)), "{method:?} {limit}: {info:?}");
                assert_eq!(info.history[0].len(), info.iterations_per_rhs[0] + 1, "{method:?} {limit}");
            } else {
                assert!(matches!(answer, Err(SolveError::NotANumber { .. })), "{method:?} {limit}: {answer:?}");
            }
        }
    }
}

/// One right-hand side overflows, and the other one is none the worse; in GCR it is solved as if it were alone.
#[test]
fn overflow_of_one_right_hand_side_leaves_the_others_as_they_are() {
    let a = positive(N, 10.0, 3);
    let params = SolverParams { tol: 1e-9, max_iterations: 2000, ..Default::default() };
    let mut b = Random(8).vector(2 * N);
    // Its residual has a peak, and those of the other one have none.
    b[..N].iter_mut().for_each(|b| *b /= b.norm());
    b[N + 5] = c(30.0, 0.0);
    for method in NARROW {
        let solve = |nrhs: usize, b: &[Complex64], limit: f64| {
            let (double, narrow) = (Space::double(N, nrhs), Space::new(N, nrhs, Rounding::Narrow));
            let (precise, sloppy) = (Dense::new(&double, &a), Limited { inner: Dense::new(&narrow, &a), limit });
            let system = Mixed::new(&double, &precise, &narrow, &sloppy);
            let mut x = vec![Complex64::ZERO; nrhs * N];
            let info = solve(method, &system, &b.to_vec(), &mut x, &params, &mut ());
            (info.unwrap_or_else(|error| panic!("{method:?}: {error}")), x)
        };
        let ((both, x), (without, _), (alone, one)) = (solve(2, &b, 1.2), solve(2, &b, 1e9), solve(1, &b[..N], 1.2));
        assert!(solved(&a, &b, &x, 1e-9), "{method:?}");
        assert_ne!(both.history[1], without.history[1], "{method:?}");
        // In other methods updates are common to all.
        if matches!(method, Gcr(_)) {
            assert_eq!((&x[..N], &both.history[0]), (&one[..], &alone.history[0]), "{method:?}");
        }
    }
}

/// A solve converges although its solution, and nothing else, is outside the range of the narrow format.
#[test]
fn a_solution_out_of_the_range_of_a_narrow_format_is_a_matter_of_scale() {
    let (double, narrow) = (Space::double(N, 1), Space::new(N, 1, Rounding::Narrow));
    // Two eigenvalues, and of a residual nearly all belongs to the small one: the solution is 5·10⁴ times as large.
    let a = diagonal(&std::array::from_fn::<_, N, _>(|i| c(if i == 7 { 2e-5 } else { 1.0 }, 0.0)));
    let mut b = vec![c(1e-3, -1e-3); N];
    b[7] = c(1.0, 0.5);
    let (precise, sloppy) = (Dense::new(&double, &a), Dense::new(&narrow, &a));
    let system = Mixed::new(&double, &precise, &narrow, &sloppy);
    let params = SolverParams { tol: 1e-9, max_iterations: 2000, ..Default::default() };
    // Steepest descent takes too long.
    for method in NARROW.into_iter().filter(|method| *method != Gcr(1)) {
        let mut x = vec![Complex64::ZERO; N];
        let answer = solve(method, &system, &b, &mut x, &params, &mut ());
        answer.unwrap_or_else(|error| panic!("{method:?}: {error}"));
        assert!(solved(&a, &b, &x, 1e-9), "{method:?}");
    }
}
