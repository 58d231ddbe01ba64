//! Effective masses of correlators.

/// Time dependence of a correlator, which determines its effective mass.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CorrelatorShape {
    /// cosh m (T/2 − t), symmetric under t → T − t.
    Cosh,
    /// sinh m (T/2 − t), antisymmetric under t → T − t.
    Sinh,
    /// exp(−m t), without a backward-running part.
    Exponential,
}

/// Computes the effective mass m between t and t + 1 for each t, from C(t)/C(t+1); an entry is `None` if no m gives this ratio. The
/// number of masses is T/2 with [`CorrelatorShape::Cosh`] and [`CorrelatorShape::Sinh`], and T − 1 otherwise.
pub fn effective_masses(correlator: &[f64], shape: CorrelatorShape) -> Vec<Option<f64>> {
    let extent = correlator.len();
    let last = if shape == CorrelatorShape::Exponential { extent.saturating_sub(1) } else { extent / 2 };
    let one = |t: usize| {
        let ratio = correlator[t] / correlator[t + 1];
        match shape {
            CorrelatorShape::Exponential => Some(ratio.ln()).filter(|m| m.is_finite()),
            CorrelatorShape::Cosh => mass_of_ratio(ratio, 0.5 * extent as f64 - t as f64, 1.0),
            CorrelatorShape::Sinh => mass_of_ratio(ratio, 0.5 * extent as f64 - t as f64, -1.0),
        }
    };
    (0..last).map(one).collect()
}

/// Solves cosh(m d) / cosh(m (d − 1)) = `ratio` for m if `sign` is 1, and the same equation with sinh if it is −1. For d ≥ ½ the ratio of
/// cosh grows with m from 1 on (for d = ½ it is always 1). For d > 1 the ratio of sinh grows from d/(d − 1) on.
fn mass_of_ratio(ratio: f64, distance: f64, sign: f64) -> Option<f64> {
    // The exponential growth is factored out: cosh(m d) = e^{m d} (1 + e^{−2 m d}) / 2. For sinh, `exp_m1` computes
    // 1 − e^{−2 x} without loss of digits.
    let rest = |x: f64| if sign > 0.0 { 1.0 + (-2.0 * x).exp() } else { -(-2.0 * x).exp_m1() };
    let of = |m: f64| {
        let (a, b) = ((m * distance).abs(), (m * (distance - 1.0)).abs());
        (a - b).exp() * rest(a) / rest(b)
    };
    let least = if sign > 0.0 { 1.0 } else { distance / (distance - 1.0) };
    if !ratio.is_finite() || ratio < least || (sign < 0.0 && distance <= 1.0) {
        return None;
    }
    let (mut low, mut high) = (0.0, 1.0);
    while of(high) < ratio {
        high *= 2.0;
        if high > 1e3 {
            return None;
        }
    }
    for _ in 0..100 {
        let middle = 0.5 * (low + high);
        if of(middle) < ratio {
            low = middle;
        } else {
            high = middle;
        }
    }
    Some(0.5 * (low + high))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn masses_of_pure_states() {
        for m in [1e-3, 0.1, 0.7, 3.0] {
            for extent in [4, 7, 32] {
                let half = 0.5 * extent as f64;
                let cosh: Vec<f64> = (0..extent).map(|t| (m * (half - t as f64)).cosh()).collect();
                let masses = effective_masses(&cosh, CorrelatorShape::Cosh);
                assert_eq!(masses.len(), extent / 2);
                for (t, found) in masses.iter().enumerate() {
                    // Next to the middle of an odd extent both times are equally far from the middle.
                    if half - t as f64 > 0.6 {
                        assert!((found.unwrap() / m - 1.0).abs() < 1e-7 / m.min(1.0), "{m} {extent} {t}: {found:?}");
                    }
                }
                let sinh: Vec<f64> = (0..extent).map(|t| (m * (half - t as f64)).sinh()).collect();
                let masses = effective_masses(&sinh, CorrelatorShape::Sinh);
                assert_eq!(masses.len(), extent / 2);
                for (t, found) in masses.iter().enumerate() {
                    // C(T/2) is 0.
                    if half - t as f64 > 1.2 {
                        assert!((found.unwrap() / m - 1.0).abs() < 1e-7 / m.min(1.0), "{m} {extent} {t}: {found:?}");
                    } else {
                        assert_eq!(*found, None);
                    }
                }
                let falling: Vec<f64> = (0..extent).map(|t| (-m * t as f64).exp()).collect();
                let masses = effective_masses(&falling, CorrelatorShape::Exponential);
                assert!(masses.len() == extent - 1 && masses.iter().all(|found| (found.unwrap() - m).abs() < 1e-12));
            }
        }
        assert_eq!(effective_masses(&[1.0, 2.0, 1.0, 2.0], CorrelatorShape::Cosh)[0], None);
        assert_eq!(effective_masses(&[1.0, -2.0], CorrelatorShape::Exponential), [None]);
    }
}
