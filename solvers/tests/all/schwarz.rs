//! Minimum residual in domains, and GCR with it: GCR-DD on a Dirac operator in two dimensions.

use crate::common::{
    Broken, Dense, Random, Rounding, Space, c, direct, distance, dot, general, norm, plus, product, residual, uniform,
};
use crate::cycles;
use crate::domains::{COLUMN, DiagonalBlocks, Extended, decoupled, schwinger};
use num_complex::Complex64;
use solvers::*;
use std::cell::RefCell;

type Block = Vec<Complex64>;

const COLUMNS: usize = 16;
const N: usize = COLUMNS * COLUMN;

fn steps(steps: usize) -> MrParams {
    MrParams { steps, ..Default::default() }
}

/// Solves in double precision with K and returns the report. The residual has been checked.
fn solve<K: Preconditioner<Space>>(a: &[Complex64], k: &K, b: &Block, params: &GcrParams) -> (Block, Info) {
    let n = a.len().isqrt();
    uniform!(space, operator, system: Space::double(n, b.len() / n), a);
    let mut x = space.allocate().unwrap();
    let info = cycles::solve(&system, k, b, &mut x, params).unwrap();
    for (b, x) in b.chunks(n).zip(x.chunks(n)) {
        assert!(norm(b) == 0.0 || residual(a, b, x) <= 1.001 * params.solver.tol);
    }
    (x, info)
}

/// MR by hand for one domain: z after each step, and the residual.
fn by_hand(a: &[Complex64], r: &[Complex64], count: usize, omega: f64) -> (Block, Block) {
    let start = (vec![Complex64::ZERO; r.len()], r.to_vec());
    (0..count).fold(start, |(z, r), _| {
        let t = product(a, &r);
        let alpha = omega * dot(&t, &r) / norm(&t).powi(2);
        (plus(&z, alpha, &r), plus(&r, -alpha, &t))
    })
}

/// The first application is that without fixed steps; the later ones are linear, and need no sums.
#[test]
fn fixed_steps_are_those_of_the_first_application() {
    let a = schwinger(COLUMNS, 0.1, 1.0, 1);
    let space = Space::double(N, 1);
    let operator = Dense::new(&space, &a);
    let fixed = MinimumResidual::on_whole(&space, &operator, steps(4)).unwrap().with_fixed_steps();
    let apply = |r: &Block| {
        let mut z = space.allocate().unwrap();
        let work = Preconditioner::<Space>::apply(&fixed, &space, r, &[], &mut z).unwrap();
        (z, work.reductions)
    };
    // A step of length 0 is not kept.
    assert_eq!(apply(&vec![Complex64::ZERO; N]).1, 4);
    let (r, s) = (Random(3).vector(N), Random(4).vector(N));
    let sum = plus(&r, 1.0, &s);
    let (of_r, reductions) = apply(&r);
    assert_eq!(reductions, 4);
    assert!(distance(&of_r, &by_hand(&a, &r, 4, 1.0).0) < 1e-13);
    let ((of_s, reductions), (of_sum, _)) = (apply(&s), apply(&sum));
    assert_eq!(reductions, 0);
    assert!(distance(&of_sum, &plus(&of_r, 1.0, &of_s)) < 1e-13);
    assert!(distance(&of_s, &by_hand(&a, &s, 4, 1.0).0) > 1e-3, "another residual has other steps");
}

