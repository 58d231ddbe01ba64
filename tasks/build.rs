//! Records the commit from which the program is built.
use std::path::{Path, PathBuf};

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    note_commit(&PathBuf::from(std::env::var_os("CARGO_MANIFEST_DIR").expect("set by cargo")));
}

/// Records the commit of the sources, for logs. A new commit alone does not rebuild anything, so without `FERRITE_COMMIT` the program may
/// be older than its sources.
fn note_commit(manifest: &Path) {
    println!("cargo::rerun-if-env-changed=FERRITE_COMMIT");
    let exact = std::env::var("FERRITE_COMMIT").ok().filter(|commit| !commit.is_empty());
    if let Some(commit) = exact.or_else(|| Some(format!("{} or later", head(manifest.parent()?)?))) {
        println!("cargo::rustc-env=FERRITE_BUILT_FROM={commit}");
    }
}

/// Returns the current commit of the repository whose root is `root`.
fn head(root: &Path) -> Option<String> {
    let git = |arguments: &[&str]| {
        let output = std::process::Command::new("git").arg("-C").arg(root).args(arguments).output().ok()?;
        let text = output.status.success().then(|| String::from_utf8(output.stdout).ok())??;
        Some(text.trim().to_string())
    };
    // A copy of the sources within another repository must not report the commit of that repository.
    let top = PathBuf::from(git(&["rev-parse", "--show-toplevel"])?);
    (top.canonicalize().ok()? == root.canonicalize().ok()?).then(|| git(&["rev-parse", "--short=10", "HEAD"]))?
}
