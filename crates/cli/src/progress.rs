//! How far it is: a bar with the time left on a terminal, a plain line now and then elsewhere.

use std::io::{self, IsTerminal};

use crate::terminal::note;
use hol_lab::Stopwatch;
use indicatif::{ProgressBar, ProgressStyle};

use crate::terminal::grouped;

/// Seconds from line to line where there is no terminal.
const LINE_EVERY: f64 = 5.0;

/// Shows on standard error how far a plan is.
pub enum Progress {
    /// Says nothing.
    Quiet,
    /// A bar that moves.
    Bar(ProgressBar),
    /// A line every few seconds.
    Lines {
        /// Since it began.
        watch: Stopwatch,
        /// When the next line is due, in seconds.
        next: f64,
    },
}

impl Progress {
    /// A display that fits standard error.
    pub fn new(quiet: bool) -> Self {
        if quiet {
            return Self::Quiet;
        }
        if !io::stderr().is_terminal() {
            return Self::Lines { watch: Stopwatch::start(), next: LINE_EVERY };
        }
        let plain = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
        let bar = if plain { "{bar:32}" } else { "{bar:32.cyan/dim}" };
        let template = format!("{bar} {{percent:>3}} %  {{msg}}  {{eta}} left");
        let style = ProgressStyle::with_template(&template).expect("the template is right");
        Self::Bar(ProgressBar::new(0).with_style(style.progress_chars("━━─")))
    }

    /// Shows that it is this far now.
    pub fn show(&mut self, now: hol_lab::Progress) {
        let failed = if now.failed > 0 { format!(", {} failed", now.failed) } else { String::new() };
        let [messages, wanted] = [now.messages, now.messages_wanted].map(grouped);
        let runs =
            format!("{} of {} runs{failed}, {messages} of {wanted} messages", now.runs, now.runs_wanted);
        match self {
            Self::Quiet => (),
            Self::Bar(bar) => {
                bar.set_length(now.work_wanted);
                bar.set_position(now.work);
                bar.set_message(runs);
            }
            Self::Lines { watch, next } => {
                let elapsed = watch.seconds();
                if elapsed >= *next {
                    *next = elapsed + LINE_EVERY;
                    let share = now.work as f64 / now.work_wanted.max(1) as f64;
                    let left = patience(elapsed * (1.0 / share - 1.0));
                    note!("{:.0} % ({runs}), about {left} left", share * 100.0);
                }
            }
        }
    }

    /// Takes the bar away.
    pub fn finish(&self) {
        if let Self::Bar(bar) = self {
            bar.finish_and_clear();
        }
    }
}

/// A time in seconds as people say it: `1.5 s`, `40 s`, `12 min`, `3.5 h`.
pub fn patience(seconds: f64) -> String {
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
    fn times_are_rounded_to_what_matters() {
        assert_eq!([1.49, 40.2, 700.0, 12_600.0].map(patience), ["1.5 s", "40 s", "12 min", "3.5 h"]);
    }
}
