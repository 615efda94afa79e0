//! Shows progress: a bar with the remaining time on a terminal, a plain line from time to time elsewhere,
//! JSON for programs.

use std::io::{self, IsTerminal};

use crate::terminal::note;
use hol_lab::Stopwatch;
use indicatif::{ProgressBar, ProgressStyle};

use crate::terminal::group_digits;

/// Interval between progress lines in s, if standard error is not a terminal.
const LINE_INTERVAL: f64 = 5.0;
/// Interval between JSON objects with the progress, in s.
const OBJECT_INTERVAL: f64 = 1.0;

/// The share of the estimated work from which on the remaining time is estimated by counting runs, if at least
/// `MIN_LAST_RUNS` runs are left. The estimated work counts messages, so that runs with few messages are almost no
/// work.
const LAST_RUNS_SHARE: f64 = 0.99;
/// Minimum number of remaining runs for which the remaining time is estimated by counting runs.
const MIN_LAST_RUNS: u64 = 50;

/// Whether and how progress is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ProgressOutput {
    /// Progress is not shown.
    Quiet,
    /// Progress is shown as a bar or as plain lines on standard error.
    Text,
    /// Progress is shown as JSON objects on standard error, one per line.
    Json,
}

/// Shows the progress of a plan on standard error.
pub struct Progress {
    display: Display,
    stopwatch: Stopwatch,
    /// Set once only short runs are left, see `LAST_RUNS_SHARE`.
    last_runs: Option<LastRuns>,
    /// Progress that earlier processes made on the same plan.
    earlier: hol_lab::Progress,
}

/// How progress is shown.
enum Display {
    /// Progress is not shown.
    Quiet,
    /// Progress is shown as a bar.
    Bar(ProgressBar),
    /// Progress is shown as a line every few seconds; contains the time of the next line, in s.
    Lines(f64),
    /// Progress is shown as a JSON object every second, the first at once; contains the time of the next object,
    /// in s.
    Objects(f64),
}

/// The state at the moment after which only short runs are left, see `LAST_RUNS_SHARE`.
#[derive(Debug, Clone, Copy)]
struct LastRuns {
    /// Number of runs that were done at that moment.
    runs: u64,
    /// Elapsed time at that moment, in s.
    elapsed: f64,
}

impl Progress {
    /// Creates a progress display; with `Text`, a bar if standard error is a terminal, otherwise lines.
    pub fn new(output: ProgressOutput) -> Self {
        let earlier = hol_lab::Progress::default();
        Self { display: Display::new(output), stopwatch: Stopwatch::start(), last_runs: None, earlier }
    }

    /// Sets the progress of earlier processes. JSON objects include it; the bar and the lines show only the remaining
    /// work.
    pub fn with_earlier(self, earlier: hol_lab::Progress) -> Self {
        Self { earlier, ..self }
    }

    /// Shows the progress, with the remaining time if it is known.
    pub fn show(&mut self, now: hol_lab::Progress) {
        let elapsed = self.stopwatch.seconds();
        let failed = if now.failed > 0 { format!(", {} failed", now.failed) } else { String::new() };
        let left = now.runs_wanted.saturating_sub(now.runs);
        if share(&now) >= LAST_RUNS_SHARE && left >= MIN_LAST_RUNS && self.last_runs.is_none() {
            self.last_runs = Some(LastRuns { runs: now.runs, elapsed });
            self.display.restart();
        }
        let [messages, wanted, runs, runs_wanted, runs_left] =
            [now.messages, now.messages_wanted, now.runs, now.runs_wanted, left].map(group_digits);
        let text = match self.last_runs {
            Some(_) => format!("the last {runs_left} of {runs_wanted} runs{failed}, each with few messages"),
            None => format!("{runs} of {runs_wanted} runs{failed}, {messages} of {wanted} messages"),
        };
        match &mut self.display {
            Display::Bar(bar) => {
                let (length, position) = match self.last_runs {
                    Some(last) => (now.runs_wanted - last.runs, now.runs - last.runs),
                    None => (now.work_wanted, now.work),
                };
                bar.set_length(length);
                bar.set_position(position);
                bar.set_message(text);
            }
            Display::Lines(next) if elapsed >= *next => {
                *next = elapsed + LINE_INTERVAL;
                note!("{}", progress_line(&now, &text, elapsed, self.last_runs));
            }
            Display::Objects(next) if elapsed >= *next || now.runs == now.runs_wanted => {
                *next = elapsed + OBJECT_INTERVAL;
                note!("{}", progress_object(&now, &self.earlier, elapsed, self.last_runs));
            }
            Display::Lines(_) | Display::Objects(_) | Display::Quiet => (),
        }
    }

    /// Removes the bar from the terminal.
    pub fn finish(&self) {
        if let Display::Bar(bar) = &self.display {
            bar.finish_and_clear();
        }
    }
}

impl Display {
    fn new(output: ProgressOutput) -> Self {
        match output {
            ProgressOutput::Quiet => return Self::Quiet,
            ProgressOutput::Json => return Self::Objects(0.0),
            ProgressOutput::Text => (),
        }
        if !io::stderr().is_terminal() {
            return Self::Lines(LINE_INTERVAL);
        }
        let plain = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
        let bar = if plain { "{bar:32}" } else { "{bar:32.cyan/dim}" };
        let template = format!("{bar} {{percent:>3}} %  {{msg}}  {{eta}} left");
        let style = ProgressStyle::with_template(&template).expect("the template is valid");
        Self::Bar(ProgressBar::new(0).with_style(style.progress_chars("━━─")))
    }

