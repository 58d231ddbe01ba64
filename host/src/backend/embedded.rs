//! Compiled kernels, either embedded in the program or in files.
use super::architecture::{Architecture, Capability, CodeForm, usable};
use lzma_rust2::LzmaReader;
use std::borrow::Cow;
use std::io::Read;
use std::path::{Path, PathBuf};

/// A module of kernels, compiled in one or more forms.
#[derive(Clone, Debug)]
pub struct KernelImage {
    /// Name of the module, such as `wilson_single`.
    pub module: String,
    /// Codes of the module, sorted by form and architecture.
    pub codes: Vec<KernelCode>,
}

impl KernelImage {
    /// Returns the codes of the module that a GPU can run, the best first.
    pub fn usable(&self, gpu: Capability) -> impl Iterator<Item = &KernelCode> {
        let codes: Vec<_> = self.codes.iter().map(|code| (code.form, code.architecture)).collect();
        usable(&codes, gpu).into_iter().map(|k| &self.codes[k])
    }
}

/// A module compiled for one form and architecture.
#[derive(Clone, Debug)]
pub struct KernelCode {
    /// Form of the code.
    pub form: CodeForm,
    /// Architecture for which the code is compiled.
    pub architecture: Architecture,
    bytes: Cow<'static, [u8]>,
    /// Length of the code in bytes before compression; `None` if `bytes` are not compressed.
    unpacked: Option<usize>,
}

impl KernelCode {
    /// Makes the code of a module from `bytes`, the uncompressed content of a file.
    pub fn new(form: CodeForm, architecture: Architecture, bytes: Vec<u8>) -> Self {
        KernelCode { form, architecture, bytes: Cow::Owned(bytes), unpacked: None }
    }
    /// Returns the length of the uncompressed code in bytes.
    pub fn size(&self) -> usize {
        self.unpacked.unwrap_or(self.bytes.len())
    }
    /// Returns the uncompressed code; `None` if the data are damaged.
    pub fn unpack(&self) -> Option<Cow<'_, [u8]>> {
        let Some(length) = self.unpacked else { return Some(Cow::Borrowed(&self.bytes)) };
        let mut code = Vec::with_capacity(length);
        LzmaReader::new_mem_limit(&*self.bytes, MEMORY, None).ok()?.read_to_end(&mut code).ok()?;
        (code.len() == length).then_some(Cow::Owned(code))
    }
    /// Returns the bytes that identify the code: those stored, compressed or not.
    pub(crate) fn bytes(&self) -> &[u8] {
        &self.bytes
    }
}

/// Largest memory for unpacking, in KiB; code packed by the build script takes 1 MiB.
const MEMORY: u32 = 16 << 10;

/// Embedded module: its name, and for each code the file name, the compressed bytes and the uncompressed length.
type Embedded = (&'static str, &'static [(&'static str, &'static [u8], usize)]);

// The file defines `EMBEDDED`: the modules from the folder that `cargo xtask build-ptx` filled.
include!(concat!(env!("OUT_DIR"), "/embedded_kernels.rs"));

/// Returns all modules of kernels. They come from the folder in the environment variable FERRITE_KERNELS if it is set, otherwise from the
/// program itself, or from `kernels/` beside the program if none are embedded. A folder with [foreign kernels](foreign_kernels) provides
/// none.
pub fn kernel_images() -> Vec<KernelImage> {
    match folder() {
        Some(folder) if !is_ours(&folder) => Vec::new(),
        Some(folder) => modules_of(&folder).iter().map(|module| read(&folder, module)).collect(),
        None => EMBEDDED.iter().map(embedded).collect(),
    }
}

/// Returns the module with this name; `None` if it does not exist. Files of other modules are not read.
pub fn kernel_image(module: &str) -> Option<KernelImage> {
    match folder() {
        Some(folder) if !is_ours(&folder) => None,
        Some(folder) => Some(read(&folder, module)).filter(|image| !image.codes.is_empty()),
        None => EMBEDDED.iter().find(|(name, _)| *name == module).map(embedded),
    }
}

/// Returns the folder that contains the modules as files; `None` if they are embedded.
fn folder() -> Option<PathBuf> {
    if let Some(folder) = std::env::var_os("FERRITE_KERNELS").filter(|folder| !folder.is_empty()) {
        return Some(PathBuf::from(folder));
    }
    let beside = || Some(std::env::current_exe().ok()?.parent()?.join("kernels"));
    if EMBEDDED.is_empty() { beside() } else { None }
}

/// Returns the folder of compiled kernels if it contains kernels of another source than that of this program; otherwise `None`. Such
/// kernels are ignored, because their arguments may differ.
pub fn foreign_kernels() -> Option<PathBuf> {
    folder().filter(|folder| !modules_of(folder).is_empty() && !is_ours(folder))
}

