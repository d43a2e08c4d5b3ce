//! Group commit: many requests, one transaction, one flush of the disk.
//!
//! *Invariants*: every request gets exactly one answer; a request that fails undoes its own writes and nobody
//! else's; nobody hears of success before the transaction is durable; when the transaction fails, everybody whose
//! writes were in it hears so.

use crate::error::{Result, ServerError};
use crate::metadata::{Metadata, MetadataError};

/// Work of one request on the metadata, inside a transaction.
pub type Work<'a, T> = Box<dyn FnOnce(&mut dyn Metadata) -> Result<T> + Send + 'a>;

/// Runs all work in one transaction and returns the answers in the same order.
pub fn run<T>(metadata: &mut dyn Metadata, batch: Vec<Work<'_, T>>) -> Vec<Result<T>> {
    let count = batch.len();
    let begun = metadata.begin();
    if let Err(error) = begun {
        return (0..count).map(|_| Err(error.clone().into())).collect();
    }
    let mut answers: Vec<Result<T>> = Vec::with_capacity(count);
    for work in batch {
        answers.push(run_one(metadata, work));
        if !metadata.is_in_transaction() {
            // A full or failing disk: the database has undone all of it.
            let error = match answers.last() {
                Some(Err(error)) => error.clone(),
                _ => MetadataError::NoSpace.into(),
            };
            return fail_all(answers, count, &error);
        }
    }
    match metadata.commit() {
        Ok(()) => answers,
        Err(error) => {
            metadata.rollback();
            fail_all(answers, count, &error.into())
        }
    }
}

fn run_one<T>(metadata: &mut dyn Metadata, work: Work<'_, T>) -> Result<T> {
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
fn fail_all<T>(answers: Vec<Result<T>>, count: usize, error: &ServerError) -> Vec<Result<T>> {
    let lost = |answer: Result<T>| match answer {
        Err(refused) => Err(refused),
        Ok(_) => Err(error.clone()),
    };
    let mut answers: Vec<_> = answers.into_iter().map(lost).collect();
    answers.resize_with(count, || Err(error.clone()));
    answers
}
