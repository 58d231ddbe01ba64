//! The gradient of an action of stout links with respect to the original links (Morningstar and Peardon 2004).
//!
//! U′_μ(x) = exp(X_μ(x)) U_μ(x), X_μ(x) = \[ρ C_μ(x) U†_μ(x)\], with the staples
//! C_μ(x) = Σ_{ν≠μ} U_ν(x) U_μ(x+ν̂) U†_ν(x+μ̂) + U†_ν(x−ν̂) U_μ(x−ν̂) U_ν(x−ν̂+μ̂) and the traceless anti-Hermitian part \[·\].
//! Let dS = Re Σ tr (G′†_μ(x) dU′_μ(x)). The contribution of dX is
//!
//! Re Σ tr (U G′† d exp X) = Re Σ tr (Λ_μ(x) dX_μ(x)) = ρ Re Σ tr (Λ_μ(x) d(C_μ(x) U†_μ(x))),
//!
//! where Λ is the traceless anti-Hermitian part of the derivative of exp at X in direction U G′†
//! ([`exp_and_derivative`](crate::algebra::AntiHermitian::exp_and_derivative)). The last sum is −ρ times the change of Σ Re tr
//! P over all plaquettes if each link moves by dU = Λ U. Its gradient is ρ Λ C minus ρ times the change of C under this motion:
//!
//! G_μ(x) = exp(−X_μ(x)) G′_μ(x) + ρ Λ_μ(x) C_μ(x)
//! − ρ Σ_{ν≠μ} { Λ_ν(x) a m − a m Λ_ν(x+μ̂) + a Λ_μ(x+ν̂) m + d† [(Λ_μ(x−ν̂) − Λ_ν(x−ν̂)) e + e Λ_ν(x−ν̂+μ̂)] f },
//!
//! with a = U_ν(x), m = U_μ(x+ν̂) U†_ν(x+μ̂), d = U_ν(x−ν̂), e = U_μ(x−ν̂) and f = U_ν(x−ν̂+μ̂).
//!
//! With staples in space only, links in t and their gradient are unchanged.
use crate::Kernel;
use crate::algebra::{AntiHermitian, Su3};
use crate::field::{Matrices, Momenta, ThinLinks};
use crate::lattice::{Bordered, Geometry, Site};
use crate::memory::Access;
use crate::smeared::{link, of, staple_at, step};
use crate::storage::Element;

/// C_μ(x), the sum of staples in the first `directions` directions.
///
/// # Safety
/// The sites of the staples exist, and nothing writes links meanwhile.
#[inline(always)]
unsafe fn staples<T: Element>(u: &[ThinLinks; 2], g: &Geometry, x: (&Site, u32), mu: u32, directions: u32) -> Su3<T> {
    let along: [Matrices; 2] = [u[0].direction(mu), u[1].direction(mu)];
    let mut sum = Su3::ZERO;
    let mut nu = 0;
    while nu < directions {
        if nu != mu {
            sum = sum + unsafe { staple_at::<T>(u, &along, g, x, (mu, nu)) };
        }
        nu += 1;
    }
    sum
}

/// Computes Λ_μ(x) and updates the gradient, G_μ(x) ← exp(−X_μ(x)) G_μ(x) + ρ Λ_μ(x) C_μ(x). The direction μ takes the
/// place of the right-hand side.
#[derive(Clone, Copy)]
#[repr(C)]
pub struct StoutDerivative {
    /// Links U that start at the even and at the odd sites of the bordered lattice.
    pub links: [ThinLinks; 2],
    /// Gradient G on the sites of `parity` of the bordered lattice. On entry, it is the gradient with respect to the
    /// stout links.
    pub gradient: ThinLinks,
    /// Matrices Λ on the sites of `parity` of the bordered lattice.
    pub weights: Momenta,
    /// Lattice of the links, the gradient and Λ, with the sites to process.
    pub lattice: Bordered,
    /// Parity of the sites to process: 0 for even, 1 for odd.
    pub parity: u32,
    /// Number of directions of staples, 3 or 4, of which x is the first.
    pub directions: u32,
    /// ρ
    pub rho: f64,
}
// SAFETY: call (i, μ) reads and writes G_μ, and writes Λ_μ, at site i only.
unsafe impl<T: Element> Kernel<T> for StoutDerivative {
    #[inline(always)]
    unsafe fn site(&self, i: u32, mu: u32) {
        let x = self.lattice.site_for::<T>(i, self.parity);
        let rho = T::from_f64(self.rho);
        unsafe {
            let here = (&x, self.parity);
            let c = staples::<T>(&self.links, &self.lattice.geometry, here, mu, self.directions).scale(rho).settled();
            let u = link::<T>(&self.links, self.parity, x.index, mu);
            let exponent = AntiHermitian::part_of(c * u.adjoint());
            let gradient = self.gradient.load::<T>(x.index, mu, Access::Own);
            let (exp, lambda) = exponent.exp_and_derivative((u * gradient.adjoint()).settled());
            self.weights.store::<T>(x.index, mu, &lambda);
            let sum = exp.settled().adjoint() * gradient + lambda.matrix() * c;
            self.gradient.store::<T>(x.index, mu, &sum);
        }
    }
    #[inline(always)]
    fn group_sites(&self) -> u32 {
        self.lattice.group_sites()
    }
}

