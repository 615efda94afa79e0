//! The application behind an endpoint: it sleeps until data arrives and wakes up after a delay, during which
//! more data may arrive.

use std::collections::VecDeque;

use hol_base::{Duration, Time};

use crate::{Event, Received};

/// Octets that the application reads at a time: the size of its buffer.
const PIECE: usize = 65_536;

/// The events queued for the application, and whether it is awake to read them.
#[derive(Debug)]
pub struct Reader {
    wakeup: Duration,
    events: VecDeque<Event>,
    /// Number of queued events that deliver data.
    unread: usize,
    /// Unread octets in those events.
    octets: usize,
    /// Octets already read of the first of those events.
    begun: usize,
    /// Unread octets of a partially delivered message.
    part: usize,
    /// Whether the application reads when awake; if not, it is busy.
    reads: bool,
    /// The application resumed reading or read a part, and the peer has not yet been told of the freed
    /// window.
    resumed: bool,
    awake: bool,
    /// When the application wakes up.
    alarm: Option<Time>,
}

impl Reader {
    /// Creates a reader whose application wakes up `wakeup` after data has arrived.
    pub fn new(wakeup: Duration) -> Self {
        Self {
            wakeup,
            events: VecDeque::new(),
            unread: 0,
            octets: 0,
            begun: 0,
            part: 0,
            reads: true,
            resumed: false,
            awake: false,
            alarm: None,
        }
    }

    /// Queues an event other than data.
    pub fn tell(&mut self, event: Event) {
        self.events.push_back(event);
    }

    /// Queues data and wakes the application up.
    pub fn receive(&mut self, now: Time, received: Received) {
        self.part = 0;
        self.queue(now, received);
    }

    /// Queues a message of which `octets` have already been delivered in part; several messages may be in
    /// partial delivery.
    pub fn receive_among_parts(&mut self, now: Time, received: Received, octets: usize) {
        self.forget_part(octets);
        self.queue(now, received);
    }

    /// Releases `octets` of a partially delivered message, which have been read or will not be completed.
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

    /// Counts octets of an incomplete message. It is queued when complete: nothing else is received before
    /// that, except with [`Self::receive_among_parts`].
    pub fn receive_part(&mut self, octets: usize) {
        if self.reads {
            self.resumed |= octets > 0;
        } else {
            self.part += octets;
        }
    }

    /// Sets whether the application reads from now on.
    pub fn set_reading(&mut self, reads: bool) {
        self.resumed |= reads && !self.reads;
        self.reads = reads;
        if reads {
            self.part = 0;
        }
    }

    /// Returns true once after the application has resumed reading or has read a part: the window may have
    /// grown much.
    pub fn has_resumed(&mut self) -> bool {
        std::mem::take(&mut self.resumed)
    }

    /// Returns the octets that are queued because the application does not read.
    pub fn held(&self) -> usize {
        if self.reads { 0 } else { self.octets + self.part }
    }

    /// Returns the octets that the application has not read, because it is busy or not yet awake.
    pub const fn unread(&self) -> usize {
        self.octets + self.part
    }

    /// Returns the time at which the application wakes up.
    pub fn deadline(&self) -> Option<Time> {
        self.alarm
    }

    /// Wakes the application up if it is time. It then reads everything at once and this returns true; a busy
    /// application does not read.
    ///
    /// Data counts as arrived at the wake-up, even if it was sent earlier.
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

    /// Lets the application read one buffer of a longer message. Returns false if the rest fits into its
    /// buffer.
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

    /// Returns the next event that the application is awake for.
    pub fn next_event(&mut self) -> Option<Event> {
        if let Event::Received(received) = self.events.front()? {
            if !self.awake || !self.reads {
                return None;
            }
            self.octets -= received.payload.len() - std::mem::take(&mut self.begun);
            self.unread -= 1;
            self.awake = self.unread > 0;
        }
        self.events.pop_front()
    }

    /// Returns true if no event is queued.
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
