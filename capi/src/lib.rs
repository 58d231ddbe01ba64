//! C interface of Ferrite. `capi/include/ferrite.h` is generated from this crate; `cargo xtask capi` makes the libraries.
//!
//! Every function returns a code, writes nothing to the terminal, and ends neither the program nor MPI. [`fe_message`](call::fe_message)
//! has the reason of the last failure on the calling thread, and [`fe_record`](call::fe_record) the last record as JSON. A panic, which
//! is a bug, becomes a code, too.
//!
//! | module | subject |
//! |---|---|
//! | [`call`] | codes, messages, records, and checks of pointers |
//! | [`mod@array`] | arrays of the caller |
//! | [`device`] | devices and their processes |
//! | [`gauge`] | links: files, plaquettes, smearing, flow, gauge fixing, heat bath |
//! | [`operator`] | Dirac operators: products, solves, multigrid, eigenvalues |
//! | [`propagator`] | quark propagators, and correlators of hadrons |
//! | [`evolution`] | hybrid Monte Carlo: trajectories, momenta, actions and forces |
#![allow(unsafe_code)]
#![allow(non_camel_case_types, reason = "names of C")]

pub mod array;
pub mod call;
pub mod device;
pub mod evolution;
pub mod gauge;
pub mod operator;
pub mod propagator;
