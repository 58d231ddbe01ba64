//! Fields as kernels see them: where they are and how a site is found.
use crate::algebra::{AntiHermitian, Projector, Real, Scaled, ScaledColour, Spinor, Su3};
use crate::memory::{Access, Global};
use crate::sides::each_side;
use crate::storage::{
    Block, CloverFormat, Colours, Element, LinkFormat, Precision, SiteFormat, Slots, Spinors, Staged, TILE,
    apply_clover, load_momentum, load_su3, stage, store_momentum, store_su3,
};
use core::marker::PhantomData;

/// A field on the sites of one parity, for one or more right-hand sides, one after the other.
#[derive(Debug)]
#[repr(C)]
pub struct Field<F> {
    base: Global,
    /// Tiles from one right-hand side to the next.
    rhs_tiles: u32,
    format: PhantomData<F>,
}
impl<F> Clone for Field<F> {
    fn clone(&self) -> Self {
        *self
    }
}
impl<F> Copy for Field<F> {}

impl<F: SiteFormat> Field<F> {
    /// A field at `base` whose right-hand sides are `rhs_tiles` tiles apart.
    ///
    /// # Safety
    /// The field lies there, for as long as a kernel that holds the view or a copy of it runs, with all
    /// sites and right-hand sides that such kernels are launched for.
    pub unsafe fn new(base: *mut u8, rhs_tiles: u32) -> Self {
        Field { base: Global(base), rhs_tiles, format: PhantomData }
    }
    /// The field that begins with right-hand side `rhs` of this one.
    #[must_use]
    pub fn from_rhs(&self, rhs: usize) -> Self {
        let offset = rhs * self.rhs_tiles as usize * TILE * F::BYTES;
        Field { base: Global(self.base.0.wrapping_add(offset)), ..*self }
    }
    /// The tile of site `i`, and the site's place in it.
    #[inline(always)]
    unsafe fn tile(&self, i: u32, rhs: u32) -> (Global, usize) {
        let tile = rhs * self.rhs_tiles + i / TILE as u32;
        let offset = tile as u64 * (TILE * F::BYTES) as u64;
        (unsafe { self.base.offset(offset as usize) }, (i % TILE as u32) as usize)
    }
    /// Reads site `i`; nothing may write it while the kernel runs.
    ///
    /// # Safety
    /// The site exists.
    #[inline(always)]
    pub unsafe fn load(&self, i: u32, rhs: u32) -> F::Value {
        unsafe {
            let (tile, lane) = self.tile(i, rhs);
            F::load(tile, lane, Access::Shared)
        }
    }
    /// Reads site `i`, which the same call of the kernel will write.
    ///
    /// # Safety
    /// The site exists.
    #[inline(always)]
    pub unsafe fn load_own(&self, i: u32, rhs: u32) -> F::Value {
        unsafe {
            let (tile, lane) = self.tile(i, rhs);
            F::load(tile, lane, Access::Own)
        }
    }
    /// Writes site `i`.
    ///
    /// # Safety
    /// The site exists and is written by nobody else.
    #[inline(always)]
    pub unsafe fn store(&self, i: u32, rhs: u32, value: &F::Value) {
        unsafe {
            let (tile, lane) = self.tile(i, rhs);
            F::store(tile, lane, value)
        }
    }
}

impl<P: Precision> Field<Spinors<P>> {
    /// What `p` makes of the spinor at site `i`, reading no more than it needs.
    ///
    /// # Safety
    /// The site exists; nothing writes it while the kernel runs.
    #[inline(always)]
    pub unsafe fn projected(&self, i: u32, rhs: u32, p: Projector) -> Scaled<P::Real> {
        unsafe {
            let (tile, lane) = self.tile(i, rhs);
            P::load_projected(tile, lane, p)
        }
    }
    /// Writes what `p` makes of the spinor at site `i` to a place in a tile of half spinors.
    ///
    /// # Safety
    /// As [`projected`](Self::projected); the place exists and is written by nobody else.
    #[inline(always)]
    pub unsafe fn project_to(&self, i: u32, rhs: u32, p: Projector, to: (Global, usize)) {
        unsafe { P::store_projected(self.tile(i, rhs), p, to) }
    }
}

