//! Captures from users, each of a kind that was misinterpreted: slow timestamp clocks, packets captured twice, servers with a response
//! time, several addresses, QUIC, fragments, clocks that are set back, packets cut short.

use hol_passive::{
    CapturedIp, EstimateError, MessageReconstructor, PathEstimate, PathEstimator, RoundTrip, UnknownDelay,
};

const US: u64 = 1_000;
const MS: u64 = 1_000_000;

const SYN: u8 = 2;
const PSH: u8 = 8;
const ACK: u8 = 16;
const RST: u8 = 4;

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
    let mut learner = PathEstimator::default();
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
    let unknown = "# loss: unknown; the capture shows the arrival of none of the 11 packets with data.\n";
    assert!(text.contains(unknown) && !text.contains("loss = "), "{text}");
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

/// RFC 9000 section 17.4: the handshake was lost and repeated, so only the spin bit shows the round trip of 25 ms.
#[test]
fn spin_bit_gives_the_round_trip() {
    let long = [&[0xc3, 0, 0, 0, 1, 8][..], &[1; 8], &[4], &[2; 4], &[0; 20]].concat();
    let short = |spin: u64| [[0x03 | (spin as u8 & 1) << 5].as_slice(), &[0; 29]].concat();
    let mut packets = vec![
        (0, datagram(1, 1, &long)),
        (1000 * MS, datagram(1, 2, &long)),
        (1024 * MS, datagram(2, 1, &long)),
        (1025 * MS, datagram(1, 3, &long)),
    ];
    assert_eq!(learn(&packets).round_trip, Err(UnknownDelay::AmbiguousHandshake));
    for k in 0..20 {
        let at = (1100 + 25 * k) * MS;
        packets.push((at, datagram(1, 10 + k as u8, &short(k))));
        packets.push((at + 24 * MS, datagram(2, 10 + k as u8, &short(k))));
    }
    let learned = learn(&packets);
    assert_eq!(learned.round_trip.clone().unwrap().halves, [24 * MS, MS]);
    let text = learned.to_string();
    assert!(
        text.contains("\ndelay = \"12500us\"") && text.contains("18 round trips of its spin bits"),
        "{text}"
    );
}

