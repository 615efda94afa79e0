//! The application behind an endpoint: it sleeps until data arrives, and wakes up a little later, when more may have
//! come.

use std::collections::VecDeque;

use hol_base::{Duration, Time};

use crate::{Event, Received};

/// Octets that an application takes at a time: the size of its buffer.
const PIECE: usize = 65_536;

/// What waits for the application, and whether it is awake to take it.
#[derive(Debug)]
pub struct Reader {
    wakeup: Duration,
    events: VecDeque<Event>,
    /// Of those events, the ones that deliver data.
    unread: usize,
    /// And the octets in them that were not read.
    octets: usize,
    /// Of those events, the ones that a read has taken together, though the application may be busy with the first.
    taken: usize,
    /// Octets of the first of those events that were read.
    begun: usize,
    /// Octets of a message that is delivered in part, which the busy application has not read.
    part: usize,
    /// Whether the application reads when it is awake, or is busy.
    reads: bool,
    /// It reads again or has read a part, and the peer has not heard of the room that this makes.
    resumed: bool,
    awake: bool,
    /// When the application will be awake.
    alarm: Option<Time>,
}

impl Reader {
    /// An application that is awake `wakeup` after data has come.
    pub fn new(wakeup: Duration) -> Self {
        Self {
            wakeup,
            events: VecDeque::new(),
            unread: 0,
            taken: 0,
            octets: 0,
            begun: 0,
            part: 0,
            reads: true,
            resumed: false,
            awake: false,
            alarm: None,
        }
    }

    /// An event other than data, behind those that wait.
    pub fn tell(&mut self, event: Event) {
        self.events.push_back(event);
    }

    /// Data, behind the events that wait; it wakes the application up.
    pub fn receive(&mut self, now: Time, received: Received) {
        self.part = 0;
        self.queue(now, received);
    }

    /// The same where several messages may be delivered in part at a time: so many octets of this one have been.
    pub fn receive_among_parts(&mut self, now: Time, received: Received, octets: usize) {
        self.forget_part(octets);
        self.queue(now, received);
    }

    /// So many octets of a message that is delivered in part are read, or will not be followed by more.
    pub fn forget_part(&mut self, octets: usize) {
        self.part = self.part.saturating_sub(octets);
    }

    fn queue(&mut self, now: Time, received: Received) {
        self.octets += received.payload.len();
        self.events.push_back(Event::Received(received));
        self.unread += 1;
        if !self.awake && self.alarm.is_none() {
            self.alarm = Some(now + self.wakeup);
        }
    }

    /// Octets of a message that is not yet whole. It has its place in the order when it is: nothing else is received before, unless
    /// that is among parts.
    pub fn receive_part(&mut self, octets: usize) {
        if self.reads {
            self.resumed |= octets > 0;
        } else {
            self.part += octets;
        }
    }

    /// Whether the application reads from now on.
    pub fn set_reading(&mut self, reads: bool) {
        self.resumed |= reads && !self.reads;
        self.reads = reads;
        if reads {
            self.part = 0;
        }
    }

    /// True once after the application has begun to read again, or has read a part: there may be much more room.
    pub fn has_resumed(&mut self) -> bool {
        std::mem::take(&mut self.resumed)
    }

    /// The application reads as much as its buffer holds at once, before it is busy with any of it: a stream has no borders.
    pub fn read_together(&mut self) {
        let mut left = PIECE;
        let received = self.events.iter().filter_map(|event| match event {
            Event::Received(received) => Some(received.payload.len()),
            _ => None,
        });
        self.taken =
            received.take_while(|octets| left.checked_sub(*octets).map(|less| left = less).is_some()).count();
    }

    /// Octets that wait because the application does not read.
    pub fn held(&self) -> usize {
        if self.reads { 0 } else { self.octets + self.part }
    }

    /// Octets that the application has not read, be it busy or not yet awake.
    pub const fn unread(&self) -> usize {
        self.octets + self.part
    }

    /// When the application wakes up.
    pub fn deadline(&self) -> Option<Time> {
        self.alarm
    }

    /// Wakes the application up if it is time; it then reads all that there is, at once, unless it is busy: then it is false.
    ///
    /// Data counts as arrived when it has woken the application up: that takes time whatever was sent before.
    pub fn wake(&mut self, now: Time) -> bool {
        let wakes = self.alarm.take_if(|at| *at <= now).is_some();
        if wakes {
            self.awake = true;
            for event in &mut self.events {
                if let Event::Received(Received { passage, .. }) = event {
                    passage.arrived = (passage.arrived + self.wakeup).min(now);
                }
            }
        }
        wakes && self.reads
    }

    /// Lets the application read a piece of a message that is longer than its buffer; false if it may have all that is left of it.
    pub fn read_piece(&mut self) -> bool {
        let next = self.events.front().filter(|_| self.awake && self.reads);
        let Some(Event::Received(Received { payload, .. })) = next else { return false };
        let is_long = payload.len() - self.begun > PIECE;
        if is_long {
            self.begun += PIECE;
            self.octets -= PIECE;
        }
        is_long
    }

