//! Rate limits: a number of events at once, then one event per interval.

use std::collections::BTreeMap;

/// Maximum number of remembered keys; a new key replaces the key whose last event is the oldest.
const MAX_KEYS: usize = 4096;

/// A rate limit that is the same for every key, and the events that count against it.
#[derive(Debug)]
pub struct RateLimit {
    /// Maximum number of events that count at a time.
    max: u32,
    /// The interval, in seconds, after which one event no longer counts.
    seconds_each: i64,
    /// For each key, the number of events that count, and the time of the last event in seconds.
    used: BTreeMap<String, (u32, i64)>,
}

impl RateLimit {
    /// Allows `max` events of each key at once, and one more event after every `seconds_each` seconds.
    pub const fn new(max: u32, seconds_each: i64) -> Self {
        Self { max, seconds_each, used: BTreeMap::new() }
    }

    /// Counts an event of `key`; `Err` with the seconds until the next event is allowed.
    pub fn count_event(&mut self, key: &str, now: i64) -> Result<(), u32> {
        let (used, last) = self.used.get(key).copied().unwrap_or((0, now));
        let passed = now - last;
        let left = used.saturating_sub(u32::try_from(passed / self.seconds_each).unwrap_or(u32::MAX));
        if left >= self.max {
            return Err((self.seconds_each - passed % self.seconds_each) as u32);
        }
        let oldest = || self.used.iter().min_by_key(|(_, (_, last))| *last).map(|(key, _)| key.clone());
        if self.used.len() >= MAX_KEYS
            && !self.used.contains_key(key)
            && let Some(oldest) = oldest()
        {
            self.used.remove(&oldest);
        }
        self.used.insert(key.to_owned(), (left + 1, now));
        Ok(())
    }

    /// Removes one event of `key` from the count.
    pub fn uncount_event(&mut self, key: &str) {
        if let Some((used, _)) = self.used.get_mut(key) {
            *used = used.saturating_sub(1);
        }
    }

    /// Removes all events of `key` from the count.
    pub fn reset(&mut self, key: &str) {
        self.used.remove(key);
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
            (Ok(()), Err(30))
        );
        rate_limit.reset("ann");
        assert_eq!(rate_limit.count_event("ann", 1031), Ok(()));
    }

    #[test]
    fn number_of_remembered_keys_is_bounded() {
        let mut rate_limit = RateLimit::new(8, 30);
        (0..2 * MAX_KEYS as i64).for_each(|i| rate_limit.count_event(&i.to_string(), i).unwrap());
        assert_eq!(rate_limit.used.len(), MAX_KEYS);
    }
}
