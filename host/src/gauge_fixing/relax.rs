//! Landau and Coulomb gauge by over-relaxation (Mandula and Ogilvie 1990), with steps in SU(2) subgroups (Cabibbo and Marinari
//! 1982).
//!
//! Both are maxima over gauge transformations g of F = Σ_x Σ_{μ<D} Re tr g(x) U_μ(x) g†(x+μ̂) / (3 D V), with all four directions
//! for Landau and x, y, z for Coulomb gauge, where time slices do not know of each other. At a maximum the divergence
//!
//! Δ(x) = Σ_{μ<D} A_μ(x) − A_μ(x−μ̂), A = (U − U†)/2i without its trace,
//!
//! vanishes, and θ = Σ_x tr Δ Δ† / (3 V) says how far links are from it. There are many maxima, Gribov's copies; which one is
//! found depends on the links that one begins with.
//!
//! ```
//! use ferrite::gauge_fixing::relax::{Gauge, Relaxation, theta};
//! use ferrite::generate;
//! use ferrite::lattice::Lattice;
//!
//! let mut links = generate::weak_field(Lattice::new([4, 4, 4, 4])?, 1, 0.2);
//! let mut relaxation = Relaxation::new(Gauge::Coulomb, 1.7);
//! while theta(&links, Gauge::Coulomb) > 1e-10 {
//!     relaxation.sweep(&mut links);
//! }
//! # Ok::<(), ferrite::lattice::LatticeError>(())
//! ```
use crate::field::host::{HostGauge, Matrix};
use crate::lattice::Lattice;
use crate::matrix::{adjoint, product, unit};
use crate::measure;
use num_complex::Complex64;
use rayon::prelude::*;

/// Which gauge.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Gauge {
    /// Without divergence in space, each time by itself.
    Coulomb,
    /// Without divergence in all four directions.
    Landau,
}

impl Gauge {
    /// D: the first so many directions count.
    fn directions(self) -> usize {
        match self {
            Gauge::Coulomb => 3,
            Gauge::Landau => 4,
        }
    }
}

/// Links are put back into SU(3) after so many sweeps, in which rounding errors add up to less than 1e-13.
const UNITARISE: usize = 100;

/// F, which is 1 for unit links.
pub fn functional(gauge: &HostGauge, kind: Gauge) -> f64 {
    let d = kind.directions();
    let traces = gauge
        .links()
        .par_chunks_exact(4)
        .map(|links| links[..d].iter().map(|u| (0..3).map(|i| u[i][i].re).sum::<f64>()).sum::<f64>());
    // In a fixed order, so that the same links give the same number.
    traces.collect::<Vec<_>>().iter().sum::<f64>() / (3 * d * gauge.lattice().volume()) as f64
}

/// θ, by the links of this lattice: of a part of a lattice that is cut in t, that of Coulomb gauge is still right.
pub fn theta(gauge: &HostGauge, kind: Gauge) -> f64 {
    let lattice = gauge.lattice();
    let squares = (0..lattice.volume()).into_par_iter().map(|x| {
        let mut divergence = [[Complex64::ZERO; 3]; 3];
        for mu in 0..kind.directions() {
            let behind = lattice.neighbour(x, mu, false);
            for (link, sign) in [(gauge.link(x, mu), 1.0), (gauge.link(behind, mu), -1.0)] {
                for (i, row) in divergence.iter_mut().enumerate() {
                    for (j, sum) in row.iter_mut().enumerate() {
                        *sum += sign * (link[i][j] - link[j][i].conj()) / Complex64::new(0.0, 2.0);
                    }
                }
            }
        }
        let trace: Complex64 = (0..3).map(|i| divergence[i][i]).sum::<Complex64>() / 3.0;
        (0..3).for_each(|i| divergence[i][i] -= trace);
        divergence.iter().flatten().map(Complex64::norm_sqr).sum::<f64>()
    });
    squares.collect::<Vec<_>>().iter().sum::<f64>() / (3 * lattice.volume()) as f64
}

/// Sweeps over all sites.
#[derive(Clone, Debug)]
pub struct Relaxation {
    kind: Gauge,
    omega: f64,
    sweeps: usize,
}

