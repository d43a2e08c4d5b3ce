//! News on its way to the other servers.

use std::sync::Arc;

use messaging::Calls;
use model::Clock;

use super::interface::{Blob, Bulletin, Item, ServersProxy};
use super::{BEAT, Link, Standing};
use crate::services::news::{Told, Waiting};

/// Longer frames are not sent along, in bytes: who wants them reads the log.
const FRAME_LENGTH_MAX: usize = 64 * 1024;

/// A bulletin that is as long as this takes nothing more, in bytes.
const BULLETIN_LENGTH_MAX: usize = 256 * 1024;

/// What an item has beside its frame at most, in bytes.
const ITEM_LENGTH: usize = 128;

/// Tells the others what waits, or that there is nothing, until nobody has news any more.
pub(super) async fn run(
    mut waiting: Waiting,
    link: Link,
    clock: Arc<dyn Clock>,
    standing: Arc<Standing>,
) {
    let mut was_reachable = true;
    loop {
        let first = tokio::select! {
            biased;
            told = waiting.told.recv() => match told {
                Some(told) => Some(told),
                None => return,
            },
            () = clock.sleep(BEAT) => None,
        };
        let bulletin = gather(first, &mut waiting);
        let messenger = link.borrow().clone();
        if let Some(messenger) = messenger {
            let calls: Arc<dyn Calls> = Arc::new(messenger);
            if let Err(error) = ServersProxy::new(calls).news(bulletin).await {
                tracing::debug!(%error, "the other servers were not told");
                waiting.leave_out();
            }
        } else {
            waiting.leave_out();
        }
        let is_reachable = standing.is_reachable();
        match (was_reachable, is_reachable) {
            (true, false) if link.borrow().is_some() => tracing::warn!(
                "the message broker does not answer; commits go on, and other servers hear of them late"
            ),
            (false, true) => tracing::info!("the message broker answers"),
            _ => {}
        }
        was_reachable = is_reachable;
    }
}

fn gather(first: Option<Told>, waiting: &mut Waiting) -> Bulletin {
    let (mut items, mut length) = (Vec::new(), 0);
    let mut next = first;
    while let Some(told) = next {
        let item = item(told);
        length += ITEM_LENGTH;
        if let Item::Entry { frame, .. } = &item {
            length += frame.0.len();
        }
        items.push(item);
        next = if length < BULLETIN_LENGTH_MAX { waiting.told.try_recv().ok() } else { None };
    }
    Bulletin { is_incomplete: waiting.was_incomplete(), items }
}

fn item(told: Told) -> Item {
    match told {
        Told::Entry { workspace, frame } if frame.len() <= FRAME_LENGTH_MAX => {
            Item::Entry { workspace: workspace.to_string(), frame: Blob(frame.into()) }
        }
        Told::Entry { workspace, .. } | Told::Moved(workspace) => {
            Item::Moved { workspace: workspace.to_string() }
        }
        Told::SignedOut(device) => Item::SignedOut { device: device.to_string() },
        Told::Expelled { account, workspace } => {
            Item::Expelled { account: account.0, workspace: workspace.to_string() }
        }
        Told::Arrived { device, incarnation } => {
            Item::Arrived { device: device.to_string(), incarnation }
        }
        Told::Contested { device, incarnation } => {
            Item::Contested { device: device.to_string(), incarnation }
        }
    }
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use model::WorkspaceId;

    use super::*;
    use crate::services::news::News;

    fn entry(length: usize) -> Told {
        let frame = Bytes::from(vec![1; length]);
        Told::Entry { workspace: WorkspaceId::from_bytes([7; 16]), frame }
    }

    #[test]
    fn a_bulletin_is_bounded_and_what_does_not_fit_comes_next() {
        let (news, mut waiting) = News::new();
        for _ in 0..7 {
            news.tell(entry(FRAME_LENGTH_MAX));
        }
        let first = gather(Some(entry(FRAME_LENGTH_MAX)), &mut waiting);
        assert_eq!((first.items.len(), first.is_incomplete), (4, false));
        let next = waiting.told.try_recv().ok();
        assert_eq!(gather(next, &mut waiting).items.len(), 4);
        assert_eq!(gather(None, &mut waiting), Bulletin::default());
    }

    #[test]
    fn a_large_entry_is_named_and_not_sent_along() {
        let moved = Item::Moved { workspace: WorkspaceId::from_bytes([7; 16]).to_string() };
        assert_eq!(item(entry(FRAME_LENGTH_MAX + 1)), moved);
        assert_ne!(item(entry(FRAME_LENGTH_MAX)), moved);
    }
}
