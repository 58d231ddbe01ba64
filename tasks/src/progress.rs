//! Reports on the progress of tasks to their observers.
use super::observer::ProgressEvent;
use super::session::Session;
use ferrite_records::progress::ProgressLine;
use solvers::{Iteration, IterationKind, Observer, Step};
use std::ops::ControlFlow;
use std::time::Instant;

/// Reporter of the steps of a task to the observer of a session.
#[derive(Clone)]
pub struct Progress {
    session: Session,
    /// Line of progress with the keys that all lines of the task share.
    work: ProgressLine,
    steps: u64,
    begin: Instant,
}

impl Progress {
    /// Begins a task of `steps` steps. `work` has the task's name and the keys of each line.
    pub fn new(session: &Session, work: ProgressLine, steps: u64) -> Self {
        Progress { session: session.clone(), work, steps: steps.max(1), begin: Instant::now() }
    }
    /// Reports that `done` steps are complete, unless the observer ignores ordinary steps. `describe` adds keys to the line, and returns a
    /// text for people.
    pub fn at(&self, done: u64, describe: impl FnOnce(&mut ProgressLine) -> String) {
        if self.session.observer().wants() {
            self.reached(done, describe);
        }
    }
    /// Reports an important step, which the observer always receives. Otherwise works as [`Progress::at`].
    pub fn reached(&self, done: u64, describe: impl FnOnce(&mut ProgressLine) -> String) {
        let mut line = self.work.clone();
        let text = describe(&mut line);
        self.report(line, Some(done as f64 / self.steps as f64), self.begin, &text);
    }
    /// Reports the fraction `done` of a preparation that began at `begin`, such as the setup of a solver, and the time that it is expected
    /// to take.
    fn part(&self, name: &str, done: Option<f64>, begin: Instant) {
        if !self.session.observer().wants() {
            return;
        }
        let expected = expected(done, begin.elapsed().as_secs_f64());
        let (work, expected_seconds) = (Some(name.into()), Some(expected));
        let line = ProgressLine { progress: "setup".into(), work, expected_seconds, ..self.work.clone() };
        let takes =
            expected.map_or(String::new(), |expected| format!(", about {} in total", super::text::seconds(expected)));
        self.report(line, done, begin, &format!("{name}{takes}"));
    }
    fn report(&self, mut line: ProgressLine, fraction: Option<f64>, begin: Instant, text: &str) {
        line.fraction = fraction.map(|fraction| fraction.min(1.0));
        line.seconds = begin.elapsed().as_secs_f64();
        self.session.observer().progress(&ProgressEvent { line: &line, text });
    }
    /// Reports the end of the task.
    pub fn finish(&self) {
        self.session.observer().finish();
    }
}

/// Number of steps of a solve for each factor of ten by which the residual falls.
const STEPS: f64 = 100.0;

/// Observer of a solve that reports its progress and records the true residuals.
pub struct Watch {
    progress: Progress,
    tol: f64,
    /// Number of iterations observed so far.
    events: usize,
    /// Preparation that is running or ran last, such as a multigrid setup.
    part: Option<WorkPart>,
    /// Iterations at which true residuals were computed, with the residual of each right-hand side; NaN for those of earlier batches.
    pub updates: Vec<(usize, Vec<f64>)>,
    /// Number of right-hand sides of each batch so far, and the number of entries of `updates` before it.
    batches: Vec<(usize, usize)>,
}

/// Returns the expected total seconds of work of which the fraction `done` took `seconds`; `None` if it is too early to predict.
fn expected(done: Option<f64>, seconds: f64) -> Option<f64> {
    done.filter(|done| *done >= FORETOLD).map(|done| seconds / done)
}

/// Fraction of the work after which its time is predicted.
const FORETOLD: f64 = 0.02;
/// Smallest expected time of a preparation, in seconds, that a note reports.
const LONG: f64 = 10.0;

/// Preparation within the work of a [`Watch`].
struct WorkPart {
    name: String,
    begin: Instant,
    done: f64,
    /// Whether a note has reported the expected time.
    is_noted: bool,
}

impl Watch {
    /// Creates the observer of a solve with the tolerance `tol`. `work` has the name of the solve and the keys of each line, as in
    /// [`Progress::new`].
    pub fn new(tol: f64, work: ProgressLine, session: &Session) -> Self {
        let steps = (-tol.log10().min(0.0) * STEPS).ceil() as u64;
        let progress = Progress::new(session, work, steps);
        Watch { progress, tol, events: 0, part: None, updates: Vec::new(), batches: Vec::new() }
    }
    /// Starts the next batch with `size` right-hand sides.
    pub fn next_batch(&mut self, size: usize) {
        self.batches.push((size, self.updates.len()));
    }
    /// Returns the number of right-hand sides in the batches before the current one.
    fn before(&self) -> usize {
        self.batches.split_last().map_or(0, |(_, before)| before.iter().map(|(size, _)| size).sum())
    }
    /// Returns the iterations at which true residuals of right-hand side `j` were computed.
    pub fn iterations_of_updates(&self, j: usize) -> Vec<usize> {
        let (mut begin, mut end, mut before) = (0, self.updates.len(), 0);
        for (size, first) in &self.batches {
            if before > j {
                end = *first;
                break;
            }
            (begin, before) = (*first, before + size);
        }
        self.updates[begin..end].iter().map(|(iteration, _)| *iteration).collect()
    }
    /// Reports the end of the solve.
    pub fn finish(&self) {
        self.progress.finish();
    }
}