#[test]
fn each_domain_of_each_right_hand_side_is_solved_for_itself() {
    let a = schwinger(COLUMNS, 0.1, 1.0, 1);
    // Sizes that differ from domain to domain.
    let mut r = Random(2).vector(3 * N);
    r.iter_mut().enumerate().for_each(|(i, r)| *r *= 10f64.powi((i / 24 % 5) as i32 - 2));
    for domains in [1, 2, 4, 8] {
        let size = N / domains;
        let space = Space::double(size, 3 * domains);
        let whole = Space::double(N, 3);
        let operator = DiagonalBlocks::new(&space, &a, domains);
        for (count, omega) in [(1, 1.0), (1, 0.8), (2, 1.1), (3, 1.0), (10, 0.9), (25, 1.0)] {
            let k = MinimumResidual::on_domains(&space, &operator, MrParams { steps: count, omega }).unwrap();
            // z holds anything on entry.
            let mut z = vec![c(f64::NAN, f64::INFINITY); 3 * N];
            operator.applications.set(0);
            let before = space.allocations.get();
            let work = k.apply(&whole, &r, &[0.0; 3], &mut z).unwrap();
            assert_eq!(space.allocations.get(), before);
            assert_eq!((work.calls, work.local_applications, work.local_reductions), (1, count, count));
            assert_eq!((work.applications, work.reductions, operator.applications.get()), (0, 0, count));
            assert_eq!(work.flops, count as f64 * 8.0 * (size * N) as f64);
            for at in 0..3 * domains {
                let (mine, r) = (&z[at * size..(at + 1) * size], &r[at * size..(at + 1) * size]);
                let (expected, left) = by_hand(&operator.blocks[at % domains], r, count, omega);
                // A few hundred roundings, amplified by κ ≈ 50 at most.
                assert!(distance(mine, &expected) < 1e-12, "{domains} {count} {at}");
                assert!(norm(&left) < norm(r));
            }
        }
    }
    // The whole as one domain counts otherwise.
    let space = Space::double(N, 3);
    let operator = Dense::new(&space, &a);
    let k = MinimumResidual::on_whole(&space, &operator, steps(4)).unwrap();
    let mut z = space.allocate().unwrap();
    let work = k.apply(&space, &r, &[0.0; 3], &mut z).unwrap();
    assert_eq!((work.applications, work.reductions, work.local_applications, work.local_reductions), (4, 4, 0, 0));
    for j in 0..3 {
        assert!(distance(space.rhs(&z, j), &by_hand(&a, space.rhs(&r, j), 4, 1.0).0) < 1e-12);
    }
}

#[test]
fn nothing_gets_from_one_domain_into_another() {
    let a = schwinger(COLUMNS, 0.1, 1.0, 3);
    let (domains, size) = (4, N / 4);
    let space = Space::double(size, 2 * domains);
    let whole = Space::double(N, 2);
    let r = Random(4).vector(2 * N);
    let run = |operator: &DiagonalBlocks<'_>, r: &Block, count| {
        let mut z = whole.allocate().unwrap();
        MinimumResidual::on_domains(&space, operator, steps(count))
            .unwrap()
            .apply(&whole, r, &[0.0; 2], &mut z)
            .unwrap();
        z
    };
    for count in [1, 2, 7] {
        let clean = run(&DiagonalBlocks::new(&space, &a, domains), &r, count);
        let others = |z: &Block, touched: &[usize]| {
            (0..2 * N).filter(|i| !touched.contains(&(i / size))).all(|i| z[i] == clean[i])
        };
        let part = |z: &Block, at: usize| z[at * size..(at + 1) * size].to_vec();
        // The operator gives NaN in domain 2, or its square overflows; A = 0 there: z = r.
        for poison in [f64::NAN, f64::INFINITY, 1e200, 0.0] {
            let mut operator = DiagonalBlocks::new(&space, &a, domains);
            if poison.is_nan() {
                operator.nan = Some(2);
            } else {
                operator.blocks[2].fill(c(poison, 0.0));
            }
            let z = run(&operator, &r, count);
            assert!(others(&z, &[2, 6]), "{count} {poison}");
            assert!(part(&z, 2) == part(&r, 2) && part(&z, 6) == part(&r, 6), "{count} {poison}");
        }
        // r vanishes in a domain, or is NaN there: z does so, too.
        let mut special = r.clone();
        special[size..2 * size].fill(Complex64::ZERO);
        special[7 * size + 3] = c(f64::NAN, 0.0);
        let z = run(&DiagonalBlocks::new(&space, &a, domains), &special, count);
        assert!(others(&z, &[1, 7]));
        assert!(part(&z, 1).iter().all(|z| *z == Complex64::ZERO) && part(&z, 7).iter().any(|z| !z.is_finite()));
    }
    // A domain that goes wrong later keeps what it has: a rotation has (t, r) = 0 in the first step, z = r, and stays.
    let mut operator = DiagonalBlocks::new(&space, &a, domains);
    for i in 0..size {
        for k in 0..size {
            let rotates = i / 2 == k / 2 && i != k;
            operator.blocks[0][i * size + k] =
                if rotates { c(1.0 - 2.0 * (k % 2) as f64, 0.0) } else { Complex64::ZERO };
        }
    }
    let real: Block = r.iter().map(|r| c(r.re, 0.0)).collect();
    let z = run(&operator, &real, 5);
    assert!(z[..size] == real[..size] && z.iter().all(|z| z.is_finite()));
}

