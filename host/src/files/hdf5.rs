//! Links, fermion fields and correlators in HDF5 files, if the crate is built with the feature `hdf5`.
//!
//! | dataset | content | shape |
//! |---|---|---|
//! | `links` | links | `[T, Z, Y, X, 4, 3, 3]` |
//! | `spinors` | a spinor field, or several | `[T, Z, Y, X, 4, 3]`, or one axis before these |
//! | `colour_vectors` | a field of colour vectors, or several | `[T, Z, Y, X, 3]`, or one axis before these |
//! | `correlators` | correlators of `ferrite spectrum` | `[configuration, correlator, time]` |
//!
//! Complex numbers are compounds of two floating-point numbers `r` and `i`, as in h5py. The file has the attributes
//! `format` (`ferrite.hdf5/1`), `title` and `program`. A dataset of a single field has the attribute `checksum`, which is the
//! SciDAC checksum. Datasets of links have `plaquette` and `link_trace`, and all datasets of fields have `metadata`, which
//! consists of lines `KEY = VALUE`.
//!
//! Datasets are contiguous. The HDF5 library returns the offset of the numbers, and any number of processes can read and write
//! them like those of other formats. A file of another program is read if one of its datasets has a name in the table, or if
//! it has only one dataset.
use super::formats::{FermionsFormat, FieldBlock, FileFamily, FileFormat, LinksFormat, MetadataPlace, Recognition};
use super::frame::Frame;
use super::image::Image;
use super::{Endian, Header, Problem, WriteOptions};
use crate::lattice::Lattice;

/// The family of HDF5 files.
pub static HDF5_FAMILY: FileFamily = FileFamily {
    signature: "",
    recognition: Recognition::Start(|start| start.starts_with(HDF5_MAGIC)),
    header: |image, _| header(image),
    block: |image, _, site| {
        let first = header(image)?;
        let is_block = first.fields > 1 && first.components == site.iter().product::<usize>();
        Ok(is_block.then(|| FieldBlock { first, records: Vec::new() }))
    },
    byte_order: "the header",
    formats: &[&HDF5],
};
/// HDF5 format: a dataset of links or fermion fields.
pub static HDF5: FileFormat = FileFormat {
    name: "hdf5",
    title: "HDF5",
    flag: Some("hdf5"),
    summary: "HDF5",
    missing_feature: if cfg!(feature = "hdf5") { None } else { Some("hdf5") },
    only: None,
    links: Some(LinksFormat {
        endings: &["h5", "hdf5"],
        two_rows: false,
        off_su3: true,
        frame: |links, options| {
            let (plaquette, link_trace) = links.measured()?;
            frame(links.lattice(), &[], &[4, 3, 3], Some([plaquette.mean, link_trace]), options)
        },
    }),
    fermions: Some(FermionsFormat {
        endings: &["h5", "hdf5"],
        holds: |_, axes| axes.len() <= 1,
        limits: "an HDF5 file holds at most one axis before those of the lattice",
        instead: "npy",
        endian: Endian::Little,
        frame: |fields, options| frame(fields.lattice, fields.axes, fields.site, None, options),
    }),
    metadata: MetadataPlace::Keys { title: false },
};

/// First bytes of an HDF5 file.
pub const HDF5_MAGIC: &[u8] = b"\x89HDF\r\n\x1a\n";

#[cfg(not(feature = "hdf5"))]
const WITHOUT: &str = "this build of Ferrite does not include HDF5: build it with the feature hdf5, or use npy";

/// Returns the frame around a field. `axes` are those before the axes of the lattice. `values` are the plaquette and the link trace of a
/// gauge field.
#[cfg(not(feature = "hdf5"))]
fn frame(_: Lattice, _: &[usize], _: &[usize], _: Option<[f64; 2]>, _: &WriteOptions) -> Result<Frame, Problem> {
    Err(Problem::Unwritable { why: WITHOUT })
}

/// Returns the header of the first field in a file.
#[cfg(not(feature = "hdf5"))]
fn header(_: &mut Image) -> Result<Header, Problem> {
    Err(Problem::OtherFormat { what: "an HDF5 file", hint: WITHOUT })
}

#[cfg(feature = "hdf5")]
pub use with_library::write_correlators;
#[cfg(feature = "hdf5")]
use with_library::{frame, header};

