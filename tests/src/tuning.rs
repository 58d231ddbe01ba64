//! Tuning on a GPU: a search finds block sizes, later runs take them, and results have the same bits with any.
use crate::report::{CheckReport, Scope};
use ferrite::FermionKind;
use ferrite::backend::tuning::cache::TuneCache;
use ferrite::backend::tuning::{CacheError, Entry, Mode, Shape, Tuning};
use ferrite::backend::{BackendError, Cuda, Launched};
use ferrite::domain::{DeviceError, Domain};
use ferrite::field::host::HostSpinor;
use ferrite::gauge::generate;
use ferrite::lattice::Lattice;
use ferrite::operators::{CLOVER, CloverParams, TimeBoundary, WILSON, WilsonParams};
use ferrite::solve::{Configuration, Request, SolveFailure};
use ferrite::tune::{Operations, launch_all};
use ferrite::workload::Options;
use ferrite::{LinkStorage, Precision};
use std::collections::BTreeMap;
use std::path::Path;

fn failed(error: CacheError) -> DeviceError {
    BackendError::from(error).into()
}
fn open(mode: Mode, path: &Path) -> Result<Cuda, SolveFailure> {
    Ok(Cuda::with_tuning(0, Tuning { mode, cache: Some(path.into()) }).map_err(DeviceError::from)?)
}

/// Solutions and iterations of a Wilson-clover solve, and the launches it made.
fn solve(gpu: &Cuda, lattice: Lattice) -> Result<(Vec<HostSpinor>, usize, Vec<Launched>), SolveFailure> {
    let domain = Domain::single(gpu.clone(), lattice)?;
    let wilson = WilsonParams::from_mass(0.1, TimeBoundary::Antiperiodic);
    let request = Request {
        precision: Precision::Half,
        reconstruction: LinkStorage::of(12),
        ..Request::new(CloverParams::isotropic(wilson, 1.0, 1.0))
    };
    let source = generate::random_source(lattice, 3);
    let gauge = generate::weak_field(lattice, 2, 0.1);
    let (solutions, report) = Configuration::new(&domain, &gauge).solve(&[source], None, &request, &mut ())?;
    Ok((solutions, report.info.iterations, gpu.launches()))
}

/// Checks on GPU 0. Writes to a folder of its own, which is removed.
pub fn check(report: &mut CheckReport) -> Result<(), SolveFailure> {
    let folder = std::env::temp_dir().join(format!("ferrite-tuning-{}", std::process::id()));
    let outcome = check_in(&folder, report);
    let _ = std::fs::remove_dir_all(&folder);
    outcome
}

fn check_in(folder: &Path, report: &mut CheckReport) -> Result<(), SolveFailure> {
    let lattice = Lattice::new([8, 8, 8, 8]).map_err(DeviceError::from)?;
    let scope = Scope { format: "half recon-12".into(), detail: lattice.to_string() };
    let (solutions, iterations, launches) = solve(&open(Mode::Off, &folder.join("off"))?, lattice)?;
    report.holds(&scope, "tuning: off launches with the default", launches.iter().all(|l| l.shape == 128.into()));
    report.holds(&scope, "tuning: off writes nothing", !folder.exists());

    // Block sizes that nobody would choose.
    let devices = Cuda::devices().map_err(DeviceError::from)?;
    let key = Cuda::tune_key(&devices[0]).map_err(DeviceError::from)?;
    for block in [32, 96, 224] {
        let path = folder.join(format!("{block}.json"));
        let shape = Shape::from(block);
        let microseconds = BTreeMap::from([(shape, Some(1.0))]);
        let entry = Entry { shape, default: 128.into(), microseconds, measured: "today".into() };
        let entries = launches.iter().map(|l| (l.launch.clone(), entry.clone()));
        TuneCache::add_to_file(&path, &key, entries, false).map_err(failed)?;
        let gpu = open(Mode::Use, &path)?;
        let (tuned_solutions, tuned_iterations, tuned_launches) = solve(&gpu, lattice)?;
        // Kernels of the preparation keep the default.
        let taken = tuned_launches.iter().filter(|l| l.shape == shape).count();
        report.holds(&scope, "tuning: block sizes are taken", taken > 0 && taken == gpu.tuner().report().len());
        let same = tuned_solutions == solutions && tuned_iterations == iterations;
        report.holds(&scope, "tuning: the same bits with any block size", same);
    }

    let path = folder.join("search.json");
    let options = Options {
        lattice,
        precisions: vec![Precision::Double, Precision::Half],
        reconstructions: vec![LinkStorage::FULL, LinkStorage::of(12)],
        nrhs: 1,
    };
    for (first, name) in [(true, "tuning: a search measures"), (false, "tuning: and measures nothing again")] {
        let gpu = open(Mode::Search { retune: false }, &path)?;
        for operations in [
            Operations::Operator(&WILSON),
            Operations::Operator(&CLOVER),
            Operations::LinearAlgebra(FermionKind::Wilson),
        ] {
            launch_all(&gpu, operations, &options)?;
        }
        let tuned = gpu.tuner().report();
        let whole = tuned.iter().all(|t| {
            t.fresh == first
                && t.entry.shape.block() % 32 == 0
                && t.entry.microseconds.len() > 4
                && t.entry.gain() >= Some(1.0)
        });
        let saved = gpu.tuner().save().map_err(failed)?;
        report.holds(&scope, name, whole && !tuned.is_empty() && saved == if first { tuned.len() } else { 0 });
    }
    // All that the solve launches in its loops was found by the search.
    let gpu = open(Mode::Use, &path)?;
    let same = solve(&gpu, lattice)?.0 == solutions;
    report.holds(&scope, "tuning: the same bits after a search", same && gpu.tuner().problem().is_none());
    let known: Vec<_> = gpu.tuner().report().into_iter().map(|t| t.launch).collect();
    let hot = |name: &str| gpu_kernels::instances().any(|instance| instance.name == name && instance.hot);
    let all = launches.iter().filter(|l| hot(&l.launch.kernel)).all(|l| known.contains(&l.launch));
    report.holds(&scope, "tuning: a search covers what a solve launches", all);
    Ok(())
}
