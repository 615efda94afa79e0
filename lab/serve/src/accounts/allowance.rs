//! Rate limits: a number of events at once, then one event per interval.

use std::collections::BTreeMap;

/// Maximum number of remembered keys; a new key replaces the one whose last event is the oldest.
const KEYS: usize = 4096;

/// A rate limit that is the same for every key, and the events that count against it.
#[derive(Debug)]
pub struct Allowance {
    max: u32,
    seconds_each: i64,
    /// For each key, the number of events that count, and the time of the last one in seconds.
    used: BTreeMap<String, (u32, i64)>,
}

impl Allowance {
    /// Allows `max` events of each key at once, and another one after every `seconds_each` seconds.
    pub const fn new(max: u32, seconds_each: i64) -> Self {
        Self { max, seconds_each, used: BTreeMap::new() }
    }

    /// Counts an event of `key`; `Err` with the seconds until the next event is allowed.
    pub fn take(&mut self, key: &str, now: i64) -> Result<(), u32> {
        let (used, last) = self.used.get(key).copied().unwrap_or((0, now));
        let passed = now - last;
        let left = used.saturating_sub(u32::try_from(passed / self.seconds_each).unwrap_or(u32::MAX));
        if left >= self.max {
            return Err((self.seconds_each - passed % self.seconds_each) as u32);
        }
        let oldest = || self.used.iter().min_by_key(|(_, (_, last))| *last).map(|(key, _)| key.clone());
        if self.used.len() >= KEYS
            && !self.used.contains_key(key)
            && let Some(oldest) = oldest()
        {
            self.used.remove(&oldest);
        }
        self.used.insert(key.to_owned(), (left + 1, now));
        Ok(())
    }

    /// Removes one event of `key` from the count.
    pub fn give_back(&mut self, key: &str) {
        if let Some((used, _)) = self.used.get_mut(key) {
            *used = used.saturating_sub(1);
        }
    }

    /// Removes all events of `key` from the count.
    pub fn forget(&mut self, key: &str) {
        self.used.remove(key);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_uses_it_up_waits_and_nobody_else() {
        let mut allowance = Allowance::new(8, 30);
        for _ in 0..8 {
            assert_eq!(allowance.take("ann", 1000), Ok(()));
        }
        assert_eq!((allowance.take("ann", 1000), allowance.take("bob", 1000)), (Err(30), Ok(())));
        assert_eq!(allowance.take("ann", 1029), Err(1), "a refusal does not count");
        assert_eq!((allowance.take("ann", 1030), allowance.take("ann", 1031)), (Ok(()), Err(29)));
        allowance.give_back("ann");
        assert_eq!((allowance.take("ann", 1031), allowance.take("ann", 1031)), (Ok(()), Err(30)));
        allowance.forget("ann");
        assert_eq!(allowance.take("ann", 1031), Ok(()));
    }

    #[test]
    fn keys_that_come_once_do_not_fill_the_memory() {
        let mut allowance = Allowance::new(8, 30);
        (0..2 * KEYS as i64).for_each(|i| allowance.take(&i.to_string(), i).unwrap());
        assert_eq!(allowance.used.len(), KEYS);
    }
}
