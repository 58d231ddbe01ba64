//! Fermion fields on a device.
use super::array::DeviceArray;
use super::host::{Fermion, HostField};
use super::shape::FieldShape;
use crate::backend::{DeviceBuffer, view};
use crate::domain::{DeviceError, Domain, Result};
use crate::lattice::Lattice;
use gpu_kernels::field::Field;
use gpu_kernels::transfer::{PACK, PackField, UNPACK, UnpackField};
use gpu_kernels::{FermionKind, Format, Precision};

/// A fermion field on the sites of one parity, for one or more right-hand sides.
pub struct DeviceField {
    domain: Domain,
    buffer: DeviceBuffer,
    shape: FieldShape,
}

impl DeviceField {
    /// Allocates a field that is zero everywhere.
    pub fn zero(domain: &Domain, shape: FieldShape) -> Result<Self> {
        let kind = match shape.kind {
            FermionKind::Wilson => "spinors",
            FermionKind::Staggered => "colour vectors",
        };
        let what = format!("a field of {kind} in {} precision on one parity of {}", shape.precision, domain.local());
        let buffer = domain.backend().allocate(shape.bytes(domain.local().half_volume()), &what)?;
        Ok(DeviceField { domain: domain.clone(), buffer, shape })
    }
    /// Returns the domain on which the field is stored.
    pub fn domain(&self) -> &Domain {
        &self.domain
    }
    /// Returns the shape of the field: fermion type, L_s, precision and number of right-hand sides.
    pub fn shape(&self) -> FieldShape {
        self.shape
    }
    /// Returns the fermion type of the field.
    pub fn kind(&self) -> FermionKind {
        self.shape.kind
    }
    /// Returns the precision in which the field is stored.
    pub fn precision(&self) -> Precision {
        self.shape.precision
    }
    /// Returns the number of right-hand sides of the field.
    pub fn nrhs(&self) -> usize {
        self.shape.nrhs
    }
    /// Returns the format of kernels for the field.
    pub(crate) fn format(&self) -> Format {
        self.shape.format()
    }
    pub(crate) fn buffer(&self) -> &DeviceBuffer {
        &self.buffer
    }
    pub(crate) fn buffer_mut(&mut self) -> &mut DeviceBuffer {
        &mut self.buffer
    }
    /// Checks that the field is on the device and the lattice of a domain, has the given shape, and at least as many right-hand sides.
    /// Kernels do not check this.
    pub(crate) fn expect(&self, domain: &Domain, shape: FieldShape) -> Result {
        domain.expect_here("a device field", &self.domain)?;
        if self.shape.format() != shape.format() {
            return Err(DeviceError::OtherFormat { found: self.format(), expected: shape.format() });
        }
        if self.shape.ls != shape.ls {
            return Err(DeviceError::OtherExtent { found: self.shape.ls, expected: shape.ls });
        }
        if self.nrhs() < shape.nrhs {
            return Err(DeviceError::OtherCount { found: self.nrhs(), expected: shape.nrhs });
        }
        Ok(())
    }
    /// Returns the field in the form that kernels use; its blocks take the place of right-hand sides. The view is an address and must not
    /// outlive the field.
    pub(crate) fn view(&self) -> Field {
        view::field(&self.buffer, self.domain.half_sites() as usize, self.shape.blocks(), self.shape.site_bytes())
    }
    /// Returns the view of the blocks, beginning with number `block`.
    pub(crate) fn view_from_block(&self, block: usize) -> Field {
        self.view().from_rhs(block, self.shape.site_bytes())
    }
    /// Returns the view of the right-hand sides, beginning with number `rhs`.
    pub(crate) fn view_from(&self, rhs: usize) -> Field {
        self.view_from_block(rhs * self.shape.ls)
    }
    /// Returns the view of slice `s` of the fifth dimension, for all right-hand sides.
    pub(crate) fn slice(&self, s: usize) -> Field {
        let FieldShape { ls, nrhs, .. } = self.shape;
        view::slice(&self.buffer, self.domain.half_sites() as usize, (s, ls), nrhs, self.shape.site_bytes())
    }
}

/// A fermion field on all sites, as one field for each parity.
pub struct FullField {
    /// Field on the even sites.
    pub even: DeviceField,
    /// Field on the odd sites.
    pub odd: DeviceField,
}

