//! A file of JavaScript that is read where its bytes are wanted, what takes messages, and memory that is written into.

use std::io;

use content::delta::RangedSource;
use wasm_bindgen::JsValue;
use wasm_bindgen::prelude::wasm_bindgen;

#[wasm_bindgen]
extern "C" {
    /// A file: in a worker a `Blob` can be read at once.
    pub type Source;

    #[wasm_bindgen(method, getter)]
    fn size(this: &Source) -> f64;

    #[wasm_bindgen(method, catch, js_name = "readAt")]
    fn read(this: &Source, offset: f64, buffer: &mut [u8]) -> Result<(), JsValue>;

    /// Takes messages as they are made. It must not throw.
    pub type Sink;

    #[wasm_bindgen(method)]
    pub(crate) fn take(this: &Sink, message: &[u8], literal_length: u32);

    /// A `Uint8Array` of the caller: what is written into it needs no new one.
    pub type Memory;

    #[wasm_bindgen(method, getter)]
    pub(crate) fn length(this: &Memory) -> u32;

    #[wasm_bindgen(method)]
    pub(crate) fn set(this: &Memory, bytes: &[u8], offset: u32);
}

/// [`Source`] as the rooms read it.
pub(crate) struct Ranged<'a>(pub(crate) &'a Source);

impl RangedSource for Ranged<'_> {
    fn size(&self) -> u64 {
        self.0.size() as u64
    }

    fn read_at(&mut self, offset: u64, buffer: &mut [u8]) -> io::Result<()> {
        // A number of JavaScript is exact up to 2^53, more than any file has.
        let read = self.0.read(offset as f64, buffer);
        read.map_err(|error| io::Error::other(format!("{error:?}")))
    }
}
