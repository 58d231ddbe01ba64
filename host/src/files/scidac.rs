//! Fields in LIME files with the conventions of SciDAC and ILDG. A data record (`ildg-binary-data` or `scidac-binary-data`) stands among
//! records of XML, which describe the lattice, the precision, the type and the checksum.
//!
//! In existing files, any of the XML records may be missing, the message flags may be wrong, and the order of records varies. Each record
//! is therefore assigned to an adjacent data record: descriptions to the following one, and a checksum to the preceding one. In a file with
//! one data record, all records belong to it.
use super::arrangement::ColumnOrder;
use super::arrangement::LINK;
use super::error::LengthRemedy;
use super::formats::{FermionsFormat, FieldBlock, FileFamily, FileFormat, LinksFormat, MetadataPlace, Recognition};
use super::frame::{Frame, Text};
use super::ildg::IldgFormat;
use super::image::Image;
use super::lime::{self, LimeRecord, MessageFlags};
use super::payload::{ChecksumKind, LINKS, PartialChecksum, StoredForm, TWO_ROWS};
use super::xml::{self, Elements};
use super::{
    Arrangement, Endian, FilePrecision, Header, Leniency, Printed, Problem, ReadOptions, WriteOptions, checksum_from,
    ildg, lattice_from, precision_from,
};
use crate::lattice::Lattice;
use crate::system::utc_now;
use std::io::{Cursor, Read, Seek};

/// The family of LIME files.
pub static LIME_FAMILY: FileFamily = FileFamily {
    signature: "LIME (45 67 89 ab)",
    recognition: Recognition::Start(|start| start.starts_with(&lime::LIME_MAGIC)),
    header: |image, options| header(image, options),
    block,
    byte_order: "the LIME format",
    formats: &[&ILDG, &SCIDAC, &SCIDAC_DIRECTIONS],
};
/// ILDG format: a LIME file with `ildg-binary-data`.
pub static ILDG: FileFormat = FileFormat {
    name: "ildg",
    title: "ILDG",
    flag: Some("ildg"),
    summary: "LIME as defined by the International Lattice Data Grid",
    missing_feature: None,
    only: None,
    links: Some(LinksFormat {
        endings: &["ildg", "lime"],
        two_rows: false,
        off_su3: true,
        frame: |links, options| Ok(frame(links.lattice(), LINKS, options)),
    }),
    fermions: None,
    metadata: MetadataPlace::Records { file_name: true },
};
/// SciDAC format: a LIME file with `scidac-binary-data`.
pub static SCIDAC: FileFormat = FileFormat {
    name: "scidac",
    title: "SciDAC",
    flag: Some("scidac"),
    summary: "LIME as the SciDAC library writes it",
    links: Some(LinksFormat {
        endings: &["scidac"],
        two_rows: false,
        off_su3: true,
        frame: |links, options| Ok(frame(links.lattice(), LINKS, options)),
    }),
    fermions: Some(FermionsFormat {
        endings: &["lime", "scidac"],
        holds: |components, axes| axes.is_empty() || axes == [components],
        limits: "a SciDAC file holds one field or a propagator of 12 spinors or 3 colour vectors",
        instead: "npy",
        endian: Endian::Big,
        frame: |fields, options| match fields.axes {
            [] => Ok(frame(fields.lattice, fields.components(), options)),
            _ => Ok(propagator_frame(fields.lattice, fields.components(), options)),
        },
    }),
    metadata: MetadataPlace::Records { file_name: false },
    ..ILDG
};
/// SciDAC format with four records of `scidac-binary-data`, one for the links of each direction.
pub static SCIDAC_DIRECTIONS: FileFormat = FileFormat {
    name: "scidacdirections",
    title: "SciDAC, a record for each direction",
    flag: Some("scidac-directions"),
    summary: "LIME as the SciDAC library writes it, with a record of links for each direction",
    links: Some(LinksFormat {
        endings: &[],
        two_rows: false,
        off_su3: true,
        frame: |links, options| Ok(directions_frame(links.lattice(), options)),
    }),
    fermions: None,
    ..SCIDAC
};

const PROLOG: &str = "<?xml version=\"1.0\" encoding=\"UTF-8\"?>";
/// Type of the record whose text is the title of the file.
const TITLE: &str = "scidac-file-xml";
const USER_RECORD: &str = "scidac-record-xml";
const FILE: &str = "scidac-private-file-xml record";
const RECORD: &str = "scidac-private-record-xml record";
const ILDG_RECORD: &str = "ildg-format record";
/// Types of records that tmLQCD writes before a propagator or a source.
const ETMC_KINDS: [&str; 2] = ["etmc-propagator-format", "etmc-source-format"];
const ETMC: [&str; 2] = ["etmc-propagator-format record", "etmc-source-format record"];
/// Largest number of fields in a file that is read as a block.
const MOST_FIELDS: usize = 1024;

