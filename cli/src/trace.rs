//! `ferrite trace`.
use super::batch::{BatchTask, Batches, RIGHT_HAND_SIDE};
use super::configured::Configured;
use super::device::{Device, DeviceChoice};
use super::fields::require_host_memory;
use super::host_links::LinksRead;
use super::keys::{self, SolverFlags};
use super::layout::Layout;
use super::line_file::{LineFile, measure_all};
use super::named;
use super::plan::{self, Systems, configuration_header, reading};
use super::solve::{self, Solve};
use super::{Context, Failure, Outcome, text};
use clap::{Args, ValueEnum};
use ferrite::field::host::{ColourVector, HostField, Spinor};
use ferrite::field::{FieldShape, FullField};
use ferrite::observables::traces::{Dilution, MOST_NOISE, NoiseKind, NoiseSource, TraceField};
use ferrite::solve::Configuration;
use ferrite::{FermionKind, Precision};
use ferrite_inputs::Input;
use ferrite_records::measure::{
    DilutedTimes, DilutionInput, LineOrigin, NoiseInput, TraceInput, TraceLine, TraceRecord, TracesRecord,
};
use ferrite_records::object;
use ferrite_records::operator::OperatorWithSources;
use ferrite_records::progress::ProgressLine;
use ferrite_tasks::progress::Watch;
use num_complex::Complex64;
use serde_json::{Map, Value};
use solvers::worse_residual;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::time::Instant;
use tracing::info;

const EXAMPLES: &str = "\
Examples:
  ferrite trace run/cfg.*.ildg --operator hisq --masses 0.01,0.05 --noise 16 --seed 7 -o condensate.jsonl
  ferrite trace cfg.000100.ildg --operator clover --csw 1.2 --mass 0.05 --noise 4 --dilute spin,colour
  ferrite trace cfg.000100.ildg --kappa 0.13 --noise 8 --dilute time:4 --solver multigrid -o loops.jsonl

Prints tr Gamma M^-1 / V for all 16 products of gamma matrices of Wilson-like operators, and tr M^-1 / V, the condensate, of
staggered ones, for M = m + D/2 and all four flavours of the field: means over noise vectors with errors. The noise of a seed
is another one on each configuration, by its name, and does not depend on the process grid. With -o, each configuration adds a line of JSON
with the number of each noise vector, and the same command resumes where it stopped; `ferrite fit` makes means over
configurations, and the disconnected susceptibility, of this file.";

/// Arguments of `trace`.
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub struct TraceArguments {
    /// Gauge fields in any format
    #[arg(required = true, value_name = "CONFIGURATION")]
    files: Vec<PathBuf>,
    #[command(flatten)]
    flags: SolverFlags,
    /// Noise vectors on each configuration [default: 8]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=i64::from(MOST_NOISE)), allow_hyphen_values = true)]
    noise: Option<u32>,
    /// Seed of the noise [default: 1]
    #[arg(long, value_name = "N", allow_hyphen_values = true)]
    seed: Option<u64>,
    /// Numbers of the noise [default: z4]
    #[arg(long, value_name = "NAME", value_enum)]
    kind: Option<KindName>,
    /// Solve for parts of each noise vector: time, time:N (times whose distance is a multiple of N together), spin, colour,
    /// parity; several with commas
    #[arg(long, value_name = "NAMES", value_parser = part, value_delimiter = ',')]
    dilute: Vec<Part>,
    /// Add a line of JSON for each configuration to this file, as soon as it is done; those that have one are left out
    #[arg(short, long, value_name = "FILE.jsonl")]
    output: Option<PathBuf>,
}

/// `--kind`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum KindName {
    /// 1 or -1
    Z2,
    /// (±1 ± i)/√2
    Z4,
}

/// One of `--dilute`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Part {
    Time(usize),
    Spin,
    Colour,
    Parity,
}

fn part(text: &str) -> Result<Part, String> {
    match text.trim() {
        "time" => Ok(Part::Time(usize::MAX)),
        "spin" => Ok(Part::Spin),
        "colour" => Ok(Part::Colour),
        "parity" => Ok(Part::Parity),
        other => {
            let times = other.strip_prefix("time:").and_then(|n| n.parse().ok()).filter(|n| (2..=4096).contains(n));
            times.map(Part::Time).ok_or_else(|| {
                format!("'{other}' is none of time, time:N with N from 2 to 4096, spin, colour and parity")
            })
        }
    }
}

