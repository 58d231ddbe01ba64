//! The Wilson-clover operator from its formula, in double: a 12×12 matrix at every site, made of explicit γ matrices
//! and of products of links along paths. Nothing here shares code with the kernels.
//!
//! M = A − ½ (s D_space + D_time), A(x) = 1 + 3 s + m + (i/2) Σ_{μ<ν} c_μν σ_μν F̂_μν(x), σ_μν = (i/2) \[γ_μ, γ_ν\],
//! F̂ = (Q − Q†)/8 with Q the sum of the four leaves of the plane (μ, ν) at x (Babich, Clark and Joó 2010, eq. 2;
//! factors as in Chroma).
use crate::gamma::{self, SpinMatrix};
use crate::reference::{WilsonDirac, adjoint, combine, field, multiply, on_parity, residual, unit};
use crate::testkit::matrix::{Square, add, from_elements, invert, scale};
use ferrite::field::host::{HostGauge, HostSpinor, Matrix, Spinor};
use ferrite::operators::{CloverParams, Schur};
use num_complex::Complex64;
use rayon::prelude::*;

/// Matrix on spin and colour, index = 3 · spin + colour.
pub type SiteMatrix = Square<12>;

/// The product of links along a path from `site`: each step a direction, forward or backward.
pub fn path(gauge: &HostGauge, site: usize, steps: &[(usize, bool)]) -> Matrix {
    let lattice = gauge.lattice();
    let mut product = unit();
    let mut x = site;
    for &(mu, forward) in steps {
        let to = lattice.neighbour(x, mu, forward);
        let link = if forward { *gauge.link(x, mu) } else { adjoint(gauge.link(to, mu)) };
        product = multiply(&product, &link);
        x = to;
    }
    product
}

/// The four closed paths of a plane, each a quarter turn further than the one before.
pub fn leaves(mu: usize, nu: usize) -> [[(usize, bool); 4]; 4] {
    let turn = [(mu, true), (nu, true), (mu, false), (nu, false)];
    std::array::from_fn(|k| std::array::from_fn(|j| turn[(k + j) % 4]))
}

/// F̂_μν at a site.
pub fn field_strength(gauge: &HostGauge, site: usize, mu: usize, nu: usize) -> Matrix {
    let mut q = Matrix::default();
    for leaf in leaves(mu, nu) {
        let p = path(gauge, site, &leaf);
        q = add(&q, Complex64::ONE, &p);
    }
    scale(0.125.into(), &add(&q, -Complex64::ONE, &adjoint(&q)))
}

/// σ_μν = (i/2) \[γ_μ, γ_ν\]
pub fn sigma(mu: usize, nu: usize) -> SpinMatrix {
    let (a, b) = (&gamma::GAMMA[mu], &gamma::GAMMA[nu]);
    let commutator = gamma::add(&gamma::multiply(a, b), (-1.0).into(), &gamma::multiply(b, a));
    scale(Complex64::new(0.0, 0.5), &commutator)
}

fn term(gauge: &HostGauge, site: usize, diagonal: f64, space: f64, time: f64) -> SiteMatrix {
    let mut a = scale(diagonal.into(), &unit());
    for mu in 0..4 {
        for nu in mu + 1..4 {
            let c = if nu == 3 { time } else { space };
            let (sigma, f) = (sigma(mu, nu), field_strength(gauge, site, mu, nu));
            for (i, row) in a.iter_mut().enumerate() {
                for (j, to) in row.iter_mut().enumerate() {
                    *to += Complex64::new(0.0, 0.5 * c) * sigma[i / 3][j / 3] * f[i % 3][j % 3];
                }
            }
        }
    }
    a
}

/// a ψ(x) at a site.
pub fn site_multiply(a: &SiteMatrix, psi: &Spinor) -> Spinor {
    let row = |i: usize| (0..12).map(|j| a[i][j] * psi[j / 3][j % 3]).sum();
    std::array::from_fn(|s| std::array::from_fn(|colour| row(3 * s + colour)))
}

