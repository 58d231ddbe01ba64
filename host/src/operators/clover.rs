//! The Wilson-clover operator: M = A − ½ D, with A the clover term (Babich, Clark and Joó 2010, eq. 2).
use super::angles::{BC_TIME, TimeBoundary};
use super::diagonal::{DeterminantBlocks, Diagonal, DiagonalForm, DiagonalKernels, SiteTerm, expect_number};
use super::keys::{Key, KeyKind, Keys, choose};
use super::operator::{Definition, LinkRecipe, Operator};
use super::smearing::U0;
use super::wilson::{DSLASH_FLOPS, KAPPA, MASS, NU, OUTPUT, Wilson, WilsonParams, XI};
use super::wilson_family::{LinkDependence, Term, WilsonLike, wilson_kernels};
use super::wilson_like::Schur;
use crate::domain::{DeviceError, Result};
use crate::field::{DeviceClover, GaugeField};
use gpu_kernels::clover::{CLOVER_DSLASH, CLOVER_DSLASH_DOT, CLOVER_DSLASH_DOTS, CLOVER_MATRIX, CLOVER_TERM};
use gpu_kernels::diagonal::DiagonalArguments;
use gpu_kernels::storage::HALF;
use gpu_kernels::wilson::WILSON_DSLASH;
use gpu_kernels::{FermionKind, Format, Precision};
use serde::Serialize;
use serde_json::{Map, Value};
use std::sync::Arc;

/// Flops per site for the clover term, by the community's standard count.
pub const CLOVER_FLOPS: f64 = 504.0;
/// Operations of the even-odd matrix per site: two hopping terms, two clover terms, one vector sum (Babich, Clark and
/// Joó 2010).
pub const CLOVER_MATRIX_FLOPS: f64 = 2.0 * DSLASH_FLOPS + 2.0 * CLOVER_FLOPS + 48.0;

/// Parameters of a Wilson-clover operator, without its links.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct CloverParams {
    /// Mass, boundary condition and anisotropy.
    pub wilson: WilsonParams,
    /// Clover coefficient of the spatial planes, the factor of σ_μν F̂_μν.
    pub space: f64,
    /// Clover coefficient of the temporal planes, the factor of σ_μν F̂_μν.
    pub time: f64,
}

impl CloverParams {
    /// Returns the parameters on an isotropic lattice with tadpole factor u_0: both coefficients are c_sw / u_0³.
    pub fn isotropic(wilson: WilsonParams, c_sw: f64, u0: f64) -> Self {
        let coefficient = c_sw / u0.powi(3);
        CloverParams { wilson, space: coefficient, time: coefficient }
    }
    /// Returns the parameters with Chroma's clovCoeffR and clovCoeffT: the spatial coefficient is clovCoeffR / ξ_0.
    pub fn anisotropic(wilson: WilsonParams, coefficient_r: f64, coefficient_t: f64) -> Self {
        CloverParams { wilson, space: coefficient_r / wilson.anisotropy.xi, time: coefficient_t }
    }
    /// Computes the clover term with these parameters from the links `gauge`.
    pub fn term(&self, gauge: &GaugeField) -> Result<DeviceClover> {
        DeviceClover::new(gauge, self.wilson.diagonal(), self.space, self.time)
    }
    /// Returns the operator with these parameters and this Schur complement.
    pub fn with_schur(self, schur: Schur) -> WilsonLike {
        let CloverParams { wilson, space, time } = self;
        WilsonLike::new(&CLOVER, wilson, [space, time, 0.0], schur)
    }
    /// Returns the clover parameters of an operator that has a clover term.
    pub(super) fn of(operator: &WilsonLike) -> Self {
        let [space, time, ..] = operator.coefficients;
        CloverParams { wilson: operator.wilson, space, time }
    }
}

impl From<CloverParams> for Operator {
    fn from(params: CloverParams) -> Self {
        params.with_schur(Schur::default()).into()
    }
}

