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
    /// Number of outbound streams to request (OS of INIT). RFC 9260 section 3.3.2.
    pub streams: u16,
    /// Maximum number of inbound streams to accept (MIS of INIT). RFC 9260 section 3.3.2.
    pub max_inbound_streams: u16,
    /// In an INIT ACK, and in an INIT after a stale cookie, reduce OS and MIS to the peer's limits; otherwise
    /// announce the configured values. By RFC 9260 section 5.1.1 both ends use the smaller numbers anyway.
    pub init_ack_reduces_streams: bool,
    /// List the supported address types in INIT. RFC 9260 section 3.3.2.1.
    pub names_address_types: bool,
    /// Length in octets of the association's state in a cookie. A cookie is at least as long as this state, the
    /// peer's INIT and the host's addresses together, rounded up to a multiple of 32 octets, plus 36 octets for a
    /// signature. 0: the cookie has the minimum length. RFC 9260 section 5.1.3 does not specify the length.
    pub cookie_state: ByteCount,
    /// Maximum length of an IP packet in octets, also limited by the network's MTU; 0: only by the network's MTU.
    pub mtu: ByteCount,
    /// Maximum number of octets of received user data that wait for earlier data or for the application. It is the
    /// initial a_rwnd. RFC 9260 section 6.
    pub receive_buffer: ByteCount,
    /// Maximum number of octets in the send buffer, which wait for transmission or acknowledgement.
    pub send_buffer: ByteCount,
    /// Octets that each chunk occupies in the send buffer in addition to its user data.
    pub send_buffer_overhead: ByteCount,
    /// Count the use of the send buffer as Linux does: user data occupy the memory block that stores them until
    /// their whole message is acknowledged. A message of any length is accepted as long as there is any room.
    pub send_buffer_blocks: bool,
    /// With `send_buffer_blocks`, the size of the smallest memory block in octets; the larger blocks are powers of
    /// two.
    pub send_buffer_small_block: ByteCount,

    /// Refuse a message that is longer than the send buffer, instead of waiting for room. Linux: EMSGSIZE.
    pub send_buffer_bounds_messages: bool,

    /// RTO.Initial: the RTO before the first measurement. RFC 9260 section 16.
    pub rto_initial: Duration,
    /// RTO.Min: the minimum RTO. RFC 9260 section 16.
    pub rto_min: Duration,
    /// RTO.Max: the maximum RTO. RFC 9260 section 16.
    pub rto_max: Duration,
    /// Minimum of RTTVAR, at least a tick of the clock. RFC 9260 section 6.3.1 G1.
    pub rttvar_min: Duration,
    /// Length of a tick of the clock for round-trip times and timers; `"0s"` means an exact clock.
    pub clock_tick: Duration,
    /// Run timers in a hierarchical timer wheel: they expire late, by up to 1/8 of their duration.
    pub timer_wheel: bool,

    /// Time from a packet's arrival until the application reads its data: interrupt, scheduler, system call.
    pub wakeup: Duration,

    /// SACK.Delay: the maximum delay of a SACK. RFC 9260 section 6.2.
    pub sack_delay: Duration,
    /// Send a SACK after this number of packets with DATA: 2 in RFC 9260 section 6.2.
    pub sack_frequency: u32,
    /// Send a SACK at once when the last gap is filled. RFC 9260 section 6.2 refers to RFC 5681 section 4.2.
    pub sack_when_gap_closes: bool,
    /// For an immediate SACK because of a duplicate or the I bit, consider only the last DATA chunk of a packet;
    /// otherwise any of its chunks is enough. RFC 9260 section 6.2 permits either if a duplicate is bundled with
    /// new chunks.
    pub sack_as_last_chunk_asks: bool,
    /// Bundle a delayed SACK with DATA. RFC 9260 section 6.1.
    pub bundle_sack_with_data: bool,
    /// Leave room in a message's first fragment: for a delayed SACK if no other data are queued, and for a COOKIE
    /// ECHO of 200 octets before the association is established. Nagle's algorithm then delays only messages that
    /// are shorter than this fragment. RFC 9260 section 6.10.
    pub fragments_leave_room: bool,
    /// Maximum distance of the TSN of a DATA or FORWARD TSN chunk from the cumulative TSN; chunks beyond it are
    /// dropped. SACKs can report at most 65535: RFC 9260 section 3.3.4.
    pub max_tsn_gap: u16,
    /// Maximum number of gap ack blocks in a SACK. RFC 9260 section 3.3.4 limits it only by the MTU.
    pub max_gap_blocks: u16,

    /// Delay a small packet while data are in flight (Nagle's algorithm). RFC 9260 section 6.1.
    pub nagle: bool,
    /// Send packets in trains of up to half of cwnd. Rules for one packet then apply to a train: Nagle's
    /// algorithm, the single packet of a fast retransmit, and bundling with a COOKIE ECHO. So a packet with DATA
    /// may follow the one with the COOKIE ECHO, which RFC 9260 section 5.1 forbids.
    pub segmentation_offload: bool,
    /// Apply Nagle's algorithm to retransmissions, too.
    pub nagle_delays_retransmissions: bool,
    /// Number of miss indications that trigger a fast retransmit: 3 in RFC 9260 section 7.2.4, 4 in RFC 2960.
    pub missing_reports: u32,
    /// Fast-retransmit a chunk again if its fast retransmission is lost: when data that were sent after it are
    /// acknowledged.
    pub fast_retransmit_again: bool,
    /// Count miss indications of a retransmitted chunk from the next SACK on, although the retransmission cannot
    /// have arrived yet. Otherwise only SACKs of data that were sent after the retransmission count. Has an effect
    /// only with `fast_retransmit_again`.
    pub retransmissions_miss_at_once: bool,
    /// Let every fast retransmit in fast recovery ignore cwnd. RFC 9260 section 7.2.4 step 3 allows it only for
    /// the fast retransmit that starts the recovery.
    pub fast_retransmit_in_recovery: bool,
    /// Detect losses by time instead of by miss indications, and probe for the loss of the last packet: RACK-TLP,
    /// RFC 8985 with TSNs instead of sequence numbers.
    pub rack: bool,
    /// Restart T3-rtx when the earliest outstanding TSN is fast-retransmitted. RFC 9260 section 7.2.4 step 4.
    pub fast_retransmit_restarts_t3: bool,
    /// Max.Burst in packets; 0 means unlimited. RFC 9260 section 6.1.
    pub max_burst: u32,
    /// Initial cwnd: min(4 * MTU, max(2 * MTU, this value)). The value is 4404 octets in RFC 9260 section 7.2.1,
    /// 4380 in RFC 4960.
    pub initial_window: ByteCount,
    /// Initial cwnd in MTUs; 0: `initial_window` applies. RFC 9260 section 7.2.1 allows at most 4.
    pub initial_window_packets: u32,
    /// Maximum amount in MTUs by which a SACK enlarges cwnd in slow start: L in RFC 9260 section 7.2.1.
    pub slow_start_limit: u32,
    /// Enlarge cwnd only when the cumulative TSN advances. RFC 4960 section 7.2.1. In RFC 9260 data acknowledged
    /// by gap ack blocks count, too.
    pub growth_needs_cumulative_tsn: bool,
    /// Leave cwnd and partial_bytes_acked unchanged in fast recovery. RFC 9260 section 7.2.1 forbids only growth
    /// in slow start.
    pub fast_recovery_holds_window: bool,
    /// Minimum of cwnd after a fast retransmit, in MTUs: 4 in RFC 9260 section 7.2.3.
    pub fast_retransmit_window: u32,
    /// Let the last chunk exceed cwnd, as RFC 9260 section 6.1 B allows. Otherwise a chunk must fit, and cwnd counts as
    /// fully used when less than one MTU is free.
    pub last_chunk_exceeds_window: bool,
    /// Let Max.Burst reduce cwnd itself and raise ssthresh to the previous cwnd. RFC 9260 section 6.1 D also
    /// allows an implementation to limit only the number of packets.
    pub max_burst_lowers_window: bool,
    /// Set the I bit of DATA while cwnd is below this number of MTUs, so that the peer does not delay its SACK; 0:
    /// never. RFC 9260 section 6.2.
    pub immediate_sack_below: u32,
    /// The event that halves the cwnd of an idle path. RFC 9260 section 7.2.1.
    pub idle_decay: IdleDecay,

    /// Send data on all paths at the same time, each path with its own congestion window (concurrent multipath
    /// transfer).
    pub cmt: bool,

    /// Announce support of FORWARD TSN. RFC 3758.
    pub partial_reliability: bool,
    /// Deviate from RFC 3758 section 3.6: process an outdated FORWARD TSN, instead of only acknowledging it, and count
    /// it as one more packet for the delayed SACK, even if its packet also has DATA.
    pub forward_tsn_always_counts: bool,
    /// When a SACK arrives, first abandon each message that has reached its limit (with `retransmissions=0` all
    /// messages in flight), and only then process the acknowledgements of the other messages. Messages abandoned
    /// like this neither open the window nor end a round-trip measurement, and their unsent fragments are dropped
    /// without a TSN. Otherwise a message that the SACK acknowledges is not abandoned, and a limit of
    /// retransmissions is reached when one more is due. RFC 3758 section 3.5, RFC 7496 section 3.
    pub sack_checks_limits_first: bool,
    /// Announce support of I-DATA, with which messages of several streams can be interleaved. RFC 8260 section 2.
    pub interleaving: bool,
    /// Give the second fragment of an I-DATA message the FSN 0 at both ends, as in Linux; RFC 8260 section 2.1
    /// requires 1.
    pub second_fsn_is_zero: bool,
    /// The stream scheduler. RFC 8260 section 3.
    pub scheduler: Scheduler,
    /// Priorities or weights of the outgoing streams for the scheduler, as in `"7/0"`; `""` for none. RFC 8260
    /// section 4.3.3.
    pub stream_values: StreamValues,
    /// Let fair schedulers count only the last fragment of a message if messages are not interleaved. RFC 8260
    /// sections 3.5 and 3.6 count the length of the message.
    pub fair_counts_last_fragment: bool,
    /// Announce support of RE-CONFIG, with which streams can be reset and added. RFC 6525 section 5.1.1.
    pub reconfig: bool,
    /// Accept a checksum of zero, and send it if the peer accepts it. Needs a lower layer that detects errors, as
    /// DTLS does: RFC 9653 section 6 defines no other method.
    pub zero_checksum: bool,
    /// Announce support of ECN, so that routers can mark packets instead of dropping them. RFC 4960 appendix A.
    pub ecn: bool,
    /// As the server, treat ECNE chunks for TSNs up to a random one as already answered: they do not reduce the
    /// window, so about half of all servers do not reduce it. Otherwise treat only TSNs before the initial TSN so.
    pub ecn_answered_to_random_tsn: bool,

    /// Announce support of chunk authentication. RFC 4895.
    pub auth: bool,
    /// The hash function that the peer must use to authenticate; SHA-1 is accepted, too. RFC 4895 section 3.3.
    pub auth_hash: Hash,
    /// Announce support of dynamic address reconfiguration, with which associations survive a change of addresses.
    /// RFC 5061.
    pub addip: bool,
    /// Send each change of addresses in a separate ASCONF; only an addition and the deletion of the previous last
    /// address are sent together. If the peer rejects the deletion, only ASCONF chunks are sent until the next
    /// ASCONF is acknowledged, and the deletion is requested once more. Otherwise all changes are sent together
    /// (RFC 5061 section 4.1.1).
    pub asconf_apart: bool,
    /// Refuse an ASCONF from an unknown address that would delete the address by which its association was found.
    /// RFC 5061 section 5.3.2.
    #[serde(alias = "asconf_keeps_lookup")]
    pub asconf_keeps_lookup_address: bool,
    /// If the peer deletes an address, count data in flight to it as in flight to another address, where they wait
    /// for the T3-rtx timer or for miss indications. Otherwise these data are lost.
    pub deleted_flight_moves: bool,

    /// Send HEARTBEATs on idle paths. RFC 9260 section 8.3.
    pub heartbeat: bool,
    /// Let an unanswered HEARTBEAT count as the one round-trip measurement in progress (RFC 9260 section 6.3.1
    /// C4). Until it is answered, DATA is not used to measure the round-trip time, and the RTO stays backed off.
    pub heartbeat_holds_rtt: bool,
    /// Count an unanswered HEARTBEAT as an error of the association even if another path carries its data, and end
    /// an association whose error count has reached its limit when a HEARTBEAT is due. By RFC 9260 section 8.1 the
    /// HEARTBEAT does not count, and the limit must be exceeded.
    pub heartbeat_fails_association: bool,
    /// Postpone the HEARTBEAT of a path also while lost data wait for the congestion window. By RFC 9260 section
    /// 8.3 only data that are sent postpone it.
    pub lost_data_delay_heartbeats: bool,
    /// HB.interval. RFC 9260 section 16.
    pub hb_interval: Duration,
    /// Path.Max.Retrans. RFC 9260 section 8.2.
    pub path_max_retrans: u32,
    /// Send SACKs and other replies to the active path if the path of the received chunk has failed or is
    /// potentially failed; by RFC 9260 section 6.4 a reply is sent to the source address of the chunk.
    pub replies_avoid_failed_path: bool,
    /// PotentiallyFailed.Max.Retrans. A value of at least `path_max_retrans` disables the potentially failed
    /// state. RFC 7829 section 3.
    pub pf_threshold: u32,
    /// Let only a HEARTBEAT ACK end the potentially failed state. By RFC 7829 section 3.2 a SACK ends it, too.
    pub pf_until_heartbeat_ack: bool,
    /// Association.Max.Retrans. RFC 9260 section 8.1.
    pub association_max_retrans: u32,
    /// Max.Init.Retransmits. RFC 9260 section 4.
    pub max_init_retransmits: u32,
    /// Send a lost COOKIE ECHO to the peer's next address, like an INIT, as RFC 9260 section 5.1 recommends.
    pub cookie_echo_tries_all_paths: bool,
    /// Send the COOKIE ACK to the source address of the COOKIE ECHO, as RFC 9260 section 5.4 requires; otherwise
    /// to that of the INIT.
    pub cookie_ack_to_source: bool,
    /// Abort the association if an expected INIT ACK or SHUTDOWN COMPLETE is bundled with other chunks; otherwise
    /// ignore the chunk. RFC 9260 section 6.10.
    pub bundled_handshake_aborts: bool,
    /// Valid.Cookie.Life. RFC 9260 section 5.1.3.
    pub valid_cookie_life: Duration,
}

/// The event that halves the congestion window of an idle path.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum IdleDecay {
    /// The window of an idle path is never halved.
    Never,
    /// The window is halved once per RTO without DATA, as in RFC 9260 section 7.2.1.
    Rto,
    /// The window is halved whenever a heartbeat is due.
    Heartbeat,
}

/// MTU of Ethernet in octets, used if no other MTU is known.
pub(crate) const ETHERNET_MTU: u64 = 1500;

impl Config {
    /// Returns the configuration for a network with this MTU, in octets.
    #[must_use]
    pub fn with_network_mtu(&self, network: u64) -> Self {
        let mtu = if self.mtu.0 == 0 { network } else { self.mtu.0.min(network) };
        Self { mtu: ByteCount(mtu), ..self.clone() }
    }

    /// Returns the parameters of the endpoint's congestion windows.
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

    /// Checks the configuration; the error names a value with which no endpoint can work.
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
