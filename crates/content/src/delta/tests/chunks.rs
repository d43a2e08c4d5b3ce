//! Our own method: against a sketch, against old bytes, and against a list that must be learnt first.

use std::collections::HashMap;

use model::{ChunkId, ChunkRef, DeviceId, Random};

use super::*;
use crate::delta::message::{
    Answer, ByteStep, ChunkOpening, ChunkPart, DeltaMessage, ListStep, Symbol,
};
use crate::naming::WorkspaceContentKeys;
use crate::samples::{FixedRandom, SeededRandom};

fn keys() -> WorkspaceContentKeys {
    WorkspaceContentKeys::derive(&[7; 32])
}

/// Small chunks, so that files of these stories have many.
const CHUNK_SIZE: u32 = 4096;

fn survey(mut bytes: &[u8]) -> BaseVersion {
    ChunkClient::survey(&keys(), CHUNK_SIZE, &mut bytes).unwrap()
}

/// What travelled, and what came of it.
struct Trip {
    up: usize,
    literal: usize,
    rounds: usize,
    base: BaseVersion,
    new: Vec<u8>,
}

/// Puts a version together from its chunk list and what was there or came.
fn joined(table: &ChunkTable, old: &[u8], made: &HashMap<ChunkId, Vec<u8>>) -> Vec<u8> {
    let mut chunks = made.clone();
    for chunk in crate::Chunks::new(&*keys().chunker(Default::default(), CHUNK_SIZE).unwrap(), old)
    {
        chunks.insert(keys().namer().name(chunk), chunk.to_vec());
    }
    table.chunks().iter().flat_map(|chunk| chunks[&chunk.id].clone()).collect()
}

fn assembler(old: &[u8]) -> ChunkAssembler {
    let table = survey(old).table().clone();
    ChunkAssembler::new(plain().workspace(), keys().namer(), table, SIZE_MAX)
}

/// Sends a version; `sketch` is what the client keeps, `has_old` says that it has the old bytes, too.
fn send(sketch: &BaseVersion, has_old: bool, old: &[u8], new: &[u8]) -> Trip {
    let keys = keys();
    let mut client = ChunkClient::new(&keys, plain().workspace(), session(1));
    let mut assembler = assembler(old);
    let (mut up, mut literal, mut rounds) = (0, 0, 1);
    let (mut made, mut assembled) = (HashMap::new(), None);
    let mut deliver = |part: DeltaPart| {
        literal += part.literal_length();
        let message = part.into_message(plain())?;
        up += message.len();
        assembled = assembler.take(&message, &mut &old[..], |chunk| {
            let MadeChunk { chunk, bytes, .. } = chunk;
            assert_eq!(keys.namer().name(bytes), chunk.id, "nobody sees a chunk that is wrong");
            made.insert(chunk.id, bytes.to_vec());
            Ok::<_, DeltaError>(())
        })?;
        Ok::<_, DeltaError>(())
    };
    let mut source = old;
    let bytes = has_old.then_some(&mut source as &mut dyn RangedSource);
    client.send_delta(sketch, bytes, &mut &new[..], &mut deliver).unwrap();
    // The borrow of the answer ends here; asked-for chunks are delivered below.
    let mut outcome = assembled.take().expect("the last part says that it is");
    if outcome.table.is_none() {
        rounds += 1;
        let mut parts = Vec::new();
        let keep = |part: DeltaPart| {
            parts.push(part);
            Ok::<_, DeltaError>(())
        };
        assert!(!client.take_answer(&outcome.answer, &mut &new[..], keep).unwrap());
        for part in parts {
            literal += part.literal_length();
            let message = part.into_message(plain()).unwrap();
            up += message.len();
            let assembled = assembler.take(&message, &mut &old[..], |chunk| {
                made.insert(chunk.chunk.id, chunk.bytes.to_vec());
                Ok::<_, DeltaError>(())
            });
            if let Some(assembled) = assembled.unwrap() {
                outcome = assembled;
            }
        }
    }
    let nothing = |_| -> Result<(), DeltaError> { panic!("nothing is asked for") };
    assert!(client.take_answer(&outcome.answer, &mut &new[..], nothing).unwrap());
    let table = outcome.table.unwrap();
    let base = client.into_base();
    assert_eq!(base.table(), &table);
    Trip { up, literal, rounds, new: joined(&table, old, &made), base }
}