static CSW: Key = Key::new("csw", "C", KeyKind::Number, "Clover coefficient c_sw, the same in all planes", "1.0");
static CLOVER_R: Key = Key::new(
    "clover-r",
    "CR",
    KeyKind::Number,
    "Chroma's clovCoeffR, with clover-t instead of csw: the clover coefficient of the spatial planes is CR / xi_0",
    "1.0",
)
.instead_of("csw");
static CLOVER_T: Key = Key::new(
    "clover-t",
    "CT",
    KeyKind::Number,
    "Chroma's clovCoeffT, with clover-r instead of csw: the clover coefficient of the temporal planes",
    "1.0",
)
.instead_of("csw");
static SCHUR: Key = Key::new(
    "schur",
    "NAME",
    KeyKind::Word,
    "Form of the Schur complement: symmetric or asymmetric [default: symmetric]",
    "\"symmetric\"",
)
.technical();

/// Schur complements with their names in inputs.
pub const SCHURS: [(&str, Schur); 2] = [("symmetric", Schur::Symmetric), ("asymmetric", Schur::Asymmetric)];

/// Parameters of operators with a clover term.
pub(super) const KEYS: [&Key; 10] = [&MASS, &KAPPA, &BC_TIME, &XI, &NU, &CSW, &U0, &CLOVER_R, &CLOVER_T, &SCHUR];

/// Definition of the Wilson-clover operator.
pub static CLOVER: Definition = Definition {
    name: "clover",
    title: "Wilson-clover",
    kind: FermionKind::Wilson,
    formula: "M = 4 + m + i/2 sum_{mu<nu} c sigma F - D/2, c = csw / u0^3 in all planes, or Chroma's coefficients: CR / xi_0 \
              in the spatial and CT in the temporal planes",
    keys: &KEYS,
    resolve: |keys| {
        let (params, schur, described) = CloverParams::resolve(keys)?;
        Some((params.with_schur(schur).into(), described))
    },
    output: &OUTPUT,
    sample: || CloverParams::isotropic(WilsonParams::from_mass(0.1, TimeBoundary::Antiperiodic), 1.0, 1.0).into(),
    has_own_kernels: true,
    links: LinkRecipe::Thin,
    term: Some(Term {
        make: |operator, links| Ok(CloverParams::of(operator).term(links)?.into()),
        bytes: |precision, sites| 4 * DeviceClover::bytes_for(precision, sites),
        is_number: false,
        partner: None,
        dependence: |operator| LinkDependence::Linear([operator.coefficients[0], operator.coefficients[1]]),
    }),
    kernels: wilson_kernels(&[WILSON_DSLASH.0, CLOVER_DSLASH.0], &[CLOVER_TERM.0]),
};

pub(super) static CLOVER_ROWS: DiagonalKernels = DiagonalKernels {
    inverse: &CLOVER_DSLASH,
    term: Some(&CLOVER_MATRIX),
    dot: Some(&CLOVER_DSLASH_DOT),
    dots: &CLOVER_DSLASH_DOTS,
};

impl SiteTerm for DeviceClover {
    fn arguments(&self, DiagonalForm { parity, inverse, .. }: DiagonalForm) -> DiagonalArguments {
        DiagonalArguments::clover(self.blocks(parity, inverse), inverse)
    }
    fn kernels(&self) -> &'static DiagonalKernels {
        &CLOVER_ROWS
    }
    fn check(&self, wilson: &Wilson) -> Result {
        wilson.domain().expect_here("a clover term", self.domain())?;
        expect_number(self.diagonal(), wilson)?;
        if self.precision() != wilson.precision() {
            let (found, expected) = (Format::of(self.precision()), Format::of(wilson.precision()));
            return Err(DeviceError::OtherFormat { found, expected });
        }
        Ok(())
    }
    fn convert(&self, precision: Precision) -> Result<Diagonal> {
        Ok(Diagonal::of(DeviceClover::convert(self, precision)?))
    }
    fn determinant(&self, parity: usize) -> Option<DeterminantBlocks> {
        let factor = 1.0 / (HALF * self.diagonal());
        Some(DeterminantBlocks { blocks: self.blocks(parity, false), factor, weight: 1.0 })
    }
    fn flops(&self) -> f64 {
        CLOVER_FLOPS
    }
    fn bytes(&self) -> usize {
        self.precision().clover_bytes()
    }
}