#[test]
fn the_fused_updates_do_what_they_say() {
    let space = Space::double(3, 2);
    let mut random = Random(5);
    let (r, x, t) = (random.vector(6), random.vector(6), random.vector(6));
    let alpha = [c(0.5, -2.0), Complex64::ZERO];
    let (mut new_x, mut new_t) = (x.clone(), t.clone());
    // With α = 0 the old t is not read.
    new_t[4] = c(f64::NAN, 0.0);
    space.mr_update(&alpha, &r, &mut new_x, &mut new_t).unwrap();
    for i in 0..6 {
        assert!((new_x[i] - (x[i] + alpha[i / 3] * r[i])).norm() < 1e-15);
        let expected = if i < 3 { r[i] - alpha[0] * t[i] } else { r[i] };
        assert!((new_t[i] - expected).norm() < 1e-14);
    }
    let xs: Vec<_> = (0..4).map(|_| random.vector(6)).collect();
    let a = random.vector(8);
    let (mut dots, mut norm2) = ([Complex64::ZERO; 8], [0.0; 2]);
    space.multi_dot(&xs, &t, &mut dots, &mut norm2).unwrap();
    let (mut dots_with_r, mut y, mut y2, mut z2) = ([Complex64::ZERO; 2], t.clone(), t.clone(), [0.0; 2]);
    space.multi_axpy(&a, &xs, &mut y).unwrap();
    space.multi_axpy_dot_norm2(&a, &xs, &mut y2, &r, &mut dots_with_r, &mut z2).unwrap();
    assert_eq!(y, y2);
    for j in 0..2 {
        let part = |v: &Block| v[3 * j..3 * j + 3].to_vec();
        let product = |v: &Block, w: &Block| dot(&part(v), &part(w));
        for i in 0..4 {
            assert!((dots[2 * i + j] - product(&xs[i], &t)).norm() < 1e-14);
        }
        assert!((norm2[j] - norm(&part(&t)).powi(2)).abs() < 1e-14);
        for l in 3 * j..3 * j + 3 {
            let expected: Complex64 = t[l] + (0..4).map(|i| a[2 * i + j] * xs[i][l]).sum::<Complex64>();
            assert!((y[l] - expected).norm() < 1e-14);
        }
        assert!((dots_with_r[j] - product(&y, &r)).norm() < 1e-13 && (z2[j] - norm(&part(&y)).powi(2)).abs() < 1e-13);
    }
    // No vectors: only the norm.
    space.multi_dot(&[], &t, &mut [], &mut norm2).unwrap();
    assert!((norm2[0] - norm(&t[..3]).powi(2)).abs() < 1e-14);
}

