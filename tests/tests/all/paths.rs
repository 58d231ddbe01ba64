//! Arbitrary paths of links, and hops to neighbouring sites, on one process and on several.
use ferrite::Precision;
use ferrite::backend::Cpu;
use ferrite::domain::Domain;
use ferrite::field::GaugeField;
use ferrite::field::host::{Fermion, HostColour, HostField, HostGauge, HostSpinor, Matrix};
use ferrite::gauge::loops::{mean_complex_traces, sums_of_paths};
use ferrite::gauge::{generate, su3};
use ferrite::hmc::momenta::MomentumField;
use ferrite::hmc::paths::kick_by_paths;
use ferrite::lattice::Lattice;
use ferrite::operators::{NeighbourHops, covariant_shift};
use ferrite_tests::clover_reference::path;
use ferrite_tests::cut::{self, links_of};
use num_complex::Complex64;

const SIZE: [usize; 4] = [4, 4, 6, 8];

/// Paths for each direction: along the direction, with bends and back.
fn paths(mu: usize) -> Vec<(f64, Vec<(usize, bool)>)> {
    let [nu, rho] = [(mu + 1) % 4, (mu + 2) % 4];
    let steps = vec![
        vec![(mu, true), (nu, true), (mu, false), (nu, false)],
        vec![(mu, true), (mu, true), (rho, false), (nu, true), (mu, false), (rho, true), (mu, false), (nu, false)],
        vec![(mu, true), (nu, false), (rho, false), (mu, false), (nu, true), (rho, true)],
    ];
    [0.7, -0.2, 1.3].into_iter().zip(steps).collect()
}

/// Results of the paths and hops on a part of the lattice.
struct PathResults {
    traces: Vec<Complex64>,
    sums: HostGauge,
    momenta: HostGauge,
    laplace: Vec<HostColour>,
    shifted: Vec<HostSpinor>,
}

fn found(domain: &Domain, gauge: &HostGauge, fields: (&[HostColour], &[HostSpinor])) -> PathResults {
    let links = GaugeField::upload(domain, gauge).unwrap();
    let all: [Vec<_>; 4] = std::array::from_fn(paths);
    let lists = all.each_ref().map(Vec::as_slice);
    let traces = mean_complex_traces(&links, all.iter().flatten().map(|(_, steps)| steps.as_slice())).unwrap();
    let mut momenta = MomentumField::zero(domain, Precision::Double).unwrap();
    momenta.draw(5, 6).unwrap();
    kick_by_paths(&links, lists, 0.3, &mut momenta).unwrap();
    let hops = NeighbourHops::sums(&links, [true, false, true, true]).unwrap();
    let shift = |direction| covariant_shift(&links, direction, fields.1).unwrap();
    PathResults {
        traces,
        sums: sums_of_paths(&links, lists).unwrap().download().unwrap(),
        momenta: momenta.download().unwrap(),
        laplace: hops.apply((0.4, -0.1), 3, fields.0).unwrap(),
        shifted: (0..4).flat_map(|mu| [true, false].map(|way| shift((mu, way)).swap_remove(0))).collect(),
    }
}

fn combined(sum: &mut Matrix, factor: f64, product: &Matrix) {
    for (sum, product) in sum.iter_mut().flatten().zip(product.iter().flatten()) {
        *sum += factor * product;
    }
}

/// Returns the traceless anti-Hermitian part of a matrix.
fn traceless(m: &Matrix) -> Matrix {
    let trace = (0..3).map(|k| m[k][k].im).sum::<f64>() / 3.0;
    std::array::from_fn(|j| {
        std::array::from_fn(|k| {
            let diagonal = if j == k { Complex64::new(0.0, trace) } else { Complex64::ZERO };
            0.5 * (m[j][k] - m[k][j].conj()) - diagonal
        })
    })
}

