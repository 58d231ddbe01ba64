//! Binary data of a field: conversion of bytes to numbers and back, with the checksum computed on the way. It works in pieces, so that a
//! large file needs no second copy in memory, and any part of a field can be read or written alone.
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

/// Number of bytes that a task reads or writes at once, where they are contiguous in the file: a size that suits parallel file systems.
const PIECE: usize = 4 << 20;
/// Number of complex numbers per site of four links in full.
pub(crate) const LINKS: usize = 36;
pub(crate) const TWO_ROWS: usize = 24;

/// The three checksums in use. Each is a pair of 32-bit sums over parts of the data that can be combined in any order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ChecksumKind {
    /// Sum of all 32-bit words, in the byte order of the file; the second number is unused.
    Nersc,
    /// CRC-32 of the bytes of each site, rotated left by the site index mod 29 and mod 31, combined by exclusive or.
    Scidac,
    /// 32-bit words rotated left by their index mod 29 and mod 31, combined by exclusive or.
    Milc,
}

/// Checksum of a part of the data.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PartialChecksum(pub [u32; 2]);

impl PartialChecksum {
    /// Combines the sums of two disjoint parts.
    pub fn combine(self, kind: ChecksumKind, other: Self) -> Self {
        let ([a, b], [c, d]) = (self.0, other.0);
        match kind {
            ChecksumKind::Nersc => Self([a.wrapping_add(c), 0]),
            ChecksumKind::Scidac | ChecksumKind::Milc => Self([a ^ c, b ^ d]),
        }
    }
    /// Encodes the checksum for other processes.
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
    /// Returns the name in messages.
    pub fn name(self) -> &'static str {
        match self {
            Self::Nersc => "NERSC",
            Self::Scidac => "SciDAC",
            Self::Milc => "MILC",
        }
    }
    /// Formats the sum as in headers.
    pub fn print(self, PartialChecksum([a, b]): PartialChecksum) -> String {
        match self {
            Self::Nersc => format!("{a:08x}"),
            Self::Scidac | Self::Milc => format!("{a:08x} {b:08x}"),
        }
    }
    /// Computes the sum of the bytes of whole sites starting with site number `first`.
    pub(crate) fn of(self, bytes: &[u8], site_bytes: usize, first: usize, endian: Endian) -> PartialChecksum {
        // Indices in a large lattice do not fit 32 bits: reduce before they are cast.
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

/// *Collective.* Returns the SciDAC checksum of fields in the form of an `.npy` file in double precision, little-endian and one after the
/// other: site i of field k counts as site k V + i of V sites. Each process has the part `section` of every field.
///
/// # Errors
/// Processes that do not respond.
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

/// Reads the sites of a box from a field that starts at `offset`, as `form.values_per_site()` complex numbers each, and the
/// checksum of their bytes. Links stored in two rows get their third.
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

/// Writes the sites of a box into a field that starts at `offset`, and returns the checksum of their bytes.
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

/// Returns the sum of all pieces, or the error of the first that has one.
fn combined(sums: Vec<io::Result<PartialChecksum>>, form: &StoredForm) -> io::Result<PartialChecksum> {
    let mut total = PartialChecksum::default();
    for sum in sums {
        total = form.combine(total, sum?);
    }
    Ok(total)
}

/// Encodes a field of `values_per_site` complex numbers per site, or a part of it that begins with site number `first`, and passes it on in
/// pieces; returns the checksum. If `components` is smaller than the number of values (24 of 36), third rows are left out.
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

/// Storage of numbers in a file.
#[derive(Clone, Copy, Debug)]
pub(crate) struct StoredForm {
    /// Number of complex numbers per site in the file.
    pub components: usize,
    pub precision: FilePrecision,
    pub endian: Endian,
    /// Kind of checksum that the file has of them, if any.
    pub kind: Option<ChecksumKind>,
}

impl StoredForm {
    pub fn site_bytes(&self) -> usize {
        2 * self.components * self.precision.bytes()
    }
    pub fn values_per_site(&self) -> usize {
        if self.components == TWO_ROWS { LINKS } else { self.components }
    }
    /// Decodes bytes to numbers.
    pub fn decode(&self, bytes: &[u8], values: &mut [Complex64]) {
        decode_reals(bytes, bytemuck::cast_slice_mut(values), self);
    }
    /// Encodes numbers to bytes.
    pub fn encode(&self, values: &[Complex64], bytes: &mut [u8]) {
        encode_reals(bytemuck::cast_slice(values), bytes, self);
    }
    /// Computes the checksum of the bytes of whole sites, starting with site number `first`; zero without a kind of checksum.
    fn checksum(&self, bytes: &[u8], first: usize) -> PartialChecksum {
        self.kind.map(|kind| kind.of(bytes, self.site_bytes(), first, self.endian)).unwrap_or_default()
    }
    /// Combines the sums of two disjoint parts.
    pub fn combine(&self, one: PartialChecksum, other: PartialChecksum) -> PartialChecksum {
        self.kind.map_or(one, |kind| one.combine(kind, other))
    }
}

/// Decodes the numbers of whole sites.
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

/// Returns the deviation of the first two rows of the links of a site from length 1. A row decoded in the wrong byte order is huge, tiny or
/// not a number.
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

/// Encodes the numbers of whole sites to bytes.
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
