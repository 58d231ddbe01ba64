//! Stout links and their gradients against the formula, on the device, through `ferrite smear` and in operators.
use crate::program::*;
use ferrite::Precision;
use ferrite::backend::Cpu;
use ferrite::domain::Domain;
use ferrite::field::GaugeField;
use ferrite::field::host::{HostGauge, Matrix};
use ferrite::gauge::{generate, measure};
use ferrite::hmc::momenta::MomentumField;
use ferrite::hmc::stout::StoutSmearing;
use ferrite::lattice::Lattice;
use ferrite_tests::clover_reference::path;
use ferrite_tests::cut;
use ferrite_tests::testkit::matrix::{add, adjoint, anti_hermitian, exponential, from_elements, multiply, scale};
use ferrite_tests::testkit::{farthest_links, on_grid, product_of_links, single};
use num_complex::Complex64;
use serde_json::{Value, json};
use std::fs;

/// C_μ(x)
fn staples(gauge: &HostGauge, site: usize, mu: usize, directions: usize) -> Matrix {
    let mut sum = Matrix::default();
    for nu in (0..directions).filter(|nu| *nu != mu) {
        for way in [true, false] {
            sum = add(&sum, Complex64::ONE, &path(gauge, site, &[(nu, way), (mu, true), (nu, !way)]));
        }
    }
    sum
}

/// One level: exp(iQ) U from paths and the exponential's series.
fn level(gauge: &HostGauge, rho: f64, spatial: bool) -> HostGauge {
    let lattice = gauge.lattice();
    let directions = if spatial { 3 } else { 4 };
    let links = (0..4 * lattice.volume()).map(|index| {
        let (site, mu) = (index / 4, index % 4);
        let link = *gauge.link(site, mu);
        if mu >= directions {
            return link;
        }
        let omega = scale(rho.into(), &multiply(&staples(gauge, site, mu, directions), &adjoint(&link)));
        multiply(&exponential(&anti_hermitian(&omega)), &link)
    });
    HostGauge::from_links(lattice, links.collect())
}

#[test]
fn stout_links_are_those_of_the_formula() {
    for size in [[2, 4, 6, 8], [4, 4, 8, 4]] {
        let domain = Domain::single(Cpu::new(None), Lattice::new(size).unwrap()).unwrap();
        let gauge = generate::random(domain.local(), 3);
        let links = GaugeField::upload(&domain, &gauge).unwrap();
        for spatial in [false, true] {
            let mut expected = gauge.clone();
            for levels in 0..3 {
                let smeared = StoutSmearing { rho: 0.12, levels, spatial }.smeared(&links).unwrap();
                let off = farthest_links(&smeared.download().unwrap(), &expected);
                assert!(off < 1e-14 * (1 + 10 * levels) as f64, "{levels} levels, spatial {spatial}: {off:e}");
                expected = level(&expected, 0.12, spatial);
            }
        }
        assert_eq!(links.download().unwrap(), gauge);
    }
}

#[test]
fn stout_links_do_not_depend_on_the_grid() {
    let lattice = Lattice::new([4, 8, 4, 12]).unwrap();
    let gauge = generate::random(lattice, 4);
    let smearing = StoutSmearing { rho: 0.1, levels: 3, spatial: false };
    let smeared = |domain: &Domain, gauge: &HostGauge| {
        smearing.smeared(&GaugeField::upload(domain, gauge).unwrap()).unwrap().download().unwrap()
    };
    let whole = smeared(&single(lattice), &gauge);
    for grid in [[1, 1, 1, 3], [1, 2, 1, 1], [1, 2, 1, 3]] {
        on_grid(grid, lattice, |domain| {
            let part = domain.section();
            let found = smeared(domain, &cut::links_of(&part, &gauge));
            assert_eq!(found, cut::links_of(&part, &whole), "{grid:?} at {:?}", part.origin);
        });
    }
}

fn of_links(gauge: &HostGauge, link: impl Fn(usize, usize) -> Matrix) -> HostGauge {
    let links = (0..4 * gauge.lattice().volume()).map(|index| link(index / 4, index % 4));
    HostGauge::from_links(gauge.lattice(), links.collect())
}

/// Actions of links V, with their gradients.
enum LinkAction {
    /// Re Σ tr (K† V)
    Linear(HostGauge),
    /// −Σ Re tr P over all plaquettes
    Plaquettes,
}

