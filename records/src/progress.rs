//! Record of the progress of long tasks, printed with `--progress json`.
use crate::read::present;
use serde::{Deserialize, Serialize};
use std::path::PathBuf;

/// Line on the progress of a task, printed on standard error.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct ProgressLine {
    /// Task in progress: `solve`, `spectrum`, `rhmc`, `quenched`, `measure`, `trace`, `eigenvalues` or `bench`; `setup` during preparations
    /// for a solve.
    pub progress: String,
    /// Fraction of the task that is done, from 0 to 1. For a solve, it is computed from the logarithm of the residual. `None` if it is not
    /// known.
    pub fraction: Option<f64>,
    /// Seconds since the task began.
    pub seconds: f64,
    /// Number of iterations so far; only from a solve.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub iteration: Option<usize>,
    /// Largest residual ‖r‖/‖b‖ of the right-hand sides `rhs`; only from a solve.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub residual: Option<f64>,
    /// Requested tolerance; only from a solve.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tol: Option<f64>,
    /// Right-hand sides that are being solved: `[first, end]`, without `end`; only from a solve.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rhs: Option<[usize; 2]>,
    /// File of the configuration; only from `spectrum` and `measure`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub configuration: Option<PathBuf>,
    /// Quark and source position; only from `spectrum` with several of them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub solve: Option<String>,
    /// Number of the trajectory; only from `rhmc`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub trajectory: Option<u32>,
    /// Number of the trajectory with which the run ends; only from `rhmc`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub trajectories: Option<u32>,
    /// Fraction of the trajectory that is done, from 0 to 1; only from `rhmc`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub part: Option<f64>,
    /// Whether the trajectory has ended; only from `rhmc`. The last line of a trajectory, with `accepted` and `dH`, is always printed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub done: Option<bool>,
    /// Whether the trajectory was accepted; only from `rhmc`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub accepted: Option<bool>,
    /// Change ΔH of the Hamiltonian in the trajectory; only from `rhmc`.
    #[serde(rename = "dH", skip_serializing_if = "Option::is_none")]
    pub delta_h: Option<f64>,
    /// Number of the sweep; only from `quenched`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sweep: Option<u32>,
    /// Number of the sweep with which the run ends; only from `quenched`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sweeps: Option<u32>,
    /// Mean plaquette; only from `quenched`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub plaquette: Option<f64>,
    /// Flow time reached, in units of a²; only from `measure`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub flow_time: Option<f64>,
    /// Bare mass; only from `bench`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mass: Option<f64>,
    /// Preparation in progress: `multigrid setup` or `largest eigenvalue`; only from `setup`. Such lines also have the keys of the task
    /// that is being prepared.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub work: Option<String>,
    /// Expected seconds of the whole preparation, estimated from the fraction that is done; only from `setup`, `None` if it is not known.
    #[serde(deserialize_with = "present", skip_serializing_if = "Option::is_none")]
    pub expected_seconds: Option<Option<f64>>,
}

impl ProgressLine {
    /// Returns a line for the beginning of a task, without results.
    pub fn of(task: &str) -> Self {
        ProgressLine { progress: task.into(), ..Self::default() }
    }
}
