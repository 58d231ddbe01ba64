//! The application layer: what turns calls of the library into tasks, for the program, the Python package and other interfaces.
//!
//! | module | tasks |
//! |---|---|
//! | [`batches`] | how many right-hand sides are solved together |
//! | [`outcome`] | what solvers did, as records |
//! | [`solver`] | settings of a solver, and the request that they make |
#![forbid(unsafe_code)]

pub mod batches;
pub mod outcome;
pub mod solver;