/// Parses the header of a field in a LIME file that is in memory.
pub fn parse(bytes: &[u8], options: &ReadOptions) -> Result<Header, Problem> {
    header(&mut Cursor::new(bytes), options)
}

/// Reads the header of the data record with number `options.record`. Four data records with one matrix on each site are the links of the
/// four directions, and have a common header.
pub fn header<R: Read + Seek>(reader: &mut R, options: &ReadOptions) -> Result<Header, Problem> {
    let records = lime::records(reader)?;
    let fields = data_records(&records);
    let first = describe(reader, &records, &fields, options)?;
    if first.components != 9 || fields.len() != 4 || options.record != 0 {
        return Ok(first);
    }
    let number = |record| ReadOptions { record, ..options.clone() };
    let others = (1..4).map(|record| describe(reader, &records, &fields, &number(record)));
    let others: Vec<Header> = others.collect::<Result<_, _>>()?;
    let alike = |other: &Header| {
        (other.lattice, other.precision, other.components) == (first.lattice, first.precision, first.components)
    };
    if !others.iter().all(alike) {
        return Ok(first);
    }
    let mut sums = others.iter().map(|other| other.checksum);
    let checksum = sums.try_fold(first.checksum, |all, one| match (all, one) {
        (Some((kind, all)), Some((_, one))) => Some(Some((kind, all.combine(kind, one)))),
        _ => None,
    });
    let mut links = Header {
        format: &SCIDAC_DIRECTIONS,
        components: LINKS,
        checksum: checksum.flatten(),
        arrangement: Arrangement::Directions(std::array::from_fn(|mu| {
            if mu == 0 { first.offset } else { others[mu - 1].offset }
        })),
        data_length: 4 * first.data_length,
        fields: 1,
        ..first
    };
    links.notes.extend(others.iter().flat_map(|other| other.notes.clone()));
    // Records after the last of the four data records describe the file, so they are added.
    for (kind, text) in others.into_iter().next_back().into_iter().flat_map(|last| last.metadata) {
        if links.metadata.iter().all(|(known, _)| *known != kind) {
            links.metadata.push((kind, text));
        }
    }
    Ok(links)
}

/// Reads the headers of a propagator in one record, or of several fields; returns `None` for other files.
fn block(image: &mut Image, options: &ReadOptions, site: &[usize]) -> Result<Option<FieldBlock>, Problem> {
    // Links of four directions are not a block of fermion fields.
    if matches!(header(image, options), Ok(Header { arrangement: Arrangement::Directions(_), .. })) {
        return Ok(None);
    }
    let components = site.iter().product::<usize>();
    let mut headers = headers(image, options)?;
    if let Some(at) = headers.iter().position(|header| header.components == components * components) {
        return Ok(Some(FieldBlock::of_columns(headers.swap_remove(at), components)));
    }
    let records = solutions(headers, components);
    let first = records.first().filter(|_| records.len() > 1);
    let first = first.map(|first| Header { fields: records.len(), ..first.clone() });
    Ok(first.map(|first| FieldBlock { first, records }))
}

fn data_records(records: &[LimeRecord]) -> Vec<usize> {
    let is_data = |r: &LimeRecord| matches!(r.kind.as_str(), "ildg-binary-data" | "scidac-binary-data");
    (0..records.len()).filter(|&i| is_data(&records[i])).collect()
}

/// Reads the headers of all data records that contain a field on the whole lattice. Records of a single time slice, as some sources have,
/// are left out.
fn headers<R: Read + Seek>(reader: &mut R, options: &ReadOptions) -> Result<Vec<Header>, Problem> {
    let records = lime::records(reader)?;
    let fields = data_records(&records);
    if fields.len() > MOST_FIELDS {
        let found = fields.len().to_string();
        return Err(Problem::field("LIME file", "number of data records", found, format!("at most {MOST_FIELDS}")));
    }
    let mut headers = Vec::new();
    for record in 0..fields.len() {
        match describe(reader, &records, &fields, &ReadOptions { record, ..options.clone() }) {
            Err(Problem::Field { field: "globaldata" | "recordtype", .. }) => {}
            described => headers.push(described?),
        }
    }
    Ok(headers)
}

