//! Functions that read and check fields, on one process or on many.
use super::formats::{FieldBlock, FileFamily, Recognition, START};
use super::image::{Image, some};
use super::parts::{FileParts, gather};
use super::payload::{self, LINKS, PartialChecksum};
use super::source::{Opened, ReadAt};
use super::{
    Arrangement, BlockFile, Checksum, ColumnOrder, FILE_FAMILIES, FermionFile, FileError, GaugeFile, Header, Problem,
    RawField, ReadOptions, SharedFile,
};
use super::{arrangement, checks, columns, unsupported};
use crate::field::host::{Fermion, HostField, HostGauge, Matrix, Spinor};
use crate::gauge::measure::{LINK_TRACE_NAME, PLAQUETTE_NAME, Plaquettes};
use crate::lattice::Section;
use crate::network::Network;
use crate::system::atomic::SystemError;
use comms::Solo;
use num_complex::Complex64;
use std::fs::File;
use std::io::{Seek, SeekFrom};
use std::ops::Range;
use std::path::Path;

/// Source of a field that is read.
///
/// A path (`&Path`, `&PathBuf`, `&str`) converts to a file that one process reads completely: `read_gauge(&path, &options)`. A
/// [`SharedFile`] converts to a file that many processes read together.
#[derive(Clone, Copy)]
pub enum ReadFrom<'a> {
    /// A file that one process reads.
    File(&'a Path),
    /// *Collective.* A file that many processes read together.
    Shared(SharedFile<'a>),
    /// Content of a file in memory.
    Memory(&'a [u8]),
}

impl<'a, P: AsRef<Path> + ?Sized> From<&'a P> for ReadFrom<'a> {
    fn from(path: &'a P) -> Self {
        Self::File(path.as_ref())
    }
}

impl<'a> From<SharedFile<'a>> for ReadFrom<'a> {
    fn from(file: SharedFile<'a>) -> Self {
        Self::Shared(file)
    }
}

impl<'a> ReadFrom<'a> {
    /// Returns the path of the source, for errors.
    fn path(&self) -> &'a Path {
        match self {
            Self::File(path) => path,
            Self::Shared(file) => file.path,
            Self::Memory(_) => Path::new("<memory>"),
        }
    }
    pub(super) fn open(&self) -> Result<Opened<'a>, SystemError> {
        match self {
            Self::Memory(bytes) => Ok(Opened::Memory(bytes)),
            _ => File::open(self.path()).map(Opened::File).map_err(SystemError::of("open")),
        }
    }
    fn network(&self) -> Option<&'a dyn Network> {
        if let Self::Shared(file) = self { Some(file.network) } else { None }
    }
    fn section(&self) -> Option<Section> {
        if let Self::Shared(file) = self { file.section } else { None }
    }
    /// Returns the options with the lattice of the section that is to be read.
    fn expected(&self, options: &ReadOptions) -> ReadOptions {
        let lattice = self.section().map(|section| section.global).or(options.lattice);
        ReadOptions { lattice, ..options.clone() }
    }
}

/// Reads only the header of a field.
pub fn inspect<'a>(from: impl Into<ReadFrom<'a>>, options: &ReadOptions) -> Result<Header, FileError> {
    header_with(&from.into(), |image| header(image, options))
}

/// Reads the header of a block of fields: an `.npy` file with an axis before those of the lattice, the columns of a propagator in one
/// record, or a LIME file with several fields. Returns the header of the first field, in which [`Header::fields`] is the number of fields.
/// Returns `None` for other files.
pub fn inspect_block<'a, T: Fermion>(
    from: impl Into<ReadFrom<'a>>,
    options: &ReadOptions,
) -> Result<Option<Header>, FileError> {
    header_with(&from.into(), |image| Ok(block::<T>(image, options)?.map(|block| block.first)))
}

/// Reads and checks a gauge field.
pub fn read_gauge<'a>(from: impl Into<ReadFrom<'a>>, options: &ReadOptions) -> Result<GaugeFile, FileError> {
    read_with(&from.into(), options, header, |source, header, parts| gauge_at(source, header, options, parts))
}

