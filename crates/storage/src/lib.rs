//! Where packs rest: object stores, the content store over them, and a cache.
//!
//! *Knows*: bytes under keys, how each kind of store keeps them through a crash, and that a pack or a page is
//! named by the hash of its bytes. *Does not know*: what is inside a pack, what a commit is, who the user is.
//!
//! Reading order: [`object_store`] (the trait and its promises), [`key`] (the layout of a store), [`error`],
//! [`mod@open`] (URLs) and [`credentials`], [`direct`] (ways past a server), the drivers [`file_store`], [`opendal_store`] and `server_door`, those in a
//! network (`tree_store` is what four of them have in common, `clouds` what those have that people sign in to), `sign_in`, then [`content_store`],
//! [`cache`], [`layers`] and [`probe`]; [`placement`] and [`pool`] make one store of several; [`blocking`] says where a thread may wait
//! for the disk; `conformance` and `faulty` serve tests.
//!
//! A new store is a driver of [`ObjectStore`], a line in [`mod@open`], and a run of `conformance`.

#![forbid(unsafe_code)]
#![warn(missing_docs)]

pub mod object_store;

pub mod credentials;
pub mod direct;
pub mod error;
pub mod key;
pub mod open;

pub mod file_store;
pub mod opendal_store;
#[cfg(feature = "server-door")]
pub mod server_door;

#[cfg(feature = "store-azblob")]
mod azure_store;
#[cfg(feature = "cloud")]
mod clouds;
#[cfg(feature = "store-ftp")]
mod ftp_store;
#[cfg(feature = "store-gcs")]
mod gcs_store;
#[cfg(feature = "store-imap")]
mod imap_store;
#[cfg(feature = "store-s3")]
mod s3_store;
#[cfg(feature = "store-sftp")]
mod sftp_store;
#[cfg(feature = "store-smb")]
mod smb_store;
#[cfg(feature = "store-swift")]
mod swift_store;
#[cfg(feature = "tree")]
#[cfg_attr(not(feature = "stores"), allow(dead_code, reason = "its tests need no driver over it"))]
mod tree_store;
#[cfg(feature = "store-webdav")]
mod webdav_store;

#[cfg(feature = "cloud")]
pub mod sign_in;

pub mod cache;
pub mod content_store;
pub mod layers;
pub mod placement;
pub mod pool;
pub mod probe;

#[cfg(feature = "testing")]
pub mod conformance;
#[cfg(feature = "testing")]
pub mod faulty;

pub mod blocking;
mod files;
#[cfg(any(
    feature = "cloud",
    feature = "server-door",
    feature = "store-azblob",
    feature = "store-gcs",
    feature = "store-swift",
    feature = "store-webdav"
))]
mod http_answer;
#[cfg(any(feature = "store-ftp", feature = "store-imap", feature = "store-smb"))]
mod sessions;

pub use content_store::ContentStore;
pub use credentials::Credentials;
pub use direct::{Direct, SignedRequest};
pub use error::{Result, StorageError};
pub use key::ObjectKey;
pub use object_store::{OBJECT_SIZE_MAX, ObjectEntry, ObjectStore, PutMode, PutOutcome, Waited};
pub use open::{Opening, open, open_existing, open_with};
