//! Systems (M̂†M̂ + σ) x = b of vectors that others keep, and the force of their solutions.
use super::forms::Forms;
use super::{WilsonQuarks, space};
use crate::field::DeviceField;
use crate::hmc::HmcError;
use crate::hmc::fermions::ShiftedSolver;
use crate::hmc::links::{EvolvingLinks, StopSignal};
use crate::hmc::momenta::MomentumField;
use crate::hmc::poles::{self, SolverCounts};
use crate::operators::EvenOddWilson;
use gpu_kernels::Precision;
use solvers::{LinearOperator, Normal, VectorSpace};

/// Solutions of systems that differ by a shift.
pub struct ShiftedSolutions {
    /// Solutions in double precision on the sites of the complement, in the order of the shifts.
    pub solutions: Vec<DeviceField>,
    /// Number of iterations of multi-shift CG.
    pub iterations: usize,
}

/// *Collective.* Solves (M̂†M̂ + σ_j) x_j = b by multi-shift CG in double precision, for a complement M̂ in double precision.
///
/// # Errors
/// Solvers that give up, and failures of the device.
pub fn solve_shifted(
    operator: &EvenOddWilson,
    solver: &ShiftedSolver,
    shifts: &[f64],
    b: &DeviceField,
) -> Result<ShiftedSolutions, HmcError> {
    let space = space(b.domain(), Precision::Double, b.nrhs());
    let (normal, counts) = (Normal::new(&space, operator)?, SolverCounts::default());
    let solutions = poles::solutions(&normal, shifts, solver, false, b, ("quarks", &counts, &StopSignal::default()))?;
    Ok(ShiftedSolutions { solutions, iterations: counts.iterations.get() })
}

/// *Collective.* Computes P ← P − ε ∂S of S = Σ_j w_j φ†(M̂†M̂ + σ_j)⁻¹ φ, where ε is `step`, from the solutions x_j = (M̂†M̂ + σ_j)⁻¹ φ in
/// double precision on the even sites and the weights w_j.
///
/// # Errors
/// Fields on another lattice or in another format, and failures of the device.
pub fn kick_by_solutions(
    quarks: &WilsonQuarks,
    links: &EvolvingLinks,
    solutions: &[(f64, DeviceField)],
    step: f64,
    momenta: &mut MomentumField,
) -> Result<(), HmcError> {
    let domain = links.own().domain();
    let operator = quarks.on(links, Precision::Double, 1)?;
    let mut image = space(domain, Precision::Double, 1).allocate()?;
    let mut forms = Forms::new(domain, *quarks, Precision::Double, solutions.len())?;
    for (weight, x) in solutions {
        operator.apply(x, &mut image)?;
        forms.add(&operator, x, &image, &image, -2.0 * weight)?;
    }
    Ok(forms.kick(links, step, momenta)?)
}
