//! Twisted boundary conditions: against the reference, for free quarks, and against what they are equivalent to.
use crate::program::Room;
use ferrite::backend::Cpu;
use ferrite::domain::Domain;
use ferrite::field::host::{ColourVector, Fermion, HostField, HostGauge, HostSpinor, Spinor};
use ferrite::gauge::generate;
use ferrite::lattice::Lattice;
use ferrite::multigrid::MultigridParams;
use ferrite::operators::fat_links::Improvement;
use ferrite::operators::{
    BoundaryAngles, CloverParams, ExpCloverParams, LinkRecipe, OPERATORS, Operator, OperatorForm, StaggeredOperator,
    StaggeredParams, TimeBoundary, TwistedCloverParams, TwistedParams, WilsonParams,
};
use ferrite::solve::{Configuration, Method, Request, Schwarz, solve};
use ferrite::{FermionKind, LinkStorage, Precision};
use ferrite_tests::checks::{self, THETA};
use ferrite_tests::cut;
use ferrite_tests::gamma;
use ferrite_tests::reference::{combine, field, norm2, spin_multiply, turned};
use ferrite_tests::report::relative_error;
use ferrite_tests::staggered_reference::LinkCoefficients;
use ferrite_tests::testkit::{on_cpu, on_grid};
use ferrite_tests::wilson_like_reference::WilsonLikeDirac;
use num_complex::Complex64;
use std::f64::consts::{PI, TAU};
use std::fmt::Debug;
use std::fs;

#[test]
fn staggered_hops_agree_with_the_reference() {
    on_cpu(checks::staggered_phases_of_hops);
}

#[test]
fn wilson_like_solves_end_at_their_tolerance() {
    on_cpu(checks::wilson_like_angles);
}

#[test]
fn staggered_solves_end_at_their_tolerance() {
    on_cpu(checks::staggered_angles);
}

/// The image under an operator, by kernels in double.
fn image<T: Fermion + Debug>(
    gauge: &HostGauge,
    operator: Operator,
    form: OperatorForm,
    psi: &HostField<T>,
) -> HostField<T> {
    let domain = Domain::single(Cpu::new(None), gauge.lattice()).unwrap();
    let configuration = Configuration::new(&domain, gauge);
    let psi = std::slice::from_ref(psi);
    let (mut images, storage) =
        configuration.apply(form, false, psi, &operator, Precision::Double, LinkStorage::of(12)).unwrap();
    // 12 reals do not determine links with phases.
    let reals = match (operator.definition().links, operator.theta().are_zero()) {
        (LinkRecipe::Improved | LinkRecipe::ImprovedInU3, false) => 13,
        (LinkRecipe::ImprovedInU3, true) => 13,
        (_, without) => {
            if without {
                12
            } else {
                18
            }
        }
    };
    assert_eq!(storage, LinkStorage::of(reals));
    images.swap_remove(0)
}

/// e^{i Σ θ_μ x_μ / L_μ} ψ
fn along<T: Fermion>(theta: [f64; 4], psi: &HostField<T>) -> HostField<T> {
    let lattice = psi.lattice();
    field(lattice, |k| {
        let (x, size) = (lattice.coordinates(k), lattice.size());
        let angle: f64 = (0..4).map(|mu| theta[mu] * x[mu] as f64 / size[mu] as f64).sum();
        let mut site = psi.sites()[k];
        bytemuck::cast_slice_mut::<T, Complex64>(std::slice::from_mut(&mut site))
            .iter_mut()
            .for_each(|z| *z *= Complex64::cis(angle));
        site
    })
}

