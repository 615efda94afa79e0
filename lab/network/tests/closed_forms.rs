//! Compares the network with closed forms.

use bytes::Bytes;
use hol_base::{Duration, Rng, Seed, Time};
use hol_network::{
    Drops, LinkDirection, Network, NetworkSpec, NodeId, PacketInTransit, Tap, TapEvent, TapPoint, Topology,
    read_trace,
};
use hol_wire::{Address, Packet, Transport, tcp};

const CLIENT: NodeId = NodeId(0);
const SERVER_ADDRESS: Address = hol_wire::ipv4(10, 0, 1, 2);

/// Returns an IP packet of `length` octets that contains a number.
fn packet(number: u32, length: usize) -> Packet {
    let segment = tcp::Segment {
        source_port: 1,
        destination_port: 2,
        seq: tcp::SeqNum(number),
        ack: tcp::SeqNum(0),
        flags: tcp::Flags::ACK,
        window: 0,
        options: tcp::Options::default(),
        payload: Bytes::from(vec![0; length - 40]),
        stamp: hol_wire::SendTimes::default(),
    };
    Packet::new(hol_wire::ipv4(10, 0, 1, 1), SERVER_ADDRESS, segment)
}

fn number(packet: &Packet) -> u32 {
    match &packet.transport {
        Transport::Tcp(segment) => segment.seq.0,
        Transport::Sctp(_) | Transport::Udp(_) | Transport::Quic(_) => unreachable!("only TCP is sent"),
    }
}

fn network(table: &str) -> Network<'static> {
    Network::new(&topology(table), Seed(1), None)
}

fn topology(table: &str) -> Topology {
    Topology::new(&toml::from_str(table).unwrap()).unwrap()
}

/// Sends packets of `length` octets at `times`; returns the number and time of each arrival, and the drops.
fn deliver(mut network: Network<'_>, times: &[Time], length: usize) -> (Vec<(u32, Time)>, Drops) {
    let mut arrivals = Vec::new();
    let run_until = |network: &mut Network<'_>, until: Time, arrivals: &mut Vec<(u32, Time)>| {
        while network.next_action() <= until && network.next_action() < Time::MAX {
            let now = network.next_action();
            while let Some(arrival) = network.poll(now) {
                arrivals.push((number(&arrival.packet), now));
            }
        }
    };
    for (id, at) in (0..).zip(times) {
        run_until(&mut network, *at, &mut arrivals);
        network.send(*at, CLIENT, packet(id, length));
    }
    run_until(&mut network, Time::MAX, &mut arrivals);
    (arrivals, network.drops())
}

fn every(gap: Duration, count: u64) -> Vec<Time> {
    (0..count).map(|k| Time::ZERO + gap * k).collect()
}

fn poisson(rng: &mut Rng, mean: Duration, count: usize) -> Vec<Time> {
    let mut at = Time::ZERO;
    let mut next = || {
        at += Duration::from_secs_f64(rng.exponential(mean.as_secs_f64()));
        at
    };
    (0..count).map(|_| next()).collect()
}

/// Opportunities of mahimahi: a packet each ms from 400 to 699 ms, and one at 1000 ms, where the trace begins again. So an outage begins
/// at 700 ms and lasts over the end of the trace until 400 ms of the next round, except for one packet in the last 100 ms. The packets have
/// 1500 octets, and the link 14 more for each.
#[test]
fn trace_plays_from_its_start_and_repeats_after_its_end() {
    let text: String = (400..700).chain([1000]).map(|ms| format!("{ms}\n")).collect();
    let trace = read_trace(&text, LinkDirection::Both).unwrap();
    let arrivals = |start: u64, sent: &[u64]| {
        let events = trace.events_from(Duration::from_millis(start));
        let spec = NetworkSpec { events, ..NetworkSpec::default() };
        let topology = Topology::new(&spec).unwrap();
        let sent: Vec<Time> = sent.iter().copied().map(Time::from_millis).collect();
        let (arrivals, _) = deliver(Network::new(&topology, Seed(1), None), &sent, 1500);
        arrivals.into_iter().map(|(_, at)| at.since(Time::from_millis(10)).as_millis()).collect::<Vec<_>>()
    };
    // The outage is from 200 to 900 ms of the run, and again from 1200 ms on.
    assert_eq!(arrivals(500, &[0, 200, 200, 200, 200, 1200]), [1, 500, 901, 902, 903, 1500]);
    // The run begins within the outage.
    assert_eq!(arrivals(800, &[0, 0]), [200, 601]);
    assert_eq!(arrivals(0, &[0, 400, 700]), [401, 402, 1000]);
    // The first packet is half sent at the beginning of the outage.
    assert_eq!(arrivals(699, &[0, 0]), [1, 301]);
}

