//! Forks of the Python process. A forked process has a copy of its parent's memory but none of its parent's threads. It would wait forever
//! for one of these threads.
use ferrite_tasks::{Failure, Outcome};
use rayon::{ThreadPool, ThreadPoolBuilder};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};

/// Number of the process that imported the package.
static IMPORTED: AtomicU32 = AtomicU32::new(0);
/// Number of the process that started the GPU driver; 0 before any did.
static DRIVER: AtomicU32 = AtomicU32::new(0);

/// Advice in messages for programs that fork.
const ADVICE: &str = "start processes with multiprocessing's method 'spawn' or 'forkserver'";

/// Returns the identifier of this process in the operating system.
pub fn this_process() -> u32 {
    std::process::id()
}

/// Records that this process imports the package.
pub fn imported() {
    IMPORTED.store(this_process(), Ordering::Relaxed);
}

/// Returns whether this process was forked after the package had been imported.
pub fn is_forked() -> bool {
    IMPORTED.load(Ordering::Relaxed) != this_process()
}

/// Fails if the device was opened in another process.
pub fn check_opened_here(opened_in: u32) -> Outcome {
    if opened_in == this_process() {
        return Ok(());
    }
    Err(Failure::failed(format!(
        "the device of this object was opened in the parent process, and a forked process cannot access it: {ADVICE}, \
         or create the object again in this process"
    )))
}

/// Records that this process has started the GPU driver.
pub fn driver_started() {
    // Only the first process is recorded, because a forked process cannot start the driver again.
    let _ = DRIVER.compare_exchange(0, this_process(), Ordering::Relaxed, Ordering::Relaxed);
}

/// Fails if another process, from which this one was forked, started the GPU driver. The driver does not work in a forked process.
pub fn check_driver() -> Outcome {
    let started_in = DRIVER.load(Ordering::Relaxed);
    if started_in == 0 || started_in == this_process() {
        return Ok(());
    }
    Err(Failure::failed(format!(
        "the GPU driver was started in the parent process, and does not work in a forked process: {ADVICE}, or use the \
         CPU in this process with fe.init(\"cpu\")"
    )))
}

/// Returns the pool of threads for host work in a forked process; `None` in other processes. A forked process has its own pool, because the
/// global pool may be the parent's and have no threads.
pub fn pool() -> Outcome<Option<Arc<ThreadPool>>> {
    static POOL: Mutex<Option<(u32, Arc<ThreadPool>)>> = Mutex::new(None);
    if !is_forked() {
        return Ok(None);
    }
    let build = || {
        let made = ThreadPoolBuilder::new().build();
        made.map(Arc::new).map_err(|why| Failure::failed(format!("threads cannot be started: {why}")))
    };
    // The lock may have been held by a parent's thread when this process was forked.
    let Ok(mut known) = POOL.try_lock() else { return Ok(Some(build()?)) };
    match &*known {
        Some((process, pool)) if *process == this_process() => Ok(Some(pool.clone())),
        _ => {
            let pool = build()?;
            // The parent's pool has no threads in this process, so it must not be dropped.
            std::mem::forget(known.replace((this_process(), pool.clone())));
            Ok(Some(pool))
        }
    }
}
