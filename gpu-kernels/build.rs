//! Computes a number for the source of the kernels. The build of PTX records it, and a launch compares it, because the struct
//! of a kernel's arguments must have the same layout on both sides. The script also selects the vector instructions for which
//! kernels are compiled on a CPU.
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
    // Families of kernels in PTX builds are chosen as features of a generated package.
    println!("cargo::rustc-check-cfg=cfg(feature, values(any()))");
    vectors();
}

/// Sets `vectors_avx512`, `vectors_avx2` or `vectors_portable`, depending on the environment variable `FERRITE_VECTORS` and the
/// level of optimisation.
fn vectors() {
    const VARIABLE: &str = "FERRITE_VECTORS";
    println!("cargo::rerun-if-env-changed={VARIABLE}");
    println!("cargo::rustc-check-cfg=cfg(vectors_avx512, vectors_avx2, vectors_portable)");
    let target = std::env::var("CARGO_CFG_TARGET_ARCH").expect("set by cargo");
    // Without optimisation, vector arithmetic is slower than one site at a time, and its temporaries fill a thread's stack.
    if target != "x86_64" || std::env::var("OPT_LEVEL").is_ok_and(|level| level == "0") {
        println!("cargo::rustc-cfg=vectors_portable");
        return;
    }
    let wanted = std::env::var(VARIABLE).unwrap_or_else(|_| "native".into());
    let sets: &[&str] = match &*wanted {
        "avx512" => &["avx512"],
        "avx2" => &["avx2"],
        "all" => &["avx512", "avx2"],
        "native" => match building_machine() {
            Some(true) => &["avx512"],
            Some(false) => &["avx2"],
            None => &["avx512", "avx2"],
        },
        other => panic!("{VARIABLE} is '{other}': it has to be native, avx2, avx512 or all"),
    };
    sets.iter().for_each(|set| println!("cargo::rustc-cfg=vectors_{set}"));
}

/// Returns whether this machine has AVX-512; `None` if the build is for another architecture.
fn building_machine() -> Option<bool> {
    #[cfg(target_arch = "x86_64")]
    {
        use std::is_x86_feature_detected as has;
        Some(has!("avx512f") && has!("avx512vl") && has!("avx512dq") && has!("avx512bw") && has!("fma"))
    }
    #[cfg(not(target_arch = "x86_64"))]
    None
}

fn list(folder: &Path, files: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).expect("a folder of this package").flatten() {
        let path = entry.path();
        if path.is_dir() { list(&path, files) } else { files.push(path) }
    }
}