/// Reads and checks a fermion field, which is a [`HostSpinor`](crate::field::host::HostSpinor) or a
/// [`HostColour`](crate::field::host::HostColour).
pub fn read_fermion<'a, T: Fermion>(
    from: impl Into<ReadFrom<'a>>,
    options: &ReadOptions,
) -> Result<FermionFile<T>, FileError> {
    read_with(&from.into(), options, header, |source, header, parts| fermion_at(source, header, options, parts))
}

/// Reads and checks field `number` of a block, counted from 0. For a propagator, this takes as long as reading all columns, because they
/// have a common checksum; [`read_fermions`] reads all columns at once.
pub fn read_block<'a, T: Fermion>(from: impl Into<ReadFrom<'a>>, number: usize) -> Result<FermionFile<T>, FileError> {
    block_field(&from.into(), number, &ReadOptions::default())
}

fn block_field<T: Fermion>(from: &ReadFrom, number: usize, options: &ReadOptions) -> Result<FermionFile<T>, FileError> {
    let in_block = |image: &mut Image, options: &_| checked(header_in_block::<T>(image, number, options)?, options);
    read_with(from, options, in_block, |source, header, parts| {
        if let Some(order) = header.columns() {
            let read = columns_at(source, header, order, number..number + 1, options, parts);
            let BlockFile { mut fields, header, checksum } = read.map_err(Problem::in_field(number))?;
            return Ok(FermionFile { field: fields.remove(0), header, checksum });
        }
        fermion_at(source, header, options, parts).map_err(Problem::in_field(number))
    })
}

/// Reads and checks all fermion fields of a file: a single field, or all fields of a block.
pub fn read_fermions<'a, T: Fermion>(
    from: impl Into<ReadFrom<'a>>,
    options: &ReadOptions,
) -> Result<BlockFile<T>, FileError> {
    let from = from.into();
    let expected = from.expected(options);
    let Some(first) = header_with(&from, |image| Ok(block::<T>(image, &expected)?.map(|block| block.first)))? else {
        let FermionFile { field, header, checksum } = read_fermion(from, options)?;
        return Ok(BlockFile { fields: vec![field], header, checksum });
    };
    if let Some(order) = first.columns() {
        let parse = |image: &mut Image, options: &_| checked(header_in_block::<T>(image, 0, options)?, options);
        return read_with(&from, options, parse, |source, header, parts| {
            columns_at(source, header, order, 0..T::COMPONENTS, options, parts)
        });
    }
    let (mut fields, mut checksum, count) = (Vec::new(), None, first.fields);
    for number in 0..count {
        let file = block_field::<T>(&from, number, options)?;
        fields.push(file.field);
        let so_far = checksum.take().filter(|sum| matches!(sum, Checksum::Mismatch { .. }));
        checksum = Some(so_far.unwrap_or(file.checksum));
    }
    Ok(BlockFile { fields, header: first, checksum: checksum.unwrap_or(Checksum::Absent) })
}

/// Reads a field of any kind, and checks only its checksum.
pub fn read_field<'a>(from: impl Into<ReadFrom<'a>>, options: &ReadOptions) -> Result<RawField, FileError> {
    read_with(&from.into(), options, header, |source, header, parts| field_at(source, header, options, parts))
}

/// Recognises the format of a file, and reads its header.
fn header(reader: &mut Image, options: &ReadOptions) -> Result<Header, Problem> {
    let Some(family) = recognised(reader, options)? else {
        return Err(unsupported::recognise(reader)?);
    };
    let mut header = (family.header)(reader, options)?;
    let end = header.offset + header.needed();
    if header.data_length > header.needed() && options.verify {
        let extra = header.data_length - header.needed();
        reader.seek(SeekFrom::Start(end)).map_err(Problem::io("seek behind the data"))?;
        let another = by_start(&some(reader, START)?).is_some();
        return Err(Problem::Trailing { offset: end, extra, another });
    }
    if header.data_length > header.needed() {
        let extra = header.data_length - header.needed();
        header.notes.push(format!("all bytes after the data are ignored (number of bytes: {extra})"));
    }
    byte_order(reader, &mut header, family.byte_order, options)?;
    checked(header, options)
}

