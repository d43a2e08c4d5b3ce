//! Reads the answers of `PROPFIND`, none of which is trusted.

use quick_xml::events::Event;
use quick_xml::name::ResolveResult;
use quick_xml::reader::NsReader;

use crate::open::address::decoded;

const DAV: &str = "DAV:";

/// What stands at a path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Resource {
    /// The path on the server, decoded, without a slash at its ends.
    pub(super) path: String,
    /// The size of a file; nothing for a folder.
    pub(super) size: Option<u64>,
}

/// Returns a path of the server in the form of [`Resource::path`].
pub(super) fn path_of(path: &str) -> String {
    decoded(path.trim_matches('/')).unwrap_or_default()
}

/// What is known of the resource that is being read.
#[derive(Default)]
struct Draft {
    href: String,
    length: String,
    is_folder: bool,
}

impl Draft {
    fn finish(self) -> Result<Resource, String> {
        // Some servers give whole addresses instead of paths.
        let path = match self.href.trim().split_once("://") {
            Some((_, after)) => after.find('/').map_or("", |slash| &after[slash..]),
            None => self.href.trim(),
        };
        let path = decoded(path.trim_matches('/')).ok_or("a list with an unreadable path")?;
        let size = match self.is_folder {
            true => None,
            // A file of no bytes is without length at some servers.
            false if self.length.trim().is_empty() => Some(0),
            false => Some(self.length.trim().parse().map_err(|_| "a list with a bad length")?),
        };
        Ok(Resource { path, size })
    }
}

/// Reads the body of a 207.
pub(super) fn parse(body: &[u8]) -> Result<Vec<Resource>, String> {
    let mut reader = NsReader::from_reader(body);
    let (mut resources, mut draft) = (Vec::new(), None::<Draft>);
    let mut inside = String::new();
    let mut is_multistatus = false;
    loop {
        let (namespace, event) = reader
            .read_resolved_event()
            .map_err(|error| format!("a list that is not XML: {error}"))?;
        let is_dav = matches!(namespace, ResolveResult::Bound(name) if name.0 == DAV);
        match event {
            Event::Start(tag) | Event::Empty(tag) if is_dav => {
                tag.local_name().as_ref().clone_into(&mut inside);
                match (inside.as_str(), &mut draft) {
                    ("multistatus", _) => is_multistatus = true,
                    ("response", draft) => *draft = Some(Draft::default()),
                    ("collection", Some(draft)) => draft.is_folder = true,
                    _ => {}
                }
            }
            Event::End(tag) if is_dav => {
                inside.clear();
                if tag.local_name().as_ref() == "response" {
                    let draft = draft.take().ok_or("a list that ends what it did not begin")?;
                    resources.push(draft.finish()?);
                }
            }
            Event::Text(text) => add(&mut draft, &inside, &text),
            Event::GeneralRef(reference) => {
                let text = match &*reference {
                    "amp" => "&",
                    "lt" => "<",
                    "gt" => ">",
                    "quot" => "\"",
                    "apos" => "'",
                    _ => return Err("a list with an entity of its own".to_owned()),
                };
                add(&mut draft, &inside, text);
            }
            Event::Eof => break,
            _ => {}
        }
    }
    // A list that was cut off is no list.
    if !is_multistatus || draft.is_some() {
        return Err("a list that is none, or is cut off".to_owned());
    }
    Ok(resources)
}

fn add(draft: &mut Option<Draft>, inside: &str, text: &str) {
    match (draft, inside) {
        (Some(draft), "href") => draft.href += text,
        (Some(draft), "getcontentlength") => draft.length += text,
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn list(inside: &str) -> String {
        format!("<?xml version=\"1.0\"?><D:multistatus xmlns:D=\"DAV:\">{inside}</D:multistatus>")
    }

    fn response(href: &str, properties: &str) -> String {
        format!(
            "<D:response><D:href>{href}</D:href><D:propstat><D:prop>{properties}</D:prop>\
             <D:status>HTTP/1.1 200 OK</D:status></D:propstat></D:response>"
        )
    }

    #[test]
    fn files_and_folders_are_read_under_any_prefix_and_any_form_of_address() {
        let folder = "<D:resourcetype><D:collection/></D:resourcetype>";
        let file = "<D:resourcetype/><D:getcontentlength>12</D:getcontentlength>";
        let body = list(&(response("/a%20b/&amp;/", folder) + &response("http://h:1/a/x", file)));
        let expected = [
            Resource { path: "a b/&".to_owned(), size: None },
            Resource { path: "a/x".to_owned(), size: Some(12) },
        ];
        assert_eq!(parse(body.as_bytes()).unwrap(), expected);
        let other = body.replace("D:", "q:").replace("xmlns:D", "xmlns:q");
        assert_eq!(parse(other.as_bytes()).unwrap(), expected);
        let foreign = body.replace("\"DAV:\"", "\"urn:other\"");
        assert!(parse(foreign.as_bytes()).is_err(), "names of another namespace mean nothing");
    }

    #[test]
    fn what_is_broken_or_hostile_is_refused() {
        let file = "<D:resourcetype/><D:getcontentlength>-1</D:getcontentlength>";
        let cut = list(&response("/a", ""));
        for body in [
            "",
            "<html></html>",
            &list(&response("/a", file)),
            &list(&response("/%zz", "")),
            &list(&response("&evil;", "")),
            &cut[..cut.len() - 60],
            &list("</D:response>"),
        ] {
            assert!(parse(body.as_bytes()).is_err(), "{body}");
        }
    }
}
