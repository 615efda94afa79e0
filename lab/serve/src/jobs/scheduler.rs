//! The thread that starts and ends processes, as the queue decides, and handles their output.
//!
//! The database has the state of each experiment; this thread starts and ends processes accordingly. If the server is
//! killed, its processes end, too, and at the next start their experiments are queued again.

use std::collections::BTreeMap;
use std::io;
use std::process::ExitStatus;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender};
use std::time::Duration;

use hol_lab::Stopwatch;

use super::message::SchedulerMessage;
use super::process::{RunnerCommand, RunningProcess, append_to_log};
use super::stream::{OutputLine, read};
use crate::directory::occupied_octets;
use crate::events::EventKind;
use crate::experiment::State;
use crate::lifecycle::{Event, holds_cores};
use crate::queue::{QueueDecision, decide};
use crate::server::Server;
use crate::shell::ShellPurpose;
use crate::store::StoredExperiment;

/// Interval of the checks for idle experiments, and for processes that have not ended in time.
const CHECK_INTERVAL: Duration = Duration::from_millis(500);

/// Seconds between updates of an experiment's usage. The experiment can write some hundred MB to a fast disk meanwhile.
const USAGE_INTERVAL: f64 = 1.0;

/// Seconds in which a process must save its results before it is killed.
const END_TIMEOUT: f64 = 20.0;

/// Number of times that the process of an experiment may be killed without a completed run before the experiment fails.
const MAX_KILLS: u32 = 5;

/// Maximum number of characters of a process's last message, which is stored as the reason for a failure.
const MAX_REASON_LENGTH: usize = 300;

/// The process of an experiment, and its status.
struct Job {
    process: RunningProcess,
    command: RunnerCommand,
    project: i64,
    cores: u32,
    stopwatch: Stopwatch,
    /// Time of the last line of output, by `stopwatch`.
    last_output_at: f64,
    /// Whether the process has reported progress.
    has_reported: bool,
    /// Time at which the process was asked to end, by `stopwatch`.
    asked_to_end_at: Option<f64>,
    is_interrupted: bool,
    /// The last line of output that is not JSON.
    last_text: String,
    runs: u64,
    /// Whether the experiment has no traffic, so that its process is a shell on its nodes.
    is_shell: bool,
    /// Time up to which core seconds are counted, by `stopwatch`.
    counted_until: f64,
}

/// Starts and ends the processes of queued experiments.
struct Scheduler {
    server: Arc<Server>,
    sender: Sender<SchedulerMessage>,
    jobs: BTreeMap<i64, Job>,
    /// For each experiment: how many times its process was killed since the last completed run, and the number of runs
    /// completed by then.
    kill_counts: BTreeMap<i64, (u32, u64)>,
    /// Whether something has changed, so that the queue has to be checked again.
    queue_needs_check: bool,
    /// The reasons for waiting that were reported last.
    reported_reasons: BTreeMap<i64, String>,
}

/// Records the disk space of an experiment, and the core seconds since the last update.
fn update_usage(server: &Server, id: i64, job: &mut Job) -> rusqlite::Result<()> {
    let now = job.stopwatch.seconds();
    let core_seconds = (f64::from(job.cores) * (now - job.counted_until)) as u64;
    // The fraction of a second is counted next time.
    job.counted_until += core_seconds as f64 / f64::from(job.cores);
    server.store.record_usage(id, occupied_octets(&job.command.dir), core_seconds)
}

/// Asks the process of an experiment to save its results and to end.
fn ask_to_end(server: &Server, id: i64, job: &Job) {
    if job.is_shell {
        server.shells.end(id);
    } else {
        job.process.terminate();
    }
}

/// Returns why an experiment has failed, from the last message of its process.
fn failure_reason(message: &str) -> String {
    let message = message.trim_start_matches("error: ");
    // POSIX: ENOSPC and EDQUOT, as the standard library writes them.
    let is_full = ["(os error 28)", "(os error 122)"].iter().any(|error| message.contains(error));
    let prefix = if is_full { "disk full: " } else { "" };
    format!("{prefix}{message}").chars().take(MAX_REASON_LENGTH).collect()
}

