//! Quenched SU(3): heat bath and over-relaxation for the Wilson action S = −(β/3) Σ Re tr P.
//!
//! One link U_μ(x) is in S only through −(β/3) Re tr (U A), A the sum of its six staples. The staples of a link contain no
//! other link of its parity and direction, so that a lattice is updated in eight launches.
//!
//! The link moves by left multiplication with SU(2) matrices a embedded in rows (0, 1), (0, 2) and (1, 2), one after the
//! other (Cabibbo and Marinari 1982). Of W = U A only the part of the 2×2 block that is a real multiple of an SU(2)
//! matrix matters: ½ w = ½ |w| ŵ, w = w_0 + i w·σ. With b = a ŵ, S = −(β/3) |w| b_0, so that b_0 has the density
//! √(1 − b_0²) exp(α b_0), α = β |w| / 3, and the direction of the other three is even on the sphere.
//!
//! * Heat bath: a new b. For α not small, δ = 1 − b_0 is drawn as √δ exp(−α δ) and accepted with probability
//!   √(1 − δ/2) (Kennedy and Pendleton 1985). That fails for α → 0, where b_0 is drawn from the Haar measure instead and
//!   accepted with probability exp(−α (1 − b_0)). The better of the two accepts at least 46 % whatever α is.
//! * Over-relaxation: b becomes b†, a = (ŵ†)², at the same action (Brown and Woch 1987, with SU(2) subgroups).
//!
//! Every backend makes the same bits: exactly rounded operations only, and random numbers that depend on the seed, the
//! pass over the lattice, the site and the direction.
use crate::Kernel;
use crate::algebra::elementary::{ln, sin_cos_turns, sqrt};
use crate::algebra::su2::{ONE, Quaternion, dot, each_subgroup, largest_trace, product};
use crate::algebra::{Real, Su3};
use crate::field::ThinLinks;
use crate::lattice::{Bordered, Geometry, Position, Site};
use crate::memory::Access;
use crate::random::{Philox, purpose};
use crate::storage::Element;

/// Number of proposals after which a heat bath leaves the link unchanged. The limit prevents an endless loop for links that are
/// NaN. For numbers the probability of reaching it is 0.54²⁵⁶ = 10⁻⁶⁸.
const ATTEMPTS: u32 = 256;

/// Limit of α below which the Haar measure is the better proposal.
const SMALL: f64 = 0.86;

/// Draws b_0 and δ = 1 − b_0 with the density √(1 − b_0²) exp(α b_0), α ≥ 0. Returns both with the number of proposals,
/// or `None` after `ATTEMPTS` proposals, which in practice means that α is NaN.
#[inline(always)]
pub fn sample(alpha: f64, random: &mut Philox) -> Option<([f64; 2], u32)> {
    let mut attempt = 0;
    while attempt < ATTEMPTS {
        attempt += 1;
        let ([u, v], [angle, accept]) = (random.uniform_pair(), random.uniform_pair());
        let [_, cos] = sin_cos_turns(angle);
        if alpha < SMALL {
            // b is a coordinate of a point with a uniform distribution in the unit disc.
            let b = sqrt(u) * cos;
            if ln(accept) <= alpha * (b - 1.0) {
                return Some(([b, 1.0 - b], attempt));
            }
        } else {
            let delta = -Real::mul_add(ln(u), cos * cos, ln(v)) / alpha;
            if accept * accept <= Real::mul_add(-0.5, delta, 1.0) {
                return Some(([1.0 - delta, delta], attempt));
            }
        }
    }
    None
}

