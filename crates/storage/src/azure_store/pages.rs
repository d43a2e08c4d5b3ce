//! Where the pages of lists begin, so that a list that begins in the middle need not read everything before it.
//!
//! A marker is a place between names, and which one Azure does not say: a name that was written since may lie before it.
//! Safe is it only for names after the first one that was seen behind it.

use std::collections::BTreeMap;
use std::ops::Bound;

use parking_lot::Mutex;

/// How many beginnings are remembered.
const COUNT_MAX: usize = 256;

/// Markers that were used, by what was asked for and the first name that came.
#[derive(Debug, Default)]
pub(super) struct Pages(Mutex<BTreeMap<(String, String), String>>);

impl Pages {
    /// Remembers that the page at `marker` of the list of `prefix` began with `first`.
    pub(super) fn remember(&self, prefix: &str, first: &str, marker: &str) {
        let mut markers = self.0.lock();
        if markers.len() >= COUNT_MAX {
            markers.clear();
        }
        markers.insert((prefix.to_owned(), first.to_owned()), marker.to_owned());
    }

    /// Returns the last marker behind which all names lie that begin with `prefix` and come after `start`; empty for the
    /// beginning of the list.
    pub(super) fn before(&self, prefix: &str, start: &str) -> String {
        let (first, last) =
            ((prefix.to_owned(), String::new()), (prefix.to_owned(), start.to_owned()));
        let markers = self.0.lock();
        let known = markers.range((Bound::Included(first), Bound::Included(last))).next_back();
        known.map(|(_, marker)| marker.clone()).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_marker_serves_only_what_comes_after_the_first_name_behind_it() {
        let pages = Pages::default();
        // The page ended with k3, and the marker is the name that came next. Then k4 was written.
        pages.remember("k", "k5", "marker of k5");
        pages.remember("k", "k8", "marker of k8");
        pages.remember("l", "l1", "marker of l1");
        assert_eq!(pages.before("k", "k3"), "", "k4 would be missed");
        assert_eq!(pages.before("k", "k5"), "marker of k5");
        assert_eq!(pages.before("k", "k7"), "marker of k5");
        assert_eq!(pages.before("k", "k9"), "marker of k8");
        assert_eq!(pages.before("l", "k9"), "");
        assert_eq!(pages.before("", "z"), "", "another list");
    }
}
