//! Binary data of a field: conversion between bytes and numbers, with the checksum. Data are processed in pieces, so that a large file
//! needs no second copy in memory, and any part of a field can be read or written alone.
use super::parts::gather;
use super::runs::Runs;
use super::source::ReadAt;
use super::{Endian, FilePrecision, Header, Problem};
use crate::field::host::{Fermion, HostField};
use crate::gauge::su3::third_row;
use crate::lattice::Section;
use crate::network::Network;
use crate::system::atomic::SystemError;
use num_complex::Complex64;
use rayon::prelude::*;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

/// Largest number of contiguous bytes that a task reads or writes at a time; this size suits parallel file systems.
const PIECE: usize = 4 << 20;
/// Number of complex numbers of four links on a site, with all rows.
pub(crate) const LINKS: usize = 36;
pub(crate) const TWO_ROWS: usize = 24;

/// Kind of checksum. A checksum consists of two 32-bit sums over parts of the data; the sums can be combined in any order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ChecksumKind {
    /// NERSC's checksum: the sum of all 32-bit words in the byte order of the file. The second number is not used.
    Nersc,
    /// SciDAC's checksum: the CRC-32 of each site's bytes, rotated left by the site's index mod 29 and mod 31, combined by exclusive or.
    Scidac,
    /// MILC's checksum: 32-bit words, rotated left by their index mod 29 and mod 31, combined by exclusive or.
    Milc,
}

/// Checksum of a part of the data; [`ChecksumKind`] defines its two numbers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PartialChecksum(pub [u32; 2]);

impl PartialChecksum {
    /// Returns the checksum of two disjoint parts of the data together.
    pub fn combine(self, kind: ChecksumKind, other: Self) -> Self {
        let ([a, b], [c, d]) = (self.0, other.0);
        match kind {
            ChecksumKind::Nersc => Self([a.wrapping_add(c), 0]),
            ChecksumKind::Scidac | ChecksumKind::Milc => Self([a ^ c, b ^ d]),
        }
    }
    /// Encodes the checksum as bytes, to be sent to other processes.
    pub(crate) fn to_bytes(self) -> Vec<u8> {
        self.0.iter().flat_map(|word| word.to_le_bytes()).collect()
    }
    pub(crate) fn from_bytes(bytes: &[u8]) -> Self {
        match *bytes.as_chunks().0 {
            [a, b] => Self([a, b].map(u32::from_le_bytes)),
            _ => Self::default(),
        }
    }
}

impl ChecksumKind {
    /// Returns the name of the kind of checksum, for messages.
    pub fn name(self) -> &'static str {
        match self {
            Self::Nersc => "NERSC",
            Self::Scidac => "SciDAC",
            Self::Milc => "MILC",
        }
    }
    /// Returns a checksum as text, in the form in which headers contain it.
    pub fn print(self, PartialChecksum([a, b]): PartialChecksum) -> String {
        match self {
            Self::Nersc => format!("{a:08x}"),
            Self::Scidac | Self::Milc => format!("{a:08x} {b:08x}"),
        }
    }
    /// Computes the checksum of the bytes of whole sites; `first` is the number of the first site.
    pub(crate) fn of(self, bytes: &[u8], site_bytes: usize, first: usize, endian: Endian) -> PartialChecksum {
        // Site indices of a large lattice do not fit into 32 bits, so they are reduced before the cast.
        let rotate = |word: u32, index: usize| PartialChecksum([29, 31].map(|n| word.rotate_left((index % n) as u32)));
        let words = || bytes.as_chunks::<4>().0.iter().map(|w| endian.u32(*w));
        match self {
            Self::Nersc => PartialChecksum([words().fold(0, u32::wrapping_add), 0]),
            Self::Scidac => bytes
                .chunks_exact(site_bytes)
                .zip(first..)
                .map(|(site, index)| rotate(crc32fast::hash(site), index))
                .fold(PartialChecksum::default(), |a, b| a.combine(self, b)),
            Self::Milc => {
                let start = first as u64 * (site_bytes / 4) as u64 % (29 * 31);
                words()
                    .zip(start as usize..)
                    .map(|(word, index)| rotate(word, index))
                    .fold(PartialChecksum::default(), |a, b| a.combine(self, b))
            }
        }
    }
}