/// Selects those fields that have `components` numbers on a site and are solutions. Some files contain pairs of a source and a solution; in
/// these only the solutions are selected.
fn solutions(headers: Vec<Header>, components: usize) -> Vec<Header> {
    let fits = headers.into_iter().filter(|header| header.components == components);
    let mut fits: Vec<Header> = fits.collect();
    let kinds = ["scidac-file-xml", "propagator-type"];
    let pairs = ["Fermion_Source_Sink_Pairs", "ColorVector_Source_Sink_Pairs"];
    let says = |(kind, text): &(String, String)| {
        kinds.contains(&kind.as_str()) && pairs.iter().any(|pair| text.contains(pair))
    };
    let paired = fits.first().is_some_and(|first| first.metadata.iter().any(says));
    if paired && fits.len().is_multiple_of(2) {
        let mut number = 0;
        fits.retain(|_| {
            number += 1;
            number % 2 == 0
        });
    }
    fits
}

/// Reads the header of the data record with number `options.record`.
fn describe<R: Read + Seek>(
    reader: &mut R,
    records: &[LimeRecord],
    fields: &[usize],
    options: &ReadOptions,
) -> Result<Header, Problem> {
    let around = Surroundings::of(records, fields, options.record)?;
    let data = around.data;
    let format = if data.kind == "ildg-binary-data" { &ILDG } else { &SCIDAC };
    let mut leniency = Leniency::new(options);
    let mut said = Descriptions::read(reader, &around, &mut leniency)?;
    let (lattice, place) = said.lattice(data.length, options, &mut leniency)?;
    let extent = DataExtent::of(data, lattice, place, format)?;
    let precision = said.precision(&extent, &mut leniency)?;
    said.check_lengths(&extent, precision, &mut leniency)?;
    let components = (extent.site_bytes / (2 * precision.bytes() as u64)) as usize;
    let arrangement = match components {
        144 | 9 => Arrangement::Columns(said.private.order(components)),
        _ => Arrangement::Sites,
    };
    let sums = around.sums().map(|record| lime::text(reader, record)).transpose()?.flatten();
    let sums = sums.as_deref().map(|text| leniency.optional(parse_sums(text))).transpose()?.flatten();
    let FieldTexts { metadata, omitted, plaquette } = FieldTexts::read(reader, &around)?;
    Ok(Header {
        lattice,
        format,
        arrangement,
        precision,
        components,
        checksum: sums.map(|sum| (ChecksumKind::Scidac, sum)),
        plaquette,
        metadata,
        endian: Endian::Big,
        offset: data.offset,
        data_length: data.length,
        link_trace: None,
        fields: fields.len(),
        notes: leniency.notes,
        omitted,
    })
}

/// A data record, with the records between it and the neighbouring data records.
struct Surroundings<'a> {
    all: &'a [LimeRecord],
    data: &'a LimeRecord,
    before: &'a [LimeRecord],
    after: &'a [LimeRecord],
    is_first: bool,
    is_last: bool,
}

impl<'a> Surroundings<'a> {
    /// Returns the surroundings of data record number `number`; `fields` has the indices of all data records.
    fn of(all: &'a [LimeRecord], fields: &[usize], number: usize) -> Result<Self, Problem> {
        let Some(&at) = fields.get(number) else {
            let advice = match fields.len() {
                0 => String::from("name another file"),
                1 => String::from("choose record 0"),
                n => format!("choose a number from 0 to {}", n - 1),
            };
            let expected = format!(
                "more than {number}, because record {number} of type ildg-binary-data or scidac-binary-data, counted \
                 from 0, is requested; {advice}"
            );
            return Err(Problem::field("LIME file", "number of data records", fields.len().to_string(), expected));
        };
        let (begin, next) = (number.checked_sub(1).map_or(0, |i| fields[i] + 1), fields.get(number + 1).copied());
        Ok(Self {
            all,
            data: &all[at],
            before: &all[begin..at],
            after: &all[at + 1..next.unwrap_or(all.len())],
            is_first: number == 0,
            is_last: next.is_none(),
        })
    }
    /// Whether the data record is the only one of the file.
    fn alone(&self) -> bool {
        self.is_first && self.is_last
    }
    /// Returns the record of type `kind` that describes the data.
    fn described(&self, kind: &str) -> Option<&'a LimeRecord> {
        let found = self.before.iter().rev().find(|r| r.kind == kind);
        found.or_else(|| if self.alone() { self.after.iter().find(|r| r.kind == kind) } else { None })
    }
    /// Returns the record that contains the checksum of the data.
    fn sums(&self) -> Option<&'a LimeRecord> {
        let found = self.after.iter().find(|r| is_sum(r));
        found.or_else(|| if self.alone() { self.before.iter().find(|r| is_sum(r)) } else { None })
    }
    /// Returns the records that belong to the data, after those that describe the file.
    fn own(&self) -> impl Iterator<Item = &'a LimeRecord> {
        // Between two fields are two kinds of records: first the checksum of the first field, then the descriptions of the second field or
        // the start of another file.
        let (before, after) = (self.before, self.after);
        let begin = match self.is_first {
            true => 0,
            false => {
                before.iter().rposition(is_file).or_else(|| Some(before.iter().rposition(is_sum)? + 1)).unwrap_or(0)
            }
        };
        let end = match self.is_last {
            true => after.len(),
            false => after.iter().position(is_file).or_else(|| Some(after.iter().position(is_sum)? + 1)).unwrap_or(0),
        };
        let own = move || before[begin..].iter().chain(&after[..end]);
        let of_file = ["scidac-private-file-xml", TITLE].into_iter().filter(|kind| own().all(|r| r.kind != *kind));
        let of_file: Vec<_> = of_file.filter_map(|kind| self.all.iter().find(|r| r.kind == kind)).collect();
        of_file.into_iter().chain(own())
    }
}

