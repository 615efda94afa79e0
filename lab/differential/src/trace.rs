//! The packets that the hosts of a run sent.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::fmt;

use hol_base::{Duration, Time};
use hol_network::TapEvent;
use hol_scenario::{Packet, PacketEvent, PacketObserver};
use hol_stack::ProtocolKind;
use hol_wire::udp::Datagram;
use hol_wire::{Ecn, ParseError, Transport};
use similar::{Algorithm, DiffTag, capture_diff_slices};

use crate::relative_numbers::RelativeNumbers;

/// The largest difference between two times that count as equal.
pub(crate) const TIME_TOLERANCE: Duration = Duration::from_micros(100);
/// If only one of two runs has a packet this shortly before its end, the difference is ignored, because the other
/// run may have ended just before the packet.
const NEAR_END: Duration = Duration::from_millis(1);

/// Number of octets at the start of a message; workloads write the message number there.
const NUMBERED_OCTETS: usize = 8;
/// Number of octets at the start of a QUIC datagram in which any two datagrams differ: the packet number and the first
/// encrypted octets.
const QUIC_HEAD_OCTETS: usize = 32;
/// The last word in the text of a packet whose ECN field is CE.
const CE_MARK_SUFFIX: &str = "(CE)";

/// A packet that a host sent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SentPacket {
    /// The time since the start of the run.
    pub time: Time,
    /// The interface that sent the packet, as in `client:1`.
    pub interface: String,
    /// The packet as text, with relative sequence numbers.
    pub packet: String,
    /// Whether the packet arrived, as far as the run shows.
    pub outcome: PacketOutcome,
}

/// What happened to a packet after it was sent. This shows the decisions of queues even if the endpoints do not react
/// to them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum PacketOutcome {
    /// The packet was in flight when the run ended.
    #[default]
    Unknown,
    /// The packet arrived at this time.
    Arrived(Time),
    /// The packet arrived at this time, and the network had set its ECN field to CE.
    Marked(Time),
    /// The packet did not arrive, but a packet that was sent later did.
    Lost,
}

/// The packets of a run in the order of transmission.
#[derive(Debug, Default)]
pub struct Trace {
    /// The sent packets, in order.
    sent: Vec<SentPacket>,
    end: Option<Time>,
    numbers: RelativeNumbers,
    /// Indices in `sent` of the packets that have not arrived yet, by the text of the packet.
    in_flight: BTreeMap<String, VecDeque<usize>>,
    /// Whether the content of datagrams is encrypted, so only their lengths are compared.
    is_encrypted: bool,
    /// Octets of all packets of the trace. A packet is counted when it is sent and again when it arrives.
    octets: usize,
}

impl PacketObserver for Trace {
    fn observe(&mut self, event: &PacketEvent<'_>) {
        if !matches!(event.event, TapEvent::Sent | TapEvent::Received) {
            return;
        }
        let parsed = match &event.packet {
            Packet::Value(packet) => Ok((*packet).clone()),
            Packet::Octets(octets) => hol_wire::Packet::parse(octets.to_vec().into()),
        };
        match parsed {
            Ok(packet) if event.event == TapEvent::Received => {
                self.octets += packet.length();
                self.record_arrival(event.time, packet);
            }
            Ok(packet) => {
                self.octets += packet.length();
                let text = self.describe(&packet);
                let name = arrival_key(packet);
                self.in_flight.entry(name).or_default().push_back(self.sent.len());
                self.record_sent(event, text);
            }
            // Hop-by-hop options and ICMPv6 (neighbour discovery, MLD) are skipped, because the model has neither.
            Err(ParseError::Protocol(0 | 58)) => {}
            Err(_) if event.event == TapEvent::Received => {}
            Err(problem) => {
                self.record_sent(event, format!("{} octets: {problem}", event.packet.octets().len()));
            }
        }
    }
}

/// Returns the first `octets` octets of a UDP datagram's payload as text. They distinguish datagrams of equal
/// length, because workloads number their messages there. Empty for TCP and SCTP, whose packets have sequence
/// numbers.
fn content(packet: &hol_wire::Packet, octets: usize) -> String {
    let Transport::Udp(datagram) = &packet.transport else { return String::new() };
    let head = datagram.payload.iter().take(octets).map(|octet| format!("{octet:02x}"));
    format!(" [{}]", head.collect::<String>())
}

