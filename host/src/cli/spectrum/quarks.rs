//! Propagators: solved, or read where they are kept.
use super::super::batch::{BatchTask, Batches, Needs, RIGHT_HAND_SIDE};
use super::super::communicator::RunCommunicator;
use super::super::configured::Configured;
use super::super::device::Device;
use super::super::host_links::{HostLinks, LinksRead};
use super::super::layout::{Cut, Layout};
use super::super::plan::{gauge_header, reading};
use super::super::progress::Watch;
use super::super::solve::{self, BatchedSources, Solve};
use super::super::{Code, Context, Failure, Outcome, fields, interrupt, text};
use super::input::{Shell, SourceKind, SpectrumInput};
use super::kept::KeptPropagator;
use crate::cli::config::Settings;
use ferrite::Precision;
use ferrite::domain::{Domain, Part};
use ferrite::field::GaugeField;
use ferrite::field::host::{ColourVector, Fermion, HostColour, HostField, HostGauge, HostSpinor, Spinor};
use ferrite::gauge::ape_hyp::{ProjectedSmearing, SumsOfStaples};
use ferrite::gauge::fixing::relax::{Gauge, theta};
use ferrite::gauge::generate;
use ferrite::halo::{Exchanges, HaloField};
use ferrite::lattice::{Lattice, Section};
use ferrite::observables::spectrum::contraction_bytes;
use ferrite::observables::spectrum::gamma::Gamma;
use ferrite::observables::spectrum::sequential::sequential_source;
use ferrite::observables::spectrum::sequential_nucleon::{
    Flavour, NucleonSink, SpinProjector, sequential_nucleon_source,
};
use ferrite::observables::spectrum::smearing::{GaussianSmearing, SmearingLinks};
use ferrite::observables::spectrum::sources::{corner_wall, noise_corner_wall, noise_wall, wall};
use ferrite::operators::{Operator, StaggeredPhases, TimeBoundary};
use ferrite::solve::Report;
use rayon::prelude::*;
use serde_json::json;
use solvers::SolveError;
use std::path::Path;
use std::time::Instant;
use tracing::{debug, info, warn};

/// The solutions for all components of a source.
pub struct Propagator<T> {
    /// One for each component.
    pub fields: Vec<HostField<T>>,
    /// The same before they are smeared at the sink, where they are and currents need them.
    pub unsmeared: Option<Vec<HostField<T>>>,
    /// How the lattice is cut.
    pub layout: Layout,
    /// Boundary condition in t.
    pub boundary: TimeBoundary,
    /// Signs of hops of staggered quarks.
    pub phases: StaggeredPhases,
    /// Mean plaquette of the links; `None` where they were not read.
    pub plaquette: Option<f64>,
    /// What the solver said, and how the right-hand sides were split; `None` where the fields were read.
    pub solved: Option<(Report, Batches)>,
}

/// What a propagator through a sink is of.
#[derive(Clone, Copy)]
pub enum SinkOf {
    /// A meson, with its Γ.
    Meson(Gamma),
    /// The nucleon, with a current of a flavour.
    Nucleon(SpinProjector, Flavour),
}

impl SinkOf {
    /// The source's Γ of the meson as whose correlator the three-point function is made.
    pub fn source(self) -> Gamma {
        match self {
            SinkOf::Meson(gamma) => gamma,
            SinkOf::Nucleon(..) => Gamma::five(),
        }
    }
}

/// How a run of `processes` cuts the lattice of a solve, if it may be cut so.
pub fn plan(solve: &Solve, input: &SpectrumInput, processes: usize) -> Outcome<Cut> {
    let cut = input.device.layout.plan(processes, solve.plan.lattice, solve.plan.definition().steps())?;
    solve.possible(cut)
}

