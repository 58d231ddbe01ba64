//! The CUDA backend: one GPU, and one main stream that runs work in program order. A module of kernels is loaded before its first launch.
//!
//! All `unsafe` code of the host for GPUs is in this module. Its contract: every address that is given to the driver comes from a live
//! [`CudaBuffer`] of the same context, and memory is freed only when no work on the device uses it.
#![allow(unsafe_code)]

mod launch;
mod order;
mod peer;
mod pool;
mod profile;
mod staging;

pub use launch::Launched;
use order::{CudaEvent, CudaStream};
use peer::CudaPeer;

use super::{
    Architecture, Backend, BackendError, Call, Capability, CodeForm, DeviceBuffer, Event, FETCH_SLOTS, ForeignMemory,
    KernelCode, KernelTime, LAUNCH_SUMS, Memory, Ordered, Peer, Pinned, REDUCTION_SLOTS, Result, Stream, Summing,
    foreign_kernels, kernel_image, kernel_images,
};
use crate::backend::tuning::{DeviceKey, Mode, Tuner, Tuning, kernels_hash};
use cust::context::{Context, CurrentContext};
use cust::device::{Device, DeviceAttribute};
use cust::error::CudaError;
use cust::module::Module;
use cust::sys;
use gpu_kernels::Instance;
use gpu_kernels::device::Sums;
use gpu_kernels::multi_rhs::{RhsBlocking, Variant};
use launch::{
    Grid, LOOPED_BLOCKS, LaunchId, MOST_KEPT, PreparedLaunch, SharedMemory, address, most_single_blocks, sum_blocking,
    sum_bytes, sum_threads,
};
use order::Queue;
use std::collections::HashMap;
use std::ffi::c_void;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Instant;
use tracing::trace;

/// Largest number of blocks of a reduction for one right-hand side.
const MAX_REDUCTION_BLOCKS: usize = 8192;

/// Bytes of the memory that host and GPU share: results of reductions, fetched numbers, tickets, and the number of the last copy.
const SHARED_BYTES: usize = 12 * REDUCTION_SLOTS + 8 * FETCH_SLOTS + 4;

/// A GPU as a backend.
#[derive(Clone)]
pub struct Cuda {
    shared: Arc<CudaState>,
}

/// State of the backend. The order of the fields matters: objects of the context are dropped before the context.
struct CudaState {
    /// Queue of the main stream.
    queue: Queue,
    functions: Mutex<HashMap<(usize, RhsBlocking), Function>>,
    launches: Mutex<HashMap<LaunchId, PreparedLaunch>>,
    modules: Mutex<HashMap<String, Module>>,
    /// Memory of reductions: partial sums of blocks, counters of finished blocks, and results that host and GPU share.
    partial: Mutex<Scratch>,
    context: Context,
    device: Device,
    name: String,
    capability: Capability,
    memory: SharedMemory,
    tuner: Tuner,
    /// Whether launches are timed.
    profiles: AtomicBool,
    profile: Mutex<profile::LaunchTimer>,
    pool: Mutex<pool::Pool>,
    staging: Mutex<Option<staging::Staging>>,
}

/// A loaded kernel. Its handle is valid as long as its module, and modules live as long as the backend.
#[derive(Clone, Copy)]
struct Function {
    handle: sys::CUfunction,
    /// Name of the entry point for one right-hand side in each thread.
    name: &'static str,
    /// Whether solvers launch the kernel in their loops.
    hot: bool,
    /// Bytes of shared memory for the links of a block.
    shared: u32,
    /// Bytes of shared memory that a block of the kernel always has, without those that a launch requests.
    fixed: u32,
    /// Other blockings for which the kernel is compiled.
    variants: &'static [Variant],
}
// SAFETY: a handle that the driver lets any thread use, and plain data.
unsafe impl Send for Function {}

/// Addresses to which a reduction writes its result and, after it, its ticket.
#[derive(Clone, Copy)]
struct SumAddresses {
    result: *mut f64,
    ready: *mut u32,
    ticket: u32,
}

struct Scratch {
    partial: u64,
    done: u64,
    /// Address for the tickets of sums that stay on the device; nothing reads them.
    unread: u64,
    results: *mut f64,
    /// Tickets of the results: each is the number of the launch that last wrote the result.
    ready: *mut u32,
    ticket: u32,
    /// Numbers that are copied from the device, and the word that gets the number of the copy after it.
    fetched: *mut f64,
    copied: *mut u32,
    copies: u32,
    /// Results that were requested and not yet fetched: index in `ready`, and the ticket to wait for.
    pending: Vec<(usize, u32)>,
    summing: Summing,
}
// SAFETY: addresses; used under the mutex around the struct.
unsafe impl Send for Scratch {}