/// Runs the scheduler until [`SchedulerMessage::Stop`], and returns when all processes have ended.
pub fn run_scheduler(
    server: Arc<Server>,
    sender: Sender<SchedulerMessage>,
    inbox: &Receiver<SchedulerMessage>,
) {
    let mut scheduler = Scheduler {
        server,
        sender,
        jobs: BTreeMap::new(),
        kill_counts: BTreeMap::new(),
        queue_needs_check: true,
        reported_reasons: BTreeMap::new(),
    };
    loop {
        match inbox.recv_timeout(CHECK_INTERVAL) {
            Ok(SchedulerMessage::Stop) | Err(RecvTimeoutError::Disconnected) => break,
            Ok(message) => scheduler.handle(message),
            Err(RecvTimeoutError::Timeout) => (),
        }
        // Handles all pending messages before the next check, so that many lines need only one check.
        while let Ok(message) = inbox.try_recv() {
            match message {
                SchedulerMessage::Stop => return scheduler.stop(inbox),
                message => scheduler.handle(message),
            }
        }
        scheduler.check();
    }
    scheduler.stop(inbox);
}

impl Scheduler {
    fn handle(&mut self, message: SchedulerMessage) {
        match message {
            SchedulerMessage::Check | SchedulerMessage::Stop => self.queue_needs_check = true,
            SchedulerMessage::Line(id, line) => self.handle_line(id, &line),
            SchedulerMessage::Exit(id, status) => {
                self.queue_needs_check = true;
                self.handle_exit(id, status);
            }
        }
    }

    /// Checks limits, and ends and starts processes as needed.
    fn check(&mut self) {
        self.swap_out_by_time();
        self.swap_out_by_quota();
        self.server.shells.end_idle_terminals();
        self.server.store.fill_reserve();
        self.end_unwanted_processes();
        if std::mem::take(&mut self.queue_needs_check)
            && let Err(problem) = self.start_queued()
        {
            self.queue_needs_check = true;
            self.server.log_error(&problem);
        }
    }

    fn swap_out_by_time(&self) {
        for (id, job) in &self.jobs {
            let Ok(Some(entry)) = self.server.store.entry(*id) else { continue };
            let (now, experiment) = (job.stopwatch.seconds(), entry.experiment);
            let silence = if job.is_shell {
                self.server.shells.idle_seconds(*id).unwrap_or_default()
            } else {
                now - job.last_output_at
            };
            let over = |limit: Option<u32>, passed: f64| limit.filter(|limit| passed >= f64::from(*limit));
            let why = if let Some(limit) = over(experiment.auto_swap, now) {
                format!("auto swap after {limit} s")
            } else if let Some(limit) = over(experiment.idle_swap, silence) {
                format!("idle swap: no progress for {limit} s")
            } else {
                continue;
            };
            self.server.apply_event(*id, Event::SwapOut, &why);
        }
    }

    /// Updates the usage of experiments, and swaps out the experiments of projects that have used up their quota.
    fn swap_out_by_quota(&mut self) {
        for (id, job) in &mut self.jobs {
            if job.stopwatch.seconds() < job.counted_until + USAGE_INTERVAL {
                continue;
            }
            let refused =
                update_usage(&self.server, *id, job).and_then(|()| self.server.quota_excess(job.project));
            match refused {
                Ok(Some(why)) => self.server.apply_event(*id, Event::SwapOut, &why),
                Ok(None) => (),
                Err(problem) => self.server.log_error(&problem),
            }
        }
    }

    /// Ends the processes of experiments that should no longer run: asks them to end, and kills those that do not end
    /// in time.
    fn end_unwanted_processes(&mut self) {
        for (id, job) in &mut self.jobs {
            let wanted = self
                .server
                .store
                .entry(*id)
                .is_ok_and(|entry| entry.is_some_and(|entry| holds_cores(entry.experiment.state)));
            match job.asked_to_end_at {
                // The queue may start the experiment again when this process has ended.
                None if !wanted => {
                    ask_to_end(&self.server, *id, job);
                    job.asked_to_end_at = Some(job.stopwatch.seconds());
                }
                Some(asked) if job.stopwatch.seconds() - asked > END_TIMEOUT => job.process.kill(),
                None | Some(_) => (),
            }
        }
    }

