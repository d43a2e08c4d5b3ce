//! Asks all stores of a group, and goes on with a majority.

use std::sync::Arc;

use futures_util::future::{BoxFuture, Either, FutureExt, select};
use futures_util::stream::{FuturesUnordered, StreamExt};
use storage::ObjectStore;

use super::background::Call;
use super::deliberation::CALL_PATIENCE;
use super::slots::Slots;
use crate::commit_log::CommitLogError;
use crate::serverless::group::{Group, NamedStore};

/// Calls every store and returns what the first majority says. The others go on by themselves. A single store speaks for
/// itself; of several the missing are named.
///
/// # Errors
/// That of the single store; [`CommitLogError::Unreachable`].
pub(super) async fn gather<T: Send + 'static>(
    slots: &Slots,
    group: &Group,
    call: impl Fn(Arc<dyn ObjectStore>) -> BoxFuture<'static, Result<T, CommitLogError>>,
) -> Result<Vec<T>, CommitLogError> {
    let single = match group.stores() {
        [single] => Some(call(single.store.clone())),
        _ => None,
    };
    if let Some(single) = single {
        return single.await.map(|value| vec![value]);
    }
    let limited = |(number, store): (usize, &NamedStore)| {
        let limit = slots.means.clock.sleep(CALL_PATIENCE);
        let call = call(store.store.clone());
        let (silence, name) = (slots.silence.clone(), store.name.clone());
        let answer = async move {
            match select(call, limit).await {
                Either::Left((outcome, _)) => {
                    silence.ends(&name);
                    (number, outcome.map_err(|error| error.to_string()))
                }
                Either::Right(_) => (number, Err("does not answer".to_owned())),
            }
        };
        Call { store: number, answer: answer.boxed() }
    };
    let mut calls: FuturesUnordered<_> = group.stores().iter().enumerate().map(limited).collect();
    let mut successes = Vec::new();
    let mut reasons = Vec::new();
    while let Some((number, outcome)) = slots.background.beside(calls.next()).await {
        match outcome {
            Ok(value) => successes.push(value),
            Err(reason) => reasons.push(format!("{}: {reason}", group.stores()[number].name)),
        }
        if successes.len() > group.stores().len() / 2 {
            for call in calls {
                let name = &group.stores()[call.store].name;
                slots.background.add(name, call.map(drop).boxed());
            }
            return Ok(successes);
        }
    }
    let place = format!("{} of {} stores", reasons.len(), group.stores().len());
    Err(CommitLogError::Unreachable { place, reason: reasons.join("; ") })
}
