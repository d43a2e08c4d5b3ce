use model::tree::{TreeNode, TreeStore};
use model::{Name, NodeKind, NodeRecord, NodeState, Timestamp};
use proptest::prelude::*;
use unicode_normalization::UnicodeNormalization;

use super::*;

fn rank(query: &str, name: &str) -> Option<Rank> {
    Query::new(query).unwrap().rank(name.as_bytes())
}

fn folded(name: &str) -> String {
    let mut folded = String::new();
    fold(name, &mut folded);
    folded
}

/// Returns the parts of a name that are marked.
fn marked(query: &str, name: &str) -> Vec<String> {
    let units: Vec<u16> = name.encode_utf16().collect();
    let marks = Query::new(query).unwrap().marks(name);
    marks.iter().map(|&(start, end)| String::from_utf16(&units[start..end]).unwrap()).collect()
}

#[test]
fn case_accents_and_forms_do_not_count() {
    for (query, name) in [
        ("resume", "RÉSUMÉ"),
        ("résumé", "resume"),
        ("cafe\u{301}", "café"),
        ("CAFÉ", "cafe\u{301}"),
        ("strasse", "STRAẞE"),
        ("straße", "Strasse"),
        ("istanbul", "İSTANBUL"),
        ("ısparta", "ISPARTA"),
        ("lodz", "Łódź"),
        ("file", "\u{fb01}le"),
        ("abc", "ＡＢＣ"),
        ("σοφος", "ΣΟΦΌΣ"),
        ("σοφός", "σοφοσ"),
        ("елка", "Ёлка"),
        ("öl", "o\u{308}l"),
        ("invoice", "in\u{200b}vo\u{ad}ice"),
        ("한국", "\u{1112}\u{1161}\u{11ab}\u{1100}\u{116e}\u{11a8}"),
    ] {
        assert_eq!(rank(query, name), Some(Rank::Same), "{query} {name}");
    }
    // What makes another letter counts.
    for (query, name) in [("が", "か"), ("คา", "คำ"), ("a", "б"), ("e", "ö")] {
        assert_eq!(rank(query, name), None, "{query} {name}");
    }
    assert_eq!(rank("か", "が"), Some(Rank::Begins));
}

#[test]
fn best_match_is_the_name_then_its_beginning_then_that_of_a_word() {
    for (query, name, expected) in [
        ("plan", "Plan", Some(Rank::Same)),
        ("plan", "plan.txt", Some(Rank::Begins)),
        ("pla", "planet-2", Some(Rank::Begins)),
        ("plan", "my plan.txt", Some(Rank::Words)),
        ("plan", "my_plan.txt", Some(Rank::Words)),
        ("plan", "airplane planet", Some(Rank::Words)),
        ("plan", "airplane", Some(Rank::Inside)),
        ("txt plan", "plan.txt", Some(Rank::Begins)),
        ("2026 plan", "my plan 2026", Some(Rank::Words)),
        ("plan ane", "plan airplane", Some(Rank::Inside)),
        ("plan x", "plan.txt", Some(Rank::Inside)),
        ("plan b", "plan.txt", None),
        ("plan  PLAN", "plan", Some(Rank::Begins)),
        ("a-a", "xa-a-a", Some(Rank::Words)),
        (".txt", "plan.txt", Some(Rank::Inside)),
    ] {
        assert_eq!(rank(query, name), expected, "{query} in {name}");
    }
}

#[test]
fn query_of_nothing_and_one_without_end_are_refused() {
    for nothing in ["", " ", "\u{a0}\n", "\u{200b}", "\u{301}"] {
        assert_eq!(Query::new(nothing), Err(InvalidQuery::Empty), "{nothing:?}");
    }
    assert!(Query::new(&"ä".repeat(QUERY_LENGTH_MAX)).is_ok());
    assert_eq!(Query::new(&"ä".repeat(QUERY_LENGTH_MAX + 1)), Err(InvalidQuery::TooLong));
}

#[test]
fn marks_count_as_scripts_do_and_cover_whole_characters() {
    assert_eq!(marked("plan txt", "my plan.txt"), ["plan", "txt"]);
    assert_eq!(marked("plan.t txt", "plan.txt"), ["plan.txt"]);
    assert_eq!(marked("plane", "airplane"), ["plane"]);
    assert_eq!(marked("lan", "plan land"), ["lan"]);
    assert_eq!(Query::new("lan").unwrap().marks("plan land"), [(5, 8)]);
    assert_eq!(marked("cafe", "un cafe\u{301}!"), ["cafe\u{301}"]);
    assert_eq!(marked("s", "aß"), ["ß"]);
    assert_eq!(marked("i", "\u{fb01}le"), ["\u{fb01}"]);
    assert_eq!(Query::new("b").unwrap().marks("😀b"), [(2, 3)]);
    assert_eq!(marked("<b>", "<img><b>x"), ["<b>"]);
    assert!(Query::new("no").unwrap().marks("plan").is_empty());
}

fn put(tree: &mut Tree, number: u32, parent: NodeId, name: &str) -> NodeId {
    let mut bytes = [0; 16];
    bytes[12..].copy_from_slice(&number.to_be_bytes());
    let id = NodeId::from_bytes(bytes);
    let (name, modified) = (Name::new(name).unwrap(), Timestamp::default());
    let record =
        NodeRecord { parent, name, mode: 0, modified, kind: NodeKind::Directory, conflict: None };
    let Ok(()) = tree.set(id, TreeNode { version: 1, state: NodeState::Alive, record });
    id
}

