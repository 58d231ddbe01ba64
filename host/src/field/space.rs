//! Fermion fields of one parity as a vector space for the solvers.
use super::device::{DeviceField, FieldKind};
use super::sides::{Sides, coefficient};
use crate::backend::{Buffer, MAX_RHS, REDUCTION_SLOTS};
use crate::domain::{DeviceError, Domain, Result};
use crate::halo::PartialSums;
use gpu_kernels::blas::{
    self, Accumulate, Axpby, AxpyNorm2, BicgstabStep, CgUpdate, Convert, DotNorm2, Norm2, ShiftUpdate, XpayNorm2,
};
use gpu_kernels::field::Field;
use gpu_kernels::krylov::{MultiAxpy, MultiDot};
use gpu_kernels::per_side::PerSide;
use gpu_kernels::storage::{FourSpins, OneSpin, Precision, Sites};
use gpu_kernels::sums::DeviceSums;
use num_complex::Complex64;
use solvers::{Behind, ConvertFrom, Descent, Dots, ShiftStep, VectorSpace};
use std::cell::{Cell, RefCell};
use std::marker::PhantomData;
use std::ops::Range;

/// Spinors of one parity.
pub type SpinorSpace<P> = FieldSpace<FourSpins, P>;
/// Colour vectors of one parity.
pub type ColourSpace<P> = FieldSpace<OneSpin, P>;

/// The space of blocks of `nrhs` fermion fields of kind `K` on one parity in precision `P`.
pub struct FieldSpace<K, P> {
    domain: Domain,
    /// Right-hand sides that blocks have memory for.
    pub(super) full: usize,
    /// Those that operations concern.
    nrhs: Cell<usize>,
    /// Coefficients of block updates, made when first needed.
    pub(super) table: RefCell<Option<Buffer>>,
    format: PhantomData<(K, P)>,
}