impl From<DeviceClover> for Diagonal {
    fn from(term: DeviceClover) -> Self {
        Diagonal::of(term)
    }
}
impl From<Arc<DeviceClover>> for Diagonal {
    fn from(term: Arc<DeviceClover>) -> Self {
        Diagonal::shared(term)
    }
}

/// Clover term in answers: coefficients as typed, the coefficients of F_μν that follow from them, and the Schur complement.
#[derive(Serialize)]
struct RecordedTerm {
    csw: Option<f64>,
    u0: Option<f64>,
    r: Option<f64>,
    t: Option<f64>,
    space: f64,
    time: f64,
    schur: Option<&'static str>,
}

/// Coefficients of a clover term as typed.
enum ClovCoefficients {
    /// Coefficient c_sw and tadpole factor u_0.
    Improvement(f64, f64),
    /// Chroma's clovCoeffR and clovCoeffT.
    Chroma(f64, f64),
}

impl CloverParams {
    /// Resolves all parameters of a Wilson operator, and c_sw with u_0 or Chroma's coefficients. Returns them with the Schur complement and
    /// the JSON keys with which answers describe the parameters.
    pub(super) fn resolve(keys: &mut dyn Keys) -> Option<(Self, Schur, Map<String, Value>)> {
        let wilson = WilsonParams::resolve(keys);
        let schur = choose(keys, "schur", &SCHURS).unwrap_or_default();
        let typed = ClovCoefficients::resolve(keys);
        let (wilson, typed) = (wilson?, typed?);
        let (params, csw, u0, r, t) = match typed {
            ClovCoefficients::Improvement(csw, u0) => {
                (CloverParams::isotropic(wilson, csw, u0), Some(csw), Some(u0), None, None)
            }
            ClovCoefficients::Chroma(r, t) => (CloverParams::anisotropic(wilson, r, t), None, None, Some(r), Some(t)),
        };
        let (space, time) = (params.space, params.time);
        let schur_name = SCHURS.iter().find(|(_, value)| *value == schur).map(|(name, _)| *name);
        let term = RecordedTerm { csw, u0, r, t, space, time, schur: schur_name };
        let mut described = wilson.describe();
        described.insert("clover".into(), serde_json::to_value(term).expect("a structure of numbers and a text"));
        Some((params, schur, described))
    }
}

impl ClovCoefficients {
    fn resolve(keys: &mut dyn Keys) -> Option<Self> {
        let csw = keys.number("csw", "a number", &|_| true);
        // u0 must not be too small, because the coefficient is csw / u0³.
        let u0 = keys.number("u0", "a number of at least 1e-3", &|u0| u0 >= 1e-3);
        let [r, t] = ["clover-r", "clover-t"].map(|key| keys.number(key, "a number", &|_| true));
        let [has_csw, has_u0, has_r, has_t] = ["csw", "u0", "clover-r", "clover-t"].map(|key| keys.is_given(key));
        match (has_csw, has_r || has_t) {
            (false, false) => {
                let all = [("csw", "C"), ("clover-r", "CR"), ("clover-t", "CT")];
                let [csw, r, t] = all.map(|(key, value)| keys.spelled(key, value));
                keys.missing(&format!("no clover coefficient: give {csw}, or {r} with {t}"));
                None
            }
            (true, true) => {
                let other = if has_r { "clover-r" } else { "clover-t" };
                keys.conflict("csw", other, "give either csw, or clover-r and clover-t");
                None
            }
            (true, false) => {
                for key in ["xi", "nu"] {
                    if keys.is_given(key) {
                        keys.conflict(
                            "csw",
                            key,
                            "on an anisotropic lattice, give clover-r and clover-t instead of csw",
                        );
                    }
                }
                let u0 = if has_u0 { u0 } else { Some(1.0) };
                Some(ClovCoefficients::Improvement(csw?, u0?))
            }
            (false, true) => {
                if has_u0 {
                    keys.refuse("u0", "applies only to csw, which is not given: remove it");
                }
                if has_r != has_t {
                    let (here, there) = if has_r { ("clover-r", "clover-t") } else { ("clover-t", "clover-r") };
                    keys.conflict(here, there, &format!("also needs {there}"));
                }
                Some(ClovCoefficients::Chroma(r?, t?))
            }
        }
    }
}
