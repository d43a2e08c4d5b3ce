//! Writes zip archives, which office documents are.

use std::io::Write;

use flate2::write::DeflateEncoder;
use flate2::{Compression, Crc};

/// When a file in an archive was changed last, as archives say it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct DosTime {
    pub(crate) date: u16,
    pub(crate) time: u16,
}

impl DosTime {
    /// The first day that archives know, which Microsoft's programs write into documents.
    pub(crate) const NONE: Self = Self { date: 0x21, time: 0 };

    /// Returns the time of a save: one in an hour, from the first day of 2011 on.
    pub(crate) fn of_save(save: u32) -> Self {
        let (day, hour) = (save / 24 % 28 + 1, save % 24);
        let month = save / (24 * 28) % 12 + 1;
        Self { date: (31 << 9 | month << 5 | day) as u16, time: (hour << 11) as u16 }
    }
}

/// An archive that is being written.
pub(crate) struct Zip {
    bytes: Vec<u8>,
    directory: Vec<u8>,
    count: u16,
    time: DosTime,
}

const LOCAL: u32 = 0x0403_4b50;
const CENTRAL: u32 = 0x0201_4b50;
const END: u32 = 0x0605_4b50;

/// The version of the format that is needed: 2.0, the first one with Deflate.
const VERSION: u16 = 20;

const STORED: u16 = 0;
const DEFLATED: u16 = 8;

impl Zip {
    pub(crate) fn new(time: DosTime) -> Self {
        Self { bytes: Vec::new(), directory: Vec::new(), count: 0, time }
    }

    /// Adds a file that compresses.
    pub(crate) fn deflate(&mut self, name: &str, content: &[u8]) {
        self.add(name, content, DEFLATED, &deflated(content));
    }

    /// Adds a file as it is.
    pub(crate) fn store(&mut self, name: &str, content: &[u8]) {
        self.add(name, content, STORED, content);
    }

    fn add(&mut self, name: &str, content: &[u8], method: u16, stored: &[u8]) {
        let start = self.bytes.len() as u32;
        let mut crc = Crc::new();
        crc.update(content);
        let mut header = Vec::new();
        let numbers = [VERSION, 0, method, self.time.time, self.time.date];
        header.extend(numbers.iter().flat_map(|number| number.to_le_bytes()));
        let sizes = [crc.sum(), stored.len() as u32, content.len() as u32];
        header.extend(sizes.iter().flat_map(|number| number.to_le_bytes()));
        header.extend((name.len() as u16).to_le_bytes());
        header.extend([0, 0]);

        self.bytes.extend(LOCAL.to_le_bytes());
        self.bytes.extend(&header);
        self.bytes.extend(name.as_bytes());
        self.bytes.extend(stored);
        self.directory.extend(CENTRAL.to_le_bytes());
        self.directory.extend(VERSION.to_le_bytes());
        self.directory.extend(&header);
        // No comment, on the first disk, no attributes.
        self.directory.extend([0; 10]);
        self.directory.extend(start.to_le_bytes());
        self.directory.extend(name.as_bytes());
        self.count += 1;
    }

    pub(crate) fn finish(self) -> Vec<u8> {
        let Self { mut bytes, directory, count, .. } = self;
        let start = bytes.len() as u32;
        bytes.extend(&directory);
        bytes.extend(END.to_le_bytes());
        bytes.extend([0; 4]);
        bytes.extend(count.to_le_bytes());
        bytes.extend(count.to_le_bytes());
        bytes.extend((directory.len() as u32).to_le_bytes());
        bytes.extend(start.to_le_bytes());
        bytes.extend([0; 2]);
        bytes
    }
}

fn deflated(content: &[u8]) -> Vec<u8> {
    let mut encoder = DeflateEncoder::new(Vec::new(), Compression::default());
    encoder.write_all(content).and_then(|()| encoder.finish()).expect("memory takes every byte")
}

#[cfg(test)]
pub(crate) mod tests {
    use std::io::Read;

    use super::*;

    fn number<const N: usize>(bytes: &[u8], at: usize) -> [u8; N] {
        bytes[at..at + N].try_into().unwrap()
    }

    /// Reads an archive by its directory, and demands that the headers in front of the files say the same.
    pub(crate) fn read(bytes: &[u8]) -> Vec<(String, Vec<u8>)> {
        let end = bytes.len() - 22;
        assert_eq!(number(bytes, end), END.to_le_bytes());
        let count = u16::from_le_bytes(number(bytes, end + 10));
        let mut at = u32::from_le_bytes(number(bytes, end + 16)) as usize;
        let mut files = Vec::new();
        for _ in 0..count {
            assert_eq!(number(bytes, at), CENTRAL.to_le_bytes());
            let name_length = usize::from(u16::from_le_bytes(number(bytes, at + 28)));
            let name = &bytes[at + 46..at + 46 + name_length];
            let start = u32::from_le_bytes(number(bytes, at + 42)) as usize;
            assert_eq!(number(bytes, start), LOCAL.to_le_bytes());
            assert_eq!(bytes[start + 4..start + 30], bytes[at + 6..at + 32]);
            assert_eq!(&bytes[start + 30..start + 30 + name_length], name);
            let stored = u32::from_le_bytes(number(bytes, at + 20)) as usize;
            let stored = &bytes[start + 30 + name_length..][..stored];
            let mut content = Vec::new();
            match u16::from_le_bytes(number(bytes, at + 10)) {
                DEFLATED => {
                    let mut decoder = flate2::read::DeflateDecoder::new(stored);
                    decoder.read_to_end(&mut content).unwrap();
                }
                method => {
                    assert_eq!(method, STORED);
                    content.extend(stored);
                }
            }
            let mut crc = Crc::new();
            crc.update(&content);
            assert_eq!(crc.sum().to_le_bytes(), number(bytes, at + 16));
            assert_eq!(content.len() as u32, u32::from_le_bytes(number(bytes, at + 24)));
            files.push((String::from_utf8(name.to_vec()).unwrap(), content));
            at += 46 + name_length;
        }
        assert_eq!(at, end);
        files
    }

    #[test]
    fn an_archive_has_what_was_put_in() {
        let mut zip = Zip::new(DosTime::of_save(25));
        let text = b"the same line again\n".repeat(300);
        zip.store("mimetype", b"text/plain");
        zip.deflate("a/text.txt", &text);
        zip.deflate("empty", b"");
        let bytes = zip.finish();
        assert!(bytes.len() < 700);
        let files = read(&bytes);
        let names: Vec<_> = files.iter().map(|(name, _)| name.as_str()).collect();
        assert_eq!(names, ["mimetype", "a/text.txt", "empty"]);
        assert_eq!(files[1].1, text);
        assert_eq!(DosTime::of_save(25).date, 31 << 9 | 1 << 5 | 2);
    }
}
