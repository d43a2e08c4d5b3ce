//! A live connection that whoever holds it drives: frames out, frames in, and nothing that happens by itself.
//!
//! [`WebSocketConnection`](super::WebSocketConnection) stands on it and adds what a device wants: answers that find their callers, reconnects, a
//! watch over silence. A program that plays thousands of devices takes the frames alone.

use bytes::Bytes;
use futures_util::SinkExt;
use futures_util::stream::{SplitSink, SplitStream, StreamExt};
use model::wire::{FRAME_LENGTH_MAX, RequestFrame, ServerFrame};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio_tungstenite::tungstenite::client::IntoClientRequest;
use tokio_tungstenite::tungstenite::handshake::client::Request;
use tokio_tungstenite::tungstenite::http::header::AUTHORIZATION;
use tokio_tungstenite::tungstenite::protocol::WebSocketConfig;
use tokio_tungstenite::tungstenite::{Error, Message};
use tokio_tungstenite::{WebSocketStream, client_async_with_config};

use super::{Address, Lost, WebSocketError, WebSocketOptions, refused_handshake};
use crate::commit_log::CommitLogError;
use crate::envelope;

/// Why a live connection cannot be used any more, for people.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct Ended(pub String);

/// The half that sends.
#[derive(Debug)]
pub struct FrameSink<S>(SplitSink<WebSocketStream<S>, Message>);

/// The half that receives.
#[derive(Debug)]
pub struct FrameStream<S>(SplitStream<WebSocketStream<S>>);

/// Returns a request as it is sent; the same bytes may be sent again, over another connection too.
pub fn encode(frame: &RequestFrame) -> Bytes {
    envelope::wrap(frame).into()
}

/// Opens a live connection over a stream that leads to the server. It reads at most `read_buffer_size` bytes at once and
/// keeps that much memory.
///
/// # Errors
/// [`CommitLogError::Refused`] where the server does not know the device, [`CommitLogError::Unreachable`] for all else.
pub async fn open<S: AsyncRead + AsyncWrite + Unpin>(
    stream: S,
    options: &WebSocketOptions,
    read_buffer_size: usize,
) -> Result<(FrameSink<S>, FrameStream<S>), CommitLogError> {
    let invalid = |error: WebSocketError| Lost::Unreachable(error.to_string()).into_error("server");
    let address = Address::new(options).map_err(invalid)?;
    let place = address.describe();
    let request = handshake(&address).map_err(|lost| lost.into_error(&place))?;
    let opened = client_async_with_config(request, stream, Some(config(read_buffer_size))).await;
    let (socket, _) = opened.map_err(|error| lost_in_handshake(error).into_error(&place))?;
    Ok(split(socket))
}

/// Takes the two directions of a socket apart.
pub(super) fn split<S: AsyncRead + AsyncWrite + Unpin>(
    socket: WebSocketStream<S>,
) -> (FrameSink<S>, FrameStream<S>) {
    let (sink, stream) = socket.split();
    (FrameSink(sink), FrameStream(stream))
}

/// Returns the request that asks for a live connection.
pub(super) fn handshake(address: &Address) -> Result<Request, Lost> {
    let unreachable = |error: Error| Lost::Unreachable(error.to_string());
    let mut request = address.url.as_str().into_client_request().map_err(unreachable)?;
    let headers = request.headers_mut();
    headers.insert(AUTHORIZATION, address.authorization.clone());
    headers.insert("syncline-incarnation", address.incarnation.clone());
    Ok(request)
}

/// Returns the limits of a socket.
pub(super) fn config(read_buffer_size: usize) -> WebSocketConfig {
    WebSocketConfig::default()
        .read_buffer_size(read_buffer_size)
        .max_message_size(Some(FRAME_LENGTH_MAX + 1))
        .max_frame_size(Some(FRAME_LENGTH_MAX + 1))
}

/// Turns what ended a handshake into what the callers hear.
pub(super) fn lost_in_handshake(error: Error) -> Lost {
    match error {
        Error::Http(response) => refused_handshake(response.status().as_u16()),
        error => Lost::Unreachable(error.to_string()),
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> FrameSink<S> {
    /// Adds a request to what the next flush sends.
    ///
    /// # Errors
    /// [`Ended`], as for all of this.
    pub async fn feed(&mut self, frame: Bytes) -> Result<(), Ended> {
        self.0.feed(Message::Binary(frame)).await.map_err(ended)
    }

    /// Adds a ping, which the server answers.
    ///
    /// # Errors
    /// [`Ended`].
    pub async fn feed_ping(&mut self) -> Result<(), Ended> {
        self.0.feed(Message::Ping(Bytes::new())).await.map_err(ended)
    }

    /// Sends what was added.
    ///
    /// # Errors
    /// [`Ended`].
    pub async fn flush(&mut self) -> Result<(), Ended> {
        self.0.flush().await.map_err(ended)
    }

    /// Says good-bye.
    ///
    /// # Errors
    /// [`Ended`].
    pub async fn close(&mut self) -> Result<(), Ended> {
        self.0.send(Message::Close(None)).await.map_err(ended)
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> FrameStream<S> {
    /// Waits for what comes next: an answer or an event, or nothing but a sign of life.
    ///
    /// # Errors
    /// [`Ended`], also where the server sends what cannot be read.
    pub async fn next(&mut self) -> Result<Option<ServerFrame>, Ended> {
        let closed = || Ended("the server closed the connection".to_owned());
        match self.0.next().await.ok_or_else(closed)?.map_err(ended)? {
            Message::Binary(bytes) => match envelope::unwrap(&bytes, FRAME_LENGTH_MAX) {
                Ok(frame) => Ok(Some(frame)),
                Err(error) => Err(Ended(format!("it sends what cannot be read: {error}"))),
            },
            Message::Close(Some(close)) => Err(Ended(format!("the server says: {}", close.reason))),
            Message::Close(None) => Err(closed()),
            Message::Text(_) | Message::Ping(_) | Message::Pong(_) | Message::Frame(_) => Ok(None),
        }
    }
}

fn ended(error: Error) -> Ended {
    Ended(error.to_string())
}
