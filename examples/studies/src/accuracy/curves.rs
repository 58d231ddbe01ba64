//! Accuracy of each format, as in figure 6 of Clark et al. 2009: the even-odd Wilson matrix is compared with its result in double precision
//! with 18 reals for each link.
use ferrite::backend::{Backend, Cpu};
use ferrite::domain::{Domain, Result};
use ferrite::field::host::{HostGauge, HostSpinor};
use ferrite::field::{FieldShape, FieldSpace, FullField};
use ferrite::gauge::generate;
use ferrite::gpu_kernels::random::Philox;
use ferrite::lattice::Lattice;
use ferrite::num_complex::Complex64;
use ferrite::operators::{TimeBoundary, WilsonParams};
use ferrite::solve::Configuration;
use ferrite::solvers::VectorSpace;
use ferrite::workload::Options;
use ferrite::{LinkStorage, Precision};
use rayon::prelude::*;

/// Returns the tolerances ε of the curves: 10^(k/4) for k from −68 to 4, that is, from 10⁻¹⁷ to 10.
pub fn tolerances() -> Vec<f64> {
    (-68..=4).map(|k| 10f64.powf(f64::from(k) / 4.0)).collect()
}

/// Deviations of the even-odd Wilson matrix in one format from the exact result.
#[derive(Clone, Debug, PartialEq)]
pub struct Curve {
    /// Precision of fields and links.
    pub precision: Precision,
    /// Number of reals stored per link.
    pub reconstruction: LinkStorage,
    /// Δ(ε): share of the components that deviate by ε or more, for each ε of [`tolerances`].
    pub share: Vec<f64>,
    /// Mean absolute deviation of a component.
    pub mean: f64,
    /// Largest absolute deviation of a component.
    pub largest: f64,
}

/// Applies the even-odd Wilson matrix M̂ with random SU(3) links to a vector whose components have real and imaginary parts in (0, 1).
/// Returns the deviations of each format on `backend` from double precision with 18 reals on the CPU. `options.nrhs` is not used.
pub fn accuracy(backend: &dyn Backend, options: &Options) -> Result<Vec<Curve>> {
    let gauge = generate::random(options.lattice, 1);
    let source = uniform(options.lattice, 2);
    let exact = image(&Cpu::new(None), &gauge, &source, Precision::Double, LinkStorage::FULL)?;
    let mut curves = Vec::new();
    for &precision in &options.precisions {
        for &reconstruction in &options.reconstructions {
            let got = image(backend, &gauge, &source, precision, reconstruction)?;
            curves.push(curve(precision, reconstruction, &got, &exact));
        }
    }
    Ok(curves)
}

/// Computes M̂ η_e in one format; η_e is the even part of `source`.
fn image(
    backend: &dyn Backend,
    gauge: &HostGauge,
    source: &HostSpinor,
    precision: Precision,
    reconstruction: LinkStorage,
) -> Result<HostSpinor> {
    let domain = Domain::single(backend, gauge.lattice())?;
    let params = WilsonParams::from_mass(0.1, TimeBoundary::Antiperiodic);
    let operator = Configuration::new(&domain, gauge).operator(params, precision, reconstruction, 1)?;
    let space = |precision| FieldSpace::new(&domain, FieldShape::spinors(precision, 1));
    let (double, space) = (space(Precision::Double), space(precision));
    let mut full = FullField::zero(&domain, FieldShape::spinors(Precision::Double, 1))?;
    full.upload(std::slice::from_ref(source))?;
    let (mut x, mut y) = (space.allocate()?, space.allocate()?);
    space.convert_from(&full.even, &mut x)?;
    operator.apply(&x, &mut y)?;
    double.convert_from(&y, &mut full.even)?;
    double.zero(&mut full.odd)?;
    Ok(full.download()?.swap_remove(0))
}

fn curve(precision: Precision, reconstruction: LinkStorage, got: &HostSpinor, exact: &HostSpinor) -> Curve {
    let pairs = got.sites().par_iter().zip(exact.sites()).enumerate();
    // Odd sites are zero in both results, so they are left out of the statistics.
    let even = pairs.filter(|(site, _)| got.lattice().parity(got.lattice().coordinates(*site)) == 0);
    let mut deviations: Vec<f64> = even
        .flat_map_iter(|(_, (a, b))| a.iter().flatten().zip(b.iter().flatten()).map(|(a, b)| (a - b).norm()))
        .collect();
    deviations.par_sort_unstable_by(f64::total_cmp);
    let n = deviations.len() as f64;
    let share = |epsilon: &f64| (deviations.len() - deviations.partition_point(|d| d < epsilon)) as f64 / n;
    Curve {
        precision,
        reconstruction,
        share: tolerances().iter().map(share).collect(),
        mean: deviations.iter().sum::<f64>() / n,
        largest: deviations.last().copied().unwrap_or(0.0),
    }
}

/// Returns a spinor field whose components have real and imaginary parts uniform in (0, 1).
fn uniform(lattice: Lattice, seed: u64) -> HostSpinor {
    let mut field = HostSpinor::zero(lattice);
    field.sites_mut().par_iter_mut().enumerate().for_each(|(index, site)| {
        let mut stream = Philox::new(seed, index as u64, 0);
        for component in site.iter_mut().flatten() {
            *component = Complex64::new(stream.uniform(), stream.uniform());
        }
    });
    field
}
