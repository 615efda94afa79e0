//! Checks that samples of a run follow the rules of its transport, and that sampling does not change the run.

use hol_base::{Digest, Digester, Duration, Seed, Time};
use hol_measure::Record;
use hol_model::run_with_observer;
use hol_scenario::{Observer, QueueSample, RunSummary, Sample, SampleValue, Scenario, SenderSample, Side};

const MSS: u64 = 1448;

/// An observer that stores all samples, and the digest of all records.
struct Watching {
    interval: Option<Duration>,
    samples: Vec<Sample>,
    digester: Digester,
}

impl Observer for Watching {
    fn record(&mut self, _: usize, record: &Record) {
        record.digest(&mut self.digester);
    }

    fn interval(&self) -> Option<Duration> {
        self.interval
    }

    fn sample(&mut self, sample: &Sample) {
        self.samples.push(*sample);
    }
}

fn watch(
    transport: &str,
    network: &str,
    workload: &str,
    messages: u64,
    interval: Option<u64>,
) -> (RunSummary, Vec<Sample>, Digest) {
    let scenario = Scenario::with_single_flow(
        toml::from_str(network).unwrap(),
        transport.parse().unwrap(),
        toml::from_str(workload).unwrap(),
        messages,
    );
    let interval = interval.map(Duration::from_millis);
    let mut watching = Watching { interval, samples: Vec::new(), digester: Digester::new() };
    let summary = run_with_observer(&scenario, Seed(1), None, &mut watching).unwrap();
    (summary, watching.samples, watching.digester.finish())
}

/// Returns the samples of the client as a sender, by time.
fn client(samples: &[Sample]) -> Vec<(Time, SenderSample)> {
    let of_client = samples.iter().filter_map(|sample| match sample.value {
        SampleValue::Sender(sender) if sender.side == Side::Client => Some((sample.at, sender)),
        _ => None,
    });
    of_client.collect()
}

fn queues(samples: &[Sample], line: u32) -> Vec<QueueSample> {
    let of_line = samples.iter().filter_map(|sample| match sample.value {
        SampleValue::Queue(queue) if queue.queue == line => Some(queue),
        _ => None,
    });
    of_line.collect()
}

const BULK: &str = "kind = 'bulk'\nsize = '1448B'";

/// RFC 5681 section 3.1: the window grows by the acknowledged octets. Linux counts all of them, so that
/// without loss it doubles per round trip. Equation 2 counts at most one SMSS per acknowledgment: if every
/// second segment is acknowledged, the window grows by half.
#[test]
fn the_window_doubles_each_round_trip_in_slow_start() {
    const RTT: u64 = 100;
    const INITIAL: u64 = 10;
    let doubled: Vec<u64> = (0..5).map(|flight| INITIAL << flight).collect();
    for (transport, windows) in [
        // A receiver that reads late advertises a smaller window.
        ("tcp:cc=reno,wakeup=0s", &doubled[..]),
        ("tcp:wakeup=0s", &doubled),
        ("tcp:cc=reno,stack=rfc", &[INITIAL, INITIAL + INITIAL / 2]),
    ] {
        let network = "delay = '50ms'\nrate = '10Gbit'\nqueue = '100000p'";
        let (_, samples, _) = watch(transport, network, BULK, 2000, Some(RTT / 2));
        // The handshake takes a round trip; half a round trip later a whole flight is in flight.
        for (flight, segments) in (0..).zip(windows) {
            let at = Time::from_millis(RTT + RTT / 2 + RTT * flight);
            let samples = client(&samples);
            let (_, sender) = samples.iter().find(|(time, _)| *time == at).expect("it is seen");
            let window = segments * MSS;
            assert_eq!(sender.path.cwnd, Some(window), "{transport} at {at}");
            assert_eq!(sender.path.ssthresh, None, "{transport}: nothing was lost");
            let srtt = sender.path.srtt.expect("it is measured").as_millis_f64();
            assert!((srtt - RTT as f64).abs() < 0.5, "{transport} at {at}: {srtt}");
            assert_eq!(sender.path.in_flight, Some(window), "{transport} at {at}: all of it is in flight");
            assert_eq!(sender.sent_again, Some(0));
        }
    }
}

