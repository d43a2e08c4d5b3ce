//! Names and paths: any bytes a file system may hold, and nothing that could lead out of the folder.

use std::fmt;
#[cfg(unix)]
use std::path::{Path, PathBuf};

use crate::codec::{Decode, DecodeError, Decoder, Encode, Encoder};

/// The longest name, in bytes.
pub const NAME_LENGTH_MAX: usize = 255;

/// The deepest path, in names.
pub const PATH_DEPTH_MAX: usize = 128;

/// The longest path, in bytes.
pub const PATH_LENGTH_MAX: usize = 4096;

/// A name or path that must not exist.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum InvalidPath {
    /// The name has no bytes.
    #[error("a name is empty")]
    Empty,
    /// The name means this folder or the one above it.
    #[error("the name '{0}' means another folder")]
    Dots(String),
    /// The name contains a separator.
    #[error("the name '{0}' contains '/'")]
    Separator(String),
    /// The name contains a zero byte.
    #[error("the name '{name}' contains a zero byte at position {position}")]
    ZeroByte {
        /// The name, for people.
        name: String,
        /// Where, in bytes from its start.
        position: usize,
    },
    /// The name is longer than [`NAME_LENGTH_MAX`].
    #[error("a name is {0} bytes long; the limit is {NAME_LENGTH_MAX}")]
    NameTooLong(usize),
    /// The path is deeper than [`PATH_DEPTH_MAX`] or longer than [`PATH_LENGTH_MAX`].
    #[error(
        "a path has {depth} names and {length} bytes; the limits are {PATH_DEPTH_MAX} and {PATH_LENGTH_MAX}"
    )]
    PathTooLong {
        /// Names in the path.
        depth: usize,
        /// Bytes in the path.
        length: usize,
    },
}

/// The name of a node in its directory: 1 to [`NAME_LENGTH_MAX`] bytes, no `/`, no zero byte, not `.` or `..`.
///
/// Names are bytes, as the file system has them. They need not be UTF-8 and are compared byte by byte.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Name(Box<[u8]>);

impl Name {
    /// Checks and wraps a name.
    ///
    /// # Errors
    /// [`InvalidPath`] where no file may have the name.
    pub fn new(bytes: impl Into<Vec<u8>>) -> Result<Self, InvalidPath> {
        let bytes = bytes.into();
        let text = || String::from_utf8_lossy(&bytes).into_owned();
        match bytes.as_slice() {
            b"" => return Err(InvalidPath::Empty),
            b"." | b".." => return Err(InvalidPath::Dots(text())),
            _ => {}
        }
        if bytes.contains(&b'/') {
            return Err(InvalidPath::Separator(text()));
        }
        if let Some(position) = bytes.iter().position(|&byte| byte == 0) {
            return Err(InvalidPath::ZeroByte { name: text(), position });
        }
        if bytes.len() > NAME_LENGTH_MAX {
            return Err(InvalidPath::NameTooLong(bytes.len()));
        }
        Ok(Self(bytes.into_boxed_slice()))
    }

    /// Returns the bytes of the name.
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }

    /// Makes the name under which a conflicting node is kept: the label goes before the extension.
    ///
    /// `report.odt` with the label `conflict v7` becomes `report (conflict v7).odt`. A name that already carries
    /// a conflict label loses it first, so labels never nest; a stem too long for the label is cut at a
    /// character border. `attempt` 1 and higher number the result, for callers that look for a free name.
    pub fn conflict(&self, label: &str, attempt: u32) -> Self {
        let (stem, extension) = self.split_extension();
        let stem = without_conflict_label(stem);
        let number = if attempt == 0 { String::new() } else { format!(" {}", attempt + 1) };
        let suffix = format!(" ({label}{number})");
        let room = NAME_LENGTH_MAX.saturating_sub(suffix.len() + extension.len());
        let (stem, extension) =
            if room == 0 { (self.as_bytes(), &b""[..]) } else { (stem, extension) };
        let room = NAME_LENGTH_MAX - suffix.len() - extension.len();
        let mut bytes = cut_at_character(stem, room).to_vec();
        bytes.extend_from_slice(suffix.as_bytes());
        bytes.extend_from_slice(extension);
        Self(bytes.into_boxed_slice())
    }

    /// Splits off the extension with its dot; a leading dot is part of the stem.
    fn split_extension(&self) -> (&[u8], &[u8]) {
        match self.0.iter().rposition(|&byte| byte == b'.') {
            Some(dot) if dot > 0 => self.0.split_at(dot),
            _ => (&self.0, b""),
        }
    }
}

/// The words that start every conflict label, after the bracket.
const CONFLICT_WORD: &[u8] = b"(conflict ";

/// Cuts off a conflict label that stands at the end of a stem.
fn without_conflict_label(stem: &[u8]) -> &[u8] {
    if stem.last() != Some(&b')') {
        return stem;
    }
    let start = stem.windows(CONFLICT_WORD.len()).rposition(|window| window == CONFLICT_WORD);
    match start {
        Some(start) if start > 1 && stem[start - 1] == b' ' => &stem[..start - 1],
        _ => stem,
    }
}

