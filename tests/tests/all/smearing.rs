//! APE and HYP links against their formulas, on the device and through `ferrite smear`.
use crate::program::*;
use ferrite::backend::Cpu;
use ferrite::domain::Domain;
use ferrite::field::GaugeField;
use ferrite::field::host::{HostGauge, Matrix};
use ferrite::gauge::ape_hyp::{ProjectedSmearing, Projection, SumsOfStaples};
use ferrite::gauge::{generate, measure};
use ferrite::lattice::Lattice;
use ferrite_tests::cut;
use ferrite_tests::reference::{adjoint, multiply, transform_links};
use ferrite_tests::smearing_reference;
use ferrite_tests::testkit::on_grid;
use num_complex::Complex64;
use serde_json::{Value, json};
use std::collections::HashMap;

/// One matrix for each site.
type Field = Vec<Matrix>;

/// The projection of [`sums`].
fn projected(lattice: Lattice, mu: usize, link: &Field, alpha: f64, staples: &[(&Field, &Field, usize)]) -> Field {
    sums(lattice, mu, link, alpha, staples).iter().map(|sum| smearing_reference::project(sum).unwrap()).collect()
}

/// (1 − α) U plus α times the mean of staples, each with its sides, its middle and the direction of the sides.
fn sums(lattice: Lattice, mu: usize, link: &Field, alpha: f64, staples: &[(&Field, &Field, usize)]) -> Field {
    let site = |x: usize| {
        let mut sum = link[x].map(|row| row.map(|z| z * (1.0 - alpha)));
        let mut add = |staple: Matrix| {
            let share = alpha / (2 * staples.len()) as f64;
            sum.iter_mut().flatten().zip(staple.iter().flatten()).for_each(|(sum, z)| *sum += z * share);
        };
        let along = lattice.neighbour(x, mu, true);
        for (sides, middle, nu) in staples {
            let (up, down) = (lattice.neighbour(x, *nu, true), lattice.neighbour(x, *nu, false));
            add(multiply(&multiply(&sides[x], &middle[up]), &adjoint(&sides[along])));
            let beside = lattice.neighbour(along, *nu, false);
            add(multiply(&multiply(&adjoint(&sides[down]), &middle[down]), &sides[beside]));
        }
        sum
    };
    (0..lattice.volume()).map(site).collect()
}

fn directions(gauge: &HostGauge) -> [Field; 4] {
    std::array::from_fn(|mu| (0..gauge.lattice().volume()).map(|x| *gauge.link(x, mu)).collect())
}

fn together(lattice: Lattice, links: &[Field; 4]) -> HostGauge {
    HostGauge::from_links(lattice, (0..4 * lattice.volume()).map(|k| links[k % 4][k / 4]).collect())
}

/// One level of APE smearing.
fn ape(gauge: &HostGauge, alpha: f64, spatial: bool) -> HostGauge {
    let (lattice, links, count) = (gauge.lattice(), directions(gauge), if spatial { 3 } else { 4 });
    let smeared = std::array::from_fn(|mu| {
        let others = (0..count).filter(|nu| *nu != mu && mu < count);
        let staples: Vec<_> = others.map(|nu| (&links[nu], &links[mu], nu)).collect();
        if staples.is_empty() { links[mu].clone() } else { projected(lattice, mu, &links[mu], alpha, &staples) }
    });
    together(lattice, &smeared)
}

/// One level of HYP smearing as Hasenfratz and Knechtli (2001) write it, indices in the order of theirs.
fn hyp(gauge: &HostGauge, [first, second, third]: [f64; 3]) -> HostGauge {
    let (lattice, links) = (gauge.lattice(), directions(gauge));
    let but = |taken: &[usize]| (0..4).filter(|nu| !taken.contains(nu)).collect::<Vec<usize>>();
    let mut bar = HashMap::new();
    for (mu, nu, rho) in (0..64).map(|k| (k % 4, k / 4 % 4, k / 16)) {
        if mu != nu && mu != rho && nu != rho {
            let staples: Vec<_> = but(&[rho, nu, mu]).into_iter().map(|eta| (&links[eta], &links[mu], eta)).collect();
            bar.insert((mu, nu, rho), projected(lattice, mu, &links[mu], third, &staples));
        }
    }
    let mut tilde = HashMap::new();
    for (mu, nu) in (0..16).map(|k| (k % 4, k / 4)).filter(|(mu, nu)| mu != nu) {
        let others = but(&[nu, mu]).into_iter();
        let staples: Vec<_> = others.map(|rho| (&bar[&(rho, nu, mu)], &bar[&(mu, rho, nu)], rho)).collect();
        tilde.insert((mu, nu), projected(lattice, mu, &links[mu], second, &staples));
    }
    let smeared = std::array::from_fn(|mu| {
        let staples: Vec<_> = but(&[mu]).into_iter().map(|nu| (&tilde[&(nu, mu)], &tilde[&(mu, nu)], nu)).collect();
        projected(lattice, mu, &links[mu], first, &staples)
    });
    together(lattice, &smeared)
}

