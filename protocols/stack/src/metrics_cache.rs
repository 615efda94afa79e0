//! What a Linux host remembers from one TCP connection to the next.

use std::str::FromStr;

/// What hosts keep of a TCP connection that ended in an orderly way, for the next one between the same addresses.
///
/// This is the temporal sharing of RFC 9040 section 6. Linux 6.12 keeps RTT, RTTVAR, reordering and cwnd for an
/// hour, and ssthresh if the host is told to; until 5.5 they all were. Of these the next connection takes the
/// reordering for its dupthresh, ssthresh, and the RTT for its first RTO, where that is longer than what the SYN
/// measured. It never takes RTTVAR, and cwnd only as a bound that a route has locked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub enum MetricsCache {
    /// Nothing: every connection is the first (`tcp_no_metrics_save=1`). A measurement's default, not Linux's.
    #[default]
    Off,
    /// As Linux does by itself since 5.6: all but ssthresh (`tcp_no_ssthresh_metrics_save=1`).
    On,
    /// ssthresh too, as Linux did until 5.5.
    Ssthresh,
}

impl FromStr for MetricsCache {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match text {
            "off" => Ok(Self::Off),
            "on" => Ok(Self::On),
            "ssthresh" => Ok(Self::Ssthresh),
            _ => Err("it is off, on (all but ssthresh, as Linux does) or ssthresh (that too)"),
        }
    }
}
