//! Properties that hold for all functions, intervals and orders, checked through the public interface and in double precision.

use proptest::prelude::*;
use rational::{Approximation, Error, Factor, Fraction, Interval, Power, approximate, approximate_to};

fn power(text: &str) -> Power {
    Power::new(text.parse().unwrap()).unwrap()
}

/// δ(x) = R(x)/f(x) − 1 by whichever form has terms of one sign, which is exact to a few units of rounding for each
/// term and factor.
fn deviation(best: &Approximation, x: f64) -> f64 {
    let f: f64 = best.function().factors().iter().map(|k| (x + k.shift).powf(k.power.value())).product();
    let r = if best.poles()[0].residue > 0.0 { best.evaluate(x) } else { 1.0 / best.inverse().evaluate(x) };
    r / f - 1.0
}

fn rounding(best: &Approximation) -> f64 {
    f64::EPSILON * (4 * best.order() + 8 * best.function().factors().len()) as f64
}

/// Looks at δ everywhere; the number of its extrema that reach the error, with alternating signs.
fn alternations(best: &Approximation) -> usize {
    let (low, high, rounding) = (best.interval().low(), best.interval().high(), rounding(best));
    let least = best.function().factors()[0].shift;
    // Even steps of log(x + c₁), twenty and more of them for each extremum, and denser at the ends.
    let (from, to, steps) = ((low + least).ln(), (high + least).ln(), 400 * best.order() + 400);
    let (mut count, mut last) = (0, 0.0_f64);
    for i in 0..=steps {
        let at = 0.5 - 0.5 * (std::f64::consts::PI * i as f64 / steps as f64).cos();
        let x = if i == steps { high } else { ((from + (to - from) * at).exp() - least).clamp(low, high) };
        let delta = deviation(best, x);
        assert!(delta.abs() <= best.error() * (1.0 + 1e-9) + rounding, "{}: {delta:e} at {x:e}", best.function());
        if delta.abs() >= 0.98 * best.error() - rounding && delta * last <= 0.0 {
            (count, last) = (count + 1, delta);
        }
    }
    count
}

/// All that is true of any approximation.
fn holds(best: &Approximation) {
    let (function, interval, order, error) = (best.function(), best.interval(), best.order(), best.error());
    let what = format!("{function} on {interval}, order {order}");
    assert_eq!(best.poles().len(), order);
    assert!(best.poles()[0].shift > 0.0 && best.poles().windows(2).all(|pair| pair[0].shift < pair[1].shift), "{what}");
    assert!(best.inverse().poles.windows(2).all(|pair| pair[0].shift < pair[1].shift), "{what}");
    // Residues of one sign, opposite ones for 1/R; poles and zeros in turn. x^{-p} has the pole nearest to 0.
    let negative = best.poles()[0].residue > 0.0;
    assert!(best.poles().iter().all(|pole| (pole.residue > 0.0) == negative && best.constant() > 0.0), "{what}");
    assert!(best.inverse().poles.iter().all(|pole| (pole.residue < 0.0) == negative), "{what}");
    for (pole, zero) in best.poles().iter().zip(&best.inverse().poles) {
        assert!((pole.shift < zero.shift) == negative, "{what}");
    }
    let sum: f64 = function.factors().iter().map(|factor| factor.power.value()).sum();
    // Sums that are 0 have rounding left.
    assert!(sum.abs() < 1e-12 || negative == (sum < 0.0), "{what}");
    // Errors of the forms as they are.
    let check = best.check();
    for (form, error) in [(check.direct, error), (check.inverse, error / (1.0 - error))] {
        let slack = 1e-12 * error + f64::EPSILON * form.condition;
        assert!(form.error <= error + slack && form.error >= 0.95 * error - slack, "{what}: {form:?} {error:e}");
        assert!(form.error_in_double <= form.error + (order + 3) as f64 * f64::EPSILON * form.condition, "{what}");
        assert!(form.condition >= 0.999 * (1.0 - error), "{what}: {form:?}");
    }
    // Where rounding cannot hide it.
    if error > 1e3 * rounding(best) {
        assert_eq!(alternations(best), 2 * order + 2, "{what}");
    }
}

#[test]
fn powers_ratios_and_orders() {
    let mut order = 0;
    for text in ["1/2", "-1/2", "1/4", "-1/4", "1/8", "-1/8", "3/8", "-3/8", "1/3", "-1/100"] {
        for ratio in [10.0, 1e5, 1e10] {
            // Runs through 1 to 25 in an order that mixes them with powers and ratios.
            order = (order + 7) % 25;
            let best = approximate(&power(text), Interval::new(0.3, 0.3 * ratio).unwrap(), order + 1).unwrap();
            holds(&best);
        }
    }
}