/// Noise as typed.
struct NoiseChoice {
    vectors: u32,
    seed: u64,
    kind: NoiseKind,
    dilution: Dilution,
}

impl NoiseChoice {
    fn of(args: &TraceArguments) -> Outcome<Self> {
        let mut dilution = Dilution::default();
        for (k, one) in args.dilute.iter().enumerate() {
            let same = |other: &Part| std::mem::discriminant(one) == std::mem::discriminant(other);
            if args.dilute[..k].iter().any(same) {
                return Err(Failure::refused("--dilute: the same is there twice"));
            }
            match one {
                Part::Time(times) => dilution.times = *times,
                Part::Spin => dilution.spin = true,
                Part::Colour => dilution.colour = true,
                Part::Parity => dilution.parity = true,
            }
        }
        let kind = match args.kind.unwrap_or(KindName::Z4) {
            KindName::Z2 => NoiseKind::Z2,
            KindName::Z4 => NoiseKind::Z4,
        };
        Ok(NoiseChoice { vectors: args.noise.unwrap_or(8), seed: args.seed.unwrap_or(1), kind, dilution })
    }
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
    /// On a configuration.
    fn source(&self, configuration: &Configured) -> NoiseSource {
        NoiseSource { kind: self.kind, seed: self.seed ^ configuration.hash(), dilution: self.dilution }
    }
}

/// A solve on a configuration, and into how many parts its noise vectors are split.
struct Task {
    solve: Solve,
    parts: usize,
}

impl Task {
    /// Reads the flags for a configuration; lists all mistakes. Gives what decides the result, too.
    fn new(
        args: &TraceArguments,
        noise: &NoiseChoice,
        path: &Path,
        context: &Context,
    ) -> Outcome<(Self, Map<String, Value>)> {
        let mut input = Input::new(&keys::SOLVE);
        context.add_to(&mut input);
        args.flags.add_to(&mut input);
        input.put("gauge", &[path.display().to_string()], "CONFIGURATION");
        let physics: Map<String, Value> = keys::physics()
            .chain(["masses"])
            .filter_map(|key| Some((key.to_string(), input.get(key)?.text().into())))
            .collect();
        let read = reading(&mut input);
        let kind = plan::definition(&mut input.clone()).map(|definition| definition.kind);
        let staggered = kind == Some(FermionKind::Staggered);
        if staggered && noise.dilution.spin {
            input.missing("--dilute spin: staggered fields have no spin: take it out");
        }
        // Mistakes in the file are told with those of the solve.
        let parts = match configuration_header(&mut input.clone(), &read).map(|header| header.lattice) {
            None => 1,
            Some(lattice) if staggered => noise.dilution.parts::<ColourVector>(lattice),
            Some(lattice) => noise.dilution.parts::<Spinor>(lattice),
        };
        // Their number is what a solver is chosen by; what the sources are is decided here.
        let count = (parts * noise.vectors as usize).min(4096);
        input.put("source", &["random:1".into()], "--seed");
        input.put("sources", &[count.to_string()], "--noise");
        let solve = Solve::of(&mut input, "the command line")?;
        if solve.plan.reconstruction.is_some_and(|storage| storage.temporal) {
            return Err(Failure::refused("--reconstruct: temporal gauge is for solve and bench; use 18, 12 or 8"));
        }
        Ok((Task { solve, parts }, physics))
    }
}

/// What was found for a mass and a Γ.
struct Trace {
    mass: f64,
    gamma: String,
    /// tr Γ M⁻¹ / V from each noise vector.
    noise: Vec<Complex64>,
}

/// What was found on a configuration.
struct Found {
    traces: Vec<Trace>,
    residual: f64,
    iterations: usize,
    seconds: f64,
}

/// Mean and error of the mean over noise vectors, of real and imaginary parts; no error from one.
fn mean(noise: &[Complex64]) -> [[f64; 2]; 2] {
    let n = noise.len() as f64;
    let mean: Complex64 = noise.iter().sum::<Complex64>() / n;
    let spread = |of: fn(&Complex64) -> f64| {
        (noise.iter().map(|z| (of(z) - of(&mean)).powi(2)).sum::<f64>() / (n * (n - 1.0))).sqrt()
    };
    [[mean.re, mean.im], [spread(|z| z.re), spread(|z| z.im)]]
}

