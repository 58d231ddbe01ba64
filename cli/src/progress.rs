//! Progress of tasks on standard error: a bar on a terminal, or lines of JSON in a log. Signals request tasks to stop.
use super::{Code, interrupt, terminal};
use ferrite_records::object;
use ferrite_tasks::observer::{ProgressEvent, TaskObserver};
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use serde_json::Value;
use std::io::IsTerminal;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// Form of progress on standard error.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum ProgressFlag {
    /// Bar on a terminal, nothing elsewhere
    Bar,
    /// JSON objects, at most one line per second
    Json,
    /// No progress
    Off,
}

/// Observer of tasks that shows their progress on standard error, and stops them at a signal.
pub struct ShownProgress {
    form: ProgressFlag,
    /// Time at which the last line of JSON of the current task was written.
    last: Mutex<Option<Instant>>,
}

/// Shortest time between two lines of JSON.
const PAUSE: Duration = Duration::from_secs(1);
/// Number of steps of the bar.
const LENGTH: f64 = 1e5;

/// Progress bar on the terminal, if there is one.
static SHOWN: Mutex<Option<ProgressBar>> = Mutex::new(None);

fn held<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Calls `write` while the progress bar is hidden, so that its output does not mix with the bar.
pub fn beside<R>(write: impl FnOnce() -> R) -> R {
    let shown = held(&SHOWN).clone();
    match shown {
        Some(bar) => bar.suspend(write),
        None => write(),
    }
}

/// Returns an empty bar for a task that has already taken `seconds`.
fn bar(seconds: f64) -> ProgressBar {
    let bar = ProgressBar::with_draw_target(Some(LENGTH as u64), ProgressDrawTarget::stderr());
    if let Ok(style) = ProgressStyle::with_template("{elapsed_precise} [{wide_bar}] {msg}") {
        bar.set_style(style.progress_chars("=> "));
    }
    bar.with_elapsed(Duration::from_secs_f64(seconds))
}

impl ShownProgress {
    /// Returns an observer that shows progress in the form `form`. It shows a bar only if standard error is a terminal.
    pub fn new(form: ProgressFlag) -> Self {
        let is_seen = form != ProgressFlag::Bar || std::io::stderr().is_terminal();
        ShownProgress { form: if is_seen { form } else { ProgressFlag::Off }, last: Mutex::new(None) }
    }
}

impl TaskObserver for ShownProgress {
    fn wants(&self) -> bool {
        match self.form {
            ProgressFlag::Bar => true,
            ProgressFlag::Json => held(&self.last).is_none_or(|last| last.elapsed() >= PAUSE),
            ProgressFlag::Off => false,
        }
    }
    fn progress(&self, event: &ProgressEvent<'_>) {
        match self.form {
            ProgressFlag::Bar => {
                let bar = held(&SHOWN).get_or_insert_with(|| bar(event.line.seconds)).clone();
                bar.set_position((event.line.fraction.unwrap_or(0.0) * LENGTH) as u64);
                bar.set_message(event.text.to_string());
            }
            ProgressFlag::Json => {
                *held(&self.last) = Some(Instant::now());
                terminal::say(&format!("{}\n", Value::Object(object(event.line))));
            }
            ProgressFlag::Off => {}
        }
    }
    fn finish(&self) {
        *held(&self.last) = None;
        if let Some(bar) = held(&SHOWN).take() {
            bar.finish_and_clear();
        }
    }
    fn listen(&self) {
        interrupt::listen();
    }
    fn stop(&self) -> Option<Code> {
        interrupt::asked()
    }
}
