//! Rich text, which the thesis counts among office documents: nothing in it is compressed, and pictures are written in hexadecimal digits.

use super::Document;

/// Digits to a line.
const LINE: usize = 128;

/// Twentieths of a point of the width of text.
const TEXT_WIDTH: u32 = 9000;

pub(super) fn write(document: &Document) -> Vec<u8> {
    let Document { title, author, .. } = document;
    let mut text = format!(
        "{{\\rtf1\\ansi\\ansicpg1252\\deff0{{\\fonttbl{{\\f0\\froman Times New Roman;}}}}\r\n\
         {{\\info{{\\title {title}}}{{\\author {author}}}{{\\version{}}}}}\r\n\
         \\pard\\qc\\b\\fs52 {title}\\par\r\n\\pard\\qj\\b0\\fs24\r\n",
        document.saves + 1
    )
    .into_bytes();
    for paragraph in &document.paragraphs {
        if let Some(photo) = &paragraph.picture {
            let height = TEXT_WIDTH / photo.width * photo.height;
            let head = format!(
                "{{\\pict\\jpegblip\\picw{}\\pich{}\\picwgoal{TEXT_WIDTH}\\pichgoal{height}\r\n",
                photo.width, photo.height
            );
            text.extend(head.as_bytes());
            for (place, byte) in photo.bytes.iter().enumerate() {
                text.extend([byte >> 4, byte & 15].map(digit));
                if (place + 1) % (LINE / 2) == 0 {
                    text.extend(b"\r\n");
                }
            }
            text.extend(b"}\r\n");
        }
        text.extend(paragraph.words.as_bytes());
        text.extend(b"\\par\r\n");
    }
    text.extend(b"}\r\n");
    text
}

fn digit(value: u8) -> u8 {
    b"0123456789abcdef"[usize::from(value)]
}
