//! The force of the gauge action
//!
//! S = (β/3) Σ_x [ c_P Σ_{μ<ν} Re tr (1 − P_μν) + c_R Σ_{μ≠ν} Re tr (1 − R_μν) + c_C Σ Re tr (1 − C) ],
//!
//! with plaquettes P, rectangles R of 1×2 links and parallelograms C, closed paths of six links along three axes, (μ, ν, ρ, −μ,
//! −ν, −ρ): 6, 12 and 16 loops per site. Wilson's action has only c_P = 1. Symanzik's also has the others (Lüscher and Weisz
//! 1985). On anisotropic lattices c_P and c_R depend on the orientation of a loop relative to t.
//!
//! U_μ(x) is in 6 plaquettes, 18 rectangles and 24 parallelograms. Each has the form Re tr (U_μ(x) V), where the path V leads
//! from x+μ̂ back to x:
//!
//! | loop | V |
//! |---|---|
//! | plaquette | a, −μ, −a |
//! | rectangle, short side first | μ, a, −μ, −μ, −a and a, −μ, −μ, −a, μ |
//! | rectangle, long side first | a, a, −μ, −a, −a |
//! | parallelogram | b, a, −μ, −b, −a |
//!
//! Here a is one of the six steps across μ, and b one of the four steps across both. All paths but one end with −a, and are
//! added up before that common step.
use crate::algebra::{AntiHermitian, Su3};
use crate::field::{Momenta, ThinLinks};
use crate::format::Between;
use crate::lattice::{Bordered, Geometry, Site};
use crate::memory::Access;
use crate::smeared::{link, step};
use crate::storage::Element;
use crate::transfer::HostArray;
use crate::{Kernel, Reduction};
use core::marker::PhantomData;

/// Path of links, with its current end.
#[derive(Clone, Copy)]
struct Path<T> {
    at: Site,
    parity: u32,
    product: Su3<T>,
}

/// Step along direction `mu`, forward or backward.
type Step = (u32, bool);

#[inline(always)]
fn back((mu, forward): Step) -> Step {
    (mu, !forward)
}

/// Links on the even and on the odd sites of a lattice.
#[derive(Clone, Copy)]
struct Paths {
    links: [ThinLinks; 2],
    geometry: Geometry,
}

impl Paths {
    #[inline(always)]
    fn links(&self, parity: u32) -> ThinLinks {
        if parity == 0 { self.links[0] } else { self.links[1] }
    }
    /// Starts a path without links at a site.
    #[inline(always)]
    fn begin<T: Element>(&self, index: u32, parity: u32) -> Path<T> {
        Path { at: self.geometry.site_for::<T>(index, parity), parity, product: Su3::unit() }
    }
    #[inline(always)]
    unsafe fn go<T: Element>(&self, path: Path<T>, (mu, forward): Step) -> Path<T> {
        let Path { at, parity, product } = path;
        let there = 1 - parity;
        let next = self.geometry.neighbour(&at, mu as usize, forward);
        unsafe {
            let product = if forward {
                product * self.links(parity).load::<T>(at.index, mu, Access::Shared)
            } else {
                product * self.links(there).load::<T>(next, mu, Access::Shared).adjoint()
            };
            Path { at: self.geometry.site_for::<T>(next, there), parity: there, product }
        }
    }
    /// Returns the path that consists of its first step.
    #[inline(always)]
    unsafe fn first<T: Element>(&self, from: Site, parity: u32, (mu, forward): Step) -> Path<T> {
        let there = 1 - parity;
        let next = self.geometry.neighbour(&from, mu as usize, forward);
        unsafe {
            let product = if forward {
                self.links(parity).load::<T>(from.index, mu, Access::Shared)
            } else {
                self.links(there).load::<T>(next, mu, Access::Shared).adjoint()
            };
            Path { at: self.geometry.site_for::<T>(next, there), parity: there, product }
        }
    }
}

/// Adds the gauge force to the momenta: P_μ(x) ← P_μ(x) − ε A, where A is the traceless anti-Hermitian part of U_μ(x)
/// V, and V is the sum of the paths with their coefficients. The kernel for [`ImprovedAction`] includes rectangles and
/// parallelograms. The direction μ takes the place of the right-hand side.
#[derive(Clone, Copy)]
#[repr(C)]
pub struct GaugeForce {
    /// Links U that start at the even and at the odd sites of the bordered lattice.
    pub links: [ThinLinks; 2],
    /// Momenta P of the links that start at the sites of `parity`.
    pub momenta: Momenta,
    /// Lattice of the links.
    pub lattice: Bordered,
    /// Parity of the sites to process: 0 for even, 1 for odd.
    pub parity: u32,
    /// Coefficients ε β c / 3 of the loops, where c is the coefficient in the action.
    pub coefficients: LoopCoefficients,
}

