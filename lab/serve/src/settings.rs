//! The settings of an experiment, for comparison with other experiments.

use std::collections::{BTreeMap, BTreeSet};

use hol_lab::Experiment;
use serde_json::Value;

/// Maximum number of values of an axis that are listed.
const MAX_VALUES: usize = 6;

/// The settings of an experiment, by dotted key, defaults included; several values of a sweep are separated by commas.
pub type SettingsByKey = BTreeMap<String, String>;

/// Returns the settings of all points: each key with its values.
pub fn settings(experiment: &Experiment) -> SettingsByKey {
    let mut values: BTreeMap<String, Vec<String>> = BTreeMap::new();
    let mut known: BTreeSet<(String, String)> = BTreeSet::new();
    let axes: BTreeSet<&String> =
        experiment.points.iter().flat_map(|point| point.axes.iter().map(|(key, _)| key)).collect();
    for point in &experiment.points {
        let mut fields = Vec::new();
        flatten("", &serde_json::to_value(point).unwrap_or_default(), &mut fields);
        // Values of an axis are shown as in the file.
        fields.retain(|(key, _)| !is_derived(key) && !axes.contains(key));
        fields.extend(point.axes.iter().map(|(key, value)| (key.clone(), value.clone())));
        fields.push(("transports".to_owned(), point.label.clone()));
        for (key, value) in fields {
            if known.insert((key.clone(), value.clone())) {
                values.entry(key).or_default().push(value);
            }
        }
    }
    let shown = |values: Vec<String>| match values.len() {
        0..=MAX_VALUES => values.join(", "),
        count => format!("{}, … ({count} values)", values[..MAX_VALUES].join(", ")),
    };
    values.into_iter().map(|(key, values)| (key, shown(values))).collect()
}

/// Returns whether a field of a point follows from other settings, or only describes the point.
fn is_derived(key: &str) -> bool {
    let first = key.split('.').next().unwrap_or(key);
    ["id", "label", "axes", "experiment", "provenance", "stack", "transport"].contains(&first)
}

/// Collects the plain values of an object by dotted key; a list is one value.
fn flatten(before: &str, value: &Value, leaves: &mut Vec<(String, String)>) {
    match value {
        Value::Object(fields) => {
            for (key, value) in fields {
                let key = if before.is_empty() { key.clone() } else { format!("{before}.{key}") };
                flatten(&key, value, leaves);
            }
        }
        Value::Null => {}
        Value::String(text) => leaves.push((before.to_owned(), text.clone())),
        other => leaves.push((before.to_owned(), other.to_string())),
    }
}