impl<P: Precision> Field<Colours<P>> {
    /// The colour vector at site `i` before its scale is multiplied in.
    ///
    /// # Safety
    /// The site exists; nothing writes it while the kernel runs.
    #[inline(always)]
    pub unsafe fn scaled(&self, i: u32, rhs: u32) -> ScaledColour<P::Real> {
        unsafe {
            let (tile, lane) = self.tile(i, rhs);
            P::load_colour(tile, lane, Access::Shared)
        }
    }
    /// Copies the vector at site `i`, bit by bit, to site `j` of another field.
    ///
    /// # Safety
    /// As [`scaled`](Self::scaled); the other site exists and is written by nobody else.
    #[inline(always)]
    pub unsafe fn copy_to(&self, i: u32, rhs: u32, to: &Self, j: u32) {
        unsafe { P::copy_colour(self.tile(i, rhs), to.tile(j, rhs)) }
    }
}

/// The links around the sites of one parity: for every site U_μ(x) and U†_μ(x−μ̂).
#[derive(Debug)]
#[repr(C)]
pub struct Links<P, R> {
    base: Global,
    format: PhantomData<(P, R)>,
}
impl<P, R> Clone for Links<P, R> {
    fn clone(&self) -> Self {
        *self
    }
}
impl<P, R> Copy for Links<P, R> {}

impl<P: Precision, R: LinkFormat<P>> Links<P, R> {
    /// Links at `base`.
    ///
    /// # Safety
    /// The links lie there, for as long as a kernel that holds the view or a copy of it runs, with all
    /// sites and right-hand sides that such kernels are launched for.
    pub unsafe fn new(base: *mut u8) -> Self {
        Links { base: Global(base), format: PhantomData }
    }
    /// Both links of direction `mu` at site `i`, still packed.
    ///
    /// # Safety
    /// The site exists.
    #[inline(always)]
    pub unsafe fn pair(&self, i: u32, mu: usize) -> R::Pair {
        unsafe { R::pair(self.base, i, mu) }
    }
    /// U_μ(x)
    ///
    /// # Safety
    /// The site exists.
    #[inline(always)]
    pub unsafe fn forward(&self, i: u32, mu: usize) -> Su3<P::Real> {
        R::forward(&unsafe { self.pair(i, mu) })
    }
    /// Both links of direction `mu` at site `i`, for hops.
    ///
    /// # Safety
    /// The site exists, and the links are in temporal gauge if `R` says so.
    #[inline(always)]
    pub unsafe fn direction(&self, i: u32, mu: usize) -> Direction<P, R> {
        let unit = R::TEMPORAL && mu == 3;
        let pair = if unit { None } else { Some(unsafe { self.pair(i, mu) }) };
        Direction { links: *self, i, mu, pair }
    }
    /// Writes U_μ(x) and U†_μ(x−μ̂).
    ///
    /// # Safety
    /// The site exists and is written by nobody else.
    #[inline(always)]
    pub unsafe fn store(&self, i: u32, mu: usize, forward: &Su3<f64>, backward: &Su3<f64>) {
        unsafe {
            let (tile, lane) = R::tile(self.base, i);
            R::store_pair(tile, lane, mu, forward, backward)
        }
    }
}

/// Both links of a direction at a site, as hops see them. In temporal gauge those in t are read where a hop crosses the
/// boundary, and are 1 elsewhere.
#[derive(Clone, Copy)]
pub struct Direction<P: Precision, R: LinkFormat<P>> {
    links: Links<P, R>,
    i: u32,
    mu: usize,
    /// `None`: not read yet.
    pair: Option<R::Pair>,
}

impl<P: Precision, R: LinkFormat<P>> Direction<P, R> {
    /// U_μ(x) h for each h.
    ///
    /// # Safety
    /// As [`Links::direction`]; `across` says whether the hop crosses the boundary in t.
    #[inline(always)]
    pub unsafe fn forward<const N: usize>(&self, h: [Scaled<P::Real>; N], across: bool) -> [Scaled<P::Real>; N] {
        match self.pair {
            Some(pair) => times(R::forward(&pair), h),
            None if across => times(R::forward(&unsafe { self.links.pair(self.i, self.mu) }), h),
            None => h,
        }
    }
    /// U†_μ(x−μ̂) h for each h.
    ///
    /// # Safety
    /// As [`forward`](Self::forward).
    #[inline(always)]
    pub unsafe fn backward<const N: usize>(&self, h: [Scaled<P::Real>; N], across: bool) -> [Scaled<P::Real>; N] {
        match self.pair {
            Some(pair) => times(R::backward(&pair), h),
            None if across => times(R::backward(&unsafe { self.links.pair(self.i, self.mu) }), h),
            None => h,
        }
    }
}

