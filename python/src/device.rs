//! Devices. Each has a thread of its own, on which all work on it is done: a backend, with everything on it, is used by one
//! thread at a time, while Python's threads may be any. Whoever asks for work waits without the interpreter's lock, and
//! looks for signals such as Ctrl-C meanwhile.
use crate::failure::{Failure, Outcome, in_python};
use ferrite::backend::{Backend, Cpu};
use ferrite::domain::Domain;
use ferrite::lattice::Lattice;
use pyo3::prelude::*;
use std::any::Any;
use std::collections::HashMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// How long work may go on before signals are looked at.
const LOOK: Duration = Duration::from_millis(50);

/// What lives on a device's thread.
pub struct DeviceThread {
    /// The device.
    pub backend: Arc<dyn Backend>,
    /// What is kept there for objects of Python, by their numbers.
    kept: HashMap<u64, Box<dyn Any>>,
}

impl DeviceThread {
    /// The device with a whole lattice on it.
    pub fn domain(&self, lattice: Lattice) -> Outcome<Domain> {
        Ok(Domain::single(self.backend.clone(), lattice)?)
    }
    /// What is kept under a number.
    pub fn kept<T: 'static>(&mut self, number: u64) -> Outcome<&mut T> {
        let found = self.kept.get_mut(&number).and_then(|kept| kept.downcast_mut());
        found.ok_or_else(|| Failure::other("the object is not on this device any more"))
    }
}

/// Work that a device is given.
type Work = Box<dyn FnOnce(&mut DeviceThread) + Send>;

/// Whether somebody wants work to end.
#[derive(Clone, Default)]
pub struct Stop(Arc<AtomicBool>);

impl Stop {
    /// Whether it should end now.
    pub fn is_asked(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
    /// An error if it should end now.
    pub fn check(&self) -> Outcome {
        if self.is_asked() { Err(Failure::other("stopped")) } else { Ok(()) }
    }
}

/// A device: a GPU, or the CPU.
#[pyclass(frozen, module = "ferrite_lqcd._native")]
pub struct Device {
    work: Arc<Mutex<Sender<Work>>>,
    /// `cpu` or `cuda`.
    #[pyo3(get)]
    name: &'static str,
    /// For people.
    #[pyo3(get)]
    description: String,
    /// The number of a GPU.
    ordinal: Option<usize>,
}

/// Something of a device that other threads may hold. It is dropped on the device's thread.
pub struct Returned<T: Send + 'static> {
    what: Option<T>,
    work: Arc<Mutex<Sender<Work>>>,
}

impl<T: Send + 'static> Returned<T> {
    /// The thing itself.
    pub fn get(&self) -> &T {
        self.what.as_ref().expect("it is there until it is dropped")
    }
}

impl<T: Send + 'static> Drop for Returned<T> {
    fn drop(&mut self) {
        if let (Some(what), Ok(work)) = (self.what.take(), self.work.lock()) {
            // Where the thread has ended it is dropped here.
            let _ = work.send(Box::new(move |_| drop(what)));
        }
    }
}

/// What an object of Python has on a device. It is freed with this.
pub struct Kept {
    number: u64,
    work: Arc<Mutex<Sender<Work>>>,
}

impl Drop for Kept {
    fn drop(&mut self) {
        let number = self.number;
        if let Ok(work) = self.work.lock() {
            // A thread that has ended has freed everything.
            let _ = work.send(Box::new(move |bench| drop(bench.kept.remove(&number))));
        }
    }
}

impl Kept {
    /// The number under which the bench has it.
    pub fn number(&self) -> u64 {
        self.number
    }
}

fn open(kind: &str, index: usize, threads: Option<usize>) -> Outcome<Arc<dyn Backend>> {
    match kind {
        "cpu" => Ok(Arc::new(Cpu::try_new(threads)?)),
        "cuda" => gpu(index),
        other => Err(Failure::input(format!("'{other}' is no device: there are 'cpu' and 'cuda'"))),
    }
}

#[cfg(feature = "cuda")]
fn gpu(index: usize) -> Outcome<Arc<dyn Backend>> {
    Ok(Arc::new(ferrite::backend::Cuda::new(index)?))
}
#[cfg(not(feature = "cuda"))]
fn gpu(_: usize) -> Outcome<Arc<dyn Backend>> {
    Err(Failure::input("this build knows no GPUs: it was made without the feature cuda"))
}

/// The thread of a device.
fn serve(backend: Arc<dyn Backend>, threads: Option<usize>, work: &Receiver<Work>) {
    // Work of the host that is asked for here uses as many threads.
    let pool = threads.map(|n| rayon::ThreadPoolBuilder::new().num_threads(n).use_current_thread().build());
    let mut bench = DeviceThread { backend, kept: HashMap::new() };
    while let Ok(one) = work.recv() {
        one(&mut bench);
    }
    drop(pool);
}

