//! Check that all versioned formats of the program are documented.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use anyhow::{Context, Result, bail};

/// Folders of the sources that name formats; the next constant lists the pages that document them.
const SOURCES: [&str; 7] =
    ["cli/src", "examples/studies/src", "host/src", "rational/src", "records/src", "report/src", "tasks/src"];
const PAGES: [&str; 2] = ["docs/output.md", "docs/formats.md"];

/// Fails if the source names a format that no page documents, or a page one that is not in the source.
pub fn check(root: &Path) -> Result<()> {
    let (mut source, mut pages) = (String::new(), String::new());
    for folder in SOURCES {
        gather(&root.join(folder), &mut source)?;
    }
    for page in PAGES {
        pages += &fs::read_to_string(root.join(page)).with_context(|| format!("{page} cannot be read"))?;
    }
    let (used, documented) = (schemas(&source), schemas(&pages));
    if let Some(schema) = documented.iter().find(|schema| !used.contains(*schema)) {
        bail!("{schema} is documented in {}, but not in the source", PAGES.join(" or "));
    }
    // Compared by name: tests in the source mention versions that do not exist.
    let names: BTreeSet<&str> = documented.iter().filter_map(|schema| schema.split('/').next()).collect();
    if let Some(schema) = used.iter().find(|schema| !schema.split('/').next().is_some_and(|name| names.contains(name)))
    {
        bail!("{schema} is in the source, but neither in {}", PAGES.join(" nor in "));
    }
    println!("{} versioned formats, all documented", documented.len());
    Ok(())
}

/// Appends the text of all Rust files of a folder.
fn gather(folder: &Path, text: &mut String) -> Result<()> {
    for entry in folder.read_dir().with_context(|| format!("{} cannot be read", folder.display()))? {
        let path = entry?.path();
        if path.is_dir() {
            gather(&path, text)?;
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            *text += &fs::read_to_string(&path).with_context(|| format!("{} cannot be read", path.display()))?;
        }
    }
    Ok(())
}

/// Returns all words of the form `ferrite.solve/1`.
fn schemas(text: &str) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    for rest in text.split("ferrite.").skip(1) {
        let name: String = rest.chars().take_while(|c| c.is_ascii_lowercase() || *c == '_' || *c == '-').collect();
        let version = rest[name.len()..].strip_prefix('/').unwrap_or_default();
        let version: String = version.chars().take_while(char::is_ascii_digit).collect();
        if !name.is_empty() && !version.is_empty() {
            found.insert(format!("ferrite.{name}/{version}"));
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_with_versions_are_found() {
        let text = "`ferrite.solve/1`, ferrite.bench-model/12: ferrite.toml, ferrite.x/y and ferrite./1";
        let found: Vec<String> = schemas(text).into_iter().collect();
        assert_eq!(found, ["ferrite.bench-model/12", "ferrite.solve/1"]);
    }
}
