//! Checks that stored links come back within the accuracy of the format.
use super::*;
use crate::storage::{Fine18, Recon9H, Recon13H};
use std::vec;
use std::vec::Vec;

/// How far off a kept real number, and a result of arithmetic, may be at most.
trait Limits: NumberFormat {
    /// Of a number between −1 and 1.
    const KEPT: f64;
    /// Of one operation in registers.
    const UNIT: f64;
}
impl Limits for Double {
    const KEPT: f64 = 0.0;
    const UNIT: f64 = f64::EPSILON / 2.0;
}
impl Limits for Single {
    const KEPT: f64 = f32::EPSILON as f64 / 4.0;
    const UNIT: f64 = f32::EPSILON as f64 / 2.0;
}
impl Limits for Half {
    // Half a step of 2⁻¹⁵; a whole one above 1 − 2⁻¹⁵, where tan(φ/4) stands for half as much of φ as near 0.
    const KEPT: f64 = 1.0 / 65536.0;
    const UNIT: f64 = f32::EPSILON as f64 / 2.0;
}

type Matrix = Su3<f64>;

/// Matrices of U(3) with any phase, from numbers that look random: three rows made orthonormal.
struct Random(u64);
impl Random {
    fn uniform(&mut self) -> f64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 11) as f64 / (1u64 << 52) as f64 - 1.0
    }
    fn row(&mut self) -> [Complex<f64>; 3] {
        [(); 3].map(|()| complex(self.uniform(), self.uniform()))
    }
    fn u3(&mut self) -> Matrix {
        let mut rows: Vec<[Complex<f64>; 3]> = Vec::new();
        while rows.len() < 3 {
            let mut row = self.row();
            // Twice, so that rounding errors do not grow where little is left.
            for _ in 0..2 {
                for other in &rows {
                    let along = (0..3).fold(Complex::ZERO, |sum, k| other[k].conj_mul_add(row[k], sum));
                    row = [0, 1, 2].map(|k| row[k] - along * other[k]);
                }
                let norm = row.iter().map(|z| z.norm_sqr()).sum::<f64>().sqrt();
                row = row.map(|z| z.scale(1.0 / norm));
            }
            rows.push(row);
        }
        Su3([rows[0], rows[1], rows[2]])
    }
    /// With determinant e^{iφ}.
    fn with_phase(&mut self, phi: f64) -> Matrix {
        let u = self.u3();
        let det = u.determinant();
        let turn = complex(phi.cos(), phi.sin()) * det.conj();
        Su3([u.0[0], u.0[1], u.0[2].map(|z| turn * z)])
    }
}

/// Both links of a pair, from a lane and a direction of a tile that is full of others.
fn kept<P: NumberFormat, R: StoreLinks<P>>(forward: &Matrix, backward: &Matrix) -> [Matrix; 2] {
    let sites = P::Real::TILE;
    let mut memory = vec![Chunk([0x5a5a_5a5a; 4]); sites * R::SITE_BYTES / 16];
    let tile = Global(memory.as_mut_ptr().cast());
    let (lane, mu, mut other) = (5, 2, Random(7));
    let fill = |other: &mut Random, lane: usize, mu: usize| unsafe {
        R::store_pair(tile, lane, mu, &other.u3(), &other.u3());
    };
    let all = || (0..sites).flat_map(|lane| (0..4).map(move |mu| (lane, mu)));
    // Some are written before and some after.
    all().filter(|at| *at < (lane, mu)).for_each(|(lane, mu)| fill(&mut other, lane, mu));
    unsafe { R::store_pair(tile, lane, mu, forward, backward) };
    all().filter(|at| *at > (lane, mu)).for_each(|(lane, mu)| fill(&mut other, lane, mu));
    // No word was left out, so that no pair lies on another's.
    assert!(memory.iter().all(|chunk| chunk.0.iter().all(|word| *word != 0x5a5a_5a5a)), "{}", R::STORAGE);
    let pair = unsafe { R::load_pair(tile, lane, mu) };
    [R::forward(&pair).cast(), R::backward(&pair).cast()]
}
fn distance(u: &Matrix, v: &Matrix) -> f64 {
    let d = *u - *v;
    // Not `f64::max`, which would drop a NaN.
    d.0.iter().flatten().map(|z| z.norm_sqr().sqrt()).fold(0.0, |a, b| if a >= b { a } else { b })
}

