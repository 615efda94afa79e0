//! Coverage: which keys, options and conditions the drawn scenarios have used.

use std::collections::{BTreeMap, BTreeSet};

use crate::random_scenario::RandomScenario;

/// The keys, options and conditions of the scenarios that both worlds ran.
#[derive(Debug, Default)]
pub struct Coverage {
    /// Keys and options of the scenarios that both worlds ran, with their counts.
    keys: BTreeMap<String, Tally>,
    /// Keys and options that a world refused, each with the reason that it gave last.
    refusals: BTreeMap<String, String>,
    /// Pairs of a family (transport and workload) and a condition of the path that both worlds ran.
    pairs: BTreeSet<(String, String)>,
}

/// Counts of the scenarios that contain a key, by their results.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Tally {
    /// Number of scenarios with the key that both worlds ran.
    pub scenarios: u64,
    /// Number of scenarios with the key whose values agree.
    pub agree: u64,
    /// Number of scenarios that set this key and in which packets were compared.
    pub compared: u64,
    /// Number of scenarios with the key that have equal packets in both worlds.
    pub same: u64,
}

impl Coverage {
    /// Adds a scenario that both worlds ran. `has_same_packets` is `None` if its packets were not compared.
    pub fn add(&mut self, scenario: &RandomScenario, agrees: bool, has_same_packets: Option<bool>) {
        let options = scenario.options.iter().map(|(key, _)| format!("{}:{key}", scenario.protocol));
        let settings = scenario.settings.iter().map(|(key, _)| key.clone());
        // Each discipline counts as a key of its own.
        let discipline = scenario.value("network.discipline").and_then(|value| {
            value.split(|c: char| !c.is_alphanumeric() && c != '_').find(|word| !word.is_empty())
        });
        let discipline = discipline.map(|name| format!("network.discipline = {name}"));
        for key in options.chain(settings).chain(discipline) {
            let tally = self.keys.entry(key).or_default();
            tally.scenarios += 1;
            tally.agree += u64::from(agrees);
            tally.compared += u64::from(has_same_packets.is_some());
            tally.same += u64::from(has_same_packets == Some(true));
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

    /// Records that a world refused a key or an option together with the rest of a scenario.
    pub fn record_refusal(&mut self, key: String, problem: String) {
        self.refusals.insert(key, problem);
    }

    /// Returns the keys and options that both worlds ran, with their counts.
    pub fn tallies(&self) -> impl Iterator<Item = (&str, Tally)> {
        self.keys.iter().map(|(key, tally)| (key.as_str(), *tally))
    }

    /// Returns the number of keys and options that both worlds ran.
    pub fn key_count(&self) -> usize {
        // All disciplines count as one key, `network.discipline`.
        self.keys.keys().filter(|key| !key.contains(" = ")).count()
    }

    /// Returns the keys and options that were refused in every scenario, with the reason.
    pub fn refused(&self) -> impl Iterator<Item = (&str, &str)> {
        let never = self.refusals.iter().filter(|(key, _)| !self.keys.contains_key(*key));
        never.map(|(key, problem)| (key.as_str(), problem.as_str()))
    }

    /// Returns the number of combinations of a family and a network condition that both worlds ran.
    pub fn pair_count(&self) -> usize {
        self.pairs.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_are_counted_by_key_and_by_discipline() {
        let scenario = |discipline: &str| RandomScenario {
            name: String::new(),
            protocol: "tcp".to_owned(),
            options: vec![("ecn".to_owned(), "true".to_owned())],
            assumed: Vec::new(),
            settings: vec![("network.discipline".to_owned(), discipline.to_owned())],
        };
        let mut coverage = Coverage::default();
        coverage.add(&scenario("{ fq_codel = { ecn = true } }"), true, Some(false));
        coverage.add(&scenario("\"pie\""), false, None);
        let tallies: Vec<_> = coverage
            .tallies()
            .map(|(key, tally)| (key, [tally.scenarios, tally.agree, tally.compared, tally.same]))
            .collect();
        let due = [
            ("network.discipline", [2, 1, 1, 0]),
            ("network.discipline = fq_codel", [1, 1, 1, 0]),
            ("network.discipline = pie", [1, 0, 0, 0]),
            ("tcp:ecn", [2, 1, 1, 0]),
        ];
        assert_eq!(tallies, due);
    }
}
