//! `ferrite spectrum` with exponential clover and twisted quarks: against plain sums over propagators that the tests solve for
//! and judge themselves, and what is said of mesons whose antiquark is another one's.
use crate::correlators::*;
use crate::program::*;
use ferrite::field::host::{HostGauge, HostSpinor};
use ferrite::files::{ReadOptions, read_gauge};
use ferrite::lattice::Lattice;
use ferrite::operators::{
    CloverParams, ExpCloverParams, Operator, TimeBoundary, TwistedCloverParams, TwistedParams, WilsonParams,
};
use ferrite_tests::clover_reference::{on_spin, propagator_at};
use ferrite_tests::gamma;
use ferrite_tests::testkit::matrix::{adjoint, multiply, trace};
use ferrite_tests::testkit::{point_sources, solutions};
use ferrite_tests::wilson_like_reference::WilsonLikeDirac;
use num_complex::Complex64;
use std::fs;

const SIZE: [usize; 4] = [2, 4, 6, 8];
const ORIGIN: [usize; 4] = [1, 2, 0, 3];

/// S(x, origin) for all x, of which the reference says that it is that.
fn propagator(
    gauge: &HostGauge,
    operator: Operator,
    reference: &WilsonLikeDirac,
    origin: [usize; 4],
) -> Vec<HostSpinor> {
    let sources = point_sources(gauge.lattice(), origin);
    let solutions = solutions(gauge, operator, 1e-13, &sources);
    for (eta, psi) in sources.iter().zip(&solutions) {
        assert!(reference.residual(eta, psi) < 2e-13);
    }
    solutions
}

