//! CG for the error.
use super::Method;
use super::krylov::krylov;
use solvers::inverter;

impl Method {
    /// CG for the error, M M† y = b with x = M†y (CGNE).
    pub const CGNE: &'static Method = &Method {
        name: "cgne",
        titles: ["CG for the error (M M^+)"; 2],
        help: "x = M^+ y, M M^+ y = b",
        is_normal: true,
        vectors: |_| 4,
        prepare: |_, _, _, _| krylov(|_, _| Box::new(inverter::cgne())),
        ..Method::KRYLOV
    };
}
