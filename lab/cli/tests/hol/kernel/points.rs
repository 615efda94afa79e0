//! Reads the points of an experiment.

use std::collections::BTreeMap;
use std::fs;

use crate::program::ok;

/// A point: values by the names of their columns.
pub type Columns = BTreeMap<String, String>;

/// Returns the points of an experiment in a world.
pub fn rows(experiment: &str, world: &str) -> Vec<Columns> {
    let dir = tempfile::tempdir().unwrap();
    fs::write(dir.path().join("a.toml"), experiment).unwrap();
    ok(dir.path(), &["run", "a.toml", "--out", "out", "--world", world]);
    csv(&fs::read_to_string(dir.path().join("out/points.csv")).unwrap())
}

/// Returns them by transport.
pub fn points(experiment: &str, world: &str) -> BTreeMap<String, Columns> {
    rows(experiment, world).into_iter().map(|columns| (columns["transport"].clone(), columns)).collect()
}

/// Parses rows by the names of their columns; a transport with commas is in quotes.
pub fn csv(text: &str) -> Vec<Columns> {
    let split = |line: &str| {
        let mut quoted = false;
        let ends = |c| {
            quoted ^= c == '"';
            c == ',' && !quoted
        };
        line.split(ends).map(|field| field.trim_matches('"').to_owned()).collect::<Vec<String>>()
    };
    let mut lines = text.lines().map(split);
    let names = lines.next().unwrap();
    lines.map(|values| names.iter().cloned().zip(values).collect()).collect()
}
