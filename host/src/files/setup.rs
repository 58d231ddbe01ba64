//! Files that store the near-null vectors of a multigrid setup for later runs.
//!
//! Near-null vectors are spinor fields on the even sites. A file is a LIME message with these records:
//!
//! | record | content |
//! |---|---|
//! | `ferrite-multigrid-setup` | JSON: a [`SetupHeader`], with `format` `ferrite.multigrid-setup/1` |
//! | `ferrite-multigrid-vector`, for each vector | numbers on the even sites, single precision, big-endian, `[spin][colour]` |
//! | `ferrite-multigrid-checksums` | JSON: CRC-32 of the first record, SciDAC checksum of each vector |
//!
//! Even sites are in lexicographic order with x fastest. Extents are even, so even site number k is one of the sites
//! 2k and 2k + 1. Vectors are written and read one after another, which needs memory for one at a time. Each process
//! has its [`Section`] of the vectors. The bytes of a file do not depend on the partitioning of the lattice,
//! and any number of processes can read it.
//!
//! ```
//! use comms::Solo;
//! use ferrite::field::host::HostSpinor;
//! use ferrite::files::SharedFile;
//! use ferrite::files::setup::{SetupHeader, SetupReader, SetupWriter};
//! use ferrite::lattice::Lattice;
//!
//! let path = std::env::temp_dir().join("ferrite-doc.setup");
//! let (network, lattice) = (Solo::new(), Lattice::new([4, 4, 4, 8])?);
//! let operator = serde_json::json!({ "operator": "wilson", "mass": -0.4 });
//! let header = SetupHeader::new(lattice, 2, operator, "12ab34cd 56ef7890");
//!
//! let mut writer = SetupWriter::create(SharedFile::new(&path, &network), header.clone())?;
//! for _ in 0..2 {
//!     writer.write(&HostSpinor::zero(lattice))?;
//! }
//! writer.finish()?;
//!
//! let reader = SetupReader::open(SharedFile::new(&path, &network))?;
//! assert_eq!(*reader.header(), header);
//! assert_eq!(reader.read(1)?, HostSpinor::zero(lattice));
//! # std::fs::remove_file(path)?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
use super::collective::{SharedOutput, settle};
use super::error::LengthRemedy;
use super::image::{Image, some};
use super::lime::{self, LimeRecord, MessageFlags};
use super::parts::{FileParts, gather};
use super::payload::{self, ChecksumKind, PartialChecksum, StoredForm};
use super::read::{ReadFrom, header_with, shared_header};
use super::runs::Runs;
use super::source::Opened;
use super::{Endian, FileError, FilePrecision, Problem, SharedFile, checks, even_lattice_from};
use crate::field::host::{Fermion, HostGauge, HostSpinor, Spinor};
use crate::lattice::{Lattice, Section};
use crate::network::Network;
use crate::system::atomic::SystemError;
use comms::CommError;
use num_complex::Complex64;
use rayon::prelude::*;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use std::io::{Seek, SeekFrom};
use std::os::unix::fs::FileExt;
use std::path::PathBuf;

/// Name and version of the file format; no other version is read or written.
const FORMAT: &str = "ferrite.multigrid-setup/1";
const SETUP: &str = "ferrite-multigrid-setup";
const VECTOR: &str = "ferrite-multigrid-vector";
const CHECKSUMS: &str = "ferrite-multigrid-checksums";
/// Largest number of vectors in a file. Their checksums must fit into one record of text.
pub const MOST_STORED_VECTORS: usize = 1024;
/// Largest length of a record of text in bytes.
const MOST_TEXT: usize = 1 << 16;
const CHECKSUM: ChecksumKind = ChecksumKind::Scidac;
const FORM: StoredForm = StoredForm {
    components: Spinor::COMPONENTS,
    precision: FilePrecision::Single,
    endian: Endian::Big,
    kind: Some(CHECKSUM),
};

