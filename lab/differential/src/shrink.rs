//! Finds the smallest scenario in which two worlds still differ.

use hol_scenario::World;

use crate::compare::{Comparison, Verdict, compare};
use crate::random_scenario::RandomScenario;

/// Maximum number of scenarios that shrinking tries.
const MAX_SCENARIOS: usize = 40;

/// Finds a smaller scenario that still differs between the worlds in the same way (in its values, or only in its
/// packets), and returns its comparison. It removes settings and messages one after the other.
pub fn shrink(found: Comparison, first: &dyn World, second: &dyn World) -> Comparison {
    let wanted = kind(&found.verdict);
    let mut smallest = found;
    let mut tries = 0;
    loop {
        let before = smallest.scenario.clone();
        for smaller in reductions(&before) {
            if tries == MAX_SCENARIOS {
                return smallest;
            }
            tries += 1;
            let comparison = compare(&smaller, first, second);
            if kind(&comparison.verdict) == wanted {
                smallest = comparison;
                break;
            }
        }
        if smallest.scenario == before {
            return smallest;
        }
    }
}

/// Returns what must stay the same when a scenario is made smaller: the method of comparison, whether the values agree,
/// and whether the packets differ.
fn kind(verdict: &Verdict) -> (std::mem::Discriminant<Verdict>, bool, bool) {
    (std::mem::discriminant(verdict), verdict.agrees(), verdict.difference().is_some())
}

/// Returns scenarios that have one setting or option less than this one, or fewer messages; the largest reductions come
/// first.
fn reductions(scenario: &RandomScenario) -> Vec<RandomScenario> {
    let mut all = Vec::new();
    if let Some(messages) = scenario.value("messages").and_then(|text| text.parse::<u64>().ok()) {
        let counts = [messages / 4, messages / 2, messages * 3 / 4, messages - 1];
        all.extend(counts.into_iter().filter(|count| *count > 0 && *count < messages).map(|count| {
            let mut fewer = scenario.clone();
            let setting = fewer.settings.iter_mut().find(|(key, _)| key == "messages");
            setting.into_iter().for_each(|(_, value)| *value = count.to_string());
            fewer
        }));
    }
    all.extend((0..scenario.options.len()).map(|index| {
        let mut without = scenario.clone();
        without.options.remove(index);
        without
    }));
    all.extend((0..scenario.settings.len()).filter(|index| scenario.settings[*index].0 != "messages").map(
        |index| {
            let mut without = scenario.clone();
            without.settings.remove(index);
            without
        },
    ));
    all
}
