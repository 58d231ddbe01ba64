//! Check of words: doc comments that are fragments, words that the glossary of `docs/style.md` rules out, and names of types and public
//! constants that are defined twice.

use std::collections::BTreeMap;
use std::fmt;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};

use crate::process;

/// `--help`.
pub const WORDS_HELP: &str = "\
List doc comments that are fragments, words that docs/style.md rules out, and names of types and public constants that are
defined twice.

Usage: cargo xtask words
";

/// Folders that are searched.
const FOLDERS: [&str; 17] = [
    "tests",
    "cli",
    "comms",
    "cuda-loader",
    "docs",
    "gpu-kernels",
    "host",
    "inputs",
    "python",
    "rational",
    "records",
    "report",
    "solvers",
    "statistics",
    "tasks",
    "xtask",
    "examples",
];
/// Folders in them that are not.
const SKIPPED: [&str; 4] = ["target", "snapshots", "__pycache__", "site"];

/// Beginnings of doc comments that need the item above to be understood.
const FRAGMENTS: [&str; 33] = [
    "What",
    "How",
    "Of",
    "Where",
    "Which",
    "Whose",
    "Who",
    "The same",
    "The other",
    "In",
    "Its",
    "As",
    "That",
    "Those",
    "These",
    "They",
    "Them",
    "It",
    "To",
    "From",
    "With",
    "Without",
    "By",
    "For",
    "On",
    "At",
    "Between",
    "Beside",
    "Besides",
    "So",
    "Such",
    "One of these",
    "Both of",
];
/// Words that the glossary rules out, with the words to use.
const RULED_OUT: [(&str, &str); 15] = [
    ("tell", "report, print, determine"),
    ("tells", "reports, prints, determines"),
    ("told", "reported, printed"),
    ("foretell", "predict"),
    ("foretells", "predicts"),
    ("foretold", "predicted"),
    ("asked was", "requested"),
    ("climb", "precision escalation"),
    ("climbs", "precision escalation"),
    ("rung", "precision escalation"),
    ("rungs", "precision escalation"),
    ("such a one", "one"),
    ("likewise", "also"),
    (", too,", ", also"),
    ("first guess", "initial guess"),
];

/// A finding.
struct Finding {
    file: String,
    line: usize,
    what: String,
}
impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Finding { file, line, what } = self;
        write!(f, "{file}:{line}: {what}")
    }
}

/// Fails if there are findings.
pub fn check(root: &Path) -> Result<()> {
    let findings = findings(root)?;
    if findings.is_empty() {
        return Ok(());
    }
    let list: String = findings.iter().map(|finding| format!("  {finding}\n")).collect();
    bail!("{} that docs/style.md rules out:\n{list}", process::plural(findings.len(), "finding"));
}

/// Runs the command `words`.
pub fn run(args: &[String]) -> Result<()> {
    process::expect_no_more(args)?;
    check(&process::root()?)?;
    println!("no findings");
    Ok(())
}

fn findings(root: &Path) -> Result<Vec<Finding>> {
    let mut files = Vec::new();
    for folder in FOLDERS {
        search(&root.join(folder), &mut files)?;
    }
    files.extend(["README.md", "CONTRIBUTING.md"].map(|name| root.join(name)));
    files.sort();
    let (mut all, mut names) = (Vec::new(), BTreeMap::<String, Vec<(String, usize)>>::new());
    for path in &files {
        let file = path.strip_prefix(root).unwrap_or(path).display().to_string();
        let text = fs::read_to_string(path).with_context(|| format!("{} cannot be read", path.display()))?;
        let found = |(line, what)| Finding { file: file.clone(), line, what };
        if file.ends_with(".rs") {
            // Unit tests stand at the end of a file.
            let text = text.split("\n#[cfg(test)]\nmod tests {").next().unwrap_or_default();
            all.extend(in_rust(text).into_iter().map(found));
            for (line, name) in definitions(text) {
                names.entry(name).or_default().push((file.clone(), line));
            }
        } else if file != "docs/style.md" {
            all.extend(in_text(&text).into_iter().map(found));
        }
    }
    for (name, places) in names.iter().filter(|(_, places)| places.len() > 1) {
        for (file, line) in &places[1..] {
            let (first, at) = &places[0];
            let what = format!("`{name}` is also defined in {first}:{at}");
            all.push(Finding { file: file.clone(), line: *line, what });
        }
    }
    all.sort_by(|a, b| (&a.file, a.line).cmp(&(&b.file, b.line)));
    Ok(all)
}

/// Adds the files below a folder that have text to check.
fn search(folder: &Path, found: &mut Vec<PathBuf>) -> Result<()> {
    let entries = fs::read_dir(folder).with_context(|| format!("{} cannot be read", folder.display()))?;
    for entry in entries {
        let path = entry?.path();
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        if path.is_dir() {
            if !SKIPPED.contains(&name.as_str()) && !name.starts_with('.') {
                search(&path, found)?;
            }
        } else if ["rs", "py", "pyi", "md"].iter().any(|end| path.extension().is_some_and(|own| own == *end))
            && name != "tests.rs"
            && name != "words.rs"
        {
            found.push(path);
        }
    }
    Ok(())
}

