//! The data sent by one side, as captured at one point, and which packets were lost, reordered or delivered.
//!
//! A packet lost before the capture point leaves a hole that is filled late; one lost after it is retransmitted without having been
//! acknowledged. At an end host only one of the two occurs.

use std::collections::BTreeMap;
use std::ops::Range;

use smallvec::SmallVec;

use super::capture_clock::measured_delay;
use super::parsed_packet::SequenceFields;
use crate::sequence_positions::SequencePositions;

/// Maximum number of packets in flight with which an acknowledgement is compared. The comparison marks all of them
/// except those sent later as overtaken, and overtaken packets are not compared again, so few packets of a genuine
/// capture remain.
const MAX_SEARCH: usize = 8192;

/// One direction of a conversation. Times are in ns.
#[derive(Debug, Default)]
pub(crate) struct SenderTrace {
    positions: SequencePositions,
    /// The end of the captured data.
    frontier: Option<u64>,
    /// The end of the data that the peer has received without a gap; `None` before it is known.
    cumulative_ack: Option<u64>,
    /// Data that was captured but not acknowledged: end and index in `packets`, by start.
    in_flight: BTreeMap<u64, (u64, usize)>,
    /// Packets in flight that no later packet is known to have overtaken: index in `packets`, by path and start.
    not_overtaken: BTreeMap<(usize, u64), usize>,
    /// Missing data: end and index in `packets`, by start.
    holes: BTreeMap<u64, (u64, usize)>,
    /// Packets considered lost: index in `packets`, by start of the data.
    presumed_lost: BTreeMap<u64, usize>,
    /// Retransmitted packets by start of the data, oldest first, until an acknowledgement covers them.
    retransmitted: BTreeMap<u64, SmallVec<[RetransmittedPacket; 1]>>,
    packets: Vec<SentPacket>,
    /// Whether an acknowledgement was captured.
    pub is_answered: bool,
    /// Acknowledged data, and the time at which the acknowledgement was captured.
    pub acknowledged: Vec<Delivery>,
    /// The shortest delay of acknowledged data in ns, by path.
    shortest_ack_delays: BTreeMap<usize, u64>,
    /// Data that arrived at the capture point, and when.
    pub arrived: Vec<Delivery>,
    /// The times until acknowledgements that the receiver did not delay.
    pub prompt_acks: Vec<AckDelay>,
}

/// Data that one side has sent in a packet.
#[derive(Debug, Clone, Copy)]
pub(crate) struct SentData<'d> {
    /// First number and count of each range.
    pub data: &'d [(u32, u32)],
    /// Octets of the IP packet.
    pub octets: u32,
    /// The delay of the packet in ns, if the echo of its timestamp shows it.
    pub delay: Option<u64>,
    /// The timestamp of the packet.
    pub timestamp: Option<u32>,
    /// The index of the path.
    pub path: usize,
}

/// A packet whose data was retransmitted before it was acknowledged.
#[derive(Debug, Clone, Copy)]
struct RetransmittedPacket {
    /// Index in `packets`.
    packet: usize,
    /// The timestamp of the retransmission.
    timestamp: Option<u32>,
}

/// A packet with data, or a hole in the sequence.
#[derive(Debug)]
struct SentPacket {
    at: u64,
    octets: u32,
    path: usize,
    state: PacketState,
    /// Whether the packet is a retransmission.
    is_repeated: bool,
    /// Whether nothing was in flight when the packet was captured.
    is_quiet: bool,
    /// The first sign that a later packet had overtaken this one, if there was any.
    overtaken: Option<Overtaking>,
}

/// The time at which it became known that a packet was overtaken, and the time of the event before that.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Overtaking {
    at: u64,
    before: u64,
}

/// What is known about the fate of a packet.
#[derive(Debug, PartialEq, Eq)]
enum PacketState {
    Unknown,
    Arrived,
    /// The packet arrived after packets sent later.
    Reordered(ReorderingDelayBounds),
    Lost,
    /// Unknown: the receiver has the data, or the capture missed the packet.
    Unobserved,
    /// A hole in the sequence: the indices of the packets that filled it.
    Hole(Vec<usize>),
}

