//! The metrics that a Linux host caches from one TCP connection for the next.

use std::str::FromStr;

/// The metrics that a host caches from a TCP connection for the next connection between the same addresses.
/// Only connections that ended in an orderly way count.
///
/// This is the temporal sharing of RFC 9040 section 6. Linux 6.12 caches RTT, RTTVAR, reordering and cwnd for an hour,
/// and ssthresh if a sysctl says so; before 5.6 it always cached ssthresh. The next connection uses the cached
/// reordering as its dupthresh, the cached ssthresh, and the cached RTT for its first RTO if it is longer than the RTT
/// of the SYN. It does not use the cached RTTVAR, and uses the cached cwnd only as a limit, if the route locks it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub enum MetricsCache {
    /// The host caches no metrics (`tcp_no_metrics_save=1`). This is the default of this program, not of Linux.
    #[default]
    Off,
    /// The host caches all metrics except ssthresh (`tcp_no_ssthresh_metrics_save=1`): the default of Linux since
    /// 5.6.
    On,
    /// The host caches all metrics including ssthresh, as in Linux until 5.5.
    Ssthresh,
}

impl FromStr for MetricsCache {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match text {
            "off" => Ok(Self::Off),
            "on" => Ok(Self::On),
            "ssthresh" => Ok(Self::Ssthresh),
            _ => Err("use off, on (all values except ssthresh, as Linux does) or ssthresh (all values)"),
        }
    }
}
