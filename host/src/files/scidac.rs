//! Fields in LIME files, as SciDAC's and ILDG's conventions lay them out: a data record (`ildg-binary-data` or
//! `scidac-binary-data`) among records of XML that tell lattice, precision, type and checksum.
//!
//! Files in use lack any of the XML records, set LIME's message flags wrongly and order records in several ways. So a
//! record belongs to the data record it stands next to: descriptions to the following one, a checksum to the preceding
//! one, and in a file with a single data record everything belongs to that.
use super::frame::Frame;
use super::lime::{self, MessageFlags, Record};
use super::payload::{ChecksumKind, LINKS, PartialChecksum, StoredForm};
use super::{
    Endian, FileFormat, FilePrecision, Header, Printed, Problem, ReadOptions, WriteOptions, ildg, lattice_from, xml,
};
use crate::lattice::Lattice;
use crate::system::utc_now;
use std::io::{Cursor, Read, Seek};

const FILE: &str = "scidac-private-file-xml record";
const RECORD: &str = "scidac-private-record-xml record";
const ILDG: &str = "ildg-format record";

/// Header of a field of a file in memory.
pub fn parse(bytes: &[u8], options: &ReadOptions) -> Result<Header, Problem> {
    header(&mut Cursor::new(bytes), options)
}

/// Reads the description of data record number `options.record`.
pub fn header<R: Read + Seek>(reader: &mut R, options: &ReadOptions) -> Result<Header, Problem> {
    let records = lime::records(reader)?;
    let is_data = |r: &Record| matches!(r.kind.as_str(), "ildg-binary-data" | "scidac-binary-data");
    let fields: Vec<usize> = (0..records.len()).filter(|&i| is_data(&records[i])).collect();
    let Some(&at) = fields.get(options.record) else {
        let found = format!("{} data records", fields.len());
        let expected = format!("ildg-binary-data or scidac-binary-data number {}", options.record);
        return Err(Problem::field("LIME file", "content", found, expected));
    };
    let data = &records[at];
    let before = &records[options.record.checked_sub(1).map_or(0, |i| fields[i] + 1)..at];
    let after = &records[at + 1..fields.get(options.record + 1).copied().unwrap_or(records.len())];
    let mut text_of = |record: Option<&Record>| match record {
        None => Ok(None),
        Some(record) => lime::text(reader, record),
    };
    let alone = fields.len() == 1;
    let described = |kind: &str| {
        let found = before.iter().rev().find(|r| r.kind == kind);
        found.or_else(|| if alone { after.iter().find(|r| r.kind == kind) } else { None })
    };
    let sums = after.iter().find(|r| r.kind == "scidac-checksum");
    let sums = sums.or_else(|| if alone { before.iter().find(|r| r.kind == "scidac-checksum") } else { None });

    let file = text_of(records.iter().find(|r| r.kind == "scidac-private-file-xml"))?;
    let file_size = file.as_deref().map(file_size).transpose()?.flatten();
    let ildg = text_of(described("ildg-format"))?;
    let ildg = ildg.as_deref().map(ildg::parse).transpose()?.unwrap_or_default();
    let private = text_of(described("scidac-private-record-xml"))?;
    let private = private.as_deref().map(Private::parse).transpose()?.unwrap_or_default();

    let lattice = agree(
        "the lattice",
        [(options.lattice.map(|l| l.size()), "the caller"), (ildg.size, ILDG), (file_size, FILE)],
    )?;
    let Some((size, place)) = lattice else {
        let length = data.length;
        return Err(Problem::NeedsLattice { length, single: length / 288, double: length / 576 });
    };
    let lattice = lattice_from(size, place)?;
    let volume = lattice.volume() as u64;
    let site_bytes = data.length / volume;
    if !data.length.is_multiple_of(volume) || site_bytes == 0 {
        let expected = format!("a multiple of the {volume} sites of the {lattice} lattice ({place})");
        return Err(Problem::field(data.place(), "length", data.length.to_string(), expected));
    }
    let precision = agree("the precision", [(ildg.precision, ILDG), (private.precision, RECORD), (None, "")])?;
    // Without a word on precision the length decides: links, spinors and colour vectors differ in it.
    let precision = precision.map(|(precision, _)| precision).or(match site_bytes {
        288 | 96 | 24 => Some(FilePrecision::Single),
        576 | 192 | 48 => Some(FilePrecision::Double),
        _ => None,
    });
    let Some(precision) = precision else {
        let hint = "nor can it be inferred from the length of the data";
        return Err(Problem::Missing { place: data.place(), field: "precision", hint });
    };
    let number = 2 * precision.bytes() as u64;
    let unfit = |expected: String| Problem::field(data.place(), "length", format!("{} bytes", data.length), expected);
    if !site_bytes.is_multiple_of(number) {
        return Err(unfit(format!("a multiple of {number} bytes per site ({precision} precision)")));
    }
    if let Some(stated) = private.site_bytes
        && stated != site_bytes
    {
        return Err(unfit(format!("{stated} bytes for each of {volume} sites, as typesize × datacount say")));
    }
    let components = (site_bytes / number) as usize;

    let checksum = match text_of(sums)?.as_deref().map(parse_sums) {
        Some(Err(problem)) if options.verify => return Err(problem),
        Some(Ok(sum)) => Some((ChecksumKind::Scidac, sum)),
        _ => None,
    };
    let mut metadata = Vec::new();
    let mut plaquette = None;
    for record in records[..at].iter().chain(after).filter(|r| !is_data(r)).take(64) {
        let Some(text) = text_of(Some(record))? else { continue };
        if record.kind == "xlf-info" {
            plaquette = xlf_plaquette(&text);
        }
        metadata.push((record.kind.clone(), text));
    }
    let format = if data.kind == "ildg-binary-data" { FileFormat::Ildg } else { FileFormat::Scidac };
    Ok(Header {
        lattice,
        format,
        precision,
        components,
        checksum,
        plaquette,
        metadata,
        endian: Endian::Big,
        offset: data.offset,
        data_length: data.length,
        link_trace: None,
        fields: fields.len(),
    })
}

