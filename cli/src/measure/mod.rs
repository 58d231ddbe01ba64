//! `ferrite measure`.
mod loops;

use super::configured::Configured;
use super::device::{Device, DeviceChoice};
use super::fields::{Reading, lattice_of, read_gauge, require_host_memory};
use super::line_file::{LineFile, measure_all};
use super::named;
use super::verify::ReadFlags;
use super::{Context, Failure, Outcome, text};
use clap::{Args, ValueEnum};
use ferrite::Precision;
use ferrite::domain::Domain;
use ferrite::domain::Part;
use ferrite::field::GaugeField;
use ferrite::field::host::HostGauge;
use ferrite::halo::Exchanges;
use ferrite::lattice::Lattice;
use ferrite::observables::flow::{Flow, FlowAction, FlowPoint, MOST_STEPS, scale_t0, scale_w0};
use ferrite::observables::loops::LoopMeans;
use ferrite::observables::quantity::{CHARGE, ENERGY_DENSITY, FLOW_TIME, T0, W0};
use ferrite::observables::wilson_loops::WilsonLoops;
use ferrite_records::measure::{FlowInput, LineOrigin, MeasureRecord, MeasurementInput, MeasurementLine};
use ferrite_records::object;
use ferrite_records::progress::ProgressLine;
use ferrite_tasks::observables;
use ferrite_tasks::progress::Progress;
use ferrite_tasks::session::Session;
use loops::{LoopFlags, LoopTask};
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::time::Instant;
use tracing::info;

const EXAMPLES: &str = "\
Examples:
  ferrite measure cfg.000100.ildg
  ferrite measure cfg.000100.ildg --flow 4 --flow-step 0.02
  ferrite measure run/cfg.*.ildg --flow 2 --flow-action zeuthen -o flow.jsonl
  ferrite measure run/cfg.*.ildg --loops 8,6 --off-axis --loop-smear ape --loop-alpha 0.6 --loop-levels 20 -o loops.jsonl

Plaquette, rectangle, Polyakov loop, and energy density and topological charge by the clover-leaf field strength; with
--flow the last two along the gradient flow (Luescher 2010), with t0 and w0 where they are reached. Each configuration is
printed when it is done; with -o, the same command resumes where it stopped. --loops adds Wilson loops W(R, T) for the static
potential. `ferrite fit` makes t0, w0 and the potential of the file of -o.";

/// Arguments of `measure`.
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub struct MeasureArguments {
    /// Gauge fields in any format
    #[arg(required = true)]
    files: Vec<PathBuf>,
    /// Follow the gradient flow up to this time, in lattice units
    #[arg(long, value_name = "T", value_parser = positive, allow_hyphen_values = true)]
    flow: Option<f64>,
    /// Length of its steps [default: 0.02]
    #[arg(long, value_name = "E", value_parser = positive, allow_hyphen_values = true)]
    flow_step: Option<f64>,
    /// Action whose gradient it follows [default: wilson]
    #[arg(long, value_name = "NAME", value_enum)]
    flow_action: Option<Action>,
    /// Show energy and charge once in so many steps; t0 and w0 use all steps [default: 1]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..), allow_hyphen_values = true)]
    flow_every: Option<u32>,
    #[command(flatten)]
    loops: LoopFlags,
    /// Add a line of JSON for each configuration to this file, as soon as it is measured; those that have one are left out
    #[arg(short, long, value_name = "FILE.jsonl")]
    output: Option<PathBuf>,
    #[command(flatten)]
    read: ReadFlags,
}

/// The action of the flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Action {
    /// Plaquettes
    Wilson,
    /// Symanzik's at tree level, with rectangles
    Symanzik,
    /// The same with forces of neighbours, without errors of order a² (Ramos and Sint 2016)
    Zeuthen,
}

fn positive(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(x) if x > 0.0 && x.is_finite() => Ok(x),
        _ => Err(format!("'{text}' is not a number above 0")),
    }
}

/// After so many it is told how long all of them take, should that be more seconds than these.
const TIMED: u64 = 5;
const LONG: f64 = 600.0;

/// Where the flow goes, and how.
struct FlowCourse {
    end: f64,
    step: f64,
    action: FlowAction,
    every: u32,
}

