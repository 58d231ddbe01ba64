//! Hopping terms of all operators at exterior sites, whose neighbours belong to other processes: [`Exterior`]. Wilson-like
//! operators of every kind share one kernel here.
use crate::diagonal::AnyDiagonal;
use crate::dslash::{DslashDots, Plain};
use crate::staggered::{ImprovedExterior, ImprovedExteriorDot, NaiveExterior, NaiveExteriorDot, StaggeredDslash};
use crate::wilson::{AllForms, Exterior, FixedForms, WilsonDslash, WilsonFormat};

type WilsonExteriorPlain<F> = Plain<WilsonFormat<F, AnyDiagonal, Exterior, AllForms>>;
type WilsonExteriorDots<F> = DslashDots<WilsonFormat<F, AnyDiagonal, Exterior, FixedForms>>;

crate::kernels! { FAMILY = "exterior";
    kernel WILSON_EXTERIOR "wilson_exterior": [WilsonDslash as WilsonExteriorPlain, any AnyWilsonLinks] => wide_links, narrow_links, temporal_links;
    reduce WILSON_EXTERIOR_DOTS "wilson_exterior_dots": [WilsonDslash as WilsonExteriorDots, any AnyWilsonLinks]
        => wide_links, narrow_links, temporal_links;
    kernel STAGGERED_EXTERIOR "staggered_exterior": [StaggeredDslash as NaiveExterior, any AnyStaggeredLinks] => staggered_links;
    reduce STAGGERED_EXTERIOR_DOT "staggered_exterior_dot": [StaggeredDslash as NaiveExteriorDot, any AnyStaggeredLinks] => staggered_links;
    kernel IMPROVED_EXTERIOR "improved_exterior": [StaggeredDslash as ImprovedExterior, any AnyLongLinks]
        => staggered_links, unitary_links, links_beside_fine;
    reduce IMPROVED_EXTERIOR_DOT "improved_exterior_dot": [StaggeredDslash as ImprovedExteriorDot, any AnyLongLinks]
        => staggered_links, unitary_links, links_beside_fine;
}