/// Free quarks of all Wilson-like kinds with the momentum p have p + θ/L: M e^{ipx} u = (A + Σ_μ (1 − cos) + i Σ_μ γ_μ sin) e^{ipx} u.
#[test]
fn free_wilson_quarks_have_shifted_momenta() {
    let lattice = Lattice::new([2, 4, 6, 8]).unwrap();
    let (size, steps) = (lattice.size(), [1.0, 3.0, 2.0, 5.0]);
    let momenta: [f64; 4] = std::array::from_fn(|mu| TAU * steps[mu] / size[mu] as f64);
    let u: Spinor = std::array::from_fn(|s| std::array::from_fn(|a| Complex64::new(1.0 + s as f64, a as f64 - 0.5)));
    let psi = along(steps.map(|n| TAU * n), &field(lattice, |_| u));
    let mass = 0.2;
    let wilson = WilsonParams::from_mass(mass, TimeBoundary::Periodic);
    let clover = CloverParams::isotropic(wilson, 1.3, 1.0);
    for (operator, mu) in [
        (Operator::from(wilson), 0.0),
        (clover.into(), 0.0),
        (ExpCloverParams(clover).into(), 0.0),
        (TwistedParams { wilson, mu: 0.3 }.into(), 0.3),
        (TwistedCloverParams { clover, mu: 0.3 }.into(), 0.3),
    ] {
        let p: [f64; 4] = std::array::from_fn(|nu| momenta[nu] + THETA.0[nu] / size[nu] as f64);
        let number = mass + p.map(|p| 1.0 - p.cos()).iter().sum::<f64>();
        let mut expected = spin_multiply(&gamma::GAMMA5, &u).map(|row| row.map(|z| Complex64::new(0.0, mu) * z));
        let mut add = |c: Complex64, v: &Spinor| {
            let numbers = expected.as_flattened_mut().iter_mut();
            numbers.zip(v.as_flattened()).for_each(|(to, from)| *to += c * from);
        };
        add(number.into(), &u);
        for (gamma, p) in gamma::GAMMA.iter().zip(p) {
            add(Complex64::new(0.0, p.sin()), &spin_multiply(gamma, &u));
        }
        let expected = along(steps.map(|n| TAU * n), &field(lattice, |_| expected));
        let found = image(&HostGauge::unit(lattice), operator.with_theta(THETA), OperatorForm::Plain, &psi);
        let off = relative_error(&[found], &[expected]);
        assert!(off < 1e-14, "{}: {off:e}", operator.definition().name);
    }
}

/// M†M of free staggered quarks is m² + Σ s(p + θ/L)², with long hops of three times the angle.
#[test]
fn free_staggered_quarks_have_shifted_momenta() {
    let lattice = Lattice::new([2, 4, 6, 8]).unwrap();
    let (size, steps, mass) = (lattice.size(), [1.0, 3.0, 2.0, 5.0], 0.2);
    let psi = along(steps.map(|n| TAU * n), &field(lattice, |_| ColourVector::from([Complex64::new(1.0, -2.0); 3])));
    let params = StaggeredParams::new(mass, TimeBoundary::Periodic);
    for (operator, paths) in [
        (StaggeredOperator::naive(params), LinkCoefficients::naive()),
        (StaggeredOperator::asqtad(params, 0.9), LinkCoefficients::asqtad(0.9)),
        (StaggeredOperator::hisq(params, -0.1), LinkCoefficients::hisq(-0.1)),
    ] {
        // The first level of HISQ leaves links that are 1.
        let square = |nu: usize| paths.free_momentum((TAU * steps[nu] + THETA.0[nu]) / size[nu] as f64).powi(2);
        let value: f64 = mass * mass + (0..4).map(square).sum::<f64>();
        let found =
            image(&HostGauge::unit(lattice), Operator::from(operator).with_theta(THETA), OperatorForm::Normal, &psi);
        let off = relative_error(&[found], &[combine(&[(value.into(), &psi)])]);
        assert!(off < 1e-13, "{}: {off:e}", operator.definition.name);
    }
}

