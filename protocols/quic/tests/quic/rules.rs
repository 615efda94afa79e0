//! Tests rules of RFC 9000, RFC 9001 and RFC 9002 by the packets that are sent.

use hol_base::{Duration, Seed, Time};
use hol_quic::{Config, MessageMapping};
use hol_transport::{Command, Endpoint as _, Event, Failure, ReceivedData};
use hol_wire::quic::{Frame, PacketNumberSpace, packets};
use hol_wire::{Packet, Transport};

use crate::pipe::{Path, Pipe, Side, config};

const DELAY: u64 = 10;

fn ms(millis: u64) -> Time {
    Time::from_millis(millis)
}

fn quinn() -> Config {
    config("quinn-0.11", "streams = 4")
}

fn connected(config: &Config) -> Pipe {
    Pipe::connected(config, MessageMapping::Streams, Path::clean(DELAY), Seed(1))
}

fn payload(packet: &Packet) -> &[u8] {
    let Transport::Quic(datagram) = &packet.transport else { panic!("{packet} is no QUIC") };
    &datagram.payload
}

fn frames(packet: &Packet) -> Vec<Frame> {
    packets(payload(packet)).flat_map(|packet| packet.unwrap().frames()).map(Result::unwrap).collect()
}

/// Returns when a side sent packets with such a frame, after `from`.
fn times(side: &Side, from: Time, is_it: impl Fn(&Frame) -> bool) -> Vec<Time> {
    let sent = side.sent.iter().filter(|(at, packet)| *at >= from && frames(packet).iter().any(&is_it));
    sent.map(|(at, _)| *at).collect()
}

fn has_user_data(frame: &Frame) -> bool {
    matches!(frame, Frame::Stream { .. } | Frame::Datagram(_))
}

fn is_ack(frame: &Frame) -> bool {
    matches!(frame, Frame::Ack { .. })
}

/// Returns the last message that a side received, with its time.
fn received(side: &Side) -> &(Time, ReceivedData) {
    side.received.last().expect("nothing came")
}

/// RFC 9001 section 4.1, figure 1 of RFC 9000 section 7: the client is connected after one round trip.
#[test]
fn the_handshake_takes_a_round_trip() {
    let pipe = connected(&quinn());
    let connected =
        |side: usize| pipe.sides[side].events.iter().find(|(_, event)| *event == Event::Connected).unwrap().0;
    assert_eq!((connected(0), connected(1)), (ms(2 * DELAY), ms(3 * DELAY)));
}

/// RFC 9000 section 14.1: datagrams with ack-eliciting Initial packets have at least 1200 octets.
#[test]
fn datagrams_with_initial_packets_are_padded() {
    let pipe = connected(&quinn());
    for (_, packet) in pipe.sides.iter().flat_map(|side| &side.sent) {
        let mut initial =
            packets(payload(packet)).map(Result::unwrap).filter(|it| it.space == PacketNumberSpace::Initial);
        let elicits = initial
            .any(|it| it.frames().any(|frame| !matches!(frame, Ok(Frame::Ack { .. } | Frame::Padding(_)))));
        assert!(!elicits || payload(packet).len() >= 1200, "{packet}");
    }
}

/// RFC 9000 section 8.1: before the address is validated, a server sends at most three times what it
/// received; the rest of a longer flight waits for the client.
#[test]
fn a_long_handshake_flight_costs_a_round_trip() {
    for (flight, round_trips) in [(2500, 1), (5000, 2)] {
        let pipe = connected(&config("quinn-0.11", &format!("handshake_flight = '{flight}B'")));
        let (at, _) = pipe.sides[0].events.iter().find(|(_, event)| *event == Event::Connected).unwrap();
        assert_eq!(*at, ms(2 * DELAY * round_trips), "{flight}");
        let first: usize = pipe.sides[1]
            .sent
            .iter()
            .filter(|(at, _)| *at < ms(3 * DELAY))
            .map(|(_, packet)| payload(packet).len())
            .sum();
        assert!(first <= 3 * 1200, "{first}");
    }
}

