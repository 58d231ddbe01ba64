//! Propagators that are solved for, or read if they were kept.
use super::account::SolveAccount;
use super::input::{Shell, SourceKind, SpectrumInput};
use super::kept::{KeptFields, KeptPropagator};
use super::one_time::{self, OneTime};
use super::sink::{SinkOf, SinkPlace};
use super::spatial::SpatialWork;
use crate::batch::{BatchTask, Batches, Needs, RIGHT_HAND_SIDE};
use crate::communicator::RunCommunicator;
use crate::configured::Configured;
use crate::device::Device;
use crate::host_links::{HostLinks, LinksRead};
use crate::layout::{Cut, Layout};
use crate::plan::{configuration_header, reading};
use crate::progress::Watch;
use crate::session::Session;
use crate::solve::{self, ReadySolve, Solve};
use crate::{Failure, Outcome, fields, text};
use ferrite::domain::{Domain, Part};
use ferrite::field::host::{ColourVector, Fermion, HostColour, HostField, HostGauge, HostSpinor, Spinor};
use ferrite::field::{FieldShape, FullField, GaugeField};
use ferrite::gauge::ape_hyp::{ProjectedSmearing, Projection, SumsOfStaples};
use ferrite::gauge::fixing::relax::{Gauge, theta};
use ferrite::gauge::generate;
use ferrite::halo::{Exchanges, HaloField};
use ferrite::lattice::{Lattice, Section};
use ferrite::observables::spectrum::contraction_bytes;
use ferrite::observables::spectrum::sequential::ChargeLinks;
use ferrite::observables::spectrum::smearing::{GaussianSmearing, SmearingLinks};
use ferrite::observables::spectrum::sources::{corner_wall, noise_corner_wall, noise_wall, wall};
use ferrite::operators::{StaggeredOperator, StaggeredPhases, TimeBoundary};
use ferrite::solve::{Report, apply_memory, names};
use ferrite::{FermionKind, LinkStorage, Precision};
use ferrite_inputs::Input;
use ferrite_records::progress::ProgressLine;
use solvers::{SolveError, Unsolved};
use std::cell::OnceCell;
use std::path::Path;
use std::time::Instant;
use tracing::{debug, info, warn};

/// Solutions for all components of a source.
pub struct Propagator {
    /// Solutions, one right-hand side for each component, on the backend that contracts them.
    pub fields: FullField,
    /// Solutions before smearing at the sink; `None` unless sinks are smeared and three-point functions need both.
    pub unsmeared: Option<FullField>,
    /// Partition of the lattice among the processes.
    pub layout: Layout,
    /// Boundary condition of the quark in t.
    pub boundary: TimeBoundary,
    /// Staggered phases of the operator.
    pub phases: StaggeredPhases,
    /// Mean plaquette of the configuration's links.
    pub plaquette: Option<f64>,
    /// Record of the solve for the propagator.
    pub solved: SolveAccount,
}

/// Returns the partition of a solve's lattice among `processes` processes. Fails if the method or the lattice does not allow it.
pub fn plan(solve: &Solve, input: &SpectrumInput, processes: usize) -> Outcome<Cut> {
    let cut = input.device.layout.plan(processes, solve.plan.lattice, solve.plan.definition().steps())?;
    solve.possible(cut)
}

/// Checks whether the input fits one or more configurations, as far as their headers show. Returns the solve of each quark at the first
/// source position.
pub fn check(input: &SpectrumInput, configurations: &[&Path], what: &str) -> Outcome<Vec<Solve>> {
    let settings_of = |quark, configuration| input.solve_settings(quark, input.first_origin(), configuration);
    let mut settings = settings_of(0, configurations[0]);
    let read = reading(&mut settings);
    let header = |settings: &mut Input| configuration_header(settings, &read);
    // The input is checked before the sources, which would report a mistake for each component.
    let first = header(&mut settings).map(|header| header.lattice);
    first.map_or(Ok(()), |lattice| input.check(lattice))?;
    for configuration in &configurations[1..] {
        let mut its = settings_of(0, configuration);
        match header(&mut its).map(|header| header.lattice) {
            None => its.finish(what).unwrap_or_else(|mistakes| settings.missing(mistakes)),
            Some(lattice) if let Some(first) = first.filter(|first| *first != lattice) => settings.missing(format!(
                "{} is on {lattice}, but the first configuration is on {first}: measure it in another run",
                configuration.display()
            )),
            Some(_) => {}
        }
    }
    let mut solves = vec![Solve::of(&mut settings, what)?];
    for quark in 1..input.quarks.len() {
        solves.push(Solve::of(&mut settings_of(quark, configurations[0]), what)?);
    }
    Ok(solves)
}

/// Data that determine the sources of a propagator on a part of the lattice.
#[derive(Clone, Copy)]
pub struct SourceOf<'a> {
    input: &'a SpectrumInput,
    configuration: &'a Configured,
    /// Sites of the source's time slice.
    section: Section,
}

