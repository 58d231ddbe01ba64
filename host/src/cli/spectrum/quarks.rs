//! Propagators: solved, or read where they are kept.
use super::super::batch::{Batches, Needs, RIGHT_HAND_SIDE};
use super::super::configured::Configured;
use super::super::device::Device;
use super::super::layout::{Cut, Layout, LayoutChoice};
use super::super::plan::{gauge_header, reading};
use super::super::progress::Watch;
use super::super::solve::{self, Solve};
use super::super::staggered::{HostLinks, StaggeredSolve, one_mass, read_links};
use super::super::world::World;
use super::super::{Code, Context, Failure, Outcome, fields};
use super::input::{Input, Shell, SourceKind};
use super::kept::Kept;
use crate::config::Settings;
use ferrite::dirac::TimeBoundary;
use ferrite::field::host::{ColourVector, Fermion, HostColour, HostField, HostGauge, HostSpinor, Spinor};
use ferrite::gauge_fixing::relax::{Gauge, theta};
use ferrite::lattice::Lattice;
use ferrite::solve::{Configuration, LinkStorage, Report, in_batches};
use ferrite::spectrum::sources::{corner_wall, noise_corner_wall, noise_wall, wall};
use ferrite::{generate, smear};
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

/// The solve on a configuration.
pub enum Solver {
    /// Of Wilson quarks.
    Wilson(Box<Solve>),
    /// Of staggered ones.
    Staggered(Box<StaggeredSolve>),
}

impl Solver {
    /// How many components a source has.
    pub fn components(&self) -> usize {
        match self {
            Solver::Wilson(_) => Spinor::COMPONENTS,
            Solver::Staggered(_) => ColourVector::COMPONENTS,
        }
    }
    /// How a run of `processes` cuts the lattice, if it may be cut so.
    pub fn plan(&self, input: &Input, processes: usize) -> Outcome<Cut> {
        let choice = layout_choice(input, processes)?;
        match self {
            Solver::Wilson(solve) => {
                let cut = choice.plan(processes, solve.plan.lattice(), WILSON_HOPS)?;
                solve.scheme.check(cut).map(|()| cut)
            }
            Solver::Staggered(solve) => choice.plan(processes, solve.plan.lattice, solve.plan.hops()),
        }
    }
    /// Device memory for `together` right-hand sides on a process's part of the lattice, as long as the links have not been
    /// seen: with 18 reals, the most.
    pub fn memory(&self, cut: Cut, together: usize) -> Needs {
        match self {
            Solver::Wilson(solve) => {
                let reconstruction = solve.plan.reconstruction.unwrap_or(LinkStorage::FULL);
                solve.request(reconstruction).memory(cut.local, &cut.grid, together)
            }
            Solver::Staggered(solve) => solve.memory(cut, together),
        }
    }
}

/// Whether the input fits configurations, of which there is one at least, as far as their headers tell; their lattice, and
/// the solve.
pub fn check(input: &Input, configurations: &[&Path], what: &str) -> Outcome<(Lattice, Solver)> {
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
    Ok(if input.staggered {
        let solve = StaggeredSolve::from_settings(&mut settings, what)?;
        (solve.plan.lattice, Solver::Staggered(Box::new(solve)))
    } else {
        let solve = Solve::from_settings(&mut settings, what)?;
        (solve.plan.lattice(), Solver::Wilson(Box::new(solve)))
    })
}