fn is_sum(record: &LimeRecord) -> bool {
    record.kind == "scidac-checksum"
}

fn is_file(record: &LimeRecord) -> bool {
    record.kind == "scidac-private-file-xml"
}

/// Descriptions of the data in the records around them.
struct Descriptions {
    file_size: Option<[usize; 4]>,
    ildg: IldgFormat,
    /// Lattice and precision in tmLQCD's records for spinor fields: for a propagator and for a source.
    etmc: [IldgFormat; 2],
    private: Private,
}

impl Descriptions {
    fn read<R: Read + Seek>(reader: &mut R, around: &Surroundings, leniency: &mut Leniency) -> Result<Self, Problem> {
        let mut text_of = |record: Option<&LimeRecord>| match record {
            None => Ok(None),
            Some(record) => lime::text(reader, record),
        };
        let file = text_of(around.all.iter().find(|r| is_file(r)))?;
        let file_size = file.as_deref().map(|text| file_size(text, leniency)).transpose()?.flatten();
        let ildg = text_of(around.described("ildg-format"))?;
        let ildg = ildg.as_deref().map(|text| ildg::parse_with(text, leniency)).transpose()?.unwrap_or_default();
        let mut etmc = [IldgFormat::default(); 2];
        for (format, (kind, place)) in etmc.iter_mut().zip(ETMC_KINDS.into_iter().zip(ETMC)) {
            if let Some(text) = text_of(around.described(kind))? {
                *format = ildg::parse_fermion(&text, place, leniency)?;
            }
        }
        let private = text_of(around.described("scidac-private-record-xml"))?;
        let private = private.as_deref().map(|text| Private::parse(text, leniency)).transpose()?.unwrap_or_default();
        Ok(Self { file_size, ildg, etmc, private })
    }
    /// Returns the lattice of the data, and the name of the record that contains it; `length` is that of the data in bytes.
    fn lattice(
        &self,
        length: u64,
        options: &ReadOptions,
        leniency: &mut Leniency,
    ) -> Result<(Lattice, &'static str), Problem> {
        let mut sizes = [
            (options.lattice.map(|l| l.size()), "request"),
            (self.ildg.size, ILDG_RECORD),
            (self.etmc[0].size, ETMC[0]),
            (self.etmc[1].size, ETMC[1]),
            (self.file_size, FILE),
        ];
        if let Some(caller) = sizes[0].0
            && !options.verify
        {
            for (size, place) in sizes[1..].iter_mut() {
                if let Some(size) = size.take_if(|size| *size != caller) {
                    leniency.notes.push(format!("{place}: the lattice is {size:?}; {caller:?} is used, as requested"));
                }
            }
        }
        let Some((size, place)) = agree("the lattice", sizes)? else {
            return Err(Problem::NeedsLattice { length, single: length / 288, double: length / 576 });
        };
        Ok((lattice_from(size, place)?, place))
    }
    /// Returns the precision of the data: that in a record if it fits the length of the data, otherwise the one that fits.
    fn precision(&self, extent: &DataExtent, leniency: &mut Leniency) -> Result<FilePrecision, Problem> {
        let stated = agree(
            "the precision",
            [
                (self.ildg.precision, ILDG_RECORD),
                (self.etmc[0].precision, ETMC[0]),
                (self.etmc[1].precision, ETMC[1]),
                (self.private.precision, RECORD),
                (None, ""),
            ],
        );
        let stated = match stated {
            // If the records state different precisions, the length of the data determines the precision.
            Err(problem) => {
                leniency.or_note(problem, "the precision that fits the length of the data is used")?;
                None
            }
            Ok(stated) => stated,
        };
        let by_length = precision_by_length(extent.site_bytes, extent.format);
        let Some((stated, place)) = stated else {
            return by_length.ok_or_else(|| extent.unfit("no record gives the precision".into()));
        };
        if extent.fits(stated) {
            return Ok(stated);
        }
        let said = extent.expected(stated, place);
        let other = by_length.ok_or_else(|| extent.unfit(said.clone()))?;
        leniency.or_note(extent.unfit(said), &format!("the data are read in {other} precision"))?;
        Ok(other)
    }
    /// Compares the length of the data with the lengths that other records imply.
    fn check_lengths(
        &mut self,
        extent: &DataExtent,
        precision: FilePrecision,
        leniency: &mut Leniency,
    ) -> Result<(), Problem> {
        let DataExtent { data, lattice, volume, site_bytes, .. } = *extent;
        for (format, place) in self.etmc.iter().zip(ETMC) {
            let needed = volume * 24 * precision.bytes() as u64;
            if *format != IldgFormat::default() && needed != data.length {
                let said = format!(
                    "a spinor field on the {lattice} lattice in {precision} precision ({place}) has {needed} bytes"
                );
                leniency.or_note(extent.unfit(said), "the length of the data determines the kind of field")?;
            }
        }
        if let Some(stated) = self.private.site_bytes
            && stated != site_bytes
        {
            let said = format!("typesize × datacount of the {RECORD} is {stated} bytes for each of {volume} sites");
            leniency.or_note(extent.unfit(said), "the length of the data determines the kind of field")?;
        }
        Ok(())
    }
}

