//! The additive Schwarz preconditioner: operators in blocks against lattices whose blocks have no links between them,
//! minimum residual in blocks and in domains that overlap against its formulas, and solves with GCR-DD.
use comms::Threads;
use ferrite::backend::Cpu;
use ferrite::domain::{DeviceError, Domain};
use ferrite::field::host::{HostGauge, HostSpinor, Spinor};
use ferrite::field::{DeviceField, FieldShape, FieldSpace, FullField, GaugeField};
use ferrite::gauge::generate;
use ferrite::lattice::{Lattice, Section};
use ferrite::operators::Operator;
use ferrite::operators::{
    BlockOperator, CloverParams, EvenOddWilson, MrInBlocks, Schur, TimeBoundary, Wilson, WilsonLike, WilsonParams,
};
use ferrite::solve::{Configuration, Method, Request, Schwarz, SolveFailure};
use ferrite::{LinkStorage, Precision};
use ferrite_tests::cut;
use ferrite_tests::testkit::on_grid;
use num_complex::Complex64;
use solvers::{MrParams, Preconditioner, VectorSpace};
use std::rc::Rc;
use std::sync::Arc;

const SIZE: [usize; 4] = [4, 8, 4, 8];
/// Small ones, one that is the whole lattice in some directions, and the whole lattice.
const BLOCKS: [[usize; 4]; 6] = [[2, 2, 2, 2], [2, 4, 2, 2], [4, 4, 4, 4], [4, 8, 2, 8], [2, 8, 4, 8], SIZE];

fn lattice() -> Lattice {
    Lattice::new(SIZE).unwrap()
}
fn domain() -> Domain {
    Domain::single(Cpu::new(None), lattice()).unwrap()
}
fn params() -> WilsonParams {
    WilsonParams::from_mass(0.05, TimeBoundary::Antiperiodic)
}

/// Links without those from block to block.
fn without_links_between(gauge: &HostGauge, block: [usize; 4]) -> HostGauge {
    let mut cut = gauge.clone();
    let size = lattice().size();
    for (index, link) in cut.links_mut().iter_mut().enumerate() {
        let (site, mu) = (lattice().coordinates(index / 4), index % 4);
        if block[mu] < size[mu] && (site[mu] + 1) % block[mu] == 0 {
            *link = Default::default();
        }
    }
    cut
}

fn wilson(precision: Precision, domain: &Domain, gauge: &HostGauge) -> Wilson {
    let links = GaugeField::upload(domain, gauge).unwrap();
    Wilson::new(Arc::new(links.pack(precision, LinkStorage::FULL).unwrap()), params())
}
/// Spinors, zero everywhere.
fn zero(domain: &Domain, precision: Precision, nrhs: usize) -> FullField {
    FullField::zero(domain, FieldShape::spinors(precision, nrhs)).unwrap()
}

fn images(wilson: &Wilson, psi: &HostSpinor) -> Vec<HostSpinor> {
    let zero = || zero(wilson.domain(), wilson.precision(), 1);
    let (mut x, mut out) = (zero(), zero());
    x.upload(std::slice::from_ref(psi)).unwrap();
    let image = |dagger| {
        wilson.full(dagger, &x, &mut out).unwrap();
        out.download().unwrap().swap_remove(0)
    };
    [false, true].map(image).into()
}

#[test]
fn blocks_are_lattices_without_links_between_them() {
    let (domain, psi) = (domain(), generate::random_source(lattice(), 3));
    let gauge = generate::random(lattice(), 2);
    for block in BLOCKS {
        let cut = without_links_between(&gauge, block);
        // A product with a link that is zero adds nothing, to the bit.
        for precision in Precision::ALL {
            let wilson = |gauge| wilson(precision, &domain, gauge);
            let (got, expected) = (wilson(&gauge).in_blocks(block), wilson(&cut));
            assert!(images(&got, &psi) == images(&expected, &psi), "{block:?} in {precision} precision");
            assert_eq!(images(&wilson(&gauge), &psi) == images(&got, &psi), block == SIZE);
        }
    }
}