/// Properties of a GPU, available before it is opened.
#[derive(Clone, Debug)]
pub struct CudaDevice {
    /// Number of the GPU, from 0, as given to `--device`.
    pub ordinal: usize,
    /// Marketing name of the GPU.
    pub name: String,
    /// Total memory of the GPU in bytes.
    pub memory: usize,
    /// Compute capability of the GPU: its major and minor number.
    pub capability: Capability,
}

/// Returns the largest number of bytes of shared memory that a block can request on this device.
fn most_shared(device: Device, name: &str) -> Result<u32> {
    let mut bytes = 0;
    let attribute = sys::CUdevice_attribute_enum::CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN;
    // SAFETY: writes one integer.
    let code = unsafe { sys::cuDeviceGetAttribute(&mut bytes, attribute, device.as_raw()) };
    raw(code, "reading an attribute", name)?;
    Ok(bytes.unsigned_abs())
}

/// Converts the result of a call of `cust` to a result of this crate.
fn driver<T>(result: std::result::Result<T, CudaError>, call: &str, device: &str) -> Result<T> {
    // The name of the error is its `Debug` form; `Display` would request a text from the driver.
    result.map_err(|e| BackendError::Driver { call: call.into(), device: device.into(), code: format!("{e:?}") })
}
fn raw(code: sys::CUresult, call: &str, device: &str) -> Result {
    if code == sys::cudaError_enum::CUDA_SUCCESS {
        return Ok(());
    }
    Err(BackendError::Driver { call: call.into(), device: device.into(), code: format!("{code:?}") })
}

impl Cuda {
    /// Returns the properties of all GPUs of the machine.
    pub fn devices() -> Result<Vec<CudaDevice>> {
        cuda_loader::load().map_err(|e| BackendError::NoDriver(format!("{e}: install the NVIDIA driver")))?;
        cust::init(cust::CudaFlags::empty()).map_err(|e| {
            BackendError::NoDriver(format!(
                "the CUDA driver cannot be initialised ({e:?}): check the GPU with nvidia-smi"
            ))
        })?;
        let count = driver(Device::num_devices(), "counting GPUs", "this machine")?;
        (0..count)
            .map(|i| {
                let at = format!("GPU {i}");
                let device = driver(Device::get_device(i), "opening", &at)?;
                let attribute = |a| driver(device.get_attribute(a), "reading an attribute", &at);
                Ok(CudaDevice {
                    ordinal: i as usize,
                    name: driver(device.name(), "reading the name", &at)?,
                    memory: driver(device.total_memory(), "reading the memory size", &at)?,
                    capability: (
                        attribute(DeviceAttribute::ComputeCapabilityMajor)?,
                        attribute(DeviceAttribute::ComputeCapabilityMinor)?,
                    ),
                })
            })
            .collect()
    }
    /// Returns the version of CUDA that the driver supports, as major and minor number.
    pub fn driver_version() -> Result<(i32, i32)> {
        Self::devices()?;
        let mut version = 0;
        // SAFETY: writes one integer.
        let code = unsafe { sys::cuDriverGetVersion(&mut version) };
        raw(code, "reading the version of the CUDA driver", "this machine")?;
        Ok((version / 1000, version % 1000 / 10))
    }

