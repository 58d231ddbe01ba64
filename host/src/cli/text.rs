//! Values as typed, and numbers as people read them.
pub use ferrite_report::text::count;

use ferrite::lattice::Lattice;

/// `X,Y,Z,T`, a lattice.
pub fn lattice(text: &str) -> Result<Lattice, String> {
    Lattice::new(extents(text)?).map_err(|e| e.to_string())
}

/// `X,Y,Z,T`, the extents of a field in a file, which may be odd.
pub fn file_lattice(text: &str) -> Result<Lattice, String> {
    Lattice::of_any_extents(extents(text)?).map_err(|e| e.to_string())
}

/// `X,Y,Z,T`.
pub fn extents(text: &str) -> Result<[usize; 4], String> {
    let numbers = text.split(',').map(|n| n.trim().parse()).collect::<Result<Vec<usize>, _>>();
    let size: Result<[usize; 4], _> = numbers.map_err(|_| ()).and_then(|n| n.try_into().map_err(|_| ()));
    size.map_err(|()| format!("'{text}' is not of the form X,Y,Z,T, for example 16,16,16,32"))
}

/// Bytes in the unit that gives a short number.
pub fn bytes(n: usize) -> String {
    match n {
        usize::MAX => "an unknown amount".into(),
        _ if n < 1 << 10 => format!("{n} bytes"),
        _ if n < 1 << 20 => format!("{:.1} KiB", n as f64 / (1u64 << 10) as f64),
        _ if n < 1 << 30 => format!("{:.1} MiB", n as f64 / (1u64 << 20) as f64),
        _ => format!("{:.2} GiB", n as f64 / (1u64 << 30) as f64),
    }
}

/// Seconds in the unit that gives a short number.
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

/// A number with all its digits; with an exponent where it is far from 1.
pub fn number(x: f64) -> String {
    if x == 0.0 || (1e-6..1e6).contains(&x.abs()) { x.to_string() } else { format!("{x:e}") }
}

/// A number with so many digits behind the point, or behind the first digit and with an exponent where it is far from 1.
pub fn rounded(x: f64, digits: usize) -> String {
    if x == 0.0 || (1e-6..1e6).contains(&x.abs()) { format!("{x:.digits$}") } else { format!("{x:.digits$e}") }
}

/// A tolerance as it was asked for: no digit of it is rounded away.
pub fn tolerance(x: f64) -> String {
    format!("{x:e}")
}

/// A number of bytes, or of KiB, MiB or GiB.
pub fn parse_bytes(text: &str) -> Result<usize, String> {
    let units = [("KiB", 10), ("MiB", 20), ("GiB", 30), ("TiB", 40)];
    let (number, power) =
        units.iter().find_map(|(unit, power)| Some((text.strip_suffix(unit)?.trim_end(), *power))).unwrap_or((text, 0));
    match number.replace('_', "").parse::<f64>() {
        Ok(x) if x > 0.0 && x.is_finite() => Ok((x * 2f64.powi(power)) as usize),
        _ => Err(format!("'{text}' is not an amount of memory, for example 20GiB or 500MiB")),
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
    fn amounts_of_memory() {
        assert_eq!(parse_bytes("1000"), Ok(1000));
        assert_eq!(parse_bytes("1.5GiB"), Ok(3 << 29));
        assert_eq!(parse_bytes("20 MiB"), Ok(20 << 20));
        for wrong in ["", "GiB", "-1GiB", "nan", "20GB", "0"] {
            assert!(parse_bytes(wrong).is_err(), "{wrong}");
        }
    }
}
