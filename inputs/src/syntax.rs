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
        "yes" | "on" => return format!("write true instead of {value}"),
        "no" | "off" => return format!("write false instead of {value}"),
        _ => {}
    }
    if line.contains(['“', '”', '„', '‘', '’']) {
        return "write straight quotes, \"…\", instead of typographic ones".into();
    }
    if value.contains("//") || line.trim_start().starts_with("//") || line.trim_start().starts_with(['!', ';', '%']) {
        return "comments begin with #".into();
    }
    if line.contains(':') && !line.contains('=') {
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
    if value.starts_with(['.', '+', '-']) && is_number(value) && parser.contains("digits") {
        let whole = value.replacen('.', "0.", 1);
        return format!("write {}: a number begins with a digit", whole.trim_start_matches('+'));
    }
    let parts: Vec<&str> = value.split([',', ' ', '\t']).filter(|part| !part.is_empty()).collect();
    if parts.len() > 1 && parts.iter().all(|part| is_number(part)) {
        let list = parts.join(", ");
        return match parts.as_slice() {
            [_, _] if value.contains(',') && !value.contains('.') => {
                format!("write a number with a decimal point, {}, or a list in brackets, [{list}]", parts.join("."))
            }
            _ => format!("write a list in brackets, with commas: [{list}]"),
        };
    }
    match parser {
        _ if parser.starts_with("string values must be quoted") => {
            let word = value.split_whitespace().next().unwrap_or_default();
            let shown = if value.contains(['"', '\'', '[', '#']) { word } else { value };
            format!("write text in quotes: \"{shown}\"")
        }
        _ if parser.starts_with("invalid basic string") || parser.starts_with("invalid literal string") => {
            "the closing quote is missing, or the text contains an invalid backslash escape".into()
        }
        _ if parser.starts_with("unexpected key or value") && has_value => {
            "the value ends here; write the next key on its own line".into()
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
            ("gauge = \"q.ildg", "the closing quote is missing, or the text contains an invalid backslash escape"),
            ("gauge = 'q.ildg", "the closing quote is missing, or the text contains an invalid backslash escape"),
            ("gauge = “q.ildg”", "write straight quotes, \"…\", instead of typographic ones"),
            ("gauge: \"q.ildg\"", "write = between a key and its value, not a colon"),
            ("mass = .1", "write 0.1: a number begins with a digit"),
            ("mass = 0,1", "write a number with a decimal point, 0.1, or a list in brackets, [0, 1]"),
            ("mass = 0.1 0.2", "write a list in brackets, with commas: [0.1, 0.2]"),
            ("lattice = 4,4,4,8", "write a list in brackets, with commas: [4, 4, 4, 8]"),
            ("mass =", "the value of mass is missing"),
            ("mass", "the line is not of the form key = value"),
            ("tol = 1e-10 // small", "comments begin with #"),
            ("a = 1, b = 2", "the value ends here; write the next key on its own line"),
            ("on = Yes", "write true instead of Yes"),
            ("on = False", "write false in lower case"),
            ("a = [\"b\" \"c\"]", "a comma is missing in the list"),
            ("{ \"a\": 1 }", "write = between a key and its value, not a colon"),
        ] {
            assert_eq!(reported(line), sentence, "{line}");
        }
        assert_eq!(explained("duplicate key", "mass = 0.2", 1), "'mass' occurs twice; remove one");
        assert_eq!(explained("duplicate key", "[gauge]", 2), "'gauge' occurs twice; remove one");
    }
}
