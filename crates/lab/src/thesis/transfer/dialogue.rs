//! How a file goes to a store and back by FTP, by the REST of S3, and as a message in a mailbox: what is said is what the protocols demand, in
//! the order in which clients of 2011 said it, over a connection that is open and signed in.

use std::collections::HashMap;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;

use super::line::{End, Line, Speed};

/// What a store is spoken to by.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Protocol {
    /// A connection of its own for each file.
    Ftp,
    /// A message, in base64.
    Imap,
    /// Signed requests over one connection; the body follows when the store wants it.
    S3,
}

impl Protocol {
    pub(crate) const ALL: [Self; 3] = [Self::Ftp, Self::Imap, Self::S3];

    /// The name in the thesis.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Ftp => "FTP",
            Self::Imap => "IMAP",
            Self::S3 => "Amazon S3",
        }
    }
}

/// Letters to a line of base64.
const BASE64_LINE: usize = 76;

type Files = Arc<Mutex<HashMap<String, Vec<u8>>>>;

/// A client that is connected to a store of its own.
pub(crate) struct Client {
    protocol: Protocol,
    line: Line,
    control: BufReader<End>,
    /// The store's ends of connections for files of FTP.
    data: std::sync::mpsc::Sender<End>,
}

impl Client {
    /// Starts a store, and connects with it.
    pub(crate) fn connect(protocol: Protocol, speed: Speed) -> Self {
        let line = Line::new(speed);
        let (ours, theirs) = line.connect();
        let (data, taken) = std::sync::mpsc::channel();
        let files = Files::default();
        // It ends when our end is dropped.
        thread::spawn(move || {
            Server { control: BufReader::new(theirs), data: taken, files }.serve(protocol)
        });
        Self { protocol, line, control: BufReader::new(ours), data }
    }

    /// Stores a file, and waits until the store says that it has it.
    pub(crate) fn upload(&mut self, name: &str, bytes: &[u8]) -> io::Result<()> {
        let length = bytes.len();
        match self.protocol {
            Protocol::Ftp => {
                let mut data = self.data_connection()?;
                self.say(&format!("STOR {name}\r\n"))?;
                self.expect("150")?;
                data.write_all(bytes)?;
                drop(data);
                self.expect("226")
            }
            Protocol::S3 => {
                let head = request("PUT", name);
                self.say(&format!(
                    "{head}Content-Length: {length}\r\nExpect: 100-continue\r\n\r\n"
                ))?;
                self.expect("HTTP/1.1 100")?;
                self.expect("")?;
                self.control.get_mut().write_all(bytes)?;
                self.expect("HTTP/1.1 200")?;
                rest_of_head(&mut self.control).map(drop)
            }
            Protocol::Imap => {
                let message = message(name, bytes);
                self.say(&format!("a APPEND syncany {{{}}}\r\n", message.len()))?;
                self.expect("+")?;
                self.control.get_mut().write_all(message.as_bytes())?;
                self.say("\r\n")?;
                self.expect("a OK")
            }
        }
    }

    /// Fetches a file.
    pub(crate) fn download(&mut self, name: &str) -> io::Result<Vec<u8>> {
        match self.protocol {
            Protocol::Ftp => {
                let mut data = self.data_connection()?;
                self.say(&format!("RETR {name}\r\n"))?;
                self.expect("150")?;
                let mut bytes = Vec::new();
                data.read_to_end(&mut bytes)?;
                self.expect("226")?;
                Ok(bytes)
            }
            Protocol::S3 => {
                self.say(&(request("GET", name) + "\r\n"))?;
                self.expect("HTTP/1.1 200")?;
                let length = rest_of_head(&mut self.control)?;
                self.exactly(length)
            }
            Protocol::Imap => {
                self.say(&format!("a FETCH {name} BODY[]\r\n"))?;
                let head = line_of(&mut self.control)?;
                let length = literal(&head)?;
                let message = self.exactly(length)?;
                self.expect(")")?;
                self.expect("a OK")?;
                let text = String::from_utf8(message).map_err(|_| nonsense("message"))?;
                decode(text.split_once("\r\n\r\n").ok_or_else(|| nonsense("message"))?.1)
            }
        }
    }

    fn say(&mut self, words: &str) -> io::Result<()> {
        self.control.get_mut().write_all(words.as_bytes())
    }

    fn expect(&mut self, beginning: &str) -> io::Result<()> {
        let line = line_of(&mut self.control)?;
        if line.starts_with(beginning) { Ok(()) } else { Err(nonsense(&line)) }
    }

