//! Devices, and the processes that partition lattices among them.
use crate::call::{call, call_keeping_texts, extents, given, leave_record, make, nothing_in, options, refused, store};
use ferrite::lattice::{Lattice, Section};
use ferrite_tasks::communicator::RunCommunicator;
use ferrite_tasks::grid_device::{GridDevice, NamedDevice};
use ferrite_tasks::{Failure, Outcome};
use rayon::{ThreadPool, ThreadPoolBuilder};
use serde_json::json;
use std::cell::{Cell, RefCell};
use std::ffi::{c_char, c_void};
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::rc::Rc;
use std::thread::ThreadId;

/// A GPU or the CPU, with the processes that partition lattices among them. Calls that use a device, or what was made on it, come from the
/// thread that opened it.
pub struct fe_device {
    shared: Rc<OpenDevice>,
}

/// Open device, which all objects on it share.
pub struct OpenDevice {
    thread: ThreadId,
    /// Whether a call is at work with the device, or was interrupted by an internal error.
    is_busy: Cell<bool>,
    device: GridDevice,
    /// Connection to MPI, which ends after the device.
    _joined: Joined,
}

thread_local! {
    /// Threads for host work that this thread requests, once their number is limited. A thread cannot change to another pool.
    static POOL: RefCell<Option<ThreadPool>> = const { RefCell::new(None) };
}

/// Limits the number of threads for host work, unless an earlier device of this thread has limited it.
fn limit_threads(threads: Option<usize>) {
    let Some(threads) = threads else { return };
    POOL.with_borrow_mut(|pool| {
        if pool.is_none() {
            *pool = ThreadPoolBuilder::new().num_threads(threads).use_current_thread().build().ok();
        }
    });
}

/// Object on a device.
pub(crate) trait OnDevice {
    /// Returns the device of the object.
    fn device(&self) -> &Rc<OpenDevice>;
}

impl OnDevice for fe_device {
    fn device(&self) -> &Rc<OpenDevice> {
        &self.shared
    }
}

impl OpenDevice {
    /// Returns the device for tasks.
    pub(crate) fn tasks(&self) -> &GridDevice {
        &self.device
    }
    /// Returns the number of the GPU; `None` for a CPU.
    pub(crate) fn ordinal(&self) -> Option<usize> {
        self.device.ordinal()
    }
    /// Returns this process's part of a lattice.
    pub(crate) fn part(&self, lattice: [usize; 4]) -> Outcome<Section> {
        self.device.place().section(Lattice::new(lattice)?)
    }
    /// Does work with the device.
    fn work(&self, work: impl FnOnce() -> Outcome) -> Outcome {
        if self.is_busy.replace(true) {
            return Err(Failure::failed(
                "an internal error interrupted an earlier call with this device: free all objects on the device and \
                 open it again",
            ));
        }
        match catch_unwind(AssertUnwindSafe(work)) {
            Ok(done) => {
                self.is_busy.set(false);
                done
            }
            // The device stays busy, because what the call changed may be incomplete.
            Err(panic) => resume_unwind(panic),
        }
    }
    /// Fails on other threads than that of the device.
    fn check_thread(&self) -> Outcome {
        match self.thread == std::thread::current().id() {
            true => Ok(()),
            false => Err(Failure::failed(
                "the device was opened by another thread: call from the thread that opened it, or open a device for \
                 each thread",
            )),
        }
    }
}

/// Connection of a device to MPI.
#[derive(Default)]
struct Joined {
    #[cfg(feature = "mpi")]
    job: Option<ferrite::comms::Mpi>,
}