impl Relaxation {
    /// With ω from 1, plain relaxation, to below 2. Panics for others.
    pub fn new(kind: Gauge, omega: f64) -> Self {
        assert!((1.0..2.0).contains(&omega), "over-relaxation is from 1 to below 2");
        Relaxation { kind, omega, sweeps: 0 }
    }
    /// How many there were.
    pub fn sweeps(&self) -> usize {
        self.sweeps
    }
    /// Over even sites, then over odd ones: of those of one parity no two share a link.
    pub fn sweep(&mut self, gauge: &mut HostGauge) {
        let lattice = gauge.lattice();
        for parity in 0..2 {
            let turns: Vec<Option<Matrix>> = (0..lattice.volume())
                .into_par_iter()
                .map(|x| is_of_parity(lattice, x, parity).then(|| self.turn(gauge, x)))
                .collect();
            // Each link has one end of this parity.
            gauge.links_mut().par_iter_mut().enumerate().for_each(|(index, link)| {
                let (x, mu) = (index / 4, index % 4);
                match &turns[x] {
                    Some(g) => *link = product(g, link),
                    None => {
                        if let Some(g) = &turns[lattice.neighbour(x, mu, true)] {
                            *link = product(link, &adjoint(g));
                        }
                    }
                }
            });
        }
        self.sweeps += 1;
        if self.sweeps.is_multiple_of(UNITARISE) {
            gauge.links_mut().par_iter_mut().for_each(measure::reunitarise_link);
        }
    }
    /// g(x): a step towards the largest Re tr g W, W = Σ U_μ(x) + U_μ†(x−μ̂), and beyond.
    fn turn(&self, gauge: &HostGauge, x: usize) -> Matrix {
        let lattice = gauge.lattice();
        let mut w = [[Complex64::ZERO; 3]; 3];
        for mu in 0..self.kind.directions() {
            let behind = adjoint(gauge.link(lattice.neighbour(x, mu, false), mu));
            for link in [gauge.link(x, mu), &behind] {
                w.iter_mut().flatten().zip(link.iter().flatten()).for_each(|(sum, u)| *sum += u);
            }
        }
        let mut g = unit();
        for (i, j) in [(0, 1), (0, 2), (1, 2)] {
            // The part of w in the quaternions, a₀ + i a·σ; its conjugate makes the trace largest.
            let a = [(w[i][i] + w[j][j]).re, (w[i][j] + w[j][i]).im, (w[i][j] - w[j][i]).re, (w[i][i] - w[j][j]).im];
            let norm = a.iter().map(|a| a * a).sum::<f64>().sqrt();
            if norm == 0.0 {
                continue;
            }
            // To the power of ω: the same axis, ω times the angle.
            let angle = (a[1..].iter().map(|a| a * a).sum::<f64>().sqrt() / norm).atan2(a[0] / norm);
            let sine = angle.sin();
            let scale = if sine.abs() < 1e-8 { self.omega } else { (self.omega * angle).sin() / sine };
            let [b0, b1, b2, b3] =
                [(self.omega * angle).cos(), scale * a[1] / norm, scale * a[2] / norm, scale * a[3] / norm];
            let (p, q) = (Complex64::new(b0, -b3), Complex64::new(-b2, -b1));
            for m in [&mut g, &mut w] {
                let (upper, lower) = (m[i], m[j]);
                m[i] = std::array::from_fn(|k| p * upper[k] + q * lower[k]);
                m[j] = std::array::from_fn(|k| p.conj() * lower[k] - q.conj() * upper[k]);
            }
        }
        g
    }
}

