//! Workbooks of Excel: a sheet with dates, names and numbers, and the names once in a list of their own.

use std::fmt::Write;

use super::document::docx::{OFFICE, PACKAGE, XML, properties, relations_of_package};
use super::prose::Prose;
use super::zip::{DosTime, Zip};
use crate::random::Random;

const SHEETS: &str = "http://schemas.openxmlformats.org/spreadsheetml/2006/main";
const PARTS: &str = "application/vnd.openxmlformats-officedocument.spreadsheetml";

/// A row takes about so many bytes of a file.
const ROW_BYTES: u64 = 30;

/// How many names there are in a book.
const NAMES: u64 = 60;

/// An edit changes so many rows at most, and one in so many adds rows at the end.
const EDITED_MAX: u64 = 6;
const ADDS_ONE_IN: u64 = 3;

#[derive(Debug, Clone)]
struct Row {
    day: u32,
    name: u32,
    count: u32,
    /// In hundredths.
    price: u32,
    comment: u32,
}

/// A workbook that is being worked on.
#[derive(Debug, Clone)]
pub(crate) struct Workbook {
    title: String,
    author: String,
    names: Vec<String>,
    rows: Vec<Row>,
    saves: u32,
}

impl Workbook {
    /// Writes a workbook of about so many bytes.
    pub(crate) fn new(size: u64, prose: &Prose, random: &mut Random) -> Self {
        let names = (0..NAMES).map(|_| prose.title(random)).collect();
        let (title, author) = (prose.title(random), prose.title(random));
        let mut book = Self { title, author, names, rows: Vec::new(), saves: 0 };
        for _ in 0..(size / ROW_BYTES).max(4) {
            book.add(random);
        }
        book
    }

    fn add(&mut self, random: &mut Random) {
        let day = 40_544 + self.rows.len() as u32 / 9;
        let [name, comment] = [(); 2].map(|()| random.below(NAMES) as u32);
        let [count, price] = [120, 99_999].map(|limit| random.below(limit) as u32);
        self.rows.push(Row { day, name, count, price, comment });
    }

    /// Changes some numbers beside each other, or adds rows, and saves.
    pub(crate) fn edit(&mut self, random: &mut Random) {
        self.saves += 1;
        let rows = 1 + random.below(EDITED_MAX) as usize;
        if random.below(ADDS_ONE_IN) == 0 {
            (0..rows).for_each(|_| self.add(random));
            return;
        }
        let start = random.below(self.rows.len() as u64) as usize;
        for row in self.rows.iter_mut().skip(start).take(rows) {
            row.count = random.below(120) as u32;
            row.price = random.below(99_999) as u32;
        }
    }

    /// Writes the file.
    pub(crate) fn bytes(&self) -> Vec<u8> {
        let mut zip = Zip::new(DosTime::NONE);
        zip.deflate("[Content_Types].xml", types().as_bytes());
        let part = "officeDocument/2006/relationships/officeDocument";
        zip.deflate("_rels/.rels", relations_of_package("xl/workbook.xml", part).as_bytes());
        zip.deflate("xl/_rels/workbook.xml.rels", relations().as_bytes());
        let book = format!(
            "{XML}<workbook xmlns=\"{SHEETS}\" xmlns:r=\"{OFFICE}\"><sheets><sheet name=\"Sheet1\" sheetId=\"1\" r:id=\"rId1\"/></sheets></workbook>"
        );
        zip.deflate("xl/workbook.xml", book.as_bytes());
        zip.deflate("xl/worksheets/sheet1.xml", self.sheet().as_bytes());
        zip.deflate("xl/sharedStrings.xml", self.strings().as_bytes());
        zip.deflate(
            "docProps/core.xml",
            properties(&self.title, &self.author, self.saves).as_bytes(),
        );
        zip.finish()
    }

    fn sheet(&self) -> String {
        let mut text = format!("{XML}<worksheet xmlns=\"{SHEETS}\"><sheetData>");
        for (number, row) in self.rows.iter().enumerate() {
            let (line, Row { day, name, count, price, comment }) = (number + 1, row);
            let (whole, cents) = (price / 100, price % 100);
            // Writing to a String cannot fail, here as below.
            let _ok = write!(
                text,
                "<row r=\"{line}\" spans=\"1:5\"><c r=\"A{line}\"><v>{day}</v></c><c r=\"B{line}\" t=\"s\"><v>{name}</v></c>\
                 <c r=\"C{line}\"><v>{count}</v></c><c r=\"D{line}\"><v>{whole}.{cents:02}</v></c>\
                 <c r=\"E{line}\" t=\"s\"><v>{comment}</v></c></row>"
            );
        }
        text + "</sheetData></worksheet>"
    }

    fn strings(&self) -> String {
        let (uses, count) = (2 * self.rows.len(), self.names.len());
        let mut text =
            format!("{XML}<sst xmlns=\"{SHEETS}\" count=\"{uses}\" uniqueCount=\"{count}\">");
        for name in &self.names {
            let _ok = write!(text, "<si><t>{name}</t></si>");
        }
        text + "</sst>"
    }
}

fn types() -> String {
    format!(
        "{XML}<Types xmlns=\"{PACKAGE}/content-types\">\
         <Default Extension=\"rels\" ContentType=\"application/vnd.openxmlformats-package.relationships+xml\"/>\
         <Default Extension=\"xml\" ContentType=\"application/xml\"/>\
         <Override PartName=\"/xl/workbook.xml\" ContentType=\"{PARTS}.sheet.main+xml\"/>\
         <Override PartName=\"/xl/worksheets/sheet1.xml\" ContentType=\"{PARTS}.worksheet+xml\"/>\
         <Override PartName=\"/xl/sharedStrings.xml\" ContentType=\"{PARTS}.sharedStrings+xml\"/>\
         <Override PartName=\"/docProps/core.xml\" ContentType=\"application/vnd.openxmlformats-package.core-properties+xml\"/>\
         </Types>"
    )
}

fn relations() -> String {
    format!(
        "{XML}<Relationships xmlns=\"{PACKAGE}/relationships\">\
         <Relationship Id=\"rId1\" Type=\"{OFFICE}/worksheet\" Target=\"worksheets/sheet1.xml\"/>\
         <Relationship Id=\"rId2\" Type=\"{OFFICE}/sharedStrings\" Target=\"sharedStrings.xml\"/></Relationships>"
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dataset::zip::tests::read;

    #[test]
    fn a_workbook_has_the_size_asked_for_and_an_edit_changes_only_its_sheet() {
        let (prose, mut random) = (Prose::new(), Random::new(2));
        let mut book = Workbook::new(40_000, &prose, &mut random);
        let before = book.bytes();
        assert!((30_000..52_000).contains(&before.len()), "{}", before.len());
        // One that changes numbers, not one that adds rows.
        let rows = book.rows.len();
        while book.saves == 0 || book.rows.len() != rows {
            book = Workbook::new(40_000, &prose, &mut Random::new(2));
            book.edit(&mut random);
        }
        let differing: Vec<_> = read(&before)
            .into_iter()
            .zip(read(&book.bytes()))
            .filter(|(old, new)| old != new)
            .map(|(old, _)| old.0)
            .collect();
        assert_eq!(differing, ["xl/worksheets/sheet1.xml", "docProps/core.xml"]);
    }
}
