//! Configurations and answers of other codes, which are not part of the repository.
use std::path::{Path, PathBuf};

/// Returns the folder of the reference data: the one that FERRITE_REFDATA names, or `shared/refdata` beside the repository. Prints a note
/// and returns `None` if there is none.
pub fn folder() -> Option<PathBuf> {
    let beside = || Path::new(env!("CARGO_MANIFEST_DIR")).join("../../shared/refdata");
    let folder = std::env::var_os("FERRITE_REFDATA").map_or_else(beside, PathBuf::from);
    if !folder.join("manifest.json").is_file() {
        eprintln!("skipped: no reference data in {} (set FERRITE_REFDATA)", folder.display());
        return None;
    }
    Some(folder)
}
