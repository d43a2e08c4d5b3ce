//! A connection as a browser keeps it open: HTTP/1.1, one request after the other. It costs the generator less than a library that can do
//! everything, and thousands of them are open.

use std::io::{self, ErrorKind};
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpSocket, TcpStream};

use crate::traffic::{Metered, Traffic};

/// Over how many addresses of this machine connections are spread: each has ports for some 28,000.
const SOURCES: usize = 16;

/// How long an answer may be, in bytes: longer ones are none of ours.
const ANSWER_LENGTH_MAX: usize = 64 * 1024 * 1024;

/// What a server said.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Answer {
    /// The status.
    pub status: u16,
    /// Which version it speaks of.
    pub etag: Option<String>,
    /// The body.
    pub body: Vec<u8>,
}

/// A connection to one server; it is opened when it is needed, and again where the server has closed it meanwhile.
#[derive(Debug)]
pub struct Connection {
    server: SocketAddr,
    source: Ipv4Addr,
    traffic: Arc<Traffic>,
    stream: Option<Metered>,
}

impl Connection {
    /// Prepares the connection of a client; what it moves is counted.
    pub fn new(server: SocketAddr, client: usize, traffic: Arc<Traffic>) -> Self {
        let source = Ipv4Addr::new(127, 0, 0, 2 + (client % SOURCES) as u8);
        Self { server, source, traffic, stream: None }
    }

    /// Connects, where it is not.
    ///
    /// # Errors
    /// Where the server does not listen, or no port is free.
    pub async fn open(&mut self) -> io::Result<()> {
        if self.stream.is_none() {
            let socket = TcpSocket::new_v4()?;
            socket.bind(SocketAddr::from((self.source, 0)))?;
            let stream: TcpStream = socket.connect(self.server).await?;
            stream.set_nodelay(true)?;
            self.stream = Some(Metered::new(stream, Arc::clone(&self.traffic)));
        }
        Ok(())
    }

    /// Sends a request and waits for the whole answer. A connection on which nothing came was closed before the request, and it is sent again.
    ///
    /// # Errors
    /// Where the connection breaks, or what comes is no answer.
    pub async fn ask(&mut self, head: &str, body: &[u8]) -> io::Result<Answer> {
        let was_open = self.stream.is_some();
        match self.try_ask(head, body).await {
            Err(error) if was_open && is_gone(&error) => self.try_ask(head, body).await,
            answer => answer,
        }
    }

    async fn try_ask(&mut self, head: &str, body: &[u8]) -> io::Result<Answer> {
        self.open().await?;
        let asked = match self.stream.as_mut() {
            Some(stream) => exchange(stream, head, body).await,
            None => Err(ErrorKind::NotConnected.into()),
        };
        if !matches!(asked, Ok((_, true))) {
            self.stream = None;
        }
        asked.map(|(answer, _)| answer)
    }
}

fn is_gone(error: &io::Error) -> bool {
    use ErrorKind::{BrokenPipe, ConnectionAborted, ConnectionReset, NotConnected};
    [BrokenPipe, ConnectionAborted, ConnectionReset, NotConnected].contains(&error.kind())
}

/// Returns the answer, and whether the connection stays.
async fn exchange(stream: &mut Metered, head: &str, body: &[u8]) -> io::Result<(Answer, bool)> {
    let mut request = Vec::with_capacity(head.len() + body.len());
    request.extend_from_slice(head.as_bytes());
    request.extend_from_slice(body);
    stream.write_all(&request).await?;
    let mut got = Vec::with_capacity(1024);
    let head_end = loop {
        if stream.read_buf(&mut got).await? == 0 {
            // Before the first byte it is an end between two requests.
            let kind =
                if got.is_empty() { ErrorKind::NotConnected } else { ErrorKind::UnexpectedEof };
            return Err(kind.into());
        }
        if let Some(end) = got.windows(4).position(|four| four == b"\r\n\r\n") {
            break end + 4;
        }
    };
    let said = Head::read(&got[..head_end])?;
    let mut rest = got.split_off(head_end);
    let body = match said.length {
        Some(length) => {
            while rest.len() < length {
                more(stream, &mut rest).await?;
            }
            rest.truncate(length);
            rest
        }
        None => loop {
            if let Some(body) = joined(&rest)? {
                break body;
            }
            more(stream, &mut rest).await?;
        },
    };
    Ok((Answer { status: said.status, etag: said.etag, body }, said.stays))
}

