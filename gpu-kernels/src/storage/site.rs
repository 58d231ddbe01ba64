//! Site formats: the properties of fields on which linear algebra depends, for any kind of fermion.
use super::{Element, NumberFormat};
use crate::FermionKind;
use crate::algebra::{Colour, Complex, DiracSpinor, Real, complex, to_degrand_rossi, to_device_basis};
use crate::format::KernelFormat;
use crate::memory::{Access, Global};
use core::marker::PhantomData;

/// Storage format of a site of one kind of field.
pub trait SiteFormat: KernelFormat + Copy + Send + Sync + 'static {
    /// Type of real numbers in registers.
    type Real: Element;
    /// Value of the field on a site.
    type Value: SiteValue<Self::Real>;
    /// Number of bytes per site.
    const BYTES: usize;
    /// Reads a site of a tile.
    ///
    /// # Safety
    /// The tile is valid and read as `access` promises.
    unsafe fn load(tile: Global, lane: usize, access: Access) -> Self::Value;
    /// Writes a site of a tile.
    ///
    /// # Safety
    /// The tile is valid, and no other thread writes the element.
    unsafe fn store(tile: Global, lane: usize, value: &Self::Value);
}

/// Complex numbers of a site as one value, for example a spinor.
pub trait SiteValue<T: Real>: Copy {
    /// Value whose components are all 0.
    const ZERO: Self;
    /// Applies `f` to every component.
    fn each(self, f: impl Fn(Complex<T>) -> Complex<T>) -> Self;
    /// Applies `f` to every pair of components.
    fn pairs(self, other: Self, f: impl Fn(Complex<T>, Complex<T>) -> Complex<T>) -> Self;
    /// Calls `f` with every component of four values.
    fn visit(four: [Self; 4], f: impl FnMut([Complex<T>; 4]));
    /// Σ |a_k|², summed over three colours in the field's own precision, then over spins in double precision. Only a sixth of
    /// the numbers is converted.
    fn norm2(self) -> f64;
    /// Σ a_k* b_k, summed over three colours in the field's own precision, then over spins in double precision.
    fn dot(self, other: Self) -> Complex<f64>;
}

/// Kind of a fermion field: its degrees of freedom on a site, in any precision.
pub trait SiteKind: Copy + Send + Sync + 'static {
    /// The kind as a value.
    const FERMIONS: FermionKind;
    /// Number of spins, each with three colours.
    const SPINS: usize;
    /// Value of the field on a site, in registers.
    type Value<T: Real>: SiteValue<T>;
    /// Converts every component to another real type, rounded if necessary.
    fn cast<T: Real, U: Real>(value: Self::Value<T>) -> Self::Value<U>;
    /// Returns the value from the numbers of a host array, in the host's spin basis.
    fn from_host(number: impl Fn(usize) -> Complex<f64>) -> Self::Value<f64>;
    /// Passes the numbers of the value to `put`, for a host array in the host's spin basis.
    fn to_host(value: Self::Value<f64>, put: impl FnMut(usize, Complex<f64>));
    /// Reads a site of a tile in precision P, like [`SiteFormat::load`].
    ///
    /// # Safety
    /// The contract of [`SiteFormat::load`] holds.
    unsafe fn load<P: NumberFormat>(tile: Global, lane: usize, access: Access) -> Self::Value<P::Real>;
    /// Writes a site of a tile in precision P, like [`SiteFormat::store`].
    ///
    /// # Safety
    /// The contract of [`SiteFormat::store`] holds.
    unsafe fn store<P: NumberFormat>(tile: Global, lane: usize, value: &Self::Value<P::Real>);
}

/// Format of fermion fields of kind K in precision P.
#[derive(Clone, Copy, Debug)]
pub struct Sites<K, P>(PhantomData<(K, P)>);

impl<K: SiteKind, P: NumberFormat> SiteFormat for Sites<K, P> {
    type Real = P::Real;
    type Value = K::Value<P::Real>;
    const BYTES: usize = if K::SPINS == 1 { P::COLOUR_BYTES } else { P::SPINOR_BYTES };
    #[inline(always)]
    unsafe fn load(tile: Global, lane: usize, access: Access) -> Self::Value {
        unsafe { K::load::<P>(tile, lane, access) }
    }
    #[inline(always)]
    unsafe fn store(tile: Global, lane: usize, value: &Self::Value) {
        unsafe { K::store::<P>(tile, lane, value) }
    }
}

/// Degrees of freedom of Wilson fermions: four spins of three colours.
#[derive(Clone, Copy, Debug)]
pub struct WilsonFermion;
/// Degrees of freedom of staggered fermions: three colours.
#[derive(Clone, Copy, Debug)]
pub struct StaggeredFermion;

/// Format of fields of spinors with four spins in precision P.
pub type Spinors<P> = Sites<WilsonFermion, P>;
/// Format of fields of colour vectors in precision P.
pub type Colours<P> = Sites<StaggeredFermion, P>;

