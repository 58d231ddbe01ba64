//! Views of fields for kernels: their addresses, and the layout of their sites.
use crate::LinkStorage;
use crate::algebra::{AntiHermitian, Complex, DiracSpinor, Projector, ProjectorSign, Real, Scaled, ScaledColour, Su3};
use crate::memory::{Access, Global};
use crate::multi_rhs::each_rhs;
use crate::storage::{
    Block, CloverFormat, Element, HopLinks, LinkFormat, NumberFormat, PADDING, Single, SiteFormat, Slots, StoreBlock,
    StoreClover, StoreLinks, apply_clover, load_momentum, load_su3, place_in_tiles, stage, store_momentum, store_su3,
};

/// Field on the sites of one parity, with its right-hand sides one after the other. The format of the kernel determines
/// how the numbers are stored.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct Field {
    base: Global,
    /// Distance between right-hand sides, in units of [`PADDING`] sites.
    rhs_step: u32,
}

impl Field {
    /// Returns a placeholder for a field that the kernel does not use.
    ///
    /// # Safety
    /// The view is passed only to kernels that do not use it.
    pub const unsafe fn none() -> Self {
        Field { base: Global(core::ptr::null_mut()), rhs_step: 0 }
    }
    /// Creates a view of the field at `base`. Consecutive right-hand sides are `rhs_step` times [`PADDING`] sites
    /// apart.
    ///
    /// # Safety
    /// The field stays at `base` while a kernel runs that holds the view or a copy of it. It has all sites and right-hand sides
    /// for which the kernel is launched, in the format of the launch.
    pub unsafe fn new(base: *mut u8, rhs_step: u32) -> Self {
        Field { base: Global(base), rhs_step }
    }
    /// Returns the part of this field that begins with right-hand side `rhs`. A site takes `bytes` bytes.
    #[must_use]
    pub fn from_rhs(&self, rhs: usize, bytes: usize) -> Self {
        let offset = rhs * self.rhs_step as usize * PADDING * bytes;
        Field { base: Global(self.base.0.wrapping_add(offset)), ..*self }
    }
    /// Returns the tile that holds site `i`, and the site's place in it. A site takes `bytes` bytes.
    #[inline(always)]
    unsafe fn tile<T: Element>(&self, i: u32, rhs: u32, bytes: usize) -> (Global, usize) {
        let (tile, lane) = place_in_tiles::<T>(i);
        let tile = rhs * self.rhs_step * (PADDING / T::TILE) as u32 + tile;
        let offset = tile as u64 * (T::TILE * bytes) as u64;
        (unsafe { self.base.offset(offset as usize) }, lane)
    }
    /// Reads the value at site `i`. No thread may write the value while the kernel runs.
    ///
    /// # Safety
    /// The site exists.
    #[inline(always)]
    pub unsafe fn load<F: SiteFormat>(&self, i: u32, rhs: u32) -> F::Value {
        unsafe {
            let (tile, lane) = self.tile::<F::Real>(i, rhs, F::BYTES);
            F::load(tile, lane, Access::Shared)
        }
    }
    /// Reads the value at site `i`, which the same call of the kernel writes afterwards.
    ///
    /// # Safety
    /// The site exists.
    #[inline(always)]
    pub unsafe fn load_own<F: SiteFormat>(&self, i: u32, rhs: u32) -> F::Value {
        unsafe {
            let (tile, lane) = self.tile::<F::Real>(i, rhs, F::BYTES);
            F::load(tile, lane, Access::Own)
        }
    }
    /// Writes the value at site `i`.
    ///
    /// # Safety
    /// The site exists, and no other thread writes it.
    #[inline(always)]
    pub unsafe fn store<F: SiteFormat>(&self, i: u32, rhs: u32, value: &F::Value) {
        unsafe {
            let (tile, lane) = self.tile::<F::Real>(i, rhs, F::BYTES);
            F::store(tile, lane, value)
        }
    }
    /// Returns complex number `k` of the spinor at site `i`, in single precision.
    ///
    /// # Safety
    /// The site exists, and the spinor is read as `access` promises.
    #[inline(always)]
    pub unsafe fn number(&self, i: u32, rhs: u32, k: u32, access: Access) -> Complex<f32> {
        unsafe {
            let (tile, lane) = self.tile::<f32>(i, rhs, Single::SPINOR_BYTES);
            Single::number(tile, lane, k as usize, access)
        }
    }
    /// Writes complex number `k` of the spinor at site `i`, given in single precision.
    ///
    /// # Safety
    /// The site exists, and no other thread writes the number.
    #[inline(always)]
    pub unsafe fn put_number(&self, i: u32, rhs: u32, k: u32, z: Complex<f32>) {
        unsafe {
            let (tile, lane) = self.tile::<f32>(i, rhs, Single::SPINOR_BYTES);
            Single::put_number(tile, lane, k as usize, z);
        }
    }
    /// Returns complex numbers `k` and `k` + 1 of the spinor at site `i`, in single precision; `k` must be even.
    ///
    /// # Safety
    /// The site exists; nothing writes it while the kernel runs.
    #[inline(always)]
    pub unsafe fn two_numbers(&self, i: u32, rhs: u32, k: u32) -> [Complex<f32>; 2] {
        unsafe {
            let (tile, lane) = self.tile::<f32>(i, rhs, Single::SPINOR_BYTES);
            Single::two_from(tile, lane, k as usize, Access::Shared)
        }
    }
    /// Returns six of the twelve complex numbers of the spinor at site `i`, in single precision: the first six if
    /// `which` is 0, the last six if it is 1.
    ///
    /// # Safety
    /// The contract of [`two_numbers`](Self::two_numbers) holds.
    #[inline(always)]
    pub unsafe fn half_spinor(&self, i: u32, rhs: u32, which: u32) -> [Complex<f32>; 6] {
        let two = |k: u32| unsafe { self.two_numbers(i, rhs, 6 * which + k) };
        let ([a, b], [c, d], [e, f]) = (two(0), two(2), two(4));
        [a, b, c, d, e, f]
    }
    /// Returns the projection by `p` of the spinor at site `i`. It reads only the components that the projection needs.
    ///
    /// # Safety
    /// The site exists; nothing writes it while the kernel runs.
    #[inline(always)]
    pub unsafe fn projected<P: NumberFormat, S: ProjectorSign>(
        &self,
        i: u32,
        rhs: u32,
        p: Projector<S>,
    ) -> Scaled<P::Real> {
        unsafe {
            let (tile, lane) = self.tile::<P::Real>(i, rhs, P::SPINOR_BYTES);
            P::load_projected(tile, lane, p)
        }
    }
    /// Writes the projection by `p` of the spinor at site `i` to a tile of half spinors; `to` is the tile and the place
    /// in it.
    ///
    /// # Safety
    /// The contract of [`projected`](Self::projected) holds; the place exists, and no other thread writes it.
    #[inline(always)]
    pub unsafe fn project_to<P: NumberFormat>(&self, i: u32, rhs: u32, p: Projector, to: (Global, usize)) {
        unsafe { P::store_projected(self.tile::<P::Real>(i, rhs, P::SPINOR_BYTES), p, to) }
    }
    /// Returns the colour vector at site `i`, with its scale as a separate factor.
    ///
    /// # Safety
    /// The site exists; nothing writes it while the kernel runs.
    #[inline(always)]
    pub unsafe fn scaled<P: NumberFormat>(&self, i: u32, rhs: u32) -> ScaledColour<P::Real> {
        unsafe {
            let (tile, lane) = self.tile::<P::Real>(i, rhs, P::COLOUR_BYTES);
            P::load_colour(tile, lane, Access::Shared)
        }
    }
    /// Copies the colour vector at site `i`, bit by bit, to site `j` of another field.
    ///
    /// # Safety
    /// The contract of [`scaled`](Self::scaled) holds; the other site exists, and no other thread writes it.
    #[inline(always)]
    pub unsafe fn copy_colour_to<P: NumberFormat>(&self, i: u32, rhs: u32, to: &Self, j: u32) {
        unsafe {
            P::copy_colour(self.tile::<P::Real>(i, rhs, P::COLOUR_BYTES), to.tile::<P::Real>(j, rhs, P::COLOUR_BYTES))
        }
    }
}

