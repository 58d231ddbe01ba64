//! Start and end of the interface, parameters of structures, and verbosity.
use crate::define::{FieldValue, Pointee};
use crate::enums::{QUDA_SILENT, QUDA_SUMMARIZE, QudaVerbosity};
use crate::functions::{FILE, QudaCommsMap};
use crate::processes::{ApplicationGrid, join, leave, rank};
use crate::state::State;
use ferrite_tasks::grid_device::NamedDevice;
use ferrite_tasks::{Failure, Outcome};
use std::cell::RefCell;
use std::ffi::{CStr, CString, c_char, c_int, c_void};

unsafe extern "C" {
    fn fputs(text: *const c_char, file: *mut FILE) -> c_int;
    fn fflush(file: *mut FILE) -> c_int;
}

/// Verbosity, prefix and destination of messages.
#[derive(Default)]
struct Messages {
    verbosity: Option<QudaVerbosity>,
    prefix: String,
    /// File of the application; standard error if there is none.
    file: Option<*mut FILE>,
}

thread_local! {
    static MESSAGES: RefCell<Messages> = RefCell::default();
}

/// Writes a line to the application's file, after its prefix.
fn write_line(line: &str) {
    let (file, prefix) = MESSAGES.with_borrow(|messages| (messages.file, messages.prefix.clone()));
    let text = format!("{prefix}{line}\n");
    match file {
        Some(file) => {
            let Ok(text) = CString::new(text) else { return };
            // SAFETY: the application gave the file, and the text ends with a zero.
            unsafe {
                fputs(text.as_ptr(), file);
                fflush(file);
            }
        }
        None => eprint!("{text}"),
    }
}

/// Writes a message of the process with rank 0 if the verbosity is at least `least`.
pub fn say(least: QudaVerbosity, line: &str) {
    if rank() > 0 {
        return;
    }
    let verbosity = MESSAGES.with_borrow(|messages| messages.verbosity).unwrap_or(QUDA_SUMMARIZE);
    if verbosity != QUDA_SILENT && verbosity >= least {
        write_line(line);
    }
}

/// Writes the reason of a failure, whatever the verbosity.
pub fn say_failure(why: &str) {
    write_line(&format!("ferrite: {why}"));
}

/// Sets verbosity, prefix and file of messages.
///
/// # Safety
/// `prefix` is null or a text with a final zero; `file` is null or an open file.
pub unsafe fn set_verbosity(verbosity: QudaVerbosity, prefix: *const c_char, file: *mut FILE) -> Outcome {
    let prefix = match prefix.is_null() {
        true => String::new(),
        // SAFETY: the caller's promise.
        false => unsafe { CStr::from_ptr(prefix) }.to_string_lossy().into_owned(),
    };
    MESSAGES.set(Messages { verbosity: Some(verbosity), prefix, file: Some(file).filter(|file| !file.is_null()) });
    Ok(())
}

/// Sets the process grid, with the rank at each place.
///
/// # Safety
/// `dims` points to `count` numbers; `map` may be called with coordinates and `data`.
pub unsafe fn init_grid(count: i32, dims: *const i32, map: QudaCommsMap, data: *mut c_void) -> Outcome {
    if count != 4 || dims.is_null() {
        return Err(Failure::refused(format!("nDim = {count}: expected 4, with the processes in x, y, z and t")));
    }
    // SAFETY: the caller's promise.
    let given = unsafe { std::slice::from_raw_parts(dims, 4) };
    let grid = [given[0], given[1], given[2], given[3]].map(|n| usize::try_from(n).unwrap_or(0));
    // SAFETY: as above.
    let grid = unsafe { ApplicationGrid::new(grid, map, data) }?;
    State::with(|state| {
        // Later calls do not change the grid.
        state.grid.get_or_insert(grid);
        Ok(())
    })
}

/// Opens a device: the GPU with this number, or a CPU for a negative number if no GPU works.
pub fn init(device: i32) -> Outcome {
    init_device(device)
}

/// *Collective.* Opens a device. A negative number chooses a GPU if one works, otherwise the CPU; processes of one host take GPUs one after
/// the other.
pub fn init_device(device: i32) -> Outcome {
    if State::with(|state| Ok(state.is_open()))? {
        return Ok(());
    }
    let grid = match State::with(|state| Ok(state.grid.clone()))? {
        Some(grid) => grid,
        // SAFETY: there is no function to call.
        None => unsafe { ApplicationGrid::new([1; 4], None, std::ptr::null_mut()) }?,
    };
    let started = ["OMPI_COMM_WORLD_SIZE", "PMI_SIZE"].into_iter().filter_map(|name| std::env::var(name).ok());
    let started = started.into_iter().find_map(|size| size.parse::<usize>().ok()).unwrap_or(1);
    if started > 1 && grid.size() == 1 {
        return Err(Failure::refused(format!(
            "the application runs with {started} processes, but the grid has one: call initCommsGridQuda with the grid \
             of all processes"
        )));
    }
    let comm = join(&grid)?;
    let has_gpu = ferrite_tasks::device::gpus().is_ok_and(|names| !names.is_empty());
    let name = if device >= 0 || has_gpu { "cuda" } else { "cpu" };
    let index = usize::try_from(device).ok();
    let named = NamedDevice { name: name.into(), index, grid: Some(grid.dims()), ..NamedDevice::default() };
    let opened = named.open(comm)?;
    say(QUDA_SUMMARIZE, &format!("Ferrite {}: {}", env!("CARGO_PKG_VERSION"), opened.backend().device()));
    State::with(|state| {
        state.open(opened);
        Ok(())
    })
}

/// Does nothing: memory is allocated when it is needed.
pub fn init_memory() -> Outcome {
    Ok(())
}

/// Frees everything that the interface keeps.
pub fn end() -> Outcome {
    State::end();
    leave();
    Ok(())
}

/// Structure that an application makes with a function of the interface.
pub trait Param: FieldValue {
    /// Returns the structure with its size.
    fn with_size(self) -> Self;
}
macro_rules! params {
    ($($name:ident),*) => {
        $(impl Param for crate::structs::$name {
            fn with_size(self) -> Self {
                Self { struct_size: size_of::<Self>(), ..self }
            }
        })*
    };
}
params!(
    QudaGaugeParam,
    QudaInvertParam,
    QudaMultigridParam,
    QudaEigParam,
    QudaGaugeObservableParam,
    QudaGaugeSmearParam,
    QudaBLASParam
);

/// Returns a structure whose fields are not set, except its size.
pub fn new_param<T: Param>() -> Outcome<T> {
    Ok(T::UNSET.with_size())
}

/// Writes the fields of a structure that have been set.
///
/// # Safety
/// `param` is null or points to a structure.
pub unsafe fn print_param<T: Pointee>(param: *mut T) -> Outcome {
    // SAFETY: the caller's promise.
    let param = unsafe { param.as_ref() }.ok_or_else(|| Failure::refused("param: the pointer is null"))?;
    let mut text = String::new();
    param.show_fields(&mut text);
    text.lines().for_each(write_line);
    Ok(())
}
