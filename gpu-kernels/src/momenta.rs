//! Molecular dynamics of links: their momenta, and their evolution.
//!
//! Momenta are traceless anti-Hermitian, P_μ(x) = i Σ_a r_a λ_a / √2, with the weight exp(−½ Σ_a r_a²), and
//! dU_μ(x)/dτ = P_μ(x) U_μ(x). Then H = ½ Σ_{x,μ} Σ_jk |P_jk|² + S does not change if dP_μ(x)/dτ is the traceless
//! anti-Hermitian part of U_μ(x) G†_μ(x), where dS = Re Σ_{x,μ} tr (G†_μ(x) dU_μ(x)). G, the gradient, transforms as a link.
use crate::algebra::{AntiHermitian, Colour, DiracSpinor, Real, complex};
use crate::field::{Field, Momenta, ThinLinks};
use crate::format::Between;
use crate::lattice::{Bordered, Geometry, Position, part_of_group};
use crate::memory::Access;
use crate::random::{Philox, purpose, purpose::MOMENTA};
use crate::storage::{Colours, Double, Element, Spinors};
use crate::transfer::{HostArray, host_link, put_host_link};
use crate::{Kernel, Reduction};

/// Draws random momenta for the links that start at the sites of one parity.
#[derive(Clone, Copy)]
#[repr(C)]
pub struct DrawMomenta {
    /// Momenta P of the links that start at the sites of `parity`.
    pub momenta: Momenta,
    /// Geometry of the local lattice.
    pub geometry: Geometry,
    /// Position of the local lattice in the whole lattice.
    pub position: Position,
    /// Parity of the sites to process: 0 for even, 1 for odd.
    pub parity: u32,
    /// Number of the trajectory. Equal numbers give equal momenta.
    pub trajectory: u32,
    /// Seed of the random numbers.
    pub seed: u64,
}
// SAFETY: call i writes the momenta of site i only.
unsafe impl<T: Element> Kernel<T> for DrawMomenta {
    #[inline(always)]
    unsafe fn site(&self, i: u32, _rhs: u32) {
        let site = self.position.lexicographic(&self.geometry.site(i, self.parity));
        let mut mu = 0;
        while mu < 4 {
            let mut random = Philox::new(self.seed, MOMENTA | (4 * site + mu as u64), self.trajectory);
            let ([a, b], [c, d]) = (random.gaussian_pair(), random.gaussian_pair());
            let ([e, f], [g, h]) = (random.gaussian_pair(), random.gaussian_pair());
            unsafe { self.momenta.store(i, mu, &AntiHermitian::from_components([a, b, c, d, e, f, g, h]).cast::<T>()) }
            mu += 1;
        }
    }
}

/// Kinetic energy of the links of a site minus its mean, Σ_μ (½ Σ_jk |P_jk|² − 4), summed over the sites of one parity.
#[derive(Clone, Copy)]
#[repr(C)]
pub struct KineticEnergy {
    /// Momenta P of the links that start at the sites of one parity.
    pub momenta: Momenta,
}
// SAFETY: reads only.
unsafe impl<T: Element> Reduction<T> for KineticEnergy {
    type Values = [f64; 1];
    #[inline(always)]
    unsafe fn site(&self, i: u32, _rhs: u32) -> [f64; 1] {
        let (half, mean) = (T::Double::from_f64(0.5), T::Double::from_f64(-4.0));
        macro_rules! energies {
            ($($mu:literal)*) => {
                [$(half.mul_add(unsafe { self.momenta.load::<T>(i, $mu, Access::Shared) }.cast::<T::Double>().norm2(), mean)),*]
            };
        }
        let [a, b, c, d] = energies!(0 1 2 3);
        [((a + b) + (c + d)).to_f64()]
    }
}

