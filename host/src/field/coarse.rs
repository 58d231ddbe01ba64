//! Matrices of a coarse multigrid operator on a device.
use crate::backend::{DeviceBuffer, view};
use crate::domain::{Domain, Result};
use gpu_kernels::coarse::{self, CoarseTiles, Scales};
use gpu_kernels::storage::{Half, Single};
use gpu_kernels::{Format, Precision};

/// Matrices of a coarse operator, the same number on each coarse site. A matrix has two rows for each near-null vector. Elements are in
/// single precision, or in 16 bits with a scale for each matrix.
pub(crate) struct CoarseMatrices {
    buffer: DeviceBuffer,
    scales: DeviceBuffer,
    sites: usize,
    vectors: usize,
    count: usize,
    precision: Precision,
}

impl CoarseMatrices {
    /// Allocates matrices of zeros: `count` matrices for `vectors` near-null vectors on each of `sites` sites.
    pub fn zero(domain: &Domain, sites: usize, vectors: usize, count: usize, precision: Precision) -> Result<Self> {
        let what = format!("the coarse operator with {vectors} near-null vectors on {sites} sites");
        let bytes = Self::bytes_for(sites, vectors, count, precision);
        let buffer = domain.backend().allocate(bytes, &what)?;
        let scales = domain.backend().allocate(4 * sites * count, &what)?;
        Ok(CoarseMatrices { buffer, scales, sites, vectors, count, precision })
    }
    /// Returns the number of bytes of `count` matrices for `vectors` near-null vectors on each of `sites` sites.
    pub fn bytes_for(sites: usize, vectors: usize, count: usize, precision: Precision) -> usize {
        let site = match precision {
            Precision::Half | Precision::Fp16 => CoarseTiles::bytes::<Half>(vectors, count),
            Precision::Single | Precision::Double => CoarseTiles::bytes::<Single>(vectors, count),
        };
        sites * site
    }
    /// Returns a copy of the matrices.
    pub fn copied(&self, domain: &Domain) -> Result<Self> {
        let mut copy = Self::zero(domain, self.sites, self.vectors, self.count, self.precision)?;
        domain.backend().copy(&self.buffer, &mut copy.buffer, self.buffer.bytes())?;
        Ok(copy)
    }
    /// Returns a copy of the matrices in half precision: elements of 16 bits, rounded to nearest, with a scale for each matrix.
    pub fn rounded(&self, domain: &Domain) -> Result<Self> {
        let to = Self::zero(domain, self.sites, self.vectors, self.count, Precision::Half)?;
        let kernel = coarse::RoundMatrices {
            from: self.view(),
            to: to.view(),
            scales: to.scales(),
            count: gpu_kernels::lattice::Divisor::new(self.count as u32),
        };
        let threads = gpu_kernels::warp::LANES * (self.sites * self.count) as u32;
        domain.backend().launch(&coarse::ROUND_MATRICES, Format::of(Precision::Single), &kernel, threads, 1)?;
        Ok(to)
    }
    /// Returns the precision in which the elements of the matrices are stored.
    pub fn precision(&self) -> Precision {
        self.precision
    }
    /// Returns the matrices in the form that kernels use. The view must not outlive them.
    pub fn view(&self) -> CoarseTiles {
        let bytes = Self::bytes_for(self.sites, self.vectors, self.count, self.precision);
        view::coarse_matrices(&self.buffer, bytes, self.vectors, self.count)
    }
    /// Returns the scales of the matrices in the form that kernels use.
    pub fn scales(&self) -> Scales {
        view::coarse_scales(&self.scales, self.sites * self.count)
    }
}
