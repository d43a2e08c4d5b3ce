//! Ids of operations and instances, and the names of services and topics.

use std::fmt;
use std::sync::Arc;

use model::Random;
use model::environment::random_bytes;

use crate::error::MessagingError;

macro_rules! id_type {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name([u8; 16]);

        impl $name {
            /// Wraps the bytes of an id.
            pub const fn from_bytes(bytes: [u8; 16]) -> Self {
                Self(bytes)
            }

            /// Returns the bytes of the id.
            pub const fn as_bytes(&self) -> &[u8; 16] {
                &self.0
            }

            /// Draws a new id.
            pub fn random(random: &dyn Random) -> Self {
                Self(random_bytes(random))
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.0.iter().try_for_each(|byte| write!(formatter, "{byte:02x}"))
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(formatter, "{}({self})", stringify!($name))
            }
        }
    };
}

id_type! {
    /// What is to be done once, however often it is sent: all attempts of one request share it.
    OperationId
}

id_type! {
    /// One running messenger. A restarted program is another instance.
    InstanceId
}

/// Where an answer goes: to an instance, and there to one of its channels.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct ReplyAddress {
    /// Who waits.
    pub instance: InstanceId,
    /// For a gateway, which of its connections waits; 0 for everybody else.
    pub channel: u64,
}

/// Longest name of a service or topic in bytes. Brokers allow 255 and prefixes come before it.
pub const NAME_LENGTH_MAX: usize = 128;

/// The name of a service of instances or of a topic of events: lower-case letters, digits, `-`, `_`, and dots between.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Name(Arc<str>);

impl Name {
    /// Checks a name.
    ///
    /// # Errors
    /// [`MessagingError::InvalidName`].
    pub fn new(text: &str) -> Result<Self, MessagingError> {
        let is_allowed = |byte: u8| {
            byte.is_ascii_lowercase() || byte.is_ascii_digit() || matches!(byte, b'-' | b'_')
        };
        let is_part = |part: &str| !part.is_empty() && part.bytes().all(is_allowed);
        if text.len() <= NAME_LENGTH_MAX && text.split('.').all(is_part) {
            return Ok(Self(text.into()));
        }
        // No more of it than a reader can bear.
        Err(MessagingError::InvalidName { name: text.chars().take(NAME_LENGTH_MAX).collect() })
    }

    /// Returns the text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Name {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0)
    }
}

impl fmt::Debug for Name {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "Name({self})")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_a_broker_would_read_as_patterns_are_refused() {
        for text in ["", ".", "a.", ".a", "a..b", "a b", "a*", "a.>", "a#", "A", "é", "a/b", "a\n"]
        {
            assert!(Name::new(text).is_err(), "{text:?}");
        }
        assert!(Name::new(&"a".repeat(NAME_LENGTH_MAX + 1)).is_err());
        for text in ["a", "sync-service", "workspace.0f3a_2", &"a".repeat(NAME_LENGTH_MAX)] {
            assert_eq!(Name::new(text).unwrap().as_str(), text);
        }
    }
}
