//! WebRsync and WebR2sync, with and without what the paper adds to them.

use super::*;
use crate::delta::message::{DeltaMessage, Literals};
use crate::delta::search::Search;
use crate::delta::source::Window;
use crate::delta::sums::{BlockSums, Fingerprinter, Strength};

/// What travelled, and what came of it.
#[derive(Debug, Default)]
struct Trip {
    up: usize,
    down: usize,
    out: Vec<u8>,
    next: Option<Next>,
}

fn rsync(tuning: Tuning, mut old: &[u8], mut new: &[u8]) -> Trip {
    let mut trip = Trip::default();
    let (mut client, message) = RsyncClient::begin(plain(), session(1), tuning);
    trip.up += message.len();
    let (mut server, message) = RsyncServer::begin(plain(), &message, &mut old, SIZE_MAX).unwrap();
    trip.down += message.len();
    let mut finished = None;
    let send = |message: Vec<u8>| {
        trip.up += message.len();
        assert!(finished.is_none());
        finished = server.take(&message, &mut old, &mut trip.out)?;
        Ok::<_, DeltaError>(())
    };
    client.take_sums(&message, &mut new, send).unwrap();
    let finished = finished.expect("the last part says that it is");
    assert_eq!(finished.verified.is_some(), trip.out == new);
    trip.next = Some(client.take_answer(&finished.answer).unwrap());
    trip
}

fn reverse(tuning: Tuning, mut old: &[u8], mut new: &[u8]) -> Trip {
    let mut trip = Trip::default();
    let (mut client, message) =
        ReverseClient::begin(plain(), session(1), tuning, &mut new).unwrap();
    trip.up += message.len();
    let (mut server, message) =
        ReverseServer::begin(plain(), &message, &mut old, SIZE_MAX).unwrap();
    trip.down += message.len();
    let mut finished = None;
    let send = |message: Vec<u8>| {
        trip.up += message.len();
        assert!(finished.is_none());
        finished = server.take(&message, &mut old, &mut trip.out)?;
        Ok::<_, DeltaError>(())
    };
    client.take_matches(&message, &mut new, send).unwrap();
    let finished = finished.expect("the last part says that it is");
    assert_eq!(finished.verified.is_some(), trip.out == new);
    trip.next = Some(client.take_answer(&finished.answer).unwrap());
    trip
}

const TUNINGS: [Tuning; 3] = [Tuning::Classic, Tuning::Plus, Tuning::Careful];

#[test]
fn every_edit_arrives_by_every_method() {
    for (edit, old, new) in edits() {
        for tuning in TUNINGS {
            for trip in [rsync(tuning, &old, &new), reverse(tuning, &old, &new)] {
                assert_eq!(trip.next, Some(Next::Done), "{edit}, {tuning:?}");
                assert!(trip.out == new, "{edit}, {tuning:?}");
            }
        }
    }
}

#[test]
fn small_edit_of_a_large_file_costs_a_block_or_two_and_the_sums() {
    for (edit, old, new) in edits() {
        if !edit.starts_with("a byte") && !edit.starts_with("one byte") {
            continue;
        }
        for tuning in TUNINGS {
            let trip = rsync(tuning, &old, &new);
            assert!(trip.up < 9000 && trip.down < 1000, "{edit}, {tuning:?}: {} up", trip.up);
            let trip = reverse(tuning, &old, &new);
            assert!(trip.up < 18_000 && trip.down < 100, "{edit}, {tuning:?}: {} up", trip.up);
        }
    }
}

#[test]
fn light_fingerprints_save_eight_bytes_a_block() {
    let old = random_bytes(1, 80 * 8192);
    assert_eq!(
        rsync(Tuning::Classic, &old, &old).down - rsync(Tuning::Plus, &old, &old).down,
        80 * 8
    );
    assert_eq!(
        reverse(Tuning::Classic, &old, &old).up - reverse(Tuning::Plus, &old, &old).up,
        80 * 8
    );
}

#[test]
fn locality_finds_the_end_of_a_file_that_was_cut_off() {
    let old = random_bytes(1, 300_000);
    let new = &old[..100_001];
    assert!(reverse(Tuning::Plus, &old, new).up < 400);
    // Without it the last, short block is looked for at the end of the old version only, as rsync does.
    assert!(reverse(Tuning::Classic, &old, new).up > 100_001 % 8192);
}

#[test]
fn a_block_that_begins_at_the_last_place_where_one_fits_is_found() {
    let short = random_bytes(1, 8 * 8192);
    let long = [b"1", &short[..]].concat();
    for tuning in TUNINGS {
        let same = [rsync(tuning, &short, &short).up, reverse(tuning, &short, &short).up];
        // Whoever searches does so in the longer one: by WebRsync the client, by WebR2sync the server.
        let trips = [rsync(tuning, &short, &long), reverse(tuning, &long, &short)];
        for (trip, same) in trips.into_iter().zip(same) {
            assert_eq!(trip.next, Some(Next::Done));
            let more = trip.up.saturating_sub(same);
            assert!(more < 30, "{tuning:?}: {more} bytes more than where nothing has changed");
        }
    }
}

