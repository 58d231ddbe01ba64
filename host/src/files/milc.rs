//! MILC's binary gauge configurations, in single precision with three rows: version 5 (magic number 20103) with checksums, and the older
//! version 1 (magic number 59354) without. Also the staggered propagators of MILC and Fermilab (magic number `71626434` in hexadecimal):
//! three colour vectors on each site, without a checksum. The magic number shows the byte order of a file, which may be either.
use super::formats::{
    FermionsFormat, FermionsToWrite, FieldBlock, FileFamily, FileFormat, LinksFormat, MetadataPlace, OnlyPrecision,
    Recognition,
};
use super::frame::Frame;
use super::payload::{ChecksumKind, LINKS, PartialChecksum, StoredForm};
use super::{Arrangement, ColumnOrder, Endian, FilePrecision, Header, Problem, WriteOptions, lattice_from};
use crate::field::host::{ColourVector, Fermion};
use crate::lattice::Lattice;
use crate::system::utc_now;
use std::io::{Cursor, Read, Seek, SeekFrom};
use std::time::{SystemTime, UNIX_EPOCH};

/// The family of MILC's formats, which are recognised by magic numbers in either byte order.
pub static MILC_FAMILY: FileFamily = FileFamily {
    signature: "MILC (87 4e 00 00 or 00 00 4e 87)",
    recognition: Recognition::Start(|start| start.first_chunk().is_some_and(|&first| recognise(first).is_some())),
    header: |image, _| header(image),
    block: |image, _, site| {
        let (header, components) = (header(image)?, site.iter().product::<usize>());
        Ok((header.components == components * components).then(|| FieldBlock::of_columns(header, components)))
    },
    byte_order: "the header",
    formats: &[&MILC, &MILC_V1, &MILC_PROPAGATOR],
};
/// MILC's configurations in version 5.
pub static MILC: FileFormat = FileFormat {
    name: "milc",
    title: "MILC version 5",
    flag: Some("milc"),
    summary: "links in MILC version 5, or three colour vectors as MILC's staggered propagator",
    missing_feature: None,
    only: Some(OnlyPrecision { precision: FilePrecision::Single, whose: "MILC files", others: "ILDG or NERSC" }),
    links: Some(LinksFormat {
        endings: &["milc"],
        two_rows: false,
        off_su3: false,
        frame: |links, options| frame(links.lattice(), options),
    }),
    fermions: None,
    metadata: MetadataPlace::Stamp(|keys| stamp_of(keys).is_some()),
};
/// MILC's configurations in version 1, which can only be read.
pub static MILC_V1: FileFormat = FileFormat {
    name: "milcv1",
    title: "MILC version 1",
    flag: None,
    links: Some(LinksFormat {
        endings: &[],
        two_rows: false,
        off_su3: false,
        frame: |_, _| Err(Problem::Unwritable { why: "MILC's version 1 has no checksum; use version 5" }),
    }),
    metadata: MetadataPlace::None,
    ..MILC
};
/// Staggered propagators of three colour vectors, in the format that MILC's and Fermilab's codes exchange.
pub static MILC_PROPAGATOR: FileFormat = FileFormat {
    name: "milcpropagator",
    title: "MILC staggered propagator",
    only: Some(OnlyPrecision { precision: FilePrecision::Single, whose: "MILC files", others: "SciDAC or npy" }),
    links: None,
    fermions: Some(FermionsFormat {
        endings: &["milc"],
        holds: |components, axes| components == ColourVector::COMPONENTS && axes == [components],
        limits: "of fermion fields, a MILC file holds only a staggered propagator of 3 colour vectors",
        instead: "SciDAC or npy",
        // MILC's programs read both byte orders; big-endian is customary for exchange between machines.
        endian: Endian::Big,
        frame: propagator_frame,
    }),
    metadata: MetadataPlace::Stamp(|keys| seconds_of(keys).is_some()),
    ..MILC
};

/// Magic number of configurations in version 5, which have a header of 96 bytes.
pub const MILC_MAGIC: u32 = 20103;
/// Magic number of configurations in version 1, which have a header of 28 bytes.
pub const MAGIC_V1: u32 = 59354;
/// Magic number of staggered propagators, which have a header of 36 bytes.
pub const MAGIC_PROPAGATOR: u32 = 0x7162_6434;
const V5: usize = 96;
const V1: usize = 28;
const PROPAGATOR: usize = 36;

