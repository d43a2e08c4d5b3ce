//! What networks and brokers do to messages.

use std::sync::Arc;

use async_trait::async_trait;
use parking_lot::Mutex;

use super::Fixture;
use super::world::{Service, assert_each_once, diligent, messenger};
use crate::error::MessagingError;
use crate::messenger::MessengerOptions;
use crate::names::{Name, OperationId};
use crate::transport::{Abilities, Incoming, Parcel, Route, Source, Transport};

/// Sends everything twice, the second time after something that was sent later.
#[derive(Debug)]
struct Disorderly {
    inner: Arc<dyn Transport>,
    held_back: Mutex<Vec<(Route, Parcel)>>,
}

#[async_trait]
impl Transport for Disorderly {
    fn describe(&self) -> String {
        self.inner.describe()
    }

    fn abilities(&self) -> Abilities {
        self.inner.abilities()
    }

    async fn send(&self, route: &Route, parcel: Parcel) -> Result<(), MessagingError> {
        self.inner.send(route, parcel.clone()).await?;
        // Another id for the transport, which would know the same one again.
        let other: [u8; 16] = parcel.operation.as_bytes().map(|byte| !byte);
        let copy = Parcel { operation: OperationId::from_bytes(other), ..parcel };
        let late = {
            let mut held_back = self.held_back.lock();
            held_back.insert(0, (route.clone(), copy));
            if held_back.len() > 3 { held_back.pop() } else { None }
        };
        if let Some((route, parcel)) = late {
            self.inner.send(&route, parcel).await?;
        }
        Ok(())
    }

    async fn receive(
        &self,
        source: &Source,
        unsettled_max: usize,
    ) -> Result<Incoming, MessagingError> {
        self.inner.receive(source, unsettled_max).await
    }

    async fn waiting(&self, service: &Name) -> Result<u64, MessagingError> {
        self.inner.waiting(service).await
    }
}

pub(super) async fn duplicates_and_disorder_have_one_effect(fixture: &dyn Fixture) {
    let service = Service::new("twice");
    let _one = service.instance(fixture, diligent).await;
    let _two = service.instance(fixture, diligent).await;
    let disorderly =
        Disorderly { inner: fixture.client().await, held_back: Mutex::new(Vec::new()) };
    let client = messenger(Arc::new(disorderly), MessengerOptions::default()).await;
    let proxy = service.proxy(&client);
    for number in 0..60 {
        if number % 2 == 0 {
            proxy.later(number).await.unwrap();
        } else {
            proxy.work(number).await.unwrap();
        }
    }
    let done = service.tally.until("everything", |done| done.effects.len() == 60).await;
    // The last copies are still on their way; the calls behind them are answered after them.
    for number in 60..70 {
        proxy.work(number).await.unwrap();
    }
    // Several at once, so that copies of a question come while its answers are gathered.
    let questions = (0..8).map(|_| proxy.who());
    for gathered in futures_util::future::join_all(questions).await {
        assert_eq!(gathered.unwrap().len(), 2, "an instance counts once, however often it answers");
    }
    drop(done);
    let done = service.tally.done();
    assert_each_once(&done, 0..70);
}
