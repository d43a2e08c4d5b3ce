//! Cleanups where photographs rest in a shorter form.

use content::documents::PHOTOGRAPH;
use content::jpeg::shorten;
use content::{ChunkerKind, Chunks, FinishedPack, PackWriter, Transform};
use model::ChunkRef;

use super::*;

impl TestDevice {
    /// Packs a photograph, and another file beside it.
    fn packed(&self, photograph: &[u8], other: &[u8]) -> FinishedPack {
        let keys = self.engine.keys.content();
        let guard = self.engine.keys.packs();
        let mut writer = PackWriter::new(Transform::default(), &guard).expect("a writer");
        let chunker = keys.chunker(ChunkerKind::Minimum, 16 << 10).expect("a chunker");
        let chunks = Chunks::new(&*chunker, photograph).map(|chunk| self.chunk(chunk));
        let chunks: Vec<ChunkRef> = chunks.collect();
        let form = shorten(photograph).expect("a picture");
        assert!(writer.push_picture(&chunks, &form).expect("packed"));
        for chunk in Chunks::new(&*chunker, other) {
            writer.push(self.chunk(chunk), chunk).expect("packed");
        }
        writer.finish().expect("packed")
    }
}

#[test]
fn photograph_in_a_shorter_form_is_received_and_outlives_its_pack() {
    let mut room = Room::new();
    let mut one = room.device();
    let other = noise(1, LENGTH);
    let pack = one.packed(PHOTOGRAPH, &other);
    assert!((pack.bytes.len() as u64) < (PHOTOGRAPH.len() + LENGTH) as u64);
    one.name_pack(pack.id, pack.bytes);
    one.write("photo.jpg", PHOTOGRAPH);
    one.write("other", &other);
    // Both are in that pack.
    let report = one.sync();
    assert!(report.sent_bytes < 3000 && room.packs() == 1, "{report:?}");
    assert!(room.found(&["photo.jpg", "other"]) == [Some(PHOTOGRAPH.to_vec()), Some(other)]);
    // The pack goes, and what is needed of it is packed anew.
    one.remove("other");
    one.sync();
    one.keep_nothing_old(&room);
    let report = one.cleanup();
    assert_eq!((report.repacked, report.packs, room.packs()), (1, 1, 1), "{report:?}");
    assert!(room.found(&["photo.jpg"]) == [Some(PHOTOGRAPH.to_vec())]);
}
