//! Licences, sources, versions and advisories of the dependencies, checked by cargo-deny with the rules of `deny.toml`.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result};

use crate::process::{self, cargo};

/// Version of cargo-deny that is installed if another one, or none, is present.
const VERSION: &str = "0.20.2";
/// Time limit for compiling cargo-deny, which takes two minutes of processor time.
const INSTALL_LIMIT: Duration = Duration::from_secs(900);

/// Fails unless the dependencies satisfy the rules of `deny.toml`. Advisories are checked if `with_advisories` is set:
/// their database is on the network and changes daily. Returns the reason if
/// cargo-deny cannot be installed, unless that is a failure.
pub fn check(root: &Path, with_advisories: bool) -> Result<Option<String>> {
    let program = match cargo_deny(root) {
        Ok(program) => program,
        Err(why) if process::in_ci() => return Err(why),
        Err(why) => return Ok(Some(format!("{why:#}"))),
    };
    let mut deny = Command::new(program);
    deny.args(["--locked", "check", "licenses", "bans", "sources"]).current_dir(root);
    if with_advisories {
        deny.arg("advisories");
    }
    process::run(&mut deny)?;
    Ok(None)
}

/// Returns the path of cargo-deny, after compiling it into `target/tools` if necessary.
fn cargo_deny(root: &Path) -> Result<PathBuf> {
    let is_current = |program: &Path| {
        process::capture(Command::new(program).arg("--version")).is_ok_and(|(text, _)| text.trim().ends_with(VERSION))
    };
    if let Some(found) = process::on_path("cargo-deny").filter(|program| is_current(program)) {
        return Ok(found);
    }
    let folder = root.join("target/tools/cargo-deny");
    let program = folder.join("bin/cargo-deny");
    if !is_current(&program) {
        println!("compiling cargo-deny {VERSION} into {}", folder.display());
        let mut install = cargo(root);
        install.args(["install", "--quiet", "--debug", "--locked", "--version", VERSION, "cargo-deny", "--root"]);
        install.arg(&folder).env("CARGO_TARGET_DIR", folder.join("build"));
        // Without debug information, compilation takes less time and memory.
        install.env("CARGO_PROFILE_DEV_DEBUG", "none");
        process::run_limited(&mut install, INSTALL_LIMIT).context("cargo-deny could not be installed")?;
        std::fs::remove_dir_all(folder.join("build")).ok();
    }
    Ok(program)
}
