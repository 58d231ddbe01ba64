//! Two compilers that can compile the kernels to PTX, and the search for them.
//!
//! Both are rustc with its `nvptx64-nvidia-cuda` target, the library source for `-Zbuild-std=core` and LLVM's tools:
//! a pinned nightly from rustup, or Debian's `rustc-web` packages. The host crates use neither.

use std::env;
use std::fmt;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Result, anyhow, bail};

use crate::process;

/// Pinned nightly toolchain.
pub const NIGHTLY: &str = "nightly-2026-10-30";
/// Environment variable that forces one toolchain, like the option `--toolchain`.
pub const TOOLCHAIN_VARIABLE: &str = "FERRITE_KERNEL_TOOLCHAIN";
/// Debian packages for the second choice.
pub const DEBIAN_PACKAGES: [&str; 4] = ["rustc-web", "cargo-web", "rust-web-src", "llvm-22"];

/// Oldest version of LLVM whose PTX has been measured.
const OLDEST_LLVM: u32 = 22;

/// Kind of kernel compiler.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ToolchainKind {
    /// Pinned nightly from rustup.
    Nightly,
    /// Packages of Debian.
    Debian,
}

impl ToolchainKind {
    /// All kinds, in the order in which they are tried.
    pub const ALL: [ToolchainKind; 2] = [ToolchainKind::Nightly, ToolchainKind::Debian];

    /// Returns the choice made by `--toolchain` (removed from `args`) or by the environment; `None` stands for the
    /// first that is installed.
    pub fn choice(args: &mut Vec<String>) -> Result<Option<Self>> {
        let option = process::take_option(args, "--toolchain")?;
        match option.or_else(|| env::var(TOOLCHAIN_VARIABLE).ok().filter(|name| !name.is_empty())).as_deref() {
            None => Ok(None),
            Some("nightly") => Ok(Some(Self::Nightly)),
            Some("debian") => Ok(Some(Self::Debian)),
            Some(other) => bail!("there is no kernel toolchain '{other}': choose nightly or debian"),
        }
    }
}

impl fmt::Display for ToolchainKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            ToolchainKind::Nightly => NIGHTLY,
            ToolchainKind::Debian => "debian",
        })
    }
}

/// Compiler for kernels, ready to use.
#[derive(Clone, Debug)]
pub struct Toolchain {
    /// Kind of the compiler.
    pub kind: ToolchainKind,
    /// First line of `rustc -V`.
    pub version: String,
    /// Version of LLVM in that rustc.
    pub llvm: String,
    /// Folder of `llvm-link`, `opt` and `llc` of the same LLVM.
    pub llvm_tools: PathBuf,
    bin: PathBuf,
}

impl Toolchain {
    /// Finds the toolchain of that kind, or the first that is installed.
    pub fn find(choice: Option<ToolchainKind>) -> Result<Self> {
        let kinds: &[ToolchainKind] = match &choice {
            Some(kind) => std::slice::from_ref(kind),
            None => &ToolchainKind::ALL,
        };
        let mut reasons = Vec::new();
        for &kind in kinds {
            match Self::open(kind) {
                Ok(toolchain) => return Ok(toolchain),
                Err(reason) => reasons.push(format!("{kind}: {reason:#}")),
            }
        }
        Err(anyhow!("no compiler for the kernels is installed ({}); run `cargo xtask setup`", reasons.join("; ")))
    }

    /// Returns a command for the `cargo` of this toolchain, without the environment that the host's cargo set.
    pub fn cargo(&self) -> Command {
        let mut cargo = Command::new(self.bin.join("cargo"));
        // A program started by `cargo run` inherits settings for the host's compiler; the library path even names its
        // folder.
        for (name, _) in env::vars_os() {
            let text = name.to_string_lossy();
            let keep = ["CARGO_HOME", "CARGO_HTTP_", "CARGO_NET_", "CARGO_REGISTR", "CARGO_SOURCE_", "RUSTUP_HOME"];
            let ours = text.starts_with("CARGO") || text.starts_with("RUST") || text == "LD_LIBRARY_PATH";
            if ours && !keep.iter().any(|prefix| text.starts_with(prefix)) {
                cargo.env_remove(&name);
            }
        }
        let path = env::var_os("PATH").unwrap_or_default();
        let dirs = std::iter::once(self.bin.clone()).chain(env::split_paths(&path));
        if let Ok(path) = env::join_paths(dirs) {
            cargo.env("PATH", path);
        }
        cargo.env("RUSTC", self.bin.join("rustc"));
        if self.kind == ToolchainKind::Debian {
            // A stable compiler that has to accept unstable features.
            cargo.env("RUSTC_BOOTSTRAP", "1");
        }
        cargo
    }

    fn open(kind: ToolchainKind) -> Result<Self> {
        let (bin, sysroot) = match kind {
            ToolchainKind::Nightly => {
                let sysroot = nightly_folder().ok_or_else(|| anyhow!("not installed"))?;
                (sysroot.join("bin"), sysroot)
            }
            ToolchainKind::Debian => (PathBuf::from("/usr/bin"), PathBuf::from("/usr")),
        };
        for program in ["rustc", "cargo"] {
            if !process::is_executable(&bin.join(program)) {
                bail!("not installed");
            }
        }
        if !sysroot.join("lib/rustlib/src/rust/library/core").is_dir() {
            bail!("the source of the library is missing");
        }
        let (text, _) = process::capture(Command::new(bin.join("rustc")).arg("-vV").env_remove("LD_LIBRARY_PATH"))?;
        let field = |name: &str| text.lines().find_map(|line| line.strip_prefix(name)).unwrap_or("").trim().to_string();
        let (host, llvm) = (field("host:"), field("LLVM version:"));
        let major: u32 = llvm.split('.').next().and_then(|m| m.parse().ok()).unwrap_or(0);
        if major < OLDEST_LLVM {
            bail!("its LLVM is {llvm}, but the kernels need {OLDEST_LLVM} or newer");
        }
        let llvm_tools = match kind {
            ToolchainKind::Nightly => sysroot.join("lib/rustlib").join(&host).join("bin"),
            ToolchainKind::Debian => PathBuf::from(format!("/usr/lib/llvm-{major}/bin")),
        };
        for tool in ["llvm-link", "opt", "llc"] {
            if !process::is_executable(&llvm_tools.join(tool)) {
                bail!("LLVM's tool {tool} is missing");
            }
        }
        Ok(Self { kind, version: text.lines().next().unwrap_or("").to_string(), llvm, llvm_tools, bin })
    }
}

impl fmt::Display for Toolchain {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({}, LLVM {})", self.kind, self.version, self.llvm)
    }
}

/// Finds the folder of the nightly in the file system, since rustup might install a toolchain when queried for it.
fn nightly_folder() -> Option<PathBuf> {
    let home = match env::var_os("RUSTUP_HOME") {
        Some(home) => PathBuf::from(home),
        None => Path::new(&env::var_os("HOME")?).join(".rustup"),
    };
    let prefix = format!("{NIGHTLY}-{}-", env::consts::ARCH);
    let entries = home.join("toolchains").read_dir().ok()?.flatten();
    entries
        .map(|entry| entry.path())
        .find(|path| path.file_name().is_some_and(|name| name.to_string_lossy().starts_with(&prefix)))
}
