//! The configuration of a TCP endpoint: every setting by which implementations differ.

use hol_base::{ByteCount, Duration};
use hol_congestion::Algorithm;
use hol_transport::ConfigError;
use serde::Deserialize;

/// The configuration of an endpoint. A stack file sets every field; there are no defaults.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "snake_case")]
pub struct Config {
    /// Maximum payload of a segment without options, in octets: the MTU minus 40. It is announced in the SYN. RFC
    /// 9293 section 3.7.1.
    pub mss: u16,
    /// Offer selective acknowledgments. RFC 2018.
    pub sack: bool,
    /// Report duplicate segments in SACK blocks (D-SACK). RFC 2883.
    pub dsack: bool,
    /// Offer timestamps. RFC 7323 section 3.
    pub timestamps: bool,
    /// Length of a tick of the timestamp clock (TSval).
    pub timestamp_clock: Duration,
    /// The window scale shift to offer; 0 offers no window scaling. RFC 7323 section 2.
    pub window_scale: u8,
    /// Initial size of the send buffer, which contains unacknowledged and unsent data: in octets of payload, or in
    /// octets of memory if `packet_head` is set.
    pub send_buffer: ByteCount,
    /// Maximum size of the send buffer, which grows to hold twice the congestion window. A value below
    /// `send_buffer` disables growth.
    pub send_buffer_max: ByteCount,
    /// Octets of memory for the headers of a packet and for the structure after its data (Linux: skb_shared_info); 256
    /// octets for the packet's descriptor are added. In the receive buffer, headers, data and structure together are
    /// rounded up to a power of two. The window starts at half of the receive buffer and grows when large segments
    /// arrive. With 0 the buffers count payload only.
    pub packet_head: ByteCount,
    /// Initial size of the receive buffer, which contains data that wait for the application and limits the
    /// advertised window. The unit is octets of payload, or octets of memory if `packet_head` is set.
    pub receive_buffer: ByteCount,
    /// Maximum size of the receive buffer, which grows with the octets that the application reads per round trip.
    /// A value below `receive_buffer` disables growth.
    pub receive_buffer_max: ByteCount,
    /// Number of segments for which an enlarged receive buffer has room in addition to twice the octets read per
    /// round trip.
    pub receive_buffer_cushion: u32,
    /// Let out-of-order data also enlarge the receive buffer.
    pub receive_buffer_for_early: bool,
    /// Round-trip time below which the growth of the receive buffer is proportional to the round-trip time, not to
    /// the increase of the octets read per round trip. 0s disables this rule.
    pub receive_buffer_low_rtt: Duration,
    /// Increase the receiver's estimate of the round-trip time only while the application has read all data.
    pub receive_rtt_if_read: bool,
    /// The rule by which a small segment waits until data are acknowledged (Nagle's algorithm). RFC 9293 section
    /// 3.7.4.
    pub nagle: Nagle,
    /// Pass blocks of several segments to the network interface or the system, which splits them into segments. A
    /// block is delayed while an acknowledgment is expected soon that lets it grow; PSH is set at its end.
    pub segmentation_offload: bool,

    /// Minimum delay of an acknowledgment, with which the adaptive delay starts. RFC 5681 section 4.2.
    pub delayed_ack_min: Duration,
    /// Maximum delay of an acknowledgment. RFC 5681 section 4.2.
    pub delayed_ack_max: Duration,
    /// Number of segments that the receiver acknowledges at once at the start, after a pause, and after a
    /// duplicate. 0: none, as in RFC 5681 section 4.2.
    pub quickack_segments: u32,
    /// Number of replies after which the connection is interactive, each sent soon after data arrived.
    /// Acknowledgments then wait to be piggybacked on data. 0: always interactive.
    pub interactive_after: u32,
    /// Acknowledge data with PSH when the application has read them, unless the connection is interactive (see
    /// `interactive_after`).
    pub acknowledge_on_read: bool,
    /// Answer an acknowledgment of data that have not been sent, as RFC 9293 section 3.10.7.4 requires; otherwise
    /// drop it.
    pub answer_unsent_ack: bool,
    /// Answer a pure acknowledgment that later segments have overtaken (which its sequence number and timestamp
    /// show), as RFC 7323 section 5.3 requires; otherwise drop it.
    pub answer_old_ack: bool,
    /// Number of out-of-order segments that may share one acknowledgment; 0: each is acknowledged (RFC 5681
    /// section 4.2).
    pub sack_compression: u32,
    /// Delay of compressed SACKs as a percentage of the round-trip time.
    pub sack_compression_percent: u32,
    /// Maximum delay of compressed SACKs.
    pub sack_compression_max: Duration,
    /// Slack of the timer that delays compressed SACKs.
    pub sack_compression_slack: Duration,
    /// Set the timestamp of compressed SACKs to the time at which they are sent; otherwise to the arrival time of
    /// the segment that they acknowledge.
    pub sack_compression_reads_clock: bool,
    /// Time from a segment's arrival until the application reads its data: interrupt, scheduler, system call.
    pub wakeup: Duration,