impl FlowCourse {
    /// From the flags; none without `--flow`, which the others then have nothing to do with.
    fn of(args: &MeasureArguments) -> Outcome<Option<Self>> {
        let Some(end) = args.flow else {
            let given = [
                ("--flow-step", args.flow_step.is_some()),
                ("--flow-action", args.flow_action.is_some()),
                ("--flow-every", args.flow_every.is_some()),
            ];
            return match given.iter().find(|(_, given)| *given) {
                Some((flag, _)) => Err(Failure::refused(format!("{flag} needs --flow: give --flow T, too"))),
                None => Ok(None),
            };
        };
        let action = match args.flow_action.unwrap_or(Action::Wilson) {
            Action::Wilson => FlowAction::Wilson,
            Action::Symanzik => FlowAction::Symanzik,
            Action::Zeuthen => FlowAction::Zeuthen,
        };
        let (step, every) = (args.flow_step.unwrap_or(0.02), args.flow_every.unwrap_or(1));
        let course = FlowCourse { end, step, action, every };
        if course.steps() > MOST_STEPS {
            let (steps, shortest) = (text::rounded(end / step, 2), text::number(end / MOST_STEPS as f64));
            return Err(Failure::refused(format!(
                "--flow {} in steps of {} is {steps} steps of three forces each, and there may be {MOST_STEPS}: ask for \
                 an earlier time, or for a --flow-step of {shortest} or more",
                text::number(end),
                text::number(step)
            )));
        }
        Ok(Some(course))
    }
    fn record(&self) -> FlowInput {
        FlowInput { end: self.end, step: self.step, action: self.action.name().into(), every: self.every }
    }
    fn steps(&self) -> u64 {
        (self.end / self.step - 1e-9).ceil().max(1.0) as u64
    }
}

/// Measures all files on the device.
pub fn run(args: &MeasureArguments, context: &Context) -> Outcome {
    let (choice, comm) = (context.device_choice()?, &context.comm);
    let course = comm.agree(FlowCourse::of(args))?;
    let loops = comm.agree(LoopTask::of(&args.loops))?;
    if loops.is_some() && comm.size() > 1 {
        let why =
            format!("--loops is computed on the host of one process, not of {}: start it without mpirun", comm.size());
        return Err(Failure::refused(why).shared());
    }
    let reading = args.read.reading();
    // All headers before the work.
    let lattice = |path: &PathBuf| lattice_of(path, &reading, comm);
    let files = named::all_matches(&args.files, comm)?;
    let lattices = files.iter().map(lattice).collect::<Outcome<Vec<_>>>()?;
    for (path, lattice) in files.iter().zip(&lattices) {
        comm.agree(loops.as_ref().map_or(Ok(()), |loops| loops.check(path, *lattice)))?;
    }
    let configurations = Configured::all(&files, comm)?;
    let device = choice.open(comm)?;
    let input = object(&MeasurementInput {
        flow: course.as_ref().map(FlowCourse::record),
        loops: loops.as_ref().map(LoopTask::record),
        reunitarise: reading.options.reunitarise,
        record: reading.options.record,
    });
    let record = args.output.clone().map(|path| LineFile::open(path, input, &configurations, comm)).transpose()?;
    let (course, loops) = (course.as_ref(), loops.as_ref());
    let one = Task { choice: &choice, device: &device, reading: &reading, course, loops, context };
    let all = configurations.into_iter().zip(lattices);
    let (lines, ended) = measure_all(record.as_ref(), all, &context.session, |configuration, lattice| {
        one.measure(configuration, lattice, record.as_ref())
    })?;
    let (backend, device) = (device.name().into(), device.describe());
    let record = MeasureRecord { configurations: lines, backend, device };
    context.output.record(&record, String::new).and(ended)
}

/// How each configuration is measured.
struct Task<'a> {
    choice: &'a DeviceChoice,
    device: &'a Device,
    reading: &'a Reading,
    course: Option<&'a FlowCourse>,
    loops: Option<&'a LoopTask>,
    context: &'a Context,
}

impl Task<'_> {
    /// *Collective.* Measures one, and prints and notes it.
    fn measure(
        &self,
        configuration: &mut Configured,
        lattice: Lattice,
        record: Option<&LineFile<MeasurementLine>>,
    ) -> Outcome<MeasurementLine> {
        let (comm, path) = (&self.context.comm, configuration.typed.clone());
        // Rectangles reach two steps.
        let layout = self.choice.layout.cut(comm, lattice, 2)?;
        if record.is_some() {
            configuration.hold(comm)?;
        }
        let file = read_gauge(&path, self.reading, &layout, comm)?;
        let (part, read) = (Part::new(layout.local(), layout.grid()), 576 * layout.local().volume());
        let mut needs =
            vec![("links as read from the host", read), ("links in double", part.links_bytes(Precision::Double))];
        if let Some(course) = self.course {
            needs.extend(Flow::needs(course.action, part));
        }
        if let Some(loops) = self.loops {
            needs.extend(loops.needs(part));
            require_host_memory(comm, layout.local(), loops.host_bytes_per_site(lattice), &path.display().to_string())?;
        }
        needs.extend(Exchanges::of(part).border(Precision::Double).needs());
        self.device.require_all(comm, &needs, "the measurement")?;
        let work = ProgressLine { configuration: Some(path.clone()), ..ProgressLine::of("measure") };
        let steps = self.course.map_or(0, FlowCourse::steps);
        let progress = Progress::new(&self.context.session, work, steps);
        let found = {
            let backend = self.device.backend();
            let domain = layout.domain(backend)?;
            measure(&domain, &path, &file.gauge, (self.course, self.loops), &progress, &self.context.session).and_then(
                |found| {
                    domain.release()?;
                    Ok(found)
                },
            )
        };
        progress.finish();
        let found = found?;
        let line = found.line(&path, lattice);
        let line = match record {
            Some(record) => record.add(configuration, line, comm)?,
            None => line,
        };
        self.context.output.part(&format!("{} on {lattice}\n{}", path.display(), found.text()))?;
        Ok(line)
    }
}