/// Update of the links, U_μ(x) ← exp(ε P_μ(x)) U_μ(x). If requested, the links are then reunitarised in double
/// precision.
#[derive(Clone, Copy)]
#[repr(C)]
pub struct MoveLinks {
    /// Links U that start at the sites of `parity` of the bordered lattice.
    pub links: ThinLinks,
    /// Momenta P of the links that start at the sites of `parity`.
    pub momenta: Momenta,
    /// Lattice of the links.
    pub lattice: Bordered,
    /// Parity of the sites to process: 0 for even, 1 for odd.
    pub parity: u32,
    /// 1 to make links unitary after the update, 0 to leave them as they are.
    pub unitarise: u32,
    /// ε
    pub step: f64,
}
// SAFETY: call (i, μ) reads and writes U_μ at site i only.
unsafe impl<T: Element> Kernel<T> for MoveLinks {
    #[inline(always)]
    unsafe fn site(&self, i: u32, mu: u32) {
        let at = self.lattice.site_for::<T>(i, self.parity).index;
        unsafe {
            let p = self.momenta.load::<T>(i, mu, Access::Shared).scale(T::from_f64(self.step));
            let moved = p.exp() * self.links.load::<T>(at, mu, Access::Own);
            let moved = if self.unitarise != 0 { moved.cast::<T::Double>().unitarised().cast() } else { moved };
            self.links.store(at, mu, &moved);
        }
    }
    #[inline(always)]
    fn group_sites(&self) -> u32 {
        self.lattice.group_sites()
    }
}

/// Combination of momenta, P_μ(x) ← a P_μ(x) + b Q_μ(x).
#[derive(Clone, Copy)]
#[repr(C)]
pub struct AddMomenta {
    /// Momenta P of the links that start at the sites of one parity.
    pub momenta: Momenta,
    /// Momenta Q, which may be P itself.
    pub other: Momenta,
    /// a
    pub a: f64,
    /// b
    pub b: f64,
}
// SAFETY: call (i, μ) reads and writes P_μ at site i only.
unsafe impl<T: Element> Kernel<T> for AddMomenta {
    #[inline(always)]
    unsafe fn site(&self, i: u32, mu: u32) {
        unsafe {
            let q = self.other.load::<T>(i, mu, Access::Own);
            let p = self.momenta.load::<T>(i, mu, Access::Own).scale(T::from_f64(self.a));
            self.momenta.store(i, mu, &p.add_scaled(T::from_f64(self.b), q));
        }
    }
}

/// Adds a force to the momenta: P_μ(x) ← P_μ(x) + ε A, where A is the traceless anti-Hermitian part of U_μ(x) G†_μ(x).
#[derive(Clone, Copy)]
#[repr(C)]
pub struct AddForce {
    /// Momenta P of the links that start at the sites of `parity`.
    pub momenta: Momenta,
    /// Links U that start at the sites of `parity` of the bordered lattice.
    pub links: ThinLinks,
    /// Gradient G on the sites of `parity` of the bordered lattice.
    pub gradient: ThinLinks,
    /// Lattice of U and G.
    pub lattice: Bordered,
    /// Parity of the sites to process: 0 for even, 1 for odd.
    pub parity: u32,
    /// ε
    pub step: f64,
}
// SAFETY: call (i, μ) reads and writes P_μ at site i only.
unsafe impl<F: Element, T: Element> Kernel<Between<F, T>> for AddForce {
    #[inline(always)]
    unsafe fn site(&self, i: u32, mu: u32) {
        let at = self.lattice.site_for::<F>(i, self.parity).index;
        unsafe {
            let product = self.links.load::<F>(at, mu, Access::Shared)
                * self.gradient.load::<F>(at, mu, Access::Shared).adjoint();
            self.momenta.add::<T, _>(i, mu, self.step, AntiHermitian::part_of(product));
        }
    }
    #[inline(always)]
    fn group_sites(&self) -> u32 {
        self.lattice.group_sites()
    }
}

impl Momenta {
    /// Adds a force to the momentum at site `i`: P_μ(x) ← P_μ(x) + ε A with ε = `step`. In a group, a number of A may
    /// hold more sites than a number of type `T`, but not fewer.
    ///
    /// # Safety
    /// The site exists, and no other thread writes the momentum.
    #[inline(always)]
    pub unsafe fn add<T: Element, F: Real>(&self, i: u32, mu: u32, step: f64, a: AntiHermitian<F>) {
        const { assert!(F::LANES >= T::LANES) }
        let mut part = 0;
        while part < F::LANES / T::LANES {
            let i = part_of_group::<T>(i, part);
            unsafe {
                let p = self.load::<T>(i, mu, Access::Own).add_scaled(T::from_f64(step), a.part(part));
                self.store(i, mu, &p);
            }
            part += 1;
        }
    }
}

