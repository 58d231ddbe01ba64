//! Choice of the device that computes.
use super::communicator::RunCommunicator;
use super::layout::{Layout, LayoutChoice};
use super::provenance;
use super::text::bytes;
use super::{Failure, Outcome};
use ferrite::backend::tuning::{Mode, Tuner};
use ferrite::backend::{Backend, Cpu, Memory};
use ferrite_inputs::values::{Bytes, Count, Switch, Word};
use ferrite_inputs::{Given, Input, vocabularies};
use ferrite_records::bench::LaunchRecord;
use ferrite_records::place::PlaceRecord;
use serde::Deserialize;
use std::path::Path;
use std::sync::Arc;
#[cfg(feature = "cuda")]
use std::sync::atomic::{AtomicBool, Ordering};
#[cfg(feature = "cuda")]
use tracing::warn;
use tracing::{debug, info};

/// `--backend`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BackendChoice {
    /// A GPU if one works, otherwise the CPU.
    Auto,
    /// A GPU; an error if none works.
    Cuda,
    /// The CPU.
    Cpu,
}

/// Choice of the device by the user, checked.
#[derive(Clone, Debug)]
pub struct DeviceChoice {
    kind: BackendChoice,
    /// Number of the GPU; `None` to follow the rank of the process on its machine.
    device: Option<usize>,
    threads: Option<usize>,
    /// Use of tuned launch parameters: [`Mode::Use`] or [`Mode::Off`], as selected by `--tuning`. `ferrite tune` sets [`Mode::Search`].
    pub tuning: Mode,
    /// Choice of the process grid, the transport of faces and the overlap.
    pub layout: LayoutChoice,
    #[cfg_attr(not(feature = "cuda"), expect(dead_code, reason = "CPUs are always shared"))]
    share: bool,
    /// Limit of `--memory` in bytes.
    memory: Option<usize>,
    /// Keys and values as typed, for logs.
    input: Vec<String>,
}

/// Open device of this process, with the limits on its memory.
pub struct Device {
    /// CPU or GPU that computes.
    pub what: Processor,
    /// Limit in bytes on the memory that may be used, if there is one.
    limit: Option<usize>,
    /// Free bytes of a GPU when it was opened.
    free_before: usize,
    /// Number of processes that share the device's memory.
    sharers: usize,
}

/// The CPU or GPU that computes.
pub enum Processor {
    /// A number of threads of the CPU.
    Cpu(Cpu),
    /// A GPU.
    #[cfg(feature = "cuda")]
    Cuda(ferrite::backend::Cuda),
}

vocabularies! {
    /// Values of `--backend`.
    Backends: BackendChoice =
        [("auto", BackendChoice::Auto), ("cuda", BackendChoice::Cuda), ("cpu", BackendChoice::Cpu)];
    /// Values of `--tuning`.
    Tunings: Mode = [("on", Mode::Use), ("off", Mode::Off)];
}

/// Keys that select the device and limit its memory. Every input has these keys.
#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "kebab-case")]
pub struct DeviceKeys {
    backend: Given<Word<Backends>>,
    device: Given<Count<0, 1023>>,
    threads: Given<Count<1, MOST_THREADS>>,
    tuning: Given<Word<Tunings>>,
    share_gpus: Given<Switch>,
    memory: Given<Bytes>,
}

