//! The Wilson operator and its friends, written from the formulas in plain loops over host arrays, in double: what
//! kernels are compared with. Nothing here shares code with them.
//!
//! (D ψ)(x) = Σ_μ P^{−μ} U_μ(x) ψ(x+μ̂) + P^{+μ} U_μ†(x−μ̂) ψ(x−μ̂), P^{±μ} = 1 ± γ_μ (Clark et al. 2009, eq. 1), and
//! M = (4 + m) − ½ D. On anisotropic lattices, as Chroma has it, M = (1 + 3 s + m) − ½ (s D_space + D_time), s = ν/ξ_0.
use crate::gamma::{self, SpinMatrix};
pub use crate::testkit::matrix::{adjoint, multiply, unit};
use crate::testkit::matrix::{apply, scale, trace};
use ferrite::field::host::{Fermion, HostField, HostGauge, HostSpinor, Matrix, Spinor};
use ferrite::lattice::Lattice;
use num_complex::Complex64;
use rayon::prelude::*;

/// A Wilson operator.
#[derive(Clone, Copy)]
pub struct WilsonDirac<'a> {
    /// U
    pub gauge: &'a HostGauge,
    /// m
    pub mass: f64,
    /// Factor of a hop across the end of the lattice in t: 1 or −1.
    pub time_sign: f64,
    /// s = ν/ξ_0, 1 on an isotropic lattice.
    pub space: f64,
}

/// The site one step forward (`step` = 1) or backward (−1), and whether the step leaves the lattice.
fn neighbour(lattice: Lattice, x: [usize; 4], mu: usize, step: i64) -> (usize, bool) {
    let size = lattice.size();
    let to = x[mu] as i64 + step;
    let mut y = x;
    y[mu] = to.rem_euclid(size[mu] as i64) as usize;
    let index = y[0] + size[0] * (y[1] + size[1] * (y[2] + size[2] * y[3]));
    (index, to < 0 || to >= size[mu] as i64)
}

/// Links whose hops have the factor e^{iθ_μ/L_μ}.
pub fn turned(gauge: &HostGauge, theta: [f64; 4]) -> HostGauge {
    let size = gauge.lattice().size();
    let phase = |mu: usize| Complex64::from_polar(1.0, theta[mu] / size[mu] as f64);
    let link = |k: usize| scale(phase(k % 4), &gauge.links()[k]);
    HostGauge::from_links(gauge.lattice(), (0..gauge.links().len()).map(link).collect())
}
/// U ψ, on colour.
pub fn colour_multiply(u: &Matrix, psi: &Spinor) -> Spinor {
    psi.map(|spin| apply(u, &spin))
}
/// Γ ψ, on spin.
pub fn spin_multiply(matrix: &SpinMatrix, psi: &Spinor) -> Spinor {
    std::array::from_fn(|s| std::array::from_fn(|a| (0..4).map(|t| matrix[s][t] * psi[t][a]).sum()))
}
/// A field from what it is at every site.
pub fn field<T: Fermion>(lattice: Lattice, site: impl Fn(usize) -> T + Send + Sync) -> HostField<T> {
    HostField::from_sites(lattice, (0..lattice.volume()).into_par_iter().map(site).collect())
}
/// γ_5 ψ
pub fn gamma5(psi: &HostSpinor) -> HostSpinor {
    field(psi.lattice(), |x| spin_multiply(&gamma::GAMMA5, &psi.sites()[x]))
}
/// Σ_k c_k ψ_k
pub fn combine<T: Fermion>(terms: &[(Complex64, &HostField<T>)]) -> HostField<T> {
    let mut sum = HostField::zero(terms[0].1.lattice());
    for (c, psi) in terms {
        sum.numbers_mut().iter_mut().zip(psi.numbers()).for_each(|(to, from)| *to += c * from);
    }
    sum
}
/// ψ on the sites of one parity, zero on the others.
pub fn on_parity<T: Fermion>(parity: usize, psi: &HostField<T>) -> HostField<T> {
    let lattice = psi.lattice();
    let here = |x: usize| lattice.coordinates(x).iter().sum::<usize>() % 2 == parity;
    field(lattice, |x| if here(x) { psi.sites()[x] } else { T::default() })
}
/// (φ, ψ) = Σ φ* ψ
pub fn dot<T: Fermion>(phi: &HostField<T>, psi: &HostField<T>) -> Complex64 {
    phi.numbers().iter().zip(psi.numbers()).map(|(a, b)| a.conj() * b).sum()
}
/// ‖ψ‖²
pub fn norm2<T: Fermion>(psi: &HostField<T>) -> f64 {
    dot(psi, psi).re
}
/// ‖η − `image`‖ / ‖η‖
pub fn residual<T: Fermion>(eta: &HostField<T>, image: &HostField<T>) -> f64 {
    (norm2(&combine(&[(1.0.into(), eta), ((-1.0).into(), image)])) / norm2(eta)).sqrt()
}
/// Solves A ψ = b for a positive definite A by conjugate gradients, without preconditioning, until `done` of ψ and ‖r‖².
///
/// # Panics
/// If that takes more than 5000 iterations.
pub fn conjugate_gradients<T: Fermion>(
    apply: impl Fn(&HostField<T>) -> HostField<T>,
    b: HostField<T>,
    done: impl Fn(&HostField<T>, f64) -> bool,
) -> HostField<T> {
    let (mut psi, mut rr) = (HostField::zero(b.lattice()), norm2(&b));
    let (mut r, mut p) = (b.clone(), b);
    for _ in 0..5000 {
        if done(&psi, rr) {
            return psi;
        }
        let image = apply(&p);
        let alpha = rr / dot(&p, &image).re;
        psi = combine(&[(1.0.into(), &psi), (alpha.into(), &p)]);
        r = combine(&[(1.0.into(), &r), ((-alpha).into(), &image)]);
        let new = norm2(&r);
        p = combine(&[(1.0.into(), &r), ((new / rr).into(), &p)]);
        rr = new;
    }
    panic!("the reference solver reached ‖r‖² = {rr:.1e} only");
}

