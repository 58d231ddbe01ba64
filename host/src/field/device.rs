//! Fermion fields on a device.
use super::array::DeviceArray;
use super::host::{ColourVector, Fermion, HostField, Spinor};
use crate::backend::{DeviceBuffer, view};
use crate::domain::{DeviceError, Domain, Result};
use crate::lattice::Lattice;
use gpu_kernels::field::Field;
use gpu_kernels::storage::padded;
use gpu_kernels::transfer::{PACK, PackField, UNPACK, UnpackField};
use gpu_kernels::{FermionKind, Format, Precision};

/// A fermion field on the sites of one parity, for one or more right-hand sides.
pub struct DeviceField {
    domain: Domain,
    buffer: DeviceBuffer,
    kind: FermionKind,
    precision: Precision,
    nrhs: usize,
}

impl DeviceField {
    /// Zero everywhere.
    pub fn zero(domain: &Domain, kind: FermionKind, precision: Precision, nrhs: usize) -> Result<Self> {
        let bytes = Self::bytes_for(kind, precision, domain.local().half_volume(), nrhs);
        let what = format!("a {precision} {kind} field on half of {}", domain.local());
        let buffer = domain.backend().allocate(bytes, &what)?;
        Ok(DeviceField { domain: domain.clone(), buffer, kind, precision, nrhs })
    }
    /// Bytes of such a field on `sites` sites.
    pub fn bytes_for(kind: FermionKind, precision: Precision, sites: usize, nrhs: usize) -> usize {
        padded(sites) * kind.site_bytes(precision) * nrhs
    }
    /// Where the field lives.
    pub fn domain(&self) -> &Domain {
        &self.domain
    }
    /// What lives on its sites.
    pub fn kind(&self) -> FermionKind {
        self.kind
    }
    /// How its numbers are stored.
    pub fn precision(&self) -> Precision {
        self.precision
    }
    /// Number of right-hand sides.
    pub fn nrhs(&self) -> usize {
        self.nrhs
    }
    /// Of kernels for such fields.
    pub(crate) fn format(&self) -> Format {
        Format::fermions(self.kind, self.precision)
    }
    pub(crate) fn buffer(&self) -> &DeviceBuffer {
        &self.buffer
    }
    pub(crate) fn buffer_mut(&mut self) -> &mut DeviceBuffer {
        &mut self.buffer
    }
    /// Whether it has the sites of a domain, a kind and a precision, and so many right-hand sides at least: kernels do not
    /// ask.
    pub(crate) fn expect(&self, domain: &Domain, (kind, precision): (FermionKind, Precision), nrhs: usize) -> Result {
        domain.expect_here("a device field", &self.domain)?;
        if (self.kind, self.precision) != (kind, precision) {
            let (found, expected) = (self.format(), Format::fermions(kind, precision));
            return Err(DeviceError::OtherFormat { found, expected });
        }
        if self.nrhs < nrhs {
            return Err(DeviceError::OtherCount { found: self.nrhs, expected: nrhs });
        }
        Ok(())
    }
    /// The field as kernels see it. The view is an address: it must not outlive the field.
    pub(crate) fn view(&self) -> Field {
        let bytes = self.kind.site_bytes(self.precision);
        view::field(&self.buffer, self.domain.half_sites() as usize, self.nrhs, bytes)
    }
    /// The same from a right-hand side on.
    pub(crate) fn view_from(&self, rhs: usize) -> Field {
        self.view().from_rhs(rhs, self.kind.site_bytes(self.precision))
    }
}

/// A fermion field on all sites: a field for each parity.
pub struct FullField {
    /// Even sites.
    pub even: DeviceField,
    /// Odd sites.
    pub odd: DeviceField,
}

