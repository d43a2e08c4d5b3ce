//! What only a broker that can be killed can show.

use async_trait::async_trait;

use super::Fixture;
use super::world::{Service, asking, assert_each_once, diligent, within};

/// Has a broker in its hand.
#[async_trait]
pub trait Broker: Fixture {
    /// Kills it without a warning, and waits until it is gone.
    async fn kill(&self);

    /// Removes all that it has remembered; it is dead.
    async fn wipe(&self);

    /// Starts it again with its data, at the same address.
    async fn start(&self);

    /// Stops its time.
    async fn pause(&self);

    /// Lets its time go on.
    async fn go_on(&self);
}

/// Casts while accidents happen, and asserts that every cast that was accepted is done once.
async fn casts_survive(broker: &dyn Broker, accident: impl AsyncFn()) {
    let service = Service::new("accident");
    let _one = service.instance(broker, diligent).await;
    let _two = service.instance(broker, diligent).await;
    let client = asking(broker).await;
    let casting = (0..4_u64).map(|caster| {
        let (client, proxy) = (client.clone(), service.proxy(&client));
        tokio::spawn(async move {
            for number in (caster..1_200).step_by(4) {
                // A broker on a busy machine may need longer to start than one cast is patient.
                let proxy = proxy.doing(client.new_operation());
                while let Err(error) = proxy.later(number).await {
                    assert!(error.is_retryable(), "{error}");
                }
            }
        })
    });
    let casting: Vec<_> = casting.collect();
    service.tally.until("the load has begun", |done| done.order.len() >= 100).await;
    accident().await;
    for caster in casting {
        caster.await.unwrap();
    }
    let done =
        service.tally.until("all that was accepted", |done| done.effects.len() == 1_200).await;
    assert_each_once(&done, 0..1_200);
    // The queues of calls and answers are back too, and those of questions to all.
    assert_eq!(service.proxy(&client).shout("well".to_owned()).await.unwrap(), "WELL");
    // An instance that is still declaring its queues is not asked.
    while service.proxy(&client).who().await.is_ok_and(|gathered| gathered.len() < 2) {}
}

/// A broker is killed and started again twice under load.
pub async fn what_was_accepted_survives_the_death_of_the_broker(broker: &dyn Broker) {
    let work = casts_survive(broker, async || {
        for _ in 0..2 {
            broker.kill().await;
            broker.start().await;
        }
    });
    within(400, "the death of a broker", work).await;
}

/// A broker stands still under load, as when a machine swaps.
pub async fn what_was_accepted_survives_a_broker_that_stands_still(broker: &dyn Broker) {
    let work = casts_survive(broker, async || {
        broker.pause().await;
        tokio::time::sleep(std::time::Duration::from_secs(3)).await;
        broker.go_on().await;
    });
    within(300, "the pause of a broker", work).await;
}

/// What was accepted while nobody served waits through the death of the broker.
pub async fn what_waits_survives_the_death_of_the_broker(broker: &dyn Broker) {
    let work = async {
        let service = Service::new("waits");
        let first = service.instance(broker, diligent).await;
        first.serving.stop().await;
        drop(first.messenger);
        let client = asking(broker).await;
        for number in 0..100 {
            service.proxy(&client).later(number).await.unwrap();
        }
        drop(client);
        broker.kill().await;
        broker.start().await;
        let _second = service.instance(broker, diligent).await;
        let done = service.tally.until("what waited", |done| done.effects.len() == 100).await;
        assert_each_once(&done, 0..100);
    };
    within(300, "waiting through the death of a broker", work).await;
}

/// A broker that has lost all its data is used again, by those who were connected before, and by those who come.
pub async fn a_broker_that_has_lost_its_data_is_used_again(broker: &dyn Broker) {
    let work = async {
        let service = Service::new("wiped");
        let _instance = service.instance(broker, diligent).await;
        let client = asking(broker).await;
        service.proxy(&client).later(0).await.unwrap();
        service.tally.until("the first one", |done| done.effects.len() == 1).await;
        broker.kill().await;
        broker.wipe().await;
        broker.start().await;
        for client in [client, asking(broker).await] {
            let proxy = service.proxy(&client).doing(client.new_operation());
            while let Err(error) = proxy.later(1).await {
                assert!(error.is_retryable(), "{error}");
            }
        }
        service.tally.until("those after the loss", |done| done.order.len() >= 3).await;
    };
    within(60, "the loss of a broker's data", work).await;
}
