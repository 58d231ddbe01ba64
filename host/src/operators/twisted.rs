//! Twisted-mass operator M = 4 + m + iμγ5 − ½ D, with γ5 of the DeGrand–Rossi basis (Frezzotti et al. 2001). Conjugation with γ5 gives M†
//! with −μ: γ5 M(μ) γ5 = M†(−μ).
use super::angles::{BC_TIME, TimeBoundary};
use super::diagonal::{DeterminantBlocks, Diagonal, DiagonalForm, DiagonalKernels, SiteTerm, expect_number};
use super::keys::{Key, KeyKind, Keys};
use super::operator::{Definition, LinkRecipe, Operator};
use super::wilson::{KAPPA, MASS, NU, Wilson, WilsonParams, XI};
use super::wilson_family::{COEFFICIENTS, LinkDependence, Term, WilsonLike, wilson_kernels};
use super::wilson_like::Schur;
use crate::domain::Result;
use gpu_kernels::diagonal::DiagonalArguments;
use gpu_kernels::wilson::{TWISTED_DSLASH, TWISTED_DSLASH_DOTS, WILSON_DSLASH};
use gpu_kernels::{FermionKind, Precision};

/// Operations of a + iμγ5 at a site: two products and a sum for each of the 24 reals.
pub const TWIST_FLOPS: f64 = 72.0;

/// Parameters of a twisted-mass operator, without its links.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TwistedParams {
    /// Mass, boundary condition and anisotropy.
    pub wilson: WilsonParams,
    /// Twisted mass μ.
    pub mu: f64,
}

impl From<TwistedParams> for Operator {
    fn from(TwistedParams { wilson, mu }: TwistedParams) -> Self {
        let mut coefficients = [0.0; COEFFICIENTS];
        coefficients[0] = mu;
        WilsonLike::new(&TWISTED, wilson, coefficients, Schur::Symmetric).into()
    }
}

/// Key of the twisted mass μ.
pub(super) static MU: Key = Key::new("mu", "MU", KeyKind::Number, "Twisted mass mu of the term i mu gamma5", "0.01");

/// Resolves μ, which must be given.
pub(super) fn mu(keys: &mut dyn Keys) -> Option<f64> {
    if !keys.is_given("mu") {
        let mu = keys.spelled("mu", "MU");
        keys.missing(&format!("no twisted mass: give {mu}"));
    }
    keys.number("mu", "a number", &|_| true)
}

/// Definition of the operator of Wilson fermions with a twisted mass.
pub static TWISTED: Definition = Definition {
    name: "twisted",
    title: "twisted-mass",
    kind: FermionKind::Wilson,
    formula: "M = 4 + m + i mu gamma5 - D/2",
    keys: &[&MASS, &KAPPA, &BC_TIME, &XI, &NU, &MU],
    resolve: |keys| {
        let (wilson, mu) = (WilsonParams::resolve(keys), mu(keys));
        let params = TwistedParams { wilson: wilson?, mu: mu? };
        let mut described = params.wilson.describe();
        described.insert("mu".into(), params.mu.into());
        Some((params.into(), described))
    },
    output: &[
        ("mass", "bare mass"),
        ("kappa", "hopping parameter κ: factor of the hopping term relative to the diagonal term"),
        ("xi", "bare anisotropy ξ_0"),
        ("nu", "bare velocity of light ν"),
        ("mu", "twisted mass μ"),
    ],
    sample: || TwistedParams { wilson: WilsonParams::from_mass(0.1, TimeBoundary::Antiperiodic), mu: 0.05 }.into(),
    has_own_kernels: true,
    links: LinkRecipe::Thin,
    term: Some(Term {
        make: |operator, _| Ok(Diagonal::of(Twist { a: operator.wilson.diagonal(), mu: operator.coefficients[0] })),
        bytes: |_, _| 0,
        is_number: false,
        partner: Some("-mu"),
        dependence: |_| LinkDependence::None,
    }),
    kernels: wilson_kernels(&[WILSON_DSLASH.0, TWISTED_DSLASH.0], &[]),
};

static ROWS: DiagonalKernels =
    DiagonalKernels { inverse: &TWISTED_DSLASH, term: None, dot: None, dots: &TWISTED_DSLASH_DOTS };

/// Diagonal term a + iμγ5, in every precision.
struct Twist {
    a: f64,
    mu: f64,
}

impl SiteTerm for Twist {
    fn arguments(&self, DiagonalForm { inverse, dagger, .. }: DiagonalForm) -> DiagonalArguments {
        DiagonalArguments::twisted(self.a, if dagger { -self.mu } else { self.mu }, inverse)
    }
    fn kernels(&self) -> &'static DiagonalKernels {
        &ROWS
    }
    fn check(&self, wilson: &Wilson) -> Result {
        expect_number(self.a, wilson)
    }
    fn convert(&self, _: Precision) -> Result<Diagonal> {
        Ok(Diagonal::of(Twist { ..*self }))
    }
    fn determinant(&self, _: usize) -> Option<DeterminantBlocks> {
        None
    }
    fn flops(&self) -> f64 {
        TWIST_FLOPS
    }
    fn bytes(&self) -> usize {
        0
    }
}
