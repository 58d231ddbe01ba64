//! A number for the source of the kernels. Whoever compiles it to PTX notes it, and whoever launches the PTX compares: a
//! kernel's arguments are a struct, which has to look the same on both sides.
use std::path::{Path, PathBuf};

fn main() {
    println!("cargo::rerun-if-changed=src");
    println!("cargo::rerun-if-changed=build.rs");
    let root = PathBuf::from(std::env::var_os("CARGO_MANIFEST_DIR").expect("set by cargo"));
    let mut files = Vec::new();
    list(&root.join("src"), &mut files);
    files.sort();
    let mut hash = crc32fast::Hasher::new();
    for file in files {
        let name = file.strip_prefix(&root).expect("listed below it").to_string_lossy().into_owned();
        let text = std::fs::read(&file).expect("listed a moment ago");
        for part in [name.as_bytes(), &text] {
            hash.update(&(part.len() as u64).to_le_bytes());
            hash.update(part);
        }
    }
    let source = format!("{:08x}", hash.finalize());
    println!("cargo::rustc-env=GPU_KERNELS_SOURCE={source}");
    println!("cargo::metadata=source={source}");
}

fn list(folder: &Path, files: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).expect("a folder of this package").flatten() {
        let path = entry.path();
        if path.is_dir() { list(&path, files) } else { files.push(path) }
    }
}
