//! Start, end and local calls of the MPI library, as safe functions.

use super::say;
use crate::communicator::CommError;
use mpi::ffi;
use std::cell::Cell;
use std::ffi::{CStr, c_char, c_int, c_void};
use std::ptr;
use std::thread;
use std::time::Duration;

/// Largest count of items in a call of MPI, whose counts are C's `int`.
pub(super) const LARGEST_COUNT: usize = c_int::MAX as usize;
/// Time that an abort leaves to `mpirun` to forward the last message. MPICH's `mpirun` discards unread output when a
/// job is aborted.
const FORWARDING: Duration = Duration::from_millis(200);

/// Relation of a thread to MPI.
#[derive(Clone, Copy, PartialEq)]
enum Usable {
    No,
    /// The thread initialised MPI and has not finalised it.
    Ours,
    /// The thread joined a communicator and has not left it. Other code finalises MPI, at any time.
    Joined,
}

thread_local! {
    static USABLE: Cell<Usable> = const { Cell::new(Usable::No) };
}

fn is_usable() -> bool {
    match USABLE.get() {
        Usable::No => false,
        Usable::Ours => true,
        Usable::Joined => {
            let mut ended = 0;
            // SAFETY: may be called at any time.
            let asked = unsafe { ffi::MPI_Finalized(&mut ended) };
            asked == ffi::MPI_SUCCESS as c_int && ended == 0
        }
    }
}

/// Checks that this thread may call MPI: it initialised MPI or joined a communicator, and MPI has not ended. Functions
/// of this module check this before they call MPI, which makes them safe.
pub(super) fn usable(rank: usize) -> Result<(), CommError> {
    if is_usable() { Ok(()) } else { Err(CommError::WrongThread { rank }) }
}

/// Converts an error code of MPI into a result.
pub(super) fn check(operation: &'static str, code: c_int) -> Result<(), CommError> {
    if code == ffi::MPI_SUCCESS as c_int {
        return Ok(());
    }
    Err(CommError::Transport { operation, message: error_string(code) })
}

/// Returns the library's message for an error code.
fn error_string(code: c_int) -> String {
    let mut text = [0 as c_char; ffi::MPI_MAX_ERROR_STRING as usize + 1];
    let mut length = 0;
    // SAFETY: the array is as long as the library's longest string and its final zero.
    let status = unsafe { ffi::MPI_Error_string(code, text.as_mut_ptr(), &mut length) };
    if status != ffi::MPI_SUCCESS as c_int {
        return format!("error {code}");
    }
    // SAFETY: the library wrote a string with a final zero, or left the zeros alone.
    unsafe { CStr::from_ptr(text.as_ptr()) }.to_string_lossy().into_owned()
}

/// Initialises MPI on this thread; returns the level of thread support.
pub(super) fn initialise() -> Result<&'static str, CommError> {
    const OPERATION: &str = "MPI_Init_thread";
    let mut done = 0;
    // SAFETY: may be called at any time.
    check("MPI_Initialized", unsafe { ffi::MPI_Initialized(&mut done) })?;
    if done != 0 {
        let message =
            "MPI has already been initialised in this process, which is possible only once: remove the other \
                       initialisation"
                .to_string();
        return Err(CommError::Transport { operation: OPERATION, message });
    }
    let mut level = 0;
    // SAFETY: MPI is not initialised; the two null pointers stand for argc and argv, which MPI 2 and later do not need;
    // the constants are set when the library is loaded.
    check(OPERATION, unsafe {
        ffi::MPI_Init_thread(ptr::null_mut(), ptr::null_mut(), ffi::RSMPI_THREAD_FUNNELED, &mut level)
    })?;
    USABLE.set(Usable::Ours);
    // SAFETY: MPI is initialised. From here on errors are returned as codes; before, MPI itself ends the process.
    check("MPI_Comm_set_errhandler", unsafe {
        ffi::MPI_Comm_set_errhandler(ffi::RSMPI_COMM_WORLD, ffi::RSMPI_ERRORS_RETURN)
    })?;
    let name = level_name(level);
    if name != SINGLE {
        return Ok(name);
    }
    finalise()?;
    let message =
        format!("the MPI library provides {SINGLE}, but Ferrite needs MPI_THREAD_FUNNELED; use another MPI library");
    Err(CommError::Transport { operation: OPERATION, message })
}

/// Name of the lowest level of thread support.
const SINGLE: &str = "MPI_THREAD_SINGLE";

