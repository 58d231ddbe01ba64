//! Messages on lines that are not TOML, for readers who do not know the grammar of TOML.

/// Returns the sentence for a syntax error, from the parser's message, the line, and the column, counted from 1.
pub(crate) fn explained(parser: &str, line: &str, column: usize) -> String {
    let rest: String = line.chars().skip(column - 1).collect();
    let (rest, before): (&str, String) = (rest.trim_end(), line.chars().take(column - 1).collect());
    let has_value = before.contains('=') || !line.contains('=');
    let value = line.split_once('=').map_or("", |(_, value)| value.trim());
    let key = line.split(['=', ':']).next().unwrap_or_default().trim();
    let lower = value.to_lowercase();
    match lower.as_str() {
        "true" | "false" => return format!("write {lower} in lower case"),
        // The key `tuning` accepts "on" and "off", which are texts.
        "yes" | "on" if key != "tuning" => return format!("write true instead of {value}"),
        "no" | "off" if key != "tuning" => return format!("write false instead of {value}"),
        _ => {}
    }
    if line.contains(['“', '”', '„', '‘', '’']) {
        return "write straight quotes, \"…\", instead of typographic ones".into();
    }
    if value.contains("//") || line.trim_start().starts_with("//") || line.trim_start().starts_with(['!', ';', '%']) {
        return "comments begin with #".into();
    }
    // A line of a list over several lines has no key.
    let is_unquoted = parser.starts_with("string values must be quoted");
    let in_list = is_unquoted || parser.starts_with("missing comma between array");
    if line.contains(':') && !line.contains('=') && !in_list {
        return "write = between a key and its value, not a colon".into();
    }
    if before.trim_end().ends_with('=') && rest.is_empty() {
        return format!("the value of {key} is missing");
    }
    if parser.starts_with("duplicate key") {
        let name = line.trim().trim_matches(['[', ']']).split('=').next().unwrap_or_default().trim();
        return format!("'{name}' occurs twice; remove one");
    }
    let is_number = |text: &str| text.trim().parse::<f64>().is_ok();
    if is_number(value) && parser.contains("digits") {
        if value.trim_start_matches(['+', '-']).starts_with('.') {
            let whole = value.replacen('.', "0.", 1);
            return format!("write {}, with a digit before the decimal point", whole.trim_start_matches('+'));
        }
        if value.ends_with('.') {
            return format!("write {value}0, with a digit after the decimal point");
        }
    }
    let parts: Vec<&str> = value.split([',', ' ', '\t']).filter(|part| !part.is_empty()).collect();
    if parts.len() > 1 && parts.iter().all(|part| is_number(part)) {
        let list = parts.join(", ");
        return match parts.as_slice() {
            [_, _] if value.contains(',') && !value.contains('.') => {
                format!("write {} for one number, or [{list}] for a list", parts.join("."))
            }
            _ => format!("write a list in brackets, with commas: [{list}]"),
        };
    }
    match parser {
        _ if is_unquoted && (value.starts_with('[') || !line.contains('=')) => {
            let element = rest.split([',', ']', '#']).next().unwrap_or_default().trim();
            if element.split_whitespace().all(is_number) {
                "a comma is missing in the list".into()
            } else {
                format!("write text in quotes: \"{element}\"")
            }
        }
        _ if is_unquoted => {
            let word = value.split_whitespace().next().unwrap_or_default();
            let shown = if value.contains(['"', '\'', '[', '#']) { word } else { value };
            format!("write text in quotes: \"{shown}\"")
        }
        _ if parser.contains("visible characters") => "the text contains an invisible character: remove it".into(),
        _ if parser.starts_with("invalid basic string") || parser.starts_with("invalid literal string") => {
            "the closing quote is missing".into()
        }
        _ if parser.starts_with("missing escaped value") || parser.starts_with("too few unicode value digits") => {
            "a backslash is not valid here: write two backslashes, or put the text in single quotes".into()
        }
        _ if parser.starts_with("unexpected key or value") && has_value => {
            "the value ends here: write each key on its own line, and several values as a list in brackets".into()
        }
        _ if parser.starts_with("key with no value") || parser.contains("expected key") => {
            "the line is not of the form key = value".into()
        }
        _ if parser.starts_with("missing comma") => "a comma is missing in the list".into(),
        other => other.into(),
    }
}

#[cfg(test)]
mod tests {
    use super::explained;

    /// Returns the sentence for the first mistake of a line.
    fn reported(line: &str) -> String {
        let (_, errors) = toml::de::DeTable::parse_recoverable(line);
        let error = errors.first().unwrap_or_else(|| panic!("'{line}' is TOML"));
        let byte = error.span().map_or(0, |span| span.start);
        explained(error.message(), line, line[..byte.min(line.len())].chars().count() + 1)
    }

    #[test]
    fn mistakes_are_reported_in_plain_words() {
        for (line, sentence) in [
            ("gauge = q.ildg", "write text in quotes: \"q.ildg\""),
            ("gauge = \"q.ildg", "the closing quote is missing"),
            ("gauge = 'q.ildg", "the closing quote is missing"),
            (
                "gauge = \"C:\\data\"",
                "a backslash is not valid here: write two backslashes, or put the text in single quotes",
            ),
            ("gauge = “q.ildg”", "write straight quotes, \"…\", instead of typographic ones"),
            ("gauge: \"q.ildg\"", "write = between a key and its value, not a colon"),
            ("mass = .1", "write 0.1, with a digit before the decimal point"),
            ("mass = -.5", "write -0.5, with a digit before the decimal point"),
            ("mass = -1.", "write -1.0, with a digit after the decimal point"),
            ("mass = 0,1", "write 0.1 for one number, or [0, 1] for a list"),
            ("mass = 0.1 0.2", "write a list in brackets, with commas: [0.1, 0.2]"),
            ("lattice = 4,4,4,8", "write a list in brackets, with commas: [4, 4, 4, 8]"),
            ("mass =", "the value of mass is missing"),
            ("mass", "the line is not of the form key = value"),
            ("tol = 1e-10 // small", "comments begin with #"),
            (
                "a = 1, b = 2",
                "the value ends here: write each key on its own line, and several values as a list in brackets",
            ),
            ("on = Yes", "write true instead of Yes"),
            ("tuning = on", "write text in quotes: \"on\""),
            ("on = False", "write false in lower case"),
            ("a = [\"b\" \"c\"]", "a comma is missing in the list"),
            ("a = [1 2]", "a comma is missing in the list"),
            ("a = [b, c]", "write text in quotes: \"b\""),
            ("{ \"a\": 1 }", "write = between a key and its value, not a colon"),
        ] {
            assert_eq!(reported(line), sentence, "{line}");
        }
        let unquoted = explained("string values must be quoted, expected literal string", "  random:1,", 3);
        assert_eq!(unquoted, "write text in quotes: \"random:1\"");
        let without_comma = explained("missing comma between array elements, expected `,`", "  \"random:1\"", 3);
        assert_eq!(without_comma, "a comma is missing in the list");
        assert_eq!(explained("duplicate key", "mass = 0.2", 1), "'mass' occurs twice; remove one");
        assert_eq!(explained("duplicate key", "[gauge]", 2), "'gauge' occurs twice; remove one");
    }
}
