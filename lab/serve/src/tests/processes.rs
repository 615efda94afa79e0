//! The states of experiments whose processes behave in various ways, with a script instead of `hol`.

use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};

use axum::http::StatusCode;
use serde_json::Value;

use super::TEXT;
use crate::events::EventKind;
use crate::experiment::Format;
use crate::folders::Folder;
use crate::jobs::{SchedulerMessage, run_scheduler};
use crate::mail::{MailDestination, Mailer};
use crate::quota::Quota;
use crate::refusal::Refusal;
use crate::server::{Access, Config, Server, SharedServer};
use crate::submission::{NewText, Submission};

const PROGRESS: &str = r#"echo '{"progress":{"runs":1,"runs_wanted":2,"failed":0,"messages":1,"messages_wanted":2,"share":0.5,"left":null}}' >&2"#;

/// Creates a server in `dir` that runs `script` instead of `hol`, and returns the messages to its scheduler, too.
pub fn with_script(
    dir: &Path,
    script: &str,
    quota: Quota,
) -> (SharedServer, Sender<SchedulerMessage>, Receiver<SchedulerMessage>) {
    let program = dir.join("hol");
    // Another process writes the script: a file that this process has open for writing while another test forks cannot be executed.
    let write = "printf '#!/bin/sh\\n%s\\n' \"$1\" > \"$0\"; chmod 755 \"$0\"";
    let written = Command::new("sh").args(["-c", write]).arg(&program).arg(script).status().unwrap();
    assert!(written.success());
    let config = Config {
        state: dir.join("state"),
        program,
        cores: 1,
        access: Access::Open,
        permission: hol_lab::Permission::default(),
        quota,
        names: Vec::new(),
        is_secure: false,
        is_behind_proxy: false,
        has_children: false,
    };
    let (notes, inbox) = channel();
    let server = Server::open(config, Mailer::open(&MailDestination::None).unwrap(), notes.clone()).unwrap();
    (Arc::new(server), notes, inbox)
}

/// Returns the states of an experiment whose process is `script` until it has ended, and the last reason.
fn life(script: &str) -> (Vec<String>, String) {
    lives::<1>(script, Quota::UNLIMITED).pop().unwrap()
}

/// Returns the states and reasons of `N` experiments of one project, which run one after another.
fn lives<const N: usize>(script: &str, quota: Quota) -> Vec<(Vec<String>, String)> {
    let dir = tempfile::tempdir().unwrap();
    let (server, notes, inbox) = with_script(dir.path(), script, quota);
    let mut watching = server.hub.watch();
    let scheduler = {
        let (server, notes) = (server.clone(), notes.clone());
        std::thread::spawn(move || run_scheduler(server, notes, &inbox))
    };
    let requester = server.local.clone().unwrap();
    let mut live = || {
        let submission = Submission { text: TEXT.to_owned(), cores: Some(1), ..Submission::default() };
        let id = server.submit(&requester, submission).unwrap().id;
        let mut states: Vec<String> = Vec::new();
        loop {
            let happening = watching.blocking_recv().unwrap();
            if happening.kind != EventKind::State {
                continue;
            }
            let experiment: Value = serde_json::from_str(&happening.data).unwrap();
            // An event of an experiment that ended before may still arrive.
            if experiment["id"] != id {
                continue;
            }
            // A new reason to wait is an event, too.
            let state = experiment["state"].as_str().unwrap();
            if states.last().is_none_or(|last| last != state) {
                states.push(state.to_owned());
            }
            if ["done", "failed", "swapped_out"].contains(&states.last().unwrap().as_str()) {
                break (states, experiment["why"].as_str().unwrap().to_owned());
            }
        }
    };
    let lives = (0..N).map(|_| live()).collect();
    notes.send(SchedulerMessage::Stop).unwrap();
    scheduler.join().unwrap();
    lives
}

#[test]
fn process_may_write_a_warning_before_its_progress() {
    let (states, why) = life(&format!("echo 'warning: slow' >&2\n{PROGRESS}"));
    assert_eq!(states, ["queued", "starting", "active", "done"]);
    assert_eq!(why, "");
}

#[test]
fn process_without_output_completes() {
    assert_eq!(life("exit 0").0, ["queued", "starting", "done"]);
}

#[test]
fn failure_has_the_last_message_of_the_process() {
    let (states, why) = life(&format!("{PROGRESS}\necho 'error: no space is left' >&2\nexit 1"));
    assert_eq!(states.last().unwrap(), "failed");
    assert_eq!(why, "no space is left");
}