/// The phase spread over all hops is that of hops across the end of the lattice alone, for fields e^{iθx/L} χ.
#[test]
fn phases_may_be_at_the_end_of_the_lattice() {
    fn one<T: Fermion + Debug>(gauge: &HostGauge, operator: Operator) {
        let lattice = gauge.lattice();
        let psi: HostField<T> = generate::random_source(lattice, 5);
        let at_the_end = |k: usize| {
            let (x, mu) = (lattice.coordinates(k / 4), k % 4);
            let phase = if x[mu] + 1 == lattice.size()[mu] { Complex64::cis(THETA.0[mu]) } else { Complex64::ONE };
            gauge.links()[k].map(|row| row.map(|z| phase * z))
        };
        let ends = HostGauge::from_links(lattice, (0..gauge.links().len()).map(at_the_end).collect());
        let domain = Domain::single(Cpu::new(None), lattice).unwrap();
        for form in [OperatorForm::Plain, OperatorForm::Dagger, OperatorForm::Normal] {
            let spread = image(gauge, operator.with_theta(THETA), form, &psi);
            let there = [along(THETA.0, &psi)];
            let (double, full) = (Precision::Double, LinkStorage::FULL);
            let (back, _) =
                Configuration::new(&domain, &ends).apply(form, false, &there, &operator, double, full).unwrap();
            let off = relative_error(&[along(THETA.0.map(|theta| -theta), &back[0])], &[spread]);
            // Of some hundred roundings in paths of links, and a projection for HISQ.
            assert!(off < 1e-13, "{} {form:?}: {off:e}", operator.definition().name);
            // And it does something.
            let without = image(gauge, operator.clone(), form, &psi);
            let off = relative_error(&[without], &[image(gauge, operator.with_theta(THETA), form, &psi)]);
            assert!(off > 0.1, "{} {form:?}: {off:e}", operator.definition().name);
        }
    }
    let gauge = generate::weak_field(Lattice::new([2, 4, 6, 8]).unwrap(), 3, 0.4);
    for definition in OPERATORS {
        match definition.kind {
            FermionKind::Wilson => one::<Spinor>(&gauge, (definition.sample)()),
            FermionKind::Staggered => one::<ColourVector>(&gauge, (definition.sample)()),
        }
    }
}

/// A phase may make components of links larger: numbers in fixed point have room for them. Links are diag(ω, ω, ω⁻²), ω = e^{iπ/3}, of
/// which a turn by π/18 makes the imaginary part of ω 8 % larger, and one by three times that 15 %; long ones are in no group.
#[test]
fn fixed_point_has_room_for_phases() {
    let lattice = Lattice::new([2, 4, 6, 8]).unwrap();
    let links = |size: &dyn Fn(usize) -> f64| {
        let angles = [PI / 3.0, PI / 3.0, -TAU / 3.0];
        let link = |k: usize| {
            std::array::from_fn(|a| {
                std::array::from_fn(|b| if a == b { Complex64::from_polar(size(k), angles[a]) } else { 0.0.into() })
            })
        };
        HostGauge::from_links(lattice, (0..4 * lattice.volume()).map(link).collect())
    };
    let (fat, long) = (links(&|_| 1.0), links(&|k| if k % 3 == 0 { 0.04 } else { 0.02 }));
    let domain = Domain::single(Cpu::new(None), lattice).unwrap();
    let theta = BoundaryAngles(lattice.size().map(|extent| PI / 18.0 * extent as f64));
    let psi = [generate::random_source(lattice, 4)];
    let operator = StaggeredOperator {
        theta,
        ..(StaggeredOperator::asqtad(StaggeredParams::new(0.0, TimeBoundary::Periodic), 1.0))
    };
    let [exact, fixed] =
        [(Precision::Double, LinkStorage::FULL), (Precision::Half, LinkStorage::FULL)].map(|(precision, storage)| {
            let links = Improvement::from_host(&domain, &fat, &long).unwrap();
            let configuration = Configuration::improved(links);
            let applied =
                configuration.apply::<ColourVector>(OperatorForm::Plain, false, &psi, operator, precision, storage);
            applied.unwrap().0
        });
    // Some units of 2⁻¹⁵ of the largest component of a site.
    let off = relative_error(&fixed, &exact);
    assert!(off < 1e-3, "{off:e}");
}

