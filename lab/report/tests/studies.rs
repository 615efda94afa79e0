//! The figures and claims of every study name experiments and transports that exist.

use std::collections::BTreeSet;
use std::sync::LazyLock;

use hol_lab::Study;
use hol_report::claims::{StudyClaims, View};
use hol_report::data::{Cell, Dataset};
use hol_report::figures::{FigureKind, StudyFigures};
use hol_stack::TransportSpec;

/// The studies with claims; `fidelity` is only for `hol validate` and has none.
static STUDIES: LazyLock<Vec<(Study, StudyFigures, StudyClaims)>> = LazyLock::new(|| {
    let studies = Study::all().filter_map(|(name, _)| {
        let study = Study::load(name, false).unwrap_or_else(|e| panic!("{e}"));
        let figures = toml::from_str(study.file("figures.toml")?).unwrap_or_else(|e| panic!("{name}: {e}"));
        let claims = toml::from_str(study.file("claims.toml")?).unwrap_or_else(|e| panic!("{name}: {e}"));
        Some((study, figures, claims))
    });
    studies.collect()
});

fn labels(study: &Study) -> BTreeSet<&str> {
    study.experiments.iter().flat_map(|(_, e)| e.points.iter().map(|point| point.label.as_str())).collect()
}

#[test]
fn list_of_studies_with_claims_is_complete() {
    let names: Vec<&str> = STUDIES.iter().map(|(study, ..)| study.name).collect();
    assert_eq!(names, ["eklund2004", "ikr53", "nayak2019", "pfuetzenreuter2004", "sasikala2008", "tickets"]);
    for (study, figures, claims) in &*STUDIES {
        assert!(!figures.figures.is_empty() && !figures.views.is_empty(), "{} has no figures", study.name);
        assert!(!claims.claims.is_empty() && !labels(study).is_empty(), "{} has no claims", study.name);
    }
}

#[test]
fn figures_name_existing_experiments_and_transports() {
    for (study, figures, _) in &*STUDIES {
        for figure in &figures.figures {
            let known = study.experiments.iter().any(|(name, _)| *name == figure.experiment);
            assert!(known, "figure {} shows {}", figure.number, figure.experiment);
            let shown: BTreeSet<&str> = study
                .experiments
                .iter()
                .filter(|(name, _)| *name == figure.experiment)
                .flat_map(|(_, experiment)| experiment.points.iter().map(|point| point.label.as_str()))
                .collect();
            // From the third on, a stack is a setting on which only some experiments depend: either all points of a
            // figure have it, or none.
            for (at, view) in figures.views.iter().enumerate() {
                let of_view =
                    |transport: &String| shown.contains(format!("{transport}{}", view.suffix).as_str());
                let all = figure.transports.iter().all(of_view);
                let none = at > 1 && !figure.transports.iter().any(of_view);
                assert!(
                    all || none,
                    "{}: figure {} lacks transports of {}",
                    study.name,
                    figure.number,
                    view.title
                );
            }
        }
    }
}

#[test]
fn logarithmic_axes_begin_above_zero() {
    for (study, figures, _) in &*STUDIES {
        for figure in &figures.figures {
            let begins = match figure.kind {
                FigureKind::Loss | FigureKind::Rate => figure.x[0],
                FigureKind::Ccdf => figure.x[0].min(figure.y[0]),
                FigureKind::Streams | FigureKind::RoundTrip | FigureKind::Time | FigureKind::Axis => continue,
            };
            assert!(begins > 0.0, "{}: figure {} begins at {begins}", study.name, figure.number);
        }
    }
}

#[test]
fn numbers_of_figures_and_claims_are_unique() {
    for (study, figures, claims) in &*STUDIES {
        let numbers: BTreeSet<String> = figures.figures.iter().map(|f| f.number.to_string()).collect();
        assert_eq!(numbers.len(), figures.figures.len(), "{}", study.name);
        let ids: BTreeSet<&str> = claims.claims.iter().map(|claim| claim.id.as_str()).collect();
        assert_eq!(ids.len(), claims.claims.len(), "{}", study.name);
    }
}

/// Keys of a claim whose values are labels of transports, without the stack.
const TRANSPORTS: [&str; 7] = ["transport", "transports", "than", "like", "of", "left", "right"];

