//! `ferrite spectrum` of staggered quarks from walls, noise and shells, against a dense matrix that is written out here.
use crate::correlators::lines;
use crate::program::*;
use ferrite::field::host::HostGauge;
use ferrite::files::{ReadOptions, read_gauge};
use ferrite::observables::spectrum::gamma::Gamma;
use ferrite::observables::spectrum::tastes::PIONS;
use ferrite_tests::testkit::matrix::multiply;
use nalgebra::{DMatrix, DVector};
use num_complex::Complex64;
use serde_json::Value;
use std::fs;

const NAMES: [&str; 4] = ["pion", "scalar", "vector", "pseudovector"];
const MASS: f64 = 0.2;

/// The lattice and its links.
struct PlainLattice {
    size: [usize; 4],
    gauge: HostGauge,
}

impl PlainLattice {
    fn place(&self, site: usize) -> [usize; 4] {
        let [x, y, z, _] = self.size;
        [site % x, site / x % y, site / (x * y) % z, site / (x * y * z)]
    }
    fn site(&self, [x, y, z, t]: [usize; 4]) -> usize {
        x + self.size[0] * (y + self.size[1] * (z + self.size[2] * t))
    }
    fn volume(&self) -> usize {
        self.size.iter().product()
    }
    /// The site `steps` ahead.
    fn ahead(&self, site: usize, mu: usize, steps: usize) -> usize {
        let mut place = self.place(site);
        place[mu] = (place[mu] + steps) % self.size[mu];
        self.site(place)
    }
    /// M = m + D/2 with MILC's phases, antiperiodic in t.
    fn matrix(&self) -> DMatrix<Complex64> {
        let n = 3 * self.volume();
        let mut m = DMatrix::from_diagonal_element(n, n, MASS.into());
        for site in 0..self.volume() {
            let [x, y, _, t] = self.place(site);
            for (mu, sign) in [t, t + x, t + x + y, 0].into_iter().enumerate() {
                let eta = if sign % 2 == 0 { 0.5 } else { -0.5 };
                let factor = if mu == 3 && t + 1 == self.size[3] { -eta } else { eta };
                let (there, u) = (self.ahead(site, mu, 1), self.gauge.link(site, mu));
                for (a, row) in u.iter().enumerate() {
                    for (b, u) in row.iter().enumerate() {
                        m[(3 * site + a, 3 * there + b)] += factor * u;
                        // The phase of a direction does not change along it.
                        m[(3 * there + b, 3 * site + a)] -= factor * u.conj();
                    }
                }
            }
        }
        m
    }
    /// Solutions for these sources.
    fn solve(&self, sources: &[Vec<Complex64>]) -> Vec<Vec<Complex64>> {
        let sources: Vec<_> = sources.iter().map(|source| DVector::from_column_slice(source)).collect();
        let all = self.matrix().lu().solve(&DMatrix::from_columns(&sources)).unwrap();
        all.column_iter().map(|column| column.iter().copied().collect()).collect()
    }
    /// (1 + w² Δ₂ / (4 n))ⁿ
    fn shell(&self, field: &[Complex64], width: f64, steps: usize) -> Vec<Complex64> {
        let mut field = field.to_vec();
        for _ in 0..steps {
            let mut next: Vec<Complex64> =
                field.iter().map(|z| z * (1.0 - 6.0 * width * width / (16.0 * steps as f64))).collect();
            for site in 0..self.volume() {
                for mu in 0..3 {
                    let (near, far) = (self.ahead(site, mu, 1), self.ahead(site, mu, 2));
                    let (first, second) = (self.gauge.link(site, mu), self.gauge.link(near, mu));
                    let (w, sigma) = (multiply(first, second), width * width / (16.0 * steps as f64));
                    for (a, b) in (0..9).map(|k| (k / 3, k % 3)) {
                        next[3 * site + a] += sigma * w[a][b] * field[3 * far + b];
                        next[3 * far + b] += sigma * w[a][b].conj() * field[3 * site + a];
                    }
                }
            }
            field = next;
        }
        field
    }
    /// Fields with ones at some sites, for each colour.
    fn ones(&self, there: impl Fn([usize; 4]) -> bool) -> Vec<Vec<Complex64>> {
        let one = |colour: usize| {
            let value = |k: usize| Complex64::from(f64::from(u8::from(k % 3 == colour && there(self.place(k / 3)))));
            (0..3 * self.volume()).map(value).collect()
        };
        (0..3).map(one).collect()
    }
    fn mesons(&self, propagator: &[Vec<Complex64>], origin: [usize; 4]) -> [Vec<f64>; 4] {
        let mut all = [(); 4].map(|()| vec![0.0; self.size[3]]);
        for site in 0..self.volume() {
            let place = self.place(site);
            let square: f64 = propagator.iter().flat_map(|f| &f[3 * site..3 * site + 3]).map(Complex64::norm_sqr).sum();
            let [x, y, z]: [f64; 3] =
                std::array::from_fn(|k| if (place[k] + origin[k]).is_multiple_of(2) { 1.0 } else { -1.0 });
            let t = (place[3] + self.size[3] - origin[3]) % self.size[3];
            for (all, phase) in all.iter_mut().zip([1.0, x * y * z, x + y + z, x * y + y * z + z * x]) {
                all[t] += phase * square;
            }
        }
        all
    }
}

