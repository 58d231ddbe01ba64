//! Headers for applications, made of the tables.
use crate::define::element_of;
use crate::enums::ENUMERATIONS;
use crate::functions::FUNCTIONS;
use crate::structs::STRUCTURES;
use std::fmt::Write;

/// Text at the beginning of each header.
const BEGINNING: &str = "\
/* Made of the tables of the crate ferrite-quda; do not edit. Compile applications against this header, and link them to
   libferrite_quda. It has the names of QUDA's C interface, and a layout of its own. */
";

/// Functions by which PyQUDA may take memory from QUDA. Ferrite has no pool of memory for applications.
const ALLOCATION: &str = "\
#include <cstddef>
#include <cstdio>
#include <cstdlib>
static inline void *pool_device_malloc(std::size_t) {
  std::fprintf(stderr, \"ferrite: there is no pool of device memory for applications: use_malloc_quda has to be False\\n\");
  std::abort();
}
static inline void pool_device_free(void *) {}
";

/// Kind of GPUs, which PyQUDA asks for.
const TARGET: &str = "#define QUDA_TARGET_CUDA\n";

/// Constants of the interface.
const CONSTANTS: [(&str, usize); 6] = [
    ("QUDA_MAX_DIM", 6),
    ("QUDA_MAX_GEOMETRY", 8),
    ("QUDA_MAX_MULTI_SHIFT", 32),
    ("QUDA_MAX_MULTI_SRC", 128),
    ("QUDA_MAX_DWF_LS", 32),
    ("QUDA_MAX_MG_LEVEL", 5),
];

/// Returns the names and the texts of all headers.
pub fn all() -> Vec<(&'static str, String)> {
    vec![
        ("quda_constants.h", constants()),
        ("quda_define.h", guarded(TARGET)),
        ("enum_quda.h", enumerations()),
        ("malloc_quda.h", guarded(ALLOCATION)),
        ("quda.h", interface(|name| !of_milc(name), &["stdio.h", "enum_quda.h", "quda_constants.h"])),
        ("quda_milc_interface.h", interface(of_milc, &["enum_quda.h", "quda.h"])),
    ]
}

/// Returns whether a name belongs to the header for MILC.
fn of_milc(name: &str) -> bool {
    name.starts_with("quda") && name != "qudaSetCommHandle" || name.ends_with("_t")
}

/// Returns a header. PyQUDA expects a value after each name that a header defines, so that names of guards would confuse it.
fn guarded(text: &str) -> String {
    format!("{BEGINNING}#pragma once\n{text}")
}

fn constants() -> String {
    let mut text = String::new();
    for (name, value) in [("QUDA_VERSION_MAJOR", 1), ("QUDA_VERSION_MINOR", 1), ("QUDA_VERSION_SUBMINOR", 0)] {
        writes(&mut text, format_args!("#define {name} {value}\n"));
    }
    text.push_str(
        "#define QUDA_VERSION ((QUDA_VERSION_MAJOR << 16) | (QUDA_VERSION_MINOR << 8) | QUDA_VERSION_SUBMINOR)\n",
    );
    for (name, value) in CONSTANTS {
        writes(&mut text, format_args!("#define {name} {value}\n"));
    }
    guarded(&text)
}

fn enumerations() -> String {
    let mut text = String::from("#include <limits.h>\n#define QUDA_INVALID_ENUM INT_MIN\n");
    for one in ENUMERATIONS {
        writes(&mut text, format_args!("typedef enum {}_s {{\n", one.name));
        for (name, value) in one.constants {
            match *value {
                i32::MIN => writes(&mut text, format_args!("  {name} = QUDA_INVALID_ENUM,\n")),
                value => writes(&mut text, format_args!("  {name} = {value},\n")),
            }
        }
        writes(&mut text, format_args!("}} {};\n", one.name));
    }
    guarded(&text)
}

fn interface(is_in: impl Fn(&str) -> bool, includes: &[&str]) -> String {
    let mut text = String::new();
    for include in includes {
        match include.contains("quda") {
            true => writes(&mut text, format_args!("#include \"{include}\"\n")),
            false => writes(&mut text, format_args!("#include <{include}>\n")),
        }
    }
    text.push_str("#ifdef __cplusplus\nextern \"C\" {\n#endif\n");
    if is_in("initCommsGridQuda") {
        text.push_str("typedef int (*QudaCommsMap)(const int *coords, void *fdata);\n");
    }
    for structure in STRUCTURES.iter().filter(|structure| is_in(structure.name)) {
        writes(&mut text, format_args!("typedef struct {}_s {{\n", structure.name));
        for (name, of_type) in structure.fields {
            writes(&mut text, format_args!("  {};\n", declaration(of_type, plain(name))));
        }
        writes(&mut text, format_args!("}} {};\n", structure.name));
    }
    for function in FUNCTIONS.iter().filter(|function| is_in(function.name)) {
        let arguments: Vec<String> =
            function.arguments.iter().map(|(name, of_type)| declaration(of_type, plain(name))).collect();
        let arguments = if arguments.is_empty() { "void".into() } else { arguments.join(", ") };
        let result = if function.result.is_empty() { "void " } else { &declaration(function.result, "") };
        writes(&mut text, format_args!("{result}{}({arguments});\n", function.name));
    }
    text.push_str("#ifdef __cplusplus\n}\n#endif\n");
    guarded(&text)
}

fn writes(text: &mut String, line: std::fmt::Arguments<'_>) {
    // Writing to a text does not fail.
    let _ = text.write_fmt(line);
}

fn plain(name: &str) -> &str {
    name.trim_start_matches("r#")
}

/// Returns the declaration in C of a name with a Rust type.
fn declaration(of_type: &str, name: &str) -> String {
    let of_type = of_type.trim();
    if of_type.starts_with('[') {
        let length = of_type.rsplit_once(';').map_or("", |(_, length)| length.trim_end_matches(']').trim());
        // The length of the outer array comes first.
        return declaration(element_of(of_type), &format!("{name}[{length}]"));
    }
    for (pointer, word) in [("*const ", "const "), ("*mut ", "")] {
        if let Some(to) = of_type.strip_prefix(pointer) {
            // A pointer to a constant pointer is `T *const *` in C, and one to a constant is `const T *`.
            let inner = declaration(to, "");
            return match (word, inner.contains('*')) {
                ("const ", true) => format!("{}const *{name}", inner),
                _ => format!("{word}{}*{name}", inner),
            };
        }
    }
    let of_c = match of_type {
        "i32" => "int",
        "u32" => "unsigned int",
        "u64" => "unsigned long long",
        "usize" => "size_t",
        "f64" => "double",
        "Complex64" => "double _Complex",
        "c_char" => "char",
        "c_void" => "void",
        other => other,
    };
    format!("{of_c} {name}")
}
