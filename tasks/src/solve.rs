//! Solve with its checked input, and its run.
use crate::ahead;
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
use ferrite::backend::Backend;
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

/// Solve whose input is resolved and checked as far as possible without reading the links.
pub struct Solve {
    /// Operator, links, sources and formats.
    pub plan: FermionPlan,
    /// Choice of the device.
    pub device: DeviceChoice,
    /// Settings of the solver.
    pub scheme: SolveScheme,
    /// Whether the best iterate is written even if it has not converged.
    pub keep_unconverged: bool,
    /// Whether the kernels are timed.
    pub profile: bool,
    /// File to which the sources are written; `None` without `--save-source`.
    pub save_source: Option<PathBuf>,
    /// File of the plot of residuals; `None` without `--plot`.
    pub plot: Option<PathBuf>,
}

/// Keys of the output of a solve besides the solutions.
#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "kebab-case")]
pub(crate) struct OutputKeys {
    keep_unconverged: Given<Switch>,
    profile: Given<Switch>,
    save_source: Given<Text>,
    plot: Given<Text>,
}

impl Solve {
    /// Converts an input to a solve. Fails with a list of all mistakes; `what` names the input in the message.
    pub fn of(input: &mut Input, what: &str) -> Outcome<Self> {
        let device = DeviceChoice::of(input);
        let plan = FermionPlan::for_solve(input);
        let kind = plan::definition(input).map_or(FermionKind::Wilson, |definition| definition.kind);
        let scheme = SolveScheme::of(input, kind, plan.as_ref().map(FermionPlan::wanted));
        if let Some(plan) = plan.as_ref().filter(|plan| scheme.is_block() && plan.is_multishift()) {
            let several = if matches!(plan.systems, Systems::Shifts(_)) { "shifts" } else { "masses" };
            let [block, other] =
                [("solver", "block-cg"), ("shift-solver", "sequential")].map(|(key, value)| input.spelled(key, value));
            let why = format!(
                "multi-shift CG has a separate Krylov space for each right-hand side and cannot be combined with \
                 block-cg: remove {block}, or give {other}"
            );
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
        let Some(plan) = plan else {
            return Err(Failure::refused(
                "the settings of the solve are incomplete: `ferrite solve --help` lists the flags",
            ));
        };
        let (keep_unconverged, profile) = (keys.keep_unconverged.is_on(), keys.profile.is_on());
        Ok(Solve { plan, device, scheme, keep_unconverged, profile, save_source, plot })
    }
    /// Returns the request that the library receives. `operator` is the operator on links that have been read, and `storage` their storage.
    pub fn request(&self, operator: Operator, storage: LinkStorage) -> Request {
        Request { open: self.plan.open, ..self.scheme.request(operator, self.plan.precision, storage) }
    }
    /// Returns the modules of kernels that the solve is known to need on a device.
    pub fn modules(&self, backend: &dyn Backend, layout: &Layout) -> Vec<String> {
        let storage = self.plan.operator.storage(self.plan.reconstruction.unwrap_or_default());
        let Request { precision, reconstruction, .. } =
            self.request(self.plan.operator.clone(), storage).on(Some(backend));
        ahead::modules(self.plan.definition(), precision, Some(reconstruction), layout.grid().size() > 1)
    }
    /// Returns the partition `cut`. Fails if the method does not support it.
    pub fn possible(&self, cut: Cut) -> Outcome<Cut> {
        self.scheme.check(self.plan.operator.clone(), cut).map(|()| cut)
    }
    /// Returns the peak device memory, by name, of a solve for `nrhs` right-hand sides at a time. The links need not have been read.
    pub fn memory(&self, cut: Cut, nrhs: usize) -> Needs {
        self.memory_with(cut, nrhs, false)
    }
    /// Returns the peak device memory as [`memory`](Self::memory) does. If `has_setup` is true, multigrid is the method and its setup
    /// exists already.
    pub fn memory_with(&self, cut: Cut, nrhs: usize, has_setup: bool) -> Needs {
        let mut request = self.request(self.plan.operator.clone(), self.plan.largest_storage());
        if has_setup {
            request.method = Method::MULTIGRID;
        }
        let needs = request.memory(cut.local, &cut.grid, nrhs, self.plan.systems.count().filter(|count| *count > 1));
        self.plan.with_smearing(cut, needs)
    }
    /// *Collective.* Prepares the links on a device, and reads the multigrid setup of an earlier run if there is one.
    pub fn ready<'l>(&self, domain: &Domain, layout: &Layout, links: &'l LinksRead) -> Outcome<ReadySolve<'l>> {
        let mut request = self.request(links.operator.clone(), links.storage);
        let configuration = links.links.on(domain)?;
        let setup = match (&self.scheme.setup, links.operator.parameters::<WilsonLike>(), &links.links) {
            (Some(path), Some(&operator), HostLinks::Gauge(file)) => {
                if links.storage.temporal {
                    let by = self.plan.read.by;
                    let setup = by.spelled("setup", "");
                    let storage = by.spelled("reconstruct", name_of(&RECONSTRUCTIONS, links.storage));
                    let why = format!(
                        "{setup} stores near-null vectors in the gauge of the configuration, but {storage} selects \
                         temporal gauge: choose 18, 12 or 8"
                    );
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
    /// *Collective.* Solves for the sources `sources` in batches.
    pub fn solve<F: Fermion>(
        &self,
        device: &Device,
        layout: &Layout,
        links: &LinksRead,
        batched: &BatchedSources<'_, F>,
        watch: &mut Watch,
    ) -> Outcome<Ended<F>> {
        let BatchedSources { sizes, sources, guess } = *batched;
        let (result, planned) = {
            let domain = layout.domain(device.backend())?;
            let mut ready = self.ready(&domain, layout, links)?;
            let planned = ready.request.on(Some(device.backend())).reconstruction;
            let solved = in_batches(sizes, sources, guess, |sources, guess| {
                watch.next_batch(sources.len());
                ready.configuration.solve(sources, guess, &ready.request, watch)
            });
            ready.save_setup()?;
            drop(ready);
            if solved.is_ok() {
                domain.release()?;
            }
            (solved, planned)
        };
        watch.finish();
        let ended = Ended::of(result)?;
        note_storage_of(planned, &ended.report);
        Ok(ended)
    }
}

/// Solve that is ready to run: its links on a device, and its request.
pub struct ReadySolve<'l> {
    /// Links on the device, in every format used so far.
    pub configuration: Configuration<'l>,
    /// Request of the solve.
    pub request: Request,
    /// File of the multigrid setup, until the setup is saved.
    setup: Option<SetupFile>,
}

impl ReadySolve<'_> {
    /// *Collective.* Writes the multigrid setup after the first solve if `--setup` names a new file.
    pub fn save_setup(&mut self) -> Outcome {
        self.setup.take().map_or(Ok(()), |setup| setup.save(&self.configuration))
    }
}

/// Sources with the sizes of the batches in which they are solved.
pub struct BatchedSources<'a, F> {
    /// Number of right-hand sides in each batch.
    pub sizes: &'a [usize],
    /// Sources of all batches.
    pub sources: &'a [HostField<F>],
    /// Initial guesses; `None` for zero.
    pub guess: Option<&'a [HostField<F>]>,
}