/// A trace with one opportunity, whose last slot is shorter than 100 ms: each round lets one packet pass, wherever in a round it was sent.
#[test]
fn opportunity_lets_a_whole_packet_pass() {
    for end in [395, 303, 77, 1] {
        let trace = read_trace(&format!("{end}\n"), LinkDirection::Both).unwrap();
        let events = trace.events_from(Duration::ZERO);
        let topology = Topology::new(&NetworkSpec { events, ..NetworkSpec::default() }).unwrap();
        let sent = every(Duration::from_secs(1), 100);
        let (arrivals, _) = deliver(Network::new(&topology, Seed(1), None), &sent, 1500);
        assert_eq!(arrivals.len(), 100);
        for (id, at) in arrivals {
            let (round, place) = (u64::from(id) * 1000 / end, u64::from(id) * 1000 % end);
            let slot_start = (end - 1) / 100 * 100;
            // A packet that is sent during the slot leaves at the same time of the next round's slot.
            let expected = (round + 1) * end + if place > slot_start { place } else { 0 };
            let delay = at.since(Time::from_millis(10)).as_millis_f64() - expected as f64;
            assert!((-0.02..=0.0).contains(&delay), "{end}: packet {id} is late by {delay} ms");
        }
    }
}

/// Packets wait while the rate is 0, whatever the discipline; the packet in transmission is continued.
#[test]
fn link_with_the_rate_0_keeps_its_packets() {
    for discipline in
        ["'droptail'", "'codel'", "'fq_codel'", "'pie'", "{ red = { min = '30kB', max = '90kB' } }"]
    {
        let table = format!(
            "rate = '8Mbit'\noverhead = '0B'\ndelay = '10ms'\nqueue = '5p'\ndiscipline = {discipline}
            events = [{{ at = '1500us', rate = '0bit' }}, {{ at = '300ms', rate = '0bit' }}, {{ at = '1s', rate = '4Mbit' }}]"
        );
        // 1 ms for each packet: the second is half sent when the outage begins.
        let sent = [0, 0, 500, 600].map(Time::from_millis);
        let (arrivals, drops) = deliver(network(&table), &sent, 1000);
        let arrivals: Vec<u64> =
            arrivals.into_iter().map(|(_, at)| at.since(Time::from_millis(10)).as_millis()).collect();
        assert_eq!(arrivals, [1, 1001, 1003, 1005], "{discipline}");
        assert_eq!(drops, hol_network::Drops::default(), "{discipline}");
    }
}

/// Nothing is in transmission when the rate of 0 ends, so three packets have room.
#[test]
fn link_with_the_rate_0_has_room_for_a_packet_that_is_sent_as_it_ends() {
    let table = "rate = '8Mbit'\noverhead = '0B'\ndelay = '0ms'\nqueue = '3p'\n\
                 events = [{ at = '1500us', rate = '0bit' }, { at = '1s', rate = '4Mbit' }]";
    let times = [0, 500, 600, 1000].map(Time::from_millis);
    let (arrivals, drops) = deliver(network(table), &times, 1000);
    assert_eq!((arrivals.len(), drops.queue), (4, 0));
}

/// A link that goes down loses its packets also while its rate is 0.
#[test]
fn link_that_goes_down_at_the_rate_0_loses_its_packets() {
    let table = "rate = '8Mbit'\noverhead = '0B'\ndelay = '10ms'
        events = [{ at = '500us', rate = '0bit' }, { at = '1ms', down = true }, { at = '2ms', down = false },
                  { at = '20ms', rate = '8Mbit' }]";
    let (arrivals, drops) = deliver(network(table), &[0, 0, 3].map(Time::from_millis), 1000);
    assert_eq!((arrivals.len(), drops.down), (1, 2));
}

