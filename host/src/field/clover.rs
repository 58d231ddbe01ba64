//! The clover term on a device.
use super::array::DeviceArray;
use super::gauge_field::GaugeField;
use crate::backend::{DeviceBuffer, view};
use crate::domain::{DeviceError, Domain, Result};
use gpu_kernels::clover::{
    CLOVER_CONVERT, CLOVER_EXPONENTIAL, CLOVER_INVERSE, CLOVER_PACK, CLOVER_TERM, CloverConvert, CloverExponential,
    CloverInverse, CloverPack, CloverTerm,
};
use gpu_kernels::field::Clover;
use gpu_kernels::storage::padded;
use gpu_kernels::{Format, Precision};
use num_complex::Complex64;
use std::cmp::Ordering;

/// Hermitian 6×6 matrix of a clover term on the host, which acts on two spins of three colours; the index of a row or column is 3 · spin +
/// colour.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct HermitianBlock {
    /// Diagonal.
    pub diagonal: [f64; 6],
    /// Elements below the diagonal, row by row.
    pub lower: [Complex64; 15],
}

impl HermitianBlock {
    /// Returns all elements, row by row.
    pub fn matrix(&self) -> [[Complex64; 6]; 6] {
        let below = |row: usize, column: usize| self.lower[row * (row - 1) / 2 + column];
        std::array::from_fn(|row| {
            std::array::from_fn(|column| match row.cmp(&column) {
                Ordering::Equal => self.diagonal[row].into(),
                Ordering::Greater => below(row, column),
                Ordering::Less => below(column, row).conj(),
            })
        })
    }
}

/// The clover term A and its inverse on all sites, each as two Hermitian 6×6 blocks for each site, in one precision.
pub struct DeviceClover {
    domain: Domain,
    term: [DeviceBuffer; 2],
    inverse: [DeviceBuffer; 2],
    diagonal: f64,
    precision: Precision,
}

/// Two Hermitian 6×6 blocks for each site of one parity. The stored numbers are ½ of the elements, as for a clover term.
pub(crate) struct HermitianBlocks {
    buffer: DeviceBuffer,
    sites: usize,
    precision: Precision,
}

impl HermitianBlocks {
    /// Allocates the blocks of the sites of one parity; `what` names them in the error about too little memory.
    pub fn empty(domain: &Domain, precision: Precision, what: &str) -> Result<Self> {
        let sites = domain.half_sites() as usize;
        let buffer = domain.backend().allocate(DeviceClover::bytes_for(precision, sites), what)?;
        Ok(HermitianBlocks { buffer, sites, precision })
    }
    /// Computes C = (i/2) Σ_{μ<ν} c_μν σ_μν F̂_μν on both parities in double precision: the clover term without its constant part. The
    /// coefficients are the arguments `space` and `time` of [`DeviceClover::new`].
    pub fn of_field_strength(gauge: &GaugeField, coefficients: [f64; 2]) -> Result<[Self; 2]> {
        gauge.expect_in(Precision::Double)?;
        let half = || Self::empty(gauge.domain(), Precision::Double, "the field strength of the clover term");
        let both = [half()?, half()?];
        both.iter()
            .enumerate()
            .try_for_each(|(parity, out)| make_term(gauge, out.view(), parity, 0.0, coefficients))?;
        Ok(both)
    }
    /// Returns the blocks in the form that kernels use. The blocks must outlive the view.
    pub fn view(&self) -> Clover {
        view::clover(&self.buffer, self.sites, self.precision.clover_bytes())
    }
}

/// Computes A = `diagonal` + (i/2) Σ_{μ<ν} c_μν σ_μν F̂_μν on the sites of a parity, and writes its blocks to `out`.
fn make_term(gauge: &GaugeField, out: Clover, parity: usize, diagonal: f64, coefficients: [f64; 2]) -> Result {
    let (domain, lattice, parity) = (gauge.domain(), gauge.bordered(), parity as u32);
    let kernel = CloverTerm { links: gauge.both(), lattice, out, parity, diagonal, coefficients };
    Ok(domain.backend().launch(&CLOVER_TERM, Format::NONE, &kernel, domain.half_sites(), 1)?)
}

