//! All tests that cross crates. They are one program, which links once and runs them side by side: a test must not rely on
//! what belongs to the whole process, such as the environment, nor on how fast the machine is.

// What tests share.
mod chains;
mod correlators;
mod program;
mod sections;
mod spy;
mod three_point;
mod trajectories;

mod boundary_angles;
mod cli;
mod cli_check;
mod cli_eigenvalues;
mod cli_files;
mod cli_limits;
mod cli_multigrid;
mod cli_output;
mod cli_outputs;
mod cli_report;
mod cli_rhmc;
mod cli_rhmc_input;
mod cli_rhmc_replay;
mod cli_rhmc_resume;
mod cli_rhmc_wilson;
mod cli_solve;
mod cli_staggered;
mod cli_staggered_apply;
mod cli_trace;
mod clover;
mod embedding;
mod files;
mod files_parts;
mod fits;
mod fix_gauge;
mod flow;
mod halo;
#[cfg(feature = "hdf5")]
mod hdf5;
mod hmc_multigrid;
mod kernels;
mod launch_order;
mod memory;
#[cfg(feature = "mpi")]
mod mpi;
mod multigrid;
mod narrow;
mod odd_extents;
mod openqcd;
mod physics;
mod propagator_files;
mod properties;
mod quark_smearing;
mod quenched;
mod rhmc;
mod rhmc_ensembles;
mod rhmc_physics;
mod schwarz;
mod setup_files;
mod smearing;
mod solves;
mod spectrum;
mod spectrum_runs;
mod spectrum_sources;
mod spectrum_staggered;
mod spectrum_wilson_like;
mod staggered;
mod staggered_reference;
mod staggered_solves;
mod stout;
mod temporal;
mod tuning;
mod wilson_hmc;
mod wilson_like;
mod wilson_loops;