/// Solutions, or the best iterates and the reason why the solver gave up.
pub struct Ended<F> {
    /// Solution or best iterate of each right-hand side.
    pub solutions: Vec<HostField<F>>,
    /// Report of the solver.
    pub report: Report,
    /// Reason why the solver gave up; `None` if it did not.
    pub error: Option<Unsolved>,
}

impl<F: Fermion> Ended<F> {
    /// Converts the result of a solve. Returns the best iterates if the solver gave up, and a failure if it could not begin.
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

/// Logs that links are not stored as planned. A solve may choose between 16, 21 and more bits, which is not logged.
pub fn note_storage(planned: LinkStorage, used: LinkStorage) {
    if (LinkStorage { half: used.half, fine: used.fine, ..planned }) != used {
        let [planned, used] = [planned, used].map(|format| name_of(&RECONSTRUCTIONS, format));
        info!("some links cannot be reconstructed with recon {planned}: recon {used} is used");
    }
}

/// Logs after a solve that links were not stored as planned, unless a precision escalation has reported the change.
pub fn note_storage_of(planned: LinkStorage, report: &Report) {
    if report.escalations.is_empty() {
        note_storage(planned, report.reconstruction);
    }
}

/// Adds output keys that name the same file to the mistakes of the input.
fn different_files(input: &mut Input) {
    let outputs = ["output", "save-source", "plot", "setup"];
    for (i, first) in outputs.iter().enumerate() {
        for second in &outputs[i + 1..] {
            if let (Some(a), Some(b)) = (input.get(first), input.get(second))
                && target::place(Path::new(a.text())) == target::place(Path::new(b.text()))
            {
                input.conflict(second, first, "both name the same file: choose different files");
            }
        }
    }
}

/// Returns a note on a solver that gave up although its true residual is within the tolerance.
pub fn good_enough(why: &Unsolved) -> String {
    format!("the solver stopped early, but the true residual in double precision is within the tolerance: {why}")
}

/// Warns of precision escalations. Logs changes of the method, and a solver that gave up although its solution satisfies the tolerance.
pub fn announce(report: &Report) {
    for escalation in &report.escalations {
        warn!(
            "after {}: {}; the solve continues in {} precision, with the solution in {} and recon {}",
            text::count(escalation.iterations, "iteration"),
            escalation.reason,
            name_of(&PRECISIONS, escalation.precision),
            name_of(&PRECISIONS, escalation.outer),
            name_of(&RECONSTRUCTIONS, escalation.reconstruction)
        );
    }
    for change in &report.method_changes {
        let how = match change.iterations {
            0 => "the solve begins".into(),
            n => format!("after {}, the solve continues", text::count(n, "iteration")),
        };
        info!("{how} with {}; reason: {}", change.method.name, change.reason);
    }
    if let Some(why) = &report.gave_up {
        info!("{}", good_enough(why));
    }
}

/// Returns the end of a message on a failed solve: the solvers that were tried and one that may help.
pub fn advice(report: &Report, error: &Unsolved) -> String {
    names::advice(report, error, |name| format!("--solver {name}"), "a larger --max-iterations")
}

/// Returns the largest true residual of all right-hand sides; NaN if any of them is NaN.
pub fn worst(report: &Report) -> f64 {
    solvers::worst_residual(&report.true_residual)
}