/// The clover term is that of the links as they are: it is local, and its blocks know of all links around them.
#[test]
fn schur_complements_in_blocks() {
    let (domain, gauge) = (domain(), generate::weak_field(lattice(), 2, 0.3));
    let clover = CloverParams::isotropic(params(), 1.3, 1.0);
    let term = Arc::new(clover.term(&GaugeField::upload(&domain, &gauge).unwrap()).unwrap());
    let source = generate::random_source(lattice(), 4);
    for block in BLOCKS {
        let cut = without_links_between(&gauge, block);
        for schur in [Schur::Symmetric, Schur::Asymmetric] {
            let wilson = |gauge| wilson(Precision::Double, &domain, gauge);
            let (blocks, without) = (wilson(&gauge).in_blocks(block), wilson(&cut));
            let blocks = EvenOddWilson::with_diagonal(blocks, term.clone(), schur, 1).unwrap();
            let without = EvenOddWilson::with_diagonal(without, term.clone(), schur, 1).unwrap();
            assert!(on_even(&blocks, &source) == on_even(&without, &source), "{block:?}, {schur:?}");
        }
    }
}

/// M̂ on the even sites of a field; odd ones become zero.
fn on_even(operator: &impl BlockOperator, source: &HostSpinor) -> HostSpinor {
    let zero = || zero(operator.domain(), operator.precision(), 1);
    let (mut x, mut out) = (zero(), zero());
    x.upload(std::slice::from_ref(source)).unwrap();
    operator.apply(&x.even, &mut out.even).unwrap();
    out.download().unwrap().swap_remove(0)
}

/// Σ a* b over the sites of one block.
fn product(a: &HostSpinor, b: &HostSpinor, number: usize, block: [usize; 4]) -> Complex64 {
    let pairs = a.sites().iter().zip(b.sites()).enumerate();
    let inside = pairs.filter(|(site, _)| number_of(a.lattice(), *site, block) == number);
    inside.flat_map(|(_, (a, b))| a.iter().flatten().zip(b.iter().flatten()).map(|(a, b)| a.conj() * b)).sum()
}

fn number_of(lattice: Lattice, site: usize, block: [usize; 4]) -> usize {
    let (site, size) = (lattice.coordinates(site), lattice.size());
    (0..4).rev().fold(0, |number, mu| number * (size[mu] / block[mu]) + site[mu] / block[mu])
}

/// n steps of minimum residual from zero, as they are written: α = ω (t, r) / (t, t), z += α r, r −= α t, with t = M̂ r.
fn minimum_residual(operator: &impl BlockOperator, r: &HostSpinor, block: [usize; 4], params: MrParams) -> HostSpinor {
    let lattice = r.lattice();
    let (mut r, mut z) = (r.clone(), HostSpinor::zero(lattice));
    let blocks: usize = lattice.size().iter().zip(block).map(|(extent, block)| extent / block).product();
    for _ in 0..params.steps {
        let t = on_even(operator, &r);
        let alphas: Vec<Complex64> = (0..blocks)
            .map(|number| match product(&t, &t, number, block).re {
                0.0 => Complex64::ZERO,
                norm2 => params.omega * product(&t, &r, number, block) / norm2,
            })
            .collect();
        for (site, ((z, r), t)) in z.sites_mut().iter_mut().zip(r.sites_mut()).zip(t.sites()).enumerate() {
            let alpha = alphas[number_of(lattice, site, block)];
            for ((z, r), t) in z.iter_mut().flatten().zip(r.iter_mut().flatten()).zip(t.iter().flatten()) {
                *z += alpha * *r;
                *r -= alpha * t;
            }
        }
    }
    z
}

#[test]
fn minimum_residual_in_blocks() {
    let (domain, gauge) = (domain(), generate::weak_field(lattice(), 5, 0.3));
    // Even sites only; and one that is zero but in one block.
    let mut full = generate::random_source(lattice(), 6);
    for (site, spinor) in full.sites_mut().iter_mut().enumerate() {
        if lattice().parity(lattice().coordinates(site)) == 1 {
            *spinor = Default::default();
        }
    }
    for block in BLOCKS {
        let mut alone = full.clone();
        for (site, spinor) in alone.sites_mut().iter_mut().enumerate() {
            if number_of(lattice(), site, block) != 0 {
                *spinor = Default::default();
            }
        }
        for (params, sources) in [
            (MrParams { steps: 1, omega: 1.0 }, vec![full.clone()]),
            (MrParams { steps: 4, omega: 0.8 }, vec![full.clone(), alone.clone(), HostSpinor::zero(lattice())]),
        ] {
            let operator = |nrhs| {
                let wilson = wilson(Precision::Double, &domain, &gauge).in_blocks(block);
                EvenOddWilson::new(wilson, nrhs).unwrap()
            };
            let nrhs = sources.len();
            let mr = MrInBlocks::new(Rc::new(operator(nrhs)), params, nrhs).unwrap();
            let space = FieldSpace::new(&domain, FieldShape::spinors(Precision::Double, nrhs));
            let mut fields = zero(&domain, Precision::Double, nrhs);
            fields.upload(&sources).unwrap();
            let (mut r, mut z) = (space.allocate().unwrap(), space.allocate().unwrap());
            space.copy(&fields.even, &mut r).unwrap();
            let work = mr.apply(&space, &r, &[1.0, 1.0, 0.0][..nrhs], &mut z).unwrap();
            assert_eq!(work.local_applications, params.steps);
            space.copy(&z, &mut fields.even).unwrap();
            let one = operator(1);
            for (k, (got, source)) in fields.download::<Spinor>().unwrap().iter().zip(&sources).enumerate() {
                let expected = minimum_residual(&one, source, block, params);
                let off: f64 = got.sites().iter().zip(expected.sites()).map(|(a, b)| distance2(a, b)).sum();
                // Sums over some thousand numbers, in another order.
                assert!(off.sqrt() <= 1e-13 * expected.norm2().sqrt(), "{block:?}, source {k}: {:e}", off.sqrt());
            }
        }
    }
}