/// One level of HYP smearing within time slices.
fn hyp_in_space(gauge: &HostGauge, [first, second, _]: [f64; 3]) -> HostGauge {
    let (lattice, links) = (gauge.lattice(), directions(gauge));
    let tilde = |mu: usize, nu: usize| {
        let rho = (0..3).find(|rho| *rho != mu && *rho != nu).unwrap();
        projected(lattice, mu, &links[mu], second, &[(&links[rho], &links[mu], rho)])
    };
    let smeared = std::array::from_fn(|mu| {
        if mu == 3 {
            return links[3].clone();
        }
        let others = (0..3).filter(|nu| *nu != mu);
        let decorated: Vec<_> = others.map(|nu| (tilde(nu, mu), tilde(mu, nu), nu)).collect();
        let staples: Vec<_> = decorated.iter().map(|(sides, middle, nu)| (sides, middle, *nu)).collect();
        projected(lattice, mu, &links[mu], first, &staples)
    });
    together(lattice, &smeared)
}

fn largest_difference(a: &HostGauge, b: &HostGauge) -> f64 {
    let pairs = a.numbers().iter().zip(b.numbers());
    pairs.map(|(a, b)| (a - b).norm()).fold(0.0, f64::max)
}

const ALPHA: [f64; 3] = [0.75, 0.6, 0.3];

fn kinds() -> [ProjectedSmearing; 4] {
    let of = |sums, levels, spatial| ProjectedSmearing { sums, levels, spatial, projection: Projection::default() };
    [
        of(SumsOfStaples::Ape(0.6), 2, false),
        of(SumsOfStaples::Ape(0.5), 3, true),
        of(SumsOfStaples::USUAL_HYP, 1, false),
        of(SumsOfStaples::Hyp(ALPHA), 2, true),
    ]
}

#[test]
fn ape_and_hyp_links_are_those_of_the_formulas() {
    for (k, size) in [[2, 4, 6, 8], [4, 4, 4, 4]].into_iter().enumerate() {
        let domain = Domain::single(Cpu::new(None), Lattice::new(size).unwrap()).unwrap();
        let gauge = generate::weak_field(domain.local(), 3 + k as u64, 0.4);
        let links = GaugeField::upload(&domain, &gauge).unwrap();
        let turns = generate::random(domain.local(), 8);
        let turns: Vec<Matrix> = (0..domain.local().volume()).map(|x| *turns.link(x, 0)).collect();
        for smearing in kinds() {
            let smeared = smearing.smeared(&links).unwrap().download().unwrap();
            let expected =
                (0..smearing.levels).fold(gauge.clone(), |gauge, _| match (smearing.sums, smearing.spatial) {
                    (SumsOfStaples::Ape(alpha), spatial) => ape(&gauge, alpha, spatial),
                    (SumsOfStaples::Hyp(alpha), false) => hyp(&gauge, alpha),
                    (SumsOfStaples::Hyp(alpha), true) => hyp_in_space(&gauge, alpha),
                });
            let off = largest_difference(&smeared, &expected);
            assert!(off < 2e-13, "{smearing:?} on {}: {off:e}", domain.local());
            assert!(measure::unitarity(&smeared).violation < 1e-14);
            assert!(measure::plaquette(&smeared).spatial > measure::plaquette(&gauge).spatial + 0.05);
            // Smearing goes with gauge transformations.
            let turned = GaugeField::upload(&domain, &transform_links(&gauge, &turns)).unwrap();
            let turned = smearing.smeared(&turned).unwrap().download().unwrap();
            let off = largest_difference(&turned, &transform_links(&smeared, &turns));
            assert!(off < 2e-13, "{smearing:?} after a gauge transformation: {off:e}");
        }
        // The one that Chroma has, of which the weight is another.
        let chroma = smearing_reference::ape(&gauge, 4.0, 3);
        let ours = ProjectedSmearing {
            sums: SumsOfStaples::Ape(0.5),
            levels: 3,
            spatial: true,
            projection: Projection::default(),
        };
        assert!(largest_difference(&chroma, &ours.smeared(&links).unwrap().download().unwrap()) < 2e-13);
        assert_eq!(links.download().unwrap(), gauge);
    }
    // Sums that vanish.
    let domain = Domain::single(Cpu::new(None), Lattice::new([2, 2, 2, 2]).unwrap()).unwrap();
    let zero = HostGauge::from_links(domain.local(), vec![Matrix::default(); 64]);
    let zero = GaugeField::upload(&domain, &zero).unwrap();
    assert!(kinds()[0].smeared(&zero).is_err_and(|why| why.to_string().contains("cannot be projected to SU(3)")));
}

