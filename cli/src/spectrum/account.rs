//! Records of the solve for a propagator: in the line of a configuration, and beside a propagator that is kept.
use super::super::batch::Batches;
use super::super::solve;
use ferrite::solve::Report;
use serde_json::{Map, Value, json};

/// Account of a solve. Of a propagator that was read it is that of the solve which made it, but for the residual.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SolveAccount {
    /// Largest ‖b − M x‖ / ‖b‖ of all components: of what hadrons are made of, computed in double.
    pub true_residual: Option<f64>,
    /// Iterations of the slowest component.
    pub iterations: Option<usize>,
    /// Numbers of components that were solved together.
    pub batches: Option<Vec<usize>>,
    /// Seconds of the solve.
    pub seconds: Option<f64>,
    /// Whether the propagator was read.
    pub is_read: bool,
}

impl SolveAccount {
    /// Returns that of a solve which was just done.
    pub fn new(report: &Report, batches: &Batches) -> Self {
        SolveAccount {
            true_residual: Some(solve::worst(report)),
            iterations: Some(report.info.iterations),
            batches: Some(batches.sizes.clone()),
            seconds: Some(report.total_seconds),
            is_read: false,
        }
    }
    /// Returns what was noted beside a propagator that is read. What is not there, as earlier versions noted nothing, is not known.
    pub fn from_json(noted: &Value) -> Self {
        let whole = |value: &Value| value.as_u64().map(|number| number as usize);
        SolveAccount {
            true_residual: noted["true_residual"].as_f64(),
            iterations: whole(&noted["iterations"]),
            batches: noted["batches"].as_array().and_then(|all| all.iter().map(whole).collect()),
            seconds: noted["seconds"].as_f64(),
            is_read: true,
        }
    }
    /// Returns the keys of a solve.
    pub fn json(&self) -> Value {
        Value::Object(self.keys())
    }
    /// Returns the same as a map.
    pub fn keys(&self) -> Map<String, Value> {
        Map::from_iter([
            ("true_residual".into(), json!(self.true_residual)),
            ("iterations".into(), json!(self.iterations)),
            ("batches".into(), json!(self.batches)),
            ("seconds".into(), json!(self.seconds)),
        ])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn accounts_survive_their_file() {
        let account = SolveAccount {
            true_residual: Some(3.25e-9),
            iterations: Some(41),
            batches: Some(vec![8, 4]),
            seconds: Some(0.125),
            is_read: true,
        };
        let text = account.json().to_string();
        assert_eq!(SolveAccount::from_json(&serde_json::from_str(&text).unwrap()), account);
        let nothing = SolveAccount { is_read: true, ..Default::default() };
        assert_eq!(SolveAccount::from_json(&Value::Null), nothing);
        assert_eq!(SolveAccount::from_json(&json!({ "batches": [1, "x"], "iterations": -1 })), nothing);
    }
}
