//! The shells of all experiments.

use std::collections::BTreeMap;
use std::process::ChildStdin;
use std::sync::{Mutex, MutexGuard, PoisonError};

use hol_lab::Stopwatch;

use super::transcript::Transcript;
use crate::jobs::RunningProcess;

/// Seconds without input and output after which a terminal is ended.
const IDLE_TIMEOUT: f64 = 1800.0;

/// All shells by experiment. The transcript of an ended shell is kept until another one starts.
#[derive(Debug, Default)]
pub struct Shells {
    all: Mutex<BTreeMap<i64, ShellSession>>,
    /// Locked while a shell is being started, which may take seconds.
    starting: Mutex<()>,
}

/// The shell of an experiment, and its transcript.
#[derive(Debug)]
pub(super) struct ShellSession {
    pub project: i64,
    pub transcript: Transcript,
    pub process: Option<ShellProcess>,
}

/// The running process of a shell.
#[derive(Debug)]
pub(super) struct ShellProcess {
    pub process: RunningProcess,
    pub stdin: Option<ChildStdin>,
    /// Time since the last input or output line.
    pub idle: Stopwatch,
    pub used_for: ShellPurpose,
}

/// What a shell is used for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ShellPurpose {
    /// A terminal, independent of the runs of an experiment.
    Terminal,
    /// The nodes of an experiment without traffic: the shell uses cores, and ends when the experiment is swapped out.
    Nodes,
}

impl ShellProcess {
    /// Ends the shell, which records its commands if it waits for a line; otherwise it is killed.
    pub fn end(&mut self, is_waiting: bool) {
        self.stdin = None;
        if !is_waiting {
            self.process.kill();
        }
    }
}

impl Shells {
    pub(super) fn lock(&self) -> MutexGuard<'_, BTreeMap<i64, ShellSession>> {
        self.all.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits until no other shell is being started.
    pub(super) fn lock_start(&self) -> MutexGuard<'_, ()> {
        self.starting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Ends terminals without input and output for half an hour.
    pub fn end_idle_terminals(&self) {
        for own in self.lock().values_mut() {
            let Some(process) = &mut own.process else { continue };
            let is_idle = process.stdin.is_some() && process.idle.seconds() > IDLE_TIMEOUT;
            if is_idle && process.used_for == ShellPurpose::Terminal {
                process.end(own.transcript.is_waiting());
            }
        }
    }

    /// Ends the shell of an experiment, which records its commands if none is running.
    pub fn end(&self, id: i64) {
        if let Some(own) = self.lock().get_mut(&id)
            && let Some(process) = &mut own.process
        {
            process.end(own.transcript.is_waiting());
        }
    }

    /// Returns the seconds since the last input or output line of an experiment's shell.
    pub fn idle_seconds(&self, id: i64) -> Option<f64> {
        Some(self.lock().get(&id)?.process.as_ref()?.idle.seconds())
    }

    /// Returns the last message of the shell of an experiment.
    pub fn last_message(&self, id: i64) -> Option<String> {
        let entries = self.lock().get(&id)?.transcript.entries();
        entries.iter().rev().find_map(|entry| Some(entry.content.get("note")?.as_str()?.to_owned()))
    }

    /// Kills the shell of a deleted experiment, and removes its transcript.
    pub fn forget(&self, id: i64) {
        if let Some(own) = self.lock().remove(&id)
            && let Some(process) = own.process
        {
            process.process.kill();
        }
    }
}