/// Converts links to another precision.
#[derive(Clone, Copy)]
#[repr(C)]
pub struct ConvertThin {
    /// Links to convert.
    pub input: ThinLinks,
    /// Converted links.
    pub out: ThinLinks,
}
// SAFETY: call (i, μ) writes link μ of site i only.
unsafe impl<F: Element, T: Element> Kernel<Between<F, T>> for ConvertThin {
    #[inline(always)]
    unsafe fn site(&self, i: u32, mu: u32) {
        unsafe { self.out.store(i, mu, &self.input.load::<F>(i, mu, Access::Once).cast::<T>()) }
    }
}

/// Squared distance between two states of a trajectory: \[Σ_μ ‖U_μ − V_μ‖², Σ_μ ‖P_μ − Q_μ‖²\] with ‖X‖² = Σ_jk
/// |X_jk|².
#[derive(Clone, Copy)]
#[repr(C)]
pub struct Distance {
    /// Links U and V that start at the sites of `parity` of the bordered lattice.
    pub links: [ThinLinks; 2],
    /// Momenta P and Q of the links that start at the sites of `parity`.
    pub momenta: [Momenta; 2],
    /// Lattice of the links.
    pub lattice: Bordered,
    /// Parity of the sites to process: 0 for even, 1 for odd.
    pub parity: u32,
}
// SAFETY: reads only.
unsafe impl<T: Element> Reduction<T> for Distance {
    type Values = [f64; 2];
    #[inline(always)]
    unsafe fn site(&self, i: u32, _rhs: u32) -> [f64; 2] {
        let at = self.lattice.site(i, self.parity).index;
        let mut sums = [0.0; 2];
        let mut mu = 0;
        while mu < 4 {
            let link = |k: usize| unsafe { self.links[k].load::<T>(at, mu, Access::Shared) }.cast::<f64>();
            let momentum = |k: usize| unsafe { self.momenta[k].load::<T>(i, mu, Access::Shared) }.cast::<f64>();
            let off = link(0) - link(1);
            sums[0] += (off.adjoint() * off).re_trace();
            sums[1] += momentum(0).add_scaled(-1.0, momentum(1)).norm2();
            mu += 1;
        }
        sums
    }
}

/// Draws complex numbers from the normal distribution with ⟨|z|²⟩ = 1 on the sites of one parity. Right-hand side j is
/// noise vector `which` + j. The field has colour vectors, or spinors for [`OnSpinors`].
#[derive(Clone, Copy)]
#[repr(C)]
pub struct DrawNoise {
    /// Field for the noise on the sites of `parity`.
    pub out: Field,
    /// Geometry of the local lattice.
    pub geometry: Geometry,
    /// Position of the local lattice in the whole lattice.
    pub position: Position,
    /// Parity of the sites to process: 0 for even, 1 for odd.
    pub parity: u32,
    /// Number of the trajectory. Equal numbers give equal noise.
    pub trajectory: u32,
    /// Purpose of the noise: one of the constants in [`purpose`].
    pub purpose: u64,
    /// Number of the first noise vector, which is below 2¹².
    pub which: u32,
    /// Seed of the random numbers.
    pub seed: u64,
}
// SAFETY: call (i, rhs) writes element (i, rhs) only.
unsafe impl Kernel<()> for DrawNoise {
    #[inline(always)]
    unsafe fn site(&self, i: u32, rhs: u32) {
        let mut random = self.random(i, rhs);
        unsafe { self.out.store::<Colours<Double>>(i, rhs, &colour(&mut random)) }
    }
}
/// Format wrapper for noise on spinors.
pub struct OnSpinors<F>(core::marker::PhantomData<F>);
// SAFETY: as for colour vectors.
unsafe impl Kernel<OnSpinors<()>> for DrawNoise {
    #[inline(always)]
    unsafe fn site(&self, i: u32, rhs: u32) {
        let mut random = self.random(i, rhs);
        let mut spins = [Colour::ZERO; 4];
        let mut s = 0;
        while s < 4 {
            spins[s] = colour(&mut random);
            s += 1;
        }
        unsafe { self.out.store::<Spinors<Double>>(i, rhs, &DiracSpinor(spins)) }
    }
}
impl DrawNoise {
    /// Returns the random stream of site `i` and right-hand side `rhs`.
    #[inline(always)]
    fn random(&self, i: u32, rhs: u32) -> Philox {
        let site = self.position.lexicographic(&self.geometry.site(i, self.parity));
        let stream = self.purpose | ((self.which + rhs) as u64) << purpose::WHICH | site;
        Philox::new(self.seed, stream, self.trajectory)
    }
}

