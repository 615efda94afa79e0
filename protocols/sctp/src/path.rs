//! A path: one address of the peer, with its congestion window, its timer and its state.

use hol_base::{Duration, Time};
use hol_congestion::sctp::Window;
use hol_transport::{PathState, PathStatus};
use hol_wire::Address;
use hol_wire::sctp::Tsn;

use crate::Config;
use crate::clock::Clock;
use crate::rack::Rack;
use crate::rtt::RttEstimator;

/// The path to one of the peer's transport addresses. RFC 9260 section 6.4.
#[derive(Debug)]
pub struct Path {
    pub(crate) address: Address,
    /// The source address of packets on this path.
    pub(crate) source: Address,
    pub(crate) status: PathStatus,
    /// Whether the host has lost the source address of this path and has no other address to use.
    pub(crate) stranded: bool,
    /// Whether the peer added the address by ASCONF; the path then carries no DATA until it is confirmed. RFC 5061
    /// section 5.3 F1.
    pub(crate) added: bool,
    /// Whether the application gave the address. Such an address needs no verification. RFC 9260 section 5.4, rule
    /// 1.
    pub(crate) is_from_application: bool,
    /// Whether the peer deleted the address by ASCONF. RFC 5061 section 5.3 F13.
    pub(crate) deleted: bool,
    /// Whether the path is confirmed: the peer has answered from this address. RFC 9260 section 5.4.
    pub(crate) confirmed: bool,
    pub(crate) window: Window,
    /// Number of octets of user data in flight.
    pub(crate) flight_size: u64,
    /// Octets that were in flight on a path that the peer deleted, and are now retransmitted when T3-rtx of this
    /// path expires.
    pub(crate) inherited_flight_size: u64,
    pub(crate) rtt: RttEstimator,
    /// Whether a chunk is in flight that measures the round-trip time. RFC 9260 section 6.3.1 C4.
    pub(crate) rtt_pending: bool,
    /// Number of consecutive timeouts and unanswered heartbeats. RFC 9260 section 8.2.
    pub(crate) error_count: u32,
    /// When T3-rtx expires; `None` if it does not run.
    pub(crate) t3_rtx: Option<Time>,
    /// When the next HEARTBEAT is due.
    pub(crate) heartbeat_due: Option<Time>,
    /// The nonce of the HEARTBEAT that has not been answered.
    pub(crate) heartbeat: Option<u64>,
    /// The time at which DATA was last sent.
    pub(crate) last_sent: Time,
    /// The time at which an ECN echo last reduced the window.
    pub(crate) last_ecn_reduction: Option<Time>,
    /// The TSN whose acknowledgement ends fast recovery. RFC 9260 section 7.2.4.
    pub(crate) fast_recovery: Option<Tsn>,
    /// The newest TSN on this path that the current SACK newly acknowledges.
    pub(crate) newest_acked: Option<Tsn>,
    /// Number of octets that the current SACK newly acknowledges.
    pub(crate) newly_acked: u64,
    pub(crate) rack: Rack,
    /// Whether the current SACK acknowledges the earliest outstanding TSN, or shows reneging, so that T3-rtx
    /// restarts.
    pub(crate) restarts_t3: bool,
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
            is_from_application: false,
            deleted: false,
            confirmed: false,
            window: Window::new(config.cwnd_parameters(), ssthresh),
            flight_size: 0,
            inherited_flight_size: 0,
            rtt: RttEstimator::new(config, clock),
            rtt_pending: false,
            error_count: 0,
            t3_rtx: None,
            heartbeat_due: None,
            heartbeat: None,
            last_sent: Time::ZERO,
            last_ecn_reduction: None,
            fast_recovery: None,
            newest_acked: None,
            newly_acked: 0,
            rack: Rack::default(),
            restarts_t3: false,
        }
    }

    /// Returns whether the path may carry DATA, because it is confirmed or needs no confirmation. RFC 5061 section 5.3
    /// F1.
    pub(crate) fn may_carry_data(&self) -> bool {
        self.confirmed || !self.added
    }

    /// Returns whether chunks other than HEARTBEAT ACK and COOKIE ACK may be sent on the path: only if it is
    /// confirmed (RFC 9260 section 5.4), or if the peer added its address by ASCONF, which has rules of its own.
    pub(crate) fn may_be_answered(&self) -> bool {
        self.confirmed || self.is_from_application || self.added
    }

    /// Subtracts octets from the data in flight or, with `inherited`, from the data moved from a deleted path.
    pub(crate) fn remove_in_flight(&mut self, size: u64, inherited: bool) {
        if inherited { self.inherited_flight_size -= size } else { self.flight_size -= size }
    }

    /// Returns whether data are in flight for which T3-rtx must run.
    pub(crate) fn has_flight(&self) -> bool {
        self.flight_size + self.inherited_flight_size > 0
    }

    /// Stops the timers of the path, because no more answers are expected on it.
    pub(crate) fn stop_timers(&mut self) {
        (self.t3_rtx, self.heartbeat_due, self.heartbeat) = (None, None, None);
        self.rack.stop();
    }

    /// Returns the peer's address.
    pub fn address(&self) -> Address {
        self.address
    }

    /// Returns the status of the path. An address is inactive until the peer has answered from it.
    pub fn status(&self) -> PathStatus {
        self.status
    }

    /// Returns the congestion window in octets.
    pub fn cwnd(&self) -> u64 {
        self.window.cwnd()
    }

    /// Returns the slow start threshold in octets.
    pub fn ssthresh(&self) -> u64 {
        self.window.ssthresh()
    }

    /// Returns the number of octets of user data that were sent to this address and have not been acknowledged.
    pub fn flight_size(&self) -> u64 {
        self.flight_size
    }

    /// Returns the smoothed round-trip time; `None` before the first measurement.
    pub fn srtt(&self) -> Option<Duration> {
        self.rtt.srtt()
    }

    /// Returns the retransmission timeout, including back-off.
    pub fn rto(&self) -> Duration {
        self.rtt.rto()
    }

    /// Returns the state of the path's congestion control; sizes are in octets of user data. RFC 9260 section 7.2.
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

    /// Returns the number of consecutive timeouts and unanswered heartbeats. RFC 9260 section 8.2.
    pub fn error_count(&self) -> u32 {
        self.error_count
    }
}

