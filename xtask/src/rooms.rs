//! Check of the dependencies between modules of the library: `docs/architecture.md` lists its rooms from bottom to top,
//! and every path in the sources is compared with the list, so that modules do not come to depend on each other in
//! cycles.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};

/// Document with the list; the next constant is the heading above it.
const DOCUMENT: &str = "docs/architecture.md";
const HEADING: &str = "## Rooms of the library";
/// Folder of the rooms, each of which is a folder or a file.
const SOURCES: &str = "host/src";
/// Files that belong to no room: they name all of them.
const ROOTS: [&str; 1] = ["lib"];

/// Fails if a room uses one that is not below it, or if the list and the sources do not have the same rooms.
pub fn check(root: &Path) -> Result<()> {
    let read = |file: &Path| fs::read_to_string(file).with_context(|| format!("{} cannot be read", file.display()));
    let list = List::of(&read(&root.join(DOCUMENT))?);
    let sources = root.join(SOURCES);
    let mut files = Vec::new();
    search(&sources, &mut files)?;
    files.sort();
    let mut found = Vec::new();
    for file in &files {
        let inside = file.strip_prefix(&sources)?;
        let (room, depth) = place(inside);
        if ROOTS.contains(&room.as_str()) {
            continue;
        }
        if list.rank(&room).is_none() {
            bail!("{SOURCES}/{room} is missing in the list of rooms in {DOCUMENT} ('{}')", &HEADING[3..]);
        }
        let name = format!("{SOURCES}/{}", inside.display());
        found.extend(list.offences(&name, &room, &uses(&read(file)?, depth)));
    }
    let has = |room: &str| files.iter().any(|file| file.strip_prefix(&sources).is_ok_and(|file| place(file).0 == room));
    if let Some(room) = list.rows.iter().flatten().find(|room| !has(room)) {
        bail!("{DOCUMENT} lists the room `{room}`, which {SOURCES} does not have");
    }
    if !found.is_empty() {
        bail!("{}", found.join("\n"));
    }
    println!("the {} rooms of {SOURCES} use only rooms below them", list.rows.iter().flatten().count());
    Ok(())
}

/// Rooms from bottom to top; those of a row are on the same level.
#[derive(Debug, PartialEq)]
struct List {
    rows: Vec<Vec<String>>,
}

impl List {
    /// Returns the names in the first column of the table below the heading.
    fn of(document: &str) -> Self {
        let below =
            document.lines().skip_while(|line| *line != HEADING).skip(1).take_while(|line| !line.starts_with("## "));
        let names = |line: &str| {
            let column = line.strip_prefix('|')?.split('|').next()?;
            let names: Vec<String> = column.split('`').skip(1).step_by(2).map(String::from).collect();
            (!names.is_empty()).then_some(names)
        };
        List { rows: below.filter_map(names).collect() }
    }
    fn rank(&self, room: &str) -> Option<usize> {
        self.rows.iter().position(|row| row.iter().any(|name| name == room))
    }
    /// Returns a sentence for each use that the list forbids. Names that are not rooms belong to the crate itself.
    fn offences(&self, file: &str, room: &str, uses: &[Use]) -> Vec<String> {
        let own = self.rank(room);
        let sentence = |used: &&Use| {
            let theirs = self.rank(&used.name)?;
            let place = match theirs.cmp(&own?) {
                std::cmp::Ordering::Less => return None,
                std::cmp::Ordering::Equal if used.name == room => return None,
                std::cmp::Ordering::Equal => "beside",
                std::cmp::Ordering::Greater => "above",
            };
            Some(format!(
                "{file}:{}: `{room}` uses `{}`, which is {place} it, but a room may use only rooms below it in the \
                 list of {DOCUMENT} ('{}'). Move the used item down, or its user up",
                used.line,
                used.name,
                &HEADING[3..]
            ))
        };
        uses.iter().filter_map(|used| sentence(&used)).collect()
    }
}

/// First name of a path from the root of the crate.
#[derive(Debug, PartialEq)]
struct Use {
    name: String,
    /// Line number, from 1.
    line: usize,
}

/// Returns the room of a file, by its path in the sources, and its module depth: 1 for the file of the room itself.
fn place(file: &Path) -> (String, usize) {
    let mut parts: Vec<String> = file.iter().map(|part| part.to_string_lossy().into_owned()).collect();
    let last = parts.last_mut().expect("a file has a name");
    *last = last.trim_end_matches(".rs").to_string();
    if parts.len() > 1 && parts.last().is_some_and(|name| name == "mod") {
        parts.pop();
    }
    (parts[0].clone(), parts.len())
}

