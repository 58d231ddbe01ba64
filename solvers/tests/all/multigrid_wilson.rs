//! Multigrid on the Wilson operator of the Schwinger model in a disordered gauge field: no critical slowing down.

use crate::aggregates::{Hierarchy, Rows, Sparse, metropolis, shifted, wilson};
use crate::common::{Answer, Random, Space, dot, norm, normalised, plus};
use crate::cycles;
use crate::methods::SolveMethod::Bicgstab;
use crate::methods::solve;
use num_complex::Complex64;
use solvers::*;

type Block = Vec<Complex64>;

const SIZE: usize = 32;
const N: usize = 2 * SIZE * SIZE;
/// Near-null vectors, and so unknowns for each aggregate of one chirality.
const VECTORS: usize = 6;
const TOL: f64 = 1e-10;

/// The mass that makes a matrix singular: minus its smallest real eigenvalue, by inverse iteration with shifts next to it.
fn critical_mass(rows: &Rows) -> f64 {
    let space = Space::double(N, 1);
    let operator = Sparse::new(&space, rows);
    let (mut v, mut image) = (Random(7).vector(N), space.allocate().unwrap());
    let mut lambda = Complex64::ZERO;
    let params = SolverParams { tol: 1e-6, ..Default::default() };
    for step in 0..20 {
        // From zero first, so that it is the smallest.
        let rows = shifted(rows, if step < 6 { 0.0 } else { -0.9 * lambda.re });
        let nearer = Sparse::new(&space, &rows);
        let mut x = space.allocate().unwrap();
        solve(Bicgstab, &Uniform::new(&space, &nearer), &v, &mut x, &params, &mut ()).unwrap();
        v = normalised(&x);
        operator.apply(&v, &mut image).unwrap();
        lambda = dot(&v, &image);
    }
    let residual = plus(&image, -lambda, &v);
    // γ₅-Hermitian matrices have real eigenvalues and complex conjugate pairs; a mass cancels a real one.
    assert!(norm(&residual) < 1e-6 && lambda.im.abs() < 1e-6, "{lambda} {:e}", norm(&residual));
    -lambda.re
}

/// Makes the K-cycle of a hierarchy for `nrhs` right-hand sides, and runs something with it.
fn with_cycle<T>(
    hierarchy: &Hierarchy,
    nrhs: usize,
    run: impl FnOnce(&Space, &Sparse<'_>, &dyn Preconditioner<Space>) -> T,
) -> T {
    let spaces = hierarchy.spaces(nrhs);
    let operators = hierarchy.operators(&spaces);
    let [first, second] = hierarchy.transfers(&spaces);
    let mr = MrParams { steps: 4, omega: 0.85 };
    let smoothers = [0, 1].map(|l| MinimumResidual::on_whole(&spaces[l], &operators[l], mr).unwrap());
    // The coarsest matrix becomes as ill-conditioned as the finest. Nothing smooths there, so it is solved.
    let last = InnerGcrParams { steps: 128, tol: 0.05 };
    let coarsest = InnerGcr::new(&spaces[2], &operators[2], Identity, last).unwrap();
    let middle = Level::new(&spaces[1], &operators[1], &smoothers[1], second, &spaces[2], coarsest).unwrap();
    let coarse = InnerGcr::new(&spaces[1], &operators[1], middle, InnerGcrParams::default()).unwrap();
    let cycle = Level::new(&spaces[0], &operators[0], &smoothers[0], first, &spaces[1], coarse).unwrap();
    run(&spaces[0], &operators[0], &cycle)
}

/// Near-null vectors by relaxation, and then by the cycle itself, with ‖A v‖/‖v‖ after each step.
fn setup(rows: &Rows) -> (Vec<Block>, Vec<Vec<f64>>) {
    let space = Space::double(N, VECTORS);
    let operator = Sparse::new(&space, rows);
    let relaxation = InnerGcr::new(&space, &operator, Identity, InnerGcrParams { steps: 10, tol: 1e-6 }).unwrap();
    let mut block = [Random(11).vector(N * VECTORS)];
    let mut quotients = vec![inverse_iteration(&space, &operator, &relaxation, &mut block, 3).unwrap()];
    let cut = |block: &[Block; 1]| block[0].chunks(N).map(<[_]>::to_vec).collect::<Vec<_>>();
    for _ in 0..3 {
        let hierarchy = Hierarchy::new(rows, SIZE, [4, 2], &cut(&block));
        let step = |space: &Space, operator: &Sparse<'_>, cycle: &dyn Preconditioner<Space>| {
            inverse_iteration(space, operator, cycle, &mut block, 1)
        };
        quotients.push(with_cycle(&hierarchy, VECTORS, step).unwrap());
    }
    (cut(&block), quotients)
}

