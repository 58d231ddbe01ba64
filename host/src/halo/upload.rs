//! Copies of host links on a device, with the border of the neighbours' links: making a gauge field is an exchange, too.
use crate::domain::{Domain, Result};
use crate::field::host::HostGauge;
use crate::field::{DeviceGauge, GaugeField};
use gpu_kernels::transfer::{PACK_THIN_LINKS, PackThinLinks};
use gpu_kernels::{Format, LinkStorage, Precision};

impl GaugeField {
    /// *Collective.* Copies host links to the device, in double precision.
    pub fn upload(domain: &Domain, gauge: &HostGauge) -> Result<Self> {
        domain.expect("a gauge field", gauge.lattice())?;
        let thin = Self::empty(domain, Precision::Double)?;
        let data: &[u8] = bytemuck::cast_slice(gauge.links());
        let mut staged = domain.backend().allocate(data.len(), "the upload of a gauge field")?;
        domain.backend().upload(data, &mut staged, 0)?;
        for parity in 0..2 {
            let kernel = PackThinLinks {
                host: thin.host_array(&staged),
                links: thin.links(parity),
                lattice: thin.bordered(),
                geometry: domain.geometry(),
                parity: parity as u32,
            };
            domain.backend().launch(&PACK_THIN_LINKS, Format::NONE, &kernel, domain.half_sites(), 1)?;
        }
        thin.fill_border()?;
        Ok(thin)
    }
    /// *Collective.* Updates the border after links have changed.
    pub(crate) fn fill_border(&self) -> Result {
        match self.domain().halo()? {
            Some(halo) => halo.fill_links(self.domain(), self.border(), self.both(), self.precision()),
            None => Ok(()),
        }
    }
}

impl DeviceGauge {
    /// *Collective.* Copies host links to the device and packs them.
    pub fn upload(domain: &Domain, gauge: &HostGauge, precision: Precision, storage: LinkStorage) -> Result<Self> {
        GaugeField::upload(domain, gauge)?.pack(precision, storage)
    }
}