/// The largest element of the traceless anti-Hermitian part of W V†, which is zero at an extremum of Re tr W V† in SU(3), and
/// Re tr W V†.
fn extremum(w: &Matrix, v: &Matrix) -> (f64, f64) {
    let m = multiply(w, &adjoint(v));
    let trace = (0..3).map(|k| m[k][k]).sum::<Complex64>();
    let off = |(j, k): (usize, usize)| {
        let diagonal = if j == k { Complex64::new(0.0, trace.im / 3.0) } else { Complex64::ZERO };
        (0.5 * (m[j][k] - m[k][j].conj()) - diagonal).norm()
    };
    ((0..9).map(|n| off((n / 3, n % 3))).fold(0.0, f64::max), trace.re)
}

/// Projections of hot links are converged. Sums of staples have any size and phase there, and sweeps over subgroups converge slowly on some
/// of them; the plain projection continues to its end.
#[test]
fn projections_of_hot_links_are_converged() {
    let domain = Domain::single(Cpu::new(None), Lattice::new([8, 8, 8, 8]).unwrap()).unwrap();
    let (lattice, alpha) = (domain.local(), 0.75);
    let gauge = generate::random(lattice, 77);
    let smearing = ProjectedSmearing {
        sums: SumsOfStaples::Ape(alpha),
        levels: 1,
        spatial: false,
        projection: Projection::default(),
    };
    let links = GaugeField::upload(&domain, &gauge).unwrap();
    let smeared = smearing.smeared(&links).unwrap().download().unwrap();
    assert!(measure::unitarity(&smeared).violation < 1e-14);
    let before = directions(&gauge);
    let (mut slow, mut compared) = (0, 0);
    for mu in 0..4 {
        let staples: Vec<_> = (0..4).filter(|nu| *nu != mu).map(|nu| (&before[nu], &before[mu], nu)).collect();
        for (x, sum) in sums(lattice, mu, &before[mu], alpha, &staples).iter().enumerate() {
            let found = smeared.link(x, mu);
            let (gradient, trace) = extremum(found, sum);
            // Elements of the sums are below 1, and each of three products of matrices rounds at some 1e-16 of that.
            assert!(gradient < 4e-15, "link {mu} at {x}: {gradient:e}");
            let (end, sweeps) = smearing_reference::project_with_sweeps(sum).unwrap();
            let largest = extremum(&end, sum).1;
            assert!(trace > largest - 1e-14, "link {mu} at {x}: {trace} {largest}");
            slow += usize::from(sweeps > 100);
            // Sweeps may end in another maximum, which is not as large.
            if trace < largest + 1e-12 {
                compared += 1;
                let both = found.iter().flatten().zip(end.iter().flatten());
                let off = both.map(|(a, b)| (a - b).norm()).fold(0.0, f64::max);
                // Where n sweeps are needed each takes 1/n of what is missing, or so: a last one of 1e-15 leaves n times that.
                assert!(off < 1e-13f64.max(sweeps as f64 * 4e-15), "link {mu} at {x} after {sweeps} sweeps: {off:e}");
            }
        }
    }
    assert!(slow > 0 && compared > 16000, "{slow} {compared}");
}