#[test]
fn the_preconditioner_saves_iterations_and_applications_with_halo() {
    let a = schwinger(COLUMNS, 0.05, 1.0, 6);
    let b = Random(7).vector(2 * N);
    let params = GcrParams::default();
    let (_, plain) = solve(&a, &Identity, &b, &params);
    assert_eq!(plain.preconditioner, Work::default());
    let mut table = Vec::new();
    for domains in [2, 4, 8] {
        let space = Space::double(N / domains, 2 * domains);
        for count in [1, 2, 5, 10, 40] {
            let operator = DiagonalBlocks::new(&space, &a, domains);
            let k = MinimumResidual::on_domains(&space, &operator, steps(count)).unwrap();
            let (_, info) = solve(&a, &k, &b, &params);
            println!("{domains} domains, {count} steps: {} iterations for {}", info.iterations, plain.iterations);
            let work = info.preconditioner;
            assert_eq!((work.calls, work.local_applications), (info.iterations, count * info.iterations));
            assert_eq!(work.local_applications, operator.applications.get());
            assert_eq!((work.applications, work.reductions, work.local_reductions), (0, 0, work.local_applications));
            let halo = info.sloppy_applications + info.precise_applications;
            let flops = halo as f64 * 8.0 * (N * N) as f64 + work.local_applications as f64 * operator.flops();
            assert!((info.flops - 2.0 * flops).abs() < 1e-9 * info.flops);
            table.push((domains, count, info.iterations));
        }
    }
    let of = |domains, count| table.iter().find(|row| (row.0, row.1) == (domains, count)).unwrap().2;
    for domains in [2, 4, 8] {
        // More steps help until the blocks are solved; smaller domains help less.
        assert!(of(domains, 1) > of(domains, 2) && of(domains, 2) > of(domains, 5) && of(domains, 5) > of(domains, 10));
        assert!(3 * of(domains, 10) < plain.iterations);
    }
    assert!(of(2, 40) < of(4, 40) && of(4, 40) < of(8, 40));
}

#[test]
fn with_decoupled_domains_the_blocks_are_all_there_is() {
    let (domains, size) = (4, N / 4);
    let a = decoupled(&schwinger(COLUMNS, 0.3, 1.0, 8), domains);
    let b = Random(9).vector(N);
    let space = Space::double(size, domains);
    let operator = DiagonalBlocks::new(&space, &a, domains);
    // Enough steps: one iteration of one cycle. Each step takes at least a third of the residual here.
    let k = MinimumResidual::on_domains(&space, &operator, steps(120)).unwrap();
    let (x, info) = solve(&a, &k, &b, &GcrParams::default());
    assert_eq!((info.iterations, info.reliable_updates), (1, 1));
    assert!(distance(&x, &direct(&a, &b)) < 1e-8);
    // Ten steps: a few iterations, still without a restart.
    let k = MinimumResidual::on_domains(&space, &operator, steps(10)).unwrap();
    let (_, info) = solve(&a, &k, &b, &GcrParams::default());
    assert!(info.iterations < 14 && info.reliable_updates == 1, "{info:?}");
    // A source in one domain leaves the others at zero.
    let mut point = vec![Complex64::ZERO; N];
    point[size + 5] = Complex64::ONE;
    let (x, _) = solve(&a, &k, &point, &GcrParams::default());
    assert!((0..N).all(|i| i / size == 1 || x[i] == Complex64::ZERO));
}

#[test]
fn a_domain_that_cannot_be_solved_only_slows_down_the_whole() {
    let a = schwinger(COLUMNS, 0.1, 1.0, 10);
    let domains = 4;
    let space = Space::double(N / domains, domains);
    let mut b = Random(11).vector(N);
    for nan in [None, Some(2)] {
        let operator = DiagonalBlocks { nan, ..DiagonalBlocks::new(&space, &a, domains) };
        let k = MinimumResidual::on_domains(&space, &operator, steps(10)).unwrap();
        let (x, info) = solve(&a, &k, &b, &GcrParams::from(SolverParams { max_iterations: 150, ..Default::default() }));
        println!("{nan:?}: {} iterations", info.iterations);
        assert!(distance(&x, &direct(&a, &b)) < 1e-8);
    }
    // All of b in the domain that has no solver.
    b[..N / 2].fill(Complex64::ZERO);
    b[3 * N / 4..].fill(Complex64::ZERO);
    let operator = DiagonalBlocks { nan: Some(2), ..DiagonalBlocks::new(&space, &a, domains) };
    let k = MinimumResidual::on_domains(&space, &operator, steps(10)).unwrap();
    solve(&a, &k, &b, &GcrParams::default());
}

/// Notes what it is given.
struct Witness<K>(K, RefCell<Vec<(Vec<f64>, Vec<f64>)>>);

impl<K: Preconditioner<Extended>> Preconditioner<Extended> for Witness<K> {
    fn apply(&self, space: &Extended, r: &Block, norms: &[f64], z: &mut Block) -> Result<Work, Broken> {
        let truth = r.chunks(r.len() / norms.len()).map(norm).collect();
        self.1.borrow_mut().push((norms.to_vec(), truth));
        self.0.apply(space, r, norms, z)
    }
}