/// Returns U_μ(x) ψ(x+μ̂), or U_μ†(x−μ̂) ψ(x−μ̂), for each spin.
fn neighbour<T: Fermion>(gauge: &HostGauge, psi: &HostField<T>, mu: usize, forward: bool) -> HostField<T> {
    let (lattice, mut out) = (gauge.lattice(), HostField::zero(gauge.lattice()));
    for x in 0..lattice.volume() {
        let y = lattice.neighbour(x, mu, forward);
        let link = if forward { *gauge.link(x, mu) } else { *gauge.link(y, mu) };
        for spin in 0..T::COMPONENTS / 3 {
            let element = |a: usize, b: usize| if forward { link[a][b] } else { link[b][a].conj() };
            for a in 0..3 {
                let at = |site: usize, colour: usize| T::COMPONENTS * site + 3 * spin + colour;
                out.numbers_mut()[at(x, a)] = (0..3).map(|b| element(a, b) * psi.numbers()[at(y, b)]).sum();
            }
        }
    }
    out
}

fn largest(a: &[Complex64], b: &[Complex64]) -> f64 {
    assert_eq!(a.len(), b.len());
    a.iter().zip(b).map(|(a, b)| (a - b).norm()).fold(0.0, f64::max)
}

#[test]
fn paths_and_hops_are_those_of_the_formulas_on_any_grid() {
    let lattice = Lattice::new(SIZE).unwrap();
    // Links beside SU(3): sums of paths and hops do not need unitary links.
    let mut gauge = generate::random(lattice, 3);
    gauge.numbers_mut().iter_mut().enumerate().for_each(|(n, number)| *number *= 1.0 + (n % 7) as f64 / 50.0);
    let colours: Vec<HostColour> = (0..2).map(|n| generate::random_source(lattice, 10 + n)).collect();
    let spinors: Vec<HostSpinor> = vec![generate::random_source(lattice, 20)];
    let domain = Domain::single(Cpu::new(None), lattice).unwrap();
    let whole = found(&domain, &gauge, (&colours, &spinors));
    // Plain sums.
    let drawn = {
        let mut momenta = MomentumField::zero(&domain, Precision::Double).unwrap();
        momenta.draw(5, 6).unwrap();
        momenta.download().unwrap()
    };
    let mut traces = Vec::new();
    for mu in 0..4 {
        let (mut sums, mut forces) =
            (vec![Matrix::default(); lattice.volume()], vec![Matrix::default(); lattice.volume()]);
        for (factor, steps) in paths(mu) {
            let mut trace = Complex64::ZERO;
            for x in 0..lattice.volume() {
                let product = path(&gauge, x, &steps);
                trace += (0..3).map(|k| product[k][k]).sum::<Complex64>();
                combined(&mut sums[x], factor, &product);
                combined(&mut forces[x], factor, &traceless(&product));
            }
            traces.push(trace / lattice.volume() as f64);
        }
        for x in 0..lattice.volume() {
            // Products of up to eight links whose elements are about 1.
            assert!(largest(whole.sums.link(x, mu).as_flattened(), sums[x].as_flattened()) < 1e-14);
            let mut expected = *drawn.link(x, mu);
            combined(&mut expected, -0.3, &forces[x]);
            assert!(largest(whole.momenta.link(x, mu).as_flattened(), expected.as_flattened()) < 1e-14);
        }
    }
    assert!(largest(&whole.traces, &traces) < 1e-15);
    let mut expected = colours.clone();
    for _ in 0..3 {
        for psi in &mut expected {
            let hops: Vec<_> =
                [0, 2, 3].into_iter().flat_map(|mu| [true, false].map(|way| neighbour(&gauge, psi, mu, way))).collect();
            for (n, number) in psi.numbers_mut().iter_mut().enumerate() {
                *number = 0.4 * *number - 0.1 * hops.iter().map(|hop| hop.numbers()[n]).sum::<Complex64>();
            }
        }
    }
    for (found, expected) in whole.laplace.iter().zip(&expected) {
        assert!(largest(found.numbers(), expected.numbers()) < 1e-14);
    }
    for (n, found) in whole.shifted.iter().enumerate() {
        let expected = neighbour(&gauge, &spinors[0], n / 2, n % 2 == 0);
        assert!(largest(found.numbers(), expected.numbers()) < 1e-14, "shift {n}");
    }
    for grid in [[2, 1, 1, 1], [1, 2, 1, 1], [1, 1, 1, 2], [1, 2, 1, 2]] {
        let ok = comms::Threads::run(grid.iter().product(), |world| {
            let domain = cut::domain(Cpu::new(Some(1)), lattice, grid, world).map_err(|why| why.to_string())?;
            let section = domain.section();
            let part = |field: &HostColour| cut::part_of(&section, field);
            let (of_colours, of_spinors): (Vec<_>, Vec<_>) = (
                colours.iter().map(part).collect(),
                spinors.iter().map(|field| cut::part_of(&section, field)).collect(),
            );
            let mine = found(&domain, &links_of(&section, &gauge), (&of_colours, &of_spinors));
            assert!(largest(&mine.traces, &whole.traces) < 1e-14);
            assert_eq!(mine.sums, links_of(&section, &whole.sums), "{grid:?}");
            assert_eq!(mine.momenta, links_of(&section, &whole.momenta), "{grid:?}");
            for (mine, whole) in mine.laplace.iter().zip(&whole.laplace) {
                assert!(largest(mine.numbers(), cut::part_of(&section, whole).numbers()) < 1e-14, "{grid:?}");
            }
            for (mine, whole) in mine.shifted.iter().zip(&whole.shifted) {
                assert!(largest(mine.numbers(), cut::part_of(&section, whole).numbers()) < 1e-15, "{grid:?}");
            }
            Ok::<_, String>(())
        });
        ok.unwrap_or_else(|failure| panic!("{failure}"));
    }
}