#[test]
fn packet_takes_its_transmission_time_plus_the_delay() {
    // (1486 + 14) octets at 100 Mbit/s are 120 µs.
    let (arrivals, _) = deliver(network(""), &[Time::from_millis(1)], 1486);
    assert_eq!(arrivals, [(0, Time::from_nanos(1_000_000 + 120_000 + 10_000_000))]);
}

#[test]
fn a_burst_leaves_back_to_back() {
    let rate = 7_777_777u128;
    let (arrivals, _) = deliver(network("rate = '7777777bit'\nqueue = '2000p'"), &[Time::ZERO; 2000], 500);
    for (k, (id, at)) in (1u128..).zip(&arrivals) {
        assert_eq!(u128::from(*id), k - 1);
        assert_eq!(u128::from(at.as_nanos()), k * 514 * 8_000_000_000 / rate + 10_000_000);
    }
    assert_eq!(arrivals.len(), 2000);
}

#[test]
fn mean_wait_is_that_of_md1() {
    // Service 1 ms (125 octets at 1 Mbit/s); mean wait rho / (2 (1 - rho)) services.
    for (percent, tolerance) in [(30u64, 0.02), (60, 0.03), (80, 0.05)] {
        let mean = Duration::from_nanos(100_000_000 / percent);
        let times = poisson(&mut Seed(percent).rng(), mean, 200_000);
        let table = "rate = '1Mbit'\noverhead = '0B'\ndelay = '0ms'\nqueue = '1000000p'";
        let (arrivals, drops) = deliver(network(table), &times, 125);
        assert_eq!((arrivals.len(), drops), (times.len(), Drops::default()));
        let sojourn: f64 =
            arrivals.iter().zip(&times).map(|((_, at), sent)| at.since(*sent).as_millis_f64()).sum();
        let wait = sojourn / times.len() as f64 - 1.0;
        let load = percent as f64 / 100.0;
        let expected = load / (2.0 * (1.0 - load));
        assert!(
            (wait / expected - 1.0).abs() < tolerance,
            "load {load}: waits {wait}, M/D/1 says {expected}"
        );
    }
}

#[test]
fn drop_tail_limit_includes_the_packet_in_transmission() {
    let (arrivals, drops) = deliver(network("queue = '6p'"), &[Time::ZERO; 10], 500);
    assert_eq!(arrivals.iter().map(|(id, _)| *id).collect::<Vec<_>>(), [0, 1, 2, 3, 4, 5]);
    assert_eq!(drops, Drops { queue: 4, ..Drops::default() });

    let (arrivals, drops) = deliver(network("queue = '2000B'"), &[Time::ZERO; 10], 500);
    assert_eq!((arrivals.len(), drops.queue), (4, 6));

    let (arrivals, _) = deliver(network("queue = '1p'"), &[Time::ZERO; 3], 500);
    assert_eq!(arrivals.len(), 1, "an idle line takes one packet");
}

/// In Linux the packet that causes the transmission of the next one is received first: its timer was set a
/// propagation delay ago, that of the transmission after the previous packet, and timers of equal times end in order.
#[test]
fn packet_that_arrives_as_a_transmission_ends_finds_the_queue_full() {
    let table = "rate = '1Mbit'\noverhead = '0B'\ndelay = '0ms'\nqueue = '2p'";
    // 500 octets take 4 ms; the queue is full until the first packet has left.
    for (last, dropped) in [(4_000_000, 1), (4_000_003, 1), (4_000_004, 0)] {
        let times = [Time::ZERO, Time::ZERO, Time::from_nanos(last)];
        let (arrivals, drops) = deliver(network(table), &times, 500);
        assert_eq!((arrivals.len(), drops.queue), (3 - dropped, dropped as u64), "at {last} ns");
        assert_eq!(arrivals[1].1, Time::from_millis(8), "the next transmission starts in time");
    }
}

#[test]
fn full_queue_drops_the_excess_over_the_link_rate() {
    // A packet takes 1 ms, and one arrives every 0.8 ms: a fifth exceeds the rate.
    let table = "rate = '1Mbit'\noverhead = '0B'\nqueue = '10p'";
    let (_, drops) = deliver(network(table), &every(Duration::from_micros(800), 50_000), 125);
    assert!(drops.queue.abs_diff(10_000) < 20, "{drops:?}");
}

