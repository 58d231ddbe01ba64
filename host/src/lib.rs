//! Ferrite: lattice QCD on GPUs. Solves the Dirac equation on a gauge configuration, on an NVIDIA GPU or on the CPU,
//! with the same kernels.
//!
//! # Overview
//! From bottom to top: a module uses only those above it in this table, which `cargo xtask test` checks.
//!
//! | module | what |
//! |---|---|
//! | [`system`] | files that appear whole or not at all, the date |
//! | [`lattice`] | extents, the order of sites |
//! | [`network`] | the other processes |
//! | [`backend`] | devices that run kernels: [`Cpu`](backend::Cpu), and `Cuda` with the feature `cuda` (on by default); [launch parameters](backend::tuning), measured once and kept in a file |
//! | [`domain`] | a device, this process's part of the lattice, exchanges with the other processes |
//! | [`field`] | [in host memory](field::host) as plain arrays in site order, double precision, DeGrand–Rossi basis; on a device in the layout of its kernels |
//! | [`halo`] | exchanges of faces with neighbours, and the memory that they take |
//! | [`gauge`] | fields from a seed; plaquette, link trace, unitarity; smearing, gauge fixing, quenched ensembles |
//! | [`operators`] | Dirac operators with even-odd preconditioning; [fat and long links](operators::fat_links) |
//! | [`multigrid`] | aggregates, near-null vectors, coarse operators |
//! | [`solve`] | from links and sources to solutions, with a check of the residual |
//! | [`hmc`] | ensembles with staggered quarks by rational hybrid Monte Carlo |
//! | [`observables`] | the gradient flow, topological charge, condensates, correlators of mesons and nucleons |
//! | [`files`] | NERSC, ILDG, SciDAC, MILC and NumPy files, checked while they are read |
//! | [`workload`] | the operations of which solves consist |
//! | [`tune`] | launching them, for a search of launch parameters |
//! | [`mod@bench`] | the speed of these operations, next to that of a copy |
//!
//! Statistics of correlated series are the crate [`statistics`].
//!
//! [`solve::solve`] performs a whole solve. Below it, operators of [`operators`] are linear operators on the
//! [`FieldSpace`](field::FieldSpace) of a device, for the Krylov methods of the crate `solvers` or for yours.
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
//! use ferrite::Precision;
//! use ferrite::backend::Cpu;
//! use ferrite::domain::Domain;
//! use ferrite::field::host::HostSpinor;
//! use ferrite::gauge::generate;
//! use ferrite::lattice::Lattice;
//! use ferrite::operators::{TimeBoundary, WilsonParams};
//! use ferrite::solve::{Request, solve};
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
pub mod domain;
pub mod field;
pub mod files;
pub mod gauge;
pub mod halo;
pub mod hmc;
pub mod lattice;
pub mod multigrid;
pub mod network;
pub mod observables;
pub mod operators;
pub mod solve;
pub mod system;
pub mod tune;
pub mod workload;
