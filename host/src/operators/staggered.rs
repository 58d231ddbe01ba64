//! Staggered operators M = m + ½ D with the hopping term D of Babich et al. 2011, eqs. 3 and 4. The naive operator hops over thin links;
//! the improved ones, asqtad and HISQ, hop over fat links and, by three sites, over long links. D is anti-Hermitian, so that M†M = m² − ¼
//! D² does not mix the parities.
use super::angles::{BC_TIME, BOUNDARIES, BoundaryAngles, TimeBoundary};
use super::even_odd::{EvenOdd, Width};
use super::keys::{Key, KeyKind, Keys, choose};
use super::operator::{Definition, LinkRecipe, Operator, OperatorKernels, OperatorLinks, OperatorParameters, Resolved};
use super::smearing::{Smearing, Tadpole, U0};
use super::staggered_links::StaggeredLinks;
use super::wilson::MASS;
use crate::backend::{Call, DeviceBuffer, view};
use crate::domain::{DeviceError, Result};
use crate::domain::{PartialSums, SumTarget};
use crate::field::{DeviceField, DeviceGauge, FieldShape, FieldSpace, FullField};
use crate::halo::{ExteriorPart, HaloField, Hop, HopBoundary, hop};
use gpu_kernels::exterior::{IMPROVED_EXTERIOR, STAGGERED_EXTERIOR};
use gpu_kernels::faces::PACK_COLOURS;
use gpu_kernels::field::Field;
use gpu_kernels::ghost::Ghosts;
use gpu_kernels::lattice::Region;
use gpu_kernels::smeared::{PACK_LINKS, PACK_LONG};
use gpu_kernels::staggered::{IMPROVED_DSLASH, Phases, STAGGERED_DSLASH, StaggeredDslash};
use gpu_kernels::{FermionKind, LinkStorage, Precision};
use num_complex::Complex64;
use serde_json::{Map, Value};
use solvers::{CgStep, LinearOperator, Overlap, VectorSpace};
use std::any::Any;
use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;

/// Operations of a x + b … per site: two for each of the 6 real components.
const ADD_FLOPS: f64 = 12.0;

/// Convention for the signs of hops. Conventions differ by the sign of ψ at some sites.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum StaggeredPhases {
    /// η_x = (−1)^t, η_y = (−1)^(t+x), η_z = (−1)^(t+x+y), η_t = 1.
    #[default]
    Milc,
    /// η_x = 1, η_y = (−1)^x, η_z = (−1)^(x+y), η_t = (−1)^(x+y+z).
    Lexicographic,
}

impl StaggeredPhases {
    /// Returns the coordinates whose sum determines η_μ: bit 0 for x to bit 3 for t.
    fn counted(self) -> [u32; 4] {
        match self {
            StaggeredPhases::Milc => [0b1000, 0b1001, 0b1011, 0],
            StaggeredPhases::Lexicographic => [0, 0b0001, 0b0011, 0b0111],
        }
    }
    /// Returns the signs as kernels use them.
    pub(crate) fn table(self) -> Phases {
        Phases::new(self.counted())
    }
    /// Returns the sign η_μ(x) of a hop from the site x in direction μ: 1 or −1.
    pub fn sign(self, site: [usize; 4], mu: usize) -> f64 {
        let counted = self.counted()[mu];
        let sum: usize = (0..4).filter(|nu| counted >> nu & 1 == 1).map(|nu| site[nu]).sum();
        if sum.is_multiple_of(2) { 1.0 } else { -1.0 }
    }
}

/// Parameters of a staggered operator, without its links.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct StaggeredParams {
    /// Bare mass m in M = m + ½ D; MILC's M is twice as large.
    pub mass: f64,
    /// Boundary condition in t.
    pub boundary: TimeBoundary,
    /// Convention for the signs of hops.
    pub phases: StaggeredPhases,
}

impl StaggeredParams {
    /// Returns parameters with MILC's phases.
    pub fn new(mass: f64, boundary: TimeBoundary) -> Self {
        StaggeredParams { mass, boundary, phases: StaggeredPhases::default() }
    }
}

/// Conventions for the signs of hops, with their names in inputs.
pub const PHASES: [(&str, StaggeredPhases); 2] =
    [("milc", StaggeredPhases::Milc), ("lexicographic", StaggeredPhases::Lexicographic)];

