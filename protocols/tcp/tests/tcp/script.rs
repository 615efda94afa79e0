//! Tests one rule each: segments in, segments out, at exact times. The test plays the peer.

use crate::endpoint::{message, stack};
use bytes::Bytes;
use hol_base::{ByteCount, Duration, Seed, Time};
use hol_tcp::{Config, Endpoint, State};
use hol_transport::{Command, Endpoint as _, Event, Failure, Input, Output};
use hol_wire::tcp::{Flags, Options, SackBlock, Segment, SeqNum, Timestamps};
use hol_wire::{Address, Packet, Transport};

pub(crate) const LOCAL: (Address, u16) = (hol_wire::ipv4(10, 0, 0, 1), 1000);
pub(crate) const PEER: (Address, u16) = (hol_wire::ipv4(10, 0, 0, 2), 80);
/// The peer's first octet of data.
pub(crate) const PEER_START: SeqNum = SeqNum(5001);

/// An endpoint and the script's clock.
pub(crate) struct Script {
    pub(crate) now: Time,
    pub(crate) endpoint: Endpoint,
    /// The endpoint's first octet of data.
    pub(crate) start: SeqNum,
    pub(crate) events: Vec<Event>,
    pub(crate) deadline: Option<Time>,
}

impl Script {
    /// Returns a client whose SYN was answered after `rtt_ms`, without timestamps.
    pub(crate) fn connected(mut config: Config, rtt_ms: u64) -> Self {
        config.timestamps = false;
        Self::opened(config, rtt_ms)
    }

    /// Returns a client whose SYN was answered after `rtt_ms`, with timestamps in the SYNs if the client offers them.
    pub(crate) fn opened(mut config: Config, rtt_ms: u64) -> Self {
        config.nagle = hol_tcp::Nagle::Off;
        let endpoint = Endpoint::connect(config, LOCAL, PEER, Seed(1).rng());
        let (now, start) = (Time::ZERO, SeqNum::default());
        let mut script = Self { now, endpoint, start, events: Vec::new(), deadline: None };
        script.endpoint.handle(Time::ZERO, Input::Command(Command::Connect));
        let syn = script.sent().remove(0);
        assert_eq!(syn.flags, Flags::SYN);
        script.start = syn.seq.next();
        script.at(rtt_ms);
        let timestamps = syn.options.timestamps.map(|own| Timestamps { value: 1, echo: own.value });
        let options = Options { mss: Some(1460), sack_permitted: true, timestamps, ..Options::default() };
        let answer = script.peer_segment(Flags::SYN | Flags::ACK, PEER_START - 1, 0, 0);
        let acks = script.arrives(Segment { options, ..answer });
        assert_eq!(acks.len(), 1, "the handshake's last ACK");
        assert_eq!(script.events, [Event::Connected]);
        script
    }

    /// Advances the time; no segment may be sent meanwhile.
    pub(crate) fn at(&mut self, ms: u64) {
        let time = Time::from_millis(ms);
        assert!(
            self.deadline.is_none_or(|at| at > time),
            "a timer runs at {:?}, before {time}",
            self.deadline
        );
        self.now = time;
    }

    /// Returns all segments that are sent now.
    pub(crate) fn sent(&mut self) -> Vec<Segment> {
        let mut segments = Vec::new();
        loop {
            match self.endpoint.poll(self.now) {
                Output::Transmit(Packet { transport: Transport::Tcp(segment), .. }) => {
                    segments.push(*segment);
                }
                Output::Transmit(packet) => panic!("not TCP: {packet:?}"),
                Output::Event(event) => self.events.push(event),
                Output::Wait(deadline) => {
                    self.deadline = deadline;
                    return segments;
                }
            }
        }
    }

    /// Waits for the next timer; returns its time in ms, and the segments that it sent.
    pub(crate) fn next_timer(&mut self) -> (u64, Vec<Segment>) {
        self.now = self.deadline.expect("a timer runs");
        (self.now.as_millis(), self.sent())
    }

    pub(crate) fn writes(&mut self, octets: usize) -> Vec<Segment> {
        self.endpoint.handle(self.now, Input::Command(message(vec![7; octets])));
        self.sent()
    }

    pub(crate) fn peer_segment(&self, flags: Flags, seq: SeqNum, acked: u32, length: usize) -> Segment {
        Segment {
            source_port: PEER.1,
            destination_port: LOCAL.1,
            seq,
            ack: self.start + acked,
            flags,
            window: 65535,
            options: Options::default(),
            payload: Bytes::from(vec![9; length]),
            stamp: hol_wire::SendTimes::default(),
        }
    }

    pub(crate) fn arrives(&mut self, segment: Segment) -> Vec<Segment> {
        let packet = Packet::new(PEER.0, LOCAL.0, segment);
        self.endpoint.handle(self.now, Input::Packet(packet));
        self.sent()
    }

    /// Delivers an acknowledgment of `acked` octets with SACK blocks, counted from the first octet of data;
    /// returns the segments sent in response.
    pub(crate) fn acked(&mut self, acked: u32, blocks: &[(u32, u32)]) -> Vec<Segment> {
        let mut ack = self.peer_segment(Flags::ACK, PEER_START, acked, 0);
        let block =
            |(left, right): &(u32, u32)| SackBlock { left: self.start + *left, right: self.start + *right };
        ack.options.sack = blocks.iter().map(block).collect();
        self.arrives(ack)
    }