#[test]
fn claims_name_existing_transports_and_experiments() {
    for (study, figures, claims) in &*STUDIES {
        let text = study.file("claims.toml").unwrap_or_default();
        let file = toml::Value::Table(text.parse().unwrap());
        let (labels, transports) = (labels(study), named(&file, &TRANSPORTS));
        assert!(transports.len() >= claims.claims.len(), "{} names few transports", study.name);
        for name in transports {
            let suffixes = figures.views.iter().map(|view| view.suffix.as_str()).chain([""]);
            let known =
                suffixes.into_iter().any(|suffix| labels.contains(format!("{name}{suffix}").as_str()));
            // Some checks run a transport of their own instead of reading points.
            let is_specification = name.parse::<TransportSpec>().is_ok();
            assert!(known || is_specification, "{} names the transport {name}", study.name);
        }
        let experiments = named(&file, &["experiments"]);
        assert!(!experiments.is_empty(), "{} names no experiment", study.name);
        for name in experiments {
            let known = study.experiments.iter().any(|(experiment, _)| *experiment == name);
            assert!(known, "{} names the experiment {name}", study.name);
        }
    }
}

/// Returns every text under one of `keys`, at any depth, alone or in a list. In comparisons of workloads these keys
/// name workloads, so they are skipped.
fn named<'v>(value: &'v toml::Value, keys: &[&str]) -> Vec<&'v str> {
    let of_entry = |(key, value): (&String, &'v toml::Value)| match value {
        toml::Value::String(text) if keys.contains(&key.as_str()) => vec![text.as_str()],
        toml::Value::Array(values) if keys.contains(&key.as_str()) => {
            values.iter().filter_map(toml::Value::as_str).collect()
        }
        _ => named(value, keys),
    };
    match value {
        toml::Value::Array(values) => values.iter().flat_map(|value| named(value, keys)).collect(),
        toml::Value::Table(table) => {
            let of_workloads = table.contains_key("workload");
            let entries = table.iter().filter(|(key, _)| !(of_workloads && *key == "like"));
            entries.flat_map(of_entry).collect()
        }
        _ => Vec::new(),
    }
}

#[test]
fn the_study_costs_what_its_readme_says() {
    let study = Study::load("ikr53", false).unwrap_or_else(|e| panic!("{e}"));
    let transactions: u64 =
        study.experiments.iter().flat_map(|(_, e)| e.points.iter().map(|point| point.messages)).sum();
    assert!((105_000_000..115_000_000).contains(&transactions), "{transactions}");
}

#[test]
fn omitted_points_of_claims_have_a_reason() {
    for (study, figures, claims) in &*STUDIES {
        let points = study.experiments.iter().flat_map(|(_, experiment)| &experiment.points);
        let data = Dataset { cells: points.map(Cell::from).collect(), ..Dataset::default() };
        let mut problems = Vec::new();
        for claim in &claims.claims {
            for stack in &figures.views {
                let left = claim.left_out(&View { data: &data, stack });
                problems.extend(left.iter().filter(|(_, why)| why.is_none()).map(|(cell, _)| {
                    format!("{}: {} at {} is left out", claim.id, cell.transport, cell.describe_conditions())
                }));
            }
            for (index, left) in claim.left_out.iter().enumerate() {
                let stacks = figures.views.iter().map(|stack| View { data: &data, stack });
                let used =
                    stacks.flat_map(|view| claim.left_out(&view)).any(|(cell, _)| left.at.selects(cell));
                assert!(used, "{}: reason {index} leaves nothing out", claim.id);
            }
        }
        assert!(problems.is_empty(), "{}: {} points\n{}", study.name, problems.len(), problems.join("\n"));
    }
}

#[test]
fn each_readme_states_what_would_refute_each_claim() {
    for (study, _, claims) in &*STUDIES {
        let readme = study.file("README.md").unwrap_or_default();
        for claim in &claims.claims {
            let row = format!("| {} | {} | {} |", claim.id, claim.kind.name(), claim.refuted_by);
            assert!(readme.lines().any(|line| line == row), "studies/{}/README.md lacks\n{row}", study.name);
        }
    }
}
