//! What `ferrite report` prints.
use crate::{Record, real};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::path::PathBuf;

/// The report of a run of `ferrite rhmc`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RunReportRecord {
    /// Folder of the run.
    pub folder: PathBuf,
    /// The page.
    pub output: PathBuf,
    /// Number of the first trajectory.
    pub first_trajectory: u64,
    /// Number of the last trajectory.
    pub last_trajectory: u64,
    /// Number of lines.
    pub trajectories: usize,
    /// Number of the first trajectories that do not count below: `--skip`, or those before the first Metropolis step.
    pub skipped: usize,
    /// Trajectories after these with a Metropolis step.
    pub metropolis_steps: usize,
    /// Accepted ones of these.
    pub accepted: usize,
    /// Whether the last line is half written, which is left out.
    pub half_line: bool,
    /// The settings of the last start; `None` where no line has any.
    pub run: Option<Value>,
    /// Means of observables.
    pub observables: Vec<ObservableMeans>,
    /// Sentences on what deserves attention: missing means, values that are not finite, ⟨exp(−ΔH)⟩ far from 1, settings that have
    /// changed.
    pub notes: Vec<String>,
}

impl Record for RunReportRecord {
    const SCHEMA: &'static str = "ferrite.report/1";
}

/// Mean of an observable over trajectories.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ObservableMeans {
    /// A key of `ferrite.trajectory/1`, such as `plaquette.mean` or `quarks.iterations.dynamics`, of which parts of the action that have
    /// no solver, or no eigenvalues, have none; `polyakov_loop.abs` and `.re`; `identities.plaquette` and `.rectangle`, `forces` less
    /// `loops`; `kernels.share`, of which none are left out; `accepted`: 1 or 0 for each Metropolis step, so that the mean is the
    /// acceptance.
    pub name: String,
    /// Mass of a `condensate`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mass: Option<f64>,
    /// Name of the group, for what is counted for each.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub quarks: Option<String>,
    /// The mean; `None` without a value.
    #[serde(deserialize_with = "real::read")]
    pub mean: f64,
    /// One standard deviation of the mean, √(2 τ σ² / n); `None` with less than two values.
    #[serde(deserialize_with = "real::read")]
    pub error: f64,
    /// τ, the integrated autocorrelation time in steps from one value to the next (½: independent).
    #[serde(deserialize_with = "real::read")]
    pub autocorrelation: f64,
    /// Its error τ √((4 W + 2) / n) for a window W of 6 τ.
    #[serde(deserialize_with = "real::read")]
    pub autocorrelation_error: f64,
    /// n, the number of values that count.
    pub measurements: usize,
    /// Trajectories from one value to the next.
    pub every: u64,
    /// Values that do not count because they are not finite.
    pub not_numbers: usize,
}

/// The report of several things.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CollectionRecord {
    /// The page.
    pub output: PathBuf,
    /// Sections of the page.
    pub sections: Vec<SectionRecord>,
}

impl Record for CollectionRecord {
    const SCHEMA: &'static str = "ferrite.report/1";
}

/// A section of a page.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SectionRecord {
    /// File or folder.
    pub path: PathBuf,
    /// `rhmc`, `spectrum`, `measurements`, `traces`, `fit`, `convergence`, `shifts`, `scaling` or `timeline`.
    pub kind: String,
    /// What there is to see.
    pub text: String,
}
