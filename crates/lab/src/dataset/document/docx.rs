//! Office Open XML, as Word lays it out: texts first, pictures behind them, as they are.

use std::fmt::Write;

use super::{Document, Paragraph};
use crate::dataset::zip::{DosTime, Zip};

pub(crate) const XML: &str = "<?xml version=\"1.0\" encoding=\"UTF-8\" standalone=\"yes\"?>\r\n";
pub(crate) const PACKAGE: &str = "http://schemas.openxmlformats.org/package/2006";
pub(crate) const OFFICE: &str =
    "http://schemas.openxmlformats.org/officeDocument/2006/relationships";
const WORD: &str = "http://schemas.openxmlformats.org/wordprocessingml/2006/main";
const DRAWING: &str = "http://schemas.openxmlformats.org/drawingml/2006";
const PARTS: &str = "application/vnd.openxmlformats-officedocument.wordprocessingml";

/// A pixel is so many of Word's smallest lengths where a picture is as wide as the text.
const TEXT_WIDTH: u32 = 5_760_720;

pub(super) fn write(document: &Document) -> Vec<u8> {
    let mut zip = Zip::new(DosTime::NONE);
    zip.deflate("[Content_Types].xml", types().as_bytes());
    let part = "officeDocument/2006/relationships/officeDocument";
    zip.deflate("_rels/.rels", relations_of_package("word/document.xml", part).as_bytes());
    zip.deflate("word/_rels/document.xml.rels", relations(document).as_bytes());
    zip.deflate("word/document.xml", body(document).as_bytes());
    for (number, photo) in document.pictures().enumerate() {
        zip.store(&format!("word/media/image{}.jpeg", number + 1), &photo.bytes);
    }
    zip.deflate("word/styles.xml", styles().as_bytes());
    zip.deflate("docProps/core.xml", core(document).as_bytes());
    zip.finish()
}

fn types() -> String {
    format!(
        "{XML}<Types xmlns=\"{PACKAGE}/content-types\">\
         <Default Extension=\"rels\" ContentType=\"application/vnd.openxmlformats-package.relationships+xml\"/>\
         <Default Extension=\"xml\" ContentType=\"application/xml\"/><Default Extension=\"jpeg\" ContentType=\"image/jpeg\"/>\
         <Override PartName=\"/word/document.xml\" ContentType=\"{PARTS}.document.main+xml\"/>\
         <Override PartName=\"/word/styles.xml\" ContentType=\"{PARTS}.styles+xml\"/>\
         <Override PartName=\"/docProps/core.xml\" ContentType=\"application/vnd.openxmlformats-package.core-properties+xml\"/>\
         </Types>"
    )
}

/// What a package begins with: where its document is, and what is known of it.
pub(crate) fn relations_of_package(target: &str, part: &str) -> String {
    format!(
        "{XML}<Relationships xmlns=\"{PACKAGE}/relationships\">\
         <Relationship Id=\"rId1\" Type=\"http://schemas.openxmlformats.org/{part}\" Target=\"{target}\"/>\
         <Relationship Id=\"rId2\" Type=\"{PACKAGE}/relationships/metadata/core-properties\" Target=\"docProps/core.xml\"/>\
         </Relationships>"
    )
}

fn relations(document: &Document) -> String {
    let mut text = format!(
        "{XML}<Relationships xmlns=\"{PACKAGE}/relationships\">\
         <Relationship Id=\"rId1\" Type=\"{OFFICE}/styles\" Target=\"styles.xml\"/>"
    );
    for number in 1..=document.pictures().count() {
        // Writing to a String cannot fail, here as below.
        let _ok = write!(
            text,
            "<Relationship Id=\"rId{}\" Type=\"{OFFICE}/image\" Target=\"media/image{number}.jpeg\"/>",
            number + 1
        );
    }
    text + "</Relationships>"
}

