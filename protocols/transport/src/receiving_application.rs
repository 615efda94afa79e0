//! The application that reads from an endpoint: it sleeps until data arrives and wakes up after a delay,
//! during which more data may arrive.

use std::collections::VecDeque;

use hol_base::{Duration, Time};

use crate::{Event, ReceivedData};

/// Maximum number of octets that one read returns: the size of the application's buffer.
const READ_OCTETS: usize = 65_536;

/// Something that waits for the application.
#[derive(Debug)]
enum Item {
    /// An event other than data. It is reported in order, without waiting for a read.
    Event(Event),
    /// A message, and the number of its octets that the application has not read.
    Message(ReceivedData, usize),
    /// A part of an incomplete message, as its number of octets.
    Part(usize),
}

/// Models an application that reads from an endpoint: the events that wait for it, and whether it is awake.
#[derive(Debug)]
pub struct ReceivingApplication {
    wakeup: Duration,
    items: VecDeque<Item>,
    /// Number of waiting items that contain data.
    waiting_deliveries: usize,
    /// Number of octets in the waiting items that the application has not read.
    octets: usize,
    /// Number of items that the last read has returned together. The application may still be busy with the first
    /// one.
    items_taken: usize,
    /// Whether the application reads when it is awake; false while it is busy.
    reads: bool,
    /// Whether the application has resumed reading, and the peer does not know the new window yet.
    resumed: bool,
    /// Whether the application is awake.
    awake: bool,
    /// When the application wakes up; `None` if no wake-up is due.
    wakes_at: Option<Time>,
}

impl ReceivingApplication {
    /// Creates a reader whose application wakes up the time `wakeup` after data have arrived.
    pub fn new(wakeup: Duration) -> Self {
        Self {
            wakeup,
            items: VecDeque::new(),
            waiting_deliveries: 0,
            items_taken: 0,
            octets: 0,
            reads: true,
            resumed: false,
            awake: false,
            wakes_at: None,
        }
    }

    /// Queues an event other than data.
    pub fn push_event(&mut self, event: Event) {
        self.items.push_back(Item::Event(event));
    }

    /// Queues a message, and wakes the application up.
    pub fn receive(&mut self, now: Time, received: ReceivedData) {
        self.receive_rest(now, received, 0);
    }

    /// Queues the rest of a message. The application has already read the first `in_part` octets of the message.
    pub fn receive_rest(&mut self, now: Time, received: ReceivedData, in_part: usize) {
        let rest = received.payload.len() - in_part;
        self.queue(now, Item::Message(received, rest), rest);
    }

    /// Queues octets of an incomplete message. The application reads each part separately, and processes the
    /// message when it is complete.
    pub fn receive_part(&mut self, now: Time, octets: usize) {
        if octets > 0 {
            self.queue(now, Item::Part(octets), octets);
        }
    }

    fn queue(&mut self, now: Time, item: Item, octets: usize) {
        self.octets += octets;
        self.waiting_deliveries += 1;
        self.items.push_back(item);
        if !self.awake && self.wakes_at.is_none() {
            self.wakes_at = Some(now + self.wakeup);
        }
    }

    /// Sets whether the application reads from now on.
    pub fn set_reading(&mut self, reads: bool) {
        self.resumed |= reads && !self.reads;
        self.reads = reads;
    }

    /// Returns true once after the application has resumed reading. The receive window may then have grown
    /// considerably.
    pub fn has_resumed(&mut self) -> bool {
        std::mem::take(&mut self.resumed)
    }

    /// Makes the application fill its buffer in one call before it processes the data, as with a byte-stream
    /// socket.
    pub fn set_reads_whole_buffer(&mut self) {
        let mut left = READ_OCTETS;
        let received = self.items.iter().filter_map(|item| match item {
            Item::Message(_, rest) => Some(*rest),
            Item::Event(_) | Item::Part(_) => None,
        });
        self.items_taken =
            received.take_while(|octets| left.checked_sub(*octets).map(|less| left = less).is_some()).count();
    }

    /// Returns the number of octets that wait because the application does not read.
    pub fn held_octets(&self) -> usize {
        if self.reads { 0 } else { self.octets }
    }