/// RFC 9002 section 6.2.1: the first PTO follows from the initial RTT: smoothed_rtt + 4 * rttvar, which is 333 + 4 * 166.5 ms.
#[test]
fn a_lost_first_packet_is_sent_again_after_the_first_pto() {
    for (initial_rtt, pto) in [("333ms", 999), ("100ms", 300)] {
        let config = config("quinn-0.11", &format!("initial_rtt = '{initial_rtt}'"));
        let mut pipe = Pipe::new(&config, MessageMapping::Streams, Path::clean(DELAY), Seed(1));
        pipe.drop[0] = vec![0];
        pipe.command(0, Command::Connect);
        pipe.run(Duration::from_secs(2));
        assert_eq!(pipe.sides[0].sent[1].0, ms(pto));
    }
}

/// RFC 9000 section 13.2.1: an ack-eliciting packet is acknowledged within max_ack_delay; section 13.2.2: the second at once.
#[test]
fn every_second_packet_is_acked_at_once_and_a_lone_one_delayed() {
    let mut pipe = connected(&quinn());
    pipe.run(Duration::from_secs(1));
    let start = pipe.now;
    pipe.send(0, 0, vec![1; 100]);
    pipe.run(Duration::from_millis(100));
    let delay = Duration::from_millis(DELAY);
    assert_eq!(times(&pipe.sides[1], start, is_ack), [start + delay + Duration::from_millis(25)]);
    let start = pipe.now;
    pipe.send(0, 0, vec![1; 100]);
    pipe.send(0, 1, vec![1; 1300]);
    pipe.run(Duration::from_millis(100));
    assert_eq!(times(&pipe.sides[1], start, is_ack)[0], start + delay);
}

/// RFC 9002 section 6.1.1: a packet is lost when a packet sent three later is acknowledged.
#[test]
fn a_packet_is_lost_when_three_later_ones_are_acknowledged() {
    let mut pipe = connected(&quinn());
    pipe.run(Duration::from_secs(1));
    let (start, number) = (pipe.now, pipe.sides[0].sent.len());
    pipe.drop[0] = vec![number];
    let pause = Duration::from_micros(200);
    for message in 0..6 {
        pipe.send(0, 0, vec![message; 100]);
        pipe.run(pause);
    }
    pipe.run(Duration::from_millis(200));
    let sent = times(&pipe.sides[0], start, has_user_data);
    // An out-of-order packet is acknowledged at once (RFC 9000 section 13.2.1): the acknowledgment of the
    // fourth arrives a round trip after it.
    let again = start + pause * 3 + Duration::from_millis(2 * DELAY);
    assert_eq!(sent.last(), Some(&again), "{sent:?}");
    let statistics = pipe.sides[0].endpoint.statistics();
    assert_eq!((statistics.fast_retransmissions, statistics.timeout_retransmissions), (1, 0));
}

/// RFC 9002 section 6.1.2: a packet is also lost when a later one is acknowledged and 9/8 of a round trip have passed.
#[test]
fn packet_is_lost_by_time_after_a_later_one_is_acknowledged() {
    let mut pipe = connected(&quinn());
    pipe.run(Duration::from_secs(1));
    let (start, number) = (pipe.now, pipe.sides[0].sent.len());
    pipe.drop[0] = vec![number];
    pipe.send(0, 0, vec![1; 100]);
    pipe.run(Duration::from_millis(1));
    pipe.send(0, 0, vec![2; 100]);
    pipe.run(Duration::from_millis(200));
    let sent = times(&pipe.sides[0], start, has_user_data);
    // A threshold is a binary fraction: 22.5 ms minus a nanosecond.
    assert_eq!(sent[2].since(start).as_nanos().div_ceil(1000), 22_500);
}

