//! QUDA's C interface on Ferrite. Applications that are compiled against the headers in `quda/include`, which are made of the tables in this
//! crate, link to `libferrite_quda` in place of QUDA.
//!
//! | module | subject |
//! |---|---|
//! | [`enums`], [`structs`], [`functions`] | tables of the interface |
//! | [`define`] | macros that turn the tables into Rust and into descriptions |
//! | [`headers`] | headers, made of the descriptions |
//! | [`call`] | shared parts of all calls: one thread, traces, failures |
//! | [`setup`] | start and end, parameters, verbosity, and what the interface keeps |
//! | [`order`] | orders of fields in the memory of applications |
//! | [`links`], [`solve`] | links and clover terms; solves and products |
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
