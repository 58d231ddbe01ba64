//! Devices. All work on a device is done on a thread of its own, because a backend and its data are used by one thread at a time, while any
//! thread of Python may request work. A thread that requests work waits without the interpreter's lock, and polls for signals such as
//! Ctrl-C.
use crate::failure::{Returned, caught, in_python};
use crate::fork;
pub use crate::host::Stop;
use crate::host::{OnSignal, wait};
use crate::processes::Joined;
use ferrite::lattice::Lattice;
use ferrite_tasks::grid_device::{GridDevice, NamedDevice};
use ferrite_tasks::layout::GridRank;
use ferrite_tasks::{Failure, Outcome};
use pyo3::prelude::*;
use std::any::Any;
use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};

/// Data that live on the thread of a device.
pub struct DeviceThread {
    /// Device, with the processes that partition lattices among them.
    pub device: GridDevice,
    /// Data of Python objects on the device, by number; `None` while work uses them.
    kept: HashMap<u64, Option<Box<dyn Any>>>,
    /// Connection to the MPI processes.
    joined: Joined,
}

impl DeviceThread {
    /// Returns the data that are kept under the number `number`.
    pub fn kept<T: 'static>(&mut self, number: u64) -> Outcome<&mut T> {
        let found = self.kept.get_mut(&number).and_then(Option::as_mut).and_then(|kept| kept.downcast_mut());
        found.ok_or_else(|| {
            Failure::failed("the data of this object are no longer on its device: create the object again")
        })
    }
    /// Calls `work` with the data that are kept under the number `number`. If `work` panics, the data may be incomplete and are no longer
    /// kept.
    pub fn with<T: 'static, R>(
        &mut self,
        number: u64,
        work: impl FnOnce(&GridDevice, &mut T) -> Outcome<R>,
    ) -> Outcome<R> {
        let Some(mut kept) = self.kept.get_mut(&number).and_then(Option::take) else {
            return Err(Failure::failed(
                "an internal error interrupted the last call of this object, whose data may be incomplete: create the object again",
            ));
        };
        let other =
            || Failure::failed("the data of this object on its device have another type: create the object again");
        let object = kept.downcast_mut().ok_or_else(other)?;
        let done = work(&self.device, object);
        self.kept.insert(number, Some(kept));
        done
    }
}

/// Work for the thread of a device.
type Work = Box<dyn FnOnce(&mut DeviceThread) + Send>;

/// Queue that sends work to the thread of a device.
struct WorkQueue {
    /// Number of the process in which the thread runs.
    process: u32,
    /// Sending end of the channel to the thread; `None` only while the queue is dropped.
    sender: Option<Mutex<Sender<Work>>>,
}

impl WorkQueue {
    fn new(sender: Sender<Work>) -> Arc<Self> {
        Arc::new(WorkQueue { process: fork::this_process(), sender: Some(Mutex::new(sender)) })
    }
    fn is_here(&self) -> bool {
        self.process == fork::this_process()
    }
    /// Sends work to the thread. Returns whether the thread will do it.
    fn send(&self, work: Work) -> bool {
        let sender = self.sender.as_ref().filter(|_| self.is_here());
        let sent = sender.and_then(|sender| sender.lock().ok().map(|sender| sender.send(work)));
        matches!(sent, Some(Ok(())))
    }
}

impl Drop for WorkQueue {
    fn drop(&mut self) {
        // In a forked process, threads that do not exist there may hold locks of the channel.
        if !self.is_here() {
            std::mem::forget(self.sender.take());
        }
    }
}

/// Device that Python uses: a GPU or the CPU.
#[pyclass(frozen, module = "ferrite_lqcd._native", name = "Device")]
pub struct PyDevice {
    work: Arc<WorkQueue>,
    /// Name of the backend: `cpu` or `cuda`.
    #[pyo3(get)]
    name: &'static str,
    /// Description of the device for people.
    #[pyo3(get)]
    description: String,
    /// Number of the GPU; `None` for the CPU.
    ordinal: Option<usize>,
    place: GridRank,
}

/// Object that belongs to a device but may be held by other threads. It is dropped on the device's thread.
pub struct Lent<T: Send + 'static> {
    what: Option<T>,
    work: Arc<WorkQueue>,
}

impl<T: Send + 'static> Lent<T> {
    /// Returns the object.
    pub fn get(&self) -> &T {
        self.what.as_ref().expect("it is there until it is dropped")
    }
}

