//! What a program of somebody else relies on: nothing is global, so that each of several backends in one process gives
//! what it gives alone; and what does not fit is an error that can be matched on.
use ferrite::backend::Cpu;
use ferrite::dirac::{TimeBoundary, WilsonParams};
use ferrite::domain::{DeviceError, Domain};
use ferrite::field::host::HostSpinor;
use ferrite::generate;
use ferrite::lattice::Lattice;
use ferrite::solve::{Configuration, IterationPrecision, Reconstruction, Request, SolveFailure, solve_wilson};
use std::sync::Barrier;

/// A solve on a backend of its own.
fn solve(threads: usize, mass: f64, seed: u64) -> (Vec<HostSpinor>, usize) {
    let lattice = Lattice::new([4, 4, 4, 8]).unwrap();
    let domain = Domain::single(Cpu::new(Some(threads)), lattice).unwrap();
    let gauge = generate::weak_field(lattice, seed, 0.2);
    let source = generate::random_source(lattice, seed);
    let operator = WilsonParams::from_mass(mass, TimeBoundary::Antiperiodic);
    let request = Request { precision: IterationPrecision::Single, ..Request::new(operator) };
    let (solutions, report) = solve_wilson(&domain, &gauge, &[source], &request, &mut ()).unwrap();
    assert!(report.converged && report.true_residual[0] <= 1e-10);
    (solutions, report.info.iterations)
}

#[test]
fn backends_side_by_side_give_the_bits_that_each_gives_alone() {
    // Different work, so that a sum that went astray is one too many.
    let work = [(1, 0.05, 7), (2, 0.3, 8), (3, 0.1, 9)];
    let alone = work.map(|(threads, mass, seed)| solve(threads, mass, seed));
    let start = Barrier::new(work.len());
    let together = std::thread::scope(|scope| {
        let begin = |(threads, mass, seed)| {
            let start = &start;
            scope.spawn(move || {
                start.wait();
                (0..3).map(|_| solve(threads, mass, seed)).collect::<Vec<_>>()
            })
        };
        work.map(begin).map(|thread| thread.join().unwrap())
    });
    for (alone, together) in alone.iter().zip(&together) {
        assert!(together.iter().all(|one| one == alone));
    }
}

#[test]
fn the_number_of_threads_does_not_change_a_bit() {
    let one = solve(1, 0.05, 7);
    assert!([2, 3, 8].iter().all(|threads| solve(*threads, 0.05, 7) == one));
}

#[test]
fn what_does_not_fit_is_an_error() {
    let lattice = Lattice::new([4, 4, 4, 8]).unwrap();
    let other = Lattice::new([4, 4, 4, 4]).unwrap();
    let domain = Domain::single(Cpu::new(Some(1)), lattice).unwrap();
    let (gauge, source) = (generate::weak_field(lattice, 7, 0.1), HostSpinor::zero(lattice));
    let usual = Request::new(WilsonParams::from_mass(0.1, TimeBoundary::Antiperiodic));
    let temporal = Request { reconstruction: Reconstruction::TwelveTemporal, ..usual };

    for request in [usual, temporal] {
        let device = |solved| match solved {
            Err(SolveFailure::Device(error)) => error,
            other => panic!("{other:?}"),
        };
        let configuration = Configuration::new(&domain, &gauge);
        let solve = |sources: &[HostSpinor], guess: Option<&[HostSpinor]>| {
            device(configuration.solve(sources, guess, &request, &mut ()))
        };
        let wrong = [HostSpinor::zero(other)];
        let right = [source.clone()];
        assert!(matches!(solve(&wrong, None), DeviceError::OtherLattice { found, .. } if found == other));
        assert!(matches!(solve(&right, Some(&wrong)), DeviceError::OtherLattice { what: "a guess", .. }));
        assert!(matches!(solve(&right, Some(&[])), DeviceError::OtherCount { found: 0, expected: 1 }));
        assert!(matches!(solve(&[], None), DeviceError::RightHandSides(0)));
        assert!(matches!(solve(&vec![source.clone(); 65], None), DeviceError::RightHandSides(65)));
        let elsewhere = generate::weak_field(other, 7, 0.1);
        let error = device(solve_wilson(&domain, &elsewhere, &right, &request, &mut ()));
        assert_eq!(error.to_string(), "a gauge field is on a lattice of 4×4×4×4, where it has to be on one of 4×4×4×8");
    }
}
