//! The static potential from Wilson loops.
//!
//! W(R, T) = A(R) e^{−V(R) T} at large T, and V(R) = V_0 − α/R + σ R (Eichten et al. 1978). Sommer's scale r₀ is the distance at which R²
//! dV/dR = 1.65 (Sommer 1994), r₁ that at which it is 1 (Bernard et al. 2000): r = √((c − α)/σ).
use super::correlator::{CorrelatorFit, CorrelatorSettings, States, sure};
use super::least_squares::{Data, Model};
use super::window::{Fit, FitError, FitFunction, FitSettings, UnknownGrowth, fit, nearest};
use crate::effective::CorrelatorShape;
use crate::jackknife::{JackknifeEstimate, MissingMeans, jackknife, pseudo_values};

/// Values of R² dV/dR that define r₀ and r₁.
pub const FORCES: [f64; 2] = [1.65, 1.0];

/// Cornell potential V(R) = V_0 − α/R + σ R, with the parameters V_0, α and σ.
pub struct Cornell;

impl Model for Cornell {
    fn count(&self) -> usize {
        3
    }
    fn value(&self, r: f64, p: &[f64], gradient: &mut [f64]) -> f64 {
        gradient.copy_from_slice(&[1.0, -1.0 / r, r]);
        p[0] - p[1] / r + p[2] * r
    }
}

impl FitFunction for Cornell {
    fn starts(&self, _: Data) -> Vec<Vec<f64>> {
        // For a linear function, any start leads to the minimum.
        vec![vec![0.0; 3]]
    }
    fn names(&self) -> &'static [&'static str] {
        &["r0", "r1", "string_tension", "coulomb", "constant"]
    }
    fn quantities(&self, p: &[f64]) -> Vec<Option<f64>> {
        let scale = |force: f64| Some(((force - p[1]) / p[2]).sqrt()).filter(|r| r.is_finite());
        vec![scale(FORCES[0]), scale(FORCES[1]), Some(p[2]), Some(p[1]), Some(p[0])]
    }
}

/// Wilson loops at one distance.
#[derive(Clone, Debug, PartialEq)]
pub struct LoopsAt {
    /// Distance |R|, in units of a.
    pub distance: f64,
    /// W(R, T) for T = 1, 2, …, for each sample.
    pub samples: Vec<Vec<f64>>,
}

/// Static potential at one distance: effective potential and fit.
#[derive(Clone, Debug, PartialEq)]
pub struct PotentialAt {
    /// Distance |R|, in units of a.
    pub distance: f64,
    /// Effective potential ln W(R, T)/W(R, T + 1), for T = 1, 2, ….
    pub effective: Vec<Option<JackknifeEstimate>>,
    /// Fit of an exponential to W(R, T), where index 0 stands for T = 1; its energy is V(R).
    pub fit: Result<CorrelatorFit, FitError>,
}

/// Reason why the fit of V(R) leaves out a distance.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum WithoutPotential {
    /// The Wilson loops at this distance cannot be fitted.
    #[error("{0}")]
    Fit(FitError),
    /// V(R) is missing for some means of the jackknife.
    #[error("{0}")]
    Missing(MissingMeans),
    /// The error of V(R) is unknown.
    #[error("{0}")]
    Growth(UnknownGrowth),
}

/// Static potential at all distances, and the fit of the Cornell form.
#[derive(Clone, Debug, PartialEq)]
pub struct Potential {
    /// Static potential at each distance.
    pub at: Vec<PotentialAt>,
    /// Indices of the entries of `at` that the fit uses, in order of distance.
    pub used: Vec<usize>,
    /// Indices of the entries of `at` that the fit leaves out, with the reason.
    pub left_out: Vec<(usize, WithoutPotential)>,
    /// Fit of the Cornell form to V(R).
    pub fit: Result<Fit, FitError>,
}