impl DeviceClover {
    /// Copies a clover term from the host, in double precision. `blocks` has two blocks for each site in lexicographic order, for the upper
    /// and for the lower spins in the DeGrand–Rossi basis; `diagonal` is the value of A where links are 1.
    ///
    /// # Errors
    /// Another number of blocks than the lattice needs, and failures of the device.
    pub fn of_host(domain: &Domain, diagonal: f64, blocks: &[[HermitianBlock; 2]]) -> Result<Self> {
        let (found, expected) = (blocks.len(), domain.local().volume());
        if found != expected {
            return Err(DeviceError::OtherCount { found, expected });
        }
        let numbers = |block: &HermitianBlock| -> [Complex64; 21] {
            std::array::from_fn(|k| if k < 6 { block.diagonal[k].into() } else { block.lower[k - 6] })
        };
        let numbers: Vec<Complex64> = blocks.iter().flatten().flat_map(numbers).collect();
        let mut host = DeviceArray::zero(domain.backend(), numbers.len(), "the upload of a clover term")?;
        host.upload(0, &numbers)?;
        let clover = Self::empty(domain, Precision::Double, diagonal)?;
        let (backend, sites) = (domain.backend(), domain.half_sites());
        for parity in 0..2 {
            let (out, geometry) = (clover.blocks(parity, false), domain.geometry());
            let kernel = CloverPack { host: host.view(), out, geometry, parity: parity as u32 };
            backend.launch(&CLOVER_PACK, Format::NONE, &kernel, sites, 1)?;
        }
        clover.invert()
    }
    /// Computes A⁻¹ from A.
    fn invert(self) -> Result<Self> {
        for parity in 0..2 {
            let kernel = CloverInverse { input: self.blocks(parity, false), out: self.blocks(parity, true) };
            self.domain.backend().launch(&CLOVER_INVERSE, Format::NONE, &kernel, self.domain.half_sites(), 1)?;
        }
        Ok(self)
    }
    fn empty(domain: &Domain, precision: Precision, diagonal: f64) -> Result<Self> {
        let what = format!("the clover term in {precision} precision on {}", domain.local());
        let bytes = Self::bytes_for(precision, domain.half_sites() as usize);
        let half = || domain.backend().allocate(bytes, &what);
        let (term, inverse) = ([half()?, half()?], [half()?, half()?]);
        Ok(DeviceClover { domain: domain.clone(), term, inverse, diagonal, precision })
    }
    /// Returns the number of bytes of the blocks of A, or of A⁻¹, on `sites` sites of one parity.
    pub fn bytes_for(precision: Precision, sites: usize) -> usize {
        padded(sites) * precision.clover_bytes()
    }
    /// Returns the domain on which the term is stored.
    pub fn domain(&self) -> &Domain {
        &self.domain
    }
    /// Returns the precision in which the blocks are stored.
    pub fn precision(&self) -> Precision {
        self.precision
    }
    /// Returns the value of A for unit links; only this part of A depends on the mass and the anisotropy.
    pub fn diagonal(&self) -> f64 {
        self.diagonal
    }
    /// Returns the blocks of A, or of A⁻¹ if `inverse` is set, on the sites of `parity`. The view must not outlive the field.
    pub(crate) fn blocks(&self, parity: usize, inverse: bool) -> Clover {
        self.view(if inverse { &self.inverse[parity] } else { &self.term[parity] })
    }
    fn view(&self, blocks: &DeviceBuffer) -> Clover {
        view::clover(blocks, self.domain.half_sites() as usize, self.precision.clover_bytes())
    }
    /// Computes A = `diagonal` + (i/2) Σ_{μ<ν} c_μν σ_μν F̂_μν in double precision (Babich, Clark and Joó 2010, eq. 2). F̂ is the four-leaf
    /// field strength of `gauge`, in Chroma's normalisation. The coefficient c_μν is `space` in spatial planes and `time` in temporal
    /// planes.
    pub fn new(gauge: &GaugeField, diagonal: f64, space: f64, time: f64) -> Result<Self> {
        gauge.expect_in(Precision::Double)?;
        let domain = gauge.domain();
        let clover = Self::empty(domain, Precision::Double, diagonal)?;
        for parity in 0..2 {
            make_term(gauge, clover.blocks(parity, false), parity, diagonal, [space, time])?;
        }
        clover.invert()
    }
    /// Replaces the clover term A = d + X by the exponential clover term d exp(X/d), and A⁻¹ by the inverse of that term (Francis et al.
    /// 2020, eq. 2). The number d is [`diagonal`](Self::diagonal).
    ///
    /// # Errors
    /// [`DeviceError::OtherFormat`] if the term is not in double precision; fails also if the device fails.
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
    /// Converts a term in double precision to another precision; every element is rounded to nearest.
    ///
    /// # Errors
    /// [`DeviceError::OtherFormat`] if the term is not in double precision; fails also if the device fails.
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