static PHASES_KEY: Key = Key::new(
    "phases",
    "NAME",
    KeyKind::Word,
    "Staggered phases: milc or lexicographic (x first, as in CL2QCD) [default: milc]",
    "\"milc\"",
)
.or("milc");
static SPREAD_BOUNDARY: Key = Key::new(
    "spread-boundary",
    "",
    KeyKind::Switch,
    "Spread the antiperiodic boundary condition over all links in t, as factors exp(i pi/T) for T time slices (as in \
     CL2QCD), instead of changing the sign of the links that cross the boundary",
    "false",
)
.or("false");
static NAIK_EPSILON: Key = Key::new(
    "naik-epsilon",
    "E",
    KeyKind::Number,
    "Correction epsilon of HISQ's Naik term, for heavy quarks [default: 0]",
    "0.0",
)
.or("0");

/// A staggered operator: a definition with values for its parameters.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct StaggeredOperator {
    /// Definition of the operator.
    pub definition: &'static Definition,
    /// Mass, boundary condition and phases.
    pub params: StaggeredParams,
    /// Smearing of the operator's links.
    pub smearing: Smearing,
    /// Whether an antiperiodic boundary condition is spread over all links in t as factors e^{iπ/T}, as in CL2QCD. If not, the links that
    /// cross the boundary have a minus sign. If so, sources and solutions are in the gauge to which ψ(t) → e^{−iπt/T} ψ(t) leads.
    pub spread: bool,
    /// Angles of twisted boundary conditions, in addition to the boundary condition in t.
    pub theta: BoundaryAngles,
}

impl StaggeredOperator {
    /// Makes the naive operator.
    pub fn naive(params: StaggeredParams) -> Self {
        let theta = BoundaryAngles::default();
        StaggeredOperator { definition: &STAGGERED, params, smearing: Smearing::None, spread: false, theta }
    }
    /// Makes the asqtad operator with the tadpole factor u_0.
    pub fn asqtad(params: StaggeredParams, u0: f64) -> Self {
        let smearing = Smearing::Asqtad(Tadpole::Given(u0));
        StaggeredOperator { definition: &ASQTAD, smearing, ..Self::naive(params) }
    }
    /// Makes the HISQ operator with the correction ε of the Naik term.
    pub fn hisq(params: StaggeredParams, epsilon: f64) -> Self {
        StaggeredOperator { definition: &HISQ, smearing: Smearing::Hisq(epsilon), ..Self::naive(params) }
    }
    /// Whether the operator hops over fat and long links.
    pub fn is_improved(&self) -> bool {
        self.definition.is_improved()
    }
    /// Makes the operator on links in a format.
    ///
    /// # Errors
    /// Failures of the device.
    pub(crate) fn on(
        &self,
        links: &dyn OperatorLinks,
        precision: Precision,
        storage: LinkStorage,
    ) -> Result<Staggered> {
        let storage = if self.theta.are_zero() { storage } else { Operator::from(*self).storage(storage) };
        let links = match self.is_improved() {
            true => links.fat_and_long(self.smearing, self.theta, precision, storage)?,
            false => Arc::new(StaggeredLinks::naive(links.thin(self.theta, precision, storage)?)),
        };
        Ok(Staggered::new(links, self.params))
    }
    /// Returns the operator with u_0 computed from the mean plaquette `mean`, if its tadpole factor is [`Tadpole::Plaquette`]; `None` if
    /// `mean` is then not above 0. Returns any other operator unchanged.
    pub fn with_plaquette(self, mean: f64) -> Option<Self> {
        match self.smearing {
            Smearing::Asqtad(Tadpole::Plaquette) if mean > 0.0 => {
                let smearing = Smearing::Asqtad(Tadpole::Given(mean.powf(0.25)));
                Some(StaggeredOperator { smearing, ..self })
            }
            Smearing::Asqtad(Tadpole::Plaquette) => None,
            _ => Some(self),
        }
    }
    /// Resolves all parameters except the mass, which is set to 0.
    fn resolve(keys: &mut dyn Keys, definition: &'static Definition, smearing: Smearing) -> Option<Resolved> {
        let boundary = choose(keys, "bc-time", &BOUNDARIES).unwrap_or_default();
        let phases = choose(keys, "phases", &PHASES).unwrap_or_default();
        let spread = keys.is_on("spread-boundary");
        if spread && boundary == TimeBoundary::Periodic {
            let why = "only an antiperiodic boundary condition can be spread: choose antiperiodic for bc-time, or \
                       remove spread-boundary";
            keys.conflict("spread-boundary", "bc-time", why);
        }
        let params = StaggeredParams { mass: 0.0, boundary, phases };
        let described = [
            ("phases", PHASES.iter().find(|(_, value)| *value == phases).map(|(name, _)| *name).into()),
            ("spread_boundary", spread.into()),
            ("u0_from_plaquette", (smearing == Smearing::Asqtad(Tadpole::Plaquette)).into()),
        ];
        let described = described.into_iter().map(|(key, value)| (key.to_string(), value)).collect();
        let operator = StaggeredOperator { definition, smearing, spread, ..Self::naive(params) };
        Some((operator.into(), described))
    }
}