impl Found {
    fn line(&self, file: &Path, system: OperatorWithSources) -> TraceLine {
        let trace = |trace: &Trace| {
            let [mean, error] = mean(&trace.noise);
            let noise = trace.noise.iter().map(|z| [z.re, z.im]).collect();
            TraceRecord { mass: trace.mass, gamma: trace.gamma.clone(), noise, mean, error }
        };
        TraceLine {
            origin: LineOrigin::default(),
            file: file.into(),
            traces: self.traces.iter().map(trace).collect(),
            residual: self.residual,
            iterations: self.iterations,
            seconds: self.seconds,
            system,
        }
    }
    fn text(&self) -> String {
        let mut all = format!(
            "{:<9} {:<7} {:>14} {:>9} {:>14} {:>9}\n",
            "mass", "Gamma", "real part", "error", "imaginary", "error"
        );
        for trace in &self.traces {
            let [[re, im], [of_re, of_im]] = mean(&trace.noise);
            let error = |x: f64| if x.is_finite() { format!("{x:.1e}") } else { "–".into() };
            let (mass, gamma) = (text::rounded(trace.mass, 5), &trace.gamma);
            let _ =
                writeln!(all, "{mass:<9} {gamma:<7} {re:>+14.8} {:>9} {im:>+14.8} {:>9}", error(of_re), error(of_im));
        }
        all
    }
}

/// Measures all configurations.
pub fn run(args: &TraceArguments, context: &Context) -> Outcome {
    let comm = &context.comm;
    let noise = comm.agree(NoiseChoice::of(args))?;
    // All headers before the work.
    let files = named::all_matches(&args.files, comm)?;
    let tasks = files.iter().map(|path| Task::new(args, &noise, path, context)).collect::<Outcome<Vec<_>>>();
    let tasks = comm.agree(tasks)?;
    let choice: DeviceChoice = context.device_choice()?;
    let input = object(&TraceInput { solve: tasks[0].1.clone(), noise: noise.record() });
    let configurations = Configured::all(&files, comm)?;
    let device = choice.open(comm)?;
    let record = args.output.clone().map(|path| LineFile::open(path, input, &configurations, comm)).transpose()?;
    let tasks = tasks.into_iter().map(|(task, _)| task);
    let (lines, ended) = measure_all(
        record.as_ref(),
        configurations.into_iter().zip(tasks),
        &context.session,
        |configuration, task| {
            let measurement = Measurement { task: &task, noise: &noise, choice: &choice, device: &device, context };
            measurement.make(configuration, record.as_ref())
        },
    )?;
    let (backend, device) = (device.name().into(), device.describe());
    let record = TracesRecord { configurations: lines, backend, device };
    context.output.record(&record, String::new).and(ended)
}

/// How a configuration is measured.
struct Measurement<'a> {
    task: &'a Task,
    noise: &'a NoiseChoice,
    choice: &'a DeviceChoice,
    device: &'a Device,
    context: &'a Context,
}