#[cfg(feature = "hdf5")]
mod with_library {
    use super::{Endian, Frame, HDF5, Header, Image, Lattice, Problem, WriteOptions};
    use crate::files::payload::{ChecksumKind, LINKS, PartialChecksum, StoredForm};
    use crate::files::{Arrangement, FilePrecision, Printed, checksum_from, lattice_from};
    use crate::system::atomic;
    use hdf5_metno::dataset::{AllocTime, FillTime};
    use hdf5_metno::datatype::ByteOrder;
    use hdf5_metno::types::{FixedAscii, FloatSize, TypeDescriptor, VarLenUnicode};
    use hdf5_metno::{Dataset, File, H5Type, Location};
    use num_complex::{Complex32, Complex64};
    use serde::{Deserialize, Serialize};
    use std::io::{Read, Seek, SeekFrom, Write};
    use std::path::{Path, PathBuf};
    use std::sync::atomic::{AtomicUsize, Ordering};

    const FORMAT: &str = "ferrite.hdf5/1";
    /// Names of datasets of fields, with the lengths of the axes of a site.
    const FIELDS: [(&str, &[usize]); 3] = [("links", &[4, 3, 3]), ("spinors", &[4, 3]), ("colour_vectors", &[3])];
    const CHECKSUM: &str = "checksum";
    /// Placeholder for the checksum, which consists of two numbers of eight digits, until it is known.
    const UNKNOWN: &str = "???????? ????????";
    const PLACE: &str = "HDF5 file";

    type Found<T> = Result<T, hdf5_metno::Error>;

    /// Returns the problem for a file that the HDF5 library rejects, with the first line of the library's message.
    fn refused(error: &hdf5_metno::Error) -> Problem {
        let said = error.to_string();
        Problem::field(
            PLACE,
            "error of the HDF5 library",
            said.lines().next().unwrap_or_default(),
            "no error; check that the temporary folder has enough space (TMPDIR selects it)",
        )
    }

    /// Path of a temporary file for the HDF5 library; the file is removed when this value is dropped.
    struct Scratch(PathBuf);

    impl Scratch {
        fn new() -> Self {
            static NUMBER: AtomicUsize = AtomicUsize::new(0);
            let number = NUMBER.fetch_add(1, Ordering::Relaxed);
            Scratch(std::env::temp_dir().join(format!("ferrite-{}-{number}.h5", std::process::id())))
        }
        /// Returns the problem that the finished file cannot be read.
        fn unread(&self, source: std::io::Error) -> Problem {
            let file = self.0.display();
            let action = format!(
                "read back the temporary file {file}, which the HDF5 library wrote (TMPDIR selects its folder)"
            );
            Problem::Io { action: action.into(), source }
        }
    }

    impl Drop for Scratch {
        fn drop(&mut self) {
            let _ = std::fs::remove_file(&self.0);
        }
    }

    fn text(at: &Location, name: &str, text: &str) -> Found<()> {
        // Texts in HDF5 must not contain a zero byte.
        let text: VarLenUnicode = text.replace('\0', " ").parse().map_err(|_| "a text that HDF5 cannot store")?;
        at.new_attr::<VarLenUnicode>().create(name)?.write_scalar(&text)
    }

    fn number(at: &Location, name: &str, value: f64) -> Found<()> {
        at.new_attr::<f64>().create(name)?.write_scalar(&value)
    }

    fn begin(file: &File, title: &str) -> Found<()> {
        text(file, "format", FORMAT)?;
        text(file, "program", concat!("ferrite ", env!("CARGO_PKG_VERSION")))?;
        text(file, "title", title)
    }