impl From<StaggeredParams> for StaggeredOperator {
    /// Makes the naive operator.
    fn from(params: StaggeredParams) -> Self {
        Self::naive(params)
    }
}
impl OperatorParameters for StaggeredOperator {
    fn definition(&self) -> &'static Definition {
        self.definition
    }
    fn mass(&self) -> f64 {
        self.params.mass
    }
    fn with_mass(&self, mass: f64) -> Operator {
        StaggeredOperator { params: StaggeredParams { mass, ..self.params }, ..*self }.into()
    }
    fn theta(&self) -> BoundaryAngles {
        self.theta
    }
    fn with_theta(&self, theta: BoundaryAngles) -> Operator {
        StaggeredOperator { theta, ..*self }.into()
    }
    fn boundary(&self) -> TimeBoundary {
        self.params.boundary
    }
    fn equals(&self, other: &dyn Any) -> bool {
        other.downcast_ref() == Some(self)
    }
    fn smearing(&self) -> Smearing {
        self.smearing
    }
    fn describe_smearing(&self, read: bool) -> Map<String, Value> {
        if read { Smearing::None } else { self.smearing }.describe()
    }
    fn is_spread(&self) -> bool {
        self.spread
    }
    fn even_odd(
        &self,
        links: &dyn OperatorLinks,
        (precision, storage): (Precision, LinkStorage),
        nrhs: usize,
    ) -> Result<Rc<dyn EvenOdd>> {
        Ok(Rc::new(EvenOddStaggered::new(self.on(links, precision, storage)?, nrhs)?))
    }
    fn is_positive(&self) -> bool {
        true
    }
    fn kept_fields(&self) -> usize {
        1
    }
    fn halo_field(&self) -> HaloField {
        HaloField::Colours(self.definition.steps() as u32)
    }
    fn link_bytes(&self, precision: Precision, storage: LinkStorage, sites: usize) -> usize {
        let storage = Operator::from(*self).storage(storage);
        StaggeredLinks::bytes_for(self.is_improved(), precision, storage, sites)
    }
}
impl From<StaggeredParams> for Operator {
    /// Makes the naive operator.
    fn from(params: StaggeredParams) -> Self {
        StaggeredOperator::naive(params).into()
    }
}

/// JSON keys that answers of staggered operators include, with their meanings.
static OUTPUT: [(&str, &str); 5] = [
    ("u0", "asqtad's tadpole factor; `null` for other operators, and if fat and long links are read from files"),
    ("u0_from_plaquette", "whether `u0` is the fourth root of the mean plaquette"),
    (
        "naik_epsilon",
        "ε of HISQ's Naik term; `null` for other operators, and if fat and long links are read from files",
    ),
    ("phases", "`milc` or `lexicographic`"),
    ("spread_boundary", "whether an antiperiodic boundary condition is spread over all links in t"),
];

