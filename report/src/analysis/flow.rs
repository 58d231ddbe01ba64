//! Scales t₀ and w₀ and the topological charge from the gradient flow of many configurations.
use super::{AnalysisChoice, estimate_record, estimate_text};
use crate::text::number;
use ferrite_records::fit::{FlowFit, FlowMean};
use ferrite_records::measure::MeasurementLine;
use statistics::jackknife::JackknifeEstimate;
use statistics::scale;

/// Value that defines the scales of the flow: that of t² E at t₀, and that of t d/dt t² E at w₀².
pub const LEVEL: f64 = 0.3;

/// Analysis of the gradient flow of many configurations.
#[derive(Clone, Debug)]
pub struct FlowAnalysis {
    /// Flow times t in units of a².
    pub times: Vec<f64>,
    /// Estimates of ⟨t² E⟩ at each flow time.
    pub scaled: Vec<Option<JackknifeEstimate>>,
    /// Scale t₀, the flow time at which ⟨t² E⟩ is 0.3, in units of a².
    pub t0: Option<JackknifeEstimate>,
    /// Scale w₀ in units of a: √t of the flow time t at which t d/dt ⟨t² E⟩ is 0.3.
    pub w0: Option<JackknifeEstimate>,
    /// Estimate of ⟨Q²⟩ at the last flow time.
    pub charge_squared: Option<JackknifeEstimate>,
    /// Integrated autocorrelation time of t² E at the flow time nearest to t₀, or at the last one if t₀ is unknown, in configurations.
    pub autocorrelation: f64,
    /// Topological charge Q of each configuration at the last flow time.
    pub charges: Vec<f64>,
}

impl FlowAnalysis {
    /// Analyses configurations whose flows have the same times; returns `None` if they have no flow.
    pub fn of(all: &[MeasurementLine], choice: &AnalysisChoice) -> Option<Self> {
        let times: Vec<f64> = all.first()?.flow.iter().map(|point| point.t).collect();
        if times.len() < 2 {
            return None;
        }
        let scaled = |one: &MeasurementLine| one.flow.iter().map(|p| p.t * p.t * p.energy.sum()).collect::<Vec<f64>>();
        let charges: Vec<f64> = all.iter().filter_map(|one| Some(one.flow.last()?.charge)).collect();
        // Q² and t² E are resampled together, so that both use the same random draws.
        let samples = all.iter().zip(&charges).map(|(one, q)| [scaled(one), vec![q * q]].concat());
        let samples = choice.binned(&samples.collect::<Vec<_>>());
        let count = times.len();
        let found = choice.fits.resampling.estimate(&samples, |mean| {
            let points: Vec<(f64, f64)> = times.iter().copied().zip(mean[..count].iter().copied()).collect();
            let mut all = vec![scale::t0(&points, LEVEL), scale::w0(&points, LEVEL)];
            all.extend(mean.iter().map(|x| Some(*x).filter(|x| x.is_finite())));
            all
        });
        let next = found[0].map_or(count - 1, |t0| {
            let far = |k: &usize| (times[*k] - t0.value).abs();
            (0..count).min_by(|a, b| far(a).total_cmp(&far(b))).unwrap_or(count - 1)
        });
        let series: Vec<f64> = all.iter().map(|one| scaled(one)[next]).collect();
        Some(FlowAnalysis {
            autocorrelation: choice.average(&series).autocorrelation,
            t0: found[0],
            w0: found[1],
            scaled: found[2..2 + count].to_vec(),
            charge_squared: found[2 + count],
            times,
            charges,
        })
    }
    /// Returns the JSON record of the scales, the charge and the flow.
    pub fn record(&self) -> FlowFit {
        let point = |(t, scaled): (&f64, &Option<JackknifeEstimate>)| FlowMean {
            t: *t,
            scaled_energy: estimate_record(*scaled),
        };
        let root = |t0: JackknifeEstimate| {
            let value = (8.0 * t0.value).sqrt();
            JackknifeEstimate { value, error: 4.0 * t0.error / value, ..t0 }
        };
        FlowFit {
            t0: estimate_record(self.t0),
            sqrt_8_t0: estimate_record(self.t0.map(root)),
            w0: estimate_record(self.w0),
            charge_squared: estimate_record(self.charge_squared),
            autocorrelation: self.autocorrelation,
            points: self.times.iter().zip(&self.scaled).map(point).collect(),
        }
    }
    /// Returns the results as text, with one line for each quantity.
    pub fn text(&self) -> String {
        let last = number(self.times.last().copied().unwrap_or_default());
        let reached = |scale: Option<JackknifeEstimate>, unit: &str| match scale {
            Some(_) => format!("{} {unit}", estimate_text(scale)),
            None => format!("not reached by t = {last}"),
        };
        let tau = match self.autocorrelation.is_finite() {
            true => format!("{:.1} configurations, of t^2 E at t0", self.autocorrelation),
            false => "unknown with one configuration".into(),
        };
        format!(
            "t0             {}\nw0             {}\n<Q^2>          {} at t = {last}\ntau            {tau}\n",
            reached(self.t0, "a^2"),
            reached(self.w0, "a"),
            estimate_text(self.charge_squared),
        )
    }
}
