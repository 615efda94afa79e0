//! The configuration of an SCTP endpoint: every setting by which implementations differ.

use hol_base::{ByteCount, Duration};
use hol_congestion::sctp::CwndParameters;
use hol_transport::ConfigError;
use serde::{Deserialize, Serialize};

use crate::{Hash, Scheduler, StreamValues};

/// The configuration of an endpoint. A stack file sets every field; there are no defaults.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Config {
    /// Outbound streams requested (OS of INIT). RFC 9260 section 3.3.2.
    pub streams: u16,
    /// Inbound streams accepted (MIS of INIT). RFC 9260 section 3.3.2.
    pub max_inbound_streams: u16,
    /// Reduce OS and MIS of the INIT ACK, and of an INIT after a stale cookie, to the peer's limits; otherwise announce the configured
    /// values. By RFC 9260 section 5.1.1 both ends use the smaller numbers.
    pub init_ack_reduces_streams: bool,
    /// List the supported address types in INIT. RFC 9260 section 3.3.2.1.
    pub names_address_types: bool,
    /// Octets of the association's state in a cookie. The cookie has at least the length of this state, the peer's
    /// INIT and the host's addresses, rounded up to a multiple of 32 octets, plus 36 octets for a signature. 0: the
    /// cookie is no longer than needed. RFC 9260 section 5.1.3 does not specify the length.
    pub cookie_state: ByteCount,
    /// The largest IP packet in octets, limited by the network's MTU; 0: the network's MTU.
    pub mtu: ByteCount,
    /// Maximum octets of received user data that wait for earlier data or for the application; the initial a_rwnd. RFC
    /// 9260 section 6.
    pub receive_buffer: ByteCount,
    /// The limit of data that waits for acknowledgement or transmission, in octets.
    pub send_buffer: ByteCount,
    /// Octets in the send buffer for each chunk in addition to its user data.
    pub send_buffer_overhead: ByteCount,
    /// Let user data occupy the send buffer as in Linux: by the size of the memory block that stores them, until
    /// their whole message is acknowledged. A message of any length is accepted as long as there is any room.
    pub send_buffer_blocks: bool,
    /// With `send_buffer_blocks`, the size of the smallest memory block in octets; the larger blocks are powers of
    /// two.
    pub send_buffer_small_block: ByteCount,

    /// Fail for a message longer than the send buffer, instead of waiting for room. Linux: EMSGSIZE.
    pub send_buffer_bounds_messages: bool,

    /// RTO.Initial. RFC 9260 section 16.
    pub rto_initial: Duration,
    /// RTO.Min. RFC 9260 section 16.
    pub rto_min: Duration,
    /// RTO.Max. RFC 9260 section 16.
    pub rto_max: Duration,
    /// The smallest RTTVAR; at least a tick of the clock. RFC 9260 section 6.3.1 G1.
    pub rttvar_min: Duration,
    /// The tick of the clock for round-trip times and timers; `"0s"` is exact.
    pub clock_tick: Duration,
    /// Run timers in a hierarchical wheel: they expire late, by up to 1/8 of their length.
    pub timer_wheel: bool,

    /// The time from a packet's arrival to the application's read: interrupt, scheduler, system call.
    pub wakeup: Duration,

    /// SACK.Delay: the longest delay of a SACK. RFC 9260 section 6.2.
    pub sack_delay: Duration,
    /// Send a SACK after this number of packets with DATA: 2 in RFC 9260 section 6.2.
    pub sack_frequency: u32,
    /// Acknowledge at once when the last gap is filled. RFC 9260 section 6.2 refers to RFC 5681 section 4.2.
    pub sack_when_gap_closes: bool,
    /// Let only the last DATA chunk of a packet decide about an immediate SACK for a duplicate or the I bit;
    /// otherwise any chunk does. RFC 9260 section 6.2 permits either for duplicates among new chunks.
    pub sack_as_last_chunk_asks: bool,
    /// Bundle a delayed SACK with DATA. RFC 9260 section 6.1.
    pub bundle_sack_with_data: bool,
    /// Leave room in a message's first fragment: for a delayed SACK if nothing else is to be sent, and for a COOKIE ECHO of 200 octets
    /// before the association is established. Nagle's algorithm then delays only messages that are shorter than this fragment. RFC 9260
    /// section 6.10.
    pub fragments_leave_room: bool,
    /// The maximum distance of the TSN of an acceptable DATA or FORWARD TSN chunk from the cumulative TSN. SACKs can
    /// report at most 65535: RFC 9260 section 3.3.4.
    pub max_tsn_gap: u16,
    /// The largest number of gap ack blocks in a SACK, which RFC 9260 section 3.3.4 limits by the MTU.
    pub max_gap_blocks: u16,

    /// Delay a small packet while data is in flight (Nagle's algorithm). RFC 9260 section 6.1.
    pub nagle: bool,
    /// Send packets in trains of up to half of cwnd. Rules for one packet then apply to a train: Nagle's algorithm, the
    /// single packet of a fast retransmit, and bundling with a COOKIE ECHO. So DATA may be in a packet after the COOKIE
    /// ECHO, which RFC 9260 section 5.1 forbids.
    pub segmentation_offload: bool,
    /// Apply Nagle's algorithm to retransmissions, too.
    pub nagle_delays_retransmissions: bool,
    /// The number of miss indications that trigger a fast retransmit: 3 in RFC 9260 section 7.2.4, 4 in RFC 2960.
    pub missing_reports: u32,
    /// Fast-retransmit a chunk again if its fast retransmission is lost, as soon as data sent after that retransmission
    /// are acknowledged.
    pub fast_retransmit_again: bool,
    /// Count miss indications of a retransmission from the next SACK on, although it cannot have arrived yet. Otherwise only SACKs of data
    /// that were sent after it count. Has an effect with `fast_retransmit_again`.
    pub retransmissions_miss_at_once: bool,
    /// Let every fast retransmit in fast recovery ignore cwnd. RFC 9260 section 7.2.4 step 3 allows it only for the fast retransmit that
    /// starts the recovery.
    pub fast_retransmit_in_recovery: bool,
    /// Detect losses by time instead of by miss indications, and probe for the loss of the last packet: RACK-TLP, RFC 8985 with TSNs
    /// instead of sequence numbers.
    pub rack: bool,
    /// Restart T3-rtx at a fast retransmission of the earliest outstanding TSN. RFC 9260 section 7.2.4 step 4.
    pub fast_retransmit_restarts_t3: bool,
    /// Max.Burst in packets; 0: unlimited. RFC 9260 section 6.1.
    pub max_burst: u32,
    /// cwnd starts at min(4 * MTU, max(2 * MTU, this)): 4404 in RFC 9260 section 7.2.1, 4380 in RFC 4960.
    pub initial_window: ByteCount,
    /// cwnd starts at this number of MTUs; 0: `initial_window` applies. RFC 9260 section 7.2.1 allows at most 4.
    pub initial_window_packets: u32,
    /// The maximum by which a SACK enlarges cwnd in slow start, in MTUs: L in RFC 9260 section 7.2.1.
    pub slow_start_limit: u32,
    /// Enlarge cwnd only when the cumulative TSN advances. RFC 4960 section 7.2.1; RFC 9260 counts gap ack blocks, too.
    pub growth_needs_cumulative_tsn: bool,
    /// Leave cwnd and partial_bytes_acked unchanged in fast recovery; RFC 9260 section 7.2.1 excludes only slow start.
    pub fast_recovery_holds_window: bool,
    /// The smallest cwnd after a fast retransmit in MTUs: 4 in RFC 9260 section 7.2.3.
    pub fast_retransmit_window: u32,
    /// Let the last chunk exceed cwnd, as RFC 9260 section 6.1 B allows. Otherwise a chunk must fit, and cwnd counts as
    /// fully used when less than one MTU is free.
    pub last_chunk_exceeds_window: bool,
    /// Let Max.Burst reduce cwnd itself and raise ssthresh to the previous cwnd. RFC 9260 section 6.1 D also allows an implementation to
    /// limit only the number of packets.
    pub max_burst_lowers_window: bool,
    /// Set the I bit of DATA while cwnd is below this number of MTUs, so that the peer does not delay its SACK; 0: never. RFC 9260 section
    /// 6.2.
    pub immediate_sack_below: u32,
    /// The event at which the cwnd of an idle path is halved. RFC 9260 section 7.2.1.
    pub idle_decay: IdleDecay,

    /// Send data on all paths at the same time, each with its own window: concurrent multipath transfer.
    pub cmt: bool,

    /// Offer FORWARD TSN. RFC 3758.
    pub partial_reliability: bool,
    /// Process even an outdated FORWARD TSN, and count each one for the delayed SACK in addition to the DATA in its
    /// packet. By RFC 3758 section 3.6 an outdated FORWARD TSN is only acknowledged, and counts like DATA.
    pub forward_tsn_always_counts: bool,
    /// Let a SACK first abandon each message that has reached its limit (with `retransmissions=0` all messages in
    /// flight), and only then acknowledge the other messages. Messages abandoned like this neither open the window nor
    /// end a round-trip measurement, and their unsent fragments are dropped without a TSN. Otherwise a message that the
    /// SACK acknowledges is not abandoned, and a limit of retransmissions is reached when one more is due. RFC 3758
    /// section 3.5, RFC 7496 section 3.
    pub sack_checks_limits_first: bool,
    /// Offer I-DATA, with which messages of several streams may be interleaved. RFC 8260 section 2.
    pub interleaving: bool,
    /// Give the second fragment of an I-DATA message the FSN 0 at both ends, as in Linux; it is 1 in RFC 8260 section 2.1.
    pub second_fsn_is_zero: bool,
    /// The stream scheduler. RFC 8260 section 3.
    pub scheduler: Scheduler,
    /// Priorities or weights of the outgoing streams for the scheduler, as in `"7/0"`; `""` for none. RFC 8260 section 4.3.3.
    pub stream_values: StreamValues,
    /// Let fair schedulers count only the last fragment of a message that is not interleaved. RFC 8260 sections 3.5 and 3.6 refer to
    /// lengths of messages.
    pub fair_counts_last_fragment: bool,
    /// Offer RE-CONFIG, by which streams can be reset and added. RFC 6525 section 5.1.1.
    pub reconfig: bool,
    /// Accept a checksum of zero, and send it if the peer accepts it. Needs a lower layer that detects errors, as
    /// DTLS does: RFC 9653 section 6 defines no other method.
    pub zero_checksum: bool,
    /// Offer ECN, so that routers may mark packets instead of dropping them. RFC 4960 appendix A.
    pub ecn: bool,
    /// As the server, treat echoes of marks on DATA up to a random TSN as answered, so about half of all servers do not
    /// reduce their window. Otherwise only echoes before the initial TSN.
    pub ecn_answered_to_random_tsn: bool,

    /// Offer chunk authentication. RFC 4895.
    pub auth: bool,
    /// The hash with which the peer must authenticate; SHA-1 is accepted, too. RFC 4895 section 3.3.
    pub auth_hash: Hash,
    /// Offer dynamic address reconfiguration, by which associations survive a change of addresses. RFC 5061.
    pub addip: bool,
    /// Send one change per ASCONF; only the addition of an address is sent together with the deletion of the previous
    /// last address. If the peer rejects the deletion, only ASCONF chunks are sent until the next ASCONF is
    /// acknowledged, and the deletion is requested once more. Otherwise all changes are sent together (RFC 5061 section
    /// 4.1.1).
    pub asconf_apart: bool,
    /// Refuse to delete the address by which an ASCONF from an unknown address was looked up. RFC 5061 section 5.3.2.
    #[serde(alias = "asconf_keeps_lookup")]
    pub asconf_keeps_lookup_address: bool,
    /// If the peer deletes an address, count data in flight to it as sent to another address, where they wait for the
    /// T3-rtx timer or for miss indications. Otherwise these data are lost.
    pub deleted_flight_moves: bool,

    /// Send heartbeats to idle paths. RFC 9260 section 8.3.
    pub heartbeat: bool,
    /// Count a HEARTBEAT as the one measurement in progress (RFC 9260 section 6.3.1 C4): until it is answered, DATA
    /// does not measure the round trip, and the RTO stays backed off.
    pub heartbeat_holds_rtt: bool,
    /// Count an unanswered HEARTBEAT against the association although another path carries its data, and end
    /// an association that has reached its limit when a HEARTBEAT is due. By RFC 9260 section 8.1 it does not
    /// count, and the limit must be exceeded.
    pub heartbeat_fails_association: bool,
    /// Postpone the HEARTBEAT of a path also when lost data must wait for the congestion window; by RFC 9260 section 8.3 only data that
    /// are sent postpone it.
    pub lost_data_delay_heartbeats: bool,
    /// HB.interval. RFC 9260 section 16.
    pub hb_interval: Duration,
    /// Path.Max.Retrans. RFC 9260 section 8.2.
    pub path_max_retrans: u32,
    /// Send SACKs and other replies to the active path if the path of the received chunk has failed or is potentially
    /// failed; by RFC 9260 section 6.4 replies go to the address that they answer.
    pub replies_avoid_failed_path: bool,
    /// PotentiallyFailed.Max.Retrans; values from `path_max_retrans` on disable the potentially failed state. RFC
    /// 7829 section 3.
    pub pf_threshold: u32,
    /// Let only a HEARTBEAT ACK end the potentially failed state; RFC 7829 section 3.2 lets a SACK end it, too.
    pub pf_until_heartbeat_ack: bool,
    /// Association.Max.Retrans. RFC 9260 section 8.1.
    pub association_max_retrans: u32,
    /// Max.Init.Retransmits. RFC 9260 section 4.
    pub max_init_retransmits: u32,
    /// Send a lost COOKIE ECHO to the peer's next address, like an INIT, as RFC 9260 section 5.1 recommends.
    pub cookie_echo_tries_all_paths: bool,
    /// Answer the COOKIE ECHO at its source address, as RFC 9260 section 5.4 requires; otherwise at that of the INIT.
    pub cookie_ack_to_source: bool,
    /// Abort the association if an expected INIT ACK or SHUTDOWN COMPLETE is bundled with other chunks; otherwise ignore it. RFC 9260
    /// section 6.10.
    pub bundled_handshake_aborts: bool,
    /// Valid.Cookie.Life. RFC 9260 section 5.1.3.
    pub valid_cookie_life: Duration,
}