/// Links around the sites of one parity: U_μ(x) and U†_μ(x−μ̂) for every site x. The kernel's format determines their
/// storage, unless the format is [`AnyLinks`](crate::storage::AnyLinks).
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct Links {
    base: Global,
    /// Storage of the links; only kernels for CPUs read it.
    storage: LinkStorage,
}

impl Links {
    /// Returns a placeholder for links that the kernel does not use.
    ///
    /// # Safety
    /// The view is passed only to kernels that do not use it.
    pub const unsafe fn none() -> Self {
        Links { base: Global(core::ptr::null_mut()), storage: LinkStorage::FULL }
    }
    /// Creates a view of links at `base`.
    ///
    /// # Safety
    /// The links stay at `base` while a kernel runs that holds the view or a copy of it. They have all sites for which the
    /// kernel is launched, in `storage` and in the format of the launch.
    pub unsafe fn new(base: *mut u8, storage: LinkStorage) -> Self {
        Links { base: Global(base), storage }
    }
    /// Returns the address of the links.
    #[inline(always)]
    pub(crate) fn base(&self) -> Global {
        self.base
    }
    /// Returns the storage of the links.
    #[cfg(not(target_arch = "nvptx64"))]
    #[inline(always)]
    pub(crate) fn storage(&self) -> LinkStorage {
        self.storage
    }
    /// Returns whether a CPU can read the links of several sites at once.
    #[inline(always)]
    pub(crate) fn in_lanes(&self) -> bool {
        matches!(self.storage, LinkStorage { reals: 18 | 12, temporal: false, half: false, .. })
    }
    /// Returns both links of direction `mu` at site `i` in packed form.
    ///
    /// # Safety
    /// The site exists.
    #[inline(always)]
    pub unsafe fn pair<P: NumberFormat, R: HopLinks<P>>(&self, i: u32, mu: usize) -> R::HopPair {
        unsafe { R::hop_pair(self, i, mu) }
    }
    /// U_μ(x)
    ///
    /// # Safety
    /// The site exists.
    #[inline(always)]
    pub unsafe fn forward<P: NumberFormat, R: HopLinks<P>>(&self, i: u32, mu: usize) -> Su3<P::Real> {
        R::forward_link(&unsafe { self.pair::<P, R>(i, mu) })
    }
    /// Returns both links of direction `mu` at site `i` for hops.
    ///
    /// # Safety
    /// The site exists, and the links are in temporal gauge if their storage is.
    #[inline(always)]
    pub unsafe fn direction<P: NumberFormat, R: HopLinks<P>>(&self, i: u32, mu: usize) -> DirectionLinks<P, R> {
        let unit = mu == 3 && R::is_temporal(self);
        let pair = if unit { None } else { Some(unsafe { self.pair::<P, R>(i, mu) }) };
        DirectionLinks { links: *self, i, mu, pair }
    }
    /// Writes the links U_μ(x) and U†_μ(x−μ̂) of site `i`.
    ///
    /// # Safety
    /// The site exists, and no other thread writes it.
    #[inline(always)]
    pub unsafe fn store<P: NumberFormat, R: StoreLinks<P>>(
        &self,
        i: u32,
        mu: usize,
        forward: &Su3<f64>,
        backward: &Su3<f64>,
    ) {
        unsafe {
            let (tile, lane) = R::tile(self.base, i);
            R::store_pair(tile, lane, mu, forward, backward)
        }
    }
    /// Copies the links of site `i` to the thread's own memory ([`Staged`](crate::storage::Staged)), and returns a view
    /// of the copies.
    ///
    /// # Safety
    /// The contract of [`StageLinks::stage`](crate::multi_rhs::StageLinks::stage) holds.
    #[inline(always)]
    pub unsafe fn stage<P: NumberFormat, R: LinkFormat<P, Pair: Slots>>(&self, i: u32) -> Links {
        Links { base: unsafe { stage::<P, R>(self.base, i) }, ..*self }
    }
    /// Returns the links for right-hand sides from `first` on, like
    /// [`StageLinks::for_rhs`](crate::multi_rhs::StageLinks::for_rhs). The address seems to depend on `first`, but only
    /// for the compiler, because `first` is always below 65536.
    #[inline(always)]
    pub fn for_rhs(self, first: u32) -> Self {
        Links { base: Global(self.base.0.wrapping_add((first >> 16) as usize)), ..self }
    }
}