fn level_name(level: c_int) -> &'static str {
    // SAFETY: reads of constants.
    let levels = unsafe {
        [
            (ffi::RSMPI_THREAD_MULTIPLE, "MPI_THREAD_MULTIPLE"),
            (ffi::RSMPI_THREAD_SERIALIZED, "MPI_THREAD_SERIALIZED"),
            (ffi::RSMPI_THREAD_FUNNELED, "MPI_THREAD_FUNNELED"),
        ]
    };
    levels.into_iter().find(|(l, _)| *l == level).map_or(SINGLE, |(_, name)| name)
}

/// Makes MPI usable on this thread until [`leave`]; other code of the process must have initialised it. Returns the
/// level of thread support.
pub(super) fn join() -> Result<&'static str, CommError> {
    const OPERATION: &str = "joining a communicator";
    let refused = |message: String| Err(CommError::Transport { operation: OPERATION, message });
    if USABLE.get() != Usable::No {
        return refused("this thread already uses MPI: it must leave its communicator before it joins another".into());
    }
    let (mut begun, mut ended, mut level) = (0, 0, 0);
    // SAFETY: these two may be called at any time.
    unsafe {
        check("MPI_Initialized", ffi::MPI_Initialized(&mut begun))?;
        check("MPI_Finalized", ffi::MPI_Finalized(&mut ended))?;
    }
    if begun == 0 {
        return refused(format!(
            "{} is not initialised, so the communicator belongs to another MPI library; build Ferrite with the \
             library of the communicator",
            version()
        ));
    }
    if ended != 0 {
        return refused("MPI has been finalised in this process; join the communicator before MPI_Finalize".into());
    }
    // SAFETY: between start and end of MPI.
    check("MPI_Query_thread", unsafe { ffi::MPI_Query_thread(&mut level) })?;
    let mut is_main = 0;
    // SAFETY: between start and end of MPI.
    check("MPI_Is_thread_main", unsafe { ffi::MPI_Is_thread_main(&mut is_main) })?;
    match level_name(level) {
        // With the other levels, only the thread that initialised MPI may call it.
        name if is_main != 0 || ["MPI_THREAD_MULTIPLE", "MPI_THREAD_SERIALIZED"].contains(&name) => {
            USABLE.set(Usable::Joined);
            Ok(name)
        }
        name => refused(format!(
            "MPI was initialised with {name} on another thread; initialise it with MPI_THREAD_SERIALIZED or \
             MPI_THREAD_MULTIPLE"
        )),
    }
}

/// Ends the use of MPI on a thread that joined a communicator: its later calls return errors.
pub(super) fn leave() {
    if USABLE.get() == Usable::Joined {
        USABLE.set(Usable::No);
    }
}

/// Returns the number of all processes of the job.
pub(super) fn world_size() -> Result<usize, CommError> {
    usable(0)?;
    let mut size = 0;
    // SAFETY: usable; a constant.
    check("MPI_Comm_size", unsafe { ffi::MPI_Comm_size(ffi::RSMPI_COMM_WORLD, &mut size) })?;
    Ok(size as usize)
}

/// Finalises MPI. Waits for all ranks.
pub(super) fn finalise() -> Result<(), CommError> {
    usable(0)?;
    USABLE.set(Usable::No);
    // SAFETY: initialised, on this thread, and MPI is not called any more from now on.
    check("MPI_Finalize", unsafe { ffi::MPI_Finalize() })
}

/// Prints a message and ends all ranks with exit code `code`, or with 1 if `code` is 0.
pub(super) fn abort(code: i32, sentence: &str) -> ! {
    let code = if code == 0 { 1 } else { code };
    say(sentence);
    thread::sleep(FORWARDING);
    if is_usable() {
        // SAFETY: initialised, on this thread.
        unsafe { ffi::MPI_Abort(ffi::RSMPI_COMM_WORLD, code) };
    }
    unsafe extern "C" {
        fn _exit(code: c_int) -> !;
    }
    // `std::process::exit` could unload the library while a thread of MPI runs its code, so `_exit` ends the process.
    // SAFETY: `_exit` belongs to POSIX and has no preconditions.
    unsafe { _exit(code) }
}