/// RFC 9002 section 6.2: a single lost packet is detected by the PTO, which includes the peer's
/// max_ack_delay. The probes of quinn-proto request an acknowledgment and carry no data, although section 6.2.4
/// recommends data: the lost data are retransmitted a round trip later.
#[test]
fn a_lone_lost_packet_is_sent_again_a_round_trip_after_the_pto() {
    let mut pipe = connected(&quinn());
    pipe.run(Duration::from_secs(1));
    let (start, number) = (pipe.now, pipe.sides[0].sent.len());
    pipe.drop[0] = vec![number];
    pipe.send(0, 0, vec![1; 100]);
    pipe.run(Duration::from_millis(200));
    let probes = times(&pipe.sides[0], start, |frame| *frame == Frame::ImmediateAck);
    // smoothed_rtt + 4 * rttvar + max_ack_delay, from the samples of the handshake: 20 + 22.5 + 25 ms.
    assert_eq!(probes, [start + Duration::from_micros(67_500); 2]);
    let sent = times(&pipe.sides[0], start, has_user_data);
    assert_eq!(sent, [start, probes[0] + Duration::from_millis(2 * DELAY)]);
    let (at, data) = received(&pipe.sides[1]);
    assert_eq!((data.delivery_times.first_sent, data.delivery_times.sent), (sent[0], sent[1]));
    assert_eq!(*at, sent[1] + Duration::from_millis(DELAY) + quinn().wakeup);
    let statistics = pipe.sides[0].endpoint.statistics();
    assert_eq!(
        (statistics.timeouts, statistics.timeout_retransmissions, statistics.fast_retransmissions),
        (1, 1, 0)
    );
}

/// RFC 9000 section 2.2: streams do not wait for each other; octets of one stream do.
#[test]
fn a_loss_delays_its_own_stream_and_no_other() {
    let mut pipe = connected(&quinn());
    pipe.run(Duration::from_secs(1));
    let (start, number) = (pipe.now, pipe.sides[0].sent.len());
    pipe.drop[0] = vec![number];
    for stream in [0, 1, 0, 1] {
        pipe.send(0, stream, vec![stream as u8; 100]);
        pipe.run(Duration::from_millis(1));
    }
    pipe.run(Duration::from_millis(300));
    let came: Vec<_> = pipe.sides[1]
        .received
        .iter()
        .map(|(at, data)| (data.stream, at.since(data.delivery_times.arrived)))
        .collect();
    let waits: Vec<_> = came.iter().filter(|(_, wait)| !wait.is_zero()).collect();
    assert_eq!(came.iter().map(|(stream, _)| *stream).collect::<Vec<_>>(), [1, 1, 0, 0]);
    assert!(waits.len() == 1 && waits[0].0 == 0, "the third message waits for the first: {came:?}");
    assert!(pipe.sides[1].received[0].0 < start + Duration::from_millis(DELAY + 3));
}

/// RFC 9000 section 10.1: after the idle timeout without a packet the connection ends silently.
#[test]
fn a_silent_connection_ends_by_its_idle_timeout() {
    let mut pipe = connected(&config("quinn-0.11", "idle_timeout = '5s'"));
    pipe.run(Duration::from_secs(6));
    for side in &pipe.sides {
        assert!(side.has(&Event::Failed { reason: Failure::IdleTimeout }), "{:?}", side.events);
    }
    let kept = config("quinn-0.11", "idle_timeout = '5s'\nkeep_alive = '2s'");
    let mut pipe = connected(&kept);
    pipe.run(Duration::from_secs(20));
    assert!(pipe.sides.iter().all(|side| side.events.len() == 1), "{:?}", pipe.sides);
}

/// RFC 9000 section 10.2: an endpoint that aborts informs the peer, which knows after half a round trip.
#[test]
fn an_abort_ends_both_sides() {
    let mut pipe = connected(&quinn());
    pipe.run(Duration::from_secs(1));
    pipe.command(0, Command::Abort);
    pipe.run(Duration::from_millis(DELAY));
    assert!(pipe.sides[1].has(&Event::Failed { reason: Failure::ClosedByPeerApplication }));
}

