//! Fits of correlators of `ferrite spectrum`.
use super::{
    AnalysisChoice, SHAPES, average_text, estimate_records, estimate_text, fit_record, name_of, p_text, quality_text,
    quantity, remarks, why_not,
};
use crate::records::correlators::{AXIAL_PION, CorrelatorRecord, Correlators, HadronChannel, hadrons, pcac_channels};
use crate::text::count;
use ferrite_records::fit::{CorrelatorFitRecord, HadronFitRecord};
use statistics::effective::CorrelatorShape;
use statistics::fit::FitError;
use statistics::fit::correlator::{CorrelatorFit, fit_correlator};
use statistics::jackknife::JackknifeEstimate;

/// A hadron's correlator with its fit.
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
    /// Result of the fit, or the reason why there is none.
    pub fit: Result<CorrelatorFit, FitError>,
    /// Momentum of the correlator in units of 2π/L, followed by equivalent momenta that are averaged with it; empty if it is unknown.
    pub momenta: Vec<[i32; 3]>,
}

/// Returns the channels whose names are in `names`; if `names` is empty, those of all known hadrons. A name is that of a hadron or of a
/// correlator.
///
/// # Errors
/// A sentence that names an unknown channel and lists the channels that exist.
pub fn channels(first: &Correlators, names: &[String]) -> Result<Vec<HadronChannel>, String> {
    let there = |name: &str| first.mean(&[name]).is_some();
    let known = hadrons(first);
    if names.is_empty() {
        return Ok(known);
    }
    let one = |name: &String| {
        // Names of hadrons take precedence over names of correlators. A staggered correlator is also called `pion`, but that is not the
        // name of a hadron.
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
        let pcac = pcac_channels(first);
        let mut all: Vec<&str> = known.iter().map(|channel| channel.name.as_str()).collect();
        all.extend(pcac.iter().map(|channel| channel.name.as_str()));
        all.extend(first.all.iter().filter(|c| c.momentum == [0; 3]).map(|c| c.name.as_str()));
        Err(format!("'{name}' is none of {}", all.join(", ")))
    };
    names.iter().map(one).collect()
}

/// Fits the channels of all configurations at `momentum`, averaged over equivalent momenta.
///
/// # Errors
/// A sentence that names a channel without correlators at this momentum.
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
        // Moves the requested momentum to the front.
        momenta.sort_by_key(|other| *other != momentum);
        Ok(HadronFit { momenta, ..HadronFit::of(&channel.name, &samples, channel.shape, choice) })
    };
    channels.iter().map(one).collect()
}

impl HadronFit {
    /// Fits a correlator. Each element of `samples` has the values of the correlator on one configuration, by time.
    pub fn of(name: &str, samples: &[Vec<f64>], shape: CorrelatorShape, choice: &AnalysisChoice) -> Self {
        let (samples, shape) = (choice.binned(samples), choice.shape.unwrap_or(shape));
        let known = |mean: &[f64]| mean.iter().map(|c| Some(*c).filter(|c| c.is_finite())).collect();
        let correlator = choice.fits.resampling.estimate(&samples, known);
        let fit = fit_correlator(&samples, shape, &choice.fits);
        HadronFit { name: name.into(), shape, correlator, states: choice.fits.states.clone(), fit, momenta: Vec::new() }
    }
    /// Returns the name of the fitted energy: `E` at rest, `E(1,0,0)` with a momentum.
    pub fn energy_name(&self) -> String {
        match self.momenta.first() {
            None | Some([0, 0, 0]) => "E".into(),
            Some(momentum) => format!("E({})", momentum.map(|k| k.to_string()).join(",")),
        }
    }
    /// Returns the JSON record of the correlator, and of the fit or the reason why there is none.
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
    /// Returns text on the fit: a line on the best window, and a line on the mean over windows.
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
    /// Returns a table of the windows that were tried, ordered by probability from the highest.
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