/// Both links of one direction at a site, for hops. In temporal gauge, temporal links are read only if a hop crosses
/// the boundary; elsewhere they are 1.
#[derive(Clone, Copy)]
pub struct DirectionLinks<P: NumberFormat, R: HopLinks<P>> {
    links: Links,
    i: u32,
    mu: usize,
    /// The packed links; `None` for links in t in temporal gauge, which few hops need.
    pair: Option<R::HopPair>,
}

impl<P: NumberFormat, R: HopLinks<P>> DirectionLinks<P, R> {
    /// Returns U_μ(x) h for each half spinor in `h`.
    ///
    /// # Safety
    /// The contract of [`Links::direction`] holds; `across` is set if and only if the hop crosses the boundary in t.
    #[inline(always)]
    pub unsafe fn forward<const N: usize>(&self, h: [Scaled<P::Real>; N], across: bool) -> [Scaled<P::Real>; N] {
        match self.pair {
            Some(pair) => times(R::forward_link(&pair), h),
            None if across => times(R::forward_link(&unsafe { self.links.pair::<P, R>(self.i, self.mu) }), h),
            None => h,
        }
    }
    /// Returns U†_μ(x−μ̂) h for each half spinor in `h`.
    ///
    /// # Safety
    /// The contract of [`forward`](Self::forward) holds.
    #[inline(always)]
    pub unsafe fn backward<const N: usize>(&self, h: [Scaled<P::Real>; N], across: bool) -> [Scaled<P::Real>; N] {
        match self.pair {
            Some(pair) => times(R::backward_link(&pair), h),
            None if across => times(R::backward_link(&unsafe { self.links.pair::<P, R>(self.i, self.mu) }), h),
            None => h,
        }
    }
}

