//! The reference for staggered fermions against what MILC and CL2QCD computed, and against what must hold whatever the
//! links are. Kernels are compared with it elsewhere.
use crate::program::{answers, complex};
use ferrite::field::host::{ColourVector, HostColour, HostGauge};
use ferrite::files::{ReadOptions, read_fermion, read_gauge};
use ferrite::gauge::generate;
use ferrite::lattice::Lattice;
use ferrite_tests::refdata;
use ferrite_tests::reference::{adjoint, combine, dot, field, multiply, norm2, on_parity, transform_links, unit};
use ferrite_tests::report::{relative_error, worst_error};
use ferrite_tests::staggered_reference::{
    Boundary, EtaPhases, LinkCoefficients, ReferenceLinks, StaggeredDirac, detour, fat_links, links, long_links,
    project, transform_colour, transform_hops, unitary_links, ways_aside,
};
use ferrite_tests::testkit::matrix::scale;
use ferrite_tests::testkit::{farthest, largest, lattice};
use num_complex::Complex64;
use std::f64::consts::TAU;
use std::fs;
use std::path::Path;

const PHASES: [EtaPhases; 2] = [EtaPhases::Milc, EtaPhases::Standard];
const BOUNDARIES: [Boundary; 3] = [Boundary::Sign(1.0), Boundary::Sign(-1.0), Boundary::Spread];

/// Three steps are one back where an extent is 2, and more than a turn: in x, and in t.
fn odd_shapes() -> [Lattice; 2] {
    [lattice([2, 4, 6, 8]), lattice([6, 4, 8, 2])]
}

/// A field that is neither free nor too rough to fatten.
fn rough(lattice: Lattice, seed: u64) -> HostGauge {
    generate::weak_field(lattice, seed, 0.3)
}

