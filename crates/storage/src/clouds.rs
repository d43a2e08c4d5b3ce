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

#[cfg(feature = "store-dropbox")]
pub(crate) mod dropbox;
#[cfg(feature = "store-gdrive")]
pub(crate) mod google_drive;
#[cfg(feature = "store-onedrive")]
pub(crate) mod onedrive;

pub(crate) use client::{CloudClient, Drivers};
pub(crate) use shelves::{Drive, DriveFile, Place, ShelfStore};
