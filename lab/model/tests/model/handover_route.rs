//! A client that moves and keeps its address, in the model world: the route changes below the transport.
//! Packets take only propagation time.

use hol_base::{Duration, Seed, Time};
use hol_measure::{Outcome, Record};
use hol_model::run;
use hol_network::{PacketInTransit, Tap, TapEvent, TapPoint};
use hol_scenario::{Run, Scenario};
use hol_wire::ipv4;

/// A handover, in ms.
#[derive(Debug, Clone, Copy)]
struct Handover {
    /// One-way delays before and after.
    delays: [u64; 2],
    /// When the first path ends, and when all packets start to take the second.
    leaves: u64,
    attached: u64,
}

impl Handover {
    fn scenario(self, transport: &str, workload: &str, messages: u64) -> Scenario {
        let Self { delays: [old, new], leaves, attached } = self;
        let overlap = leaves as f64 / 100.0;
        let network = format!(
            "rate = '1000Gbit'\npaths = [{{ delay = '{old}ms' }}, {{ delay = '{new}ms' }}]\n\
             handover = {{ at = '0s', speed = 10, overlap = {overlap}, attach = '{attached}ms', changes = 'route' }}"
        );
        let tables = [&network, workload].map(|table| table.parse::<toml::Table>().unwrap());
        let [network, workload] = tables;
        let transport = transport.parse().unwrap();
        Scenario::with_single_flow(
            network.try_into().unwrap(),
            transport,
            workload.try_into().unwrap(),
            messages,
        )
    }

    /// Runs messages of 100 octets to the server, one every `interval` ms.
    fn run(self, transport: &str, interval: u64, messages: u64) -> Run {
        self.bursts(transport, 1, 100, interval, messages)
    }

    /// Runs bursts of messages of `size` octets.
    fn bursts(self, transport: &str, burst: u64, size: u64, interval: u64, messages: u64) -> Run {
        let workload =
            format!("kind = 'oneway'\nsources = {burst}\ninterval = '{interval}ms'\nsize = '{size}B'");
        run(&self.scenario(transport, &workload, messages), Seed(1), None).unwrap()
    }

    fn attached(self) -> Time {
        Time::from_millis(self.attached)
    }

    /// Returns the one-way delay of a packet sent at `time`; `None` if it is lost. The first path works until
    /// the client leaves.
    fn carries(self, time: Time) -> Option<Duration> {
        let Self { delays: [old, new], leaves, .. } = self;
        let [old, new] = [old, new].map(Duration::from_millis);
        if time >= self.attached() {
            return Some(new);
        }
        (time + old <= Time::from_millis(leaves)).then_some(old)
    }
}

const TCP: &str = "tcp:stack=rfc";
const SCTP: &str = "sctp:stack=rfc";
const QUIC: &str = "quic:stack=rfc";

#[track_caller]
fn is_about(time: Duration, expected: Duration) {
    // Transmission takes 12 ns for a long packet.
    let slack = Duration::from_micros(1);
    assert!(time + slack > expected && time < expected + slack, "{time}, and {expected} is due");
}

fn latency(record: &Record) -> Duration {
    record.latency().unwrap_or_else(|| panic!("{record:?} is delivered"))
}

/// Packets in flight when the client leaves are lost, and so are those sent until it is attached; no others.
#[test]
fn datagrams_are_lost_from_one_delay_before_leaving_until_attaching() {
    for (delays, leaves, attached, lost) in [
        // 155 to 305 ms.
        ([50, 50], 205, 305, 15),
        // 155 to 175 ms: it attaches before it leaves, but by less than a delay.
        ([50, 80], 205, 175, 2),
        ([50, 80], 205, 155, 0),
        ([50, 20], 205, 105, 0),
        ([0, 50], 205, 1005, 80),
    ] {
        let way = Handover { delays, leaves, attached };
        let run = way.run("udp", 10, 150);
        for record in &run.records {
            match way.carries(record.scheduled) {
                Some(delay) => is_about(latency(record), delay),
                None => assert_eq!(record.outcome, Outcome::Abandoned, "{way:?} {record:?}"),
            }
        }
        let gone = run.records.iter().filter(|record| record.outcome == Outcome::Abandoned).count();
        assert_eq!(gone, lost, "{way:?}");
    }
}

/// Nothing is lost, so the gap is the time between two messages plus the additional delay of the second path.
#[test]
fn client_attached_one_delay_before_leaving_loses_no_packet() {
    let way = Handover { delays: [50, 70], leaves: 1005, attached: 905 };
    for transport in ["udp", TCP, SCTP, QUIC] {
        let run = way.run(transport, 10, 150);
        for record in &run.records {
            is_about(latency(record), way.carries(record.scheduled).expect("all arrive"));
        }
        let [client, server] = run.summary.endpoints.unwrap();
        assert_eq!((client.timeouts, server.duplicates_received), (0, 0), "{transport}");
    }
}

