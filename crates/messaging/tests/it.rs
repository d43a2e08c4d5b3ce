//! The room of message calls from outside: its transports without a broker.

#![expect(clippy::unwrap_used, reason = "helpers of tests fail as the tests themselves do")]

#[path = "it/in_process.rs"]
mod in_process;
#[path = "it/websocket.rs"]
mod websocket;