/// *Collective.* Returns the checksum that identifies the links of a setup: the SciDAC checksum of the links in double precision. It
/// depends neither on the process grid nor on the format of the file of links. `gauge` is this process's part.
///
/// # Errors
/// Fails if the communication fails.
pub fn links_checksum(gauge: &HostGauge, section: &Section, network: &dyn Network) -> Result<String, CommError> {
    let site = |local: usize| {
        let links = [0, 1, 2, 3].map(|mu| *gauge.link(local, mu));
        let bytes: Vec<u8> =
            links.as_flattened().as_flattened().iter().flat_map(|z| [z.re, z.im]).flat_map(f64::to_be_bytes).collect();
        CHECKSUM.of(&bytes, bytes.len(), section.global_index(local), Endian::Big)
    };
    let mine = (0..section.local.volume()).into_par_iter().map(site);
    let mine = mine.reduce(PartialChecksum::default, |a, b| a.combine(CHECKSUM, b));
    let all = network.all_gather(&mine.to_bytes())?;
    let sum = all.iter().map(|bytes| PartialChecksum::from_bytes(bytes));
    Ok(CHECKSUM.print(sum.fold(PartialChecksum::default(), |a, b| a.combine(CHECKSUM, b))))
}

/// Description of a setup, including the operator and the links for which it was made. Compare it with the present operator and links
/// before you use the setup.
#[derive(Clone, Debug, PartialEq)]
pub struct SetupHeader {
    /// Extents of the whole lattice.
    pub lattice: Lattice,
    /// Number of vectors, from 1 to [`MOST_STORED_VECTORS`].
    pub vectors: usize,
    /// Operator for which the vectors were made: a JSON object with all parameters that distinguish operators. Numbers are read back
    /// unchanged; they must be finite.
    pub operator: Value,
    /// Checksum of the links for which the vectors were made, from [`links_checksum`].
    pub links: String,
    /// Name and version of the program that made the vectors.
    pub program: String,
}

impl SetupHeader {
    /// Makes the header of a setup by this program.
    pub fn new(lattice: Lattice, vectors: usize, operator: Value, links: impl Into<String>) -> Self {
        let program = concat!("ferrite ", env!("CARGO_PKG_VERSION")).into();
        Self { lattice, vectors, operator, links: links.into(), program }
    }
    /// Returns the text of the first record, which contains the header.
    fn to_text(&self) -> Result<String, Problem> {
        let unwritable = |why| Err(Problem::Unwritable { why });
        if !(1..=MOST_STORED_VECTORS).contains(&self.vectors) {
            return unwritable("a multigrid setup needs 1 to 1024 vectors");
        }
        let Value::Object(operator) = &self.operator else {
            return unwritable("the description of the operator must be a JSON object");
        };
        let (lattice, links, program) = (self.lattice.size(), &*self.links, &*self.program);
        let text = to_json(&HeaderRecord { format: FORMAT, lattice, links, operator, program, vectors: self.vectors });
        if text.len() > MOST_TEXT {
            return unwritable("the description of the operator and of the links is longer than 64 KiB: shorten it");
        }
        Ok(text)
    }
    /// Reads the header from the first record, whose format has been checked.
    fn of(record: &TextRecord) -> Result<Self, Problem> {
        let number = "a number from 1 to 1024";
        let vectors: usize = record.key("vectors", number)?;
        if !(1..=MOST_STORED_VECTORS).contains(&vectors) {
            return Err(record.wrong("vectors", number));
        }
        Ok(Self {
            lattice: even_lattice_from(record.key("lattice", "four extents")?, SETUP)?,
            vectors,
            operator: Value::Object(record.key("operator", "an object")?),
            links: record.key("links", "text")?,
            program: record.key("program", "text")?,
        })
    }
}

/// Content of the first record, with its keys in the order of the file.
#[derive(Serialize)]
struct HeaderRecord<'a> {
    format: &'static str,
    lattice: [usize; 4],
    links: &'a str,
    operator: &'a Map<String, Value>,
    program: &'a str,
    vectors: usize,
}

/// Content of the last record: checksums of all other records.
#[derive(Serialize)]
struct SetupChecksums {
    /// CRC-32 of the data of the first record.
    setup: String,
    /// Checksum of each vector, in the order of the file.
    vectors: Vec<String>,
}

fn to_json(record: &impl Serialize) -> String {
    serde_json::to_string(record).expect("texts, numbers and JSON")
}

/// Returns the number of bytes of a vector on a lattice.
fn vector_bytes(lattice: Lattice) -> u64 {
    lattice.half_volume() as u64 * FORM.site_bytes() as u64
}

/// Returns the even one of the sites 2k and 2k + 1.
fn even_site(lattice: Lattice, k: usize) -> usize {
    2 * k + lattice.parity(lattice.coordinates(2 * k))
}

