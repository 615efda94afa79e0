//! The application on the other side of the socket: it sleeps until data arrives, and wakes up a little later, when
//! more may have come.

use hol_base::Time;
use hol_transport::Event;

use crate::Endpoint;

/// The application as a reader.
#[derive(Debug, Default)]
pub(crate) struct Reader {
    /// Pieces of the byte stream that it has not been given.
    unread: usize,
    awake: bool,
}

impl Endpoint {
    /// A piece of the byte stream is about to be put among the events.
    pub(crate) fn rouse_reader(&mut self, now: Time) {
        self.reader.unread += 1;
        if !self.reader.awake && self.timers.wakeup.is_none() {
            self.timers.wakeup = Some(now + self.config.wakeup);
        }
    }

    /// The application reads all that there is, at once.
    pub(crate) fn wake_reader(&mut self, now: Time) {
        self.reader.awake = true;
        self.data_read(now);
    }

    /// The next event that the application is awake for.
    pub(crate) fn next_event(&mut self) -> Option<Event> {
        if matches!(self.events.front()?, Event::Received(_)) {
            if !self.reader.awake {
                return None;
            }
            self.reader.unread -= 1;
            self.reader.awake = self.reader.unread > 0;
        }
        self.events.pop_front()
    }
}
