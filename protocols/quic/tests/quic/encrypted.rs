//! Tests two ends with TLS, and a path that delays packets and loses selected ones.

use std::sync::Arc;

use bytes::Bytes;
use hol_base::{Duration, Seed, Time};
use hol_quic::{
    Config, EncryptedPackets, Endpoint, EndpointOutput, KeyLog, MessageMapping, OutgoingDatagram, Tls,
};
use hol_transport::{Command, Event, Failure, Message, ReceivedData, Reliability, Violation};
use hol_wire::Ecn;
use hol_wire::quic::{Frame, Side, Unprotector, packets};

use crate::pipe::{CLIENT, Path, Pipe, SERVER, config};

/// Both ends; the client is side 0.
struct Ends {
    now: Time,
    sides: [Endpoint<EncryptedPackets>; 2],
    deadlines: [Option<Time>; 2],
    /// Datagrams in transit: time of arrival, destination, content.
    on_the_way: Vec<(Time, usize, OutgoingDatagram)>,
    /// Total number of packets sent.
    sent: usize,
    /// Octets of each datagram, by side.
    lengths: [Vec<usize>; 2],
    /// All datagrams in the order of their transmission, with the sender.
    datagrams: Vec<(usize, Vec<u8>)>,
    /// Returns whether a packet, by its number, is lost.
    lost: fn(usize) -> bool,
    /// Whether the path marks ECN-capable packets.
    marks: bool,
    events: [Vec<Event>; 2],
    log: KeyLog,
}

impl Ends {
    fn new(config: &Config, mapping: MessageMapping, lost: fn(usize) -> bool) -> Self {
        let log = KeyLog::default();
        let tls = Tls::new(config, log.clone());
        Self::that_have([&tls, &tls], log, config, mapping, lost)
    }

    fn that_have(
        [own, other]: [&Tls; 2],
        log: KeyLog,
        config: &Config,
        mapping: MessageMapping,
        lost: fn(usize) -> bool,
    ) -> Self {
        let config = Arc::new(config.clone());
        let rng = |name: &str| Seed(3).derive(name).rng();
        let client = Endpoint::client(Arc::clone(&config), mapping, own, SERVER, rng("client"));
        let server = Endpoint::server(config, mapping, other, rng("server"));
        let sides = [client, server];
        let mut ends = Self {
            now: Time::ZERO,
            sides,
            deadlines: [None; 2],
            on_the_way: Vec::new(),
            sent: 0,
            lengths: [Vec::new(), Vec::new()],
            datagrams: Vec::new(),
            lost,
            marks: false,
            events: [Vec::new(), Vec::new()],
            log,
        };
        ends.tell(0, Command::Connect);
        ends
    }

    fn settle(&mut self) {
        for side in 0..2 {
            loop {
                match self.sides[side].poll(self.now) {
                    EndpointOutput::Transmit(datagram) => {
                        self.lengths[side].push(datagram.octets.len());
                        self.datagrams.push((side, datagram.octets.to_vec()));
                        if !(self.lost)(self.sent) {
                            self.on_the_way.push((self.now + Duration::from_millis(10), 1 - side, datagram));
                        }
                        self.sent += 1;
                    }
                    EndpointOutput::Event(event) => self.events[side].push(event),
                    EndpointOutput::Wait(until) => {
                        self.deadlines[side] = until;
                        break;
                    }
                }
            }
        }
    }

    fn run(&mut self, time: Duration) {
        let until = self.now + time;
        loop {
            let packet = self.on_the_way.iter().map(|(at, ..)| *at).min();
            let next = Time::earliest([packet, self.deadlines[0], self.deadlines[1]]);
            let Some(next) = next.filter(|next| *next <= until) else { break };
            self.now = next;
            if let Some(first) = self.on_the_way.iter().position(|(at, ..)| *at == next) {
                let (_, to, mut datagram) = self.on_the_way.remove(first);
                let _capable = self.marks && datagram.ecn.mark();
                self.sides[to].receive_datagram(next, [SERVER, CLIENT][to], &datagram.octets, datagram.ecn);
            }
            self.settle();
        }
        self.now = until;
    }

    fn offer(&mut self, side: usize, stream: u16, payload: Vec<u8>) -> bool {
        let (reliability, payload) = (Reliability::Full, Bytes::from(payload));
        let message = Message { stream, unordered: false, reliability, ppid: 0, payload };
        let taken = self.sides[side].try_send(self.now, message);
        self.settle();
        taken
    }

