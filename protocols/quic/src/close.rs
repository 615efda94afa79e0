//! The orderly end of a connection, and the other.
//!
//! QUIC ends both directions at once (RFC 9000 section 10.2). Who has been told to close ends its streams, waits until all is
//! acknowledged, and ends the control stream; when both have, the client sends CONNECTION_CLOSE.

use bytes::Bytes;
use hol_base::Time;
use hol_transport::Event;
use quinn_proto::Side;

use crate::sight::Sight;
use crate::{Endpoint, clock};

/// How far the end has come.
#[derive(Debug, Default)]
pub(crate) struct Closing {
    /// The application has nothing more to send.
    pub(crate) asked: bool,
    /// Its streams have ended.
    finished: bool,
    /// So has the control stream.
    said: bool,
    /// The peer's control stream has ended.
    heard: bool,
    /// The connection is over, and the application knows.
    ended: bool,
}

impl Closing {
    /// Both sides have said that they send no more.
    pub(crate) fn has_all(&self) -> bool {
        self.said && self.heard
    }
}

impl<S: Sight> Endpoint<S> {
    /// Goes on with an orderly end as far as the peer lets it.
    pub(crate) fn close_if_done(&mut self, now: Time) {
        let Some((_, connection)) = &mut self.connection else { return };
        let Some(control) = self.outgoing.control else { return };
        let Closing { asked, finished, said, ended, .. } = &mut self.closing;
        if !*asked || *ended || !self.outgoing.held.is_empty() {
            return;
        }
        if !std::mem::replace(finished, true) {
            for id in &self.outgoing.streams {
                connection.send_stream(*id).finish().expect("a stream ends once");
            }
        }
        // The control stream itself is the one that is left.
        if connection.streams().send_streams() == 1 && !std::mem::replace(said, true) {
            connection.send_stream(control).finish().expect("a stream ends once");
        }
        let is_acknowledged = connection.streams().send_streams() == 0;
        if self.closing.has_all() && is_acknowledged && connection.side() == Side::Client {
            connection.close(clock::instant(now), 0u32.into(), Bytes::new());
            self.end(Event::Closed);
        }
    }

    /// The peer sends no more.
    pub(crate) fn hear_the_end(&mut self) {
        if !std::mem::replace(&mut self.closing.heard, true) {
            self.reader.tell(Event::PeerClosed);
        }
    }

    pub(crate) fn abort(&mut self, now: Time) {
        const ABORTED: u32 = 1;
        if let Some((_, connection)) = &mut self.connection {
            connection.close(clock::instant(now), ABORTED.into(), Bytes::new());
        }
        self.closing.ended = true;
    }

    /// The connection is over.
    pub(crate) fn end(&mut self, event: Event) {
        if !std::mem::replace(&mut self.closing.ended, true) {
            self.outgoing.held.clear();
            self.outgoing.control = None;
            self.reader.tell(event);
        }
    }
}