/// Definition of the naive staggered operator.
pub static STAGGERED: Definition = Definition {
    name: "staggered",
    title: "naive staggered",
    kind: FermionKind::Staggered,
    formula: "M = m + D/2 on the links of the configuration; half of MILC's 2m + D",
    keys: &[&MASS, &BC_TIME, &PHASES_KEY, &SPREAD_BOUNDARY],
    resolve: |keys| StaggeredOperator::resolve(keys, &STAGGERED, Smearing::None),
    output: &OUTPUT,
    sample: || StaggeredParams::new(0.1, TimeBoundary::Antiperiodic).into(),
    has_own_kernels: true,
    links: LinkRecipe::Thin,
    term: None,
    kernels: OperatorKernels {
        interior: &[STAGGERED_DSLASH.0],
        exterior: STAGGERED_EXTERIOR.0,
        pack: PACK_LINKS.0,
        faces: PACK_COLOURS.0,
        setup: &[],
    },
};

const IMPROVED_KERNELS: OperatorKernels = OperatorKernels {
    interior: &[IMPROVED_DSLASH.0],
    exterior: IMPROVED_EXTERIOR.0,
    pack: PACK_LONG.0,
    faces: PACK_COLOURS.0,
    setup: &[],
};

/// Definition of the asqtad operator.
pub static ASQTAD: Definition = Definition {
    name: "asqtad",
    title: "asqtad",
    kind: FermionKind::Staggered,
    formula: "M = m + D/2 on fat and long links that are made of paths; half of MILC's 2m + D",
    keys: &[&MASS, &BC_TIME, &U0, &PHASES_KEY, &SPREAD_BOUNDARY],
    resolve: |keys| {
        let mut tadpole = Tadpole::Given(1.0);
        keys.parse("u0", &mut |text| Tadpole::parse(text).map(|found| tadpole = found));
        StaggeredOperator::resolve(keys, &ASQTAD, Smearing::Asqtad(tadpole))
    },
    output: &OUTPUT,
    sample: || StaggeredOperator::asqtad(StaggeredParams::new(0.1, TimeBoundary::Antiperiodic), 1.0).into(),
    has_own_kernels: true,
    links: LinkRecipe::Improved,
    term: None,
    kernels: IMPROVED_KERNELS,
};

/// Definition of the HISQ operator.
pub static HISQ: Definition = Definition {
    name: "hisq",
    title: "HISQ",
    kind: FermionKind::Staggered,
    formula: "M = m + D/2 on fat and long links of two levels of smearing; half of MILC's 2m + D",
    keys: &[&MASS, &BC_TIME, &NAIK_EPSILON, &PHASES_KEY, &SPREAD_BOUNDARY],
    resolve: |keys| {
        let epsilon = keys.number("naik-epsilon", "a number", &|_| true).unwrap_or(0.0);
        StaggeredOperator::resolve(keys, &HISQ, Smearing::Hisq(epsilon))
    },
    output: &OUTPUT,
    sample: || StaggeredOperator::hisq(StaggeredParams::new(0.1, TimeBoundary::Antiperiodic), 0.0).into(),
    has_own_kernels: false,
    links: LinkRecipe::ImprovedInU3,
    term: None,
    kernels: IMPROVED_KERNELS,
};

/// Staggered operator on links in one format.
pub struct Staggered {
    links: Arc<StaggeredLinks>,
    params: StaggeredParams,
    nrhs: Width,
}

impl Clone for Staggered {
    fn clone(&self) -> Self {
        Staggered { links: self.links.clone(), params: self.params, nrhs: Width::default() }
    }
}