#[inline(always)]
fn times<T: Real, const N: usize>(u: Su3<T>, mut h: [Scaled<T>; N]) -> [Scaled<T>; N] {
    each_rhs!(k < N: {
        h[k] = u * h[k];
    });
    h
}

/// Returns a tile of complex numbers, and a site's place in it. On a GPU the address includes the place, so that access to a
/// number takes no further arithmetic.
#[inline(always)]
unsafe fn row_of_tile<T: Element>(base: Global, bytes: u64, lane: usize) -> (Global, usize) {
    let (bytes, lane) =
        if cfg!(target_arch = "nvptx64") { (bytes + (T::BYTES as u32 * lane as u32) as u64, 0) } else { (bytes, lane) };
    (unsafe { base.offset(bytes as usize) }, lane)
}

/// One matrix on each site of one parity, taken from a field with `count` matrices on each site:
/// `[tile][matrix][element][site]`.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct Matrices {
    base: Global,
    count: u32,
    which: u32,
}

impl Matrices {
    /// Creates a view of matrices at `base`, one on each site.
    ///
    /// # Safety
    /// The matrices stay at `base` while a kernel runs that holds the view or a copy of it. They have all sites and right-hand
    /// sides for which the kernel is launched.
    pub unsafe fn new(base: *mut u8) -> Self {
        Matrices { base: Global(base), count: 1, which: 0 }
    }
    /// Returns the number of bytes of one matrix.
    pub const fn site_bytes<T: Element>() -> usize {
        9 * T::BYTES
    }
    #[inline(always)]
    unsafe fn tile<T: Element>(&self, i: u32) -> (Global, usize) {
        let (tile, lane) = place_in_tiles::<T>(i);
        let matrix = (self.count * tile + self.which) as u64 * (T::TILE * Self::site_bytes::<T>()) as u64;
        unsafe { row_of_tile::<T>(self.base, matrix, lane) }
    }
    /// Returns the matrix of site `i`.
    ///
    /// # Safety
    /// The site exists, and the matrix is read as `access` promises.
    #[inline(always)]
    pub unsafe fn load<T: Element>(&self, i: u32, access: Access) -> Su3<T> {
        unsafe { load_su3(self.tile::<T>(i), access) }
    }
    /// Writes the matrix of site `i`.
    ///
    /// # Safety
    /// The site exists, and no other thread writes the matrix.
    #[inline(always)]
    pub unsafe fn store<T: Element>(&self, i: u32, u: &Su3<T>) {
        unsafe { store_su3(self.tile::<T>(i), u) }
    }
}

