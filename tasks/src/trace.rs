//! Traces of M⁻¹ and Γ M⁻¹ from noise vectors: condensates and quark loops.
use crate::batch::{BatchTask, Batches, RIGHT_HAND_SIDE};
use crate::configured::Configured;
use crate::device::Device;
use crate::fields::require_host_memory;
use crate::host_links::LinksRead;
use crate::keys;
use crate::layout::Layout;
use crate::line_file::{LineFile, measure_all};
use crate::plan::{self, Systems, configuration_header, reading};
use crate::progress::Watch;
use crate::session::Session;
use crate::solve::{self, Solve};
use crate::{Failure, Outcome, named};
use ferrite::field::host::{ColourVector, HostField, Spinor};
use ferrite::field::{FieldShape, FullField};
use ferrite::observables::traces::{Dilution, NoiseKind, NoiseSource, TraceField};
use ferrite::solve::Configuration;
use ferrite::{FermionKind, Precision};
use ferrite_inputs::Input;
use ferrite_records::measure::{
    DilutedTimes, DilutionInput, LineOrigin, NoiseInput, TraceInput, TraceLine, TraceRecord, TracesRecord,
};
use ferrite_records::object;
use ferrite_records::progress::ProgressLine;
use num_complex::Complex64;
use serde_json::{Map, Value};
use solvers::worse_residual;
use std::path::{Path, PathBuf};
use std::time::Instant;
use tracing::info;

/// Settings of the noise vectors for traces.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TraceNoise {
    /// Number of noise vectors on each configuration.
    pub vectors: u32,
    /// Seed of the noise; each configuration uses a different seed made from it.
    pub seed: u64,
    /// Type of the noise: Z2 or Z4.
    pub kind: NoiseKind,
    /// Dilution: the parts of a noise vector that are solved separately.
    pub dilution: Dilution,
}

impl TraceNoise {
    fn record(&self) -> NoiseInput {
        let Dilution { times, spin, colour, parity } = self.dilution;
        let times = match times {
            0 => None,
            usize::MAX => Some(DilutedTimes::Named("all".into())),
            times => Some(DilutedTimes::Every(times)),
        };
        let kind = match self.kind {
            NoiseKind::Z2 => "z2",
            NoiseKind::Z4 => "z4",
        };
        let dilution = DilutionInput { times, spin, colour, parity };
        NoiseInput { vectors: self.vectors, seed: Some(self.seed), kind: kind.into(), dilution }
    }
    /// Returns the source of noise vectors for a configuration.
    fn source(&self, configuration: &Configured) -> NoiseSource {
        NoiseSource { kind: self.kind, seed: self.seed ^ configuration.hash(), dilution: self.dilution }
    }
}

/// Request for traces on configurations.
pub struct TraceRequest {
    noise: TraceNoise,
    /// Keys on which solutions depend, with their values as typed.
    physics: Map<String, Value>,
    /// File of each configuration, with its solve.
    solves: Vec<(PathBuf, NoiseSolve)>,
    /// File with a line for each configuration, from which the same request resumes; `None` without a file.
    output: Option<PathBuf>,
}

/// Solve for noise vectors on a configuration.
struct NoiseSolve {
    solve: Solve,
    /// Number of parts into which dilution splits each noise vector.
    parts: usize,
}

impl NoiseSolve {
    /// Reads the input for a configuration. Fails with a list of all mistakes.
    fn of(input: &mut Input, path: &Path, noise: &TraceNoise) -> Outcome<Self> {
        input.put("gauge", &[path.display().to_string()], "CONFIGURATION");
        let read = reading(input);
        let kind = plan::definition(&mut input.clone()).map(|definition| definition.kind);
        let staggered = kind == Some(FermionKind::Staggered);
        if staggered && noise.dilution.spin {
            input.missing(format!("{}: staggered fields have no spin; remove spin", input.spelled("dilute", "spin")));
        }
        // A mistake in the file is not reported here, but together with the mistakes of the solve.
        let parts = match configuration_header(&mut input.clone(), &read).map(|header| header.lattice) {
            None => 1,
            Some(lattice) if staggered => noise.dilution.parts::<ColourVector>(lattice),
            Some(lattice) => noise.dilution.parts::<Spinor>(lattice),
        };
        // The number of sources affects the choice of the solver. The sources are placeholders for the noise vectors, which are made during
        // the measurement.
        let count = (parts * noise.vectors as usize).min(4096);
        input.put("source", &["random:1".into()], "--seed");
        input.put("sources", &[count.to_string()], "--noise");
        let solve = Solve::of(input, "the command line")?;
        if let Some(storage) = solve.plan.reconstruction.filter(|storage| storage.temporal) {
            let reconstruct = input.spelled("reconstruct", plan::name_of(&plan::RECONSTRUCTIONS, storage));
            let why =
                format!("{reconstruct}: `ferrite trace` does not support links in temporal gauge; use 18, 12 or 8");
            return Err(Failure::refused(why));
        }
        Ok(NoiseSolve { solve, parts })
    }
}