    /// Opens the GPU with number `device`. Launch parameters from the tuner's cache are used if they exist.
    pub fn new(device: usize) -> Result<Self> {
        Self::with_tuning(device, Tuning::default())
    }
    /// Opens the GPU with number `device`. With [`Mode::Search`], every new kind of launch is repeated with several block shapes to find
    /// the fastest. The repeated launches leave meaningless numbers in the fields, so use this mode on scratch fields only.
    pub fn with_tuning(device: usize, tuning: Tuning) -> Result<Self> {
        let devices = Self::devices()?;
        let count = devices.len();
        let known = devices.into_iter().nth(device).ok_or(match count {
            0 => BackendError::NoDriver(
                "the CUDA driver finds no GPU: check nvidia-smi and the variable CUDA_VISIBLE_DEVICES".into(),
            ),
            _ => BackendError::NoDevice { device, count },
        })?;
        let name = format!("{} (GPU {device})", known.name);
        if known.capability < Architecture::oldest().capability() {
            return Err(BackendError::OldDevice { device: name, capability: known.capability });
        }
        // The tuner is opened before anything is allocated, because it can fail.
        let tuner = match tuning.mode {
            Mode::Off => Tuner::off(),
            Mode::Use | Mode::Search { .. } => Tuner::open(tuning, Self::tune_key(&known)?)?,
        };
        let device = driver(Device::get_device(device as u32), "opening", &name)?;
        let context = driver(Context::new(device), "creating a context", &name)?;
        let queue = Queue::new(0, &name)?;
        let memory = SharedMemory { most: most_shared(device, &name)? };
        let (mut partial, mut done, mut unread, mut results) = (0, 0, 0, std::ptr::null_mut::<c_void>());
        let sums = 2 * LAUNCH_SUMS * MAX_REDUCTION_BLOCKS * 8;
        // SAFETY: allocations of the sizes that `reduce` uses; the context is current.
        unsafe {
            raw(sys::cuMemAlloc_v2(&mut partial, sums), "allocating memory for global sums", &name)?;
            raw(sys::cuMemAlloc_v2(&mut done, 2 * 4 * LAUNCH_SUMS), "allocating memory for global sums", &name)?;
            raw(
                sys::cuMemsetD8Async(done, 0, 2 * 4 * LAUNCH_SUMS, queue.handle()),
                "clearing memory for global sums",
                &name,
            )?;
            raw(sys::cuMemAlloc_v2(&mut unread, 4 * LAUNCH_SUMS), "allocating memory for global sums", &name)?;
            // The flag 2 is CU_MEMHOSTALLOC_DEVICEMAP: the GPU can access the memory. With unified addressing, the memory has the same
            // address on the GPU and on the host.
            raw(
                sys::cuMemHostAlloc(&mut results, SHARED_BYTES, 2),
                "allocating page-locked memory for global sums",
                &name,
            )?;
            std::ptr::write_bytes(results.cast::<u8>(), 0, SHARED_BYTES);
        }
        // Launches on other streams also use the memory for sums, so it must be cleared before the first of them.
        queue.wait(&name)?;
        let results: *mut f64 = results.cast();
        let fetched = results.wrapping_add(REDUCTION_SLOTS);
        let ready: *mut u32 = fetched.wrapping_add(FETCH_SLOTS).cast();
        let copied = ready.wrapping_add(REDUCTION_SLOTS);
        let pending = Vec::with_capacity(REDUCTION_SLOTS);
        let summing = Summing::default();
        let scratch =
            Scratch { partial, done, unread, results, ready, ticket: 0, fetched, copied, copies: 0, pending, summing };
        let shared = CudaState {
            device,
            name,
            capability: known.capability,
            memory,
            context,
            queue,
            modules: Mutex::default(),
            functions: Mutex::default(),
            launches: Mutex::default(),
            partial: Mutex::new(scratch),
            tuner,
            profiles: AtomicBool::new(false),
            profile: Mutex::default(),
            pool: Mutex::default(),
            staging: Mutex::default(),
        };
        Ok(Cuda { shared: Arc::new(shared) })
    }

    /// Returns the key of a GPU in the tuner's cache, for the current driver and kernels.
    pub fn tune_key(device: &CudaDevice) -> Result<DeviceKey> {
        let (major, minor) = Self::driver_version()?;
        let kernels = kernels_hash(&kernel_images());
        Ok(DeviceKey { device: device.name.clone(), driver: format!("{major}.{minor}"), kernels })
    }
    /// Returns the tuner, which holds the launch parameters of this GPU.
    pub fn tuner(&self) -> &Tuner {
        &self.shared.tuner
    }

    fn name(&self) -> &str {
        &self.shared.name
    }
    /// Waits for all work of the GPU's context, that of other libraries included.
    fn wait_for_all_streams(&self) -> Result {
        self.enter()?;
        // SAFETY: the context is current.
        raw(unsafe { sys::cuCtxSynchronize() }, "waiting for other work", self.name())
    }
    /// Makes the context of the GPU current in the calling thread.
    fn enter(&self) -> Result {
        driver(CurrentContext::set_current(&self.shared.context), "selecting", self.name())
    }

    /// Returns a kernel instance in a blocking in which it exists; loads its module if necessary.
    fn function(&self, instance: &'static Instance, blocking: RhsBlocking) -> Result<Function> {
        let mut functions = lock(&self.shared.functions);
        if let Some(function) = functions.get(&(address(instance), blocking)) {
            return Ok(*function);
        }
        let start = Instant::now();
        let variant = instance.variants.iter().find(|variant| variant.blocking == blocking);
        let (entry, shared) = match variant {
            Some(variant) => (variant.name, variant.shared),
            None => (instance.name, 0),
        };
        let handle = self.with_module(instance.module, |module| {
            Ok(driver(module.get_function(entry), &format!("finding kernel {entry}"), self.name())?.to_raw())
        })?;
        let fixed = self.attribute(handle, sys::CUfunction_attribute_enum::CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES)?;
        if shared > 0 {
            let attribute = sys::CUfunction_attribute_enum::CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES;
            let bytes = self.shared.memory.most.saturating_sub(fixed).min(shared + MOST_KEPT);
            // SAFETY: the handle of a loaded kernel.
            let code = unsafe { sys::cuFuncSetAttribute(handle, attribute, bytes as i32) };
            raw(code, &format!("reserving shared memory for kernel {entry}"), self.name())?;
        }
        trace!("kernel {entry}: ready after {:.2} ms", 1e3 * start.elapsed().as_secs_f64());
        let Instance { name, hot, variants, .. } = *instance;
        let function = Function { handle, name, hot, shared, fixed, variants };
        functions.insert((address(instance), blocking), function);
        Ok(function)
    }

