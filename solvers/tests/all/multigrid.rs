//! Levels of multigrid: transfers, coarse operators, cycles, and the setup of near-null vectors.

use crate::aggregates::{self, AggregateVectors, BlockTransfer, Hierarchy, Sparse, metropolis, wilson};
use crate::common::{
    Broken, Dense, Random, Rounding, Space, c, direct, distance, dot, general, inverse, norm, normalised, plus,
    positive, product, residual, with_spectrum,
};
use crate::cycles;
use num_complex::Complex64;
use solvers::*;
use std::cell::Cell;
use std::ops::ControlFlow;

type Block = Vec<Complex64>;

const N: usize = 48;

fn sets(size: usize) -> Vec<Vec<usize>> {
    // Not ranges: aggregate a has every n-th index.
    let count = N / size;
    (0..count).map(|a| (0..size).map(|i| a + i * count).collect()).collect()
}

/// Aggregates of `size` numbers with as many random vectors.
fn aggregates(size: usize, vectors: usize, seed: u64) -> (AggregateVectors, Vec<Block>) {
    let mut random = Random(seed);
    let vectors: Vec<Block> = (0..vectors).map(|_| random.vector(N)).collect();
    (AggregateVectors::new(&sets(size), &vectors), vectors)
}

/// The columns of P, and so P dense.
fn columns(aggregates: &AggregateVectors) -> Vec<Block> {
    let column = |k: usize| {
        let (mut unit, mut column) = (vec![Complex64::ZERO; aggregates.coarse_n()], vec![Complex64::ZERO; N]);
        unit[k] = Complex64::ONE;
        aggregates.prolong(&unit, &mut column);
        column
    };
    (0..aggregates.coarse_n()).map(column).collect()
}

/// P† A P by loops over dense columns.
fn dense_galerkin(a: &[Complex64], columns: &[Block]) -> Block {
    let images: Vec<_> = columns.iter().map(|column| product(a, column)).collect();
    columns.iter().flat_map(|left| images.iter().map(|image| dot(left, image)).collect::<Vec<_>>()).collect()
}

/// A given matrix as a preconditioner.
struct Matrix {
    matrix: Block,
    n: usize,
    needs_norms: bool,
    narrows: bool,
    /// Calls that came with norms.
    norms: Cell<usize>,
}

impl Matrix {
    fn new(matrix: Block) -> Self {
        Self { n: matrix.len().isqrt(), matrix, needs_norms: false, narrows: true, norms: Cell::new(0) }
    }
}

impl Preconditioner<Space> for Matrix {
    fn apply(&self, space: &Space, r: &Block, norms: &[f64], z: &mut Block) -> Result<Work, Broken> {
        self.norms.set(self.norms.get() + usize::from(!norms.is_empty()));
        for j in 0..space.nrhs() {
            let (size, rounding) =
                (norm(space.rhs(r, j)), if space.precision == Rounding::Double { 1e-12 } else { 1e-3 });
            assert!(norms.get(j).is_none_or(|given| (given - size).abs() <= rounding * size));
            z[j * self.n..][..self.n].copy_from_slice(&product(&self.matrix, space.rhs(r, j)));
        }
        space.round(z);
        Ok(Work { calls: 1, iterations: 1, ..Work::default() })
    }
    fn needs_norms(&self) -> bool {
        self.needs_norms
    }
    fn narrow(&self, _: usize) -> bool {
        self.narrows
    }
}