/// Whether the kernels of a folder were built from the source of this program; `cargo xtask build-ptx` records the source.
fn is_ours(folder: &Path) -> bool {
    std::fs::read_to_string(folder.join("source")).is_ok_and(|source| source.trim() == gpu_kernels::SOURCE)
}

fn embedded((module, codes): &Embedded) -> KernelImage {
    let code = |(file, bytes, length): &(&'static str, &'static [u8], usize)| {
        let (_, architecture, form) = parts(file)?;
        Some(KernelCode { form, architecture, bytes: Cow::Borrowed(bytes), unpacked: Some(*length) })
    };
    image(module, codes.iter().filter_map(code))
}

fn image(module: &str, codes: impl Iterator<Item = KernelCode>) -> KernelImage {
    let mut codes: Vec<_> = codes.collect();
    codes.sort_by_key(|code| (code.form, code.architecture));
    KernelImage { module: module.into(), codes }
}

/// Parses module, architecture and form in the name of a file, such as `wilson_single.sm_80.ptx`.
fn parts(file: &str) -> Option<(&str, Architecture, CodeForm)> {
    let (rest, extension) = file.rsplit_once('.')?;
    let form = [CodeForm::Ptx, CodeForm::Cubin].into_iter().find(|form| form.extension() == extension)?;
    let (module, architecture) = rest.rsplit_once('.')?;
    Some((module, architecture.parse().ok()?, form))
}

/// Returns the names of the files in a folder, sorted.
fn files(folder: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let mut names: Vec<String> = entries.filter_map(|entry| entry.file_name().into_string().ok()).collect();
    names.sort();
    names
}

fn modules_of(folder: &Path) -> Vec<String> {
    let mut modules: Vec<String> = files(folder).iter().filter_map(|file| Some(parts(file)?.0.to_string())).collect();
    modules.dedup();
    modules
}

fn read(folder: &Path, module: &str) -> KernelImage {
    let names = files(folder);
    let codes = names.iter().filter_map(|file| {
        let (_, architecture, form) = parts(file).filter(|(of, ..)| *of == module)?;
        Some(KernelCode::new(form, architecture, std::fs::read(folder.join(file)).ok()?))
    });
    image(module, codes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_embedded_comes_out_again() {
        for image in EMBEDDED.iter().map(embedded) {
            assert!(image.usable((8, 0)).next().is_some(), "{}: code for every GPU", image.module);
            for code in &image.codes {
                let bytes = code.unpack().expect("it was compressed");
                assert_eq!(bytes.len(), code.size());
                match code.form {
                    CodeForm::Cubin => assert!(bytes.starts_with(b"\x7fELF"), "{}", image.module),
                    CodeForm::Ptx => {
                        let text = std::str::from_utf8(&bytes).expect("it was text");
                        assert!(text.contains(".visible .entry") && text.trim_end().ends_with('}'), "{}", image.module);
                        assert!(text.contains(&format!(".target {}\n", code.architecture)), "{}", image.module);
                    }
                }
            }
        }
        let code = KernelCode::new(CodeForm::Ptx, Architecture::oldest(), b"text".to_vec());
        assert_eq!(code.unpack().as_deref(), Some(&b"text"[..]));
        assert_eq!(KernelCode { unpacked: Some(100), ..code }.unpack(), None, "not compressed");
    }

    #[test]
    fn a_folder_has_the_codes_that_lie_there() {
        let folder = std::env::temp_dir().join(format!("ferrite-codes-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        for name in ["a.sm_80.ptx", "a.sm_90.ptx", "a.sm_90.cubin", "b.sm_80.ptx", "a.ptx", "b.x.cubin", "source"] {
            std::fs::write(folder.join(name), name).unwrap();
        }
        assert_eq!(modules_of(&folder), ["a", "b"]);
        let a = read(&folder, "a");
        let names = |codes: Vec<&KernelCode>| -> Vec<String> {
            codes.iter().map(|code| String::from_utf8(code.unpack().unwrap().into_owned()).unwrap()).collect()
        };
        assert_eq!(names(a.codes.iter().collect()), ["a.sm_80.ptx", "a.sm_90.ptx", "a.sm_90.cubin"]);
        assert_eq!(names(a.usable((9, 0)).collect()), ["a.sm_90.cubin", "a.sm_90.ptx", "a.sm_80.ptx"]);
        assert_eq!(names(a.usable((8, 0)).collect()), ["a.sm_80.ptx"]);
        assert_eq!(read(&folder, "b").codes.len(), 1);
        std::fs::remove_dir_all(&folder).unwrap();
    }

    #[test]
    fn kernels_of_another_source_are_distinguished() {
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
