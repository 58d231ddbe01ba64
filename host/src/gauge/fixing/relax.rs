//! Landau and Coulomb gauge by over-relaxation (Mandula and Ogilvie 1990), with steps in SU(2) subgroups (Cabibbo and Marinari
//! 1982).
//!
//! Gauge fixing maximises the functional F = Σ_x Σ_{μ<D} Re tr g(x) U_μ(x) g†(x+μ̂) / (3 D V) over gauge transformations g. D is 4 for
//! Landau gauge. For Coulomb gauge, D is 3, and the time slices are independent of each other. At a maximum, this divergence vanishes:
//!
//! Δ(x) = Σ_{μ<D} A_μ(x) − A_μ(x−μ̂), where A is the traceless part of (U − U†)/2i.
//!
//! θ = Σ_x tr Δ Δ† / (3 V) measures the distance of links from the gauge. F has many maxima (Gribov copies); the initial links determine
//! which one is found.
//!
//! ```
//! use ferrite::backend::Cpu;
//! use ferrite::domain::Domain;
//! use ferrite::gauge::fixing::relax::{Gauge, Relaxation, theta};
//! use ferrite::gauge::generate;
//! use ferrite::lattice::Lattice;
//!
//! let domain = Domain::single(Cpu::new(None), Lattice::new([4, 4, 4, 4])?)?;
//! let links = generate::weak_field(domain.local(), 1, 0.2);
//! let mut relaxation = Relaxation::new(&domain, &links, Gauge::Coulomb, 1.5)?;
//! while relaxation.relax(10)?.theta > 1e-10 {}
//! assert!(theta(&relaxation.finish()?, Gauge::Coulomb) <= 1.0001e-10);
//! # Ok::<(), ferrite::domain::DeviceError>(())
//! ```
use crate::domain::{Domain, Result};
use crate::field::GaugeField;
use crate::field::host::HostGauge;
use crate::gauge::measure;
use crate::lattice::Lattice;
use gpu_kernels::Format;
use gpu_kernels::gauge_fixing::{DIVERGENCE, Divergence, RELAX_GAUGE, RelaxGauge};
use num_complex::Complex64;
use rayon::prelude::*;
use std::ops::ControlFlow;

/// Gauge to which links can be fixed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Gauge {
    /// Coulomb gauge: the divergence in space vanishes on each time slice.
    Coulomb,
    /// Landau gauge: the divergence in all four directions vanishes.
    Landau,
}

impl Gauge {
    /// Returns D, the number of directions of the gauge condition, from x.
    fn directions(self) -> usize {
        match self {
            Gauge::Coulomb => 3,
            Gauge::Landau => 4,
        }
    }
}

/// Computes the gauge functional F, which is 1 for unit links.
pub fn functional(gauge: &HostGauge, kind: Gauge) -> f64 {
    let d = kind.directions();
    let traces = gauge
        .links()
        .par_chunks_exact(4)
        .map(|links| links[..d].iter().map(|u| (0..3).map(|i| u[i][i].re).sum::<f64>()).sum::<f64>());
    // The sum has a fixed order, so that equal links give equal bits.
    traces.collect::<Vec<_>>().iter().sum::<f64>() / (3 * d * gauge.lattice().volume()) as f64
}

/// Computes θ, the mean square of the divergence, from the links of this lattice. For Coulomb gauge, the lattice may be a part of a larger
/// one in t.
pub fn theta(gauge: &HostGauge, kind: Gauge) -> f64 {
    let lattice = gauge.lattice();
    let squares = (0..lattice.volume()).into_par_iter().map(|x| square_of_divergence(gauge, kind, x));
    squares.collect::<Vec<_>>().iter().sum::<f64>() / (3 * lattice.volume()) as f64
}

