//! `ferrite generate quenched`.
use super::device::DeviceChoice;
use super::fields::{Reading, lattice_of, read_gauge, require_host_memory, write_gauge};
use super::layout::Layout;
use super::{Context, Failure, Outcome, target, text};
use clap::Args;
use ferrite::Precision;
use ferrite::backend::Backend;
use ferrite::domain::Part;
use ferrite::files::{FileFormat, FilePrecision, GaugeFile, WriteOptions};
use ferrite::gauge::quenched::{Generator, MOST_PASSES, Start};
use ferrite::halo::Exchanges;
use ferrite::observables::quantity::PLAQUETTE;
use ferrite::statistics::average;
use ferrite::system::atomic;
use ferrite_records::links::{GenerateRecord, GeneratedPlaquette, QuenchedSweeps};
use ferrite_records::progress::ProgressLine;
use ferrite_tasks::progress::Progress;
use ferrite_tasks::session::Session;
use std::ops::{ControlFlow, RangeInclusive};
use std::path::{Path, PathBuf};
use std::time::Instant;
use tracing::debug;

/// Seconds that a sweep may still take after a signal.
const SOON: f64 = 1.0;

/// Flags of `generate quenched`.
#[derive(Args)]
#[command(next_help_heading = "Options of quenched")]
pub struct QuenchedFlags {
    /// Coupling β of the action −(β/3) Σ Re tr P
    #[arg(long, value_name = "BETA", value_parser = beta, allow_hyphen_values = true,
        required_if_eq("kind", "quenched"))]
    beta: Option<f64>,
    /// Sweeps to make: one heat bath of all links each, and over-relaxation
    #[arg(long, value_name = "N", required_if_eq("kind", "quenched"))]
    sweeps: Option<u32>,
    /// Over-relaxations of all links in a sweep [default: 4]
    #[arg(long, value_name = "K")]
    overrelax: Option<u32>,
    /// Sweeps before those, for thermalisation, neither written nor averaged [default: 0]
    #[arg(long, value_name = "N")]
    thermalise: Option<u32>,
    /// Write a configuration every M sweeps, with the number of the sweep in the file's name [default: only the last,
    /// under the name as it is]
    #[arg(long, value_name = "M", value_parser = clap::value_parser!(u32).range(1..))]
    every: Option<u32>,
    /// Start: cold (all links 1), hot (Haar measure) or a file [default: cold]
    #[arg(long, value_name = "WHAT")]
    start: Option<String>,
    /// Sweeps that made the file of --start, to continue with the same random numbers [default: 0]
    #[arg(long, value_name = "N", requires = "start")]
    first_sweep: Option<u32>,
}

fn beta(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(x) if (0.0..=1e6).contains(&x) => Ok(x),
        _ => Err(format!("'{text}' is not a number from 0 to 1e6")),
    }
}

impl QuenchedFlags {
    /// The links to start from, if they are in a file.
    pub fn start_file(&self) -> Option<&Path> {
        self.start.as_deref().filter(|start| !matches!(*start, "cold" | "hot")).map(Path::new)
    }
    /// Refuses these flags where they mean nothing.
    pub fn refuse(&self) -> Outcome {
        let given = [
            ("--beta", self.beta.is_some()),
            ("--sweeps", self.sweeps.is_some()),
            ("--overrelax", self.overrelax.is_some()),
            ("--thermalise", self.thermalise.is_some()),
            ("--every", self.every.is_some()),
            ("--start", self.start.is_some()),
            ("--first-sweep", self.first_sweep.is_some()),
        ];
        match given.iter().find(|(_, given)| *given) {
            Some((flag, _)) => Err(Failure::refused(format!("{flag} is for quenched only: leave it out"))),
            None => Ok(()),
        }
    }
}

/// Where configurations go.
pub struct QuenchedTarget {
    /// As named by the user.
    pub path: PathBuf,
    /// The format that the name tells.
    pub format: &'static FileFormat,
    /// Precision of the file.
    pub precision: FilePrecision,
}