/// Σ over components of |S(x)|² on each time, of propagators from a point: the pion.
fn pion<T: Fermion + Debug>(gauge: &HostGauge, operator: Operator, sources: &[HostField<T>]) -> Vec<f64> {
    let lattice = gauge.lattice();
    let domain = Domain::single(Cpu::new(None), lattice).unwrap();
    let request = Request { tol: 1e-13, ..Request::new(operator) };
    let (solutions, report) = solve(&domain, gauge, sources, &request, &mut ()).unwrap();
    assert!(report.converged);
    let mut correlator = vec![0.0; lattice.size()[3]];
    for psi in &solutions {
        for (k, site) in psi.numbers().chunks(T::COMPONENTS).enumerate() {
            correlator[lattice.coordinates(k)[3]] += site.iter().map(|z| z.norm_sqr()).sum::<f64>();
        }
    }
    correlator
}

/// θ_t = π is antiperiodic: propagators differ by phases, and pions do not; with 2π nothing is different from 0.
#[test]
fn a_half_turn_in_t_is_antiperiodic() {
    let gauge = generate::weak_field(Lattice::new([4, 4, 4, 8]).unwrap(), 3, 0.3);
    let lattice = gauge.lattice();
    let origin = [1, 2, 3, 5];
    let wilson = |boundary, turn: f64| {
        let clover = CloverParams::isotropic(WilsonParams::from_mass(0.1, boundary), 1.2, 1.0);
        let sources: Vec<HostSpinor> =
            (0..12).map(|k| generate::point_source(lattice, origin, k / 3, k % 3).expect("inside")).collect();
        pion(&gauge, Operator::from(clover).with_theta(BoundaryAngles([0.0, 0.0, 0.0, turn])), &sources)
    };
    let hisq = |boundary, turn: f64| {
        let operator = StaggeredOperator::hisq(StaggeredParams::new(0.1, boundary), 0.0);
        let sources: Vec<_> =
            (0..3).map(|a| generate::point_colour_source(lattice, origin, a).expect("inside")).collect();
        pion(&gauge, Operator::from(operator).with_theta(BoundaryAngles([0.0, 0.0, 0.0, turn])), &sources)
    };
    let pions: [&dyn Fn(TimeBoundary, f64) -> Vec<f64>; 2] = [&wilson, &hisq];
    for pion in pions {
        let worst = |a: &[f64], b: &[f64]| a.iter().zip(b).map(|(a, b)| (a / b - 1.0).abs()).fold(0.0, f64::max);
        let [periodic, antiperiodic] = [TimeBoundary::Periodic, TimeBoundary::Antiperiodic].map(|b| pion(b, 0.0));
        // Residuals of 1e-13 and the condition of M, below a thousand.
        assert!(worst(&pion(TimeBoundary::Periodic, PI), &antiperiodic) < 1e-10);
        assert!(worst(&pion(TimeBoundary::Antiperiodic, PI), &periodic) < 1e-10);
        assert!(worst(&pion(TimeBoundary::Periodic, TAU), &periodic) < 1e-10);
        assert!(worst(&antiperiodic, &periodic) > 1e-3);
    }
}

