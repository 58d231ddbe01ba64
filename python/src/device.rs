//! Devices. Each has a thread of its own, on which all work on it is done: a backend, with everything on it, is used by one
//! thread at a time, while Python's threads may be any. Whoever asks for work waits without the interpreter's lock, and
//! looks for signals such as Ctrl-C meanwhile.
use crate::failure::{Failure, Outcome, caught, in_python};
use crate::fork;
pub use crate::host::Stop;
use crate::host::{OnSignal, wait};
use crate::processes::{Cut, Processes, failed};
use ferrite::backend::{Backend, Cpu};
use ferrite::domain::Domain;
use ferrite::lattice::{Lattice, Section};
use pyo3::prelude::*;
use std::any::Any;
use std::cell::RefCell;
use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};

/// What lives on a device's thread.
pub struct DeviceThread {
    /// The device.
    pub backend: Arc<dyn Backend>,
    /// What is kept there for objects of Python, by their numbers.
    kept: HashMap<u64, Box<dyn Any>>,
    /// Those that share lattices.
    pub processes: Processes,
    /// How many processes have their memory from the device.
    sharers: usize,
    /// Domains of several processes, one for each lattice. Other processes may have their ghost zones open, so that they are kept
    /// until the end.
    domains: RefCell<Vec<Domain>>,
}

impl DeviceThread {
    /// The device with this process's part of a lattice on it.
    pub fn domain(&self, part: &Section) -> Outcome<Domain> {
        let Processes { network, cut, .. } = &self.processes;
        if *part != cut.section(part.global)? {
            let (local, global) = (part.local, part.global);
            return Err(Failure::input(format!(
                "a field on {local} of a lattice of {global} is not the part that this process has on the device: use the device \
                 that it was made for"
            )));
        }
        if !cut.is_shared() {
            return Ok(Domain::single(self.backend.clone(), part.global)?);
        }
        let mut domains = self.domains.borrow_mut();
        if let Some(known) = domains.iter().find(|domain| domain.global() == part.global) {
            return Ok(known.clone());
        }
        let domain = Domain::new(self.backend.clone(), part.global, cut.grid, network.clone())?;
        domains.push(domain.clone());
        Ok(domain)
    }
    /// The device with a field of this process's on it.
    pub fn domain_of(&self, local: Lattice) -> Outcome<Domain> {
        self.domain(&self.processes.cut.part(local)?)
    }
    /// *Collective.* The memory in bytes that each process may still use.
    pub fn free(&self) -> Outcome<usize> {
        let free = self.backend.memory()?.free;
        match self.processes.cut.is_shared() {
            true => Ok(self.processes.least((free / self.sharers) as u64)? as usize),
            false => Ok(free),
        }
    }
    /// What is kept under a number.
    pub fn kept<T: 'static>(&mut self, number: u64) -> Outcome<&mut T> {
        let found = self.kept.get_mut(&number).and_then(|kept| kept.downcast_mut());
        found.ok_or_else(|| Failure::other("the object is not on this device any more"))
    }
}

/// Work that a device is given.
type Work = Box<dyn FnOnce(&mut DeviceThread) + Send>;

/// The way to a device's thread.
struct WorkQueue {
    /// The process that has the thread.
    process: u32,
    /// Always there, until this is dropped.
    sender: Option<Mutex<Sender<Work>>>,
}

impl WorkQueue {
    fn new(sender: Sender<Work>) -> Arc<Self> {
        Arc::new(WorkQueue { process: fork::this_process(), sender: Some(Mutex::new(sender)) })
    }
    fn is_here(&self) -> bool {
        self.process == fork::this_process()
    }
    /// Hands work to the thread: whether it will be done.
    fn send(&self, work: Work) -> bool {
        let sender = self.sender.as_ref().filter(|_| self.is_here());
        let sent = sender.and_then(|sender| sender.lock().ok().map(|sender| sender.send(work)));
        matches!(sent, Some(Ok(())))
    }
}

