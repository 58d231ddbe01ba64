//! tr Γ M⁻¹ / V over many configurations, and the disconnected susceptibility of the condensate.
use super::{AnalysisChoice, estimate_record, estimate_text};
use ferrite_records::fit::TraceMeans;
use ferrite_records::measure::{TraceLine, TraceRecord};
use statistics::jackknife::JackknifeEstimate;
use std::fmt::Write as _;

/// Means of one trace over many configurations.
#[derive(Clone, Debug)]
pub struct TraceAnalysis {
    /// Bare mass m.
    pub mass: f64,
    /// Name of the matrix Γ, such as `g5`.
    pub gamma: String,
    /// Estimate of ⟨Re tr Γ M⁻¹⟩ / V.
    pub real: Option<JackknifeEstimate>,
    /// Estimate of ⟨Im tr Γ M⁻¹⟩ / V.
    pub imaginary: Option<JackknifeEstimate>,
    /// Disconnected susceptibility (⟨(Re tr Γ M⁻¹)²⟩ − ⟨Re tr Γ M⁻¹⟩²) / V. Each square is a product of values from two different noise
    /// vectors. `None` with a single noise vector or configuration.
    pub disconnected: Option<JackknifeEstimate>,
}

/// Returns three means of a trace: of the real and the imaginary part over noise vectors, and of the product of real parts over pairs of
/// different noise vectors.
fn means(line: &TraceRecord) -> [f64; 3] {
    let n = line.noise.len() as f64;
    let sum = |of: &dyn Fn(&[f64; 2]) -> f64| line.noise.iter().map(of).sum::<f64>();
    let (re, im, squares) = (sum(&|z| z[0]), sum(&|z| z[1]), sum(&|z| z[0] * z[0]));
    [re / n, im / n, (re * re - squares) / (n * (n - 1.0))]
}

/// Analyses all traces of the configurations, which must have the same masses and matrices.
pub fn traces(all: &[TraceLine], choice: &AnalysisChoice) -> Vec<TraceAnalysis> {
    let Some(first) = all.first() else { return Vec::new() };
    let volume = first.system.operator.lattice.iter().product::<usize>() as f64;
    let one = |(number, line): (usize, &TraceRecord)| {
        let samples: Vec<Vec<f64>> = all.iter().map(|one| means(&one.traces[number]).to_vec()).collect();
        let samples = choice.binned(&samples);
        let several = samples.len() > 1;
        let found = choice.fits.resampling.estimate(&samples, |mean| {
            let finite = |x: f64| Some(x).filter(|x| x.is_finite());
            let disconnected = volume * (mean[2] - mean[0] * mean[0]);
            vec![finite(mean[0]), finite(mean[1]), finite(disconnected).filter(|_| several)]
        });
        let (mass, gamma) = (line.mass, line.gamma.clone());
        TraceAnalysis { mass, gamma, real: found[0], imaginary: found[1], disconnected: found[2] }
    };
    first.traces.iter().enumerate().map(one).collect()
}

impl TraceAnalysis {
    /// Returns the JSON record of the means.
    pub fn record(&self) -> TraceMeans {
        TraceMeans {
            mass: self.mass,
            gamma: self.gamma.clone(),
            real: estimate_record(self.real),
            imaginary: estimate_record(self.imaginary),
            disconnected: estimate_record(self.disconnected),
        }
    }
}

/// Returns the results as text, with one line for each trace.
pub fn text(all: &[TraceAnalysis]) -> String {
    let mut text = format!("{:<9} {:<7} {:<24} {:<24} disconnected\n", "mass", "Gamma", "Re tr Gamma M^-1 / V", "Im");
    for one in all {
        let [re, im, disconnected] = [one.real, one.imaginary, one.disconnected].map(estimate_text);
        let _ = writeln!(text, "{:<9} {:<7} {re:<24} {im:<24} {disconnected}", one.mass, one.gamma);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use ferrite_records::read::read;

    /// Noise vectors with z_c ± d on configuration c: pairs of different ones give the square of z_c without what d adds.
    #[test]
    fn squares_are_of_different_vectors() {
        let line = |z: f64| {
            let noise = [z - 0.5, z + 0.5, z - 0.5, z + 0.5].map(|re| [re, 2.0]).to_vec();
            TraceRecord { mass: 0.1, gamma: "1".into(), noise, mean: [z, 2.0], error: [0.0; 2] }
        };
        let measurement = |z: f64| {
            let object = serde_json::json!({ "file": "a", "lattice": [2, 2, 2, 4], "traces": [line(z)] });
            read::<TraceLine>(&object).unwrap()
        };
        let [_, im, square] = means(&line(3.0));
        // (16 z² − Σ (z ± d)²)/12 = z² − d²/3 for these four, whose deviations are not independent.
        assert!((square - (9.0 - 0.25 / 3.0)).abs() < 1e-12 && im == 2.0, "{square}");
        let all = [1.0, 3.0].map(measurement);
        let found = &traces(&all, &AnalysisChoice::with_bin(1))[0];
        assert_eq!(found.real.unwrap().value, 2.0);
        let expected = 32.0 * (5.0 - 0.25 / 3.0 - 4.0);
        assert!((found.disconnected.unwrap().value - expected).abs() < 1e-12);
        assert!(traces(&all[..1], &AnalysisChoice::with_bin(1))[0].disconnected.is_none());
    }
}