/// Returns the findings of a Rust source with their lines: beginnings of doc comments, and words of all comments and string literals.
fn in_rust(text: &str) -> Vec<(usize, String)> {
    let (mut all, mut was_doc) = (Vec::new(), false);
    for (number, line) in (1..).zip(text.lines()) {
        let trimmed = line.trim_start();
        let doc = ["///", "//!"].iter().find_map(|mark| trimmed.strip_prefix(mark)).map(str::trim);
        if let Some(words) = doc
            && !was_doc
            && let Some(beginning) = FRAGMENTS.iter().find(|beginning| begins_with(words, beginning))
        {
            all.push((number, format!("a doc comment begins with \"{beginning}\": {words}")));
        }
        was_doc = doc.is_some();
        all.extend(ruled_out(&words_of(line)).map(|what| (number, what)));
    }
    all
}

/// Returns the comment and the string literals of a line of Rust, without the code between them. A line in the middle of a literal of
/// several lines counts as code.
fn words_of(line: &str) -> String {
    let (mut words, mut in_text, mut before) = (String::new(), false, ' ');
    for (at, c) in line.char_indices() {
        if !in_text && line[at..].starts_with("//") {
            return words + &line[at..];
        }
        if c == '"' && before != '\\' {
            in_text = !in_text;
            words.push(' ');
        } else if in_text {
            words.push(c);
        }
        before = c;
    }
    words
}

/// Returns the findings of a page or a Python source with their lines.
fn in_text(text: &str) -> Vec<(usize, String)> {
    (1..).zip(text.lines()).flat_map(|(number, line)| ruled_out(line).map(move |what| (number, what))).collect()
}

/// Whether a text begins with these words.
fn begins_with(text: &str, words: &str) -> bool {
    text.strip_prefix(words).is_some_and(|rest| !rest.starts_with(|c: char| c.is_alphanumeric() || c == '_'))
}

/// Returns what is wrong with the words of a line.
fn ruled_out(line: &str) -> impl Iterator<Item = String> {
    let lower = line.to_lowercase();
    let of = move |(word, better): &(&'static str, &'static str)| {
        let is_part = |c: Option<char>| c.is_some_and(|c| c.is_alphanumeric() || c == '_' || c == '-');
        let has = lower.match_indices(word).any(|(at, _)| {
            let (before, after) = (lower[..at].chars().next_back(), lower[at + word.len()..].chars().next());
            word.starts_with(',') || !is_part(before) && !is_part(after)
        });
        has.then(|| format!("\"{word}\": write {better}"))
    };
    RULED_OUT.iter().filter_map(of).collect::<Vec<_>>().into_iter()
}

/// Returns the types and public constants that a source defines at its top level, with their lines.
fn definitions(text: &str) -> Vec<(usize, String)> {
    let name = |rest: &str| rest.chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect::<String>();
    let one = |(number, line): (usize, &str)| {
        let public = line.strip_prefix("pub ").or_else(|| line.strip_prefix("pub(crate) "));
        let item = public.unwrap_or(line);
        let kinds = ["struct ", "enum ", "trait ", "union "];
        let named = kinds.iter().find_map(|kind| item.strip_prefix(kind)).map(name);
        let constants = ["const ", "static "];
        let constant =
            line.strip_prefix("pub ").and_then(|item| constants.iter().find_map(|kind| item.strip_prefix(kind)));
        named
            .or(constant.filter(|rest| rest.starts_with(|c: char| c.is_uppercase())).map(name))
            .map(|name| (number, name))
    };
    (1..).zip(text.lines()).filter_map(one).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fragments_begin_with_a_word_of_the_list() {
        let text = "/// Of a level.\npub struct A;\n/// Offset of a level.\n/// In units of sites.\npub struct B;\n//! The same here.\n";
        let lines: Vec<_> = in_rust(text).into_iter().map(|(line, _)| line).collect();
        assert_eq!(lines, [1, 6]);
    }

    #[test]
    fn words_are_whole_and_stand_in_comments_or_texts() {
        let text = "let told = 1;\n// He told it.\nlet x = \"untold\";\nlet y = \"Told\";\ntold(\"now\"); // later\n";
        let lines: Vec<_> = in_rust(text).into_iter().map(|(line, _)| line).collect();
        assert_eq!(lines, [2, 4]);
        assert_eq!(in_text("It fails, too, and ends.").len(), 1);
    }

    #[test]
    fn definitions_are_types_and_public_constants() {
        let text = "pub struct A<T>(T);\nenum B {}\npub const C: u8 = 0;\nconst D: u8 = 1;\n    pub struct E;\npub(crate) trait F {}\n";
        let names: Vec<_> = definitions(text).into_iter().map(|(_, name)| name).collect();
        assert_eq!(names, ["A", "B", "C", "F"]);
    }
}
