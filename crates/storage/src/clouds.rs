//! Drivers of the services that people keep files in: Dropbox, Google Drive, OneDrive, Box, Baidu.
//!
//! *Participants*: [`ShelfStore`], which keeps the promises of [`crate::object_store`]; a [`Drive`], which speaks to one
//! service; [`CloudClient`], which signs requests and says what refusals mean. *Goals*: few requests, because each takes a
//! tenth of a second and services count them; the creation of an object by one step of the service, where it has one.
//! *Non-goals*: hearing of changes from the service: nothing above asks a store to tell. *Invariants*:
//!
//! * Objects lie on *shelves*: folders of one level, named after the folder of the key. So a list asks for the shelves once
//!   and for each shelf that it wants, and no folder below a folder is ever made.
//! * A service uploads whole files, so nothing is written aside.
//! * What this handle has written is found by it at once, also where the lists of the service follow later.
//! * "Nothing there" is said of a store that is there; see [`crate::layers::Marked`].

mod client;
mod shelves;

#[cfg(feature = "store-baidu")]
mod baidu;
#[cfg(feature = "store-box")]
mod box_drive;
#[cfg(feature = "store-dropbox")]
mod dropbox;
#[cfg(feature = "store-gdrive")]
mod google_drive;
#[cfg(feature = "store-onedrive")]
mod onedrive;

use std::sync::Arc;

use crate::credentials::Credentials;
use crate::error::Result;
use crate::object_store::ObjectStore;
use crate::open::address::Address;

use client::{CloudClient, Drivers};
use shelves::{Drive, DriveFile, Place, ShelfStore};

/// Opens a folder of a service; nothing where the driver of the scheme was not built.
pub(crate) fn open(
    scheme: &str,
    address: &Address,
    credentials: &Credentials,
) -> Result<Option<Arc<dyn ObjectStore>>> {
    Ok(Some(match scheme {
        #[cfg(feature = "store-baidu")]
        "baidu" => Arc::new(baidu::open(address, credentials)?),
        #[cfg(feature = "store-box")]
        "box" => Arc::new(box_drive::open(address, credentials)?),
        #[cfg(feature = "store-dropbox")]
        "dropbox" => Arc::new(dropbox::open(address, credentials)?),
        #[cfg(feature = "store-gdrive")]
        "gdrive" => Arc::new(google_drive::open(address, credentials)?),
        #[cfg(feature = "store-onedrive")]
        "onedrive" => Arc::new(onedrive::open(address, credentials)?),
        _ => return Ok(None),
    }))
}
