//! BiCGstab on the Schur complement.
use super::Method;
use super::krylov::krylov;
use solvers::{Patience, inverter};

impl Method {
    /// BiCGstab on the Schur complement.
    pub const BICGSTAB: &'static Method = &Method {
        name: "bicgstab",
        titles: ["BiCGstab"; 2],
        patience: Some(patience),
        vectors: |_| 6,
        prepare: |_, _, _, _| krylov(|_, _| Box::new(inverter::bicgstab())),
        ..Method::KRYLOV
    };
}

/// Returns the patience of BiCGstab. Solves at small masses on large lattices have plateaus by nature, but exceptional configurations occur
/// on small lattices. docs/measurements/solver-stagnation.md has the measurements behind the numbers.
fn patience(sites: usize) -> Patience {
    let size = (sites as f64 / 4096.0).sqrt().max(1.0);
    Patience { least: (150.0 * size) as usize, share: 0.5 }
}