#[test]
fn every_edit_arrives_in_one_round_trip_with_and_without_old_bytes() {
    for (edit, old, new) in edits() {
        let sketch = survey(&old);
        let bare = BaseVersion::without_sketch(sketch.table().clone());
        for (base, has_old) in [(&sketch, false), (&sketch, true), (&bare, false), (&bare, true)] {
            let trip = send(base, has_old, &old, &new);
            assert!(trip.new == new && trip.rounds == 1, "{edit}");
        }
    }
}

#[test]
fn changed_byte_costs_a_piece_or_itself_and_not_its_chunk() {
    let old = random_bytes(1, 300_000);
    let new = spliced(&old, 150_000, 1, &[old[150_000] ^ 1]);
    let sketch = survey(&old);
    let trip = send(&sketch, false, &old, &new);
    assert!(trip.literal == 256 && trip.up < 500, "{} of {}", trip.literal, trip.up);
    let trip = send(&sketch, true, &old, &new);
    assert!(trip.literal == 1 && trip.up < 250, "{} of {}", trip.literal, trip.up);
    let trip = send(&BaseVersion::without_sketch(sketch.table().clone()), false, &old, &new);
    assert!(trip.literal > 2000);
}

#[test]
fn what_the_client_keeps_afterwards_serves_the_next_delta() {
    let mut old = random_bytes(1, 300_000);
    let mut base = survey(&old);
    for number in 0..5_u8 {
        let at = 50_000 * usize::from(number) + 77;
        let new = spliced(&old, at, 1, &[number; 3]);
        let trip = send(&BaseVersion::decode(&base.encode()).unwrap(), false, &old, &new);
        assert!(trip.new == new && trip.up < 500, "{}", trip.up);
        assert_eq!(trip.base, survey(&new));
        (old, base) = (new, trip.base);
    }
}

#[test]
fn sketch_takes_two_and_a_half_percent_of_the_file() {
    let bytes = random_bytes(1, 1 << 20);
    let base = ChunkClient::survey(&keys(), 16 << 10, &mut &bytes[..]).unwrap();
    let percent = base.encode().len() as f64 * 100.0 / bytes.len() as f64;
    assert!((2.3..2.8).contains(&percent), "{percent}");
}

#[test]
fn chunk_that_comes_out_wrong_is_asked_for_in_full_and_nobody_sees_the_wrong_one() {
    let old = random_bytes(1, 300_000);
    let new = spliced(&old, 150_000, 1, &[old[150_000] ^ 1]);
    // A sketch that lies: it says that the changed piece is still the old one, as if two sums were equal.
    let (liar, honest) = (survey(&new), survey(&old));
    let mut sums: Vec<_> = (0..honest.table().chunks().len())
        .flat_map(|chunk| honest.sums(chunk).unwrap().to_vec())
        .collect();
    let number = (0..sums.len()).find(|&number| {
        let other = (0..liar.table().chunks().len()).flat_map(|chunk| liar.sums(chunk).unwrap());
        other.copied().nth(number) != Some(sums[number])
    });
    let number = number.expect("one piece has changed");
    let other =
        (0..liar.table().chunks().len()).flat_map(|chunk| liar.sums(chunk).unwrap().to_vec());
    sums[number] = other.collect::<Vec<_>>()[number];
    let base = BaseVersion::sketched(honest.table().clone(), sums);
    let trip = send(&base, false, &old, &new);
    assert_eq!((trip.new == new, trip.rounds), (true, 2));
    assert!(trip.literal > 2000);
}

#[test]
fn delta_against_another_version_is_refused() {
    let (old, other) = (random_bytes(1, 50_000), random_bytes(2, 50_000));
    let keys = keys();
    let mut client = ChunkClient::new(&keys, plain().workspace(), session(1));
    let mut assembler = assembler(&other);
    let deliver = |part: DeltaPart| {
        let sink = |_: MadeChunk<'_>| Ok::<_, DeltaError>(());
        assembler.take(&part.into_message(plain())?, &mut &other[..], sink).map(drop)
    };
    let error = client.send_delta(&survey(&old), None, &mut &old[..], deliver).unwrap_err();
    assert!(matches!(error, DeltaError::WrongBase), "{error}");
}

#[test]
fn witness_of_another_workspace_lets_no_part_out() {
    let keys = keys();
    let elsewhere = Plain::of(&Genesis { content_key: [8; 32], ..genesis(Mode::Plain) }).unwrap();
    let mut client = ChunkClient::new(&keys, plain().workspace(), session(1));
    let deliver = |part: DeltaPart| part.into_message(elsewhere).map(drop);
    let error = client.send_delta(&survey(b""), None, &mut &b"new"[..], deliver).unwrap_err();
    assert!(matches!(error, DeltaError::WrongWorkspace { .. }));
}

