//! Files and folders of an open sealed workspace found by their names: by the rule of [`content::searching`], as servers find them
//! in plain ones.

use content::searching::{Place, Query, Search};
use model::tree::path_of;
use model::{Mounts, NodeId};
use wasm_bindgen::prelude::wasm_bindgen;

use crate::failure::Failure;
use crate::sealed_workspace::{SealedNode, SealedWorkspace};

/// A file, folder or link that was found.
#[wasm_bindgen]
pub struct SealedHit {
    node: SealedNode,
    marks: Vec<u32>,
    way: Vec<SealedNode>,
}

#[wasm_bindgen]
impl SealedHit {
    /// Returns what was found.
    pub fn node(&self) -> SealedNode {
        self.node.clone()
    }

    /// Returns which parts of the name match: pairs of first and end in UTF-16 code units, in order and apart.
    pub fn marks(&self) -> Vec<u32> {
        self.marks.clone()
    }

    /// Returns the folders above, the topmost first.
    pub fn way(&self) -> Vec<SealedNode> {
        self.way.clone()
    }
}

/// Some of what was found.
#[wasm_bindgen]
pub struct SealedFound {
    hits: Vec<SealedHit>,
    next: Option<String>,
}

#[wasm_bindgen]
impl SealedFound {
    /// Returns what was found, the best first; nothing from the second time on.
    pub fn hits(&mut self) -> Vec<SealedHit> {
        std::mem::take(&mut self.hits)
    }

    /// Returns where to go on; nothing at the end.
    pub fn next(&self) -> Option<String> {
        self.next.clone()
    }
}

#[wasm_bindgen]
impl SealedWorkspace {
    /// Looks for the best `limit` matches of what somebody has typed, behind the `next` of an answer before. All of the tree is looked at each
    /// time, so a call takes longer the larger the workspace is.
    ///
    /// # Errors
    /// `invalid` for what cannot be looked for, `no_such` for a place that none is.
    pub fn search(
        &self,
        text: &str,
        after: Option<String>,
        limit: u32,
    ) -> Result<SealedFound, Failure> {
        let query = Query::new(text).map_err(|error| Failure::of("invalid", &error.to_string()))?;
        let no_such = || Failure::of("no_such", "the search did not come to that place");
        let after = after.map(|text| Place::from_text(&text).ok_or_else(no_such)).transpose()?;
        let tree = self.replay.tree();
        let Ok(mounts) = Mounts::of(tree);
        let is_shown = |id: &NodeId| {
            let Ok(is_frozen) = mounts.freeze(tree, id);
            !is_frozen
        };
        let mut search = Search::new(query.clone(), after, limit as usize);
        search.look(tree, None, usize::MAX, is_shown);
        let (places, has_more) = search.page();
        let next = places.last().filter(|_| has_more).map(Place::to_text);
        let hits = places.iter().filter_map(|place| self.hit(place.id(), &query)).collect();
        Ok(SealedFound { hits, next })
    }

    fn hit(&self, id: NodeId, query: &Query) -> Option<SealedHit> {
        let tree = self.replay.tree();
        let found = tree.get(&id)?;
        // Nobody comes to what lies in a folder that was deleted.
        if matches!(path_of(tree, &id), Ok(None)) {
            return None;
        }
        let node = SealedNode::new(&id, found);
        let marks = query.marks(&node.name);
        let marks = marks.iter().flat_map(|&(start, end)| [start as u32, end as u32]).collect();
        Some(SealedHit { way: self.way_to(found.record.parent), marks, node })
    }
}

#[cfg(test)]
mod tests {
    use model::testing::{node, put_record};
    use model::{Name, NodeKind, NodeRecord, Timestamp};

    use super::*;
    use crate::sealed_writing::tests::Scene;

    /// A workspace with folders: numbers, those of the folders above, and names.
    fn opened(folders: &[(u8, u8, &str)]) -> SealedWorkspace {
        let put = |&(number, above, name): &(u8, u8, &str)| {
            let record = NodeRecord {
                parent: node(above),
                name: Name::new(name).unwrap(),
                mode: 0o755,
                modified: Timestamp::default(),
                kind: NodeKind::Directory,
                conflict: None,
            };
            put_record(number, 0, &record)
        };
        let mut scene = Scene::new();
        scene.device_changes(1, folders.iter().map(put).collect());
        scene.page(1)
    }

    /// Names, the folders above them, and where to go on.
    fn found(
        workspace: &SealedWorkspace,
        text: &str,
        after: Option<String>,
        limit: u32,
    ) -> (Vec<(String, Vec<String>)>, Option<String>) {
        let mut found = workspace.search(text, after, limit).unwrap();
        let names = |way: Vec<SealedNode>| way.into_iter().map(|node| node.name).collect();
        let hits = found.hits().into_iter().map(|hit| (hit.node().name, names(hit.way())));
        (hits.collect(), found.next())
    }

    #[test]
    fn names_are_found_page_by_page_with_their_folders_and_what_matches() {
        let workspace = opened(&[
            (1, 0, "Plans"),
            (2, 1, "2026"),
            (3, 2, "PL\u{c4}N b"),
            (4, 0, "my plan"),
            (5, 0, "other"),
        ]);
        let hit = |name: &str, way: &[&str]| {
            (name.to_owned(), way.iter().map(|&name| name.to_owned()).collect::<Vec<_>>())
        };
        let (first, next) = found(&workspace, "plan", None, 2);
        assert_eq!(first, [hit("PL\u{c4}N b", &["Plans", "2026"]), hit("Plans", &[])]);
        let (rest, end) = found(&workspace, "plan", next, 2);
        assert_eq!((rest, end), (vec![hit("my plan", &[])], None));
        assert_eq!(found(&workspace, "nothing", None, 2), (vec![], None));
        let hits = workspace.search("plan", None, 9).unwrap().hits();
        let marks: Vec<_> = hits.iter().map(SealedHit::marks).collect();
        assert_eq!(marks, [[0, 4], [0, 4], [3, 7]]);
    }

    #[test]
    fn what_cannot_be_looked_for_has_its_code() {
        let workspace = opened(&[(1, 0, "a")]);
        let code = |text: &str, after: Option<&str>| {
            workspace.search(text, after.map(str::to_owned), 9).err().unwrap().code
        };
        assert_eq!(code(" ", None), "invalid");
        assert_eq!(code(&"a".repeat(300), None), "invalid");
        assert_eq!(code("a", Some("9-nowhere")), "no_such");
    }
}
