//! The packets that the hosts of a run sent.

use std::collections::BTreeSet;
use std::fmt;

use hol_base::{Duration, Time};
use hol_network::TapEvent;
use hol_scenario::{Packet, PacketEvent, PacketObserver};
use hol_wire::ParseError;
use similar::{Algorithm, DiffTag, capture_diff_slices};

use crate::relative::Relative;

/// Two packets are sent at the same time if their times differ by at most this.
const SAME_TIME: Duration = Duration::from_micros(100);
/// A packet this close to the end of a run may come after the end in the other world.
const NEAR_END: Duration = Duration::from_millis(1);

/// A packet that a host sent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SentPacket {
    /// The time since the start of the run.
    pub time: Time,
    /// The interface that sent it, as in `client:1`.
    pub interface: String,
    /// The packet as text, with relative sequence numbers.
    pub packet: String,
}

/// The packets of a run in the order of transmission.
#[derive(Debug, Default)]
pub struct Trace {
    sent: Vec<SentPacket>,
    end: Option<Time>,
    numbers: Relative,
}

impl PacketObserver for Trace {
    fn observe(&mut self, sighting: &PacketEvent<'_>) {
        if sighting.fate != TapEvent::Sent {
            return;
        }
        let packet = match &sighting.packet {
            Packet::Value(packet) => self.numbers.describe(packet),
            Packet::Octets(octets) => match hol_wire::Packet::parse(octets.to_vec().into()) {
                Ok(packet) => self.numbers.describe(&packet),
                // Hop-by-hop options and ICMPv6 (neighbour discovery, MLD) are skipped, because the model has neither.
                Err(ParseError::Protocol(0 | 58)) => return,
                Err(problem) => format!("{} octets: {problem}", octets.len()),
            },
        };
        // The interface tells sender and receiver.
        let packet = match packet.split_once(": ") {
            Some((_, rest)) => rest.to_owned(),
            None => packet,
        };
        self.sent.push(SentPacket { time: sighting.time, interface: sighting.point.name.to_owned(), packet });
    }
}

/// The first packet in which two runs differ.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Difference {
    /// The packet of the first run; `None` if it sends no more.
    pub first: Option<SentPacket>,
    /// The packet of the second run; `None` if it sends no more.
    pub second: Option<SentPacket>,
}

impl Trace {
    /// Removes the packets after `end`: the closing of connections is not compared, because a world may cut it off.
    pub fn end(&mut self, end: Time) {
        self.sent.retain(|sent| sent.time < end);
        self.end = Some(end);
    }

    /// Returns whether one run ends where the other sends its last packets.
    fn is_over(&self, difference: &Difference) -> bool {
        let alone = difference.first.is_none() || difference.second.is_none();
        alone && self.end.is_some_and(|end| difference.time() + NEAR_END >= end)
    }

    fn of<'t>(&'t self, interface: &'t str) -> impl Iterator<Item = &'t SentPacket> {
        self.sent.iter().filter(move |sent| sent.interface == interface)
    }

    /// Returns the first packet that the other run sends otherwise or at another time. Each interface is compared by itself, because
    /// packets that two hosts send at the same time have no order.
    pub fn first_difference(&self, other: &Self) -> Option<Difference> {
        self.first_unlike(other, |a, b| a.packet == b.packet && a.is_in_time(b))
    }

    /// Returns the first packet that the other run sends otherwise, whatever the times: for a world in which computing takes time.
    pub fn first_difference_in_order(&self, other: &Self) -> Option<Difference> {
        self.first_unlike(other, |a, b| a.packet == b.packet)
    }

    fn first_unlike(
        &self,
        other: &Self,
        is_alike: impl Fn(&SentPacket, &SentPacket) -> bool,
    ) -> Option<Difference> {
        let all = self.sent.iter().chain(&other.sent);
        let interfaces: BTreeSet<&str> = all.map(|sent| sent.interface.as_str()).collect();
        let differences = interfaces.into_iter().filter_map(|interface| {
            let (mut first, mut second) = (self.of(interface), other.of(interface));
            loop {
                let difference = match (first.next(), second.next()) {
                    (None, None) => return None,
                    (Some(a), Some(b)) if is_alike(a, b) => continue,
                    (a, b) => Difference { first: a.cloned(), second: b.cloned() },
                };
                return Some(difference).filter(|difference| !self.is_over(difference));
            }
        });
        differences.min_by_key(Difference::time)
    }
}

impl SentPacket {
    /// Returns whether two packets are sent at about the same time.
    fn is_in_time(&self, other: &Self) -> bool {
        self.time.as_nanos().abs_diff(other.time.as_nanos()) <= SAME_TIME.as_nanos()
    }
}

impl Difference {
    /// Returns when the earlier of the two was sent.
    pub(crate) fn time(&self) -> Time {
        self.first.iter().chain(&self.second).map(|sent| sent.time).min().unwrap_or_default()
    }

