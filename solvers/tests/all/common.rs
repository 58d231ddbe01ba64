//! Plain spaces and dense matrices to test solvers with, and a direct solver to compare with.

use nalgebra::{DMatrix, DVector};
use num_complex::Complex64;
use solvers::{ConvertFrom, Info, Iteration, LinearOperator, SolveError, VectorSpace};
use std::cell::Cell;
use std::fmt;
use std::ops::ControlFlow;

pub const I: Complex64 = Complex64::new(0.0, 1.0);

pub const fn c(re: f64, im: f64) -> Complex64 {
    Complex64::new(re, im)
}

/// Rounding of stored numbers.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Rounding {
    Double,
    Single,
    /// 16-bit fixed point with one norm per 12 complex numbers, as in half-precision spinors.
    Half,
    /// IEEE binary16 without a norm: overflows above 65504, loses digits below 6e-5 and all of them below 3e-8.
    Narrow,
}

/// Error that a test provokes.
#[derive(Debug, PartialEq)]
pub struct Broken;
impl fmt::Display for Broken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the backend broke")
    }
}
impl std::error::Error for Broken {}

pub type Answer = Result<Info, SolveError<Broken>>;

/// Blocks of N vectors of length n, kept one after the other.
pub struct Space {
    pub n: usize,
    pub nrhs: usize,
    /// Number of right-hand sides that are worked on.
    pub width: Cell<usize>,
    pub precision: Rounding,
    pub allocations: Cell<usize>,
    pub reductions: Cell<usize>,
    /// Number of domains of vectors that are converted from a space of overlapping domains.
    pub domains: usize,
    /// Whether products of several vectors are wrong by some per cent, as if orthogonality were lost on the way.
    pub careless: bool,
}

impl Space {
    pub fn new(n: usize, nrhs: usize, precision: Rounding) -> Self {
        Self {
            n,
            nrhs,
            width: Cell::new(nrhs),
            precision,
            allocations: Cell::new(0),
            reductions: Cell::new(0),
            domains: 1,
            careless: false,
        }
    }

    pub fn double(n: usize, nrhs: usize) -> Self {
        Self::new(n, nrhs, Rounding::Double)
    }

    pub fn round(&self, x: &mut [Complex64]) {
        match self.precision {
            Rounding::Double => {}
            Rounding::Single => x.iter_mut().for_each(|v| *v = c(v.re as f32 as f64, v.im as f32 as f64)),
            Rounding::Narrow => x.iter_mut().for_each(|v| *v = c(binary16(v.re), binary16(v.im))),
            Rounding::Half => {
                for rhs in x.chunks_mut(self.n) {
                    for site in rhs.chunks_mut(12) {
                        let norm = site.iter().fold(0.0f64, |m, v| m.max(v.re.abs()).max(v.im.abs())) as f32 as f64;
                        if norm > 0.0 {
                            let fix = |v: f64| (v / norm * 32767.0).round() / 32767.0 * norm;
                            site.iter_mut().for_each(|v| *v = c(fix(v.re), fix(v.im)));
                        }
                    }
                }
            }
        }
    }

    pub fn rhs<'a>(&self, x: &'a [Complex64], j: usize) -> &'a [Complex64] {
        &x[j * self.n..(j + 1) * self.n]
    }
}

/// The nearest IEEE binary16 number.
fn binary16(x: f64) -> f64 {
    // One unit in the last of eleven digits; below 2⁻¹⁴ the unit stays what it is there.
    let unit = 2f64.powi(x.abs().log2().floor().max(-14.0) as i32 - 10);
    let rounded = (x / unit).round_ties_even() * unit;
    if rounded.abs() > 65504.0 { f64::INFINITY.copysign(x) } else { rounded }
}

impl VectorSpace for Space {
    type Vector = Vec<Complex64>;
    type Error = Broken;

