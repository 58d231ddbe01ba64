//! Quark mass from the partially conserved axial current.
//!
//! With A(x) = ψ̄₂ γ_t γ_5 ψ₁ and P = ψ̄₂ γ_5 ψ₁, summed over space, and P†(0) at the source,
//!
//! m(t) = [½ (∂_t + ∂*_t) C_A(t) + c_A ∂*_t ∂_t C_P(t)] / (2 C_P(t)),  C_A = ⟨A P†⟩, C_P = ⟨P P†⟩,
//!
//! with ∂_t f(t) = f(t+1) − f(t) and ∂*_t f(t) = f(t) − f(t−1) (Lüscher et al., hep-lat/9609035). It is the mean of the two quarks' bare
//! masses, without Z_A/Z_P. C_A is odd and C_P even under t → T − t, and both are averaged over t and T − t.
use crate::effective::CorrelatorShape;
use crate::fit::correlator::{CorrelatorSettings, folded, usable};
use crate::fit::least_squares::{Data, Model};
use crate::fit::window::{Fit, FitError, FitFunction, FitSettings, fit};
use crate::jackknife::{bins, pseudo_values};

/// Computes m(t) at the times 0 to T/2 with the coefficient c_A = `improvement`. `axial` is the correlator of `-ψ̄₂ γ_t γ_5 ψ₁` = ψ̄₂ γ_x
/// γ_y γ_z ψ₁ and `pion` that of the pion, each at times 0 to T − 1. A value is `None` at time 0, where source and sink coincide, and if
/// m is not finite.
///
/// # Panics
/// Panics if the correlators have different lengths.
pub fn pcac_masses(axial: &[f64], pion: &[f64], improvement: f64) -> Vec<Option<f64>> {
    let extent = axial.len();
    assert_eq!(extent, pion.len(), "both correlators have all times");
    let fold = |c: &[f64], shape| folded(&[c.to_vec()], shape).swap_remove(0);
    let (axial, pion) = (fold(axial, CorrelatorShape::Sinh), fold(pion, CorrelatorShape::Cosh));
    // The derivatives need values at times up to T/2 + 1.
    let at = |c: &[f64], t: usize, sign: f64| if t < c.len() { c[t] } else { sign * c[extent - t] };
    let one = |t: usize| {
        if t == 0 {
            return None;
        }
        let slope = -0.5 * (at(&axial, t + 1, -1.0) - axial[t - 1]);
        let curvature = at(&pion, t + 1, 1.0) - 2.0 * pion[t] + pion[t - 1];
        Some((slope + improvement * curvature) / (2.0 * pion[t])).filter(|m| m.is_finite())
    };
    (0..pion.len()).map(one).collect()
}

/// Fit function that is constant in time, with one parameter.
struct Plateau;

impl Model for Plateau {
    fn count(&self) -> usize {
        1
    }
    fn value(&self, _: f64, p: &[f64], gradient: &mut [f64]) -> f64 {
        gradient[0] = 1.0;
        p[0]
    }
}

impl FitFunction for Plateau {
    fn starts(&self, _: Data) -> Vec<Vec<f64>> {
        // For a linear function, any start leads to the minimum.
        vec![vec![0.0]]
    }
    fn names(&self) -> &'static [&'static str] {
        &["mass"]
    }
    fn quantities(&self, p: &[f64]) -> Vec<Option<f64>> {
        vec![Some(p[0])]
    }
}

