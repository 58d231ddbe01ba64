//! Arguments of a kernel that are numbers for each right-hand side.
use crate::algebra::{Complex, Real, complex};

/// Maximum number of right-hand sides in a launch whose arguments include numbers for each right-hand side. The
/// arguments of a kernel may take 4096 bytes. Four complex numbers for each right-hand side, the most that a kernel
/// has, take 1632 bytes.
pub const MAX_RHS_WITH_NUMBERS: usize = 16;

/// A real number for each right-hand side of a launch, rounded to each precision before the launch.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct PerRhs {
    f64: [f64; MAX_RHS_WITH_NUMBERS],
    f32: [f32; MAX_RHS_WITH_NUMBERS],
}

/// A complex number for each right-hand side of a launch.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct ComplexPerRhs {
    /// Number of the first right-hand side, apart from the others. Launches with one right-hand side are short, and in each
    /// launch every multiprocessor fetches the arguments that it reads.
    first: PerRhsNumber,
    re: PerRhs,
    im: PerRhs,
}

/// A complex number, rounded to each precision.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct PerRhsNumber {
    f64: Complex<f64>,
    f32: Complex<f32>,
}

/// Real number types in which a kernel can read the numbers of [`PerRhs`].
pub trait Rounded: Real {
    /// Returns the number of one right-hand side in this precision.
    fn of_rhs(all: &PerRhs, rhs: u32) -> Self;
    /// Returns one complex number in this precision.
    fn number(of: &PerRhsNumber) -> Complex<Self>;
}
/// Precisions in which [`PerRhs`] stores numbers.
trait Kept: Real {
    fn numbers(all: &PerRhs) -> &[Self; MAX_RHS_WITH_NUMBERS];
}
impl Rounded for f64 {
    #[inline(always)]
    fn number(of: &PerRhsNumber) -> Complex<f64> {
        of.f64
    }
    #[inline(always)]
    fn of_rhs(all: &PerRhs, rhs: u32) -> f64 {
        all.kept(rhs)
    }
}
impl Kept for f64 {
    #[inline(always)]
    fn numbers(all: &PerRhs) -> &[f64; MAX_RHS_WITH_NUMBERS] {
        &all.f64
    }
}
impl Rounded for f32 {
    #[inline(always)]
    fn number(of: &PerRhsNumber) -> Complex<f32> {
        of.f32
    }
    #[inline(always)]
    fn of_rhs(all: &PerRhs, rhs: u32) -> f32 {
        all.kept(rhs)
    }
}
impl Kept for f32 {
    #[inline(always)]
    fn numbers(all: &PerRhs) -> &[f32; MAX_RHS_WITH_NUMBERS] {
        &all.f32
    }
}

impl PerRhs {
    /// Creates the argument with the value `number(rhs)` for each right-hand side. Values for right-hand sides that are
    /// not launched are never used.
    pub fn new(number: impl FnMut(usize) -> f64) -> Self {
        let f64: [f64; MAX_RHS_WITH_NUMBERS] = core::array::from_fn(number);
        PerRhs { f64, f32: f64.map(|x| x as f32) }
    }
    /// Returns the number for right-hand side `rhs`, which must be below [`MAX_RHS_WITH_NUMBERS`].
    #[inline(always)]
    pub fn at<T: Rounded>(&self, rhs: u32) -> T {
        T::of_rhs(self, rhs)
    }
    #[inline(always)]
    fn kept<T: Kept>(&self, rhs: u32) -> T {
        // Code for GPUs uses no index, because a GPU would copy arguments that are indexed at run time to local memory.
        #[cfg(target_arch = "nvptx64")]
        return self.chosen(rhs);
        #[cfg(not(target_arch = "nvptx64"))]
        return T::numbers(self)[rhs as usize % MAX_RHS_WITH_NUMBERS];
    }
    /// Returns the number of right-hand side `rhs` by a binary tree of selections, one level for each bit of `rhs`.
    #[cfg(any(test, target_arch = "nvptx64"))]
    #[inline(always)]
    fn chosen<T: Kept>(&self, rhs: u32) -> T {
        let [a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p] = *T::numbers(self);
        macro_rules! choose {
            ($bit:literal: $($x:ident $y:ident)*) => {($($x.or($y, rhs & $bit),)*)};
        }
        let (a, c, e, g, i, k, m, o) = choose!(1: a b c d e f g h i j k l m n o p);
        let (a, e, i, m) = choose!(2: a c e g i k m o);
        let (a, i) = choose!(4: a e i m);
        a.or(i, rhs & 8)
    }
}

impl ComplexPerRhs {
    /// Creates the argument with the value `number(rhs)` for each right-hand side. Values for right-hand sides that are
    /// not launched are never used.
    pub fn new(mut number: impl FnMut(usize) -> Complex<f64>) -> Self {
        let all: [Complex<f64>; MAX_RHS_WITH_NUMBERS] = core::array::from_fn(&mut number);
        let [first, ..] = all;
        ComplexPerRhs {
            first: PerRhsNumber { f64: first, f32: complex(first.re as f32, first.im as f32) },
            re: PerRhs::new(|k| all[k].re),
            im: PerRhs::new(|k| all[k].im),
        }
    }
    /// Returns the number for right-hand side `rhs`, which must be below [`MAX_RHS_WITH_NUMBERS`].
    #[inline(always)]
    pub fn at<T: Rounded>(&self, rhs: u32) -> Complex<T> {
        if rhs == 0 { T::number(&self.first) } else { complex(self.re.at(rhs), self.im.at(rhs)) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn choices_lead_to_the_number() {
        let numbers = ComplexPerRhs::new(|rhs| complex(100.1 + rhs as f64, -(rhs as f64)));
        for rhs in 0..MAX_RHS_WITH_NUMBERS {
            let expected = complex(100.1 + rhs as f64, -(rhs as f64));
            assert_eq!(numbers.at::<f64>(rhs as u32), expected);
            assert_eq!(numbers.at::<f32>(rhs as u32), complex(expected.re as f32, expected.im as f32));
            assert_eq!(numbers.re.chosen::<f64>(rhs as u32), expected.re);
            assert_eq!(numbers.re.chosen::<f32>(rhs as u32), expected.re as f32);
        }
    }
}