impl Drop for WorkQueue {
    fn drop(&mut self) {
        // In a forked process the locks of a channel may be held by threads that are not there.
        if !self.is_here() {
            std::mem::forget(self.sender.take());
        }
    }
}

/// A device: a GPU, or the CPU.
#[pyclass(frozen, module = "ferrite_lqcd._native")]
pub struct Device {
    work: Arc<WorkQueue>,
    /// `cpu` or `cuda`.
    #[pyo3(get)]
    name: &'static str,
    /// For people.
    #[pyo3(get)]
    description: String,
    /// The number of a GPU.
    ordinal: Option<usize>,
    cut: Cut,
}

/// Something of a device that other threads may hold. It is dropped on the device's thread.
pub struct Returned<T: Send + 'static> {
    what: Option<T>,
    work: Arc<WorkQueue>,
}

impl<T: Send + 'static> Returned<T> {
    /// The thing itself.
    pub fn get(&self) -> &T {
        self.what.as_ref().expect("it is there until it is dropped")
    }
}

impl<T: Send + 'static> Drop for Returned<T> {
    fn drop(&mut self) {
        let what = self.what.take();
        if self.work.is_here() {
            // Where the thread has ended it is dropped here.
            self.work.send(Box::new(move |_| drop(what)));
        } else {
            // It belongs to the device of another process.
            std::mem::forget(what);
        }
    }
}

/// What an object of Python has on a device. It is freed with this.
pub struct Kept {
    number: u64,
    work: Arc<WorkQueue>,
}

impl Drop for Kept {
    fn drop(&mut self) {
        let number = self.number;
        // A thread that has ended has freed everything.
        self.work.send(Box::new(move |bench| drop(bench.kept.remove(&number))));
    }
}

impl Kept {
    /// The number under which the bench has it.
    pub fn number(&self) -> u64 {
        self.number
    }
}

/// What a device is opened with.
struct Opening {
    kind: String,
    /// The number of a GPU; without, that of the process on its host.
    index: Option<usize>,
    threads: Option<usize>,
    /// Where a communicator is.
    comm: Option<usize>,
    grid: Option<[usize; 4]>,
}

impl Opening {
    /// Opens it on the thread that is to serve it, and gives the threads for work of the host, where they are not those of all
    /// cores.
    fn open(&self) -> Outcome<(DeviceThread, Option<usize>)> {
        let processes = self
            .comm
            .map_or_else(|| Ok(Processes::alone()), |address| Processes::join(address, self.grid, &self.kind))?;
        let network = processes.network.clone();
        let mut threads = self.threads;
        if processes.cut.is_shared() {
            let (cores, sharers) = (std::thread::available_parallelism(), network.sharers().map_err(failed)?);
            threads = threads.or(Some((cores.map_or(1, usize::from) / sharers).max(1)));
        }
        let (backend, place) = processes.agree(self.backend(&processes, threads))?;
        let is_shared = processes.cut.is_shared();
        let sharers = if is_shared { network.alike(&place).map_err(failed)? } else { 1 };
        let (kept, domains) = (HashMap::new(), RefCell::default());
        Ok((DeviceThread { backend, kept, processes, sharers, domains }, threads))
    }
    fn index(&self, processes: &Processes) -> usize {
        self.index.unwrap_or(processes.network.node_rank())
    }
    /// The device, and what tells it from others of its host: all processes there share the memory of the CPU.
    fn backend(&self, processes: &Processes, threads: Option<usize>) -> Outcome<(Arc<dyn Backend>, String)> {
        match self.kind.as_str() {
            "cpu" => Ok((Arc::new(Cpu::try_new(threads)?), "cpu".into())),
            "cuda" => {
                let (index, (names, _)) = (self.index(processes), names_of_gpus());
                if self.index.is_none() && index > 0 && index >= names.len() && !names.is_empty() {
                    return Err(Failure::input(format!(
                        "this is process {} of a machine that has {}: start no more processes on a machine than it has GPUs, or share \
                         a GPU by its number, as with 'cuda:0'",
                        index + 1,
                        if names.len() == 1 { "one GPU".into() } else { format!("{} GPUs", names.len()) }
                    )));
                }
                gpu(index)
            }
            other => Err(Failure::input(format!("'{other}' is no device: there are 'cpu' and 'cuda'"))),
        }
    }
}