/// *Collective.* Returns the SciDAC checksum of several fields, as if they followed each other in an `.npy` file in double precision,
/// little-endian. Site i of field k counts as site k V + i, where V is the number of sites. Each process has the part `section` of every
/// field.
///
/// # Errors
/// Fails if the communication fails.
pub fn checksum_of_fields<T: Fermion>(
    fields: &[HostField<T>],
    section: &Section,
    network: &dyn Network,
) -> Result<String, Problem> {
    let (kind, volume) = (ChecksumKind::Scidac, section.global.volume());
    let form = StoredForm {
        components: T::COMPONENTS,
        precision: FilePrecision::Double,
        endian: Endian::Little,
        kind: Some(kind),
    };
    let site = |bytes: &mut Vec<u8>, (index, numbers): (usize, &[Complex64])| {
        bytes.resize(form.site_bytes(), 0);
        form.encode(numbers, bytes);
        form.checksum(bytes, index)
    };
    let of_field = |(number, field): (usize, &HostField<T>)| {
        let sites = field.numbers().par_chunks_exact(T::COMPONENTS).enumerate();
        sites
            .map_init(Vec::new, |bytes, (index, numbers)| {
                site(bytes, (number * volume + section.global_index(index), numbers))
            })
            .reduce(PartialChecksum::default, |one, other| one.combine(kind, other))
    };
    let all = |sums: &mut dyn Iterator<Item = PartialChecksum>| {
        sums.fold(PartialChecksum::default(), |one, other| one.combine(kind, other))
    };
    let mine = all(&mut fields.iter().enumerate().map(of_field));
    let (_, answers) = gather(network, Ok(mine), |sum| sum.to_bytes())?;
    Ok(kind.print(all(&mut answers.iter().map(|bytes| PartialChecksum::from_bytes(bytes)))))
}

/// Reads the sites in `runs` from a field that starts at `offset`, with `form.values_per_site()` complex numbers for each site. Returns the
/// checksum of their bytes. The third row of links is computed if the file has only two.
pub(crate) fn read(
    source: &dyn ReadAt,
    offset: u64,
    form: &StoredForm,
    runs: &Runs,
    values: &mut [Complex64],
) -> Result<PartialChecksum, SystemError> {
    let (bytes_in, values_out) = (form.site_bytes(), form.values_per_site());
    let piece = (PIECE / bytes_in).max(1);
    let task = |buffer: &mut Vec<u8>, (number, values): (usize, &mut [Complex64])| -> io::Result<PartialChecksum> {
        let count = values.len() / values_out;
        buffer.resize(count * bytes_in, 0);
        let (mut total, mut rest) = (PartialChecksum::default(), &mut buffer[..]);
        for (first, count) in runs.pieces(number * piece..number * piece + count) {
            let bytes = rest.split_off_mut(..count * bytes_in).unwrap_or_default();
            source.read_exact_at(bytes, offset + first as u64 * bytes_in as u64)?;
            total = form.combine(total, form.checksum(bytes, first));
        }
        decode(buffer, values, form);
        Ok(total)
    };
    let sums: Vec<_> = values.par_chunks_mut(piece * values_out).enumerate().map_init(Vec::new, task).collect();
    combined(sums, form).map_err(SystemError::of("read the data"))
}

/// Writes the sites in `runs` to a field that starts at `offset`, and returns the checksum of their bytes.
pub(crate) fn write(
    file: &File,
    offset: u64,
    values: &[Complex64],
    form: &StoredForm,
    runs: &Runs,
) -> Result<PartialChecksum, SystemError> {
    let (bytes_out, values_in) = (form.site_bytes(), form.values_per_site());
    let piece = (PIECE / bytes_out).max(1);
    let task = |buffer: &mut Vec<u8>, (number, values): (usize, &[Complex64])| -> io::Result<PartialChecksum> {
        let count = values.len() / values_in;
        buffer.resize(count * bytes_out, 0);
        encode_sites(values, buffer, form);
        let (mut total, mut rest) = (PartialChecksum::default(), &buffer[..]);
        for (first, count) in runs.pieces(number * piece..number * piece + count) {
            let bytes = rest.split_off(..count * bytes_out).unwrap_or_default();
            total = form.combine(total, form.checksum(bytes, first));
            file.write_all_at(bytes, offset + first as u64 * bytes_out as u64)?;
        }
        Ok(total)
    };
    let sums: Vec<_> = values.par_chunks(piece * values_in).enumerate().map_init(Vec::new, task).collect();
    combined(sums, form).map_err(SystemError::of("write"))
}

/// Combines the checksums of all pieces, or returns the first error.
fn combined(sums: Vec<io::Result<PartialChecksum>>, form: &StoredForm) -> io::Result<PartialChecksum> {
    let mut total = PartialChecksum::default();
    for sum in sums {
        total = form.combine(total, sum?);
    }
    Ok(total)
}

/// Encodes a field, or a part of it that begins with site number `first`, and passes the bytes to `sink` piece by piece. Returns their
/// checksum. If the form has 24 components of links instead of 36, third rows are omitted.
pub(crate) fn encode(
    values: &[Complex64],
    form: &StoredForm,
    first: usize,
    mut sink: impl FnMut(&[u8]) -> Result<(), Problem>,
) -> Result<PartialChecksum, Problem> {
    let (bytes_out, values_in) = (form.site_bytes(), form.values_per_site());
    let piece = (PIECE / bytes_out).max(1);
    let (mut buffer, mut total) = (Vec::new(), PartialChecksum::default());
    for (number, values) in values.chunks(piece * values_in).enumerate() {
        buffer.resize(values.len() / values_in * bytes_out, 0);
        encode_sites(values, &mut buffer, form);
        total = form.combine(total, form.checksum(&buffer, first + number * piece));
        sink(&buffer)?;
    }
    Ok(total)
}