/// The time from data to an acknowledgement.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct AckDelay {
    /// The delay in ns.
    pub delay: u64,
    /// Whether nothing else was in flight in this direction.
    pub is_alone: bool,
    /// Whether the acknowledgement carries no data, so that it did not wait for an application.
    pub is_by_kernel: bool,
    /// The index of the path of the data.
    pub path: usize,
}

/// Bounds of the delay in ns of a packet that others have overtaken. The packet was due between the packets
/// before and after the hole.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ReorderingDelayBounds {
    /// The lower bound, in ns.
    pub min: u64,
    /// The upper bound, in ns.
    pub max: u64,
}

/// A delivery of octets, and its delay if known.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Delivery {
    /// When the octets were delivered, in ns.
    pub at: u64,
    /// Octets of the IP packet.
    pub octets: u32,
    /// The delay in ns, if known.
    pub delay: Option<u64>,
    /// The index of the path.
    pub path: usize,
}

/// The shortest times in ns between a hole and its retransmission; data that fills the hole earlier was
/// reordered. `None` if unknown.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct RepairTimes {
    /// The time for data on the path of the hole. If it is `None`, all such data counts as reordered.
    pub same_path: Option<u64>,
    /// The time for data on another path, which may be slower. If it is `None`, no such data counts as reordered.
    pub other_path: Option<u64>,
}

/// What happened to a packet, and when it was captured.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum PacketOutcome {
    Arrived,
    /// The packet arrived after a packet that was sent later.
    Reordered(ReorderingDelayBounds),
    Lost,
}

impl SenderTrace {
    /// Sets the first sequence number.
    pub fn set_first_number(&mut self, number: u32) {
        self.positions.set_origin(number);
        self.frontier.get_or_insert(0);
        self.cumulative_ack.get_or_insert(0);
    }

    /// Returns whether `number` is the first sequence number of this side.
    pub fn begins_with(&self, number: Option<u32>) -> bool {
        number.is_some() && self.positions.origin() == number
    }

    /// Returns whether the first sequence number is known and differs from `number`.
    pub fn begins_differently(&self, number: Option<u32>) -> bool {
        number.zip(self.positions.origin()).is_some_and(|(number, first)| number != first)
    }

    /// Returns the shortest time from data on a path to an acknowledgement, in ns.
    pub fn shortest_ack_delay(&self, path: usize) -> Option<u64> {
        self.shortest_ack_delays.get(&path).copied()
    }

    /// Handles a packet with data.
    pub fn handle_data(&mut self, at: u64, sent: SentData<'_>) {
        let SentData { data, octets, delay, timestamp, path } = sent;
        let is_quiet = self.in_flight.is_empty() && self.holes.is_empty();
        let (mut is_repeated, mut is_new) = (false, false);
        let (mut ranges, mut filled) = (SmallVec::<[Range<u64>; 2]>::new(), Vec::new());
        for (first, count) in data {
            let Ok(begin) = u64::try_from(self.positions.position(*first)) else { continue };
            let range = begin..begin + u64::from(*count);
            let frontier = *self.frontier.get_or_insert(begin);
            let (is_resent, fills) = (self.mark_lost(&range, timestamp), self.fill(&range));
            is_new |= is_resent || !fills.is_empty() || range.end > frontier;
            is_repeated |= is_resent;
            filled.extend(fills);
            if range.start > frontier {
                let before = self.arrived.last().map_or(at, |arrival| arrival.at);
                self.packets.push(SentPacket::of_hole(at, before, path));
                self.holes.insert(frontier, (range.start, self.packets.len() - 1));
            }
            self.frontier = Some(frontier.max(range.end));
            ranges.push(range);
        }
        let own = self.packets.len();
        let state = if is_new { PacketState::Unknown } else { PacketState::Unobserved };
        if is_new {
            self.not_overtaken.extend(ranges.iter().map(|range| ((path, range.start), own)));
            self.in_flight.extend(ranges.into_iter().map(|range| (range.start, (range.end, own))));
        }
        for hole in filled {
            if let PacketState::Hole(fillers) = &mut self.packets[hole].state {
                fillers.push(own);
            }
        }
        self.packets.push(SentPacket { at, octets, path, state, is_repeated, is_quiet, overtaken: None });
        self.arrived.push(Delivery { at, octets, delay, path });
    }

