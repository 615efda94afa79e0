//! Rate limits: a number of events at once, then one event per interval.

use std::collections::BTreeMap;

/// Maximum number of remembered keys; a new key replaces the key whose events stop counting first.
const MAX_KEYS: usize = 4096;
/// Maximum number of events that are counted beyond a limit.
const MAX_EXCESS: u32 = 6;

/// A rate limit that is the same for every key, and the events that count against it.
#[derive(Debug)]
pub struct RateLimit {
    /// Maximum number of events that count at a time.
    max: u32,
    /// The interval, in seconds, after which one event no longer counts.
    seconds_each: i64,
    /// For each key, the time in seconds from which none of its events counts any more.
    clear_at: BTreeMap<String, i64>,
}

impl RateLimit {
    /// Allows `max` events of each key at once, and one more event after every `seconds_each` seconds.
    pub const fn new(max: u32, seconds_each: i64) -> Self {
        Self { max, seconds_each, clear_at: BTreeMap::new() }
    }

    /// Counts an event of `key`; `Err` with the seconds until the next event is allowed.
    pub fn count_event(&mut self, key: &str, now: i64) -> Result<(), u32> {
        let clear_at = self.clear_time(key, now, self.max);
        let wait = clear_at - (i64::from(self.max) - 1) * self.seconds_each - now;
        if wait > 0 {
            return Err(wait as u32);
        }
        self.set(key, clear_at + self.seconds_each);
        Ok(())
    }

    /// Counts an event of `key` even if the limit is exceeded, but at most [`MAX_EXCESS`] events beyond the limit. Returns
    /// the number of events beyond the limit.
    pub fn count_excess_event(&mut self, key: &str, now: i64) -> u32 {
        let max = self.max + MAX_EXCESS;
        let clear_at = self.clear_time(key, now, max - 1) + self.seconds_each;
        self.set(key, clear_at);
        let count = (clear_at - now + self.seconds_each - 1) / self.seconds_each;
        (count - i64::from(self.max)).max(0) as u32
    }

    /// Returns the time from which no event of `key` counts any more. At most `max` events count, even if the clock has
    /// been set back.
    fn clear_time(&mut self, key: &str, now: i64, max: u32) -> i64 {
        let latest = now + i64::from(max) * self.seconds_each;
        self.clear_at.get_mut(key).map_or(now, |at| {
            *at = (*at).clamp(now, latest);
            *at
        })
    }

    fn set(&mut self, key: &str, clear_at: i64) {
        let oldest = || self.clear_at.iter().min_by_key(|(_, at)| **at).map(|(key, _)| key.clone());
        if self.clear_at.len() >= MAX_KEYS
            && !self.clear_at.contains_key(key)
            && let Some(oldest) = oldest()
        {
            self.clear_at.remove(&oldest);
        }
        self.clear_at.insert(key.to_owned(), clear_at);
    }

    /// Removes one event of `key` from the count.
    pub fn uncount_event(&mut self, key: &str) {
        if let Some(at) = self.clear_at.get_mut(key) {
            *at -= self.seconds_each;
        }
    }

    /// Removes all events of `key` from the count.
    pub fn reset(&mut self, key: &str) {
        self.clear_at.remove(key);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exhausted_limit_blocks_only_its_own_key() {
        let mut rate_limit = RateLimit::new(8, 30);
        for _ in 0..8 {
            assert_eq!(rate_limit.count_event("ann", 1000), Ok(()));
        }
        assert_eq!(
            (rate_limit.count_event("ann", 1000), rate_limit.count_event("bob", 1000)),
            (Err(30), Ok(()))
        );
        assert_eq!(rate_limit.count_event("ann", 1029), Err(1), "a refusal does not count");
        assert_eq!(
            (rate_limit.count_event("ann", 1030), rate_limit.count_event("ann", 1031)),
            (Ok(()), Err(29))
        );
        rate_limit.uncount_event("ann");
        assert_eq!(
            (rate_limit.count_event("ann", 1031), rate_limit.count_event("ann", 1031)),
            (Ok(()), Err(29))
        );
        rate_limit.reset("ann");
        assert_eq!(rate_limit.count_event("ann", 1031), Ok(()));
    }

    #[test]
    fn events_slower_than_the_rate_leave_the_burst_whole() {
        let mut rate_limit = RateLimit::new(8, 30);
        for at in (0..20).map(|i| 59 * i) {
            assert_eq!(rate_limit.count_event("ann", at), Ok(()));
        }
        let burst = (0..8).map(|_| rate_limit.count_event("ann", 59 * 20));
        assert!(burst.collect::<Vec<_>>().iter().all(Result::is_ok));
    }

    #[test]
    fn clock_that_is_set_back_blocks_for_one_interval() {
        let mut rate_limit = RateLimit::new(8, 30);
        assert_eq!(rate_limit.count_event("ann", 86_400), Ok(()));
        assert_eq!(rate_limit.count_event("ann", 0), Err(30));
        assert_eq!(rate_limit.count_event("ann", 30), Ok(()));
    }

    #[test]
    fn number_of_remembered_keys_is_bounded() {
        let mut rate_limit = RateLimit::new(8, 30);
        (0..2 * MAX_KEYS as i64).for_each(|i| rate_limit.count_event(&i.to_string(), i).unwrap());
        assert_eq!(rate_limit.clear_at.len(), MAX_KEYS);
    }
}
