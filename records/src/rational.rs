//! Rational functions of `ferrite rational`, and those that `ferrite rhmc --replay` reads.
use crate::Record;
use serde::{Deserialize, Serialize};

/// The result of `ferrite rational`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RationalRecord {
    /// Factors of the function.
    pub function: Vec<FactorOfFunction>,
    /// Both ends of the interval.
    pub interval: [f64; 2],
    /// Number of poles.
    pub order: usize,
    /// Largest relative error before coefficients were rounded.
    pub error: f64,
    /// R.
    pub direct: FunctionOfPoles,
    /// 1/R.
    pub inverse: FunctionOfPoles,
    /// Quality of both with rounded coefficients.
    pub check: RationalChecks,
    /// The lines of `--milc`, or `None`.
    pub milc: Option<String>,
}

impl Record for RationalRecord {
    const SCHEMA: &'static str = "ferrite.rational-function/1";
}

/// A factor (x + `shift`)^`power`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct FactorOfFunction {
    /// The shift.
    pub shift: f64,
    /// The power, a fraction as text.
    pub power: String,
}

/// A constant and poles: `constant` + Σ `residue` / (x + `shift`).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct FunctionOfPoles {
    /// The constant.
    pub constant: f64,
    /// The poles.
    pub poles: Vec<PoleOfFunction>,
}

/// A pole of a rational function.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct PoleOfFunction {
    /// The residue.
    pub residue: f64,
    /// The shift.
    pub shift: f64,
}

/// Quality of a function and of its inverse.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct RationalChecks {
    /// Quality of R.
    pub direct: RationalCheck,
    /// Quality of 1/R.
    pub inverse: RationalCheck,
}

/// Quality of a rational function with rounded coefficients.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct RationalCheck {
    /// Largest relative error.
    pub error: f64,
    /// Largest relative error where the function is evaluated in double precision.
    pub error_in_double: f64,
    /// Condition of the sum over poles.
    pub condition: f64,
}

/// Functions of a group of quarks in `functions.json` of `--replay`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct GroupFunctions {
    /// The function of molecular dynamics.
    pub dynamics: FunctionOfPoles,
    /// The function of the heat bath.
    pub heat_bath: FunctionOfPoles,
    /// The function of the action.
    pub action: FunctionOfPoles,
}