impl QuenchedTarget {
    /// The name with the number of a sweep before its ending.
    fn numbered(&self, sweep: u32) -> PathBuf {
        let part = |part: Option<&std::ffi::OsStr>| part.unwrap_or_default().to_string_lossy().into_owned();
        let (stem, ending) = (part(self.path.file_stem()), part(self.path.extension()));
        self.path.with_file_name(format!("{stem}.{sweep:06}.{ending}"))
    }
    /// Refuses a run whose sweeps, of which any may be written when it is interrupted, would replace the configuration that it
    /// starts from, and several files where the output is a pipe.
    fn check(&self, start: Option<&Path>, sweeps: RangeInclusive<u32>, every: bool) -> Outcome {
        let shown = self.path.display();
        if every && target::is_stream(&self.path) {
            let why = format!("--every writes several files, and {shown} is a pipe or a device: name an output file");
            return Err(Failure::refused(why));
        }
        let Some(start) = start else { return Ok(()) };
        let folder = self.path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
        // A folder that cannot be listed holds no file that could be read here.
        for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
            let name = entry.file_name().to_string_lossy().into_owned();
            let sweep = name.rsplit('.').nth(1).and_then(|number| number.parse().ok());
            let is_output =
                |sweep: &u32| sweeps.contains(sweep) && self.numbered(*sweep).file_name() == Some(&entry.file_name());
            if let Some(sweep) = sweep.filter(is_output)
                && atomic::is_same(start, &entry.path())
            {
                return Err(Failure::refused(format!(
                    "sweep {sweep} of -o {shown} would replace {name}, from which the run starts: name another output file, or \
                     give the number of sweeps before it with --first-sweep"
                )));
            }
        }
        Ok(())
    }
}

/// A run, as checked.
struct QuenchedRun<'a> {
    layout: &'a Layout,
    beta: f64,
    seed: u64,
    overrelax: u32,
    /// Sweeps that made the first configuration, then how many are not looked at, then how many are.
    sweeps: [u32; 3],
    every: Option<u32>,
    start: Option<GaugeFile>,
    /// The file that these links are from.
    from: Option<&'a Path>,
    hot: bool,
    target: &'a QuenchedTarget,
}

/// What came out.
struct QuenchedChain {
    plaquettes: Vec<f64>,
    last: u32,
    files: Vec<PathBuf>,
    seconds: f64,
    interrupted: bool,
}