/// Coefficients of the loops of a gauge action.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct LoopCoefficients {
    /// Coefficients of spatial plaquettes, and of plaquettes with t.
    pub plaquettes: [f64; 2],
    /// Coefficients of spatial rectangles, of rectangles with the short side in t, and of rectangles with the long side
    /// in t.
    pub rectangles: [f64; 3],
    /// Coefficient of parallelograms.
    pub parallelograms: f64,
}

impl LoopCoefficients {
    /// Returns the coefficient of a plaquette along two directions.
    #[inline(always)]
    fn plaquette(&self, mu: u32, nu: u32) -> f64 {
        let [space, time] = self.plaquettes;
        if mu == 3 || nu == 3 { time } else { space }
    }
    /// Returns the coefficient of a rectangle, given the directions of its long and its short edge.
    #[inline(always)]
    fn rectangle(&self, long: u32, short: u32) -> f64 {
        let [space, short_in_time, long_in_time] = self.rectangles;
        if long == 3 {
            long_in_time
        } else if short == 3 {
            short_in_time
        } else {
            space
        }
    }
}

/// Format wrapper for actions with rectangles and parallelograms.
pub struct ImprovedAction<F>(PhantomData<F>);

// SAFETY: call (i, μ) reads and writes P_μ at site i only.
unsafe impl<F: Element, T: Element> Kernel<Between<F, T>> for GaugeForce {
    #[inline(always)]
    unsafe fn site(&self, i: u32, mu: u32) {
        unsafe { self.push::<F, T, false>(i, mu) }
    }
    #[inline(always)]
    fn group_sites(&self) -> u32 {
        self.lattice.group_sites()
    }
}
// SAFETY: as above.
unsafe impl<F: Element, T: Element> Kernel<ImprovedAction<Between<F, T>>> for GaugeForce {
    #[inline(always)]
    unsafe fn site(&self, i: u32, mu: u32) {
        unsafe { self.push::<F, T, true>(i, mu) }
    }
    #[inline(always)]
    fn group_sites(&self) -> u32 {
        self.lattice.group_sites()
    }
}

impl GaugeForce {
    /// Subtracts the force from P_μ(x); `IMPROVED` includes rectangles and parallelograms.
    #[inline(always)]
    unsafe fn push<F: Element, T: Element, const IMPROVED: bool>(&self, i: u32, mu: u32) {
        let paths = Paths { links: self.links, geometry: self.lattice.geometry };
        let (g, here, there) = (&self.lattice.geometry, self.parity, 1 - self.parity);
        let x = self.lattice.site_for::<F>(i, here);
        let ahead = g.site_for::<F>(g.neighbour(&x, mu as usize, true), there);
        let (along, against) = ((mu, true), (mu, false));
        let coefficients = &self.coefficients;
        let mut sum = Su3::<F>::ZERO;
        unsafe {
            let mut a = 0;
            while a < 8 {
                let side: Step = (a >> 1, a & 1 == 0);
                a += 1;
                if side.0 == mu {
                    continue;
                }
                let across = paths.go(paths.first::<F>(ahead, there, side), against);
                // `fan` is the sum of the paths that have not yet returned along this side.
                let mut fan = across.product.scale(F::from_f64(coefficients.plaquette(mu, side.0)));
                if IMPROVED {
                    let rectangle = F::from_f64(coefficients.rectangle(mu, side.0));
                    let far = paths.go(paths.go(across, against), back(side));
                    sum = sum + paths.go(far, along).product.scale(rectangle);
                    let far = paths.go(paths.first::<F>(ahead, there, along), side);
                    fan = fan + paths.go(paths.go(far, against), against).product.scale(rectangle);
                    let mut b = 0;
                    while b < 8 {
                        let first: Step = (b >> 1, b & 1 == 0);
                        b += 1;
                        let coefficient = if first == side {
                            coefficients.rectangle(side.0, mu)
                        } else {
                            coefficients.parallelograms
                        };
                        if first.0 == mu || first == back(side) || coefficient == 0.0 {
                            continue;
                        }
                        let far = paths.go(paths.go(paths.first::<F>(ahead, there, first), side), against);
                        fan = fan + paths.go(far, back(first)).product.scale(F::from_f64(coefficient));
                    }
                }
                sum = sum + paths.go(Path { product: fan, ..across }, back(side)).product;
            }
            let product = paths.links(here).load::<F>(x.index, mu, Access::Shared) * sum;
            self.momenta.add::<T, _>(i, mu, -1.0, AntiHermitian::part_of(product));
        }
    }
}

