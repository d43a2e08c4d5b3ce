//! Tells what a device and its server say about files from the contents of files.
//!
//! *Participants*: two listeners for each connection, one for what either side says. *Goals*: every byte of a pack is counted as contents, whichever way
//! it travels: as a body of HTTP, or inside a commit. *Non-goals*: any other server than ours. *Invariants*: what is not understood is an error
//! and never a guess; nothing is kept but the message that is being heard.

use std::collections::VecDeque;

use commit_log::envelope;
use model::Commit;
use model::wire::{FRAME_LENGTH_MAX, Reply, Request, RequestFrame, ServerFrame};

/// The longest head of a message of HTTP.
const HEAD_MAX: usize = 64 << 10;

/// The bits of a frame's head (RFC 6455, section 5.2).
const IS_LAST: u8 = 0x80;
const OPCODE: u8 = 0x0f;
const IS_MASKED: u8 = 0x80;
const FIRST_CONTROL: u8 = 8;

/// Something was said that is not understood, so that nothing is known of what follows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct NotUnderstood(pub(super) &'static str);

/// What both listeners of a connection know.
#[derive(Debug, Default)]
pub(super) struct Known {
    /// Requests without an answer so far.
    asked: VecDeque<Asked>,
    /// Whether both sides have gone over to frames.
    has_frames: bool,
}

#[derive(Debug, Clone, Copy)]
struct Asked {
    is_about_contents: bool,
    is_for_head: bool,
}

/// Who is listened to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Side {
    Device,
    Server,
}

/// Hears one side.
#[derive(Debug)]
pub(super) struct Listener {
    side: Side,
    state: State,
    /// What was heard and not dealt with.
    held: Vec<u8>,
    /// The frames of a message so far.
    message: Vec<u8>,
}

#[derive(Debug, Clone, Copy)]
enum State {
    Head,
    /// So many bytes of a body are still to come.
    Body {
        left: u64,
        is_contents: bool,
    },
    /// A body in pieces, each with its length in front.
    PieceLength {
        is_contents: bool,
    },
    Piece {
        left: u64,
        is_contents: bool,
    },
    /// The line feed behind a piece.
    PieceEnd {
        is_contents: bool,
    },
    /// What may follow the last piece.
    Trailer,
    /// A body that ends with the connection.
    ToTheEnd {
        is_contents: bool,
    },
    Frames,
}

impl Listener {
    pub(super) fn new(side: Side) -> Self {
        Self { side, state: State::Head, held: Vec::new(), message: Vec::new() }
    }

    /// Hears some more, and returns how many bytes of contents were in what it has understood now.
    pub(super) fn hear(&mut self, piece: &[u8], known: &mut Known) -> Result<u64, NotUnderstood> {
        self.held.extend_from_slice(piece);
        let mut contents = 0;
        while let Some(step) = self.step(known)? {
            contents += step;
        }
        Ok(contents)
    }

