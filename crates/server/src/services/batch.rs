//! Group commit: many requests, one transaction, one flush of the disk.
//!
//! *Invariants*: every request gets exactly one answer; a request that fails undoes its own writes and nobody
//! else's; nobody hears of success before the transaction is durable; when the transaction fails, everybody whose
//! writes were in it hears so. A transaction that met another one in a database that is shared is done again from its
//! beginning, so work must bear that.

use crate::error::{Result, ServerError};
use crate::metadata::{Metadata, MetadataError};

/// How often a transaction that met another one is done again.
const ATTEMPTS_MAX: u32 = 10;

/// Work of one request on the metadata, inside a transaction; what it did before is undone where it is done again.
pub type Work<'a, T> = Box<dyn FnMut(&mut dyn Metadata) -> Result<T> + Send + 'a>;

/// Does `work` in one transaction, which is durable on return; again, where another transaction was in the way.
///
/// # Errors
/// Those of `work`, and of the transaction; then nothing was done, unless the error says that nobody knows.
pub fn transact<T>(
    metadata: &mut dyn Metadata,
    mut work: impl FnMut(&mut dyn Metadata) -> Result<T, MetadataError>,
) -> Result<T, MetadataError> {
    let mut attempt = 1;
    loop {
        let begun = metadata.begin();
        let done = begun.and_then(|()| work(metadata)).and_then(|value| {
            // A full or failing disk: the database may have undone all of it.
            if !metadata.is_in_transaction() {
                return Err(MetadataError::NoSpace);
            }
            metadata.commit().map(|()| value)
        });
        match done {
            Err(error) => {
                metadata.rollback();
                if error != MetadataError::Collided || attempt == ATTEMPTS_MAX {
                    return Err(error);
                }
                attempt += 1;
            }
            done => return done,
        }
    }
}

/// Runs all work in one transaction and returns the answers in the same order.
pub fn run<T>(metadata: &mut dyn Metadata, mut batch: Vec<Work<'_, T>>) -> Vec<Result<T>> {
    let mut answers: Vec<Result<T>> = Vec::with_capacity(batch.len());
    let done = transact(metadata, |metadata| {
        answers.clear();
        for work in &mut batch {
            let answer = run_one(metadata, work);
            let error = match &answer {
                Err(ServerError::Metadata(MetadataError::Collided)) => {
                    return Err(MetadataError::Collided);
                }
                Err(ServerError::Metadata(error)) => error.clone(),
                _ => MetadataError::NoSpace,
            };
            answers.push(answer);
            if !metadata.is_in_transaction() {
                // A full or failing disk, or a lost connection: the database has undone all of it.
                return Err(error);
            }
        }
        Ok(())
    });
    match done {
        Ok(()) => answers,
        Err(error) => fail_all(answers, batch.len(), &error.into()),
    }
}

fn run_one<T>(metadata: &mut dyn Metadata, work: &mut Work<'_, T>) -> Result<T> {
    metadata.set_savepoint()?;
    let answer = work(metadata);
    // After a failure that has undone the whole transaction there is no savepoint left to go back to.
    if metadata.is_in_transaction() {
        match &answer {
            Ok(_) => metadata.release_savepoint()?,
            Err(_) => metadata.undo_to_savepoint()?,
        }
    }
    answer
}

/// Turns answers that rested on the lost transaction into errors. Refusals stand: they have written nothing.
pub(crate) fn fail_all<T>(
    answers: Vec<Result<T>>,
    count: usize,
    error: &ServerError,
) -> Vec<Result<T>> {
    let lost = |answer: Result<T>| match answer {
        Err(refused) => Err(refused),
        Ok(_) => Err(error.clone()),
    };
    let mut answers: Vec<_> = answers.into_iter().map(lost).collect();
    answers.resize_with(count, || Err(error.clone()));
    answers
}
