//! Brings what delta records are made from, for whoever reads files without a device.
//!
//! *Invariants*: whatever packs say, it ends: what is made from what is made from others, and so on, is given up after a number of
//! steps; each chunk is made once for a call, and compared with its id before anything is made from it.

use std::collections::HashMap;

use bytes::Bytes;
use content::ChunkNamer;
use futures_util::future::{BoxFuture, FutureExt};
use model::{ChunkId, ChunkRef};

use super::packs::{OpenRecord, Reading, damaged};
use crate::app::App;
use crate::error::Result;

/// How many deltas in a row are opened for a chunk. Writers make eight at most.
const DEPTH_MAX: u32 = 16;

/// How many chunks are made for one that is read.
const CHUNKS_MAX: usize = 2048;

/// What was made on the way to one chunk.
#[derive(Debug, Default)]
pub(super) struct Making {
    depth: u32,
    made: HashMap<ChunkId, Bytes>,
    /// The record that was opened last: bases that are wanted together mostly rest together.
    last: Option<OpenRecord>,
}

impl App {
    /// Returns the bytes of what a record is made from, in the order in which it wants them.
    pub(super) fn bases<'a>(
        &'a self,
        reading: Reading,
        bases: &'a [ChunkRef],
        namer: &'a ChunkNamer,
        making: &'a mut Making,
    ) -> BoxFuture<'a, Result<Vec<Bytes>>> {
        let read = async move {
            if making.depth == DEPTH_MAX || making.made.len() > CHUNKS_MAX {
                let id = bases[0].id;
                return Err(damaged(format!("chunk {id} is made from too many others")));
            }
            making.depth += 1;
            let mut read = Vec::with_capacity(bases.len());
            for (base, packs) in bases.iter().zip(self.locate(reading, bases).await?) {
                let bytes = match making.made.get(&base.id) {
                    Some(bytes) => bytes.clone(),
                    None => {
                        let mut last = making.last.take();
                        let found =
                            self.make_chunk(reading, (base, &packs), namer, &mut last, making);
                        let bytes = found.await?;
                        making.last = last;
                        making.made.insert(base.id, bytes.clone());
                        bytes
                    }
                };
                read.push(bytes);
            }
            making.depth -= 1;
            Ok(read)
        };
        read.boxed()
    }
}