/// Looks at a tree in steps of so many nodes, and returns the places of all pages of so many places.
fn all(tree: &Tree, query: &str, (step, limit): (usize, usize)) -> Vec<Place> {
    let (mut found, mut after) = (Vec::<Place>::new(), None);
    loop {
        let mut search = Search::new(Query::new(query).unwrap(), after.clone(), limit);
        let mut at = None;
        while let Some(last) = search.look(tree, at, step, |_| true) {
            at = Some(last);
        }
        let (page, has_more) = search.page();
        assert!(page.len() <= limit);
        assert!(!has_more || page.len() == limit);
        found.extend(page);
        after = found.last().map(|place| Place::from_text(&place.to_text()).unwrap());
        if !has_more {
            return found;
        }
    }
}

#[test]
fn pages_and_steps_of_any_length_tell_the_same_in_one_order() {
    let mut tree = Tree::default();
    let folder = put(&mut tree, 1, NodeId::ROOT, "z");
    let names = ["x plan", "plan", "Plan b", "airplane", "other", "plan a", "plánet"];
    for (number, name) in names.iter().enumerate() {
        put(&mut tree, number as u32 + 2, NodeId::ROOT, name);
    }
    // Of the same name, in another folder; and two whose names are too long to tell apart.
    put(&mut tree, 20, folder, "PLAN");
    for (number, last) in [(31, 'b'), (30, 'a')] {
        put(&mut tree, number, folder, &format!("plan{}{last}", "z".repeat(200)));
    }
    let names = |places: &[Place]| -> Vec<String> {
        let name = |place: &Place| {
            let name = tree.get(&place.id()).unwrap().record.name.clone();
            String::from_utf8_lossy(name.as_bytes()).chars().take(9).collect()
        };
        places.iter().map(name).collect()
    };
    let expected = all(&tree, "plan", (100, 100));
    assert_eq!(
        names(&expected),
        [
            "plan",
            "PLAN",
            "plan a",
            "Plan b",
            "plánet",
            "planzzzzz",
            "planzzzzz",
            "x plan",
            "airplane"
        ]
    );
    for step in [1, 2, 5, 10] {
        for limit in [1, 2, 3, 9, 10] {
            assert_eq!(all(&tree, "plan", (step, limit)), expected, "{step} {limit}");
        }
    }
}

#[test]
fn what_is_not_shown_and_what_is_gone_is_not_found() {
    let mut tree = Tree::default();
    let ids = [1, 2, 3].map(|number| put(&mut tree, number, NodeId::ROOT, &format!("a{number}")));
    let gone = TreeNode { state: NodeState::Deleted, ..tree.get(&ids[0]).unwrap().clone() };
    let Ok(()) = tree.set(ids[0], gone);
    let mut search = Search::new(Query::new("a").unwrap(), None, 10);
    assert_eq!(search.look(&tree, None, 10, |id| *id != ids[1]), None);
    let (places, has_more) = search.page();
    assert_eq!((places.len(), places[0].id(), has_more), (1, ids[2], false));
}

#[test]
fn text_that_is_no_place_is_none() {
    let id = "00000000000000000000000000000001";
    for text in ["", "0", "0-1", "x-y-z"] {
        assert_eq!(Place::from_text(text), None, "{text}");
    }
    for (rank, order) in
        [("4", "61"), ("-1", "61"), ("0", "6"), ("0", "zz"), ("0", "ff"), ("0", "ää")]
    {
        assert_eq!(Place::from_text(&format!("{rank}-{id}-{order}")), None, "{rank} {order}");
    }
    let long = "61".repeat(ORDER_LENGTH_MAX + 1);
    assert_eq!(Place::from_text(&format!("0-{id}-{long}")), None);
    assert!(Place::from_text(&format!("0-{id}-{}", &long[2..])).is_some());
}

proptest! {
    #[test]
    fn name_finds_itself_as_the_best(name in "\\PC{1,40}|.{1,40}") {
        let Ok(query) = Query::new(&name) else {
            prop_assert!(folded(&name).trim().is_empty());
            return Ok(());
        };
        prop_assert_eq!(query.rank(name.as_bytes()), Some(Rank::Same));
    }

    #[test]
    fn bytes_that_are_no_text_find_themselves(name in prop::collection::vec(any::<u8>(), 1..255)) {
        let text = String::from_utf8_lossy(&name);
        if let Ok(query) = Query::new(&text) {
            prop_assert_eq!(query.rank(&name), Some(Rank::Same));
            query.marks(&text);
        }
    }

    #[test]
    fn form_of_unicode_does_not_count(name in "\\PC{1,20}") {
        let forms: [String; 4] =
            [name.nfc().collect(), name.nfd().collect(), name.nfkc().collect(), name.nfkd().collect()];
        for form in forms {
            prop_assert_eq!(folded(&form), folded(&name));
        }
    }

    #[test]
    fn plain_letters_are_folded_alike_on_both_ways(name in "[ -~]{0,40}") {
        let slow: String = fold_parts(&name).iter().map(|part| part.character).collect();
        prop_assert_eq!(slow, folded(&name));
    }

    #[test]
    fn marks_lie_in_the_name_in_order_and_apart(query in "\\PC{1,3}", rest in "\\PC{0,20}") {
        let name = format!("{rest}{query}{rest}");
        let Ok(query) = Query::new(&query) else { return Ok(()) };
        let marks = query.marks(&name);
        prop_assert_eq!(marks.is_empty(), query.rank(name.as_bytes()).is_none());
        let length = name.encode_utf16().count();
        let mut last = None;
        for (start, end) in marks {
            prop_assert!(last.is_none_or(|last| start > last) && start < end && end <= length);
            last = Some(end);
        }
    }
}