/// Type of quarks whose propagators can be computed: defines their sources.
pub trait Quark: Fermion {
    /// Title in the files of kept propagators.
    const TITLE: &'static str;
    /// Returns one component of a source before smearing.
    fn source(origin: [usize; 4], component: usize, about: &SourceOf<'_>) -> HostField<Self>;
}

impl Quark for Spinor {
    const TITLE: &'static str = "quark propagator";
    /// Returns the component `component` = 3 spin + colour of a source.
    fn source(origin: [usize; 4], component: usize, about: &SourceOf<'_>) -> HostSpinor {
        let SourceOf { input, configuration, section } = *about;
        let time = origin[3];
        let point = || {
            generate::point_source(section, origin, component / 3, component % 3)
                .unwrap_or_else(|| HostSpinor::zero(section.local))
        };
        match input.source {
            SourceKind::Wall => wall(section, time, component),
            // The noise differs from configuration to configuration.
            SourceKind::Noise => noise_wall(section, time, component, input.seed ^ configuration.hash()),
            SourceKind::Point | SourceKind::Shell => point(),
        }
    }
}

impl Quark for ColourVector {
    const TITLE: &'static str = "staggered quark propagator";
    /// Returns the colour `colour` of a source. Wall and noise sources are at one corner of the hypercubes, that of the source position.
    fn source(origin: [usize; 4], colour: usize, about: &SourceOf<'_>) -> HostColour {
        let SourceOf { input, configuration, section } = *about;
        let point = || {
            generate::point_colour_source(section, origin, colour).unwrap_or_else(|| HostColour::zero(section.local))
        };
        match input.source {
            SourceKind::Wall => corner_wall(section, origin, colour),
            SourceKind::Noise => noise_corner_wall(section, origin, colour, input.seed ^ configuration.hash()),
            SourceKind::Point | SourceKind::Shell => point(),
        }
    }
}

/// Time in seconds spent on each kind of work for a configuration.
#[derive(Clone, Copy, Default)]
pub struct Spent {
    /// Seconds for reading, checking and smearing the links.
    links: f64,
    /// Seconds for making, smearing and copying the sources.
    sources: f64,
    /// Seconds of the solves, including copies of links in all formats and a multigrid setup.
    solves: f64,
    /// Seconds for smearing at the sinks.
    sinks: f64,
    /// Time for contractions in seconds.
    pub hadrons: f64,
}

impl Spent {
    /// Describes the times for people. `all` is the total time in seconds.
    pub fn describe(&self, all: f64) -> String {
        let Spent { links, sources, solves, sinks, hadrons } = *self;
        let rest = all - links - sources - solves - sinks - hadrons;
        let [links, sources, solves, sinks, hadrons, rest] =
            [links, sources, solves, sinks, hadrons, rest].map(text::seconds);
        format!(
            "links {links}, sources {sources}, solves {solves}, smearing of sinks {sinks}, hadrons {hadrons}, the rest \
             {rest}"
        )
    }
}

/// Returns the largest number of propagators in memory at a time, including one through a sink.
fn propagators(input: &SpectrumInput) -> usize {
    let unsmeared = 1 + usize::from(input.shell_sink && input.three_point.is_some());
    let of_shifts = usize::from(!input.tastes.is_empty());
    input.quarks.len() * unsmeared + usize::from(input.three_point.is_some()) + of_shifts
}

/// Returns whether `propagators` bytes fit in the `free` memory of a device, together with the solve of any quark for half of the
/// components of its source.
fn fit_beside(solves: &[Solve], cut: Cut, propagators: usize, free: usize) -> bool {
    let bytes = |solve: &Solve| -> usize {
        let together = if solve.plan.operator.kind() == FermionKind::Wilson { 6 } else { 2 };
        solve.memory(cut, together).iter().map(|(_, bytes)| bytes).sum()
    };
    propagators + solves.iter().map(bytes).max().unwrap_or(0) <= free
}

/// Links of each quark on a configuration, as prepared for its operator; empty until they are read.
pub struct QuarkLinks(Vec<OnceCell<LinksRead>>);

impl QuarkLinks {
    /// Returns empty links for each quark of the input.
    pub fn of(input: &SpectrumInput) -> Self {
        QuarkLinks(input.quarks.iter().map(|_| OnceCell::new()).collect())
    }
}

/// Quarks on one configuration. Links are read when they are first needed, and stay on the host and on the device.
pub struct QuarksOn<'a> {
    input: &'a SpectrumInput,
    configuration: &'a mut Configured,
    what: &'a str,
    device: &'a Device,
    session: &'a Session,
    links: &'a QuarkLinks,
    /// Prepared solve of each quark on the device; `None` before it is needed.
    ready: Vec<Option<ReadySolve<'a>>>,
    /// Links on the device with which the sinks of each quark are smeared.
    smearing: Vec<Option<SmearingLinks>>,
    /// Links for the conserved charge of each quark, on the backend that contracts propagators.
    charge: Vec<Option<ChargeLinks>>,
    /// Domains of this process's part of the lattice: on the device, and on the backend that contracts propagators.
    domains: Option<[Domain; 2]>,
    /// Domain with two time slices on the device, for smearing sources.
    few: Option<Domain>,
    /// Links with APE smearing, for Gaussian smearing of sources and sinks.
    smeared: Option<HostGauge>,
    plaquette: Option<f64>,
    /// Time spent on each kind of work.
    pub spent: Spent,
}

