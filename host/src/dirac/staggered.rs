//! Staggered operators: M = m + ½ D with the hopping term D of Babich et al. 2011, eqs. 3 and 4, naive (thin links, one
//! hop) and improved (fat links and long links of three hops: asqtad, HISQ). D is anti-Hermitian, so that
//! M†M = m² − ¼ D² does not mix the parities.
use super::even_odd::{EvenOdd, Width};
use super::wilson::TimeBoundary;
use crate::backend::{Buffer, view};
use crate::domain::{DeviceError, Domain, Result};
use crate::field::{ColourSpace, DeviceColour, DeviceGauge, FullColour};
use crate::halo::{Beyond, Hop, Outside, PartialSums, SumTarget, hop};
use gpu_kernels::Kernel;
use gpu_kernels::algebra::Real;
use gpu_kernels::exterior::{StaggeredExterior, StaggeredExteriorDot};
use gpu_kernels::field::Field;
use gpu_kernels::ghost::{Ghosts, Nothing};
use gpu_kernels::lattice::Region;
use gpu_kernels::row::RowDot;
use gpu_kernels::staggered::{Dslash, DslashAdd, Hops, Improved, Naive, Phases};
use gpu_kernels::storage::{Colours, LinkFormat, OneSpin, Precision, Reconstruct};
use num_complex::Complex64;
use solvers::{Behind, Descent, LinearOperator, VectorSpace};
use std::cell::RefCell;
use std::sync::Arc;

/// Operations of the naive hopping term per site, as everybody counts them: eight products of a matrix and a vector and
/// seven sums.
pub const STAGGERED_FLOPS: f64 = 570.0;
/// Operations of the improved hopping term per site.
pub const IMPROVED_FLOPS: f64 = 1146.0;
/// Operations of a x + b … per site: two for each of the 6 real components.
const ADD_FLOPS: f64 = 12.0;

/// Which sign a hop gets where: conventions that differ by the sign of ψ at some sites.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum StaggeredPhases {
    /// η_x = (−1)^t, η_y = (−1)^(t+x), η_z = (−1)^(t+x+y), η_t = 1.
    #[default]
    Milc,
    /// η_x = 1, η_y = (−1)^x, η_z = (−1)^(x+y), η_t = (−1)^(x+y+z).
    Lexicographic,
}

impl StaggeredPhases {
    /// Which coordinates count for η_μ: bit 0 for x to bit 3 for t.
    fn counted(self) -> [u32; 4] {
        match self {
            StaggeredPhases::Milc => [0b1000, 0b1001, 0b1011, 0],
            StaggeredPhases::Lexicographic => [0, 0b0001, 0b0011, 0b0111],
        }
    }
    /// For kernels.
    pub(crate) fn table(self) -> Phases {
        Phases::new(self.counted())
    }
    /// η_μ(x): 1 or −1.
    pub fn sign(self, site: [usize; 4], mu: usize) -> f64 {
        let counted = self.counted()[mu];
        let sum: usize = (0..4).filter(|nu| counted >> nu & 1 == 1).map(|nu| site[nu]).sum();
        if sum.is_multiple_of(2) { 1.0 } else { -1.0 }
    }
}

/// What a staggered operator needs besides links.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct StaggeredParams {
    /// Bare mass m, with ½ D beside it: MILC's M is twice this one.
    pub mass: f64,
    /// Boundary condition in t.
    pub boundary: TimeBoundary,
    /// Signs of hops.
    pub phases: StaggeredPhases,
}

impl StaggeredParams {
    /// With MILC's phases.
    pub fn new(mass: f64, boundary: TimeBoundary) -> Self {
        StaggeredParams { mass, boundary, phases: StaggeredPhases::default() }
    }
}

