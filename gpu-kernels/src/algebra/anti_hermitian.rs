//! The algebra of SU(3): traceless anti-Hermitian matrices, in which momenta and forces live.
use super::{Complex, Real, Su3, complex};

/// A traceless anti-Hermitian 3×3 matrix.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct AntiHermitian<T> {
    /// Imaginary parts of the first two elements of the diagonal. The third follows, because the trace is zero.
    pub diagonal: [T; 2],
    /// Elements (0, 1), (0, 2) and (1, 2) of the matrix. They determine the elements below the diagonal.
    pub upper: [Complex<T>; 3],
}

impl<T: Real> AntiHermitian<T> {
    /// 0
    pub const ZERO: Self = AntiHermitian { diagonal: [T::ZERO; 2], upper: [Complex::ZERO; 3] };
    /// Returns the matrix P = i Σ_a r_a λ_a / √2 with the Gell-Mann matrices λ_a. Its norm is Σ_jk |P_jk|² = Σ_a r_a².
    #[inline(always)]
    pub fn from_components(r: [T; 8]) -> Self {
        let (half, sixth) = (T::from_f64(core::f64::consts::FRAC_1_SQRT_2), T::from_f64(0.408_248_290_463_863));
        let [r1, r2, r3, r4, r5, r6, r7, r8] = r;
        let (a, b) = (half * r3, sixth * r8);
        let element = |odd: T, even: T| complex(half * even, half * odd);
        AntiHermitian { diagonal: [b + a, b - a], upper: [element(r1, r2), element(r4, r5), element(r6, r7)] }
    }
    /// Returns the traceless anti-Hermitian part of a matrix X: (X − X†)/2 minus a third of its trace times the unit
    /// matrix.
    #[inline(always)]
    pub fn part_of(x: Su3<T>) -> Self {
        let x = x.0;
        let (half, third) = (T::from_f64(0.5), T::from_f64(1.0 / 3.0));
        let mean = third * (x[0][0].im + x[1][1].im + x[2][2].im);
        macro_rules! element {
            ($j:literal, $k:literal) => {
                (x[$j][$k] - x[$k][$j].conj()).scale(half)
            };
        }
        AntiHermitian {
            diagonal: [x[0][0].im - mean, x[1][1].im - mean],
            upper: [element!(0, 1), element!(0, 2), element!(1, 2)],
        }
    }
    /// Returns the matrix with all nine elements.
    #[inline(always)]
    pub fn matrix(self) -> Su3<T> {
        let ([d, e], [a, b, c]) = (self.diagonal, self.upper);
        let i = |x: T| complex(T::ZERO, x);
        Su3([[i(d), a, b], [-a.conj(), i(e), c], [-b.conj(), -c.conj(), i(-d - e)]])
    }
    /// Returns self + b · other.
    #[inline(always)]
    pub fn add_scaled(self, b: T, other: Self) -> Self {
        let ([d, e], [f, g]) = (self.diagonal, other.diagonal);
        let ([p, q, r], [u, v, w]) = (self.upper, other.upper);
        macro_rules! add {
            ($z:ident, $x:ident) => {
                complex(b.mul_add($x.re, $z.re), b.mul_add($x.im, $z.im))
            };
        }
        AntiHermitian { diagonal: [b.mul_add(f, d), b.mul_add(g, e)], upper: [add!(p, u), add!(q, v), add!(r, w)] }
    }
    /// Returns b · self.
    #[inline(always)]
    pub fn scale(self, b: T) -> Self {
        let ([d, e], [p, q, r]) = (self.diagonal, self.upper);
        AntiHermitian { diagonal: [b * d, b * e], upper: [p.scale(b), q.scale(b), r.scale(b)] }
    }
    /// Returns Σ_jk |P_jk|² = −tr P² for P = self.
    #[inline(always)]
    pub fn norm2(self) -> T {
        let ([d, e], [p, q, r]) = (self.diagonal, self.upper);
        let (f, upper) = (d + e, p.norm_sqr() + q.norm_sqr() + r.norm_sqr());
        d.mul_add(d, e.mul_add(e, f.mul_add(f, upper + upper)))
    }
    /// Returns Σ_jk P*_jk Q_jk = −tr P Q for P = self and Q = other.
    #[inline(always)]
    pub fn dot(self, other: Self) -> T {
        let ([d, e], [f, g]) = (self.diagonal, other.diagonal);
        let ([p, q, r], [u, v, w]) = (self.upper, other.upper);
        macro_rules! real {
            ($a:ident, $b:ident) => {
                $a.re.mul_add($b.re, $a.im * $b.im)
            };
        }
        let upper = real!(p, u) + real!(q, v) + real!(r, w);
        d.mul_add(f, e.mul_add(g, (d + e).mul_add(f + g, upper + upper)))
    }
    /// Converts every element to another real type, rounded if necessary.
    #[inline(always)]
    pub fn cast<U: Real>(self) -> AntiHermitian<U> {
        let ([d, e], [p, q, r]) = (self.diagonal, self.upper);
        AntiHermitian { diagonal: [d.cast(), e.cast()], upper: [p.cast(), q.cast(), r.cast()] }
    }
    /// Applies [`Real::part`] to every element.
    #[inline(always)]
    pub fn part<U: Real>(self, part: usize) -> AntiHermitian<U> {
        let ([d, e], [p, q, r]) = (self.diagonal, self.upper);
        AntiHermitian { diagonal: [d.part(part), e.part(part)], upper: [p.part(part), q.part(part), r.part(part)] }
    }
    /// Returns exp (self), computed from 24 terms of the power series. The result is accurate to rounding for norms up
    /// to 3; the steps of an integrator have smaller norms.
    ///
    /// By Cayley and Hamilton X³ = ½ tr X² · X + det X, so that two numbers determine all powers of X above the second.
    #[inline(always)]
    pub fn exp(self) -> Su3<T> {
        let x = self.matrix();
        let t = T::from_f64(-0.5) * self.norm2();
        // The determinant of an anti-Hermitian 3×3 matrix is imaginary.
        let d = x.determinant().im;
        // Computes the coefficients p, q and r of 1, X and X² from the series in Horner's form, 1 + X/1 (1 + X/2 (1 + …)).
        let (mut p, mut q, mut r) = (complex(T::ONE, T::ZERO), Complex::<T>::ZERO, Complex::<T>::ZERO);
        macro_rules! terms {
            ($($k:literal)*) => {$({
                let inverse = T::from_f64(1.0 / $k as f64);
                let (dr, tr) = (r.times_i().scale(d), r.scale(t));
                let one = complex(inverse.mul_add(dr.re, T::ONE), inverse * dr.im);
                (p, q, r) = (one, (p + tr).scale(inverse), q.scale(inverse));
            })*};
        }
        terms!(24 23 22 21 20 19 18 17 16 15 14 13 12 11 10 9 8 7 6 5 4 3 2 1);
        let square = x * x;
        Su3::unit().map(|z| z * p) + x.map(|z| z * q) + square.map(|z| z * r)
    }
    /// Returns exp X and Λ for X = self. Λ is the traceless anti-Hermitian matrix with Re tr (B d exp X) = Re tr (Λ dX) for
    /// every traceless anti-Hermitian dX.
    ///
    /// exp X = p + q X + r X², where p, q and r are functions of t = ½ tr X² and D = det X with dt = tr (X dX) and dD = tr (X²
    /// dX). The derivative is therefore b_1 X + b_2 X² + q B + r (X B + B X), with b_1 = tr (B (p_t + q_t X + r_t X²)) and b_2
    /// = tr (B (p_D + q_D X + r_D X²)) (Morningstar and Peardon 2004, where Q = −iX, f_0 = p, f_1 = iq, f_2 = −r and their Λ is
    /// i times this one). p, q, r and their derivatives are those of the series of [`exp`](Self::exp), polynomials of t and D:
    /// nothing is divided by differences of eigenvalues, so that equal ones, and 0, need no formulas of their own.
    #[inline(always)]
    pub fn exp_and_derivative(self, b: Su3<T>) -> (Su3<T>, Self) {
        let x = self.matrix();
        let t = T::from_f64(-0.5) * self.norm2();
        let d = x.determinant().im;
        let zero = Complex::<T>::ZERO;
        let (mut p, mut q, mut r) = (complex(T::ONE, T::ZERO), zero, zero);
        let (mut pt, mut qt, mut rt) = (zero, zero, zero);
        let (mut pd, mut qd, mut rd) = (zero, zero, zero);
        macro_rules! terms {
            ($($k:literal)*) => {$({
                let inverse = T::from_f64(1.0 / $k as f64);
                (pd, qd, rd) =
                    ((r + rd.times_i().scale(d)).scale(inverse), rd.scale_add(t, pd).scale(inverse), qd.scale(inverse));
                (pt, qt, rt) =
                    (rt.times_i().scale(inverse * d), rt.scale_add(t, pt + r).scale(inverse), qt.scale(inverse));
                let (dr, tr) = (r.times_i().scale(d), r.scale(t));
                let one = complex(inverse.mul_add(dr.re, T::ONE), inverse * dr.im);
                (p, q, r) = (one, (p + tr).scale(inverse), q.scale(inverse));
            })*};
        }
        terms!(24 23 22 21 20 19 18 17 16 15 14 13 12 11 10 9 8 7 6 5 4 3 2 1);
        let (xb, square) = (x * b, x * x);
        let traces = [b.trace(), xb.trace(), trace_of_product(&x, &xb)];
        let b1 = traces[2].mul_add(rt, traces[1].mul_add(qt, traces[0] * pt)).re;
        let b2 = traces[2].mul_add(rd, traces[1].mul_add(qd, traces[0] * pd)).im;
        // X² is Hermitian, so only the part i Im b_2 X² of b_2 X² is anti-Hermitian.
        let sum = b.map(|z| z * q) + (xb + b * x).map(|z| z * r) + square.map(|z| z.times_i().scale(b2));
        let exp = Su3::unit().map(|z| z * p) + x.map(|z| z * q) + square.map(|z| z * r);
        (exp, Self::part_of(sum).add_scaled(b1, self))
    }
}

