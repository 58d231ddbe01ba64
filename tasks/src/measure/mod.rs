//! Measurements of links: loops, energy density and topological charge, also along the gradient flow, and Wilson loops.
mod loops;

use crate::configured::Configured;
use crate::device::{Device, DeviceChoice};
use crate::failure::ReadBy;
use crate::fields::{Reading, lattice_of, read_gauge, require_host_memory};
use crate::line_file::{LineFile, measure_all};
use crate::progress::Progress;
use crate::session::Session;
use crate::{Failure, Outcome, named, observables, text};
use ferrite::Precision;
use ferrite::domain::{Domain, Part};
use ferrite::field::GaugeField;
use ferrite::field::host::HostGauge;
use ferrite::halo::Exchanges;
use ferrite::lattice::Lattice;
use ferrite::observables::flow::{Flow, FlowAction, FlowPoint, MOST_FLOW_STEPS, scale_t0, scale_w0};
use ferrite::observables::loops::LoopMeans;
use ferrite_records::measure::{FlowInput, LineOrigin, MeasureRecord, MeasurementInput, MeasurementLine};
use ferrite_records::object;
use ferrite_records::progress::ProgressLine;
pub use loops::LoopRequest;
use std::path::{Path, PathBuf};
use std::time::Instant;
use tracing::info;

/// Gradient flow of a measurement: its action, its final flow time and its steps.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct FlowCourse {
    /// Last flow time in units of a².
    end: f64,
    /// Length of a step in units of a².
    step: f64,
    /// Action whose gradient the flow follows.
    action: FlowAction,
    /// Number of steps between points in the record.
    every: u32,
}

impl FlowCourse {
    /// Returns the flow up to time `end` in steps of length `step`, with every `every`-th point in the record.
    ///
    /// # Errors
    /// More steps than [`MOST_FLOW_STEPS`]; `by` says how users give them.
    pub fn new(end: f64, step: f64, action: FlowAction, every: u32, by: ReadBy) -> Outcome<Self> {
        let request = FlowCourse { end, step, action, every };
        if request.steps() <= MOST_FLOW_STEPS {
            return Ok(request);
        }
        let (flow, flow_step) = (by.spelled("flow", &text::number(end)), by.spelled("flow-step", ""));
        let (steps, shortest) = (text::rounded(end / step, 2), text::number(end / MOST_FLOW_STEPS as f64));
        Err(Failure::refused(format!(
            "{flow} in steps of {} takes {steps} steps of three forces each, but at most {MOST_FLOW_STEPS} are allowed: \
             give an earlier flow time, or a {flow_step} of at least {shortest}",
            text::number(step)
        )))
    }
    fn record(&self) -> FlowInput {
        FlowInput { end: self.end, step: self.step, action: self.action.name().into(), every: self.every }
    }
    fn steps(&self) -> u64 {
        (self.end / self.step - 1e-9).ceil().max(1.0) as u64
    }
}

/// Request for measurements on configurations.
pub struct MeasureRequest {
    /// Files of the configurations.
    pub files: Vec<PathBuf>,
    /// Options for reading the configurations.
    pub reading: Reading,
    /// Gradient flow to follow; `None` without a flow.
    pub flow: Option<FlowCourse>,
    /// Wilson loops to measure; `None` without loops.
    pub loops: Option<LoopRequest>,
    /// Choice of the device that computes.
    pub device: DeviceChoice,
    /// File with a line for each configuration, from which the same request resumes; `None` without a file.
    pub output: Option<PathBuf>,
}

/// *Collective.* Measures configurations one by one, and calls `each` with the line of a configuration as soon as it is measured. Returns
/// the lines of all configurations. If a measurement fails after the first line, returns the lines so far together with the failure.
///
/// # Errors
/// Whatever is found wrong before the first configuration is measured, and failures of the first one.
pub fn measure(
    request: &MeasureRequest,
    session: &Session,
    each: impl Fn(&MeasurementLine) -> Outcome,
) -> Outcome<(MeasureRecord, Outcome)> {
    let (comm, MeasureRequest { reading, flow, loops, .. }) = (&session.comm, request);
    if loops.is_some() && comm.size() > 1 {
        let (loops, size) = (reading.by.spelled("loops", ""), comm.size());
        let why = format!(
            "{loops}: only a single process can compute Wilson loops, but {size} processes were started: run ferrite \
             measure without mpirun"
        );
        return Err(Failure::refused(why).shared());
    }
    // All headers are read before the work, so that mistakes in files are found early.
    let files = named::all_matches(&request.files, comm)?;
    let lattices = files.iter().map(|path| lattice_of(path, reading, comm)).collect::<Outcome<Vec<_>>>()?;
    for (path, lattice) in files.iter().zip(&lattices) {
        comm.agree(loops.map_or(Ok(()), |loops| loops.check(path, *lattice, reading.by)))?;
    }
    let configurations = Configured::all(&files, comm)?;
    let device = request.device.open(comm)?;
    let input = object(&MeasurementInput {
        flow: flow.as_ref().map(FlowCourse::record),
        loops: loops.as_ref().map(LoopRequest::record),
        reunitarise: reading.options.reunitarise,
        record: reading.options.record,
    });
    let file = request.output.clone().map(|path| LineFile::open(path, input, &configurations, comm)).transpose()?;
    let measurement = Measurement { request, device: &device, session };
    let all = configurations.into_iter().zip(lattices);
    let (configurations, ended) = measure_all(file.as_ref(), all, session, |configuration, lattice| {
        if file.is_some() {
            configuration.hold(comm)?;
        }
        let mut line = measurement.line(&configuration.typed, lattice)?;
        if let Some(file) = &file {
            line = file.add(configuration, line, comm)?;
        }
        each(&line).map(|()| line)
    })?;
    let (backend, device) = (device.name().into(), device.describe());
    Ok((MeasureRecord { configurations, backend, device }, ended))
}