/// Returns whether two addresses are in the same network, one of 256 IPv4 addresses or with an IPv6 prefix of 64
/// bits. Packets to the peer's address are sent from our address in the same network.
pub(crate) fn are_in_same_network(one: Address, other: Address) -> bool {
    match (one, other) {
        (Address::V4(one), Address::V4(other)) => one.octets()[..3] == other.octets()[..3],
        (Address::V6(one), Address::V6(other)) => one.octets()[..8] == other.octets()[..8],
        _ => false,
    }
}

/// The paths of an association, and which of them carry new data and retransmissions.
#[derive(Debug, Default)]
pub(crate) struct Paths {
    pub(crate) list: Vec<Path>,
    /// The path that new data take while it is active: the path to the first known address, or to the one that the
    /// peer requested. RFC 9260 section 6.4, RFC 5061 section 5.4.
    pub(crate) primary: usize,
    /// The path that new data take now.
    pub(crate) active: usize,
    /// The path that retransmissions take. RFC 9260 section 6.4.1.
    pub(crate) retransmission: usize,
}

impl Paths {
    pub(crate) fn index_of(&self, address: Address) -> Option<usize> {
        self.list.iter().position(|path| path.address == address && !path.deleted)
    }

    /// Returns the number of the peer's addresses.
    pub(crate) fn count(&self) -> usize {
        self.list.iter().filter(|path| !path.deleted).count()
    }

    /// Returns whether the peer has deleted an address and has not added it again.
    pub(crate) fn is_deleted(&self, address: Address) -> bool {
        self.index_of(address).is_none() && self.list.iter().any(|path| path.address == address)
    }

    /// Returns the earliest deadline of the timers of all paths.
    pub(crate) fn deadline(&self) -> Option<Time> {
        let earlier = |first, path: &Path| {
            Time::earliest([first, path.t3_rtx, path.heartbeat_due, path.rack.deadline()])
        };
        self.list.iter().fold(None, earlier)
    }

    /// Selects the path of new data after the state of a path has changed: the primary path if it is active,
    /// otherwise the best one. RFC 9260 section 6.4, RFC 7829 section 3.2.
    pub(crate) fn select(&mut self) {
        if self.list.is_empty() {
            return;
        }
        let best = (0..self.list.len()).min_by_key(|index| self.rank(*index));
        self.active =
            if self.rank(self.primary).0 == 0 { self.primary } else { best.unwrap_or(self.primary) };
        self.retransmission = self.next_active(self.active).unwrap_or(self.active);
    }

    /// Selects another path for retransmissions if T3-rtx expired on the current one. RFC 9260 section 6.4.1.
    pub(crate) fn on_timeout(&mut self, path: usize) {
        let only_choice = self.active == path && self.rank(path).0 == 0;
        if self.retransmission == path && !only_choice {
            self.retransmission = self.next_active(path).unwrap_or(self.active);
        }
    }

    /// Returns the next active path after `path`, wrapping around; `None` if there is none.
    pub(crate) fn next_active(&self, path: usize) -> Option<usize> {
        let count = self.list.len();
        (1..count).map(|step| (path + step) % count).find(|index| self.rank(*index).0 == 0)
    }

    /// Returns the next path after `path`, wrapping around, whose address the application gave.
    pub(crate) fn next_application_path(&self, path: usize) -> usize {
        let count = self.list.len();
        (1..=count)
            .map(|step| (path + step) % count)
            .find(|index| self.list[*index].is_from_application)
            .unwrap_or(path)
    }

    /// Returns the sort key of a path: state, then errors, then the order of addresses. The best path has the
    /// smallest key.
    fn rank(&self, index: usize) -> (u8, u32, usize) {
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
