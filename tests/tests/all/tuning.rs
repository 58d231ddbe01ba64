//! `ferrite tune` must see every kernel that solves launch, whatever operators and solvers become.
use crate::spy::Spy;
use ferrite::FermionKind;
use ferrite::domain::Domain;
use ferrite::field::host::{ColourVector, Spinor};
use ferrite::gauge::generate;
use ferrite::lattice::Lattice;
use ferrite::operators::Operator;
use ferrite::operators::{
    ASQTAD, CLOVER, CloverParams, STAGGERED, Schur, StaggeredOperator, StaggeredParams, TimeBoundary, WILSON,
    WilsonParams,
};
use ferrite::solve::{Configuration, Correction, Method, Request, ShiftStrategy, solve};
use ferrite::tune::{Operations, launch_all};
use ferrite::workload::Options;
use ferrite::{LinkStorage, Precision};

#[test]
fn tuning_sees_all_kernels_of_solves() {
    let lattice = Lattice::new([4, 4, 4, 4]).unwrap();
    let precisions = [Precision::Double, Precision::Single, Precision::Half];
    // One reconstruction stands for all; the check of a solve takes all 18 reals.
    let options = Options {
        lattice,
        precisions: precisions.to_vec(),
        reconstructions: vec![LinkStorage::FULL, LinkStorage::of(12)],
        nrhs: 2,
    };
    // An operator's own group and linear algebra are enough.
    let tuned = |definition| {
        let spy = Spy::new(2);
        // Right-hand sides that are finished leave the batch.
        for (operations, nrhs) in [Operations::Operator(definition), Operations::LinearAlgebra(FermionKind::Wilson)]
            .into_iter()
            .flat_map(|o| [(o, 2), (o, 1)])
        {
            launch_all(&spy, operations, &Options { nrhs, ..options.clone() }).unwrap();
        }
        spy.hot()
    };
    let (with_wilson, with_clover) = (tuned(&WILSON), tuned(&CLOVER));

    let gauge = generate::weak_field(lattice, 1, 0.1);
    let sources = [generate::random_source::<Spinor>(lattice, 2), generate::random_source::<Spinor>(lattice, 3)];
    let wilson = WilsonParams::from_mass(0.3, TimeBoundary::Antiperiodic);
    let clover = CloverParams::isotropic(wilson, 1.0, 1.0);
    let operators = [
        (Operator::from(wilson), &with_wilson),
        (Operator::from(clover.with_schur(Schur::Symmetric)), &with_clover),
        (Operator::from(clover.with_schur(Schur::Asymmetric)), &with_clover),
    ];
    let reliable = Correction::Reliable { delta: None };
    let methods = [
        (Method::BICGSTAB, reliable, Precision::Double),
        (Method::BICGSTAB, Correction::Defect { inner_tol: 0.1 }, Precision::Single),
        (Method::CG, reliable, Precision::Single),
        (Method::BLOCK_CG, reliable, Precision::Single),
        (Method::CGNE, Correction::Defect { inner_tol: 0.1 }, Precision::Double),
    ];
    for (operator, tuned) in operators {
        for (method, correction, outer) in methods {
            for precision in precisions {
                // Not below that of the iteration.
                let outer = if precision == Precision::Double { precision } else { outer };
                let request = Request {
                    method,
                    correction,
                    outer,
                    precision,
                    reconstruction: LinkStorage::of(12),
                    tol: 1e-5,
                    ..Request::new(&operator)
                };
                let spy = Spy::new(2);
                let domain = Domain::single(spy.clone(), lattice).unwrap();
                solve(&domain, &gauge, &sources, &request, &mut ()).unwrap();
                // Rows of the iteration and of the check, updates, sums of fields, conversions.
                assert!(spy.hot().len() >= 5);
                let missed: Vec<_> = spy.hot().difference(tuned).cloned().collect();
                assert!(missed.is_empty(), "{operator:?}, {method:?}, {precision:?}: {missed:?}");
            }
        }
    }
}

#[test]
fn tuning_sees_all_kernels_of_staggered_solves() {
    use Precision::{Double, Half, Single};
    let lattice = Lattice::new([4, 4, 4, 4]).unwrap();
    let options = Options {
        lattice,
        precisions: vec![Double, Single, Half],
        reconstructions: vec![
            LinkStorage::FULL,
            LinkStorage::of(12),
            LinkStorage::of(12).in_half(),
            LinkStorage::of(9),
            LinkStorage::of(9).in_half(),
        ],
        nrhs: 2,
    };
    let tuned = |definition| {
        let spy = Spy::new(2);
        for (operations, nrhs) in [Operations::Operator(definition), Operations::LinearAlgebra(FermionKind::Staggered)]
            .into_iter()
            .flat_map(|o| [(o, 2), (o, 1)])
        {
            launch_all(&spy, operations, &Options { nrhs, ..options.clone() }).unwrap();
        }
        spy.hot()
    };
    let (with_naive, with_improved) = (tuned(&STAGGERED), tuned(&ASQTAD));
    let gauge = generate::weak_field(lattice, 1, 0.1);
    let sources =
        [generate::random_source::<ColourVector>(lattice, 2), generate::random_source::<ColourVector>(lattice, 3)];
    // Of HISQ's formats 9 stands for both, as 12 does of the others'.
    let twelve = (LinkStorage::of(12), LinkStorage::of(12).in_half());
    let nine = (LinkStorage::of(9), LinkStorage::of(9).in_half());
    for (improved, tuned, (full, short)) in
        [(false, &with_naive, twelve), (true, &with_improved, twelve), (true, &with_improved, nine)]
    {
        for (outer, precision, reconstruction) in
            [(Double, Double, full), (Double, Single, full), (Single, Single, short), (Double, Half, full)]
        {
            for correction in [Correction::Reliable { delta: None }, Correction::Defect { inner_tol: 0.1 }] {
                let spy = Spy::new(2);
                let domain = Domain::single(spy.clone(), lattice).unwrap();
                let configuration = Configuration::new(&domain, &gauge);
                let params = StaggeredParams::new(0.3, TimeBoundary::Antiperiodic);
                let operator = StaggeredOperator::naive(params);
                let operator = if improved { StaggeredOperator::asqtad(params, 0.9) } else { operator };
                let tol = if outer == Single { 1e-4 } else { 1e-8 };
                let request = Request { outer, precision, reconstruction, correction, tol, ..Request::new(operator) };
                for method in [Method::CG, Method::BLOCK_CG] {
                    configuration.solve(&sources, None, &Request { method, ..request.clone() }, &mut ()).unwrap();
                }
                let shifts = [0.0, 0.1, 0.2, 0.5, 1.0];
                let strategy = ShiftStrategy::MultiShift;
                let (_, report) = configuration.solve_shifts(&sources, &shifts, strategy, &request, &mut ()).unwrap();
                assert!(report.converged && spy.hot().len() > 5);
                let missed: Vec<_> = spy.hot().difference(tuned).cloned().collect();
                assert!(missed.is_empty(), "{improved}, {precision}, {reconstruction}, {correction:?}: {missed:?}");
            }
        }
    }
}
