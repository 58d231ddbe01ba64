//! Records of rational functions that `ferrite rational` computes and `ferrite rhmc --replay` reads.
use crate::Record;
use serde::{Deserialize, Serialize};

/// Result of `ferrite rational`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RationalRecord {
    /// Factors of the function.
    pub function: Vec<FactorOfFunction>,
    /// Lower and upper end of the interval.
    pub interval: [f64; 2],
    /// Number of poles of the rational function.
    pub order: usize,
    /// Largest relative error before the coefficients were rounded.
    pub error: f64,
    /// Rational function R.
    pub direct: FunctionOfPoles,
    /// Rational function 1/R.
    pub inverse: FunctionOfPoles,
    /// Quality of R and 1/R with rounded coefficients.
    pub check: RationalChecks,
    /// Lines in MILC's format that `--milc` prints; `None` without this flag.
    pub milc: Option<String>,
}

impl Record for RationalRecord {
    const SCHEMA: &'static str = "ferrite.rational-function/1";
}

/// A factor (x + `shift`)^`power`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct FactorOfFunction {
    /// Shift of the factor.
    pub shift: f64,
    /// Power of the factor, a fraction as text.
    pub power: String,
}

/// Rational function as a constant and poles: `constant` + Σ `residue` / (x + `shift`).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct FunctionOfPoles {
    /// Constant term.
    pub constant: f64,
    /// Poles of the function.
    pub poles: Vec<PoleOfFunction>,
}

/// A pole of a rational function.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct PoleOfFunction {
    /// Residue of the pole.
    pub residue: f64,
    /// Shift of the pole.
    pub shift: f64,
}

/// Quality of a rational function and of its inverse.
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
    /// Largest relative error if the function is evaluated in double precision.
    pub error_in_double: f64,
    /// Condition number of the sum over poles.
    pub condition: f64,
}

/// Rational functions of a fermion monomial, as in `functions.json` of a folder for `--replay`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct GroupFunctions {
    /// Function of molecular dynamics.
    pub dynamics: FunctionOfPoles,
    /// Function of the heat bath.
    pub heat_bath: FunctionOfPoles,
    /// Function of the action.
    pub action: FunctionOfPoles,
}