impl<'a> QuarksOn<'a> {
    /// Prepares the quarks of a configuration, before any solve.
    pub fn new(
        input: &'a SpectrumInput,
        configuration: &'a mut Configured,
        what: &'a str,
        device: &'a Device,
        session: &'a Session,
        links: &'a QuarkLinks,
    ) -> Self {
        let (smeared, plaquette, domains, count) = (None, None, None, input.quarks.len());
        let (ready, smearing) = ((0..count).map(|_| None).collect(), (0..count).map(|_| None).collect());
        let charge = (0..count).map(|_| None).collect();
        QuarksOn {
            input,
            configuration,
            what,
            device,
            session,
            links,
            ready,
            smearing,
            charge,
            domains,
            few: None,
            smeared,
            plaquette,
            spent: Spent::default(),
        }
    }
    /// Returns the lattice of the configuration, from its header.
    ///
    /// # Errors
    /// The input does not fit it.
    pub fn lattice(&self) -> Outcome<Lattice> {
        let solves = check(self.input, &[&self.configuration.typed], self.what);
        self.session.comm.agree(solves.map(|solves| solves[0].plan.lattice))
    }
    /// *Collective.* Frees the memory on the device at the end of a configuration.
    pub fn release(self) -> Outcome {
        let QuarksOn { ready, smearing, charge, domains, few, .. } = self;
        drop((ready, smearing, charge));
        domains.iter().flatten().chain(&few).try_for_each(Domain::release)?;
        Ok(())
    }
    /// *Collective.* Returns the domains of this process's part of the lattice: on the device, and on the backend that keeps and contracts
    /// propagators. The latter is the device if the propagators [fit](fit_beside), otherwise the CPU.
    fn domains<F: Quark>(&mut self, layout: &Layout) -> Outcome<[Domain; 2]> {
        if let Some(known) = &self.domains {
            return Ok(known.clone());
        }
        let (comm, is_gpu) = (&self.session.comm, self.device.name() != "cpu");
        let solves = comm.agree(check(self.input, &[&self.configuration.typed], self.what))?;
        let there = layout.domain(self.device.backend())?;
        let propagators = contraction_bytes(F::KIND, layout.local().volume(), propagators(self.input));
        let fit = fit_beside(&solves, layout.cut(), propagators, comm.agree(self.device.memory())?.free);
        let is_too_large = comm.largest(f64::from(u8::from(!fit)))? > 0.0;
        let home = if is_gpu && is_too_large {
            let bytes = text::bytes(propagators);
            info!(
                "hadrons are computed on the CPU: {bytes} of propagators do not fit into the device memory beside a \
                 solve"
            );
            layout.domain_on_host()?
        } else {
            there.clone()
        };
        Ok(self.domains.insert([there, home]).clone())
    }
    /// *Collective.* Frees the links and ghost zones on the device. Links of the quark `but` stay, if it is given.
    fn forget_links(&mut self, but: Option<usize>) -> Outcome {
        let of_others = |quark: &usize| Some(*quark) != but;
        for quark in (0..self.ready.len()).filter(of_others) {
            self.ready[quark] = None;
            self.smearing[quark] = None;
        }
        self.domains.iter().flatten().try_for_each(Domain::release)?;
        Ok(())
    }
    /// *Collective.* Reads the links of a quark: smeared for its operator, and smeared for sources and sinks.
    fn read(&mut self, quark: usize, solve: &Solve, layout: &Layout) -> Outcome {
        let (input, plan, comm) = (self.input, &solve.plan, &self.session.comm);
        let known = &self.links.0[quark];
        if known.get().is_some() {
            return Ok(());
        }
        let begin = Instant::now();
        // Kernels are loaded while the links are read.
        let mut modules = solve.modules(self.device.backend(), layout);
        modules.extend(["contraction", "transfer", "transfer_double"].map(String::from));
        if input.shell.is_some() || !input.tastes.is_empty() {
            modules.push("staggered_double".into());
        }
        let links = self.device.while_loading(&modules, || LinksRead::of(plan, layout, comm))?;
        let HostLinks::Gauge(file) = &links.links else {
            let why = "hadrons need a gauge configuration, but only fat and long links are given: name a configuration";
            return Err(Failure::refused(why).shared());
        };
        if self.plaquette.is_none() {
            look_at_gauge(input, &file.gauge, layout, self.configuration, comm)?;
            self.plaquette = Some(file.plaquette.mean);
        }
        // Sources and sinks use the links as read; the operator uses stout links if the input requests them.
        if let (Some(shell), None) = (input.shell, &self.smeared) {
            self.smeared = Some(ape(&file.gauge, shell, self.device, layout, self.session)?);
        }
        let links = links.smeared(plan, self.device, layout, self.session)?;
        let _ = known.set(links);
        self.spent.links += begin.elapsed().as_secs_f64();
        Ok(())
    }
    /// *Collective.* Returns the propagator of a quark from a source position, smeared at the sink if requested.
    pub fn propagator<F: Quark>(&mut self, quark: usize, origin: [usize; 4]) -> Outcome<Propagator> {
        let (input, comm) = (self.input, &self.session.comm);
        let mut settings = input.solve_settings(quark, origin, &self.configuration.typed);
        let solve = comm.agree(Solve::of(&mut settings, self.what))?;
        let (plan, components) = (&solve.plan, F::COMPONENTS);
        let layout = plan.cut(&input.device.layout, comm)?;
        solve.possible(layout.cut())?;
        charge_needs_whole_time(input, &layout)?;
        let [_, home] = self.domains::<F>(&layout)?;
        // The count includes links before and after smearing, fat and long links, and propagators that are in host memory or pass through
        // it on the way from or to a file.
        let links = if plan.definition().is_improved() { 4 } else { 2 } + input.quarks.len() - 1;
        let volume = layout.local().volume();
        let kept = KeptPropagator::of(input, self.configuration, quark, origin);
        let lie_there = match home.backend().name() {
            "cpu" => contraction_bytes(F::KIND, volume, propagators(input)) / volume,
            _ if kept.is_some() => components * size_of::<F>(),
            _ => 0,
        };
        fields::require_host_memory(comm, layout.local(), lie_there + links * 576, "propagators and links")?;
        let boundary = plan.operator.boundary();
        let staggered = plan.operator.parameters::<StaggeredOperator>();
        let phases = staggered.map_or(StaggeredPhases::default(), |staggered| staggered.params.phases);
        let read = |kept: &KeptPropagator| kept.read::<F>(self.configuration, &layout, comm);
        let there = kept.as_ref().map(read).transpose()?.flatten();
        self.read(quark, &solve, &layout)?;
        let sources = self.sources::<F>(quark, origin, &layout)?;
        let description = self.description(quark, origin);
        let mut found = None;
        if let (Some(kept), Some(KeptFields { fields, solved: noted })) = (&kept, there) {
            let fields = FullField::of_host::<F>(&home, &fields)?;
            let residual = self.true_residual::<F>(quark, &solve, &layout, &sources, &fields)?;
            if residual <= largest_residual_of_kept(solve.scheme.tol) {
                kept.note_reading(residual);
                found = Some((fields, SolveAccount::of_read(noted, residual)));
            } else {
                let tol = solve.scheme.tol;
                kept.warn_of_another_solve(&format!(
                    "the propagator in the file has |b - Mx| / |b| = {residual:.3e}, requested {tol:e}"
                ));
            }
        }
        let (solutions, solved) = if let Some(found) = found {
            found
        } else {
            let (mut solutions, report, batches) = self.solved::<F>(quark, &solve, &layout, &sources, &description)?;
            let solved = SolveAccount::new(&report, &batches);
            if let Some(kept) = kept {
                let fields = solutions.download::<F>()?;
                kept.write(self.configuration, (&fields, &solved), F::TITLE, &layout, &self.session.comm)?;
            }
            // Rounding in a change of the spin basis alters the solutions. This step gives them the bits of solutions that are read from a
            // file.
            solutions.pack(&solutions.unpack()?)?;
            (solutions, solved)
        };
        let unsmeared = input.shell_sink && input.three_point.is_some();
        let unsmeared = unsmeared.then(|| solutions.rhs(0..components, &home)).transpose()?;
        let fields = if input.shell_sink { self.smear::<F>(quark, solutions, &layout)? } else { solutions };
        Ok(Propagator { fields, unsmeared, layout, boundary, phases, plaquette: self.plaquette, solved })
    }
    /// *Collective.* Returns the sources of a quark at a source position, smeared if requested.
    fn sources<F: Quark>(&mut self, quark: usize, origin: [usize; 4], layout: &Layout) -> Outcome<OneTime<F>> {
        let (begin, input) = (Instant::now(), self.input);
        let sources = layout.section.at_time(origin[3]).map(|section| {
            let about = SourceOf { input, configuration: self.configuration, section };
            let one = |component| F::source(origin, component, &about);
            (origin[3] - layout.section.origin[3], (0..F::COMPONENTS).map(one).collect())
        });
        let smears = input.source == SourceKind::Shell;
        let sources = if smears { self.smear_source(quark, sources, layout)? } else { sources };
        self.spent.sources += begin.elapsed().as_secs_f64();
        Ok(sources)
    }
    /// *Collective.* Returns the largest ‖b − M x‖ / ‖b‖ of the solutions of a quark, computed in double precision. Its links must have
    /// been read.
    fn true_residual<F: Quark>(
        &mut self,
        quark: usize,
        solve: &Solve,
        layout: &Layout,
        sources: &OneTime<F>,
        solutions: &FullField,
    ) -> Outcome<f64> {
        let begin = Instant::now();
        let [domain, home] = self.domains::<F>(layout)?;
        let whole = whole_bytes::<F>(layout, [&domain, &home]);
        let (local, grid) = (layout.local(), layout.grid());
        let needs = |together: usize| {
            let storage = LinkStorage::FULL;
            let mut needs = apply_memory(&solve.plan.operator, local, grid, together, Precision::Double, storage);
            let half = FieldShape::new(F::KIND, Precision::Double, together).bytes(local.half_volume());
            needs.push(("sources", 2 * half));
            needs.extend((whole > 0).then_some(("the propagator", whole)));
            needs
        };
        let name = format!("the true residual on {}", solve.plan.lattice);
        let batches = self.batches(quark, &name, RIGHT_HAND_SIDE, F::COMPONENTS, needs)?;
        let links = self.links.0[quark].get().expect("links are read before a propagator is checked");
        let mut own = None;
        let configuration = match &self.ready[quark] {
            Some(ready) => &ready.configuration,
            None => own.insert(links.links.on(&domain)?),
        };
        let mut residuals = Vec::new();
        for size in &batches.sizes {
            let columns = residuals.len()..residuals.len() + size;
            let source = match sources {
                Some((time, fields)) => FullField::of_time(&domain, *time, &fields[columns.clone()])?,
                None => FullField::zero(&domain, FieldShape::new(F::KIND, Precision::Double, *size))?,
            };
            let some = solutions.rhs(columns, &domain)?;
            residuals.extend(configuration.true_residuals(&source, some, &links.operator)?);
        }
        self.spent.solves += begin.elapsed().as_secs_f64();
        Ok(solvers::worst_residual(&residuals))
    }
    /// *Collective.* Returns the prepared solve of a quark on the device. Its links must have been read.
    fn ready(&mut self, quark: usize, solve: &Solve, layout: &Layout) -> Outcome<&mut ReadySolve<'a>> {
        let [domain, _] = self.domains.clone().expect("domains are there before a solve");
        if self.ready[quark].is_none() {
            let links = self.links.0[quark].get().expect("links are read before a solve");
            self.ready[quark] = Some(solve.ready(&domain, layout, links)?);
        }
        Ok(self.ready[quark].as_mut().expect("it was made just now"))
    }
    /// *Collective.* Solves for the sources of a quark. Returns the solutions on the backend that contracts propagators.
    fn solved<F: Quark>(
        &mut self,
        quark: usize,
        solve: &Solve,
        layout: &Layout,
        sources: &OneTime<F>,
        description: &str,
    ) -> Outcome<(FullField, Report, Batches)> {
        let begin = Instant::now();
        let [domain, home] = self.domains::<F>(layout)?;
        let too_heavy = || {
            Failure::failed(format!(
                "{}{description}: squares of components of the source are outside the range of double precision, \
                 because the quark is too heavy: choose a smaller mass, or smaller three-point.separations",
                self.configuration.typed.display()
            ))
        };
        let is_held = !sources.iter().flat_map(|(_, fields)| fields).any(out_of_range);
        self.session.comm.agree(is_held.then_some(()).ok_or_else(too_heavy))?;
        let whole = whole_bytes::<F>(layout, [&domain, &home]);
        // If a multigrid setup exists, the solve needs memory for iterations of multigrid.
        let has_setup = self.ready[quark].as_ref().is_some_and(|there| there.configuration.multigrid_setup().is_some());
        let needs = |together: usize| {
            let mut needs = solve.memory_with(layout.cut(), together, has_setup);
            needs.extend((together < F::COMPONENTS && whole > 0).then_some(("the propagator", whole)));
            needs
        };
        let name = format!("the solve on {}", solve.plan.lattice);
        let batches = self.batches(quark, &name, RIGHT_HAND_SIDE, F::COMPONENTS, needs)?;
        info!("{}{description}: {}", self.configuration.typed.display(), batches.describe());
        let (configuration, of) =
            (Some(self.configuration.typed.clone()), Some(description.trim_start_matches([',', ' ']).to_string()));
        let work = ProgressLine { configuration, solve: of, ..ProgressLine::of("spectrum") };
        let mut watch = Watch::new(solve.scheme.tol, work, self.session);
        let typed = self.configuration.typed.clone();
        let ready = self.ready(quark, solve, layout)?;
        let planned = ready.request.on(Some(domain.backend())).reconstruction;
        let solved = one_time::solved(sources, &batches.sizes, [&domain, &home], |source| {
            watch.next_batch(source.even.nrhs());
            ready.configuration.solve_fields(source, None, &ready.request, &mut watch)
        });
        watch.finish();
        let (solutions, report, error) = solved?;
        solve::note_storage_of(planned, &report);
        let what = format!("{}{description}", typed.display());
        finished(&what, error.as_ref(), &report, solve.scheme.tol, self.session)?;
        self.spent.solves += report.total_seconds;
        self.spent.sources += begin.elapsed().as_secs_f64() - report.total_seconds;
        Ok((solutions, report, batches))
    }
    /// *Collective.* Splits right-hand sides into batches. If memory limits them, links on the device that this quark does not need are
    /// freed.
    fn batches(
        &mut self,
        quark: usize,
        name: &str,
        noun: &str,
        count: usize,
        needs: impl Fn(usize) -> Needs,
    ) -> Outcome<Batches> {
        let task = BatchTask { device: self.device, comm: &self.session.comm, name, noun };
        let found = task.split(self.input.batch, count, &needs);
        let is_good = |found: &Outcome<Batches>| found.as_ref().is_ok_and(|found| !found.are_limited_by_memory());
        if is_good(&found) {
            return found;
        }
        self.forget_links(Some(quark))?;
        let found = task.split(self.input.batch, count, &needs);
        if is_good(&found) {
            return found;
        }
        self.forget_links(None)?;
        task.split(self.input.batch, count, &needs)
    }
    /// *Collective.* Returns the sequential propagator of a quark through a sink, `separation` time slices after the source. The sequential
    /// source is made from the propagator of the other quark of a meson, or of the same quark of a nucleon.
    pub fn sequential(
        &mut self,
        quark: usize,
        other: &Propagator,
        sink: SinkOf,
        (origin, separation): ([usize; 4], usize),
    ) -> Outcome<Propagator> {
        let (input, layout) = (self.input, &other.layout);
        let mut settings = input.solve_settings(quark, origin, &self.configuration.typed);
        let solve = self.session.comm.agree(Solve::of(&mut settings, self.what))?;
        let (begin, time) = (Instant::now(), (origin[3] + separation) % layout.lattice().size()[3]);
        let momentum = input.three_point.as_ref().map_or([0; 3], |three| three.momentum);
        let antiperiodic = other.boundary == TimeBoundary::Antiperiodic;
        let place = SinkPlace { momentum, origin, time, antiperiodic };
        let made = |section: Section| -> Outcome<_> {
            let local = time - layout.section.origin[3];
            let fields = other.fields.at_time::<Spinor>(local)?;
            Ok((local, sink.sources(section, &fields, &place)))
        };
        let sources = self.session.comm.agree(layout.section.at_time(time).map(made).transpose())?;
        let sources = if input.shell_sink { self.smear_source(quark, sources, layout)? } else { sources };
        self.spent.sources += begin.elapsed().as_secs_f64();
        let of = match sink {
            SinkOf::Meson(_) => String::new(),
            SinkOf::Nucleon(projector, flavour) => format!(", {}, current of {}", projector.name(), flavour.name()),
        };
        let description = format!(
            "{}, sequential propagator through a sink at separation {separation}{of}",
            self.description(quark, origin)
        );
        let (fields, report, batches) = self.solved::<Spinor>(quark, &solve, layout, &sources, &description)?;
        let (layout, boundary, phases) = (layout.clone(), other.boundary, other.phases);
        Ok(Propagator {
            fields,
            unsmeared: None,
            layout,
            boundary,
            phases,
            plaquette: None,
            solved: SolveAccount::new(&report, &batches),
        })
    }
    /// *Collective.* Returns D_δ G D_δ, where G is the propagator of a quark from a source position and D_δ a shift in some spatial
    /// directions. Shifts use the links with which the operator begins.
    pub fn shifted(
        &mut self,
        quark: usize,
        from: &Propagator,
        directions: [bool; 3],
        origin: [usize; 4],
    ) -> Outcome<Propagator> {
        let (input, layout) = (self.input, &from.layout);
        let mut settings = input.solve_settings(quark, origin, &self.configuration.typed);
        let solve = self.session.comm.agree(Solve::of(&mut settings, self.what))?;
        let begin = Instant::now();
        let point = |section: Section| {
            let about = SourceOf { input, configuration: self.configuration, section };
            let one = |component| ColourVector::source(origin, component, &about);
            (origin[3] - layout.section.origin[3], (0..ColourVector::COMPONENTS).map(one).collect())
        };
        let sources: OneTime<ColourVector> = layout.section.at_time(origin[3]).map(point);
        let work = SpatialWork::Shift(directions);
        let sources = self.at_source(quark, sources, layout, work)?;
        self.spent.sources += begin.elapsed().as_secs_f64();
        let description = format!("{}, {work}", self.description(quark, origin));
        let (fields, report, batches) = self.solved::<ColourVector>(quark, &solve, layout, &sources, &description)?;
        let fields = self.at_sink::<ColourVector>(quark, fields, layout, work)?;
        let (layout, boundary, phases) = (layout.clone(), from.boundary, from.phases);
        let solved = SolveAccount::new(&report, &batches);
        Ok(Propagator { fields, unsmeared: None, layout, boundary, phases, plaquette: None, solved })
    }
    /// Returns the links of a quark's operator on the backend that contracts propagators. Requires an earlier solve for this quark.
    pub fn charge_links(&mut self, quark: usize) -> Outcome<&ChargeLinks> {
        let links = &self.links.0[quark].get().expect("links are read before a solve").links;
        let (HostLinks::Gauge(file), Some([_, home])) = (links, &self.domains) else {
            unreachable!("hadrons are of configurations, and domains are there before a solve")
        };
        let known = self.charge[quark].take();
        let links = known.map_or_else(|| ChargeLinks::new(home, &file.gauge), Ok)?;
        Ok(self.charge[quark].insert(links))
    }
    /// Returns the Gaussian smearing of a quark as an operation; `None` without smearing.
    fn shell(&self, quark: usize) -> Option<SpatialWork> {
        let Shell { width, steps, momentum, .. } = self.input.shell_of(quark)?;
        Some(SpatialWork::Smearing(GaussianSmearing { width, steps, momentum }))
    }
    /// Returns the links for a spatial operation: links with APE smearing for Gaussian smearing, or those of a quark's operator for shifts.
    fn spatial_links(&self, quark: usize, work: SpatialWork) -> &HostGauge {
        let of_quark = || match &self.links.0[quark].get().expect("links are read before a solve").links {
            HostLinks::Gauge(file) => &file.gauge,
            _ => unreachable!("hadrons are of configurations"),
        };
        match work {
            SpatialWork::Smearing(_) => self.smeared.as_ref().expect("links are read before quarks are smeared"),
            SpatialWork::Shift(_) => of_quark(),
        }
    }
    /// *Collective.* Applies the Gaussian smearing of a quark to sources on one time slice; returns them unchanged without smearing.
    fn smear_source<F: Quark>(&mut self, quark: usize, sources: OneTime<F>, layout: &Layout) -> Outcome<OneTime<F>> {
        match self.shell(quark) {
            Some(work) => self.at_source(quark, sources, layout, work),
            None => Ok(sources),
        }
    }
    /// *Collective.* Smears or shifts fields on one time slice. The operation is spatial, so two time slices in each process suffice.
    fn at_source<F: Quark>(
        &mut self,
        quark: usize,
        sources: OneTime<F>,
        layout: &Layout,
        work: SpatialWork,
    ) -> Outcome<OneTime<F>> {
        if self.few.is_none() {
            self.few = Some(layout.of_times(2).domain(self.device.backend())?);
        }
        let Some(domain) = &self.few else { return Ok(sources) };
        let begin = Instant::now();
        let made = one_time::worked_on(domain, self.spatial_links(quark, work), sources, work)?;
        debug!("{work} of a source: {}", text::seconds(begin.elapsed().as_secs_f64()));
        Ok(made)
    }
    /// *Collective.* Applies the Gaussian smearing of a quark to fields on all time slices; returns them unchanged without smearing.
    fn smear<F: Quark>(&mut self, quark: usize, fields: FullField, layout: &Layout) -> Outcome<FullField> {
        match self.shell(quark) {
            Some(work) => self.at_sink::<F>(quark, fields, layout, work),
            None => Ok(fields),
        }
    }
    /// *Collective.* Smears or shifts fields on all time slices.
    fn at_sink<F: Quark>(
        &mut self,
        quark: usize,
        fields: FullField,
        layout: &Layout,
        work: SpatialWork,
    ) -> Outcome<FullField> {
        let Some([domain, home]) = self.domains.clone() else { return Ok(fields) };
        let begin = Instant::now();
        let (part, whole) = (Part::new(layout.local(), layout.grid()), whole_bytes::<F>(layout, [&domain, &home]));
        let needs = |together: usize| -> Needs {
            let mut needs = work.bytes(F::KIND, part.sites(), together).to_vec();
            let vectors = F::COMPONENTS / ColourVector::COMPONENTS * together;
            let exchanges = Exchanges::of(part).border(Precision::Double);
            needs.extend(exchanges.hops(HaloField::Colours(1), Precision::Double, &[vectors]).needs());
            needs.extend((together < F::COMPONENTS && whole > 0).then_some(("the propagator", whole)));
            needs
        };
        let batches = self.batches(quark, work.name(), "field", F::COMPONENTS, needs)?;
        if self.smearing[quark].is_none() {
            let links = self.spatial_links(quark, work);
            let on = SmearingLinks::new(&domain, links, F::KIND, Precision::Double, work.momentum())?;
            self.smearing[quark] = Some(on);
        }
        let on = self.smearing[quark].as_ref().expect("it was made just now");
        let prepared = begin.elapsed().as_secs_f64();
        let (mut made, mut done) = (None, 0);
        let mut fields = Some(fields);
        for size in &batches.sizes {
            let columns = done..done + size;
            let some = match &fields {
                Some(all) if columns.len() < F::COMPONENTS => all.rhs(columns.clone(), &domain)?,
                _ => fields.take().expect("one batch contains all").on(&domain)?,
            };
            FullField::gather_batch(&mut made, (F::COMPONENTS, columns), work.on(on, some)?, &home)?;
            done += size;
        }
        domain.backend().synchronize()?;
        let all = begin.elapsed().as_secs_f64();
        self.spent.sinks += all;
        let (time, links) = (text::seconds(all - prepared), text::seconds(prepared));
        let what = text::count(F::COMPONENTS, "field");
        debug!("{work} of {what} at all times: {time}, and {links} for links");
        Ok(made.expect("all batches were done"))
    }
    /// Returns the name of the quark and the source position, each only if there are several.
    fn description(&self, quark: usize, [x, y, z, t]: [usize; 4]) -> String {
        let mut text = String::new();
        if self.input.quarks.len() > 1 {
            text += &format!(", {}", self.input.quarks[quark].name);
        }
        if self.input.has_several_origins() {
            text += &format!(" from ({x},{y},{z},{t})");
        }
        text
    }
}