fn line(room: &Room, folder: &str) -> Value {
    lines(room, folder).swap_remove(0)
}

fn correlator(line: &Value, name: &str) -> Vec<f64> {
    let all = line["correlators"].as_array().unwrap();
    let found = all.iter().find(|c| c["name"] == name).unwrap_or_else(|| panic!("no {name}"));
    list(&found["values"]).iter().map(|z| number(&z[0])).collect()
}

fn input(room: &Room) {
    let input = format!(
        "configurations = [\"cfg.ildg\"]\n[solve]\noperator = \"staggered\"\nmass = {MASS}\nprecision = \"double\"\ntol = 1e-13\n"
    );
    fs::write(room.path("run.toml"), input).unwrap();
}

/// Points, walls and shells at either end on random links.
#[test]
fn sources_are_those_of_a_dense_matrix() {
    let room = Room::new();
    input(&room);
    room.json("generate random --lattice 4,2,2,4 --seed 8 -o cfg.ildg");
    let gauge = read_gauge(&room.path("cfg.ildg"), &ReadOptions::default()).unwrap().gauge;
    let plain = PlainLattice { size: [4, 2, 2, 4], gauge };
    let origin = [1, 0, 1, 2];
    let point = plain.ones(|place| place == origin);
    let wall = plain.ones(|[x, y, z, t]| (x % 2, y, z, t) == (1, 0, 1, 2));
    let smeared = |fields: &[Vec<Complex64>]| -> Vec<Vec<Complex64>> {
        fields.iter().map(|field| plain.shell(field, 1.5, 4)).collect()
    };
    let all: Vec<Vec<Complex64>> = [point.clone(), wall, smeared(&point)].concat();
    let solved = plain.solve(&all);
    let shell = "--set shell.width=1.5 --set shell.steps=4";
    for (folder, flags, propagator, sites) in [
        ("point", "", solved[..3].to_vec(), 1),
        ("wall", "--set source=wall", solved[3..6].to_vec(), 2),
        ("shell", &format!("--set source=shell {shell}"), solved[6..].to_vec(), 1),
        ("sink", &format!("--set source=wall --set sink=shell {shell}"), smeared(&solved[3..6]), 2),
    ] {
        room.json(&format!("spectrum run.toml --out {folder} --set origin=1,0,1,2 {flags}"));
        let line = line(&room, folder);
        assert_eq!(line["source_sites"], sites);
        for (name, expected) in NAMES.into_iter().zip(plain.mesons(&propagator, origin)) {
            // Residuals of 1e-13 times the condition of M, (m² + 16)^½ / m, twice, of the largest value.
            let largest = plain.mesons(&propagator, origin)[0].iter().fold(0f64, |m, x| m.max(*x));
            for (found, expected) in correlator(&line, name).iter().zip(expected) {
                assert!((found - expected).abs() < 1e-11 * largest, "{folder}, {name}: {found} {expected}");
            }
        }
    }
    // A propagator that was kept is also smeared at its end.
    let kept = "spectrum run.toml --set origin=1,0,1,2 --set source=wall --set propagators=kept";
    room.json(&format!("{kept} --out first"));
    room.json(&format!("{kept} --out second --set sink=shell {shell}"));
    let (again, before) = (line(&room, "second"), line(&room, "sink"));
    assert_eq!(again["propagators_read"], 1);
    assert_eq!(again["correlators"], before["correlators"]);
}

