//! Shared parts of all calls: codes, messages, records, and checks of pointers.
use ferrite_tasks::failure::{FailureKind, without_flags};
use ferrite_tasks::json::JsonOptions;
use ferrite_tasks::{Failure, Outcome};
use serde_json::Value;
use std::cell::RefCell;
use std::ffi::{CStr, CString, c_char};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;
use std::sync::Once;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Version of the interface. It changes if programs have to be compiled again.
pub const FE_ABI: u32 = 1;

/// The call succeeded.
pub const FE_OK: i32 = 0;
/// An argument or option is invalid.
pub const FE_INPUT: i32 = 1;
/// A file cannot be read or written, or its data is wrong.
pub const FE_FILE: i32 = 2;
/// A device is absent, fails, or has too little memory.
pub const FE_DEVICE: i32 = 3;
/// A solver did not reach the requested tolerance.
pub const FE_SOLVER: i32 = 4;
/// Any other failure, such as a call from another thread than that of the device.
pub const FE_FAILED: i32 = 5;
/// Internal error: a bug of Ferrite. Please report the message.
pub const FE_INTERNAL: i32 = 6;

thread_local! {
    static MESSAGE: RefCell<CString> = RefCell::default();
    static RECORD: RefCell<CString> = RefCell::default();
}

/// Number of calls that are running, on all threads.
static RUNNING: AtomicUsize = AtomicUsize::new(0);

/// Returns the version of the interface that the library has. Programs compare it with `FE_ABI`.
#[unsafe(no_mangle)]
pub extern "C" fn fe_abi() -> u32 {
    FE_ABI
}

/// Returns the version of Ferrite as text.
#[unsafe(no_mangle)]
pub extern "C" fn fe_version() -> *const c_char {
    const VERSION: &CStr = match CStr::from_bytes_with_nul(concat!(env!("CARGO_PKG_VERSION"), "\0").as_bytes()) {
        Ok(version) => version,
        Err(_) => c"",
    };
    VERSION.as_ptr()
}

/// Returns the reason why the last call on this thread failed; an empty text if it succeeded. The text is valid until the next call on
/// this thread; functions that free an object leave it.
#[unsafe(no_mangle)]
pub extern "C" fn fe_message() -> *const c_char {
    MESSAGE.with_borrow(|message| message.as_ptr())
}

/// Returns the record of the last call on this thread as a JSON object, with the keys of docs/output.md; an empty text if the call made no
/// record. The text is valid until the next call on this thread; functions that free an object leave it.
#[unsafe(no_mangle)]
pub extern "C" fn fe_record() -> *const c_char {
    RECORD.with_borrow(|record| record.as_ptr())
}

/// Leaves a record of this call.
pub(crate) fn leave_record(record: impl Into<Value>) {
    RECORD.set(c_text(&record.into().to_string()));
}

/// Runs a call: empties message and record, and converts a failure or a panic to a code with a message.
pub(crate) fn call(work: impl FnOnce() -> Outcome) -> i32 {
    // The last texts live until the end of the call, because a program may give them as arguments.
    let _before = (RECORD.take(), MESSAGE.take());
    call_keeping_texts(work)
}

/// Runs a call that leaves message and record of the call before it, unless it fails: cleaning up does not take them away.
pub(crate) fn call_keeping_texts(work: impl FnOnce() -> Outcome) -> i32 {
    keep_panics_silent();
    RUNNING.fetch_add(1, Ordering::Relaxed);
    let done = catch_unwind(AssertUnwindSafe(work));
    RUNNING.fetch_sub(1, Ordering::Relaxed);
    let (code, message) = match done {
        Ok(Ok(())) => return FE_OK,
        Ok(Err(failure)) => (code_of(failure.kind), c_text(&in_c(&failure.message))),
        Err(panic) => (FE_INTERNAL, c_text(&Failure::of_panic(&*panic).message)),
    };
    MESSAGE.set(message);
    code
}

fn code_of(kind: FailureKind) -> i32 {
    match kind {
        FailureKind::Input => FE_INPUT,
        FailureKind::File => FE_FILE,
        FailureKind::Device => FE_DEVICE,
        FailureKind::Solver => FE_SOLVER,
        FailureKind::Other => FE_FAILED,
    }
}

/// Lets panics print nothing while calls are running, on the threads of the library, too.
fn keep_panics_silent() {
    static DONE: Once = Once::new();
    DONE.call_once(|| {
        let before = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |panic| {
            if RUNNING.load(Ordering::Relaxed) == 0 {
                before(panic);
            }
        }));
    });
}

