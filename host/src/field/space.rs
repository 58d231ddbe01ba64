//! Fermion fields of one parity as a vector space for solvers.
use super::device::{DeviceField, FullField};
use super::kept::KeptPlaces;
use super::rhs::{BlockGroup, coefficient};
use super::shape::FieldShape;
use crate::backend::{DeviceBuffer, LAUNCH_SUMS, MAX_RHS_PER_LAUNCH, REDUCTION_SLOTS};
use crate::domain::PartialSums;
use crate::domain::{DeviceError, Domain, Result};
use gpu_kernels::blas::{
    self, AXPBY, AXPY_NORM2, Axpby, AxpyNorm2, BICGSTAB_STEP, BicgstabStep, CG_RESIDUAL_UPDATE, CG_UPDATE, CONVERT,
    CgRho, CgUpdate, Convert, DOT_NORM2, DotNorm2, MR_UPDATE, MrUpdate, NORM2, Norm2, SHIFT_UPDATE_2, SHIFT_UPDATE_4,
    ShiftUpdate, XPAY_NORM2, XpayNorm2,
};
use gpu_kernels::krylov::{MULTI_AXPY, MULTI_DOT, MULTI_GRAM, MultiAxpy, MultiDot, MultiGram};
use gpu_kernels::lattice::Divisor;
use gpu_kernels::per_rhs::{ComplexPerRhs, MAX_RHS_WITH_NUMBERS};
use gpu_kernels::sums::DeviceSums;
use gpu_kernels::{FermionKind, Format, Instances, Precision, SumInstances};
use num_complex::Complex64;
use solvers::{CgStep, ConvertFrom, Dots, KeptSums, Overlap, ShiftStep, VectorSpace};
use std::cell::{Cell, OnceCell, RefCell};
use std::ops::Range;

/// Largest number of values that a reduction of linear algebra sums for each block.
const MOST_SUMS: usize = 3;

/// Vector space of the fermion fields of one shape and parity. A vector consists of the L_s blocks of a right-hand side.
pub struct FieldSpace {
    domain: Domain,
    /// Shape of the fields, with the number of right-hand sides for which they have memory.
    pub(super) shape: FieldShape,
    /// Number of right-hand sides on which operations currently act.
    nrhs: Cell<usize>,
    /// Coefficients of block updates on the device, allocated when they are first needed.
    pub(super) table: RefCell<Option<DeviceBuffer>>,
    /// Sums that stay on the device, allocated when they are first needed.
    pub(super) kept: OnceCell<KeptPlaces>,
}

