//! Several backends in one process: nothing is global, so that each gives what it gives alone.
use ferrite::backend::Cpu;
use ferrite::dirac::{TimeBoundary, WilsonParams};
use ferrite::domain::Domain;
use ferrite::field::host::HostSpinor;
use ferrite::generate;
use ferrite::lattice::Lattice;
use ferrite::solve::{IterationPrecision, Request, solve_wilson};
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
