//! Helpers that many tests share: lattices and domains, one process or several, propagators, matrices, and how far things are apart.
pub mod dense;
pub mod matrix;

pub use matrix::farthest;

use crate::cut;
use crate::report::{CheckReport, larger};
use comms::Threads;
use ferrite::Precision;
use ferrite::backend::{Backend, Cpu};
use ferrite::domain::Domain;
use ferrite::field::GaugeField;
use ferrite::field::host::{Fermion, HostField, HostGauge, HostSpinor};
use ferrite::gauge::generate;
use ferrite::hmc::links::EvolvingLinks;
use ferrite::lattice::Lattice;
use ferrite::operators::Operator;
use ferrite::solve::{Request, solve};
use num_complex::Complex64;
use std::convert::Infallible;
use std::fmt::Debug;

/// A lattice of these extents, which are even.
pub fn lattice(size: [usize; 4]) -> Lattice {
    Lattice::new(size).expect("even extents")
}
/// A whole lattice on one thread: tests run side by side.
pub fn single(lattice: Lattice) -> Domain {
    Domain::single(Cpu::new(Some(1)), lattice).expect("a domain on the CPU")
}
/// A whole lattice of these extents on one thread.
pub fn domain(size: [usize; 4]) -> Domain {
    single(lattice(size))
}
/// Links on a domain.
pub fn upload(domain: &Domain, gauge: &HostGauge) -> GaugeField {
    GaugeField::upload(domain, gauge).expect("links on the CPU")
}
/// Links of molecular dynamics in double precision.
pub fn evolving(domain: &Domain, gauge: &HostGauge) -> EvolvingLinks {
    EvolvingLinks::new(&upload(domain, gauge), Precision::Double).expect("links on the CPU")
}

/// Returns the results of `work` on every process of a grid, here threads, each with its part of the lattice.
pub fn on_grid<T: Send>(grid: [usize; 4], lattice: Lattice, work: impl Fn(&Domain) -> T + Sync) -> Vec<T> {
    let rank = |world: Threads| {
        let domain = cut::domain(Cpu::new(Some(1)), lattice, grid, world).expect("a part of the lattice");
        Ok::<_, Infallible>(work(&domain))
    };
    Threads::run(grid.iter().product(), rank).expect("threads end")
}

/// Even sites.
pub fn even_sites(lattice: Lattice) -> impl Iterator<Item = usize> {
    (0..lattice.volume()).filter(move |x| lattice.coordinates(*x).iter().sum::<usize>() % 2 == 0)
}

/// Sources at a site, one for each of the 12 components.
pub fn point_sources(lattice: Lattice, place: [usize; 4]) -> Vec<HostSpinor> {
    (0..12).map(|k| generate::point_source(lattice, place, k / 3, k % 3).expect("a site of the lattice")).collect()
}

/// Solutions on the CPU to a tolerance.
pub fn solutions<T: Fermion + Debug>(
    gauge: &HostGauge,
    operator: impl Into<Operator>,
    tol: f64,
    sources: &[HostField<T>],
) -> Vec<HostField<T>> {
    let domain = Domain::single(Cpu::new(None), gauge.lattice()).expect("a domain on the CPU");
    let request = Request { tol, ..Request::new(operator) };
    solve(&domain, gauge, sources, &request, &mut ()).expect("a solution").0
}

/// [`farthest`] of the elements of links.
pub fn farthest_links(a: &HostGauge, b: &HostGauge) -> f64 {
    farthest(a.numbers(), b.numbers())
}
/// Re Σ tr A† B over all links.
pub fn product_of_links(a: &HostGauge, b: &HostGauge) -> f64 {
    a.links().iter().zip(b.links()).map(|(a, b)| matrix::real_product(a, b)).sum()
}

/// The largest |z|.
pub fn largest(numbers: &[Complex64]) -> f64 {
    numbers.iter().map(|z| z.norm()).fold(0.0, larger)
}

/// Runs a check on the CPU, which has to pass.
pub fn on_cpu<E: Debug>(check: impl FnOnce(&dyn Backend, &mut CheckReport) -> Result<(), E>) {
    let mut report = CheckReport::default();
    check(&Cpu::new(None), &mut report).expect("the CPU works");
    finish(report);
}

/// Prints the table of a report, which has to pass.
pub fn finish(report: CheckReport) {
    print!("{}", report.table());
    report.assert_passed();
}
