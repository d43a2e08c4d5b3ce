//! Things of an account that people name: devices, tokens.

use crate::error::{Code, CommandError, Result};

/// What has a name for people, and an id.
pub(crate) trait Named {
    /// What several of them are called; without the last letter one of them.
    const KINDS: &'static str;
    /// The command that lists them.
    const LIST: &'static str;

    /// Returns its name and its id.
    fn name_and_id(&self) -> (&str, &str);
}

/// Finds one by its name or by the beginning of its id; two of one name are told apart by their ids.
///
/// # Errors
/// A usage error where several are meant, [`Code::NoSuchThing`] where none is.
pub(crate) fn find<'a, T: Named>(all: &'a [T], text: &str) -> Result<&'a T> {
    let is_meant = |one: &&T| {
        let (name, id) = one.name_and_id();
        name == text || (text.len() >= 8 && id.starts_with(text))
    };
    let mut found = all.iter().filter(is_meant);
    let (kinds, kind) = (T::KINDS, T::KINDS.trim_end_matches('s'));
    match (found.next(), found.next()) {
        (Some(one), None) => Ok(one),
        (Some(_), Some(_)) => {
            Err(CommandError::usage(format!("several {kinds} are called '{text}'"))
                .help(T::LIST, "shows their ids, which can be given instead"))
        }
        (None, _) => Err(CommandError::new(
            Code::NoSuchThing,
            format!("the account has no {kind} called '{text}'"),
        )
        .help(T::LIST, "lists them")),
    }
}
