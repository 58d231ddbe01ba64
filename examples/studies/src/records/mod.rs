//! The JSON objects that studies print and read, as types. Comments of their fields are tables of keys in `docs/output.md`.
mod accuracy;
mod machine;
mod model;
mod rhmc;

pub use accuracy::{AccuracyRecord, AccuracyRow};
pub use machine::{
    BicgstabIterations, DomainIterations, GcrDdIterations, MachineAlgebra, MachineDirections, MachineIterations,
    MachineOperation, MachinePoint, MachineRecord,
};
pub use model::{
    BenchModelRecord, ComparedRow, ExchangeRecord, NetworkRecord, PredictedCallRow, PredictedSolverRow, ScalingPoints,
};
pub use rhmc::{BenchRhmcRecord, BenchRhmcRow, IrreversibilityMeans};
