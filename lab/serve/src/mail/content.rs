//! The content of a mail.

use hol_lab::Permission;
use hol_network::Topology;
use hol_testbed::emulab_tables;

use crate::computation::NamedText;
use crate::draft;
use crate::experiment::{Experiment, State};

/// The subject and the body of a mail.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MailContent {
    /// Subject, one line.
    pub subject: String,
    /// Body, plain text.
    pub body: String,
}

/// Returns whether a state change is reported by mail. A user's request and its consequences are reported
/// once. So there is a mail when an experiment becomes active, but none while it waits for cores or when its
/// process starts.
pub const fn is_reported(from: State, to: State) -> bool {
    match to {
        State::New | State::Starting => false,
        // The process was killed, so the experiment lost its cores.
        State::Queued => matches!(from, State::Starting | State::Active),
        State::Active | State::SwappedOut | State::Terminated | State::Failed | State::Done => {
            from as u8 != to as u8
        }
    }
}

/// Returns the mail about a change from the state `from` to the present state of `experiment`, followed by `tables`.
pub fn mail_content(from: State, experiment: &Experiment, tables: &str, url: &str) -> MailContent {
    let Experiment { id, name, title, project, state, why, progress, .. } = experiment;
    let reason = if why.is_empty() { String::new() } else { format!("Reason: {why}\n") };
    let runs = match progress.runs_wanted {
        0 => String::new(),
        wanted => format!("Runs: {} of {wanted} completed, {} failed.\n", progress.runs, progress.failed),
    };
    MailContent {
        // Names may contain line breaks, headers may not. RFC 5322, section 2.2
        subject: format!("[{project}] {name} is {}", state_words(*state)).replace(['\r', '\n'], " "),
        body: format!(
            "Experiment {id} ({title}) of project {project} changed from {} to {} at {}.\n{reason}{runs}{url}/experiments/{id}\n{tables}",
            state_words(from),
            state_words(*state),
            experiment.changed
        ),
    }
}

/// Returns tables of the nodes and links in the first point's network, as in mails of Emulab; empty if the
/// text has no network.
pub fn tables(NamedText { name, text, format }: &NamedText, permission: &Permission) -> String {
    let read = draft::experiment(name, text, *format, permission);
    let first = read.ok().and_then(|read| read.points.into_iter().next()).map(|point| point.network);
    // The network may have no traffic yet.
    let network = first.or_else(|| draft::network(text, *format, permission));
    let Some(topology) = network.and_then(|network| Topology::new(&network).ok()) else {
        return String::new();
    };
    let tables =
        emulab_tables(&topology).map(|section| format!("\n{}:\n{}", section.title, aligned(&section.rows)));
    tables.concat()
}

/// Formats rows with columns as wide as their widest cell.
fn aligned(rows: &[Vec<String>]) -> String {
    let width =
        |column: usize| rows.iter().filter_map(|row| row.get(column)).map(String::len).max().unwrap_or(0);
    let line = |row: &Vec<String>| {
        let cells = row.iter().enumerate().map(|(column, cell)| format!("{cell:<0$}", width(column)));
        cells.collect::<Vec<_>>().join("  ").trim_end().to_owned() + "\n"
    };
    rows.iter().map(line).collect()
}

fn state_words(state: State) -> String {
    state.word().replace('_', " ")
}

#[cfg(test)]
pub mod tests {
    use super::*;
    use crate::experiment::{Format, Links, Progress};

    pub fn experiment() -> Experiment {
        Experiment {
            id: 7,
            name: "loss".to_owned(),
            title: "What loss does".to_owned(),
            project: "transport".to_owned(),
            owner: "ann".to_owned(),
            state: State::SwappedOut,
            why: "by ann".to_owned(),
            priority: 0,
            batch: true,
            cores: 2,
            idle_swap: None,
            auto_swap: None,
            study: None,
            quick: false,
            version: 1,
            created: "2026-01-01T00:00:00Z".to_owned(),
            changed: "2026-01-01T00:01:00Z".to_owned(),
            format: Format::Toml,
            progress: Progress { runs: 3, runs_wanted: 10, ..Progress::default() },
            links: Links::of(7),
        }
    }

    #[test]
    fn mail_states_the_change_and_its_reason() {
        let letter = mail_content(State::Active, &experiment(), "", "https://lab.example.org");
        assert_eq!(letter.subject, "[transport] loss is swapped out");
        let body = "Experiment 7 (What loss does) of project transport changed from active to swapped out at \
             2026-01-01T00:01:00Z.\nReason: by ann\nRuns: 3 of 10 completed, 0 failed.\n\
             https://lab.example.org/experiments/7\n";
        assert_eq!(letter.body, body);
    }

    #[test]
    fn each_event_causes_one_mail() {
        use State::{Active, Done, Failed, New, Queued, Starting, SwappedOut};
        let lives = [
            (&[New, Queued, Starting, Active, Done][..], 2),
            (&[Queued, Starting, Done][..], 1),
            (&[Queued, SwappedOut, Queued, Starting, Active, SwappedOut][..], 3),
            (&[Queued, Starting, Queued, Starting, Failed][..], 2),
        ];
        for (life, mails) in lives {
            let found = life.windows(2).filter(|step| is_reported(step[0], step[1])).count();
            assert_eq!(found, mails, "{life:?}");
        }
    }

    #[test]
    fn mail_about_a_started_experiment_lists_nodes_and_links() {
        let text = "transports = ['tcp']\n[network]\ndelay = '10ms'\nrate = '1Mbit'\n";
        let text = NamedText { name: "loss".to_owned(), text: text.to_owned(), format: Format::Toml };
        let tables = tables(&text, &Permission::default());
        let body = mail_content(State::Starting, &experiment(), &tables, "").body;
        for wanted in
            ["Virtual Node Info:\n", "Virtual Lan/Link Info:\n", "  10.00", "Physical Lan/Link Info:\n"]
        {
            assert!(body.contains(wanted), "{wanted:?} is not in {body}");
        }
    }

    /// A name must not add a header field. RFC 5322, section 2.2
    #[test]
    fn a_subject_is_one_line() {
        let named = Experiment { name: "x\r\nBcc: all@example.org".to_owned(), ..experiment() };
        assert_eq!(mail_content(State::Active, &named, "", "").subject.lines().count(), 1);
    }
}