    fn tell(&mut self, side: usize, command: Command) {
        self.sides[side].handle_command(self.now, command);
        self.settle();
    }

    fn received(&self, side: usize) -> Vec<&ReceivedData> {
        let events = self.events[side].iter();
        events.filter_map(|event| if let Event::Received(data) = event { Some(data) } else { None }).collect()
    }
}

#[test]
fn every_message_mapping_works_through_tls_despite_losses() {
    for mapping in [MessageMapping::Streams, MessageMapping::PerMessage] {
        let mut ends = Ends::new(&config("quinn-0.11", "streams = 4"), mapping, |number| number % 17 == 16);
        ends.run(Duration::from_millis(500));
        for number in 0..200_u16 {
            assert!(ends.offer(0, number % 4, vec![number as u8; 100]), "{number}");
            assert!(ends.offer(1, number % 4, vec![number as u8; 50]), "{number}");
            ends.run(Duration::from_millis(5));
        }
        ends.run(Duration::from_secs(2));
        for (side, octets) in [(0, 50), (1, 100)] {
            let came: usize = ends.received(side).iter().map(|data| data.payload.len()).sum();
            assert_eq!(came, 200 * octets, "{mapping:?}");
        }
        assert!(ends.sides.iter().all(|side| side.packets_lost() > 0));
        ends.tell(0, Command::Close);
        ends.run(Duration::from_millis(100));
        ends.tell(1, Command::Close);
        ends.run(Duration::from_secs(5));
        for events in &ends.events {
            assert!(
                events.contains(&Event::PeerClosed) && events.last() == Some(&Event::Closed),
                "{mapping:?}"
            );
        }
        assert!(ends.sides.iter().all(Endpoint::is_drained));
    }
}

/// RFC 9221: datagrams are not retransmitted.
#[test]
fn lost_datagrams_are_not_retransmitted() {
    let mut ends = Ends::new(&config("quinn-0.11", ""), MessageMapping::Datagrams, |number| {
        number > 40 && number % 5 == 0
    });
    ends.run(Duration::from_millis(500));
    for _ in 0..100 {
        assert!(ends.offer(0, 0, vec![7; 100]));
        ends.run(Duration::from_millis(10));
    }
    let came = ends.received(1).len();
    assert!((50..100).contains(&came), "{came}");
}

/// RFC 9000 section 13.4.2 and RFC 9002 section 7.1: marks are reported, and the window is reduced as after a loss.
#[test]
fn marks_reduce_the_window_if_ecn_is_on() {
    let window = |ecn: bool, marks: bool| {
        let mut ends =
            Ends::new(&config("quinn-0.11", &format!("ecn = {ecn}")), MessageMapping::Streams, |_| false);
        ends.run(Duration::from_millis(500));
        ends.marks = marks;
        for _ in 0..50 {
            assert!(ends.offer(0, 0, vec![1; 5000]));
            ends.run(Duration::from_millis(20));
        }
        assert_eq!(ends.sides[0].packets_lost(), 0);
        let mut window = None;
        ends.sides[0].report_path(&mut |path| window = path.cwnd);
        window.unwrap()
    };
    let free = window(true, false);
    assert!(window(true, true) < free / 2, "{free}");
    assert_eq!(
        [window(false, true), window(false, false)],
        [free, free],
        "packets that are not ECN-capable are not marked"
    );
}

/// RFC 9000 section 8.1: a server sends at most three times as much as it received before the client's address is validated.
#[test]
fn handshake_flight_above_the_amplification_limit_costs_an_rtt() {
    let connected = |flight: &str| {
        let changes = format!("handshake_flight = '{flight}'");
        let mut ends = Ends::new(&config("quinn-0.11", &changes), MessageMapping::Streams, |_| false);
        while !ends.events[0].contains(&Event::Connected) {
            ends.run(Duration::from_millis(1));
            assert!(ends.now < Time::from_millis(1000));
        }
        ends.now
    };
    let at = |millis| Time::from_millis(millis);
    assert_eq!([connected("600B"), connected("2500B"), connected("4500B")], [at(20), at(20), at(40)]);
}

