//! What draws: plots, pages and the scaling model of Ferrite.
//!
//! Everything here works on plain numbers and on JSON that commands have written. Nothing needs a backend, a field or an
//! operator, so that this crate compiles beside the library `ferrite`, which does not depend on it; the program does.
//!
//! | module | what |
//! |---|---|
//! | [`plot`] | pictures as SVG |
//! | [`analysis`] | fits and scales from records of many configurations |
//! | [`records`] | the lines of JSON that commands write for each trajectory and configuration |
//! | [`page`] | the HTML pages of `ferrite report` |
//! | [`model`] | the scaling model: from measured times to those on many GPUs |
//! | [`precision_study`] | tables and figures of `ferrite bench rhmc` |
//! | [`text`] | words and numbers as people read them |
//!
//! Files are read here, but not written: pictures and pages are texts, which the program puts in their place.
#![forbid(unsafe_code)]

pub mod analysis;
mod error;
pub mod model;
pub mod page;
pub mod plot;
pub mod precision_study;
pub mod records;
pub mod text;

pub use error::ReportError;