/// a φ + b ψ
pub fn sum(a: f64, phi: &HostSpinor, b: f64, psi: &HostSpinor) -> HostSpinor {
    combine(&[(a.into(), phi), (b.into(), psi)])
}

/// Matrix on spin and colour that acts on spin alone.
pub fn on_spin(m: &SpinMatrix) -> SiteMatrix {
    from_elements(|i, j| if i % 3 == j % 3 { m[i / 3][j / 3] } else { Complex64::ZERO })
}

/// A propagator at a site, with the index 3 spin + colour.
pub fn propagator_at(propagator: &[HostSpinor], site: usize) -> SiteMatrix {
    from_elements(|i, j| propagator[j].sites()[site][i / 3][i % 3])
}

/// A Wilson-clover operator.
pub struct CloverDirac<'a> {
    /// The hopping term and the diagonal.
    pub dirac: WilsonDirac<'a>,
    /// A at every site.
    pub term: Vec<SiteMatrix>,
    /// A⁻¹ at every site.
    pub inverse: Vec<SiteMatrix>,
}

impl<'a> CloverDirac<'a> {
    /// Makes the operator with the given factors of σ F̂ in spatial and temporal planes.
    pub fn new(dirac: WilsonDirac<'a>, space: f64, time: f64) -> Self {
        let sites = (0..dirac.gauge.lattice().volume()).into_par_iter();
        let term: Vec<_> = sites.map(|x| term(dirac.gauge, x, dirac.diagonal(), space, time)).collect();
        let inverse = term.par_iter().map(invert).collect();
        CloverDirac { dirac, term, inverse }
    }
    /// The operator that the program makes of these parameters.
    pub fn from_params(gauge: &'a HostGauge, params: &CloverParams) -> Self {
        let wilson = &params.wilson;
        let dirac = WilsonDirac::new(gauge, wilson.mass, wilson.boundary.sign());
        Self::new(
            WilsonDirac { space: wilson.anisotropy.nu / wilson.anisotropy.xi, ..dirac },
            params.space,
            params.time,
        )
    }
    /// The factor of D̃ in M.
    fn hop(&self) -> f64 {
        0.5 * self.dirac.space
    }
    /// A ψ, or A⁻¹ ψ.
    pub fn clover(&self, inverse: bool, psi: &HostSpinor) -> HostSpinor {
        let matrices = if inverse { &self.inverse } else { &self.term };
        field(psi.lattice(), |x| site_multiply(&matrices[x], &psi.sites()[x]))
    }
    /// D̃ ψ, or D̃† ψ.
    pub fn hopping(&self, dagger: bool, psi: &HostSpinor) -> HostSpinor {
        self.dirac.hopping(dagger, psi)
    }
    /// M ψ, or M† ψ.
    pub fn apply(&self, dagger: bool, psi: &HostSpinor) -> HostSpinor {
        sum(1.0, &self.clover(false, psi), -self.hop(), &self.hopping(dagger, psi))
    }
    /// The Schur complement of the even sites, or its adjoint; zero on the odd sites.
    pub fn schur(&self, schur: Schur, dagger: bool, psi: &HostSpinor) -> HostSpinor {
        self.schur_on(0, schur, dagger, psi)
    }
    /// The Schur complement of the sites of a parity, or its adjoint; zero on the other sites.
    pub fn schur_on(&self, parity: usize, schur: Schur, dagger: bool, psi: &HostSpinor) -> HostSpinor {
        let even = on_parity(parity, psi);
        let (minus, hops) = (-self.hop() * self.hop(), |psi: &HostSpinor| self.hopping(dagger, psi));
        let divide = |psi: &HostSpinor| self.clover(true, psi);
        match (schur, dagger) {
            (Schur::Symmetric, false) => sum(1.0, &even, minus, &divide(&hops(&divide(&hops(&even))))),
            (Schur::Symmetric, true) => sum(1.0, &even, minus, &hops(&divide(&hops(&divide(&even))))),
            (Schur::Asymmetric, _) => sum(1.0, &self.clover(false, &even), minus, &hops(&divide(&hops(&even)))),
        }
    }
    /// The right-hand side of the Schur complement; zero on the odd sites.
    pub fn prepare(&self, schur: Schur, eta: &HostSpinor) -> HostSpinor {
        let odd = self.clover(true, &on_parity(1, eta));
        let even = sum(1.0, &on_parity(0, eta), self.hop(), &self.hopping(false, &odd));
        if schur == Schur::Symmetric { self.clover(true, &even) } else { even }
    }
    /// ψ with its even half and A⁻¹ (η + ½ D̃ ψ) on the odd sites.
    pub fn reconstruct(&self, eta: &HostSpinor, psi: &HostSpinor) -> HostSpinor {
        let even = on_parity(0, psi);
        let odd = sum(1.0, &on_parity(1, eta), self.hop(), &self.hopping(false, &even));
        sum(1.0, &even, 1.0, &self.clover(true, &odd))
    }
    /// ‖η − M ψ‖ / ‖η‖
    pub fn residual(&self, eta: &HostSpinor, psi: &HostSpinor) -> f64 {
        residual(eta, &self.apply(false, psi))
    }
}

