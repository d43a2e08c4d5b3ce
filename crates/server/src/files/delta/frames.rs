//! The messages of a request: each behind its length in four bytes, little-endian.

use std::io::{ErrorKind, Read};

use content::delta::MESSAGE_LENGTH_MAX;

use crate::error::{Result, ServerError};
use crate::files::Spooled;
use crate::files::spool::failed;

/// Reads the messages of a body one by one.
pub(super) struct Frames<'a> {
    body: Box<dyn Read + 'a>,
}

fn invalid(reason: &str) -> ServerError {
    ServerError::Invalid { what: "delta", reason: reason.to_owned() }
}

impl<'a> Frames<'a> {
    pub(super) fn of(body: &'a Spooled) -> Self {
        Self { body: body.read() }
    }

    /// Returns the next message; nothing at the end.
    ///
    /// # Errors
    /// [`ServerError::Invalid`] where the body ends within one; [`ServerError::TooLarge`].
    pub(super) fn next(&mut self) -> Result<Option<Vec<u8>>> {
        let mut head = [0; 4];
        match self.fill(&mut head)? {
            0 => return Ok(None),
            4 => {}
            _ => return Err(invalid("the body ends within the length of a message")),
        }
        let length = u32::from_le_bytes(head) as usize;
        if length > MESSAGE_LENGTH_MAX {
            let length_max = MESSAGE_LENGTH_MAX as u64;
            return Err(ServerError::TooLarge { what: "a message", length_max });
        }
        // Room is made for what is there, and not for what is announced.
        let mut message = Vec::new();
        let read = (&mut self.body).take(length as u64).read_to_end(&mut message);
        match read.map_err(|error| failed(&error))? {
            actual if actual == length => Ok(Some(message)),
            _ => Err(invalid("the body ends within a message")),
        }
    }

    /// Returns the first message.
    pub(super) fn only_first(&mut self) -> Result<Vec<u8>> {
        self.next()?.ok_or_else(|| invalid("the body has no message"))
    }

    /// Refuses more messages than one.
    pub(super) fn check_alone(&mut self) -> Result<()> {
        self.only_first()?;
        self.check_end()
    }

    /// Refuses what follows the last message.
    pub(super) fn check_end(&mut self) -> Result<()> {
        match self.fill(&mut [0])? {
            0 => Ok(()),
            _ => Err(invalid("something follows the last message")),
        }
    }

    /// Fills a buffer as far as the body goes.
    fn fill(&mut self, buffer: &mut [u8]) -> Result<usize> {
        let mut filled = 0;
        while filled < buffer.len() {
            match self.body.read(&mut buffer[filled..]) {
                Ok(0) => break,
                Ok(read) => filled += read,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(failed(&error)),
            }
        }
        Ok(filled)
    }
}
