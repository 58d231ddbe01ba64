//! Records of machines from which the scaling model predicts times.
use super::ExchangeRecord;
use ferrite_records::Record;
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
    /// Times of each operation with hopping terms.
    pub operations: Vec<MachineOperation>,
    /// Times of each operation of linear algebra.
    pub algebra: Vec<MachineAlgebra>,
    /// Latency and bandwidth of each transport of faces.
    pub exchanges: Vec<ExchangeRecord>,
    /// Microseconds of one of the ⌈log₂ N⌉ steps of a sum over N processes.
    pub sum_step_microseconds: f64,
    /// Iterations of solvers; `None` if they were not counted.
    #[serde(default)]
    pub iterations: Option<MachineIterations>,
}

impl Record for MachineRecord {
    const SCHEMA: &'static str = "ferrite.machine/1";
}

/// Times of an operation with hopping terms in one format.
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
    /// Bytes of a site in a message to a neighbour.
    pub zone_bytes: usize,
    /// Floating-point operations per site.
    pub flops: f64,
    /// Time of a call on one GPU without neighbours, as a function of the number of local sites.
    pub alone: Vec<MachinePoint>,
    /// Additional time of a hop in a partitioned direction whose message arrives in time, as a function of the number of exterior sites.
    pub beside: MachineDirections,
    /// Time of the exterior in each direction, as a function of the number of exterior sites.
    pub exterior: MachineDirections,
}

/// Times of an operation of linear algebra in one precision.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct MachineAlgebra {
    /// Name of the operation.
    pub operator: String,
    /// Precision of the fields.
    pub precision: String,
    /// Time of a call as a function of the number of sites.
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

/// Times as functions of the number of sites, for each direction.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct MachineDirections {
    /// Times for direction x.
    pub x: Vec<MachinePoint>,
    /// Times for direction y.
    pub y: Vec<MachinePoint>,
    /// Times for direction z.
    pub z: Vec<MachinePoint>,
    /// Times for direction t.
    pub t: Vec<MachinePoint>,
}

/// Iterations that BiCGstab and GCR-DD took on a configuration, and the time that a solve takes once.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct MachineIterations {
    /// Source of the iteration counts, in words.
    pub source: String,
    /// Precision of the solves.
    pub precision: String,
    /// Iterations of BiCGstab.
    pub bicgstab: BicgstabIterations,
    /// Iterations of GCR-DD.
    pub gcr_dd: GcrDdIterations,
    /// Microseconds that a solve takes in addition to its iterations; `None` in files of older versions.
    #[serde(default)]
    pub once_microseconds: Option<f64>,
}

/// Numbers of iterations and reliable updates of a BiCGstab solve.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct BicgstabIterations {
    /// Number of iterations.
    pub iterations: f64,
    /// Number of reliable updates.
    pub updates: f64,
}

/// Numbers of iterations and restarts of a GCR-DD solve.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct GcrDdIterations {
    /// Number of iterations for each size of the domains.
    pub domains: Vec<DomainIterations>,
    /// Number of restarts.
    pub restarts: f64,
    /// Number of minimum-residual steps in a domain per iteration.
    pub steps: usize,
}

/// Number of GCR-DD iterations for domains of one size.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct DomainIterations {
    /// Number of sites of a domain.
    pub sites: f64,
    /// Number of iterations.
    pub iterations: f64,
}