fn search(folder: &Path, found: &mut Vec<PathBuf>) -> Result<()> {
    for entry in fs::read_dir(folder).with_context(|| format!("{} cannot be read", folder.display()))? {
        let path = entry?.path();
        if path.is_dir() {
            search(&path, found)?;
        } else if path.extension().is_some_and(|e| e == "rs") {
            found.push(path);
        }
    }
    Ok(())
}

/// Returns the names that a source at the given module depth uses from the root of its crate: by `crate::`, or by as
/// many `super::` as lead there.
fn uses(source: &str, depth: usize) -> Vec<Use> {
    let tokens = tokens(source);
    let is = |at: usize, text: &str| tokens.get(at).is_some_and(|token| token.text == text);
    let mut found = Vec::new();
    // Open braces, and whether each is that of a module.
    let mut open: Vec<bool> = Vec::new();
    let mut at = 0;
    while at < tokens.len() {
        let start = at;
        at += 1;
        match tokens[start].text.as_str() {
            "{" => open.push(start >= 2 && is(start - 2, "mod")),
            "}" => {
                open.pop();
            }
            "crate" if is(at, "::") => names(&tokens, at + 1, &mut found),
            "super" if start == 0 || !is(start - 1, "::") || (start >= 2 && is(start - 2, "self")) => {
                let mut steps = 1;
                while is(at, "::") && is(at + 1, "super") {
                    (steps, at) = (steps + 1, at + 2);
                }
                let modules = depth + open.iter().filter(|module| **module).count();
                if is(at, "::") && steps == modules {
                    names(&tokens, at + 1, &mut found);
                }
            }
            _ => {}
        }
    }
    found
}

/// Adds the names at the beginning of a path or of a tree of paths.
fn names(tokens: &[Token], at: usize, found: &mut Vec<Use>) {
    let name = |token: &Token| Use { name: token.text.clone(), line: token.line };
    let Some(first) = tokens.get(at) else { return };
    if first.text != "{" {
        found.push(name(first));
        return;
    }
    let (mut depth, mut begins) = (0, false);
    for token in &tokens[at..] {
        match token.text.as_str() {
            "{" => (depth, begins) = (depth + 1, depth == 0),
            "}" => depth -= 1,
            "," => begins = depth == 1,
            _ if begins => {
                found.push(name(token));
                begins = false;
            }
            _ => {}
        }
        if depth == 0 {
            return;
        }
    }
}

/// Token of a source, a word, `::` or any other sign, with its line.
#[derive(Debug, PartialEq)]
struct Token {
    text: String,
    line: usize,
}

/// Returns the tokens of a source without comments, string literals and spaces.
fn tokens(source: &str) -> Vec<Token> {
    let chars: Vec<char> = source.chars().collect();
    let at = |i: usize| chars.get(i).copied().unwrap_or('\0');
    let is_word = |c: char| c.is_alphanumeric() || c == '_';
    let (mut i, mut line, mut found) = (0, 1, Vec::new());
    while i < chars.len() {
        let start = i;
        match chars[i] {
            '/' if at(i + 1) == '/' => {
                while i < chars.len() && chars[i] != '\n' {
                    i += 1;
                }
            }
            '/' if at(i + 1) == '*' => {
                let mut depth = 0;
                while i < chars.len() {
                    match (at(i), at(i + 1)) {
                        ('/', '*') => (depth, i) = (depth + 1, i + 2),
                        ('*', '/') => (depth, i) = (depth - 1, i + 2),
                        _ => i += 1,
                    }
                    if depth == 0 {
                        break;
                    }
                }
            }
            '"' => i = after_text(&chars, i),
            // r"…" and r#"…"#, also after a b; r#name is a word.
            'r' if raw_text(&chars, i).is_some() && (i == 0 || !is_word(chars[i - 1]) || chars[i - 1] == 'b') => {
                i = raw_text(&chars, i).expect("just seen");
            }
            // A character, or a lifetime, which has no second quotation mark.
            '\'' if at(i + 1) == '\\' => {
                i += 3;
                while i < chars.len() && chars[i] != '\'' {
                    i += 1;
                }
                i += 1;
            }
            '\'' if at(i + 2) == '\'' => i += 3,
            ':' if at(i + 1) == ':' => {
                i += 2;
                found.push(Token { text: "::".into(), line });
            }
            c if is_word(c) => {
                while is_word(at(i)) {
                    i += 1;
                    if at(i) == 'r' && raw_text(&chars, i).is_some() && i == start + 1 && chars[start] == 'b' {
                        break;
                    }
                }
                found.push(Token { text: chars[start..i].iter().collect(), line });
            }
            c => {
                i += 1;
                if !c.is_whitespace() {
                    found.push(Token { text: c.into(), line });
                }
            }
        }
        line += chars[start..i.min(chars.len())].iter().filter(|c| **c == '\n').count();
    }
    found
}