/// Makes the configurations and writes them.
pub fn run(
    flags: &QuenchedFlags,
    layout: &Layout,
    choice: &DeviceChoice,
    seed: u64,
    target: &QuenchedTarget,
    context: &Context,
) -> Outcome {
    let (comm, lattice, local) = (&context.comm, layout.lattice(), layout.local());
    require_host_memory(comm, local, 2 * 576, &target.path.display().to_string())?;
    let first = flags.first_sweep.unwrap_or(0);
    let (thermalise, sweeps) = (flags.thermalise.unwrap_or(0), flags.sweeps.unwrap_or(0));
    if [thermalise, sweeps].iter().try_fold(first, |sum, n| sum.checked_add(*n)).is_none() {
        return Err(Failure::refused(
            "the number of the last sweep does not fit into 32 bits: begin with another seed",
        )
        .shared());
    }
    let numbers = first.saturating_add(1)..=first + thermalise + sweeps;
    comm.agree(target.check(flags.start_file(), numbers, flags.every.is_some()))?;
    let passes = 1 + u64::from(flags.overrelax.unwrap_or(4));
    let all = passes.saturating_mul(u64::from(thermalise) + u64::from(sweeps));
    if all > MOST_PASSES {
        return Err(Failure::refused(format!(
            "{} sweeps, of {passes} passes over all links each, are {all} passes, and one run makes at most {MOST_PASSES}: ask for \
             fewer, and resume from the last configuration by --start and --first-sweep",
            u64::from(thermalise) + u64::from(sweeps)
        ))
        .shared());
    }
    if first != 0 && matches!(flags.start.as_deref(), Some("cold" | "hot")) {
        let why = "--first-sweep goes with a file that those sweeps made: name it with --start";
        return Err(Failure::refused(why).shared());
    }
    let device = choice.open(comm)?;
    let start = match flags.start_file() {
        None => None,
        Some(path) => {
            let read = Reading::default();
            let other = lattice_of(path, &read, comm)?;
            if other != lattice {
                let why = format!("the links to start from are on {other}, --lattice says {lattice}");
                return Err(Failure::refused(why).shared());
            }
            Some(read_gauge(path, &read, layout, comm)?)
        }
    };
    let part = Part::new(local, layout.grid());
    let mut needs = vec![
        ("links, and those before a sweep", 2 * part.links_bytes(Precision::Double)),
        ("their way to the host", 576 * local.volume()),
    ];
    needs.extend(Exchanges::of(part).border(Precision::Double).needs());
    device.require_all(comm, &needs, "the generator")?;
    let run = QuenchedRun {
        layout,
        beta: flags.beta.unwrap_or(0.0),
        seed,
        overrelax: flags.overrelax.unwrap_or(4),
        sweeps: [first, thermalise, sweeps],
        every: flags.every,
        hot: flags.start.as_deref() == Some("hot"),
        from: flags.start_file(),
        start,
        target,
    };
    let chain = run.make(device.backend(), context)?;
    if chain.interrupted && chain.last == first {
        let why = format!("interrupted before sweep {} was done; nothing was written", u64::from(first) + 1);
        return Err(context.session.stopped(why));
    }
    if chain.interrupted {
        let (n, files) = (chain.last, &chain.files);
        let file = files.last().map_or(String::new(), |file| file.display().to_string());
        let advice = format!("interrupted after sweep {n}; resume with --start {file} --first-sweep {n}");
        return Err(context.session.stopped(advice));
    }
    run.report(&chain, device.name(), &device.describe(), context)
}

