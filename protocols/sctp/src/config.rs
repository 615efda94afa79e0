//! Every behaviour in which one SCTP differs from another.

use hol_base::{ByteCount, Duration};
use hol_transport::ConfigError;
use serde::{Deserialize, Serialize};

use crate::{Hash, Scheduler, StreamValues};

/// The behaviour of an endpoint. A stack file names every field; there are no defaults.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Config {
    /// Outbound streams wanted (OS of INIT). RFC 9260 section 3.3.2.
    pub streams: u16,
    /// Inbound streams served (MIS of INIT). RFC 9260 section 3.3.2.
    pub max_inbound_streams: u16,
    /// INIT ACK offers no more streams than the peer serves, and serves no more than it offers; else it says what is wanted. RFC 9260
    /// section 5.1.1 has both ends take the lesser numbers.
    pub init_ack_reduces_streams: bool,
    /// INIT names the kinds of addresses that are understood. RFC 9260 section 3.3.2.1.
    pub names_address_types: bool,
    /// Octets of an association in a state cookie, which has a copy of the peer's INIT and the host's addresses too, in multiples of 32
    /// octets, and 36 octets with the signature; 0 for no more than is needed. RFC 9260 section 5.1.3 leaves it open.
    pub cookie_state: ByteCount,
    /// Octets of the largest IP packet, as far as the network has them; 0 for as many as it has.
    pub mtu: ByteCount,
    /// Octets of user data that may wait for something sent earlier; the first a_rwnd. RFC 9260 section 6.
    pub receive_buffer: ByteCount,
    /// Octets that may wait for acknowledgement or transmission.
    pub send_buffer: ByteCount,
    /// What each chunk takes from the send buffer beside its user data.
    pub send_buffer_overhead: ByteCount,
    /// The user data itself is counted as the block of memory that Linux keeps it in, until all of its message is acknowledged; while there
    /// is any room, a message of any length is taken.
    pub send_buffer_blocks: bool,
    /// Octets of the smallest of these blocks; the others are powers of two.
    pub send_buffer_small_block: ByteCount,

    /// A message longer than the send buffer is refused for good.
    pub send_buffer_bounds_messages: bool,

    /// RTO.Initial. RFC 9260 section 16.
    pub rto_initial: Duration,
    /// RTO.Min. RFC 9260 section 16.
    pub rto_min: Duration,
    /// RTO.Max. RFC 9260 section 16.
    pub rto_max: Duration,
    /// The step of the clock that measures round trips and runs timers; `"0s"` is exact.
    pub clock_tick: Duration,
    /// Timers expire late, by up to 1/8 of their length, at the edges of a hierarchical wheel.
    pub timer_wheel: bool,

    /// From a packet's arrival to the application's read: interrupt, scheduler, system call.
    pub wakeup: Duration,

    /// SACK.Delay: how long an acknowledgement may wait. RFC 9260 section 6.2.
    pub sack_delay: Duration,
    /// Every so many packets with DATA are acknowledged at once: 2 in RFC 9260 section 6.2.
    pub sack_frequency: u32,
    /// Acknowledge at once when the last gap closes. RFC 9260 section 6.2 by way of RFC 5681 section 4.2.
    pub sack_when_gap_closes: bool,
    /// A packet's last DATA chunk alone says whether to acknowledge at once, for a duplicate or for its I bit;
    /// else any does. RFC 9260 section 6.2 leaves it open for duplicates among new chunks.
    pub sack_as_last_chunk_asks: bool,
    /// A packet with DATA takes along the SACK that waits for its delay. RFC 9260 section 6.1.
    pub bundle_sack_with_data: bool,
    /// The first fragment of a message leaves room for the SACK that waits for its delay if nothing else is to be sent, and for a COOKIE
    /// ECHO of 200 octets before there is one; a short message does not wait for others then. RFC 9260 section 6.10.
    pub fragments_leave_room: bool,
    /// How far ahead of the cumulative TSN a TSN may be to be taken, in DATA or FORWARD TSN. RFC 9260 section 3.3.4 can name 65535.
    pub max_tsn_gap: u16,
    /// Gap ack blocks of a SACK at most. RFC 9260 section 3.3.4 bounds them by the MTU.
    pub max_gap_blocks: u16,

    /// Hold back a small packet while data is in flight. RFC 9260 section 6.1.
    pub nagle: bool,
    /// Packets leave in trains of up to half of cwnd. Nagle's rule and the one packet of a fast retransmit mean a train, and so does the
    /// company of a COOKIE ECHO: DATA may stand in a packet behind it, which RFC 9260 section 5.1 forbids.
    pub segmentation_offload: bool,
    /// Nagle's rule holds back small retransmissions too.
    pub nagle_delays_retransmissions: bool,
    /// Miss indications that start a fast retransmit: 3 in RFC 9260 section 7.2.4, 4 in RFC 2960.
    pub missing_reports: u32,
    /// A lost fast retransmission is fast-retransmitted again, once data sent after it is acknowledged.
    pub fast_retransmit_again: bool,
    /// A fast retransmission of the earliest outstanding TSN restarts T3-rtx. RFC 9260 section 7.2.4 step 4.
    pub fast_retransmit_restarts_t3: bool,
    /// Max.Burst in packets, 0 for none. RFC 9260 section 6.1.
    pub max_burst: u32,
    /// cwnd starts at min(4 * MTU, max(2 * MTU, this)): 4404 in RFC 9260 section 7.2.1, 4380 in RFC 4960.
    pub initial_window: ByteCount,
    /// When an idle path's cwnd is halved. RFC 9260 section 7.2.1.
    pub idle_decay: IdleDecay,

    /// Data over all paths at once, each by its window: concurrent multipath transfer.
    pub cmt: bool,

    /// Offer FORWARD TSN. RFC 3758.
    pub partial_reliability: bool,
    /// Each FORWARD TSN is acted upon though its TSN is known, and counts towards the delayed SACK beside the DATA in its packet. RFC 3758
    /// section 3.6 has one that is out of date acknowledged alone, and counts it as DATA is counted.
    pub forward_tsn_always_counts: bool,
    /// A SACK first makes the sender abandon each message that has reached its limit, and only then acknowledges the others: with
    /// `retransmissions=0` all that is in flight. What is abandoned so neither opens the window nor ends a measurement of the round trip,
    /// and its unsent fragments are dropped without a TSN. Else what the SACK acknowledges is not abandoned, and a limit of
    /// retransmissions is reached when one more is due. RFC 3758 section 3.5, RFC 7496 section 3.
    pub sack_checks_limits_first: bool,
    /// Offer I-DATA: messages of several streams may be interleaved. RFC 8260 section 2.
    pub interleaving: bool,
    /// The second fragment of a message in I-DATA has the FSN 0 at both ends, as in Linux; in RFC 8260 section 2.1 it is 1.
    pub second_fsn_is_zero: bool,
    /// Which stream's data goes next. RFC 8260 section 3.
    pub scheduler: Scheduler,
    /// Priorities or weights of the outgoing streams for the scheduler, as in `"7/0"`; `""` for none. RFC 8260 section 4.3.3.
    pub stream_values: StreamValues,
    /// Of a message that is not interleaved, fair schedulers count the last fragment alone. RFC 8260 sections 3.5 and 3.6 speak of lengths
    /// of messages.
    pub fair_counts_last_fragment: bool,
    /// Offer RE-CONFIG: streams may begin anew, and there may be more of them. RFC 6525 section 5.1.1.
    pub reconfig: bool,
    /// Take a checksum of zero, and send it where the peer takes it. What is below has to find errors as DTLS does: nothing else is a
    /// method that RFC 9653 section 6 knows.
    pub zero_checksum: bool,
    /// Offer ECN: packets may be marked instead of dropped. RFC 4960 appendix A.
    pub ecn: bool,

    /// Offer chunk authentication. RFC 4895.
    pub auth: bool,
    /// The hash that the peer is to authenticate with; SHA-1 is understood too. RFC 4895 section 3.3.
    pub auth_hash: Hash,
    /// Offer dynamic address reconfiguration: a host that moves takes its association along. RFC 5061.
    pub addip: bool,
    /// An ASCONF carries one change, and with the add of an address the delete of the last one before it. A refusal of that keeps
    /// all but ASCONF back until the next is done, and is asked for once more. Else all changes go together (RFC 5061 section
    /// 4.1.1).
    pub asconf_apart: bool,
    /// Refuse to delete the address by which an ASCONF from an unknown one was looked up. RFC 5061 section 5.3.2.
    pub asconf_keeps_lookup: bool,
    /// What is in flight to an address that the peer deletes counts as sent to another one, and waits for its T3-rtx or for miss
    /// indications; else it is lost.
    pub deleted_flight_moves: bool,

    /// Send heartbeats to idle paths. RFC 9260 section 8.3.
    pub heartbeat: bool,
    /// A HEARTBEAT counts as the one measurement under way (RFC 9260 section 6.3.1 C4): until one is answered,
    /// no DATA measures a round trip, and a back-off lasts.
    pub heartbeat_holds_rtt: bool,
    /// An unanswered HEARTBEAT counts against the association though another path carries its data, and a HEARTBEAT that is due
    /// ends one that has reached its limit. RFC 9260 section 8.1 says not to count it, and the limit has to be exceeded.
    pub heartbeat_fails_association: bool,
    /// HB.interval. RFC 9260 section 16.
    pub hb_interval: Duration,
    /// Path.Max.Retrans. RFC 9260 section 8.2.
    pub path_max_retrans: u32,
    /// PotentiallyFailed.Max.Retrans; at or above `path_max_retrans` the state is not used. RFC 7829
    /// section 3.
    pub pf_threshold: u32,
    /// Only a HEARTBEAT ACK ends the potentially failed state; RFC 7829 section 3.2 lets a SACK end it too.
    pub pf_until_heartbeat_ack: bool,
    /// Association.Max.Retrans. RFC 9260 section 8.1.
    pub association_max_retrans: u32,
    /// Max.Init.Retransmits. RFC 9260 section 4.
    pub max_init_retransmits: u32,
    /// A COOKIE ECHO that was lost goes to the peer's next address, as an INIT does. RFC 9260 section 5.1 says it should.
    pub cookie_echo_tries_all_paths: bool,
    /// An INIT ACK or SHUTDOWN COMPLETE that is awaited and comes with other chunks ends the association; else it is passed over. RFC 9260
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
    /// Once per RTO without DATA, as RFC 9260 section 7.2.1 says.
    Rto,
    /// Whenever a heartbeat is due.
    Heartbeat,
}

