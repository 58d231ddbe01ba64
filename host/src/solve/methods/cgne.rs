//! CG for the error.
use super::Method;
use super::krylov::krylov;
use solvers::inverter;

impl Method {
    /// CG for the error on the Schur complement: M̂ M̂† y = b with x = M̂†y (CGNE).
    pub const CGNE: &'static Method = &Method {
        name: "cgne",
        titles: ["CG for the error (M M^+)"; 2],
        help: "CG for M M^+ y = b, then x = M^+ y",
        is_normal: true,
        vectors: |_| 4,
        prepare: |_, _, _, _| krylov(|_, _| Box::new(inverter::cgne())),
        ..Method::KRYLOV
    };
}