fn body(document: &Document) -> String {
    let mut text = format!(
        "{XML}<w:document xmlns:w=\"{WORD}\" xmlns:r=\"{OFFICE}\" xmlns:wp=\"{DRAWING}/wordprocessingDrawing\" \
         xmlns:a=\"{DRAWING}/main\" xmlns:pic=\"{DRAWING}/picture\"><w:body>\
         <w:p><w:pPr><w:pStyle w:val=\"Title\"/></w:pPr><w:r><w:t>{}</w:t></w:r></w:p>",
        document.title
    );
    let mut pictures = 0;
    for paragraph in &document.paragraphs {
        // Word gives what was written in one session a number.
        let session = 0x0045_1a2b + paragraph.save * 0x0001_3579;
        let _ok = write!(
            text,
            "<w:p w:rsidR=\"{session:08X}\" w:rsidRDefault=\"{session:08X}\"><w:pPr><w:jc w:val=\"both\"/></w:pPr>"
        );
        if paragraph.picture.is_some() {
            pictures += 1;
        }
        text.push_str(&picture(paragraph, pictures));
        let _ok = write!(text, "<w:r><w:t>{}</w:t></w:r></w:p>", paragraph.words);
    }
    text + "<w:sectPr><w:pgSz w:w=\"11906\" w:h=\"16838\"/></w:sectPr></w:body></w:document>"
}

fn picture(paragraph: &Paragraph, number: u32) -> String {
    let Some(photo) = &paragraph.picture else { return String::new() };
    let (width, height) = (TEXT_WIDTH, TEXT_WIDTH / photo.width * photo.height);
    let relation = number + 1;
    format!(
        "<w:r><w:drawing><wp:inline><wp:extent cx=\"{width}\" cy=\"{height}\"/><wp:docPr id=\"{number}\" name=\"Picture {number}\"/>\
         <a:graphic><a:graphicData uri=\"{DRAWING}/picture\"><pic:pic><pic:nvPicPr><pic:cNvPr id=\"{number}\" name=\"image{number}.jpeg\"/>\
         <pic:cNvPicPr/></pic:nvPicPr><pic:blipFill><a:blip r:embed=\"rId{relation}\"/><a:stretch><a:fillRect/></a:stretch></pic:blipFill>\
         <pic:spPr><a:xfrm><a:off x=\"0\" y=\"0\"/><a:ext cx=\"{width}\" cy=\"{height}\"/></a:xfrm>\
         <a:prstGeom prst=\"rect\"><a:avLst/></a:prstGeom></pic:spPr></pic:pic></a:graphicData></a:graphic></wp:inline></w:drawing></w:r>"
    )
}

fn styles() -> String {
    let mut text = format!("{XML}<w:styles xmlns:w=\"{WORD}\">");
    for (id, size) in [("Normal", 22), ("Title", 52), ("Heading1", 32), ("Heading2", 26)] {
        let _ok = write!(
            text,
            "<w:style w:type=\"paragraph\" w:styleId=\"{id}\"><w:name w:val=\"{id}\"/><w:qFormat/>\
             <w:rPr><w:rFonts w:ascii=\"Calibri\" w:hAnsi=\"Calibri\"/><w:sz w:val=\"{size}\"/></w:rPr></w:style>"
        );
    }
    text + "</w:styles>"
}

fn core(document: &Document) -> String {
    let Document { title, author, saves, .. } = document;
    properties(title, author, *saves)
}

/// What is known of a document: the same in all formats of this family.
pub(crate) fn properties(title: &str, author: &str, saves: u32) -> String {
    let (made, saved) = (super::saved_at(0), super::saved_at(saves));
    format!(
        "{XML}<cp:coreProperties xmlns:cp=\"{PACKAGE}/metadata/core-properties\" xmlns:dc=\"http://purl.org/dc/elements/1.1/\" \
         xmlns:dcterms=\"http://purl.org/dc/terms/\" xmlns:xsi=\"http://www.w3.org/2001/XMLSchema-instance\"><dc:title>{title}</dc:title>\
         <dc:creator>{author}</dc:creator><cp:lastModifiedBy>{author}</cp:lastModifiedBy><cp:revision>{}</cp:revision>\
         <dcterms:created xsi:type=\"dcterms:W3CDTF\">{made}</dcterms:created>\
         <dcterms:modified xsi:type=\"dcterms:W3CDTF\">{saved}</dcterms:modified></cp:coreProperties>",
        saves + 1
    )
}