/// Mesons of any spin and taste as Tr φ D_δ G D_δ φ' G with dense matrices, quarks and antiquarks both solved for.
#[test]
fn tastes_are_those_of_dense_matrices() {
    let room = Room::new();
    input(&room);
    room.json("generate random --lattice 4,2,2,4 --seed 8 -o cfg.ildg");
    let gauge = read_gauge(&room.path("cfg.ildg"), &ReadOptions::default()).unwrap().gauge;
    let plain = PlainLattice { size: [4, 2, 2, 4], gauge };
    let (n, origin) = (3 * plain.volume(), [1, 0, 1, 2]);
    let unit = |k: usize| (0..n).map(|i| Complex64::from(f64::from(u8::from(i == k)))).collect::<Vec<_>>();
    // Columns of M⁻¹.
    let inverse = plain.solve(&(0..n).map(unit).collect::<Vec<_>>());
    let shift = |field: &[Complex64], mu: usize| -> Vec<Complex64> {
        let mut to = vec![Complex64::ZERO; n];
        for site in 0..plain.volume() {
            let (there, u) = (plain.ahead(site, mu, 1), plain.gauge.link(site, mu));
            for (a, b) in (0..9).map(|k| (k / 3, k % 3)) {
                to[3 * site + a] += 0.5 * u[a][b] * field[3 * there + b];
                to[3 * there + b] += 0.5 * u[a][b].conj() * field[3 * site + a];
            }
        }
        to
    };
    let both = |field: &[Complex64]| -> Vec<Complex64> {
        let (one, other) = (shift(&shift(field, 0), 2), shift(&shift(field, 2), 0));
        one.iter().zip(&other).map(|(a, b)| 0.5 * (a + b)).collect()
    };
    // ¼ tr Γ_x† Γ_S Γ_{x△δ} Γ_T†, with t as the first factor of each: the order of MILC's phases.
    let corner = |bits: usize| {
        let factors = [3, 0, 1, 2].into_iter().filter(|mu| bits >> mu & 1 == 1);
        factors.fold(Gamma::UNIT, |product, mu| product * Gamma::new(1 << mu))
    };
    let phi = |(spin, taste): (usize, usize), place: [usize; 4]| -> Complex64 {
        let bits = (0..4).map(|mu| (place[mu] % 2) << mu).sum::<usize>();
        let left = corner(bits).adjoint() * Gamma::new(spin);
        let all = left * corner(bits ^ spin ^ taste) * Gamma::new(taste).adjoint();
        0.25 * (0..4).map(|k| all.at(k, k)).sum::<Complex64>()
    };
    // g5-gxg5 is a shift in x, and the others are in x and z.
    let names = ["g5-gxg5", "gtg5-gy", "gy-g5gt"];
    room.json(
        &format!("spectrum run.toml --out out --set origin=1,0,1,2 --set tastes={names:?}").replace("\", ", "\","),
    );
    let line = line(&room, "out");
    for (name, spin, taste) in [(names[0], 15, 14), (names[1], 7, 2), (names[2], 2, 7)] {
        let apply = |field: &[Complex64]| if name == names[0] { shift(field, 0) } else { both(field) };
        let mut expected = vec![Complex64::ZERO; 4];
        for colour in 0..3 {
            let at = 3 * plain.site(origin) + colour;
            // G D φ' of the source, D of that at each sink, and G back to the source.
            let source = apply(&unit(at));
            let there: Vec<Complex64> =
                (0..n).map(|i| (0..n).map(|k| inverse[k][i] * source[k]).sum::<Complex64>()).collect();
            let there = apply(&there);
            for (i, value) in there.iter().enumerate() {
                let place = plain.place(i / 3);
                let signs = phi((spin, taste), place) * phi((spin, taste), origin).conj();
                expected[(place[3] + 4 - origin[3]) % 4] += signs * value * inverse[i][at];
            }
        }
        let largest = expected.iter().map(|z| z.norm()).fold(0.0, f64::max);
        assert!(largest > 0.01, "{name}: {expected:?}");
        for (found, expected) in correlator(&line, name).iter().zip(expected) {
            // As for sources.
            assert!((found - expected.re).abs() < 1e-11 * largest.max(1.0), "{name}: {found} {expected}");
        }
    }
}

