//! The configuration of an endpoint.

use hol_base::{ByteCount, Duration};
use hol_transport::ConfigError;
use serde::{Deserialize, Serialize};

/// The configuration of a QUIC endpoint. It has no defaults: a stack sets every field. Both ends use the same
/// configuration.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Config {
    /// Number of streams over which an application distributes its messages.
    pub streams: u16,
    /// Maximum number of concurrent streams that the peer may open. RFC 9000 section 4.6.
    pub max_streams: u32,
    /// Whether streams take turns, one packet each. Otherwise the endpoint sends all data of one stream before
    /// those of the next, in the order of the writes.
    pub send_fairness: bool,
    /// The congestion controller.
    pub congestion: Congestion,
    /// Size of the initial congestion window in octets. RFC 9002 section 7.2.
    pub initial_window: ByteCount,
    /// The round-trip time that is assumed before the first measurement. RFC 9002 section 6.2.2.
    pub initial_rtt: Duration,
    /// Number of ack-eliciting packets that the receiver does not acknowledge immediately: it acknowledges the
    /// next one. RFC 9000 section 13.2.2: 1.
    pub ack_threshold: u32,
    /// Maximum delay of an acknowledgment. RFC 9000 section 18.2. A value other than 25 ms is requested from the
    /// peer by an ACK_FREQUENCY frame, and is limited to 25 ms plus a round trip.
    pub max_ack_delay: Duration,
    /// Reordering threshold in packets: an unacknowledged packet that was sent this many packets before an
    /// acknowledged one is lost. RFC 9002 section 6.1.1.
    pub packet_threshold: u32,
    /// Reordering threshold in time: an unacknowledged packet is lost this many round trips after it was sent, if
    /// a later packet was acknowledged. RFC 9002 section 6.1.2.
    pub time_threshold: f32,
    /// Duration of losses, in PTOs, that means persistent congestion. RFC 9002 section 7.6.
    pub persistent_congestion_threshold: u32,
    /// Initial maximum length of a UDP payload in octets. RFC 9000 section 14.
    pub mtu: ByteCount,
    /// Maximum UDP payload in octets that path MTU discovery probes (RFC 8899). `"0B"` disables probes.
    pub mtu_discovery: ByteCount,
    /// Number of octets that the peer may send on a stream before the application has read any. RFC 9000 section
    /// 4.1.
    pub stream_receive_window: ByteCount,
    /// Number of octets that the peer may send on all streams together before the application has read any. RFC
    /// 9000 section 4.1.
    pub receive_window: ByteCount,
    /// Maximum number of octets that the application has written and the peer has not acknowledged.
    pub send_window: ByteCount,
    /// Maximum length of the queue of DATAGRAM frames, in octets.
    pub datagram_send_buffer: ByteCount,
    /// Length in octets of the handshake messages that the server sends after its ServerHello: extensions,
    /// certificates and Finished.
    pub handshake_flight: ByteCount,
    /// The connection fails after this time without a packet; zero disables this timeout. RFC 9000 section 10.1.
    pub idle_timeout: Duration,
    /// Whether the endpoint uses ECN, so that routers can mark packets instead of dropping them. RFC 9000 section
    /// 13.4.
    pub ecn: bool,
    /// The endpoint sends a PING after this time without a packet; zero disables it. RFC 9000 section 10.1.2.
    pub keep_alive: Duration,
    /// Time from the arrival of data until the application reads them.
    pub wakeup: Duration,
    /// Whether the client has a ticket of an earlier connection and sends its first data with it, before the end
    /// of the handshake: 0-RTT, RFC 9001 section 4.6. The application decides this, so no stack sets the field.
    #[serde(skip)]
    pub zero_rtt: bool,
}

/// The congestion controllers of quinn-proto. Their windows do not depend on random numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Congestion {
    /// BBR version 1, draft-cardwell-iccrg-bbr-congestion-control-00. Only its window has an effect, not its
    /// pacing rate: quinn-proto paces with every controller at 1.25 windows per round trip.
    Bbr,
    /// CUBIC, RFC 9438.
    Cubic,
    /// NewReno, RFC 9002 section 7.
    NewReno,
}