/// Transport parameters have a reserved one of random length (RFC 9000 section 18.1). Over sockets the flight
/// once had about 19 octets more than in the model, so all later datagrams arrived later.
#[test]
fn flight_has_the_same_length_with_and_without_tls() {
    let config = config("quinn-0.11", "");
    for seed in 0..12 {
        let mut ends = Ends::new(&config, MessageMapping::Streams, |_| false);
        let (tls, rng) = (Tls::new(&config, KeyLog::default()), Seed(seed).rng());
        let client = Endpoint::client(Arc::new(config.clone()), MessageMapping::Streams, &tls, SERVER, rng);
        let server =
            Endpoint::server(Arc::new(config.clone()), MessageMapping::Streams, &tls, Seed(seed).rng());
        ends = Ends { sides: [client, server], on_the_way: vec![], lengths: [vec![], vec![]], ..ends };
        ends.tell(0, Command::Connect);
        ends.run(Duration::from_millis(500));
        let clear = Pipe::connected(&config, MessageMapping::Streams, Path::clean(10), Seed(seed));
        let clear = clear
            .sides
            .each_ref()
            .map(|side| side.sent.iter().map(|(_, packet)| packet.length() - 28).collect::<Vec<usize>>());
        for (sealed, clear) in ends.lengths.iter().zip(&clear) {
            let handshake = clear.len().min(4);
            assert_eq!(sealed[..handshake], clear[..handshake], "seed {seed}");
        }
    }
}

/// RFC 9001 section 4.1.3: a client does not continue with an unknown server.
#[test]
fn a_server_with_another_certificate_is_not_trusted() {
    let mut ends = Ends::new(&config("quinn-0.11", ""), MessageMapping::Streams, |_| false);
    let config = Arc::new(config("quinn-0.11", ""));
    let other = Tls::new(&config, KeyLog::default());
    ends.sides[1] = Endpoint::server(config, MessageMapping::Streams, &other, Seed(4).rng());
    ends.run(Duration::from_secs(1));
    assert_eq!(ends.events[0], [Event::Failed { reason: Failure::Violation(Violation::Transport) }]);
}

/// On two hosts each end derives its configuration from the shared secret.
#[test]
fn server_certificate_of_the_shared_secret_is_trusted() {
    for (secret, is_trusted) in [([1; 32], true), ([2; 32], false)] {
        let config = config("quinn-0.11", "handshake_flight = '2500B'");
        let [own, other] =
            [[1; 32], secret].map(|secret| Tls::from_shared_secret(&secret, &config, KeyLog::default()));
        let log = KeyLog::default();
        let mut ends = Ends::that_have([&own, &other], log, &config, MessageMapping::Streams, |_| false);
        ends.run(Duration::from_secs(1));
        assert_eq!(ends.events[0].contains(&Event::Connected), is_trusted, "{:?}", ends.events[0]);
    }
}

#[test]
fn datagrams_of_no_connection_are_ignored() {
    let mut ends = Ends::new(&config("quinn-0.11", ""), MessageMapping::Streams, |_| false);
    ends.run(Duration::from_millis(500));
    for octets in [&[][..], &[0], &[0x40; 30], &[0xc0; 1200], &[0xff; 1500]] {
        for side in 0..2 {
            ends.sides[side].receive_datagram(ends.now, [SERVER, CLIENT][side], octets, Ecn::NotCapable);
        }
        ends.settle();
    }
    assert!(ends.offer(0, 0, vec![1; 100]));
    ends.run(Duration::from_millis(100));
    assert_eq!(ends.received(1).len(), 1);
}

/// Data held back by a full socket are treated as if they had not been written.
#[test]
fn held_packets_are_sent_after_release() {
    let mut ends = Ends::new(&config("quinn-0.11", ""), MessageMapping::Streams, |_| false);
    ends.run(Duration::from_millis(500));
    let sent = ends.sent;
    ends.sides[0].set_paused(true);
    assert!(ends.offer(0, 0, vec![1; 100]));
    ends.run(Duration::from_millis(100));
    assert_eq!((ends.sent, ends.received(1).len()), (sent, 0));
    ends.sides[0].set_paused(false);
    ends.settle();
    ends.run(Duration::from_millis(100));
    assert_eq!(ends.received(1).len(), 1);
}