/// Links of a staggered operator in precision `P`, for one or for both kinds of hops.
pub trait StaggeredLinks<P: Precision>: 'static {
    /// The hopping term in kernels.
    type Hops: Hops<Precision = P>;
    /// Operations of the hopping term per site.
    const FLOPS: f64;
    /// Bytes of the links that the hopping term reads at a site.
    const READ_BYTES: usize;
    /// Where they live.
    fn domain(&self) -> &Domain;
    /// Steps of its longest hop.
    const STEPS: u32;
    /// The hopping term to the sites of `parity` in a region.
    #[doc(hidden)]
    fn hops(&self, input: Field<Colours<P>>, parity: usize, params: &StaggeredParams, region: Region) -> Self::Hops;
    /// The same where hops that leave the local lattice find ghosts.
    #[doc(hidden)]
    fn ghosted(hops: Self::Hops, ghosts: Ghosts<P>) -> <Self::Hops as Hops>::Ghosted;
}

impl<P: Precision, R: LinkFormat<P>> StaggeredLinks<P> for DeviceGauge<P, R> {
    type Hops = Naive<P, R>;
    const FLOPS: f64 = STAGGERED_FLOPS;
    const READ_BYTES: usize = R::READ_BYTES;
    const STEPS: u32 = 1;
    fn domain(&self) -> &Domain {
        DeviceGauge::domain(self)
    }
    fn ghosted(hops: Naive<P, R>, ghosts: Ghosts<P>) -> Naive<P, R, Ghosts<P>> {
        hops.with(ghosts)
    }
    fn hops(&self, input: Field<Colours<P>>, parity: usize, params: &StaggeredParams, region: Region) -> Naive<P, R> {
        Naive {
            input,
            links: self.links(parity),
            geometry: self.domain().geometry(),
            region,
            phases: params.phases.table(),
            parity: parity as u32,
            factor: P::Real::from_f64(self.factor()),
            across: P::Real::from_f64(params.boundary.sign()),
            beyond: Nothing,
        }
    }
}

/// Fat and long links, the latter with reconstruction `R`.
pub struct ImprovedLinks<P, R: Reconstruct> {
    fat: DeviceGauge<P, R::Full>,
    long: DeviceGauge<P, R>,
}

impl<P: Precision, R: LinkFormat<P>> ImprovedLinks<P, R>
where
    R::Full: LinkFormat<P>,
{
    /// From both; see [`DeviceGauge::from_thin`].
    ///
    /// # Errors
    /// Long links on another lattice than the fat ones, or in the memory of another backend.
    pub fn new(fat: DeviceGauge<P, R::Full>, long: DeviceGauge<P, R>) -> Result<Self> {
        fat.domain().expect_here("a field of long links", long.domain())?;
        Ok(ImprovedLinks { fat, long })
    }
}

impl<P: Precision, R: LinkFormat<P>> StaggeredLinks<P> for ImprovedLinks<P, R>
where
    R::Full: LinkFormat<P>,
{
    type Hops = Improved<P, R>;
    const FLOPS: f64 = IMPROVED_FLOPS;
    const READ_BYTES: usize = <R::Full as LinkFormat<P>>::READ_BYTES + R::READ_BYTES;
    const STEPS: u32 = 3;
    fn domain(&self) -> &Domain {
        self.fat.domain()
    }
    fn ghosted(hops: Improved<P, R>, ghosts: Ghosts<P>) -> Improved<P, R, Ghosts<P>> {
        Improved { near: hops.near.with(ghosts), long: hops.long, factor: hops.factor }
    }
    fn hops(
        &self,
        input: Field<Colours<P>>,
        parity: usize,
        params: &StaggeredParams,
        region: Region,
    ) -> Improved<P, R> {
        Improved {
            near: self.fat.hops(input, parity, params, region),
            long: self.long.links(parity),
            factor: P::Real::from_f64(self.long.factor()),
        }
    }
}

/// A staggered operator on links `L` in precision `P`.
pub struct Staggered<L> {
    links: Arc<L>,
    params: StaggeredParams,
    sides: Width,
}

impl<L> Clone for Staggered<L> {
    fn clone(&self) -> Self {
        Staggered { links: self.links.clone(), params: self.params, sides: Width::default() }
    }
}