#[test]
fn datagrams_alone_give_no_path_estimate() {
    let mut learner = PathEstimator::default();
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

/// The addresses of an association's two paths.
const PATHS: [[[u8; 4]; 2]; 2] = [[[10, 0, 1, 1], [10, 0, 1, 2]], [[10, 0, 2, 1], [10, 0, 2, 2]]];

fn back([from, to]: [[u8; 4]; 2]) -> [[u8; 4]; 2] {
    [to, from]
}

/// Returns an INIT (1) or INIT ACK (2).
fn opening(kind: u8, tag: u32, tsn: u32) -> Vec<u8> {
    [&[kind, 0, 0, 20][..], &tag.to_be_bytes(), &[0, 1, 0, 0, 0, 1, 0, 1], &tsn.to_be_bytes()].concat()
}

fn data(tsn: u32) -> Vec<u8> {
    [&[0, 3, 0, 20][..], &tsn.to_be_bytes(), &[0, 0, 0, 0, 0, 0, 0, 0, 1, 2, 3, 4]].concat()
}

fn sack(tsn: u32) -> Vec<u8> {
    [&[3, 0, 0, 16][..], &tsn.to_be_bytes(), &[0, 1, 0, 0, 0, 0, 0, 0]].concat()
}

/// RFC 9260 sections 1.3 and 5.1.2: ports and tags identify an association, whatever its addresses are.
#[test]
fn association_over_two_paths_is_one_conversation() {
    let [one, other] = PATHS;
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

/// Each path has its own delay, and the loss of the first one is not one of the second.
#[test]
fn paths_of_an_association_are_estimated_apart() {
    let [one, other] = PATHS;
    let mut packets = vec![
        (0, sctp(one, true, 0, &opening(1, 11, 100))),
        (20, sctp(back(one), false, 11, &opening(2, 22, 500))),
        (20, sctp(one, true, 22, &[10, 0, 0, 4])),
        (30, sctp(one, true, 22, &data(100))),
    ];
    for k in 0..10 {
        let at = 1000 + 200 * u64::from(k);
        packets.push((at, sctp(other, true, 22, &data(100 + k))));
        let reply = [sack(100 + k), data(500 + k)].concat();
        packets.push((at + 50, sctp(back(other), false, 11, &reply)));
        packets.push((at + 50, sctp(other, true, 22, &sack(500 + k))));
    }
    let in_ms: Vec<_> = packets.into_iter().map(|(ms, packet)| (ms * MS, packet)).collect();
    let learned = learn(&in_ms);
    let shortest = |path: &PathEstimate| path.round_trip.as_ref().unwrap().shortest / MS;
    let lost = |path: &PathEstimate| path.losses[0].as_ref().map(|losses| (losses.lost, losses.packets));
    assert_eq!((shortest(&learned), lost(&learned)), (50, Some((0, 10))));
    let [first] = &learned.further_paths[..] else { panic!("{learned}") };
    assert_eq!((shortest(first), lost(first)), (20, Some((1, 1))));
    let text = learned.to_string();
    assert_eq!(text.matches("[[network.paths]]").count(), 2, "{text}");
    assert!(!text.contains("packets between other hosts"), "{text}");
}

/// RFC 9260 section 6.4: captured at the receiver, the losses of the first path are visible only as retransmissions on the second.
#[test]
fn losses_repaired_over_another_path_count() {
    let [one, other] = PATHS;
    let mut packets = vec![
        (0, sctp(one, true, 0, &opening(1, 11, 100))),
        (0, sctp(back(one), false, 11, &opening(2, 22, 500))),
        (40, sctp(one, true, 22, &[10, 0, 0, 4])),
    ];
    for k in 0..40_u32 {
        let at = 100 + 10 * u64::from(k);
        let (at, path) = if k % 10 == 5 { (at + 65, other) } else { (at, one) };
        packets.push((at, sctp(path, true, 22, &data(100 + k))));
    }
    packets.sort_by_key(|(at, _)| *at);
    packets.push((500, sctp(back(one), false, 11, &sack(139))));
    let in_ms: Vec<_> = packets.into_iter().map(|(ms, packet)| (ms * MS, packet)).collect();
    let learned = learn(&in_ms);
    let losses = learned.losses[0].as_ref().unwrap();
    assert_eq!((losses.lost, losses.packets), (4, 40), "{learned}");
    let of_other = learned.further_paths[0].losses[0].as_ref().unwrap();
    assert_eq!((of_other.lost, of_other.packets), (0, 4), "{learned}");
}

/// Packets from forged addresses with the ports and the tag of an association.
#[test]
fn number_of_paths_is_limited() {
    let [one, _] = PATHS;
    let mut packets = vec![
        (0, sctp(one, true, 0, &opening(1, 11, 100))),
        (20 * MS, sctp(back(one), false, 11, &opening(2, 22, 500))),
    ];
    for k in 0..300_u32 {
        let forged = [[172, 16, (k / 250) as u8, (k % 250) as u8], one[1]];
        let at = u64::from(k + 1) * 100 * MS;
        packets.push((at, sctp(one, true, 22, &data(100 + k))));
        packets.push((at + 20 * MS, sctp(back(one), false, 11, &sack(100 + k))));
        packets.push((at + 30 * MS, sctp(forged, true, 22, &data(100 + k))));
    }
    let learned = learn(&packets);
    assert_eq!((learned.further_paths.len(), learned.packets), (63, 602));
    assert_eq!(learned.losses[0].as_ref().map(|losses| (losses.lost, losses.packets)), Some((0, 300)));
}

/// Packets from other forged addresses in each of several associations.
#[test]
fn number_of_paths_of_all_associations_is_limited() {
    let [one, other] = PATHS;
    let mut packets = Vec::new();
    for association in 0..300_u32 {
        let (tag, tsn, begin) = (10 * association, 1000 * association, u64::from(association) * 100 * MS);
        packets.push((begin, sctp(one, true, 0, &opening(1, tag + 11, tsn))));
        packets.push((begin + 20 * MS, sctp(back(one), false, tag + 11, &opening(2, tag + 22, 500))));
        for k in 0..60 {
            let forged = [[172, 16, (association % 250) as u8, (k + 60 * (association / 250)) as u8], one[1]];
            packets.push((begin + 30 * MS, sctp(forged, true, tag + 22, &data(tsn))));
        }
        packets.push((begin + 40 * MS, sctp(other, true, tag + 22, &data(tsn + 1))));
        packets.push((begin + 50 * MS, sctp(one, true, tag + 22, &data(tsn + 2))));
    }
    let learned = learn(&packets);
    assert_eq!((learned.further_paths.len(), learned.conversations), (63, 300));
    assert_eq!(learned.further_paths[0].packets, 300, "that of the associations, not a forged one");
}

/// The clock of the capture is set back by 30 s in the middle of a round trip.
#[test]
fn clock_that_is_set_back_shortens_no_delay() {
    let mut packets = connections(3, MS, |_| 0);
    packets.iter_mut().skip(9).for_each(|(at, _)| *at += 10_000 * MS);
    let whole = learn(&packets);
    packets.iter_mut().for_each(|(at, _)| *at += 60_000 * MS);
    for first in [9, 12, 17] {
        let mut packets = packets.clone();
        packets.iter_mut().skip(first).for_each(|(at, _)| *at -= 30_000 * MS);
        let learned = learn(&packets);
        let halves = |learned: &PathEstimate| {
            let RoundTrip { shortest, halves, .. } = learned.round_trip.clone().unwrap();
            [shortest, halves[0], halves[1]]
        };
        assert_eq!((learned.clock_steps, halves(&learned)), (1, halves(&whole)), "{first}");
        assert!(learned.to_string().contains("# The clock of the capture was set back once;"));
        let mut listener = MessageReconstructor::default();
        packets.iter().for_each(|(at, packet)| listener.handle_packet(*at, packet));
        let times: Vec<u64> =
            listener.finish(None).unwrap().exchanges.iter().map(|exchange| exchange.at / MS).collect();
        assert!(times.len() == 3 && times[1] > times[0] + 500 && times[2] > times[1] + 900, "{times:?}");
    }
}

/// A packet is written after one captured 20 ms later, by another processor.
#[test]
fn late_packet_is_no_step_of_the_clock() {
    let packets = connections(20, MS, |_| 0);
    let usual = learn(&packets);
    for late in [8, 11, 15] {
        let mut packets = packets.clone();
        packets.swap(late, late + 1);
        let learned = learn(&packets);
        assert_eq!((learned.clock_steps, learned.duration_ns), (0, usual.duration_ns));
        let shortest = |path: &PathEstimate| path.round_trip.as_ref().unwrap().shortest;
        assert_eq!(shortest(&learned), shortest(&usual), "{late}");
        let mut listener = MessageReconstructor::default();
        packets.iter().for_each(|(at, packet)| listener.handle_packet(*at, packet));
        let exchanges = listener.finish(None).unwrap().exchanges;
        assert_eq!(exchanges.last().unwrap().at, 19_000 * MS);
    }
}

fn fragments(payload: &[u8], id: u8, is_ipv6: bool) -> Vec<Vec<u8>> {
    let parts = payload.chunks(1440).collect::<Vec<_>>();
    let fragment = |(number, part): (usize, &&[u8])| {
        let (place, is_last) = ((number * 1440) as u16, number + 1 == parts.len());
        let mut packet = Vec::new();
        if is_ipv6 {
            packet.extend([0x60, 0, 0, 0]);
            packet.extend((part.len() as u16 + 8).to_be_bytes());
            packet.extend([44, 64]);
            packet.extend([[0xfd; 16], [0xfe; 16]].concat());
            packet.extend([17, 0]);
            packet.extend((place | u16::from(!is_last)).to_be_bytes());
            packet.extend([0, 0, 0, id]);
        } else {
            packet.extend([0x45, 0]);
            packet.extend((part.len() as u16 + 20).to_be_bytes());
            packet.extend([0, id]);
            packet.extend(((place / 8) | if is_last { 0 } else { 0x2000 }).to_be_bytes());
            packet.extend([64, 17, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2]);
        }
        packet.extend(*part);
        packet
    };
    parts.iter().enumerate().map(fragment).collect()
}

#[test]
fn fragmented_datagram_is_one_message() {
    let mut datagram = vec![0x9c, 0x40, 1, 187, 0x0f, 0xa8, 0, 0];
    datagram.resize(8 + 4000, 3);
    for is_ipv6 in [false, true] {
        let parts = fragments(&datagram, 5, is_ipv6);
        let mut listener = MessageReconstructor::default();
        // The second fragment of another capture is cut short.
        for (number, part) in parts.iter().enumerate() {
            let cut = if number == 1 { 100 } else { 0 };
            let packet = CapturedIp { octets: &part[..part.len() - cut], cut: cut as u32 };
            listener.handle_packet(number as u64, packet);
        }
        let heard = listener.finish(None).unwrap();
        assert_eq!(heard.exchanges.iter().map(|exchange| exchange.octets).collect::<Vec<_>>(), [4000]);
        let mut incomplete = MessageReconstructor::default();
        parts.iter().skip(1).for_each(|part| incomplete.handle_packet(0, part));
        assert_eq!(incomplete.finish(None), Err(EstimateError::NoPackets));
    }
}

/// Both ports of a bridge: the duplicate of a last fragment must not become part of the next datagram with its identification.
#[test]
fn fragments_captured_twice_count_once() {
    let mut datagram = vec![0x9c, 0x40, 1, 187, 0x07, 0xd8, 0, 0];
    datagram.resize(8 + 2000, 3);
    for (is_ipv6, handshake) in [(false, connections(1, MS, |_| 0)[..3].to_vec()), (true, Vec::new())] {
        let mut packets = handshake;
        for number in 0..20 {
            let at = (100 + 150 * u64::from(number)) * MS;
            // Each identification is used again.
            packets.extend(fragments(&datagram, 1 + number % 10, is_ipv6).into_iter().map(|part| (at, part)));
        }
        let (mut learner, mut listener) = (PathEstimator::default(), MessageReconstructor::default());
        for (at, packet) in packets.iter().flat_map(|(at, packet)| [(at, packet), (at, packet)]) {
            learner.handle_packet(*at, packet);
            listener.handle_packet(*at, packet);
        }
        let exchanges = listener.finish(None).unwrap().exchanges;
        assert!(exchanges.len() == 20 && exchanges.iter().all(|exchange| exchange.octets == 2000));
        if is_ipv6 {
            let nothing = EstimateError::NothingAcknowledged { packets: 40, datagrams: 20 };
            assert_eq!(learner.finish(None), Err(nothing));
        } else {
            let learned = learner.finish(None).unwrap();
            assert_eq!((learned.packets, learned.duplicates, learned.unread), (43, 43, 0));
            assert!(learned.to_string().contains("# 43 packets were captured twice,"), "{learned}");
        }
    }
}

/// VXLAN (RFC 7348 section 5) whose outer packets exceed the MTU: the segments in it are those of the inner hosts.
#[test]
fn segments_in_fragmented_tunnels_are_found() {
    let mut packets = connections(3, MS, |_| 0);
    packets.iter_mut().filter(|(_, packet)| packet.len() > 52).for_each(|(_, packet)| {
        packet.resize(1500, 7);
        packet[2..4].copy_from_slice(&1500_u16.to_be_bytes());
    });
    let (mut learner, mut listener) = (PathEstimator::default(), MessageReconstructor::default());
    for (number, (at, packet)) in (1..).zip(&packets) {
        let outer = [&[9, 9, 0x12, 0xb5, 0, 0, 0, 0, 8, 0, 0, 0, 0, 0, 1, 0][..], &[2; 12], &[8, 0], packet];
        // Short packets are removed from the tunnel with the link layer.
        let parts =
            if packet.len() > 52 { fragments(&outer.concat(), number, true) } else { vec![packet.clone()] };
        for part in parts.iter().flat_map(|part| [part, part]) {
            learner.handle_packet(*at, part);
            listener.handle_packet(*at, part);
        }
    }
    let (learned, usual) = (learner.finish(None).unwrap(), learn(&packets));
    assert_eq!((learned.packets, learned.other_packets, learned.unread), (24, 0, 0));
    assert_eq!((learned.hosts, learned.mtu, &learned.losses), (usual.hosts, usual.mtu, &usual.losses));
    assert_eq!(learned.round_trip, usual.round_trip);
    assert_eq!(listener.finish(None).unwrap().exchanges.len(), 3);
}

/// Extension headers of IPv6 that are longer than the packet: as a whole, and after reassembly.
#[test]
fn packet_shorter_than_its_headers_is_unread() {
    let mut packets = connections(1, MS, |_| 0);
    let ipv6 = |next: u8, rest: &[u8]| {
        let mut packet = vec![0x60, 0, 0, 0, 0, rest.len() as u8, next, 64];
        packet.extend([[0xfd; 16], [0xfe; 16]].concat());
        [packet, rest.to_vec()].concat()
    };
    packets.push((5000 * MS, ipv6(60, &[6, 9, 1, 4, 0, 0, 0, 0])));
    packets.push((5000 * MS, ipv6(44, &[60, 0, 0, 1, 0, 0, 0, 7, 6, 9, 1, 4, 0, 0, 0, 0])));
    packets.push((5000 * MS, ipv6(44, &[60, 0, 0, 8, 0, 0, 0, 7, 1, 4, 0, 0, 0, 0, 0, 0])));
    assert_eq!(learn(&packets).unread, 2);
}

/// A packet that the network card segments has no length yet.
#[test]
fn packet_without_length_has_the_length_of_the_record() {
    let mut packets = connections(1, MS, |_| 0);
    packets[3].1.resize(52 + 14_600, 7);
    packets[3].1[2..4].fill(0);
    let mut listener = MessageReconstructor::default();
    for (at, packet) in &packets[..4] {
        let kept = packet.len().min(100);
        let cut = (packet.len() - kept) as u32;
        listener.handle_packet(*at, CapturedIp { octets: &packet[..kept], cut });
    }
    assert_eq!(listener.finish(None).unwrap().exchanges[0].octets, 14_600);
}

/// The file claims 4 GiB of packets without a length, and the SYN an MSS of 1.
#[test]
fn claimed_length_does_not_determine_the_memory() {
    let mut packets = connections(1, MS, |_| 0)[..4].to_vec();
    for (_, packet) in &mut packets[..2] {
        // In the place of padding and timestamps.
        packet[40..44].copy_from_slice(&[2, 4, 0, 1]);
        packet[44..52].fill(1);
    }
    packets[3].1[2..4].fill(0);
    let reply = [500, 1_000_000];
    let ack = Segment { from: 2, port: 40_000, id: 9, numbers: reply, flags: ACK, clock: [9, 9], octets: 0 };
    packets.push((packets[3].0 + 20 * MS, ack.packet()));
    let mut learner = PathEstimator::default();
    for (number, (at, packet)) in packets.iter().enumerate() {
        learner
            .handle_packet(*at, CapturedIp { octets: packet, cut: if number == 3 { u32::MAX } else { 0 } });
    }
    let learned = learner.finish(None).unwrap();
    assert!(learned.conversations == 1 && learned.mtu.agreed == Some(41), "{learned}");
    let segments = learned.losses[0].as_ref().map_or(0, |losses| losses.packets);
    assert!((900..1000).contains(&segments), "{segments}");
}

/// RFC 7413 section 2: the request is in the SYN, which is retransmitted.
#[test]
fn data_in_a_syn_are_a_message() {
    let segment = |from, numbers, flags, octets, id| {
        Segment { from, port: 40_000, id, numbers, flags, clock: [1, 1], octets }.packet()
    };
    let packets = [
        (0, segment(1, [99, 0], SYN | PSH, 250, 1)),
        (1000, segment(1, [99, 0], SYN | PSH, 250, 2)),
        (1020, segment(2, [499, 350], SYN | ACK, 0, 1)),
        (1020, segment(1, [350, 500], ACK | PSH, 10, 3)),
        (1021, segment(2, [500, 350], ACK | PSH, 700, 2)),
    ];
    let mut listener = MessageReconstructor::default();
    packets.iter().for_each(|(ms, packet)| listener.handle_packet(ms * MS, packet));
    let heard = listener.finish(None).unwrap();
    let said: Vec<_> = heard.exchanges.iter().map(|one| (one.at / MS, one.octets, one.reply)).collect();
    assert_eq!((heard.conversations, said), (1, vec![(0, 250, 700), (1020, 10, 0)]));
    let in_ms: Vec<_> = packets.into_iter().map(|(ms, packet)| (ms * MS, packet)).collect();
    let learned = learn(&in_ms);
    assert!(learned.conversations == 1 && learned.losses[0].as_ref().is_none_or(|losses| losses.lost == 0));
}

/// The same ports are used again after a refused request, whose data in the SYN (RFC 7413 section 2) did not arrive.
#[test]
fn request_with_another_number_is_another_conversation() {
    let segment = |from, numbers, flags, octets, id| {
        Segment { from, port: 40_000, id, numbers, flags, clock: [1, 1], octets }.packet()
    };
    for (octets, expected) in [([50, 70], &[(0, 50), (19_000, 70)][..]), ([0, 70], &[(0, 70)])] {
        let packets = [
            (0, segment(1, [99, 0], SYN | PSH, octets[0], 1)),
            (20, segment(2, [0, 100 + u32::from(octets[0])], RST | ACK, 0, 1)),
            (19_000, segment(1, [7_000_099, 0], SYN | PSH, octets[1], 2)),
            (19_020, segment(2, [499, 7_000_170], SYN | ACK, 0, 2)),
            (19_020, segment(1, [7_000_170, 500], ACK, 0, 3)),
        ];
        let mut listener = MessageReconstructor::default();
        packets.iter().for_each(|(ms, packet)| listener.handle_packet(ms * MS, packet));
        let heard: Vec<_> = listener.finish(None).unwrap().exchanges;
        assert_eq!(heard.iter().map(|one| (one.at / MS, one.octets)).collect::<Vec<_>>(), expected);
        let in_ms: Vec<_> = packets.into_iter().map(|(ms, packet)| (ms * MS, packet)).collect();
        let learned = learn(&in_ms);
        assert_eq!((learned.conversations, learned.round_trip.unwrap().shortest), (2, 20 * MS));
    }
}

#[test]
fn unknown_delay_has_a_cause() {
    let whole = connections(1, MS, |_| 0);
    let refused = {
        let reset = Segment {
            from: 2,
            port: 40_000,
            id: 9,
            numbers: [0, 100],
            flags: RST | ACK,
            clock: [0, 0],
            octets: 0,
        };
        vec![whole[0].clone(), (whole[0].0 + 20 * MS, reset.packet())]
    };
    let only_client = whole.iter().filter(|(_, packet)| packet[15] == 1).cloned().collect::<Vec<_>>();
    let long = [&[0xc3, 0, 0, 0, 1, 8][..], &[1; 8], &[4], &[2; 4], &[0; 20]].concat();
    let quic = vec![
        (0, datagram(1, 1, &long)),
        (1000 * MS, datagram(1, 2, &long)),
        (1024 * MS, datagram(2, 1, &long)),
        (1025 * MS, datagram(1, 3, &long)),
    ];
    // Data of one host and acknowledgements, without timestamps.
    let mut upload = Vec::new();
    for k in 0..5_u32 {
        let at = u64::from(k) * 100 * MS;
        for (at, from, numbers, octets) in
            [(at, 1, [100 + 10 * k, 500], 10), (at + 20 * MS, 2, [500, 110 + 10 * k], 0)]
        {
            let clock = [0, 0];
            let segment =
                Segment { from, port: 40_000, id: k as u16 + 1, numbers, flags: ACK, clock, octets };
            let mut packet = segment.packet();
            packet[40..52].fill(1);
            upload.push((at, packet));
        }
    }
    // Handshakes without the third packet and without timestamps.
    let handshake = |ports_and_packets: &[(u16, usize)]| {
        let packet = |(count, (port, number)): (usize, &(u16, usize))| {
            let mut packet = whole.iter().chain(&refused).nth(*number).unwrap().1.clone();
            let offset = if packet[15] == 1 { 20 } else { 22 };
            packet[offset..offset + 2].copy_from_slice(&port.to_be_bytes());
            packet[4..6].copy_from_slice(&(count as u16 + 1).to_be_bytes());
            packet[40..52].fill(1);
            (count as u64 * 500 * MS, packet)
        };
        ports_and_packets.iter().enumerate().map(packet).collect::<Vec<_>>()
    };
    let reset = whole.len() + 1;
    // Over the second path of an association, only the client sends data.
    let [one, other] = PATHS;
    let mut second_path = vec![
        (0, sctp(one, true, 0, &opening(1, 11, 100))),
        (20 * MS, sctp(back(one), false, 11, &opening(2, 22, 500))),
        (20 * MS, sctp(one, true, 22, &[10, 0, 0, 4])),
    ];
    for k in 0..10_u32 {
        let at = u64::from(k + 1) * 100 * MS;
        second_path.push((at, sctp(other, true, 22, &data(100 + k))));
        second_path.push((at + 20 * MS, sctp(back(other), false, 11, &sack(100 + k))));
    }
    for (packets, cause) in [
        (refused.clone(), UnknownDelay::Refused),
        (second_path, UnknownDelay::HandshakeOnAnotherPath),
        (handshake(&[(1, 0), (1, 0), (1, 1)]), UnknownDelay::AmbiguousHandshake),
        (handshake(&[(1, 0), (1, 0), (1, 1), (2, 0), (2, reset)]), UnknownDelay::AmbiguousHandshake),
        (handshake(&[(1, 0), (1, 0), (1, 1), (2, 0), (2, 1)]), UnknownDelay::NoReply),
        (handshake(&[(1, 0), (1, reset), (1, 0), (1, 1)]), UnknownDelay::NoReply),
        (handshake(&[(1, 0), (1, reset), (1, 0)]), UnknownDelay::NoReply),
        (only_client, UnknownDelay::OneDirection),
        (quic, UnknownDelay::AmbiguousHandshake),
        (upload, UnknownDelay::NoHandshake),
    ] {
        let learned = learn(&packets);
        assert_eq!(learned.round_trip, Err(cause));
        assert!(learned.to_string().contains(&format!("# delay: unknown; {cause}.")), "{learned}");
    }
    // The port is used again after a refusal, with the same first number.
    let accepted = learn(&handshake(&[(1, 0), (1, reset), (1, 0), (1, 1), (1, 2)]));
    assert_eq!(accepted.round_trip.unwrap().halves, [500 * MS; 2]);
}

/// As with `tcpdump -s 34`: Ethernet and IP headers.
#[test]
fn packets_cut_within_the_transport_header_are_the_cause() {
    let (mut learner, mut listener) = (PathEstimator::default(), MessageReconstructor::default());
    for (at, packet) in connections(2, MS, |_| 0) {
        let cut = CapturedIp { octets: &packet[..20], cut: packet.len() as u32 - 20 };
        learner.handle_packet(at, cut);
        listener.handle_packet(at, cut);
    }
    let problem = EstimateError::Cut { packets: 16, cut: 16 };
    assert_eq!(learner.finish(None).unwrap_err(), problem);
    assert_eq!(listener.finish(None).unwrap_err(), problem);
    assert!(problem.to_string().contains("tcpdump -s 128"));
}

/// Packets between other hosts were cut, or few of those between these hosts.
#[test]
fn cut_packets_are_the_cause_only_if_they_are_most() {
    let to = |to: u8, id: u8| {
        let mut packet = datagram(1, id, &[0; 8]);
        packet[19] = to;
        packet
    };
    for (cut, others_cut, expected) in [
        (0, 50, EstimateError::NothingAcknowledged { packets: 60, datagrams: 60 }),
        (29, 0, EstimateError::NothingAcknowledged { packets: 60, datagrams: 31 }),
        (50, 50, EstimateError::Cut { packets: 60, cut: 50 }),
    ] {
        let mut learner = PathEstimator::default();
        for id in 0..110 {
            let whole = if id < 60 { to(2, id) } else { to(3, id) };
            let is_cut = if id < 60 { id < cut } else { id - 60 < others_cut };
            let octets = if is_cut { &whole[..20] } else { &whole[..] };
            let rest = (whole.len() - octets.len()) as u32;
            learner.handle_packet(u64::from(id) * MS, CapturedIp { octets, cut: rest });
        }
        assert_eq!(learner.finish(None), Err(expected));
    }
}
