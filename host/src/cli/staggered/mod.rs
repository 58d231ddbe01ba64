//! `ferrite solve` and `ferrite apply` with staggered operators.
mod apply;
mod links;
mod plan;
mod result;

pub use apply::apply;
pub use links::{HostLinks, configuration, improvement};
pub use plan::{FOREIGN_KEYS, Kind, LinkFiles, STRATEGIES, StaggeredPlan, Tadpole, has_inverses};
pub use result::merged;

use super::batch::{Needs, RIGHT_HAND_SIDE};
use super::device::{Device, DeviceChoice};
use super::layout::{Cut, Layout};
use super::method::Scheme;
use super::plan::{RECONSTRUCTIONS, name_of, output};
use super::profile;
use super::progress::Watch;
use super::{Context, Failure, Outcome, ahead, fields, interrupt, target};
use crate::config::Settings;
use clap::Args;
use ferrite::domain::Domain;
use ferrite::field::host::{ColourVector, HostColour};
use ferrite::solve::{LinkStorage, Report, SolveFailure, StaggeredConfiguration, in_batches, shifts_in_batches};
pub use links::read_links;
use plan::Masses;
use solvers::{SolveError, Unsolved};
use std::path::PathBuf;
use tracing::info;

/// Flags of staggered operators and their links, as typed.
#[derive(Args)]
pub struct LinkFlags {
    /// HISQ's correction of the Naik term, for heavy quarks [default: 0]
    #[arg(long, value_name = "E", help_heading = "Staggered operators", allow_hyphen_values = true)]
    naik_epsilon: Option<String>,
    /// Fat links made before, by `ferrite links` or MILC, with --long and instead of --gauge
    #[arg(long, value_name = "FILE", help_heading = "Staggered operators")]
    fat: Option<String>,
    /// Long links made before
    #[arg(long, value_name = "FILE", help_heading = "Staggered operators")]
    long: Option<String>,
    /// Signs of hops: milc or lexicographic (x first, as in CL2QCD) [default: milc]
    #[arg(long, value_name = "NAME", help_heading = "Staggered operators")]
    phases: Option<String>,
    /// Antiperiodicity as factors exp(i pi/T) of all links in t, as in CL2QCD, instead of a sign of the last ones
    #[arg(long, help_heading = "Staggered operators")]
    spread_boundary: bool,
}

impl LinkFlags {
    /// Adds the flags to the settings.
    pub fn add_to(&self, settings: &mut Settings) {
        let texts =
            [("naik-epsilon", &self.naik_epsilon), ("fat", &self.fat), ("long", &self.long), ("phases", &self.phases)];
        for (key, value) in texts {
            settings.flag(key, value.as_deref());
        }
        settings.switch("spread-boundary", self.spread_boundary);
    }
}

/// Flags of several systems at once, as typed.
#[derive(Args)]
pub struct ShiftFlags {
    /// Solve (M^+ M + s) x = b for these shifts, joined with commas
    #[arg(long, value_name = "S1,S2,...", help_heading = "Staggered operators", allow_hyphen_values = true)]
    shifts: Option<String>,
    /// Several masses or shifts: multishift (together, then each refined) or sequential [default: multishift]
    #[arg(long, value_name = "NAME", help_heading = "Staggered operators")]
    shift_solver: Option<String>,
}

impl ShiftFlags {
    /// Adds the flags to the settings.
    pub fn add_to(&self, settings: &mut Settings) {
        settings.flag("shifts", self.shifts.as_deref());
        settings.flag("shift-solver", self.shift_solver.as_deref());
    }
}

/// Flags of staggered solves, as typed.
#[derive(Args)]
pub struct Flags {
    /// Several masses at once, joined with commas, instead of --mass
    #[arg(long, value_name = "M1,M2,...", help_heading = "Staggered operators", allow_hyphen_values = true)]
    masses: Option<String>,
    #[command(flatten)]
    shifts: ShiftFlags,
    #[command(flatten)]
    links: LinkFlags,
}

impl Flags {
    /// Adds the flags to the settings.
    pub fn add_to(&self, settings: &mut Settings) {
        settings.flag("masses", self.masses.as_deref());
        self.shifts.add_to(settings);
        self.links.add_to(settings);
    }
}

