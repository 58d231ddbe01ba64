//! Program whose build has one format for iterations besides double precision:
//! `features = ["single", "reconstruct-12"]`. It solves in that format; requests for other formats fail with the
//! features that would add them.
use ferrite::backend::Cpu;
use ferrite::operators::{CloverParams, Operator, StaggeredParams, StaggeredOperator, TimeBoundary, WilsonParams};
use ferrite::domain::Domain;
use ferrite::field::host::{Fermion, HostField};
use ferrite::gauge::generate;
use ferrite::lattice::Lattice;
use ferrite::solve::{Request, solve};
use ferrite::{LinkStorage, Precision};
use std::error::Error;

/// Solves for a random source in the format of the request; returns the number of iterations and the true residual.
fn solved<F: Fermion>(request: &Request) -> Result<(usize, f64), Box<dyn Error>> {
    let lattice = Lattice::new([4, 4, 4, 8])?;
    let (gauge, domain) = (generate::weak_field(lattice, 7, 0.1), Domain::single(Cpu::new(None), lattice)?);
    let source: HostField<F> = generate::random_source(lattice, 1);
    let (_, report) = solve(&domain, &gauge, &[source], request, &mut ()).map_err(|error| error.to_string())?;
    Ok((report.info.iterations, report.true_residual[0]))
}

fn main() -> Result<(), Box<dyn Error>> {
    use ferrite::field::host::{ColourVector, Spinor};
    let wilson = WilsonParams::from_mass(0.05, TimeBoundary::Antiperiodic);
    let clover = CloverParams::isotropic(wilson, 1.0, 1.0);
    let staggered = StaggeredOperator::naive(StaggeredParams::new(0.1, TimeBoundary::Antiperiodic));
    let single = |operator: Operator| Request { precision: Precision::Single, ..Request::new(operator) };
    for request in [single(wilson.into()), single(clover.into())] {
        let (iterations, residual) = solved::<Spinor>(&request)?;
        println!("{iterations} iterations, true residual {residual:.1e}");
    }
    solved::<ColourVector>(&single(staggered.into()))?;

    let refused = |found: Result<(usize, f64), Box<dyn Error>>, parts: &[&str]| -> Result<(), Box<dyn Error>> {
        let said = found.err().ok_or("a format outside this build has been found")?.to_string();
        println!("{said}");
        match parts.iter().find(|part| !said.contains(*part)) {
            Some(part) => Err(format!("the message does not contain: {part}").into()),
            None => Ok(()),
        }
    };
    let has = "this program contains the formats double 18, double 12, single 18, single 12: enable the feature";
    let half = Request { precision: Precision::Half, ..single(wilson.into()) };
    refused(solved::<Spinor>(&half), &["in half with links of 12 reals", has, "\"half\" of the crate ferrite"])?;
    let eight = LinkStorage::of(8);
    let request = Request { precision: Precision::Half, reconstruction: eight.in_temporal_gauge(), ..half };
    refused(solved::<Spinor>(&request), &["in half with links of 8t reals"])?;
    let request = Request { reconstruction: eight, ..single(clover.into()) };
    refused(solved::<Spinor>(&request), &["in single with links of 8 reals", has, "\"reconstruct-8\" of"])?;
    let request = Request { precision: Precision::Half, reconstruction: eight, ..single(staggered.into()) };
    let both = "the features \"half\" and \"reconstruct-8\" of the crate ferrite";
    refused(solved::<ColourVector>(&request), &["in half with links of 8 reals", "this program contains", both])
}
