//! Conversion of typed numbers.
use crate::raw::Raw;
use crate::text::{count_hint, number_hint};
use ferrite::operators::LARGEST;
use std::ops::RangeInclusive;

/// Description of the relative residuals that users can request. Double precision does not allow smaller ones.
pub const RESIDUAL: &str = "a number of at least 1e-16 and below 1";
/// Returns whether users can request the number `x` as a relative residual.
pub fn is_residual(x: f64) -> bool {
    (1e-16..1.0).contains(&x)
}

/// Returns the end of a message on a number that does not fit.
fn unfit(x: Option<f64>, expected: &str) -> String {
    match x {
        Some(x) if x.is_finite() && x.abs() > LARGEST => {
            format!("is too large: the magnitude may be at most {LARGEST:e}")
        }
        _ => format!("is not {expected}"),
    }
}

fn checked(x: Option<f64>, expected: &str, fits: impl FnOnce(f64) -> bool) -> Result<f64, String> {
    x.filter(|x| x.is_finite() && x.abs() <= LARGEST && fits(*x)).ok_or_else(|| unfit(x, expected))
}

/// Parses a number that satisfies `fits`. Otherwise returns a message that the text is not `expected`.
///
/// # Errors
/// Returns the whole message.
pub fn number_of(text: &str, expected: &str, fits: impl FnOnce(f64) -> bool) -> Result<f64, String> {
    let text = text.trim();
    checked(text.replace('_', "").parse().ok(), expected, fits).map_err(|why| {
        let hint = if why.starts_with("is not") { number_hint(text) } else { String::new() };
        format!("'{text}' {why}{hint}")
    })
}

/// Returns a number that satisfies `fits`.
pub(crate) fn one(raw: &Raw, expected: &str, fits: &dyn Fn(f64) -> bool) -> Result<f64, String> {
    match raw {
        Raw::Text(text) => number_of(text, expected, fits),
        Raw::Whole(n) => checked(Some(*n as f64), expected, fits),
        Raw::Real(x) => checked(Some(*x), expected, fits),
        Raw::List(all) if all.len() == 1 => one(&all[0], expected, fits),
        Raw::Switch(_) | Raw::List(_) => Err(format!("is not {expected}")),
    }
}

/// Applies `one` to each value of a list, or to each part of a text with commas.
pub(crate) fn each<T>(raw: &Raw, one: impl Fn(&Raw) -> Result<T, String>) -> Result<Vec<T>, String> {
    let numbered = |(k, raw): (usize, &Raw)| one(raw).map_err(|why| format!("#{k} {why}"));
    match raw {
        Raw::List(all) => all.iter().enumerate().map(numbered).collect(),
        Raw::Text(text) => {
            let part = |text: &str| {
                let quoted =
                    |why: String| if why.starts_with("is ") { format!("'{}' {why}", text.trim()) } else { why };
                one(&Raw::Text(text.into())).map_err(quoted)
            };
            text.split(',').map(part).collect()
        }
        single => Ok(vec![one(single)?]),
    }
}

/// Returns one or several numbers that satisfy `fits`.
pub(crate) fn several(raw: &Raw, expected: &str, fits: &dyn Fn(f64) -> bool) -> Result<Vec<f64>, String> {
    each(raw, |raw| one(raw, expected, fits))
}

/// Returns a whole number in a range.
pub(crate) fn count(raw: &Raw, range: RangeInclusive<usize>) -> Result<usize, String> {
    let raw = match raw {
        Raw::List(all) if all.len() == 1 => &all[0],
        other => other,
    };
    let found = match raw {
        Raw::Whole(n) => usize::try_from(*n).ok(),
        Raw::Text(text) => text.replace('_', "").parse().ok(),
        _ => None,
    };
    found.filter(|n| range.contains(n)).ok_or_else(|| {
        let why = unfit_count(found, &range);
        match raw {
            Raw::Text(text) if found.is_none() => format!("'{text}' {why}{}", count_hint(text, &range)),
            Raw::Text(text) => format!("'{text}' {why}"),
            _ => why,
        }
    })
}

/// Returns the end of a message on the number `found`, which is outside `range`, or on a value that is not a whole number.
pub(crate) fn unfit_count(found: Option<usize>, range: &RangeInclusive<usize>) -> String {
    let last = if *range.end() == usize::MAX { "2^64 - 1".into() } else { range.end().to_string() };
    let expected = format!("a whole number from {} to {last}", range.start());
    match found {
        Some(n) if n > *range.end() => format!("is too large: give {expected}"),
        Some(_) => format!("is too small: give {expected}"),
        None => format!("is not {expected}"),
    }
}
