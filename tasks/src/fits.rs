//! Fits of correlators, and effective masses with errors, from arrays `[configuration, time]`.
use crate::{Failure, Outcome, text};
use ferrite_records::fit::CountedFit;
use ferrite_report::analysis::hadrons::HadronFit;
use ferrite_report::analysis::{AnalysisChoice, COVARIANCES, SHAPES, why_not};
use ferrite_report::page::correlator_svg;
use serde::Deserialize;
use statistics::effective::{CorrelatorShape, effective_masses};
use statistics::fit::correlator::CorrelatorSettings;
use statistics::jackknife::{Resampling, bins};

/// Method of error estimation: number of configurations in a bin, and bootstrap or jackknife.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
pub struct ErrorRequest {
    /// Number of configurations in a bin.
    pub bin: usize,
    /// Number of bootstrap samples; `None` for the jackknife.
    pub bootstrap: Option<usize>,
    /// Seed of the bootstrap samples.
    pub seed: u64,
}

/// Request for the fit of a correlator.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct FitRequest {
    /// Name of the correlator's form in time: `cosh`, `sinh` or `exp`.
    pub form: String,
    /// Name of the correlator, for the record and the plot.
    pub name: String,
    /// Size of the bins, and method of resampling.
    #[serde(flatten)]
    pub errors: ErrorRequest,
    /// First and last time of the fit window; `None` to average over windows.
    pub window: Option<Vec<usize>>,
    /// Numbers of states to fit: 1, 2 or both.
    pub states: Vec<usize>,
    /// Name of the type of covariance matrix; `None` for the default.
    pub covariance: Option<String>,
}

impl FitRequest {
    /// Fits a correlator. Returns the record and a plot as SVG.
    ///
    /// # Errors
    /// Settings and correlators that make no sense, and no fit.
    pub fn fit(&self, correlators: &[Vec<f64>]) -> Outcome<(CountedFit, String)> {
        let shape = named("form", &self.form, &SHAPES)?;
        let samples = self.errors.samples(correlators)?;
        let window = self.window.as_deref().map(|given| window(given, shape, samples[0].len())).transpose()?;
        let mut states = self.states.clone();
        states.sort_unstable();
        states.dedup();
        if states.is_empty() || states.iter().any(|count| ![1, 2].contains(count)) {
            return Err(Failure::refused(format!("states = {}: expected 1, 2, or [1, 2]", list(&self.states))));
        }
        let covariance = self.covariance.as_ref().map(|name| named("covariance", name, &COVARIANCES)).transpose()?;
        let fits = CorrelatorSettings { window, states, covariance, resampling: self.errors.resampling()? };
        // The samples are bins already, so the analysis must not bin them again.
        let choice = AnalysisChoice { fits, shape: Some(shape), ..AnalysisChoice::with_bin(1) };
        let found = HadronFit::of(&self.name, &samples, shape, &choice);
        if let Err(error) = &found.fit {
            return Err(Failure::refused(format!("the fit of the {} failed: {}", self.name, why_not(error))));
        }
        let svg = correlator_svg(&found)?;
        Ok((CountedFit { fit: found.record(), configurations: correlators.len(), bins: samples.len() }, svg))
    }
}

impl ErrorRequest {
    /// Returns the effective masses of the mean correlator from each time to the next, each as `[value, error]`; NaN where there is none.
    ///
    /// # Errors
    /// Settings and correlators that make no sense.
    pub fn effective_masses(&self, correlators: &[Vec<f64>], form: &str) -> Outcome<Vec<[f64; 2]>> {
        let (shape, samples) = (named("form", form, &SHAPES)?, self.samples(correlators)?);
        let found = self.resampling()?.estimate(&samples, |mean| effective_masses(mean, shape));
        Ok(found.into_iter().map(|one| one.map_or([f64::NAN; 2], |one| [one.value, one.error])).collect())
    }
    /// Returns the bins of the correlators. Fails unless these have the same length and finite values.
    fn samples(&self, given: &[Vec<f64>]) -> Outcome<Vec<Vec<f64>>> {
        let times = given.first().map_or(0, Vec::len);
        if times < 2 || given.iter().any(|one| one.len() != times) {
            return Err(Failure::refused(
                "the correlators are not an array [configuration, time] with at least two times",
            ));
        }
        if let Some(wrong) = given.iter().position(|one| one.iter().any(|c| !c.is_finite())) {
            return Err(Failure::refused(format!(
                "configuration {wrong}, counted from 0, has a number that is not finite: remove the configuration"
            )));
        }
        let (bin, most) = (self.bin, given.len());
        if !(1..=most).contains(&bin) {
            let why = format!("bin = {bin}: expected 1 to {most}, the number of configurations");
            return Err(Failure::refused(why));
        }
        Ok(bins(given, bin))
    }
    fn resampling(&self) -> Outcome<Resampling> {
        match self.bootstrap {
            None => Ok(Resampling::Jackknife),
            Some(draws) if (10..=100_000).contains(&draws) => Ok(Resampling::Bootstrap { draws, seed: self.seed }),
            Some(draws) => Err(Failure::refused(format!("bootstrap = {draws}: expected 10 to 100000 draws"))),
        }
    }
}

