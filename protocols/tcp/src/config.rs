//! Everything in which one TCP differs from another.

use hol_base::{ByteCount, Duration};
use hol_congestion::Algorithm;
use serde::Deserialize;

/// The behaviour of an endpoint. A stack file names every field; there are no defaults.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "snake_case")]
pub struct Config {
    /// Octets of a segment without options: the MTU less 40. Announced in the SYN. RFC 9293 section 3.7.1.
    pub mss: u16,
    /// Offer selective acknowledgments. RFC 2018.
    pub sack: bool,
    /// Report duplicates in SACK blocks. RFC 2883.
    pub dsack: bool,
    /// Offer timestamps. RFC 7323 section 3.
    pub timestamps: bool,
    /// One step of the clock behind TSval.
    pub timestamp_clock: Duration,
    /// The window scale shift offered; 0 offers none. RFC 7323 section 2.
    pub window_scale: u8,
    /// What may wait for acknowledgment or transmission at first: octets, and packets as `packet_head` has it.
    pub send_buffer: ByteCount,
    /// What that buffer grows to with the congestion window, twice of which it is to hold; less, and it stays as it is.
    pub send_buffer_max: ByteCount,
    /// What a packet takes of the buffers for headers and what stands behind the data, beside 256 octets that describe it; in the
    /// receive buffer rounded up to a power of two. The window then begins with half of that buffer and grows with large segments.
    /// With 0 buffers count payload alone.
    pub packet_head: ByteCount,
    /// What may wait for the application: octets, and packets as `packet_head` has it; it bounds the window advertised.
    pub receive_buffer: ByteCount,
    /// What that buffer grows to with what the application reads in a round trip; less, and it stays as it is.
    pub receive_buffer_max: ByteCount,
    /// When a small segment waits for an acknowledgment. RFC 9293 section 3.7.4.
    pub nagle: Nagle,
    /// Hand blocks of several segments down to be cut by the network interface, or by the system: blocks wait for an acknowledgment
    /// that is near, and PSH stands at their ends.
    pub segmentation_offload: bool,

    /// The shortest delay of an acknowledgment, where the adaptive delay starts. RFC 5681 section 4.2.
    pub delayed_ack_min: Duration,
    /// The longest delay of an acknowledgment.
    pub delayed_ack_max: Duration,
    /// Segments acknowledged at once at the start, after a gap, and after a duplicate; 0 is the RFC's way.
    pub quickack_segments: u32,
    /// Replies sent soon after data before the connection counts as interactive and acknowledgments wait for
    /// data to ride on; 0 is always.
    pub interactive_after: u32,
    /// Acknowledge pushed data when the application has read it, unless interactive.
    pub acknowledge_on_read: bool,
    /// Answer an acknowledgment of what was not sent yet, as RFC 9293 section 3.10.7.4 has it; else it is dropped.
    pub answer_unsent_ack: bool,
    /// Out-of-order segments that may share one acknowledgment; 0 acknowledges each (RFC 5681 section 4.2).
    pub sack_compression: u32,
    /// How long such an acknowledgment waits: 1/20 of the round trip, but no longer than this.
    pub sack_compression_max: Duration,
    /// What that timer is late.
    pub sack_compression_slack: Duration,
    /// From a segment's arrival to the application's read: interrupt, scheduler, system call.
    pub wakeup: Duration,

    /// How the congestion window grows and shrinks.
    pub congestion: Algorithm,
    /// What the congestion window counts.
    pub congestion_unit: CongestionUnit,
    /// The initial window in segments. RFC 3390 (2 to 4), RFC 6928 (10).
    pub initial_window: u32,
    /// An acknowledgment opens the window by one segment at most. RFC 5681 section 3.1.
    pub one_segment_per_ack: bool,
    /// The window opens by a segment once a full one's octets are acknowledged outside of recovery, not with each acknowledgment.
    /// RFC 3465 with L of one segment.
    pub byte_counting: bool,
    /// Only an acknowledgment that finds the window full opens it.
    pub grows_when_full: bool,
    /// Offer ECN: data may be marked instead of dropped. RFC 3168. `congestion = "dctcp"` offers it by itself.
    pub ecn: bool,
    /// Agree to ECN if the peer offers it.
    pub ecn_if_offered: bool,
    /// Keep to ECN although one of the SYNs did not offer it, as one that is sent again does not; RFC 3168 section 6.1.1 forbids it.
    pub ecn_after_plain_syn: bool,
    /// Leave the first slow start when the delay grows or the ACK train is as long as the path. CUBIC only.
    pub hystart: bool,
    /// Let a window that is not used neither grow nor stay. RFC 2861, RFC 7661.
    pub cwnd_validation: bool,
    /// Slow start again when nothing was sent for an RTO. RFC 5681 section 4.1.
    pub slow_start_after_idle: bool,

    /// How loss is found.
    pub recovery: Recovery,
    /// Segments delivered out of order that prove a loss. RFC 5681 section 3.2.
    pub dupthresh: u32,
    /// Send new data on the first duplicate acknowledgments. RFC 3042.
    pub limited_transmit: bool,
    /// Spread the reduction of the window over the recovery. RFC 6937; otherwise it is made at once.
    pub prr: bool,
    /// Take one segment off the window with every second acknowledgment of the recovery. Not together with `prr`.
    pub rate_halving: RateHalving,
    /// Segments that may follow an acknowledgment which reports trouble: cwnd is at most that many above what is in flight.
    /// 0 leaves it.
    pub cwnd_moderation: u32,
    /// Send a tail loss probe before the retransmission timeout. RFC 8985 section 7.
    pub tlp: bool,
    /// What a lone segment's probe allows for the peer's delayed acknowledgment. RFC 8985 section 7.2.
    pub tlp_ack_allowance: Duration,
    /// Added to the reordering timer and to a probe's timeout.
    pub timer_slack: Duration,
    /// Find spurious timeouts. RFC 5682 section 3 (with SACK).
    pub frto: bool,
    /// Take the reduction back when timestamps (RFC 4015) or D-SACK prove it needless.
    pub undo: bool,
    /// A retransmission takes the small segments behind it along. RFC 9293 section 3.10.8 allows it.
    pub collapse_on_retransmit: bool,
    /// How many segments it takes along at most; 0 is as many as fit.
    pub collapse_limit: u32,

