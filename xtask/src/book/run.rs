//! Execution of the commands in the pages.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Instant;

use anyhow::{Context, Result, anyhow, bail};

use super::page::{self, FencedBlock};
use crate::process;

/// Time limit for a block in seconds.
const LIMIT: &str = "180";
/// Number of output lines that are shown of a failed block.
const TAIL: usize = 25;
/// Number of characters shown of each line: JSON may have one long line.
const WIDTH: usize = 300;

/// Counts of checks on a page, or on all pages.
#[derive(Default)]
pub struct Tally {
    /// Number of commands that ran.
    pub commands: usize,
    /// Number of inputs that were checked, by `ferrite check` or as JSON.
    pub inputs: usize,
    /// Number of commands that did not run, by reason.
    pub left_out: BTreeMap<String, usize>,
}

impl Tally {
    /// Adds the counts of another tally.
    pub fn add(&mut self, other: Self) {
        self.commands += other.commands;
        self.inputs += other.inputs;
        for (reason, count) in other.left_out {
            *self.left_out.entry(reason).or_default() += count;
        }
    }
    fn leave_out(&mut self, reason: &str, count: usize) {
        *self.left_out.entry(reason.to_string()).or_default() += count;
    }
}

/// Runner of the blocks of pages.
pub struct Runner {
    /// Folder for PATH, with `ferrite`, `ferrite-studies` and stand-ins for Slurm's commands that start one process.
    bin: PathBuf,
    work: PathBuf,
    has_mpi: bool,
    /// Help texts by command: `ferrite solve`, `ferrite bench dslash`.
    help: BTreeMap<String, String>,
    /// Help text of `cargo xtask`.
    xtask: &'static str,
}

