//! Merging two versions of a text from the version that both were made of, line by line.
//!
//! The rule is that of every version control system (MetaSync 2015, 3.3, "Merging"): a line that one side changed is taken
//! from that side; where both changed the same lines in different ways, nobody but a person can decide.

use crate::error::MergeTrouble;

/// The largest file that is merged, in bytes.
pub(crate) const TEXT_SIZE_MAX: u64 = 16 << 20;

/// How a place begins that both sides changed, in what the library returns.
const MARKER: &[u8] = b"<<<<<<< ";

/// Merges two versions of a text.
///
/// # Errors
/// [`MergeTrouble`]; the texts are then worth nothing more than before.
pub(crate) fn merge_text(base: &[u8], ours: &[u8], theirs: &[u8]) -> Result<Vec<u8>, MergeTrouble> {
    let texts = [base, ours, theirs];
    if texts.iter().any(|text| text.len() as u64 > TEXT_SIZE_MAX) {
        return Err(MergeTrouble::TooLarge);
    }
    if texts.iter().any(|text| !is_text(text)) {
        return Err(MergeTrouble::NotText);
    }
    diffy::merge_bytes(base, ours, theirs).map_err(|marked| {
        let places = marked.split(|&byte| byte == b'\n').filter(|line| line.starts_with(MARKER));
        MergeTrouble::SameLines { places: places.count().max(1) }
    })
}

/// Tells whether lines mean anything: what has no zero byte in it, as version control systems have always seen it.
fn is_text(bytes: &[u8]) -> bool {
    !bytes.contains(&0)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::{Strategy, prop, proptest};

    use super::*;

    const BASE: &[u8] = b"one\ntwo\nthree\nfour\nfive\n";

    #[test]
    fn changes_in_different_places_are_both_kept() {
        let merged = merge_text(
            BASE,
            b"ONE\ntwo\nthree\nfour\nfive\n",
            b"one\ntwo\nthree\nfour\nfive\nsix\n",
        );
        assert_eq!(merged.as_deref(), Ok(&b"ONE\ntwo\nthree\nfour\nfive\nsix\n"[..]));
    }

    #[test]
    fn same_change_on_both_sides_is_made_once() {
        let edited = b"one\ntwo\n3\nfour\nfive\n";
        assert_eq!(merge_text(BASE, edited, edited).as_deref(), Ok(&edited[..]));
    }

    #[test]
    fn different_changes_of_a_line_need_a_person() {
        let merged =
            merge_text(BASE, b"one\nTWO\nthree\nfour\nfive\n", b"one\n2\nthree\nfour\nfive\n");
        assert_eq!(merged, Err(MergeTrouble::SameLines { places: 1 }));
    }

    #[test]
    fn what_is_no_text_is_not_touched() {
        assert_eq!(merge_text(BASE, b"a\0b", BASE), Err(MergeTrouble::NotText));
    }

    fn text() -> impl Strategy<Value = Vec<u8>> {
        prop::collection::vec(0..4_u8, 0..12)
            .prop_map(|lines| lines.iter().flat_map(|line| [b'a' + line, b'\n']).collect())
    }

    proptest! {
        #[test]
        fn side_without_changes_yields_the_other(base in text(), changed in text()) {
            proptest::prop_assert_eq!(merge_text(&base, &base, &changed), Ok(changed.clone()));
            proptest::prop_assert_eq!(merge_text(&base, &changed, &base), Ok(changed));
        }
    }
}
