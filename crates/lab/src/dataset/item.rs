//! One file of a made dataset: what it is, how it is edited, and which bytes it has.

use super::document::{Document, Format};
use super::jpeg::photo;
use super::prose::Prose;
use super::source_tree;
use super::track::Track;
use super::workbook::Workbook;
use super::zip::{DosTime, Zip};
use crate::random::Random;

/// The kinds of files that datasets have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Docx,
    Odt,
    Rtf,
    Xlsx,
    Pdf,
    Photo,
    Track,
    Archive,
    Text,
    Source,
}

impl Kind {
    pub(crate) fn extension(self) -> &'static str {
        match self {
            Self::Docx => "docx",
            Self::Odt => "odt",
            Self::Rtf => "rtf",
            Self::Xlsx => "xlsx",
            Self::Pdf => "pdf",
            Self::Photo => "jpg",
            Self::Track => "mp3",
            Self::Archive => "zip",
            Self::Text => "txt",
            Self::Source => "c",
        }
    }

    /// Whether people change such files; photographs are made once.
    pub(crate) fn is_edited(self) -> bool {
        self != Self::Photo
    }
}

/// What a file has in it. What never changes is made when it is written, and not kept.
#[derive(Debug)]
enum Body {
    Document(Document),
    Workbook(Workbook),
    Track(Track),
    Paragraphs(Vec<String>),
    Source(Vec<String>),
    Photo { seed: u64, size: u64 },
    Archive(Archive),
}

/// A file.
#[derive(Debug)]
pub(crate) struct Item {
    pub(crate) kind: Kind,
    body: Body,
}

/// An archive has so many texts.
const ARCHIVED: u64 = 8;

/// Texts in an archive compress to about this share, in percent.
const ARCHIVED_PERCENT: u64 = 38;

impl Item {
    /// Makes a file of about so many bytes.
    pub(crate) fn new(kind: Kind, size: u64, prose: &Prose, random: &mut Random) -> Self {
        let mut document =
            |format: Format| Body::Document(Document::new(format, size, prose, random));
        let body = match kind {
            Kind::Docx => document(Format::Docx),
            Kind::Odt => document(Format::Odt),
            Kind::Rtf => document(Format::Rtf),
            Kind::Pdf => document(Format::Pdf),
            Kind::Xlsx => Body::Workbook(Workbook::new(size, prose, random)),
            Kind::Track => Body::Track(Track::new(size, prose, random)),
            Kind::Text => Body::Paragraphs(filled(size, || prose.paragraph(random) + "\n\n")),
            Kind::Source => Body::Source(filled(size, || source_tree::line(random))),
            Kind::Photo => Body::Photo { seed: random.next(), size },
            Kind::Archive => Body::Archive(Archive::new(size, random)),
        };
        Self { kind, body }
    }

    /// Changes it in one place, as people do.
    pub(crate) fn edit(&mut self, prose: &Prose, random: &mut Random) {
        match &mut self.body {
            Body::Document(document) => document.edit(prose, random),
            Body::Workbook(book) => book.edit(random),
            Body::Track(track) => track.retag(prose, random),
            Body::Paragraphs(paragraphs) => {
                let place = random.below(paragraphs.len() as u64) as usize;
                let new = prose.paragraph(random) + "\n\n";
                if random.below(2) == 0 {
                    paragraphs.insert(place, new);
                } else {
                    paragraphs[place] = new;
                }
            }
            Body::Source(lines) => source_tree::edit(lines, random),
            Body::Archive(archive) => {
                let text = random.below(archive.seeds.len() as u64) as usize;
                archive.seeds[text] = random.next();
            }
            Body::Photo { .. } => {}
        }
    }

    /// Writes the file.
    pub(crate) fn bytes(&self, prose: &Prose) -> Vec<u8> {
        match &self.body {
            Body::Document(document) => document.bytes(),
            Body::Workbook(book) => book.bytes(),
            Body::Track(track) => track.bytes(),
            Body::Paragraphs(lines) | Body::Source(lines) => lines.concat().into_bytes(),
            Body::Photo { seed, size } => photo::taken(*size, &mut Random::new(*seed)).bytes,
            Body::Archive(archive) => archive.bytes(prose),
        }
    }
}

fn filled(size: u64, mut more: impl FnMut() -> String) -> Vec<String> {
    let (mut all, mut written) = (Vec::new(), 0);
    while all.is_empty() || written < size {
        let line = more();
        written += line.len() as u64;
        all.push(line);
    }
    all
}

/// An archive of texts, any of which may be replaced by another one.
#[derive(Debug)]
struct Archive {
    /// Of each text.
    seeds: Vec<u64>,
    text_size: u64,
}

impl Archive {
    fn new(size: u64, random: &mut Random) -> Self {
        let seeds: Vec<_> = (0..ARCHIVED).map(|_| random.next()).collect();
        Self { text_size: size * 100 / ARCHIVED_PERCENT / ARCHIVED, seeds }
    }

    fn bytes(&self, prose: &Prose) -> Vec<u8> {
        let mut zip = Zip::new(DosTime::of_save(0));
        for (number, seed) in self.seeds.iter().enumerate() {
            let mut random = Random::new(*seed);
            let text = filled(self.text_size, || prose.paragraph(&mut random) + "\n").concat();
            zip.deflate(&format!("texts/{}.txt", number + 1), text.as_bytes());
        }
        zip.finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dataset::zip::tests::read;

    const ALL: [Kind; 10] = [
        Kind::Docx,
        Kind::Odt,
        Kind::Rtf,
        Kind::Xlsx,
        Kind::Pdf,
        Kind::Photo,
        Kind::Track,
        Kind::Archive,
        Kind::Text,
        Kind::Source,
    ];

    #[test]
    fn every_kind_has_about_the_size_asked_for_and_changes_where_it_is_edited() {
        let prose = Prose::new();
        for kind in ALL {
            let mut random = Random::new(6);
            let mut item = Item::new(kind, 40_000, &prose, &mut random);
            let before = item.bytes(&prose);
            assert!((26_000..60_000).contains(&before.len()), "{kind:?}: {}", before.len());
            item.edit(&prose, &mut random);
            assert_eq!(item.bytes(&prose) != before, kind.is_edited(), "{kind:?}");
        }
    }

    #[test]
    fn an_archive_is_one() {
        let prose = Prose::new();
        let item = Item::new(Kind::Archive, 20_000, &prose, &mut Random::new(1));
        let files = read(&item.bytes(&prose));
        assert_eq!(files.len(), 8);
        assert!(files.iter().all(|(_, text)| text.is_ascii() && text.len() > 5000));
    }
}
