//! Configurations of openQCD, as written by its function `export_cnfg`.
//!
//! | bytes | content |
//! |---|---|
//! | 0 to 15 | four 32-bit integers: N₀ N₁ N₂ N₃, the extents T X Y Z |
//! | 16 to 23 | a double: the mean of Re tr P, three times the plaquette |
//! | from 24 | for each odd site, with t slowest, then x, then y, and z fastest: eight links |
//!
//! A site is odd if x + y + z + t is odd. Its links are U₀(n), U₀(n−0̂), U₁(n), U₁(n−1̂), U₂(n), U₂(n−2̂), U₃(n), U₃(n−3̂), with periodic
//! neighbours. Directions 0 to 3 stand for t, x, y and z. Every link is therefore stored once. Numbers are doubles, little-endian in all
//! files that openQCD writes. There is no checksum; the plaquette serves as one.
//!
//! With open boundary conditions, the links in t at t = T − 1 are zero. Their plaquettes contribute zero to the mean.
//!
//! Source: `modules/archive/archive.c` and `main/README.global` of openQCD-2.0.
use super::formats::{FileFamily, FileFormat, LinksFormat, LinksToWrite, MetadataPlace, OnlyPrecision, Recognition};
use super::frame::Frame;
use super::image::{Image, some};
use super::payload::{LINKS, StoredForm};
use super::source::ReadAt;
use super::{
    Arrangement, ColumnOrder, Endian, FilePrecision, Header, OwnArrangement, Printed, Problem, WriteOptions,
    even_lattice_from,
};
use crate::lattice::{Lattice, Section};
use crate::system::atomic::SystemError;
use num_complex::Complex64;
use rayon::prelude::*;
use std::fs::File;
use std::io::{self, Cursor, Read, Seek, SeekFrom};
use std::os::unix::fs::FileExt;

/// The family of openQCD's files, which have no magic number.
pub static OPENQCD_FAMILY: FileFamily = FileFamily {
    signature: "openQCD (extents and a plaquette)",
    recognition: Recognition::Content(|image, _| is_openqcd(image)),
    header: |image, _| header(image),
    block: |_, _, _| Ok(None),
    byte_order: "the header",
    formats: &[&OPENQCD],
};
/// Format of configurations that openQCD's function `export_cnfg` writes.
pub static OPENQCD: FileFormat = FileFormat {
    name: "openqcd",
    title: "openQCD",
    flag: Some("openqcd"),
    summary: "openQCD, as export_cnfg writes it",
    missing_feature: None,
    only: Some(OnlyPrecision { precision: FilePrecision::Double, whose: "openQCD's files", others: "ILDG or NERSC" }),
    links: Some(LinksFormat { endings: &["openqcd"], two_rows: false, off_su3: false, frame }),
    fermions: None,
    metadata: MetadataPlace::None,
};
/// Arrangement of openQCD's files, with eight links for each odd site.
static RECORDS: OwnArrangement = OwnArrangement {
    name: "OpenQcd",
    columns: ColumnOrder::Vectors,
    begins_with_links: true,
    read: |source, _, form, section, values| read(source, form, section, values),
    write: |file, _, form, section, fields| fields.iter().try_for_each(|values| write(file, form, section, values)),
    encode: |lattice, form, fields, sink| {
        fields.iter().try_for_each(|values| encode(lattice, form, values, &mut *sink))
    },
};

/// Number of bytes of the header, which precedes the links.
pub const HEADER: u64 = 24;
/// Number of complex numbers of a link.
const LINK: usize = 9;
const LINK_BYTES: usize = 16 * LINK;
/// Number of links of an odd site.
const SLOTS: usize = 8;
const RECORD: usize = SLOTS * LINK_BYTES;
/// Ferrite's direction μ for each of openQCD's directions.
const DIRECTIONS: [usize; 4] = [3, 0, 1, 2];
const PLACE: &str = "openQCD header";

/// Parses the header of an openQCD file in memory.
pub fn parse(bytes: &[u8]) -> Result<Header, Problem> {
    header(&mut Cursor::new(bytes))
}

