//! A row of an operator together with the sums that solvers need of it: the result is not read again.
use crate::Reduction;
use crate::algebra::Real;
use crate::field::Field;
use crate::sides::{Stage, SumTogether, each_side, in_order_of};
use crate::storage::{SiteFormat, SiteValue};

/// What lives on a site of a row.
pub type Value<K> = <<K as Row>::Format as SiteFormat>::Value;

/// Computes out = a x + …, one site of one parity at a time, x on the same sites.
///
/// # Safety
/// Call (i, rhs) of `compute` reads no element of `out` but its own.
pub unsafe trait Row: Copy + Send + Sync + 'static {
    /// Of out and x.
    type Format: SiteFormat;
    /// Name of its [`RowDot`].
    const DOT: &'static [&'static str];
    /// Name of its [`RowDots`].
    const DOTS: &'static [&'static str];
    /// Where the result goes.
    fn out(&self) -> &Field<Self::Format>;
    /// The results at site `i` for N right-hand sides from `first` on, not yet written, and x there.
    ///
    /// # Safety
    /// As [`Kernel::site`](crate::Kernel::site).
    unsafe fn compute<const N: usize>(&self, i: u32, first: u32) -> [[Value<Self>; 2]; N];
    /// Computes and writes them.
    ///
    /// # Safety
    /// As [`Kernel::site`](crate::Kernel::site).
    #[inline(always)]
    unsafe fn store<const N: usize>(&self, i: u32, first: u32) {
        let rows = unsafe { self.compute::<N>(i, first) };
        each_side!(k < N: {
            unsafe { self.out().store(i, first + k as u32, &rows[k][0]) }
        });
    }
    /// As [`Kernel::place`](crate::Kernel::place).
    fn place(&self, i: u32) -> u32;
    /// As [`Kernel::place_together`](crate::Kernel::place_together).
    fn place_together(&self, i: u32) -> u32;
}

/// \[Re (w, y), Im (w, y), ‖y‖²\]
#[inline(always)]
pub(crate) fn dot<T: Real, V: SiteValue<T>>(y: V, w: V) -> [f64; 3] {
    let wy = w.dot(y);
    [wy.re, wy.im, y.norm2()]
}
/// \[Re (x, y), Im (x, y), Re (w, x), Im (w, x), Re (w, y), Im (w, y), ‖x‖², ‖y‖²\]
#[inline(always)]
pub(crate) fn dots<T: Real, V: SiteValue<T>>(x: V, y: V, w: V) -> [f64; 8] {
    let (xy, wx, wy) = (x.dot(y), w.dot(x), w.dot(y));
    [xy.re, xy.im, wx.re, wx.im, wy.re, wy.im, x.norm2(), y.norm2()]
}

/// A row that also returns \[Re (w, out), Im (w, out), ‖out‖²\].
#[derive(Clone, Copy)]
#[repr(C)]
pub struct RowDot<K: Row> {
    /// The row.
    pub row: K,
    /// w, on the same parity. May be x.
    pub w: Field<K::Format>,
}

// SAFETY: as for the row; w is not written.
unsafe impl<K: Row> Reduction for RowDot<K> {
    const NAME: &'static [&'static str] = K::DOT;
    type Values = [f64; 3];
    const THREADS: u32 = 128;
    const BLOCKS: u32 = 2112;
    in_order_of!(row);
    #[inline(always)]
    unsafe fn site(&self, i: u32, rhs: u32) -> [f64; 3] {
        unsafe { self.sides::<1>(i, rhs)[0] }
    }
}
// SAFETY: as for one.
unsafe impl<K: Row> SumTogether for RowDot<K> {
    #[inline(always)]
    unsafe fn sides<const N: usize>(&self, i: u32, first: u32) -> [[f64; 3]; N] {
        let rows = unsafe { self.row.compute::<N>(i, first) };
        let mut sums = [[0.0; 3]; N];
        each_side!(k < N: {
            unsafe { self.row.out().store(i, first + k as u32, &rows[k][0]) };
            sums[k] = dot(rows[k][0], unsafe { self.w.load(i, first + k as u32) });
        });
        sums
    }
}
impl<K: Row + Stage<Staged: Row<Format = K::Format>>> Stage for RowDot<K> {
    type Staged = RowDot<K::Staged>;
    const BYTES: usize = K::BYTES;
    #[inline(always)]
    unsafe fn stage(&self, i: u32) -> Self::Staged {
        RowDot { row: unsafe { self.row.stage(i) }, w: self.w }
    }
    #[inline(always)]
    fn turned(staged: Self::Staged, first: u32) -> Self::Staged {
        RowDot { row: K::turned(staged.row, first), w: staged.w }
    }
}

/// A row that also returns what a half step of BiCGstab needs of y = A x:
/// \[Re (x, y), Im (x, y), Re (w, x), Im (w, x), Re (w, y), Im (w, y), ‖x‖², ‖y‖²\].
#[derive(Clone, Copy)]
#[repr(C)]
pub struct RowDots<K: Row> {
    /// The row.
    pub row: K,
    /// w, on the same parity.
    pub w: Field<K::Format>,
}

// SAFETY: as for the row; w is not written.
unsafe impl<K: Row> Reduction for RowDots<K> {
    const NAME: &'static [&'static str] = K::DOTS;
    type Values = [f64; 8];
    const THREADS: u32 = 128;
    const BLOCKS: u32 = 2112;
    in_order_of!(row);
    #[inline(always)]
    unsafe fn site(&self, i: u32, rhs: u32) -> [f64; 8] {
        unsafe { self.sides::<1>(i, rhs)[0] }
    }
}
// SAFETY: as for one.
unsafe impl<K: Row> SumTogether for RowDots<K> {
    #[inline(always)]
    unsafe fn sides<const N: usize>(&self, i: u32, first: u32) -> [[f64; 8]; N] {
        let rows = unsafe { self.row.compute::<N>(i, first) };
        let mut sums = [[0.0; 8]; N];
        each_side!(k < N: {
            unsafe { self.row.out().store(i, first + k as u32, &rows[k][0]) };
            sums[k] = dots(rows[k][1], rows[k][0], unsafe { self.w.load(i, first + k as u32) });
        });
        sums
    }
}
impl<K: Row + Stage<Staged: Row<Format = K::Format>>> Stage for RowDots<K> {
    type Staged = RowDots<K::Staged>;
    const BYTES: usize = K::BYTES;
    #[inline(always)]
    unsafe fn stage(&self, i: u32) -> Self::Staged {
        RowDots { row: unsafe { self.row.stage(i) }, w: self.w }
    }
    #[inline(always)]
    fn turned(staged: Self::Staged, first: u32) -> Self::Staged {
        RowDots { row: K::turned(staged.row, first), w: staged.w }
    }
}
