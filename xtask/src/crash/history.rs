//! What the users did: enough to judge the end, and nothing about how syncing works.

use std::collections::{BTreeMap, BTreeSet};

/// A unique mark inside every content that a user writes.
pub(super) type Token = u64;

/// One change of one path in the area that both users share.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Event {
    pub user: usize,
    pub token: Token,
    /// What the user had before the eyes: the token of the content that was replaced.
    pub seen: Seen,
}

/// What a user saw at a path before changing it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Seen {
    /// A content with this token.
    Token(Token),
    /// A free place that nobody had used before.
    NeverUsed,
    /// Something that does not tell what was known, such as a free place that was used before.
    Unclear,
}

/// All that happened.
#[derive(Debug, Clone, Default)]
pub(super) struct History {
    last_token: Token,
    /// Changes per shared path, in the order in which the users made them.
    pub events: BTreeMap<String, Vec<Event>>,
    /// What each user wrote last at each shared path and did not remove since.
    pub last_written: BTreeMap<(usize, String), Vec<u8>>,
    /// Where a shared file went by a rename, and from where it came.
    pub renames: BTreeSet<(String, String)>,
    /// What must be in the users' own areas at the end.
    pub own_files: BTreeMap<String, Vec<u8>>,
}

impl History {
    pub(super) fn new_token(&mut self) -> Token {
        self.last_token += 1;
        self.last_token
    }

    /// A user wrote a content at a shared path.
    pub(super) fn wrote(&mut self, path: &str, event: Event, content: Vec<u8>) {
        self.last_written.insert((event.user, path.to_owned()), content);
        self.events.entry(path.to_owned()).or_default().push(event);
    }

    /// A user removed what stood at a shared path.
    pub(super) fn removed(&mut self, path: &str, event: Event) {
        self.last_written.remove(&(event.user, path.to_owned()));
        self.events.entry(path.to_owned()).or_default().push(event);
    }

    /// A user renamed a shared file to a free name.
    pub(super) fn renamed(&mut self, from: &str, to: &str, event: Event) {
        if let Some(content) = self.last_written.remove(&(event.user, from.to_owned())) {
            self.last_written.insert((event.user, to.to_owned()), content);
        }
        // Backwards, too: a content that was recorded before the rename stands in the history of the old name.
        self.renames.insert((from.to_owned(), to.to_owned()));
        self.renames.insert((to.to_owned(), from.to_owned()));
        let arrived = Event { seen: Seen::Unclear, ..event.clone() };
        self.events.entry(from.to_owned()).or_default().push(event);
        self.events.entry(to.to_owned()).or_default().push(arrived);
    }

    /// What a user sees who finds a path free.
    pub(super) fn seen_when_free(&self, path: &str) -> Seen {
        if self.events.contains_key(path) { Seen::Unclear } else { Seen::NeverUsed }
    }

    /// Every path that the content of a path may have moved to or come from, itself included.
    pub(super) fn paths_reached_from(&self, path: &str) -> BTreeSet<String> {
        let mut reached = BTreeSet::from([path.to_owned()]);
        loop {
            let more: Vec<String> = self
                .renames
                .iter()
                .filter(|(from, to)| reached.contains(from) && !reached.contains(to))
                .map(|(_, to)| to.clone())
                .collect();
            if more.is_empty() {
                return reached;
            }
            reached.extend(more);
        }
    }

    /// Says whether both users may have changed a path without seeing each other's change.
    pub(super) fn may_conflict(&self, path: &str) -> bool {
        let Some(events) = self.events.get(path) else { return false };
        let users: BTreeSet<usize> = events.iter().map(|event| event.user).collect();
        if users.len() < 2 {
            return false;
        }
        if events.iter().any(|event| event.seen == Seen::Unclear) {
            return true;
        }
        let pairs = events
            .iter()
            .enumerate()
            .flat_map(|(index, one)| events[index + 1..].iter().map(move |other| (one, other)));
        pairs
            .filter(|(one, other)| one.user != other.user)
            .any(|(one, other)| !knew_of(events, other, one) && !knew_of(events, one, other))
    }
}

/// Says whether `later` was made by somebody who had, step by step, seen `earlier`.
fn knew_of(events: &[Event], later: &Event, earlier: &Event) -> bool {
    let mut step = later;
    loop {
        if step.token == earlier.token {
            return true;
        }
        let Seen::Token(token) = step.seen else { return false };
        // A token that no event made was in the folder from the start.
        match events.iter().find(|event| event.token == token) {
            Some(before) if before.token < step.token => step = before,
            _ => return false,
        }
    }
}

/// A content that carries its token in the first line.
pub(super) fn content_with(token: Token, filler: &[u8]) -> Vec<u8> {
    [format!("token {token}\n").as_bytes(), filler].concat()
}

/// The token of a content.
pub(super) fn token_of(content: &[u8]) -> Option<Token> {
    let line = content.split(|&byte| byte == b'\n').next()?;
    std::str::from_utf8(line).ok()?.strip_prefix("token ")?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn history(events: &[(usize, Token, Seen)]) -> History {
        let mut history = History::default();
        for &(user, token, seen) in events {
            history.wrote("p", Event { user, token, seen }, content_with(token, b"x"));
        }
        history
    }

    #[test]
    fn a_content_carries_its_token() {
        assert_eq!(token_of(&content_with(17, b"\x00\xFF")), Some(17));
        assert_eq!(token_of(b"tok"), None);
    }

    #[test]
    fn edits_that_saw_each_other_may_not_conflict() {
        let chain = [(0, 1, Seen::NeverUsed), (1, 2, Seen::Token(1)), (0, 3, Seen::Token(2))];
        assert!(!history(&chain).may_conflict("p"));
        assert!(!history(&[(0, 1, Seen::NeverUsed), (0, 2, Seen::Unclear)]).may_conflict("p"));
        assert!(!history(&chain).may_conflict("another path"));
    }

    #[test]
    fn edits_of_one_version_by_both_may_conflict() {
        let fork = [(0, 1, Seen::NeverUsed), (0, 2, Seen::Token(1)), (1, 3, Seen::Token(1))];
        assert!(history(&fork).may_conflict("p"));
        let both_new = [(0, 1, Seen::NeverUsed), (1, 2, Seen::NeverUsed)];
        assert!(history(&both_new).may_conflict("p"));
        let from_the_start = [(0, 5, Seen::Token(0)), (1, 6, Seen::Token(0))];
        assert!(history(&from_the_start).may_conflict("p"));
    }

    #[test]
    fn a_rename_moves_the_duty_and_is_followed() {
        let mut history = history(&[(0, 1, Seen::NeverUsed)]);
        let event = Event { user: 0, token: 2, seen: Seen::Token(1) };
        history.renamed("p", "q", event);
        assert!(history.last_written.contains_key(&(0, "q".to_owned())));
        assert!(!history.last_written.contains_key(&(0, "p".to_owned())));
        let reached = history.paths_reached_from("p");
        assert_eq!(reached, BTreeSet::from(["p".to_owned(), "q".to_owned()]));
    }
}
