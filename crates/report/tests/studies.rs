//! The figures and claims of every study name experiments and transports that exist.

use std::collections::BTreeSet;

use hol_lab::Study;
use hol_report::claims::StudyClaims;
use hol_report::figures::StudyFigures;

/// The studies that make claims: `fidelity` is for `hol validate` and makes none.
fn studies() -> impl Iterator<Item = (Study, StudyFigures, StudyClaims)> {
    Study::all().filter_map(|(name, _)| {
        let study = Study::load(name, false).unwrap_or_else(|e| panic!("{e}"));
        let figures = toml::from_str(study.file("figures.toml")?).unwrap_or_else(|e| panic!("{name}: {e}"));
        let claims = toml::from_str(study.file("claims.toml")?).unwrap_or_else(|e| panic!("{name}: {e}"));
        Some((study, figures, claims))
    })
}

fn labels(study: &Study) -> BTreeSet<&str> {
    study.experiments.iter().flat_map(|(_, e)| e.points.iter().map(|point| point.label.as_str())).collect()
}

#[test]
fn every_figure_names_an_experiment_and_transports_that_exist_on_every_stack() {
    for (study, figures, _) in studies() {
        let labels = labels(&study);
        for figure in &figures.figures {
            let known = study.experiments.iter().any(|(name, _)| *name == figure.experiment);
            assert!(known, "figure {} shows {}", figure.number, figure.experiment);
            for (transport, view) in
                figure.transports.iter().flat_map(|t| figures.views.iter().map(move |v| (t, v)))
            {
                let label = format!("{transport}{}", view.suffix);
                assert!(labels.contains(label.as_str()), "figure {} shows {label}", figure.number);
            }
        }
    }
}

#[test]
fn figures_and_claims_have_each_number_once() {
    for (study, figures, claims) in studies() {
        let numbers: BTreeSet<String> = figures.figures.iter().map(|f| f.number.to_string()).collect();
        assert_eq!(numbers.len(), figures.figures.len(), "{}", study.name);
        let ids: BTreeSet<&str> = claims.claims.iter().map(|claim| claim.id.as_str()).collect();
        assert_eq!(ids.len(), claims.claims.len(), "{}", study.name);
    }
}

#[test]
fn every_transport_and_experiment_that_a_claim_names_exists() {
    for (study, figures, _) in studies() {
        let (labels, text) = (labels(&study), study.file("claims.toml").unwrap_or_default());
        let claims: toml::Table = text.parse().unwrap();
        for word in words(&toml::Value::Table(claims)) {
            let is_label = word.starts_with("SCTP-") || word.starts_with("TCP");
            let known =
                figures.views.iter().any(|view| labels.contains(format!("{word}{}", view.suffix).as_str()));
            assert!(!is_label || known, "{} names {word}", study.name);
            let is_experiment = word.starts_with("exp") && word.len() == 4;
            assert!(!is_experiment || study.experiments.iter().any(|(name, _)| *name == word), "{word}");
        }
    }
}

/// Every text of a document that is a single word: labels and names, not sentences.
fn words(value: &toml::Value) -> Vec<String> {
    match value {
        toml::Value::String(text) if text.split(' ').count() <= 2 && text.len() < 24 => vec![text.clone()],
        toml::Value::Array(values) => values.iter().flat_map(words).collect(),
        toml::Value::Table(table) => table.values().flat_map(words).collect(),
        _ => Vec::new(),
    }
}

#[test]
fn the_study_costs_what_its_readme_says() {
    let study = Study::load("ikr53", false).unwrap_or_else(|e| panic!("{e}"));
    let transactions: u64 =
        study.experiments.iter().flat_map(|(_, e)| e.points.iter().map(|point| point.messages)).sum();
    assert!((40_000_000..45_000_000).contains(&transactions), "{transactions}");
}