impl TraceRequest {
    /// *Collective.* Creates the request for the configurations, and reads the header of each. `add` adds the keys of a solve to the input.
    /// Lines are written to the file `output`, from which the same request resumes.
    ///
    /// # Errors
    /// All mistakes of the input on the first configuration that has any.
    pub fn read(
        files: &[PathBuf],
        noise: TraceNoise,
        output: Option<PathBuf>,
        session: &Session,
        add: impl Fn(&mut Input),
    ) -> Outcome<Self> {
        let mut input = Input::new(&keys::SOLVE);
        add(&mut input);
        let physics = keys::physics().chain(["masses"]);
        let physics = physics.filter_map(|key| Some((key.to_string(), input.get(key)?.text().into()))).collect();
        let files = named::all_matches(files, &session.comm)?;
        let solve = |path: PathBuf| NoiseSolve::of(&mut input.clone(), &path, &noise).map(|solve| (path, solve));
        let solves = session.comm.agree(files.into_iter().map(solve).collect::<Outcome<Vec<_>>>())?;
        Ok(TraceRequest { noise, physics, solves, output })
    }
    /// *Collective.* Measures the traces. Calls `each` for each configuration with its line and with a text that names the operator and the
    /// lattice. Returns the lines of all configurations. If a measurement fails after the first line, returns the lines so far together
    /// with the failure.
    ///
    /// # Errors
    /// Whatever is found wrong before the first configuration is measured, and failures of the first one.
    pub fn measure(
        &self,
        session: &Session,
        each: impl Fn(&TraceLine, &str) -> Outcome,
    ) -> Outcome<(TracesRecord, Outcome)> {
        let (comm, TraceRequest { noise, physics, solves, output }) = (&session.comm, self);
        let Some((_, NoiseSolve { solve: Solve { device, .. }, .. })) = solves.first() else {
            return Err(Failure::refused("no configuration was given: name at least one file").shared());
        };
        let files: Vec<PathBuf> = solves.iter().map(|(path, _)| path.clone()).collect();
        let configurations = Configured::all(&files, comm)?;
        let device = device.open(comm)?;
        let input = object(&TraceInput { solve: physics.clone(), noise: noise.record() });
        let file = output.clone().map(|path| LineFile::open(path, input, &configurations, comm)).transpose()?;
        let all = configurations.into_iter().zip(solves);
        let (configurations, ended) = measure_all(file.as_ref(), all, session, |configuration, (_, solve)| {
            let begin = Instant::now();
            if file.is_some() {
                configuration.hold(comm)?;
            }
            let measurement = TraceMeasurement { solve, noise, device: &device, session };
            let (mut line, headline) = measurement.line(configuration)?;
            line.seconds = begin.elapsed().as_secs_f64();
            if let Some(file) = &file {
                line = file.add(configuration, line, comm)?;
            }
            each(&line, &headline).map(|()| line)
        })?;
        let (backend, device) = (device.name().into(), device.describe());
        Ok((TracesRecord { configurations, backend, device }, ended))
    }
}

/// Traces from all noise vectors of a configuration.
struct FoundTraces {
    traces: Vec<TraceRecord>,
    residual: f64,
    iterations: usize,
}