/// Length of the data in relation to the lattice.
struct DataExtent<'a> {
    data: &'a LimeRecord,
    lattice: Lattice,
    volume: u64,
    site_bytes: u64,
    format: &'static FileFormat,
}

impl<'a> DataExtent<'a> {
    /// Divides the data among the sites of a lattice; `place` is the record that contains the lattice.
    fn of(data: &'a LimeRecord, lattice: Lattice, place: &str, format: &'static FileFormat) -> Result<Self, Problem> {
        let volume = lattice.volume() as u64;
        let extent = Self { data, lattice, volume, site_bytes: data.length / volume, format };
        if !data.length.is_multiple_of(volume) || extent.site_bytes == 0 {
            let said = format!(
                "the length must be a positive multiple of {volume}, the number of sites of the {lattice} lattice \
                 ({place})"
            );
            return Err(extent.unfit(said));
        }
        Ok(extent)
    }
    /// Returns the problem that the data do not have the length that `said` describes.
    fn unfit(&self, said: String) -> Problem {
        let (would, remedy) = would_be(self.data.length, self.volume, self.format);
        Problem::Length { place: self.data.place(), length: self.data.length, said, would, remedy }
    }
    /// Whether the data may consist of numbers in this precision. ILDG records contain links, SciDAC records any kind of field.
    fn fits(&self, precision: FilePrecision) -> bool {
        let number = 2 * precision.bytes() as u64;
        match *self.format == ILDG {
            true => [LINKS, TWO_ROWS].map(|n| n as u64 * number).contains(&self.site_bytes),
            false => self.site_bytes.is_multiple_of(number),
        }
    }
    /// Returns a clause on the length of data in the precision `stated`; `place` is the record that contains the precision.
    fn expected(&self, stated: FilePrecision, place: &str) -> String {
        let (lattice, number) = (self.lattice, 2 * stated.bytes() as u64);
        match *self.format == ILDG {
            true => {
                let needed = LINKS as u64 * number * self.volume;
                format!("links on the {lattice} lattice in {stated} precision ({place}) have {needed} bytes")
            }
            false => format!(
                "the length per site must be a multiple of {number} bytes, the size of a complex number in {stated} \
                 precision ({place})"
            ),
        }
    }
}

/// Texts that are stored with a field, and a plaquette that one of them contains.
struct FieldTexts {
    metadata: Vec<(String, String)>,
    omitted: Vec<String>,
    plaquette: Option<Printed>,
}

impl FieldTexts {
    fn read<R: Read + Seek>(reader: &mut R, around: &Surroundings) -> Result<Self, Problem> {
        let mut kept = Self { metadata: Vec::new(), omitted: Vec::new(), plaquette: None };
        for record in around.own().take(64) {
            let Some(text) = lime::text(reader, record)? else {
                kept.omitted.push(format!("the {}, which is longer than 64 KiB or not text", record.place()));
                continue;
            };
            if record.kind == "xlf-info" {
                kept.plaquette = xlf_plaquette(&text);
            }
            kept.metadata.push((record.kind.clone(), text));
        }
        Ok(kept)
    }
}

