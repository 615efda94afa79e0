//! Results of older versions can still be opened. `results/format-N` has directories that were written when that format
//! was new; a new format adds a folder and changes none.

use std::fs;
use std::path::{Path, PathBuf};

use crate::program::ok;

/// Returns every old result with its title.
fn old_results() -> Vec<(PathBuf, String)> {
    let formats = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/results");
    let below =
        |dir: &Path| fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().path()).collect::<Vec<_>>();
    let results: Vec<PathBuf> = below(&formats).iter().flat_map(|format| below(format)).collect();
    let title = |dir: &PathBuf| {
        let text = fs::read_to_string(dir.join("manifest.json")).unwrap();
        let manifest: serde_json::Value = serde_json::from_str(&text).unwrap();
        manifest["title"].as_str().unwrap().to_owned()
    };
    results.into_iter().map(|dir| (dir.clone(), title(&dir))).collect()
}

/// Returns a table by columns: the name, and the value of each row.
fn columns(dir: &Path) -> Vec<(String, Vec<String>)> {
    let text = fs::read_to_string(dir.join("points.csv")).unwrap();
    let mut rows = text.lines().map(|line| line.split(',').map(str::to_owned).collect::<Vec<_>>());
    let head = rows.next().unwrap();
    let rows: Vec<Vec<String>> = rows.collect();
    head.into_iter()
        .zip(0..)
        .map(|(name, at)| (name, rows.iter().map(|row| row[at].clone()).collect()))
        .collect()
}

#[test]
fn old_results_keep_their_table_and_get_a_report() {
    let all = old_results();
    assert!(all.len() >= 2, "{all:?}");
    for (old, title) in all {
        let dir = tempfile::tempdir().unwrap();
        let said = ok(dir.path(), &["merge", old.to_str().unwrap(), "--out", "today"]);
        assert!(said.contains("points.csv"), "{said}");
        let today = dir.path().join("today");
        let now = columns(&today);
        for (name, values) in columns(&old) {
            let from_zero = |value: String| if value.starts_with('-') { "0.0".to_owned() } else { value };
            // Since then, intervals of times end at zero.
            let values =
                if name.contains("_low_") { values.into_iter().map(from_zero).collect() } else { values };
            let column = (name, values);
            assert!(now.contains(&column), "{}: {column:?} is no more, or has other values", old.display());
        }
        let runs = |dir: &Path| fs::read_to_string(dir.join("runs.jsonl")).unwrap().lines().count();
        assert_eq!(runs(&today), runs(&old));
        assert!(fs::read_to_string(today.join("report.html")).unwrap().contains(&title));
    }
}

/// Other programs can read the files: Parquet is a standard of its own.
#[test]
fn records_of_old_results_are_kept() {
    let (old, _) = old_results().into_iter().find(|(dir, _)| dir.ends_with("records")).unwrap();
    let dir = tempfile::tempdir().unwrap();
    ok(dir.path(), &["merge", old.to_str().unwrap(), "--out", "today"]);
    for entry in fs::read_dir(old.join("records")).unwrap() {
        let entry = entry.unwrap();
        let same = fs::read(dir.path().join("today/records").join(entry.file_name())).unwrap();
        assert!(same == fs::read(entry.path()).unwrap() && same.starts_with(b"PAR1"));
    }
}
