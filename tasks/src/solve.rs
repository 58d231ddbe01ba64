//! A solve: its input, checked, and what runs it.
use crate::device::{Device, DeviceChoice};
use crate::fields::Stack;
use crate::host_links::{HostLinks, LinksRead};
use crate::layout::{Cut, Layout};
use crate::method::SolveScheme;
use crate::plan::{self, FermionPlan, PRECISIONS, RECONSTRUCTIONS, Systems, name_of};
use crate::progress::Watch;
use crate::setup_file::SetupFile;
use crate::{Failure, Outcome, target, text};
use ferrite::FermionKind;
use ferrite::LinkStorage;
use ferrite::domain::Domain;
use ferrite::field::host::{ColourVector, Fermion, HostField, Spinor};
use ferrite::halo::Needs;
use ferrite::operators::{Operator, WilsonLike};
use ferrite::solve::names;
use ferrite::solve::{Configuration, Method, Report, Request, SolveFailure, Solved, in_batches};
use ferrite_inputs::values::{Switch, Text};
use ferrite_inputs::{Given, Input};
use serde::Deserialize;
use solvers::Unsolved;
use std::path::{Path, PathBuf};
use tracing::{info, warn};

/// A solve, resolved and checked as far as that is possible without reading the links.
pub struct Solve {
    /// Operator and fields.
    pub plan: FermionPlan,
    /// The device.
    pub device: DeviceChoice,
    /// The solver.
    pub scheme: SolveScheme,
    /// Whether the best iterate is written even if it has not converged.
    pub keep_unconverged: bool,
    /// Whether times of kernels are taken.
    pub profile: bool,
    /// File of the sources.
    pub save_source: Option<PathBuf>,
    /// File of the plot of residuals.
    pub plot: Option<PathBuf>,
}

/// Keys of a solve's further output.
#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "kebab-case")]
pub(crate) struct OutputKeys {
    keep_unconverged: Given<Switch>,
    profile: Given<Switch>,
    save_source: Given<Text>,
    plot: Given<Text>,
}

impl Solve {
    /// Reads an input; lists all mistakes.
    pub fn of(input: &mut Input, what: &str) -> Outcome<Self> {
        let device = DeviceChoice::of(input);
        let plan = FermionPlan::for_solve(input);
        let kind = plan::definition(input).map_or(FermionKind::Wilson, |definition| definition.kind);
        let scheme = SolveScheme::of(input, kind, plan.as_ref().map(FermionPlan::wanted));
        if let Some(plan) = plan.as_ref().filter(|plan| scheme.is_block() && plan.is_multishift()) {
            let several = if matches!(plan.systems, Systems::Shifts(_)) { "shifts" } else { "masses" };
            let other = input.spelled("shift-solver", "sequential");
            let why =
                format!("multi-shift CG has a Krylov space for each right-hand side: remove block-cg, or give {other}");
            input.conflict("solver", several, &why);
        }
        let keys: OutputKeys = input.read("");
        let count = plan.as_ref().map_or(1, |plan| plan.sources.len());
        let components = if kind == FermionKind::Staggered { ColourVector::COMPONENTS } else { Spinor::COMPONENTS };
        let save_source = plan::output(input, &keys.save_source, Stack::of_sources(count, components));
        let plot = keys.plot.get().map(PathBuf::from);
        if let Some(Err(why)) = plot.as_deref().map(target::check_svg) {
            input.wrong(&keys.plot, why);
        }
        different_files(input);
        input.finish(what)?;
        let Some(plan) = plan else { return Err(Failure::refused("the settings are incomplete")) };
        let (keep_unconverged, profile) = (keys.keep_unconverged.is_on(), keys.profile.is_on());
        Ok(Solve { plan, device, scheme, keep_unconverged, profile, save_source, plot })
    }
    /// Returns the request of the library, with the operator on links that have been read.
    pub fn request(&self, operator: Operator, storage: LinkStorage) -> Request {
        self.scheme.request(operator, self.plan.precision, storage)
    }
    /// Returns the cut of the lattice if the method allows it.
    pub fn possible(&self, cut: Cut) -> Outcome<Cut> {
        self.scheme.check(self.plan.operator.clone(), cut).map(|()| cut)
    }
    /// Returns the peak device memory for `nrhs` right-hand sides together, with names for what takes it, as long as the links have not
    /// been read.
    pub fn memory(&self, cut: Cut, nrhs: usize) -> Needs {
        self.memory_with(cut, nrhs, false)
    }
    /// Returns the memory with multigrid from the start, if there is a setup of an earlier solve.
    pub fn memory_with(&self, cut: Cut, nrhs: usize, has_setup: bool) -> Needs {
        let mut request = self.request(self.plan.operator.clone(), self.plan.largest_storage());
        if has_setup {
            request.method = Method::MULTIGRID;
        }
        let needs = request.memory(cut.local, &cut.grid, nrhs, self.plan.systems.count().filter(|count| *count > 1));
        self.plan.with_smearing(cut, needs)
    }
    /// *Collective.* Prepares links on a device, with the multigrid setup of an earlier run.
    pub fn ready<'l>(&self, domain: &Domain, layout: &Layout, links: &'l LinksRead) -> Outcome<ReadySolve<'l>> {
        let mut request = self.request(links.operator.clone(), links.storage);
        let configuration = links.links.on(domain)?;
        let setup = match (&self.scheme.setup, links.operator.parameters::<WilsonLike>(), &links.links) {
            (Some(path), Some(&operator), HostLinks::Gauge(file)) => {
                if links.storage.temporal {
                    let by = self.plan.read.by;
                    let [setup, storage] = ["setup", "reconstruct"].map(|key| by.spelled(key, ""));
                    let why = format!("{setup} needs vectors in the gauge of the links: choose a {storage} without t");
                    return Err(Failure::refused(why).shared());
                }
                Some(SetupFile::new(path, layout, operator, &file.gauge, self.plan.read.by)?)
            }
            _ => None,
        };
        if let Some(setup) = &setup {
            setup.load(&configuration, &mut request, self.scheme.asks_for_vectors)?;
        }
        Ok(ReadySolve { configuration, request, setup })
    }
    /// *Collective.* Solves for these sources in batches.
    pub fn solve<F: Fermion>(
        &self,
        device: &Device,
        layout: &Layout,
        links: &LinksRead,
        batched: &BatchedSources<'_, F>,
        watch: &mut Watch,
    ) -> Outcome<Ended<F>> {
        let BatchedSources { sizes, sources, guess } = *batched;
        let result = {
            let domain = layout.domain(device.backend())?;
            let mut ready = self.ready(&domain, layout, links)?;
            let solved = in_batches(sizes, sources, guess, |sources, guess| {
                watch.next_batch(sources.len());
                ready.configuration.solve(sources, guess, &ready.request, watch)
            });
            ready.save_setup()?;
            drop(ready);
            if solved.is_ok() {
                domain.release()?;
            }
            solved
        };
        watch.finish();
        let ended = Ended::of(result)?;
        note_storage_of(links.storage, &ended.report);
        Ok(ended)
    }
}

