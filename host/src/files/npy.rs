//! NumPy's `.npy` files: complex arrays in C order. Links have the shape `[T, Z, Y, X, 4, 3, 3]`, spinors `[T, Z, Y, X, 4, 3]` (spin,
//! colour), and colour vectors `[T, Z, Y, X, 3]`. Propagators of the shapes `[T, Z, Y, X, 4, 4, 3, 3]` (sink spin, source spin, sink
//! colour, source colour) and `[T, Z, Y, X, 3, 3]` are read, but not written. The numbers on a site are in the order of the other formats.
use super::arrangement::ColumnOrder;
use super::formats::{FermionsFormat, FieldBlock, FileFamily, FileFormat, LinksFormat, MetadataPlace, Recognition};
use super::frame::Frame;
use super::payload::StoredForm;
use super::{Arrangement, Endian, FilePrecision, Header, Problem, WriteOptions, lattice_from};
use crate::lattice::Lattice;
use crate::system::atomic;
use num_complex::Complex64;
use std::io::{Cursor, Read, Seek, SeekFrom, Write};
use std::path::Path;

/// The family of NumPy's files.
pub static NPY_FAMILY: FileFamily = FileFamily {
    signature: "npy",
    recognition: Recognition::Start(|start| start.starts_with(NPY_MAGIC)),
    header: |image, _| header(image),
    block: |image, _, site| match propagator_header(image, site)? {
        Some(header) => Ok(Some(FieldBlock::of_columns(header, site.iter().product()))),
        None => Ok(block_header(image, site)?.map(|first| FieldBlock { first, records: Vec::new() })),
    },
    byte_order: "the header",
    formats: &[&NPY],
};
/// NumPy format: an array of links or fermion fields.
pub static NPY: FileFormat = FileFormat {
    name: "npy",
    title: "NumPy",
    flag: Some("npy"),
    summary: "NumPy array",
    missing_feature: None,
    only: None,
    links: Some(LinksFormat {
        endings: &["npy"],
        two_rows: false,
        off_su3: true,
        frame: |links, options| Ok(frame(links.lattice(), &[], &[4, 3, 3], options)),
    }),
    fermions: Some(FermionsFormat {
        endings: &["npy"],
        holds: |_, _| true,
        limits: "an npy file holds any number of fields",
        instead: "npy",
        endian: Endian::Little,
        frame: |fields, options| Ok(frame(fields.lattice, fields.axes, fields.site, options)),
    }),
    metadata: MetadataPlace::None,
};

/// First bytes of an `.npy` file.
pub const NPY_MAGIC: &[u8] = b"\x93NUMPY";
const PLACE: &str = "npy header";

/// Parses the header of an `.npy` file in memory.
pub fn parse(bytes: &[u8]) -> Result<Header, Problem> {
    header(&mut Cursor::new(bytes))
}

/// Description of an array of complex numbers in C order.
pub(crate) struct Array {
    pub precision: FilePrecision,
    pub endian: Endian,
    /// Lengths of the axes of the array, the slowest axis first.
    pub axes: Vec<usize>,
    /// Offset of the first byte of the data.
    pub offset: u64,
    /// Length of the file in bytes.
    pub length: u64,
}

