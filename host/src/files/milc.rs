//! MILC's binary gauge configurations: version 5 (magic number 20103, checksums) and the older version 1 (59354, none).
//! Single precision, three rows, in the byte order of the magic number, which may be either.
use super::frame::Frame;
use super::payload::{ChecksumKind, LINKS, PartialChecksum, StoredForm};
use super::{Endian, FileFormat, FilePrecision, Header, Problem, WriteOptions, lattice_from};
use crate::lattice::Lattice;
use crate::system::utc_now;
use std::io::{Cursor, Read, Seek, SeekFrom};

/// Version 5: header of 96 bytes.
pub const MAGIC: u32 = 20103;
/// Version 1: header of 28 bytes.
pub const MAGIC_V1: u32 = 59354;
const V5: usize = 96;
const V1: usize = 28;

/// Header of a file in memory.
pub fn parse(bytes: &[u8]) -> Result<Header, Problem> {
    header(&mut Cursor::new(bytes))
}

/// Byte order and version of a file that starts with these bytes, if it is MILC's.
pub(crate) fn recognise(start: [u8; 4]) -> Option<(Endian, FileFormat)> {
    [Endian::Big, Endian::Little].into_iter().find_map(|endian| match endian.u32(start) {
        MAGIC => Some((endian, FileFormat::Milc)),
        MAGIC_V1 => Some((endian, FileFormat::MilcV1)),
        _ => None,
    })
}

/// Reads the header.
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
        return Err(Problem::field("MILC header", "magic number", found, "20103 or 59354 in either byte order"));
    };
    let needed = if format == FileFormat::Milc { V5 } else { V1 };
    if bytes.len() < needed {
        return Err(cut(needed));
    }
    let word = |at: usize| endian.u32([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]]);
    let lattice = lattice_from([4, 8, 12, 16].map(|at| word(at) as usize), "MILC header")?;
    let mut metadata = Vec::new();
    let mut checksum = None;
    if format == FileFormat::Milc {
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

fn endian_free(bytes: [u8; 4]) -> String {
    bytes.iter().map(|b| format!("{b:02x}")).collect::<Vec<_>>().join(" ")
}

/// Keys of the time of creation in headers.
pub(super) const STAMPS: [&str; 2] = ["time stamp", "CREATION_DATE"];

/// The time of creation, if there is one and it fits into 64 characters.
pub(super) fn stamp_of(metadata: &[(String, String)]) -> Option<&str> {
    let find = |key| metadata.iter().find(|(its, _)| its == key).map(|(_, stamp)| stamp.as_str());
    STAMPS.into_iter().find_map(find).filter(|stamp| (1..64).contains(&stamp.len()))
}

/// A file of version 5.
pub(crate) fn frame(lattice: Lattice, options: &WriteOptions) -> Result<Frame, Problem> {
    if options.precision != FilePrecision::Single {
        return Err(Problem::Unwritable { why: "MILC files hold single precision only; choose it, or ILDG or NERSC" });
    }
    let endian = options.endian;
    let form =
        StoredForm { components: LINKS, precision: FilePrecision::Single, endian, kind: Some(ChecksumKind::Milc) };
    let stamp = stamp_of(&options.metadata).map_or_else(utc_now, String::from);
    let head = move |PartialChecksum([sum29, sum31]): PartialChecksum| {
        let mut header = vec![0; V5];
        let mut put = |at: usize, word: u32| header[at..at + 4].copy_from_slice(&endian.bytes(word));
        put(0, MAGIC);
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