#[test]
fn checks_of_transfer_and_coarse_operator() {
    let (aggregates, vectors) = aggregates(8, 3, 5);
    let columns = columns(&aggregates);
    let a = general(N, 0.9, 3);
    let coarse_a = dense_galerkin(&a, &columns);
    let (fine, coarse) = (Space::double(N, 3), Space::double(aggregates.coarse_n(), 3));
    let (operator, coarse_operator) = (Dense::new(&fine, &a), Dense::new(&coarse, &coarse_a));
    let transfer = BlockTransfer::new(&fine, &coarse, &aggregates);
    let v = Random(9).vector(3 * coarse.n);
    let errors = galerkin_error(&fine, &operator, &coarse, &coarse_operator, &transfer, &v).unwrap();
    assert!(errors.len() == 3 && errors.iter().all(|error| *error < 1e-14), "{errors:?}");
    let errors = orthonormality_error(&fine, &coarse, &transfer, &v).unwrap();
    assert!(errors.iter().all(|error| *error < 1e-14), "{errors:?}");
    // The vectors themselves are in the range of P, others are not.
    let errors = projection_error(&fine, &coarse, &transfer, &vectors.concat()).unwrap();
    assert!(errors.iter().all(|error| *error < 1e-14), "{errors:?}");
    let mut others = Random(10).vector(3 * N);
    others[N..2 * N].fill(Complex64::ZERO);
    others[2 * N + 7] = c(f64::NAN, 0.0);
    let errors = projection_error(&fine, &coarse, &transfer, &others).unwrap();
    let inside: f64 = columns.iter().map(|column| dot(column, fine.rhs(&others, 0)).norm_sqr()).sum();
    let expected = (1.0 - inside / norm(fine.rhs(&others, 0)).powi(2)).sqrt();
    assert!((errors[0] - expected).abs() < 1e-12 && errors[1] == 0.0 && errors[2].is_nan(), "{errors:?} {expected}");
    // A coarse operator of half the size.
    let half: Block = coarse_a.iter().map(|a| 0.5 * a).collect();
    let errors = galerkin_error(&fine, &operator, &coarse, &Dense::new(&coarse, &half), &transfer, &v).unwrap();
    assert!(errors.iter().all(|error| (error - 1.0).abs() < 1e-13), "{errors:?}");
    // The sparse triple product of the tests is the dense one.
    let rows = (0..N).map(|i| (0..N).map(|k| (k, a[i * N + k])).collect()).collect();
    for (i, row) in aggregates.galerkin(&rows).iter().enumerate() {
        assert!(row.iter().all(|(k, entry)| (entry - coarse_a[i * coarse.n + k]).norm() < 1e-14));
    }
}

#[test]
fn with_everything_in_the_coarse_space_a_level_is_exact() {
    for size in [2, 4] {
        let (aggregates, _) = aggregates(size, size, 5);
        assert_eq!(aggregates.coarse_n(), N);
        let a = general(N, 0.9, 3);
        let coarse_a = dense_galerkin(&a, &columns(&aggregates));
        let (fine, coarse) = (Space::double(N, 2), Space::double(N, 2));
        let (operator, coarse_operator) = (Dense::new(&fine, &a), Dense::new(&coarse, &coarse_a));
        let solver =
            InnerGcr::new(&coarse, &coarse_operator, Identity, InnerGcrParams { steps: N, tol: 1e-12 }).unwrap();
        let smoother = MinimumResidual::on_whole(&fine, &operator, MrParams { steps: 2, omega: 1.0 }).unwrap();
        let level = || {
            let transfer = BlockTransfer::new(&fine, &coarse, &aggregates);
            Level::new(&fine, &operator, &smoother, transfer, &coarse, &solver).unwrap()
        };
        let r = Random(8).vector(2 * N);
        for level in [level(), level().with_pre_smoother(&smoother)] {
            let mut z = Random(9).vector(2 * N);
            level.apply(&fine, &r, &[], &mut z).unwrap();
            for (r, z) in r.chunks(N).zip(z.chunks(N)) {
                assert!(distance(z, &direct(&a, r)) < 1e-10, "{:e}", distance(z, &direct(&a, r)));
            }
            // So GCR has nothing left to do after one iteration.
            let mut x = fine.allocate().unwrap();
            let params = GcrParams { k_max: 4, ..SolverParams::default().into() };
            let info = cycles::solve(&Uniform::new(&fine, &operator), &level, &r, &mut x, &params).unwrap();
            assert_eq!(info.iterations, 1);
        }
    }
}