impl<K: FieldKind, P: Precision> FieldSpace<K, P> {
    /// Blocks of `nrhs` vectors. Panics unless there are between 1 and [`MAX_RHS`], which is what the space for sums holds.
    pub fn new(domain: &Domain, nrhs: usize) -> Self {
        assert!((1..=MAX_RHS).contains(&nrhs), "between 1 and {MAX_RHS} right-hand sides");
        FieldSpace {
            domain: domain.clone(),
            full: nrhs,
            nrhs: Cell::new(nrhs),
            table: RefCell::default(),
            format: PhantomData,
        }
    }
    /// Where the vectors live.
    pub fn domain(&self) -> &Domain {
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
    /// The step of [`LinearOperator::descend`](solvers::LinearOperator::descend) from where t = (A + σ) p is known, and its
    /// curvature to the device.
    pub(crate) fn descend(
        &self,
        from: &Descent<'_, DeviceField<K, P>>,
        sums: DeviceSums,
        t: &mut DeviceField<K, P>,
        curvature: &mut [Complex64],
        norm2: &mut [f64],
        behind: [Behind<'_, DeviceError>; 2],
    ) -> Result {
        self.launch_each(2, |sides| blas::Descent {
            r: sides.of(from.r),
            t: sides.of(t),
            rho: sides.real(from.rho),
            sums,
            first: sides.first() as u32,
        })?;
        behind.into_iter().try_for_each(|behind| behind())?;
        self.take_sums(|j, [new, dot]| {
            curvature[j] = dot.into();
            norm2[j] = new;
        })
    }
    /// Runs what `kernel` makes for right-hand sides that go in one launch, until all of `sides` are done.
    fn each<T: gpu_kernels::Kernel>(&self, sides: Range<usize>, kernel: impl Fn(&Sides<'_>) -> T) -> Result {
        for sides in Sides::groups(sides, &self.domain) {
            let kernel = kernel(&sides);
            sides.fit()?;
            self.domain.backend().launch(&kernel, self.domain.half_sites(), sides.count())?;
        }
        Ok(())
    }
    /// The same for all right-hand sides.
    fn all<T: gpu_kernels::Kernel>(&self, kernel: impl Fn(&Sides<'_>) -> T) -> Result {
        self.each(0..self.nrhs(), kernel)
    }
    /// y ← a x + y for some right-hand sides.
    fn add_for(&self, sides: Range<usize>, a: &[Complex64], x: &DeviceField<K, P>, y: &DeviceField<K, P>) -> Result {
        let ones = vec![Complex64::ONE; self.nrhs()];
        let kernel =
            |sides: &Sides<'_>| Axpby { x: sides.of(x), y: sides.of(y), a: sides.complex(a), b: sides.complex(&ones) };
        self.each(sides, kernel)
    }
    /// `to` ← `from` for one right-hand side.
    fn copy_side(&self, from: Field<Sites<K, P>>, to: Field<Sites<K, P>>) -> Result {
        let (one, zero) = (coefficient(Complex64::ONE), coefficient(Complex64::ZERO));
        let kernel = Axpby { x: from, y: to, a: PerSide::new(|_| one), b: PerSide::new(|_| zero) };
        Ok(self.domain.backend().launch(&kernel, self.domain.half_sites(), 1)?)
    }
    /// x ← x + a p, p ← r + b p for N systems.
    fn shift_update_of<const N: usize>(
        &self,
        steps: [&&ShiftStep<'_, DeviceField<K, P>>; N],
        r: &DeviceField<K, P>,
        sides: Range<usize>,
    ) -> Result {
        self.each(sides, |sides| ShiftUpdate::<Sites<K, P>, N> {
            r: sides.of(r),
            x: steps.map(|step| sides.of(step.x)),
            p: steps.map(|step| sides.of(step.p)),
            a: steps.map(|step| sides.real(step.a)),
            b: steps.map(|step| sides.real(step.b)),
        })
    }
    /// The same for any number of systems. None of them rests or is dropped for one of these right-hand sides.
    fn advance(
        &self,
        steps: &[&ShiftStep<'_, DeviceField<K, P>>],
        r: &DeviceField<K, P>,
        sides: Range<usize>,
    ) -> Result {
        let mut rest = steps;
        while let [step, others @ ..] = rest {
            // Colour vectors have kernels for several systems at once.
            rest = match rest {
                [a, b, c, d, others @ ..] if K::SPINS == 1 => {
                    self.shift_update_of([a, b, c, d], r, sides.clone())?;
                    others
                }
                [a, b, others @ ..] if K::SPINS == 1 => {
                    self.shift_update_of([a, b], r, sides.clone())?;
                    others
                }
                _ => {
                    self.each(sides.clone(), |sides| CgUpdate {
                        x: sides.of(step.x),
                        p: sides.of(step.p),
                        r: sides.of(r),
                        a: sides.real(step.a),
                        b: sides.real(step.b),
                    })?;
                    others
                }
            };
        }
        Ok(())
    }
    /// [`multi_dot`](VectorSpace::multi_dot) of vectors that need not lie side by side.
    pub(crate) fn products(
        &self,
        xs: &[&DeviceField<K, P>],
        y: &DeviceField<K, P>,
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
        let (backend, sites) = (self.domain.backend(), self.domain.half_sites());
        xs.iter().chain([&y]).try_for_each(|x| x.expect(&self.domain, self.nrhs()))?;
        for (group, xs) in xs.chunks(4).enumerate() {
            let x = std::array::from_fn(|k| xs[k.min(xs.len() - 1)].view());
            backend.reduce(&MultiDot { x, y: y.view() }, sites, self.nrhs() as u32, 8 * group * self.nrhs())?;
        }
        backend.reduce(&Norm2 { x: y.view() }, sites, self.nrhs() as u32, 8 * groups * self.nrhs())?;
        let mut sums = vec![0.0; self.nrhs() * width];
        self.domain.sums(&mut sums)?;
        let (products, norms) = sums.split_at(8 * groups * self.nrhs());
        for i in 0..xs.len() {
            for j in 0..self.nrhs() {
                let first = 8 * (i / 4 * self.nrhs() + j) + 2 * (i % 4);
                dots[i * self.nrhs() + j] = Complex64::new(products[first], products[first + 1]);
            }
        }
        norm2[..norms.len()].copy_from_slice(norms);
        Ok(())
    }
    /// [`multi_axpy`](VectorSpace::multi_axpy) of vectors that need not lie side by side.
    pub(crate) fn add_all(&self, a: &[Complex64], xs: &[&DeviceField<K, P>], y: &mut DeviceField<K, P>) -> Result {
        let full = if K::SPINS == 1 { 0 } else { xs.len() / 4 * 4 };
        let of = |i: usize| &a[i * self.nrhs()..][..self.nrhs()];
        for first in (0..full).step_by(4) {
            self.all(|sides| MultiAxpy {
                x: std::array::from_fn(|k| sides.of(xs[first + k])),
                a: std::array::from_fn(|k| sides.complex(of(first + k))),
                y: sides.of(y),
            })?;
        }
        for (i, x) in xs.iter().enumerate().skip(full) {
            self.axpy(of(i), x, y)?;
        }
        Ok(())
    }
    /// Launches the reduction of `norm2` without waiting for its result, for benchmarks.
    pub(crate) fn start_norm2(&self, x: &DeviceField<K, P>) -> Result {
        x.expect(&self.domain, self.nrhs())?;
        let (backend, sites) = (self.domain.backend(), self.domain.half_sites());
        Ok(backend.reduce(&Norm2 { x: x.view() }, sites, self.nrhs() as u32, 0)?)
    }
    /// Sums what `kernel` makes for right-hand sides that go in one launch, `N` values each, and hands them to `take`.
    fn sum_each<R: gpu_kernels::Reduction, const N: usize>(
        &self,
        kernel: impl Fn(&Sides<'_>) -> R,
        take: impl FnMut(usize, [f64; N]),
    ) -> Result {
        self.launch_each(N, kernel)?;
        self.take_sums(take)
    }
    /// The same without waiting for the sums, `values` of each right-hand side.
    fn launch_each<R: gpu_kernels::Reduction>(&self, values: usize, kernel: impl Fn(&Sides<'_>) -> R) -> Result {
        for sides in Sides::groups(0..self.nrhs(), &self.domain) {
            let (slot, kernel) = (sides.first() * values, kernel(&sides));
            sides.fit()?;
            self.domain.backend().reduce(&kernel, self.domain.half_sites(), sides.count(), slot)?;
        }
        Ok(())
    }
    /// The same for a kernel without coefficients, which does all right-hand sides in one launch.
    fn sum_all<R: gpu_kernels::Reduction, const N: usize>(
        &self,
        kernel: impl FnOnce(&Sides<'_>) -> R,
        take: impl FnMut(usize, [f64; N]),
    ) -> Result {
        let sides = Sides::new(0..self.nrhs(), &self.domain);
        let kernel = kernel(&sides);
        sides.fit()?;
        self.domain.backend().reduce(&kernel, self.domain.half_sites(), sides.count(), 0)?;
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

impl<K: FieldKind, P: Precision> VectorSpace for FieldSpace<K, P> {
    type Vector = DeviceField<K, P>;
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
        x.expect(&self.domain, i.max(j) + 1)?;
        scratch.expect(&self.domain, 1)?;
        let side = |x: &Self::Vector, k: usize| x.view().from_rhs(k);
        self.copy_side(side(x, i), side(scratch, 0))?;
        self.copy_side(side(x, j), side(x, i))?;
        self.copy_side(side(scratch, 0), side(x, j))
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
        from.expect(&self.domain, self.nrhs())?;
        to.expect(&self.domain, self.nrhs())?;
        let bytes = DeviceField::<K, P>::bytes_for(self.domain.half_sites() as usize, self.nrhs());
        Ok(self.domain.backend().copy(from.buffer(), to.buffer_mut(), bytes)?)
    }
    fn axpby(&self, a: &[Complex64], x: &Self::Vector, b: &[Complex64], y: &mut Self::Vector) -> Result {
        self.all(|sides| Axpby { x: sides.of(x), y: sides.of(y), a: sides.complex(a), b: sides.complex(b) })
    }
    fn norm2(&self, x: &Self::Vector, out: &mut [f64]) -> Result {
        self.sum_all(|sides| Norm2 { x: sides.of(x) }, |j, [norm2]| out[j] = norm2)
    }
    fn dot(&self, x: &Self::Vector, y: &Self::Vector, out: &mut [Complex64]) -> Result {
        let kernel = |sides: &Sides<'_>| DotNorm2 { x: sides.of(x), y: sides.of(y) };
        self.sum_all(kernel, |j, [re, im, _]| out[j] = Complex64::new(re, im))
    }
    fn axpy_norm2(&self, a: &[Complex64], x: &Self::Vector, y: &mut Self::Vector, out: &mut [f64]) -> Result {
        let kernel = |sides: &Sides<'_>| AxpyNorm2 { x: sides.of(x), y: sides.of(y), a: sides.complex(a) };
        self.sum_each(kernel, |j, [norm2]| out[j] = norm2)
    }
    fn dot_norm2(&self, x: &Self::Vector, y: &Self::Vector, dot: &mut [Complex64], norm2: &mut [f64]) -> Result {
        let kernel = |sides: &Sides<'_>| DotNorm2 { x: sides.of(x), y: sides.of(y) };
        self.sum_all(kernel, |j, [re, im, n]| {
            dot[j] = Complex64::new(re, im);
            norm2[j] = n;
        })
    }
    fn xpay_norm2(
        &self,
        x: &Self::Vector,
        a: &[f64],
        y: &mut Self::Vector,
        out: &mut [f64],
        behind: Behind<'_, DeviceError>,
    ) -> Result {
        self.launch_each(1, |sides| XpayNorm2 { x: sides.of(x), y: sides.of(y), a: sides.real(a) })?;
        behind()?;
        self.take_sums(|j, [norm2]| out[j] = norm2)
    }
    fn sub_norm2(&self, b: &Self::Vector, r: &mut Self::Vector, out: &mut [f64]) -> Result {
        self.xpay_norm2(b, &vec![-1.0; self.nrhs()], r, out, &mut || Ok(()))
    }
    fn cg_update(
        &self,
        alpha: &[f64],
        beta: &[f64],
        r: &Self::Vector,
        x: &mut Self::Vector,
        p: &mut Self::Vector,
    ) -> Result {
        self.all(|sides| CgUpdate {
            x: sides.of(x),
            p: sides.of(p),
            r: sides.of(r),
            a: sides.real(alpha),
            b: sides.real(beta),
        })
    }
    /// An update moves five vectors; one that is late reads r once more, which pays as long as it does not take much longer
    /// than the wait.
    fn updates_behind(&self) -> usize {
        let update = 5 * DeviceField::<K, P>::bytes_for(self.domain.half_sites() as usize, self.nrhs());
        let hidden = self.domain.backend().bytes_while_waiting();
        if update > 2 * hidden { 0 } else { hidden.div_ceil(update) }
    }
    fn shift_update(&self, r: &Self::Vector, steps: &mut [ShiftStep<'_, Self::Vector>]) -> Result {
        // Most systems go on for all right-hand sides, which then share a launch.
        let goes = |step: &ShiftStep<'_, _>, j: usize| !step.rests(j) && step.z[j] != 0.0;
        let (whole, others): (Vec<_>, Vec<_>) = steps.iter().partition(|step| (0..self.nrhs()).all(|j| goes(step, j)));
        self.advance(&whole, r, 0..self.nrhs())?;
        for j in 0..self.nrhs() {
            let going: Vec<_> = others.iter().copied().filter(|step| goes(step, j)).collect();
            self.advance(&going, r, j..j + 1)?;
            // Those that were dropped just now get their last contribution and no direction.
            for step in others.iter().filter(|step| !step.rests(j) && step.z[j] == 0.0) {
                let a: Vec<_> = step.a.iter().map(Complex64::from).collect();
                self.add_for(j..j + 1, &a, step.p, step.x)?;
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
    fn mixes_sides(&self) -> bool {
        true
    }
    fn gram(&self, x: &Self::Vector, y: &Self::Vector, out: &mut [Complex64]) -> Result {
        self.products_of_all(x, y, out)
    }
    fn block_axpy(&self, a: &[Complex64], x: &Self::Vector, y: &mut Self::Vector) -> Result {
        self.combine(a, x, y, true)
    }
    fn block_scale(&self, a: &[Complex64], x: &Self::Vector, y: &mut Self::Vector) -> Result {
        self.combine(a, x, y, false)
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
        self.all(|sides| BicgstabStep {
            x: sides.of(x),
            r: sides.of(r),
            p: sides.of(p),
            v: sides.of(v),
            t: sides.of(t),
            alpha: sides.complex(alpha),
            omega: sides.complex(omega),
            beta: sides.complex(beta),
        })
    }
}

impl<K: FieldKind, P: Precision, Q: Precision> ConvertFrom<FieldSpace<K, Q>> for FieldSpace<K, P> {
    fn convert(&self, scale: &[f64], from: &DeviceField<K, Q>, to: &mut DeviceField<K, P>) -> Result {
        self.all(|sides| Convert { x: sides.of(from), y: sides.of(to), factor: sides.real(scale) })
    }
    fn accumulate(&self, scale: &[f64], from: &DeviceField<K, Q>, to: &mut DeviceField<K, P>) -> Result {
        self.all(|sides| Accumulate { x: sides.of(from), y: sides.of(to), factor: sides.real(scale) })
    }
}
