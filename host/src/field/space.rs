//! Fermion fields of one parity as a vector space for the solvers.
use super::device::{DeviceField, FieldKind};
use crate::backend::{Backend, MAX_RHS, REDUCTION_SLOTS};
use crate::domain::{DeviceError, Domain, Result};
use crate::halo::PartialSums;
use gpu_kernels::algebra::{Complex, Real, complex};
use gpu_kernels::blas::{
    Accumulate, Axpby, AxpyNorm2, BicgstabStep, CgUpdate, Convert, DotNorm2, Norm2, ShiftUpdate, SubNorm2,
};
use gpu_kernels::field::Field;
use gpu_kernels::krylov::{MultiAxpy, MultiDot};
use gpu_kernels::storage::{FourSpins, OneSpin, Precision, Sites};
use num_complex::Complex64;
use solvers::{ConvertFrom, Dots, ShiftStep, VectorSpace};
use std::cell::Cell;
use std::marker::PhantomData;

/// Spinors of one parity.
pub type SpinorSpace<B, P> = FieldSpace<B, FourSpins, P>;
/// Colour vectors of one parity.
pub type ColourSpace<B, P> = FieldSpace<B, OneSpin, P>;

/// The space of blocks of `nrhs` fermion fields of kind `K` on one parity in precision `P`.
pub struct FieldSpace<B: Backend, K, P> {
    domain: Domain<B>,
    /// Right-hand sides that blocks have memory for.
    full: usize,
    /// Those that operations concern.
    nrhs: Cell<usize>,
    format: PhantomData<(K, P)>,
}