/// Draws the three colour components of one spin.
#[inline(always)]
fn colour(random: &mut Philox) -> Colour<f64> {
    let mut out = Colour::ZERO;
    let mut k = 0;
    while k < 3 {
        let [re, im] = random.gaussian_pair();
        out.0[k] = complex(re, im).scale(core::f64::consts::FRAC_1_SQRT_2);
        k += 1;
    }
    out
}

/// Writes the traceless anti-Hermitian parts of host matrices `[site][μ][row][column]` to the momenta of one parity.
#[derive(Clone, Copy)]
#[repr(C)]
pub struct PackMomenta {
    /// Matrices on the host, `[site][μ][row][column]`.
    pub host: HostArray,
    /// Momenta P of the links that start at the sites of `parity`.
    pub momenta: Momenta,
    /// Geometry of the local lattice.
    pub geometry: Geometry,
    /// Parity of the sites to process: 0 for even, 1 for odd.
    pub parity: u32,
}
// SAFETY: call (i, μ) writes P_μ at site i only.
unsafe impl<T: Element> Kernel<T> for PackMomenta {
    #[inline(always)]
    unsafe fn site(&self, i: u32, mu: u32) {
        let site = self.geometry.lexicographic(&self.geometry.site(i, self.parity));
        unsafe {
            let matrix = host_link(&self.host, site, mu as usize);
            self.momenta.store(i, mu, &AntiHermitian::part_of(matrix).cast::<T>());
        }
    }
}

/// Writes the momenta of one parity to host matrices `[site][μ][row][column]`.
#[derive(Clone, Copy)]
#[repr(C)]
pub struct UnpackMomenta {
    /// Matrices on the host, `[site][μ][row][column]`.
    pub host: HostArray,
    /// Momenta P of the links that start at the sites of `parity`.
    pub momenta: Momenta,
    /// Geometry of the local lattice.
    pub geometry: Geometry,
    /// Parity of the sites to process: 0 for even, 1 for odd.
    pub parity: u32,
}
// SAFETY: call (i, μ) writes the elements of its own link only.
unsafe impl<T: Element> Kernel<T> for UnpackMomenta {
    #[inline(always)]
    unsafe fn site(&self, i: u32, mu: u32) {
        let site = self.geometry.lexicographic(&self.geometry.site(i, self.parity));
        unsafe {
            let matrix = self.momenta.load::<T>(i, mu, Access::Shared).cast::<f64>().matrix();
            put_host_link(&self.host, site, mu as usize, &matrix);
        }
    }
}

crate::kernels! { FAMILY = "momenta";
    setup PACK_MOMENTA "pack_momenta": [PackMomenta] => real_numbers;
    setup UNPACK_MOMENTA "unpack_momenta": [UnpackMomenta] => real_numbers;
    setup DRAW_MOMENTA "draw_momenta": [DrawMomenta] => real_numbers;
    setup DRAW_NOISE "draw_noise": [DrawNoise] => once;
    setup DRAW_SPINOR_NOISE "draw_spinor_noise": [DrawNoise as OnSpinors] => once;
    observe KINETIC_ENERGY "kinetic_energy": [KineticEnergy, in lanes] => extended_numbers;
    kernel MOVE_LINKS "move_links": [MoveLinks, in lanes] => extended_numbers;
    kernel ADD_MOMENTA "add_momenta": [AddMomenta, in lanes] => real_numbers;
    kernel ADD_FORCE "add_force": [AddForce, in lanes] => force_pairs;
    setup CONVERT_THIN "convert_thin": [ConvertThin] => mixed_pairs;
    observe DISTANCE "distance": [Distance] => real_numbers;
}
