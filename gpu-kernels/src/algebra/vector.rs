//! Real numbers of several sites at once, in vector registers of a CPU.
//!
//! The types call vector instructions directly, because compilers keep loops over arrays of a kernel's size in memory.
use super::{Complex, Real, Scalar, complex};
use crate::Precision;
use crate::lattice::{Where, lanes::first_and_turn};
use crate::memory::{Access, Global};
use crate::per_rhs::{PerRhs, PerRhsNumber, Rounded};
use crate::storage::{Element, TILE};
use core::arch::x86_64::*;
use core::cmp::Ordering;
use core::ops::{Add, Mul, Neg, Sub};

/// Splits the place of a vector ([`place_in_tiles`](crate::storage::place_in_tiles)) into its first place in a tile and the
/// exchange of its lanes.
#[inline]
const fn place_and_turn(lane: usize) -> (usize, usize) {
    (lane % TILE, lane / TILE)
}

/// Implements an operator by one instruction.
macro_rules! operator {
    ($name:ident: $trait:ident::$function:ident by $instruction:ident) => {
        impl $trait for $name {
            type Output = Self;
            #[inline]
            fn $function(self, b: Self) -> Self {
                // SAFETY: as stated at the type.
                $name(unsafe { $instruction(self.0, b.0) })
            }
        }
    };
}