/// Images on every process are those of the whole lattice, bit by bit, for the phase depends on its extents; solves with what looks
/// beyond a part, and with multigrid, end at their tolerance.
#[test]
fn processes_have_the_phases_of_the_whole_lattice() {
    fn images<T: Fermion + Debug>(domain: &Domain, gauge: &HostGauge, operator: Operator) -> Vec<HostField<T>> {
        let psi: HostField<T> = generate::random_source(domain.section(), 7);
        let (double, storage) = (Precision::Double, LinkStorage::of(12));
        let configuration = Configuration::new(domain, gauge);
        configuration.apply(OperatorForm::Normal, false, &[psi], operator, double, storage).unwrap().0
    }
    let lattice = Lattice::new([4, 8, 4, 8]).unwrap();
    let gauge = generate::weak_field(lattice, 3, 0.3);
    let alone = Domain::single(Cpu::new(Some(1)), lattice).unwrap();
    let operators = OPERATORS.map(|definition| (definition.sample)().with_theta(THETA));
    let numbers = |domain: &Domain, gauge: &HostGauge, operator: Operator| -> Vec<Complex64> {
        match operator.kind() {
            FermionKind::Wilson => images::<Spinor>(domain, gauge, operator)[0].numbers().to_vec(),
            FermionKind::Staggered => images::<ColourVector>(domain, gauge, operator)[0].numbers().to_vec(),
        }
    };
    let whole = operators.clone().map(|operator| numbers(&alone, &gauge, operator));
    let wilson = WilsonParams::from_mass(0.1, TimeBoundary::Antiperiodic);
    let clover = CloverParams::isotropic(wilson, 1.2, 1.0);
    let with_phases = turned(&gauge, THETA.0);
    let reference = WilsonLikeDirac::twisted(&with_phases, wilson, [clover.space, clover.time], 0.0);
    let eta: HostSpinor = generate::random_source(lattice, 9);
    for grid in [[1, 2, 1, 1], [1, 1, 1, 2]] {
        let solutions = on_grid(grid, lattice, |domain| {
            let (section, part) = (domain.section(), cut::links_of(&domain.section(), &gauge));
            for (operator, whole) in operators.iter().zip(&whole) {
                let found = numbers(domain, &part, operator.clone());
                let n = operator.kind().spins() * 3;
                let same = (0..found.len()).all(|k| found[k] == whole[n * section.global_index(k / n) + k % n]);
                assert!(same, "{} on {grid:?}", operator.definition().name);
            }
            let eta: HostSpinor = generate::random_source(section, 9);
            let schwarz = Schwarz { overlap: 2, ..Schwarz::default() };
            let multigrid = MultigridParams { vectors: 8, improvements: 1, check: true, ..Default::default() };
            let clover = Operator::from(clover).with_theta(THETA);
            let solved = [Method::BICGSTAB, Method::GCR_DD, Method::MULTIGRID].map(|method| {
                let precision = Precision::Single;
                let request = Request { method, precision, schwarz, multigrid, ..Request::new(&clover) };
                let configuration = Configuration::new(domain, &part);
                let (solutions, claim) =
                    configuration.solve(std::slice::from_ref(&eta), None, &request, &mut ()).unwrap();
                assert!(claim.converged && claim.method == method, "{method:?} on {grid:?}");
                if let Some((_, multigrid)) = configuration.multigrid_setup() {
                    // Coarse operators are R M P of the M with phases, up to rounding in single precision.
                    let galerkin = multigrid.checks().iter().map(|check| check.galerkin).fold(0.0, f64::max);
                    assert!(galerkin > 0.0 && galerkin < 1e-5, "{galerkin:e} on {grid:?}");
                }
                solutions[0].sites().to_vec()
            });
            (section, solved)
        });
        for method in 0..3 {
            let mut psi = HostSpinor::zero(lattice);
            for (section, solved) in &solutions {
                for (k, site) in solved[method].iter().enumerate() {
                    psi.sites_mut()[section.global_index(k)] = *site;
                }
            }
            let residual = reference.residual(&eta, &psi);
            assert!(residual < 1e-10, "{method} on {grid:?}: {residual:e}");
        }
    }
    assert!(norm2(&eta) > 0.0);
}

