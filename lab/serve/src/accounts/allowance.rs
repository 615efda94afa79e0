//! Limits how often something may happen: so many times at once, then one each time that passes.

use std::collections::BTreeMap;

/// Maximum keys remembered; the oldest is forgotten for a new one.
const KEYS: usize = 4096;

/// A limit for each key, and what has happened.
#[derive(Debug)]
pub struct Allowance {
    max: u32,
    seconds_each: i64,
    /// How often, and the last time.
    used: BTreeMap<String, (u32, i64)>,
}

impl Allowance {
    /// Allows each key `max` at once and another after each `seconds_each`.
    pub const fn new(max: u32, seconds_each: i64) -> Self {
        Self { max, seconds_each, used: BTreeMap::new() }
    }

    /// Counts one for `key`; `Err` with the seconds until it may.
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

    /// Takes back one that should not count.
    pub fn give_back(&mut self, key: &str) {
        if let Some((used, _)) = self.used.get_mut(key) {
            *used = used.saturating_sub(1);
        }
    }

    /// Takes back all.
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