/// Returns the family of formats to which a file belongs; `None` if no family is recognised.
fn recognised(reader: &mut Image, options: &ReadOptions) -> Result<Option<&'static FileFamily>, Problem> {
    reader.rewind().map_err(Problem::io("seek to the start"))?;
    if let Some(family) = by_start(&some(reader, START)?) {
        return Ok(Some(family));
    }
    for family in FILE_FAMILIES {
        if let Recognition::Content(recognise) = family.recognition
            && recognise(reader, options)?
        {
            return Ok(Some(family));
        }
    }
    Ok(None)
}

/// Returns the family of formats whose files begin with these bytes.
fn by_start(start: &[u8]) -> Option<&'static FileFamily> {
    let fits = |family: &&FileFamily| matches!(family.recognition, Recognition::Start(recognise) if recognise(start));
    FILE_FAMILIES.into_iter().find(fits)
}

/// Detects links in the wrong byte order, which checksums of LIME files do not detect. `said` names the source of the byte order.
fn byte_order(
    reader: &mut Image,
    header: &mut Header,
    said: &'static str,
    options: &ReadOptions,
) -> Result<(), Problem> {
    let begins_with_links = match header.arrangement {
        Arrangement::Sites | Arrangement::Columns(_) => true,
        // The first record contains links of one direction only, not all links of a site.
        Arrangement::Directions(_) => false,
        Arrangement::Own(own) => own.begins_with_links,
    };
    if header.values_per_site() != LINKS || !begins_with_links {
        return Ok(());
    }
    reader.seek(SeekFrom::Start(header.offset)).map_err(Problem::io("seek to the data"))?;
    let site = some(reader, header.site_bytes() as u64)?;
    let (stated, other) = (header.endian, header.endian.other());
    let is_unitary = |endian| payload::row_violation(&site, &Header { endian, ..header.clone() }) < 1e-3;
    if is_unitary(stated) || !is_unitary(other) {
        return Ok(());
    }
    if options.verify {
        return Err(Problem::ByteOrder { said, stated, other });
    }
    header.notes.push(format!("{said} specifies {stated}-endian numbers; the numbers are read as {other}-endian"));
    header.endian = other;
    Ok(())
}

/// Returns the header after a check that its lattice is the expected one.
fn checked(header: Header, options: &ReadOptions) -> Result<Header, Problem> {
    match options.lattice {
        Some(lattice) if lattice != header.lattice => Err(Problem::Disagree {
            what: "the lattice",
            first: lattice.to_string(),
            first_place: "request",
            second: header.lattice.to_string(),
            second_place: "file",
        }),
        _ => Ok(header),
    }
}

/// Reads the headers of a block; returns `None` for other files.
fn block<T: Fermion>(image: &mut Image, options: &ReadOptions) -> Result<Option<FieldBlock>, Problem> {
    match recognised(image, options)? {
        Some(family) => (family.block)(image, options, T::SHAPE),
        None => Ok(None),
    }
}

/// Returns the header of the field with this number in a block.
fn header_in_block<T: Fermion>(image: &mut Image, number: usize, options: &ReadOptions) -> Result<Header, Problem> {
    let Some(FieldBlock { mut first, mut records }) = block::<T>(image, options)? else {
        let found = "other data";
        return Err(Problem::field("file", "content", found, format!("several fields of type {}", T::NAME)));
    };
    if number >= first.fields {
        let choice =
            if first.fields == 1 { String::from("0") } else { format!("a number from 0 to {}", first.fields - 1) };
        let expected =
            format!("more than {number}, because field {number}, counted from 0, is requested; choose {choice}");
        return Err(Problem::field("file", "number of fields", first.fields.to_string(), expected));
    }
    if !records.is_empty() {
        return Ok(records.swap_remove(number));
    }
    if let Arrangement::Sites = first.arrangement {
        // The offset does not overflow, because the fields end inside the file.
        first.offset += number as u64 * first.needed();
    }
    Ok(first)
}

