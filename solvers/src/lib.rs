//! Krylov solvers for A x = b in one or two precisions, over traits: nothing in this crate depends on the representation of a
//! vector.
//!
//! | you have | use | see |
//! |---|---|---|
//! | A Hermitian positive definite (M†M of a Dirac operator) | [`cg`] | Clark et al. 2009, Algorithm 2, adapted |
//! | A Hermitian positive definite with a few small eigenvalues, several right-hand sides | [`block_cg()`] | Dubrulle 2001 |
//! | any regular A | [`bicgstab`] | Clark et al. 2009, Algorithm 2 |
//! | any regular A for which BiCGstab is slow, and memory for more vectors | [`idr()`] | van Gijzen and Sonneveld 2011 |
//! | any regular A for which BiCGstab is erratic | [`cgnr`], [`cgne`] | |
//! | any regular A with a few small singular values, several right-hand sides | [`block_cgnr()`] | Dubrulle 2001 |
//! | any regular A and a preconditioner, which may differ from call to call | [`gcr`] | Babich et al. 2011, Algorithm 1 |
//! | any regular A, preconditioned in domains that do not communicate: GCR-DD | [`gcr`] with [`MinimumResidual`] | Babich et al. 2011, section 8.1 |
//! | any regular A and near-null vectors for its small eigenvalues: multigrid | [`gcr`] with [`Level`] | arXiv 1005.3043, 1303.1377 |
//! | A Hermitian, A + σ_i positive definite, many shifts σ_i | [`multishift_cg`] | Babich et al. 2011, eq. 4 |
//! | a solver in low precision whose result is to be corrected to high precision | [`defect_correction`] | Clark et al. 2009, Algorithm 1 |
//!
//! Clark et al. 2009 is arXiv:0911.3191, and Babich et al. 2011 is arXiv:1109.2935.
//!
//! A solver is a plain function: `solver(&system, &b, &mut x, &params, &mut workspace, &mut observer)`.
//! [`multishift_cg`] takes a space, an operator and the shifts in place of the system, and a slice of solutions;
//! [`gcr`] takes a preconditioner after the system.
//!
//! * **system**: [`Uniform`] (one precision) or [`Mixed`] (the iteration in a sloppy precision, reliable updates in a
//!   precise one) around spaces and operators of yours.
//! * **x**: initial guess on entry, solution on exit.
//! * **params**: [`SolverParams`], or a struct with one in it and what only that method has, such as [`GcrParams`]. All have
//!   a `Default`. Tolerances are relative to ‖b‖.
//! * **workspace**: all memory, allocated before; no solver allocates a vector.
//! * **observer**: a closure that receives every iterate and may stop the solve, or `()`.
//! * The result is an [`Info`] or a [`SolveError`] that holds one.
//!
//! A solver reports convergence only after it has computed b − A x with the precise operator and found its norm small enough,
//! for every right-hand side. Blocks of N right-hand sides advance together, each with its own coefficients; finished ones
//! [leave the batch](cg()#batches-that-become-smaller) if spaces and operators can narrow, and stay as they are otherwise.
//! [`multishift_cg`] is the exception to the first rule: it runs in one precision and drops a shift by its recurrence, so it
//! reports convergence only where its check confirmed it.
//!
//! # Inverters
//! [`inverter`] combines solvers: deflation around CG, CG in single precision within defect correction, an inverter as the
//! preconditioner of GCR, or a component of your own around any of them. Such a composition keeps its memory and needs no
//! workspace.
//!
//! # Domain decomposition
//! [`gcr`] uses two spaces, those of its system, and a [`Preconditioner`] on the sloppy one. Schwarz preconditioners are
//! composed of
//! * [`MinimumResidual::on_domains`], on a [space of domains](VectorSpace#sums-over-domains) and with an operator that
//!   ends at the faces of the domains,
//! * [`Converted`] around it, where the domains are solved in a third precision, or overlap.
//!
//! For a single-half-half solver the system is [`Mixed`] of single and half, and there is no [`Converted`].
//!
//! # Multigrid
//! A cycle is also a [`Preconditioner`], composed of
//! * a [`Level`] for each step to a coarser space: smoothing, restriction, a coarse solver, prolongation, smoothing,
//! * a [`TransferOperator`] between two spaces, which is yours, as coarse spaces and operators are,
//! * smoothers: [`MinimumResidual`] on the whole or on domains, or [`CaGcr`],
//! * coarse solvers: [`InnerGcr`] around the next [`Level`] for a K-cycle, that level alone for a V-cycle; [`CaGcr`] or
//!   [`InnerGcr`] on the coarsest space,
//! * [`Converted`] around whatever is to run in another precision.
//!
//! [`inverse_iteration`] makes near-null vectors, from noise with a smoother and then with the cycle itself.
//! [`projection_error`], [`orthonormality_error`] and [`galerkin_error`] check transfers and coarse operators. Cycles and
//! solvers count their calls, iterations and seconds ([`LevelReport`]). [`Level`] has an example.
//!
//! # Your own operator
//! For vectors of plain numbers, implement [`LinearOperator`] on [`PlainSpace`]. For other vectors, implement
//! [`VectorSpace`] first, as in [its example](VectorSpace#an-example).
//! ```
//! use num_complex::Complex64;
//! use solvers::{
//!     BicgstabWorkspace, LengthError, LinearOperator, PlainSpace, SolverParams, Uniform, VectorSpace, bicgstab,
//! };
//!
//! /// A x(i) = 3 x(i) − c x(i+1) − c̄ x(i−1) on a ring, with c = 1 + ½i: hopping with a phase, and Hermitian.
//! struct Hopping;
//! impl LinearOperator<PlainSpace> for Hopping {
//!     fn apply(&self, x: &Vec<Complex64>, out: &mut Vec<Complex64>) -> Result<(), LengthError> {
//!         let (n, c) = (x.len(), Complex64::new(1.0, 0.5));
//!         for i in 0..n {
//!             out[i] = 3.0 * x[i] - c * x[(i + 1) % n] - c.conj() * x[(i + n - 1) % n];
//!         }
//!         Ok(())
//!     }
//!     fn apply_dagger(&self, x: &Vec<Complex64>, out: &mut Vec<Complex64>) -> Result<(), LengthError> {
//!         self.apply(x, out)
//!     }
//!     fn flops(&self) -> f64 { 64.0 * 18.0 }
//! }
//!
//! let space = PlainSpace::new(64);
//! let system = Uniform::new(&space, &Hopping);
//! let (mut b, mut x) = (space.allocate()?, space.allocate()?);
//! b[0] = Complex64::ONE;
//! let mut workspace = BicgstabWorkspace::new(&system)?;
//! let params = SolverParams { tol: 1e-12, ..Default::default() };
//! let info = bicgstab(&system, &b, &mut x, &params, &mut workspace, &mut ())?;
//! assert!(info.converged && info.worst_residual() <= 1e-12);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