#[test]
fn three_precisions() {
    let a = schwinger(COLUMNS, 0.1, 1.0, 12);
    let domains = 4;
    let b = Random(13).vector(2 * N);
    for (outer, tol) in [(Rounding::Double, 1e-11), (Rounding::Single, 2e-6)] {
        let space = Space::new(N, 2, outer);
        let operator = Dense::new(&space, &a);
        let mut iterations = Vec::new();
        for krylov in [Rounding::Double, Rounding::Single, Rounding::Half, Rounding::Narrow] {
            for inner in [Rounding::Double, Rounding::Half, Rounding::Narrow] {
                let mut answers = Vec::new();
                for factor in [1.0, 2f64.powi(40), 2f64.powi(-40)] {
                    let mut b: Block = b.iter().enumerate().map(|(i, b)| if i < N { factor * b } else { *b }).collect();
                    space.round(&mut b);
                    let small = Space { domains, ..Space::new(N, 2, krylov) };
                    let sloppy = Dense::new(&small, &a);
                    let extended = Extended::new(N, 2, domains, 0, inner);
                    let blocks = extended.operator(&a);
                    let mr = MinimumResidual::on_domains(&extended.domains, &blocks, steps(10)).unwrap();
                    let witness = Witness(mr, RefCell::default());
                    let k = Converted::new(&extended, &witness).unwrap();
                    let system = Mixed::new(&space, &operator, &small, &sloppy);
                    let mut workspace = GcrWorkspace::new(&system, 16).unwrap();
                    let mut x = space.allocate().unwrap();
                    let params = GcrParams::from(SolverParams { tol, ..Default::default() });
                    let before = extended.domains.allocations.get();
                    let info = gcr(&system, &k, &b, &mut x, &params, &mut workspace, &mut ()).unwrap();
                    assert_eq!(extended.domains.allocations.get(), before);
                    for j in 0..2 {
                        // Single: as in the tests of two precisions.
                        let rounding = if outer == Rounding::Single { 1e-6 } else { 1e-13 };
                        assert!(residual(&operator.a, space.rhs(&b, j), space.rhs(&x, j)) <= tol + rounding);
                    }
                    assert_eq!(info.preconditioner.local_applications, 10 * info.iterations);
                    for (norms, truth) in witness.1.take() {
                        for (norm, truth) in norms.iter().zip(truth) {
                            // Three digits at the start of a cycle, of which r̂ may lose nearly two before it waits.
                            assert!((norm - truth).abs() <= 5e-2 * truth, "{krylov:?} {inner:?}: {norm} {truth}");
                            // Near the middle of the range, where there is one.
                            let middle = extended.target_norm();
                            assert!(middle.is_none_or(|middle| norm / middle > 0.7 && norm / middle < 1.42));
                        }
                    }
                    iterations.push(info.iterations);
                    answers.push((info.iterations_per_rhs, x[..N].iter().map(|x| x / factor).collect::<Block>()));
                }
                // Powers of two change nothing.
                assert!(answers.iter().all(|answer| *answer == answers[0]), "{krylov:?} {inner:?}");
            }
        }
        println!("{outer:?}: {iterations:?}");
        // The format of the preconditioner makes no difference, that of the Krylov space hardly any.
        assert!(iterations.iter().max().unwrap() - iterations.iter().min().unwrap() <= 2, "{iterations:?}");
    }
}

