//! Subgroups SU(2) of SU(3), as Cabibbo and Marinari (1982) use them: matrices embedded in rows (0, 1), (0, 2) and (1, 2).
use super::elementary::sqrt;
use super::{Real, Su3, complex};

/// Quaternion that stands for the matrix a_0 + i a·σ, which is in SU(2) if |a| = 1:
///
/// ```text
/// ⎛ a_0 + i a_3   a_2 + i a_1⎞
/// ⎝−a_2 + i a_1   a_0 − i a_3⎠
/// ```
pub type Quaternion<T = f64> = [T; 4];

/// 1
pub const ONE: Quaternion = [1.0, 0.0, 0.0, 0.0];

/// Returns the matrix product a b.
#[inline(always)]
pub fn product<T: Real>(a: Quaternion<T>, b: Quaternion<T>) -> Quaternion<T> {
    // (a_0 b_0 − a·b) + i (a_0 b + b_0 a − a × b)·σ
    [
        dot(a, [b[0], -b[1], -b[2], -b[3]]),
        dot(a, [b[1], b[0], -b[3], b[2]]),
        dot(a, [b[2], b[3], b[0], -b[1]]),
        dot(a, [b[3], -b[2], b[1], b[0]]),
    ]
}

/// Returns the scalar product Σ_k a_k b_k.
#[inline(always)]
pub fn dot<T: Real>(a: Quaternion<T>, b: Quaternion<T>) -> T {
    a[0].mul_add(b[0], a[1].mul_add(b[1], a[2].mul_add(b[2], a[3] * b[3])))
}

/// Returns w, twice the projection of the block in rows and columns I and J of a matrix onto multiples of SU(2)
/// matrices.
#[inline(always)]
pub fn block<T: Real, const I: usize, const J: usize>(m: &Su3<T>) -> Quaternion<T> {
    let m = &m.0;
    [m[I][I].re + m[J][J].re, m[I][J].im + m[J][I].im, m[I][J].re - m[J][I].re, m[I][I].im - m[J][J].im]
}

/// Multiplies rows I and J of `m` from the left by the SU(2) matrix `a`.
#[inline(always)]
pub fn rotate<T: Real, const I: usize, const J: usize>(m: &mut Su3<T>, a: Quaternion<T>) {
    let (p, q) = (complex(a[0], a[3]), complex(a[2], a[1]));
    let mut k = 0;
    while k < 3 {
        let (upper, lower) = (m.0[I][k], m.0[J][k]);
        m.0[I][k] = q.mul_add(lower, p * upper);
        m.0[J][k] = p.conj_mul_add(lower, -(q.conj() * upper));
        k += 1;
    }
}

/// Returns ŵ†, the matrix a in SU(2) with the largest Re tr (a w), or 1 for w = 0.
#[inline(always)]
pub fn largest_trace(w: Quaternion) -> Quaternion {
    let square = dot(w, w);
    if square > 0.0 {
        let inverse = 1.0 / sqrt(square);
        [w[0] * inverse, -w[1] * inverse, -w[2] * inverse, -w[3] * inverse]
    } else {
        ONE
    }
}

/// Multiplies both matrices from the left by `$change`, for one subgroup after the other; `$change` may use `$w`, the current
/// block of `$m` in that subgroup.
///
/// This is a macro, because a closure that is called three times may not be inlined into a kernel.
macro_rules! each_subgroup {
    ($u:ident, $m:ident, $w:ident => $change:expr) => {
        each_subgroup!(@one $u, $m, 0, 1, $w => $change);
        each_subgroup!(@one $u, $m, 0, 2, $w => $change);
        each_subgroup!(@one $u, $m, 1, 2, $w => $change);
    };
    (@one $u:ident, $m:ident, $i:literal, $j:literal, $w:ident => $change:expr) => {
        let $w = $crate::algebra::su2::block::<_, $i, $j>(&$m);
        let a = $change;
        $crate::algebra::su2::rotate::<_, $i, $j>(&mut $u, a);
        $crate::algebra::su2::rotate::<_, $i, $j>(&mut $m, a);
    };
}
pub(crate) use each_subgroup;
