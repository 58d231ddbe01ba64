//! Pure SU(3) gauge theory by heat bath and over-relaxation, written to files.
use crate::device::DeviceChoice;
use crate::failure::ReadBy;
use crate::fields::{Reading, lattice_of, read_gauge, require_host_memory, write_gauge};
use crate::layout::Layout;
use crate::progress::Progress;
use crate::session::Session;
use crate::{Failure, Outcome, target};
use ferrite::Precision;
use ferrite::backend::Backend;
use ferrite::domain::Part;
use ferrite::files::{FileFormat, FilePrecision, GaugeFile, WriteOptions};
use ferrite::gauge::quenched::{Generator, MOST_PASSES, Start};
use ferrite::halo::Exchanges;
use ferrite::statistics::average;
use ferrite::system::atomic;
use ferrite_records::links::{GenerateRecord, GeneratedPlaquette, QuenchedSweeps};
use ferrite_records::progress::ProgressLine;
use std::ops::{ControlFlow, RangeInclusive};
use std::path::{Path, PathBuf};
use std::time::Instant;
use tracing::debug;

/// Seconds that a sweep may still take after a request to stop.
const SOON: f64 = 1.0;

/// Links that a quenched run begins with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum QuenchedStart {
    /// Unit links.
    Cold,
    /// Independent links with the Haar measure.
    Hot,
    /// A file.
    File(PathBuf),
}

impl QuenchedStart {
    /// Returns the file.
    pub fn file(&self) -> Option<&Path> {
        match self {
            QuenchedStart::File(path) => Some(path),
            QuenchedStart::Cold | QuenchedStart::Hot => None,
        }
    }
}

/// A quenched run.
pub struct QuenchedRun {
    /// Coupling β of the action −(β/3) Σ Re tr P.
    pub beta: f64,
    /// Seed of the random numbers.
    pub seed: u64,
    /// Over-relaxations of all links in a sweep.
    pub overrelax: u32,
    /// Sweeps that made the links of the start.
    pub first_sweep: u32,
    /// Sweeps before those that are averaged and written.
    pub thermalise: u32,
    /// Sweeps after them.
    pub sweeps: u32,
    /// Sweeps from one configuration that is written to the next; `None` for the last one only, under the name as it is.
    pub every: Option<u32>,
    /// The start.
    pub start: QuenchedStart,
    /// Files of the configurations.
    pub target: QuenchedTarget,
    /// Names of the settings in messages.
    pub by: ReadBy,
}

/// Files of configurations.
pub struct QuenchedTarget {
    /// Name of the last one, or of all of them without the numbers of sweeps.
    pub path: PathBuf,
    /// Format of the files.
    pub format: &'static FileFormat,
    /// Precision of their numbers.
    pub precision: FilePrecision,
}

impl QuenchedTarget {
    /// Returns the name with the number of a sweep before its ending.
    fn numbered(&self, sweep: u32) -> PathBuf {
        let part = |part: Option<&std::ffi::OsStr>| part.unwrap_or_default().to_string_lossy().into_owned();
        let (stem, ending) = (part(self.path.file_stem()), part(self.path.extension()));
        self.path.with_file_name(format!("{stem}.{sweep:06}.{ending}"))
    }
    /// Refuses a run whose sweeps, of which any may be written when it is interrupted, would replace the configuration that it
    /// starts from, and several files where the output is a pipe.
    fn check(&self, start: Option<&Path>, sweeps: RangeInclusive<u32>, every: bool, by: ReadBy) -> Outcome {
        let shown = self.path.display();
        if every && target::is_stream(&self.path) {
            let every = by.spelled("every", "");
            let why = format!("{every} writes several files, but {shown} is a pipe or a device: name an output file");
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
                let first_sweep = by.spelled("first-sweep", "");
                return Err(Failure::refused(format!(
                    "sweep {sweep} of -o {shown} would replace {name}, the initial links: name another output file, or \
                     give the number of sweeps before it with {first_sweep}"
                )));
            }
        }
        Ok(())
    }
}

/// Result of the sweeps.
struct QuenchedChain {
    plaquettes: Vec<f64>,
    last: u32,
    files: Vec<PathBuf>,
    seconds: f64,
    interrupted: bool,
}

