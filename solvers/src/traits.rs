//! Traits of vector spaces, of conversions between precisions, and of operators, as used by solvers.
//!
//! Every vector is a *block* of N right-hand sides x_0 … x_{N−1}. The systems A x_j = b_j are independent of each other: they
//! only share the passes over the operator's data. All coefficients and all results of reductions are therefore slices of
//! length N. Only [`block_cg`](crate::block_cg()) mixes right-hand sides, by matrices of N × N.

use crate::rows::{KeptRho, KeptSums};
use num_complex::Complex64;

/// A space of blocks of N vectors with the linear algebra that Krylov methods use.
///
/// # Contract
/// * Coefficients and reductions are in double precision whatever the storage format of the vectors; only the products
///   of one site may be added in the precision of the field. A reduction sums in an order that depends only on the
///   layout, so that the same run gives the same bits; on several processes it is the global sum, and **every process
///   gets the same bits** (solvers branch on them).
/// * Slices have length [`nrhs`](VectorSpace::nrhs), with its current value; vectors come from [`allocate`](VectorSpace::allocate) of this
///   space or of an equal one. Anything else may panic.
/// * A coefficient that is exactly zero in front of the vector being *written* means that its old content is not
///   read: 0·NaN does not survive there, as in BLAS.
/// * Operations may be queued: only reductions have to wait for the device.
///
/// # Sums over domains
/// A solver that works in independent domains ([`MinimumResidual`](crate::MinimumResidual)) needs one sum and one coefficient
/// for each right-hand side *and domain*. No other trait is necessary for that: in a **space of domains** a "right-hand side"
/// is the part of one right-hand side in one domain. Its [`nrhs`](VectorSpace::nrhs) is (right-hand sides) × (domains of this
/// process), in an unspecified order. Its `Vector` may be that of the space of whole vectors, with the same memory divided
/// differently.
/// * Reductions sum over one domain of one right-hand side, and axpby and the others scale it.
/// * If the domains are the processes' shares of the vectors, `nrhs` is that of the whole, and the only difference is that a
///   reduction is not summed over the processes.
/// * Processes therefore get different results, on which neither the communication nor the errors of a solver on such a
///   space may depend.
/// * [`flops`](LinearOperator::flops) of an operator on such a space are those of one right-hand side in all domains.
///
/// # Fused operations
/// Operations with a default are written in terms of the others. A backend overrides them by one kernel each, which saves
/// passes over memory; the results may differ from the default by rounding only.
///
/// # An example
/// ```
/// use num_complex::Complex64;
/// use solvers::VectorSpace;
/// use std::convert::Infallible;
///
/// /// Complex vectors of 64 numbers, one right-hand side.
/// struct Line;
/// impl VectorSpace for Line {
///     type Vector = Vec<Complex64>;
///     type Error = Infallible;
///     fn nrhs(&self) -> usize { 1 }
///     fn allocate(&self) -> Result<Self::Vector, Infallible> { Ok(vec![Complex64::ZERO; 64]) }
///     fn zero(&self, x: &mut Self::Vector) -> Result<(), Infallible> { x.fill(Complex64::ZERO); Ok(()) }
///     fn copy(&self, from: &Self::Vector, to: &mut Self::Vector) -> Result<(), Infallible> {
///         to.copy_from_slice(from);
///         Ok(())
///     }
///     fn axpby(&self, a: &[Complex64], x: &Self::Vector, b: &[Complex64], y: &mut Self::Vector)
///         -> Result<(), Infallible> {
///         for (y, x) in y.iter_mut().zip(x) {
///             let old = if b[0] == Complex64::ZERO { b[0] } else { b[0] * *y };
///             *y = a[0] * x + old;
///         }
///         Ok(())
///     }
///     fn norm2(&self, x: &Self::Vector, out: &mut [f64]) -> Result<(), Infallible> {
///         out[0] = x.iter().map(|x| x.norm_sqr()).sum();
///         Ok(())
///     }
///     fn dot(&self, x: &Self::Vector, y: &Self::Vector, out: &mut [Complex64]) -> Result<(), Infallible> {
///         out[0] = x.iter().zip(y).map(|(x, y)| x.conj() * y).sum();
///         Ok(())
///     }
/// }
///
/// let (mut x, mut norm2) = (Line.allocate()?, [0.0]);
/// x[0] = Complex64::new(3.0, 4.0);
/// Line.norm2(&x, &mut norm2)?;
/// assert_eq!(norm2, [25.0]);
/// # Ok::<(), Infallible>(())
/// ```
pub trait VectorSpace {
    /// Type of a block of N vectors.
    type Vector;
    /// Error of the backend: out of memory, a failed launch, a lost message.
    type Error: std::error::Error + Send + Sync + 'static;

