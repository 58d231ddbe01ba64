//! Team of threads that compute a launch together.
//!
//! A launch on a small lattice takes a few microseconds, less than an operating system needs to wake a thread. The threads of a team
//! therefore spin for a while before they sleep. The caller computes too, and does not wait for threads that are still asleep.
#![allow(unsafe_code)]

use std::any::Any;
use std::cell::UnsafeCell;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, TryLockError};
use std::time::{Duration, Instant};

/// Time that a thread spins for the next launch before it sleeps.
const PATIENCE: Duration = Duration::from_micros(200);
/// Number of pauses between two readings of the clock.
const PAUSES: usize = 64;

/// A team of threads: the caller of a launch and its workers.
pub(super) struct Team {
    state: Arc<TeamState>,
    /// Lock that is held during a launch.
    launching: Mutex<()>,
}

/// Task of a launch; the argument is the number of the task.
type Task<'a> = dyn Fn(usize) + Sync + 'a;

struct TeamState {
    /// Twice the number of launches that have ended; one more during a launch.
    phase: AtomicUsize,
    /// Number of workers that are computing in the present launch.
    active: AtomicUsize,
    /// Task of the present launch; the caller writes it while no worker is active.
    job: UnsafeCell<Option<*const Task<'static>>>,
    /// Tasks of each thread. A thread that has finished its own tasks takes those of others.
    shares: Box<[Share]>,
    /// Whether the team is to end.
    is_over: AtomicBool,
    /// Number of sleeping workers.
    sleepers: AtomicUsize,
    /// Lock for workers that fall asleep, and for the caller that wakes them.
    falling_asleep: Mutex<()>,
    wake: Condvar,
    /// Payload of a panic in a worker.
    panic: Mutex<Option<Box<dyn Any + Send>>>,
}
// SAFETY: `job` is written while no worker is active, and read by active workers; see `Team::run`.
unsafe impl Sync for TeamState {}
// SAFETY: as above; the task it points to is `Sync`.
unsafe impl Send for TeamState {}

/// Range of tasks of one thread, on its own cache line.
#[derive(Default)]
#[repr(align(128))]
struct Share {
    next: AtomicUsize,
    end: AtomicUsize,
}

impl Team {
    /// Starts a team of `threads` threads; the caller is one of them. Each other thread calls `start` with its number, from 1, and the
    /// number of threads.
    ///
    /// # Errors
    /// Fails if the operating system provides too few threads.
    pub fn new(threads: usize, start: fn(usize, usize)) -> std::io::Result<Self> {
        let state = Arc::new(TeamState {
            phase: AtomicUsize::new(0),
            active: AtomicUsize::new(0),
            job: UnsafeCell::new(None),
            shares: (0..threads).map(|_| Share::default()).collect(),
            is_over: AtomicBool::new(false),
            sleepers: AtomicUsize::new(0),
            falling_asleep: Mutex::new(()),
            wake: Condvar::new(),
            panic: Mutex::new(None),
        });
        let team = Team { state, launching: Mutex::new(()) };
        for number in 1..threads {
            let state = team.state.clone();
            let work = move || {
                start(number, threads);
                state.work(number);
            };
            std::thread::Builder::new().name(format!("ferrite-{number}")).spawn(work)?;
        }
        Ok(team)
    }
    /// Returns the number of threads in the team, including the caller.
    pub fn threads(&self) -> usize {
        self.state.shares.len()
    }
    /// Calls `task` for each number below `count`, with the calls distributed over the threads of the team. If the team is already
    /// computing, for example because a task calls this function, the caller computes everything itself.
    pub fn run(&self, count: usize, task: &Task<'_>) {
        let busy = match self.launching.try_lock() {
            Ok(guard) if self.threads() > 1 => Some(guard),
            Err(TryLockError::Poisoned(error)) => Some(error.into_inner()),
            _ => None,
        };
        let Some(_busy) = busy else { return (0..count).for_each(task) };
        let state = &*self.state;
        for (number, share) in state.shares.iter().enumerate() {
            share.next.store(number * count / self.threads(), SeqCst);
            share.end.store((number + 1) * count / self.threads(), SeqCst);
        }
        // SAFETY: no launch is under way, so no worker is active and reads the job. The pointer is used by active workers only, and this
        // function does not return before there are none.
        unsafe { *state.job.get() = Some(std::mem::transmute::<*const Task<'_>, *const Task<'static>>(task)) };
        state.phase.fetch_add(1, SeqCst);
        state.wake_sleepers();
        let end = EndOfLaunch(state);
        state.take_tasks(0, task);
        drop(end);
        if let Some(payload) = lock(&state.panic).take() {
            resume_unwind(payload);
        }
    }
}

/// Ends a launch when dropped, even if the task of the caller panics. Workers that have not joined the launch no longer do so, and the
/// others finish.
struct EndOfLaunch<'a>(&'a TeamState);
impl Drop for EndOfLaunch<'_> {
    fn drop(&mut self) {
        self.0.phase.fetch_add(1, SeqCst);
        let mut waited = Waiting::default();
        while self.0.active.load(SeqCst) > 0 {
            waited.pause();
        }
        if std::thread::panicking() {
            // The caller reports its own panic. The panic of a worker is discarded, so that it does not appear in a later launch.
            lock(&self.0.panic).take();
        }
    }
}

