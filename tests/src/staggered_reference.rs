//! Staggered fermions from their formulas, in double: naive, asqtad and HISQ. Fat links are sums over paths that are
//! listed step by step. Nothing here shares code with the kernels.
//!
//! M = m + ½ D, normalised as in Babich et al. 2011, eq. 3, with links F_μ(x) of one hop and L_μ(x) of three,
//!
//! (D v)(x) = Σ_μ η_μ(x) \[F_μ(x) v(x+μ̂) − F_μ†(x−μ̂) v(x−μ̂) + L_μ(x) v(x+3μ̂) − L_μ†(x−3μ̂) v(x−3μ̂)\].
//!
//! D† = −D. MILC's operator is 2m + D, twice this one. Links are without phases and signs: those of MILC have η_μ(x) and
//! the sign of antiperiodic fermions inside before they are fattened. Around a staple η_ν(x) η_μ(x+ν̂) η_ν(x+μ̂) =
//! −η_μ(x), so that a coefficient of MILC changes its sign here for every direction in which a path goes aside by an
//! odd number of steps: those of three and seven links, not those of five, nor Lepage's, which goes aside by two.
use crate::clover_reference::path;
use crate::reference::{adjoint, combine, conjugate_gradients, field, multiply, norm2, residual};
use crate::testkit::matrix::{add, apply, invert, real_product, scale};
use ferrite::field::host::{ColourVector, HostColour, HostGauge, Matrix};
use ferrite::lattice::Lattice;
use num_complex::Complex64;
use rayon::prelude::*;

/// A direction, forward or backward.
pub type Step = (usize, bool);

/// A choice of η_μ(x) = ±1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EtaPhases {
    /// η_x = (−1)^t, η_y = (−1)^(t+x), η_z = (−1)^(t+x+y), η_t = 1.
    Milc,
    /// η_x = 1, η_y = (−1)^x, η_z = (−1)^(x+y), η_t = (−1)^(x+y+z), as in CL2QCD.
    Standard,
}

impl EtaPhases {
    /// η_μ(x)
    pub fn eta(self, mu: usize, x: [usize; 4]) -> f64 {
        // η_μ counts the coordinates before μ, in an order that differs.
        let order = match self {
            EtaPhases::Milc => [3, 0, 1, 2],
            EtaPhases::Standard => [0, 1, 2, 3],
        };
        sign(order.into_iter().take_while(|&nu| nu != mu).map(|nu| x[nu]).sum())
    }
}

/// (−1)^n
fn sign(n: usize) -> f64 {
    if n.is_multiple_of(2) { 1.0 } else { -1.0 }
}

/// Place of the boundary condition in t.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Boundary {
    /// A factor, 1 or −1, for each time that a hop crosses the end of the lattice.
    Sign(f64),
    /// Antiperiodic, with e^{iπ/T} for every step in t.
    Spread,
}

impl Boundary {
    /// The factor of a hop of that many steps from the time t.
    pub fn factor(self, lattice: Lattice, mu: usize, t: usize, steps: i64) -> Complex64 {
        let extent = lattice.size()[3] as i64;
        match self {
            _ if mu != 3 => Complex64::ONE,
            // A hop of three steps crosses twice where T = 2 and t = 1.
            Boundary::Sign(sign) => sign.powi((t as i64 + steps).div_euclid(extent) as i32).into(),
            Boundary::Spread => Complex64::cis(std::f64::consts::PI * steps as f64 / extent as f64),
        }
    }
}

/// Coefficients of the paths from x to x+μ̂ that make a fat link, and of the long link; for links without phases.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct LinkCoefficients {
    /// U_μ(x)
    pub one_link: f64,
    /// ν μ −ν
    pub three: f64,
    /// ν ρ μ −ρ −ν
    pub five: f64,
    /// ν ρ σ μ −σ −ρ −ν
    pub seven: f64,
    /// ν ν μ −ν −ν
    pub lepage: f64,
    /// μ μ μ, from x to x+3μ̂
    pub naik: f64,
}

