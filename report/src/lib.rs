//! Plots and pages of Ferrite.
//!
//! The crate works on plain numbers and on JSON that commands have written. It needs no backend, field or operator, so that
//! it compiles in parallel with the library `ferrite`, which does not depend on it; the program does.
//!
//! | module | what |
//! |---|---|
//! | [`plot`] | pictures as SVG |
//! | [`analysis`] | fits and scales from records of many configurations |
//! | [`records`] | the lines of JSON that commands write for each trajectory and configuration |
//! | [`page`] | the HTML pages of `ferrite report` |
//! | [`text`] | formatting of words and numbers |
//!
//! The crate reads files but does not write them: pictures and pages are returned as text, which the program writes.
#![forbid(unsafe_code)]

pub mod analysis;
mod error;
pub mod page;
pub mod plot;
pub mod records;
pub mod text;

pub use error::ReportError;