#[test]
fn jitter_keeps_the_order_and_reordering_does_not() {
    let times = every(Duration::from_micros(500), 20_000);
    let (arrivals, _) = deliver(network("jitter = '8ms'"), &times, 100);
    assert!(arrivals.is_sorted_by_key(|(id, _)| *id) && arrivals.is_sorted_by_key(|(_, at)| *at));

    let (arrivals, _) = deliver(network("reorder = '5%'\nreorder_by = '2ms'"), &times, 100);
    let late: Vec<_> = arrivals
        .iter()
        .filter(|(id, at)| at.since(times[*id as usize]) > Duration::from_millis(11))
        .collect();
    assert!(late.len().abs_diff(1000) < 130, "{} held back", late.len());
    assert!(!arrivals.is_sorted_by_key(|(id, _)| *id) && arrivals.is_sorted_by_key(|(_, at)| *at));
    let mut ids: Vec<u32> = arrivals.iter().map(|(id, _)| *id).collect();
    ids.sort_unstable();
    assert!(ids.iter().copied().eq(0..20_000), "each exactly once");
}

#[test]
fn duplicates_follow_the_original_and_corrupt_packets_are_dropped() {
    let times = every(Duration::from_millis(1), 10_000);
    let (arrivals, _) = deliver(network("duplicate = '10%'"), &times, 100);
    let twice = arrivals.windows(2).filter(|pair| pair[0] == pair[1]).count();
    assert_eq!(arrivals.len(), 10_000 + twice);
    assert!(twice.abs_diff(1000) < 120, "{twice}");

    let (arrivals, drops) = deliver(network("corrupt = '10%'"), &times, 100);
    assert_eq!(arrivals.len() as u64 + drops.corrupt, 10_000);
    assert!(drops.corrupt.abs_diff(1000) < 120, "{drops:?}");
}

#[test]
fn one_effect_does_not_shift_the_draws_of_another() {
    let times = every(Duration::from_millis(1), 5000);
    let lost = |table: &str| {
        let (arrivals, _) = deliver(network(table), &times, 100);
        let mut arrived = vec![false; times.len()];
        arrivals.iter().for_each(|(id, _)| arrived[*id as usize] = true);
        arrived
    };
    let plain = lost("loss = '3%'");
    assert_eq!(
        plain,
        lost(
            "loss = '3%'\nduplicate = '20%'\njitter = '3ms'\njitter_correlation = '50%'\nreorder = '9%'\nreorder_by = '1ms'"
        )
    );
    assert_ne!(plain, lost("loss = '3%'\npaths = [{}, {}]\nup = { loss = '4%' }"));
}

#[test]
fn packets_longer_than_the_mtu_are_dropped() {
    let (_, drops) = deliver(network("mtu = '1499B'"), &[Time::ZERO; 3], 1500);
    assert_eq!(drops, Drops { mtu: 3, ..Drops::default() });
}

#[test]
fn link_that_goes_down_loses_packets_in_flight() {
    // One packet a millisecond, 10 ms on the way; down from 20.5 to 40.5 ms.
    let table = "events = [{ at = '20500us', down = true }, { at = '40500us', down = false }]";
    let (arrivals, drops) = deliver(network(table), &every(Duration::from_millis(1), 60), 100);
    let ids: Vec<u32> = arrivals.iter().map(|(id, _)| *id).collect();
    assert_eq!(ids, (0..=10).chain(41..60).collect::<Vec<_>>());
    assert_eq!(drops, Drops { down: 30, ..Drops::default() });
}

