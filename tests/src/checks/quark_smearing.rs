//! Gaussian smearing and shifts of quarks against their formulas.
use crate::report::{CheckReport, Scope, relative_error};
use crate::smearing_reference::{gaussian, gaussian_staggered, shifted};
use ferrite::backend::Backend;
use ferrite::domain::{Domain, Result};
use ferrite::field::FullField;
use ferrite::field::host::{HostColour, HostSpinor};
use ferrite::gauge::generate;
use ferrite::lattice::Lattice;
use ferrite::observables::spectrum::smearing::{GaussianSmearing, SmearingLinks};
use ferrite::{FermionKind, Precision};

/// Integers or not, and none of them that is its own opposite.
const MOMENTA: [[f64; 3]; 2] = [[0.0; 3], [0.7, -1.0, 2.5]];

/// Spinors and colour vectors on random links, for extents that are and are not multiples of four, with and without momentum.
pub fn quark_smearing(backend: &dyn Backend, report: &mut CheckReport) -> Result {
    for size in [[2, 4, 6, 8], [6, 2, 4, 2]] {
        let lattice = Lattice::new(size).expect("even extents");
        let gauge = generate::random(lattice, 5);
        let domain = Domain::single(backend, lattice)?;
        let spinors: Vec<HostSpinor> = (0..3).map(|seed| generate::random_source(lattice, seed)).collect();
        let colours: Vec<HostColour> = (0..3).map(|seed| generate::random_source(lattice, seed)).collect();
        for momentum in MOMENTA {
            let smearing = GaussianSmearing { width: 1.7, steps: 6, momentum };
            let GaussianSmearing { width, steps, .. } = smearing;
            let expected: Vec<_> = spinors.iter().map(|psi| gaussian(&gauge, psi, width, steps, momentum)).collect();
            let staggered: Vec<_> =
                colours.iter().map(|chi| gaussian_staggered(&gauge, chi, width, steps, momentum)).collect();
            // Six steps, of which each adds rounding of a dozen products of numbers up to 12σ − 1 < 1 times the largest: 6 · 12 / 2
            // times the precision at the worst, which is 1e-16 and 6e-8.
            for (precision, tolerance) in [(Precision::Double, 4e-15), (Precision::Single, 2.2e-6)] {
                let scope = Scope { format: precision.to_string(), detail: format!("{lattice} {momentum:?}") };
                let links = |kind| SmearingLinks::new(&domain, &gauge, kind, precision, momentum);
                let found = links(FermionKind::Wilson)?.smear(&smearing, &spinors)?;
                report.error(&scope, "smearing of spinors", relative_error(&found, &expected), tolerance);
                let found = links(FermionKind::Staggered)?.smear(&smearing, &colours)?;
                report.error(&scope, "smearing of colour vectors", relative_error(&found, &staggered), tolerance);
            }
        }
        let links = SmearingLinks::new(&domain, &gauge, FermionKind::Staggered, Precision::Double, [0.0; 3])?;
        for directions in [&[0][..], &[1], &[2], &[0, 1], &[0, 2], &[1, 2], &[0, 1, 2]] {
            let expected: Vec<_> = colours.iter().map(|chi| shifted(&gauge, chi, directions)).collect();
            let field = FullField::of_host(&domain, &colours)?;
            let found = links.shifted(std::array::from_fn(|k| directions.contains(&k)), field)?.download()?;
            let scope = Scope { format: "double".into(), detail: format!("{lattice} {directions:?}") };
            // Up to three products of unitary matrices and means of as many as 48 terms.
            report.error(&scope, "shifts of colour vectors", relative_error(&found, &expected), 2e-15);
        }
    }
    Ok(())
}