impl<L> Staggered<L> {
    /// On the given links.
    pub fn new(links: Arc<L>, params: StaggeredParams) -> Self {
        Staggered { links, params, sides: Width::default() }
    }
    /// Mass, boundary condition, phases.
    pub fn params(&self) -> StaggeredParams {
        self.params
    }
    /// `out` = D ψ on the sites of `parity`; `input` lives on the other.
    pub fn dslash<P: Precision>(&self, parity: usize, input: &DeviceColour<P>, out: &mut DeviceColour<P>) -> Result
    where
        L: StaggeredLinks<P>,
    {
        let row = Row { parity, sum: false, a: 1.0, b: 1.0, input, x: out, out };
        let out = row.out.view();
        self.launch(&row, |hops| Dslash { out, hops })
    }
    /// `out` = a x + b D ψ on the sites of `parity`. `x` is on `parity`, `input` on the other.
    pub fn dslash_add<P: Precision>(
        &self,
        parity: usize,
        (a, x): (f64, &DeviceColour<P>),
        (b, input): (f64, &DeviceColour<P>),
        out: &mut DeviceColour<P>,
    ) -> Result
    where
        L: StaggeredLinks<P>,
    {
        let row = Row { parity, sum: true, a, b, input, x, out };
        self.launch(&row, |hops| row.with(hops))
    }
    /// Computes a row; `kernel` does it on a whole lattice.
    fn launch<P: Precision, K: Kernel>(&self, row: &Row<'_, P>, kernel: impl Fn(L::Hops) -> K) -> Result
    where
        L: StaggeredLinks<P>,
    {
        let (backend, nrhs) = (self.links.domain().backend(), self.sides.of(row.input.nrhs()) as u32);
        row.expect(self.links.domain(), nrhs as usize)?;
        let hops = |region| self.links.hops(row.input.view(), row.parity, &self.params, region);
        hop(
            row.input,
            self.hop_of(row),
            &mut |region, sites| Ok(backend.launch(&kernel(hops(region)), sites, nrhs)?),
            &mut |Outside { region, sites, ghosts, stream, .. }| {
                let row = row.exterior(L::ghosted(hops(region), ghosts));
                Ok(backend.launch_on(stream, &row, sites, nrhs)?)
            },
        )
    }
    fn hop_of<P: Precision>(&self, row: &Row<'_, P>) -> Hop
    where
        L: StaggeredLinks<P>,
    {
        let sides = self.sides.of(row.input.nrhs());
        Hop { steps: L::STEPS, parity: row.parity, dagger: false, beyond: Beyond::Neighbours, sides }
    }
    /// Computes the row a x + b D ψ with \[Re (w, out), Im (w, out), ‖out‖²\], which are to be collected, or stay on the
    /// device.
    fn launch_sums<P: Precision>(
        &self,
        row: &Row<'_, P>,
        w: &DeviceColour<P>,
        target: SumTarget<'_>,
    ) -> Result<PartialSums>
    where
        L: StaggeredLinks<P>,
    {
        let (backend, nrhs) = (self.links.domain().backend(), self.sides.of(row.input.nrhs()));
        row.expect(self.links.domain(), nrhs)?;
        w.expect(self.links.domain(), nrhs)?;
        let w = w.view();
        let hops = |region| self.links.hops(row.input.view(), row.parity, &self.params, region);
        let sums = RefCell::new(PartialSums::new(nrhs));
        let slot = |part| sums.borrow_mut().slot(part, 3);
        hop(
            row.input,
            self.hop_of(row),
            &mut |region, sites| {
                let row = RowDot { row: row.with(hops(region)), w };
                target.reduce((backend, None), &row, sites, nrhs as u32, slot(0))
            },
            &mut |Outside { part, region, sites, ghosts, stream }| {
                let row = row.exterior(L::ghosted(hops(region), ghosts));
                let row = StaggeredExteriorDot { row, w };
                target.reduce((backend, stream), &row, sites, nrhs as u32, slot(part))
            },
        )?;
        Ok(sums.into_inner())
    }
    /// `out` = M ψ, or M† ψ, on all sites.
    pub fn full<P: Precision>(&self, dagger: bool, psi: &FullColour<P>, out: &mut FullColour<P>) -> Result
    where
        L: StaggeredLinks<P>,
    {
        let hop = if dagger { -0.5 } else { 0.5 };
        for parity in 0..2 {
            let (x, input) = (psi.parity(parity), psi.parity(1 - parity));
            self.dslash_add(parity, (self.params.mass, x), (hop, input), out.parity_mut(parity))?;
        }
        Ok(())
    }
}

/// What a row computes: D ψ, or a x + b D ψ.
struct Row<'a, P: Precision> {
    parity: usize,
    sum: bool,
    a: f64,
    b: f64,
    input: &'a DeviceColour<P>,
    x: &'a DeviceColour<P>,
    out: &'a DeviceColour<P>,
}

impl<P: Precision> Row<'_, P> {
    /// Whether all fields are where the links are, with so many right-hand sides.
    fn expect(&self, domain: &Domain, nrhs: usize) -> Result {
        [self.input, self.out, self.x].into_iter().try_for_each(|field| field.expect(domain, nrhs))
    }
    /// a x + b D ψ on a whole lattice.
    fn with<H: Hops<Precision = P>>(&self, hops: H) -> DslashAdd<H> {
        let (a, b) = (P::Real::from_f64(self.a), P::Real::from_f64(self.b));
        DslashAdd { out: self.out.view(), x: self.x.view(), a, b, hops }
    }
    fn exterior<H: Hops<Precision = P>>(&self, hops: H) -> StaggeredExterior<H> {
        let (a, b) = (P::Real::from_f64(self.a), P::Real::from_f64(self.b));
        StaggeredExterior { out: self.out.view(), x: self.x.view(), sum: u32::from(self.sum), a, b, hops }
    }
}

