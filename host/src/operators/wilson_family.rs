//! The family of Wilson-like operators M = A − h D: their parameters, their diagonal terms A, and the Wilson operator, whose A is a number.
use super::angles::{BC_TIME, BoundaryAngles, TimeBoundary};
use super::diagonal::Diagonal;
use super::even_odd::EvenOdd;
use super::operator::{Definition, LinkRecipe, Operator, OperatorKernels, OperatorLinks, OperatorParameters};
use super::wilson::{KAPPA, MASS, NU, OUTPUT, Wilson, WilsonParams, XI};
use super::wilson_like::{EvenOddWilson, Schur};
use crate::domain::Result;
use crate::field::{DeviceGauge, GaugeField};
use crate::halo::HaloField;
use gpu_kernels::exterior::WILSON_EXTERIOR;
use gpu_kernels::faces::PACK_SPINORS;
use gpu_kernels::smeared::PACK_LINKS;
use gpu_kernels::wilson::WILSON_DSLASH;
use gpu_kernels::{FermionKind, LinkStorage, Precision, Table};
use serde_json::Value;
use std::any::Any;
use std::rc::Rc;
use std::sync::Arc;

/// Definition of the diagonal term A of a Wilson-like operator.
pub struct Term {
    /// Function that makes the term from links, in double precision.
    pub make: fn(&WilsonLike, &GaugeField) -> Result<Diagonal>,
    /// Function that returns the bytes of A and A⁻¹ together on a device, for a precision and a number of sites of each parity.
    pub bytes: fn(Precision, usize) -> usize,
    /// Whether A is a number, which needs no kernel, no memory and no choice of a Schur complement.
    pub is_number: bool,
    /// Name of the other quark of a doublet; `None` if γ5 M γ5 = M†. A quark belongs to a doublet if γ5 M γ5 is M† of the other quark. The
    /// propagators of the two quarks differ, and γ5 S† γ5 is the propagator of the other quark's antiquark.
    pub partner: Option<&'static str>,
    /// Function that returns the dependence of A on the links.
    pub dependence: fn(&WilsonLike) -> LinkDependence,
}

/// Dependence of a diagonal term on the links.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum LinkDependence {
    /// No dependence.
    None,
    /// Linear in the field strength, with the coefficients of a clover term in the spatial and in the temporal planes.
    Linear([f64; 2]),
    /// Exponential: A = d exp(C/d), where C is the field strength with these coefficients and d the value of A where links are 1. The
    /// determinant of A is constant.
    Exponential([f64; 2]),
}

/// Largest number of coefficients of a Wilson-like operator's diagonal term.
pub const COEFFICIENTS: usize = 3;

/// A Wilson-like operator: a definition with numbers for its parameters.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct WilsonLike {
    /// Definition of the operator.
    pub definition: &'static Definition,
    /// Mass, boundary condition and anisotropy.
    pub wilson: WilsonParams,
    /// Coefficients of the diagonal term, in the order of the definition.
    pub coefficients: [f64; COEFFICIENTS],
    /// Choice of the Schur complement.
    pub schur: Schur,
    /// Angles of twisted boundary conditions.
    pub theta: BoundaryAngles,
}

impl WilsonLike {
    /// Makes an operator without twisted boundary conditions.
    pub fn new(
        definition: &'static Definition,
        wilson: WilsonParams,
        coefficients: [f64; COEFFICIENTS],
        schur: Schur,
    ) -> Self {
        WilsonLike { definition, wilson, coefficients, schur, theta: BoundaryAngles::default() }
    }
    /// Computes the diagonal term A, in double precision, from links on a device.
    ///
    /// # Errors
    /// Failures of the device.
    pub fn diagonal(&self, links: &GaugeField) -> Result<Diagonal> {
        (self.term().make)(self, links)
    }
    fn term(&self) -> &'static Term {
        self.definition.term.as_ref().expect("Wilson-like operators have a diagonal term")
    }
    /// Returns the operator with another mass.
    #[must_use]
    pub fn of_mass(&self, mass: f64) -> Self {
        WilsonLike { wilson: WilsonParams { mass, ..self.wilson }, ..*self }
    }
    /// Returns the dependence of the diagonal term A on the links.
    pub fn dependence(&self) -> LinkDependence {
        (self.term().dependence)(self)
    }
    /// Whether the diagonal term A is a number.
    pub fn has_number(&self) -> bool {
        self.term().is_number
    }
    /// Whether another operator has the same hops and the same kind of diagonal term, so that near-null vectors of one operator suit the
    /// other operator too.
    pub(crate) fn differs_in_numbers(&self, other: &Self) -> bool {
        let hops = |operator: &Self| (operator.wilson.boundary, operator.wilson.anisotropy, operator.theta);
        std::ptr::eq(self.definition, other.definition) && hops(self) == hops(other)
    }
    /// Makes the Schur complement on links in a precision, with a diagonal term that was made from these links.
    ///
    /// # Errors
    /// Failures of the device.
    pub(crate) fn on(&self, links: Arc<DeviceGauge>, term: Diagonal, nrhs: usize) -> Result<EvenOddWilson> {
        EvenOddWilson::with_diagonal(Wilson::new(links, self.wilson), term, self.schur, nrhs)
    }
}