/// When the window of an idle path is halved.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum IdleDecay {
    /// Never.
    Never,
    /// Once per RTO without DATA, as in RFC 9260 section 7.2.1.
    Rto,
    /// Whenever a heartbeat is due.
    Heartbeat,
}

/// Ethernet's MTU, used if no other is known.
pub(crate) const ETHERNET_MTU: u64 = 1500;

impl Config {
    /// Returns the configuration for a network with this MTU, in octets.
    #[must_use]
    pub fn with_network_mtu(&self, network: u64) -> Self {
        let mtu = if self.mtu.0 == 0 { network } else { self.mtu.0.min(network) };
        Self { mtu: ByteCount(mtu), ..self.clone() }
    }

    /// Returns the rules of the endpoint's congestion windows.
    pub(crate) fn cwnd_parameters(&self) -> CwndParameters {
        let mtus = |count: u32| u64::from(count) * self.mtu.0;
        let rules = CwndParameters::rfc9260(self.mtu.0, self.initial_window.0);
        CwndParameters {
            initial: if self.initial_window_packets > 0 {
                mtus(self.initial_window_packets)
            } else {
                rules.initial
            },
            slow_start_limit: mtus(self.slow_start_limit),
            min_after_fast_retransmit: mtus(self.fast_retransmit_window),
            slack: if self.last_chunk_exceeds_window { 0 } else { self.mtu.0 },
            ..rules
        }
    }