    /// Delivers `length` octets of the peer's data, `offset` octets into its stream; returns the segments sent in response.
    pub(crate) fn data(&mut self, offset: u32, length: usize) -> Vec<Segment> {
        let data = self.peer_segment(Flags::ACK | Flags::PSH, PEER_START + offset, 0, length);
        self.arrives(data)
    }

    /// Returns the offset of each segment in the stream.
    pub(crate) fn offsets(&self, segments: &[Segment]) -> Vec<u32> {
        segments.iter().map(|segment| segment.seq.distance_from(self.start)).collect()
    }
}

/// Returns the configuration of the RFCs with exact clocks, so that times in a script are round.
pub(crate) fn rfc() -> Config {
    stack("rfc")
}

pub(crate) fn linux() -> Config {
    Config { clock_granularity: Duration::ZERO, timer_wheel: false, ..stack("linux-6.12") }
}

#[test]
fn lost_retransmission_is_found_by_later_data() {
    // RFC 8985 sections 3.1 and 6.2. Here the window is reduced at once, so that new data may follow the retransmission.
    let mut script = Script::connected(Config { prr: false, ..linux() }, 20);
    script.writes(100);
    script.at(30);
    script.writes(100);
    script.at(50);
    script.acked(0, &[(100, 200)]);
    script.at(60);
    script.writes(100);
    script.at(80);
    let resent = script.acked(0, &[(100, 300)]);
    assert_eq!(script.offsets(&resent), [0]);
    assert_eq!(script.endpoint.statistics().fast_retransmissions, 2);
}

#[test]
fn small_segments_are_retransmitted_as_one() {
    // RFC 9293 section 3.8.6 permits it; Linux does it.
    let mut script = Script::connected(linux(), 20);
    for _ in 0..3 {
        script.writes(100);
    }
    script.next_timer();
    let (_, resent) = script.next_timer();
    assert_eq!((script.offsets(&resent), resent[0].payload.len()), (vec![0], 300));
}

#[test]
fn initial_window_allows_ten_segments() {
    // RFC 6928 section 2; waiting data are sent in full segments.
    let mut script = Script::connected(linux(), 20);
    let sent: usize = (0..15).map(|_| script.writes(100).len()).sum();
    assert_eq!(sent, 10);
    script.at(40);
    let next = script.acked(1000, &[]);
    assert_eq!(next.iter().map(|segment| segment.payload.len()).collect::<Vec<_>>(), [500]);
}

#[test]
fn acks_above_a_gap_are_compressed_after_three() {
    // Linux since 4.18, against RFC 5681 section 4.2; there is no round-trip sample yet, so only the slack delays it.
    let mut script = Script::connected(linux(), 20);
    for offset in [100, 200, 300] {
        assert_eq!(script.data(offset, 100).len(), 1);
    }
    let arrived = script.now;
    assert!(script.data(400, 100).is_empty());
    assert!(script.data(500, 100).is_empty());
    let (_, acks) = script.next_timer();
    assert_eq!(script.now, arrived + Duration::from_micros(100));
    assert_eq!((acks.len(), acks[0].options.sack[0].right), (1, PEER_START + 600));
}

#[test]
fn retransmission_of_held_data_is_reported_by_dsack() {
    // RFC 2883 section 4.2: the segment's duplicate data.
    let mut script = Script::connected(linux(), 20);
    script.data(100, 100);
    script.data(300, 100);
    let acks = script.data(0, 300);
    let block = SackBlock { left: PEER_START + 100, right: PEER_START + 200 };
    assert_eq!((acks[0].ack, acks[0].options.sack.to_vec()), (PEER_START + 400, vec![block]));
}

#[test]
fn data_before_the_wakeup_are_read_at_once() {
    let mut script = Script::connected(linux(), 20);
    let arrived = script.now;
    script.data(0, 100);
    script.data(100, 100);
    assert_eq!(script.events, [Event::Connected]);
    script.next_timer();
    assert_eq!(script.now, arrived + linux().wakeup);
    assert_eq!(script.events.len(), 3);
}

#[test]
fn the_first_timeouts_of_a_syn_do_not_double() {
    // net.ipv4.tcp_syn_linear_timeouts = 4, against RFC 6298 section 5.5.
    let mut endpoint = Endpoint::connect(linux(), LOCAL, PEER, Seed(1).rng());
    endpoint.handle(Time::ZERO, Input::Command(Command::Connect));
    let mut now = Time::ZERO;
    let mut sent = Vec::new();
    while sent.len() < 8 {
        match endpoint.poll(now) {
            Output::Transmit(_) => sent.push(now.as_millis() / 1000),
            Output::Wait(deadline) => now = deadline.expect("a timer runs"),
            Output::Event(event) => panic!("{event:?}"),
        }
    }
    assert_eq!(sent, [0, 1, 2, 3, 4, 5, 7, 11]);
}

