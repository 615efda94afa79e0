//! A path: one address of the peer, with its window, its timer and its health.

use hol_base::{Duration, Time};
use hol_congestion::sctp::Window;
use hol_transport::{PathState, PathStatus};
use hol_wire::Address;
use hol_wire::sctp::Tsn;

use crate::Config;
use crate::clock::Clock;
use crate::rtt::RttEstimator;

/// One of the peer's transport addresses. RFC 9260 section 6.4.
#[derive(Debug)]
pub struct Path {
    pub(crate) address: Address,
    /// Our address for packets to it.
    pub(crate) source: Address,
    pub(crate) status: PathStatus,
    /// The address of ours from which it was reached is gone.
    pub(crate) stranded: bool,
    /// The peer added it by ASCONF: it carries no DATA before it is confirmed. RFC 5061 section 5.3 F1.
    pub(crate) added: bool,
    /// We were told to open to it, so we need not ask whose it is. RFC 9260 section 5.4, rule 1.
    pub(crate) told: bool,
    /// The peer deleted it by ASCONF. RFC 5061 section 5.3 F13.
    pub(crate) deleted: bool,
    /// The peer has answered from here. RFC 9260 section 5.4.
    pub(crate) confirmed: bool,
    pub(crate) window: Window,
    /// Octets of user data in flight.
    pub(crate) flight_size: u64,
    /// Octets that were in flight on another path when the peer deleted that, and wait for this one's T3-rtx.
    pub(crate) inherited: u64,
    pub(crate) rtt: RttEstimator,
    /// A chunk that measures the round trip is in flight. RFC 9260 section 6.3.1 C4.
    pub(crate) rtt_pending: bool,
    pub(crate) error_count: u32,
    pub(crate) t3_rtx: Option<Time>,
    pub(crate) heartbeat_due: Option<Time>,
    /// The nonce of the heartbeat that waits for its acknowledgement.
    pub(crate) heartbeat: Option<u64>,
    /// When DATA left last.
    pub(crate) last_sent: Time,
    /// When an echo of a mark last reduced the window.
    pub(crate) last_reduced: Option<Time>,
    /// Fast recovery ends when this is acknowledged. RFC 9260 section 7.2.4.
    pub(crate) fast_recovery: Option<Tsn>,
    /// The newest TSN on this path that the present SACK acknowledges for the first time.
    pub(crate) newest_acked: Option<Tsn>,
    /// Octets that the SACK in hand acknowledges for the first time.
    pub(crate) newly_acked: u64,
    /// The SACK in hand moves the earliest outstanding TSN, or shows that the peer reneged.
    pub(crate) restart_t3: bool,
}

impl Path {
    pub(crate) fn new(
        config: &Config,
        clock: Clock,
        address: Address,
        source: Address,
        ssthresh: u64,
    ) -> Self {
        Self {
            address,
            source,
            status: PathStatus::Inactive,
            stranded: false,
            added: false,
            told: false,
            deleted: false,
            confirmed: false,
            window: Window::new(config.mtu.0, config.initial_window.0, ssthresh),
            flight_size: 0,
            inherited: 0,
            rtt: RttEstimator::new(config, clock),
            rtt_pending: false,
            error_count: 0,
            t3_rtx: None,
            heartbeat_due: None,
            heartbeat: None,
            last_sent: Time::ZERO,
            last_reduced: None,
            fast_recovery: None,
            newest_acked: None,
            newly_acked: 0,
            restart_t3: false,
        }
    }

    /// It is verified, or was never asked to be. RFC 5061 section 5.3 F1.
    pub(crate) fn may_carry_data(&self) -> bool {
        self.confirmed || !self.added
    }

    /// Whether what comes from it may be answered there with more than HEARTBEAT ACK and COOKIE ACK: not before it is verified.
    /// RFC 9260 section 5.4; one that was added has rules of its own.
    pub(crate) fn may_be_answered(&self) -> bool {
        self.confirmed || self.told || self.added
    }

    /// Octets are no longer in flight: the window's, or what was inherited.
    pub(crate) fn land(&mut self, size: u64, inherited: bool) {
        if inherited { self.inherited -= size } else { self.flight_size -= size }
    }

    /// Something in flight waits for T3-rtx.
    pub(crate) fn has_flight(&self) -> bool {
        self.flight_size + self.inherited > 0
    }

    /// Nothing is expected from it any more.
    pub(crate) fn silence(&mut self) {
        (self.t3_rtx, self.heartbeat_due, self.heartbeat) = (None, None, None);
    }

    /// The peer's address.
    pub fn address(&self) -> Address {
        self.address
    }

    /// Whether it is in use; an address that the peer has not yet answered from is inactive.
    pub fn status(&self) -> PathStatus {
        self.status
    }

    /// Congestion window in octets.
    pub fn cwnd(&self) -> u64 {
        self.window.cwnd()
    }

