//! The header `If` (RFC 4918, section 10.4): lists of conditions, of which one must hold, and the locks that a client names
//! with them.

use std::collections::HashSet;

use model::RelativePath;

use crate::error::{Result, ServerError};
use crate::services::files::Condition;

/// How many addresses a header names at most; for each, the tree is asked what is there.
const ADDRESSES_MAX: usize = 32;

/// One condition.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Term {
    is_negated: bool,
    state: State,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum State {
    Token(String),
    Etag(String),
}

/// Conditions that hold together, about the resource of the request or another one.
#[derive(Debug, Clone, PartialEq, Eq)]
struct List {
    /// The address that it is about.
    resource: Option<String>,
    terms: Vec<Term>,
}

/// The header.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct IfHeader(Vec<List>);

fn invalid() -> ServerError {
    ServerError::Invalid { what: "If", reason: "its lists cannot be read".to_owned() }
}

/// Returns what stands between two characters at the start of a text, and the rest.
fn between(text: &str, first: char, last: char) -> Option<(&str, &str)> {
    text.strip_prefix(first)?.split_once(last)
}

impl IfHeader {
    /// Reads the header.
    ///
    /// # Errors
    /// [`ServerError::Invalid`].
    pub(super) fn parse(text: &str) -> Result<Self> {
        let (mut lists, mut resource, mut rest) = (Vec::new(), None, text.trim());
        while !rest.is_empty() {
            if let Some((address, after)) = between(rest, '<', '>') {
                resource = Some(address.to_owned());
                rest = after.trim_start();
            }
            let (inside, after) = between(rest, '(', ')').ok_or_else(invalid)?;
            lists.push(List { resource: resource.clone(), terms: parse_terms(inside)? });
            rest = after.trim_start();
        }
        let header = Self(lists);
        if header.addresses().collect::<HashSet<_>>().len() > ADDRESSES_MAX {
            let reason = format!("it names more than {ADDRESSES_MAX} addresses");
            return Err(ServerError::Invalid { what: "If", reason });
        }
        Ok(header)
    }

    /// Tells whether there is no list.
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns what must be so at the moment of a change: where a version of what is changed was named, the one that was found
    /// to fit. What a header of HTTP asks for goes before.
    pub(super) fn with(&self, condition: Condition, etag: Option<String>) -> Condition {
        let names_version = |term: &Term| !term.is_negated && matches!(term.state, State::Etag(_));
        let own = self.0.iter().filter(|list| list.resource.is_none());
        match (condition, etag) {
            (Condition::Any, Some(etag)) if own.flat_map(|list| &list.terms).any(names_version) => {
                Condition::Is(vec![etag])
            }
            (condition, _) => condition,
        }
    }

    /// Returns all locks that are named and not denied.
    pub(super) fn tokens(&self) -> Vec<String> {
        let terms = self.0.iter().flat_map(|list| &list.terms);
        let token = |term: &Term| match &term.state {
            State::Token(token) if !term.is_negated => Some(token.clone()),
            _ => None,
        };
        terms.filter_map(token).collect()
    }

    /// Returns the addresses of other resources that conditions are about.
    pub(super) fn addresses(&self) -> impl Iterator<Item = &str> {
        self.0.iter().filter_map(|list| list.resource.as_deref())
    }

    /// Tells whether the header holds: a list of which all conditions do, or no list at all. `path_of` reads an address,
    /// `has_lock` tells whether a path has a lock, and `etag_of` which version is there.
    pub(super) fn holds(
        &self,
        own: &RelativePath,
        path_of: impl Fn(&str) -> Option<RelativePath>,
        has_lock: impl Fn(&RelativePath, &str) -> bool,
        etag_of: impl Fn(&RelativePath) -> Option<String>,
    ) -> bool {
        let list_holds = |list: &List| {
            let path = match &list.resource {
                None => Some(own.clone()),
                Some(address) => path_of(address),
            };
            list.terms.iter().all(|term| {
                let is_so = path.as_ref().is_some_and(|path| match &term.state {
                    State::Token(token) => has_lock(path, token),
                    State::Etag(etag) => etag_of(path).as_ref() == Some(etag),
                });
                is_so != term.is_negated
            })
        };
        self.0.is_empty() || self.0.iter().any(list_holds)
    }
}

fn parse_terms(text: &str) -> Result<Vec<Term>> {
    let (mut terms, mut rest) = (Vec::new(), text.trim());
    while !rest.is_empty() {
        let negated = rest.strip_prefix("Not").or_else(|| rest.strip_prefix("not"));
        let after = negated.unwrap_or(rest).trim_start();
        let (state, after) = if let Some((token, after)) = between(after, '<', '>') {
            (State::Token(token.to_owned()), after)
        } else {
            let (etag, after) = between(after, '[', ']').ok_or_else(invalid)?;
            (State::Etag(etag.trim().to_owned()), after)
        };
        terms.push(Term { is_negated: negated.is_some(), state });
        rest = after.trim_start();
    }
    if terms.is_empty() { Err(invalid()) } else { Ok(terms) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn holds(text: &str) -> bool {
        let path_of = |address: &str| RelativePath::new(address.as_bytes()).ok();
        let has_lock = |_: &RelativePath, token: &str| token == "t:1";
        let etag_of = |path: &RelativePath| (path.as_bytes() == b"a").then(|| "\"e\"".to_owned());
        let own = RelativePath::new(b"a").unwrap();
        IfHeader::parse(text).unwrap().holds(&own, path_of, has_lock, etag_of)
    }

    #[test]
    fn one_list_must_hold_with_all_its_conditions() {
        for (text, wanted) in [
            ("", true),
            ("(<t:1>)", true),
            ("(<t:2>)", false),
            ("(<t:2>) (<t:1>)", true),
            ("(<t:1> [\"e\"])", true),
            ("(<t:1> [\"f\"])", false),
            ("(Not <t:2> [\"e\"])", true),
            ("(Not <DAV:no-lock>)", true),
            ("(<DAV:no-lock>)", false),
            ("<b> ([\"e\"])", false),
            ("<b> (Not [\"e\"])", true),
        ] {
            assert_eq!(holds(text), wanted, "{text}");
        }
        let header = IfHeader::parse("(<t:1> Not <t:2>) <x> (<t:3>)").unwrap();
        assert_eq!(header.tokens(), ["t:1", "t:3"]);
    }

    #[test]
    fn only_so_many_addresses_are_looked_at() {
        let header = |addresses: usize| {
            let lists = (0..2 * addresses).map(|number| format!("<{}> (<t:1>)", number / 2));
            IfHeader::parse(&lists.collect::<String>())
        };
        assert_eq!(header(ADDRESSES_MAX).unwrap().addresses().count(), 2 * ADDRESSES_MAX);
        let refused = header(ADDRESSES_MAX + 1).unwrap_err().to_string();
        assert!(refused.contains("more than 32 addresses"), "{refused}");
    }

    #[test]
    fn what_is_no_list_is_refused() {
        for text in ["x", "(", "()", "(<t)", "<a>", "(x)"] {
            assert!(IfHeader::parse(text).is_err(), "{text}");
        }
    }
}
