//! One asks, all answer.

use std::collections::BTreeSet;
use std::time::Duration;

use super::Fixture;
use super::world::{Deed, Instance, Service, asking, diligent};
use crate::error::{Fault, FaultKind};

async fn instances(
    service: &Service,
    fixture: &dyn Fixture,
    count: u64,
    deed: fn(u64) -> Deed,
) -> Vec<Instance> {
    let mut instances = Vec::new();
    for number in 0..count {
        instances.push(service.numbered(fixture, number, deed, service.options()).await);
    }
    instances
}

pub(super) async fn all_instances_answer(fixture: &dyn Fixture) {
    let service = Service::new("all");
    let instances = instances(&service, fixture, 3, |number| match number {
        1 => Deed::Fail(Fault::service("shy", "not me")),
        _ => Deed::Do,
    })
    .await;
    let client = asking(fixture).await;
    let gathered = service.proxy(&client).who().await.unwrap();
    let ids: BTreeSet<_> = gathered.iter().map(|one| one.instance).collect();
    assert_eq!(ids, instances.iter().map(|one| one.messenger.instance()).collect());
    let answers: BTreeSet<_> =
        gathered.iter().filter_map(|one| one.answer.as_ref().ok().copied()).collect();
    assert_eq!(answers, BTreeSet::from([0, 2]));
    let faults: Vec<_> = gathered.iter().filter_map(|one| one.answer.as_ref().err()).collect();
    assert!(matches!(faults[..], [Fault { kind: FaultKind::Service, .. }]));
}

pub(super) async fn gathering_stops_at_enough_answers_without_waiting_for_the_time(
    fixture: &dyn Fixture,
) {
    let service = Service::new("enough");
    let _instances = instances(&service, fixture, 3, diligent).await;
    let client = asking(fixture).await;
    let start = tokio::time::Instant::now();
    let gathered = service.proxy(&client).any_two().await.unwrap();
    assert_eq!(gathered.len(), 2);
    assert!(start.elapsed() < Duration::from_secs(30), "it waited for the whole time");
}

pub(super) async fn a_silent_instance_costs_its_answer_only(fixture: &dyn Fixture) {
    let service = Service::new("silent");
    let _instances = instances(&service, fixture, 3, |number| match number {
        1 => Deed::Hang,
        _ => Deed::Do,
    })
    .await;
    let client = asking(fixture).await;
    let gathered = service.proxy(&client).who().await.unwrap();
    let answers: BTreeSet<_> = gathered.iter().filter_map(|one| one.answer.clone().ok()).collect();
    assert_eq!(answers, BTreeSet::from([0, 2]));
}

pub(super) async fn answers_that_come_at_one_moment_are_all_gathered(fixture: &dyn Fixture) {
    let service = Service::new("moment");
    let _instances = instances(&service, fixture, 8, diligent).await;
    let client = asking(fixture).await;
    let questions = (0..20).map(|number| {
        let proxy = service.proxy(&client);
        tokio::spawn(async move { (number, proxy.all_eight(number).await) })
    });
    for question in questions.collect::<Vec<_>>() {
        let (number, gathered) = question.await.unwrap();
        let answers: BTreeSet<u64> =
            gathered.unwrap().into_iter().map(|one| one.answer.unwrap()).collect();
        assert_eq!(answers, (0..8).map(|instance| number * 100 + instance).collect());
    }
}
