//! Machines of the scaling model.
use crate::Record;
use crate::bench::ExchangeRecord;
use serde::{Deserialize, Serialize};

/// Times measured on a machine, from which times on other machines are predicted: the file of `--save` and `--machine`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct MachineRecord {
    /// Name of the device.
    pub device: String,
    /// Number of processes that measured the machine.
    pub processes: usize,
    /// Name of the operator.
    pub operator: String,
    /// Times of operations with hops.
    pub operations: Vec<MachineOperation>,
    /// Times of linear algebra.
    pub algebra: Vec<MachineAlgebra>,
    /// Exchanges of faces by each transport.
    pub exchanges: Vec<ExchangeRecord>,
    /// Microseconds of a step of a sum over processes.
    pub sum_step_microseconds: f64,
    /// Iterations of solvers; `None` if they were not counted.
    #[serde(default)]
    pub iterations: Option<MachineIterations>,
}

impl Record for MachineRecord {
    const SCHEMA: &'static str = "ferrite.machine/1";
}

/// Times of an operation with hops.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct MachineOperation {
    /// Name of the operation, as in `ferrite.bench/1`.
    pub operator: String,
    /// Precision of the fields.
    pub precision: String,
    /// Number of reals stored per link.
    pub reconstruct: String,
    /// Length of the longest hop in lattice units.
    pub reach: usize,
    /// Number of hopping terms in a call, each with an exchange.
    pub hops: usize,
    /// Number of sums over all processes that a call waits for.
    pub sums: usize,
    /// Bytes of a site in a message.
    pub zone_bytes: usize,
    /// Floating-point operations per site.
    pub flops: f64,
    /// Times of a call by the number of local sites, on one GPU without neighbours.
    pub alone: Vec<MachinePoint>,
    /// Additional time of a hop if a direction is partitioned and its message arrives in time, by the number of exterior sites.
    pub beside: MachineDirections,
    /// Times of the exterior by direction.
    pub exterior: MachineDirections,
}

/// Times of linear algebra.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct MachineAlgebra {
    /// Name of the operation.
    pub operator: String,
    /// Precision of the fields.
    pub precision: String,
    /// Times of a call by the number of sites.
    pub alone: Vec<MachinePoint>,
}

/// Time for a number of sites.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct MachinePoint {
    /// Number of sites.
    pub sites: f64,
    /// Time in microseconds.
    pub microseconds: f64,
}

/// Times by direction.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct MachineDirections {
    /// Times in x.
    pub x: Vec<MachinePoint>,
    /// Times in y.
    pub y: Vec<MachinePoint>,
    /// Times in z.
    pub z: Vec<MachinePoint>,
    /// Times in t.
    pub t: Vec<MachinePoint>,
}

/// Iterations of solvers.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct MachineIterations {
    /// Source of the numbers, in words.
    pub source: String,
    /// Precision of the solves.
    pub precision: String,
    /// Iterations of BiCGstab.
    pub bicgstab: BicgstabIterations,
    /// Iterations of GCR-DD.
    pub gcr_dd: GcrDdIterations,
    /// Microseconds of the work that a solve does once; `None` in files of older versions.
    #[serde(default)]
    pub once_microseconds: Option<f64>,
}

/// Iterations of BiCGstab.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct BicgstabIterations {
    /// Number of iterations.
    pub iterations: f64,
    /// Number of reliable updates.
    pub updates: f64,
}

/// Iterations of GCR-DD.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct GcrDdIterations {
    /// Iterations by the size of the domains.
    pub domains: Vec<DomainIterations>,
    /// Number of restarts.
    pub restarts: f64,
    /// Number of minimum-residual steps in a domain per iteration.
    pub steps: usize,
}

/// Iterations of GCR-DD for domains of one size.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct DomainIterations {
    /// Number of sites of a domain.
    pub sites: f64,
    /// Number of iterations.
    pub iterations: f64,
}
