//! NERSC archive format: a text header from `BEGIN_HEADER` to `END_HEADER`, followed by links. Sites are ordered with x fastest, with four
//! directions for each site. Links have two rows (`4D_SU3_GAUGE`) or three (`4D_SU3_GAUGE_3x3`).
use super::formats::{FileFamily, FileFormat, LinksFormat, LinksToWrite, MetadataPlace, Recognition};
use super::frame::Frame;
use super::milc::{STAMPS, stamp_of};
use super::payload::{self, ChecksumKind, LINKS, PartialChecksum, StoredForm, TWO_ROWS};
use super::{
    Arrangement, Endian, FilePrecision, Header, Leniency, Printed, Problem, ReadOptions, WriteOptions, checksum_from,
    colours_in, lattice_from, precision_from,
};
use crate::system::utc_now;
use std::io::{Cursor, Read, Seek, SeekFrom};

/// The family of NERSC's archive formats.
pub static NERSC_FAMILY: FileFamily = FileFamily {
    signature: "NERSC (\"BEGIN_HEADER\")",
    recognition: Recognition::Start(|start| start.starts_with(NERSC_MAGIC)),
    header: |image, options| header(image, options),
    block: |_, _, _| Ok(None),
    byte_order: "the header",
    formats: &[&NERSC, &NERSC_3X3],
};
/// NERSC format `4D_SU3_GAUGE`, with two rows of each link.
pub static NERSC: FileFormat = FileFormat {
    name: "nersc",
    title: "NERSC, two rows",
    flag: Some("nersc"),
    summary: "NERSC archive, two rows of each link",
    missing_feature: None,
    only: None,
    links: Some(LinksFormat { endings: &["nersc"], two_rows: true, off_su3: false, frame }),
    fermions: None,
    metadata: MetadataPlace::Keys { title: true },
};
/// NERSC format `4D_SU3_GAUGE_3x3`, with three rows of each link.
pub static NERSC_3X3: FileFormat = FileFormat {
    name: "nersc3x3",
    title: "NERSC, three rows",
    flag: Some("nersc3x3"),
    summary: "NERSC archive, three rows of each link",
    links: Some(LinksFormat { endings: &["nersc3x3"], two_rows: false, off_su3: false, frame }),
    ..NERSC
};

/// First bytes of a NERSC file.
pub const NERSC_MAGIC: &[u8] = b"BEGIN_HEADER";
/// Length of the longest header that is read, in bytes.
const LONGEST: u64 = 1 << 16;
const PLACE: &str = "NERSC header";

/// Parses the header of a NERSC file in memory.
pub fn parse(bytes: &[u8]) -> Result<Header, Problem> {
    header(&mut Cursor::new(bytes), &ReadOptions::default())
}