fn distance2(a: &[[Complex64; 3]; 4], b: &[[Complex64; 3]; 4]) -> f64 {
    a.iter().flatten().zip(b.iter().flatten()).map(|(a, b)| (a - b).norm_sqr()).sum()
}

/// Whether a site lies in a domain, which is `part` with `width` sites more at both ends of the directions that are cut.
fn is_in(site: [usize; 4], part: &Section, width: usize) -> bool {
    (0..4).all(|mu| {
        let (size, margin) = (part.global.size()[mu], margin(part, mu, width));
        (site[mu] + size + margin - part.origin[mu]) % size < part.local.size()[mu] + 2 * margin
    })
}
fn margin(part: &Section, mu: usize, width: usize) -> usize {
    if part.local.size()[mu] < part.global.size()[mu] { width } else { 0 }
}

/// Links without those that leave a domain.
fn without_links_out_of(gauge: &HostGauge, part: &Section, width: usize) -> HostGauge {
    let (mut cut, size) = (gauge.clone(), part.global.size());
    for (index, link) in cut.links_mut().iter_mut().enumerate() {
        let (site, mu) = (part.global.coordinates(index / 4), index % 4);
        let margin = margin(part, mu, width);
        // From the last site of the domain, and to its first: the two may be one link, of a domain all around.
        let from_first = (site[mu] + size[mu] + margin - part.origin[mu]) % size[mu];
        let extent = part.local.size()[mu] + 2 * margin;
        if margin > 0 && (from_first + 1 == extent || from_first + 1 == size[mu]) {
            *link = Default::default();
        }
    }
    cut
}