    fn start_queued(&mut self) -> rusqlite::Result<()> {
        let mut waiting = self.server.store.queued_experiments()?;
        for one in &mut waiting {
            if self.jobs.contains_key(&one.id) {
                one.obstacle = Some("the previous process of the experiment is still running".to_owned());
            }
        }
        let taken = self.jobs.values().map(|job| job.cores).sum();
        let mut verdicts = decide(waiting.clone(), self.server.config.cores, taken);
        // Checks file locks only for experiments that are about to start.
        while let Some(busy) = verdicts
            .iter()
            .find(|(id, verdict)| *verdict == QueueDecision::Start && self.results_are_locked(*id))
        {
            let one = waiting
                .iter_mut()
                .find(|one| one.id == busy.0)
                .expect("the queue decides only about queued experiments");
            one.obstacle = Some("another process is writing the results of the experiment".to_owned());
            // The scheduler is not notified when that process ends.
            self.queue_needs_check = true;
            verdicts = decide(waiting.clone(), self.server.config.cores, taken);
        }
        let mut whys = BTreeMap::new();
        for (id, verdict) in verdicts {
            match verdict {
                QueueDecision::Start => self.launch(id)?,
                QueueDecision::Reject(why) => self.server.apply_event(id, Event::Reject, &why),
                QueueDecision::Wait(why) => drop(whys.insert(id, why)),
            }
        }
        let news: Vec<(i64, String)> = whys
            .iter()
            .filter(|(id, why)| self.reported_reasons.get(id) != Some(why))
            .map(|(id, why)| (*id, why.clone()))
            .collect();
        self.reported_reasons = whys;
        if news.is_empty() { Ok(()) } else { self.server.record_wait_reasons(&news) }
    }

    /// Returns whether another process writes the results of an experiment.
    fn results_are_locked(&self, id: i64) -> bool {
        self.server.runner_command(id).is_ok_and(|command| command.results_are_locked())
    }

    fn launch(&mut self, id: i64) -> rusqlite::Result<()> {
        if let Some(entry) = self.server.store.entry(id)?
            && let Some(why) = self.server.quota_excess(entry.project)?
        {
            self.server.apply_event(id, Event::Reject, &why);
            return Ok(());
        }
        self.server.apply_event(id, Event::Launch, "");
        let Some(entry) = self.server.store.entry(id)? else { return Ok(()) };
        if !holds_cores(entry.experiment.state) {
            return Ok(());
        }
        let text = self.server.store.text(id, None)?.map_or(String::new(), |text| text.text);
        // If this cannot be determined, starting the process fails, too, and reports the reason.
        let is_shell = self.server.with_placeholder_traffic(&entry).is_ok_and(|text| text.is_some());
        let command = self.server.runner_command(id)?;
        match self.start(&entry, &command, &text, is_shell) {
            Ok(process) => {
                let job = Job {
                    process,
                    command,
                    project: entry.project,
                    cores: entry.experiment.cores,
                    stopwatch: Stopwatch::start(),
                    last_output_at: 0.0,
                    has_reported: false,
                    asked_to_end_at: None,
                    is_interrupted: false,
                    last_text: String::new(),
                    runs: 0,
                    is_shell,
                    counted_until: 0.0,
                };
                self.jobs.insert(id, job);
            }
            Err(error) => {
                let why =
                    failure_reason(&format!("the process of the experiment cannot be started: {error}"));
                self.server.apply_event(id, Event::Fail, &why);
            }
        }
        Ok(())
    }

    /// Starts the process of an experiment: its runs, or a shell on its nodes.
    fn start(
        &self,
        entry: &StoredExperiment,
        command: &RunnerCommand,
        text: &str,
        is_shell: bool,
    ) -> Result<RunningProcess, String> {
        let id = entry.experiment.id;
        let (lines, exits) = (self.sender.clone(), self.sender.clone());
        // Sending fails after the scheduler has stopped.
        let exit = move |status| drop(exits.send(SchedulerMessage::Exit(id, status)));
        if is_shell {
            let server = self.server.clone();
            let ready =
                move || server.apply_event(id, Event::Report, "the nodes of the experiment are ready");
            let started = self.server.start_shell(entry, 0, ShellPurpose::Nodes, ready, exit);
            return started.map_err(|refusal| refusal.to_string());
        }
        let line = move |line| drop(lines.send(SchedulerMessage::Line(id, line)));
        command.start(&entry.experiment, text, line, exit).map_err(|refusal| refusal.to_string())
    }

