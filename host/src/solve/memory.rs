//! How much device memory a solve takes.
use super::request::{Correction, Method, Operator, Request};
use crate::dirac::{StaggeredParams, Wilson};
use crate::fat_links::workspace_bytes;
use crate::field::{DeviceClover, DeviceField, DeviceGauge};
use crate::lattice::Lattice;
use crate::memory::{Exchanges, Part, Travelling, widths};
use comms::ProcessGrid;
use gpu_kernels::{FermionKind, LinkStorage, Precision};

impl Request {
    /// Device memory that the solve needs at its peak for `nrhs` right-hand sides on a process's part of a lattice, with
    /// names for what takes it. Steps up the ladder come on top.
    pub fn memory(&self, local: Lattice, grid: &ProcessGrid, nrhs: usize) -> Vec<(&'static str, usize)> {
        let sites = local.half_volume();
        let spinor = |precision| bytes(precision, LinkStorage::FULL, sites, nrhs).spinor;
        let clover = matches!(self.operator, Operator::Clover(..));
        let normal = matches!(self.method, Method::Cg | Method::Cgne | Method::BlockCg);
        let gcr = self.method == Method::GcrDd;
        let defect = matches!(self.correction, Correction::Defect { .. });
        // The clover operator keeps an intermediate result more.
        let operator = 1 + usize::from(clover);
        let (normal, krylov) = (
            3 * usize::from(normal),
            match self.method {
                Method::Cg | Method::Cgne => 5,
                Method::BlockCg => 6,
                Method::Bicgstab => 6,
                Method::GcrDd => 2 * self.schwarz.k_max + 2,
            },
        );
        // Of the right-hand side, to put it into another order when the batch becomes smaller.
        let copy = usize::from(nrhs > 1 && self.method != Method::BlockCg);
        // Solution, right-hand side, residual, and the best solution so far where updates are made.
        let outer = 3 + if defect { 0 } else { 1 + normal + copy };
        // Defect correction hands a right-hand side and a correction to a solver with a residual and a solution to keep.
        let inner = krylov + operator + if defect { 4 + normal + copy } else { 0 };
        let exact = bytes(Precision::Double, LinkStorage::FULL, sites, nrhs);
        let sloppy = bytes(self.precision, self.reconstruction, sites, nrhs);
        let mut parts = vec![
            ("links as read from the host", Part::new(local, grid).links_bytes(Precision::Double)),
            ("links in double", exact.links),
            ("links of the iteration", sloppy.links),
            ("source and solution in double", (6 + operator) * exact.spinor),
            ("vectors of the solver", outer * spinor(self.outer)),
            ("vectors of the iteration", inner * sloppy.spinor),
            ("transfer of a spinor field", 2 * 192 * sites * nrhs),
        ];
        if gcr {
            // The preconditioner's residual and image, and the vectors that it is given and gives, with an operator's.
            let sites = self.schwarz.domain_sites(local, grid);
            let domains = bytes(self.schwarz.precision, self.reconstruction, sites, nrhs);
            let clover = if clover { domains.clover } else { 0 };
            let overlapping = if self.schwarz.overlap > 0 { 2 } else { 0 };
            parts.push(("preconditioner", (4 + operator + overlapping) * domains.spinor + domains.links + clover));
        }
        if clover {
            parts.push(("clover term and its inverse in double", exact.clover));
            parts.push(("clover term and its inverse of the iteration", sloppy.clover));
        }
        if self.outer != Precision::Double {
            let outer = bytes(self.outer, LinkStorage::FULL, sites, nrhs);
            let clover = if clover { outer.clover } else { 0 };
            parts.push(("operator of the solver's residuals", outer.links + clover + operator * outer.spinor));
        }
        parts.extend(self.exchanges(local, grid, nrhs).needs());
        parts
    }
    /// The exchanges with other processes that the solve makes, of which [`memory`](Self::memory) holds what they take on the
    /// device.
    pub fn exchanges(&self, local: Lattice, grid: &ProcessGrid, nrhs: usize) -> Exchanges {
        let sides = self.sides(nrhs);
        let precisions = [Precision::Double, self.outer, self.precision];
        let border = Exchanges::of(Part::new(local, grid)).border(Precision::Double);
        let all =
            precisions.into_iter().fold(border, |all, precision| all.hops(Travelling::Spinors, precision, &sides));
        match (self.method, self.schwarz.overlap) {
            (Method::GcrDd, 1..) => {
                all.margin(self.schwarz.overlap as u32, FermionKind::Wilson.site_bytes(self.schwarz.precision), &sides)
            }
            _ => all,
        }
    }
}

impl<O> Request<O> {
    /// The numbers of right-hand sides that operators work on one after the other.
    fn sides(&self, nrhs: usize) -> Vec<usize> {
        // Block CG keeps its block.
        if self.method == Method::BlockCg { vec![nrhs] } else { widths(nrhs) }
    }
}