/// Largest error of an element of a matrix of which all elements or two rows are kept, and a phase. An element of the third
/// row is the difference of two products: |δ(a_j b_k − a_k b_j)| ≤ √2 ε (|a_j| + |a_k| + |b_j| + |b_k|) ≤ 4 ε, and
/// |δφ| = 4 ε / (1 + tan²(φ/4)) ≤ 4 ε. Twice that, where all numbers are clipped at 1. Sixteen operations on the way, and
/// two errors of φ, one from the determinant.
fn of_rows<P: Limits>(_: &Matrix) -> f64 {
    16.0 * P::KEPT + 32.0 * P::UNIT
}
/// The same where a row and a column are kept. With n² = |a_2|² + |a_3|², in first order |δa_1| ≤ 2 ε n / |a_1| + 4 ε,
/// |δc_1| ≤ 3.5 ε n / |c_1| + 4 ε, and the others ≤ |δa_1| + |δc_1| / n + 8.3 ε / n + 4 ε.
fn of_row_and_column<P: Limits>(u: &Matrix) -> f64 {
    let size = |z: Complex<f64>| z.norm_sqr().sqrt();
    let [[a1, a2, a3], _, [c1, ..]] = u.0;
    let n = (a2.norm_sqr() + a3.norm_sqr()).sqrt();
    1.5 * (P::KEPT + 8.0 * P::UNIT) * (2.0 / size(a1) + 3.5 / size(c1) + 12.3 / n + 8.0)
}
/// Whether the first order is enough.
fn is_far_from_singular(u: &Matrix) -> bool {
    let [[a1, a2, a3], _, [c1, ..]] = u.0;
    a1.norm_sqr() > 0.0025 && c1.norm_sqr() > 0.0025 && a2.norm_sqr() + a3.norm_sqr() > 0.0025
}

/// Phases around the cut, at the points where the half-angle formulae change over, and in between.
fn phases() -> Vec<f64> {
    use core::f64::consts::PI;
    let near = [0.0, 1e-15, 1e-12, 1e-7, 1e-4, 1e-3].map(|d| PI - d);
    let some = [0.0, 1e-300, 1e-9, 1e-5, 0.1, 1.0, PI / 2.0, PI / 2.0 + 1e-9, PI / 3.0, 2.0, 3.0];
    near.into_iter().chain(some).flat_map(|phi| [phi, -phi]).collect()
}

fn round_trip<P: NumberFormat, R: StoreLinks<P>>(
    make: impl Fn(&mut Random, f64) -> Matrix,
    tolerance: fn(&Matrix) -> f64,
) {
    let (mut random, mut tried) = (Random(42), 0);
    let all: Vec<f64> = phases().into_iter().chain((-100..100).map(|k| f64::from(k) * 0.031)).collect();
    for phi in all {
        let (u, v) = (make(&mut random, phi), make(&mut random, -phi));
        if ![u, v].iter().all(is_far_from_singular) {
            continue;
        }
        tried += 1;
        for (kept, exact) in kept::<P, R>(&u, &v).iter().zip([u, v]) {
            let (off, tol) = (distance(kept, &exact), tolerance(&exact));
            assert!(off <= tol, "{} {}, φ = {phi}: {off:.2e} > {tol:.2e}", P::PRECISION, R::STORAGE);
        }
    }
    assert!(tried > 150);
}

#[test]
fn links_in_u3_come_back() {
    macro_rules! check {
        ($($precision:ident $recon:ident $tolerance:ident $limits:ident;)*) => {$(
            round_trip::<$precision, $recon>(Random::with_phase, $tolerance::<$limits>);
        )*};
    }
    check! {
        Double Recon18 of_rows Double;
        Single Recon18 of_rows Single;
        Half Recon18 of_rows Half;
        Double Recon13 of_rows Double;
        Single Recon13 of_rows Single;
        Half Recon13 of_rows Half;
        Single Recon13H of_rows Half;
        Double Recon9 of_row_and_column Double;
        Single Recon9 of_row_and_column Single;
        Half Recon9 of_row_and_column Half;
        Single Recon9H of_row_and_column Half;
    }
}

/// Checks links of 21 bits. Each part is off by at most half a step of 2⁻²⁰, and by a whole one at 1.
#[test]
fn links_of_21_bits_come_back() {
    round_trip::<Single, Fine18>(Random::with_phase, |_| 1.5 / f64::from(1 << 20));
    let steps = |x: f64| (x * f64::from(1 << 20)).round() / f64::from(1 << 20);
    let mut random = Random(11);
    for _ in 0..50 {
        let row = |random: &mut Random| random.row().map(|z| complex(steps(z.re), steps(z.im)));
        let mut matrix = || Su3([row(&mut random), row(&mut random), row(&mut random)]);
        let (u, v) = (matrix(), matrix());
        assert_eq!(kept::<Single, Fine18>(&u, &v), [u, v], "numbers that have a code");
    }
}