/// Multiplets are means of their operators, and what is not made of tastes is refused.
#[test]
fn pions_are_means_of_their_tastes() {
    let room = Room::new();
    input(&room);
    room.json("generate weak-field --lattice 4,4,2,4 --seed 8 --noise 0.4 -o cfg.ildg");
    room.json("spectrum run.toml --out pions --set tastes=pions");
    room.json("spectrum run.toml --out tastes --set tastes=[\"g5-gxg5\",\"g5-gyg5\",\"g5-gzg5\",\"gtg5-gtg5\"]");
    let (pions, tastes) = (line(&room, "pions"), line(&room, "tastes"));
    for (t, mean) in correlator(&pions, "pion-i5").iter().enumerate() {
        let three = ["g5-gxg5", "g5-gyg5", "g5-gzg5"].map(|name| correlator(&tastes, name)[t]);
        assert!((mean - three.iter().sum::<f64>() / 3.0).abs() < 1e-12 * mean.abs());
    }
    assert_eq!(correlator(&pions, "pion-5"), correlator(&pions, "pion"));
    assert_eq!(correlator(&pions, "pion-05"), correlator(&tastes, "gtg5-gtg5"));
    // Seven shifts and none.
    assert_eq!(pions["solves"].as_array().unwrap().len(), 8);
    assert_eq!(pions["solves"].as_array().unwrap().iter().filter(|one| one["shift"] == "xyz").count(), 1);
    // The other convention of phases is a change of signs of the fields.
    room.json("spectrum run.toml --out other --set tastes=pions --set solve.phases=lexicographic");
    let other = line(&room, "other");
    for (name, _) in PIONS {
        let (one, other) = (correlator(&pions, name), correlator(&other, name));
        let largest = one.iter().fold(0f64, |a, b| a.max(b.abs()));
        for (a, b) in one.iter().zip(&other) {
            assert!((a - b).abs() < 1e-10 * largest, "{name}: {one:?} {other:?}");
        }
    }
    let run = |set: &str| format!("spectrum run.toml --out no {set}");
    room.fails(2, &run("--set tastes=pion-6"), &["'pion-6' is not a spin and a taste", "pion-05"]);
    room.fails(2, &run("--set tastes=g5-gxgygz"), &["shifts quarks in time"]);
    room.fails(2, &run("--set tastes=[\"pions\",\"pion-5\"]"), &["'pion-5' occurs twice"]);
    room.fails(2, &run("--set tastes=pions --set source=wall"), &["point sources and sinks"]);
    room.fails(2, &run("--set tastes=pions --set solve.operator=wilson"), &["staggered quarks only"]);
}