impl Measurement<'_> {
    /// *Collective.* Measures one, and prints and notes it.
    fn make(&self, configuration: &mut Configured, record: Option<&LineFile<TraceLine>>) -> Outcome<TraceLine> {
        let (comm, plan, begin) = (&self.context.comm, &self.task.solve.plan, Instant::now());
        if record.is_some() {
            configuration.hold(comm)?;
        }
        let (layout, kind) = (plan.cut(&self.choice.layout, comm)?, plan.operator.kind());
        self.task.solve.possible(layout.cut())?;
        let solves = self.task.parts * self.noise.vectors as usize;
        let needs = |together: usize| {
            let mut needs = self.task.solve.memory(layout.cut(), together);
            needs.push((
                "noise",
                2 * FieldShape::new(kind, Precision::Double, together).bytes(layout.local().half_volume()),
            ));
            needs
        };
        let name = format!("the solve on {}", plan.lattice);
        let task = BatchTask { device: self.device, comm, name: &name, noun: RIGHT_HAND_SIDE };
        let batches = task.split(self.task.solve.scheme.batch, solves, needs)?;
        let links = LinksRead::of(plan, &layout, comm)?.smeared(plan, self.device, &layout, &self.context.session)?;
        info!("{}: {}", configuration.typed.display(), batches.describe());
        let mut found = match plan.operator.kind() {
            FermionKind::Wilson => self.solve::<Spinor>(configuration, &links, &layout, &batches)?,
            FermionKind::Staggered => self.solve::<ColourVector>(configuration, &links, &layout, &batches)?,
        };
        found.seconds = begin.elapsed().as_secs_f64();
        let line = found.line(&configuration.typed, plan.record(&links.operator));
        let line = match record {
            Some(record) => record.add(configuration, line, comm)?,
            None => line,
        };
        let headline = plan.headline(&links.operator);
        let vectors = text::count(self.noise.vectors as usize, "noise vector");
        self.context.output.part(&format!(
            "{}: tr Gamma M^-1 / V of the {headline}, {vectors}\n{}",
            configuration.typed.display(),
            found.text()
        ))?;
        Ok(line)
    }
    /// *Collective.* Solves for all parts of all noise vectors, batch after batch.
    fn solve<F: TraceField>(
        &self,
        configuration: &Configured,
        links: &LinksRead,
        layout: &Layout,
        batches: &Batches,
    ) -> Outcome<Found> {
        let (comm, Task { solve, parts }) = (&self.context.comm, self.task);
        let masses = match &solve.plan.systems {
            Systems::Masses(masses) => masses.clone(),
            Systems::One | Systems::Shifts(_) => vec![links.operator.mass()],
        };
        // The list of masses is solved for by way of the host.
        let by_host = matches!(solve.plan.systems, Systems::Masses(_));
        let host = if by_host { (1 + masses.len()) * batches.largest() * size_of::<F>() } else { 0 };
        require_host_memory(comm, layout.local(), host + 576, "links and fields")?;
        let source = self.noise.source(configuration);
        let mut watch = Watch::new(solve.scheme.tol, ProgressLine::of("trace"), &self.context.session);
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
        let trace = |mass: usize, gamma: usize| Trace {
            mass: masses[mass],
            gamma: F::gamma(gamma),
            noise: (0..sums.len()).map(|vector| at(vector, mass, gamma)).collect(),
        };
        let traces = (0..masses.len()).flat_map(|mass| (0..F::GAMMAS).map(move |gamma| (mass, gamma)));
        let traces = traces.map(|(mass, gamma)| trace(mass, gamma)).collect();
        Ok(Found { traces, residual, iterations, seconds: 0.0 })
    }
    /// *Collective.* Solutions of a batch.
    fn batch<F: TraceField>(
        &self,
        on: &Configuration<'_>,
        links: &LinksRead,
        noise: &FullField,
        configuration: &Configured,
        watch: &mut Watch,
    ) -> Outcome<SolvedBatch> {
        let solve = &self.task.solve;
        let request = solve.request(links.operator.clone(), links.storage);
        let failed = |reached: f64, why: String, cancelled: bool| {
            let reached = format!("|b - Mx| / |b| = {reached:.3e}, asked was {:e}", solve.scheme.tol);
            let why = format!("{}: the solve did not converge{why}; {reached}", configuration.typed.display());
            Err(if cancelled { self.context.session.stopped(why) } else { Failure::failed(why).shared() })
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

/// Solutions by mass, and by right-hand side on the device.
struct SolvedBatch {
    solutions: Vec<FullField>,
    residual: f64,
    iterations: usize,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn means_and_parts() {
        let c = Complex64::new;
        assert_eq!(mean(&[c(1.0, 2.0), c(3.0, 2.0)]), [[2.0, 2.0], [1.0, 0.0]]);
        assert!(mean(&[c(1.0, 2.0)])[1].iter().all(|error| error.is_nan()));
        assert_eq!(
            [part("time"), part("time:4"), part("spin")],
            [Ok(Part::Time(usize::MAX)), Ok(Part::Time(4)), Ok(Part::Spin)]
        );
        for wrong in ["", "time:", "time:1", "time:x", "color"] {
            assert!(part(wrong).is_err(), "{wrong}");
        }
    }
}