    fn exactly(&mut self, length: usize) -> io::Result<Vec<u8>> {
        let mut bytes = vec![0; length];
        self.control.read_exact(&mut bytes)?;
        Ok(bytes)
    }

    /// Asks for a connection for one file, and makes it.
    fn data_connection(&mut self) -> io::Result<End> {
        self.say("PASV\r\n")?;
        self.expect("227")?;
        let (ours, theirs) = self.line.connect();
        self.data.send(theirs).map_err(|_| io::ErrorKind::BrokenPipe)?;
        Ok(ours)
    }
}

/// The head of a request as S3 wants it signed.
fn request(method: &str, name: &str) -> String {
    format!(
        "{method} /{name} HTTP/1.1\r\nHost: syncany.s3.amazonaws.com\r\nDate: Wed, 01 Jun 2011 12:00:00 GMT\r\n\
         Authorization: AWS AKIAIOSFODNN7EXAMPLE:bWq2s1WEIj+Ydj0vQ697zp+IXMU=\r\n\
         Content-Type: application/octet-stream\r\nUser-Agent: lab\r\n"
    )
}

fn message(name: &str, bytes: &[u8]) -> String {
    format!(
        "Date: Wed, 1 Jun 2011 12:00:00 +0200\r\nFrom: syncany@localhost\r\nTo: syncany@localhost\r\nSubject: {name}\r\n\
         MIME-Version: 1.0\r\nContent-Type: application/octet-stream\r\nContent-Transfer-Encoding: base64\r\n\r\n{}",
        encode(bytes)
    )
}

/// What a store does at its end.
struct Server {
    control: BufReader<End>,
    data: std::sync::mpsc::Receiver<End>,
    files: Files,
}

impl Server {
    /// Answers until nobody asks any more.
    fn serve(mut self, protocol: Protocol) -> io::Result<()> {
        loop {
            let line = line_of(&mut self.control)?;
            let words: Vec<_> = line.split(' ').collect();
            match (protocol, &words[..]) {
                (Protocol::Ftp, ["PASV"]) => {
                    self.say("227 Entering Passive Mode (10,0,0,1,200,10)\r\n")?;
                }
                (Protocol::Ftp, [verb, name]) => self.transfer(verb, name)?,
                (Protocol::S3, [verb, path, _]) => self.request(verb, path)?,
                (Protocol::Imap, [tag, verb, rest @ ..]) => self.mailbox(tag, verb, rest)?,
                _ => return Err(nonsense(&line)),
            }
        }
    }

    fn say(&mut self, words: &str) -> io::Result<()> {
        self.control.get_mut().write_all(words.as_bytes())
    }

    fn put(&self, name: &str, bytes: Vec<u8>) {
        self.files.lock().unwrap_or_else(PoisonError::into_inner).insert(name.to_owned(), bytes);
    }

    fn get(&self, name: &str) -> io::Result<Vec<u8>> {
        let files = self.files.lock().unwrap_or_else(PoisonError::into_inner);
        files.get(name).cloned().ok_or_else(|| nonsense(name))
    }

    fn transfer(&mut self, verb: &str, name: &str) -> io::Result<()> {
        let mut data = self.data.recv().map_err(|_| io::ErrorKind::BrokenPipe)?;
        self.say("150 Opening BINARY mode data connection\r\n")?;
        if verb == "STOR" {
            let mut bytes = Vec::new();
            data.read_to_end(&mut bytes)?;
            self.put(name, bytes);
        } else {
            data.write_all(&self.get(name)?)?;
        }
        drop(data);
        self.say("226 Transfer complete\r\n")
    }

    fn request(&mut self, verb: &str, path: &str) -> io::Result<()> {
        let length = rest_of_head(&mut self.control)?;
        let mut answer = Vec::new();
        if verb == "PUT" {
            self.say("HTTP/1.1 100 Continue\r\n\r\n")?;
            let mut bytes = vec![0; length];
            self.control.read_exact(&mut bytes)?;
            self.put(path.trim_start_matches('/'), bytes);
        } else {
            answer = self.get(path.trim_start_matches('/'))?;
        }
        let head = format!(
            "HTTP/1.1 200 OK\r\nx-amz-id-2: eftixk72aD6Ap51TnqcoF8eFidJG9Z/2mkiDFu8yU9AS1ed4OpIszj7UDNEHGran\r\n\
             x-amz-request-id: 318BC8BC148832E5\r\nDate: Wed, 01 Jun 2011 12:00:00 GMT\r\nServer: AmazonS3\r\n\
             Content-Length: {}\r\n\r\n",
            answer.len()
        );
        self.say(&head)?;
        self.control.get_mut().write_all(&answer)
    }

