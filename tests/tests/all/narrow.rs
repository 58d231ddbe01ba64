//! Batches that become smaller: spaces and operators that are narrowed, and a solve that right-hand sides leave.
use comms::Threads;
use ferrite::backend::Cpu;
use ferrite::domain::{Domain, Result};
use ferrite::field::host::{ColourVector, Fermion, HostField, Spinor};
use ferrite::field::{FieldShape, FieldSpace, FullField, GaugeField};
use ferrite::gauge::generate;
use ferrite::lattice::Lattice;
use ferrite::operators::{
    CloverParams, EvenOddStaggered, EvenOddWilson, Schur, Staggered, StaggeredLinks, StaggeredParams, TimeBoundary,
    Wilson, WilsonParams,
};
use ferrite::{LinkStorage, Precision};
use ferrite_tests::cut;
use num_complex::Complex64;
use solvers::{BicgstabWorkspace, LinearOperator, Mixed, SolverParams, VectorSpace, bicgstab};
use std::sync::Arc;

const NRHS: usize = 5;

fn lattice() -> Lattice {
    Lattice::new([4, 2, 4, 8]).unwrap()
}
fn domain() -> Domain {
    Domain::single(Cpu::new(None), lattice()).unwrap()
}
fn params() -> WilsonParams {
    WilsonParams::from_mass(0.1, TimeBoundary::Antiperiodic)
}
fn fields<F: Fermion>(domain: &Domain, precision: Precision, seed: u64) -> Result<FullField> {
    let mut field = FullField::zero(domain, FieldShape::new(F::KIND, precision, NRHS))?;
    let host: Vec<HostField<F>> =
        (0..NRHS as u64).map(|j| generate::random_source(domain.section(), seed + j)).collect();
    field.upload(&host)?;
    Ok(field)
}

/// The images of the first rhs are those that they have among all, to the bit, and so are their sums; the others stay.
fn check<F: Fermion + PartialEq>(domain: &Domain, operator: &impl LinearOperator<FieldSpace>) -> Result {
    let space = FieldSpace::new(domain, FieldShape::new(F::KIND, Precision::Double, NRHS));
    let fields = |seed| fields::<F>(domain, Precision::Double, seed);
    let (x, w) = (fields(5)?, fields(15)?);
    let before = fields(25)?.download::<F>()?;
    for dagger in [false, true] {
        let apply = |nrhs: usize| -> Result<_> {
            let mut out = fields(25)?;
            let (mut dots, mut norms) = (vec![Complex64::ZERO; nrhs], vec![0.0; nrhs]);
            assert!(space.narrow(nrhs) && operator.narrow(nrhs) && space.nrhs() == nrhs);
            if dagger {
                operator.apply_dagger(&x.even, &mut out.even)?;
                space.dot_norm2(&out.even, &w.even, &mut dots, &mut norms)?;
            } else {
                operator.apply_dot(&space, &x.even, &mut out.even, &w.even, &mut dots, &mut norms)?;
            }
            Ok((out.download()?, dots, norms))
        };
        let (images, dots, norms) = apply(NRHS)?;
        assert!(images.iter().zip(&before).all(|(image, before)| image != before));
        for nrhs in 1..NRHS {
            let (got, some_dots, some_norms) = apply(nrhs)?;
            assert!(got[..nrhs] == images[..nrhs] && got[nrhs..] == before[nrhs..], "{nrhs} {dagger}");
            assert!(some_dots == dots[..nrhs] && some_norms == norms[..nrhs], "{nrhs} {dagger}");
        }
        assert!(apply(NRHS)?.0 == images, "all of them again");
    }
    assert!(!space.narrow(0) && !space.narrow(NRHS + 1) && space.nrhs() == NRHS);
    Ok(())
}

fn operators(domain: &Domain) -> Result {
    let gauge = GaugeField::upload(domain, &generate::weak_field(domain.section(), 3, 0.2))?;
    let links = Arc::new(gauge.pack(Precision::Double, LinkStorage::FULL)?);
    let wilson = Wilson::new(links.clone(), params());
    check::<Spinor>(domain, &EvenOddWilson::new(wilson.clone(), NRHS)?)?;
    let clover = Arc::new(CloverParams::isotropic(params(), 1.2, 1.0).term(&gauge)?);
    for schur in [Schur::Symmetric, Schur::Asymmetric] {
        check::<Spinor>(domain, &EvenOddWilson::with_diagonal(wilson.clone(), clover.clone(), schur, NRHS)?)?;
    }
    let params = StaggeredParams::new(0.1, TimeBoundary::Antiperiodic);
    let staggered = Staggered::new(Arc::new(StaggeredLinks::naive(links)), params);
    check::<ColourVector>(domain, &EvenOddStaggered::new(staggered, NRHS)?)
}

#[test]
fn narrowed_operators_leave_the_others_alone() {
    operators(&domain()).unwrap();
    // The lattice cut in two.
    let found = Threads::run(2, |world| operators(&cut::domain(Cpu::new(Some(1)), lattice(), [1, 1, 1, 2], world)?));
    assert_eq!(found.unwrap().len(), 2);
}