impl<T: Send + 'static> Drop for Lent<T> {
    fn drop(&mut self) {
        let what = self.what.take();
        if self.work.is_here() {
            // If the device's thread has ended, the object is dropped on this thread.
            self.work.send(Box::new(move |_| drop(what)));
        } else {
            // The object belongs to the device of another process and cannot be freed here.
            std::mem::forget(what);
        }
    }
}

/// Handle of a Python object whose data are on a device. The data are freed when the handle is dropped.
pub struct DeviceHandle {
    number: u64,
    work: Arc<WorkQueue>,
}

impl Drop for DeviceHandle {
    fn drop(&mut self) {
        let number = self.number;
        // If the device's thread has ended, the data have been freed already.
        self.work.send(Box::new(move |bench| drop(bench.kept.remove(&number))));
    }
}

impl DeviceHandle {
    /// Returns the number under which the device's thread keeps the data.
    pub fn number(&self) -> u64 {
        self.number
    }
}

/// Properties of an open device.
struct DeviceProperties {
    name: &'static str,
    description: String,
    ordinal: Option<usize>,
    place: GridRank,
}

/// Opens a device on the current thread, which will serve it. `comm` is the address of an `MPI_Comm`, if there is one.
fn open(named: &NamedDevice, comm: Option<usize>) -> Outcome<DeviceThread> {
    let (joined, comm) = match comm.map(Joined::to).transpose()? {
        Some((joined, comm)) => (joined, Some(comm)),
        None => (Joined::default(), None),
    };
    if named.name == "cuda" {
        // Starts the GPU driver, and records that this process has started it.
        names_of_gpus();
    }
    Ok(DeviceThread { device: named.open(comm)?, kept: HashMap::new(), joined })
}

/// Opens a device on the current thread, and does work for it until the queue is closed.
fn serve(named: &NamedDevice, comm: Option<usize>, say: &Sender<Outcome<DeviceProperties>>, work: &Receiver<Work>) {
    let mut bench = match caught(|| open(named, comm)) {
        Ok(open) => open,
        Err(why) => {
            let _ = say.send(Err(why));
            return;
        }
    };
    let (backend, device) = (bench.device.backend(), &bench.device);
    let (name, description) = (backend.name(), backend.device());
    let opened = DeviceProperties { name, description, ordinal: device.ordinal(), place: device.place() };
    // Host work that is requested on this thread uses as many threads as the device. In a forked process, the global pool may be the
    // parent's and have no threads.
    let threads = device.threads().or(fork::is_forked().then_some(0));
    let pool = threads.map(|n| rayon::ThreadPoolBuilder::new().num_threads(n).use_current_thread().build());
    if say.send(Ok(opened)).is_ok() {
        while let Ok(one) = work.recv() {
            one(&mut bench);
        }
    }
    drop(pool);
}

impl PyDevice {
    /// Fails if the device was opened in a parent process from which this process was forked.
    pub fn check_opened_here(&self) -> Outcome {
        fork::check_opened_here(self.work.process)
    }
    /// Runs `work` on the thread of the device and waits for it. Ctrl-C requests a stop and raises `KeyboardInterrupt`, as described for
    /// [`OnSignal::Stop`]. Work that continues ends before the device begins other work.
    pub fn run<T: Send + 'static>(
        &self,
        py: Python<'_>,
        work: impl FnOnce(&mut DeviceThread, &Stop) -> Outcome<T> + Send + 'static,
    ) -> Returned<T> {
        self.check_opened_here()?;
        let (stop, (send, receive)) = (Stop::default(), channel());
        let asked = stop.clone();
        let job: Work = Box::new(move |bench| {
            // Ctrl-C may have come while the thread did other work.
            let done = asked.check().and_then(|()| caught(|| work(bench, &asked)));
            // Nothing receives the result if the interpreter is ending.
            let _ = send.send(done);
        });
        if !self.work.send(job) {
            return Err(Failure::failed("the device is closed").into());
        }
        let on_signal = if self.place.is_shared() { OnSignal::Ignore } else { OnSignal::Stop(&stop) };
        wait(py, receive, &on_signal)
    }
    /// Wraps an object on this device, so that other threads may hold it.
    pub fn lent<T: Send + 'static>(&self, what: T) -> Lent<T> {
        Lent { what: Some(what), work: self.work.clone() }
    }
    /// Returns the number of the GPU; `None` for the CPU.
    pub fn ordinal(&self) -> Option<usize> {
        self.ordinal
    }
    /// Returns the process grid with the rank of this process.
    pub fn place(&self) -> GridRank {
        self.place
    }
    /// Creates data on the thread of the device, which keeps them until the handle is dropped.
    pub fn keep<T: 'static>(
        &self,
        py: Python<'_>,
        make: impl FnOnce(&mut DeviceThread, &Stop) -> Outcome<T> + Send + 'static,
    ) -> Returned<DeviceHandle> {
        Ok(self.keep_beside(py, move |bench, stop| Ok((make(bench, stop)?, ())))?.0)
    }
    /// Creates data on the thread of the device, which keeps them until the handle is dropped. Also returns a result of their creation.
    pub fn keep_beside<T: 'static, R: Send + 'static>(
        &self,
        py: Python<'_>,
        make: impl FnOnce(&mut DeviceThread, &Stop) -> Outcome<(T, R)> + Send + 'static,
    ) -> Returned<(DeviceHandle, R)> {
        static NUMBER: AtomicU64 = AtomicU64::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        // The handle is created first, so that data created after Ctrl-C are also freed.
        let kept = DeviceHandle { number, work: self.work.clone() };
        let beside = self.run(py, move |bench, stop| {
            let (made, beside) = make(bench, stop)?;
            bench.kept.insert(number, Some(Box::new(made)));
            Ok(beside)
        })?;
        Ok((kept, beside))
    }
}