    /// Deals with the next part, and returns nothing where it is not whole yet.
    fn step(&mut self, known: &mut Known) -> Result<Option<u64>, NotUnderstood> {
        if self.held.is_empty() {
            return Ok(None);
        }
        match self.state {
            State::Head if known.has_frames => {
                self.state = State::Frames;
                Ok(Some(0))
            }
            State::Head => {
                let Some(head) = self.line_to(b"\r\n\r\n")? else { return Ok(None) };
                self.state = match self.side {
                    Side::Device => request(&head, known)?,
                    Side::Server => answer(&head, known)?,
                };
                Ok(Some(0))
            }
            State::Body { left, is_contents } => {
                let (taken, left) = self.take(left);
                self.state =
                    if left == 0 { State::Head } else { State::Body { left, is_contents } };
                Ok(Some(if is_contents { taken } else { 0 }))
            }
            State::PieceLength { is_contents } => {
                let Some(line) = self.line_to(b"\r\n")? else { return Ok(None) };
                let digits = line.split([';', '\r']).next().unwrap_or_default().trim();
                let left = u64::from_str_radix(digits, 16);
                let left = left.map_err(|_| NotUnderstood("a piece without a length"))?;
                self.state =
                    if left == 0 { State::Trailer } else { State::Piece { left, is_contents } };
                Ok(Some(0))
            }
            State::Piece { left, is_contents } => {
                let (taken, left) = self.take(left);
                self.state = match left {
                    0 => State::PieceEnd { is_contents },
                    left => State::Piece { left, is_contents },
                };
                Ok(Some(if is_contents { taken } else { 0 }))
            }
            State::PieceEnd { is_contents } => {
                let Some(_) = self.line_to(b"\r\n")? else { return Ok(None) };
                self.state = State::PieceLength { is_contents };
                Ok(Some(0))
            }
            State::Trailer => {
                let Some(line) = self.line_to(b"\r\n")? else { return Ok(None) };
                self.state = if line == "\r\n" { State::Head } else { State::Trailer };
                Ok(Some(0))
            }
            State::ToTheEnd { is_contents } => {
                let (taken, _) = self.take(u64::MAX);
                Ok(Some(if is_contents { taken } else { 0 }))
            }
            State::Frames => self.frame(),
        }
    }

    /// Takes up to so many bytes, and returns how many, and how many are left.
    fn take(&mut self, most: u64) -> (u64, u64) {
        let taken = most.min(self.held.len() as u64);
        self.held.drain(..taken as usize);
        (taken, most - taken)
    }

    /// Takes everything up to an end, with it.
    fn line_to(&mut self, end: &[u8]) -> Result<Option<String>, NotUnderstood> {
        let place = self.held.windows(end.len()).position(|window| window == end);
        let Some(place) = place else {
            let is_short = self.held.len() < HEAD_MAX;
            return if is_short { Ok(None) } else { Err(NotUnderstood("a head without an end")) };
        };
        let line: Vec<u8> = self.held.drain(..place + end.len()).collect();
        String::from_utf8(line).map(Some).map_err(|_| NotUnderstood("a head that is no text"))
    }

    /// Takes a frame of a WebSocket.
    fn frame(&mut self) -> Result<Option<u64>, NotUnderstood> {
        let Some(frame) = Frame::of(&self.held)? else { return Ok(None) };
        let Frame { first, mask, payload, end } = frame;
        let opcode = first & OPCODE;
        if opcode < FIRST_CONTROL {
            let mask = mask.unwrap_or_default();
            let plain = self.held[payload..end].iter().zip(mask.iter().cycle());
            self.message.extend(plain.map(|(byte, mask)| byte ^ mask));
        }
        self.held.drain(..end);
        if opcode >= FIRST_CONTROL || first & IS_LAST == 0 {
            return Ok(Some(0));
        }
        let message = std::mem::take(&mut self.message);
        let unknown = |_| NotUnderstood("a frame of another version");
        match self.side {
            Side::Device => {
                let frame = envelope::unwrap::<RequestFrame>(&message, FRAME_LENGTH_MAX);
                Ok(Some(in_request(&frame.map_err(unknown)?.request)))
            }
            Side::Server => {
                let frame = envelope::unwrap::<ServerFrame>(&message, FRAME_LENGTH_MAX);
                Ok(Some(in_frame(&frame.map_err(unknown)?)))
            }
        }
    }
}

/// Where the parts of a frame are.
struct Frame {
    first: u8,
    mask: Option<[u8; 4]>,
    payload: usize,
    end: usize,
}

