//! Coverage: which keys, options and conditions the drawn scenarios have used.

use std::collections::{BTreeMap, BTreeSet};

use crate::random_scenario::RandomScenario;

/// The keys, options and conditions of the scenarios that both worlds ran.
#[derive(Debug, Default)]
pub struct Coverage {
    /// Keys and options of the scenarios that both worlds ran.
    keys: BTreeSet<String>,
    /// Keys and options that were refused, with the latest reason.
    refused: BTreeMap<String, String>,
    /// Pairs of a family (transport and workload) and a condition of the path.
    pairs: BTreeSet<(String, String)>,
}

impl Coverage {
    /// Adds a scenario that both worlds ran.
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

    /// Notes that a key or an option was refused in combination with the rest of a scenario.
    pub fn refuse(&mut self, key: String, problem: String) {
        self.refused.insert(key, problem);
    }

    /// Returns how many keys and options both worlds ran.
    pub fn keys(&self) -> usize {
        self.keys.len()
    }

    /// Returns the keys and options that were refused whenever they were drawn, with the reason.
    pub fn refused(&self) -> impl Iterator<Item = (&str, &str)> {
        let never = self.refused.iter().filter(|(key, _)| !self.keys.contains(*key));
        never.map(|(key, problem)| (key.as_str(), problem.as_str()))
    }

    /// Returns how many pairs of family and condition both worlds ran.
    pub fn pairs(&self) -> usize {
        self.pairs.len()
    }
}
