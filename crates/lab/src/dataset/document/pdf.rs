//! PDF 1.4: pages with deflated streams of text, pictures as JPEG, and a table that says where each object is.

use std::io::Write;

use flate2::Compression;
use flate2::write::ZlibEncoder;

use super::{Document, Paragraph};
use crate::dataset::jpeg::photo::Photo;

/// Points of a page of A4.
const WIDTH: u32 = 595;
const HEIGHT: u32 = 842;
const MARGIN: u32 = 60;

/// Points from one line to the next, and letters of a line.
const LINE_HEIGHT: u32 = 14;
const LINE_LETTERS: usize = 88;

/// Points of a picture's height.
const PICTURE_HEIGHT: u32 = 300;

/// Objects that every document has: 1 is the catalogue, 2 the list of pages, 3 the font.
const FIRST_FREE: usize = 4;

/// What is on a page.
#[derive(Default)]
struct Sheet<'a> {
    lines: Vec<&'a str>,
    pictures: Vec<&'a Photo>,
}

pub(super) fn write(document: &Document) -> Vec<u8> {
    let sheets = sheets(&document.paragraphs);
    let mut file = File::new();
    let mut pages = Vec::new();
    let mut next = FIRST_FREE;
    for sheet in &sheets {
        let [page, stream] = [next, next + 1];
        let names: Vec<_> = (0..sheet.pictures.len()).map(|number| next + 2 + number).collect();
        next += 2 + names.len();
        let resources: String = names.iter().map(|name| format!("/P{name} {name} 0 R ")).collect();
        file.object(page, &format!(
            "<< /Type /Page /Parent 2 0 R /MediaBox [0 0 {WIDTH} {HEIGHT}] /Contents {stream} 0 R \
             /Resources << /Font << /F1 3 0 R >> /XObject << {resources}>> >> >>"
        ));
        file.stream(stream, "/Filter /FlateDecode", &deflated(&sheet.content(&names)));
        for (name, photo) in names.iter().zip(&sheet.pictures) {
            let about = format!(
                "/Type /XObject /Subtype /Image /Width {} /Height {} /ColorSpace /DeviceRGB /BitsPerComponent 8 /Filter /DCTDecode",
                photo.width, photo.height
            );
            file.stream(*name, &about, &photo.bytes);
        }
        pages.push(format!("{page} 0 R"));
    }
    file.object(1, "<< /Type /Catalog /Pages 2 0 R >>");
    let (kids, count) = (pages.join(" "), pages.len());
    file.object(2, &format!("<< /Type /Pages /Kids [{kids}] /Count {count} >>"));
    file.object(3, "<< /Type /Font /Subtype /Type1 /BaseFont /Times-Roman >>");
    let Document { title, author, saves, .. } = document;
    let info = format!("<< /Title ({title}) /Author ({author}) /Keywords (save {saves}) >>");
    file.object(next, &info);
    file.finish(next)
}

/// Lays paragraphs out on pages.
fn sheets(paragraphs: &[Paragraph]) -> Vec<Sheet<'_>> {
    let mut layout = Layout { sheets: Vec::new(), left: 0 };
    for paragraph in paragraphs {
        if let Some(photo) = &paragraph.picture {
            layout.sheet_for(PICTURE_HEIGHT).pictures.push(photo);
        }
        for line in lines(&paragraph.words) {
            layout.sheet_for(LINE_HEIGHT).lines.push(line);
        }
    }
    layout.sheets
}

struct Layout<'a> {
    sheets: Vec<Sheet<'a>>,
    /// How many points the last one has left.
    left: u32,
}

impl<'a> Layout<'a> {
    fn sheet_for(&mut self, height: u32) -> &mut Sheet<'a> {
        if self.left < height || self.sheets.is_empty() {
            self.sheets.push(Sheet::default());
            self.left = HEIGHT - 2 * MARGIN;
        }
        self.left -= height;
        self.sheets.last_mut().expect("one was added where there was none")
    }
}

/// Breaks words into lines.
fn lines(mut words: &str) -> Vec<&str> {
    let mut lines = Vec::new();
    while words.len() > LINE_LETTERS {
        let end = words[..LINE_LETTERS].rfind(' ').map_or(LINE_LETTERS, |space| space + 1);
        lines.push(&words[..end]);
        words = &words[end..];
    }
    lines.push(words);
    lines
}

impl Sheet<'_> {
    /// Draws pictures from the top on, and lines below them.
    fn content(&self, names: &[usize]) -> String {
        let (mut text, mut y) = (String::new(), HEIGHT - MARGIN);
        for (name, photo) in names.iter().zip(&self.pictures) {
            y -= PICTURE_HEIGHT;
            let width = (PICTURE_HEIGHT - 10) * photo.width / photo.height.max(1);
            let height = PICTURE_HEIGHT - 10;
            text.push_str(&format!("q {width} 0 0 {height} {MARGIN} {y} cm /P{name} Do Q\n"));
        }
        text.push_str(&format!("BT /F1 11 Tf {LINE_HEIGHT} TL {MARGIN} {y} Td\n"));
        for line in &self.lines {
            text.push_str(&format!("({line}) Tj T*\n"));
        }
        text + "ET\n"
    }
}

fn deflated(content: &str) -> Vec<u8> {
    let mut encoder = ZlibEncoder::new(Vec::new(), Compression::default());
    encoder
        .write_all(content.as_bytes())
        .and_then(|()| encoder.finish())
        .expect("memory takes every byte")
}

/// A file that is being written, and where its objects are.
struct File {
    bytes: Vec<u8>,
    places: Vec<(usize, usize)>,
}

impl File {
    fn new() -> Self {
        // Bytes above 127 tell programs that it is no text.
        Self { bytes: b"%PDF-1.4\n%\xe2\xe3\xcf\xd3\n".to_vec(), places: Vec::new() }
    }

    fn object(&mut self, number: usize, content: &str) {
        self.places.push((number, self.bytes.len()));
        self.bytes.extend(format!("{number} 0 obj\n{content}\nendobj\n").as_bytes());
    }

    fn stream(&mut self, number: usize, about: &str, content: &[u8]) {
        self.places.push((number, self.bytes.len()));
        let length = content.len();
        let head = format!("{number} 0 obj\n<< {about} /Length {length} >>\nstream\n");
        self.bytes.extend(head.as_bytes());
        self.bytes.extend(content);
        self.bytes.extend(b"\nendstream\nendobj\n");
    }

    fn finish(mut self, info: usize) -> Vec<u8> {
        self.places.sort_unstable();
        let (start, count) = (self.bytes.len(), self.places.len() + 1);
        let mut table = format!("xref\n0 {count}\n0000000000 65535 f \n");
        for (_, place) in &self.places {
            table.push_str(&format!("{place:010} 00000 n \n"));
        }
        table.push_str(&format!(
            "trailer\n<< /Size {count} /Root 1 0 R /Info {info} 0 R >>\nstartxref\n{start}\n%%EOF\n"
        ));
        self.bytes.extend(table.as_bytes());
        self.bytes
    }
}
