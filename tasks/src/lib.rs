//! The application layer: what turns calls of the library into tasks, for the program, the Python package and other interfaces.
//!
//! | module | tasks |
//! |---|---|
//! | [`batches`] | numbers of right-hand sides that are solved together |
//! | [`ensemble`] | trajectories, as records |
//! | [`observables`] | observables of links, as records |
//! | [`outcome`] | outcomes of solves, as records |
//! | [`solver`] | settings of a solver, and the request that they make |
#![forbid(unsafe_code)]

pub mod batches;
pub mod ensemble;
pub mod observables;
pub mod outcome;
pub mod solver;