    /// Returns whether all of this data is beyond the data captured so far.
    pub fn is_new(&mut self, data: &[(u32, u32)]) -> bool {
        let frontier = self.frontier.unwrap_or(0) as i64;
        !data.is_empty() && data.iter().all(|(first, _)| self.positions.position(*first) >= frontier)
    }

    /// Marks packets in flight with data of a range as lost, because the range is retransmitted in a packet with this timestamp;
    /// returns whether there were any.
    fn mark_lost(&mut self, range: &Range<u64>, timestamp: Option<u32>) -> bool {
        let mut any = false;
        while let Some((begin, pass)) = self.take_in_flight(range) {
            if self.packets[pass].state == PacketState::Unknown {
                self.packets[pass].state = PacketState::Lost;
                self.presumed_lost.insert(begin, pass);
                self.retransmitted
                    .entry(begin)
                    .or_default()
                    .push(RetransmittedPacket { packet: pass, timestamp });
            }
            any = true;
        }
        any
    }

    /// Removes the last packet with data in a range from `in_flight`; returns the start of its data and its index in
    /// `packets`.
    fn take_in_flight(&mut self, range: &Range<u64>) -> Option<(u64, usize)> {
        let (&begin, &(end, pass)) = self.in_flight.range(..range.end).next_back()?;
        if end <= range.start {
            return None;
        }
        self.in_flight.remove(&begin);
        self.not_overtaken.remove(&(self.packets[pass].path, begin));
        Some((begin, pass))
    }

    /// Fills the holes within a range; the parts of these holes outside the range remain. Returns the indices of the
    /// holes in `packets`.
    fn fill(&mut self, range: &Range<u64>) -> Vec<usize> {
        let mut filled = Vec::new();
        while let Some((&begin, &(end, hole))) = self.holes.range(..range.end).next_back() {
            if end <= range.start {
                break;
            }
            self.holes.remove(&begin);
            if begin < range.start {
                self.holes.insert(begin, (range.start, hole));
            }
            if end > range.end {
                self.holes.insert(range.end, (end, hole));
            }
            filled.push(hole);
            if begin < range.start {
                break;
            }
        }
        filled
    }

    /// Handles an acknowledgement, with its blocks and duplicates. If `answers` is set, new data comes with it as an
    /// answer, so the receiver did not delay it. A side that sends requests may send the next one at any time, so its
    /// data shows nothing.
    pub fn acknowledge(&mut self, at: u64, fields: &SequenceFields, answers: bool) {
        let Some(next) =
            fields.acknowledged.and_then(|next| u64::try_from(self.positions.position(next)).ok())
        else {
            return;
        };
        self.is_answered = true;
        for (first, _) in &fields.duplicates {
            self.mark_delivered_twice(*first);
        }
        if let Some((_, echo)) = fields.timestamps {
            self.mark_spuriously_retransmitted(next, echo);
        }
        self.cumulative_ack = self.cumulative_ack.max(Some(next));
        let before = self.acknowledged.last().map_or(at, |delivery| delivery.at);
        let known = self.acknowledged.len();
        // Data that waited for a retransmission arrived earlier than the acknowledgement suggests.
        let is_repair = self.in_flight.range(..next).any(|(_, (_, pass))| self.packets[*pass].is_repeated);
        let mut newest = self.deliver(0..next, at);
        self.frontier = self.frontier.max(Some(next));
        self.forget_holes(next);
        let mut is_early = false;
        for (left, right) in &fields.blocks {
            let [Ok(left), Ok(right)] =
                [*left, *right].map(|number| u64::try_from(self.positions.position(number)))
            else {
                continue;
            };
            let latest = self.deliver(left..right, at);
            if let Some(latest) = latest {
                self.mark_overtaken(left, latest, Overtaking { at, before });
            }
            is_early |= latest.is_some();
            newest = newest.max(latest);
        }
        // The receiver acknowledges data after a gap at once (RFC 5681 section 4.2), and every second packet (RFC 9293 section 3.8.6.3).
        let is_prompt = is_early || answers || self.acknowledged.len() - known >= 2;
        if let Some(pass) = newest.filter(|_| is_prompt && !is_repair).map(|newest| &self.packets[newest])
            && let Some(delay) = pass.delay(at)
        {
            self.prompt_acks.push(AckDelay {
                delay,
                path: pass.path,
                is_alone: pass.is_quiet,
                is_by_kernel: fields.data.is_empty(),
            });
        }
    }

