//! Files and folders found by their names. One rule for the server, which has the trees of plain workspaces, and for a browser, which
//! alone can read those of sealed ones.
//!
//! *Goals*: what people take for the same is the same: case, accents, the normalisation form of Unicode and characters that nobody sees do
//! not count. The words of a query stand in a name in any order, each anywhere. The best match comes first, and two askers get one order. A
//! scan can be done in steps, between which the tree may change, and keeps no more than a page. *Non-goals*: what stands in
//! files; names of the folders above; spelling mistakes. *Invariants*: a name that has a letter, digit or sign finds itself, as the best; what
//! was found before a place is not found behind it again.

use std::borrow::Cow;
use std::collections::BinaryHeap;

use model::{NodeId, Tree};
use unicode_normalization::char::{canonical_combining_class, decompose_compatible};

/// The longest query, in characters: as long as the longest name.
pub const QUERY_LENGTH_MAX: usize = model::path::NAME_LENGTH_MAX;

/// How much of a folded name counts for the order, in bytes; names that are the same up to there follow by their ids.
const ORDER_LENGTH_MAX: usize = 128;

/// Why nothing is looked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum InvalidQuery {
    /// No character of it counts.
    #[error("there is nothing to look for in it")]
    Empty,
    /// It is longer than [`QUERY_LENGTH_MAX`].
    #[error("it is longer than {QUERY_LENGTH_MAX} characters")]
    TooLong,
}

/// How well a name matches, the best first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Rank {
    /// The name is the query.
    Same,
    /// The name begins with a word of the query, and the others stand at the beginnings of words.
    Begins,
    /// All words of the query stand at the beginnings of words.
    Words,
    /// All words of the query stand in the name.
    Inside,
}

impl Rank {
    const ALL: [Self; 4] = [Self::Same, Self::Begins, Self::Words, Self::Inside];
}

/// What somebody looks for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Query {
    whole: String,
    /// The longest first: it is the one that most names do not have.
    words: Vec<String>,
}

/// Where a word stands in a name.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Standing {
    Beginning,
    WordBeginning,
    Inside,
}

impl Query {
    /// Reads what somebody has typed: words with space between them.
    ///
    /// # Errors
    /// [`InvalidQuery`].
    pub fn new(text: &str) -> Result<Self, InvalidQuery> {
        if text.chars().count() > QUERY_LENGTH_MAX {
            return Err(InvalidQuery::TooLong);
        }
        let mut folded = String::new();
        fold(text, &mut folded);
        let mut words: Vec<_> = folded.split_whitespace().map(str::to_owned).collect();
        words.sort_unstable_by(|one, other| (other.len(), one).cmp(&(one.len(), other)));
        words.dedup();
        match words.is_empty() {
            true => Err(InvalidQuery::Empty),
            false => Ok(Self { whole: folded.trim().to_owned(), words }),
        }
    }

    /// Returns how well a name matches, if it does.
    pub fn rank(&self, name: &[u8]) -> Option<Rank> {
        let mut folded = String::new();
        fold(&String::from_utf8_lossy(name), &mut folded);
        self.rank_folded(&folded)
    }

    fn rank_folded(&self, name: &str) -> Option<Rank> {
        let (mut begins, mut is_inside) = (false, false);
        for word in &self.words {
            match find(name, word)?.1 {
                Standing::Beginning => begins = true,
                Standing::WordBeginning => {}
                Standing::Inside => is_inside = true,
            }
        }
        Some(match (begins, is_inside) {
            _ if name.trim() == self.whole => Rank::Same,
            (_, true) => Rank::Inside,
            (true, false) => Rank::Begins,
            (false, false) => Rank::Words,
        })
    }

    /// Returns which parts of a name that matches are to be marked: ranges of it in UTF-16 code units, as scripts of pages count, in order and
    /// apart. Nothing of one that does not match.
    pub fn marks(&self, name: &str) -> Vec<(usize, usize)> {
        let parts = fold_parts(name);
        let folded: String = parts.iter().map(|part| part.character).collect();
        let mut marked = vec![false; name.len()];
        for word in &self.words {
            let Some((at, _)) = find(&folded, word) else { return Vec::new() };
            let first = folded[..at].chars().count();
            let count = word.chars().count();
            for part in &parts[first..first + count] {
                marked[part.source] = true;
            }
        }
        ranges(name, &marked)
    }
}

