//! Errors on their way to JavaScript: an `Error` with a stable `code`, and `isRetryable`.

use std::error::Error;

use content::ContentError;
use content::changing::ChangeError;
use content::delta::DeltaError;
use passwords::PasswordError;
use wasm_bindgen::JsValue;
use wasm_bindgen::prelude::wasm_bindgen;

#[wasm_bindgen]
extern "C" {
    /// An `Error` of JavaScript.
    #[wasm_bindgen(js_name = Error)]
    type CodedError;

    #[wasm_bindgen(constructor, js_class = "Error")]
    fn new(message: &str) -> CodedError;

    #[wasm_bindgen(method, setter)]
    fn set_code(this: &CodedError, code: &str);

    #[wasm_bindgen(method, setter, js_name = "isRetryable")]
    fn set_is_retryable(this: &CodedError, is_retryable: bool);
}

/// What went wrong, for a caller in another language.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Failure {
    /// What failed, a word that does not change. `web/packages/core/src/error.ts` has the list.
    pub code: &'static str,
    /// The same for people who look for the cause, with the causes behind it.
    pub message: String,
    /// Whether the same call may succeed later.
    pub is_retryable: bool,
}

impl Failure {
    /// Makes one that no room has met.
    pub(crate) fn of(code: &'static str, message: &str) -> Self {
        Self { code, message: message.to_owned(), is_retryable: false }
    }

    /// The same, where the call may succeed later.
    pub(crate) fn retryable(code: &'static str, message: &str) -> Self {
        Self { is_retryable: true, ..Self::of(code, message) }
    }

    fn new(code: &'static str, error: &dyn Error, is_retryable: bool) -> Self {
        let mut message = error.to_string();
        let mut cause = error.source();
        while let Some(error) = cause {
            message = format!("{message}: {error}");
            cause = error.source();
        }
        Self { code, message, is_retryable }
    }
}

impl From<ContentError> for Failure {
    fn from(error: ContentError) -> Self {
        Self::new(content_code(&error), &error, error.is_retryable())
    }
}

impl From<DeltaError> for Failure {
    fn from(error: DeltaError) -> Self {
        Self::new(delta_code(&error), &error, error.is_retryable())
    }
}

impl From<ChangeError> for Failure {
    fn from(error: ChangeError) -> Self {
        Self::new(change_code(&error), &error, false)
    }
}

impl From<PasswordError> for Failure {
    fn from(error: PasswordError) -> Self {
        Self::new(password_code(error), &error, error == PasswordError::Memory)
    }
}

impl From<Failure> for JsValue {
    fn from(failure: Failure) -> Self {
        let error = CodedError::new(&failure.message);
        error.set_code(failure.code);
        error.set_is_retryable(failure.is_retryable);
        error.into()
    }
}

/// Returns the code of what can go wrong with content here. All that is not what was stored has one code.
fn content_code(error: &ContentError) -> &'static str {
    match error {
        ContentError::Read { .. } => "read",
        ContentError::InvalidChunkSize { .. } => "invalid_chunk_size",
        ContentError::TooManyChunks { .. } => "too_many_chunks",
        ContentError::ChunkHash { .. } => "chunk_hash",
        ContentError::ContentSize { .. } => "content_size",
        ContentError::IsSealed { .. } => "is_sealed",
        ContentError::NotSealed { .. } => "not_sealed",
        ContentError::WrongKey | ContentError::NoKeys => "wrong_key",
        ContentError::KeyCost { .. } => "key_cost",
        ContentError::UnknownEpoch { .. } => "unknown_epoch",
        ContentError::NotNext { .. } => "not_next",
        ContentError::Forked { .. } => "forked",
        ContentError::TooMuchToArchive { .. } => "too_much_to_archive",
        ContentError::ChunkMissing { .. } | ContentError::PackMissing { .. } => "missing",
        error if error.is_damage() => "tampered",
        _ => "content",
    }
}

fn change_code(error: &ChangeError) -> &'static str {
    match error {
        ChangeError::NoSuch { .. } => "no_such",
        ChangeError::Changed { .. }
        | ChangeError::NoConflict { .. }
        | ChangeError::Unseen { .. }
        | ChangeError::OtherKind { .. } => "changed",
        ChangeError::Taken { .. } => "taken",
        ChangeError::Name { .. } => "name",
        ChangeError::Mounted { .. } => "mounted",
        ChangeError::IntoItself { .. } => "into_itself",
        ChangeError::Dropped { .. } => "dropped",
    }
}

fn password_code(error: PasswordError) -> &'static str {
    match error {
        PasswordError::Wrong => "wrong_password",
        PasswordError::Message | PasswordError::Kept => "message",
        PasswordError::Length => "password",
        PasswordError::Memory => "memory",
    }
}

fn delta_code(error: &DeltaError) -> &'static str {
    match error {
        DeltaError::Read { .. } => "read",
        DeltaError::Write { .. } => "write",
        DeltaError::Message { .. } => "message",
        DeltaError::MessageLength { .. } => "message_length",
        DeltaError::UnexpectedMessage { .. } => "unexpected_message",
        DeltaError::WrongSession => "wrong_session",
        DeltaError::WrongWorkspace { .. } => "wrong_workspace",
        DeltaError::TooLarge { .. } => "too_large",
        DeltaError::OutOfRange { .. } => "out_of_range",
        DeltaError::NoSuch { .. } => "no_such",
        DeltaError::Length { .. } => "length",
        DeltaError::Unverified => "unverified",
        DeltaError::WrongBase => "wrong_base",
        DeltaError::TooDifferent { .. } => "too_different",
        DeltaError::Content { source } => content_code(source),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io;

    #[test]
    fn failure_has_the_code_of_what_failed_and_all_causes_in_its_text() {
        let source = ContentError::Read { source: io::Error::other("the file was moved") };
        let failure = Failure::from(DeltaError::from(source));
        assert_eq!(failure.code, "read");
        assert!(failure.message.ends_with("content cannot be read: the file was moved"));
        let failure = Failure::from(DeltaError::WrongBase);
        assert_eq!((failure.code, failure.is_retryable), ("wrong_base", true));
    }
}
