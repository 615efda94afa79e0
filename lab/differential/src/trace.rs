//! What the hosts of a run sent.

use std::collections::BTreeSet;
use std::fmt;

use hol_base::{Duration, Time};
use hol_network::Fate;
use hol_scenario::{Packet, Sighting, Witness};
use similar::{Algorithm, DiffTag, capture_diff_slices};

use crate::relative::Relative;

/// Two packets within this time are sent at the same time.
const SAME_TIME: Duration = Duration::from_micros(100);

/// A packet that a host sent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sent {
    /// When, since the start of the run.
    pub time: Time,
    /// From which interface, as in `client:1`.
    pub interface: String,
    /// The packet, with relative numbers.
    pub packet: String,
}

/// The packets of a run, in the order in which they were sent.
#[derive(Debug, Default)]
pub struct Trace {
    sent: Vec<Sent>,
    numbers: Relative,
}

impl Witness for Trace {
    fn see(&mut self, sighting: &Sighting<'_>) {
        if sighting.fate != Fate::Sent {
            return;
        }
        let packet = match &sighting.packet {
            Packet::Value(packet) => self.numbers.describe(packet),
            Packet::Octets(octets) => match hol_wire::Packet::parse(octets.to_vec().into()) {
                Ok(packet) => self.numbers.describe(&packet),
                Err(problem) => format!("{} octets: {problem}", octets.len()),
            },
        };
        // Who sends to whom the interface tells.
        let packet = match packet.split_once(": ") {
            Some((_, rest)) => rest.to_owned(),
            None => packet,
        };
        self.sent.push(Sent { time: sighting.time, interface: sighting.point.name.to_owned(), packet });
    }
}

/// The first packet in which two runs differ.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Difference {
    /// What the first run sends there; `None` if it sends nothing more.
    pub first: Option<Sent>,
    /// What the second run sends there.
    pub second: Option<Sent>,
}

impl Trace {
    /// The packets.
    pub fn packets(&self) -> &[Sent] {
        &self.sent
    }

    /// Forgets what was sent from `end` on: how connections are closed is not compared, for a world may cut them off.
    pub fn end(&mut self, end: Time) {
        self.sent.retain(|sent| sent.time < end);
    }

    fn of<'t>(&'t self, interface: &'t str) -> impl Iterator<Item = &'t Sent> {
        self.sent.iter().filter(move |sent| sent.interface == interface)
    }

    /// The first packet that another run sends otherwise, or at another time. Each interface is compared by itself: what two hosts
    /// send at the same time has no order.
    pub fn first_difference(&self, other: &Self) -> Option<Difference> {
        let all = self.sent.iter().chain(&other.sent);
        let interfaces: BTreeSet<&str> = all.map(|sent| sent.interface.as_str()).collect();
        let differences = interfaces.into_iter().filter_map(|interface| {
            let (mut first, mut second) = (self.of(interface), other.of(interface));
            loop {
                match (first.next(), second.next()) {
                    (None, None) => return None,
                    (Some(a), Some(b)) if a.is_like(b) => {}
                    (a, b) => return Some(Difference { first: a.cloned(), second: b.cloned() }),
                }
            }
        });
        differences.min_by_key(Difference::time)
    }
}

impl Sent {
    fn is_like(&self, other: &Self) -> bool {
        self.packet == other.packet && self.is_as_late_as(other)
    }

    fn is_as_late_as(&self, other: &Self) -> bool {
        self.time.max(other.time).since(self.time.min(other.time)) <= SAME_TIME
    }
}

impl Difference {
    fn time(&self) -> Time {
        self.first.iter().chain(&self.second).map(|sent| sent.time).min().unwrap_or_default()
    }

    /// What differs, in a few words that are the same for differences of one kind.
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

/// What sort of packet it is: the flags of TCP, the chunks of SCTP.
fn kind(packet: &str) -> String {
    if let Some(flags) = packet.strip_prefix("Flags [").and_then(|rest| rest.split(']').next()) {
        let data = if packet.ends_with("length 0") { "" } else { " with data" };
        return format!("[{flags}]{data}");
    }
    let mut chunks: Vec<&str> = packet.split(" (").filter_map(|chunk| chunk.split('[').nth(1)).collect();
    chunks.iter_mut().for_each(|chunk| *chunk = chunk.split(']').next().unwrap_or_default());
    if chunks.is_empty() {
        packet.split_whitespace().take(2).collect::<Vec<_>>().join(" ")
    } else {
        chunks.join(" + ")
    }
}

/// The word before the first that differs: what the value is of.
fn differing_word(first: &str, second: &str) -> String {
    let mut before = "";
    for (a, b) in first.split_whitespace().zip(second.split_whitespace()) {
        if a != b {
            break;
        }
        before = a;
    }
    before.trim_matches(['[', ']', ':', '(', ')', ',']).to_owned()
}

/// A line of two traces beside each other.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Line<'t> {
    /// Both sent it; its window may differ.
    Both(&'t Sent, &'t Sent),
    /// The first alone did.
    First(&'t Sent),
    /// The second alone did.
    Second(&'t Sent),
}

/// Two traces beside each other; packets in the order of the first.
pub fn beside<'t>(first: &'t Trace, second: &'t Trace) -> Vec<Line<'t>> {
    let words = |trace: &'t Trace| -> Vec<(&'t str, String)> {
        trace.sent.iter().map(|sent| (sent.interface.as_str(), without_window(&sent.packet))).collect()
    };
    let mut lines = Vec::new();
    for operation in capture_diff_slices(Algorithm::Myers, &words(first), &words(second)) {
        let (tag, left, right) = operation.as_tag_tuple();
        let (left, right) = (&first.sent[left], &second.sent[right]);
        if tag == DiffTag::Equal {
            lines.extend(left.iter().zip(right).map(|(a, b)| Line::Both(a, b)));
        } else {
            lines.extend(left.iter().map(Line::First));
            lines.extend(right.iter().map(Line::Second));
        }
    }
    lines
}

/// The packet but for its window: where that alone differs it is still the same packet.
fn without_window(packet: &str) -> String {
    let mut words: Vec<&str> = packet.split(' ').collect();
    for index in 1..words.len() {
        if ["win", "[a_rwnd"].contains(&words[index - 1]) {
            words[index] = "";
        }
    }
    words.join(" ")
}

impl Line<'_> {
    /// Whether both sent it at the same time.
    pub fn is_equal(&self) -> bool {
        matches!(self, Self::Both(a, b) if a.is_like(b))
    }
}

/// The times of both in ms, who sent it, and the packet: `=` where both agree, `~` where the times differ, `!` where the windows do.
impl fmt::Display for Line<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ms = |sent: &Sent| format!("{:.3}", sent.time.as_secs_f64() * 1e3);
        let (mark, first, second, sent) = match self {
            Self::Both(a, b) if a.packet != b.packet => ('!', ms(a), ms(b), a),
            Self::Both(a, b) => (if self.is_equal() { '=' } else { '~' }, ms(a), ms(b), a),
            Self::First(a) => ('-', ms(a), String::new(), a),
            Self::Second(b) => ('+', String::new(), ms(b), b),
        };
        write!(f, "{mark} {first:>12} {second:>12}  {:<9} {}", sent.interface, sent.packet)?;
        match self {
            Self::Both(a, b) if a.packet != b.packet => write!(f, "\n{:40}{}", "", b.packet),
            _ => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn trace(packets: &[(u64, &str, &str)]) -> Trace {
        let sent = |(micros, interface, packet): &(u64, &str, &str)| Sent {
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
