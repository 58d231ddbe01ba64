//! Hopping terms of all operators at exterior sites, whose neighbours belong to other processes: [`Exterior`]. Wilson-like
//! operators of every kind share one kernel here.
use crate::diagonal::AnyDiagonal;
use crate::row::{Plain, RowDots};
use crate::staggered::{ImprovedExterior, ImprovedExteriorDot, NaiveExterior, NaiveExteriorDot, StaggeredRow};
use crate::wilson::{AllForms, Exterior, FixedForms, Rows, WilsonRow};

type WilsonExteriorPlain<F> = Plain<Rows<F, AnyDiagonal, Exterior, AllForms>>;
type WilsonExteriorDots<F> = RowDots<Rows<F, AnyDiagonal, Exterior, FixedForms>>;

crate::kernels! { FAMILY = "exterior";
    kernel WILSON_EXTERIOR "wilson_exterior": [WilsonRow as WilsonExteriorPlain, any AnyWilsonLinks] => wide_links, narrow_links, temporal_links;
    reduce WILSON_EXTERIOR_DOTS "wilson_exterior_dots": [WilsonRow as WilsonExteriorDots, any AnyWilsonLinks]
        => wide_links, narrow_links, temporal_links;
    kernel STAGGERED_EXTERIOR "staggered_exterior": [StaggeredRow as NaiveExterior, any AnyStaggeredLinks] => staggered_links;
    reduce STAGGERED_EXTERIOR_DOT "staggered_exterior_dot": [StaggeredRow as NaiveExteriorDot, any AnyStaggeredLinks] => staggered_links;
    kernel IMPROVED_EXTERIOR "improved_exterior": [StaggeredRow as ImprovedExterior, any AnyLongLinks] => staggered_links, unitary_links;
    reduce IMPROVED_EXTERIOR_DOT "improved_exterior_dot": [StaggeredRow as ImprovedExteriorDot, any AnyLongLinks]
        => staggered_links, unitary_links;
}