impl Staggered {
    /// Makes the operator on the given links.
    pub fn new(links: Arc<StaggeredLinks>, params: StaggeredParams) -> Self {
        Staggered { links, params, nrhs: Width::default() }
    }
    /// Returns mass, boundary condition and phases.
    pub fn params(&self) -> StaggeredParams {
        self.params
    }
    /// Returns the links over which the operator hops.
    pub fn links(&self) -> &StaggeredLinks {
        &self.links
    }
    /// Computes `out` = D ψ on the sites of `parity`; `input` is ψ on the other parity.
    pub fn dslash(&self, parity: usize, input: &DeviceField, out: &mut DeviceField) -> Result {
        self.launch(&StaggeredHop { parity, sum: false, a: 1.0, b: 1.0, input, x: out, out })
    }
    /// Computes `out` = a x + b D ψ on the sites of `parity`. `x` is on `parity`, and `input` is ψ on the other parity.
    pub fn dslash_add(
        &self,
        parity: usize,
        (a, x): (f64, &DeviceField),
        (b, input): (f64, &DeviceField),
        out: &mut DeviceField,
    ) -> Result {
        self.launch(&StaggeredHop { parity, sum: true, a, b, input, x, out })
    }
    /// Checks that fields are on the domain of the links, in their precision, with at least `nrhs` right-hand sides.
    fn expect(&self, fields: &[&DeviceField], nrhs: usize) -> Result {
        let shape = FieldShape::colours(self.links.precision(), nrhs);
        fields.iter().try_for_each(|field| field.expect(self.links.domain(), shape))
    }
    /// Computes a product.
    fn launch(&self, product: &StaggeredHop<'_>) -> Result {
        let (backend, nrhs) = (self.links.domain().backend(), self.nrhs.of(product.input.nrhs()) as u32);
        self.expect(&[product.input, product.out, product.x], nrhs as usize)?;
        let ([(interior, _), (exterior, _)], format) = (self.links.kernels(), self.links.format());
        hop(
            product.input,
            self.hop_of(product),
            &mut |region, sites| {
                let arguments = product.arguments(self, view::NO_FIELD, region, Ghosts::NONE);
                Ok(backend.launch(interior, format, &arguments, sites, nrhs)?)
            },
            &mut |ExteriorPart { region, sites, ghosts, stream, .. }| {
                let arguments = product.arguments(self, view::NO_FIELD, region, ghosts);
                Ok(backend.run(stream, Call::of(exterior, format, &arguments)?, sites, nrhs)?)
            },
        )
    }
    fn hop_of(&self, product: &StaggeredHop<'_>) -> Hop {
        let nrhs = self.nrhs.of(product.input.nrhs());
        Hop {
            steps: self.links.steps(),
            parity: product.parity,
            dagger: false,
            boundary: HopBoundary::Neighbours,
            blocks: nrhs,
        }
    }
    /// Computes a x + b D ψ with the sums \[Re (w, out), Im (w, out), ‖out‖²\], which are collected later or stay on the device.
    fn launch_sums(&self, product: &StaggeredHop<'_>, w: &DeviceField, target: SumTarget<'_>) -> Result<PartialSums> {
        let (backend, nrhs) = (self.links.domain().backend(), self.nrhs.of(product.input.nrhs()));
        self.expect(&[product.input, product.out, product.x, w], nrhs)?;
        let ([(_, interior), (_, exterior)], format) = (self.links.kernels(), self.links.format());
        let sums = RefCell::new(PartialSums::new(nrhs));
        let slot = |part| sums.borrow_mut().slot(part, 3);
        hop(
            product.input,
            self.hop_of(product),
            &mut |region, sites| {
                let arguments = product.arguments(self, w.view(), region, Ghosts::NONE);
                target.reduce(backend, None, Call::of_sum(interior, format, &arguments)?, sites, nrhs as u32, slot(0))
            },
            &mut |ExteriorPart { part, region, sites, ghosts, stream }| {
                let arguments = product.arguments(self, w.view(), region, ghosts);
                let call = Call::of_sum(exterior, format, &arguments)?;
                target.reduce(backend, stream, call, sites, nrhs as u32, slot(part))
            },
        )?;
        Ok(sums.into_inner())
    }
    /// Computes `out` = M ψ, or M† ψ if `dagger` is set, on all sites.
    pub fn full(&self, dagger: bool, psi: &FullField, out: &mut FullField) -> Result {
        let hop = if dagger { -0.5 } else { 0.5 };
        for parity in 0..2 {
            let (x, input) = (psi.parity(parity), psi.parity(1 - parity));
            self.dslash_add(parity, (self.params.mass, x), (hop, input), out.parity_mut(parity))?;
        }
        Ok(())
    }
}

/// Arguments of a product: D ψ, or a x + b D ψ.
struct StaggeredHop<'a> {
    parity: usize,
    sum: bool,
    a: f64,
    b: f64,
    input: &'a DeviceField,
    x: &'a DeviceField,
    out: &'a DeviceField,
}

