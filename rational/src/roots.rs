//! Poles and zeros of a rational function in barycentric form.
//!
//! p(y) = Π_l (y − t_l) Σ_l b_l/(y − t_l) is a polynomial of order n for n + 1 nodes t_l. If all its roots are real,
//! Laguerre's method converges from any point above them to the largest root, without passing it. The root is divided
//! out, and the method continues to the next. If n runs down the negative axis find n roots, all roots are real; if a
//! run fails, some roots are not real.

use crate::real::{BigFloat, Bits, abs, positive};

/// Reason why the roots cannot be computed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RootFailure {
    /// Some roots are not real or not negative, or a root is double.
    NotNegative,
    /// The precision does not suffice to find the roots.
    Precision,
}

/// Largest number of iterations for a root. Laguerre's method has cubic convergence; a jump over the decades between
/// two roots takes a few steps.
const ITERATIONS: usize = 200;

/// Computes the moduli of the n negative roots in ascending order.
pub(crate) fn negative_roots(
    nodes: &[BigFloat],
    b: &[BigFloat],
    precision: Bits,
) -> Result<Vec<BigFloat>, RootFailure> {
    let degree = nodes.len() - 1;
    let mut roots: Vec<BigFloat> = Vec::with_capacity(degree);
    for found in 0..degree {
        let root = next_root(nodes, b, &roots, degree - found, precision)?;
        if roots.last().is_some_and(|last| root <= *last) {
            return Err(RootFailure::NotNegative);
        }
        roots.push(root);
    }
    Ok(roots)
}

/// Finds the smallest modulus of the `left` roots that are not yet in `roots`.
fn next_root(
    nodes: &[BigFloat],
    b: &[BigFloat],
    roots: &[BigFloat],
    left: usize,
    precision: Bits,
) -> Result<BigFloat, RootFailure> {
    let one = precision.integer(1);
    let left_real = precision.integer(left as i64);
    let less_one = precision.integer(left as i64 - 1);
    // x = −y starts at 0, or just beyond the last root, so that dividing out this root loses few digits.
    let mut x = roots.last().map_or(precision.integer(0), |last| last + (last.clone() >> 24_isize));
    let mut last_size: Option<BigFloat> = None;
    for _ in 0..ITERATIONS {
        // G = −(log p)′ and H = −(log p)″ of the remaining polynomial in the variable x, as sums over the nodes.
        let (mut g, mut h) = (precision.integer(0), precision.integer(0));
        let mut sums = [(); 3].map(|()| precision.integer(0));
        for (t, b) in nodes.iter().zip(b) {
            let inverse = &one / (&x + t);
            let mut term = b * &inverse;
            g -= &inverse;
            for sum in &mut sums {
                *sum += &term;
                term *= &inverse;
            }
            h += &inverse * &inverse;
        }
        let [s, s1, s2] = sums;
        if s == BigFloat::ZERO {
            return Ok(x);
        }
        // Σ b/(x + t) is `s`. Its first derivative is −Σ b/(x + t)², which is −`s1`, and its second derivative is 2 Σ
        // b/(x + t)³, which is 2 `s2`.
        let ratio = s1 / &s;
        g += &ratio;
        h += &ratio * &ratio - s2 * precision.integer(2) / s;
        for root in roots {
            let distance = &x - root;
            if distance == BigFloat::ZERO {
                return Err(RootFailure::NotNegative);
            }
            let inverse = &one / distance;
            g += &inverse;
            h -= &inverse * &inverse;
        }
        let square = &g * &g;
        let discriminant = &less_one * (&left_real * &h - &square);
        // The discriminant is not negative for real roots, but rounding may make it slightly negative near 0 if roots
        // are equal.
        if discriminant < -((&left_real * &left_real * square) >> 40_isize) {
            return Err(RootFailure::NotNegative);
        }
        let spread = if positive(&discriminant) { discriminant.sqrt() } else { precision.integer(0) };
        let slope = if positive(&g) { &g + spread } else { &g - spread };
        if slope == BigFloat::ZERO {
            return Err(RootFailure::NotNegative);
        }
        let step = &left_real / slope;
        x += &step;
        if x == BigFloat::ZERO {
            return Err(RootFailure::NotNegative);
        }
        let size = abs(&step) / abs(&x);
        if size < precision.tiny(precision.0 / 3) {
            // The error is of the order of the third power of this step, or rounding.
            return Ok(x);
        }
        if !positive(&step) {
            // All remaining roots should be beyond x, unless rounding interferes.
            return Err(if size < precision.tiny(30) { RootFailure::Precision } else { RootFailure::NotNegative });
        }
        if last_size.is_some_and(|last| size >= last && size < precision.tiny(30)) {
            return Err(RootFailure::Precision);
        }
        last_size = Some(size);
    }
    Err(RootFailure::Precision)
}