impl Joined {
    /// *Collective.* Connects this thread to the processes of a communicator.
    ///
    /// # Safety
    /// As for `Mpi::join`.
    #[cfg(feature = "mpi")]
    unsafe fn to(comm: *const c_void) -> Outcome<(Self, RunCommunicator)> {
        // SAFETY: the caller's promise.
        let job = unsafe { ferrite::comms::Mpi::join(ferrite::comms::ForeignCommunicator::at(comm)) };
        let job = job.map_err(|why| Failure::failed(format!("the communicator cannot be joined: {why}")))?;
        let comm = RunCommunicator::of(job.clone());
        Ok((Joined { job: Some(job) }, comm))
    }
    /// Fails, because this build does not include MPI.
    #[cfg(not(feature = "mpi"))]
    unsafe fn to(_: *const c_void) -> Outcome<(Self, RunCommunicator)> {
        Err(Failure::refused(
            "this build does not include MPI: make the library with `cargo xtask capi --mpi` on a machine with the MPI \
             library",
        ))
    }
}

#[cfg(feature = "mpi")]
impl Drop for Joined {
    fn drop(&mut self) {
        if let Some(job) = self.job.take() {
            job.leave();
        }
    }
}

/// Runs a call with an object on a device; `what` names the argument.
///
/// # Safety
/// The handle is null, or a function of this interface returned it and it has not been freed.
pub(crate) unsafe fn with<T: OnDevice>(handle: *const T, what: &str, work: impl FnOnce(&T) -> Outcome) -> i32 {
    call(|| {
        // SAFETY: the caller's promise.
        let object = unsafe { given(handle, what) }?;
        // Before the device is shared, since its count of owners is for one thread.
        object.device().check_thread()?;
        let device = object.device().clone();
        device.work(|| work(object))
    })
}

/// Panics within a call, for tests.
///
/// # Safety
/// As for [`fe_device_describe`].
#[doc(hidden)]
pub unsafe fn panic_in_a_call(device: *const fe_device) -> i32 {
    // SAFETY: the caller's promise.
    unsafe { with(device, "device", |_| panic!("a test asked for it")) }
}

/// Frees an object on a device. A null handle is ignored.
///
/// # Safety
/// As for [`with`]; the handle is not used afterwards, if the call succeeds.
pub(crate) unsafe fn free<T: OnDevice>(handle: *mut T) -> i32 {
    call_keeping_texts(|| {
        // SAFETY: the caller's promise.
        let Some(object) = (unsafe { handle.as_ref() }) else { return Ok(()) };
        object.device().check_thread()?;
        // SAFETY: handles are made by `Box::into_raw`.
        drop(unsafe { Box::from_raw(handle) });
        Ok(())
    })
}

/// Returns an object that is used with another object on the same device; `what` names the argument.
///
/// # Safety
/// As for [`with`].
pub(crate) unsafe fn beside<'a, T: OnDevice>(handle: *const T, what: &str, device: &Rc<OpenDevice>) -> Outcome<&'a T> {
    // SAFETY: the caller's promise.
    let object = unsafe { given(handle, what) }?;
    match Rc::ptr_eq(object.device(), device) {
        true => Ok(object),
        false => Err(refused(what, "the object is on another device: use objects on one device")),
    }
}

