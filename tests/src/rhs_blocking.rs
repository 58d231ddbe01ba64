//! The blockings in which kernels compute several right-hand sides together, each forced upon a GPU by a file of the tuner:
//! images have the bits of each right-hand side alone.
use crate::formats::{self, LinkFormat};
use crate::report::{CheckReport, Scope, larger};
use ferrite::Precision;
use ferrite::backend::tuning::cache::TuneCache;
use ferrite::backend::tuning::{CacheError, Entry, LaunchKey, Mode, Shape, Tuning};
use ferrite::backend::{Cuda, MAX_RHS_PER_LAUNCH};
use ferrite::domain::{DeviceError, Domain, Result};
use ferrite::field::host::{Fermion, HostColour, HostField, HostSpinor};
use ferrite::field::{FieldShape, FieldSpace, FullField};
use ferrite::gauge::generate;
use ferrite::lattice::Lattice;
use ferrite::operators::Operator;
use ferrite::operators::{CloverParams, EvenOdd, StaggeredOperator, StaggeredParams, TimeBoundary, WilsonParams};
use ferrite::solve::{Configuration, SolveFailure};
use gpu_kernels::multi_rhs::RhsBlocking;
use num_complex::Complex64;
use solvers::{Dots, VectorSpace};
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

/// Right-hand sides: three are a staggered propagator, twelve any.
const NRHS: [usize; 2] = [3, 12];
/// Right-hand sides whose sums are looked at: with each, blocks of threads share other numbers of them.
const SUMMED: [usize; 6] = [2, 3, 6, 8, 12, 16];
/// Odd extents in halves, and more rows than a block has.
const LATTICE: [usize; 4] = [12, 4, 6, 8];

/// Images and sums of the right-hand sides in a format.
#[derive(Clone, PartialEq)]
struct FormatImages {
    format: String,
    /// Numbers of the images under M̂, M̂† and, with sums, M̂ again.
    numbers: Vec<Vec<Complex64>>,
    /// Sums of each right-hand side: (w, M̂ ψ) and ‖M̂ ψ‖², then all that BiCGstab needs.
    sums: Vec<[f64; 11]>,
}

/// Checks on GPU 0. Writes to a folder of its own, which is removed.
pub fn check(report: &mut CheckReport) -> std::result::Result<(), SolveFailure> {
    let folder = std::env::temp_dir().join(format!("ferrite-blockings-{}", std::process::id()));
    let outcome = check_in(&folder, report);
    let _ = std::fs::remove_dir_all(&folder);
    outcome
}

fn check_in(folder: &Path, report: &mut CheckReport) -> std::result::Result<(), SolveFailure> {
    let blockings: BTreeSet<RhsBlocking> =
        gpu_kernels::instances().flat_map(|instance| instance.variants).map(|variant| variant.blocking).collect();
    for nrhs in NRHS {
        let untuned = open(Mode::Off, &folder.join("off"))?;
        let (alone, together) = (images(&untuned, nrhs, 1)?, images(&untuned, nrhs, nrhs)?);
        for &blocking in blockings.iter().filter(|blocking| nrhs.is_multiple_of(blocking.rhs as usize)) {
            let path = folder.join(format!("{nrhs}-{}-{}.json", blocking.rhs, blocking.looped));
            force(blocking, nrhs, &path)?;
            let gpu = open(Mode::Use, &path)?;
            let found = images(&gpu, nrhs, nrhs)?;
            let taken = gpu.launches().iter().filter(|launched| launched.shape.blocking == blocking).count();
            let scope = Scope { format: format!("{blocking:?}"), detail: format!("{nrhs} rhs") };
            report.holds(&scope, "blockings: a forced one is taken", taken > 0);
            for ((found, alone), together) in found.iter().zip(&alone).zip(&together) {
                let scope = Scope { format: found.format.clone(), detail: format!("{blocking:?} {nrhs} rhs") };
                report.holds(&scope, "blockings: bits of each rhs alone", found.numbers == alone.numbers);
                report.holds(&scope, "blockings: the same bits untuned", found.numbers == together.numbers);
                // Reductions are not tuned: they take the same blocking in both.
                report.holds(&scope, "blockings: the same sums", found.sums == together.sums);
            }
        }
    }
    let gpu = open(Mode::Off, &folder.join("off"))?;
    let most = SUMMED.into_iter().max().unwrap_or(1);
    let alone = images(&gpu, most, 1)?;
    for nrhs in SUMMED {
        for (found, alone) in images(&gpu, nrhs, nrhs)?.iter().zip(&alone) {
            let scope = Scope { format: found.format.clone(), detail: format!("{nrhs} rhs") };
            let off = found.sums.iter().zip(&alone.sums).map(|(found, alone)| {
                let largest = alone.iter().fold(0.0, |most: f64, x| most.max(x.abs()));
                found.iter().zip(alone).map(|(a, b)| (a - b).abs() / largest).fold(0.0, larger)
            });
            // The same numbers of sites in another order, in double precision.
            report.error(&scope, "blockings: sums of each rhs alone", off.fold(0.0, larger), 1e-13);
        }
    }
    Ok(())
}

fn open(mode: Mode, path: &Path) -> Result<Cuda> {
    Ok(Cuda::with_tuning(0, Tuning { mode, cache: Some(path.into()) })?)
}

