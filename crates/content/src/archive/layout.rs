//! Where everything is in an archive. Pure.

use std::ops::Range;

use model::calendar::Moment;
use model::{Content, NodeKind, NodeRecord};

use super::names::safe_names;
use crate::error::ContentError;

/// How many files and folders an archive has at most.
pub const ENTRIES_MAX: usize = 100_000;

/// About how many bytes of memory an entry takes beside its path and its chunks.
const ENTRY_WEIGHT: usize = 160;

const HEADER_SIGNATURE: u32 = 0x0403_4b50;
const DESCRIPTOR_SIGNATURE: u32 = 0x0807_4b50;
const LINE_SIGNATURE: u32 = 0x0201_4b50;
const END_64_SIGNATURE: u32 = 0x0606_4b50;
const LOCATOR_64_SIGNATURE: u32 = 0x0706_4b50;
const END_SIGNATURE: u32 = 0x0605_4b50;

/// Extra fields: lengths of 64 bits, and the time in UTC.
const ZIP_64: u16 = 0x0001;
const UNIX_TIME: u16 = 0x5455;

/// What a reader must know: folders and stored files, or ZIP64.
const VERSION: u16 = 20;
const VERSION_64: u16 = 45;

/// Made on Unix, so that permissions mean something.
const MADE_ON_UNIX: u16 = 3 << 8;

/// The checksum comes after the file; the name is UTF-8.
const FLAG_DESCRIPTOR: u16 = 1 << 3;
const FLAG_UTF_8: u16 = 1 << 11;

const MODE_FILE: u32 = 0o100_000;
const MODE_FOLDER: u32 = 0o040_000;
const ATTRIBUTE_FOLDER: u32 = 0x10;

/// What is to lie in an archive.
#[derive(Debug, Clone)]
pub struct Member<Key> {
    /// By what a folder is listed.
    pub key: Key,
    /// What it is.
    pub record: NodeRecord,
}

/// A file or folder in an archive.
#[derive(Debug)]
pub struct Entry {
    /// With slashes, and one at the end of a folder.
    path: Vec<u8>,
    /// Nothing for a folder.
    content: Option<Content>,
    /// In seconds since 1970; folders have none.
    modified: Option<i64>,
    mode: u32,
    /// Where its header begins.
    offset: u64,
    /// The CRC-32 of its bytes, once they were sent.
    checksum: u32,
}

impl Entry {
    fn new(path: Vec<u8>, record: NodeRecord) -> Self {
        let (mode, modified) = (record.mode & 0o777, record.modified.seconds);
        let content = match record.kind {
            NodeKind::File(content) => Some(content),
            NodeKind::Directory | NodeKind::Symlink(_) => None,
        };
        let modified = content.is_some().then_some(modified);
        Self { path, content, modified, mode, offset: 0, checksum: 0 }
    }

    /// Returns its path, with slashes.
    pub fn path(&self) -> &[u8] {
        &self.path
    }

    /// Returns what a file has in it.
    pub fn content(&self) -> Option<&Content> {
        self.content.as_ref()
    }

    fn size(&self) -> u64 {
        self.content.as_ref().map_or(0, |content| content.size)
    }

    fn is_large(&self) -> bool {
        self.size() >= u64::from(u32::MAX)
    }

    fn flags(&self) -> u16 {
        let descriptor = if self.content.is_some() { FLAG_DESCRIPTOR } else { 0 };
        let utf_8 = if std::str::from_utf8(&self.path).is_ok() { FLAG_UTF_8 } else { 0 };
        descriptor | utf_8
    }

    /// Returns what header and line say alike: flags, method, time and date, checksum, lengths twice.
    fn matter(&self, checksum: u32) -> Bits {
        let (date, time) = dos_date_and_time(self.modified.unwrap_or(0));
        let size = short(self.size());
        Bits::default()
            .u16(self.flags())
            .u16(0)
            .u16(time)
            .u16(date)
            .u32(checksum)
            .u32(size)
            .u32(size)
    }

    fn unix_time(&self) -> Bits {
        let modified = self.modified.and_then(|modified| i32::try_from(modified).ok());
        modified.map_or_else(Bits::default, |modified| {
            Bits::default().u16(UNIX_TIME).u16(5).u8(1).u32(modified.cast_unsigned())
        })
    }

    fn header(&self) -> Vec<u8> {
        let (size, is_large) = (self.size(), self.is_large());
        let extra = match is_large {
            true => Bits::default().u16(ZIP_64).u16(16).u64(size).u64(size),
            false => Bits::default(),
        };
        let extra = extra.and(self.unix_time());
        Bits::default()
            .u32(HEADER_SIGNATURE)
            .u16(if is_large { VERSION_64 } else { VERSION })
            .and(self.matter(0))
            .u16(self.path.len() as u16)
            .u16(extra.0.len() as u16)
            .bytes(&self.path)
            .and(extra)
            .0
    }

