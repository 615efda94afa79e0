//! Compact samples of an end's senders, for the host that joins the ends of a flow.

use std::net::IpAddr;

use hol_base::{Duration, Time};
use hol_scenario::{Sample, SampleValue, SenderSample, Side};
use hol_transport::PathState;
use serde::{Deserialize, Serialize};

/// A sample of a sender, without the flow and the end to which it belongs, which the receiving host knows. It contains
/// the time on the sender's clock, the connection, the peer's address, and the numbers.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CompactSenderSample(Time, u32, IpAddr, [Option<u64>; 6]);

/// Maximum of a number in a sample; the sum over all samples of a run fits into 64 bits.
const MAX_NUMBER: u64 = 1 << 42;

impl CompactSenderSample {
    /// Converts a sample; `None` if it is not the sample of a sender.
    pub(crate) fn of(sample: &Sample) -> Option<Self> {
        let SampleValue::Sender(SenderSample { connection, path, sent_again, .. }) = sample.value else {
            return None;
        };
        let PathState { peer, cwnd, ssthresh, srtt, pacing_rate, in_flight } = path;
        let numbers = [cwnd, ssthresh, srtt.map(Duration::as_nanos), pacing_rate, in_flight, sent_again];
        Some(Self(sample.at, connection, peer, numbers))
    }

    /// Returns the sample of the end on this `side`, without numbers above the maximum.
    pub(crate) fn sample(self, side: Side) -> Sample {
        let Self(at, connection, peer, numbers) = self;
        let [cwnd, ssthresh, srtt, pacing_rate, in_flight, sent_again] =
            numbers.map(|number| number.filter(|number| *number <= MAX_NUMBER));
        let srtt = srtt.map(Duration::from_nanos);
        let path = PathState { peer, cwnd, ssthresh, srtt, pacing_rate, in_flight };
        Sample {
            at,
            value: SampleValue::Sender(SenderSample { flow: 0, connection, side, path, sent_again }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample(number: u64) -> Sample {
        let path = PathState {
            peer: [192, 0, 2, 7].into(),
            cwnd: Some(number),
            ssthresh: None,
            srtt: Some(Duration::from_nanos(number)),
            pacing_rate: None,
            in_flight: Some(number),
        };
        let sender =
            SenderSample { flow: 0, connection: 3, side: Side::Server, path, sent_again: Some(number) };
        Sample { at: Time::from_millis(7), value: SampleValue::Sender(sender) }
    }

    #[test]
    fn a_compact_sender_sample_decodes_to_the_sample() {
        let text = serde_json::to_string(&CompactSenderSample::of(&sample(14_480)).unwrap()).unwrap();
        let decoded: CompactSenderSample = serde_json::from_str(&text).unwrap();
        assert_eq!(decoded.sample(Side::Server), sample(14_480));
    }

    #[test]
    fn impossible_numbers_of_a_sample_are_omitted() {
        assert!(MAX_NUMBER.checked_mul(Sample::MAX_PER_RUN + 1).is_some());
        for absurd in [MAX_NUMBER + 1, u64::MAX] {
            let SampleValue::Sender(decoded) =
                CompactSenderSample::of(&sample(absurd)).unwrap().sample(Side::Client).value
            else {
                unreachable!("a compact sample is of a sender")
            };
            let PathState { cwnd, srtt, in_flight, .. } = decoded.path;
            assert_eq!((cwnd, srtt, in_flight, decoded.sent_again), (None, None, None, None));
        }
    }
}
