//! Scales of the gradient flow from t² E(t): t₀ (Lüscher 2010) and w₀ (Borsányi et al. 2012). For many configurations, compute them from
//! the mean of t² E; do not average the scales of single configurations.

/// Returns the flow time t at which t² E reaches `level` (0.3 for t₀), interpolated between two of the points (t, t² E), or `None` if t²
/// E does not rise to it.
pub fn t0(points: &[(f64, f64)], level: f64) -> Option<f64> {
    crossing(points, level)
}

/// Returns w₀ = √t for the flow time t at which t d/dt (t² E) reaches `level` (0.3 for w₀), or `None` if it does not
/// rise to `level`. Differences between the points (t, t² E) serve as derivatives.
pub fn w0(points: &[(f64, f64)], level: f64) -> Option<f64> {
    let slope = |pair: &[(f64, f64)]| {
        let middle = 0.5 * (pair[0].0 + pair[1].0);
        (middle, middle * (pair[1].1 - pair[0].1) / (pair[1].0 - pair[0].0))
    };
    crossing(&points.windows(2).map(slope).collect::<Vec<_>>(), level).map(f64::sqrt)
}

/// Returns the first position at which a line through the points rises to `level`.
fn crossing(points: &[(f64, f64)], level: f64) -> Option<f64> {
    let pair = points.windows(2).find(|pair| pair[0].1 < level && pair[1].1 >= level)?;
    let [(x, y), (u, v)] = [pair[0], pair[1]];
    Some(x + (u - x) * (level - y) / (v - y))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Checks t² E = t / 2: t₀ = 0.6, and t d/dt t² E is t / 2 too.
    #[test]
    fn scales_are_where_curves_cross() {
        let points: Vec<(f64, f64)> = (1..40).map(|k| 0.05 * f64::from(k)).map(|t| (t, 0.5 * t)).collect();
        assert!((t0(&points, 0.3).unwrap() - 0.6).abs() < 1e-12);
        assert!((w0(&points, 0.3).unwrap() - 0.6f64.sqrt()).abs() < 1e-12);
        assert_eq!((t0(&points, 2.0), w0(&points[..2], 0.3), t0(&[], 0.3)), (None, None, None));
    }
}