/// *Collective.* Reads the header with `parse`, and then the data with `data`. `parse` receives the options with the lattice of the section
/// to be read.
fn read_with<T>(
    from: &ReadFrom,
    options: &ReadOptions,
    parse: impl Fn(&mut Image, &ReadOptions) -> Result<Header, Problem>,
    data: impl FnOnce(&dyn ReadAt, Header, &FileParts) -> Result<T, Problem>,
) -> Result<T, FileError> {
    let solo = Solo::new();
    let (network, section) = (from.network().unwrap_or(&solo), from.section());
    let expected = from.expected(options);
    let all = || {
        let (opened, header) = shared_header(from, network, |image| parse(image, &expected))?;
        let opened = opened.map_or_else(|| from.open(), Ok);
        let section = section.unwrap_or_else(|| header.lattice.into());
        let (opened, parts) = FileParts::meet(network, &section, &[], opened)?;
        data(&opened, header, &parts)
    };
    all().map_err(FileError::at(from.path()))
}

/// *Collective.* Returns only the result of `parse`.
pub(super) fn header_with<H>(
    from: &ReadFrom,
    parse: impl Fn(&mut Image) -> Result<H, Problem>,
) -> Result<H, FileError> {
    let solo = Solo::new();
    let header = shared_header(from, from.network().unwrap_or(&solo), parse);
    header.map(|(_, header)| header).map_err(FileError::at(from.path()))
}

/// *Collective.* Returns the result of `parse`, and on rank 0 also the open file. Only rank 0 reads the header; the other ranks parse the
/// bytes that it has read. Thus hundreds of processes do not request the same few bytes from the file server. All processes get the same
/// header or error, even if the file changes meanwhile.
pub(super) fn shared_header<'a, H>(
    from: &ReadFrom<'a>,
    network: &dyn Network,
    parse: impl Fn(&mut Image) -> Result<H, Problem>,
) -> Result<(Option<Opened<'a>>, H), Problem> {
    let read = || {
        if network.rank() != 0 {
            return Ok(None);
        }
        let mut image = Image::of_file(from.open()?, from.path());
        match parse(&mut image) {
            Err(Problem::Io { action, source }) => Err(SystemError { action, source }),
            found => Ok(Some((image, found))),
        }
    };
    let encode = |read: &Option<(Image, _)>| read.as_ref().map_or(Vec::new(), |(image, _)| image.to_bytes());
    let (mine, answers) = gather(network, read(), encode)?;
    match mine {
        Some((image, found)) => Ok((image.into_opened(), found?)),
        None => Ok((None, parse(&mut Image::from_bytes(&answers[0]))?)),
    }
}

/// *Collective.* Reads data like [`compared`], but a checksum that differs is an error if `options` require verification.
fn data_at(
    source: &dyn ReadAt,
    header: &Header,
    options: &ReadOptions,
    parts: &FileParts,
    values: &mut [Complex64],
) -> Result<Checksum, Problem> {
    let checksum = compared(source, header, parts, values)?;
    checksum.require(options)?;
    Ok(checksum)
}

/// *Collective.* Reads this process's part of the data, and compares the checksum of all parts with the header.
fn compared(
    source: &dyn ReadAt,
    header: &Header,
    parts: &FileParts,
    values: &mut [Complex64],
) -> Result<Checksum, Problem> {
    checksum_of(header, parts, arrangement::read(source, header, parts.mine(), values))
}

/// *Collective.* Compares the combined checksum of all parts with that of the header.
fn checksum_of(
    header: &Header,
    parts: &FileParts,
    mine: Result<PartialChecksum, SystemError>,
) -> Result<Checksum, Problem> {
    let (_, answers) = gather(parts.network, mine, |sum| sum.to_bytes())?;
    let sums = answers.iter().map(|bytes| PartialChecksum::from_bytes(bytes));
    let all = match header.checksum {
        Some((kind, _)) => sums.fold(PartialChecksum::default(), |a, b| a.combine(kind, b)),
        None => PartialChecksum::default(),
    };
    Ok(Checksum::compare(header.checksum, all))
}

