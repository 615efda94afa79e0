//! Captures from users, each of a kind that was misinterpreted: slow timestamp clocks, packets captured twice, servers with a response
//! time, several addresses, QUIC.

use hol_passive::{EstimateError, MessageReconstructor, PathEstimate, PathLearner};

const US: u64 = 1_000;
const MS: u64 = 1_000_000;

const SYN: u8 = 2;
const PSH: u8 = 8;
const ACK: u8 = 16;

/// A segment between 10.0.0.1 and 10.0.0.2 with timestamps.
#[derive(Clone, Copy)]
struct Segment {
    from: u8,
    port: u16,
    id: u16,
    numbers: [u32; 2],
    flags: u8,
    clock: [u32; 2],
    octets: u16,
}

impl Segment {
    fn packet(self) -> Vec<u8> {
        let Self { from, port, id, numbers, flags, clock, octets } = self;
        let mut packet = vec![0x45, 0];
        packet.extend((52 + octets).to_be_bytes());
        packet.extend(id.to_be_bytes());
        packet.extend([0x40, 0, 64, 6, 0, 0, 10, 0, 0, from, 10, 0, 0, 3 - from]);
        let ports = if from == 1 { [port, 80] } else { [80, port] };
        packet.extend(ports.map(u16::to_be_bytes).concat());
        packet.extend(numbers.map(u32::to_be_bytes).concat());
        packet.extend([0x80, flags, 1, 0, 0, 0, 0, 0, 1, 1, 8, 10]);
        packet.extend(clock.map(u32::to_be_bytes).concat());
        packet.resize(packet.len() + usize::from(octets), 7);
        packet
    }
}

fn learn(packets: &[(u64, Vec<u8>)]) -> PathEstimate {
    let mut learner = PathLearner::default();
    packets.iter().for_each(|(at, packet)| learner.handle_packet(*at, packet));
    learner.finish(None).unwrap()
}

/// Returns connections, captured at the client, whose server replies to a request after `thinks`; the client's timestamp clock ticks each
/// `tick`. A round trip takes 20 ms.
fn connections(count: u16, tick: u64, thinks: impl Fn(u16) -> u64) -> Vec<(u64, Vec<u8>)> {
    let mut packets = Vec::new();
    let mut id = 0;
    for number in 0..count {
        let begin = u64::from(number) * 1000 * MS + 37 * MS;
        let port = 40_000 + number;
        let mut send = |at: u64, from: u8, numbers: [u32; 2], flags: u8, octets: u16| {
            id += 1;
            let client = |at: u64| (at / tick) as u32 + 1;
            let server = |at: u64| (at / MS) as u32 + 7;
            let clock = match from {
                1 => [client(at), server(at.saturating_sub(20 * MS))],
                _ => [server(at), client(at - 20 * MS)],
            };
            packets.push((at, Segment { from, port, id, numbers, flags, clock, octets }.packet()));
        };
        let thought = begin + 40 * MS + 60 * US + thinks(number);
        send(begin, 1, [99, 0], SYN, 0);
        send(begin + 20 * MS, 2, [499, 100], SYN | ACK, 0);
        send(begin + 20 * MS + 50 * US, 1, [100, 500], ACK, 0);
        send(begin + 20 * MS + 60 * US, 1, [100, 500], ACK | PSH, 300);
        send(thought, 2, [500, 400], ACK | PSH, 700);
        send(thought + 30 * US, 1, [400, 1200], ACK, 0);
        send(thought + 50 * US, 2, [1200, 400], ACK | PSH, 10);
        send(thought + 80 * US, 1, [400, 1210], ACK, 0);
    }
    packets
}

/// RFC 7323 section 5.4: a clock may tick each second. A packet soon after an echo is no reply to it.
#[test]
fn slow_timestamp_clock_does_not_shorten_the_round_trip() {
    let shortest = |tick| learn(&connections(3, tick, |_| 0)).round_trip.unwrap().shortest;
    assert_eq!(shortest(MS), shortest(100 * MS));
    assert!(shortest(100 * MS).abs_diff(20 * MS) < 100 * US, "{}", shortest(100 * MS));
}

#[test]
fn server_think_time_is_not_path_jitter() {
    let learned = learn(&connections(30, MS, |number| u64::from(number) * 7 % 31 * 6 * MS));
    let round_trip = learned.round_trip.clone().unwrap();
    assert!(round_trip.jitter().is_none() && round_trip.samples >= 30, "{round_trip:?}");
    let text = learned.to_string();
    assert!(text.contains("\ndelay = \"10"), "{text}");
}

/// RFC 6864 section 4.3: a retransmission of TCP has another identification.
#[test]
fn packet_captured_twice_counts_once() {
    let once = connections(10, MS, |_| 0);
    let mut twice: Vec<_> = once
        .iter()
        .flat_map(|(at, packet)| [(*at, packet.clone()), (at + 30 * US, packet.clone())])
        .collect();
    twice.sort_by_key(|(at, _)| *at);
    let (one, other) = (learn(&once), learn(&twice));
    assert_eq!(other.duplicates, 80);
    assert_eq!(other.losses.clone().map(|losses| losses.unwrap().lost), [0, 0]);
    assert_eq!((one.losses, one.round_trip, one.packets), (other.losses, other.round_trip, other.packets));
}

/// The same segment with another identification: the first was lost, and this is its retransmission.
#[test]
fn retransmitted_packet_counts_again() {
    let mut packets = connections(1, MS, |_| 0);
    let mut again = packets[3].clone();
    again.0 += 5 * MS;
    again.1[5] = 200;
    packets.insert(4, again);
    assert_eq!(learn(&packets).losses[0].as_ref().unwrap().lost, 1);
}