impl<'a> WilsonDirac<'a> {
    /// Makes the operator on an isotropic lattice.
    pub fn new(gauge: &'a HostGauge, mass: f64, time_sign: f64) -> Self {
        WilsonDirac { gauge, mass, time_sign, space: 1.0 }
    }
    /// 1 + 3 s + m
    pub fn diagonal(&self) -> f64 {
        1.0 + 3.0 * self.space + self.mass
    }
    /// κ, in M ∝ 1 − κ D: 1 / (2 (4 + m)) on an isotropic lattice.
    pub fn kappa(&self) -> f64 {
        0.5 * self.space / self.diagonal()
    }
    /// D ψ with D = D_space + D_time / s, or D† ψ, which is the same sum with the projectors exchanged, because
    /// D†_{xy} = (D_{yx})†.
    pub fn hopping(&self, dagger: bool, psi: &HostSpinor) -> HostSpinor {
        let lattice = self.gauge.lattice();
        let forward_sign = if dagger { 1.0 } else { -1.0 };
        let ahead: [SpinMatrix; 4] = std::array::from_fn(|mu| gamma::projector(mu, forward_sign));
        let behind: [SpinMatrix; 4] = std::array::from_fn(|mu| gamma::projector(mu, -forward_sign));
        field(lattice, |site| {
            let x = lattice.coordinates(site);
            let mut sum = Spinor::default();
            for mu in 0..4 {
                let mut hop = |projector: &SpinMatrix, link: &Matrix, from: usize, across: bool| {
                    let sign = match (mu, across) {
                        (3, true) => self.time_sign / self.space,
                        (3, false) => 1.0 / self.space,
                        _ => 1.0,
                    };
                    let term = spin_multiply(projector, &colour_multiply(link, &psi.sites()[from]));
                    sum.iter_mut().flatten().zip(term.iter().flatten()).for_each(|(to, h)| *to += sign * h);
                };
                let (next, across) = neighbour(lattice, x, mu, 1);
                hop(&ahead[mu], self.gauge.link(site, mu), next, across);
                let (previous, across) = neighbour(lattice, x, mu, -1);
                hop(&behind[mu], &adjoint(self.gauge.link(previous, mu)), previous, across);
            }
            sum
        })
    }
    /// M ψ, or M† ψ.
    pub fn apply(&self, dagger: bool, psi: &HostSpinor) -> HostSpinor {
        combine(&[(self.diagonal().into(), psi), ((-0.5 * self.space).into(), &self.hopping(dagger, psi))])
    }
    /// M̂ ψ_e = ψ_e − κ² D_eo D_oe ψ_e, or M̂† ψ_e; zero on the odd sites.
    pub fn schur(&self, dagger: bool, psi: &HostSpinor) -> HostSpinor {
        let even = on_parity(0, psi);
        let twice = self.hopping(dagger, &self.hopping(dagger, &even));
        combine(&[(1.0.into(), &even), ((-self.kappa() * self.kappa()).into(), &twice)])
    }
    /// ‖η − M ψ‖ / ‖η‖
    pub fn residual(&self, eta: &HostSpinor, psi: &HostSpinor) -> f64 {
        residual(eta, &self.apply(false, psi))
    }
    /// M⁻¹ η by conjugate gradients on M† M ψ = M† η, without preconditioning. Panics if that does not converge.
    pub fn solve(&self, eta: &HostSpinor, tol: f64) -> HostSpinor {
        let normal = |psi: &HostSpinor| self.apply(true, &self.apply(false, psi));
        conjugate_gradients(normal, self.apply(true, eta), |psi, _| self.residual(eta, psi) <= tol)
    }
}

