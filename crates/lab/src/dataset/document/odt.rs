//! OpenDocument text, as OpenOffice lays it out: its type first, and every part with the time of the last save.

use std::fmt::Write;

use super::Document;
use crate::dataset::zip::{DosTime, Zip};

const TYPE: &str = "application/vnd.oasis.opendocument.text";
const SPACES: &str = "urn:oasis:names:tc:opendocument:xmlns";
const XML: &str = "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n";

pub(super) fn write(document: &Document) -> Vec<u8> {
    let mut zip = Zip::new(DosTime::of_save(document.saves));
    zip.store("mimetype", TYPE.as_bytes());
    zip.deflate("content.xml", content(document).as_bytes());
    for (number, photo) in document.pictures().enumerate() {
        zip.store(&format!("Pictures/{}.jpg", number + 1), &photo.bytes);
    }
    zip.deflate("meta.xml", meta(document).as_bytes());
    zip.deflate("styles.xml", styles().as_bytes());
    zip.deflate("META-INF/manifest.xml", manifest(document).as_bytes());
    zip.finish()
}

fn content(document: &Document) -> String {
    let mut text = format!(
        "{XML}<office:document-content xmlns:office=\"{SPACES}:office:1.0\" xmlns:text=\"{SPACES}:text:1.0\" \
         xmlns:draw=\"{SPACES}:drawing:1.0\" xmlns:svg=\"{SPACES}:svg-compatible:1.0\" xmlns:xlink=\"http://www.w3.org/1999/xlink\" \
         office:version=\"1.2\"><office:body><office:text><text:h text:outline-level=\"1\">{}</text:h>",
        document.title
    );
    let mut pictures = 0;
    for paragraph in &document.paragraphs {
        text.push_str("<text:p text:style-name=\"Text_20_body\">");
        if let Some(photo) = &paragraph.picture {
            pictures += 1;
            let height = 17.0 * f64::from(photo.height) / f64::from(photo.width);
            // Writing to a String cannot fail.
            let _ok = write!(
                text,
                "<draw:frame draw:name=\"Picture {pictures}\" text:anchor-type=\"as-char\" svg:width=\"17cm\" svg:height=\"{height:.2}cm\">\
                 <draw:image xlink:href=\"Pictures/{pictures}.jpg\" xlink:type=\"simple\" xlink:show=\"embed\" xlink:actuate=\"onLoad\"/>\
                 </draw:frame>"
            );
        }
        text.push_str(&paragraph.words);
        text.push_str("</text:p>");
    }
    text + "</office:text></office:body></office:document-content>"
}

fn meta(document: &Document) -> String {
    let Document { title, author, saves, paragraphs, .. } = document;
    format!(
        "{XML}<office:document-meta xmlns:office=\"{SPACES}:office:1.0\" xmlns:meta=\"{SPACES}:meta:1.0\" \
         xmlns:dc=\"http://purl.org/dc/elements/1.1/\" office:version=\"1.2\"><office:meta><dc:title>{title}</dc:title>\
         <dc:creator>{author}</dc:creator><dc:date>{}</dc:date><meta:editing-cycles>{}</meta:editing-cycles>\
         <meta:document-statistic meta:paragraph-count=\"{}\"/></office:meta></office:document-meta>",
        document.saved_at(),
        saves + 1,
        paragraphs.len()
    )
}

fn styles() -> String {
    format!(
        "{XML}<office:document-styles xmlns:office=\"{SPACES}:office:1.0\" xmlns:style=\"{SPACES}:style:1.0\" \
         xmlns:fo=\"{SPACES}:xsl-fo-compatible:1.0\" office:version=\"1.2\"><office:styles>\
         <style:style style:name=\"Text_20_body\" style:display-name=\"Text body\" style:family=\"paragraph\">\
         <style:paragraph-properties fo:margin-bottom=\"0.212cm\" fo:text-align=\"justify\"/></style:style>\
         </office:styles></office:document-styles>"
    )
}

fn manifest(document: &Document) -> String {
    let mut text = format!(
        "{XML}<manifest:manifest xmlns:manifest=\"{SPACES}:manifest:1.0\" manifest:version=\"1.2\">\
         <manifest:file-entry manifest:media-type=\"{TYPE}\" manifest:full-path=\"/\"/>"
    );
    for part in ["content.xml", "meta.xml", "styles.xml"] {
        let _ok = write!(
            text,
            "<manifest:file-entry manifest:media-type=\"text/xml\" manifest:full-path=\"{part}\"/>"
        );
    }
    for number in 1..=document.pictures().count() {
        let _ok = write!(
            text,
            "<manifest:file-entry manifest:media-type=\"image/jpeg\" manifest:full-path=\"Pictures/{number}.jpg\"/>"
        );
    }
    text + "</manifest:manifest>"
}
