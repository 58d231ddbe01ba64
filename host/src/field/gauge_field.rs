//! Links on a device, each stored once, for all work that changes links.
use super::host::{HostGauge, Matrix};
use super::phases::HopPhases;
use crate::backend::{DeviceBuffer, view};
use crate::domain::Part;
use crate::domain::{DeviceError, Domain, Result};
use gpu_kernels::algebra::Complex;
use gpu_kernels::field::ThinLinks;
use gpu_kernels::gauge_fixing::Star;
use gpu_kernels::heatbath::Sublattice;
use gpu_kernels::lattice::{Bordered, Region};
use gpu_kernels::smeared::{
    SCALE_LINKS, SINGULAR_THIN, ScaleLinks, SingularThin, UNITARITY_VIOLATION, UnitarityViolation,
};
use gpu_kernels::storage::padded;
use gpu_kernels::transfer::{HostArray, UNPACK_THIN_LINKS, UnpackThinLinks};
use gpu_kernels::{Format, Precision};
use num_complex::Complex64;
use std::sync::Arc;

/// Links on a device, each stored once, in double or single precision. All changes of links are made in this form; the packed links of
/// operators, [`DeviceGauge`](super::DeviceGauge), are made from it. On a partitioned lattice, the field has a border of the neighbours'
/// links.
///
/// Only molecular dynamics uses single precision. All other functions need double precision, and return [`DeviceError::OtherFormat`]
/// otherwise.
pub struct GaugeField {
    domain: Domain,
    halves: Arc<[DeviceBuffer; 2]>,
    /// Number of sites of the border at both ends of each direction: 0 in directions that are not partitioned, otherwise 4 for paths of
    /// three steps, or 2 if the local lattice is too thin.
    border: [u32; 4],
    precision: Precision,
}