/// *Collective.* Returns the parts of all processes after a check that they make up this lattice. Their extents are even, so all parts
/// begin at even coordinates, and their even sites are even sites of the lattice.
fn meet<'a, T>(
    file: &SharedFile<'a>,
    lattice: Lattice,
    mine: Result<T, SystemError>,
) -> Result<(T, FileParts<'a>), Problem> {
    let section = file.section.unwrap_or(lattice.into());
    let (mine, parts) = FileParts::meet(file.network, &section, &[], mine)?;
    if parts.mine().global != lattice {
        return Err(other_lattice(parts.mine().global, lattice));
    }
    Ok((mine, parts))
}

fn other_lattice(caller: Lattice, file: Lattice) -> Problem {
    Problem::Disagree {
        what: "the lattice",
        first: caller.to_string(),
        first_place: "request",
        second: file.to_string(),
        second_place: "header of the setup",
    }
}

/// Writer of a setup, one vector at a time. The file appears under its name when [`finish`](Self::finish) succeeds; until then an older
/// file remains. If the writer is dropped before, the new file is removed.
///
/// All processes must make the same calls in the same order, each with its section of the vectors. A call succeeds on all processes, or
/// fails on all with the same error; only a [`Problem::Comm`] may concern a single process. After a failed call, all later calls fail.
pub struct SetupWriter<'a> {
    path: PathBuf,
    parts: FileParts<'a>,
    header: SetupHeader,
    /// Bytes of the first record.
    head: Vec<u8>,
    /// CRC-32 of the data of the first record.
    head_sum: u32,
    /// Checksums of the vectors written so far.
    sums: Vec<PartialChecksum>,
    /// File that is being written; `None` after a failure.
    output: Option<SharedOutput>,
}

