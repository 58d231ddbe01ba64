//! All tests of the crate's interface. They are one program, which links once and runs them side by side.

mod cache;
mod errors;
mod properties;
mod refdata;
mod zolotarev;
