//! Block CG on the normal equations.
use super::Method;
use super::krylov::krylov;
use crate::field::FERMION_KINDS;
use gpu_kernels::Precision;
use solvers::inverter;

impl Method {
    /// Block CG (Dubrulle 2001, BCGrQ), with all right-hand sides of a batch in one Krylov space, on the normal equations of the Schur
    /// complement. For staggered operators, it works on the even-odd part of M†M. With one right-hand side, it is equivalent to
    /// [`Method::CG`].
    pub const BLOCK_CG: &'static Method = &Method {
        name: "block-cg",
        titles: ["block CG on the normal equations", "block CG"],
        help: "CG with all sources of a batch in one Krylov space",
        kinds: &FERMION_KINDS,
        is_normal: true,
        is_block: true,
        // The five vectors are the correction x̂, Q, P and T of the solver, and a scratch vector.
        vectors: |_| 5,
        prepare: |_, _, _, _| {
            krylov(|pair, _| {
                let dependent = Some(DEPENDENT[usize::from(pair.level.precision != Precision::Double)]);
                match pair.positive {
                    Some(_) => Box::new(inverter::block_cg(dependent)),
                    None => Box::new(inverter::block_cgnr(dependent)),
                }
            })
        },
        ..Method::KRYLOV
    };
}

/// Square of the sine of the angle at which a residual counts as dependent on the others, in double and in other precisions. It is far
/// above the squared rounding error of vectors in 16 bits.
const DEPENDENT: [f64; 2] = [1e-12, 1e-6];
