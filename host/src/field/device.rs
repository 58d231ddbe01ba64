//! Fermion fields on a device.
use super::host::{ColourVector, Fermion, HostField, Spinor};
use crate::backend::{Buffer, view};
use crate::domain::{DeviceError, Domain, Result};
use gpu_kernels::field::Field;
use gpu_kernels::storage::{FourSpins, OneSpin, Precision, SiteFormat, SiteKind, Sites, TILE};
use gpu_kernels::transfer::{PackField, UnpackField};
use std::marker::PhantomData;

/// A kind of fermion field: what lies on its sites on the device and on the host.
pub trait FieldKind: SiteKind {
    /// On the host.
    type Host: Fermion;
}
impl FieldKind for FourSpins {
    type Host = Spinor;
}
impl FieldKind for OneSpin {
    type Host = ColourVector;
}

/// Four-spin spinors on the sites of one parity.
pub type DeviceSpinor<P> = DeviceField<FourSpins, P>;
/// Colour vectors on the sites of one parity.
pub type DeviceColour<P> = DeviceField<OneSpin, P>;
/// Four-spin spinors on all sites.
pub type FullSpinor<P> = FullField<FourSpins, P>;
/// Colour vectors on all sites.
pub type FullColour<P> = FullField<OneSpin, P>;

/// A fermion field of kind `K` on the sites of one parity, for one or more right-hand sides, in precision `P`.
pub struct DeviceField<K, P> {
    domain: Domain,
    buffer: Buffer,
    nrhs: usize,
    format: PhantomData<(K, P)>,
}

impl<K: FieldKind, P: Precision> DeviceField<K, P> {
    /// Zero everywhere.
    pub fn zero(domain: &Domain, nrhs: usize) -> Result<Self> {
        let bytes = Self::bytes_for(domain.local().half_volume(), nrhs);
        let what = format!("a {} {} field on half of {}", P::NAME, K::NAME, domain.local());
        let buffer = domain.backend().allocate(bytes, &what)?;
        Ok(DeviceField { domain: domain.clone(), buffer, nrhs, format: PhantomData })
    }
    /// Bytes of such a field on `sites` sites.
    pub fn bytes_for(sites: usize, nrhs: usize) -> usize {
        sites.div_ceil(TILE) * TILE * Sites::<K, P>::BYTES * nrhs
    }
    /// Where the field lives.
    pub fn domain(&self) -> &Domain {
        &self.domain
    }
    /// Number of right-hand sides.
    pub fn nrhs(&self) -> usize {
        self.nrhs
    }
    pub(crate) fn buffer(&self) -> &Buffer {
        &self.buffer
    }
    pub(crate) fn buffer_mut(&mut self) -> &mut Buffer {
        &mut self.buffer
    }
    /// Whether it has the sites of a domain, and so many right-hand sides at least: kernels do not ask.
    pub(crate) fn expect(&self, domain: &Domain, nrhs: usize) -> Result {
        domain.expect_here("a device field", &self.domain)?;
        if self.nrhs < nrhs {
            return Err(DeviceError::OtherCount { found: self.nrhs, expected: nrhs });
        }
        Ok(())
    }
    /// The field as kernels see it. The view is an address: it must not outlive the field.
    pub(crate) fn view(&self) -> Field<Sites<K, P>> {
        view::field(&self.buffer, self.domain.half_sites() as usize, self.nrhs)
    }
}

/// A fermion field on all sites: a field for each parity.
pub struct FullField<K, P> {
    /// Even sites.
    pub even: DeviceField<K, P>,
    /// Odd sites.
    pub odd: DeviceField<K, P>,
}

impl<K: FieldKind, P: Precision> FullField<K, P> {
    /// Zero everywhere.
    pub fn zero(domain: &Domain, nrhs: usize) -> Result<Self> {
        Ok(FullField { even: DeviceField::zero(domain, nrhs)?, odd: DeviceField::zero(domain, nrhs)? })
    }
    /// One of the two parities.
    pub fn parity(&self, parity: usize) -> &DeviceField<K, P> {
        if parity == 0 { &self.even } else { &self.odd }
    }
    /// One of the two parities.
    pub fn parity_mut(&mut self, parity: usize) -> &mut DeviceField<K, P> {
        if parity == 0 { &mut self.even } else { &mut self.odd }
    }
    /// Copies host fields to the device, one per right-hand side: order of sites, spin basis and precision change on
    /// the way.
    pub fn upload(&mut self, host: &[HostField<K::Host>]) -> Result {
        let domain = self.even.domain.clone();
        if host.len() != self.even.nrhs {
            return Err(DeviceError::OtherCount { found: host.len(), expected: self.even.nrhs });
        }
        host.iter().try_for_each(|field| domain.expect("a fermion field", field.lattice()))?;
        self.odd.expect(&domain, host.len())?;
        let bytes = size_of::<K::Host>() * domain.local().volume();
        let mut staging = domain.backend().allocate(bytes * host.len(), "the upload of a fermion field")?;
        for (j, field) in host.iter().enumerate() {
            domain.backend().upload(bytemuck::cast_slice(field.sites()), &mut staging, j * bytes)?;
        }
        for parity in 0..2 {
            let kernel = PackField {
                host: view::host_array(&staging, bytes / 16 * self.even.nrhs),
                field: self.parity(parity).view(),
                geometry: domain.geometry(),
                parity: parity as u32,
            };
            domain.backend().launch(&kernel, domain.half_sites(), host.len() as u32)?;
        }
        Ok(())
    }
    /// Copies the field to the host, one host field per right-hand side.
    pub fn download(&self) -> Result<Vec<HostField<K::Host>>> {
        let domain = &self.even.domain;
        self.odd.expect(domain, self.even.nrhs)?;
        let bytes = size_of::<K::Host>() * domain.local().volume();
        let staging = domain.backend().allocate(bytes * self.even.nrhs, "the download of a fermion field")?;
        for parity in 0..2 {
            let kernel = UnpackField {
                host: view::host_array(&staging, bytes / 16 * self.even.nrhs),
                field: self.parity(parity).view(),
                geometry: domain.geometry(),
                parity: parity as u32,
            };
            domain.backend().launch(&kernel, domain.half_sites(), self.even.nrhs as u32)?;
        }
        (0..self.even.nrhs)
            .map(|j| {
                let mut host = HostField::zero(domain.local());
                let data = bytemuck::cast_slice_mut(host.sites_mut());
                domain.backend().download(&staging, j * bytes, data)?;
                Ok(host)
            })
            .collect()
    }
}