impl<'a> SetupWriter<'a> {
    /// *Collective.* Begins a setup file in a folder that all processes share. `to` contains the path and this process's section. A single
    /// process that has the whole lattice needs no section.
    ///
    /// # Errors
    /// Fails in these cases: the number of vectors is 0 or too large, the header is longer than 64 KiB, or the operator is not a JSON
    /// object; the sections do not make up the lattice, or the headers of the processes differ; the file cannot be created, or is a pipe or
    /// a device.
    pub fn create(to: SharedFile<'a>, header: SetupHeader) -> Result<Self, FileError> {
        settle(to.network, Self::attempt(&to, header)).map_err(FileError::at(to.path))
    }
    fn attempt(to: &SharedFile<'a>, header: SetupHeader) -> Result<Self, Problem> {
        // Each process sends its header, or the problem with it: a wrong header may exist on one process only.
        let checked = header.to_text();
        let encode = |checked: &Result<String, Problem>| {
            checked.as_ref().map_or_else(|problem| problem.to_string(), |text| text.clone()).into_bytes()
        };
        let (checked, all) = gather(to.network, Ok(checked), encode)?;
        if let Some(rank) = all.iter().position(|header| *header != all[0]) {
            let why = format!("the headers of rank {rank} and rank 0 differ; give the same header on all ranks");
            return Err(Problem::Parts { why });
        }
        let text = checked?;
        let ((), parts) = meet(to, header.lattice, Ok(()))?;
        let mut head = Vec::new();
        lime::append(&mut head, SETUP, MessageFlags::Begin, text.as_bytes());
        let mut writer = Self {
            path: to.path.to_owned(),
            parts,
            head_sum: crc32fast::hash(text.as_bytes()),
            head,
            sums: Vec::with_capacity(header.vectors),
            output: None,
            header,
        };
        let end = writer.record(writer.header.vectors);
        writer.output = Some(SharedOutput::create(to.path, end, to.network)?);
        Ok(writer)
    }
    /// Returns the LIME header for the record of a vector.
    fn vector_header(&self) -> Vec<u8> {
        let mut header = Vec::new();
        lime::append_header(&mut header, VECTOR, MessageFlags::Middle, vector_bytes(self.header.lattice));
        header
    }
    /// Returns the offset of the record of a vector in bytes. Vectors need no padding, because their length is a multiple of 96 bytes.
    fn record(&self, number: usize) -> u64 {
        let record = self.vector_header().len() as u64 + vector_bytes(self.header.lattice);
        self.head.len() as u64 + number as u64 * record
    }
    /// *Collective.* Writes this process's section of the next vector. Values on odd sites are ignored.
    ///
    /// # Errors
    /// Fails if a number is not finite in single precision, if the field is not on the section, if all vectors of the header have been
    /// written, or if the operating system fails, for example because the disk is full. The unfinished file is then removed.
    pub fn write(&mut self, vector: &HostSpinor) -> Result<(), FileError> {
        let written = self.write_next(vector);
        if written.is_err() {
            self.output = None;
            settle(self.parts.network, written).map_err(FileError::at(&self.path))?;
        }
        Ok(())
    }
    fn write_next(&mut self, vector: &HostSpinor) -> Result<(), Problem> {
        let file = &self.output.as_ref().ok_or(FAILED)?.file;
        let number = self.sums.len();
        if number == self.header.vectors {
            let why = "the file already has as many vectors as its header declares; write no more";
            return Err(Problem::Unwritable { why });
        }
        let even = self.even_sites(vector).map_err(Problem::in_field(number))?;
        let offset = self.record(number) + self.vector_header().len() as u64;
        let values: &[Complex64] = even.as_flattened().as_flattened();
        let sum = payload::write(file, offset, values, &FORM, &Runs::of_even_sites(self.parts.mine()));
        self.sums.push(total(&self.parts, sum)?);
        Ok(())
    }
    /// *Collective.* Returns the spinors of this process on even sites, after a check that the field is on the section and finite in single
    /// precision.
    fn even_sites(&self, vector: &HostSpinor) -> Result<Vec<Spinor>, Problem> {
        let section = self.parts.mine();
        let fits = vector.lattice() == section.local;
        let sites = if fits { section.local.half_volume() } else { 0 };
        let even = (0..sites).into_par_iter().map(|k| vector.sites()[even_site(section.local, k)]);
        let even: Vec<Spinor> = even.collect();
        let finite = |number: &Complex64| (number.re as f32).is_finite() && (number.im as f32).is_finite();
        let bad = even.par_iter().position_first(|site| !site.as_flattened().iter().all(finite));
        let bad = bad.map_or(u64::MAX, |k| section.global_index(even_site(section.local, k)) as u64);
        let all = self.parts.collect([u64::from(fits), bad])?;
        if let Some(rank) = all.iter().position(|[fits, _]| *fits == 0) {
            return Err(Problem::Parts {
                why: format!(
                    "the extents of the vector of rank {rank} differ from those of its part; give a vector on the \
                     part of the rank"
                ),
            });
        }
        match all.iter().map(|[_, bad]| *bad).min() {
            Some(bad) if bad != u64::MAX => {
                let site = section.global.coordinates(bad as usize);
                Err(Problem::NotFinite { what: "spinor, in single precision,", site })
            }
            _ => Ok(even),
        }
    }
    /// *Collective.* Writes the headers and checksums of all records, flushes the file to the storage device, and gives it its final name.
    ///
    /// # Errors
    /// Fails if vectors are missing, or if the operating system fails. The new file is then removed, and an older file remains.
    pub fn finish(mut self) -> Result<(), FileError> {
        let finished = self.finish_all();
        settle(self.parts.network, finished).map_err(FileError::at(&self.path))
    }
    fn finish_all(&mut self) -> Result<(), Problem> {
        // `output` is owned here, so that an error of this function removes the file before other processes continue.
        let output = self.output.take().ok_or(FAILED)?;
        let (written, expected) = (self.sums.len(), self.header.vectors);
        if written < expected {
            return Err(Problem::VectorsMissing { written, expected });
        }
        let vectors = self.sums.iter().map(|sum| CHECKSUM.print(*sum)).collect();
        let sums = to_json(&SetupChecksums { setup: format!("{:08x}", self.head_sum), vectors });
        let mut tail = Vec::new();
        lime::append(&mut tail, CHECKSUMS, MessageFlags::End, sums.as_bytes());
        let put = |bytes: &[u8], offset: u64| {
            output.file.write_all_at(bytes, offset).map_err(SystemError::of("write the headers of the records"))
        };
        let records = || {
            (0..expected).try_for_each(|number| put(&self.vector_header(), self.record(number)))?;
            put(&tail, self.record(expected))?;
            // The first record, with the magic number, is written last, so that an incomplete file is not recognised.
            put(&self.head, 0)
        };
        let first = self.parts.network.rank() == 0;
        let records = if first { records() } else { Ok(()) };
        output.finish(records, self.parts.network)
    }
}

const FAILED: Problem = Problem::Unwritable { why: "an earlier vector could not be written; start the file again" };

