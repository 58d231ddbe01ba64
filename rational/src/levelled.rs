//! Rational function whose error alternates between +E and −E on 2n + 2 given points.
//!
//! With nodes t_l = y_{2l} and n + 1 further points s_k = y_{2k+1}, any R = P/Q of order (n, n) with
//! R(t_l) = f(t_l) (1 + E) is
//!
//! R(y) = Σ_l β_l f(t_l) (1 + E)/(y − t_l) / Σ_l β_l/(y − t_l),  β_l = Q(t_l)/Π_{j≠l} (t_l − t_j),
//!
//! and R(s_k) = f(s_k) (1 − E) for all k makes an eigenvalue problem of size n + 1 for E and β:
//!
//! (L + E C) β = 0,  L_kl = (f(t_l) − f(s_k))/(s_k − t_l),  C_kl = (f(t_l) + f(s_k))/(s_k − t_l).
//!
//! [Filip, Nakatsukasa, Trefethen, Beckermann, *Rational minimax approximation via adaptive barycentric
//! representations*, SIAM J. Sci. Comput. 40 (2018) A2427, section 4.] The required R has no pole between the points,
//! so that Q has the same sign on all nodes.
//!
//! **Choice of the eigenvalue.** If f or 1/f is a Stieltjes function, L⁻¹C in the variables Q(t_l) has elements of one sign,
//! whatever the points are. Then (Perron, Frobenius) exactly one eigenvector has components of one sign, and its |E| is
//! the smallest. Noda's iteration [*Numer. Math.* 17 (1971) 382] finds it from any positive vector, with quadratic
//! convergence, however close the next eigenvalue is: it makes Q′ from Q by (L + E₀ C) β′ = C β, and moves E₀ by the
//! smallest |Q_l/Q′_l|, which does not pass E. Each step checks that the signs are right.
//!
//! L is singular up to about E, which costs digits that multiple precision can afford.

use crate::real::{BigFloat, Bits, abs, positive};

/// Function whose error alternates between +E and −E on given points, in barycentric form, with its level E.
pub(crate) struct Levelled {
    /// Nodes t_l of the barycentric form of R.
    pub nodes: Vec<BigFloat>,
    /// Weights β_l of the barycentric form of R.
    pub weights: Vec<BigFloat>,
    /// Values R(t_l) at the nodes.
    pub values: Vec<BigFloat>,
    /// Level E: the error δ = R/f − 1 is +E at the points with even index, and −E at the others.
    pub level: BigFloat,
}

/// Largest number of steps of Noda's iteration, which needs about ten.
const ITERATIONS: usize = 60;

/// Solves the eigenvalue problem for the points `y`, in ascending order, and the values `f` at these points. As a
/// start, the denominator of R is Π (y + σ) for the `poles` σ, and the level is `level`, which must not exceed |E|.
/// Returns `None` if the precision does not suffice.
pub(crate) fn levelled(
    y: &[BigFloat],
    f: &[BigFloat],
    poles: &[BigFloat],
    level: &BigFloat,
    precision: Bits,
) -> Option<Levelled> {
    let n = y.len() / 2;
    let entry = |k: usize, l: usize, sign: &BigFloat| (&f[2 * l] + sign * &f[2 * k + 1]) / (&y[2 * k + 1] - &y[2 * l]);
    let matrix = |sign: i64| -> Vec<Vec<BigFloat>> {
        let sign = precision.integer(sign);
        (0..n).map(|k| (0..n).map(|l| entry(k, l, &sign)).collect()).collect()
    };
    let (l, c) = (matrix(-1), matrix(1));
    let shifted = |level: &BigFloat| -> Option<Lu> {
        let rows = l.iter().zip(&c).map(|(l, c)| l.iter().zip(c).map(|(l, c)| l + level * c).collect());
        Lu::factor(rows.collect(), precision)
    };
    let nodes: Vec<BigFloat> = y.iter().step_by(2).cloned().collect();
    let mut weights = normalised(weights_of(&nodes, poles, precision))?;
    let mut level = level.clone();
    let mut lu = shifted(&level)?;
    for _ in 0..ITERATIONS {
        let next = lu.solve(&product(&c, &weights));
        let step = noda(&next, &weights)?;
        weights = normalised(next)?;
        level -= &step;
        let refined = shifted(&level);
        if abs(&step) < abs(&level) * precision.tiny(precision.0 / 3) {
            // E has converged. One more step makes β equally accurate, unless L + E C is singular to the last digit.
            if let Some(next) = refined.and_then(|lu| normalised(lu.solve(&product(&c, &weights)))) {
                weights = next;
            }
            let values = f.iter().step_by(2).map(|f| f * (precision.integer(1) + &level)).collect();
            return Some(Levelled { nodes, weights, values, level });
        }
        lu = refined?;
    }
    None
}

