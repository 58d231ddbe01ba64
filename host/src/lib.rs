//! Ferrite: lattice QCD on GPUs. The crate solves the Dirac equation on gauge configurations, generates configurations, and computes
//! hadron correlators. The same kernels run on NVIDIA GPUs and on CPUs.
//!
//! # Overview
//! A module uses only modules above it in this table; `cargo xtask test` checks this.
//!
//! | module | contents |
//! |---|---|
//! | [`system`] | files that are written completely or not at all; the date |
//! | [`lattice`] | extents of a lattice, and the order of its sites |
//! | [`network`] | communication with other processes |
//! | [`backend`] | devices that run kernels: [`Cpu`](backend::Cpu), and `Cuda` with the feature `cuda` (on by default); [launch parameters](backend::tuning), measured once and stored in a file |
//! | [`domain`] | a device with this process's part of the lattice |
//! | [`field`] | fields: [in host memory](field::host) as plain arrays in site order, in double precision and the DeGrand–Rossi basis; on a device in the layout of its kernels |
//! | [`halo`] | exchange of faces with neighbouring processes, and the memory that it needs |
//! | [`gauge`] | fields from a seed; plaquette, link trace and unitarity; smearing, gauge fixing and quenched ensembles |
//! | [`operators`] | Dirac operators with even-odd preconditioning; [fat and long links](operators::fat_links) |
//! | [`multigrid`] | aggregates, near-null vectors and coarse operators |
//! | [`solve`] | solves, from links and sources to solutions, with a check of the residual |
//! | [`hmc`] | ensembles with dynamical quarks by hybrid Monte Carlo |
//! | [`observables`] | gradient flow, topological charge, condensates, correlators of mesons and nucleons |
//! | [`files`] | files of links, fermion fields and NumPy arrays, checked while they are read |
//! | [`workload`] | the operations that solves consist of |
//! | [`tune`] | launches of these operations, for a search of launch parameters |
//! | [`mod@bench`] | speed of these operations, compared with that of a copy |
//!
//! The crate [`statistics`] analyses correlated series.
//!
//! [`solve::solve`] performs a whole solve. Below it, operators of [`operators`] are linear operators on the
//! [`FieldSpace`](field::FieldSpace) of a device, for the Krylov methods of the crate `solvers` or for yours.
//!
//! # In your own program
//! * Crates whose types appear in the interface are re-exported: [`num_complex`], [`solvers`], [`comms`], [`rational`],
//!   [`statistics`] and [`gpu_kernels`]. Use the re-exports, so that the versions agree.
//! * There is no global state. A process can have any number of backends, for one device or for several. Only one thread
//!   at a time can use a backend. Functions that run on the host alone use the current [rayon] pool.
//! * Each module has error types, which are enums that you can match on. Functions panic only under the conditions in
//!   their documentation, if arguments do not belong together.
//! * `docs/embedding.md` in the repository is a guide, and `host/examples` has programs to start from.
//!
//! All quantities are in lattice units. The operator is M = (4 + m) − ½ D, not its κ-normalised form. In the repository,
//! `docs/conventions.md` lists all signs and factors, and `docs/architecture.md` explains how the parts work together.
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
