//! Commands that read an input, and the ways in which users set keys of a command.
use crate::sources::text_of;
use std::path::Path;
use toml::de::{DeTable, DeValue};

/// Command that reads an input.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InputKind {
    /// The command `ferrite solve`.
    Solve,
    /// The command `ferrite spectrum`.
    Spectrum,
    /// The commands `ferrite rhmc` and `ferrite forces`.
    Ensemble,
}

impl InputKind {
    /// Determines the command that reads a file from its tables, right or wrong; `None` if they are ambiguous.
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

/// Way in which users of a command choose how a file is read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ReadBy {
    /// Flags such as `--no-verify`.
    Flags,
    /// Keys of the input.
    Keys,
    /// Keys of a table of the input.
    Table(&'static str),
    /// No option of the command: the flags of `ferrite convert` can make a copy instead.
    #[default]
    Convert,
}

impl ReadBy {
    /// Returns how users set a key to a value, for advice: `mass = M` in an input and `--mass M` as a flag; an empty
    /// value is left out.
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
