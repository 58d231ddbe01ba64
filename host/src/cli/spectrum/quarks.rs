//! Propagators: solved, or read where they are kept.
use super::super::batch::{BatchTask, Batches, RIGHT_HAND_SIDE};
use super::super::communicator::RunCommunicator;
use super::super::configured::Configured;
use super::super::device::Device;
use super::super::host_links::{HostLinks, LinksRead};
use super::super::layout::{Cut, Layout, LayoutChoice};
use super::super::plan::{gauge_header, reading};
use super::super::progress::Watch;
use super::super::solve::{self, BatchedSources, Solve};
use super::super::{Code, Context, Failure, Outcome, fields, interrupt};
use super::input::{Shell, SourceKind, SpectrumInput};
use super::kept::KeptPropagator;
use crate::cli::config::Settings;
use ferrite::field::host::{ColourVector, Fermion, HostColour, HostField, HostGauge, HostSpinor, Spinor};
use ferrite::gauge::fixing::relax::{Gauge, theta};
use ferrite::gauge::{generate, smear};
use ferrite::lattice::Lattice;
use ferrite::observables::spectrum::sources::{corner_wall, noise_corner_wall, noise_wall, wall};
use ferrite::operators::TimeBoundary;
use ferrite::solve::Report;
use rayon::prelude::*;
use solvers::SolveError;
use std::path::Path;
use tracing::{info, warn};

/// The solutions for all components of a source.
pub struct Propagator<T> {
    /// One for each component.
    pub fields: Vec<HostField<T>>,
    /// How the lattice is cut.
    pub layout: Layout,
    /// Boundary condition in t.
    pub boundary: TimeBoundary,
    /// Mean plaquette of the links; `None` where they were not read.
    pub plaquette: Option<f64>,
    /// What the solver said, and how the right-hand sides were split; `None` where the fields were read.
    pub solved: Option<(Report, Batches)>,
}

/// How a run of `processes` cuts the lattice of a solve, if it may be cut so.
pub fn plan(solve: &Solve, input: &SpectrumInput, processes: usize) -> Outcome<Cut> {
    let choice = layout_choice(input, processes)?;
    let cut = choice.plan(processes, solve.plan.lattice, solve.plan.definition().steps())?;
    solve.possible(cut)
}

/// Whether the input fits configurations, of which there is one at least, as far as their headers tell; their lattice, and
/// the solve.
pub fn check(input: &SpectrumInput, configurations: &[&Path], what: &str) -> Outcome<Solve> {
    let mut settings = input.solve_settings(configurations[0]);
    let read = reading(&mut settings);
    let header = |settings: &mut Settings| gauge_header(settings, "gauge", &read);
    // Before the sources, which would say so for each component.
    let first = header(&mut settings).map(|header| header.lattice);
    first.map_or(Ok(()), |lattice| input.check(lattice))?;
    for configuration in &configurations[1..] {
        let mut its = input.solve_settings(configuration);
        match header(&mut its).map(|header| header.lattice) {
            None => its.finish(what).unwrap_or_else(|failure| settings.missing(failure.message)),
            Some(lattice) if first.is_some_and(|first| first != lattice) => {
                settings.missing(format!("{} is on {lattice}, others are on another lattice", configuration.display()))
            }
            Some(_) => {}
        }
    }
    Solve::from_settings(&mut settings, what)
}

/// What quarks of a kind take beside a solve: their sources, and smearing.
pub trait Quark: Fermion {
    /// What files of propagators are called.
    const TITLE: &'static str;
    /// A component of a source. `links` are smeared, where sources or sinks are.
    fn source(
        input: &SpectrumInput,
        layout: &Layout,
        links: Option<&HostGauge>,
        configuration: &Configured,
        component: usize,
    ) -> HostField<Self>;
    /// Gaussian smearing on smeared links.
    fn smeared(links: &HostGauge, psi: &HostField<Self>, shell: Shell) -> HostField<Self>;
}

impl Quark for Spinor {
    const TITLE: &'static str = "quark propagator";
    /// That with spin and colour in `component` = 3 spin + colour.
    fn source(
        input: &SpectrumInput,
        layout: &Layout,
        links: Option<&HostGauge>,
        configuration: &Configured,
        component: usize,
    ) -> HostSpinor {
        let (section, time) = (layout.section, input.origin[3]);
        let point = || {
            generate::point_source(section, input.origin, component / 3, component % 3)
                .unwrap_or_else(|| HostSpinor::zero(section.local))
        };
        match (input.source, input.shell, links) {
            (SourceKind::Shell, Some(shell), Some(links)) => Self::smeared(links, &point(), shell),
            (SourceKind::Wall, ..) => wall(section, time, component),
            // Other noise on each configuration.
            (SourceKind::Noise, ..) => noise_wall(section, time, component, input.seed ^ configuration.hash()),
            _ => point(),
        }
    }
    fn smeared(links: &HostGauge, psi: &HostSpinor, shell: Shell) -> HostSpinor {
        smear::gaussian(links, psi, shell.width, shell.steps)
    }
}

