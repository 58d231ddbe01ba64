//! Records of the pages that `ferrite report` writes.
use crate::{Record, real};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::path::PathBuf;

/// Report of a run of `ferrite rhmc`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RunReportRecord {
    /// Folder of the run.
    pub folder: PathBuf,
    /// File of the page.
    pub output: PathBuf,
    /// Number of the first trajectory.
    pub first_trajectory: u64,
    /// Number of the last trajectory.
    pub last_trajectory: u64,
    /// Number of trajectories in the file of the run.
    pub trajectories: usize,
    /// Number of trajectories at the beginning that the means leave out: the value of `--skip`, or the number before the first Metropolis
    /// step.
    pub skipped: usize,
    /// Number of trajectories, after the skipped ones, that ended with a Metropolis step.
    pub metropolis_steps: usize,
    /// Number of accepted trajectories among `metropolis_steps`.
    pub accepted: usize,
    /// Whether the last line is incomplete, in which case it is ignored.
    pub half_line: bool,
    /// Settings of the last start of the program; `None` if no line has any.
    pub run: Option<Value>,
    /// Means of observables.
    pub observables: Vec<ObservableMeans>,
    /// Sentences on points that need attention: missing means, values that are not finite, ⟨exp(−ΔH)⟩ far from 1, changed settings.
    pub notes: Vec<String>,
}

impl Record for RunReportRecord {
    const SCHEMA: &'static str = "ferrite.report/1";
}

/// Mean of an observable over trajectories.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ObservableMeans {
    /// Name of the observable: a key of `ferrite.trajectory/1`, such as `plaquette.mean` or `quarks.iterations.dynamics`. Other names are
    /// `polyakov_loop.abs` and `polyakov_loop.re`; `identities.plaquette` and `identities.rectangle`, the differences `forces` − `loops`;
    /// `kernels.share`, for which no trajectories are skipped; and `accepted`, 1 or 0 for each Metropolis step, whose mean is the
    /// acceptance rate. Parts of the action without a solver have no observables of iterations, and parts without a rational function have
    /// none of eigenvalues.
    pub name: String,
    /// Mass; only for `condensate`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mass: Option<f64>,
    /// Name of the part of the fermion action; only for observables that exist for each part.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub quarks: Option<String>,
    /// Mean; `null` without a value.
    #[serde(deserialize_with = "real::read")]
    pub mean: f64,
    /// One standard deviation of the mean, √(2 τ σ² / n); `null` with fewer than two values.
    #[serde(deserialize_with = "real::read")]
    pub error: f64,
    /// Integrated autocorrelation time τ in steps from one value to the next (½ if values are independent).
    #[serde(deserialize_with = "real::read")]
    pub autocorrelation: f64,
    /// Error of τ, τ √((4 W + 2) / n) for a window W of 6 τ.
    #[serde(deserialize_with = "real::read")]
    pub autocorrelation_error: f64,
    /// Number n of values in the mean.
    pub measurements: usize,
    /// Number of trajectories from one value to the next.
    pub every: u64,
    /// Number of values left out because they are not finite.
    pub not_numbers: usize,
}

/// Report of several files and folders.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CollectionRecord {
    /// File of the page.
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
    /// File or folder of the section.
    pub path: PathBuf,
    /// Kind of the section: `rhmc`, `spectrum`, `measurements`, `traces`, `fit`, `convergence`, `shifts`, `scaling` or `timeline`.
    pub kind: String,
    /// Summary of the section.
    pub text: String,
}