#[test]
fn a_level_is_its_formula() {
    let (aggregates, _) = aggregates(8, 3, 5);
    let columns = columns(&aggregates);
    let a = general(N, 0.9, 3);
    let coarse_a = dense_galerkin(&a, &columns);
    let nrhs = 2;
    let fine = Space::double(N, nrhs);
    let operator = Dense::new(&fine, &a);
    let r = Random(8).vector(nrhs * N);
    let norms: Vec<f64> = r.chunks(N).map(norm).collect();
    let (before, after) = (general(N, 0.4, 11), general(N, 0.3, 12));
    let k = inverse(&coarse_a);
    // Steps 1 to 3 by hand.
    let expected = |r: &[Complex64], pre: bool| {
        let mut z = if pre { product(&before, r) } else { vec![Complex64::ZERO; N] };
        let rho = plus(r, -1.0, &product(&a, &z));
        let coarse: Block = columns.iter().map(|column| dot(column, &rho)).collect();
        for (e, column) in product(&k, &coarse).iter().zip(&columns) {
            z = plus(&z, *e, column);
        }
        let rho = plus(r, -1.0, &product(&a, &z));
        plus(&z, 1.0, &product(&after, &rho))
    };
    for precision in [Rounding::Double, Rounding::Narrow] {
        let coarse = Space::new(aggregates.coarse_n(), nrhs, precision);
        // Far from the range of 16 bits, and in it.
        for scale in [1e-20, 1.0, 1e20] {
            let r: Block = r.iter().map(|r| scale * r).collect();
            let norms: Vec<f64> = norms.iter().map(|norm| scale * norm).collect();
            for (pre, needs_norms) in [(false, false), (false, true), (true, false), (true, true)] {
                let mut smoothers = [Matrix::new(before.clone()), Matrix::new(after.clone())];
                let mut solver = Matrix::new(k.clone());
                solver.needs_norms = needs_norms;
                smoothers.iter_mut().for_each(|smoother| smoother.needs_norms = needs_norms);
                let transfer = BlockTransfer::new(&fine, &coarse, &aggregates);
                let mut level = Level::new(&fine, &operator, &smoothers[1], transfer, &coarse, &solver).unwrap();
                if pre {
                    level = level.with_pre_smoother(&smoothers[0]);
                }
                let narrow = precision == Rounding::Narrow;
                assert_eq!(level.needs_norms(), if pre { needs_norms } else { narrow });
                let mut z = vec![c(f64::NAN, 0.0); nrhs * N];
                let reductions = (fine.reductions.get(), coarse.reductions.get(), operator.applications.get());
                let given: &[f64] = if level.needs_norms() { &norms } else { &[] };
                let work = level.apply(&fine, &r, given, &mut z).unwrap();
                for (r, z) in r.chunks(N).zip(z.chunks(N)) {
                    let tolerance = if narrow { 1e-2 } else { 1e-12 };
                    assert!(distance(z, &expected(r, pre)) < tolerance, "{precision:?} {scale:e} {pre}");
                }
                // Norms come from reductions, but only for those who need them.
                let by_fine = usize::from(pre && narrow) + usize::from(needs_norms);
                assert_eq!(fine.reductions.get() - reductions.0, by_fine, "{precision:?} {pre} {needs_norms}");
                assert_eq!(coarse.reductions.get() - reductions.1, usize::from(needs_norms));
                assert_eq!(work.reductions, by_fine + usize::from(needs_norms));
                assert_eq!(operator.applications.get() - reductions.2, 1 + usize::from(pre));
                assert_eq!(work.applications, 1 + usize::from(pre));
                assert_eq!((work.calls, work.iterations), (1, 1));
                let transferred = 2.0 * 8.0 * (3 * N) as f64;
                assert_eq!(work.flops, transferred + work.applications as f64 * operator.flops());
                let counted = if needs_norms { 1 } else { 0 };
                assert_eq!((solver.norms.get(), smoothers[1].norms.get()), (counted, counted));
            }
        }
    }
}

