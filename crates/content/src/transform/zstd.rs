//! One zstd frame, made and read in one call, so that the record itself is the window and no other is allocated.
//!
//! zstd is a C library. Where it cannot be built, on WebAssembly, both ends answer
//! [`ContentError::UnsupportedTransform`].

#[cfg(not(target_family = "wasm"))]
pub(super) use native::{Decoder, Encoder};
#[cfg(target_family = "wasm")]
pub(super) use unsupported::{Decoder, Encoder};

#[cfg(not(target_family = "wasm"))]
mod native {
    use std::io;

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

    pub(in crate::transform) struct Decoder(Decompressor<'static>);

    impl Decoder {
        pub(in crate::transform) fn new() -> Result<Self, ContentError> {
            Decompressor::new().map(Self).map_err(|source| ContentError::Decode {
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
            let count = self.0.decompress_to_buffer(&stored[..length], plain.as_mut_slice())?;
            plain.truncate(count);
            Ok(stored.len() - length)
        }
    }
}

#[cfg(target_family = "wasm")]
mod unsupported {
    use std::io;

    use crate::error::ContentError;
    use crate::transform::TransformTag;

    const UNSUPPORTED: ContentError =
        ContentError::UnsupportedTransform { transform: TransformTag::Zstd };

    pub(in crate::transform) enum Encoder {}

    impl Encoder {
        pub(in crate::transform) fn new(_level: i32) -> Result<Self, ContentError> {
            Err(UNSUPPORTED)
        }

        pub(in crate::transform) fn encode(
            &mut self,
            _plain: &[u8],
            _stored: &mut Vec<u8>,
        ) -> io::Result<()> {
            match *self {}
        }
    }

    pub(in crate::transform) enum Decoder {}

    impl Decoder {
        pub(in crate::transform) fn new() -> Result<Self, ContentError> {
            Err(UNSUPPORTED)
        }

        pub(in crate::transform) fn decode(
            &mut self,
            _stored: &[u8],
            _plain_length: usize,
            _plain: &mut Vec<u8>,
        ) -> io::Result<usize> {
            match *self {}
        }
    }
}