impl FieldSpace {
    /// Makes the space of the fields of a shape.
    ///
    /// # Panics
    /// Panics unless there are between 1 and [`MAX_RHS_PER_LAUNCH`] right-hand sides, and at most a third of [`REDUCTION_SLOTS`] blocks, so
    /// that there is space for their sums.
    pub fn new(domain: &Domain, shape: FieldShape) -> Self {
        let FieldShape { nrhs, .. } = shape;
        assert!((1..=MAX_RHS_PER_LAUNCH).contains(&nrhs), "between 1 and {MAX_RHS_PER_LAUNCH} right-hand sides");
        assert!((1..=REDUCTION_SLOTS / MOST_SUMS).contains(&shape.blocks()), "space for the sums of all blocks");
        let (table, kept) = Default::default();
        FieldSpace { domain: domain.clone(), shape, nrhs: Cell::new(nrhs), table, kept }
    }
    /// Returns the domain on which the vectors are stored.
    pub fn domain(&self) -> &Domain {
        &self.domain
    }
    /// Returns the shape of the vectors, with the number of right-hand sides on which operations currently act.
    pub fn shape(&self) -> FieldShape {
        self.shape.with_nrhs(self.nrhs.get())
    }
    /// Returns the fermion type of the vectors.
    pub fn kind(&self) -> FermionKind {
        self.shape.kind
    }
    /// Returns the precision in which the vectors are stored.
    pub fn precision(&self) -> Precision {
        self.shape.precision
    }
    /// Returns the format of kernels for vectors of this space.
    pub(super) fn format(&self) -> Format {
        self.shape.format()
    }
    fn blocks(&self) -> usize {
        self.shape().blocks()
    }
    /// Checks that a field is a vector of this space with at least `nrhs` right-hand sides.
    pub(super) fn expect(&self, x: &DeviceField, nrhs: usize) -> Result {
        x.expect(&self.domain, self.shape.with_nrhs(nrhs))
    }
    /// Computes `to` ← `from`, rounded to nearest if the precisions differ.
    ///
    /// # Errors
    /// Fails if the fields differ in fermion type or domain, if one has too few right-hand sides, or if the device fails.
    pub fn convert_from(&self, from: &DeviceField, to: &mut DeviceField) -> Result {
        self.convert_with(&vec![1.0; self.nrhs()], from, to, false)
    }
    /// Computes `to` ← `scale` `from`; with `add` the old `to` is added.
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
    /// Collects (w, out) and ‖out‖² for all right-hand sides of four-dimensional fields. The parts of the sums have either these three
    /// values, or the eight values of [`dots_of`](Self::dots_of).
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
    /// Collects (x, y), (w, x), (w, y), ‖x‖² and ‖y‖² for all right-hand sides; the parts of the sums have these eight values in this
    /// order.
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
    /// Performs the step of [`LinearOperator::cg_step`](solvers::LinearOperator::cg_step) after t = A p was computed. For four-dimensional
    /// fields, `sums` has sums on the device that contain the curvature; [`CgResidualUpdate`](blas::CgResidualUpdate) describes `squared`.
    /// If t contains σ p already, `shift` is 0.
    #[allow(clippy::too_many_arguments)] // one kernel, all of whose operands are needed
    pub(crate) fn cg_step(
        &self,
        step: &CgStep<'_, DeviceField>,
        (sums, squared, shift): (DeviceSums, bool, f64),
        t: &mut DeviceField,
        curvature: &mut [Complex64],
        norm2: &mut [f64],
        overlap: [Overlap<'_, DeviceError>; 2],
    ) -> Result {
        self.launch_each(&CG_RESIDUAL_UPDATE, 2, |rhs| blas::CgResidualUpdate {
            r: rhs.of(step.r),
            t: rhs.of(t),
            p: rhs.of(step.p),
            shift,
            rho: CgRho { given: rhs.real(step.rho), kept: DeviceSums::NONE },
            sums,
            squared: u32::from(squared),
            first: rhs.first() as u32,
        })?;
        overlap.into_iter().try_for_each(|overlap| overlap())?;
        self.take_sums(|j, [new, dot]| {
            curvature[j] = dot.into();
            norm2[j] = new;
        })
    }
    /// Runs a kernel for the right-hand sides `rhs`, in one launch or several; `arguments` makes the arguments of a launch.
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
    /// Returns the blocks of the right-hand sides `rhs` in groups of at most `most` blocks, one group for each launch.
    pub(super) fn groups(&self, rhs: Range<usize>, most: usize) -> impl Iterator<Item = BlockGroup<'_>> {
        BlockGroup::groups(rhs, most, &self.domain, self.shape)
    }
    /// Runs a kernel for all right-hand sides; `arguments` makes the arguments of a launch.
    pub(super) fn all<A: Copy>(&self, kernel: &Instances<A>, arguments: impl Fn(&BlockGroup<'_>) -> A) -> Result {
        self.each(kernel, 0..self.nrhs(), arguments)
    }
    /// Computes y ← a x + y for the right-hand sides `rhs`.
    fn add_for(&self, rhs: Range<usize>, a: &[Complex64], x: &DeviceField, y: &DeviceField) -> Result {
        let ones = vec![Complex64::ONE; self.nrhs()];
        let arguments =
            |rhs: &BlockGroup<'_>| Axpby { x: rhs.of(x), y: rhs.of(y), a: rhs.complex(a), b: rhs.complex(&ones) };
        self.each(&AXPBY, rhs, arguments)
    }
    /// Copies all right-hand sides of `from` to right-hand sides of `to`, beginning with number `first`; `to` may have more.
    pub(crate) fn copy_to_rhs(&self, from: &DeviceField, to: &mut DeviceField, first: usize) -> Result {
        self.expect(from, self.nrhs())?;
        self.expect(to, first + self.nrhs())?;
        (0..self.nrhs()).try_for_each(|j| self.copy_rhs((from, j), (to, first + j)))
    }
    /// Copies right-hand sides of `from`, beginning with number `first`, to all those of `to`.
    pub(crate) fn copy_from_rhs(&self, from: &DeviceField, first: usize, to: &mut DeviceField) -> Result {
        self.expect(from, first + self.nrhs())?;
        self.expect(to, self.nrhs())?;
        (0..self.nrhs()).try_for_each(|j| self.copy_rhs((from, first + j), (to, j)))
    }
    /// Copies right-hand side i of `from` to right-hand side j of `to`; both must exist.
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
    /// Computes x ← x + a p, p ← r + b p for N systems in one launch.
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
    /// Computes x ← x + a p, p ← r + b p for any number of systems. All systems must be active for each of the right-hand sides `rhs`.
    fn advance(&self, steps: &[&ShiftStep<'_, DeviceField>], r: &DeviceField, rhs: Range<usize>) -> Result {
        let mut rest = steps;
        while let [step, others @ ..] = rest {
            // Kernels that update four or two systems at once read r once for all of them.
            rest = match rest {
                [a, b, c, d, others @ ..] => {
                    self.shift_update_of(&SHIFT_UPDATE_4, [a, b, c, d], r, rhs.clone())?;
                    others
                }
                [a, b, others @ ..] => {
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
    /// Computes [`multi_dot`](VectorSpace::multi_dot) for vectors that are passed as references.
    pub(crate) fn products(
        &self,
        xs: &[&DeviceField],
        y: &DeviceField,
        dots: &mut [Complex64],
        norm2: &mut [f64],
    ) -> Result {
        // A launch computes four products; an incomplete last group repeats some vectors.
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
    /// Adds the sums of the L_s blocks of each right-hand side. `of_blocks` has `values` numbers for each block, the result as many for
    /// each right-hand side.
    fn over_blocks(&self, of_blocks: &[f64], values: usize) -> Vec<f64> {
        let mut sums = Vec::with_capacity(of_blocks.len() / self.shape.ls);
        for blocks in of_blocks.chunks_exact(values * self.shape.ls) {
            let (first, others) = blocks.split_at(values);
            let all = |k: usize| others.iter().skip(k).step_by(values).fold(first[k], |sum, value| sum + value);
            sums.extend((0..values).map(all));
        }
        sums
    }
    /// Computes [`multi_gram`](VectorSpace::multi_gram) and waits only once for all products.
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
        // A launch has as many groups as there is space for their sums.
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
    /// Computes [`multi_axpy`](VectorSpace::multi_axpy) for vectors that are passed as references.
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
        // If registers and memory have the same precision, one pass for two or three vectors gives the same bits as a pass for each vector.
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
    /// Launches the reduction of `norm2` without a wait for its result, for benchmarks.
    pub(crate) fn start_norm2(&self, x: &DeviceField) -> Result {
        self.launch_without_coefficients(&NORM2, 1, |rhs| Norm2 { x: rhs.of(x) })
    }
    /// Computes `N` sums for each right-hand side by a kernel with coefficients, and passes them to `take`.
    fn sum_each<A: Copy, const N: usize>(
        &self,
        kernel: &SumInstances<A>,
        arguments: impl Fn(&BlockGroup<'_>) -> A,
        take: impl FnMut(usize, [f64; N]),
    ) -> Result {
        self.launch_each(kernel, N, arguments)?;
        self.take_sums(take)
    }
    /// Launches a reduction with coefficients and `values` sums for each block, without a wait.
    fn launch_each<A: Copy>(
        &self,
        kernel: &SumInstances<A>,
        values: usize,
        arguments: impl Fn(&BlockGroup<'_>) -> A,
    ) -> Result {
        self.launch_groups(kernel, values, MAX_RHS_WITH_NUMBERS, arguments)
    }
    /// Launches a reduction without coefficients and with `values` sums for each block, without a wait. A launch processes as many blocks
    /// as it has space for sums.
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
    /// Computes `N` sums for each right-hand side by a kernel without coefficients, and passes them to `take`.
    fn sum_all<A: Copy, const N: usize>(
        &self,
        kernel: &SumInstances<A>,
        arguments: impl Fn(&BlockGroup<'_>) -> A,
        take: impl FnMut(usize, [f64; N]),
    ) -> Result {
        self.launch_without_coefficients(kernel, N, arguments)?;
        self.take_sums(take)
    }
    /// Waits for `N` sums of each block, adds those of each right-hand side over blocks and processes, and passes them to `take`.
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
    /// Swaps two right-hand sides by copies through the first one of `scratch`. Copies are exact in double and single precision; in half
    /// precision, the numbers of a site are rounded again.
    fn swap_rhs(&self, x: &mut Self::Vector, (i, j): (usize, usize), scratch: &mut Self::Vector) -> Result {
        self.expect(x, i.max(j) + 1)?;
        self.expect(scratch, 1)?;
        self.copy_rhs((x, i), (scratch, 0))?;
        self.copy_rhs((x, j), (x, i))?;
        self.copy_rhs((scratch, 0), (x, j))
    }
    fn kept(&self) -> Option<&dyn KeptSums<Vector = DeviceField, Error = DeviceError>> {
        self.keeps_sums().then_some(self)
    }
    /// Returns the norm at which a typical number is ¼, for formats without a norm for each site. Numbers can then exceed the typical one
    /// by a factor of 10⁵.
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
    /// Returns the number of updates that may be delayed to fill the wait for a sum. An update moves five vectors, and a delayed one reads
    /// r once more. Delays pay as long as an update does not take much longer than the wait.
    fn overlapped_updates(&self) -> usize {
        let update = 5 * self.shape().bytes(self.domain.half_sites() as usize);
        let hidden = self.domain.backend().bytes_while_waiting();
        if update > 2 * hidden { 0 } else { hidden.div_ceil(update) }
    }
    fn shift_update(&self, r: &Self::Vector, steps: &mut [ShiftStep<'_, Self::Vector>]) -> Result {
        // Most systems are active for all right-hand sides, which then share a launch.
        let goes = |step: &ShiftStep<'_, _>, j: usize| !step.is_identity(j) && step.z[j] != 0.0;
        let (whole, others): (Vec<_>, Vec<_>) = steps.iter().partition(|step| (0..self.nrhs()).all(|j| goes(step, j)));
        self.advance(&whole, r, 0..self.nrhs())?;
        for j in 0..self.nrhs() {
            let going: Vec<_> = others.iter().copied().filter(|step| goes(step, j)).collect();
            self.advance(&going, r, j..j + 1)?;
            // A system that is dropped in this step gets its last update of x, but no new direction.
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
    /// Returns a copy of the right-hand sides `rhs` on a domain that has the same part of the lattice, on this device or another.
    ///
    /// # Errors
    /// Fails if the domain has another part of the lattice, or if a device fails.
    ///
    /// # Panics
    /// Panics if the field does not have these right-hand sides, or if there are none or more than
    /// [`MAX_RHS_PER_LAUNCH`](crate::backend::MAX_RHS_PER_LAUNCH).
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
    /// Replaces right-hand sides of this field, beginning with number `first`, by those of `from`, which may be on another device.
    ///
    /// # Errors
    /// Fails if the fields differ in format or part of the lattice, or if a device fails.
    ///
    /// # Panics
    /// Panics if this field has too few right-hand sides, or if there are more than
    /// [`MAX_RHS_PER_LAUNCH`](crate::backend::MAX_RHS_PER_LAUNCH).
    pub fn set_rhs(&mut self, first: usize, from: Self) -> Result {
        assert!(first + from.even.nrhs() <= self.even.nrhs(), "right-hand sides that are there");
        let from = from.on(self.even.domain())?;
        let space = FieldSpace::new(self.even.domain(), self.even.shape().with_nrhs(from.even.nrhs()));
        for parity in 0..2 {
            space.copy_to_rhs(from.parity(parity), self.parity_mut(parity), first)?;
        }
        Ok(())
    }
    /// Copies the right-hand sides of a batch to their places among all `count` right-hand sides, which are collected in `all` on the
    /// domain `home`. The batch may be on another device. On the device of `home`, a batch of all right-hand sides becomes the result
    /// without a copy.
    ///
    /// # Errors
    /// Fails if the fields differ in format or part of the lattice, or if a device fails.
    ///
    /// # Panics
    /// See [`set_rhs`](Self::set_rhs).
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
