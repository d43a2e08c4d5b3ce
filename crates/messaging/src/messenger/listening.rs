//! Listening to the events of a topic.

use std::collections::HashMap;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;

use bytes::Bytes;
use futures_util::{FutureExt, StreamExt};
use tokio::sync::watch;

use super::Messenger;
use super::serving::{Serving, prepare};
use crate::envelope::{Envelope, Kind};
use crate::error::MessagingError;
use crate::interface::Handler;
use crate::names::{InstanceId, Name};
use crate::transport::{Incoming, Notice, Source, Verdict};

/// Of how many senders the newest event of a topic is remembered.
const SENDERS_MAX: usize = 1024;

impl Messenger {
    /// Listens to a topic: the handler gets each event once, in the order of each sender, and hears when events may
    /// have been missed. At most `waiting_max` events wait for it.
    ///
    /// # Errors
    /// [`MessagingError`], if the topic cannot be listened to now.
    pub async fn listen(
        &self,
        topic: &Name,
        handler: Arc<dyn Handler>,
        waiting_max: usize,
    ) -> Result<Serving, MessagingError> {
        let source = Source::Topic(topic.clone());
        let incoming = self.core.transport.receive(&source, waiting_max.max(1)).await?;
        let (stop, stopped) = watch::channel(false);
        let listener = Listener { topic: topic.clone(), handler, senders: Senders::default() };
        let task = tokio::spawn(listener.run(incoming, stopped));
        Ok(Serving::new(stop, vec![task]))
    }
}

struct Listener {
    topic: Name,
    handler: Arc<dyn Handler>,
    senders: Senders,
}

impl Listener {
    async fn run(mut self, mut incoming: Incoming, mut stopped: watch::Receiver<bool>) {
        loop {
            let notice = tokio::select! {
                biased;
                _ = stopped.wait_for(|stop| *stop) => return,
                notice = incoming.next() => notice,
            };
            match notice {
                Some(Notice::Delivery(delivery)) => {
                    self.hear(&delivery.bytes).await;
                    if let Err(error) = delivery.settle(Verdict::Done).await {
                        tracing::debug!(topic = %self.topic, %error, "an event was not settled");
                    }
                }
                Some(Notice::Gap) => self.handler.missed(&self.topic).await,
                None => return,
            }
        }
    }

    async fn hear(&mut self, bytes: &Bytes) {
        let envelope = match Envelope::decode(bytes) {
            Ok(envelope) if envelope.kind == Kind::Event => envelope,
            other => {
                tracing::warn!(topic = %self.topic, ?other, "what came is no event");
                return;
            }
        };
        match self.senders.judge(envelope.sender, envelope.sequence, envelope.previous) {
            Judgement::Known => return,
            Judgement::AfterGap => self.handler.missed(&self.topic).await,
            Judgement::Next => {}
        }
        let (version, ours) = (envelope.interface_version, self.handler.version());
        if version != ours {
            tracing::warn!(topic = %self.topic, version, ours, "an event of another version");
            self.handler.missed(&self.topic).await;
            return;
        }
        let handled = async {
            let (context, arguments) = prepare(&envelope, 1)?;
            self.handler.handle(&context, &envelope.method, arguments).await
        };
        match AssertUnwindSafe(handled).catch_unwind().await {
            Ok(Ok(_)) => {}
            Ok(Err(fault)) => {
                tracing::warn!(topic = %self.topic, %fault, "an event was not understood");
                self.handler.missed(&self.topic).await;
            }
            Err(_) => {
                tracing::error!(topic = %self.topic, "the handler of an event panicked");
                self.handler.missed(&self.topic).await;
            }
        }
    }
}

/// What an event is to a listener.
#[derive(Debug, PartialEq, Eq)]
enum Judgement {
    /// It was here before, or it comes after later ones.
    Known,
    /// It is the next of its sender.
    Next,
    /// Others of its sender may be missing before it.
    AfterGap,
}

/// The newest event of each sender.
#[derive(Debug, Default)]
struct Senders(HashMap<InstanceId, u64>);

impl Senders {
    fn judge(&mut self, sender: InstanceId, sequence: u64, previous: u64) -> Judgement {
        let last = self.0.get(&sender).copied().unwrap_or_default();
        if sequence <= last {
            return Judgement::Known;
        }
        if self.0.len() >= SENDERS_MAX && last == 0 {
            self.0.clear();
        }
        self.0.insert(sender, sequence);
        // A sender that knows no event before this one has none, or has forgotten it.
        if previous == last { Judgement::Next } else { Judgement::AfterGap }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sender(number: u64) -> InstanceId {
        let mut bytes = [0; 16];
        bytes[..8].copy_from_slice(&number.to_le_bytes());
        InstanceId::from_bytes(bytes)
    }

    #[test]
    fn events_come_once_and_gaps_are_seen() {
        let mut senders = Senders::default();
        assert_eq!(senders.judge(sender(1), 4, 0), Judgement::Next);
        assert_eq!(senders.judge(sender(1), 4, 0), Judgement::Known);
        assert_eq!(senders.judge(sender(1), 9, 4), Judgement::Next);
        assert_eq!(senders.judge(sender(1), 12, 10), Judgement::AfterGap);
        assert_eq!(senders.judge(sender(1), 10, 9), Judgement::Known);
        assert_eq!(senders.judge(sender(1), 15, 0), Judgement::AfterGap);
        // Who begins to listen late has missed what was before.
        assert_eq!(senders.judge(sender(2), 7, 6), Judgement::AfterGap);
    }

    #[test]
    fn the_memory_of_senders_is_bounded() {
        let mut senders = Senders::default();
        for number in 0..5000 {
            senders.judge(sender(number), 1, 0);
            assert!(senders.0.len() <= SENDERS_MAX);
        }
    }
}