/// Draws the heat bath of one subgroup: the matrix a for w.
#[inline(always)]
fn heat(w: Quaternion, beta_third: f64, random: &mut Philox) -> Quaternion {
    let norm = sqrt(dot(w, w));
    let Some(([b, delta], _)) = sample(beta_third * norm, random) else { return ONE };
    // Draws a point uniformly on the sphere of radius √(1 − b_0²) = √(δ (2 − δ)).
    let [height, turn] = random.uniform_pair();
    let (up, radius) = (Real::mul_add(2.0, height, -1.0), sqrt(delta * (2.0 - delta)));
    let ([sin, cos], across) = (sin_cos_turns(turn), radius * sqrt(Real::mul_add(-up, up, 1.0)));
    // If the staples cancel, the quaternion of b is uniformly distributed over the group, and so is its product with
    // any ŵ†.
    product([b, across * cos, across * sin, radius * up], largest_trace(w))
}
/// Draws the heat bath of a subgroup at the sites of a group, one site after the other, because the number of proposals differs
/// from site to site.
#[inline(always)]
fn heat_each<T: Real, const N: usize>(w: Quaternion<T>, beta_third: f64, random: &mut [Philox; N]) -> Quaternion<T> {
    let mut a = w;
    let mut lane = 0;
    while lane < T::LANES {
        let of = [w[0].lane(lane), w[1].lane(lane), w[2].lane(lane), w[3].lane(lane)];
        let [b, c, d, e] = heat(of, beta_third, &mut random[lane]);
        a = [a[0].with_lane(lane, b), a[1].with_lane(lane, c), a[2].with_lane(lane, d), a[3].with_lane(lane, e)];
        lane += 1;
    }
    a
}

/// Returns the over-relaxation of one subgroup: a = (ŵ†)².
#[inline(always)]
fn reflect<T: Real>(w: Quaternion<T>) -> Quaternion<T> {
    let square = dot(w, w);
    let inverse = T::ONE.over(square);
    let along = T::from_f64(-2.0) * w[0] * inverse;
    // If the staples cancel, w is 0 and the result is 1.
    [
        square.where_positive((-along).mul_add(w[0], -T::ONE), T::ONE),
        square.where_positive(along * w[1], T::ZERO),
        square.where_positive(along * w[2], T::ZERO),
        square.where_positive(along * w[3], T::ZERO),
    ]
}

/// Maximum number of sites whose double-precision numbers a value holds.
const MOST_NUMBERS: usize = if cfg!(target_arch = "nvptx64") { 1 } else { 8 };

/// Returns the link u after one heat-bath hit with the sum of its staples. `random` has a random stream for each site
/// that `T` holds.
#[inline(always)]
pub fn heatbath<T: Real, const N: usize>(u: Su3<T>, staples: Su3<T>, beta: f64, random: &mut [Philox; N]) -> Su3<T> {
    let (mut u, mut m, third) = (u, u * staples, beta / 3.0);
    each_subgroup!(u, m, w => heat_each(w, third, random));
    u.unitarised()
}

/// Returns the link u after one over-relaxation hit with the sum of its staples.
#[inline(always)]
pub fn overrelax<T: Real>(u: Su3<T>, staples: Su3<T>) -> Su3<T> {
    let (mut u, mut m) = (u, u * staples);
    each_subgroup!(u, m, w => reflect(w));
    u.unitarised()
}

/// Links of one direction at the sites of one parity, with the links that form their staples.
#[derive(Clone, Copy)]
#[repr(C)]
pub struct Sublattice {
    /// Links that start at the even and at the odd sites of the bordered lattice.
    pub links: [ThinLinks; 2],
    /// Lattice of the links.
    pub lattice: Bordered,
    /// Parity of the sites to process: 0 for even, 1 for odd.
    pub parity: u32,
    /// μ
    pub mu: u32,
}