#[test]
fn the_widest_interval_and_the_highest_orders_that_are_promised() {
    for (text, low, high, order) in [("-1/4", 1e-12, 1.0, 40), ("1/8", 1e-12, 1.0, 1), ("-1/2", 1.0, 10.0, 40)] {
        holds(&approximate(&power(text), Interval::new(low, high).unwrap(), order).unwrap());
    }
}

#[test]
fn double_precision_loses_digits_where_terms_cancel() {
    let best = approximate(&power("1/2"), Interval::new(1e-10, 1.0).unwrap(), 12).unwrap();
    let (direct, inverse) = (best.check().direct, best.check().inverse);
    assert!(direct.condition > 1e5 && inverse.condition < 1.01);
    let lost = (direct.error_in_double - direct.error).abs();
    assert!(lost > 1e-14 && lost < 1e-15 * direct.condition, "{lost:e}");
    assert!((inverse.error_in_double - inverse.error).abs() < 1e-14);
}

#[test]
fn products_of_powers() {
    let products: [&[(f64, &str)]; 8] = [
        &[(4e-4, "-1/2"), (1e-2, "-1/4")],
        &[(4e-4, "1/4"), (1e-2, "1/8")],
        // A ratio: a heavier quark taken out of a lighter one; powers add up to 0.
        &[(1e-4, "-1/2"), (0.3, "1/2")],
        &[(1e-4, "-1/2"), (1e-2, "-1/4"), (1.0, "3/4")],
        &[(0.0, "1/6"), (2.7e-5, "1/4"), (1.0, "-5/12")],
        // Powers add up to −1.
        &[(0.0, "-1/4"), (0.1, "-3/4")],
        &[(1e-3, "1/8"), (1e-2, "1/8"), (1e-1, "1/8"), (1.0, "1/8")],
        &[(3.0, "-1/4")],
    ];
    for (i, product) in products.iter().enumerate() {
        let factors = product.iter().map(|(shift, power)| Factor { shift: *shift, power: power.parse().unwrap() });
        let function = Power::product(factors).unwrap();
        for order in [1, 2 + i, 9] {
            holds(&approximate(&function, Interval::new(1e-5, 30.0).unwrap(), order).unwrap());
        }
    }
    // The lower end far below the shift, as generators of other codes have it.
    let function = Power::product([Factor { shift: 4e-4, power: "-1/4".parse().unwrap() }]).unwrap();
    let tiny = approximate(&function, Interval::new(1e-15, 90.0).unwrap(), 7).unwrap();
    holds(&tiny);
    // It is x^p on the shifted interval.
    let shifted = approximate(&power("-1/4"), Interval::new(4e-4 + 1e-15, 90.0004).unwrap(), 7).unwrap();
    assert!((tiny.error() / shifted.error() - 1.0).abs() < 1e-12);
    for (a, b) in tiny.poles().iter().zip(shifted.poles()) {
        assert!(((a.shift - 4e-4) / b.shift - 1.0).abs() < 1e-12 && (a.residue / b.residue - 1.0).abs() < 1e-12);
    }
}

#[test]
fn the_order_for_a_tolerance_is_the_lowest() {
    for (text, low, tolerance) in
        [("-1/4", 1e-6, 1e-7), ("1/2", 1e-3, 1e-2), ("-1/8", 0.1, 1e-15), ("3/8", 1e-9, 0.9), ("-1/100", 1e-5, 1e-5)]
    {
        let interval = Interval::new(low, 1.0).unwrap();
        let best = approximate_to(&power(text), interval, tolerance).unwrap();
        assert!(best.error() <= tolerance, "{text}");
        assert_eq!(best, approximate(&power(text), interval, best.order()).unwrap());
        if best.order() > 1 {
            assert!(approximate(&power(text), interval, best.order() - 1).unwrap().error() > tolerance, "{text}");
        }
    }
    // The estimate that the search begins with is far off where |sin πp| is small, or the function is nearly constant.
    let flat = Power::product([Factor { shift: 1e6, power: "-1/4".parse().unwrap() }]).unwrap();
    assert_eq!(approximate_to(&flat, Interval::new(1e-3, 1.0).unwrap(), 1e-8).unwrap().order(), 1);
}

#[test]
fn scaled_approximations_are_those_of_the_scaled_interval() {
    let function = Power::product([
        Factor { shift: 4e-4, power: "-1/4".parse().unwrap() },
        Factor { shift: 0.01, power: "-1/8".parse().unwrap() },
    ])
    .unwrap();
    for function in [power("-1/4"), power("3/8"), function] {
        let best = approximate(&function, Interval::new(1e-4, 2.0).unwrap(), 8).unwrap();
        for by in [3.7, 1e-6, 0.25] {
            let scaled = best.scaled(by).unwrap();
            let direct = approximate(scaled.function(), scaled.interval(), 8).unwrap();
            assert_eq!(scaled.error(), best.error());
            holds(&scaled);
            let pairs = |a: &rational::PartialFractions, b: &rational::PartialFractions| {
                let both = a.poles.iter().zip(&b.poles).flat_map(|(a, b)| [(a.residue, b.residue), (a.shift, b.shift)]);
                both.chain([(a.constant, b.constant)]).map(|(a, b)| (a / b - 1.0).abs()).fold(0.0, f64::max)
            };
            // Ends, shifts and coefficients are rounded once more, λ^p as well. The error of 10⁻⁵ does not come in.
            assert!(pairs(scaled.direct(), direct.direct()) < 20.0 * f64::EPSILON);
            assert!(pairs(scaled.inverse(), direct.inverse()) < 20.0 * f64::EPSILON);
        }
    }
}