/// Storage of the numbers of a field in a file.
#[derive(Clone, Copy, Debug)]
pub(crate) struct StoredForm {
    /// Number of complex numbers on a site in the file.
    pub components: usize,
    pub precision: FilePrecision,
    pub endian: Endian,
    /// Kind of the file's checksum; `None` if the file has none.
    pub kind: Option<ChecksumKind>,
}

impl StoredForm {
    pub fn site_bytes(&self) -> usize {
        2 * self.components * self.precision.bytes()
    }
    pub fn values_per_site(&self) -> usize {
        if self.components == TWO_ROWS { LINKS } else { self.components }
    }
    /// Decodes bytes in the form of the file into the numbers `values`.
    pub fn decode(&self, bytes: &[u8], values: &mut [Complex64]) {
        decode_reals(bytes, bytemuck::cast_slice_mut(values), self);
    }
    /// Encodes the numbers `values` as bytes in the form of the file.
    pub fn encode(&self, values: &[Complex64], bytes: &mut [u8]) {
        encode_reals(bytemuck::cast_slice(values), bytes, self);
    }
    /// Computes the checksum of the bytes of whole sites, where `first` is the number of the first site. Zero if the file has no checksum.
    fn checksum(&self, bytes: &[u8], first: usize) -> PartialChecksum {
        self.kind.map(|kind| kind.of(bytes, self.site_bytes(), first, self.endian)).unwrap_or_default()
    }
    /// Returns the checksum of two disjoint parts of the data together.
    pub fn combine(&self, one: PartialChecksum, other: PartialChecksum) -> PartialChecksum {
        self.kind.map_or(one, |kind| one.combine(kind, other))
    }
}

/// Decodes the numbers of whole sites. The third row of links is computed if the file has only two.
fn decode(bytes: &[u8], values: &mut [Complex64], form: &StoredForm) {
    if form.components != TWO_ROWS {
        return decode_reals(bytes, bytemuck::cast_slice_mut(values), form);
    }
    for (bytes, link) in bytes.chunks_exact(form.site_bytes() / 4).zip(values.chunks_exact_mut(9)) {
        let link: &mut [[Complex64; 3]] = bytemuck::cast_slice_mut(link);
        decode_reals(bytes, bytemuck::cast_slice_mut(&mut link[..2]), form);
        link[2] = third_row(&link[0], &link[1]);
    }
}

/// Returns the largest deviation of a row from length 1 among the first two rows of each link on a site. In the wrong byte order, rows are
/// huge, tiny, or not numbers.
pub(crate) fn row_violation(site: &[u8], header: &Header) -> f64 {
    let mut values = [Complex64::ZERO; LINKS];
    decode(site, &mut values, &header.form());
    let off = values.chunks_exact(9).flat_map(|link| link.chunks_exact(3).take(2)).map(|row| {
        let norm = row.iter().map(Complex64::norm_sqr).sum::<f64>();
        if norm.is_finite() { (norm - 1.0).abs() } else { f64::INFINITY }
    });
    off.fold(0.0, f64::max)
}

fn decode_reals(bytes: &[u8], out: &mut [f64], form: &StoredForm) {
    fn each<const N: usize>(bytes: &[u8], out: &mut [f64], f: impl Fn([u8; N]) -> f64) {
        bytes.as_chunks::<N>().0.iter().zip(out).for_each(|(bytes, out)| *out = f(*bytes));
    }
    match (form.precision, form.endian) {
        (FilePrecision::Single, Endian::Big) => each(bytes, out, |b| f32::from_be_bytes(b).into()),
        (FilePrecision::Single, Endian::Little) => each(bytes, out, |b| f32::from_le_bytes(b).into()),
        (FilePrecision::Double, Endian::Big) => each(bytes, out, f64::from_be_bytes),
        (FilePrecision::Double, Endian::Little) => each(bytes, out, f64::from_le_bytes),
    }
}

/// Encodes the numbers of whole sites into bytes; third rows are omitted if the file has only two.
fn encode_sites(values: &[Complex64], bytes: &mut [u8], form: &StoredForm) {
    if form.components != TWO_ROWS {
        return encode_reals(bytemuck::cast_slice(values), bytes, form);
    }
    for (bytes, link) in bytes.chunks_exact_mut(form.site_bytes() / 4).zip(values.chunks_exact(9)) {
        encode_reals(bytemuck::cast_slice(&link[..6]), bytes, form);
    }
}

fn encode_reals(values: &[f64], bytes: &mut [u8], form: &StoredForm) {
    fn each<const N: usize>(values: &[f64], bytes: &mut [u8], f: impl Fn(f64) -> [u8; N]) {
        bytes.as_chunks_mut::<N>().0.iter_mut().zip(values).for_each(|(bytes, value)| *bytes = f(*value));
    }
    match (form.precision, form.endian) {
        (FilePrecision::Single, Endian::Big) => each(values, bytes, |v| (v as f32).to_be_bytes()),
        (FilePrecision::Single, Endian::Little) => each(values, bytes, |v| (v as f32).to_le_bytes()),
        (FilePrecision::Double, Endian::Big) => each(values, bytes, f64::to_be_bytes),
        (FilePrecision::Double, Endian::Little) => each(values, bytes, f64::to_le_bytes),
    }
}
