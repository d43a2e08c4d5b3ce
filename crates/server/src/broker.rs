//! Where servers that share a database meet: a message broker.

use std::fmt;
use std::sync::Arc;

#[cfg(feature = "amqp")]
use messaging::amqp::{AmqpOptions, AmqpTransport};
#[cfg(feature = "nats")]
use messaging::nats::{NatsOptions, NatsTransport};
use messaging::{InProcessTransport, Transport};
use model::Random;

use crate::error::{Result, ServerError};
use crate::loopback::is_loopback;

/// What stands at the end of an address in a network, to do without TLS there.
const WITHOUT_TLS: &str = "?sslmode=disable";

/// Which broker.
#[derive(Clone)]
pub enum Broker {
    /// The memory of this program, for several servers in it.
    Memory(InProcessTransport),
    /// RabbitMQ, or another one that speaks AMQP 0-9-1.
    #[cfg(feature = "amqp")]
    Amqp(AmqpOptions),
    /// NATS with JetStream.
    #[cfg(feature = "nats")]
    Nats(NatsOptions),
}

impl fmt::Debug for Broker {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::Memory(_) => "Memory",
            #[cfg(feature = "amqp")]
            Self::Amqp(_) => "Amqp(..)",
            #[cfg(feature = "nats")]
            Self::Nats(_) => "Nats(..)",
        })
    }
}

/// An address in its parts.
struct Address<'a> {
    user: Option<&'a str>,
    /// The address without user and without our own ending.
    url: String,
}

impl Broker {
    /// Reads an address, `amqp://USER@HOST:PORT/VHOST` or `nats://USER@HOST:PORT`, and takes the password that belongs to it. With
    /// `amqps:` and `tls:` TLS is spoken, to whom the system trusts.
    ///
    /// # Errors
    /// [`ServerError::Invalid`] for what is none, for one with a password in it, and for one in a network without TLS: whoever does
    /// without says `?sslmode=disable`.
    pub fn from_url(url: &str, password: Option<&str>) -> Result<Self> {
        match url.split_once("://") {
            Some(("amqp" | "amqps", _)) => Self::amqp(&address(url)?, password),
            Some(("nats" | "tls", _)) => Self::nats(&address(url)?, password),
            _ => Err(invalid("it begins with amqp://, amqps://, nats:// or tls://")),
        }
    }

    #[cfg(feature = "amqp")]
    fn amqp(address: &Address<'_>, password: Option<&str>) -> Result<Self> {
        // What RabbitMQ lets in from its own machine after an installation.
        let (user, password) = match (address.user, password) {
            (None, None) => ("guest", "guest"),
            (user, password) => (user.unwrap_or("guest"), password.unwrap_or_default()),
        };
        Ok(Self::Amqp(AmqpOptions::new(&address.url, user, password)))
    }

    #[cfg(not(feature = "amqp"))]
    fn amqp(_address: &Address<'_>, _password: Option<&str>) -> Result<Self> {
        Err(invalid("this program was built without AMQP"))
    }

    #[cfg(feature = "nats")]
    fn nats(address: &Address<'_>, password: Option<&str>) -> Result<Self> {
        let mut options = NatsOptions::new(&address.url);
        options.credentials = match (address.user, password) {
            (None, None) => None,
            (Some(user), Some(password)) => Some((user.to_owned(), password.to_owned())),
            _ => return Err(invalid("a user and a password belong together")),
        };
        Ok(Self::Nats(options))
    }

    #[cfg(not(feature = "nats"))]
    fn nats(_address: &Address<'_>, _password: Option<&str>) -> Result<Self> {
        Err(invalid("this program was built without NATS"))
    }