/// Returns the text by which an arriving packet is recognised. It lacks the ECN field, which the network may have
/// changed.
fn arrival_key(packet: hol_wire::Packet) -> String {
    let unmarked = hol_wire::Packet { ecn: Ecn::NotCapable, ..packet };
    format!("{unmarked}{}", content(&unmarked, QUIC_HEAD_OCTETS))
}

/// The first packet that differs between two runs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Difference {
    /// The packet of the first run; `None` if this run sends no further packet.
    pub first: Option<SentPacket>,
    /// The packet of the second run; `None` if this run sends no further packet.
    pub second: Option<SentPacket>,
}

impl Trace {
    /// Creates an empty trace of a run over a transport of this kind.
    pub(crate) fn of_kind(kind: ProtocolKind) -> Self {
        Self { is_encrypted: kind == ProtocolKind::Quic, ..Self::default() }
    }

    /// Returns the number of octets of all packets. A packet is counted when it is sent and again when it arrives.
    pub(crate) fn octets(&self) -> usize {
        self.octets
    }

    fn describe(&mut self, packet: &hol_wire::Packet) -> String {
        let octets = match &packet.transport {
            Transport::Quic(datagram) => datagram.length(),
            Transport::Udp(datagram) if self.is_encrypted => datagram.length(),
            _ => return self.numbers.describe(packet) + &content(packet, NUMBERED_OCTETS),
        };
        let mark = if packet.ecn == Ecn::Congested { format!(" {CE_MARK_SUFFIX}") } else { String::new() };
        format!("datagram, length {}{mark}", octets - Datagram::HEADER_LENGTH)
    }

    fn record_sent(&mut self, event: &PacketEvent<'_>, text: String) {
        // The interface identifies sender and receiver, so the text need not.
        let packet = match text.split_once(": ") {
            Some((_, rest)) => rest.to_owned(),
            None => text,
        };
        let interface = event.point.name.to_owned();
        self.sent.push(SentPacket { time: event.time, interface, packet, outcome: PacketOutcome::Unknown });
    }

    /// Records that a packet arrived; it is taken to be the earliest packet in flight that has the same text.
    fn record_arrival(&mut self, time: Time, packet: hol_wire::Packet) {
        let is_marked = packet.ecn == Ecn::Congested;
        let waiting = self.in_flight.get_mut(&arrival_key(packet));
        let Some(sent) = waiting.and_then(VecDeque::pop_front).map(|index| &mut self.sent[index]) else {
            return;
        };
        let was_marked = sent.packet.ends_with(CE_MARK_SUFFIX);
        sent.outcome =
            if is_marked && !was_marked { PacketOutcome::Marked(time) } else { PacketOutcome::Arrived(time) };
    }

    /// Removes the packets sent at the time `end` or later, because a world may end a run before its connections have
    /// been closed. Then decides which of the remaining packets were lost.
    pub fn remove_after(&mut self, end: Time) {
        self.sent.retain(|sent| sent.time < end);
        self.end = Some(end);
        let mut overtaken = BTreeSet::new();
        for sent in self.sent.iter_mut().rev() {
            match sent.outcome {
                PacketOutcome::Arrived(time) | PacketOutcome::Marked(time) if time < end => {
                    overtaken.insert(sent.interface.clone());
                }
                PacketOutcome::Unknown if overtaken.contains(&sent.interface) => {
                    sent.outcome = PacketOutcome::Lost;
                }
                _ => sent.outcome = PacketOutcome::Unknown,
            }
        }
    }

    /// Returns whether one run ended before it could send the packet of the difference: only the other run has the
    /// packet, and that shortly before its end.
    fn may_be_cut_off(&self, difference: &Difference) -> bool {
        let alone = difference.first.is_none() || difference.second.is_none();
        alone && self.end.is_some_and(|end| difference.time() + NEAR_END >= end)
    }

    fn packets_of_interface<'t>(&'t self, interface: &'t str) -> impl Iterator<Item = &'t SentPacket> {
        self.sent.iter().filter(move |sent| sent.interface == interface)
    }

    /// Returns the first packet that differs in content, outcome or time. Each interface is compared
    /// separately, because packets that two hosts send at the same time have no order.
    pub fn first_difference(&self, other: &Self) -> Option<Difference> {
        self.first_difference_by(other, |a, b| a.matches(b) && a.is_in_time(b))
    }

    /// Returns the first packet that differs in content or outcome. Times are not compared, because in one of the
    /// worlds computation takes time.
    pub fn first_difference_in_order(&self, other: &Self) -> Option<Difference> {
        self.first_difference_by(other, SentPacket::matches)
    }