/// The journal has the completed runs, so the experiment continues, but only a limited number of times.
#[test]
fn process_that_is_always_killed_fails_its_experiment() {
    let (states, why) = life("kill -9 $$");
    assert_eq!(states.iter().filter(|state| *state == "starting").count(), 5);
    assert_eq!(states.last().unwrap(), "failed");
    assert!(why.starts_with("the process of the experiment was killed 5 times"), "{why}");
}

/// A process that another program interrupted counts as killed, although it saved its results.
#[test]
fn interrupted_process_is_started_again() {
    let interrupted = "[ -e once ] && exit 0\ntouch once\necho '{\"interrupted\":true}' >&2\nexit 1";
    assert_eq!(life(interrupted).0, ["queued", "starting", "queued", "starting", "done"]);
}

/// A remaining child keeps standard error open, so the server must kill it to see the end of the process.
#[test]
fn children_of_an_ended_process_are_killed() {
    assert_eq!(life("sleep 1000 &\nexit 0").0, ["queued", "starting", "done"]);
}

#[test]
fn endless_line_of_output_is_split() {
    let (states, why) = life("head -c 1000000 /dev/zero | tr '\\000' x >&2\nexit 3");
    assert_eq!(states.last().unwrap(), "failed");
    assert_eq!(why, "x".repeat(300));
}

#[test]
fn full_disk_is_the_reason_of_a_failure() {
    let full = "echo 'error: runs.jsonl: No space left on device (os error 28)' >&2\nexit 1";
    let (states, why) = life(full);
    assert_eq!(states, ["queued", "starting", "failed"]);
    assert_eq!(why, "disk full: runs.jsonl: No space left on device (os error 28)");
}

/// An experiment of 250 octets could fill the disk.
#[test]
fn experiment_over_the_disk_quota_is_swapped_out() {
    let fill =
        format!("{PROGRESS}\nfor n in $(seq 50); do head -c 1000000 /dev/zero >> full; sleep 0.2; done");
    let lives = lives::<1>(&fill, Quota { octets: 1 << 20, ..Quota::UNLIMITED });
    assert_eq!(lives[0].0, ["queued", "starting", "active", "swapped_out"]);
    let why = &lives[0].1;
    assert!(why.starts_with("the project uses ") && why.contains(" of 1 MiB of disk"), "{why}");
}

#[test]
fn experiment_of_a_project_without_further_runs_does_not_start() {
    let lives = lives::<2>(PROGRESS, Quota { runs: 1, ..Quota::UNLIMITED });
    // Whether the test sees `queued` depends on timing: an event has the state at the time of writing.
    assert_eq!(lives[1].0.last().unwrap(), "swapped_out");
    assert!(!lives[1].0.contains(&"starting".to_owned()), "{:?}", lives[1].0);
    assert_eq!(lives[1].1, "the project has 1 runs, which is the maximum; delete experiments");
}

/// All versions of texts, and the files of the project, count for its disk quota.
#[test]
fn texts_and_files_beyond_the_disk_quota_are_refused() {
    let dir = tempfile::tempdir().unwrap();
    let (server, ..) = with_script(dir.path(), "", Quota { octets: 1 << 20, ..Quota::UNLIMITED });
    let requester = server.local.clone().unwrap();
    let folder = Folder::Project("local".to_owned());
    let text = format!("{TEXT}#{}\n", "x".repeat(300_000));
    let new = NewText { text: text.clone(), format: Format::Toml };
    let submission = || Submission { text: text.clone(), hold: true, ..Submission::default() };
    let store = |octets: usize| server.store_file(&requester, &folder, "a.csv", &vec![b'x'; octets]);
    let full = |refusal: Refusal| {
        assert_eq!(refusal.status, StatusCode::INSUFFICIENT_STORAGE);
        assert!(refusal.to_string().ends_with("of 1 MiB of disk; delete experiments or files"), "{refusal}");
    };
    let id = server.submit(&requester, submission()).unwrap().id;
    server.replace_text(&requester, id, &new).unwrap();
    store(300_000).unwrap();
    full(server.submit(&requester, submission()).unwrap_err());
    full(server.replace_text(&requester, id, &new).unwrap_err());
    full(store(600_000).unwrap_err());
    server.delete_file(&requester, &folder, "a.csv").unwrap();
    server.replace_text(&requester, id, &new).unwrap();
    server.remove(&requester, id).unwrap();
    store(1_000_000).unwrap();
}
