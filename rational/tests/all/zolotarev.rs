//! p = ½ in closed form (Zolotarev 1877), by formulas and methods that the crate does not use: integrals by the
//! trapezoidal rule, sn by Landen's transformation, levels by theta functions of the nome.
//!
//! With N = 2n + 1, κ² = a/b and c_l = sn²/cn²(l K′/N; κ′), the best approximation of x^{−1/2} of order (n, n) on [a, b]
//! has its zeros at −a c_{2l} and its poles at −a c_{2l−1} (see e.g. Chiu, Hsieh, Huang, Huang, Phys. Rev. D 66 (2002)
//! 114502).

use rational::{Fraction, Interval, Power, approximate};
use std::f64::consts::PI;

/// K(k) for a complementary modulus `other` = √(1 − k²): trapezoidal rule, which converges as exp(−2 · points · other)
/// on a periodic function.
fn integral(other: f64) -> f64 {
    let points = (25.0 / other).ceil().max(64.0);
    // 1 − k² cos²: with the peak at angle 0, where angles are exact.
    let value = |i: usize| {
        let (sin, cos) = (0.5 * PI * (i as f64 + 0.5) / points).sin_cos();
        1.0 / (sin * sin + other * other * cos * cos).sqrt()
    };
    // Up to 10⁶ terms: Kahan's sum, so that rounding stays that of one.
    let (sum, _) = (0..points as usize).map(value).fold((0.0, 0.0), |(sum, lost): (f64, f64), term| {
        let term = term - lost;
        let next = sum + term;
        (next, (next - sum) - term)
    });
    0.5 * PI / points * sum
}

/// sn²/cn²(u; √(1 − k²)) = −sn²(iu; k), by Landen's transformation of k towards 0, where sn(iu; 0) = i sinh u:
/// sn(iu; k) = (1 + k₁) s/(1 + k₁ s²), s = sn(iu/(1 + k₁); k₁), k₁ = (1 − k′)/(1 + k′).
fn tangent_squared(u: f64, k: f64) -> f64 {
    if k < 1e-17 {
        return u.sinh().powi(2);
    }
    let next = (k / (1.0 + (1.0 - k * k).sqrt())).powi(2);
    let t = tangent_squared(u / (1.0 + next), next);
    ((1.0 + next) / (1.0 - next * t)).powi(2) * t
}

/// The level at p = ½: (1 − ℓ)/(1 + ℓ), 1 − ℓ² = (ϑ₂/ϑ₃)⁴ at the nome exp(−π N K/K′).
fn level(low: f64, high: f64, order: usize) -> f64 {
    let kappa = (low / high).sqrt();
    // √(1 − κ²) without the difference of nearly equal numbers.
    let other = ((high - low) / high).sqrt();
    let nome = (-PI * (2 * order + 1) as f64 * integral(other) / integral(kappa)).exp();
    let theta2: f64 = 2.0 * (0..40).map(|i| nome.powf((f64::from(i) + 0.5).powi(2))).sum::<f64>();
    let theta3: f64 = 1.0 + 2.0 * (1..40).map(|i| nome.powf(f64::from(i).powi(2))).sum::<f64>();
    let theta4: f64 = 1.0 + 2.0 * (1..40).map(|i| (-1f64).powi(i) * nome.powf(f64::from(i).powi(2))).sum::<f64>();
    // (1 − ℓ)/(1 + ℓ) = (1 − ℓ²)/(1 + ℓ)², ℓ = (ϑ₄/ϑ₃)².
    ((theta2 / theta3).powi(2) / (1.0 + (theta4 / theta3).powi(2))).powi(2)
}

fn half(numerator: i64) -> Power {
    Power::new(Fraction::new(numerator, 2).unwrap()).unwrap()
}

#[test]
fn levels_are_those_of_the_closed_formula() {
    // The nome is an exponential of up to 230, and the ratio of the integrals is exact to a few units of rounding.
    let tolerance = |level: f64| 4.0 * f64::EPSILON * (10.0 - level.ln());
    for (low, high) in [(0.1, 1.0), (3e-3, 2.0), (1.0, 1e6), (1e-10, 1.0)] {
        let interval = Interval::new(low, high).unwrap();
        let all = high == 1.0;
        for order in (1..=25).filter(|order| all || order % 6 == 1) {
            let expected = level(low, high, order);
            // Both signs, in turn: the level is the same.
            let found = approximate(&half(if order % 2 == 0 { 1 } else { -1 }), interval, order).unwrap().error();
            let off = (found / expected - 1.0).abs();
            assert!(off < tolerance(expected), "[{low}, {high}], order {order}: {found:e} {expected:e} {off:e}");
        }
    }
}

#[test]
fn poles_and_zeros_are_those_of_the_closed_formula() {
    for (low, high, order) in [(0.1, 1.0, 5), (1e-4, 1.0, 8), (2.0, 2e8, 12), (1e-10, 1.0, 20), (1.0, 1.5, 2)] {
        let best = approximate(&half(-1), Interval::new(low, high).unwrap(), order).unwrap();
        let kappa = (low / high).sqrt();
        let quarter = integral(kappa);
        let n = 2 * order + 1;
        // sn/cn(K′ − u) = cn/(κ sn)(u) for the larger half, where 1 + k₁ s² would be a difference.
        let place = |l: usize| {
            let t = tangent_squared(l.min(n - l) as f64 * quarter / n as f64, kappa);
            if 2 * l < n { low * t } else { high / t }
        };
        for i in 0..order {
            let [pole, zero] = [best.poles()[i].shift, best.inverse().poles[i].shift];
            // u is exact to a few roundings of K′, and d log(sn²/cn²)/du = 2 dn/(sn cn), here in t = sn²/cn².
            let tolerance = |expected: f64| {
                let t = (expected / low).min(high / expected);
                let slope = 2.0 * ((1.0 + kappa * kappa * t) * (1.0 + t) / t).sqrt();
                4.0 * f64::EPSILON * (1.0 + slope * quarter)
            };
            for (found, expected) in [(pole, place(2 * i + 1)), (zero, place(2 * i + 2))] {
                let off = (found / expected - 1.0).abs();
                assert!(
                    off < tolerance(expected),
                    "[{low}, {high}], order {order}, {i}: {found:e} {expected:e} {off:e}"
                );
            }
        }
    }
}