/// The improved operators, by name.
fn improved(gauge: &HostGauge) -> [(&'static str, ReferenceLinks); 2] {
    [("asqtad", ReferenceLinks::asqtad(gauge, 0.9)), ("HISQ", ReferenceLinks::hisq(gauge, -0.1))]
}

/// η_μ(x) and the factor of the boundary, multiplied into links of that many steps.
fn with_phases(gauge: &HostGauge, phases: Option<EtaPhases>, boundary: Boundary, steps: i64) -> HostGauge {
    let lattice = gauge.lattice();
    links(lattice, |site, mu| {
        let x = lattice.coordinates(site);
        let eta = phases.map_or(1.0, |phases| phases.eta(mu, x));
        scale(eta * boundary.factor(lattice, mu, x[3], steps), gauge.link(site, mu))
    })
}

/// The largest difference of two elements over the largest element.
fn off(a: &[Complex64], b: &[Complex64]) -> f64 {
    farthest(a, b) / largest(b)
}

#[test]
fn paths_are_as_many_as_milc_counts() {
    // MILC counts both directions of each of four μ.
    for (n, count) in [(0, 8), (1, 48), (2, 192), (3, 384)] {
        assert_eq!((0..4).map(|mu| 2 * ways_aside(mu, n).len()).sum::<usize>(), count);
    }
    let distinct = LinkCoefficients { one_link: 1.0, three: 3.0, five: 5.0, seven: 7.0, lepage: 5.5, naik: 0.0 };
    for mu in 0..4 {
        let paths = distinct.paths(mu);
        for (k, (c, steps)) in paths.iter().enumerate() {
            assert_eq!(steps.len(), c.floor() as usize);
            assert!(paths[..k].iter().all(|(_, other)| other != steps), "{steps:?} twice");
            let mut end = [0; 4];
            steps.iter().for_each(|&(nu, forward)| end[nu] += if forward { 1 } else { -1 });
            assert_eq!(end, std::array::from_fn(|nu| i32::from(nu == mu)), "{steps:?}");
        }
        assert_eq!(paths.iter().map(|(c, _)| c).sum::<f64>(), distinct.sum());
    }
    assert_eq!(detour(0, &[(1, true), (3, false)]), [(1, true), (3, false), (0, true), (3, true), (1, false)]);
}

/// MILC multiplies phases and signs into links before it fattens them, and so its coefficients alternate.
#[test]
fn phases_before_and_after_fattening() {
    let coefficients = LinkCoefficients::asqtad(0.8);
    let alternating = LinkCoefficients { three: -coefficients.three, seven: -coefficients.seven, ..coefficients };
    for lattice in odd_shapes() {
        let gauge = generate::random(lattice, 1);
        let (fat, long) = (fat_links(&gauge, &coefficients), long_links(&gauge, coefficients.naik));
        let (w, level2) = (unitary_links(&rough(lattice, 2)), LinkCoefficients::hisq(-0.1));
        for boundary in BOUNDARIES {
            for phases in PHASES {
                let inside = with_phases(&gauge, Some(phases), boundary, 1);
                let fat = with_phases(&fat, Some(phases), boundary, 1);
                assert!(off(fat_links(&inside, &alternating).numbers(), fat.numbers()) < 1e-14, "{phases:?}");
                let long = with_phases(&long, Some(phases), boundary, 3);
                assert!(off(long_links(&inside, alternating.naik).numbers(), long.numbers()) < 1e-14, "{phases:?}");
            }
            // Projection to U(3) does not mind either.
            let inside = unitary_links(&with_phases(&rough(lattice, 2), None, boundary, 1));
            assert!(off(inside.numbers(), with_phases(&w, None, boundary, 1).numbers()) < 1e-13);
            let fat = with_phases(&fat_links(&w, &level2), None, boundary, 1);
            assert!(off(fat_links(&inside, &level2).numbers(), fat.numbers()) < 1e-13);
        }
    }
}

#[test]
fn derivatives_are_anti_hermitian_and_change_sign_under_epsilon() {
    for lattice in odd_shapes() {
        let gauge = generate::random(lattice, 3);
        let (u, v) = (generate::random_source(lattice, 1), generate::random_source(lattice, 2));
        let improved = improved(&gauge);
        for (phases, boundary) in PHASES.iter().flat_map(|&p| BOUNDARIES.map(|b| (p, b))) {
            let [asqtad, hisq] = [&improved[0], &improved[1]].map(|(_, links)| links.operator(0.1, phases, boundary));
            for m in [StaggeredDirac::naive(&gauge, 0.1, phases, boundary), asqtad, hisq] {
                let dv = m.derivative(&v);
                let (a, b) = (dot(&u, &dv), dot(&m.derivative(&u), &v));
                assert!((a + b).norm() < 1e-13 * (norm2(&u) * norm2(&dv)).sqrt(), "{phases:?} {boundary:?}: {a} {b}");
                // A hop leads to the other parity, so that ε D ε = −D; exactly, term by term.
                for parity in 0..2 {
                    let half = on_parity(parity, &v);
                    assert_eq!(norm2(&on_parity(parity, &m.derivative(&half))), 0.0);
                    let normal = m.normal(&half);
                    assert_eq!(norm2(&on_parity(1 - parity, &normal)), 0.0);
                    let both = m.apply(true, &m.apply(false, &half));
                    assert!(relative_error(&[normal], &[both]) < 1e-14);
                }
            }
        }
    }
}

#[test]
fn smearing_is_gauge_covariant() {
    for lattice in odd_shapes() {
        let gauge = rough(lattice, 4);
        let g: Vec<_> = generate::random(lattice, 5).links().iter().copied().step_by(4).collect();
        let rotated = transform_links(&gauge, &g);
        let v: HostColour = generate::random_source(lattice, 6);
        for ((name, here), (_, there)) in improved(&gauge).into_iter().zip(improved(&rotated)) {
            assert!(off(there.fat.numbers(), transform_hops(&here.fat, &g, 1).numbers()) < 1e-13, "{name}");
            assert!(off(there.long.numbers(), transform_hops(&here.long, &g, 3).numbers()) < 1e-13, "{name}");
            let derivative = |links: &ReferenceLinks, v: &HostColour| {
                links.operator(0.1, EtaPhases::Milc, Boundary::Sign(-1.0)).derivative(v)
            };
            let (there, here) = (derivative(&there, &transform_colour(&v, &g)), derivative(&here, &v));
            assert!(relative_error(&[there], &[transform_colour(&here, &g)]) < 1e-13, "{name}");
        }
    }
}

/// S D S for S(x) = (−1)^(t (x+y+z)) has the other phases.
#[test]
fn both_choices_of_phases_are_one_operator() {
    for lattice in odd_shapes() {
        let improved = ReferenceLinks::asqtad(&generate::random(lattice, 7), 0.9);
        let v: HostColour = generate::random_source(lattice, 8);
        let exchange = |v: &HostColour| {
            field(lattice, |site| {
                let [x, y, z, t] = lattice.coordinates(site);
                let sign = if t * (x + y + z) % 2 == 0 { 1.0 } else { -1.0 };
                v.sites()[site].map(|c| sign * c)
            })
        };
        for boundary in BOUNDARIES {
            let milc = improved.operator(0.1, EtaPhases::Milc, boundary).derivative(&v);
            let standard = improved.operator(0.1, EtaPhases::Standard, boundary).derivative(&exchange(&v));
            assert!(relative_error(&[exchange(&standard)], &[milc]) < 1e-15);
        }
    }
}

/// e^{ipx} w
fn plane_wave(lattice: Lattice, p: [f64; 4]) -> HostColour {
    let w = [Complex64::ONE, Complex64::new(0.3, -0.7), Complex64::new(-0.2, 0.4)];
    field(lattice, |site| {
        let x = lattice.coordinates(site);
        let angle: f64 = (0..4).map(|mu| p[mu] * x[mu] as f64).sum();
        w.map(|c| Complex64::cis(angle) * c)
    })
}

#[test]
fn free_fields_are_plane_waves() {
    for lattice in odd_shapes() {
        let size = lattice.size();
        let gauge = HostGauge::unit(lattice);
        let (asqtad, hisq) = (ReferenceLinks::asqtad(&gauge, 1.0), ReferenceLinks::hisq(&gauge, -0.1));
        for (phases, boundary) in PHASES.iter().flat_map(|&p| BOUNDARIES.map(|b| (p, b))) {
            let operators = [
                (LinkCoefficients::naive(), StaggeredDirac::naive(&gauge, 0.1, phases, boundary)),
                (LinkCoefficients::asqtad(1.0), asqtad.operator(0.1, phases, boundary)),
                (LinkCoefficients::hisq(-0.1), hisq.operator(0.1, phases, boundary)),
            ];
            for n in [[0, 0, 0, 0], [1, 1, 1, 1], [0, 3, 2, 5], [5, 1, 6, 0]] {
                // Antiperiodic waves have half a unit more in t: in the wave, or in the links.
                let half = |there: bool| if there { 0.5 } else { 0.0 };
                let momentum = |t: f64| -> [f64; 4] {
                    std::array::from_fn(|mu| TAU * (n[mu] as f64 + if mu == 3 { t } else { 0.0 }) / size[mu] as f64)
                };
                let v = plane_wave(lattice, momentum(half(boundary == Boundary::Sign(-1.0))));
                let p = momentum(half(boundary != Boundary::Sign(1.0)));
                for (coefficients, m) in operators {
                    let s = p.map(|p| coefficients.free_momentum(p));
                    let expected = field(lattice, |site| {
                        let x = lattice.coordinates(site);
                        let sum: f64 = (0..4).map(|mu| phases.eta(mu, x) * s[mu]).sum();
                        v.sites()[site].map(|c| Complex64::new(0.0, 2.0 * sum) * c)
                    });
                    let difference = combine(&[(1.0.into(), &m.derivative(&v)), ((-1.0).into(), &expected)]);
                    assert!(norm2(&difference) < 1e-27 * norm2(&v), "{n:?} {phases:?} {boundary:?} {coefficients:?}");
                    // The phases anticommute: M†M = m² + Σ s².
                    let square = 0.01 + s.iter().map(|s| s * s).sum::<f64>();
                    let difference = combine(&[(1.0.into(), &m.normal(&v)), ((-square).into(), &v)]);
                    assert!(norm2(&difference) < 1e-27 * norm2(&v));
                }
            }
        }
    }
}

#[test]
fn errors_of_the_momentum() {
    // How p − s(p) grows from p to 2p.
    let growth = |coefficients: LinkCoefficients, p: f64| {
        let error = |p: f64| p - coefficients.free_momentum(p);
        error(2.0 * p) / error(p)
    };
    for p in [0.02, 0.05] {
        assert!((growth(LinkCoefficients::naive(), p) / 8.0 - 1.0).abs() < p * p);
        assert!((growth(LinkCoefficients::asqtad(1.0), p) / 32.0 - 1.0).abs() < p * p);
        assert!((growth(LinkCoefficients::hisq(0.0), p) / 32.0 - 1.0).abs() < p * p);
        // s = p + ε p³/6 is what ε is for.
        let error = LinkCoefficients::hisq(-0.1).free_momentum(p) - p;
        assert!((error / (-0.1 * p.powi(3) / 6.0) - 1.0).abs() < 10.0 * p * p);
    }
}

/// Links of one hop are 1 + i f(k) A_t to first order in a field A_t(x) = cos kx without momentum along t. Fat7 has f = Π_ν ½ (1 + cos
/// k_ν), zero where a gluon would change taste. Lepage's paths, with λ = 1 for one level of smearing and 2 for two, add λ Σ_ν ¼ sin² k_ν,
/// which cancels the error of order k².
#[test]
fn couplings_to_gluons_are_those_of_perturbation_theory() {
    let lattice = lattice([4, 6, 8, 2]);
    let small = 1e-6;
    for n in [[0, 0, 0], [2, 0, 0], [0, 3, 1], [1, 2, 3], [1, 1, 1]] {
        let k: [f64; 3] = std::array::from_fn(|nu| TAU * n[nu] as f64 / lattice.size()[nu] as f64);
        let wave = |site: usize| (0..3).map(|nu| k[nu] * lattice.coordinates(site)[nu] as f64).sum::<f64>().cos();
        let gauge = links(lattice, |site, mu| {
            let angle = if mu == 3 { small * wave(site) } else { 0.0 };
            scale(Complex64::cis(angle), &unit())
        });
        let fat7: f64 = k.iter().map(|k| 0.5 * (1.0 + k.cos())).product();
        let lepage: f64 = k.iter().map(|k| 0.25 * k.sin().powi(2)).sum();
        let (asqtad, hisq) = (ReferenceLinks::asqtad(&gauge, 1.0), ReferenceLinks::hisq(&gauge, 0.0));
        let epsilon = ReferenceLinks::hisq(&gauge, -0.1);
        for (name, gauge, form) in [
            ("fat7", &fat_links(&gauge, &LinkCoefficients::fat7()), fat7),
            ("fat7 in U(3)", &unitary_links(&gauge), fat7),
            ("asqtad", &asqtad.fat, fat7 + lepage + 1.0 / 8.0),
            ("asqtad, long", &asqtad.long, -1.0 / 8.0),
            ("HISQ", &hisq.fat, fat7 * (fat7 + 2.0 * lepage + 1.0 / 8.0)),
            ("HISQ, long", &hisq.long, -fat7 / 8.0),
            ("HISQ, ε", &epsilon.fat, fat7 * (fat7 + 2.0 * lepage + 0.9 / 8.0)),
            ("HISQ, ε, long", &epsilon.long, -0.9 * fat7 / 8.0),
        ] {
            for site in 0..lattice.volume() {
                let (got, expected) = (gauge.link(site, 3)[1][1].im / small, form * wave(site));
                assert!((got - expected).abs() < 1e-8, "{name}, {n:?}: {got}, not {expected}");
            }
        }
    }
}

#[test]
fn projected_links_are_the_unitary_factor() {
    let lattice = lattice([2, 4, 6, 8]);
    for gauge in [rough(lattice, 9), generate::random(lattice, 9)] {
        let (v, w) = (fat_links(&gauge, &LinkCoefficients::fat7()), unitary_links(&gauge));
        for (v, w) in v.links().iter().zip(w.links()) {
            assert!(off(multiply(w, &adjoint(w)).as_flattened(), unit::<3>().as_flattened()) < 1e-14);
            // V = W H, with H Hermitian, and positive because these minors are.
            let h = multiply(&adjoint(w), v);
            assert!(off(h.as_flattened(), adjoint(&h).as_flattened()) < 1e-12);
            let minor = |a: usize, b: usize| h[1][a] * h[2][b] - h[1][b] * h[2][a];
            let determinant = h[0][0] * minor(1, 2) - h[0][1] * minor(0, 2) + h[0][2] * minor(0, 1);
            assert!([h[2][2], minor(1, 2), determinant].iter().all(|z| z.re > 0.0), "{h:?}");
        }
        // A phase stays: this is U(3), not SU(3).
        for u in &gauge.links()[..100] {
            let turned = scale(Complex64::cis(0.7), u);
            assert!(off(project(&scale(0.01.into(), &turned)).as_flattened(), turned.as_flattened()) < 1e-14);
        }
    }
}

/// Links as they are in the file: what MILC stored was made of these, not of links made unitary again.
fn configuration(folder: &Path, name: &str) -> HostGauge {
    read_gauge(&folder.join("configs").join(name), &ReadOptions::default()).unwrap().gauge
}

const MILC: (EtaPhases, Boundary) = (EtaPhases::Milc, Boundary::Sign(-1.0));

#[test]
fn milc_fattens_links_alike() {
    let Some(folder) = refdata::folder() else { return };
    let improved = ReferenceLinks::asqtad(&configuration(&folder, "lat.sample.l8.scidac"), 0.502);
    for (name, links, steps) in [("fat.l8", &improved.fat, 1), ("long.l8", &improved.long, 3)] {
        let options = ReadOptions { allow_non_unitary: true, ..Default::default() };
        let stored = read_gauge(&folder.join("fields").join(name), &options).unwrap().gauge;
        let off = off(with_phases(links, Some(MILC.0), MILC.1, steps).numbers(), stored.numbers());
        println!("{name}: {off:.1e}");
        // Rounding to single precision.
        assert!(off < 2e-7, "{name}: {off:.1e}");
    }
}

#[test]
fn milc_solves_alike() {
    let Some(folder) = refdata::folder() else { return };
    let improved = ReferenceLinks::asqtad(&configuration(&folder, "lat.sample.l8.scidac"), 0.502);
    let m = improved.operator(0.1, MILC.0, MILC.1);
    let read = |name: &str| -> HostColour {
        read_fermion(&folder.join("fields").join(name), &ReadOptions::default()).unwrap().field
    };
    let (source, answer) = (read("ksvector.src.sample.l8"), read("ksvector.ans.MdaggerMinv.sample.l8"));
    // MILC's operator is 2 M.
    let image = combine(&[(4.0.into(), &m.normal(&answer))]);
    let residual = relative_error(&[image], std::slice::from_ref(&source));
    assert!((residual - 4.9e-8).abs() < 0.1e-8, "{residual:.2e}");
    let own = combine(&[(0.25.into(), &m.solve_normal(&source, 1e-11))]);
    let (own, answer) = ([own], [answer]);
    let (off, worst) = (relative_error(&own, &answer), worst_error(&own, &answer));
    println!("residual {residual:.2e}, solution {off:.1e}, worst site {worst:.1e}");
    assert!(off < 1e-6 && worst < 1e-5, "{off:.1e} {worst:.1e}");
}

#[test]
fn milc_propagates_alike() {
    let Some(folder) = refdata::folder() else { return };
    let gauge = configuration(&folder, "lat.sample.l4448.ll");
    let lattice = gauge.lattice();
    let improved = ReferenceLinks::asqtad(&gauge, 1.0);
    let m = improved.operator(0.02, MILC.0, MILC.1);
    // After 36 bytes, single-precision numbers [site][source colour][sink colour].
    let bytes = fs::read(folder.join("fields/ks.sample.l4448_m0.0200_t0_x0_y0_z0")).unwrap();
    let real = |at: &[u8]| f64::from(f32::from_le_bytes(at.try_into().unwrap()));
    let stored: Vec<Complex64> = bytes[36..].chunks(8).map(|c| Complex64::new(real(&c[..4]), real(&c[4..]))).collect();
    assert_eq!(stored.len(), 9 * lattice.volume());
    for colour in 0..3 {
        let mut source = HostColour::zero(lattice);
        source.sites_mut()[0][colour] = Complex64::ONE;
        let x = m.solve(&source, 1e-10);
        assert!(m.residual(&source, &x) < 1e-8);
        // MILC's operator is 2 M.
        let own = combine(&[(0.5.into(), &x)]);
        let stored = field(lattice, |x| -> ColourVector { std::array::from_fn(|c| stored[9 * x + 3 * colour + c]) });
        let (off, all) = (off(own.numbers(), stored.numbers()), relative_error(&[own], &[stored]));
        println!("colour {colour}: {all:.1e}, elements {off:.1e}");
        assert!(all < 1e-4 && off < 1e-4, "colour {colour}: {all:.1e} {off:.1e}");
    }
}

#[test]
fn cl2qcd_condenses_alike() {
    let Some(folder) = refdata::folder() else { return };
    let expected = complex(&answers(&folder, "cl2qcd_4444.json")["staggered_condensate"]["periodic"]);
    let gauge = configuration(&folder, "cl2qcd_conf.00200");
    let lattice = gauge.lattice();
    // (tastes / 4 V) b† M⁻¹ b with two tastes and b = 1 everywhere.
    let condensate = |gauge: &HostGauge, boundary: Boundary| {
        let b = field(lattice, |_| [Complex64::ONE; 3]);
        let m = StaggeredDirac::naive(gauge, 0.1, EtaPhases::Standard, boundary);
        dot(&b, &m.solve(&b, 1e-14)) * 0.5 / lattice.volume() as f64
    };
    let cold = condensate(&HostGauge::unit(lattice), Boundary::Sign(1.0));
    assert!((cold - 15.0).norm() < 1e-12, "{cold}");
    let periodic = condensate(&gauge, Boundary::Sign(1.0));
    assert!((periodic - expected).norm() < 1e-12, "{periodic}");
}