/// Computes the potential from loops sorted by distance. `settings` apply to the fits of V(R) in T. `distances` are the shortest and the
/// longest distance in the fit of the Cornell form; without them, the fit extends to the longest distance, and the information criterion
/// selects the shortest one.
pub fn potential(loops: &[LoopsAt], settings: &CorrelatorSettings, distances: Option<[f64; 2]>) -> Potential {
    let at: Vec<PotentialAt> = loops.iter().map(|one| potential_at(one, settings)).collect();
    let (mut used, mut columns, mut left_out) = (Vec::new(), Vec::new(), Vec::new());
    for (k, one) in at.iter().enumerate() {
        match values_of(one, &loops[k]) {
            Ok(values) => {
                used.push(k);
                columns.push(values);
            }
            Err(why) => left_out.push((k, why)),
        }
    }
    let samples: Vec<Vec<f64>> = (0..columns.iter().map(Vec::len).min().unwrap_or(0))
        .map(|n| columns.iter().map(|values: &Vec<f64>| values[n]).collect())
        .collect();
    let r: Vec<f64> = used.iter().map(|k| at[*k].distance).collect();
    let window = distances.map(|[shortest, longest]| {
        // Distances are square roots of integers; values that users enter are rounded, hence the tolerance.
        let first = r.iter().position(|r| *r >= shortest - 1e-3).unwrap_or(r.len());
        let end = r.iter().rposition(|r| *r <= longest + 1e-3).map_or(first, |k| k + 1);
        [first, end.max(first + 1) - 1]
    });
    let fewest = Cornell.count();
    let fit = match window {
        _ if samples.is_empty() => Err(match left_out.first() {
            Some((_, WithoutPotential::Fit(error))) => error.clone(),
            Some((_, WithoutPotential::Missing(missing))) => FitError::MissingMeans(*missing),
            _ => FitError::NoMinimum,
        }),
        Some([first, last]) if first >= r.len() || last + 1 - first <= fewest => {
            let data = if first >= r.len() { 0 } else { last + 1 - first };
            Err(FitError::FewData { data, parameters: fewest })
        }
        window => {
            let settings =
                FitSettings { window, to_end: true, covariance: settings.covariance, resampling: settings.resampling };
            fit(&[&Cornell], &r, &samples, 0..r.len(), &settings)
        }
    };
    Potential { at, used, left_out, fit }
}

fn potential_at(loops: &LoopsAt, settings: &CorrelatorSettings) -> PotentialAt {
    let LoopsAt { distance, samples } = loops;
    let times = samples.first().map_or(0, Vec::len);
    let equal = samples.iter().all(|sample| sample.len() == times);
    let effective = jackknife(if equal { samples } else { &[] }, |w| {
        w.windows(2).map(|pair| Some((pair[0] / pair[1]).ln()).filter(|v| v.is_finite())).collect()
    });
    let functions: Vec<States> = settings
        .states
        .iter()
        .map(|count| States { shape: CorrelatorShape::Exponential, extent: times, count: *count })
        .collect();
    let all: Vec<&dyn FitFunction> = functions.iter().map(|f| f as &dyn FitFunction).collect();
    let places: Vec<f64> = (1..=times).map(|t| t as f64).collect();
    let window = settings.window.map(|[first, last]| [first.max(1) - 1, last.clamp(1, times.max(1)) - 1]);
    let among = 0..if equal && times > 0 { sure(samples, 0..times) } else { 0 };
    let choice =
        FitSettings { window, to_end: false, covariance: settings.covariance, resampling: settings.resampling };
    let fit = fit(&all, &places, samples, among, &choice);
    let fit = fit.map(|fit| CorrelatorFit { states: functions[fit.best.function], fit });
    PotentialAt { distance: *distance, effective, fit }
}

