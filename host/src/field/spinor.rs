//! Spinor fields on a device.
use super::host::HostSpinor;
use crate::backend::{Backend, view};
use crate::domain::{Domain, Result};
use gpu_kernels::field::Field;
use gpu_kernels::storage::{Precision, Spinors, TILE};
use gpu_kernels::transfer::{PackSpinor, UnpackSpinor};
use std::marker::PhantomData;

/// Four-spin spinors on the sites of one parity, for one or more right-hand sides, in precision `P`.
pub struct DeviceSpinor<B: Backend, P> {
    domain: Domain<B>,
    buffer: B::Buffer,
    nrhs: usize,
    precision: PhantomData<P>,
}

impl<B: Backend, P: Precision> DeviceSpinor<B, P> {
    /// Zero everywhere.
    pub fn zero(domain: &Domain<B>, nrhs: usize) -> Result<Self> {
        let bytes = Self::bytes_for(domain.local().half_volume(), nrhs);
        let what = format!("a {} spinor field on half of {}", P::NAME, domain.local());
        let buffer = domain.backend().allocate(bytes, &what)?;
        Ok(DeviceSpinor { domain: domain.clone(), buffer, nrhs, precision: PhantomData })
    }
    /// Bytes of such a field on `sites` sites.
    pub fn bytes_for(sites: usize, nrhs: usize) -> usize {
        sites.div_ceil(TILE) * TILE * P::SPINOR_BYTES * nrhs
    }
    /// Where the field lives.
    pub fn domain(&self) -> &Domain<B> {
        &self.domain
    }
    /// Number of right-hand sides.
    pub fn nrhs(&self) -> usize {
        self.nrhs
    }
    pub(crate) fn buffer(&self) -> &B::Buffer {
        &self.buffer
    }
    pub(crate) fn buffer_mut(&mut self) -> &mut B::Buffer {
        &mut self.buffer
    }
    /// The field as kernels see it. The view is an address: it must not outlive the field.
    pub(crate) fn view(&self) -> Field<Spinors<P>> {
        view::field(&self.buffer, self.domain.sites() as usize, self.nrhs)
    }
}

/// Spinors on all sites: a field for each parity.
pub struct FullSpinor<B: Backend, P> {
    /// Even sites.
    pub even: DeviceSpinor<B, P>,
    /// Odd sites.
    pub odd: DeviceSpinor<B, P>,
}

impl<B: Backend, P: Precision> FullSpinor<B, P> {
    /// Zero everywhere.
    pub fn zero(domain: &Domain<B>, nrhs: usize) -> Result<Self> {
        Ok(FullSpinor { even: DeviceSpinor::zero(domain, nrhs)?, odd: DeviceSpinor::zero(domain, nrhs)? })
    }
    /// One of the two parities.
    pub fn parity(&self, parity: usize) -> &DeviceSpinor<B, P> {
        if parity == 0 { &self.even } else { &self.odd }
    }
    /// One of the two parities.
    pub fn parity_mut(&mut self, parity: usize) -> &mut DeviceSpinor<B, P> {
        if parity == 0 { &mut self.even } else { &mut self.odd }
    }
    /// Copies host fields to the device, one per right-hand side: order of sites, spin basis and precision change on
    /// the way. Panics when the number of fields or their lattice is not that of the device's field.
    pub fn upload(&mut self, host: &[HostSpinor]) -> Result {
        let domain = self.even.domain.clone();
        assert_eq!(host.len(), self.even.nrhs, "one host field per right-hand side");
        let bytes = 192 * domain.local().volume();
        let mut staging = domain.backend().allocate(bytes * host.len(), "the upload of a spinor field")?;
        for (j, field) in host.iter().enumerate() {
            assert_eq!(field.lattice(), domain.local(), "the host field has the device's lattice");
            domain.backend().upload(bytemuck::cast_slice(field.sites()), &mut staging, j * bytes)?;
        }
        for parity in 0..2 {
            let kernel = PackSpinor {
                host: view::host_array(&staging, bytes / 16 * self.even.nrhs),
                field: self.parity(parity).view(),
                geometry: domain.geometry(),
                parity: parity as u32,
            };
            domain.backend().launch(&kernel, domain.sites(), host.len() as u32)?;
        }
        Ok(())
    }
    /// Copies the field to the host, one host field per right-hand side.
    pub fn download(&self) -> Result<Vec<HostSpinor>> {
        let domain = &self.even.domain;
        let bytes = 192 * domain.local().volume();
        let staging = domain.backend().allocate(bytes * self.even.nrhs, "the download of a spinor field")?;
        for parity in 0..2 {
            let kernel = UnpackSpinor {
                host: view::host_array(&staging, bytes / 16 * self.even.nrhs),
                field: self.parity(parity).view(),
                geometry: domain.geometry(),
                parity: parity as u32,
            };
            domain.backend().launch(&kernel, domain.sites(), self.even.nrhs as u32)?;
        }
        (0..self.even.nrhs)
            .map(|j| {
                let mut host = HostSpinor::zero(domain.local());
                let data = bytemuck::cast_slice_mut(host.sites_mut());
                domain.backend().download(&staging, j * bytes, data)?;
                Ok(host)
            })
            .collect()
    }
}
