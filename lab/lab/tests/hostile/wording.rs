//! Messages about experiments use the words of their authors: over all keys and values of every type.

use crate::keys::{INTERNAL, KEYS, KEYS_OF_LISTS, VALUES};
use hol_lab::{Experiment, Source};

/// Returns the problem with an experiment in which `key` is `value`, if there is one.
fn problem(key: &str, value: &str) -> Option<String> {
    let mut source = Source::new("a.toml", "");
    source.set("default", "transports", "['tcp']").expect("a good key");
    if let Err(problem) = source.set(&format!("--set {key}"), key, value) {
        return Some(problem.to_string());
    }
    Experiment::parse("a", &source).err().map(|problem| problem.to_string())
}

#[test]
fn messages_contain_no_identifiers_of_the_source() {
    let keys = KEYS.lines().filter_map(|line| Some(line.split_once(" = ")?.0));
    let mut wrong = std::collections::BTreeSet::new();
    let mut check = |key: &str, value: &str| {
        if let Some(problem) = problem(key, value) {
            let (_, said) = problem.split_once(": ").expect("a place and a problem");
            if INTERNAL.iter().any(|word| said.contains(word)) {
                wrong.insert(format!("{key} = {value}: {said}"));
            }
        }
    };
    for value in VALUES {
        for key in keys.clone() {
            check(key, value);
        }
        for (list, inner) in KEYS_OF_LISTS {
            for key in inner {
                check(list, &format!("[{{ {key} = {value} }}]"));
            }
        }
    }
    assert!(
        wrong.is_empty(),
        "{} are not in the user's words:\n{}",
        wrong.len(),
        Vec::from_iter(wrong).join("\n")
    );
}

#[test]
fn listed_values_are_accepted() {
    for line in KEYS.lines().filter(|line| !line.is_empty()) {
        let (key, value) = line.split_once(" = ").expect("a key with a value");
        if let Some(problem) = problem(key, value) {
            assert!(!problem.contains("unknown"), "{line}: {problem}");
        }
    }
}

#[test]
fn a_problem_has_the_position_of_the_key_it_names() {
    let text = "transports = ['tcp']\n[workload]\nkind = 'echo'\nsize = '0B'\n[network]\njitter = '1s'\n";
    let place = |text: &str| Experiment::parse("a", &Source::new("a.toml", text)).unwrap_err().place;
    assert_eq!(place(text), "a.toml:6:10");
    assert_eq!(place(&text.replace("1s", "1ms")), "a.toml:4:8");
}

#[test]
fn a_list_in_place_of_a_table_is_refused() {
    let tables = [
        "network.discipline.red",
        "network.discipline.codel",
        "network.discipline.fq_codel",
        "network.discipline.pie",
        "network.handover",
        "network.police",
        "network.up",
        "hosts.server",
        "workload.mix",
        "workload.size",
    ];
    for key in tables {
        let problem = problem(key, "[1, 2, 3]").unwrap();
        assert!(problem.contains("must be a table, not a list"), "{key}: {problem}");
    }
}
