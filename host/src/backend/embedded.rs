//! Compiled kernels: embedded when the program was built, or files beside it.
use std::borrow::Cow;
use std::path::{Path, PathBuf};

/// One module of kernels.
#[derive(Clone, Debug)]
pub struct KernelImage {
    /// Module name: `wilson_single` ….
    pub module: String,
    /// Machine code for sm_90, if the assembler was at hand.
    pub cubin: Option<Cow<'static, [u8]>>,
    /// PTX, which the driver compiles for the GPU it finds.
    pub ptx: Option<Cow<'static, str>>,
}

/// Module, cubin, PTX.
type Embedded = (&'static str, Option<&'static [u8]>, Option<&'static str>);

// `EMBEDDED`, from the folder that `cargo xtask build-ptx` filled.
include!(concat!(env!("OUT_DIR"), "/embedded_kernels.rs"));

/// All modules the program can find: those in the folder that the environment variable FERRITE_KERNELS names, else
/// those embedded, else those in `kernels/` beside the program.
pub fn kernel_images() -> Vec<KernelImage> {
    match folder() {
        Some(folder) => modules_of(&folder).into_iter().map(|module| read(&folder, module)).collect(),
        None => EMBEDDED.iter().map(embedded).collect(),
    }
}

/// One of them. Only its files are read.
pub fn kernel_image(module: &str) -> Option<KernelImage> {
    match folder() {
        Some(folder) => {
            Some(read(&folder, module.to_string())).filter(|image| image.cubin.is_some() || image.ptx.is_some())
        }
        None => EMBEDDED.iter().find(|(name, ..)| *name == module).map(embedded),
    }
}

/// Where modules are files; `None` where they are embedded.
fn folder() -> Option<PathBuf> {
    if let Some(folder) = std::env::var_os("FERRITE_KERNELS").filter(|folder| !folder.is_empty()) {
        return Some(PathBuf::from(folder));
    }
    let beside = || Some(std::env::current_exe().ok()?.parent()?.join("kernels"));
    if EMBEDDED.is_empty() { beside() } else { None }
}

fn embedded((module, cubin, ptx): &Embedded) -> KernelImage {
    KernelImage { module: module.to_string(), cubin: cubin.map(Cow::Borrowed), ptx: ptx.map(Cow::Borrowed) }
}

fn modules_of(folder: &Path) -> Vec<String> {
    let mut modules: Vec<String> = std::fs::read_dir(folder)
        .into_iter()
        .flatten()
        .flatten()
        .map(|entry| entry.path())
        .filter(|path| path.extension().is_some_and(|e| e == "ptx" || e == "cubin"))
        .filter_map(|path| Some(path.file_stem()?.to_str()?.to_string()))
        .collect();
    modules.sort();
    modules.dedup();
    modules
}

fn read(folder: &Path, module: String) -> KernelImage {
    KernelImage {
        cubin: std::fs::read(folder.join(format!("{module}.cubin"))).ok().map(Cow::Owned),
        ptx: std::fs::read_to_string(folder.join(format!("{module}.ptx"))).ok().map(Cow::Owned),
        module,
    }
}
