//! What a provider answers, none of which is trusted.

use reqwest::{RequestBuilder, StatusCode};

use crate::error::{Result, ServerError};

/// The longest answer that is read, in bytes.
const LENGTH_MAX: usize = 256 * 1024;

/// The longest word that is repeated, in bytes.
const WORD_LENGTH_MAX: usize = 64;

/// Sends a request and reads the answer.
///
/// # Errors
/// [`ServerError::ProviderUnusable`] where there is none in time, or one that is too long.
pub(super) async fn read(request: RequestBuilder) -> Result<(StatusCode, Vec<u8>)> {
    let unreachable = |error: reqwest::Error| unusable(&innermost(&error.without_url()));
    let mut response = request.send().await.map_err(unreachable)?;
    let mut bytes = Vec::new();
    while let Some(chunk) = response.chunk().await.map_err(unreachable)? {
        if bytes.len() + chunk.len() > LENGTH_MAX {
            return Err(unusable("its answer is too long"));
        }
        bytes.extend_from_slice(&chunk);
    }
    Ok((response.status(), bytes))
}

/// Says why the provider cannot be used: to whoever signs in, and to whoever reads the log of the server.
pub(super) fn unusable(reason: &str) -> ServerError {
    tracing::warn!(reason, "the provider of OpenID Connect cannot be used");
    ServerError::ProviderUnusable { reason: reason.to_owned() }
}

/// Returns a word of a provider as it may be shown.
pub fn word(text: &str) -> String {
    let is_plain = |letter: &char| letter.is_ascii_alphanumeric() || "_-.".contains(*letter);
    text.chars().filter(is_plain).take(WORD_LENGTH_MAX).collect()
}

/// Returns the text of the deepest source, which says what the system saw.
fn innermost(error: &dyn std::error::Error) -> String {
    let mut deepest = error;
    while let Some(source) = deepest.source() {
        deepest = source;
    }
    deepest.to_string()
}