/// M†M + σ = m² + σ − ¼ D² on the sites of one parity: Hermitian and, but for m² + σ = 0, positive. On the even sites and
/// with σ = 0 it is also the Schur complement of M times m, by which M ψ = η is solved:
/// (m² − ¼ D_eo D_oe) ψ_e = m η_e − ½ D_eo η_o, ψ_o = (η_o − ½ D_oe ψ_e) / m.
pub struct EvenOddStaggered<P, L> {
    staggered: Staggered<L>,
    parity: usize,
    constant: f64,
    other: RefCell<DeviceColour<P>>,
    /// Sums that stay on the device.
    sums: Buffer,
}

impl<P: Precision, L: StaggeredLinks<P>> EvenOddStaggered<P, L> {
    /// M†M on the even sites, for blocks of `nrhs` right-hand sides.
    pub fn new(staggered: Staggered<L>, nrhs: usize) -> Result<Self> {
        Self::shifted(staggered, 0, 0.0, nrhs)
    }
    /// M†M + `shift` on the sites of `parity`.
    pub fn shifted(staggered: Staggered<L>, parity: usize, shift: f64, nrhs: usize) -> Result<Self> {
        let domain = staggered.links.domain();
        let other = RefCell::new(DeviceColour::zero(domain, nrhs)?);
        let sums = domain.backend().allocate(8 * 3 * nrhs, "sums")?;
        let constant = staggered.params.mass.powi(2) + shift;
        Ok(EvenOddStaggered { staggered, parity, constant, other, sums })
    }
    /// `out` = (M†M + σ + `shift`) x, and the sums (w, out) and ‖out‖² that were launched with it.
    fn launch_sums(
        &self,
        shift: f64,
        x: &DeviceColour<P>,
        out: &mut DeviceColour<P>,
        w: &DeviceColour<P>,
        target: SumTarget<'_>,
    ) -> Result<PartialSums> {
        let mut other = self.other.borrow_mut();
        self.staggered.dslash(1 - self.parity, x, &mut other)?;
        let row = Row { parity: self.parity, sum: true, a: self.constant + shift, b: -0.25, input: &other, x, out };
        self.staggered.launch_sums(&row, w, target)
    }
    /// The operator on all sites.
    pub fn staggered(&self) -> &Staggered<L> {
        &self.staggered
    }
}