/// Whether the settings name a staggered operator.
pub fn is_chosen(settings: &Settings) -> bool {
    settings.get("operator").is_some_and(|name| ["staggered", "asqtad", "hisq"].contains(&name.text()))
}

/// A staggered solve, resolved and checked as far as that is possible without reading the links.
pub struct StaggeredSolve {
    /// Operator and fields.
    pub plan: StaggeredPlan,
    /// The device.
    pub device: DeviceChoice,
    /// The solver.
    pub scheme: Scheme,
    keep_unconverged: bool,
    profile: bool,
    save_source: Option<PathBuf>,
    plot: Option<PathBuf>,
}

impl StaggeredSolve {
    /// Resolves the settings; lists all mistakes.
    pub fn from_settings(settings: &mut Settings, what: &str) -> Outcome<Self> {
        let device = DeviceChoice::from_settings(settings);
        let plan = StaggeredPlan::for_solve(settings);
        let scheme = Scheme::staggered(settings, plan.as_ref().map(StaggeredPlan::wanted));
        if let Some(plan) = plan.as_ref().filter(|plan| scheme.is_block() && plan.is_multishift()) {
            let several = if matches!(plan.masses, Masses::Shifts(..)) { "shifts" } else { "masses" };
            let why = "multi-shift CG has a Krylov space for each right-hand side: leave out block-cg, or give \
                       --shift-solver sequential";
            settings.conflict("solver", several, why);
        }
        let keep_unconverged = settings.is_on("keep-unconverged");
        let profile = settings.is_on("profile");
        let save_source = output(settings, "save-source", plan.as_ref().map_or(1, |plan| plan.sources.len()));
        let plot = settings.parsed("plot", |path| {
            let path = PathBuf::from(path);
            target::check_svg(&path).map(|()| path)
        });
        super::solve::different_files(settings);
        settings.finish(what)?;
        let Some(plan) = plan else { return Err(Failure::refused("the settings are incomplete")) };
        Ok(StaggeredSolve { plan, device, scheme, keep_unconverged, profile, save_source, plot })
    }
    /// Memory at the peak for `nrhs` right-hand sides together, with names for what takes it.
    pub fn memory(&self, cut: Cut, nrhs: usize) -> Needs {
        let plan = &self.plan;
        let reconstruction = plan.reconstruction.unwrap_or(LinkStorage::FULL);
        let in_u3 = matches!(plan.kind, Kind::Hisq(_));
        let reconstruction = if in_u3 { reconstruction.with_phase() } else { reconstruction };
        let request = self.scheme.request(plan.params(), plan.precision, reconstruction);
        request.staggered_memory(
            cut.local,
            &cut.grid,
            nrhs,
            plan.kind != Kind::Naive,
            (plan.masses.count() > 1).then_some(plan.masses.count()),
        )
    }
}

/// The operator of a plan on its links.
fn on_links<'g>(
    plan: &StaggeredPlan,
    domain: &Domain,
    links: &'g HostLinks,
    u0: f64,
) -> Outcome<StaggeredConfiguration<'g>> {
    let configuration = configuration(plan.kind, domain, links, u0)?;
    Ok(if plan.spread { configuration.with_spread_boundary() } else { configuration })
}

