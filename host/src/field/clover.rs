//! The clover term on a device.
use super::thin::ThinGauge;
use crate::backend::{Buffer, view};
use crate::domain::{Domain, Result};
use gpu_kernels::clover::{CloverConvert, CloverInverse, CloverTerm};
use gpu_kernels::field::Clover;
use gpu_kernels::storage::{CloverFormat, Double, TILE};
use std::marker::PhantomData;

/// The clover term A and its inverse on all sites: for each, two Hermitian 6×6 blocks per site in precision `P`.
pub struct DeviceClover<P> {
    domain: Domain,
    term: [Buffer; 2],
    inverse: [Buffer; 2],
    diagonal: f64,
    precision: PhantomData<P>,
}

impl<P: CloverFormat> DeviceClover<P> {
    fn empty(domain: &Domain, diagonal: f64) -> Result<Self> {
        let what = format!("the {} clover term on {}", P::NAME, domain.local());
        let half = || domain.backend().allocate(Self::bytes_for(domain.half_sites() as usize), &what);
        let (term, inverse) = ([half()?, half()?], [half()?, half()?]);
        Ok(DeviceClover { domain: domain.clone(), term, inverse, diagonal, precision: PhantomData })
    }
    /// Bytes of the blocks of A, or of A⁻¹, on `sites` sites of one parity.
    pub fn bytes_for(sites: usize) -> usize {
        sites.div_ceil(TILE) * TILE * P::CLOVER_BYTES
    }
    /// Where the field lives.
    pub fn domain(&self) -> &Domain {
        &self.domain
    }
    /// What it is where links are 1: all of it that depends on mass and anisotropy.
    pub fn diagonal(&self) -> f64 {
        self.diagonal
    }
    /// A on the sites of `parity`. The view must not outlive the field.
    pub(crate) fn term(&self, parity: usize) -> Clover<P> {
        view::clover(&self.term[parity], self.domain.half_sites() as usize)
    }
    /// A⁻¹ on the sites of `parity`. The view must not outlive the field.
    pub(crate) fn inverse(&self, parity: usize) -> Clover<P> {
        view::clover(&self.inverse[parity], self.domain.half_sites() as usize)
    }
}

impl DeviceClover<Double> {
    /// A = `diagonal` + (i/2) Σ_{μ<ν} c_μν σ_μν F̂_μν with the four-leaf field strength of `gauge`, c_μν = `space` in the
    /// spatial and `time` in the temporal planes (Babich, Clark and Joó 2010, eq. 2; normalised as Chroma's).
    pub fn new(gauge: &ThinGauge, diagonal: f64, space: f64, time: f64) -> Result<Self> {
        let domain = gauge.domain();
        let clover = Self::empty(domain, diagonal)?;
        for parity in 0..2 {
            let term = CloverTerm {
                links: gauge.both(),
                lattice: gauge.bordered(),
                out: clover.term(parity),
                parity: parity as u32,
                diagonal,
                coefficients: [space, time],
            };
            domain.backend().launch(&term, domain.half_sites(), 1)?;
            let inverse = CloverInverse { input: clover.term(parity), out: clover.inverse(parity) };
            domain.backend().launch(&inverse, domain.half_sites(), 1)?;
        }
        Ok(clover)
    }
    /// A copy in another precision, every element rounded to nearest.
    pub fn convert<P: CloverFormat>(&self) -> Result<DeviceClover<P>> {
        let out = DeviceClover::<P>::empty(&self.domain, self.diagonal)?;
        for parity in 0..2 {
            let term = CloverConvert { input: self.term(parity), out: out.term(parity) };
            let inverse = CloverConvert { input: self.inverse(parity), out: out.inverse(parity) };
            self.domain.backend().launch(&term, self.domain.half_sites(), 1)?;
            self.domain.backend().launch(&inverse, self.domain.half_sites(), 1)?;
        }
        Ok(out)
    }
}
