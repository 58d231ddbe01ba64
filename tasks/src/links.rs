//! Links of a configuration in host memory, for interfaces that keep links beside a device: files, measurements, smearing, flow, gauge
//! fixing and heat bath.
use crate::bounds::{at_most, number, positive};
use crate::dirac::check;
use crate::ensemble::failed;
use crate::grid_device::GridDevice;
use crate::link_smearing::SmearingRequest;
use crate::{Failure, Outcome, observables};
use ferrite::field::GaugeField;
use ferrite::field::host::HostGauge;
use ferrite::files::formats::endings_of_gauge_files;
use ferrite::files::{
    Checksum, FileFormat, FilePrecision, GaugeFile, ReadOptions, WriteOptions, inspect, read_gauge, write_gauge,
};
use ferrite::gauge::fixing::relax::{Gauge, Relaxation, omega_for};
use ferrite::gauge::measure;
use ferrite::gauge::quenched::{Generator, MOST_PASSES, Start};
use ferrite::lattice::Section;
use ferrite::observables::field_strength::field_strengths;
use ferrite::observables::flow::{Flow, FlowAction, FlowPoint, MOST_FLOW_STEPS, scale_t0, scale_w0};
use ferrite::observables::loops::LoopMeans;
use ferrite_records::links::{FlowSteps, LinksDescription, MeasuredLoops};
use serde::Deserialize;
use std::ops::ControlFlow;
use std::path::Path;
use std::sync::Arc;

/// Links on a part of the lattice. They never change and may be shared.
#[derive(Clone)]
pub struct LatticeLinks {
    /// Links on the sites of the part.
    pub gauge: Arc<HostGauge>,
    /// Part of the lattice that the links are on.
    pub part: Section,
}

/// Function that work calls between its steps; it requests a stop by returning `Break`.
pub type GoOn<'a> = &'a mut dyn FnMut() -> ControlFlow<()>;

/// Request for a gradient flow: the action, the final flow time and the length of a step.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FlowRequest {
    /// Name of the action whose gradient the flow follows; `wilson` by default.
    #[serde(default = "wilson")]
    pub action: String,
    /// Flow time at the end, in units of a².
    pub time: f64,
    /// Length of a step in units of a²; the last step may be shorter.
    pub step: f64,
}

fn wilson() -> String {
    FlowAction::Wilson.name().into()
}

/// Request for gauge fixing by over-relaxation.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FixingRequest {
    /// Name of the gauge: `coulomb` or `landau`.
    pub gauge: String,
    /// Requested deviation θ from the gauge condition.
    pub tol: f64,
    /// Over-relaxation parameter; `None` for a value that depends on the extents of the lattice.
    pub overrelax: Option<f64>,
    /// Maximum number of sweeps; 20,000 by default.
    #[serde(default = "many_sweeps")]
    pub max_sweeps: usize,
}

fn many_sweeps() -> usize {
    20_000
}

/// Request for links of SU(3) gauge theory by heat bath and over-relaxation.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct QuenchedRequest {
    /// Gauge coupling β.
    pub beta: f64,
    /// Seed of the random numbers.
    pub seed: u64,
    /// Number of sweeps.
    pub sweeps: u32,
    /// Number of over-relaxation updates in a sweep; 4 by default.
    #[serde(default = "four")]
    pub overrelax: u32,
    /// Whether the chain starts from random links, not from unit links; unused if initial links are given.
    #[serde(default)]
    pub hot: bool,
    /// Number of heat-bath passes that generated the initial links with the same seed; 0 for links from elsewhere.
    #[serde(default)]
    pub passes: u32,
}

fn four() -> u32 {
    4
}

/// Links in a gauge, with the accuracy of the gauge condition.
pub struct FixedGauge {
    /// Links that satisfy the gauge condition.
    pub gauge: HostGauge,
    /// Deviation θ from the gauge condition.
    pub theta: f64,
    /// Gauge functional: mean of Re tr U / 3 over the directions of the gauge condition.
    pub functional: f64,
    /// Number of sweeps that were needed.
    pub sweeps: usize,
}

/// Reads links from a file. With a device of several processes, each process reads its part.
///
/// # Errors
/// A file that cannot be read, or whose data is wrong.
pub fn read(device: Option<&GridDevice>, path: &Path, options: &ReadOptions) -> Outcome<GaugeFile> {
    let Some(device) = device else { return Ok(read_gauge(path, options)?) };
    device.with_file(path, |file| {
        let part = device.place().section(inspect(file, options)?.lattice)?;
        Ok(read_gauge(file.part(&part), options)?)
    })
}