/// RFC 9293 section 3.8.6: unread data occupy the window; section 3.8.6.2.2: it opens again only by a useful amount.
#[test]
fn window_closes_without_reads_and_opens_after_them() {
    let config = Config { receive_buffer: ByteCount(4000), receive_buffer_max: ByteCount(4000), ..rfc() };
    let mut script = Script::connected(config, 20);
    let read = |script: &mut Script, reads| {
        script.endpoint.handle(script.now, Input::Command(Command::Read(reads)));
        script.sent()
    };
    assert!(read(&mut script, false).is_empty());
    script.data(0, 1000);
    assert_eq!(script.data(1000, 1000).pop().unwrap().window, 2000);
    script.data(2000, 1000);
    assert_eq!(script.data(3000, 1000).pop().unwrap().window, 0);
    assert_eq!(script.events, [Event::Connected], "nothing is read");
    let update = read(&mut script, true);
    assert_eq!((update.len(), update[0].window, update[0].payload.len()), (1, 4000, 0));
    assert_eq!(script.events.len(), 5, "and then all that waits");
}

/// RFC 9293 section 3.10.7.4, first: while the window is closed, no octet is acceptable, not even after a duplicate one.
#[test]
fn closed_window_drops_a_segment_that_begins_before_it() {
    let config = Config { receive_buffer: ByteCount(4000), receive_buffer_max: ByteCount(4000), ..rfc() };
    let mut script = Script::connected(config, 20);
    script.endpoint.handle(script.now, Input::Command(Command::Read(false)));
    for offset in (0..4000).step_by(1000) {
        script.data(offset, 1000);
    }
    let [answer] = &script.data(3999, 1000)[..] else { panic!("one acknowledgment") };
    let again = SackBlock { left: PEER_START + 3999, right: PEER_START + 4000 };
    assert_eq!((answer.ack, answer.window), (PEER_START + 4000, 0));
    assert_eq!(answer.options.sack[..], [again], "RFC 2883 section 4: what came twice is told");
}

#[test]
fn both_sides_close_at_once() {
    // RFC 9293 section 3.6, figure 13.
    let mut script = Script::connected(rfc(), 20);
    script.endpoint.handle(script.now, Input::Command(Command::Close));
    assert!(script.sent()[0].flags.contains(Flags::FIN));
    let fin = script.peer_segment(Flags::FIN | Flags::ACK, PEER_START, 0, 0);
    assert_eq!(script.arrives(fin).len(), 1);
    assert_eq!(script.endpoint.state(), State::Closing);
    let ack = script.peer_segment(Flags::ACK, PEER_START + 1, 1, 0);
    script.arrives(ack);
    assert_eq!(script.endpoint.state(), State::TimeWait);
    assert!(script.events.ends_with(&[Event::PeerClosed, Event::Closed]));
    script.next_timer();
    assert!(script.endpoint.is_closed());
}

#[test]
fn an_abort_resets_the_peer_at_snd_nxt() {
    // RFC 9293 section 3.10.5.
    let mut script = Script::connected(rfc(), 20);
    script.writes(100);
    script.endpoint.handle(script.now, Input::Command(Command::Abort));
    let sent = script.sent();
    assert_eq!((sent.len(), script.offsets(&sent)), (1, vec![100]));
    assert!(sent[0].flags.contains(Flags::RST));
    assert_eq!(script.events.last(), Some(&Event::Failed { reason: Failure::Aborted }));
    assert!(script.endpoint.is_closed() && script.deadline.is_none());
}

#[test]
fn data_beyond_the_window_are_acknowledged_and_dropped() {
    // RFC 9293 section 3.10.7.4, first.
    let mut script = Script::connected(rfc(), 20);
    let window = 65_535;
    let answers = script.data(window + 1, 100);
    assert_eq!((answers.len(), answers[0].ack, answers[0].options.sack.len()), (1, PEER_START, 0));
    let [kept] = &script.data(window - 100, 100)[..] else { panic!("one acknowledgment") };
    assert_eq!(kept.options.sack[0].right, PEER_START + window, "the last octet of the window is");
}

#[test]
fn window_without_sack_grows_with_acknowledged_data() {
    // RFC 5681 section 3.1: by SMSS for each segment in slow start.
    let config = Config { sack: false, recovery: hol_tcp::LossDetection::NewReno, ..linux() };
    let mut script = Script::connected(config, 20);
    assert_eq!(script.writes(14_600).len(), 10);
    script.at(40);
    script.acked(2 * 1460, &[]);
    assert_eq!(script.endpoint.cwnd(), 12);
}

