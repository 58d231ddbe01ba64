//! Solves the Wilson-Dirac equation for a random source on a small weak-field configuration, on the CPU.
//!
//! `cargo run --release --example solve`
use ferrite::Precision;
use ferrite::backend::Cpu;
use ferrite::domain::Domain;
use ferrite::field::host::HostSpinor;
use ferrite::gauge::generate;
use ferrite::lattice::Lattice;
use ferrite::operators::{TimeBoundary, WilsonParams};
use ferrite::solve::{Request, solve};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let lattice = Lattice::new([8, 8, 8, 16])?;
    let gauge = generate::weak_field(lattice, 7, 0.1);
    let source: HostSpinor = generate::random_source(lattice, 1);
    let domain = Domain::single(Cpu::new(None), lattice)?;

    let operator = WilsonParams::from_mass(0.05, TimeBoundary::Antiperiodic);
    let request = Request { precision: Precision::Single, ..Request::new(operator) };
    let (solutions, report) = solve(&domain, &gauge, &[source], &request, &mut ())?;

    println!("{} iterations, true residual {:.1e}", report.info.iterations, report.true_residual[0]);
    println!("{:.1} GFLOP/s, |psi|² = {:.6}", report.gflops, solutions[0].norm2());
    if report.converged { Ok(()) } else { Err("the residual is too large".into()) }
}