/// A Wilson operator on 8² sites and its hierarchy of three levels.
fn small_wilson() -> Hierarchy {
    let rows = aggregates::shifted(&wilson(8, &metropolis(8, 4.0, 50, 2)), 0.05);
    let n = rows.len();
    let space = Space::double(n, 3);
    let operator = Sparse::new(&space, &rows);
    let relaxation = InnerGcr::new(&space, &operator, Identity, InnerGcrParams { steps: 8, tol: 1e-6 }).unwrap();
    let mut block = [Random(11).vector(3 * n)];
    inverse_iteration(&space, &operator, &relaxation, &mut block, 3).unwrap();
    let vectors: Vec<_> = block[0].chunks(n).map(<[_]>::to_vec).collect();
    Hierarchy::new(&rows, 8, [2, 2], &vectors)
}

/// Solution, reports and counts of a solve with a K-cycle of three levels.
struct KCycleSolve {
    x: Block,
    info: Info,
    reports: [LevelReport; 4],
    /// Applications on each level, and right-hand sides in them.
    applications: [usize; 3],
    rhs: [usize; 3],
    widths: [usize; 3],
    flops: f64,
}

/// Solves by GCR from the guess `x`, in a K-cycle where coarse levels can become narrower if `narrows` says so.
fn solve(hierarchy: &Hierarchy, b: &Block, mut x: Block, tol: f64, narrows: bool) -> KCycleSolve {
    let nrhs = b.len() / hierarchy.rows[0].len();
    let spaces = hierarchy.spaces(nrhs);
    let operators = hierarchy.operators(&spaces);
    let [first, mut second] = hierarchy.transfers(&spaces);
    second.narrows = narrows;
    let mr = MrParams { steps: 3, omega: 0.85 };
    let smoother = MinimumResidual::on_whole(&spaces[0], &operators[0], mr).unwrap();
    let other = CaGcr::new(&spaces[1], &operators[1], CaGcrParams::default()).unwrap();
    let last = InnerGcrParams { steps: 24, tol: 0.05 };
    let coarsest = InnerGcr::new(&spaces[2], &operators[2], Identity, last).unwrap();
    let middle = Level::new(&spaces[1], &operators[1], &other, &second, &spaces[2], &coarsest).unwrap();
    let middle = middle.with_pre_smoother(&other);
    let inner = InnerGcrParams { steps: 4, tol: 0.02 };
    let coarse = InnerGcr::new(&spaces[1], &operators[1], &middle, inner).unwrap();
    let cycle = Level::new(&spaces[0], &operators[0], &smoother, &first, &spaces[1], &coarse).unwrap();
    let system = Uniform::new(&spaces[0], &operators[0]);
    let mut workspace = GcrWorkspace::new(&system, 16).unwrap();
    let allocations: usize = spaces.iter().map(|space| space.allocations.get()).sum();
    let params = SolverParams { tol, ..Default::default() }.into();
    let info = gcr(&system, &cycle, b, &mut x, &params, &mut workspace, &mut ()).unwrap();
    assert_eq!(spaces.iter().map(|space| space.allocations.get()).sum::<usize>(), allocations);
    let transfers = cycle.report().calls as f64 * 2.0 * TransferOperator::<Space, Space>::flops(&first)
        + middle.report().calls as f64 * 2.0 * TransferOperator::<Space, Space>::flops(&second);
    let applied: f64 = operators.iter().map(|a| a.applications.get() as f64 * a.flops()).sum();
    KCycleSolve {
        x,
        info,
        reports: [cycle.report(), coarse.report(), middle.report(), coarsest.report()],
        applications: operators.each_ref().map(|a| a.applications.get()),
        rhs: operators.each_ref().map(|a| a.rhs.get()),
        widths: spaces.each_ref().map(|space| space.width.get()),
        flops: applied + transfers,
    }
}

