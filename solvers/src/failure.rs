//! Reasons for giving up a right-hand side.

use std::fmt;

/// Quantity of a recurrence that vanished.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BreakdownKind {
    /// ρ = (r̃, r): the residual has become orthogonal to the shadow residual.
    Rho,
    /// (r̃, A p), the denominator of α.
    Alpha,
    /// ω = (t, s)/(t, t): the minimal-residual step does not move.
    Omega,
    /// γ of GCR: the image of the new direction vanishes, or lies in the span of those before it.
    Gamma,
    /// μ_{k,k} of IDR(s): the image of the new direction is orthogonal to the shadow vector of its number.
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

/// Reason why a right-hand side is given up, while others may continue.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum RhsFailure {
    /// A reduction gave NaN or infinity.
    NotANumber,
    /// True residuals stopped falling, although those of the recurrence did not.
    Stagnation,
    /// No residual was smaller than the smallest one for too many iterations.
    Plateau,
    /// Quantity that vanished again and again.
    Breakdown(BreakdownKind),
    /// The operator is not positive, with (p, A p).
    NotPositiveDefinite(f64),
}

impl RhsFailure {
    /// Returns the failure of a right-hand side with a reduction that is not finite.
    pub(crate) fn unless_finite(finite: bool) -> Option<Self> {
        (!finite).then_some(Self::NotANumber)
    }
}
