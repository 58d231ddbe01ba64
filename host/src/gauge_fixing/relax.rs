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
//! let links = generate::weak_field(Lattice::new([4, 4, 4, 4])?, 1, 0.2);
//! let mut relaxation = Relaxation::new(links, Gauge::Coulomb, 1.5);
//! while relaxation.relax(10, 1e-10) > 1e-10 {}
//! assert!(theta(&relaxation.finish(), Gauge::Coulomb) <= 1e-10);
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
    let (lattice, links) = (gauge.lattice(), gauge.links());
    let sites = Sites::new(lattice, kind, lattice.volume());
    let squares = (0..lattice.volume()).into_par_iter().map(|x| sites.square_of_divergence(links, x));
    squares.collect::<Vec<_>>().iter().sum::<f64>() / (3 * lattice.volume()) as f64
}

/// An ω that takes few sweeps on a lattice of this size: 2 / (1 + 4 / L), with L the largest extent that counts, and 1.7 at
/// most. It was found by trying (`docs/measurements/spectrum.md`); on large lattices larger ones take more sweeps.
pub fn omega_for(lattice: Lattice, kind: Gauge) -> f64 {
    let largest = lattice.size()[..kind.directions()].iter().copied().max().unwrap_or(1);
    (2.0 / (1.0 + 4.0 / largest as f64)).clamp(1.0, 1.7)
}

/// Links on their way into a gauge.
#[derive(Clone, Debug)]
pub struct Relaxation {
    kind: Gauge,
    omega: f64,
    sweeps: usize,
    links: HostGauge,
    /// Of each time slice in Coulomb gauge; one for all in Landau gauge.
    parts: Vec<Part>,
    /// The sites of a part.
    sites: Sites,
}

/// What is relaxed by itself.
#[derive(Clone, Debug)]
struct Part {
    /// Its θ, where it was computed.
    theta: Option<f64>,
    /// How often it was swept.
    sweeps: usize,
    /// Of Coulomb gauge: what its sites were turned by so far, for links in t, which nothing depends on meanwhile.
    turned: Vec<Matrix>,
}

impl Relaxation {
    /// With ω from 1, plain relaxation, to below 2. Panics for others.
    pub fn new(links: HostGauge, kind: Gauge, omega: f64) -> Self {
        assert!((1.0..2.0).contains(&omega), "over-relaxation is from 1 to below 2");
        let [x, y, z, t] = links.lattice().size();
        let part = |sites| Part { theta: None, sweeps: 0, turned: vec![unit(); sites] };
        let parts: Vec<Part> = match kind {
            Gauge::Coulomb => (0..t).map(|_| part(x * y * z)).collect(),
            Gauge::Landau => vec![part(0)],
        };
        let sites = Sites::new(links.lattice(), kind, links.lattice().volume() / parts.len());
        Relaxation { kind, omega, sweeps: 0, links, parts, sites }
    }
    /// How many sweeps there were; of Coulomb gauge for the time slice that took most.
    pub fn sweeps(&self) -> usize {
        self.sweeps
    }
    /// So many sweeps, even sites before odd ones, and θ afterwards. Time slices in Coulomb gauge whose own θ is at `enough`
    /// already are left as they are.
    pub fn relax(&mut self, sweeps: usize, enough: f64) -> f64 {
        match self.kind {
            Gauge::Coulomb => self.relax_slices(sweeps, enough),
            Gauge::Landau => self.relax_all(sweeps),
        }
        self.sweeps = self.parts.iter().map(|part| part.sweeps).max().unwrap_or(0);
        self.parts.iter().filter_map(|part| part.theta).sum::<f64>() / self.parts.len() as f64
    }
    /// The links.
    pub fn finish(mut self) -> HostGauge {
        if self.kind == Gauge::Coulomb {
            let slices = self.parts.len();
            let space = self.links.lattice().volume() / slices;
            let turned = |x: usize| &self.parts[x / space].turned[x % space];
            self.links.links_mut().par_chunks_exact_mut(4).enumerate().for_each(|(x, links)| {
                let next = (x + space) % (slices * space);
                links[3] = product(&product(turned(x), &links[3]), &adjoint(turned(next)));
            });
        }
        self.links
    }