/// Solves, writes and reports.
pub fn solve(settings: &mut Settings, what: &str, context: &Context) -> Outcome {
    let world = &context.world;
    let solve = world.agree(StaggeredSolve::from_settings(settings, what))?;
    let plan = &solve.plan;
    let device = solve.device.open(world)?;
    if plan.output.is_none() {
        info!("the solution is not kept: there is no -o FILE");
    }
    let layout = plan.cut(&solve.device, world)?;
    let nrhs = plan.sources.len();
    let needs = |together: usize| solve.memory(layout.cut(), together);
    let task = format!("the solve on {}", plan.lattice);
    let batches = solve.scheme.batch.on((&device, world), nrhs, needs, (&task, RIGHT_HAND_SIDE))?;
    if batches.are_several() {
        info!("{}", batches.describe());
    }
    // Sources and guesses, and solutions of all systems.
    let fields = nrhs * (1 + plan.masses.count() + usize::from(solve.scheme.guess.is_some()));
    let host = fields * 48 + 2 * 576;
    fields::require_host_memory(world, layout.local(), host, "sources, solutions and links")?;
    let modules = ahead::for_colours(plan.kind, (plan.precision, plan.reconstruction), layout.grid().size() > 1);
    let (links, reconstruction, u0) = device.while_loading(&modules, || read_links(plan, &layout, world))?;
    let sources = plan.fields(&plan.sources, &layout)?;
    let guess = solve.scheme.guess.as_deref().map(|fields| plan.fields(fields, &layout)).transpose()?;
    if let Some(path) = &solve.save_source {
        fields::write_fermions(path, &sources, "source", &layout)?;
    }
    interrupt::listen();
    let mut watch = Watch::new(solve.scheme.tol, context.shows_progress(), world);
    let running = profile::Running::start(solve.profile, &device)?;
    if let Masses::One(_) = plan.masses {
        let of_links = (&links, reconstruction, u0);
        let sources = (&batches.sizes[..], &sources[..], guess.as_deref());
        let (solutions, report, error) = one_mass(&solve, (&device, &layout), of_links, sources, &mut watch)?;
        let solved = (&solutions[..], &report, error.as_ref());
        let how = (&watch, &batches, &running.end(&device)?);
        return result::one(context, &solve, (&device, &layout), u0, solved, how);
    }
    let request = solve.scheme.request(plan.params(), plan.precision, reconstruction);
    let result = {
        let backend = device.backend();
        let domain = layout.domain(backend)?;
        let configuration = on_links(plan, &domain, &links, u0)?;
        shifts_in_batches(&batches.sizes, &sources, |sources| match &plan.masses {
            Masses::Shifts(_, shifts) => {
                configuration.solve_shifts(sources, shifts, plan.strategy, &request, &mut watch)
            }
            Masses::Several(masses) => configuration.solve_masses(sources, masses, plan.strategy, &request, &mut watch),
            Masses::One(_) => unreachable!("handled above"),
        })
    };
    watch.finish();
    let (solutions, report) = result.map_err(refused)?;
    let how = (&batches, &running.end(&device)?);
    kept(reconstruction, report.reconstruction);
    result::several(context, &solve, (&device, &layout), u0, (&solutions, &report), how)
}

/// Solutions, or the best iterates with the reason why there are no better ones.
pub type Solved = (Vec<HostColour>, Report, Option<Unsolved>);

/// *Collective.* Solves with the only mass of a plan, on its links with reconstruction and tadpole factor, for these sources
/// and guesses, in batches of these sizes.
pub fn one_mass(
    solve: &StaggeredSolve,
    (device, layout): (&Device, &Layout),
    (links, reconstruction, u0): (&HostLinks, LinkStorage, f64),
    (sizes, sources, guess): (&[usize], &[HostColour], Option<&[HostColour]>),
    watch: &mut Watch,
) -> Outcome<Solved> {
    let plan = &solve.plan;
    let request = solve.scheme.request(plan.params(), plan.precision, reconstruction);
    let result = {
        let backend = device.backend();
        let domain = layout.domain(backend)?;
        let configuration = on_links(plan, &domain, links, u0)?;
        in_batches(sizes, sources, guess, |sources, guess| {
            watch.next_batch(sources.len());
            configuration.solve(sources, guess, &request, watch)
        })
    };
    watch.finish();
    let (solutions, report, error) = match result {
        Ok((solutions, report)) => (solutions, report, None),
        Err(SolveFailure::Unfinished { error, solutions, report }) => (solutions, *report, Some(error)),
        Err(failure) => return Err(refused(failure)),
    };
    if report.climbs.is_empty() {
        kept(reconstruction, report.reconstruction);
    }
    Ok((solutions, report, error))
}

/// Says so where links were not kept as planned.
fn kept(planned: LinkStorage, used: LinkStorage) {
    if planned != used {
        let [planned, used] = [planned, used].map(|format| name_of(&RECONSTRUCTIONS, format));
        info!("reconstruct {planned} does not tell some of these links: {used} is used");
    }
}

/// A solve that did not begin.
fn refused(failure: SolveFailure<ColourVector>) -> Failure {
    match failure {
        SolveFailure::Solver(SolveError::Backend(error)) | SolveFailure::Device(error) => error.into(),
        SolveFailure::Solver(error) => Failure::refused(error).shared(),
        SolveFailure::Schwarz(error) => Failure::refused(error).shared(),
        SolveFailure::Unfinished { error, .. } => Failure::failed(error).shared(),
    }
}
