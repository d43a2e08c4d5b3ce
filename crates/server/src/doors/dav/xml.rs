//! Bodies of WebDAV: reads those of clients, none of which is trusted, and writes texts.

use quick_xml::events::{BytesStart, Event};
use quick_xml::name::ResolveResult;
use quick_xml::reader::NsReader;

use crate::error::{Result, ServerError};

/// The namespace of WebDAV.
pub(super) const DAV: &str = "DAV:";

/// The deepest element that is read.
const DEPTH_MAX: usize = 32;

/// How many elements a body has at most. File managers ask for some 30 properties.
const ELEMENTS_MAX: usize = 1024;

/// The longest namespace, in bytes. Every element has a copy of its own, and every answer repeats those that were asked for.
const NAMESPACE_LENGTH_MAX: usize = 256;

/// The name of an element: namespace and local name.
pub(super) type ElementName = (String, String);

/// An element with what is in it.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct Element {
    pub(super) name: ElementName,
    pub(super) children: Vec<Element>,
    pub(super) text: String,
}

impl Element {
    /// Tells whether it is this element of WebDAV.
    pub(super) fn is(&self, local: &str) -> bool {
        self.name.0 == DAV && self.name.1 == local
    }

    /// Returns the first child of this name of WebDAV.
    pub(super) fn child(&self, local: &str) -> Option<&Self> {
        self.children.iter().find(|child| child.is(local))
    }
}

fn invalid(reason: impl std::fmt::Display) -> ServerError {
    ServerError::Invalid { what: "XML body", reason: reason.to_string() }
}

/// Reads a body; nothing for an empty one.
pub(super) fn parse(body: &[u8]) -> Result<Option<Element>> {
    if body.iter().all(u8::is_ascii_whitespace) {
        return Ok(None);
    }
    let mut reader = NsReader::from_reader(body);
    let (mut open, mut root): (Vec<Element>, Option<Element>) = (Vec::new(), None);
    let mut count = 0;
    loop {
        let (namespace, event) = reader.read_resolved_event().map_err(invalid)?;
        let namespace = name_of(namespace)?;
        count += usize::from(matches!(event, Event::Start(_) | Event::Empty(_)));
        if count > ELEMENTS_MAX {
            return Err(invalid(format!("it has more than {ELEMENTS_MAX} elements")));
        }
        match event {
            Event::Start(tag) => {
                if open.len() == DEPTH_MAX || root.is_some() {
                    return Err(invalid(
                        "it has too many elements in each other, or behind the last",
                    ));
                }
                open.push(begin(namespace, &tag)?);
            }
            Event::Empty(tag) => {
                let element = begin(namespace, &tag)?;
                close(element, &mut open, &mut root)?;
            }
            Event::End(_) => {
                let element = open.pop().ok_or_else(|| invalid("it ends what did not begin"))?;
                close(element, &mut open, &mut root)?;
            }
            Event::Text(text) => {
                if let Some(element) = open.last_mut() {
                    element.text.push_str(&text);
                }
            }
            Event::CData(text) => {
                if let Some(element) = open.last_mut() {
                    element.text.push_str(&text);
                }
            }
            Event::GeneralRef(reference) => {
                let name: &str = &reference;
                let character = match name {
                    "amp" => Some('&'),
                    "lt" => Some('<'),
                    "gt" => Some('>'),
                    "quot" => Some('"'),
                    "apos" => Some('\''),
                    _ => reference.resolve_char_ref().ok().flatten(),
                };
                let character = character.ok_or_else(|| invalid("it refers to what is unknown"))?;
                if let Some(element) = open.last_mut() {
                    element.text.push(character);
                }
            }
            Event::DocType(_) => return Err(invalid("it declares a document type")),
            Event::Eof => break,
            _ => {}
        }
    }
    match (open.is_empty(), root) {
        (true, Some(root)) => Ok(Some(root)),
        _ => Err(invalid("it ends too early")),
    }
}

/// Returns a namespace; nothing where there is none for the prefix.
fn name_of(found: ResolveResult<'_>) -> Result<Option<String>> {
    match found {
        ResolveResult::Bound(name) if name.0.len() > NAMESPACE_LENGTH_MAX => {
            let max = NAMESPACE_LENGTH_MAX;
            Err(invalid(format!("a namespace in it is longer than {max} bytes")))
        }
        ResolveResult::Bound(name) => Ok(Some(name.0.to_owned())),
        ResolveResult::Unbound => Ok(Some(String::new())),
        ResolveResult::Unknown(_) => Ok(None),
    }
}

fn begin(namespace: Option<String>, tag: &BytesStart<'_>) -> Result<Element> {
    let namespace = namespace.ok_or_else(|| invalid("it has a prefix without a namespace"))?;
    let name = tag.name();
    check_name(name.as_ref())?;
    for attribute in tag.attributes() {
        let attribute = attribute.map_err(invalid)?;
        let key: &str = attribute.key.as_ref();
        check_name(key)?;
        // XML Names, section 2.3: a prefix cannot be bound to nothing.
        if key.starts_with("xmlns:") && attribute.value.is_empty() {
            return Err(invalid("it binds a prefix to no namespace"));
        }
    }
    let local: &str = tag.local_name().into_inner();
    Ok(Element { name: (namespace, local.to_owned()), ..Element::default() })
}

/// Refuses what is no name of an element or attribute (XML Names, section 4), which is read all the same. Written as it is into an
/// answer, it would make that ill-formed, for everybody who asks about what somebody has locked with it.
fn check_name(name: &str) -> Result<()> {
    let (prefix, local) = name.split_once(':').unwrap_or(("x", name));
    match is_plain_name(prefix) && is_plain_name(local) {
        true => Ok(()),
        false => Err(invalid("it has a name with characters that none has")),
    }
}