/// *Collective.* Propagators of Wilson quarks on a configuration, smeared at the sink where that is asked for.
pub fn wilson(
    input: &Input,
    configuration: &mut Configured,
    what: &str,
    device: &Device,
    context: &Context,
) -> Outcome<Propagator<Spinor>> {
    let world = &context.world;
    let mut settings = input.solve_settings(&configuration.typed);
    let solve = world.agree(Solve::from_settings(&mut settings, what))?;
    let plan = &solve.plan;
    let layout = layout_choice(input, world.size())?.cut(world, plan.lattice(), WILSON_HOPS)?;
    solve.scheme.check(layout.cut())?;
    // Sources and solutions, or solutions before and after smearing; links before and after.
    fields::require_host_memory(world, layout.local(), 24 * 192 + 2 * 576, "propagators and links")?;
    let boundary = plan.operator.wilson().boundary;
    let kept = Kept::of(input, configuration);
    let there = kept.as_ref().map(|kept| kept.read(configuration, 12, &layout, world)).transpose()?.flatten();
    if let (Some(fields), None) = (&there, input.shell) {
        let fields = fields.clone();
        return Ok(Propagator { fields, layout, boundary, plaquette: None, solved: None });
    }
    let file = fields::read_gauge(&plan.gauge, &plan.read, &layout, world)?;
    look_at_gauge(input, &file.gauge, &layout, configuration, world)?;
    let links = input.shell.map(|shell| smear::ape(&file.gauge, shell.ape_weight, shell.ape_steps));
    let (solutions, solved) = if let Some(fields) = there {
        (fields, None)
    } else {
        let largest = solve.request(plan.reconstruction.unwrap_or(LinkStorage::FULL));
        let needs = |together: usize| largest.memory(layout.local(), layout.grid(), together);
        let task = format!("the solve on {}", plan.lattice());
        let batches = input.batch.on((device, world), 12, needs, (&task, RIGHT_HAND_SIDE))?;
        info!("{}: {}", configuration.typed.display(), batches.describe());
        let request = solve.request(solve::reconstruction(plan, &file)?);
        let source = |k| spinor_source(input, &layout, links.as_ref(), configuration, k);
        let sources: Vec<HostSpinor> = (0..12).map(source).collect();
        let mut watch = Watch::new(solve.scheme.tol, context.shows_progress(), world);
        let result = {
            let backend = device.backend();
            let domain = layout.domain(backend)?;
            let links = Configuration::new(&domain, &file.gauge);
            let solved = in_batches(&batches.sizes, &sources, None, |sources, guess| {
                watch.next_batch(sources.len());
                links.solve(sources, guess, &request, &mut watch)
            });
            if solved.is_ok() {
                domain.let_go()?;
            }
            solved
        };
        watch.finish();
        // Gigabytes, whose pages threads give back side by side.
        sources.into_par_iter().for_each(drop);
        let (solutions, report, error) = solve::ended(result)?;
        finished(&configuration.typed, error.as_ref(), &report, solve.scheme.tol)?;
        if let Some(kept) = kept {
            kept.write(configuration, &solutions, "quark propagator", &layout, world)?;
        }
        (solutions, Some((report, batches)))
    };
    let fields = match (&links, input.shell) {
        (Some(links), Some(shell)) if input.shell_sink => {
            solutions.iter().map(|psi| smear::gaussian(links, psi, shell.width, shell.steps)).collect()
        }
        _ => solutions,
    };
    Ok(Propagator { fields, layout, boundary, plaquette: Some(file.plaquette.mean), solved })
}