impl GaugeField {
    /// Allocates links whose matrices are zero.
    pub(crate) fn empty(domain: &Domain, precision: Precision) -> Result<Self> {
        Self::expect_kept_in(precision)?;
        let border = Part::new(domain.local(), domain.grid()).border();
        let sites = domain.bordered_by(border).geometry.half_volume() as usize;
        let bytes = Self::bytes_for(precision, sites);
        let half = || domain.backend().allocate(bytes, &format!("a gauge field on {}", domain.local()));
        Ok(GaugeField { domain: domain.clone(), halves: Arc::new([half()?, half()?]), border, precision })
    }
    /// Checks that links and momenta can be stored in this precision, which must be double or single.
    pub(crate) fn expect_kept_in(precision: Precision) -> Result {
        match precision {
            Precision::Double | Precision::Single => Ok(()),
            Precision::Half | Precision::Fp16 => {
                let (found, expected) = (Format::of(precision), Format::of(Precision::Single));
                Err(DeviceError::OtherFormat { found, expected })
            }
        }
    }
    /// Checks that the links are in the given precision.
    pub(crate) fn expect_in(&self, precision: Precision) -> Result {
        if self.precision == precision {
            return Ok(());
        }
        Err(DeviceError::OtherFormat { found: Format::of(self.precision), expected: Format::of(precision) })
    }
    /// Returns the precision in which the links are stored.
    pub fn precision(&self) -> Precision {
        self.precision
    }
    /// Returns the same links as links of a lattice with a ghost zone of `width` sites, which is a part of the border. The result is for
    /// reading only. Returns `None` if the border is not wider than `width`, because links at the ends need one more site.
    pub(crate) fn with_ghost_zone(&self, width: u32) -> Result<Option<Self>> {
        let ghost = self.domain.border(width);
        if (0..4).any(|mu| ghost[mu] > 0 && self.border[mu] <= ghost[mu]) {
            return Ok(None);
        }
        let border = std::array::from_fn(|mu| self.border[mu] - ghost[mu]);
        let domain = self.domain.with_ghost_zone(width)?;
        Ok(Some(GaugeField { domain, halves: Arc::clone(&self.halves), border, precision: self.precision }))
    }
    /// Returns the number of sites of the border at both ends of each direction.
    pub(crate) fn border(&self) -> [u32; 4] {
        self.border
    }
    /// Returns another handle to the same memory.
    pub(crate) fn share(&self) -> Self {
        GaugeField {
            domain: self.domain.clone(),
            halves: Arc::clone(&self.halves),
            border: self.border,
            precision: self.precision,
        }
    }
    /// Returns a copy of the links, including the border.
    pub fn copied(&self) -> Result<Self> {
        let mut copy = self.empty_like()?;
        copy.copy_from(self)?;
        Ok(copy)
    }
    /// Replaces the links, including the border, by those of `other`. Fails if `other` is on another device or lattice, or in another
    /// precision.
    pub fn copy_from(&mut self, other: &Self) -> Result {
        self.domain.expect_here("a field of links", &other.domain)?;
        other.expect_in(self.precision)?;
        assert_eq!(self.border, other.border, "domains of one lattice and one grid have the same border");
        let bytes = Self::bytes_for(self.precision, self.bordered_sites() as usize);
        let Some(halves) = Arc::get_mut(&mut self.halves) else {
            // Other handles share the memory and must keep the old links, so the copy gets new memory.
            *self = other.copied()?;
            return Ok(());
        };
        for (to, from) in halves.iter_mut().zip(&*other.halves) {
            self.domain.backend().copy(from, to, bytes)?;
        }
        Ok(())
    }
    /// Returns the number of bytes of the links that start at `sites` sites of one parity.
    ///
    /// # Panics
    /// Panics for a precision of 16 bits.
    pub fn bytes_for(precision: Precision, sites: usize) -> usize {
        padded(sites) * Self::site_bytes(precision)
    }
    fn site_bytes(precision: Precision) -> usize {
        match precision {
            Precision::Double => ThinLinks::site_bytes::<f64>(),
            Precision::Single => ThinLinks::site_bytes::<f32>(),
            Precision::Half | Precision::Fp16 => panic!("links that are kept once have 64 or 32 bits, not 16"),
        }
    }
    /// Returns the domain on which the links are stored.
    pub fn domain(&self) -> &Domain {
        &self.domain
    }
    /// Returns the lattice with its border.
    pub(crate) fn bordered(&self) -> Bordered {
        self.domain.bordered_by(self.border)
    }
    /// Returns the number of sites of the border at the ends of partitioned directions; 0 if there are none.
    pub(crate) fn border_width(&self) -> u32 {
        self.border.into_iter().max().unwrap_or(0)
    }
    /// Returns the number of sites of one parity, including the border.
    pub(crate) fn bordered_sites(&self) -> u32 {
        self.bordered().geometry.half_volume()
    }
    /// Returns the links that start at even sites and those that start at odd sites, in the form that kernels use. The views must not
    /// outlive the field.
    pub(crate) fn both(&self) -> [ThinLinks; 2] {
        [self.links(0), self.links(1)]
    }
    /// Allocates links of zero matrices on the same lattice in the same precision.
    pub(crate) fn empty_like(&self) -> Result<Self> {
        Self::empty(&self.domain, self.precision)
    }
    /// Returns the links that start at the sites of `parity`, in the form that kernels use. The view must not outlive the field.
    pub(crate) fn links(&self, parity: usize) -> ThinLinks {
        let (sites, bytes) = (self.bordered_sites() as usize, Self::site_bytes(self.precision));
        view::thin_links(&self.halves[parity], sites, bytes)
    }
    /// Copies the links to the host; they must be in double precision.
    pub fn download(&self) -> Result<HostGauge> {
        self.expect_in(Precision::Double)?;
        let mut links = vec![Matrix::default(); 4 * self.domain.local().volume()];
        let data: &mut [u8] = bytemuck::cast_slice_mut(&mut links);
        let buffer = self.domain.backend().allocate(data.len(), "the download of a gauge field")?;
        for parity in 0..2 {
            let kernel = UnpackThinLinks {
                host: self.host_array(&buffer),
                links: self.links(parity),
                lattice: self.bordered(),
                geometry: self.domain.geometry(),
                parity: parity as u32,
            };
            self.domain.backend().launch(&UNPACK_THIN_LINKS, Format::NONE, &kernel, self.domain.half_sites(), 1)?;
        }
        self.domain.backend().download(&buffer, 0, data)?;
        Ok(HostGauge::from_links(self.domain.local(), links))
    }
    /// Multiplies the links of each direction by a phase, border included. Derivatives by links can be multiplied too.
    pub(crate) fn multiply(&self, phases: HopPhases) -> Result {
        if phases.are_none() { Ok(()) } else { self.times_to(phases.times(1.0), self) }
    }
    /// Returns the links multiplied by phases, border included. If all phases are 1, the result shares the memory of these links.
    pub(crate) fn with_hop_phases(&self, phases: HopPhases) -> Result<Self> {
        if phases.are_none() {
            return Ok(self.share());
        }
        let out = self.empty_like()?;
        self.times_to(phases.times(1.0), &out)?;
        Ok(out)
    }
    /// Writes the links multiplied by one factor for each direction to `out`, border included; `out` must have the same lattice and
    /// precision.
    pub(crate) fn times_to(&self, factors: [Complex<f64>; 4], out: &Self) -> Result {
        let format = Format::of(self.precision);
        for parity in 0..2 {
            let kernel = ScaleLinks { input: self.links(parity), out: out.links(parity), factors };
            self.domain.backend().launch(&SCALE_LINKS, format, &kernel, self.bordered_sites(), 1)?;
        }
        Ok(())
    }
    /// *Collective.* Counts the links that reconstruct 8 cannot store: those whose first row is nearly (a, 0, 0), as in the unit field
    /// (Clark et al. 2009, appendix A.2).
    pub fn singular_links(&self) -> Result<usize> {
        self.count_singular(1.0, false)
    }
    /// *Collective.* Counts the links in temporal gauge that reconstruct 8 cannot store. Of the links in t, only those across the boundary
    /// count.
    pub fn singular_links_in_temporal_gauge(&self) -> Result<usize> {
        self.count_singular(1.0, true)
    }
    /// *Collective.* Counts the links, multiplied by `scale`, that reconstruct 8 cannot store. With `temporal`, only links across the
    /// boundary count among those in t.
    pub(crate) fn count_singular(&self, scale: f64, temporal: bool) -> Result<usize> {
        self.expect_in(Precision::Double)?;
        for parity in 0..2 {
            let kernel = SingularThin {
                links: self.links(parity),
                lattice: self.bordered(),
                geometry: self.domain.geometry(),
                parity: parity as u32,
                temporal: u32::from(temporal),
                scale,
            };
            let size = (self.domain.half_sites(), 1);
            self.domain.backend().reduce(&SINGULAR_THIN, Format::NONE, &kernel, size, parity)?;
        }
        let mut counts = [0.0; 2];
        self.domain.sums(&mut counts)?;
        Ok((counts[0] + counts[1]) as usize)
    }
    /// *Collective.* Returns the root mean square of ‖U†U − 1‖ over all links, which must be in double precision.
    pub(crate) fn unitarity_violation(&self) -> Result<f64> {
        self.expect_in(Precision::Double)?;
        for parity in 0..2 {
            let kernel =
                UnitarityViolation { links: self.links(parity), lattice: self.bordered(), parity: parity as u32 };
            let size = (self.domain.half_sites(), 1);
            self.domain.backend().reduce(&UNITARITY_VIOLATION, Format::NONE, &kernel, size, parity)?;
        }
        let mut sums = [0.0; 2];
        self.domain.sums(&mut sums)?;
        Ok(((sums[0] + sums[1]) / (4 * self.domain.global().volume()) as f64).sqrt())
    }
    /// Returns the links of one parity and direction, for kernels that change them in double precision. The view must not outlive the
    /// field.
    pub(crate) fn sublattice(&mut self, parity: u32, mu: u32) -> Sublattice {
        self.assert_double();
        assert_eq!(Arc::strong_count(&self.halves), 1, "others read links that they share");
        Sublattice { links: self.both(), lattice: self.bordered(), parity, mu }
    }
    /// Returns the sites of one parity with the links that start or end there, in double precision. The view must not outlive the field.
    pub(crate) fn star(&self, parity: u32, directions: u32) -> Star {
        self.assert_double();
        Star { links: self.both(), lattice: self.bordered(), parity, directions }
    }
    /// Returns the sites of one parity with their links, for kernels that change links. It includes sites of neighbours at which links of
    /// this part start or end. The outer layer in x has no such links: kernels may write any values there if the border is filled
    /// afterwards.
    pub(crate) fn star_with_ends(&mut self, parity: u32, directions: u32) -> Star {
        assert_eq!(Arc::strong_count(&self.halves), 1, "others read links that they share");
        Star { lattice: self.bordered_with_ends(), ..self.star(parity, directions) }
    }
    /// Returns the lattice with its border, where the inner region includes sites of neighbours in partitioned directions: one layer, or
    /// two in x, because regions have even extents.
    pub(crate) fn bordered_with_ends(&self) -> Bordered {
        let mut lattice = self.bordered();
        if self.border != [0; 4] {
            let local = self.domain.local().size();
            let layers = |mu: usize| self.border[mu].min(if mu == 0 { 2 } else { 1 });
            let start = std::array::from_fn(|mu| self.border[mu] - layers(mu));
            lattice.inner = Region::new(start, std::array::from_fn(|mu| local[mu] as u32 + 2 * layers(mu)));
        }
        lattice
    }
    /// Panics if the links are not in double precision, the only format of kernels that change links.
    fn assert_double(&self) {
        assert_eq!(self.precision, Precision::Double, "links are changed in double precision");
    }
    pub(crate) fn host_array(&self, buffer: &DeviceBuffer) -> HostArray {
        view::host_array(buffer, size_of::<Matrix>() / size_of::<Complex64>() * 4 * self.domain.local().volume())
    }
}