#[test]
fn duplicate_ack_has_no_data_and_no_new_window() {
    // RFC 5681 section 2.
    let config = Config { sack: false, recovery: hol_tcp::LossDetection::NewReno, ..rfc() };
    let mut script = Script::connected(config, 20);
    (0..4).for_each(|_| drop(script.writes(100)));
    script.at(40);
    for offset in [0, 100, 200, 300] {
        script.data(offset, 100);
    }
    for window in [60_000, 61_000, 62_000, 63_000] {
        let ack = script.peer_segment(Flags::ACK, PEER_START + 400, 0, 0);
        script.arrives(Segment { window, ..ack });
    }
    assert_eq!(script.endpoint.statistics().fast_retransmissions, 0, "data, and windows that move");
    for _ in 0..2 {
        let ack = script.peer_segment(Flags::ACK, PEER_START + 400, 0, 0);
        script.arrives(Segment { window: 63_000, ..ack });
    }
    assert_eq!(script.endpoint.statistics().fast_retransmissions, 0, "two duplicates");
    let ack = script.peer_segment(Flags::ACK, PEER_START + 400, 0, 0);
    let resent = script.arrives(Segment { window: 63_000, ..ack });
    assert_eq!(script.offsets(&resent), [0], "the third");
}

#[test]
fn closed_window_is_probed_while_the_peer_answers() {
    // RFC 9293 section 3.8.6.1: the connection stays open, however long the window is closed.
    let mut script = Script::connected(Config { max_retries: 3, ..rfc() }, 100);
    let closed = |script: &Script| Segment { window: 0, ..script.peer_segment(Flags::ACK, PEER_START, 0, 0) };
    let ack = closed(&script);
    script.arrives(ack);
    assert!(script.writes(100).is_empty());
    for expected in [1100, 3100, 7100, 15_100, 31_100, 63_100, 123_100, 183_100] {
        let (at, probes) = script.next_timer();
        assert_eq!(
            (at, probes.len()),
            (expected, 1),
            "the interval doubles, whether or not the peer answers"
        );
        let ack = closed(&script);
        script.arrives(ack);
    }
    assert_eq!(script.acked(0, &[]).len(), 1, "the window is open again");
}

#[test]
fn duplicate_data_are_counted_and_read_once() {
    // RFC 9293 section 3.10.7.4, seventh: here the acknowledgment of the first copy is still delayed.
    let mut script = Script::connected(rfc(), 20);
    assert!(script.data(0, 100).is_empty());
    script.data(0, 100);
    script.data(100, 100);
    script.next_timer();
    let read = script.events.iter().filter(|event| matches!(event, Event::Received(_))).count();
    assert_eq!((read, script.endpoint.statistics().duplicates_received), (2, 1));
}

#[test]
fn spurious_retransmission_is_undone() {
    // RFC 3708 section 3, RFC 4015 section 3.2: the peer received every retransmitted segment twice.
    let mut script = Script::connected(Config { tlp: false, ..linux() }, 20);
    (0..4).for_each(|_| drop(script.writes(100)));
    script.at(40);
    let resent = script.acked(0, &[(100, 400)]);
    assert_eq!(script.offsets(&resent), [0]);
    script.acked(400, &[]);
    let reduced = script.endpoint.cwnd();
    assert!(reduced < 10 && script.endpoint.ssthresh() < 10, "{reduced}");
    script.acked(400, &[(0, 100)]);
    assert!(script.endpoint.cwnd() >= 10 && script.endpoint.ssthresh() > 10, "{}", script.endpoint.cwnd());
}

#[test]
fn more_dsacks_than_retransmissions_undo_nothing() {
    // RFC 3708 section 5: the network duplicates packets, so a report is no evidence.
    let mut script = Script::connected(Config { tlp: false, ..linux() }, 20);
    (0..4).for_each(|_| drop(script.writes(100)));
    script.at(40);
    script.acked(100, &[]);
    for _ in 0..3 {
        script.acked(100, &[(0, 100)]);
    }
    assert_eq!(script.acked(100, &[(0, 100), (200, 400)]).len(), 0, "the gap is not considered lost yet");
    let (_, resent) = script.next_timer();
    assert_eq!(script.offsets(&resent), [100]);
    script.acked(400, &[]);
    let reduced = script.endpoint.ssthresh();
    script.acked(400, &[(100, 200)]);
    assert_eq!(script.endpoint.ssthresh(), reduced, "the reduction is not undone");
}

#[test]
fn timeout_with_rack_spares_segments_younger_than_an_rtt() {
    // RFC 8985 section 6.3; without RACK every segment is considered lost (RFC 6298 section 5.4).
    for (recovery, expected) in
        [(hol_tcp::LossDetection::Rack, vec![]), (hol_tcp::LossDetection::Sack, vec![200])]
    {
        let mut script =
            Script::connected(Config { tlp: false, collapse_on_retransmit: false, recovery, ..linux() }, 100);
        script.writes(100);
        script.at(200);
        script.acked(100, &[]);
        script.writes(100);
        script.at(450);
        script.writes(100);
        let (at, resent) = script.next_timer();
        assert_eq!((at, script.offsets(&resent)), (500, vec![100]));
        script.at(540);
        let resent = script.acked(200, &[]);
        assert_eq!(script.offsets(&resent), expected, "{recovery:?}");
    }
}

#[test]
fn idle_time_is_counted_in_ticks() {
    // Linux: tcp_slow_start_after_idle_check compares tcp_jiffies32, so a pause counts from the tick in which it began.
    let config = Config { clock_granularity: Duration::from_millis(4), ..linux() };
    for (resumes, window) in [(263, 20), (264, 10)] {
        let mut script = Script::connected(config.clone(), 20);
        script.at(42);
        script.writes(14_600);
        script.at(62);
        script.acked(14_600, &[]);
        assert_eq!((script.endpoint.rto(), script.endpoint.cwnd()), (Duration::from_millis(220), 20));
        script.at(resumes);
        script.writes(100);
        assert_eq!(script.endpoint.cwnd(), window, "{resumes} ms");
    }
}