#[test]
fn large_new_file_is_sent_in_parts_of_bounded_length() {
    let new = random_bytes(1, 6_000_000);
    let keys = keys();
    let mut client = ChunkClient::new(&keys, plain().workspace(), session(1));
    let mut lengths = Vec::new();
    let deliver = |part: DeltaPart| {
        lengths.push(part.into_message(plain())?.len());
        Ok::<_, DeltaError>(())
    };
    client.send_delta(&survey(b""), None, &mut &new[..], deliver).unwrap();
    assert!(lengths.len() >= 22 && lengths.iter().all(|&length| length < 300_000), "{lengths:?}");
}

/// A file of 6 GiB of which only one stretch is there; whoever reads elsewhere has made a mistake.
struct Far {
    at: u64,
    bytes: Vec<u8>,
}

impl RangedSource for Far {
    fn size(&self) -> u64 {
        6 << 30
    }

    fn read_at(&mut self, offset: u64, buffer: &mut [u8]) -> std::io::Result<()> {
        (&mut &self.bytes[..]).read_at(offset - self.at, buffer)
    }
}

/// A table of chunks of 4 MiB that nobody has, with real ones at the end.
fn far_table(at: u64, tail: &[ChunkId], lengths: &[u32]) -> ChunkTable {
    let before = (0..at >> 22).map(|number| {
        let mut id = [9; 32];
        id[..8].copy_from_slice(&number.to_le_bytes());
        ChunkRef { id: ChunkId::from_bytes(id), length: 1 << 22 }
    });
    let tail = tail.iter().zip(lengths).map(|(&id, &length)| ChunkRef { id, length });
    ChunkTable::new(4 << 20, before.chain(tail).collect()).unwrap()
}

#[test]
fn server_works_on_a_change_beyond_four_gibibytes_and_on_nothing_else() {
    let at = 5_u64 << 30;
    let bytes = random_bytes(1, 1 << 30 >> 10);
    let rest = ((6_u64 << 30) - at) as u32 - bytes.len() as u32;
    let ids =
        [keys().namer().name(&bytes), ChunkId::from_bytes([3; 32]), ChunkId::from_bytes([4; 32])];
    let half = rest / 2;
    let table = far_table(at, &ids, &[bytes.len() as u32, half, rest - half]);
    let mut old = Far { at, bytes: bytes.clone() };
    let new = spliced(&bytes, 500_000, 1, b"changed");
    let chunk = ChunkRef { id: keys().namer().name(&new), length: new.len() as u32 };
    let count = table.chunks().len() as u64;
    let first = at >> 22;
    let steps = vec![
        ListStep::Keep { first: 0, count: first },
        ListStep::New(
            chunk,
            vec![
                ByteStep::Copy { offset: at, length: 500_000 },
                ByteStep::Literal(b"changed".to_vec()),
                ByteStep::Copy { offset: at + 500_001, length: bytes.len() as u32 - 500_001 },
            ],
        ),
        ListStep::Keep { first: first + 1, count: 2 },
    ];
    let mut chunks = table.chunks().to_vec();
    chunks[first as usize] = chunk;
    let digest = ChunkTable::new(4 << 20, chunks).unwrap().digest();
    let workspace = plain().workspace();
    let opening = Some(ChunkOpening { workspace, base: table.digest() });
    let end = Some((count, digest));
    let part = ChunkPart { session: session(1), number: 0, opening, steps, end };
    let mut assembler = ChunkAssembler::new(workspace, keys().namer(), table, SIZE_MAX);
    let mut made = Vec::new();
    let sink = |chunk: MadeChunk<'_>| {
        made.push(chunk.bytes.to_vec());
        Ok::<_, DeltaError>(())
    };
    let message = DeltaMessage::Chunks(part).encode();
    let assembled = assembler.take(&message, &mut old, sink).unwrap().unwrap();
    assert_eq!(assembled.table.unwrap().size(), (6 << 30) + 6);
    assert!(made == [new]);
}

