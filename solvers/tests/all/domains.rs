//! A Dirac operator in two dimensions, its domains, and domains that overlap.

use crate::aggregates::SCHWINGER_GAMMA;
use crate::common::{Broken, Dense, Random, Rounding, Space, c, product, shifted};
use num_complex::Complex64;
use solvers::{ConvertFrom, LinearOperator, VectorSpace};
use std::cell::Cell;

/// Complex numbers on one column of the lattice of [`schwinger`]: one norm of the half format.
pub const COLUMN: usize = 12;

/// The Wilson operator of the Schwinger model on a torus of `columns` × 6 sites, dense: m + 2 − ½ Σ_μ (1 − γ_μ) U_μ(x)
/// δ_{x+μ} + (1 + γ_μ) Ū_μ(x−μ) δ_{x−μ} with γ = σ₁, σ₂ and U = e^{iθ}, |θ| < `disorder`. Not Hermitian.
///
/// Columns lie one after the other, so that a domain of whole columns is a range of indices.
pub fn schwinger(columns: usize, mass: f64, disorder: f64, seed: u64) -> Vec<Complex64> {
    const ROWS: usize = COLUMN / 2;
    let n = columns * COLUMN;
    let mut random = Random(seed);
    let mut a = shifted(&vec![Complex64::ZERO; n * n], mass + 2.0);
    for x in 0..columns {
        for y in 0..ROWS {
            for (mu, gamma) in SCHWINGER_GAMMA.iter().enumerate() {
                let link = Complex64::from_polar(1.0, disorder * random.real());
                let here = (x * ROWS + y) * 2;
                let there = if mu == 0 { ((x + 1) % columns * ROWS + y) * 2 } else { (x * ROWS + (y + 1) % ROWS) * 2 };
                for s in 0..2 {
                    for t in 0..2 {
                        let one = if s == t { 1.0 } else { 0.0 };
                        a[(here + s) * n + there + t] -= 0.5 * (one - gamma[s][t]) * link;
                        a[(there + s) * n + here + t] -= 0.5 * (one + gamma[s][t]) * link.conj();
                    }
                }
            }
        }
    }
    a
}

/// Returns the matrix without the elements that couple `domains` equal ranges of indices.
pub fn decoupled(a: &[Complex64], domains: usize) -> Vec<Complex64> {
    let n = a.len().isqrt();
    let size = n / domains;
    (0..n * n).map(|at| if at / n / size == at % n / size { a[at] } else { Complex64::ZERO }).collect()
}

/// The halo-free operator: one dense matrix for each domain, on a space of domains.
///
/// Vectors hold the domains one after the other, so a [`Space`] of `domains` times as many shorter vectors is the space
/// of domains.
pub struct DiagonalBlocks<'a> {
    pub space: &'a Space,
    pub blocks: Vec<Vec<Complex64>>,
    pub applications: Cell<usize>,
    /// Gives NaN in this domain of each right-hand side.
    pub nan: Option<usize>,
}

impl<'a> DiagonalBlocks<'a> {
    /// The diagonal blocks of `a`. `space` has `domains` vectors for each right-hand side.
    pub fn new(space: &'a Space, a: &[Complex64], domains: usize) -> Self {
        let windows: Vec<_> = (0..domains).map(|d| (0..space.n).map(|i| d * space.n + i).collect()).collect();
        Self::windows(space, a, &windows)
    }

    /// The submatrices of `a` for lists of indices.
    fn windows(space: &'a Space, a: &[Complex64], windows: &[Vec<usize>]) -> Self {
        let n = a.len().isqrt();
        // `Dense` rounds the matrix.
        let whole = Space::new(n, 1, space.precision);
        let a = Dense::new(&whole, a).a;
        let blocks = windows
            .iter()
            .map(|window| window.iter().flat_map(|i| window.iter().map(|k| a[i * n + k]).collect::<Vec<_>>()).collect())
            .collect();
        Self { space, blocks, applications: Cell::new(0), nan: None }
    }
}