/// Flags, keys, what is said of them, and mistakes.
#[test]
fn angles_are_flags_and_keys() {
    let room = Room::with_weak_field();
    let solve = "solve --gauge weak.ildg --mass 0.3 --source point:0,0,0,0,0,0 --precision single --reconstruct 12";
    let plain = room.json(&format!("{solve} -o plain.npy"));
    assert_eq!(plain["theta"], serde_json::json!([0.0, 0.0, 0.0, 0.0]));
    let twisted = room.json(&format!("{solve} --theta 0.5,-0.25,0,1e-1 -o twisted.npy"));
    assert_eq!(twisted["theta"], serde_json::json!([0.5, -0.25, 0.0, 0.1]));
    assert_eq!((&plain["reconstruct"], &twisted["reconstruct"]), (&"12".into(), &"18".into()));
    let asqtad = "solve --gauge weak.ildg --operator asqtad --mass 0.3 --source random:1 --theta 0.5,0,0,0 --tol 1e-8";
    assert_eq!(room.json(asqtad)["reconstruct"], "18");
    assert_eq!(room.json(&format!("{asqtad} --precision single --reconstruct 12"))["reconstruct"], "13");
    // As keys of a file, whose memory is that of all reals.
    let input = "gauge = 'weak.ildg'\nmass = 0.3\nsource = 'random:1'\nprecision = 'single'\nreconstruct = 12\n";
    fs::write(room.path("plain.toml"), input).unwrap();
    fs::write(room.path("twisted.toml"), format!("{input}theta = [0.5, 0.0, 0, -1]\n")).unwrap();
    let needed = |file: &str| room.json(&format!("check {file}"))["memory"]["needed_bytes"].as_u64().unwrap();
    // Six more reals of four bytes in eight links around each of 512 sites.
    assert_eq!(needed("twisted.toml") - needed("plain.toml"), 512 * 8 * 6 * 4);
    let text = room.run("solve twisted.toml --backend cpu");
    assert!(text.stdout.contains("theta = 0.5,0,0,-1"), "{}", text.stdout);
    for (value, parts) in [
        ("0.5", &["--theta", "expected four angles", "found 1"][..]),
        ("0.5,0,0,0,1", &["--theta", "found 5"]),
        ("0.5,0,x,0", &["--theta", "'x' is not an angle in radians"]),
        ("0.5,0,inf,0", &["--theta", "'inf'"]),
    ] {
        room.fails(2, &format!("{solve} --theta {value}"), parts);
    }
    fs::write(room.path("wrong.toml"), format!("{input}theta = [0.5, 1]\n")).unwrap();
    room.fails(2, "solve wrong.toml", &["wrong.toml", "theta", "four angles"]);
    // A setup of multigrid belongs to its angles.
    let setup = "solve --gauge weak.ildg --mass=-0.1 --source random:1 --solver multigrid --mg-vectors 8 --mg-block 2,2,2,2 \
                 --setup s.setup";
    room.json(&format!("{setup} --theta 0.5,0,0,0"));
    room.json(&format!("{setup} --theta 0.50,0,0,0.0"));
    room.fails(
        2,
        setup,
        &["s.setup is a setup for theta = [0.5,0.0,0.0,0.0]", "this solve has theta = [0.0,0.0,0.0,0.0]"],
    );
}

/// Sea quarks with angles, of both kinds.
#[test]
fn ensembles_have_angles() {
    let room = Room::new();
    let input = |quarks: &str| {
        format!(
            "lattice = [4, 4, 4, 4]\ntrajectories = 2\nseed = 5\n[gauge]\naction = 'wilson'\nbeta = 5.6\n[trajectory]\nlength = 0.2\n\
             steps = 2\n[[fermion]]\n{quarks}\n"
        )
    };
    let naive = "operator = 'naive'\nmass = [0.5]\nflavours = [2]";
    let clover = "operator = 'clover'\nmass = 0.5\ncsw = 1.0\nflavours = 2";
    for (name, quarks) in [("naive", naive), ("clover", clover)] {
        let file = format!("{name}.toml");
        fs::write(room.path(&file), input(&format!("{quarks}\ntheta = [0.5, 0, 0, -1.5]"))).unwrap();
        room.json(&format!("check {file}"));
        room.json(&format!("rhmc {file} --out {name}"));
        let lines = crate::trajectories::all_lines(&room, name);
        assert_eq!(lines[0]["run"]["quarks"][0]["theta"], serde_json::json!([0.5, 0.0, 0.0, -1.5]), "{}", lines[0]);
        // Another sea is not the same ensemble.
        fs::write(
            room.path(&file),
            input(&format!("{quarks}\ntheta = [0.5, 0, 0, 0]")).replace("= 2\nseed", "= 3\nseed"),
        )
        .unwrap();
        let why = [
            "this run was made with fermion.0.theta = [0.5,0,0,-1.5], but the input has [0.5,0,0,0]",
            "restore the values of the run",
        ];
        room.fails(2, &format!("rhmc {file} --out {name} --resume"), &why);
        for (wrong, why) in [("[0.5]", "four angles"), ("[0.5, 0, 0, 'x']", "theta")] {
            fs::write(room.path("wrong.toml"), input(&format!("{quarks}\ntheta = {wrong}"))).unwrap();
            room.fails(2, "rhmc wrong.toml --out wrong", &["wrong.toml", "theta", why]);
        }
    }
}
