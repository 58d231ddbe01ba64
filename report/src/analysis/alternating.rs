//! Effective masses of correlators in which a state alternates in sign from one time to the next, as in those of most staggered hadrons.
use super::{AnalysisChoice, estimate_records};
use crate::records::correlators::{Correlators, HadronChannel};
use ferrite_records::spectrum::AlternatingRecord;
use statistics::jackknife::JackknifeEstimate;

/// Effective masses of both states of a correlator in which one state alternates in sign.
#[derive(Clone, Debug)]
pub struct AlternatingMasses {
    /// Name of the correlator.
    pub name: String,
    /// Estimates of C(t), by time from the source.
    pub correlator: Vec<Option<JackknifeEstimate>>,
    /// Effective masses of the state that does not alternate, at the times 0 to T/2 − 1.
    pub masses: Vec<Option<JackknifeEstimate>>,
    /// Effective masses of the state that alternates in sign, at the times 0 to T/2 − 1.
    pub partner: Vec<Option<JackknifeEstimate>>,
}

/// Computes the energies E and E' of C(t) = f(t) + (−1)ᵗ g(t) from the six values C(t−2) to C(t+3), for t from 2 to T/2 − 1. f is a sum of
/// e^{±E t} and g a sum of e^{±E' t}, with any coefficients. Returns E and E' at the times 0 to T/2 − 1; a value is `None` for t below 2,
/// and if no such energy exists.
///
/// Let D C(t) = C(t+1) + C(t−1). Then D f = 2 cosh E f and D (−1)ᵗ g = −2 cosh E' (−1)ᵗ g, so that D² C = s D C − p C. This equation at t
/// and at t + 1 gives s and p, the sum and the product of the two factors.
pub fn alternating_masses(correlator: &[f64]) -> [Vec<Option<f64>>; 2] {
    let half = correlator.len() / 2;
    let one = |t: usize| -> [Option<f64>; 2] {
        let Some(c) = t.checked_sub(2).and_then(|from| correlator.get(from..t + 4)) else { return [None; 2] };
        let (c0, c1) = (c[2], c[3]);
        let (d0, d1) = (c[1] + c[3], c[2] + c[4]);
        let (e0, e1) = (c[0] + 2.0 * c[2] + c[4], c[1] + 2.0 * c[3] + c[5]);
        let determinant = c0 * d1 - c1 * d0;
        let (sum, product) = ((c0 * e1 - c1 * e0) / determinant, (d0 * e1 - d1 * e0) / determinant);
        let root = (0.25 * sum * sum - product).sqrt();
        // `acosh` gives NaN for arguments below 1. This also discards massless states whose argument is rounded to less than 1.
        let energy = |x: f64| (0.5 * x).acosh();
        [0.5 * sum + root, root - 0.5 * sum].map(|x| Some(energy(x)).filter(|m| m.is_finite()))
    };
    let all: Vec<[Option<f64>; 2]> = (0..half).map(one).collect();
    [0, 1].map(|which| all.iter().map(|both| both[which]).collect())
}

impl AlternatingMasses {
    /// Computes the effective masses of both states from the mean of the channel's correlators. Averages C(t) and C(T−t) of mesons. Returns
    /// `None` if a correlator is missing.
    pub fn of(channel: &HadronChannel, all: &[Correlators], choice: &AnalysisChoice) -> Option<Self> {
        let samples: Vec<Vec<f64>> = all.iter().map(|found| found.mean(&channel.parts)).collect::<Option<_>>()?;
        let is_meson = !channel.name.ends_with("nucleon");
        let fold = |c: &Vec<f64>| match is_meson {
            true => (0..c.len()).map(|t| 0.5 * (c[t] + c[(c.len() - t) % c.len()])).collect(),
            false => c.clone(),
        };
        let samples: Vec<Vec<f64>> = choice.binned(&samples).iter().map(fold).collect();
        let resampling = choice.fits.resampling;
        let known = |mean: &[f64]| mean.iter().map(|c| Some(*c).filter(|c| c.is_finite())).collect();
        let correlator = resampling.estimate(&samples, known);
        let both = resampling.estimate(&samples, |mean| alternating_masses(mean).concat());
        let (masses, partner) = both.split_at(both.len() / 2);
        let name = channel.name.clone();
        Some(AlternatingMasses { name, correlator, masses: masses.to_vec(), partner: partner.to_vec() })
    }
    /// Returns the JSON record of the correlator and of the masses of both states.
    pub fn record(&self) -> AlternatingRecord {
        AlternatingRecord {
            hadron: self.name.clone(),
            correlator: estimate_records(&self.correlator),
            masses: estimate_records(&self.masses),
            partner: estimate_records(&self.partner),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Both energies are found exactly, of correlators that are even under t → T − t, and of odd ones.
    #[test]
    fn both_parities_are_found() {
        let extent = 16;
        for (energy, partner) in [(0.4, 0.9), (1.1, 0.6), (0.2, 0.25)] {
            for sign in [1.0, -1.0] {
                let c = |t: usize| {
                    let (near, far) = (t as f64, (extent - t) as f64);
                    let wave = |m: f64| (-m * near).exp() + sign * (-m * far).exp();
                    let parity = if t.is_multiple_of(2) { 1.0 } else { -1.0 };
                    wave(energy) - 0.7 * parity * wave(partner)
                };
                let correlator: Vec<f64> = (0..extent).map(c).collect();
                let [masses, partners] = alternating_masses(&correlator);
                assert_eq!((masses.len(), partners.len()), (8, 8));
                assert!(masses[..2].iter().chain(&partners[..2]).all(Option::is_none));
                // Odd functions vanish at T/2, which gives no information.
                for t in 2..if sign > 0.0 { 8 } else { 7 } {
                    let [m, p] = [masses[t], partners[t]].map(|m| m.unwrap_or_else(|| panic!("{energy} {sign} {t}")));
                    // Values near 1e-3 with rounding of 1e-16, and cosh m − 1 of 0.02 at least: 1e-11, with room.
                    assert!((m - energy).abs() < 1e-9 && (p - partner).abs() < 1e-9, "{energy} {sign} {t}: {m} {p}");
                }
            }
        }
        // Noise that no energy gives.
        let [masses, partners] = alternating_masses(&[1.0, 0.0, 2.0, 0.0, 3.0, 0.0, 0.0, 1.0]);
        assert!(masses.iter().chain(&partners).all(|m| m.is_none_or(f64::is_finite)));
        assert!(alternating_masses(&[1.0, 2.0]).iter().flatten().all(Option::is_none));
    }
}
