//! An inverter of one's own around those of the library, on fields of a device: staggered quarks of smaller and smaller mass, each solve
//! of which begins with what the solutions before know.
//!
//! `cargo run --release --example own_inverter`
use ferrite::backend::Cpu;
use ferrite::domain::{DeviceError, Domain};
use ferrite::field::host::{ColourVector, HostField};
use ferrite::field::{DeviceGauge, FieldShape, FieldSpace, FullField};
use ferrite::gauge::generate;
use ferrite::lattice::Lattice;
use ferrite::num_complex::Complex64;
use ferrite::operators::{EvenOddStaggered, Staggered, StaggeredLinks, StaggeredParams, TimeBoundary};
use ferrite::solvers::inverter::{Inverter, cg, mixed_precision};
use ferrite::solvers::{Info, Observer, Precise, SolveError, SolverParams, System, Uniform, VectorSpace};
use ferrite::{LinkStorage, Precision};
use std::sync::Arc;

/// Solves by `inner` from the combination of earlier solutions with the smallest error in the norm of A, direction by direction.
struct Recycling<V, I> {
    solutions: Vec<V>,
    inner: I,
}

impl<Y: System, I: Inverter<Y>> Inverter<Y> for Recycling<Precise<Y>, I> {
    fn invert(
        &mut self,
        system: &Y,
        b: &Precise<Y>,
        x: &mut Precise<Y>,
        params: &SolverParams,
        observer: &mut dyn Observer,
    ) -> Result<Info, SolveError<Y::Error>> {
        let space = system.precise();
        let (mut image, mut norm2) = (space.allocate()?, [0.0]);
        let (mut v_r, mut v_av) = ([Complex64::ZERO], [Complex64::ZERO]);
        for v in &self.solutions {
            // x ← x + v (v, b − A x) / (v, A v)
            system.apply(x, &mut image)?;
            space.sub_norm2(b, &mut image, &mut norm2)?;
            space.dot(v, &image, &mut v_r)?;
            system.apply(v, &mut image)?;
            space.dot(v, &image, &mut v_av)?;
            space.axpy(&[v_r[0] / v_av[0]], v, x)?;
        }
        let info = self.inner.invert(system, b, x, params, observer)?;
        space.copy(x, &mut image)?;
        self.solutions.push(image);
        Ok(info)
    }
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    // Links in double and in single precision, on the device; Cuda instead of Cpu for a GPU.
    let lattice = Lattice::new([8, 8, 8, 8])?;
    let domain = Domain::single(Cpu::new(None), lattice)?;
    let gauge = generate::weak_field(lattice, 7, 0.3);
    let links = |precision| {
        let links = DeviceGauge::upload(&domain, &gauge, precision, LinkStorage::FULL)?;
        Ok::<_, DeviceError>(Arc::new(StaggeredLinks::naive(Arc::new(links))))
    };
    let (links, sloppy_links) = (links(Precision::Double)?, links(Precision::Single)?);
    let space = FieldSpace::new(&domain, FieldShape::colours(Precision::Double, 1));
    let single = FieldSpace::new(&domain, FieldShape::colours(Precision::Single, 1));
    let source: HostField<ColourVector> = generate::random_source(lattice, 1);
    let source = FullField::of_host(&domain, &[source])?;

    // M†M x = b on the even sites, in single precision with reliable updates.
    let solve = |mass: f64, recycled: Vec<_>| {
        let params = StaggeredParams::new(mass, TimeBoundary::Antiperiodic);
        let operator = EvenOddStaggered::new(Staggered::new(links.clone(), params), 1)?;
        let sloppy = EvenOddStaggered::new(Staggered::new(sloppy_links.clone(), params), 1)?;
        let mut inverter = Recycling { solutions: recycled, inner: mixed_precision(&single, &sloppy, cg()) };
        let mut x = space.allocate()?;
        let asked = SolverParams { tol: 1e-10, ..Default::default() };
        let info = inverter.invert(&Uniform::new(&space, &operator), &source.even, &mut x, &asked, &mut ())?;
        Ok::<_, SolveError<_>>((info, inverter.solutions))
    };
    let mut recycled = Vec::new();
    let (mut all, mut alone) = (0, 0);
    for mass in [0.2, 0.16, 0.13, 0.1] {
        let plain = solve(mass, Vec::new())?.0;
        let (info, solutions) = solve(mass, recycled)?;
        println!(
            "m = {mass}: {} iterations instead of {}, residual {:.1e}",
            info.iterations,
            plain.iterations,
            info.worst_residual()
        );
        recycled = solutions;
        (all, alone) = (all + info.iterations, alone + plain.iterations);
    }
    if all < alone { Ok(()) } else { Err("earlier solutions did not help".into()) }
}
