//! Conversion of values as typed, and formatting of numbers for people.
pub use ferrite_report::text::count;

use ferrite::lattice::Lattice;
use std::ops::RangeInclusive;

/// Parses the extents of a lattice, `X,Y,Z,T`.
pub fn lattice(text: &str) -> Result<Lattice, String> {
    Lattice::new(extents(text)?).map_err(|e| e.to_string())
}

/// Formats extents for people: `8×8×8×16`.
pub fn by([x, y, z, t]: [usize; 4]) -> String {
    format!("{x}×{y}×{z}×{t}")
}

/// Parses the extents of a field in a file, `X,Y,Z,T`, which may be odd.
pub fn file_lattice(text: &str) -> Result<Lattice, String> {
    Lattice::of_any_extents(extents(text)?).map_err(|e| e.to_string())
}

/// Parses four extents, `X,Y,Z,T`.
pub fn extents(text: &str) -> Result<[usize; 4], String> {
    let numbers = text.split(',').map(|n| n.trim().parse()).collect::<Result<Vec<usize>, _>>();
    let size: Result<[usize; 4], _> = numbers.map_err(|_| ()).and_then(|n| n.try_into().map_err(|_| ()));
    size.map_err(|()| {
        // If the numbers are only separated or enclosed by other signs, as in 8x8x8x16, a hint is given.
        let has_other = text.contains(|c: char| !c.is_ascii_digit() && !",xX×*/;[](){} ".contains(c));
        let numbers: Vec<&str> = text.split(|c: char| !c.is_ascii_digit()).filter(|part| !part.is_empty()).collect();
        let hint = match numbers.len() {
            _ if has_other => String::new(),
            4 if numbers.iter().all(|n| n.parse::<usize>().is_ok()) => format!("; did you mean {}?", numbers.join(",")),
            4 | 0 => String::new(),
            _ => format!("; it has {} instead of 4", count(numbers.len(), "number")),
        };
        format!("'{text}' is not of the form X,Y,Z,T with four whole numbers, such as 4,4,4,8{hint}")
    })
}

/// Returns a hint for a text that is not a number: to use a decimal point instead of a comma, or to leave out the unit.
pub fn number_hint(text: &str) -> String {
    let text = text.trim();
    let pointed = text.replacen(',', ".", 1);
    if text.matches(',').count() == 1 && pointed.parse::<f64>().is_ok() {
        return format!("; write a decimal point: {pointed}");
    }
    let units = ["MeV", "GeV", "fm", "/fm", "/a"];
    let without = units.iter().find_map(|unit| text.strip_suffix(unit));
    match without.map(|number| number.trim_end().parse::<f64>()) {
        Some(Ok(_)) => "; numbers are in lattice units, without a unit".into(),
        _ => String::new(),
    }
}

/// Returns a hint for a text that is not a whole number in `range`, such as `0` for `cuda:0`, or `1000` for `1e3`. The hint is empty if the
/// number in the text is outside `range`.
pub fn count_hint(text: &str, range: &RangeInclusive<usize>) -> String {
    let text = text.trim();
    let name = text.trim_end_matches(|c: char| c.is_ascii_digit());
    let meant: Option<usize> = match text.parse::<f64>() {
        Ok(x) if x.fract() == 0.0 && (0.0..1e15).contains(&x) => Some(x as usize),
        Err(_) if name.starts_with(|c: char| c.is_alphabetic()) => text[name.len()..].parse().ok(),
        _ => None,
    };
    meant.filter(|n| range.contains(n)).map_or_else(String::new, |n| format!("; did you mean {n}?"))
}

/// Formats a number of bytes with a suitable unit, from bytes to GiB: `1.50 GiB`.
pub fn bytes(n: usize) -> String {
    match n {
        usize::MAX => "an unknown amount".into(),
        _ if n < 1 << 10 => format!("{n} bytes"),
        _ if n < 1 << 20 => format!("{:.1} KiB", n as f64 / (1u64 << 10) as f64),
        _ if n < 1 << 30 => format!("{:.1} MiB", n as f64 / (1u64 << 20) as f64),
        _ => format!("{:.2} GiB", n as f64 / (1u64 << 30) as f64),
    }
}

/// Formats a time in seconds with a suitable unit, from µs to days: `1.5 ms`.
pub fn seconds(s: f64) -> String {
    match s {
        _ if s < 1e-3 => format!("{:.0} µs", 1e6 * s),
        _ if s < 1.0 => format!("{:.1} ms", 1e3 * s),
        _ if s < 120.0 => format!("{s:.1} s"),
        _ if s < 7200.0 => format!("{:.0} min", s / 60.0),
        _ if s < 172_800.0 => format!("{:.1} h", s / 3600.0),
        _ => format!("{:.1} days", s / 86_400.0),
    }
}

/// Formats a number with all its digits. Uses an exponent if the modulus is below 10⁻⁶, or 10⁶ and more.
pub fn number(x: f64) -> String {
    if x == 0.0 || (1e-6..1e6).contains(&x.abs()) { x.to_string() } else { format!("{x:e}") }
}

