//! Limits of concurrent work: excess requests are rejected at once instead of waiting.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use tokio::sync::{OwnedSemaphorePermit, Semaphore, SemaphorePermit};

use crate::refusal::Refusal;

const REQUESTS: usize = 512;
const COSTLY: usize = 16;
/// Streams of a person: some browsers with some pages, and programs.
const STREAMS: u32 = 64;

/// Limits of requests, and of expensive ones: parsing a text, checking a password.
#[derive(Debug)]
pub struct Turns {
    requests: Semaphore,
    costly: Arc<Semaphore>,
    streams: Streams,
}

/// The open streams of each user.
type Streams = Arc<Mutex<BTreeMap<i64, u32>>>;

/// A stream of a user, while it is open.
#[derive(Debug)]
pub struct StreamTurn(Streams, i64);

impl Drop for StreamTurn {
    fn drop(&mut self) {
        let mut streams = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(count) = streams.get_mut(&self.1) {
            *count -= 1;
        }
        streams.retain(|_, count| *count > 0);
    }
}

impl Default for Turns {
    fn default() -> Self {
        Self {
            requests: Semaphore::new(REQUESTS),
            costly: Arc::new(Semaphore::new(COSTLY)),
            streams: Arc::default(),
        }
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
    /// A turn for a stream of `user`.
    pub fn stream(&self, user: i64) -> Result<StreamTurn, Refusal> {
        let mut streams = self.streams.lock().unwrap_or_else(PoisonError::into_inner);
        let count = streams.entry(user).or_default();
        if *count >= STREAMS {
            return Err(Refusal::too_many(format!("{STREAMS} streams of this account are open"), 10));
        }
        *count += 1;
        Ok(StreamTurn(self.streams.clone(), user))
    }
}
