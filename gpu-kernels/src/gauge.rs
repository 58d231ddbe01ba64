//! Observables of the gauge field.
use crate::Reduction;
use crate::algebra::Real;
use crate::field::Links;
use crate::lattice::Geometry;
use crate::storage::{Double, LinkFormat, Precision, Recon18};

/// For the sites of one parity: \[Σ Re tr P over the three spatial planes, over the three temporal planes,
/// Σ_μ Re tr U_μ\], with P_μν(x) = U_μ(x) U_ν(x+μ̂) U†_μ(x+ν̂) U†_ν(x).
#[derive(Clone, Copy)]
#[repr(C)]
pub struct Plaquette<P, R> {
    /// Links around the sites of `parity`.
    pub here: Links<P, R>,
    /// Links around the sites of the other parity.
    pub there: Links<P, R>,
    /// The lattice.
    pub geometry: Geometry,
    /// Parity of the sites.
    pub parity: u32,
}
// SAFETY: reads only.
unsafe impl<P: Precision, R: LinkFormat<P>> Reduction for Plaquette<P, R> {
    const NAME: &'static [&'static str] = &["plaquette", P::NAME, R::NAME];
    type Values = [f64; 3];
    #[inline(always)]
    unsafe fn site(&self, i: u32, _rhs: u32) -> [f64; 3] {
        let g = &self.geometry;
        let x = g.site(i, self.parity);
        macro_rules! plane {
            ($mu:literal, $nu:literal) => {
                unsafe {
                    let there = |direction, step| self.there.forward(g.neighbour(&x, step, true), direction);
                    let along = self.here.forward(i, $mu) * there($nu, $mu);
                    let across = self.here.forward(i, $nu) * there($mu, $nu);
                    (along * across.adjoint()).re_trace().to_f64()
                }
            };
        }
        let spatial = plane!(0, 1) + plane!(0, 2) + plane!(1, 2);
        let temporal = plane!(0, 3) + plane!(1, 3) + plane!(2, 3);
        let trace = |mu: usize| unsafe { self.here.forward(i, mu) }.re_trace().to_f64();
        [spatial, temporal, trace(0) + trace(1) + trace(2) + trace(3)]
    }
}

crate::entry! { INSTANCES:
    observe "gauge" plaquette_double_18: Plaquette<Double, Recon18>, registers 0;
}