    /// Returns the number of octets that the application has not read, because it is busy or not yet awake.
    pub const fn unread(&self) -> usize {
        self.octets
    }

    /// Returns the number of messages and parts that the application has not read.
    pub const fn unread_deliveries(&self) -> usize {
        self.waiting_deliveries
    }

    /// Returns the time at which the application wakes up.
    pub fn deadline(&self) -> Option<Time> {
        self.wakes_at
    }

    /// Wakes the application up if its wake-up time has come. The application then reads all queued data; if it is
    /// busy, it reads nothing, and false is returned.
    ///
    /// Data counts as arrived one wake-up delay after its arrival, but at the latest now.
    pub fn wake_if_due(&mut self, now: Time) -> bool {
        let wakes = self.wakes_at.take_if(|at| *at <= now).is_some();
        if wakes {
            self.awake = true;
            for item in &mut self.items {
                if let Item::Message(ReceivedData { delivery_times, .. }, _) = item {
                    delivery_times.arrived = (delivery_times.arrived + self.wakeup).min(now);
                }
            }
        }
        wakes && self.reads
    }

    /// Lets the application read a part of an incomplete message, or a piece of a message that is longer than its
    /// buffer. Returns false if the next item is neither.
    pub fn read_piece(&mut self) -> bool {
        if !self.awake || !self.reads {
            return false;
        }
        let is_over = match self.items.front_mut() {
            Some(Item::Message(_, rest)) if *rest > READ_OCTETS => {
                *rest -= READ_OCTETS;
                self.octets -= READ_OCTETS;
                false
            }
            Some(Item::Part(rest)) => {
                let read = READ_OCTETS.min(*rest);
                *rest -= read;
                self.octets -= read;
                *rest == 0
            }
            _ => return false,
        };
        if is_over {
            self.items.pop_front();
            self.note_read();
        }
        true
    }

    /// Returns the next event; `None` if there is none, or if it is a delivery of data and the application sleeps
    /// or is busy.
    pub fn next_event(&mut self) -> Option<Event> {
        if !matches!(self.items.front()?, Item::Event(_))
            && !(self.awake && (self.reads || self.items_taken > 0))
        {
            return None;
        }
        match self.items.pop_front()? {
            Item::Event(event) => Some(event),
            Item::Message(received, rest) => {
                self.octets -= rest;
                self.items_taken = self.items_taken.saturating_sub(1);
                self.note_read();
                Some(Event::Received(received))
            }
            Item::Part(_) => unreachable!("parts are read piece by piece"),
        }
    }

    /// Puts the application to sleep if it has read all data.
    fn note_read(&mut self) {
        self.waiting_deliveries -= 1;
        self.awake = self.waiting_deliveries > 0;
    }