/// Returns the name and version of the library.
pub(super) fn version() -> String {
    let text = mpi::environment::library_version().unwrap_or_default();
    // Keeps the first part of the text: Open MPI appends the machine that built it, MPICH its build options.
    let name = text.split([',', '\n', '\0']).next().unwrap_or_default();
    name.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Returns whether the library claims to support memory of CUDA devices.
pub(super) fn cuda_support() -> bool {
    unsafe extern "C" {
        fn dlsym(handle: *mut c_void, symbol: *const c_char) -> *mut c_void;
    }
    // The function is found at run time, because the crate `mpi` does not declare it and some libraries lack it.
    // SAFETY: a null handle is RTLD_DEFAULT on Linux: all libraries that are loaded.
    let found = unsafe { dlsym(ptr::null_mut(), c"MPIX_Query_cuda_support".as_ptr()) };
    if found.is_null() || !is_usable() {
        return false;
    }
    // SAFETY: Open MPI and MPICH declare `int MPIX_Query_cuda_support(void)`.
    let query = unsafe { std::mem::transmute::<*mut c_void, extern "C" fn() -> c_int>(found) };
    query() == 1
}

/// Layout of a message as MPI counts it: a number of bytes or, above the range of a count, one item of a derived type.
#[derive(Debug)]
pub(super) struct Bytes {
    pub(super) count: c_int,
    pub(super) datatype: ffi::MPI_Datatype,
    made: bool,
}

impl Bytes {
    /// Creates the layout of `length` bytes. Call [`free`](Self::free) afterwards, or MPI leaks memory.
    pub(super) fn new(length: usize, largest: usize) -> Result<Self, CommError> {
        // SAFETY: a constant.
        let byte = unsafe { ffi::RSMPI_UINT8_T };
        if length <= largest {
            return Ok(Self { count: length as c_int, datatype: byte, made: false });
        }
        // The derived type has two parts: blocks of half the largest count, and the remaining bytes. The number of
        // blocks is in the range of a count for up to 2^60 bytes.
        let block = largest.div_ceil(2);
        let (blocks, rest) = (length / block, length % block);
        let blocks = c_int::try_from(blocks).map_err(|_| CommError::Transport {
            operation: "MPI_Type_contiguous",
            message: format!("a message of {length} bytes is too long; send it in parts"),
        })?;
        let new = || -> Result<_, CommError> {
            let mut made = [byte; 2];
            // SAFETY: MPI is usable, see `usable` in the callers; out-pointers and arrays are as long as
            // MPI reads or writes.
            check("MPI_Type_contiguous", unsafe { ffi::MPI_Type_contiguous(block as c_int, byte, &mut made[0]) })?;
            let (lengths, places) = ([blocks, rest as c_int], [0, (blocks as usize * block) as ffi::MPI_Aint]);
            let types = [made[0], byte];
            // SAFETY: as above.
            check("MPI_Type_create_struct", unsafe {
                ffi::MPI_Type_create_struct(2, lengths.as_ptr(), places.as_ptr(), types.as_ptr(), &mut made[1])
            })?;
            // SAFETY: as above; the inner type may be freed, the outer one keeps what it needs.
            check("MPI_Type_free", unsafe { ffi::MPI_Type_free(&mut made[0]) })?;
            // SAFETY: as above.
            check("MPI_Type_commit", unsafe { ffi::MPI_Type_commit(&mut made[1]) })?;
            Ok(made[1])
        };
        Ok(Self { count: 1, datatype: new()?, made: true })
    }

    /// Returns the length in bytes of a message from the status of its probe or its reception.
    pub(super) fn of(status: &ffi::MPI_Status) -> Result<usize, CommError> {
        let mut count: ffi::MPI_Count = 0;
        // SAFETY: `status` was written by a probe; the type is a constant.
        let code = unsafe { ffi::MPI_Get_elements_x(status, ffi::RSMPI_UINT8_T, &mut count) };
        check("MPI_Get_elements_x", code)?;
        usize::try_from(count).map_err(|_| CommError::Transport {
            operation: "MPI_Get_elements_x",
            message: "the MPI library cannot determine the length of a message".to_string(),
        })
    }

    /// Frees the derived type. Further calls do nothing.
    pub(super) fn free(&mut self) {
        if std::mem::take(&mut self.made) {
            // SAFETY: made by `new`, freed once. MPI keeps it for requests that still need it.
            unsafe { ffi::MPI_Type_free(&mut self.datatype) };
        }
    }
}

/// Returns `address`, or for an empty message an address that MPI accepts. Rust's address of an empty vector can be 1,
/// which is Open MPI's `MPI_IN_PLACE`.
pub(super) fn address_of(address: *const u8, length: usize) -> *mut c_void {
    static NOTHING: u8 = 0;
    if length == 0 { (&raw const NOTHING).cast_mut().cast() } else { address.cast_mut().cast() }
}
