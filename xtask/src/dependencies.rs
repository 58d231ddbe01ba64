//! Dependencies of the workspace: their licences, sources and versions.
//!
//! All information is in `Cargo.lock` and in the manifests that cargo has downloaded, so no tool is needed, and no
//! network if these are present. **Security advisories are not checked**: their database is on the network and changes
//! daily. `cargo audit` checks them, if it is installed.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use anyhow::{Context, Result, anyhow, bail};
use serde_json::Value;

use crate::process::{self, cargo};

/// Licences that require no more than a notice, and MPL-2.0, which requires changes to its own files to be published.
const LICENCES: [&str; 14] = [
    "0BSD",
    "Apache-2.0",
    "Apache-2.0 WITH LLVM-exception",
    "BSD-2-Clause",
    "BSD-3-Clause",
    "BSL-1.0",
    "CC0-1.0",
    "ISC",
    "MIT",
    "MPL-2.0",
    "Unicode-3.0",
    "Unicode-DFS-2016",
    "Unlicense",
    "Zlib",
];

/// Crates that occur in two incompatible versions, with the reason.
const TWICE: [(&str, &str); 5] = [
    ("bitflags", "cust requires version 1"),
    ("cpufeatures", "sha2, in xtask, requires 0.2, and proptest's random numbers 0.3"),
    ("libloading", "clang-sys, with which mpi is built, requires 0.8"),
    ("shlex", "bindgen, with which mpi is built, requires version 1, and cc version 2"),
    ("syn", "cust_derive requires version 1"),
];

/// Unmaintained crates, with the reason why they are still used. Manifests do not record this, so the list follows
/// `cargo audit`; examine any other such crate before adding it.
const UNMAINTAINED: [(&str, &str); 1] = [(
    "custom_derive",
    "conv, of mpi, requires it: a macro of one file, unchanged since 2016, that runs only while mpi is compiled; it \
     can be removed when mpi no longer needs conv",
)];

/// Fails unless the dependencies satisfy the rules of this file, and `Cargo.lock` fits the manifests.
pub fn check(root: &Path) -> Result<()> {
    let (version, _) = process::capture(std::process::Command::new("rustc").arg("-vV").current_dir(root))?;
    let host = version.lines().find_map(|line| line.strip_prefix("host: "));
    let host = host.context("`rustc -vV` does not print the host")?;
    let ask = |network: &[&str]| {
        let options = ["metadata", "--locked", "--format-version", "1", "--all-features", "--filter-platform", host];
        process::capture(cargo(root).args(options).args(network))
    };
    // The network is used only for crates that were never downloaded, such as those for MPI on a machine without it.
    let (answer, _) = ask(&["--offline"]).or_else(|_| ask(&[]))?;
    let metadata: Value = serde_json::from_str(&answer).context("`cargo metadata` did not print JSON")?;
    let packages = packages(&metadata)?;
    let mistakes = mistakes(&packages, root);
    if !mistakes.is_empty() {
        bail!("{}", mistakes.join("\n"));
    }
    println!("{} crates: licences, sources and versions are in order", packages.len());
    for (name, reason) in UNMAINTAINED {
        println!("{name} is unmaintained: {reason}");
    }
    Ok(())
}

/// Properties of a crate that are checked.
struct Package {
    name: String,
    version: String,
    licence: Option<String>,
    /// Source of the crate; `None` for a folder of this machine.
    source: Option<String>,
    manifest: String,
}

fn packages(metadata: &Value) -> Result<Vec<Package>> {
    let list = metadata["packages"].as_array().context("`cargo metadata` lists no packages")?;
    let package = |package: &Value| {
        let text = |key: &str| package[key].as_str().map(String::from);
        let needed = |key: &str| text(key).ok_or_else(|| anyhow!("a package without {key}"));
        Ok(Package {
            name: needed("name")?,
            version: needed("version")?,
            licence: text("license"),
            source: text("source"),
            manifest: needed("manifest_path")?,
        })
    };
    list.iter().map(package).collect()
}

