//! Observation of packets, for captures and diagrams.

use hol_base::Time;

use crate::transit::PacketInTransit;

/// An observer of every packet of a run. Without a tap a run has no extra cost.
pub trait Tap {
    /// Reports a packet at `point`, one end of its hop, where the packet continues or ends.
    fn packet(&mut self, now: Time, point: TapPoint<'_>, transit: &PacketInTransit, event: TapEvent);
}

/// An interface of a node.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TapPoint<'a> {
    /// Index of the interface among all interfaces of the network.
    pub interface: usize,
    /// Name of the interface, such as `client:1`.
    pub name: &'a str,
}

/// Returns the node of an interface such as `client:1`.
pub fn node_of(interface: &str) -> &str {
    interface.rsplit_once(':').map_or(interface, |(node, _)| node)
}

/// What happened to a packet at an interface.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum TapEvent {
    /// The node passed the packet to the interface.
    Sent,
    /// The interface started to transmit the packet, at once or after queueing.
    Dequeued,
    /// The whole packet has arrived.
    Received,
    /// The link lost the packet; reported at the sending interface when its transmission started.
    Lost,
    /// The queue of the sending interface was full. FQ-CoDel drops packets of the longest queue, any other discipline the
    /// arriving packet.
    QueueFull,
    /// The discipline of the sending interface's queue (any except drop-tail) dropped the packet before the queue was
    /// full.
    DroppedEarly,
    /// The packet exceeded the policed rate at the end of the link; reported at the sending interface.
    Policed,
    /// The packet arrived with a wrong checksum and was discarded.
    Corrupted,
    /// The packet was longer than the MTU.
    TooLong,
    /// The link was down, or went down while the packet was in flight; reported at the sending interface.
    LinkDown,
}

impl TapEvent {
    /// Returns whether the packet goes no further: it was lost, dropped or discarded.
    pub fn is_drop(self) -> bool {
        !matches!(self, Self::Sent | Self::Dequeued | Self::Received)
    }

    /// Returns a short description of the event, for captures.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Sent => "sent",
            Self::Dequeued => "dequeued",
            Self::Received => "received",
            Self::Lost => "lost on the link",
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
    /// Packets lost on a link.
    pub loss: u64,
    /// Packets dropped by a full queue, or early by its discipline.
    pub queue: u64,
    /// Packets dropped by a policer.
    pub police: u64,
    /// Packets that arrived with a wrong checksum.
    pub corrupt: u64,
    /// Packets longer than a link's MTU.
    pub mtu: u64,
    /// Packets that were sent on, or in flight on, a link that was down.
    pub down: u64,
}

impl Drops {
    /// Returns the number of all dropped packets.
    pub const fn total(self) -> u64 {
        let Self { loss, queue, police, corrupt, mtu, down } = self;
        loss + queue + police + corrupt + mtu + down
    }
    /// Returns the sum of these counts and those of `other`.
    pub(crate) const fn plus(self, other: &Self) -> Self {
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