#[cfg(feature = "cuda")]
fn gpu(index: usize) -> Outcome<(Arc<dyn Backend>, String)> {
    let gpu = ferrite::backend::Cuda::new(index)?;
    fork::driver_started();
    // A batch system may show each process its own GPU under one number.
    let place = gpu.bus()?;
    Ok((Arc::new(gpu), place))
}
#[cfg(not(feature = "cuda"))]
fn gpu(_: usize) -> Outcome<(Arc<dyn Backend>, String)> {
    Err(Failure::input("this build knows no GPUs: it was made without the feature cuda"))
}

/// What a device says of itself once it is open.
struct Opened {
    name: &'static str,
    description: String,
    ordinal: Option<usize>,
    cut: Cut,
}

/// The thread of a device.
fn serve(opening: &Opening, say: &Sender<Outcome<Opened>>, work: &Receiver<Work>) {
    let (mut bench, threads) = match caught(|| opening.open()) {
        Ok(open) => open,
        Err(why) => {
            let _ = say.send(Err(why));
            return;
        }
    };
    let name = bench.backend.name();
    let ordinal = (name == "cuda").then(|| opening.index(&bench.processes));
    let opened = Opened { name, description: bench.backend.device(), ordinal, cut: bench.processes.cut };
    // Work of the host that is asked for here uses as many threads.
    // In a forked process the threads of all cores may be those of the parent.
    let threads = threads.or(fork::is_forked().then_some(0));
    let pool = threads.map(|n| rayon::ThreadPoolBuilder::new().num_threads(n).use_current_thread().build());
    if say.send(Ok(opened)).is_ok() {
        while let Ok(one) = work.recv() {
            one(&mut bench);
        }
    }
    drop(pool);
}

impl Device {
    /// Refuses a device that was opened in a process of which this one is a fork.
    pub fn check_opened_here(&self) -> Outcome {
        fork::check_opened_here(self.work.process)
    }
    /// Does work on the device and waits for it. Ctrl-C asks it to stop and raises `KeyboardInterrupt`, as [`OnSignal::Stop`]
    /// describes; work that goes on is finished before the device takes other work.
    pub fn run<T: Send + 'static>(
        &self,
        py: Python<'_>,
        work: impl FnOnce(&mut DeviceThread, &Stop) -> Outcome<T> + Send + 'static,
    ) -> PyResult<T> {
        self.check_opened_here()?;
        let (stop, (send, receive)) = (Stop::default(), channel());
        let asked = stop.clone();
        let job: Work = Box::new(move |bench| {
            // Ctrl-C may have come while other work was done.
            let done = asked.check().and_then(|()| caught(|| work(bench, &asked)));
            // Nobody waits any more where the interpreter is ending.
            let _ = send.send(done);
        });
        if !self.work.send(job) {
            return Err(Failure::other("the device has ended").into());
        }
        let on_signal = if self.cut.is_shared() { OnSignal::Ignore } else { OnSignal::Stop(&stop) };
        wait(py, receive, &on_signal)
    }
    /// Something of this device, to be held anywhere.
    pub fn returned<T: Send + 'static>(&self, what: T) -> Returned<T> {
        Returned { what: Some(what), work: self.work.clone() }
    }
    /// The number of a GPU.
    pub fn ordinal(&self) -> Option<usize> {
        self.ordinal
    }
    /// How lattices are cut.
    pub fn cut(&self) -> Cut {
        self.cut
    }
    /// Makes something that stays on the device for as long as an object of Python needs it.
    pub fn keep<T: 'static>(
        &self,
        py: Python<'_>,
        make: impl FnOnce(&mut DeviceThread, &Stop) -> Outcome<T> + Send + 'static,
    ) -> PyResult<Kept> {
        Ok(self.keep_beside(py, move |bench, stop| Ok((make(bench, stop)?, ())))?.0)
    }
    /// The same with something beside it that does not stay.
    pub fn keep_beside<T: 'static, R: Send + 'static>(
        &self,
        py: Python<'_>,
        make: impl FnOnce(&mut DeviceThread, &Stop) -> Outcome<(T, R)> + Send + 'static,
    ) -> PyResult<(Kept, R)> {
        static NUMBER: AtomicU64 = AtomicU64::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        // Frees what is made after Ctrl-C, too.
        let kept = Kept { number, work: self.work.clone() };
        let beside = self.run(py, move |bench, stop| {
            let (made, beside) = make(bench, stop)?;
            bench.kept.insert(number, Box::new(made));
            Ok(beside)
        })?;
        Ok((kept, beside))
    }
}

