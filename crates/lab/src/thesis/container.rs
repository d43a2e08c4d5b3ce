//! The thesis's multichunk ("Custom"): an id, then checksum, length and bytes of one chunk after the other.
//!
//! The length of a chunk has four bytes here and two there, where chunks of more than 32,767 bytes could not be read again.

/// Length in bytes of SHA-1, which names chunks and multichunks there.
pub(super) const DIGEST_LENGTH: usize = 20;

/// What names a chunk.
pub(super) type Digest = [u8; DIGEST_LENGTH];

/// A multichunk that is being filled.
pub(super) struct Container {
    size_min: usize,
    bytes: Vec<u8>,
}

impl Container {
    /// Begins a multichunk that is full from a size in bytes on.
    pub(super) fn new(size_min: usize) -> Self {
        Self { size_min, bytes: Vec::with_capacity(size_min + size_min / 2) }
    }

    /// Adds a chunk; `number` names the multichunk if this is its first.
    pub(super) fn push(&mut self, number: u32, digest: &Digest, chunk: &[u8]) {
        if self.bytes.is_empty() {
            let mut id = [0; DIGEST_LENGTH];
            id[..4].copy_from_slice(&number.to_be_bytes());
            self.bytes.push(DIGEST_LENGTH as u8);
            self.bytes.extend_from_slice(&id);
            self.bytes.push(DIGEST_LENGTH as u8);
        }
        self.bytes.extend_from_slice(digest);
        self.bytes.extend_from_slice(&(chunk.len() as u32).to_be_bytes());
        self.bytes.extend_from_slice(chunk);
    }

    pub(super) fn is_full(&self) -> bool {
        self.bytes.len() >= self.size_min
    }

    /// Takes what is there, if there is something.
    pub(super) fn take(&mut self) -> Option<Vec<u8>> {
        (!self.bytes.is_empty()).then(|| std::mem::take(&mut self.bytes))
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// Reads a multichunk again; nothing where it is cut off.
    pub(crate) fn read(bytes: &[u8]) -> Option<Vec<(Digest, &[u8])>> {
        let (_, mut rest) = bytes.split_at_checked(2 + DIGEST_LENGTH)?;
        let mut chunks = Vec::new();
        while !rest.is_empty() {
            let (digest, after) = rest.split_first_chunk::<DIGEST_LENGTH>()?;
            let (length, after) = after.split_first_chunk()?;
            let (chunk, after) = after.split_at_checked(u32::from_be_bytes(*length) as usize)?;
            chunks.push((*digest, chunk));
            rest = after;
        }
        Some(chunks)
    }

    #[test]
    fn what_was_put_in_comes_out_and_what_is_cut_off_is_said() {
        let mut container = Container::new(1000);
        assert!(container.take().is_none());
        let chunks = [([1; DIGEST_LENGTH], vec![7; 400]), ([2; DIGEST_LENGTH], vec![8; 40_000])];
        for (digest, chunk) in &chunks {
            assert!(!container.is_full());
            container.push(3, digest, chunk);
        }
        assert!(container.is_full());
        let bytes = container.take().unwrap();
        let found: Vec<_> = read(&bytes).unwrap();
        assert_eq!(found, chunks.iter().map(|(one, two)| (*one, &two[..])).collect::<Vec<_>>());
        for length in [0, 21, 23, 43, 50, bytes.len() - 1] {
            assert!(read(&bytes[..length]).is_none(), "{length}");
        }
        assert!(container.take().is_none());
    }
}
