use std::collections::BTreeSet;
use std::io::Read;

use super::*;
use crate::dataset::zip;

fn document(format: Format, size: u64) -> Document {
    Document::new(format, size, &Prose::new(), &mut Random::new(11))
}

#[test]
fn every_format_has_about_the_size_that_was_asked_for() {
    for format in [Format::Docx, Format::Odt, Format::Rtf, Format::Pdf] {
        for size in [20_000, 150_000] {
            let bytes = document(format, size).bytes().len() as f64;
            assert!((0.7..1.4).contains(&(bytes / size as f64)), "{format:?}: {bytes} of {size}");
        }
    }
}

#[test]
fn an_edit_changes_the_texts_of_an_office_document_and_none_of_its_pictures() {
    for (format, texts) in [
        (Format::Docx, ["word/document.xml", "docProps/core.xml"]),
        (Format::Odt, ["content.xml", "meta.xml"]),
    ] {
        let (prose, mut random) = (Prose::new(), Random::new(4));
        let mut edited = document(format, 120_000);
        let pictures = edited.pictures().count();
        let old = zip::tests::read(&edited.bytes());
        edited.edit(&prose, &mut random);
        assert_eq!(edited.pictures().count(), pictures, "this seed adds none");
        let new = zip::tests::read(&edited.bytes());
        let names = |files: &[(String, Vec<u8>)]| -> Vec<String> {
            files.iter().map(|(name, _)| name.clone()).collect()
        };
        assert_eq!(names(&old), names(&new));
        let jpegs = old.iter().filter(|(_, content)| content.starts_with(&[0xff, 0xd8, 0xff]));
        assert_eq!(jpegs.count(), pictures);
        let differing: Vec<_> = old
            .iter()
            .zip(&new)
            .filter(|(one, other)| one != other)
            .map(|(one, _)| &one.0)
            .collect();
        assert_eq!(differing, texts);
    }
}

/// Counts what is opened and what is closed of each element.
#[test]
fn texts_of_office_documents_are_elements_in_elements() {
    for format in [Format::Docx, Format::Odt] {
        for (name, content) in zip::tests::read(&document(format, 100_000).bytes()) {
            if !name.ends_with(".xml") && !name.ends_with(".rels") {
                continue;
            }
            let text = String::from_utf8(content).unwrap();
            let mut open = Vec::new();
            for tag in text.split('<').skip(2) {
                let tag = tag.split('>').next().unwrap();
                let element = tag.trim_start_matches('/').split([' ', '/']).next().unwrap();
                match (tag.starts_with('/'), tag.ends_with('/')) {
                    (true, _) => assert_eq!(open.pop(), Some(element), "{name}"),
                    (false, true) => {}
                    (false, false) => open.push(element),
                }
            }
            assert!(open.is_empty(), "{name}: {open:?}");
        }
    }
}

#[test]
fn the_table_of_a_pdf_leads_to_its_objects_and_its_streams_inflate_to_all_words() {
    let document = document(Format::Pdf, 150_000);
    let bytes = document.bytes();
    let text: String = bytes.iter().map(|byte| char::from(*byte)).collect();
    let start: usize =
        text.rsplit("startxref\n").next().unwrap().lines().next().unwrap().parse().unwrap();
    let mut table = text[start_of(&text, start)..].lines();
    assert_eq!(table.next(), Some("xref"));
    let count: usize = table.next().unwrap().strip_prefix("0 ").unwrap().parse().unwrap();
    let (mut words, mut jpegs) = (BTreeSet::new(), 0);
    for (number, line) in table.take(count).enumerate().skip(1) {
        let place: usize = line.split(' ').next().unwrap().parse().unwrap();
        let head = format!("{number} 0 obj\n");
        assert_eq!(bytes[place..place + head.len()], *head.as_bytes());
        let object = &bytes[place + head.len()..];
        let about: String = object.iter().take(300).map(|byte| char::from(*byte)).collect();
        let Some(at) = about.find("stream\n") else { continue };
        let length = about.split("/Length ").nth(1).unwrap().split(' ').next().unwrap();
        let stream = &object[at + 7..][..length.parse().unwrap()];
        assert!(object[at + 7 + stream.len()..].starts_with(b"\nendstream\nendobj\n"));
        if about.contains("/DCTDecode") {
            assert_eq!(stream[..2], [0xff, 0xd8]);
            jpegs += 1;
            continue;
        }
        let mut plain = String::new();
        flate2::read::ZlibDecoder::new(stream).read_to_string(&mut plain).unwrap();
        words.extend(plain.split(['(', ')', ' ']).map(str::to_owned));
    }
    assert_eq!(jpegs, document.pictures().count());
    let written = document.paragraphs.iter().flat_map(|one| one.words.split(' '));
    assert!(written.clone().count() > 500);
    for word in written {
        assert!(words.contains(word), "{word}");
    }
}

/// Bytes above 127 take two in a text.
fn start_of(text: &str, place: usize) -> usize {
    text.char_indices().nth(place).unwrap().0
}

#[test]
fn rich_text_closes_every_group_and_has_the_bytes_of_its_pictures() {
    let document = document(Format::Rtf, 150_000);
    let text = String::from_utf8(document.bytes()).unwrap();
    assert_eq!(text.matches('{').count(), text.matches('}').count());
    let digits = text.split("\\pict").skip(1).map(|picture| {
        let body = picture.split_once("\r\n").unwrap().1.split('}').next().unwrap();
        body.chars().filter(char::is_ascii_hexdigit).count() / 2
    });
    let lengths: Vec<_> = document.pictures().map(|photo| photo.bytes.len()).collect();
    assert!(!lengths.is_empty() && digits.eq(lengths));
}