/// Returns the smallest of all β_l/β′_l, which estimates E₀ − E, or `None` if they differ in sign.
fn noda(next: &[BigFloat], weights: &[BigFloat]) -> Option<BigFloat> {
    let mut best: Option<BigFloat> = None;
    for (next, weight) in next.iter().zip(weights) {
        if *next == BigFloat::ZERO {
            return None;
        }
        let ratio = weight / next;
        best = match best {
            Some(best) if positive(&best) != positive(&ratio) => return None,
            Some(best) if abs(&best) < abs(&ratio) => Some(best),
            _ => Some(ratio),
        };
    }
    best
}

/// Computes Π (t_l + σ)/Π_{j≠l} (t_l − t_j), the weights β_l for the denominator Π (y + σ).
fn weights_of(nodes: &[BigFloat], poles: &[BigFloat], precision: Bits) -> Vec<BigFloat> {
    let weight = |l: usize| {
        let above = poles.iter().fold(precision.integer(1), |product, pole| product * (&nodes[l] + pole));
        let others = nodes.iter().enumerate().filter(|(j, _)| *j != l);
        above / others.fold(precision.integer(1), |product, (_, t)| product * (&nodes[l] - t))
    };
    (0..nodes.len()).map(weight).collect()
}

/// Divides the vector by its largest component; returns `None` if all components are 0.
fn normalised(x: Vec<BigFloat>) -> Option<Vec<BigFloat>> {
    let (_, size) = largest(&x)?;
    Some(x.iter().map(|x| x / &size).collect())
}

fn product(matrix: &[Vec<BigFloat>], x: &[BigFloat]) -> Vec<BigFloat> {
    let dot = |row: &Vec<BigFloat>| row.iter().zip(x).map(|(a, x)| a * x).reduce(|a, b| a + b);
    matrix.iter().filter_map(dot).collect()
}

/// Returns the index and value of the component with the largest modulus, or `None` if all are 0.
fn largest(x: &[BigFloat]) -> Option<(usize, BigFloat)> {
    let mut best = (0, BigFloat::ZERO);
    for (i, x) in x.iter().enumerate() {
        if abs(x) > abs(&best.1) {
            best = (i, x.clone());
        }
    }
    (best.1 != BigFloat::ZERO).then_some(best)
}

/// LU factors from Gaussian elimination with row pivoting.
struct Lu {
    rows: Vec<Vec<BigFloat>>,
    order: Vec<usize>,
    /// Inverse pivots 1/u_ii.
    pivots: Vec<BigFloat>,
}

impl Lu {
    /// Factorises a matrix; returns `None` if it is singular at this precision.
    fn factor(mut rows: Vec<Vec<BigFloat>>, precision: Bits) -> Option<Self> {
        let n = rows.len();
        let mut order: Vec<usize> = (0..n).collect();
        let mut pivots = Vec::with_capacity(n);
        for i in 0..n {
            let column: Vec<BigFloat> = rows[i..].iter().map(|row| row[i].clone()).collect();
            let (down, _) = largest(&column)?;
            rows.swap(i, i + down);
            order.swap(i, i + down);
            let pivot = precision.integer(1) / &rows[i][i];
            let (above, below) = rows.split_at_mut(i + 1);
            for row in below {
                let factor = &row[i] * &pivot;
                for j in i + 1..n {
                    row[j] -= &factor * &above[i][j];
                }
                row[i] = factor;
            }
            pivots.push(pivot);
        }
        Some(Self { rows, order, pivots })
    }

    fn solve(&self, x: &[BigFloat]) -> Vec<BigFloat> {
        let mut y: Vec<BigFloat> = self.order.iter().map(|i| x[*i].clone()).collect();
        for i in 0..y.len() {
            for j in 0..i {
                y[i] = &y[i] - &self.rows[i][j] * &y[j];
            }
        }
        for i in (0..y.len()).rev() {
            for j in i + 1..y.len() {
                y[i] = &y[i] - &self.rows[i][j] * &y[j];
            }
            y[i] = &y[i] * &self.pivots[i];
        }
        y
    }
}