/// Computes tr Δ(x) Δ†(x) at one site.
fn square_of_divergence(gauge: &HostGauge, kind: Gauge, x: usize) -> f64 {
    let mut divergence = [[Complex64::ZERO; 3]; 3];
    for mu in 0..kind.directions() {
        let behind = gauge.lattice().neighbour(x, mu, false);
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
    divergence.iter().flatten().map(Complex64::norm_sqr).sum()
}

/// Returns a value of ω that needs few sweeps on a lattice of this size: 2 / (1 + 0.4 / L), where L is the largest extent in the directions
/// of the gauge condition. The formula was found empirically (`docs/measurements/spectrum.md`). A larger ω needs about 13 / (2 − ω) sweeps,
/// and a smaller one many more.
pub fn omega_for(lattice: Lattice, kind: Gauge) -> f64 {
    let largest = lattice.size()[..kind.directions()].iter().copied().max().unwrap_or(1);
    2.0 / (1.0 + 0.4 / largest as f64)
}

/// Links on a device during gauge fixing by over-relaxation.
pub struct Relaxation {
    kind: Gauge,
    omega: f64,
    sweeps: usize,
    links: GaugeField,
}

impl Relaxation {
    /// *Collective.* Starts a relaxation with the parameter ω; ω = 1 is relaxation without over-relaxation. Panics unless 1 ≤ ω < 2.
    ///
    /// # Errors
    /// Fails if `links` are not on this process's part of the lattice, or if the device or the communication fails.
    pub fn new(domain: &Domain, links: &HostGauge, kind: Gauge, omega: f64) -> Result<Self> {
        assert!((1.0..2.0).contains(&omega), "over-relaxation is from 1 to below 2");
        Ok(Relaxation { kind, omega, sweeps: 0, links: GaugeField::upload(domain, links)? })
    }
    /// Returns the number of sweeps performed so far.
    pub fn sweeps(&self) -> usize {
        self.sweeps
    }
    /// *Collective.* Performs `sweeps` sweeps, each over even and then odd sites, and returns the distance of the links from the gauge.
    ///
    /// # Errors
    /// Fails if the device or the communication fails.
    pub fn relax(&mut self, sweeps: usize) -> Result<RelaxationState> {
        self.relax_while(sweeps, &mut || ControlFlow::Continue(()))
    }
    /// *Collective.* Relaxes like [`relax`](Self::relax), and calls `after` after each sweep. Ends early if `after` returns `Break`, which
    /// it must do either on all processes or on none.
    ///
    /// # Errors
    /// Fails if the device or the communication fails.
    pub fn relax_while(
        &mut self,
        sweeps: usize,
        after: &mut dyn FnMut() -> ControlFlow<()>,
    ) -> Result<RelaxationState> {
        for _ in 0..sweeps {
            for parity in 0..2 {
                let at = self.links.star_with_ends(parity, self.kind.directions() as u32);
                let sites = at.lattice.inner.sites(&at.lattice.geometry);
                let kernel = RelaxGauge { at, omega: self.omega };
                self.links.domain().backend().launch(&RELAX_GAUGE, Format::NONE, &kernel, sites, 1)?;
                self.links.fill_border()?;
            }
            self.sweeps += 1;
            // A launch may return before its work is done, so `after` would be called too early without this wait.
            self.links.domain().backend().synchronize()?;
            if after().is_break() {
                break;
            }
        }
        self.state()
    }
    /// *Collective.* Returns the distance of the links from the gauge.
    ///
    /// # Errors
    /// Fails if the device or the communication fails.
    pub fn state(&self) -> Result<RelaxationState> {
        let (domain, directions) = (self.links.domain(), self.kind.directions());
        for parity in 0..2 {
            let kernel = Divergence { at: self.links.star(parity, directions as u32) };
            let size = (domain.half_sites(), 1);
            domain.backend().reduce(&DIVERGENCE, Format::NONE, &kernel, size, 2 * parity as usize)?;
        }
        let mut sums = [0.0; 4];
        domain.sums(&mut sums)?;
        let sites = (3 * domain.global().volume()) as f64;
        Ok(RelaxationState {
            theta: (sums[0] + sums[2]) / sites,
            functional: (sums[1] + sums[3]) / (directions as f64 * sites),
        })
    }
    /// *Collective.* Returns the mean plaquettes, which are invariant under gauge transformations.
    ///
    /// # Errors
    /// Fails if the device or the communication fails.
    pub fn plaquette(&self) -> Result<measure::Plaquettes> {
        Ok(self.links.plaquette()?.0)
    }
    /// Returns the relaxed links of this process's part of the lattice.
    ///
    /// # Errors
    /// Fails if the device fails.
    pub fn finish(self) -> Result<HostGauge> {
        self.links.download()
    }
}

/// Distance of links from a gauge.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RelaxationState {
    /// Mean square θ of the divergence.
    pub theta: f64,
    /// Gauge functional F.
    pub functional: f64,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::backend::Cpu;
    use crate::field::host::Matrix;
    use crate::gauge::generate;
    use crate::gauge::su3::{adjoint, product, unit};

    fn relaxation(links: &HostGauge, kind: Gauge, omega: f64) -> Relaxation {
        let domain = Domain::single(Cpu::new(None), links.lattice()).unwrap();
        Relaxation::new(&domain, links, kind, omega).unwrap()
    }

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
            let mut relaxation = relaxation(&start, kind, 1.5);
            let first = relaxation.state().unwrap();
            assert!((first.theta / found - 1.0).abs() < 1e-12, "{kind:?}: {first:?} {found}");
            assert!((first.functional - functional(&start, kind)).abs() < 1e-13, "{kind:?}: {first:?}");
            while relaxation.relax(7).unwrap().theta > 1e-20 {
                assert!(relaxation.sweeps() < 5000, "{kind:?}: {:?}", relaxation.state());
            }
            let links = relaxation.finish().unwrap();
            // Rounding of single traces, 1e-16, over ε, squared, twelve times for each of eight generators.
            assert!(theta_by_differences(&links, kind) < 1e-20 + 1e-21);
            assert!(functional(&links, kind) > functional(&start, kind) + 0.01);
            let (before, after) = (measure::plaquette(&start), measure::plaquette(&links));
            // Products of a thousand turns.
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
            let mut plain = relaxation(&start, kind, 1.0);
            let mut last = functional(&start, kind);
            for _ in 0..30 {
                let now = plain.relax(1).unwrap().functional;
                assert!(now > last - 1e-14, "{kind:?}: {now} {last}");
                last = now;
            }
        }
        let at_the_end = |omega: f64| {
            let mut relaxation = relaxation(&start, Gauge::Landau, omega);
            while relaxation.relax(1).unwrap().theta > 1e-10 {
                assert!(relaxation.sweeps() < 2000);
            }
            relaxation.state().unwrap().functional
        };
        // F is off by θ over the smallest eigenvalue of its second derivative, about (2 sin π/16)² = 0.15.
        assert!((at_the_end(1.5) - at_the_end(1.0)).abs() < 1e-9);
        assert_eq!(functional(&HostGauge::unit(lattice), Gauge::Coulomb), 1.0);
        assert_eq!(theta(&HostGauge::unit(lattice), Gauge::Landau), 0.0);
    }
}
