//! Shared parts of all calls: the check of the thread, the trace, and the end of the application after a failure, because the interface has
//! no codes.
use ferrite_tasks::failure::without_flags;
use ferrite_tasks::{Failure, Outcome};
use std::cell::{Cell, RefCell};
use std::fs::{File, OpenOptions};
use std::io::Write;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::OnceLock;
use std::thread::ThreadId;

/// Environment variable with the file to which calls are traced.
pub const TRACE: &str = "FERRITE_QUDA_TRACE";
/// Environment variable that chooses how a failure ends the application: `exit` with the code 1, the default, or `abort`.
pub const ERROR: &str = "FERRITE_QUDA_ERROR";

/// Thread of the first call.
static THREAD: OnceLock<ThreadId> = OnceLock::new();

thread_local! {
    static CALLS: Cell<usize> = const { Cell::new(0) };
    static TRACE_FILE: RefCell<Option<Option<File>>> = const { RefCell::new(None) };
}

/// Runs a call; a failure or a panic ends the application.
pub fn enter<T>(name: &str, trace: impl FnOnce() -> String, work: impl FnOnce() -> Outcome<T>) -> T {
    let done = catch_unwind(AssertUnwindSafe(|| {
        if *THREAD.get_or_init(|| std::thread::current().id()) != std::thread::current().id() {
            return Err(Failure::failed(
                "called from another thread than the first call: make all calls of this interface from one thread",
            ));
        }
        CALLS.set(CALLS.get() + 1);
        write_trace(|| format!("{} {}", CALLS.get(), trace()))?;
        work()
    }));
    match done {
        Ok(Ok(value)) => value,
        Ok(Err(failure)) => end(name, &failure),
        Err(panic) => end(name, &Failure::of_panic(&*panic)),
    }
}

/// Refuses a function that is not offered.
pub fn refuse<T>(_: &str) -> Outcome<T> {
    Err(Failure::refused(
        "Ferrite does not offer this function of QUDA's interface; its manual lists those that it does",
    ))
}

/// Ends the application with a sentence.
fn end(name: &str, failure: &Failure) -> ! {
    // The program's flags mean nothing to applications.
    let cpu = "call initQuda(-1) on a machine without a GPU for its CPU";
    let message = without_flags(&failure.message, cpu, "the argument of initQuda");
    let sentence = format!("{name}: {message}");
    crate::processes::abort(&format!("ferrite: {sentence}"));
    crate::setup::say_failure(&sentence);
    match std::env::var(ERROR).as_deref() {
        Ok("abort") => std::process::abort(),
        _ => std::process::exit(1),
    }
}

/// Appends what a call does to the trace, if there is one.
pub fn note(text: &str) -> Outcome {
    write_trace(|| format!("   {text}\n"))
}

/// Appends a text to the trace, if there is one.
fn write_trace(text: impl FnOnce() -> String) -> Outcome {
    TRACE_FILE.with_borrow_mut(|file| {
        if file.is_none() {
            let path = std::env::var_os(TRACE).filter(|path| !path.is_empty());
            let open = |path: std::ffi::OsString| {
                OpenOptions::new().create(true).append(true).open(&path).map_err(|why| {
                    Failure::failed(format!("{TRACE} = {}: the file cannot be written: {why}", path.display()))
                })
            };
            *file = Some(path.map(open).transpose()?);
        }
        let Some(Some(file)) = file else { return Ok(()) };
        let written = file.write_all(text().as_bytes());
        written.map_err(|why| Failure::failed(format!("{TRACE}: the trace cannot be written: {why}")))
    })
}
