//! Wilson fermions with the exponential clover term: M = d exp((A − d)/d) − ½ D (Francis et al. 2020, eq. 2). A is the clover term, and d =
//! 4 + m is its value where links are 1. To first order in A − d, M is the Wilson-clover operator. The exponential cannot be singular.
use super::angles::TimeBoundary;
use super::clover::{self, CloverParams};
use super::operator::{Definition, LinkRecipe, Operator};
use super::wilson::WilsonParams;
use super::wilson_family::{COEFFICIENTS, LinkDependence, Term, WilsonLike, wilson_kernels};
use super::wilson_like::Schur;
use crate::field::DeviceClover;
use gpu_kernels::FermionKind;
use gpu_kernels::clover::{CLOVER_DSLASH, CLOVER_EXPONENTIAL, CLOVER_TERM};
use gpu_kernels::wilson::WILSON_DSLASH;

/// Parameters of a Wilson operator with the exponential clover term, without its links.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ExpCloverParams(pub CloverParams);

impl ExpCloverParams {
    /// Returns the operator with these parameters and this Schur complement.
    pub fn with_schur(self, schur: Schur) -> WilsonLike {
        let CloverParams { wilson, space, time } = self.0;
        let mut coefficients = [0.0; COEFFICIENTS];
        (coefficients[0], coefficients[1]) = (space, time);
        WilsonLike::new(&EXP_CLOVER, wilson, coefficients, schur)
    }
}

impl From<ExpCloverParams> for Operator {
    fn from(params: ExpCloverParams) -> Self {
        params.with_schur(Schur::default()).into()
    }
}

/// Definition of the operator of Wilson fermions with the exponential clover term.
pub static EXP_CLOVER: Definition = Definition {
    name: "exp-clover",
    title: "exponential-clover",
    kind: FermionKind::Wilson,
    formula: "M = (4 + m) exp(i/2 sum_{mu<nu} c sigma F / (4 + m)) - D/2, with the coefficients c of the operator clover",
    keys: &clover::KEYS,
    resolve: |keys| {
        let (params, schur, described) = CloverParams::resolve(keys)?;
        Some((ExpCloverParams(params).with_schur(schur).into(), described))
    },
    output: &super::wilson::OUTPUT,
    sample: || {
        let wilson = WilsonParams::from_mass(0.1, TimeBoundary::Antiperiodic);
        ExpCloverParams(CloverParams::isotropic(wilson, 1.0, 1.0)).into()
    },
    // The hops use the kernels of the operator `clover`.
    has_own_kernels: false,
    links: LinkRecipe::Thin,
    term: Some(Term {
        make: |operator, links| Ok(CloverParams::of(operator).term(links)?.exponential()?.into()),
        bytes: |precision, sites| 4 * DeviceClover::bytes_for(precision, sites),
        is_number: false,
        partner: None,
        dependence: |operator| LinkDependence::Exponential([operator.coefficients[0], operator.coefficients[1]]),
    }),
    kernels: wilson_kernels(&[WILSON_DSLASH.0, CLOVER_DSLASH.0], &[CLOVER_TERM.0, CLOVER_EXPONENTIAL.0]),
};
