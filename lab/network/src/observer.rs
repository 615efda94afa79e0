//! Counts dropped packets and passes every packet to the tap.

use hol_base::Time;

use crate::identifier::InterfaceId;
use crate::tap::{Drops, Tap, TapEvent, TapPoint};
use crate::transit::PacketInTransit;

/// Counts dropped packets and passes every packet to the tap.
pub(crate) struct TapReporter<'t> {
    names: Vec<String>,
    /// Drops by sending interface.
    drops: Vec<Drops>,
    tap: Option<&'t mut dyn Tap>,
}

impl<'t> TapReporter<'t> {
    /// Creates an observer without drops.
    pub(crate) fn new(names: Vec<String>, tap: Option<&'t mut dyn Tap>) -> Self {
        Self { drops: vec![Drops::default(); names.len()], names, tap }
    }

    /// Returns the drops so far.
    pub(crate) fn drops(&self) -> Drops {
        self.drops.iter().fold(Drops::default(), |all, one| all.plus(one))
    }

    /// Returns the drops of packets sent from these interfaces.
    pub(crate) fn drops_from(&self, interfaces: &[InterfaceId]) -> Drops {
        let own = interfaces.iter().map(|interface| &self.drops[usize::from(interface.0)]);
        own.fold(Drops::default(), Drops::plus)
    }

    /// Reports a packet at one of the interfaces of its hop.
    #[inline]
    pub(crate) fn report(
        &mut self,
        now: Time,
        interface: InterfaceId,
        transit: &PacketInTransit,
        event: TapEvent,
    ) {
        if let Some(tap) = &mut self.tap {
            let interface = usize::from(interface.0);
            tap.packet(now, TapPoint { interface, name: &self.names[interface] }, transit, event);
        }
    }

    /// Reports a packet that the link, its queue or its policer dropped, at the interface that sent it.
    pub(crate) fn report_loss(&mut self, now: Time, transit: &PacketInTransit, event: TapEvent) {
        self.count(transit.from, event);
        self.report(now, transit.from, transit, event);
    }

    /// Reports a packet that arrived with a wrong checksum.
    pub(crate) fn report_corrupted(&mut self, now: Time, transit: &PacketInTransit) {
        self.count(transit.from, TapEvent::Corrupted);
        self.report(now, transit.to, transit, TapEvent::Corrupted);
    }

    fn count(&mut self, from: InterfaceId, event: TapEvent) {
        let Drops { loss, queue, police, corrupt, mtu, down } = &mut self.drops[usize::from(from.0)];
        *match event {
            TapEvent::Lost => loss,
            TapEvent::QueueFull | TapEvent::DroppedEarly => queue,
            TapEvent::Policed => police,
            TapEvent::Corrupted => corrupt,
            TapEvent::TooLong => mtu,
            TapEvent::LinkDown => down,
            TapEvent::Sent | TapEvent::Dequeued | TapEvent::Received => return,
        } += 1;
    }
}
