//! Ghost zones of a local lattice that is part of a larger one: one zone at each end of each partitioned direction. A zone
//! holds whole layers across its direction, the nearest first. A layer has the sites of one parity ([`Geometry::face_index`]),
//! in tiles like those of fields.
//!
//! Zones of spinors have one layer. They hold the projection of each spinor that a hop needs, which is half of it (Babich et
//! al. 2011, section 6.1). Zones of colour vectors have as many layers as the longest hop. Zones of coarse levels of multigrid
//! have one layer with all spinors of its sites.
use crate::algebra::{Axis, DiracSpinor, Projector, ProjectorSign, Real, Scaled, complex};
use crate::field::Field;
use crate::lattice::{Geometry, Neighbours, Site};
use crate::memory::Global;
use crate::schwarz::Blocks;
use crate::storage::{Element, NumberFormat, PADDING};

/// Ghost zones around a field of one parity.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct Ghosts {
    /// `[μ][forward]`: addresses of the zones. Only zones of partitioned directions are read.
    zones: [[Global; 2]; 4],
    /// Number of sites of a zone for one right-hand side, in units of [`PADDING`].
    steps: [u32; 4],
    /// Bit μ is set if direction μ is partitioned.
    cut: u32,
    /// 0 if there are no zones, and fields are zero outside the local lattice or the block; else 1.
    open: u32,
    /// Blocks of a domain decomposition, which are used if `open` is 0.
    blocks: Blocks,
}

/// Returns the size of a zone of `layers` layers with `face` sites each, in units of [`PADDING`] sites, rounded up.
pub const fn zone_steps(face: u32, layers: u32) -> u32 {
    (face * layers).div_ceil(PADDING as u32)
}

impl Ghosts {
    /// Placeholder without zones, for kernels that do not use ghost zones.
    pub const NONE: Ghosts = Self::closed(0, Blocks::NONE);
    /// Creates zones of `steps[μ]` times [`PADDING`] sites for each right-hand side, for the directions μ whose bits
    /// are set in `cut`. `zones[μ][0]` is the address of the zone before the first sites of direction μ, and
    /// `zones[μ][1]` that of the zone after the last sites.
    ///
    /// # Safety
    /// The zones stay at the given addresses while a kernel runs that holds the view or a copy of it. They have all sites and
    /// right-hand sides for which the kernel is launched.
    pub unsafe fn new(zones: [[*mut u8; 2]; 4], steps: [u32; 4], cut: u32, blocks: Blocks) -> Self {
        Ghosts { zones: zones.map(|ends| ends.map(Global)), steps, cut, open: 1, blocks }
    }
    /// Creates boundaries at which fields are zero outside the blocks, for the directions whose bits are set in `cut`.
    pub const fn closed(cut: u32, blocks: Blocks) -> Self {
        let nowhere = [Global(core::ptr::null_mut()); 2];
        Ghosts { zones: [nowhere; 4], steps: [0; 4], cut, open: 0, blocks }
    }
    /// Returns whether direction `mu` is partitioned.
    #[inline(always)]
    pub fn is_cut(&self, mu: usize) -> bool {
        self.cut >> mu & 1 != 0
    }
    /// Returns the zone at one end of direction `mu` as a field: after the last sites if `forward`, else before the
    /// first.
    ///
    /// # Safety
    /// The zone holds whole sites, not half spinors.
    #[inline(always)]
    pub unsafe fn field(&self, mu: usize, forward: bool) -> Field {
        unsafe { Field::new(self.zone(mu, forward).0, self.steps[mu]) }
    }
    #[inline(always)]
    fn zone(&self, mu: usize, forward: bool) -> Global {
        if forward { self.zones[mu][1] } else { self.zones[mu][0] }
    }
    /// Returns the tile that holds site `f` of a zone of half spinors, and the place of the site in the tile.
    ///
    /// # Safety
    /// The zone holds half spinors, and that site.
    #[inline(always)]
    pub unsafe fn half_spinor<P: NumberFormat>(&self, f: u32, rhs: u32, mu: usize, forward: bool) -> (Global, usize) {
        let sites = P::Real::TILE;
        let tile = rhs * self.steps[mu] * (PADDING / sites) as u32 + f / sites as u32;
        let offset = tile as u64 * (sites * P::HALF_SPINOR_BYTES) as u64;
        (unsafe { self.zone(mu, forward).offset(offset as usize) }, (f % sites as u32) as usize)
    }
}