impl LinkAction {
    fn value(&self, gauge: &HostGauge) -> f64 {
        match self {
            LinkAction::Linear(k) => product_of_links(k, gauge),
            // Each plaquette is in the staples of four links.
            LinkAction::Plaquettes => product_of_links(gauge, &self.gradient(gauge)) / 4.0,
        }
    }
    fn gradient(&self, gauge: &HostGauge) -> HostGauge {
        match self {
            LinkAction::Linear(k) => k.clone(),
            LinkAction::Plaquettes => of_links(gauge, |site, mu| scale(-Complex64::ONE, &staples(gauge, site, mu, 4))),
        }
    }
}

/// Links that all commute, exp(i θ diag(1, 1 + δ, −2 − δ)) with an angle for each: of their Q two eigenvalues are nearly equal.
fn nearly_degenerate(lattice: Lattice, delta: f64) -> HostGauge {
    let angles = generate::random(lattice, 5);
    of_links(&angles, |site, mu| {
        let theta = angles.link(site, mu)[0][0].re;
        let phases = [1.0, 1.0 + delta, -2.0 - delta].map(|factor| Complex64::cis(factor * theta));
        from_elements(|j, k| if j == k { phases[j] } else { Complex64::ZERO })
    })
}

/// The gradient with respect to thin links is the derivative of the formula on the host, by differences.
#[test]
fn gradients_of_stout_links_are_derivatives() {
    let odd = Lattice::new([2, 4, 6, 8]).unwrap();
    let cases: [(_, _, &[usize]); 7] = [
        ("random links", generate::random(odd, 3), &[0, 1, 2, 3]),
        ("random links", generate::random(Lattice::new([4, 4, 8, 4]).unwrap(), 4), &[2]),
        ("smooth links", generate::weak_field(Lattice::new([4, 2, 2, 6]).unwrap(), 8, 0.2), &[3]),
        ("links of 1", generate::weak_field(odd, 1, 0.0), &[1]),
        ("degenerate Q", nearly_degenerate(odd, 0.0), &[1]),
        ("nearly degenerate Q", nearly_degenerate(odd, 1e-9), &[1]),
        ("less degenerate Q", nearly_degenerate(odd, 1e-5), &[1]),
    ];
    let (rho, step) = (0.13, 5e-3);
    for (name, gauge, all) in cases {
        let lattice = gauge.lattice();
        let domain = Domain::single(Cpu::new(None), lattice).unwrap();
        let links = GaugeField::upload(&domain, &gauge).unwrap();
        // A direction in which all links move.
        let mut momenta = MomentumField::zero(&domain, Precision::Double).unwrap();
        momenta.draw(3, 4).unwrap();
        let momenta = momenta.download().unwrap();
        let change = of_links(&gauge, |site, mu| multiply(momenta.link(site, mu), gauge.link(site, mu)));
        let actions = [LinkAction::Linear(generate::random(lattice, 9)), LinkAction::Plaquettes];
        for (levels, spatial) in all.iter().flat_map(|levels| [(*levels, false), (*levels, true)]) {
            let smearing = StoutSmearing { rho, levels, spatial };
            let stout = smearing.levels(&links).unwrap();
            let smeared = stout.smeared().download().unwrap();
            assert_eq!(smeared, smearing.smeared(&links).unwrap().download().unwrap());
            let moved = |by: f64| {
                let moved = of_links(&gauge, |site, mu| {
                    multiply(&exponential(&scale(by.into(), momenta.link(site, mu))), gauge.link(site, mu))
                });
                (0..levels).fold(moved, |gauge, _| level(&gauge, rho, spatial))
            };
            // Differences of sixth order.
            let ends = [1.0, 2.0, 3.0].map(|k| [moved(k * step), moved(-k * step)]);
            for action in &actions {
                let gradient = GaugeField::upload(&domain, &action.gradient(&smeared)).unwrap();
                let gradient = stout.thin_gradient(gradient).unwrap().download().unwrap();
                let [a, b, c] = ends.each_ref().map(|[up, down]| action.value(up) - action.value(down));
                let expected = (45.0 * a - 9.0 * b + c) / (60.0 * step);
                let found = product_of_links(&gradient, &change);
                // Next to the largest change that there could be: that of one wrong link is a thousandth of it or so.
                let size = (product_of_links(&gradient, &gradient) * product_of_links(&change, &change)).sqrt();
                let off = (found - expected).abs() / size;
                let case = format!("{name}, {lattice}, {levels} levels, spatial {spatial}");
                assert!(off < 1e-10, "{case}: {found} {expected} {off:e}");
            }
        }
    }
}