/// Makes ranges of the characters that are marked by where they begin. What does not count belongs to the character before it.
fn ranges(name: &str, marked: &[bool]) -> Vec<(usize, usize)> {
    let mut ranges: Vec<(usize, usize)> = Vec::new();
    let (mut at, mut was_marked) = (0, false);
    for (source, character) in name.char_indices() {
        let end = at + character.len_utf16();
        let is_marked = marked[source] || (was_marked && counts_for_nothing(character));
        match ranges.last_mut() {
            Some(last) if is_marked && last.1 == at => last.1 = end,
            _ if is_marked => ranges.push((at, end)),
            _ => {}
        }
        (at, was_marked) = (end, is_marked);
    }
    ranges
}

/// Finds a word where it stands best.
fn find(name: &str, word: &str) -> Option<(usize, Standing)> {
    let first = name.find(word)?;
    let mut at = first;
    loop {
        let before = name[..at].chars().next_back();
        match before {
            None => return Some((at, Standing::Beginning)),
            Some(before) if !is_of_word(before) => return Some((at, Standing::WordBeginning)),
            Some(_) => {}
        }
        let step = name[at..].chars().next().map_or(1, char::len_utf8);
        match name[at + step..].find(word) {
            Some(next) => at += step + next,
            None => return Some((first, Standing::Inside)),
        }
    }
}

fn is_of_word(character: char) -> bool {
    character.is_alphanumeric() || canonical_combining_class(character) != 0
}

/// Tells whether a character counts for nothing: an accent, or what nobody sees. Signs that make another letter of one, as the voicing of kana and
/// the viramas and vowels of many scripts, count.
fn counts_for_nothing(character: char) -> bool {
    match canonical_combining_class(character) {
        0 => matches!(
            character,
            '\u{ad}' | '\u{34f}' | '\u{61c}' | '\u{180b}'..='\u{180f}' | '\u{200b}'..='\u{200f}'
                | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{fe00}'..='\u{fe0f}'
                | '\u{feff}' | '\u{fff9}'..='\u{fffb}' | '\u{e0000}'..='\u{e0fff}'
        ),
        1 | 10..=36 | 200..=240 => true,
        _ => false,
    }
}

/// Returns what people type for a letter that Unicode does not take apart.
fn plain(character: char) -> Option<&'static str> {
    Some(match character {
        'ß' => "ss",
        'æ' => "ae",
        'œ' => "oe",
        'ø' => "o",
        'đ' | 'ð' => "d",
        'ħ' => "h",
        'ı' => "i",
        'ł' => "l",
        'ŧ' => "t",
        'þ' => "th",
        'ς' => "σ",
        _ => return None,
    })
}

/// A character of a folded name.
struct Part {
    character: char,
    /// Where in the name the character begins from which it is, in bytes.
    source: usize,
}

/// Folds a name, and notes what is from where.
fn fold_parts(name: &str) -> Vec<Part> {
    let mut parts = Vec::with_capacity(name.len());
    for (source, character) in name.char_indices() {
        // Taken apart before, so that one character and the several that mean the same are treated as one.
        decompose_compatible(character, |character| {
            for character in character.to_lowercase() {
                decompose_compatible(character, |character| push(&mut parts, character, source));
            }
        });
    }
    parts
}

fn push(parts: &mut Vec<Part>, character: char, source: usize) {
    if counts_for_nothing(character) {
        return;
    }
    if let Some(text) = plain(character) {
        parts.extend(text.chars().map(|character| Part { character, source }));
        return;
    }
    // Signs behind one letter stand in one order, whoever typed them.
    let class = canonical_combining_class(character);
    let is_before = |part: &Part| canonical_combining_class(part.character) <= class;
    let at = match class {
        0 => parts.len(),
        _ => parts.iter().rposition(is_before).map_or(0, |last| last + 1),
    };
    parts.insert(at, Part { character, source });
}

