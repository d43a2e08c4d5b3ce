//! Whoever reads log and store without a database, as a page in a browser does.

use bytes::Bytes;
use content::reading::{FileReading, PackPart};
use content::{ContentError, Replay, WorkspaceKeys};
use model::{Content, Entry, Genesis};
use storage::ContentStore;
use sync::SyncError;

/// A page that has folded the log.
pub(super) struct Page<'a> {
    replay: Replay,
    entries: &'a [Entry],
    store: ContentStore,
}

impl<'a> Page<'a> {
    /// Folds the log.
    pub(super) fn open(
        genesis: &Genesis,
        keys: WorkspaceKeys,
        entries: &'a [Entry],
        store: ContentStore,
    ) -> Result<Self, ContentError> {
        let mut replay = Replay::new(genesis, keys);
        for entry in entries {
            replay.fold(entry)?;
        }
        Ok(Self { replay, entries, store })
    }

    /// Reads a file.
    pub(super) async fn read(&mut self, content: &Content) -> Result<Vec<u8>, SyncError> {
        let (mut reading, mut bytes) = (FileReading::new(content)?, Vec::new());
        loop {
            bytes.extend(reading.read(self.replay.packs_mut())?);
            if reading.is_over(self.replay.packs_mut())? {
                return Ok(bytes);
            }
            let wanted = reading.wanted(self.replay.packs_mut())?.to_vec();
            for (number, part) in wanted.into_iter().enumerate() {
                self.fetch(&mut reading, number, part).await?;
            }
        }
    }

    async fn fetch(
        &mut self,
        reading: &mut FileReading,
        number: usize,
        part: PackPart,
    ) -> Result<(), SyncError> {
        let packs = self.replay.packs_mut();
        if let Some(seq) = part.pack.place.inline_seq {
            reading.take_entry(packs, number, &self.entries[seq as usize - 1])?;
            return Ok(());
        }
        let bytes = match self.store.read_pack_range(part.pack.id, part.range).await {
            Ok(bytes) => bytes,
            // It asks the next pack that has it, as where what came is too short.
            Err(error) if error.is_damage() => Bytes::new(),
            Err(error) => return Err(error.into()),
        };
        Ok(reading.take(packs, number, &bytes)?)
    }
}
