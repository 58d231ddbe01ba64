//! Gauge fields on a device.
use super::host::HostGauge;
use super::thin::ThinGauge;
use crate::backend::{Buffer, view};
use crate::domain::{Domain, Result};
use gpu_kernels::field::Links;
use gpu_kernels::smeared::PackThin;
use gpu_kernels::storage::{LinkFormat, Precision, TILE};
use std::marker::PhantomData;

/// Links on a device in precision `P` with reconstruction `R`: for each parity, all eight links around each site.
pub struct DeviceGauge<P, R> {
    domain: Domain,
    halves: [Buffer; 2],
    factor: f64,
    format: PhantomData<(P, R)>,
}

impl<P: Precision, R: LinkFormat<P>> DeviceGauge<P, R> {
    fn empty(domain: &Domain, factor: f64) -> Result<Self> {
        let what = format!("a {} recon-{} gauge field on {}", P::NAME, R::NAME, domain.local());
        let half = || domain.backend().allocate(Self::bytes_for(domain.half_sites() as usize), &what);
        Ok(DeviceGauge { domain: domain.clone(), halves: [half()?, half()?], factor, format: PhantomData })
    }
    /// `links` over `factor`, each beside the one that ends at its site after `STEPS` steps: 1 for hops over one link, 3
    /// for hops over links three sites long.
    pub fn from_thin<const STEPS: usize>(links: &ThinGauge, factor: f64) -> Result<Self> {
        let domain = links.domain();
        // Links that begin further away are with nobody that this process hears of.
        domain.grid().check(domain.global().size(), STEPS)?;
        let gauge = Self::empty(domain, factor)?;
        for parity in 0..2 {
            let kernel = PackThin::<P, R, STEPS> {
                input: links.both(),
                links: gauge.links(parity),
                lattice: links.bordered(),
                parity: parity as u32,
                scale: 1.0 / factor,
                format: PhantomData,
            };
            domain.backend().launch(&kernel, domain.half_sites(), 1)?;
        }
        Ok(gauge)
    }
    /// What the links are to be multiplied with: 1 for those of a gauge configuration.
    pub fn factor(&self) -> f64 {
        self.factor
    }
    /// *Collective.* Copies host links to the device and packs them.
    pub fn upload(domain: &Domain, gauge: &HostGauge) -> Result<Self> {
        ThinGauge::upload(domain, gauge)?.pack()
    }
    /// Bytes of the links around `sites` sites of one parity.
    pub fn bytes_for(sites: usize) -> usize {
        sites.div_ceil(TILE) * TILE * R::SITE_BYTES
    }
    /// Where the field lives.
    pub fn domain(&self) -> &Domain {
        &self.domain
    }
    /// The links around the sites of `parity`, as kernels see them. The view must not outlive the field.
    pub(crate) fn links(&self, parity: usize) -> Links<P, R> {
        view::links(&self.halves[parity], self.domain.half_sites() as usize)
    }
}
