//! Documents with paragraphs and pictures, which people work on: Word, OpenOffice, rich text, and PDF made of them.

pub(super) mod docx;
mod odt;
mod pdf;
mod rtf;

use super::jpeg::photo::{self, Photo};
use super::prose::Prose;
use crate::random::Random;

/// What a document is kept as.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Format {
    Docx,
    Odt,
    Rtf,
    Pdf,
}

/// How many bytes of a file a letter takes in each of them, about, and how many a byte of a picture.
fn bytes_per_letter(format: Format) -> (f64, f64) {
    match format {
        Format::Docx | Format::Odt => (0.42, 1.0),
        Format::Pdf => (0.44, 1.0),
        Format::Rtf => (1.03, 2.0),
    }
}

/// A paragraph, and in which save of its document it got its words.
#[derive(Debug, Clone)]
struct Paragraph {
    words: String,
    save: u32,
    picture: Option<Photo>,
}

/// A document that is being worked on.
#[derive(Debug, Clone)]
pub(crate) struct Document {
    format: Format,
    title: String,
    author: String,
    paragraphs: Vec<Paragraph>,
    saves: u32,
}

/// An edit changes so many paragraphs beside each other at most.
const EDITED_MAX: u64 = 4;

/// One edit in so many brings a picture.
const PICTURE_ONE_IN: u64 = 4;

/// Which share of a document of so many bytes is pictures, in percent: small ones have none.
const PICTURES_FROM: u64 = 64 << 10;
const PICTURES_PERCENT: u64 = 50;

/// Pictures are cut down to so much for the page.
const PICTURE_MIN: u64 = 24 << 10;
const PICTURE_MORE: u64 = 200 << 10;

impl Document {
    /// Writes a document of about so many bytes.
    pub(crate) fn new(format: Format, size: u64, prose: &Prose, random: &mut Random) -> Self {
        let (letter, picture) = bytes_per_letter(format);
        let percent = if size >= PICTURES_FROM { PICTURES_PERCENT } else { 0 };
        let pictures_size = size * percent / 100;
        let letters = (size - pictures_size) as f64 / letter;
        let (mut paragraphs, mut written) = (Vec::new(), 0);
        while (written as f64) < letters {
            let words = prose.paragraph(random);
            written += words.len();
            paragraphs.push(Paragraph { words, save: 0, picture: None });
        }
        let (title, author) = (prose.title(random), prose.title(random));
        let mut document = Self { format, title, author, paragraphs, saves: 0 };
        let mut left = (pictures_size as f64 / picture) as u64;
        while left > 0 {
            let size = left.min(PICTURE_MIN + random.below(PICTURE_MORE));
            document.insert_picture(size, prose, random);
            left -= size;
        }
        document
    }

    /// Changes a few paragraphs in one place, or adds a picture, and saves.
    pub(crate) fn edit(&mut self, prose: &Prose, random: &mut Random) {
        self.saves += 1;
        let is_long = self.paragraphs.iter().any(|one| one.picture.is_some());
        if is_long && random.below(PICTURE_ONE_IN) == 0 {
            self.insert_picture(PICTURE_MIN + random.below(PICTURE_MORE), prose, random);
            return;
        }
        let start = random.below(self.paragraphs.len() as u64) as usize;
        let end = (start + 1 + random.below(EDITED_MAX) as usize).min(self.paragraphs.len());
        match random.below(5) {
            // People write more than they take away.
            0 | 1 => {
                let new = (start..end).map(|_| self.paragraph(prose, random));
                let new: Vec<_> = new.collect();
                self.paragraphs.splice(start..start, new);
            }
            2 if self.paragraphs.len() > 8 => drop(self.paragraphs.drain(start..end)),
            _ => {
                for place in start..end {
                    let paragraph = &mut self.paragraphs[place];
                    paragraph.save = self.saves;
                    let middle = paragraph.words.find(". ").map_or(0, |at| at + 2);
                    paragraph.words.replace_range(middle.., &prose.sentence(random));
                }
            }
        }
    }

    fn paragraph(&self, prose: &Prose, random: &mut Random) -> Paragraph {
        Paragraph { words: prose.paragraph(random), save: self.saves, picture: None }
    }

    fn insert_picture(&mut self, size: u64, prose: &Prose, random: &mut Random) {
        let words = prose.sentence(random);
        let picture = Some(photo::taken(size, random));
        let place = random.below(self.paragraphs.len() as u64 + 1) as usize;
        self.paragraphs.insert(place, Paragraph { words, save: self.saves, picture });
    }

    fn pictures(&self) -> impl Iterator<Item = &Photo> {
        self.paragraphs.iter().filter_map(|paragraph| paragraph.picture.as_ref())
    }

    /// Writes the file.
    pub(crate) fn bytes(&self) -> Vec<u8> {
        match self.format {
            Format::Docx => docx::write(self),
            Format::Odt => odt::write(self),
            Format::Rtf => rtf::write(self),
            Format::Pdf => pdf::write(self),
        }
    }

    /// When it was saved last: one save in an hour, from the first day of 2011 on.
    fn saved_at(&self) -> String {
        saved_at(self.saves)
    }
}

/// Writes when a save was.
pub(crate) fn saved_at(save: u32) -> String {
    let (month, day, hour) = (save / (24 * 28) % 12 + 1, save / 24 % 28 + 1, save % 24);
    format!("2011-{month:02}-{day:02}T{hour:02}:00:00Z")
}

#[cfg(test)]
mod tests;
