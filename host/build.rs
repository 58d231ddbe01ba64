//! Embeds the kernels that `cargo xtask build-ptx` made, if there are any. They are compressed: a program has machine code for
//! some architectures and PTX for the others, and uses one of these for each module.
use lzma_rust2::{LzmaOptions, LzmaWriter};
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::io::Write as _;
use std::path::{Path, PathBuf};

fn main() {
    let manifest = PathBuf::from(std::env::var_os("CARGO_MANIFEST_DIR").expect("set by cargo"));
    let folder = manifest.join("../target/kernels");
    // What is not there counts as changed, and this package and all that use it would be compiled at every build. A folder
    // that cannot be made is not watched.
    if folder.is_dir() || std::fs::create_dir_all(&folder).is_ok() {
        println!("cargo::rerun-if-changed={}", folder.display());
    }
    println!("cargo::rerun-if-changed=build.rs");
    let mut files: Vec<PathBuf> = std::fs::read_dir(&folder)
        .into_iter()
        .flatten()
        .flatten()
        .map(|entry| entry.path())
        .filter(|path| path.extension().is_some_and(|e| e == "ptx" || e == "cubin"))
        .collect();
    files.sort();
    // Kernels of another source may take other arguments, and would compute nonsense or write where they must not.
    let wanted = std::env::var("DEP_GPU_KERNELS_SOURCE").expect("gpu-kernels says so");
    let source = folder.join("source");
    // The folder is watched; a file that is not there would count as changed.
    if source.is_file() {
        println!("cargo::rerun-if-changed={}", source.display());
    }
    let stale = !files.is_empty() && std::fs::read_to_string(&source).ok().as_deref() != Some(&*wanted);
    if stale {
        println!(
            "cargo::warning=the kernels in target/kernels are not those of gpu-kernels/src, and are left out: run \
             `cargo xtask build-ptx`"
        );
        files.clear();
    }
    let out = PathBuf::from(std::env::var_os("OUT_DIR").expect("set by cargo"));
    let name = |path: &Path| path.file_name().and_then(|name| name.to_str()).expect("names are ASCII").to_string();
    let packed = |path: &Path| out.join(format!("{}.lzma", name(path)));
    let lengths = compress(&files, &packed);
    let mut modules: BTreeMap<String, String> = BTreeMap::new();
    for (path, length) in files.iter().zip(lengths) {
        println!("cargo::rerun-if-changed={}", path.display());
        let (file, code) = (name(path), literal(&packed(path)));
        // The name is that of the module, the architecture, and the form.
        let module = file.split('.').next().unwrap_or_default().to_string();
        let codes = modules.entry(module).or_default();
        write!(codes, "({file:?}, include_bytes!({code}), {length}), ").expect("strings grow");
    }
    let mut table = String::from("static EMBEDDED: &[Embedded] = &[\n");
    for (module, codes) in &modules {
        writeln!(table, "    ({module:?}, &[{codes}]),").expect("strings grow");
    }
    table.push_str("];\n");
    std::fs::write(out.join("embedded_kernels.rs"), table).expect("OUT_DIR can be written");
}

/// Writes compressed copies, on all cores; the lengths of what is compressed.
fn compress(files: &[PathBuf], packed: &(impl Fn(&Path) -> PathBuf + Sync)) -> Vec<usize> {
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let share = files.len().div_ceil(cores).max(1);
    std::thread::scope(|scope| {
        let of_share = |files: &'_ [PathBuf]| -> Vec<usize> {
            files.iter().map(|path| compress_one(path, &packed(path))).collect()
        };
        let threads: Vec<_> = files.chunks(share).map(|files| scope.spawn(move || of_share(files))).collect();
        threads.into_iter().flat_map(|thread| thread.join().expect("it does not panic")).collect()
    })
}

/// Writes a compressed copy; the length of what is compressed.
fn compress_one(from: &Path, to: &Path) -> usize {
    let text = std::fs::read(from).expect("listed a moment ago");
    // Higher levels take minutes for a tenth less.
    let options = LzmaOptions::with_preset(1);
    let encoder = LzmaWriter::new_use_header(Vec::new(), &options, Some(text.len() as u64));
    let write = |mut encoder: LzmaWriter<Vec<u8>>| encoder.write_all(&text).and_then(|()| encoder.finish());
    let packed = encoder.and_then(write).expect("vectors grow");
    std::fs::write(to, packed).expect("OUT_DIR can be written");
    text.len()
}

fn literal(path: &Path) -> String {
    format!("{:?}", path.canonicalize().expect("listed a moment ago"))
}
