//! The end of a connection: FIN, TIME-WAIT, reset. RFC 9293 sections 3.6 and 3.10.4 to 3.10.5.

use bytes::Bytes;
use hol_base::Time;
use hol_transport::{Event, Failure};
use hol_wire::Address;
use hol_wire::tcp::{Flags, Segment};

use crate::{Endpoint, State};

impl Endpoint {
    /// Closes the sending direction: the application has no more data.
    pub(crate) fn close(&mut self, now: Time) {
        match self.machine.state() {
            State::Listen | State::SynSent => return self.end(Event::Closed),
            State::Established | State::CloseWait => self.machine.on_fin_queued(),
            // The FIN follows after the handshake.
            State::SynReceived => {}
            _ => return,
        }
        self.queue.close();
        self.push_pending(now);
    }

    /// Resets the connection at the application's request. RFC 9293 section 3.10.5.
    pub(crate) fn abort(&mut self, now: Time) {
        match self.machine.state() {
            State::Closed => return,
            State::Listen | State::SynSent | State::TimeWait => {}
            _ => self.transmit(now, self.snd.nxt(), Flags::RST | Flags::ACK, Bytes::new(), (now, false)),
        }
        self.end(Event::Failed { reason: Failure::Aborted });
    }

    /// Handles the loss of an address of the host. If the system destroys the sockets of this address, the
    /// connection ends without a reset, because no packet can be sent from the address.
    pub(crate) fn on_address_removed(&mut self, address: Address) {
        let lives = !matches!(self.machine.state(), State::Closed | State::Listen | State::TimeWait);
        if self.config.address_loss_aborts && lives && self.local.0 == address {
            self.end(Event::Failed { reason: Failure::AddressRemoved });
        }
    }

    /// Closes the connection now that it is established, if the application has requested that during the
    /// handshake.
    pub(crate) fn close_if_requested(&mut self) {
        if self.queue.fin_is_queued() && self.machine.state() == State::Established {
            self.machine.on_fin_queued();
        }
    }

    /// Changes the state if the peer has acknowledged our FIN.
    pub(crate) fn on_fin_acknowledged(&mut self, now: Time) {
        if !self.queue.fin_is_sent() || self.board.len() > 0 {
            return;
        }
        match self.machine.state() {
            State::FinWait1 => self.machine.on_fin_acknowledged(),
            State::Closing => self.enter_time_wait(now),
            State::LastAck => self.end(Event::Closed),
            _ => {}
        }
    }

    /// Handles the peer's FIN, which is next in sequence.
    pub(crate) fn on_fin_received(&mut self, now: Time) {
        self.reader.push_event(Event::PeerClosed);
        self.acks.schedule();
        // The other queued data lie after the FIN, where no data can be.
        self.reassembly.clear();
        match self.machine.state() {
            State::Established => {
                self.machine.on_fin_received();
                self.acks.enter_pingpong_mode();
            }
            State::FinWait1 => {
                self.acks.make_immediate_if(true);
                self.machine.on_fin_received();
            }
            State::FinWait2 => {
                self.acks.make_immediate_if(true);
                self.enter_time_wait(now);
            }
            state => unreachable!("a FIN is not processed in {state:?}"),
        }
    }

    /// Enters TIME-WAIT: both directions are closed, but old segments may still arrive. RFC 9293 section 3.6.1.
    fn enter_time_wait(&mut self, now: Time) {
        self.machine.enter_time_wait();
        self.timers.start_time_wait(now, self.config.time_wait);
        self.reader.push_event(Event::Closed);
    }

    /// Restarts the timer of TIME-WAIT (2 MSL), because the peer retransmits its FIN: our acknowledgment was lost.
    /// RFC 9293 section 3.10.7.4, eighth.
    pub(crate) fn on_fin_retransmitted(&mut self, now: Time, segment: &Segment) {
        if self.machine.state() == State::TimeWait && segment.flags.contains(Flags::FIN) {
            self.timers.start_time_wait(now, self.config.time_wait);
        }
    }
}