    fn nrhs(&self) -> usize {
        self.width.get()
    }
    fn narrow(&self, nrhs: usize) -> bool {
        let fits = (1..=self.nrhs).contains(&nrhs);
        if fits {
            self.width.set(nrhs);
        }
        fits
    }
    fn swap_rhs(&self, x: &mut Vec<Complex64>, (i, j): (usize, usize), _: &mut Vec<Complex64>) -> Result<(), Broken> {
        (0..self.n).for_each(|k| x.swap(i * self.n + k, j * self.n + k));
        Ok(())
    }
    fn target_norm(&self) -> Option<f64> {
        (self.precision == Rounding::Narrow).then(|| 0.25 * (2.0 * self.n as f64).sqrt())
    }
    fn allocate(&self) -> Result<Vec<Complex64>, Broken> {
        self.allocations.set(self.allocations.get() + 1);
        Ok(vec![Complex64::ZERO; self.n * self.nrhs])
    }
    fn zero(&self, x: &mut Vec<Complex64>) -> Result<(), Broken> {
        x.fill(Complex64::ZERO);
        Ok(())
    }
    fn copy(&self, from: &Vec<Complex64>, to: &mut Vec<Complex64>) -> Result<(), Broken> {
        let numbers = self.width.get() * self.n;
        to[..numbers].copy_from_slice(&from[..numbers]);
        Ok(())
    }
    fn axpby(
        &self,
        a: &[Complex64],
        x: &Vec<Complex64>,
        b: &[Complex64],
        y: &mut Vec<Complex64>,
    ) -> Result<(), Broken> {
        assert_eq!((a.len(), b.len()), (self.width.get(), self.width.get()));
        for j in 0..self.width.get() {
            for i in j * self.n..(j + 1) * self.n {
                let old = if b[j] == Complex64::ZERO { Complex64::ZERO } else { b[j] * y[i] };
                y[i] = a[j] * x[i] + old;
            }
        }
        self.round(y);
        Ok(())
    }
    fn norm2(&self, x: &Vec<Complex64>, out: &mut [f64]) -> Result<(), Broken> {
        self.reductions.set(self.reductions.get() + 1);
        for (j, out) in out.iter_mut().enumerate() {
            *out = self.rhs(x, j).iter().map(|v| v.norm_sqr()).sum();
        }
        Ok(())
    }
    fn dot_norm2(
        &self,
        x: &Vec<Complex64>,
        y: &Vec<Complex64>,
        dot: &mut [Complex64],
        norm2: &mut [f64],
    ) -> Result<(), Broken> {
        self.dot(x, y, dot)?;
        self.norm2(x, norm2)?;
        self.reductions.set(self.reductions.get() - 1);
        Ok(())
    }
    fn dot(&self, x: &Vec<Complex64>, y: &Vec<Complex64>, out: &mut [Complex64]) -> Result<(), Broken> {
        self.reductions.set(self.reductions.get() + 1);
        for (j, out) in out.iter_mut().enumerate() {
            *out = dot(self.rhs(x, j), self.rhs(y, j));
        }
        Ok(())
    }
    /// One reduction, as on a device.
    fn multi_dot(
        &self,
        xs: &[Vec<Complex64>],
        y: &Vec<Complex64>,
        dots: &mut [Complex64],
        norm2: &mut [f64],
    ) -> Result<(), Broken> {
        let before = self.reductions.get();
        for (x, dots) in xs.iter().zip(dots.chunks_exact_mut(norm2.len())) {
            self.dot(x, y, dots)?;
        }
        self.norm2(y, norm2)?;
        self.reductions.set(before + 1);
        if self.careless {
            dots.iter_mut().enumerate().for_each(|(i, dot)| *dot *= c(0.95 + 0.02 * (i % 4) as f64, 0.01));
        }
        Ok(())
    }
    fn multi_gram(&self, xs: &[Vec<Complex64>], out: &mut [Complex64]) -> Result<(), Broken> {
        let n = self.nrhs();
        let pairs = (0..xs.len()).flat_map(|b| (0..=b).map(move |a| (a, b)));
        for ((a, b), out) in pairs.zip(out.chunks_exact_mut(n)) {
            self.dot(&xs[a], &xs[b], out)?;
            self.reductions.set(self.reductions.get() - 1);
        }
        self.reductions.set(self.reductions.get() + 1);
        Ok(())
    }
    /// Makes some updates of a multi-shift solve late, as they are on a device.
    fn overlapped_updates(&self) -> usize {
        1
    }
    fn mixes_rhs(&self) -> bool {
        true
    }
    fn gram(&self, x: &Vec<Complex64>, y: &Vec<Complex64>, out: &mut [Complex64]) -> Result<(), Broken> {
        self.reductions.set(self.reductions.get() + 1);
        for (at, out) in out.iter_mut().enumerate() {
            *out = dot(self.rhs(x, at / self.nrhs()), self.rhs(y, at % self.nrhs()));
        }
        Ok(())
    }
    fn block_axpy(&self, a: &[Complex64], x: &Vec<Complex64>, y: &mut Vec<Complex64>) -> Result<(), Broken> {
        let n = self.nrhs();
        for (at, y) in y.iter_mut().enumerate().take(n * self.n) {
            *y += (0..n).map(|i| x[i * self.n + at % self.n] * a[i * n + at / self.n]).sum::<Complex64>();
        }
        self.round(y);
        Ok(())
    }
    fn block_scale(&self, a: &[Complex64], x: &Vec<Complex64>, y: &mut Vec<Complex64>) -> Result<(), Broken> {
        y.fill(Complex64::ZERO);
        self.block_axpy(a, x, y)
    }
}

