//! Progress of long work, lines of `--progress json`.
use crate::read::present;
use serde::{Deserialize, Serialize};
use std::path::PathBuf;

/// A line on standard error.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct ProgressLine {
    /// What is under way: `solve`, `spectrum`, `rhmc`, `quenched`, `measure`, `trace`, `eigenvalues`, `bench`; `setup` while something is
    /// prepared for a solve.
    pub progress: String,
    /// How much of it is done, from 0 to 1; of a solve, by the logarithm of the residual; `None` where that is not known.
    pub fraction: Option<f64>,
    /// Seconds since it began.
    pub seconds: f64,
    /// Of a solve: iterations so far.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub iteration: Option<usize>,
    /// Of a solve: the largest residual ‖r‖/‖b‖ of the right-hand sides `rhs`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub residual: Option<f64>,
    /// Of a solve: the requested residual.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tol: Option<f64>,
    /// Of a solve: right-hand sides from the first number to before the second.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rhs: Option<[usize; 2]>,
    /// Of `spectrum` and `measure`: the file.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub configuration: Option<PathBuf>,
    /// Of `spectrum`: quark and origin where there are several.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub solve: Option<String>,
    /// Of `rhmc`: number of the trajectory.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub trajectory: Option<u32>,
    /// Of `rhmc`: number of the last trajectory.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub trajectories: Option<u32>,
    /// Of `rhmc`: how much of the trajectory is done.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub part: Option<f64>,
    /// Of `rhmc`: whether all of it is; then there is a line in any case, with the next two.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub done: Option<bool>,
    /// Of `rhmc`: whether the trajectory was accepted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub accepted: Option<bool>,
    /// Of `rhmc`: ΔH.
    #[serde(rename = "dH", skip_serializing_if = "Option::is_none")]
    pub delta_h: Option<f64>,
    /// Of `quenched`: number of the sweep.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sweep: Option<u32>,
    /// Of `quenched`: number of the last sweep.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sweeps: Option<u32>,
    /// Of `quenched`: the plaquette.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub plaquette: Option<f64>,
    /// Of `measure`: time of the flow.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub flow_time: Option<f64>,
    /// Of `bench`: mass.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mass: Option<f64>,
    /// Of `setup`, with the keys of the work that it is for: `multigrid setup` or `largest eigenvalue`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub work: Option<String>,
    /// Of `setup`: seconds that all of it takes by what is done, `None` where that is not known.
    #[serde(deserialize_with = "present", skip_serializing_if = "Option::is_none")]
    pub expected_seconds: Option<Option<f64>>,
}

impl ProgressLine {
    /// Returns the line of a task before it begins.
    pub fn of(task: &str) -> Self {
        ProgressLine { progress: task.into(), ..Self::default() }
    }
}