#[test]
fn secrets_are_logged_once_by_the_client() {
    let mut ends = Ends::new(&config("quinn-0.11", ""), MessageMapping::Streams, |_| false);
    ends.run(Duration::from_millis(500));
    let lines = ends.log.lines();
    for label in ["CLIENT_HANDSHAKE_TRAFFIC_SECRET ", "SERVER_TRAFFIC_SECRET_0 "] {
        assert_eq!(lines.lines().filter(|line| line.starts_with(label)).count(), 1, "{lines}");
    }
}

/// Returns how long after the client opens the connection a request's reply arrives.
fn reply_time(mut ends: Ends) -> Time {
    let (mut is_sent, mut is_answered) = (false, false);
    while ends.now < Time::from_millis(5000) {
        is_sent = is_sent || (ends.events[0].contains(&Event::Connected) && ends.offer(0, 0, vec![1; 100]));
        is_answered = is_answered || (ends.received(1).len() == 1 && ends.offer(1, 0, vec![2; 100]));
        if !ends.received(0).is_empty() {
            return ends.now;
        }
        ends.run(Duration::from_millis(1));
    }
    panic!("no reply: {:?}", ends.events)
}

/// RFC 9001 section 4.6: with the ticket of an earlier connection the reply arrives after one round trip of 20 ms instead
/// of two. Each client has a ticket of its own.
#[test]
fn zero_rtt_saves_a_round_trip() {
    let reply = |zero_rtt: bool, flight: &str| {
        let plain = config("quinn-0.11", &format!("handshake_flight = '{flight}'"));
        reply_time(Ends::new(&Config { zero_rtt, ..plain }, MessageMapping::Streams, |_| false))
    };
    assert_eq!(reply(false, "2500B"), Time::from_millis(40));
    assert_eq!([reply(true, "2500B"), reply(true, "12000B")], [Time::from_millis(20); 2]);
    let config = Config { zero_rtt: true, ..config("quinn-0.11", "") };
    let log = KeyLog::default();
    let tls = Tls::new(&config, log.clone());
    // All clients exist before the first one begins its handshake.
    let open = |_| Ends::that_have([&tls, &tls], log.clone(), &config, MessageMapping::Streams, |_| false);
    for (number, ends) in (0..80).map(open).collect::<Vec<_>>().into_iter().enumerate() {
        assert_eq!(reply_time(ends), Time::from_millis(20), "connection {number}");
    }
}

/// RFC 9001 section 4.6.2: a server that does not know the ticket, such as another host, rejects the early data, and the
/// client sends them again.
#[test]
fn a_server_that_does_not_know_the_ticket_rejects_early_data() {
    let config = Config { zero_rtt: true, ..config("quinn-0.11", "") };
    let log = KeyLog::default();
    let [own, other] = [(); 2].map(|()| Tls::from_shared_secret(&[7; 32], &config, log.clone()));
    let ends = Ends::that_have([&own, &other], log, &config, MessageMapping::Streams, |_| false);
    assert_eq!(reply_time(ends), Time::from_millis(40));
}

/// RFC 9001 sections 5 and 6: a capture with the key log shows all frames, also those of packets after key updates.
#[test]
fn the_key_log_opens_all_packets() {
    let mut ends = Ends::new(&config("quinn-0.11", ""), MessageMapping::Streams, |_| false);
    ends.run(Duration::from_millis(500));
    for number in 0..1500_u32 {
        assert!(ends.offer(0, 0, number.to_be_bytes().repeat(20)));
        ends.run(Duration::from_millis(2));
    }
    ends.run(Duration::from_secs(1));
    let mut unprotector = Unprotector::default();
    unprotector.add_key_log(&ends.log.lines());
    let (mut octets, mut updates) = (0, 0);
    for (side, datagram) in &ends.datagrams {
        let sender = [Side::Client, Side::Server][*side];
        let clear = unprotector.open(0, sender, datagram);
        assert_eq!(clear.len(), datagram.len());
        for packet in packets(&clear).map(Result::unwrap) {
            updates = updates.max(packet.number.generation);
            let lengths = packet.frames().map(|frame| match frame.unwrap() {
                Frame::Stream { length, .. } if sender == Side::Client => length,
                _ => 0,
            });
            octets += lengths.sum::<u64>();
        }
    }
    assert!(octets >= 1500 * 80 && updates > 0, "{octets} octets, {updates} updates");
}
