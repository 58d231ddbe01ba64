//! Even-odd preconditioned coarse operators R D P, where D is the operator of the next finer level.
use super::level::LevelLattice;
use super::null_space::NullSpace;
use crate::backend::{Call, view};
use crate::domain::{DeviceError, Result};
use crate::field::{CoarseMatrices, DeviceField, FieldShape, FieldSpace, FullField, GaugeField};
use crate::halo::{self, ExteriorPart, Hop, HopBoundary, Zones};
use crate::operators::{DiagonalForm, EvenOddWilson};
use gpu_kernels::coarse::{
    ADD_BACKWARD, AddBackward, COARSE_APPLY, COARSE_TILE, CoarseApply, CoarseTiles, INVERT, Invert, MULTIPLY_LINKS,
    MultiplyLinks, PACK_LINKS, PackLinks,
};
use gpu_kernels::ghost::Ghosts;
use gpu_kernels::lattice::{Divisor, Geometry, Region};
use gpu_kernels::multigrid::{FORWARD_HOP, ForwardHop, PROJECT, Project, TO_CHIRAL_BASIS, ToChiralBasis};
use gpu_kernels::warp::LANES;
use gpu_kernels::{Format, Precision};
use num_complex::Complex64;
use solvers::{LinearOperator, VectorSpace};
use std::cell::{Cell, RefCell};
use std::ops::ControlFlow;

/// Directions of hops.
const HOPS: usize = 8;

/// Function that is called after each part of the construction of a coarse operator, with the part's share of the whole.
pub(super) type After<'a> = dyn FnMut(f64) -> ControlFlow<()> + 'a;
/// Share of one of the ten parts of the construction: for each chirality, the diagonal part and four directions.
const PART: f64 = 0.1;

/// Operator R D P on a coarse lattice: D_c ψ(A) = X(A) ψ(A) + Σ_d Y_d(A) ψ(A + d), where d runs over the eight directions.
pub struct CoarseOperator {
    level: LevelLattice,
    vectors: usize,
    /// Diagonal matrices X.
    diagonal: CoarseMatrices,
    /// Inverse X⁻¹ of the diagonal matrices.
    inverse: CoarseMatrices,
    /// Hopping matrices Y.
    links: CoarseMatrices,
    /// Products X⁻¹ Y, in the precision of solves.
    hops: CoarseMatrices,
}

/// Matrices that one launch of a coarse operator applies, and whether they act on the same site.
#[derive(Clone, Copy)]
struct AppliedMatrices<'a> {
    matrices: &'a CoarseMatrices,
    range: [u32; 2],
    here: bool,
}