    /// Returns the frame around a field. `axes` are those before the axes of the lattice. `values` are the plaquette and the link trace of
    /// a gauge field.
    pub(crate) fn frame(
        lattice: Lattice,
        axes: &[usize],
        site: &[usize],
        values: Option<[f64; 2]>,
        options: &WriteOptions,
    ) -> Result<Frame, Problem> {
        let [x, y, z, t] = lattice.size();
        let shape = [axes, &[t, z, y, x], site].concat();
        let name = FIELDS.into_iter().find(|(_, its)| *its == site).map_or(FIELDS[0].0, |(name, _)| name);
        let kind = axes.is_empty().then_some(ChecksumKind::Scidac);
        let lines = options
            .metadata
            .iter()
            .map(|(key, value)| format!("{} = {}\n", clean(key).replace('=', " "), clean(value)));
        let lines: String = lines.collect();
        let build = |path: &Path| -> Found<Option<u64>> {
            let file = File::create_excl(path)?;
            begin(&file, &options.title)?;
            let dataset = match options.precision {
                FilePrecision::Single => empty::<Complex32>(&file, &shape, name)?,
                FilePrecision::Double => empty::<Complex64>(&file, &shape, name)?,
            };
            if kind.is_some() {
                let unknown = FixedAscii::<17>::from_ascii(UNKNOWN).map_err(|_| "not ASCII")?;
                dataset.new_attr::<FixedAscii<17>>().create(CHECKSUM)?.write_scalar(&unknown)?;
            }
            if let Some([plaquette, link_trace]) = values {
                number(&dataset, "plaquette", plaquette)?;
                number(&dataset, "link_trace", link_trace)?;
            }
            text(&dataset, "metadata", &lines)?;
            Ok(dataset.offset())
        };
        let (scratch, form) = (
            Scratch::new(),
            StoredForm {
                components: site.iter().product(),
                precision: options.precision,
                endian: Endian::Little,
                kind,
            },
        );
        let offset = build(&scratch.0).map_err(|error| refused(&error))?;
        let offset = offset.ok_or(Problem::Unwritable {
            why: "the HDF5 library does not report the position of the data; write npy",
        })?;
        let data = shape.iter().product::<usize>() as u64 / form.components as u64 * form.site_bytes() as u64;
        let (head, tail) = around(&scratch.0, offset, data).map_err(|error| scratch.unread(error))?;
        let known = move |bytes: &[u8], sum: PartialChecksum| {
            let mut bytes = bytes.to_vec();
            let at = bytes.windows(UNKNOWN.len()).position(|window| window == UNKNOWN.as_bytes());
            if let (Some(at), Some(kind)) = (at, kind) {
                bytes[at..at + UNKNOWN.len()].copy_from_slice(kind.print(sum).as_bytes());
            }
            bytes
        };
        let frame = Frame::headed(lattice, form, move |sum| known(&head, sum));
        Ok(Frame { tail: Box::new(move |sum| known(&tail, sum)), ..frame })
    }

    /// Returns a text in which spaces replace line breaks.
    fn clean(text: &str) -> String {
        text.replace(['\n', '\r'], " ")
    }

    /// Makes a dataset with space for its numbers, but does not write them.
    fn empty<T: H5Type>(file: &File, shape: &[usize], name: &str) -> Found<Dataset> {
        let builder = file.new_dataset_builder().alloc_time(Some(AllocTime::Early)).fill_time(FillTime::Never);
        builder.empty::<T>().shape(shape).create(name)
    }

    /// Returns the bytes before and after the data of a file. The data have `data` bytes and begin at `offset`; they may be missing,
    /// because they have not been written.
    fn around(path: &Path, offset: u64, data: u64) -> std::io::Result<(Vec<u8>, Vec<u8>)> {
        let mut file = std::fs::File::open(path)?;
        let (mut head, mut tail) = (Vec::new(), Vec::new());
        Read::by_ref(&mut file).take(offset).read_to_end(&mut head)?;
        head.resize(offset as usize, 0);
        file.seek(SeekFrom::Start(offset + data))?;
        file.read_to_end(&mut tail)?;
        Ok((head, tail))
    }

    /// Contents of a file according to the HDF5 library. They are the same on all processes.
    #[derive(Serialize, Deserialize)]
    enum Contents {
        /// The library cannot read the file; the value is its message.
        Refused(String),
        /// No dataset has a known name, and there is not exactly one dataset. The value lists the names of datasets and groups.
        Other(Vec<String>),
        /// The dataset that contains links or fermion fields.
        Field(DatasetRecord),
    }

    /// A dataset and its attributes.
    #[derive(Serialize, Deserialize)]
    struct DatasetRecord {
        name: String,
        shape: Vec<usize>,
        /// Name of the type of the numbers, for messages.
        kind: String,
        /// Number of bytes of the real part, which is also that of the imaginary part; `None` if the numbers are not complex.
        bytes: Option<usize>,
        is_big_endian: bool,
        /// Offset of the numbers in bytes; `None` if they are not contiguous in the file.
        offset: Option<u64>,
        checksum: Option<String>,
        plaquette: Option<f64>,
        link_trace: Option<f64>,
        metadata: Option<String>,
    }

