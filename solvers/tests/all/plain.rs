//! The space of plain vectors: its linear algebra, its sums, its errors, and solves on it against a direct solver.

use crate::common::{Random, c, direct, distance, dot, norm, positive, product};
use num_complex::Complex64;
use solvers::*;

/// A dense matrix, for any number of right-hand sides.
struct PlainMatrix {
    n: usize,
    a: Vec<Complex64>,
}

impl LinearOperator<PlainSpace> for PlainMatrix {
    fn apply(&self, x: &Vec<Complex64>, out: &mut Vec<Complex64>) -> Result<(), LengthError> {
        for (x, out) in x.chunks(self.n).zip(out.chunks_mut(self.n)) {
            out.copy_from_slice(&product(&self.a, x));
        }
        Ok(())
    }
    fn apply_dagger(&self, x: &Vec<Complex64>, out: &mut Vec<Complex64>) -> Result<(), LengthError> {
        self.apply(x, out)
    }
    fn flops(&self) -> f64 {
        8.0 * (self.n * self.n) as f64
    }
}

#[test]
fn solves_agree_with_elimination_for_each_right_hand_side() {
    let (n, nrhs) = (40, 3);
    let matrix = PlainMatrix { n, a: positive(n, 50.0, 3) };
    let space = PlainSpace::with_nrhs(n, nrhs);
    let system = Uniform::new(&space, &matrix);
    let b = Random(5).vector(n * nrhs);
    let mut x = space.allocate().unwrap();
    let params = SolverParams { tol: 1e-12, ..Default::default() };
    let info = cg(&system, &b, &mut x, &params, &mut CgWorkspace::new(&system).unwrap(), &mut ()).unwrap();
    assert!(info.converged && info.true_residual.len() == nrhs);
    for (x, b) in x.chunks(n).zip(b.chunks(n)) {
        // The residual of 1e-12 times the condition number.
        assert!(distance(x, &direct(&matrix.a, b)) < 5e-11);
    }
}

#[test]
fn a_vanishing_factor_overwrites_whatever_was_there() {
    let space = PlainSpace::with_nrhs(2, 2);
    let x = vec![c(1.0, 2.0); 4];
    let mut y = vec![c(f64::NAN, 0.0), c(f64::INFINITY, 0.0), c(3.0, 0.0), c(4.0, 0.0)];
    space.axpby(&[c(2.0, 0.0), c(0.0, 1.0)], &x, &[c(0.0, 0.0), c(1.0, 0.0)], &mut y).unwrap();
    assert_eq!(y, [c(2.0, 4.0), c(2.0, 4.0), c(1.0, 1.0), c(2.0, 1.0)]);
}

#[test]
fn products_are_antilinear_in_the_first_vector_and_sums_stay_apart() {
    let n = 1000;
    let space = PlainSpace::with_nrhs(n, 2);
    let mut random = Random(7);
    let (x, y) = (random.vector(2 * n), random.vector(2 * n));
    let (mut dots, mut norms) = ([Complex64::ZERO; 2], [0.0; 2]);
    space.dot(&x, &y, &mut dots).unwrap();
    space.norm2(&x, &mut norms).unwrap();
    for j in 0..2 {
        let (x, y) = (&x[j * n..(j + 1) * n], &y[j * n..(j + 1) * n]);
        let (dot, norm) = (dot(x, y), norm(x).powi(2));
        // Two orders of adding n terms: n ε of the sum of their moduli at most.
        assert!((dots[j] - dot).norm() < n as f64 * f64::EPSILON * norm.max(n as f64));
        assert!((norms[j] - norm).abs() < n as f64 * f64::EPSILON * norm);
    }
}

#[test]
fn a_wrong_length_is_an_error() {
    let space = PlainSpace::new(4);
    let (short, mut right) = (vec![Complex64::ONE; 3], space.allocate().unwrap());
    let wrong = LengthError { expected: 4, found: 3 };
    assert_eq!(space.copy(&short, &mut right), Err(wrong));
    assert_eq!(space.norm2(&short, &mut [0.0]), Err(wrong));
    assert_eq!(space.dot(&right, &short, &mut [Complex64::ZERO]), Err(wrong));
    assert_eq!(wrong.to_string(), "a vector has 3 numbers, but its space has 4");

    // And so from inside a solver.
    let matrix = PlainMatrix { n: 4, a: positive(4, 2.0, 1) };
    let system = Uniform::new(&space, &matrix);
    let answer =
        cg(&system, &short, &mut right, &SolverParams::default(), &mut CgWorkspace::new(&system).unwrap(), &mut ());
    assert!(matches!(answer, Err(SolveError::Backend(error)) if error == wrong));
}