/// Links that start at the sites of one parity, each stored once: `[tile][μ][element][site]`. Code that changes links
/// uses this layout, because [`Links`] contain each link twice.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct ThinLinks {
    base: Global,
}

impl ThinLinks {
    /// Returns the number of bytes of the four links that start at a site.
    pub const fn site_bytes<T: Element>() -> usize {
        4 * Matrices::site_bytes::<T>()
    }

    /// Creates a view of thin links at `base`.
    ///
    /// # Safety
    /// The links stay at `base` while a kernel runs that holds the view or a copy of it. They have all sites and right-hand
    /// sides for which the kernel is launched.
    pub unsafe fn new(base: *mut u8) -> Self {
        ThinLinks { base: Global(base) }
    }
    /// Returns the links of direction `mu`.
    #[inline(always)]
    pub fn direction(&self, mu: u32) -> Matrices {
        Matrices { base: self.base, count: 4, which: mu }
    }
    /// U_μ(x)
    ///
    /// # Safety
    /// The site exists, and the link is read as `access` promises.
    #[inline(always)]
    pub unsafe fn load<T: Element>(&self, i: u32, mu: u32, access: Access) -> Su3<T> {
        unsafe { self.direction(mu).load(i, access) }
    }
    /// Writes the link U_μ(x) of site `i`.
    ///
    /// # Safety
    /// The site exists, and no other thread writes the link.
    #[inline(always)]
    pub unsafe fn store<T: Element>(&self, i: u32, mu: u32, u: &Su3<T>) {
        unsafe { self.direction(mu).store(i, u) }
    }
}

/// Momenta of the links that start at the sites of one parity: `[tile][μ][element][site]`, with four complex numbers
/// for each momentum.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct Momenta {
    base: Global,
}

impl Momenta {
    /// Returns the number of bytes of the four momenta of a site.
    pub const fn site_bytes<T: Element>() -> usize {
        16 * T::BYTES
    }

    /// Creates a view of momenta at `base`.
    ///
    /// # Safety
    /// The momenta stay at `base` while a kernel runs that holds the view or a copy of it. They have all sites and right-hand
    /// sides for which the kernel is launched.
    pub unsafe fn new(base: *mut u8) -> Self {
        Momenta { base: Global(base) }
    }
    #[inline(always)]
    unsafe fn tile<T: Element>(&self, i: u32, mu: u32) -> (Global, usize) {
        let (tile, lane) = place_in_tiles::<T>(i);
        let momentum = (4 * tile + mu) as u64 * (4 * T::TILE * T::BYTES) as u64;
        unsafe { row_of_tile::<T>(self.base, momentum, lane) }
    }
    /// P_μ(x)
    ///
    /// # Safety
    /// The site exists, and the momentum is read as `access` promises.
    #[inline(always)]
    pub unsafe fn load<T: Element>(&self, i: u32, mu: u32, access: Access) -> AntiHermitian<T> {
        unsafe { load_momentum(self.tile::<T>(i, mu), access) }
    }
    /// Writes the momentum P_μ(x) of site `i`.
    ///
    /// # Safety
    /// The site exists, and no other thread writes the momentum.
    #[inline(always)]
    pub unsafe fn store<T: Element>(&self, i: u32, mu: u32, p: &AntiHermitian<T>) {
        unsafe { store_momentum(self.tile::<T>(i, mu), p) }
    }
}

