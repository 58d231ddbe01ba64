//! Norms of right-hand sides whose squares double precision can represent. A nonzero norm that underflows must not look like
//! that of b = 0.

use crate::error::SolveError;
use crate::traits::{VectorSpace, with_coefficients};
use num_complex::Complex64;

/// Largest norm of right-hand sides that solvers accept, 2^200; the smallest is its inverse. Products of squares of much
/// smaller residuals, as in the division of two complex sums, are then still normal numbers.
const NORM: f64 = 1.6069380442589903e60;
/// Base-2 exponent of a scaling step, within the range of single precision.
const STEP: i32 = 100;
/// Number of scaling steps from the smallest or the largest positive number to a number in range.
const STEPS: usize = 11;

/// Rejects right-hand sides `b` whose norm underflows, overflows or is out of range. Zero and infinite elements of b are
/// allowed; scaling by powers of two distinguishes them from underflow and overflow. `norm2` is ‖b_j‖²; `scratch` loses its
/// content.
///
/// # Errors
/// `OutOfRange`.
pub(crate) fn check<S: VectorSpace>(
    space: &S,
    b: &S::Vector,
    norm2: &[f64],
    scratch: &mut S::Vector,
) -> Result<(), SolveError<S::Error>> {
    let in_range = |norm2: f64| (NORM.powi(-2)..=NORM.powi(2)).contains(&norm2);
    let outside = |norm2: f64| norm2.is_finite() && norm2 != 0.0 && !in_range(norm2);
    if let Some(rhs) = norm2.iter().position(|norm2| outside(*norm2)) {
        return Err(SolveError::OutOfRange { rhs });
    }
    // All right-hand sides take the same number of steps, but each has its own direction.
    let direction = |norm2: &f64| match norm2 {
        0.0 => STEP,
        norm2 if *norm2 == f64::INFINITY => -STEP,
        _ => 0,
    };
    let directions: Vec<i32> = norm2.iter().map(direction).collect();
    if directions.iter().all(|direction| *direction == 0) {
        return Ok(());
    }
    let mut scaled = vec![0.0; norm2.len()];
    space.copy(b, scratch)?;
    for _ in 0..STEPS {
        let powers = |powers: &[Complex64]| {
            with_coefficients(powers.len(), |_| Complex64::ZERO, |zeros| space.axpby(zeros, b, powers, scratch))
        };
        with_coefficients(directions.len(), |j| power(directions[j]), powers)?;
        space.norm2(scratch, &mut scaled)?;
        let found = |(norm2, direction): (&f64, &i32)| *direction != 0 && *norm2 > 0.0 && norm2.is_finite();
        if let Some(rhs) = scaled.iter().zip(&directions).position(found) {
            return Err(SolveError::OutOfRange { rhs });
        }
    }
    Ok(())
}

/// Multiplies a vector by a power of two that brings its norm in range, for uses in which only its direction matters. `norm2`
/// is ‖x‖² and is updated; `scratch` loses its content.
pub(crate) fn bring_near_one<S: VectorSpace>(
    space: &S,
    x: &mut S::Vector,
    norm2: &mut [f64; 1],
    scratch: &mut S::Vector,
) -> Result<(), S::Error> {
    for _ in 0..STEPS {
        let direction = match norm2[0] {
            small if small < NORM.powi(-2) => STEP,
            large if large > NORM.powi(2) => -STEP,
            _ => return Ok(()),
        };
        space.copy(x, scratch)?;
        space.axpby(&[power(direction)], scratch, &[Complex64::ZERO], x)?;
        space.norm2(x, norm2)?;
    }
    Ok(())
}

fn power(exponent: i32) -> Complex64 {
    2f64.powi(exponent).into()
}