    /// Restarts the bar, which from now on counts runs instead of work.
    fn restart(&self) {
        if let Self::Bar(bar) = self {
            bar.reset();
        }
    }
}

/// Returns the share of the estimated work that is done.
fn share(now: &hol_lab::Progress) -> f64 {
    now.work as f64 / now.work_wanted.max(1) as f64
}

/// Estimates the remaining time in s; `None` if unknown.
fn remaining_seconds(now: &hol_lab::Progress, elapsed: f64, last: Option<LastRuns>) -> Option<f64> {
    let Some(last) = last else {
        let share = share(now);
        return (share > 0.0).then(|| (elapsed * (1.0 / share - 1.0)).max(0.0));
    };
    let [done, left] = [now.runs - last.runs, now.runs_wanted - now.runs].map(|runs| runs as f64);
    // The pace is unknown until another run ends.
    (done > 0.0).then(|| (elapsed - last.elapsed) * left / done)
}

/// Returns progress and remaining time as a line of text.
fn progress_line(now: &hol_lab::Progress, text: &str, elapsed: f64, last: Option<LastRuns>) -> String {
    let left = match remaining_seconds(now, elapsed, last) {
        Some(left) => format!(", about {} left", format_seconds(left)),
        // There is no estimate until the first messages have been delivered or given up, which may take long.
        None if last.is_none() => format!(", {} so far", format_seconds(elapsed)),
        None => String::new(),
    };
    if last.is_some() {
        return format!("{text}{left}");
    }
    // 100 % is shown only when everything is done.
    let percent = (100.0 * share(now)).floor().min(99.0);
    format!("{percent} % ({text}){left}")
}

/// Returns progress and remaining time as a JSON object.
fn progress_object(
    now: &hol_lab::Progress,
    earlier: &hol_lab::Progress,
    elapsed: f64,
    last: Option<LastRuns>,
) -> serde_json::Value {
    let &hol_lab::Progress { runs, runs_wanted, failed, messages, messages_wanted, .. } = now;
    let (work, work_wanted) = (earlier.work + now.work, earlier.work + now.work_wanted);
    serde_json::json!({ "progress": {
        "runs": earlier.runs + runs,
        "runs_wanted": earlier.runs + runs_wanted,
        "failed": failed,
        "messages": earlier.messages + messages,
        "messages_wanted": earlier.messages + messages_wanted,
        "share": share(&hol_lab::Progress { work, work_wanted, ..*now }).min(1.0),
        "left": remaining_seconds(now, elapsed, last),
    } })
}

/// Formats a time in seconds for people: `1.5 s`, `40 s`, `12 min`, `3.5 h`.
pub fn format_seconds(seconds: f64) -> String {
    match seconds {
        s if s < 10.0 => format!("{s:.1} s"),
        s if s < 120.0 => format!("{s:.0} s"),
        s if s < 7200.0 => format!("{:.0} min", s / 60.0),
        s => format!("{:.1} h", s / 3600.0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_rounded_for_people() {
        assert_eq!([1.49, 40.2, 700.0, 12_600.0].map(format_seconds), ["1.5 s", "40 s", "12 min", "3.5 h"]);
    }

    fn progress(runs: u64, work: u64) -> hol_lab::Progress {
        let now = hol_lab::Progress::default();
        hol_lab::Progress { runs, runs_wanted: 1000, work, work_wanted: 10_000, ..now }
    }

    #[test]
    fn progress_line_never_shows_100_percent() {
        assert_eq!(progress_line(&progress(900, 2_500), "text", 10.0, None), "25 % (text), about 30 s left");
        assert_eq!(progress_line(&progress(0, 0), "text", 15.0, None), "0 % (text), 15 s so far");
        assert!(progress_line(&progress(999, 10_000), "text", 10.0, None).starts_with("99 % (text)"));
    }

    #[test]
    fn json_progress_includes_earlier_processes() {
        let earlier =
            hol_lab::Progress { runs: 1000, messages: 7, work: 10_000, ..hol_lab::Progress::default() };
        let object = progress_object(&progress(500, 5_000), &earlier, 10.0, None);
        let object = &object["progress"];
        assert_eq!((&object["runs"], &object["runs_wanted"]), (&1500.into(), &2000.into()));
        assert_eq!((&object["messages"], &object["messages_wanted"]), (&7.into(), &7.into()));
        assert_eq!((&object["share"], &object["left"]), (&0.75.into(), &10.0.into()));
    }

    /// As eklund2004: 45,000 runs of one message each are a thousandth of the messages and a third of the time.
    #[test]
    fn remaining_time_of_the_last_short_runs_follows_their_pace() {
        let last = Some(LastRuns { runs: 500, elapsed: 100.0 });
        assert_eq!(
            progress_line(&progress(600, 9_990), "the last", 110.0, last),
            "the last, about 40 s left"
        );
        assert_eq!(progress_line(&progress(500, 9_990), "the last", 100.0, last), "the last");
        let mut shown = Progress {
            display: Display::Quiet,
            stopwatch: Stopwatch::start(),
            last_runs: None,
            earlier: progress(0, 0),
        };
        shown.show(progress(200, 5_000));
        assert!(shown.last_runs.is_none(), "there is more than the last runs");
        shown.show(progress(500, 9_950));
        assert_eq!(shown.last_runs.map(|last| last.runs), Some(500));
        shown.show(progress(990, 9_990));
        assert_eq!(shown.last_runs.map(|last| last.runs), Some(500), "they go on to be the last");
    }
}