/// Returns the byte order of a file that may be openQCD's. Such a file has no magic number. Either its length must be that for the extents
/// in the first 16 bytes, or these must be plausible extents, followed by a plausible plaquette.
fn recognise(start: &[u8], length: u64) -> Option<Endian> {
    let bytes = start.first_chunk::<24>()?;
    let fits = |endian| {
        let data =
            extents(bytes, endian).into_iter().try_fold(4 * LINK_BYTES as u64, |n, extent| n.checked_mul(extent));
        data.and_then(|data| data.checked_add(HEADER)) == Some(length) && length > HEADER
    };
    let plausible = |endian| {
        let [t, x, y, z] = extents(bytes, endian);
        [t, x, y, z].into_iter().all(|extent| (2..1 << 12).contains(&extent)) && plaquette(bytes, endian).abs() < 3.01
    };
    let orders = [Endian::Little, Endian::Big];
    orders.into_iter().find(|&endian| fits(endian)).or_else(|| orders.into_iter().find(|&endian| plausible(endian)))
}

/// Whether a file may be openQCD's, according to its header and its length.
fn is_openqcd(reader: &mut Image) -> Result<bool, Problem> {
    let length = reader.seek(SeekFrom::End(0)).map_err(Problem::io("find the length"))?;
    reader.rewind().map_err(Problem::io("seek to the start"))?;
    Ok(recognise(&some(reader, HEADER)?, length).is_some())
}

/// Returns the extents T, X, Y, Z from a header.
fn extents(header: &[u8; 24], endian: Endian) -> [u64; 4] {
    let words = header.as_chunks::<4>().0;
    std::array::from_fn(|k| endian.u32(words[k]).into())
}

/// Returns the mean of Re tr P from a header; this is three times the plaquette.
fn plaquette(header: &[u8; 24], endian: Endian) -> f64 {
    let bytes = header.as_chunks::<8>().0[2];
    if endian == Endian::Big { f64::from_be_bytes(bytes) } else { f64::from_le_bytes(bytes) }
}

/// Reads the header of an openQCD file.
pub fn header<R: Read + Seek>(reader: &mut R) -> Result<Header, Problem> {
    let available = reader.seek(SeekFrom::End(0)).map_err(Problem::io("find the length"))?;
    reader.rewind().map_err(Problem::io("seek to the start"))?;
    let mut bytes = Vec::new();
    reader.by_ref().take(HEADER).read_to_end(&mut bytes).map_err(Problem::io("read the openQCD header"))?;
    let Some(bytes) = bytes.first_chunk::<24>() else {
        return Err(Problem::Truncated { what: format!("the {PLACE}"), offset: 0, needed: HEADER, available });
    };
    let Some(endian) = recognise(bytes, available) else {
        let found = format!("{:?}", extents(bytes, Endian::Little));
        let (field, expected) = (
            "the list of four integers in the first 16 bytes",
            "extents T, X, Y and Z that fit the length of the file; check that this is an openQCD configuration",
        );
        return Err(Problem::field(PLACE, field, found, expected));
    };
    let [t, x, y, z] = extents(bytes, endian).map(|extent| extent as usize);
    let lattice = even_lattice_from([x, y, z, t], PLACE)?;
    let header = Header {
        lattice,
        endian,
        format: &OPENQCD,
        arrangement: Arrangement::Own(&RECORDS),
        precision: FilePrecision::Double,
        components: LINKS,
        offset: HEADER,
        data_length: available - HEADER,
        checksum: None,
        // The header stores the plaquette as a binary number, not as printed digits, so the value has full resolution.
        plaquette: Some(Printed { value: plaquette(bytes, endian) / 3.0, resolution: 0.0 }),
        link_trace: None,
        metadata: Vec::new(),
        fields: 1,
        notes: Vec::new(),
        omitted: Vec::new(),
    };
    header.check_length(available)?;
    Ok(header)
}