/// Puts the folded name into `folded`.
fn fold(name: &str, folded: &mut String) {
    folded.clear();
    match name.is_ascii() {
        true => folded.extend(name.bytes().map(|byte| char::from(byte.to_ascii_lowercase()))),
        false => folded.extend(fold_parts(name).iter().map(|part| part.character)),
    }
}

/// The part of a folded name that counts for the order.
fn order_of(folded: &str) -> &str {
    &folded[..folded.floor_char_boundary(ORDER_LENGTH_MAX)]
}

/// Where in the order of what is found a node stands.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Place {
    rank: Rank,
    order: String,
    id: NodeId,
}

impl Place {
    /// Returns the node.
    pub fn id(&self) -> NodeId {
        self.id
    }

    /// Returns it as text, for whoever goes on behind it later.
    pub fn to_text(&self) -> String {
        let order: String = self.order.bytes().map(|byte| format!("{byte:02x}")).collect();
        format!("{}-{}-{order}", self.rank as u8, self.id)
    }

    /// Reads such a text; nothing where it is none.
    pub fn from_text(text: &str) -> Option<Self> {
        let mut parts = text.splitn(3, '-');
        let (rank, id, order) = (parts.next()?, parts.next()?, parts.next()?);
        let rank = *Rank::ALL.get(rank.parse::<usize>().ok()?)?;
        if order.len() > 2 * ORDER_LENGTH_MAX || order.len() % 2 != 0 || !order.is_ascii() {
            return None;
        }
        let byte = |at: usize| u8::from_str_radix(&order[at..at + 2], 16).ok();
        let order = (0..order.len()).step_by(2).map(byte).collect::<Option<Vec<u8>>>()?;
        Some(Self { rank, order: String::from_utf8(order).ok()?, id: id.parse().ok()? })
    }
}

/// A search under way: [`look`](Self::look) until all is seen, then [`page`](Self::page).
#[derive(Debug)]
pub struct Search {
    query: Query,
    after: Option<Place>,
    limit: usize,
    /// The best so far, one more than asked for; the worst of them is on top.
    best: BinaryHeap<Place>,
    folded: String,
}

impl Search {
    /// Begins to look for the `limit` best matches behind a place.
    pub fn new(query: Query, after: Option<Place>, limit: usize) -> Self {
        let (best, folded) = (BinaryHeap::new(), String::new());
        Self { query, after, limit, best, folded }
    }

    /// Returns what is looked for.
    pub fn query(&self) -> &Query {
        &self.query
    }

    /// Looks at up to `count` nodes of a tree behind one. Returns the last one; nothing where all was seen. What `is_shown` does
    /// not let through is not found.
    pub fn look(
        &mut self,
        tree: &Tree,
        after: Option<NodeId>,
        count: usize,
        is_shown: impl Fn(&NodeId) -> bool,
    ) -> Option<NodeId> {
        let (mut seen, mut last) = (0, None);
        for (id, node) in tree.nodes_after(after).take(count) {
            (seen, last) = (seen + 1, Some(*id));
            if !node.is_alive() {
                continue;
            }
            let name: Cow<'_, str> = String::from_utf8_lossy(node.record.name.as_bytes());
            fold(&name, &mut self.folded);
            let Some(rank) = self.query.rank_folded(&self.folded) else { continue };
            let place = (rank, order_of(&self.folded), *id);
            let is_behind = |other: &Place| {
                (other.rank, other.order.as_str(), other.id) < (place.0, place.1, place.2)
            };
            let is_full = self.best.len() > self.limit;
            if !self.after.as_ref().is_none_or(is_behind)
                || (is_full && self.best.peek().is_some_and(is_behind))
                || !is_shown(id)
            {
                continue;
            }
            self.best.push(Place { rank, order: place.1.to_owned(), id: *id });
            if is_full {
                self.best.pop();
            }
        }
        last.filter(|_| seen == count)
    }

    /// Returns the best that was found, the best first, and whether there is more.
    pub fn page(self) -> (Vec<Place>, bool) {
        let mut places = self.best.into_sorted_vec();
        let has_more = places.len() > self.limit;
        places.truncate(self.limit);
        (places, has_more)
    }
}

#[cfg(test)]
mod tests;