#[test]
fn k_cycles_of_three_levels() {
    let hierarchy = small_wilson();
    let n = hierarchy.rows[0].len();
    let b = Random(5).vector(n);
    let done = solve(&hierarchy, &b, vec![Complex64::ZERO; n], 1e-10, true);
    let a: Block = hierarchy.rows[0]
        .iter()
        .flat_map(|row| (0..n).map(|k| row.get(&k).copied().unwrap_or_default()).collect::<Vec<_>>())
        .collect();
    assert!(residual(&a, &b, &done.x) <= 1e-10 && distance(&done.x, &direct(&a, &b)) < 1e-7);
    assert!(done.info.iterations <= 15, "{}", done.info.iterations);
    // Each level is called as often as that above it iterates.
    let [cycle, coarse, middle, coarsest] = done.reports;
    assert_eq!(cycle.calls, done.info.iterations);
    assert_eq!((cycle.iterations, coarse.calls), (coarse.iterations, cycle.calls));
    assert_eq!((middle.calls, coarsest.calls), (coarse.iterations, middle.calls));
    assert_eq!(middle.iterations, coarsest.iterations);
    assert!(coarse.iterations > coarse.calls && coarsest.iterations > coarsest.calls);
    assert!(cycle.seconds >= coarse.seconds && coarse.seconds >= middle.seconds && middle.seconds >= coarsest.seconds);
    // Work counts what the operators have counted, but for what GCR does itself.
    let work = done.info.preconditioner;
    let own = done.info.sloppy_applications + done.info.precise_applications;
    assert_eq!(done.applications.iter().sum::<usize>(), work.applications + own);
    assert!((done.info.flops / done.flops - 1.0).abs() < 1e-12, "{} {}", done.info.flops, done.flops);
    assert_eq!((work.calls, work.iterations), (cycle.calls, cycle.calls));
}

#[test]
fn right_hand_sides_in_a_block_equal_single_ones() {
    let hierarchy = small_wilson();
    let (n, nrhs) = (hierarchy.rows[0].len(), 5);
    let zeros = |nrhs: usize| vec![Complex64::ZERO; nrhs * n];
    let mut b = Random(5).vector(nrhs * n);
    b[2 * n..3 * n].iter_mut().for_each(|b| *b *= 1e12);
    b[3 * n..4 * n].fill(Complex64::ZERO);
    let block = solve(&hierarchy, &b, zeros(nrhs), 1e-10, false);
    for j in 0..nrhs {
        let b = b[j * n..][..n].to_vec();
        let alone = solve(&hierarchy, &b, zeros(1), 1e-10, false);
        let x = &block.x[j * n..][..n];
        assert!(norm(&alone.x) == 0.0 && norm(x) == 0.0 || distance(x, &alone.x) < 1e-9, "{j}");
        let (together, iterations) = (block.info.iterations_per_rhs[j], alone.info.iterations);
        assert_eq!(together, iterations, "{j}");
    }
}

#[test]
fn finished_right_hand_sides_leave_all_levels_or_none() {
    let hierarchy = small_wilson();
    let (n, nrhs) = (hierarchy.rows[0].len(), 8);
    let b = Random(5).vector(nrhs * n);
    let zeros = vec![Complex64::ZERO; nrhs * n];
    // Guesses that leave little or nothing to do for most.
    let mut guess = solve(&hierarchy, &b, zeros, 1e-12, true).x;
    for j in [1, 4, 6] {
        guess[j * n..][..n].fill(Complex64::ZERO);
    }
    let all = solve(&hierarchy, &b, guess.clone(), 1e-10, false);
    let few = solve(&hierarchy, &b, guess, 1e-10, true);
    for (done, narrows) in [(&all, false), (&few, true)] {
        assert!(done.info.worst_residual() <= 1e-10);
        assert_eq!(done.widths, [nrhs; 3], "spaces have their width again");
        for level in 0..3 {
            let full = nrhs * done.applications[level];
            assert!(if narrows { 2 * done.rhs[level] < full } else { done.rhs[level] == full }, "{narrows} {level}");
        }
    }
    assert!(distance(&few.x, &all.x) < 1e-8);
    assert_eq!(few.info.iterations_per_rhs, all.info.iterations_per_rhs);
}