/// A part that a hostile client might send first.
fn first_part(old: &[u8], steps: Vec<ListStep>) -> Vec<u8> {
    let base = survey(old).table().digest();
    let opening = Some(ChunkOpening { workspace: plain().workspace(), base });
    let end = Some((1, [0; 16]));
    DeltaMessage::Chunks(ChunkPart { session: session(1), number: 0, opening, steps, end }).encode()
}

#[test]
fn deltas_that_reach_beyond_the_base_are_refused() {
    let old = random_bytes(1, 50_000);
    let count = survey(&old).table().chunks().len() as u64;
    let sink = |_: MadeChunk<'_>| -> Result<(), DeltaError> { panic!("no chunk is right") };
    for (first, count) in [(0, count + 1), (count, 1), (u64::MAX / 4, 1), (1, u64::MAX / 4)] {
        let message = first_part(&old, vec![ListStep::Keep { first, count }]);
        let error = assembler(&old).take(&message, &mut &old[..], sink).unwrap_err();
        assert!(matches!(error, DeltaError::NoSuch { .. }), "{error}");
    }
    let chunk = ChunkRef { id: ChunkId::from_bytes([1; 32]), length: 10 };
    for offset in [49_991, 50_000, u64::MAX / 4] {
        let copy = ByteStep::Copy { offset, length: 10 };
        let message = first_part(&old, vec![ListStep::New(chunk, vec![copy])]);
        let error = assembler(&old).take(&message, &mut &old[..], sink).unwrap_err();
        assert!(matches!(error, DeltaError::OutOfRange { .. }), "{error}");
    }
}

#[test]
fn small_delta_cannot_cause_unbounded_work() {
    let old = random_bytes(1, 50_000);
    let sink = |_: MadeChunk<'_>| Ok::<_, DeltaError>(());
    let chunk = ChunkRef { id: ChunkId::from_bytes([1; 32]), length: 50_000 };
    let copy = ByteStep::Copy { offset: 0, length: 50_000 };
    let message = first_part(&old, vec![ListStep::New(chunk, vec![copy]); 1000]);
    let table = survey(&old).table().clone();
    let namer = keys().namer();
    let mut assembler = ChunkAssembler::new(plain().workspace(), namer, table, 1_000_000);
    let error = assembler.take(&message, &mut &old[..], sink).unwrap_err();
    assert!(matches!(error, DeltaError::TooLarge { max: 1_000_000, .. }), "{error}");
}

#[test]
fn list_that_is_not_the_announced_one_is_no_version() {
    let old = random_bytes(1, 50_000);
    let sink = |_: MadeChunk<'_>| Ok::<_, DeltaError>(());
    let message = first_part(&old, vec![ListStep::Keep { first: 1, count: 1 }]);
    let error = assembler(&old).take(&message, &mut &old[..], sink).unwrap_err();
    assert!(matches!(error, DeltaError::Unverified), "{error}");
}

#[test]
fn parts_out_of_order_and_of_other_sessions_are_refused() {
    let old = random_bytes(1, 50_000);
    let sink = |_: MadeChunk<'_>| Ok::<_, DeltaError>(());
    let part = |number, session, opening: bool| {
        let base = survey(&old).table().digest();
        let opening = opening.then_some(ChunkOpening { workspace: plain().workspace(), base });
        let steps = vec![ListStep::Keep { first: 0, count: 1 }];
        DeltaMessage::Chunks(ChunkPart { session, number, opening, steps, end: None }).encode()
    };
    let mut assembler = assembler(&old);
    let error = assembler.take(&part(0, session(1), false), &mut &old[..], sink).unwrap_err();
    assert!(matches!(error, DeltaError::WrongSession));
    assembler.take(&part(0, session(1), true), &mut &old[..], sink).unwrap();
    for (number, session, opening) in [(1, session(2), false), (1, session(1), true)] {
        let error =
            assembler.take(&part(number, session, opening), &mut &old[..], sink).unwrap_err();
        assert!(matches!(error, DeltaError::WrongSession));
    }
    for number in [0, 2] {
        let error =
            assembler.take(&part(number, session(1), false), &mut &old[..], sink).unwrap_err();
        assert!(matches!(error, DeltaError::NoSuch { what: "part", .. }));
    }
    assembler.take(&part(1, session(1), false), &mut &old[..], sink).unwrap();
}

