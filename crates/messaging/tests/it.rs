//! The room of message calls from outside: its transports without a broker.

#[path = "it/in_process.rs"]
mod in_process;