fn is_of_parity(lattice: Lattice, site: usize, parity: usize) -> bool {
    lattice.coordinates(site).iter().sum::<usize>() % 2 == parity
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::generate;

    /// θ by another way: the derivative of 3 D V F in each of Gell-Mann's eight directions at each site, by differences.
    fn theta_by_differences(gauge: &HostGauge, kind: Gauge) -> f64 {
        let lattice = gauge.lattice();
        let (o, l) = (Complex64::ZERO, Complex64::ONE);
        let i = Complex64::I;
        let r = Complex64::from(1.0 / 3f64.sqrt());
        let generators: [Matrix; 8] = [
            [[o, l, o], [l, o, o], [o, o, o]],
            [[o, -i, o], [i, o, o], [o, o, o]],
            [[l, o, o], [o, -l, o], [o, o, o]],
            [[o, o, l], [o, o, o], [l, o, o]],
            [[o, o, -i], [o, o, o], [i, o, o]],
            [[o, o, o], [o, o, l], [o, l, o]],
            [[o, o, o], [o, o, -i], [o, i, o]],
            [[r, o, o], [o, r, o], [o, o, -2.0 * r]],
        ];
        let step = 1e-4;
        let mut sum = 0.0;
        for x in 0..lattice.volume() {
            for generator in &generators {
                // exp(i ε λ) to second order will do: what is left falls with ε² in central differences.
                let value = |sign: f64| -> f64 {
                    let square = product(generator, generator);
                    let g: Matrix = std::array::from_fn(|a| {
                        std::array::from_fn(|b| {
                            unit()[a][b] + i * sign * step * generator[a][b] - 0.5 * step * step * square[a][b]
                        })
                    });
                    let trace = |m: &Matrix| (0..3).map(|k| m[k][k].re).sum::<f64>();
                    let one = |mu: usize| {
                        let behind = lattice.neighbour(x, mu, false);
                        trace(&product(&g, gauge.link(x, mu))) + trace(&product(gauge.link(behind, mu), &adjoint(&g)))
                    };
                    (0..kind.directions()).map(one).sum()
                };
                // dF/dε = −Σ tr λ A … = −tr λ Δ, and tr Δ Δ† = Σ (tr λ Δ)²/2 for Hermitian Δ without trace.
                sum += 0.5 * ((value(1.0) - value(-1.0)) / (2.0 * step)).powi(2);
            }
        }
        sum / (3 * lattice.volume()) as f64
    }

    #[test]
    fn divergences_vanish_where_the_functional_is_largest() {
        let lattice = Lattice::new([4, 2, 4, 4]).unwrap();
        for (kind, start) in [
            (Gauge::Landau, generate::weak_field(lattice, 4, 0.5)),
            (Gauge::Coulomb, generate::weak_field(lattice, 4, 0.5)),
        ] {
            // Differences have errors of ε², and of rounding over ε.
            let (found, expected) = (theta(&start, kind), theta_by_differences(&start, kind));
            assert!((found / expected - 1.0).abs() < 1e-6, "{kind:?}: {found} {expected}");
            let mut links = start.clone();
            let mut relaxation = Relaxation::new(kind, 1.5);
            while theta(&links, kind) > 1e-20 {
                relaxation.sweep(&mut links);
                assert!(relaxation.sweeps() < 5000, "{kind:?}: {}", theta(&links, kind));
            }
            // Rounding of single traces, 1e-16, over ε, squared, twelve times for each of eight generators.
            assert!(theta_by_differences(&links, kind) < 1e-20 + 1e-21);
            assert!(functional(&links, kind) > functional(&start, kind) + 0.01);
            let (before, after) = (measure::plaquette(&start), measure::plaquette(&links));
            // Products of a thousand turns, put back into SU(3) every hundred.
            assert!((before.spatial - after.spatial).abs() < 1e-12 && (before.temporal - after.temporal).abs() < 1e-12);
            assert!(measure::unitarity(&links).violation < 1e-13);
        }
    }

    /// Plain relaxation never makes the functional smaller, and over-relaxation ends at the same maximum.
    #[test]
    fn relaxation_climbs() {
        let lattice = Lattice::new([2, 2, 2, 16]).unwrap();
        let start = generate::weak_field(lattice, 5, 0.3);
        let mut links = start.clone();
        let mut plain = Relaxation::new(Gauge::Landau, 1.0);
        let mut last = functional(&links, Gauge::Landau);
        for _ in 0..30 {
            plain.sweep(&mut links);
            let now = functional(&links, Gauge::Landau);
            assert!(now > last - 1e-14, "{now} {last}");
            last = now;
        }
        let at_the_end = |omega: f64| {
            let mut links = start.clone();
            let mut relaxation = Relaxation::new(Gauge::Landau, omega);
            while theta(&links, Gauge::Landau) > 1e-10 {
                relaxation.sweep(&mut links);
                assert!(relaxation.sweeps() < 2000);
            }
            functional(&links, Gauge::Landau)
        };
        // F is off by θ over the smallest eigenvalue of its second derivative, about (2 sin π/16)² = 0.15.
        assert!((at_the_end(1.5) - at_the_end(1.0)).abs() < 1e-9);
        assert_eq!(functional(&HostGauge::unit(lattice), Gauge::Coulomb), 1.0);
        assert_eq!(theta(&HostGauge::unit(lattice), Gauge::Landau), 0.0);
    }
}
