//! Commands that read an input, and the ways in which users set the keys of a command.
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
    /// Determines which command reads an input file, from the keys and tables in it. Mistakes in the file do not matter. Returns `None` if
    /// the keys do not determine the command.
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
    /// Returns the arguments that the command needs after the name of the input file: ` --out DIR`, or nothing.
    pub fn folder(self) -> &'static str {
        match self {
            Self::Solve => "",
            Self::Spectrum | Self::Ensemble => " --out DIR",
        }
    }
    /// Returns the command that prints an example of the input.
    pub(crate) fn example(self) -> &'static str {
        match self {
            Self::Solve => "ferrite init solve",
            Self::Spectrum => "ferrite init spectrum",
            Self::Ensemble => "ferrite init rhmc",
        }
    }
    /// Returns the command that reads the input, as typed in a shell.
    pub fn usage(self) -> &'static str {
        match self {
            Self::Solve => "ferrite solve",
            Self::Spectrum => "ferrite spectrum",
            Self::Ensemble => "ferrite rhmc",
        }
    }
}

/// Way in which users give the options for reading files. It determines the advice in messages.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ReadBy {
    /// Flags such as `--no-verify`.
    Flags,
    /// Keys of the input, such as `no-verify`.
    Keys,
    /// Keys of this table of the input.
    Table(&'static str),
    /// None: the command has no such options, but `ferrite convert` can make a copy.
    #[default]
    Convert,
}

impl ReadBy {
    /// Returns the setting of a key to a value as users write it, for advice: `mass = M` in an input, and `--mass M` as a flag. An empty
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
