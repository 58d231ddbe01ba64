//! Files of fermion fields.
use crate::arrays::{self, Given, Made};
use crate::device::PyDevice;
use crate::failure::Returned;
use crate::host::{on_host, undisturbed};
use ferrite::files::ReadOptions;
use ferrite_tasks::host_fields::HostFields;
use numpy::PyUntypedArrayMethods;
use pyo3::prelude::*;
use std::path::PathBuf;

/// Returns the device if its lattices are partitioned among several processes; otherwise `None`.
pub fn shared<'a>(device: Option<&'a Bound<'_, PyDevice>>) -> Option<&'a PyDevice> {
    device.map(Bound::get).filter(|device| device.place().is_shared())
}

/// Reads the fermion fields of a file, which must be staggered or Wilson-like as requested. With a device of several
/// processes, each process reads its part.
#[pyfunction]
#[pyo3(signature = (path, staggered, verify, record, device = None))]
pub fn read_fermions<'py>(
    py: Python<'py>,
    path: PathBuf,
    staggered: bool,
    verify: bool,
    record: usize,
    device: Option<Bound<'_, PyDevice>>,
) -> Returned<Made<'py>> {
    let (options, kind) = (ReadOptions { verify, record, ..Default::default() }, arrays::kind(staggered));
    let (fields, block) = match shared(device.as_ref()) {
        None => on_host(py, move || HostFields::read(None, &path, kind, &options))?,
        Some(device) => {
            device.run(py, move |thread, _| HostFields::read(Some(&thread.device), &path, kind, &options))?
        }
    };
    let axes: &[usize] = if block { &[fields.count()] } else { &[] };
    arrays::stacked(py, axes, &fields)
}

/// Writes fermion fields to a file, whose name determines the format.
#[pyfunction]
#[pyo3(signature = (path, given, title, device = None))]
pub fn write_fermions(
    py: Python<'_>,
    path: PathBuf,
    given: Given<'_>,
    title: String,
    device: Option<Bound<'_, PyDevice>>,
) -> Returned {
    let staggered = !matches!(given.shape(), [.., 4, 3]);
    let (fields, axes) = arrays::fields(arrays::kind(staggered), &given)?;
    match shared(device.as_ref()) {
        None => undisturbed(py, || fields.write(None, &path, &axes, title)),
        Some(device) => device.run(py, move |thread, _| fields.write(Some(&thread.device), &path, &axes, title)),
    }
}
