//! Music as MPEG layer III keeps it: a tag, and frames of which only the headers are real. What sounds in them are bytes by chance, which
//! compress as little as music that was compressed.

use super::prose::Prose;
use crate::random::Random;

/// A frame of 128 kbit/s at 44.1 kHz has so many bytes, and one more when it is padded.
const FRAME: usize = 417;

/// A frame takes 417.96 bytes on average: in so many of a thousand it is padded.
const PADDED_OF_THOUSAND: u64 = 959;

/// One file of music.
#[derive(Debug, Clone)]
pub(crate) struct Track {
    title: String,
    artist: String,
    album: String,
    /// Of what sounds.
    seed: u64,
    frames: usize,
}

impl Track {
    /// Makes a track of about so many bytes.
    pub(crate) fn new(size: u64, prose: &Prose, random: &mut Random) -> Self {
        let [title, artist, album] = [(); 3].map(|()| prose.title(random));
        Self { title, artist, album, seed: random.next(), frames: size as usize / FRAME }
    }

    /// Gives it another title: what sounds moves by some bytes.
    pub(crate) fn retag(&mut self, prose: &Prose, random: &mut Random) {
        self.title = prose.title(random);
    }

    pub(crate) fn bytes(&self) -> Vec<u8> {
        let mut bytes = self.tag();
        let mut random = Random::new(self.seed);
        for number in 0..self.frames as u64 {
            let is_padded =
                (number + 1) * PADDED_OF_THOUSAND / 1000 > number * PADDED_OF_THOUSAND / 1000;
            let start = bytes.len();
            bytes.resize(start + FRAME + usize::from(is_padded), 0);
            let (header, sound) = bytes[start..].split_at_mut(4);
            header.copy_from_slice(&[0xff, 0xfb, 0x90 | u8::from(is_padded) << 1, 0x44]);
            random.fill(sound);
        }
        bytes
    }

    /// Writes the tag: ID3 version 2.3.
    fn tag(&self) -> Vec<u8> {
        let mut fields = Vec::new();
        for (name, text) in [("TIT2", &self.title), ("TPE1", &self.artist), ("TALB", &self.album)] {
            fields.extend(name.as_bytes());
            fields.extend((text.len() as u32 + 1).to_be_bytes());
            // No flags, and Latin letters.
            fields.extend([0; 3]);
            fields.extend(text.as_bytes());
        }
        let mut tag = b"ID3\x03\x00\x00".to_vec();
        // Seven bits in a byte, so that nothing in it looks like a frame.
        tag.extend([21, 14, 7, 0].map(|shift| (fields.len() >> shift & 0x7f) as u8));
        tag.extend(fields);
        tag
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_track_is_a_tag_and_frames_and_another_title_moves_the_frames() {
        let (prose, mut random) = (Prose::new(), Random::new(3));
        let mut track = Track::new(50_000, &prose, &mut random);
        let frames = |bytes: &[u8]| {
            assert_eq!(&bytes[..5], b"ID3\x03\x00");
            let length = bytes[6..10].iter().fold(0, |sum, byte| sum << 7 | usize::from(*byte));
            let mut at = 10 + length;
            let mut frames = Vec::new();
            while at < bytes.len() {
                assert_eq!(bytes[at..at + 2], [0xff, 0xfb]);
                let length = FRAME + usize::from(bytes[at + 2] >> 1 & 1);
                frames.push(bytes[at..at + length].to_vec());
                at += length;
            }
            frames
        };
        let before = track.bytes();
        track.retag(&prose, &mut random);
        let after = track.bytes();
        assert_eq!(frames(&before).len(), 50_000 / FRAME);
        assert!(before != after && frames(&before) == frames(&after));
    }
}
