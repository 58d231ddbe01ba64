//! Macros that turn the tables of the interface into Rust types and functions, and into descriptions for headers and traces.
use ferrite::num_complex::Complex64;
use std::ffi::c_char;
use std::fmt::Write;

/// Enumeration of the interface.
pub struct Enumeration {
    /// Name of the type.
    pub name: &'static str,
    /// Names and values of its constants.
    pub constants: &'static [(&'static str, i32)],
}

/// Structure of the interface.
pub struct Structure {
    /// Name of the type.
    pub name: &'static str,
    /// Names and Rust types of its fields.
    pub fields: &'static [(&'static str, &'static str)],
}

/// Function of the interface.
pub struct Function {
    /// Name of the function.
    pub name: &'static str,
    /// Names and Rust types of its arguments.
    pub arguments: &'static [(&'static str, &'static str)],
    /// Rust type of its result; empty for none.
    pub result: &'static str,
    /// Whether the function is offered; otherwise it refuses by name.
    pub is_offered: bool,
}

/// Value of a field of a structure.
pub trait FieldValue {
    /// Value of a field that the application has not set.
    const UNSET: Self;
    /// Writes the fields that have been set, one in each line, after the name of the field.
    fn show(&self, name: &str, of_type: &str, to: &mut String);
}

/// Mark of a whole number that has not been set, QUDA_INVALID_ENUM.
pub const UNSET_INT: i32 = i32::MIN;
/// Mark of a real number that has not been set.
pub const UNSET_REAL: f64 = f64::MIN_POSITIVE;

/// Returns the name of a value of an enumeration.
pub fn name_of(of_type: &str, value: i32) -> Option<&'static str> {
    let found = crate::enums::ENUMERATIONS.iter().find(|known| known.name == of_type)?;
    found.constants.iter().find(|(_, known)| *known == value).map(|(name, _)| *name)
}

/// Writes a line of a trace.
fn line(to: &mut String, name: &str, value: impl std::fmt::Display) {
    // Writing to a text does not fail.
    let _ = writeln!(to, "    {name} = {value}");
}

impl FieldValue for i32 {
    const UNSET: Self = UNSET_INT;
    fn show(&self, name: &str, of_type: &str, to: &mut String) {
        match name_of(of_type, *self) {
            _ if *self == UNSET_INT => {}
            Some(word) => line(to, name, word),
            None => line(to, name, self),
        }
    }
}
impl FieldValue for f64 {
    const UNSET: Self = UNSET_REAL;
    fn show(&self, name: &str, _: &str, to: &mut String) {
        if *self != UNSET_REAL {
            line(to, name, format_args!("{self:?}"));
        }
    }
}
impl FieldValue for usize {
    const UNSET: Self = i32::MIN as usize;
    fn show(&self, name: &str, _: &str, to: &mut String) {
        if *self != Self::UNSET {
            line(to, name, self);
        }
    }
}
impl FieldValue for u32 {
    const UNSET: Self = UNSET_INT as u32;
    fn show(&self, name: &str, _: &str, to: &mut String) {
        if *self != Self::UNSET {
            line(to, name, self);
        }
    }
}
impl FieldValue for u64 {
    const UNSET: Self = i32::MIN as u64;
    fn show(&self, name: &str, _: &str, to: &mut String) {
        if *self != Self::UNSET {
            line(to, name, self);
        }
    }
}
impl FieldValue for Complex64 {
    const UNSET: Self = Complex64::new(UNSET_REAL, 0.0);
    fn show(&self, name: &str, _: &str, to: &mut String) {
        if *self != Self::UNSET {
            line(to, name, self);
        }
    }
}
impl FieldValue for c_char {
    const UNSET: Self = 0;
    fn show(&self, _: &str, _: &str, _: &mut String) {}
}
impl<T> FieldValue for *mut T {
    const UNSET: Self = std::ptr::null_mut();
    fn show(&self, name: &str, _: &str, to: &mut String) {
        if !self.is_null() {
            line(to, name, "pointer");
        }
    }
}
impl<T> FieldValue for *const T {
    const UNSET: Self = std::ptr::null();
    fn show(&self, name: &str, _: &str, to: &mut String) {
        if !self.is_null() {
            line(to, name, "pointer");
        }
    }
}
impl<T: FieldValue + Copy, const N: usize> FieldValue for [T; N] {
    const UNSET: Self = [T::UNSET; N];
    fn show(&self, name: &str, of_type: &str, to: &mut String) {
        let element = element_of(of_type);
        if element == "c_char" {
            return;
        }
        for (place, value) in self.iter().enumerate() {
            value.show(&format!("{name}[{place}]"), element, to);
        }
    }
}

/// Returns the type of the elements of an array, in the spelling of Rust.
pub fn element_of(array: &str) -> &str {
    let inner = array.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')).unwrap_or(array);
    inner.rsplit_once(';').map_or(inner, |(element, _)| element.trim())
}

/// Value that a trace can show: an argument of a call.
pub trait Argument {
    /// Returns the value in a few words.
    fn word(&self, of_type: &str) -> String;
    /// Writes the fields of a structure that have been set.
    ///
    /// # Safety
    /// A pointer is null or points to what its type says.
    unsafe fn fields(&self, _to: &mut String) {}
}

macro_rules! plain_arguments {
    ($($type:ty),*) => {
        $(impl Argument for $type {
            fn word(&self, _: &str) -> String {
                format!("{self:?}")
            }
        })*
    };
}
plain_arguments!(f64, usize, u32, u64);