fn swapped<F: Fermion + PartialEq>(precision: Precision, same_bits: bool) -> Result {
    let domain = domain();
    let space = FieldSpace::new(&domain, FieldShape::new(F::KIND, precision, NRHS));
    let fields = |seed| fields::<F>(&domain, precision, seed);
    let (mut x, mut scratch) = (fields(5)?, fields(15)?);
    let before = x.download::<F>()?;
    let mut expected = before.clone();
    expected.swap(1, 4);
    // Also beyond the width.
    assert!(space.narrow(2));
    space.swap_rhs(&mut x.even, (1, 4), &mut scratch.even)?;
    space.swap_rhs(&mut x.odd, (4, 1), &mut scratch.odd)?;
    let after = x.download()?;
    assert!(after[1] != before[1] && after[4] != before[4] && after[0] == before[0] && after[2..4] == before[2..4]);
    assert!(!same_bits || after == expected, "{precision} {}", F::KIND);
    // And back. In 16 bits each of up to four copies moves the 24 numbers of a site by half a step at most, 1/65534 of the
    // largest, which is no larger than the norm of the site.
    space.swap_rhs(&mut x.even, (1, 4), &mut scratch.even)?;
    space.narrow(NRHS);
    let (mut off, mut norms) = (vec![0.0; NRHS], vec![0.0; NRHS]);
    let mut there = fields(5)?.even;
    space.norm2(&there, &mut norms)?;
    space.sub_norm2(&x.even, &mut there, &mut off)?;
    let most = if same_bits { 0.0 } else { 24.0 * (4.0f64 / 65534.0).powi(2) };
    assert!(off.iter().zip(&norms).all(|(off, norm)| *off <= most * norm), "{precision} {}: {off:?}", F::KIND);
    Ok(())
}

#[test]
fn rhs_change_places() {
    swapped::<Spinor>(Precision::Double, true).unwrap();
    swapped::<Spinor>(Precision::Single, true).unwrap();
    swapped::<Spinor>(Precision::Half, false).unwrap();
    swapped::<ColourVector>(Precision::Half, false).unwrap();
}

#[test]
fn right_hand_sides_leave_a_solve() {
    let domain = domain();
    let links = GaugeField::upload(&domain, &generate::weak_field(lattice(), 3, 0.2)).unwrap();
    let wilson = |precision| Wilson::new(Arc::new(links.pack(precision, LinkStorage::FULL).unwrap()), params());
    let operator = EvenOddWilson::new(wilson(Precision::Double), NRHS).unwrap();
    let sloppy = EvenOddWilson::new(wilson(Precision::Single), NRHS).unwrap();
    let space = FieldSpace::new(&domain, FieldShape::spinors(Precision::Double, NRHS));
    let small = FieldSpace::new(&domain, FieldShape::spinors(Precision::Single, NRHS));
    let system = Mixed::new(&space, &operator, &small, &sloppy);
    let b = fields::<Spinor>(&domain, Precision::Double, 40).unwrap().even;
    let mut x = space.allocate().unwrap();
    let params = SolverParams { tol: 1e-10, ..Default::default() };
    let mut workspace = BicgstabWorkspace::new(&system).unwrap();
    bicgstab(&system, &b, &mut x, &params, &mut workspace, &mut ()).unwrap();
    // From guesses that are good, none, and in between: the best ones are finished first, or at once.
    let off = fields::<Spinor>(&domain, Precision::Double, 60).unwrap().even;
    let (ones, errors) = ([Complex64::ONE; NRHS], [0.0, 1.0, 1e-9, 1e-4, 1e-7].map(Complex64::from));
    space.axpby(&errors, &off, &ones, &mut x).unwrap();
    let info = bicgstab(&system, &b, &mut x, &params, &mut workspace, &mut ()).unwrap();
    println!("{info:?}");
    let own = &info.iterations_per_rhs;
    assert!(own[0] == 0 && own[2] <= own[4] && own[4] < own[3] && own[3] < own[1], "{own:?}");
    assert!(info.sloppy_rhs < 3 * info.sloppy_applications, "{info:?}");
    // In their places, by an application to all.
    assert_eq!((space.nrhs(), small.nrhs()), (NRHS, NRHS));
    let mut image = space.allocate().unwrap();
    operator.apply(&x, &mut image).unwrap();
    let (mut residuals, mut norms) = ([0.0; NRHS], [0.0; NRHS]);
    space.sub_norm2(&b, &mut image, &mut residuals).unwrap();
    space.norm2(&b, &mut norms).unwrap();
    for j in 0..NRHS {
        let truth = (residuals[j] / norms[j]).sqrt();
        assert!(truth <= 1e-10 && (truth - info.true_residual[j]).abs() <= 1e-13, "{j}: {truth:e} {info:?}");
    }
}
