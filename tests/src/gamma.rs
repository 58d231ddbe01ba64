//! The γ matrices of the DeGrand–Rossi basis, element by element (Clark et al. 2009, appendix B): P^{±μ} = 1 ± γ_μ.
//!
//! Their order x, y, z, t and their signs are Chroma's, so that γ_5 = γ_x γ_y γ_z γ_t = diag(1, 1, −1, −1).
use crate::testkit::matrix::{Square, unit};
pub use crate::testkit::matrix::{add, adjoint, multiply};
use num_complex::Complex64;

/// A 4×4 matrix on spin.
pub type SpinMatrix = Square<4>;

const O: Complex64 = Complex64::new(0.0, 0.0);
const P: Complex64 = Complex64::new(1.0, 0.0);
const N: Complex64 = Complex64::new(-1.0, 0.0);
const I: Complex64 = Complex64::new(0.0, 1.0);
const J: Complex64 = Complex64::new(0.0, -1.0);

/// γ_x, γ_y, γ_z, γ_t.
pub const GAMMA: [SpinMatrix; 4] = [
    [[O, O, O, I], [O, O, I, O], [O, J, O, O], [J, O, O, O]],
    [[O, O, O, N], [O, O, P, O], [O, P, O, O], [N, O, O, O]],
    [[O, O, I, O], [O, O, O, J], [J, O, O, O], [O, I, O, O]],
    [[O, O, P, O], [O, O, O, P], [P, O, O, O], [O, P, O, O]],
];
/// γ_5
pub const GAMMA5: SpinMatrix = [[P, O, O, O], [O, P, O, O], [O, O, N, O], [O, O, O, N]];
/// 1 + `sign` γ_μ
pub fn projector(mu: usize, sign: f64) -> SpinMatrix {
    add(&unit(), sign.into(), &GAMMA[mu])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clifford_algebra_and_hermiticity() {
        for (mu, a) in GAMMA.iter().enumerate() {
            assert_eq!(adjoint(a), *a, "γ_{mu} is Hermitian");
            for (nu, b) in GAMMA.iter().enumerate() {
                let anticommutator = add(&multiply(a, b), P, &multiply(b, a));
                let twice = if mu == nu { Complex64::new(2.0, 0.0) } else { O };
                assert_eq!(anticommutator, add(&[[O; 4]; 4], twice, &unit()), "{{γ_{mu}, γ_{nu}}}");
            }
        }
    }

    #[test]
    fn gamma5_is_the_product_in_the_order_of_chroma() {
        let product = GAMMA[1..].iter().fold(GAMMA[0], |product, gamma| multiply(&product, gamma));
        assert_eq!(product, GAMMA5);
    }

    #[test]
    fn projectors_project() {
        for mu in 0..4 {
            let (plus, minus) = (projector(mu, 1.0), projector(mu, -1.0));
            assert_eq!(multiply(&plus, &plus), add(&plus, P, &plus), "P² = 2 P");
            assert_eq!(multiply(&plus, &minus), [[O; 4]; 4], "P⁺ P⁻ = 0");
        }
    }
}