impl LinearOperator<Space> for DiagonalBlocks<'_> {
    fn apply(&self, x: &Vec<Complex64>, out: &mut Vec<Complex64>) -> Result<(), Broken> {
        self.applications.set(self.applications.get() + 1);
        let n = self.space.n;
        for j in 0..self.space.nrhs {
            let (x, a) = (self.space.rhs(x, j), &self.blocks[j % self.blocks.len()]);
            out[j * n..][..n].copy_from_slice(&product(a, x));
            if self.nan == Some(j % self.blocks.len()) {
                out[j * n + n / 2] = c(f64::NAN, 0.0);
            }
        }
        self.space.round(out);
        Ok(())
    }
    fn apply_dagger(&self, _: &Vec<Complex64>, _: &mut Vec<Complex64>) -> Result<(), Broken> {
        panic!("no preconditioner asks for this")
    }
    fn flops(&self) -> f64 {
        8.0 * self.blocks.iter().map(|block| block.len() as f64).sum::<f64>()
    }
}

/// Space of whole vectors, kept as overlapping domains: each domain has `overlap` columns of its neighbours on either side. Conversion
/// fetches them, and drops them on the way back (restricted additive Schwarz).
pub struct Extended {
    /// Space in which each domain, with its overlap, is a vector of its own.
    pub domains: Space,
    windows: Vec<Vec<usize>>,
    n: usize,
}

impl Extended {
    pub fn new(n: usize, nrhs: usize, domains: usize, overlap: usize, precision: Rounding) -> Self {
        let (size, margin) = (n / domains, overlap * COLUMN);
        let windows =
            (0..domains).map(|d| (0..size + 2 * margin).map(|i| (d * size + n - margin + i) % n).collect()).collect();
        Self { domains: Space::new(size + 2 * margin, nrhs * domains, precision), windows, n }
    }

    pub fn operator(&self, a: &[Complex64]) -> DiagonalBlocks<'_> {
        DiagonalBlocks::windows(&self.domains, a, &self.windows)
    }
}

impl VectorSpace for Extended {
    type Vector = Vec<Complex64>;
    type Error = Broken;
    fn nrhs(&self) -> usize {
        self.domains.nrhs / self.windows.len()
    }
    fn target_norm(&self) -> Option<f64> {
        self.domains.target_norm()
    }
    fn allocate(&self) -> Result<Vec<Complex64>, Broken> {
        self.domains.allocate()
    }
    // Elements that lie in two domains make sums over whole vectors meaningless here, and nobody needs them.
    fn zero(&self, _: &mut Vec<Complex64>) -> Result<(), Broken> {
        Err(Broken)
    }
    fn copy(&self, _: &Vec<Complex64>, _: &mut Vec<Complex64>) -> Result<(), Broken> {
        Err(Broken)
    }
    fn axpby(
        &self,
        _: &[Complex64],
        _: &Vec<Complex64>,
        _: &[Complex64],
        _: &mut Vec<Complex64>,
    ) -> Result<(), Broken> {
        Err(Broken)
    }
    fn norm2(&self, _: &Vec<Complex64>, _: &mut [f64]) -> Result<(), Broken> {
        Err(Broken)
    }
    fn dot(&self, _: &Vec<Complex64>, _: &Vec<Complex64>, _: &mut [Complex64]) -> Result<(), Broken> {
        Err(Broken)
    }
}

impl ConvertFrom<Space> for Extended {
    fn convert(&self, scale: &[f64], from: &Vec<Complex64>, to: &mut Vec<Complex64>) -> Result<(), Broken> {
        let (size, count) = (self.domains.n, self.windows.len());
        for (j, scale) in scale.iter().enumerate() {
            for (d, window) in self.windows.iter().enumerate() {
                let to = &mut to[(j * count + d) * size..][..size];
                to.iter_mut().zip(window).for_each(|(to, i)| *to = scale * from[j * self.n + i]);
            }
        }
        self.domains.round(to);
        Ok(())
    }
    fn accumulate(&self, _: &[f64], _: &Vec<Complex64>, _: &mut Vec<Complex64>) -> Result<(), Broken> {
        Err(Broken)
    }
}

impl ConvertFrom<Extended> for Space {
    fn convert(&self, scale: &[f64], from: &Vec<Complex64>, to: &mut Vec<Complex64>) -> Result<(), Broken> {
        let size = self.n / self.domains;
        let margin = (from.len() / (self.nrhs * self.domains) - size) / 2;
        for (at, to) in to.chunks_exact_mut(size).enumerate() {
            let own = &from[at * (size + 2 * margin) + margin..][..size];
            to.iter_mut().zip(own).for_each(|(to, from)| *to = scale[at / self.domains] * from);
        }
        self.round(to);
        Ok(())
    }
    fn accumulate(&self, _: &[f64], _: &Vec<Complex64>, _: &mut Vec<Complex64>) -> Result<(), Broken> {
        Err(Broken)
    }
}