#![forbid(unsafe_code)]

mod bicgstab;
mod block_cg;
mod block_cgnr;
mod cg;
mod cgne;
mod cgnr;
mod compact;
mod cycle;
mod defect;
mod error;
mod failure;
mod gcr;
mod idr;
mod info;
pub mod inverter;
mod lanczos;
mod mr;
mod multigrid;
mod multishift;
mod normal;
mod observer;
mod operator;
mod params;
mod plain;
mod preconditioner;
mod range;
mod reliable;
mod rows;
mod small;
mod stopping;
mod traits;

pub use bicgstab::{BicgstabWorkspace, bicgstab};
pub use block_cg::{BlockCgParams, BlockCgWorkspace, block_cg};
pub use block_cgnr::{BlockCgNormalWorkspace, block_cgnr};
pub use cg::{CgWorkspace, cg};
pub use cgne::cgne;
pub use cgnr::{CgNormalWorkspace, cgnr};
pub use compact::WIDTHS;
pub use cycle::Orthogonalisation;
pub use defect::{DefectParams, DefectWorkspace, defect_correction};
pub use error::{SolveError, Unsolved};
pub use failure::{BreakdownKind, RhsFailure};
pub use gcr::{GcrParams, GcrWorkspace, gcr};
pub use idr::{IdrWorkspace, idr};
pub use info::{GivenUp, Info, worse_residual, worst_residual};
pub use lanczos::{LargestEigenvalue, SmallestEigenvalue, largest_eigenvalue, smallest_eigenvalue};
pub use mr::{MinimumResidual, MrParams};
pub use multigrid::{
    CaGcr, CaGcrParams, InnerGcr, InnerGcrParams, Level, LevelReport, TransferOperator, galerkin_error,
    inverse_iteration, inverse_iteration_while, orthonormalise, orthonormality_error, projection_error,
};
pub use multishift::{MultiShiftInfo, MultiShiftParams, MultiShiftWorkspace, ShiftInfo, multishift_cg};
pub use observer::{Iteration, IterationKind, Observer, Step};
pub use operator::{Mixed, Normal, NormalError, Precise, Shifted, Sloppy, System, Uniform};
pub use params::{Patience, SolverParams};
pub use plain::{LengthError, PlainSpace};
pub use preconditioner::{Converted, Identity, Preconditioner, Work};
pub use rows::{KeptRho, KeptSums, SUM_PLACES, SUMS_IN_PLACE};
pub use traits::{CgStep, ConvertFrom, Dots, LinearOperator, Overlap, ShiftStep, VectorSpace};