/// Blocks of the clover term, or of its inverse, on the sites of one parity.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct Clover {
    base: Global,
}

impl Clover {
    /// Returns a placeholder for a clover term that the kernel does not use.
    ///
    /// # Safety
    /// The view is passed only to kernels that do not use it.
    pub const unsafe fn none() -> Self {
        Clover { base: Global(core::ptr::null_mut()) }
    }
    /// Creates a view of clover blocks at `base`.
    ///
    /// # Safety
    /// The blocks stay at `base` while a kernel runs that holds the view or a copy of it. They have all sites and right-hand
    /// sides for which the kernel is launched.
    pub unsafe fn new(base: *mut u8) -> Self {
        Clover { base: Global(base) }
    }
    #[inline(always)]
    unsafe fn tile<P: CloverFormat>(&self, i: u32) -> (Global, usize) {
        let (tile, lane) = place_in_tiles::<P::Real>(i);
        let offset = tile as u64 * (P::Real::TILE * P::CLOVER_BYTES) as u64;
        (unsafe { self.base.offset(offset as usize) }, lane)
    }
    /// Returns A ψ at site `i` for a spinor ψ.
    ///
    /// # Safety
    /// The site exists.
    #[inline(always)]
    pub unsafe fn apply<P: CloverFormat>(&self, i: u32, s: &DiracSpinor<P::Real>) -> DiracSpinor<P::Real> {
        unsafe {
            let [out] = self.apply_all::<P, 1>(i, [*s]);
            out
        }
    }
    /// Returns A ψ at site `i` for N spinors ψ.
    ///
    /// # Safety
    /// The site exists.
    #[inline(always)]
    pub unsafe fn apply_all<P: CloverFormat, const N: usize>(
        &self,
        i: u32,
        all: [DiracSpinor<P::Real>; N],
    ) -> [DiracSpinor<P::Real>; N] {
        unsafe {
            let (tile, lane) = self.tile::<P>(i);
            apply_clover::<P, N>(tile, lane, all)
        }
    }
    /// Returns the block of one chirality at site `i`, and the factor that multiplies its elements.
    ///
    /// # Safety
    /// The site exists.
    #[inline(always)]
    pub unsafe fn load<P: CloverFormat>(&self, i: u32, chirality: usize) -> (Block<P::Real>, P::Real) {
        unsafe {
            let (tile, lane) = self.tile::<P>(i);
            P::load_block(tile, lane, chirality)
        }
    }
    /// Writes the blocks of both chiralities at site `i`.
    ///
    /// # Safety
    /// The site exists, and no other thread writes it.
    #[inline(always)]
    pub unsafe fn store<P: StoreClover>(&self, i: u32, blocks: &[Block<f64>; 2]) {
        unsafe {
            let (tile, lane) = self.tile::<P>(i);
            P::store_blocks(tile, lane, blocks)
        }
    }
    /// Writes the block of one chirality at site `i`.
    ///
    /// # Safety
    /// The site exists, and no other thread writes its block.
    #[inline(always)]
    pub unsafe fn store_block<P: StoreBlock>(&self, i: u32, chirality: usize, block: &Block<f64>) {
        unsafe {
            let (tile, lane) = self.tile::<P>(i);
            P::store_block(tile, lane, chirality, block)
        }
    }
}