impl Device {
    /// Does work on the device and waits for it. Ctrl-C asks it to stop, waits until it does, and raises `KeyboardInterrupt`.
    pub fn run<T: Send + 'static>(
        &self,
        py: Python<'_>,
        work: impl FnOnce(&mut DeviceThread, &Stop) -> Outcome<T> + Send + 'static,
    ) -> PyResult<T> {
        let (stop, (send, mut receive)) = (Stop::default(), channel());
        let asked = stop.clone();
        let job: Work = Box::new(move |bench| {
            let done = catch_unwind(AssertUnwindSafe(|| work(bench, &asked)));
            // Nobody waits any more where the interpreter is ending.
            let _ = send.send(done.unwrap_or_else(|panic| Err(Failure::other(said(&*panic)))));
        });
        let sent = self.work.lock().map(|work| work.send(job));
        if !matches!(sent, Ok(Ok(()))) {
            return Err(Failure::other("the device has ended").into());
        }
        let mut interrupted = None;
        loop {
            let found;
            (receive, found) = py.detach(move || {
                let found = receive.recv_timeout(LOOK);
                (receive, found)
            });
            match (found, interrupted) {
                (Ok(_), Some(signal)) => return Err(signal),
                (Ok(done), None) => return Ok(done?),
                (Err(RecvTimeoutError::Disconnected), _) => return Err(Failure::other("the device has ended").into()),
                (Err(RecvTimeoutError::Timeout), before) => {
                    interrupted = before.or(py.check_signals().err());
                    stop.0.store(interrupted.is_some(), Ordering::Relaxed);
                }
            }
        }
    }
    /// Something of this device, to be held anywhere.
    pub fn returned<T: Send + 'static>(&self, what: T) -> Returned<T> {
        Returned { what: Some(what), work: self.work.clone() }
    }
    /// The number of a GPU.
    pub fn ordinal(&self) -> Option<usize> {
        self.ordinal
    }
    /// Makes something that stays on the device for as long as an object of Python needs it.
    pub fn keep<T: 'static>(
        &self,
        py: Python<'_>,
        make: impl FnOnce(&mut DeviceThread, &Stop) -> Outcome<T> + Send + 'static,
    ) -> PyResult<Kept> {
        static NUMBER: AtomicU64 = AtomicU64::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        self.run(py, move |bench, stop| {
            let made = make(bench, stop)?;
            bench.kept.insert(number, Box::new(made));
            Ok(())
        })?;
        Ok(Kept { number, work: self.work.clone() })
    }
}

/// What a panic said: a mistake of the library.
fn said(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().map(|text| (*text).to_string());
    let text = text.or_else(|| panic.downcast_ref::<String>().cloned()).unwrap_or_default();
    format!("internal error, please report it: {text}")
}

#[pymethods]
impl Device {
    /// Opens `cpu`, with so many threads, or `cuda` with a number.
    #[new]
    #[pyo3(signature = (kind, index = 0, threads = None))]
    fn new(py: Python<'_>, kind: String, index: usize, threads: Option<usize>) -> PyResult<Self> {
        if threads.is_some_and(|threads| !(1..=1024).contains(&threads)) {
            return Err(Failure::input("threads: a number from 1 to 1024").into());
        }
        let backend = py.detach(|| open(&kind, index, threads))?;
        let (name, description) = (backend.name(), backend.device());
        let (send, receive) = channel::<Work>();
        let thread = std::thread::Builder::new().name("ferrite device".into());
        let started = thread.spawn(move || serve(backend, threads, &receive));
        started.map_err(|why| Failure::other(format!("no thread could be started: {why}")))?;
        let ordinal = (name == "cuda").then_some(index);
        Ok(Device { work: Arc::new(Mutex::new(send)), name, description, ordinal })
    }
    /// Free and total memory in bytes.
    fn memory(&self, py: Python<'_>) -> PyResult<(usize, usize)> {
        self.run(py, |bench, _| {
            let memory = bench.backend.memory()?;
            Ok((memory.free, memory.total))
        })
    }
}

/// Names of the GPUs that there are; without a driver a sentence that says so.
#[pyfunction]
pub fn gpus() -> (Vec<String>, Option<String>) {
    #[cfg(feature = "cuda")]
    match ferrite::backend::Cuda::devices() {
        Ok(found) => (found.iter().map(|gpu| gpu.name.clone()).collect(), None),
        Err(why) => (Vec::new(), Some(in_python(&why.to_string()))),
    }
    #[cfg(not(feature = "cuda"))]
    (Vec::new(), Some("this build knows no GPUs".into()))
}