#[test]
fn server_cannot_ask_twice_nor_for_chunks_that_are_not_there() {
    let (old, new) = (random_bytes(1, 50_000), random_bytes(2, 50_000));
    let keys = keys();
    let mut client = ChunkClient::new(&keys, plain().workspace(), session(1));
    let ignore = |_: DeltaPart| Ok::<_, DeltaError>(());
    client.send_delta(&survey(&old), None, &mut &new[..], ignore).unwrap();
    let wanted =
        |places: Vec<u64>| DeltaMessage::Answer(session(1), Answer::Wanted(places)).encode();
    let error = client.take_answer(&wanted(vec![1, 0]), &mut &new[..], ignore).unwrap_err();
    assert!(matches!(error, DeltaError::NoSuch { what: "chunk", index: 0, .. }), "{error}");
    let error = client.take_answer(&wanted(vec![0]), &mut &new[..], ignore).unwrap_err();
    assert!(matches!(error, DeltaError::Unverified), "{error}");
}

/// Learns the list of the old version; returns it with the bytes of all symbols and the number of round trips.
fn reconcile(old: &[u8], new: &[u8]) -> Result<(BaseVersion, usize, usize), DeltaError> {
    let table = survey(old).table().clone();
    let (mut client, mut message) = Reconciler::begin(plain().workspace(), &SeededRandom::new(1));
    let (mut down, mut rounds) = (0, 0);
    loop {
        let answer = answer_symbols(plain().workspace(), &table, &message)?;
        (down, rounds) = (down + answer.len(), rounds + 1);
        match client.take(&answer, &keys(), &mut &new[..])? {
            Reconciled::Base(base) => {
                assert_eq!(base.table(), &table);
                return Ok((base, down, rounds));
            }
            Reconciled::More(more) => message = more,
        }
    }
}

#[test]
fn client_that_knows_nothing_learns_the_list_and_sends_what_is_new() {
    for (edit, old, new) in edits() {
        let (base, _, _) = reconcile(&old, &new).unwrap();
        let trip = send(&base, false, &old, &new);
        assert!(trip.new == new && trip.rounds == 1, "{edit}");
    }
}

#[test]
fn client_that_asks_for_sums_sends_pieces_and_not_chunks() {
    let old = random_bytes(1, 300_000);
    let mut new = old.clone();
    (0..3).for_each(|number| new[number * 90_000 + 77] ^= 1);
    let table = survey(&old).table().clone();
    let (mut client, ask) = Reconciler::begin(plain().workspace(), &FixedRandom(1));
    let symbols = answer_symbols(plain().workspace(), &table, &ask).unwrap();
    let Ok(Reconciled::Base(base)) = client.take(&symbols, &keys(), &mut &new[..]) else {
        panic!()
    };
    let before = send(&base, false, &old, &new);
    let ask = client.ask_sums(plain(), &base).unwrap();
    let sums = answer_sums(plain(), &keys(), &table, &ask, &mut &old[..]).unwrap();
    let base = client.take_sums(base, &sums).unwrap();
    let after = send(&base, false, &old, &new);
    assert!(after.new == new && (before.rounds, after.rounds) == (1, 1));
    assert!(before.literal > 6000 && after.literal <= 3 * 256, "{}", after.literal);
    assert!(ask.len() < 100 && sums.len() < 1000, "{} {}", ask.len(), sums.len());
    // Who knows the list already asks for the same.
    let known = Reconciler::of_survey(plain().workspace(), session(2), survey(&new));
    let bare = BaseVersion::without_sketch(table.clone());
    let ask = known.ask_sums(plain(), &bare).unwrap();
    let sums = answer_sums(plain(), &keys(), &table, &ask, &mut &old[..]).unwrap();
    assert_eq!(known.take_sums(bare, &sums).unwrap(), base);
    // What was asked for serves one delta; what is kept is a whole sketch or none.
    let kept = BaseVersion::decode(&base.encode()).unwrap();
    assert_eq!(kept, BaseVersion::without_sketch(table));
    assert_eq!(client.into_survey().unwrap(), survey(&new));
}

