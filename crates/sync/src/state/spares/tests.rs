//! Which of several packs a chunk is looked for in.

use model::commit::PackRef;

use super::*;

fn pack(number: u8) -> PackId {
    PackId::from_bytes([number; 32])
}

fn chunk(number: u8) -> ChunkId {
    ChunkId::from_bytes([number; 32])
}

/// A state in which each pack, in the order of the log, has the same record of these chunks.
fn state_of(packs: &[(u8, &[u8])]) -> State {
    let mut state = State::in_memory();
    for (number, _) in packs {
        state.add_pack(&PackRef { id: pack(*number), length: 10 }, None).expect("added");
    }
    for (number, chunks) in packs {
        let chunks = chunks.iter().map(|number| (chunk(*number), u32::from(*number)));
        state.add_chunks(&pack(*number), chunks).expect("added");
    }
    state
}

fn pack_of(state: &State, number: u8) -> Option<PackId> {
    let place = state.chunk(&chunk(number)).expect("read")?;
    assert_eq!(place.record, u32::from(number));
    state.pack(place.pack).expect("read").map(|pack| pack.id)
}

#[test]
fn pack_that_the_log_named_last_is_the_place_whichever_is_read_first() {
    let mut state = state_of(&[(3, &[1, 2]), (2, &[2]), (1, &[2, 3])]);
    assert_eq!([1, 2, 3].map(|number| pack_of(&state, number)), [3, 1, 1].map(|n| Some(pack(n))));
    // The index of an older one is read once more.
    state.add_chunks(&pack(2), [(chunk(2), 2)]).expect("added");
    assert_eq!(pack_of(&state, 2), Some(pack(1)));
}

#[test]
fn chunk_is_looked_for_in_every_pack_that_has_it_and_each_only_once() {
    let state = state_of(&[(1, &[5]), (2, &[5]), (3, &[5, 6])]);
    assert!(state.has_spares().expect("read"));
    assert_eq!(pack_of(&state, 5), Some(pack(3)));
    for expected in [2, 1] {
        assert!(state.turn_to_spare(&chunk(5)).expect("turned"));
        assert_eq!(pack_of(&state, 5), Some(pack(expected)));
    }
    assert!(!state.turn_to_spare(&chunk(5)).expect("turned"));
    assert!(!state.turn_to_spare(&chunk(6)).expect("turned"));
    assert_eq!((pack_of(&state, 5), pack_of(&state, 6)), (Some(pack(1)), Some(pack(3))));
    assert!(!state.has_spares().expect("read"));
}

#[test]
fn chunks_of_a_distrusted_pack_are_elsewhere_or_unknown() {
    let mut state = state_of(&[(1, &[5, 7]), (2, &[5, 6]), (3, &[6])]);
    state.distrust_pack(&pack(2), true).expect("distrusted");
    assert_eq!([5, 6, 7].map(|number| pack_of(&state, number)), [1, 3, 1].map(|n| Some(pack(n))));
    state.distrust_pack(&pack(1), true).expect("distrusted");
    assert_eq!([5, 6, 7].map(|number| pack_of(&state, number)), [None, Some(pack(3)), None]);
    assert!(!state.has_spares().expect("read"), "no spare is without a place");
    // Damaged ones are not looked into again until somebody has found them whole.
    assert_eq!(state.unindexed_packs().expect("read"), []);
    state.trust_pack(&pack(1)).expect("trusted");
    let wanted: Vec<_> = state.unindexed_packs().expect("read").iter().map(|p| p.id).collect();
    assert_eq!(wanted, [pack(1)]);
}

#[test]
fn pack_that_is_gone_counts_again_when_it_is_back() {
    let mut state = state_of(&[(1, &[5])]);
    state.distrust_pack(&pack(1), false).expect("distrusted");
    assert_eq!(pack_of(&state, 5), None);
    assert_eq!(state.unindexed_packs().expect("read").len(), 1);
    state.add_chunks(&pack(1), [(chunk(5), 5)]).expect("added");
    assert_eq!(pack_of(&state, 5), Some(pack(1)));
}

#[test]
fn chunk_is_found_where_it_rests_whole_though_a_newer_pack_makes_it_from_others() {
    let mut state = state_of(&[(1, &[5])]);
    for (number, base) in [(2, Some(6)), (3, None)] {
        state.add_pack(&PackRef { id: pack(number), length: 10 }, None).expect("added");
        let known = state.pack_by_id(&pack(number)).expect("read").expect("known");
        let bases: Vec<_> =
            base.iter().map(|base| model::ChunkRef { id: chunk(*base), length: 9 }).collect();
        state.add_bases(ChunkPlace { pack: known.number, record: 5 }, &bases).expect("added");
        state.add_chunks(&pack(number), [(chunk(5), 5)]).expect("added");
        assert_eq!(pack_of(&state, 5), Some(pack(if number == 2 { 1 } else { 3 })));
    }
}

#[test]
fn place_that_is_left_for_another_is_kept() {
    let place = |state: &State, number| {
        let known = state.pack_by_id(&pack(number)).expect("read").expect("known");
        ChunkPlace { pack: known.number, record: 5 }
    };
    let state = state_of(&[(1, &[5]), (2, &[5]), (3, &[5])]);
    state.turn_to(&chunk(5), place(&state, 1)).expect("turned");
    assert_eq!(pack_of(&state, 5), Some(pack(1)));
    let places = state.chunk_places(&chunk(5)).expect("read");
    assert_eq!((places.len(), places.contains(&place(&state, 3))), (3, true));
}

/// As for whoever reads without a database.
#[test]
fn chunk_that_is_in_a_pack_twice_is_looked_for_in_the_first_record() {
    let mut state = state_of(&[(1, &[5])]);
    state.add_pack(&PackRef { id: pack(2), length: 10 }, None).expect("added");
    let known = state.pack_by_id(&pack(2)).expect("read").expect("known");
    let places = [6, 7].map(|record| ChunkPlace { pack: known.number, record });
    for place in places {
        let base = model::ChunkRef { id: chunk(1), length: 9 };
        state.add_bases(place, &[base]).expect("added");
    }
    let twice = places.map(|place| (chunk(5), place.record));
    state.add_chunks(&pack(2), twice).expect("added");
    let found = state.chunk_places(&chunk(5)).expect("read");
    assert_eq!((found.len(), found.contains(&places[0])), (2, true), "{found:?}");
    // In the order in which packs have them, whole ones come first.
    state.forget_packs(&[pack(1)]).expect("forgotten");
    assert_eq!(state.chunk(&chunk(5)).expect("read"), Some(places[0]));
}