    /// Returns N, the number of right-hand sides in a block, at least 1. Only [`narrow`](VectorSpace::narrow) changes it.
    fn nrhs(&self) -> usize;

    /// Restricts further operations to the first `nrhs` right-hand sides of a block, and sets [`nrhs`](VectorSpace::nrhs) to
    /// this number. It is between 1 and the number for which blocks have memory, so a larger number widens the space again.
    /// Returns whether that is possible; if not, nothing changes.
    ///
    /// The other right-hand sides of a block are unchanged, except for [`zero`](VectorSpace::zero), which may also clear them.
    /// Blocks are always [`allocate`](VectorSpace::allocate)d in full width. Solvers use this method to let finished
    /// right-hand sides leave the batch, and restore the width of the space before they return.
    ///
    /// The default returns false. A space that can narrow also has [`swap_rhs`](VectorSpace::swap_rhs).
    fn narrow(&self, _nrhs: usize) -> bool {
        false
    }

    /// Swaps x_i ↔ x_j for two different i and j below the full width. A format of few bits may round the values once more,
    /// like any operation. `scratch` loses its content. Solvers call it only if [`narrow`](VectorSpace::narrow) returns true.
    fn swap_rhs(
        &self,
        _x: &mut Self::Vector,
        (_i, _j): (usize, usize),
        _scratch: &mut Self::Vector,
    ) -> Result<(), Self::Error> {
        unreachable!("a space that deflates blocks can swap right-hand sides")
    }

    /// Returns the linear algebra with sums that stay on the device, or `None` if the space has none. Solvers then wait for the
    /// sums of every iteration.
    fn kept(&self) -> Option<&dyn KeptSums<Vector = Self::Vector, Error = Self::Error>> {
        None
    }

    /// Returns the preferred norm of vectors in storage formats with a limited exponent range, or `None` if the range is wide
    /// enough. Solvers scale sloppy residuals by powers of two so that their norm is near it.
    fn target_norm(&self) -> Option<f64> {
        None
    }

    /// Allocates a new block with all elements zero. Solvers call this only to create their workspace.
    fn allocate(&self) -> Result<Self::Vector, Self::Error>;

    /// Sets x_j ← 0 for all j.
    fn zero(&self, x: &mut Self::Vector) -> Result<(), Self::Error>;

    /// Copies `to`_j ← `from`_j for all j.
    fn copy(&self, from: &Self::Vector, to: &mut Self::Vector) -> Result<(), Self::Error>;

    /// Computes y_j ← a_j x_j + b_j y_j. With b_j = 0 the old y_j is not read.
    fn axpby(
        &self,
        a: &[Complex64],
        x: &Self::Vector,
        b: &[Complex64],
        y: &mut Self::Vector,
    ) -> Result<(), Self::Error>;

    /// Computes `out`_j ← ‖x_j‖² = Σ |x|².
    fn norm2(&self, x: &Self::Vector, out: &mut [f64]) -> Result<(), Self::Error>;

    /// Computes `out`_j ← (x_j, y_j) = Σ x̄ y, which is antilinear in the first argument.
    fn dot(&self, x: &Self::Vector, y: &Self::Vector, out: &mut [Complex64]) -> Result<(), Self::Error>;

    /// Computes y_j ← a_j x_j + y_j.
    fn axpy(&self, a: &[Complex64], x: &Self::Vector, y: &mut Self::Vector) -> Result<(), Self::Error> {
        with_coefficients(a.len(), |_| ONE, |ones| self.axpby(a, x, ones, y))
    }

    /// Computes y_j ← a_j x_j + y_j, and `out`_j ← ‖y_j‖² of the new y.
    fn axpy_norm2(
        &self,
        a: &[Complex64],
        x: &Self::Vector,
        y: &mut Self::Vector,
        out: &mut [f64],
    ) -> Result<(), Self::Error> {
        self.axpy(a, x, y)?;
        self.norm2(y, out)
    }

    /// Computes `dot`_j ← (x_j, y_j) and `norm2`_j ← ‖x_j‖² in one reduction (BiCGstab: x = t, y = s).
    fn dot_norm2(
        &self,
        x: &Self::Vector,
        y: &Self::Vector,
        dot: &mut [Complex64],
        norm2: &mut [f64],
    ) -> Result<(), Self::Error> {
        self.dot(x, y, dot)?;
        self.norm2(x, norm2)
    }