    /// Removes holes below the acknowledged number: the capture missed those packets.
    fn forget_holes(&mut self, next: u64) {
        while let Some((&begin, &(end, hole))) = self.holes.first_key_value() {
            if begin >= next {
                break;
            }
            self.holes.remove(&begin);
            if end > next {
                self.holes.insert(next, (end, hole));
            }
            self.packets[hole].state = PacketState::Unobserved;
        }
    }

    /// Removes the packets that carry data of `range` from those in flight, and marks them as delivered at the time `at` unless their state
    /// is already known. Returns the index of the marked packet that was sent last.
    fn deliver(&mut self, range: Range<u64>, at: u64) -> Option<usize> {
        let mut latest = None;
        while let Some((_, index)) = self.take_in_flight(&range) {
            let pass = &mut self.packets[index];
            if pass.state != PacketState::Unknown {
                continue;
            }
            latest = latest.max(Some(index));
            let delay = pass.delay(at);
            pass.state =
                pass.overtaken.map_or(PacketState::Arrived, |since| PacketState::Reordered(since.lag(at)));
            self.acknowledged.push(Delivery { at, octets: pass.octets, delay, path: pass.path });
            if let Some(delay) = delay {
                let shortest = self.shortest_ack_delays.entry(pass.path).or_insert(delay);
                *shortest = delay.min(*shortest);
            }
        }
        latest
    }

    /// Marks packets in flight below `place` that were sent before `latest` on its path as overtaken.
    fn mark_overtaken(&mut self, place: u64, latest: usize, since: Overtaking) {
        let path = self.packets[latest].path;
        let before_place = self.not_overtaken.range((path, 0)..(path, place));
        let overtaken: SmallVec<[(u64, usize); 4]> = before_place
            .take(MAX_SEARCH)
            .filter(|(_, index)| **index < latest)
            .map(|((_, begin), index)| (*begin, *index))
            .collect();
        for (begin, index) in overtaken {
            self.not_overtaken.remove(&(path, begin));
            self.packets[index].overtaken = Some(since);
        }
    }

    /// Marks a packet that was considered lost as delivered: a duplicate means that both copies arrived. RFC 2883
    fn mark_delivered_twice(&mut self, number: u32) {
        let Ok(place) = u64::try_from(self.positions.position(number)) else { return };
        if let Some(pass) = self.presumed_lost.remove(&place) {
            let pass = &mut self.packets[pass];
            // The time of its arrival is unknown.
            pass.state = PacketState::Arrived;
        }
    }

    /// Marks packets as delivered whose retransmission turns out to be spurious: an acknowledgement of everything below
    /// `next` echoes a timestamp older than that of the retransmission (RFC 3522 section 3.2). It echoes the timestamp
    /// of the first data after the previous acknowledgement (RFC 7323 section 4.3), so it shows nothing about
    /// retransmissions of later data.
    fn mark_spuriously_retransmitted(&mut self, next: u64, echo: u32) {
        while let Some(copies) = self.retransmitted.first_entry().filter(|entry| *entry.key() < next) {
            if self.cumulative_ack != Some(*copies.key()) {
                copies.remove();
                continue;
            }
            let is_spurious = |copy: &RetransmittedPacket| {
                copy.timestamp.is_some_and(|timestamp| (echo.wrapping_sub(timestamp) as i32) < 0)
            };
            let mut unneeded = copies.remove().into_iter().skip_while(|copy| !is_spurious(copy));
            if let Some(arrived) = unneeded.next() {
                self.packets[arrived.packet].state = PacketState::Arrived;
            }
            // What happened to later copies is unknown.
            unneeded.for_each(|copy| self.packets[copy.packet].state = PacketState::Unobserved);
        }
    }

