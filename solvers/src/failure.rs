//! Reasons for giving up a right-hand side.

use std::fmt;

/// Kind of a breakdown: the quantity of the recurrence that vanished.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BreakdownKind {
    /// ρ = (r̃, r): the residual has become orthogonal to the shadow residual.
    Rho,
    /// (r̃, A p), the denominator of α.
    Alpha,
    /// ω = (t, s)/(t, t): the minimal-residual step leaves the residual as it is.
    Omega,
    /// γ of GCR: the image of the new direction vanishes, or lies in the span of the previous images.
    Gamma,
    /// μ_{k,k} of IDR(s): the image of direction k is orthogonal to shadow vector k.
    Mu,
}

impl fmt::Display for BreakdownKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Rho => "the residual is orthogonal to the shadow residual (ρ = 0)",
            Self::Alpha => "the image of the direction is orthogonal to the shadow residual (α is undefined)",
            Self::Omega => "the stabilising step vanishes (ω = 0)",
            Self::Gamma => "the image of a direction vanishes or is a combination of previous images (γ = 0)",
            Self::Mu => "the image of a direction is orthogonal to its shadow vector (μ = 0)",
        })
    }
}

/// Reason why a right-hand side was given up while the others may continue.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum RhsFailure {
    /// A reduction gave NaN or infinity.
    NotANumber,
    /// The true residuals stopped falling, although the residuals of the recurrence still fell.
    Stagnation,
    /// The recurrence reached no new smallest residual for too many iterations.
    Plateau,
    /// A quantity of the recurrence vanished again after each restart.
    Breakdown(BreakdownKind),
    /// The operator is not positive: a direction p has this (p, A p) ≤ 0.
    NotPositiveDefinite(f64),
}

impl RhsFailure {
    /// Returns the failure of a right-hand side if a reduction is not `finite`.
    pub(crate) fn unless_finite(finite: bool) -> Option<Self> {
        (!finite).then_some(Self::NotANumber)
    }
}