/// RFC 5681 section 3.2: a loss halves the window (equation 4), and from then on (section 3.1) it grows by a segment in a round trip.
#[test]
fn reno_halves_its_window_then_grows_by_a_segment_per_round_trip() {
    const RTT: u64 = 100;
    let network = "delay = '50ms'\nrate = '1Gbit'\nqueue = '100000p'\nup = { loss = { drop = [300] } }";
    let (_, samples, _) = watch("tcp:cc=reno", network, BULK, 4000, Some(RTT));
    let windows: Vec<(u64, Option<u64>)> = client(&samples)
        .iter()
        .map(|(_, sender)| (sender.path.cwnd.unwrap() / MSS, sender.path.ssthresh))
        .collect();
    let lost = windows.iter().position(|(_, ssthresh)| ssthresh.is_some()).expect("one is lost");
    let greatest = windows[..=lost].iter().map(|(cwnd, _)| *cwnd).max().unwrap();
    let ssthresh = windows[lost].1.unwrap() / MSS;
    // Between two samples it may have grown by the octets acknowledged before the third duplicate.
    assert!(ssthresh >= greatest / 2 && ssthresh <= greatest, "{windows:?}");
    let after =
        windows.iter().skip(lost).position(|(cwnd, _)| *cwnd == ssthresh).expect("it comes down to ssthresh");
    let grown: Vec<u64> = windows.iter().skip(lost + after).map(|(cwnd, _)| *cwnd).take(8).collect();
    assert!(grown.windows(2).all(|pair| pair[1] - pair[0] <= 1), "{grown:?}");
    assert!(grown[7] - grown[0] >= 5, "{grown:?}");
    let again = client(&samples).last().unwrap().1.sent_again;
    assert_eq!(again, Some(1));
}

#[test]
fn queue_samples_respect_the_limit_and_add_up_to_the_drops_of_the_run() {
    for (queue, packets, octets) in [("20p", 20, u64::MAX), ("30000B", u64::MAX, 30_000)] {
        for discipline in ["'droptail'", "'codel'", "'fq_codel'", "{ red = { min = '5p', max = '15p' } }"] {
            // The limit of fq_codel is in packets.
            if discipline == "'fq_codel'" && packets == u64::MAX {
                continue;
            }
            let network =
                format!("delay = '5ms'\nrate = '10Mbit'\nqueue = '{queue}'\ndiscipline = {discipline}");
            let (summary, samples, _) = watch("tcp", &network, BULK, 3000, Some(1));
            let up = queues(&samples, 0);
            assert!(up.iter().all(|seen| seen.packets <= packets && seen.octets <= octets), "{network}");
            let max = up.iter().map(|seen| seen.packets).max().unwrap();
            assert!(max >= 5, "{network}: it fills, to {max}");
            assert!(up.is_sorted_by_key(|seen| (seen.dropped, seen.lost)), "{network}");
            let drops = summary.drops.unwrap();
            let last = up.last().unwrap();
            assert!(last.dropped > 0 && last.dropped <= drops.queue, "{network}: {last:?} of {drops:?}");
            assert_eq!(last.lost, Some(0), "{network}");
        }
    }
}

/// Packets lost on the link do not count as dropped by the queue.
#[test]
fn samples_count_packets_lost_on_the_link() {
    let (summary, samples, _) =
        watch("tcp", "delay = '5ms'\nrate = '10Mbit'\nup = { loss = '2%' }", BULK, 3000, Some(10));
    let last = *queues(&samples, 0).last().unwrap();
    let drops = summary.drops.unwrap();
    assert!(last.lost.unwrap() > 10 && last.lost.unwrap() <= drops.loss, "{last:?} of {drops:?}");
    assert_eq!(queues(&samples, 1).last().unwrap().lost, Some(0), "the way back loses nothing");
}