#[test]
fn sums_are_told_of_the_base_only_and_of_no_more_than_a_question_may_ask() {
    use crate::delta::message::{AskSums, ChunkRun};

    let old = random_bytes(1, 50_000);
    let table = survey(&old).table().clone();
    let ask = |base, first, count| {
        let runs = vec![ChunkRun { first, count }];
        let ask = AskSums { workspace: plain().workspace(), session: session(1), base, runs };
        let message = DeltaMessage::AskSums(ask).encode();
        answer_sums(plain(), &keys(), &table, &message, &mut &old[..])
    };
    let count = table.chunks().len() as u64;
    assert!(ask(table.digest(), 0, count).is_ok());
    assert!(matches!(ask([0; 16], 0, count), Err(DeltaError::WrongBase)));
    for (first, asked) in [(0, count + 1), (count, 1), (u64::MAX / 4, 1)] {
        assert!(matches!(ask(table.digest(), first, asked), Err(DeltaError::NoSuch { .. })));
    }
    let runs = vec![ChunkRun { first: 0, count }; 2000];
    let base = table.digest();
    let many = AskSums { workspace: plain().workspace(), session: session(1), base, runs };
    let many = DeltaMessage::AskSums(many).encode();
    let refused = answer_sums(plain(), &keys(), &table, &many, &mut &old[..]);
    assert!(matches!(refused, Err(DeltaError::TooLarge { .. })));
    // A version of chunks of one byte each has a sum for every byte.
    let short = ChunkRef { length: 1, ..table.chunks()[0] };
    let short = ChunkTable::new(table.chunk_size(), vec![short; 1000]).unwrap();
    let runs = vec![ChunkRun { first: 0, count: 1000 }; 2000];
    let base = short.digest();
    let many = AskSums { workspace: plain().workspace(), session: session(1), base, runs };
    let many = DeltaMessage::AskSums(many).encode();
    let refused = answer_sums(plain(), &keys(), &short, &many, &mut &old[..1000]);
    assert!(matches!(refused, Err(DeltaError::TooLarge { .. })), "{refused:?}");
    let (client, _) = Reconciler::begin(plain().workspace(), &FixedRandom(1));
    let base = BaseVersion::without_sketch(table.clone());
    assert!(client.ask_sums(plain(), &base).is_none(), "nothing is known of the new version");
}

#[test]
fn survey_of_a_file_that_has_changed_since_is_not_used_for_another_length() {
    let (old, new) = (random_bytes(1, 50_000), random_bytes(1, 60_000));
    let (base, keys) = (survey(&old), keys());
    let client = ChunkClient::new(&keys, plain().workspace(), session(1));
    let mut client = client.with_survey(survey(&old));
    client.send_delta(&base, None, &mut &new[..], |_| Ok::<_, DeltaError>(())).unwrap();
    assert_eq!(client.into_base(), survey(&new));
}

#[test]
fn list_costs_what_differs_and_not_what_it_has() {
    let old = random_bytes(1, 10_000_000);
    let new = spliced(&old, 5_000_000, 1, &[old[5_000_000] ^ 1]);
    let (base, down, rounds) = reconcile(&old, &new).unwrap();
    assert!(base.table().chunks().len() > 2000);
    assert!(down < 2000 && rounds == 1, "{down} in {rounds}");
    // A hundred places: some 300 differences, in less than 1.8 symbols each and what a whole batch rounds up to.
    let mut new = old.clone();
    (0..100).for_each(|number| new[number * 100_000 + 50_000] ^= 1);
    let (_, down, rounds) = reconcile(&old, &new).unwrap();
    assert!(down < 2048 * 58 && rounds <= 4, "{down} in {rounds}");
}

#[test]
fn who_may_have_the_list_fetches_it_where_symbols_would_be_longer() {
    let old = random_bytes(1, 10_000_000);
    let table = survey(&old).table().clone();
    for (places, is_worth_it) in [(40, true), (1000, false)] {
        let mut new = old.clone();
        (0..places).for_each(|number| new[number * 10_000 + 5_000] ^= 1);
        let (mut client, mut message) =
            Reconciler::begin(plain().workspace(), &SeededRandom::new(1));
        let mut down = 0;
        let given_up = loop {
            let answer = answer_symbols(plain().workspace(), &table, &message).unwrap();
            down += answer.len();
            match client.take(&answer, &keys(), &mut &new[..]).unwrap() {
                Reconciled::Base(_) => break None,
                Reconciled::More(more) => message = more,
            }
            if let Err(error) = client.check_shorter_than_list() {
                break Some(error);
            }
        };
        let list = BaseVersion::without_sketch(table.clone()).encode().len();
        assert!(down < list, "{down} for a list of {list}");
        let is_as_said = match given_up {
            None => is_worth_it,
            Some(DeltaError::TooDifferent { .. }) => !is_worth_it,
            Some(error) => panic!("{error}"),
        };
        assert!(is_as_said, "{places} places, {down} bytes");
    }
    // Nor does a long new version make a short list of the old one worth many symbols.
    let (short, new) = (random_bytes(2, 300_000), random_bytes(3, 10_000_000));
    let (mut client, message) = Reconciler::begin(plain().workspace(), &SeededRandom::new(1));
    let answer = answer_symbols(plain().workspace(), survey(&short).table(), &message).unwrap();
    assert!(matches!(client.take(&answer, &keys(), &mut &new[..]), Ok(Reconciled::More(_))));
    let given_up = client.check_shorter_than_list();
    assert!(matches!(given_up, Err(DeltaError::TooDifferent { symbols: 32 })), "{given_up:?}");
}

