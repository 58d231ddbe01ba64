//! Gauge fields on a device.
use super::host::HostGauge;
use super::thin::ThinGauge;
use crate::backend::{Backend, view};
use crate::domain::{Domain, Result};
use crate::measure;
use gpu_kernels::field::Links;
use gpu_kernels::gauge::Plaquette;
use gpu_kernels::smeared::PackThin;
use gpu_kernels::storage::{Double, LinkFormat, Precision, Recon18, TILE};
use gpu_kernels::transfer::{PackLinks, SingularLinks};
use std::marker::PhantomData;

/// Host links in device memory, as they are: what every packed copy is made from. Drop it when all copies are made.
pub struct StagedGauge<B: Backend> {
    domain: Domain<B>,
    buffer: B::Buffer,
}

impl<B: Backend> StagedGauge<B> {
    /// Copies host links to the device. Panics when the lattice is not the domain's.
    pub fn upload(domain: &Domain<B>, gauge: &HostGauge) -> Result<Self> {
        assert_eq!(gauge.lattice(), domain.local(), "the gauge field has the domain's lattice");
        let data: &[u8] = bytemuck::cast_slice(gauge.links());
        let mut buffer = domain.backend().allocate(data.len(), "the upload of a gauge field")?;
        domain.backend().upload(data, &mut buffer, 0)?;
        Ok(StagedGauge { domain: domain.clone(), buffer })
    }
    /// How many links reconstruct 8 cannot keep (Clark et al. 2009, appendix A.2): those whose first row is nearly
    /// (a, 0, 0), as in the unit field.
    pub fn singular_links(&self) -> Result<usize> {
        self.count_singular(false)
    }
    /// The same for links in temporal gauge, where those in t count across the boundary only.
    pub fn singular_links_in_temporal_gauge(&self) -> Result<usize> {
        self.count_singular(true)
    }
    fn count_singular(&self, temporal: bool) -> Result<usize> {
        for parity in 0..2 {
            let kernel = SingularLinks {
                host: view::host_array(&self.buffer, 36 * self.domain.local().volume()),
                geometry: self.domain.geometry(),
                parity: parity as u32,
                temporal: u32::from(temporal),
            };
            self.domain.backend().reduce(&kernel, self.domain.sites(), 1, parity)?;
        }
        let mut counts = [0.0; 2];
        self.domain.sums(&mut counts)?;
        Ok((counts[0] + counts[1]) as usize)
    }
    /// A copy in precision `P` with reconstruction `R`. A reconstruction for temporal gauge takes for granted that the
    /// links are in it: [`temporal_gauge`](crate::gauge_fixing::temporal_gauge).
    pub fn pack<P: Precision, R: LinkFormat<P>>(&self) -> Result<DeviceGauge<B, P, R>> {
        let sites = self.domain.sites();
        let gauge = DeviceGauge::<B, P, R>::empty(&self.domain, 1.0)?;
        for parity in 0..2 {
            let kernel = PackLinks {
                host: view::host_array(&self.buffer, 36 * self.domain.local().volume()),
                links: gauge.links(parity),
                geometry: self.domain.geometry(),
                parity: parity as u32,
                format: PhantomData,
            };
            self.domain.backend().launch(&kernel, sites, 1)?;
        }
        Ok(gauge)
    }
}

/// Links on a device in precision `P` with reconstruction `R`: for each parity, all eight links around each site.
pub struct DeviceGauge<B: Backend, P, R> {
    domain: Domain<B>,
    halves: [B::Buffer; 2],
    factor: f64,
    format: PhantomData<(P, R)>,
}

impl<B: Backend, P: Precision, R: LinkFormat<P>> DeviceGauge<B, P, R> {
    fn empty(domain: &Domain<B>, factor: f64) -> Result<Self> {
        let what = format!("a {} recon-{} gauge field on {}", P::NAME, R::NAME, domain.local());
        let half = || domain.backend().allocate(Self::bytes_for(domain.sites() as usize), &what);
        Ok(DeviceGauge { domain: domain.clone(), halves: [half()?, half()?], factor, format: PhantomData })
    }
    /// `links` over `factor`, each beside the one that ends at its site after `STEPS` steps: 1 for hops over one link, 3
    /// for hops over links three sites long.
    pub fn from_thin<const STEPS: usize>(links: &ThinGauge<B>, factor: f64) -> Result<Self> {
        let domain = links.domain();
        let gauge = Self::empty(domain, factor)?;
        for parity in 0..2 {
            let kernel = PackThin::<P, R, STEPS> {
                input: links.both(),
                links: gauge.links(parity),
                geometry: domain.geometry(),
                parity: parity as u32,
                scale: 1.0 / factor,
                format: PhantomData,
            };
            domain.backend().launch(&kernel, domain.sites(), 1)?;
        }
        Ok(gauge)
    }
    /// What the links are to be multiplied with: 1 for those of a gauge configuration.
    pub fn factor(&self) -> f64 {
        self.factor
    }
    /// Copies host links to the device and packs them.
    pub fn upload(domain: &Domain<B>, gauge: &HostGauge) -> Result<Self> {
        StagedGauge::upload(domain, gauge)?.pack()
    }
    /// Bytes of the links around `sites` sites of one parity.
    pub fn bytes_for(sites: usize) -> usize {
        sites.div_ceil(TILE) * TILE * R::SITE_BYTES
    }
    /// Where the field lives.
    pub fn domain(&self) -> &Domain<B> {
        &self.domain
    }
    /// The links around the sites of `parity`, as kernels see them. The view must not outlive the field.
    pub(crate) fn links(&self, parity: usize) -> Links<P, R> {
        view::links(&self.halves[parity], self.domain.sites() as usize)
    }
}

impl<B: Backend> DeviceGauge<B, Double, Recon18> {
    /// Mean plaquettes and mean link trace, Re tr / 3, over the lattice of all processes.
    pub fn plaquette(&self) -> Result<(measure::Plaquette, f64)> {
        for parity in 0..2 {
            let kernel = Plaquette {
                here: self.links(parity),
                there: self.links(1 - parity),
                geometry: self.domain.geometry(),
                parity: parity as u32,
            };
            self.domain.backend().reduce(&kernel, self.domain.sites(), 1, 3 * parity)?;
        }
        let mut s = [0.0; 6];
        self.domain.sums(&mut s)?;
        let volume = self.domain.global().volume() as f64;
        let (spatial, temporal) = ((s[0] + s[3]) / (9.0 * volume), (s[1] + s[4]) / (9.0 * volume));
        let plaquette = measure::Plaquette { mean: 0.5 * (spatial + temporal), spatial, temporal };
        Ok((plaquette, (s[2] + s[5]) / (12.0 * volume)))
    }
}