    fn first_difference_by(
        &self,
        other: &Self,
        is_alike: impl Fn(&SentPacket, &SentPacket) -> bool,
    ) -> Option<Difference> {
        let all = self.sent.iter().chain(&other.sent);
        let interfaces: BTreeSet<&str> = all.map(|sent| sent.interface.as_str()).collect();
        let differences = interfaces.into_iter().filter_map(|interface| {
            let (mut first, mut second) =
                (self.packets_of_interface(interface), other.packets_of_interface(interface));
            loop {
                let difference = match (first.next(), second.next()) {
                    (None, None) => return None,
                    (Some(a), Some(b)) if is_alike(a, b) => continue,
                    (a, b) => Difference { first: a.cloned(), second: b.cloned() },
                };
                return Some(difference).filter(|difference| !self.may_be_cut_off(difference));
            }
        });
        differences.min_by_key(Difference::time)
    }
}

impl SentPacket {
    /// Returns whether two packets have the same content and, if both are known, the same outcome.
    fn matches(&self, other: &Self) -> bool {
        self.packet == other.packet && self.outcome.matches(other.outcome)
    }

    /// Returns whether the times of two packets differ by at most the tolerance.
    fn is_in_time(&self, other: &Self) -> bool {
        self.time.as_nanos().abs_diff(other.time.as_nanos()) <= TIME_TOLERANCE.as_nanos()
    }
}

impl PacketOutcome {
    fn matches(self, other: Self) -> bool {
        let is_unknown = self == Self::Unknown || other == Self::Unknown;
        is_unknown || std::mem::discriminant(&self) == std::mem::discriminant(&other)
    }
}

impl fmt::Display for PacketOutcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Unknown => "in flight",
            Self::Arrived(_) => "arrived",
            Self::Marked(_) => "marked",
            Self::Lost => "lost",
        })
    }
}

impl Difference {
    /// Returns when the earlier one of the two packets was sent.
    pub(crate) fn time(&self) -> Time {
        self.first.iter().chain(&self.second).map(|sent| sent.time).min().unwrap_or_default()
    }

    /// Returns a short description of the kind of difference, such as the field that differs.
    pub fn category(&self) -> String {
        match (&self.first, &self.second) {
            (Some(a), Some(b)) if !a.outcome.matches(b.outcome) && a.packet == b.packet => {
                format!("{} for {}, {}", a.outcome, b.outcome, kind(&a.packet))
            }
            (Some(a), Some(b)) if a.packet == b.packet => format!("time of {}", kind(&a.packet)),
            (Some(a), Some(b)) if kind(&a.packet) == kind(&b.packet) => {
                format!("{} of {}", differing_word(&a.packet, &b.packet), kind(&a.packet))
            }
            (Some(a), Some(b)) => format!("{} for {}", kind(&a.packet), kind(&b.packet)),
            (Some(a), None) => format!("{} for nothing", kind(&a.packet)),
            (None, Some(b)) => format!("nothing for {}", kind(&b.packet)),
            (None, None) => "nothing".to_owned(),
        }
    }
}

/// Returns the type of a packet: its TCP flags, or its SCTP chunks.
fn kind(packet: &str) -> String {
    if let Some(flags) = packet.strip_prefix("Flags [").and_then(|rest| rest.split(']').next()) {
        let data = if packet.ends_with("length 0") { "" } else { " with data" };
        return format!("[{flags}]{data}");
    }
    let chunks = chunk_names(packet);
    if chunks.is_empty() { packet.split([' ', ',']).take(1).collect() } else { chunks.join(" + ") }
}

/// Returns the names of the chunks in the text of an SCTP packet, which numbers them: `sctp (1) [SACK] … (2)
/// [DATA] (B) …`.
fn chunk_names(packet: &str) -> Vec<&str> {
    let numbered = (1..).map(|number| format!(" ({number}) ["));
    let names = numbered.map_while(|head| {
        let (_, rest) = packet.split_once(&head)?;
        rest.split(']').next()
    });
    names.collect()
}

/// Returns the name of the first field in which two packets differ, or that only one of them has.
fn differing_word(first: &str, second: &str) -> String {
    let words = |packet: &'_ str| -> Vec<String> {
        let words = packet.split([' ', ',']).map(|word| word.trim_matches(['[', ']', ':', '(', ')']));
        words.filter(|word| !word.is_empty()).map(str::to_owned).collect()
    };
    let is_name = |word: &&String| word.chars().any(char::is_alphabetic);
    let (first, second) = (words(first), words(second));
    let longer = if first.len() > second.len() { &first } else { &second };
    let same = first.iter().zip(&second).take_while(|(a, b)| a == b).count();
    let field = longer.get(same).filter(is_name).filter(|_| first.len() != second.len());
    field.or(longer[..same].iter().rev().find(is_name)).cloned().unwrap_or_default()
}

