//! Block CG.
use super::Method;
use super::krylov::krylov;
use crate::field::FERMION_KINDS;
use gpu_kernels::Precision;
use solvers::inverter;

impl Method {
    /// Block CG, all right-hand sides of a batch in one Krylov space (Dubrulle 2001, BCGrQ), on the normal equations of
    /// the Schur complement; on M†M itself for staggered operators. With one right-hand side it is [`Method::CG`].
    pub const BLOCK_CG: &'static Method = &Method {
        name: "block-cg",
        titles: ["block CG on the normal equations", "block CG"],
        help: "CG with all sources of a batch in one Krylov space",
        kinds: &FERMION_KINDS,
        is_normal: true,
        is_block: true,
        // One of them is scratch.
        vectors: |_| 5,
        prepare: |_, _, _, _| {
            krylov(|pair, _| {
                let dependent = Some(DEPENDENT[usize::from(pair.level.precision != Precision::Double)]);
                match pair.positive {
                    true => Box::new(inverter::block_cg(dependent)),
                    false => Box::new(inverter::block_cgnr(dependent)),
                }
            })
        },
        ..Method::KRYLOV
    };
}

/// Square of the sine of an angle at which a residual counts as dependent on the others: for an iteration in double precision, and for
/// others. Far above the rounding of vectors in 16 bits, squared.
const DEPENDENT: [f64; 2] = [1e-12, 1e-6];