fn mistakes(packages: &[Package], root: &Path) -> Vec<String> {
    let mut mistakes = Vec::new();
    let mut versions = BTreeMap::<&str, BTreeSet<&str>>::new();
    for Package { name, version, licence, source, manifest } in packages {
        versions.entry(name).or_default().insert(compatible(version));
        match source {
            Some(source) if source.starts_with("registry+") && source.ends_with("/crates.io-index") => {}
            None if Path::new(manifest).starts_with(root) => {}
            other => mistakes.push(format!(
                "{name} {version} is neither from the registry nor from this repository: \
                                       {other:?}"
            )),
        }
        match licence.as_deref().map(allowed) {
            Some(Ok(true)) => {}
            Some(Ok(false)) => mistakes.push(format!("{name} {version} has the licence {licence:?}")),
            Some(Err(why)) => {
                mistakes.push(format!("the licence of {name} {version}, {licence:?}, cannot be parsed: {why}"))
            }
            None => mistakes.push(format!("{name} {version} does not name its licence")),
        }
    }
    for (name, versions) in &versions {
        let known = TWICE.iter().any(|(twice, _)| twice == name);
        if versions.len() > 1 && !known {
            mistakes.push(format!("{name} occurs in several versions: {versions:?}"));
        }
        if versions.len() < 2 && known {
            mistakes.push(format!("{name} occurs in one version only: remove it from the list in xtask"));
        }
    }
    for (name, _) in UNMAINTAINED {
        if !versions.contains_key(name) {
            mistakes
                .push(format!("{name}, which is unmaintained, is no longer used: remove it from the list in xtask"));
        }
    }
    mistakes
}

/// Returns the part of a version that determines compatibility: `1`, `0.3`, `0.0.7`.
fn compatible(version: &str) -> &str {
    let digits = version.split(['-', '+']).next().unwrap_or(version);
    let zeros = digits.split('.').take_while(|part| *part == "0").count();
    let end = digits.match_indices('.').nth(zeros).map_or(digits.len(), |(at, _)| at);
    &digits[..end]
}

/// Returns whether an SPDX expression can be satisfied by the licences of the list.
fn allowed(expression: &str) -> Result<bool> {
    // Older manifests use a slash for OR.
    let spaced = expression.replace('/', " OR ").replace('(', " ( ").replace(')', " ) ");
    let mut words = spaced.split_whitespace().collect::<Vec<_>>();
    words.reverse();
    let answer = any(&mut words)?;
    match words.pop() {
        None => Ok(answer),
        Some(word) => bail!("'{word}' follows the end of the expression"),
    }
}

/// Evaluates terms joined by OR. The remaining words are in `words`, the next one last.
fn any(words: &mut Vec<&str>) -> Result<bool> {
    let mut answer = all(words)?;
    while words.last() == Some(&"OR") {
        words.pop();
        answer |= all(words)?;
    }
    Ok(answer)
}

/// Evaluates terms joined by AND, which binds more tightly.
fn all(words: &mut Vec<&str>) -> Result<bool> {
    let mut answer = one(words)?;
    while words.last() == Some(&"AND") {
        words.pop();
        answer &= one(words)?;
    }
    Ok(answer)
}

