//! Python packages that some commands use, installed into folders of `target/tools`.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result};

use crate::{process, setup};

const INSTALL_LIMIT: Duration = Duration::from_secs(180);

/// Installed Python packages.
pub struct Packages {
    python: PathBuf,
    folder: PathBuf,
}

impl Packages {
    /// Returns the packages listed in the file `requirements`, installed in `target/tools/NAME` unless the listed
    /// versions are there. `what` describes them in messages.
    pub fn get(root: &Path, name: &str, requirements: &str, what: &str) -> Result<Self> {
        let folder = root.join("target/tools").join(name);
        let python = setup::python()?;
        let list = root.join(requirements);
        let wanted = fs::read_to_string(&list).with_context(|| format!("{requirements} cannot be read"))?;
        // Compiled packages belong to one version of Python.
        let (version, _) = process::capture(Command::new(&python).arg("--version"))?;
        let wanted = format!("{}\n{wanted}", version.trim());
        let installed = folder.join("installed.txt");
        if fs::read_to_string(&installed).is_ok_and(|text| text == wanted) {
            return Ok(Self { python, folder });
        }
        println!("installing {what}, into {}", folder.display());
        setup::pip(&python)?;
        // Installs into a folder and not a virtual environment: Debian packages python3-venv separately.
        let scratch = folder.with_extension("new");
        for old in [&scratch, &folder] {
            if old.exists() {
                fs::remove_dir_all(old).with_context(|| format!("{} cannot be removed", old.display()))?;
            }
        }
        let mut pip = Command::new(&python);
        pip.args([
            "-m",
            "pip",
            "install",
            "--quiet",
            "--disable-pip-version-check",
            "--retries=1",
            "--no-deps",
            "--target",
        ]);
        pip.arg(&scratch).arg("--requirement").arg(&list);
        // Suppresses the warning against running pip as root: nothing of the system is changed.
        pip.env("PIP_ROOT_USER_ACTION", "ignore");
        process::run_limited(&mut pip, INSTALL_LIMIT)?;
        fs::write(scratch.join("installed.txt"), wanted).context("the packages' folder cannot be written to")?;
        fs::rename(&scratch, &folder).with_context(|| format!("{} cannot be written", folder.display()))?;
        Ok(Self { python, folder })
    }
    /// Returns a command for Python with these packages, and with those of other folders before them.
    pub fn python(&self, others: &[&Path]) -> Result<Command> {
        let folders = others.iter().copied().chain([&*self.folder]);
        let path = std::env::join_paths(folders).context("the name of the folder cannot be part of a path list")?;
        let mut command = Command::new(&self.python);
        command.env("PYTHONPATH", path).env("PYTHONDONTWRITEBYTECODE", "1");
        Ok(command)
    }
    /// Returns the folder of the packages.
    pub fn folder(&self) -> &Path {
        &self.folder
    }
    /// Returns the folder of the packages' programs.
    pub fn programs(&self) -> PathBuf {
        self.folder.join("bin")
    }
}
