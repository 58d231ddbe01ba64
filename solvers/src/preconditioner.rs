//! Flexible preconditioners: the trait, the identity, and conversion to another format.

use crate::reliable::scale_for;
use crate::traits::{ConvertFrom, VectorSpace, narrow_all, with_coefficients};
use num_complex::Complex64;
use std::cell::RefCell;
use std::ops::AddAssign;

/// Counts of the work of a preconditioner, for reports.
///
/// The counts are those of this process, and are equal on all processes. Conversions are not counted, although those into
/// overlapping domains take a halo exchange each.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Work {
    /// Number of calls of the preconditioner.
    pub calls: usize,
    /// Number of iterations of the method itself, without those of an inner preconditioner; 0 if the method does not count
    /// them.
    pub iterations: usize,
    /// Number of applications to a block of operators that couple domains; each takes a halo exchange.
    pub applications: usize,
    /// Number of applications to a block of operators that end at the faces of the domains; they need no communication.
    pub local_applications: usize,
    /// Number of sums over all processes.
    pub reductions: usize,
    /// Number of sums over domains; the host waits for its own device only.
    pub local_reductions: usize,
    /// Number of floating-point operations in all applications, for one right-hand side.
    pub flops: f64,
}

impl AddAssign for Work {
    fn add_assign(&mut self, other: Work) {
        self.calls += other.calls;
        self.iterations += other.iterations;
        self.applications += other.applications;
        self.local_applications += other.local_applications;
        self.reductions += other.reductions;
        self.local_reductions += other.local_reductions;
        self.flops += other.flops;
    }
}

/// Approximate solver z ← K r for A z = r in the space `S`. K need not be linear, and may differ from call to call.
/// [`gcr`](crate::gcr) takes any preconditioner.
pub trait Preconditioner<S: VectorSpace> {
    /// Computes z_j ← K r_j for all right-hand sides. The scale of K does not matter to [`gcr`](crate::gcr). The old content
    /// of `z` is ignored.
    ///
    /// `norms`_j is ‖r_j‖ up to rounding, with the same bits on every process; `norms` may be empty if
    /// [`needs_norms`](Preconditioner::needs_norms) returns false. Finished right-hand sides are included; their z_j are
    /// ignored, but must be finite.
    ///
    /// # Errors
    /// The errors of the backend. A number that is not finite is not an error: if z_j is not finite, the outer solver detects
    /// it.
    fn apply(&self, space: &S, r: &S::Vector, norms: &[f64], z: &mut S::Vector) -> Result<Work, S::Error>;

    /// Computes z_j ← z_j + K r_j. `scratch` holds K r if K r is not added directly.
    ///
    /// # Errors
    /// The errors of [`apply`](Preconditioner::apply).
    fn apply_add(
        &self,
        space: &S,
        r: &S::Vector,
        norms: &[f64],
        z: &mut S::Vector,
        scratch: &mut S::Vector,
    ) -> Result<Work, S::Error> {
        let work = self.apply(space, r, norms, scratch)?;
        with_coefficients(space.nrhs(), |_| Complex64::ONE, |ones| space.axpy(ones, scratch, z))?;
        Ok(work)
    }

    /// Whether [`apply`](Preconditioner::apply) reads its `norms`. If not, a caller that does not have the norms saves a
    /// reduction and passes an empty slice. The default returns true.
    fn needs_norms(&self) -> bool {
        true
    }

    /// Restricts all further calls to the first `nrhs` right-hand sides of a block, in any order, like
    /// [`LinearOperator::narrow`](crate::LinearOperator::narrow). Returns whether that is possible; if not, nothing changes,
    /// and batches keep their width.
    fn narrow(&self, _nrhs: usize) -> bool {
        false
    }
}

impl<S: VectorSpace, K: Preconditioner<S> + ?Sized> Preconditioner<S> for &K {
    fn apply(&self, space: &S, r: &S::Vector, norms: &[f64], z: &mut S::Vector) -> Result<Work, S::Error> {
        (**self).apply(space, r, norms, z)
    }
    fn apply_add(
        &self,
        space: &S,
        r: &S::Vector,
        norms: &[f64],
        z: &mut S::Vector,
        scratch: &mut S::Vector,
    ) -> Result<Work, S::Error> {
        (**self).apply_add(space, r, norms, z, scratch)
    }
    fn needs_norms(&self) -> bool {
        (**self).needs_norms()
    }
    fn narrow(&self, nrhs: usize) -> bool {
        (**self).narrow(nrhs)
    }
}

/// The preconditioner K = 1, with which GCR is plain GCR.
#[derive(Clone, Copy, Debug, Default)]
pub struct Identity;