/// Whether the input fits configurations, of which there is one at least, as far as their headers tell; the solve of each
/// quark, at the first origin.
pub fn check(input: &SpectrumInput, configurations: &[&Path], what: &str) -> Outcome<Vec<Solve>> {
    let settings_of = |quark, configuration| input.solve_settings(quark, input.first_origin(), configuration);
    let mut settings = settings_of(0, configurations[0]);
    let read = reading(&mut settings);
    let header = |settings: &mut Settings| gauge_header(settings, "gauge", &read);
    // Before the sources, which would say so for each component.
    let first = header(&mut settings).map(|header| header.lattice);
    first.map_or(Ok(()), |lattice| input.check(lattice))?;
    for configuration in &configurations[1..] {
        let mut its = settings_of(0, configuration);
        match header(&mut its).map(|header| header.lattice) {
            None => its.finish(what).unwrap_or_else(|failure| settings.missing(failure.message)),
            Some(lattice) if first.is_some_and(|first| first != lattice) => {
                settings.missing(format!("{} is on {lattice}, others are on another lattice", configuration.display()))
            }
            Some(_) => {}
        }
    }
    let mut solves = vec![Solve::from_settings(&mut settings, what)?];
    for quark in 1..input.quarks.len() {
        solves.push(Solve::from_settings(&mut settings_of(quark, configurations[0]), what)?);
    }
    Ok(solves)
}

/// What sources are made of.
#[derive(Clone, Copy)]
pub struct SourceOf<'a> {
    input: &'a SpectrumInput,
    configuration: &'a Configured,
    section: Section,
}