impl QuenchedRun {
    /// *Collective.* Makes the configurations and writes them.
    ///
    /// # Errors
    /// Settings that make no sense, links to start from that cannot be read, too little memory, a stop, files that cannot be written, and
    /// failures of the device.
    pub fn make(&self, layout: &Layout, choice: &DeviceChoice, session: &Session) -> Outcome<GenerateRecord> {
        let (comm, lattice, local) = (&session.comm, layout.lattice(), layout.local());
        require_host_memory(comm, local, 2 * 576, &self.target.path.display().to_string())?;
        self.check(session)?;
        let device = choice.open(comm)?;
        let start = match self.start.file() {
            None => None,
            Some(path) => {
                let read = Reading::default();
                let other = lattice_of(path, &read, comm)?;
                if other != lattice {
                    let given = self.by.spelled("lattice", "");
                    let why = format!("the initial links are on {other}, but {given} has {lattice}");
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
        let chain = self.sweeps(layout, device.backend(), start.as_ref(), session)?;
        if chain.interrupted && chain.last == self.first_sweep {
            let next = u64::from(self.first_sweep) + 1;
            return Err(session.stopped(format!("interrupted before sweep {next} was done; nothing was written")));
        }
        if chain.interrupted {
            let last = chain.last;
            let file = chain.files.last().map_or(String::new(), |file| file.display().to_string());
            let [start, sweep] =
                [("start", file), ("first-sweep", last.to_string())].map(|(key, value)| self.by.spelled(key, &value));
            return Err(session.stopped(format!("interrupted after sweep {last}; resume with {start} {sweep}")));
        }
        let average = average(&chain.plaquettes);
        Ok(GenerateRecord {
            output: self.target.path.clone(),
            lattice: lattice.size(),
            seed: Some(self.seed),
            layout: layout.record(),
            plaquette: GeneratedPlaquette {
                mean: chain.plaquettes.last().copied().unwrap_or(f64::NAN),
                average: Some(average.mean),
                error: Some(average.error),
                autocorrelation: Some(average.autocorrelation),
            },
            files: Some(chain.files),
            seconds: Some(chain.seconds),
            backend: Some(device.name().into()),
            device: Some(device.describe()),
            quenched: Some(QuenchedSweeps {
                beta: self.beta,
                first_sweep: self.first_sweep,
                last_sweep: chain.last,
                thermalise: self.thermalise,
                sweeps: self.sweeps,
                overrelax: self.overrelax,
            }),
        })
    }
    /// *Collective.* Refuses runs that are too long, and those that would replace their start.
    fn check(&self, session: &Session) -> Outcome {
        let QuenchedRun { first_sweep: first, thermalise, sweeps, by, .. } = *self;
        let numbered = [thermalise, sweeps].iter().try_fold(first, |sum, n| sum.checked_add(*n));
        let Some(last) = numbered else {
            let why = "the number of the last sweep does not fit into 32 bits: start with another seed";
            return Err(Failure::refused(why).shared());
        };
        let numbers = first.saturating_add(1)..=last;
        session.comm.agree(self.target.check(self.start.file(), numbers, self.every.is_some(), by))?;
        let [start, first_sweep] = ["start", "first-sweep"].map(|key| by.spelled(key, ""));
        let (passes, all_sweeps) = (1 + u64::from(self.overrelax), u64::from(thermalise) + u64::from(sweeps));
        let all = passes.saturating_mul(all_sweeps);
        if all > MOST_PASSES {
            return Err(Failure::refused(format!(
                "{all_sweeps} sweeps of {passes} passes over all links are {all} passes, but one run makes at most \
                 {MOST_PASSES}: request fewer sweeps, and resume from the last configuration with {start} and \
                 {first_sweep}"
            ))
            .shared());
        }
        if first != 0 && self.start.file().is_none() {
            let why = format!("{first_sweep} needs the file that those sweeps made: name it with {start}");
            return Err(Failure::refused(why).shared());
        }
        Ok(())
    }
    /// *Collective.* Makes the sweeps, and writes configurations.
    fn sweeps(
        &self,
        layout: &Layout,
        backend: &dyn Backend,
        start: Option<&GaugeFile>,
        session: &Session,
    ) -> Outcome<QuenchedChain> {
        let QuenchedRun { first_sweep: first, thermalise, sweeps, .. } = *self;
        let start = match (start, &self.start) {
            (Some(file), _) => Start::Links(&file.gauge, first),
            (None, QuenchedStart::Hot) => Start::Hot,
            (None, _) => Start::Cold,
        };
        let domain = layout.domain(backend)?;
        let mut generator = Generator::new(&domain, start, self.beta, self.seed)?;
        session.listen();
        let all = u64::from(thermalise) + u64::from(sweeps);
        let progress = Progress::new(
            session,
            ProgressLine { sweeps: Some(first + thermalise + sweeps), ..ProgressLine::of("quenched") },
            all,
        );
        let clock = Instant::now();
        let (mut plaquettes, mut files, mut interrupted) = (Vec::new(), Vec::new(), false);
        let mut last = first;
        for done in 1..=thermalise + sweeps {
            if !self.sweep(&mut generator, session)? {
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
                    files.push(self.write(&generator, Some(last), layout, session)?);
                }
            }
            if session.is_stopped(done as usize) && done < thermalise + sweeps {
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
            files.push(self.write(&generator, None, layout, session)?);
        } else if files.last() != Some(&self.target.numbered(last)) {
            files.push(self.write(&generator, Some(last), layout, session)?);
        }
        Ok(QuenchedChain { plaquettes, last, files, seconds, interrupted })
    }
    /// *Collective.* Makes a sweep, unless it is to stop and the end of the sweep is too far. Returns whether it is made.
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
    fn write(&self, generator: &Generator, sweep: Option<u32>, layout: &Layout, session: &Session) -> Outcome<PathBuf> {
        let path = sweep.map_or_else(|| self.target.path.clone(), |sweep| self.target.numbered(sweep));
        target::claim(&session.comm, self.start.file().as_slice(), &[&path])?;
        let QuenchedRun { beta, seed, overrelax, .. } = self;
        let title = format!(
            "quenched SU(3), Wilson action, beta {beta}, seed {seed}, sweep {}, over-relaxation {overrelax}",
            generator.passes()
        );
        let QuenchedTarget { format, precision, .. } = self.target;
        let options = WriteOptions { format, precision, title, ..Default::default() };
        write_gauge(&path, &generator.gauge()?, &options, layout)?;
        Ok(path)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Code;
    use crate::communicator::RunCommunicator;
    use crate::fields::gauge_format;
    use crate::keys::EVERY_INPUT;
    use crate::observer::{ProgressEvent, TaskObserver};
    use comms::Solo;
    use ferrite::lattice::Lattice;
    use ferrite_inputs::Input;
    use std::sync::{Arc, Mutex};

    /// Keeps the numbers of the sweeps, and asks for a stop after the third.
    #[derive(Default)]
    struct StopsAtThree(Mutex<Vec<u32>>);
    impl TaskObserver for StopsAtThree {
        fn wants(&self) -> bool {
            true
        }
        fn progress(&self, event: &ProgressEvent<'_>) {
            self.0.lock().unwrap().extend(event.line.sweep);
        }
        fn stop(&self) -> Option<Code> {
            (self.0.lock().unwrap().len() >= 3).then_some(Code::Terminated)
        }
    }

    fn make(
        path: PathBuf,
        sweeps: u32,
        (start, first_sweep): (QuenchedStart, u32),
        observer: Arc<dyn TaskObserver>,
    ) -> Outcome<GenerateRecord> {
        let mut input = Input::new(&EVERY_INPUT);
        input.flag("backend", Some("cpu"));
        let (device, session) =
            (DeviceChoice::of(&mut input), Session::new(RunCommunicator::of(Solo::new()), observer));
        let layout = device.layout.cut(&session.comm, Lattice::new([4, 4, 2, 4]).unwrap(), 1)?;
        let (format, precision) = (gauge_format(&path).unwrap(), FilePrecision::Double);
        let target = QuenchedTarget { path, format, precision };
        let run = QuenchedRun {
            beta: 5.7,
            seed: 3,
            overrelax: 2,
            first_sweep,
            thermalise: 0,
            sweeps,
            every: None,
            start,
            target,
            by: ReadBy::Keys,
        };
        run.make(&layout, &device, &session)
    }

    #[test]
    fn a_run_that_an_observer_stops_resumes_with_the_same_links() {
        let room = std::env::temp_dir().join(format!("ferrite-quenched-{}", std::process::id()));
        std::fs::create_dir_all(&room).unwrap();
        let whole = make(room.join("whole.ildg"), 5, (QuenchedStart::Hot, 0), Arc::new(())).unwrap();
        let observer = Arc::new(StopsAtThree::default());
        let stopped = make(room.join("part.ildg"), 5, (QuenchedStart::Hot, 0), observer.clone()).unwrap_err();
        let file = room.join("part.000003.ildg");
        let advice = format!("resume with start = {} first-sweep = 3", file.display());
        assert_eq!((stopped.code, stopped.is_shared()), (Code::Terminated, true));
        assert_eq!(stopped.message, format!("interrupted after sweep 3; {advice}"));
        assert_eq!(*observer.0.lock().unwrap(), [1, 2, 3]);
        let rest = make(room.join("rest.ildg"), 2, (QuenchedStart::File(file), 3), Arc::new(())).unwrap();
        assert_eq!(rest.plaquette.mean.to_bits(), whole.plaquette.mean.to_bits());
        assert_eq!(rest.quenched.map(|sweeps| sweeps.last_sweep), Some(5));
        std::fs::remove_dir_all(room).unwrap();
    }
}