impl ConvertFrom<Space> for Space {
    fn convert(&self, scale: &[f64], from: &Vec<Complex64>, to: &mut Vec<Complex64>) -> Result<(), Broken> {
        let rhs = to.chunks_mut(self.n).zip(from.chunks(self.n)).zip(scale);
        rhs.for_each(|((to, from), scale)| to.iter_mut().zip(from).for_each(|(to, from)| *to = scale * from));
        self.round(to);
        Ok(())
    }
    fn accumulate(&self, scale: &[f64], from: &Vec<Complex64>, to: &mut Vec<Complex64>) -> Result<(), Broken> {
        let rhs = to.chunks_mut(self.n).zip(from.chunks(self.n)).zip(scale);
        rhs.for_each(|((to, from), scale)| to.iter_mut().zip(from).for_each(|(to, from)| *to += scale * from));
        self.round(to);
        Ok(())
    }
}

/// A dense n×n matrix, row-major, on a space whose rounding it shares.
pub struct Dense<'a> {
    pub space: &'a Space,
    pub a: Vec<Complex64>,
    pub applications: Cell<usize>,
    /// Fails at this application, counted from 1.
    pub fails_at: usize,
    /// Gives NaN for this right-hand side from this application on.
    pub nan: Option<(usize, usize)>,
}

impl<'a> Dense<'a> {
    pub fn new(space: &'a Space, a: &[Complex64]) -> Self {
        let mut a = a.to_vec();
        assert_eq!(a.len(), space.n * space.n);
        if space.precision != Rounding::Double {
            a.iter_mut().for_each(|v| *v = c(v.re as f32 as f64, v.im as f32 as f64));
        }
        Self { space, a, applications: Cell::new(0), fails_at: 0, nan: None }
    }

    fn multiply(&self, x: &[Complex64], out: &mut [Complex64], dagger: bool) -> Result<(), Broken> {
        self.applications.set(self.applications.get() + 1);
        if self.applications.get() == self.fails_at {
            return Err(Broken);
        }
        let (n, dagger) = (self.space.n, dagger.then(|| adjoint(&self.a)));
        for j in 0..self.space.width.get() {
            let image = product(dagger.as_ref().unwrap_or(&self.a), self.space.rhs(x, j));
            out[j * n..][..n].copy_from_slice(&image);
            if self.nan.is_some_and(|(rhs, from)| rhs == j && self.applications.get() >= from) {
                out[j * n] = c(f64::NAN, 0.0);
            }
        }
        self.space.round(out);
        Ok(())
    }
}

impl LinearOperator<Space> for Dense<'_> {
    fn apply(&self, x: &Vec<Complex64>, out: &mut Vec<Complex64>) -> Result<(), Broken> {
        self.multiply(x, out, false)
    }
    fn apply_dagger(&self, x: &Vec<Complex64>, out: &mut Vec<Complex64>) -> Result<(), Broken> {
        self.multiply(x, out, true)
    }
    /// A right-hand side that gives NaN is known by its place.
    fn narrow(&self, _: usize) -> bool {
        self.nan.is_none()
    }
    fn flops(&self) -> f64 {
        8.0 * (self.space.n * self.space.n) as f64
    }
}

