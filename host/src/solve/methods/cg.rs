//! CG on the normal equations of the Schur complement, or on an operator that is Hermitian and positive itself.
use super::Method;
use super::krylov::krylov;
use crate::field::FERMION_KINDS;
use solvers::inverter;

impl Method {
    /// CG on the normal equations of the Schur complement, M̂†M̂ x = M̂†b (CGNR). For staggered operators, CG works on the even-odd part of
    /// M†M, which is Hermitian and positive.
    pub const CG: &'static Method = &Method {
        name: "cg",
        titles: ["CG on the normal equations", "CG"],
        help: "CG on the normal equations",
        kinds: &FERMION_KINDS,
        is_normal: true,
        vectors: |_| 4,
        prepare: |_, _, _, _| {
            krylov(
                |pair, _| if pair.positive.is_some() { Box::new(inverter::cg()) } else { Box::new(inverter::cgnr()) },
            )
        },
        ..Method::KRYLOV
    };
}
