//! Device memory that a solve takes.
use super::request::{Correction, Request};
use crate::domain::Part;
use crate::halo::{Exchanges, Needs};
use crate::lattice::Lattice;
use crate::operators::Operator;
use crate::operators::fat_links::workspace_bytes;
use comms::ProcessGrid;
use gpu_kernels::{LinkStorage, Precision};
use solvers::WIDTHS;

/// Names of the vectors of a solver in its two precisions.
pub(super) const VECTORS: [&str; 2] = ["vectors of the solver", "vectors of the iteration"];

/// Part of a solve for which a method reports its device memory.
pub(super) struct NeedsScope<'a> {
    /// One process's part of the lattice.
    pub local: Lattice,
    /// Process grid.
    pub grid: &'a ProcessGrid,
    /// Number of right-hand sides.
    pub nrhs: usize,
    /// Bytes of the solver's and the iteration's vectors, which are allocated after the method is prepared.
    pub later: usize,
}

impl Request {
    /// Returns the device memory that the solve needs at its peak, in bytes for each named use. The peak is for `nrhs` right-hand sides on
    /// a process's part of a lattice and, with `systems`, for that many shifts or masses together. Escalations need more. Formats
    /// that the request leaves open are those that need most.
    pub fn memory(&self, local: Lattice, grid: &ProcessGrid, nrhs: usize, systems: Option<usize>) -> Needs {
        let request = if systems.is_some() { self.for_multishift(None) } else { self.on(None) };
        request.memory_of_formats(local, grid, nrhs, systems)
    }
    fn memory_of_formats(&self, local: Lattice, grid: &ProcessGrid, nrhs: usize, systems: Option<usize>) -> Needs {
        let (part, sites, operator) = (Part::new(local, grid), local.half_volume(), &self.operator);
        let vector = |precision| operator.shape(precision, nrhs).bytes(sites);
        let links = |precision, storage| operator.link_bytes(precision, storage, sites);
        let (double, full) = (Precision::Double, LinkStorage::FULL);
        let (kept, positive) = (operator.kept_fields(), operator.is_positive());
        let method = self.method;
        let normal = !positive && method.is_normal;
        let defect = matches!(self.correction, Correction::Defect { .. });
        // Normal equations store A p before A† is applied in the iteration. They also have a right-hand side, a residual and an image of
        // their own.
        let krylov = (method.vectors)(self) + usize::from(normal);
        let normal = 3 * usize::from(normal);
        // The right-hand side is copied to reorder it when the batch becomes smaller.
        let copy = usize::from(nrhs > 1 && !method.is_block);
        // `outer` is the number of vectors in the outer precision: solution, right-hand side, residual and, with reliable updates, the best
        // solution so far. Positive operators are counted with five.
        let outer = match (positive, defect) {
            (true, _) => 5 + if defect { 0 } else { copy },
            (false, true) => 3,
            (false, false) => 4 + normal + copy,
        };
        // Defect correction passes a right-hand side and a correction to an inner solver, which has a residual and a solution of its own.
        let inner = krylov + kept + if defect { 4 + normal + copy } else { 0 };
        // Staging fields for transfers between host and device are not counted: they do not exist at the same time as the vectors of the
        // solver, which take more.
        let mut parts = vec![
            ("links as read from the host", part.links_bytes(double)),
            ("links in double", links(double, full)),
            ("links of the iteration", links(self.precision, self.reconstruction)),
            ("source and solution in double", (6 + kept) * vector(double)),
            (VECTORS[0], outer * vector(self.outer)),
            (VECTORS[1], inner * vector(self.precision)),
        ];
        let later = outer * vector(self.outer) + (inner - kept) * vector(self.precision);
        parts.extend((method.needs)(self, &NeedsScope { local, grid, nrhs, later }));
        if operator.diagonal_bytes(double, sites) > 0 {
            parts.push(("diagonal term and its inverse in double", operator.diagonal_bytes(double, sites)));
            parts.push((
                "diagonal term of the iteration, and its inverse",
                operator.diagonal_bytes(self.precision, sites),
            ));
        }
        if let Some(systems) = systems {
            let first = self.first_precision();
            parts.push(("solutions of all systems in double", 2 * systems * vector(double)));
            parts.push(("vectors of multi-shift CG", (2 * systems + 4) * vector(first)));
            parts.push(("links of multi-shift CG", links(first, self.reconstruction)));
        }
        if self.outer != double {
            let outer =
                links(self.outer, full) + operator.diagonal_bytes(self.outer, sites) + kept * vector(self.outer);
            parts.push(("operator of the solver's residuals", outer));
        }
        if self.operator.definition().is_improved() {
            parts.push(smearing(part, &parts));
        }
        parts.extend(self.exchanges(local, grid, nrhs, systems).needs());
        parts
    }
    /// Returns the precision of multi-shift CG: single if the iteration is not in double and the build has kernels for single, otherwise
    /// double.
    pub(super) fn first_precision(&self) -> Precision {
        let has_single = || self.operator.definition().exists(Precision::Single, self.reconstruction.half(false));
        if self.precision == Precision::Double || !has_single() { Precision::Double } else { Precision::Single }
    }
    /// Returns the exchanges with other processes that occur in the solve. [`memory`](Self::memory) includes their device memory.
    pub fn exchanges(&self, local: Lattice, grid: &ProcessGrid, nrhs: usize, systems: Option<usize>) -> Exchanges {
        // A block that shares a Krylov space keeps all of its right-hand sides.
        let widths = if self.method.is_block { vec![nrhs] } else { widths(nrhs) };
        let halo_field = self.operator.halo_field();
        let border = Exchanges::of(Part::new(local, grid)).border(Precision::Double);
        let precisions = [Precision::Double, self.outer, self.precision];
        let precisions = precisions.into_iter().chain(systems.map(|_| self.first_precision()));
        let all = precisions.fold(border, |all, precision| all.hops(halo_field, precision, &widths));
        (self.method.exchanges)(self, all, local, grid, nrhs)
    }
}

