//! The state transitions of an experiment, as one table.

use crate::experiment::State;

/// What happens to an experiment and may change its state.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Event {
    /// A user starts the experiment.
    Start,
    /// A user continues the experiment.
    SwapIn,
    /// A user, a time limit or a quota swaps the experiment out.
    SwapOut,
    /// A user ends the experiment permanently.
    Terminate,
    /// A user changes the text of the experiment.
    Modify,
    /// The experiment cannot start now and does not wait.
    Reject,
    /// The experiment's process starts.
    Launch,
    /// The experiment's process reports progress.
    Report,
    /// The experiment's process has completed all runs.
    Complete,
    /// The experiment's process could not start, or has failed.
    Fail,
    /// The experiment's process, or the server, was killed.
    Die,
}

/// Returns the state after `event`; `None` if the state does not allow the event, or the event is too late.
pub const fn next_state(state: State, event: Event) -> Option<State> {
    use Event::{Complete, Die, Fail, Launch, Modify, Reject, Report, Start, SwapIn, SwapOut, Terminate};
    use State::{Active, Done, Failed, New, Queued, Starting, SwappedOut, Terminated};
    Some(match (state, event) {
        (New | Failed, Start) | (SwappedOut, SwapIn) | (Starting | Active, Die) => Queued,
        (Queued | Starting | Active, SwapOut) | (Queued, Reject) | (Failed | Done, Modify) => SwappedOut,
        (New | Queued | SwappedOut, Modify) => state,
        (New | Queued | Starting | Active | SwappedOut | Failed, Terminate) => Terminated,
        (Queued, Launch) => Starting,
        (Starting | Active, Report) => Active,
        (Starting | Active, Complete) => Done,
        (Starting | Active, Fail) => Failed,
        _ => return None,
    })
}

/// Returns whether an experiment in this state uses cores.
pub const fn holds_cores(state: State) -> bool {
    matches!(state, State::Starting | State::Active)
}

/// Returns what a user can do instead if [`next_state`] rejects an action.
pub const fn remedy(state: State) -> &'static str {
    match state {
        State::New => "start the experiment first",
        State::Queued => "the experiment starts when enough cores are free; swap it out to prevent that",
        State::Starting | State::Active => "swap the experiment out first",
        State::SwappedOut => "swap the experiment in to continue it",
        State::Terminated => "the experiment cannot be continued; run it again as a new experiment",
        State::Failed => "start the experiment to try again, or change its text first",
        State::Done => {
            "all runs of the experiment are complete; run it again as a new experiment, or change its text"
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use Event::{Complete, Die, Fail, Launch, Modify, Reject, Report, Start, SwapIn, SwapOut, Terminate};
    use proptest::prelude::*;

    const EVENTS: [Event; 11] =
        [Start, SwapIn, SwapOut, Terminate, Modify, Reject, Launch, Report, Complete, Fail, Die];

    /// The state after each event in each state, as in section 2.2 of eklund2004, with `done` in addition; `.` means
    /// that the event is rejected.
    #[test]
    fn transition_table_covers_every_state_and_event() {
        let table = "
            new          queued .      .           terminated new         .           .        .      .    .      .
            queued       .      .      swapped_out terminated queued      swapped_out starting .      .    .      .
            starting     .      .      swapped_out terminated .           .           .        active done failed queued
            active       .      .      swapped_out terminated .           .           .        active done failed queued
            swapped_out  .      queued .           terminated swapped_out .           .        .      .    .      .
            terminated   .      .      .           .          .           .           .        .      .    .      .
            failed       queued .      .           terminated swapped_out .           .        .      .    .      .
            done         .      .      .           .          swapped_out .           .        .      .    .      .";
        let rows: Vec<Vec<&str>> =
            table.trim().lines().map(|line| line.split_whitespace().collect()).collect();
        assert_eq!(rows.len(), State::ALL.len());
        for (row, state) in rows.iter().zip(State::ALL) {
            assert_eq!((row.len(), row[0]), (1 + EVENTS.len(), state.word()));
            for (wanted, event) in row[1..].iter().zip(EVENTS) {
                let found = next_state(state, event).map_or(".", State::word);
                assert_eq!(found, *wanted, "{state:?} {event:?}");
            }
        }
    }

    proptest! {
        /// Only a launch can acquire cores, and a terminated experiment remains terminated.
        #[test]
        fn only_a_launch_acquires_cores(events in prop::collection::vec(prop::sample::select(&EVENTS[..]), 0..60)) {
            let mut state = State::New;
            for event in events {
                let Some(after) = next_state(state, event) else { continue };
                prop_assert!(!holds_cores(after) || holds_cores(state) || event == Launch);
                prop_assert!(state != State::Terminated);
                state = after;
            }
        }
    }
}
