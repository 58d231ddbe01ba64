//! Fermion fields of one parity as a vector space for the solvers.
use super::device::{DeviceField, FullField};
use super::rhs::{BlockGroup, coefficient};
use super::shape::FieldShape;
use crate::backend::{DeviceBuffer, LAUNCH_SUMS, MAX_RHS_PER_LAUNCH, REDUCTION_SLOTS};
use crate::domain::PartialSums;
use crate::domain::{DeviceError, Domain, Result};
use gpu_kernels::blas::{
    self, AXPBY, AXPY_NORM2, Axpby, AxpyNorm2, BICGSTAB_STEP, BicgstabStep, CG_RESIDUAL_UPDATE, CG_UPDATE, CONVERT,
    CgUpdate, Convert, DOT_NORM2, DotNorm2, MR_UPDATE, MrUpdate, NORM2, Norm2, SHIFT_UPDATE_2, SHIFT_UPDATE_4,
    ShiftUpdate, XPAY_NORM2, XpayNorm2,
};
use gpu_kernels::krylov::{MULTI_AXPY, MULTI_DOT, MULTI_GRAM, MultiAxpy, MultiDot, MultiGram};
use gpu_kernels::lattice::Divisor;
use gpu_kernels::per_rhs::{ComplexPerRhs, MAX_RHS_WITH_NUMBERS};
use gpu_kernels::sums::DeviceSums;
use gpu_kernels::{FermionKind, Format, Instances, Precision, SumInstances};
use num_complex::Complex64;
use solvers::{CgStep, ConvertFrom, Dots, Overlap, ShiftStep, VectorSpace};
use std::cell::{Cell, RefCell};
use std::ops::Range;

/// Largest number of sums of a right-hand side's block that linear algebra makes at once.
const MOST_SUMS: usize = 3;

/// The space of fermion fields of a shape on one parity: the components of a vector are the L_s blocks of a right-hand side.
pub struct FieldSpace {
    domain: Domain,
    /// Shape of the fields, with all right-hand sides for which they have memory.
    pub(super) shape: FieldShape,
    /// Number of right-hand sides on which operations act.
    nrhs: Cell<usize>,
    /// Coefficients of block updates, made when first needed.
    pub(super) table: RefCell<Option<DeviceBuffer>>,
}

