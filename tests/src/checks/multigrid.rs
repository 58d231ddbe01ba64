//! Multigrid: prolongation and restriction, coarse operators, and solves.
use super::Case;
use crate::report::{CheckReport, Scope, larger};
use ferrite::backend::Backend;
use ferrite::domain::{Domain, Result};
use ferrite::field::host::{HostGauge, HostSpinor, Spinor};
use ferrite::field::{FieldSpace, FullField, GaugeField};
use ferrite::gauge::generate;
use ferrite::lattice::Lattice;
use ferrite::multigrid::{CoarseOperator, CoarseSchur, LevelLattice, MultigridParams, NullSpace};
use ferrite::operators::{
    CloverParams, EvenOdd, EvenOddWilson, Operator, Schur, TimeBoundary, TwistedCloverParams, TwistedParams, Wilson,
    WilsonLike, WilsonParams,
};
use ferrite::solve::{Method, Request, SolveFailure, solve};
use ferrite::{LinkStorage, Precision};
use num_complex::Complex64;
use solvers::{LinearOperator, VectorSpace};
use std::sync::Arc;

/// Right-hand sides of a block.
const NRHS: usize = 3;

/// Vectors of a level, random, one for each right-hand side.
fn random(level: &LevelLattice, nrhs: usize, seed: u64) -> Result<FullField> {
    let mut field = level.zero(nrhs)?;
    let section = level.domain().section();
    let host: Vec<HostSpinor> = (0..nrhs).map(|j| generate::random_source(section, seed + j as u64)).collect();
    field.upload(&host)?;
    Ok(field)
}

/// Random coarse vectors: R of random fine ones, so that numbers that no near-null vector has are zero.
fn random_coarse(space: &NullSpace, nrhs: usize, seed: u64) -> Result<FullField> {
    restricted(space, &random(space.fine(), nrhs, seed)?, nrhs)
}
fn restricted(space: &NullSpace, fine: &FullField, nrhs: usize) -> Result<FullField> {
    let mut coarse = space.coarse().zero(nrhs)?;
    (0..2).try_for_each(|parity| space.restrict(parity, fine.parity(parity), &mut coarse, parity > 0, nrhs))?;
    Ok(coarse)
}
fn prolonged(space: &NullSpace, coarse: &FullField, nrhs: usize) -> Result<FullField> {
    let mut fine = space.fine().zero(nrhs)?;
    (0..2).try_for_each(|parity| space.prolong(parity, coarse, fine.parity_mut(parity), nrhs))?;
    Ok(fine)
}

/// The largest ‖x_j − y_j‖ / ‖x_j‖.
fn distance(space: &FieldSpace, x: &FullField, y: &FullField) -> Result<f64> {
    let n = space.nrhs();
    let (mut whole, mut part) = (vec![0.0; n], vec![0.0; n]);
    let (ones, minus) = (vec![Complex64::ONE; n], vec![-Complex64::ONE; n]);
    for parity in 0..2 {
        let (mut norm, mut difference) = (vec![0.0; n], space.allocate()?);
        space.copy(y.parity(parity), &mut difference)?;
        space.axpby(&minus, x.parity(parity), &ones, &mut difference)?;
        space.norm2(&difference, &mut norm)?;
        part.iter_mut().zip(&norm).for_each(|(sum, norm)| *sum += norm);
        space.norm2(x.parity(parity), &mut norm)?;
        whole.iter_mut().zip(&norm).for_each(|(sum, norm)| *sum += norm);
    }
    Ok(part.iter().zip(&whole).map(|(part, whole)| (part / whole).sqrt()).fold(0.0, f64::max))
}

/// γ5 x of fine vectors, in host memory.
fn gamma5(x: &FullField) -> Result<FullField> {
    let host: Vec<HostSpinor> = x.download()?.iter().map(crate::reference::gamma5).collect();
    let mut out = FullField::zero(x.even.domain(), x.even.shape())?;
    out.upload(&host)?;
    Ok(out)
}

/// An operator on vectors of a level: writes the image of the first field to the second.
type Apply<'a> = dyn Fn(&FullField, &mut FullField) -> Result + 'a;

