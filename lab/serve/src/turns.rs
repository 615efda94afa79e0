//! Limits of concurrent work. Excess requests are rejected at once instead of waiting.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use tokio::sync::{OwnedSemaphorePermit, Semaphore, SemaphorePermit};

use crate::refusal::Refusal;

const REQUESTS: usize = 512;
const COSTLY: usize = 16;
/// Maximum number of open event streams of a user, for several pages and programs.
const STREAMS: u32 = 64;

/// Limits of concurrent requests, of expensive ones such as parsing a text or checking a password, and of event streams.
#[derive(Debug)]
pub struct Turns {
    requests: Semaphore,
    costly: Arc<Semaphore>,
    streams: Streams,
}

/// Number of open event streams of each user.
type Streams = Arc<Mutex<BTreeMap<i64, u32>>>;

/// Permission for an open event stream of a user; ends when dropped.
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
    /// Admits a request, unless the server handles too many.
    pub fn request(&self) -> Result<SemaphorePermit<'_>, Refusal> {
        let turn = self.requests.try_acquire();
        turn.map_err(|_| {
            Refusal::busy(format!("the server handles {REQUESTS} requests, which is the maximum"), 1)
        })
    }

    /// Admits an expensive request, unless the server handles too many.
    pub fn costly(&self) -> Result<OwnedSemaphorePermit, Refusal> {
        let turn = self.costly.clone().try_acquire_owned();
        turn.map_err(|_| {
            Refusal::busy(format!("the server handles {COSTLY} expensive requests, which is the maximum"), 1)
        })
    }
    /// Admits an event stream of `user`, unless the user has too many.
    pub fn stream(&self, user: i64) -> Result<StreamTurn, Refusal> {
        let mut streams = self.streams.lock().unwrap_or_else(PoisonError::into_inner);
        let count = streams.entry(user).or_default();
        if *count >= STREAMS {
            return Err(Refusal::too_many(
                format!("this account has {STREAMS} open event streams, which is the maximum"),
                10,
            ));
        }
        *count += 1;
        Ok(StreamTurn(self.streams.clone(), user))
    }
}