/// The handshakes arrived, so the link does not lose every packet.
#[test]
fn path_that_carried_handshakes_does_not_lose_everything() {
    let mut packets = connections(1, MS, |_| 0)[..3].to_vec();
    for k in 0..12_u16 {
        let segment = Segment {
            from: 1,
            port: 40_000,
            id: 50 + k,
            numbers: [100, 500],
            flags: ACK | PSH,
            clock: [9, 9],
            octets: 300,
        };
        packets.push(((100 + 300 * u64::from(k)) * MS, segment.packet()));
    }
    let text = learn(&packets).to_string();
    assert!(
        text.contains("# loss: unknown; the capture shows the arrival of none") && !text.contains("loss = "),
        "{text}"
    );
}

/// Returns a datagram of UDP over IPv4.
fn datagram(from: u8, id: u8, payload: &[u8]) -> Vec<u8> {
    let mut packet = vec![
        0x45,
        0,
        0,
        28 + payload.len() as u8,
        0,
        id,
        0,
        0,
        64,
        17,
        0,
        0,
        10,
        0,
        0,
        from,
        10,
        0,
        0,
        3 - from,
    ];
    packet.extend(if from == 1 { [0x9c, 0x40, 1, 187] } else { [1, 187, 0x9c, 0x40] });
    packet.extend([0, 8 + payload.len() as u8, 0, 0]);
    packet.extend(payload);
    packet
}

/// RFC 9000 section 17.2: long headers in the handshake, short ones later.
#[test]
fn quic_handshake_gives_the_round_trip() {
    let long = [&[0xc3, 0, 0, 0, 1, 8][..], &[1; 8], &[4], &[2; 4], &[0; 20]].concat();
    let short = [0x43; 30];
    let packets = [
        (0, datagram(1, 1, &long)),
        (30 * US, datagram(1, 2, &long)),
        (24 * MS, datagram(2, 1, &long)),
        (24 * MS + 10 * US, datagram(2, 2, &long)),
        (25 * MS, datagram(1, 3, &long)),
        (49 * MS, datagram(2, 3, &short)),
        (50 * MS, datagram(1, 4, &short)),
    ];
    let learned = learn(&packets);
    assert_eq!(learned.round_trip.clone().unwrap().halves, [24 * MS, MS]);
    let text = learned.to_string();
    assert!(text.contains("\ndelay = \"12500us\"") && text.contains("QUIC encrypts"), "{text}");
}

#[test]
fn datagrams_alone_give_no_path_estimate() {
    let mut learner = PathLearner::default();
    (0..5).for_each(|k| {
        learner.handle_packet(k * MS, &datagram(1 + (k % 2) as u8, k as u8, &[0, 1, 2, 3, 4, 5, 6, 7]));
    });
    let problem = learner.finish(None).unwrap_err();
    assert_eq!(problem, EstimateError::NothingAcknowledged { packets: 5, datagrams: 5 });
}

/// Returns an SCTP packet between the ports 5000 and 6000.
fn sctp(hosts: [[u8; 4]; 2], from_client: bool, tag: u32, chunks: &[u8]) -> Vec<u8> {
    let mut packet = vec![0x45, 0, 0, 32 + chunks.len() as u8, 0, 0, 0x40, 0, 64, 132, 0, 0];
    packet.extend(hosts.concat());
    packet.extend(if from_client { [0x13, 0x88, 0x17, 0x70] } else { [0x17, 0x70, 0x13, 0x88] });
    packet.extend(tag.to_be_bytes());
    packet.extend([0; 4]);
    packet.extend(chunks);
    packet
}

/// RFC 9260 sections 1.3 and 5.1.2: ports and tags identify an association, whatever its addresses are.
#[test]
fn association_over_two_paths_is_one_conversation() {
    let [one, other] = [[[10, 0, 1, 1], [10, 0, 1, 2]], [[10, 0, 2, 1], [10, 0, 2, 2]]];
    let back = |[from, to]: [[u8; 4]; 2]| [to, from];
    let opening = |kind: u8, tag: u32, tsn: u32| {
        [&[kind, 0, 0, 20][..], &tag.to_be_bytes(), &[0, 1, 0, 0, 0, 1, 0, 1], &tsn.to_be_bytes()].concat()
    };
    let data =
        |tsn: u32| [&[0, 3, 0, 20][..], &tsn.to_be_bytes(), &[0, 0, 0, 0, 0, 0, 0, 0, 1, 2, 3, 4]].concat();
    let packets = [
        (0, sctp(one, true, 0, &opening(1, 11, 100))),
        (20, sctp(back(one), false, 11, &opening(2, 22, 500))),
        (40, sctp(one, true, 22, &data(100))),
        (60, sctp(back(one), false, 11, &data(500))),
        // The first path is cut: the same message is retransmitted over the second.
        (100, sctp(one, true, 22, &data(101))),
        (1100, sctp(other, true, 22, &data(101))),
        (1120, sctp(back(other), false, 11, &data(501))),
        (1200, sctp(other, true, 22, &data(102))),
        (1220, sctp(back(other), false, 11, &data(502))),
    ];
    let mut listener = MessageReconstructor::default();
    packets.iter().for_each(|(ms, packet)| listener.handle_packet(ms * MS, packet));
    let heard = listener.finish(None).unwrap();
    assert_eq!((heard.conversations, heard.unsolicited), (1, 0));
    let said: Vec<_> = heard.exchanges.iter().map(|one| (one.at / MS, one.octets, one.reply)).collect();
    assert_eq!(said, [(0, 4, 4), (60, 4, 4), (1160, 4, 4)]);
}