/// RFC 9000 section 4.1: unread data fill the window, and the sender stops.
#[test]
fn busy_reader_blocks_the_sender_by_flow_control() {
    let mut pipe =
        connected(&config("quinn-0.11", "stream_receive_window = '20000B'\nsend_window = '10000B'"));
    pipe.command(1, Command::Read(false));
    let mut written = 0;
    while pipe.sides[0].endpoint.can_send(1000) {
        pipe.send(0, 0, vec![7; 1000]);
        pipe.run(Duration::from_millis(100));
        written += 1000;
    }
    assert!((20_000..22_000).contains(&written), "{written}");
    assert!(pipe.sides[1].received.is_empty());
    pipe.command(1, Command::Read(true));
    pipe.run(Duration::from_secs(1));
    assert_eq!(pipe.sides[1].stream(0).len(), written);
    assert!(pipe.sides[0].has(&Event::Writable));
}

/// RFC 9002 section 7.2: at most ten datagrams may be in flight at first.
#[test]
fn initial_window_bounds_the_first_flight() {
    let mut pipe = connected(&config("quinn-0.11", "mtu_discovery = '0B'"));
    let start = pipe.now;
    pipe.send(0, 0, vec![0; 100_000]);
    pipe.run(Duration::from_millis(2 * DELAY - 1));
    let own = pipe.sides[0].sent.iter().filter(|(at, _)| *at >= start);
    let octets: usize = own.map(|(_, packet)| payload(packet).len()).sum();
    assert!((10_000..=13_200).contains(&octets), "{octets}");
}

/// Returns the congestion windows before and after a loss in a transfer, each a second after the data was written.
fn windows_around_a_loss(congestion: &str) -> [u64; 2] {
    let mut pipe = connected(&config("quinn-0.11", &format!("congestion = '{congestion}'")));
    let mut window_after = |drop: bool| {
        let next = pipe.sides[0].sent.len() + 30;
        pipe.drop[0].extend(drop.then_some(next));
        pipe.send(0, 0, vec![0; 400_000]);
        pipe.run(Duration::from_secs(1));
        let mut window = None;
        pipe.sides[0].endpoint.report_path(&mut |path| window = path.cwnd);
        window.expect("the connection is open")
    };
    [window_after(false), window_after(true)]
}

/// draft-cardwell-iccrg-bbr-congestion-control-00 section 4.3.4.4: a lost packet limits BBR's window for a round trip
/// only. RFC 9438 section 4.6: CUBIC multiplies it by 0.7.
#[test]
fn bbr_keeps_its_window_after_a_loss() {
    let [before, after] = windows_around_a_loss("bbr");
    assert!(after >= before, "{before} {after}");
    let [before, after] = windows_around_a_loss("cubic");
    assert!(after < before, "{before} {after}");
}

/// quinn-proto draws the gains of BBR's pacing rate from a generator with a seed of the operating system.
#[test]
fn random_numbers_of_bbr_change_no_packet() {
    let digest = || {
        let path = Path { loss: 0.01, ..Path::clean(DELAY) };
        let config = config("quinn-0.11", "congestion = 'bbr'\nsend_window = '10MB'");
        let mut pipe = Pipe::connected(&config, MessageMapping::Streams, path, Seed(3));
        // Longer than the 10 s after which BBR enters ProbeRTT and then ProbeBW again.
        for _ in 0..120 {
            pipe.send(0, 0, vec![0; 20_000]);
            pipe.run(Duration::from_millis(100));
        }
        assert_eq!(pipe.sides[1].stream(0).len(), 120 * 20_000);
        pipe.digester.finish()
    };
    let first = digest();
    assert!((0..4).all(|_| digest() == first));
}