#[test]
fn idle_time_reduces_cwnd_to_the_restart_window() {
    // RFC 5681 section 4.1, RFC 2861 section 3: halved for each RTO of idle time.
    let mut script = Script::connected(linux(), 20);
    script.writes(14_600);
    script.at(40);
    script.acked(14_600, &[]);
    assert_eq!(script.endpoint.cwnd(), 20);
    script.at(200);
    script.writes(100);
    assert_eq!(script.endpoint.cwnd(), 20, "within an RTO");
    script.acked(14_700, &[]);
    script.at(2000);
    script.writes(100);
    assert_eq!(script.endpoint.cwnd(), 10);
}

#[test]
fn idle_endpoint_accepts_a_message_of_any_size() {
    let mut script = Script::connected(rfc(), 20);
    let larger = rfc().send_buffer.0 as usize + 1;
    assert!(script.endpoint.can_send(larger));
    script.writes(100);
    assert!(!script.endpoint.can_send(larger), "something is outstanding");
    assert!(script.endpoint.can_send(100));
}

#[test]
fn unusable_config_is_refused_by_key() {
    type Breaks = fn(&mut Config);
    let broken: [(&str, Breaks); 10] = [
        ("mss", |c| c.mss = 87),
        ("window_scale", |c| c.window_scale = 15),
        ("send_buffer", |c| c.send_buffer.0 = 0),
        ("receive_buffer", |c| c.receive_buffer.0 = u64::from(c.mss) - 1),
        ("timestamp_clock", |c| c.timestamp_clock = Duration::ZERO),
        ("delayed_ack_min", |c| c.delayed_ack_min = c.delayed_ack_max + Duration::from_nanos(1)),
        ("initial_window", |c| c.initial_window = 0),
        ("dupthresh", |c| c.dupthresh = 0),
        ("rto_min", |c| c.rto_min = c.rto_max + Duration::from_nanos(1)),
        ("rto_initial", |c| c.rto_initial = Duration::ZERO),
    ];
    for (key, breaks) in broken {
        let mut config = linux();
        assert_eq!(config.check(), Ok(()));
        breaks(&mut config);
        assert_eq!(config.check().map_err(|error| error.key), Err(key));
    }
    let min = Config { mss: 88, window_scale: 14, dupthresh: 1, initial_window: 1, ..linux() };
    assert_eq!(Config { send_buffer: hol_base::ByteCount(1), ..min }.check(), Ok(()));
}

#[test]
fn ack_of_a_segment_outside_the_window_is_ignored() {
    // RFC 9293 section 3.10.7.4, first: the segment is answered and dropped, on either side of the window.
    for outside in [PEER_START - 2, PEER_START + 65_536] {
        let mut script = Script::connected(rfc(), 20);
        script.writes(100);
        let all = rfc().send_buffer.0 as usize;
        let segment = script.peer_segment(Flags::ACK, outside, 100, 0);
        assert_eq!(script.arrives(segment).len(), 1);
        assert!(!script.endpoint.can_send(all), "100 octets are outstanding");
        script.acked(100, &[]);
        assert!(script.endpoint.can_send(all));
    }
}

/// No RFC specifies what happens to a connection whose address is removed: Linux keeps it, a phone's system destroys its socket.
#[test]
fn removed_address_ends_a_connection_only_if_configured() {
    for aborts in [false, true] {
        let config = Config { address_loss_aborts: aborts, ..stack("rfc") };
        let mut script = Script::connected(config, 100);
        assert_eq!(script.writes(100).len(), 1);
        script.events.clear();
        script.endpoint.handle(script.now, Input::AddressRemoved(PEER.0));
        script.endpoint.handle(script.now, Input::AddressRemoved(LOCAL.0));
        assert!(script.sent().is_empty());
        let failed = [Event::Failed { reason: Failure::AddressRemoved }];
        assert_eq!(script.events, failed[..usize::from(aborts)]);
        assert_eq!(script.deadline.is_none(), aborts);
    }
}

/// Linux: tcp_sndbuf_expand (2 × 10 frames of 2304 octets), and tcp_sendmsg_locked, which starts a block if
/// there is any room, and fills it: half of the peer's window, in whole segments (tcp_xmit_size_goal).
#[test]
fn send_buffer_takes_whole_blocks_and_grows_with_cwnd() {
    let mut script = Script::connected(stack("linux-6.12"), 20);
    let (mut written, mut parts) = (0, Vec::new());
    loop {
        let part = script.endpoint.accepts(1_000_000);
        if part == 0 {
            break;
        }
        script.writes(part);
        written += part;
        parts.push(part / 1460);
    }
    // A block, the room of the two segments that were sent with it, and of the next eight: more than 46,080 octets.
    assert_eq!((parts, written), (vec![22, 2, 8], 32 * 1460));
    script.at(40);
    assert_eq!(script.events, [Event::Connected]);
    script.acked(10 * 1460, &[]);
    assert_eq!(
        script.events.last(),
        Some(&Event::Writable),
        "the buffer has grown with the window to 92,160"
    );
}