/// 1000 octets: 4000 bits in 4 ms, and the others in 1 ms; the next packet takes 2 ms.
#[test]
fn packet_in_transmission_follows_rate_changes() {
    let change = "rate = '1Mbit'\noverhead = '0B'\nevents = [{ at = '4ms', rate = '4Mbit' }]\n";
    for (more, due) in [
        ("delay = '10ms'", vec![(0, 15_000), (1, 17_000)]),
        ("delay = '10ms'\nduplicate = '100%'", vec![(0, 15_000), (0, 15_000), (1, 17_000), (1, 17_000)]),
        ("delay = '10ms'\nreorder = '100%'\nreorder_by = '9ms'", vec![(0, 24_000), (1, 26_000)]),
        ("delay = '10ms'\nloss = { drop = [1] }", vec![(1, 17_000)]),
        (
            "delay = '10us'\nchannel = 'air'\nnodes = ['client', 'router', 'server']
             links = [{ from = 'client', to = 'router', addresses = ['10.0.1.1', '10.0.9.1'] },
             { from = 'router', to = 'server', addresses = ['10.0.9.2', '10.0.1.2'] }]",
            vec![(0, 9010), (1, 11_010)],
        ),
    ] {
        let (arrivals, _) = deliver(network(&format!("{change}{more}")), &[Time::ZERO; 2], 1000);
        let found: Vec<_> = arrivals.iter().map(|(id, at)| (*id, at.as_nanos() / 1000)).collect();
        assert_eq!(found, due, "{more}");
    }
}

#[test]
fn rate_delay_and_loss_change_on_schedule() {
    let table = "overhead = '0B'\nevents = [{ at = '100ms', rate = '1Mbit', delay = '30ms' }, \
                 { at = '200ms', loss = '100%', direction = 'up' }]";
    let (arrivals, drops) = deliver(network(table), &every(Duration::from_millis(50), 5), 125);
    let ways: Vec<u64> =
        arrivals.iter().map(|(id, at)| at.as_nanos() / 1000 - u64::from(*id) * 50_000).collect();
    // The change at 100 ms is made before the packet of that instant is sent.
    assert_eq!(ways, [10_010, 10_010, 31_000, 31_000]);
    assert_eq!(drops.loss, 1);
}

/// In Linux netem delays a packet on its arrival (`netem_enqueue`), so packets in the queue keep their delay, and the
/// queue absorbs a longer delay of the packets behind them.
#[test]
fn queue_absorbs_a_longer_delay_of_later_packets() {
    // Ten packets at once take 1 ms each; those that are sent from 2 ms on need 5 ms more.
    let table = "rate = '1Mbit'\noverhead = '0B'\ndelay = '10ms'\nevents = [{ at = '2ms', delay = '15ms' }]";
    let times: Vec<Time> = [0; 10].into_iter().chain([3, 30]).map(Time::from_millis).collect();
    let (arrivals, _) = deliver(network(table), &times, 125);
    let found: Vec<u64> = arrivals.iter().map(|(_, at)| at.as_millis()).collect();
    assert_eq!(found, [11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 46]);
}

#[test]
fn shorter_delay_does_not_let_packets_overtake() {
    let table = "rate = '1Mbit'\noverhead = '0B'\ndelay = '20ms'\nevents = [{ at = '2ms', delay = '5ms' }]";
    let times = [0, 1, 3, 30].map(Time::from_millis);
    let (arrivals, _) = deliver(network(table), &times, 125);
    let found: Vec<_> = arrivals.iter().map(|(id, at)| (*id, at.as_millis())).collect();
    assert_eq!(found, [(0, 21), (1, 22), (2, 23), (3, 36)]);
}

#[test]
fn packets_cross_a_router_and_a_lan() {
    let table = "overhead = '0B'\nnodes = ['client', 'router', 'server']
        links = [{ from = 'client', to = 'router', delay = '3ms', rate = '1Mbit' }]
        lans = [{ nodes = ['router', 'server'], delay = '1ms', rate = '10Mbit' }]";
    let topology = topology(table);
    let server = topology.node("server").unwrap();
    let mut packet = packet(0, 125);
    packet.destination = topology.addresses(server)[0];
    let mut seen = Events::default();
    let mut network = Network::new(&topology, Seed(0), Some(&mut seen));
    network.send(Time::ZERO, topology.node("client").unwrap(), packet);
    let arrival = loop {
        let now = network.next_action();
        if let Some(arrival) = network.poll(now) {
            break (now, arrival.node);
        }
    };
    assert_eq!(arrival, (Time::from_nanos(1_000_000 + 3_000_000 + 100_000 + 1_000_000), server));
    assert_eq!(network.packets(), 1);
    drop(network);
    let expected = [
        ("client:1", TapEvent::Sent),
        ("client:1", TapEvent::Dequeued),
        ("router:1", TapEvent::Received),
        ("router:2", TapEvent::Sent),
        ("router:2", TapEvent::Dequeued),
        ("server:2", TapEvent::Received),
    ];
    assert_eq!(seen.0, expected.map(|(name, event)| (name.to_owned(), event)));
}

