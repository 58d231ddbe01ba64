//! Formatting of words and numbers for readers.
use serde_json::Value;

/// Formats a number with a noun in the singular or plural: `1 mistake`, `2 mistakes`; `2 masses`, `2 trajectories`.
pub fn count(n: usize, word: &str) -> String {
    let vowel_before_y = ["ay", "ey", "oy", "uy"].iter().any(|end| word.ends_with(end));
    match word.strip_suffix('y') {
        _ if n == 1 => format!("{n} {word}"),
        Some(stem) if !vowel_before_y => format!("{n} {stem}ies"),
        _ => format!("{n} {word}{}", if word.ends_with('s') { "es" } else { "s" }),
    }
}

/// Formats a number with six significant digits and without trailing zeros: `6` for 5.999999999999987. NaN and infinities become `–`.
pub fn number(x: f64) -> String {
    if !x.is_finite() {
        return "–".into();
    }
    let places = 5 - magnitude(x);
    let shown = match places {
        _ if x == 0.0 => "0".into(),
        0..=9 => format!("{x:.*}", places as usize),
        _ => {
            let shown = format!("{x:.5e}");
            let (digits, power) = shown.split_once('e').unwrap_or((&shown, "0"));
            return minus(format!("{}e{power}", without_zeros(digits)));
        }
    };
    minus(without_zeros(&shown).into())
}

/// Formats a JSON value for readers: texts are unchanged, numbers have six digits.
pub fn value_text(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Number(found) if !found.is_u64() && !found.is_i64() => found.as_f64().map_or("–".into(), number),
        Value::Array(list) => list.iter().map(value_text).collect::<Vec<_>>().join(","),
        other => other.to_string(),
    }
}

fn without_zeros(digits: &str) -> &str {
    if digits.contains('.') { digits.trim_end_matches('0').trim_end_matches('.') } else { digits }
}

fn minus(text: String) -> String {
    if text.starts_with('-') { text.replacen('-', "−", 1) } else { text }
}

/// Returns the number of columns that a text takes in a terminal. Combining accents, as in M̂, take no column.
pub fn columns(text: &str) -> usize {
    text.chars().filter(|c| !('\u{300}'..='\u{36f}').contains(c)).count()
}

/// Formats the extents of a lattice or a grid: `8×8×8×16`.
pub fn extents<T: ToString>(size: [T; 4]) -> String {
    size.map(|extent| extent.to_string()).join("×")
}

/// Escapes a text for HTML and SVG, so that it can stand between tags or within quotes.
pub fn escape(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => escaped += "&amp;",
            '<' => escaped += "&lt;",
            '>' => escaped += "&gt;",
            '"' => escaped += "&quot;",
            // XML does not allow control characters, not even escaped ones.
            c if c.is_control() && !matches!(c, '\n' | '\t') => escaped.push('\u{fffd}'),
            c => escaped.push(c),
        }
    }
    escaped
}

/// Formats a mean and its error so that the error has two digits. Without an error, the mean has nine digits.
pub fn digits(mean: f64, error: f64) -> [String; 2] {
    if !mean.is_finite() {
        return ["–", "–"].map(String::from);
    }
    if !(error > 0.0 && error.is_finite()) {
        let places = if mean == 0.0 { 0 } else { (8 - magnitude(mean)).clamp(0, 9) } as usize;
        let shown = format!("{mean:.places$}");
        let shown = if mean != 0.0 && mean.abs() < 1e-4 { format!("{mean:.3e}") } else { without_zeros(&shown).into() };
        return [minus(shown), if error == 0.0 { "0" } else { "–" }.into()];
    }
    let places = 1 - magnitude(error);
    if places > 9 {
        let places = (magnitude(mean).max(magnitude(error)) + places).max(1) as usize;
        return [minus(format!("{mean:.places$e}")), format!("{error:.1e}")];
    }
    let places = places.max(0) as usize;
    [minus(format!("{mean:.places$}")), format!("{error:.places$}")]
}

/// Returns ⌊log₁₀ |x|⌋.
fn magnitude(x: f64) -> i32 {
    if x == 0.0 { i32::MIN / 2 } else { x.abs().log10().floor() as i32 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_have_their_plural() {
        for (n, word, shown) in [
            (0, "mistake", "0 mistakes"),
            (1, "trajectory", "1 trajectory"),
            (3, "accepted trajectory", "3 accepted trajectories"),
            (2, "mass", "2 masses"),
            (2, "key", "2 keys"),
            (2, "process", "2 processes"),
        ] {
            assert_eq!(count(n, word), shown);
        }
    }

    #[test]
    fn numbers_have_six_digits_at_most() {
        for (x, shown) in [
            (5.999_999_999_999_987, "6"),
            (0.05, "0.05"),
            (0.123_456_789, "0.123457"),
            (-1234.5, "−1234.5"),
            (123_456.7, "123457"),
            (1.5e7, "1.5e7"),
            (2.5e-6, "2.5e-6"),
            (0.0, "0"),
            (f64::NAN, "–"),
            (f64::INFINITY, "–"),
        ] {
            assert_eq!(number(x), shown);
        }
        assert_eq!((columns("M̂†M̂"), columns("−D²")), (3, 3));
        assert_eq!(value_text(&serde_json::json!([1.0, 2, "a"])), "1,2,a");
    }

    #[test]
    fn means_have_the_digits_of_their_errors() {
        let text = |mean, error| digits(mean, error).join(" ");
        assert_eq!(text(0.550_123_4, 0.000_321), "0.55012 0.00032");
        assert_eq!(text(-0.000_02, 0.05), "−0.000 0.050");
        assert_eq!(text(1234.56, 12.3), "1235 12");
        assert_eq!(text(1.234_567e-12, 3.2e-14), "1.235e-12 3.2e-14");
        assert_eq!(text(0.590_123_456_789, f64::NAN), "0.590123457 –");
        assert_eq!(text(17.5, f64::NAN), "17.5 –");
        assert_eq!(text(1.0, 0.0), "1 0");
        assert_eq!(text(100.0, 0.0), "100 0");
        assert_eq!(text(0.0, 0.0), "0 0");
        assert_eq!(text(3e-13, f64::NAN), "3.000e-13 –");
        assert_eq!(text(f64::NAN, f64::NAN), "– –");
    }
}
