//! Any Wilson-like operator M = A − h D from its formula, in double: a 12×12 matrix A at every site and explicit hops. A
//! need not be Hermitian. Nothing here shares code with the kernels.
use crate::clover_reference::{CloverDirac, SiteMatrix, site_multiply, sum};
use crate::reference::{WilsonDirac, field, on_parity, residual};
use crate::testkit::matrix::{add, adjoint, exponential, invert, scale, unit};
use ferrite::field::host::{HostGauge, HostSpinor};
use ferrite::operators::{CloverParams, WilsonParams};
use num_complex::Complex64;
use rayon::prelude::*;

/// The operator.
pub struct WilsonLikeDirac<'a> {
    dirac: WilsonDirac<'a>,
    term: Vec<SiteMatrix>,
    inverse: Vec<SiteMatrix>,
}

/// A + iμγ5, γ5 = diag(1, 1, −1, −1) on spins, each of three colours.
fn twist(mut a: SiteMatrix, mu: f64) -> SiteMatrix {
    (0..12).for_each(|i| a[i][i] += Complex64::new(0.0, if i < 6 { mu } else { -mu }));
    a
}

impl<'a> WilsonLikeDirac<'a> {
    fn new(dirac: WilsonDirac<'a>, term: Vec<SiteMatrix>) -> Self {
        let inverse = term.par_iter().map(invert).collect();
        WilsonLikeDirac { dirac, term, inverse }
    }
    /// Makes the operator with A = d + iμγ5 + (the clover term − d), d the diagonal of Wilson's M: zero coefficients leave a twisted mass.
    pub fn twisted(gauge: &'a HostGauge, wilson: WilsonParams, [space, time]: [f64; 2], mu: f64) -> Self {
        let clover = CloverDirac::from_params(gauge, &CloverParams { wilson, space, time });
        let term = clover.term.into_iter().map(|a| twist(a, mu)).collect();
        Self::new(clover.dirac, term)
    }
    /// Makes the operator with A = d exp(X/d) + iμγ5, d + X the clover term of these coefficients.
    pub fn twisted_exponential(gauge: &'a HostGauge, wilson: WilsonParams, c: [f64; 2], mu: f64) -> Self {
        let WilsonLikeDirac { dirac, term, .. } = Self::exponential(gauge, wilson, c);
        Self::new(dirac, term.into_iter().map(|a| twist(a, mu)).collect())
    }
    /// Makes the operator with A = d exp(X/d), d + X the clover term of these coefficients.
    pub fn exponential(gauge: &'a HostGauge, wilson: WilsonParams, [space, time]: [f64; 2]) -> Self {
        let clover = CloverDirac::from_params(gauge, &CloverParams { wilson, space, time });
        let d = Complex64::from(wilson.diagonal());
        let term =
            clover.term.par_iter().map(|a| scale(d, &exponential(&add(&scale(1.0 / d, a), -Complex64::ONE, &unit()))));
        let term = term.collect();
        Self::new(clover.dirac, term)
    }
    /// The factor of D̃ in M.
    fn hop(&self) -> f64 {
        0.5 * self.dirac.space
    }
    /// A ψ, A† ψ, A⁻¹ ψ or A⁻† ψ.
    pub fn diagonal(&self, inverse: bool, dagger: bool, psi: &HostSpinor) -> HostSpinor {
        let matrices = if inverse { &self.inverse } else { &self.term };
        let matrix = |x: usize| if dagger { adjoint(&matrices[x]) } else { matrices[x] };
        field(psi.lattice(), |x| site_multiply(&matrix(x), &psi.sites()[x]))
    }
    /// M ψ, or M† ψ.
    pub fn apply(&self, dagger: bool, psi: &HostSpinor) -> HostSpinor {
        sum(1.0, &self.diagonal(false, dagger, psi), -self.hop(), &self.dirac.hopping(dagger, psi))
    }
    /// M̂ ψ = ψ − h² A⁻¹ D A⁻¹ D ψ on the even sites, or its adjoint ψ − h² D† A⁻† D† A⁻† ψ; zero on the odd ones.
    pub fn schur(&self, dagger: bool, psi: &HostSpinor) -> HostSpinor {
        let even = on_parity(0, psi);
        let step = |psi: &HostSpinor| match dagger {
            false => self.diagonal(true, false, &self.dirac.hopping(false, psi)),
            true => self.dirac.hopping(true, &self.diagonal(true, true, psi)),
        };
        sum(1.0, &even, -self.hop() * self.hop(), &step(&step(&even)))
    }
    /// ‖η − M ψ‖ / ‖η‖
    pub fn residual(&self, eta: &HostSpinor, psi: &HostSpinor) -> f64 {
        residual(eta, &self.apply(false, psi))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::reference::{dot, gamma5};
    use ferrite::gauge::generate;
    use ferrite::lattice::Lattice;
    use ferrite::operators::TimeBoundary;

    /// γ5 M(μ) γ5 = M†(−μ), and daggers are adjoint.
    #[test]
    fn twisted_operators_are_gamma5_hermitian() {
        let lattice = Lattice::new([2, 4, 2, 6]).unwrap();
        let gauge = generate::random(lattice, 3);
        let (phi, psi) = (generate::random_source(lattice, 1), generate::random_source(lattice, 2));
        let wilson = WilsonParams::from_mass(0.3, TimeBoundary::Antiperiodic);
        for coefficients in [[0.0; 2], [0.5, 1.1]] {
            let m = |mu| WilsonLikeDirac::twisted(&gauge, wilson, coefficients, mu);
            let a = dot(&phi, &m(0.4).apply(false, &psi));
            let b = dot(&m(0.4).apply(true, &phi), &psi);
            let c = dot(&phi, &gamma5(&m(-0.4).apply(true, &gamma5(&psi))));
            assert!((a - b).norm() < 1e-11 && (a - c).norm() < 1e-11, "{a} {b} {c}");
            let (a, b) = (dot(&phi, &m(0.4).schur(false, &psi)), dot(&m(0.4).schur(true, &phi), &psi));
            assert!((a - b).norm() < 1e-11, "{a} {b}");
        }
    }
}
