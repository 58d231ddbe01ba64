//! Starting of other programs, and paths.

use std::env;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, anyhow, bail};

/// Profile with which everything is compiled; the contents of `target/release` stay untouched.
pub const PROFILE: &str = "quick";

/// Finds the repository's top folder from the current directory upwards.
pub fn root() -> Result<PathBuf> {
    let start = env::current_dir().context("the current directory cannot be read")?;
    let is_root = |dir: &Path| dir.join("gpu-kernels/Cargo.toml").is_file() && dir.join("xtask/Cargo.toml").is_file();
    let found = start.ancestors().find(|dir| is_root(dir)).map(Path::to_path_buf);
    found
        .or_else(|| env::var_os("CARGO_MANIFEST_DIR").and_then(|dir| Some(Path::new(&dir).parent()?.to_path_buf())))
        .filter(|dir| is_root(dir))
        .ok_or_else(|| anyhow!("start `cargo xtask` inside Ferrite's repository"))
}

/// Returns the folder into which cargo writes its output.
pub fn target(root: &Path) -> PathBuf {
    env::var_os("CARGO_TARGET_DIR").map_or_else(|| root.join("target"), |folder| root.join(folder))
}

/// Returns a command for the `cargo` that started this program, at the repository's top, for the host crates.
pub fn cargo(root: &Path) -> Command {
    let mut command = Command::new(env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command.current_dir(root);
    command
}

/// Runs a program with its output shown; fails with its command line unless it succeeds.
pub fn run(command: &mut Command) -> Result<()> {
    let status = command.status().with_context(|| cannot_start(command))?;
    if !status.success() {
        bail!("`{}` failed ({status})", line(command));
    }
    Ok(())
}

/// Runs a program and returns what it wrote on standard output and on standard error.
pub fn capture(command: &mut Command) -> Result<(String, String)> {
    let output = command.stdin(Stdio::null()).output().with_context(|| cannot_start(command))?;
    let text = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).into_owned();
    let (stdout, stderr) = (text(output.stdout), text(output.stderr));
    if !output.status.success() {
        bail!("`{}` failed ({}):\n{}{}", line(command), output.status, stdout, stderr);
    }
    Ok((stdout, stderr))
}

/// Runs a program like [`run`], but ends it if it takes longer than `limit`.
pub fn run_limited(command: &mut Command, limit: Duration) -> Result<()> {
    let mut child = command.stdin(Stdio::null()).spawn().with_context(|| cannot_start(command))?;
    let start = Instant::now();
    loop {
        if let Some(status) = child.try_wait()? {
            if status.success() {
                return Ok(());
            }
            bail!("`{}` failed ({status})", line(command));
        }
        if start.elapsed() > limit {
            child.kill().ok();
            child.wait().ok();
            bail!("`{}` was stopped after {} s", line(command), limit.as_secs());
        }
        std::thread::sleep(Duration::from_millis(100));
    }
}

/// Returns the first executable of that name on PATH.
pub fn on_path(name: &str) -> Option<PathBuf> {
    let path = env::var_os("PATH")?;
    env::split_paths(&path).map(|dir| dir.join(name)).find(|file| is_executable(file))
}

/// Returns whether a file exists and may be executed.
pub fn is_executable(file: &Path) -> bool {
    use std::os::unix::fs::PermissionsExt;
    file.metadata().is_ok_and(|meta| meta.is_file() && meta.permissions().mode() & 0o111 != 0)
}

/// Returns whether the flag of continuous integration systems is set: there, nothing may be left out silently.
pub fn in_ci() -> bool {
    env::var_os("CI").is_some_and(|value| !value.is_empty() && value != "false" && value != "0")
}

/// Returns the value of `--name value` or `--name=value`, and removes the option from `args`.
pub fn take_option(args: &mut Vec<String>, name: &str) -> Result<Option<String>> {
    let with_equals = format!("{name}=");
    let Some(at) = args.iter().position(|a| a == name || a.starts_with(&with_equals)) else {
        return Ok(None);
    };
    let first = args.remove(at);
    if let Some(value) = first.strip_prefix(&with_equals) {
        return Ok(Some(value.to_string()));
    }
    if at >= args.len() {
        bail!("{name} needs a value");
    }
    Ok(Some(args.remove(at)))
}

/// Returns whether `--name` was given, and removes it from `args`.
pub fn take_flag(args: &mut Vec<String>, name: &str) -> bool {
    let before = args.len();
    args.retain(|a| a != name);
    args.len() != before
}

/// Fails if arguments remain.
pub fn expect_no_more(args: &[String]) -> Result<()> {
    match args.first() {
        None => Ok(()),
        Some(argument) => {
            bail!("unknown argument '{argument}'; --help lists the arguments")
        }
    }
}

/// Returns a number with its noun: "1 kernel", "2 kernels".
pub fn plural(count: usize, noun: &str) -> String {
    format!("{count} {noun}{}", if count == 1 { "" } else { "s" })
}

/// Returns a command line as a user would type it.
pub fn line(command: &Command) -> String {
    let words = std::iter::once(command.get_program()).chain(command.get_args());
    words.map(|w: &OsStr| w.to_string_lossy().into_owned()).collect::<Vec<_>>().join(" ")
}

fn cannot_start(command: &Command) -> String {
    format!("`{}` cannot be started", line(command))
}