    /// The congestion control algorithm.
    pub congestion: Algorithm,
    /// The unit of the congestion window.
    pub congestion_unit: CongestionUnit,
    /// The initial congestion window in segments: 2 to 4 in RFC 3390, 10 in RFC 6928.
    pub initial_window: u32,
    /// Let each acknowledgment increase the congestion window by at most one segment. RFC 5681 section 3.1.
    pub one_segment_per_ack: bool,
    /// Outside of recovery, increase the congestion window by a segment for every `mss` acknowledged octets,
    /// instead of with each acknowledgment. RFC 3465 with L of one segment.
    pub byte_counting: bool,
    /// Increase the congestion window only if it was fully used when the acknowledgment arrived.
    pub grows_when_full: bool,
    /// Offer ECN, so that routers can mark packets instead of dropping them. RFC 3168. `congestion = "dctcp"`
    /// implies it.
    pub ecn: bool,
    /// Offer and accept accurate ECN, with which the receiver counts marks. RFC 9768. `congestion = "prague"`
    /// implies it.
    pub accurate_ecn: bool,
    /// Accept accurate ECN if the peer offers it.
    pub accurate_ecn_if_offered: bool,
    /// With accurate ECN, also report the octets received with each codepoint, in the AccECN option. RFC 9768
    /// section 3.2.3.
    pub accurate_ecn_option: bool,
    /// Accept ECN if the peer offers it.
    pub ecn_if_offered: bool,
    /// Keep ECN even if one of the SYNs, such as a retransmitted one, did not offer it, which RFC 3168 section
    /// 6.1.1 forbids.
    pub ecn_after_plain_syn: bool,
    /// Leave the first slow start when the round-trip time rises, or when the ACKs of a round trip are spread over
    /// half of it (HyStart). CUBIC only.
    pub hystart: bool,
    /// Do not increase a congestion window that is not used, and reduce it after some time. RFC 2861, RFC 7661.
    pub cwnd_validation: bool,
    /// Return to slow start when nothing has been sent for an RTO. RFC 5681 section 4.1.
    pub slow_start_after_idle: bool,

    /// The method of loss detection.
    pub recovery: LossDetection,
    /// Number of segments delivered out of order that indicates a loss (DupThresh). RFC 5681 section 3.2.
    pub dupthresh: u32,
    /// Send new data on the first duplicate acknowledgments. RFC 3042.
    pub limited_transmit: bool,
    /// Spread the reduction of the congestion window over the recovery (PRR, RFC 6937); otherwise reduce it at
    /// once.
    pub prr: bool,
    /// Reduce the congestion window by one segment with every second acknowledgment during recovery. Cannot be
    /// combined with `prr`.
    pub rate_halving: RateHalving,
    /// Number of segments that may be sent after an acknowledgment that indicates a loss or reordering: cwnd is
    /// limited to the data in flight plus this number. 0: no limit.
    pub cwnd_moderation: u32,
    /// Send a tail loss probe before the retransmission timeout. RFC 8985 section 7.
    pub tlp: bool,
    /// Allowance for the peer's delayed acknowledgment in the probe timeout if only one segment is in flight. RFC
    /// 8985 section 7.2.
    pub tlp_ack_allowance: Duration,
    /// Slack of the reordering timer and of the probe timer.
    pub timer_slack: Duration,
    /// Detect spurious timeouts (F-RTO). RFC 5682 section 3 (with SACK).
    pub frto: bool,
    /// Undo a reduction of the congestion window if timestamps (RFC 4015) or D-SACK show that it was unnecessary.
    pub undo: bool,
    /// Merge small segments into one when they are retransmitted. RFC 9293 section 3.8.6 permits it.
    pub collapse_on_retransmit: bool,
    /// Maximum number of segments that are merged into a retransmission; 0: as many as fit.
    pub collapse_limit: u32,