/// Returns the effective masses of a real correlator, from each time to the next; NaN where there is none.
///
/// # Errors
/// An unknown shape, and fewer than two times.
pub fn masses_of(correlator: &[f64], form: &str) -> Outcome<Vec<f64>> {
    let shape = named("form", form, &SHAPES)?;
    if correlator.len() < 2 {
        let times = text::count(correlator.len(), "time");
        let why = format!("the correlator has {times}, but effective masses need at least two");
        return Err(Failure::refused(why));
    }
    Ok(effective_masses(correlator, shape).into_iter().map(|mass| mass.unwrap_or(f64::NAN)).collect())
}

/// Returns the first and last time of a window. Fails if they are out of order or beyond the range of the form.
fn window(given: &[usize], shape: CorrelatorShape, times: usize) -> Outcome<[usize; 2]> {
    let last = if shape == CorrelatorShape::Exponential { times - 1 } else { times / 2 };
    let found = <[usize; 2]>::try_from(given).ok().filter(|[first, end]| first <= end && *end <= last);
    let why =
        || format!("window = {}: expected the first and the last time, in this order, from 0 to {last}", list(given));
    found.ok_or_else(|| Failure::refused(why()))
}

fn named<T: Copy>(what: &str, name: &str, all: &[(&str, T)]) -> Outcome<T> {
    let found = all.iter().find(|(known, _)| *known == name).map(|(_, value)| *value);
    let names: Vec<_> = all.iter().map(|(name, _)| format!("'{name}'")).collect();
    found.ok_or_else(|| Failure::refused(format!("{what} = '{name}': expected {}", names.join(", "))))
}

/// Returns numbers as a JSON array, such as `[1,2]`.
fn list(numbers: &[usize]) -> String {
    let numbers: Vec<String> = numbers.iter().map(usize::to_string).collect();
    format!("[{}]", numbers.join(","))
}

#[cfg(test)]
mod tests {
    use super::*;

    const ERRORS: ErrorRequest = ErrorRequest { bin: 1, bootstrap: None, seed: 0 };

    /// Configurations of C(t) = A e^{-mt} with amplitudes around 1, whose effective mass is m on each of them.
    fn correlators(mass: f64) -> Vec<Vec<f64>> {
        let one = |k: u32| (0..8).map(|t| (1.0 + 0.01 * f64::from(k % 3)) * (-mass * f64::from(t)).exp()).collect();
        (0..6).map(one).collect()
    }

    #[test]
    fn an_exponential_has_its_mass_at_all_times() {
        let found = ERRORS.effective_masses(&correlators(0.4), "exp").unwrap();
        assert_eq!(found.len(), masses_of(&correlators(0.4)[0], "exp").unwrap().len());
        for [mass, error] in found.iter().filter(|[mass, _]| mass.is_finite()) {
            assert!((mass - 0.4).abs() < 1e-12 && *error < 1e-12, "{mass} {error}");
        }
        assert!(found[..7].iter().all(|[mass, _]| mass.is_finite()));
    }

    #[test]
    fn mistakes_are_named() {
        let of =
            |request: ErrorRequest, given: &[Vec<f64>]| request.effective_masses(given, "exp").unwrap_err().message;
        let all = correlators(0.4);
        assert_eq!(
            of(ErrorRequest { bin: 7, ..ERRORS }, &all),
            "bin = 7: expected 1 to 6, the number of configurations"
        );
        let few = ErrorRequest { bootstrap: Some(9), ..ERRORS };
        assert_eq!(of(few, &all), "bootstrap = 9: expected 10 to 100000 draws");
        assert!(of(ERRORS, &all[..0]).contains("at least two times"));
        assert!(masses_of(&all[0], "linear").unwrap_err().message.starts_with("form = 'linear': expected 'cosh'"));
    }
}
