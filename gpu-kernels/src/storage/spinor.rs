//! Site formats: what linear algebra needs to know of a field, whatever lives on its sites.
use super::Precision;
use crate::algebra::{Complex, Real, Spinor};
use crate::memory::{Access, Global};
use core::marker::PhantomData;

/// How one kind of field is kept.
pub trait SiteFormat: Copy + Send + Sync + 'static {
    /// Real numbers in registers.
    type Real: Real;
    /// What lives on a site.
    type Value: SiteValue<Self::Real>;
    /// For entry points: `spinor_single` ….
    const NAME: &'static str;
    /// Bytes per site.
    const BYTES: usize;
    /// Reads a site of a tile.
    ///
    /// # Safety
    /// The tile is valid and read as `access` promises.
    unsafe fn load(tile: Global, lane: usize, access: Access) -> Self::Value;
    /// Writes a site of a tile.
    ///
    /// # Safety
    /// The tile is valid and the element written by nobody else.
    unsafe fn store(tile: Global, lane: usize, value: &Self::Value);
}

/// Complex numbers on a site, taken together.
pub trait SiteValue<T: Real>: Copy {
    /// The same kind of value in another real type.
    type Cast<U: Real>: SiteValue<U>;
    /// Applies `f` to every component.
    fn each(self, f: impl Fn(Complex<T>) -> Complex<T>) -> Self;
    /// Applies `f` to every pair of components.
    fn pairs(self, other: Self, f: impl Fn(Complex<T>, Complex<T>) -> Complex<T>) -> Self;
    /// Rounds or extends every component.
    fn cast<U: Real>(self) -> Self::Cast<U>;
    /// Σ |a_k|²: over three colours in the field's own precision, which converts a sixth of the numbers, then in double.
    fn norm2(self) -> f64;
    /// Σ a_k* b_k, likewise.
    fn dot(self, other: Self) -> Complex<f64>;
}

impl<T: Real> SiteValue<T> for Spinor<T> {
    type Cast<U: Real> = Spinor<U>;
    #[inline(always)]
    fn each(self, f: impl Fn(Complex<T>) -> Complex<T>) -> Self {
        self.map(f)
    }
    #[inline(always)]
    fn pairs(self, other: Self, f: impl Fn(Complex<T>, Complex<T>) -> Complex<T>) -> Self {
        self.zip(other, f)
    }
    #[inline(always)]
    fn cast<U: Real>(self) -> Spinor<U> {
        self.map(|z| z.cast())
    }
    #[inline(always)]
    fn norm2(self) -> f64 {
        let [a, b, c, d] = self.0.map(|colour| colour.norm2().to_f64());
        (a + b) + (c + d)
    }
    #[inline(always)]
    fn dot(self, other: Self) -> Complex<f64> {
        let spin = |s: usize| self.0[s].dot(other.0[s]).cast::<f64>();
        (spin(0) + spin(1)) + (spin(2) + spin(3))
    }
}

/// Four-spin spinors in precision P.
#[derive(Clone, Copy, Debug)]
pub struct Spinors<P>(PhantomData<P>);

impl<P: Precision> SiteFormat for Spinors<P> {
    type Real = P::Real;
    type Value = Spinor<P::Real>;
    const NAME: &'static str = P::NAME;
    const BYTES: usize = P::SPINOR_BYTES;
    #[inline(always)]
    unsafe fn load(tile: Global, lane: usize, access: Access) -> Self::Value {
        unsafe { P::load_spinor(tile, lane, access) }
    }
    #[inline(always)]
    unsafe fn store(tile: Global, lane: usize, value: &Self::Value) {
        unsafe { P::store_spinor(tile, lane, value) }
    }
}