    /// Checks the configuration; the error names a value that no endpoint could work with.
    pub fn check(&self) -> Result<(), ConfigError> {
        ConfigError::check([
            (self.streams > 0, "streams", "must be between 1 and 65535"),
            (self.max_inbound_streams > 0, "max_inbound_streams", "must be between 1 and 65535"),
            (
                self.mtu.0 == 0 || self.mtu.0 >= 512,
                "mtu",
                "must be at least 512B: an INIT ACK with its cookie is not fragmented",
            ),
            (
                self.receive_buffer.0 >= 1500,
                "receive_buffer",
                "must be at least 1500B (RFC 9260 section 3.3.2)",
            ),
            (self.send_buffer.0 > 0, "send_buffer", "must be larger than zero"),
            (self.rto_max >= Duration::from_millis(1), "rto_max", "must be at least 1ms"),
            (self.rto_min <= self.rto_max, "rto_min", "must be at most rto_max"),
            (!self.rto_initial.is_zero(), "rto_initial", "must be longer than 0s"),
            (self.rto_initial <= self.rto_max, "rto_initial", "must be at most rto_max"),
            (self.sack_frequency > 0, "sack_frequency", "must be at least 1"),
            (self.max_tsn_gap > 0, "max_tsn_gap", "must be at least 1"),
            (self.max_gap_blocks > 0, "max_gap_blocks", "must be at least 1"),
            (self.missing_reports > 0, "missing_reports", "must be at least 1"),
            (self.initial_window.0 > 0, "initial_window", "must be at least 1B"),
            (self.slow_start_limit > 0, "slow_start_limit", "must be at least 1"),
            (self.fast_retransmit_window > 0, "fast_retransmit_window", "must be at least 1"),
            (
                self.auth || !self.addip,
                "addip",
                "needs auth: an ASCONF must be authenticated (RFC 5061 section 4.1.1); add auth=true",
            ),
            (
                self.scheduler.has_values() || self.stream_values.is_empty(),
                "stream_values",
                "apply only to scheduler=prio and scheduler=wfq",
            ),
            (
                self.scheduler != Scheduler::Wfq || !self.stream_values.has_zero(),
                "stream_values",
                "are weights for scheduler=wfq and must be at least 1",
            ),
            (self.hb_interval >= Duration::from_millis(1), "hb_interval", "must be at least 1ms"),
        ])
    }
}