    /// Loads modules of kernels in advance until `enough` is set; other modules are loaded at the first launch of one of their kernels. Any
    /// thread may call this.
    ///
    /// # Errors
    /// Fails if a module cannot be loaded; the modules before it remain loaded.
    pub fn load(&self, modules: &[String], enough: &AtomicBool) -> Result {
        self.enter()?;
        let mut wanted = modules.iter().take_while(|_| !enough.load(Ordering::Relaxed));
        wanted.try_for_each(|module| self.with_module(module, |_| Ok(())))
    }
    /// Calls `then` with a module, which is loaded first if necessary.
    fn with_module<T>(&self, name: &str, then: impl FnOnce(&Module) -> Result<T>) -> Result<T> {
        let mut modules = lock(&self.shared.modules);
        if let Some(module) = modules.get(name) {
            return then(module);
        }
        let start = Instant::now();
        let missing = || match foreign_kernels() {
            Some(folder) => BackendError::OtherKernels { folder },
            None => BackendError::NoKernels { module: name.into() },
        };
        let image = kernel_image(name).ok_or_else(missing)?;
        let mut result = Err(self.no_code(name, &image.codes));
        for code in image.usable(self.shared.capability) {
            let bytes = code.unpack().ok_or_else(missing)?;
            // A driver that is older than the assembler rejects machine code, but accepts PTX.
            result = match code.form {
                CodeForm::Cubin => driver(Module::from_cubin(bytes, &[]), "loading kernels", self.name()),
                CodeForm::Ptx => {
                    let text = String::from_utf8(bytes.into_owned()).map_err(|_| missing())?;
                    driver(Module::from_ptx(text, &[]), "compiling kernels", self.name())
                }
            };
            if result.is_ok() {
                let (what, milliseconds) = (describe(code), 1e3 * start.elapsed().as_secs_f64());
                trace!("kernel module {name}: {what} loaded in {milliseconds:.2} ms");
                break;
            }
        }
        let loaded = result?;
        then(modules.entry(name.into()).or_insert(loaded))
    }

    /// Returns the error for a module that contains no code for this GPU.
    fn no_code(&self, module: &str, codes: &[KernelCode]) -> BackendError {
        BackendError::NoCode {
            module: module.into(),
            device: self.device(),
            capability: self.shared.capability,
            codes: codes.iter().map(describe).collect(),
        }
    }

    /// Zeroes a range of this backend's memory.
    fn zero(&self, address: u64, bytes: usize) -> Result {
        self.enter()?;
        // SAFETY: the range of a buffer, as callers promise.
        let code = unsafe { sys::cuMemsetD8Async(address, 0, bytes, self.shared.queue.handle()) };
        raw(code, "clearing memory", self.name())
    }
    /// Whether the main stream has work left; fails if earlier work failed.
    fn running(&self) -> Result<bool> {
        // SAFETY: the stream lives as long as the backend.
        match unsafe { sys::cuStreamQuery(self.shared.queue.handle()) } {
            sys::cudaError_enum::CUDA_ERROR_NOT_READY => Ok(true),
            code => raw(code, "running kernels", self.name()).map(|()| false),
        }
    }

    /// Waits until the GPU has written `value` to a word of the shared memory. Polling takes a few microseconds less than waiting for the
    /// stream.
    fn await_word(&self, word: *mut u32, value: u32, call: &str) -> Result {
        // SAFETY: a word of the shared memory; volatile because the GPU writes.
        let seen = || unsafe { word.read_volatile() };
        let mut spins = 0u32;
        while seen() != value {
            spins = spins.wrapping_add(1);
            if spins.is_multiple_of(1 << 14) && !self.running()? && seen() != value {
                let code = "the GPU ended its work without a result".into();
                return Err(BackendError::Driver { call: call.into(), device: self.device(), code });
            }
            std::hint::spin_loop();
        }
        std::sync::atomic::fence(Ordering::Acquire);
        Ok(())
    }