impl DeviceChoice {
    /// Reads the keys of the device and of the layout, and adds their mistakes to the input.
    pub fn of(input: &mut Input) -> Self {
        let keys: DeviceKeys = input.read("");
        let kind = keys.backend.or(BackendChoice::Auto);
        let (device, threads) = (keys.device.value(), keys.threads.value());
        let tuning = keys.tuning.value().unwrap_or_default();
        if kind == BackendChoice::Cpu && device.is_some() {
            let [device, backend] = [("device", ""), ("backend", "cuda")].map(|(key, value)| input.spelled(key, value));
            let why = format!("{device} selects a GPU: remove {device}, or give {backend}");
            input.conflict("device", "backend", &why);
        }
        let layout = LayoutChoice::of(input);
        let (share, memory) = (keys.share_gpus.is_on(), keys.memory.value());
        DeviceChoice { kind, device, threads, tuning, layout, share, memory, input: input.given() }
    }
    /// *Collective.* Opens the device of each process and sets the number of threads for host code. Logs the program, its input and the
    /// devices.
    pub fn open(&self, comm: &RunCommunicator) -> Outcome<Device> {
        let (device, why) = self.find(comm)?;
        let places = lines(&comm.hosts()?, &comm.texts(&device.describe())?);
        provenance::note(&self.input, &places, why.as_deref());
        Ok(device)
    }
    /// *Collective.* Opens the device of each process without logging the run, for a command that computes nothing.
    pub fn open_silently(&self, comm: &RunCommunicator) -> Outcome<Device> {
        let (device, why) = self.find(comm)?;
        if let Some(why) = why {
            info!("{why}");
        }
        Ok(device)
    }
    /// *Collective.* Opens the device of each process. Also returns the reason if it is a CPU although the machine has a GPU.
    fn find(&self, comm: &RunCommunicator) -> Outcome<(Device, Option<String>)> {
        let threads = self.start_threads(comm)?;
        let (what, why) = comm.agree(self.device(comm.network().node_rank(), threads))?;
        let mut device = Device { what, limit: self.memory, free_before: 0, sharers: 1 };
        if comm.size() > 1 {
            refuse_mixture(comm, &device)?;
            device.sharers = comm.alike(&comm.agree(device.what.place())?)?;
            self.note_few_cores(comm, threads)?;
        }
        // GPUs and CPUs are never mixed in a run, so all processes agree on this condition.
        if device.name() != "cpu" {
            device.free_before = comm.agree(device.backend().memory().map_err(Failure::from))?.free;
        }
        Ok((device, why))
    }
    fn device(&self, node_rank: usize, threads: Option<usize>) -> Outcome<(Processor, Option<String>)> {
        let cpu = || Processor::Cpu(Cpu::new(threads));
        let gpu = || self.gpu(node_rank).map(|gpu| (gpu, None));
        match self.kind {
            BackendChoice::Cpu => Ok((cpu(), None)),
            BackendChoice::Cuda => gpu(),
            // If the user requests a GPU by its number, the CPU must not replace it.
            BackendChoice::Auto if self.device.is_some() => gpu(),
            BackendChoice::Auto => match gpu() {
                Ok(gpu) => Ok(gpu),
                // The CPU cannot replace the GPU in a search for launch parameters, nor for a process for which no GPU is left.
                Err(why) if (matches!(self.tuning, Mode::Search { .. }) || node_rank > 0) && has_gpu() => Err(why),
                // Without CUDA or without a GPU, the CPU is the expected device and needs no warning.
                Err(why) if !cfg!(feature = "cuda") || !has_gpu() && !drives_gpus(Path::new(DRIVEN_GPUS)) => {
                    debug!("{}; using the CPU", why.message);
                    Ok((cpu(), None))
                }
                Err(why) => Ok((cpu(), Some(format!("{}; using the CPU instead", why.message)))),
            },
        }
    }
    /// *Collective.* Starts the threads for reading files and other host work. Returns their number if it was requested or if several
    /// processes share the cores.
    pub fn start_threads(&self, comm: &RunCommunicator) -> Outcome<Option<usize>> {
        let threads = match (self.threads, comm.size()) {
            (Some(threads), _) => Some(threads),
            (None, 1) => None,
            (None, _) => Some(fair_threads(comm)?),
        };
        if let Some(threads) = threads {
            // The call fails only if the thread pool exists already. The existing pool keeps its number of threads.
            let _ = rayon::ThreadPoolBuilder::new().num_threads(threads).build_global();
        }
        Ok(threads)
    }
    /// *Collective.* Reports if each process may use far fewer cores than its share of the machine.
    fn note_few_cores(&self, comm: &RunCommunicator, threads: Option<usize>) -> Outcome {
        let hosts = comm.hosts()?;
        let here = hosts.iter().filter(|host| **host == hosts[comm.rank()]).count();
        let online = std::fs::read_to_string("/sys/devices/system/cpu/online").unwrap_or_default();
        if let (None, Some(threads), Some(cores)) = (self.threads, threads, count_of_list(&online))
            && few(threads, cores, here)
        {
            let own = super::text::count(threads, "core");
            info!(
                "this machine has {cores} cores, but each process may use only {own}, which slows all work on the \
                 CPU, including files and random fields; start mpirun with --bind-to none to give each process more \
                 cores"
            );
        }
        Ok(())
    }
    #[cfg(feature = "cuda")]
    fn gpu(&self, node_rank: usize) -> Outcome<Processor> {
        let there = gpus().map_or(0, |names| names.len());
        let device = match self.device {
            Some(device) if node_rank > 0 && !self.share => {
                return Err(Failure::refused(format!(
                    "--device {device} gives all processes of a machine the same GPU: remove --device to give each \
                     process its own GPU, or allow sharing with --share-gpus"
                )));
            }
            Some(device) => device,
            None if self.share && there > 0 => node_rank % there,
            None if node_rank >= there && there > 0 => {
                let gpus = super::text::count(there, "GPU");
                return Err(Failure::refused(format!(
                    "this machine has {gpus}, but more processes were started on it: start at most one process for \
                     each GPU, or allow processes to share GPUs with --share-gpus"
                )));
            }
            None => node_rank,
        };
        let cuda = ferrite::backend::Cuda::with_tuning(device, ferrite::backend::tuning::Tuning::new(self.tuning))?;
        if let Some(problem) = cuda.tuner().problem() {
            warn!("{problem}; kernels run with default block sizes");
        }
        self_test(&cuda)?;
        Ok(Processor::Cuda(cuda))
    }
    #[cfg(not(feature = "cuda"))]
    fn gpu(&self, _: usize) -> Outcome<Processor> {
        let message = "this program was built without CUDA (cargo feature `cuda`): build it with that feature, or run \
                       with --backend cpu";
        Err(Failure::refused(message))
    }
}