/// A row of two traces that are shown side by side.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TraceRow<'t> {
    /// Both runs sent the packet at the same time.
    Same(&'t SentPacket, &'t SentPacket),
    /// Both runs sent the packet at different times.
    DifferentTime(&'t SentPacket, &'t SentPacket),
    /// Both runs sent the packet with different windows.
    DifferentWindow(&'t SentPacket, &'t SentPacket),
    /// Both runs sent the packet, but it was lost or marked in one of them.
    DifferentOutcome(&'t SentPacket, &'t SentPacket),
    /// Only the first run sent the packet.
    First(&'t SentPacket),
    /// Only the second run sent the packet.
    Second(&'t SentPacket),
}

/// Aligns two traces; the rows are in the order of the first trace.
pub fn align<'t>(first: &'t Trace, second: &'t Trace) -> Vec<TraceRow<'t>> {
    let words = |trace: &'t Trace| -> Vec<(&'t str, String)> {
        trace.sent.iter().map(|sent| (sent.interface.as_str(), without_window(&sent.packet))).collect()
    };
    let mut lines = Vec::new();
    for operation in capture_diff_slices(Algorithm::Myers, &words(first), &words(second)) {
        let (tag, left, right) = operation.as_tag_tuple();
        let (left, right) = (&first.sent[left], &second.sent[right]);
        if tag != DiffTag::Equal {
            lines.extend(left.iter().map(TraceRow::First));
            lines.extend(right.iter().map(TraceRow::Second));
            continue;
        }
        for (a, b) in left.iter().zip(right) {
            lines.push(match (a.packet == b.packet, a.outcome.matches(b.outcome), a.is_in_time(b)) {
                (false, ..) => TraceRow::DifferentWindow(a, b),
                (true, false, _) => TraceRow::DifferentOutcome(a, b),
                (true, true, true) => TraceRow::Same(a, b),
                (true, true, false) => TraceRow::DifferentTime(a, b),
            });
        }
    }
    lines
}

/// Returns the text of a packet without its window, to find packets of two runs that differ only in the window.
fn without_window(packet: &str) -> String {
    let mut words: Vec<&str> = packet.split(' ').collect();
    for index in 1..words.len() {
        if ["win", "[a_rwnd"].contains(&words[index - 1]) {
            words[index] = "";
        }
    }
    words.join(" ")
}