    /// Computes `dot`_j ← (w_j, y_j) and `norm2`_j ← ‖y_j‖² in one reduction, for y = A x.
    fn dot_norm2_of(
        &self,
        w: &Self::Vector,
        y: &Self::Vector,
        dot: &mut [Complex64],
        norm2: &mut [f64],
    ) -> Result<(), Self::Error> {
        self.dot_norm2(y, w, dot, norm2)?;
        dot.iter_mut().for_each(|dot| *dot = dot.conj());
        Ok(())
    }

    /// Computes y_j ← x_j + a_j y_j with real a, and `out`_j ← ‖y_j‖² of the new y. With a_j = 0 the old y_j is not read.
    fn xpay_norm2(
        &self,
        x: &Self::Vector,
        a: &[f64],
        y: &mut Self::Vector,
        out: &mut [f64],
        overlap: Overlap<'_, Self::Error>,
    ) -> Result<(), Self::Error> {
        let n = a.len();
        with_coefficients(n, |_| ONE, |ones| with_coefficients(n, |j| a[j].into(), |a| self.axpby(ones, x, a, y)))?;
        overlap()?;
        self.norm2(y, out)
    }

    /// Computes r_j ← b_j − r_j, and `out`_j ← ‖r_j‖² of the new r. If r = A x on entry, the new r is the residual.
    fn sub_norm2(&self, b: &Self::Vector, r: &mut Self::Vector, out: &mut [f64]) -> Result<(), Self::Error> {
        with_coefficients(
            out.len(),
            |_| ONE,
            |ones| with_coefficients(ones.len(), |_| -ONE, |minus| self.axpby(ones, b, minus, r)),
        )?;
        self.norm2(r, out)
    }

    /// Makes the two vector updates that end an iteration of CG, in this order: x_j ← x_j + α_j p_j, p_j ← r_j + β_j p_j.
    ///
    /// α and β are real in CG and are passed as reals.
    fn cg_update(
        &self,
        alpha: &[f64],
        beta: &[f64],
        r: &Self::Vector,
        x: &mut Self::Vector,
        p: &mut Self::Vector,
    ) -> Result<(), Self::Error> {
        let n = alpha.len();
        with_coefficients(n, |j| alpha[j].into(), |alpha| self.axpy(alpha, p, x))?;
        with_coefficients(
            n,
            |_| ONE,
            |ones| with_coefficients(n, |j| beta[j].into(), |beta| self.axpby(ones, r, beta, p)),
        )
    }