/// Subtracts from the gradient G_μ(x) the contribution of staples that contain U_μ(x): ρ times the sum over ν ≠ μ in
/// the formula of this module. The direction μ takes the place of the right-hand side.
#[derive(Clone, Copy)]
#[repr(C)]
pub struct StoutGradient {
    /// Links U that start at the even and at the odd sites of the bordered lattice.
    pub links: [ThinLinks; 2],
    /// Matrices Λ on the even and on the odd sites of the bordered lattice.
    pub weights: [Momenta; 2],
    /// Gradient G on the sites of `parity` of the bordered lattice.
    pub gradient: ThinLinks,
    /// Lattice of the links, Λ and the gradient.
    pub lattice: Bordered,
    /// Parity of the sites to process: 0 for even, 1 for odd.
    pub parity: u32,
    /// Number of directions of staples, 3 or 4, of which x is the first.
    pub directions: u32,
    /// ρ
    pub rho: f64,
}
// SAFETY: call (i, μ) reads and writes G_μ at site i only.
unsafe impl<T: Element> Kernel<T> for StoutGradient {
    #[inline(always)]
    unsafe fn site(&self, i: u32, mu: u32) {
        let (g, here, there) = (&self.lattice.geometry, self.parity, 1 - self.parity);
        let x = self.lattice.site_for::<T>(i, here);
        let ahead = step(g, &x, mu, true);
        let (u, w) = (&self.links, &self.weights);
        let mut sum = Su3::<T>::ZERO;
        let mut nu = 0;
        while nu < self.directions {
            if nu == mu {
                nu += 1;
                continue;
            }
            let (up, down) = (step(g, &x, nu, true), step(g, &x, nu, false));
            unsafe {
                let m = (link::<T>(u, there, up, mu) * link(u, there, ahead, nu).adjoint()).settled();
                let a = link::<T>(u, here, x.index, nu);
                let over = (a * m).settled();
                sum = (sum + weight(w, here, x.index, nu).matrix() * over).settled();
                sum = (sum - over * weight(w, there, ahead, nu).matrix()).settled();
                sum = (sum + a * (weight(w, there, up, mu).matrix() * m).settled()).settled();
            }
            let below = g.site_for::<T>(down, there);
            let beside = step(g, &below, mu, true);
            unsafe {
                let e = link::<T>(u, there, down, mu);
                let apart = weight::<T>(w, there, down, mu).add_scaled(-T::ONE, weight(w, there, down, nu));
                let under = (apart.matrix() * e + e * weight(w, here, beside, nu).matrix()).settled();
                let under = (link::<T>(u, there, down, nu).adjoint() * under).settled();
                sum = (sum + under * link(u, here, beside, nu)).settled();
            }
            nu += 1;
        }
        unsafe {
            let gradient = self.gradient.load::<T>(x.index, mu, Access::Own);
            self.gradient.store::<T>(x.index, mu, &(gradient - sum.scale(T::from_f64(self.rho))));
        }
    }
    #[inline(always)]
    fn group_sites(&self) -> u32 {
        self.lattice.group_sites()
    }
}

/// Λ_μ at a site of a parity.
///
/// # Safety
/// The site exists, and nothing writes Λ meanwhile.
#[inline(always)]
unsafe fn weight<T: Element>(weights: &[Momenta; 2], parity: u32, at: u32, mu: u32) -> AntiHermitian<T> {
    unsafe { of(weights, parity).load(at, mu, Access::Shared) }
}

crate::kernels! { FAMILY = "stout";
    kernel STOUT_DERIVATIVE "stout_derivative": [StoutDerivative, in lanes] => real_numbers;
    kernel STOUT_GRADIENT "stout_gradient": [StoutGradient, in lanes] => real_numbers;
}