#[test]
fn wherever_something_is_inserted_only_one_block_is_missed() {
    let old = random_bytes(1, 40 * 8192 + 100);
    let same = reverse(Tuning::Plus, &old, &old).up;
    for block in 0..40 {
        let (start, end) = old.split_at(block * 8192 + 4000);
        let new = [start, b"new", end].concat();
        // Whoever searches has the version without it, then the one with it.
        for (old, new) in [(&old, &new), (&new, &old)] {
            let trip = reverse(Tuning::Plus, old, new);
            assert!(trip.out == *new && trip.next == Some(Next::Done), "{block}");
            let more = trip.up - same;
            assert!((8192..8300).contains(&more), "{block}: {more} bytes more");
        }
    }
}

/// One of each message, from session 7 of the plain workspace of these stories. Never edited.
const GOLDEN: [&str; 7] = [
    "640100964638254a1b8517a575ee0f421633a30707070707070707070707070707070701",
    "640103964638254a1b8517a575ee0f421633a307070707070707070707070707070707012c4c9bd68d7f0baa2e167cef98295eb1ec99a3ec8f0656b33dbae943b387f31d5d2c0d080810e46b694c2f71932337d1",
    "64010407070707070707070707070707070707010300",
    "640105070707070707070707070707070707070100",
    "6401060707070707070707070707070707070700",
    "640101070707070707070707070707070707072c0d100810e46b36396524e166f31b78589bb79c521903",
    "640102070707070707070707070707070707070106c6cba6f3fc1d4539173eaa514b69dbd685801a21174aba351d6526b2db7fc190010c57656c6c3a20",
];

/// Two blocks with one Adler-32: plus 1, minus 2, plus 1 leaves both of its halves as they are.
fn equal_weak_sums() -> (Vec<u8>, Vec<u8>) {
    let old: Vec<u8> = random_bytes(9, 40_000).iter().map(|byte| byte / 2 + 10).collect();
    let mut new = old.clone();
    (new[20_000], new[20_001], new[20_002]) = (old[20_000] + 1, old[20_001] - 2, old[20_002] + 1);
    (old, new)
}

#[test]
fn whole_file_check_catches_what_fingerprints_let_pass_and_the_strong_ones_mend_it() {
    let (old, new) = equal_weak_sums();
    for method in [rsync, reverse] {
        let trip = method(Tuning::Blind, &old, &new);
        assert_eq!(trip.out, old, "the block with the same weak sum was taken for equal");
        assert_eq!(trip.next, Some(Next::Again(Tuning::Careful)));
        let trip = method(Tuning::Careful, &old, &new);
        assert_eq!((trip.out == new, trip.next), (true, Some(Next::Done)));
        for tuning in TUNINGS {
            assert!(method(tuning, &old, &new).out == new);
        }
    }
}

#[test]
fn file_that_changes_while_it_is_sent_becomes_no_version() {
    let (mut old, first) = (&random_bytes(1, 100_000)[..], random_bytes(2, 100_000));
    let (mut client, message) =
        ReverseClient::begin(plain(), session(1), Tuning::Classic, &mut &first[..]).unwrap();
    let (mut server, message) =
        ReverseServer::begin(plain(), &message, &mut old, SIZE_MAX).unwrap();
    let changed = spliced(&first, 7, 1, &[first[7] ^ 1]);
    let (mut out, mut finished) = (Vec::new(), None);
    let send = |message: Vec<u8>| {
        finished = server.take(&message, &mut old, &mut out)?;
        Ok::<_, DeltaError>(())
    };
    client.take_matches(&message, &mut &changed[..], send).unwrap();
    let finished = finished.unwrap();
    assert!(finished.verified.is_none());
    assert!(matches!(client.take_answer(&finished.answer), Err(DeltaError::Unverified)));
}