/// Writes P_μ(x) as a matrix, so that it can be exchanged with neighbours like links. The direction μ takes the place of the
/// right-hand side.
#[derive(Clone, Copy)]
#[repr(C)]
pub struct ForceMatrices {
    /// Momenta P of the links that start at the sites of `parity`.
    pub momenta: Momenta,
    /// Matrices P_μ(x) on the sites of `parity` of the bordered lattice.
    pub out: ThinLinks,
    /// Lattice of the matrices.
    pub lattice: Bordered,
    /// Parity of the sites to process: 0 for even, 1 for odd.
    pub parity: u32,
}
// SAFETY: call (i, μ) writes matrix μ of site i only.
unsafe impl<T: Element> Kernel<T> for ForceMatrices {
    #[inline(always)]
    unsafe fn site(&self, i: u32, mu: u32) {
        let at = self.lattice.site_for::<T>(i, self.parity).index;
        unsafe { self.out.store(at, mu, &self.momenta.load::<T>(i, mu, Access::Own).matrix()) }
    }
    #[inline(always)]
    fn group_sites(&self) -> u32 {
        self.lattice.group_sites()
    }
}

/// Adds the force of the Zeuthen flow (Ramos and Sint 2016) to the momenta: P_μ(x) ← P_μ(x) + ε (1 + (1/12) ∇*_μ ∇_μ)
/// F_μ(x), with
///
/// ∇*_μ ∇_μ F_μ(x) = U_μ(x) F_μ(x+μ̂) U†_μ(x) + U†_μ(x−μ̂) F_μ(x−μ̂) U_μ(x−μ̂) − 2 F_μ(x),
///
/// where F is anti-Hermitian and traceless. The direction μ takes the place of the right-hand side.
#[derive(Clone, Copy)]
#[repr(C)]
pub struct ZeuthenForce {
    /// Links U that start at the even and at the odd sites of the bordered lattice.
    pub links: [ThinLinks; 2],
    /// Force F on the even and on the odd sites of the bordered lattice.
    pub forces: [ThinLinks; 2],
    /// Momenta P of the links that start at the sites of `parity`.
    pub momenta: Momenta,
    /// Lattice of the links and of the force.
    pub lattice: Bordered,
    /// Parity of the sites to process: 0 for even, 1 for odd.
    pub parity: u32,
    /// ε
    pub step: f64,
}
// SAFETY: call (i, μ) reads and writes P_μ at site i only.
unsafe impl<T: Element> Kernel<T> for ZeuthenForce {
    #[inline(always)]
    unsafe fn site(&self, i: u32, mu: u32) {
        let (g, here, there) = (&self.lattice.geometry, self.parity, 1 - self.parity);
        let x = self.lattice.site_for::<T>(i, here);
        let (ahead, behind) = (step(g, &x, mu, true), step(g, &x, mu, false));
        let (u, f) = (&self.links, &self.forces);
        unsafe {
            let to = link::<T>(u, here, x.index, mu);
            let sum = (to * link(f, there, ahead, mu)).settled() * to.adjoint();
            let from = link::<T>(u, there, behind, mu);
            let sum = (sum + (from.adjoint() * link(f, there, behind, mu)).settled() * from).settled();
            let own = link::<T>(f, here, x.index, mu).scale(T::from_f64(5.0 / 6.0));
            let force = AntiHermitian::part_of(own + sum.scale(T::from_f64(1.0 / 12.0)));
            self.momenta.add::<T, _>(i, mu, self.step, force);
        }
    }
    #[inline(always)]
    fn group_sites(&self) -> u32 {
        self.lattice.group_sites()
    }
}

/// Product of the links along a path that starts at each site of one parity.
#[derive(Clone, Copy)]
#[repr(C)]
pub struct LinkPath {
    /// Links U that start at the even and at the odd sites of the bordered lattice.
    pub links: [ThinLinks; 2],
    /// Steps of the path, four bits each, the first step in the lowest bits. A step is twice the direction, plus one
    /// for a step backward.
    pub steps: u64,
    /// Lattice of the links.
    pub lattice: Bordered,
    /// Parity of the sites to process: 0 for even, 1 for odd.
    pub parity: u32,
    /// Number of steps of the path, at most 16.
    pub length: u32,
}