/// *Collective.* Returns the number of threads for this process if all processes that share its cores get equally many; at least 1.
///
/// # Errors
/// Failures of messages.
pub fn fair_threads(comm: &RunCommunicator) -> Outcome<usize> {
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    Ok((cores / comm.sharers()?).max(1))
}

/// Returns the names of the GPUs of this machine.
///
/// # Errors
/// No driver, or a build without CUDA.
#[cfg(feature = "cuda")]
pub fn gpus() -> Outcome<Vec<String>> {
    Ok(ferrite::backend::Cuda::devices()?.into_iter().map(|gpu| gpu.name).collect())
}
/// Returns the names of the GPUs of this machine.
///
/// # Errors
/// A build without CUDA.
#[cfg(not(feature = "cuda"))]
pub fn gpus() -> Outcome<Vec<String>> {
    Err(Failure::refused("this build has no GPU backend: build Ferrite with the cargo feature `cuda`"))
}

/// *Collective.* Refuses a run in which some processes use GPUs and others CPUs.
fn refuse_mixture(comm: &RunCommunicator, device: &Device) -> Outcome {
    let kinds = comm.texts(device.name())?;
    if let Some(odd) = kinds.iter().position(|kind| *kind != kinds[0]) {
        let devices = comm.texts(&device.describe())?;
        let (first, other) = (&devices[0], &devices[odd]);
        let why = format!(
            "rank 0 computes on {first}, but rank {odd} computes on {other}: choose one kind of device with --backend"
        );
        return Err(Failure::refused(why).shared());
    }
    Ok(())
}

/// Largest number of threads that users may request.
const MOST_THREADS: usize = 1024;