impl StaggeredHop<'_> {
    /// Returns the kernel's arguments, with w and for the sites of a region.
    fn arguments(&self, staggered: &Staggered, w: Field, region: Region, ghosts: Ghosts) -> StaggeredDslash {
        let StaggeredLinks { near, long, bare } = &*staggered.links;
        StaggeredDslash {
            out: self.out.view(),
            x: self.x.view(),
            w,
            sum: u32::from(self.sum),
            parity: self.parity as u32,
            a: self.a.into(),
            b: self.b.into(),
            input: self.input.view(),
            geometry: near.domain().geometry(),
            region,
            phases: if *bare { Phases::new([0; 4]) } else { staggered.params.phases.table() },
            across: staggered.params.boundary.sign().into(),
            links: near.links(self.parity),
            factor: near.factor().into(),
            long: long.as_ref().map_or(view::NO_LINKS, |long| long.links(self.parity)),
            long_factor: long.as_ref().map_or(0.0, DeviceGauge::factor).into(),
            ghosts,
        }
    }
}

/// The operator M†M + σ = m² + σ − ¼ D² on the sites of one parity. It is Hermitian, and positive unless m² + σ = 0. On the even sites with
/// σ = 0 it is also m times the Schur complement of M. M ψ = η is solved by (m² − ¼ D_eo D_oe) ψ_e = m η_e − ½ D_eo η_o and ψ_o = (η_o − ½
/// D_oe ψ_e) / m.
pub struct EvenOddStaggered {
    staggered: Staggered,
    parity: usize,
    constant: f64,
    other: RefCell<DeviceField>,
    /// Sums that stay on the device.
    sums: DeviceBuffer,
}

impl EvenOddStaggered {
    /// Makes M†M on the even sites, for blocks of `nrhs` right-hand sides.
    pub fn new(staggered: Staggered, nrhs: usize) -> Result<Self> {
        Self::shifted(staggered, 0, 0.0, nrhs)
    }
    /// Makes M†M + `shift` on the sites of `parity`.
    pub fn shifted(staggered: Staggered, parity: usize, shift: f64, nrhs: usize) -> Result<Self> {
        let domain = staggered.links.domain();
        let other = RefCell::new(DeviceField::zero(domain, FieldShape::colours(staggered.links.precision(), nrhs))?);
        let sums = domain.backend().allocate(8 * 3 * nrhs, "sums")?;
        let constant = staggered.params.mass.powi(2) + shift;
        Ok(EvenOddStaggered { staggered, parity, constant, other, sums })
    }
    /// Computes `out` = (M†M + σ) x on the sites of a parity.
    fn apply_on(&self, parity: usize, x: &DeviceField, out: &mut DeviceField) -> Result {
        let mut other = self.other.borrow_mut();
        self.staggered.dslash(1 - parity, x, &mut other)?;
        self.staggered.dslash_add(parity, (self.constant, x), (-0.25, &other), out)
    }
    /// Computes `out` = (M†M + σ + `shift`) x, and returns the sums (w, out) and ‖out‖², which are launched with the product.
    fn launch_sums(
        &self,
        shift: f64,
        x: &DeviceField,
        out: &mut DeviceField,
        w: &DeviceField,
        target: SumTarget<'_>,
    ) -> Result<PartialSums> {
        let mut other = self.other.borrow_mut();
        self.staggered.dslash(1 - self.parity, x, &mut other)?;
        let hop =
            StaggeredHop { parity: self.parity, sum: true, a: self.constant + shift, b: -0.25, input: &other, x, out };
        self.staggered.launch_sums(&hop, w, target)
    }
    /// Returns the operator M on all sites.
    pub fn staggered(&self) -> &Staggered {
        &self.staggered
    }
}

