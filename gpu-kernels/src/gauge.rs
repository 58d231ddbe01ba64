//! Observables of the gauge field.
use crate::Reduction;
use crate::field::ThinLinks;
use crate::lattice::Bordered;
use crate::memory::Access;

/// For the sites of one parity: \[Σ Re tr P over the three spatial planes, over the three temporal planes, Σ_μ Re tr U_μ\],
/// with P_μν(x) = U_μ(x) U_ν(x+μ̂) U†_μ(x+ν̂) U†_ν(x).
#[derive(Clone, Copy)]
#[repr(C)]
pub struct Plaquette {
    /// The links that start at the sites of `parity` of the bordered lattice.
    pub here: ThinLinks,
    /// The links that start at the sites of the other parity.
    pub there: ThinLinks,
    /// Their lattice.
    pub lattice: Bordered,
    /// Parity of the sites.
    pub parity: u32,
}
// SAFETY: reads only.
unsafe impl Reduction<()> for Plaquette {
    type Values = [f64; 3];
    #[inline(always)]
    unsafe fn site(&self, i: u32, _rhs: u32) -> [f64; 3] {
        let (g, x) = (&self.lattice.geometry, self.lattice.site(i, self.parity));
        let here = |mu| unsafe { self.here.load::<f64>(x.index, mu, Access::Shared) };
        macro_rules! plane {
            ($mu:literal, $nu:literal) => {{
                let there = |at, mu| unsafe { self.there.load::<f64>(at, mu, Access::Shared) };
                let (right, up) = (g.neighbour(&x, $mu, true), g.neighbour(&x, $nu, true));
                let (along, across) = (here($mu) * there(right, $nu), here($nu) * there(up, $mu));
                (along * across.adjoint()).re_trace()
            }};
        }
        let spatial = plane!(0, 1) + plane!(0, 2) + plane!(1, 2);
        let temporal = plane!(0, 3) + plane!(1, 3) + plane!(2, 3);
        let trace = |mu| here(mu).re_trace();
        [spatial, temporal, trace(0) + trace(1) + trace(2) + trace(3)]
    }
}

crate::kernels! { FAMILY = "gauge";
    observe PLAQUETTE "plaquette": [Plaquette] => once;
}
