//! The pages of the book, made by mkdocs.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result, anyhow, bail};

use crate::{process, setup};

/// Which packages, with their versions.
const REQUIREMENTS: &str = include_str!("../../book/requirements.txt");
const INSTALL_LIMIT: Duration = Duration::from_secs(180);

/// Where mkdocs is, once it is installed.
pub struct Mkdocs {
    python: PathBuf,
    packages: PathBuf,
}

impl Mkdocs {
    /// mkdocs as `requirements.txt` has it, installed into target/tools if need be.
    pub fn get(root: &Path) -> Result<Self> {
        let packages = root.join("target/tools/book");
        let python = setup::python()?;
        let installed = packages.join("installed.txt");
        if fs::read_to_string(&installed).is_ok_and(|text| text == REQUIREMENTS) {
            return Ok(Self { python, packages });
        }
        println!("installing mkdocs, which makes the book's pages, into {}", packages.display());
        setup::pip(&python)?;
        // Into a folder, and not a virtual environment: Debian has python3-venv apart.
        let scratch = root.join("target/tools/book.new");
        for old in [&scratch, &packages] {
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
        pip.arg(&scratch).arg("--requirement").arg(root.join("xtask/book/requirements.txt"));
        // Quiet also where root is warned not to use pip: nothing of the system is touched.
        pip.env("PIP_ROOT_USER_ACTION", "ignore");
        process::run_limited(&mut pip, INSTALL_LIMIT)?;
        fs::write(scratch.join("installed.txt"), REQUIREMENTS).context("the packages' folder cannot be written to")?;
        fs::rename(&scratch, &packages).with_context(|| format!("{} cannot be written", packages.display()))?;
        Ok(Self { python, packages })
    }
    /// Builds the pages; a broken link is a failure. Returns their folder.
    pub fn build(&self, root: &Path) -> Result<PathBuf> {
        let site = root.join("target/book/site");
        let mut mkdocs = Command::new(&self.python);
        // Not with --quiet, which would let warnings pass as well.
        mkdocs.args(["-m", "mkdocs", "build", "--strict", "--clean", "--site-dir"]).arg(&site);
        mkdocs.current_dir(root).env("PYTHONPATH", &self.packages).env("PYTHONDONTWRITEBYTECODE", "1");
        process::capture(&mut mkdocs)?;
        let start = fs::read_to_string(site.join("index.html")).context("mkdocs made no start page")?;
        match from_network(&start) {
            Some(tag) => bail!("the pages take something from the network: {tag}"),
            None => Ok(site),
        }
    }
}

/// A tag that would load a script, a style or an image from another machine.
fn from_network(page: &str) -> Option<&str> {
    let tags = page.split('<').map(|tag| tag.split('>').next().unwrap_or_default());
    let loads = |tag: &str| ["script ", "link ", "img "].iter().any(|name| tag.starts_with(name));
    let far = |tag: &str| ["=\"http:", "=\"https:", "=\"//"].iter().any(|start| tag.contains(start));
    tags.filter(|tag| loads(tag)).find(|tag| far(tag) && !tag.contains("rel=\"canonical\""))
}

/// All pages of the book, and other documents of the repository, as paths from its top folder.
pub fn documents(root: &Path) -> Result<Vec<String>> {
    let mut pages = vec!["README.md".to_string(), "CONTRIBUTING.md".into(), "CHANGELOG.md".into()];
    for folder in ["docs", "docs/measurements"] {
        let entries = root.join(folder).read_dir().with_context(|| format!("{folder} cannot be read"))?;
        let names = entries.map(|entry| Ok(entry?.file_name().to_string_lossy().into_owned()));
        let mut names = names.collect::<Result<Vec<_>>>()?;
        names.retain(|name| name.ends_with(".md"));
        names.sort();
        pages.extend(names.iter().map(|name| format!("{folder}/{name}")));
    }
    if pages.len() == 3 {
        return Err(anyhow!("docs has no pages"));
    }
    Ok(pages)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_network_would_have_to_give_is_found() {
        let near = "<a href=\"https://e.org\">e</a><script src=\"js/a.js\"></script><link rel=\"canonical\" href=\"https://e.org\">";
        assert_eq!(from_network(near), None);
        assert_eq!(from_network("<p><script src=\"https://e.org/a.js\">"), Some("script src=\"https://e.org/a.js\""));
        assert!(from_network("<link href=\"//e.org/a.css\">").is_some());
    }

    #[test]
    fn all_packages_have_a_version() {
        for line in REQUIREMENTS.lines().filter(|line| !line.starts_with('#')) {
            assert!(line.contains("=="), "{line}");
        }
    }
}