impl CoarseOperator {
    /// Computes R M P for a Wilson-like operator M in single precision. M must be made from `links`, and suit blocks of as many right-hand
    /// sides as there are near-null vectors. `links` have no phases of twisted boundary conditions; the phases of M are applied to the
    /// hops. Hops are stored in `precision`.
    ///
    /// # Errors
    /// Failures of the device.
    pub fn of_wilson(
        space: &NullSpace,
        operator: &EvenOddWilson,
        links: &GaugeField,
        precision: Precision,
    ) -> Result<Self> {
        let made = Self::of_wilson_while(space, operator, links, precision, &mut |_| ControlFlow::Continue(()))?;
        Ok(made.expect("nothing ended it"))
    }
    /// Computes R M P like [`of_wilson`](Self::of_wilson), and calls `after` after each part of the work with its share of the whole.
    /// Returns `None` if `after` ends the work.
    pub(super) fn of_wilson_while(
        space: &NullSpace,
        operator: &EvenOddWilson,
        links: &GaugeField,
        precision: Precision,
        after: &mut After<'_>,
    ) -> Result<Option<Self>> {
        let wilson = operator.wilson();
        let (params, phases, domain) = (wilson.params(), wilson.phases(), space.fine().domain());
        let hop = |columns: &FullField, mu: usize, parity: usize, out: &mut DeviceField| -> Result {
            let factor = -params.hop() * if mu == 3 { 1.0 / params.anisotropy.space() } else { 1.0 };
            let input = columns.parity(1 - parity);
            let part = |region, ghosts| ForwardHop {
                input: input.view(),
                out: out.view(),
                links: links.links(parity),
                lattice: links.bordered(),
                geometry: domain.geometry(),
                region,
                ghosts,
                parity: parity as u32,
                direction: mu as u32,
                factor,
                factor_across: factor * params.boundary.sign(),
                chiral: 1,
            };
            let (backend, format, nrhs) = (domain.backend(), Format::of(Precision::Single), space.count());
            let hop = Hop { steps: 1, parity, dagger: false, boundary: HopBoundary::Neighbours, blocks: nrhs };
            halo::hop(
                input,
                hop,
                &mut |region, sites| {
                    Ok(backend.launch(&FORWARD_HOP, format, &part(region, Ghosts::NONE), sites, nrhs as u32)?)
                },
                &mut |ExteriorPart { region, sites, ghosts, stream, .. }| {
                    let kernel = part(region, ghosts);
                    let call = Call::of(&FORWARD_HOP, format, &kernel)?;
                    Ok(backend.run(stream, call, sites, nrhs as u32)?)
                },
            )?;
            if phases.are_none() {
                return Ok(());
            }
            // `links` have no phases, so the product is multiplied by the phase of the hop.
            let (none, phase) = (vec![Complex64::ZERO; nrhs], vec![phases.0[mu]; nrhs]);
            space.fine().space(nrhs).axpby(&none, input, &phase, out)
        };
        let diagonal = |columns: &FullField, parity: usize, out: &mut DeviceField| {
            let form = DiagonalForm { parity, inverse: false, dagger: false };
            operator.apply_diagonal(form, columns.parity(parity), out)
        };
        Self::build(space, precision, &diagonal, &hop, after)
    }
    /// Computes R D P for the operator D of the next finer level, itself a coarse level. Hops are stored in `precision`.
    ///
    /// # Errors
    /// Failures of the device.
    pub fn of_coarse(space: &NullSpace, operator: &CoarseOperator, precision: Precision) -> Result<Self> {
        let made = Self::of_coarse_while(space, operator, precision, &mut |_| ControlFlow::Continue(()))?;
        Ok(made.expect("nothing ended it"))
    }
    /// Computes R D P like [`of_coarse`](Self::of_coarse), and calls `after` after each part of the work with its share of the whole.
    /// Returns `None` if `after` ends the work.
    pub(super) fn of_coarse_while(
        space: &NullSpace,
        operator: &CoarseOperator,
        precision: Precision,
        after: &mut After<'_>,
    ) -> Result<Option<Self>> {
        let hop = |columns: &FullField, mu: usize, parity: usize, out: &mut DeviceField| {
            let part = AppliedMatrices { matrices: &operator.links, range: [mu as u32, mu as u32 + 1], here: false };
            operator.launch(part, parity, (0.0, None), 1.0, columns.parity(1 - parity), out, space.count())
        };
        let diagonal = |columns: &FullField, parity: usize, out: &mut DeviceField| {
            operator.apply_diagonal(false, parity, columns.parity(parity), out, space.count())
        };
        Self::build(space, precision, &diagonal, &hop, after)
    }
    /// Builds the operator from two products with columns of P. `diagonal` applies the diagonal part of the fine operator, in the device's
    /// spin basis, and `hop` its forward hops, in the chiral basis.
    fn build(
        space: &NullSpace,
        precision: Precision,
        diagonal: &dyn Fn(&FullField, usize, &mut DeviceField) -> Result,
        hop: &dyn Fn(&FullField, usize, usize, &mut DeviceField) -> Result,
        after: &mut After<'_>,
    ) -> Result<Option<Self>> {
        let (coarse, count) = (space.coarse(), space.count());
        let (domain, sites) = (coarse.domain(), coarse.lattice().volume());
        let matrices = |which| CoarseMatrices::zero(domain, sites, count, which, Precision::Single);
        let (x, inside, links) = (matrices(1)?, matrices(1)?, matrices(HOPS)?);
        let (mut columns, mut images) = (space.fine().zero(count)?, space.fine().zero(count)?);
        for chirality in 0..2 {
            for parity in 0..2 {
                space.columns(parity, chirality, columns.parity_mut(parity))?;
            }
            let project = |to: &CoarseMatrices, images: &FullField, direction: usize, add: bool| {
                let (rows, columns) = (count as u32 / 8, count as u32 / 4);
                let kernel = Project {
                    vectors: space.views(),
                    columns: [images.even.view(), images.odd.view()],
                    inside: to.view(),
                    outside: links.view(),
                    aggregates: space.aggregates(),
                    row_groups: Divisor::new(rows),
                    column_groups: Divisor::new(columns),
                    chirality,
                    direction: direction as u32,
                    add: u32::from(add),
                };
                let threads = LANES * space.aggregates().count() * 2 * rows * columns;
                space.launch_single(&PROJECT, &kernel, threads, 1)
            };
            for parity in 0..2 {
                let image = images.parity_mut(parity);
                diagonal(&columns, parity, image)?;
                if space.spins() != 0 {
                    let (kernel, n) = (ToChiralBasis { vectors: image.view() }, space.fine().domain().half_sites());
                    space.launch_single(&TO_CHIRAL_BASIS, &kernel, n, count)?;
                }
            }
            project(&x, &images, 4, false)?;
            if after(PART).is_break() {
                return Ok(None);
            }
            for mu in 0..4 {
                for parity in 0..2 {
                    hop(&columns, mu, parity, images.parity_mut(parity))?;
                }
                project(&inside, &images, mu, mu > 0)?;
                // `after` may be called only when the part is done, and a launch may return before its work is done.
                domain.backend().synchronize()?;
                if after(PART).is_break() {
                    return Ok(None);
                }
            }
        }
        let rows = 2 * count as u32;
        let geometry = Geometry::new(coarse.extents());
        let (diagonal, inside_view) = (x.view(), inside.view());
        let rows = Divisor::new(rows);
        let ghost_links = Self::neighbour_links(space, &links)?;
        let cut = domain.cut();
        let backward =
            AddBackward { diagonal, inside: inside_view, links: links.view(), ghost_links, cut, geometry, rows };
        let elements = sites as u32 * rows.get() * rows.get();
        space.launch_single(&ADD_BACKWARD, &backward, elements, 1)?;
        let inverse = matrices(1)?;
        let lost = x.copied(domain)?;
        let kernel = Invert { matrix: lost.view(), inverse: inverse.view() };
        space.launch_single(&INVERT, &kernel, LANES * sites as u32, 1)?;
        drop((lost, inside));
        let hops = matrices(HOPS)?;
        let tiles = rows.get() / COARSE_TILE;
        let kernel =
            MultiplyLinks { left: inverse.view(), links: links.view(), out: hops.view(), tiles: Divisor::new(tiles) };
        let threads = LANES * sites as u32 * HOPS as u32 * tiles * tiles;
        space.launch_single(&MULTIPLY_LINKS, &kernel, threads, 1)?;
        let hops = if precision == Precision::Single { hops } else { hops.rounded(domain)? };
        Ok(Some(CoarseOperator { level: coarse.clone(), vectors: count, diagonal: x, inverse, links, hops }))
    }
    /// *Collective.* Returns, for each direction μ, the forward links that begin on the sites of the backward neighbour next to this
    /// process's part.
    fn neighbour_links(space: &NullSpace, links: &CoarseMatrices) -> Result<[CoarseTiles; 4]> {
        let (coarse, count) = (space.coarse(), space.count());
        let (domain, geometry) = (coarse.domain(), Geometry::new(coarse.extents()));
        let Some(halo) = domain.halo()? else { return Ok([links.view(); 4]) };
        let sites = |mu: usize| 2 * geometry.face_sites(mu);
        let matrix = CoarseMatrices::bytes_for(1, count, 1, Precision::Single);
        let mut pack = |places: &Zones| {
            (0..4).filter(|mu| halo.cut() >> mu & 1 == 1).try_for_each(|mu| {
                let chunks = matrix as u32 / 16;
                let kernel = PackLinks {
                    links: links.view(),
                    to: view::message_matrices(places[mu][0], count),
                    geometry,
                    direction: mu as u32,
                    chunks: Divisor::new(chunks),
                };
                space.launch_single(&PACK_LINKS, &kernel, sites(mu) * chunks, 1)
            })
        };
        let bytes = std::array::from_fn(|mu| sites(mu) as usize * matrix);
        let zones = halo::exchange_once(domain, halo, bytes, &mut pack)?;
        Ok(zones.map(|[backward, _]| view::message_matrices(backward, count)))
    }
    /// Returns the bytes of an operator on `sites` sites with `vectors` near-null vectors, and the bytes at the peak of its construction.
    pub(crate) fn bytes_for(sites: usize, vectors: usize, precision: Precision) -> [usize; 2] {
        let bytes = |count, precision| CoarseMatrices::bytes_for(sites, vectors, count, precision);
        let single = |count| bytes(count, Precision::Single);
        let (diagonals, hops) = (single(2) + single(HOPS), bytes(HOPS, precision));
        // Hops are computed in single precision before they are rounded, so both copies exist at the peak.
        let rounded = if precision == Precision::Single { 0 } else { hops };
        [diagonals + hops, diagonals + single(HOPS) + rounded]
    }
    /// Returns the level on which the operator acts.
    pub fn level(&self) -> &LevelLattice {
        &self.level
    }
    /// Returns the number of near-null vectors from which the operator was made.
    pub fn vectors(&self) -> usize {
        self.vectors
    }
    /// Computes `out` = a x + b Σ M ψ on the sites of `parity`; without a field x, the old `out` is x.
    #[allow(clippy::too_many_arguments)] // one launch, all of whose operands are needed
    fn launch(
        &self,
        part: AppliedMatrices<'_>,
        parity: usize,
        (a, x): (f32, Option<&DeviceField>),
        b: f32,
        input: &DeviceField,
        out: &mut DeviceField,
        nrhs: usize,
    ) -> Result {
        let domain = self.level.domain();
        let shape = FieldShape::spinors(Precision::Single, nrhs);
        [Some(input), x, Some(out)].into_iter().flatten().try_for_each(|field| field.expect(domain, shape))?;
        let tiles = 2 * self.vectors as u32 / COARSE_TILE;
        let (geometry, spinors) = (Geometry::new(self.level.extents()), self.level.spinors() as u32);
        let kernel = |region, ghosts| CoarseApply {
            matrices: part.matrices.view(),
            scales: part.matrices.scales(),
            input: input.view(),
            x: x.unwrap_or(out).view(),
            out: out.view(),
            geometry,
            region,
            ghosts,
            tiles: Divisor::new(tiles),
            spinors,
            parity: parity as u32,
            range: part.range,
            here: u32::from(part.here),
            a,
            b,
        };
        let (backend, format) = (domain.backend(), Format::of(part.matrices.precision()));
        let threads = |sites: u32| LANES * CoarseApply::PARTS * sites * tiles;
        let mut interior = |region, sites| {
            let kernel = kernel(region, Ghosts::NONE);
            Ok(backend.launch(&COARSE_APPLY, format, &kernel, threads(sites), nrhs as u32)?)
        };
        if part.here {
            return interior(Region::WHOLE, geometry.half_volume());
        }
        let mut exterior = |ExteriorPart { region, sites, ghosts, stream, .. }: ExteriorPart<'_>| {
            let kernel = kernel(region, ghosts);
            let call = Call::of(&COARSE_APPLY, format, &kernel)?;
            Ok(backend.run(stream, call, threads(sites), nrhs as u32)?)
        };
        halo::hop_on_level(input, (geometry, spinors), parity, nrhs, &mut interior, &mut exterior)
    }
    /// Computes `out` = X x, or X⁻¹ x if `inverse` is set, on the sites of `parity`. X is the diagonal part of the operator.
    ///
    /// # Errors
    /// Fields of another level or format; failures of the device.
    pub fn apply_diagonal(
        &self,
        inverse: bool,
        parity: usize,
        x: &DeviceField,
        out: &mut DeviceField,
        nrhs: usize,
    ) -> Result {
        let matrices = if inverse { &self.inverse } else { &self.diagonal };
        self.launch(AppliedMatrices { matrices, range: [0, 1], here: true }, parity, (0.0, None), 1.0, x, out, nrhs)
    }
    /// Computes `out` = a x + b X⁻¹ Y ψ on the sites of `parity`; ψ is on the other parity.
    fn hop(
        &self,
        parity: usize,
        ax: (f32, Option<&DeviceField>),
        b: f32,
        psi: &DeviceField,
        out: &mut DeviceField,
        nrhs: usize,
    ) -> Result {
        let part = AppliedMatrices { matrices: &self.hops, range: [0, HOPS as u32], here: false };
        self.launch(part, parity, ax, b, psi, out, nrhs)
    }
    /// Computes `out` = D ψ on all sites, where D is this coarse operator, for the first `nrhs` right-hand sides.
    ///
    /// # Errors
    /// Fields of another level or format; failures of the device.
    pub fn apply(&self, psi: &FullField, out: &mut FullField, nrhs: usize) -> Result {
        for parity in 0..2 {
            let part = AppliedMatrices { matrices: &self.links, range: [0, HOPS as u32], here: false };
            let (here, there) = (psi.parity(parity), psi.parity(1 - parity));
            let image = out.parity_mut(parity);
            self.apply_diagonal(false, parity, here, image, nrhs)?;
            self.launch(part, parity, (1.0, None), 1.0, there, image, nrhs)?;
        }
        Ok(())
    }
    /// Computes the right-hand side b̂ = X⁻¹ (b_e − Y X⁻¹ b_o) of the system on even sites from `b` on all sites, where X is the diagonal
    /// part of the operator and Y its hopping part. Writes b̂ to `even`, and X⁻¹ b_o to `odd`.
    pub fn prepare(&self, b: &FullField, even: &mut DeviceField, odd: &mut DeviceField, nrhs: usize) -> Result {
        self.apply_diagonal(true, 1, &b.odd, odd, nrhs)?;
        self.apply_diagonal(true, 0, &b.even, even, nrhs)?;
        self.hop(0, (1.0, None), -1.0, odd, even, nrhs)
    }
    /// Computes the odd half of `x` from its even half, x_o = X⁻¹ b_o − X⁻¹ Y x_e, where X is the diagonal part of the operator and Y its
    /// hopping part. `odd` is X⁻¹ b_o from [`prepare`](Self::prepare).
    pub fn reconstruct(&self, odd: &DeviceField, x: &mut FullField, nrhs: usize) -> Result {
        let FullField { even, odd: out } = x;
        self.hop(1, (1.0, Some(odd)), -1.0, even, out, nrhs)
    }
}