/// Defines a vector type from its numbers, its register and its instructions, the exchange of lanes included.
macro_rules! vector {
    ($name:ident: [$t:ident; $n:literal] in $register:ident, $add:ident $sub:ident $mul:ident $fma:ident $xor:ident $max:ident $sqrt:ident
        $div:ident $splat:ident $load:ident $store:ident,
        |$a:ident, $b:ident| $re_of:expr, $im_of:expr, |$re:ident, $im:ident| $joined:expr,
        |$lane:ident| $site:expr, |$x:ident, $turn:ident| $turned:expr, |$bits:ident, $other:ident| $blended:expr, $double:ident $doubles:ident: |$single:ident| $added:expr, |$half:ident| $widened:expr, |$sign:ident, $then:ident, $else:ident| $selected:expr) => {
        #[doc = concat!(stringify!($n), " numbers. Only kernels that are compiled for its instructions use it.")]
        #[derive(Clone, Copy, Debug)]
        #[repr(transparent)]
        pub struct $name($register);

        impl $name {
            #[inline]
            fn array(self) -> [$t; $n] {
                // SAFETY: as many numbers as the register has.
                unsafe { core::mem::transmute(self.0) }
            }
            /// Returns the numbers in double precision. A vector in single precision returns the sums of its two halves.
            #[inline]
            #[allow(unused_unsafe, reason = "those in double are there already")]
            fn doubles(self) -> $doubles {
                let $single = self.0;
                // SAFETY: as stated at the type.
                $doubles(unsafe { $added })
            }
            /// Returns the numbers of `other` for sites where `is` holds, and those of self for the others.
            #[inline]
            #[allow(unused_unsafe, reason = "some choose between registers, without an instruction of the type's")]
            fn blended(self, other: Self, is: Where) -> Self {
                let ($x, $other, $bits) = (self.0, other.0, is.bits());
                // SAFETY: as stated at the type.
                $name(unsafe { $blended })
            }
            #[inline]
            fn splat(x: $t) -> Self {
                // SAFETY: as stated at the type.
                $name(unsafe { $splat(x) })
            }
            /// Returns the address of the real and imaginary parts of complex number `k`; those of a site are adjacent.
            #[inline]
            unsafe fn number_at(tile: Global, lane: usize, k: usize) -> *mut $t {
                unsafe { tile.0.add((Self::TILE * k + lane) * Self::BYTES).cast() }
            }
        }
        impl PartialEq for $name {
            #[inline]
            fn eq(&self, other: &Self) -> bool {
                self.array() == other.array()
            }
        }
        impl PartialOrd for $name {
            #[inline]
            fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
                self.array().partial_cmp(&other.array())
            }
        }
        operator!($name: Add::add by $add);
        operator!($name: Sub::sub by $sub);
        operator!($name: Mul::mul by $mul);
        impl Neg for $name {
            type Output = Self;
            #[inline]
            fn neg(self) -> Self {
                // SAFETY: as stated at the type.
                $name(unsafe { $xor(self.0, $splat(-0.0)) })
            }
        }
        impl Real for $name {
            const LANES: usize = $n;
            type Double = $double;
            const ZERO: Self = $name(unsafe { core::mem::transmute::<[$t; $n], $register>([0.0; $n]) });
            const ONE: Self = $name(unsafe { core::mem::transmute::<[$t; $n], $register>([1.0; $n]) });
            #[inline]
            fn mul_add(self, b: Self, c: Self) -> Self {
                // SAFETY: as stated at the type.
                $name(unsafe { $fma(self.0, b.0, c.0) })
            }
            #[inline]
            fn from_f64(x: f64) -> Self {
                Self::splat(x as $t)
            }
            #[inline]
            fn to_f64(self) -> f64 {
                self.doubles().total()
            }
            #[inline(always)]
            fn sum([a, b, c, d]: [Self; 4]) -> f64 {
                ((a.doubles() + b.doubles()) + (c.doubles() + d.doubles())).total()
            }
            #[inline]
            fn cast<T: Real>(self) -> T {
                const { assert!(T::LANES == Self::LANES && size_of::<T>() == size_of::<Self>(), "kernels in lanes have one precision") };
                // SAFETY: it is the same type.
                unsafe { core::mem::transmute_copy(&self) }
            }
            #[inline]
            #[allow(unused_unsafe, reason = "those in double are there already")]
            fn part<T: Real>(self, part: usize) -> T {
                const {
                    let is_own = T::LANES == Self::LANES && size_of::<T>() == size_of::<Self>();
                    let is_double = T::LANES == $doubles::LANES && size_of::<T>() == size_of::<$doubles>();
                    assert!(is_own || is_double, "parts have the same precision, or are in double");
                }
                let ($x, $half) = (self.0, part);
                // SAFETY: as stated at the type; it is the same type.
                unsafe {
                    if const { T::LANES == Self::LANES } {
                        core::mem::transmute_copy(&self)
                    } else {
                        core::mem::transmute_copy(&$doubles($widened))
                    }
                }
            }
            #[inline]
            fn lane(self, lane: usize) -> f64 {
                self.array()[lane] as f64
            }
            #[inline]
            fn with_lane(self, lane: usize, x: f64) -> Self {
                let mut numbers = self.array();
                numbers[lane] = x as $t;
                // SAFETY: as many numbers as the register has.
                $name(unsafe { core::mem::transmute::<[$t; $n], $register>(numbers) })
            }
            #[inline]
            fn over(self, b: Self) -> Self {
                // SAFETY: as stated at the type.
                $name(unsafe { $div(self.0, b.0) })
            }
            #[inline]
            fn root(self) -> Self {
                // SAFETY: as stated at the type.
                $name(unsafe { $sqrt(self.0) })
            }
            #[inline]
            fn where_positive(self, x: Self, other: Self) -> Self {
                let ($sign, $then, $else) = (self.0, x.0, other.0);
                // SAFETY: as stated at the type.
                $name(unsafe { $selected })
            }
            #[inline]
            fn sqrt_or_zero(self) -> Self {
                // SAFETY: as stated at the type.
                $name(unsafe { $sqrt($max(self.0, $splat(0.0))) })
            }
            #[inline]
            fn reciprocal(self) -> Self {
                Self::ONE.over(self)
            }
            #[inline]
            fn or(self, other: Self, condition: u32) -> Self {
                if condition == 0 { self } else { other }
            }
            #[inline]
            fn black_box(self) -> Self {
                self
            }
            #[inline]
            fn settle<X>(x: &mut X) {
                core::hint::black_box(x);
            }
            #[inline]
            fn of(x: Scalar) -> Self {
                Self::splat($t::of(x))
            }
            #[inline]
            fn where_or(is: Where, x: Scalar, other: Scalar) -> Self {
                Self::of(other).blended(Self::of(x), is)
            }
            #[inline]
            fn times_where(self, is: Where, b: Self) -> Self {
                self.blended(self * b, is)
            }
        }
        impl Rounded for $name {
            #[inline]
            fn of_rhs(all: &PerRhs, rhs: u32) -> Self {
                Self::splat($t::of_rhs(all, rhs))
            }
            #[inline]
            fn number(of: &PerRhsNumber) -> Complex<Self> {
                let Complex { re, im } = $t::number(of);
                complex(Self::splat(re), Self::splat(im))
            }
        }
        impl Element for $name {
            const PRECISION: Precision = <$t as Element>::PRECISION;
            const BYTES: usize = <$t as Element>::BYTES;
            #[inline]
            fn site(i: u32, $lane: usize) -> u32 {
                let (first, turn) = first_and_turn(i);
                first + ($site as u32 ^ turn)
            }
            #[inline(always)]
            unsafe fn load(tile: Global, lane: usize, k: usize, access: Access) -> Complex<Self> {
                let z = unsafe { Self::straight(tile, lane, k, access) };
                if Self::is_turned(lane) { complex(z.re.turned(lane), z.im.turned(lane)) } else { z }
            }
            #[inline]
            unsafe fn straight(tile: Global, lane: usize, k: usize, _: Access) -> Complex<Self> {
                let (lane, _) = place_and_turn(lane);
                unsafe {
                    let from = Self::number_at(tile, lane, k);
                    let ($a, $b) = ($load(from), $load(from.add($n)));
                    complex($name($re_of), $name($im_of))
                }
            }
            #[inline]
            fn prefetch(tile: Global, lane: usize, k: usize) {
                let (lane, _) = place_and_turn(lane);
                let from = tile.0.wrapping_add((Self::TILE * k + lane) * Self::BYTES);
                // SAFETY: a prefetch has no effect on memory, whatever the address.
                unsafe { _mm_prefetch::<_MM_HINT_T0>(from.cast()) };
                if const { 2 * size_of::<Self>() > 64 } {
                    unsafe { _mm_prefetch::<_MM_HINT_T0>(from.wrapping_add(64).cast()) };
                }
            }
            #[inline]
            fn is_turned(lane: usize) -> bool {
                place_and_turn(lane).1 != 0
            }
            #[inline]
            fn turned(self, lane: usize) -> Self {
                let ($x, $turn) = (self.0, place_and_turn(lane).1);
                // SAFETY: as stated at the type.
                $name(unsafe { $turned })
            }
            #[inline(always)]
            unsafe fn store(tile: Global, lane: usize, k: usize, z: Complex<Self>) {
                let (lane, _) = place_and_turn(lane);
                let ($re, $im) = (z.re.0, z.im.0);
                unsafe {
                    let to = Self::number_at(tile, lane, k);
                    let (a, b) = $joined;
                    $store(to, a);
                    $store(to.add($n), b);
                }
            }
            #[inline]
            unsafe fn of_array(array: Global, k: usize) -> Complex<Self> {
                let Complex { re, im } = unsafe { $t::of_array(array, k) };
                complex(Self::splat(re), Self::splat(im))
            }
        }
    };
}
// Shuffles within 128 bits permute the sites of a register, always in the same way. The bits of `turn` are permuted
// like the bits of a site's position.
vector!(F32x16: [f32; 16] in __m512, _mm512_add_ps _mm512_sub_ps _mm512_mul_ps _mm512_fmadd_ps _mm512_xor_ps _mm512_max_ps _mm512_sqrt_ps
    _mm512_div_ps _mm512_set1_ps _mm512_loadu_ps _mm512_storeu_ps,
    |a, b| _mm512_shuffle_ps::<0b1000_1000>(a, b), _mm512_shuffle_ps::<0b1101_1101>(a, b),
    |re, im| (_mm512_unpacklo_ps(re, im), _mm512_unpackhi_ps(re, im)),
    |lane| lane / 4 * 2 + lane % 2 + lane / 2 % 2 * 8,
    |x, turn| {
        let turn = turn & 1 | (turn & 2) << 1 | (turn & 4) << 1 | turn >> 3 << 1;
        let places = _mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
        _mm512_permutexvar_ps(_mm512_xor_si512(places, _mm512_set1_epi32(turn as i32)), x)
    },
    |bits, other| {
        let places = _mm512_setr_epi32(
            1, 2, 0x100, 0x200, 4, 8, 0x400, 0x800, 0x10, 0x20, 0x1000, 0x2000, 0x40, 0x80, 0x4000, 0x8000,
        );
        _mm512_mask_blend_ps(_mm512_test_epi32_mask(_mm512_set1_epi32(bits as i32), places), x, other)
    },
    F64x8 F64x8: |x| _mm512_add_pd(_mm512_cvtps_pd(_mm512_castps512_ps256(x)), _mm512_cvtps_pd(_mm512_extractf32x8_ps::<1>(x))),
    |part| {
        // In a register, numbers of two consecutive sites are eight places apart in single precision, and four places
        // apart in double precision.
        let places = _mm512_setr_epi32(0, 8, 1, 9, 4, 12, 5, 13, 0, 0, 0, 0, 0, 0, 0, 0);
        let numbers = _mm512_permutexvar_ps(_mm512_add_epi32(places, _mm512_set1_epi32(2 * part as i32)), x);
        _mm512_cvtps_pd(_mm512_castps512_ps256(numbers))
    },
    |sign, then, other| _mm512_mask_blend_ps(_mm512_cmp_ps_mask::<_CMP_GT_OQ>(sign, _mm512_setzero_ps()), other, then)
);
vector!(F64x8: [f64; 8] in __m512d, _mm512_add_pd _mm512_sub_pd _mm512_mul_pd _mm512_fmadd_pd _mm512_xor_pd _mm512_max_pd _mm512_sqrt_pd
    _mm512_div_pd _mm512_set1_pd _mm512_loadu_pd _mm512_storeu_pd,
    |a, b| _mm512_unpacklo_pd(a, b), _mm512_unpackhi_pd(a, b),
    |re, im| (_mm512_unpacklo_pd(re, im), _mm512_unpackhi_pd(re, im)),
    |lane| lane / 2 + lane % 2 * 4,
    |x, turn| {
        let turn = (turn & 3) << 1 | turn >> 2;
        let places = _mm512_setr_epi64(0, 1, 2, 3, 4, 5, 6, 7);
        _mm512_permutexvar_pd(_mm512_xor_si512(places, _mm512_set1_epi64(turn as i64)), x)
    },
    |bits, other| {
        let places = _mm512_setr_epi64(1, 0x10, 2, 0x20, 4, 0x40, 8, 0x80);
        _mm512_mask_blend_pd(_mm512_test_epi64_mask(_mm512_set1_epi64(bits as i64), places), x, other)
    },
    F64x8 F64x8: |x| x,
    |_part| x,
    |sign, then, other| _mm512_mask_blend_pd(_mm512_cmp_pd_mask::<_CMP_GT_OQ>(sign, _mm512_setzero_pd()), other, then)
);
vector!(F32x8: [f32; 8] in __m256, _mm256_add_ps _mm256_sub_ps _mm256_mul_ps _mm256_fmadd_ps _mm256_xor_ps _mm256_max_ps _mm256_sqrt_ps
    _mm256_div_ps _mm256_set1_ps _mm256_loadu_ps _mm256_storeu_ps,
    |a, b| _mm256_shuffle_ps::<0b1000_1000>(a, b), _mm256_shuffle_ps::<0b1101_1101>(a, b),
    |re, im| (_mm256_unpacklo_ps(re, im), _mm256_unpackhi_ps(re, im)),
    |lane| lane / 4 * 2 + lane % 2 + lane / 2 % 2 * 4,
    |x, turn| {
        let turn = turn & 1 | (turn & 2) << 1 | turn >> 2 << 1;
        let places = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7);
        _mm256_permutevar8x32_ps(x, _mm256_xor_si256(places, _mm256_set1_epi32(turn as i32)))
    },
    |bits, other| {
        let places = _mm256_setr_epi32(1, 2, 0x10, 0x20, 4, 8, 0x40, 0x80);
        let found = _mm256_and_si256(_mm256_set1_epi32(bits as i32), places);
        _mm256_blendv_ps(x, other, _mm256_castsi256_ps(_mm256_cmpeq_epi32(found, places)))
    },
    F64x4 F64x4: |x| _mm256_add_pd(_mm256_cvtps_pd(_mm256_castps256_ps128(x)), _mm256_cvtps_pd(_mm256_extractf128_ps::<1>(x))),
    |part| {
        let places = _mm256_setr_epi32(0, 4, 1, 5, 0, 0, 0, 0);
        let numbers = _mm256_permutevar8x32_ps(x, _mm256_add_epi32(places, _mm256_set1_epi32(2 * part as i32)));
        _mm256_cvtps_pd(_mm256_castps256_ps128(numbers))
    },
    |sign, then, other| _mm256_blendv_ps(other, then, _mm256_cmp_ps::<_CMP_GT_OQ>(sign, _mm256_setzero_ps()))
);
vector!(F64x4: [f64; 4] in __m256d, _mm256_add_pd _mm256_sub_pd _mm256_mul_pd _mm256_fmadd_pd _mm256_xor_pd _mm256_max_pd _mm256_sqrt_pd
    _mm256_div_pd _mm256_set1_pd _mm256_loadu_pd _mm256_storeu_pd,
    |a, b| _mm256_unpacklo_pd(a, b), _mm256_unpackhi_pd(a, b),
    |re, im| (_mm256_unpacklo_pd(re, im), _mm256_unpackhi_pd(re, im)),
    |lane| lane / 2 + lane % 2 * 2,
    |x, turn| {
        let turn = (turn & 1) << 1 | turn >> 1;
        let places = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7);
        let places = _mm256_xor_si256(places, _mm256_set1_epi32(2 * turn as i32));
        _mm256_castps_pd(_mm256_permutevar8x32_ps(_mm256_castpd_ps(x), places))
    },
    |bits, other| {
        let places = _mm256_setr_epi64x(1, 4, 2, 8);
        let found = _mm256_and_si256(_mm256_set1_epi64x(bits as i64), places);
        _mm256_blendv_pd(x, other, _mm256_castsi256_pd(_mm256_cmpeq_epi64(found, places)))
    },
    F64x4 F64x4: |x| x,
    |_part| x,
    |sign, then, other| _mm256_blendv_pd(other, then, _mm256_cmp_pd::<_CMP_GT_OQ>(sign, _mm256_setzero_pd()))
);

/// Implements the sum of the numbers of a register, which adds its two halves until one number is left.
macro_rules! total {
    ($($name:ident)*) => {$(
        impl $name {
            #[inline]
            fn total(self) -> f64 {
                let (mut numbers, mut half) = (self.array(), Self::LANES / 2);
                while half > 0 {
                    let mut j = 0;
                    while j < half {
                        numbers[j] += numbers[j + half];
                        j += 1;
                    }
                    half /= 2;
                }
                numbers[0]
            }
        }
    )*};
}
total!(F64x8 F64x4);
