//! Commands that read an input, and how users give keys to a command.
use crate::sources::text_of;
use std::path::Path;
use toml::de::{DeTable, DeValue};

/// A command that reads an input.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InputKind {
    /// `ferrite solve`.
    Solve,
    /// `ferrite spectrum`.
    Spectrum,
    /// `ferrite rhmc`, and `forces`.
    Ensemble,
}

impl InputKind {
    /// Recognises the command that a file is an input of by its tables, right or wrong; `None` if they leave it open.
    pub fn of(path: &Path) -> Option<Self> {
        Self::of_text(&text_of(path).ok()?)
    }
    pub(crate) fn of_text(text: &str) -> Option<Self> {
        let (table, _) = DeTable::parse_recoverable(text);
        let has = |wanted: &dyn Fn(&str, &DeValue) -> bool| {
            table.get_ref().iter().any(|(key, value)| wanted(key.get_ref(), value.get_ref()))
        };
        let is_table = |value: &DeValue| matches!(value, DeValue::Table(_));
        if has(&|key, value| key == "solve" && is_table(value)) {
            return Some(Self::Spectrum);
        }
        if has(&|key, value| {
            matches!(key, "trajectories" | "trajectory" | "fermion") || key == "gauge" && is_table(value)
        }) {
            return Some(Self::Ensemble);
        }
        if has(&|key, _| matches!(key, "configurations" | "quark" | "three-point" | "shell")) {
            return Some(Self::Spectrum);
        }
        has(&|key, value| key == "gauge" && matches!(value, DeValue::String(_))).then_some(Self::Solve)
    }
    /// Returns the arguments that a command needs after the input.
    pub fn folder(self) -> &'static str {
        match self {
            Self::Solve => "",
            Self::Spectrum | Self::Ensemble => " --out DIR",
        }
    }
    /// Returns the command that prints an example.
    pub(crate) fn example(self) -> &'static str {
        match self {
            Self::Solve => "ferrite init solve",
            Self::Spectrum => "ferrite init spectrum",
            Self::Ensemble => "ferrite init rhmc",
        }
    }
    /// Returns the command as typed.
    pub fn usage(self) -> &'static str {
        match self {
            Self::Solve => "ferrite solve",
            Self::Spectrum => "ferrite spectrum",
            Self::Ensemble => "ferrite rhmc",
        }
    }
}

/// Means by which users of a command choose how a file is read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ReadBy {
    /// `--no-verify` and its likes.
    Flags,
    /// Keys of the input.
    Keys,
    /// Keys of a table of the input.
    Table(&'static str),
    /// The command has nothing of the kind: a copy can be made with the flags of `ferrite convert`.
    #[default]
    Convert,
}

impl ReadBy {
    /// Returns how users give a key a value, for advice: `mass = M` in an input and `--mass M` as a flag; without the value where that is
    /// empty.
    pub fn spelled(self, key: &str, value: &str) -> String {
        let table = match self {
            ReadBy::Table(table) => format!("{table}."),
            _ => String::new(),
        };
        match (self, value) {
            (ReadBy::Keys | ReadBy::Table(_), "") => format!("{table}{key}"),
            (ReadBy::Keys | ReadBy::Table(_), value) => format!("{table}{key} = {value}"),
            (ReadBy::Flags | ReadBy::Convert, "") => format!("--{key}"),
            (ReadBy::Flags | ReadBy::Convert, value) => format!("--{key} {value}"),
        }
    }
}