    fn mailbox(&mut self, tag: &str, verb: &str, rest: &[&str]) -> io::Result<()> {
        if verb == "APPEND" {
            let length = literal(rest.last().copied().unwrap_or_default())?;
            self.say("+ Ready for literal data\r\n")?;
            let mut message = vec![0; length];
            self.control.read_exact(&mut message)?;
            line_of(&mut self.control)?;
            let subject = String::from_utf8_lossy(&message)
                .lines()
                .find_map(|line| line.strip_prefix("Subject: ").map(|name| name.trim().to_owned()));
            self.put(&subject.ok_or_else(|| nonsense("message"))?, message);
            return self.say(&format!("{tag} OK APPEND completed\r\n"));
        }
        let message = self.get(rest.first().copied().unwrap_or_default())?;
        self.say(&format!("* 1 FETCH (BODY[] {{{}}}\r\n", message.len()))?;
        self.control.get_mut().write_all(&message)?;
        self.say(&format!(")\r\n{tag} OK FETCH completed\r\n"))
    }
}

fn nonsense(what: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, format!("not understood: {what}"))
}

/// Reads a line without its end; an error where there is none any more.
fn line_of(from: &mut BufReader<End>) -> io::Result<String> {
    let mut line = String::new();
    if from.read_line(&mut line)? == 0 {
        return Err(io::ErrorKind::UnexpectedEof.into());
    }
    Ok(line.trim_end().to_owned())
}

/// Reads to the end of a head of HTTP, and returns how long the body is.
fn rest_of_head(from: &mut BufReader<End>) -> io::Result<usize> {
    let mut length = 0;
    loop {
        let line = line_of(from)?;
        if let Some(value) = line.strip_prefix("Content-Length: ") {
            length = value.parse().map_err(|_| nonsense(&line))?;
        }
        if line.is_empty() {
            return Ok(length);
        }
    }
}

/// Reads how long what follows is, as in `{17}`.
fn literal(line: &str) -> io::Result<usize> {
    let length = line.rsplit_once('{').and_then(|(_, rest)| rest.strip_suffix('}'));
    length.and_then(|digits| digits.parse().ok()).ok_or_else(|| nonsense(line))
}

const LETTERS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

fn encode(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len() / 54 * 78 + 80);
    for (number, three) in bytes.chunks(3).enumerate() {
        let value = three.iter().fold(0, |value, byte| value << 8 | u32::from(*byte));
        let value = value << (8 * (3 - three.len()));
        for place in 0..4 {
            let letter = LETTERS[(value >> (18 - 6 * place) & 63) as usize];
            text.push(if place <= three.len() { char::from(letter) } else { '=' });
        }
        if (number + 1) * 4 % BASE64_LINE == 0 {
            text.push_str("\r\n");
        }
    }
    text
}

fn decode(text: &str) -> io::Result<Vec<u8>> {
    let (mut bytes, mut value, mut bits) = (Vec::new(), 0_u32, 0);
    for letter in text.bytes().filter(|letter| !letter.is_ascii_whitespace() && *letter != b'=') {
        let six = LETTERS.iter().position(|known| *known == letter);
        value = value << 6 | six.ok_or_else(|| nonsense("base64"))? as u32;
        bits += 6;
        if bits >= 8 {
            bits -= 8;
            bytes.push((value >> bits) as u8);
            value &= (1 << bits) - 1;
        }
    }
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::random::Random;

    #[test]
    fn what_went_to_a_store_comes_back_by_every_protocol() {
        let speed = Speed { up: 1e9, down: 1e9, delay: Duration::ZERO };
        for protocol in Protocol::ALL {
            let mut client = Client::connect(protocol, speed);
            for length in [0, 1, 2, 3, 57, 4096, 100_001] {
                let mut bytes = vec![0; length];
                Random::new(length as u64).fill(&mut bytes);
                let name = format!("chunk{length}");
                client.upload(&name, &bytes).unwrap();
                assert_eq!(client.download(&name).unwrap(), bytes, "{protocol:?} {length}");
            }
            assert!(client.download("none").is_err(), "{protocol:?}");
        }
    }
}
