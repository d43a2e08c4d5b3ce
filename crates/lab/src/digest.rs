//! The sum by which bytes are known again.

use ring::digest::{SHA256, SHA256_OUTPUT_LEN, digest};

/// Returns the SHA-256 of some bytes.
pub(crate) fn sha256(bytes: &[u8]) -> [u8; SHA256_OUTPUT_LEN] {
    digest(&SHA256, bytes).as_ref().try_into().expect("SHA-256 has 32 bytes")
}

/// Returns it in hexadecimal digits.
pub(crate) fn sha256_text(bytes: &[u8]) -> String {
    sha256(bytes).iter().map(|byte| format!("{byte:02x}")).collect()
}