    /// Returns what happened to each packet on a path, in the order in which the packets were captured or
    /// should have been. A packet that fills a hole before the time of a retransmission was reordered; other
    /// holes are losses.
    pub fn outcomes(&self, repair_times: RepairTimes, path: usize) -> Vec<(u64, PacketOutcome)> {
        let mut outcomes = Vec::new();
        let mut came_late = vec![false; self.packets.len()];
        let of_path = |index: usize| self.packets[index].path == path;
        for (index, pass) in self.packets.iter().enumerate().filter(|(index, _)| of_path(*index)) {
            match &pass.state {
                PacketState::Hole(fillers) => {
                    for filler in fillers {
                        let since = pass.overtaken.expect("a hole records the packet that revealed it");
                        let lag = since.lag(self.packets[*filler].at);
                        if of_path(*filler) {
                            let is_late = repair_times.same_path.is_some_and(|time| lag.min < time);
                            came_late[*filler] |= is_late;
                            let outcome =
                                if is_late { PacketOutcome::Reordered(lag) } else { PacketOutcome::Lost };
                            outcomes.push((pass.at, outcome));
                        } else if repair_times.other_path.is_some_and(|time| lag.min >= time) {
                            // RFC 9260 section 6.4: a retransmission after a timeout uses another path.
                            outcomes.push((pass.at, PacketOutcome::Lost));
                        }
                    }
                }
                _ if came_late[index] => {}
                PacketState::Arrived => outcomes.push((pass.at, PacketOutcome::Arrived)),
                PacketState::Reordered(lag) => outcomes.push((pass.at, PacketOutcome::Reordered(*lag))),
                PacketState::Lost => outcomes.push((pass.at, PacketOutcome::Lost)),
                // A one-way capture has no acknowledgements.
                PacketState::Unknown if !self.is_answered => outcomes.push((pass.at, PacketOutcome::Arrived)),
                PacketState::Unknown | PacketState::Unobserved => {}
            }
        }
        outcomes
    }
}

impl SentPacket {
    fn of_hole(at: u64, before: u64, path: usize) -> Self {
        let (state, overtaken) = (PacketState::Hole(Vec::new()), Some(Overtaking { at, before }));
        Self { at, octets: 0, path, state, is_repeated: false, is_quiet: false, overtaken }
    }

    /// Returns the time until an acknowledgement at `at`, if it is an RTT sample: not after a retransmission (RFC 6298 section 3) or
    /// behind a hole, and not over a step of the clock.
    fn delay(&self, at: u64) -> Option<u64> {
        measured_delay(self.at, at).filter(|_| !self.is_repeated && self.overtaken.is_none())
    }
}

