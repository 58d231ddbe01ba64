//! Fits of correlators of `ferrite spectrum`.
use super::{
    AnalysisChoice, SHAPES, average_text, estimate_records, estimate_text, fit_record, name_of, p_text, quality_text,
    quantity, remarks, why_not,
};
use crate::records::correlators::{AXIAL_PION, CorrelatorRecord, Correlators, HadronChannel, hadrons};
use crate::text::count;
use ferrite_records::fit::{CorrelatorFitRecord, HadronFitRecord};
use statistics::effective::CorrelatorShape;
use statistics::fit::FitError;
use statistics::fit::correlator::{CorrelatorFit, fit_correlator};
use statistics::jackknife::JackknifeEstimate;

/// A correlator with its fit.
#[derive(Clone, Debug)]
pub struct HadronFit {
    /// Displayed name of the hadron or correlator.
    pub name: String,
    /// Form of the correlator's decay in time: cosh, sinh or exponential.
    pub shape: CorrelatorShape,
    /// Estimates of C(t), by time from the source.
    pub correlator: Vec<Option<JackknifeEstimate>>,
    /// Numbers of states that were tried.
    pub states: Vec<usize>,
    /// Fit of the correlator.
    pub fit: Result<CorrelatorFit, FitError>,
    /// Momentum in units of 2π/L, followed by equivalent momenta over which the correlator is averaged; empty if it is not known.
    pub momenta: Vec<[i32; 3]>,
}

/// Returns the channels of the known hadrons, or those with the given names, which may also be names of correlators.
///
/// # Errors
/// Names an unknown channel, and lists the channels that exist.
pub fn channels(first: &Correlators, names: &[String]) -> Result<Vec<HadronChannel>, String> {
    let there = |name: &str| first.mean(&[name]).is_some();
    let known = hadrons(first);
    if names.is_empty() {
        return Ok(known);
    }
    let one = |name: &String| {
        // Names of hadrons come first: `pion` is a correlator of staggered quarks, and its hadron has another name.
        if let Some(channel) = known.iter().find(|channel| channel.name == *name) {
            return Ok(channel.clone());
        }
        if there(name) {
            let shape = match name {
                name if name.contains("nucleon") => CorrelatorShape::Exponential,
                name if name.ends_with(AXIAL_PION) => CorrelatorShape::Sinh,
                _ => CorrelatorShape::Cosh,
            };
            return Ok(HadronChannel { name: name.clone(), parts: vec![name.clone()], shape });
        }
        let mut all: Vec<&str> = known.iter().map(|channel| channel.name.as_str()).collect();
        all.extend(first.all.iter().filter(|c| c.momentum == [0; 3]).map(|c| c.name.as_str()));
        Err(format!("'{name}' is none of {}", all.join(", ")))
    };
    names.iter().map(one).collect()
}

/// Fits the channels of all configurations at a momentum, using means over equivalent momenta.
///
/// # Errors
/// Names a channel without correlators at this momentum.
pub fn fits(
    record: &CorrelatorRecord,
    channels: &[HadronChannel],
    momentum: [i32; 3],
    choice: &AnalysisChoice,
) -> Result<Vec<HadronFit>, String> {
    let one = |channel: &HadronChannel| {
        let mut momenta = record.equivalent_momenta(&channel.parts, momentum);
        let samples: Option<Vec<Vec<f64>>> =
            record.all.iter().map(|found| found.mean_at(&channel.parts, &momenta)).collect();
        let samples = samples.ok_or_else(|| {
            let momentum = momentum.map(|k| k.to_string()).join(",");
            let why = "run ferrite spectrum with a larger value of momenta, or name another momentum";
            format!("the {} has no correlator with the momentum {momentum}: {why}", channel.name)
        })?;
        // The requested momentum comes first.
        momenta.sort_by_key(|other| *other != momentum);
        Ok(HadronFit { momenta, ..HadronFit::of(&channel.name, &samples, channel.shape, choice) })
    };
    channels.iter().map(one).collect()
}