#[test]
fn conversion_takes_the_size_away_and_gives_it_back() {
    let a = schwinger(COLUMNS, 0.1, 1.0, 17);
    let domains = 4;
    let mut r = Random(18).vector(2 * N);
    let sizes = [3e9, 5e-9];
    r.iter_mut().enumerate().for_each(|(i, r)| *r *= sizes[i / N]);
    let norms: Vec<_> = r.chunks(N).map(norm).collect();
    let space = Space { domains, ..Space::double(N, 2) };
    let short = Space::double(N / domains, 2 * domains);
    let exact = DiagonalBlocks::new(&short, &a, domains);
    // 16 bits of floating point, whose range ends at 6e4 and 6e-8: eight steps of three digits each.
    let extended = Extended::new(N, 2, domains, 0, Rounding::Narrow);
    let blocks = extended.operator(&a);
    let mr = MinimumResidual::on_domains(&extended.domains, &blocks, steps(8)).unwrap();
    let mut z = space.allocate().unwrap();
    let work = Converted::new(&extended, mr).unwrap().apply(&space, &r, &norms, &mut z).unwrap();
    assert_eq!((work.calls, work.local_applications), (1, 8));
    let size = N / domains;
    for (at, (z, r)) in z.chunks(size).zip(r.chunks(size)).enumerate() {
        let expected = by_hand(&exact.blocks[at % domains], r, 8, 1.0).0;
        assert!(distance(z, &expected) < 0.01, "{at}: {}", distance(z, &expected));
    }
}

/// A preconditioner adds its result in the precision of the outer solver, with the bits of a conversion followed by an addition. One
/// without a conversion also does.
#[test]
fn what_a_preconditioner_gives_is_added() {
    let a = schwinger(COLUMNS, 0.1, 1.0, 17);
    let (space, small) = (Space::double(N, 2), Space::new(N, 2, Rounding::Half));
    let operator = Dense::new(&small, &a);
    let (r, before) = (Random(19).vector(2 * N), Random(20).vector(2 * N));
    let norms: Vec<_> = r.chunks(N).map(norm).collect();
    let converted = Converted::new(&small, MinimumResidual::on_whole(&small, &operator, steps(3)).unwrap()).unwrap();
    for k in [&converted as &dyn Preconditioner<Space>, &Identity] {
        let (mut z, mut scratch) = (space.allocate().unwrap(), space.allocate().unwrap());
        k.apply(&space, &r, &norms, &mut z).unwrap();
        let expected = plus(&before, 1.0, &z);
        let mut sum = before.clone();
        k.apply_add(&space, &r, &norms, &mut sum, &mut scratch).unwrap();
        assert!(sum == expected && sum != before);
    }
}

#[test]
fn overlap_saves_iterations() {
    let a = schwinger(32, 0.02, 1.0, 14);
    let n = 32 * COLUMN;
    let b = Random(15).vector(n);
    let domains = 4;
    uniform!(space, operator, system: Space { domains, ..Space::double(n, 1) }, &a);
    for (count, bound) in [(10, 4), (40, 6)] {
        let mut table = Vec::new();
        for overlap in 0..4 {
            let extended = Extended::new(n, 1, domains, overlap, Rounding::Half);
            let blocks = extended.operator(&a);
            let mr = MinimumResidual::on_domains(&extended.domains, &blocks, steps(count)).unwrap();
            let k = Converted::new(&extended, mr).unwrap();
            let mut x = space.allocate().unwrap();
            let info = cycles::solve(&system, &k, &b, &mut x, &GcrParams::default()).unwrap();
            assert!(residual(&a, &b, &x) <= 1.01e-10);
            println!("{count} steps, overlap of {overlap} columns: {} iterations", info.iterations);
            table.push(info.iterations);
        }
        assert!(table.is_sorted_by(|less, more| more <= less) && table[0] - table[3] >= bound, "{table:?}");
    }
}

#[test]
fn parameters_are_checked() {
    let space = Space::double(8, 1);
    let operator = Dense::new(&space, &general(8, 0.5, 16));
    for params in [
        steps(0),
        MrParams { omega: 0.0, ..Default::default() },
        MrParams { omega: 2.0, ..Default::default() },
        MrParams { omega: -1.0, ..Default::default() },
        MrParams { omega: f64::NAN, ..Default::default() },
    ] {
        let answer = MinimumResidual::on_domains(&space, &operator, params);
        assert!(matches!(answer, Err(SolveError::Invalid(_))), "{params:?}");
        assert!(MinimumResidual::on_whole(&space, &operator, params).is_err());
    }
    assert_eq!(MrParams::default(), MrParams { steps: 10, omega: 1.0 });
}