/// R P = 1, R D P = D_c, and that the Schur complement of D_c belongs to it; `tol` is for the format of P and D_c.
fn level(
    space: &NullSpace,
    coarse: &CoarseOperator,
    apply: &Apply<'_>,
    (scope, tol): (&Scope, f64),
    report: &mut CheckReport,
) -> Result {
    let vectors = space.coarse().space(NRHS);
    let c = random_coarse(space, NRHS, 77)?;
    let fine = prolonged(space, &c, NRHS)?;
    let back = restricted(space, &fine, NRHS)?;
    report.error(scope, "multigrid: R P = 1", distance(&vectors, &c, &back)?, tol);
    let mut image = space.fine().zero(NRHS)?;
    apply(&fine, &mut image)?;
    let galerkin = restricted(space, &image, NRHS)?;
    let mut direct = space.coarse().zero(NRHS)?;
    coarse.apply(&c, &mut direct, NRHS)?;
    report.error(scope, "multigrid: R D P = D_c", distance(&vectors, &galerkin, &direct)?, tol);
    // M̂ x_e = b̂, and x_o from x_e, for b = D_c x.
    let (mut even, mut odd) = (vectors.allocate()?, vectors.allocate()?);
    coarse.prepare(&direct, &mut even, &mut odd, NRHS)?;
    let mut x = space.coarse().zero(NRHS)?;
    let mut schur = space.coarse().zero(NRHS)?;
    CoarseSchur::new(coarse, NRHS)?.apply(&c.even, &mut schur.even)?;
    vectors.copy(&c.even, &mut x.even)?;
    let wanted = FullField { even, odd: vectors.allocate()? };
    report.error(scope, "multigrid: coarse Schur complement", distance(&vectors, &wanted, &schur)?, 4.0 * tol);
    coarse.reconstruct(&odd, &mut x, NRHS)?;
    report.error(scope, "multigrid: coarse odd sites", distance(&vectors, &c, &x)?, 4.0 * tol);
    Ok(())
}

/// The Schur complement of D_c for many right-hand sides together and for each alone: on a GPU, tensor cores compute the former,
/// eight or sixteen at a time, with numbers split into parts whose products have 22 bits, and sums rounded in their own way.
fn together_and_alone(space: &NullSpace, coarse: &CoarseOperator, scope: &Scope, report: &mut CheckReport) -> Result {
    let images = |nrhs: usize, seed: u64| -> Result<Vec<HostSpinor>> {
        let mut out = space.coarse().zero(nrhs)?;
        CoarseSchur::new(coarse, nrhs)?.apply(&random_coarse(space, nrhs, seed)?.even, &mut out.even)?;
        out.download()
    };
    const MOST: usize = 13;
    let alone: Vec<HostSpinor> = (0..MOST).map(|j| Ok(images(1, 200 + j as u64)?.remove(0))).collect::<Result<_>>()?;
    for nrhs in [2, 8, MOST] {
        let off = images(nrhs, 200)?.into_iter().zip(&alone).map(|(mut image, alone)| {
            image.sites_mut().iter_mut().zip(alone.sites()).for_each(|(a, b)| *a = difference(a, b));
            (image.norm2() / alone.norm2()).sqrt()
        });
        report.error(scope, "multigrid: coarse Schur complement of many together", off.fold(0.0, larger), 2e-6);
    }
    Ok(())
}
fn difference(a: &Spinor, b: &Spinor) -> Spinor {
    std::array::from_fn(|spin| std::array::from_fn(|c| a[spin][c] - b[spin][c]))
}

/// The operators of a level, single precision, made of links in double.
fn operator(gauge: &GaugeField, operator: WilsonLike, nrhs: usize) -> Result<EvenOddWilson> {
    let links = Arc::new(gauge.pack(Precision::Single, LinkStorage::FULL)?);
    let term = operator.diagonal(gauge)?.convert(Precision::Single)?;
    EvenOddWilson::with_diagonal(Wilson::new(links, operator.wilson), term, operator.schur, nrhs)
}

fn wilson_like(operator: Operator) -> WilsonLike {
    *operator.parameters().expect("these are Wilson-like")
}

