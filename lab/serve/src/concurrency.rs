//! Limits of concurrent work. Excess requests are rejected at once, or wait in queues of limited length.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use tokio::sync::{AcquireError, OwnedSemaphorePermit, Semaphore, SemaphorePermit};

use crate::refusal::Refusal;

/// Maximum number of requests that are handled at a time.
const MAX_REQUESTS: usize = 512;
/// Maximum number of requests for computations over texts that are handled or wait at a time.
const MAX_EXPENSIVE: usize = 16;
/// Maximum number of requests for computations over texts that are handled or wait for one user at a time.
const MAX_EXPENSIVE_OF_USER: u32 = 8;
/// Maximum number of passwords that are hashed at a time; each takes 19 MiB of memory.
const MAX_HASHES: usize = 4;
/// Maximum number of requests that wait to hash a password.
const MAX_WAITING_HASHES: usize = 64;
/// Maximum number of large bodies that are received and parsed at a time.
const MAX_LARGE_BODIES: usize = 8;
/// Maximum number of large bodies of a user that are received, parsed or wait at a time.
const MAX_LARGE_BODIES_OF_USER: u32 = 4;
/// Maximum number of long answers that are in memory at a time, before they are on the disk.
const MAX_LONG_ANSWERS: usize = 8;
/// Maximum number of open event streams of a user, for several pages and programs.
const MAX_STREAMS: u32 = 64;
/// Maximum number of logins of a name from a network that wait because of wrong passwords.
const MAX_DELAYED_LOGINS: u32 = 4;
/// Maximum number of all logins that wait because of wrong passwords.
const MAX_ALL_DELAYED_LOGINS: usize = 128;

/// Limits of what may happen at the same time: requests, large bodies, long answers, expensive work such as
/// parsing a text or checking a password, event streams, and delayed logins.
#[derive(Debug)]
pub struct ConcurrencyLimits {
    requests: Semaphore,
    expensive: Arc<Semaphore>,
    expensive_of_users: KeyedLimit<i64>,
    hashes: Arc<Semaphore>,
    waiting_hashes: Semaphore,
    large_bodies: Arc<Semaphore>,
    long_answers: Arc<Semaphore>,
    large_bodies_of_users: KeyedLimit<i64>,
    streams: KeyedLimit<i64>,
    delayed_logins: Arc<Semaphore>,
    delayed_logins_of_names: KeyedLimit<String>,
}

/// A limit of concurrent permits for each key, such as a user.
#[derive(Debug)]
struct KeyedLimit<K> {
    max: u32,
    counts: Arc<Mutex<BTreeMap<K, u32>>>,
}

/// A permit for a key; ends when dropped.
#[derive(Debug)]
pub struct KeyedPermit<K: Ord>(Arc<Mutex<BTreeMap<K, u32>>>, K);

impl<K: Ord> Drop for KeyedPermit<K> {
    fn drop(&mut self) {
        let mut counts = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(count) = counts.get_mut(&self.1) {
            *count -= 1;
        }
        counts.retain(|_, count| *count > 0);
    }
}

impl<K: Ord + Clone> KeyedLimit<K> {
    fn new(max: u32) -> Self {
        Self { max, counts: Arc::default() }
    }

    /// Returns a permit, unless the key has the maximum number.
    fn admit(&self, key: &K) -> Option<KeyedPermit<K>> {
        let mut counts = self.counts.lock().unwrap_or_else(PoisonError::into_inner);
        let count = counts.entry(key.clone()).or_default();
        if *count >= self.max {
            return None;
        }
        *count += 1;
        Some(KeyedPermit(self.counts.clone(), key.clone()))
    }
}

/// Permission of a user for an expensive request or a large body; ends when dropped.
#[derive(Debug)]
pub struct UserPermit(
    #[expect(dead_code, reason = "dropping the value releases the permits")]
    (Option<KeyedPermit<i64>>, OwnedSemaphorePermit),
);

/// Permission for a login to wait; ends when dropped.
#[derive(Debug)]
pub struct DelayPermit(
    #[expect(dead_code, reason = "dropping the value releases the permits")]
    (KeyedPermit<String>, OwnedSemaphorePermit),
);