/// Evaluates a licence, with its exception if it has one, or a bracket.
fn one(words: &mut Vec<&str>) -> Result<bool> {
    match words.pop() {
        Some("(") => {
            let answer = any(words)?;
            if words.pop() != Some(")") {
                bail!("a bracket is not closed");
            }
            Ok(answer)
        }
        None | Some("OR" | "AND" | "WITH" | ")") => bail!("a licence is missing"),
        Some(licence) if words.last() == Some(&"WITH") => {
            words.pop();
            let exception = words.pop().context("an exception is missing")?;
            Ok(LICENCES.contains(&format!("{licence} WITH {exception}").as_str()))
        }
        Some(licence) => Ok(LICENCES.contains(&licence)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn expressions_are_evaluated() {
        for (expression, answer) in [
            ("MIT", true),
            ("GPL-3.0-only", false),
            ("MIT OR GPL-3.0-only", true),
            ("MIT AND GPL-3.0-only", false),
            ("GPL-3.0-only OR MIT AND ISC", true),
            ("(GPL-3.0-only OR MIT) AND GPL-3.0-only", false),
            ("(MIT OR Apache-2.0) AND Unicode-3.0", true),
            ("MIT/GPL-3.0-only", true),
            ("Apache-2.0 / MIT", true),
            ("Apache-2.0 WITH LLVM-exception", true),
            ("GPL-3.0-only WITH Classpath-exception-2.0 OR MIT", true),
            ("Apache-2.0 WITH Something-else", false),
        ] {
            assert_eq!(allowed(expression).unwrap(), answer, "{expression}");
        }
        for wrong in ["", "MIT OR", "AND MIT", "(MIT", "MIT)", "MIT ISC", "MIT WITH", "()"] {
            assert!(allowed(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn versions_that_replace_each_other() {
        for (version, part) in
            [("1.2.3", "1"), ("0.3.1", "0.3"), ("0.0.7", "0.0.7"), ("12.0.0-rc.1", "12"), ("1.2.1+spec-1.1.0", "1")]
        {
            assert_eq!(compatible(version), part);
        }
    }

    #[test]
    fn each_mistake_is_named() {
        let index = "registry+https://example.org/crates.io-index";
        let package = |name: &str, version: &str, licence: &str, source: Option<&str>, manifest: &str| Package {
            name: name.into(),
            version: version.into(),
            licence: Some(licence.into()).filter(|text: &String| !text.is_empty()),
            source: source.map(String::from),
            manifest: manifest.into(),
        };
        let known = |list: &mut Vec<Package>| {
            for (name, _) in TWICE {
                list.extend(["1.0.0", "2.0.0"].map(|version| package(name, version, "MIT", Some(index), "/r/x")));
            }
            list.extend(UNMAINTAINED.map(|(name, _)| package(name, "1.0.0", "MIT", Some(index), "/r/x")));
        };
        let mut good =
            vec![package("a", "1.0.0", "MIT", Some(index), "/r/a"), package("own", "0.1.0", "MIT", None, "/top/own")];
        // Compatible versions never occur twice, but the test includes them.
        good.push(package("a", "1.5.0", "MIT", Some(index), "/r/a"));
        known(&mut good);
        assert_eq!(mistakes(&good, Path::new("/top")), Vec::<String>::new());

        for (bad, part) in [
            (package("b", "1.0.0", "MIT", Some("git+https://example.org/b"), "/g/b"), "neither from the registry"),
            (package("b", "1.0.0", "MIT", None, "/elsewhere/b"), "neither from the registry"),
            (package("b", "1.0.0", "AGPL-3.0-only", Some(index), "/r/b"), "has the licence"),
            (package("b", "1.0.0", "MIT OR", Some(index), "/r/b"), "cannot be parsed"),
            (package("b", "1.0.0", "", Some(index), "/r/b"), "does not name"),
            (package("a", "2.0.0", "MIT", Some(index), "/r/a"), "several versions"),
        ] {
            let mut list = vec![bad, package("a", "1.0.0", "MIT", Some(index), "/r/a")];
            known(&mut list);
            let found = mistakes(&list, Path::new("/top"));
            assert!(found.len() == 1 && found[0].contains(part), "'{part}' is not in: {found:?}");
        }
        let found = mistakes(&[package("syn", "1.0.0", "MIT", Some(index), "/r/syn")], Path::new("/top"));
        let gone =
            |name: &str| found.iter().any(|why| why.starts_with(name) && why.contains("remove it from the list"));
        assert!(found.len() == 1 + UNMAINTAINED.len() && gone("syn") && gone("custom_derive"), "{found:?}");
    }
}
