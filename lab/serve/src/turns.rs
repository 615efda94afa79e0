//! Limits of concurrent work: excess requests are rejected at once instead of waiting.

use std::sync::Arc;

use tokio::sync::{OwnedSemaphorePermit, Semaphore, SemaphorePermit};

use crate::refusal::Refusal;

const REQUESTS: usize = 512;
const COSTLY: usize = 16;

/// Limits of requests, and of expensive ones: parsing a text, checking a password.
#[derive(Debug)]
pub struct Turns {
    requests: Semaphore,
    costly: Arc<Semaphore>,
}

impl Default for Turns {
    fn default() -> Self {
        Self { requests: Semaphore::new(REQUESTS), costly: Arc::new(Semaphore::new(COSTLY)) }
    }
}

impl Turns {
    /// A turn for a request.
    pub fn request(&self) -> Result<SemaphorePermit<'_>, Refusal> {
        let turn = self.requests.try_acquire();
        turn.map_err(|_| Refusal::busy(format!("{REQUESTS} requests are under way"), 1))
    }

    /// A turn for one that costs much.
    pub fn costly(&self) -> Result<OwnedSemaphorePermit, Refusal> {
        let turn = self.costly.clone().try_acquire_owned();
        turn.map_err(|_| Refusal::busy(format!("{COSTLY} such requests are under way"), 1))
    }
}
