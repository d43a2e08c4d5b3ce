//! The suite that every driver and decorator passes: the promises of [`crate::object_store`] as tests.
//!
//! ```no_run
//! # use std::sync::Arc;
//! # async fn example() {
//! let open = || Arc::new(storage::opendal_store::OpendalStore::memory("test")) as Arc<dyn storage::ObjectStore>;
//! storage::conformance::run(open).await;
//! # }
//! ```

mod deferred;
mod lists;
mod puts;
mod reads;

use std::pin::Pin;
use std::sync::Arc;

use bytes::Bytes;

use crate::error::StorageError;
use crate::key::ObjectKey;
use crate::object_store::{ObjectStore, PutMode, PutOutcome};

/// A running case; it panics where the store breaks a promise.
pub type Run = Pin<Box<dyn Future<Output = ()> + Send>>;

/// One promise.
#[derive(Clone, Copy)]
pub struct Case {
    /// The promise, as a claim.
    pub name: &'static str,
    /// Whether it is about [`PutMode::IfAbsent`](crate::PutMode::IfAbsent), which not every store has.
    pub is_about_creation: bool,
    /// Tries it on an empty store.
    pub run: fn(Arc<dyn ObjectStore>) -> Run,
}

impl std::fmt::Debug for Case {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str(self.name)
    }
}

/// The cases that a store which only holds data leaves out.
const ABOUT_CREATION: [&str; 4] = [
    "put_if_absent_leaves_the_first_object_untouched",
    "put_if_absent_of_equal_bytes_is_told_that_they_exist",
    "exactly_one_of_many_puts_if_absent_wins",
    "put_if_absent_finds_an_object_that_was_put_over_another",
];

macro_rules! cases {
    ($($module:ident::$name:ident),* $(,)?) => {
        vec![$(Case {
            name: stringify!($name),
            is_about_creation: ABOUT_CREATION.contains(&stringify!($name)),
            run: |store| Box::pin($module::$name(store)),
        }),*]
    };
}

/// Returns all cases.
pub fn cases() -> Vec<Case> {
    cases![
        puts::a_put_object_is_read_back,
        puts::any_bytes_are_kept,
        puts::an_empty_object_is_an_object,
        puts::a_pack_of_eight_mebibytes_is_kept,
        puts::overwrite_replaces_longer_and_shorter_objects,
        puts::put_if_absent_leaves_the_first_object_untouched,
        puts::put_if_absent_of_equal_bytes_is_told_that_they_exist,
        puts::exactly_one_of_many_puts_if_absent_wins,
        puts::put_if_absent_finds_an_object_that_was_put_over_another,
        puts::an_object_above_the_limit_is_refused,
        puts::a_deleted_object_is_gone_and_may_come_back,
        puts::deleting_what_is_not_there_succeeds,
        puts::every_kind_of_key_can_be_stored,
        reads::what_was_never_put_is_absent,
        reads::ranges_are_cut_at_the_end,
        reads::empty_ranges_give_no_bytes,
        reads::tails_are_at_most_the_whole,
        reads::ranges_of_a_large_object_are_exact,
        reads::size_is_the_length,
        lists::a_list_is_in_byte_order_of_whole_keys,
        lists::pages_join_to_the_whole_list,
        lists::a_prefix_may_end_inside_a_segment,
        lists::nothing_is_an_empty_list,
        lists::a_list_follows_puts_and_deletes,
        lists::an_impossible_prefix_is_an_error,
        deferred::deferred_objects_are_there_after_sync,
        deferred::deferring_an_existing_object_keeps_it_readable,
        deferred::sync_without_anything_deferred_succeeds,
    ]
}

/// Returns the cases for a store that says of itself that it cannot create an object only where none is.
pub fn data_cases() -> Vec<Case> {
    let mut cases = cases();
    cases.retain(|case| !case.is_about_creation);
    cases
}

/// Puts an object where none is, in the best way the store has.
async fn put_new(store: &dyn ObjectStore, key: &ObjectKey, bytes: Bytes) {
    let outcome = match store.put(key, bytes.clone(), PutMode::IfAbsent).await {
        Err(StorageError::Unsupported { .. }) => store.put(key, bytes, PutMode::Overwrite).await,
        outcome => outcome,
    };
    assert_eq!(outcome.expect("put"), PutOutcome::Written);
}

/// Runs all cases, each on an empty store of its own from `open`.
///
/// # Panics
/// When the store breaks a promise; the case is named.
pub async fn run(open: impl Fn() -> Arc<dyn ObjectStore>) {
    run_cases(&cases(), open).await;
}

/// Runs some of the cases, for a decorator that gives up a promise on purpose and says so.
///
/// # Panics
/// As [`run`].
pub async fn run_cases(cases: &[Case], open: impl Fn() -> Arc<dyn ObjectStore>) {
    for case in cases {
        let store = open();
        let description = store.describe();
        let guard = NameOnPanic(case.name, &description);
        (case.run)(store).await;
        drop(guard);
    }
}

/// Says which case failed, because the panic itself only knows the line.
struct NameOnPanic<'a>(&'static str, &'a str);

impl Drop for NameOnPanic<'_> {
    #[expect(
        clippy::print_stderr,
        reason = "only a failing test gets here, and its output is the report"
    )]
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("conformance case '{}' failed on {}", self.0, self.1);
        }
    }
}

fn key(text: &str) -> ObjectKey {
    ObjectKey::new(text).expect("the cases use valid keys")
}

/// The key of the pack that `bytes` are: a cache treats it differently from other keys.
fn pack_key(bytes: &[u8]) -> ObjectKey {
    ObjectKey::pack(model::ids::PackId::from_bytes(*blake3::hash(bytes).as_bytes()))
}

/// Bytes that no two places of share for long.
fn patterned(length: usize, seed: u64) -> Bytes {
    let mut bytes = vec![0; length];
    let mut hasher = blake3::Hasher::new();
    hasher.update(&seed.to_le_bytes());
    hasher.finalize_xof().fill(&mut bytes);
    bytes.into()
}