    /// Returns a short description that is the same for similar differences.
    pub fn family(&self) -> String {
        match (&self.first, &self.second) {
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

/// Returns the type of a packet: the flags of TCP, or the chunks of SCTP.
fn kind(packet: &str) -> String {
    if let Some(flags) = packet.strip_prefix("Flags [").and_then(|rest| rest.split(']').next()) {
        let data = if packet.ends_with("length 0") { "" } else { " with data" };
        return format!("[{flags}]{data}");
    }
    let chunks = chunk_names(packet);
    if chunks.is_empty() { packet.split(' ').take(1).collect() } else { chunks.join(" + ") }
}

/// Returns the names of the chunks, which are numbered in the text: `sctp (1) [SACK] … (2) [DATA] (B) …`.
fn chunk_names(packet: &str) -> Vec<&str> {
    let numbered = (1..).map(|number| format!(" ({number}) ["));
    let names = numbered.map_while(|head| {
        let (_, rest) = packet.split_once(&head)?;
        rest.split(']').next()
    });
    names.collect()
}

/// Returns the name of the first field that differs or that only one packet has.
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

/// A row of two traces side by side.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Line<'t> {
    /// Both runs sent the packet at the same time.
    Same(&'t SentPacket, &'t SentPacket),
    /// Both runs sent the packet at different times.
    AnotherTime(&'t SentPacket, &'t SentPacket),
    /// Both runs sent the packet with different windows.
    AnotherWindow(&'t SentPacket, &'t SentPacket),
    /// Only the first run sent the packet.
    First(&'t SentPacket),
    /// Only the second run sent the packet.
    Second(&'t SentPacket),
}

/// Aligns two traces; packets are in the order of the first.
pub fn beside<'t>(first: &'t Trace, second: &'t Trace) -> Vec<Line<'t>> {
    let words = |trace: &'t Trace| -> Vec<(&'t str, String)> {
        trace.sent.iter().map(|sent| (sent.interface.as_str(), without_window(&sent.packet))).collect()
    };
    let mut lines = Vec::new();
    for operation in capture_diff_slices(Algorithm::Myers, &words(first), &words(second)) {
        let (tag, left, right) = operation.as_tag_tuple();
        let (left, right) = (&first.sent[left], &second.sent[right]);
        if tag != DiffTag::Equal {
            lines.extend(left.iter().map(Line::First));
            lines.extend(right.iter().map(Line::Second));
            continue;
        }
        for (a, b) in left.iter().zip(right) {
            lines.push(match (a.packet == b.packet, a.is_in_time(b)) {
                (true, true) => Line::Same(a, b),
                (true, false) => Line::AnotherTime(a, b),
                (false, _) => Line::AnotherWindow(a, b),
            });
        }
    }
    lines
}

/// Returns the packet without its window, to recognise packets that differ only in it.
fn without_window(packet: &str) -> String {
    let mut words: Vec<&str> = packet.split(' ').collect();
    for index in 1..words.len() {
        if ["win", "[a_rwnd"].contains(&words[index - 1]) {
            words[index] = "";
        }
    }
    words.join(" ")
}

/// Prints both times in ms, the sender and the packet; `=`: equal, `~`: different times, `!`: different windows.
impl fmt::Display for Line<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ms = |sent: &SentPacket| format!("{:.3}", sent.time.as_secs_f64() * 1e3);
        let (mark, first, second, sent) = match self {
            Self::Same(a, b) => ('=', ms(a), ms(b), a),
            Self::AnotherTime(a, b) => ('~', ms(a), ms(b), a),
            Self::AnotherWindow(a, b) => ('!', ms(a), ms(b), a),
            Self::First(a) => ('-', ms(a), String::new(), a),
            Self::Second(b) => ('+', String::new(), ms(b), b),
        };
        write!(f, "{mark} {first:>12} {second:>12}  {:<9} {}", sent.interface, sent.packet)?;
        match self {
            Self::AnotherWindow(_, b) => write!(f, "\n{:40}{}", "", b.packet),
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
        };
        Trace { sent: packets.iter().map(sent).collect(), ..Trace::default() }
    }

    #[test]
    fn what_two_hosts_send_at_once_has_no_order() {
        let first = trace(&[(0, "client:1", "a"), (5, "server:1", "b")]);
        let second = trace(&[(5, "server:1", "b"), (7, "client:1", "a")]);
        assert_eq!(first.first_difference(&second), None);
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
        let marks: String = beside(&first, &wider).iter().map(|line| line.to_string().remove(0)).collect();
        assert_eq!(marks, "=!+");
        assert_eq!(first.first_difference(&wider).unwrap().family(), "win of [.]");
        let late = trace(&[(0, "client:1", "Flags [P.], seq 1:1449, length 1448"), (9200, "server:1", ack)]);
        assert_eq!(first.first_difference(&late).unwrap().family(), "time of [.]");
        assert_eq!(first.first_difference_in_order(&late), None);
        assert_eq!(first.first_difference_in_order(&wider).unwrap().family(), "win of [.]");
        assert_eq!(late.first_difference(&trace(&[])).unwrap().family(), "[P.] with data for nothing");
    }

    #[test]
    fn lines_beside_each_other_say_who_sent_what() {
        let first = trace(&[(0, "client:1", "a"), (2000, "server:1", "b")]);
        let second = trace(&[(0, "client:1", "a"), (1000, "client:1", "c"), (2500, "server:1", "b")]);
        let marks: String = beside(&first, &second).iter().map(|line| line.to_string().remove(0)).collect();
        assert_eq!(marks, "=+~");
    }
}