    /// Each time slice by itself: a core's cache has room for it, and links are turned where they are.
    fn relax_slices(&mut self, sweeps: usize, enough: f64) {
        let (omega, sites) = (self.omega, &self.sites);
        let space = sites.parity.len();
        self.links.links_mut().par_chunks_exact_mut(4 * space).zip(&mut self.parts).for_each(|(links, part)| {
            if part.theta.is_some_and(|theta| theta <= enough) {
                return;
            }
            for _ in 0..sweeps {
                for x in sites.of_parity.iter().flatten().map(|x| *x as usize) {
                    let g = sites.turn(links, x, omega);
                    let back = adjoint(&g);
                    for mu in 0..3 {
                        let (here, behind) = (4 * x + mu, 4 * sites.behind[x][mu] as usize + mu);
                        links[here] = product(&g, &links[here]);
                        links[behind] = product(&links[behind], &back);
                    }
                    part.turned[x] = product(&g, &part.turned[x]);
                }
                part.sweeps += 1;
                if part.sweeps.is_multiple_of(UNITARISE) {
                    links.chunks_exact_mut(4).flat_map(|links| &mut links[..3]).for_each(measure::reunitarise_link);
                    part.turned.iter_mut().for_each(measure::reunitarise_link);
                }
            }
            let sum: f64 = (0..space).map(|x| sites.square_of_divergence(links, x)).sum();
            part.theta = Some(sum / (3 * space) as f64);
        });
    }
    /// The whole lattice: of the sites of one parity no two share a link.
    fn relax_all(&mut self, sweeps: usize) {
        let sites = &self.sites;
        // Where the turn of a site is.
        let mut places = vec![0; sites.parity.len()];
        for (place, x) in sites.of_parity.iter().flat_map(|sites| sites.iter().enumerate()) {
            places[*x as usize] = place;
        }
        for _ in 0..sweeps {
            for (parity, those) in sites.of_parity.iter().enumerate() {
                let links = self.links.links();
                let turns: Vec<Matrix> = those.par_iter().map(|x| sites.turn(links, *x as usize, self.omega)).collect();
                self.links.links_mut().par_chunks_exact_mut(4).enumerate().for_each(|(x, links)| {
                    if sites.parity(x) == parity {
                        links.iter_mut().for_each(|link| *link = product(&turns[places[x]], link));
                    } else {
                        for (link, next) in links.iter_mut().zip(&sites.ahead[x]) {
                            *link = product(link, &adjoint(&turns[places[*next as usize]]));
                        }
                    }
                });
            }
            let part = &mut self.parts[0];
            part.sweeps += 1;
            if part.sweeps.is_multiple_of(UNITARISE) {
                self.links.links_mut().par_iter_mut().for_each(measure::reunitarise_link);
            }
        }
        self.parts[0].theta = Some(theta(&self.links, self.kind));
    }
}

/// The sites of a part of a lattice whose directions that count are whole, so that no neighbour is elsewhere.
#[derive(Clone, Debug)]
struct Sites {
    directions: usize,
    ahead: Vec<[u32; 4]>,
    behind: Vec<[u32; 4]>,
    /// Sites by parity.
    of_parity: [Vec<u32>; 2],
    parity: Vec<u8>,
}