/// Makes the frame of a file of links; they must be in double precision on even extents.
fn frame(links: &LinksToWrite, options: &WriteOptions) -> Result<Frame, Problem> {
    let (lattice, (plaquettes, _)) = (links.lattice(), links.measured()?);
    if options.precision != FilePrecision::Double {
        return Err(Problem::Unwritable {
            why: "openQCD's files hold double precision only; choose double precision, or ILDG",
        });
    }
    if lattice.require_even().is_err() {
        return Err(Problem::Unwritable {
            why: "openQCD's files hold lattices with even extents only; choose ILDG or NERSC",
        });
    }
    let [x, y, z, t] = lattice.size();
    let extents = [t, x, y, z].map(|extent| (extent as u32).to_le_bytes());
    let head = [extents.as_flattened(), &(3.0 * plaquettes.mean).to_le_bytes()].concat();
    let form = StoredForm { components: LINKS, precision: FilePrecision::Double, endian: Endian::Little, kind: None };
    let frame = Frame::headed(lattice, form, move |_| head.clone());
    Ok(Frame { arrangement: Arrangement::Own(&RECORDS), ..frame })
}

/// Odd sites whose records contain links of a section: those of the section, and those one step ahead of it in partitioned directions.
/// Coordinates count from the section's first site, and may be as large as the extent.
#[derive(Clone, Copy)]
struct RecordSites {
    section: Section,
    /// Extents of the box that contains these sites.
    size: [usize; 4],
}

impl RecordSites {
    fn of(section: &Section) -> Self {
        let (local, global) = (section.local.size(), section.global.size());
        let size = std::array::from_fn(|mu| local[mu] + usize::from(local[mu] < global[mu]));
        Self { section: *section, size }
    }
    fn local(&self) -> [usize; 4] {
        self.section.local.size()
    }
    /// Returns the coordinate in the whole lattice for a coordinate of the section.
    fn global(&self, mu: usize, coordinate: usize) -> usize {
        (self.section.origin[mu] + coordinate) % self.section.global.size()[mu]
    }
    /// Returns the number of pairs of neighbours in z on a row. One site of each pair is odd.
    fn pairs(&self) -> usize {
        self.size[2].div_ceil(2)
    }
    /// Returns two offsets of the records of a row: that of the section's own records, which are contiguous, and that of the record one
    /// step ahead in z, which belongs to another section.
    fn row(&self, [x, y, t]: [usize; 3]) -> (u64, u64) {
        let [nx, ny, nz, _] = self.section.global.size();
        let row = (self.global(3, t) * nx + self.global(0, x)) * ny + self.global(1, y);
        let at = |z: usize| HEADER + ((row * nz + self.global(2, z)) / 2 * RECORD) as u64;
        (at(0), at(self.local()[2]))
    }
    /// Returns the coordinate z of the odd site in a pair.
    fn odd(&self, [x, y, t]: [usize; 3], pair: usize) -> usize {
        2 * pair + (self.global(0, x) + self.global(1, y) + self.global(3, t) + 1) % 2
    }
    /// Returns the coordinate one step ahead, which is 0 at the end of a direction that is not partitioned.
    fn ahead(&self, mu: usize, coordinate: usize) -> usize {
        if coordinate + 1 < self.size[mu] { coordinate + 1 } else { 0 }
    }
    /// Returns the site and the direction of the link in a slot of an odd site's record; `None` if the link belongs to another section.
    fn owner(&self, odd: [usize; 4], slot: usize) -> Option<(usize, usize)> {
        let (mu, local, mut site) = (DIRECTIONS[slot / 2], self.local(), odd);
        if slot % 2 == 1 {
            let is_cut = self.size[mu] > local[mu];
            site[mu] = if is_cut { odd[mu].checked_sub(1)? } else { (odd[mu] + local[mu] - 1) % local[mu] };
        }
        site.iter().zip(local).all(|(x, extent)| *x < extent).then(|| (self.section.local.index(site), mu))
    }
}