/// An observer that stops a solve in this iteration.
pub fn stop_at(iteration: usize) -> impl FnMut(&Iteration<'_>) -> ControlFlow<()> {
    move |event| if event.iteration == iteration { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
}

/// A small generator of reproducible numbers in (−1, 1).
pub struct Random(pub u64);
impl Random {
    pub fn real(&mut self) -> f64 {
        self.0 = self.0.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        let mut z = self.0;
        z = (z ^ (z >> 33)).wrapping_mul(0xff51afd7ed558ccd);
        z ^= z >> 33;
        (z >> 11) as f64 / (1u64 << 52) as f64 - 1.0
    }
    pub fn complex(&mut self) -> Complex64 {
        c(self.real(), self.real())
    }
    pub fn vector(&mut self, n: usize) -> Vec<Complex64> {
        (0..n).map(|_| self.complex()).collect()
    }
}

/// Rows of a matrix of nalgebra.
fn rows(a: &DMatrix<Complex64>) -> Vec<Complex64> {
    a.transpose().as_slice().to_vec()
}

/// Q diag(λ) Q† with Q a product of random Householder reflections.
pub fn with_spectrum(values: &[Complex64], seed: u64) -> Vec<Complex64> {
    let n = values.len();
    let (mut random, mut a) = (Random(seed), diagonal(values));
    for _ in 0..3 {
        let v = random.vector(n);
        let scale = 2.0 / dot(&v, &v).re;
        // A ← H A H with H = 1 − 2 v v†/‖v‖².
        for k in 0..n {
            let s = (0..n).map(|i| v[i].conj() * a[i * n + k]).sum::<Complex64>() * scale;
            (0..n).for_each(|i| a[i * n + k] -= v[i] * s);
        }
        for row in a.chunks_mut(n) {
            let s = row.iter().zip(&v).map(|(a, v)| a * v).sum::<Complex64>() * scale;
            row.iter_mut().zip(&v).for_each(|(a, v)| *a -= s * v.conj());
        }
    }
    a
}

/// Hermitian, with the eigenvalues λ_i.
pub fn hermitian(n: usize, value: impl Fn(usize) -> f64, seed: u64) -> Vec<Complex64> {
    with_spectrum(&(0..n).map(|i| c(value(i), 0.0)).collect::<Vec<_>>(), seed)
}

/// Hermitian, eigenvalues spread logarithmically from 1/κ to 1.
pub fn positive(n: usize, kappa: f64, seed: u64) -> Vec<Complex64> {
    hermitian(n, |i| kappa.powf(-(i as f64) / (n as f64 - 1.0)), seed)
}

/// 1 + a random matrix of spectral radius about `size`: not Hermitian.
pub fn general(n: usize, size: f64, seed: u64) -> Vec<Complex64> {
    let mut random = Random(seed);
    let scale = size / (2.0 * n as f64 / 3.0).sqrt();
    let mut a: Vec<_> = random.vector(n * n).iter().map(|v| v * scale).collect();
    (0..n).for_each(|i| a[i * n + i] += 1.0);
    a
}

/// A matrix with these elements on its diagonal.
pub fn diagonal(values: &[Complex64]) -> Vec<Complex64> {
    rows(&DMatrix::from_diagonal(&DVector::from_column_slice(values)))
}

/// Real, A† = −A: ((0, a_k), (−a_k, 0)) on the numbers 2k and 2k + 1.
pub fn rotation(n: usize, angle: impl Fn(usize) -> f64) -> Vec<Complex64> {
    let mut a = vec![Complex64::ZERO; n * n];
    for i in (0..n).step_by(2) {
        (a[i * n + i + 1], a[(i + 1) * n + i]) = (c(angle(i), 0.0), c(-angle(i), 0.0));
    }
    a
}

/// Gaussian elimination with row pivots, independent of everything tested.
pub fn direct(a: &[Complex64], b: &[Complex64]) -> Vec<Complex64> {
    let lu = DMatrix::from_row_slice(b.len(), b.len(), a).lu();
    lu.solve(&DVector::from_column_slice(b)).expect("a regular matrix").as_slice().to_vec()
}

/// A⁻¹
pub fn inverse(a: &[Complex64]) -> Vec<Complex64> {
    let n = a.len().isqrt();
    rows(&DMatrix::from_row_slice(n, n, a).try_inverse().expect("a regular matrix"))
}

/// A†
pub fn adjoint(a: &[Complex64]) -> Vec<Complex64> {
    let n = a.len().isqrt();
    (0..n * n).map(|at| a[at % n * n + at / n].conj()).collect()
}

/// A x
pub fn product(a: &[Complex64], x: &[Complex64]) -> Vec<Complex64> {
    a.chunks(x.len()).map(|row| row.iter().zip(x).map(|(a, x)| a * x).sum()).collect()
}

/// A + σ
pub fn shifted(a: &[Complex64], shift: f64) -> Vec<Complex64> {
    let (mut a, n) = (a.to_vec(), a.len().isqrt());
    (0..n).for_each(|i| a[i * n + i] += shift);
    a
}

/// x + a y
pub fn plus(x: &[Complex64], a: impl Into<Complex64>, y: &[Complex64]) -> Vec<Complex64> {
    let a = a.into();
    x.iter().zip(y).map(|(x, y)| x + a * y).collect()
}

/// (x, y) = Σ x* y
pub fn dot(x: &[Complex64], y: &[Complex64]) -> Complex64 {
    x.iter().zip(y).map(|(x, y)| x.conj() * y).sum()
}

pub fn norm(x: &[Complex64]) -> f64 {
    x.iter().map(|v| v.norm_sqr()).sum::<f64>().sqrt()
}

/// x / ‖x‖
pub fn normalised(x: &[Complex64]) -> Vec<Complex64> {
    let size = norm(x);
    x.iter().map(|x| x / size).collect()
}

/// ‖x − y‖/‖y‖.
pub fn distance(x: &[Complex64], y: &[Complex64]) -> f64 {
    norm(&plus(x, -1.0, y)) / norm(y)
}

/// `s` shadow vectors of IDR(s), the same for all right-hand sides.
pub fn shadow(n: usize, s: usize, nrhs: usize) -> Vec<Vec<Complex64>> {
    (0..s as u64).map(|i| Random(90 + i).vector(n).repeat(nrhs)).collect()
}

/// ‖b − A x‖/‖b‖ by a loop that shares nothing with the solvers.
pub fn residual(a: &[Complex64], b: &[Complex64], x: &[Complex64]) -> f64 {
    distance(&product(a, x), b)
}

/// [`residual`] of each right-hand side.
pub fn residuals(a: &[Complex64], b: &[Complex64], x: &[Complex64]) -> Vec<f64> {
    let n = a.len().isqrt();
    b.chunks(n).zip(x.chunks(n)).map(|(b, x)| residual(a, b, x)).collect()
}

/// Whether all [`residuals`] are at most `tol`.
pub fn solved(a: &[Complex64], b: &[Complex64], x: &[Complex64], tol: f64) -> bool {
    residuals(a, b, x).iter().all(|residual| *residual <= tol)
}

/// Whatever is claimed has to be so; claims and the independent residual agree up to rounding.
#[track_caller]
pub fn check_claims(a: &[Complex64], b: &[Complex64], x: &[Complex64], info: &Info, tol: f64) {
    let n = a.len().isqrt();
    for (j, (b, x)) in b.chunks(n).zip(x.chunks(n)).enumerate() {
        if norm(b) == 0.0 {
            assert_eq!((norm(x), info.true_residual[j]), (0.0, 0.0));
            continue;
        }
        let truth = residual(a, b, x);
        let rounding = 1e-13 * (1.0 + norm(x) / norm(b));
        assert!((truth - info.true_residual[j]).abs() <= rounding, "{j}: {truth:e} {info:?}");
        assert!(!info.converged || truth <= tol + rounding, "{j}: claimed {tol:e}, is {truth:e}");
    }
}

/// Makes a space, a dense matrix on it, and the system of both.
macro_rules! uniform {
    ($space:ident, $operator:ident, $system:ident: $new:expr, $a:expr) => {
        let $space = $new;
        let $operator = Dense::new(&$space, $a);
        let $system = solvers::Uniform::new(&$space, &$operator);
    };
}
pub(crate) use uniform;

/// Makes spaces in double and in another precision, a dense matrix on both, and the system of them.
macro_rules! mixed {
    ($space:ident, $operator:ident, $small:ident, $sloppy:ident, $system:ident: $n:expr, $nrhs:expr, $krylov:expr, $a:expr) => {
        let ($space, $small) = (Space::double($n, $nrhs), Space::new($n, $nrhs, $krylov));
        let ($operator, $sloppy) = (Dense::new(&$space, $a), Dense::new(&$small, $a));
        let $system = solvers::Mixed::new(&$space, &$operator, &$small, &$sloppy);
    };
}
pub(crate) use mixed;
