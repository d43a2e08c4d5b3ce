//! The four calls: the trait that proxies are generated for.

use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use serde::de::DeserializeOwned;

use crate::body::Encoding;
use crate::error::{Fault, MessagingError};
use crate::names::{InstanceId, Name, OperationId};

/// What is asked.
#[derive(Debug, Clone)]
pub struct Request {
    /// The service or topic.
    pub target: Name,
    /// The method, or the name of the event.
    pub method: &'static str,
    /// The version of the interface.
    pub interface_version: u16,
    /// The id that makes sending it again harmless; a new one is drawn where there is none.
    pub operation: Option<OperationId>,
    /// The arguments in [`Calls::encoding`].
    pub arguments: Bytes,
}

/// How long a call waits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CallOptions {
    /// How long one attempt waits for its answer.
    pub timeout_ms: u64,
    /// How many attempts may follow the first. All carry the same operation.
    pub retries: u32,
}

impl CallOptions {
    /// What a method without attributes has.
    pub const DEFAULT: Self = Self { timeout_ms: 10_000, retries: 2 };

    /// Returns options with this timeout of an attempt.
    pub const fn timeout_ms(self, timeout_ms: u64) -> Self {
        Self { timeout_ms, ..self }
    }

    /// Returns options with so many retries.
    pub const fn retries(self, retries: u32) -> Self {
        Self { retries, ..self }
    }

    /// Returns the time of all attempts together.
    pub fn total(&self) -> Duration {
        Duration::from_millis(self.timeout_ms).saturating_mul(self.retries.saturating_add(1))
    }
}

/// How a cast is sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CastOptions {
    /// How long the sender tries until the message is safe.
    pub timeout_ms: u64,
    /// After what time the work is of no use any more; 0 for never.
    pub expires_ms: u64,
}

impl CastOptions {
    /// What a method without attributes has.
    pub const DEFAULT: Self = Self { timeout_ms: 10_000, expires_ms: 0 };

    /// Returns options with this patience of the sender.
    pub const fn timeout_ms(self, timeout_ms: u64) -> Self {
        Self { timeout_ms, ..self }
    }

    /// Returns options with this time after which the work is of no use.
    pub const fn expires_ms(self, expires_ms: u64) -> Self {
        Self { expires_ms, ..self }
    }
}

/// How answers of a service are gathered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MultiOptions {
    /// How long answers are waited for.
    pub timeout_ms: u64,
    /// After how many answers nobody waits any more; 0 for no such number.
    pub answers_max: usize,
}

impl MultiOptions {
    /// What a method without attributes has.
    pub const DEFAULT: Self = Self { timeout_ms: 1_000, answers_max: 0 };

    /// Returns options with this time for answers.
    pub const fn timeout_ms(self, timeout_ms: u64) -> Self {
        Self { timeout_ms, ..self }
    }

    /// Returns options with which so many answers are enough.
    pub const fn answers_max(self, answers_max: usize) -> Self {
        Self { answers_max, ..self }
    }
}

/// Bytes that came back, and how to read them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Answer {
    /// How they are written.
    pub encoding: Encoding,
    /// The result.
    pub body: Bytes,
}

impl Answer {
    /// Reads the result.
    ///
    /// # Errors
    /// [`MessagingError::Undecodable`].
    pub fn decode<T: DeserializeOwned>(&self) -> Result<T, MessagingError> {
        self.encoding.decode("an answer", &self.body)
    }
}

/// What one of many answered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Gathered<T> {
    /// Who answered.
    pub instance: InstanceId,
    /// What.
    pub answer: Result<T, Fault>,
}

impl Gathered<Answer> {
    /// Reads the result.
    ///
    /// # Errors
    /// [`MessagingError::Undecodable`].
    pub fn decode<T: DeserializeOwned>(self) -> Result<Gathered<T>, MessagingError> {
        let answer = match self.answer {
            Ok(answer) => Ok(answer.decode()?),
            Err(fault) => Err(fault),
        };
        Ok(Gathered { instance: self.instance, answer })
    }
}

/// The four calls.
#[async_trait]
pub trait Calls: Send + Sync {
    /// Returns how arguments are to be written.
    fn encoding(&self) -> Encoding;

    /// Asks one of a service, and waits for its answer.
    ///
    /// # Errors
    /// [`MessagingError`]. After [`MessagingError::TimedOut`] and [`MessagingError::Unreachable`] it is not known whether it was done.
    async fn call(&self, request: Request, options: &CallOptions)
    -> Result<Answer, MessagingError>;

    /// Gives one of a service something to do. It returns once the message is safe with the transport.
    ///
    /// # Errors
    /// [`MessagingError`]. The message may be there all the same; sending the same operation again is harmless.
    async fn cast(&self, request: Request, options: &CastOptions) -> Result<(), MessagingError>;

    /// Tells all who listen to a topic. It is a hint: who was away learns from the gap that something was missed.
    ///
    /// # Errors
    /// [`MessagingError`].
    async fn event(&self, request: Request) -> Result<(), MessagingError>;

    /// Asks all of a service, and gathers answers until there are enough or the time is over; one from each instance.
    ///
    /// # Errors
    /// [`MessagingError`], if the question could not be sent.
    async fn multi(
        &self,
        request: Request,
        options: &MultiOptions,
    ) -> Result<Vec<Gathered<Answer>>, MessagingError>;
}