impl HadronFit {
    /// Fits a correlator from its values on each configuration, by time.
    pub fn of(name: &str, samples: &[Vec<f64>], shape: CorrelatorShape, choice: &AnalysisChoice) -> Self {
        let (samples, shape) = (choice.binned(samples), choice.shape.unwrap_or(shape));
        let known = |mean: &[f64]| mean.iter().map(|c| Some(*c).filter(|c| c.is_finite())).collect();
        let correlator = choice.fits.resampling.estimate(&samples, known);
        let fit = fit_correlator(&samples, shape, &choice.fits);
        HadronFit { name: name.into(), shape, correlator, states: choice.fits.states.clone(), fit, momenta: Vec::new() }
    }
    /// Returns the name of the energy: `E` at rest, `E(1,0,0)` with a momentum.
    pub fn energy_name(&self) -> String {
        match self.momenta.first() {
            None | Some([0, 0, 0]) => "E".into(),
            Some(momentum) => format!("E({})", momentum.map(|k| k.to_string()).join(",")),
        }
    }
    /// Returns the record of the correlator and of the fit, or of the reason why there is no fit.
    pub fn record(&self) -> HadronFitRecord {
        let fit = self.fit.as_ref().ok().map(|CorrelatorFit { states, fit }| {
            let functions: Vec<(usize, String)> = self.states.iter().map(|n| (*n, count(*n, "state"))).collect();
            let excited = |name: &str| (states.count == 2).then(|| quantity(fit, name));
            CorrelatorFitRecord {
                states: states.count,
                extent: states.extent,
                energy: quantity(fit, "energy"),
                amplitude: quantity(fit, "amplitude"),
                excited_energy: excited("excited_energy"),
                excited_amplitude: excited("excited_amplitude"),
                fit: fit_record(fit, &|t| t, &functions),
            }
        });
        HadronFitRecord {
            hadron: self.name.clone(),
            form: name_of(&SHAPES, self.shape).into(),
            momentum: self.momenta.first().copied(),
            momenta: (!self.momenta.is_empty()).then(|| self.momenta.clone()),
            correlator: Some(estimate_records(&self.correlator)),
            why: self.fit.as_ref().err().map(why_not),
            fit,
        }
    }
    /// Returns a line of text on the fit, and a line on the mean over windows.
    pub fn text(&self) -> String {
        let CorrelatorFit { states, fit } = match &self.fit {
            Ok(fit) => fit,
            Err(error) => return format!("{:<15}no fit: {}\n", self.name, why_not(error)),
        };
        let [first, last] = fit.best.window;
        let mut text = format!(
            "{:<15}a {} = {}; {}, {}, t = {first} to {last}, {}\n",
            self.name,
            self.energy_name(),
            estimate_text(fit.quantities[0]),
            name_of(&SHAPES, self.shape),
            count(states.count, "state"),
            quality_text(fit),
        );
        if states.count == 2 {
            let (name, energy) = (self.energy_name(), estimate_text(fit.quantities[2]));
            text += &format!("{:<15}a {name} of the second state = {energy}\n", "");
        }
        if let Some(average) = average_text(fit, 0) {
            text += &format!("{:<15}{average}\n", "");
        }
        let functions: Vec<String> = self.states.iter().map(|n| count(*n, "state")).collect();
        for remark in remarks(fit, &functions) {
            text += &format!("{:<15}{remark}\n", "");
        }
        text
    }
    /// Returns a table of the windows that were tried, the most probable first.
    pub fn windows_text(&self) -> String {
        let Ok(CorrelatorFit { fit, .. }) = &self.fit else { return String::new() };
        let mut text = format!(
            "{:<15}{:>8}{:>8}{:>12}{:>14}{:>8}{:>13}\n",
            "", "states", "t", "a E", "chi2/dof", "p", "probability"
        );
        for one in fit.candidates.iter().take(6) {
            let parameters = &one.minimum.parameters;
            let (window, chi2) = (one.window.map(|t| t.to_string()).join("–"), one.minimum.chi2);
            text += &format!(
                "{:<15}{:>8}{window:>8}{:>12.6}{:>14}{:>8}{:>13}\n",
                "",
                parameters.len() / 2,
                parameters[1].abs(),
                format!("{chi2:.2}/{}", one.dof),
                p_text(one.quality.p_value).trim_start_matches("= "),
                if one.probability < 5e-5 { "< 0.0001".into() } else { format!("{:.4}", one.probability) },
            );
        }
        text
    }
}
