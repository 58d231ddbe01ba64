//! Check of the modules that allow `unsafe`: the workspace denies it, and the places that lift this lint are compared
//! with the list in `docs/architecture.md`, so that a new place is a decision that readers of the document see.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use anyhow::{Context, Result, bail};

/// Document with the list; the next constant is the heading above it.
const DOCUMENT: &str = "docs/architecture.md";
const HEADING: &str = "## Where `unsafe` is allowed";
/// Name of the lint, in two parts, so that this file is not found by its own search.
const LINT: &str = concat!("unsafe", "_code");

/// Fails unless the places where `unsafe` is allowed are those of the document.
pub fn check(root: &Path) -> Result<()> {
    let read = |file: &Path| fs::read_to_string(file).with_context(|| format!("{} cannot be read", file.display()));
    let workspace = read(&root.join("Cargo.toml"))?;
    if !workspace.contains(&format!("{LINT} = \"deny\"")) {
        bail!("the lints of the workspace do not deny {LINT}");
    }
    let mut found = BTreeSet::new();
    for member in members(&workspace) {
        let manifest = read(&root.join(&member).join("Cargo.toml"))?;
        match lints(&manifest) {
            Lints::OfWorkspace => search(root, &root.join(&member), &mut found, &read)?,
            Lints::Allowing => {
                found.insert(member);
            }
            Lints::Others => bail!("{member}/Cargo.toml does not inherit the lints of the workspace"),
        }
    }
    let listed = listed(&read(&root.join(DOCUMENT))?);
    let missing: Vec<_> = found.difference(&listed).collect();
    if !missing.is_empty() {
        bail!("{DOCUMENT} does not list these places, which allow `unsafe`: {missing:?}");
    }
    let idle: Vec<_> = listed.difference(&found).collect();
    if !idle.is_empty() {
        bail!("{DOCUMENT} lists these places, which do not allow `unsafe`: {idle:?}");
    }
    println!("`unsafe` is allowed in the {} places that {DOCUMENT} lists", found.len());
    Ok(())
}

/// Returns the folders of the workspace's crates.
fn members(workspace: &str) -> Vec<String> {
    let line = workspace.lines().find_map(|line| line.strip_prefix("members = [")).unwrap_or_default();
    line.split('"').skip(1).step_by(2).map(String::from).collect()
}

/// Lints in a crate's manifest.
#[derive(Debug, PartialEq)]
enum Lints {
    OfWorkspace,
    /// Separate lints that allow `unsafe`.
    Allowing,
    Others,
}

fn lints(manifest: &str) -> Lints {
    if manifest.contains("[lints]\nworkspace = true") {
        Lints::OfWorkspace
    } else if manifest.contains(&format!("{LINT} = \"allow\"")) {
        Lints::Allowing
    } else {
        Lints::Others
    }
}

/// Returns whether a source lifts the lint: any attribute that names it and does not make it stricter.
fn lifts(source: &str) -> bool {
    let code = source.lines().filter_map(|line| line.split("//").next());
    code.filter(|line| line.contains(LINT)).any(|line| !line.contains("deny(") && !line.contains("forbid("))
}

/// Adds the sources below a folder that lift the lint, as paths relative to the top of the repository.
fn search(
    root: &Path,
    folder: &Path,
    found: &mut BTreeSet<String>,
    read: &impl Fn(&Path) -> Result<String>,
) -> Result<()> {
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        if path.is_dir() {
            search(root, &path, found, read)?;
        } else if path.extension().is_some_and(|e| e == "rs") && lifts(&read(&path)?) {
            found.insert(path.strip_prefix(root)?.to_string_lossy().into_owned());
        }
    }
    Ok(())
}

/// Returns the first column of the table below the heading.
fn listed(document: &str) -> BTreeSet<String> {
    let below =
        document.lines().skip_while(|line| *line != HEADING).skip(1).take_while(|line| !line.starts_with("## "));
    let path = |line: &str| Some(line.strip_prefix("| `")?.split_once('`')?.0.to_string());
    below.filter_map(path).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_repository_is_in_order() {
        check(Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap()).unwrap();
    }

    #[test]
    fn attributes_are_distinguished() {
        let with = |text: &str| lifts(&text.replace("LINT", LINT));
        assert!(with("#![allow(LINT)]") && with("    #[allow(dead_code, LINT)]\nfn f() {}") && with("#[expect(LINT)]"));
        assert!(!with("#![forbid(LINT)]") && !with("#![deny(LINT)]") && !with("// allow(LINT)") && !with("fn f() {}"));
        assert!(!with("#![cfg_attr(not(feature = \"mpi\"), forbid(LINT))]"));
    }

    #[test]
    fn manifests_are_distinguished() {
        assert_eq!(lints("[package]\n\n[lints]\nworkspace = true\n"), Lints::OfWorkspace);
        assert_eq!(lints(&format!("[lints.rust]\n{LINT} = \"allow\"\n")), Lints::Allowing);
        assert_eq!(lints("[package]\n"), Lints::Others);
        assert_eq!(members("[workspace]\nmembers = [\"a\", \"b-c\"]\nresolver = \"3\"\n"), ["a", "b-c"]);
    }

    #[test]
    fn the_list_is_the_table_below_the_heading() {
        let text =
            format!("| `no` | x |\n{HEADING}\n| file | for |\n|---|---|\n| `a/b.rs` | x |\n## Next\n| `no` | x |\n");
        assert_eq!(listed(&text), BTreeSet::from(["a/b.rs".to_string()]));
    }
}
