//! Packing of a halo: kernels that copy the layers at both ends of the partitioned directions to the ghost zones of the
//! neighbouring processes ([`Ghosts`]).
use crate::Kernel;
use crate::algebra::{Axis, Projector};
use crate::field::Field;
use crate::ghost::Ghosts;
use crate::lattice::{Divisor, Geometry};
use crate::storage::{Colours, NumberFormat, Single, Spinors};

/// Faces of a launch: for each partitioned direction, the sites of the layers at the beginning of the lattice, then
/// those of the layers at its end.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct Faces {
    /// Geometry of the local lattice.
    pub geometry: Geometry,
    /// Parity of the sites of the field: 0 for even, 1 for odd.
    pub parity: u32,
    /// Number of layers of each face, 1 to 3.
    pub layers: u32,
    /// Index in the launch of the first site of each direction μ: `[μ]`.
    pub first: [u32; 4],
    /// Bit μ is set if direction μ is partitioned.
    pub cut: u32,
}

/// Site of a face, and its place in the neighbour's ghost zone.
#[derive(Clone, Copy, Debug)]
struct FaceSite {
    /// Checkerboard index of the site.
    from: u32,
    /// Index of the site in the neighbour's ghost zone.
    to: u32,
    /// Whether the site is near the beginning of its direction, and therefore in the neighbour's forward ghost zone.
    first: bool,
}

impl Faces {
    /// Creates the faces of the directions whose bits are set in `cut`.
    pub fn new(geometry: Geometry, parity: u32, layers: u32, cut: u32) -> Self {
        let mut first = [0; 4];
        let mut n = 0;
        for (mu, first) in first.iter_mut().enumerate() {
            *first = n;
            n += (cut >> mu & 1) * 2 * layers * geometry.face_sites(mu);
        }
        Faces { geometry, parity, layers, first, cut }
    }
    /// Returns the total number of sites of all faces.
    pub fn sites(&self) -> u32 {
        (0..4).map(|mu| (self.cut >> mu & 1) * 2 * self.layers * self.geometry.face_sites(mu)).sum()
    }
    /// Returns site `i` of the launch if it belongs to direction `mu`, which is a constant after inlining.
    #[inline(always)]
    fn locate(&self, i: u32, mu: usize) -> Option<FaceSite> {
        let (face, layers) = (self.geometry.face_sites(mu), self.layers);
        let k = i.wrapping_sub(self.first[mu]);
        if self.cut >> mu & 1 == 0 || k >= 2 * layers * face {
            return None;
        }
        let first = k < layers * face;
        let to = if first { k } else { k - layers * face };
        // A face has at most three layers, so two comparisons give the layer.
        let layer = (to >= face) as u32 + (to >= 2 * face) as u32;
        let last = self.geometry.size()[mu] - 1;
        let coordinate = if first { layer } else { last - layer };
        let from = self.geometry.of_face(to - layer * face, mu, coordinate, self.parity);
        Some(FaceSite { from, to, first })
    }
}

/// Packs half spinors of the faces: projections of the spinors that the neighbours need for their hops.
#[derive(Clone, Copy)]
#[repr(C)]
pub struct PackSpinors {
    /// Field of spinors to read.
    pub input: Field,
    /// Faces whose sites are packed.
    pub faces: Faces,
    /// Ghost zones of the neighbours: zone `(μ, forward)` receives the corresponding face.
    pub to: Ghosts,
    /// 1 to pack for D†, 0 for D.
    pub dagger: u32,
}
// SAFETY: each site of a face goes to a place of its own.
unsafe impl<P: NumberFormat> Kernel<Spinors<P>> for PackSpinors {
    #[inline(always)]
    unsafe fn site(&self, i: u32, rhs: u32) {
        macro_rules! direction {
            ($mu:literal $axis:ident) => {
                if let Some(FaceSite { from, to, first }) = self.faces.locate(i, $mu) {
                    unsafe {
                        let place = self.to.half_spinor::<P>(to, rhs, $mu, first);
                        // The neighbour's forward hops need the projector 1 − γ_μ, or 1 + γ_μ for D†.
                        if first == (self.dagger == 0) {
                            self.input.project_to::<P>(from, rhs, Projector::minus(Axis::$axis), place)
                        } else {
                            self.input.project_to::<P>(from, rhs, Projector::plus(Axis::$axis), place)
                        }
                    }
                }
            };
        }
        direction!(0 X);
        direction!(1 Y);
        direction!(2 Z);
        direction!(3 T);
    }
}

/// Packs colour vectors of the faces into the ghost zones of the neighbours.
#[derive(Clone, Copy)]
#[repr(C)]
pub struct PackColours {
    /// Field of colour vectors to read.
    pub input: Field,
    /// Faces whose sites are packed.
    pub faces: Faces,
    /// Ghost zones of the neighbours: zone `(μ, forward)` receives the corresponding face.
    pub to: Ghosts,
}
// SAFETY: each site of a face goes to a place of its own.
unsafe impl<P: NumberFormat> Kernel<Colours<P>> for PackColours {
    #[inline(always)]
    unsafe fn site(&self, i: u32, rhs: u32) {
        macro_rules! direction {
            ($($mu:literal)*) => {$(
                if let Some(FaceSite { from, to, first }) = self.faces.locate(i, $mu) {
                    unsafe { self.input.copy_colour_to::<P>(from, rhs, &self.to.field($mu, first), to) }
                }
            )*};
        }
        direction!(0 1 2 3);
    }
}

/// Packs all spinors of the sites of faces on a coarse level. Call i packs one spinor.
#[derive(Clone, Copy)]
#[repr(C)]
pub struct PackSites {
    /// Field to read, in which the spinors of a site follow each other.
    pub input: Field,
    /// Faces whose sites are packed.
    pub faces: Faces,
    /// Ghost zones of the neighbours, with spinors in the order of the field: zone `(μ, forward)` receives the
    /// corresponding face.
    pub to: Ghosts,
    /// Number of spinors at a site.
    pub spinors: Divisor,
}
// SAFETY: each spinor of a face goes to a place of its own.
unsafe impl Kernel<Single> for PackSites {
    #[inline(always)]
    unsafe fn site(&self, i: u32, rhs: u32) {
        let (site, spinor) = self.spinors.divide(i);
        macro_rules! direction {
            ($($mu:literal)*) => {$(
                if let Some(FaceSite { from, to, first }) = self.faces.locate(site, $mu) {
                    let place = |site: u32| site * self.spinors.get() + spinor;
                    unsafe {
                        let value = self.input.load::<Spinors<Single>>(place(from), rhs);
                        self.to.field($mu, first).store::<Spinors<Single>>(place(to), rhs, &value);
                    }
                }
            )*};
        }
        direction!(0 1 2 3);
    }
}

crate::kernels! { FAMILY = "faces";
    kernel PACK_SPINORS "pack_faces": [PackSpinors] => spinors;
    kernel PACK_COLOURS "pack_faces": [PackColours] => colours;
    kernel PACK_SITES "pack_sites": [PackSites] => single_numbers;
}
