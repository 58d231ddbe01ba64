//! Tests of properties that double precision cannot show: alternation, identities, poles and zeros to 10⁻²⁰.
//!
//! Powers with denominators 2, 4 and 8 are computed here by square roots, not by logarithms as in the code.

use crate::approximation::{lowest_order, solve};
use crate::failure::RemezFailure;
use crate::levelled::levelled;
use crate::product::Product;
use crate::real::{BigFloat, Bits, Target, abs, double, positive};
use crate::remez::{Minimax, check_between, exchange, minimax};
use crate::roots::{RootFailure, negative_roots};
use crate::zolotarev::ZolotarevStart;
use crate::{Error, Factor, Fraction, Interval, LARGEST_ORDER, Power, approximate};

const P: Bits = Bits(400);

fn fraction(text: &str) -> Fraction {
    text.parse().unwrap()
}

fn power(text: &str) -> Power {
    Power::new(fraction(text)).unwrap()
}

fn interval(low: f64, high: f64) -> Interval {
    Interval::new(low, high).unwrap()
}

/// Computes x^p with a power of two as denominator, by square roots and products.
fn by_roots(x: &BigFloat, p: Fraction) -> BigFloat {
    let mut root = x.clone();
    for _ in 0..p.denominator().ilog2() {
        root = root.sqrt();
    }
    let one = BigFloat::from(1).with_precision(x.precision()).value();
    let product = (0..p.numerator().abs()).fold(one.clone(), |product, _| product * &root);
    if p.numerator() < 0 { one / product } else { product }
}

/// Computes |a/b − 1|.
fn difference(a: &BigFloat, b: &BigFloat) -> f64 {
    double(&abs(&((a - b) / b)))
}

#[test]
fn functions_agree_with_square_roots() {
    for text in ["1/2", "-1/2", "1/4", "-3/4", "1/8", "-3/8"] {
        let target = Target::new(&power(text), P);
        for x in [1e-12, 0.3, 1.0, 7.0, 1e9] {
            let x = P.real(x);
            assert!(difference(&target.evaluate(&x), &by_roots(&x, fraction(text))) < 2f64.powi(-390), "{text}");
        }
    }
    let cubic = Target::new(&power("-1/3"), P).evaluate(&P.real(5.0));
    assert!(difference(&(P.integer(1) / (&cubic * &cubic * &cubic)), &P.real(5.0)) < 2f64.powi(-390));
    // (x + 3)^(1/4) (x + 7)^(-3/8), in y = x + 3.
    let factors = [("1/4", 3.0), ("-3/8", 7.0)].map(|(p, shift)| Factor { shift, power: fraction(p) });
    let target = Target::new(&Power::unchecked(factors.to_vec()), P);
    let x = P.real(0.7);
    let [a, b] = factors.map(|factor| by_roots(&(&x + P.real(factor.shift)), factor.power));
    assert!(difference(&target.evaluate(&(&x + &target.origin)), &(a * b)) < 2f64.powi(-390));
}

#[test]
fn derivatives_of_logarithms_are_those_of_differences() {
    let factors = [("-1/4", 0.5), ("-1/8", 2.0)].map(|(p, shift)| Factor { shift, power: fraction(p) });
    let function = Power::product(factors).unwrap();
    let (best, target) = solve(&function, interval(0.01, 1.0), 3).unwrap();
    let (y, h) = (P.real(0.9), P.tiny(100));
    let log = |f: &dyn Fn(&BigFloat) -> BigFloat| [&y - &h, y.clone(), &y + &h].map(|y| f(&y).ln());
    let target = Target { precision: P, ..target };
    let cases = [
        (log(&|y| target.evaluate(y)), target.log_derivatives(&y)),
        (log(&|y| best.product.evaluate(y)), best.product.log_derivatives(&y, P)),
    ];
    for ([low, middle, high], (first, second)) in cases {
        // Truncation is of the order h² = 2⁻²⁰⁰; rounding 2⁻²⁵⁰/h and 2⁻²⁵⁰/h² at the precision of the approximation.
        assert!(difference(&((&high - &low) / (&h + &h)), &first) < 1e-30);
        assert!(difference(&((high + low - &middle - &middle) / (&h * &h)), &second) < 1e-10);
    }
}