/// Linux: tcp_rcv_established, whose fast path checks for room (tcp_data_snd_check) only if a segment
/// acknowledges data. A segment for which another page must be charged does not take that path: of 12 pages,
/// 21 segments in flight leave 1020 octets.
#[test]
fn data_without_new_acks_do_not_grow_the_send_buffer() {
    let mut script = Script::connected(Config { wakeup: Duration::ZERO, ..stack("linux-6.12") }, 20);
    let mut written = 0;
    for (ms, segments) in [(40, 10), (60, 20)] {
        script.writes(segments * 1460);
        written += segments as u32 * 1460;
        script.at(ms);
        script.acked(written, &[]);
    }
    let writes = std::iter::from_fn(|| {
        let accepted = script.endpoint.accepts(1460);
        (accepted > 0).then(|| script.writes(accepted).len())
    });
    assert_eq!(writes.sum::<usize>(), 21);
    let mut hears = |offset, length| {
        script.events.clear();
        let data = script.peer_segment(Flags::ACK | Flags::PSH, PEER_START + offset, written, length);
        script.arrives(data);
        script.events.contains(&Event::Writable)
    };
    assert_eq!([hears(0, 100), hears(100, 188), hears(288, 189)], [false, false, true]);
}

/// Linux: ep_send_events (fs/eventpoll.c) polls a socket once more after the application's turn, and tcp_poll
/// sets SOCK_NOSPACE, without which tcp_check_space does not let the buffer grow. No poll follows a write at
/// another time.
#[test]
fn short_send_buffer_grows_with_the_next_ack() {
    let room_after_write = |ms| {
        let mut script = Script::connected(Config { wakeup: Duration::ZERO, ..stack("linux-6.12") }, 20);
        let mut written = 0;
        for (ms, segments) in [(40, 10), (60, 20)] {
            script.writes(segments * 1460);
            written += segments as u32 * 1460;
            script.at(ms);
            script.acked(written, &[]);
        }
        script.data(0, 100);
        script.at(ms);
        script.writes(21 * 1460);
        script.at(80);
        let ack = script.peer_segment(Flags::ACK, PEER_START + 100, written + 1460, 0);
        script.arrives(ack);
        let parts = std::iter::from_fn(|| {
            let accepted = script.endpoint.accepts(1460);
            (accepted > 0).then(|| script.writes(accepted))
        });
        parts.count()
    };
    // 2 × 41 frames of 2304 octets, and 2 × 10 of them.
    let [in_turn, by_itself] = [60, 61].map(room_after_write);
    assert!(in_turn > 2 * by_itself, "{in_turn} and {by_itself} segments");
}

/// Linux: tcp_rcv_established, whose fast path for an acknowledgment does not call tcp_ack_snd_check, which
/// computes 40 ms again and finds that the timer is about to expire. Another window leads to the slow path.
#[test]
fn pure_ack_does_not_hasten_a_delayed_ack() {
    let quiet =
        Config { quickack_segments: 0, acknowledge_on_read: false, wakeup: Duration::ZERO, ..linux() };
    let answers = [65_535, 60_000].map(|window| {
        let mut script = Script::connected(quiet.clone(), 20);
        script.writes(100);
        script.at(30);
        assert!(script.data(0, 100).is_empty());
        script.at(66);
        let ack = script.peer_segment(Flags::ACK, PEER_START + 100, 100, 0);
        script.arrives(Segment { window, ..ack }).len()
    });
    assert_eq!(answers, [0, 1]);
}

/// Linux 6.12: tcp_compressed_ack_kick does not read the clock (tcp_mstamp_refresh); that of 7.3 does.
#[test]
fn compressed_ack_has_the_configured_timestamp() {
    for (reads_clock, later) in [(false, 0), (true, 5)] {
        let slow = Config {
            sack_compression_slack: Duration::from_millis(5),
            sack_compression_reads_clock: reads_clock,
            ..linux()
        };
        let mut script = Script::opened(slow, 20);
        let value = |acks: &[Segment]| acks[0].options.timestamps.map(|own| own.value);
        let first = [100, 200, 300].map(|offset| value(&script.data(offset, 100)))[0];
        assert!(first.is_some() && script.data(400, 100).is_empty());
        let (ms, acks) = script.next_timer();
        assert_eq!((ms, value(&acks)), (25, first.map(|first| first + later)));
    }
}

