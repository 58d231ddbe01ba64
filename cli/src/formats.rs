//! Lists of precisions and reconstructions, for commands that go through several formats.
use super::plan::{PRECISIONS, RECONSTRUCTIONS};
use super::{Failure, Outcome, synonyms};
use clap::Args;
use ferrite::{LinkStorage, Precision};

/// Precisions and link storages, as typed.
#[derive(Args)]
pub struct FormatFlags {
    /// Precisions: all, or some of double, single, half, fp16, separated by commas [default: all]
    #[arg(long, value_name = "NAMES")]
    precision: Option<String>,
    /// Numbers of reals stored for a link: all, or some of 18, 12, 8; 12t, 8t (temporal gauge, for wilson and clover); 18h, 12h,
    /// 8h (16-bit links of staggered operators, with fields in single precision); 13, 9, 13h, 9h (with the phase of a
    /// determinant, for long links of improved operators); 13f, 9f (the same with fat links of 21 bits); separated by commas;
    /// Wilson fermions have 8 and 8t in double and single precision only [default: all]
    #[arg(long, value_name = "NUMBERS")]
    reconstruct: Option<String>,
}

impl FormatFlags {
    /// Returns the precisions of `--precision`.
    pub fn precisions(&self) -> Outcome<Vec<Precision>> {
        choose("precision", self.precision.as_deref(), &PRECISIONS)
    }
    /// Returns the link storages of `--reconstruct`, including those that an operator does not support.
    pub fn reconstructions(&self) -> Outcome<Vec<LinkStorage>> {
        choose("reconstruct", self.reconstruct.as_deref(), &RECONSTRUCTIONS)
    }
    /// Returns the link storages of `--reconstruct` for Wilson fermions, without those in temporal gauge, for commands that must not change
    /// the gauge.
    pub fn reconstructions_in_any_gauge(&self) -> Outcome<Vec<LinkStorage>> {
        let fits = |format: LinkStorage| !format.temporal && !format.half && !format.keeps_phase();
        let choices: Vec<_> = RECONSTRUCTIONS.into_iter().filter(|(_, format)| fits(*format)).collect();
        choose("reconstruct", self.reconstruct.as_deref(), &choices)
    }
}

/// Returns the values of `choices` whose names are in the list `text`; all values if there is no list.
pub fn choose<T: Copy>(flag: &str, text: Option<&str>, choices: &[(&str, T)]) -> Outcome<Vec<T>> {
    let text = text.unwrap_or("all");
    if text == "all" {
        return Ok(choices.iter().map(|(_, value)| *value).collect());
    }
    let find = |name: &str| choices.iter().find(|(n, _)| *n == name).map(|(_, value)| *value);
    let found: Option<Vec<T>> = text.split(',').map(|name| find(name.trim())).collect();
    found.ok_or_else(|| {
        let names: Vec<_> = choices.iter().map(|(name, _)| *name).collect();
        let wrong = text.split(',').map(str::trim).find(|name| find(name).is_none());
        let hint = wrong.and_then(|name| synonyms::of_value(flag, name, &names)).map(|meant| meant.sentence());
        let hint = hint.unwrap_or_default();
        Failure::refused(format!(
            "--{flag} '{text}': expected all, or some of {}, separated by commas{hint}",
            names.join(", ")
        ))
    })
}