    /// Makes the updates that end an iteration of [`multishift_cg`](crate::multishift_cg): one step for each system that
    /// moves, all with the same r. Each step computes, in this order,
    ///
    /// x_j ← x_j + a_j p_j,  p_j ← z_j r_j + b_j p_j.
    ///
    /// All steps come in one call, so that a backend can read r once for several of them. Their x and p are different blocks.
    /// A step with z = 1 is [`cg_update`](VectorSpace::cg_update). If [`ShiftStep::is_identity`] is true, x_j and p_j stay as
    /// they are, and a backend need not access them.
    fn shift_update(&self, r: &Self::Vector, steps: &mut [ShiftStep<'_, Self::Vector>]) -> Result<(), Self::Error> {
        for ShiftStep { a, z, b, x, p } in steps {
            let n = a.len();
            let moves = a.iter().any(|a| *a != 0.0);
            if moves && z.iter().all(|z| *z == 1.0) {
                // This is the usual step, for which a backend has a kernel.
                self.cg_update(a, b, r, x, p)?;
                continue;
            }
            if moves {
                with_coefficients(n, |j| a[j].into(), |a| self.axpy(a, p, x))?;
            }
            if z.iter().any(|z| *z != 0.0) || b.iter().any(|b| *b != 1.0) {
                with_coefficients(
                    n,
                    |j| z[j].into(),
                    |z| with_coefficients(n, |j| b[j].into(), |b| self.axpby(z, r, b, p)),
                )?;
            }
        }
        Ok(())
    }

    /// Returns the number of systems whose updates by [`shift_update`](VectorSpace::shift_update) should be queued behind a
    /// sum that is transferred to the host. The number should keep a device busy until the host responds. It is 0, the
    /// default, if there is no transfer, or if an update takes so long that the wait does not matter.
    fn overlapped_updates(&self) -> usize {
        0
    }

    /// Computes all sums of [`Dots`] for given x, y and w.
    fn dots(&self, x: &Self::Vector, y: &Self::Vector, w: &Self::Vector, out: &mut [Dots]) -> Result<(), Self::Error> {
        const STACK: usize = 64;
        let (mut products, mut norms) = ([Complex64::ZERO; STACK], [0.0; STACK]);
        let (mut long, mut longer) = (Vec::new(), Vec::new());
        let n = out.len();
        let (products, norms) = if n <= STACK {
            (&mut products[..n], &mut norms[..n])
        } else {
            long.resize(n, Complex64::ZERO);
            longer.resize(n, 0.0);
            (&mut long[..], &mut longer[..])
        };
        self.dot_norm2(x, y, products, norms)?;
        for (j, dots) in out.iter_mut().enumerate() {
            (dots.x_y, dots.x_x) = (products[j], norms[j]);
        }
        self.dot_norm2(y, w, products, norms)?;
        for (j, dots) in out.iter_mut().enumerate() {
            (dots.w_y, dots.y_y) = (products[j].conj(), norms[j]);
        }
        self.dot(w, x, products)?;
        for (j, dots) in out.iter_mut().enumerate() {
            dots.w_x = products[j];
        }
        Ok(())
    }

    /// Makes the updates that end an iteration of BiCGstab, all from the vectors on entry, when `r` contains s:
    ///
    /// x_j ← x_j + α_j p_j + ω_j s_j,  r_j ← s_j − ω_j t_j,  p_j ← r_j + β_j (p_j − ω_j v_j) with the new r_j.
    #[allow(clippy::too_many_arguments)] // one kernel, all of whose operands are needed
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
    ) -> Result<(), Self::Error> {
        let n = alpha.len();
        self.axpy(alpha, p, x)?;
        self.axpy(omega, r, x)?;
        with_coefficients(n, |j| -omega[j], |minus| self.axpy(minus, t, r))?;
        with_coefficients(n, |j| -omega[j], |minus| self.axpy(minus, v, p))?;
        with_coefficients(n, |_| ONE, |ones| self.axpby(ones, r, beta, p))
    }

    /// Makes the two vector updates of an MR step with t = A r: x_j ← x_j + α_j r_j, t_j ← r_j − α_j t_j.
    ///
    /// The new residual overwrites t. With α_j = 0 the old t_j is not read, so NaN in it does not survive.
    fn mr_update(
        &self,
        alpha: &[Complex64],
        r: &Self::Vector,
        x: &mut Self::Vector,
        t: &mut Self::Vector,
    ) -> Result<(), Self::Error> {
        let n = alpha.len();
        self.axpy(alpha, r, x)?;
        with_coefficients(n, |_| ONE, |ones| with_coefficients(n, |j| -alpha[j], |minus| self.axpby(ones, r, minus, t)))
    }

    /// Computes `dots`_{iN+j} ← (x_ij, y_j) for all blocks x_i of `xs`, and `norm2`_j ← ‖y_j‖², in one reduction.
    ///
    /// `dots` has N entries for each block.
    fn multi_dot(
        &self,
        xs: &[Self::Vector],
        y: &Self::Vector,
        dots: &mut [Complex64],
        norm2: &mut [f64],
    ) -> Result<(), Self::Error> {
        for (x, dots) in xs.iter().zip(dots.chunks_exact_mut(norm2.len())) {
            self.dot(x, y, dots)?;
        }
        self.norm2(y, norm2)
    }

    /// Computes the Gram matrices of the blocks `xs`, one for each right-hand side, in one reduction. The product (x_aj,
    /// x_bj) with a ≤ b is `out`_{kN+j} with k = a + b (b + 1)/2: the upper triangle, column by column.
    ///
    /// `out` has N entries for each pair a ≤ b. The default needs a reduction for each block.
    fn multi_gram(&self, xs: &[Self::Vector], out: &mut [Complex64]) -> Result<(), Self::Error> {
        const STACK: usize = 32;
        let n = self.nrhs();
        let (mut short, mut long) = ([0.0; STACK], Vec::new());
        let norm2 = if n <= STACK {
            &mut short[..n]
        } else {
            long.resize(n, 0.0);
            &mut long[..]
        };
        let mut rest = out;
        for (b, x) in xs.iter().enumerate() {
            let (column, others) = rest.split_at_mut((b + 1) * n);
            let (dots, diagonal) = column.split_at_mut(b * n);
            self.multi_dot(&xs[..b], x, dots, norm2)?;
            diagonal.iter_mut().zip(norm2.iter()).for_each(|(entry, norm2)| *entry = (*norm2).into());
            rest = others;
        }
        Ok(())
    }