/// Each process's steps in its part with a margin are those on the whole lattice, with no links out of that domain and a
/// source that is zero elsewhere.
#[test]
fn domains_that_overlap() {
    const WIDTH: usize = 2;
    let step = MrParams { steps: 3, omega: 0.9 };
    for (size, grid) in [([4, 4, 8, 12], [1, 1, 2, 2]), ([12, 2, 4, 8], [3, 1, 1, 2]), ([2, 4, 8, 6], [1, 1, 2, 1])] {
        let lattice = Lattice::new(size).unwrap();
        let (gauge, source) = (generate::weak_field(lattice, 5, 0.3), generate::random_source(lattice, 6));
        let clover = CloverParams::isotropic(params(), 1.3, 1.0);
        Threads::run(grid.iter().product(), |world| {
            let domain = cut::domain(Cpu::new(Some(1)), lattice, grid, world)?;
            let part = domain.section();
            let schwarz = Schwarz { steps: step.steps, omega: step.omega, overlap: WIDTH, ..Default::default() };
            for operator in [Operator::from(params()), Operator::from(clover.with_schur(Schur::Symmetric))] {
                let here = cut::links_of(&part, &gauge);
                let configuration = Configuration::new(&domain, &here);
                let schwarz = Schwarz { precision: Precision::Double, ..schwarz };
                let mr = configuration.preconditioner(&operator, &schwarz, LinkStorage::FULL, 2)?;
                let space = FieldSpace::new(&domain, FieldShape::spinors(Precision::Double, 2));
                let mut fields = zero(&domain, Precision::Double, 2);
                fields.upload(&[HostSpinor::zero(part.local), generate::random_source(part, 6)])?;
                let (mut r, mut z) = (space.allocate()?, space.allocate()?);
                space.copy(&fields.even, &mut r)?;
                let work = mr.apply(&space, &r, &[0.0, 1.0], &mut z)?;
                assert_eq!((work.calls, work.local_applications), (1, step.steps));
                space.copy(&z, &mut fields.even)?;
                let got = fields.download::<Spinor>()?;

                let mut inside = source.clone();
                for (index, spinor) in inside.sites_mut().iter_mut().enumerate() {
                    let site = lattice.coordinates(index);
                    if lattice.parity(site) == 1 || !is_in(site, &part, WIDTH) {
                        *spinor = Default::default();
                    }
                }
                let whole = Domain::single(Cpu::new(Some(1)), lattice)?;
                let wilson = wilson(Precision::Double, &whole, &without_links_out_of(&gauge, &part, WIDTH));
                let Some(&like) = operator.parameters::<WilsonLike>() else { panic!("{operator:?}") };
                let term = like.diagonal(&GaugeField::upload(&whole, &gauge)?)?;
                let even_odd = EvenOddWilson::with_diagonal(wilson, term, like.schur, 1)?;
                let expected = minimum_residual(&even_odd, &inside, size, step);
                let (mut off, mut norm2) = (0.0, 0.0);
                for index in (0..part.local.volume()).filter(|k| part.local.parity(part.local.coordinates(*k)) == 0) {
                    let expected = &expected.sites()[part.global_index(index)];
                    off += distance2(&got[1].sites()[index], expected);
                    norm2 += distance2(expected, &Default::default());
                    assert_eq!(got[0].sites()[index], Spinor::default(), "nothing comes of nothing");
                }
                assert!(off.sqrt() < 1e-13 * norm2.sqrt(), "{operator:?} at {:?}: {:e}", part.origin, off.sqrt());
            }
            ferrite::domain::Result::Ok(())
        })
        .unwrap();
    }
}

#[test]
fn solves_end_at_their_tolerance() {
    use Precision::{Double, Fp16, Half, Single};
    let (domain, gauge) = (domain(), generate::weak_field(lattice(), 7, 0.4));
    let sources =
        [generate::random_source(lattice(), 8), generate::point_source(lattice(), [1, 2, 3, 5], 2, 1).unwrap()];
    let clover = CloverParams::isotropic(WilsonParams::from_mass(-0.1, TimeBoundary::Antiperiodic), 1.2, 1.0);
    let operators = [
        Operator::from(params()),
        Operator::from(clover.with_schur(Schur::Symmetric)),
        Operator::from(clover.with_schur(Schur::Asymmetric)),
    ];
    for operator in operators {
        let configuration = Configuration::new(&domain, &gauge);
        let reference = Request { operator: operator.clone(), ..Request::new(params()) };
        let (expected, _) = configuration.solve(&sources, None, &reference, &mut ()).unwrap();
        for (outer, precision, inner, block, tol) in [
            (Double, Half, Half, None, 1e-10),
            (Single, Half, Half, Some([4, 4, 4, 4]), 1e-6),
            (Double, Single, Half, Some([2, 4, 2, 2]), 1e-10),
            (Double, Double, Double, Some([4, 8, 4, 4]), 1e-10),
            (Double, Single, Fp16, Some([4, 4, 4, 4]), 1e-10),
        ] {
            let schwarz = Schwarz { steps: 5, precision: inner, domain: block, k_max: 8, ..Default::default() };
            let request = Request { method: Method::GCR_DD, precision, outer, tol, schwarz, ..reference.clone() };
            let what = format!("{operator:?}, {outer:?}-{precision:?}-{inner:?}, {block:?}");
            let (solutions, report) = configuration.solve(&sources, None, &request, &mut ()).expect(&what);
            assert!(report.converged && report.escalations.is_empty(), "{what}: {:?}", report.escalations);
            assert!(report.true_residual.iter().all(|r| *r <= tol), "{what}: {:?}", report.true_residual);
            assert_eq!(report.info.preconditioner.calls, report.info.iterations, "{what}");
            assert_eq!(report.info.preconditioner.local_applications, 5 * report.info.iterations, "{what}");
            for (got, expected) in solutions.iter().zip(&expected) {
                let off: f64 = got.sites().iter().zip(expected.sites()).map(|(a, b)| distance2(a, b)).sum();
                // Errors are residuals over the smallest singular value, which is some hundredths here.
                assert!(off.sqrt() < 300.0 * tol * expected.norm2().sqrt(), "{what}: {:e}", off.sqrt());
            }
        }
    }
}