async fn more(stream: &mut Metered, bytes: &mut Vec<u8>) -> io::Result<()> {
    if bytes.len() > ANSWER_LENGTH_MAX {
        return Err(ErrorKind::InvalidData.into());
    }
    if stream.read_buf(bytes).await? == 0 { Err(ErrorKind::UnexpectedEof.into()) } else { Ok(()) }
}

/// What stands before a body.
#[derive(Debug, PartialEq, Eq)]
struct Head {
    status: u16,
    etag: Option<String>,
    /// Bytes of the body; nothing where it comes in parts.
    length: Option<usize>,
    stays: bool,
}

impl Head {
    fn read(bytes: &[u8]) -> io::Result<Self> {
        let text = std::str::from_utf8(bytes).map_err(|_| ErrorKind::InvalidData)?;
        let mut lines = text.split("\r\n");
        let first = lines.next().unwrap_or_default();
        let status = first.strip_prefix("HTTP/1.1 ").and_then(|rest| rest.get(..3)?.parse().ok());
        let status = status.ok_or(ErrorKind::InvalidData)?;
        let mut head = Self { status, etag: None, length: Some(0), stays: true };
        for (name, value) in lines.filter_map(|line| line.split_once(':')) {
            let value = value.trim();
            match name.to_ascii_lowercase().as_str() {
                "etag" => head.etag = Some(value.to_owned()),
                "content-length" => {
                    head.length = Some(value.parse().map_err(|_| ErrorKind::InvalidData)?);
                }
                "transfer-encoding" => head.length = None,
                "connection" => head.stays = !value.eq_ignore_ascii_case("close"),
                _ => {}
            }
        }
        if head.length.is_some_and(|length| length > ANSWER_LENGTH_MAX) {
            return Err(ErrorKind::InvalidData.into());
        }
        Ok(head)
    }
}

/// Puts the parts of a body together (`Transfer-Encoding: chunked`); nothing while they are not all there.
fn joined(mut bytes: &[u8]) -> io::Result<Option<Vec<u8>>> {
    let mut body = Vec::new();
    loop {
        let Some(end) = bytes.windows(2).position(|two| two == b"\r\n") else { return Ok(None) };
        let words = std::str::from_utf8(&bytes[..end]).map_err(|_| ErrorKind::InvalidData)?;
        let digits = words.split(';').next().unwrap_or_default().trim();
        let length = usize::from_str_radix(digits, 16).map_err(|_| ErrorKind::InvalidData)?;
        bytes = &bytes[end + 2..];
        if length > ANSWER_LENGTH_MAX {
            return Err(ErrorKind::InvalidData.into());
        }
        if bytes.len() < length + 2 {
            return Ok(None);
        }
        if length == 0 {
            return Ok(Some(body));
        }
        body.extend_from_slice(&bytes[..length]);
        bytes = &bytes[length + 2..];
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_head_says_status_version_and_length() {
        let read = |text: &str| Head::read(text.as_bytes());
        let head = read("HTTP/1.1 200 OK\r\nETag: \"a-1\"\r\ncontent-length: 12\r\n\r\n").unwrap();
        let etag = Some("\"a-1\"".to_owned());
        assert_eq!(head, Head { status: 200, etag, length: Some(12), stays: true });
        let closed = "HTTP/1.1 503 Service Unavailable\r\nconnection: close\r\n\r\n";
        let head = read(closed).unwrap();
        assert_eq!((head.status, head.length, head.stays), (503, Some(0), false));
        assert!(read("SSH-2.0\r\n\r\n").is_err());
        assert!(read("HTTP/1.1 200 OK\r\ncontent-length: many\r\n\r\n").is_err());
        assert!(read("HTTP/1.1 200 OK\r\ncontent-length: 99999999999\r\n\r\n").is_err());
    }

    #[test]
    fn parts_of_a_body_are_joined_when_all_are_there() {
        let all = b"4\r\nWiki\r\n6;x=y\r\npedia \r\nE\r\nin \r\n\r\nchunks.\r\n0\r\n\r\n";
        for length in 0..all.len() {
            assert_eq!(joined(&all[..length]).unwrap(), None, "{length}");
        }
        assert_eq!(joined(all).unwrap().unwrap(), b"Wikipedia in \r\n\r\nchunks.");
        assert!(joined(b"zz\r\n").is_err());
        assert!(joined(b"ffffffffffffffff\r\n").is_err());
    }
}