/// Schur complement 1 − X⁻¹ Y X⁻¹ Y of a coarse operator on the even sites, where X is the diagonal part of the operator and Y its hopping
/// part.
pub struct CoarseSchur<'a> {
    operator: &'a CoarseOperator,
    odd: RefCell<DeviceField>,
    nrhs: Cell<usize>,
}

impl<'a> CoarseSchur<'a> {
    /// Makes the Schur complement for blocks of `nrhs` right-hand sides.
    ///
    /// # Errors
    /// Too little memory.
    pub fn new(operator: &'a CoarseOperator, nrhs: usize) -> Result<Self> {
        let odd = RefCell::new(operator.level.zero(nrhs)?.odd);
        Ok(CoarseSchur { operator, odd, nrhs: Cell::new(nrhs) })
    }
}

impl LinearOperator<FieldSpace> for CoarseSchur<'_> {
    fn apply(&self, x: &DeviceField, out: &mut DeviceField) -> std::result::Result<(), DeviceError> {
        let mut odd = self.odd.borrow_mut();
        let nrhs = self.nrhs.get();
        self.operator.hop(1, (0.0, None), 1.0, x, &mut odd, nrhs)?;
        self.operator.hop(0, (1.0, Some(x)), -1.0, &odd, out, nrhs)
    }
    fn apply_dagger(&self, _: &DeviceField, _: &mut DeviceField) -> std::result::Result<(), DeviceError> {
        Err(DeviceError::NoDagger)
    }
    fn narrow(&self, nrhs: usize) -> bool {
        let fits = (1..=self.odd.borrow().nrhs()).contains(&nrhs);
        if fits {
            self.nrhs.set(nrhs);
        }
        fits
    }
    /// Counts 8 operations for each element of the matrices of all hops, and a sum of vectors.
    fn flops(&self) -> f64 {
        let (rows, sites) = (2.0 * self.operator.vectors as f64, self.operator.level.domain().global().volume() as f64);
        let sites = sites / self.operator.level.spinors() as f64;
        sites * rows * (8.0 * HOPS as f64 * rows + 2.0)
    }
}