/// *Collective.* Returns the checksum of a vector, combined from those of its parts.
fn total(parts: &FileParts, mine: Result<PartialChecksum, SystemError>) -> Result<PartialChecksum, Problem> {
    let (_, answers) = gather(parts.network, mine, |sum| sum.to_bytes())?;
    let sums = answers.iter().map(|bytes| PartialChecksum::from_bytes(bytes));
    Ok(sums.fold(PartialChecksum::default(), |a, b| FORM.combine(a, b)))
}

/// Content of the text records, and the positions of the vectors.
struct Contents {
    header: SetupHeader,
    /// Offset of each vector's data in bytes.
    offsets: Vec<u64>,
    /// Checksum of each vector in the file.
    sums: Vec<String>,
}

impl Contents {
    fn parse(image: &mut Image) -> Result<Self, Problem> {
        if image.seek(SeekFrom::End(0)).map_err(Problem::io("find the length"))? == 0 {
            return Err(Problem::Empty);
        }
        image.rewind().map_err(Problem::io("seek to the start"))?;
        let start = some(image, 4)?;
        if start != lime::LIME_MAGIC {
            let start = start.iter().map(|b| format!("{b:02x}")).collect::<Vec<_>>().join(" ");
            let found = format!("the file starts with the bytes {start}, but a LIME file starts with 45 67 89 ab");
            return Err(Problem::NotASetup { found });
        }
        let records = lime::records(image)?;
        let Some(first) = records.first().filter(|first| first.kind == SETUP) else {
            let first = records.first().map_or("", |first| &first.kind);
            let found = format!("the first LIME record is {first:?}, not {SETUP:?}");
            return Err(Problem::NotASetup { found });
        };
        let first = TextRecord::read(image, first)?;
        // The format is checked first, because all other keys may differ in another version.
        let format = &first.json["format"];
        if format != FORMAT {
            let expected =
                format!("{FORMAT:?}; another version of Ferrite wrote the file: delete it to compute the setup again");
            let found = String::deserialize(format).unwrap_or_else(|_| format.to_string());
            return Err(Problem::field(first.place, "format", found, expected));
        }
        let Some(last) = records.iter().find(|record| record.kind == CHECKSUMS) else {
            let hint = "the file is cut short: copy it again, or delete it to compute the setup again";
            return Err(Problem::Missing { place: "LIME file".into(), field: CHECKSUMS, hint });
        };
        let last = TextRecord::read(image, last)?;
        let stored: String = last.key("setup", "eight hexadecimal digits")?;
        let computed = format!("{:08x}", crc32fast::hash(first.text.as_bytes()));
        if computed != stored {
            return Err(Problem::CorruptSetup { what: first.place, stored, computed });
        }
        let header = SetupHeader::of(&first)?;
        let vectors: Vec<_> = records.iter().filter(|record| record.kind == VECTOR).collect();
        if vectors.len() != header.vectors {
            let expected = format!(
                "{}, as in the header; copy the file again, or delete it to compute the setup again",
                header.vectors
            );
            let found = vectors.len().to_string();
            return Err(Problem::field("LIME file", "number of ferrite-multigrid-vector records", found, expected));
        }
        let needed = vector_bytes(header.lattice);
        if let Some(vector) = vectors.iter().find(|vector| vector.length != needed) {
            return Err(Problem::Length {
                place: vector.place(),
                length: vector.length,
                said: format!("a vector on the even sites of the {} lattice has {needed} bytes", header.lattice),
                would: "the file is damaged: copy it again, or delete it to compute the setup again".into(),
                remedy: LengthRemedy::Nothing,
            });
        }
        let each = "one checksum for each vector";
        let sums: Vec<String> = last.key("vectors", each)?;
        if sums.len() != header.vectors {
            return Err(last.wrong("vectors", each));
        }
        Ok(Self { header, offsets: vectors.iter().map(|vector| vector.offset).collect(), sums })
    }
}

/// A record of text that contains JSON.
struct TextRecord {
    place: String,
    text: String,
    json: Value,
}