#[test]
fn roots_are_found_where_they_are() {
    let nodes: Vec<BigFloat> = (0..7).map(|l| P.real(0.5 * f64::from(l) + 0.01)).collect();
    // Weights of Π (y + r) by its values on the nodes.
    let weights = |p: &dyn Fn(&BigFloat) -> BigFloat| -> Vec<BigFloat> {
        let weight = |l: usize| {
            let others = nodes.iter().enumerate().filter(|(j, _)| *j != l);
            p(&nodes[l]) / others.fold(P.integer(1), |product, (_, t)| product * (&nodes[l] - t))
        };
        (0..nodes.len()).map(weight).collect()
    };
    let with = |roots: &[f64]| weights(&|y| roots.iter().fold(P.integer(3), |product, r| product * (y + P.real(*r))));
    for roots in [[1e-9, 1e-6, 1e-3, 1.0, 1.5, 1e4], [1.0, 1.001, 1.002, 1.003, 1.004, 1.005]] {
        let found = negative_roots(&nodes, &with(&roots), P).unwrap();
        assert_eq!(found.len(), 6);
        for (found, root) in found.iter().zip(roots) {
            assert!(difference(found, &P.real(root)) < 1e-60, "{root}");
        }
    }
    // One positive, one at 0, two equal, and a complex pair.
    for roots in [[-0.3, 1.0, 2.0, 3.0, 4.0, 5.0], [0.0, 1.0, 2.0, 3.0, 4.0, 5.0], [1.0, 2.0, 2.0, 3.0, 4.0, 5.0]] {
        assert!(negative_roots(&nodes, &with(&roots), P).is_err(), "{roots:?}");
    }
    let pair = weights(&|y| {
        let square = y * y + y + P.integer(1);
        square * [2.0, 3.0, 4.0, 5.0].iter().fold(P.integer(1), |product, r| product * (y + P.real(*r)))
    });
    assert_eq!(negative_roots(&nodes, &pair, P), Err(RootFailure::NotNegative));
    // Too few digits for roots that are as near as that.
    let low = Bits(64);
    let nodes = nodes.iter().map(|t| t.clone().with_precision(low.0).value()).collect::<Vec<_>>();
    let blurred = with(&[1.0, 1.001, 1.002, 1.003, 1.004, 1.005]);
    let blurred: Vec<BigFloat> = blurred.iter().map(|b| b.clone().with_precision(low.0).value()).collect();
    assert!(negative_roots(&nodes, &blurred, low).is_err());
}

#[test]
fn levelled_functions_alternate_and_have_no_pole_between_any_points() {
    let precision = Bits(500);
    // Points that are far from the best ones.
    let positions = [1.0, 1.1, 2.0, 9.0, 10.0, 11.0, 400.0, 1e4, 2e4, 1e6].map(|y| precision.real(y));
    for text in ["-1/2", "1/4", "-1/8", "9/10", "-1/100"] {
        let target = Target::new(&power(text), precision);
        let values: Vec<BigFloat> = positions.iter().map(|y| target.evaluate(y)).collect();
        let start: Vec<BigFloat> = [3.0, 5.0, 1e3, 2e3].iter().map(|pole| precision.real(*pole)).collect();
        let solution = levelled(&positions, &values, &start, &precision.integer(0), precision).unwrap();
        // δ at the end nearest to the cut has the sign of p.
        assert_eq!(positive(&solution.level), !text.starts_with('-'), "{text}");
        let product = Product::new(&solution, precision).unwrap_or_else(|failure| panic!("{text}: {failure:?}"));
        for (i, (y, f)) in positions.iter().zip(&values).enumerate() {
            let delta = product.evaluate(y) / f - precision.integer(1);
            let delta = if i % 2 == 0 { delta } else { -delta };
            assert!(difference(&delta, &solution.level) < 1e-40, "{text}, point {i}");
        }
        // Poles and zeros of (approximants of) such functions are in turn; the first is a zero for p > 0.
        for i in 0..product.poles.len() {
            let (first, second) = match positive(&solution.level) {
                true => (&product.zeros, &product.poles),
                false => (&product.poles, &product.zeros),
            };
            assert!(first[i] < second[i], "{text}");
            assert!(i == 0 || second[i - 1] < first[i], "{text}");
        }
    }
}