    /// Returns the header of the first field in a file.
    pub(crate) fn header(image: &mut Image) -> Result<Header, Problem> {
        let look = |path: &Path| {
            let found = look(path).unwrap_or_else(|error| Contents::Refused(error.to_string()));
            serde_json::to_vec(&found).expect("texts and numbers")
        };
        let Some(bytes) = image.found(look) else {
            return Err(Problem::OtherFormat {
                what: "an HDF5 file",
                hint: "give the path of the file, because the HDF5 library reads only files with a path",
            });
        };
        let length = image.seek(SeekFrom::End(0)).map_err(Problem::io("find the length"))?;
        let bad = |field, found: String, expected: &str| Err(Problem::field(PLACE, field, found, expected));
        let refused = |error: &str| {
            let found = error.lines().next().unwrap_or_default().into();
            bad("error of the HDF5 library", found, "no error; copy or write the file again")
        };
        let found = match serde_json::from_slice(&bytes) {
            Ok(Contents::Field(found)) => found,
            Ok(Contents::Other(names)) => {
                let expected = "a dataset named links, spinors or colour_vectors, or a single dataset";
                return bad("list of datasets", names.join(", "), expected);
            }
            Ok(Contents::Refused(error)) => return refused(&error),
            Err(error) => return refused(&error.to_string()),
        };
        let DatasetRecord { name, shape, .. } = &found;
        let said = || format!("{shape:?} of {name}");
        let sites = FIELDS.into_iter().find_map(|(_, site)| {
            let (lattice, its) = shape.split_at_checked(shape.len().checked_sub(site.len())?)?;
            (its == site && matches!(lattice.len(), 4 | 5)).then_some((lattice, site))
        });
        // An array with the shape [n, T, Z, Y, 4, 3] could contain spinors, or n fields of colour vectors with X = 4. The name of the
        // dataset distinguishes them.
        let sites = match FIELDS.into_iter().find(|(its, _)| *its == name) {
            Some((_, site)) if shape.ends_with(site) && matches!(shape.len() - site.len(), 4 | 5) => {
                Some((&shape[..shape.len() - site.len()], site))
            }
            Some(_) => None,
            None => sites,
        };
        let Some((lattice, site)) = sites.filter(|(lattice, site)| lattice.len() == 4 || site.len() < 3) else {
            return bad(
                "shape",
                said(),
                "(T, Z, Y, X, 4, 3, 3) for links, (T, Z, Y, X, 4, 3) for spinors or (T, Z, Y, X, 3) for colour vectors; \
                 fermion fields may have one more axis before T",
            );
        };
        let (fields, lattice) = match *lattice {
            [t, z, y, x] => (1, [x, y, z, t]),
            [count, t, z, y, x] => (count, [x, y, z, t]),
            _ => return bad("shape", said(), "four axes of the lattice"),
        };
        if fields == 0 {
            return bad("shape", said(), "at least one field");
        }
        let precision = match found.bytes {
            Some(4) => FilePrecision::Single,
            Some(8) => FilePrecision::Double,
            _ => {
                return bad("type", found.kind.clone(), "complex numbers: a compound of r and i, of 4 or 8 bytes each");
            }
        };
        let Some(offset) = found.offset else {
            let expected =
                "a contiguous dataset with data; if it has data, convert the file with `h5repack -l CONTI IN OUT`";
            return bad("storage", format!("dataset {name} is chunked, compressed or empty"), expected);
        };
        let stacked = if lattice.len() + site.len() < shape.len() { Some(fields) } else { None };
        let sum = found.checksum.as_deref().and_then(|text| {
            let (a, b) = text.split_once(' ')?;
            Some((ChecksumKind::Scidac, PartialChecksum([checksum_from(a)?, checksum_from(b)?])))
        });
        let printed = |value| Printed { value, resolution: 1e-12 };
        let pair = |line: &str| line.split_once(" = ").map(|(key, value)| (key.to_owned(), value.to_owned()));
        let header = Header {
            lattice: lattice_from(lattice, PLACE)?,
            format: &HDF5,
            arrangement: Arrangement::Sites,
            precision,
            endian: if found.is_big_endian { Endian::Big } else { Endian::Little },
            components: if site.len() == 3 { LINKS } else { site.iter().product() },
            offset,
            data_length: 0,
            checksum: sum,
            plaquette: found.plaquette.map(printed),
            link_trace: found.link_trace.map(printed),
            metadata: found.metadata.as_deref().unwrap_or_default().lines().filter_map(pair).collect(),
            fields: stacked.unwrap_or(1),
            notes: Vec::new(),
            omitted: Vec::new(),
        };
        let header = Header { data_length: header.needed(), ..header };
        let needed = header.needed().saturating_mul(fields as u64);
        if needed > length.saturating_sub(offset) {
            let what = format!("the data of {name}");
            return Err(Problem::Truncated { what, offset, needed, available: length.saturating_sub(offset) });
        }
        Ok(header)
    }

