//! How much of what can be said was scenario.

use std::collections::{BTreeMap, BTreeSet};

use crate::random_scenario::RandomScenario;

/// What was drawn, and how often both worlds ran it.
#[derive(Debug, Default)]
pub struct Coverage {
    /// Keys and options with which both worlds ran a scenario.
    keys: BTreeSet<String>,
    /// Why a key or an option was refused when it was drawn last.
    refused: BTreeMap<String, String>,
    /// Pairs of a transport with its workload and what happened on the path.
    pairs: BTreeSet<(String, String)>,
}

impl Coverage {
    /// Counts a scenario that both worlds ran.
    pub fn add(&mut self, scenario: &RandomScenario) {
        let options = scenario.options.iter().map(|(key, _)| format!("{}:{key}", scenario.protocol));
        for key in options.chain(scenario.settings.iter().map(|(key, _)| key.clone())) {
            self.keys.insert(key);
        }
        let conditions = scenario.settings.iter().filter(|(key, _)| key.starts_with("network."));
        let mut conditions: Vec<&str> = conditions
            .filter(|(key, _)| !["network.delay", "network.rate"].contains(&key.as_str()))
            .map(|(key, value)| if value.contains("drop =") { "scripted loss" } else { key.as_str() })
            .collect();
        if conditions.is_empty() {
            conditions.push("no loss");
        }
        self.pairs.extend(conditions.into_iter().map(|condition| (scenario.family(), condition.to_owned())));
    }

    /// Remembers that a key or an option was refused beside what else a scenario says.
    pub fn refuse(&mut self, key: String, problem: String) {
        self.refused.insert(key, problem);
    }

    /// How many keys and options both worlds ran.
    pub fn keys(&self) -> usize {
        self.keys.len()
    }

    /// Keys and options that were refused whenever they were drawn, and why.
    pub fn refused(&self) -> impl Iterator<Item = (&str, &str)> {
        let never = self.refused.iter().filter(|(key, _)| !self.keys.contains(*key));
        never.map(|(key, problem)| (key.as_str(), problem.as_str()))
    }

    /// How many pairs of family and condition were run.
    pub fn pairs(&self) -> usize {
        self.pairs.len()
    }
}
