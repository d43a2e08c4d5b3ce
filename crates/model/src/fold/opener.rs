//! What the fold asks of whoever has the keys of a workspace.

use std::borrow::Cow;

use crate::commit::{Action, Commit};

/// What a change puts; nothing for a deletion.
pub type Payload<'a> = Option<Cow<'a, [u8]>>;

/// Opens what the commits of a workspace carry. It is a pure function of the keys, so that all devices agree.
pub trait Opener {
    /// Tells why a commit counts for nothing, if it does: nobody who may vouches for it. The list of members is the one that the
    /// log before the commit has, if there is one.
    ///
    /// # Errors
    /// The reason, for people.
    fn check(&self, commit: &Commit, members: Option<&[u8]>) -> Result<(), String>;

    /// Returns what a change of the commit puts, by its number: the encoding of a record, or settings; nothing for a
    /// deletion.
    ///
    /// # Errors
    /// Why it cannot be opened, for people.
    fn open<'a>(&self, commit: &'a Commit, number: usize) -> Result<Payload<'a>, String>;

    /// Tells why a list of members counts for nothing, if it does: the owner has not signed it, or only before the one that is there.
    ///
    /// # Errors
    /// The reason, for people.
    fn check_members(&self, old: Option<&[u8]>, new: &[u8]) -> Result<(), String>;
}

/// Opens the commits of a plain workspace: their payloads are what they are.
#[derive(Debug, Clone, Copy)]
pub struct PlainOpener;

impl Opener for PlainOpener {
    fn check(&self, commit: &Commit, _: Option<&[u8]>) -> Result<(), String> {
        match commit.seal {
            None => Ok(()),
            Some(_) => Err("it is sealed, and the workspace is not".to_owned()),
        }
    }

    fn open<'a>(&self, commit: &'a Commit, number: usize) -> Result<Payload<'a>, String> {
        Ok(match &commit.changes[number].action {
            Action::Put(payload) => Some(Cow::Borrowed(payload)),
            Action::Delete => None,
        })
    }

    fn check_members(&self, _: Option<&[u8]>, _: &[u8]) -> Result<(), String> {
        Err("the workspace is not sealed, and has its members at the server".to_owned())
    }
}