/// Returns the largest residual of a kept propagator that is accepted: twice the requested tolerance, plus the effect of rounding in the
/// file for operators with condition numbers up to 10³.
fn largest_residual_of_kept(tol: f64) -> f64 {
    2.0 * tol + 1e-13
}

/// Returns whether the squared norm of a non-zero field is outside the range of double precision.
fn out_of_range<F: Fermion>(field: &HostField<F>) -> bool {
    let norm2 = field.norm2();
    !norm2.is_finite() || (norm2 == 0.0 && field.numbers().iter().any(|z| z.re != 0.0 || z.im != 0.0))
}

/// Returns the bytes of all components of a field, if batches are put together on the device; 0 if they are put together on the CPU.
fn whole_bytes<F: Fermion>(layout: &Layout, [there, home]: [&Domain; 2]) -> usize {
    let half = FieldShape::new(F::KIND, Precision::Double, F::COMPONENTS).bytes(layout.local().half_volume());
    if there.backend().name() == home.backend().name() { 2 * half } else { 0 }
}

/// Fails if the conserved charge is requested and processes partition the lattice in t, because the charge hops in t.
fn charge_needs_whole_time(input: &SpectrumInput, layout: &Layout) -> Outcome {
    let whole = layout.local().size()[3] == layout.lattice().size()[3];
    if whole || !input.three_point.as_ref().is_some_and(|three| three.charge) {
        return Ok(());
    }
    let why = "three-point.charge: the conserved charge needs all times in each process: divide the lattice in space \
               only, with grid = [X, Y, Z, 1]";
    Err(Failure::refused(why).shared())
}