impl FieldSpace {
    /// Makes the space of fields of a shape.
    ///
    /// # Panics
    /// Unless there are between 1 and [`MAX_RHS_PER_LAUNCH`] right-hand sides, and as many blocks as there is space for their sums: up
    /// to a third of [`REDUCTION_SLOTS`].
    pub fn new(domain: &Domain, shape: FieldShape) -> Self {
        let FieldShape { nrhs, .. } = shape;
        assert!((1..=MAX_RHS_PER_LAUNCH).contains(&nrhs), "between 1 and {MAX_RHS_PER_LAUNCH} right-hand sides");
        assert!((1..=REDUCTION_SLOTS / MOST_SUMS).contains(&shape.blocks()), "space for the sums of all blocks");
        FieldSpace { domain: domain.clone(), shape, nrhs: Cell::new(nrhs), table: RefCell::default() }
    }
    /// Returns the domain on which the vectors are stored.
    pub fn domain(&self) -> &Domain {
        &self.domain
    }
    /// Returns the shape of the vectors, with the number of right-hand sides on which operations act.
    pub fn shape(&self) -> FieldShape {
        self.shape.with_nrhs(self.nrhs.get())
    }
    /// Returns the fermion type of the vectors.
    pub fn kind(&self) -> FermionKind {
        self.shape.kind
    }
    /// Returns the precision of the stored numbers.
    pub fn precision(&self) -> Precision {
        self.shape.precision
    }
    /// Returns the format of the kernels for vectors of this space.
    pub(super) fn format(&self) -> Format {
        self.shape.format()
    }
    fn blocks(&self) -> usize {
        self.shape().blocks()
    }
    /// Checks that a field is a vector of this space, with at least `nrhs` right-hand sides.
    pub(super) fn expect(&self, x: &DeviceField, nrhs: usize) -> Result {
        x.expect(&self.domain, self.shape.with_nrhs(nrhs))
    }
    /// Computes `to` ← `from`, rounded to nearest where the precisions differ.
    ///
    /// # Errors
    /// Fails for fields of another kind or domain, or with fewer right-hand sides, and on failures of the device.
    pub fn convert_from(&self, from: &DeviceField, to: &mut DeviceField) -> Result {
        self.convert_with(&vec![1.0; self.nrhs()], from, to, false)
    }
    /// Computes `to` ← `scale` `from`, or `to` ← `to` + `scale` `from` if `add`.
    fn convert_with(&self, scale: &[f64], from: &DeviceField, to: &DeviceField, add: bool) -> Result {
        let format = Format { to: Some(self.precision()), ..Format::fermions(self.kind(), from.precision()) };
        for blocks in self.groups(0..self.nrhs(), MAX_RHS_WITH_NUMBERS) {
            let x = blocks.of_precision(from, from.precision());
            let kernel = Convert { x, y: blocks.of(to), factor: blocks.real(scale), add: u32::from(add) };
            blocks.fit()?;
            self.domain.backend().launch(&CONVERT, format, &kernel, self.domain.half_sites(), blocks.count())?;
        }
        Ok(())
    }
    /// Collects \[Re (w, out), Im (w, out), ‖out‖²\] for all right-hand sides of four-dimensional fields, of parts with these or
    /// with the eight sums of [`dots_of`](Self::dots_of).
    pub(crate) fn dot_of(&self, sums: PartialSums, dot: &mut [Complex64], norm2: &mut [f64]) -> Result {
        let mut values = [0.0; 3 * MAX_RHS_PER_LAUNCH];
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
        let mut values = [0.0; 8 * MAX_RHS_PER_LAUNCH];
        let values = &mut values[..8 * self.nrhs()];
        sums.collect(&self.domain, &[], values)?;
        for (dots, s) in dots.iter_mut().zip(values.chunks_exact(8)) {
            let complex = |k: usize| Complex64::new(s[k], s[k + 1]);
            *dots = Dots { x_y: complex(0), w_x: complex(2), w_y: complex(4), x_x: s[6], y_y: s[7] };
        }
        Ok(())
    }
    /// Performs the step of [`LinearOperator::cg_step`](solvers::LinearOperator::cg_step) once t = (A + σ) p is known, and writes the
    /// curvature of four-dimensional fields to the device.
    pub(crate) fn cg_step(
        &self,
        step: &CgStep<'_, DeviceField>,
        sums: DeviceSums,
        t: &mut DeviceField,
        curvature: &mut [Complex64],
        norm2: &mut [f64],
        overlap: [Overlap<'_, DeviceError>; 2],
    ) -> Result {
        self.launch_each(&CG_RESIDUAL_UPDATE, 2, |rhs| blas::CgResidualUpdate {
            r: rhs.of(step.r),
            t: rhs.of(t),
            rho: rhs.real(step.rho),
            sums,
            first: rhs.first() as u32,
        })?;
        overlap.into_iter().try_for_each(|overlap| overlap())?;
        self.take_sums(|j, [new, dot]| {
            curvature[j] = dot.into();
            norm2[j] = new;
        })
    }
    /// Runs a kernel with the arguments that `arguments` makes for the right-hand sides of each launch, until all of `rhs` are done.
    fn each<A: Copy>(
        &self,
        kernel: &Instances<A>,
        rhs: Range<usize>,
        arguments: impl Fn(&BlockGroup<'_>) -> A,
    ) -> Result {
        for blocks in self.groups(rhs, MAX_RHS_WITH_NUMBERS) {
            let arguments = arguments(&blocks);
            blocks.fit()?;
            let sites = self.domain.half_sites();
            self.domain.backend().launch(kernel, self.format(), &arguments, sites, blocks.count())?;
        }
        Ok(())
    }
    /// Returns the blocks of some right-hand sides, in groups of at most `most` for a launch each.
    pub(super) fn groups(&self, rhs: Range<usize>, most: usize) -> impl Iterator<Item = BlockGroup<'_>> {
        BlockGroup::groups(rhs, most, &self.domain, self.shape)
    }
    /// Runs a kernel with the arguments that `arguments` makes, for all right-hand sides.
    fn all<A: Copy>(&self, kernel: &Instances<A>, arguments: impl Fn(&BlockGroup<'_>) -> A) -> Result {
        self.each(kernel, 0..self.nrhs(), arguments)
    }
    /// Computes y ← a x + y for some right-hand sides.
    fn add_for(&self, rhs: Range<usize>, a: &[Complex64], x: &DeviceField, y: &DeviceField) -> Result {
        let ones = vec![Complex64::ONE; self.nrhs()];
        let arguments =
            |rhs: &BlockGroup<'_>| Axpby { x: rhs.of(x), y: rhs.of(y), a: rhs.complex(a), b: rhs.complex(&ones) };
        self.each(&AXPBY, rhs, arguments)
    }
    /// Copies `from`, a block of this space, to the right-hand sides `first`, `first` + 1 … of `to`, which may have more.
    pub(crate) fn copy_to_rhs(&self, from: &DeviceField, to: &mut DeviceField, first: usize) -> Result {
        self.expect(from, self.nrhs())?;
        self.expect(to, first + self.nrhs())?;
        (0..self.nrhs()).try_for_each(|j| self.copy_rhs((from, j), (to, first + j)))
    }
    /// Copies the right-hand sides `first`, `first` + 1 … of `from` to the first ones of `to`, a block of this space.
    pub(crate) fn copy_from_rhs(&self, from: &DeviceField, first: usize, to: &mut DeviceField) -> Result {
        self.expect(from, first + self.nrhs())?;
        self.expect(to, self.nrhs())?;
        (0..self.nrhs()).try_for_each(|j| self.copy_rhs((from, first + j), (to, j)))
    }
    /// Copies right-hand side i of `from` to right-hand side j of `to`; both have to exist.
    fn copy_rhs(&self, (from, i): (&DeviceField, usize), (to, j): (&DeviceField, usize)) -> Result {
        let (backend, sites, ls) = (self.domain.backend(), self.domain.half_sites(), self.shape.ls);
        let [a, b] = [Complex64::ONE, Complex64::ZERO].map(|c| ComplexPerRhs::new(|_| coefficient(c)));
        for s in (0..ls).step_by(MAX_RHS_WITH_NUMBERS) {
            let (x, y) = (from.view_from_block(i * ls + s), to.view_from_block(j * ls + s));
            let count = MAX_RHS_WITH_NUMBERS.min(ls - s) as u32;
            backend.launch(&AXPBY, self.format(), &Axpby { x, y, a, b }, sites, count)?;
        }
        Ok(())
    }
    /// Computes x ← x + a p, p ← r + b p for N systems.
    fn shift_update_of<const N: usize>(
        &self,
        kernel: &Instances<ShiftUpdate<N>>,
        steps: [&&ShiftStep<'_, DeviceField>; N],
        r: &DeviceField,
        rhs: Range<usize>,
    ) -> Result {
        self.each(kernel, rhs, |rhs| ShiftUpdate {
            r: rhs.of(r),
            x: steps.map(|step| rhs.of(step.x)),
            p: steps.map(|step| rhs.of(step.p)),
            a: steps.map(|step| rhs.real(step.a)),
            b: steps.map(|step| rhs.real(step.b)),
        })
    }
    /// Computes x ← x + a p, p ← r + b p for any number of systems, none of which rests or is dropped for one of these right-hand sides.
    fn advance(&self, steps: &[&ShiftStep<'_, DeviceField>], r: &DeviceField, rhs: Range<usize>) -> Result {
        let mut rest = steps;
        while let [step, others @ ..] = rest {
            // Colour vectors have kernels for several systems at once.
            rest = match rest {
                [a, b, c, d, others @ ..] if self.shape.is_colours() => {
                    self.shift_update_of(&SHIFT_UPDATE_4, [a, b, c, d], r, rhs.clone())?;
                    others
                }
                [a, b, others @ ..] if self.shape.is_colours() => {
                    self.shift_update_of(&SHIFT_UPDATE_2, [a, b], r, rhs.clone())?;
                    others
                }
                _ => {
                    self.each(&CG_UPDATE, rhs.clone(), |rhs| CgUpdate {
                        x: rhs.of(step.x),
                        p: rhs.of(step.p),
                        r: rhs.of(r),
                        a: rhs.real(step.a),
                        b: rhs.real(step.b),
                    })?;
                    others
                }
            };
        }
        Ok(())
    }
    /// Computes [`multi_dot`](VectorSpace::multi_dot) of vectors that need not be adjacent.
    pub(crate) fn products(
        &self,
        xs: &[&DeviceField],
        y: &DeviceField,
        dots: &mut [Complex64],
        norm2: &mut [f64],
    ) -> Result {
        // Each pass computes four products; an incomplete last group repeats some of them.
        let groups = xs.len().div_ceil(4);
        let (blocks, width) = (self.blocks(), 8 * groups + 1);
        if self.shape.is_colours() || blocks * width > REDUCTION_SLOTS || 8 * blocks > LAUNCH_SUMS {
            for (x, dots) in xs.iter().zip(dots.chunks_exact_mut(self.nrhs())) {
                self.dot(x, y, dots)?;
            }
            return self.norm2(y, norm2);
        }
        let (backend, sites) = (self.domain.backend(), self.domain.half_sites());
        xs.iter().chain([&y]).try_for_each(|x| self.expect(x, self.nrhs()))?;
        for (group, xs) in xs.chunks(4).enumerate() {
            let x = std::array::from_fn(|k| xs[k.min(xs.len() - 1)].view());
            let (arguments, slot) = (MultiDot { x, y: y.view() }, 8 * group * blocks);
            backend.reduce(&MULTI_DOT, self.format(), &arguments, (sites, blocks as u32), slot)?;
        }
        let (arguments, slot) = (Norm2 { x: y.view() }, 8 * groups * blocks);
        backend.reduce(&NORM2, self.format(), &arguments, (sites, blocks as u32), slot)?;
        let mut sums = vec![0.0; blocks * width];
        backend.sums(&mut sums)?;
        let (products, norms) = sums.split_at(8 * groups * blocks);
        let mut sums = [self.over_blocks(products, 8), self.over_blocks(norms, 1)].concat();
        self.domain.sum(&mut sums)?;
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
    /// Adds up over the L_s blocks of each right-hand side: turns `values` numbers for each block into as many for each right-hand side.
    fn over_blocks(&self, of_blocks: &[f64], values: usize) -> Vec<f64> {
        let mut sums = Vec::with_capacity(of_blocks.len() / self.shape.ls);
        for blocks in of_blocks.chunks_exact(values * self.shape.ls) {
            let (first, others) = blocks.split_at(values);
            let all = |k: usize| others.iter().skip(k).step_by(values).fold(first[k], |sum, value| sum + value);
            sums.extend((0..values).map(all));
        }
        sums
    }
    /// Computes [`multi_gram`](VectorSpace::multi_gram) with one wait for all products.
    fn gram_of_each(&self, xs: &[DeviceField], out: &mut [Complex64]) -> Result {
        let (n, blocks) = (self.nrhs(), self.blocks());
        let groups: usize = (1..=xs.len()).map(|b| b.div_ceil(4)).sum();
        let room = 8 * groups * blocks <= REDUCTION_SLOTS && 8 * blocks <= LAUNCH_SUMS;
        if self.shape.is_colours() || !room || xs.len() > MultiGram::MOST {
            let mut norms = vec![0.0; n];
            let mut rest = out;
            for (b, x) in xs.iter().enumerate() {
                let (column, others) = rest.split_at_mut((b + 1) * n);
                let (dots, diagonal) = column.split_at_mut(b * n);
                self.multi_dot(&xs[..b], x, dots, &mut norms)?;
                diagonal.iter_mut().zip(&norms).for_each(|(entry, norm2)| *entry = (*norm2).into());
                rest = others;
            }
            return Ok(());
        }
        let (backend, sites) = (self.domain.backend(), self.domain.half_sites());
        xs.iter().try_for_each(|x| self.expect(x, n))?;
        let x = std::array::from_fn(|k| xs[k.min(xs.len() - 1)].view());
        // As many groups per launch as its space for sums allows.
        let most = LAUNCH_SUMS / (8 * blocks);
        for first in (0..groups).step_by(most) {
            let arguments = MultiGram { x, nrhs: Divisor::new(blocks as u32), first: first as u32 };
            let all = (most.min(groups - first) * blocks) as u32;
            backend.reduce(&MULTI_GRAM, self.format(), &arguments, (sites, all), 8 * first * blocks)?;
        }
        let mut sums = vec![0.0; 8 * groups * blocks];
        backend.sums(&mut sums)?;
        let mut sums = self.over_blocks(&sums, 8);
        self.domain.sum(&mut sums)?;
        let (mut group, mut pair) = (0, 0);
        for b in 0..xs.len() {
            for a in 0..=b {
                for j in 0..n {
                    let first = 8 * ((group + a / 4) * n + j) + 2 * (a % 4);
                    out[(pair + a) * n + j] = Complex64::new(sums[first], sums[first + 1]);
                }
            }
            group += (b + 1).div_ceil(4);
            pair += b + 1;
        }
        Ok(())
    }
    /// Computes [`multi_axpy`](VectorSpace::multi_axpy) of vectors that need not be adjacent.
    pub(crate) fn add_all(&self, a: &[Complex64], xs: &[&DeviceField], y: &mut DeviceField) -> Result {
        let full = if self.shape.is_colours() { 0 } else { xs.len() / 4 * 4 };
        let of = |i: usize| &a[i * self.nrhs()..][..self.nrhs()];
        for first in (0..full).step_by(4) {
            self.all(&MULTI_AXPY, |rhs| MultiAxpy {
                x: std::array::from_fn(|k| rhs.of(xs[first + k])),
                a: std::array::from_fn(|k| rhs.complex(of(first + k))),
                y: rhs.of(y),
            })?;
        }
        // Where registers hold what memory holds, a pass for two or three vectors gives the same bits as one pass for each.
        let exact = matches!(self.precision(), Precision::Double | Precision::Single);
        if !self.shape.is_colours() && exact && xs.len() - full > 1 {
            let (last, nothing) = (xs.len() - 1, vec![Complex64::ZERO; self.nrhs()]);
            return self.all(&MULTI_AXPY, |rhs| MultiAxpy {
                x: std::array::from_fn(|k| rhs.of(xs[(full + k).min(last)])),
                a: std::array::from_fn(|k| rhs.complex(if full + k <= last { of(full + k) } else { &nothing })),
                y: rhs.of(y),
            });
        }
        for (i, x) in xs.iter().enumerate().skip(full) {
            self.axpy(of(i), x, y)?;
        }
        Ok(())
    }
    /// Launches the reduction of `norm2` without waiting for its result, for benchmarks.
    pub(crate) fn start_norm2(&self, x: &DeviceField) -> Result {
        self.launch_without_coefficients(&NORM2, 1, |rhs| Norm2 { x: rhs.of(x) })
    }
    /// Computes sums for the right-hand sides of each launch, `N` values each, and passes them to `take`.
    fn sum_each<A: Copy, const N: usize>(
        &self,
        kernel: &SumInstances<A>,
        arguments: impl Fn(&BlockGroup<'_>) -> A,
        take: impl FnMut(usize, [f64; N]),
    ) -> Result {
        self.launch_each(kernel, N, arguments)?;
        self.take_sums(take)
    }
    /// Launches a reduction with coefficients, `values` sums of each block, and does not wait for it.
    fn launch_each<A: Copy>(
        &self,
        kernel: &SumInstances<A>,
        values: usize,
        arguments: impl Fn(&BlockGroup<'_>) -> A,
    ) -> Result {
        self.launch_groups(kernel, values, MAX_RHS_WITH_NUMBERS, arguments)
    }
    /// Launches a reduction whose kernel has no coefficients, with as many blocks per launch as there is space for sums.
    fn launch_without_coefficients<A: Copy>(
        &self,
        kernel: &SumInstances<A>,
        values: usize,
        arguments: impl Fn(&BlockGroup<'_>) -> A,
    ) -> Result {
        self.launch_groups(kernel, values, LAUNCH_SUMS / values, arguments)
    }
    fn launch_groups<A: Copy>(
        &self,
        kernel: &SumInstances<A>,
        values: usize,
        most: usize,
        arguments: impl Fn(&BlockGroup<'_>) -> A,
    ) -> Result {
        for blocks in self.groups(0..self.nrhs(), most) {
            let (slot, arguments) = (blocks.first() * values, arguments(&blocks));
            blocks.fit()?;
            let size = (self.domain.half_sites(), blocks.count());
            self.domain.backend().reduce(kernel, self.format(), &arguments, size, slot)?;
        }
        Ok(())
    }
    /// Computes sums by a kernel without coefficients, `N` values for each right-hand side, and passes them to `take`.
    fn sum_all<A: Copy, const N: usize>(
        &self,
        kernel: &SumInstances<A>,
        arguments: impl Fn(&BlockGroup<'_>) -> A,
        take: impl FnMut(usize, [f64; N]),
    ) -> Result {
        self.launch_without_coefficients(kernel, N, arguments)?;
        self.take_sums(take)
    }
    /// Waits for `N` sums of each block, and passes on those of each right-hand side.
    fn take_sums<const N: usize>(&self, mut take: impl FnMut(usize, [f64; N])) -> Result {
        const { assert!(N <= MOST_SUMS) };
        let mut sums = [0.0; REDUCTION_SLOTS];
        let sums = &mut sums[..self.blocks() * N];
        self.domain.backend().sums(sums)?;
        let mut sums = self.over_blocks(sums, N);
        self.domain.sum(&mut sums)?;
        for (j, values) in sums.chunks_exact(N).enumerate() {
            take(j, values.try_into().expect("chunks have N values"));
        }
        Ok(())
    }
}

impl VectorSpace for FieldSpace {
    type Vector = DeviceField;
    type Error = DeviceError;

    fn nrhs(&self) -> usize {
        self.nrhs.get()
    }
    fn narrow(&self, nrhs: usize) -> bool {
        let fits = (1..=self.shape.nrhs).contains(&nrhs);
        if fits {
            self.nrhs.set(nrhs);
        }
        fits
    }
    /// Swaps by copies through the first right-hand side of `scratch`, in the arithmetic of the format: exact in double and single
    /// precision, while numbers in 16 bits with a norm per site are rounded again.
    fn swap_rhs(&self, x: &mut Self::Vector, (i, j): (usize, usize), scratch: &mut Self::Vector) -> Result {
        self.expect(x, i.max(j) + 1)?;
        self.expect(scratch, 1)?;
        self.copy_rhs((x, i), (scratch, 0))?;
        self.copy_rhs((x, j), (x, i))?;
        self.copy_rhs((scratch, 0), (x, j))
    }
    /// Returns, for formats without a norm per site, the norm at which the typical number is ¼, which leaves room for peaks 10⁵ times as
    /// high.
    fn target_norm(&self) -> Option<f64> {
        let numbers = (2 * self.shape.components() * self.shape.ls) as f64;
        let sites = self.domain.global().half_volume() as f64;
        self.precision().has_range().then(|| 0.25 * (numbers * sites).sqrt())
    }
    fn allocate(&self) -> Result<Self::Vector> {
        DeviceField::zero(&self.domain, self.shape)
    }
    fn zero(&self, x: &mut Self::Vector) -> Result {
        Ok(self.domain.backend().clear(x.buffer_mut())?)
    }
    fn copy(&self, from: &Self::Vector, to: &mut Self::Vector) -> Result {
        self.expect(from, self.nrhs())?;
        self.expect(to, self.nrhs())?;
        let bytes = self.shape().bytes(self.domain.half_sites() as usize);
        Ok(self.domain.backend().copy(from.buffer(), to.buffer_mut(), bytes)?)
    }
    fn axpby(&self, a: &[Complex64], x: &Self::Vector, b: &[Complex64], y: &mut Self::Vector) -> Result {
        self.all(&AXPBY, |rhs| Axpby { x: rhs.of(x), y: rhs.of(y), a: rhs.complex(a), b: rhs.complex(b) })
    }
    fn norm2(&self, x: &Self::Vector, out: &mut [f64]) -> Result {
        self.sum_all(&NORM2, |rhs| Norm2 { x: rhs.of(x) }, |j, [norm2]| out[j] = norm2)
    }
    fn dot(&self, x: &Self::Vector, y: &Self::Vector, out: &mut [Complex64]) -> Result {
        let kernel = |rhs: &BlockGroup<'_>| DotNorm2 { x: rhs.of(x), y: rhs.of(y) };
        self.sum_all(&DOT_NORM2, kernel, |j, [re, im, _]| out[j] = Complex64::new(re, im))
    }
    fn axpy_norm2(&self, a: &[Complex64], x: &Self::Vector, y: &mut Self::Vector, out: &mut [f64]) -> Result {
        let kernel = |rhs: &BlockGroup<'_>| AxpyNorm2 { x: rhs.of(x), y: rhs.of(y), a: rhs.complex(a) };
        self.sum_each(&AXPY_NORM2, kernel, |j, [norm2]| out[j] = norm2)
    }
    fn dot_norm2(&self, x: &Self::Vector, y: &Self::Vector, dot: &mut [Complex64], norm2: &mut [f64]) -> Result {
        let kernel = |rhs: &BlockGroup<'_>| DotNorm2 { x: rhs.of(x), y: rhs.of(y) };
        self.sum_all(&DOT_NORM2, kernel, |j, [re, im, n]| {
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
        overlap: Overlap<'_, DeviceError>,
    ) -> Result {
        self.launch_each(&XPAY_NORM2, 1, |rhs| XpayNorm2 { x: rhs.of(x), y: rhs.of(y), a: rhs.real(a) })?;
        overlap()?;
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
        self.all(&CG_UPDATE, |rhs| CgUpdate {
            x: rhs.of(x),
            p: rhs.of(p),
            r: rhs.of(r),
            a: rhs.real(alpha),
            b: rhs.real(beta),
        })
    }
    /// Returns the number of updates that may be delayed. An update moves five vectors; a delayed one reads r once more, which pays as long
    /// as that does not take much longer than the wait.
    fn overlapped_updates(&self) -> usize {
        let update = 5 * self.shape().bytes(self.domain.half_sites() as usize);
        let hidden = self.domain.backend().bytes_while_waiting();
        if update > 2 * hidden { 0 } else { hidden.div_ceil(update) }
    }
    fn shift_update(&self, r: &Self::Vector, steps: &mut [ShiftStep<'_, Self::Vector>]) -> Result {
        // Most systems continue for all right-hand sides, which then share a launch.
        let goes = |step: &ShiftStep<'_, _>, j: usize| !step.is_identity(j) && step.z[j] != 0.0;
        let (whole, others): (Vec<_>, Vec<_>) = steps.iter().partition(|step| (0..self.nrhs()).all(|j| goes(step, j)));
        self.advance(&whole, r, 0..self.nrhs())?;
        for j in 0..self.nrhs() {
            let going: Vec<_> = others.iter().copied().filter(|step| goes(step, j)).collect();
            self.advance(&going, r, j..j + 1)?;
            // Systems that were dropped just now get their last contribution and no direction.
            for step in others.iter().filter(|step| !step.is_identity(j) && step.z[j] == 0.0) {
                let a: Vec<_> = step.a.iter().map(Complex64::from).collect();
                self.add_for(j..j + 1, &a, step.p, step.x)?;
            }
        }
        Ok(())
    }
    fn mr_update(&self, alpha: &[Complex64], r: &Self::Vector, x: &mut Self::Vector, t: &mut Self::Vector) -> Result {
        if self.shape.is_colours() {
            let (one, minus) = (vec![Complex64::ONE; alpha.len()], alpha.iter().map(|a| -a).collect::<Vec<_>>());
            self.axpy(alpha, r, x)?;
            return self.axpby(&one, r, &minus, t);
        }
        self.all(&MR_UPDATE, |rhs| MrUpdate { r: rhs.of(r), z: rhs.of(x), t: rhs.of(t), alpha: rhs.complex(alpha) })
    }
    fn multi_dot(&self, xs: &[Self::Vector], y: &Self::Vector, dots: &mut [Complex64], norm2: &mut [f64]) -> Result {
        self.products(&xs.iter().collect::<Vec<_>>(), y, dots, norm2)
    }
    fn multi_gram(&self, xs: &[Self::Vector], out: &mut [Complex64]) -> Result {
        self.gram_of_each(xs, out)
    }
    fn multi_axpy(&self, a: &[Complex64], xs: &[Self::Vector], y: &mut Self::Vector) -> Result {
        self.add_all(a, &xs.iter().collect::<Vec<_>>(), y)
    }
    fn mixes_rhs(&self) -> bool {
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
        self.all(&BICGSTAB_STEP, |rhs| BicgstabStep {
            x: rhs.of(x),
            r: rhs.of(r),
            p: rhs.of(p),
            v: rhs.of(v),
            t: rhs.of(t),
            alpha: rhs.complex(alpha),
            omega: rhs.complex(omega),
            beta: rhs.complex(beta),
        })
    }
}

impl ConvertFrom<FieldSpace> for FieldSpace {
    fn convert(&self, scale: &[f64], from: &DeviceField, to: &mut DeviceField) -> Result {
        self.convert_with(scale, from, to, false)
    }
    fn accumulate(&self, scale: &[f64], from: &DeviceField, to: &mut DeviceField) -> Result {
        self.convert_with(scale, from, to, true)
    }
}

impl FullField {
    /// Copies some of the field's right-hand sides to a domain of the same part of the lattice, on this device or another.
    ///
    /// # Errors
    /// Failures of the devices, and domains of other parts of the lattice.
    ///
    /// # Panics
    /// If there are no such right-hand sides, none, or more than [`MAX_RHS_PER_LAUNCH`](crate::backend::MAX_RHS_PER_LAUNCH).
    pub fn rhs(&self, rhs: Range<usize>, domain: &Domain) -> Result<Self> {
        assert!(rhs.end <= self.even.nrhs(), "right-hand sides that are there");
        let shape = self.even.shape().with_nrhs(rhs.len());
        let space = FieldSpace::new(self.even.domain(), shape);
        let mut some = FullField::zero(self.even.domain(), shape)?;
        for parity in 0..2 {
            space.copy_from_rhs(self.parity(parity), rhs.start, some.parity_mut(parity))?;
        }
        some.on(domain)
    }
    /// Replaces this field's right-hand sides from `first` on by those of `from`, which may be on another device.
    ///
    /// # Errors
    /// Fields of another format or part of the lattice; failures of the devices.
    ///
    /// # Panics
    /// If this field has fewer right-hand sides, or for more than [`MAX_RHS_PER_LAUNCH`](crate::backend::MAX_RHS_PER_LAUNCH).
    pub fn set_rhs(&mut self, first: usize, from: Self) -> Result {
        assert!(first + from.even.nrhs() <= self.even.nrhs(), "right-hand sides that are there");
        let from = from.on(self.even.domain())?;
        let space = FieldSpace::new(self.even.domain(), self.even.shape().with_nrhs(from.even.nrhs()));
        for parity in 0..2 {
            space.copy_to_rhs(from.parity(parity), self.parity_mut(parity), first)?;
        }
        Ok(())
    }
    /// Puts the right-hand sides of a batch in their place among all `count` of them, which are gathered on a domain that may be of another
    /// device. A batch of all of them becomes the whole without a copy.
    ///
    /// # Errors
    /// Fields of another format or part of the lattice; failures of the devices.
    ///
    /// # Panics
    /// As [`set_rhs`](Self::set_rhs).
    pub fn gather_batch(
        all: &mut Option<FullField>,
        (count, batch): (usize, Range<usize>),
        some: FullField,
        home: &Domain,
    ) -> Result {
        if batch.len() == count {
            *all = Some(some.on(home)?);
            return Ok(());
        }
        let all = match all {
            Some(all) => all,
            None => all.insert(FullField::zero(home, some.even.shape().with_nrhs(count))?),
        };
        all.set_rhs(batch.start, some)
    }
}
