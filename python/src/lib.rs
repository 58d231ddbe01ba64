//! What the Python package `ferrite_lqcd` is compiled from: the library `ferrite` on NumPy arrays. Everything that users see
//! is in `ferrite_lqcd/*.py` beside this folder; names here are the package's own business.
mod arrays;
mod device;
mod dirac;
mod failure;
mod files;
mod fits;
mod hmc;
mod keys;
mod links;
mod plot;
mod processes;
mod propagator;
mod shared;
mod spectrum;

use pyo3::prelude::*;

/// The module.
#[pymodule]
fn _native(module: &Bound<'_, PyModule>) -> PyResult<()> {
    let py = module.py();
    module.add("__version__", env!("CARGO_PKG_VERSION"))?;
    module.add("has_mpi", cfg!(feature = "mpi"))?;
    module.add("FerriteError", py.get_type::<failure::FerriteError>())?;
    module.add("InputError", py.get_type::<failure::InputError>())?;
    module.add("FileError", py.get_type::<failure::FileProblem>())?;
    module.add("DeviceError", py.get_type::<failure::DeviceProblem>())?;
    module.add("SolverError", py.get_type::<failure::SolverProblem>())?;
    module.add_class::<device::Device>()?;
    module.add_class::<links::Links>()?;
    module.add_class::<dirac::Dirac>()?;
    module.add_class::<hmc::Chain>()?;
    module.add_class::<shared::Shared>()?;
    module.add_class::<propagator::DevicePropagator>()?;
    module.add_function(wrap_pyfunction!(device::gpus, module)?)?;
    module.add_function(wrap_pyfunction!(links::quenched, module)?)?;
    module.add_function(wrap_pyfunction!(dirac::operators, module)?)?;
    module.add_function(wrap_pyfunction!(files::read_fermions, module)?)?;
    module.add_function(wrap_pyfunction!(files::write_fermions, module)?)?;
    module.add_function(wrap_pyfunction!(spectrum::mesons, module)?)?;
    module.add_function(wrap_pyfunction!(spectrum::nucleon, module)?)?;
    module.add_function(wrap_pyfunction!(spectrum::staggered_mesons, module)?)?;
    module.add_function(wrap_pyfunction!(spectrum::staggered_names, module)?)?;
    module.add_function(wrap_pyfunction!(spectrum::staggered_nucleon, module)?)?;
    module.add_function(wrap_pyfunction!(spectrum::gamma_names, module)?)?;
    module.add_function(wrap_pyfunction!(spectrum::gamma_matrix, module)?)?;
    module.add_function(wrap_pyfunction!(spectrum::noise, module)?)?;
    module.add_function(wrap_pyfunction!(spectrum::gaussian, module)?)?;
    module.add_function(wrap_pyfunction!(spectrum::sequential_source, module)?)?;
    module.add_function(wrap_pyfunction!(spectrum::conserved_charge, module)?)?;
    module.add_function(wrap_pyfunction!(fits::fit, module)?)?;
    module.add_function(wrap_pyfunction!(fits::effective_masses, module)?)?;
    module.add_function(wrap_pyfunction!(fits::effective_estimates, module)?)?;
    module.add_function(wrap_pyfunction!(plot::convergence_svg, module)?)?;
    module.add_function(wrap_pyfunction!(plot::lines_svg, module)?)?;
    module.add_function(wrap_pyfunction!(plot::error_bars_svg, module)?)?;
    Ok(())
}