/// Returns the record of a file's properties, without its links.
pub fn describe(file: &GaugeFile) -> LinksDescription {
    let header = &file.header;
    let checksum = match &file.checksum {
        Checksum::Verified(kind) => format!("{} verified", kind.name()),
        Checksum::Absent => "none".into(),
        Checksum::Mismatch { kind, .. } => format!("{} differs", kind.name()),
    };
    LinksDescription {
        format: header.format.to_string(),
        precision: header.precision.to_string(),
        checksum,
        plaquette: header.plaquette.map(|printed| printed.value),
        link_trace: header.link_trace.map(|printed| printed.value),
        metadata: header.metadata.clone(),
        notes: header.notes.clone(),
    }
}

impl LatticeLinks {
    /// Writes links to a file, whose name determines the format. With a device of several processes, each process writes its part.
    ///
    /// # Errors
    /// A name of no format, and a file that cannot be written.
    pub fn write(
        &self,
        device: Option<&GridDevice>,
        path: &Path,
        (title, metadata): (String, Vec<(String, String)>),
        single: bool,
    ) -> Outcome {
        let Some(format) = FileFormat::of_gauge_file(path) else {
            let why = format!("the name does not determine the format; end it in {}", endings_of_gauge_files());
            return Err(Failure::refused(format!("{}: {why}", path.display())));
        };
        let precision = if single { FilePrecision::Single } else { FilePrecision::Double };
        let options = WriteOptions { format, precision, title, metadata, ..Default::default() };
        match device {
            None => Ok(write_gauge(path, &self.gauge, &options)?),
            Some(device) => {
                device.with_file(path, |file| Ok(write_gauge(file.part(&self.part), &self.gauge, &options)?))
            }
        }
    }
    /// *Collective.* Returns `[all, spatial, temporal, trace]`: the mean plaquettes of all planes, of the spatial and of the temporal
    /// planes, and the mean link trace of the whole lattice.
    ///
    /// # Errors
    /// Failures of the device.
    pub fn plaquettes(&self, device: Option<&GridDevice>) -> Outcome<[f64; 4]> {
        let (found, trace) = match device {
            None => (measure::plaquette(&self.gauge), measure::link_trace(&self.gauge)),
            Some(device) => self.on(device)?.plaquette()?,
        };
        Ok([found.mean, found.spatial, found.temporal, trace])
    }
    /// *Collective.* Returns the largest deviation of a link from SU(3) on the whole lattice: the maximum of ‖U U† − 1‖ and |det U − 1|.
    ///
    /// # Errors
    /// Failures of messages.
    pub fn unitarity(&self, device: Option<&GridDevice>) -> Outcome<f64> {
        let mine = measure::unitarity(&self.gauge).violation;
        let Some(device) = device else { return Ok(mine) };
        // `f64::max` would ignore NaN; `worse_residual` keeps it.
        Ok(device.comm().numbers(mine)?.into_iter().fold(mine, solvers::worse_residual))
    }
    /// *Collective.* Returns the means of plaquettes, rectangles and the Polyakov loop, the energy density and the topological charge.
    ///
    /// # Errors
    /// Failures of the device.
    pub fn loops(&self, device: &GridDevice) -> Outcome<MeasuredLoops> {
        let links = self.on(device)?;
        Ok(MeasuredLoops {
            loops: observables::loops(&LoopMeans::of(&links)?),
            field_strength: observables::field_strength(&field_strengths(&links)?),
        })
    }
    /// *Collective.* Returns the smeared links.
    ///
    /// # Errors
    /// An unknown smearing, a request to stop, and failures of the device.
    pub fn smeared(&self, device: &GridDevice, request: &SmearingRequest, go_on: GoOn<'_>) -> Outcome<HostGauge> {
        let smeared = request.smearing()?.smeared_while(&self.on(device)?, go_on)?;
        check(go_on)?;
        Ok(smeared.ok_or_else(Failure::stopped)?.download()?)
    }
    /// *Collective.* Returns the links at the end of a gradient flow, and the energy densities and topological charge at each step.
    ///
    /// # Errors
    /// An unknown action, a request to stop, and failures of the device.
    pub fn flowed(
        &self,
        device: &GridDevice,
        request: &FlowRequest,
        go_on: GoOn<'_>,
    ) -> Outcome<(HostGauge, FlowSteps)> {
        let FlowRequest { action, time, step } = request;
        positive("time", *time)?;
        positive("step", *step)?;
        number("time / step", time / step, "fewer steps", |steps| steps <= MOST_FLOW_STEPS as f64)?;
        let Some(action) = FlowAction::ALL.into_iter().find(|known| known.name() == action) else {
            let names = FlowAction::ALL.map(FlowAction::name).join(", ");
            return Err(Failure::refused(format!("'{action}' is not an action of the flow: choose one of {names}")));
        };
        let mut flow = Flow::new(&self.on(device)?, action)?;
        let mut points = vec![flow.look()?];
        // All steps have the requested length except the last, which may be shorter.
        while time - flow.time() > 1e-9 * step {
            check(go_on)?;
            flow.step(step.min(time - flow.time())).map_err(failed)?;
            points.push(flow.look()?);
        }
        let point =
            |point: &FlowPoint| [point.time, point.clover.energy(), point.plaquette_energy, point.clover.charge];
        let (t0, w0) = (scale_t0(&points, 0.3), scale_w0(&points, 0.3));
        Ok((flow.links().download()?, FlowSteps { points: points.iter().map(point).collect(), t0, w0 }))
    }
    /// *Collective.* Returns the links in the requested gauge.
    ///
    /// # Errors
    /// An unknown gauge, sweeps that do not suffice, links too far from SU(3), a request to stop, and failures of the device.
    pub fn fixed(&self, device: &GridDevice, request: &FixingRequest, go_on: GoOn<'_>) -> Outcome<FixedGauge> {
        let kind = match request.gauge.as_str() {
            "coulomb" => Gauge::Coulomb,
            "landau" => Gauge::Landau,
            other => {
                return Err(Failure::refused(format!("'{other}' is not a gauge: choose 'coulomb' or 'landau'")));
            }
        };
        number("tol", request.tol, "a number of at least 1e-28", |tol| tol >= 1e-28)?;
        if let Some(overrelax) = request.overrelax {
            number("overrelax", overrelax, "a number of at least 1 and below 2", |x| (1.0..2.0).contains(&x))?;
        }
        let omega = request.overrelax.unwrap_or_else(|| omega_for(self.part.global, kind));
        let mut relaxation = Relaxation::new(&device.domain(&self.part)?, &self.gauge, kind, omega)?;
        let mut state = relaxation.state()?;
        // The loop also ends if θ is NaN; the check after it reports this.
        while state.theta > request.tol {
            check(go_on)?;
            if relaxation.sweeps() >= request.max_sweeps {
                let (theta, sweeps, tol) = (state.theta, relaxation.sweeps(), request.tol);
                let why = format!(
                    "theta is {theta:.3e} after {sweeps} sweeps, but {tol:e} was requested: increase max_sweeps, or \
                     change overrelax"
                );
                return Err(Failure::failed(why));
            }
            let rest = 10.min(request.max_sweeps - relaxation.sweeps());
            state = relaxation.relax_while(rest, go_on)?;
        }
        if !state.theta.is_finite() {
            return Err(Failure::refused(
                "theta is not a number, because the links are too far from SU(3): read them with reunitarise=True",
            ));
        }
        let sweeps = relaxation.sweeps();
        Ok(FixedGauge { gauge: relaxation.finish()?, theta: state.theta, functional: state.functional, sweeps })
    }
    fn on(&self, device: &GridDevice) -> Outcome<GaugeField> {
        Ok(GaugeField::upload(&device.domain(&self.part)?, &self.gauge)?)
    }
}