impl Runner {
    /// Creates a runner for this program, and for `ferrite-studies` in the same folder. Pages get folders inside `work`, which is emptied.
    pub fn new(program: &Path, work: &Path, xtask: &'static str) -> Result<Self> {
        if work.exists() {
            fs::remove_dir_all(work).with_context(|| format!("{} cannot be removed", work.display()))?;
        }
        let bin = work.join(".bin");
        fs::create_dir_all(&bin).with_context(|| format!("{} cannot be created", bin.display()))?;
        let program = program.canonicalize().with_context(|| format!("{} does not exist", program.display()))?;
        std::os::unix::fs::symlink(&program, bin.join("ferrite")).context("the program cannot be linked to")?;
        let studies = program.with_file_name("ferrite-studies");
        std::os::unix::fs::symlink(studies, bin.join("ferrite-studies")).context("the studies cannot be linked to")?;
        stand_in(&bin.join("srun"), "while [[ \"$1\" == --* ]]; do shift; done\nexec \"$@\"\n")?;
        stand_in(&bin.join("sbatch"), "echo \"would submit $1\"\n")?;
        let (info, _) = process::capture(Command::new(&program).args(["info", "--json"]))?;
        let info: serde_json::Value = serde_json::from_str(&info).context("`ferrite info --json` is not JSON")?;
        let has_mpi = info["features"].to_string().contains("\"mpi\"") && process::on_path("mpirun").is_some();
        Ok(Self { bin, work: work.to_path_buf(), has_mpi, help: BTreeMap::new(), xtask })
    }
    /// Runs all blocks of a page, in order, in a folder of its own.
    pub fn page(&mut self, name: &str, text: &str) -> Result<Tally> {
        let folder = self.work.join(name.trim_end_matches(".md").replace('/', "-"));
        fs::create_dir_all(&folder).with_context(|| format!("{} cannot be created", folder.display()))?;
        let mut tally = Tally::default();
        for block in page::blocks(text).with_context(|| name.to_string())? {
            let place = format!("{name}:{}", block.line);
            self.block(&block, &folder, &mut tally).with_context(|| place)?;
        }
        Ok(tally)
    }
    fn block(&mut self, block: &FencedBlock, folder: &Path, tally: &mut Tally) -> Result<()> {
        if let Some(line) = block.stray_command() {
            bail!("`{line}` looks like a command, but its block is not marked as `sh` or `console`");
        }
        if let Some(file) = &block.marks.file {
            let path = folder.join(file);
            fs::write(&path, &block.text).with_context(|| format!("{} cannot be written", path.display()))?;
        }
        match (block.language.as_str(), &block.marks) {
            ("sh", marks) if marks.file.is_some() => {
                self.syntax(&block.text, folder)?;
                self.known(&block.text)?;
                match (&marks.run, &marks.not_run) {
                    (Some(script), _) => self.run(script, block, folder, tally),
                    (None, Some(reason)) => {
                        tally.leave_out(reason, page::commands(&block.text).len());
                        Ok(())
                    }
                    (None, None) => {
                        bail!("a file of commands needs `<!-- run: COMMAND -->` or `<!-- not run: WHY -->` before it")
                    }
                }
            }
            ("sh" | "console", _) => self.shell(block, folder, tally),
            ("toml", marks) if marks.not_run.is_some() => Ok(()),
            ("toml", marks) => {
                let file = marks.file.as_ref().ok_or_else(|| {
                    anyhow!("an input has no name: put `<!-- file: NAME -->` or `<!-- not run: WHY -->` before it")
                })?;
                let (code, output) = self.bash(&[], &format!("ferrite check {file}"), folder)?;
                if code != 0 {
                    bail!("`ferrite check {file}` ended with {code}:\n{output}");
                }
                tally.inputs += 1;
                Ok(())
            }
            ("json", marks) if marks.not_run.is_none() => {
                serde_json::from_str::<serde_json::Value>(&block.text).context("this is not JSON")?;
                tally.inputs += 1;
                Ok(())
            }
            _ => Ok(()),
        }
    }
    fn shell(&mut self, block: &FencedBlock, folder: &Path, tally: &mut Tally) -> Result<()> {
        let script = block.script();
        let commands = page::commands(&script);
        if commands.is_empty() {
            bail!("it contains no command; commands of `console` begin with `$ `");
        }
        let uses_mpi = commands.iter().any(|words| words[0] == "mpirun");
        let reason =
            block.marks.not_run.as_deref().or((uses_mpi && !self.has_mpi).then_some("MPI is not available here"));
        if let Some(reason) = reason {
            self.syntax(&script, folder)?;
            tally.leave_out(reason, commands.len());
            return self.known(&script);
        }
        self.run(&script, block, folder, tally)
    }
    /// Runs a script that belongs to a block, and compares the result with the block's expectations.
    fn run(&self, script: &str, block: &FencedBlock, folder: &Path, tally: &mut Tally) -> Result<()> {
        let start = Instant::now();
        let (code, output) = self.bash(&["-eu", "-o", "pipefail"], script, folder)?;
        let wanted = block.marks.fails.unwrap_or(0);
        let tail = || {
            let lines: Vec<String> = output.lines().map(|line| line.chars().take(WIDTH).collect()).collect();
            lines[lines.len().saturating_sub(TAIL)..].join("\n")
        };
        if code != wanted {
            let seconds = start.elapsed().as_secs();
            bail!("ended with {code} after {seconds} s, but should end with {wanted}:\n{script}\n{}", tail());
        }
        if let Some(line) = page::missing_line(&block.shown(), &output) {
            bail!("the page shows a line that was not printed:\n{line}\nThe output was:\n{}", tail());
        }
        tally.commands += page::commands(script).len();
        Ok(())
    }
    /// Runs a script and returns its exit code and its output.
    fn bash(&self, options: &[&str], script: &str, folder: &Path) -> Result<(i32, String)> {
        let log = self.work.join(".output");
        let file = File::create(&log).with_context(|| format!("{} cannot be written", log.display()))?;
        let path = std::env::var_os("PATH").unwrap_or_default();
        let path = std::env::join_paths(std::iter::once(self.bin.clone()).chain(std::env::split_paths(&path)))?;
        let mut command = Command::new("timeout");
        command.args(["--kill-after=5", LIMIT, "bash"]).args(options).args(["-c", script]).current_dir(folder);
        command.env("PATH", path).env("FERRITE_TUNE_CACHE", folder.join("tune.json"));
        // Runs on the CPU even if there is a GPU: pages start more processes than a GPU takes.
        command.env("CUDA_VISIBLE_DEVICES", "");
        // Allows as many processes as a page starts, also as root and in a container, and none that keeps a core busy
        // by waiting.
        for (name, value) in [
            ("OMPI_ALLOW_RUN_AS_ROOT", "1"),
            ("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1"),
            ("OMPI_MCA_rmaps_base_oversubscribe", "1"),
            ("OMPI_MCA_hwloc_base_binding_policy", "none"),
            ("OMPI_MCA_btl_vader_single_copy_mechanism", "none"),
            ("OMPI_MCA_mpi_yield_when_idle", "1"),
        ] {
            command.env(name, value);
        }
        command.stdin(Stdio::null()).stdout(file.try_clone()?).stderr(file);
        let status = command.status().context("`timeout` and `bash` cannot be started")?;
        let code = status.code().ok_or_else(|| anyhow!("bash was killed"))?;
        let output = fs::read(&log).with_context(|| format!("{} cannot be read", log.display()))?;
        Ok((code, String::from_utf8_lossy(&output).into_owned()))
    }
    /// Checks the syntax of a script that is not run here.
    fn syntax(&self, script: &str, folder: &Path) -> Result<()> {
        match self.bash(&["-n"], script, folder)? {
            (0, _) => Ok(()),
            (_, output) => bail!("bash cannot parse this:\n{output}"),
        }
    }
    /// Checks that commands which are not run here exist and accept their flags.
    fn known(&mut self, script: &str) -> Result<()> {
        for words in page::commands(script) {
            if words[0] == "cargo" {
                let task = words.get(2).filter(|task| words[1] == "xtask" && !task.starts_with('-'));
                let listed = |task: &str| self.xtask.lines().any(|line| line.split_whitespace().next() == Some(task));
                if let Some(task) = task.filter(|task| !listed(task)) {
                    bail!("`cargo xtask {task}` does not exist");
                }
            } else if let Some(at) = words.iter().position(|word| word == "ferrite" || word == "ferrite-studies") {
                // The command after mpirun or srun with their flags.
                self.known_flags(&words[at], &words[at + 1..])?;
            }
        }
        Ok(())
    }
    fn known_flags(&mut self, program: &str, words: &[String]) -> Result<()> {
        let names: Vec<&str> = words.iter().map(String::as_str).take_while(|word| !word.starts_with('-')).collect();
        let command = std::iter::once(program).chain(names.into_iter().take(2)).collect::<Vec<_>>().join(" ");
        if !self.help.contains_key(&command) {
            // If there is no such subcommand, the second word is an argument, which the help of the command ignores.
            let (code, text) = self.bash(&[], &format!("{command} --help"), &self.work)?;
            if code != 0 {
                bail!("`{command} --help` failed:\n{text}");
            }
            self.help.insert(command.clone(), text);
        }
        let help = self.help.get(&command).map(String::as_str).unwrap_or_default();
        let known =
            |flag: &str| help.split(|c: char| !(c.is_ascii_alphanumeric() || c == '-')).any(|word| word == flag);
        for flag in words.iter().filter(|word| word.starts_with("--")) {
            let flag = flag.split('=').next().unwrap_or(flag);
            if flag != "--" && !known(flag) {
                bail!("`{command}` has no {flag}");
            }
        }
        Ok(())
    }
}