/// Links of a solve on a device.
pub struct ReadySolve<'l> {
    /// The links on the device.
    pub configuration: Configuration<'l>,
    /// Request of the solve.
    pub request: Request,
    /// Until it was saved.
    setup: Option<SetupFile>,
}

impl ReadySolve<'_> {
    /// *Collective.* Writes the multigrid setup after the first solve, where that is asked for.
    pub fn save_setup(&mut self) -> Outcome {
        self.setup.take().map_or(Ok(()), |setup| setup.save(&self.configuration))
    }
}

/// Sources with the sizes of the batches in which they are solved.
pub struct BatchedSources<'a, F> {
    /// Right-hand sides of each batch.
    pub sizes: &'a [usize],
    /// All sources.
    pub sources: &'a [HostField<F>],
    /// Initial guesses; `None` for zero.
    pub guess: Option<&'a [HostField<F>]>,
}

/// Solutions, or the best iterates with the reason why there are no better ones.
pub struct Ended<F> {
    /// Solutions by right-hand side.
    pub solutions: Vec<HostField<F>>,
    /// Report of the solver.
    pub report: Report,
    /// Why the solver gave up.
    pub error: Option<Unsolved>,
}

impl<F: Fermion> Ended<F> {
    /// Returns the end of a solve that began.
    pub fn of(result: Solved<F>) -> Outcome<Self> {
        match result {
            Ok((solutions, report)) => Ok(Ended { solutions, report, error: None }),
            Err(SolveFailure::Unfinished { error, solutions, report }) => {
                Ok(Ended { solutions, report: *report, error: Some(error) })
            }
            Err(failure) => Err(failure.into()),
        }
    }
}

/// Notes that links are not stored as planned.
pub fn note_storage(planned: LinkStorage, used: LinkStorage) {
    if planned != used {
        let [planned, used] = [planned, used].map(|format| name_of(&RECONSTRUCTIONS, format));
        info!("some links cannot be reconstructed from {planned} reals: {used} are stored");
    }
}

/// Notes another storage of links after a solve, unless an escalation has reported it.
pub fn note_storage_of(planned: LinkStorage, report: &Report) {
    if report.escalations.is_empty() {
        note_storage(planned, report.reconstruction);
    }
}

/// Notes output files that are the same.
fn different_files(input: &mut Input) {
    let outputs = ["output", "save-source", "plot", "setup"];
    for (i, first) in outputs.iter().enumerate() {
        for second in &outputs[i + 1..] {
            if let (Some(a), Some(b)) = (input.get(first), input.get(second))
                && target::place(Path::new(a.text())) == target::place(Path::new(b.text()))
            {
                input.conflict(second, first, "these need different files");
            }
        }
    }
}

/// Returns a note on a solver that gave up although its solution is one.
pub fn good_enough(why: &Unsolved) -> String {
    format!("the solver stopped early, but the true residual in double precision is within the tolerance: {why}")
}

/// Warns of precision escalations, and notes that a solver gave up whose solution is good enough.
pub fn announce(report: &Report) {
    for escalation in &report.escalations {
        warn!(
            "after {}: {}; continued with {} in {} precision, recon {}",
            text::count(escalation.iterations, "iteration"),
            escalation.reason,
            name_of(&PRECISIONS, escalation.precision),
            name_of(&PRECISIONS, escalation.outer),
            name_of(&RECONSTRUCTIONS, escalation.reconstruction)
        );
    }
    for change in &report.method_changes {
        let iterations = text::count(change.iterations, "iteration");
        info!("after {iterations} {} continued: {}", change.method.name, change.reason);
    }
    if let Some(why) = &report.gave_up {
        info!("{}", good_enough(why));
    }
}

/// Returns the solvers that a failed solve tried and one that may help, for the end of a message.
pub fn advice(report: &Report, error: &Unsolved) -> String {
    names::advice(report, error, |name| format!("--solver {name}"), "a larger --max-iterations")
}

/// Returns the largest true residual, NaN if there is one.
pub fn worst(report: &Report) -> f64 {
    solvers::worst_residual(&report.true_residual)
}
