//! How much of what can be said was drawn.

use std::collections::{BTreeMap, BTreeSet};

use crate::drawn::Drawn;

/// What was drawn, and how often both worlds ran it.
#[derive(Debug, Default)]
pub struct Coverage {
    /// By key or option: scenarios that both worlds ran with it, and those that one refused.
    keys: BTreeMap<String, (u64, u64)>,
    /// Pairs of a transport with its workload and what happened on the path.
    pairs: BTreeSet<(String, String)>,
}

impl Coverage {
    /// Counts a scenario.
    pub fn add(&mut self, drawn: &Drawn, is_judged: bool, is_refused: bool) {
        let options = drawn.options.iter().map(|(key, _)| format!("{}:{key}", drawn.protocol));
        for key in options.chain(drawn.settings.iter().map(|(key, _)| key.clone())) {
            let (ran, refused) = self.keys.entry(key).or_default();
            *ran += u64::from(is_judged);
            *refused += u64::from(is_refused);
        }
        if is_judged {
            let conditions = drawn.settings.iter().filter(|(key, _)| key.starts_with("network."));
            let usual = ["network.delay", "network.rate"];
            let mut condition = "no loss".to_owned();
            for (key, value) in conditions.filter(|(key, _)| !usual.contains(&key.as_str())) {
                let scripted = value.contains("drop =");
                condition = if scripted { "scripted loss".to_owned() } else { key.clone() };
                self.pairs.insert((drawn.family(), condition.clone()));
            }
            self.pairs.insert((drawn.family(), condition));
        }
    }

    /// Keys and options that both worlds ran, with how often.
    pub fn ran(&self) -> impl Iterator<Item = (&str, u64)> {
        self.keys.iter().filter(|(_, (ran, _))| *ran > 0).map(|(key, (ran, _))| (key.as_str(), *ran))
    }

    /// Keys and options that were only refused.
    pub fn refused(&self) -> impl Iterator<Item = &str> {
        self.keys.iter().filter(|(_, (ran, _))| *ran == 0).map(|(key, _)| key.as_str())
    }

    /// How many pairs of family and condition were run.
    pub fn pairs(&self) -> usize {
        self.pairs.len()
    }
}