impl Frame {
    /// Reads the head of a frame; nothing where the frame is not whole.
    fn of(held: &[u8]) -> Result<Option<Self>, NotUnderstood> {
        let [first, second, ..] = *held else { return Ok(None) };
        let (length, head) = match second & !IS_MASKED {
            126 => (held.get(2..4).map(number), 4),
            127 => (held.get(2..10).map(number), 10),
            short => (Some(u64::from(short)), 2),
        };
        let Some(length) = length else { return Ok(None) };
        if length > FRAME_LENGTH_MAX as u64 {
            return Err(NotUnderstood("a frame that is too long"));
        }
        let is_masked = second & IS_MASKED != 0;
        let mask = held.get(head..head + 4).and_then(|mask| mask.try_into().ok());
        let payload = head + if is_masked { 4 } else { 0 };
        let end = payload + length as usize;
        let is_whole = held.len() >= end;
        let mask = if is_masked { mask } else { None };
        Ok(is_whole.then_some(Self { first, mask, payload, end }))
    }
}

/// Reads a number of several bytes, the greatest first.
fn number(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0, |number, byte| number << 8 | u64::from(*byte))
}

/// Reads the head of a request.
fn request(head: &str, known: &mut Known) -> Result<State, NotUnderstood> {
    let mut words = head.split_whitespace();
    let (Some(method), Some(path)) = (words.next(), words.next()) else {
        return Err(NotUnderstood("a request without a path"));
    };
    let path = path.split('?').next().unwrap_or_default();
    // `direct` only tells where packs are to be had.
    let is_about_contents = path.contains("/packs/") && !path.ends_with("/direct");
    known.asked.push_back(Asked { is_about_contents, is_for_head: method == "HEAD" });
    body(head, is_about_contents, State::Head)
}

/// Reads the head of an answer.
fn answer(head: &str, known: &mut Known) -> Result<State, NotUnderstood> {
    let status = head.split(' ').nth(1).and_then(|status| status.parse::<u16>().ok());
    let Some(status) = status else { return Err(NotUnderstood("an answer without a status")) };
    if status == 101 {
        known.has_frames = true;
        return Ok(State::Frames);
    }
    // Others below 200 only say that an answer will come.
    if status < 200 {
        return Ok(State::Head);
    }
    let asked = known.asked.pop_front();
    let Some(asked) = asked else { return Err(NotUnderstood("an answer to nothing")) };
    if asked.is_for_head || matches!(status, 204 | 304) {
        return Ok(State::Head);
    }
    let is_contents = asked.is_about_contents && matches!(status, 200 | 206);
    body(head, is_contents, State::ToTheEnd { is_contents })
}

/// Finds out how long the body is; `otherwise` where the head does not say so.
fn body(head: &str, is_contents: bool, otherwise: State) -> Result<State, NotUnderstood> {
    let field = |name: &str| {
        head.lines().skip(1).find_map(|line| {
            let (known, value) = line.split_once(':')?;
            known.eq_ignore_ascii_case(name).then(|| value.trim())
        })
    };
    if field("transfer-encoding").is_some_and(|value| value.eq_ignore_ascii_case("chunked")) {
        return Ok(State::PieceLength { is_contents });
    }
    match field("content-length").map(str::parse::<u64>) {
        Some(Ok(0)) => Ok(State::Head),
        Some(Ok(left)) => Ok(State::Body { left, is_contents }),
        Some(Err(_)) => Err(NotUnderstood("a length that is no number")),
        None => Ok(otherwise),
    }
}

/// Bytes of packs that travel inside a commit.
fn in_commit(commit: &Commit) -> u64 {
    commit.inline_packs.iter().map(|pack| pack.len() as u64).sum()
}

fn in_request(request: &Request) -> u64 {
    match request {
        Request::Commit(commit) => in_commit(commit),
        _ => 0,
    }
}

fn in_frame(frame: &ServerFrame) -> u64 {
    match frame {
        ServerFrame::Event { entry, .. } => in_commit(&entry.commit),
        ServerFrame::Reply { reply: Reply::Entries(entries), .. } => {
            entries.iter().map(|entry| in_commit(&entry.commit)).sum()
        }
        ServerFrame::Reply { .. } => 0,
    }
}

#[cfg(test)]
mod tests;
