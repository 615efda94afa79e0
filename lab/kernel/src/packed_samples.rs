//! The binary format of samples between guest and host: 12 little-endian numbers of 64 bits each.

use std::net::{IpAddr, Ipv6Addr};

use hol_base::{Duration, Time};
use hol_scenario::{QueueSample, Sample, SampleValue, SenderSample, Side};
use hol_transport::PathState;

/// Number of numbers in a packed sample: its kind, its time, the identification of its source (four numbers for a
/// sender, one for a queue), and its values.
const NUMBERS_PER_SAMPLE: usize = 12;
/// The packed form of an unknown value.
const UNKNOWN_VALUE: u64 = u64::MAX;
/// Numbers of the kinds of samples.
const CLIENT: u64 = 0;
const SERVER: u64 = 1;
const QUEUE: u64 = 2;

/// Packs samples, one after the other.
pub(crate) fn pack(samples: &[Sample]) -> Vec<u8> {
    samples.iter().flat_map(numbers).flat_map(u64::to_le_bytes).collect()
}

/// Reads packed samples; `None` if `octets` is malformed.
pub(crate) fn unpack(octets: &[u8]) -> Option<Vec<Sample>> {
    octets.chunks(8 * NUMBERS_PER_SAMPLE).map(sample).collect()
}

fn numbers(Sample { at, value }: &Sample) -> [u64; NUMBERS_PER_SAMPLE] {
    let at = at.as_nanos();
    match *value {
        SampleValue::Sender(SenderSample { flow, connection, side, path, sent_again }) => {
            let side = if side == Side::Client { CLIENT } else { SERVER };
            let PathState { peer, cwnd, ssthresh, srtt, pacing_rate, in_flight } = path;
            let known = [cwnd, ssthresh, srtt.map(Duration::as_nanos), pacing_rate, in_flight, sent_again];
            let [cwnd, ssthresh, srtt, rate, in_flight, again] =
                known.map(|number| number.unwrap_or(UNKNOWN_VALUE));
            let (flow, connection, [high, low]) = (flow.into(), connection.into(), words(peer));
            [side, at, flow, connection, high, low, cwnd, ssthresh, srtt, rate, in_flight, again]
        }
        SampleValue::Queue(QueueSample { queue: line, packets, octets, dropped, lost }) => {
            let (line, lost) = (line.into(), lost.unwrap_or(UNKNOWN_VALUE));
            [QUEUE, at, line, packets, octets, dropped, lost, 0, 0, 0, 0, 0]
        }
    }
}

/// Returns an address as two 64-bit numbers. An IPv4 address is converted to an IPv4-mapped IPv6 address (RFC 4291
/// section 2.5.5.2).
fn words(address: IpAddr) -> [u64; 2] {
    let bits = match address {
        IpAddr::V4(address) => address.to_ipv6_mapped().to_bits(),
        IpAddr::V6(address) => address.to_bits(),
    };
    [(bits >> 64) as u64, bits as u64]
}

fn address([high, low]: [u64; 2]) -> IpAddr {
    Ipv6Addr::from_bits(u128::from(high) << 64 | u128::from(low)).to_canonical()
}

fn sample(octets: &[u8]) -> Option<Sample> {
    let (numbers, []) = octets.as_chunks() else { return None };
    let numbers: Vec<u64> = numbers.iter().map(|number| u64::from_le_bytes(*number)).collect();
    let [whose, at, ..] = numbers[..] else { return None };
    let known = |number: u64| Some(number).filter(|number| *number != UNKNOWN_VALUE);
    let value = match (whose, &numbers[2..]) {
        (QUEUE, [line, packets, octets, dropped, lost, ..]) => SampleValue::Queue(QueueSample {
            queue: u32::try_from(*line).ok()?,
            packets: *packets,
            octets: *octets,
            dropped: *dropped,
            lost: known(*lost),
        }),
        (CLIENT | SERVER, [flow, connection, high, low, cwnd, ssthresh, srtt, rate, in_flight, again]) => {
            let path = PathState {
                peer: address([*high, *low]),
                cwnd: known(*cwnd),
                ssthresh: known(*ssthresh),
                srtt: known(*srtt).map(Duration::from_nanos),
                pacing_rate: known(*rate),
                in_flight: known(*in_flight),
            };
            let side = if whose == CLIENT { Side::Client } else { Side::Server };
            let (flow, connection) = (u32::try_from(*flow).ok()?, u32::try_from(*connection).ok()?);
            SampleValue::Sender(SenderSample { flow, connection, side, path, sent_again: known(*again) })
        }
        _ => return None,
    };
    Some(Sample { at: Time::from_nanos(at), value })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn samples() -> Vec<Sample> {
        let path = PathState {
            peer: IpAddr::from([10, 0, 1, 2]),
            cwnd: Some(14_480),
            ssthresh: None,
            srtt: Some(Duration::from_micros(40_123)),
            pacing_rate: Some(1 << 40),
            in_flight: Some(0),
        };
        let nothing = PathState {
            cwnd: None,
            srtt: None,
            pacing_rate: None,
            in_flight: None,
            ssthresh: Some(1),
            ..path
        };
        let sender = |side, path, sent_again| {
            SampleValue::Sender(SenderSample { flow: 3, connection: 70_000, side, path, sent_again })
        };
        let queue =
            |lost| SampleValue::Queue(QueueSample { queue: 5, packets: 6, octets: 9000, dropped: 2, lost });
        let of = [
            sender(Side::Client, path, Some(4)),
            sender(Side::Server, nothing, None),
            queue(None),
            queue(Some(7)),
        ];
        (1..).zip(of).map(|(ms, of)| Sample { at: Time::from_millis(ms), value: of }).collect()
    }

    #[test]
    fn samples_survive_encoding() {
        assert_eq!(unpack(&pack(&samples())), Some(samples()));
        assert_eq!(unpack(&[]), Some(Vec::new()));
    }

    #[test]
    fn malformed_samples_are_refused() {
        let octets = pack(&samples());
        for end in [1, 8, 87, octets.len() - 1] {
            assert_eq!(unpack(&octets[..end]), None, "{end}");
        }
        let wrong = |place: usize, octet| {
            let mut octets = octets.clone();
            octets[place] = octet;
            unpack(&octets)
        };
        assert_eq!(wrong(0, 3), None, "the kind of sample is unknown");
        assert_eq!(wrong(8 * 2 + 5, 1), None, "no flow has such a number");
        assert_eq!(wrong(8 * 3 + 4, 1), None, "no connection has such a number");
    }
}