/// The projection of a multiple of an element of SU(3), e^{iφ} W, is W times the element of the centre next to e^{iφ}, which sweeps that
/// begin at another one do not find. That of a diagonal matrix is diagonal, also beyond the angle at which the cosine of one phase is
/// negative.
#[test]
fn projections_have_the_largest_trace() {
    let w = *generate::random(Lattice::new([2; 4]).unwrap(), 5).link(3, 1);
    let project = |v: &Matrix| -> Matrix {
        let complex = |z: &Complex64| gpu_kernels::algebra::complex(z.re, z.im);
        let v = gpu_kernels::algebra::Su3(std::array::from_fn(|j| std::array::from_fn(|k| complex(&v[j][k]))));
        gpu_kernels::smeared::largest_in_su3(&v).0.map(|row| row.map(|z| Complex64::new(z.re, z.im)))
    };
    let off = |a: &Matrix, b: &Matrix| {
        a.iter().flatten().zip(b.iter().flatten()).map(|(a, b)| (a - b).norm()).fold(0.0, f64::max)
    };
    let third = std::f64::consts::TAU / 3.0;
    for (phi, turns) in [(0.0, 0.0), (1.04, 0.0), (1.06, 1.0), (-1.04, 0.0), (-1.06, -1.0), (2.0, 1.0), (3.1, 1.0)] {
        let times = |factor: Complex64| w.map(|row| row.map(|z| z * factor));
        let found = project(&times(0.7 * Complex64::cis(phi)));
        assert!(off(&found, &times(Complex64::cis(turns * third))) < 1e-14, "{phi}");
    }
    for (sizes, psi) in
        [([0.05, 1.0, 0.9], 3.0), ([1.0, 0.2, 1.1], -2.5), ([1.2, 0.8, 0.3], 1.9), ([0.5, 0.5, 0.5], 3.1)]
    {
        // V = σ with a phase on the last element, so that the phases of W V† add up to -ψ.
        let diagonal = |z: [Complex64; 3]| -> Matrix {
            std::array::from_fn(|j| std::array::from_fn(|k| if j == k { z[j] } else { Complex64::ZERO }))
        };
        let v = diagonal([sizes[0].into(), sizes[1].into(), sizes[2] * Complex64::cis(psi)]);
        let (found, trace) = (project(&v), extremum(&project(&v), &v).1);
        // On a grid of phases none is larger.
        let trace_of = |a: f64, b: f64| sizes[0] * a.cos() + sizes[1] * b.cos() + sizes[2] * (psi + a + b).cos();
        let grid = (0..1 << 16).map(|k| trace_of((k % 256) as f64 * third / 85.0, (k / 256) as f64 * third / 85.0));
        let best = grid.fold(f64::MIN, f64::max);
        assert!(trace > best - 1e-14 && trace < best + 1e-3, "{sizes:?} {psi}: {trace} {best}");
        assert!(extremum(&found, &v).0 < 1e-15, "{sizes:?} {psi}");
    }
}

#[test]
fn ape_and_hyp_links_do_not_depend_on_the_grid() {
    let lattice = Lattice::new([4, 4, 4, 12]).unwrap();
    let gauge = generate::weak_field(lattice, 4, 0.4);
    for smearing in kinds() {
        let smeared = |domain: &Domain, gauge: &HostGauge| {
            smearing.smeared(&GaugeField::upload(domain, gauge).unwrap()).unwrap().download().unwrap()
        };
        let whole = smeared(&Domain::single(Cpu::new(Some(1)), lattice).unwrap(), &gauge);
        for grid in [[1, 1, 1, 6], [2, 2, 1, 1]] {
            on_grid(grid, lattice, |domain| {
                let part = domain.section();
                let found = smeared(domain, &cut::links_of(&part, &gauge));
                assert_eq!(found, cut::links_of(&part, &whole), "{smearing:?}, {grid:?} at {:?}", part.origin);
            });
        }
    }
}

#[test]
fn smeared_files_of_each_kind() {
    let room = Room::with_weak_field();
    let read = |name: &str| ferrite::files::read_gauge(&room.path(name), &Default::default()).unwrap().gauge;
    let thin = read("weak.ildg");
    for (flags, expected, alpha) in [
        ("--kind ape --alpha 0.6 --levels 2", ape(&ape(&thin, 0.6, false), 0.6, false), json!([0.6])),
        ("--kind ape --alpha 0.5 --spatial", ape(&thin, 0.5, true), json!([0.5])),
        ("--kind hyp --alpha 0.5,0.4,0.2", hyp(&thin, [0.5, 0.4, 0.2]), json!([0.5, 0.4, 0.2])),
    ] {
        let found = room.json(&format!("smear weak.ildg -o smeared.ildg {flags}"));
        assert_eq!((&found["alpha"], &found["rho"]), (&alpha, &Value::Null));
        assert!(flags.contains(found["kind"].as_str().unwrap()));
        assert!(largest_difference(&read("smeared.ildg"), &expected) < 1e-13, "{flags}");
        assert!(room.run("verify smeared.ildg").code == Some(0));
    }
    assert_eq!(room.json("smear weak.ildg -o smeared.ildg --kind hyp")["alpha"], json!(ALPHA));
    for (flags, why) in [
        ("--kind ape", "--kind ape needs --alpha A"),
        ("--kind ape --alpha 1.1", "'1.1' is not a number from 0 to 1"),
        ("--kind ape --alpha 0.5,0.5", "--alpha 0.5,0.5: APE smearing takes a single weight"),
        ("--kind ape --alpha 0.5 --rho 0.1", "--rho applies to --kind stout only"),
        ("--kind hyp --alpha 0.5", "--alpha A1,A2,A3"),
        ("--rho 0.1 --alpha 0.5", "--alpha applies to --kind ape and --kind hyp only"),
        ("--kind wilson", "stout, ape, hyp"),
    ] {
        room.fails(2, &format!("smear weak.ildg -o no.ildg {flags}"), &[why]);
    }
    assert!(!room.path("no.ildg").exists());
}