/// Fits a constant to m(t). Each sample contains both correlators, concatenated as `[axial, pion]` in the form that [`pcac_masses`]
/// takes. Times from 1 to T/2 are used as long as the error of the pion is at most half its value. Pseudo-values of the jackknife, whose
/// mean has the correct error, represent m(t).
///
/// # Errors
/// Returns [`FitError`] if no fit is possible.
pub fn fit_pcac(samples: &[Vec<f64>], improvement: f64, settings: &CorrelatorSettings) -> Result<Fit, FitError> {
    let few = FitError::FewSamples { found: samples.len() };
    let length = samples.first().map_or(0, Vec::len);
    if let Some((sample, found)) = samples.iter().map(Vec::len).enumerate().find(|(_, found)| *found != length) {
        return Err(FitError::UnequalSamples { sample, found, expected: length });
    }
    let extent = length / 2;
    if !length.is_multiple_of(2) {
        return Err(FitError::UnequalSamples { sample: 0, found: length, expected: 2 * extent });
    }
    let pion: Vec<Vec<f64>> = samples.iter().map(|sample| sample[extent..].to_vec()).collect();
    if pion.len() < 2 || extent == 0 {
        return Err(few);
    }
    let among = usable(&folded(&pion, CorrelatorShape::Cosh), CorrelatorShape::Cosh, extent);
    let masses = |mean: &[f64]| -> Option<Vec<f64>> {
        let all = pcac_masses(&mean[..extent], &mean[extent..], improvement);
        // m(0) does not exist; its place is filled with 0, which is not used.
        std::iter::once(Some(0.0)).chain(all.into_iter().skip(1)).collect()
    };
    let values = pseudo_values(samples, masses).map_err(FitError::MissingMeans)?;
    let times: Vec<f64> = (0..values[0].len()).map(|t| t as f64).collect();
    let CorrelatorSettings { window, covariance, resampling, .. } = *settings;
    let window = window.map(|[first, last]| [first.max(1), last.min(times.len() - 1)]);
    fit(&[&Plateau], &times, &values, among, &FitSettings { window, to_end: false, covariance, resampling })
}

/// Concatenates both correlators of each configuration, and averages over bins of `bin` configurations.
pub fn pcac_samples(axial: &[Vec<f64>], pion: &[Vec<f64>], bin: usize) -> Vec<Vec<f64>> {
    let both: Vec<Vec<f64>> = axial.iter().zip(pion).map(|(axial, pion)| [&axial[..], pion].concat()).collect();
    bins(&both, bin)
}

#[cfg(test)]
mod tests {
    use super::*;
    use gpu_kernels::random::Philox;

    /// Checks a state of energy E with C_A = −f sinh and C_P = cosh, which has m = f sinh(E)/2 + c_A (cosh(E) − 1) at all times, for even
    /// and odd T.
    #[test]
    fn one_state_has_one_mass() {
        for extent in [7usize, 16] {
            let from_middle = |t: usize| 0.4 * (0.5 * extent as f64 - t as f64);
            let axial: Vec<f64> = (0..extent).map(|t| if t == 0 { 9.0 } else { 0.3 * from_middle(t).sinh() }).collect();
            let pion: Vec<f64> = (0..extent).map(|t| from_middle(t).cosh()).collect();
            for improvement in [0.0, -0.08] {
                let expected = 0.5 * 0.3 * 0.4f64.sinh() + improvement * (0.4f64.cosh() - 1.0);
                let found = pcac_masses(&axial, &pion, improvement);
                assert_eq!((found.len(), found[0]), (extent / 2 + 1, None));
                // The contact term at 0 enters m(1).
                for m in &found[2..] {
                    assert!((m.unwrap() - expected).abs() < 1e-14, "{extent} {improvement}: {found:?}");
                }
            }
        }
    }

    /// Checks 200 experiments with noise that both correlators share: the truth is within one error in 68.3 %, ± 3.3 %, within three of
    /// these.
    #[test]
    fn errors_cover_the_truth() {
        let truth = 0.5 * 0.3 * 0.4f64.sinh();
        let mut within = 0;
        for number in 0..200 {
            let mut random = Philox::new(21, number, 3);
            let mut one = || {
                let common = 1.0 + 0.1 * random.normal_pair()[0];
                let mut of = |f: &dyn Fn(f64) -> f64| -> Vec<f64> {
                    (0..16)
                        .map(|t| common * f(0.4 * (8.0 - f64::from(t))) * (1.0 + 0.02 * random.normal_pair()[0]))
                        .collect()
                };
                [of(&|x| 0.3 * x.sinh()), of(&|x| x.cosh())]
            };
            let (axial, pion): (Vec<_>, Vec<_>) = (0..60).map(|_| one()).map(|[a, p]| (a, p)).unzip();
            let samples = pcac_samples(&axial, &pion, 1);
            let settings = CorrelatorSettings { window: Some([2, 8]), ..Default::default() };
            let mass = fit_pcac(&samples, 0.0, &settings).unwrap().quantities[0].unwrap();
            within += u32::from((mass.value - truth).abs() < mass.error);
        }
        assert!((117..157).contains(&within), "{within} of 200");
        let short = fit_pcac(&[vec![1.0; 32]], 0.0, &CorrelatorSettings::default());
        assert_eq!(short, Err(FitError::FewSamples { found: 1 }));
    }
}