/// Writes a tuning file by which every kernel that has this blocking is launched with it.
fn force(blocking: RhsBlocking, nrhs: usize, path: &Path) -> Result {
    let failed = |error: CacheError| DeviceError::from(ferrite::backend::BackendError::from(error));
    let devices = Cuda::devices()?;
    let key = Cuda::tune_key(&devices[0])?;
    let groups = (1..=4).rev().find(|groups| (nrhs as u32 / blocking.rhs).is_multiple_of(*groups)).unwrap_or(1);
    let shape = match blocking {
        RhsBlocking { looped: true, .. } => Shape::looped(blocking.rhs),
        _ => Shape { blocking, threads: [8, groups, 4] },
    };
    let sites = LATTICE.iter().product::<usize>() as u32 / 2;
    let entries = gpu_kernels::instances()
        .filter(|instance| instance.variants.iter().any(|v| v.blocking == blocking))
        .map(|instance| {
            let launch = LaunchKey { kernel: instance.name.into(), sites, nrhs: nrhs as u32 };
            let microseconds = BTreeMap::from([(shape, Some(1.0))]);
            (launch, Entry { shape, default: 128.into(), microseconds, measured: "today".into() })
        });
    TuneCache::add_to_file(path, &key, entries, false).map_err(failed)?;
    Ok(())
}

/// Images of random fields under all operators in all formats, `batch` right-hand sides together.
fn images(gpu: &Cuda, nrhs: usize, batch: usize) -> std::result::Result<Vec<FormatImages>, SolveFailure> {
    assert!(nrhs <= MAX_RHS_PER_LAUNCH);
    let lattice = Lattice::new(LATTICE).map_err(DeviceError::from)?;
    let domain = Domain::single(gpu.clone(), lattice)?;
    let gauge = generate::weak_field(lattice, 3, 0.3);
    let wilson = WilsonParams::from_mass(0.1, TimeBoundary::Antiperiodic);
    let clover = CloverParams::isotropic(wilson, 1.2, 1.0);
    let staggered = StaggeredParams::new(0.05, TimeBoundary::Antiperiodic);
    let configuration = Configuration::new(&domain, &gauge);
    let spinors: Vec<HostSpinor> = (0..nrhs as u64).map(|k| generate::random_source(lattice, 10 + k)).collect();
    let colours: Vec<HostColour> = (0..nrhs as u64).map(|k| generate::random_source(lattice, 50 + k)).collect();
    let mut images = Vec::new();
    let name = |what: &str, format: LinkFormat| format!("{what} {}", formats::name(format));
    for format @ (precision, storage) in formats::wilson().into_iter().filter(|(_, storage)| !storage.temporal) {
        for (operator, what) in [(Operator::from(wilson), "wilson"), (Operator::from(clover), "clover")] {
            let operator = configuration.operator(operator, precision, storage, batch)?;
            images.push(image(name(what, format), &domain, (&*operator, precision, batch), &spinors)?);
        }
    }
    for format @ (precision, storage) in formats::naive() {
        let operator = configuration.operator(staggered, precision, storage, batch)?;
        images.push(image(name("naive", format), &domain, (&*operator, precision, batch), &colours)?);
    }
    for format @ (precision, storage) in formats::improved() {
        let operator = configuration.operator(StaggeredOperator::asqtad(staggered, 0.9), precision, storage, batch)?;
        images.push(image(name("asqtad", format), &domain, (&*operator, precision, batch), &colours)?);
    }
    Ok(images)
}

fn image<F: Fermion>(
    format: String,
    domain: &Domain,
    (operator, precision, batch): (&dyn EvenOdd, Precision, usize),
    sources: &[HostField<F>],
) -> Result<FormatImages> {
    let mut image = FormatImages { format, numbers: vec![Vec::new(); 3], sums: Vec::new() };
    for sources in sources.chunks(batch) {
        let nrhs = sources.len();
        let space = FieldSpace::new(domain, FieldShape::new(F::KIND, precision, nrhs));
        let double = FieldSpace::new(domain, FieldShape::new(F::KIND, Precision::Double, nrhs));
        let mut full = FullField::zero(domain, FieldShape::new(F::KIND, Precision::Double, nrhs))?;
        full.upload(sources)?;
        let (mut x, mut w, mut out) = (space.allocate()?, space.allocate()?, space.allocate()?);
        space.convert_from(full.parity(0), &mut x)?;
        space.convert_from(full.parity(1), &mut w)?;
        let (mut dots, mut norms) = (vec![Complex64::ZERO; nrhs], vec![0.0; nrhs]);
        let mut all = vec![Dots::default(); nrhs];
        for (step, numbers) in image.numbers.iter_mut().enumerate() {
            match step {
                0 => operator.apply(&x, &mut out)?,
                1 => operator.apply_dagger(&x, &mut out)?,
                _ => operator.apply_dot(&space, &x, &mut out, &w, &mut dots, &mut norms)?,
            }
            double.convert_from(&out, full.parity_mut(0))?;
            numbers.extend(full.download::<F>()?.iter().flat_map(|field| field.numbers().to_vec()));
        }
        operator.apply_dots(&space, &x, &mut out, &w, &mut all)?;
        image.sums.extend(dots.into_iter().zip(norms).zip(all).map(|((dot, norm), all)| {
            let Dots { x_y, w_x, w_y, x_x, y_y } = all;
            [dot.re, dot.im, norm, x_y.re, x_y.im, w_x.re, w_x.im, w_y.re, w_y.im, x_x, y_y]
        }));
    }
    Ok(image)
}