/// Computes δ by square roots at y = x, for f = x^p.
fn delta(best: &Minimax, x: &BigFloat, p: Fraction) -> BigFloat {
    best.product.evaluate(x) / by_roots(x, p) - BigFloat::from(1)
}

#[test]
fn errors_alternate_at_2n_plus_2_points_and_are_smaller_between_them() {
    let cases = [("1/2", 1e-3, 7), ("-1/4", 1e-8, 15), ("1/8", 1e-10, 4), ("-3/8", 0.1, 25), ("3/4", 1e-6, 11)];
    for (text, low, order) in cases {
        let p = fraction(text);
        let (best, target) = solve(&power(text), interval(low, 1.0), order).unwrap();
        assert_eq!(best.points.len(), 2 * order + 2);
        assert!(best.spread < P.tiny(70));
        assert!(best.points.windows(2).all(|pair| pair[0] < pair[1]));
        assert_eq!(best.points[0], target.precision.real(low));
        assert_eq!(best.points[2 * order + 1], target.precision.integer(1));
        let mut last: Option<bool> = None;
        for x in &best.points {
            let delta = delta(&best, x, p);
            assert!(difference(&abs(&delta), &best.error) < 1e-20, "{text}");
            assert_ne!(last.replace(positive(&delta)), Some(positive(&delta)), "{text}");
        }
        let bound = &best.error * (target.precision.integer(1) + target.precision.tiny(60));
        for pair in best.points.windows(2) {
            for step in 1..16 {
                let x = &pair[0] + (&pair[1] - &pair[0]) * target.precision.real(f64::from(step) / 16.0);
                assert!(abs(&delta(&best, &x, p)) < bound, "{text}");
            }
        }
    }
}

#[test]
fn inverse_and_reflected_functions_are_what_theory_says() {
    // 1/f: R₋ = (1 − E²)/R₊, since both alternate. x → ab/x: R(ab/x) = (ab)^p R₋(x).
    for (text, opposite, low, high, order) in
        [("1/4", "-1/4", 1e-6, 1.0, 9), ("-3/8", "3/8", 2.0, 3e4, 6), ("1/2", "-1/2", 0.5, 4.0, 12)]
    {
        let (plus, target) = solve(&power(text), interval(low, high), order).unwrap();
        let (minus, _) = solve(&power(opposite), interval(low, high), order).unwrap();
        let precision = target.precision;
        assert!(difference(&plus.error, &minus.error) < 1e-20);
        let factor = precision.integer(1) - &plus.error * &plus.error;
        let product = precision.real(low) * precision.real(high);
        let end = by_roots(&product, fraction(text));
        for x in [low, 1.5 * low, (low * high).sqrt(), 0.9 * high] {
            let x = precision.real(x);
            let (r, s) = (plus.product.evaluate(&x), minus.product.evaluate(&x));
            assert!(difference(&(&r * &s), &factor) < 1e-20, "{text}");
            assert!(difference(&plus.product.evaluate(&(&product / &x)), &(&end * &s)) < 1e-20, "{text}");
        }
        for (pole, zero) in plus.product.poles.iter().zip(plus.product.zeros.iter().rev()) {
            assert!(difference(&(pole * zero), &product) < 1e-18, "{text}");
        }
        for (pole, zero) in plus.product.poles.iter().zip(&minus.product.zeros) {
            assert!(difference(pole, zero) < 1e-18, "{text}");
        }
    }
}

#[test]
fn square_roots_start_at_their_best_points() {
    // Also after the map to another cut: x (x + c)^{-1} to the power ½ is √w.
    let factors = [("1/2", 0.1), ("-1/2", 30.0)].map(|(p, shift)| Factor { shift, power: fraction(p) });
    let cut = Power::product(factors).unwrap();
    for function in [power("1/2"), power("-1/2"), cut] {
        for (low, high, order) in [(1e-9, 1.0, 8), (1.0, 1e3, 5), (0.8, 1.0, 3), (1.0, 1.001, 2)] {
            let (best, target) = solve(&function, interval(low, high), order).unwrap();
            let start = ZolotarevStart::new(&function, interval(low, high)).points(2 * order + 1);
            for (at, y) in start.iter().zip(&best.points) {
                let x = low + at * (high - low);
                // Double precision; near a the distance from a counts.
                let (exact, scale) = (double(&(y - &target.origin)), if low < 0.5 * high { x } else { high - low });
                assert!((exact - x).abs() < 1e-11 * scale, "{function} on [{low}, {high}]: {exact} {x}");
            }
            let digits = (4.0 * ZolotarevStart::new(&function, interval(low, high)).log_scale(order).exp()).ln();
            assert!((double(&best.error).ln() - digits).abs() < 0.1 + double(&best.error), "{function}");
        }
    }
}