#[test]
fn a_level_becomes_narrower_with_all_that_it_has_or_not_at_all() {
    let (aggregates, _) = aggregates(8, 3, 5);
    let a = general(N, 0.9, 3);
    let r = Random(8).vector(4 * N);
    for refuses in 0..6 {
        let (fine, coarse) = (Space::double(N, 4), Space::double(aggregates.coarse_n(), 4));
        let mut operator = Dense::new(&fine, &a);
        let mut transfer = BlockTransfer::new(&fine, &coarse, &aggregates);
        let mut matrices = [0, 1].map(|seed| Matrix::new(general(N, 0.3, seed)));
        let mut solver = Matrix::new(general(coarse.n, 0.3, 2));
        match refuses {
            1 => operator.nan = Some((9, 999)),
            2 => transfer.narrows = false,
            3 => matrices[0].narrows = false,
            4 => matrices[1].narrows = false,
            5 => solver.narrows = false,
            _ => {}
        }
        let level = Level::new(&fine, &operator, &matrices[0], transfer, &coarse, &solver).unwrap();
        let level = level.with_pre_smoother(&matrices[1]);
        let mut wide = vec![Complex64::ZERO; 4 * N];
        level.apply(&fine, &r, &[], &mut wide).unwrap();
        let expected = if refuses == 0 { 2 } else { 4 };
        assert_eq!(level.narrow(2), refuses == 0);
        assert_eq!((fine.nrhs(), coarse.nrhs()), (expected, expected), "{refuses}");
        let mut z = vec![Complex64::ZERO; 4 * N];
        level.apply(&fine, &r, &[], &mut z).unwrap();
        assert!(z[..expected * N] == wide[..expected * N] && norm(&z[expected * N..]) == 0.0, "{refuses}");
    }
}

#[test]
fn v_cycles_and_smoothers_of_any_kind() {
    let hierarchy = small_wilson();
    let spaces = hierarchy.spaces(1);
    let operators = hierarchy.operators(&spaces);
    let [first, second] = hierarchy.transfers(&spaces);
    let mr = MinimumResidual::on_whole(&spaces[0], &operators[0], MrParams { steps: 2, omega: 0.9 }).unwrap();
    let ca = CaGcr::new(&spaces[0], &operators[0], CaGcrParams { basis: 3, ..Default::default() }).unwrap();
    let smoother = MinimumResidual::on_whole(&spaces[1], &operators[1], MrParams { steps: 3, omega: 0.9 }).unwrap();
    let ca_params = CaGcrParams { basis: 6, max_cycles: 4, tol: 0.05 };
    let coarsest = CaGcr::new(&spaces[2], &operators[2], ca_params).unwrap();
    let middle = Level::new(&spaces[1], &operators[1], smoother, second, &spaces[2], coarsest).unwrap();
    let post: &dyn Preconditioner<Space> = &ca;
    let cycle = Level::new(&spaces[0], &operators[0], post, first, &spaces[1], middle).unwrap();
    let cycle = cycle.with_pre_smoother(&mr);
    let b = Random(5).vector(spaces[0].n);
    let system = Uniform::new(&spaces[0], &operators[0]);
    let mut workspace = GcrWorkspace::new(&system, 16).unwrap();
    let mut iterations = |k: &dyn Preconditioner<Space>| {
        let mut x = spaces[0].allocate().unwrap();
        gcr(&system, k, &b, &mut x, &GcrParams::default(), &mut workspace, &mut ()).unwrap().iterations
    };
    let (v_cycle, plain) = (iterations(&cycle), iterations(&Identity));
    assert!(v_cycle <= 15 && 4 * v_cycle < plain, "{v_cycle} {plain}");
    assert_eq!(cycle.coarse().report().calls, cycle.report().calls);
    cycle.reset_report();
    assert_eq!(cycle.report(), LevelReport::default());
}