#[test]
fn links_in_su3_come_back() {
    let su3 = |random: &mut Random, _: f64| random.with_phase(0.0);
    macro_rules! check {
        ($($precision:ident $recon:ident $tolerance:ident;)*) => {$(
            round_trip::<$precision, $recon>(su3, $tolerance::<$precision>);
        )*};
    }
    check! {
        Double Recon12 of_rows;
        Single Recon12 of_rows;
        Half Recon12 of_rows;
        Double Recon13 of_rows;
        Single Recon13 of_rows;
        Half Recon13 of_rows;
        Double Recon8 of_row_and_column;
        Single Recon8 of_row_and_column;
        Half Recon8 of_row_and_column;
        Double Recon9 of_row_and_column;
        Single Recon9 of_row_and_column;
        Half Recon9 of_row_and_column;
    }
}

/// Matrices whose elements and determinants have no rounding errors: 1, −1, i and −i in one place of each row.
#[test]
fn permutations_come_back() {
    // Of a phase or two, which elementary functions make: each within 10⁻¹⁵, as their own test says.
    let exact_in_double = 2e-15;
    let (o, l, i) = (Complex::ZERO, Complex::ONE, Complex::ONE.times_i());
    let cyclic = |p, q, r| Su3([[o, p, o], [o, o, q], [r, o, o]]);
    let diagonal = |p, q, r| Su3([[p, o, o], [o, q, o], [o, o, r]]);
    for (third, det) in [(l, l), (-l, -l), (i, i), (-i, -i)] {
        let (regular, singular) = (cyclic(l, l, third), diagonal(l, l, third));
        assert_eq!((regular.determinant(), singular.determinant()), (det, det));
        assert!(!Recon8::is_singular(&regular) && Recon8::is_singular(&singular));
        for u in [regular, singular] {
            for (kept, exact) in kept::<Double, Recon13>(&u, &u.adjoint()).iter().zip([u, u.adjoint()]) {
                assert!(distance(kept, &exact) < exact_in_double);
            }
            for (kept, exact) in kept::<Single, Recon13>(&u, &u.adjoint()).iter().zip([u, u.adjoint()]) {
                assert!(distance(kept, &exact) < 8.0 * Single::UNIT);
            }
            // 1 is the largest code and a step of 2⁻¹⁵ short; −1 is not.
            for (kept, exact) in kept::<Half, Recon13>(&u, &u.adjoint()).iter().zip([u, u.adjoint()]) {
                assert!(distance(kept, &exact) <= 16.0 * Half::KEPT);
            }
        }
        for (kept, exact) in
            kept::<Double, Recon9>(&regular, &regular.adjoint()).iter().zip([regular, regular.adjoint()])
        {
            assert!(distance(kept, &exact) < exact_in_double);
        }
    }
}

/// What 8 and 9 reals cannot keep; |a_2|² + |a_3|² = 10⁻⁶ is the limit.
#[test]
fn singular_links_are_found() {
    let (mut random, o) = (Random(3), Complex::ZERO);
    for k in 0..200 {
        let angle = 1e-3 * (0.9 + 0.001 * k as f64);
        let (c, s) = (angle.cos(), angle.sin());
        // The first row (e^{iα} c, e^{iβ} s, 0), in U(3).
        let [alpha, beta, gamma] = [(); 3].map(|()| 3.0 * random.uniform());
        let e = |x: f64| complex(x.cos(), x.sin());
        let u = Su3([
            [e(alpha).scale(c), e(beta).scale(s), o],
            [e(gamma).scale(-s), e(gamma + beta - alpha).scale(c), o],
            [o, o, e(gamma)],
        ]);
        assert!(distance(&(u * u.adjoint()), &Su3::unit()) < 1e-15);
        assert_eq!(Recon8::is_singular(&u), s * s < 1e-6, "{k}");
        assert_eq!(Recon8::is_singular(&u.adjoint()), s * s < 1e-6, "{k}");
        // 13 reals keep them all.
        let [kept, _] = kept::<Double, Recon13>(&u, &u);
        assert!(distance(&kept, &u) < of_rows::<Double>(&u));
    }
}

#[test]
fn what_is_no_number_stays_so() {
    let mut u = Random(5).u3();
    u.0[2][1].re = f64::NAN;
    // The third row is not kept, but its determinant is.
    let [kept, other] = kept::<Single, Recon13>(&u, &Random(6).u3());
    assert!(kept.0[2].iter().all(|z| z.re.is_nan() && z.im.is_nan()));
    assert!(other.0.iter().flatten().all(|z| z.re.is_finite() && z.im.is_finite()));
}
