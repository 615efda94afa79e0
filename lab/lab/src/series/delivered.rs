//! The goodput of flows in each interval of a run.

use hol_base::{Duration, Time};
use hol_measure::Record;

/// The octets delivered in each interval, by flow. A message counts when it has been delivered completely.
#[derive(Debug)]
pub(super) struct DeliveredOctets {
    interval: Duration,
    flows: Vec<Vec<u64>>,
}

impl DeliveredOctets {
    /// Creates a counter without deliveries.
    pub(super) fn new(interval: Duration, flows: usize) -> Self {
        Self { interval, flows: vec![Vec::new(); flows] }
    }

    /// Adds the octets of a flow's record to the interval of its delivery; returns false if the delivery is after the first
    /// `max` intervals.
    pub(super) fn add(&mut self, flow: usize, record: &Record, max: u64) -> bool {
        let Some(at) = record.delivered_at() else { return true };
        // A delivery at the end of an interval belongs to it.
        let interval = at.as_nanos().saturating_sub(1) / self.interval.as_nanos();
        if interval >= max {
            return false;
        }
        let (octets, interval) = (&mut self.flows[flow], interval as usize);
        if octets.len() <= interval {
            octets.resize(interval + 1, 0);
        }
        octets[interval] += u64::from(record.size);
        true
    }

    /// Returns for each flow the end of each interval, and the octets delivered in the interval. The last interval
    /// ends with the run.
    pub(super) fn finish(self, ended: Time) -> Vec<(u32, Vec<(Time, u64)>)> {
        let interval = self.interval.as_nanos();
        let intervals = ended.as_nanos().div_ceil(interval) as usize;
        let of_flow = |mut octets: Vec<u64>| {
            octets.resize(intervals.max(octets.len()), 0);
            let end = |number: usize| Time::from_nanos((number as u64 + 1) * interval);
            let last = intervals.wrapping_sub(1);
            let rows = octets.into_iter().enumerate();
            rows.map(|(number, octets)| (if number == last { ended } else { end(number) }, octets)).collect()
        };
        (0..).zip(self.flows.into_iter().map(of_flow)).collect()
    }
}