    /// Slow start threshold in octets.
    pub fn ssthresh(&self) -> u64 {
        self.window.ssthresh()
    }

    /// Octets of user data sent to this address and not yet acknowledged.
    pub fn flight_size(&self) -> u64 {
        self.flight_size
    }

    /// Smoothed round trip time; `None` before the first measurement.
    pub fn srtt(&self) -> Option<Duration> {
        self.rtt.srtt()
    }

    /// Retransmission timeout, back-off included.
    pub fn rto(&self) -> Duration {
        self.rtt.rto()
    }

    /// How its congestion control stands. RFC 9260 section 7.2: what SCTP counts is octets of user data.
    pub(crate) fn state(&self) -> PathState {
        PathState {
            peer: self.address,
            cwnd: Some(self.cwnd()),
            ssthresh: Some(self.ssthresh()),
            srtt: self.srtt(),
            pacing_rate: None,
            in_flight: Some(self.flight_size),
        }
    }

    /// Timeouts in a row. RFC 9260 section 8.2.
    pub fn error_count(&self) -> u32 {
        self.error_count
    }
}

/// On one network, as the worlds number them (of 256 addresses, or with a prefix of 64 bits): what leaves for one comes from the other.
pub(crate) fn are_neighbours(one: Address, other: Address) -> bool {
    match (one, other) {
        (Address::V4(one), Address::V4(other)) => one.octets()[..3] == other.octets()[..3],
        (Address::V6(one), Address::V6(other)) => one.octets()[..8] == other.octets()[..8],
        _ => false,
    }
}

/// The paths of an association and which of them are in use.
#[derive(Debug, Default)]
pub(crate) struct Paths {
    pub(crate) list: Vec<Path>,
    /// Where new data goes while it works: the address that became known first, or that the peer asked for. RFC 9260
    /// section 6.4, RFC 5061 section 5.4.
    pub(crate) primary: usize,
    /// Where new data goes now.
    pub(crate) active: usize,
    /// Where retransmissions go. RFC 9260 section 6.4.1.
    pub(crate) retransmission: usize,
}

impl Paths {
    pub(crate) fn index_of(&self, address: Address) -> Option<usize> {
        self.list.iter().position(|path| path.address == address && !path.deleted)
    }

    /// Addresses that the peer has.
    pub(crate) fn count(&self) -> usize {
        self.list.iter().filter(|path| !path.deleted).count()
    }

    /// The peer has deleted it, and has not added it again.
    pub(crate) fn is_deleted(&self, address: Address) -> bool {
        self.index_of(address).is_none() && self.list.iter().any(|path| path.address == address)
    }

    /// The earliest of all paths' timers.
    pub(crate) fn deadline(&self) -> Option<Time> {
        let earlier = |first, path: &Path| Time::earliest([first, path.t3_rtx, path.heartbeat_due]);
        self.list.iter().fold(None, earlier)
    }

    /// Chooses again after a path changed: the primary if it works, else the best there is.
    /// RFC 9260 section 6.4, RFC 7829 section 3.2.
    pub(crate) fn select(&mut self) {
        if self.list.is_empty() {
            return;
        }
        let best = (0..self.list.len()).min_by_key(|index| self.badness(*index));
        self.active =
            if self.badness(self.primary).0 == 0 { self.primary } else { best.unwrap_or(self.primary) };
        self.retransmission = self.next_active(self.active).unwrap_or(self.active);
    }

    /// T3-rtx expired on `path`: a retransmission that went there tries another. RFC 9260 section 6.4.1.
    pub(crate) fn on_timeout(&mut self, path: usize) {
        let only_choice = self.active == path && self.badness(path).0 == 0;
        if self.retransmission == path && !only_choice {
            self.retransmission = self.next_active(path).unwrap_or(self.active);
        }
    }

    /// The next active path behind `path`, going round.
    pub(crate) fn next_active(&self, path: usize) -> Option<usize> {
        let count = self.list.len();
        (1..count).map(|step| (path + step) % count).find(|index| self.badness(*index).0 == 0)
    }

    /// The next behind `path`, going round, that we were told to open to.
    pub(crate) fn next_told(&self, path: usize) -> usize {
        let count = self.list.len();
        (1..=count).map(|step| (path + step) % count).find(|index| self.list[*index].told).unwrap_or(path)
    }

    /// State first, then errors, then the order of addresses.
    fn badness(&self, index: usize) -> (u8, u32, usize) {
        let path = &self.list[index];
        let state = match path.status {
            _ if path.deleted => 5,
            _ if path.stranded => 4,
            PathStatus::Active => 0,
            PathStatus::PotentiallyFailed => 1,
            PathStatus::Inactive if path.confirmed => 2,
            PathStatus::Inactive => 3,
        };
        (state, path.error_count, index)
    }
}