/// Parses the header of a MILC file in memory.
pub fn parse(bytes: &[u8]) -> Result<Header, Problem> {
    header(&mut Cursor::new(bytes))
}

/// Returns the byte order and the format of a file that starts with these bytes; `None` if it is not MILC's.
fn recognise(start: [u8; 4]) -> Option<(Endian, &'static FileFormat)> {
    [Endian::Big, Endian::Little].into_iter().find_map(|endian| match endian.u32(start) {
        MILC_MAGIC => Some((endian, &MILC)),
        MAGIC_V1 => Some((endian, &MILC_V1)),
        MAGIC_PROPAGATOR => Some((endian, &MILC_PROPAGATOR)),
        _ => None,
    })
}

/// Reads the header of a MILC file.
pub fn header<R: Read + Seek>(reader: &mut R) -> Result<Header, Problem> {
    let available = reader.seek(SeekFrom::End(0)).map_err(Problem::io("find the length"))?;
    reader.rewind().map_err(Problem::io("seek to the start"))?;
    let mut bytes = Vec::new();
    reader.by_ref().take(V5 as u64).read_to_end(&mut bytes).map_err(Problem::io("read the MILC header"))?;
    let cut = |needed: usize| Problem::Truncated {
        what: "the MILC header".into(),
        offset: 0,
        needed: needed as u64,
        available,
    };
    let magic = *bytes.first_chunk::<4>().ok_or(cut(V5))?;
    let Some((endian, format)) = recognise(magic) else {
        let found = endian_free(magic);
        let expected = "20103, 59354 or 0x71626434 in either byte order";
        return Err(Problem::field("MILC header", "magic number", found, expected));
    };
    let (is_v5, is_propagator) = (*format == MILC, *format == MILC_PROPAGATOR);
    let needed = match (is_v5, is_propagator) {
        (true, _) => V5,
        (_, true) => PROPAGATOR,
        _ => V1,
    };
    if bytes.len() < needed {
        return Err(cut(needed));
    }
    let word = |at: usize| endian.u32([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]]);
    if is_propagator {
        return propagator(&word, endian, available);
    }
    let lattice = lattice_from([4, 8, 12, 16].map(|at| word(at) as usize), "MILC header")?;
    let mut metadata = Vec::new();
    let mut checksum = None;
    if is_v5 {
        let stamp = &bytes[20..84];
        let stamp = &stamp[..stamp.iter().position(|&b| b == 0).unwrap_or(stamp.len())];
        metadata.push((STAMPS[0].into(), String::from_utf8_lossy(stamp).trim().to_owned()));
        if word(84) != 0 {
            let expected = "0 (x fastest); other orders of sites are not supported";
            return Err(Problem::field("MILC header", "order", word(84).to_string(), expected));
        }
        checksum = Some((ChecksumKind::Milc, PartialChecksum([word(88), word(92)])));
    }
    let offset = needed as u64;
    let header = Header {
        lattice,
        format,
        arrangement: Arrangement::Sites,
        endian,
        offset,
        checksum,
        metadata,
        precision: FilePrecision::Single,
        components: LINKS,
        plaquette: None,
        link_trace: None,
        data_length: available - offset,
        fields: 1,
        notes: Vec::new(),
        omitted: Vec::new(),
    };
    header.check_length(available)?;
    Ok(header)
}

/// Parses the header of a staggered propagator. `word` returns its words in this order: magic number, time stamp, bytes of a real number,
/// real numbers on a site, extents, order of the sites.
fn propagator(word: &dyn Fn(usize) -> u32, endian: Endian, available: u64) -> Result<Header, Problem> {
    const PLACE: &str = "header of a MILC propagator";
    let bad = |field, at: usize, expected| Err(Problem::field(PLACE, field, word(at).to_string(), expected));
    let precision = match word(8) {
        4 => FilePrecision::Single,
        8 => FilePrecision::Double,
        _ => return bad("size of a number", 8, "4 or 8 bytes"),
    };
    if word(12) != 18 {
        let expected = "18 for a colour matrix; Wilson propagators are read from SciDAC files";
        return bad("count of numbers on a site", 12, expected);
    }
    if word(32) != 0 {
        return bad("order", 32, "0 (x fastest); other orders of sites are not supported");
    }
    let header = Header {
        lattice: lattice_from([16, 20, 24, 28].map(|at| word(at) as usize), PLACE)?,
        format: &MILC_PROPAGATOR,
        arrangement: Arrangement::Columns(ColumnOrder::Vectors),
        precision,
        endian,
        components: 9,
        offset: PROPAGATOR as u64,
        data_length: available - PROPAGATOR as u64,
        checksum: None,
        plaquette: None,
        link_trace: None,
        metadata: vec![(STAMPS[0].into(), format!("{}{SINCE}", word(4)))],
        fields: 1,
        notes: Vec::new(),
        omitted: Vec::new(),
    };
    header.check_length(available)?;
    Ok(header)
}