    /// Begins to connect, inside of a Tokio runtime; a broker that is away is waited for.
    ///
    /// # Errors
    /// [`ServerError::Invalid`] for an address that the driver does not take.
    pub async fn connect(&self, random: Arc<dyn Random>) -> Result<Arc<dyn Transport>> {
        #[cfg(any(feature = "amqp", feature = "nats"))]
        let refused = |error: messaging::MessagingError| invalid(&error.to_string());
        Ok(match self {
            Self::Memory(transport) => Arc::new(transport.clone()),
            #[cfg(feature = "amqp")]
            Self::Amqp(options) => {
                Arc::new(AmqpTransport::new(options.clone(), random).map_err(refused)?)
            }
            #[cfg(feature = "nats")]
            Self::Nats(options) => {
                Arc::new(NatsTransport::new(options.clone(), random).await.map_err(refused)?)
            }
        })
    }
}

fn address(url: &str) -> Result<Address<'_>> {
    let (plain, is_open) = match url.strip_suffix(WITHOUT_TLS) {
        Some(plain) => (plain, true),
        None => (url, false),
    };
    let (scheme, rest) = plain.split_once("://").unwrap_or(("", plain));
    let (user, place) = match rest.split_once('@') {
        Some((user, place)) => (Some(user), place),
        None => (None, rest),
    };
    if user.is_some_and(|user| user.contains(':')) {
        return Err(invalid("a password in it could be read by everybody on this computer"));
    }
    let host = place.split('/').next().unwrap_or_default();
    let name = host.rsplit_once(':').map_or(host, |(name, _)| name);
    let name = name.trim_start_matches('[').trim_end_matches(']');
    if name.is_empty() {
        return Err(invalid("it names no host"));
    }
    let is_here = is_loopback(name);
    let wants_tls = matches!(scheme, "amqps" | "tls");
    if wants_tls && is_open {
        return Err(invalid(&format!("it asks for TLS, and {WITHOUT_TLS} for none")));
    }
    if !is_here && !is_open && !wants_tls {
        return Err(invalid(&format!(
            "it lies in a network; amqps:// or tls:// wants TLS, {WITHOUT_TLS} at its end does without"
        )));
    }
    Ok(Address { user, url: format!("{scheme}://{place}") })
}

fn invalid(reason: &str) -> ServerError {
    ServerError::Invalid { what: "the address of the broker", reason: reason.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_without_secrets_are_taken_from_here_and_where_it_is_said_how() {
        for url in [
            "amqp://127.0.0.1:5672/%2f",
            "amqp://syncline@localhost",
            "amqp://syncline@[::1]:5672/%2f",
            "amqp://syncline@broker.example.org/%2f?sslmode=disable",
            "amqps://syncline@broker.example.org/%2f",
            "tls://broker.example.org:4222",
            "nats://localhost:4222",
            "nats://syncline@10.0.0.7:4222?sslmode=disable",
        ] {
            let password = url.contains('@').then_some("a secret");
            let broker = Broker::from_url(url, password).unwrap();
            assert!(!format!("{broker:?}").contains("secret"));
        }
    }

    #[test]
    fn user_and_ending_are_no_part_of_what_the_driver_gets() {
        let url = "amqp://syncline@broker.example.org/%2f?sslmode=disable";
        let Broker::Amqp(options) = Broker::from_url(url, Some("a secret")).unwrap() else {
            panic!("another broker")
        };
        assert_eq!((&*options.url, &*options.user), ("amqp://broker.example.org/%2f", "syncline"));
        assert_eq!(options.password, "a secret");
    }

    #[test]
    fn others_are_refused_with_the_reason() {
        for (url, reason) in [
            ("kafka://localhost", "amqp://"),
            ("broker", "amqp://"),
            ("amqps://localhost?sslmode=disable", "for none"),
            ("amqp://a:secret@localhost", "password"),
            ("nats://a:secret@localhost", "password"),
            ("amqp://", "host"),
            ("nats://:4222", "host"),
            ("amqp://broker.example.org", "sslmode=disable"),
            ("nats://10.0.0.7", "sslmode=disable"),
            ("nats://somebody@localhost", "belong together"),
        ] {
            let refused = Broker::from_url(url, None).unwrap_err().to_string();
            assert!(refused.contains(reason) && !refused.contains("secret"), "{url}: {refused}");
        }
    }
}