#[derive(Default)]
struct Events(Vec<(String, TapEvent)>);

impl Tap for Events {
    fn packet(&mut self, _: Time, point: TapPoint<'_>, _: &PacketInTransit, event: TapEvent) {
        self.0.push((point.name.to_owned(), event));
    }
}

#[test]
fn red_queue_settles_where_drops_match_the_overload() {
    // A packet takes 12 ms, and 5 % more packets arrive than can leave: 1 in 21 must be dropped. The share
    // dropped at probability p is 2p/(1+p), so p is 1/41, the probability at an average of 5 + 45 · 10/41 =
    // 16 packets.
    let red = "discipline = { red = { min = '5p', max = '50p', weight = 0.02 } }";
    let network = network(&format!("rate = '1Mbit'\ndelay = '0ms'\nqueue = '100p'\n{red}"));
    let times = every(Duration::from_nanos(12_000_000 * 20 / 21), 40_000);
    let (arrivals, drops) = deliver(network, &times, 1486);
    assert_eq!(drops.queue as usize, times.len() - arrivals.len());
    let settled = arrivals.iter().filter(|(number, _)| *number > 4_000);
    let sojourns = settled.map(|(number, at)| at.since(times[*number as usize]).as_millis_f64() / 12.0);
    let sojourns: Vec<f64> = sojourns.collect();
    // A packet waits for the queued packets and half of the one in transmission, then takes its own time.
    let waiting = sojourns.iter().sum::<f64>() / sojourns.len() as f64 - 1.5;
    assert!((waiting - (5.0 + 45.0 * 10.0 / 41.0)).abs() < 1.0, "{waiting}");
}

#[test]
fn policer_drops_exactly_the_excess() {
    // 125 octets every 0.8 ms are 1.25 Mbit/s, a fifth above the rate; the burst passes in addition.
    let table = "police = { rate = '1Mbit', burst = '2000B' }";
    let times = every(Duration::from_micros(800), 50_000);
    let (arrivals, drops) = deliver(network(table), &times, 125);
    let span = Duration::from_micros(800 * 49_999).as_nanos();
    let passed = (2000 * 8 * 1000 + span) / 1_000_000;
    assert_eq!(
        (arrivals.len() as u64, drops),
        (passed, Drops { police: 50_000 - passed, ..Drops::default() })
    );
    let on_the_way = |(id, at): &(u32, Time)| at.since(times[*id as usize]).as_nanos();
    assert!(arrivals.iter().all(|arrival| on_the_way(arrival) == 10_011_120), "no packet waits");
    let (arrivals, _) = deliver(network(table), &[Time::ZERO; 20], 125);
    assert_eq!(arrivals.len(), 16, "a burst passes whole");
}

#[test]
fn reordering_does_not_change_which_packets_the_policer_drops() {
    let police = "police = { rate = '1Mbit', burst = '2000B' }";
    let times = every(Duration::from_micros(800), 5_000);
    let numbers = |table: &str| {
        let (arrivals, _) = deliver(network(table), &times, 125);
        let mut numbers: Vec<u32> = arrivals.into_iter().map(|(number, _)| number).collect();
        let in_order = numbers.is_sorted();
        numbers.sort_unstable();
        (numbers, in_order)
    };
    let (plain, in_order) = numbers(police);
    let (reordered, still_in_order) = numbers(&format!("{police}\nreorder = '30%'\nreorder_by = '90ms'"));
    assert!(in_order && !still_in_order);
    assert_eq!(plain, reordered);
}

#[test]
fn duplicate_takes_tokens_too() {
    let table = "duplicate = '100%'\npolice = { rate = '1Mbit', burst = '2000B' }";
    let (arrivals, drops) = deliver(network(table), &[Time::ZERO; 12], 125);
    assert_eq!((arrivals.len(), drops.police), (16, 8));
}

