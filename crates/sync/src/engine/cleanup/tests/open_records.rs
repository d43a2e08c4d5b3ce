//! What readers of packs hold open.

use std::collections::BTreeSet;

use content::pack::DeltaStep;
use content::{PackWriter, Transform};
use model::ChunkRef;

use super::*;
use crate::state::ChunkPlace;

/// How many records are kept open, of 1 MiB each.
const KEPT: usize = 48;

impl TestDevice {
    pub(super) fn chunk(&self, bytes: &[u8]) -> ChunkRef {
        let id = self.engine.keys.content().namer().name(bytes);
        ChunkRef { id, length: bytes.len() as u32 }
    }

    /// Has the log name a pack with a chunk alone, made from another one if there is one; returns where it rests.
    fn pack_alone(&mut self, bytes: &[u8], base: Option<&[u8]>) -> ChunkPlace {
        let (guard, chunk) = (self.engine.keys.packs(), self.chunk(bytes));
        let mut writer = PackWriter::new(Transform::default(), &guard).expect("a writer");
        match base {
            None => writer.push(chunk, bytes).expect("packed"),
            Some(base) => {
                let copy = DeltaStep::Copy {
                    base: self.chunk(base),
                    offset: 0,
                    length: base.len() as u32,
                };
                let steps = [copy, DeltaStep::Literal(&bytes[base.len()..])];
                writer.push_delta(chunk, bytes, &steps).expect("packed");
            }
        }
        let pack = writer.finish().expect("packed");
        self.name_pack(pack.id, pack.bytes);
        self.engine.state.chunk(&chunk.id).expect("read").expect("known")
    }

    /// Opens records at once; returns those that came.
    fn open(&mut self, places: &[ChunkPlace]) -> BTreeSet<ChunkPlace> {
        let engine = &mut self.engine;
        let wanted = places.iter().copied().collect();
        let opened = now(engine.fetcher.open(&engine.state, &wanted)).expect("opened");
        opened.into_keys().collect()
    }

    fn kept(&self, places: &[ChunkPlace]) -> usize {
        places.iter().filter(|place| self.engine.fetcher.kept(place).is_some()).count()
    }
}

#[test]
fn record_that_is_open_comes_though_the_bases_of_others_push_it_out() {
    let mut room = Room::new();
    let mut device = room.device();
    let chunks: Vec<Vec<u8>> = (0..=KEPT as u8).map(|seed| noise(seed, 1000)).collect();
    let places: Vec<ChunkPlace> =
        chunks.iter().map(|bytes| device.pack_alone(bytes, None)).collect();
    let base = &chunks[KEPT];
    let edited = device.pack_alone(&[&base[..], b"edited"].concat(), Some(base));
    // The first one is the next that is forgotten.
    for place in &places[..KEPT] {
        device.open(&[*place]);
    }
    assert_eq!((device.kept(&places), device.kept(&places[..1])), (KEPT, 1));
    let wanted = [places[0], edited];
    assert_eq!(device.open(&wanted), BTreeSet::from(wanted));
    assert_eq!((device.kept(&places[..1]), device.kept(&[places[KEPT], edited])), (0, 2));
}

#[test]
fn long_records_that_are_open_have_no_more_bytes_than_others() {
    let mut room = Room::new();
    let mut device = room.device();
    let places: Vec<ChunkPlace> =
        (1..=13).map(|fill| device.pack_alone(&vec![fill; 4 << 20], None)).collect();
    for place in &places {
        device.open(&[*place]);
    }
    assert_eq!((device.kept(&places), device.kept(&places[1..])), (12, 12));
}