/// Reads the links of a section.
fn read(
    source: &dyn ReadAt,
    form: &StoredForm,
    section: &Section,
    values: &mut [Complex64],
) -> Result<(), SystemError> {
    let reach = RecordSites::of(section);
    let [nx, ny, nz, _] = reach.local();
    let (rows, pairs) = (reach.size[1], reach.pairs());
    // `slice` reads the records of a time slice, in the order `[x][y][pair]`.
    let slice = |t: usize| -> io::Result<Vec<u8>> {
        let mut records = vec![0; reach.size[0] * rows * pairs * RECORD];
        records.par_chunks_exact_mut(pairs * RECORD).enumerate().try_for_each(|(row, bytes)| {
            let (own, next) = reach.row([row / rows, row % rows, t]);
            let (mine, other) = bytes.split_at_mut(nz / 2 * RECORD);
            source.read_exact_at(mine, own)?;
            if other.is_empty() { Ok(()) } else { source.read_exact_at(other, next) }
        })?;
        Ok(records)
    };
    let mut all = || -> io::Result<()> {
        let mut here = slice(0)?;
        // Every slice is read once. If t is not partitioned, the first slice is read again after the last.
        for (t, links) in values.chunks_exact_mut(nx * ny * nz * LINKS).enumerate() {
            let next = slice(reach.ahead(3, t))?;
            let fill = |(z, plane): (usize, &mut [Complex64])| {
                for (index, links) in plane.chunks_exact_mut(LINKS).enumerate() {
                    let site = [index % nx, index / nx, z, t];
                    let is_odd = (0..4).map(|mu| reach.global(mu, site[mu])).sum::<usize>() % 2;
                    for (slot, &mu) in DIRECTIONS.iter().enumerate() {
                        let (mut odd, mut records) = (site, &here);
                        if is_odd == 0 {
                            odd[mu] = reach.ahead(mu, site[mu]);
                            records = if mu == 3 { &next } else { &here };
                        }
                        let record = (odd[0] * rows + odd[1]) * pairs + odd[2] / 2;
                        let begin = record * RECORD + (2 * slot + 1 - is_odd) * LINK_BYTES;
                        form.decode(&records[begin..begin + LINK_BYTES], &mut links[mu * LINK..][..LINK]);
                    }
                }
            };
            links.par_chunks_exact_mut(nx * ny * LINKS).enumerate().for_each(fill);
            here = next;
        }
        Ok(())
    };
    all().map_err(SystemError::of("read the data"))
}

/// Returns the bytes of the records of a row, and for each slot whether the section has its link.
fn row(values: &[Complex64], form: &StoredForm, reach: &RecordSites, [x, y, t]: [usize; 3]) -> (Vec<u8>, Vec<bool>) {
    let mut bytes = vec![0; reach.pairs() * RECORD];
    let slots = bytes.chunks_exact_mut(LINK_BYTES).enumerate().map(|(number, bytes)| {
        let z = reach.odd([x, y, t], number / SLOTS);
        let owner = reach.owner([x, y, z, t], number % SLOTS);
        if let Some((site, mu)) = owner {
            form.encode(&values[site * LINKS + mu * LINK..][..LINK], bytes);
        }
        owner.is_some()
    });
    let mine = slots.collect();
    (bytes, mine)
}

/// Writes the links of a section. Bytes of links of other sections are not written.
fn write(file: &File, form: &StoredForm, section: &Section, values: &[Complex64]) -> Result<(), SystemError> {
    let reach = RecordSites::of(section);
    let [nx, ny, _, nt] = reach.size;
    let put = |number: usize| -> io::Result<()> {
        let place = [number / ny % nx, number % ny, number / (nx * ny)];
        let (own, next) = reach.row(place);
        let (bytes, mine) = row(values, form, &reach, place);
        let last = reach.local()[2] / 2 * SLOTS;
        for (begin, slots) in [(own, 0..last), (next, last..mine.len())] {
            let mut from = slots.start;
            while let Some(first) = (from..slots.end).find(|slot| mine[*slot]) {
                from = (first..slots.end).find(|slot| !mine[*slot]).unwrap_or(slots.end);
                let offset = begin + ((first - slots.start) * LINK_BYTES) as u64;
                file.write_all_at(&bytes[first * LINK_BYTES..from * LINK_BYTES], offset)?;
            }
        }
        Ok(())
    };
    (0..nx * ny * nt).into_par_iter().try_for_each(put).map_err(SystemError::of("write"))
}

/// Passes the bytes of a whole field to the sink in the order of the file.
fn encode(
    lattice: Lattice,
    form: &StoredForm,
    values: &[Complex64],
    mut sink: impl FnMut(&[u8]) -> Result<(), Problem>,
) -> Result<(), Problem> {
    let reach = RecordSites::of(&lattice.into());
    let [nx, ny, _, nt] = reach.size;
    (0..nx * ny * nt).try_for_each(|number| {
        let place = [number / ny % nx, number % ny, number / (nx * ny)];
        sink(&row(values, form, &reach, place).0)
    })
}
