//! Files named in an input or on a command line: whether they are inputs or fields, and patterns that no shell has expanded.
use crate::text;
use ferrite::files::{FileError, FileFormat, Problem, ReadOptions, inspect};
use std::cmp::Ordering;
use std::io::Read as _;
use std::path::{Path, PathBuf};

/// Returns whether a file is a field, such as a configuration, and not an input in TOML. A name that ends in `.toml` means an input.
/// Otherwise the content decides, or the ending of the name if the content cannot be read or is ambiguous. Pipes count as inputs, because
/// bytes read from a pipe are lost.
pub fn is_field(path: &Path) -> bool {
    let by_name = FileFormat::of_gauge_file(path).is_some();
    match std::fs::metadata(path) {
        Err(_) => by_name,
        Ok(found) if !found.is_file() => false,
        Ok(_) if path.extension().is_some_and(|end| end.eq_ignore_ascii_case("toml")) => false,
        Ok(_) => match inspect(path, &ReadOptions::default()) {
            Err(FileError { problem: Problem::UnknownFormat { .. }, .. }) => by_name && !is_text(path),
            Err(FileError { problem: Problem::Empty | Problem::Io { .. }, .. }) => by_name,
            // A file that can be inspected is a field. A file with an error other than those above is a field with a fault.
            Ok(_) | Err(_) => true,
        },
    }
}

/// Returns whether a file begins like a text.
fn is_text(path: &Path) -> bool {
    let mut begin = Vec::new();
    let read = std::fs::File::open(path).and_then(|file| file.take(4096).read_to_end(&mut begin));
    // The last character may be incomplete, because only the beginning of the file was read.
    let whole = std::str::from_utf8(&begin).map_or_else(|why| why.valid_up_to() + 4 > begin.len(), |_| true);
    read.is_ok() && whole && !begin.contains(&0)
}

/// Describes a file that is not an input: a folder, a field, or a file of another program. Returns `None` if the file may be an input.
pub fn not_an_input(path: &Path) -> Option<String> {
    if path.is_dir() {
        return Some("a folder".into());
    }
    if !path.is_file() || !is_field(path) {
        return None;
    }
    Some(match inspect(path, &ReadOptions::default()) {
        Ok(header) if header.values_per_site() == 36 => format!("a gauge field on {}", header.lattice),
        Ok(header) => format!("a field on {}", header.lattice),
        Err(FileError { problem: Problem::OtherFormat { what, .. }, .. }) => what.into(),
        Err(_) => "a damaged field".into(),
    })
}

/// Returns whether a name is a pattern: it contains `*`, `?` or `[…]`, and no file has this name.
fn is_pattern(name: &str) -> bool {
    name.contains(['*', '?', '[']) && !Path::new(name).exists()
}

/// Returns the files that a name stands for: the file itself, or all matches of a pattern, ordered by the numbers in
/// their names.
///
/// # Errors
/// Returns a message on a pattern that matches nothing or cannot be parsed.
pub fn matches(name: &str) -> Result<Vec<PathBuf>, String> {
    if !is_pattern(name) {
        return Ok(vec![name.into()]);
    }
    let found =
        glob::glob(name).map_err(|why| format!("'{name}' is not a valid pattern of file names: {}", why.msg))?;
    let mut found: Vec<PathBuf> = found.flatten().filter(|path| path.is_file()).collect();
    if found.is_empty() {
        let folder = Path::new(name).parent().filter(|folder| !folder.as_os_str().is_empty());
        let place = folder.unwrap_or(Path::new("."));
        let why = match place.is_dir() || is_pattern(&place.to_string_lossy()) {
            true => "no file matches this pattern".into(),
            false => format!("no file matches this pattern: the folder {} does not exist", place.display()),
        };
        return Err(format!("{name}: {why}"));
    }
    found.sort_by(|a, b| natural(&a.to_string_lossy(), &b.to_string_lossy()));
    Ok(found)
}

/// Returns advice for a command that reads one file but was given a pattern; `None` if the name is not a pattern.
pub fn advice_on_pattern(path: &Path) -> Option<String> {
    let name = path.to_string_lossy();
    if !is_pattern(&name) {
        return None;
    }
    Some(match matches(&name) {
        Ok(found) => {
            let files = text::count(found.len(), "file");
            format!("the name is a pattern that matches {files}; give the full name of a single file")
        }
        Err(_) => "no file matches this pattern".into(),
    })
}

/// Compares names by the values of the numbers in them: `cfg9` before `cfg10`.
fn natural(a: &str, b: &str) -> Ordering {
    let (mut left, mut right) = (a, b);
    while !left.is_empty() && !right.is_empty() {
        let (one, other) = (digits(left), digits(right));
        let order = if one > 0 && other > 0 {
            let [x, y] = [&left[..one], &right[..other]].map(|digits| digits.trim_start_matches('0'));
            x.len().cmp(&y.len()).then_with(|| x.cmp(y))
        } else {
            left.chars().next().cmp(&right.chars().next())
        };
        if order != Ordering::Equal {
            return order;
        }
        let skip =
            |text: &str, number: usize| if number > 0 { number } else { text.chars().next().map_or(0, char::len_utf8) };
        let (one, other) = if one > 0 && other > 0 { (one, other) } else { (skip(left, 0), skip(right, 0)) };
        (left, right) = (&left[one..], &right[other..]);
    }
    // 007 and 7 have the same value and are ordered as texts.
    left.len().cmp(&right.len()).then_with(|| a.cmp(b))
}

/// Returns the number of digits at the beginning of a text.
fn digits(text: &str) -> usize {
    text.bytes().take_while(u8::is_ascii_digit).count()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_in_names_are_in_order() {
        let mut names = ["cfg10.ildg", "cfg9.ildg", "cfg.2", "b/cfg100", "b/cfg20", "cfg009.ildg", "ä2", "ä10", "cfg"];
        names.sort_by(|a, b| natural(a, b));
        assert_eq!(
            names,
            ["b/cfg20", "b/cfg100", "cfg", "cfg.2", "cfg009.ildg", "cfg9.ildg", "cfg10.ildg", "ä2", "ä10"]
        );
        // Numbers too large for any machine integer.
        assert_eq!(natural("c99999999999999999999999", "c100000000000000000000000"), Ordering::Less);
    }
}
