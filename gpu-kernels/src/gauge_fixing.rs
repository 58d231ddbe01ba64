//! Landau and Coulomb gauge: relaxation, and the divergence of the gauge field.
//!
//! The links are transformed to g(x) U_μ(x) g†(x+μ̂). Relaxation at one site increases F = Σ Re tr U, summed over the
//! gauge-fixed directions, by increasing Re tr g W with W = Σ_μ U_μ(x) + U†_μ(x−μ̂). It does so in the subgroups SU(2) of rows
//! (0, 1), (0, 2) and (1, 2), one after the other (Cabibbo and Marinari 1982). Over-relaxation extrapolates to g^ω ≈ 1 + ω (g −
//! 1), projected back into SU(3) (Mandula and Ogilvie 1990). Sites of one parity share no link.
//!
//! Over-relaxation applies to the whole g and not to the rotation of each subgroup. All three rotations contain the two
//! diagonal directions, and for small angles each undoes much of the overshoot of the one before. At ω = 1.9 the three together
//! would move one direction by 0.21 of the distance instead of 1.9.
use crate::algebra::su2::{each_subgroup, largest_trace};
use crate::algebra::{AntiHermitian, Su3};
use crate::field::ThinLinks;
use crate::lattice::{Bordered, Site};
use crate::memory::Access;
use crate::{Kernel, Reduction};

/// Links that begin and end at the sites of one parity.
#[derive(Clone, Copy)]
#[repr(C)]
pub struct Star {
    /// Links that start at the even and at the odd sites of the bordered lattice.
    pub links: [ThinLinks; 2],
    /// Lattice of the links, with the sites to process.
    pub lattice: Bordered,
    /// Parity of the sites to process: 0 for even, 1 for odd.
    pub parity: u32,
    /// Number D of gauge-fixed directions, 3 or 4, of which x is the first.
    pub directions: u32,
}

impl Star {
    #[inline(always)]
    fn starting_at(&self, parity: u32) -> ThinLinks {
        if parity == 0 { self.links[0] } else { self.links[1] }
    }
    /// U_μ(x)
    #[inline(always)]
    unsafe fn ahead(&self, x: &Site, mu: u32) -> Su3<f64> {
        unsafe { self.starting_at(self.parity).load(x.index, mu, Access::Own) }
    }
    /// U_μ(x−μ̂)
    #[inline(always)]
    unsafe fn behind(&self, x: &Site, mu: u32) -> Su3<f64> {
        unsafe { self.starting_at(1 - self.parity).load(self.site_behind(x, mu), mu, Access::Own) }
    }
    #[inline(always)]
    fn site_behind(&self, x: &Site, mu: u32) -> u32 {
        self.lattice.geometry.neighbour(x, mu as usize, false)
    }
}

/// Number of passes through all subgroups. For small angles, one pass makes off-diagonal elements exact and leaves up to 1/4 of
/// a diagonal element, which may be too much for ω near 2. Two passes leave 1/32.
const PASSES: u32 = 2;

/// Returns the over-relaxed gauge transformation g(x) for the matrix W; `omega` is the over-relaxation parameter ω.
#[inline(always)]
pub fn turn(w: Su3<f64>, omega: f64) -> Su3<f64> {
    let (mut g, mut w) = (Su3::unit(), w);
    let mut pass = 0;
    while pass < PASSES {
        each_subgroup!(g, w, block => largest_trace(block));
        pass += 1;
    }
    (Su3::unit().scale(1.0 - omega) + g.scale(omega)).unitarised()
}