impl LinkCoefficients {
    /// Thin links alone.
    pub fn naive() -> Self {
        LinkCoefficients { one_link: 1.0, ..Default::default() }
    }
    /// Asqtad with the tadpole factor u_0: 1/u_0 for every link of a path after the first.
    pub fn asqtad(u0: f64) -> Self {
        // 5/8 is ⅛ as in fat7, ⅜ that cancels Lepage's paths, ⅛ that cancels the long link.
        LinkCoefficients {
            one_link: 5.0 / 8.0,
            three: 1.0 / 16.0 / u0.powi(2),
            five: 1.0 / 64.0 / u0.powi(4),
            seven: 1.0 / 384.0 / u0.powi(6),
            lepage: -1.0 / 16.0 / u0.powi(4),
            naik: -1.0 / 24.0 / u0.powi(2),
        }
    }
    /// The first level of HISQ, which couples to gluons of momentum k with Π_ν ½ (1 + cos k_ν).
    pub fn fat7() -> Self {
        LinkCoefficients { lepage: 0.0, naik: 0.0, one_link: 1.0 / 8.0, ..Self::asqtad(1.0) }
    }
    /// The second level of HISQ with the correction ε of the Naik term. Lepage's coefficient is twice that of asqtad,
    /// because both levels of smearing have errors of a².
    pub fn hisq(epsilon: f64) -> Self {
        LinkCoefficients {
            one_link: 1.0 + epsilon / 8.0,
            lepage: -1.0 / 8.0,
            naik: -(1.0 + epsilon) / 24.0,
            ..Self::asqtad(1.0)
        }
    }
    /// All paths from x to x+μ̂, each with its coefficient.
    pub fn paths(&self, mu: usize) -> Vec<(f64, Vec<Step>)> {
        let twice = |aside: Vec<Step>| vec![aside[0]; 2];
        let families = [
            (self.one_link, ways_aside(mu, 0)),
            (self.three, ways_aside(mu, 1)),
            (self.five, ways_aside(mu, 2)),
            (self.seven, ways_aside(mu, 3)),
            (self.lepage, ways_aside(mu, 1).into_iter().map(twice).collect()),
        ];
        let family = |(c, ways): (f64, Vec<Vec<Step>>)| ways.into_iter().map(move |aside| (c, detour(mu, &aside)));
        families.into_iter().flat_map(family).collect()
    }
    /// The sum of the coefficients of all paths: the fat link of unit links.
    pub fn sum(&self) -> f64 {
        self.one_link + 6.0 * self.three + 24.0 * self.five + 48.0 * self.seven + 6.0 * self.lepage
    }
    /// Lattice momentum s(p), which replaces p on unit links: D² = −4 Σ_μ s(p_μ)², with s(p) = c_1 sin p + c_3 sin 3p.
    pub fn free_momentum(&self, p: f64) -> f64 {
        self.sum() * p.sin() + self.naik * (3.0 * p).sin()
    }
}

/// All lists of n steps in different directions other than μ, in all orders: 1, 6, 24, 48 for n = 0, 1, 2, 3.
pub fn ways_aside(mu: usize, n: usize) -> Vec<Vec<Step>> {
    if n == 0 {
        return vec![Vec::new()];
    }
    let mut ways = Vec::new();
    for shorter in ways_aside(mu, n - 1) {
        for nu in (0..4).filter(|&nu| nu != mu && shorter.iter().all(|step| step.0 != nu)) {
            ways.extend([true, false].map(|forward| [shorter.clone(), vec![(nu, forward)]].concat()));
        }
    }
    ways
}

/// The path that goes aside, one step along μ, and back in reverse order.
pub fn detour(mu: usize, aside: &[Step]) -> Vec<Step> {
    let back = aside.iter().rev().map(|&(nu, forward)| (nu, !forward));
    aside.iter().copied().chain([(mu, true)]).chain(back).collect()
}

/// Links from what they are at every site and in every direction.
pub fn links(lattice: Lattice, link: impl Fn(usize, usize) -> Matrix + Send + Sync) -> HostGauge {
    HostGauge::from_links(lattice, (0..4 * lattice.volume()).into_par_iter().map(|k| link(k / 4, k % 4)).collect())
}

/// F_μ(x) = Σ c P over all paths P from x to x+μ̂.
pub fn fat_links(gauge: &HostGauge, coefficients: &LinkCoefficients) -> HostGauge {
    let paths: [_; 4] = std::array::from_fn(|mu| coefficients.paths(mu));
    links(gauge.lattice(), |site, mu| {
        let add_path = |sum: Matrix, (c, steps): &(f64, Vec<Step>)| add(&sum, (*c).into(), &path(gauge, site, steps));
        paths[mu].iter().fold(Matrix::default(), add_path)
    })
}

/// L_μ(x) = c U_μ(x) U_μ(x+μ̂) U_μ(x+2μ̂)
pub fn long_links(gauge: &HostGauge, c: f64) -> HostGauge {
    links(gauge.lattice(), |site, mu| scale(c.into(), &path(gauge, site, &[(mu, true); 3])))
}

/// V (V†V)^{−½}, the matrix of U(3) that is nearest to V, by Newton's iteration W → ½ (W + W^{−†}). Panics if V is
/// singular.
pub fn project(v: &Matrix) -> Matrix {
    let mut w = *v;
    for _ in 0..100 {
        let next = scale(0.5.into(), &add(&w, Complex64::ONE, &adjoint(&invert(&w))));
        let change = add(&next, -Complex64::ONE, &w);
        w = next;
        if real_product(&change, &change) < 1e-30 {
            return w;
        }
    }
    panic!("no unitary matrix is nearest to {v:?}");
}

/// W of HISQ: fat7 links, each made unitary.
pub fn unitary_links(gauge: &HostGauge) -> HostGauge {
    let v = fat_links(gauge, &LinkCoefficients::fat7());
    links(gauge.lattice(), |site, mu| project(v.link(site, mu)))
}

/// The links of an improved operator.
pub struct ReferenceLinks {
    /// F
    pub fat: HostGauge,
    /// L
    pub long: HostGauge,
}