/// *Collective.* Opens a device for calls from this thread, and stores it in `*out`.
///
/// `options` is a JSON object, or null: `device` is `"auto"` (a GPU if one works, the default), `"cuda"` or `"cpu"`; `index` is the number
/// of the GPU, by default the rank of the process on its host; `threads` is the number of CPU threads, by default all cores (for work outside
/// kernels, the number of the first device of a thread holds for all its devices); `grid` has
/// the number of processes in x, y, z and t, by default all in t. `mpi_comm` points to an `MPI_Comm`, whose processes partition all
/// lattices among them; null for one process. MPI must be initialised, and stay so until all objects on the device are freed.
///
/// # Safety
/// `options` is null or a text with a final zero. `mpi_comm` is null or points to a live `MPI_Comm` of the MPI library for which this
/// library was made. `out` is valid for writes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fe_device_new(
    options_json: *const c_char,
    mpi_comm: *const c_void,
    out: *mut *mut fe_device,
) -> i32 {
    // SAFETY: the caller's promise.
    unsafe { nothing_in(out) };
    call(|| {
        // SAFETY: the caller's promise.
        let mut given = unsafe { options(options_json) }?;
        let name: String = given.take_or("device", "auto".into())?;
        let named = NamedDevice {
            name: if name == "auto" { usual_device().into() } else { name },
            index: given.take_or("index", None)?,
            threads: given.take_or("threads", None)?,
            grid: given.take_or("grid", None)?,
        };
        given.finish(&["device", "index", "threads", "grid"])?;
        if named.threads.is_some_and(|threads| !(1..=1024).contains(&threads)) {
            let threads = named.threads.unwrap_or_default();
            return Err(Failure::refused(format!("options: threads = {threads}: expected a number from 1 to 1024")));
        }
        let open = || {
            let (joined, comm) = match mpi_comm.is_null() {
                true => (Joined::default(), None),
                // SAFETY: the caller's promise.
                false => unsafe { Joined::to(mpi_comm) }.map(|(joined, comm)| (joined, Some(comm)))?,
            };
            let device = named.open(comm)?;
            limit_threads(device.threads());
            Ok(fe_device {
                shared: Rc::new(OpenDevice {
                    thread: std::thread::current().id(),
                    is_busy: Cell::new(false),
                    device,
                    _joined: joined,
                }),
            })
        };
        // SAFETY: the caller's promise.
        unsafe { make(out, open) }
    })
}

/// Returns the name of the device that is used if none is requested.
fn usual_device() -> &'static str {
    if ferrite_tasks::device::gpus().is_ok_and(|names| !names.is_empty()) { "cuda" } else { "cpu" }
}

/// Frees a device. Its memory and its connection to MPI are freed with the last object on it.
///
/// # Safety
/// `device` is null or a device that has not been freed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fe_device_free(device: *mut fe_device) -> i32 {
    // SAFETY: the caller's promise.
    unsafe { free(device) }
}

/// Describes a device. The record has `backend` (`cpu` or `cuda`), `device`, `gpu` (its number, or null), `rank` and `grid`.
///
/// # Safety
/// `device` is a device that has not been freed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fe_device_describe(device: *const fe_device) -> i32 {
    // SAFETY: the caller's promise.
    unsafe {
        with(device, "device", |object| {
            let device = object.shared.tasks();
            let (backend, place) = (device.backend(), device.place());
            leave_record(json!({
                "backend": backend.name(),
                "device": backend.device(),
                "gpu": device.ordinal(),
                "rank": place.rank,
                "grid": place.grid.dims(),
            }));
            Ok(())
        })
    }
}

/// Stores the part of a lattice that this process has: its first site in `origin`, and its extents in `part`, both in x, y, z and t.
///
/// # Safety
/// `device` is a device that has not been freed; `lattice` points to four numbers; `origin` and `part` are null or have room for four.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fe_device_part(
    device: *const fe_device,
    lattice: *const i64,
    origin: *mut i64,
    part: *mut i64,
) -> i32 {
    // SAFETY: the caller's promise.
    unsafe {
        with(device, "device", |object| {
            let place = object.shared.tasks().place();
            let section = place.section(Lattice::of_any_extents(extents(lattice)?)?)?;
            store(origin.cast::<[i64; 4]>(), section.origin.map(|x| x as i64));
            store(part.cast::<[i64; 4]>(), section.local.size().map(|x| x as i64));
            Ok(())
        })
    }
}

/// Stores the free and the total memory of a device in bytes.
///
/// # Safety
/// `device` is a device that has not been freed; `free_bytes` and `total_bytes` are null or valid for writes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fe_device_memory(
    device: *const fe_device,
    free_bytes: *mut i64,
    total_bytes: *mut i64,
) -> i32 {
    // SAFETY: the caller's promise.
    unsafe {
        with(device, "device", |object| {
            let memory = object.shared.tasks().backend().memory()?;
            store(free_bytes, memory.free as i64);
            store(total_bytes, memory.total as i64);
            Ok(())
        })
    }
}