impl LinkPath {
    /// Returns the product of the path that starts at site `i`.
    #[inline(always)]
    unsafe fn product<T: Element>(&self, i: u32) -> Su3<T> {
        let paths = Paths { links: self.links, geometry: self.lattice.geometry };
        let mut path = paths.begin::<T>(self.lattice.site_for::<T>(i, self.parity).index, self.parity);
        let mut steps = self.steps;
        let mut k = 0;
        while k < self.length {
            path = unsafe { paths.go(path, ((steps & 7) as u32 >> 1, steps & 1 == 0)) };
            steps >>= 4;
            k += 1;
        }
        path.product
    }
}

/// Sums of Re tr L and Im tr L over the closed paths L that start at the sites of one parity.
#[derive(Clone, Copy)]
#[repr(C)]
pub struct Loop {
    /// The path.
    pub path: LinkPath,
}
// SAFETY: reads only.
unsafe impl<T: Element> Reduction<T> for Loop {
    type Values = [f64; 2];
    #[inline(always)]
    unsafe fn site(&self, i: u32, _rhs: u32) -> [f64; 2] {
        let product = unsafe { self.path.product::<T>(i) };
        [product.re_trace().to_f64(), product.im_trace().to_f64()]
    }
    #[inline(always)]
    fn group_sites(&self) -> u32 {
        self.path.lattice.group_sites()
    }
}

/// Adds a multiple of a path from each site x of one parity to a matrix: G_μ(x) ← G_μ(x) + c L.
#[derive(Clone, Copy)]
#[repr(C)]
pub struct PathSum {
    /// The path L.
    pub path: LinkPath,
    /// Matrices G on the sites of the parity of the bordered lattice.
    pub out: ThinLinks,
    /// Factor c.
    pub factor: f64,
    /// Direction μ of the matrices.
    pub mu: u32,
}
// SAFETY: reads and writes matrix μ of site i only.
unsafe impl<T: Element> Kernel<T> for PathSum {
    #[inline(always)]
    unsafe fn site(&self, i: u32, _rhs: u32) {
        let at = self.path.lattice.site_for::<T>(i, self.path.parity).index;
        unsafe {
            let product = self.path.product::<T>(i).scale(T::from_f64(self.factor));
            self.out.store(at, self.mu, &(self.out.load::<T>(at, self.mu, Access::Own) + product));
        }
    }
    #[inline(always)]
    fn group_sites(&self) -> u32 {
        self.path.lattice.group_sites()
    }
}

/// Adds the force of closed paths L from the sites x of one parity to the momenta: P_μ(x) ← P_μ(x) − ε A, where A is the
/// traceless anti-Hermitian part of L.
#[derive(Clone, Copy)]
#[repr(C)]
pub struct PathForce {
    /// The path L, whose first step goes forward along μ.
    pub path: LinkPath,
    /// Momenta P of the links that start at the sites of the parity.
    pub momenta: Momenta,
    /// ε
    pub step: f64,
    /// Direction μ of the momenta.
    pub mu: u32,
}
// SAFETY: reads and writes P_μ at site i only.
unsafe impl<T: Element> Kernel<T> for PathForce {
    #[inline(always)]
    unsafe fn site(&self, i: u32, _rhs: u32) {
        unsafe {
            let force = AntiHermitian::part_of(self.path.product::<T>(i));
            self.momenta.add::<T, _>(i, self.mu, -self.step, force);
        }
    }
    #[inline(always)]
    fn group_sites(&self) -> u32 {
        self.path.lattice.group_sites()
    }
}

/// Sums over the sites of one parity: −Σ_{i<j} tr F_ij², −Σ_i tr F_it² and −tr (F_xy F_zt + F_xz F_ty + F_xt F_yz). F
/// is the clover-leaf field strength: a quarter of the traceless anti-Hermitian part of the sum of the four plaquettes
/// around a site.
#[derive(Clone, Copy)]
#[repr(C)]
pub struct FieldStrength {
    /// Links U that start at the even and at the odd sites of the bordered lattice.
    pub links: [ThinLinks; 2],
    /// Lattice of the links.
    pub lattice: Bordered,
    /// Parity of the sites to process: 0 for even, 1 for odd.
    pub parity: u32,
}

impl FieldStrength {
    /// F_μν at the site x.
    #[inline(always)]
    unsafe fn leaves<T: Element>(&self, paths: &Paths, x: Site, mu: u32, nu: u32) -> AntiHermitian<T> {
        let mut sum = Su3::<T>::ZERO;
        // The four leaves turn through the directions μ, ν; ν, −μ; −μ, −ν; −ν, μ.
        let mut leaf = 0;
        while leaf < 4 {
            let along = (if leaf & 1 == 0 { mu } else { nu }, leaf < 2);
            let across = (if leaf & 1 == 0 { nu } else { mu }, leaf == 0 || leaf == 3);
            leaf += 1;
            unsafe {
                let half = paths.go(paths.first::<T>(x, self.parity, along), across);
                sum = sum + paths.go(paths.go(half, back(along)), back(across)).product;
            }
        }
        AntiHermitian::part_of(sum).scale(T::from_f64(0.25))
    }
}