#[test]
fn paths_that_leave_the_border_are_refused() {
    let lattice = Lattice::new([4, 4, 4, 8]).unwrap();
    let refused = comms::Threads::run(2, |world| {
        let domain = cut::domain(Cpu::new(Some(1)), lattice, [1, 1, 1, 2], world).map_err(|why| why.to_string())?;
        let links = GaugeField::upload(&domain, &HostGauge::unit(domain.local())).map_err(|why| why.to_string())?;
        let far: Vec<_> = [(3, true); 5].into_iter().chain([(3, false); 5]).collect();
        Ok::<_, String>(mean_complex_traces(&links, [far.as_slice()]).unwrap_err().to_string())
    });
    let refused = refused.unwrap_or_else(|failure| panic!("{failure}"));
    assert!(refused[0].contains('5') && refused[0] == refused[1], "{refused:?}");
}

/// The polar factor, divided by the cube root of its determinant, is next to the links, in SU(3), and changes with their phases as it has
/// to.
#[test]
fn polar_projections_are_in_su3() {
    use ferrite::gauge::ape_hyp::projected_to_su3;
    let lattice = Lattice::new([2, 4, 6, 8]).unwrap();
    let (gauge, noise) = (generate::random(lattice, 4), generate::random(lattice, 5));
    // V = U (1 + H) with a positive 1 + H has the polar factor U.
    let mut stretched = gauge.clone();
    for (link, noise) in stretched.links_mut().iter_mut().zip(noise.links()) {
        let hermitian: Matrix = std::array::from_fn(|j| {
            std::array::from_fn(|k| {
                let unit = if j == k { Complex64::ONE } else { Complex64::ZERO };
                unit + 0.1 * (noise[j][k] + noise[k][j].conj())
            })
        });
        let turned = Complex64::cis(0.3);
        *link = std::array::from_fn(|j| {
            std::array::from_fn(|k| turned * (0..3).map(|l| link[j][l] * hermitian[l][k]).sum::<Complex64>())
        });
    }
    let domain = Domain::single(Cpu::new(None), lattice).unwrap();
    let projected = projected_to_su3(&GaugeField::upload(&domain, &stretched).unwrap()).unwrap().download().unwrap();
    // The phase of all elements drops out, because e^{3·0.3 i} is the determinant's.
    assert!(largest(projected.numbers(), gauge.numbers()) < 1e-14);
    assert!(projected.links().iter().all(|u| su3::violation(u) < 1e-14));
}