fn endian_free(bytes: [u8; 4]) -> String {
    bytes.iter().map(|b| format!("{b:02x}")).collect::<Vec<_>>().join(" ")
}

/// Keys of the creation time in headers.
pub(super) const STAMPS: [&str; 2] = ["time stamp", "CREATION_DATE"];

/// Returns the creation time of a field, if it is known and shorter than 64 characters.
pub(super) fn stamp_of(metadata: &[(String, String)]) -> Option<&str> {
    let find = |key| metadata.iter().find(|(its, _)| its == key).map(|(_, stamp)| stamp.as_str());
    STAMPS.into_iter().find_map(find).filter(|stamp| (1..64).contains(&stamp.len()))
}

/// Text that follows the number in the time stamp of a propagator.
const SINCE: &str = " seconds since 1970";

/// Returns the creation time of a propagator in seconds since 1970, if it is known in this form.
pub(super) fn seconds_of(metadata: &[(String, String)]) -> Option<u32> {
    let stamp = metadata.iter().find(|(key, _)| key == STAMPS[0]);
    stamp.and_then(|(_, text)| text.strip_suffix(SINCE)?.parse().ok())
}

/// Makes the frame of a file of a staggered propagator. It must be in single precision, because MILC reads no other.
fn propagator_frame(fields: &FermionsToWrite, options: &WriteOptions) -> Result<Frame, Problem> {
    if options.precision != FilePrecision::Single {
        return Err(Problem::Unwritable {
            why: "MILC propagators are written in single precision only; choose single precision, or SciDAC or npy",
        });
    }
    let lattice = fields.lattice;
    let (endian, [x, y, z, t]) = (options.endian, lattice.size().map(|extent| extent as u32));
    let form = StoredForm { components: 9, precision: FilePrecision::Single, endian, kind: None };
    let now = || SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs() as u32);
    let seconds = seconds_of(&options.metadata).unwrap_or_else(now);
    let words = [MAGIC_PROPAGATOR, seconds, 4, 18, x, y, z, t, 0];
    let head = words.into_iter().flat_map(|word| endian.bytes(word)).collect::<Vec<u8>>();
    let frame = Frame::headed(lattice, form, move |_| head.clone());
    Ok(Frame { arrangement: Arrangement::Columns(ColumnOrder::Vectors), ..frame })
}

/// Makes the frame of a file of links in version 5.
pub(super) fn frame(lattice: Lattice, options: &WriteOptions) -> Result<Frame, Problem> {
    if options.precision != FilePrecision::Single {
        return Err(Problem::Unwritable {
            why: "MILC files hold single precision only; choose single precision, or ILDG or NERSC",
        });
    }
    let endian = options.endian;
    let form =
        StoredForm { components: LINKS, precision: FilePrecision::Single, endian, kind: Some(ChecksumKind::Milc) };
    let stamp = stamp_of(&options.metadata).map_or_else(utc_now, String::from);
    let head = move |PartialChecksum([sum29, sum31]): PartialChecksum| {
        let mut header = vec![0; V5];
        let mut put = |at: usize, word: u32| header[at..at + 4].copy_from_slice(&endian.bytes(word));
        put(0, MILC_MAGIC);
        for (at, extent) in [4, 8, 12, 16].into_iter().zip(lattice.size()) {
            put(at, extent as u32);
        }
        put(88, sum29);
        put(92, sum31);
        header[20..20 + stamp.len()].copy_from_slice(stamp.as_bytes());
        header
    };
    Ok(Frame::headed(lattice, form, head))
}