impl<S: VectorSpace> Preconditioner<S> for Identity {
    fn apply(&self, space: &S, r: &S::Vector, _: &[f64], z: &mut S::Vector) -> Result<Work, S::Error> {
        space.copy(r, z)?;
        Ok(Work::default())
    }
    fn needs_norms(&self) -> bool {
        false
    }
    fn narrow(&self, _: usize) -> bool {
        true
    }
}

/// Preconditioner K of the space `D` for vectors of another space: it converts r, applies K, and converts z back.
///
/// A solve has three precisions with it: the two of a [`System`](crate::System), and that of `D`. Residuals that enter `D`
/// are scaled by a power of two, so that they lie well in its range ([`VectorSpace::target_norm`]).
///
/// # Overlapping domains
/// The conversions may be more than a change of format. If vectors of `D` hold each domain together with sites of its
/// neighbours, conversion to `D` is the restriction R_i to extended domains, which fetches these sites. Conversion back
/// either takes each element from the domain that it belongs to (restricted additive Schwarz) or adds the contributions of
/// all domains (additive Schwarz). Both use [`ConvertFrom::convert`], since sums over whole vectors of `D` are never
/// computed.
pub struct Converted<'a, D: VectorSpace, K> {
    space: &'a D,
    preconditioner: K,
    scratch: RefCell<ConversionScratch<D>>,
}

struct ConversionScratch<D: VectorSpace> {
    r: D::Vector,
    z: D::Vector,
    norms: Vec<f64>,
    scale: Vec<f64>,
    unscale: Vec<f64>,
}

impl<'a, D: VectorSpace, K: Preconditioner<D>> Converted<'a, D, K> {
    /// Wraps `preconditioner` and allocates two blocks of `space`, which must have the number of right-hand sides of the
    /// outer space.
    pub fn new(space: &'a D, preconditioner: K) -> Result<Self, D::Error> {
        let n = space.nrhs();
        let scratch = ConversionScratch {
            r: space.allocate()?,
            z: space.allocate()?,
            norms: vec![0.0; n],
            scale: vec![1.0; n],
            unscale: vec![1.0; n],
        };
        Ok(Self { space, preconditioner, scratch: RefCell::new(scratch) })
    }
}

impl<S, D, K> Preconditioner<S> for Converted<'_, D, K>
where
    S: ConvertFrom<D>,
    D: ConvertFrom<S> + VectorSpace<Error = S::Error>,
    K: Preconditioner<D>,
{
    fn apply(&self, space: &S, r: &S::Vector, norms: &[f64], z: &mut S::Vector) -> Result<Work, S::Error> {
        self.apply_inside(space, r, norms, &mut |unscale, inner_z| space.convert(unscale, inner_z, z))
    }
    /// Computes z_j ← z_j + K r_j, where the conversion back adds.
    fn apply_add(
        &self,
        space: &S,
        r: &S::Vector,
        norms: &[f64],
        z: &mut S::Vector,
        _: &mut S::Vector,
    ) -> Result<Work, S::Error> {
        self.apply_inside(space, r, norms, &mut |unscale, inner_z| space.accumulate(unscale, inner_z, z))
    }
    /// Returns true in a format of limited range, or if the inner preconditioner needs norms.
    fn needs_norms(&self) -> bool {
        self.space.target_norm().is_some() || self.preconditioner.needs_norms()
    }
    fn narrow(&self, nrhs: usize) -> bool {
        narrow_all(self.space.nrhs(), nrhs, &[&|n| self.preconditioner.narrow(n), &|n| self.space.narrow(n)])
    }
}

/// Callback that converts K r back, scaled by the given factors.
type ConvertBack<'a, V, E> = &'a mut dyn FnMut(&[f64], &V) -> Result<(), E>;

impl<D: VectorSpace, K: Preconditioner<D>> Converted<'_, D, K> {
    fn apply_inside<S>(
        &self,
        space: &S,
        r: &S::Vector,
        norms: &[f64],
        back: ConvertBack<'_, D::Vector, S::Error>,
    ) -> Result<Work, S::Error>
    where
        S: VectorSpace<Error = D::Error>,
        D: ConvertFrom<S>,
    {
        let ConversionScratch { r: inner_r, z: inner_z, norms: inner_norms, scale, unscale } =
            &mut *self.scratch.borrow_mut();
        let (n, target_norm) = (space.nrhs(), self.space.target_norm());
        scale[..n].fill(1.0);
        unscale[..n].fill(1.0);
        for (j, norm) in norms.iter().enumerate() {
            scale[j] = scale_for(target_norm, *norm, 1.0);
            unscale[j] = 1.0 / scale[j];
            inner_norms[j] = scale[j] * norm;
        }
        self.space.convert(&scale[..n], r, inner_r)?;
        let work = self.preconditioner.apply(self.space, inner_r, &inner_norms[..norms.len()], inner_z)?;
        back(&unscale[..n], inner_z)?;
        Ok(work)
    }
}
