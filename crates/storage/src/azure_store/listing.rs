//! Reads the XML in which Azure lists blobs.

use quick_xml::Reader;
use quick_xml::events::Event;

/// A page of a list.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Page {
    pub(super) blobs: Vec<Blob>,
    /// Where the list goes on; empty at its end.
    pub(super) next: String,
}

/// A line of a list.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Blob {
    pub(super) name: String,
    pub(super) size: u64,
}

/// Reads a page. What has no size is no blob.
pub(super) fn parse(body: &[u8]) -> Result<Page, String> {
    let unreadable = |error: &dyn std::fmt::Display| format!("a list that cannot be read: {error}");
    // Azure begins with a mark of the byte order.
    let body = body.strip_prefix(b"\xef\xbb\xbf").unwrap_or(body);
    let mut reader = Reader::from_reader(body);
    let (mut page, mut path, mut text) = (Page::default(), Vec::<String>::new(), String::new());
    let (mut name, mut size, mut is_whole) = (None, None, false);
    loop {
        match reader.read_event().map_err(|error| unreadable(&error))? {
            Event::Start(start) => {
                path.push(start.local_name().as_ref().to_owned());
                text.clear();
            }
            Event::Text(part) => text.push_str(&part),
            // No name of ours has a character that is written so.
            Event::GeneralRef(_) => text.push('?'),
            Event::End(_) => {
                let segments: Vec<&str> = path.iter().map(String::as_str).collect();
                match segments[..] {
                    [.., "Blob", "Name"] => name = Some(std::mem::take(&mut text)),
                    [.., "Properties", "Content-Length"] => size = text.parse().ok(),
                    [.., "Blobs", "Blob"] => {
                        if let (Some(name), Some(size)) = (name.take(), size.take()) {
                            page.blobs.push(Blob { name, size });
                        }
                    }
                    [_, "NextMarker"] => page.next = std::mem::take(&mut text),
                    ["EnumerationResults"] => is_whole = true,
                    _ => {}
                }
                path.pop();
            }
            Event::Eof if is_whole => return Ok(page),
            Event::Eof => return Err("a list that breaks off".to_owned()),
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIST: &str = "\u{feff}<?xml version=\"1.0\"?><EnumerationResults ContainerName=\"c\"><Prefix>a</Prefix>\
        <Blobs><Blob><Name>a/b</Name><Properties><Content-Length>7</Content-Length><Etag>x</Etag>\
        </Properties></Blob><BlobPrefix><Name>a/c/</Name></BlobPrefix></Blobs>\
        <NextMarker>2!96</NextMarker></EnumerationResults>";

    #[test]
    fn a_page_is_read_and_a_broken_one_is_an_error() {
        let page = parse(LIST.as_bytes()).unwrap();
        assert_eq!(page.blobs, [Blob { name: "a/b".to_owned(), size: 7 }]);
        assert_eq!(page.next, "2!96");
        for end in [0, 60, 200, LIST.len() - 3] {
            assert!(parse(&LIST.as_bytes()[..end]).is_err(), "{end}");
        }
        let last = LIST.replace("<NextMarker>2!96</NextMarker>", "<NextMarker />");
        assert_eq!(parse(last.as_bytes()).unwrap().next, "");
    }
}