/// Reads the header of an `.npy` file, and checks that it describes complex numbers in C order.
pub(crate) fn array<R: Read + Seek>(reader: &mut R) -> Result<Array, Problem> {
    let length = reader.seek(SeekFrom::End(0)).map_err(Problem::io("find the length"))?;
    reader.rewind().map_err(Problem::io("seek to the start"))?;
    let mut bytes = Vec::new();
    // A header of NumPy has about a hundred bytes, so the first 64 KiB of the file contain all of it.
    reader.by_ref().take(1 << 16).read_to_end(&mut bytes).map_err(Problem::io("read the npy header"))?;
    let cut =
        |needed: usize| Problem::Truncated { what: PLACE.into(), offset: 0, needed: needed as u64, available: length };
    if bytes.len() < 12 {
        return Err(cut(12));
    }
    if !bytes.starts_with(NPY_MAGIC) {
        return Err(Problem::field(PLACE, "magic", String::from_utf8_lossy(&bytes[..6]), "\\x93NUMPY"));
    }
    let (start, size) = match bytes[6] {
        1 => (10, u16::from_le_bytes([bytes[8], bytes[9]]) as usize),
        2 | 3 => (12, u32::from_le_bytes([bytes[8], bytes[9], bytes[10], bytes[11]]) as usize),
        version => return Err(Problem::field(PLACE, "version", version.to_string(), "1, 2 or 3")),
    };
    let offset = start + size;
    let dictionary = bytes.get(start..offset).ok_or(cut(offset))?;
    let dictionary = String::from_utf8_lossy(dictionary);
    let (precision, endian) = match quoted(item(&dictionary, "descr")?) {
        "<c16" => (FilePrecision::Double, Endian::Little),
        ">c16" => (FilePrecision::Double, Endian::Big),
        "<c8" => (FilePrecision::Single, Endian::Little),
        ">c8" => (FilePrecision::Single, Endian::Big),
        other => return Err(Problem::field(PLACE, "descr", other, "<c16, <c8, >c16 or >c8 (complex numbers)")),
    };
    let order = item(&dictionary, "fortran_order")?;
    if !order.starts_with("False") {
        let found = order.split(',').next().unwrap_or("");
        return Err(Problem::field(PLACE, "fortran_order", found, "False; save numpy.ascontiguousarray(field)"));
    }
    let shape = item(&dictionary, "shape")?;
    let inside = shape.split_once('(').and_then(|(_, rest)| rest.split_once(')')).map_or("", |(inside, _)| inside);
    let axes = inside.split(',').map(str::trim).filter(|axis| !axis.is_empty());
    let axes = axes.map(|axis| axis.parse().map_err(|_| bad_shape(shape))).collect::<Result<_, _>>()?;
    Ok(Array { precision, endian, axes, offset: offset as u64, length })
}

fn bad_shape(shape: &str) -> Problem {
    Problem::field(PLACE, "shape", shape, "(T, Z, Y, X) followed by (4, 3, 3), (4, 3), (3), (4, 4, 3, 3) or (3, 3)")
}

/// Returns the lengths of axes in parentheses.
fn shape(axes: &[usize]) -> String {
    format!("({})", axes.iter().map(usize::to_string).collect::<Vec<_>>().join(", "))
}

/// Reads the header of an `.npy` file with a field. The array must be complex64 or complex128 in either byte order, with four lattice axes
/// followed by those of a site.
pub fn header<R: Read + Seek>(reader: &mut R) -> Result<Header, Problem> {
    let array = array(reader)?;
    let bad = || bad_shape(&shape(&array.axes));
    let Some((lattice, site)) = array.axes.split_first_chunk::<4>() else { return Err(bad()) };
    let components = match site {
        [4, 3, 3] => 36,
        [4, 3] => 12,
        [3] => 3,
        // The axes are in the order of `Propagator.array()` in the Python package.
        [4, 4, 3, 3] => 144,
        [3, 3] => 9,
        [4, n, m] if n == m => {
            let found = shape(&array.axes);
            return Err(Problem::other_group(PLACE, "shape", &found, *n));
        }
        _ => return Err(bad()),
    };
    let mut header = array.header(*lattice, components)?;
    if let 144 | 9 = components {
        header.arrangement = Arrangement::Columns(ColumnOrder::SpinMatrix);
        header.fields = components.isqrt();
    }
    header.check_length(array.length)?;
    Ok(header)
}

/// Reads the header of a propagator whose columns are the last axes of an array. The shape is `[T, Z, Y, X, 4, 4, 3, 3]`, or `[T, Z, Y, X,
/// 3, 3]`, which is never interpreted as colour vectors on a lattice with X = 3. Returns `None` for other files.
fn propagator_header<R: Read + Seek>(reader: &mut R, site: &[usize]) -> Result<Option<Header>, Problem> {
    let site: &[usize] = if *site == [4, 3] { &[4, 4, 3, 3] } else { &[3, 3] };
    let array = array(reader)?;
    if array.axes.get(4..).is_none_or(|axes| axes != site) {
        return Ok(None);
    }
    let header = header(reader)?;
    let end = header.offset + header.needed();
    if end < array.length {
        return Err(Problem::Trailing { offset: end, extra: array.length - end, another: false });
    }
    Ok(Some(header))
}