/// Returns V(R) as samples whose mean has the error of the fit.
fn values_of(at: &PotentialAt, loops: &LoopsAt) -> Result<Vec<f64>, WithoutPotential> {
    let CorrelatorFit { states, fit } = at.fit.as_ref().map_err(|error| WithoutPotential::Fit(error.clone()))?;
    let [first, last] = fit.best.window;
    let part: Vec<Vec<f64>> = loops.samples.iter().map(|sample| sample[first..=last].to_vec()).collect();
    let x: Vec<f64> = (first..=last).map(|t| (t + 1) as f64).collect();
    let energy = |w: &[f64]| {
        let data = Data { x: &x, y: w, whitening: &fit.whitening };
        let parameters = nearest(states, data, &fit.best.minimum.parameters)?;
        states.quantities(&parameters)[0].map(|v| vec![v])
    };
    let pseudo = pseudo_values(&part, energy).map_err(WithoutPotential::Missing)?;
    if let Some(unknown) = fit.unknown_growth {
        return Err(WithoutPotential::Growth(unknown));
    }
    let missing = || WithoutPotential::Fit(FitError::NoMinimum);
    let plain = jackknife(&pseudo, |mean| vec![Some(mean[0])])[0].ok_or_else(missing)?;
    let growth = fit.quantities[0].ok_or_else(missing)?.error / plain.error;
    if !growth.is_finite() {
        return Err(missing());
    }
    Ok(pseudo.into_iter().map(|v| plain.value + growth * (v[0] - plain.value)).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use gpu_kernels::random::Philox;

    fn loops(distances: &[f64], p: [f64; 3], samples: u64, noise: f64, number: u64) -> Vec<LoopsAt> {
        let mut random = Philox::new(17, number, 2);
        let mut all: Vec<LoopsAt> = distances.iter().map(|r| LoopsAt { distance: *r, samples: Vec::new() }).collect();
        for _ in 0..samples {
            // Noise that all loops of a configuration share.
            let common = random.normal_pair();
            for one in &mut all {
                let v = Cornell.value(one.distance, &p, &mut [0.0; 3]) + noise * 0.3 * common[0];
                let amplitude = 0.9 * (1.0 + 0.3 * noise * common[1]);
                let value = |t: i32| amplitude * (-v * f64::from(t)).exp() * (1.0 + noise * random.normal_pair()[0]);
                one.samples.push((1..=6).map(value).collect());
            }
        }
        all
    }

    const DISTANCES: [f64; 8] = [1.0, std::f64::consts::SQRT_2, 2.0, 2.828_427_124_746_19, 3.0, 4.0, 5.0, 6.0];

    /// Checks α = 0.3, σ = 0.05: r₀ = √(1.35/0.05), r₁ = √(0.7/0.05). The noise is 10⁻⁹, and errors are of its size.
    #[test]
    fn potentials_are_found_again() {
        let all = loops(&DISTANCES, [0.6, 0.3, 0.05], 40, 1e-9, 1);
        for distances in [None, Some([1.414, 5.0])] {
            let found = potential(&all, &CorrelatorSettings::default(), distances);
            let fit = found.fit.unwrap();
            assert_eq!(fit.names[..3], ["r0", "r1", "string_tension"]);
            for (k, truth) in [27f64.sqrt(), 14f64.sqrt(), 0.05, 0.3, 0.6].into_iter().enumerate() {
                let value = fit.quantities[k].unwrap();
                assert!((value.value - truth).abs() < 1e-6 * truth && value.error < 1e-6, "{k}: {value:?}");
            }
            assert_eq!(found.used.len(), 8);
            assert!(if distances.is_some() { fit.best.window == [1, 6] } else { fit.best.window[1] == 7 });
            for (one, r) in found.at.iter().zip(DISTANCES) {
                let truth = Cornell.value(r, &[0.6, 0.3, 0.05], &mut [0.0; 3]);
                assert!((one.effective[2].unwrap().value - truth).abs() < 1e-7);
                assert!((one.fit.as_ref().unwrap().fit.quantities[0].unwrap().value - truth).abs() < 1e-7);
            }
        }
        let few = potential(&all, &CorrelatorSettings::default(), Some([4.0, 5.0]));
        assert_eq!(few.fit, Err(FitError::FewData { data: 2, parameters: 3 }));
        assert_eq!(potential(&[], &CorrelatorSettings::default(), None).fit, Err(FitError::NoMinimum));
    }

    /// Checks 68.3 % ± 4.7 % of 100 experiments, within 2.5 of these standard deviations.
    #[test]
    fn errors_cover_the_truth() {
        let settings = CorrelatorSettings { window: Some([1, 6]), ..Default::default() };
        let within = (0..100).filter(|number| {
            let all = loops(&DISTANCES, [0.6, 0.3, 0.05], 60, 0.01, *number);
            let r0 = potential(&all, &settings, Some([1.0, 6.0])).fit.unwrap().quantities[0].unwrap();
            (r0.value - 27f64.sqrt()).abs() < r0.error
        });
        let within = within.count();
        assert!((56..=80).contains(&within), "{within}");
    }
}