impl Drop for Team {
    fn drop(&mut self) {
        self.state.is_over.store(true, SeqCst);
        // Workers check `is_over` whenever the phase changes. They share ownership of the state, and the team does not wait for them: in a
        // forked process they do not exist.
        self.state.phase.fetch_add(2, SeqCst);
        self.state.wake_sleepers();
    }
}

impl TeamState {
    /// Takes part in launches until the team ends.
    fn work(&self, number: usize) {
        let mut seen = 0;
        while let Some(phase) = self.next_phase(seen) {
            seen = phase;
            if phase.is_multiple_of(2) {
                continue;
            }
            self.active.fetch_add(1, SeqCst);
            // This thread and the caller both write before they read. Therefore, either this thread reads that the launch has ended, or the
            // caller reads that this thread is active.
            if self.phase.load(SeqCst) == phase {
                // SAFETY: the launch is under way, and the caller waits for active threads.
                let task = unsafe { (*self.job.get()).map(|task| &*task) };
                if let Some(Err(payload)) =
                    task.map(|task| catch_unwind(AssertUnwindSafe(|| self.take_tasks(number, task))))
                {
                    *lock(&self.panic) = Some(payload);
                }
            }
            self.active.fetch_sub(1, SeqCst);
        }
    }
    /// Waits until the phase differs from `seen`, and returns the new phase; `None` if the team ends.
    fn next_phase(&self, seen: usize) -> Option<usize> {
        let (mut waited, begin) = (Waiting::default(), Instant::now());
        while self.phase.load(SeqCst) == seen {
            if waited.pause() && begin.elapsed() > PATIENCE {
                self.sleep(seen);
            }
        }
        (!self.is_over.load(SeqCst)).then(|| self.phase.load(SeqCst))
    }
    /// Sleeps until the phase differs from `seen`.
    fn sleep(&self, seen: usize) {
        let mut guard = lock(&self.falling_asleep);
        self.sleepers.fetch_add(1, SeqCst);
        // A thread that changes the phase after this check finds a sleeper, and waits for the lock before it wakes the sleeper.
        while self.phase.load(SeqCst) == seen {
            guard = self.wake.wait(guard).unwrap_or_else(|error| error.into_inner());
        }
        self.sleepers.fetch_sub(1, SeqCst);
    }
    /// Wakes all sleeping workers after a change of the phase.
    fn wake_sleepers(&self) {
        if self.sleepers.load(SeqCst) > 0 {
            let _guard = lock(&self.falling_asleep);
            self.wake.notify_all();
        }
    }
    /// Runs the tasks of the thread with this number, and then those that are left of other threads.
    fn take_tasks(&self, number: usize, task: &Task<'_>) {
        for k in 0..self.shares.len() {
            let share = &self.shares[(number + k) % self.shares.len()];
            loop {
                let next = share.next.fetch_add(1, SeqCst);
                if next >= share.end.load(SeqCst) {
                    break;
                }
                task(next);
            }
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(|error| error.into_inner())
}

/// Loop of active waiting: mostly pauses, and now and then the processor is yielded to other threads.
#[derive(Default)]
struct Waiting(usize);
impl Waiting {
    /// Pauses; returns whether it is time to read the clock.
    fn pause(&mut self) -> bool {
        self.0 += 1;
        if self.0.is_multiple_of(PAUSES) {
            std::thread::yield_now();
            return true;
        }
        std::hint::spin_loop();
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::AtomicU32;

    fn team(threads: usize) -> Team {
        Team::new(threads, |_, _| ()).unwrap()
    }

    #[test]
    fn each_task_is_done_once() {
        for threads in [1, 2, 3, 8] {
            let team = team(threads);
            for (launch, count) in [0, 1, 2, 7, 100].into_iter().cycle().take(2000).enumerate() {
                let done: Vec<AtomicU32> = (0..count).map(|_| AtomicU32::new(0)).collect();
                team.run(count, &|task| {
                    done[task].fetch_add(1, SeqCst);
                });
                assert!(done.iter().all(|times| times.load(SeqCst) == 1), "{threads} threads, launch {launch}");
                if launch % 400 == 0 {
                    // Longer than the workers wait actively.
                    std::thread::sleep(2 * PATIENCE);
                }
            }
        }
    }

    #[test]
    fn a_launch_from_a_task_or_another_thread_is_done() {
        let (team, done) = (team(3), AtomicU32::new(0));
        let ten = || {
            team.run(10, &|_| {
                team.run(2, &|_| {
                    done.fetch_add(1, SeqCst);
                })
            })
        };
        std::thread::scope(|scope| {
            scope.spawn(ten);
            scope.spawn(ten);
        });
        assert_eq!(done.load(SeqCst), 40);
    }

    #[test]
    fn a_panic_reaches_the_caller_and_the_team_goes_on() {
        let team = team(4);
        // One of the caller's tasks, others, and all of them in each thread.
        for bad in [0..1, 50..51, 99..100, 0..100] {
            let result =
                catch_unwind(AssertUnwindSafe(|| team.run(100, &|task| assert!(!bad.contains(&task), "task {task}"))));
            assert!(result.is_err(), "{bad:?}");
            let done = AtomicU32::new(0);
            team.run(100, &|_| {
                done.fetch_add(1, SeqCst);
            });
            assert_eq!(done.load(SeqCst), 100);
        }
    }
}