#[test]
fn sampling_does_not_change_a_run_and_happens_at_every_interval() {
    for (transport, network, workload) in [
        ("tcp", "delay = '10ms'\nrate = '10Mbit'\nloss = '1%'", BULK),
        ("tcp:cc=bbr", "delay = '10ms'\nrate = '10Mbit'\nloss = '1%'", BULK),
        ("sctp:streams=8", "delay = '10ms'\nrate = '10Mbit'\nloss = '1%'", "kind = 'simco'"),
        ("quic", "delay = '10ms'\nrate = '10Mbit'\nloss = '1%'", BULK),
        ("udp", "delay = '10ms'\nrate = '10Mbit'\nloss = '1%'", "kind = 'echo'"),
        ("tcp", "loss = '1%'", "kind = 'page'\nobjects = 8"),
    ] {
        let run = |interval| watch(transport, network, workload, 300, interval);
        let ((summary, none, digest), (seen, samples, own)) = (run(None), run(Some(7)));
        assert!(none.is_empty());
        assert_eq!(digest, own, "{transport}, {workload}");
        let counts = |summary: &RunSummary| {
            (summary.packets, summary.drops, summary.endpoints, summary.ended, summary.closed)
        };
        assert_eq!(counts(&summary), counts(&seen), "{transport}, {workload}");
        let times: Vec<u64> = samples.iter().map(|sample| sample.at.as_millis()).collect();
        assert!(times.is_sorted() && samples.iter().all(|sample| sample.at.as_nanos() % 7_000_000 == 0));
        let up = queues(&samples, 0).len() as u64;
        assert_eq!(up, (summary.ended.as_nanos() - 1) / 7_000_000 + 1, "{transport}: one for each multiple");
        assert_eq!(client(&samples).is_empty(), transport == "udp", "{transport}: datagrams have no window");
    }
}

#[test]
fn samples_have_each_path_of_an_association_and_the_pacing_rate_of_bbr() {
    let network = "paths = [{ delay = '10ms' }, { delay = '30ms' }]\nrate = '10Mbit'";
    let (_, samples, _) = watch("sctp", network, BULK, 1000, Some(50));
    let seen = client(&samples);
    let (last, _) = *seen.last().unwrap();
    let paths: Vec<SenderSample> =
        seen.iter().filter(|(at, _)| *at == last).map(|(_, sender)| *sender).collect();
    let [first, second] = paths[..] else { panic!("two paths: {paths:?}") };
    assert_ne!(first.path.peer, second.path.peer);
    assert!(first.path.cwnd > second.path.cwnd, "data takes the primary path");
    assert_eq!(second.path.in_flight, Some(0));
    assert_eq!((first.connection, first.flow, first.path.pacing_rate), (0, 0, None));

    let (_, samples, _) = watch("tcp:cc=bbr", "delay = '20ms'\nrate = '8Mbit'", BULK, 3000, Some(20));
    let rates: Vec<u64> =
        client(&samples).iter().map(|(_, sender)| sender.path.pacing_rate.unwrap()).collect();
    let settled = &rates[rates.len() / 2..];
    let mean = settled.iter().sum::<u64>() as f64 / settled.len() as f64;
    assert!((0.85..1.15).contains(&(mean / 1e6)), "about the 10^6 octets a second of the line: {mean}");
}

/// RFC 9002 section 7.3.1: the same for QUIC, whose window counts octets of packets; the octets in flight
/// never exceed it.
#[test]
fn quic_window_grows_by_the_acknowledged_octets() {
    let network = "delay = '50ms'\nrate = '1Gbit'\nqueue = '100000p'";
    let (_, samples, _) = watch("quic", network, BULK, 3000, Some(10));
    let seen = client(&samples);
    let windows: Vec<u64> = seen.iter().map(|(_, sender)| sender.path.cwnd.unwrap()).collect();
    assert_eq!(windows[0], 12_000, "ten datagrams of 1200 octets (section 7.2)");
    assert!(windows.is_sorted() && *windows.last().unwrap() > 100_000, "{windows:?}");
    for (at, sender) in &seen {
        let (cwnd, in_flight) = (sender.path.cwnd.unwrap(), sender.path.in_flight.unwrap());
        // Until the next acknowledgment, pure ACK packets are counted as in flight.
        assert!(in_flight <= cwnd + 1500, "{in_flight} of {cwnd} at {at}");
        assert!((99.0..140.0).contains(&sender.path.srtt.unwrap().as_millis_f64()));
    }
    assert!(seen.iter().any(|(_, sender)| sender.path.in_flight > Some(50_000)));
}
