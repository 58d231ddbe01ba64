//! The clover term on a device.
use super::gauge_field::GaugeField;
use crate::backend::{DeviceBuffer, view};
use crate::domain::{DeviceError, Domain, Result};
use gpu_kernels::clover::{
    CLOVER_CONVERT, CLOVER_EXPONENTIAL, CLOVER_INVERSE, CLOVER_TERM, CloverConvert, CloverExponential, CloverInverse,
    CloverTerm,
};
use gpu_kernels::field::Clover;
use gpu_kernels::storage::padded;
use gpu_kernels::{Format, Precision};

/// The clover term A and its inverse on all sites, each as two Hermitian 6×6 blocks per site in one precision.
pub struct DeviceClover {
    domain: Domain,
    term: [DeviceBuffer; 2],
    inverse: [DeviceBuffer; 2],
    diagonal: f64,
    precision: Precision,
}

/// Two Hermitian 6×6 blocks for each site of one parity, stored like those of a clover term: times ½.
pub(crate) struct HermitianBlocks {
    buffer: DeviceBuffer,
    sites: usize,
    precision: Precision,
}

impl HermitianBlocks {
    /// Allocates blocks; the error about too little memory names `what`.
    pub fn empty(domain: &Domain, precision: Precision, what: &str) -> Result<Self> {
        let sites = domain.half_sites() as usize;
        let buffer = domain.backend().allocate(DeviceClover::bytes_for(precision, sites), what)?;
        Ok(HermitianBlocks { buffer, sites, precision })
    }
    /// Computes C = (i/2) Σ_{μ<ν} c_μν σ_μν F̂_μν on both parities: the clover term without its constant part, with the coefficients of
    /// [`DeviceClover::new`], in double precision.
    pub fn of_field_strength(gauge: &GaugeField, coefficients: [f64; 2]) -> Result<[Self; 2]> {
        gauge.expect_in(Precision::Double)?;
        let half = || Self::empty(gauge.domain(), Precision::Double, "the clover term without its number");
        let both = [half()?, half()?];
        both.iter()
            .enumerate()
            .try_for_each(|(parity, out)| make_term(gauge, out.view(), parity, 0.0, coefficients))?;
        Ok(both)
    }
    /// Returns the blocks as kernels use them. The blocks must outlive the view.
    pub fn view(&self) -> Clover {
        view::clover(&self.buffer, self.sites, self.precision.clover_bytes())
    }
}

/// Writes the blocks of A on the sites of a parity.
fn make_term(gauge: &GaugeField, out: Clover, parity: usize, diagonal: f64, coefficients: [f64; 2]) -> Result {
    let (domain, lattice, parity) = (gauge.domain(), gauge.bordered(), parity as u32);
    let kernel = CloverTerm { links: gauge.both(), lattice, out, parity, diagonal, coefficients };
    Ok(domain.backend().launch(&CLOVER_TERM, Format::NONE, &kernel, domain.half_sites(), 1)?)
}

impl DeviceClover {
    fn empty(domain: &Domain, precision: Precision, diagonal: f64) -> Result<Self> {
        let what = format!("the {precision} clover term on {}", domain.local());
        let bytes = Self::bytes_for(precision, domain.half_sites() as usize);
        let half = || domain.backend().allocate(bytes, &what);
        let (term, inverse) = ([half()?, half()?], [half()?, half()?]);
        Ok(DeviceClover { domain: domain.clone(), term, inverse, diagonal, precision })
    }
    /// Returns the bytes of the blocks of A, or of A⁻¹, on `sites` sites of one parity.
    pub fn bytes_for(precision: Precision, sites: usize) -> usize {
        padded(sites) * precision.clover_bytes()
    }
    /// Returns the domain on which the term is stored.
    pub fn domain(&self) -> &Domain {
        &self.domain
    }
    /// Returns the precision of the stored numbers.
    pub fn precision(&self) -> Precision {
        self.precision
    }
    /// Returns the value of the term where links are 1, which contains all its dependence on mass and anisotropy.
    pub fn diagonal(&self) -> f64 {
        self.diagonal
    }
    /// Returns A or A⁻¹ on the sites of `parity`. The view must not outlive the field.
    pub(crate) fn blocks(&self, parity: usize, inverse: bool) -> Clover {
        self.view(if inverse { &self.inverse[parity] } else { &self.term[parity] })
    }
    fn view(&self, blocks: &DeviceBuffer) -> Clover {
        view::clover(blocks, self.domain.half_sites() as usize, self.precision.clover_bytes())
    }
    /// Computes A = `diagonal` + (i/2) Σ_{μ<ν} c_μν σ_μν F̂_μν with the four-leaf field strength of `gauge`, c_μν = `space` in the spatial
    /// and `time` in the temporal planes (Babich, Clark and Joó 2010, eq. 2; normalised as Chroma's), in double precision.
    pub fn new(gauge: &GaugeField, diagonal: f64, space: f64, time: f64) -> Result<Self> {
        gauge.expect_in(Precision::Double)?;
        let domain = gauge.domain();
        let clover = Self::empty(domain, Precision::Double, diagonal)?;
        for parity in 0..2 {
            make_term(gauge, clover.blocks(parity, false), parity, diagonal, [space, time])?;
            let inverse = CloverInverse { input: clover.blocks(parity, false), out: clover.blocks(parity, true) };
            domain.backend().launch(&CLOVER_INVERSE, Format::NONE, &inverse, domain.half_sites(), 1)?;
        }
        Ok(clover)
    }
    /// Replaces A = d + X by d exp(X/d), with the inverse: the exponential clover term (Francis et al. 2020, eq. 2).
    ///
    /// # Errors
    /// [`DeviceError::OtherFormat`] for a term that is not in double precision, and failures of the device.
    pub fn exponential(self) -> Result<Self> {
        self.expect_double()?;
        for parity in 0..2 {
            let (term, inverse) = (self.blocks(parity, false), self.blocks(parity, true));
            let kernel = CloverExponential { term, inverse, diagonal: self.diagonal };
            let sites = self.domain.half_sites();
            self.domain.backend().launch(&CLOVER_EXPONENTIAL, Format::NONE, &kernel, sites, 1)?;
        }
        Ok(self)
    }
    fn expect_double(&self) -> Result {
        if self.precision == Precision::Double {
            return Ok(());
        }
        let (found, expected) = (Format::of(self.precision), Format::of(Precision::Double));
        Err(DeviceError::OtherFormat { found, expected })
    }
    /// Copies a term in double precision to another precision; every element is rounded to nearest.
    ///
    /// # Errors
    /// [`DeviceError::OtherFormat`] for a term that is not in double precision, and failures of the device.
    pub fn convert(&self, precision: Precision) -> Result<Self> {
        self.expect_double()?;
        let out = Self::empty(&self.domain, precision, self.diagonal)?;
        let (backend, format, sites) = (self.domain.backend(), Format::of(precision), self.domain.half_sites());
        for parity in 0..2 {
            for inverse in [false, true] {
                let kernel = CloverConvert { input: self.blocks(parity, inverse), out: out.blocks(parity, inverse) };
                backend.launch(&CLOVER_CONVERT, format, &kernel, sites, 1)?;
            }
        }
        Ok(out)
    }
}