#[test]
fn gradients_in_single_precision_and_on_any_grid() {
    let lattice = Lattice::new([4, 8, 4, 12]).unwrap();
    let (gauge, gradient) = (generate::random(lattice, 4), generate::random(lattice, 5));
    for spatial in [false, true] {
        let smearing = StoutSmearing { rho: 0.1, levels: 2, spatial };
        let thin = |domain: &Domain, gauge: &HostGauge, gradient: &HostGauge, precision: Precision| {
            let upload = |gauge: &HostGauge| GaugeField::upload(domain, gauge).unwrap();
            let stout = smearing.levels(&upload(gauge)).unwrap().converted(precision).unwrap();
            let gradient = stout.thin_gradient(upload(gradient).converted(precision).unwrap()).unwrap();
            gradient.converted(Precision::Double).unwrap().download().unwrap()
        };
        let domain = Domain::single(Cpu::new(None), lattice).unwrap();
        let whole = [Precision::Double, Precision::Single].map(|precision| thin(&domain, &gauge, &gradient, precision));
        let off = farthest_links(&whole[0], &whole[1]);
        assert!(0.0 < off && off < 2e-5, "single precision: {off:e}");
        for grid in [[1, 1, 1, 2], [1, 1, 1, 6], [2, 2, 1, 1]] {
            on_grid(grid, lattice, |domain| {
                let part = domain.section();
                let own = |gauge: &HostGauge| cut::links_of(&part, gauge);
                for (precision, whole) in [Precision::Double, Precision::Single].into_iter().zip(&whole) {
                    let found = thin(domain, &own(&gauge), &own(&gradient), precision);
                    assert_eq!(found, own(whole), "{precision}, {grid:?} at {:?}", part.origin);
                }
            });
        }
    }
    // In the precision of the links, and on their lattice.
    let domain = single(lattice);
    let links = GaugeField::upload(&domain, &gauge).unwrap();
    let stout = StoutSmearing { rho: 0.1, levels: 1, spatial: false }.levels(&links).unwrap();
    let single = links.converted(Precision::Single).unwrap();
    assert!(stout.thin_gradient(single).is_err_and(|why| why.to_string().contains("single")));
}

#[test]
fn smeared_files() {
    let room = Room::with_weak_field();
    let found = room.json("smear weak.ildg -o stout.ildg --rho 0.1 --levels 2");
    let (before, after) = (number(&found["before"]["plaquette"]["mean"]), number(&found["after"]["plaquette"]["mean"]));
    assert!(before < after && after < 1.0, "{before} {after}");
    assert_eq!(number(&room.json("plaquette stout.ildg")["plaquette"]["mean"]), after);
    // Two levels are one of what one level made; spatial smearing leaves links in t alone.
    room.json("smear weak.ildg -o once.npy --rho 0.1");
    room.json("smear once.npy -o twice.npy --rho 0.1");
    room.json("convert stout.ildg stout.npy");
    assert_eq!(fs::read(room.path("stout.npy")).unwrap(), fs::read(room.path("twice.npy")).unwrap());
    room.json("smear weak.ildg -o space.ildg --rho 0.1 --spatial");
    let read = |name: &str| ferrite::files::read_gauge(&room.path(name), &Default::default()).unwrap().gauge;
    let (thin, space) = (read("weak.ildg"), read("space.ildg"));
    assert!((0..thin.lattice().volume()).all(|site| thin.link(site, 3) == space.link(site, 3)));
    assert!(measure::plaquette(&space).spatial > measure::plaquette(&thin).spatial);
    for (flags, why) in [
        ("", "--rho"),
        ("--rho 0.3", "'0.3' is not a number from 0 to 0.25"),
        ("--rho -0.1", "'-0.1' is not a number from 0 to 0.25"),
        ("--rho 0.1 --levels 0", "--levels"),
    ] {
        room.fails(2, &format!("smear weak.ildg -o no.ildg {flags}"), &[why]);
    }
    room.fails(2, "smear weak.ildg -o no.txt --rho 0.1", &["no.txt", "the name does not determine the format"]);
    assert!(!room.path("no.ildg").exists());
}

