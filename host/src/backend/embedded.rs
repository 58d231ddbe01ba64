//! Compiled kernels: embedded when the program was built, or files beside it.
use flate2::read::DeflateDecoder;
use std::borrow::Cow;
use std::io::Read;
use std::path::{Path, PathBuf};

/// One module of kernels.
#[derive(Clone, Debug)]
pub struct KernelImage {
    /// Module name: `wilson_single` ….
    pub module: String,
    /// Machine code for sm_90, if the assembler was at hand.
    pub cubin: Option<Cow<'static, [u8]>>,
    /// PTX, which the driver compiles for the GPU it finds.
    pub ptx: Option<Ptx>,
}

/// The text of a module.
#[derive(Clone, Debug)]
pub struct Ptx {
    bytes: Cow<'static, [u8]>,
    /// Of the text, where `bytes` are compressed.
    compressed: Option<usize>,
}

impl Ptx {
    /// As it is in a file.
    pub fn new(text: String) -> Self {
        Ptx { bytes: Cow::Owned(text.into_bytes()), compressed: None }
    }
    /// Bytes of the text.
    pub fn text_bytes(&self) -> usize {
        self.compressed.unwrap_or(self.bytes.len())
    }
    /// The text, or nothing if it is damaged.
    pub fn text(&self) -> Option<String> {
        let Some(length) = self.compressed else { return String::from_utf8(self.bytes.to_vec()).ok() };
        let mut text = String::with_capacity(length);
        DeflateDecoder::new(&*self.bytes).read_to_string(&mut text).ok()?;
        (text.len() == length).then_some(text)
    }
    /// What tells it from another: the text, compressed or not.
    pub(crate) fn bytes(&self) -> &[u8] {
        &self.bytes
    }
}

/// Module, cubin, PTX compressed and the length of its text.
type Embedded = (&'static str, Option<&'static [u8]>, (&'static [u8], usize));

// `EMBEDDED`, from the folder that `cargo xtask build-ptx` filled.
include!(concat!(env!("OUT_DIR"), "/embedded_kernels.rs"));

/// All modules the program can find: those in the folder that the environment variable FERRITE_KERNELS names, else
/// those embedded, else those in `kernels/` beside the program. A folder of [foreign](foreign_kernels) ones has none.
pub fn kernel_images() -> Vec<KernelImage> {
    match folder() {
        Some(folder) if !is_ours(&folder) => Vec::new(),
        Some(folder) => modules_of(&folder).into_iter().map(|module| read(&folder, module)).collect(),
        None => EMBEDDED.iter().map(embedded).collect(),
    }
}

/// One of them. Only its files are read.
pub fn kernel_image(module: &str) -> Option<KernelImage> {
    match folder() {
        Some(folder) if !is_ours(&folder) => None,
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

/// A folder with kernels that are left alone, because they are not of the source that this program is of: they may take
/// other arguments.
pub fn foreign_kernels() -> Option<PathBuf> {
    folder().filter(|folder| !modules_of(folder).is_empty() && !is_ours(folder))
}

/// Whether the kernels of a folder are of our source. `cargo xtask build-ptx` has written down of which they are.
fn is_ours(folder: &Path) -> bool {
    std::fs::read_to_string(folder.join("source")).is_ok_and(|source| source.trim() == gpu_kernels::SOURCE)
}

fn embedded((module, cubin, ptx): &Embedded) -> KernelImage {
    let ptx = Ptx { bytes: Cow::Borrowed(ptx.0), compressed: Some(ptx.1) };
    KernelImage { module: module.to_string(), cubin: cubin.map(Cow::Borrowed), ptx: Some(ptx) }
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
        ptx: std::fs::read_to_string(folder.join(format!("{module}.ptx"))).ok().map(Ptx::new),
        module,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_embedded_comes_out_again() {
        for image in EMBEDDED.iter().map(embedded) {
            let ptx = image.ptx.expect("PTX is embedded");
            let text = ptx.text().expect("it was text");
            assert_eq!(text.len(), ptx.text_bytes());
            assert!(text.contains(".visible .entry") && text.trim_end().ends_with('}'), "{}", image.module);
        }
        let (bytes, compressed) = (Cow::Borrowed(&b"no deflate"[..]), Some(100));
        assert_eq!(Ptx { bytes, compressed }.text(), None);
        assert_eq!(Ptx::new("text".into()).text().as_deref(), Some("text"));
    }

    #[test]
    fn kernels_of_another_source_are_told_apart() {
        let folder = std::env::temp_dir().join(format!("ferrite-kernels-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        assert!(!is_ours(&folder), "nobody says of what they are");
        std::fs::write(folder.join("source"), "00000000").unwrap();
        assert!(!is_ours(&folder) || gpu_kernels::SOURCE == "00000000");
        std::fs::write(folder.join("source"), format!("{}\n", gpu_kernels::SOURCE)).unwrap();
        assert!(is_ours(&folder));
        std::fs::remove_dir_all(&folder).unwrap();
    }
}
