//! Pages of the book, built by mkdocs.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, anyhow, bail};

use crate::packages::Packages;
use crate::process;

/// Installed mkdocs.
pub struct Mkdocs(Packages);

impl Mkdocs {
    /// Returns mkdocs as `requirements.txt` specifies it, installed into target/tools if necessary.
    pub fn get(root: &Path) -> Result<Self> {
        let what = "mkdocs, which makes the book's pages";
        Packages::get(root, "book", "xtask/book/requirements.txt", what).map(Self)
    }
    /// Builds the pages; a broken link is a failure, also in README.md, CONTRIBUTING.md and CHANGELOG.md (`xtask/book/hooks.py`).
    /// Returns the folder of the pages.
    pub fn build(&self, root: &Path) -> Result<PathBuf> {
        let site = root.join("target/book/site");
        let mut mkdocs = self.0.python(&[])?;
        // Without --quiet, which would also suppress warnings.
        mkdocs.args(["-m", "mkdocs", "build", "--strict", "--clean", "--site-dir"]).arg(&site);
        mkdocs.current_dir(root);
        process::capture(&mut mkdocs)?;
        let start = fs::read_to_string(site.join("index.html")).context("mkdocs made no start page")?;
        match from_network(&start) {
            Some(tag) => bail!("the pages load something from the network: {tag}"),
            None => Ok(site),
        }
    }
}

/// Returns a tag that would load a script, a style or an image from another machine.
fn from_network(page: &str) -> Option<&str> {
    let tags = page.split('<').map(|tag| tag.split('>').next().unwrap_or_default());
    let loads = |tag: &str| ["script ", "link ", "img "].iter().any(|name| tag.starts_with(name));
    let far = |tag: &str| ["=\"http:", "=\"https:", "=\"//"].iter().any(|start| tag.contains(start));
    tags.filter(|tag| loads(tag)).find(|tag| far(tag) && !tag.contains("rel=\"canonical\""))
}

/// Returns all pages of the book, and other documents of the repository, as paths relative to its top folder.
pub fn documents(root: &Path) -> Result<Vec<String>> {
    let mut pages = vec!["README.md".to_string(), "CONTRIBUTING.md".into(), "CHANGELOG.md".into()];
    for folder in ["docs", "docs/adding", "docs/measurements"] {
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

    const REQUIREMENTS: &str = include_str!("../../book/requirements.txt");

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
