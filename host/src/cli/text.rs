//! Values as typed, and numbers as people read them.
use ferrite::lattice::Lattice;

/// `X,Y,Z,T`, a lattice.
pub fn lattice(text: &str) -> Result<Lattice, String> {
    Lattice::new(extents(text)?).map_err(|e| e.to_string())
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

/// `1 mistake`, `2 mistakes`.
pub fn count(n: usize, word: &str) -> String {
    format!("{n} {word}{}", if n == 1 { "" } else { "s" })
}