impl<B: Backend, K: FieldKind, P: Precision> FieldSpace<B, K, P> {
    /// Blocks of `nrhs` vectors. Panics unless there are between 1 and [`MAX_RHS`], which is what the space for sums holds.
    pub fn new(domain: &Domain<B>, nrhs: usize) -> Self {
        assert!((1..=MAX_RHS).contains(&nrhs), "between 1 and {MAX_RHS} right-hand sides");
        FieldSpace { domain: domain.clone(), full: nrhs, nrhs: Cell::new(nrhs), format: PhantomData }
    }
    /// Where the vectors live.
    pub fn domain(&self) -> &Domain<B> {
        &self.domain
    }
    /// Whether vectors are colour vectors.
    pub(crate) fn has_one_spin(&self) -> bool {
        K::SPINS == 1
    }
    /// Collects \[Re (w, out), Im (w, out), ‖out‖²\] for all right-hand sides, of parts with these or with the eight sums
    /// of [`dots_of`](Self::dots_of).
    pub(crate) fn dot_of(&self, sums: PartialSums, dot: &mut [Complex64], norm2: &mut [f64]) -> Result {
        let mut values = [0.0; 3 * MAX_RHS];
        let values = &mut values[..3 * self.nrhs()];
        sums.collect(&self.domain, &[4, 5, 7], values)?;
        for (j, values) in values.chunks_exact(3).enumerate() {
            dot[j] = Complex64::new(values[0], values[1]);
            norm2[j] = values[2];
        }
        Ok(())
    }
    /// Collects \[Re (x, y), Im (x, y), Re (w, x), Im (w, x), Re (w, y), Im (w, y), ‖x‖², ‖y‖²\] for all right-hand sides.
    pub(crate) fn dots_of(&self, sums: PartialSums, dots: &mut [Dots]) -> Result {
        let mut values = [0.0; 8 * MAX_RHS];
        let values = &mut values[..8 * self.nrhs()];
        sums.collect(&self.domain, &[], values)?;
        for (dots, s) in dots.iter_mut().zip(values.chunks_exact(8)) {
            let complex = |k: usize| Complex64::new(s[k], s[k + 1]);
            *dots = Dots { x_y: complex(0), w_x: complex(2), w_y: complex(4), x_x: s[6], y_y: s[7] };
        }
        Ok(())
    }
    /// Runs what `kernel` makes for each right-hand side.
    fn each<T: gpu_kernels::Kernel>(&self, kernel: impl Fn(usize) -> T) -> Result {
        for j in 0..self.nrhs() {
            self.domain.backend().launch(&kernel(j), self.domain.sites(), 1)?;
        }
        Ok(())
    }
    /// `to` ← `from` for one right-hand side.
    fn copy_side(&self, from: Field<Sites<K, P>>, to: Field<Sites<K, P>>) -> Result {
        let (one, zero) = (coefficient(Complex64::ONE), coefficient(Complex64::ZERO));
        let kernel = Axpby { x: from, y: to, a: one, b: zero };
        Ok(self.domain.backend().launch(&kernel, self.domain.sites(), 1)?)
    }
    /// x ← x + a p, p ← r + b p for N systems of right-hand side `j`.
    fn shift_update_of<const N: usize>(
        &self,
        steps: [&&ShiftStep<'_, DeviceField<B, K, P>>; N],
        r: &DeviceField<B, K, P>,
        j: usize,
    ) -> Result {
        let kernel = ShiftUpdate::<Sites<K, P>, N> {
            r: view(r, j),
            x: steps.map(|step| view(step.x, j)),
            p: steps.map(|step| view(step.p, j)),
            a: steps.map(|step| P::Real::from_f64(step.a[j])),
            b: steps.map(|step| P::Real::from_f64(step.b[j])),
        };
        Ok(self.domain.backend().launch(&kernel, self.domain.sites(), 1)?)
    }
    /// [`multi_dot`](VectorSpace::multi_dot) of vectors that need not lie side by side.
    pub(crate) fn products(
        &self,
        xs: &[&DeviceField<B, K, P>],
        y: &DeviceField<B, K, P>,
        dots: &mut [Complex64],
        norm2: &mut [f64],
    ) -> Result {
        // Four products in a pass; a last group that is not full has some of them twice.
        let groups = xs.len().div_ceil(4);
        let width = 8 * groups + 1;
        if K::SPINS == 1 || self.nrhs() * width > REDUCTION_SLOTS {
            for (x, dots) in xs.iter().zip(dots.chunks_exact_mut(self.nrhs())) {
                self.dot(x, y, dots)?;
            }
            return self.norm2(y, norm2);
        }
        let (backend, sites) = (self.domain.backend(), self.domain.sites());
        for j in 0..self.nrhs() {
            for (group, xs) in xs.chunks(4).enumerate() {
                let x = std::array::from_fn(|k| view(xs[k.min(xs.len() - 1)], j));
                let kernel = MultiDot { x, y: view(y, j) };
                backend.reduce(&kernel, sites, 1, j * width + 8 * group)?;
            }
            backend.reduce(&Norm2 { x: view(y, j) }, sites, 1, j * width + 8 * groups)?;
        }
        let mut sums = vec![0.0; self.nrhs() * width];
        self.domain.sums(&mut sums)?;
        for (j, sums) in sums.chunks_exact(width).enumerate() {
            for i in 0..xs.len() {
                dots[i * self.nrhs() + j] = Complex64::new(sums[2 * i], sums[2 * i + 1]);
            }
            norm2[j] = sums[8 * groups];
        }
        Ok(())
    }
    /// [`multi_axpy`](VectorSpace::multi_axpy) of vectors that need not lie side by side.
    pub(crate) fn add_all(
        &self,
        a: &[Complex64],
        xs: &[&DeviceField<B, K, P>],
        y: &mut DeviceField<B, K, P>,
    ) -> Result {
        let full = if K::SPINS == 1 { 0 } else { xs.len() / 4 * 4 };
        let of = |i: usize, j: usize| a[i * self.nrhs() + j];
        for first in (0..full).step_by(4) {
            self.each(|j| MultiAxpy {
                x: std::array::from_fn(|k| view(xs[first + k], j)),
                a: std::array::from_fn(|k| coefficient(of(first + k, j))),
                y: view(y, j),
            })?;
        }
        for (i, x) in xs.iter().enumerate().skip(full) {
            let a: Vec<_> = (0..self.nrhs()).map(|j| of(i, j)).collect();
            self.axpy(&a, x, y)?;
        }
        Ok(())
    }
    /// Launches the reduction of `norm2` without waiting for its result, for benchmarks.
    pub(crate) fn start_norm2(&self, x: &DeviceField<B, K, P>) -> Result {
        let (backend, sites) = (self.domain.backend(), self.domain.sites());
        Ok(backend.reduce(&Norm2 { x: view(x, 0) }, sites, self.nrhs() as u32, 0)?)
    }
    /// Sums what `kernel` makes for each right-hand side, `K` values each, and hands them to `take`.
    fn sum_each<R: gpu_kernels::Reduction, const N: usize>(
        &self,
        kernel: impl Fn(usize) -> R,
        take: impl FnMut(usize, [f64; N]),
    ) -> Result {
        for j in 0..self.nrhs() {
            self.domain.backend().reduce(&kernel(j), self.domain.sites(), 1, j * N)?;
        }
        self.take_sums(take)
    }
    /// The same where the kernel of the first right-hand side does all of them: where there are no coefficients.
    fn sum_all<R: gpu_kernels::Reduction, const N: usize>(
        &self,
        kernel: R,
        take: impl FnMut(usize, [f64; N]),
    ) -> Result {
        self.domain.backend().reduce(&kernel, self.domain.sites(), self.nrhs() as u32, 0)?;
        self.take_sums(take)
    }
    /// Waits for `N` sums of each right-hand side.
    fn take_sums<const N: usize>(&self, mut take: impl FnMut(usize, [f64; N])) -> Result {
        let mut sums = [0.0; REDUCTION_SLOTS];
        let sums = &mut sums[..self.nrhs() * N];
        self.domain.sums(sums)?;
        for (j, values) in sums.chunks_exact(N).enumerate() {
            take(j, values.try_into().expect("chunks have N values"));
        }
        Ok(())
    }
}

fn coefficient<T: Real>(c: Complex64) -> Complex<T> {
    Complex { re: T::from_f64(c.re), im: T::from_f64(c.im) }
}
fn view<B: Backend, K: FieldKind, P: Precision>(x: &DeviceField<B, K, P>, rhs: usize) -> Field<Sites<K, P>> {
    x.view().from_rhs(rhs)
}

impl<B: Backend, K: FieldKind, P: Precision> VectorSpace for FieldSpace<B, K, P> {
    type Vector = DeviceField<B, K, P>;
    type Error = DeviceError;

