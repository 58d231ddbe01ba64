//! Conversion between the plain arrays of the host and the layouts of the device, which differ in order of sites, spin basis,
//! precision and links.
//!
//! The host's arrays are lexicographic in sites, in double precision and in the DeGrand–Rossi basis. They are copied to the
//! device unchanged and rearranged there.
use crate::Kernel;
use crate::algebra::{Colour, Complex, DiracSpinor, Real, Su3};
use crate::field::{Field, ThinLinks};
use crate::lattice::{Bordered, Geometry, Region};
use crate::memory::{Access, Chunk, Global};
use crate::storage::{
    Colours, NumberFormat, SiteFormat, SiteKind, SiteValue, Sites, Spinors, StaggeredFermion, WilsonFermion,
};

/// View of a host array of complex numbers.
#[derive(Clone, Copy, Debug)]
#[repr(transparent)]
pub struct HostArray(Global);

impl HostArray {
    /// Creates a view of an array of complex numbers in double precision at `base`.
    ///
    /// # Safety
    /// The array stays at `base` while a kernel runs that holds the view or a copy of it. It has all sites and right-hand sides
    /// for which the kernel is launched.
    pub unsafe fn new(base: *mut u8) -> Self {
        HostArray(Global(base))
    }
    #[inline(always)]
    unsafe fn get(&self, k: usize) -> Complex<f64> {
        unsafe { self.read(k, Access::Once) }
    }
    #[inline(always)]
    pub(crate) unsafe fn read(&self, k: usize, access: Access) -> Complex<f64> {
        let Chunk([a, b, c, d]) = unsafe { self.0.load16(16 * k, access) };
        let join = |low: u32, high: u32| f64::from_bits((high as u64) << 32 | low as u64);
        Complex { re: join(a, b), im: join(c, d) }
    }
    #[inline(always)]
    pub(crate) unsafe fn set(&self, k: usize, z: Complex<f64>) {
        let (re, im) = (z.re.to_bits(), z.im.to_bits());
        let words = [re as u32, (re >> 32) as u32, im as u32, (im >> 32) as u32];
        unsafe { self.0.store16(16 * k, Chunk(words)) }
    }
    /// Writes the nine elements of a matrix to the numbers from `k` on.
    #[inline(always)]
    pub(crate) unsafe fn set_matrix(&self, k: usize, u: &Su3<f64>) {
        macro_rules! put {
            ($($element:literal)*) => {$(
                unsafe { self.set(k + $element, u.0[$element / 3][$element % 3]) };
            )*};
        }
        put!(0 1 2 3 4 5 6 7 8);
    }
    /// Reads the three colours of a vector from number `k` on.
    #[inline(always)]
    unsafe fn colour(&self, k: usize) -> Colour<f64> {
        unsafe { Colour([self.get(k), self.get(k + 1), self.get(k + 2)]) }
    }
}

/// Packs host fields `[rhs][site]` of spinors `[spin][colour]` or colour vectors into one parity of a device field.
#[derive(Clone, Copy)]
#[repr(C)]
pub struct PackField {
    /// Fields on the host, `[rhs][site]`.
    pub host: HostArray,
    /// Field on the device.
    pub field: Field,
    /// Geometry of the local lattice.
    pub geometry: Geometry,
    /// Parity of the sites of the field on the device: 0 for even, 1 for odd.
    pub parity: u32,
}
// SAFETY: call (i, rhs) writes element (i, rhs) only.
unsafe impl<K: SiteKind, P: NumberFormat> Kernel<Sites<K, P>> for PackField {
    #[inline(always)]
    unsafe fn site(&self, i: u32, rhs: u32) {
        unsafe {
            let first = host_site(&self.geometry, i, self.parity, rhs) * 3 * K::SPINS;
            let value = K::from_host(|k| self.host.get(first + k));
            self.field.store::<Sites<K, P>>(i, rhs, &K::cast(value));
        }
    }
}

/// Unpacks one parity of a device field into host fields `[rhs][site]` of spinors `[spin][colour]` or colour vectors.
#[derive(Clone, Copy)]
#[repr(C)]
pub struct UnpackField {
    /// Fields on the host, `[rhs][site]`.
    pub host: HostArray,
    /// Field on the device.
    pub field: Field,
    /// Geometry of the local lattice.
    pub geometry: Geometry,
    /// Parity of the sites of the field on the device: 0 for even, 1 for odd.
    pub parity: u32,
}
// SAFETY: call (i, rhs) writes the elements of its own site only.
unsafe impl<K: SiteKind, P: NumberFormat> Kernel<Sites<K, P>> for UnpackField {
    #[inline(always)]
    unsafe fn site(&self, i: u32, rhs: u32) {
        unsafe {
            let first = host_site(&self.geometry, i, self.parity, rhs) * 3 * K::SPINS;
            K::to_host(K::cast(self.field.load::<Sites<K, P>>(i, rhs)), |k, z| self.host.set(first + k, z));
        }
    }
}