/// Returns the failure of the communication if `result` is one, otherwise `problem`.
fn comm_or(result: Result<(), Problem>, problem: Problem) -> Problem {
    match result {
        Err(lost @ Problem::Comm(_)) => lost,
        _ => problem,
    }
}

fn gauge_at(
    source: &dyn ReadAt,
    header: Header,
    options: &ReadOptions,
    parts: &FileParts,
) -> Result<GaugeFile, Problem> {
    require_components(&header, "a gauge field", LINKS)?;
    let local = parts.mine().local;
    let mut links = vec![Matrix::default(); 4 * local.volume()];
    let checksum = compared(source, &header, parts, bytemuck::cast_slice_mut(&mut links))?;
    let mut gauge = HostGauge::from_links(local, links);
    let known = [(PLAQUETTE_NAME, header.plaquette), (LINK_TRACE_NAME, header.link_trace)];
    let known: Vec<_> = known.into_iter().filter_map(|(name, stored)| stored.map(|stored| (name, stored))).collect();
    let computed =
        |measured: &(Plaquettes, f64), name| if name == PLAQUETTE_NAME { measured.0.mean } else { measured.1 };
    if let Err(problem) = checksum.require(options) {
        // The plaquette shows why the checksum is wrong. Corrupt bits change the plaquette by more than its last digits, unless only few
        // bits of low order are corrupt. A checksum that was computed by another rule leaves the plaquette unchanged.
        let sound =
            checks::links(&gauge, header.precision, options, parts).and_then(|_| checks::measured(&gauge, parts));
        let Ok(measured) = sound else { return Err(comm_or(sound.map(|_| ()), problem)) };
        let as_stored = known.iter().all(|(name, stored)| stored.agrees_to_its_digits(computed(&measured, *name)));
        return Err(match (problem, known.first()) {
            (Problem::Checksum { kind, stored, computed }, Some((agreeing, _))) if as_stored => {
                Problem::ChecksumRule { kind, stored, computed, agreeing }
            }
            (problem, _) => problem,
        });
    }
    let open_boundary = checks::has_open_boundary(&gauge, parts)?;
    let open = |problem| if open_boundary { at_open_boundary(problem, &header) } else { problem };
    let unitarity = checks::links(&gauge, header.precision, options, parts).map_err(open)?;
    let measured = checks::measured(&gauge, parts)?;
    for (name, stored) in known.iter().filter(|_| options.verify) {
        checks::value(name, *stored, computed(&measured, name), header.precision)?;
    }
    let (plaquette, link_trace) = measured;
    if options.reunitarise {
        gauge.reunitarise();
        checks::reunitarised(&gauge, parts).map_err(open)?;
    }
    Ok(GaugeFile { gauge, header, checksum, plaquette, link_trace, unitarity, open_boundary })
}

/// Returns a problem about open boundary conditions if a check failed for a link that such conditions set to zero; otherwise returns
/// `problem`.
fn at_open_boundary(problem: Problem, header: &Header) -> Problem {
    match problem {
        Problem::NotUnitary { what: "link U_t", site, .. } | Problem::NotReunitarised { what: "link U_t", site }
            if site[3] + 1 == header.lattice.size()[3] =>
        {
            Problem::OpenBoundary
        }
        problem => problem,
    }
}

fn fermion_at<T: Fermion>(
    source: &dyn ReadAt,
    header: Header,
    options: &ReadOptions,
    parts: &FileParts,
) -> Result<FermionFile<T>, Problem> {
    let wanted = if T::COMPONENTS == Spinor::COMPONENTS { "a spinor field" } else { "a field of colour vectors" };
    require_components(&header, wanted, T::COMPONENTS)?;
    let local = parts.mine().local;
    let mut sites = vec![T::default(); local.volume()];
    let checksum = data_at(source, &header, options, parts, bytemuck::cast_slice_mut(&mut sites))?;
    let field = HostField::from_sites(local, sites);
    checks::fermion(&field, parts)?;
    Ok(FermionFile { field, header, checksum })
}