/// Reads the header of a NERSC file. Unknown keys are stored in `metadata`, and optional keys may be missing or empty. If `FLOATING_POINT`
/// does not specify the byte order (`IEEE32`, `IEEE64`), the order in which the links of the first site are unitary is used, because
/// programs write either order.
pub fn header<R: Read + Seek>(reader: &mut R, options: &ReadOptions) -> Result<Header, Problem> {
    let length = reader.seek(SeekFrom::End(0)).map_err(Problem::io("find the length"))?;
    reader.rewind().map_err(Problem::io("seek to the start"))?;
    let mut start = Vec::new();
    reader.by_ref().take(LONGEST).read_to_end(&mut start).map_err(Problem::io("read the NERSC header"))?;
    let (metadata, offset) = lines(&start)?;
    let get = |key: &'static str| {
        let value = metadata.iter().find(|(k, _)| k == key).map(|(_, value)| value.as_str());
        value.ok_or(Problem::Missing {
            place: PLACE.into(),
            field: key,
            hint: "restore the header, because the links cannot be read without this key",
        })
    };
    let bad = |key, found: &str, expected: &str| Problem::field(PLACE, key, found, expected);

    let datatype = get("DATATYPE")?;
    let (format, components) = match datatype.to_ascii_uppercase().as_str() {
        "4D_SU3_GAUGE" => (&NERSC, TWO_ROWS),
        "4D_SU3_GAUGE_3X3" => (&NERSC_3X3, LINKS),
        _ => {
            return Err(match colours_in(datatype) {
                Some(colours) if colours != 3 => Problem::other_group(PLACE, "DATATYPE", datatype, colours),
                _ => bad("DATATYPE", datatype, "4D_SU3_GAUGE or 4D_SU3_GAUGE_3x3"),
            });
        }
    };
    let mut size = [0; 4];
    for (extent, key) in size.iter_mut().zip(["DIMENSION_1", "DIMENSION_2", "DIMENSION_3", "DIMENSION_4"]) {
        let value = get(key)?;
        *extent = value.parse().map_err(|_| bad(key, value, "a number of sites"))?;
    }
    let lattice = lattice_from(size, PLACE)?;
    let floating = get("FLOATING_POINT")?;
    let Some((precision, endian)) = floating_point(floating) else {
        return Err(bad("FLOATING_POINT", floating, "IEEE32 or IEEE64, with or without BIG or LITTLE"));
    };
    // Optional keys may be present without a value.
    let given = |key| get(key).ok().filter(|text| !text.is_empty());
    let mut leniency = Leniency::new(options);
    let mut checksum = None;
    if let Some(text) = given("CHECKSUM") {
        let sum = checksum_from(text).ok_or_else(|| Problem::optional(PLACE, "CHECKSUM", text, "hexadecimal digits"));
        checksum = leniency.optional(sum)?.map(|sum| (ChecksumKind::Nersc, PartialChecksum([sum, 0])));
    }
    let mut printed = |key| match given(key) {
        None => Ok(None),
        Some(text) => {
            leniency.optional(Printed::parse(text).ok_or_else(|| Problem::optional(PLACE, key, text, "a number")))
        }
    };
    let (plaquette, link_trace) = (printed("PLAQUETTE")?, printed("LINK_TRACE")?);
    let endian_known = endian.is_some();
    let endian = endian.unwrap_or(Endian::Big);
    let mut header = Header {
        lattice,
        format,
        arrangement: Arrangement::Sites,
        precision,
        endian,
        components,
        offset,
        checksum,
        plaquette,
        link_trace,
        metadata,
        data_length: length - offset,
        fields: 1,
        notes: leniency.notes,
        omitted: Vec::new(),
    };
    header.check_length(length)?;
    if !endian_known {
        let mut bytes = vec![0; header.site_bytes()];
        reader.seek(SeekFrom::Start(offset)).map_err(Problem::io("seek to the data"))?;
        reader.read_exact(&mut bytes).map_err(Problem::io("read the data"))?;
        let off = |endian| payload::row_violation(&bytes, &Header { endian, ..header.clone() });
        let (big, little) = (off(Endian::Big), off(Endian::Little));
        header.endian = if little < big { Endian::Little } else { Endian::Big };
    }
    Ok(header)
}

/// Parses the precision and the byte order in the value of `FLOATING_POINT`, in the spellings of several programs.
fn floating_point(text: &str) -> Option<(FilePrecision, Option<Endian>)> {
    let word: String = text.chars().filter(char::is_ascii_alphanumeric).collect();
    let word = word.to_ascii_uppercase();
    let word = word.strip_suffix("ENDIAN").unwrap_or(&word);
    let orders = [("BIG", Endian::Big), ("LITTLE", Endian::Little)];
    let found = orders.into_iter().find_map(|(name, order)| Some((word.strip_suffix(name)?, Some(order))));
    let (word, order) = found.unwrap_or((word, None));
    Some((precision_from(word)?, order))
}

/// Returns the key and the value of every header line, and the offset of the data after `END_HEADER`.
fn lines(start: &[u8]) -> Result<(Vec<(String, String)>, u64), Problem> {
    let mut pairs: Vec<(String, String)> = Vec::new();
    let mut offset = 0;
    for line in start.split_inclusive(|&b| b == b'\n') {
        offset += line.len();
        let line = String::from_utf8_lossy(line);
        match line.split_once('=') {
            _ if line.trim() == "END_HEADER" && line.ends_with('\n') => return Ok((pairs, offset as u64)),
            Some((key, value)) => pairs.push((key.trim().to_owned(), value.trim().to_owned())),
            None => {}
        }
    }
    let hint = "write it on a separate line within the first 64 KiB, or copy the file again if it is cut short";
    Err(Problem::Missing { place: PLACE.into(), field: "END_HEADER", hint })
}