    /// Returns whether no event is queued.
    pub fn is_empty(&self) -> bool {
        self.items.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use hol_wire::SendTimes;

    use super::*;
    use crate::DeliveryTimes;

    fn octet(now: Time) -> ReceivedData {
        let delivery_times = DeliveryTimes::new(SendTimes::default(), now);
        ReceivedData { stream: 0, unordered: false, ppid: 0, payload: b"x".as_slice().into(), delivery_times }
    }

    #[test]
    fn data_waits_for_the_wakeup_and_is_then_read_at_once() {
        let mut reader = ReceivingApplication::new(Duration::from_millis(25));
        reader.push_event(Event::Connected);
        reader.receive(Time::ZERO, octet(Time::ZERO));
        assert_eq!(
            reader.next_event(),
            Some(Event::Connected),
            "events other than data are reported at once"
        );
        assert_eq!(reader.next_event(), None);
        let later = Time::from_millis(20);
        reader.receive(later, octet(later));
        let awake = Time::from_millis(25);
        assert!(!reader.wake_if_due(later));
        assert_eq!((reader.unread(), reader.held_octets()), (2, 0), "it is not busy, it is asleep");
        assert_eq!(reader.deadline(), Some(awake));
        assert!(reader.wake_if_due(awake));
        let arrivals = [reader.next_event(), reader.next_event()].map(|event| match event {
            Some(Event::Received(received)) => received.delivery_times.arrived,
            other => panic!("{other:?} is no data"),
        });
        assert_eq!(arrivals, [awake; 2], "the wake-up delay is not a head-of-line wait");
        assert!(reader.is_empty());
        reader.receive(awake, octet(awake));
        assert_eq!(reader.next_event(), None, "it sleeps again");
    }

    #[test]
    fn data_read_at_once_are_reported_even_if_reading_pauses() {
        let mut reader = ReceivingApplication::new(Duration::ZERO);
        (0..3).for_each(|_| reader.receive(Time::ZERO, octet(Time::ZERO)));
        assert!(reader.wake_if_due(Time::ZERO));
        reader.set_reads_whole_buffer();
        assert!(reader.next_event().is_some());
        reader.set_reading(false);
        reader.receive(Time::ZERO, octet(Time::ZERO));
        assert!((0..2).all(|_| reader.next_event().is_some()));
        assert_eq!((reader.next_event(), reader.unread()), (None, 1));
    }

    #[test]
    fn a_long_message_is_read_in_pieces() {
        let mut reader = ReceivingApplication::new(Duration::ZERO);
        let payload = vec![0; 2 * READ_OCTETS + 1].into();
        reader.receive(Time::ZERO, ReceivedData { payload, ..octet(Time::ZERO) });
        assert!(!reader.read_piece(), "it sleeps");
        reader.wake_if_due(Time::ZERO);
        let mut unread = || reader.read_piece().then(|| reader.unread());
        assert_eq!([unread(), unread(), unread()], [Some(READ_OCTETS + 1), Some(1), None]);
        assert!(matches!(reader.next_event(), Some(Event::Received(_))));
        assert_eq!(reader.unread(), 0);
    }

    #[test]
    fn each_part_is_read_separately_and_the_message_when_complete() {
        // net/sctp/socket.c sctp_recvmsg: a read takes what one `sctp_ulpq_tail_event` has queued, up to the size of its buffer.
        let mut reader = ReceivingApplication::new(Duration::ZERO);
        reader.receive_part(Time::ZERO, READ_OCTETS + 5);
        reader.receive_part(Time::ZERO, 7);
        reader.receive_part(Time::ZERO, 0);
        let payload = vec![0; READ_OCTETS + 20].into();
        reader.receive_rest(Time::ZERO, ReceivedData { payload, ..octet(Time::ZERO) }, READ_OCTETS + 12);
        assert_eq!((reader.unread(), reader.held_octets()), (READ_OCTETS + 20, 0));
        assert!(!reader.read_piece(), "it sleeps");
        assert!(reader.wake_if_due(Time::ZERO));
        reader.set_reading(false);
        assert_eq!((reader.read_piece(), reader.held_octets()), (false, READ_OCTETS + 20));
        reader.set_reading(true);
        let mut unread = || reader.read_piece().then(|| reader.unread());
        assert_eq!([unread(), unread(), unread(), unread()], [Some(20), Some(15), Some(8), None]);
        assert!(matches!(reader.next_event(), Some(Event::Received(_))));
        assert!(reader.unread() == 0 && reader.is_empty());
        reader.receive_part(Time::ZERO, 1);
        assert!(!reader.read_piece(), "it sleeps again");
    }

    #[test]
    fn data_for_a_busy_application_are_held_until_it_reads() {
        let mut reader = ReceivingApplication::new(Duration::ZERO);
        reader.receive(Time::ZERO, octet(Time::ZERO));
        reader.receive(Time::ZERO, octet(Time::ZERO));
        assert!(reader.wake_if_due(Time::ZERO) && reader.next_event().is_some());
        reader.set_reading(false);
        let later = Time::from_millis(5);
        reader.receive(later, octet(later));
        reader.push_event(Event::PeerClosed);
        assert_eq!((reader.held_octets(), reader.unread(), reader.next_event()), (2, 2, None));
        reader.set_reading(true);
        assert!(reader.has_resumed() && !reader.has_resumed());
        assert!((0..2).all(|_| matches!(reader.next_event(), Some(Event::Received(_)))));
        assert_eq!((reader.held_octets(), reader.next_event()), (0, Some(Event::PeerClosed)));
    }
}