/// ψ(x) = e_{spin, colour} at every site: what reads out a column of all site matrices.
pub fn column(gauge: &HostGauge, index: usize) -> HostSpinor {
    field(gauge.lattice(), |_| {
        let mut psi = Spinor::default();
        psi[index / 3][index % 3] = Complex64::ONE;
        psi
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::reference::{dot, gamma5};
    use ferrite::gauge::generate;
    use ferrite::lattice::Lattice;

    #[test]
    #[allow(clippy::needless_range_loop, reason = "rows and columns of matrices")]
    fn the_term_is_hermitian_and_commutes_with_gamma5() {
        let gauge = generate::random(Lattice::new([2, 4, 2, 4]).unwrap(), 1);
        let operator = CloverDirac::new(WilsonDirac { space: 0.4, ..WilsonDirac::new(&gauge, 0.3, -1.0) }, 0.5, 1.1);
        for (a, inverse) in operator.term.iter().zip(&operator.inverse) {
            for i in 0..12 {
                for j in 0..12 {
                    assert!((a[i][j] - a[j][i].conj()).norm() < 1e-14);
                    assert!((i / 6 == j / 6) || a[i][j].norm() < 1e-14, "upper and lower spins mix");
                    let product: Complex64 = (0..12).map(|k| a[i][k] * inverse[k][j]).sum();
                    assert!((product - f64::from(i == j)).norm() < 1e-13);
                }
            }
        }
    }

    #[test]
    fn daggers_are_adjoint() {
        let lattice = Lattice::new([2, 4, 2, 6]).unwrap();
        let gauge = generate::random(lattice, 3);
        let (phi, psi) = (generate::random_source(lattice, 1), generate::random_source(lattice, 2));
        let m = CloverDirac::new(WilsonDirac { space: 0.4, ..WilsonDirac::new(&gauge, 0.3, -1.0) }, 0.5, 1.1);
        let (a, b) = (dot(&phi, &m.apply(false, &psi)), dot(&m.apply(true, &phi), &psi));
        assert!((a - b).norm() < 1e-11, "{a} {b}");
        let c = dot(&gamma5(&m.apply(false, &gamma5(&phi))), &psi);
        assert!((a - c).norm() < 1e-11, "{a} {c}");
        for schur in [Schur::Symmetric, Schur::Asymmetric] {
            let (a, b) = (dot(&phi, &m.schur(schur, false, &psi)), dot(&m.schur(schur, true, &phi), &psi));
            assert!((a - b).norm() < 1e-11, "{schur:?}: {a} {b}");
        }
    }
}