impl Sublattice {
    #[inline(always)]
    fn links(&self, parity: u32) -> ThinLinks {
        if parity == 0 { self.links[0] } else { self.links[1] }
    }
    /// U_ν(y) for y of the given parity, where the kernel does not change U_ν(y).
    #[inline(always)]
    unsafe fn near<T: Element>(&self, y: u32, parity: u32, nu: u32) -> Su3<T> {
        unsafe { self.links(parity).load(y, nu, Access::Shared) }
    }
    #[inline(always)]
    fn neighbour(&self, x: &Site, mu: u32, forward: bool) -> u32 {
        self.lattice.geometry.neighbour(x, mu as usize, forward)
    }
    /// Returns the sum of the staples, A = Σ_{ν≠μ} U_ν(x+μ̂) U†_μ(x+ν̂) U†_ν(x) + U†_ν(x+μ̂−ν̂) U†_μ(x−ν̂) U_ν(x−ν̂).
    ///
    /// # Safety
    /// The site exists.
    #[inline(always)]
    pub unsafe fn staples<T: Element>(&self, x: &Site) -> Su3<T> {
        unsafe {
            let (mu, here, there) = (self.mu, self.parity, 1 - self.parity);
            let ahead = self.lattice.geometry.site_for::<T>(self.neighbour(x, mu, true), there);
            let mut sum = Su3::<T>::ZERO;
            let mut nu = 0;
            while nu < 4 {
                if nu != mu {
                    let (up, down) = (self.neighbour(x, nu, true), self.neighbour(x, nu, false));
                    let back = self.near(x.index, here, nu) * self.near(up, there, mu);
                    sum = sum + self.near(ahead.index, there, nu) * back.adjoint();
                    let corner = self.neighbour(&ahead, nu, false);
                    let back = self.near(down, there, mu) * self.near(corner, here, nu);
                    sum = sum + back.adjoint() * self.near(down, there, nu);
                }
                nu += 1;
            }
            sum
        }
    }
}

/// One heat-bath hit on every link of a [`Sublattice`].
#[derive(Clone, Copy)]
#[repr(C)]
pub struct Heatbath {
    /// Links to change.
    pub at: Sublattice,
    /// Geometry of the local lattice.
    pub geometry: Geometry,
    /// Position of the local lattice in the whole lattice.
    pub position: Position,
    /// β
    pub beta: f64,
    /// Seed of the random numbers.
    pub seed: u64,
    /// Number of this pass over the lattice. Equal numbers give equal random numbers.
    pub pass: u32,
}
// SAFETY: call i writes U_μ of the local lattice's site i only; the staples hold no other link of this parity and direction.
unsafe impl<T: Element> Kernel<T> for Heatbath {
    #[inline(always)]
    unsafe fn site(&self, i: u32, _rhs: u32) {
        unsafe {
            let (mu, links) = (self.at.mu, self.at.links(self.at.parity));
            let x = self.at.lattice.site_for::<T>(i, self.at.parity);
            let mut random: [Philox; MOST_NUMBERS] = core::array::from_fn(|lane| {
                let site = self.geometry.site(T::site(i, if lane < T::LANES { lane } else { 0 }), self.at.parity);
                let stream = purpose::HEATBATH | (4 * self.position.lexicographic(&site) + mu as u64);
                Philox::new(self.seed, stream, self.pass)
            });
            let (u, staples) = (links.load::<T>(x.index, mu, Access::Own), self.at.staples::<T>(&x));
            links.store(x.index, mu, &heatbath(u, staples, self.beta, &mut random));
        }
    }
    #[inline(always)]
    fn group_sites(&self) -> u32 {
        self.at.lattice.group_sites()
    }
}

/// One over-relaxation hit on every link of a [`Sublattice`].
#[derive(Clone, Copy)]
#[repr(C)]
pub struct Overrelax {
    /// Links to change.
    pub at: Sublattice,
}
// SAFETY: as for `Heatbath`.
unsafe impl<T: Element> Kernel<T> for Overrelax {
    #[inline(always)]
    unsafe fn site(&self, i: u32, _rhs: u32) {
        unsafe {
            let (mu, links) = (self.at.mu, self.at.links(self.at.parity));
            let x = self.at.lattice.site_for::<T>(i, self.at.parity);
            let staples = self.at.staples::<T>(&x);
            links.store(x.index, mu, &overrelax(links.load(x.index, mu, Access::Own), staples));
        }
    }
    #[inline(always)]
    fn group_sites(&self) -> u32 {
        self.at.lattice.group_sites()
    }
}

crate::kernels! { FAMILY = "heatbath";
    kernel HEATBATH "heatbath": [Heatbath, in lanes] => double_numbers;
    kernel OVERRELAX "overrelax": [Overrelax, in lanes] => double_numbers;
}
