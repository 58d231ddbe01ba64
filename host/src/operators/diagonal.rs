//! The site-diagonal term A of a Wilson-like operator M = A − h D, where D is the hopping term.
use super::wilson::Wilson;
use crate::domain::{DeviceError, Result};
use gpu_kernels::diagonal::DiagonalArguments;
use gpu_kernels::field::Clover;
use gpu_kernels::wilson::{WILSON_DSLASH, WILSON_DSLASH_DOT, WILSON_DSLASH_DOTS, WilsonDslash};
use gpu_kernels::{Instances, Precision, SumInstances};
use std::sync::Arc;

/// Kernels that apply M with one kind of A. If an optional kernel is missing, a product takes two launches, or computes more sums than
/// requested.
pub(crate) struct DiagonalKernels {
    /// Kernel that computes A⁻¹ D ψ or x + b A⁻¹ D ψ.
    pub inverse: &'static Instances<WilsonDslash>,
    /// Kernel that computes A x + b D ψ.
    pub term: Option<&'static Instances<WilsonDslash>>,
    /// Kernel that computes y = x + b A⁻¹ D ψ and the sums (w, y) and ‖y‖².
    pub dot: Option<&'static SumInstances<WilsonDslash>>,
    /// Kernel that computes y = x + b A⁻¹ D ψ and the sums that the second half step of BiCGstab needs.
    pub dots: &'static SumInstances<WilsonDslash>,
}

/// Kernels for an A that is a number.
pub(super) static NUMBER_KERNELS: DiagonalKernels = DiagonalKernels {
    inverse: &WILSON_DSLASH,
    term: Some(&WILSON_DSLASH),
    dot: Some(&WILSON_DSLASH_DOT),
    dots: &WILSON_DSLASH_DOTS,
};

/// Choice of A, A⁻¹, A† or A⁻†, and of the sites on which it acts.
#[derive(Clone, Copy, Debug)]
pub struct DiagonalForm {
    /// Parity of the sites on which the term acts.
    pub parity: usize,
    /// Whether to apply A⁻¹ instead of A.
    pub inverse: bool,
    /// Whether to apply the Hermitian conjugate of A or A⁻¹.
    pub dagger: bool,
}

/// Blocks Z of a term A. ln |det A| is `weight` times the sum of ln |det (`factor` Z)| over all sites, plus a constant.
pub(crate) struct DeterminantBlocks {
    /// Blocks Z on the sites of one parity.
    pub blocks: Clover,
    /// Factor that brings the determinants of Z near 1.
    pub factor: f64,
    /// Power of |det Z| in |det A|.
    pub weight: f64,
}

/// A diagonal term that is more than a number.
pub(crate) trait SiteTerm {
    /// Returns the arguments of kernels that apply this term. They refer to memory of the term and must not outlive it.
    fn arguments(&self, form: DiagonalForm) -> DiagonalArguments;
    /// Returns the kernels that apply M with this term.
    fn kernels(&self) -> &'static DiagonalKernels;
    /// Refuses an operator that does not belong to this term.
    fn check(&self, wilson: &Wilson) -> Result;
    /// Converts the term from double precision to another precision by rounding.
    fn convert(&self, precision: Precision) -> Result<Diagonal>;
    /// Returns the blocks whose determinants give ln |det A| on the sites of a parity; `None` if the term has no blocks. The view must not
    /// outlive the term.
    fn determinant(&self, parity: usize) -> Option<DeterminantBlocks>;
    /// Returns the operations of A or A⁻¹ at a site, by the community's count.
    fn flops(&self) -> f64;
    /// Returns the bytes of A or A⁻¹ that kernels read at a site.
    fn bytes(&self) -> usize;
}

/// Site-diagonal term A of a Wilson-like operator in one precision, for example a number or the blocks of a clover term.
#[derive(Clone)]
pub struct Diagonal(DiagonalTerm);

#[derive(Clone)]
enum DiagonalTerm {
    Number(f64),
    Term(Arc<dyn SiteTerm>),
}

impl Diagonal {
    /// Makes the term A = d, such as d = 4 + m of the Wilson operator.
    pub fn number(d: f64) -> Self {
        Diagonal(DiagonalTerm::Number(d))
    }
    pub(crate) fn of(term: impl SiteTerm + 'static) -> Self {
        Self::shared(Arc::new(term))
    }
    pub(super) fn shared(term: Arc<dyn SiteTerm>) -> Self {
        Diagonal(DiagonalTerm::Term(term))
    }
    /// Returns the term if it is more than a number.
    pub(crate) fn term(&self) -> Option<&dyn SiteTerm> {
        match &self.0 {
            DiagonalTerm::Number(_) => None,
            DiagonalTerm::Term(term) => Some(&**term),
        }
    }
    /// Returns the number s in A = s B, by which the factors of hops are divided. If A is a number, B is 1; otherwise s is 1.
    pub(crate) fn scale(&self) -> f64 {
        match self.0 {
            DiagonalTerm::Number(d) => d,
            DiagonalTerm::Term(_) => 1.0,
        }
    }
    /// Returns the kernel arguments of A or A†, or those of B⁻¹ or B⁻†, where A is [s](Self::scale) times B. They refer to memory of the
    /// term and must not outlive it.
    pub(crate) fn arguments(&self, form: DiagonalForm) -> DiagonalArguments {
        match &self.0 {
            DiagonalTerm::Number(d) => DiagonalArguments::mass(if form.inverse { 1.0 } else { *d }),
            DiagonalTerm::Term(term) => term.arguments(form),
        }
    }
    pub(crate) fn kernels(&self) -> &'static DiagonalKernels {
        self.term().map_or(&NUMBER_KERNELS, SiteTerm::kernels)
    }
    /// Converts the term from double precision to another precision by rounding.
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

/// Refuses a term that was made with another mass or anisotropy than those of the operator.
pub(crate) fn expect_number(found: f64, wilson: &Wilson) -> Result {
    let expected = wilson.params().diagonal();
    if found == expected { Ok(()) } else { Err(DeviceError::OtherTerm { found, expected }) }
}
