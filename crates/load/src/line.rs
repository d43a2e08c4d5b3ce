//! One connection of a device that asks one thing after the other, and waits for each answer.

use std::time::Duration;

use anyhow::{Context, Result, bail};
use commit_log::served::websocket::WebSocketOptions;
use commit_log::served::websocket::frames::{self, FrameSink, FrameStream};
use model::WorkspaceId;
use model::wire::{Reply, Request, RequestFrame, ServerFrame};
use tokio::net::TcpStream;
use tokio::time::timeout;

use crate::device::incarnation;
use crate::population::Enrolled;

/// How long one answer may take.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(60);

/// How much is read at once.
const READ_BUFFER_SIZE: usize = 64 * 1024;

/// A live connection to a server.
#[derive(Debug)]
pub struct Line {
    sink: FrameSink<TcpStream>,
    stream: FrameStream<TcpStream>,
    number: u64,
}

impl Line {
    /// Connects a device, in the incarnation that it has in runs of this seed.
    ///
    /// # Errors
    /// Where the server is not there, or does not know the device.
    pub async fn open(server: &str, device: &Enrolled, seed: u64) -> Result<Self> {
        let address = server.strip_prefix("http://").context("the server has no http: address")?;
        let stream = TcpStream::connect(address).await?;
        stream.set_nodelay(true)?;
        let incarnation = incarnation(seed, device.number);
        let options = WebSocketOptions::new(server, &device.token, incarnation);
        let (sink, stream) = frames::open(stream, &options, READ_BUFFER_SIZE).await?;
        Ok(Self { sink, stream, number: 0 })
    }

    /// Asks, and returns the answer.
    ///
    /// # Errors
    /// Where the server refuses, or says nothing for a minute.
    pub async fn ask(&mut self, workspace: WorkspaceId, request: Request) -> Result<Reply> {
        self.number += 1;
        let number = self.number;
        self.sink.feed(frames::encode(&RequestFrame { number, workspace, request })).await?;
        self.sink.flush().await?;
        let answer = timeout(ANSWER_TIMEOUT, self.answer(number));
        match answer.await.context("no answer came")?? {
            Reply::Refused(refusal) => bail!("{:?}: {}", refusal.kind, refusal.message),
            reply => Ok(reply),
        }
    }

    async fn answer(&mut self, wanted: u64) -> Result<Reply> {
        loop {
            match self.stream.next().await? {
                Some(ServerFrame::Reply { number, reply }) if number == wanted => return Ok(reply),
                _ => {}
            }
        }
    }

    /// Says good-bye.
    pub async fn close(mut self) {
        // It may have gone already, which is what is wanted.
        let _ = self.sink.close().await;
    }
}