    /// The next event that the application is awake for.
    pub fn next_event(&mut self) -> Option<Event> {
        if let Event::Received(received) = self.events.front()? {
            if !self.awake || !(self.reads || self.taken > 0) {
                return None;
            }
            self.taken = self.taken.saturating_sub(1);
            self.octets -= received.payload.len() - std::mem::take(&mut self.begun);
            self.unread -= 1;
            self.awake = self.unread > 0;
        }
        self.events.pop_front()
    }

    /// Nothing waits.
    pub fn is_empty(&self) -> bool {
        self.events.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use hol_wire::Stamp;

    use super::*;
    use crate::Passage;

    fn octet(now: Time) -> Received {
        let passage = Passage::new(Stamp::default(), now);
        Received { stream: 0, unordered: false, ppid: 0, payload: b"x".as_slice().into(), passage }
    }

    #[test]
    fn parts_of_several_messages_are_counted_until_theirs_is_whole() {
        // RFC 6458 section 8.1.20, level 2.
        let mut reader = Reader::new(Duration::ZERO);
        reader.set_reading(false);
        reader.receive_part(100);
        reader.receive_part(50);
        reader.receive_among_parts(Time::ZERO, octet(Time::ZERO), 50);
        assert_eq!(reader.held(), 101);
        reader.forget_part(100);
        assert_eq!(reader.held(), 1);
    }

    #[test]
    fn data_waits_for_the_application_to_wake_up_and_is_then_read_together() {
        let mut reader = Reader::new(Duration::from_millis(25));
        reader.tell(Event::Connected);
        reader.receive(Time::ZERO, octet(Time::ZERO));
        assert_eq!(reader.next_event(), Some(Event::Connected), "it is told what is not data at once");
        assert_eq!(reader.next_event(), None);
        let later = Time::from_millis(20);
        reader.receive(later, octet(later));
        let awake = Time::from_millis(25);
        assert!(!reader.wake(later));
        assert_eq!((reader.unread(), reader.held()), (2, 0), "it is not busy, it is asleep");
        assert_eq!(reader.deadline(), Some(awake));
        assert!(reader.wake(awake));
        let arrivals = [reader.next_event(), reader.next_event()].map(|event| match event {
            Some(Event::Received(received)) => received.passage.arrived,
            other => panic!("{other:?} is no data"),
        });
        assert_eq!(arrivals, [awake; 2], "the time to wake up is nobody's head-of-line wait");
        assert!(reader.is_empty());
        reader.receive(awake, octet(awake));
        assert_eq!(reader.next_event(), None, "it sleeps again");
    }

    #[test]
    fn what_is_read_together_is_told_though_the_application_is_busy_with_the_first() {
        let mut reader = Reader::new(Duration::ZERO);
        (0..3).for_each(|_| reader.receive(Time::ZERO, octet(Time::ZERO)));
        assert!(reader.wake(Time::ZERO));
        reader.read_together();
        assert!(reader.next_event().is_some());
        reader.set_reading(false);
        reader.receive(Time::ZERO, octet(Time::ZERO));
        assert!((0..2).all(|_| reader.next_event().is_some()));
        assert_eq!((reader.next_event(), reader.unread()), (None, 1));
    }

    #[test]
    fn a_long_message_is_read_in_pieces() {
        let mut reader = Reader::new(Duration::ZERO);
        let payload = vec![0; 2 * PIECE + 1].into();
        reader.receive(Time::ZERO, Received { payload, ..octet(Time::ZERO) });
        assert!(!reader.read_piece(), "it sleeps");
        reader.wake(Time::ZERO);
        let mut unread = || reader.read_piece().then(|| reader.unread());
        assert_eq!([unread(), unread(), unread()], [Some(PIECE + 1), Some(1), None]);
        assert!(matches!(reader.next_event(), Some(Event::Received(_))));
        assert_eq!(reader.unread(), 0);
    }

    #[test]
    fn a_part_is_held_until_it_is_read_or_belongs_to_a_message() {
        let mut reader = Reader::new(Duration::ZERO);
        reader.receive_part(5);
        assert_eq!(reader.held(), 0, "read at once");
        reader.set_reading(false);
        reader.receive_part(5);
        reader.receive_part(2);
        assert_eq!(reader.held(), 7);
        reader.set_reading(true);
        reader.set_reading(false);
        assert_eq!(reader.held(), 0);
        reader.receive_part(5);
        reader.receive(Time::ZERO, octet(Time::ZERO));
        assert_eq!(reader.held(), 1);
    }

    #[test]
    fn what_comes_while_the_application_is_busy_is_held_until_it_reads_again() {
        let mut reader = Reader::new(Duration::ZERO);
        reader.receive(Time::ZERO, octet(Time::ZERO));
        reader.receive(Time::ZERO, octet(Time::ZERO));
        assert!(reader.wake(Time::ZERO) && reader.next_event().is_some());
        reader.set_reading(false);
        let later = Time::from_millis(5);
        reader.receive(later, octet(later));
        reader.tell(Event::PeerClosed);
        assert_eq!((reader.held(), reader.unread(), reader.next_event()), (2, 2, None));
        reader.set_reading(true);
        assert!(reader.has_resumed() && !reader.has_resumed());
        assert!((0..2).all(|_| matches!(reader.next_event(), Some(Event::Received(_)))));
        assert_eq!((reader.held(), reader.next_event()), (0, Some(Event::PeerClosed)));
    }
}
