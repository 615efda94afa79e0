//! Samples a run at every multiple of an interval.

use hol_base::{Duration, Time};
use hol_network::Backlog;
use hol_scenario::{QueueSample, Sample, SampleValue, SenderSample, Side};
use hol_transport::{Endpoint, Statistics};

use crate::connection::Connection;

/// The time of the next sample; [`Time::MAX`] if no samples are taken.
#[derive(Debug, Clone, Copy)]
pub(crate) struct SampleTimes {
    interval: Option<Duration>,
    next_sample: Time,
}

impl SampleTimes {
    /// Creates the sampling times for this interval; `None` for no samples.
    pub(crate) fn new(interval: Option<Duration>) -> Self {
        Self { interval, next_sample: if interval.is_some() { Time::ZERO } else { Time::MAX } }
    }

    /// Returns the time of the next sample. Events at the same time are handled before the sample is taken.
    #[inline]
    pub(crate) fn next(&self) -> Time {
        self.next_sample
    }

    /// Advances to the time of the next sample.
    pub(crate) fn advance(&mut self) {
        self.next_sample = self.interval.map_or(Time::MAX, |interval| self.next_sample + interval);
    }
}

/// Takes a sample of one end of a connection for each of its paths, and passes it to `see`. Takes none if the end
/// has sent no data.
pub(crate) fn sample_senders(
    at: Time,
    (flow, connection, side): (u32, u32, Side),
    endpoint: &Connection,
    see: &mut dyn FnMut(&Sample),
) {
    let Statistics { data_sent, fast_retransmissions, timeout_retransmissions, .. } = *endpoint.statistics();
    if data_sent == 0 {
        return;
    }
    let sent_again = Some(fast_retransmissions + timeout_retransmissions);
    endpoint.paths(&mut |path| {
        let sender = SenderSample { flow, connection, side, path, sent_again };
        see(&Sample { at, value: SampleValue::Sender(sender) });
    });
}

/// Returns a sample of a queue, with this `Backlog` and its drops.
pub(crate) fn sample_queue(at: Time, queue: u32, Backlog { packets, octets, drops }: Backlog) -> Sample {
    let lost = Some(drops.total() - drops.queue);
    Sample {
        at,
        value: SampleValue::Queue(QueueSample { queue, packets, octets, dropped: drops.queue, lost }),
    }
}
