//! A row of an operator together with the sums that solvers need of it: the result is not read again.
use crate::Reduction;
use crate::algebra::Real;
use crate::field::Field;
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
    /// The result at site `i`, not yet written, and x there.
    ///
    /// # Safety
    /// As [`Kernel::site`](crate::Kernel::site).
    unsafe fn compute(&self, i: u32, rhs: u32) -> (Value<Self>, Value<Self>);
    /// As [`Kernel::place`](crate::Kernel::place).
    fn place(&self, i: u32) -> u32;
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
    #[inline(always)]
    fn place(&self, i: u32) -> u32 {
        self.row.place(i)
    }
    #[inline(always)]
    unsafe fn site(&self, i: u32, rhs: u32) -> [f64; 3] {
        unsafe {
            let (out, _) = self.row.compute(i, rhs);
            self.row.out().store(i, rhs, &out);
            dot(out, self.w.load(i, rhs))
        }
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
    #[inline(always)]
    fn place(&self, i: u32) -> u32 {
        self.row.place(i)
    }
    #[inline(always)]
    unsafe fn site(&self, i: u32, rhs: u32) -> [f64; 8] {
        unsafe {
            let (y, x) = self.row.compute(i, rhs);
            self.row.out().store(i, rhs, &y);
            dots(x, y, self.w.load(i, rhs))
        }
    }
}