    /// Computes y_j ← y_j + Σ_i a_{iN+j} x_ij with all blocks x_i of `xs`.
    ///
    /// `a` has N entries for each block.
    fn multi_axpy(&self, a: &[Complex64], xs: &[Self::Vector], y: &mut Self::Vector) -> Result<(), Self::Error> {
        for (x, a) in xs.iter().zip(a.chunks_exact(self.nrhs())) {
            self.axpy(a, x, y)?;
        }
        Ok(())
    }

    /// Applies [`multi_axpy`](VectorSpace::multi_axpy), then computes `dot`_j ← (y_j, w_j) and `norm2`_j ← ‖y_j‖² of the new y
    /// in one reduction.
    fn multi_axpy_dot_norm2(
        &self,
        a: &[Complex64],
        xs: &[Self::Vector],
        y: &mut Self::Vector,
        w: &Self::Vector,
        dot: &mut [Complex64],
        norm2: &mut [f64],
    ) -> Result<(), Self::Error> {
        self.multi_axpy(a, xs, y)?;
        self.dot_norm2(y, w, dot, norm2)
    }

    /// Whether the space has [`gram`](VectorSpace::gram), [`block_axpy`](VectorSpace::block_axpy) and
    /// [`block_scale`](VectorSpace::block_scale), which mix the vectors of a block and which only
    /// [`block_cg`](crate::block_cg()) needs. They cannot be written in terms of the other operations. The default returns
    /// false.
    fn mixes_rhs(&self) -> bool {
        false
    }

    /// Computes the Gram matrix X†Y: `out`_{iN+j} ← (x_i, y_j) for all i and j.
    fn gram(&self, _x: &Self::Vector, _y: &Self::Vector, _out: &mut [Complex64]) -> Result<(), Self::Error> {
        unreachable!("a space that mixes right-hand sides has Gram matrices")
    }

    /// Computes Y ← Y + X A, that is y_j ← y_j + Σ_i x_i a_{iN+j}.
    fn block_axpy(&self, _a: &[Complex64], _x: &Self::Vector, _y: &mut Self::Vector) -> Result<(), Self::Error> {
        unreachable!("a space that mixes right-hand sides has sums of them")
    }

    /// Computes Y ← X A with two different blocks, that is y_j ← Σ_i x_i a_{iN+j}. The old Y is not read.
    fn block_scale(&self, _a: &[Complex64], _x: &Self::Vector, _y: &mut Self::Vector) -> Result<(), Self::Error> {
        unreachable!("a space that mixes right-hand sides has products with matrices")
    }
}

/// Work that a reduction queues after itself before it waits for its result, so that the device is busy during the
/// transfer of the result. The reduction calls it once, at the latest before it returns. The work may read the operands
/// of the reduction; it changes only other vectors, and contains no sums.
pub type Overlap<'a, E> = &'a mut dyn FnMut() -> Result<(), E>;

/// Operands of a CG step on A + σ from the residual r along the direction p, for [`LinearOperator::cg_step`].
#[derive(Debug)]
pub struct CgStep<'a, V> {
    /// Shift σ of the operator A + σ.
    pub shift: f64,
    /// Search direction p.
    pub p: &'a V,
    /// Residual r.
    pub r: &'a V,
    /// Squared norms ρ_j = ‖r_j‖²; 0 for a right-hand side that takes no step.
    pub rho: &'a [f64],
}

