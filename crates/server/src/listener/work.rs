//! What a server works at: a request that has come as a whole, until its answer begins. Putting together a file of many gibibytes takes longer than
//! a connection may stand still, and whoever waits for it can do nothing to show that he is there.

use std::sync::Arc;
use std::task::Poll;

use axum::Router;
use axum::body::{Body, HttpBody};
use axum::extract::connect_info::{Connected, IntoMakeServiceWithConnectInfo};
use axum::extract::{ConnectInfo, Request};
use axum::middleware::{self, Next};
use axum::response::Response;
use axum::serve::IncomingStream;
use futures_util::stream::{StreamExt, poll_fn};
use parking_lot::Mutex;
use tokio::time::Instant;

use super::{GuardedListener, PeerAddress};

/// What a server works at of what came by one connection.
#[derive(Debug, Default)]
pub(super) struct Work(Mutex<Worked>);

#[derive(Debug, Default)]
struct Worked {
    /// How many requests wait for their answers.
    requests: usize,
    /// When the last one of them was answered.
    ended: Option<Instant>,
}

impl Work {
    /// Returns when the server worked last: now, where it does; nothing where it never has.
    pub(super) fn last(&self) -> Option<Instant> {
        let worked = self.0.lock();
        if worked.requests > 0 { Some(Instant::now()) } else { worked.ended }
    }
}

/// A request, until its answer begins.
struct Waiting {
    work: Arc<Work>,
    state: Mutex<State>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
    Coming,
    Whole,
    Answered,
}

impl Waiting {
    fn note_whole(&self) {
        let mut state = self.state.lock();
        if *state == State::Coming {
            *state = State::Whole;
            self.work.0.lock().requests += 1;
        }
    }

    fn note_answer(&self) {
        let before = std::mem::replace(&mut *self.state.lock(), State::Answered);
        if before == State::Whole {
            let mut worked = self.work.0.lock();
            worked.requests -= 1;
            worked.ended = Some(Instant::now());
        }
    }
}

/// Ends the waiting of a request, also where nobody waits any more.
struct Answering(Arc<Waiting>);

impl Drop for Answering {
    fn drop(&mut self) {
        self.0.note_answer();
    }
}

/// A connection, as what answers its requests knows it.
#[derive(Debug, Clone)]
pub(crate) struct Connection {
    peer: PeerAddress,
    work: Option<Arc<Work>>,
}

impl Connected<IncomingStream<'_, GuardedListener>> for Connection {
    fn connect_info(stream: IncomingStream<'_, GuardedListener>) -> Self {
        Self { peer: PeerAddress(*stream.remote_addr()), work: stream.io().work() }
    }
}

/// Serves doors so that a connection does not end while the server works at what came by it. They find a [`PeerAddress`].
pub(crate) fn service(doors: Router) -> IntoMakeServiceWithConnectInfo<Router, Connection> {
    doors.layer(middleware::from_fn(wait)).into_make_service_with_connect_info()
}

async fn wait(
    ConnectInfo(Connection { peer, work }): ConnectInfo<Connection>,
    mut request: Request,
    next: Next,
) -> Response {
    request.extensions_mut().insert(ConnectInfo(peer));
    let Some(work) = work else { return next.run(request).await };
    let waiting = Arc::new(Waiting { work, state: Mutex::new(State::Coming) });
    let _answering = Answering(Arc::clone(&waiting));
    let request = match request.body().is_end_stream() {
        true => {
            waiting.note_whole();
            request
        }
        false => request.map(|body| watched(body, waiting)),
    };
    next.run(request).await
}

/// Notes when a body has come to its end.
fn watched(body: Body, waiting: Arc<Waiting>) -> Body {
    let mut pieces = body.into_data_stream();
    Body::from_stream(poll_fn(move |context| {
        let polled = pieces.poll_next_unpin(context);
        if matches!(polled, Poll::Ready(None)) {
            waiting.note_whole();
        }
        polled
    }))
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use axum::body::Bytes;
    use axum::routing::post;
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::net::{TcpListener, TcpStream};

    use super::*;

    /// Sends bytes to a door that works for ten minutes at what came as a whole, and returns what it answers before it ends the connection.
    async fn answer_to(sent: &str) -> (String, Duration) {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let work = async |ConnectInfo(_): ConnectInfo<PeerAddress>, body: Bytes| {
            tokio::time::sleep(Duration::from_secs(600)).await;
            format!("{} bytes", body.len())
        };
        let doors = service(Router::new().route("/", post(work).get(work)));
        tokio::spawn(async move {
            axum::serve(GuardedListener::new(listener, 9, 9), doors).await.unwrap();
        });
        let mut client = TcpStream::connect(address).await.unwrap();
        let began = Instant::now();
        client.write_all(sent.as_bytes()).await.unwrap();
        let mut answer = Vec::new();
        let _ = client.read_to_end(&mut answer).await;
        (String::from_utf8(answer).unwrap(), began.elapsed())
    }

    #[tokio::test(start_paused = true)]
    async fn connection_waits_for_long_work_and_ends_a_while_after_it() {
        for request in ["GET / HTTP/1.1\r\nhost: x\r\n\r\n", POST] {
            let (answer, time) = answer_to(request).await;
            assert!(answer.starts_with("HTTP/1.1 200") && answer.ends_with(" bytes"), "{answer}");
            assert!((600..700).contains(&time.as_secs()), "{time:?}");
        }
    }

    const POST: &str = "POST / HTTP/1.1\r\nhost: x\r\ncontent-length: 2\r\n\r\nab";

    #[tokio::test(start_paused = true)]
    async fn connection_does_not_wait_for_the_rest_of_a_request() {
        let (answer, time) = answer_to(&POST[..POST.len() - 1]).await;
        assert!(answer.is_empty() || answer.starts_with("HTTP/1.1 400"), "{answer}");
        assert!(time.as_secs() < 100, "{time:?}");
    }
}
