//! Limits of concurrent work. Excess requests are rejected at once instead of waiting.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use tokio::sync::{OwnedSemaphorePermit, Semaphore, SemaphorePermit};

use crate::refusal::Refusal;

/// Maximum number of requests that are handled at a time.
const MAX_REQUESTS: usize = 512;
/// Maximum number of expensive requests that are handled at a time.
const MAX_EXPENSIVE: usize = 16;
/// Maximum number of open event streams of a user, for several pages and programs.
const MAX_STREAMS: u32 = 64;

/// Limits of concurrent requests, of expensive ones such as parsing a text or checking a password, and of event streams.
#[derive(Debug)]
pub struct ConcurrencyLimits {
    requests: Semaphore,
    expensive: Arc<Semaphore>,
    streams: Streams,
}

/// Number of open event streams of each user.
type Streams = Arc<Mutex<BTreeMap<i64, u32>>>;

/// Permission for an open event stream of a user; ends when dropped.
#[derive(Debug)]
pub struct StreamPermit(Streams, i64);

impl Drop for StreamPermit {
    fn drop(&mut self) {
        let mut streams = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(count) = streams.get_mut(&self.1) {
            *count -= 1;
        }
        streams.retain(|_, count| *count > 0);
    }
}

impl Default for ConcurrencyLimits {
    fn default() -> Self {
        Self {
            requests: Semaphore::new(MAX_REQUESTS),
            expensive: Arc::new(Semaphore::new(MAX_EXPENSIVE)),
            streams: Arc::default(),
        }
    }
}

impl ConcurrencyLimits {
    /// Admits a request, unless the server handles too many.
    pub fn admit_request(&self) -> Result<SemaphorePermit<'_>, Refusal> {
        let permit = self.requests.try_acquire();
        permit.map_err(|_| {
            Refusal::busy(format!("the server handles {MAX_REQUESTS} requests, which is the maximum"), 1)
        })
    }

    /// Admits an expensive request, unless the server handles too many.
    pub fn admit_expensive(&self) -> Result<OwnedSemaphorePermit, Refusal> {
        let permit = self.expensive.clone().try_acquire_owned();
        permit.map_err(|_| {
            Refusal::busy(
                format!("the server handles {MAX_EXPENSIVE} expensive requests, which is the maximum"),
                1,
            )
        })
    }
    /// Admits an event stream of `user`, unless the user has too many.
    pub fn admit_stream(&self, user: i64) -> Result<StreamPermit, Refusal> {
        let mut streams = self.streams.lock().unwrap_or_else(PoisonError::into_inner);
        let count = streams.entry(user).or_default();
        if *count >= MAX_STREAMS {
            return Err(Refusal::too_many(
                format!("this account has {MAX_STREAMS} open event streams, which is the maximum"),
                10,
            ));
        }
        *count += 1;
        Ok(StreamPermit(self.streams.clone(), user))
    }
}