#[inline(always)]
fn times<T: Real, const N: usize>(u: Su3<T>, mut h: [Scaled<T>; N]) -> [Scaled<T>; N] {
    each_side!(k < N: {
        h[k] = u * h[k];
    });
    h
}

impl<P: Precision, R: LinkFormat<P, Pair: Slots>> Links<P, R> {
    /// The links of site `i`, kept for the thread.
    ///
    /// # Safety
    /// As [`Stage::stage`](crate::sides::Stage::stage).
    #[inline(always)]
    pub unsafe fn stage(&self, i: u32) -> Links<P, Staged<R>> {
        Links { base: unsafe { stage::<P, R>(self.base, i) }, format: PhantomData }
    }
}

impl<P: Precision, R: LinkFormat<P>> Links<P, Staged<R>> {
    /// As [`Stage::turned`](crate::sides::Stage::turned): there are never 65536 right-hand sides.
    #[inline(always)]
    pub fn turned(self, first: u32) -> Self {
        Links { base: Global(self.base.0.wrapping_add((first >> 16) as usize)), ..self }
    }
}

/// Matrix number `which` of `count` that are kept at each site of one parity: `[tile][matrix][element][site]`.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct Matrices<T = f64> {
    base: Global,
    count: u32,
    which: u32,
    format: PhantomData<T>,
}

impl<T: Element> Matrices<T> {
    /// The only matrix of each site, at `base`.
    ///
    /// # Safety
    /// The matrices lie there, for as long as a kernel that holds the view or a copy of it runs, with all
    /// sites and right-hand sides that such kernels are launched for.
    pub unsafe fn new(base: *mut u8) -> Self {
        Matrices { base: Global(base), count: 1, which: 0, format: PhantomData }
    }
    /// Bytes of a site.
    pub const SITE_BYTES: usize = 9 * T::BYTES;
    #[inline(always)]
    unsafe fn elements(&self, i: u32) -> Global {
        let (tile, lane) = (i / TILE as u32, i % TILE as u32);
        let matrix = (self.count * tile + self.which) as u64 * (TILE * Self::SITE_BYTES) as u64;
        unsafe { self.base.offset((matrix + (T::BYTES as u32 * lane) as u64) as usize) }
    }
    /// The matrix at site `i`.
    ///
    /// # Safety
    /// The site exists, and the matrix is read as `access` promises.
    #[inline(always)]
    pub unsafe fn load(&self, i: u32, access: Access) -> Su3<T> {
        unsafe { load_su3(self.elements(i), access) }
    }
    /// Writes the matrix at site `i`.
    ///
    /// # Safety
    /// The site exists, and the matrix is written by nobody else.
    #[inline(always)]
    pub unsafe fn store(&self, i: u32, u: &Su3<T>) {
        unsafe { store_su3(self.elements(i), u) }
    }
}

/// The links that start at the sites of one parity, each kept once: `[tile][μ][element][site]`. For what changes links,
/// where the second copy that [`Links`] keeps would have to be brought up to date.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct ThinLinks<T = f64> {
    base: Global,
    format: PhantomData<T>,
}

impl<T: Element> ThinLinks<T> {
    /// Bytes of the links that start at a site.
    pub const SITE_BYTES: usize = 4 * Matrices::<T>::SITE_BYTES;

    /// Links at `base`.
    ///
    /// # Safety
    /// The links lie there, for as long as a kernel that holds the view or a copy of it runs, with all
    /// sites and right-hand sides that such kernels are launched for.
    pub unsafe fn new(base: *mut u8) -> Self {
        ThinLinks { base: Global(base), format: PhantomData }
    }
    /// The links of direction `mu`.
    #[inline(always)]
    pub fn direction(&self, mu: u32) -> Matrices<T> {
        Matrices { base: self.base, count: 4, which: mu, format: PhantomData }
    }
    /// U_μ(x)
    ///
    /// # Safety
    /// The site exists, and the link is read as `access` promises.
    #[inline(always)]
    pub unsafe fn load(&self, i: u32, mu: u32, access: Access) -> Su3<T> {
        unsafe { self.direction(mu).load(i, access) }
    }
    /// Writes U_μ(x).
    ///
    /// # Safety
    /// The site exists, and the link is written by nobody else.
    #[inline(always)]
    pub unsafe fn store(&self, i: u32, mu: u32, u: &Su3<T>) {
        unsafe { self.direction(mu).store(i, u) }
    }
}

