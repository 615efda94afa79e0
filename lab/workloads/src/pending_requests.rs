//! Requests that a server can answer only after asking others, such as a proxy that asks its middlebox, then
//! the next proxy.
//!
//! The server's application shares the queue with the clients that ask on its behalf, one after another. A
//! callback wakes whoever gets work. The queue has no clock, since its users may have different ones.

use std::collections::VecDeque;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard};

/// The pending requests of a server.
#[derive(Debug, Clone)]
pub struct PendingRequests(Arc<Mutex<Papers>>);

/// A client that asks on behalf of a server.
#[derive(Debug)]
pub struct OnwardClient {
    desk: PendingRequests,
    place: usize,
    /// Unanswered requests: the number of its own message, and the request for which it asks.
    under_way: VecDeque<(u32, Request)>,
    asked: u32,
}

/// A pending request, by order of arrival.
type Request = u64;

/// A callback that is called when there is work.
pub type WakeCallback = Box<dyn Fn() + Send>;

#[derive(Debug)]
struct Papers {
    /// Requests waiting for each asker.
    trays: Vec<Tray>,
    /// Requests for which all have been asked.
    ready: Tray,
    requests: Request,
}

/// A queue of requests, and whom to wake.
#[derive(Default)]
struct Tray {
    requests: VecDeque<Request>,
    bell: Option<WakeCallback>,
}

impl PendingRequests {
    /// Creates a queue for this many clients that ask.
    pub fn new(askers: usize) -> Self {
        let trays = std::iter::repeat_with(Tray::default).take(askers).collect();
        Self(Arc::new(Mutex::new(Papers { trays, ready: Tray::default(), requests: 0 })))
    }

    /// Returns the client with index `place`. `bell` is called when the client has something to ask.
    pub fn asker(&self, place: usize, bell: WakeCallback) -> OnwardClient {
        self.papers().trays[place].bell = Some(bell);
        OnwardClient { desk: self.clone(), place, under_way: VecDeque::new(), asked: 0 }
    }

    /// Sets the `bell` to call when a request can be answered.
    pub fn on_ready(&self, bell: WakeCallback) {
        self.papers().ready.bell = Some(bell);
    }

    /// Adds a request.
    pub(crate) fn put(&self) -> Request {
        let mut papers = self.papers();
        let request = papers.requests;
        papers.requests += 1;
        papers.pass(0, request);
        request
    }

    /// Returns the next request that can be answered.
    pub(crate) fn take_ready(&self) -> Option<Request> {
        self.papers().ready.requests.pop_front()
    }

    fn papers(&self) -> MutexGuard<'_, Papers> {
        self.0.lock().expect("nobody panics with it")
    }
}

impl Papers {
    /// Passes a request to the asker at `place`, or returns it to the server after the last.
    fn pass(&mut self, place: usize, request: Request) {
        let tray = self.trays.get_mut(place).unwrap_or(&mut self.ready);
        tray.requests.push_back(request);
        tray.bell.iter().for_each(|ring| ring());
    }
}

impl OnwardClient {
    /// Returns whether the client has something to ask.
    pub(crate) fn is_due(&self) -> bool {
        !self.desk.papers().trays[self.place].requests.is_empty()
    }

    /// Notes that the client asks, with its next message.
    pub(crate) fn ask(&mut self) {
        let request = self.desk.papers().trays[self.place].requests.pop_front().expect("it is due");
        self.under_way.push_back((self.asked, request));
        self.asked += 1;
    }

    /// Notes that the client's message was answered.
    pub(crate) fn answered(&mut self, number: u32) {
        let place = self.under_way.iter().position(|(asked, _)| *asked == number);
        if let Some((_, request)) = place.and_then(|place| self.under_way.remove(place)) {
            self.desk.papers().pass(self.place + 1, request);
        }
    }
}

impl fmt::Debug for Tray {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.requests.fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU32, Ordering};

    use super::*;

    #[test]
    fn a_request_goes_from_one_who_asks_to_the_next_and_then_back() {
        let rung = Arc::new(AtomicU32::new(0));
        let bell = |value| {
            let rung = rung.clone();
            Box::new(move || rung.store(value, Ordering::Relaxed)) as WakeCallback
        };
        let heard = || rung.swap(0, Ordering::Relaxed);
        let desk = PendingRequests::new(2);
        let [mut first, mut second] = [0, 1].map(|place| desk.asker(place, bell(place as u32 + 1)));
        desk.on_ready(bell(9));
        assert_eq!((desk.put(), desk.put(), heard()), (0, 1, 1));
        assert_eq!((first.is_due(), second.is_due(), desk.take_ready()), (true, false, None));
        first.ask();
        first.ask();
        first.answered(1);
        assert_eq!(
            (heard(), first.is_due(), second.is_due()),
            (2, false, true),
            "the second request overtakes"
        );
        second.ask();
        second.answered(0);
        assert_eq!((heard(), desk.take_ready(), desk.take_ready()), (9, Some(1), None));
        first.answered(1);
        assert_eq!(heard(), 0, "it has been answered");
    }
}