#[test]
fn two_people_who_send_the_same_name_at_the_same_time_do_not_meet() {
    let mut old = &random_bytes(1, 100_000)[..];
    let news = [spliced(old, 10, 5, b"one"), spliced(old, 60_000, 0, &random_bytes(3, 20_000))];
    let mut sessions = Vec::new();
    for (number, new) in news.iter().enumerate() {
        let (client, message) =
            ReverseClient::begin(plain(), session(number as u8), Tuning::Plus, &mut &new[..])
                .unwrap();
        let (server, message) =
            ReverseServer::begin(plain(), &message, &mut old, SIZE_MAX).unwrap();
        sessions.push((client, server, message));
    }
    let mut literals = Vec::new();
    for ((client, _, matches), new) in sessions.iter_mut().zip(&news) {
        let send = |message| {
            literals.push(message);
            Ok::<_, DeltaError>(())
        };
        client.take_matches(matches, &mut &new[..], send).unwrap();
    }
    assert_eq!(literals.len(), 2);
    let mut out = Vec::new();
    let mixed = sessions[0].1.take(&literals[1], &mut old, &mut out);
    assert!(matches!(mixed, Err(DeltaError::WrongSession)) && out.is_empty());
    for (((_, server, _), literals), new) in sessions.iter_mut().zip(&literals).zip(&news) {
        let mut out = Vec::new();
        let finished = server.take(literals, &mut old, &mut out).unwrap().unwrap();
        assert!(finished.verified.is_some() && out == *new);
    }
}

/// An old version that cannot be read for a while.
struct Failing<'a> {
    bytes: &'a [u8],
    reads: usize,
}

impl RangedSource for Failing<'_> {
    fn size(&self) -> u64 {
        self.bytes.len() as u64
    }

    fn read_at(&mut self, offset: u64, buffer: &mut [u8]) -> std::io::Result<()> {
        self.reads += 1;
        if self.reads == 3 {
            return Err(std::io::ErrorKind::TimedOut.into());
        }
        self.bytes.read_at(offset, buffer)
    }
}

/// Says that it has all of a part when it has a byte of it.
struct Careless;

impl VersionSink for Careless {
    fn literal(&mut self, _: &[u8]) -> Result<(), DeltaError> {
        Ok(())
    }

    fn copied(&mut self, part: &mut CopiedPart<'_>) -> Result<(), DeltaError> {
        part.next(1).map(drop)
    }
}

#[test]
fn what_failed_can_be_done_again_from_where_it_began_and_a_sink_that_leaves_something_fails() {
    let old = random_bytes(1, 300_000);
    let new = spliced(&old, 150_000, 10, b"what is new");
    let (mut client, message) =
        ReverseClient::begin(plain(), session(1), Tuning::Plus, &mut &new[..]).unwrap();
    let (server, matches) =
        ReverseServer::begin(plain(), &message, &mut &old[..], SIZE_MAX).unwrap();
    let mut literals = Vec::new();
    let keep = |message| {
        literals.push(message);
        Ok::<_, DeltaError>(())
    };
    client.take_matches(&matches, &mut &new[..], keep).unwrap();
    let mut failing = Failing { bytes: &old, reads: 0 };
    let mut out = Vec::new();
    let failed = server.clone().take(&literals[0], &mut failing, &mut out);
    assert!(matches!(failed, Err(DeltaError::Read { .. })), "{failed:?}");
    assert!(out.len() < new.len());
    out.clear();
    let finished = server.clone().take(&literals[0], &mut failing, &mut out).unwrap().unwrap();
    assert!(finished.verified.is_some() && out == new);
    // All was read and summed up, and so the hash would be right.
    let left = server.clone().take(&literals[0], &mut &old[..], &mut Careless);
    assert!(matches!(left, Err(DeltaError::Write { .. })), "{left:?}");
}

/// A file of 6 GiB that is zero but for one stretch, and nowhere in memory.
struct Sparse {
    at: u64,
    bytes: Vec<u8>,
    longest_read: usize,
}

impl RangedSource for Sparse {
    fn size(&self) -> u64 {
        6 << 30
    }

    fn read_at(&mut self, offset: u64, buffer: &mut [u8]) -> std::io::Result<()> {
        self.longest_read = self.longest_read.max(buffer.len());
        for (byte, place) in buffer.iter_mut().zip(offset..) {
            let inside =
                place.checked_sub(self.at).and_then(|place| self.bytes.get(place as usize));
            *byte = inside.copied().unwrap_or(0);
        }
        Ok(())
    }
}

#[test]
fn blocks_beyond_four_gibibytes_are_found_where_they_are_in_little_memory() {
    let stretch = random_bytes(5, 100_000);
    let at = (5 << 30) + 12_345;
    let mut old = Sparse { at, bytes: stretch.clone(), longest_read: 0 };
    let fingerprinter = Fingerprinter::new(Strength::Light, [1; 32]);
    let sums = BlockSums::read(&mut &stretch[..], &fingerprinter, |_| ()).unwrap();
    let mut window = Window::new(&mut old, 8192);
    let mut search = Search::new(&sums, &fingerprinter, true).starting_at(at - 300_000);
    for block in 0..sums.layout.count() {
        let found = search.next(&mut window).unwrap().expect("all of it is there");
        assert_eq!((found.position, found.block as usize), (at + sums.layout.start(block), block));
    }
    assert!(old.longest_read <= 256 * 1024);
}