/// The momenta of the links that start at the sites of one parity: `[tile][μ][element][site]`, four complex numbers each.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct Momenta<T = f64> {
    base: Global,
    format: PhantomData<T>,
}

impl<T: Element> Momenta<T> {
    /// Bytes of the momenta of a site.
    pub const SITE_BYTES: usize = 16 * T::BYTES;

    /// Momenta at `base`.
    ///
    /// # Safety
    /// The momenta lie there, for as long as a kernel that holds the view or a copy of it runs, with all
    /// sites and right-hand sides that such kernels are launched for.
    pub unsafe fn new(base: *mut u8) -> Self {
        Momenta { base: Global(base), format: PhantomData }
    }
    #[inline(always)]
    unsafe fn elements(&self, i: u32, mu: u32) -> Global {
        let (tile, lane) = (i / TILE as u32, i % TILE as u32);
        let momentum = (4 * tile + mu) as u64 * (4 * TILE * T::BYTES) as u64;
        unsafe { self.base.offset((momentum + (T::BYTES as u32 * lane) as u64) as usize) }
    }
    /// P_μ(x)
    ///
    /// # Safety
    /// The site exists, and the momentum is read as `access` promises.
    #[inline(always)]
    pub unsafe fn load(&self, i: u32, mu: u32, access: Access) -> AntiHermitian<T> {
        unsafe { load_momentum(self.elements(i, mu), access) }
    }
    /// Writes P_μ(x).
    ///
    /// # Safety
    /// The site exists, and the momentum is written by nobody else.
    #[inline(always)]
    pub unsafe fn store(&self, i: u32, mu: u32, p: &AntiHermitian<T>) {
        unsafe { store_momentum(self.elements(i, mu), p) }
    }
}

/// The clover term, or its inverse, on the sites of one parity.
#[derive(Debug)]
#[repr(C)]
pub struct Clover<P> {
    base: Global,
    format: PhantomData<P>,
}
impl<P> Clone for Clover<P> {
    fn clone(&self) -> Self {
        *self
    }
}
impl<P> Copy for Clover<P> {}

impl<P: CloverFormat> Clover<P> {
    /// Blocks at `base`.
    ///
    /// # Safety
    /// The blocks lie there, for as long as a kernel that holds the view or a copy of it runs, with all
    /// sites and right-hand sides that such kernels are launched for.
    pub unsafe fn new(base: *mut u8) -> Self {
        Clover { base: Global(base), format: PhantomData }
    }
    #[inline(always)]
    unsafe fn tile(&self, i: u32) -> (Global, usize) {
        let offset = (i / TILE as u32) as u64 * (TILE * P::CLOVER_BYTES) as u64;
        (unsafe { self.base.offset(offset as usize) }, (i % TILE as u32) as usize)
    }
    /// A ψ at site `i`.
    ///
    /// # Safety
    /// The site exists.
    #[inline(always)]
    pub unsafe fn apply(&self, i: u32, s: &Spinor<P::Real>) -> Spinor<P::Real> {
        unsafe {
            let [out] = self.apply_all(i, [*s]);
            out
        }
    }
    /// A ψ at site `i` for N of them.
    ///
    /// # Safety
    /// The site exists.
    #[inline(always)]
    pub unsafe fn apply_all<const N: usize>(&self, i: u32, all: [Spinor<P::Real>; N]) -> [Spinor<P::Real>; N] {
        unsafe {
            let (tile, lane) = self.tile(i);
            apply_clover::<P, N>(tile, lane, all)
        }
    }
    /// The block of one chirality and the factor of its elements.
    ///
    /// # Safety
    /// The site exists.
    #[inline(always)]
    pub unsafe fn load(&self, i: u32, chirality: usize) -> (Block<P::Real>, P::Real) {
        unsafe {
            let (tile, lane) = self.tile(i);
            P::load_block(tile, lane, chirality)
        }
    }
    /// Writes both blocks of site `i`.
    ///
    /// # Safety
    /// The site exists and is written by nobody else.
    #[inline(always)]
    pub unsafe fn store(&self, i: u32, blocks: &[Block<f64>; 2]) {
        unsafe {
            let (tile, lane) = self.tile(i);
            P::store_blocks(tile, lane, blocks)
        }
    }
}
