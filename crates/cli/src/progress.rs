//! How far it is: a bar with the time left on a terminal, a plain line now and then elsewhere.

use std::io::{self, IsTerminal};

use hol_lab::Stopwatch;
use indicatif::{ProgressBar, ProgressStyle};

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
        let runs = format!("{} of {} runs", now.runs, now.runs_wanted);
        match self {
            Self::Quiet => (),
            Self::Bar(bar) => {
                bar.set_length(now.messages_wanted);
                bar.set_position(now.messages);
                bar.set_message(runs);
            }
            Self::Lines { watch, next } => {
                let elapsed = watch.seconds();
                if elapsed >= *next {
                    *next = elapsed + LINE_EVERY;
                    let share = now.messages as f64 / now.messages_wanted.max(1) as f64;
                    let left = elapsed * (1.0 / share - 1.0);
                    eprintln!("{:.0} % ({runs}), about {left:.0} s left", share * 100.0);
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
