//! How much of what can be said was drawn.

use std::collections::{BTreeMap, BTreeSet};

use crate::drawn::Drawn;

/// What was drawn, and how often both worlds ran it.
#[derive(Debug, Default)]
pub struct Coverage {
    /// Scenarios that both worlds ran, by key or option.
    keys: BTreeMap<String, u64>,
    /// Why a key or an option was refused when it was drawn last.
    refused: BTreeMap<String, String>,
    /// Pairs of a transport with its workload and what happened on the path.
    pairs: BTreeSet<(String, String)>,
}

impl Coverage {
    /// Counts a scenario that both worlds ran.
    pub fn add(&mut self, drawn: &Drawn) {
        let options = drawn.options.iter().map(|(key, _)| format!("{}:{key}", drawn.protocol));
        for key in options.chain(drawn.settings.iter().map(|(key, _)| key.clone())) {
            *self.keys.entry(key).or_default() += 1;
        }
        let conditions = drawn.settings.iter().filter(|(key, _)| key.starts_with("network."));
        let mut conditions: Vec<&str> = conditions
            .filter(|(key, _)| !["network.delay", "network.rate"].contains(&key.as_str()))
            .map(|(key, value)| if value.contains("drop =") { "scripted loss" } else { key.as_str() })
            .collect();
        if conditions.is_empty() {
            conditions.push("no loss");
        }
        self.pairs.extend(conditions.into_iter().map(|condition| (drawn.family(), condition.to_owned())));
    }

    /// Remembers that a key or an option was refused beside what else a scenario says.
    pub fn refuse(&mut self, key: String, problem: String) {
        self.refused.insert(key, problem);
    }

    /// Keys and options that both worlds ran, with how often.
    pub fn ran(&self) -> impl Iterator<Item = (&str, u64)> {
        self.keys.iter().map(|(key, ran)| (key.as_str(), *ran))
    }

    /// Keys and options that were refused whenever they were drawn, and why.
    pub fn refused(&self) -> impl Iterator<Item = (&str, &str)> {
        let never = self.refused.iter().filter(|(key, _)| !self.keys.contains_key(*key));
        never.map(|(key, problem)| (key.as_str(), problem.as_str()))
    }

    /// How many pairs of family and condition were run.
    pub fn pairs(&self) -> usize {
        self.pairs.len()
    }
}