    /// Returns what follows the bytes of a file.
    fn descriptor(&self) -> Vec<u8> {
        if self.content.is_none() {
            return Vec::new();
        }
        let bits = Bits::default().u32(DESCRIPTOR_SIGNATURE).u32(self.checksum);
        let size = self.size();
        match self.is_large() {
            true => bits.u64(size).u64(size).0,
            false => bits.u32(size as u32).u32(size as u32).0,
        }
    }

    /// Returns the line of the directory.
    fn line(&self) -> Vec<u8> {
        let (size, offset) = (self.size(), self.offset);
        let mut long = Bits::default();
        if self.is_large() {
            long = long.u64(size).u64(size);
        }
        if offset >= u64::from(u32::MAX) {
            long = long.u64(offset);
        }
        let version = if long.0.is_empty() { VERSION } else { VERSION_64 };
        let extra = match long.0.len() {
            0 => Bits::default(),
            length => Bits::default().u16(ZIP_64).u16(length as u16).and(long),
        };
        let extra = extra.and(self.unix_time());
        let attributes = match self.content {
            Some(_) => (self.mode | MODE_FILE) << 16,
            None => (self.mode | MODE_FOLDER) << 16 | ATTRIBUTE_FOLDER,
        };
        Bits::default()
            .u32(LINE_SIGNATURE)
            .u16(MADE_ON_UNIX | version)
            .u16(version)
            .and(self.matter(self.checksum))
            .u16(self.path.len() as u16)
            .u16(extra.0.len() as u16)
            // No comment, the first disk, no attributes of its own.
            .u16(0)
            .u16(0)
            .u16(0)
            .u32(attributes)
            .u32(short(offset))
            .bytes(&self.path)
            .and(extra)
            .0
    }
}

/// An archive before its first byte.
#[derive(Debug, Default)]
pub struct Layout {
    entries: Vec<Entry>,
    /// Where the directory begins, and how long it is.
    directory: (u64, u64),
}

impl Layout {
    /// Lays out members with everything in them but symbolic links; `list` returns what is in a folder.
    ///
    /// # Errors
    /// [`ContentError::TooMuchToArchive`].
    pub fn of<Key>(
        members: Vec<Member<Key>>,
        mut list: impl FnMut(&Key) -> Vec<Member<Key>>,
    ) -> Result<Self, ContentError> {
        let mut waiting = Vec::new();
        let mut entries = Vec::new();
        wait(&mut waiting, b"", members);
        while let Some((path, member)) = waiting.pop() {
            if member.record.kind.is_directory() {
                wait(&mut waiting, &path, list(&member.key));
            }
            let is_short = path.len() <= usize::from(u16::MAX);
            entries.push(Entry::new(path, member.record));
            if entries.len() + waiting.len() > ENTRIES_MAX || !is_short {
                return Err(ContentError::TooMuchToArchive { max: ENTRIES_MAX });
            }
        }
        Ok(Self::place(entries))
    }