fn run_gcr(space: &Space, operator: &Sparse<'_>, k: &dyn Preconditioner<Space>, b: &Block, max: usize) -> Answer {
    let params = GcrParams { k_max: 20, ..SolverParams { tol: TOL, max_iterations: max, ..Default::default() }.into() };
    cycles::solve(&Uniform::new(space, operator), k, b, &mut space.allocate().unwrap(), &params)
}

#[test]
fn iterations_do_not_depend_on_the_mass() {
    let massless = wilson(SIZE, &metropolis(SIZE, 6.0, 200, 3));
    let critical = critical_mass(&massless);
    // Three decades, the lightest first: its near-null vectors serve all others.
    let distances = [1e-4, 1e-3, 1e-2, 1e-1];
    let (vectors, quotients) = setup(&shifted(&massless, critical + distances[0]));
    let largest = |step: usize| quotients[step].iter().copied().fold(0.0, f64::max);
    // Relaxation finds nothing as small as the smallest eigenvalue. Each adaptive step gets nearer.
    assert!(largest(0) > 0.1 && largest(1) < 0.5 * largest(0) && largest(3) < 0.5 * largest(1), "{quotients:?}");

    let b = Random(5).vector(N);
    let (mut multigrid, mut krylov) = (Vec::new(), Vec::new());
    for distance in distances {
        let rows = shifted(&massless, critical + distance);
        let hierarchy = Hierarchy::new(&rows, SIZE, [4, 2], &vectors);
        let info =
            with_cycle(&hierarchy, 1, |space, operator, cycle| run_gcr(space, operator, cycle, &b, 100)).unwrap();
        assert!(info.converged && info.worst_residual() <= TOL);
        multigrid.push(info.iterations);

        let space = Space::double(N, 1);
        let operator = Sparse::new(&space, &rows);
        let (mut x, params) = (space.allocate().unwrap(), SolverParams { tol: TOL, ..Default::default() });
        let plain = solve(Bicgstab, &Uniform::new(&space, &operator), &b, &mut x, &params, &mut ());
        krylov.push(plain.unwrap().iterations);
        // GCR without multigrid restarts before it has seen the small eigenvalues.
        let unaided = run_gcr(&space, &operator, &Identity, &b, 300);
        assert!(matches!(unaided, Err(SolveError::NoConvergence { .. })), "{distance}: {unaided:?}");
    }
    let most = |iterations: &[usize]| *iterations.iter().max().unwrap() as f64;
    let fewest = |iterations: &[usize]| *iterations.iter().min().unwrap() as f64;
    // The condition number grows by a factor of a thousand. An iteration or two may come from solvers of coarse levels that
    // stop at a tolerance of a tenth; a factor of 1.5 would be the beginning of critical slowing down.
    assert!(most(&multigrid) <= 1.5 * fewest(&multigrid), "{multigrid:?}");
    assert!(most(&multigrid) <= 20.0, "{multigrid:?}");
    assert!(most(&krylov) >= 3.0 * fewest(&krylov), "{krylov:?}");
    assert!(most(&krylov) >= 30.0 * most(&multigrid), "{krylov:?}");
}
