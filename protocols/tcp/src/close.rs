//! The end of a connection: FIN, TIME-WAIT, reset. RFC 9293 sections 3.6 and 3.10.4 to 3.10.5.

use bytes::Bytes;
use hol_base::Time;
use hol_transport::{Event, Failure};
use hol_wire::Address;
use hol_wire::tcp::{Flags, Segment};

use crate::{Endpoint, State};

impl Endpoint {
    /// The application has no more to send.
    pub(crate) fn close(&mut self, now: Time) {
        match self.machine.state() {
            State::Listen | State::SynSent => return self.end(Event::Closed),
            State::Established | State::CloseWait => self.machine.fin_queued(),
            // The FIN follows when the handshake is over.
            State::SynReceived => {}
            _ => return,
        }
        self.queue.close();
        self.push_pending(now);
    }

    /// The application wants it over now: the peer is reset. RFC 9293 section 3.10.5.
    pub(crate) fn abort(&mut self, now: Time) {
        match self.machine.state() {
            State::Closed => return,
            State::Listen | State::SynSent | State::TimeWait => {}
            _ => self.transmit(now, self.snd.nxt(), Flags::RST | Flags::ACK, Bytes::new(), (now, false)),
        }
        self.end(Event::Failed { reason: Failure::Aborted });
    }

    /// The host has lost an address. Where the system then destroys the sockets on it, the peer hears nothing: there is
    /// nowhere left to tell it from.
    pub(crate) fn on_address_removed(&mut self, address: Address) {
        let lives = !matches!(self.machine.state(), State::Closed | State::Listen | State::TimeWait);
        if self.config.address_loss_aborts && lives && self.local.0 == address {
            self.end(Event::Failed { reason: Failure::AddressRemoved });
        }
    }

    /// The handshake is over, but the application has closed meanwhile.
    pub(crate) fn close_if_asked(&mut self) {
        if self.queue.fin_is_queued() && self.machine.state() == State::Established {
            self.machine.fin_queued();
        }
    }

    /// Everything up to SND.UNA is acknowledged; if that includes our FIN, the state moves on.
    pub(crate) fn fin_acknowledged(&mut self, now: Time) {
        if !self.queue.fin_is_sent() || self.board.len() > 0 {
            return;
        }
        match self.machine.state() {
            State::FinWait1 => self.machine.fin_acknowledged(),
            State::Closing => self.time_wait(now),
            State::LastAck => self.end(Event::Closed),
            _ => {}
        }
    }

    /// The peer's FIN is next in the stream.
    pub(crate) fn fin_received(&mut self, now: Time) {
        self.reader.tell(Event::PeerClosed);
        self.acks.owe();
        // What else was held lies behind it, where nothing can be.
        self.reassembly.clear();
        match self.machine.state() {
            State::Established => {
                self.machine.fin_received();
                self.acks.expect_reply();
            }
            State::FinWait1 => {
                self.acks.hasten(true);
                self.machine.fin_received();
            }
            State::FinWait2 => {
                self.acks.hasten(true);
                self.time_wait(now);
            }
            state => unreachable!("a FIN is taken in {state:?}"),
        }
    }

    /// Both directions are closed; old segments may still come. RFC 9293 section 3.6.1.
    fn time_wait(&mut self, now: Time) {
        self.machine.time_wait();
        self.timers.start_time_wait(now, self.config.time_wait);
        self.reader.tell(Event::Closed);
    }

    /// If the peer sends its FIN again, our acknowledgment was lost: 2 MSL start over. RFC 9293 section 3.10.7.4, eighth.
    pub(crate) fn fin_repeated(&mut self, now: Time, segment: &Segment) {
        if self.machine.state() == State::TimeWait && segment.flags.contains(Flags::FIN) {
            self.timers.start_time_wait(now, self.config.time_wait);
        }
    }
}
