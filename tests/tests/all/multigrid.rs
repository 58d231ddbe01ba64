//! Multigrid on the CPU.
use comms::Threads;
use ferrite::backend::Cpu;
use ferrite::domain::Domain;
use ferrite::field::host::{HostGauge, HostSpinor};
use ferrite::gauge::generate;
use ferrite::lattice::Lattice;
use ferrite::multigrid::MultigridParams;
use ferrite::operators::{CloverParams, TimeBoundary, WilsonParams};
use ferrite::solve::{Configuration, Method, Request, solve};
use ferrite_tests::checks::{self, Aggregation};
use ferrite_tests::cut;
use ferrite_tests::report::CheckReport;
use ferrite_tests::testkit::{on_cpu, on_grid};

#[test]
fn levels_belong_together() {
    on_cpu(checks::multigrid);
    on_cpu(checks::restriction);
}

#[test]
fn levels_belong_together_where_the_lattice_is_cut() {
    let cases = [
        // Coarse parts that are so thin that all hops leave them, and one with an interior on both levels.
        ([4, 4, 4, 8], [1, 1, 1, 2], [2, 2, 2, 2], [1, 1, 1, 1]),
        ([12, 4, 4, 16], [1, 1, 1, 2], [3, 2, 1, 1], [1, 1, 2, 1]),
        ([8, 4, 8, 4], [2, 1, 2, 1], [2, 1, 2, 1], [1, 2, 1, 2]),
        ([4, 12, 4, 8], [1, 3, 1, 2], [1, 2, 2, 2], [2, 1, 1, 1]),
    ];
    for (size, grid, block, below) in cases {
        let lattice = Lattice::new(size).unwrap();
        let gauge = generate::weak_field(lattice, 7, 0.4);
        let reports = Threads::run(grid.iter().product(), |world| {
            let domain = cut::domain(Cpu::new(Some(1)), lattice, grid, world)?;
            let mut report = CheckReport::default();
            let links = cut::links_of(&domain.section(), &gauge);
            checks::multigrid_levels(&domain, &links, Aggregation { block, count: 8, below }, &mut report)?;
            ferrite::domain::Result::Ok(report)
        });
        reports.unwrap().iter().for_each(CheckReport::assert_passed);
    }
}

#[test]
fn solves_end_at_their_tolerance() {
    on_cpu(checks::multigrid_solves);
}

#[test]
fn every_grid_takes_as_many_iterations_as_one_process() {
    let lattice = Lattice::new([8, 8, 8, 8]).unwrap();
    let gauge = generate::weak_field(lattice, 21, 0.4);
    let wilson = WilsonParams::from_mass(-0.1, TimeBoundary::Antiperiodic);
    let clover = CloverParams { wilson, space: 1.1, time: 1.1 };
    let blocks = [Some([2, 2, 2, 2]), Some([1, 2, 1, 1]), None];
    let multigrid = MultigridParams { vectors: 8, blocks, improvements: 1, ..Default::default() };
    let request = Request { method: Method::MULTIGRID, multigrid, ..Request::new(clover) };
    let mut iterations = Vec::new();
    for grid in [[1, 1, 1, 1], [1, 1, 1, 2], [1, 1, 2, 2], [2, 1, 2, 2]] {
        let found = on_grid(grid, lattice, |domain| {
            let section = domain.section();
            let links = cut::links_of(&section, &gauge);
            let source: HostSpinor = generate::random_source(section, 22);
            let (_, claim) = solve(domain, &links, &[source], &request, &mut ()).unwrap();
            assert!(claim.converged && claim.true_residual[0] <= request.tol, "{grid:?}: {:?}", claim.true_residual);
            claim.info.iterations
        });
        assert!(found.iter().all(|n| *n == found[0]), "{grid:?}: {found:?}");
        iterations.push(found[0]);
    }
    assert!(iterations.iter().all(|n| n.abs_diff(iterations[0]) <= 1), "{iterations:?}");
}

#[test]
fn near_null_vectors_serve_other_masses() {
    let lattice = Lattice::new([4, 4, 8, 8]).unwrap();
    let gauge = generate::weak_field(lattice, 23, 0.4);
    let source: HostSpinor = generate::random_source(lattice, 24);
    let domain = Domain::single(Cpu::new(None), lattice).unwrap();
    let multigrid =
        MultigridParams { vectors: 8, blocks: [Some([2; 4]), None, None], check: true, ..Default::default() };
    let solve = |configuration: &Configuration, mass: f64| {
        let operator = WilsonParams::from_mass(mass, TimeBoundary::Antiperiodic);
        let request = Request { method: Method::MULTIGRID, multigrid, ..Request::new(operator) };
        let (_, report) = configuration.solve(std::slice::from_ref(&source), None, &request, &mut ()).unwrap();
        assert!(report.converged && report.method_changes.is_empty(), "{mass}: {report:?}");
        let levels = report.multigrid.unwrap().levels;
        (report.info.iterations, levels[0].check.unwrap())
    };
    let one = Configuration::new(&domain, &gauge);
    let first = solve(&one, -0.1);
    // A lighter one, for which they are improved, and a heavier one.
    for mass in [-0.15, 0.05] {
        let ((shared, check), (own, _)) = (solve(&one, mass), solve(&Configuration::new(&domain, &gauge), mass));
        assert!(shared <= own + 3, "{mass}: {shared} iterations, {own} with a setup of its own");
        assert!(check.galerkin < 1e-5 && check.near_null < 1e-5, "{mass}: {check:?}");
    }
    assert!(solve(&one, -0.1).0.abs_diff(first.0) <= 3);
}

