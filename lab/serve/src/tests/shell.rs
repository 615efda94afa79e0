//! Shells whose process behaves in various ways, with a script instead of `hol`.

use std::sync::mpsc::{Receiver, Sender};

use axum::http::StatusCode;
use serde_json::Value;
use tokio::sync::broadcast;

use super::TEXT;
use super::processes::with_script;
use crate::events::{EventKind, ServerEvent};
use crate::jobs::SchedulerMessage;
use crate::quota::Quota;
use crate::refusal::Refusal;
use crate::requester::Requester;
use crate::server::SharedServer;
use crate::shell::ShellOptions;
use crate::submission::Submission;

/// Repeats each line; `sleep` waits until it is interrupted. A shell cannot trap a signal that was ignored at its
/// start, and tests in the background ignore SIGINT (POSIX.1-2017, XCU 2.11), so the script restarts itself.
const ECHO: &str = r#"
[ "$AGAIN" ] || AGAIN=1 exec env --default-signal=INT sh "$0" "$@"
trap 'echo "{\"note\":\"interrupted\"}"' INT
prompt() { echo '{"prompt":{"node":"client","now":0.5,"code":0,"nodes":["client","server"]}}'; }
prompt
while IFS= read -r line; do
    case $line in
        sleep) for _ in 1 2 3 4 5 6; do sleep 1; done;;
        :quit) echo 'error: gone' >&2; exit 3;;
        *) echo "{\"out\":\"$line\"}";;
    esac
    prompt
done
echo done > recorded.toml"#;

struct Lab {
    server: SharedServer,
    requester: Requester,
    id: i64,
    watching: broadcast::Receiver<std::sync::Arc<ServerEvent>>,
    /// Receives the messages to the scheduler, which does not run.
    _notes: (Sender<SchedulerMessage>, Receiver<SchedulerMessage>),
    _dir: tempfile::TempDir,
}

impl Lab {
    /// Creates a server with an experiment that waits to be started.
    fn with(script: &str) -> Self {
        Self::with_text(script, TEXT)
    }

    fn with_text(script: &str, text: &str) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let (server, notes, inbox) = with_script(dir.path(), script, Quota::UNLIMITED);
        let requester = server.local.clone().unwrap();
        let submission = Submission { text: text.to_owned(), cores: Some(1), ..Submission::default() };
        let id = server.submit(&requester, submission).unwrap().id;
        let watching = server.hub.watch();
        Self { server, requester, id, watching, _notes: (notes, inbox), _dir: dir }
    }

    fn open(&self) -> Result<(), Refusal> {
        self.open_on(0)
    }

    fn open_on(&self, point: usize) -> Result<(), Refusal> {
        self.server.open_shell(&self.requester, self.id, ShellOptions { point }).map(drop)
    }

    fn line(&self, line: &str) -> Result<(), Refusal> {
        self.server.send_line(&self.requester, self.id, line)
    }

    /// Returns the next entry of this kind.
    fn next_entry(&mut self, kind: &str) -> Value {
        loop {
            let happening = self.watching.blocking_recv().unwrap();
            if happening.kind != EventKind::Shell {
                continue;
            }
            let entry: Value = serde_json::from_str(&happening.data).unwrap();
            if let Some(what) = entry["said"].get(kind) {
                return what.clone();
            }
        }
    }
}

#[test]
fn watchers_see_input_and_output_of_the_shell() {
    let mut lab = Lab::with(ECHO);
    lab.open().unwrap();
    assert_eq!(lab.next_entry("prompt")["nodes"][1], "server");
    lab.line("ping server").unwrap();
    assert_eq!((lab.next_entry("line"), lab.next_entry("out")), ("ping server".into(), "ping server".into()));
    lab.next_entry("prompt");
    let shell = lab.server.shell(&lab.requester, lab.id).unwrap();
    let kinds: Vec<String> = shell
        .entries
        .iter()
        .map(|entry| entry.content.as_object().unwrap().keys().next().unwrap().clone())
        .collect();
    assert!(shell.is_open && kinds == ["prompt", "line", "out", "prompt"], "{kinds:?}");
    lab.server.end_shell(&lab.requester, lab.id).unwrap();
    assert_eq!(lab.next_entry("end"), "the terminal has ended");
    let files = lab.server.shell_directory(&lab.requester, lab.id).unwrap();
    assert_eq!(std::fs::read_to_string(files.join("recorded.toml")).unwrap(), "done\n");
}

#[test]
fn line_is_refused_until_the_previous_command_has_ended() {
    let mut lab = Lab::with(ECHO);
    lab.open().unwrap();
    assert_eq!(lab.open().unwrap_err().status, StatusCode::CONFLICT);
    lab.next_entry("prompt");
    lab.line("sleep").unwrap();
    let refusal = lab.line("ls").unwrap_err();
    assert_eq!(refusal.status, StatusCode::CONFLICT, "{refusal}");
    lab.server.interrupt_shell(&lab.requester, lab.id).unwrap();
    assert_eq!(lab.next_entry("note"), "interrupted");
    lab.server.end_shell(&lab.requester, lab.id).unwrap();
    assert_eq!(lab.next_entry("end"), "the terminal was killed", "a command was still running");
}

#[test]
fn ended_shell_states_the_reason_and_can_be_opened_again() {
    let mut lab = Lab::with(ECHO);
    lab.open().unwrap();
    lab.next_entry("prompt");
    lab.line(":quit").unwrap();
    assert_eq!(lab.next_entry("note"), "error: gone");
    lab.next_entry("end");
    while lab.server.shell(&lab.requester, lab.id).unwrap().is_open {
        std::thread::yield_now();
    }
    assert_eq!(lab.line("ls").unwrap_err().status, StatusCode::CONFLICT);
    lab.open().unwrap();
    lab.next_entry("prompt");
}

#[test]
fn a_shell_has_the_network_of_the_chosen_point_and_says_so() {
    let text = format!("{TEXT}[sweep]\n'network.rtt' = ['10ms', '80ms']\n");
    let mut lab = Lab::with_text("echo \"{\\\"out\\\":\\\"$*\\\"}\"", &text);
    let refusal = lab.open_on(2).unwrap_err();
    assert_eq!(refusal.status, StatusCode::BAD_REQUEST);
    assert!(refusal.to_string().contains("no point 2: the experiment has 2 points"), "{refusal}");
    lab.open_on(1).unwrap();
    assert_eq!(lab.next_entry("note"), "the network of a-small-one: tcp network.rtt=80ms");
    assert!(lab.next_entry("out").as_str().unwrap().contains("--point 1 "));
}

#[test]
fn deleting_an_experiment_ends_its_shell() {
    let mut lab = Lab::with(ECHO);
    lab.open().unwrap();
    lab.next_entry("prompt");
    lab.server.remove(&lab.requester, lab.id).unwrap();
    assert!(lab.line("ls").is_err());
}
