//! Application layer: it turns calls of the library into tasks, for the program, the Python package and other interfaces.
//!
//! | modules | subject |
//! |---|---|
//! | [`solve`], [`checked`], [`plan`], [`method`], [`multigrid`], [`schwarz`], [`keys`] | solves: keys of the input, the request for the library, and the run |
//! | [`solver`], [`outcome`] | settings of a solver by name, and outcomes of solves as records |
//! | [`dirac`], [`links`], [`host_fields`], [`grid_device`] | operators, links and fields that an interface keeps, on a device that it opened by name |
//! | [`parameters`], [`json`], [`catalogue`], [`bounds`] | operators and quarks from named texts, requests from JSON objects, lists of operators and methods, largest counts |
//! | [`spectrum`], [`fits`] | propagators, correlators and effective masses of hadrons; fits of correlators |
//! | [`measure`], [`eigenvalues`], [`trace`] | loops and the gradient flow, spectral bounds, traces from noise vectors |
//! | [`apply`], [`quenched`], [`link_job`], [`smear`], [`fix_gauge`], [`improved_links`], [`plaquette`] | applications of operators; links that are generated, smeared, gauge-fixed, or made fat and long; plaquettes |
//! | [`batches`], [`batch`] | batches of right-hand sides that are solved together |
//! | [`host_links`], [`stout`], [`link_smearing`], [`fields`], [`setup_file`], [`configured`], [`line_file`], [`target`], [`plot`], [`named`] | links, fields and results in files |
//! | [`device`], [`layout`], [`communicator`], [`session`], [`ahead`], [`profile`] | devices and processes |
//! | [`ensemble`], [`evolution`], [`observables`] | quarks of an ensemble, their rational functions and the parts of the action; trajectories step by step; records of observables |
//! | [`failure`], [`observer`], [`progress`], [`provenance`], [`terminal`] | failures, progress and logs of a run |
#![deny(unsafe_code)]

pub mod ahead;
pub mod apply;
pub mod batch;
pub mod batches;
pub mod bounds;
pub mod catalogue;
pub mod checked;
pub mod communicator;
pub mod configured;
pub mod device;
pub mod dirac;
pub mod eigenvalues;
pub mod ensemble;
pub mod evolution;
pub mod failure;
pub mod fields;
pub mod fits;
pub mod fix_gauge;
pub mod grid_device;
pub mod host_fields;
pub mod host_links;
pub mod improved_links;
pub mod json;
pub mod keys;
pub mod layout;
pub mod line_file;
pub mod link_job;
pub mod link_smearing;
pub mod links;
pub mod measure;
pub mod method;
pub mod multigrid;
pub mod named;
pub mod observables;
pub mod observer;
pub mod outcome;
pub mod parameters;
pub mod plan;
pub mod plaquette;
pub mod plot;
pub mod profile;
pub mod progress;
pub mod provenance;
pub mod quenched;
pub mod schwarz;
pub mod session;
pub mod setup_file;
pub mod smear;
pub mod solve;
pub mod solver;
pub mod spectrum;
pub mod stout;
pub mod target;
pub mod terminal;
pub mod trace;

pub use failure::{Code, Failure};
use ferrite_inputs::text;

/// Result of a task, or the failure that ended it.
pub type Outcome<T = ()> = Result<T, Failure>;