/// Copies a fermion field to colour vectors: each spin of each right-hand side becomes one right-hand side. The vectors
/// are multiplied by c(x) = +, +, −, − for x+y+z+t = 0, 1, 2, 3 (mod 4), as kernels of naive staggered quarks need them
/// for smearing. For colour vectors, the operation is its own inverse.
#[derive(Clone, Copy)]
#[repr(C)]
pub struct SplitSpins {
    /// Fermion field to read.
    pub field: Field,
    /// Colour vectors to write.
    pub colours: Field,
    /// Geometry of the local lattice.
    pub geometry: Geometry,
    /// Parity of the sites of the fields: 0 for even, 1 for odd.
    pub parity: u32,
    /// Sum x+y+z+t of the coordinates of the first site; only the two lowest bits matter.
    pub first: u32,
}

/// Copies colour vectors, one right-hand side for each spin, to a field of spinors and multiplies them by c(x), as in
/// [`SplitSpins`].
#[derive(Clone, Copy)]
#[repr(C)]
pub struct JoinSpins {
    /// Colour vectors to read.
    pub colours: Field,
    /// Spinors to write.
    pub field: Field,
    /// Geometry of the local lattice.
    pub geometry: Geometry,
    /// Parity of the sites of the fields: 0 for even, 1 for odd.
    pub parity: u32,
    /// Sum x+y+z+t of the coordinates of the first site; only the two lowest bits matter.
    pub first: u32,
}

/// The sign c(x) of [`SplitSpins`].
#[inline(always)]
fn sign_of_pairs(geometry: &Geometry, i: u32, parity: u32, first: u32) -> f64 {
    let s = geometry.site(i, parity);
    let sum = first + 2 * s.half_x + s.odd_x + s.y + s.z + s.t;
    if sum & 2 == 0 { 1.0 } else { -1.0 }
}

// SAFETY: call (i, rhs) writes the vectors of its own site and right-hand side only.
unsafe impl<P: NumberFormat> Kernel<Spinors<P>> for SplitSpins {
    #[inline(always)]
    unsafe fn site(&self, i: u32, rhs: u32) {
        let sign = sign_of_pairs(&self.geometry, i, self.parity, self.first);
        let spinor: DiracSpinor<f64> = WilsonFermion::cast(unsafe { self.field.load::<Spinors<P>>(i, rhs) });
        macro_rules! put {
            ($($s:literal)*) => {$( unsafe {
                let vector = StaggeredFermion::cast(spinor.0[$s].map(|z| z.scale(sign)));
                self.colours.store::<Colours<P>>(i, 4 * rhs + $s, &vector);
            } )*};
        }
        put!(0 1 2 3);
    }
}
// SAFETY: call (i, rhs) writes the vector of its own site and right-hand side only.
unsafe impl<P: NumberFormat> Kernel<Colours<P>> for SplitSpins {
    #[inline(always)]
    unsafe fn site(&self, i: u32, rhs: u32) {
        let sign = sign_of_pairs(&self.geometry, i, self.parity, self.first);
        let vector: Colour<f64> = StaggeredFermion::cast(unsafe { self.field.load::<Colours<P>>(i, rhs) });
        let vector = StaggeredFermion::cast(vector.map(|z| z.scale(sign)));
        unsafe { self.colours.store::<Colours<P>>(i, rhs, &vector) }
    }
}
// SAFETY: call (i, rhs) writes the spinor of its own site and right-hand side only.
unsafe impl<P: NumberFormat> Kernel<Spinors<P>> for JoinSpins {
    #[inline(always)]
    unsafe fn site(&self, i: u32, rhs: u32) {
        let sign = sign_of_pairs(&self.geometry, i, self.parity, self.first);
        macro_rules! vector {
            ($s:literal) => {{
                let vector = unsafe { self.colours.load::<Colours<P>>(i, 4 * rhs + $s) };
                let vector: Colour<f64> = StaggeredFermion::cast(vector);
                vector.map(|z| z.scale(sign))
            }};
        }
        let spinor = DiracSpinor([vector!(0), vector!(1), vector!(2), vector!(3)]);
        unsafe { self.field.store::<Spinors<P>>(i, rhs, &WilsonFermion::cast(spinor)) }
    }
}

/// Returns the number of a site in a host array, counted over all right-hand sides.
#[inline(always)]
pub(crate) fn host_site(geometry: &Geometry, i: u32, parity: u32, rhs: u32) -> usize {
    let site = geometry.lexicographic(&geometry.site(i, parity)) as usize;
    site + rhs as usize * 2 * geometry.half_volume() as usize
}