impl Quark for ColourVector {
    const TITLE: &'static str = "staggered quark propagator";
    /// That with a colour. Walls and noise are at one corner of the hypercubes, that of the origin.
    fn source(
        input: &SpectrumInput,
        layout: &Layout,
        links: Option<&HostGauge>,
        configuration: &Configured,
        colour: usize,
    ) -> HostColour {
        let (section, origin) = (layout.section, input.origin);
        let point = || {
            generate::point_colour_source(section, origin, colour).unwrap_or_else(|| HostColour::zero(section.local))
        };
        match (input.source, input.shell, links) {
            (SourceKind::Shell, Some(shell), Some(links)) => Self::smeared(links, &point(), shell),
            (SourceKind::Wall, ..) => corner_wall(section, origin, colour),
            (SourceKind::Noise, ..) => noise_corner_wall(section, origin, colour, input.seed ^ configuration.hash()),
            _ => point(),
        }
    }
    fn smeared(links: &HostGauge, psi: &HostColour, shell: Shell) -> HostColour {
        smear::gaussian_staggered(links, psi, shell.width, shell.steps)
    }
}

/// *Collective.* Propagators of quarks on a configuration, smeared at the sink where that is asked for.
pub fn propagator<F: Quark>(
    input: &SpectrumInput,
    configuration: &mut Configured,
    what: &str,
    device: &Device,
    context: &Context,
) -> Outcome<Propagator<F>> {
    let comm = &context.comm;
    let mut settings = input.solve_settings(&configuration.typed);
    let solve = comm.agree(Solve::from_settings(&mut settings, what))?;
    let (plan, components) = (&solve.plan, F::COMPONENTS);
    let layout = plan.cut(&layout_choice(input, comm.size())?, comm)?;
    solve.scheme.check(layout.cut())?;
    // Sources and solutions, or solutions before and after smearing; links before and after, and fat and long ones.
    let links = if plan.definition().is_improved() { 4 } else { 2 };
    let host = 2 * components * size_of::<F>() + links * 576;
    fields::require_host_memory(comm, layout.local(), host, "propagators and links")?;
    let boundary = plan.operator.boundary();
    let kept = KeptPropagator::of(input, configuration);
    let read = |kept: &KeptPropagator| kept.read(configuration, components, &layout, comm);
    let there = kept.as_ref().map(read).transpose()?.flatten();
    let smears = input.shell.is_some_and(|_| there.is_none() || input.shell_sink);
    if let Some(fields) = there.as_ref().filter(|_| !smears) {
        return Ok(Propagator { fields: fields.clone(), layout, boundary, plaquette: None, solved: None });
    }
    let links = LinksRead::of(plan, &layout, comm)?;
    let HostLinks::Gauge(file) = &links.links else {
        return Err(Failure::refused("hadrons need a configuration: fat and long links do not suffice").shared());
    };
    look_at_gauge(input, &file.gauge, &layout, configuration, comm)?;
    // Sources and sinks are on links as read, and the operator on stout links, where it has them.
    let smeared = input.shell.map(|shell| smear::ape(&file.gauge, shell.ape_weight, shell.ape_steps));
    let plaquette = Some(file.plaquette.mean);
    let links = if there.is_some() { links } else { links.smeared(plan, device, &layout)? };
    let (solutions, solved) = if let Some(fields) = there {
        (fields, None)
    } else {
        let needs = |together: usize| solve.memory(layout.cut(), together);
        let name = format!("the solve on {}", plan.lattice);
        let task = BatchTask { device, comm, name: &name, noun: RIGHT_HAND_SIDE };
        let batches = input.batch.on(&task, components, needs)?;
        info!("{}: {}", configuration.typed.display(), batches.describe());
        let source = |component| F::source(input, &layout, smeared.as_ref(), configuration, component);
        let sources: Vec<HostField<F>> = (0..components).map(source).collect();
        let mut watch = Watch::new(solve.scheme.tol, context.shows_progress(), comm);
        let ended = solve.solve(
            device,
            &layout,
            &links,
            &BatchedSources { sizes: &batches.sizes, sources: &sources, guess: None },
            &mut watch,
        )?;
        // Gigabytes, whose pages threads give back side by side.
        sources.into_par_iter().for_each(drop);
        finished(&configuration.typed, ended.error.as_ref(), &ended.report, solve.scheme.tol)?;
        if let Some(kept) = kept {
            kept.write(configuration, &ended.solutions, F::TITLE, &layout, comm)?;
        }
        (ended.solutions, Some((ended.report, batches)))
    };
    let fields = match (&smeared, input.shell) {
        (Some(links), Some(shell)) if input.shell_sink => {
            solutions.iter().map(|psi| F::smeared(links, psi, shell)).collect()
        }
        _ => solutions,
    };
    Ok(Propagator { fields, layout, boundary, plaquette, solved })
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

/// How the lattice is to be cut. Refuses a grid that cuts time slices, where the input has shells: smearing, on the host,
/// needs them whole.
pub fn layout_choice(input: &SpectrumInput, processes: usize) -> Outcome<LayoutChoice> {
    let choice = input.device.layout.clone();
    if input.shell.is_none() {
        return Ok(choice);
    }
    let slices = [1, 1, 1, processes];
    if choice.grid().is_none_or(|grid| grid == slices) {
        return Ok(choice.or_grid(slices));
    }
    let slices = slices.map(|n| n.to_string()).join(",");
    let why = format!("shells need whole time slices in each process: leave --grid out, or say --grid {slices}");
    Err(Failure::refused(why).shared())
}

/// The lattice of a propagator.
pub fn lattice<T>(propagator: &Propagator<T>) -> Lattice {
    propagator.layout.lattice()
}