#[test]
fn what_is_not_a_number_stays_in_its_right_hand_side() {
    let hierarchy = small_wilson();
    let (n, nrhs) = (hierarchy.rows[0].len(), 3);
    let spaces = hierarchy.spaces(nrhs);
    let operators = hierarchy.operators(&spaces);
    let [first, _] = hierarchy.transfers(&spaces);
    let smoother = MinimumResidual::on_whole(&spaces[0], &operators[0], MrParams::default()).unwrap();
    let coarse = InnerGcr::new(&spaces[1], &operators[1], Identity, InnerGcrParams::default()).unwrap();
    let cycle = Level::new(&spaces[0], &operators[0], smoother, first, &spaces[1], coarse).unwrap();
    let r = Random(5).vector(nrhs * n);
    let (mut healthy, mut broken) = (r.clone(), r.clone());
    cycle.apply(&spaces[0], &r, &[], &mut healthy).unwrap();
    let mut r = r;
    r[n + 3] = c(f64::NAN, 0.0);
    cycle.apply(&spaces[0], &r, &[], &mut broken).unwrap();
    assert!(broken[..n] == healthy[..n] && broken[2 * n..] == healthy[2 * n..] && norm(&broken[n..2 * n]).is_nan());
}

#[test]
fn inverse_iteration_finds_the_smallest_eigenvalue() {
    let values: Vec<_> = (0..N).map(|i| if i == 0 { c(0.01, 0.02) } else { c(0.3 + 0.1 * i as f64, 0.1) }).collect();
    let a = with_spectrum(&values, 3);
    for precision in [Rounding::Double, Rounding::Narrow] {
        let space = Space::new(N, 2, precision);
        let operator = Dense::new(&space, &a);
        // With an eighth of A⁻¹ in 16 bits, that what it enlarges stays in their range.
        let exact = Matrix::new(inverse(&a).iter().map(|a| a / 8.0).collect());
        let size = space.target_norm().unwrap_or(1.0);
        let scale = size / (N as f64).sqrt();
        let mut blocks: Vec<Block> =
            (0..2).map(|seed| Random(seed).vector(2 * N).iter().map(|v| scale * v).collect()).collect();
        // Zero stays zero.
        blocks[1][N..].fill(Complex64::ZERO);
        let few = inverse_iteration(&space, &operator, &exact, &mut blocks, 1).unwrap();
        let quotients = inverse_iteration(&space, &operator, &exact, &mut blocks, 8).unwrap();
        let tolerance = if precision == Rounding::Double { 1e-9 } else { 1e-3 };
        for (quotient, few) in quotients.iter().zip(&few).take(3) {
            let smallest = values[0].norm();
            assert!(
                (quotient / smallest - 1.0).abs() < tolerance && few > quotient,
                "{precision:?} {quotients:?} {few:?}"
            );
        }
        assert!(quotients.len() == 4 && quotients[3] == 0.0 && norm(&blocks[1][N..]) == 0.0);
        assert!((norm(&blocks[1][..N]) / size - 1.0).abs() < 1e-3);
        let nothing = inverse_iteration(&space, &operator, &exact, &mut blocks, 0);
        assert!(matches!(nothing, Err(SolveError::Invalid(_))));
    }
}

/// A search ends at the step after which it is asked to: of 2 blocks with 3 iterations each, in the fourth one.
#[test]
fn searches_end_where_they_are_asked_to() {
    let a = general(N, 0.5, 3);
    let space = Space::double(N, 2);
    let (operator, exact) = (Dense::new(&space, &a), Matrix::new(inverse(&a)));
    let mut blocks = [Random(1).vector(2 * N), Random(2).vector(2 * N)];
    let mut steps = 0;
    let mut after = || {
        steps += 1;
        if steps == 4 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    };
    let ended = inverse_iteration_while(&space, &operator, &exact, &mut blocks, 3, &mut after);
    assert!(matches!(ended, Err(SolveError::Cancelled { .. })), "{ended:?}");
    assert_eq!(steps, 4);
    // What it leaves are vectors of norm 1.
    for v in blocks[0].chunks(N).chain(blocks[1].chunks(N)) {
        assert!((norm(v) - 1.0).abs() < 1e-12);
    }

    struct Third(usize);
    impl Observer for Third {
        fn iteration(&mut self, _: &Iteration<'_>) -> ControlFlow<()> {
            unreachable!("there is no solve")
        }
        fn step(&mut self, step: &Step<'_>) -> ControlFlow<()> {
            assert_eq!(*step, Step { work: "largest eigenvalue", done: None });
            self.0 += 1;
            if self.0 == 3 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        }
    }
    let (space, mut observer) = (Space::double(N, 1), Third(0));
    let operator = Dense::new(&space, &positive(N, 100.0, 3));
    let ended = largest_eigenvalue(&space, &operator, &mut Random(3).vector(N), 10, 0.0, &mut observer);
    assert!(matches!(ended, Err(SolveError::Cancelled { iteration: 3, .. })), "{ended:?}");
    assert_eq!(observer.0, 3);
}

