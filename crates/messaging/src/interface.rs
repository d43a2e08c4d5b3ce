//! Interfaces: declared once, as a trait, from which proxy and dispatcher are made.

use async_trait::async_trait;
use bytes::Bytes;
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::body::Encoding;
use crate::error::{Fault, FaultKind};
use crate::names::{InstanceId, Name, OperationId};

/// What a method knows of the request that it answers.
#[derive(Debug, Clone)]
pub struct Context {
    /// The id that all attempts of this request share.
    pub operation: OperationId,
    /// How often it was sent or delivered before, plus one.
    pub attempt: u32,
    /// Who asks. Anybody can write anything here: it is for logs, not for rights.
    pub sender: InstanceId,
    /// The service or topic that was asked.
    pub target: Name,
    /// When the answer is of no use any more, in milliseconds since 1970.
    pub deadline_ms: Option<u64>,
}

/// Arguments as they came.
#[derive(Debug, Clone)]
pub struct Arguments {
    /// How they are written; the result is to be written in the same way.
    pub encoding: Encoding,
    /// The bytes.
    pub bytes: Bytes,
}

impl Arguments {
    /// Reads them.
    ///
    /// # Errors
    /// A [`Fault`] of kind [`FaultKind::InvalidRequest`].
    pub fn decode<T: DeserializeOwned>(&self) -> Result<T, Fault> {
        self.encoding
            .decode("arguments", &self.bytes)
            .map_err(|error| Fault::new(FaultKind::InvalidRequest, error.to_string()))
    }

    /// Writes a result.
    ///
    /// # Errors
    /// A [`Fault`], if the encoding has no such value.
    pub fn encode_result<T: Serialize>(&self, result: &T) -> Result<Bytes, Fault> {
        self.encoding
            .encode("a result", result)
            .map_err(|error| Fault::service("unencodable", error.to_string()))
    }
}

/// What answers requests; dispatchers implement it.
#[async_trait]
pub trait Handler: Send + Sync {
    /// Returns the version of the interface.
    fn version(&self) -> u16;

    /// Does what is asked.
    async fn handle(
        &self,
        context: &Context,
        method: &str,
        arguments: Arguments,
    ) -> Result<Bytes, Fault>;

    /// Hears that events of a topic may have been missed.
    async fn missed(&self, _topic: &Name) {}
}