impl Request<StaggeredParams> {
    /// The same for a staggered operator, naive or improved, and `shifts` systems at once where there are several.
    pub fn staggered_memory(
        &self,
        local: Lattice,
        grid: &ProcessGrid,
        nrhs: usize,
        improved: bool,
        shifts: Option<usize>,
    ) -> Vec<(&'static str, usize)> {
        let (part, sites) = (Part::new(local, grid), local.half_volume());
        let vector = |precision| staggered_bytes(precision, LinkStorage::FULL, sites, nrhs).0;
        let links = |precision, reconstruction| staggered_link_bytes(sites, improved, precision, reconstruction);
        let (double, thin) = (Precision::Double, part.links_bytes(Precision::Double));
        let defect = matches!(self.correction, Correction::Defect { .. });
        // Of the right-hand side, to put it into another order when the batch becomes smaller.
        let block = self.method == Method::BlockCg;
        let copy = usize::from(nrhs > 1 && !block);
        // Sloppy r, p, A p, correction, and what the operator keeps; block CG's scratch; with defect correction a system
        // inside.
        let inner = 5 + usize::from(block) + if defect { 4 + copy } else { 0 };
        let mut parts = vec![
            ("links as read from the host", thin),
            ("links in double", links(double, LinkStorage::FULL)),
            ("links of the iteration", links(self.precision, self.reconstruction)),
            ("source and solution in double", 7 * vector(double)),
            ("vectors of the solver", (5 + if defect { 0 } else { copy }) * vector(self.outer)),
            ("vectors of the iteration", inner * vector(self.precision)),
            ("transfer of a field", 2 * 48 * sites * nrhs),
        ];
        if let Some(shifts) = shifts {
            let first = if self.precision == double { double } else { Precision::Single };
            parts.push(("solutions of all systems in double", 2 * shifts * vector(double)));
            parts.push(("vectors of multi-shift CG", (2 * shifts + 4) * vector(first)));
            parts.push(("links of multi-shift CG", links(first, self.reconstruction)));
        }
        if self.outer != double {
            let outer = links(self.outer, LinkStorage::FULL) + vector(self.outer);
            parts.push(("operator of the solver's residuals", outer));
        }
        if improved {
            parts.push(smearing(part, &parts));
        }
        parts.extend(self.staggered_exchanges(local, grid, nrhs, improved).needs());
        parts
    }
    /// The exchanges with other processes that the solve makes, of which [`staggered_memory`](Self::staggered_memory) holds
    /// what they take on the device.
    pub fn staggered_exchanges(&self, local: Lattice, grid: &ProcessGrid, nrhs: usize, improved: bool) -> Exchanges {
        use Precision::{Double, Single};
        let sides = self.sides(nrhs);
        // Multi-shift CG is in single where the iteration is in less.
        let first = if self.precision == Double { Double } else { Single };
        let border = Exchanges::of(Part::new(local, grid)).border(Precision::Double);
        let precisions = [Double, self.outer, self.precision, first];
        precisions.into_iter().fold(border, |all, precision| all.hops(travelling(improved), precision, &sides))
    }
}

fn travelling(improved: bool) -> Travelling {
    Travelling::Colours(if improved { 3 } else { 1 })
}

/// Memory of fat and long links, which stay, and of what they are made from, beside `others`, thin links among them. With two
/// levels of smearing there are five fields of links for a while, before most of the others are there: where parts are
/// small, and borders large, that is the peak.
fn smearing(part: Part, others: &[(&'static str, usize)]) -> (&'static str, usize) {
    let (thin, workspace) = (part.links_bytes(Precision::Double), workspace_bytes(part.bordered_sites()));
    let others: usize = others.iter().map(|(_, bytes)| bytes).sum();
    let bytes = (3 * thin + workspace).max((5 * thin + workspace).saturating_sub(others));
    ("fat and long links, and what they are made from", bytes)
}

/// Device memory that [`StaggeredConfiguration::apply`] needs at its peak for `nrhs` fields, with names for what takes it.
///
/// [`StaggeredConfiguration::apply`]: super::StaggeredConfiguration::apply
pub fn staggered_apply_memory(
    local: Lattice,
    grid: &ProcessGrid,
    nrhs: usize,
    improved: bool,
    precision: Precision,
    reconstruction: LinkStorage,
) -> Vec<(&'static str, usize)> {
    let (part, sites) = (Part::new(local, grid), local.half_volume());
    let (vector, ..) = staggered_bytes(precision, reconstruction, sites, nrhs);
    let mut parts = vec![
        ("links as read from the host", part.links_bytes(Precision::Double)),
        ("links", staggered_link_bytes(sites, improved, precision, reconstruction)),
        // Two on all sites, and what M†M keeps in between.
        ("fields", 5 * vector),
        ("transfer of a field", 2 * 48 * sites * nrhs),
    ];
    if improved {
        parts.push(smearing(part, &parts));
    }
    let exchanges = Exchanges::of(part).border(Precision::Double).hops(travelling(improved), precision, &[nrhs]);
    parts.extend(exchanges.needs());
    parts
}

/// Bytes of the links of a staggered operator, naive or improved, in a format on `sites` sites of each parity.
pub fn staggered_link_bytes(sites: usize, improved: bool, precision: Precision, reconstruction: LinkStorage) -> usize {
    let (_, fat, long) = staggered_bytes(precision, reconstruction, sites, 1);
    if improved { fat + long } else { long }
}

/// Bytes of colour vectors on one parity, and of fat and of thin or long links on both.
fn staggered_bytes(
    precision: Precision,
    reconstruction: LinkStorage,
    sites: usize,
    nrhs: usize,
) -> (usize, usize, usize) {
    let links = |storage| 2 * DeviceGauge::bytes_for(precision, storage, sites);
    let vector = DeviceField::bytes_for(FermionKind::Staggered, precision, sites, nrhs);
    (vector, links(reconstruction.with_all_reals()), links(reconstruction))
}

/// Bytes of a spinor field on one parity, and of links and clover blocks on both.
struct Bytes {
    spinor: usize,
    links: usize,
    /// A and A⁻¹.
    clover: usize,
}

fn bytes(precision: Precision, storage: LinkStorage, sites: usize, nrhs: usize) -> Bytes {
    let storage = if Wilson::exists(precision, storage) { storage } else { storage.with_two_rows() };
    Bytes {
        spinor: DeviceField::bytes_for(FermionKind::Wilson, precision, sites, nrhs),
        links: 2 * DeviceGauge::bytes_for(precision, storage, sites),
        clover: 4 * DeviceClover::bytes_for(precision, sites),
    }
}