    /// Returns about how many bytes of memory a layout of the same members takes ([`Self::weight`]), without making it.
    ///
    /// # Errors
    /// As [`Self::of`].
    pub fn weigh<'a, Key>(
        members: Vec<(Key, &'a NodeRecord)>,
        mut list: impl FnMut(&Key) -> Vec<(Key, &'a NodeRecord)>,
    ) -> Result<u64, ContentError> {
        let mut waiting: Vec<_> = members.into_iter().map(|member| (0, member)).collect();
        let (mut count, mut weight) = (0, 0);
        while let Some((folder_length, (key, record))) = waiting.pop() {
            let mut length = folder_length + record.name.as_bytes().len();
            let content = match &record.kind {
                NodeKind::Symlink(_) => continue,
                NodeKind::File(content) => Some(content),
                NodeKind::Directory => {
                    length += 1;
                    waiting.extend(list(&key).into_iter().map(|member| (length, member)));
                    None
                }
            };
            (count, weight) = (count + 1, weight + entry_weight(length, content));
            if count > ENTRIES_MAX || length > usize::from(u16::MAX) {
                return Err(ContentError::TooMuchToArchive { max: ENTRIES_MAX });
            }
        }
        Ok(weight)
    }

    /// Gives every entry its place.
    fn place(mut entries: Vec<Entry>) -> Self {
        let mut offset = 0;
        for entry in &mut entries {
            entry.offset = offset;
            let around = entry.header().len() + entry.descriptor().len();
            // What no file can be as long as is not read to its end.
            offset = entry.size().saturating_add(offset).saturating_add(around as u64);
        }
        let length = entries.iter().map(|entry| entry.line().len() as u64).sum();
        Self { entries, directory: (offset, length) }
    }

    /// Returns the entries in their order.
    pub fn entries(&self) -> &[Entry] {
        &self.entries
    }

    /// Returns how long the archive is.
    pub fn length(&self) -> u64 {
        self.directory.0 + self.directory.1 + self.end().len() as u64
    }

    /// Returns about how many bytes of memory this takes.
    pub fn weight(&self) -> u64 {
        let weight = |entry: &Entry| entry_weight(entry.path.len(), entry.content.as_ref());
        self.entries.iter().map(weight).sum()
    }

    /// Returns what stands before the bytes of an entry.
    pub fn header(&self, index: usize) -> Vec<u8> {
        self.entries[index].header()
    }

    /// Takes the checksum of the bytes of an entry, and returns what stands after them.
    pub fn finish(&mut self, index: usize, checksum: u32) -> Vec<u8> {
        self.entries[index].checksum = checksum;
        self.entries[index].descriptor()
    }

    /// Returns lines of the directory.
    pub fn directory(&self, range: Range<usize>) -> Vec<u8> {
        self.entries[range].iter().flat_map(Entry::line).collect()
    }

    /// Returns the end, behind the directory.
    pub fn end(&self) -> Vec<u8> {
        let (offset, length) = self.directory;
        let count = self.entries.len();
        let short_count = u16::try_from(count).unwrap_or(u16::MAX);
        let is_long =
            short_count == u16::MAX || short(offset) == u32::MAX || short(length) == u32::MAX;
        let long = match is_long {
            false => Bits::default(),
            true => Bits::default()
                .u32(END_64_SIGNATURE)
                .u64(44)
                .u16(MADE_ON_UNIX | VERSION_64)
                .u16(VERSION_64)
                .u32(0)
                .u32(0)
                .u64(count as u64)
                .u64(count as u64)
                .u64(length)
                .u64(offset)
                .u32(LOCATOR_64_SIGNATURE)
                .u32(0)
                .u64(offset + length)
                .u32(1),
        };
        long.u32(END_SIGNATURE)
            .u16(0)
            .u16(0)
            .u16(short_count)
            .u16(short_count)
            .u32(short(length))
            .u32(short(offset))
            .u16(0)
            .0
    }
}

fn entry_weight(path_length: usize, content: Option<&Content>) -> u64 {
    let chunks = content.map_or(0, |content| content.chunks.len());
    (ENTRY_WEIGHT + path_length + chunks * size_of::<model::ChunkRef>()) as u64
}

/// Lets the members of a folder wait, so that those that come first are taken from the end.
fn wait<Key>(
    waiting: &mut Vec<(Vec<u8>, Member<Key>)>,
    folder: &[u8],
    mut members: Vec<Member<Key>>,
) {
    members.retain(|member| !matches!(member.record.kind, NodeKind::Symlink(_)));
    let names = safe_names(members.iter().map(|member| &member.record.name), folder.is_empty());
    waiting.extend(members.into_iter().zip(names).rev().map(|(member, name)| {
        let slash = if member.record.kind.is_directory() { &b"/"[..] } else { b"" };
        ([folder, name.as_bytes(), slash].concat(), member)
    }));
}

/// Returns date and time as FAT and ZIP have them: from 1980 to 2107, every other second.
fn dos_date_and_time(seconds: i64) -> (u16, u16) {
    let Moment { year, month, day, hour, minute, second, .. } = Moment::of(seconds);
    if !(1980..=2107).contains(&year) {
        return (1 << 5 | 1, 0);
    }
    let date = (year - 1980) << 9 | (month as i64) << 5 | day;
    let time = hour << 11 | minute << 5 | (second / 2);
    (date as u16, time as u16)
}

/// Returns a length as 32 bits, or what says that it stands elsewhere.
fn short(length: u64) -> u32 {
    u32::try_from(length).unwrap_or(u32::MAX)
}

/// Bytes of a header; numbers begin with their lowest byte.
#[derive(Debug, Default)]
struct Bits(Vec<u8>);

impl Bits {
    fn bytes(mut self, bytes: &[u8]) -> Self {
        self.0.extend_from_slice(bytes);
        self
    }

    fn and(self, other: Self) -> Self {
        self.bytes(&other.0)
    }

    fn u8(self, number: u8) -> Self {
        self.bytes(&[number])
    }

    fn u16(self, number: u16) -> Self {
        self.bytes(&number.to_le_bytes())
    }

    fn u32(self, number: u32) -> Self {
        self.bytes(&number.to_le_bytes())
    }

    fn u64(self, number: u64) -> Self {
        self.bytes(&number.to_le_bytes())
    }
}

#[cfg(test)]
mod tests;