#[test]
fn other_functions_and_too_few_digits_are_failures() {
    // x^{3/2} and a product whose imaginary part changes its sign on the cut: past the gate of `Power::product`.
    let outside = [
        vec![Factor { shift: 0.0, power: fraction("3/2") }],
        [("-1/4", 4e-4), ("1/2", 1.0)].map(|(p, shift)| Factor { shift, power: fraction(p) }).to_vec(),
    ];
    for factors in outside {
        let function = Power::unchecked(factors);
        let target = Target::new(&function, P);
        let (low, high) = (P.real(1e-4) + &target.origin, P.real(90.0) + &target.origin);
        let points = ZolotarevStart::new(&function, interval(1e-4, 90.0)).points(9);
        let failure = minimax(&target, &low, &high, &points).unwrap_err();
        assert!(matches!(failure, RemezFailure::NotNegative(_) | RemezFailure::Precision), "{failure:?}");
    }
    // Points out of order, and two at the same place.
    let target = Target::new(&power("1/4"), P);
    for start in [[0.0, 0.5, 0.4, 1.0], [0.0, 0.5, 0.5, 1.0], [0.0, -0.5, 0.5, 1.0], [0.0, 0.5, 1.5, 1.0]] {
        let failure = minimax(&target, &P.real(0.1), &P.real(1.0), &start).unwrap_err();
        assert!(matches!(failure, RemezFailure::Precision), "{failure:?}");
    }
    // E = 10⁻²⁵ cannot be seen with 96 bits.
    let function = power("1/4");
    let target = Target::new(&function, Bits(96));
    let points = ZolotarevStart::new(&function, interval(0.1, 1.0)).points(31);
    let failure = minimax(&target, &target.precision.real(0.1), &target.precision.real(1.0), &points).unwrap_err();
    assert!(matches!(failure, RemezFailure::Precision | RemezFailure::NotNegative(_)), "{failure:?}");
}

#[test]
fn a_start_far_away_leads_to_the_same_function() {
    let function = power("-1/4");
    let (best, target) = solve(&function, interval(1e-4, 1.0), 6).unwrap();
    // Even on a logarithmic scale, and moved about.
    let points: Vec<f64> = (0..14)
        .map(|i| (1e-4_f64.powf(1.0 - f64::from(i) / 13.0) - 1e-4) / (1.0 - 1e-4))
        .enumerate()
        .map(|(i, x)| if i % 2 == 1 { 0.8 * x } else { x })
        .map(|x| x.min(1.0))
        .collect();
    let mut points = points;
    points[13] = 1.0;
    let precision = target.precision;
    let other = minimax(&target, &precision.real(1e-4), &precision.integer(1), &points).unwrap();
    assert!(other.exchanges > best.exchanges);
    assert!(difference(&other.error, &best.error) < 1e-20);
    for (a, b) in other.product.poles.iter().zip(&best.product.poles) {
        assert!(difference(a, b) < 1e-18);
    }
}

#[test]
fn the_search_for_an_order_goes_both_ways_and_ends() {
    let (function, interval) = (power("1/2"), interval(1e-4, 1.0));
    let errors: Vec<f64> = (1..=6).map(|order| approximate(&function, interval, order).unwrap().error()).collect();
    // With a shifted scale of orders the estimate is too high, or too low.
    for offset in [-3_isize, 0, 3] {
        let real = |order: usize| order.saturating_add_signed(offset).clamp(1, 6);
        let best =
            lowest_order(&function, interval, 1.01 * errors[3], |order| approximate(&function, interval, real(order)));
        assert_eq!(best.unwrap().order(), 4, "{offset}");
    }
    // The lowest possible order.
    let best = lowest_order(&function, interval, 0.99, |order| approximate(&function, interval, order)).unwrap();
    assert_eq!(best.order(), 1);
    // No order is good enough.
    let mut largest = 0;
    let error = lowest_order(&function, interval, 1e-10, |order| {
        largest = largest.max(order);
        approximate(&function, interval, 1)
    });
    assert!(matches!(error.unwrap_err(), Error::NoOrder { error, .. } if error == errors[0]));
    assert_eq!(largest, LARGEST_ORDER);
}