    /// Launches a reduction that writes its result and tickets to the given addresses.
    fn sum_up(
        &self,
        stream: Option<&Stream>,
        kernel: Call<'_>,
        n: u32,
        nrhs: u32,
        scratch: &Scratch,
        to: SumAddresses,
    ) -> Result {
        let Call { instance, arguments, .. } = kernel;
        let sum = instance.sum.expect("reductions have values");
        assert!(sum.blocks as usize <= MAX_REDUCTION_BLOCKS, "too many blocks in one launch");
        assert!(nrhs as usize * sum.values <= LAUNCH_SUMS, "too many sums in one launch");
        self.enter()?;
        let blocking = sum_blocking(instance.variants, sum, nrhs, self.shared.memory);
        let function = self.function(instance, blocking)?;
        let most = if blocking.looped { LOOPED_BLOCKS } else { sum.blocks };
        let threads = sum_threads(blocking, nrhs, sum.threads);
        let in_block = if blocking.looped || sum.warps { nrhs } else { blocking.rhs * threads[1] };
        let blocks = match (n.div_ceil(threads[0] * threads[2]).max(1), sum.loops) {
            (blocks, true) => blocks.min(most),
            (blocks, false) => {
                let most = most_single_blocks(nrhs, sum.values);
                if blocks > most {
                    let most = u64::from(threads[0] * threads[2]) * u64::from(most);
                    let code = format!(
                        "a face has {n} sites, but at most {most} are possible with nrhs = {nrhs}: choose a process \
                         grid with smaller faces, or use fewer right-hand sides"
                    );
                    return Err(BackendError::Driver { call: "a sum at a face".into(), device: self.device(), code });
                }
                blocks
            }
        };
        // Launches of the main stream follow each other, and can share one half of the memory for partial sums. Launches of another stream
        // use the other half.
        let half = usize::from(stream.is_some());
        let partial = (scratch.partial as *mut f64).wrapping_add(half * LAUNCH_SUMS * MAX_REDUCTION_BLOCKS);
        let done = (scratch.done as *mut u32).wrapping_add(half * LAUNCH_SUMS);
        let queue = self.queue(stream);
        let SumAddresses { result, ready, ticket } = to;
        let mut sums = Sums { partial, result, done, ready, ticket };
        let (mut n, mut nrhs) = (n, nrhs);
        // The kernel only reads the parameters. The last one, `nrhs`, is read by kernels that compute several right-hand sides in a thread.
        let arguments = arguments.cast_mut().cast::<c_void>();
        let mut parameters = [arguments, (&raw mut n).cast(), (&raw mut sums).cast(), (&raw mut nrhs).cast()];
        let shared = sum_bytes(sum, (blocking, function.shared), threads, nrhs);
        let grid = Grid { blocks: [nrhs / in_block, blocks, 1], threads, shared };
        // SAFETY: `kernels!` declares these parameters.
        unsafe { self.start(queue, function, grid, &mut parameters) }
    }

    /// Launches a kernel on a queue. Fails if a block needs more shared memory than the GPU has.
    ///
    /// # Safety
    /// `parameters` point to values of the types that the entry point declares.
    unsafe fn start(
        &self,
        queue: &Queue,
        f: Function,
        Grid { blocks: [x, y, z], threads: [along, groups, rows], shared }: Grid,
        parameters: &mut [*mut c_void],
    ) -> Result {
        let (bytes, most) = (f.fixed + shared, self.shared.memory.limit(f.shared));
        if bytes > most {
            return Err(BackendError::SharedMemory { kernel: f.name, bytes, most, device: self.device() });
        }
        // SAFETY: the caller's promise; the stream belongs to the current context.
        let mut launch = || unsafe {
            sys::cuLaunchKernel(
                f.handle,
                x,
                y,
                z,
                along,
                groups,
                rows,
                shared,
                queue.handle(),
                parameters.as_mut_ptr(),
                std::ptr::null_mut(),
            )
        };
        self.timed(f.name, queue, || raw(launch(), "launching a kernel", self.name()))
    }
}

/// Returns the architecture and the form of a code, for messages.
fn describe(code: &KernelCode) -> String {
    format!("{} ({})", code.architecture, code.form.extension())
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
}

impl Drop for CudaState {
    fn drop(&mut self) {
        let scratch = lock(&self.partial);
        // SAFETY: allocated in `new`, freed once. A failure during shutdown has no caller to be reported to.
        unsafe {
            let _ = CurrentContext::set_current(&self.context);
            // The events of the timer belong to the context, and must be destroyed before it.
            *lock(&self.profile) = profile::LaunchTimer::default();
            // Wait for copies: the driver does not wait for them before it frees page-locked memory.
            let _ = self.queue.wait(&self.name);
            drop(lock(&self.staging).take());
            for address in lock(&self.pool).empty() {
                let _ = sys::cuMemFree_v2(address);
            }
            let _ = sys::cuMemFree_v2(scratch.partial);
            let _ = sys::cuMemFree_v2(scratch.done);
            let _ = sys::cuMemFree_v2(scratch.unread);
            let _ = sys::cuMemFreeHost(scratch.results.cast());
        }
    }
}

/// Memory of a GPU; it is freed or returned to the pool when this is dropped.
struct CudaBuffer {
    address: u64,
    bytes: usize,
    /// Whether the memory returns to the pool, for later work of the main stream.
    pooled: bool,
    /// Backend of the memory; keeps the context alive.
    backend: Cuda,
}