    /// How round trips are smoothed.
    pub rtt_estimator: RttEstimator,
    /// The timeout before there is a sample. RFC 6298 section 2.
    pub rto_initial: Duration,
    /// The least timeout. RFC 6298 section 2.4.
    pub rto_min: Duration,
    /// The greatest timeout. RFC 6298 section 2.5.
    pub rto_max: Duration,
    /// The least that is added to the smoothed RTT: the RFC's G, Linux's 200 ms.
    pub rto_variance_floor: Duration,
    /// The tick of the clock that runs the timers; 0 is exact.
    pub clock_granularity: Duration,
    /// Timers wait in a hierarchical wheel: one tick late, and long ones coarser, but never early.
    pub timer_wheel: bool,
    /// Timeouts in a row before the connection fails. RFC 1122 section 4.2.3.5 (R2).
    pub max_retries: u32,
    /// Timeouts of a SYN before the connection fails.
    pub syn_retries: u32,
    /// Timeouts of the first SYN before RTO doubles, on top of `syn_retries`.
    pub syn_linear_timeouts: u32,
    /// How long TIME-WAIT lasts (2 MSL). RFC 9293 section 3.6.1.
    pub time_wait: Duration,
    /// A connection whose own address the host loses ends at once, for the system destroys its socket; else it goes on
    /// until it has retransmitted in vain.
    pub address_loss_aborts: bool,
}

/// When a small segment waits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Nagle {
    /// Never (TCP_NODELAY).
    Off,
    /// While anything is unacknowledged. RFC 896, RFC 9293 section 3.7.4.
    Classic,
    /// While a small segment is unacknowledged: Minshall's variant, as Linux has it.
    Minshall,
}

/// What the congestion window counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum CongestionUnit {
    /// Segments of whatever size, as Linux does.
    Packets,
    /// Octets, as the RFCs do.
    Bytes,
}

/// How far the window falls, segment by segment, in a recovery.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum RateHalving {
    /// It does not fall by segments.
    Off,
    /// To ssthresh, as with Linux's BIC from 2.6.13 on.
    ToSsthresh,
    /// To half of ssthresh, as with Linux's Reno.
    ToHalfSsthresh,
}

/// How loss is found.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Recovery {
    /// By time: something sent later has arrived. RFC 8985.
    Rack,
    /// By count: enough was selectively acknowledged above it. RFC 6675.
    Sack,
    /// By distance: it lies enough segments below the highest one that was selectively acknowledged, and a retransmission is lost once
    /// something sent after it was acknowledged. Forward acknowledgment (FACK), as Linux had it until 4.14.
    Fack,
    /// By duplicate acknowledgments and partial ones. RFC 6582.
    #[serde(rename = "newreno")]
    NewReno,
}

/// How round trips are smoothed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum RttEstimator {
    /// RFC 6298 section 2: gains 1/8 and 1/4.
    Rfc6298,
    /// Linux: the variance is the greatest deviation of a window and decays slowly.
    Linux,
}

/// `mss` as the MTU of Ethernet leads to it over IPv4.
pub const ETHERNET_MSS: u16 = 1460;

/// The least segment that leaves room for data beside all options.
const LEAST_MSS: u16 = 88;

impl Config {
    /// Finds a value that no endpoint could work with: the field, and what it has to be.
    pub fn check(&self) -> Result<(), (&'static str, &'static str)> {
        let rules = [
            (self.mss >= LEAST_MSS, "mss", "has to be 88 octets at least"),
            (self.window_scale <= 14, "window_scale", "is 14 at most (RFC 7323 section 2.3)"),
            (self.send_buffer.0 > 0, "send_buffer", "has to hold something"),
            (self.receive_buffer.0 >= self.mss.into(), "receive_buffer", "has to hold a segment at least"),
            (!self.timestamp_clock.is_zero(), "timestamp_clock", "has to be longer than 0s"),
            (self.delayed_ack_min <= self.delayed_ack_max, "delayed_ack_min", "exceeds delayed_ack_max"),
            ((1..=10_000).contains(&self.initial_window), "initial_window", "lies between 1 and 10000"),
            (self.dupthresh > 0, "dupthresh", "has to be 1 at least"),
            (!self.prr || self.rate_halving == RateHalving::Off, "rate_halving", "does not go with prr"),
            (self.rto_max >= Duration::from_millis(1), "rto_max", "has to be 1ms at least"),
            (self.rto_min <= self.rto_max, "rto_min", "exceeds rto_max"),
            (!self.rto_initial.is_zero(), "rto_initial", "has to be longer than 0s"),
            (self.rto_initial <= self.rto_max, "rto_initial", "exceeds rto_max"),
        ];
        match rules.into_iter().find(|(kept, ..)| !kept) {
            Some((_, key, problem)) => Err((key, problem)),
            None => Ok(()),
        }
    }
}
