//! Notes that a page keeps where others may look: only whoever has unlocked the workspace reads them.

use wasm_bindgen::prelude::wasm_bindgen;

use crate::failure::Failure;
use crate::sealed_workspace::SealedWorkspace;

#[wasm_bindgen]
impl SealedWorkspace {
    /// Seals a note.
    ///
    /// # Errors
    /// `not_sealed`.
    #[wasm_bindgen(js_name = "sealNote")]
    pub fn seal_note(&self, note: &str) -> Result<Vec<u8>, Failure> {
        Ok(self.replay.seal_note(note.as_bytes())?)
    }

    /// Opens a note; nothing where it is none of this workspace.
    #[wasm_bindgen(js_name = "openNote")]
    pub fn open_note(&self, sealed: &[u8]) -> Option<String> {
        String::from_utf8(self.replay.open_note(sealed).ok()?).ok()
    }
}

#[cfg(test)]
mod tests {
    use crate::sealed_writing::tests::Scene;

    #[test]
    fn note_is_read_in_the_next_session_and_what_is_none_is_nothing() {
        let scene = Scene::new();
        let sealed = scene.page(1).seal_note("größe.txt").unwrap();
        assert_eq!(scene.page(2).open_note(&sealed).as_deref(), Some("größe.txt"));
        assert_eq!(scene.page(2).open_note(&sealed[1..]), None);
    }
}
