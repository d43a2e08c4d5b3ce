//! Message calls between programs: call, cast, event and multi, over any of several transports.
//!
//! It knows how a request finds one or all of a service, how often it is tried, by when it must be answered, and how it has
//! its effect once. It does not know files, commits or what any request means. Only this room names a broker.
//!
//! Reading order: [`calls`], [`interface`](mod@interface), [`envelope`], [`transport`], [`messenger`], [`results`], then a
//! transport: [`in_process`], `amqp`, `nats`, `websocket`.

#[cfg(feature = "amqp")]
pub mod amqp;
pub mod body;
pub mod calls;
#[cfg(feature = "testing")]
pub mod conformance;
pub mod envelope;
pub mod error;
pub mod in_process;
pub mod interface;
pub mod messenger;
pub mod names;
#[cfg(feature = "nats")]
pub mod nats;
mod pauses;
pub mod results;
pub mod transport;
#[cfg(feature = "websocket")]
pub mod websocket;

pub use body::Encoding;
pub use calls::{Answer, CallOptions, Calls, CastOptions, Gathered, MultiOptions, Request};
pub use error::{Fault, FaultKind, MessagingError};
pub use in_process::InProcessTransport;
pub use interface::{Arguments, Context, Handler};
pub use messenger::{Messenger, MessengerOptions, ServeOptions, Serving};
pub use names::{InstanceId, Name, OperationId};
pub use results::{RememberedResults, ResultStore};
pub use transport::Transport;

/// What generated code names.
#[doc(hidden)]
pub mod generated {
    pub use async_trait::async_trait;
    pub use bytes::Bytes;
    pub use serde::Serialize;
}
