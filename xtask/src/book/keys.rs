//! Tables of keys in the pages, generated from the types of records and from the comments of their fields.
//!
//! A page marks the position and the type of such a table: between `<!-- keys of SolveRecord -->` and
//! `<!-- end of keys -->`. Keys of types inside it are in the same table, behind a dot, except those of types named
//! after `without`: `<!-- keys of SolveRecord without OperatorOnLinks, PlaceRecord -->`.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use anyhow::{Context, Result, bail};

/// Page with the tables; the next constant has the folders of the types.
const PAGE: &str = "docs/output.md";
const TYPES: [&str; 2] = ["records/src", "examples/studies/src/records"];
/// Beginning and end of a table.
const BEGIN: &str = "<!-- keys of ";
const END: &str = "<!-- end of keys -->";
/// First words of comments that keep their capital letter.
const NAMES: [&str; 8] = ["Chrome", "Gaussian", "Krylov", "Lanczos", "Metropolis", "Polyakov", "Python", "Wilson"];

/// Field of a type.
#[derive(Clone, Debug, Default, PartialEq)]
struct KeyField {
    key: String,
    /// Type of the field, as written in the source.
    kind: String,
    meaning: String,
    /// Whether the keys of the field's type are keys of the enclosing type.
    flattened: bool,
    /// Whether the key may be absent.
    optional: bool,
}

/// Parameter of a type (empty if it has none), and its fields.
type Fields = (String, Vec<KeyField>);

/// Types by their names.
type Types = BTreeMap<String, Fields>;

/// Fails unless the page has the tables generated from the types.
pub fn check(root: &Path) -> Result<()> {
    let (page, tables) = remade(root)?;
    let there = fs::read_to_string(root.join(PAGE)).with_context(|| format!("{PAGE} cannot be read"))?;
    if let Some((line, new)) = page.lines().zip(there.lines()).enumerate().find(|(_, (new, old))| new != old) {
        bail!(
            "{PAGE}:{}: a table of keys is not up to date; `cargo xtask book --keys` writes it\n  {}\n  {}",
            line + 1,
            new.1,
            new.0
        );
    }
    if page != there {
        bail!("a table of keys in {PAGE} is not up to date; `cargo xtask book --keys` writes it");
    }
    println!("{tables} tables of keys, all up to date");
    Ok(())
}

/// Writes the tables into the page.
pub fn write(root: &Path) -> Result<()> {
    let (page, tables) = remade(root)?;
    fs::write(root.join(PAGE), page).with_context(|| format!("{PAGE} cannot be written"))?;
    println!("{PAGE}: {tables} tables of keys");
    Ok(())
}

/// Returns the page with new tables, and their number.
fn remade(root: &Path) -> Result<(String, usize)> {
    let mut types = Types::new();
    for folder in TYPES {
        for entry in root.join(folder).read_dir().with_context(|| format!("{folder} cannot be read"))? {
            let path = entry?.path();
            let text = fs::read_to_string(&path).with_context(|| format!("{} cannot be read", path.display()))?;
            for (name, fields) in parse(&text) {
                if types.insert(name.clone(), fields).is_some() {
                    bail!("{folder}: there are two types {name}, but tables of keys identify a type by its name");
                }
            }
        }
    }
    let page = fs::read_to_string(root.join(PAGE)).with_context(|| format!("{PAGE} cannot be read"))?;
    with_tables(&page, &types).with_context(|| PAGE.to_string())
}

/// Returns a page with the tables of these types, and their number.
fn with_tables(page: &str, types: &Types) -> Result<(String, usize)> {
    let mut parts = page.split(BEGIN);
    let (mut made, mut tables) = (parts.next().unwrap_or_default().to_string(), 0);
    for part in parts {
        let (request, rest) = part.split_once(" -->").context("a comment that begins a table of keys is not closed")?;
        let (_, rest) = rest.split_once(END).with_context(|| format!("the table of keys of {request} has no end"))?;
        let (name, without) = request.split_once(" without ").unwrap_or((request, ""));
        let without: Vec<&str> = without.split(", ").filter(|name| !name.is_empty()).collect();
        for name in without.iter().chain([&name]) {
            if !types.contains_key(*name) {
                bail!("keys of {request}: {} have no type {name}", TYPES.join(" and "));
            }
        }
        let mut rows = Vec::new();
        gather((name, ""), "", types, &without, &mut rows);
        made += &format!("{BEGIN}{request} -->\n\n| key | meaning |\n|---|---|\n{}\n{END}{rest}", rows.concat());
        tables += 1;
    }
    Ok((made, tables))
}

