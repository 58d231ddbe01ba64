//! Upload of host links to a device. The border contains links of neighbours, so this needs an exchange.
use crate::domain::{Domain, Result};
use crate::field::host::HostGauge;
use crate::field::{DeviceGauge, GaugeField};
use gpu_kernels::transfer::{PACK_THIN_LINKS, PackThinLinks};
use gpu_kernels::{Format, LinkStorage, Precision};

impl GaugeField {
    /// *Collective.* Copies host links to the device, in double precision.
    pub fn upload(domain: &Domain, gauge: &HostGauge) -> Result<Self> {
        domain.expect("a gauge field", gauge.lattice())?;
        let device_links = Self::empty(domain, Precision::Double)?;
        let data: &[u8] = bytemuck::cast_slice(gauge.links());
        let mut buffer = domain.backend().allocate(data.len(), "the upload of a gauge field")?;
        domain.backend().upload(data, &mut buffer, 0)?;
        for parity in 0..2 {
            let kernel = PackThinLinks {
                host: device_links.host_array(&buffer),
                links: device_links.links(parity),
                lattice: device_links.bordered(),
                geometry: domain.geometry(),
                parity: parity as u32,
            };
            domain.backend().launch(&PACK_THIN_LINKS, Format::NONE, &kernel, domain.half_sites(), 1)?;
        }
        device_links.fill_border()?;
        Ok(device_links)
    }
    /// *Collective.* Fills the border of the links from the neighbours; required after the links have changed.
    pub(crate) fn fill_border(&self) -> Result {
        match self.domain().halo()? {
            Some(halo) => halo.fill_links(self.domain(), self.border(), self.both(), self.precision()),
            None => Ok(()),
        }
    }
}

impl DeviceGauge {
    /// *Collective.* Copies host links to the device, and packs them in a precision and a storage.
    pub fn upload(domain: &Domain, gauge: &HostGauge, precision: Precision, storage: LinkStorage) -> Result<Self> {
        GaugeField::upload(domain, gauge)?.pack(precision, storage)
    }
}
