//! Ferrite: lattice QCD on GPUs. Solves the Dirac equation on a gauge configuration, on an NVIDIA GPU or on the CPU,
//! with the same kernels.
//!
//! # Overview
//! | module | what |
//! |---|---|
//! | [`lattice`] | extents, the order of sites |
//! | [`field::host`] | fields in host memory: plain arrays in site order, double precision, DeGrand–Rossi basis |
//! | [`files`] | NERSC, ILDG, SciDAC, MILC and NumPy files, checked while they are read |
//! | [`generate`], [`measure`] | fields from a seed; plaquette, link trace, unitarity |
//! | [`smear`], [`gauge_fixing`] | smearing of sources and links; temporal, Coulomb and Landau gauge |
//! | [`quenched`] | SU(3) ensembles by heat bath and over-relaxation |
//! | [`statistics`] | means of correlated series, the jackknife |
//! | [`spectrum`] | correlators of mesons and nucleons, effective masses |
//! | [`flow`] | the gradient flow: energy density, topological charge, t₀ and w₀ |
//! | [`rhmc`] | ensembles with staggered quarks by rational hybrid Monte Carlo |
//! | [`backend`] | where kernels run: [`Cpu`](backend::Cpu), and `Cuda` with the feature `cuda` (on by default) |
//! | [`domain`] | a device, this process's part of the lattice, the other processes |
//! | [`halo`] | how faces travel between the parts of processes |
//! | [`field`] | fields on a device, in the layout of its kernels |
//! | [`dirac`] | Wilson and Wilson-clover operators, even-odd preconditioning |
//! | [`fat_links`] | fat and long links of asqtad and HISQ |
//! | [`solve`] | from links and sources to solutions, with the check of the answer |
//! | [`memory`] | what it takes to share a lattice: borders, ghost zones, messages |
//! | [`mod@bench`] | how fast kernels are, next to a copy |
//! | [`tune`] | launch parameters of a GPU, measured once and kept in a file |
//!
//! [`solve::solve`] does all of a solve. Below it, operators of [`dirac`] are linear operators on
//! the [`FieldSpace`](field::FieldSpace) of a device, for the Krylov methods of the crate `solvers` or for yours.
//!
//! # In your own program
//! * The crates whose types appear here are re-exported: [`num_complex`], [`solvers`], [`comms`], [`rational`],
//!   [`statistics`], [`gpu_kernels`]. Use them from here, and their versions fit.
//! * Nothing is global: as many backends as you like live in one process, of one device or of several, each used by one
//!   thread at a time. Functions that work on the host alone use the [rayon] pool that they are called in.
//! * What can go wrong is an error type of its own, an enum that can be matched on. Functions panic only where their
//!   documentation says so, on arguments that do not belong together.
//! * `docs/embedding.md` of the repository is the guide, `host/examples` has programs to start from.
//!
//! Everything is in lattice units; M = (4 + m) − ½ D, not its κ-normalised form. `docs/conventions.md` of the repository
//! has all signs and factors, `docs/architecture.md` how the parts work together.
//!
//! # A solve
//! ```
//! use ferrite::backend::Cpu;
//! use ferrite::dirac::{TimeBoundary, WilsonParams};
//! use ferrite::domain::Domain;
//! use ferrite::field::host::HostSpinor;
//! use ferrite::generate;
//! use ferrite::lattice::Lattice;
//! use ferrite::solve::{Request, solve};
//! use ferrite::Precision;
//!
//! let lattice = Lattice::new([4, 4, 4, 8])?;
//! let gauge = generate::weak_field(lattice, 7, 0.1); // or files::read_gauge
//! let source: HostSpinor = generate::random_source(lattice, 1);
//! let domain = Domain::single(Cpu::new(Some(1)), lattice)?; // or Cuda::new(0)?
//!
//! let operator = WilsonParams::from_mass(0.1, TimeBoundary::Antiperiodic);
//! let request = Request { precision: Precision::Single, tol: 1e-9, ..Request::new(operator) };
//! let (solutions, report) = solve(&domain, &gauge, &[source], &request, &mut ())?;
//!
//! // ‖b − M x‖ / ‖b‖ of the full system, computed from the solution in double precision.
//! assert!(report.converged && report.true_residual[0] <= 1e-9);
//! assert_eq!(solutions[0].lattice(), lattice);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
pub use gpu_kernels::{FermionKind, Format, LinkStorage, Precision};
pub use {comms, gpu_kernels, num_complex, rational, solvers, statistics};

pub mod backend;
pub mod bench;
pub mod dirac;
pub mod domain;
pub mod fat_links;
pub mod field;
pub mod files;
pub mod flow;
pub mod gauge_fixing;
pub mod generate;
pub mod halo;
pub mod lattice;
mod matrix;
pub mod measure;
pub mod memory;
pub mod quenched;
pub mod rhmc;
pub mod smear;
pub mod solve;
pub mod spectrum;
pub mod tune;
mod workload;
