//! Limits wrong passwords per name.

use std::collections::BTreeMap;

/// Wrong passwords allowed at once, and the seconds until another is allowed.
const MOST: u32 = 8;
const SECONDS_EACH: i64 = 30;
/// Maximum names remembered; the oldest is forgotten for a new one.
const NAMES: usize = 4096;

/// Wrong attempts by name, and the time of the last one.
#[derive(Debug, Default)]
pub struct Attempts(BTreeMap<String, (u32, i64)>);

impl Attempts {
    /// Returns the seconds that `name` has to wait; `None` if it may try.
    pub fn wait(&self, name: &str, now: i64) -> Option<u32> {
        let (wrong, last) = self.0.get(name)?;
        let left = forgiven(*wrong, now - last);
        (left >= MOST).then(|| (SECONDS_EACH - (now - last) % SECONDS_EACH) as u32)
    }

    /// Counts a wrong password.
    pub fn wrong(&mut self, name: &str, now: i64) {
        let oldest = || self.0.iter().min_by_key(|(_, (_, last))| *last).map(|(name, _)| name.clone());
        if self.0.len() >= NAMES
            && !self.0.contains_key(name)
            && let Some(oldest) = oldest()
        {
            self.0.remove(&oldest);
        }
        let (wrong, last) = self.0.entry(name.to_owned()).or_insert((0, now));
        *wrong = forgiven(*wrong, now - *last) + 1;
        *last = now;
    }

    /// Forgets wrong attempts after the right password.
    pub fn right(&mut self, name: &str) {
        self.0.remove(name);
    }
}

fn forgiven(wrong: u32, seconds: i64) -> u32 {
    wrong.saturating_sub(u32::try_from(seconds / SECONDS_EACH).unwrap_or(u32::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_guesses_waits_and_nobody_else() {
        let mut attempts = Attempts::default();
        for _ in 0..MOST {
            assert_eq!(attempts.wait("ann", 1000), None);
            attempts.wrong("ann", 1000);
        }
        assert_eq!((attempts.wait("ann", 1000), attempts.wait("bob", 1000)), (Some(30), None));
        assert_eq!(attempts.wait("ann", 1030), None);
        attempts.wrong("ann", 1030);
        assert!(attempts.wait("ann", 1031).is_some());
        attempts.right("ann");
        assert_eq!(attempts.wait("ann", 1031), None);
    }

    #[test]
    fn names_that_nobody_has_do_not_fill_the_memory() {
        let mut attempts = Attempts::default();
        (0..2 * NAMES as i64).for_each(|i| attempts.wrong(&i.to_string(), i));
        assert_eq!(attempts.0.len(), NAMES);
    }
}
