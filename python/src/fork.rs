//! Forks. A forked process has a copy of its parent's memory and none of its parent's threads, so that it would wait for one of them
//! forever.
use ferrite_tasks::{Failure, Outcome};
use rayon::{ThreadPool, ThreadPoolBuilder};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};

/// The process that imported the package.
static IMPORTED: AtomicU32 = AtomicU32::new(0);
/// The process that started the GPU's driver; 0 while none has.
static DRIVER: AtomicU32 = AtomicU32::new(0);

/// Advice for programs that fork.
const ADVICE: &str = "start processes with multiprocessing's method 'spawn' or 'forkserver'";

/// Returns the number of this process.
pub fn this_process() -> u32 {
    std::process::id()
}

/// Notes the process that imports the package.
pub fn imported() {
    IMPORTED.store(this_process(), Ordering::Relaxed);
}

/// Returns whether this process was forked after the package had been imported.
pub fn is_forked() -> bool {
    IMPORTED.load(Ordering::Relaxed) != this_process()
}

/// Refuses the use of a device that another process opened.
pub fn check_opened_here(opened_in: u32) -> Outcome {
    if opened_in == this_process() {
        return Ok(());
    }
    Err(Failure::failed(format!(
        "the device of this object was opened in the parent process, and a forked process cannot access it: {ADVICE}, \
         or create the object again in this process"
    )))
}

/// Notes that this process has started the GPU's driver.
pub fn driver_started() {
    // The first process keeps its place: a forked one cannot start the driver again.
    let _ = DRIVER.compare_exchange(0, this_process(), Ordering::Relaxed, Ordering::Relaxed);
}

/// Refuses the use of GPUs where the parent process started the driver, which does not work in a forked one.
pub fn check_driver() -> Outcome {
    let started_in = DRIVER.load(Ordering::Relaxed);
    if started_in == 0 || started_in == this_process() {
        return Ok(());
    }
    Err(Failure::failed(format!(
        "the GPU driver was started in the parent process, and does not work in a forked process: {ADVICE}, or use the \
         CPU in this process, fe.init(\"cpu\")"
    )))
}

/// Returns the threads for work of the host in a forked process, whose global pool may be the parent's, without threads; `None`
/// elsewhere. Each forked process has one such pool.
pub fn pool() -> Outcome<Option<Arc<ThreadPool>>> {
    static POOL: Mutex<Option<(u32, Arc<ThreadPool>)>> = Mutex::new(None);
    if !is_forked() {
        return Ok(None);
    }
    let build = || {
        let made = ThreadPoolBuilder::new().build();
        made.map(Arc::new).map_err(|why| Failure::failed(format!("threads cannot be started: {why}")))
    };
    // Another thread of the parent may have had the lock when this process was forked from a forked one.
    let Ok(mut known) = POOL.try_lock() else { return Ok(Some(build()?)) };
    match &*known {
        Some((process, pool)) if *process == this_process() => Ok(Some(pool.clone())),
        _ => {
            let pool = build()?;
            // The pool of a parent has no threads here that its end could be announced to.
            std::mem::forget(known.replace((this_process(), pool.clone())));
            Ok(Some(pool))
        }
    }
}