/// Returns the end of a string literal that begins here with a quotation mark.
fn after_text(chars: &[char], start: usize) -> usize {
    let mut i = start + 1;
    while i < chars.len() {
        match chars[i] {
            '\\' => i += 2,
            '"' => return i + 1,
            _ => i += 1,
        }
    }
    i
}

/// Returns the end of a raw string literal that begins here with its r, if there is one.
fn raw_text(chars: &[char], start: usize) -> Option<usize> {
    let marks = chars[start + 1..].iter().take_while(|c| **c == '#').count();
    let first = start + 1 + marks;
    if chars.get(first) != Some(&'"') {
        return None;
    }
    let ends =
        |i: &usize| chars[*i] == '"' && chars[i + 1..].iter().take(marks).filter(|c| **c == '#').count() == marks;
    Some((first + 1..chars.len()).find(ends).map_or(chars.len(), |end| end + 1 + marks))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_repository_is_in_order() {
        check(Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap()).unwrap();
    }

    fn list() -> List {
        let table = "| room | what |\n|---|---|\n| `low` | x of `high` |\n| `left`, `right` | y |\n| `high` | z |\n";
        List::of(&format!("| `no` | x |\n{HEADING}\nFrom below to above.\n\n{table}## Next\n| `no` | x |\n"))
    }

    /// Returns room and line of each use.
    fn found(source: &str, depth: usize) -> Vec<(String, usize)> {
        uses(source, depth).into_iter().map(|used| (used.name, used.line)).collect()
    }

    #[test]
    fn the_list_is_the_first_column_below_the_heading() {
        let rows: Vec<Vec<&str>> = vec![vec!["low"], vec!["left", "right"], vec!["high"]];
        assert_eq!(list().rows, rows);
    }

    #[test]
    fn what_is_above_or_beside_is_refused() {
        let said = |room: &str, source: &str| list().offences("a.rs", room, &uses(source, 1));
        assert_eq!(said("high", "use crate::low::A;\nuse crate::{left::B, right};\nuse crate::high::C;").len(), 0);
        let above = said("low", "use crate::low::A;\n\nuse crate::high::B;");
        assert_eq!(above.len(), 1);
        assert!(
            above[0].starts_with("a.rs:3: `low` uses `high`, which is above it, but a room may use only"),
            "{}",
            above[0]
        );
        let beside = said("left", "fn f() { crate::right::g() }");
        assert!(beside[0].starts_with("a.rs:1: `left` uses `right`, which is beside it"), "{}", beside[0]);
        // Items of the root itself are not rooms.
        assert_eq!(said("low", "use crate::Precision;").len(), 0);
        // Tests belong to the room too.
        assert_eq!(said("low", "#[cfg(test)]\nmod tests {\n    use crate::high::B;\n}\n").len(), 1);
    }

    #[test]
    fn paths_are_found_wherever_they_stand() {
        let both = [("a".to_string(), 1), ("b".to_string(), 3)];
        assert_eq!(found("use crate::{a::{self, x::{y, z}, crate_of},\n // c,\n b::*};", 1), both);
        assert_eq!(found("pub(crate) use crate::a;\n\nfn f(x: &crate::b::T<'a>) {}", 1), both);
        assert_eq!(found("macro_rules! m { () => { $crate::a::f() } }\n\nx!(crate :: b)", 1), both);
        let text = "// crate::c\n/* crate::c /* crate::c */ crate::c */ \"crate::c \\\" crate::c\" r#\"crate::c\" c\"# '\"' b'\\'' \
                    br\"crate::c\" /// [x](crate::c)\n crate::b";
        assert_eq!(found(text, 1), [("b".to_string(), 3)]);
        assert_eq!(found("extern crate a;\nother::crate_::b();", 1), []);
    }

    #[test]
    fn super_may_lead_to_the_root() {
        let names = |source: &str, depth| found(source, depth).into_iter().map(|used| used.0).collect::<Vec<_>>();
        assert_eq!(names("use super::a;", 1), ["a"]);
        assert_eq!(names("use super::a; use super::super::{b, c::d}; use self::super::super::e;", 2), ["b", "c", "e"]);
        assert_eq!(names("mod tests { use super::*; use super::super::a; } use super::b;", 1), ["a", "b"]);
    }

    #[test]
    fn files_have_rooms() {
        let of = |file: &str| place(Path::new(file));
        assert_eq!(of("network.rs"), ("network".into(), 1));
        assert_eq!(of("halo/mod.rs"), ("halo".into(), 1));
        assert_eq!(of("gauge/fixing.rs"), ("gauge".into(), 2));
        assert_eq!(of("gauge/fixing/relax.rs"), ("gauge".into(), 3));
        assert_eq!(of("cli/bench/mod.rs"), ("cli".into(), 2));
    }
}