impl LinearOperator<FieldSpace> for EvenOddStaggered {
    fn apply(&self, x: &DeviceField, out: &mut DeviceField) -> std::result::Result<(), DeviceError> {
        self.apply_on(self.parity, x, out)
    }
    fn apply_dagger(&self, x: &DeviceField, out: &mut DeviceField) -> std::result::Result<(), DeviceError> {
        self.apply(x, out)
    }
    fn apply_dot(
        &self,
        space: &FieldSpace,
        x: &DeviceField,
        out: &mut DeviceField,
        w: &DeviceField,
        dot: &mut [Complex64],
        norm2: &mut [f64],
    ) -> std::result::Result<(), DeviceError> {
        space.dot_of(self.launch_sums(0.0, x, out, w, SumTarget::Host)?, dot, norm2)
    }
    fn apply_curvature(
        &self,
        space: &FieldSpace,
        shift: f64,
        x: &DeviceField,
        out: &mut DeviceField,
        dot: &mut [Complex64],
        norm2: &mut [f64],
        overlap: Overlap<'_, DeviceError>,
    ) -> std::result::Result<(), DeviceError> {
        let sums = self.launch_sums(shift, x, out, x, SumTarget::Host)?;
        overlap()?;
        space.dot_of(sums, dot, norm2)
    }
    /// Performs a step of CG. With one process the curvature need not leave the device before the step, so that the host waits once instead
    /// of twice.
    fn cg_step(
        &self,
        space: &FieldSpace,
        step: &CgStep<'_, DeviceField>,
        out: &mut DeviceField,
        curvature: &mut [Complex64],
        norm2: &mut [f64],
        overlap: [Overlap<'_, DeviceError>; 2],
    ) -> std::result::Result<(), DeviceError> {
        if self.staggered.links.domain().grid().size() > 1 {
            return step.with_two_reductions(space, self, out, curvature, norm2, overlap);
        }
        // The kernel takes the number of right-hand sides from its input, which must have at least as many as `space`.
        self.staggered.expect(&[step.p], space.nrhs())?;
        let parts = self.launch_sums(step.shift, step.p, out, step.p, SumTarget::Device(&self.sums, 0))?;
        let sums = view::device_sums(&self.sums, 0, parts.stride(), parts.widths());
        space.cg_step(step, (sums, false, 0.0), out, curvature, norm2, overlap)
    }
    fn apply_dot_kept(
        &self,
        space: &FieldSpace,
        x: &DeviceField,
        out: &mut DeviceField,
        w: &DeviceField,
        place: usize,
    ) -> std::result::Result<bool, DeviceError> {
        space.keep(place, 3, |target| self.launch_sums(0.0, x, out, w, target))
    }
    fn narrow(&self, nrhs: usize) -> bool {
        self.staggered.nrhs.narrow(nrhs, self.other.borrow().nrhs())
    }
    fn flops(&self) -> f64 {
        (2.0 * self.staggered.links.flops() + ADD_FLOPS) * self.staggered.links.domain().global().half_volume() as f64
    }
}

impl EvenOdd for EvenOddStaggered {
    /// Computes m η_e − ½ D_eo η_o.
    fn prepare(&self, eta: &FullField, even: &mut DeviceField) -> Result {
        self.staggered.dslash_add(0, (self.staggered.params.mass, &eta.even), (-0.5, &eta.odd), even)
    }
    /// Computes (η_o − ½ D_oe ψ_e) / m.
    fn reconstruct(&self, eta: &FullField, psi: &mut FullField) -> Result {
        let inverse = 1.0 / self.staggered.params.mass;
        let FullField { even, odd } = psi;
        self.staggered.dslash_add(1, (inverse, &eta.odd), (-0.5 * inverse, even), odd)
    }
    /// Computes the product by an unfused hopping term and linear algebra.
    fn apply_parity(&self, parity: usize, dagger: bool, psi: &FullField, out: &mut DeviceField) -> Result {
        let hop = if dagger { -0.5 } else { 0.5 };
        self.staggered.dslash(parity, psi.parity(1 - parity), out)?;
        let links = &self.staggered.links;
        let space = FieldSpace::new(links.domain(), FieldShape::colours(links.precision(), out.nrhs()));
        let constant = |c: f64| vec![Complex64::new(c, 0.0); out.nrhs()];
        let (a, b) = (constant(self.staggered.params.mass), constant(hop));
        space.axpby(&a, psi.parity(parity), &b, out)
    }
    fn full(&self, dagger: bool, psi: &FullField, out: &mut FullField) -> Result {
        self.staggered.full(dagger, psi, out)
    }
    /// Computes m² − ¼ D² on each parity.
    fn normal(&self, psi: &mut FullField, out: &mut FullField) -> Result {
        (0..2).try_for_each(|parity| self.apply_on(parity, psi.parity(parity), out.parity_mut(parity)))
    }
    fn residual_factor(&self) -> f64 {
        1.0 / self.staggered.params.mass
    }
    fn positive(&self) -> Option<f64> {
        Some(self.constant)
    }
}
