//! Parser for the XML in headers of lattice files, which extracts the texts of elements.
//!
//! It uses an XML parser, so that comments, declarations and quoted attributes are not mistaken for elements. Some existing files contain
//! XML that is not well formed: quotes or elements that are not closed, several documents in one record, or a bare ampersand. All that can
//! be parsed is read, and the rest is ignored.
use quick_xml::Reader;
use quick_xml::events::Event;

/// Elements of an XML text.
#[derive(Debug, Default)]
pub(crate) struct Elements {
    /// Names without prefix, and texts of all elements, in the order of start tags. The text is `None` if an element is not closed.
    all: Vec<(String, Option<String>)>,
}

impl Elements {
    /// Parses the elements of an XML text; the result is empty if the text is not XML.
    pub fn of(xml: &str) -> Self {
        let mut elements = Self::default();
        let (mut rest, mut open) = (xml, Vec::new());
        while let Some(behind) = elements.add(rest, &mut open) {
            rest = behind;
        }
        elements
    }
    /// Returns the trimmed text of the first closed element with this name; a namespace prefix is ignored. Returns `None` if there is no
    /// such element.
    pub fn text(&self, name: &str) -> Option<&str> {
        let found = self.all.iter().find(|(its, text)| its == name && text.is_some());
        found.and_then(|(_, text)| text.as_deref()).map(str::trim)
    }
    /// Adds the elements of `xml` up to its end, or up to a tag in which a quote is not closed. In the latter case it returns the text
    /// after this tag. `open` contains the elements that are not closed yet, with their texts so far.
    fn add<'a>(&mut self, xml: &'a str, open: &mut Vec<(usize, String)>) -> Option<&'a str> {
        let mut reader = Reader::from_str(xml);
        let config = reader.config_mut();
        (config.allow_dangling_amp, config.allow_unmatched_ends, config.check_end_names) = (true, true, false);
        loop {
            let at = reader.buffer_position() as usize;
            let event = reader.read_event();
            let text = match &event {
                // Attributes cannot contain `<`, so a quote in this tag is not closed. The tag is read as if it had no quotes.
                Ok(Event::Start(tag) | Event::Empty(tag)) if tag.contains('<') => return self.broken(&xml[at..], open),
                Ok(Event::Start(tag)) => {
                    open.push((self.all.len(), String::new()));
                    self.all.push((tag.local_name().as_ref().to_owned(), None));
                    continue;
                }
                Ok(Event::Empty(tag)) => {
                    self.all.push((tag.local_name().as_ref().to_owned(), Some(String::new())));
                    continue;
                }
                Ok(Event::End(tag)) => {
                    let name = tag.local_name();
                    if let Some(depth) = open.iter().rposition(|(index, _)| self.all[*index].0 == name.as_ref()) {
                        let text = open.drain(depth..).next();
                        text.into_iter().for_each(|(index, text)| self.all[index].1 = Some(text));
                    }
                    continue;
                }
                Ok(Event::Text(text)) => text.to_string(),
                Ok(Event::CData(text)) => text.to_string(),
                Ok(Event::GeneralRef(name)) => match (&**name, name.resolve_char_ref()) {
                    (_, Ok(Some(letter))) => letter.into(),
                    ("lt", _) => "<".into(),
                    ("gt", _) => ">".into(),
                    ("amp", _) => "&".into(),
                    ("quot", _) => "\"".into(),
                    ("apos", _) => "'".into(),
                    (other, _) => format!("&{other};"),
                },
                Ok(Event::Comment(_) | Event::Decl(_) | Event::PI(_) | Event::DocType(_)) => continue,
                Ok(Event::Eof) => return None,
                // Stop if nothing was consumed; the loop would otherwise not end.
                Err(_) => return self.broken(&xml[at..], open).filter(|behind| behind.len() < xml.len()),
            };
            if let Some((_, so_far)) = open.last_mut() {
                so_far.push_str(&text);
            }
        }
    }
    /// Adds the element of a start tag at the beginning of `xml` in which a quote is not closed, and returns the text after the tag.
    /// Returns `None` if there is no start tag.
    fn broken<'a>(&mut self, xml: &'a str, open: &mut Vec<(usize, String)>) -> Option<&'a str> {
        let start = xml.find('<')?;
        let (tag, behind) = xml[start + 1..].split_once('>')?;
        let name = tag.split(|c: char| c.is_whitespace() || c == '/').next().unwrap_or_default();
        // If a comment is not closed, what follows cannot be interpreted.
        if !name.starts_with(|c: char| c.is_alphabetic() || c == '_') {
            return None;
        }
        let local = name.rsplit_once(':').map_or(name, |(_, local)| local);
        open.push((self.all.len(), String::new()));
        self.all.push((local.to_owned(), None));
        Some(behind)
    }
}

/// Replaces the characters that have a special meaning in XML.
pub(crate) fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(xml: &str, name: &str) -> Option<String> {
        Elements::of(xml).text(name).map(String::from)
    }

    #[test]
    fn finds_text() {
        let xml = "<?xml version=\"1.0\"?><a><b>1</b><c:lx at=\"2\"> 4\n</c:lx><lxx>5</lxx><empty/></a>";
        for (name, expected) in
            [("lx", Some("4")), ("lxx", Some("5")), ("l", None), ("empty", Some("")), ("b", Some("1"))]
        {
            assert_eq!(text(xml, name).as_deref(), expected, "{name}");
        }
        assert_eq!(text(&format!("<a>{}</a>", escape("b < \"c\" & d")), "a").as_deref(), Some("b < \"c\" & d"));
        assert_eq!(text("<a>&#52;<![CDATA[<2>]]></a>", "a").as_deref(), Some("4<2>"));
    }

    /// Text that looks like an element, but is none.
    #[test]
    fn comments_and_attributes_hold_no_elements() {
        let xml = "<!-- was <lx>8</lx> --><a was='<lx>8</lx>'><!-- <lx>6</lx> --><![CDATA[<lx>2</lx>]]><lx>4<!-- 8 --></lx></a>";
        assert_eq!(text(xml, "lx").as_deref(), Some("4"));
        assert_eq!(
            text("<?was <lx>8</lx>?><!DOCTYPE a [<!ENTITY b '<lx>8</lx>'>]><lx>4</lx>", "lx").as_deref(),
            Some("4")
        );
        assert_eq!(text("<!-- never closed <lx>8</lx>", "lx"), None);
    }

    /// Mistakes of existing files.
    #[test]
    fn malformed_xml_is_read_as_far_as_possible() {
        for xml in [
            "<?xml version=\"1.0\"?><a xmlns=\"u><lx>4</lx></a>",
            "<a xmlns=\"u><lx at=\"3\">4</lx><b c=\"d\"/></a>",
            "<a>no end<lx>4</lx>",
            "<lx>4</lx></a>",
            "<a/><?xml version=\"1.0\"?><b/><lx>4</lx>",
            "<a>a & b</a><lx>4</lx>",
            "<a><b></a></b><lx>4</lx>",
            "text <lx>4</lx> and < more",
        ] {
            assert_eq!(text(xml, "lx").as_deref(), Some("4"), "{xml}");
        }
        for xml in ["", "Dummy user record XML", "<lx", "<lx>4", "lx = 4", "<\"<\"<", "<<<lx", "<a \"<a \"<a \""] {
            assert_eq!(text(xml, "lx"), None, "{xml}");
        }
    }
}