impl TextRecord {
    fn read(image: &mut Image, record: &LimeRecord) -> Result<Self, Problem> {
        let place = record.place();
        let wrong = |found: &str| Problem::field(&*place, "content", found, "JSON; the file is damaged: copy it again");
        let text = lime::text(image, record)?.ok_or_else(|| wrong("more than 64 KiB, or not text"))?;
        let json = serde_json::from_str(&text).map_err(|_| wrong(&text))?;
        Ok(TextRecord { place, text, json })
    }
    /// Returns the value of a key; `expected` describes valid values in the error.
    fn key<T: DeserializeOwned>(&self, key: &'static str, expected: &str) -> Result<T, Problem> {
        T::deserialize(&self.json[key]).map_err(|_| self.wrong(key, expected))
    }
    fn wrong(&self, key: &'static str, expected: &str) -> Problem {
        Problem::field(&*self.place, key, self.json[key].to_string(), expected)
    }
}

/// *Collective* with a [`SharedFile`]. Reads only the header of a setup file.
///
/// # Errors
/// See [`SetupReader::open`]; errors about sections cannot occur.
pub fn inspect_setup<'a>(from: impl Into<ReadFrom<'a>>) -> Result<SetupHeader, FileError> {
    header_with(&from.into(), |image| Contents::parse(image).map(|contents| contents.header))
}

/// Reader of a setup, one vector at a time.
///
/// All processes must make the same calls in the same order. A call succeeds on all processes, or fails on all with the same error; only a
/// [`Problem::Comm`] may concern a single process.
pub struct SetupReader<'a> {
    path: PathBuf,
    parts: FileParts<'a>,
    opened: Opened<'a>,
    contents: Contents,
}

impl<'a> SetupReader<'a> {
    /// *Collective.* Opens a file and checks its records, but not the numbers of the vectors. If `from` has a section, the file must be on
    /// the section's lattice. A single process without a section reads the whole of any lattice.
    ///
    /// # Errors
    /// Fails in these cases: the file cannot be opened, is not a setup, has another version, is cut short, or has other records than its
    /// header implies; the checksum of the header is wrong; the lattice differs from that of the sections, or the sections do not make up
    /// the lattice.
    pub fn open(from: SharedFile<'a>) -> Result<Self, FileError> {
        let all = || {
            let read = ReadFrom::Shared(from);
            let (opened, contents) = shared_header(&read, from.network, Contents::parse)?;
            let opened = opened.map_or_else(|| read.open(), Ok);
            let (opened, parts) = meet(&from, contents.header.lattice, opened)?;
            Ok(Self { path: from.path.to_owned(), parts, opened, contents })
        };
        all().map_err(FileError::at(from.path))
    }
    /// Returns the description of the setup.
    pub fn header(&self) -> &SetupHeader {
        &self.contents.header
    }
    /// *Collective.* Reads this process's section of the vector with this number, from 0. The field is zero on odd sites.
    ///
    /// # Errors
    /// Fails if there is no such vector, if its checksum is wrong, if a number is not finite, or if the operating system fails.
    pub fn read(&self, number: usize) -> Result<HostSpinor, FileError> {
        let header = &self.contents.header;
        let all = || {
            let (Some(offset), Some(stored)) = (self.contents.offsets.get(number), self.contents.sums.get(number))
            else {
                let last = header.vectors - 1;
                let choice = if last == 0 { String::from("0") } else { format!("a number from 0 to {last}") };
                let expected = format!(
                    "more than {number}, because vector {number}, counted from 0, is requested; choose {choice}"
                );
                let found = header.vectors.to_string();
                return Err(Problem::field("header of the setup", "number of vectors", found, expected));
            };
            self.read_at(*offset, stored).map_err(Problem::in_field(number))
        };
        all().map_err(FileError::at(&self.path))
    }
    fn read_at(&self, offset: u64, stored: &str) -> Result<HostSpinor, Problem> {
        let section = self.parts.mine();
        let mut even = vec![Spinor::default(); section.local.half_volume()];
        let values = even.as_flattened_mut().as_flattened_mut();
        let read = payload::read(&self.opened, offset, &FORM, &Runs::of_even_sites(section), values);
        let computed = CHECKSUM.print(total(&self.parts, read)?);
        if computed != stored {
            return Err(Problem::CorruptSetup { what: "the vector".into(), stored: stored.into(), computed });
        }
        let mut vector = HostSpinor::zero(section.local);
        vector.sites_mut().par_chunks_exact_mut(2).zip(&even).enumerate().for_each(|(k, (pair, value))| {
            pair[even_site(section.local, k) - 2 * k] = *value;
        });
        checks::fermion(&vector, &self.parts)?;
        Ok(vector)
    }
}
