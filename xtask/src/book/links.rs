//! Check that links between files of the repository lead to files that exist.

use std::path::Path;

use anyhow::{Context, Result, bail};

/// Fails if these pages have links to files that do not exist; all are reported together.
pub fn check(root: &Path, pages: &[String]) -> Result<()> {
    let mut broken = Vec::new();
    let mut count = 0;
    for page in pages {
        let text = std::fs::read_to_string(root.join(page)).with_context(|| format!("{page} cannot be read"))?;
        let folder = Path::new(page).parent().unwrap_or(Path::new(""));
        for (line, target) in targets(&text) {
            count += 1;
            if !root.join(folder).join(&target).exists() {
                broken.push(format!("{page}:{line}: {target} does not exist"));
            }
        }
    }
    if !broken.is_empty() {
        bail!("links to files that do not exist:\n  {}", broken.join("\n  "));
    }
    println!("{count} links to files, all valid");
    Ok(())
}

/// Returns the files that a page links to, each with its line. Links to other machines and inside the page do not
/// count, nor do links in code.
fn targets(text: &str) -> Vec<(usize, String)> {
    let (mut found, mut in_block) = (Vec::new(), false);
    for (number, line) in text.lines().enumerate() {
        if line.trim_start().starts_with("```") {
            in_block = !in_block;
        }
        if in_block {
            continue;
        }
        // `code` may be the text of a link, so only code that contains brackets is removed.
        let code =
            |(k, part): (usize, &str)| if k % 2 == 1 && part.contains("](") { String::new() } else { part.into() };
        let line: String = line.split('`').enumerate().map(code).collect();
        for rest in line.split("](").skip(1) {
            let target = rest.split([')', ' ', '#']).next().unwrap_or_default();
            if !target.is_empty() && !target.contains(':') {
                found.push((number + 1, target.to_string()));
            }
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_to_files_are_found() {
        let text =
            "[a](a.md), [`b`](../b.rs#top) and ![c](c.svg)\n[d](#d) [e](https://e.org) `x[0](y)`\n```\n[f](f)\n```\n";
        let expected = [(1, "a.md"), (1, "../b.rs"), (1, "c.svg")].map(|(line, target)| (line, target.to_string()));
        assert_eq!(targets(text), expected);
    }

    #[test]
    fn what_is_not_there_is_named() {
        let folder = std::env::temp_dir().join(format!("ferrite-links-{}", std::process::id()));
        std::fs::create_dir_all(folder.join("docs")).unwrap();
        std::fs::write(folder.join("docs/a.md"), "[b](b.md)\n\n[c](../c.md) [a](a.md)\n").unwrap();
        let why = check(&folder, &["docs/a.md".into()]).unwrap_err().to_string();
        assert!(why.contains("docs/a.md:1: b.md") && why.contains("docs/a.md:3: ../c.md"), "{why}");
        assert!(!why.contains(": a.md"), "{why}");
        std::fs::remove_dir_all(&folder).unwrap();
    }
}
