//! What every transport must pass, with real messengers on both ends.
//!
//! Each case takes services and topics of its own, so that many can run against one broker. [`harsh`] holds what needs a
//! broker that can be killed.

#![expect(clippy::unwrap_used, reason = "a conformance suite fails as a test does")]

mod calls;
mod casts;
mod disorder;
mod events;
pub mod harsh;
mod multis;
pub mod world;

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use async_trait::async_trait;

use crate::transport::Transport;

/// How many messages may wait for a service in every transport of a fixture.
pub const WAITING_MAX: usize = 200;

/// Gives connections of one kind to one place.
#[async_trait]
pub trait Fixture: Send + Sync {
    /// Makes a connection for those who ask.
    async fn client(&self) -> Arc<dyn Transport>;

    /// Makes a connection for those who serve; at most [`WAITING_MAX`] messages wait for each service.
    async fn server(&self) -> Arc<dyn Transport>;
}

/// The run of a case.
pub type Run<'fixture> = Pin<Box<dyn Future<Output = ()> + Send + 'fixture>>;

/// One claim.
pub struct Case {
    /// The claim.
    pub name: &'static str,
    run: fn(&dyn Fixture) -> Run<'_>,
}

macro_rules! cases {
    ($($module:ident::$name:ident),* $(,)?) => {
        vec![$(Case { name: stringify!($name), run: |fixture| Box::pin($module::$name(fixture)) }),*]
    };
}

/// Returns all cases.
pub fn cases() -> Vec<Case> {
    cases![
        calls::a_call_is_answered_in_both_encodings_small_and_large,
        calls::faults_travel_with_their_kind_and_code,
        calls::a_service_that_nobody_serves_is_an_error_and_not_a_silence,
        calls::a_call_without_an_answer_ends_in_time_and_all_attempts_are_one_operation,
        calls::a_lost_answer_is_asked_for_again_and_the_effect_is_one,
        calls::no_more_is_under_way_than_was_allowed,
        casts::each_cast_is_done_by_one_of_the_group,
        casts::a_cast_waits_for_an_instance_that_comes_later,
        casts::an_instance_that_dies_before_it_acknowledges_leaves_one_effect,
        casts::a_poisonous_message_goes_to_the_dead_letters_and_blocks_nobody,
        casts::what_cannot_be_read_goes_to_the_dead_letters,
        casts::a_cast_whose_deadline_has_passed_is_not_begun,
        casts::a_full_queue_is_an_error_and_drains_again,
        casts::an_instance_that_stops_finishes_what_it_began,
        casts::what_waits_for_a_service_is_counted,
        events::an_event_reaches_all_who_listen_in_order,
        events::events_that_one_sender_tells_at_once_are_all_heard,
        events::a_slow_listener_loses_the_oldest_and_hears_of_it,
        events::an_event_for_nobody_is_no_error,
        multis::all_instances_answer,
        multis::gathering_stops_at_enough_answers_without_waiting_for_the_time,
        multis::a_silent_instance_costs_its_answer_only,
        multis::answers_that_come_at_one_moment_are_all_gathered,
        disorder::duplicates_and_disorder_have_one_effect,
    ]
}

/// Runs these cases one after the other, and says at which it fails.
pub async fn run_cases(cases: &[Case], fixture: &dyn Fixture) {
    for case in cases {
        world::within(180, case.name, (case.run)(fixture)).await;
    }
}

/// Runs everything.
pub async fn run_all(fixture: &dyn Fixture) {
    run_cases(&cases(), fixture).await;
}