#[test]
fn useless_answers_leave_near_null_vectors_as_they_are() {
    let a = general(N, 0.5, 3);
    let space = Space::double(N, 3);
    let operator = Dense::new(&space, &a);
    /// Identity, but for the second and third right-hand side.
    struct Useless;
    impl Preconditioner<Space> for Useless {
        fn apply(&self, space: &Space, r: &Block, _: &[f64], z: &mut Block) -> Result<Work, Broken> {
            space.copy(r, z)?;
            z[N + 1] = c(f64::INFINITY, 0.0);
            z[2 * N..].fill(Complex64::ZERO);
            Ok(Work::default())
        }
    }
    let mut blocks = [Random(1).vector(3 * N), Random(2).vector(3 * N)];
    blocks[0][2 * N] = c(f64::NAN, 0.0);
    let before = blocks.clone();
    let quotients = inverse_iteration(&space, &operator, &Useless, &mut blocks, 2).unwrap();
    assert!(quotients[2].is_nan() && quotients.iter().enumerate().all(|(at, q)| at == 2 || *q > 0.0), "{quotients:?}");
    for (block, before) in blocks.iter().zip(&before) {
        for (v, before) in block.chunks(N).zip(before.chunks(N)).take(2) {
            assert!(distance(v, &normalised(before)) < 1e-14);
        }
    }
}

#[test]
fn spaces_of_a_level_have_the_same_right_hand_sides() {
    let (aggregates, _) = aggregates(8, 3, 5);
    let (fine, coarse) = (Space::double(N, 2), Space::double(aggregates.coarse_n(), 3));
    let a = general(N, 0.9, 3);
    let operator = Dense::new(&fine, &a);
    let transfer = BlockTransfer::new(&fine, &coarse, &aggregates);
    let level = Level::new(&fine, &operator, Identity, transfer, &coarse, Identity);
    assert!(matches!(level.err(), Some(SolveError::Invalid(_))));
}

#[test]
fn orthonormal_blocks_span_what_they_did() {
    const LENGTH: usize = 40;
    let space = PlainSpace::with_nrhs(LENGTH, 3);
    let mut random = Random(91);
    let mut blocks: Vec<Block> = (0..3).map(|_| random.vector(3 * LENGTH)).collect();
    // The last vector depends on two of others blocks.
    for k in 0..LENGTH {
        blocks[2][2 * LENGTH + k] = blocks[0][k] - c(0.5, 2.0) * blocks[1][LENGTH + k];
    }
    let before = blocks.concat();
    orthonormalise(&space, &mut blocks).unwrap();
    let after = blocks.concat();
    let vectors = |all: &'static str, of: &Block| -> Vec<Block> {
        assert_eq!(of.len(), 9 * LENGTH, "{all}");
        of.chunks(LENGTH).map(<[_]>::to_vec).collect()
    };
    let (before, after) = (vectors("before", &before), vectors("after", &after));
    for (i, x) in after.iter().enumerate() {
        for (j, y) in after.iter().enumerate() {
            let expected = if i == j && i < 8 { 1.0 } else { 0.0 };
            assert!((dot(x, y) - expected).norm() < 1e-14, "({i}, {j}): {}", dot(x, y));
        }
    }
    for x in &before {
        let rest = after.iter().fold(x.clone(), |rest, q| plus(&rest, -dot(q, x), q));
        assert!(norm(&rest) < 1e-13 * norm(x), "{}", norm(&rest));
    }
}