/// Blocks that are taken ahead would be found one by one if they were wrong, so what was taken in vain is counted, too.
#[test]
fn search_in_step_compares_nothing_in_vain_but_the_block_that_was_changed() {
    let summed = random_bytes(1, 40 * 8192 + 100);
    let fingerprinter = Fingerprinter::new(Strength::Light, [1; 32]);
    let sums = BlockSums::read(&mut &summed[..], &fingerprinter, |_| ()).unwrap();
    for edited in std::iter::once(None).chain((0..40).map(Some)) {
        let mut searched = summed.clone();
        let at = edited.map(|block| block * 8192 + 4000);
        searched.splice(at.map_or(0..0, |at| at..at), at.map_or(&b""[..], |_| b"new").to_vec());
        let mut source = &searched[..];
        let mut window = Window::new(&mut source, 8192);
        let mut search = Search::new(&sums, &fingerprinter, true);
        for block in (0..41).filter(|block| Some(*block) != edited) {
            let found = search.next(&mut window).unwrap().expect("it is there");
            let moved = if edited.is_some_and(|edited| block > edited) { 3 } else { 0 };
            let expected = (sums.layout.start(block) + moved, block);
            assert_eq!((found.position, found.block as usize), expected, "{edited:?}");
        }
        assert_eq!(search.next(&mut window).unwrap(), None);
        assert_eq!(search.false_alarms(), edited.map_or(0, |_| 8192), "{edited:?}");
    }
}

#[test]
fn server_copies_from_beyond_four_gibibytes_in_little_memory() {
    let stretch = random_bytes(5, 100_000);
    let at = (5 << 30) + 12_345;
    let mut old = Sparse { at, bytes: stretch.clone(), longest_read: 0 };
    let (mut client, message) =
        ReverseClient::begin(plain(), session(1), Tuning::Plus, &mut &stretch[..]).unwrap();
    // The server is told what a search of 6 GiB would tell it.
    let mut short = &stretch[..];
    let (mut server, matches) =
        ReverseServer::begin(plain(), &message, &mut short, SIZE_MAX).unwrap();
    server.move_matches(at);
    let mut out = Vec::new();
    let mut finished = None;
    let send = |message: Vec<u8>| {
        finished = server.take(&message, &mut old, &mut out)?;
        Ok::<_, DeltaError>(())
    };
    client.take_matches(&matches, &mut &stretch[..], send).unwrap();
    assert_eq!(finished.unwrap().verified.unwrap().size(), 100_000);
    assert!(out == stretch && old.longest_read <= 64 * 1024);
}

#[test]
fn sums_that_cry_wolf_at_every_byte_end_the_search_and_not_the_server() {
    let mut old = Sparse { at: 0, bytes: Vec::new(), longest_read: 0 };
    let fingerprinter = Fingerprinter::new(Strength::Strong, [1; 32]);
    let mut sums = BlockSums::read(&mut &vec![0_u8; 8192][..], &fingerprinter, |_| ()).unwrap();
    sums.strong[0] ^= 1;
    let start = old.size() - 4_000_000;
    let mut window = Window::new(&mut old, 8192);
    let mut search = Search::new(&sums, &fingerprinter, false).starting_at(start);
    search.allow_false_alarms(1_000_000);
    assert_eq!(search.next(&mut window).unwrap(), None);
    assert!(search.false_alarms() < 1_100_000, "{}", search.false_alarms());
}

#[test]
fn known_messages_have_their_known_bytes() {
    let new = b"The quick brown fox jumps over the lazy dog.";
    let (_, open) = RsyncClient::begin(plain(), session(7), Tuning::Plus);
    let (_, sums) = ReverseClient::begin(plain(), session(7), Tuning::Plus, &mut &new[..]).unwrap();
    let (mut server, matches) =
        ReverseServer::begin(plain(), &sums, &mut &new[..], SIZE_MAX).unwrap();
    let literals = Literals { session: session(7), is_last: true, bytes: Vec::new() };
    let literals = DeltaMessage::Literals(literals).encode();
    let finished = server.take(&literals, &mut &new[..], &mut Vec::new()).unwrap().unwrap();
    let (mut client, open_strong) = RsyncClient::begin(plain(), session(7), Tuning::Classic);
    let (_, old_sums) = RsyncServer::begin(plain(), &open_strong, &mut &new[..], SIZE_MAX).unwrap();
    let mut recipe = Vec::new();
    let send = |message| {
        recipe.push(message);
        Ok::<_, DeltaError>(())
    };
    client.take_sums(&old_sums, &mut &b"Well: "[..], send).unwrap();
    let found = [open, sums, matches, literals, finished.answer, old_sums, recipe.concat()];
    let found: Vec<String> = found.iter().map(|bytes| model::hex::encode(bytes)).collect();
    assert_eq!(found, GOLDEN);
}