/// Operators with stout links are those on a file with them, to the bit.
#[test]
fn operators_have_stout_links() {
    let room = Room::with_weak_field();
    let same = |what: &str| {
        let read = |name: &str| fs::read(room.path(name)).unwrap();
        assert!(read("file.npy") == read("key.npy"), "{what}");
    };
    let stout = "--stout-rho 0.1 --stout-levels 2";
    room.json("smear weak.ildg -o stout.ildg --rho 0.1 --levels 2");
    room.json("smear weak.ildg -o space.ildg --rho 0.14 --spatial");
    for operator in [
        "wilson --mass 0.1 --precision single",
        "clover --mass 0.1 --csw 1.2 --precision half",
        "wilson --mass 0.2 --reconstruct 12t",
        "twisted --mass 0.2 --mu 0.3",
        "staggered --mass 0.2",
        "asqtad --u0 0.9 --masses 0.2,0.3 --precision single",
        "hisq --mass 0.2",
    ] {
        let solve = format!("solve --operator {operator} --source random:1 --tol 1e-6");
        let file = room.json(&format!("{solve} --gauge stout.ildg -o file.npy"));
        let key = room.json(&format!("{solve} --gauge weak.ildg {stout} -o key.npy"));
        same(operator);
        assert_eq!((&file["stout"], &file["iterations"]), (&Value::Null, &key["iterations"]));
        assert_eq!(key["stout"], json!({ "rho": 0.1, "levels": 2, "spatial": false }), "{operator}");
    }
    let apply = "apply --operator exp-clover --csw 1.0 --mass 0.1 --source random:2";
    room.json(&format!("{apply} --gauge space.ildg -o file.npy"));
    let key = room.json(&format!("{apply} --gauge weak.ildg --stout-rho 0.14 --stout-spatial -o key.npy"));
    same(apply);
    assert_eq!(key["stout"], json!({ "rho": 0.14, "levels": 1, "spatial": true }));
    let text = room.run(&format!("{apply} --gauge weak.ildg --stout-rho 0.14 --stout-spatial -o key.npy"));
    assert!(text.stdout.contains(", 1 level of stout links in space, rho = 0.14, "), "{}", text.stdout);
    // The tadpole factor is that of the links of which fat links are made, to rounding.
    let apply = "apply --operator asqtad --u0 plaquette --mass 0.1 --source random:2";
    let file = room.json(&format!("{apply} --gauge stout.ildg -o file.npy"));
    let key = room.json(&format!("{apply} --gauge weak.ildg {stout} -o key.npy"));
    let u0 = |run: &Value| run["u0"].as_f64().unwrap();
    assert!((u0(&file) - u0(&key)).abs() < 1e-14, "{file} {key}");

    let input = "gauge = \"weak.ildg\"\nmass = 0.1\nsource = \"random:1\"\noutput = \"key.npy\"\nstout-rho = 0.1\n";
    fs::write(room.path("run.toml"), format!("{input}stout-levels = 2\nstout-spatial = false\n")).unwrap();
    room.json("solve run.toml");
    room.json("solve --gauge stout.ildg --mass 0.1 --source random:1 -o file.npy");
    same("an input");
    let checked = room.json("check run.toml");
    assert_eq!((&checked["ok"], &checked["stout"]["levels"]), (&json!(true), &json!(2)));
    for (flags, why) in [
        ("--stout-rho 0.3", "'0.3' is not a number from 0 to 0.25"),
        ("--stout-rho -0.1", "'-0.1' is not a number from 0 to 0.25"),
        ("--stout-rho 0.1 --stout-levels 0", "'0' is too small: give a whole number from 1"),
        ("--stout-levels 2", "give --stout-rho"),
        ("--stout-spatial", "give --stout-rho"),
    ] {
        room.fails(2, &format!("solve --gauge weak.ildg --mass 0.1 --source random:1 {flags}"), &[why]);
    }
    room.json("links hisq weak.ildg fat.npy long.npy");
    let made = "solve --operator hisq --fat fat.npy --long long.npy --mass 0.2 --source random:1 --stout-rho 0.1";
    room.fails(
        2,
        made,
        &["--stout-rho", "--stout-rho has no effect on fat and long links from files: remove --stout-rho"],
    );
}

/// Quarks of a spectrum have stout links, their sources have not.
#[test]
fn spectra_have_stout_links() {
    let room = Room::with_weak_field();
    room.json("smear weak.ildg -o stout.ildg --rho 0.1");
    fs::write(room.path("run.toml"), "[solve]\nmass = 0.3\ntol = 1e-9\n").unwrap();
    let lines = |folder: &str| room.lines(&format!("{folder}/correlators.jsonl"))[0]["correlators"].clone();
    room.json("spectrum run.toml stout.ildg --out file");
    room.json("spectrum run.toml weak.ildg --out key --set solve.stout-rho=0.1");
    assert_eq!(lines("file"), lines("key"));
    let other = "spectrum run.toml weak.ildg --out key --backend cpu --set solve.stout-rho=0.12";
    room.fails(2, other, &["made with another value of solve.stout-rho"]);
}