/// Better solves in the domains need fewer iterations, and larger domains too.
#[test]
fn the_preconditioner_helps() {
    let (domain, gauge) = (domain(), generate::weak_field(lattice(), 7, 0.4));
    let source = [generate::random_source::<Spinor>(lattice(), 8)];
    let operator = WilsonParams::from_mass(-0.2, TimeBoundary::Antiperiodic);
    let configuration = Configuration::new(&domain, &gauge);
    let iterations = |steps, block| {
        let schwarz = Schwarz { steps, domain: block, ..Default::default() };
        let request = Request { method: Method::GCR_DD, schwarz, ..Request::new(operator) };
        configuration.solve(&source, None, &request, &mut ()).unwrap().1.info.iterations
    };
    let (one, ten, small) = (iterations(1, None), iterations(10, None), iterations(10, Some([2, 2, 2, 2])));
    assert!(ten < one && ten < small, "{one} with one step, {ten} with ten, {small} in small domains");
}

/// Overlap saves iterations.
#[test]
fn overlap_helps() {
    let lattice = Lattice::new([4, 4, 8, 16]).unwrap();
    let gauge = generate::weak_field(lattice, 7, 0.4);
    let clover = CloverParams::isotropic(WilsonParams::from_mass(-0.25, TimeBoundary::Antiperiodic), 1.0, 1.0);
    for (operator, precision, reconstruction) in [
        (Operator::from(clover.with_schur(Schur::Asymmetric)), Precision::Half, LinkStorage::of(12)),
        (Operator::from(clover.wilson), Precision::Single, LinkStorage::of(12).in_temporal_gauge()),
        (Operator::from(clover.with_schur(Schur::Symmetric)), Precision::Single, LinkStorage::of(8)),
    ] {
        let iterations = |overlap| {
            let found = on_grid([1, 1, 2, 2], lattice, |domain| {
                let part = domain.section();
                let (gauge, source) = (cut::links_of(&part, &gauge), [generate::random_source::<Spinor>(part, 8)]);
                let schwarz = Schwarz { overlap, steps: 20, ..Default::default() };
                let request =
                    Request { method: Method::GCR_DD, precision, reconstruction, schwarz, ..Request::new(&operator) };
                let (_, report) = Configuration::new(domain, &gauge).solve(&source, None, &request, &mut ()).unwrap();
                assert!(report.true_residual[0] <= 1e-10 && report.escalations.is_empty());
                report.info.iterations
            });
            assert!(found.iter().all(|n| *n == found[0]), "{found:?}");
            found[0]
        };
        let (without, with) = (iterations(0), iterations(2));
        assert!(with < without, "{operator:?}: {without} iterations without overlap, {with} with");
    }
}

/// Right-hand sides that are finished are no longer computed, neither in the solver nor in the domains.
#[test]
fn right_hand_sides_leave_their_domains() {
    let gauge = generate::weak_field(lattice(), 7, 0.2);
    for (grid, block, overlap) in
        [([1; 4], None, 0), ([1; 4], Some([4, 4, 4, 4]), 0), ([1, 1, 1, 2], None, 0), ([1, 1, 1, 2], None, 2)]
    {
        on_grid(grid, lattice(), |domain| {
            let part = domain.section();
            let gauge = cut::links_of(&part, &gauge);
            let sources: Vec<_> = (0..4).map(|seed| generate::random_source(part, 20 + seed)).collect();
            let configuration = Configuration::new(domain, &gauge);
            let schwarz = Schwarz { domain: block, overlap, steps: 5, k_max: 6, ..Default::default() };
            let precision = Precision::Single;
            let request = Request { method: Method::GCR_DD, precision, schwarz, ..Request::new(params()) };
            let (good, wide) = configuration.solve(&sources, None, &request, &mut ()).unwrap();
            // The second and the last have nothing to do.
            let guess: Vec<_> = (0..4).map(|j| if j % 2 == 1 { good[j].clone() } else { sources[j].clone() }).collect();
            let (solutions, report) = configuration.solve(&sources, Some(&guess), &request, &mut ()).unwrap();
            let (info, own) = (&report.info, &report.info.iterations_per_rhs);
            assert!(own[1] == 0 && own[3] == 0 && own[0] > 4 && own[2] > 4, "{own:?}");
            assert!(info.sloppy_rhs <= 2 * info.sloppy_applications, "{info:?}");
            assert!(wide.converged && report.converged && report.escalations.is_empty());
            for (j, (got, expected)) in solutions.iter().zip(&good).enumerate() {
                let off: f64 = got.sites().iter().zip(expected.sites()).map(|(a, b)| distance2(a, b)).sum();
                // Two residuals of 1e-10, over the smallest singular value of M.
                assert!(off.sqrt() < 1e-8 * expected.norm2().sqrt(), "{grid:?} {overlap} {j}: {:e}", off.sqrt());
            }
        });
    }
}