/// Whether a key has a value that writers compute from the field.
pub(super) fn is_computed(key: &str) -> bool {
    const KEYS: [&str; 11] = [
        "HDR_VERSION",
        "DATATYPE",
        "STORAGE_FORMAT",
        "DIMENSION_1",
        "DIMENSION_2",
        "DIMENSION_3",
        "DIMENSION_4",
        "CHECKSUM",
        "LINK_TRACE",
        "PLAQUETTE",
        "FLOATING_POINT",
    ];
    KEYS.contains(&key)
}

/// Makes the frame of a file of links, with two rows of each link if `options.format` is [`NERSC`], otherwise with three.
fn frame(links: &LinksToWrite, options: &WriteOptions) -> Result<Frame, Problem> {
    let (lattice, (plaquette, link_trace)) = (links.lattice(), links.measured()?);
    let (components, datatype) =
        if *options.format == NERSC { (TWO_ROWS, "4D_SU3_GAUGE") } else { (LINKS, "4D_SU3_GAUGE_3x3") };
    let form = StoredForm {
        components,
        precision: options.precision,
        endian: options.endian,
        kind: Some(ChecksumKind::Nersc),
    };
    let mut start = format!("BEGIN_HEADER\nHDR_VERSION = 1.0\nDATATYPE = {datatype}\nSTORAGE_FORMAT = 1.0\n");
    for (i, extent) in lattice.size().into_iter().enumerate() {
        put(&mut start, &format!("DIMENSION_{}", i + 1), &extent.to_string());
    }
    put(&mut start, "LINK_TRACE", &format!("{link_trace:.12}"));
    put(&mut start, "PLAQUETTE", &format!("{:.12}", plaquette.mean));
    let given = |key: &str| options.metadata.iter().any(|(k, _)| k == key);
    for key in (1..=4).map(|i| format!("BOUNDARY_{i}")).filter(|key| !given(key)) {
        put(&mut start, &key, "PERIODIC");
    }
    let mut end = String::new();
    let size = 8 * form.precision.bytes();
    let order = if form.endian == Endian::Big { "BIG" } else { "LITTLE" };
    put(&mut end, "FLOATING_POINT", &format!("IEEE{size}{order}"));
    let now = utc_now();
    let defaults = [
        ("ENSEMBLE_ID", "ferrite"),
        ("ENSEMBLE_LABEL", options.title.as_str()),
        ("SEQUENCE_NUMBER", "0"),
        ("CREATOR", concat!("ferrite ", env!("CARGO_PKG_VERSION"))),
        ("CREATION_DATE", stamp_of(&options.metadata).unwrap_or(&now)),
        ("ARCHIVE_DATE", &now),
    ];
    for (key, value) in defaults.into_iter().filter(|(key, _)| !given(key)) {
        put(&mut end, key, value);
    }
    for (key, value) in options.metadata.iter().filter(|(key, _)| key != STAMPS[0]) {
        put(&mut end, key, value);
    }
    let head = move |sum: PartialChecksum| {
        let mut text = start.clone();
        put(&mut text, "CHECKSUM", &ChecksumKind::Nersc.print(sum));
        (text + &end + "END_HEADER\n").into_bytes()
    };
    if head(PartialChecksum::default()).len() as u64 > LONGEST {
        return Err(Problem::Unwritable {
            why: "title and metadata make the NERSC header longer than 64 KiB: shorten the title or the metadata",
        });
    }
    Ok(Frame::headed(lattice, form, head))
}

/// Appends a line KEY = VALUE to a header.
fn put(text: &mut String, key: &str, value: &str) {
    // A line break would start another line, and `=` in the key would change the value.
    let clean = |s: &str| s.replace(['\n', '\r'], " ");
    *text += &format!("{} = {}\n", clean(key).replace('=', " "), clean(value));
}
