//! Wilson-clover fermions with a twisted mass: M = A + iμγ5 − ½ D, where A is the clover term. The Hermitian blocks E = A (A² + μ²)⁻¹ and F
//! = μ (A² + μ²)⁻¹ give (A + iμγ5)⁻¹ = E − iγ5 F, since γ5 and A commute. A may also be the exponential clover term.
use super::angles::TimeBoundary;
use super::clover::{self, CLOVER_FLOPS, CloverParams};
use super::diagonal::{DeterminantBlocks, Diagonal, DiagonalForm, DiagonalKernels, SiteTerm, expect_number};
use super::keys::Key;
use super::operator::{Definition, LinkRecipe, Operator};
use super::twisted::{MU, TWIST_FLOPS, mu};
use super::wilson::{Wilson, WilsonParams};
use super::wilson_family::{LinkDependence, Term, WilsonLike, wilson_kernels};
use super::wilson_like::Schur;
use crate::domain::{DeviceError, Result};
use crate::field::DeviceClover;
use gpu_kernels::clover::{
    CLOVER_EXPONENTIAL, CLOVER_TERM, TWISTED_CLOVER_DSLASH, TWISTED_CLOVER_DSLASH_DOTS, TWISTED_CLOVER_INVERSE,
    TwistedCloverInverse,
};
use gpu_kernels::diagonal::DiagonalArguments;
use gpu_kernels::storage::HALF;
use gpu_kernels::wilson::WILSON_DSLASH;
use gpu_kernels::{FermionKind, Format, Precision};

/// Parameters of a twisted-mass operator with a clover term, without its links.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TwistedCloverParams {
    /// Parameters of the clover term.
    pub clover: CloverParams,
    /// Twisted mass μ.
    pub mu: f64,
}

impl From<TwistedCloverParams> for Operator {
    fn from(TwistedCloverParams { clover, mu }: TwistedCloverParams) -> Self {
        let CloverParams { wilson, space, time } = clover;
        let coefficients = [space, time, mu];
        WilsonLike::new(&TWISTED_CLOVER, wilson, coefficients, Schur::Symmetric).into()
    }
}

/// Parameters of a twisted-mass operator with an exponential clover term, without its links.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TwistedExpCloverParams(pub TwistedCloverParams);

impl From<TwistedExpCloverParams> for Operator {
    fn from(TwistedExpCloverParams(TwistedCloverParams { clover, mu }): TwistedExpCloverParams) -> Self {
        let CloverParams { wilson, space, time } = clover;
        WilsonLike::new(&TWISTED_EXP_CLOVER, wilson, [space, time, mu], Schur::Symmetric).into()
    }
}

/// Definition of the operator of Wilson-clover fermions with a twisted mass.
pub static TWISTED_CLOVER: Definition = Definition {
    name: "twisted-clover",
    title: "twisted-clover",
    kind: FermionKind::Wilson,
    formula: "M = A + i mu gamma5 - D/2, where A - D/2 is the operator clover",
    keys: &KEYS,
    resolve: |keys| {
        let (resolved, mu) = (CloverParams::resolve(keys), mu(keys));
        let ((clover, _, mut described), mu) = (resolved?, mu?);
        described.insert("mu".into(), mu.into());
        Some((TwistedCloverParams { clover, mu }.into(), described))
    },
    output: &[
        ("mass", "bare mass"),
        ("kappa", "hopping parameter κ: factor of the hopping term relative to the diagonal term"),
        ("xi", "bare anisotropy ξ_0"),
        ("nu", "bare velocity of light ν"),
        ("clover", "object with the parameters of the clover term; `null` without a clover term"),
        ("mu", "twisted mass μ"),
    ],
    sample: || {
        let wilson = WilsonParams::from_mass(0.1, TimeBoundary::Antiperiodic);
        TwistedCloverParams { clover: CloverParams::isotropic(wilson, 1.0, 1.0), mu: 0.05 }.into()
    },
    has_own_kernels: true,
    links: LinkRecipe::Thin,
    term: Some(Term {
        make: |operator, links| TwistedTerm::new(operator, CloverParams::of(operator).term(links)?).map(Diagonal::of),
        bytes: |precision, sites| 8 * DeviceClover::bytes_for(precision, sites),
        is_number: false,
        partner: Some("-mu"),
        dependence: |operator| LinkDependence::Linear([operator.coefficients[0], operator.coefficients[1]]),
    }),
    kernels: wilson_kernels(&[WILSON_DSLASH.0, TWISTED_CLOVER_DSLASH.0], &[CLOVER_TERM.0, TWISTED_CLOVER_INVERSE.0]),
};