/// Rewords a message about a device: replaces the program's flags by the options of this interface.
fn in_c(message: &str) -> String {
    without_flags(message, "open a device with the option \"device\": \"cpu\"", "the option \"index\"")
}

/// Converts a text; bytes from the first zero on are dropped.
fn c_text(text: &str) -> CString {
    let end = text.find('\0').unwrap_or(text.len());
    CString::new(&text[..end]).unwrap_or_default()
}

/// Returns the failure of an argument; `what` names it.
pub(crate) fn refused(what: &str, why: &str) -> Failure {
    Failure::refused(format!("{what}: {why}"))
}

/// Returns the text of an argument; `None` for a null pointer.
///
/// # Safety
/// The pointer is null or points to a text with a final zero.
pub(crate) unsafe fn text<'a>(pointer: *const c_char, what: &str) -> Outcome<Option<&'a str>> {
    if pointer.is_null() {
        return Ok(None);
    }
    // SAFETY: the caller's promise.
    let text = unsafe { CStr::from_ptr(pointer) };
    text.to_str().map(Some).map_err(|_| refused(what, "the text is not in UTF-8"))
}

/// Returns the path of an argument.
///
/// # Safety
/// As for [`text`].
pub(crate) unsafe fn path(pointer: *const c_char) -> Outcome<PathBuf> {
    // SAFETY: the caller's promise.
    let path = unsafe { text(pointer, "path") }?;
    path.map(PathBuf::from).ok_or_else(|| refused("path", "the pointer is null"))
}

/// Returns the options of an argument; none for a null pointer.
///
/// # Safety
/// As for [`text`].
pub(crate) unsafe fn options(pointer: *const c_char) -> Outcome<JsonOptions> {
    // SAFETY: the caller's promise.
    JsonOptions::read(unsafe { text(pointer, "options") }?.unwrap_or_default())
}

/// Returns what a pointer points to.
///
/// # Safety
/// The pointer is null or valid for reads, and nothing writes there during the call.
pub(crate) unsafe fn given<'a, T>(pointer: *const T, what: &str) -> Outcome<&'a T> {
    // SAFETY: the caller's promise.
    unsafe { pointer.as_ref() }.ok_or_else(|| refused(what, "the pointer is null"))
}

/// Returns `N` numbers that a pointer points to.
///
/// # Safety
/// The pointer is null or valid for reads of `N` numbers.
pub(crate) unsafe fn numbers<T: Copy, const N: usize>(pointer: *const T, what: &str) -> Outcome<[T; N]> {
    // SAFETY: the caller's promise; an array has the alignment of its elements.
    unsafe { given(pointer.cast::<[T; N]>(), what) }.copied()
}

/// Returns the extents x, y, z and t of a lattice.
///
/// # Safety
/// As for [`numbers`].
pub(crate) unsafe fn extents(pointer: *const i64) -> Outcome<[usize; 4]> {
    // SAFETY: the caller's promise.
    let extents: [i64; 4] = unsafe { numbers(pointer, "lattice") }?;
    if extents.iter().any(|extent| !(1..=1 << 31).contains(extent)) {
        let why = format!("{extents:?} are no extents x, y, z, t: expected four whole numbers above 0");
        return Err(refused("lattice", &why));
    }
    Ok(extents.map(|extent| extent as usize))
}

/// Stores a value where a pointer points, unless it is null.
///
/// # Safety
/// The pointer is null or valid for writes.
pub(crate) unsafe fn store<T>(pointer: *mut T, value: T) {
    if !pointer.is_null() {
        // SAFETY: the caller's promise.
        unsafe { pointer.write(value) };
    }
}

/// Stores a null handle where `out` points, so that a program may free it after any failure.
///
/// # Safety
/// `out` is null or valid for writes.
pub(crate) unsafe fn nothing_in<T>(out: *mut *mut T) {
    // SAFETY: the caller's promise.
    unsafe { store(out, std::ptr::null_mut()) };
}

/// Makes an object, and stores a handle of it where `out` points, after [`nothing_in`].
///
/// # Safety
/// `out` is null or valid for writes.
pub(crate) unsafe fn make<T>(out: *mut *mut T, work: impl FnOnce() -> Outcome<T>) -> Outcome {
    if out.is_null() {
        return Err(refused("out", "the pointer is null"));
    }
    let made = Box::into_raw(Box::new(work()?));
    // SAFETY: not null, and the caller's promise.
    unsafe { out.write(made) };
    Ok(())
}