/// The first value present; an error if another contradicts it.
fn agree<T: Copy + PartialEq + std::fmt::Debug>(
    what: &'static str,
    sources: [(Option<T>, &'static str); 3],
) -> Result<Option<(T, &'static str)>, Problem> {
    let mut present = sources.into_iter().filter_map(|(value, place)| value.map(|value| (value, place)));
    let Some((first, first_place)) = present.next() else { return Ok(None) };
    match present.find(|(value, _)| *value != first) {
        None => Ok(Some((first, first_place))),
        Some((second, second_place)) => Err(Problem::Disagree {
            what,
            first: format!("{first:?}"),
            first_place,
            second: format!("{second:?}"),
            second_place,
        }),
    }
}

fn file_size(text: &str) -> Result<Option<[usize; 4]>, Problem> {
    if let Some(volfmt) = xml::text(text, "volfmt")
        && volfmt != "0"
    {
        let expected = "0 (one file); join the parts with the program that wrote them";
        return Err(Problem::field(FILE, "volfmt", volfmt, expected));
    }
    let Some(dims) = xml::text(text, "dims") else { return Ok(None) };
    let bad = || Problem::field(FILE, "dims", dims, "four numbers of sites");
    let size: Vec<usize> = dims.split_whitespace().map(|d| d.parse().map_err(|_| bad())).collect::<Result<_, _>>()?;
    size.try_into().map(Some).map_err(|_| bad())
}

/// What `scidac-private-record-xml` tells about the data.
#[derive(Default)]
struct Private {
    precision: Option<FilePrecision>,
    site_bytes: Option<u64>,
}

impl Private {
    fn parse(text: &str) -> Result<Self, Problem> {
        for tag in ["globaldata", "recordtype"] {
            if let Some(value) = xml::text(text, tag)
                && value != "0"
            {
                return Err(Problem::field(RECORD, tag_name(tag), value, "0 (a field on the whole lattice)"));
            }
        }
        let precision = match xml::text(text, "precision") {
            None | Some("") => None,
            Some("F" | "32") => Some(FilePrecision::Single),
            Some("D" | "64") => Some(FilePrecision::Double),
            Some(other) => return Err(Problem::field(RECORD, "precision", other, "F or D")),
        };
        let number = |tag| match xml::text(text, tag) {
            None => Ok(None),
            Some(value) => match value.parse::<u32>() {
                Ok(number) => Ok(Some(u64::from(number))),
                Err(_) => Err(Problem::field(RECORD, tag_name(tag), value, "a number")),
            },
        };
        let site_bytes = number("typesize")?.zip(number("datacount")?).map(|(size, count)| size * count);
        Ok(Self { precision, site_bytes })
    }
}

fn tag_name(tag: &str) -> &'static str {
    match tag {
        "globaldata" => "globaldata",
        "recordtype" => "recordtype",
        "typesize" => "typesize",
        _ => "datacount",
    }
}

fn parse_sums(text: &str) -> Result<PartialChecksum, Problem> {
    let place = "scidac-checksum record";
    let sum = |tag, name| {
        let hint = "read with verification off to do without";
        let text = xml::text(text, tag).ok_or(Problem::Missing { place: place.into(), field: name, hint })?;
        let digits = text.trim_start_matches("0x");
        u32::from_str_radix(digits, 16).map_err(|_| Problem::field(place, name, text, "hexadecimal digits"))
    };
    Ok(PartialChecksum([sum("suma", "suma")?, sum("sumb", "sumb")?]))
}

/// `plaquette = …` of the text that tmLQCD writes.
fn xlf_plaquette(text: &str) -> Option<Printed> {
    let (_, rest) = text.split_once("plaquette")?;
    let rest = rest.trim_start().strip_prefix('=')?.trim_start();
    Printed::parse(rest.split([',', ' ', '\n', '\t']).next()?)
}

/// Type name, spins and number of objects per site of a field of so many complex numbers per site.
fn kind(components: usize) -> (&'static str, usize, usize) {
    match components {
        LINKS => ("ColorMatrix", 1, 4),
        12 => ("DiracFermion", 4, 1),
        _ => ("ColorVector", 1, 1),
    }
}

/// A file of two messages, file description and field, with the records in the order and with the flags that the SciDAC
/// library gives them; those of ILDG only if `options.format` is [`FileFormat::Ildg`].
pub(crate) fn frame(lattice: Lattice, components: usize, options: &WriteOptions) -> Frame {
    let [x, y, z, t] = lattice.size();
    let ildg = options.format == FileFormat::Ildg;
    let prolog = "<?xml version=\"1.0\" encoding=\"UTF-8\"?>";
    let mut head = Vec::new();
    let mut put = |kind: &str, flags: MessageFlags, data: &str| lime::append(&mut head, kind, flags, data.as_bytes());
    let file = format!(
        "{prolog}<scidacFile><version>1.1</version><spacetime>4</spacetime><dims>{x} {y} {z} {t} </dims>\
         <volfmt>0</volfmt></scidacFile>"
    );
    put("scidac-private-file-xml", MessageFlags::Begin, &file);
    put("scidac-file-xml", MessageFlags::End, &format!("{prolog}<title>{}</title>", xml::escape(&options.title)));

    let (name, spins, count) = kind(components);
    let letter = if options.precision == FilePrecision::Single { 'F' } else { 'D' };
    let form = StoredForm { components, precision: options.precision, endian: Endian::Big, kind: ChecksumKind::Scidac };
    let private = format!(
        "{prolog}<scidacRecord><version>1.1</version><date>{}</date><recordtype>0</recordtype>\
         <datatype>QDP_{letter}3_{name}</datatype><precision>{letter}</precision><colors>3</colors>\
         <spins>{spins}</spins><typesize>{}</typesize><datacount>{count}</datacount></scidacRecord>",
        utc_now(),
        form.site_bytes() / count,
    );
    put("scidac-private-record-xml", MessageFlags::Begin, &private);
    let info: String =
        options.metadata.iter().map(|(k, v)| format!("{} = {}\n", xml::escape(k), xml::escape(v))).collect();
    put("scidac-record-xml", MessageFlags::Middle, &format!("{prolog}<info>{info}</info>"));
    if ildg {
        put("ildg-format", MessageFlags::Middle, &ildg::print(lattice, options.precision));
        put("ildg-data-lfn", MessageFlags::Middle, &options.lfn);
    }
    let kind = if ildg { "ildg-binary-data" } else { "scidac-binary-data" };
    let length = (lattice.volume() * form.site_bytes()) as u64;
    lime::append_header(&mut head, kind, MessageFlags::Middle, length);
    let tail = move |PartialChecksum([a, b]): PartialChecksum| {
        let mut tail = Vec::new();
        lime::append_padding(&mut tail, length);
        let sums = format!(
            "{prolog}<scidacChecksum><version>1.0</version><suma>{a:x}</suma><sumb>{b:x}</sumb></scidacChecksum>"
        );
        lime::append(&mut tail, "scidac-checksum", MessageFlags::End, sums.as_bytes());
        tail
    };
    Frame { lattice, form, head: Box::new(move |_| head.clone()), tail: Box::new(tail) }
}