/// Packs host links `[site][μ][row][column]` into the links that start at the sites of one parity.
#[derive(Clone, Copy)]
#[repr(C)]
pub struct PackThinLinks {
    /// Links on the host, `[site][μ][row][column]`.
    pub host: HostArray,
    /// Links on the device.
    pub links: ThinLinks,
    /// Lattice of the links on the device.
    pub lattice: Bordered,
    /// Geometry of the links on the host, which is that of the local lattice.
    pub geometry: Geometry,
    /// Parity of the sites to process: 0 for even, 1 for odd.
    pub parity: u32,
}
// SAFETY: call i writes the links of the local lattice's site i only.
unsafe impl Kernel<()> for PackThinLinks {
    #[inline(always)]
    unsafe fn site(&self, i: u32, _rhs: u32) {
        let site = self.geometry.lexicographic(&self.geometry.site(i, self.parity));
        let at = self.lattice.site(i, self.parity).index;
        for mu in 0..4 {
            unsafe { self.links.store(at, mu, &host_link(&self.host, site, mu as usize)) }
        }
    }
}

/// Unpacks the links that start at the sites of one parity into host links `[site][μ][row][column]`.
#[derive(Clone, Copy)]
#[repr(C)]
pub struct UnpackThinLinks {
    /// Links on the host, `[site][μ][row][column]`.
    pub host: HostArray,
    /// Links on the device.
    pub links: ThinLinks,
    /// Lattice of the links on the device.
    pub lattice: Bordered,
    /// Geometry of the links on the host, which is that of the local lattice.
    pub geometry: Geometry,
    /// Parity of the sites to process: 0 for even, 1 for odd.
    pub parity: u32,
}
// SAFETY: call i writes the elements of its own site only.
unsafe impl Kernel<()> for UnpackThinLinks {
    #[inline(always)]
    unsafe fn site(&self, i: u32, _rhs: u32) {
        let site = self.geometry.lexicographic(&self.geometry.site(i, self.parity)) as usize;
        let at = self.lattice.site(i, self.parity).index;
        for mu in 0..4 {
            unsafe {
                let u = self.links.load(at, mu, Access::Once);
                put_host_link(&self.host, site as u32, mu as usize, &u);
            }
        }
    }
}

/// Writes U_μ(x) to a host array of links.
#[inline(always)]
pub(crate) unsafe fn put_host_link(host: &HostArray, site: u32, mu: usize, u: &Su3<f64>) {
    unsafe { host.set_matrix(9 * (4 * site as usize + mu), u) }
}

/// U_μ(x) from a host array of links.
#[inline(always)]
pub(crate) unsafe fn host_link(host: &HostArray, site: u32, mu: usize) -> Su3<f64> {
    let k = 9 * (4 * site as usize + mu);
    unsafe { Su3([host.colour(k).0, host.colour(k + 3).0, host.colour(k + 6).0]) }
}

/// Copies a fermion field from one region to another and multiplies it by a number. Either field may be a part of the
/// lattice, with or without neighbouring sites, or a message.
#[derive(Clone, Copy)]
#[repr(C)]
pub struct CopySites {
    /// Field to read.
    pub input: Field,
    /// Region to read; call `i` reads its site number `i`.
    pub from: Region,
    /// Field to write.
    pub out: Field,
    /// Region to write; call `i` writes its site number `i`.
    pub to: Region,
    /// Lattice of both regions. A field on another lattice, such as a message, must have the region [`Region::WHOLE`].
    pub geometry: Geometry,
    /// Parity of the sites of the fields: 0 for even, 1 for odd.
    pub parity: u32,
    /// Factor that multiplies the copied numbers.
    pub factor: f64,
}
// SAFETY: calls write different sites, as regions have each site once.
unsafe impl<F: SiteFormat> Kernel<F> for CopySites {
    #[inline(always)]
    unsafe fn site(&self, i: u32, rhs: u32) {
        let index = |region: &Region| region.index(i, &self.geometry, self.parity);
        let factor = F::Real::from_f64(self.factor);
        unsafe {
            let value = self.input.load::<F>(index(&self.from), rhs).each(|z| z.scale(factor));
            self.out.store::<F>(index(&self.to), rhs, &value);
        }
    }
}

crate::kernels! { FAMILY = "transfer";
    kernel COPY_REGION "copy_region": [CopySites] => spinors, wide_colour_fields;
    setup SPLIT_SPINS "split_spins": [SplitSpins] => double_spinors, double_colours;
    setup JOIN_SPINS "join_spins": [JoinSpins] => double_spinors;
    setup PACK "pack": [PackField] => spinors, colours;
    setup UNPACK "unpack": [UnpackField] => spinors, colours;
    setup PACK_THIN_LINKS "pack_thin_links": [PackThinLinks] => once;
    setup UNPACK_THIN_LINKS "unpack_thin_links": [UnpackThinLinks] => once;
}