#[test]
fn an_approximation_covers_what_it_can() {
    let best = approximate(&power("-1/4"), Interval::new(1e-4, 1.0).unwrap(), 6).unwrap();
    let inside = Interval::new(2e-4, 0.5).unwrap();
    assert_eq!(best.covering(inside).unwrap(), best);
    for wanted in [(3e-4, 2.9), (5e-9, 5e-6), (7.0, 8.0), (7e3, 7e7), (1.0 / 3.0, 1e4 / 3.0)] {
        let wanted = Interval::new(wanted.0, wanted.1).unwrap();
        let moved = best.covering(wanted).unwrap();
        assert!(moved.interval().contains(wanted), "{wanted}");
        assert!((moved.interval().ratio() / 1e4 - 1.0).abs() < 1e-11);
        let middle = |interval: Interval| (interval.low().ln() + interval.high().ln()) / 2.0;
        assert!((middle(moved.interval()) - middle(wanted)).abs() < 1e-11);
        holds(&moved);
    }
    let error = best.covering(Interval::new(1e-5, 1.0).unwrap()).unwrap_err();
    assert!(matches!(error, Error::NotCovered { .. }), "{error}");
    let shifted = Power::product([Factor { shift: 0.1, power: "-1/4".parse().unwrap() }]).unwrap();
    let fixed = approximate(&shifted, Interval::new(1e-4, 1.0).unwrap(), 3).unwrap();
    assert_eq!(fixed.covering(inside).unwrap(), fixed);
    assert!(matches!(fixed.covering(Interval::new(2e-4, 1.1).unwrap()), Err(Error::NotCovered { .. })));
}

/// Functions whose partial sums of powers are all of one sign, at most 1, with shifts over many decades.
fn functions() -> impl Strategy<Value = Power> {
    let denominator = 12;
    // Partial sums in twelfths; the first is not 0.
    let sums = (1..=12_i64, prop::collection::vec(0..=12_i64, 0..3), any::<bool>());
    let shifts = prop::collection::vec(prop_oneof![Just(f64::NEG_INFINITY), -6.0..3.0_f64], 4);
    (sums, shifts).prop_filter_map("rational, or shifts that are nearly equal", move |((first, rest, flip), logs)| {
        let mut shifts: Vec<f64> = logs[..=rest.len()].iter().map(|log| 10f64.powf(*log)).collect();
        shifts.sort_by(f64::total_cmp);
        if shifts.windows(2).any(|pair| pair[1] < 1.01 * pair[0] || pair[0] == pair[1]) {
            return None;
        }
        let sums: Vec<i64> = [0, first].into_iter().chain(rest).collect();
        let powers = sums.windows(2).map(|pair| if flip { pair[0] - pair[1] } else { pair[1] - pair[0] });
        let factors = shifts.iter().zip(powers).filter(|(_, power)| *power != 0);
        let factor =
            |(shift, power): (&f64, i64)| Factor { shift: *shift, power: Fraction::new(power, denominator).unwrap() };
        Power::product(factors.map(factor)).ok()
    })
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, cases: 24, ..Default::default() })]

    #[test]
    fn any_function_on_any_interval(
        function in functions(), low in -8.0..2.0_f64, length in 0.3..10.0_f64, order in 1..9_usize,
    ) {
        let interval = Interval::new(10f64.powf(low), 10f64.powf(low + length)).unwrap();
        match approximate(&function, interval, order) {
            Ok(best) => holds(&best),
            // Nearly constant functions, and poles that are nearly factors.
            Err(Error::TooExact { .. } | Error::Range { .. }) => {}
            Err(error) => panic!("{error}"),
        }
    }

    #[test]
    fn files_keep_every_digit(function in functions(), low in -6.0..0.0_f64, order in 1..6_usize) {
        let interval = Interval::new(10f64.powf(low), 10.0).unwrap();
        let Ok(best) = approximate(&function, interval, order) else { return Ok(()) };
        let json = serde_json::to_string(&best).unwrap();
        prop_assert_eq!(&serde_json::from_str::<Approximation>(&json).unwrap(), &best);
        let toml = toml::to_string(&best).unwrap();
        prop_assert_eq!(&toml::from_str::<Approximation>(&toml).unwrap(), &best);
    }
}