/// Returns the first value that is present. Fails if another value differs from it.
fn agree<T: Copy + PartialEq + std::fmt::Debug>(
    what: &'static str,
    sources: [(Option<T>, &'static str); 5],
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

/// Returns the precision of links, spinors or colour vectors with this number of bytes on a site; `None` if none or both precisions fit.
fn precision_by_length(site_bytes: u64, format: &FileFormat) -> Option<FilePrecision> {
    match (site_bytes, *format == ILDG) {
        (288 | 192, true) => Some(FilePrecision::Single),
        (576 | 384, true) => Some(FilePrecision::Double),
        (_, true) => None,
        (1152 | 288 | 96 | 72 | 24, _) => Some(FilePrecision::Single),
        (2304 | 576 | 384 | 192 | 144 | 48, _) => Some(FilePrecision::Double),
        _ => None,
    }
}

/// Returns a clause on the kind of field that has this length on this volume, or on the volumes on which links have this length. Also
/// returns advice.
fn would_be(length: u64, volume: u64, format: &FileFormat) -> (String, LengthRemedy) {
    let names = [
        (36, "links"),
        (24, "two rows of links"),
        (12, "a spinor field"),
        (3, "a field of colour vectors"),
        (144, "a propagator"),
        (9, "a staggered propagator"),
    ];
    // An ILDG record contains links only.
    let names = if *format == ILDG { &names[..2] } else { &names[..] };
    // SU(6) is not listed, because links in SU(3) on four times the volume have the same length.
    let groups = [2, 4, 5].map(|n| (4 * n * n, n));
    for precision in [FilePrecision::Single, FilePrecision::Double] {
        let has = |components: u64| length == 2 * components * precision.bytes() as u64 * volume;
        if let Some((_, name)) = names.iter().find(|(components, _)| has(*components)) {
            return (
                format!("the data have the length of {name} in {precision} precision"),
                LengthRemedy::WithoutVerification,
            );
        }
        if let Some((_, n)) = groups.iter().find(|(components, _)| has(*components)) {
            let what = format!(
                "the data have the length of links in SU({n}) in {precision} precision, but Ferrite supports SU(3) only"
            );
            return (what, LengthRemedy::Nothing);
        }
    }
    let sites = |bytes: u64, precision: &str| {
        length.is_multiple_of(bytes).then(|| format!("{} sites in {precision} precision", length / bytes))
    };
    let links: Vec<_> = [sites(288, "single"), sites(576, "double")].into_iter().flatten().collect();
    if links.is_empty() {
        let what = "no gauge field has this length: the file is damaged, or holds other data";
        return (what.into(), LengthRemedy::Nothing);
    }
    (format!("the data have the length of links on {}", links.join(" or ")), LengthRemedy::Extents)
}

fn file_size(text: &str, leniency: &mut Leniency) -> Result<Option<[usize; 4]>, Problem> {
    let xml = Elements::of(text);
    let expected = "0 (one file); join the parts with the program that wrote them";
    zero(&xml, FILE, "volfmt", expected, leniency)?;
    let Some(dims) = xml.text("dims") else { return Ok(None) };
    let bad = || Problem::field(FILE, "dims", dims, "four numbers of sites");
    let size: Vec<usize> = dims.split_whitespace().map(|d| d.parse().map_err(|_| bad())).collect::<Result<_, _>>()?;
    size.try_into().map(Some).map_err(|_| bad())
}

/// Checks that an optional number is 0 if it is present.
fn zero(
    xml: &Elements,
    place: &str,
    tag: &'static str,
    expected: &str,
    leniency: &mut Leniency,
) -> Result<(), Problem> {
    if let Some(text) = xml.text(tag).filter(|text| !text.is_empty()) {
        let number = text.parse::<u64>().map_err(|_| Problem::optional(place, tag, text, expected));
        if leniency.optional(number)?.is_some_and(|number| number != 0) {
            return Err(Problem::field(place, tag, text, expected));
        }
    }
    Ok(())
}

/// Content of the record `scidac-private-record-xml`, which describes the data.
#[derive(Default)]
struct Private {
    precision: Option<FilePrecision>,
    site_bytes: Option<u64>,
    /// Number of objects on a site.
    count: Option<u64>,
    datatype: String,
}

impl Private {
    fn parse(text: &str, leniency: &mut Leniency) -> Result<Self, Problem> {
        let xml = Elements::of(text);
        for tag in ["globaldata", "recordtype"] {
            zero(&xml, RECORD, tag, "0 (a field on the whole lattice)", leniency)?;
        }
        let given = |tag| xml.text(tag).filter(|text| !text.is_empty());
        let precision = given("precision").map(|text| {
            leniency
                .optional(precision_from(text).ok_or_else(|| Problem::optional(RECORD, "precision", text, "F or D")))
        });
        let precision = precision.transpose()?.flatten();
        let mut number = |tag| match given(tag) {
            None => Ok(None),
            Some(text) => {
                let number = text.parse::<u32>().map_err(|_| Problem::optional(RECORD, tag, text, "a number"));
                leniency.optional(number.map(u64::from))
            }
        };
        let (size, count) = (number("typesize")?, number("datacount")?);
        let site_bytes = size.zip(count).map(|(size, count)| size * count);
        Ok(Self { precision, site_bytes, count, datatype: given("datatype").unwrap_or_default().into() })
    }
    /// Returns the order of the numbers of a propagator with `components` numbers on a site.
    fn order(&self, components: usize) -> ColumnOrder {
        let columns = if components == 144 { 12 } else { 3 };
        match self.count {
            Some(count) if count == columns => ColumnOrder::Vectors,
            _ if self.datatype.contains("DiracPropagator") => ColumnOrder::ColourFirst,
            _ => ColumnOrder::SpinMatrix,
        }
    }
}

fn parse_sums(text: &str) -> Result<PartialChecksum, Problem> {
    let xml = Elements::of(text);
    let sum = |tag| {
        let text = xml.text(tag).unwrap_or_default();
        checksum_from(text).ok_or_else(|| Problem::optional("scidac-checksum record", tag, text, "hexadecimal digits"))
    };
    Ok(PartialChecksum([sum("suma")?, sum("sumb")?]))
}

/// Returns the plaquette after `plaquette =` in a text of tmLQCD.
fn xlf_plaquette(text: &str) -> Option<Printed> {
    let (_, rest) = text.split_once("plaquette")?;
    let rest = rest.trim_start().strip_prefix('=')?.trim_start();
    Printed::parse(rest.split([',', ' ', '\n', '\t']).next()?)
}

/// Returns the type name, the number of spins, and the number of objects on a site for a field with `components` complex numbers on a site.
fn kind(components: usize) -> (&'static str, usize, usize) {
    match components {
        LINKS => ("ColorMatrix", 1, 4),
        12 => ("DiracFermion", 4, 1),
        144 => ("Lattice", 4, 1),
        9 => ("Lattice", 1, 1),
        _ => ("ColorVector", 1, 1),
    }
}

/// Makes the frame of a file of a propagator with `columns` columns in one record, as QDP++ and Chroma write it.
fn propagator_frame(lattice: Lattice, columns: usize, options: &WriteOptions) -> Frame {
    let arrangement = Arrangement::Columns(ColumnOrder::SpinMatrix);
    Frame { arrangement, ..frame(lattice, columns * columns, options) }
}

/// Appends the records that describe the file, which are its first message.
fn put_file(head: &mut Vec<u8>, lattice: Lattice, options: &WriteOptions) {
    let [x, y, z, t] = lattice.size();
    let file = format!(
        "{PROLOG}<scidacFile><version>1.1</version><spacetime>4</spacetime><dims>{x} {y} {z} {t} </dims>\
         <volfmt>0</volfmt></scidacFile>"
    );
    lime::append(head, "scidac-private-file-xml", MessageFlags::Begin, file.as_bytes());
    let new = || format!("{PROLOG}<title>{}</title>", xml::escape(&options.title));
    lime::append(head, TITLE, MessageFlags::End, given(options, TITLE).unwrap_or_else(new).as_bytes());
}

/// Appends the records that describe the data and begin their message; the tuple comes from [`kind`].
fn put_record(
    head: &mut Vec<u8>,
    form: &StoredForm,
    (name, spins, count): (&str, usize, usize),
    options: &WriteOptions,
) {
    let letter = if options.precision == FilePrecision::Single { 'F' } else { 'D' };
    // For links, QDP++ has a datatype that contains the precision; for propagators, the datatype is `Lattice`.
    let name = if name == "Lattice" { name.into() } else { format!("QDP_{letter}3_{name}") };
    let private = format!(
        "{PROLOG}<scidacRecord><version>1.1</version><date>{}</date><recordtype>0</recordtype>\
         <datatype>{name}</datatype><precision>{letter}</precision><colors>3</colors>\
         <spins>{spins}</spins><typesize>{}</typesize><datacount>{count}</datacount></scidacRecord>",
        utc_now(),
        form.site_bytes() / count,
    );
    lime::append(head, "scidac-private-record-xml", MessageFlags::Begin, private.as_bytes());
    let line = |(k, v): &(String, String)| format!("{} = {}\n", xml::escape(k), xml::escape(v));
    let new = || format!("{PROLOG}<info>{}</info>", options.metadata.iter().map(line).collect::<String>());
    lime::append(head, USER_RECORD, MessageFlags::Middle, given(options, USER_RECORD).unwrap_or_else(new).as_bytes());
}

/// Returns the text of the record of type `kind` in the options.
fn given(options: &WriteOptions, kind: &str) -> Option<String> {
    options.records.iter().find(|(its, _)| its == kind).map(|(_, text)| text.clone())
}

/// Returns the bytes after `length` bytes of data: the record of the checksum, which ends the message. Its numbers have at least `digits`
/// digits.
fn after_data(length: u64, PartialChecksum([a, b]): PartialChecksum, digits: usize) -> Vec<u8> {
    let mut tail = Vec::new();
    lime::append_padding(&mut tail, length);
    let sums = format!(
        "{PROLOG}<scidacChecksum><version>1.0</version><suma>{a:0digits$x}</suma><sumb>{b:0digits$x}</sumb></scidacChecksum>"
    );
    lime::append(&mut tail, "scidac-checksum", MessageFlags::End, sums.as_bytes());
    tail
}

/// Returns the records after the last data and its checksum. SciDAC's library requires its own records first, in their order.
fn other_records(options: &WriteOptions) -> Vec<u8> {
    let mut tail = Vec::new();
    let others = options.records.iter().filter(|(kind, _)| ![TITLE, USER_RECORD].contains(&kind.as_str()));
    others.for_each(|(kind, text)| lime::append(&mut tail, kind, MessageFlags::Alone, text.as_bytes()));
    tail
}

/// Makes the frame of a file of two messages, the file description and the field, with the order of records and the flags of the SciDAC
/// library. Records of ILDG are included only if `options.format` is [`ILDG`].
fn frame(lattice: Lattice, components: usize, options: &WriteOptions) -> Frame {
    let form =
        StoredForm { components, precision: options.precision, endian: Endian::Big, kind: Some(ChecksumKind::Scidac) };
    let mut head = Vec::new();
    put_file(&mut head, lattice, options);
    put_record(&mut head, &form, kind(components), options);
    let data = if *options.format == ILDG {
        let format = ildg::print(lattice, options.precision);
        lime::append(&mut head, "ildg-format", MessageFlags::Middle, format.as_bytes());
        lime::append(&mut head, "ildg-data-lfn", MessageFlags::Middle, options.lfn.as_bytes());
        "ildg-binary-data"
    } else {
        "scidac-binary-data"
    };
    let length = (lattice.volume() * form.site_bytes()) as u64;
    lime::append_header(&mut head, data, MessageFlags::Middle, length);
    let others = other_records(options);
    Frame {
        lattice,
        form,
        arrangement: Arrangement::Sites,
        head: Box::new(move |_| head.clone()),
        between: Vec::new(),
        tail: Box::new(move |sum| [after_data(length, sum, 1), others.clone()].concat()),
    }
}

/// Makes the frame of a file of five messages: the file description, and the links in x, y, z and t. Each data record has one matrix on
/// each site, as in files of QDP/C's `QDP_write_M`.
fn directions_frame(lattice: Lattice, options: &WriteOptions) -> Frame {
    let kind = Some(ChecksumKind::Scidac);
    let form = StoredForm { components: LINK, precision: options.precision, endian: Endian::Big, kind };
    let length = (lattice.volume() * form.site_bytes()) as u64;
    let mut record = Vec::new();
    put_record(&mut record, &form, ("ColorMatrix", 1, 1), options);
    lime::append_header(&mut record, "scidac-binary-data", MessageFlags::Middle, length);
    let mut head = Vec::new();
    put_file(&mut head, lattice, options);
    head.extend(&record);
    // The checksum is printed with all digits, so that later offsets do not depend on its value.
    let sum_after = move |sum| after_data(length, sum, 8);
    let step = length + (sum_after(PartialChecksum::default()).len() + record.len()) as u64;
    let offsets = std::array::from_fn(|mu| head.len() as u64 + mu as u64 * step);
    let next = |_| -> Text {
        let record = record.clone();
        Box::new(move |sum| [sum_after(sum), record.clone()].concat())
    };
    let (between, others) = ((0..3).map(next).collect(), other_records(options));
    Frame {
        lattice,
        form,
        arrangement: Arrangement::Directions(offsets),
        head: Box::new(move |_| head.clone()),
        between,
        tail: Box::new(move |sum| [sum_after(sum), others.clone()].concat()),
    }
}
