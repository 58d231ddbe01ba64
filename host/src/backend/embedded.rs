//! Compiled kernels: embedded when the program was built, or files beside it.
use std::borrow::Cow;
use std::path::PathBuf;

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
    if let Some(folder) = std::env::var_os("FERRITE_KERNELS") {
        return read_folder(PathBuf::from(folder));
    }
    if !EMBEDDED.is_empty() {
        return EMBEDDED
            .iter()
            .map(|(module, cubin, ptx)| KernelImage {
                module: module.to_string(),
                cubin: cubin.map(Cow::Borrowed),
                ptx: ptx.map(Cow::Borrowed),
            })
            .collect();
    }
    let beside = std::env::current_exe().ok().and_then(|exe| Some(exe.parent()?.join("kernels")));
    beside.map(read_folder).unwrap_or_default()
}

fn read_folder(folder: PathBuf) -> Vec<KernelImage> {
    let mut modules: Vec<String> = std::fs::read_dir(&folder)
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
        .into_iter()
        .map(|module| KernelImage {
            cubin: std::fs::read(folder.join(format!("{module}.cubin"))).ok().map(Cow::Owned),
            ptx: std::fs::read_to_string(folder.join(format!("{module}.ptx"))).ok().map(Cow::Owned),
            module,
        })
        .collect()
}
