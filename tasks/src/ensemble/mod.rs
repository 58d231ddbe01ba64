//! Ensembles: trajectories of hybrid Monte Carlo from an input, with a folder from which they are resumed.
pub mod chain;
mod course;
mod folder;
pub mod forces;
pub mod input;
mod needs;
mod precision;
pub(crate) mod quarks;
mod record;
mod replay;
mod resume;
mod settings;
mod state;
mod table;
pub mod trial;

use crate::communicator::RunCommunicator;
use crate::device::Device;
use crate::fields::Reading;
use crate::layout::Layout;
use crate::session::Session;
use crate::{Failure, Outcome, fields, target};
use course::EnsembleRun;
use ferrite::field::host::HostGauge;
use ferrite::files::{FilePrecision, ReadOptions};
use ferrite::gauge::generate;
pub use folder::Begin;
use folder::{ChainFields, FoundRun, RunFolder};
pub use input::quark_operators;
use input::{EnsembleInput, StartLinks};
pub use needs::{expect_fit, plan};
pub(crate) use quarks::failed;
pub use quarks::{EnsembleError, EnsembleQuarks, energies};
pub use record::{MeasuredTrajectory, summary};
pub use replay::Replay;
pub use settings::start;
use std::path::Path;
use std::time::Instant;
use tracing::info;

/// Run of an ensemble to start or to resume: input, partition, device and folder.
pub struct EnsembleJob<'a> {
    /// Input of the run.
    pub input: &'a EnsembleInput,
    /// Partition of the lattice among the processes.
    pub layout: &'a Layout,
    /// Device that computes the run.
    pub device: &'a Device,
    /// Folder of the run.
    pub out: &'a Path,
    /// Start of the run: new, or resumed after a trajectory.
    pub from: Begin,
    /// Maximum run time in hours; `None` without a limit.
    pub max_hours: Option<f64>,
}

/// Result of a run: its trajectories, and whether the run was interrupted.
pub struct RunEnd {
    /// Number of the last trajectory before this start of the program; 0 for a new run.
    pub first: u32,
    /// Number of the last trajectory.
    pub last: u32,
    /// Number of accepted trajectories since the run began.
    pub accepted: u32,
    /// Whether the run was interrupted before its last trajectory.
    pub interrupted: bool,
    /// Results of the trajectories that were generated since this start of the program.
    pub records: Vec<MeasuredTrajectory>,
}

/// *Collective.* Starts or resumes a run, and generates the trajectories that its folder does not have yet.
pub fn make(job: &EnsembleJob, replay: Option<Replay>, session: &Session) -> Outcome<RunEnd> {
    let EnsembleJob { input, layout, device, out, from, max_hours } = *job;
    let (comm, begin) = (&session.comm, Instant::now());
    if let (Some(replay), true) = (&replay, input.has_wilson_like()) {
        let why = format!(
            "--replay {}: files of noise exist for staggered quarks only, but the input has Wilson-like quarks: \
             remove --replay",
            replay.folder()
        );
        return Err(Failure::refused(why).shared());
    }
    let precision = if input.single_links { FilePrecision::Single } else { FilePrecision::Double };
    let find = |from| RunFolder::find(out, from, precision, layout, comm);
    let found = match from {
        Begin::New => None,
        Begin::Last => Some(find(None)?),
        Begin::From(trajectory) => Some(find(Some(trajectory))?),
    };
    let split_before = found.as_ref().map_or(&[][..], |found| &found.saved.state.batches);
    needs::expect_fit(input, layout.cut())?;
    let batches = needs::batches(input, split_before, layout, device, comm)?;
    let names = [device.name().to_string(), device.describe()];
    let mut settings = settings::settings(input, &names, layout, &batches);
    if let Some(replay) = &replay {
        // Only a replayed run records the folder, so that the settings of other runs equal those that earlier versions recorded.
        settings.replay = Some(replay.folder());
    }
    let (folder, state, fields) = if let Some(FoundRun { mut folder, mut saved, fields, lines }) = found {
        comm.agree(resume::check(&mut saved.state, input, out, &lines, &mut settings, comm))?;
        match from {
            Begin::From(_) => folder.go_back(&saved, &fields, layout, comm)?,
            _ => folder.continue_from(&saved, comm)?,
        }
        let state = saved.state;
        info!("resuming after trajectory {}", state.trajectory);
        let (trajectory, accepted) = (state.trajectory, state.accepted);
        if trajectory >= input.trajectories {
            return Ok(RunEnd {
                first: trajectory,
                last: trajectory,
                accepted,
                interrupted: false,
                records: Vec::new(),
            });
        }
        if let Some(replay) = &replay {
            comm.agree(replay.has(trajectory + 1, input))?;
        }
        (folder, Some(state), fields)
    } else {
        if let Some(replay) = &replay {
            comm.agree(replay.has(1, input))?;
        }
        if let StartLinks::File(start) = &input.start {
            // The links may be in the folder of the run, under a name that the run would overwrite.
            let name = std::fs::canonicalize(start).ok().and_then(|start| start.file_name().map(|name| out.join(name)));
            let is_folder = out.is_dir() && name.as_ref().is_some_and(|name| RunFolder::is_own(name));
            target::claim(comm, &[start], &target::all(name.iter().filter(|_| is_folder)))?;
        }
        let gauge = first_links(input, layout, session)?;
        (RunFolder::create(out, precision, comm)?, None, ChainFields { gauge, momenta: None })
    };
    session.listen();
    let run = EnsembleRun { input, layout, session, settings, begin, max_hours, replay, batches };
    run.make(device.backend(), folder, state, &fields)
}

/// *Collective.* Returns the links from which a run starts.
///
/// # Errors
/// A file that cannot be read or is on another lattice.
pub fn first_links(input: &EnsembleInput, layout: &Layout, session: &Session) -> Outcome<HostGauge> {
    let comm = &session.comm;
    fields::require_host_memory(comm, layout.local(), 3 * 576, "the links")?;
    Ok(match &input.start {
        StartLinks::Cold => HostGauge::unit(layout.local()),
        StartLinks::Hot => generate::random(layout.section, input.plan.seed),
        StartLinks::File(path) => {
            expect_start(input, comm)?;
            fields::read_gauge(path, &of_start(), layout, comm)?.gauge
        }
    })
}

/// Returns the options for reading a file of links from which a run starts.
fn of_start() -> Reading {
    Reading { options: ReadOptions { reunitarise: true, ..Default::default() }, ..Default::default() }
}

/// *Collective.* Fails if the file of links from which a run starts cannot be read, or if its header states a lattice other than the
/// input's.
pub fn expect_start(input: &EnsembleInput, comm: &RunCommunicator) -> Outcome {
    let StartLinks::File(path) = &input.start else { return Ok(()) };
    let refused = |why: String| Err(Failure::refused(format!("{} {why}", path.display())).shared());
    let (lattice, numbers) = fields::shape_of(path, &of_start(), comm)?;
    if numbers != LINKS {
        return refused(format!(
            "holds {numbers} complex numbers per site, but a gauge field has {LINKS}: name a file of links"
        ));
    }
    if lattice != input.lattice {
        let (own, size) = (input.lattice, lattice.size());
        return refused(format!(
            "has links on {lattice}, but the input has {own}: name other links, or give lattice = {size:?}"
        ));
    }
    Ok(())
}

/// Number of complex numbers per site in the four links.
const LINKS: usize = 36;
