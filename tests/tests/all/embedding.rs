//! Guarantees to programs that embed the library: nothing is global, so that each of several backends in one process gives what it gives
//! alone; and a misfit is an error that can be matched on.
use ferrite::backend::{BackendError, Cpu};
use ferrite::domain::{DeviceError, Domain};
use ferrite::field::host::{HostColour, HostGauge, HostSpinor, Spinor};
use ferrite::field::{DeviceField, DeviceGauge, FieldShape, FieldSpace, FullField, GaugeField, HopPhases};
use ferrite::gauge::generate;
use ferrite::gauge::loops::{LoopKind, LoopPath, mean_traces};
use ferrite::hmc::action::GaugeAction;
use ferrite::hmc::fermions::{QuarkOperator, QuarkSmearing};
use ferrite::hmc::force::{Force, GaugeActionForce};
use ferrite::hmc::integrator::{Scheme, Unitarise};
use ferrite::hmc::links::EvolvingLinks;
use ferrite::hmc::momenta::{MomentumField, distance};
use ferrite::hmc::trajectory::{Chain, LevelPlan, Noise, Plan};
use ferrite::hmc::{HmcError, PlanError, hop_force};
use ferrite::lattice::Lattice;
use ferrite::operators::fat_links::PathCoefficients;
use ferrite::operators::{
    CloverParams, DiagonalForm, EvenOddStaggered, EvenOddWilson, Schur, Staggered, StaggeredLinks, StaggeredOperator,
    StaggeredParams, TimeBoundary, Wilson, WilsonParams,
};
use ferrite::solve::{Configuration, Request, Schwarz, SolveFailure};
use ferrite::{FermionKind, Format, LinkStorage, Precision};
use ferrite_tests::cut;
use ferrite_tests::testkit::on_grid;
use num_complex::Complex64;
use solvers::{CgStep, ConvertFrom, LinearOperator, Overlap, VectorSpace};
use std::sync::{Arc, Barrier};

/// A solve on a backend of its own.
fn solve(threads: usize, mass: f64, seed: u64) -> (Vec<HostSpinor>, usize) {
    let lattice = Lattice::new([4, 4, 4, 8]).unwrap();
    let domain = Domain::single(Cpu::new(Some(threads)), lattice).unwrap();
    let gauge = generate::weak_field(lattice, seed, 0.2);
    let source = generate::random_source(lattice, seed);
    let operator = WilsonParams::from_mass(mass, TimeBoundary::Antiperiodic);
    let request = Request { precision: Precision::Single, ..Request::new(operator) };
    let (solutions, report) = Configuration::new(&domain, &gauge).solve(&[source], None, &request, &mut ()).unwrap();
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
    let temporal = Request { reconstruction: LinkStorage::of(12).in_temporal_gauge(), ..usual.clone() };

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
        let error = device(Configuration::new(&domain, &elsewhere).solve(&right, None, &request, &mut ()));
        assert_eq!(error.to_string(), "a gauge field is on a lattice of 4×4×4×4, but must be on one of 4×4×4×8");
    }
}

/// Kernels of improved operators read fat and long links side by side.
#[test]
fn fat_and_long_links_that_do_not_belong_together_are_errors() {
    let domain = |extents| Domain::single(Cpu::new(Some(1)), Lattice::new(extents).unwrap()).unwrap();
    let (here, there, beside) = (domain([4, 4, 4, 4]), domain([4, 4, 4, 6]), domain([4, 4, 4, 4]));
    let thin = |domain: &Domain| GaugeField::upload(domain, &generate::weak_field(domain.local(), 1, 0.1)).unwrap();
    let fat = |precision, storage| {
        DeviceGauge::from_links(&thin(&here), precision, storage, 1.0, 1, HopPhases::NONE).unwrap()
    };
    let of = |other: &Domain| {
        let long =
            DeviceGauge::from_links(&thin(other), Precision::Single, LinkStorage::of(12), 1.0, 3, HopPhases::NONE)
                .unwrap();
        StaggeredLinks::improved(fat(Precision::Single, LinkStorage::FULL), long).map(|_| ())
    };
    of(&here).unwrap();
    assert!(matches!(of(&there), Err(DeviceError::OtherLattice { found, .. }) if found == there.local()));
    assert!(matches!(of(&beside), Err(DeviceError::OtherDevice { .. })));
    // Nor in different formats: fat links have all their real numbers, in 16 bits where long ones have.
    for (precision, storage) in [
        (Precision::Double, LinkStorage::FULL),
        (Precision::Single, LinkStorage::of(12)),
        (Precision::Single, LinkStorage::FULL.in_half()),
    ] {
        let long =
            DeviceGauge::from_links(&thin(&here), Precision::Single, LinkStorage::of(12), 1.0, 3, HopPhases::NONE)
                .unwrap();
        let refused = StaggeredLinks::improved(fat(precision, storage), long).map(|_| ()).unwrap_err();
        let (found, expected) =
            (Format::with_links(precision, storage), Format::with_links(Precision::Single, LinkStorage::FULL));
        assert!(matches!(refused, DeviceError::OtherFormat { found: f, expected: e } if (f, e) == (found, expected)));
    }
}