/// Adds the rows of the keys of a type behind a prefix; `argument` is the type that its parameter stands for.
fn gather((name, argument): (&str, &str), prefix: &str, types: &Types, without: &[&str], rows: &mut Vec<String>) {
    let Some((parameter, fields)) = types.get(name) else { return };
    for field in fields {
        let mut inner = innermost(&field.kind);
        if inner.0 == parameter {
            inner = (argument, "");
        }
        let goes_on = types.contains_key(inner.0) && !without.contains(&inner.0);
        if field.flattened {
            if goes_on {
                gather(inner, prefix, types, without, rows);
            }
            continue;
        }
        let key = format!("{prefix}{}", field.key);
        rows.push(format!("| `{key}` | {} |\n", meaning(field)));
        if goes_on {
            let array = if field.kind.contains("Vec<") { "[]" } else { "" };
            gather(inner, &format!("{key}{array}."), types, without, rows);
        }
    }
}

/// Returns the meaning of a field as its table states it.
fn meaning(field: &KeyField) -> String {
    let text = field.meaning.replace("`None`", "`null`").replace('|', "\\|");
    let text = text.strip_suffix('.').map(str::to_string).unwrap_or(text);
    let word = text.split([' ', '\'', ',', ':']).next().unwrap_or_default();
    // Names, formulas and abbreviations keep their first letter.
    let lowered = word == "A" || (word.len() > 1 && word.chars().skip(1).all(|c| c.is_lowercase() || c == '-'));
    let mut text = match text.chars().next() {
        Some(first) if lowered && !NAMES.contains(&word) => {
            format!("{}{}", first.to_lowercase(), &text[first.len_utf8()..])
        }
        _ => text,
    };
    if field.optional {
        // Comments state the condition of a key themselves: `only from …`, `absent without …`.
        let is_stated = ["only", "absent"].iter().any(|word| text.contains(word));
        if !is_stated {
            text += "; may be absent";
        }
    } else if field.kind.starts_with("Option<") && !text.contains("null") {
        text += "; or `null`";
    }
    text
}

/// Returns the type of values inside options and arrays, with its parameter: `A` and `B` of `Option<Vec<A<B>>>`.
fn innermost(kind: &str) -> (&str, &str) {
    let mut kind = kind;
    while let Some((wrapper, inside)) = kind.split_once('<') {
        if !["Option", "Vec", "Box"].contains(&wrapper) {
            break;
        }
        kind = inside.strip_suffix('>').unwrap_or(inside);
    }
    let kind = kind.trim_start_matches('[').split(';').next().unwrap_or(kind);
    let (name, parameter) = kind.split_once('<').unwrap_or((kind, ""));
    (name.rsplit("::").next().unwrap_or(name), parameter.strip_suffix('>').unwrap_or(parameter))
}

