//! Links on a device that are going to change.
use super::host::{HostGauge, Matrix};
use crate::backend::{Backend, view};
use crate::domain::{Domain, Result};
use crate::measure;
use gpu_kernels::field::ThinLinks;
use gpu_kernels::heatbath::{Sublattice, ThinPlaquette};
use gpu_kernels::storage::TILE;
use gpu_kernels::transfer::{HostArray, PackThinLinks, UnpackThinLinks};
use num_complex::Complex64;

/// Links on a device in double precision, each kept once: the working copy of what changes a gauge field. What applies
/// operators reads the [`DeviceGauge`](super::DeviceGauge), which keeps each link twice.
pub struct ThinGauge<B: Backend> {
    domain: Domain<B>,
    halves: [B::Buffer; 2],
}

impl<B: Backend> ThinGauge<B> {
    fn empty(domain: &Domain<B>) -> Result<Self> {
        let half = || {
            let bytes = Self::bytes_for(domain.sites() as usize);
            domain.backend().allocate(bytes, &format!("a gauge field on {}", domain.local()))
        };
        Ok(ThinGauge { domain: domain.clone(), halves: [half()?, half()?] })
    }
    /// Copies host links to the device. Panics when the lattice is not the domain's.
    pub fn upload(domain: &Domain<B>, gauge: &HostGauge) -> Result<Self> {
        assert_eq!(gauge.lattice(), domain.local(), "the gauge field has the domain's lattice");
        let thin = Self::empty(domain)?;
        let data: &[u8] = bytemuck::cast_slice(gauge.links());
        let mut staged = domain.backend().allocate(data.len(), "the upload of a gauge field")?;
        domain.backend().upload(data, &mut staged, 0)?;
        for parity in 0..2 {
            let kernel = PackThinLinks {
                host: thin.host_array(&staged),
                links: thin.links(parity),
                geometry: domain.geometry(),
                parity: parity as u32,
            };
            domain.backend().launch(&kernel, domain.sites(), 1)?;
        }
        Ok(thin)
    }
    /// Copies the links to the host.
    pub fn download(&self) -> Result<HostGauge> {
        let mut links = vec![Matrix::default(); 4 * self.domain.local().volume()];
        let data: &mut [u8] = bytemuck::cast_slice_mut(&mut links);
        let staged = self.domain.backend().allocate(data.len(), "the download of a gauge field")?;
        for parity in 0..2 {
            let kernel = UnpackThinLinks {
                host: self.host_array(&staged),
                links: self.links(parity),
                geometry: self.domain.geometry(),
                parity: parity as u32,
            };
            self.domain.backend().launch(&kernel, self.domain.sites(), 1)?;
        }
        self.domain.backend().download(&staged, 0, data)?;
        Ok(HostGauge::from_links(self.domain.local(), links))
    }
    /// Bytes of the links that start at `sites` sites of one parity.
    pub fn bytes_for(sites: usize) -> usize {
        sites.div_ceil(TILE) * TILE * ThinLinks::SITE_BYTES
    }
    /// Where the field lives.
    pub fn domain(&self) -> &Domain<B> {
        &self.domain
    }
    /// Mean plaquettes over the lattice of all processes.
    pub fn plaquette(&self) -> Result<measure::Plaquette> {
        for parity in 0..2 {
            let kernel = ThinPlaquette {
                here: self.links(parity),
                there: self.links(1 - parity),
                geometry: self.domain.geometry(),
                parity: parity as u32,
            };
            self.domain.backend().reduce(&kernel, self.domain.sites(), 1, 2 * parity)?;
        }
        let mut s = [0.0; 4];
        self.domain.sums(&mut s)?;
        let norm = 9.0 * self.domain.global().volume() as f64;
        let (spatial, temporal) = ((s[0] + s[2]) / norm, (s[1] + s[3]) / norm);
        Ok(measure::Plaquette { mean: 0.5 * (spatial + temporal), spatial, temporal })
    }
    /// The links of one parity and direction for kernels that change them. The view must not outlive the field.
    pub(crate) fn sublattice(&mut self, parity: u32, mu: u32) -> Sublattice {
        let links = [self.links(0), self.links(1)];
        Sublattice { links, geometry: self.domain.geometry(), parity, mu }
    }
    /// The links on the even and on the odd sites as kernels see them. The views must not outlive the field.
    pub(crate) fn both(&self) -> [ThinLinks; 2] {
        [self.links(0), self.links(1)]
    }
    /// Memory for links on the same lattice, zero.
    pub(crate) fn empty_like(&self) -> Result<Self> {
        Self::empty(&self.domain)
    }
    pub(crate) fn links(&self, parity: usize) -> ThinLinks {
        view::thin_links(&self.halves[parity], self.domain.sites() as usize)
    }
    fn host_array(&self, staged: &B::Buffer) -> HostArray {
        view::host_array(staged, size_of::<Matrix>() / size_of::<Complex64>() * 4 * self.domain.local().volume())
    }
}
