//! Timers, all of them quinn-proto's. RFC 9002 section 6.

use hol_base::Time;

use crate::packet_form::PacketForm;
use crate::{Endpoint, clock};

impl<S: PacketForm> Endpoint<S> {
    /// Handles timers that are due. Returns whether the next packets may be probes, because no loss was
    /// detected. RFC 9002 section 6.2.4.
    pub(crate) fn handle_due_timers(&mut self, now: Time) -> bool {
        let due = self.deadline().is_some_and(|at| at <= now);
        let Some((_, connection)) = self.connection.as_mut().filter(|_| due) else { return false };
        let before = connection.stats();
        connection.handle_timeout(clock::instant(now));
        let after = connection.stats();
        self.statistics.congestion_events = after.path.congestion_events;
        before.path.lost_packets == after.path.lost_packets
    }
}