/// Reads the header of several fields with the axes `site` on a site; an axis for the number of the field precedes those of the lattice.
/// Returns the header of the first field, or `None` for other files.
fn block_header<R: Read + Seek>(reader: &mut R, site: &[usize]) -> Result<Option<Header>, Problem> {
    let array = array(reader)?;
    let (count, lattice) = match *array.axes {
        [_, _, _, _, 3, 3] => return Ok(None),
        [count, t, z, y, x, ref its @ ..] if its == site => (count, [t, z, y, x]),
        _ => return Ok(None),
    };
    if count == 0 {
        return Err(Problem::field(PLACE, "shape", shape(&array.axes), "at least one field"));
    }
    let mut header = array.header(lattice, site.iter().product())?;
    header.fields = count;
    let what = || format!("the array of shape {} in {} precision", shape(&array.axes), header.precision);
    let (offset, available) = (header.offset, array.length.saturating_sub(header.offset));
    let needed = header.needed().saturating_mul(count as u64);
    if needed > available {
        return Err(Problem::Truncated { what: what(), offset, needed, available });
    }
    if needed < available {
        return Err(Problem::Trailing { offset: offset + needed, extra: available - needed, another: false });
    }
    header.data_length = header.needed();
    Ok(Some(header))
}

impl Array {
    fn header(&self, [t, z, y, x]: [usize; 4], components: usize) -> Result<Header, Problem> {
        Ok(Header {
            lattice: lattice_from([x, y, z, t], PLACE)?,
            format: &NPY,
            arrangement: Arrangement::Sites,
            checksum: None,
            plaquette: None,
            link_trace: None,
            metadata: Vec::new(),
            data_length: self.length.saturating_sub(self.offset),
            fields: 1,
            notes: Vec::new(),
            omitted: Vec::new(),
            precision: self.precision,
            endian: self.endian,
            components,
            offset: self.offset,
        })
    }
}

/// Returns the text after `'key':` in a dictionary of Python.
fn item<'a>(dictionary: &'a str, key: &'static str) -> Result<&'a str, Problem> {
    let missing = || Problem::Missing { place: PLACE.into(), field: key, hint: "the header is corrupt" };
    let found = ['\'', '"'].into_iter().find_map(|q| dictionary.split_once(&format!("{q}{key}{q}")));
    let (_, rest) = found.ok_or_else(missing)?;
    rest.trim_start().strip_prefix(':').map(str::trim_start).ok_or_else(missing)
}

/// Returns the text between the first two quotes.
fn quoted(text: &str) -> &str {
    text.split(['\'', '"']).nth(1).unwrap_or("")
}

/// Returns all bytes before the data of an array with these extents.
fn start(descr: &str, extents: &[usize]) -> Vec<u8> {
    let shape = shape(extents);
    let mut text = format!("{{'descr': '{descr}', 'fortran_order': False, 'shape': {shape}, }}");
    // The data start after a line feed, at an offset that is a multiple of 64.
    let length = (10 + text.len() + 1).next_multiple_of(64) - 10;
    text += &" ".repeat(length - 1 - text.len());
    text.push('\n');
    [NPY_MAGIC, &[1, 0], &(length as u16).to_le_bytes(), text.as_bytes()].concat()
}

/// Writes complex numbers in double precision as an array with this shape, the last axis fastest. The file is written completely or not at
/// all. Panics if the number of values is not the product of the extents.
pub fn write_complex(path: &Path, shape: &[usize], values: &[Complex64]) -> Result<(), Problem> {
    assert_eq!(values.len(), shape.iter().product::<usize>(), "as many numbers as the shape has places");
    atomic::write(path, |file| {
        let mut put = |bytes: &[u8]| file.write_all(bytes).map_err(Problem::io("write"));
        put(&start("<c16", shape))?;
        values.iter().try_for_each(|z| put(&[z.re.to_le_bytes(), z.im.to_le_bytes()].concat()))
    })
}

/// Makes the frame of a file of fields with the axes `site_shape` on a site, such as `[4, 3]`. The product of `axes` is the number of
/// fields.
pub(super) fn frame(lattice: Lattice, axes: &[usize], site_shape: &[usize], options: &WriteOptions) -> Frame {
    let [x, y, z, t] = lattice.size();
    let order = if options.endian == Endian::Big { '>' } else { '<' };
    let descr = format!("{order}c{}", 2 * options.precision.bytes());
    let start = start(&descr, &[axes, &[t, z, y, x], site_shape].concat());
    let components = site_shape.iter().product();
    // An `.npy` file does not contain a checksum.
    let form = StoredForm { components, precision: options.precision, endian: options.endian, kind: None };
    Frame::headed(lattice, form, move |_| start.clone())
}
