//! Files of fermion fields.
use crate::arrays::{self, Given, Made};
use crate::device::Device;
use crate::failure::Failure;
use crate::host::{on_host, undisturbed};
use ferrite::field::host::{ColourVector, Fermion, HostField, Spinor};
use ferrite::files::{
    self, Endian, FileError, FileFormat, FilePrecision, ReadFrom, ReadOptions, SharedFile, WriteOptions, WriteTo,
};
use numpy::PyUntypedArrayMethods;
use pyo3::prelude::*;
use std::path::PathBuf;

/// All fields of a file, and whether they are a block: one of one field is told from a field by itself.
fn fields<'a, T: Fermion>(
    file: impl Into<ReadFrom<'a>> + Copy,
    options: &ReadOptions,
) -> Result<(Vec<HostField<T>>, bool), FileError> {
    let block = files::inspect_block::<T>(file, options)?.is_some();
    Ok((files::read_fermions::<T>(file, options)?.fields, block))
}

fn read<'py, T: Fermion>(
    py: Python<'py>,
    device: Option<&Device>,
    path: PathBuf,
    options: ReadOptions,
) -> PyResult<Made<'py>> {
    let (fields, block) = match device {
        None => on_host(py, move || Ok(fields::<T>(path.as_path(), &options)?))?,
        Some(device) => device.run(py, move |thread, _| {
            let file = SharedFile::new(&path, &*thread.processes.network);
            let header = match files::inspect_block::<T>(file, &options)? {
                Some(first) => first,
                None => files::inspect(file, &options)?,
            };
            let part = thread.processes.cut.section(header.lattice)?;
            Ok(fields::<T>(file.part(&part), &options)?)
        })?,
    };
    let axes: &[usize] = if block { &[fields.len()] } else { &[] };
    arrays::stacked(py, axes, &fields)
}

/// The device of several processes, if it is one.
fn shared<'a>(device: Option<&'a Bound<'_, Device>>) -> Option<&'a Device> {
    device.map(Bound::get).filter(|device| device.cut().is_shared())
}

/// Reads fermion fields of a kind; with a device of several processes, each its part.
#[pyfunction]
#[pyo3(signature = (path, staggered, verify, record, device = None))]
pub fn read_fermions<'py>(
    py: Python<'py>,
    path: PathBuf,
    staggered: bool,
    verify: bool,
    record: usize,
    device: Option<Bound<'_, Device>>,
) -> PyResult<Made<'py>> {
    let options = ReadOptions { verify, record, ..Default::default() };
    let device = shared(device.as_ref());
    match staggered {
        true => read::<ColourVector>(py, device, path, options),
        false => read::<Spinor>(py, device, path, options),
    }
}

/// Writes fermion fields; the file's name tells the format.
#[pyfunction]
#[pyo3(signature = (path, given, title, device = None))]
pub fn write_fermions(
    py: Python<'_>,
    path: PathBuf,
    given: Given<'_>,
    title: String,
    device: Option<Bound<'_, Device>>,
) -> PyResult<()> {
    let device = shared(device.as_ref());
    match given.shape() {
        [.., 4, 3] => write::<Spinor>(py, device, path, &given, title),
        _ => write::<ColourVector>(py, device, path, &given, title),
    }
}

fn write<T: Fermion>(
    py: Python<'_>,
    device: Option<&Device>,
    path: PathBuf,
    given: &Given<'_>,
    title: String,
) -> PyResult<()> {
    let (fields, axes) = arrays::fields::<T>(given)?;
    let Some(format) = FileFormat::of_fermion_file(&path) else {
        let endings = files::formats::endings_of_fermion_files();
        let why = format!("{}: the format is unclear from the name; end it in {endings}", path.display());
        return Err(Failure::input(why).into());
    };
    let precision = format.only_precision().unwrap_or(FilePrecision::Double);
    let options = WriteOptions { format, title, precision, endian: Endian::Little, ..Default::default() };
    match device {
        None => undisturbed(py, || Ok(write_to(path.as_path(), &fields, &axes, &options)?)),
        Some(device) => device.run(py, move |thread, _| {
            let part = thread.processes.cut.part(fields[0].lattice())?;
            let file = SharedFile::new(&path, &*thread.processes.network).part(&part);
            Ok(write_to(file, &fields, &axes, &options)?)
        }),
    }
}

fn write_to<'a, T: Fermion>(
    to: impl Into<WriteTo<'a>>,
    fields: &[HostField<T>],
    axes: &[usize],
    options: &WriteOptions,
) -> Result<(), FileError> {
    let all: Vec<&HostField<T>> = fields.iter().collect();
    match (&all[..], axes) {
        (&[field], []) => files::write_fermion(to, field, options),
        _ => files::write_block(to, &all, axes, options),
    }
}