impl Overtaking {
    const fn lag(self, at: u64) -> ReorderingDelayBounds {
        ReorderingDelayBounds { min: at.saturating_sub(self.at), max: at.saturating_sub(self.before) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    fn answer(trace: &mut SenderTrace, at: u64, next: u32, blocks: &[(u32, u32)], duplicates: &[(u32, u32)]) {
        let (blocks, duplicates) = (blocks.into(), duplicates.into());
        trace.acknowledge(
            at,
            &SequenceFields { acknowledged: Some(next), blocks, duplicates, ..SequenceFields::default() },
            false,
        );
    }

    fn send(trace: &mut SenderTrace, at: u64, data: &[(u32, u32)]) {
        trace.handle_data(at, SentData { data, octets: 140, delay: None, timestamp: None, path: 0 });
    }

    fn outcomes(trace: &SenderTrace) -> Vec<PacketOutcome> {
        outcomes_of_path(trace, 0)
    }

    fn outcomes_of_path(trace: &SenderTrace, path: usize) -> Vec<PacketOutcome> {
        let repair_times = RepairTimes { same_path: Some(10 * MS), other_path: Some(30 * MS) };
        trace.outcomes(repair_times, path).into_iter().map(|(_, outcome)| outcome).collect()
    }

    /// At the sender: data that is retransmitted before it was acknowledged was lost. RFC 2018 section 4.
    #[test]
    fn data_retransmitted_before_an_acknowledgement_was_lost() {
        let mut trace = SenderTrace::default();
        trace.set_first_number(1000);
        (0..4).for_each(|k| send(&mut trace, k * MS, &[(1000 + 100 * k as u32, 100)]));
        answer(&mut trace, 20 * MS, 1000, &[(1100, 1400)], &[]);
        send(&mut trace, 21 * MS, &[(1000, 100)]);
        answer(&mut trace, 41 * MS, 1400, &[], &[]);
        use PacketOutcome::{Arrived, Lost};
        assert_eq!(outcomes(&trace), [Lost, Arrived, Arrived, Arrived, Arrived]);
        assert_eq!(trace.shortest_ack_delay(0), Some(17 * MS));
        assert!(
            trace.prompt_acks.iter().all(|prompt| !prompt.is_alone),
            "the first was lost, the others were not alone"
        );
    }

    /// RFC 5681 section 4.2: data after a gap is acknowledged at once.
    #[test]
    fn a_sack_block_is_an_rtt_sample() {
        let mut trace = SenderTrace::default();
        trace.set_first_number(0);
        (0..2).for_each(|k| send(&mut trace, 10 * k * MS, &[(100 * k as u32, 100)]));
        answer(&mut trace, 30 * MS, 0, &[(100, 200)], &[]);
        assert_eq!(trace.prompt_acks.iter().map(|prompt| prompt.delay).collect::<Vec<_>>(), [20 * MS]);
    }

    /// The acknowledgement of data after a gap was lost; that of the retransmission does not show when the data arrived.
    #[test]
    fn an_acknowledged_retransmission_is_no_rtt_sample() {
        let mut trace = SenderTrace::default();
        trace.set_first_number(0);
        (0..2).for_each(|k| send(&mut trace, 10 * k * MS, &[(100 * k as u32, 100)]));
        send(&mut trace, 50 * MS, &[(0, 100)]);
        answer(&mut trace, 70 * MS, 200, &[], &[]);
        assert!(trace.prompt_acks.is_empty());
    }

    /// A retransmitted reply has waited, so its acknowledgement is not prompt.
    #[test]
    fn retransmitted_data_is_not_new() {
        let mut trace = SenderTrace::default();
        trace.set_first_number(0);
        send(&mut trace, 0, &[(100, 100)]);
        let new = [&[(0, 100)][..], &[(100, 100)], &[(200, 100)], &[]].map(|data| trace.is_new(data));
        assert_eq!(new, [false, false, true, false]);
    }

    /// RFC 2883 section 4: the receiver reports a duplicate, so the first copy was not lost.
    #[test]
    fn reported_duplicate_is_not_a_loss() {
        let mut trace = SenderTrace::default();
        trace.set_first_number(0);
        send(&mut trace, 0, &[(0, 100)]);
        send(&mut trace, MS, &[(0, 100)]);
        answer(&mut trace, 20 * MS, 100, &[], &[]);
        answer(&mut trace, 21 * MS, 100, &[], &[(0, 100)]);
        assert_eq!(outcomes(&trace), [PacketOutcome::Arrived; 2]);
    }

    /// RFC 3522 section 3.2: the acknowledgement echoes the timestamp of the copy that arrived first.
    #[test]
    fn retransmission_is_spurious_if_an_older_timestamp_is_echoed() {
        use PacketOutcome::{Arrived, Lost};
        for (copies, echo, expected) in [
            (&[10, 20][..], 10, &[Arrived, Arrived][..]),
            (&[10, 20], 20, &[Lost, Arrived]),
            (&[10, 10], 10, &[Lost, Arrived]),
            (&[10, 20, 40], 20, &[Lost, Arrived, Arrived]),
            (&[10, 20, 40], 10, &[Arrived, Arrived]),
            (&[u32::MAX, 3], u32::MAX, &[Arrived, Arrived]),
        ] {
            let mut trace = SenderTrace::default();
            trace.set_first_number(0);
            for (ms, timestamp) in (0..).zip(copies) {
                let sent = SentData {
                    data: &[(0, 100)],
                    octets: 140,
                    delay: None,
                    timestamp: Some(*timestamp),
                    path: 0,
                };
                trace.handle_data(ms * 300 * MS, sent);
            }
            let timestamps = Some((7, echo));
            let fields = SequenceFields { acknowledged: Some(100), timestamps, ..SequenceFields::default() };
            trace.acknowledge(1000 * MS, &fields, false);
            assert_eq!(outcomes(&trace), expected, "{copies:?} {echo}");
        }
    }

    /// RFC 7323 section 4.3: a delayed acknowledgement echoes the timestamp of the first segment that it acknowledges.
    #[test]
    fn echo_shows_nothing_about_later_segments() {
        use PacketOutcome::{Arrived, Lost};
        /// Segments of 100 octets by number and timestamp, acknowledgements by number of segments and echo.
        enum Step {
            Data(u32, u32),
            Ack(u32, u32),
        }
        use Step::{Ack, Data};
        for (steps, expected) in [
            // Both were lost, and retransmitted after a timeout.
            (
                &[Data(0, 10), Data(1, 10), Data(0, 310), Data(1, 311), Ack(2, 310)][..],
                &[Lost, Lost, Arrived, Arrived][..],
            ),
            // A tail loss probe (RFC 8985 section 7): the second may have been lost or not.
            (&[Data(0, 10), Data(1, 10), Data(1, 55), Ack(2, 10)], &[Arrived, Lost, Arrived]),
            (&[Data(0, 5), Data(1, 10), Data(1, 20), Ack(2, 5)], &[Arrived, Lost, Arrived]),
            // Each is acknowledged by itself.
            (&[Data(0, 10), Data(1, 10), Data(1, 55), Ack(1, 10), Ack(2, 10)], &[Arrived; 3]),
            (&[Data(0, 10), Data(1, 10), Data(1, 55), Ack(1, 10), Ack(2, 55)], &[Arrived, Lost, Arrived]),
            (&[Data(0, 10), Data(1, 11), Data(0, 310), Data(1, 311), Ack(1, 10), Ack(2, 11)], &[Arrived; 4]),
        ] {
            let mut trace = SenderTrace::default();
            trace.set_first_number(0);
            for (ms, step) in (0..).zip(steps) {
                match step {
                    Data(segment, timestamp) => {
                        let (data, timestamp) = (&[(100 * segment, 100)], Some(*timestamp));
                        trace.handle_data(
                            ms * MS,
                            SentData { data, octets: 140, delay: None, timestamp, path: 0 },
                        );
                    }
                    Ack(segments, echo) => {
                        let (acknowledged, timestamps) = (Some(100 * segments), Some((7, *echo)));
                        let fields = SequenceFields { acknowledged, timestamps, ..SequenceFields::default() };
                        trace.acknowledge(ms * MS, &fields, false);
                    }
                }
            }
            assert_eq!(outcomes(&trace), expected);
        }
    }

    /// A packet on a slow path has not been overtaken by those on a fast one.
    #[test]
    fn paths_are_told_apart() {
        let mut trace = SenderTrace::default();
        trace.set_first_number(0);
        let sent = |number: u32, path| {
            (number, SentData { data: &[], octets: 140, delay: None, timestamp: None, path })
        };
        for (at, (number, sent)) in (0..).zip([sent(0, 0), sent(1, 1), sent(2, 0), sent(1, 0), sent(3, 1)]) {
            trace.handle_data(at * MS, SentData { data: &[(number, 1)], ..sent });
        }
        answer(&mut trace, 30 * MS, 4, &[], &[]);
        use PacketOutcome::{Arrived, Lost};
        assert_eq!(outcomes_of_path(&trace, 0), [Arrived; 3]);
        assert_eq!(outcomes_of_path(&trace, 1), [Lost, Arrived]);
        assert_eq!([0, 1].map(|path| trace.shortest_ack_delay(path)), [28, 26].map(|ms| Some(ms * MS)));
    }

    /// Data in flight on another path, and data known to be overtaken, are not compared with an acknowledgement again.
    #[test]
    fn overtaking_is_found_without_the_data_of_other_paths() {
        const COUNT: u32 = 5_000;
        let mut trace = SenderTrace::default();
        trace.set_first_number(0);
        for number in 0..2 * COUNT {
            let path = usize::from(number >= COUNT - 1);
            let data = &[(number, 1)];
            trace.handle_data(MS, SentData { data, octets: 140, delay: None, timestamp: None, path });
        }
        (COUNT..2 * COUNT).for_each(|number| answer(&mut trace, 2 * MS, 0, &[(number, number + 1)], &[]));
        answer(&mut trace, 5 * MS, COUNT, &[], &[]);
        assert_eq!(outcomes_of_path(&trace, 0), vec![PacketOutcome::Arrived; COUNT as usize - 1]);
        let late = PacketOutcome::Reordered(ReorderingDelayBounds { min: 3 * MS, max: 3 * MS });
        assert_eq!(outcomes_of_path(&trace, 1)[..2], [late, PacketOutcome::Arrived]);
    }

    /// At the receiver: a hole that another path fills after a round trip is a loss. Earlier, that path is only slower.
    #[test]
    fn hole_filled_by_another_path_is_a_loss_after_a_round_trip() {
        use PacketOutcome::{Arrived, Lost};
        for (wait, expected) in [(29, &[Arrived; 2][..]), (30, &[Arrived, Lost, Arrived])] {
            let mut trace = SenderTrace::default();
            trace.set_first_number(0);
            for (at, number, path) in [(0, 0, 0), (1, 2, 0), (1 + wait, 1, 1)] {
                let data = &[(number, 1)];
                trace
                    .handle_data(at * MS, SentData { data, octets: 140, delay: None, timestamp: None, path });
            }
            answer(&mut trace, 100 * MS, 3, &[], &[]);
            assert_eq!(outcomes_of_path(&trace, 0), expected, "{wait}");
            assert_eq!(outcomes_of_path(&trace, 1), [Arrived]);
        }
    }

    /// At the receiver: a packet that fills a hole at once was overtaken; one that takes a round trip is a retransmission.
    #[test]
    fn hole_is_a_loss_or_reordering() {
        let mut trace = SenderTrace::default();
        trace.set_first_number(0);
        send(&mut trace, 0, &[(0, 1)]);
        send(&mut trace, MS, &[(3, 1)]);
        send(&mut trace, 3 * MS, &[(1, 1)]);
        answer(&mut trace, 3 * MS, 2, &[(3, 4)], &[]);
        send(&mut trace, 40 * MS, &[(2, 1)]);
        answer(&mut trace, 40 * MS, 4, &[], &[]);
        use PacketOutcome::{Arrived, Lost, Reordered};
        // The packet before the hole arrived at 0, the one behind it at 1 ms, this one at 3 ms.
        assert_eq!(
            outcomes(&trace),
            [Arrived, Reordered(ReorderingDelayBounds { min: 2 * MS, max: 3 * MS }), Lost, Arrived, Arrived]
        );
    }

    #[test]
    fn packets_missing_from_the_capture_are_not_losses() {
        let mut trace = SenderTrace::default();
        trace.set_first_number(0);
        send(&mut trace, 0, &[(5, 5)]);
        answer(&mut trace, MS, 10, &[], &[]);
        answer(&mut trace, MS, 30, &[], &[]);
        send(&mut trace, 2 * MS, &[(30, 5)]);
        answer(&mut trace, 3 * MS, 35, &[], &[]);
        assert_eq!(outcomes(&trace), [PacketOutcome::Arrived; 2]);
    }
}