/// Source of spinors for hops that leave the local lattice.
pub trait SpinorGhosts: Copy {
    /// Returns `sum` unchanged. It prevents the compiler from moving hops across this point.
    fn black_box<P: NumberFormat>(&self, sum: DiracSpinor<P::Real>) -> DiracSpinor<P::Real>;
    /// Returns the projection by `p` of the spinor one step from `x`, in direction `way.0`, forward if `way.1`; `None` if the
    /// neighbour is in the local lattice.
    ///
    /// # Safety
    /// The contract of [`Kernel::site`](crate::Kernel::site) holds.
    unsafe fn projected<P: NumberFormat, S: ProjectorSign>(
        &self,
        geometry: &Geometry,
        x: &Site,
        rhs: u32,
        way: (usize, bool),
        p: Projector<S>,
    ) -> Option<Scaled<P::Real>>;
}

/// Source of colour vectors for hops that leave the local lattice.
pub trait ColourGhosts: Copy {
    /// Returns the field that holds the vector of the neighbour in direction `way.0`, forward if `way.1`, and its index in that
    /// field.
    fn locate<const STEPS: u32>(
        &self,
        input: &Field,
        neighbours: &Neighbours<STEPS>,
        way: (usize, bool),
    ) -> (Field, u32);
}

/// Source for kernels without ghost zones: either the local lattice is the whole lattice, or hops that leave it are
/// omitted.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct NoGhosts;

impl SpinorGhosts for NoGhosts {
    #[inline(always)]
    fn black_box<P: NumberFormat>(&self, sum: DiracSpinor<P::Real>) -> DiracSpinor<P::Real> {
        sum
    }
    #[inline(always)]
    unsafe fn projected<P: NumberFormat, S: ProjectorSign>(
        &self,
        _: &Geometry,
        _: &Site,
        _: u32,
        _: (usize, bool),
        _: Projector<S>,
    ) -> Option<Scaled<P::Real>> {
        None
    }
}

impl ColourGhosts for NoGhosts {
    #[inline(always)]
    fn locate<const STEPS: u32>(
        &self,
        input: &Field,
        neighbours: &Neighbours<STEPS>,
        (mu, forward): (usize, bool),
    ) -> (Field, u32) {
        (*input, neighbours.at(mu, forward))
    }
}

impl SpinorGhosts for Ghosts {
    // Branches separate the hops. Without `black_box`, links and spinors of all hops would stay in registers until the
    // last hop.
    #[inline(always)]
    fn black_box<P: NumberFormat>(&self, sum: DiracSpinor<P::Real>) -> DiracSpinor<P::Real> {
        sum.map(|z| complex(z.re.black_box(), z.im.black_box()))
    }
    #[inline(always)]
    unsafe fn projected<P: NumberFormat, S: ProjectorSign>(
        &self,
        geometry: &Geometry,
        x: &Site,
        rhs: u32,
        (mu, forward): (usize, bool),
        p: Projector<S>,
    ) -> Option<Scaled<P::Real>> {
        if !self.is_cut(mu) {
            return None;
        }
        if self.open == 0 {
            return if self.blocks.leaves(x, mu, forward) { Some(Scaled::ZERO) } else { None };
        }
        if !geometry.wraps(x, mu, forward) {
            return None;
        }
        unsafe {
            let (tile, lane) = self.half_spinor::<P>(geometry.face_index(x, mu), rhs, mu, forward);
            Some(P::load_half_spinor(tile, lane, p.axis == Axis::T))
        }
    }
}

impl ColourGhosts for Ghosts {
    #[inline(always)]
    fn locate<const STEPS: u32>(
        &self,
        input: &Field,
        neighbours: &Neighbours<STEPS>,
        (mu, forward): (usize, bool),
    ) -> (Field, u32) {
        let out = if self.is_cut(mu) { neighbours.layers_out(mu, forward) } else { 0 };
        let (local, ghost) = (neighbours.at(mu, forward), neighbours.ghost_index(mu, out));
        // SAFETY: an operator on colour vectors is given zones of colour vectors.
        let zone = unsafe { self.field(mu, forward) };
        // The condition selects an address; it does not become a branch.
        if out == 0 { (*input, local) } else { (zone, ghost) }
    }
}
