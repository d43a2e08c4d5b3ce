//! Where two versions of a file differ, line by line.
//!
//! Lines that both have only once, in the longest row that is in the same order in both, hold the files together (*patience*, after Bram Cohen); between two of them the same is done
//! again. Bytes that are no text have line feeds, too, and so lines.

use std::collections::HashMap;
use std::ops::Range;

/// A part of the old file that is another one in the new file; one of both may be empty.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Hunk {
    /// In bytes of the old file.
    pub(crate) old: Range<usize>,
    /// In bytes of the new file.
    pub(crate) new: Range<usize>,
}

struct Lines<'a> {
    lines: Vec<&'a [u8]>,
    /// Where each line begins, and where the last one ends.
    starts: Vec<usize>,
}

impl<'a> Lines<'a> {
    fn of(bytes: &'a [u8]) -> Self {
        let lines: Vec<_> = bytes.split_inclusive(|byte| *byte == b'\n').collect();
        let mut starts = vec![0];
        starts.extend(lines.iter().scan(0, |end, line| {
            *end += line.len();
            Some(*end)
        }));
        Self { lines, starts }
    }

    fn bytes(&self, lines: &Range<usize>) -> Range<usize> {
        self.starts[lines.start]..self.starts[lines.end]
    }
}

/// Returns what differs, from the front to the end.
pub(crate) fn hunks(old: &[u8], new: &[u8]) -> Vec<Hunk> {
    let (old_lines, new_lines) = (Lines::of(old), Lines::of(new));
    let mut hunks = Vec::new();
    // What is still to be compared; the foremost part is on top.
    let mut parts = vec![(0..old_lines.lines.len(), 0..new_lines.lines.len())];
    while let Some((mut one, mut other)) = parts.pop() {
        trim(&old_lines.lines, &mut one, &new_lines.lines, &mut other);
        if one.is_empty() && other.is_empty() {
            continue;
        }
        let anchors = anchors(&old_lines.lines, &one, &new_lines.lines, &other);
        if anchors.is_empty() {
            let (mut one, mut other) = (old_lines.bytes(&one), new_lines.bytes(&other));
            trim(old, &mut one, new, &mut other);
            hunks.push(Hunk { old: one, new: other });
            continue;
        }
        let (mut one_end, mut other_end) = (one.end, other.end);
        for (in_old, in_new) in anchors.into_iter().rev() {
            parts.push((in_old + 1..one_end, in_new + 1..other_end));
            (one_end, other_end) = (in_old, in_new);
        }
        parts.push((one.start..one_end, other.start..other_end));
    }
    hunks
}

/// Leaves out what is equal at both ends.
fn trim<T: PartialEq>(old: &[T], one: &mut Range<usize>, new: &[T], other: &mut Range<usize>) {
    let (left, right) = (old[one.clone()].iter(), new[other.clone()].iter());
    let front = left.zip(right).take_while(|(a, b)| a == b).count();
    (one.start, other.start) = (one.start + front, other.start + front);
    let (left, right) = (old[one.clone()].iter().rev(), new[other.clone()].iter().rev());
    let back = left.zip(right).take_while(|(a, b)| a == b).count();
    (one.end, other.end) = (one.end - back, other.end - back);
}

/// Where a line is that a part has only once; nothing if it has it more often.
fn places<'a>(lines: &[&'a [u8]], part: &Range<usize>) -> HashMap<&'a [u8], Option<usize>> {
    let mut places = HashMap::new();
    for number in part.clone() {
        places.entry(lines[number]).and_modify(|place| *place = None).or_insert(Some(number));
    }
    places
}

/// Lines that both have only once, as many as are in the same order in both.
fn anchors(
    old: &[&[u8]],
    one: &Range<usize>,
    new: &[&[u8]],
    other: &Range<usize>,
) -> Vec<(usize, usize)> {
    let (in_old, in_new) = (places(old, one), places(new, other));
    let common: Vec<(usize, usize)> = one
        .clone()
        .filter(|number| in_old.get(old[*number]).copied().flatten().is_some())
        .filter_map(|number| Some((number, in_new.get(old[number]).copied().flatten()?)))
        .collect();
    // Of each length the row that ends the soonest in the new file, and which element each one comes after.
    let mut ends: Vec<usize> = Vec::new();
    let mut before: Vec<Option<usize>> = Vec::with_capacity(common.len());
    for (index, (_, place)) in common.iter().enumerate() {
        let length = ends.partition_point(|end| common[*end].1 < *place);
        before.push(length.checked_sub(1).map(|shorter| ends[shorter]));
        if length == ends.len() {
            ends.push(index);
        } else {
            ends[length] = index;
        }
    }
    let mut row = Vec::new();
    let mut at = ends.last().copied();
    while let Some(index) = at {
        row.push(common[index]);
        at = before[index];
    }
    row.reverse();
    row
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// The new file, from the old one and the hunks.
    fn applied(old: &[u8], new: &[u8]) -> (Vec<u8>, usize) {
        let hunks = hunks(old, new);
        let mut file = old.to_vec();
        for hunk in &hunks {
            let start = hunk.new.start;
            file.splice(start..start + hunk.old.len(), new[hunk.new.clone()].to_vec());
        }
        (file, hunks.len())
    }

    #[test]
    fn edits_in_several_places_are_found_by_themselves() {
        let line = |number: u32| format!("line {number} of a file\n");
        let old: String = (0..100).map(line).collect();
        let new = old.replace("line 20 of", "line twenty of");
        let new = new.replace(&line(50), "").replace(&line(80), &(line(80) + "one more\n"));
        let (file, hunks) = applied(old.as_bytes(), new.as_bytes());
        assert_eq!((file.as_slice(), hunks), (new.as_bytes(), 3));
        assert_eq!(applied(b"a\nb\n", b"a\nb\n"), (b"a\nb\n".to_vec(), 0));
        assert_eq!(applied(b"", b"a"), (b"a".to_vec(), 1));
        assert_eq!(applied(b"a", b""), (Vec::new(), 1));
    }

    proptest! {
        #[test]
        fn hunks_make_the_new_file_of_the_old_one(
            old in proptest::collection::vec(0_u8..6, 0..60),
            new in proptest::collection::vec(0_u8..6, 0..60),
        ) {
            let text = |bytes: &[u8]| -> Vec<u8> {
                bytes.iter().map(|byte| if *byte < 2 { b'\n' } else { b'a' + byte }).collect()
            };
            let (old, new) = (text(&old), text(&new));
            prop_assert_eq!(applied(&old, &new).0, new);
        }
    }
}