/// *Collective.* Generates links by heat bath and over-relaxation, from the links `start` or from unit or random links. Returns the last
/// links and the mean plaquette after each sweep.
///
/// # Errors
/// Links of another part of the lattice, a request to stop, and failures of the device.
pub fn quenched(
    device: &GridDevice,
    part: &Section,
    request: &QuenchedRequest,
    start: Option<&LatticeLinks>,
    go_on: GoOn<'_>,
) -> Outcome<(HostGauge, Vec<f64>)> {
    if start.is_some_and(|links| links.part != *part) {
        let why = "the initial links are on another lattice, or partitioned differently among the processes: give \
                   links on this lattice and device";
        return Err(Failure::refused(why));
    }
    number("beta", request.beta, "a number from 0 to 1e6", |beta| (0.0..=1e6).contains(&beta))?;
    let (sweeps, passes) = (u64::from(request.sweeps), 1 + u64::from(request.overrelax));
    at_most("sweeps (1 + overrelax)", sweeps.saturating_mul(passes), MOST_PASSES)?;
    at_most("passes + sweeps", sweeps + u64::from(request.passes), u32::MAX.into())?;
    let start = match start {
        Some(links) => Start::Links(&links.gauge, request.passes),
        None if request.hot => Start::Hot,
        None => Start::Cold,
    };
    let mut generator = Generator::new(&device.domain(part)?, start, request.beta, request.seed)?;
    let mut plaquettes = Vec::new();
    for _ in 0..request.sweeps {
        check(go_on)?;
        generator.sweep_while(1, request.overrelax, &mut |_| go_on())?;
        check(go_on)?;
        plaquettes.push(generator.plaquette()?.mean);
    }
    Ok((generator.gauge()?, plaquettes))
}
