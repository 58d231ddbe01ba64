//! Machines of the scaling model.
use crate::Record;
use crate::bench::ExchangeRecord;
use serde::{Deserialize, Serialize};

/// Times of a machine from which times on others are predicted, the file of `--save` and `--machine`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct MachineRecord {
    /// The device.
    pub device: String,
    /// Number of processes that measured it.
    pub processes: usize,
    /// The operator.
    pub operator: String,
    /// Times of operations with hops.
    pub operations: Vec<MachineOperation>,
    /// Times of linear algebra.
    pub algebra: Vec<MachineAlgebra>,
    /// Exchanges of faces by each transport.
    pub exchanges: Vec<ExchangeRecord>,
    /// Microseconds of a step of a sum over processes.
    pub sum_step_microseconds: f64,
    /// Iterations of solvers; `None` where they were not counted.
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
    /// Precision of fields.
    pub precision: String,
    /// Reals of a link.
    pub reconstruct: String,
    /// Steps of the longest hop.
    pub reach: usize,
    /// Hopping terms of a call, each with an exchange.
    pub hops: usize,
    /// Sums over all processes that a call waits for.
    pub sums: usize,
    /// Bytes of a site in a message.
    pub zone_bytes: usize,
    /// Operations on a site.
    pub flops: f64,
    /// Times of a call against local sites, on one GPU without neighbours.
    pub alone: Vec<MachinePoint>,
    /// Time that a hop takes longer where a direction is cut and its message comes in time, against sites of the exterior.
    pub beside: MachineDirections,
    /// Times of the exterior, by direction.
    pub exterior: MachineDirections,
}

/// Times of linear algebra.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct MachineAlgebra {
    /// Name of the operation.
    pub operator: String,
    /// Precision of fields.
    pub precision: String,
    /// Times of a call.
    pub alone: Vec<MachinePoint>,
}

/// A time.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct MachinePoint {
    /// Number of sites.
    pub sites: f64,
    /// Microseconds.
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
    /// Origin of the numbers, for people.
    pub source: String,
    /// Precision of the solves.
    pub precision: String,
    /// BiCGstab.
    pub bicgstab: BicgstabIterations,
    /// GCR-DD.
    pub gcr_dd: GcrDdIterations,
    /// Microseconds of the work that a solve does once; `None` in files of before it was known.
    #[serde(default)]
    pub once_microseconds: Option<f64>,
}

/// Iterations of BiCGstab.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct BicgstabIterations {
    /// Number of iterations.
    pub iterations: f64,
    /// Number of true residuals in between.
    pub updates: f64,
}

/// Iterations of GCR-DD.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct GcrDdIterations {
    /// Iterations by the size of a domain.
    pub domains: Vec<DomainIterations>,
    /// Number of restarts.
    pub restarts: f64,
    /// Steps of minimum residual in a domain, in each iteration.
    pub steps: usize,
}

/// Iterations of GCR-DD with domains of a size.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct DomainIterations {
    /// Sites of a domain.
    pub sites: f64,
    /// Number of iterations.
    pub iterations: f64,
}