impl QuenchedRun<'_> {
    fn make(&self, backend: &dyn Backend, context: &Context) -> Outcome<QuenchedChain> {
        let [first, thermalise, sweeps] = self.sweeps;
        let start = match &self.start {
            Some(file) => Start::Links(&file.gauge, first),
            None if self.hot => Start::Hot,
            None => Start::Cold,
        };
        let domain = self.layout.domain(backend)?;
        let mut generator = Generator::new(&domain, start, self.beta, self.seed)?;
        context.session.listen();
        let all = u64::from(thermalise) + u64::from(sweeps);
        let progress = Progress::new(
            &context.session,
            ProgressLine { sweeps: Some(first + thermalise + sweeps), ..ProgressLine::of("quenched") },
            all,
        );
        let clock = Instant::now();
        let (mut plaquettes, mut files, mut interrupted) = (Vec::new(), Vec::new(), false);
        let mut last = first;
        for done in 1..=thermalise + sweeps {
            if !self.sweep(&mut generator, &context.session)? {
                interrupted = true;
                break;
            }
            last = first + done;
            let plaquette = generator.plaquette()?.mean;
            progress.at(u64::from(done), |line| {
                (line.sweep, line.plaquette) = (Some(last), Some(plaquette));
                format!("sweep {last}, plaquette {plaquette:.6}")
            });
            debug!("sweep {last}: plaquette {plaquette:.12}");
            if done > thermalise {
                plaquettes.push(plaquette);
                if self.every.is_some_and(|every| (done - thermalise) % every == 0) {
                    files.push(self.write(&generator, Some(last), context)?);
                }
            }
            if context.session.is_stopped(done as usize) && done < thermalise + sweeps {
                interrupted = true;
                break;
            }
        }
        let seconds = clock.elapsed().as_secs_f64();
        progress.finish();
        // The work is never lost, nor is a file written twice.
        let numbered = interrupted || self.every.is_some();
        if interrupted && last == first {
            // The links are those that the run began with.
        } else if !numbered {
            files.push(self.write(&generator, None, context)?);
        } else if files.last() != Some(&self.target.numbered(last)) {
            files.push(self.write(&generator, Some(last), context)?);
        }
        Ok(QuenchedChain { plaquettes, last, files, seconds, interrupted })
    }
    /// *Collective.* Makes a sweep, unless a signal comes that cannot wait for its end; whether it is made.
    fn sweep(&self, generator: &mut Generator, session: &Session) -> Outcome<bool> {
        let (begin, all) = (Instant::now(), 1 + self.overrelax);
        let mut unheard = Ok(());
        let is_made = generator.sweep_while(1, self.overrelax, &mut |done| {
            if !session.is_stopped(0) {
                return ControlFlow::Continue(());
            }
            let left = begin.elapsed().as_secs_f64() * f64::from(all - done) / f64::from(done);
            match session.comm.largest(left) {
                Ok(left) if left <= SOON => ControlFlow::Continue(()),
                Ok(_) => ControlFlow::Break(()),
                Err(failure) => {
                    unheard = Err(failure);
                    ControlFlow::Break(())
                }
            }
        })?;
        unheard.map(|()| is_made)
    }
    fn write(&self, generator: &Generator, sweep: Option<u32>, context: &Context) -> Outcome<PathBuf> {
        let path = sweep.map_or_else(|| self.target.path.clone(), |sweep| self.target.numbered(sweep));
        target::claim(&context.comm, self.from.as_slice(), &[&path])?;
        let QuenchedRun { beta, seed, overrelax, .. } = self;
        let title = format!(
            "quenched SU(3), Wilson action, beta {beta}, seed {seed}, sweep {}, over-relaxation {overrelax}",
            generator.passes()
        );
        let QuenchedTarget { format, precision, .. } = *self.target;
        let options = WriteOptions { format, precision, title, ..Default::default() };
        write_gauge(&path, &generator.gauge()?, &options, self.layout)?;
        Ok(path)
    }
    fn report(&self, chain: &QuenchedChain, backend: &str, device: &str, context: &Context) -> Outcome {
        let [first, thermalise, sweeps] = self.sweeps;
        let average = average(&chain.plaquettes);
        let record = GenerateRecord {
            output: self.target.path.clone(),
            lattice: self.layout.lattice().size(),
            seed: Some(self.seed),
            layout: self.layout.record(),
            plaquette: GeneratedPlaquette {
                mean: chain.plaquettes.last().copied().unwrap_or(f64::NAN),
                average: Some(average.mean),
                error: Some(average.error),
                autocorrelation: Some(average.autocorrelation),
            },
            files: Some(chain.files.clone()),
            seconds: Some(chain.seconds),
            backend: Some(backend.into()),
            device: Some(device.into()),
            quenched: Some(QuenchedSweeps {
                beta: self.beta,
                first_sweep: first,
                last_sweep: chain.last,
                thermalise,
                sweeps,
                overrelax: self.overrelax,
            }),
        };
        context.output.record(&record, || {
            let mut out = String::new();
            for file in &chain.files {
                out += &format!("{}\n", file.display());
            }
            let (QuenchedRun { beta, overrelax, .. }, lattice) = (self, self.layout.lattice());
            out += &format!(
                "quenched on {lattice}, β = {}, sweeps {} to {} with {overrelax} over-relaxations each, {:.1} s\n",
                text::number(*beta),
                u64::from(first) + 1,
                chain.last,
                chain.seconds
            );
            if let Some(last) = chain.plaquettes.last() {
                out += &PLAQUETTE.line_of(*last);
            }
            if chain.plaquettes.len() > 1 {
                out += &format!(
                    "  mean of {sweeps:<10} {:.6} ± {:.6}, autocorrelation time {:.1} sweeps\n",
                    average.mean, average.error, average.autocorrelation
                );
            }
            out
        })
    }
}