/// Refuses a value of `RAYON_NUM_THREADS` above the limit of `--threads`, because the program ends if the system cannot start as many
/// threads. 0 and an empty value stand for all cores.
pub fn threads_of_environment() -> Outcome {
    let Some(asked) = std::env::var_os("RAYON_NUM_THREADS") else { return Ok(()) };
    let text = asked.to_string_lossy();
    if text.is_empty() || text.parse().is_ok_and(|threads: usize| threads <= MOST_THREADS) {
        return Ok(());
    }
    Err(Failure::refused(format!(
        "RAYON_NUM_THREADS is '{text}', but must be a whole number from 1 to {MOST_THREADS}: change or unset this \
         environment variable"
    )))
}

/// Returns whether the number of threads is less than half of a process's share of the machine.
fn few(threads: usize, cores: usize, processes: usize) -> bool {
    2 * threads * processes < cores
}

/// Returns the number of entries in a list of the Linux kernel: 4 for `0-2,5`.
fn count_of_list(list: &str) -> Option<usize> {
    let parts = list.trim().split(',').map(|part| {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        let [first, last] = [first, last].map(|number| number.parse::<usize>().ok());
        (last? + 1).checked_sub(first?)
    });
    parts.sum()
}

/// Returns a line for each sequence of ranks that compute on the same kind of device of the same host.
fn lines(hosts: &[String], devices: &[String]) -> Vec<String> {
    let mut lines = Vec::new();
    let mut first = 0;
    for next in 1..=hosts.len() {
        if next < hosts.len() && (&hosts[next], &devices[next]) == (&hosts[first], &devices[first]) {
            continue;
        }
        let (host, device) = (&hosts[first], &devices[first]);
        lines.push(match next - first {
            1 => format!("rank {first} on {host}: {device}"),
            _ => format!("ranks {first} to {} on {host}: {device} each", next - 1),
        });
        first = next;
    }
    lines
}

/// Folder in which NVIDIA's kernel driver lists its GPUs, even within a container that has no access to them.
const DRIVEN_GPUS: &str = "/proc/driver/nvidia/gpus";

/// Returns whether the kernel driver lists a GPU.
fn drives_gpus(list: &Path) -> bool {
    std::fs::read_dir(list).is_ok_and(|mut gpus| gpus.next().is_some())
}

fn has_gpu() -> bool {
    gpus().is_ok_and(|names| !names.is_empty())
}

/// Runs one kernel, so that a driver that cannot load Ferrite's kernels is found before files are read.
#[cfg(feature = "cuda")]
fn self_test(cuda: &ferrite::backend::Cuda) -> Outcome {
    use ferrite::{
        Precision,
        domain::Domain,
        field::{FieldShape, FieldSpace},
        lattice::Lattice,
    };
    use solvers::VectorSpace;
    let lattice = Lattice::new([2; 4]).map_err(Failure::refused)?;
    let space = FieldSpace::new(&Domain::single(cuda.clone(), lattice)?, FieldShape::spinors(Precision::Double, 1));
    let mut norm = [f64::NAN];
    space.norm2(&space.allocate()?, &mut norm)?;
    match norm {
        [0.0] => Ok(()),
        [wrong] => Err(Failure::failed(format!(
            "{} computes incorrectly: the norm of a zero field is {wrong}; use another device with --device, or \
             --backend cpu",
            cuda.device()
        ))),
    }
}