impl OperatorParameters for WilsonLike {
    fn definition(&self) -> &'static Definition {
        self.definition
    }
    fn mass(&self) -> f64 {
        self.wilson.mass
    }
    fn with_mass(&self, mass: f64) -> Operator {
        self.of_mass(mass).into()
    }
    fn theta(&self) -> BoundaryAngles {
        self.theta
    }
    fn with_theta(&self, theta: BoundaryAngles) -> Operator {
        WilsonLike { theta, ..*self }.into()
    }
    fn boundary(&self) -> TimeBoundary {
        self.wilson.boundary
    }
    fn equals(&self, other: &dyn Any) -> bool {
        other.downcast_ref() == Some(self)
    }
    fn even_odd(
        &self,
        links: &dyn OperatorLinks,
        (precision, storage): (Precision, LinkStorage),
        nrhs: usize,
    ) -> Result<Rc<dyn EvenOdd>> {
        let term = links.diagonal(&(*self).into())?.convert(precision)?;
        Ok(Rc::new(self.on(links.thin(self.theta, precision, storage)?, term, nrhs)?))
    }
    fn is_positive(&self) -> bool {
        false
    }
    fn kept_fields(&self) -> usize {
        if self.has_number() { 1 } else { 2 }
    }
    fn halo_field(&self) -> HaloField {
        HaloField::Spinors
    }
    fn link_bytes(&self, precision: Precision, storage: LinkStorage, sites: usize) -> usize {
        let storage = Operator::from(*self).compiled_storage(precision, storage);
        2 * DeviceGauge::bytes_for(precision, storage, sites)
    }
    fn diagonal_bytes(&self, precision: Precision, sites: usize) -> usize {
        (self.term().bytes)(precision, sites)
    }
}

/// Returns the kernels of a Wilson-like operator. `interior` are those that apply it, the last of which exists in all of its formats;
/// `setup` are those that make its diagonal term.
pub(super) const fn wilson_kernels(
    interior: &'static [&'static Table],
    setup: &'static [&'static Table],
) -> OperatorKernels {
    let (exterior, pack, faces) = (WILSON_EXTERIOR.0, PACK_LINKS.0, PACK_SPINORS.0);
    OperatorKernels { interior, exterior, pack, faces, setup }
}

/// Definition of the Wilson operator.
pub static WILSON: Definition = Definition {
    name: "wilson",
    title: "Wilson",
    kind: FermionKind::Wilson,
    formula: "M = (4 + m) - D/2, kappa = 1 / (2 (4 + m)), gamma matrices in the DeGrand-Rossi basis",
    keys: &[&MASS, &KAPPA, &BC_TIME, &XI, &NU],
    resolve: |keys| {
        let params = WilsonParams::resolve(keys)?;
        let mut described = params.describe();
        described.insert("clover".into(), Value::Null);
        Some((params.into(), described))
    },
    output: &OUTPUT,
    sample: || WilsonParams::from_mass(0.1, TimeBoundary::Antiperiodic).into(),
    has_own_kernels: true,
    links: LinkRecipe::Thin,
    term: Some(Term {
        make: |operator, _| Ok(Diagonal::number(operator.wilson.diagonal())),
        bytes: |_, _| 0,
        is_number: true,
        partner: None,
        dependence: |_| LinkDependence::None,
    }),
    kernels: wilson_kernels(&[WILSON_DSLASH.0], &[]),
};

impl From<WilsonParams> for WilsonLike {
    fn from(wilson: WilsonParams) -> Self {
        WilsonLike::new(&WILSON, wilson, [0.0; COEFFICIENTS], Schur::Symmetric)
    }
}
impl From<WilsonParams> for Operator {
    fn from(wilson: WilsonParams) -> Self {
        WilsonLike::from(wilson).into()
    }
}
