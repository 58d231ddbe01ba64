//! Files of fermion fields.
use crate::arrays::{self, Given, Made};
use crate::failure::Failure;
use ferrite::field::host::{ColourVector, Fermion, HostField, Spinor};
use ferrite::files::{self, Endian, FileError, FileFormat, FilePrecision, ReadOptions, WriteOptions};
use numpy::PyUntypedArrayMethods;
use pyo3::prelude::*;
use std::path::{Path, PathBuf};

/// All fields of a file; `None` where it holds something else.
fn fields<T: Fermion>(path: &Path, options: &ReadOptions) -> Result<(Vec<HostField<T>>, bool), FileError> {
    // A block of one is told from a field by itself.
    let block = files::inspect_block::<T>(path)?.is_some();
    let file = files::read_fermions::<T>(path, options)?;
    Ok((file.fields, block))
}

fn read<'py, T: Fermion>(py: Python<'py>, path: &Path, options: &ReadOptions) -> PyResult<Made<'py>> {
    let (fields, block) = py.detach(|| fields::<T>(path, options)).map_err(Failure::from)?;
    let axes: &[usize] = if block { &[fields.len()] } else { &[] };
    arrays::stacked(py, axes, &fields)
}

/// Reads fermion fields of a kind.
#[pyfunction]
pub fn read_fermions<'py>(
    py: Python<'py>,
    path: PathBuf,
    staggered: bool,
    verify: bool,
    record: usize,
) -> PyResult<Made<'py>> {
    let options = ReadOptions { verify, record, ..Default::default() };
    if staggered { read::<ColourVector>(py, &path, &options) } else { read::<Spinor>(py, &path, &options) }
}

/// Writes fermion fields; the file's name tells the format.
#[pyfunction]
pub fn write_fermions(py: Python<'_>, path: PathBuf, given: Given<'_>, title: String) -> PyResult<()> {
    match given.shape() {
        [.., 4, 3] => write::<Spinor>(py, &path, &given, title),
        _ => write::<ColourVector>(py, &path, &given, title),
    }
}

fn write<T: Fermion>(py: Python<'_>, path: &Path, given: &Given<'_>, title: String) -> PyResult<()> {
    let (fields, axes) = arrays::fields::<T>(given)?;
    let Some(format) = FileFormat::of_fermion_file(path) else {
        let why = format!("{}: the format is unclear from the name; end it in .npy or .lime", path.display());
        return Err(Failure::input(why).into());
    };
    let precision = format.only_precision().unwrap_or(FilePrecision::Double);
    let options = WriteOptions { format, title, precision, endian: Endian::Little, ..Default::default() };
    let all: Vec<&HostField<T>> = fields.iter().collect();
    let written = py.detach(|| match (&all[..], &axes[..]) {
        (&[field], []) => files::write_fermion(path, field, &options),
        _ => files::write_block(path, &all, &axes, &options),
    });
    Ok(written.map_err(Failure::from)?)
}