/// Σ Re tr P / 3 over all sites, in the mean over three spatial planes and over three temporal ones.
pub fn plaquettes(gauge: &HostGauge) -> [f64; 2] {
    let lattice = gauge.lattice();
    let mut sums = [0.0; 2];
    for site in 0..lattice.volume() {
        let next = |mu| neighbour(lattice, lattice.coordinates(site), mu, 1).0;
        for mu in 0..4 {
            for nu in mu + 1..4 {
                let there = multiply(gauge.link(site, mu), gauge.link(next(mu), nu));
                let back = multiply(&adjoint(gauge.link(next(nu), mu)), &adjoint(gauge.link(site, nu)));
                let p = multiply(&there, &back);
                sums[usize::from(nu == 3)] += trace(&p).re / 3.0;
            }
        }
    }
    sums.map(|sum| sum / (3 * lattice.volume()) as f64)
}

/// Links after the gauge transformation g: g(x) U_μ(x) g†(x+μ̂).
pub fn transform_links(gauge: &HostGauge, g: &[Matrix]) -> HostGauge {
    let lattice = gauge.lattice();
    let link = |k: usize| {
        let (site, mu) = (k / 4, k % 4);
        let (next, _) = neighbour(lattice, lattice.coordinates(site), mu, 1);
        multiply(&multiply(&g[site], gauge.link(site, mu)), &adjoint(&g[next]))
    };
    HostGauge::from_links(lattice, (0..4 * lattice.volume()).map(link).collect())
}

/// M⁻¹ on unit links from a point source, as a sum over momenta: ψ(x) = 1/V Σ_p e^{ip(x−y)} M(p)⁻¹ e_spin, with
/// M(p) = m + Σ_μ (1 − cos p_μ) + i Σ_μ γ_μ sin p_μ. Antiperiodic in t: p_t is an odd multiple of π / T.
pub fn free_propagator(
    lattice: Lattice,
    mass: f64,
    antiperiodic: bool,
    source: [usize; 4],
    (spin, colour): (usize, usize),
) -> HostSpinor {
    let volume = lattice.volume();
    let momentum = |k: usize| -> [f64; 4] {
        let (n, size) = (lattice.coordinates(k), lattice.size());
        let shift = |mu| if mu == 3 && antiperiodic { 0.5 } else { 0.0 };
        std::array::from_fn(|mu| std::f64::consts::TAU * (n[mu] as f64 + shift(mu)) / size[mu] as f64)
    };
    let columns: Vec<([f64; 4], [Complex64; 4])> = (0..volume)
        .map(|k| {
            let p = momentum(k);
            let wilson = mass + p.iter().map(|p| 1.0 - p.cos()).sum::<f64>();
            let denominator = wilson * wilson + p.iter().map(|p| p.sin().powi(2)).sum::<f64>();
            let mut inverse = gamma::add(&[[Complex64::ZERO; 4]; 4], wilson.into(), &unit());
            for (p, gamma) in p.iter().zip(&gamma::GAMMA) {
                inverse = gamma::add(&inverse, Complex64::new(0.0, -p.sin()), gamma);
            }
            (p, std::array::from_fn(|s| inverse[s][spin] / denominator))
        })
        .collect();
    field(lattice, |x| {
        let x = lattice.coordinates(x);
        let mut psi = Spinor::default();
        for (p, column) in &columns {
            let angle: f64 = (0..4).map(|mu| p[mu] * (x[mu] as f64 - source[mu] as f64)).sum();
            for (s, c) in column.iter().enumerate() {
                psi[s][colour] += Complex64::cis(angle) * c / volume as f64;
            }
        }
        psi
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use ferrite::gauge::generate;

    #[test]
    fn dagger_is_the_adjoint() {
        let lattice = Lattice::new([2, 4, 2, 6]).unwrap();
        let gauge = generate::random(lattice, 3);
        let (phi, psi) = (generate::random_source(lattice, 1), generate::random_source(lattice, 2));
        for time_sign in [1.0, -1.0] {
            let m = WilsonDirac { space: 0.4, ..WilsonDirac::new(&gauge, 0.3, time_sign) };
            let (a, b) = (dot(&phi, &m.apply(false, &psi)), dot(&m.apply(true, &phi), &psi));
            assert!((a - b).norm() < 1e-11, "{a} {b}");
            let (a, b) = (dot(&phi, &m.schur(false, &psi)), dot(&m.schur(true, &phi), &psi));
            assert!((a - b).norm() < 1e-11, "{a} {b}");
        }
    }
}
