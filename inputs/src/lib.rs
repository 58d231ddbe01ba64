//! Inputs of Ferrite's commands: flags, assignments `KEY=VALUE` and files in TOML, all with the same keys, read into types.
//!
//! A command declares the tables of its input as structures with `serde`'s `Deserialize`, whose fields are
//! [`Given<T>`](given::Given) with a [`Value`](values::Value) `T`. They are the only list of its keys: a [`Schema`]
//! takes names and kinds from them. An [`Input`] collects values with their places, and
//! [`Input::read`](input::Input::read) builds the structures from them. Mistakes are collected, so that all mistakes of
//! an input are listed at once, each with its line and column.
pub mod advice;
pub mod files;
pub mod given;
pub mod input;
pub mod kind;
pub mod mistakes;
pub mod numbers;
pub mod raw;
pub mod schema;
mod sources;
mod stored;
pub mod synonyms;
mod syntax;
pub mod text;
pub mod values;

pub use given::{Given, Listed};
pub use input::{Input, ValuePlace};
pub use kind::InputKind;
pub use numbers::{RESIDUAL, is_residual};
pub use schema::Schema;
pub use synonyms::none_of;