impl Argument for i32 {
    fn word(&self, of_type: &str) -> String {
        name_of(of_type, *self).map_or_else(|| self.to_string(), String::from)
    }
}
impl Argument for crate::functions::QudaCommsMap {
    fn word(&self, _: &str) -> String {
        if self.is_some() { "function" } else { "null" }.into()
    }
}
impl<T: Pointee> Argument for *mut T {
    fn word(&self, _: &str) -> String {
        if self.is_null() { "null" } else { "pointer" }.into()
    }
    unsafe fn fields(&self, to: &mut String) {
        // SAFETY: the caller's promise.
        if let Some(pointee) = unsafe { self.as_ref() } {
            pointee.show_fields(to);
        }
    }
}
impl<T> Argument for *const T {
    fn word(&self, _: &str) -> String {
        if self.is_null() { "null" } else { "pointer" }.into()
    }
}

/// Target of a pointer that is an argument. Only structures have fields to show.
pub trait Pointee {
    /// Writes the fields that have been set.
    fn show_fields(&self, _to: &mut String) {}
}
macro_rules! without_fields {
    ($($type:ty),*) => {
        $(impl Pointee for $type {})*
    };
}
without_fields!(std::ffi::c_void, c_char, i32, f64, Complex64, crate::functions::FILE);
impl<T> Pointee for *mut T {}
impl<T> Pointee for *const T {}

/// Makes enumerations: whole numbers with named constants.
macro_rules! quda_enums {
    ($($name:ident { $($constant:ident = $value:expr,)* })*) => {
        $(
            #[doc = concat!("Enumeration `", stringify!($name), "` of the interface.")]
            pub type $name = i32;
        )*
        $($(
            #[doc = concat!("Constant of [`", stringify!($name), "`].")]
            pub const $constant: $name = $value;
        )*)*
        /// All enumerations.
        pub const ENUMERATIONS: &[$crate::define::Enumeration] = &[$($crate::define::Enumeration {
            name: stringify!($name),
            constants: &[$((stringify!($constant), $value)),*],
        }),*];
    };
}
pub(crate) use quda_enums;

/// Makes structures in the layout of C.
macro_rules! quda_structs {
    ($($name:ident { $($field:ident: $type:ty,)* })*) => {
        $(
            #[doc = concat!("Structure `", stringify!($name), "` of the interface.")]
            #[repr(C)]
            #[derive(Clone, Copy)]
            #[allow(missing_docs, reason = "the manual explains the fields that Ferrite uses")]
            pub struct $name {
                $(pub $field: $type,)*
            }
            impl $crate::define::FieldValue for $name {
                const UNSET: Self = $name { $($field: <$type as $crate::define::FieldValue>::UNSET,)* };
                fn show(&self, name: &str, _: &str, to: &mut String) {
                    $($crate::define::FieldValue::show(
                        &self.$field,
                        &format!("{name}{}", stringify!($field).trim_start_matches("r#")),
                        stringify!($type),
                        to,
                    );)*
                }
            }
            impl $crate::define::Pointee for $name {
                fn show_fields(&self, to: &mut String) {
                    $crate::define::FieldValue::show(self, "", "", to);
                }
            }
            impl $crate::define::Argument for $name {
                fn word(&self, _: &str) -> String {
                    let mut text = String::new();
                    $crate::define::FieldValue::show(self, "", "", &mut text);
                    format!("{{{}}}", text.lines().map(str::trim).collect::<Vec<_>>().join("; "))
                }
            }
        )*
        /// All structures.
        pub const STRUCTURES: &[$crate::define::Structure] = &[$($crate::define::Structure {
            name: stringify!($name),
            fields: &[$((stringify!($field), stringify!($type))),*],
        }),*];
    };
}
pub(crate) use quda_structs;

/// Makes the functions with the calling convention of C.
macro_rules! quda_functions {
    ($(fn $name:ident($($argument:ident: $type:ty),*) $(-> $result:ty)? $(= $path:path)?;)*) => {
        $(
            #[doc = concat!("Function `", stringify!($name), "` of the interface.")]
            ///
            /// # Safety
            /// Pointers are null or point to what QUDA expects there.
            #[unsafe(no_mangle)]
            #[allow(clippy::too_many_arguments, reason = "the interface has them")]
            pub unsafe extern "C" fn $name($($argument: $type),*) $(-> $result)? {
                let trace = || {
                    let words: Vec<String> = vec![$(format!(
                        "{} = {}",
                        stringify!($argument).trim_start_matches("r#"),
                        $crate::define::Argument::word(&$argument, stringify!($type))
                    )),*];
                    #[allow(unused_mut, reason = "some functions have no argument")]
                    let mut text = format!("{}({})\n", stringify!($name), words.join(", "));
                    $(
                        // SAFETY: the caller's promise.
                        unsafe { $crate::define::Argument::fields(&$argument, &mut text) };
                    )*
                    text
                };
                $crate::call::enter(stringify!($name), trace, || {
                    quda_functions!(@body $name ($($argument),*) $($path)?)
                })
            }
        )*
        /// All functions.
        pub const FUNCTIONS: &[$crate::define::Function] = &[$($crate::define::Function {
            name: stringify!($name),
            arguments: &[$((stringify!($argument), stringify!($type))),*],
            result: concat!($(stringify!($result))?),
            is_offered: quda_functions!(@offered $($path)?),
        }),*];
    };
    (@body $name:ident ($($argument:ident),*) $path:path) => {
        // SAFETY: the caller's promise.
        #[allow(unused_unsafe, reason = "some calls use no pointer")]
        unsafe { $path($($argument),*) }
    };
    (@body $name:ident ($($argument:ident),*)) => {{
        $(let _ = $argument;)*
        $crate::call::refuse(stringify!($name))
    }};
    (@offered $path:path) => { true };
    (@offered) => { false };
}
pub(crate) use quda_functions;
