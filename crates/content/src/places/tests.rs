use super::*;
use crate::pack::{DeltaStep, FinishedPack, PackWriter};
use crate::sealed::PackGuard;
use crate::transform::Transform;

/// Bytes that no other number gives.
fn bytes_of(number: u32) -> Vec<u8> {
    let mut bytes = vec![7; 1000];
    bytes[..4].copy_from_slice(&number.to_be_bytes());
    bytes
}

fn chunk(number: u32) -> ChunkRef {
    let id = ChunkId::from_bytes(*blake3::hash(&number.to_be_bytes()).as_bytes());
    ChunkRef { id, length: 1000 }
}

/// A pack in which a chunk is made from others, or rests whole where there are none.
fn pack(number: u32, bases: &[u32]) -> FinishedPack {
    let mut writer = PackWriter::new(Transform::default(), &PackGuard::plain()).unwrap();
    let bytes = bytes_of(number);
    if bases.is_empty() {
        writer.push(chunk(number), &bytes).unwrap();
        return writer.finish().unwrap();
    }
    let copy = |base: &u32| DeltaStep::Copy { base: chunk(*base), offset: 10, length: 100 };
    let mut steps: Vec<DeltaStep<'_>> = bases.iter().map(copy).collect();
    steps.push(DeltaStep::Literal(&bytes[bases.len() * 100..]));
    writer.push_delta(chunk(number), &bytes, &steps).unwrap();
    writer.finish().unwrap()
}

impl ChunkPlaces {
    fn with(&mut self, number: u32, bases: &[u32]) -> PackId {
        let pack = pack(number, bases);
        self.add_pack(&PackRef { id: pack.id, length: pack.bytes.len() as u64 }, None);
        self.learn(&pack.id, &pack.index);
        pack.id
    }

    fn behind(&self, number: u32) -> Option<(u32, usize, u64)> {
        let behind = self.ancestry(&chunk(number).id);
        behind.map(|behind| (behind.depth, behind.chunks, behind.length))
    }
}

#[test]
fn what_stands_behind_a_chunk_is_all_that_it_is_made_from() {
    let mut places = ChunkPlaces::default();
    let whole = places.with(1, &[]);
    places.with(2, &[1]);
    assert_eq!((places.behind(1), places.behind(2)), (Some((0, 0, 0)), Some((1, 1, 1000))));
    places.with(3, &[2, 1]);
    assert_eq!(places.behind(3), Some((2, 2, 2000)), "each is counted once");
    assert_eq!(places.behind(4), None, "nobody has it");
    assert!(!places.contains(&chunk(3).id) && places.contains(&chunk(1).id));

    // In a second pack, too, it may be read there, until it rests whole.
    places.with(5, &[]);
    places.with(3, &[5]);
    assert_eq!(places.behind(3), Some((2, 3, 3000)));
    let second = places.with(3, &[]);
    assert_eq!(places.behind(3), Some((0, 0, 0)));
    places.forget_packs(&[second]);
    assert_eq!(places.behind(3), Some((2, 3, 3000)));
    places.forget_packs(&[whole]);
    assert_eq!(places.behind(3), None, "it is made from what is gone");
}

#[test]
fn chunks_that_are_made_from_each_other_or_without_end_may_be_no_bases() {
    let mut places = ChunkPlaces::default();
    places.with(1, &[2]);
    places.with(2, &[1]);
    assert_eq!((places.behind(1), places.behind(2)), (None, None));
    places.with(10, &[]);
    for number in 11..10_000 {
        places.with(number, &[number - 1]);
    }
    assert!(places.behind(20).is_some());
    assert_eq!((places.behind(40), places.behind(9999)), (None, None));
}

/// Whoever reads it takes the first.
#[test]
fn chunk_that_is_in_a_pack_twice_is_made_as_its_first_record_says() {
    let mut places = ChunkPlaces::default();
    places.with(1, &[]);
    places.with(2, &[1]);
    let mut writer = PackWriter::new(Transform::default(), &PackGuard::plain()).unwrap();
    for base in [1, 2] {
        let copy = DeltaStep::Copy { base: chunk(base), offset: 10, length: 100 };
        let bytes = bytes_of(3);
        writer.push_delta(chunk(3), &bytes, &[copy, DeltaStep::Literal(&bytes[100..])]).unwrap();
        writer.seal_deltas().unwrap();
    }
    let pack = writer.finish().unwrap();
    let first = pack.index.packed_chunks().find(|packed| packed.chunk == chunk(3)).unwrap();
    assert_eq!(pack.index.bases(first.record as usize).unwrap(), [chunk(1)]);
    places.add_pack(&PackRef { id: pack.id, length: pack.bytes.len() as u64 }, None);
    places.learn(&pack.id, &pack.index);
    assert_eq!(places.behind(3), Some((1, 1, 1000)));
}