/// Formats numbers as a list separated by commas.
pub fn numbers(all: &[f64]) -> String {
    all.iter().map(|x| number(*x)).collect::<Vec<_>>().join(",")
}

/// Formats a number with `digits` digits after the point. Uses an exponent if the modulus is below 10⁻⁶, or 10⁶ and
/// more.
pub fn rounded(x: f64, digits: usize) -> String {
    if x == 0.0 || (1e-6..1e6).contains(&x.abs()) { format!("{x:.digits$}") } else { format!("{x:.digits$e}") }
}

/// Formats a tolerance with all its digits and an exponent: `1e-10`.
pub fn tolerance(x: f64) -> String {
    format!("{x:e}")
}

/// Parses an amount of memory in bytes, KiB, MiB, GiB or TiB, and returns the number of bytes.
pub fn parse_bytes(text: &str) -> Result<usize, String> {
    let units = [("KiB", 10), ("MiB", 20), ("GiB", 30), ("TiB", 40)];
    let (number, power) =
        units.iter().find_map(|(unit, power)| Some((text.strip_suffix(unit)?.trim_end(), *power))).unwrap_or((text, 0));
    match number.replace('_', "").parse::<f64>() {
        Ok(x) if x > 0.0 && x.is_finite() => Ok((x * 2f64.powi(power)) as usize),
        _ => {
            let unit = text.trim_start_matches(|c: char| c.is_ascii_digit() || c == '.').trim();
            let number = text[..text.len() - unit.len()].trim();
            let meant = units.iter().find(|(name, _)| {
                let [name, unit] = [*name, unit].map(str::to_lowercase);
                [name.clone(), name.replace('i', ""), name[..1].to_string()].contains(&unit)
            });
            let hint = meant.filter(|_| number.parse::<f64>().is_ok_and(|x| x > 0.0));
            let hint = hint.map_or_else(String::new, |(unit, _)| format!("; did you mean {number}{unit}?"));
            Err(format!("'{text}' is not an amount of memory above 0, such as 20GiB or 500MiB{hint}"))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_far_from_1_have_exponents() {
        for (x, shown) in [
            (0.0, "0"),
            (0.05, "0.05"),
            (-0.88, "-0.88"),
            (1e-6, "0.000001"),
            (9.9e-7, "9.9e-7"),
            (999_999.5, "999999.5"),
            (1e6, "1e6"),
            (-1.25e300, "-1.25e300"),
            (f64::INFINITY, "inf"),
        ] {
            assert_eq!(number(x), shown);
        }
        for (x, shown) in [(0.05, "0.0500"), (0.0, "0.0000"), (-1.5e-8, "-1.5000e-8"), (123_456_789.0, "1.2346e8")] {
            assert_eq!(rounded(x, 4), shown);
        }
        for (x, shown) in [(1e-10, "1e-10"), (2.5e-11, "2.5e-11"), (0.005, "5e-3"), (1.0, "1e0")] {
            assert_eq!(tolerance(x), shown);
        }
    }

    #[test]
    fn hints_are_what_was_meant() {
        let end = |text: &str| extents(text).unwrap_err().split_once("; ").map(|(_, hint)| hint.to_string());
        for text in ["4x4x4x8", "4×4×4×8", "4 4 4 8", "[4, 4, 4, 8]", "4, 4, 4, 8,"] {
            assert_eq!(end(text).as_deref(), Some("did you mean 4,4,4,8?"), "{text}");
        }
        assert_eq!(end("4,4,8").as_deref(), Some("it has 3 numbers instead of 4"));
        for text in ["4^3x8", "", "4.0,4,4,8", "-4,4,4,8", "a,b,c,d"] {
            assert_eq!(end(text), None, "{text}");
        }
        let hints = ["0,1", "100MeV", "1,000,000", "light", "0.1"].map(number_hint);
        assert_eq!(hints[0], "; write a decimal point: 0.1");
        assert!(hints[1].contains("lattice units") && hints[2..].iter().all(String::is_empty));
        let texts = ["gpu0", "cuda:1", "1e3", "4.5", "-1", "all", "3rd"];
        let hints = texts.map(|text| count_hint(text, &(0..=1000)));
        assert_eq!(hints, ["; did you mean 0?", "; did you mean 1?", "; did you mean 1000?", "", "", "", ""]);
        assert_eq!(count_hint("1e3", &(1..=64)), "");
        assert!(parse_bytes("20GB").unwrap_err().ends_with("did you mean 20GiB?"));
        assert!(parse_bytes("20 g").unwrap_err().ends_with("did you mean 20GiB?"));
        assert!(!parse_bytes("lots").unwrap_err().contains("did you"));
    }

    #[test]
    fn amounts_of_memory() {
        assert_eq!(parse_bytes("1000"), Ok(1000));
        assert_eq!(parse_bytes("1.5GiB"), Ok(3 << 29));
        assert_eq!(parse_bytes("20 MiB"), Ok(20 << 20));
        for wrong in ["", "GiB", "-1GiB", "nan", "20GB", "0"] {
            assert!(parse_bytes(wrong).is_err(), "{wrong}");
        }
    }
}