/// Returns the memory of fat and long links, which stay, and of the links from which they are made. `others` are the other uses of memory,
/// including thin links. During two levels of smearing there are five fields of links, before most of the others are allocated. This is the
/// peak if parts are small and borders large.
fn smearing(part: Part, others: &[(&'static str, usize)]) -> (&'static str, usize) {
    let (links, workspace) = (part.links_bytes(Precision::Double), workspace_bytes(part.bordered_sites()));
    let others: usize = others.iter().map(|(_, bytes)| bytes).sum();
    let bytes = (3 * links + workspace).max((5 * links + workspace).saturating_sub(others));
    ("fat and long links, and the links from which they are made", bytes)
}

/// Returns the device memory that [`Configuration::apply`](super::Configuration::apply) needs at its peak for `nrhs` fields, in bytes for
/// each named use.
pub fn apply_memory(
    operator: &Operator,
    local: Lattice,
    grid: &ProcessGrid,
    nrhs: usize,
    precision: Precision,
    storage: LinkStorage,
) -> Needs {
    let (part, sites, double) = (Part::new(local, grid), local.half_volume(), Precision::Double);
    let vector = operator.shape(precision, nrhs).bytes(sites);
    let mut parts = vec![
        ("links as read from the host", part.links_bytes(double)),
        ("links", operator.link_bytes(precision, storage, sites)),
        // The source and the solution are fields on all sites, so each counts twice, once for each parity. The Schur complement keeps further
        // fields.
        ("fields", (4 + operator.kept_fields()) * vector),
        ("transfer of a field", 2 * operator.shape(double, nrhs).site_bytes() * sites * nrhs),
    ];
    if operator.diagonal_bytes(double, sites) > 0 {
        // The term exists in double precision before it is rounded, so both count.
        let both = operator.diagonal_bytes(double, sites) + operator.diagonal_bytes(precision, sites);
        parts.push(("diagonal term and its inverse", both));
    }
    if operator.definition().is_improved() {
        parts.push(smearing(part, &parts));
    }
    let exchanges = Exchanges::of(part).border(double).hops(operator.halo_field(), precision, &[nrhs]);
    parts.extend(exchanges.needs());
    parts
}

/// Returns the numbers of right-hand sides on which a solver works while the right-hand sides of a block finish, starting with all `nrhs`.
/// Solvers drop finished right-hand sides when they are at least a quarter of the block, and continue with one of [`WIDTHS`].
pub fn widths(nrhs: usize) -> Vec<usize> {
    let narrower = WIDTHS.into_iter().filter(|size| 4 * size <= 3 * nrhs);
    std::iter::once(nrhs).chain(narrower).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn solvers_become_narrower_by_a_quarter_at_least() {
        assert_eq!(widths(12), [12, 8, 6, 4, 3, 2, 1]);
        assert_eq!(widths(4), [4, 3, 2, 1]);
        assert_eq!(widths(1), [1]);
        assert_eq!(widths(0), [0]);
    }
}