/// A preconditioner for four right-hand sides that works on fewer, because the batch has become smaller or because it is given
/// fewer, leaves the others alone.
#[test]
fn a_narrow_preconditioner_leaves_the_others_alone() {
    let (domain, gauge) = (domain(), generate::weak_field(lattice(), 7, 0.3));
    let configuration = Configuration::new(&domain, &gauge);
    let space = FieldSpace::new(&domain, FieldShape::spinors(Precision::Single, 4));
    let sources: Vec<HostSpinor> = (0..4).map(|seed| generate::random_source(lattice(), 30 + seed)).collect();
    let vectors = |seed: u64, nrhs: usize| {
        let sources: Vec<_> = sources.iter().cycle().skip(seed as usize).take(nrhs).cloned().collect();
        let mut full = zero(&domain, Precision::Single, nrhs);
        full.upload(&sources).unwrap();
        full.even
    };
    let bits = |even: DeviceField| -> Vec<HostSpinor> {
        let FullField { odd, .. } = zero(&domain, Precision::Single, even.nrhs());
        FullField { even, odd }.download().unwrap()
    };
    for block in [None, Some([4, 4, 4, 4])] {
        let schwarz = Schwarz { domain: block, steps: 3, precision: Precision::Single, ..Default::default() };
        let k = configuration.preconditioner(params(), &schwarz, LinkStorage::of(12), 4).unwrap();
        let apply = |r: &DeviceField, mut z: DeviceField| k.apply(&space, r, &[1.0; 4], &mut z).map(|_| bits(z));
        let (r, untouched) = (vectors(0, 4), bits(vectors(1, 4)));
        let wide = apply(&r, vectors(1, 4)).unwrap();
        assert!((0..4).all(|j| wide[j].sites() != untouched[j].sites()));
        for nrhs in 1..4 {
            assert!(k.narrow(nrhs));
            let narrow = apply(&r, vectors(1, 4)).unwrap();
            for j in 0..4 {
                let expected = if j < nrhs { &wide } else { &untouched };
                assert!(narrow[j].sites() == expected[j].sites(), "{block:?} {nrhs} {j}");
            }
        }
        assert!(k.narrow(4) && apply(&r, vectors(1, 4)).unwrap() == wide);
        // Fewer right-hand sides than there is memory for, and vectors that do not fit.
        let two = apply(&vectors(0, 2), vectors(1, 4)).unwrap();
        assert!(two[..2] == wide[..2] && two[2..] == untouched[2..]);
        let few = apply(&r, vectors(1, 2)).map(|_| ());
        assert!(matches!(few, Err(DeviceError::OtherCount { found: 2, expected: 4 })), "{few:?}");
        let many = apply(&vectors(0, 5), vectors(1, 5)).map(|_| ());
        assert!(matches!(many, Err(DeviceError::OtherCount { found: 4, expected: 5 })), "{many:?}");
    }
}

#[test]
fn domains_that_do_not_fit_are_refused() {
    let (domain, gauge) = (domain(), generate::weak_field(lattice(), 7, 0.1));
    let source = [generate::random_source::<Spinor>(lattice(), 8)];
    let configuration = Configuration::new(&domain, &gauge);
    let wrong = [
        Schwarz { domain: Some([3, 8, 4, 8]), ..Default::default() },
        Schwarz { domain: Some([4, 8, 4, 16]), ..Default::default() },
        Schwarz { domain: Some([4, 0, 4, 8]), ..Default::default() },
        Schwarz { steps: 0, ..Default::default() },
        Schwarz { k_max: 0, ..Default::default() },
        Schwarz { omega: f64::NAN, ..Default::default() },
        Schwarz { overlap: 1, ..Default::default() },
        Schwarz { overlap: 2, ..Default::default() },
    ];
    for schwarz in wrong {
        let request = Request { method: Method::GCR_DD, schwarz, ..Request::new(params()) };
        let failure = configuration.solve(&source, None, &request, &mut ()).map(|_| ()).unwrap_err();
        assert!(matches!(failure, SolveFailure::Schwarz(_)), "{schwarz:?}: {failure}");
    }
}