impl<V> CgStep<'_, V> {
    /// Returns α_j = ρ_j / (p_j, (A + σ) p_j), or 0 if α_j is not a positive number, so that r does not change.
    pub fn alpha(&self, j: usize, curvature: Complex64) -> f64 {
        let alpha = self.rho[j] / curvature.re;
        if curvature.re > 0.0 && alpha.is_finite() { alpha } else { 0.0 }
    }
    /// Takes the CG step with two reductions; the host computes α between them.
    pub fn with_two_reductions<S: VectorSpace<Vector = V>, A: LinearOperator<S> + ?Sized>(
        &self,
        space: &S,
        operator: &A,
        out: &mut V,
        curvature: &mut [Complex64],
        norm2: &mut [f64],
        [first, second]: [Overlap<'_, S::Error>; 2],
    ) -> Result<(), S::Error> {
        operator.apply_curvature(space, self.shift, self.p, out, curvature, norm2, first)?;
        self.residual(space, curvature, out, norm2, second)
    }
    /// Takes the second half of the step, after `out` = (A + σ) p and its `curvature` have been computed: `out` ← r − α
    /// (A + σ) p, and `norm2`_j = ‖r'_j‖² of the new residual r'.
    pub fn residual<S: VectorSpace<Vector = V>>(
        &self,
        space: &S,
        curvature: &[Complex64],
        out: &mut V,
        norm2: &mut [f64],
        overlap: Overlap<'_, S::Error>,
    ) -> Result<(), S::Error> {
        let minus: Vec<f64> = (0..self.rho.len()).map(|j| -self.alpha(j, curvature[j])).collect();
        space.xpay_norm2(self.r, &minus, out, norm2, overlap)
    }
}

const ONE: Complex64 = Complex64::new(1.0, 0.0);

/// Calls `f` with N coefficients, which are on the stack for the usual N, so that the default implementations allocate
/// nothing.
pub(crate) fn with_coefficients<T>(
    n: usize,
    value: impl Fn(usize) -> Complex64,
    f: impl FnOnce(&[Complex64]) -> T,
) -> T {
    const STACK: usize = 32;
    if n <= STACK {
        let mut buffer = [Complex64::ZERO; STACK];
        for (j, slot) in buffer[..n].iter_mut().enumerate() {
            *slot = value(j);
        }
        f(&buffer[..n])
    } else {
        f(&(0..n).map(value).collect::<Vec<_>>())
    }
}

/// Arguments of [`VectorSpace::shift_update`] for one system: blocks, and real coefficients for each right-hand side.
pub struct ShiftStep<'a, V> {
    /// Coefficient of p in x_j ← x_j + a_j p_j.
    pub a: &'a [f64],
    /// Coefficient of r in p_j ← z_j r_j + b_j p_j. [`multishift_cg`](crate::multishift_cg) uses only 0 and 1.
    pub z: &'a [f64],
    /// Coefficient of the old p in p_j ← z_j r_j + b_j p_j.
    pub b: &'a [f64],
    /// Block x of solutions.
    pub x: &'a mut V,
    /// Block p of search directions.
    pub p: &'a mut V,
}

impl<V> ShiftStep<'_, V> {
    /// Returns whether the step leaves right-hand side j unchanged: a = 0, z = 0, b = 1.
    pub fn is_identity(&self, j: usize) -> bool {
        self.a[j] == 0.0 && self.z[j] == 0.0 && self.b[j] == 1.0
    }
}

/// Conversion of a block from the precision (or storage format) of `S` to that of `Self`.
///
/// There is no blanket `ConvertFrom<S> for S`, so that a backend can write one implementation over all pairs of its formats.
/// A solve in one precision needs no conversion: see [`Uniform`](crate::Uniform).
pub trait ConvertFrom<S: VectorSpace<Error = Self::Error>>: VectorSpace {
    /// Computes `to`_j ← `scale`_j `from`_j, rounded to nearest if `Self` is the narrower format. Scales are powers of two.
    fn convert(&self, scale: &[f64], from: &S::Vector, to: &mut Self::Vector) -> Result<(), Self::Error>;

    /// Computes `to`_j ← `to`_j + `scale`_j `from`_j, the groupwise update of the solution (Clark et al. 2009, Algorithm 2).
    fn accumulate(&self, scale: &[f64], from: &S::Vector, to: &mut Self::Vector) -> Result<(), Self::Error>;
}

/// Sums of [`LinearOperator::apply_dots`] for one right-hand side, where y = A x.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Dots {
    /// Inner product (x, y).
    pub x_y: Complex64,
    /// Inner product (w, x).
    pub w_x: Complex64,
    /// Inner product (w, y).
    pub w_y: Complex64,
    /// Squared norm ‖x‖².
    pub x_x: f64,
    /// Squared norm ‖y‖².
    pub y_y: f64,
}

impl Dots {
    /// Returns whether all sums are finite.
    pub fn is_finite(&self) -> bool {
        [self.x_y, self.w_x, self.w_y].iter().all(|z| z.is_finite()) && self.x_x.is_finite() && self.y_y.is_finite()
    }
}