/// Gauge transformation of the sites of one parity, each by its over-relaxed optimum g(x).
#[derive(Clone, Copy)]
#[repr(C)]
pub struct RelaxGauge {
    /// Sites to transform, with their links.
    pub at: Star,
    /// Over-relaxation parameter ω, 1 ≤ ω < 2.
    pub omega: f64,
}
// SAFETY: call i reads and writes the eight links that begin and end at its site; sites of one parity share none.
unsafe impl Kernel<()> for RelaxGauge {
    #[inline(always)]
    unsafe fn site(&self, i: u32, _rhs: u32) {
        unsafe {
            let at = &self.at;
            let x = at.lattice.site(i, at.parity);
            let mut w = Su3::ZERO;
            let mut mu = 0;
            while mu < at.directions {
                w = w + at.ahead(&x, mu) + at.behind(&x, mu).adjoint();
                mu += 1;
            }
            let g = turn(w, self.omega);
            let (here, there) = (at.starting_at(at.parity), at.starting_at(1 - at.parity));
            let mut mu = 0;
            while mu < 4 {
                here.store(x.index, mu, &(g * at.ahead(&x, mu)).unitarised());
                there.store(at.site_behind(&x, mu), mu, &(at.behind(&x, mu) * g.adjoint()).unitarised());
                mu += 1;
            }
        }
    }
}

/// Sums over the sites of one parity: \[Σ tr Δ Δ†, Σ_μ Re tr U_μ\] over the gauge-fixed directions, where Δ(x) = Σ_μ A_μ(x) −
/// A_μ(x−μ̂), and A is the traceless part of (U − U†)/2i.
#[derive(Clone, Copy)]
#[repr(C)]
pub struct Divergence {
    /// Sites to sum over, with their links.
    pub at: Star,
}
// SAFETY: reads only.
unsafe impl Reduction<()> for Divergence {
    type Values = [f64; 2];
    #[inline(always)]
    unsafe fn site(&self, i: u32, _rhs: u32) -> [f64; 2] {
        unsafe {
            let at = &self.at;
            let x = at.lattice.site(i, at.parity);
            let (mut sum, mut trace) = (Su3::ZERO, 0.0);
            let mut mu = 0;
            while mu < at.directions {
                let ahead = at.ahead(&x, mu);
                sum = sum + (ahead - at.behind(&x, mu));
                trace += ahead.re_trace();
                mu += 1;
            }
            // The norm is that of i Δ, because the traceless anti-Hermitian part of a sum is the sum of the parts.
            [AntiHermitian::part_of(sum).norm2(), trace]
        }
    }
}

crate::kernels! { FAMILY = "gauge_fixing";
    kernel RELAX_GAUGE "relax_gauge": [RelaxGauge] => once;
    observe DIVERGENCE "divergence": [Divergence] => once;
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::algebra::{Complex, complex};

    /// Checks that for small angles a rotation is ω times the rotation to the largest trace, in each of the eight directions.
    #[test]
    fn all_directions_are_over_relaxed() {
        let (o, l, i) = (complex(0.0, 0.0), complex(1.0, 0.0), complex(0.0, 1.0));
        let minus = |z: Complex<f64>| z.scale(-1.0);
        let r = l.scale(1.0 / 3f64.sqrt());
        let generators = [
            Su3([[o, l, o], [l, o, o], [o, o, o]]),
            Su3([[o, minus(i), o], [i, o, o], [o, o, o]]),
            Su3([[l, o, o], [o, minus(l), o], [o, o, o]]),
            Su3([[o, o, l], [o, o, o], [l, o, o]]),
            Su3([[o, o, minus(i)], [o, o, o], [i, o, o]]),
            Su3([[o, o, o], [o, o, l], [o, l, o]]),
            Su3([[o, o, o], [o, o, minus(i)], [o, i, o]]),
            Su3([[r, o, o], [o, r, o], [o, o, r.scale(-2.0)]]),
        ];
        let (angle, omega) = (1e-6, 1.9);
        for (k, generator) in generators.into_iter().enumerate() {
            // W = 5 exp(i ε λ) to first order, whose g is exp(−i ε λ).
            let w = (Su3::unit() + generator.times_i().scale(angle)).scale(5.0);
            let expected = Su3::unit() + generator.times_i().scale(-omega * angle);
            let difference = turn(w, omega) - expected;
            let off = difference.0.iter().flatten().map(|z| z.norm_sqr()).sum::<f64>().sqrt() / (omega * angle);
            // Two passes leave 1/32 of a length of √2 at most; elements off the diagonal are exact to first order.
            assert!(off < if k == 2 || k == 7 { 2f64.sqrt() / 32.0 + 1e-5 } else { 1e-5 }, "λ_{}: {off}", k + 1);
        }
    }
}