/// Writes a script that stands in for a command which is not installed.
fn stand_in(path: &Path, script: &str) -> Result<()> {
    use std::os::unix::fs::PermissionsExt;
    let failed = || format!("{} cannot be written", path.display());
    fs::write(path, format!("#!/usr/bin/env bash\n{script}")).with_context(failed)?;
    fs::set_permissions(path, fs::Permissions::from_mode(0o755)).with_context(failed)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Shell script of a program with `info`, `check` and `solve --mass`.
    const PROGRAM: &str = r#"case "$*" in
  "info --json") echo '{"features": ["cuda"]}' ;;
  *--help) echo "Usage: ferrite solve --mass M" ;;
  "check good.toml") echo "no mistakes" ;;
  check*) echo "error: a mistake"; exit 2 ;;
  *) echo "solved to 1e-10 in 3 s" ;;
esac
"#;

    #[test]
    fn pages_are_run_and_mistakes_found() {
        let folder = std::env::temp_dir().join(format!("ferrite-book-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        let program = folder.join("program");
        stand_in(&program, PROGRAM).unwrap();
        let mut runner = Runner::new(&program, &folder.join("work"), "  test  everything\n").unwrap();

        let page = "```sh\nferrite solve > out\nferrite info # all\n```\n```console\n$ cat out\nsolved to 2e-8 in … s\n```\n\
                    <!-- file: good.toml -->\n```toml\na = 1\n```\n<!-- fails: 2 -->\n```sh\nferrite check bad.toml\n```\n\
                    <!-- not run: long -->\n```sh\nferrite solve --mass 1\ncargo xtask test\n```\n\
                    ```sh\nmpirun -n 2 ferrite solve\n```\n\
                    <!-- file: job.sh -->\n<!-- run: bash job.sh -->\n```sh\nsrun --mpi=pmix ferrite solve\n```\n";
        let tally = runner.page("docs/a.md", page).unwrap();
        assert_eq!((tally.commands, tally.inputs), (6, 1));
        let left_out: Vec<_> = tally.left_out.iter().map(|(reason, count)| (reason.as_str(), *count)).collect();
        assert_eq!(left_out, [("MPI is not available here", 1), ("long", 2)]);

        let mut why = |page: &str| format!("{:#}", runner.page("b.md", page).err().unwrap());
        assert!(why("```sh\nfalse\n```\n").starts_with("b.md:2: ended with 1"));
        assert!(why("```console\n$ ferrite solve\ndiverged\n```\n").contains("diverged"));
        assert!(why("<!-- not run: long -->\n```sh\nferrite solve --masse 1\n```\n").contains("--masse"));
        assert!(why("<!-- not run: long -->\n```sh\ncargo xtask tests\n```\n").contains("xtask tests"));
        assert!(why("<!-- not run: long -->\n```sh\nif ferrite\n```\n").contains("cannot parse"));
        assert!(why("<!-- file: bad.toml -->\n```toml\na = 1\n```\n").contains("a mistake"));
        assert!(why("```toml\na = 1\n```\n").contains("no name"));
        assert!(why("```json\n{\n```\n").contains("not JSON"));
        assert!(why("```\nferrite solve\n```\n").contains("not marked"));
        assert!(why("<!-- file: job.sh -->\n```sh\nferrite solve\n```\n").contains("run: COMMAND"));
        fs::remove_dir_all(&folder).unwrap();
    }
}
