//! Numbers that differ between right-hand sides, among the arguments of a kernel.
use crate::algebra::{Complex, Real, complex};

/// Most right-hand sides of a launch with such numbers. Arguments may take 4096 bytes; four complex numbers in double
/// precision for each side, the most there are, take 1024.
pub const MOST_SIDES: usize = 16;

/// A number for each right-hand side of a launch.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct PerSide<T>([T; MOST_SIDES]);

/// Real or complex.
pub trait Number: Copy {
    /// As [`Real::or`].
    fn or(self, other: Self, condition: u32) -> Self;
}
impl<T: Real> Number for T {
    #[inline(always)]
    fn or(self, other: Self, condition: u32) -> Self {
        Real::or(self, other, condition)
    }
}
impl<T: Real> Number for Complex<T> {
    #[inline(always)]
    fn or(self, other: Self, condition: u32) -> Self {
        complex(Real::or(self.re, other.re, condition), Real::or(self.im, other.im, condition))
    }
}

impl<T: Number> PerSide<T> {
    /// Number `number(rhs)` for each; those of sides that are not launched are never used.
    pub fn new(number: impl FnMut(usize) -> T) -> Self {
        PerSide(core::array::from_fn(number))
    }
    /// The number of right-hand side `rhs`, one of the first [`MOST_SIDES`].
    #[inline(always)]
    pub fn at(&self, rhs: u32) -> T {
        // Arguments that are indexed at run time would be copied to local memory.
        #[cfg(target_arch = "nvptx64")]
        return self.chosen(rhs);
        #[cfg(not(target_arch = "nvptx64"))]
        return self.0[rhs as usize % MOST_SIDES];
    }
    /// The same by choices between two numbers: one for each bit of `rhs` lies on the way to the result.
    #[cfg(any(test, target_arch = "nvptx64"))]
    #[inline(always)]
    fn chosen(&self, rhs: u32) -> T {
        let [a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p] = self.0;
        macro_rules! choose {
            ($bit:literal: $($x:ident $y:ident)*) => {($($x.or($y, rhs & $bit),)*)};
        }
        let (a, c, e, g, i, k, m, o) = choose!(1: a b c d e f g h i j k l m n o p);
        let (a, e, i, m) = choose!(2: a c e g i k m o);
        let (a, i) = choose!(4: a e i m);
        a.or(i, rhs & 8)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn choices_lead_to_the_number() {
        let numbers = PerSide::new(|rhs| complex(100.0 + rhs as f64, -(rhs as f64)));
        for rhs in 0..MOST_SIDES {
            let expected = complex(100.0 + rhs as f64, -(rhs as f64));
            assert_eq!(numbers.at(rhs as u32), expected);
            assert_eq!(numbers.chosen(rhs as u32), expected);
        }
    }
}
