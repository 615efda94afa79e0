//! Draws connection IDs from the run's seed.

use std::time::Duration;

use hol_base::Rng;
use hol_wire::quic::CONNECTION_ID_OCTETS;
use quinn_proto::{ConnectionId, ConnectionIdGenerator};

/// Generates random connection IDs.
#[derive(Debug, Clone)]
pub(crate) struct ConnectionIds(pub(crate) Rng);

impl ConnectionIdGenerator for ConnectionIds {
    fn generate_cid(&mut self) -> ConnectionId {
        ConnectionId::new(&self.0.next_u64().to_be_bytes())
    }

    fn cid_len(&self) -> usize {
        CONNECTION_ID_OCTETS
    }

    fn cid_lifetime(&self) -> Option<Duration> {
        None
    }
}