/// Number of steps after which a note predicts the total time, if this is more than [`LONG`] seconds.
const TIMED: u64 = 5;
const LONG: f64 = 600.0;

/// Measurement of configurations, one after the other.
struct Measurement<'a> {
    request: &'a MeasureRequest,
    device: &'a Device,
    session: &'a Session,
}

impl Measurement<'_> {
    /// *Collective.* Measures one configuration.
    fn line(&self, path: &Path, lattice: Lattice) -> Outcome<MeasurementLine> {
        let (comm, MeasureRequest { reading, flow, loops, .. }) = (&self.session.comm, self.request);
        // Rectangles need links at a distance of two sites.
        let layout = self.request.device.layout.cut(comm, lattice, 2)?;
        let file = read_gauge(path, reading, &layout, comm)?;
        let (part, read) = (Part::new(layout.local(), layout.grid()), 576 * layout.local().volume());
        let mut needs =
            vec![("transfer of links from the host", read), ("links in double", part.links_bytes(Precision::Double))];
        if let Some(flow) = flow {
            needs.extend(Flow::needs(flow.action, part));
        }
        if let Some(loops) = loops {
            needs.extend(loops.needs(part));
            require_host_memory(comm, layout.local(), loops.host_bytes_per_site(lattice), &path.display().to_string())?;
        }
        needs.extend(Exchanges::of(part).border(Precision::Double).needs());
        self.device.require_all(comm, &needs, "the measurement")?;
        let work = ProgressLine { configuration: Some(path.into()), ..ProgressLine::of("measure") };
        let progress = Progress::new(self.session, work, flow.map_or(0, |flow| flow.steps()));
        let found = {
            let domain = layout.domain(self.device.backend())?;
            self.found(&domain, path, &file.gauge, &progress).and_then(|found| {
                domain.release()?;
                Ok(found)
            })
        };
        progress.finish();
        found
    }
    /// *Collective.* Measures links on a device, also along the gradient flow.
    fn found(&self, domain: &Domain, path: &Path, gauge: &HostGauge, progress: &Progress) -> Outcome<MeasurementLine> {
        let MeasureRequest { reading, flow, loops: wilson_loops, .. } = self.request;
        let device_links = GaugeField::upload(domain, gauge)?;
        let loops = LoopMeans::of(&device_links)?;
        let start = FlowPoint::of(&device_links, 0.0)?;
        if !loops.is_finite() || !is_finite(&start) {
            let reunitarise = reading.by.spelled("reunitarise", "");
            let why = format!(
                "the loops are not numbers, because links are too far from SU(3): {reunitarise} projects them, or \
                 reports a link that cannot be projected"
            );
            return Err(Failure::failed(format!("{}: {why}", path.display())).shared());
        }
        let wilson_loops = match wilson_loops {
            Some(request) => request.measure(&device_links, gauge, path, self.session)?,
            None => Vec::new(),
        };
        let points = flow.map(|flow| self.follow(&flow, &device_links, start, path, progress)).transpose()?;
        let scale = |of: fn(&[FlowPoint], f64) -> Option<f64>| points.as_ref().map(|points| of(points, 0.3));
        let shown = flow.zip(points.as_ref()).map(|(flow, points)| shown(points, flow.every));
        Ok(MeasurementLine {
            origin: LineOrigin::default(),
            file: path.into(),
            lattice: domain.global().size(),
            loops: observables::loops(&loops),
            field_strength: observables::field_strength(&start.clover),
            flow: shown.into_iter().flatten().map(observables::flow_point).collect(),
            t0: scale(scale_t0),
            w0: scale(scale_w0),
            wilson_loops: wilson_loops.iter().map(observables::wilson_loops).collect(),
        })
    }
    /// *Collective.* Returns the points of the flow at the start and after each step.
    fn follow(
        &self,
        request: &FlowCourse,
        links: &GaugeField,
        start: FlowPoint,
        path: &Path,
        progress: &Progress,
    ) -> Outcome<Vec<FlowPoint>> {
        let mut flow = Flow::new(links, request.action)?;
        let (mut points, steps, clock) = (vec![start], request.steps(), Instant::now());
        for number in 1..=steps {
            // The last step is shortened so that it ends at the requested time.
            flow.step(request.step.min(request.end - flow.time())).map_err(Failure::failed)?;
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
            if self.session.is_stopped(number as usize) {
                return Err(self.session.stopped(format!("interrupted at flow time t = {:.4}", flow.time())));
            }
            // Observables are computed at every step, so that t₀ and w₀ do not depend on the number of points in the record.
            let point = flow.look()?;
            if !is_finite(&point) {
                let (path, time, step) = (path.display(), flow.time(), request.step);
                let (flow_step, half) = (self.request.reading.by.spelled("flow-step", ""), text::number(step / 2.0));
                let why = format!(
                    "{path}: the energy or the topological charge is not a number at flow time t = {time:.4}: use a \
                     smaller {flow_step} than {step}, such as {half}"
                );
                return Err(Failure::failed(why).shared());
            }
            points.push(point);
        }
        Ok(points)
    }
}

