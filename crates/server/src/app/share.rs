//! What one kind of callers takes of the server at once, until it was sent.
//!
//! *Invariant*: people with accounts and strangers behind links have a share each, so that strangers who read slowly, however many they are,
//! take nothing of what accounts need.

use std::sync::Arc;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::error::{Result, ServerError};
use crate::limits::{ARCHIVES_AT_ONCE_MAX, BODY_WAIT_TIMEOUT};

/// Memory for bodies is counted in pieces of this many bytes.
const BODY_UNIT: u64 = 64 * 1024;

/// A share of the server; cheap to clone.
#[derive(Debug, Clone)]
pub struct Share {
    bodies: Arc<Semaphore>,
    bodies_length_max: u64,
    /// A permit per archive that is laid out.
    archives: Arc<Semaphore>,
}

impl Share {
    /// Makes a share with so many bytes of memory for bodies.
    pub fn new(bodies_length_max: u64) -> Self {
        let units = (bodies_length_max / BODY_UNIT) as usize;
        let archives = Arc::new(Semaphore::new(ARCHIVES_AT_ONCE_MAX));
        Self { bodies: Arc::new(Semaphore::new(units)), bodies_length_max, archives }
    }

    /// Waits for memory for a body. One that is longer than all of it waits for all.
    ///
    /// # Errors
    /// [`ServerError::Unavailable`] where others have it for too long.
    pub(crate) async fn memory_for_body(&self, length: u64) -> Result<OwnedSemaphorePermit> {
        let units = length.min(self.bodies_length_max).div_ceil(BODY_UNIT).max(1) as u32;
        let permit = Arc::clone(&self.bodies).acquire_many_owned(units);
        match tokio::time::timeout(BODY_WAIT_TIMEOUT, permit).await {
            Ok(Ok(permit)) => Ok(permit),
            _ => Err(ServerError::Unavailable { reason: "moves too many objects at once" }),
        }
    }

    /// Takes a part of memory that was waited for; nothing where there is no more than that.
    pub(crate) fn part_of(
        memory: &mut OwnedSemaphorePermit,
        length: u64,
    ) -> Option<OwnedSemaphorePermit> {
        memory.split(length.div_ceil(BODY_UNIT) as usize)
    }

    /// Waits for the turn of an archive that is to be laid out.
    ///
    /// # Errors
    /// [`ServerError::Unavailable`] where too many others are before it.
    pub(crate) async fn turn_of_archive(&self) -> Result<OwnedSemaphorePermit> {
        let permit = Arc::clone(&self.archives).acquire_owned();
        match tokio::time::timeout(BODY_WAIT_TIMEOUT, permit).await {
            Ok(Ok(permit)) => Ok(permit),
            _ => Err(ServerError::Unavailable { reason: "lays out too many archives at once" }),
        }
    }
}