    fn handle_line(&mut self, id: i64, line: &str) {
        let Some(job) = self.jobs.get_mut(&id) else { return };
        job.last_output_at = job.stopwatch.seconds();
        match read(line) {
            OutputLine::Progress(progress) => {
                job.runs = progress.runs;
                if !std::mem::replace(&mut job.has_reported, true) && job.asked_to_end_at.is_none() {
                    self.server.apply_event(id, Event::Report, "");
                }
                if let Err(problem) = self.server.store.record_progress(id, &progress) {
                    self.server.log_error(&problem);
                }
                self.server.hub.publish(id, job.project, EventKind::Progress, &progress);
            }
            OutputLine::Point(row) => self.server.hub.publish(id, job.project, EventKind::Point, &row),
            OutputLine::Interrupted => job.is_interrupted = true,
            OutputLine::Text(text) => {
                append_to_log(&job.command.dir, &text);
                self.server.hub.publish(id, job.project, EventKind::Log, &text);
                if !text.trim().is_empty() {
                    job.last_text = text;
                }
            }
        }
    }

    /// Handles the end of a process, depending on whether it was asked to end.
    fn handle_exit(&mut self, id: i64, status: io::Result<ExitStatus>) {
        let Some(mut job) = self.jobs.remove(&id) else { return };
        if let Err(problem) = update_usage(&self.server, id, &mut job) {
            self.server.log_error(&problem);
        }
        if job.asked_to_end_at.is_some() {
            return;
        }
        let (event, why) = match status {
            Ok(status) if job.is_shell && status.code().is_some() => self.event_of_ended_shell(id),
            Ok(status) if status.success() => (Event::Complete, String::new()),
            Ok(status) if status.code().is_some() && !job.is_interrupted => {
                (Event::Fail, failure_reason(&job.last_text))
            }
            Ok(_) => self.event_of_killed_process(id, job.runs),
            Err(error) => (
                Event::Fail,
                format!("the process of the experiment has ended; its exit status is unknown: {error}"),
            ),
        };
        if event != Event::Die {
            self.kill_counts.remove(&id);
        }
        self.server.apply_event(id, event, &why);
    }

    /// Returns the event to apply after a shell has ended: a failure if the shell did not start, otherwise a swap-out.
    fn event_of_ended_shell(&self, id: i64) -> (Event, String) {
        let state = self.server.store.entry(id).ok().flatten().map(|entry| entry.experiment.state);
        match state {
            Some(State::Starting) => {
                let note = self.server.shells.last_message(id);
                (
                    Event::Fail,
                    failure_reason(
                        &note.unwrap_or_else(|| "the nodes of the experiment did not start".to_owned()),
                    ),
                )
            }
            _ => (Event::SwapOut, "the terminal on the nodes was ended".to_owned()),
        }
    }

    /// Returns the event to apply after a process was killed: a restart, or a failure if it was killed too often
    /// without completing a run.
    fn event_of_killed_process(&mut self, id: i64, runs: u64) -> (Event, String) {
        let (times, done) = self.kill_counts.entry(id).or_default();
        *times = if runs > *done { 1 } else { *times + 1 };
        *done = runs;
        if *times < MAX_KILLS {
            return (
                Event::Die,
                "the process of the experiment was killed; the experiment continues after its completed runs"
                    .to_owned(),
            );
        }
        (
            Event::Fail,
            format!(
                "the process of the experiment was killed {MAX_KILLS} times without completing a run; check that the machine has enough memory"
            ),
        )
    }

    /// Asks all processes to save their results, and waits until they have ended.
    fn stop(&mut self, inbox: &Receiver<SchedulerMessage>) {
        let stopwatch = Stopwatch::start();
        for (id, job) in &self.jobs {
            ask_to_end(&self.server, *id, job);
        }
        while !self.jobs.is_empty() {
            match inbox.recv_timeout(CHECK_INTERVAL) {
                Ok(SchedulerMessage::Exit(id, _)) => drop(self.jobs.remove(&id)),
                Ok(_) | Err(RecvTimeoutError::Timeout) => (),
                Err(RecvTimeoutError::Disconnected) => return,
            }
            if stopwatch.seconds() > END_TIMEOUT {
                self.jobs.values().for_each(|job| job.process.kill());
            }
        }
    }
}