#[pymethods]
impl PyDevice {
    /// Opens a device: `cpu` with a number of threads, or `cuda` with the number of a GPU. `comm` is the address of an `MPI_Comm`, whose
    /// processes partition lattices among them.
    #[staticmethod]
    #[pyo3(signature = (kind, index = None, threads = None, comm = None, grid = None))]
    fn open(
        py: Python<'_>,
        kind: String,
        index: Option<usize>,
        threads: Option<usize>,
        comm: Option<usize>,
        grid: Option<[usize; 4]>,
    ) -> Returned<Self> {
        if threads.is_some_and(|threads| !(1..=1024).contains(&threads)) {
            let given = threads.unwrap_or_default();
            return Err(Failure::refused(format!("threads = {given}: expected a number from 1 to 1024")).into());
        }
        if kind == "cuda" {
            fork::check_driver()?;
        }
        let named = NamedDevice { name: kind, index, threads, grid };
        let ((send, receive), (say, said)) = (channel::<Work>(), channel());
        let thread = std::thread::Builder::new().name("ferrite device".into());
        let started = thread.spawn(move || serve(&named, comm, &say, &receive));
        started.map_err(|why| Failure::failed(format!("the thread of the device cannot be started: {why}")))?;
        let opened = py.detach(move || said.recv());
        let DeviceProperties { name, description, ordinal, place } =
            opened.map_err(|_| Failure::failed("the thread of the device has ended: open the device again"))??;
        Ok(PyDevice { work: WorkQueue::new(send), name, description, ordinal, place })
    }
    /// Returns the numbers of processes in x, y, z and t.
    #[getter]
    fn grid(&self) -> [usize; 4] {
        self.place.grid.dims()
    }
    /// Returns the rank of this process.
    #[getter]
    fn rank(&self) -> usize {
        self.place.rank
    }
    /// Returns the origin and the extents of this process's part of a lattice.
    fn part(&self, lattice: [usize; 4]) -> Returned<([usize; 4], [usize; 4])> {
        let part = self.place.section(Lattice::of_any_extents(lattice).map_err(Failure::from)?)?;
        Ok((part.origin, part.local.size()))
    }
    /// Leaves the other processes: from now on this process works alone.
    fn leave(&self, py: Python<'_>) -> Returned {
        self.run(py, |bench, _| {
            bench.joined.leave();
            bench.device.leave();
            Ok(())
        })
    }
    /// Panics on the thread of the device, for tests.
    fn panic(&self, py: Python<'_>, text: String) -> Returned {
        self.run(py, move |_, _| panic!("{text}"))
    }
    /// Returns free and total memory in bytes.
    fn memory(&self, py: Python<'_>) -> Returned<(usize, usize)> {
        self.run(py, |bench, _| {
            let memory = bench.device.backend().memory()?;
            Ok((memory.free, memory.total))
        })
    }
}

/// Returns the names of the GPUs; without a driver, also a sentence that states the reason.
///
/// # Errors
/// A process whose parent has started the driver before it forked.
#[pyfunction]
pub fn gpus() -> Returned<(Vec<String>, Option<String>)> {
    fork::check_driver()?;
    Ok(names_of_gpus())
}

fn names_of_gpus() -> (Vec<String>, Option<String>) {
    match ferrite_tasks::device::gpus() {
        Ok(names) => {
            fork::driver_started();
            (names, None)
        }
        Err(why) => (Vec::new(), Some(in_python(&why.message))),
    }
}
