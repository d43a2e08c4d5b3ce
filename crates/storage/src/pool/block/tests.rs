use bytes::Bytes;
use model::ids::{PackId, PageId};

use super::{Block, BlockCode, BlockHeader, BlockName, HEADER_LENGTH, decode, encode, parse_key};
use crate::key::ObjectKey;

const CODE: BlockCode = BlockCode { data: 3, total: 5 };

fn object(length: usize) -> ([u8; 32], Bytes) {
    let bytes: Vec<u8> = (0..length).map(|at| (at * 7 + at / 251) as u8).collect();
    (*blake3::hash(&bytes).as_bytes(), bytes.into())
}

fn opened(code: BlockCode, hash: &[u8; 32], blocks: &[Bytes]) -> Vec<Block> {
    let open = |(name, bytes)| Block::decode(bytes, hash, name).expect("a block");
    code.names().zip(blocks).map(open).collect()
}

#[test]
fn any_blocks_that_are_enough_give_the_object_back() {
    let codes = [(1, 2), (1, 3), (2, 3), (3, 5), (4, 6), (9, 11)];
    for code in codes.map(|(data, total)| BlockCode { data, total }) {
        for length in [0, 1, 64, 65, 192, 193, 10_003] {
            let (hash, bytes) = object(length);
            let blocks = opened(code, &hash, &encode(code, hash, &bytes));
            let total = usize::from(code.total);
            for start in 0..total {
                for step in 1..total {
                    let mut some: Vec<usize> =
                        (0..usize::from(code.data)).map(|i| (start + i * step) % total).collect();
                    some.sort_unstable();
                    some.dedup();
                    let chosen: Vec<Block> = some.iter().map(|&at| blocks[at].clone()).collect();
                    if chosen.len() == usize::from(code.data) {
                        assert_eq!(
                            decode(code, &chosen).as_ref(),
                            Some(&bytes),
                            "{code:?} {some:?}"
                        );
                    } else if length > 0 {
                        assert_eq!(decode(code, &chosen), None, "{code:?} {some:?}");
                    }
                }
            }
        }
    }
}

#[test]
fn every_flipped_bit_and_every_cut_is_noticed() {
    let (hash, bytes) = object(500);
    for (name, block) in CODE.names().zip(encode(CODE, hash, &bytes)) {
        for at in 0..block.len() {
            let mut damaged = block.to_vec();
            damaged[at] ^= 1 << (at % 8);
            assert!(Block::decode(&damaged.into(), &hash, name).is_none(), "byte {at}");
            assert!(Block::decode(&block.slice(..at), &hash, name).is_none(), "cut at {at}");
        }
        let longer = [&block[..], &[0]].concat();
        assert!(Block::decode(&longer.into(), &hash, name).is_none());
    }
}

#[test]
fn block_of_another_object_code_or_place_is_not_taken() {
    let (hash, bytes) = object(500);
    let (other, _) = object(501);
    let blocks = encode(CODE, hash, &bytes);
    let name = BlockName { code: CODE, index: 0 };
    assert!(BlockHeader::decode(&blocks[0], &hash, name).is_some());
    assert!(BlockHeader::decode(&blocks[0], &other, name).is_none());
    assert!(BlockHeader::decode(&blocks[1], &hash, name).is_none());
    let code = BlockCode { data: 3, total: 6 };
    assert!(BlockHeader::decode(&blocks[0], &hash, BlockName { code, index: 0 }).is_none());
}

/// The block of `docs/design/placement.md`; a change here makes the blocks of every pool unreadable.
#[test]
fn blocks_are_what_the_specification_says() {
    let bytes = Bytes::from_static(b"The quick brown fox jumps over the lazy dog.");
    let code = BlockCode { data: 2, total: 3 };
    let hash = *blake3::hash(&bytes).as_bytes();
    let blocks = encode(code, hash, &bytes);
    let lengths: Vec<_> = blocks.iter().map(|block| block.len() - HEADER_LENGTH).collect();
    assert_eq!(lengths, [44, 0, 64]);
    let hashes: Vec<_> =
        blocks.iter().map(|block| blake3::hash(block).to_hex()[..16].to_owned()).collect();
    assert_eq!(hashes, ["c1b1e7da6adbffd6", "2230698e4ad67d39", "d3107e5be11d0b1b"]);
    let (hash, bytes) = object(100_000);
    let blocks: Vec<u8> = encode(CODE, hash, &bytes).concat();
    assert_eq!(blake3::hash(&blocks).to_hex()[..16], *"587f05d14cdfb80d");
}

#[test]
fn keys_are_read_back_and_have_one_spelling() {
    let hash = [0xab; 32];
    for object in
        [ObjectKey::pack(PackId::from_bytes(hash)), ObjectKey::page(PageId::from_bytes(hash))]
    {
        for name in CODE.names() {
            assert_eq!(parse_key(&name.key(&object)), Some((object.clone(), name)));
        }
        assert_eq!(parse_key(&object), None);
    }
    let hex = "ab".repeat(32);
    for text in [
        format!("blocks/ab/{hex}.p03-5-0"),
        format!("blocks/cd/{hex}.p3-5-0"),
        format!("blocks/ab/{hex}.p3-5-5"),
        format!("blocks/ab/{hex}.p5-5-0"),
        format!("blocks/ab/{hex}.p0-5-0"),
        format!("blocks/ab/{hex}.p3-33-0"),
        format!("blocks/ab/{hex}.x3-5-0"),
        format!("blocks/ab/{hex}.p3-5"),
        format!("blocks/ab/{hex}.p3-5-0-0"),
        format!("blocks/ab/{hex}"),
    ] {
        assert_eq!(parse_key(&ObjectKey::new(&text).expect("a key")), None, "{text}");
    }
}