#[test]
fn lists_with_nothing_in_common_are_told_so_in_bounded_time() {
    let chunk = |number: u64, fill: u8| {
        let mut id = [fill; 32];
        id[..8].copy_from_slice(&number.to_le_bytes());
        ChunkRef { id: ChunkId::from_bytes(id), length: 4096 }
    };
    let table =
        ChunkTable::new(4096, (0..100_000).map(|number| chunk(number, 1)).collect()).unwrap();
    let (mut client, mut message) = Reconciler::begin(plain().workspace(), &FixedRandom(1));
    let error = loop {
        let answer = answer_symbols(plain().workspace(), &table, &message).unwrap();
        match client.take(&answer, &keys(), &mut &b"new"[..]) {
            Ok(Reconciled::More(more)) => message = more,
            Ok(Reconciled::Base(_)) => panic!("100,000 items cannot be in 65,536 symbols"),
            Err(error) => break error,
        }
    };
    assert!(matches!(error, DeltaError::TooDifferent { symbols: 65_536 }), "{error}");
}

#[test]
fn made_up_symbols_give_errors_and_never_panics_or_endless_work() {
    let new = random_bytes(1, 50_000);
    let random = SeededRandom::new(5);
    for attempt in 0..200 {
        let (mut client, ask) = Reconciler::begin(plain().workspace(), &FixedRandom(1));
        let answer = answer_symbols(plain().workspace(), survey(&new).table(), &ask).unwrap();
        let Ok(DeltaMessage::Symbols(mut batch)) = DeltaMessage::decode(&answer) else { panic!() };
        let mut noise = [0; 96];
        random.fill(&mut noise);
        let place = usize::from(noise[0]) % batch.symbols.len();
        let symbol: &mut Symbol = &mut batch.symbols[place];
        match attempt % 4 {
            0 => symbol.items.copy_from_slice(&noise[1..49]),
            1 => symbol.check ^= u64::from(noise[1]),
            2 => symbol.count = if noise[1] % 2 == 0 { i64::MIN } else { i64::from(noise[2]) },
            _ => batch.chunk_count = u64::from(noise[1]),
        }
        let message = DeltaMessage::Symbols(batch).encode();
        if let Ok(Reconciled::Base(base)) = client.take(&message, &keys(), &mut &new[..]) {
            assert_eq!(&base, &BaseVersion::without_sketch(survey(&new).table().clone()));
        }
    }
}

#[test]
fn list_that_is_not_the_one_of_the_digest_is_refused() {
    let (old, new) = (random_bytes(1, 50_000), random_bytes(1, 40_000));
    let (mut client, ask) = Reconciler::begin(plain().workspace(), &FixedRandom(1));
    let answer = answer_symbols(plain().workspace(), survey(&old).table(), &ask).unwrap();
    let Ok(DeltaMessage::Symbols(mut batch)) = DeltaMessage::decode(&answer) else { panic!() };
    batch.digest[0] ^= 1;
    let message = DeltaMessage::Symbols(batch).encode();
    let error = client.take(&message, &keys(), &mut &new[..]).unwrap_err();
    assert!(matches!(error, DeltaError::Unverified), "{error}");
}

#[test]
fn kept_base_that_was_damaged_is_not_believed() {
    let base = survey(&random_bytes(1, 50_000));
    let bytes = base.encode();
    for length in 0..bytes.len() {
        assert!(BaseVersion::decode(&bytes[..length]).is_err());
    }
    assert!(BaseVersion::decode(&[&bytes[..], &[0]].concat()).is_err());
    // Whatever else it says, a delta against it is refused, or repaired, and never wrong.
    let old = random_bytes(1, 50_000);
    let new = spliced(&old, 20_000, 1, b"changed");
    for place in (2..bytes.len()).step_by(7) {
        let mut bytes = bytes.clone();
        bytes[place] ^= 0x10;
        let Ok(base) = BaseVersion::decode(&bytes) else { continue };
        let keys = keys();
        let mut client = ChunkClient::new(&keys, plain().workspace(), session(1));
        let mut assembler = assembler(&old);
        let deliver = |part: DeltaPart| {
            let sink = |made: MadeChunk<'_>| {
                assert_eq!(keys.namer().name(made.bytes), made.chunk.id);
                Ok::<_, DeltaError>(())
            };
            assembler.take(&part.into_message(plain())?, &mut &old[..], sink).map(drop)
        };
        let _ = client.send_delta(&base, None, &mut &new[..], deliver);
    }
}