/// Tells whether this is a name without a colon (XML, production 5; XML Names, production 4).
fn is_plain_name(name: &str) -> bool {
    let mut characters = name.chars();
    characters.next().is_some_and(may_begin_name) && characters.all(|one| {
        may_begin_name(one)
            || matches!(
                one,
                '-' | '.' | '0'..='9' | '\u{b7}' | '\u{300}'..='\u{36f}' | '\u{203f}'..='\u{2040}'
            )
    })
}

/// Tells whether a name may begin with a character (XML, production 4), a colon aside.
fn may_begin_name(character: char) -> bool {
    matches!(
        character,
        'A'..='Z'
            | '_'
            | 'a'..='z'
            | '\u{c0}'..='\u{d6}'
            | '\u{d8}'..='\u{f6}'
            | '\u{f8}'..='\u{2ff}'
            | '\u{370}'..='\u{37d}'
            | '\u{37f}'..='\u{1fff}'
            | '\u{200c}'..='\u{200d}'
            | '\u{2070}'..='\u{218f}'
            | '\u{2c00}'..='\u{2fef}'
            | '\u{3001}'..='\u{d7ff}'
            | '\u{f900}'..='\u{fdcf}'
            | '\u{fdf0}'..='\u{fffd}'
            | '\u{10000}'..='\u{effff}'
    )
}

fn close(element: Element, open: &mut [Element], root: &mut Option<Element>) -> Result<()> {
    match (open.last_mut(), root.is_some()) {
        (Some(parent), _) => parent.children.push(element),
        (None, false) => *root = Some(element),
        (None, true) => return Err(invalid("it has two outermost elements")),
    }
    Ok(())
}

/// Writes text for XML. What XML cannot hold is replaced.
pub(super) fn escape(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            '\t' | '\n' | '\r' => escaped.push_str(&format!("&#{};", character as u32)),
            '\u{fffe}' | '\u{ffff}' => escaped.push('\u{fffd}'),
            control if control < ' ' => escaped.push('\u{fffd}'),
            other => escaped.push(other),
        }
    }
    escaped
}

/// Writes an element that was read, without its attributes.
pub(super) fn write(element: &Element) -> String {
    let (namespace, local) = &element.name;
    let children: String = element.children.iter().map(write).collect();
    let namespace = escape(namespace);
    format!("<{local} xmlns=\"{namespace}\">{}{children}</{local}>", escape(&element.text))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn elements_are_read_with_their_namespaces() {
        let body = br#"<?xml version="1.0"?><D:propfind xmlns:D="DAV:" xmlns:o="urn:o"><D:prop>
            <D:getetag/><o:x>a&amp;b&#65;</o:x></D:prop></D:propfind>"#;
        let root = parse(body).unwrap().unwrap();
        assert!(root.is("propfind"));
        let prop = root.child("prop").unwrap();
        assert!(prop.children[0].is("getetag"));
        assert_eq!(prop.children[1].name, ("urn:o".to_owned(), "x".to_owned()));
        assert_eq!(prop.children[1].text, "a&bA");
        assert_eq!(parse(b" \n").unwrap(), None);
        let body = "<\u{e9}t\u{e9}-1.0_a xmlns:n-1.\u{b7}='urn:n'><n-1.\u{b7}:\u{4e2d}\u{6587}/></\u{e9}t\u{e9}-1.0_a>";
        let root = parse(body.as_bytes()).unwrap().unwrap();
        assert_eq!(root.children[0].name, ("urn:n".to_owned(), "\u{4e2d}\u{6587}".to_owned()));
    }

    #[test]
    fn what_is_no_sound_xml_is_refused() {
        let deep = format!("{}{}", "<a>".repeat(100), "</a>".repeat(100));
        for body in [
            "x",
            "<a>",
            "<a></b>",
            "<a/><b/>",
            "<p:a/>",
            "<a xmlns:b=\"\"/>",
            "<a&b/>",
            "<a<b/>",
            "<a\">\"/>",
            "<a><1/></a>",
            "<:a/>",
            "<a:/>",
            "<a:b:c xmlns:a=\"urn:a\"/>",
            "<a b&c=\"\"/>",
            "<a b:c:d=\"\"/>",
            "<a \u{37e}=\"\"/>",
            "<!DOCTYPE a [<!ENTITY b \"c\">]><a>&b;</a>",
            "<a>&unknown;</a>",
            &deep,
        ] {
            assert!(parse(body.as_bytes()).is_err(), "{body}");
        }
    }

    #[test]
    fn body_takes_little_more_memory_than_it_has_bytes() {
        let body = |namespace: usize, elements: usize| {
            let (name, inside) = ("n".repeat(namespace), "<n:a/>".repeat(elements - 1));
            parse(format!("<n:x xmlns:n=\"{name}\">{inside}</n:x>").as_bytes())
        };
        let most = body(NAMESPACE_LENGTH_MAX, ELEMENTS_MAX).unwrap().unwrap();
        assert_eq!(most.children.len(), ELEMENTS_MAX - 1);
        for (namespace, elements, named) in [
            (NAMESPACE_LENGTH_MAX + 1, 1, "longer than 256 bytes"),
            (1, ELEMENTS_MAX + 1, "more than 1024 elements"),
        ] {
            let refused = body(namespace, elements).unwrap_err().to_string();
            assert!(refused.contains(named), "{refused}");
        }
    }

    #[test]
    fn texts_are_escaped() {
        assert_eq!(escape("<a b=\"c\">&\u{1}"), "&lt;a b=&quot;c&quot;&gt;&amp;\u{fffd}");
    }
}