/// What quarks of a kind take beside a solve: their sources.
pub trait Quark: Fermion {
    /// What files of propagators are called.
    const TITLE: &'static str;
    /// A component of a source, before it is smeared.
    fn source(origin: [usize; 4], component: usize, about: &SourceOf<'_>) -> HostField<Self>;
}

impl Quark for Spinor {
    const TITLE: &'static str = "quark propagator";
    /// That with spin and colour in `component` = 3 spin + colour.
    fn source(origin: [usize; 4], component: usize, about: &SourceOf<'_>) -> HostSpinor {
        let SourceOf { input, configuration, section } = *about;
        let time = origin[3];
        let point = || {
            generate::point_source(section, origin, component / 3, component % 3)
                .unwrap_or_else(|| HostSpinor::zero(section.local))
        };
        match input.source {
            SourceKind::Wall => wall(section, time, component),
            // Other noise on each configuration.
            SourceKind::Noise => noise_wall(section, time, component, input.seed ^ configuration.hash()),
            SourceKind::Point | SourceKind::Shell => point(),
        }
    }
}

impl Quark for ColourVector {
    const TITLE: &'static str = "staggered quark propagator";
    /// That with a colour. Walls and noise are at one corner of the hypercubes, that of the origin.
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

/// The quarks of a configuration. Links are read when they are needed first, and kept.
pub struct QuarksOn<'a> {
    input: &'a SpectrumInput,
    configuration: &'a mut Configured,
    what: &'a str,
    device: &'a Device,
    context: &'a Context,
    /// Of each quark, as its operator takes them.
    links: Vec<Option<LinksRead>>,
    /// Those of sources and sinks that are smeared.
    smeared: Option<HostGauge>,
    plaquette: Option<f64>,
}

impl<'a> QuarksOn<'a> {
    /// None is solved for yet.
    pub fn new(
        input: &'a SpectrumInput,
        configuration: &'a mut Configured,
        what: &'a str,
        device: &'a Device,
        context: &'a Context,
    ) -> Self {
        let links = input.quarks.iter().map(|_| None).collect();
        QuarksOn { input, configuration, what, device, context, links, smeared: None, plaquette: None }
    }
    /// The lattice, by the header.
    ///
    /// # Errors
    /// The input does not fit it.
    pub fn lattice(&self) -> Outcome<Lattice> {
        let solves = check(self.input, &[&self.configuration.typed], self.what);
        self.context.comm.agree(solves.map(|solves| solves[0].plan.lattice))
    }
    /// *Collective.* The links of a quark, smeared for its operator, and those of sources and sinks.
    fn read(&mut self, quark: usize, solve: &Solve, layout: &Layout, solves: bool) -> Outcome {
        let (input, plan, comm) = (self.input, &solve.plan, &self.context.comm);
        if self.links[quark].is_some() || (!solves && self.smeared.is_some()) {
            return Ok(());
        }
        let links = LinksRead::of(plan, layout, comm)?;
        let HostLinks::Gauge(file) = &links.links else {
            return Err(Failure::refused("hadrons need a configuration: fat and long links do not suffice").shared());
        };
        if self.plaquette.is_none() {
            look_at_gauge(input, &file.gauge, layout, self.configuration, comm)?;
            self.plaquette = Some(file.plaquette.mean);
        }
        // Sources and sinks are on links as read, and the operator on stout links, where it has them.
        if let (Some(shell), None) = (input.shell, &self.smeared) {
            self.smeared = Some(ape(&file.gauge, shell, self.device, layout)?);
        }
        if solves {
            self.links[quark] = Some(links.smeared(plan, self.device, layout)?);
        }
        Ok(())
    }
    /// *Collective.* The propagator of a quark from an origin, smeared at the sink where that is asked for.
    pub fn propagator<F: Quark>(&mut self, quark: usize, origin: [usize; 4]) -> Outcome<Propagator<F>> {
        let (input, comm) = (self.input, &self.context.comm);
        let mut settings = input.solve_settings(quark, origin, &self.configuration.typed);
        let solve = comm.agree(Solve::from_settings(&mut settings, self.what))?;
        let (plan, components) = (&solve.plan, F::COMPONENTS);
        let layout = plan.cut(&input.device.layout, comm)?;
        solve.scheme.check(layout.cut())?;
        charge_needs_whole_time(input, &layout)?;
        let sequential = usize::from(input.three_point.is_some()) * (1 + usize::from(input.shell_sink));
        // Solutions of all quarks, of one through a sink and sources, or solutions before and after smearing; links before and after, and fat and
        // long ones.
        let links = if plan.definition().is_improved() { 4 } else { 2 } + input.quarks.len() - 1;
        let mut host = (1 + sequential + input.quarks.len()) * components * size_of::<F>() + links * 576;
        if self.device.name() == "cpu" {
            // Those that hadrons are made of lie there once more.
            host += contraction_bytes(F::KIND, layout.local().volume(), input.quarks.len()) / layout.local().volume();
        }
        fields::require_host_memory(comm, layout.local(), host, "propagators and links")?;
        let boundary = plan.operator.boundary();
        let phases = match plan.operator {
            Operator::Staggered(staggered) => staggered.params.phases,
            Operator::WilsonLike(_) => StaggeredPhases::default(),
        };
        let kept = KeptPropagator::of(input, self.configuration, quark, origin);
        let read = |kept: &KeptPropagator| kept.read(self.configuration, components, &layout, comm);
        let there = kept.as_ref().map(read).transpose()?.flatten();
        let smears = input.shell.is_some_and(|_| there.is_none() || input.shell_sink);
        let solves = there.is_none() || input.three_point.is_some();
        if solves || smears {
            self.read(quark, &solve, &layout, solves)?;
        }
        let (solutions, solved) = if let Some(fields) = there {
            (fields, None)
        } else {
            let (section, configuration) = (layout.section, &*self.configuration);
            let about = SourceOf { input, configuration, section };
            let sources: Vec<HostField<F>> =
                (0..components).map(|component| F::source(origin, component, &about)).collect();
            let sources =
                if input.source == SourceKind::Shell { self.smear(quark, sources, &layout)? } else { sources };
            let told = self.told(quark, origin);
            let (solutions, report, batches) = self.solved(quark, &solve, &layout, sources, &told)?;
            if let Some(kept) = kept {
                kept.write(self.configuration, &solutions, F::TITLE, &layout, comm)?;
            }
            (solutions, Some((report, batches)))
        };
        let unsmeared = (input.shell_sink && input.three_point.is_some()).then(|| solutions.clone());
        let fields = if input.shell_sink { self.smear(quark, solutions, &layout)? } else { solutions };
        Ok(Propagator { fields, unsmeared, layout, boundary, phases, plaquette: self.plaquette, solved })
    }
    /// *Collective.* Solutions of a quark for sources.
    fn solved<F: Quark>(
        &self,
        quark: usize,
        solve: &Solve,
        layout: &Layout,
        sources: Vec<HostField<F>>,
        told: &str,
    ) -> Outcome<(Vec<HostField<F>>, Report, Batches)> {
        let (device, comm) = (self.device, &self.context.comm);
        let needs = |together: usize| solve.memory(layout.cut(), together);
        let name = format!("the solve on {}", solve.plan.lattice);
        let task = BatchTask { device, comm, name: &name, noun: RIGHT_HAND_SIDE };
        let batches = self.input.batch.on(&task, sources.len(), needs)?;
        info!("{}{told}: {}", self.configuration.typed.display(), batches.describe());
        let work = json!({ "task": "spectrum", "configuration": self.configuration.typed, "solve": told.trim() });
        let mut watch = Watch::new(solve.scheme.tol, self.context.progress(), work, comm);
        let links = self.links[quark].as_ref().expect("links are read before a solve");
        let ended = solve.solve(
            device,
            layout,
            links,
            &BatchedSources { sizes: &batches.sizes, sources: &sources, guess: None },
            &mut watch,
        )?;
        // Gigabytes, whose pages threads give back side by side.
        sources.into_par_iter().for_each(drop);
        finished(&self.configuration.typed, ended.error.as_ref(), &ended.report, solve.scheme.tol)?;
        Ok((ended.solutions, ended.report, batches))
    }
    /// *Collective.* The propagator of a quark through a sink, `separation` after its source at an origin, from that of the other quark
    /// of a meson, or of the same in a nucleon.
    pub fn sequential(
        &self,
        quark: usize,
        other: &Propagator<Spinor>,
        sink: SinkOf,
        (origin, separation): ([usize; 4], usize),
    ) -> Outcome<Propagator<Spinor>> {
        let (input, layout) = (self.input, &other.layout);
        let mut settings = input.solve_settings(quark, origin, &self.configuration.typed);
        let solve = self.context.comm.agree(Solve::from_settings(&mut settings, self.what))?;
        let (section, time) = (layout.section, (origin[3] + separation) % layout.lattice().size()[3]);
        let momentum = input.three_point.as_ref().map_or([0; 3], |three| three.momentum);
        let sources = match sink {
            SinkOf::Meson(gamma) => sequential_source(section, &other.fields, gamma, momentum, origin, time),
            SinkOf::Nucleon(projector, flavour) => {
                let sink = NucleonSink { projector, flavour, momentum, time };
                sequential_nucleon_source(section, &other.fields, &sink, origin, other.boundary)
            }
        };
        let sources = if input.shell_sink { self.smear(quark, sources, layout)? } else { sources };
        let of = match sink {
            SinkOf::Meson(_) => String::new(),
            SinkOf::Nucleon(projector, flavour) => format!(", {}, current of {}", projector.name(), flavour.name()),
        };
        let told = format!("{} through the sink {separation} later{of}", self.told(quark, origin));
        let (fields, report, batches) = self.solved(quark, &solve, layout, sources, &told)?;
        let (layout, boundary, phases) = (layout.clone(), other.boundary, other.phases);
        Ok(Propagator {
            fields,
            unsmeared: None,
            layout,
            boundary,
            phases,
            plaquette: None,
            solved: Some((report, batches)),
        })
    }
    /// *Collective.* Where hadrons are made of so many propagators: on the device, if it has the memory, else on the CPU.
    pub fn place_of_hadrons<F: Quark>(&self, layout: &Layout, propagators: usize) -> Outcome<Domain> {
        let needed = contraction_bytes(F::KIND, layout.local().volume(), propagators);
        let free = self.context.comm.agree(self.device.memory())?.free;
        let is_too_large = self.context.comm.largest(f64::from(u8::from(needed > free)))? > 0.0;
        if is_too_large && self.device.name() != "cpu" {
            info!(
                "hadrons are made on the CPU: {} of propagators do not fit into the device's memory",
                text::bytes(needed)
            );
            return Ok(layout.domain_on_host()?);
        }
        Ok(layout.domain(self.device.backend())?)
    }
    /// The links of a quark's operator, once it was solved for.
    pub fn gauge(&self, quark: usize) -> Option<&HostGauge> {
        match &self.links[quark].as_ref()?.links {
            HostLinks::Gauge(file) => Some(&file.gauge),
            HostLinks::Improved(_) => None,
        }
    }
    /// *Collective.* The same fields, smeared as those of a quark are.
    fn smear<F: Quark>(&self, quark: usize, fields: Vec<HostField<F>>, layout: &Layout) -> Outcome<Vec<HostField<F>>> {
        let (Some(shell), Some(links)) = (self.input.shell_of(quark), &self.smeared) else { return Ok(fields) };
        let (device, comm, begin) = (self.device, &self.context.comm, Instant::now());
        let part = Part::new(layout.local(), layout.grid());
        let needs = |together: usize| -> Needs {
            let mut needs = SmearingLinks::bytes(F::KIND, Precision::Double, part.sites(), together).to_vec();
            let vectors = F::COMPONENTS / ColourVector::COMPONENTS * together;
            let exchanges = Exchanges::of(part).border(Precision::Double);
            needs.extend(exchanges.hops(HaloField::Colours(1), Precision::Double, &[vectors]).needs());
            needs
        };
        let task = BatchTask { device, comm, name: "smearing", noun: "field" };
        let batches = self.input.batch.on(&task, fields.len(), needs)?;
        let domain = layout.domain(device.backend())?;
        let smearing = GaussianSmearing { width: shell.width, steps: shell.steps, momentum: shell.momentum };
        let on = SmearingLinks::new(&domain, links, F::KIND, Precision::Double, shell.momentum)?;
        let (mut rest, mut smeared) = (&fields[..], Vec::with_capacity(fields.len()));
        for size in &batches.sizes {
            let (batch, others) = rest.split_at(*size);
            smeared.extend(on.smear(&smearing, batch)?);
            rest = others;
        }
        drop(on);
        domain.release()?;
        let time = text::seconds(begin.elapsed().as_secs_f64());
        debug!("smearing of {} with {} steps: {time}", text::count(fields.len(), "field"), shell.steps);
        fields.into_par_iter().for_each(drop);
        Ok(smeared)
    }
    /// Quark and origin, where there are several.
    fn told(&self, quark: usize, [x, y, z, t]: [usize; 4]) -> String {
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

/// Refuses the conserved charge, which hops in t, where processes have parts of the times.
fn charge_needs_whole_time(input: &SpectrumInput, layout: &Layout) -> Outcome {
    let whole = layout.local().size()[3] == layout.lattice().size()[3];
    if whole || !input.three_point.as_ref().is_some_and(|three| three.charge) {
        return Ok(());
    }
    let why = "three-point.charge: the conserved charge needs all times in each process: cut the lattice in space only, \
               --grid X,Y,Z,1";
    Err(Failure::refused(why).shared())
}

/// *Collective.* Links for shells, smeared in space on a device.
fn ape(gauge: &HostGauge, shell: Shell, device: &Device, layout: &Layout) -> Outcome<HostGauge> {
    if shell.ape_steps == 0 {
        return Ok(gauge.clone());
    }
    // Four staples, each of weight 1 beside that of the link.
    let sums = SumsOfStaples::Ape(4.0 / (4.0 + shell.ape_weight));
    let smearing = ProjectedSmearing { sums, levels: shell.ape_steps, spatial: true };
    let domain = layout.domain(device.backend())?;
    let smeared = smearing.smeared(&GaugeField::upload(&domain, gauge)?)?.download()?;
    domain.release()?;
    Ok(smeared)
}

/// Says what a solver did; an error unless it converged.
fn finished(
    configuration: &Path,
    error: Option<&SolveError<impl std::error::Error>>,
    report: &Report,
    tol: f64,
) -> Outcome {
    solve::announce(report);
    let cancelled = matches!(error, Some(SolveError::Cancelled { .. }));
    if report.converged && error.is_none() {
        return Ok(());
    }
    let why = error.map_or(String::new(), |error| format!(": {error}"));
    let reached = format!("|b - Mx| / |b| = {:.3e}, asked was {tol:e}", solve::worst(report));
    let why = format!("{}: the solve did not converge{why}; {reached}", configuration.display());
    Err(Failure::new(if cancelled { interrupt::code() } else { Code::Failed }, why).shared())
}

/// θ of links in Coulomb gauge is less than this: those that others have fixed are good to 1e-6 at least.
const IN_COULOMB_GAUGE: f64 = 1e-5;

/// *Collective.* Says so where a wall is on links that are not in Coulomb gauge. Of a lattice that is cut in space nothing is
/// said: the divergence would need the neighbours' links.
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
            "{}: not in Coulomb gauge, theta = {:.1e}: from a wall all but the sum over points is noise then; `ferrite \
             fix-gauge` makes links in Coulomb gauge",
            configuration.typed.display(),
            sum[0]
        );
    }
    Ok(())
}