/// *Collective.* Reads some columns of a propagator, and checks them.
fn columns_at<T: Fermion>(
    source: &dyn ReadAt,
    header: Header,
    order: ColumnOrder,
    range: Range<usize>,
    options: &ReadOptions,
    parts: &FileParts,
) -> Result<BlockFile<T>, Problem> {
    let read = columns::read::<T>(source, &header, order, parts.mine(), range.clone());
    let (fields, read) = match read {
        Ok((fields, sum)) => (fields, Ok(sum)),
        Err(trouble) => (Vec::new(), Err(trouble)),
    };
    let checksum = checksum_of(&header, parts, read)?;
    checksum.require(options)?;
    for (number, field) in range.zip(&fields) {
        checks::fermion(field, parts).map_err(Problem::in_field(number))?;
    }
    Ok(BlockFile { fields, header, checksum })
}

fn field_at(
    source: &dyn ReadAt,
    header: Header,
    options: &ReadOptions,
    parts: &FileParts,
) -> Result<RawField, Problem> {
    let mut values = vec![Complex64::ZERO; parts.mine().local.volume() * header.values_per_site()];
    let checksum = data_at(source, &header, options, parts, &mut values)?;
    Ok(RawField { values, header, checksum })
}

fn require_components(header: &Header, wanted: &'static str, expected: usize) -> Result<(), Problem> {
    if header.values_per_site() == expected {
        return Ok(());
    }
    Err(Problem::Components { found: header.components, wanted, expected })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::files::{WriteOptions, WriteTo, write_gauge};
    use crate::gauge::generate::weak_field;
    use crate::lattice::Lattice;
    use comms::{Communicator, Threads};
    use std::io;

    /// A file that one rank can read less of than its header said when rank 0 read it.
    struct Shorter(Vec<u8>, usize);

    impl ReadAt for Shorter {
        fn read_exact_at(&self, bytes: &mut [u8], offset: u64) -> io::Result<()> {
            let there = self.0[..self.1].get(offset as usize..).and_then(|rest| rest.get(..bytes.len()));
            bytes.copy_from_slice(there.ok_or_else(|| io::Error::from_raw_os_error(5))?);
            Ok(())
        }
    }

    #[test]
    fn a_rank_that_cannot_read_stops_all() {
        let gauge = weak_field(Lattice::new([2, 2, 2, 8]).unwrap(), 1, 0.1);
        let mut bytes = Vec::new();
        write_gauge(WriteTo::Writer(&mut bytes), &gauge, &WriteOptions::default()).unwrap();
        let header = inspect(ReadFrom::Memory(&bytes), &ReadOptions::default()).unwrap();
        let read = |unable: Option<usize>| {
            let said = Threads::run(4, |world| {
                let me = Communicator::rank(&world);
                let local = Lattice::new([2; 4]).unwrap();
                let section = Section { global: gauge.lattice(), origin: [0, 0, 0, 2 * me], local };
                let length = if unable == Some(me) { header.offset as usize + 10000 } else { bytes.len() };
                let source = Shorter(bytes.clone(), length);
                let (_, parts) = FileParts::meet(&world, &section, &[], Ok::<_, SystemError>(()))?;
                let read = gauge_at(&source, header.clone(), &ReadOptions::default(), &parts);
                Ok::<_, Problem>(read.map_or_else(|problem| problem.to_string(), |file| format!("{:?}", file.checksum)))
            });
            let said = said.unwrap();
            assert!(said.iter().all(|s| *s == said[0]), "{said:?}");
            said[0].clone()
        };
        assert_eq!(read(None), "Verified(Scidac)");
        assert_eq!(read(Some(2)), "cannot read the data: Input/output error (os error 5), on rank 2");
        // Rank 0's own part is whole.
        assert_eq!(read(Some(0)), "Verified(Scidac)");
    }
}