/// tr (A B)
#[inline(always)]
fn trace_of_product<T: Real>(a: &Su3<T>, b: &Su3<T>) -> Complex<T> {
    let (a, b) = (a.0, b.0);
    macro_rules! add {
        ($sum:expr, $($j:literal)*) => {{
            let mut sum = $sum;
            $(sum = a[$j][2].mul_add(b[2][$j], a[$j][1].mul_add(b[1][$j], a[$j][0].mul_add(b[0][$j], sum)));)*
            sum
        }};
    }
    add!(Complex::ZERO, 0 1 2)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample(k: u64, size: f64) -> AntiHermitian<f64> {
        let component = |a: u64| size * ((k * 8 + a) as f64 * 0.754_877_666).sin();
        AntiHermitian::from_components([0, 1, 2, 3, 4, 5, 6, 7].map(component))
    }
    fn distance(a: Su3<f64>, b: Su3<f64>) -> f64 {
        let off = (a - b).0;
        off.iter().flatten().map(|z| z.norm_sqr()).sum::<f64>().sqrt()
    }

    #[test]
    fn components_have_their_norm() {
        for k in 0..20 {
            let r = [0, 1, 2, 3, 4, 5, 6, 7].map(|a| ((k * 8 + a) as f64).cos());
            let p = AntiHermitian::from_components(r);
            let (norm2, m) = (r.iter().map(|x| x * x).sum::<f64>(), p.matrix());
            assert!((p.norm2() - norm2).abs() < 1e-14 * norm2);
            assert!((m.0.iter().flatten().map(|z| z.norm_sqr()).sum::<f64>() - norm2).abs() < 1e-14 * norm2);
            assert!(distance(m.adjoint(), m.scale(-1.0)) < 1e-15);
            assert!(m.re_trace().abs() + (m.0[0][0].im + m.0[1][1].im + m.0[2][2].im).abs() < 1e-15);
            assert!(distance(AntiHermitian::part_of(m).matrix(), m) < 1e-15);
            let (other, n) = (sample(k, 0.7), sample(k, 0.7).matrix());
            assert!((p.dot(other) + (m * n).re_trace()).abs() < 1e-14 && (p.dot(p) - p.norm2()).abs() < 1e-14);
            // The part of anything else is at right angles to what is left of it.
            let x = m * p.exp() + Su3::unit().scale(0.3);
            let part = AntiHermitian::part_of(x).matrix();
            assert!((part.adjoint() * (x - part)).re_trace().abs() < 1e-13);
        }
    }

    #[test]
    fn exponentials() {
        for (k, size) in [(1, 1e-3), (2, 0.1), (3, 0.5), (4, 1.0), (5, 1.5)] {
            let p = sample(k, size);
            let (x, mut term, mut sum) = (p.matrix(), Su3::unit(), Su3::unit());
            for n in 1..60 {
                term = (term * x).scale(1.0 / n as f64);
                sum = sum + term;
            }
            assert!(distance(p.exp(), sum) < 4e-15, "{size}: {:e}", distance(p.exp(), sum));
            assert!(distance(p.exp() * p.scale(-1.0).exp(), Su3::unit()) < 4e-15);
            assert!((p.exp().determinant() - Complex::ONE).norm_sqr().sqrt() < 1e-14);
            let single = p.cast::<f32>().exp().cast::<f64>();
            assert!(distance(single, sum) < 3e-6);
        }
        assert_eq!(AntiHermitian::<f64>::ZERO.exp(), Su3::unit());
    }

    /// Σ_n Σ_k X^k B X^(n−1−k) / n!
    fn derivative(x: Su3<f64>, b: Su3<f64>) -> Su3<f64> {
        // With Y_n = X^n / n! the terms T_n of order n are T_n = (X T_(n−1) + B Y_(n−1)) / n.
        let (mut power, mut term, mut sum) = (Su3::unit(), Su3::ZERO, Su3::ZERO);
        for n in 1..60 {
            let inverse = 1.0 / n as f64;
            term = (x * term + b * power).scale(inverse);
            power = (power * x).scale(inverse);
            sum = sum + term;
        }
        sum
    }

    #[test]
    fn derivatives_of_exponentials() {
        let diagonal = |d: f64, e: f64| AntiHermitian { diagonal: [d, e], ..AntiHermitian::ZERO };
        let turn = sample(9, 0.8).exp();
        let turned = |p: AntiHermitian<f64>| AntiHermitian::part_of(turn * p.matrix() * turn.adjoint());
        // Nothing, two equal eigenvalues, two that nearly are, one that is 0, and others.
        let mut samples = std::vec![AntiHermitian::ZERO, diagonal(1e-9, 0.0), diagonal(0.7, -0.7)];
        for off in [0.0, 1e-15, 1e-12, 1e-9, 1e-6, 1e-3] {
            samples.extend([
                diagonal(0.6 + off, 0.6),
                turned(diagonal(0.6 + off, 0.6)),
                turned(diagonal(-1.2, 0.6 + off)),
            ]);
            samples.push(sample(3, off));
        }
        samples.extend([0.1, 0.5, 1.0, 1.4].map(|size| sample(5, size)));
        for (k, p) in samples.into_iter().enumerate() {
            let b = sample(20 + k as u64, 1.0).matrix() * sample(50 + k as u64, 0.9).exp() + Su3::unit().scale(0.4);
            let (exp, lambda) = p.exp_and_derivative(b);
            let expected = AntiHermitian::part_of(derivative(p.matrix(), b));
            let off = distance(lambda.matrix(), expected.matrix());
            assert_eq!(exp, p.exp());
            assert!(off < 2e-14, "{k}: {off:e}");
            let (exp, lambda) = p.cast::<f32>().exp_and_derivative(b.cast());
            assert!(distance(exp.cast(), p.exp()) < 3e-6);
            let off = distance(lambda.cast::<f64>().matrix(), expected.matrix());
            assert!(off < 6e-6, "{k}: {off:e}");
        }
        // The purpose of the derivative: the change of Re tr (B exp X) with X.
        let (p, q, h) = (sample(1, 0.7), sample(2, 1.0), 1e-4);
        let b = sample(3, 1.0).exp().map(|z| z * complex(0.3, -1.1));
        let value = |by: f64| (b * p.add_scaled(by, q).exp()).re_trace();
        let slope = (8.0 * (value(h) - value(-h)) - (value(2.0 * h) - value(-2.0 * h))) / (12.0 * h);
        let (_, lambda) = p.exp_and_derivative(b);
        assert!((slope + lambda.dot(q)).abs() < 1e-11, "{slope} {}", -lambda.dot(q));
    }
}