/// *Collective.* Propagators of staggered quarks on a configuration, smeared at the sink where that is asked for.
pub fn staggered(
    input: &Input,
    configuration: &mut Configured,
    what: &str,
    device: &Device,
    context: &Context,
) -> Outcome<Propagator<ColourVector>> {
    let world = &context.world;
    let mut settings = input.solve_settings(&configuration.typed);
    let solve = world.agree(StaggeredSolve::from_settings(&mut settings, what))?;
    let plan = &solve.plan;
    let layout = layout_choice(input, world.size())?.cut(world, plan.lattice, plan.hops())?;
    fields::require_host_memory(world, layout.local(), 6 * 48 + 4 * 576, "propagators and links")?;
    let (boundary, plaquette) = (plan.boundary, None);
    let kept = Kept::of(input, configuration);
    let there = kept.as_ref().map(|kept| kept.read(configuration, 3, &layout, world)).transpose()?.flatten();
    let smeared = match input.shell {
        Some(shell) if there.is_none() || input.shell_sink => {
            let file = fields::read_gauge(&configuration.typed, &plan.read, &layout, world)?;
            Some((smear::ape(&file.gauge, shell.ape_weight, shell.ape_steps), shell))
        }
        _ => None,
    };
    let at_sink = |fields: Vec<HostColour>| match &smeared {
        Some((links, shell)) if input.shell_sink => {
            fields.iter().map(|chi| smear::gaussian_staggered(links, chi, shell.width, shell.steps)).collect()
        }
        _ => fields,
    };
    if let Some(fields) = there {
        return Ok(Propagator { fields: at_sink(fields), layout, boundary, plaquette, solved: None });
    }
    let needs = |together: usize| solve.memory(layout.cut(), together);
    let task = format!("the solve on {}", plan.lattice);
    let batches = input.batch.on((device, world), 3, needs, (&task, RIGHT_HAND_SIDE))?;
    info!("{}: {}", configuration.typed.display(), batches.describe());
    let (links, reconstruction, u0) = read_links(plan, &layout, world)?;
    if let HostLinks::Thin(gauge) = &links {
        look_at_gauge(input, gauge, &layout, configuration, world)?;
    }
    let source = |colour| colour_source(input, &layout, smeared.as_ref(), configuration, colour);
    let sources: Vec<HostColour> = (0..3).map(source).collect();
    let mut watch = Watch::new(solve.scheme.tol, context.shows_progress(), world);
    let of_sources = (&batches.sizes[..], &sources[..], None);
    let (fields, report, error) =
        one_mass(&solve, (device, &layout), (&links, reconstruction, u0), of_sources, &mut watch)?;
    finished(&configuration.typed, error.as_ref(), &report, solve.scheme.tol)?;
    if let Some(kept) = kept {
        kept.write(configuration, &fields, "staggered quark propagator", &layout, world)?;
    }
    Ok(Propagator { fields: at_sink(fields), layout, boundary, plaquette, solved: Some((report, batches)) })
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
    let reached = format!("|b - Mx| / |b| = {:.3e}, asked was {tol:.0e}", solve::worst(report));
    let why = format!("{}: the solve did not converge{why}; {reached}", configuration.display());
    Err(Failure::new(if cancelled { Code::Interrupted } else { Code::Failed }, why).shared())
}

/// The source with this spin and colour, `3 spin + colour`.
fn spinor_source(
    input: &Input,
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
        (SourceKind::Shell, Some(shell), Some(links)) => smear::gaussian(links, &point(), shell.width, shell.steps),
        (SourceKind::Wall, ..) => wall(section, time, component),
        // Other noise on each configuration.
        (SourceKind::Noise, ..) => noise_wall(section, time, component, input.seed ^ configuration.hash()),
        _ => point(),
    }
}

/// The source of staggered quarks with this colour. Walls and noise are at one corner of the hypercubes, that of the origin.
fn colour_source(
    input: &Input,
    layout: &Layout,
    smeared: Option<&(HostGauge, Shell)>,
    configuration: &Configured,
    colour: usize,
) -> HostColour {
    let (section, origin) = (layout.section, input.origin);
    let point =
        || generate::point_colour_source(section, origin, colour).unwrap_or_else(|| HostColour::zero(section.local));
    match (input.source, smeared) {
        (SourceKind::Shell, Some((links, shell))) => {
            smear::gaussian_staggered(links, &point(), shell.width, shell.steps)
        }
        (SourceKind::Wall, _) => corner_wall(section, origin, colour),
        (SourceKind::Noise, _) => noise_corner_wall(section, origin, colour, input.seed ^ configuration.hash()),
        _ => point(),
    }
}

/// θ of links in Coulomb gauge is less than this: those that others have fixed are good to 1e-6 at least.
const IN_COULOMB_GAUGE: f64 = 1e-5;

/// *Collective.* Says so where a wall is on links that are not in Coulomb gauge. Of a lattice that is cut in space nothing is
/// said: the divergence would need the neighbours' links.
fn look_at_gauge(
    input: &Input,
    gauge: &HostGauge,
    layout: &Layout,
    configuration: &Configured,
    world: &World,
) -> Outcome {
    if input.source != SourceKind::Wall || layout.local().size()[..3] != layout.lattice().size()[..3] {
        return Ok(());
    }
    let share = layout.local().volume() as f64 / layout.lattice().volume() as f64;
    let mut sum = [theta(gauge, Gauge::Coulomb) * share];
    world.sum(&mut sum)?;
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

/// Steps of the longest hop of Wilson quarks.
const WILSON_HOPS: usize = 1;

/// How the lattice is to be cut. Refuses a grid that cuts time slices, where the input has shells: smearing, on the host,
/// needs them whole.
pub fn layout_choice(input: &Input, processes: usize) -> Outcome<LayoutChoice> {
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
