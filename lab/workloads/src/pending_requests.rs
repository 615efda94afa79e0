//! Requests that a server can answer only after asking others, such as a proxy that asks its middlebox, then
//! the next proxy.
//!
//! The server's application shares the queues with the clients that send requests on its behalf, one client
//! after another. A callback wakes the application that gets work. The queues have no clock, since their users
//! may have different ones.

use std::collections::VecDeque;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard};

/// The requests of a server that wait for the replies to onward requests.
#[derive(Debug, Clone)]
pub struct PendingRequests(Arc<Mutex<RequestQueues>>);

/// A client that sends requests on behalf of a server.
#[derive(Debug)]
pub struct OnwardClient {
    pending_requests: PendingRequests,
    index: usize,
    /// The client's messages without a reply: the number of each, and the request of the server for which it was sent.
    unanswered: VecDeque<(u32, RequestId)>,
    /// Number of messages that the client has sent.
    sent: u32,
}

/// The number of a pending request, in the order in which requests arrive.
type RequestId = u64;

/// A callback that wakes an application because it has something to do.
pub type WakeCallback = Box<dyn Fn() + Send>;

/// Requests to a server that wait for the replies of other servers.
#[derive(Debug)]
struct RequestQueues {
    /// Requests that wait to be sent by each client, by index of the client.
    by_client: Vec<RequestQueue>,
    /// Requests that the server can answer now, because every client has received its reply.
    ready: RequestQueue,
    /// The number of the next request that arrives.
    next: RequestId,
}

/// A queue of requests, and the callback of the application that takes them.
#[derive(Default)]
struct RequestQueue {
    requests: VecDeque<RequestId>,
    wake: Option<WakeCallback>,
}

impl PendingRequests {
    /// Creates the queues for `clients` onward clients.
    pub fn new(clients: usize) -> Self {
        let by_client = std::iter::repeat_with(RequestQueue::default).take(clients).collect();
        Self(Arc::new(Mutex::new(RequestQueues { by_client, ready: RequestQueue::default(), next: 0 })))
    }

    /// Returns the onward client with this index. `wake` is called when the client has something to send.
    pub fn client(&self, index: usize, wake: WakeCallback) -> OnwardClient {
        self.lock().by_client[index].wake = Some(wake);
        OnwardClient { pending_requests: self.clone(), index, unanswered: VecDeque::new(), sent: 0 }
    }

    /// Sets the callback that is called when the server can answer a request.
    pub fn on_ready(&self, wake: WakeCallback) {
        self.lock().ready.wake = Some(wake);
    }

    /// Adds a request to the queue of the first client.
    pub(crate) fn push(&self) -> RequestId {
        let mut queues = self.lock();
        let request = queues.next;
        queues.next += 1;
        queues.forward(0, request);
        request
    }

    /// Removes and returns the next request that can be answered; `None` if there is none.
    pub(crate) fn take_ready(&self) -> Option<RequestId> {
        self.lock().ready.requests.pop_front()
    }

    fn lock(&self) -> MutexGuard<'_, RequestQueues> {
        self.0.lock().expect("no code panics while it holds the lock")
    }
}

impl RequestQueues {
    /// Passes a request on to the client with this index or, if there is no such client, back to the server.
    fn forward(&mut self, index: usize, request: RequestId) {
        let queue = self.by_client.get_mut(index).unwrap_or(&mut self.ready);
        queue.requests.push_back(request);
        queue.wake.iter().for_each(|wake| wake());
    }
}

impl OnwardClient {
    /// Returns whether a request waits for this client to send a message.
    pub(crate) fn is_due(&self) -> bool {
        !self.pending_requests.lock().by_client[self.index].requests.is_empty()
    }

    /// Takes the oldest waiting request, for which the client sends its next message.
    pub(crate) fn take_request(&mut self) {
        let mut queues = self.pending_requests.lock();
        let request = queues.by_client[self.index]
            .requests
            .pop_front()
            .expect("a message is due only while a request waits");
        drop(queues);
        self.unanswered.push_back((self.sent, request));
        self.sent += 1;
    }

    /// Handles the reply to the client's message with this number, after which its request can be passed on.
    pub(crate) fn on_reply(&mut self, number: u32) {
        let position = self.unanswered.iter().position(|(sent, _)| *sent == number);
        if let Some((_, request)) = position.and_then(|position| self.unanswered.remove(position)) {
            self.pending_requests.lock().forward(self.index + 1, request);
        }
    }
}

impl fmt::Debug for RequestQueue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.requests.fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU32, Ordering};

    use super::*;

    #[test]
    fn onward_request_passes_through_all_clients_and_back() {
        let woken = Arc::new(AtomicU32::new(0));
        let wake = |value| {
            let woken = woken.clone();
            Box::new(move || woken.store(value, Ordering::Relaxed)) as WakeCallback
        };
        let last_woken = || woken.swap(0, Ordering::Relaxed);
        let pending = PendingRequests::new(2);
        let [mut first, mut second] = [0, 1].map(|index| pending.client(index, wake(index as u32 + 1)));
        pending.on_ready(wake(9));
        assert_eq!((pending.push(), pending.push(), last_woken()), (0, 1, 1));
        assert_eq!((first.is_due(), second.is_due(), pending.take_ready()), (true, false, None));
        first.take_request();
        first.take_request();
        first.on_reply(1);
        assert_eq!(
            (last_woken(), first.is_due(), second.is_due()),
            (2, false, true),
            "the second request overtakes the first"
        );
        second.take_request();
        second.on_reply(0);
        assert_eq!((last_woken(), pending.take_ready(), pending.take_ready()), (9, Some(1), None));
        first.on_reply(1);
        assert_eq!(last_woken(), 0, "the message has its reply already");
    }
}
