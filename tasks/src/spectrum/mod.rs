//! Hadron spectra: propagators on many configurations, their contractions, and effective masses.
mod account;
pub mod contraction;
mod correlators;
mod input;
mod kept;
pub mod one_time;
mod quarks;
mod result;
pub mod sink;
pub mod spatial;
mod summary;

use crate::batch::Needs;
use crate::checked::{Checked, any_layout};
use crate::communicator::RunCommunicator;
use crate::configured::Configured;
use crate::layout::Cut;
use crate::session::Session;
use crate::solve::Solve;
use crate::{Failure, Outcome, named, target, text};
use ferrite::field::host::{ColourVector, Spinor};
use ferrite_inputs::Input;
use ferrite_records::spectrum::SpectrumRecord;
pub use input::{SOURCES, SPECTRUM_SCHEMA, SpectrumInput, SpectrumSource};
use kept::KeptPropagator;
use std::path::{Path, PathBuf};
use std::time::Instant;
pub use summary::Summary;
use tracing::info;

/// Checks an input and the headers of its configurations for a run of `processes` processes. Returns the checked input, the solve, and the
/// number of configurations.
pub fn check(
    path: &Path,
    set: &[String],
    processes: Option<usize>,
    comm: &RunCommunicator,
    add: impl Fn(&mut Input),
) -> Outcome<(Checked, Solve, usize)> {
    let source = SpectrumSource { input: path.into(), set: set.to_vec(), ..SpectrumSource::default() };
    let (mut input, what) = (SpectrumInput::read(&source, add)?, path.display().to_string());
    let all: Vec<&Path> = input.configurations.iter().map(PathBuf::as_path).collect();
    if all.is_empty() {
        return Err(Failure::refused(format!("{what}: no configurations")));
    }
    let mut solves = quarks::check(&input, &all, &what)?;
    // Propagators are solved for one at a time, so only the quark that needs most memory counts. Propagators that stay in memory are not
    // included.
    let most = |cut: Cut, together: usize, solves: &[Solve]| -> Needs {
        let total = |needs: &Needs| needs.iter().map(|(_, bytes)| bytes).sum::<usize>();
        solves.iter().map(|solve| solve.memory(cut, together)).max_by_key(total).unwrap_or_default()
    };
    let solve = &solves[0];
    let cut = quarks::plan(solve, &input, input.device.layout.processes(processes))?;
    let device = input.device.open_silently(comm)?;
    // The search for a sufficient number of processes ignores a requested grid, but not the other options.
    input.device.layout = any_layout();
    let freely = |processes: usize| quarks::plan(solve, &input, processes);
    let checked = Checked::new(device, solve.plan.lattice, cut, freely, |cut, free| {
        input.batch.split_with_needs(free, solve.plan.sources.len(), |together| most(cut, together, &solves))
    })?;
    Ok((checked, solves.swap_remove(0), input.configurations.len()))
}

/// *Collective.* Solves and contracts for all configurations that have no line in the folder `out`. `path` is the input file. A second run
/// with the same input resumes.
///
/// # Errors
/// Whatever is found wrong before the first solve, and failures of solves; lines of configurations that are done stay.
pub fn measure(
    mut input: SpectrumInput,
    path: &Path,
    out: &Path,
    session: &Session,
) -> Outcome<(Summary, SpectrumRecord)> {
    let (comm, what) = (&session.comm, path.display().to_string());
    input.configurations = named::of_first(input.configurations, comm)?;
    let mut file = result::File::read(out, &input, comm)?;
    let mut missing: Vec<Configured> = Vec::new();
    for mut configuration in Configured::all(&input.configurations, comm)? {
        if file.has(&mut configuration, comm)? {
            info!("{}: already done", configuration.typed.display());
        } else if !configuration.is_among(missing.iter_mut(), comm)? {
            missing.push(configuration);
        }
    }
    // All headers are checked before the first solve.
    let all: Vec<&Path> = missing.iter().map(|configuration| configuration.typed.as_path()).collect();
    let mut kept = Vec::new();
    if !all.is_empty() {
        let lattice = comm.agree(quarks::check(&input, &all, &what))?[0].plan.lattice;
        file.is_on(lattice)?;
        KeptPropagator::check_all(&input, &mut missing, lattice, comm)?;
        kept = KeptPropagator::to_write(&input, &missing, lattice);
    }
    let device = input.device.open(comm)?;
    file.open(&input, &kept, comm)?;
    let read: Vec<PathBuf> =
        input.configurations.iter().map(PathBuf::as_path).chain([path]).map(PathBuf::from).collect();
    let written: Vec<PathBuf> = kept.into_iter().chain(result::files(out)).collect();
    target::claim(comm, &target::all(&read), &target::all(&written))?;
    session.listen();
    let count = missing.len();
    for (number, configuration) in missing.iter_mut().enumerate() {
        let begin = Instant::now();
        // The contents of the file are recorded before its links are read, so that the result belongs to the recorded contents.
        configuration.hold(comm)?;
        let found = if input.staggered {
            correlators::measure::<ColourVector>(&input, configuration, &what, &device, session)?
        } else {
            correlators::measure::<Spinor>(&input, configuration, &what, &device, session)?
        };
        file.add(configuration, &found, comm)?;
        let time = text::seconds(begin.elapsed().as_secs_f64());
        info!("configuration {} of {} took {time}", number + 1, count);
        if number + 1 < count && session.is_stopped(0) {
            let why = format!("stopped after {}; run the same command again to resume", configuration.typed.display());
            return Err(session.stopped(why));
        }
    }
    let summary = Summary::of(&file, &input);
    let files = result::write(out, &file, &input, |lattice| summary.picture(&input.title(), lattice), comm)?;
    let record = summary.record(out, &file, files, &device);
    Ok((summary, record))
}