impl Observer for Watch {
    fn iteration(&mut self, event: &Iteration<'_>) -> ControlFlow<()> {
        if event.kind != IterationKind::Iterate {
            let others = vec![f64::NAN; self.before()];
            self.updates.push((event.iteration, [&others, event.residuals].concat()));
        }
        let (iteration, first) = (event.iteration, self.before());
        let worst = event.worst();
        self.progress.at((-worst.log10().min(0.0) * STEPS) as u64, |line| {
            let tol = super::text::tolerance(self.tol);
            (line.iteration, line.residual, line.tol) = (Some(iteration), Some(worst), Some(self.tol));
            line.rhs = Some([first, first + event.residuals.len()]);
            format!("iteration {iteration}, residual {worst:.1e}, requested {tol}")
        });
        self.events += 1;
        if self.progress.session.is_stopped(self.events) { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    }
    fn step(&mut self, step: &Step<'_>) -> ControlFlow<()> {
        let done = step.done.unwrap_or(0.0);
        let begins =
            |part: &WorkPart| part.name != step.work || done < part.done || (done == 0.0 && step.done.is_some());
        if self.part.as_ref().is_none_or(begins) {
            self.part = Some(WorkPart { name: step.work.into(), begin: Instant::now(), done, is_noted: false });
        }
        if let Some(part) = &mut self.part {
            part.done = done;
            let seconds = part.begin.elapsed().as_secs_f64();
            if let Some(expected) = expected(step.done, seconds)
                && seconds >= 1.0
                && !part.is_noted
            {
                part.is_noted = true;
                if expected > LONG {
                    tracing::info!("{} takes about {}", part.name, super::text::seconds(expected));
                }
            }
            self.progress.part(&part.name, step.done, part.begin);
        }
        // A step takes a long time, so the processes exchange their requests to stop after each step.
        self.progress.session.flow()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::communicator::RunCommunicator;
    use crate::observer::TaskObserver;
    use comms::Solo;
    use std::sync::{Arc, Mutex};

    /// Keeps the events that it wants.
    #[derive(Default)]
    struct Kept {
        wants: bool,
        events: Mutex<Vec<(ProgressLine, String)>>,
    }
    impl TaskObserver for Kept {
        fn wants(&self) -> bool {
            self.wants
        }
        fn progress(&self, event: &ProgressEvent<'_>) {
            self.events.lock().unwrap().push((event.line.clone(), event.text.into()));
        }
    }

    #[test]
    fn observers_see_the_steps_that_they_want() {
        for wants in [false, true] {
            let kept = Arc::new(Kept { wants, ..Kept::default() });
            let session = Session::new(RunCommunicator::of(Solo::new()), kept.clone());
            let progress = Progress::new(&session, ProgressLine::of("quenched"), 4);
            let describe = |line: &mut ProgressLine| {
                line.sweep = Some(7);
                String::from("sweep 7")
            };
            progress.at(1, describe);
            progress.part("setup of a sweep", Some(0.5), Instant::now());
            progress.reached(8, describe);
            let events = kept.events.lock().unwrap();
            let seen: Vec<_> = events.iter().map(|(line, text)| (line.fraction, line.sweep, text.as_str())).collect();
            let [first, last] = [(Some(0.25), Some(7), "sweep 7"), (Some(1.0), Some(7), "sweep 7")];
            assert_eq!(events.last().map(|(line, _)| line.progress.as_str()), Some("quenched"));
            if wants {
                assert_eq!((seen.len(), seen[0], seen[2]), (3, first, last));
                let (part, text) = &events[1];
                assert_eq!((part.progress.as_str(), part.work.as_deref()), ("setup", Some("setup of a sweep")));
                assert!(part.expected_seconds.flatten().is_some() && text.starts_with("setup of a sweep, about "));
            } else {
                assert_eq!(seen, [last]);
            }
        }
    }

    #[test]
    fn times_are_predicted_from_the_share_that_is_done() {
        assert_eq!(expected(Some(0.25), 3.0), Some(12.0));
        assert_eq!([expected(Some(0.0), 0.0), expected(Some(0.01), 3.0), expected(None, 3.0)], [None; 3]);
    }

    #[test]
    fn updates_belong_to_batches() {
        let mut watch =
            Watch::new(1e-9, ProgressLine::default(), &Session::new(RunCommunicator::of(Solo::new()), Arc::new(())));
        watch.updates.push((1, vec![0.5]));
        assert_eq!(watch.iterations_of_updates(3), [1]);
        watch.updates.clear();
        for (size, iterations) in [(2, vec![3, 9]), (1, vec![4]), (3, vec![])] {
            watch.next_batch(size);
            watch.updates.extend(iterations.into_iter().map(|iteration| (iteration, Vec::new())));
        }
        let of: Vec<_> = (0..6).map(|j| watch.iterations_of_updates(j)).collect();
        assert_eq!(of, [vec![3, 9], vec![3, 9], vec![4], vec![], vec![], vec![]]);
        assert_eq!(watch.before(), 3);
    }
}
