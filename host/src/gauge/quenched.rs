//! Quenched ensembles: SU(3) links with the weight exp(−S), where S = −(β/3) Σ Re tr P is the Wilson plaquette action.
//!
//! A sweep consists of heat-bath passes over all links (Cabibbo and Marinari 1982; Kennedy and Pendleton 1985) followed by over-relaxation
//! passes (Brown and Woch 1987), which preserve the action and move the links far. The documentation of the kernels,
//! [`gpu_kernels::heatbath`], has the formulas. Links are made unitary again whenever they change.
//!
//! Random numbers depend only on the seed, the site, the direction and the number of the heat-bath pass. They are the same on every
//! backend and with any number of threads. A run that is continued from its last configuration and pass gives the results of an
//! uninterrupted run.
//!
//! ```
//! use ferrite::backend::Cpu;
//! use ferrite::domain::Domain;
//! use ferrite::gauge::quenched::{Generator, Start};
//! use ferrite::lattice::Lattice;
//!
//! let domain = Domain::single(Cpu::new(None), Lattice::new([4, 4, 4, 4])?)?;
//! let mut generator = Generator::new(&domain, Start::Cold, 6.0, 42)?;
//! for _ in 0..10 {
//!     generator.sweep(1, 2)?;
//! }
//! let plaquette = generator.plaquette()?.mean;
//! assert!((0.5..0.8).contains(&plaquette));
//! let gauge = generator.gauge()?;
//! # Ok::<(), ferrite::domain::DeviceError>(())
//! ```
use super::{generate, measure};
use crate::domain::{Domain, Result};
use crate::field::GaugeField;
use crate::field::host::HostGauge;

use gpu_kernels::heatbath::{HEATBATH, Heatbath, OVERRELAX, Overrelax};
use gpu_kernels::{Format, Precision};
use std::ops::ControlFlow;

/// Largest number of heat-bath and over-relaxation passes that a user can request in one run. So many passes take years on a lattice of any
/// size.
pub const MOST_PASSES: u64 = 1_000_000_000;

/// Initial configuration of a Markov chain.
#[derive(Clone, Copy, Debug)]
pub enum Start<'a> {
    /// Cold start: all links are 1.
    Cold,
    /// Hot start: independent links with the Haar measure, from the seed of the chain.
    Hot,
    /// Given links, and the number of heat-bath passes that have produced them with the same seed; 0 for links from elsewhere.
    Links(&'a HostGauge, u32),
}

/// Markov chain of gauge fields on a device.
pub struct Generator {
    links: GaugeField,
    beta: f64,
    seed: u64,
    passes: u32,
    /// Memory for the links before a sweep that may be interrupted.
    before: Option<GaugeField>,
}

impl Generator {
    /// *Collective.* Starts a chain. The initial configuration is the same on every process grid. Panics if β is negative or not a number,
    /// or if the links of `start` are not on this process's part of the lattice.
    pub fn new(domain: &Domain, start: Start<'_>, beta: f64, seed: u64) -> Result<Self> {
        assert!(beta >= 0.0 && beta.is_finite(), "β is a number and not negative");
        let upload = |gauge: &HostGauge| GaugeField::upload(domain, gauge);
        let (links, passes) = match start {
            Start::Cold => (upload(&HostGauge::unit(domain.local()))?, 0),
            Start::Hot => (upload(&generate::random(domain.section(), seed))?, 0),
            Start::Links(gauge, passes) => (upload(gauge)?, passes),
        };
        Ok(Generator { links, beta, seed, passes, before: None })
    }
    /// *Collective.* Performs `heatbath` heat-bath passes over all links, and then `overrelax` over-relaxation passes.
    pub fn sweep(&mut self, heatbath: u32, overrelax: u32) -> Result {
        self.passes_while(heatbath, overrelax, &mut |_| ControlFlow::Continue(())).map(drop)
    }
    /// *Collective.* Sweeps like [`sweep`](Self::sweep), and calls `after` between two passes with the number of completed passes. If
    /// `after` returns `Break`, which it must do either on all processes or on none, the sweep ends, and the links before the sweep are
    /// restored. This needs memory for a second field of links. Returns whether the sweep was completed.
    ///
    /// # Errors
    /// Fails if the device fails.
    pub fn sweep_while(
        &mut self,
        heatbath: u32,
        overrelax: u32,
        after: &mut dyn FnMut(u32) -> ControlFlow<()>,
    ) -> Result<bool> {
        match &mut self.before {
            Some(before) => before.copy_from(&self.links)?,
            None => self.before = Some(self.links.copied()?),
        }
        let passes = self.passes;
        let is_done = self.passes_while(heatbath, overrelax, after)?;
        if let (false, Some(before)) = (is_done, &self.before) {
            self.links.copy_from(before)?;
            self.passes = passes;
        }
        Ok(is_done)
    }
    /// Performs the passes of a sweep until `after` ends them. Returns whether all were completed.
    fn passes_while(
        &mut self,
        heatbath: u32,
        overrelax: u32,
        after: &mut dyn FnMut(u32) -> ControlFlow<()>,
    ) -> Result<bool> {
        let all = heatbath.saturating_add(overrelax);
        let mut done = 0;
        let mut ends = |domain: &Domain| -> Result<bool> {
            done += 1;
            if done >= all {
                return Ok(false);
            }
            // A launch may return before its work is done, so `after` would be called too early without this wait.
            domain.backend().synchronize()?;
            Ok(after(done).is_break())
        };
        let (domain, beta, seed) = (self.links.domain().clone(), self.beta, self.seed);
        let sublattices = || (0..8).map(|k| (k / 4, k % 4));
        for _ in 0..heatbath {
            let pass = self.passes;
            self.passes = self.passes.wrapping_add(1);
            for (parity, mu) in sublattices() {
                let at = self.links.sublattice(parity, mu);
                let (geometry, position) = (domain.geometry(), domain.position());
                let kernel = Heatbath { at, geometry, position, beta, seed, pass };
                domain.backend().launch(&HEATBATH, Format::of(Precision::Double), &kernel, domain.half_sites(), 1)?;
                self.links.fill_border()?;
            }
            if ends(&domain)? {
                return Ok(false);
            }
        }
        for _ in 0..overrelax {
            for (parity, mu) in sublattices() {
                let kernel = Overrelax { at: self.links.sublattice(parity, mu) };
                domain.backend().launch(&OVERRELAX, Format::of(Precision::Double), &kernel, domain.half_sites(), 1)?;
                self.links.fill_border()?;
            }
            if ends(&domain)? {
                return Ok(false);
            }
        }
        Ok(true)
    }
    /// Returns the number of heat-bath passes so far, including those of [`Start::Links`].
    pub fn passes(&self) -> u32 {
        self.passes
    }
    /// *Collective.* Computes the mean plaquettes on the device.
    pub fn plaquette(&self) -> Result<measure::Plaquettes> {
        Ok(self.links.plaquette()?.0)
    }
    /// Returns the current links of this process's part.
    pub fn gauge(&self) -> Result<HostGauge> {
        self.links.download()
    }
}
