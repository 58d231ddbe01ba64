//! As much XML as the headers of lattice files need: the text between a tag and its end. Files in use hold XML that a
//! strict parser refuses (unclosed quotes, several documents in one record), so none is used.

/// Text inside the first element `tag`, with or without a namespace prefix, trimmed.
pub(crate) fn text<'a>(xml: &'a str, tag: &str) -> Option<&'a str> {
    let (at, _) = xml.match_indices('<').find(|(at, _)| is_start(&xml[at + 1..], tag))?;
    let (_, inside) = xml[at..].split_once('>')?;
    let (text, _) = inside.split_once("</")?;
    Some(text.trim())
}

/// Whether what follows a `<` is a start tag of this name.
fn is_start(rest: &str, tag: &str) -> bool {
    let name = rest.split(|c: char| c == '>' || c == '<' || c.is_whitespace()).next().unwrap_or("");
    name == tag || name.split_once(':').is_some_and(|(_, local)| local == tag)
}

/// Replaces the characters that text in XML may not hold.
pub(crate) fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_text() {
        let xml = "<?xml version=\"1.0\"?><a xmlns=\"u><b>1</b><c:lx at=\"2\"> 4\n</c:lx><lxx>5</lxx></a>";
        assert_eq!(text(xml, "lx"), Some("4"));
        assert_eq!(text(xml, "lxx"), Some("5"));
        assert_eq!(text(xml, "l"), None);
        assert_eq!(text("<lx", "lx"), None);
        assert_eq!(text("<lx>8", "lx"), None);
    }
}