impl FullField {
    /// Allocates a field that is zero everywhere.
    pub fn zero(domain: &Domain, shape: FieldShape) -> Result<Self> {
        let half = || DeviceField::zero(domain, shape);
        Ok(FullField { even: half()?, odd: half()? })
    }
    /// Copies host fields to the device in double precision; each becomes a right-hand side.
    ///
    /// # Errors
    /// Fails if a field is on another lattice, or if the device fails.
    pub fn of_host<F: Fermion>(domain: &Domain, host: &[HostField<F>]) -> Result<Self> {
        let mut field = FullField::zero(domain, FieldShape::new(F::KIND, Precision::Double, host.len()))?;
        field.upload(host)?;
        Ok(field)
    }
    /// Copies host fields of one time slice to the device in double precision; each becomes a right-hand side. The result is zero at all
    /// other times. `time` is the coordinate t in this process's part of the lattice.
    ///
    /// # Errors
    /// Fails if a field is not on a lattice of [one time](crate::lattice::Lattice::of_one_time) with the extents of this part, or if the
    /// device fails.
    ///
    /// # Panics
    /// Panics if `time` is outside this part.
    pub fn of_time<F: Fermion>(domain: &Domain, time: usize, host: &[HostField<F>]) -> Result<Self> {
        let local = domain.local();
        assert!(time < local.size()[3], "a time that is there");
        let mut field = FullField::zero(domain, FieldShape::new(F::KIND, Precision::Double, host.len()))?;
        let mut array = DeviceArray::zero(domain.backend(), field.numbers(), "the upload of a fermion field")?;
        for (j, of_time) in host.iter().enumerate() {
            expect_one_time(local, of_time.lattice())?;
            let numbers = of_time.numbers();
            array.upload((j * local.size()[3] + time) * numbers.len(), numbers)?;
        }
        field.pack(&array)?;
        Ok(field)
    }
    /// Returns one time slice of the field as host fields, L_s for each right-hand side. `time` is the coordinate t in this process's part
    /// of the lattice.
    ///
    /// # Errors
    /// Fails if `F` is not the fermion type of the field, or if the device fails.
    ///
    /// # Panics
    /// Panics if `time` is outside this part.
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
        (0..self.even.shape.blocks()).map(one).collect()
    }
    /// Returns the field on a domain that has the same part of the lattice. If both domains are on one device, this is the field itself,
    /// otherwise a copy.
    ///
    /// # Errors
    /// Fails if the domain has another part of the lattice, or if a device fails.
    pub fn on(self, domain: &Domain) -> Result<Self> {
        domain.expect("a field of another device", self.even.domain.local())?;
        if self.even.domain.backend().is(domain.backend()) {
            return Ok(self);
        }
        let mut copy = FullField::zero(domain, self.even.shape)?;
        copy.pack(&self.unpack()?.copy_on(domain.backend(), "the copy of a fermion field from another device")?)?;
        Ok(copy)
    }
    /// Returns the field on the sites of one parity.
    pub fn parity(&self, parity: usize) -> &DeviceField {
        if parity == 0 { &self.even } else { &self.odd }
    }
    /// Returns the field on the sites of one parity, to be changed.
    pub fn parity_mut(&mut self, parity: usize) -> &mut DeviceField {
        if parity == 0 { &mut self.even } else { &mut self.odd }
    }
    /// Copies host fields to the device, one for each block: L_s consecutive fields form a right-hand side. The copy changes the order of
    /// sites, the spin basis and the precision.
    ///
    /// # Errors
    /// Fails if the host fields differ from this field in fermion type, lattice or number.
    pub fn upload<F: Fermion>(&mut self, host: &[HostField<F>]) -> Result {
        let domain = self.even.domain.clone();
        self.expect_host::<F>()?;
        let expected = self.even.shape.blocks();
        if host.len() != expected {
            return Err(DeviceError::OtherCount { found: host.len(), expected });
        }
        host.iter().try_for_each(|field| domain.expect("a fermion field", field.lattice()))?;
        let numbers = F::COMPONENTS * domain.local().volume();
        let mut array = DeviceArray::zero(domain.backend(), numbers * host.len(), "the upload of a fermion field")?;
        for (j, field) in host.iter().enumerate() {
            array.upload(j * numbers, field.numbers())?;
        }
        self.pack(&array)
    }
    /// Replaces the field by the numbers of an array on the same device. The array has the order of host fields: `[rhs, s, t, z, y, x,
    /// spin, colour]`, without the axis `spin` for colour vectors.
    ///
    /// # Errors
    /// Fails if the array is on another device or has another length.
    pub fn pack(&mut self, array: &DeviceArray) -> Result {
        let (domain, format) = (self.even.domain.clone(), self.even.format());
        self.odd.expect(&domain, self.even.shape)?;
        self.expect_array(array)?;
        domain.launch_on_parities(&PACK, format, self.even.shape.blocks(), |parity| PackField {
            host: array.view(),
            field: self.parity(parity).view(),
            geometry: domain.geometry(),
            parity: parity as u32,
        })
    }
    /// Returns the numbers of the field as an array on the same device, in the order of host fields.
    ///
    /// # Errors
    /// Fails if the device fails.
    pub fn unpack(&self) -> Result<DeviceArray> {
        let domain = &self.even.domain;
        self.odd.expect(domain, self.even.shape)?;
        let array = DeviceArray::zero(domain.backend(), self.numbers(), "a fermion field as an array")?;
        domain.launch_on_parities(&UNPACK, self.even.format(), self.even.shape.blocks(), |parity| UnpackField {
            host: array.view(),
            field: self.parity(parity).view(),
            geometry: domain.geometry(),
            parity: parity as u32,
        })?;
        Ok(array)
    }
    /// Copies the field to the host as host fields, L_s for each right-hand side.
    ///
    /// # Errors
    /// Fails if `F` is not the fermion type of the field.
    pub fn download<F: Fermion>(&self) -> Result<Vec<HostField<F>>> {
        let local = self.even.domain.local();
        self.expect_host::<F>()?;
        let (array, numbers) = (self.unpack()?, F::COMPONENTS * local.volume());
        (0..self.even.shape.blocks())
            .map(|j| {
                let mut host = HostField::zero(local);
                array.download(j * numbers, host.numbers_mut())?;
                Ok(host)
            })
            .collect()
    }
    /// Returns the number of complex numbers in all blocks, on both parities.
    fn numbers(&self) -> usize {
        let shape = self.even.shape;
        shape.components() * self.even.domain.local().volume() * shape.blocks()
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
    /// Checks that `F` is the fermion type of the field.
    fn expect_host<F: Fermion>(&self) -> Result {
        if F::KIND == self.even.kind() {
            return Ok(());
        }
        let found = Format { kind: Some(F::KIND), ..Format::NONE };
        Err(DeviceError::OtherFormat { found, expected: self.even.format() })
    }
}

/// Checks that `found` is the lattice of one time slice of a process's part.
fn expect_one_time(local: Lattice, found: Lattice) -> Result {
    let expected = local.of_one_time();
    if found == expected {
        return Ok(());
    }
    Err(DeviceError::OtherLattice { what: "a field of one time", found, expected })
}
