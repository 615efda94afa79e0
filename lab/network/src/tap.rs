//! Looking at packets as they pass, for captures and diagrams.

use hol_base::Time;

use crate::crossing::Crossing;

/// Sees every packet of a run. Without a tap the run costs nothing more.
pub trait Tap {
    /// A packet passes `point`, which is an end of the hop that it makes, or ends there.
    fn packet(&mut self, now: Time, point: TapPoint<'_>, crossing: &Crossing, fate: Fate);
}

/// An interface of a node.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TapPoint<'a> {
    /// Its index among all interfaces of the network.
    pub interface: usize,
    /// Its name, such as `client:1`.
    pub name: &'a str,
}

/// What happened to a packet at an interface.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Fate {
    /// The node handed it to the interface.
    Sent,
    /// The interface began to transmit it, at once or after a wait in the queue.
    Dequeued,
    /// It arrived whole.
    Received,
    /// The line lost it; noted at the sending interface when its transmission began.
    Lost,
    /// It found the queue of the sending interface full.
    QueueFull,
    /// RED, CoDel or PIE dropped it before the queue of the sending interface was full.
    DroppedEarly,
    /// It came out of the line faster than the policed rate; noted at the sending interface.
    Policed,
    /// It arrived with a wrong checksum and was ignored.
    Corrupted,
    /// It was longer than the line's MTU.
    TooLong,
    /// The link was down, or went down while the packet was under way; noted at the sending interface.
    LinkDown,
}

impl Fate {
    /// The packet has come to its end.
    pub fn is_drop(self) -> bool {
        !matches!(self, Self::Sent | Self::Dequeued | Self::Received)
    }

    /// In a few words, for captures.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Sent => "sent",
            Self::Dequeued => "dequeued",
            Self::Received => "received",
            Self::Lost => "lost on the line",
            Self::QueueFull => "dropped: queue full",
            Self::DroppedEarly => "dropped: early",
            Self::Policed => "dropped: above the policed rate",
            Self::Corrupted => "dropped: wrong checksum",
            Self::TooLong => "dropped: longer than the MTU",
            Self::LinkDown => "dropped: link down",
        }
    }
}

/// How many packets ended before their destination, and why.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Drops {
    /// Lost on a line.
    pub loss: u64,
    /// Found a queue full, or were dropped before it was.
    pub queue: u64,
    /// Came out of a line faster than its policed rate.
    pub police: u64,
    /// Arrived with a wrong checksum.
    pub corrupt: u64,
    /// Longer than a line's MTU.
    pub mtu: u64,
    /// Sent on or caught by a link that was down.
    pub down: u64,
}

impl Drops {
    /// All of them.
    pub const fn total(self) -> u64 {
        let Self { loss, queue, police, corrupt, mtu, down } = self;
        loss + queue + police + corrupt + mtu + down
    }
    /// Both together.
    pub(crate) const fn with(self, other: &Self) -> Self {
        let Self { loss, queue, police, corrupt, mtu, down } = *other;
        Self {
            loss: self.loss + loss,
            queue: self.queue + queue,
            police: self.police + police,
            corrupt: self.corrupt + corrupt,
            mtu: self.mtu + mtu,
            down: self.down + down,
        }
    }
}