impl Processor {
    /// Opens the CPU with `threads` threads; `None` for one thread per core.
    ///
    /// # Errors
    /// An operating system that gives no more threads.
    pub fn cpu(threads: Option<usize>) -> Outcome<Self> {
        Ok(Processor::Cpu(Cpu::try_new(threads)?))
    }
    /// Opens GPU number `ordinal`. `chosen` is true if the user chose this number, and false if it is the rank of the process on its
    /// machine.
    ///
    /// # Errors
    /// No GPU of this number, and failures of the driver.
    #[cfg(feature = "cuda")]
    pub fn gpu(ordinal: usize, chosen: bool) -> Outcome<Self> {
        let there = gpus().map_or(0, |names| names.len());
        if !chosen && ordinal > 0 && ordinal >= there && there > 0 {
            let gpus = if there == 1 { "one GPU".into() } else { format!("{there} GPUs") };
            return Err(Failure::refused(format!(
                "this is process {} on a machine that has {gpus}: start at most one process for each GPU, or share a \
                 GPU by its number, as in 'cuda:0'",
                ordinal + 1
            )));
        }
        Ok(Processor::Cuda(ferrite::backend::Cuda::new(ordinal)?))
    }
    /// Returns an error, because this build of the program cannot use GPUs.
    ///
    /// # Errors
    /// Always.
    #[cfg(not(feature = "cuda"))]
    pub fn gpu(_: usize, _: bool) -> Outcome<Self> {
        Err(Failure::refused("this build has no GPU backend: build Ferrite with the cargo feature `cuda`"))
    }
    /// Returns an identifier of the device within its host. Processes that get the same identifier share the memory of one device.
    pub fn place(&self) -> Outcome<String> {
        match self {
            Processor::Cpu(_) => Ok("cpu".into()),
            // The number of the GPU is not an identifier: a batch system may show each process a different GPU as number 0.
            #[cfg(feature = "cuda")]
            Processor::Cuda(cuda) => Ok(cuda.bus()?),
        }
    }
    /// Returns the CPU or GPU as a [`Backend`].
    pub fn into_backend(self) -> Arc<dyn Backend> {
        match self {
            Processor::Cpu(cpu) => Arc::new(cpu),
            #[cfg(feature = "cuda")]
            Processor::Cuda(cuda) => Arc::new(cuda),
        }
    }
}

