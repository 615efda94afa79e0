//! The page that compares several experiments: the settings in which they differ, and their results.

use std::collections::BTreeSet;

use axum::extract::State as Extract;
use hol_lab::Stopwatch;
use maud::{Markup, html};
use serde::{Deserialize, Serialize};

use super::layout::{Page, embedded_json};
use super::visitor::{RefusalPage, Visitor};
use crate::blocking::run_expensive;
use crate::computation::{NamedText, Task};
use crate::experiment::Experiment;
use crate::extract::QueryParameters;
use crate::refusal::Refusal;
use crate::requester::Requester;
use crate::server::{Server, SharedServer};
use crate::settings::SettingsByKey;

/// Maximum number of experiments, for legibility.
const MAX_EXPERIMENTS: usize = 12;

/// Seconds after which no further experiment is read.
const MAX_SECONDS: f64 = 20.0;

/// The query of this page.
#[derive(Debug, Deserialize)]
pub struct CompareQuery {
    /// Numbers of the experiments, separated by commas.
    of: String,
}

/// A compared experiment and its settings.
#[derive(Serialize)]
struct ComparedExperiment {
    id: i64,
    name: String,
    title: String,
    /// Settings in which the experiments differ, without those that have several values in this experiment.
    differing: SettingsByKey,
    #[serde(skip)]
    settings: SettingsByKey,
}

pub async fn page(
    Extract(server): Extract<SharedServer>,
    Visitor(requester): Visitor,
    QueryParameters(CompareQuery { of }): QueryParameters<CompareQuery>,
) -> Result<Markup, RefusalPage> {
    let user = requester.clone();
    let read = run_expensive(server, &user, move |server| {
        let ids = of.split(',').filter_map(|id| id.trim().parse::<i64>().ok()).take(MAX_EXPERIMENTS);
        let watch = Stopwatch::start();
        let within_time = |id| if watch.seconds() < MAX_SECONDS { Ok(id) } else { Err(too_slow()) };
        let mut compared = ids
            .map(|id| compared(server, &requester, within_time(id)?))
            .collect::<Result<Vec<_>, Refusal>>()?;
        let (differing, constant) =
            differences(&compared.iter().map(|own| &own.settings).collect::<Vec<_>>());
        for own in &mut compared {
            let single =
                own.settings.iter().filter(|(key, value)| differing.contains(*key) && !value.contains(", "));
            own.differing = single.map(|(key, value)| (key.clone(), value.clone())).collect();
        }
        let body = body(&compared, &differing, &constant);
        Ok(Page { title: "Compare", path: "", script: "compare" }.show(server, &requester, &body))
    });
    Ok(read.await?)
}

fn too_slow() -> Refusal {
    let problem = format!("reading the experiments takes more than {MAX_SECONDS} s");
    Refusal::bad_request(problem, "compare fewer or smaller experiments")
}

fn compared(server: &Server, requester: &Requester, id: i64) -> Result<ComparedExperiment, Refusal> {
    let entry = server.entry(requester, id)?;
    let Experiment { name, title, format, .. } = entry.experiment;
    let permission = server.permission(entry.project)?;
    let text = server.store.text(id, None)?.map_or(String::new(), |text| text.text);
    // A study has no text, and this version may reject a text that an earlier one accepted. Then only results are compared.
    let task = Task::Settings(NamedText { name: name.clone(), text, format });
    let settings = server.compute_value(requester, task, permission)?;
    Ok(ComparedExperiment { id, name, title, differing: SettingsByKey::new(), settings })
}

/// Returns the keys in which experiments differ, and the settings that are the same in all. Ignores experiments without settings.
fn differences(all: &[&SettingsByKey]) -> (BTreeSet<String>, SettingsByKey) {
    let known: Vec<&SettingsByKey> = all.iter().copied().filter(|own| !own.is_empty()).collect();
    let keys: BTreeSet<&String> = known.iter().flat_map(|own| own.keys()).collect();
    let mut differing = BTreeSet::new();
    let mut constant = SettingsByKey::new();
    for key in keys {
        let values: BTreeSet<Option<&String>> = known.iter().map(|own| own.get(key)).collect();
        match values.into_iter().collect::<Vec<_>>()[..] {
            [Some(value)] => drop(constant.insert(key.clone(), value.clone())),
            _ => drop(differing.insert(key.clone())),
        }
    }
    (differing, constant)
}

fn body(compared: &[ComparedExperiment], differing: &BTreeSet<String>, constant: &SettingsByKey) -> Markup {
    let known = compared.iter().filter(|own| !own.settings.is_empty()).count();
    html! {
        h1 { "Compare" }
        section aria-labelledby="differences-heading" {
            h2 id="differences-heading" { "Differences" }
            div.scroll tabindex="0" role="region" aria-label="Table of differences" {
                table id="differences" {
                    thead {
                        tr {
                            th scope="col" { "Setting" }
                            @for own in compared { th.text scope="col" { a href={ "/experiments/" (own.id) } { (own.title) } " " small { (own.name) " (" (own.id) ")" } } }
                        }
                    }
                    tbody {
                        @for key in differing {
                            tr { th scope="row" { (key) } @for own in compared { td.text { (own.settings.get(key).map_or("–", String::as_str)) } } }
                        }
                    }
                }
            }
            @if known < 2 {
                p.soft { "There are no settings to compare: studies have no settings, and this version cannot read the text of the other experiments." }
            } @else if differing.is_empty() {
                p.soft { "The settings of these experiments are the same." }
            }
            @if !constant.is_empty() {
                details {
                    summary { (constant.len()) " settings are the same in all experiments" }
                    div.scroll tabindex="0" role="region" aria-label="Settings that are the same in all experiments" {
                        table { tbody { @for (key, value) in constant { tr { th scope="row" { (key) } td.text { (value) } } } } }
                    }
                }
            }
        }
        p.said id="say" role="status" {}
        section aria-labelledby="curves-heading" { h2 id="curves-heading" { "Curves" } div id="curves" {} }
        section aria-labelledby="points-heading" { h2 id="points-heading" { "Points" } div id="points" {} }
        (embedded_json("experiments", &compared))
    }
}

#[cfg(test)]
mod tests {
    use hol_lab::Source;

    use super::*;
    use crate::settings::settings;

    #[test]
    fn comparison_separates_different_from_equal_settings() {
        let settings_of = |text: &str| {
            let source = Source::new("a", text);
            settings(&hol_lab::Experiment::parse_for_any_machine("a", &source).unwrap())
        };
        let one = settings_of("transports = ['tcp', 'sctp']\n[network]\ndelay = '10ms'\n");
        let other = settings_of(
            "transports = ['tcp', 'sctp']\n[network]\ndelay = '40ms'\n[sweep]\n'network.loss' = ['0%', '1%']\n",
        );
        let (differing, constant) = differences(&[&one, &other, &SettingsByKey::new()]);
        assert_eq!(differing.into_iter().collect::<Vec<_>>(), ["network.delay", "network.loss"]);
        assert_eq!((one["network.delay"].as_str(), other["network.loss"].as_str()), ("10ms", "0%, 1%"));
        assert_eq!(constant["transports"], "tcp, sctp");
        assert!(constant.contains_key("network.rate"), "{constant:?}");
    }
}