impl<T: Real> SiteValue<T> for DiracSpinor<T> {
    const ZERO: Self = DiracSpinor::ZERO;
    #[inline(always)]
    fn each(self, f: impl Fn(Complex<T>) -> Complex<T>) -> Self {
        self.map(f)
    }
    #[inline(always)]
    fn pairs(self, other: Self, f: impl Fn(Complex<T>, Complex<T>) -> Complex<T>) -> Self {
        self.zip(other, f)
    }
    #[inline(always)]
    fn visit(four: [Self; 4], mut f: impl FnMut([Complex<T>; 4])) {
        Colour::visit(four.map(|x| x.0[0]), &mut f);
        Colour::visit(four.map(|x| x.0[1]), &mut f);
        Colour::visit(four.map(|x| x.0[2]), &mut f);
        Colour::visit(four.map(|x| x.0[3]), &mut f);
    }
    #[inline(always)]
    fn norm2(self) -> f64 {
        let [a, b, c, d] = self.0;
        T::sum([a.norm2(), b.norm2(), c.norm2(), d.norm2()])
    }
    #[inline(always)]
    fn dot(self, other: Self) -> Complex<f64> {
        let ([a, b, c, d], [e, f, g, h]) = (self.0, other.0);
        let [a, b, c, d] = [a.dot(e), b.dot(f), c.dot(g), d.dot(h)];
        complex(T::sum([a.re, b.re, c.re, d.re]), T::sum([a.im, b.im, c.im, d.im]))
    }
}
impl SiteKind for WilsonFermion {
    const FERMIONS: FermionKind = FermionKind::Wilson;
    const SPINS: usize = 4;
    type Value<T: Real> = DiracSpinor<T>;
    #[inline(always)]
    fn cast<T: Real, U: Real>(value: DiracSpinor<T>) -> DiracSpinor<U> {
        value.map(|z| z.cast())
    }
    #[inline(always)]
    fn from_host(number: impl Fn(usize) -> Complex<f64>) -> DiracSpinor<f64> {
        let colour = |s: usize| Colour([number(3 * s), number(3 * s + 1), number(3 * s + 2)]);
        to_device_basis(DiracSpinor([colour(0), colour(1), colour(2), colour(3)]))
    }
    #[inline(always)]
    fn to_host(value: DiracSpinor<f64>, mut put: impl FnMut(usize, Complex<f64>)) {
        let s = to_degrand_rossi(value).0;
        macro_rules! each {
            ($($spin:literal $colour:literal),*) => {$(put(3 * $spin + $colour, s[$spin].0[$colour]);)*};
        }
        each!(0 0, 0 1, 0 2, 1 0, 1 1, 1 2, 2 0, 2 1, 2 2, 3 0, 3 1, 3 2);
    }
    #[inline(always)]
    unsafe fn load<P: NumberFormat>(tile: Global, lane: usize, access: Access) -> DiracSpinor<P::Real> {
        unsafe { P::load_spinor(tile, lane, access) }
    }
    #[inline(always)]
    unsafe fn store<P: NumberFormat>(tile: Global, lane: usize, value: &DiracSpinor<P::Real>) {
        unsafe { P::store_spinor(tile, lane, value) }
    }
}

impl<T: Real> SiteValue<T> for Colour<T> {
    const ZERO: Self = Colour::ZERO;
    #[inline(always)]
    fn each(self, f: impl Fn(Complex<T>) -> Complex<T>) -> Self {
        self.map(f)
    }
    #[inline(always)]
    fn pairs(self, other: Self, f: impl Fn(Complex<T>, Complex<T>) -> Complex<T>) -> Self {
        self.zip(other, f)
    }
    #[inline(always)]
    fn visit(four: [Self; 4], mut f: impl FnMut([Complex<T>; 4])) {
        f(four.map(|x| x.0[0]));
        f(four.map(|x| x.0[1]));
        f(four.map(|x| x.0[2]));
    }
    #[inline(always)]
    fn norm2(self) -> f64 {
        Colour::norm2(self).to_f64()
    }
    #[inline(always)]
    fn dot(self, other: Self) -> Complex<f64> {
        let z = Colour::dot(self, other);
        complex(z.re.to_f64(), z.im.to_f64())
    }
}
impl SiteKind for StaggeredFermion {
    const FERMIONS: FermionKind = FermionKind::Staggered;
    const SPINS: usize = 1;
    type Value<T: Real> = Colour<T>;
    #[inline(always)]
    fn cast<T: Real, U: Real>(value: Colour<T>) -> Colour<U> {
        value.map(|z| z.cast())
    }
    #[inline(always)]
    fn from_host(number: impl Fn(usize) -> Complex<f64>) -> Colour<f64> {
        Colour([number(0), number(1), number(2)])
    }
    #[inline(always)]
    fn to_host(value: Colour<f64>, mut put: impl FnMut(usize, Complex<f64>)) {
        let [a, b, c] = value.0;
        put(0, a);
        put(1, b);
        put(2, c);
    }
    #[inline(always)]
    unsafe fn load<P: NumberFormat>(tile: Global, lane: usize, access: Access) -> Colour<P::Real> {
        unsafe { P::load_colour(tile, lane, access) }.value()
    }
    #[inline(always)]
    unsafe fn store<P: NumberFormat>(tile: Global, lane: usize, value: &Colour<P::Real>) {
        unsafe { P::store_colour(tile, lane, value) }
    }
}
