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

    /// How many contexts of a kind wait for whoever needs the next one: to make one takes longer than to work on a small record.
    const IDLE_MAX: usize = 4;

    /// A context that has compressed longer records than this, in bytes, is not kept: it is as large as they need it.
    const KEPT_LENGTH_MAX: usize = 64 * 1024;

    /// Nor is one of a higher level than this: what it makes of the same bytes would depend on what it was used for before, by a salt of
    /// hashes that those levels draw anew each time (`hashSalt`, zstd 1.5.7).
    const KEPT_LEVEL_MAX: i32 = 3;

    /// Contexts that wait.
    struct Idle<T>(Mutex<Vec<T>>);

    impl<T> Idle<T> {
        const fn new() -> Self {
            Self(Mutex::new(Vec::new()))
        }

        fn take(&self) -> Option<T> {
            self.0.lock().unwrap_or_else(PoisonError::into_inner).pop()
        }

        fn keep(&self, context: Option<T>) {
            let mut idle = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            if idle.len() < IDLE_MAX {
                idle.extend(context);
            }
        }
    }

    static COMPRESSORS: Idle<Compressor<'static>> = Idle::new();
    static DECOMPRESSORS: Idle<Decompressor<'static>> = Idle::new();

    pub(in crate::transform) struct Encoder {
        compressor: Option<Compressor<'static>>,
        scratch: Vec<u8>,
        is_kept: bool,
    }

    impl Encoder {
        pub(in crate::transform) fn new(level: i32) -> Result<Self, ContentError> {
            let is_kept = level <= KEPT_LEVEL_MAX;
            let begin = || match is_kept.then(|| COMPRESSORS.take()).flatten() {
                Some(mut kept) => kept.set_compression_level(level).map(|()| kept),
                None => Compressor::new(level),
            };
            let compressor = begin()
                .map_err(|source| ContentError::Encode { transform: TransformTag::Zstd, source })?;
            Ok(Self { compressor: Some(compressor), scratch: Vec::new(), is_kept })
        }

        pub(in crate::transform) fn encode(
            &mut self,
            plain: &[u8],
            stored: &mut Vec<u8>,
        ) -> io::Result<()> {
            self.scratch.clear();
            self.scratch.reserve(compress_bound(plain.len()));
            let compressor = self.compressor.as_mut().expect("it goes on drop only");
            let compressed = compressor.compress_to_buffer(plain, &mut self.scratch);
            self.is_kept &= compressed.is_ok() && plain.len() <= KEPT_LENGTH_MAX;
            compressed?;
            stored.extend_from_slice(&self.scratch);
            Ok(())
        }
    }

    impl Drop for Encoder {
        fn drop(&mut self) {
            if self.is_kept {
                COMPRESSORS.keep(self.compressor.take());
            }
        }
    }

    pub(in crate::transform) struct Decoder(Option<Decompressor<'static>>);

    impl Decoder {
        pub(in crate::transform) fn new() -> Result<Self, ContentError> {
            let decompressor = DECOMPRESSORS.take().map_or_else(Decompressor::new, Ok);
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
            DECOMPRESSORS.keep(self.0.take());
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
