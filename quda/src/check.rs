//! Checks of what applications give: pointers, sizes of structures, and values of fields.
use crate::enums::{QUDA_CPU_FIELD_LOCATION, QUDA_CUDA_FIELD_LOCATION, QudaFieldLocation};
use ferrite_tasks::{Failure, Outcome};

/// Fails with the name of a field whose value is not offered.
pub fn not_offered(field: &str, of_type: &str, value: i32, offered: &str) -> Failure {
    let value = crate::define::name_of(of_type, value).map_or_else(|| value.to_string(), String::from);
    Failure::refused(format!("{field} = {value} is not offered: {offered}"))
}

/// Fails unless a structure has the size that it has in this library: applications of other headers would be misread.
pub fn check_size(found: usize, expected: usize) -> Outcome {
    match found == expected {
        true => Ok(()),
        false => Err(Failure::refused(format!(
            "struct_size = {found}, but this library has {expected}: make the structure with newQuda…Param, and compile \
             the application against Ferrite's headers"
        ))),
    }
}

/// Returns what a pointer of an argument points to.
///
/// # Safety
/// The pointer is null or valid, and nothing else uses what it points to during the call.
pub unsafe fn given<'a, T>(pointer: *mut T, name: &str) -> Outcome<&'a mut T> {
    // SAFETY: the caller's promise.
    unsafe { pointer.as_mut() }.ok_or_else(|| Failure::refused(format!("{name}: the pointer is null")))
}

/// Returns an argument that counts something.
///
/// # Errors
/// Numbers below 1 or above `most`.
pub fn count(name: &str, value: i32, most: usize) -> Outcome<usize> {
    let found = usize::try_from(value).ok().filter(|count| (1..=most).contains(count));
    found.ok_or_else(|| Failure::refused(format!("{name} = {value}: expected 1 to {most}")))
}

/// Whether a flag is set. Flags that an application has not set are off.
pub fn is_on(flag: i32) -> bool {
    flag == 1
}

/// Collection of mistakes in a structure.
#[derive(Default)]
pub struct Mistakes(Vec<String>);

impl Mistakes {
    /// Adds a sentence.
    pub fn add(&mut self, why: impl Into<String>) {
        self.0.push(why.into());
    }
    /// Adds a sentence unless a field has one of the values that are offered.
    pub fn expect(&mut self, field: &str, of_type: &str, value: i32, offered: &[i32]) {
        if !offered.contains(&value) {
            let names = offered.iter().filter_map(|one| crate::define::name_of(of_type, *one));
            let names = names.collect::<Vec<_>>().join(" or ");
            self.add(not_offered(field, of_type, value, &format!("expected {names}")).message);
        }
    }
    /// Adds a sentence unless a field has not been set, or is 0.
    pub fn expect_0(&mut self, field: &str, value: i32) {
        if value != 0 && value != crate::define::UNSET_INT {
            self.add(format!("{field} = {value} is not offered: expected 0"));
        }
    }
    /// Adds a sentence unless a location is the host, or the GPU.
    pub fn expect_location(&mut self, field: &str, location: QudaFieldLocation) {
        self.expect(field, "QudaFieldLocation", location, &[QUDA_CPU_FIELD_LOCATION, QUDA_CUDA_FIELD_LOCATION]);
    }
    /// Fails if there are mistakes.
    pub fn finish(self) -> Outcome {
        if self.0.is_empty() { Ok(()) } else { Err(Failure::refused(self.0.join("; "))) }
    }
}
