//! The site-diagonal term A of a Wilson-like operator M = A − h D, D the hopping term.
use super::wilson::Wilson;
use crate::domain::{DeviceError, Result};
use gpu_kernels::diagonal::DiagonalArguments;
use gpu_kernels::field::Clover;
use gpu_kernels::wilson::{WILSON_ROW, WILSON_ROW_DOT, WILSON_ROW_DOTS, WilsonRow};
use gpu_kernels::{Instances, Precision, SumInstances};
use std::sync::Arc;

/// The kernels of the rows of M with some kind of A. Without those that are optional, rows take two launches, or more sums
/// than are asked for.
pub(crate) struct DiagonalKernels {
    /// A⁻¹ D ψ and x + b A⁻¹ D ψ
    pub inverse: &'static Instances<WilsonRow>,
    /// A x + b D ψ
    pub term: Option<&'static Instances<WilsonRow>>,
    /// y = x + b A⁻¹ D ψ with (w, y) and ‖y‖².
    pub dot: Option<&'static SumInstances<WilsonRow>>,
    /// The same with the sums of BiCGstab's second half step.
    pub dots: &'static SumInstances<WilsonRow>,
}

/// Rows whose A is a number.
pub(super) static NUMBER_ROWS: DiagonalKernels = DiagonalKernels {
    inverse: &WILSON_ROW,
    term: Some(&WILSON_ROW),
    dot: Some(&WILSON_ROW_DOT),
    dots: &WILSON_ROW_DOTS,
};

/// DiagonalForm of A, A⁻¹, A† and A⁻†, and on which sites.
#[derive(Clone, Copy, Debug)]
pub struct DiagonalForm {
    /// The sites.
    pub parity: usize,
    /// A⁻¹
    pub inverse: bool,
    /// The Hermitian conjugate.
    pub dagger: bool,
}

/// Blocks Z of a term A: ln |det A| is `weight` times the sum of ln |det `factor` Z| over all sites, and a constant.
pub(crate) struct DeterminantBlocks {
    /// Z
    pub blocks: Clover,
    /// What brings determinants near 1.
    pub factor: f64,
    /// How often they are in that of A.
    pub weight: f64,
}

/// A diagonal term that is more than a number.
pub(crate) trait SiteTerm {
    /// For rows with it. What is in there must not outlive the term.
    fn arguments(&self, form: DiagonalForm) -> DiagonalArguments;
    /// The kernels of these rows.
    fn rows(&self) -> &'static DiagonalKernels;
    /// Refuses an operator for which it was not made.
    fn check(&self, wilson: &Wilson) -> Result;
    /// The same, in double precision, rounded to another one.
    fn convert(&self, precision: Precision) -> Result<Diagonal>;
    /// What ln |det A| on the sites of a parity is made of. The view must not outlive the term.
    fn determinant(&self, parity: usize) -> Option<DeterminantBlocks>;
    /// Operations of A or A⁻¹ at a site, by the community's count.
    fn flops(&self) -> f64;
    /// Bytes that kernels read of A or A⁻¹ at a site.
    fn bytes(&self) -> usize;
}

/// The site-diagonal term A of a Wilson-like operator in a precision: a number, the blocks of a clover term …
#[derive(Clone)]
pub struct Diagonal(DiagonalTerm);

#[derive(Clone)]
enum DiagonalTerm {
    Number(f64),
    Term(Arc<dyn SiteTerm>),
}

impl Diagonal {
    /// A number times 1, such as 4 + m of the Wilson operator.
    pub fn number(d: f64) -> Self {
        Diagonal(DiagonalTerm::Number(d))
    }
    pub(crate) fn of(term: impl SiteTerm + 'static) -> Self {
        Self::shared(Arc::new(term))
    }
    pub(super) fn shared(term: Arc<dyn SiteTerm>) -> Self {
        Diagonal(DiagonalTerm::Term(term))
    }
    /// What it is where it is more than a number.
    pub(crate) fn term(&self) -> Option<&dyn SiteTerm> {
        match &self.0 {
            DiagonalTerm::Number(_) => None,
            DiagonalTerm::Term(term) => Some(&**term),
        }
    }
    /// The number s in A = s B, which goes into the factors of hops. B = 1 where A is a number, else B = A.
    pub(crate) fn scale(&self) -> f64 {
        match self.0 {
            DiagonalTerm::Number(d) => d,
            DiagonalTerm::Term(_) => 1.0,
        }
    }
    /// A or A†, B⁻¹ or B⁻†, for rows. What is in there must not outlive the term.
    pub(crate) fn arguments(&self, form: DiagonalForm) -> DiagonalArguments {
        match &self.0 {
            DiagonalTerm::Number(d) => DiagonalArguments::mass(if form.inverse { 1.0 } else { *d }),
            DiagonalTerm::Term(term) => term.arguments(form),
        }
    }
    pub(crate) fn rows(&self) -> &'static DiagonalKernels {
        self.term().map_or(&NUMBER_ROWS, SiteTerm::rows)
    }
    /// The same rounded from double to another precision.
    ///
    /// # Errors
    /// A term that is not in double precision, and failures of the device.
    pub fn convert(&self, precision: Precision) -> Result<Self> {
        self.term().map_or_else(|| Ok(self.clone()), |term| term.convert(precision))
    }
    pub(crate) fn flops(&self) -> f64 {
        self.term().map_or(0.0, SiteTerm::flops)
    }
    pub(crate) fn bytes(&self) -> usize {
        self.term().map_or(0, SiteTerm::bytes)
    }
    pub(crate) fn check(&self, wilson: &Wilson) -> Result {
        match &self.0 {
            DiagonalTerm::Number(d) => expect_number(*d, wilson),
            DiagonalTerm::Term(term) => term.check(wilson),
        }
    }
}

/// Refuses a term that was made with another mass or anisotropy than those of an operator.
pub(crate) fn expect_number(found: f64, wilson: &Wilson) -> Result {
    let expected = wilson.params().diagonal();
    if found == expected { Ok(()) } else { Err(DeviceError::OtherTerm { found, expected }) }
}
