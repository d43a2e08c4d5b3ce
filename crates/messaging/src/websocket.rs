//! The transport of devices: the four calls over one WebSocket.
//!
//! *Participants*: a device with a [`WebSocketTransport`]; a [`Gateway`] at a server's door, which passes on what a device
//! may send and sends what it may hear, over a transport of its own. *Goals*: one connection however much is asked; a short interruption loses no
//! event; a connection on which nothing happens costs next to nothing. *Non-goals*: serving from a device, which is asked by an event; TLS, which
//! belongs to the server's door. *Invariants*: the gateway believes no reply address, no deadline and no kind that a device writes; what waits for a
//! device is bounded, and events wait in one place for all of them.

pub mod device;
mod frames;
pub mod gateway;
mod ring;

pub use device::{WebSocketOptions, WebSocketTransport};
pub use gateway::{Gateway, Guard};