/// Linux: __tcp_ack_snd_check, and net.ipv4.tcp_comp_sack_rtt_percent of 7.3.
#[test]
fn compressed_ack_waits_for_a_share_of_the_rtt() {
    for (percent, expected) in [(5, 41), (33, 46), (100, 50)] {
        let config = Config {
            sack_compression_percent: percent,
            sack_compression_max: Duration::from_millis(10),
            sack_compression_slack: Duration::ZERO,
            quickack_segments: 0,
            wakeup: Duration::ZERO,
            ..linux()
        };
        let mut script = Script::opened(config, 20);
        let sent = script.writes(100).remove(0);
        script.at(40);
        let echo = sent.options.timestamps.expect("it has a timestamp").value;
        let mut full = script.peer_segment(Flags::ACK, PEER_START, 100, 1448);
        full.options.timestamps = Some(Timestamps { value: 2, echo });
        script.arrives(full);
        // Segments so small that they do not enlarge the window, which would hasten the acknowledgment.
        let acks = [2000, 2200, 2400, 2600].map(|offset| script.data(offset, 1).len());
        assert_eq!(acks, [1, 1, 1, 0]);
        let (ms, acks) = script.next_timer();
        assert_eq!((ms, acks.len()), (expected, 1), "{percent} %");
    }
}

/// RFC 7323 section 5.3, R1. Linux 7.3 drops it instead: tcp_disordered_ack_check.
#[test]
fn old_ack_is_answered_or_dropped_as_configured() {
    for answers in [true, false] {
        let config = Config { answer_old_ack: answers, quickack_segments: 0, ..linux() };
        let mut script = Script::opened(config, 20);
        script.writes(100);
        script.at(40);
        let stamped = |script: &Script, offset: u32, value: u32, length: usize| {
            let mut segment = script.peer_segment(Flags::ACK, PEER_START + offset, 100, length);
            segment.options.timestamps = Some(Timestamps { value, echo: 0 });
            segment
        };
        let data = stamped(&script, 0, 9, 100);
        script.arrives(data);
        let data = stamped(&script, 100, 9, 100);
        script.arrives(data);
        // A duplicate of the data is always answered.
        for (length, expected) in [(0, usize::from(answers)), (100, 1)] {
            let old = stamped(&script, 0, 5, length);
            assert_eq!(script.arrives(old).len(), expected, "{length} octets, {answers}");
        }
    }
}

/// Linux: tcp_gso_segment copies the header. By RFC 2883 section 4 a duplicate is reported once.
#[test]
fn all_segments_of_an_offloaded_block_report_a_duplicate() {
    let quiet = Config { quickack_segments: 0, acknowledge_on_read: false, ..stack("linux-6.12") };
    let mut script = Script::connected(quiet, 20);
    script.data(0, 100);
    assert!(script.data(50, 100).is_empty());
    let sent = script.writes(4 * 1448);
    let reports: Vec<_> = sent.iter().map(|segment| segment.options.sack.len()).collect();
    assert_eq!(reports, [1, 1, 0, 0]);
}

/// Linux: recv() takes all available data, up to the size of its buffer, and their memory is free then.
#[test]
fn data_read_before_reading_pauses_free_the_buffer() {
    let mut script = Script::connected(Config { wakeup: Duration::ZERO, ..linux() }, 20);
    let reads = |script: &mut Script, reads| {
        script.endpoint.handle(script.now, Input::Command(Command::Read(reads)));
    };
    reads(&mut script, false);
    (0..3).for_each(|number| drop(script.data(1000 * number, 1000)));
    assert_eq!(script.events, [Event::Connected]);
    reads(&mut script, true);
    while !matches!(script.endpoint.poll(script.now), Output::Event(Event::Received(_))) {}
    reads(&mut script, false);
    script.sent();
    let received = script.events.iter().filter(|event| matches!(event, Event::Received(_)));
    assert_eq!(received.count(), 2, "the others have been read with the first");
    script.data(3000, 1000);
    assert!(matches!(script.events.last(), Some(Event::Received(last)) if last.payload.len() == 1000));
    assert_eq!(script.events.len(), 3, "what comes later has not");
}

/// Linux: tcp_tso_autosize (two segments at 20 ms), and __tcp_transmit_skb, which sets PSH on a block of several segments.
#[test]
fn blocks_end_with_psh_and_small_writes_share_one() {
    let mut script = Script::connected(stack("linux-6.12"), 20);
    let sent = script.writes(5 * 1460);
    let pushed: Vec<_> = sent.iter().map(|segment| segment.flags.contains(Flags::PSH)).collect();
    assert_eq!(pushed, [false, true, false, true, true]);
}

/// Delivers `segments` at `ms` to a listening endpoint; returns the segments that it sends in response, and its next deadline.
fn deliver_to_listener(
    endpoint: &mut Endpoint,
    ms: u64,
    segments: &[Segment],
) -> (Vec<Segment>, Option<Time>) {
    let now = Time::from_millis(ms);
    for segment in segments {
        endpoint.handle(now, Input::Packet(Packet::new(PEER.0, LOCAL.0, segment.clone())));
    }
    let mut sent = Vec::new();
    loop {
        match endpoint.poll(now) {
            Output::Transmit(Packet { transport: Transport::Tcp(segment), .. }) => sent.push(*segment),
            Output::Transmit(packet) => panic!("not TCP: {packet:?}"),
            Output::Event(_) => {}
            Output::Wait(deadline) => return (sent, deadline),
        }
    }
}

fn syn(flags: Flags) -> Segment {
    let options = Options { mss: Some(1460), sack_permitted: true, ..Options::default() };
    Segment {
        source_port: PEER.1,
        destination_port: LOCAL.1,
        seq: PEER_START - 1,
        ack: SeqNum(0),
        flags,
        window: 65535,
        options,
        payload: Bytes::new(),
        stamp: hol_wire::SendTimes::default(),
    }
}