/// Returns the mean over noise vectors and its error, each as `[re, im]`. The error from a single vector is NaN.
fn mean(noise: &[Complex64]) -> [[f64; 2]; 2] {
    let n = noise.len() as f64;
    let mean: Complex64 = noise.iter().sum::<Complex64>() / n;
    let spread = |of: fn(&Complex64) -> f64| {
        (noise.iter().map(|z| (of(z) - of(&mean)).powi(2)).sum::<f64>() / (n * (n - 1.0))).sqrt()
    };
    [[mean.re, mean.im], [spread(|z| z.re), spread(|z| z.im)]]
}

/// Measurement of the traces on a configuration.
struct TraceMeasurement<'a> {
    solve: &'a NoiseSolve,
    noise: &'a TraceNoise,
    device: &'a Device,
    session: &'a Session,
}

impl TraceMeasurement<'_> {
    /// *Collective.* Measures the traces on a configuration. Returns its line, and a text on operator and lattice for people.
    fn line(&self, configuration: &Configured) -> Outcome<(TraceLine, String)> {
        let (comm, NoiseSolve { solve, parts }) = (&self.session.comm, self.solve);
        let plan = &solve.plan;
        let (layout, kind) = (plan.cut(&solve.device.layout, comm)?, plan.operator.kind());
        solve.possible(layout.cut())?;
        let solves = parts * self.noise.vectors as usize;
        let needs = |together: usize| {
            let mut needs = solve.memory(layout.cut(), together);
            needs.push((
                "noise",
                2 * FieldShape::new(kind, Precision::Double, together).bytes(layout.local().half_volume()),
            ));
            needs
        };
        let name = format!("the solve on {}", plan.lattice);
        let task = BatchTask { device: self.device, comm, name: &name, noun: RIGHT_HAND_SIDE };
        let batches = task.split(solve.scheme.batch, solves, needs)?;
        let links = LinksRead::of(plan, &layout, comm)?.smeared(plan, self.device, &layout, self.session)?;
        info!("{}: {}", configuration.typed.display(), batches.describe());
        let FoundTraces { traces, residual, iterations } = match kind {
            FermionKind::Wilson => self.traces::<Spinor>(configuration, &links, &layout, &batches)?,
            FermionKind::Staggered => self.traces::<ColourVector>(configuration, &links, &layout, &batches)?,
        };
        let line = TraceLine {
            origin: LineOrigin::default(),
            file: configuration.typed.clone(),
            traces,
            residual,
            iterations,
            seconds: 0.0,
            system: plan.record(&links.operator),
        };
        Ok((line, plan.headline(&links.operator)))
    }
    /// *Collective.* Solves for all parts of all noise vectors in batches, and sums up the traces.
    fn traces<F: TraceField>(
        &self,
        configuration: &Configured,
        links: &LinksRead,
        layout: &Layout,
        batches: &Batches,
    ) -> Outcome<FoundTraces> {
        let (comm, NoiseSolve { solve, parts }) = (&self.session.comm, self.solve);
        let masses = match &solve.plan.systems {
            Systems::Masses(masses) => masses.clone(),
            Systems::One | Systems::Shifts(_) => vec![links.operator.mass()],
        };
        // Solves for several masses need the fields in host memory.
        let by_host = matches!(solve.plan.systems, Systems::Masses(_));
        let host = if by_host { (1 + masses.len()) * batches.largest() * size_of::<F>() } else { 0 };
        require_host_memory(comm, layout.local(), host + 576, "links and fields")?;
        let source = self.noise.source(configuration);
        let mut watch = Watch::new(solve.scheme.tol, ProgressLine::of("trace"), self.session);
        let mut sums = vec![vec![vec![Complex64::ZERO; F::GAMMAS]; masses.len()]; self.noise.vectors as usize];
        let (mut residual, mut iterations) = (0.0, 0);
        let domain = layout.domain(self.device.backend())?;
        {
            let on = links.links.on(&domain)?;
            let mut done = 0;
            for size in &batches.sizes {
                let noise = source.fields::<F>(&domain, done..done + size)?;
                watch.next_batch(*size);
                let solved = self.batch::<F>(&on, links, &noise, configuration, &mut watch)?;
                residual = worse_residual(residual, solved.residual);
                iterations += solved.iterations;
                for (mass, solutions) in solved.solutions.iter().enumerate() {
                    for (k, found) in F::sums(&noise, solutions)?.into_iter().enumerate() {
                        let sums = &mut sums[(done + k) / parts][mass];
                        sums.iter_mut().zip(found).for_each(|(sum, more)| *sum += more);
                    }
                }
                done += size;
            }
        }
        domain.release()?;
        watch.finish();
        let mut flat: Vec<f64> = sums.iter().flatten().flatten().flat_map(|z| [z.re, z.im]).collect();
        comm.sum(&mut flat)?;
        let volume = layout.lattice().volume() as f64;
        let at = |vector: usize, mass: usize, gamma: usize| {
            let place = 2 * ((vector * masses.len() + mass) * F::GAMMAS + gamma);
            Complex64::new(flat[place], flat[place + 1]) / volume
        };
        let trace = |(mass, gamma): (usize, usize)| {
            let noise: Vec<Complex64> = (0..sums.len()).map(|vector| at(vector, mass, gamma)).collect();
            let [mean, error] = mean(&noise);
            let noise = noise.iter().map(|z| [z.re, z.im]).collect();
            TraceRecord { mass: masses[mass], gamma: F::gamma(gamma), noise, mean, error }
        };
        let traces = (0..masses.len()).flat_map(|mass| (0..F::GAMMAS).map(move |gamma| (mass, gamma)));
        Ok(FoundTraces { traces: traces.map(trace).collect(), residual, iterations })
    }
    /// *Collective.* Returns the solutions of a batch of noise vectors.
    fn batch<F: TraceField>(
        &self,
        on: &Configuration<'_>,
        links: &LinksRead,
        noise: &FullField,
        configuration: &Configured,
        watch: &mut Watch,
    ) -> Outcome<SolvedBatch> {
        let solve = &self.solve.solve;
        let request = solve.request(links.operator.clone(), links.storage);
        let failed = |reached: f64, why: String, cancelled: bool| {
            let reached = format!("|b - Mx| / |b| = {reached:.3e}, requested {:e}", solve.scheme.tol);
            let why = format!("{}: the solve did not converge{why}; {reached}", configuration.typed.display());
            Err(if cancelled { self.session.stopped(why) } else { Failure::failed(why).shared() })
        };
        if let Systems::Masses(masses) = &solve.plan.systems {
            let fields: Vec<HostField<F>> = noise.download()?;
            let solved = on.solve_masses(&fields, masses, solve.plan.strategy, &request, watch);
            let (solutions, report) = solved?;
            let residuals = report.shifts.iter().flat_map(|shift| shift.true_residual.iter().copied());
            let residual = residuals.fold(0.0, worse_residual);
            if !report.converged {
                let why = report.shifts.iter().find_map(|shift| shift.failure.as_ref());
                return failed(residual, why.map_or(String::new(), |why| format!(": {why}")), report.cancelled);
            }
            let together = report.shifts.iter().map(|shift| shift.iterations).max().unwrap_or(0);
            let apart: usize = report.shifts.iter().map(|shift| shift.refinement_iterations).sum();
            let there = |solutions: &Vec<HostField<F>>| FullField::of_host(noise.even.domain(), solutions);
            let solutions = solutions.iter().map(there).collect::<Result<_, _>>()?;
            return Ok(SolvedBatch { solutions, residual, iterations: together + apart });
        }
        let sources = noise.rhs(0..noise.even.nrhs(), noise.even.domain())?;
        let (solutions, report, error) = on.solve_fields(sources, None, &request, watch)?;
        solve::announce(&report);
        let residual = solve::worst(&report);
        if !report.converged || error.is_some() {
            let cancelled = matches!(error, Some(solvers::SolveError::Cancelled { .. }));
            let why = error.map_or(String::new(), |error| format!(": {error}{}", solve::advice(&report, &error)));
            return failed(residual, why, cancelled);
        }
        Ok(SolvedBatch { solutions: vec![solutions], residual, iterations: report.info.iterations })
    }
}

/// Solutions of a batch for each mass, on the device.
struct SolvedBatch {
    solutions: Vec<FullField>,
    residual: f64,
    iterations: usize,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_are_those_of_means() {
        let c = Complex64::new;
        assert_eq!(mean(&[c(1.0, 2.0), c(3.0, 2.0)]), [[2.0, 2.0], [1.0, 0.0]]);
        assert!(mean(&[c(1.0, 2.0)])[1].iter().all(|error| error.is_nan()));
    }
}