impl From<CudaBuffer> for DeviceBuffer {
    fn from(buffer: CudaBuffer) -> Self {
        DeviceBuffer::new(buffer.address as *mut u8, buffer.bytes, buffer)
    }
}

impl From<Cuda> for Arc<dyn Backend> {
    fn from(cuda: Cuda) -> Self {
        Arc::new(cuda)
    }
}

impl Drop for CudaBuffer {
    fn drop(&mut self) {
        if self.pooled {
            return self.backend.give_back(self.address, self.bytes);
        }
        // SAFETY: allocated in `apart`, freed once; the driver waits for work that uses it.
        unsafe {
            let _ = self.backend.enter();
            let _ = sys::cuMemFree_v2(self.address);
        }
    }
}

/// Page-locked host memory that belongs to a context.
struct PinnedMemory {
    address: *mut u8,
    /// Backend of the memory; keeps the context alive.
    backend: Cuda,
}
// SAFETY: an address; who may use the memory when is the contract of `Ordered`.
unsafe impl Send for PinnedMemory {}
// SAFETY: as above.
unsafe impl Sync for PinnedMemory {}

impl Drop for PinnedMemory {
    fn drop(&mut self) {
        // SAFETY: allocated in `pinned`, freed once; no copy of any stream is on its way, for which the driver need not wait
        // before it frees page-locked memory.
        unsafe {
            let _ = self.backend.enter();
            let _ = sys::cuCtxSynchronize();
            let _ = sys::cuMemFreeHost(self.address.cast());
        }
    }
}