/// An operator for a sign of μ, with its reference.
type Quark<'a> = &'a dyn Fn(f64) -> (Operator, WilsonLikeDirac<'a>);

#[test]
fn mesons_are_plain_sums() {
    let room = Room::new();
    room.json("generate weak-field --lattice 2,4,6,8 --seed 41 --noise 0.3 -o cfg.ildg");
    let gauge = read_gauge(&room.path("cfg.ildg"), &ReadOptions::default()).unwrap().gauge;
    let lattice = Lattice::new(SIZE).unwrap();
    let wilson = WilsonParams::from_mass(0.2, TimeBoundary::Antiperiodic);
    let clover = |c| CloverParams::isotropic(wilson, c, 1.0);
    let exponential: Quark =
        &|_| (ExpCloverParams(clover(1.3)).into(), WilsonLikeDirac::exponential(&gauge, wilson, [1.3; 2]));
    let twisted: Quark = &|sign| {
        let mu = sign * 0.3;
        (TwistedParams { wilson, mu }.into(), WilsonLikeDirac::twisted(&gauge, wilson, [0.0; 2], mu))
    };
    let twisted_clover: Quark = &|sign| {
        let mu = sign * -0.4;
        let reference = WilsonLikeDirac::twisted(&gauge, wilson, [1.1; 2], mu);
        (TwistedCloverParams { clover: clover(1.1), mu }.into(), reference)
    };
    let five = on_spin(&gamma::GAMMA5);
    for (name, keys, quark) in [
        ("exp-clover", "csw = 1.3", exponential),
        ("twisted", "mu = 0.3", twisted),
        ("twisted-clover", "mu = -0.4\ncsw = 1.1", twisted_clover),
    ] {
        let input = format!(
            "origin = [1, 2, 0, 3]\nplot = [\"gxgt\"]\n[solve]\noperator = \"{name}\"\nmass = 0.2\n{keys}\nprecision = \
             \"double\"\ntol = 1e-13\n"
        );
        fs::write(room.path("run.toml"), input).unwrap();
        let report = room.json(&format!("spectrum run.toml cfg.ildg --out {name}"));
        let line = lines(&room, name).swap_remove(0);

        let (operator, reference) = quark(1.0);
        let s = propagator(&gauge, operator, &reference, ORIGIN);
        // The antiquark, which goes back from x to the origin, is the other quark of the doublet.
        let (other, its_reference) = quark(-1.0);
        for x in [[0, 0, 0, 0], [1, 3, 5, 4], [0, 2, 1, 7]] {
            let back = propagator_at(&propagator(&gauge, other.clone(), &its_reference, x), lattice.index(ORIGIN));
            let here = multiply(&five, &multiply(&adjoint(&propagator_at(&s, lattice.index(x))), &five));
            for (a, b) in back.iter().flatten().zip(here.iter().flatten()) {
                assert!((a - b).norm() < 1e-11, "{name}: {a} {b}");
            }
        }
        let g = &gamma::GAMMA;
        let several = |all: &[usize]| all[1..].iter().fold(g[all[0]], |all, mu| multiply(&all, &g[*mu]));
        let channels =
            [("g5", gamma::GAMMA5), ("gx", g[0]), ("gxgt", several(&[0, 3])), ("gygzgt", several(&[1, 2, 3]))];
        for (channel, matrix) in channels {
            let sink = on_spin(&matrix);
            let source = multiply(&multiply(&on_spin(&g[3]), &adjoint(&sink)), &on_spin(&g[3]));
            let (mut expected, mut scale) = ([Complex64::ZERO; 8], [0.0; 8]);
            for x in 0..lattice.volume() {
                let t = (lattice.coordinates(x)[3] + SIZE[3] - ORIGIN[3]) % SIZE[3];
                let s = propagator_at(&s, x);
                let back = multiply(&five, &multiply(&adjoint(&s), &five));
                let whole = multiply(&multiply(&sink, &s), &multiply(&source, &back));
                expected[t] -= trace(&whole);
                scale[t] += s.iter().flatten().map(|z| z.norm_sqr()).sum::<f64>();
            }
            for (t, found) in correlator(&line, channel, [0; 3]).into_iter().enumerate() {
                assert!(
                    (found - expected[t]).norm() < 1e-11 * scale[t],
                    "{name} {channel} {t}: {found} {}",
                    expected[t]
                );
                if channel == "g5" {
                    assert!((found - scale[t]).norm() < 1e-11 * scale[t], "{name} {t}: {found} {}", scale[t]);
                }
            }
        }

        let hadrons: Vec<&str> =
            report["effective_masses"].as_array().unwrap().iter().map(|m| m["hadron"].as_str().unwrap()).collect();
        let text = room.run(&format!("spectrum run.toml cfg.ildg --out {name} --backend cpu")).stdout;
        let page = room.json(&format!("report {name}"));
        let is_twisted = name != "exp-clover";
        assert_eq!(text.contains("mesons are charged: their antiquark has -mu"), is_twisted, "{text}");
        if is_twisted {
            assert_eq!(hadrons, ["charged pion", "gxgt"]);
            assert_eq!((&line["antiquark"], &page["hadrons"][0]["hadron"]), (&"-mu".into(), &"charged pion".into()));
            let parts = ["nucleon: a nucleon needs both quarks of a doublet", "the other has -mu", "remove nucleon"];
            room.fails(2, "spectrum run.toml cfg.ildg --out no --backend cpu --set nucleon=true", &parts);
            let svg = fs::read_to_string(room.path(name).join("effective-masses.svg")).unwrap();
            assert!(svg.contains("charged pion") && svg.contains("mu = "), "{svg}");
        } else {
            assert_eq!(hadrons, ["pion", "rho", "nucleon", "gxgt"]);
            assert!(line["antiquark"].is_null() && page["hadrons"][1]["hadron"] == "rho");
        }
    }
}

/// A kept propagator is taken for its own μ and operator only.
#[test]
fn kept_propagators_know_their_parameters() {
    let room = Room::new();
    room.json("generate weak-field --lattice 4,4,4,8 --seed 42 --noise 0.3 -o cfg.ildg");
    let input = "propagators = \"kept\"\n[solve]\noperator = \"twisted-clover\"\nmass = 0.2\nmu = 0.3\ncsw = 1.0\nprecision = \
                 \"single\"\ntol = 1e-8\n";
    fs::write(room.path("run.toml"), input).unwrap();
    let run = "spectrum run.toml cfg.ildg --backend cpu";
    room.json("spectrum run.toml cfg.ildg --out first");
    for (key, value) in [("mu", "0.31"), ("mu", "-0.3"), ("csw", "1.1"), ("mass", "0.21"), ("bc-time", "periodic")] {
        let parts = ["kept/cfg.ildg.npy was made with another value of input", &format!("solve.{key}")];
        room.fails(2, &format!("{run} --out no --set solve.{key}={value}"), &parts);
        // So is a line in the folder.
        let parts = [&*format!("the line was made with another value of solve.{key}"), "name another folder"];
        room.fails(2, &format!("{run} --out first --set solve.{key}={value}"), &parts);
    }
    for (operator, keys) in
        [("twisted", "mu = 0.3"), ("clover", "csw = 1.0"), ("exp-clover", "csw = 1.0"), ("wilson", "")]
    {
        let input = format!(
            "propagators = \"kept\"\n[solve]\noperator = \"{operator}\"\nmass = 0.2\n{keys}\nprecision = \"single\"\ntol = 1e-8\n"
        );
        fs::write(room.path("other.toml"), input).unwrap();
        let run = "spectrum other.toml cfg.ildg --backend cpu --out no";
        room.fails(2, run, &["kept/cfg.ildg.npy was made with another value of input", "name another folder"]);
    }
    assert!(!room.path("no").exists());
    // The same in other words is the same.
    room.json("spectrum run.toml cfg.ildg --out second --set solve.mu=3e-1");
    let [first, second] = ["first", "second"].map(|folder| lines(&room, folder).swap_remove(0));
    assert_eq!([&first, &second].map(|line| line["propagators_read"].as_u64()), [Some(0), Some(1)]);
    assert_eq!(first["correlators"], second["correlators"]);
}
