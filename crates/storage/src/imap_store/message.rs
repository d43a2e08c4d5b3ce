//! An object as a message, and back.
//!
//! The bytes stand in the body as Base64 in lines of 76 characters, which every server keeps as they are, and of which
//! a part can be asked for: 57 bytes are a line of 78 characters with its end.

use std::ops::Range;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;

use super::index::Known;
use crate::key::ObjectKey;

const LINE_BYTES: u64 = 57;
const LINE_TEXT: u64 = 78;

/// What `Message-ID` ends with.
const HOST: &str = "@syncline>";

/// Writes the message of an object.
pub(super) fn encode(key: &ObjectKey, token: &str, bytes: &Bytes) -> Vec<u8> {
    let mut text = format!(
        "From: <syncline@localhost>\r\nSubject: [{key}]\r\nMessage-ID: <{token}{HOST}\r\n\
         X-Syncline-Size: {}\r\nMIME-Version: 1.0\r\nContent-Type: application/octet-stream\r\n\
         Content-Transfer-Encoding: base64\r\n\r\n",
        bytes.len()
    );
    let line_bytes = usize::try_from(LINE_BYTES).expect("57 fits");
    text.reserve(bytes.len() / line_bytes * 78 + 80);
    for line in bytes.chunks(line_bytes) {
        STANDARD.encode_string(line, &mut text);
        text += "\r\n";
    }
    text.into_bytes()
}

/// Reads the header of a message; nothing when it is not the message of an object.
pub(super) fn parse_header(header: &[u8]) -> Option<(ObjectKey, Known)> {
    let text = std::str::from_utf8(header).ok()?;
    // A long line may have been folded, which adds white space that no key has.
    let unfolded = text.replace("\r\n ", "").replace("\r\n\t", "");
    let field = |wanted: &str| {
        unfolded.lines().find_map(|line| {
            let (name, value) = line.split_once(':')?;
            name.eq_ignore_ascii_case(wanted).then(|| value.trim())
        })
    };
    let key = ObjectKey::new(field("Subject")?.strip_prefix('[')?.strip_suffix(']')?).ok()?;
    let token = field("Message-ID")?.strip_prefix('<')?.strip_suffix(HOST)?.to_owned();
    let size = field("X-Syncline-Size")?.parse().ok()?;
    Some((key, Known { token, size }))
}

/// Returns which part of the body holds the bytes of `range`, which is not empty.
pub(super) fn text_range(range: &Range<u64>) -> Range<u64> {
    range.start / LINE_BYTES * LINE_TEXT..range.end.div_ceil(LINE_BYTES) * LINE_TEXT
}

/// Returns the bytes of `range` out of that part of the body; nothing when it is not whole.
pub(super) fn decode(text: &[u8], range: &Range<u64>, size: u64) -> Option<Bytes> {
    let encoded: Vec<u8> =
        text.iter().filter(|byte| !byte.is_ascii_whitespace()).copied().collect();
    let bytes = STANDARD.decode(encoded).ok()?;
    let first = range.start / LINE_BYTES * LINE_BYTES;
    let expected = (range.end.div_ceil(LINE_BYTES) * LINE_BYTES).min(size) - first;
    if bytes.len() as u64 != expected {
        return None;
    }
    let start = usize::try_from(range.start - first).ok()?;
    let end = usize::try_from(range.end - first).ok()?;
    Some(Bytes::from(bytes).slice(start..end))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn object(length: usize) -> Bytes {
        (0..length).map(|index| (index * 7 % 251) as u8).collect()
    }

    fn body(message: &[u8]) -> &[u8] {
        let at = message.windows(4).position(|window| window == b"\r\n\r\n").unwrap();
        &message[at + 4..]
    }

    #[test]
    fn every_part_of_every_object_is_read_back() {
        let key = ObjectKey::new("log/1/r0").unwrap();
        for length in [1, 56, 57, 58, 113, 114, 115, 1000] {
            let bytes = object(length);
            let message = encode(&key, "t0ken", &bytes);
            let (size, body) = (length as u64, body(&message));
            for (start, end) in [(0, size), (0, 1), (size - 1, size), (size / 2, size)] {
                let range = start..end;
                let text = text_range(&range);
                let to = usize::try_from(text.end).unwrap().min(body.len());
                let part = &body[usize::try_from(text.start).unwrap()..to];
                let expected = bytes.slice(start as usize..end as usize);
                assert_eq!(decode(part, &range, size), Some(expected), "{range:?} of {length}");
                assert_eq!(decode(&part[..part.len() / 2], &range, size), None);
            }
        }
    }

    #[test]
    fn a_header_is_read_back_also_when_it_was_folded() {
        let key = ObjectKey::new("packs/ab/x").unwrap();
        let message = encode(&key, "t0ken", &object(12));
        let known = Known { token: "t0ken".to_owned(), size: 12 };
        assert_eq!(parse_header(&message), Some((key, known.clone())));
        let folded = b"subject: [packs/ab\r\n /x]\r\nMESSAGE-ID:\r\n <t0ken@syncline>\r\n\
                       x-syncline-size: 12\r\n\r\n";
        assert_eq!(parse_header(folded).unwrap().1, known);
    }

    #[test]
    fn other_peoples_mail_is_not_an_object() {
        for header in [
            "Subject: [a\r\nMessage-ID: <t@syncline>\r\nX-Syncline-Size: 1\r\n",
            "Subject: [../a]\r\nMessage-ID: <t@syncline>\r\nX-Syncline-Size: 1\r\n",
            "Subject: [a]\r\nMessage-ID: <t@example.org>\r\nX-Syncline-Size: 1\r\n",
            "Subject: [a]\r\nMessage-ID: <t@syncline>\r\nX-Syncline-Size: -1\r\n",
            "Subject: hello\r\n",
            "",
        ] {
            assert_eq!(parse_header(header.as_bytes()), None, "{header}");
        }
    }
}
