//! Fields whose complex numbers are stored one by one ([`Element`]): fields in double precision, and all fields that are read
//! in lanes.
use super::Element;
use crate::algebra::{Axis, Colour, DiracSpinor, HalfSpinor, Projector, ProjectorSign, Scaled, ScaledColour, complex};
use crate::memory::{Access, Global};
use core::ops::Range;

/// Exchanges the lanes of colour vectors, after the arithmetic that does not mix lanes.
#[inline(always)]
fn turned<T: Element, const N: usize>(mut colours: [Colour<T>; N], lane: usize) -> [Colour<T>; N] {
    if T::is_turned(lane) {
        let mut k = 0;
        while k < 3 * N {
            let z = &mut colours[k / 3].0[k % 3];
            *z = complex(z.re.turned(lane), z.im.turned(lane));
            k += 1;
        }
    }
    colours
}
/// Reads all spins of a site, or of a group of sites in the group's own lane order.
#[inline(always)]
unsafe fn spins<T: Element>(tile: Global, lane: usize, access: Access) -> [Colour<T>; 4] {
    unsafe {
        [
            load_colour_at(tile, lane, 0, access),
            load_colour_at(tile, lane, 3, access),
            load_colour_at(tile, lane, 6, access),
            load_colour_at(tile, lane, 9, access),
        ]
    }
}

/// Reads a spinor; implements [`NumberFormat::load_spinor`](super::NumberFormat::load_spinor).
///
/// # Safety
/// The contract of [`NumberFormat::load_spinor`](super::NumberFormat::load_spinor) holds.
#[inline(always)]
pub unsafe fn load_spinor<T: Element>(tile: Global, lane: usize, access: Access) -> DiracSpinor<T> {
    DiracSpinor(turned(unsafe { spins(tile, lane, access) }, lane))
}
/// Prefetches numbers of the spinors at the same place in the next tile.
#[inline(always)]
fn prefetch_next<T: Element>(tile: Global, lane: usize, numbers: Range<usize>) {
    let next = Global(tile.0.wrapping_add(12 * T::TILE * T::BYTES));
    let mut k = numbers.start;
    while k < numbers.end {
        T::prefetch(next, lane, k);
        k += 1;
    }
}

/// Reads and projects a spinor; implements [`NumberFormat::load_projected`](super::NumberFormat::load_projected).
///
/// # Safety
/// The contract of [`NumberFormat::load_projected`](super::NumberFormat::load_projected) holds.
#[inline(always)]
pub unsafe fn load_projected<T: Element, S: ProjectorSign>(tile: Global, lane: usize, p: Projector<S>) -> Scaled<T> {
    prefetch_next::<T>(tile, lane, if p.axis == Axis::T { 3 * p.kept()..3 * p.kept() + 6 } else { 0..12 });
    let Scaled { value: HalfSpinor(spins), scale } = if p.axis == Axis::T {
        let first = 3 * p.kept();
        let [a, b] = unsafe {
            [load_colour_at(tile, lane, first, Access::Shared), load_colour_at(tile, lane, first + 3, Access::Shared)]
        };
        Scaled { value: HalfSpinor([a, b]), scale: T::ONE + T::ONE }
    } else {
        DiracSpinor(unsafe { spins(tile, lane, Access::Shared) }).project(p)
    };
    Scaled { value: HalfSpinor(turned(spins, lane)), scale }
}
/// Writes a spinor; implements [`NumberFormat::store_spinor`](super::NumberFormat::store_spinor).
///
/// # Safety
/// The contract of [`NumberFormat::store_spinor`](super::NumberFormat::store_spinor) holds.
#[inline(always)]
pub unsafe fn store_spinor<T: Element>(tile: Global, lane: usize, s: &DiracSpinor<T>) {
    macro_rules! put {
        ($($spin:literal)*) => {$(
            unsafe { store_colour_at(tile, lane, 3 * $spin, s.0[$spin]) };
        )*};
    }
    put!(0 1 2 3);
}
/// Reads a half spinor; implements [`NumberFormat::load_half_spinor`](super::NumberFormat::load_half_spinor).
///
/// # Safety
/// The contract of [`NumberFormat::load_half_spinor`](super::NumberFormat::load_half_spinor) holds.
#[inline(always)]
pub unsafe fn load_half_spinor<T: Element>(tile: Global, lane: usize, time: bool) -> Scaled<T> {
    let (a, b) =
        unsafe { (load_colour_at(tile, lane, 0, Access::Shared), load_colour_at(tile, lane, 3, Access::Shared)) };
    Scaled { value: HalfSpinor(turned([a, b], lane)), scale: if time { T::ONE + T::ONE } else { T::ONE } }
}
/// Projects a spinor to another tile; implements [`NumberFormat::store_projected`](super::NumberFormat::store_projected).
///
/// # Safety
/// The contract of [`NumberFormat::store_projected`](super::NumberFormat::store_projected) holds.
#[inline(always)]
pub unsafe fn store_projected<T: Element>((from, lane): (Global, usize), p: Projector, (to, place): (Global, usize)) {
    let HalfSpinor([a, b]) = unsafe { load_projected::<T, _>(from, lane, p) }.value;
    unsafe {
        store_colour_at(to, place, 0, a);
        store_colour_at(to, place, 3, b);
    }
}
/// Reads a colour vector; implements [`NumberFormat::load_colour`](super::NumberFormat::load_colour).
///
/// # Safety
/// The contract of [`NumberFormat::load_colour`](super::NumberFormat::load_colour) holds.
#[inline(always)]
pub unsafe fn load_colour<T: Element>(tile: Global, lane: usize, access: Access) -> ScaledColour<T> {
    let [vector] = turned([unsafe { load_colour_at(tile, lane, 0, access) }], lane);
    ScaledColour { vector, scale: T::ONE }
}
/// Writes a colour vector; implements [`NumberFormat::store_colour`](super::NumberFormat::store_colour).
///
/// # Safety
/// The contract of [`NumberFormat::store_colour`](super::NumberFormat::store_colour) holds.
#[inline(always)]
pub unsafe fn store_colour<T: Element>(tile: Global, lane: usize, c: &Colour<T>) {
    unsafe { store_colour_at(tile, lane, 0, *c) }
}
/// Reads numbers `first` to `first` + 2. This is not a closure, because with vectors its code is large and would not be
/// inlined.
#[inline(always)]
unsafe fn load_colour_at<T: Element>(tile: Global, lane: usize, first: usize, access: Access) -> Colour<T> {
    unsafe {
        Colour([
            T::straight(tile, lane, first, access),
            T::straight(tile, lane, first + 1, access),
            T::straight(tile, lane, first + 2, access),
        ])
    }
}
/// Writes numbers `first` to `first` + 2.
#[inline(always)]
unsafe fn store_colour_at<T: Element>(tile: Global, lane: usize, first: usize, Colour([a, b, c]): Colour<T>) {
    unsafe {
        T::store(tile, lane, first, a);
        T::store(tile, lane, first + 1, b);
        T::store(tile, lane, first + 2, c);
    }
}