/// The MTU of Ethernet, where no other is known.
pub(crate) const ETHERNET: u64 = 1500;

impl Config {
    /// The same on a network whose largest IP packet has so many octets.
    #[must_use]
    pub fn within(&self, network: u64) -> Self {
        let mtu = if self.mtu.0 == 0 { network } else { self.mtu.0.min(network) };
        Self { mtu: ByteCount(mtu), ..self.clone() }
    }

    /// Returns an error that names a value with which no endpoint could work, if there is one.
    pub fn check(&self) -> Result<(), ConfigError> {
        ConfigError::check([
            (self.streams > 0, "streams", "lies between 1 and 65535"),
            (self.max_inbound_streams > 0, "max_inbound_streams", "lies between 1 and 65535"),
            (
                self.mtu.0 == 0 || self.mtu.0 >= 512,
                "mtu",
                "has to be 512B at least: an INIT ACK with its cookie is not fragmented",
            ),
            (self.receive_buffer.0 >= 1500, "receive_buffer", "is 1500B at least (RFC 9260 section 3.3.2)"),
            (self.send_buffer.0 > 0, "send_buffer", "has to hold something"),
            (self.rto_max >= Duration::from_millis(1), "rto_max", "has to be 1ms at least"),
            (self.rto_min <= self.rto_max, "rto_min", "exceeds rto_max"),
            (!self.rto_initial.is_zero(), "rto_initial", "has to be longer than 0s"),
            (self.rto_initial <= self.rto_max, "rto_initial", "exceeds rto_max"),
            (self.sack_frequency > 0, "sack_frequency", "has to be 1 at least"),
            (self.max_tsn_gap > 0, "max_tsn_gap", "has to be 1 at least"),
            (self.max_gap_blocks > 0, "max_gap_blocks", "has to be 1 at least"),
            (self.missing_reports > 0, "missing_reports", "has to be 1 at least"),
            (self.initial_window.0 > 0, "initial_window", "has to be 1B at least"),
            (
                self.auth || !self.addip,
                "addip",
                "needs auth: an ASCONF has to be authenticated (RFC 5061 section 4.1.1); say auth=true too",
            ),
            (
                self.scheduler.has_values() || self.stream_values.is_empty(),
                "stream_values",
                "are for scheduler=prio and scheduler=wfq; others look at none",
            ),
            (
                self.scheduler != Scheduler::Wfq || !self.stream_values.has_zero(),
                "stream_values",
                "are weights for scheduler=wfq: 1 at least",
            ),
            (self.hb_interval >= Duration::from_millis(1), "hb_interval", "has to be 1ms at least"),
        ])
    }
}