#[pymethods]
impl Device {
    /// Opens `cpu`, with so many threads, or `cuda` with a number; with the address of an `MPI_Comm`, for parts of lattices that
    /// its processes share.
    #[staticmethod]
    #[pyo3(signature = (kind, index = None, threads = None, comm = None, grid = None))]
    fn open(
        py: Python<'_>,
        kind: String,
        index: Option<usize>,
        threads: Option<usize>,
        comm: Option<usize>,
        grid: Option<[usize; 4]>,
    ) -> PyResult<Self> {
        if threads.is_some_and(|threads| !(1..=1024).contains(&threads)) {
            return Err(Failure::input("threads: a number from 1 to 1024").into());
        }
        if kind == "cuda" {
            fork::check_driver()?;
        }
        let opening = Opening { kind, index, threads, comm, grid };
        let ((send, receive), (say, said)) = (channel::<Work>(), channel());
        let thread = std::thread::Builder::new().name("ferrite device".into());
        let started = thread.spawn(move || serve(&opening, &say, &receive));
        started.map_err(|why| Failure::other(format!("no thread could be started: {why}")))?;
        let opened = py.detach(move || said.recv());
        let Opened { name, description, ordinal, cut } =
            opened.map_err(|_| Failure::other("the device's thread has ended"))??;
        Ok(Device { work: WorkQueue::new(send), name, description, ordinal, cut })
    }
    /// Processes in x, y, z, t.
    #[getter]
    fn grid(&self) -> [usize; 4] {
        self.cut.grid.dims()
    }
    /// This process.
    #[getter]
    fn rank(&self) -> usize {
        self.cut.rank
    }
    /// Where this process's part of a lattice begins, and its extents.
    fn part(&self, lattice: [usize; 4]) -> PyResult<([usize; 4], [usize; 4])> {
        let part = self.cut.section(Lattice::of_any_extents(lattice).map_err(Failure::from)?)?;
        Ok((part.origin, part.local.size()))
    }
    /// From now on nothing is sent to other processes.
    fn leave(&self, py: Python<'_>) -> PyResult<()> {
        self.run(py, |bench, _| {
            bench.processes.leave();
            Ok(())
        })
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
///
/// # Errors
/// A process whose parent has started the driver before it forked.
#[pyfunction]
pub fn gpus() -> PyResult<(Vec<String>, Option<String>)> {
    fork::check_driver()?;
    Ok(names_of_gpus())
}

#[cfg(feature = "cuda")]
fn names_of_gpus() -> (Vec<String>, Option<String>) {
    match ferrite::backend::Cuda::devices() {
        Ok(found) => {
            fork::driver_started();
            (found.iter().map(|gpu| gpu.name.clone()).collect(), None)
        }
        Err(why) => (Vec::new(), Some(in_python(&why.to_string()))),
    }
}
#[cfg(not(feature = "cuda"))]
fn names_of_gpus() -> (Vec<String>, Option<String>) {
    (Vec::new(), Some("this build knows no GPUs".into()))
}