    fn nrhs(&self) -> usize {
        self.nrhs.get()
    }
    fn narrow(&self, sides: usize) -> bool {
        let fits = (1..=self.full).contains(&sides);
        if fits {
            self.nrhs.set(sides);
        }
        fits
    }
    /// By copies through the first right-hand side of `scratch`, in the arithmetic of the format: exact in double and single
    /// precision, while 16 bits with a norm per site are rounded again.
    fn swap_sides(&self, x: &mut Self::Vector, (i, j): (usize, usize), scratch: &mut Self::Vector) -> Result {
        self.copy_side(view(x, i), view(scratch, 0))?;
        self.copy_side(view(x, j), view(x, i))?;
        self.copy_side(view(scratch, 0), view(x, j))
    }
    /// For formats without a norm per site: the one at which the typical number is ¼, so that there is room for peaks
    /// 10⁵ times as high.
    fn comfortable_norm(&self) -> Option<f64> {
        P::HAS_RANGE.then(|| 0.25 * ((6 * K::SPINS) as f64 * self.domain.global().half_volume() as f64).sqrt())
    }
    fn allocate(&self) -> Result<Self::Vector> {
        DeviceField::zero(&self.domain, self.full)
    }
    fn zero(&self, x: &mut Self::Vector) -> Result {
        Ok(self.domain.backend().clear(x.buffer_mut())?)
    }
    fn copy(&self, from: &Self::Vector, to: &mut Self::Vector) -> Result {
        let bytes = DeviceField::<B, K, P>::bytes_for(self.domain.sites() as usize, self.nrhs());
        Ok(self.domain.backend().copy(from.buffer(), to.buffer_mut(), bytes)?)
    }
    fn axpby(&self, a: &[Complex64], x: &Self::Vector, b: &[Complex64], y: &mut Self::Vector) -> Result {
        self.each(|j| Axpby { x: view(x, j), y: view(y, j), a: coefficient(a[j]), b: coefficient(b[j]) })
    }
    fn norm2(&self, x: &Self::Vector, out: &mut [f64]) -> Result {
        self.sum_all(Norm2 { x: view(x, 0) }, |j, [norm2]| out[j] = norm2)
    }
    fn dot(&self, x: &Self::Vector, y: &Self::Vector, out: &mut [Complex64]) -> Result {
        let kernel = DotNorm2 { x: view(x, 0), y: view(y, 0) };
        self.sum_all(kernel, |j, [re, im, _]| out[j] = Complex64::new(re, im))
    }
    fn axpy_norm2(&self, a: &[Complex64], x: &Self::Vector, y: &mut Self::Vector, out: &mut [f64]) -> Result {
        let kernel = |j: usize| AxpyNorm2 { x: view(x, j), y: view(y, j), a: coefficient(a[j]) };
        self.sum_each(kernel, |j, [norm2]| out[j] = norm2)
    }
    fn dot_norm2(&self, x: &Self::Vector, y: &Self::Vector, dot: &mut [Complex64], norm2: &mut [f64]) -> Result {
        let kernel = DotNorm2 { x: view(x, 0), y: view(y, 0) };
        self.sum_all(kernel, |j, [re, im, n]| {
            dot[j] = Complex64::new(re, im);
            norm2[j] = n;
        })
    }
    fn sub_norm2(&self, b: &Self::Vector, r: &mut Self::Vector, out: &mut [f64]) -> Result {
        self.sum_all(SubNorm2 { b: view(b, 0), r: view(r, 0) }, |j, [norm2]| out[j] = norm2)
    }
    fn cg_update(
        &self,
        alpha: &[f64],
        beta: &[f64],
        r: &Self::Vector,
        x: &mut Self::Vector,
        p: &mut Self::Vector,
    ) -> Result {
        let real = |c: f64| coefficient(Complex64::new(c, 0.0));
        self.each(|j| CgUpdate { x: view(x, j), p: view(p, j), r: view(r, j), a: real(alpha[j]), b: real(beta[j]) })
    }
    fn shift_update(&self, r: &Self::Vector, steps: &mut [ShiftStep<'_, Self::Vector>]) -> Result {
        let real = |c: f64| P::Real::from_f64(c);
        let backend = self.domain.backend();
        for j in 0..self.nrhs() {
            let moving = steps.iter().filter(|step| !step.rests(j));
            // Those that were dropped just now get their last contribution and no direction.
            let (last, going): (Vec<_>, Vec<_>) = moving.partition(|step| step.z[j] == 0.0);
            for step in last {
                let (one, a) = (Complex64::ONE, coefficient(step.a[j].into()));
                let kernel = Axpby { x: view(step.p, j), y: view(step.x, j), a, b: coefficient(one) };
                backend.launch(&kernel, self.domain.sites(), 1)?;
            }
            let mut rest = &going[..];
            while let [step, others @ ..] = rest {
                // Colour vectors have kernels for several systems at once.
                rest = match rest {
                    [a, b, c, d, others @ ..] if K::SPINS == 1 => {
                        self.shift_update_of([a, b, c, d], r, j)?;
                        others
                    }
                    [a, b, others @ ..] if K::SPINS == 1 => {
                        self.shift_update_of([a, b], r, j)?;
                        others
                    }
                    _ => {
                        let (a, b) = (complex(real(step.a[j]), P::Real::ZERO), complex(real(step.b[j]), P::Real::ZERO));
                        let kernel = CgUpdate { x: view(step.x, j), p: view(step.p, j), r: view(r, j), a, b };
                        backend.launch(&kernel, self.domain.sites(), 1)?;
                        others
                    }
                };
            }
        }
        Ok(())
    }
    fn mr_update(&self, alpha: &[Complex64], r: &Self::Vector, x: &mut Self::Vector, t: &mut Self::Vector) -> Result {
        let (one, minus) = (vec![Complex64::ONE; alpha.len()], alpha.iter().map(|a| -a).collect::<Vec<_>>());
        self.axpy(alpha, r, x)?;
        self.axpby(&one, r, &minus, t)
    }
    fn multi_dot(&self, xs: &[Self::Vector], y: &Self::Vector, dots: &mut [Complex64], norm2: &mut [f64]) -> Result {
        self.products(&xs.iter().collect::<Vec<_>>(), y, dots, norm2)
    }
    fn multi_axpy(&self, a: &[Complex64], xs: &[Self::Vector], y: &mut Self::Vector) -> Result {
        self.add_all(a, &xs.iter().collect::<Vec<_>>(), y)
    }
    fn bicgstab_step(
        &self,
        alpha: &[Complex64],
        omega: &[Complex64],
        beta: &[Complex64],
        v: &Self::Vector,
        t: &Self::Vector,
        x: &mut Self::Vector,
        r: &mut Self::Vector,
        p: &mut Self::Vector,
    ) -> Result {
        self.each(|j| BicgstabStep {
            x: view(x, j),
            r: view(r, j),
            p: view(p, j),
            v: view(v, j),
            t: view(t, j),
            alpha: coefficient(alpha[j]),
            omega: coefficient(omega[j]),
            beta: coefficient(beta[j]),
        })
    }
}

impl<B: Backend, K: FieldKind, P: Precision, Q: Precision> ConvertFrom<FieldSpace<B, K, Q>> for FieldSpace<B, K, P> {
    fn convert(&self, scale: &[f64], from: &DeviceField<B, K, Q>, to: &mut DeviceField<B, K, P>) -> Result {
        self.each(|j| Convert { x: view(from, j), y: view(to, j), factor: Q::Real::from_f64(scale[j]) })
    }
    fn accumulate(&self, scale: &[f64], from: &DeviceField<B, K, Q>, to: &mut DeviceField<B, K, P>) -> Result {
        self.each(|j| Accumulate { x: view(from, j), y: view(to, j), factor: P::Real::from_f64(scale[j]) })
    }
}