/// *Collective.* Returns links with APE smearing in space, for Gaussian smearing of quarks.
fn ape(gauge: &HostGauge, shell: Shell, device: &Device, layout: &Layout, session: &Session) -> Outcome<HostGauge> {
    if shell.ape_steps == 0 {
        return Ok(gauge.clone());
    }
    // The four staples have weight 1 each, and the link has weight `ape_weight`.
    let sums = SumsOfStaples::Ape(4.0 / (4.0 + shell.ape_weight));
    let smearing =
        ProjectedSmearing { sums, levels: shell.ape_steps, spatial: true, projection: Projection::default() };
    let domain = layout.domain(device.backend())?;
    let smeared = smearing.smeared_while(&GaugeField::upload(&domain, gauge)?, &mut || session.flow())?;
    let smeared = smeared.ok_or_else(|| session.stopped_during("smearing of links"))?.download()?;
    domain.release()?;
    Ok(smeared)
}

/// Logs the escalations of a solve, and fails unless it converged. The message begins with `what`, the configuration and the propagator.
fn finished(what: &str, error: Option<&Unsolved>, report: &Report, tol: f64, session: &Session) -> Outcome {
    solve::announce(report);
    let cancelled = matches!(error, Some(SolveError::Cancelled { .. }));
    if report.converged && error.is_none() {
        return Ok(());
    }
    let asks = |name: &str| format!("solver = \"{name}\" in [solve]");
    let advice = |error| names::advice(report, error, asks, "a larger max-iterations in [solve]");
    let why = error.map_or(String::new(), |error| format!(": {error}{}", advice(error)));
    let reached = format!("|b - Mx| / |b| = {:.3e}, requested {tol:e}", solve::worst(report));
    let why = format!("{what}: the solve did not converge{why}; {reached}");
    Err(if cancelled { session.stopped(why) } else { Failure::failed(why).shared() })
}

/// Largest deviation θ of links that count as being in Coulomb gauge. Other programs fix the gauge to 1e-6 or better.
const IN_COULOMB_GAUGE: f64 = 1e-5;

/// *Collective.* Warns of a wall source on links that are not in Coulomb gauge. Lattices that are partitioned in space are not checked,
/// because the divergence would need links of neighbouring processes.
fn look_at_gauge(
    input: &SpectrumInput,
    gauge: &HostGauge,
    layout: &Layout,
    configuration: &Configured,
    comm: &RunCommunicator,
) -> Outcome {
    if input.source != SourceKind::Wall || layout.local().size()[..3] != layout.lattice().size()[..3] {
        return Ok(());
    }
    let share = layout.local().volume() as f64 / layout.lattice().volume() as f64;
    let mut sum = [theta(gauge, Gauge::Coulomb) * share];
    comm.sum(&mut sum)?;
    if sum[0] > IN_COULOMB_GAUGE {
        warn!(
            "{}: the links are not in Coulomb gauge (theta = {:.1e}): correlators from a wall source have only the \
             signal of a sum over point sources, and additional noise; use `ferrite fix-gauge` to fix the gauge",
            configuration.typed.display(),
            sum[0]
        );
    }
    Ok(())
}
