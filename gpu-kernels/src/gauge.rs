//! Observables of the gauge field.
use crate::Reduction;
use crate::field::ThinLinks;
use crate::lattice::Bordered;
use crate::memory::Access;
use crate::storage::Element;

/// Sums over the sites of one parity of \[Re tr P in the three spatial planes, Re tr P in the three planes with t, Σ_μ
/// Re tr U_μ\], where P_μν(x) = U_μ(x) U_ν(x+μ̂) U†_μ(x+ν̂) U†_ν(x) is the plaquette.
#[derive(Clone, Copy)]
#[repr(C)]
pub struct Plaquette {
    /// Links that start at the sites of `parity` of the bordered lattice.
    pub here: ThinLinks,
    /// Links that start at the sites of the other parity of the bordered lattice.
    pub there: ThinLinks,
    /// Lattice of the links.
    pub lattice: Bordered,
    /// Parity of the sites to process: 0 for even, 1 for odd.
    pub parity: u32,
}
// SAFETY: reads only.
unsafe impl<T: Element> Reduction<T> for Plaquette {
    type Values = [f64; 3];
    #[inline(always)]
    unsafe fn site(&self, i: u32, _rhs: u32) -> [f64; 3] {
        let (g, x) = (&self.lattice.geometry, self.lattice.site_for::<T>(i, self.parity));
        macro_rules! link {
            ($links:ident($at:expr), $mu:literal) => {
                unsafe { self.$links.load::<T>($at, $mu, Access::Shared) }
            };
        }
        macro_rules! plane {
            ($mu:literal, $nu:literal) => {{
                let (right, up) = (g.neighbour(&x, $mu, true), g.neighbour(&x, $nu, true));
                let along = (link!(here(x.index), $mu) * link!(there(right), $nu)).settled();
                let across = (link!(here(x.index), $nu) * link!(there(up), $mu)).settled();
                (along * across.adjoint()).re_trace()
            }};
        }
        let spatial = plane!(0, 1) + plane!(0, 2) + plane!(1, 2);
        let temporal = plane!(0, 3) + plane!(1, 3) + plane!(2, 3);
        macro_rules! trace {
            ($($mu:literal)*) => { [$(link!(here(x.index), $mu).re_trace()),*] };
        }
        let [a, b, c, d] = trace!(0 1 2 3);
        [spatial.to_f64(), temporal.to_f64(), (a + b + c + d).to_f64()]
    }
    #[inline(always)]
    fn group_sites(&self) -> u32 {
        self.lattice.group_sites()
    }
}

crate::kernels! { FAMILY = "gauge";
    observe PLAQUETTE "plaquette": [Plaquette, in lanes] => double_numbers;
}
