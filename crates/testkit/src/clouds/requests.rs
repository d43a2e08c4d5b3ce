//! What was asked of which store, and when.

use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use storage::faulty::Operation;

/// One request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Request {
    /// The name of the service.
    pub store: &'static str,
    /// Which method.
    pub operation: Operation,
    /// The key or prefix.
    pub key: String,
    /// Bytes of the body that went up.
    pub sent: u64,
    /// Bytes of the body that came down.
    pub received: u64,
    /// When the device asked.
    pub asked: Duration,
    /// When it had a connection; until then it waited for others of the same device.
    pub connected: Option<Duration>,
    /// When it had the answer; `None` where it stopped waiting.
    pub answered: Option<Duration>,
}

/// The requests of one device, or of several; clones share the list.
#[derive(Debug, Clone, Default)]
pub struct Requests(Arc<Mutex<Vec<Request>>>);

impl Requests {
    /// Returns all requests so far, in the order in which they were asked.
    pub fn all(&self) -> Vec<Request> {
        self.0.lock().clone()
    }

    /// Forgets all requests so far, and returns them.
    pub fn take(&self) -> Vec<Request> {
        std::mem::take(&mut *self.0.lock())
    }

    /// Notes that something is asked, and returns a note to be ended with the answer.
    pub(super) fn begin(&self, request: Request) -> Pending {
        let mut requests = self.0.lock();
        requests.push(request);
        Pending { requests: self.clone(), index: requests.len() - 1 }
    }
}

/// A request under way.
pub(super) struct Pending {
    requests: Requests,
    index: usize,
}

impl Pending {
    /// A connection is there.
    pub(super) fn connect(&self, at: Duration) {
        if let Some(request) = self.requests.0.lock().get_mut(self.index) {
            request.connected = Some(at);
        }
    }

    /// The answer is there.
    pub(super) fn end(self, at: Duration, received: u64) {
        // The list may have been taken meanwhile; what belonged to it is of no interest any more.
        if let Some(request) = self.requests.0.lock().get_mut(self.index) {
            request.answered = Some(at);
            request.received = received;
        }
    }
}

/// Returns how many round trips an operation needed that asked these requests and ended at a moment: the longest chain of
/// requests of which each was asked when the one before had been answered.
pub fn round_trips(requests: &[Request], ended: Duration) -> usize {
    let mut depths: Vec<usize> = Vec::with_capacity(requests.len());
    for request in requests {
        let earlier = requests.iter().zip(&depths).filter(|(earlier, _)| {
            earlier.answered.is_some_and(|answered| answered <= request.asked)
        });
        let depth = earlier.map(|(_, depth)| *depth).max().unwrap_or(0) + 1;
        depths.push(depth);
    }
    let answered = requests
        .iter()
        .zip(&depths)
        .filter(|(request, _)| request.answered.is_some_and(|answered| answered <= ended));
    answered.map(|(_, depth)| *depth).max().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(asked: u64, answered: Option<u64>) -> Request {
        Request {
            store: "store",
            operation: Operation::Put,
            key: String::new(),
            sent: 0,
            received: 0,
            asked: Duration::from_millis(asked),
            connected: Some(Duration::from_millis(asked)),
            answered: answered.map(Duration::from_millis),
        }
    }

    fn count(requests: &[Request], ended: u64) -> usize {
        round_trips(requests, Duration::from_millis(ended))
    }

    #[test]
    fn requests_side_by_side_are_one_round_trip() {
        let requests = [request(0, Some(10)), request(0, Some(30)), request(5, Some(20))];
        assert_eq!(count(&requests, 30), 1);
    }

    #[test]
    fn request_after_an_answer_is_another_round_trip() {
        let requests = [request(0, Some(10)), request(0, None), request(10, Some(20))];
        assert_eq!(count(&requests, 20), 2);
    }

    #[test]
    fn what_nobody_waited_for_does_not_count() {
        let requests = [request(0, Some(10)), request(10, Some(50))];
        assert_eq!(count(&requests, 10), 1);
        assert_eq!(count(&[], 10), 0);
    }
}