/// Kernels do not look where a field ends, so nothing is launched on one that is too small.
#[test]
fn device_fields_that_do_not_fit_are_errors() {
    let boundary = TimeBoundary::Antiperiodic;
    let domain = |extents| Domain::single(Cpu::new(Some(1)), Lattice::new(extents).unwrap()).unwrap();
    // The last one is another backend's, whose memory may be another GPU's.
    let (here, there, beside) = (domain([4, 4, 4, 4]), domain([4, 4, 4, 2]), domain([4, 4, 4, 4]));
    let gauge = |domain: &Domain| GaugeField::upload(domain, &generate::weak_field(domain.local(), 1, 0.1)).unwrap();
    let single = Precision::Single;
    let links = Arc::new(gauge(&here).pack(single, LinkStorage::of(12)).unwrap());
    let wilson = Wilson::new(links.clone(), WilsonParams::from_mass(0.1, boundary));
    let staggered = Staggered::new(Arc::new(StaggeredLinks::naive(links)), StaggeredParams::new(0.1, boundary));
    let clover = CloverParams::isotropic(wilson.params(), 1.0, 1.0);
    let term = |domain| Arc::new(clover.term(&gauge(domain)).unwrap().convert(single).unwrap());
    let on_two = EvenOddWilson::new(wilson.clone(), 2).unwrap();
    let on_one = EvenOddWilson::new(wilson.clone(), 1).unwrap();
    let clovers = [Schur::Symmetric, Schur::Asymmetric]
        .map(|schur| EvenOddWilson::with_diagonal(wilson.clone(), term(&here), schur, 2).unwrap());
    let even_odd = EvenOddStaggered::new(staggered.clone(), 2).unwrap();
    let space = FieldSpace::new(&here, FieldShape::spinors(single, 2));
    let short = FieldSpace::new(&here, FieldShape::spinors(Precision::Half, 2));
    let of_colours = FieldSpace::new(&here, FieldShape::colours(single, 2));

    let spinor = |domain, nrhs| DeviceField::zero(domain, FieldShape::spinors(single, nrhs)).unwrap();
    let colour = |domain, nrhs| DeviceField::zero(domain, FieldShape::colours(single, nrhs)).unwrap();
    let (x, mut out) = (spinor(&here, 2), spinor(&here, 2));
    let (ones, mut norms, mut dots) = ([Complex64::ONE; 4], [0.0; 2], [Complex64::ZERO; 4]);
    let fits = |result: Result<(), DeviceError>| result.unwrap();
    fits(wilson.dslash(0, false, &x, &mut out));
    fits(on_two.apply(&x, &mut out));
    for (place, nrhs, wrong) in [(&there, 2, "lattice"), (&here, 1, "count"), (&beside, 2, "device")] {
        let (mut bad, mut colours) = (spinor(place, nrhs), colour(place, nrhs));
        let refused = |what: &str, result: Result<(), DeviceError>| match (wrong, result) {
            ("lattice", Err(DeviceError::OtherLattice { found, .. })) if found == there.local() => {}
            ("count", Err(DeviceError::OtherCount { found: 1, expected: 2 })) => {}
            ("device", Err(DeviceError::OtherDevice { .. })) => {}
            (_, other) => panic!("{what}, other {wrong}: {other:?}"),
        };
        for dagger in [false, true] {
            refused("a result", wilson.dslash(0, dagger, &x, &mut bad));
            refused("a summand", wilson.dslash_add(0, dagger, (1.0, &bad), (1.0, &x), &mut out));
            for clover in &clovers {
                refused("of a clover operator", clover.dslash(0, dagger, &x, &mut bad));
                refused(
                    "of a clover term",
                    clover.apply_diagonal(DiagonalForm { parity: 0, inverse: dagger, dagger }, &x, &mut bad),
                );
                let apply = if dagger { clover.apply_dagger(&x, &mut bad) } else { clover.apply(&x, &mut bad) };
                refused("of a clover complement", apply);
            }
        }
        refused("of a complement", on_two.apply(&x, &mut bad));
        refused("of sums", on_two.apply_dot(&space, &x, &mut out, &bad, &mut dots[..2], &mut norms));
        let (c, mut image) = (colour(&here, 2), colour(&here, 2));
        refused("staggered", staggered.dslash(0, &c, &mut colours));
        refused("a staggered summand", staggered.dslash_add(0, (1.0, &colours), (1.0, &c), &mut image));
        refused("a staggered complement", even_odd.apply(&c, &mut colours));
        for (p, r) in [(&c, &colours), (&colours, &c)] {
            let from = CgStep { shift: 0.0, p, r, rho: &[1.0; 2] };
            let overlap: [Overlap<'_, DeviceError>; 2] = [&mut || Ok(()), &mut || Ok(())];
            let step = even_odd.cg_step(&of_colours, &from, &mut image, &mut dots[..2], &mut norms, overlap);
            refused("a step", step);
        }
        refused("axpby", space.axpby(&ones[..2], &bad, &ones[..2], &mut out));
        refused("axpby into", space.axpby(&ones[..2], &x, &ones[..2], &mut bad));
        refused("copy", space.copy(&x, &mut bad));
        refused("copy of", space.copy(&bad, &mut out));
        refused("norm2", space.norm2(&bad, &mut norms));
        refused("dot", space.dot(&x, &bad, &mut dots[..2]));
        refused("dot_norm2", space.dot_norm2(&bad, &x, &mut dots[..2], &mut norms));
        refused("xpay_norm2", space.xpay_norm2(&bad, &[1.0; 2], &mut out, &mut norms, &mut || Ok(())));
        refused("sub_norm2", space.sub_norm2(&bad, &mut out, &mut norms));
        refused("axpy_norm2", space.axpy_norm2(&ones[..2], &bad, &mut out, &mut norms));
        refused("gram", space.gram(&x, &bad, &mut dots));
        refused("block_axpy", space.block_axpy(&ones, &x, &mut bad));
        refused("block_scale", space.block_scale(&ones, &bad, &mut out));
        refused("multi_dot", space.multi_dot(std::slice::from_ref(&bad), &x, &mut dots[..2], &mut norms));
        refused("multi_axpy", space.multi_axpy(&ones[..2], std::slice::from_ref(&bad), &mut out));
        refused("swap_rhs", space.swap_rhs(&mut bad, (0, 1), &mut out));
        let mut half = short.allocate().unwrap();
        refused("convert", short.convert(&[1.0; 2], &bad, &mut half));
    }
    // Input of another lattice; one with fewer right-hand sides says how many are meant.
    let elsewhere = wilson.dslash(0, false, &spinor(&there, 2), &mut out);
    assert!(matches!(elsewhere, Err(DeviceError::OtherLattice { .. })), "{elsewhere:?}");
    fits(wilson.dslash(0, false, &spinor(&here, 1), &mut out));
    // More than the operator has memory for.
    let wide = on_one.apply(&x, &mut out);
    assert!(matches!(wide, Err(DeviceError::OtherCount { found: 1, expected: 2 })), "{wide:?}");
    let foreign =
        |place| EvenOddWilson::with_diagonal(wilson.clone(), term(place), Schur::Symmetric, 2).map(|_| ()).unwrap_err();
    let (other, same) = (foreign(&there), foreign(&beside));
    assert!(matches!(other, DeviceError::OtherLattice { what: "a clover term", .. }), "{other:?}");
    assert!(matches!(same, DeviceError::OtherDevice { what: "a clover term", .. }), "{same:?}");
    // The same links with a term for quarks of another mass.
    let heavier =
        CloverParams::isotropic(WilsonParams::from_mass(0.2, boundary), 1.0, 1.0).term(&gauge(&here)).unwrap();
    let heavier = Arc::new(heavier.convert(single).unwrap());
    let other = EvenOddWilson::with_diagonal(wilson.clone(), heavier, Schur::Symmetric, 2).map(|_| ()).unwrap_err();
    assert!(matches!(other, DeviceError::OtherTerm { found: 4.2, expected: 4.1 }), "{other:?}");
    let mut mixed = FullField { even: x, odd: spinor(&there, 2) };
    assert!(matches!(mixed.download::<Spinor>(), Err(DeviceError::OtherLattice { .. })));
    let sources = [HostSpinor::zero(here.local()), HostSpinor::zero(here.local())];
    assert!(matches!(mixed.upload(&sources), Err(DeviceError::OtherLattice { .. })));
}

/// Nor do those of molecular dynamics.
#[test]
fn momenta_that_do_not_fit_are_errors() {
    let domain = |extents| Domain::single(Cpu::new(Some(1)), Lattice::new(extents).unwrap()).unwrap();
    let (here, there) = (domain([4, 4, 4, 4]), domain([4, 4, 4, 2]));
    let gauge = |domain: &Domain| GaugeField::upload(domain, &generate::weak_field(domain.local(), 1, 0.1)).unwrap();
    let momenta = |domain| MomentumField::zero(domain, Precision::Double).unwrap();
    let (mut own, other) = (momenta(&here), momenta(&there));
    let (mut links, elsewhere) = (gauge(&here), gauge(&there));
    let refused = |what: &str, result: Result<(), DeviceError>| match result {
        Err(DeviceError::OtherLattice { .. }) => {}
        other => panic!("{what}: {other:?}"),
    };
    own.add(1.0, 1.0, &momenta(&here)).unwrap();
    refused("a sum", own.add(1.0, 1.0, &other));
    refused("a copy", own.copy_from(&other));
    refused("a step of links", other.move_links(&mut links, 0.1, true));
    refused("a copy of links", links.copy_from(&elsewhere));
    refused("a distance of links", distance([&links, &elsewhere], [&own, &own]).map(|_| ()));
    refused("a distance of momenta", distance([&links, &links], [&own, &other]).map(|_| ()));
    let force = GaugeActionForce { action: GaugeAction::wilson(6.0), single: false };
    let kicked = force.kick(&EvolvingLinks::new(&elsewhere, Precision::Double).unwrap(), 0.1, &mut own);
    assert!(kicked.is_err_and(|error| error.to_string().contains("a field of momenta")));
}

/// A format without kernels is an error at run time: only then the compiled formats are known.
#[test]
fn formats_without_kernels_are_errors() {
    use Precision::{Double, Fp16, Half, Single};
    let (of, short) = (LinkStorage::of, |reals| LinkStorage::of(reals).in_half());
    let lattice = Lattice::new([4, 4, 4, 4]).unwrap();
    let domain = Domain::single(Cpu::new(Some(1)), lattice).unwrap();
    let (gauge, boundary) = (generate::weak_field(lattice, 7, 0.1), TimeBoundary::Antiperiodic);
    let missing = |error: DeviceError| matches!(error, DeviceError::NoKernels { .. });
    let (wilson, configuration) = (WilsonParams::from_mass(0.1, boundary), Configuration::new(&domain, &gauge));
    for reconstruction in [of(13), of(9), short(18), short(12), short(8), short(13), short(9)] {
        let request = Request { reconstruction, ..Request::new(wilson) };
        let solved = configuration.solve(&[HostSpinor::zero(lattice)], None, &request, &mut ());
        assert!(matches!(solved, Err(SolveFailure::Device(DeviceError::NoKernels { .. }))), "{reconstruction}");
        assert!(configuration.operator(wilson, Single, reconstruction, 1).is_err_and(missing), "{reconstruction}");
        let preconditioner = configuration.preconditioner(wilson, &Schwarz::default(), reconstruction, 1);
        assert!(preconditioner.is_err_and(missing), "{reconstruction}");
    }
    // Two rows stand in for 8 real numbers.
    for reconstruction in [of(8), of(8).in_temporal_gauge()] {
        assert!(configuration.operator(wilson, Half, reconstruction, 1).is_ok());
    }

    let staggered = StaggeredParams::new(0.1, boundary);
    let naive = (StaggeredOperator::naive(staggered), vec![(Single, of(13)), (Half, short(12))]);
    let improved = (StaggeredOperator::asqtad(staggered, 0.9), vec![(Double, short(9))]);
    for (staggered, refused) in [naive, improved] {
        for (precision, reconstruction) in
            [vec![(Fp16, of(18)), (Double, of(12).in_temporal_gauge())], refused].concat()
        {
            let operator = configuration.operator(staggered, precision, reconstruction, 1);
            assert!(operator.is_err_and(missing), "{reconstruction} in {precision}");
        }
        assert!(configuration.operator(staggered, Single, short(12), 1).is_ok());
    }
}

/// A field in one format is refused where another format is needed: kernels would misread its bytes.
#[test]
fn fields_in_other_formats_are_errors() {
    use FermionKind::{Staggered as Colour, Wilson as Spin};
    use Precision::{Double, Half, Single};
    let domain = Domain::single(Cpu::new(Some(1)), Lattice::new([4, 4, 4, 4]).unwrap()).unwrap();
    let gauge = generate::weak_field(domain.local(), 1, 0.1);
    let device_links = GaugeField::upload(&domain, &gauge).unwrap();
    let links = Arc::new(device_links.pack(Single, LinkStorage::of(12)).unwrap());
    let params = WilsonParams::from_mass(0.1, TimeBoundary::Antiperiodic);
    let wilson = Wilson::new(links.clone(), params);
    let staggered = StaggeredParams::new(0.1, TimeBoundary::Antiperiodic);
    let staggered = Staggered::new(Arc::new(StaggeredLinks::naive(links)), staggered);
    let zero = |kind, precision| DeviceField::zero(&domain, FieldShape::new(kind, precision, 1)).unwrap();
    let refused = |result: Result<(), DeviceError>, formats: [Format; 2]| match result {
        Err(error @ DeviceError::OtherFormat { found, expected }) => {
            assert_eq!([found, expected], formats);
            let text = error.to_string();
            assert!(formats.iter().all(|format| text.contains(&format!("'{format}'"))), "{text}");
        }
        other => panic!("{formats:?}: {other:?}"),
    };

    let (mut spinor, mut colour) = (zero(Spin, Single), zero(Colour, Single));
    let space = FieldSpace::new(&domain, FieldShape::spinors(Single, 1));
    let (one, mut norm) = ([Complex64::ONE], [0.0]);
    for (kind, precision) in [(Spin, Double), (Spin, Half), (Colour, Single), (Colour, Double)] {
        let formats = [Format::fermions(kind, precision), Format::fermions(Spin, Single)];
        let mut other = zero(kind, precision);
        refused(wilson.dslash(0, false, &other, &mut spinor), formats);
        refused(wilson.dslash(0, false, &spinor, &mut other), formats);
        refused(wilson.dslash_add(0, false, (1.0, &other), (1.0, &zero(Spin, Single)), &mut spinor), formats);
        refused(EvenOddWilson::new(wilson.clone(), 1).unwrap().apply(&other, &mut spinor), formats);
        refused(space.norm2(&other, &mut norm), formats);
        refused(space.axpby(&one, &other, &one, &mut spinor), formats);
        refused(space.copy(&spinor, &mut other), formats);
    }
    let formats = [Format::fermions(Spin, Single), Format::fermions(Colour, Single)];
    refused(staggered.dslash(0, &spinor, &mut colour), formats);
    refused(FieldSpace::new(&domain, FieldShape::colours(Single, 1)).convert(&[1.0], &spinor, &mut colour), formats);

    let clover = CloverParams::isotropic(params, 1.0, 1.0).term(&device_links).unwrap();
    let formats = [Format::of(Double), Format::of(Single)];
    let half = clover.convert(Half).unwrap();
    refused(EvenOddWilson::with_diagonal(wilson, Arc::new(clover), Schur::Symmetric, 1).map(|_| ()), formats);
    refused(half.convert(Single).map(|_| ()), [Format::of(Half), Format::of(Double)]);

    let mut full = FullField::zero(&domain, FieldShape::spinors(Double, 1)).unwrap();
    let host = Format { kind: Some(Colour), ..Format::NONE };
    let formats = [host, Format::fermions(Spin, Double)];
    refused(full.upload(&[HostColour::zero(domain.local())]), formats);
    refused(full.download().map(|_: Vec<HostColour>| ()), formats);

    // Molecular dynamics has 64 or 32 bits.
    let momenta = |precision| MomentumField::zero(&domain, precision);
    let mut own = momenta(Double).unwrap();
    refused(momenta(Half).map(|_| ()), [Format::of(Half), Format::of(Single)]);
    refused(EvolvingLinks::new(&device_links, Half).map(|_| ()), [Format::of(Half), Format::of(Single)]);
    let single = EvolvingLinks::new(&device_links, Single).unwrap();
    refused(own.add(1.0, 1.0, &momenta(Single).unwrap()), [Format::of(Single), Format::of(Double)]);
    refused(single.own().plaquette().map(|_| ()), [Format::of(Single), Format::of(Double)]);
}

/// A kernel is there in the formats of its table, and in no other.
#[test]
fn launches_in_formats_that_kernels_do_not_have_are_errors() {
    use Precision::{Double, Fp16, Half};
    let domain = Domain::single(Cpu::new(Some(1)), Lattice::new([4, 4, 4, 4]).unwrap()).unwrap();
    let refused = |error: BackendError, kernel: &str, format: Format, some: &[&str]| {
        let text = error.to_string();
        let BackendError::NoFormat { kernel: name, format: asked, formats, features } = error else { panic!("{text}") };
        assert_eq!((name, &asked), (kernel, &format.to_string()));
        assert!(some.iter().all(|format| formats.iter().any(|known| known == format)), "{formats:?}");
        // No feature adds what no build has.
        assert!(!formats.contains(&asked) && features.is_empty());
        assert!(text.contains(kernel) && text.contains(&format!("'{asked}'")), "{text}");
        assert!(formats.iter().all(|format| text.contains(format)), "{text}");
    };
    let of_device = |error| match error {
        DeviceError::Backend(error) => error,
        other => panic!("{other}"),
    };

    let format = Format::fermions(FermionKind::Staggered, Fp16);
    let known = ["spinor double", "spinor single", "spinor half", "spinor fp16", "colour double", "colour half"];
    let space = FieldSpace::new(&domain, FieldShape::colours(Fp16, 1));
    let error = space.norm2(&space.allocate().unwrap(), &mut [0.0]).unwrap_err();
    refused(of_device(error), "norm2", format, &known);

    let links = GaugeField::upload(&domain, &generate::weak_field(domain.local(), 1, 0.1)).unwrap();
    let storage = LinkStorage::of(8).in_temporal_gauge();
    for precision in [Half, Fp16] {
        let error = links.pack(precision, storage).map(|_| ()).unwrap_err();
        let known = ["double 8t", "single 8t", "half 12t", "fp16 12t"];
        refused(of_device(error), "pack_links", Format::with_links(precision, storage), &known);
    }
    assert!(links.pack(Double, LinkStorage::of(9)).is_err());
}

/// Links that no process has heard of would be read from wherever they are looked for.
#[test]
fn paths_that_leave_the_border_are_errors() {
    let lattice = Lattice::new([4, 4, 4, 4]).unwrap();
    let gauge = generate::weak_field(lattice, 3, 0.2);
    let path = |mu: usize, length: usize| LoopPath {
        kind: LoopKind::Rectangle,
        steps: [vec![(mu, true); length], vec![(1, true)], vec![(mu, false); length], vec![(1, false)]].concat(),
    };
    let params = StaggeredParams::new(0.0, TimeBoundary::Antiperiodic);
    let operator = QuarkOperator::new(params, QuarkSmearing::Paths(PathCoefficients::asqtad(0.9)));
    let alone = Domain::single(Cpu::new(Some(1)), lattice).unwrap();
    let paths = [path(0, 3), path(3, 2), path(3, 3)];
    let expected = mean_traces(&GaugeField::upload(&alone, &gauge).unwrap(), &paths).unwrap();
    on_grid([1, 1, 1, 2], lattice, |domain| {
        let thin = GaugeField::upload(domain, &cut::links_of(&domain.section(), &gauge)).unwrap();
        let traces = mean_traces(&thin, &paths[..2]).unwrap();
        assert!(traces.iter().zip(&expected).all(|(a, b)| (a - b).abs() < 1e-13), "{traces:?} {expected:?}");
        let far = mean_traces(&thin, &paths).unwrap_err();
        assert!(matches!(far, DeviceError::PathTooLong { axis: 3, reach: 3, border: 2 }), "{far}");
        let field = DeviceField::zero(domain, FieldShape::colours(Precision::Double, 1)).unwrap();
        let links = EvolvingLinks::new(&thin, Precision::Double).unwrap();
        let mut momenta = MomentumField::zero(domain, Precision::Double).unwrap();
        let kicked = hop_force(&operator, (&field, &field), &[1.0], &links, 1.0, &mut momenta);
        assert!(matches!(kicked, Err(HmcError::Device(DeviceError::Grid(_)))), "{kicked:?}");
    });
}

/// A plan that moves nothing would accept everything.
#[test]
fn plans_without_a_way_are_errors() {
    let lattice = Lattice::new([4, 4, 4, 4]).unwrap();
    let domain = Domain::single(Cpu::new(Some(1)), lattice).unwrap();
    let links = GaugeField::upload(&domain, &HostGauge::unit(lattice)).unwrap();
    let level = |steps, quarks| LevelPlan { gauge: true, quarks, scheme: Scheme::Leapfrog, steps };
    let plan = |length, levels| Plan {
        gauge: GaugeAction::wilson(6.0),
        single_gauge_force: false,
        length,
        levels,
        unitarise: Unitarise::Always,
        seed: 1,
        friction: None,
        metropolis_from: 0,
    };
    let chain = |length, levels| Chain::new(plan(length, levels), &links, Precision::Double, Vec::new());
    let refused = |length: f64, levels: Vec<LevelPlan>| match chain(length, levels) {
        Err(HmcError::Plan(why)) => why,
        Err(other) => panic!("{other}"),
        Ok(_) => panic!("a chain of length {length}"),
    };
    let still = refused(1.0, vec![level(2, vec![]), level(0, vec![])]);
    assert_eq!(still, PlanError::NoSteps { level: 1 });
    let strange = refused(1.0, vec![level(2, vec![0])]);
    assert_eq!(strange, PlanError::NoSuchQuarks { level: 0, group: 0, groups: 0 });
    for length in [0.0, f64::NAN, f64::INFINITY] {
        assert!(matches!(refused(length, vec![level(2, vec![])]), PlanError::Length(_)), "{length}");
    }
    let mut chain = chain(0.5, vec![level(2, vec![])]).unwrap();
    let (momenta, noise) = (generate::random(lattice, 1), [HostColour::zero(lattice)]);
    let noisy = chain.trajectory(1, Some(Noise { momenta: &momenta, pseudofermions: &noise }), false);
    assert!(matches!(noisy, Err(HmcError::Plan(PlanError::Noise { found: 1, expected: 0 }))), "{noisy:?}");
    assert!(chain.trajectory(1, Some(Noise { momenta: &momenta, pseudofermions: &[] }), false).is_ok());
}

#[test]
#[should_panic(expected = "noise of inf")]
fn weak_fields_do_not_have_infinite_noise() {
    generate::weak_field(Lattice::new([2; 4]).unwrap(), 1, f64::INFINITY);
}