/// What was found of a configuration.
struct ConfigurationValues {
    loops: LoopMeans,
    /// At the start, and after each step of the flow.
    points: Vec<FlowPoint>,
    /// Which of them are shown.
    shown: Vec<usize>,
    flowed: bool,
    wilson_loops: Option<Vec<WilsonLoops>>,
}

fn measure(
    domain: &Domain,
    path: &Path,
    gauge: &HostGauge,
    (course, loops_task): (Option<&FlowCourse>, Option<&LoopTask>),
    progress: &Progress,
    session: &Session,
) -> Outcome<ConfigurationValues> {
    let thin = GaugeField::upload(domain, gauge)?;
    let loops = LoopMeans::of(&thin)?;
    let (mut points, mut shown) = (vec![FlowPoint::of(&thin, 0.0)?], vec![0]);
    if !loops.is_finite() || !is_finite(&points[0]) {
        let why = "its loops are NaN, because links are too far from SU(3): --reunitarise projects them to it, or tells \
                   which one cannot be";
        return Err(Failure::failed(format!("{}: {why}", path.display())).shared());
    }
    let wilson_loops = loops_task.map(|task| task.measure(&thin, gauge, path, session)).transpose()?;
    if let Some(course) = course {
        let mut flow = Flow::new(&thin, course.action)?;
        let (steps, clock) = (course.steps(), Instant::now());
        for number in 1..=steps {
            // The last one ends where it should.
            flow.step(course.step.min(course.end - flow.time())).map_err(Failure::failed)?;
            progress.at(number, |line| {
                line.flow_time = Some(flow.time());
                String::new()
            });
            if number == TIMED {
                let whole = clock.elapsed().as_secs_f64() * steps as f64 / TIMED as f64;
                if whole > LONG {
                    info!("{}: {steps} steps of the flow take about {}", path.display(), text::seconds(whole));
                }
            }
            if session.is_stopped(number as usize) {
                let why = format!("ended at t = {:.4} of the flow", flow.time());
                return Err(session.stopped(why));
            }
            // At every step, so that t0 and w0 do not depend on how many are shown.
            let point = flow.look()?;
            if !is_finite(&point) {
                let (path, time, step) = (path.display(), flow.time(), course.step);
                let why = format!(
                    "{path}: the flow is NaN at t = {time:.4}: take a smaller --flow-step than {step}, such as 0.02"
                );
                return Err(Failure::failed(why).shared());
            }
            points.push(point);
            if number.is_multiple_of(u64::from(course.every)) || number == steps {
                shown.push(points.len() - 1);
            }
        }
    }
    Ok(ConfigurationValues { loops, flowed: course.is_some(), points, shown, wilson_loops })
}

/// Whether energies and charge, which are sums over all processes, are numbers.
fn is_finite(point: &FlowPoint) -> bool {
    point.clover.energy().is_finite() && point.clover.charge.is_finite() && point.plaquette_energy.is_finite()
}

impl ConfigurationValues {
    fn shown(&self) -> impl Iterator<Item = &FlowPoint> {
        self.shown.iter().map(|k| &self.points[*k])
    }
    fn line(&self, path: &Path, lattice: Lattice) -> MeasurementLine {
        let scale = |of: fn(&[FlowPoint], f64) -> Option<f64>| self.flowed.then(|| of(&self.points, 0.3));
        MeasurementLine {
            origin: LineOrigin::default(),
            file: path.into(),
            lattice: lattice.size(),
            loops: observables::loops(&self.loops),
            field_strength: observables::field_strength(&self.points[0].clover),
            flow: if self.flowed { self.shown().map(observables::flow_point).collect() } else { Vec::new() },
            t0: scale(scale_t0),
            w0: scale(scale_w0),
            wilson_loops: self.wilson_loops.iter().flatten().map(observables::wilson_loops).collect(),
        }
    }
    fn text(&self) -> String {
        let first = &self.points[0].clover;
        let mut text = self.loops.text() + &ENERGY_DENSITY.line_of(first.energy()) + &CHARGE.line_of(first.charge);
        if self.flowed {
            let _ = writeln!(text, "{:>10} {:>12} {:>12} {:>12}", FLOW_TIME.name, "E", "t^2 E", CHARGE.key);
            for p in self.shown() {
                let (energy, scaled, charge) = (p.clover.energy(), p.scaled(), p.clover.charge);
                let _ = writeln!(text, "{:>10.4} {energy:>12.8} {scaled:>12.8} {charge:>+12.6}", p.time);
            }
            for (quantity, scale) in [(&T0, scale_t0(&self.points, 0.3)), (&W0, scale_w0(&self.points, 0.3))] {
                let value = |scale| format!("{} {}", quantity.number(scale), quantity.unit);
                text += &quantity.line(&scale.map_or("not reached".into(), value));
            }
        }
        text + &self.wilson_loops.as_deref().map_or_else(String::new, loops::text)
    }
}