/// Returns the points for the record: the first one, every `every`-th after it, and the last.
fn shown(points: &[FlowPoint], every: u32) -> impl Iterator<Item = &FlowPoint> {
    let (every, last) = (every as usize, points.len() - 1);
    points.iter().enumerate().filter(move |(k, _)| k.is_multiple_of(every) || *k == last).map(|(_, point)| point)
}

/// Returns whether the energies and the charge of a point are finite. They are sums over all processes, so all agree.
fn is_finite(point: &FlowPoint) -> bool {
    point.clover.energy().is_finite() && point.clover.charge.is_finite() && point.plaquette_energy.is_finite()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::communicator::RunCommunicator;
    use crate::keys::EVERY_INPUT;
    use comms::Solo;
    use ferrite::files::{FileFormat, WriteOptions, write_gauge};
    use ferrite::gauge::generate::weak_field;
    use ferrite::observables::field_strength::FieldStrengths;
    use ferrite_inputs::Input;
    use std::cell::RefCell;
    use std::sync::Arc;

    #[test]
    fn flows_have_as_many_steps_as_they_take() {
        let flow = |end, step| FlowCourse::new(end, step, FlowAction::Wilson, 2, ReadBy::Keys);
        let steps = |end, step| flow(end, step).unwrap().steps();
        assert_eq!([steps(0.1, 0.02), steps(0.1, 0.03), steps(0.01, 0.02)], [5, 4, 1]);
        let why = flow(1e4, 1e-7).unwrap_err().message;
        assert!(why.starts_with("flow = 10000 in steps of 1e-7 takes 1.00e11 steps of three forces each"), "{why}");
        assert!(why.ends_with("or a flow-step of at least 0.01"), "{why}");
    }

    #[test]
    fn the_first_and_the_last_point_are_shown() {
        let clover = FieldStrengths { space: 0.0, time: 0.0, charge: 0.0 };
        let point = |time| FlowPoint { time: f64::from(time), clover, plaquette_energy: 0.0 };
        let points: Vec<FlowPoint> = (0..6).map(point).collect();
        let times = |every| shown(&points, every).map(|point| point.time as usize).collect::<Vec<_>>();
        assert_eq!([times(1), times(2), times(9)], [vec![0, 1, 2, 3, 4, 5], vec![0, 2, 4, 5], vec![0, 5]]);
    }

    #[test]
    fn lines_come_one_by_one_and_are_not_measured_again() {
        let room = std::env::temp_dir().join(format!("ferrite-measure-{}", std::process::id()));
        std::fs::create_dir_all(&room).unwrap();
        let lattice = Lattice::new([4, 2, 2, 4]).unwrap();
        let file = |seed| {
            let path = room.join(format!("weak.{seed}.ildg"));
            let format = FileFormat::of_gauge_file(&path).unwrap();
            let links = weak_field(lattice, seed, 0.1);
            write_gauge(&path, &links, &WriteOptions { format, ..Default::default() }).unwrap();
            path
        };
        let mut input = Input::new(&EVERY_INPUT);
        input.flag("backend", Some("cpu"));
        let mut request = MeasureRequest {
            files: vec![file(1), file(2)],
            reading: Reading::default(),
            flow: Some(FlowCourse::new(0.04, 0.02, FlowAction::Wilson, 1, ReadBy::Keys).unwrap()),
            loops: None,
            device: DeviceChoice::of(&mut input),
            output: Some(room.join("lines.jsonl")),
        };
        let session = Session::new(RunCommunicator::of(Solo::new()), Arc::new(()));
        let run = |request: &MeasureRequest| {
            let seen = RefCell::new(Vec::new());
            let keep = |line: &MeasurementLine| {
                seen.borrow_mut().push(line.clone());
                Ok(())
            };
            let (record, ended) = measure(request, &session, keep).unwrap();
            ended.unwrap();
            (record.configurations, seen.into_inner())
        };
        let (first, seen) = run(&request);
        assert_eq!((first.len(), &first), (2, &seen));
        assert!(first.iter().all(|line| line.flow.len() == 3 && line.flow[2].t == 0.04));
        // A third configuration is measured, the others are there already.
        request.files.push(file(3));
        let (all, seen) = run(&request);
        assert_eq!((all.len(), &all[..2], &all[2..]), (3, &first[..], &seen[..]));
        std::fs::remove_dir_all(room).unwrap();
    }
}
