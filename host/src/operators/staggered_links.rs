//! Links over which staggered operators hop: thin ones, or fat and long ones.
use crate::domain::{DeviceError, Domain, Result};
use crate::field::DeviceGauge;
use gpu_kernels::exterior::{IMPROVED_EXTERIOR, IMPROVED_EXTERIOR_DOT, STAGGERED_EXTERIOR, STAGGERED_EXTERIOR_DOT};
use gpu_kernels::staggered::{
    IMPROVED_DSLASH, IMPROVED_DSLASH_DOT, STAGGERED_DSLASH, STAGGERED_DSLASH_DOT, StaggeredDslash,
};
use gpu_kernels::{Format, Instances, LinkStorage, Precision, SumInstances};
use std::sync::Arc;

/// Flops per site for the naive hopping term, by the community's standard count: eight products of a matrix and a vector and
/// seven sums.
pub const STAGGERED_FLOPS: f64 = 570.0;
/// Operations of the hopping term with fat and long links, per site.
pub const IMPROVED_FLOPS: f64 = 1146.0;
/// Links of a staggered operator: thin links, or fat and long links.
pub struct StaggeredLinks {
    /// Thin or fat links.
    pub(super) near: Arc<DeviceGauge>,
    /// Long links, for hops of three sites.
    pub(super) long: Option<DeviceGauge>,
    /// Whether hops are without the signs η.
    pub(super) bare: bool,
}

impl StaggeredLinks {
    /// Makes links of the naive operator.
    pub fn naive(links: Arc<DeviceGauge>) -> Self {
        StaggeredLinks { near: links, long: None, bare: false }
    }
    /// Makes links for the hops Σ_μ U_μ(x) ψ(x+μ̂) − U_μ†(x−μ̂) ψ(x−μ̂), without the signs η.
    pub(crate) fn bare(links: DeviceGauge) -> Self {
        StaggeredLinks { near: Arc::new(links), long: None, bare: true }
    }
    /// Whether this build has kernels for fields in `precision` and links in `storage`, which is that of the long links for improved
    /// operators. No build has kernels for links in temporal gauge, for thin links with the phase of their determinant, or for fields in
    /// 16-bit floating point. Such fields would take as much memory as fields in 16-bit fixed point, whose norm only fills up a 16-byte
    /// chunk.
    pub fn exists(improved: bool, precision: Precision, storage: LinkStorage) -> bool {
        let hops = if improved { IMPROVED_DSLASH.0 } else { STAGGERED_DSLASH.0 };
        hops.instance(Format::with_links(precision, storage)).is_some()
    }
    /// Returns the bytes of device memory for the links of a naive or, if `improved` is set, of an improved operator, on `sites` sites of
    /// each parity.
    pub fn bytes_for(improved: bool, precision: Precision, storage: LinkStorage, sites: usize) -> usize {
        let links = |storage| 2 * DeviceGauge::bytes_for(precision, storage, sites);
        let fat = if improved { links(storage.with_all_reals()) } else { 0 };
        fat + links(LinkStorage { fine: false, ..storage })
    }
    /// Combines fat links and long links that [`DeviceGauge::from_links`] has packed.
    ///
    /// # Errors
    /// Long links on another lattice than the fat ones, in the memory of another backend, or in another precision; fat links
    /// that are not stored with all their real numbers.
    pub fn improved(fat: DeviceGauge, long: DeviceGauge) -> Result<Self> {
        fat.domain().expect_here("a field of long links", long.domain())?;
        let found = Format::with_links(fat.precision(), fat.storage());
        let may_be_fine = LinkStorage { fine: fat.storage().fine && long.storage().half, ..long.storage() };
        let expected = Format::with_links(long.precision(), may_be_fine.with_all_reals());
        if found != expected {
            return Err(DeviceError::OtherFormat { found, expected });
        }
        Ok(StaggeredLinks { near: Arc::new(fat), long: Some(long), bare: false })
    }
    /// Returns the domain of the links.
    pub fn domain(&self) -> &Domain {
        self.near.domain()
    }
    /// Returns the precision of the fields on which operators with these links act.
    pub fn precision(&self) -> Precision {
        self.near.precision()
    }
    /// Returns the operations of the hopping term per site.
    pub fn flops(&self) -> f64 {
        if self.long.is_some() { IMPROVED_FLOPS } else { STAGGERED_FLOPS }
    }
    /// Returns the bytes of links that the hopping term reads for one site of the result.
    pub fn read_bytes(&self) -> usize {
        let links = [Some(&*self.near), self.long.as_ref()];
        links.into_iter().flatten().map(|links| links.storage().read_bytes(links.precision())).sum()
    }
    /// Returns the number of sites that the longest hop spans.
    pub(super) fn steps(&self) -> u32 {
        if self.long.is_some() { 3 } else { 1 }
    }
    /// Returns the format of kernels, with the storage of the long links if there are any.
    pub(super) fn format(&self) -> Format {
        let near = self.near.storage();
        let storage = self.long.as_ref().map_or(near, |long| LinkStorage { fine: near.fine, ..long.storage() });
        Format::with_links(self.precision(), storage)
    }
    /// Returns the kernels of products: by themselves and with sums, in the interior and in exteriors.
    pub(super) fn kernels(&self) -> [(&'static Instances<StaggeredDslash>, &'static SumInstances<StaggeredDslash>); 2] {
        match self.long {
            None => [(&STAGGERED_DSLASH, &STAGGERED_DSLASH_DOT), (&STAGGERED_EXTERIOR, &STAGGERED_EXTERIOR_DOT)],
            Some(_) => [(&IMPROVED_DSLASH, &IMPROVED_DSLASH_DOT), (&IMPROVED_EXTERIOR, &IMPROVED_EXTERIOR_DOT)],
        }
    }
}