/// A linear operator on the vectors of `S`, applied to all right-hand sides of a block.
///
/// An operator that needs scratch memory owns it (a `RefCell` is enough: solvers never apply an operator from inside
/// itself). Input and output are always different blocks.
pub trait LinearOperator<S: VectorSpace> {
    /// Computes `out`_j ← A x_j.
    fn apply(&self, x: &S::Vector, out: &mut S::Vector) -> Result<(), S::Error>;

    /// Computes `out`_j ← A† x_j. Only CGNR, CGNE and the operators made of M and M† call it.
    fn apply_dagger(&self, x: &S::Vector, out: &mut S::Vector) -> Result<(), S::Error>;

    /// Computes `out` ← A x, and the sums (w_j, A x_j) and ‖A x_j‖². Operators override it if one pass over memory can do
    /// both.
    fn apply_dot(
        &self,
        space: &S,
        x: &S::Vector,
        out: &mut S::Vector,
        w: &S::Vector,
        dot: &mut [Complex64],
        norm2: &mut [f64],
    ) -> Result<(), S::Error> {
        self.apply(x, out)?;
        space.dot_norm2_of(w, out, dot, norm2)
    }

    /// Computes `out` ← A x, and the sums for a half step of BiCGstab. Operators override it if one pass over memory can do
    /// both.
    fn apply_dots(
        &self,
        space: &S,
        x: &S::Vector,
        out: &mut S::Vector,
        w: &S::Vector,
        dots: &mut [Dots],
    ) -> Result<(), S::Error> {
        self.apply(x, out)?;
        space.dots(x, out, w, dots)
    }

    /// Computes `out` ← (A + σ) x for a real σ, and `dot`_j = (x_j, (A + σ) x_j) in one reduction. `norm2` is scratch.
    ///
    /// The default needs two more passes over memory if σ ≠ 0: one adds σ x, and one sums. Operators override it if the pass
    /// that ends A x can do both.
    #[allow(clippy::too_many_arguments)] // one pass over memory, all of whose operands are needed
    fn apply_curvature(
        &self,
        space: &S,
        shift: f64,
        x: &S::Vector,
        out: &mut S::Vector,
        dot: &mut [Complex64],
        norm2: &mut [f64],
        overlap: Overlap<'_, S::Error>,
    ) -> Result<(), S::Error> {
        if shift == 0.0 {
            overlap()?;
            return self.apply_dot(space, x, out, x, dot, norm2);
        }
        self.apply(x, out)?;
        with_coefficients(dot.len(), |_| shift.into(), |shift| space.axpy(shift, x, out))?;
        overlap()?;
        space.dot(x, out, dot)
    }