#[test]
fn links_on_a_channel_transmit_one_packet_at_a_time_in_turns() {
    // A packet takes 1 ms on each of its two hops over the channel: the client's k-th packet from 2k − 1 to
    // 2k ms, and again from 2k + 2 on. After the client's last packet only the router sends, so all have
    // arrived after 200 ms.
    let table = "overhead = '0B'\nrate = '1Mbit'\ndelay = '10us'\nchannel = 'air'\nnodes = ['client', 'router', 'server']
        links = [{ from = 'client', to = 'router' }, { from = 'router', to = 'server' }]";
    let topology = topology(table);
    let ends = ["client", "server"].map(|name| topology.node(name).unwrap());
    let [client, server] = ends.map(|node| topology.addresses(node)[0]);
    let mut network = Network::new(&topology, Seed(0), None);
    for number in 0..100 {
        let mut packet = packet(number, 125);
        (packet.source, packet.destination) = (client, server);
        network.send(Time::ZERO, ends[0], packet);
    }
    let mut arrivals = Vec::new();
    while network.next_action() < Time::MAX {
        let now = network.next_action();
        arrivals.extend(network.poll(now).map(|arrival| (number(&arrival.packet), now.as_nanos() / 10_000)));
    }
    let due: Vec<(u32, u64)> = (0..100).map(|k| (k, (2 * u64::from(k) + 3).min(200) * 100 + 1)).collect();
    assert_eq!(arrivals, due);
}

/// A link that waits for its turn is served before a reply that is sent as the channel becomes free.
#[test]
fn links_that_answer_at_once_do_not_keep_others_from_a_channel() {
    let table = "overhead = '0B'\nrate = '1Mbit'\ndelay = '0ms'\nchannel = 'air'\nnodes = ['a', 'b', 'c']
        links = [{ from = 'a', to = 'b' }, { from = 'c', to = 'b' }]";
    let topology = topology(table);
    let [a, b, c] = ["a", "b", "c"].map(|node| topology.node(node).unwrap());
    let address = |node| topology.addresses(node)[0];
    let mut network = Network::new(&topology, Seed(0), None);
    let send = |network: &mut Network<'_>, now, from, to, number| {
        let mut packet = packet(number, 125);
        (packet.source, packet.destination) = (address(from), address(to));
        network.send(now, from, packet);
    };
    send(&mut network, Time::ZERO, a, b, 0);
    send(&mut network, Time::ZERO, c, b, 100);
    let mut order = Vec::new();
    while network.next_action() < Time::MAX {
        let now = network.next_action();
        while let Some(arrival) = network.poll(now) {
            let number = number(&arrival.packet);
            order.push(number);
            if number < 5 {
                let [from, to] = if arrival.node == b { [b, a] } else { [a, b] };
                send(&mut network, now, from, to, number + 1);
            }
        }
    }
    assert_eq!(order, [0, 100, 1, 2, 3, 4, 5]);
}

/// Both directions of a link on one channel are one server with one queue: the mean wait is that of M/D/1 with both loads.
#[test]
fn half_duplex_mean_wait_is_that_of_md1_with_both_loads() {
    let table = "rate = '1Mbit'\noverhead = '0B'\ndelay = '0ms'\nqueue = '1000000p'\nchannel = 'air'";
    let mut network = network(table);
    let times = poisson(&mut Seed(3).rng(), Duration::from_nanos(100_000_000 / 60), 200_000);
    let mut rng = Seed(4).rng();
    let mut sojourn = 0.0;
    let mut run_until = |network: &mut Network<'_>, until: Time| {
        while network.next_action() < Time::MAX && network.next_action() <= until {
            let now = network.next_action();
            while let Some(arrival) = network.poll(now) {
                sojourn += now.since(times[number(&arrival.packet) as usize]).as_millis_f64();
            }
        }
    };
    for (id, at) in (0..).zip(&times) {
        run_until(&mut network, *at);
        let mut packet = packet(id, 125);
        let backwards = rng.chance(0.3);
        if backwards {
            std::mem::swap(&mut packet.source, &mut packet.destination);
        }
        network.send(*at, NodeId(u16::from(backwards)), packet);
    }
    run_until(&mut network, Time::MAX);
    let (wait, due) = (sojourn / times.len() as f64 - 1.0, 0.6 / (2.0 * (1.0 - 0.6)));
    assert!((wait / due - 1.0).abs() < 0.03, "waits {wait}, M/D/1 says {due}");
}