/// A lost message arrives after the first timeout at which the client is attached. RFC 6298 section 5.5 and
/// RFC 9260 section 6.3.3 E2 double the timeout, from a second on: 1, 3 and 7 s after the transmission.
#[test]
fn lost_data_arrive_after_the_next_timeout() {
    for transport in [TCP, SCTP] {
        for attached in [1500, 2000, 2500, 4000, 4500, 8000] {
            let (run, way) = lost(transport, attached);
            let [record] = run.records[..] else { panic!("one message") };
            let [client, _] = run.summary.endpoints.unwrap();
            let timers = |expiries: u64| Duration::from_secs((1 << expiries) - 1);
            let due = (1..).find(|expiries| record.scheduled + timers(*expiries) >= way.attached());
            let due = due.expect("it tries for longer");
            is_about(latency(&record), timers(due) + Duration::from_millis(80));
            assert_eq!(client.timeouts, due, "{transport} {way:?}");
        }
    }
}

/// RFC 9002 section 6.2.1: a probe after PTO, which is a round trip, four times its variation and
/// `max_ack_delay`, and doubles. The variation is half a round trip at first (section 5.3), and decreases
/// with each equal sample. quinn's probe is a PING (section 6.2.4 leaves the choice), whose acknowledgment
/// reveals the loss.
#[test]
fn data_lost_by_quic_arrive_a_round_trip_after_the_next_probe() {
    let way = Duration::from_millis(80);
    let probed = |attached| lost(QUIC, attached).0.records[0];
    let pto = latency(&probed(1200)) - way * 3;
    let [min, max] = [100 + 25, 100 + 4 * 50 + 25].map(Duration::from_millis);
    assert!((min..max).contains(&pto), "{pto}");
    for attached in [1300, 1500, 2500, 4000] {
        let record = probed(attached);
        let timers = |probes: u32| pto * ((1 << probes) - 1);
        let due = (1..).map(timers).find(|time| record.scheduled + *time >= Time::from_millis(attached));
        is_about(latency(&record), due.expect("it tries for longer") + way * 3);
    }
}

/// Runs one message a second after connecting, while all packets are lost.
fn lost(transport: &str, attached: u64) -> (Run, Handover) {
    let way = Handover { delays: [50, 80], leaves: 1105, attached };
    let run = way.run(transport, 1000, 1);
    assert_eq!(way.carries(run.records[0].scheduled), None, "{transport}: it is sent in the gap");
    (run, way)
}

/// Records at which interface each packet appears.
#[derive(Default)]
struct Path(Vec<(Time, String, bool)>);

impl Tap for Path {
    fn packet(
        &mut self,
        now: Time,
        point: TapPoint<'_>,
        PacketInTransit { packet, .. }: &PacketInTransit,
        event: TapEvent,
    ) {
        if event == TapEvent::Sent {
            let is_kept = |address| [ipv4(10, 0, 1, 1), ipv4(10, 0, 1, 2)].contains(&address);
            self.0.push((now, point.name.to_owned(), is_kept(packet.source) && is_kept(packet.destination)));
        }
    }
}

/// Also with transports that could use several addresses: there is only one.
#[test]
fn both_ends_keep_their_addresses_and_change_the_path_at_once() {
    let way = Handover { delays: [10, 10], leaves: 305, attached: 205 };
    for transport in ["udp", TCP, "sctp:stack=rfc,auth=true,addip=true", "sctp:stack=rfc,cmt=true", QUIC] {
        let mut path = Path::default();
        let scenario = way.scenario(transport, "kind = 'echo'", 50);
        run(&scenario, Seed(1), Some(&mut path)).unwrap();
        for (time, interface, keeps) in &path.0 {
            let number = if *time < Time::from_millis(205) { ":1" } else { ":2" };
            assert!(*keeps && interface.ends_with(number), "{transport}: {interface} at {time}");
        }
        assert!(path.0.iter().any(|(_, interface, _)| interface == "server:2"));
    }
}

/// Over a shorter path packets overtake those on the old one, so that messages wait for the order. Transports
/// treat two of them as reordering, three as a loss, and the retransmitted packet then arrives twice: RFC
/// 6675 section 5 step 2, RFC 9260 section 7.2.4, RFC 9002 section 6.1.1.
#[test]
fn overtaking_over_a_shorter_path_is_handled_as_reordering() {
    // The new path is so much shorter that its first burst, or its first messages, overtake the last on the
    // old path.
    for (transport, burst, size, shorter, twice) in [
        (TCP, 2, 1448, 15, 0),
        (TCP, 3, 1448, 15, 3),
        (SCTP, 1, 100, 25, 0),
        (SCTP, 1, 100, 35, 1),
        (QUIC, 1, 100, 25, 0),
        (QUIC, 1, 100, 35, 1),
    ] {
        let way = Handover { delays: [100, 100 - shorter], leaves: 9000, attached: 3005 };
        let run = way.bursts(transport, burst, size, 10, burst * 350);
        let arrives = |record: &Record| record.scheduled + way.carries(record.scheduled).expect("all arrive");
        let old = run.records.iter().filter(|record| record.scheduled < way.attached());
        let last_old = old.map(arrives).max().unwrap();
        // The window is large by then.
        for record in run.records.iter().filter(|record| record.scheduled > Time::from_millis(2500)) {
            let is_new = record.scheduled >= way.attached();
            let due = if is_new { arrives(record).max(last_old) } else { arrives(record) };
            is_about(latency(record), due.since(record.scheduled));
        }
        let [client, server] = run.summary.endpoints.unwrap();
        assert_eq!((client.timeouts, server.duplicates_received), (0, twice), "{transport} {way:?}");
    }
}