/// Formats the times of both runs in ms, the sender and the packet. The first character is `=` for equal
/// packets, `~` for different times, `!` for different windows, `x` for a packet that was lost or marked in
/// one run, and `-` or `+` for a packet of only the first or the second run.
impl fmt::Display for TraceRow<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ms = |sent: &SentPacket| format!("{:.3}", sent.time.as_secs_f64() * 1e3);
        let (mark, first, second, sent) = match self {
            Self::Same(a, b) => ('=', ms(a), ms(b), a),
            Self::DifferentTime(a, b) => ('~', ms(a), ms(b), a),
            Self::DifferentWindow(a, b) => ('!', ms(a), ms(b), a),
            Self::DifferentOutcome(a, b) => ('x', ms(a), ms(b), a),
            Self::First(a) => ('-', ms(a), String::new(), a),
            Self::Second(b) => ('+', String::new(), ms(b), b),
        };
        write!(f, "{mark} {first:>12} {second:>12}  {:<9} {}", sent.interface, sent.packet)?;
        match self {
            Self::DifferentWindow(_, b) => write!(f, "\n{:40}{}", "", b.packet),
            Self::DifferentOutcome(a, b) => write!(f, " ({} | {})", a.outcome, b.outcome),
            Self::Same(a, _) | Self::DifferentTime(a, _)
                if matches!(a.outcome, PacketOutcome::Lost | PacketOutcome::Marked(_)) =>
            {
                write!(f, " ({})", a.outcome)
            }
            _ => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn trace(packets: &[(u64, &str, &str)]) -> Trace {
        let sent = |(micros, interface, packet): &(u64, &str, &str)| SentPacket {
            time: Time::from_nanos(*micros * 1000),
            interface: (*interface).to_owned(),
            packet: (*packet).to_owned(),
            outcome: PacketOutcome::Unknown,
        };
        Trace { sent: packets.iter().map(sent).collect(), ..Trace::default() }
    }

    #[test]
    fn simultaneous_packets_of_two_hosts_have_no_order() {
        let first = trace(&[(0, "client:1", "a"), (5, "server:1", "b")]);
        let second = trace(&[(5, "server:1", "b"), (7, "client:1", "a")]);
        assert_eq!(first.first_difference(&second), None);
    }

    /// A queue that dropped or marked a different packet was found only if the endpoints reacted to it, so
    /// never over UDP.
    #[test]
    fn a_packet_that_is_lost_or_marked_in_one_run_alone_is_a_difference() {
        let datagram = |number: u8| {
            let payload = vec![number; 100].into();
            let datagram = hol_wire::udp::Datagram {
                source_port: 1,
                destination_port: 2,
                payload,
                stamp: Default::default(),
            };
            hol_wire::Packet::new(hol_wire::ipv4(10, 0, 1, 1), hol_wire::ipv4(10, 0, 1, 2), datagram)
        };
        let run = |lost: u8, marked: u8| {
            let mut trace = Trace::default();
            for number in 0..9 {
                let ecn = if number == marked { Ecn::Congested } else { Ecn::Capable };
                let sent = hol_wire::Packet { ecn: Ecn::Capable, ..datagram(number) };
                let mut events = vec![(TapEvent::Sent, "client:1", sent.clone())];
                if number != lost && number < 7 {
                    events.push((TapEvent::Received, "server:1", hol_wire::Packet { ecn, ..sent }));
                }
                for (event, name, packet) in events {
                    let point = hol_network::TapPoint { interface: 0, name };
                    let (time, packet) = (Time::from_millis(number.into()), Packet::Value(&packet));
                    trace.observe(&PacketEvent { time, point, event, packet });
                }
            }
            trace.remove_after(Time::from_millis(10));
            trace
        };
        let outcomes: Vec<String> = run(3, 5).sent.iter().map(|sent| sent.outcome.to_string()).collect();
        let due = "arrived arrived arrived lost arrived marked arrived in flight in flight";
        assert_eq!(outcomes.join(" "), due);
        let difference = |lost, marked| run(3, 5).first_difference(&run(lost, marked));
        assert_eq!(difference(3, 5), None);
        assert_eq!(difference(2, 5).unwrap().category(), "arrived for lost, UDP");
        assert_eq!(difference(3, 6).unwrap().category(), "marked for arrived, UDP");
        let (run, other) = (run(3, 5), run(4, 5));
        let lines: Vec<String> = align(&run, &other).iter().map(TraceRow::to_string).collect();
        assert!(lines[3].starts_with('x') && lines[3].ends_with("(lost | arrived)"), "{lines:?}");
        assert!(lines[5].starts_with('=') && lines[5].ends_with("(marked)"), "{lines:?}");
    }

    #[test]
    fn the_earliest_difference_is_the_first_and_has_a_family() {
        let ack = "Flags [.], seq 1, ack 1449, win 501, length 0";
        let first = trace(&[(0, "client:1", "Flags [P.], seq 1:1449, length 1448"), (9000, "server:1", ack)]);
        let wider = trace(&[
            (0, "client:1", "Flags [P.], seq 1:1449, length 1448"),
            (9000, "server:1", "Flags [.], seq 1, ack 1449, win 524, length 0"),
            (9500, "client:1", "Flags [F.], seq 1449, length 0"),
        ]);
        let marks: String = align(&first, &wider).iter().map(|line| line.to_string().remove(0)).collect();
        assert_eq!(marks, "=!+");
        assert_eq!(first.first_difference(&wider).unwrap().category(), "win of [.]");
        let late = trace(&[(0, "client:1", "Flags [P.], seq 1:1449, length 1448"), (9200, "server:1", ack)]);
        assert_eq!(first.first_difference(&late).unwrap().category(), "time of [.]");
        assert_eq!(first.first_difference_in_order(&late), None);
        assert_eq!(first.first_difference_in_order(&wider).unwrap().category(), "win of [.]");
        assert_eq!(late.first_difference(&trace(&[])).unwrap().category(), "[P.] with data for nothing");
    }

    #[test]
    fn aligned_rows_show_which_end_sent_each_packet() {
        let first = trace(&[(0, "client:1", "a"), (2000, "server:1", "b")]);
        let second = trace(&[(0, "client:1", "a"), (1000, "client:1", "c"), (2500, "server:1", "b")]);
        let marks: String = align(&first, &second).iter().map(|line| line.to_string().remove(0)).collect();
        assert_eq!(marks, "=+~");
    }
}