impl Backend for Cuda {
    fn name(&self) -> &'static str {
        "cuda"
    }
    fn shared(&self) -> Arc<dyn Backend> {
        self.clone().into()
    }
    fn id(&self) -> usize {
        Arc::as_ptr(&self.shared).addr()
    }
    fn device(&self) -> String {
        self.shared.name.clone()
    }
    fn memory(&self) -> Result<Memory> {
        self.enter()?;
        let (mut free, mut total) = (0, 0);
        // SAFETY: writes two integers.
        raw(unsafe { sys::cuMemGetInfo_v2(&mut free, &mut total) }, "reading the free memory", self.name())?;
        Ok(Memory { free: free + lock(&self.shared.pool).bytes(), total })
    }

    fn allocate(&self, bytes: usize, what: &str) -> Result<DeviceBuffer> {
        Ok(self.pooled(bytes, what)?.into())
    }
    fn allocate_apart(&self, bytes: usize, what: &str) -> Result<DeviceBuffer> {
        Ok(self.apart(bytes, what)?.into())
    }
    fn upload(&self, data: &[u8], to: &mut DeviceBuffer, offset: usize) -> Result {
        assert!(offset + data.len() <= to.bytes(), "upload beyond the buffer");
        self.enter()?;
        self.copy_in(data, to.address() as u64 + offset as u64)
    }
    fn download(&self, from: &DeviceBuffer, offset: usize, data: &mut [u8]) -> Result {
        assert!(offset + data.len() <= from.bytes(), "download beyond the buffer");
        self.enter()?;
        self.copy_out(from.address() as u64 + offset as u64, data)
    }
    fn is_on_device(&self, address: usize) -> bool {
        let mut kind = 0u32;
        // SAFETY: the driver writes the kind of the memory, if it knows the address.
        let code = unsafe {
            sys::cuPointerGetAttribute(
                (&raw mut kind).cast(),
                sys::CUpointer_attribute_enum::CU_POINTER_ATTRIBUTE_MEMORY_TYPE,
                address as u64,
            )
        };
        code == sys::CUresult::CUDA_SUCCESS && kind == sys::CUmemorytype_enum::CU_MEMORYTYPE_DEVICE as u32
    }
    fn read_foreign(&self, from: &ForeignMemory, data: &mut [u8]) -> Result {
        let address = from.start(data.len());
        self.wait_for_all_streams()?;
        self.copy_out(address as u64, data)
    }
    fn write_foreign(&self, data: &[u8], to: &mut ForeignMemory) -> Result {
        let address = to.start(data.len());
        self.wait_for_all_streams()?;
        self.copy_in(data, address as u64)?;
        self.synchronize()
    }
    fn copy(&self, from: &DeviceBuffer, to: &mut DeviceBuffer, bytes: usize) -> Result {
        assert!(bytes <= from.bytes() && bytes <= to.bytes(), "copy beyond a buffer");
        self.enter()?;
        // SAFETY: both sides were checked.
        let code = unsafe {
            sys::cuMemcpyDtoDAsync_v2(to.address() as u64, from.address() as u64, bytes, self.shared.queue.handle())
        };
        raw(code, "copying on the GPU", self.name())
    }
    fn clear(&self, buffer: &mut DeviceBuffer) -> Result {
        self.zero(buffer.address() as u64, buffer.bytes())
    }

    fn run(&self, stream: Option<&Stream>, kernel: Call<'_>, n: u32, nrhs: u32) -> Result {
        self.enter()?;
        let queue = self.queue(stream);
        let (mut sites, mut nrhs) = (n, nrhs);
        // The kernel only reads the parameters. The last one, `nrhs`, is read by kernels that compute several right-hand sides in a thread.
        let arguments = kernel.arguments.cast_mut().cast::<c_void>();
        let mut parameters = [arguments, (&raw mut sites).cast(), (&raw mut nrhs).cast()];
        let id = (address(kernel.instance), n, nrhs);
        let known = lock(&self.shared.launches).get(&id).copied();
        let launch = match known {
            Some(launch) => launch,
            // SAFETY: `kernels!` declares these parameters.
            None => unsafe { self.choose(kernel.instance, n, nrhs, &mut parameters)? },
        };
        // SAFETY: as above.
        unsafe { self.start(queue, launch.function, launch.grid(n, nrhs), &mut parameters) }
    }
    fn sum(&self, s: Option<&Stream>, kernel: Call<'_>, n: u32, nrhs: u32, slot: usize) -> Result {
        let count = kernel.values();
        assert!(slot + nrhs as usize * count <= REDUCTION_SLOTS, "too many sums in one round");
        let mut scratch = lock(&self.shared.partial);
        scratch.summing.check(|| self.device())?;
        // Tickets skip 0, which is the initial value of the memory.
        scratch.ticket = scratch.ticket.checked_add(1).unwrap_or(1);
        let ticket = scratch.ticket;
        let (result, ready) = (scratch.results.wrapping_add(slot), scratch.ready.wrapping_add(slot));
        self.sum_up(s, kernel, n, nrhs, &scratch, SumAddresses { result, ready, ticket })?;
        scratch.summing.begin();
        for word in (0..nrhs as usize).map(|rhs| slot + rhs * count) {
            // The new result replaces one that was not fetched.
            scratch.pending.retain(|(other, _)| *other != word);
            scratch.pending.push((word, ticket));
        }
        Ok(())
    }
    fn sum_into(
        &self,
        s: Option<&Stream>,
        kernel: Call<'_>,
        n: u32,
        nrhs: u32,
        (to, slot): (&DeviceBuffer, usize),
    ) -> Result {
        let count = nrhs as usize * kernel.values();
        assert!(8 * (slot + count) <= to.bytes(), "sums beyond the buffer");
        let scratch = lock(&self.shared.partial);
        let result = to.address().cast::<f64>().wrapping_add(slot);
        // Nothing reads the tickets of sums that stay on the device.
        self.sum_up(s, kernel, n, nrhs, &scratch, SumAddresses { result, ready: scratch.unread as *mut u32, ticket: 0 })
    }
    fn sums(&self, out: &mut [f64]) -> Result {
        assert!(out.len() <= REDUCTION_SLOTS, "more sums than slots");
        self.enter()?;
        let mut scratch = lock(&self.shared.partial);
        scratch.summing.end(|| self.device())?;
        while let Some((word, ticket)) = scratch.pending.pop() {
            self.await_word(scratch.ready.wrapping_add(word), ticket, "a global sum")?;
        }
        for (k, value) in out.iter_mut().enumerate() {
            // SAFETY: as above.
            *value = unsafe { scratch.results.add(k).read_volatile() };
        }
        Ok(())
    }

    fn fetch_numbers(&self, from: &DeviceBuffer, out: &mut [f64]) -> Result {
        let bytes = 8 * out.len();
        assert!(out.len() <= FETCH_SLOTS && bytes <= from.bytes(), "fetching beyond the buffer");
        self.enter()?;
        let mut scratch = lock(&self.shared.partial);
        scratch.copies = scratch.copies.wrapping_add(1);
        // SAFETY: both sides were checked; the memory belongs to the scratch, which is locked.
        let code = unsafe {
            let queue = self.shared.queue.handle();
            sys::cuMemcpyDtoHAsync_v2(scratch.fetched.cast(), from.address() as u64, bytes, queue)
        };
        raw(code, "copying from the GPU", self.name())?;
        self.write_words(&[scratch.copied.cast()], scratch.copies, None)?;
        self.await_word(scratch.copied, scratch.copies, "a copy from the GPU")?;
        for (k, value) in out.iter_mut().enumerate() {
            // SAFETY: inside the memory, as checked; volatile because the GPU writes.
            *value = unsafe { scratch.fetched.add(k).read_volatile() };
        }
        Ok(())
    }

    /// Returns the number of bytes that a GPU moves in 8 µs at 4 TB/s.
    fn bytes_while_waiting(&self) -> usize {
        32 << 20
    }

    fn stream(&self) -> Result<Stream> {
        Ok(Stream::new(self.new_stream()?))
    }
    fn pinned(&self, bytes: usize, what: &str, _: Ordered) -> Result<Pinned> {
        self.enter()?;
        let mut address = std::ptr::null_mut::<c_void>();
        // SAFETY: writes one address.
        let code = unsafe { sys::cuMemHostAlloc(&mut address, bytes.max(16), 0) };
        raw(code, &format!("allocating page-locked memory for {what}"), self.name())?;
        let memory = PinnedMemory { address: address.cast(), backend: self.clone() };
        Ok(Pinned::new(DeviceBuffer::new(address.cast(), bytes, memory)))
    }
    fn fetch(&self, from: &DeviceBuffer, offset: usize, to: &Pinned, stream: &Stream) -> Result {
        assert!(offset + to.size() <= from.bytes(), "fetching beyond the buffer");
        self.enter()?;
        let (source, target) = (from.address() as u64 + offset as u64, to.address().cast());
        // SAFETY: both sides were checked; who uses them meanwhile is the contract of `Ordered`.
        let code = unsafe { sys::cuMemcpyDtoHAsync_v2(target, source, to.size(), stream.get::<CudaStream>().handle()) };
        raw(code, "copying from the GPU", self.name())
    }
    fn put(&self, from: &Pinned, to: &DeviceBuffer, offset: usize, stream: &Stream) -> Result {
        assert!(offset + from.size() <= to.bytes(), "putting beyond the buffer");
        self.enter()?;
        let (source, target) = (from.address().cast(), to.address() as u64 + offset as u64);
        // SAFETY: as in `fetch`.
        let code =
            unsafe { sys::cuMemcpyHtoDAsync_v2(target, source, from.size(), stream.get::<CudaStream>().handle()) };
        raw(code, "copying to the GPU", self.name())
    }
    fn share(&self, buffer: &DeviceBuffer) -> Result<Vec<u8>> {
        self.share_buffer(buffer)
    }
    fn open_peer(&self, handle: &[u8]) -> Result<Peer> {
        Ok(Peer::new(self.open_peer_memory(handle)?))
    }
    fn peer_address(&self, peer: &Peer) -> *mut u8 {
        peer.get::<CudaPeer>().address()
    }
    fn copy_to_peer(
        &self,
        from: &DeviceBuffer,
        offset: usize,
        to: *mut u8,
        bytes: usize,
        stream: &Stream,
        _: Ordered,
    ) -> Result {
        self.copy_to(from, offset, to, bytes, stream)
    }
    fn signal(&self, words: &[*mut u8], value: u32, stream: Option<&Stream>, _: Ordered) -> Result {
        self.write_words(words, value, stream)
    }
    fn await_signal(&self, words: &[*mut u8], value: u32, stream: Option<&Stream>, _: Ordered) -> Result {
        self.wait_words(words, value, stream)
    }
    fn event(&self, timing: bool) -> Result<Event> {
        Ok(Event::new(self.new_event(timing)?))
    }
    fn mark(&self, event: &Event, stream: Option<&Stream>) -> Result {
        self.place(event.get::<CudaEvent>(), self.queue(stream))
    }
    fn follow(&self, event: &Event, stream: Option<&Stream>) -> Result {
        self.wait_for(event.get(), self.queue(stream))
    }
    fn reached(&self, event: &Event) -> Result<bool> {
        self.is_reached(event.get())
    }

    fn record(&self) -> Result<Event> {
        let event = self.event(true)?;
        self.mark(&event, None)?;
        Ok(event)
    }
    fn seconds_between(&self, from: &Event, to: &Event) -> Result<f64> {
        self.elapsed(from.get::<CudaEvent>(), to.get::<CudaEvent>())
    }
    fn synchronize(&self) -> Result {
        self.enter()?;
        self.shared.queue.wait(self.name())
    }
    fn start_profile(&self) -> Result {
        self.begin_profile();
        Ok(())
    }
    fn end_profile(&self) -> Result<Vec<KernelTime>> {
        self.finish_profile()
    }
}

impl Cuda {
    /// Returns the PCI address of the GPU. The number of a GPU can differ between processes of a machine; its PCI address is the same in
    /// all of them.
    pub fn bus(&self) -> Result<String> {
        let attribute = |a| driver(self.shared.device.get_attribute(a), "reading an attribute", self.name());
        let [domain, bus, device] =
            [DeviceAttribute::PciDomainId, DeviceAttribute::PciBusId, DeviceAttribute::PciDeviceId].map(attribute);
        Ok(format!("{:04x}:{:02x}:{:02x}", domain?, bus?, device?))
    }
    /// Returns the compute capability of the GPU: its major and minor number.
    pub fn capability(&self) -> Capability {
        self.shared.capability
    }
}