impl FullField {
    /// Zero everywhere.
    pub fn zero(domain: &Domain, kind: FermionKind, precision: Precision, nrhs: usize) -> Result<Self> {
        let half = || DeviceField::zero(domain, kind, precision, nrhs);
        Ok(FullField { even: half()?, odd: half()? })
    }
    /// Host fields, one per right-hand side, in double precision.
    ///
    /// # Errors
    /// Fields on another lattice; failures of the device.
    pub fn of_host<F: Fermion>(domain: &Domain, host: &[HostField<F>]) -> Result<Self> {
        let mut field = FullField::zero(domain, F::KIND, Precision::Double, host.len())?;
        field.upload(host)?;
        Ok(field)
    }
    /// Host fields of one `time` of this process's part of the lattice, one per right-hand side, in double precision; zero at all other
    /// times.
    ///
    /// # Errors
    /// Fields on other lattices than that of [one time](crate::lattice::Lattice::of_one_time); failures of the device.
    ///
    /// # Panics
    /// Where there is no such time.
    pub fn of_time<F: Fermion>(domain: &Domain, time: usize, host: &[HostField<F>]) -> Result<Self> {
        let local = domain.local();
        assert!(time < local.size()[3], "a time that is there");
        let mut field = FullField::zero(domain, F::KIND, Precision::Double, host.len())?;
        let mut staged = DeviceArray::zero(domain.backend(), field.numbers(), "the upload of a fermion field")?;
        for (j, of_time) in host.iter().enumerate() {
            expect_one_time(local, of_time.lattice())?;
            let numbers = of_time.numbers();
            staged.upload((j * local.size()[3] + time) * numbers.len(), numbers)?;
        }
        field.pack(&staged)?;
        Ok(field)
    }
    /// Host fields of one `time` of this process's part of the lattice, one per right-hand side.
    ///
    /// # Errors
    /// Host fields of another kind; failures of the device.
    ///
    /// # Panics
    /// Where there is no such time.
    pub fn at_time<F: Fermion>(&self, time: usize) -> Result<Vec<HostField<F>>> {
        let local = self.even.domain.local();
        assert!(time < local.size()[3], "a time that is there");
        self.expect_host::<F>()?;
        let array = self.unpack()?;
        let one = |j: usize| {
            let mut host = HostField::zero(local.of_one_time());
            let count = host.numbers().len();
            array.download((j * local.size()[3] + time) * count, host.numbers_mut())?;
            Ok(host)
        };
        (0..self.even.nrhs).map(one).collect()
    }
    /// The field on a domain of the same part of the lattice: itself, or a copy on another device.
    ///
    /// # Errors
    /// Domains of other parts of the lattice; failures of the devices.
    pub fn on(self, domain: &Domain) -> Result<Self> {
        domain.expect("a field of another device", self.even.domain.local())?;
        if self.even.domain.backend().is(domain.backend()) {
            return Ok(self);
        }
        let mut copy = FullField::zero(domain, self.even.kind, self.even.precision, self.even.nrhs)?;
        copy.pack(&self.unpack()?.copy_on(domain.backend(), "a fermion field of another device")?)?;
        Ok(copy)
    }
    /// One of the two parities.
    pub fn parity(&self, parity: usize) -> &DeviceField {
        if parity == 0 { &self.even } else { &self.odd }
    }
    /// One of the two parities.
    pub fn parity_mut(&mut self, parity: usize) -> &mut DeviceField {
        if parity == 0 { &mut self.even } else { &mut self.odd }
    }
    /// Copies host fields to the device, one per right-hand side: order of sites, spin basis and precision change on
    /// the way.
    ///
    /// # Errors
    /// Fields of another kind, lattice or number.
    pub fn upload<F: Fermion>(&mut self, host: &[HostField<F>]) -> Result {
        let domain = self.even.domain.clone();
        self.expect_host::<F>()?;
        if host.len() != self.even.nrhs {
            return Err(DeviceError::OtherCount { found: host.len(), expected: self.even.nrhs });
        }
        host.iter().try_for_each(|field| domain.expect("a fermion field", field.lattice()))?;
        let numbers = F::COMPONENTS * domain.local().volume();
        let mut staged = DeviceArray::zero(domain.backend(), numbers * host.len(), "the upload of a fermion field")?;
        for (j, field) in host.iter().enumerate() {
            staged.upload(j * numbers, field.numbers())?;
        }
        self.pack(&staged)
    }
    /// Takes over numbers that are on its device, in the order of host fields: `[rhs, t, z, y, x, spin, colour]`, or without spin.
    ///
    /// # Errors
    /// Numbers on another device, or more or fewer of them.
    pub fn pack(&mut self, array: &DeviceArray) -> Result {
        let (domain, format) = (self.even.domain.clone(), self.even.format());
        self.odd.expect(&domain, (self.even.kind, self.even.precision), self.even.nrhs)?;
        self.expect_array(array)?;
        domain.launch_on_parities(&PACK, format, self.even.nrhs, |parity| PackField {
            host: array.view(),
            field: self.parity(parity).view(),
            geometry: domain.geometry(),
            parity: parity as u32,
        })
    }
    /// Its numbers, on its device, in the order of host fields.
    ///
    /// # Errors
    /// Failures of the device.
    pub fn unpack(&self) -> Result<DeviceArray> {
        let domain = &self.even.domain;
        self.odd.expect(domain, (self.even.kind, self.even.precision), self.even.nrhs)?;
        let array = DeviceArray::zero(domain.backend(), self.numbers(), "a fermion field as an array")?;
        domain.launch_on_parities(&UNPACK, self.even.format(), self.even.nrhs, |parity| UnpackField {
            host: array.view(),
            field: self.parity(parity).view(),
            geometry: domain.geometry(),
            parity: parity as u32,
        })?;
        Ok(array)
    }
    /// Copies the field to the host, one host field per right-hand side.
    ///
    /// # Errors
    /// Host fields of another kind.
    pub fn download<F: Fermion>(&self) -> Result<Vec<HostField<F>>> {
        let local = self.even.domain.local();
        self.expect_host::<F>()?;
        let (array, numbers) = (self.unpack()?, F::COMPONENTS * local.volume());
        (0..self.even.nrhs)
            .map(|j| {
                let mut host = HostField::zero(local);
                array.download(j * numbers, host.numbers_mut())?;
                Ok(host)
            })
            .collect()
    }
    /// Complex numbers of all right-hand sides.
    fn numbers(&self) -> usize {
        let components =
            if self.even.kind == FermionKind::Wilson { Spinor::COMPONENTS } else { ColourVector::COMPONENTS };
        components * self.even.domain.local().volume() * self.even.nrhs
    }
    fn expect_array(&self, array: &DeviceArray) -> Result {
        let (domain, expected) = (&self.even.domain, self.numbers());
        if !domain.backend().is(array.backend()) {
            let (found, expected) = (array.backend().device(), domain.backend().device());
            return Err(DeviceError::OtherDevice { what: "an array", found, expected });
        }
        if array.len() != expected {
            return Err(DeviceError::OtherCount { found: array.len(), expected });
        }
        Ok(())
    }
    /// Whether host fields of `F` are of its kind.
    fn expect_host<F: Fermion>(&self) -> Result {
        if F::KIND == self.even.kind {
            return Ok(());
        }
        let found = Format { kind: Some(F::KIND), ..Format::NONE };
        Err(DeviceError::OtherFormat { found, expected: self.even.format() })
    }
}

/// Whether a host field has the sites of one time of a process's part of the lattice.
fn expect_one_time(local: Lattice, found: Lattice) -> Result {
    let expected = local.of_one_time();
    if found == expected {
        return Ok(());
    }
    Err(DeviceError::OtherLattice { what: "a field of one time", found, expected })
}