/// Light quarks on rough links, so that smoothers alone get nowhere.
fn operators() -> [(&'static str, Operator); 4] {
    let wilson = WilsonParams::from_mass(-0.1, TimeBoundary::Antiperiodic);
    let clover = CloverParams { wilson, space: 1.1, time: 1.3 };
    [
        ("wilson", wilson.into()),
        ("clover", clover.with_schur(Schur::Asymmetric).into()),
        ("twisted", TwistedParams { wilson, mu: 0.1 }.into()),
        ("twisted-clover", TwistedCloverParams { clover, mu: -0.2 }.into()),
    ]
}

/// Near-null vectors in both formats, coarse operators of two levels, and aggregates of all shapes.
pub fn multigrid(backend: &dyn Backend, report: &mut CheckReport) -> Result {
    // Extents, aggregates, near-null vectors, and aggregates of the level below.
    let shapes = [
        ([4, 4, 8, 8], [2, 2, 2, 2], 8, [1, 1, 2, 2]),
        // Odd aggregates, with a coarse lattice whose neighbours are the same site twice.
        ([6, 4, 4, 6], [3, 1, 2, 3], 16, [1, 2, 1, 1]),
        ([8, 4, 4, 8], [2, 2, 2, 4], 24, [2, 1, 1, 1]),
    ];
    for (size, block, count, below) in shapes {
        let lattice = Lattice::new(size).expect("even extents");
        let gauge = generate::weak_field(lattice, 7, 0.4);
        multigrid_levels(&Domain::single(backend, lattice)?, &gauge, Aggregation { block, count, below }, report)?;
    }
    Ok(())
}

/// R P = 1 on lattices with so many aggregates that a warp restricts to several.
pub fn restriction(backend: &dyn Backend, report: &mut CheckReport) -> Result {
    const VECTORS: usize = 8;
    for (size, block) in
        [([16, 8, 16, 16], [2, 2, 2, 2]), ([16, 16, 16, 16], [2, 2, 2, 2]), ([16, 8, 16, 16], [4, 1, 1, 2])]
    {
        let domain = Domain::single(backend, Lattice::new(size).expect("even extents"))?;
        let finest = LevelLattice::finest(&domain);
        let space = NullSpace::new(&finest, block, random(&finest, VECTORS, 40)?)?;
        for precision in [Precision::Single, Precision::Half] {
            let scope = Scope { format: precision.to_string(), detail: format!("{size:?}, aggregates {block:?}") };
            let space = space.converted(precision)?;
            for nrhs in [1, 2] {
                let c = random_coarse(&space, nrhs, 60)?;
                let back = restricted(&space, &prolonged(&space, &c, nrhs)?, nrhs)?;
                let tol = if precision == Precision::Single { 2e-6 } else { 1e-4 };
                let off = distance(&space.coarse().space(nrhs), &c, &back)?;
                report.error(&scope, "multigrid: R P = 1 by several aggregates", off, tol);
            }
        }
    }
    Ok(())
}

/// Aggregates of two levels.
#[derive(Clone, Copy)]
pub struct Aggregation {
    /// Extents of an aggregate of the finest level.
    pub block: [usize; 4],
    /// Number of near-null vectors.
    pub count: usize,
    /// Extents of an aggregate of the next coarser level.
    pub below: [usize; 4],
}

/// The levels of all operators on a domain, whose part of the links is `gauge`.
pub fn multigrid_levels(domain: &Domain, gauge: &HostGauge, shape: Aggregation, report: &mut CheckReport) -> Result {
    let Aggregation { block, count, below } = shape;
    let links = GaugeField::upload(domain, gauge)?;
    let finest = LevelLattice::finest(domain);
    for (name, chosen) in operators() {
        let detail = format!("{} {name}, aggregates {block:?}, {count} vectors", domain.global());
        let scope = |format: &str| Scope { format: format.into(), detail: detail.clone() };
        let fine = operator(&links, wilson_like(chosen), count)?;
        let apply = |x: &FullField, out: &mut FullField| {
            (0..2).try_for_each(|parity| fine.apply_parity(parity, false, x, out.parity_mut(parity)))
        };
        let test = random(&finest, count, 500)?;
        let space = NullSpace::new(&finest, block, random(&finest, count, 500)?)?;
        let coarse = CoarseOperator::of_wilson(&space, &fine, &links, Precision::Single)?;
        let single = scope("single");
        // Sums of a few hundred terms in single precision.
        let tol = 2e-6;
        level(&space, &coarse, &apply, (&single, tol), report)?;
        together_and_alone(&space, &coarse, &single, report)?;
        // What near-null vectors were made of is in the range of P, and γ5 of it too.
        let fine_space = finest.space(count);
        let projected = prolonged(&space, &restricted(&space, &test, count)?, count)?;
        report.error(&single, "multigrid: P R v = v", distance(&fine_space, &test, &projected)?, tol);
        let turned = gamma5(&test)?;
        let projected = prolonged(&space, &restricted(&space, &turned, count)?, count)?;
        report.error(&single, "multigrid: P R γ5 v = γ5 v", distance(&fine_space, &turned, &projected)?, tol);
        locality(&space, &single, report)?;
        // 16 bits: fixed point with a norm for each spinor, and floating point for matrices.
        let half = scope("half");
        let rounded = CoarseOperator::of_wilson(&space, &fine, &links, Precision::Half)?;
        level(&space.converted(Precision::Half)?, &rounded, &apply, (&half, 1e-4), report)?;
        together_and_alone(&space, &rounded, &half, report)?;
        let vectors = random_coarse(&space, count, 900)?;
        let second = NullSpace::new(space.coarse(), below, vectors)?;
        let coarsest = CoarseOperator::of_coarse(&second, &coarse, Precision::Single)?;
        let apply = |x: &FullField, out: &mut FullField| coarse.apply(x, out, NRHS);
        level(&second, &coarsest, &apply, (&scope("single, second level"), 2.0 * tol), report)?;
    }
    Ok(())
}

/// P of a vector that is zero but at one coarse site is zero outside of one aggregate.
fn locality(space: &NullSpace, scope: &Scope, report: &mut CheckReport) -> Result {
    let coarse = random_coarse(space, 1, 31)?;
    let (pseudo, spinors) = (space.coarse().domain().local(), space.coarse().spinors());
    let lattice = space.coarse().lattice();
    let (parity, index) = (1, lattice.half_volume() - 1);
    let mut host: Vec<HostSpinor> = coarse.download()?;
    for (at, spinor) in host[0].sites_mut().iter_mut().enumerate() {
        let odd = pseudo.coordinates(at).iter().sum::<usize>() % 2;
        if (odd, at / 2 / spinors) != (parity, index) {
            *spinor = Spinor::default();
        }
    }
    let mut one = space.coarse().zero(1)?;
    one.upload(&host)?;
    let fine: Vec<HostSpinor> = prolonged(space, &one, 1)?.download()?;
    // The last odd site of the coarse lattice.
    let place = (0..lattice.volume()).rev().find(|&at| lattice.coordinates(at).iter().sum::<usize>() % 2 == parity);
    let place = lattice.coordinates(place.expect("half of the sites are odd"));
    let block = space.block();
    let local = space.fine().lattice();
    let inside = |at: usize| (0..4).all(|mu| local.coordinates(at)[mu] / block[mu] == place[mu]);
    let is_zero = |spinor: &Spinor| *spinor == Spinor::default();
    let right = fine[0].sites().iter().enumerate().all(|(at, spinor)| is_zero(spinor) != inside(at));
    report.holds(scope, "multigrid: an aggregate for each coarse site", right);
    Ok(())
}

/// Solves with multigrid of two and three levels end at the tolerance.
pub fn multigrid_solves(backend: &dyn Backend, report: &mut CheckReport) -> std::result::Result<(), SolveFailure> {
    let lattice = Lattice::new([8, 4, 8, 8]).expect("even extents");
    let case = Case::new(generate::weak_field(lattice, 17, 0.4), 18);
    let domain = case.domain(backend)?;
    let sources = &case.sources[..2];
    for (name, operator) in operators() {
        for (precision, blocks) in [
            (Precision::Half, [Some([2, 2, 2, 2]), Some([2, 1, 2, 2]), None]),
            (Precision::Single, [Some([4, 2, 4, 4]), None, None]),
        ] {
            let vectors = 8;
            let params =
                MultigridParams { blocks, vectors, precision: Some(precision), improvements: 2, ..Default::default() };
            let method = Method::MULTIGRID;
            let request =
                Request { method, precision: Precision::Single, multigrid: params, ..Request::new(operator.clone()) };
            let scope =
                case.scope(precision.name(), &format!("{name}, {} levels", 1 + blocks.iter().flatten().count()));
            let (_, claim) = solve(&domain, &case.gauge, sources, &request, &mut ())?;
            report.holds(&scope, "multigrid solve: converged", claim.converged);
            let worst = solvers::worst_residual(&claim.true_residual);
            report.error(&scope, "multigrid solve: true residual", worst, request.tol);
            report.error(&scope, "multigrid solve: iterations", claim.info.iterations as f64, 40.0);
        }
    }
    Ok(())
}
