//! The transports over real brokers, each started for these tests alone, with throw-away data on loopback.
//!
//! Nothing here is skipped: where a broker is not installed, these tests fail and say which package has it.

#![expect(clippy::unwrap_used, reason = "helpers of tests fail as the tests themselves do")]
#![expect(clippy::disallowed_methods, reason = "brokers and their files are real here")]

#[path = "brokers/amqp.rs"]
mod amqp;
#[path = "brokers/nats.rs"]
mod nats;
#[path = "brokers/place.rs"]
mod place;