impl Device {
    /// Returns the device as a [`Backend`].
    pub fn backend(&self) -> &dyn Backend {
        match &self.what {
            Processor::Cpu(cpu) => cpu,
            #[cfg(feature = "cuda")]
            Processor::Cuda(cuda) => cuda,
        }
    }
    /// Returns `cpu` or `cuda`.
    pub fn name(&self) -> &'static str {
        self.backend().name()
    }
    /// Returns a description of the device for people.
    pub fn describe(&self) -> String {
        self.backend().device()
    }
    /// Returns the record of the device and of the processes among which a lattice is partitioned.
    pub fn record(&self, layout: &Layout) -> PlaceRecord {
        PlaceRecord { backend: self.name().into(), device: self.describe(), layout: layout.record() }
    }
    /// Runs host code, and meanwhile loads modules of kernels on a GPU. A module that cannot be loaded is reported when it is used.
    #[cfg_attr(not(feature = "cuda"), expect(unused_variables, reason = "CPUs have nothing to load"))]
    pub fn while_loading<T>(&self, modules: &[String], work: impl FnOnce() -> T) -> T {
        match &self.what {
            Processor::Cpu(_) => work(),
            #[cfg(feature = "cuda")]
            Processor::Cuda(gpu) => {
                // Compiling PTX may take the driver seconds for each module, so loading stops when the host work ends.
                let enough = AtomicBool::new(false);
                std::thread::scope(|scope| {
                    let load = || gpu.load(modules, &enough).inspect_err(|why| debug!("{why}"));
                    // If no thread can be started, the modules are loaded when they are used.
                    let _ = std::thread::Builder::new().spawn_scoped(scope, load);
                    let done = work();
                    enough.store(true, Ordering::Relaxed);
                    done
                })
            }
        }
    }
    /// Returns the tuner of launch parameters; `None` on a CPU.
    pub fn tuner(&self) -> Option<&Tuner> {
        match &self.what {
            Processor::Cpu(_) => None,
            #[cfg(feature = "cuda")]
            Processor::Cuda(cuda) => Some(cuda.tuner()),
        }
    }
    /// Returns the kernels launched so far, each with its thread blocks; empty on a CPU.
    pub fn launches(&self) -> Vec<LaunchRecord> {
        match &self.what {
            Processor::Cpu(_) => Vec::new(),
            #[cfg(feature = "cuda")]
            Processor::Cuda(cuda) => {
                let launches = cuda.launches();
                let record = |l: &ferrite::backend::Launched| LaunchRecord {
                    kernel: l.launch.kernel.to_string(),
                    sites: l.launch.sites as usize,
                    nrhs: l.launch.nrhs as usize,
                    block: l.shape.block() as usize,
                    shape: l.shape.to_string(),
                };
                launches.iter().map(record).collect()
            }
        }
    }
    /// Returns the free and the total memory of the device. Processes that share the device get equal parts of the free memory, limited by
    /// `--memory`.
    pub fn memory(&self) -> Outcome<Memory> {
        let Memory { free, total } = self.backend().memory()?;
        // Memory that this run already uses on a GPU counts towards the limit of `--memory`.
        let used = self.free_before.saturating_sub(free) / self.sharers;
        let free = free / self.sharers;
        Ok(Memory { free: self.limit.map_or(free, |limit| free.min(limit.saturating_sub(used))), total })
    }
    /// *Collective.* Fails before the start of work `what` if it needs more memory than the device of some process has.
    pub fn require_all(&self, comm: &RunCommunicator, needs: &[(&str, usize)], what: &str) -> Outcome {
        comm.agree(self.require(needs, what))
    }
    /// Fails before the start of work `what` if it needs more memory than the device has.
    pub fn require(&self, needs: &[(&str, usize)], what: &str) -> Outcome {
        let needed: usize = needs.iter().map(|(_, n)| n).sum();
        let memory = self.memory()?;
        if needed <= memory.free {
            return Ok(());
        }
        let parts: Vec<_> = needs.iter().map(|(name, n)| format!("{name} {}", bytes(*n))).collect();
        let share = if self.sharers > 1 { format!(" for each of {} processes", self.sharers) } else { String::new() };
        let (within, larger) = match self.limit {
            Some(_) => (" within the limit --memory", "a larger limit, "),
            None => ("", ""),
        };
        Err(Failure::refused(format!(
            "{what} needs {} ({}), but only {} of {} are free{within}{share} on {}; use {larger}a smaller lattice, \
             fewer right-hand sides, a lower precision, or another device",
            bytes(needed),
            parts.join(", "),
            bytes(memory.free),
            bytes(memory.total),
            self.describe()
        )))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranks_on_equal_devices_share_a_line() {
        let texts = |all: [&str; 4]| all.map(String::from).to_vec();
        let hosts = texts(["a", "a", "b", "b"]);
        assert_eq!(
            lines(&hosts, &texts(["GPU 0", "GPU 1", "GPU 0", "GPU 0"])),
            ["rank 0 on a: GPU 0", "rank 1 on a: GPU 1", "ranks 2 to 3 on b: GPU 0 each"]
        );
        assert_eq!(lines(&hosts[..2], &texts(["CPU"; 4])[..2]), ["ranks 0 to 1 on a: CPU each"]);
    }

    #[test]
    fn a_gpu_that_only_the_kernel_has() {
        let room = std::env::temp_dir().join(format!("ferrite-device-{}", std::process::id()));
        assert!(!drives_gpus(&room));
        std::fs::create_dir_all(&room).unwrap();
        assert!(!drives_gpus(&room));
        std::fs::create_dir(room.join("0000:17:00.0")).unwrap();
        assert!(drives_gpus(&room));
        std::fs::remove_dir_all(room).unwrap();
    }

    #[test]
    fn processes_bound_to_few_cores() {
        assert_eq!(["0", "0-31\n", "0-2,5,8-9"].map(count_of_list), [Some(1), Some(32), Some(6)]);
        assert_eq!(["", "a-b", "3-", "5-1"].map(count_of_list), [None; 4]);
        // Two processes with one core each of 32; with a fair share; on two cores.
        assert_eq!([few(1, 32, 2), few(16, 32, 2), few(1, 2, 2)], [true, false, false]);
        assert!(!few(8, 64, 4) && few(8, 65, 4));
    }
}