impl Sites {
    /// Of the first `count` sites: one time slice, or all.
    fn new(lattice: Lattice, kind: Gauge, count: usize) -> Self {
        let directions = kind.directions();
        let neighbours = |forward: bool| {
            let of = |x| {
                std::array::from_fn(|mu| if mu < directions { lattice.neighbour(x, mu, forward) as u32 } else { 0 })
            };
            (0..count).into_par_iter().map(of).collect()
        };
        let parity = |x: usize| (lattice.coordinates(x).iter().sum::<usize>() % 2) as u8;
        let parity: Vec<u8> = (0..count).map(parity).collect();
        let those = |p: u8| (0..count as u32).filter(|x| parity[*x as usize] == p).collect();
        let of_parity = [those(0), those(1)];
        Sites { directions, ahead: neighbours(true), behind: neighbours(false), of_parity, parity }
    }
    fn parity(&self, x: usize) -> usize {
        self.parity[x].into()
    }
    /// tr Δ(x) Δ†(x), with four links of each site.
    fn square_of_divergence(&self, links: &[Matrix], x: usize) -> f64 {
        let mut divergence = [[Complex64::ZERO; 3]; 3];
        for mu in 0..self.directions {
            let behind = self.behind[x][mu] as usize;
            for (link, sign) in [(&links[4 * x + mu], 1.0), (&links[4 * behind + mu], -1.0)] {
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
    }
    /// g(x): a step towards the largest Re tr g W, W = Σ U_μ(x) + U_μ†(x−μ̂), and beyond.
    fn turn(&self, links: &[Matrix], x: usize, omega: f64) -> Matrix {
        let mut w = [[Complex64::ZERO; 3]; 3];
        for mu in 0..self.directions {
            let behind = adjoint(&links[4 * self.behind[x][mu] as usize + mu]);
            for link in [&links[4 * x + mu], &behind] {
                w.iter_mut().flatten().zip(link.iter().flatten()).for_each(|(sum, u)| *sum += u);
            }
        }
        let mut g = unit();
        for (i, j) in [(0, 1), (0, 2), (1, 2)] {
            // The part of w in the quaternions, a₀ + i a·σ; its conjugate makes the trace largest.
            let a = [(w[i][i] + w[j][j]).re, (w[i][j] + w[j][i]).im, (w[i][j] - w[j][i]).re, (w[i][i] - w[j][j]).im];
            let Some(a) = normalised(a) else { continue };
            // About to the power of ω, and exactly for small angles: as far beyond as it is from 1.
            let [b0, b1, b2, b3] =
                match normalised([1.0 + omega * (a[0] - 1.0), omega * a[1], omega * a[2], omega * a[3]]) {
                    Some(beyond) => beyond,
                    None => a,
                };
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

/// A quaternion of norm 1; none of zero.
fn normalised(a: [f64; 4]) -> Option<[f64; 4]> {
    let norm = a.iter().map(|a| a * a).sum::<f64>().sqrt();
    (norm > 0.0).then(|| a.map(|a| a / norm))
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
            let mut relaxation = Relaxation::new(start.clone(), kind, 1.5);
            loop {
                let theta = relaxation.relax(7, 1e-20);
                if theta <= 1e-20 {
                    break;
                }
                assert!(relaxation.sweeps() < 5000, "{kind:?}: {theta}");
            }
            let links = relaxation.finish();
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
        for kind in [Gauge::Landau, Gauge::Coulomb] {
            let mut plain = Relaxation::new(start.clone(), kind, 1.0);
            let mut last = functional(&start, kind);
            for _ in 0..30 {
                plain.relax(1, 0.0);
                let now = functional(&plain.clone().finish(), kind);
                assert!(now > last - 1e-14, "{kind:?}: {now} {last}");
                last = now;
            }
        }
        let at_the_end = |omega: f64| {
            let mut relaxation = Relaxation::new(start.clone(), Gauge::Landau, omega);
            while relaxation.relax(1, 1e-10) > 1e-10 {
                assert!(relaxation.sweeps() < 2000);
            }
            functional(&relaxation.finish(), Gauge::Landau)
        };
        // F is off by θ over the smallest eigenvalue of its second derivative, about (2 sin π/16)² = 0.15.
        assert!((at_the_end(1.5) - at_the_end(1.0)).abs() < 1e-9);
        assert_eq!(functional(&HostGauge::unit(lattice), Gauge::Coulomb), 1.0);
        assert_eq!(theta(&HostGauge::unit(lattice), Gauge::Landau), 0.0);
    }
}