// SAFETY: reads only.
unsafe impl<T: Element> Reduction<T> for FieldStrength {
    type Values = [f64; 3];
    #[inline(always)]
    unsafe fn site(&self, i: u32, _rhs: u32) -> [f64; 3] {
        let paths = Paths { links: self.links, geometry: self.lattice.geometry };
        let x = self.lattice.site_for::<T>(i, self.parity);
        let [mut space, mut time, mut charge] = [T::ZERO; 3];
        // The pairs of planes are xy and zt, xz and ty, xt and yz. The first plane of a pair contains x and a direction
        // ν; the second contains the two directions that follow ν cyclically.
        let next = |mu: u32| if mu == 3 { 1 } else { mu + 1 };
        let mut nu = 1;
        while nu <= 3 {
            let (rho, sigma) = (next(nu), next(next(nu)));
            let (first, second) =
                unsafe { (self.leaves::<T>(&paths, x, 0, nu), self.leaves::<T>(&paths, x, rho, sigma)) };
            let (a, b) = (first.norm2(), second.norm2());
            // Of the first planes of the pairs, only xt contains t.
            (space, time) = if nu == 3 { (space + b, time + a) } else { (space + a, time + b) };
            charge = charge + first.dot(second);
            nu += 1;
        }
        [space.to_f64(), time.to_f64(), charge.to_f64()]
    }
    #[inline(always)]
    fn group_sites(&self) -> u32 {
        self.lattice.group_sites()
    }
}

/// Product of the local links in t along the lines that start at t = 0, for the sites of one parity. Call `i` writes
/// the matrix of site `i` of the first time slice.
#[derive(Clone, Copy)]
#[repr(C)]
pub struct TemporalLine {
    /// Links U that start at the even and at the odd sites of the bordered lattice.
    pub links: [ThinLinks; 2],
    /// Lattice of the links.
    pub lattice: Bordered,
    /// Geometry of the local lattice.
    pub geometry: Geometry,
    /// The products, `[site][row][column]`, for the sites of `parity` in the first time slice.
    pub out: HostArray,
    /// Parity of the sites to process: 0 for even, 1 for odd.
    pub parity: u32,
    /// Number of local sites in t.
    pub length: u32,
}
// SAFETY: call i writes matrix i only.
unsafe impl Kernel<()> for TemporalLine {
    #[inline(always)]
    unsafe fn site(&self, i: u32, _rhs: u32) {
        let paths = Paths { links: self.links, geometry: self.lattice.geometry };
        let first = self.geometry.of_face(i, 3, 0, self.parity);
        let mut path = paths.begin::<f64>(self.lattice.site(first, self.parity).index, self.parity);
        let mut t = 0;
        while t < self.length {
            path = unsafe { paths.go(path, (3, true)) };
            t += 1;
        }
        unsafe { self.out.set_matrix(9 * i as usize, &path.product) }
    }
}

#[cfg(target_arch = "x86_64")]
impl<F: crate::format::LaneFormat<V>, V> crate::format::LaneFormat<V> for ImprovedAction<F> {
    type In = ImprovedAction<F::In>;
    const LANES: usize = F::LANES;
}

crate::kernels! { FAMILY = "gauge_force";
    kernel WILSON_FORCE "wilson_force": [GaugeForce, in lanes] => force_precisions;
    // In double precision, the sum, the path, the next link and a product need 144 registers, so this kernel spills a
    // little.
    setup SYMANZIK_FORCE_DOUBLE "symanzik_force": [GaugeForce as ImprovedAction, in lanes] => double_force;
    kernel SYMANZIK_FORCE_SINGLE "symanzik_force": [GaugeForce as ImprovedAction, in lanes] => single_forces;
    setup FORCE_MATRICES "force_matrices": [ForceMatrices, in lanes] => double_numbers;
    kernel ZEUTHEN_FORCE "zeuthen_force": [ZeuthenForce, in lanes] => double_numbers;
    setup PATH_SUM "path_sum": [PathSum, in lanes] => double_numbers;
    setup PATH_FORCE "path_force": [PathForce, in lanes] => double_numbers;
    observe LOOP "loop": [Loop, in lanes] => double_numbers;
    observe FIELD_STRENGTH "field_strength": [FieldStrength, in lanes] => double_numbers;
    setup TEMPORAL_LINE "temporal_line": [TemporalLine] => once;
}