/// Returns the types of a file formatted by rustfmt, with the fields that are serialised.
fn parse(text: &str) -> Vec<(String, Fields)> {
    let mut types: Vec<(String, Fields)> = Vec::new();
    let (mut inside, mut comment, mut attributes) = (false, String::new(), String::new());
    for line in text.lines() {
        if let Some(rest) = line.strip_prefix("pub struct ") {
            let name = rest.split([' ', '<', ';', '(']).next().unwrap_or_default();
            let parameter = rest[name.len()..].strip_prefix('<').and_then(|more| more.split('>').next());
            types.push((name.to_string(), (parameter.unwrap_or_default().to_string(), Vec::new())));
            inside = rest.ends_with('{');
            (comment, attributes) = (String::new(), String::new());
        } else if line == "}" {
            inside = false;
        } else if let Some(more) = line.trim().strip_prefix("///").filter(|_| inside) {
            comment = format!("{comment} {}", more.trim()).trim().to_string();
        } else if let Some((name, kind)) =
            line.trim().strip_prefix("pub ").and_then(|field| field.split_once(": ")).filter(|_| inside)
        {
            let renamed = attributes.split("rename = \"").nth(1).and_then(|rest| rest.split('"').next());
            if let Some((_, (_, fields))) = types.last_mut().filter(|_| !attributes.contains("(skip)")) {
                fields.push(KeyField {
                    key: renamed.unwrap_or(name.trim_start_matches("r#")).to_string(),
                    kind: kind.trim_end_matches(',').to_string(),
                    meaning: without_links(&comment),
                    flattened: attributes.contains("flatten"),
                    optional: attributes.contains("skip_serializing_if"),
                });
            }
            (comment, attributes) = (String::new(), String::new());
        } else if inside {
            attributes += line.trim();
        }
    }
    types
}

/// Returns a comment with each link replaced by its text: `Place` for a link to a path.
fn without_links(comment: &str) -> String {
    let mut parts = comment.split("[`");
    let mut text = parts.next().unwrap_or_default().to_string();
    for part in parts {
        let (name, rest) = part.split_once("`]").unwrap_or((part, ""));
        let rest = match rest.strip_prefix('(') {
            Some(target) => target.split_once(')').map_or("", |(_, rest)| rest),
            None => rest,
        };
        text += &format!("`{name}`{rest}");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    const SOURCE: &str = "
/// A record.
#[derive(Serialize)]
pub struct Whole<W> {
    /// Extents of the lattice.
    pub lattice: [usize; 4],
    /// The parts, by [`name`](Part::name). In order.
    #[serde(default)]
    pub parts: Vec<Part>,
    /// Lanczos's steps; `None` without.
    #[serde(rename = \"type\")]
    pub kind: Option<W>,
    /// Device.
    #[serde(flatten)]
    pub place: crate::Place,
    /// Both.
    pub both: Both<Part>,
}

pub struct Both<T> {
    /// Before.
    pub before: T,
}

pub struct Part {
    /// ΔH = a | b
    #[serde(
        default,
        skip_serializing_if = \"Option::is_none\"
    )]
    pub delta: Option<f64>,
    /// Not written.
    #[serde(skip)]
    pub hidden: bool,
}

pub struct Place {
    /// File of it.
    pub r#file: Option<PathBuf>,
}

impl Whole {
    pub fn new() -> Self {}
}
";

    #[test]
    fn tables_have_a_row_for_each_key() {
        let types: Types = parse(SOURCE).into_iter().collect();
        let page = "a\n<!-- keys of Whole -->\nold\n<!-- end of keys -->\nb\n";
        let (made, tables) = with_tables(page, &types).unwrap();
        assert_eq!(tables, 1);
        assert_eq!(
            made,
            "a\n<!-- keys of Whole -->\n\n| key | meaning |\n|---|---|\n| `lattice` | extents of the lattice |\n\
             | `parts` | the parts, by `name`. In order |\n| `parts[].delta` | ΔH = a \\| b; may be absent |\n\
             | `type` | Lanczos's steps; `null` without |\n| `file` | file of it; or `null` |\n\
             | `both` | both |\n| `both.before` | before |\n| `both.before.delta` | ΔH = a \\| b; may be absent |\n\n<!-- end of keys -->\nb\n"
        );
        assert_eq!(with_tables(&made, &types).unwrap().0, made);
        let (short, _) = with_tables(&page.replace("Whole", "Whole without Part, Place"), &types).unwrap();
        assert!(short.contains("| `parts` |") && !short.contains("delta") && !short.contains("file"), "{short}");
    }

    #[test]
    fn tables_of_unknown_types_are_refused() {
        let types: Types = parse(SOURCE).into_iter().collect();
        for page in ["<!-- keys of None -->\n<!-- end of keys -->", "<!-- keys of Part -->\n"] {
            assert!(with_tables(page, &types).is_err(), "{page}");
        }
    }
}