    /// The estimator of the round-trip time.
    pub rtt_estimator: RttEstimator,
    /// The retransmission timeout before the first round-trip sample. RFC 6298 section 2.
    pub rto_initial: Duration,
    /// The minimum retransmission timeout. RFC 6298 section 2.4.
    pub rto_min: Duration,
    /// The maximum retransmission timeout. RFC 6298 section 2.5.
    pub rto_max: Duration,
    /// Minimum of the variance term that is added to the smoothed RTT: G in RFC 6298, 200 ms in Linux.
    pub rto_variance_floor: Duration,
    /// Length of a tick of the timer clock; 0 means an exact clock.
    pub clock_granularity: Duration,
    /// Run timers in a hierarchical timer wheel: a timer expires up to one slot late, and never early. A slot is
    /// one tick for short timers, and several ticks for long ones.
    pub timer_wheel: bool,
    /// Number of consecutive timeouts after which the connection fails. RFC 1122 section 4.2.3.5 (R2).
    pub max_retries: u32,
    /// Number of timeouts of a SYN after which the connection fails.
    pub syn_retries: u32,
    /// Number of timeouts of the SYN, in addition to `syn_retries`, before the RTO starts to double.
    pub syn_linear_timeouts: u32,
    /// The duration of TIME-WAIT (2 MSL). RFC 9293 section 3.6.1.
    pub time_wait: Duration,
    /// End a connection at once when its host loses the connection's address, as on systems that destroy the
    /// socket. Otherwise the connection continues until its retransmissions have failed.
    pub address_loss_aborts: bool,
    /// If not 0s, limit the time without an answer instead of the number of timeouts. The limit is the sum of
    /// `max_retries` + 1 timeouts: the first has this duration, and each further one twice as long as the previous
    /// one, up to `rto_max`. The time of the handshake is limited in the same way, by `syn_retries` and
    /// `rto_initial`. Linux: retransmits_timed_out.
    pub max_retries_base: Duration,
    /// End the connection when retransmissions or window probes have had no answer for this time, whatever
    /// `max_retries` is; 0s disables this limit. RFC 9293 section 3.8.3, RFC 5482. Linux: TCP_USER_TIMEOUT.
    pub user_timeout: Duration,
    /// Probe an idle connection after the peer has sent nothing for this time; 0s disables probes. RFC 9293
    /// section 3.8.4. Linux: TCP_KEEPIDLE.
    pub keepalive: Duration,
    /// Time between two keepalive probes. Linux: TCP_KEEPINTVL.
    pub keepalive_interval: Duration,
    /// Number of unanswered keepalive probes after which the connection ends. If `user_timeout` is set, it
    /// replaces this limit. Linux: TCP_KEEPCNT.
    pub keepalive_probes: u32,
}

/// When Nagle's algorithm delays a small segment.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Nagle {
    /// A small segment never waits (TCP_NODELAY).
    Off,
    /// A small segment waits while any data are unacknowledged. RFC 896, RFC 9293 section 3.7.4.
    Classic,
    /// A small segment waits while another small segment is unacknowledged: Minshall's variant, as in Linux.
    Minshall,
}

/// The unit of the congestion window.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum CongestionUnit {
    /// The window counts segments of any size, as in Linux.
    Packets,
    /// The window counts octets, as in the RFCs.
    Bytes,
}

/// The value to which rate halving reduces cwnd in a recovery, one segment with every second acknowledgment.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum RateHalving {
    /// Rate halving is not used.
    Off,
    /// The window is reduced to ssthresh, as with Linux's BIC from 2.6.13 on.
    ToSsthresh,
    /// The window is reduced to half of ssthresh, as with Linux's Reno.
    ToHalfSsthresh,
}

/// The method of loss detection.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum LossDetection {
    /// RACK: a segment is lost if one that was sent sufficiently later has been delivered. RFC 8985.
    Rack,
    /// SACK: a segment is lost if enough segments above it have been selectively acknowledged. RFC 6675.
    Sack,
    /// FACK (forward acknowledgment), as in Linux until 4.14: a segment is lost if it lies enough segments below
    /// the highest one that was selectively acknowledged. A retransmission is lost if a segment sent after it was
    /// acknowledged.
    Fack,
    /// NewReno: losses are detected by duplicate and partial acknowledgments. RFC 6582.
    #[serde(rename = "newreno")]
    NewReno,
}

/// The estimator of the round-trip time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum RttEstimator {
    /// The estimator of RFC 6298 section 2, with gains 1/8 and 1/4.
    Rfc6298,
    /// Linux's estimator: the variance is the largest deviation within a window, and decays slowly.
    Linux,
}

/// The maximum payload `mss` for Ethernet's MTU over IPv4, in octets.
pub const ETHERNET_MSS: u16 = 1460;

/// Minimum of `mss` that leaves room for data after all options, in octets.
const MIN_MSS: u16 = 88;

impl Config {
    /// Checks the configuration; the error names a value with which no endpoint can work.
    pub fn check(&self) -> Result<(), ConfigError> {
        ConfigError::check([
            (self.mss >= MIN_MSS, "mss", "must be at least 88 octets"),
            (self.window_scale <= 14, "window_scale", "must be at most 14 (RFC 7323 section 2.3)"),
            (self.send_buffer.0 > 0, "send_buffer", "must be larger than zero"),
            (self.receive_buffer.0 >= self.mss.into(), "receive_buffer", "must be at least mss"),
            (!self.timestamp_clock.is_zero(), "timestamp_clock", "must be longer than 0s"),
            (
                self.delayed_ack_min <= self.delayed_ack_max,
                "delayed_ack_min",
                "must be at most delayed_ack_max",
            ),
            ((1..=10_000).contains(&self.initial_window), "initial_window", "must be between 1 and 10000"),
            (self.dupthresh > 0, "dupthresh", "must be at least 1"),
            (
                !self.prr || self.rate_halving == RateHalving::Off,
                "rate_halving",
                "cannot be combined with prr",
            ),
            (self.rto_max >= Duration::from_millis(1), "rto_max", "must be at least 1ms"),
            (self.rto_min <= self.rto_max, "rto_min", "must be at most rto_max"),
            (!self.rto_initial.is_zero(), "rto_initial", "must be longer than 0s"),
            (self.rto_initial <= self.rto_max, "rto_initial", "must be at most rto_max"),
            (!self.keepalive_interval.is_zero(), "keepalive_interval", "must be longer than 0s"),
        ])
    }
}