/// The free field, whose near-null vectors are constants that depend on each other, a heavy quark, odd aggregates, and links that
/// are random.
#[test]
fn fields_of_all_kinds_are_solved() {
    for (name, size, block, gauge, mass) in [
        ("free", [4, 4, 4, 8], [2; 4], HostGauge::unit as fn(Lattice) -> HostGauge, 0.02),
        ("heavy", [4, 4, 8, 4], [2; 4], |lattice| generate::weak_field(lattice, 25, 0.4), 2.0),
        ("odd", [6, 6, 6, 6], [3; 4], |lattice| generate::weak_field(lattice, 26, 0.3), -0.05),
        ("rough", [4, 4, 4, 8], [2, 2, 2, 4], |lattice| generate::random(lattice, 27), -0.5),
    ] {
        let lattice = Lattice::new(size).unwrap();
        let domain = Domain::single(Cpu::new(None), lattice).unwrap();
        let sources: [HostSpinor; 2] = [28, 29].map(|seed| generate::random_source(lattice, seed));
        let multigrid = MultigridParams { vectors: 8, blocks: [Some(block), None, None], ..Default::default() };
        let operator = WilsonParams::from_mass(mass, TimeBoundary::Antiperiodic);
        let request = Request { method: Method::MULTIGRID, multigrid, ..Request::new(operator) };
        let (_, report) = solve(&domain, &gauge(lattice), &sources, &request, &mut ()).unwrap();
        assert!(report.converged && report.true_residual.iter().all(|r| *r <= request.tol), "{name}: {report:?}");
        assert!(report.info.iterations < 60 && report.method_changes.is_empty(), "{name}: {report:?}");
    }
}

#[test]
fn many_right_hand_sides_are_solved_as_each_alone() {
    let lattice = Lattice::new([4, 4, 4, 8]).unwrap();
    let gauge = generate::weak_field(lattice, 30, 0.4);
    let domain = Domain::single(Cpu::new(None), lattice).unwrap();
    let configuration = Configuration::new(&domain, &gauge);
    let multigrid = MultigridParams { vectors: 8, blocks: [Some([2; 4]), None, None], ..Default::default() };
    let operator = WilsonParams::from_mass(-0.1, TimeBoundary::Antiperiodic);
    let request = Request { method: Method::MULTIGRID, multigrid, tol: 1e-11, ..Request::new(operator) };
    // One is zero, and leaves at once; those that are harder stay.
    let sources: Vec<HostSpinor> = (0..16)
        .map(|k| match k {
            3 => HostSpinor::zero(lattice),
            7 => generate::point_source(lattice, [1, 2, 3, 0], 2, 1).unwrap(),
            _ => generate::random_source(lattice, 40 + k),
        })
        .collect();
    let solve = |sources: &[HostSpinor]| configuration.solve(sources, None, &request, &mut ()).unwrap();
    let alone: Vec<_> = sources.iter().map(|source| solve(std::slice::from_ref(source))).collect();
    for n in [2, 5, 12, 16] {
        let (solutions, report) = solve(&sources[..n]);
        assert!(report.converged, "{n}: {:?}", report.true_residual);
        for (j, (mine, (single, own))) in solutions.iter().zip(&alone).enumerate() {
            // Each is good to the tolerance times the condition of M, which is some tens here.
            let size = single[0].norm2().sqrt();
            let difference = distance(mine, &single[0]);
            assert!(difference <= 1e-9 * size, "{n}, {j}: {difference:e} of {size:e}");
            let (together, alone) = (report.info.iterations_per_rhs[j], own.info.iterations);
            assert!(together.abs_diff(alone) <= 2, "{n}, {j}: {together} iterations, {alone} alone");
        }
    }
}

/// ‖x − y‖
fn distance(x: &HostSpinor, y: &HostSpinor) -> f64 {
    let pairs = x.numbers().iter().zip(y.numbers());
    pairs.map(|(x, y)| (x - y).norm_sqr()).sum::<f64>().sqrt()
}
