//! Numbers that are `null` in JSON where they are not finite: written so by `serde_json`, and read as NaN by these functions, for
//! `#[serde(deserialize_with = "real::one")]` and its like.
use serde::{Deserialize, Deserializer};

/// Reads a number, NaN for `null`.
///
/// # Errors
/// Something else than a number or `null`.
pub fn one<'de, D: Deserializer<'de>>(deserializer: D) -> Result<f64, D::Error> {
    Ok(Option::<f64>::deserialize(deserializer)?.unwrap_or(f64::NAN))
}

/// Reads a list of numbers, NaN for `null`.
///
/// # Errors
/// Something else than an array of numbers or `null`.
pub fn list<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<f64>, D::Error> {
    Ok(finite_or_nan(Vec::deserialize(deserializer)?))
}

/// Reads a list of lists of numbers, NaN for `null`.
///
/// # Errors
/// Something else than an array of arrays of numbers or `null`.
pub fn lists<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<Vec<f64>>, D::Error> {
    Ok(Vec::<Vec<Option<f64>>>::deserialize(deserializer)?.into_iter().map(finite_or_nan).collect())
}

fn finite_or_nan(list: Vec<Option<f64>>) -> Vec<f64> {
    list.into_iter().map(|x| x.unwrap_or(f64::NAN)).collect()
}
