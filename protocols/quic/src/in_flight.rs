//! Counts the data in flight, which quinn-proto does not expose, with a wrapper around the congestion
//! controller.

use std::any::Any;
use std::sync::Arc;
#[expect(clippy::disallowed_types, reason = "quinn-proto uses instants")]
use std::time::Instant;

use quinn_proto::congestion::{Controller, ControllerFactory, ControllerMetrics};
use quinn_proto::{Connection, RttEstimator};

/// Creates congestion controllers that count the data in flight. Each wraps a controller that another factory
/// creates.
pub(crate) struct InFlightCounterFactory(pub(crate) Arc<dyn ControllerFactory + Send + Sync>);

/// A congestion controller that counts the data in flight.
struct InFlightCounter {
    controller: Box<dyn Controller>,
    in_flight: u64,
}

/// Returns the number of octets in flight. RFC 9002 section 2. The value is exact after each acknowledgment;
/// between acknowledgments, packets that contain only acknowledgments also count.
pub(crate) fn in_flight(connection: &Connection) -> Option<u64> {
    let counted = connection.congestion_state().clone_box().into_any().downcast::<InFlightCounter>().ok()?;
    Some(counted.in_flight)
}

#[expect(clippy::disallowed_types, reason = "quinn-proto uses instants")]
impl ControllerFactory for InFlightCounterFactory {
    fn build(self: Arc<Self>, now: Instant, mtu: u16) -> Box<dyn Controller> {
        Box::new(InFlightCounter { controller: Arc::clone(&self.0).build(now, mtu), in_flight: 0 })
    }
}

#[expect(clippy::disallowed_types, reason = "quinn-proto uses instants")]
impl Controller for InFlightCounter {
    fn on_sent(&mut self, now: Instant, octets: u64, last_packet_number: u64) {
        self.in_flight += octets;
        self.controller.on_sent(now, octets, last_packet_number);
    }

    fn on_ack(&mut self, now: Instant, sent: Instant, octets: u64, limited: bool, rtt: &RttEstimator) {
        self.controller.on_ack(now, sent, octets, limited, rtt);
    }

    fn on_end_acks(&mut self, now: Instant, in_flight: u64, limited: bool, largest_acked: Option<u64>) {
        self.in_flight = in_flight;
        self.controller.on_end_acks(now, in_flight, limited, largest_acked);
    }

    fn on_congestion_event(&mut self, now: Instant, sent: Instant, is_persistent: bool, lost: u64) {
        self.in_flight = self.in_flight.saturating_sub(lost);
        self.controller.on_congestion_event(now, sent, is_persistent, lost);
    }

    fn on_mtu_update(&mut self, mtu: u16) {
        self.controller.on_mtu_update(mtu);
    }

    fn window(&self) -> u64 {
        self.controller.window()
    }

    fn metrics(&self) -> ControllerMetrics {
        self.controller.metrics()
    }

    fn clone_box(&self) -> Box<dyn Controller> {
        Box::new(Self { controller: self.controller.clone_box(), in_flight: self.in_flight })
    }

    fn initial_window(&self) -> u64 {
        self.controller.initial_window()
    }

    fn into_any(self: Box<Self>) -> Box<dyn Any> {
        self
    }
}
