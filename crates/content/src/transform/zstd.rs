//! One zstd frame, made and read in one call, so that the record itself is the window and no other is allocated.
//!
//! zstd is a C library. Where it cannot be built, on WebAssembly, another one reads frames, and to make them answers
//! [`crate::ContentError::UnsupportedTransform`].

#[cfg(not(target_family = "wasm"))]
pub(super) use native::{Decoder, Encoder};
#[cfg(target_family = "wasm")]
pub(super) use portable::{Decoder, Encoder};

#[cfg(not(target_family = "wasm"))]
mod native {
    use std::io;
    use std::sync::{Mutex, PoisonError};

    use zstd::bulk::{Compressor, Decompressor};
    use zstd::zstd_safe::{compress_bound, find_frame_compressed_size, get_error_name};

    use crate::error::ContentError;
    use crate::transform::TransformTag;

    pub(in crate::transform) struct Encoder {
        compressor: Compressor<'static>,
        scratch: Vec<u8>,
    }

    impl Encoder {
        pub(in crate::transform) fn new(level: i32) -> Result<Self, ContentError> {
            let compressor = Compressor::new(level)
                .map_err(|source| ContentError::Encode { transform: TransformTag::Zstd, source })?;
            Ok(Self { compressor, scratch: Vec::new() })
        }

        pub(in crate::transform) fn encode(
            &mut self,
            plain: &[u8],
            stored: &mut Vec<u8>,
        ) -> io::Result<()> {
            self.scratch.clear();
            self.scratch.reserve(compress_bound(plain.len()));
            self.compressor.compress_to_buffer(plain, &mut self.scratch)?;
            stored.extend_from_slice(&self.scratch);
            Ok(())
        }
    }

    /// How many contexts of decoders wait for the next one: to make one takes longer than to decode a small record.
    const IDLE_MAX: usize = 4;

    static IDLE: Mutex<Vec<Decompressor<'static>>> = Mutex::new(Vec::new());

    pub(in crate::transform) struct Decoder(Option<Decompressor<'static>>);

    impl Decoder {
        pub(in crate::transform) fn new() -> Result<Self, ContentError> {
            let idle = IDLE.lock().unwrap_or_else(PoisonError::into_inner).pop();
            let decompressor = idle.map_or_else(Decompressor::new, Ok);
            decompressor.map(Some).map(Self).map_err(|source| ContentError::Decode {
                transform: TransformTag::Zstd,
                plain_length: 0,
                source,
            })
        }

        /// Decodes the first frame only, and returns how many stored bytes follow it.
        pub(in crate::transform) fn decode(
            &mut self,
            stored: &[u8],
            plain_length: usize,
            plain: &mut Vec<u8>,
        ) -> io::Result<usize> {
            let length = find_frame_compressed_size(stored)
                .map_err(|code| io::Error::other(get_error_name(code)))?;
            // A slice, not the vector: what bounds the output then is the declared length, not a spare capacity.
            plain.resize(plain_length, 0);
            let decompressor = self.0.as_mut().expect("it goes on drop only");
            let count =
                decompressor.decompress_to_buffer(&stored[..length], plain.as_mut_slice())?;
            plain.truncate(count);
            Ok(stored.len() - length)
        }
    }

    impl Drop for Decoder {
        fn drop(&mut self) {
            let mut idle = IDLE.lock().unwrap_or_else(PoisonError::into_inner);
            if idle.len() < IDLE_MAX {
                idle.extend(self.0.take());
            }
        }
    }
}

/// The same in Rust alone, for WebAssembly: it reads frames and makes none.
#[cfg(any(target_family = "wasm", test))]
pub(super) mod portable {
    use std::io::{self, Read};

    use ruzstd::decoding::{BlockDecodingStrategy, FrameDecoder};

    use crate::error::ContentError;
    use crate::transform::TransformTag;

    /// The largest window in bytes that a frame of a smaller record may name; ours have one as large as the record.
    const WINDOW_LENGTH_MIN: u64 = 1024 * 1024;

    /// How many bytes are decoded before they are moved to where they belong.
    const STEP_LENGTH: usize = 128 * 1024;

    pub(in crate::transform) enum Encoder {}

    impl Encoder {
        #[cfg_attr(test, expect(dead_code, reason = "tests make frames by the library in C"))]
        pub(in crate::transform) fn new(_level: i32) -> Result<Self, ContentError> {
            Err(ContentError::UnsupportedTransform { transform: TransformTag::Zstd })
        }

        #[cfg_attr(test, expect(dead_code, reason = "tests make frames by the library in C"))]
        pub(in crate::transform) fn encode(
            &mut self,
            _plain: &[u8],
            _stored: &mut Vec<u8>,
        ) -> io::Result<()> {
            match *self {}
        }
    }

    pub(in crate::transform) struct Decoder(FrameDecoder);

    impl Decoder {
        #[cfg_attr(test, expect(clippy::unnecessary_wraps, reason = "as the other one has it"))]
        pub(in crate::transform) fn new() -> Result<Self, ContentError> {
            Ok(Self(FrameDecoder::new()))
        }

        /// Decodes the first frame only, and returns how many stored bytes follow it.
        pub(in crate::transform) fn decode(
            &mut self,
            stored: &[u8],
            plain_length: usize,
            plain: &mut Vec<u8>,
        ) -> io::Result<usize> {
            let Self(decoder) = self;
            let mut rest = stored;
            decoder.set_max_window_size(WINDOW_LENGTH_MIN.max(plain_length as u64));
            decoder.init(&mut rest).map_err(io::Error::other)?;
            plain.resize(plain_length, 0);
            let mut length = 0;
            loop {
                let step = BlockDecodingStrategy::UptoBytes(STEP_LENGTH);
                decoder.decode_blocks(&mut rest, step).map_err(io::Error::other)?;
                length += decoder.read(&mut plain[length..])?;
                if decoder.can_collect() > 0 {
                    return Err(io::Error::other("the frame is longer than its record says"));
                }
                if decoder.is_finished() {
                    plain.truncate(length);
                    return Ok(rest.len());
                }
            }
        }
    }
}
