//! Advice on invalid values and names in an input.
use crate::sources::number;
use crate::synonyms::Meant;
use crate::values::Kind;
use toml::de::DeValue;

/// Returns a description of the values of a kind, as messages print it.
pub(crate) fn expected(kind: Kind) -> &'static str {
    match kind {
        Kind::Text | Kind::Word => "a string",
        Kind::Texts => "a string or an array of strings",
        Kind::Number => "a number",
        Kind::Count => "a whole number",
        Kind::Switch => "true or false",
        Kind::Extents => "four whole numbers, [X, Y, Z, T]",
        Kind::Sites => "sites, [[X, Y, Z, T], [X, Y, Z, T]]",
        Kind::Numbers => "a number or an array of numbers",
        Kind::Fractions => "a number, a fraction such as \"1/2\", or an array of these",
    }
}

/// Returns advice on a value of the wrong type, if the right type is obvious: `; write 0.1, without quotes`.
pub(crate) fn advice(kind: Kind, value: &DeValue) -> String {
    match (kind, value) {
        (Kind::Number | Kind::Count | Kind::Switch, DeValue::String(text)) => {
            let text = text.trim();
            let meant = match (kind, text.to_lowercase().as_str()) {
                (Kind::Switch, "true" | "yes" | "on" | "1") => "true",
                (Kind::Switch, "false" | "no" | "off" | "0") => "false",
                (Kind::Number, _) if text.parse::<f64>().is_ok_and(f64::is_finite) => text,
                (Kind::Count, _) if text.parse::<u64>().is_ok() => text,
                _ => return String::new(),
            };
            format!("; write {meant}, without quotes")
        }
        (Kind::Switch, DeValue::Integer(i)) => match i.as_str() {
            "1" => "; write true".into(),
            "0" => "; write false".into(),
            _ => String::new(),
        },
        (Kind::Text | Kind::Word | Kind::Texts, value) if number(value).is_some() => {
            format!("; write the value in quotes: \"{}\"", number(value).unwrap_or_default())
        }
        (Kind::Text | Kind::Word | Kind::Number | Kind::Count | Kind::Switch, DeValue::Array(list))
            if list.len() == 1 =>
        {
            "; write the value without brackets".into()
        }
        (Kind::Text | Kind::Word | Kind::Number | Kind::Count | Kind::Switch, DeValue::Array(_)) => {
            "; give a single value".into()
        }
        (Kind::Count, DeValue::Float(x)) => match x.as_str().replace('_', "").parse::<f64>() {
            Ok(whole) if whole.fract() == 0.0 && (0.0..1e15).contains(&whole) => format!("; write {whole}"),
            _ => String::new(),
        },
        _ => String::new(),
    }
}

/// Returns the known name with the most similar spelling, if it is similar enough.
pub(crate) fn closest(typed: &str, known: &[&str]) -> Option<Meant> {
    let typed = typed.to_lowercase().replace('_', "-");
    let close = |name: &str| strsim::jaro_winkler(&typed, name);
    let best = known.iter().copied().max_by(|a, b| close(a).total_cmp(&close(b)))?;
    (close(best) > 0.75).then(|| Meant { name: Some(best.into()), note: None, sure: close(best) > 0.9 })
}
