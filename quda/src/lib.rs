//! QUDA's C interface on Ferrite. Applications that are compiled against the headers in `quda/include`, which are made of the tables in this
//! crate, link to `libferrite_quda` in place of QUDA.
//!
//! | module | subject |
//! |---|---|
//! | [`enums`], [`structs`], [`functions`] | tables of the interface |
//! | [`define`] | macros that turn the tables into Rust and into descriptions |
//! | [`headers`] | headers, made of the descriptions |
//! | [`call`] | shared parts of all calls: one thread, traces, failures |
//! | [`check`] | checks of pointers, structures and values of fields |
//! | [`setup`], [`processes`] | start and end, parameters and verbosity; the process grid and the communicator |
//! | [`state`] | what the interface keeps between calls |
//! | [`memory`], [`order`], [`fields`] | arrays of applications, orders of fields in them, and sums of fields |
//! | [`links`], [`staggered`] | links and clover terms; fat links, phases and projections |
//! | [`operator`], [`products`], [`covariant`] | operators on resident links, and products with them and their parts |
//! | [`solve`], [`multigrid`] | solves |
//! | [`loops`], [`smearing`] | observables; smearing, flow and gauge fixing |
//! | [`momenta`], [`forces`] | molecular dynamics of links, and forces of quarks |
//! | [`milc`] | MILC's layer over the other modules |
#![allow(unsafe_code)]
#![allow(clippy::too_many_arguments, reason = "calls have the arguments of the interface")]
#![allow(non_snake_case, non_camel_case_types, reason = "names of the interface")]

pub mod call;
pub mod check;
pub mod covariant;
pub mod define;
pub mod enums;
pub mod fields;
pub mod forces;
pub mod functions;
pub mod headers;
pub mod links;
pub mod loops;
pub mod memory;
pub mod milc;
pub mod momenta;
pub mod multigrid;
pub mod operator;
pub mod order;
pub mod processes;
pub mod products;
pub mod setup;
pub mod smearing;
pub mod solve;
pub mod staggered;
pub mod state;
pub mod structs;