#[test]
fn sealed_workspace_sends_a_delta_in_a_sealed_pack_that_only_members_apply() {
    use std::sync::Arc;

    use crate::keyring::SecretKey;
    use crate::{DeviceKeys, NewWorkspace, PackWriter, Transform, WorkspaceKeys};

    let random = Arc::new(SeededRandom::new(3));
    let passphrase = crate::Passphrase::new("correct horse".to_owned().into());
    let made =
        NewWorkspace::create("Letters", Timestamp::default(), &passphrase, &*random).unwrap();
    assert!(Plain::of(&made.genesis).is_err());
    let device = DeviceId::from_bytes([1; 16]);
    let seed = SecretKey::from_bytes([1; 32]);
    let device = DeviceKeys::enroll(&made.genesis, &made.unlocked, device, seed).unwrap();
    let workspace = WorkspaceKeys::open(&made.genesis, Some(device), random).unwrap();
    let (keys, id) = (workspace.content(), made.genesis.workspace());

    let old = random_bytes(1, 300_000);
    let secret = b"a very secret sentence that no server may read";
    let new = spliced(&old, 150_000, 10, secret);
    let base = ChunkClient::survey(keys, CHUNK_SIZE, &mut &old[..]).unwrap();
    let mut client = ChunkClient::new(keys, id, session(1));
    let mut writer = PackWriter::new(Transform::None, &workspace.packs()).unwrap();
    let mut parts = Vec::new();
    let put = |part: DeltaPart| {
        parts.push(part.clone().bytes_for_members());
        part.into_pack(&keys.namer(), &mut writer)?;
        Ok::<_, DeltaError>(())
    };
    client.send_delta(&base, None, &mut &new[..], put).unwrap();
    let pack = writer.finish().unwrap();
    assert!(!pack.bytes.windows(8).any(|bytes| secret.windows(8).any(|part| part == bytes)));
    assert!(parts[0].windows(8).any(|bytes| secret.starts_with(bytes)));

    let table = base.table().clone();
    let mut assembler = ChunkAssembler::new(id, keys.namer(), table, SIZE_MAX);
    let sink = |_: MadeChunk<'_>| Ok::<_, DeltaError>(());
    let assembled = assembler.take(&parts[0], &mut &old[..], sink).unwrap().unwrap();
    assert_eq!(assembled.table.unwrap().size(), new.len() as u64);
}

/// Hashes of one of each message and of a base, from session 7 of the plain workspace of these stories. Never edited.
const GOLDEN: [(usize, &str); 4] = [
    (1614, "571cd1b374c22728"),
    (384, "88d3df4b4aecdd68"),
    (37, "b9aebd7bddf2dc96"),
    (1864, "6d44d76b5a3a0c9c"),
];

#[test]
fn known_versions_have_their_known_messages() {
    let old = random_bytes(1, 50_000);
    let new = spliced(&old, 25_000, 1, b"changed");
    let (base, keys) = (survey(&old), keys());
    let mut client = ChunkClient::new(&keys, plain().workspace(), session(7));
    let mut found = vec![base.encode()];
    let keep = |part: DeltaPart| {
        found.push(part.into_message(plain())?);
        Ok::<_, DeltaError>(())
    };
    client.send_delta(&base, None, &mut &new[..], keep).unwrap();
    let (_, ask) = Reconciler::begin(plain().workspace(), &FixedRandom(7));
    let symbols = answer_symbols(plain().workspace(), base.table(), &ask).unwrap();
    found.extend([ask, symbols]);
    let hash = |bytes: &Vec<u8>| (bytes.len(), blake3::hash(bytes).to_hex()[..16].to_owned());
    let found: Vec<_> = found.iter().map(hash).collect();
    assert_eq!(found, GOLDEN.map(|(length, hash)| (length, hash.to_owned())));
}