impl Default for ConcurrencyLimits {
    fn default() -> Self {
        Self {
            requests: Semaphore::new(MAX_REQUESTS),
            expensive: Arc::new(Semaphore::new(MAX_EXPENSIVE)),
            expensive_of_users: KeyedLimit::new(MAX_EXPENSIVE_OF_USER),
            hashes: Arc::new(Semaphore::new(MAX_HASHES)),
            waiting_hashes: Semaphore::new(MAX_WAITING_HASHES),
            large_bodies: Arc::new(Semaphore::new(MAX_LARGE_BODIES)),
            long_answers: Arc::new(Semaphore::new(MAX_LONG_ANSWERS)),
            large_bodies_of_users: KeyedLimit::new(MAX_LARGE_BODIES_OF_USER),
            streams: KeyedLimit::new(MAX_STREAMS),
            delayed_logins: Arc::new(Semaphore::new(MAX_ALL_DELAYED_LOGINS)),
            delayed_logins_of_names: KeyedLimit::new(MAX_DELAYED_LOGINS),
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

    /// Admits an expensive request, unless the server or the user has too many. `user` is `None` for the owner of the
    /// machine.
    pub fn admit_expensive(&self, user: Option<i64>) -> Result<UserPermit, Refusal> {
        let own = admit_user(&self.expensive_of_users, user, "requests that read texts")?;
        let permit = self.expensive.clone().try_acquire_owned().map_err(|_| {
            Refusal::busy(
                format!("the server handles {MAX_EXPENSIVE} expensive requests, which is the maximum"),
                1,
            )
        })?;
        Ok(UserPermit((own, permit)))
    }

    /// Waits until fewer than `MAX_HASHES` passwords are being hashed, unless too many requests wait.
    pub async fn admit_hash(&self) -> Result<OwnedSemaphorePermit, Refusal> {
        let _waiting = self.waiting_hashes.try_acquire().map_err(|_| {
            Refusal::busy(format!("{MAX_WAITING_HASHES} logins wait, which is the maximum"), 1)
        })?;
        self.hashes.clone().acquire_owned().await.map_err(closed)
    }

    /// Waits until another large body may be received. `user` is `None` for the owner of the machine.
    pub async fn admit_large_body(&self, user: Option<i64>) -> Result<UserPermit, Refusal> {
        let own = admit_user(&self.large_bodies_of_users, user, "large texts or files")?;
        Ok(UserPermit((own, self.large_bodies.clone().acquire_owned().await.map_err(closed)?)))
    }

    /// Waits until another long answer may be in memory.
    pub async fn admit_long_answer(&self) -> Result<OwnedSemaphorePermit, Refusal> {
        self.long_answers.clone().acquire_owned().await.map_err(closed)
    }

    /// Admits an event stream of `user`, unless the user has too many.
    pub fn admit_stream(&self, user: i64) -> Result<KeyedPermit<i64>, Refusal> {
        self.streams.admit(&user).ok_or_else(|| {
            Refusal::too_many(
                format!("this account has {MAX_STREAMS} open event streams, which is the maximum"),
                10,
            )
        })
    }

    /// Lets a login of a name from a network wait for `seconds`, unless too many wait.
    pub fn admit_delay(&self, name: &str, seconds: u32) -> Result<DelayPermit, Refusal> {
        let refused = || Refusal::too_many("too many wrong passwords", seconds);
        let own = self.delayed_logins_of_names.admit(&name.to_owned()).ok_or_else(refused)?;
        let all = self.delayed_logins.clone().try_acquire_owned().map_err(|_| refused())?;
        Ok(DelayPermit((own, all)))
    }
}

/// Admits one more of a user's concurrent `what` (a noun in the plural), unless there are too many.
fn admit_user(
    limit: &KeyedLimit<i64>,
    user: Option<i64>,
    what: &str,
) -> Result<Option<KeyedPermit<i64>>, Refusal> {
    let Some(user) = user else { return Ok(None) };
    let problem = || format!("this account has {} concurrent {what}, which is the maximum", limit.max);
    limit.admit(&user).map(Some).ok_or_else(|| Refusal::too_many(problem(), 1))
}

fn closed(error: AcquireError) -> Refusal {
    Refusal::internal(error)
}