impl ReferenceLinks {
    /// Makes the links of an operator from paths of `gauge`.
    pub fn new(gauge: &HostGauge, coefficients: &LinkCoefficients) -> Self {
        ReferenceLinks { fat: fat_links(gauge, coefficients), long: long_links(gauge, coefficients.naik) }
    }
    /// Asqtad with the tadpole factor u_0.
    pub fn asqtad(gauge: &HostGauge, u0: f64) -> Self {
        Self::new(gauge, &LinkCoefficients::asqtad(u0))
    }
    /// HISQ with the correction ε of the Naik term.
    pub fn hisq(gauge: &HostGauge, epsilon: f64) -> Self {
        Self::new(&unitary_links(gauge), &LinkCoefficients::hisq(epsilon))
    }
    /// M on these links.
    pub fn operator(&self, mass: f64, phases: EtaPhases, boundary: Boundary) -> StaggeredDirac<'_> {
        StaggeredDirac { fat: &self.fat, long: Some(&self.long), mass, phases, boundary }
    }
}

/// U v
pub fn transport(u: &Matrix, v: &ColourVector) -> ColourVector {
    apply(u, v)
}

/// The site that many steps along μ.
pub fn shift(lattice: Lattice, mut x: [usize; 4], mu: usize, steps: i64) -> usize {
    x[mu] = (x[mu] as i64 + steps).rem_euclid(lattice.size()[mu] as i64) as usize;
    lattice.index(x)
}

/// A staggered operator.
#[derive(Clone, Copy)]
pub struct StaggeredDirac<'a> {
    /// F, or the thin links of the naive operator.
    pub fat: &'a HostGauge,
    /// L, if the operator has long links.
    pub long: Option<&'a HostGauge>,
    /// m
    pub mass: f64,
    /// η
    pub phases: EtaPhases,
    /// Boundary condition in t.
    pub boundary: Boundary,
}

impl<'a> StaggeredDirac<'a> {
    /// Makes the naive operator, on thin links.
    pub fn naive(gauge: &'a HostGauge, mass: f64, phases: EtaPhases, boundary: Boundary) -> Self {
        StaggeredDirac { fat: gauge, long: None, mass, phases, boundary }
    }
    /// D v
    pub fn derivative(&self, v: &HostColour) -> HostColour {
        let lattice = self.fat.lattice();
        field(lattice, |site| {
            let x = lattice.coordinates(site);
            let mut sum = ColourVector::default();
            for mu in 0..4 {
                let eta = self.phases.eta(mu, x);
                let mut hop = |factor: f64, steps: i64, link: &Matrix| {
                    let factor = factor * self.boundary.factor(lattice, mu, x[3], steps);
                    let term = transport(link, &v.sites()[shift(lattice, x, mu, steps)]);
                    sum.iter_mut().zip(term).for_each(|(to, h)| *to += factor * h);
                };
                for (steps, links) in [(1, Some(self.fat)), (3, self.long)] {
                    let Some(links) = links else { continue };
                    hop(eta, steps, links.link(site, mu));
                    hop(-eta, -steps, &adjoint(links.link(shift(lattice, x, mu, -steps), mu)));
                }
            }
            sum
        })
    }
    /// M v, or M† v.
    pub fn apply(&self, dagger: bool, v: &HostColour) -> HostColour {
        let half = if dagger { -0.5 } else { 0.5 };
        combine(&[(self.mass.into(), v), (half.into(), &self.derivative(v))])
    }
    /// M†M v = m² v − ¼ D² v. Parities do not mix: where v is on one parity only, so is this.
    pub fn normal(&self, v: &HostColour) -> HostColour {
        let twice = self.derivative(&self.derivative(v));
        combine(&[((self.mass * self.mass).into(), v), ((-0.25).into(), &twice)])
    }
    /// (M†M)⁻¹ b by conjugate gradients; on one parity if b is. Panics if that does not converge.
    pub fn solve_normal(&self, b: &HostColour, tol: f64) -> HostColour {
        conjugate_gradients(|v| self.normal(v), b.clone(), |_, rr| rr <= tol * tol * norm2(b))
    }
    /// M⁻¹ b = M† (M†M)⁻¹ b. Panics if conjugate gradients do not converge.
    pub fn solve(&self, b: &HostColour, tol: f64) -> HostColour {
        self.apply(true, &self.solve_normal(b, tol))
    }
    /// ‖b − M x‖ / ‖b‖
    pub fn residual(&self, b: &HostColour, x: &HostColour) -> f64 {
        residual(b, &self.apply(false, x))
    }
}

/// v after the gauge transformation g: g(x) v(x).
pub fn transform_colour(v: &HostColour, g: &[Matrix]) -> HostColour {
    field(v.lattice(), |x| transport(&g[x], &v.sites()[x]))
}

/// Links of that many steps after the gauge transformation g: g(x) U_μ(x) g†(x + steps · μ̂).
pub fn transform_hops(gauge: &HostGauge, g: &[Matrix], steps: i64) -> HostGauge {
    let lattice = gauge.lattice();
    links(lattice, |site, mu| {
        let end = shift(lattice, lattice.coordinates(site), mu, steps);
        multiply(&multiply(&g[site], gauge.link(site, mu)), &adjoint(&g[end]))
    })
}
