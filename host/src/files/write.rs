//! Writing fields, by one process or by many.
use super::error::Trouble;
use super::frame::Frame;
use super::parts::Parts;
use super::payload::LINKS;
use super::{FileError, FileFormat, Problem, ReadOptions, WriteOptions, checks, milc, nersc, npy, scidac};
use crate::field::host::{Fermion, HostField, HostGauge};
use crate::halo::Network;
use crate::lattice::Section;
use comms::Solo;
use num_complex::Complex64;
use std::io::Write;
use std::path::Path;

/// Writes a gauge field. Refuses numbers that are not finite, and to leave out third rows of links off SU(3).
pub fn write_gauge(path: &Path, gauge: &HostGauge, options: &WriteOptions) -> Result<(), FileError> {
    write_gauge_part(path, gauge, &gauge.lattice().into(), options, &Solo::new())
}

/// *Collective.* [`write_gauge`] by many processes, each its own section.
pub fn write_gauge_part(
    path: &Path,
    gauge: &HostGauge,
    section: &Section,
    options: &WriteOptions,
    network: &dyn Network,
) -> Result<(), FileError> {
    let write = || {
        let ((), parts) = Parts::meet(network, section, &[gauge.lattice()], Ok::<_, Trouble>(()))?;
        gauge_frame(gauge, options, &parts)?.write_parts(path, &[bytemuck::cast_slice(gauge.links())], &parts)
    };
    write().map_err(FileError::at(path))
}

/// Writes a fermion field as SciDAC LIME ([`FileFormat::Scidac`]) or [`FileFormat::Npy`].
pub fn write_fermion<T: Fermion>(path: &Path, field: &HostField<T>, options: &WriteOptions) -> Result<(), FileError> {
    write_fermion_part(path, field, &field.lattice().into(), options, &Solo::new())
}

/// *Collective.* [`write_fermion`] by many processes, each its own section.
pub fn write_fermion_part<T: Fermion>(
    path: &Path,
    field: &HostField<T>,
    section: &Section,
    options: &WriteOptions,
    network: &dyn Network,
) -> Result<(), FileError> {
    let write = || {
        let ((), parts) = Parts::meet(network, section, &[field.lattice()], Ok::<_, Trouble>(()))?;
        fermion_frame(field, options, &parts)?.write_parts(path, &[field.numbers()], &parts)
    };
    write().map_err(FileError::at(path))
}

/// Writes several fermion fields into one `.npy` file, with `axes` before those of the lattice: `[12]` for the columns of
/// a propagator, `[2, 12]` for two of them. [`read_block`](super::read_block) reads files with one such axis.
pub fn write_block<T: Fermion>(
    path: &Path,
    fields: &[&HostField<T>],
    axes: &[usize],
    options: &WriteOptions,
) -> Result<(), FileError> {
    let Some(first) = fields.first() else { return Err(FileError::at(path)(NO_FIELD)) };
    write_block_part(path, fields, axes, &first.lattice().into(), options, &Solo::new())
}

/// *Collective.* [`write_block`] by many processes, each its own section of every field.
pub fn write_block_part<T: Fermion>(
    path: &Path,
    fields: &[&HostField<T>],
    axes: &[usize],
    section: &Section,
    options: &WriteOptions,
    network: &dyn Network,
) -> Result<(), FileError> {
    let write = || {
        let lattices: Vec<_> = fields.iter().map(|field| field.lattice()).collect();
        let ((), parts) = Parts::meet(network, section, &lattices, Ok::<_, Trouble>(()))?;
        if options.format != FileFormat::Npy {
            return Err(Problem::Unwritable { why: "only npy holds several fields in one file" });
        }
        if fields.is_empty() {
            return Err(NO_FIELD);
        }
        if axes.iter().product::<usize>() != fields.len() {
            return Err(Problem::Unwritable { why: "there are not as many fields as the axes have places" });
        }
        for (number, field) in fields.iter().enumerate() {
            checks::fermion(field, &parts).map_err(Problem::in_field(number))?;
        }
        let numbers: Vec<&[Complex64]> = fields.iter().map(|field| field.numbers()).collect();
        npy::frame(section.global, axes, T::SHAPE, options).write_parts(path, &numbers, &parts)
    };
    write().map_err(FileError::at(path))
}

const NO_FIELD: Problem = Problem::Unwritable { why: "there is no field" };

/// [`write_gauge`] to anything that can be written.
pub fn gauge_to(writer: &mut impl Write, gauge: &HostGauge, options: &WriteOptions) -> Result<(), Problem> {
    let frame = Parts::alone(gauge.lattice(), |parts| gauge_frame(gauge, options, parts))?;
    frame.write_to(writer, bytemuck::cast_slice(gauge.links()))
}

/// [`write_fermion`] to anything that can be written.
pub fn fermion_to<T: Fermion>(
    writer: &mut impl Write,
    field: &HostField<T>,
    options: &WriteOptions,
) -> Result<(), Problem> {
    let frame = Parts::alone(field.lattice(), |parts| fermion_frame(field, options, parts))?;
    frame.write_to(writer, field.numbers())
}

/// *Collective.* Checks the field and says what stands around it.
fn gauge_frame(gauge: &HostGauge, options: &WriteOptions, parts: &Parts) -> Result<Frame, Problem> {
    let lattice = parts.mine().global;
    let two_rows = options.format == FileFormat::Nersc;
    let required = ReadOptions { allow_non_unitary: !two_rows, ..Default::default() };
    checks::links(gauge, options.precision, &required, parts)?;
    match options.format {
        FileFormat::Nersc | FileFormat::Nersc3x3 => {
            let (plaquette, link_trace) = checks::measured(gauge, parts)?;
            nersc::frame(lattice, &plaquette, link_trace, options)
        }
        FileFormat::Ildg | FileFormat::Scidac => Ok(scidac::frame(lattice, LINKS, options)),
        FileFormat::Milc => milc::frame(lattice, options),
        FileFormat::MilcV1 => Err(Problem::Unwritable { why: "MILC's version 1 has no checksum; use version 5" }),
        FileFormat::Npy => Ok(npy::frame(lattice, &[], &[4, 3, 3], options)),
    }
}

/// *Collective.* Checks the field and says what stands around it.
fn fermion_frame<T: Fermion>(field: &HostField<T>, options: &WriteOptions, parts: &Parts) -> Result<Frame, Problem> {
    checks::fermion(field, parts)?;
    let lattice = parts.mine().global;
    match options.format {
        FileFormat::Scidac => Ok(scidac::frame(lattice, T::COMPONENTS, options)),
        FileFormat::Npy => Ok(npy::frame(lattice, &[], T::SHAPE, options)),
        _ => Err(Problem::Unwritable { why: "this format holds links; write fermion fields as SciDAC or npy" }),
    }
}