/// Linux: tcp_check_req restarts the SYN-ACK's timer when it answers a retransmitted SYN.
#[test]
fn repeated_syn_restarts_the_syn_ack_timer() {
    let mut endpoint = Endpoint::listen(linux(), LOCAL, Seed(1).rng());
    let (first, timer) = deliver_to_listener(&mut endpoint, 0, &[syn(Flags::SYN)]);
    assert_eq!((first.len(), timer), (1, Some(Time::from_millis(1000))));
    let (again, timer) = deliver_to_listener(&mut endpoint, 990, &[syn(Flags::SYN)]);
    assert_eq!((again.len(), timer), (1, Some(Time::from_millis(1990))));
}

/// RFC 3168 section 6.1.1: no ECN after a SYN without the offer, from either end. Linux keeps ECN once it is negotiated.
#[test]
fn rfc_disables_ecn_after_a_syn_without_offer() {
    let offer = Flags(Flags::SYN.0 | Flags::ECE.0 | Flags::CWR.0);
    for (name, agrees) in [("rfc", false), ("linux-6.12", true)] {
        let config = Config { ecn: true, ..stack(name) };
        let mut endpoint = Endpoint::listen(config, LOCAL, Seed(1).rng());
        let (first, _) = deliver_to_listener(&mut endpoint, 0, &[syn(offer)]);
        assert!(first[0].flags.contains(Flags::ECE), "{name}");
        let (again, _) = deliver_to_listener(&mut endpoint, 10, &[syn(Flags::SYN)]);
        assert_eq!(again[0].flags.contains(Flags::ECE), agrees, "{name}");
    }
}

/// Linux: tcp_init_transfer. One loss of the SYN has no effect, RFC 6928 section 2.
#[test]
fn initial_window_is_one_segment_after_two_syn_retransmissions() {
    for (lost, window) in [(1, 10), (2, 1)] {
        let config = Config { timestamps: false, ..linux() };
        let mut script = Script {
            now: Time::ZERO,
            endpoint: Endpoint::connect(config, LOCAL, PEER, Seed(1).rng()),
            start: SeqNum::default(),
            events: Vec::new(),
            deadline: None,
        };
        script.endpoint.handle(Time::ZERO, Input::Command(Command::Connect));
        script.start = script.sent()[0].seq.next();
        for _ in 0..lost {
            assert_eq!(script.next_timer().1.len(), 1, "the SYN again");
        }
        let answer = Segment { ack: script.start, ..syn(Flags::SYN | Flags::ACK) };
        script.arrives(answer);
        assert_eq!(script.endpoint.cwnd(), window, "{lost} lost");
    }
}

/// RFC 6582 section 4; Linux: tcp_is_non_sack_preventing_reopen. The acknowledgment of the recovery point
/// itself allows new data, but no retransmission.
#[test]
fn recovery_without_sack_ends_above_the_recovery_point() {
    let config = Config { sack: false, segmentation_offload: false, ..linux() };
    let mut script = Script::connected(config, 20);
    let mut sent = script.writes(30 * 1460);
    script.at(40);
    sent.extend(script.acked(1460, &[]));
    sent.extend([0; 2].into_iter().flat_map(|_| script.acked(1460, &[])).collect::<Vec<_>>());
    let end = script.offsets(&sent).into_iter().max().unwrap() + 1460;
    let recovery: Vec<_> = [0; 8].into_iter().flat_map(|_| script.acked(1460, &[])).collect();
    assert_eq!(script.offsets(&recovery)[0], 1460, "the hole is filled");
    assert!(script.offsets(&recovery).contains(&end), "and new data follows");
    script.at(60);
    let more = script.acked(end, &[]);
    assert!(!script.offsets(&more).contains(&end), "the new data are not retransmitted");
}

/// RFC 9293 section 3.10.7.4, fifth; Linux's tcp_ack does not answer.
#[test]
fn rfc_answers_an_ack_of_unsent_data() {
    for (name, answers) in [("rfc", 1), ("linux-6.12", 0)] {
        let mut script = Script::connected(stack(name), 20);
        assert_eq!(script.acked(1, &[]).len(), answers, "{name}");
    }
}

/// Linux: tcp_synack_rtt_meas takes no round-trip sample from a retransmitted SYN-ACK.
#[test]
fn retransmitted_syn_ack_gives_no_rtt_sample() {
    let config = Config { timestamps: false, ..linux() };
    let mut endpoint = Endpoint::listen(config, LOCAL, Seed(1).rng());
    let (first, _) = deliver_to_listener(&mut endpoint, 0, &[syn(Flags::SYN)]);
    deliver_to_listener(&mut endpoint, 900, &[syn(Flags::SYN)]);
    let ack = Segment { seq: PEER_START, ack: first[0].seq.next(), ..syn(Flags::ACK) };
    deliver_to_listener(&mut endpoint, 1000, &[ack]);
    assert_eq!((endpoint.state(), endpoint.srtt()), (State::Established, None));
}