/// Returns the longest prefix of at most `length` bytes that does not end inside a UTF-8 character.
fn cut_at_character(bytes: &[u8], length: usize) -> &[u8] {
    if bytes.len() <= length {
        return bytes;
    }
    let mut end = length;
    while end > 0 && end + 3 > length && bytes[end] & 0xc0 == 0x80 {
        end -= 1;
    }
    &bytes[..if bytes[end] & 0xc0 == 0x80 { length } else { end }]
}

impl fmt::Display for Name {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_bytes(formatter, &self.0)
    }
}

impl fmt::Debug for Name {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "\"{self}\"")
    }
}

/// Writes bytes for people: control characters and bidirectional overrides are escaped, so that a name cannot
/// pretend to be another one on a terminal.
fn write_bytes(formatter: &mut fmt::Formatter<'_>, bytes: &[u8]) -> fmt::Result {
    for character in String::from_utf8_lossy(bytes).chars() {
        let bidirectional = matches!(character, '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
        if character.is_control() || bidirectional {
            write!(formatter, "{}", character.escape_unicode())?;
        } else {
            write!(formatter, "{character}")?;
        }
    }
    Ok(())
}

impl Encode for Name {
    fn encode(&self, encoder: &mut Encoder) {
        encoder.byte_string(&self.0);
    }
}

impl Decode for Name {
    fn decode(decoder: &mut Decoder<'_>) -> Result<Self, DecodeError> {
        let bytes = decoder.byte_string(NAME_LENGTH_MAX)?;
        Self::new(bytes).map_err(|error| decoder.invalid("name", error))
    }
}

/// A path from the root of a workspace: zero or more names; the root itself is the empty path.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct RelativePath(Vec<u8>);

impl RelativePath {
    /// The root of the workspace.
    pub const ROOT: Self = Self(Vec::new());

    /// Checks and wraps a path whose names are separated by `/`.
    ///
    /// # Errors
    /// [`InvalidPath`] where a name or the whole may not be: an absolute path, `..`, an empty name.
    pub fn new(bytes: &[u8]) -> Result<Self, InvalidPath> {
        let mut path = Self::ROOT;
        if !bytes.is_empty() {
            for name in bytes.split(|&byte| byte == b'/') {
                path = path.join(&Name::new(name)?)?;
            }
        }
        Ok(path)
    }

    /// Returns the path of `name` in this directory.
    ///
    /// # Errors
    /// [`InvalidPath::PathTooLong`].
    pub fn join(&self, name: &Name) -> Result<Self, InvalidPath> {
        let mut bytes = Vec::with_capacity(self.0.len() + 1 + name.0.len());
        bytes.extend_from_slice(&self.0);
        if !bytes.is_empty() {
            bytes.push(b'/');
        }
        bytes.extend_from_slice(&name.0);
        let path = Self(bytes);
        let (depth, length) = (path.depth(), path.0.len());
        if depth > PATH_DEPTH_MAX || length > PATH_LENGTH_MAX {
            return Err(InvalidPath::PathTooLong { depth, length });
        }
        Ok(path)
    }

    /// Returns the number of names.
    pub fn depth(&self) -> usize {
        if self.0.is_empty() { 0 } else { 1 + self.0.iter().filter(|&&byte| byte == b'/').count() }
    }

    /// Tells whether this is the root of the workspace.
    pub fn is_root(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns the bytes of the path.
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }

    /// Returns the names from the root down.
    pub fn names(&self) -> impl Iterator<Item = Name> + '_ {
        self.0
            .split(|&byte| byte == b'/')
            .filter(|name| !name.is_empty())
            .map(|name| Name(name.into()))
    }

    /// Splits the path into its directory and its last name; the root has none.
    pub fn split_last(&self) -> Option<(Self, Name)> {
        if self.is_root() {
            return None;
        }
        match self.0.iter().rposition(|&byte| byte == b'/') {
            Some(slash) => Some((Self(self.0[..slash].to_vec()), Name(self.0[slash + 1..].into()))),
            None => Some((Self::ROOT, Name(self.0.as_slice().into()))),
        }
    }

    /// Tells whether `self` is `directory` or lies below it.
    pub fn starts_with(&self, directory: &Self) -> bool {
        directory.is_root()
            || self
                .0
                .strip_prefix(directory.0.as_slice())
                .is_some_and(|rest| rest.is_empty() || rest[0] == b'/')
    }

    /// Returns the path for the operating system, relative to the root folder.
    #[cfg(unix)]
    pub fn to_os_path(&self) -> PathBuf {
        use std::os::unix::ffi::OsStrExt;
        PathBuf::from(std::ffi::OsStr::from_bytes(&self.0))
    }

    /// Reads a path that the operating system gave, relative to the root folder.
    ///
    /// # Errors
    /// [`InvalidPath`], for example for an absolute path.
    #[cfg(unix)]
    pub fn from_os_path(path: &Path) -> Result<Self, InvalidPath> {
        use std::os::unix::ffi::OsStrExt;
        Self::new(path.as_os_str().as_bytes())
    }
}

impl fmt::Display for RelativePath {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.is_root() { formatter.write_str(".") } else { write_bytes(formatter, &self.0) }
    }
}

impl fmt::Debug for RelativePath {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "\"{self}\"")
    }
}

#[cfg(test)]
mod tests;