    /// Returns the contents of a file according to the HDF5 library.
    fn look(path: &Path) -> Found<Contents> {
        let file = File::open(path)?;
        let names = file.member_names()?;
        let known = FIELDS.into_iter().map(|(name, _)| name).find(|name| names.iter().any(|its| its == name));
        let alone = || file.datasets().ok().filter(|all| all.len() == 1).and_then(|mut all| all.pop());
        let Some(dataset) = known.map(|name| file.dataset(name)).transpose()?.or_else(alone) else {
            return Ok(Contents::Other(names));
        };
        let kind = dataset.dtype()?;
        let is_big_endian = kind.byte_order() == ByteOrder::BigEndian;
        let kind = kind.to_descriptor()?;
        let bytes = match &kind {
            TypeDescriptor::Compound(pair) => match &pair.fields[..] {
                [r, i] if (&*r.name, &*i.name, r.offset, &r.ty) == ("r", "i", 0, &i.ty) => match r.ty {
                    TypeDescriptor::Float(FloatSize::U4) if (i.offset, pair.size) == (4, 8) => Some(4),
                    TypeDescriptor::Float(FloatSize::U8) if (i.offset, pair.size) == (8, 16) => Some(8),
                    _ => None,
                },
                _ => None,
            },
            _ => None,
        };
        let number = |name: &str| dataset.attr(name).and_then(|attribute| attribute.read_scalar::<f64>()).ok();
        let said = |name: &str| {
            let attribute = dataset.attr(name).ok()?;
            attribute.read_scalar::<VarLenUnicode>().map(|text| text.to_string()).ok()
        };
        let sum = dataset.attr(CHECKSUM).and_then(|attribute| attribute.read_scalar::<FixedAscii<17>>()).ok();
        Ok(Contents::Field(DatasetRecord {
            name: dataset.name().trim_start_matches('/').to_owned(),
            shape: dataset.shape(),
            kind: kind.to_string(),
            bytes,
            is_big_endian,
            offset: if dataset.is_chunked() { None } else { dataset.offset() },
            checksum: sum.map(|sum| sum.to_string()),
            plaquette: number("plaquette"),
            link_trace: number("link_trace"),
            metadata: said("metadata"),
        }))
    }

    /// Writes correlators to an HDF5 file, completely or not at all. `values` have the shape `[configuration, correlator, time]`. The
    /// attribute `axes` of the dataset contains `axes`, a description of the axes.
    ///
    /// # Errors
    /// Fails if the HDF5 library or the operating system fails.
    ///
    /// # Panics
    /// Panics if the number of `values` is not the product of the extents in `shape`.
    pub fn write_correlators(path: &Path, shape: [usize; 3], values: &[Complex64], axes: &str) -> Result<(), Problem> {
        assert_eq!(values.len(), shape.iter().product::<usize>(), "as many numbers as the shape has places");
        let scratch = Scratch::new();
        let build = || -> Found<()> {
            let file = File::create_excl(&scratch.0)?;
            begin(&file, "correlators")?;
            let dataset = file.new_dataset::<Complex64>().shape(shape).create("correlators")?;
            dataset.write_raw(values)?;
            text(&dataset, "axes", axes)
        };
        build().map_err(|error| refused(&error))?;
        let bytes = std::fs::read(&scratch.0).map_err(|error| scratch.unread(error))?;
        atomic::write(path, |file| file.write_all(&bytes).map_err(Problem::io("write")))
    }
}