    /// Takes a step of CG on A + σ. It computes (A + σ) p with its `curvature`_j = (p_j, (A + σ) p_j), and the next residual,
    /// which overwrites (A + σ) p in `out`, with `norm2`_j = ‖r'_j‖². See [`CgStep`].
    ///
    /// The two functions in `overlap` run during the two reductions. Operators that wait only once call both during this
    /// wait. The default is [`CgStep::with_two_reductions`].
    fn cg_step(
        &self,
        space: &S,
        from: &CgStep<'_, S::Vector>,
        out: &mut S::Vector,
        curvature: &mut [Complex64],
        norm2: &mut [f64],
        overlap: [Overlap<'_, S::Error>; 2],
    ) -> Result<(), S::Error> {
        from.with_two_reductions(space, self, out, curvature, norm2, overlap)
    }

    /// Computes `out` ← A x, and queues the sums of [`apply_dot`](LinearOperator::apply_dot) for a place on the device; see
    /// [`KeptSums`]. Returns whether the operator can; if not, it does nothing, which is the default.
    fn apply_dot_kept(
        &self,
        _space: &S,
        _x: &S::Vector,
        _out: &mut S::Vector,
        _w: &S::Vector,
        _place: usize,
    ) -> Result<bool, S::Error> {
        Ok(false)
    }

    /// Computes `out` ← A x, and queues the sums of [`apply_dots`](LinearOperator::apply_dots) for a place on the device, like
    /// [`apply_dot_kept`](LinearOperator::apply_dot_kept).
    fn apply_dots_kept(
        &self,
        _space: &S,
        _x: &S::Vector,
        _out: &mut S::Vector,
        _w: &S::Vector,
        _place: usize,
    ) -> Result<bool, S::Error> {
        Ok(false)
    }

    /// Takes the step of [`cg_step`](LinearOperator::cg_step) for σ = 0 with sums that stay on the device, from the direction p
    /// and the residual r. The second place gets \[‖r'_j‖², (p_j, A p_j)\]. Returns whether the operator can; if not, it does
    /// nothing.
    fn cg_step_kept(
        &self,
        space: &S,
        [p, r]: [&S::Vector; 2],
        out: &mut S::Vector,
        rho: KeptRho<'_, f64>,
        [curvature, next]: [usize; 2],
    ) -> Result<bool, S::Error> {
        let Some(kept) = space.kept() else { return Ok(false) };
        if !self.apply_dot_kept(space, p, out, p, curvature)? {
            return Ok(false);
        }
        kept.cg_residual_kept(r, out, rho, curvature, false, next)?;
        Ok(true)
    }

    /// Restricts further applications to the first `nrhs` right-hand sides of a block, like [`VectorSpace::narrow`]; the
    /// operator need not write the others of `out`. Returns whether the operator treats all right-hand sides alike, so that
    /// they may be swapped; otherwise batches keep their width during a solve.
    ///
    /// The default returns false.
    fn narrow(&self, _nrhs: usize) -> bool {
        false
    }

    /// Returns the floating-point operations of one `apply` on all processes together for one right-hand side, by the
    /// convention of the field.
    fn flops(&self) -> f64;
}

impl<S: VectorSpace, A: LinearOperator<S> + ?Sized> LinearOperator<S> for &A {
    fn apply(&self, x: &S::Vector, out: &mut S::Vector) -> Result<(), S::Error> {
        (**self).apply(x, out)
    }
    fn apply_dagger(&self, x: &S::Vector, out: &mut S::Vector) -> Result<(), S::Error> {
        (**self).apply_dagger(x, out)
    }
    fn apply_dot(
        &self,
        space: &S,
        x: &S::Vector,
        out: &mut S::Vector,
        w: &S::Vector,
        dot: &mut [Complex64],
        norm2: &mut [f64],
    ) -> Result<(), S::Error> {
        (**self).apply_dot(space, x, out, w, dot, norm2)
    }
    fn apply_dots(
        &self,
        space: &S,
        x: &S::Vector,
        out: &mut S::Vector,
        w: &S::Vector,
        dots: &mut [Dots],
    ) -> Result<(), S::Error> {
        (**self).apply_dots(space, x, out, w, dots)
    }
    fn apply_curvature(
        &self,
        space: &S,
        shift: f64,
        x: &S::Vector,
        out: &mut S::Vector,
        dot: &mut [Complex64],
        norm2: &mut [f64],
        overlap: Overlap<'_, S::Error>,
    ) -> Result<(), S::Error> {
        (**self).apply_curvature(space, shift, x, out, dot, norm2, overlap)
    }
    fn cg_step(
        &self,
        space: &S,
        from: &CgStep<'_, S::Vector>,
        out: &mut S::Vector,
        curvature: &mut [Complex64],
        norm2: &mut [f64],
        overlap: [Overlap<'_, S::Error>; 2],
    ) -> Result<(), S::Error> {
        (**self).cg_step(space, from, out, curvature, norm2, overlap)
    }
    fn apply_dot_kept(
        &self,
        space: &S,
        x: &S::Vector,
        out: &mut S::Vector,
        w: &S::Vector,
        place: usize,
    ) -> Result<bool, S::Error> {
        (**self).apply_dot_kept(space, x, out, w, place)
    }
    fn apply_dots_kept(
        &self,
        space: &S,
        x: &S::Vector,
        out: &mut S::Vector,
        w: &S::Vector,
        place: usize,
    ) -> Result<bool, S::Error> {
        (**self).apply_dots_kept(space, x, out, w, place)
    }
    fn cg_step_kept(
        &self,
        space: &S,
        vectors: [&S::Vector; 2],
        out: &mut S::Vector,
        rho: KeptRho<'_, f64>,
        places: [usize; 2],
    ) -> Result<bool, S::Error> {
        (**self).cg_step_kept(space, vectors, out, rho, places)
    }
    fn narrow(&self, nrhs: usize) -> bool {
        (**self).narrow(nrhs)
    }
    fn flops(&self) -> f64 {
        (**self).flops()
    }
}

/// Narrows all parts of a solve, each by its own function. If one of them fails, restores the width `before` of all, and
/// returns false.
pub(crate) fn narrow_all(before: usize, nrhs: usize, parts: &[&dyn Fn(usize) -> bool]) -> bool {
    let Some(failed) = parts.iter().position(|narrow| !narrow(nrhs)) else { return true };
    parts[..failed].iter().for_each(|narrow| {
        narrow(before);
    });
    false
}
