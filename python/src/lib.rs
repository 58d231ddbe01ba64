//! Native part of the Python package `ferrite_lqcd`: the library `ferrite` on NumPy arrays. Everything that users see is in the folder
//! `ferrite_lqcd` beside this one; names here are internal to the package.
mod arrays;
mod device;
mod dirac;
mod failure;
mod files;
mod fits;
mod fork;
mod hmc;
mod host;
mod links;
mod plot;
mod processes;
mod propagator;
mod shared;
mod spectrum;
mod typed;

use failure::exceptions;
use ferrite_tasks::bounds::BOUNDS;
use pyo3::panic::PanicException;
use pyo3::prelude::*;
use std::collections::BTreeMap;

/// Creates the native module.
#[pymodule]
fn _native(module: &Bound<'_, PyModule>) -> PyResult<()> {
    fork::imported();
    let py = module.py();
    module.add("__version__", env!("CARGO_PKG_VERSION"))?;
    module.add("has_mpi", cfg!(feature = "mpi"))?;
    module.add("FerriteError", py.get_type::<exceptions::FerriteError>())?;
    module.add("InputError", py.get_type::<exceptions::InputError>())?;
    module.add("FileError", py.get_type::<exceptions::FileError>())?;
    module.add("DeviceError", py.get_type::<exceptions::DeviceError>())?;
    module.add("SolverError", py.get_type::<exceptions::SolverError>())?;
    // pyo3 raises this exception for a panic; the package converts it to a `FerriteError`.
    module.add("PanicException", py.get_type::<PanicException>())?;
    module.add("most", BOUNDS.into_iter().collect::<BTreeMap<_, _>>())?;
    module.add_function(wrap_pyfunction!(failure::internal_error, module)?)?;
    module.add_class::<device::PyDevice>()?;
    module.add_class::<links::PyLinks>()?;
    module.add_class::<dirac::Dirac>()?;
    module.add_class::<hmc::PyChain>()?;
    module.add_class::<shared::Shared>()?;
    module.add_class::<propagator::DevicePropagator>()?;
    module.add_function(wrap_pyfunction!(device::gpus, module)?)?;
    module.add_function(wrap_pyfunction!(links::quenched, module)?)?;
    module.add_function(wrap_pyfunction!(dirac::operators, module)?)?;
    module.add_function(wrap_pyfunction!(dirac::solvers, module)?)?;
    module.add_function(wrap_pyfunction!(files::read_fermions, module)?)?;
    module.add_function(wrap_pyfunction!(files::write_fermions, module)?)?;
    module.add_function(wrap_pyfunction!(spectrum::contract, module)?)?;
    module.add_function(wrap_pyfunction!(spectrum::staggered_names, module)?)?;
    module.add_function(wrap_pyfunction!(spectrum::gamma_names, module)?)?;
    module.add_function(wrap_pyfunction!(spectrum::gamma_matrix, module)?)?;
    module.add_function(wrap_pyfunction!(spectrum::noise, module)?)?;
    module.add_function(wrap_pyfunction!(spectrum::gaussian, module)?)?;
    module.add_function(wrap_pyfunction!(spectrum::sequential_source, module)?)?;
    module.add_function(wrap_pyfunction!(fits::fit, module)?)?;
    module.add_function(wrap_pyfunction!(fits::effective_masses, module)?)?;
    module.add_function(wrap_pyfunction!(fits::effective_estimates, module)?)?;
    module.add_function(wrap_pyfunction!(plot::convergence_svg, module)?)?;
    module.add_function(wrap_pyfunction!(plot::lines_svg, module)?)?;
    module.add_function(wrap_pyfunction!(plot::error_bars_svg, module)?)?;
    Ok(())
}