/// Definition of the operator of Wilson fermions with the exponential clover term and a twisted mass. Like the clover term, its exponential
/// commutes with γ5.
pub static TWISTED_EXP_CLOVER: Definition = Definition {
    name: "twisted-exp-clover",
    title: "twisted exponential-clover",
    formula: "M = A + i mu gamma5 - D/2, where A - D/2 is the operator exp-clover",
    resolve: |keys| {
        let (resolved, mu) = (CloverParams::resolve(keys), mu(keys));
        let ((clover, _, mut described), mu) = (resolved?, mu?);
        described.insert("mu".into(), mu.into());
        Some((TwistedExpCloverParams(TwistedCloverParams { clover, mu }).into(), described))
    },
    sample: || {
        let wilson = WilsonParams::from_mass(0.1, TimeBoundary::Antiperiodic);
        TwistedExpCloverParams(TwistedCloverParams { clover: CloverParams::isotropic(wilson, 1.0, 1.0), mu: 0.05 })
            .into()
    },
    // The hops use the kernels of the operator `twisted-clover`.
    has_own_kernels: false,
    links: LinkRecipe::Thin,
    term: Some(Term {
        make: |operator, links| {
            TwistedTerm::new(operator, CloverParams::of(operator).term(links)?.exponential()?).map(Diagonal::of)
        },
        bytes: |precision, sites| 8 * DeviceClover::bytes_for(precision, sites),
        is_number: false,
        partner: Some("-mu"),
        dependence: |operator| LinkDependence::Exponential([operator.coefficients[0], operator.coefficients[1]]),
    }),
    kernels: wilson_kernels(
        &[WILSON_DSLASH.0, TWISTED_CLOVER_DSLASH.0],
        &[CLOVER_TERM.0, CLOVER_EXPONENTIAL.0, TWISTED_CLOVER_INVERSE.0],
    ),
    kind: FermionKind::Wilson,
    keys: &KEYS,
    output: TWISTED_CLOVER.output,
};

/// Keys of the clover operator and μ. The Schur complement has no key, because it is always the symmetric one.
static KEYS: [&Key; 10] = {
    let mut keys = clover::KEYS;
    keys[9] = &MU;
    keys
};

static ROWS: DiagonalKernels =
    DiagonalKernels { inverse: &TWISTED_CLOVER_DSLASH, term: None, dot: None, dots: &TWISTED_CLOVER_DSLASH_DOTS };

/// Diagonal term A + iμγ5 in a precision.
struct TwistedTerm {
    /// Clover term A.
    clover: DeviceClover,
    /// Blocks E and F, stored like a clover term and its inverse.
    inverse: DeviceClover,
    mu: f64,
}

impl TwistedTerm {
    /// Adds the twist to a term A in double precision.
    fn new(operator: &WilsonLike, clover: DeviceClover) -> Result<Self> {
        let [.., mu] = operator.coefficients;
        let (inverse, domain) = (clover.convert(Precision::Double)?, clover.domain().clone());
        for parity in 0..2 {
            let out = [false, true].map(|second| inverse.blocks(parity, second));
            let kernel = TwistedCloverInverse { input: clover.blocks(parity, false), out, mu };
            domain.backend().launch(&TWISTED_CLOVER_INVERSE, Format::NONE, &kernel, domain.half_sites(), 1)?;
        }
        Ok(TwistedTerm { clover, inverse, mu })
    }
}

impl SiteTerm for TwistedTerm {
    fn arguments(&self, DiagonalForm { parity, inverse, dagger }: DiagonalForm) -> DiagonalArguments {
        let sign = if dagger { -1.0 } else { 1.0 };
        if inverse {
            let blocks = [false, true].map(|second| self.inverse.blocks(parity, second));
            return DiagonalArguments::twisted_clover_inverse(blocks, -sign);
        }
        DiagonalArguments::twisted_clover(self.clover.blocks(parity, false), sign * self.mu)
    }
    fn kernels(&self) -> &'static DiagonalKernels {
        &ROWS
    }
    fn check(&self, wilson: &Wilson) -> Result {
        wilson.domain().expect_here("a twisted clover term", self.clover.domain())?;
        expect_number(self.clover.diagonal(), wilson)?;
        if self.clover.precision() != wilson.precision() {
            let (found, expected) = (Format::of(self.clover.precision()), Format::of(wilson.precision()));
            return Err(DeviceError::OtherFormat { found, expected });
        }
        Ok(())
    }
    fn convert(&self, precision: Precision) -> Result<Diagonal> {
        let TwistedTerm { clover, inverse, mu } = self;
        let (clover, inverse) = (clover.convert(precision)?, inverse.convert(precision)?);
        Ok(Diagonal::of(TwistedTerm { clover, inverse, mu: *mu }))
    }
    /// Returns blocks of F = μ (A² + μ²)⁻¹. The inverse of F is proportional to A² + μ², whose determinant is |det (A + iμγ5)|².
    fn determinant(&self, parity: usize) -> Option<DeterminantBlocks> {
        if self.mu == 0.0 {
            return SiteTerm::determinant(&self.clover, parity);
        }
        let d = self.clover.diagonal();
        let factor = (d * d + self.mu * self.mu) / (HALF * self.mu);
        Some(DeterminantBlocks { blocks: self.inverse.blocks(parity, true), factor, weight: -0.5 })
    }
    fn flops(&self) -> f64 {
        2.0 * CLOVER_FLOPS + TWIST_FLOPS
    }
    fn bytes(&self) -> usize {
        2 * self.clover.precision().clover_bytes()
    }
}
