//! APE and HYP links against their formulas, on the device and through `ferrite smear`.
use crate::program::*;
use comms::Threads;
use ferrite::backend::Cpu;
use ferrite::domain::Domain;
use ferrite::field::GaugeField;
use ferrite::field::host::{HostGauge, Matrix};
use ferrite::gauge::ape_hyp::{ProjectedSmearing, SumsOfStaples};
use ferrite::gauge::{generate, measure};
use ferrite::lattice::Lattice;
use ferrite_tests::cut;
use ferrite_tests::reference::{adjoint, multiply, transform_links};
use ferrite_tests::smearing_reference;
use serde_json::{Value, json};
use std::collections::HashMap;

/// One matrix for each site.
type Field = Vec<Matrix>;

/// The projection of (1 − α) U plus α times the mean of staples, each with its sides, its middle and the direction of the sides.
fn projected(lattice: Lattice, mu: usize, link: &Field, alpha: f64, staples: &[(&Field, &Field, usize)]) -> Field {
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
        smearing_reference::project(&sum).unwrap()
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

/// The same within time slices.
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
    let pairs = a.links().as_flattened().as_flattened().iter().zip(b.links().as_flattened().as_flattened());
    pairs.map(|(a, b)| (a - b).norm()).fold(0.0, f64::max)
}

const ALPHA: [f64; 3] = [0.75, 0.6, 0.3];

fn kinds() -> [ProjectedSmearing; 4] {
    let of = |sums, levels, spatial| ProjectedSmearing { sums, levels, spatial };
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
        let ours = ProjectedSmearing { sums: SumsOfStaples::Ape(0.5), levels: 3, spatial: true };
        assert!(largest_difference(&chroma, &ours.smeared(&links).unwrap().download().unwrap()) < 2e-13);
        assert_eq!(links.download().unwrap(), gauge);
    }
    // Sums that vanish.
    let domain = Domain::single(Cpu::new(None), Lattice::new([2, 2, 2, 2]).unwrap()).unwrap();
    let zero = HostGauge::from_links(domain.local(), vec![Matrix::default(); 64]);
    let zero = GaugeField::upload(&domain, &zero).unwrap();
    assert!(kinds()[0].smeared(&zero).is_err_and(|why| why.to_string().contains("no projection to SU(3)")));
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
            Threads::run(grid.iter().product(), |world| {
                let domain = cut::domain(Cpu::new(Some(1)), lattice, grid, world).unwrap();
                let part = domain.section();
                let found = smeared(&domain, &cut::links_of(&part, &gauge));
                assert_eq!(found, cut::links_of(&part, &whole), "{smearing:?}, {grid:?} at {:?}", part.origin);
                Ok::<_, std::convert::Infallible>(())
            })
            .unwrap();
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
        ("--kind ape --alpha 0.5,0.5", "one share of staples"),
        ("--kind ape --alpha 0.5 --rho 0.1", "--rho belongs to --kind stout"),
        ("--kind hyp --alpha 0.5", "--alpha A1,A2,A3"),
        ("--rho 0.1 --alpha 0.5", "--alpha belongs to --kind ape and --kind hyp"),
        ("--kind wilson", "stout, ape, hyp"),
    ] {
        room.fails(2, &format!("smear weak.ildg -o no.ildg {flags}"), &[why]);
    }
    assert!(!room.path("no.ildg").exists());
}