/// How messages are mapped to streams and datagrams.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum MessageMapping {
    /// Messages are sent on persistent streams, one after the other on each.
    #[default]
    Streams,
    /// Each message is sent on a stream of its own.
    PerMessage,
    /// Each message is sent in one DATAGRAM frame, which is not retransmitted. RFC 9221.
    Datagrams,
}

impl Config {
    /// Length in octets of a UDP payload that every QUIC path must carry. RFC 9000 section 14.
    pub const MIN_MTU: u64 = 1200;
    /// The default of the transport parameter max_ack_delay. RFC 9000 section 18.2.
    pub(crate) const MAX_ACK_DELAY: Duration = Duration::from_millis(25);

    /// Returns the configuration with UDP payloads limited to `largest` octets, or to QUIC's minimum if that is
    /// larger.
    pub fn with_largest_packet(&self, largest: u64) -> Self {
        let largest = largest.max(Self::MIN_MTU);
        let [mtu, mtu_discovery] = [self.mtu, self.mtu_discovery].map(|size| ByteCount(size.0.min(largest)));
        Self { mtu, mtu_discovery, ..self.clone() }
    }

    /// Checks the configuration; the error names a value with which no connection can work.
    pub fn check(&self) -> Result<(), ConfigError> {
        let refuse = |key, requirement| Err(ConfigError { key, requirement });
        if self.streams == 0 {
            return refuse("streams", "must be at least 1");
        }
        if u32::from(self.streams) >= self.max_streams {
            return refuse(
                "streams",
                "must be less than max_streams, which includes the control stream; raise max_streams",
            );
        }
        if self.max_streams > 1 << 20 {
            return refuse("max_streams", "must be at most 1048576");
        }
        if self.initial_window.0 < 2 * Self::MIN_MTU {
            return refuse(
                "initial_window",
                "must be at least 2400 octets, two datagrams (RFC 9002 section 7.2)",
            );
        }
        if self.initial_rtt.is_zero() {
            return refuse("initial_rtt", "must be longer than zero");
        }
        if self.packet_threshold < 3 {
            return refuse("packet_threshold", "must be at least 3 (RFC 9002 section 6.1.1)");
        }
        if !(1.0..=16.0).contains(&self.time_threshold) {
            return refuse("time_threshold", "must be between 1 and 16 round trips");
        }
        if self.persistent_congestion_threshold == 0 {
            return refuse("persistent_congestion_threshold", "must be at least 1");
        }
        if !(Duration::from_millis(1)..Duration::from_millis(1 << 14)).contains(&self.max_ack_delay) {
            return refuse("max_ack_delay", "must be between 1 ms and 16.383 s (RFC 9000 section 18.2)");
        }
        self.check_sizes()
    }

    fn check_sizes(&self) -> Result<(), ConfigError> {
        const MAX_DATAGRAM_OCTETS: u64 = 65_527;
        let refuse = |key, requirement| Err(ConfigError { key, requirement });
        if !(Self::MIN_MTU..=MAX_DATAGRAM_OCTETS).contains(&self.mtu.0) {
            return refuse(
                "mtu",
                "must be between 1200 and 65527 octets of a UDP payload (RFC 9000 section 14)",
            );
        }
        if self.mtu_discovery.0 != 0 && !(self.mtu.0..=MAX_DATAGRAM_OCTETS).contains(&self.mtu_discovery.0) {
            return refuse("mtu_discovery", "must be 0, or from mtu to 65527 octets");
        }
        for (field, window) in [
            ("stream_receive_window", self.stream_receive_window),
            ("receive_window", self.receive_window),
            ("send_window", self.send_window),
            ("datagram_send_buffer", self.datagram_send_buffer),
        ] {
            if window.0 < Self::MIN_MTU || window.0 >= 1 << 62 {
                return refuse(field, "must be between 1200 and 2^62 - 1 octets");
            }
        }
        if !(200..=12_000).contains(&self.handshake_flight.0) {
            return refuse("handshake_flight", "must be between 200 and 12000 octets");
        }
        Ok(())
    }
}
