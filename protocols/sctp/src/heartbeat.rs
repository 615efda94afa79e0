//! Heartbeats: test whether a path works, and measure its round-trip time. RFC 9260 sections 8.3 and 5.4.

use bytes::Bytes;
use hol_base::{Duration, Time};
use hol_transport::PathStatus;
use hol_wire::sctp::Chunk;

use crate::Endpoint;
use crate::config::IdleDecay;
use crate::state::State;

/// Length of our Heartbeat Information in octets: the path, the time, the nonce, and zeros up to the length in
/// Linux (sctp_sender_hb_info). The length affects how many data fit into the same packet.
const INFO_LENGTH: usize = 52;

impl Endpoint {
    /// Returns the time between two HEARTBEATs on a path, without jitter: half of the RTO, plus HB.interval unless
    /// the path is unconfirmed or potentially failed; at least 200 ms. RFC 9260 section 8.3.
    fn heartbeat_period(&self, path: usize) -> Duration {
        let path = &self.paths.list[path];
        let urgent = !path.confirmed || path.status == PathStatus::PotentiallyFailed;
        let interval = if urgent { Duration::ZERO } else { self.config.hb_interval };
        (path.rto() / 2 + interval).max(Duration::from_millis(200))
    }

    pub(crate) fn schedule_heartbeat(&mut self, now: Time, path: usize) {
        let rto = self.paths.list[path].rto().as_nanos();
        let jitter = Duration::from_nanos(self.rng.below(rto.max(1)));
        let due = self.clock.expiry(now, self.heartbeat_period(path) + jitter);
        self.paths.list[path].heartbeat_due = Some(due);
    }

    /// Sends the HEARTBEAT that is due on a path, or postpones it if the path has carried DATA recently.
    pub(crate) fn on_heartbeat_due(&mut self, now: Time, path: usize) {
        if !matches!(self.state, State::Established | State::ShutdownPending | State::ShutdownReceived) {
            return;
        }
        let idle = self.clock.between(self.paths.list[path].last_sent, now);
        let period = self.heartbeat_period(path);
        if idle < period {
            let due = self.clock.expiry(now, period.saturating_sub(idle));
            self.paths.list[path].heartbeat_due = Some(due);
            return;
        }
        if self.config.heartbeat || !self.paths.list[path].confirmed {
            if self.error_count >= self.config.association_max_retrans && self.heartbeat_fails(path) {
                return self.on_association_max_retrans();
            }
            self.send_heartbeat(now, path);
        }
        if self.config.idle_decay == IdleDecay::Heartbeat {
            self.paths.list[path].window.on_idle();
        }
        self.schedule_heartbeat(now, path);
    }

    /// Returns whether an association whose error count has reached its limit ends now that a HEARTBEAT is due:
    /// with `heartbeat_fails_association` always, otherwise only if the last HEARTBEAT on the active path was not
    /// answered. RFC 9260 section 8.1.
    fn heartbeat_fails(&self, path: usize) -> bool {
        let unanswered = path == self.paths.active && self.paths.list[path].heartbeat.is_some();
        unanswered || self.config.heartbeat_fails_association
    }

    /// Sends a HEARTBEAT on a path at once. RFC 9260 section 5.4.
    pub(crate) fn probe(&mut self, now: Time, path: usize) {
        self.paths.list[path].heartbeat = None;
        self.send_heartbeat(now, path);
        self.schedule_heartbeat(now, path);
    }

    /// Sends a HEARTBEAT. If the previous one was not answered, counts an error of the path (RFC 9260 section
    /// 8.2). If the path is confirmed (RFC 9260 section 5.4), this is also an error of the association (RFC 9260
    /// section 8.1) on the active path and, with `heartbeat_fails_association`, on every path.
    fn send_heartbeat(&mut self, now: Time, path: usize) {
        if self.paths.list[path].heartbeat.is_some() {
            let carries_data = path == self.paths.active || self.config.heartbeat_fails_association;
            let fails = carries_data && self.paths.list[path].confirmed;
            self.error_count += u32::from(fails);
            self.count_path_timeout(now, path);
        }
        let nonce = self.secret.derive_number(self.rng.next_u64());
        self.paths.list[path].heartbeat = Some(nonce);
        self.paths.list[path].rtt_pending |= self.config.heartbeat_holds_rtt;
        let mut info = Vec::with_capacity(INFO_LENGTH);
        info.extend_from_slice(&(path as u32).to_be_bytes());
        info.extend_from_slice(&now.as_nanos().to_be_bytes());
        info.extend_from_slice(&nonce.to_be_bytes());
        info.resize(INFO_LENGTH, 0);
        self.control.push_back((Some(path), Chunk::Heartbeat(info.into())));
    }

    /// Answers a HEARTBEAT with a HEARTBEAT ACK to its source. RFC 9260 section 8.3.
    pub(crate) fn on_heartbeat(&mut self, path: usize, info: Bytes) {
        if self.state.is_established_or_shutting_down() || self.state == State::CookieEchoed {
            self.control.push_back((Some(path), Chunk::HeartbeatAck(info)));
        }
    }

    pub(crate) fn on_heartbeat_ack(&mut self, now: Time, info: &[u8]) {
        let Ok(info) = <&[u8; INFO_LENGTH]>::try_from(info) else { return };
        let word = |at: usize| info[at..at + 8].iter().fold(0, |word, byte| word << 8 | u64::from(*byte));
        let index = u32::from_be_bytes([info[0], info[1], info[2], info[3]]) as usize;
        let (sent, nonce) = (Time::from_nanos(word(4)), word(12));
        if sent > now {
            // The nonce is not that of our last HEARTBEAT.
            return;
        }
        let Some(path) = self.paths.list.get_mut(index).filter(|path| !path.deleted) else { return };
        if path.heartbeat.take_if(|waits| *waits == nonce).is_none() {
            return;
        }
        path.error_count = 0;
        path.rtt.add_sample(self.clock.tick_of(now) - self.clock.tick_of(sent));
        path.rack.measured = true;
        path.rtt_pending &= !self.config.heartbeat_holds_rtt;
        if self.state == State::Established {
            self.error_count = 0;
        }
        self.set_path_status(index, PathStatus::Active);
        self.schedule_heartbeat(now, index);
    }

    /// Halves the congestion window of a path once for each RTO without DATA on it. RFC 9260 section 7.2.1.
    pub(crate) fn decay_if_idle(&mut self, now: Time, path: usize) {
        if self.config.idle_decay != IdleDecay::Rto {
            return;
        }
        let floor = 4 * self.config.mtu.0;
        let path = &mut self.paths.list[path];
        let rto = path.rto().as_nanos().max(1);
        let mut periods = now.saturating_since(path.last_sent).as_nanos() / rto;
        while periods > 0 && path.flight_size == 0 && path.cwnd() > floor {
            path.window.on_idle();
            periods -= 1;
        }
    }
}
