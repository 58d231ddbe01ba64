//! Links on a device, packed for operators.
use super::gauge_field::GaugeField;
use super::phases::HopPhases;
use crate::backend::{DeviceBuffer, view};
use crate::domain::{Domain, Result};
use gpu_kernels::field::Links;
use gpu_kernels::smeared::{PACK_LINKS, PACK_LONG, PackThin};
use gpu_kernels::storage::padded;
use gpu_kernels::{Format, LinkStorage, Precision};

/// Links on a device, packed for operators on fields in one precision: all eight links around each site, for each parity.
pub struct DeviceGauge {
    domain: Domain,
    halves: [DeviceBuffer; 2],
    factor: f64,
    phases: HopPhases,
    precision: Precision,
    storage: LinkStorage,
}

impl GaugeField {
    /// *Collective.* Packs the links for operators on fields in `precision`. A storage for temporal gauge requires links in this gauge, see
    /// [`temporal_gauge`](crate::gauge::fixing::temporal_gauge).
    pub fn pack(&self, precision: Precision, storage: LinkStorage) -> Result<DeviceGauge> {
        self.pack_with(HopPhases::NONE, precision, storage)
    }
    /// *Collective.* Packs the links like [`pack`](Self::pack), multiplied by the phases of hops. Phases require a storage with 18 reals.
    pub fn pack_with(&self, phases: HopPhases, precision: Precision, storage: LinkStorage) -> Result<DeviceGauge> {
        DeviceGauge::from_links(self, precision, storage, 1.0, 1, phases)
    }
}

impl DeviceGauge {
    fn empty(
        domain: &Domain,
        precision: Precision,
        storage: LinkStorage,
        factor: f64,
        phases: HopPhases,
    ) -> Result<Self> {
        let what = format!("a gauge field ({precision} precision, reconstruct {storage}) on {}", domain.local());
        let bytes = Self::bytes_for(precision, storage, domain.half_sites() as usize);
        let half = || domain.backend().allocate(bytes, &what);
        Ok(DeviceGauge { domain: domain.clone(), halves: [half()?, half()?], factor, phases, precision, storage })
    }
    /// Packs `links`, which must be in double precision, divided by `factor` and multiplied by phases. Each site gets the links that start
    /// there and those that end there after `steps` steps: 1 for links of a hop to the neighbour, 3 for long links. `phases` are the phases
    /// of hops over one link. Links with phases are not in SU(3), so storages with 12 or 8 reals cannot hold them. Storages with 13 or 9
    /// reals require links in U(3).
    ///
    /// # Panics
    /// Panics if `steps` is neither 1 nor 3.
    pub fn from_links(
        links: &GaugeField,
        precision: Precision,
        storage: LinkStorage,
        factor: f64,
        steps: usize,
        phases: HopPhases,
    ) -> Result<Self> {
        let kernel = match steps {
            1 => &PACK_LINKS,
            3 => &PACK_LONG,
            _ => panic!("hops are over one site or over three, not {steps}"),
        };
        links.expect_in(Precision::Double)?;
        let domain = links.domain();
        // A site may need links of neighbouring processes, but none of processes further away.
        domain.grid().check(domain.global().size(), steps)?;
        let gauge = Self::empty(domain, precision, storage, factor, phases)?;
        for parity in 0..2 {
            let arguments = PackThin {
                input: links.both(),
                links: gauge.links(parity),
                lattice: links.bordered(),
                parity: parity as u32,
                factors: phases.over(steps).times(1.0 / factor),
            };
            let format = Format::with_links(precision, storage);
            domain.backend().launch(kernel, format, &arguments, domain.half_sites(), 1)?;
        }
        Ok(gauge)
    }
    /// Returns the factor by which an operator multiplies the stored links: 1 for links of a configuration.
    pub fn factor(&self) -> f64 {
        self.factor
    }
    /// Returns the phases of hops over one link that the stored links contain.
    pub fn phases(&self) -> HopPhases {
        self.phases
    }
    /// Returns the precision of the fields on which operators with these links act.
    pub fn precision(&self) -> Precision {
        self.precision
    }
    /// Returns the storage of the links.
    pub fn storage(&self) -> LinkStorage {
        self.storage
    }
    /// Returns the number of bytes of the links around `sites` sites of one parity.
    pub fn bytes_for(precision: Precision, storage: LinkStorage, sites: usize) -> usize {
        padded(sites) * storage.site_bytes(precision)
    }
    /// Returns the domain on which the links are stored.
    pub fn domain(&self) -> &Domain {
        &self.domain
    }
    /// Returns the links around the sites of `parity` in the form that kernels use. The view must not outlive the field.
    pub(crate) fn links(&self, parity: usize) -> Links {
        view::links(&self.halves[parity], self.domain.half_sites() as usize, self.precision, self.storage)
    }
}