impl<P: Precision, L: StaggeredLinks<P>> LinearOperator<ColourSpace<P>> for EvenOddStaggered<P, L> {
    fn apply(&self, x: &DeviceColour<P>, out: &mut DeviceColour<P>) -> std::result::Result<(), DeviceError> {
        let mut other = self.other.borrow_mut();
        self.staggered.dslash(1 - self.parity, x, &mut other)?;
        self.staggered.dslash_add(self.parity, (self.constant, x), (-0.25, &other), out)
    }
    fn apply_dagger(&self, x: &DeviceColour<P>, out: &mut DeviceColour<P>) -> std::result::Result<(), DeviceError> {
        self.apply(x, out)
    }
    fn apply_dot(
        &self,
        space: &ColourSpace<P>,
        x: &DeviceColour<P>,
        out: &mut DeviceColour<P>,
        w: &DeviceColour<P>,
        dot: &mut [Complex64],
        norm2: &mut [f64],
    ) -> std::result::Result<(), DeviceError> {
        space.dot_of(self.launch_sums(0.0, x, out, w, SumTarget::Host)?, dot, norm2)
    }
    fn apply_curvature(
        &self,
        space: &ColourSpace<P>,
        shift: f64,
        x: &DeviceColour<P>,
        out: &mut DeviceColour<P>,
        dot: &mut [Complex64],
        norm2: &mut [f64],
        behind: Behind<'_, DeviceError>,
    ) -> std::result::Result<(), DeviceError> {
        let sums = self.launch_sums(shift, x, out, x, SumTarget::Host)?;
        behind()?;
        space.dot_of(sums, dot, norm2)
    }
    /// In one process the curvature need not leave the device before the step: one wait instead of two.
    fn descend(
        &self,
        space: &ColourSpace<P>,
        from: &Descent<'_, DeviceColour<P>>,
        out: &mut DeviceColour<P>,
        curvature: &mut [Complex64],
        norm2: &mut [f64],
        behind: [Behind<'_, DeviceError>; 2],
    ) -> std::result::Result<(), DeviceError> {
        if self.staggered.links.domain().grid().size() > 1 {
            return from.in_two(space, self, out, curvature, norm2, behind);
        }
        // The row takes as many right-hand sides as its input has.
        from.p.expect(self.staggered.links.domain(), space.nrhs())?;
        let parts = self.launch_sums(from.shift, from.p, out, from.p, SumTarget::Device(&self.sums))?;
        let sums = view::device_sums(&self.sums, parts.stride(), parts.widths());
        space.descend(from, sums, out, curvature, norm2, behind)
    }
    fn narrow(&self, sides: usize) -> bool {
        self.staggered.sides.narrow(sides, self.other.borrow().nrhs())
    }
    fn flops(&self) -> f64 {
        (2.0 * L::FLOPS + ADD_FLOPS) * self.staggered.links.domain().global().half_volume() as f64
    }
    fn bytes(&self) -> f64 {
        let site = 5 * P::COLOUR_BYTES + 2 * L::READ_BYTES;
        (site * self.staggered.links.domain().global().half_volume()) as f64
    }
}

impl<P: Precision, L: StaggeredLinks<P>> EvenOdd<OneSpin, P> for EvenOddStaggered<P, L> {
    /// m η_e − ½ D_eo η_o
    fn prepare(&self, eta: &FullColour<P>, even: &mut DeviceColour<P>) -> Result {
        self.staggered.dslash_add(0, (self.staggered.params.mass, &eta.even), (-0.5, &eta.odd), even)
    }
    /// (η_o − ½ D_oe ψ_e) / m
    fn reconstruct(&self, eta: &FullColour<P>, psi: &mut FullColour<P>) -> Result {
        let inverse = 1.0 / self.staggered.params.mass;
        let FullColour { even, odd } = psi;
        self.staggered.dslash_add(1, (inverse, &eta.odd), (-0.5 * inverse, even), odd)
    }
    /// The hopping term by itself, then linear algebra.
    fn row(&self, parity: usize, dagger: bool, psi: &FullColour<P>, out: &mut DeviceColour<P>) -> Result {
        let hop = if dagger { -0.5 } else { 0.5 };
        self.staggered.dslash(parity, psi.parity(1 - parity), out)?;
        let space = ColourSpace::<P>::new(self.staggered.links.domain(), out.nrhs());
        let constant = |c: f64| vec![Complex64::new(c, 0.0); out.nrhs()];
        let (a, b) = (constant(self.staggered.params.mass), constant(hop));
        space.axpby(&a, psi.parity(parity), &b, out)
    }
    fn residual_factor(&self) -> f64 {
        1.0 / self.staggered.params.mass
    }
    fn is_positive(&self) -> bool {
        true
    }
}