/// Noise is, on the average over seeds, the sum over the points of its corner, for each of the mesons.
#[test]
fn noise_is_the_sum_over_points() {
    let room = Room::new();
    input(&room);
    room.json("generate weak-field --lattice 4,4,2,4 --seed 8 --noise 0.4 -o cfg.ildg");
    let mut expected = [(); 4].map(|()| [0.0; 4]);
    for (x, y) in [(0, 1), (2, 1), (0, 3), (2, 3)] {
        room.json(&format!("spectrum run.toml --out point{x}{y} --set origin={x},{y},0,1"));
        for (sum, name) in expected.iter_mut().zip(NAMES) {
            let point = correlator(&line(&room, &format!("point{x}{y}")), name);
            sum.iter_mut().zip(point).for_each(|(sum, value)| *sum += value);
        }
    }
    const SEEDS: usize = 60;
    let mut found = [(); 4].map(|()| vec![Vec::new(); 4]);
    for seed in 0..SEEDS {
        let folder = format!("noise{seed}");
        room.json(&format!(
            "spectrum run.toml --out {folder} --set source=noise --set seed={seed} --set origin=0,1,0,1"
        ));
        let line = line(&room, &folder);
        assert_eq!(line["source_sites"], 4);
        for (found, name) in found.iter_mut().zip(NAMES) {
            found.iter_mut().zip(correlator(&line, name)).for_each(|(all, value)| all.push(value));
        }
    }
    for (name, (found, expected)) in NAMES.into_iter().zip(found.iter().zip(expected)) {
        for (t, (all, expected)) in found.iter().zip(expected).enumerate() {
            let mean = all.iter().sum::<f64>() / SEEDS as f64;
            let error = (all.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / (SEEDS * (SEEDS - 1)) as f64).sqrt();
            // Sixteen values: four standard errors are passed by chance once in a thousand runs, and seeds are fixed.
            assert!((mean - expected).abs() < 4.0 * error, "{name}, {t}: {mean} ± {error}, {expected}");
            assert!(name != "pion" || error < 0.15 * expected, "{t}: {mean} ± {error}");
        }
    }
}

/// Keys that staggered quarks do not have are refused, all of them by name.
#[test]
fn inputs_for_wilson_quarks_are_refused_by_name() {
    let room = Room::new();
    let example = room.run("init spectrum").stdout;
    fs::write(room.path("run.toml"), &example).unwrap();
    room.json("generate weak-field --lattice 4,4,4,8 --seed 8 -o cfg.ildg");
    let asqtad = "spectrum run.toml cfg.ildg --out out --set solve.operator=asqtad --backend cpu";
    let run = room.fails(2, asqtad, &["solve.csw: applies only to solve.operator = clover"]);
    assert!(!run.stderr.contains("mistakes"), "{}", run.stderr);
    let both = ["2 mistakes", "nucleon: nucleons are not available for quarks with spread-boundary", "solve.csw"];
    room.fails(2, &format!("{asqtad} --set nucleon=true --set solve.spread-boundary=true"), &both);
    // With what its comments say, the example is one of staggered quarks.
    let csw = example.lines().find(|line| line.starts_with("csw")).unwrap();
    fs::write(room.path("run.toml"), example.replace(csw, "").replace("\"clover\"", "\"asqtad\"")).unwrap();
    assert_eq!(room.json("spectrum run.toml cfg.ildg --out out")["effective_masses"][0]["hadron"], "Goldstone pion");
    // So is the one with its commented shell, which is a Gaussian; a coarse one says that it is none.
    fs::write(
        room.path("run.toml"),
        example
            .replace("# [shell]", "[shell]")
            .replace("# width", "width")
            .replace("# steps", "steps")
            .replace("# ape", "ape")
            .replace("source = \"point\"", "source = \"shell\""),
    )
    .unwrap();
    let check = "check run.toml --set configurations=cfg.ildg --backend cpu";
    let run = room.run(check);
    assert!(run.code == Some(0) && !run.stderr.contains("is not Gaussian"), "{}", run.stderr);
    let run = room.run(&format!("{check} --set shell.steps=5"));
    assert!(run.code == Some(0) && run.stderr.contains("shell.steps = 5: smearing of width 2 is not Gaussian"));
}
