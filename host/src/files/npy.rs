//! NumPy's `.npy`: complex arrays in C order, shape `[T, Z, Y, X, 4, 3, 3]` for links, `[T, Z, Y, X, 4, 3]` for spinors
//! (spin, colour) and `[T, Z, Y, X, 3]` for colour vectors. The order of numbers is that of the other formats.
use super::payload::{self, ChecksumKind, Form};
use super::{Endian, Format, Header, Precision, Problem, lattice_from};
use crate::lattice::Lattice;
use num_complex::Complex64;
use std::io::{Cursor, Read, Seek, SeekFrom, Write};

/// First bytes of the file.
pub const MAGIC: &[u8] = b"\x93NUMPY";
const PLACE: &str = "npy header";

/// Header of a file in memory.
pub fn parse(bytes: &[u8]) -> Result<Header, Problem> {
    header(&mut Cursor::new(bytes))
}

/// Reads the header: complex64 or complex128 in either byte order, four lattice axes followed by those of the site.
pub fn header<R: Read + Seek>(reader: &mut R) -> Result<Header, Problem> {
    let available = reader.seek(SeekFrom::End(0)).map_err(Problem::io("find the length"))?;
    reader.rewind().map_err(Problem::io("seek to the start"))?;
    let mut bytes = Vec::new();
    // NumPy's headers are some hundred bytes long; anything longer than this is not one.
    reader.by_ref().take(1 << 16).read_to_end(&mut bytes).map_err(Problem::io("read the npy header"))?;
    let cut = |needed: usize| Problem::Truncated { what: PLACE.into(), offset: 0, needed: needed as u64, available };
    if bytes.len() < 12 {
        return Err(cut(12));
    }
    if !bytes.starts_with(MAGIC) {
        return Err(Problem::field(PLACE, "magic", String::from_utf8_lossy(&bytes[..6]), "\\x93NUMPY"));
    }
    let (start, length) = match bytes[6] {
        1 => (10, u16::from_le_bytes([bytes[8], bytes[9]]) as usize),
        2 | 3 => (12, u32::from_le_bytes([bytes[8], bytes[9], bytes[10], bytes[11]]) as usize),
        version => return Err(Problem::field(PLACE, "version", version.to_string(), "1, 2 or 3")),
    };
    let offset = start + length;
    let dictionary = bytes.get(start..offset).ok_or(cut(offset))?;
    let dictionary = String::from_utf8_lossy(dictionary);
    let (precision, endian) = match quoted(item(&dictionary, "descr")?) {
        "<c16" => (Precision::Double, Endian::Little),
        ">c16" => (Precision::Double, Endian::Big),
        "<c8" => (Precision::Single, Endian::Little),
        ">c8" => (Precision::Single, Endian::Big),
        other => return Err(Problem::field(PLACE, "descr", other, "<c16, <c8, >c16 or >c8 (complex numbers)")),
    };
    let order = item(&dictionary, "fortran_order")?;
    if !order.starts_with("False") {
        let found = order.split(',').next().unwrap_or("");
        return Err(Problem::field(PLACE, "fortran_order", found, "False; save numpy.ascontiguousarray(field)"));
    }
    let shape = item(&dictionary, "shape")?;
    let inside = shape.split_once('(').and_then(|(_, rest)| rest.split_once(')')).map_or("", |(inside, _)| inside);
    let bad = || Problem::field(PLACE, "shape", shape, "(T, Z, Y, X, …) and then (4, 3, 3), (4, 3) or (3)");
    let axes = inside.split(',').map(str::trim).filter(|axis| !axis.is_empty());
    let axes: Vec<usize> = axes.map(|axis| axis.parse().map_err(|_| bad())).collect::<Result<_, _>>()?;
    let Some((&[t, z, y, x], site)) = axes.split_first_chunk::<4>() else { return Err(bad()) };
    let components = match site {
        [4, 3, 3] => 36,
        [4, 3] => 12,
        [3] => 3,
        _ => return Err(bad()),
    };
    let offset = offset as u64;
    let header = Header {
        lattice: lattice_from([x, y, z, t], PLACE)?,
        format: Format::Npy,
        checksum: None,
        plaquette: None,
        link_trace: None,
        metadata: Vec::new(),
        data_length: available.saturating_sub(offset),
        fields: 1,
        precision,
        endian,
        components,
        offset,
    };
    header.check_length(available)?;
    Ok(header)
}

/// What follows `'key':` in the dictionary.
fn item<'a>(dictionary: &'a str, key: &'static str) -> Result<&'a str, Problem> {
    let missing = || Problem::Missing { place: PLACE.into(), field: key, hint: "the header is corrupt" };
    let found = ['\'', '"'].into_iter().find_map(|q| dictionary.split_once(&format!("{q}{key}{q}")));
    let (_, rest) = found.ok_or_else(missing)?;
    rest.trim_start().strip_prefix(':').map(str::trim_start).ok_or_else(missing)
}

/// The text in quotes at the start of `text`.
fn quoted(text: &str) -> &str {
    text.split(['\'', '"']).nth(1).unwrap_or("")
}

/// Writes `values`, `site_shape` of them per site, for example `[4, 3]`.
pub(crate) fn write(
    writer: &mut impl Write,
    lattice: Lattice,
    site_shape: &[usize],
    values: &[Complex64],
    precision: Precision,
    endian: Endian,
) -> Result<(), Problem> {
    let [x, y, z, t] = lattice.size();
    let shape = [&[t, z, y, x], site_shape].concat();
    let shape = shape.iter().map(usize::to_string).collect::<Vec<_>>().join(", ");
    let order = if endian == Endian::Big { '>' } else { '<' };
    let comma = if site_shape.is_empty() { "," } else { "" };
    let descr = format!("{order}c{}", 2 * precision.bytes());
    let mut text = format!("{{'descr': '{descr}', 'fortran_order': False, 'shape': ({shape}{comma}), }}");
    // The data starts at a multiple of 64, after a line feed.
    let length = (10 + text.len() + 1).next_multiple_of(64) - 10;
    text += &" ".repeat(length - 1 - text.len());
    text.push('\n');
    let start = [MAGIC, &[1, 0], &(length as u16).to_le_bytes(), text.as_bytes()].concat();
    writer.write_all(&start).map_err(Problem::io("write"))?;
    // The kind does not matter: the checksum has no place in this format.
    let components = site_shape.iter().product();
    let form = Form { components, precision, endian, kind: ChecksumKind::Nersc };
    payload::encode(values, &form, |bytes| writer.write_all(bytes).map_err(Problem::io("write")))?;
    Ok(())
}