/// Declares an interface: a trait, a proxy that calls it and a dispatcher that answers.
///
/// Each method has one of the four calls as its last attribute, with the fields of its options that differ from the
/// usual: `#[call(timeout_ms = 500, retries = 3)]` ([`CallOptions`](crate::CallOptions)), `#[cast(expires_ms = 60_000)]`
/// ([`CastOptions`](crate::CastOptions)), `#[multi(answers_max = 3)]` ([`MultiOptions`](crate::MultiOptions)), `#[event]`.
///
/// Who implements the trait gets a [`Context`] before the arguments, and returns a `Result` with a [`Fault`]:
///
/// ```
/// use messaging::{Context, Fault};
///
/// messaging::interface! {
///     /// Adds numbers.
///     #[interface(name = "adder", version = 1, proxy = AdderProxy, dispatcher = AdderDispatcher)]
///     pub trait Adder {
///         /// Adds two.
///         #[call(timeout_ms = 500, retries = 3)]
///         async fn add(&self, left: u32, right: u32) -> u32;
///     }
/// }
///
/// struct Careful;
///
/// impl Adder for Careful {
///     async fn add(&self, _context: &Context, left: u32, right: u32) -> Result<u32, Fault> {
///         left.checked_add(right).ok_or_else(|| Fault::service("overflow", "too large"))
///     }
/// }
/// ```
#[macro_export]
macro_rules! interface {
    (
        $(#[doc = $doc:literal])*
        #[interface(
            name = $name:literal,
            version = $version:literal,
            proxy = $proxy:ident,
            dispatcher = $dispatcher:ident $(,)?
        )]
        $visibility:vis trait $interface:ident {
            $(
                $(#[$word:ident $($attribute:tt)*])+
                async fn $method:ident(&self $(, $argument:ident: $type:ty)* $(,)?)
                    $(-> $answer:ty)?;
            )*
        }
    ) => {
        $(#[doc = $doc])*
        $visibility trait $interface: Send + Sync + 'static {
            $(
                $crate::interface_method! {
                    {} [$(#[$word $($attribute)*])+]
                    fn $method(
                        &self,
                        context: &$crate::Context
                        $(, $argument: $type)*
                    ) -> impl Future<
                        Output = Result<$crate::interface_answer!($($answer)?), $crate::Fault>,
                    > + Send;
                }
            )*

            /// Hears that events of a topic may have been missed.
            fn missed(&self, _topic: &$crate::Name) -> impl Future<Output = ()> + Send {
                async {}
            }
        }

        #[doc = concat!("Calls [`", stringify!($interface), "`].")]
        #[derive(Clone)]
        $visibility struct $proxy {
            calls: std::sync::Arc<dyn $crate::Calls>,
            target: $crate::Name,
            operation: Option<$crate::OperationId>,
        }

        #[allow(dead_code, reason = "not every crate uses all of a proxy")]
        impl $proxy {
            /// The name of the service that has the interface unless another is named.
            $visibility const NAME: &'static str = $name;

            /// Makes a proxy for the service of the interface's name.
            $visibility fn new(calls: std::sync::Arc<dyn $crate::Calls>) -> Self {
                let target = $crate::Name::new(Self::NAME).expect("interfaces have valid names");
                Self::at(calls, target)
            }

            /// Makes a proxy for a service or topic.
            $visibility fn at(
                calls: std::sync::Arc<dyn $crate::Calls>,
                target: $crate::Name,
            ) -> Self {
                Self { calls, target, operation: None }
            }

            /// Returns a proxy whose requests are all this one operation, done once however often they are sent.
            $visibility fn doing(&self, operation: $crate::OperationId) -> Self {
                Self { operation: Some(operation), ..self.clone() }
            }

            fn request<T: $crate::generated::Serialize>(
                &self,
                method: &'static str,
                arguments: &T,
            ) -> Result<$crate::Request, $crate::MessagingError> {
                Ok($crate::Request {
                    target: self.target.clone(),
                    method,
                    interface_version: $version,
                    operation: self.operation,
                    arguments: self.calls.encoding().encode("arguments", arguments)?,
                })
            }

            $(
                $crate::interface_proxy! {
                    {} [$(#[$word $($attribute)*])+]
                    $visibility $method($($argument: $type),*)
                    ($crate::interface_answer!($($answer)?))
                }
            )*
        }

        #[doc = concat!("Answers requests with a [`", stringify!($interface), "`].")]
        $visibility struct $dispatcher<T>(pub T);

        #[$crate::generated::async_trait]
        impl<T: $interface> $crate::Handler for $dispatcher<T> {
            fn version(&self) -> u16 {
                $version
            }

            async fn handle(
                &self,
                context: &$crate::Context,
                method: &str,
                arguments: $crate::Arguments,
            ) -> Result<$crate::generated::Bytes, $crate::Fault> {
                $(
                    if method == stringify!($method) {
                        let ($($argument,)*): ($($type,)*) =
                            $crate::interface_arguments!(arguments $(, $argument)*);
                        let result = self.0.$method(context $(, $argument)*).await?;
                        return arguments.encode_result(&result);
                    }
                )*
                Err($crate::Fault::new(
                    $crate::FaultKind::UnknownMethod,
                    format!("{} has no method '{}'", $name, method.escape_debug()),
                ))
            }

            async fn missed(&self, topic: &$crate::Name) {
                self.0.missed(topic).await;
            }
        }
    };
}

/// The type of an answer, nothing where none is written.
#[doc(hidden)]
#[macro_export]
macro_rules! interface_answer {
    () => {
        ()
    };
    ($answer:ty) => {
        $answer
    };
}

/// Reads arguments; JSON and MessagePack have no empty tuple that both write as a list.
#[doc(hidden)]
#[macro_export]
macro_rules! interface_arguments {
    ($arguments:ident) => {{
        let _none: [u8; 0] = $arguments.decode()?;
    }};
    ($arguments:ident $(, $argument:ident)+) => {
        $arguments.decode()?
    };
}

/// Writes one method of the trait: with its documentation, without what kind of call it is.
#[doc(hidden)]
#[macro_export]
macro_rules! interface_method {
    ({$($docs:tt)*} [#[doc $($doc:tt)*] $($rest:tt)*] $($method:tt)*) => {
        $crate::interface_method! { {$($docs)* #[doc $($doc)*]} [$($rest)*] $($method)* }
    };
    ({$($docs:tt)*} [#[$kind:ident $($options:tt)*]] $($method:tt)*) => {
        $($docs)*
        $($method)*
    };
}

/// The arguments of a request as a list.
#[doc(hidden)]
#[macro_export]
macro_rules! interface_tuple {
    () => { [0_u8; 0] };
    ($($argument:ident),+) => { ($(&$argument,)+) };
}

/// Writes one method of a proxy.
#[doc(hidden)]
#[macro_export]
macro_rules! interface_proxy {
    ({$($docs:tt)*} [#[doc $($doc:tt)*] $($rest:tt)*] $($method:tt)*) => {
        $crate::interface_proxy! { {$($docs)* #[doc $($doc)*]} [$($rest)*] $($method)* }
    };
    (
        {$($docs:tt)*} [#[call $(($($option:ident = $value:expr),* $(,)?))?]]
        $visibility:vis $method:ident($($argument:ident: $type:ty),*) ($answer:ty)
    ) => {
        $($docs)*
        $visibility async fn $method(
            &self
            $(, $argument: $type)*
        ) -> Result<$answer, $crate::MessagingError> {
            let options = $crate::CallOptions::DEFAULT$($(.$option($value))*)?;
            let arguments = $crate::interface_tuple!($($argument),*);
            let request = self.request(stringify!($method), &arguments)?;
            self.calls.call(request, &options).await?.decode()
        }
    };
    (
        {$($docs:tt)*} [#[cast $(($($option:ident = $value:expr),* $(,)?))?]]
        $visibility:vis $method:ident($($argument:ident: $type:ty),*) ($answer:ty)
    ) => {
        $($docs)*
        $visibility async fn $method(
            &self
            $(, $argument: $type)*
        ) -> Result<(), $crate::MessagingError> {
            let options = $crate::CastOptions::DEFAULT$($(.$option($value))*)?;
            let arguments = $crate::interface_tuple!($($argument),*);
            let request = self.request(stringify!($method), &arguments)?;
            self.calls.cast(request, &options).await
        }
    };
    (
        {$($docs:tt)*} [#[event]]
        $visibility:vis $method:ident($($argument:ident: $type:ty),*) ($answer:ty)
    ) => {
        $($docs)*
        $visibility async fn $method(
            &self
            $(, $argument: $type)*
        ) -> Result<(), $crate::MessagingError> {
            let arguments = $crate::interface_tuple!($($argument),*);
            let request = self.request(stringify!($method), &arguments)?;
            self.calls.event(request).await
        }
    };
    (
        {$($docs:tt)*} [#[multi $(($($option:ident = $value:expr),* $(,)?))?]]
        $visibility:vis $method:ident($($argument:ident: $type:ty),*) ($answer:ty)
    ) => {
        $($docs)*
        $visibility async fn $method(
            &self
            $(, $argument: $type)*
        ) -> Result<Vec<$crate::Gathered<$answer>>, $crate::MessagingError> {
            let options = $crate::MultiOptions::DEFAULT$($(.$option($value))*)?;
            let arguments = $crate::interface_tuple!($($argument),*);
            let request = self.request(stringify!($method), &arguments)?;
            let gathered = self.calls.multi(request, &options).await?;
            gathered.into_iter().map($crate::Gathered::decode).collect()
        }
    };
}