#[test]
fn partial_fractions_are_the_function_or_do_not_fit() {
    let reals = |x: &[f64]| x.iter().map(|x| P.real(*x)).collect::<Vec<BigFloat>>();
    let product = Product { scale: P.real(0.75), zeros: reals(&[0.5, 3.0, 100.0]), poles: reals(&[0.1, 1.0, 20.0]) };
    // y = x + 2.
    for (product, sign) in [(product.clone(), -1.0), (product.reciprocal(P), 1.0)] {
        let fractions = product.partial_fractions(&P.real(2.0)).unwrap();
        // 1/R has its poles at the zeros of R.
        assert_eq!(fractions.shifts().next(), Some(if sign < 0.0 { 2.1 } else { 2.5 }));
        for x in [0.0, 0.3, 50.0] {
            let off = fractions.evaluate(x) / double(&product.evaluate(&P.real(x + 2.0))) - 1.0;
            assert!(off.abs() < 20.0 * f64::EPSILON, "{x}: {off:e}");
        }
    }
    let said = |product: Product| product.partial_fractions(&P.integer(0)).unwrap_err().to_string();
    let near = Product { poles: vec![P.real(0.1), P.integer(1), P.integer(1) + P.tiny(60)], ..product.clone() };
    assert!(said(near).contains("difference of shifts 1 and 2"));
    let large = Product { scale: P.integer(1) << 1023, ..product.clone() };
    assert!(said(large).contains("residue 0"));
    let small = Product { scale: P.tiny(1070), ..product.clone() };
    assert!(said(small).contains("residue 0"));
    let low = Product { poles: vec![P.tiny(1080), P.integer(1), P.integer(20)], ..product };
    assert!(said(low).contains("shift 0"));
}

#[test]
fn a_larger_error_between_the_points_is_seen() {
    let (best, target) = solve(&power("-1/4"), interval(1e-4, 1.0), 5).unwrap();
    check_between(&best.product, &target, &best.points, &best.error).unwrap();
    // Without one of its extrema the list has a gap, over which the error is not smaller.
    let mut points = best.points.clone();
    points.remove(4);
    let claimed = &best.error * target.precision.real(0.9);
    match check_between(&best.product, &target, &points, &claimed).unwrap_err() {
        RemezFailure::NotBest { level, found, y } => {
            assert!((level / double(&best.error) - 0.9).abs() < 1e-15 && found > level);
            assert!(found <= double(&best.error) && y > points[0] && y < points[points.len() - 1]);
        }
        failure => panic!("{failure:?}"),
    }
}

#[test]
fn points_go_to_the_extrema_next_to_them_and_to_the_ends() {
    for (text, order) in [("-1/4", 5), ("3/8", 4)] {
        let (best, target) = solve(&power(text), interval(1e-4, 1.0), order).unwrap();
        let (p, last) = (target.precision, 2 * order + 1);
        let level = if text.starts_with('-') { -&best.error } else { best.error.clone() };
        let ends = [p.real(1e-4), p.integer(1)];
        // A third of the way to the next point, or to the one before; the ends inwards.
        for up in [true, false] {
            let third =
                |from: usize, to: usize| &best.points[from] + (&best.points[to] - &best.points[from]) / p.integer(3);
            let moved: Vec<BigFloat> = (0..=last)
                .map(|i| if (up && i < last) || i == 0 { third(i, i + 1) } else { third(i, i - 1) })
                .collect();
            let found = exchange(&best.product, &target, &moved, &level, &ends[0], &ends[1]);
            for (found, wanted) in found.iter().zip(&best.points) {
                // Twice EXTREMUM_BITS, less what the curvature of δ costs.
                assert!(difference(found, wanted) < 2f64.powi(-40), "{text}: {} {}", double(found), double(wanted));
            }
            assert!(found[0] == ends[0] && found[last] == ends[1], "{text}");
        }
    }
}
